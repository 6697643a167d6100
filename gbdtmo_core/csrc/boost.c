/* Boosting: derivatives, a tree (or a tree an output), new scores, early stopping; a round is one turn of this. */
#include "leaf.h"
#include "loss.h"

#include <math.h>
#include <string.h>

struct gmo_booster {
    gmo_params params;
    gmo_binned train, valid;
    gmo_target train_target, valid_target;
    int32_t n_outputs, n_tracks;
    bool has_valid, has_hessian;
    bool is_difference; /* squared error: the gradient is scores - targets, which no matrix need hold */
    gmo_grower grower;
    gmo_trees trees;
    double *base_score;         /* (d,) */
    double *scores;             /* (n, d) */
    double *gradient, *hessian; /* (n, d); hessian is NULL if constant or exact, gradient if it is scores - targets */
    double *valid_scores;       /* (n_valid, d) */
    double *history;            /* (n_rounds, n_tracks) */
    double *profile;            /* (n_rounds, GMO_PROFILE_COLUMNS) */
    int64_t n_rounds, history_capacity, profile_capacity;
    int64_t *best_round; /* (n_tracks,) */
    double *best_value;  /* (n_tracks,) */
    bool *stopped;       /* (n_tracks,) */
};

/* Scores (n, d) that start from the base score; NULL if memory is short. */
static double *new_scores(const gmo_booster *b, int64_t n) {
    int64_t size;
    double *scores = gmo_size_mul(n, b->n_outputs, &size) ? gmo_alloc(size, sizeof *scores) : NULL;
    for (int64_t i = 0; scores && i < n; i++)
        memcpy(scores + i * b->n_outputs, b->base_score, (size_t)b->n_outputs * sizeof *scores);
    return scores;
}

static gmo_status booster_init(gmo_booster *b, const uint8_t *has_missing, const double *base_score) {
    int64_t n = b->train.n_rows, cells;
    int32_t d = b->n_outputs;
    if (n > GMO_MAX_ROWS || b->train.n_features > INT32_MAX || !gmo_size_mul(n, d, &cells))
        return GMO_ERR_SIZE;
    b->base_score = gmo_alloc(d, sizeof *b->base_score);
    if (!b->base_score)
        return GMO_ERR_MEMORY;
    memcpy(b->base_score, base_score, (size_t)d * sizeof *base_score);
    b->scores = new_scores(b, n);
    b->gradient = b->is_difference ? NULL : gmo_alloc(cells, sizeof *b->gradient);
    b->hessian = b->has_hessian ? gmo_alloc(cells, sizeof *b->hessian) : NULL;
    b->best_round = gmo_alloc_zero(b->n_tracks, sizeof *b->best_round);
    b->best_value = gmo_alloc_zero(b->n_tracks, sizeof *b->best_value);
    b->stopped = gmo_alloc_zero(b->n_tracks, sizeof *b->stopped);
    if (!b->scores || (!b->is_difference && !b->gradient) || (b->has_hessian && !b->hessian) || !b->best_round ||
        !b->best_value || !b->stopped)
        return GMO_ERR_MEMORY;
    int32_t tree_outputs = b->params.single_output ? 1 : d;
    GMO_TRY(gmo_grower_init(&b->grower, &b->params, &b->train, has_missing, tree_outputs, b->has_hessian, &b->trees));
    if (!b->params.exact_hessian)
        return GMO_OK;
    return gmo_exact_init(&b->grower.exact, &b->params, &b->grower.shape, b->gradient, b->train_target.labels, d);
}

static bool params_valid(const gmo_params *p) {
    return p->n_threads >= 1 && p->max_depth >= 1 && p->max_leaves >= 1 && p->min_samples_leaf >= 1 &&
           p->node_cache >= 1 && p->top_k >= 0 && p->reg_lambda >= 0 && p->reg_alpha >= 0 && p->min_split_gain >= 0 &&
           p->early_stopping_rounds >= 0 && isfinite(p->learning_rate);
}

static bool exact_valid(const gmo_params *p, int32_t d) {
    return p->loss == GMO_LOSS_SOFTMAX && p->growth == GMO_GROWTH_COMPLETE && !p->constant_hessian &&
           !p->single_output && (p->top_k == 0 || p->top_k >= d) && p->reg_alpha == 0 && d <= GMO_EXACT_MAX_OUTPUTS;
}

gmo_status gmo_booster_create(const gmo_params *params, const gmo_binned *train, const uint8_t *has_missing,
                              const gmo_target *target, const double *base_score, int32_t n_outputs,
                              gmo_booster **out) {
    *out = NULL;
    if (!params_valid(params) || train->n_rows < 1 || train->n_features < 1 || n_outputs < 1 ||
        (params->exact_hessian && !exact_valid(params, n_outputs)))
        return GMO_ERR_ARGUMENT;
    gmo_booster *b = gmo_alloc_zero(1, sizeof *b);
    if (!b)
        return GMO_ERR_MEMORY;
    b->params = *params;
    b->train = *train;
    b->train_target = *target;
    b->n_outputs = n_outputs;
    b->is_difference = params->loss == GMO_LOSS_SQUARED;
    b->has_hessian = params->loss != GMO_LOSS_SQUARED && !params->constant_hessian && !params->exact_hessian;
    b->n_tracks = params->single_output && params->loss == GMO_LOSS_SQUARED ? n_outputs : 1;
    gmo_status status = booster_init(b, has_missing, base_score);
    if (status != GMO_OK) {
        gmo_booster_free(b);
        return status;
    }
    *out = b;
    return GMO_OK;
}

gmo_status gmo_booster_validate(gmo_booster *b, const gmo_binned *rows, const gmo_target *target) {
    if (b->has_valid || b->n_rounds || rows->n_rows < 1 || rows->n_features != b->train.n_features)
        return GMO_ERR_ARGUMENT;
    b->valid_scores = new_scores(b, rows->n_rows);
    if (!b->valid_scores)
        return GMO_ERR_MEMORY;
    b->valid = *rows;
    b->valid_target = *target;
    b->has_valid = true;
    return GMO_OK;
}

void gmo_booster_free(gmo_booster *b) {
    if (!b)
        return;
    gmo_grower_free(&b->grower);
    gmo_trees_free(&b->trees);
    void *arrays[] = {b->base_score, b->scores,  b->gradient,   b->hessian,    b->valid_scores,
                      b->history,    b->profile, b->best_round, b->best_value, b->stopped};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    free(b);
}

/* First derivatives of the outputs from first on. */
static gmo_derivatives gradient_of(const gmo_booster *b, int32_t first) {
    if (b->is_difference)
        return (gmo_derivatives){b->scores + first, b->train_target.values + first, b->n_outputs};
    return (gmo_derivatives){b->gradient + first, NULL, b->n_outputs};
}

static gmo_derivatives hessian_of(const gmo_booster *b, int32_t first) {
    return (gmo_derivatives){b->hessian ? b->hessian + first : NULL, NULL, b->n_outputs};
}

/* Values of the tree just grown, and the new training scores of its rows. */
static gmo_status finish_leaves(gmo_booster *b, int32_t first) {
    int64_t tree = b->trees.n_trees - 1, n_assigned;
    double *values = b->trees.leaf_values + b->trees.value_start[tree];
    gmo_derivatives gradient = gradient_of(b, first), hessian = hessian_of(b, first);
    GMO_TRY(
        gmo_leaf_finish(&b->grower, &gradient, b->hessian ? &hessian : NULL, values, b->scores + first, &n_assigned));
    b->trees.n_unassigned[tree] = b->train.n_rows - n_assigned;
    return GMO_OK;
}

/* Adds the seconds since *since to a column of this round's profile; *since becomes now. */
static void charge(gmo_booster *b, int column, double *since) {
    double now = gmo_seconds();
    b->profile[b->n_rounds * GMO_PROFILE_COLUMNS + column] += now - *since;
    *since = now;
}

static gmo_status open_profile(gmo_booster *b) {
    int64_t needed;
    if (!gmo_size_mul(b->n_rounds + 1, GMO_PROFILE_COLUMNS, &needed))
        return GMO_ERR_SIZE;
    GMO_TRY(gmo_reserve((void **)&b->profile, &b->profile_capacity, needed, sizeof *b->profile));
    memset(b->profile + b->n_rounds * GMO_PROFILE_COLUMNS, 0, GMO_PROFILE_COLUMNS * sizeof *b->profile);
    b->grower.times = (gmo_growth_times){0};
    return GMO_OK;
}

static void close_profile(gmo_booster *b, double start) {
    double *row = b->profile + b->n_rounds * GMO_PROFILE_COLUMNS;
    const gmo_growth_times *times = &b->grower.times;
    row[GMO_PROFILE_HISTOGRAM] = times->histogram;
    row[GMO_PROFILE_SPLIT] = times->split;
    row[GMO_PROFILE_PARTITION] = times->partition;
    row[GMO_PROFILE_ENTRIES] = (double)times->entries;
    row[GMO_PROFILE_TOTAL] = gmo_seconds() - start;
}

/* One tree for outputs first .. first + fixed.d (output: the one it serves, -1: all). */
static gmo_status add_tree(gmo_booster *b, int32_t output) {
    int32_t first = output < 0 ? 0 : output;
    double since = gmo_seconds();
    if (!b->params.exact_hessian) {
        gmo_derivatives gradient = gradient_of(b, first), hessian = hessian_of(b, first);
        GMO_TRY(gmo_fixed_round(&b->grower.fixed, &gradient, &hessian, b->params.n_threads));
    }
    charge(b, GMO_PROFILE_ROUNDING, &since);
    if (b->n_rounds > INT32_MAX)
        return GMO_ERR_SIZE;
    GMO_TRY(gmo_trees_open(&b->trees, output, (int32_t)b->n_rounds));
    gmo_status status =
        b->params.growth == GMO_GROWTH_RELEASED ? gmo_grow_released(&b->grower) : gmo_grow_complete(&b->grower);
    since = gmo_seconds();
    if (status == GMO_OK)
        status = finish_leaves(b, first);
    charge(b, GMO_PROFILE_LEAF, &since);
    if (status != GMO_OK) {
        gmo_trees_drop(&b->trees);
        return status;
    }
    if (!b->has_valid)
        return GMO_OK;
    gmo_forest forest;
    gmo_trees_view(&b->trees, b->n_outputs, &forest);
    int64_t tree = b->trees.n_trees - 1;
    status = gmo_forest_predict(&forest, &tree, 1, &b->valid, b->params.n_threads, b->valid_scores);
    charge(b, GMO_PROFILE_EVALUATION, &since);
    return status;
}

/* Notes the metric of the round now finished for one track, and whether it has not improved for too long. The released
 * program compares (score, round) pairs, so that an accuracy equal to the best counts as an improvement; an error does
 * not. */
static void update_track(gmo_booster *b, int32_t track, int64_t round) {
    int32_t output = b->n_tracks > 1 ? track : -1;
    double value = gmo_metric_value(b->params.metric, b->params.loss, &b->valid_target, b->valid_scores,
                                    b->valid.n_rows, b->n_outputs, output);
    bool higher = gmo_metric_is_score(b->params.metric);
    bool better = higher ? value > b->best_value[track] : value < b->best_value[track];
    if (higher && b->params.growth == GMO_GROWTH_RELEASED)
        better = better || value == b->best_value[track];
    b->history[(round - 1) * b->n_tracks + track] = value;
    if (round == 1 || better) {
        b->best_value[track] = value;
        b->best_round[track] = round;
    } else if (b->params.early_stopping_rounds) {
        b->stopped[track] = round - b->best_round[track] >= b->params.early_stopping_rounds;
    }
}

static gmo_status evaluate(gmo_booster *b) {
    int64_t round = b->n_rounds + 1, needed;
    if (!gmo_size_mul(round, b->n_tracks, &needed))
        return GMO_ERR_SIZE;
    GMO_TRY(gmo_reserve((void **)&b->history, &b->history_capacity, needed, sizeof *b->history));
    for (int32_t track = 0; track < b->n_tracks; track++) {
        b->history[(round - 1) * b->n_tracks + track] = NAN;
        if (!b->stopped[track])
            update_track(b, track, round);
    }
    return GMO_OK;
}

static gmo_status boost_round(gmo_booster *b) {
    double start = gmo_seconds(), since = start;
    GMO_TRY(open_profile(b));
    if (!b->is_difference)
        gmo_loss_derivatives(b->params.loss, &b->train_target, b->scores, b->train.n_rows, b->n_outputs,
                             b->params.n_threads, b->gradient, b->hessian);
    charge(b, GMO_PROFILE_GRADIENT, &since);
    if (!b->params.single_output)
        GMO_TRY(add_tree(b, -1));
    for (int32_t j = 0; b->params.single_output && j < b->n_outputs; j++)
        if (b->n_tracks == 1 || !b->stopped[j])
            GMO_TRY(add_tree(b, j));
    since = gmo_seconds();
    if (b->has_valid)
        GMO_TRY(evaluate(b));
    charge(b, GMO_PROFILE_EVALUATION, &since);
    close_profile(b, start);
    b->n_rounds++;
    if (!b->params.early_stopping_rounds || !b->has_valid)
        for (int32_t track = 0; track < b->n_tracks; track++)
            b->best_round[track] = b->n_rounds;
    return GMO_OK;
}

static bool all_stopped(const gmo_booster *b) {
    for (int32_t track = 0; track < b->n_tracks; track++)
        if (!b->stopped[track])
            return false;
    return true;
}

gmo_status gmo_booster_boost(gmo_booster *b, int64_t n_rounds, int32_t *finished) {
    for (int64_t i = 0; i < n_rounds && !all_stopped(b); i++)
        GMO_TRY(boost_round(b));
    *finished = all_stopped(b);
    return GMO_OK;
}

void gmo_booster_forest(const gmo_booster *b, gmo_forest *out) { gmo_trees_view(&b->trees, b->n_outputs, out); }

void gmo_booster_progress(const gmo_booster *b, gmo_progress *out) {
    *out = (gmo_progress){b->n_rounds, b->n_tracks, b->has_valid ? b->history : NULL, b->best_round, b->profile};
}
