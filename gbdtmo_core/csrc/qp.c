#include "qp.h"

#include <math.h>
#include <string.h>

enum { MOST_REST = 15, BATCH = 64, LONGEST_INTERVAL = 10, FAR_FROM_THE_END = 10 };

/* The penalty of the sums starts at this share of the mean of K_ii. It rises while what it charges for them is more than what the
 * samples gain in an epoch, and falls, though not below the second share, while it charges next to nothing. */
static const double PENALTY = 0.1, LEAST_PENALTY = 0.03, PENALTY_STEP = 1.5, PENALTY_SHARE = 0.02;

static gmo_status allocate(gmo_qp *qp) {
    int64_t n = qp->problem.n, q = qp->problem.q, size;
    if (!gmo_size_mul(n, q, &size))
        return GMO_ERR_SIZE;
    qp->max_moves = 4 * n + 64 * (int64_t)q;
    qp->max_asked = 4 * qp->max_moves;
    qp->a = gmo_alloc_zero(size, sizeof *qp->a);
    qp->best_a = gmo_alloc_zero(size, sizeof *qp->best_a);
    qp->all = gmo_alloc(size, sizeof *qp->all);
    qp->sum = gmo_alloc_zero(q, sizeof *qp->sum);
    qp->bias = gmo_alloc_zero(q, sizeof *qp->bias);
    qp->shift = gmo_alloc_zero(q, sizeof *qp->shift);
    qp->best_bias = gmo_alloc_zero(q, sizeof *qp->best_bias);
    qp->order = gmo_alloc(n, sizeof *qp->order);
    qp->rest = gmo_alloc_zero(n, sizeof *qp->rest);
    qp->waited = gmo_alloc_zero(n, sizeof *qp->waited);
    qp->batch = gmo_alloc(BATCH, sizeof *qp->batch);
    qp->wanted = gmo_alloc(BATCH, sizeof *qp->wanted);
    qp->moves = gmo_alloc(qp->max_moves, sizeof *qp->moves);
    qp->s = gmo_alloc(q, sizeof *qp->s);
    qp->t = gmo_alloc(q, sizeof *qp->t);
    qp->fresh = gmo_alloc(q, sizeof *qp->fresh);
    qp->change = gmo_alloc(q, sizeof *qp->change);
    qp->label = gmo_alloc(2 * q, sizeof *qp->label);
    qp->by = gmo_alloc(q, sizeof *qp->by);
    qp->room = gmo_alloc(4 * q, sizeof *qp->room);
    bool complete = qp->a && qp->best_a && qp->all && qp->sum && qp->bias && qp->shift && qp->best_bias && qp->order &&
                    qp->rest && qp->waited && qp->batch && qp->wanted && qp->moves && qp->s && qp->t && qp->fresh &&
                    qp->change && qp->label && qp->by && qp->room;
    return complete ? GMO_OK : GMO_ERR_MEMORY;
}

/* K_ii for the origin. */
static double step_size(const gmo_qp_problem *problem, int64_t sample) {
    double with = problem->share ? problem->with_origin[sample] : 0;
    return problem->diagonal[sample] - 2 * with + problem->origin;
}

gmo_status gmo_qp_init(gmo_qp *qp, const gmo_qp_problem *problem, const double *gram, const gmo_features *x,
                       int64_t cache_bytes) {
    *qp = (gmo_qp){.problem = *problem, .random = problem->seed, .primal = INFINITY, .best_scale = 1};
    gmo_status status = gmo_scores_init(&qp->scores, problem->n, problem->q, gram, x, cache_bytes);
    if (status == GMO_OK)
        status = allocate(qp);
    if (status != GMO_OK) {
        gmo_qp_free(qp);
        return status;
    }
    double diagonal = 0, most = 0;
    for (int64_t i = 0; i < problem->n; i++) {
        if (!(problem->cost[i] > 0))
            continue;
        qp->order[qp->n_order++] = i;
        qp->hard = isinf(problem->cost[i]);
        diagonal += step_size(problem, i);
        qp->mean_diagonal += problem->diagonal[i];
        int32_t n_relevant = 0;
        for (int32_t k = 0; k < problem->q; k++)
            n_relevant += problem->relevant[i * problem->q + k];
        most += problem->cost[i] * n_relevant * (problem->q - n_relevant);
    }
    qp->mean_diagonal /= qp->n_order ? (double)qp->n_order : 1;
    double mean = diagonal > 0 ? diagonal / (double)qp->n_order : 1;
    qp->least_rho = LEAST_PENALTY * mean;
    /* With a small C multipliers are small: a sum as large as they allow should move a bias by about 1. */
    qp->rho = PENALTY * mean + (most > 0 ? problem->q / most : 0);
    qp->most_rho = 1e3 * qp->rho;
    qp->batch_limit = gram || x                                  ? 1
                      : gmo_rows_limit(&qp->scores.rows) < BATCH ? gmo_rows_limit(&qp->scores.rows)
                                                                 : BATCH;
    return GMO_OK;
}

void gmo_qp_free(gmo_qp *qp) {
    gmo_scores_free(&qp->scores);
    free(qp->a);
    free(qp->best_a);
    free(qp->all);
    free(qp->sum);
    free(qp->bias);
    free(qp->shift);
    free(qp->best_bias);
    free(qp->order);
    free(qp->rest);
    free(qp->waited);
    free(qp->batch);
    free(qp->wanted);
    free(qp->moves);
    free(qp->s);
    free(qp->t);
    free(qp->fresh);
    free(qp->change);
    free(qp->label);
    free(qp->by);
    free(qp->room);
    *qp = (gmo_qp){0};
}

/* splitmix64 (Steele, Lea & Flood 2014), reduced by multiplication. */
int64_t gmo_random_below(uint64_t *state, int64_t n) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)(((z ^ (z >> 31)) >> 33) * (uint64_t)n >> 31);
}

static void shuffle(gmo_qp *qp) {
    for (int64_t i = qp->n_order - 1; i > 0; i--) {
        int64_t j = gmo_random_below(&qp->random, i + 1), moved = qp->order[i];
        qp->order[i] = qp->order[j];
        qp->order[j] = moved;
    }
}

void gmo_qp_read(const gmo_qp *qp, int64_t sample, double *s) {
    const gmo_qp_problem *problem = &qp->problem;
    gmo_scores_read(&qp->scores, sample, s);
    if (!problem->share)
        return;
    double half = 0.5 * (problem->with_origin[sample] - problem->origin);
    for (int32_t k = 0; k < problem->q; k++)
        s[k] -= qp->shift[k] + half * qp->sum[k];
}

/* w_k = 1/2 sum_i a_ik (phi(x_i) - o), and o is a sum of phi(x_i) itself. */
void gmo_qp_solution(const gmo_qp *qp, double *a, double *bias) {
    const gmo_qp_problem *problem = &qp->problem;
    int64_t q = problem->q;
    for (int64_t i = 0; i < problem->n * q; i++)
        a[i] = qp->best_scale * qp->best_a[i];
    for (int64_t k = 0; k < q; k++) {
        double sum = 0, shift = 0;
        for (int64_t i = 0; problem->share && i < problem->n; i++) {
            sum += a[i * q + k];
            shift += 0.5 * a[i * q + k] * problem->with_origin[i];
        }
        bias[k] = qp->best_scale * qp->best_bias[k] - shift + 0.5 * sum * problem->origin;
        for (int64_t i = 0; problem->share && !qp->best_balanced && i < problem->n; i++)
            a[i * q + k] -= sum * problem->share[i];
    }
}

/* The best a of one sample, the others held, in fresh; returns what it gains, less what multipliers at their bounds make of
 * it: the rest is free of cancellation, and can be trusted down to the last step. */
static double propose(gmo_qp *qp, int64_t sample) {
    const gmo_qp_problem *problem = &qp->problem;
    const uint8_t *relevant = problem->relevant + sample * problem->q;
    const double *a = qp->a + sample * problem->q;
    double kappa = 0.5 * (step_size(problem, sample) + qp->rho), gain = 0;
    memcpy(qp->fresh, a, (size_t)problem->q * sizeof *a);
    if (!(kappa > 0)) /* no positive semi-definite kernel */
        return 0;
    gmo_qp_read(qp, sample, qp->s);
    for (int32_t k = 0; k < problem->q; k++)
        qp->t[k] = qp->s[k] + qp->bias[k] + 0.5 * qp->rho * qp->sum[k] - kappa * a[k] - relevant[k];
    for (int32_t g = 0; g < problem->n_groups; g++) {
        gmo_pairs pairs = {relevant, problem->cost[sample], qp->room, problem->group_start[g],
                           problem->group_start[g + 1]};
        gmo_pairs_solve(&pairs, qp->t, kappa, qp->fresh);
    }
    for (int32_t k = 0; k < problem->q; k++)
        gain += 0.5 * kappa * (qp->fresh[k] - a[k]) * (qp->fresh[k] - a[k]);
    return gain;
}

static void accept(gmo_qp *qp, int64_t sample) {
    double *a = qp->a + sample * qp->problem.q;
    double with = qp->problem.share ? 0.5 * qp->problem.with_origin[sample] : 0;
    int32_t count = 0;
    for (int32_t k = 0; k < qp->problem.q; k++) {
        double change = qp->fresh[k] - a[k];
        if (change == 0)
            continue;
        a[k] = qp->fresh[k];
        qp->sum[k] += change;
        qp->shift[k] += with * change;
        qp->label[count] = k;
        qp->change[count++] = change;
    }
    if (count)
        gmo_scores_add(&qp->scores, sample, qp->label, qp->change, count);
}

static bool is_changed(const gmo_qp *qp, int64_t sample) {
    return memcmp(qp->fresh, qp->a + sample * qp->problem.q, (size_t)qp->problem.q * sizeof(double)) != 0;
}

static void visit(gmo_qp *qp, int64_t sample) {
    double gain = propose(qp, sample);
    if (!is_changed(qp, sample)) {
        qp->rest[sample] = (uint8_t)(2 * qp->rest[sample] + 1 < MOST_REST ? 2 * qp->rest[sample] + 1 : MOST_REST);
        return;
    }
    qp->rest[sample] = 0;
    if (gain < qp->threshold)
        return;
    qp->gains += gain;
    accept(qp, sample);
}

/* The next samples of the epoch. If their rows must be asked for, those alone that would move. */
static void next_batch(gmo_qp *qp, int64_t *budget) {
    qp->n_batch = 0;
    while (qp->n_batch < qp->batch_limit && qp->position < qp->n_order && *budget > 0) {
        int64_t sample = qp->order[qp->position++];
        if (qp->waited[sample] < qp->rest[sample]) {
            qp->waited[sample]++;
            continue;
        }
        qp->waited[sample] = 0;
        --*budget;
        if (qp->batch_limit > 1 || !(qp->scores.x || qp->scores.rows.gram)) {
            double gain = propose(qp, sample);
            if (!is_changed(qp, sample) || gain < qp->threshold)
                continue;
        }
        qp->batch[qp->n_batch++] = sample;
    }
}

/* Notes which rows of the batch are missing; those that are there count as used. */
static bool is_ready(gmo_qp *qp) {
    qp->n_wanted = 0;
    for (int64_t i = 0; i < qp->n_batch; i++)
        if (!gmo_scores_ready(&qp->scores, qp->batch[i]))
            qp->wanted[qp->n_wanted++] = qp->batch[i];
    return qp->n_wanted == 0;
}

static void begin_epoch(gmo_qp *qp) {
    shuffle(qp);
    qp->position = 0;
    qp->gains = 0;
    qp->n_batch = 0;
    qp->phase = GMO_QP_EPOCH;
}

static void end_epoch(gmo_qp *qp) {
    double priced = 0;
    for (int32_t k = 0; k < qp->problem.q; k++) {
        qp->bias[k] += 0.5 * qp->rho * qp->sum[k];
        priced += 0.25 * qp->rho * qp->sum[k] * qp->sum[k];
    }
    if (priced > qp->gains)
        qp->rho = fmin(qp->rho * PENALTY_STEP, qp->most_rho);
    else if (priced < PENALTY_SHARE * qp->gains)
        qp->rho = fmax(qp->rho / PENALTY_STEP, qp->least_rho);
    qp->threshold = qp->gains / (double)qp->n_order;
    qp->epoch++;
    if (qp->epoch < qp->next_check && qp->epoch < qp->problem.max_epochs) {
        begin_epoch(qp);
        return;
    }
    /* A certificate costs about two epochs; it is asked for more often near the end. */
    int64_t interval = qp->epoch / (gmo_qp_gap(qp) > FAR_FROM_THE_END * qp->problem.tolerance ? 2 : 8);
    qp->next_check = qp->epoch + (interval < 1 ? 1 : interval > LONGEST_INTERVAL ? LONGEST_INTERVAL : interval);
    qp->phase = GMO_QP_REPAIR;
}

/* True when rows must be put first. */
static bool go_on_with_epoch(gmo_qp *qp, int64_t *budget) {
    while (*budget > 0 || qp->n_batch) {
        if (!qp->n_batch)
            next_batch(qp, budget);
        if (!is_ready(qp))
            return true;
        for (int64_t i = 0; i < qp->n_batch; i++)
            visit(qp, qp->batch[i]);
        qp->n_batch = 0;
        if (qp->position == qp->n_order) {
            end_epoch(qp);
            return false;
        }
    }
    return false;
}

static void choose_moves(gmo_qp *qp) {
    gmo_qp_choose_moves(qp);
    qp->next_move = 0;
    qp->n_batch = 0;
    qp->phase = GMO_QP_APPLY;
}

static bool go_on_applying(gmo_qp *qp) {
    for (; qp->next_move < qp->n_moves; qp->next_move++) {
        const gmo_qp_move *move = qp->moves + qp->next_move;
        qp->batch[0] = move->sample;
        qp->n_batch = 1;
        if (!is_ready(qp))
            return true;
        gmo_scores_add(&qp->scores, move->sample, (int32_t[]){move->up, move->down},
                       (double[]){move->size, -move->size}, 2);
    }
    qp->n_batch = 0;
    qp->phase = GMO_QP_EVALUATE;
    return false;
}

static gmo_status evaluate(gmo_qp *qp) {
    GMO_TRY(gmo_qp_evaluate(qp));
    bool done =
        gmo_qp_gap(qp) <= qp->problem.tolerance || qp->epoch >= qp->problem.max_epochs || !qp->n_order || qp->unbounded;
    if (done)
        qp->phase = GMO_QP_DONE;
    else
        begin_epoch(qp);
    return GMO_OK;
}

gmo_status gmo_qp_run(gmo_qp *qp, int64_t n_visits) {
    int64_t budget = n_visits;
    qp->n_wanted = 0;
    while (budget > 0 && qp->phase != GMO_QP_DONE) {
        bool waits = false;
        if (qp->phase == GMO_QP_EPOCH)
            waits = go_on_with_epoch(qp, &budget);
        else if (qp->phase == GMO_QP_REPAIR)
            choose_moves(qp);
        else if (qp->phase == GMO_QP_APPLY)
            waits = go_on_applying(qp);
        else {
            GMO_TRY(evaluate(qp));
            budget -= qp->n_order;
        }
        if (waits)
            return GMO_OK;
    }
    return GMO_OK;
}
