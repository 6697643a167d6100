/* AdaBoost.MH with real-valued decision stumps.
 *
 * Source: Schapire & Singer, "BoosTexter", Machine Learning 39 (2000); "Improved boosting algorithms using
 * confidence-rated predictions", Machine Learning 37 (1999).
 *
 * A weight D(i, l) for every row and label, Y(i, l) = 1 or -1 for a relevant or irrelevant label. With W+ and W- the
 * weights of relevant and irrelevant pairs of a label l on a side j of a stump:
 *   score  c_jl = 1/2 ln((W+ + smoothing) / (W- + smoothing)),
 *   chosen by the least  Z = 2 sum_j sum_l sqrt(W+ W-),
 *   then  D(i, l) <- D(i, l) exp(-Y(i, l) c_jl) / normaliser. */
#include "stump_search.h"

#include <math.h>
#include <string.h>

struct gmo_stump_booster {
    gmo_stump_rows rows;
    double smoothing;
    int32_t n_threads;
    gmo_stump_weights weights;
    gmo_stump_search search;
    gmo_label_sums side, other; /* of the stump just found */
    double *leaf;               /* (2, stride) its scores */
};

/* Scores of a side, and its share of the normaliser, sum of D exp(-Y c). */
static double score_side(const gmo_stump_booster *b, const gmo_label_sums *side, double *leaf) {
    double share = 0;
    for (int64_t l = 0; l < b->rows.n_labels; l++) {
        double plus = (side->sum[l] + side->difference[l]) / 2 / b->weights.grand;
        double minus = (side->sum[l] - side->difference[l]) / 2 / b->weights.grand;
        leaf[l] = (log(plus + b->smoothing) - log(minus + b->smoothing)) / 2;
        share += plus * exp(-leaf[l]) + minus * exp(leaf[l]);
    }
    return share;
}

/* Scores of both sides, the same where nothing could be split; returns the normaliser. */
static double score_stump(gmo_stump_booster *b, const gmo_stump_found *found) {
    const gmo_label_sums *total = &b->weights.total;
    int64_t stride = b->weights.stride;
    if (found->feature < 0) {
        double normalizer = score_side(b, total, b->leaf);
        memcpy(b->leaf + stride, b->leaf, (size_t)stride * sizeof *b->leaf);
        return normalizer;
    }
    for (int64_t l = 0; l < stride; l++) {
        b->other.sum[l] = total->sum[l] - b->side.sum[l];
        b->other.difference[l] = total->difference[l] - b->side.difference[l];
    }
    return score_side(b, &b->side, b->leaf) + score_side(b, &b->other, b->leaf + stride);
}

static void boost_round(gmo_stump_booster *b, const gmo_stumps *out, int64_t t) {
    int64_t q = b->rows.n_labels;
    gmo_stump_found found = {-1, INFINITY, b->side};
    gmo_stump_weights_find(&b->weights, b->n_threads);
    gmo_stump_search_run(&b->search, &found);
    out->feature[t] = (int32_t)found.feature;
    out->threshold[t] = found.threshold;
    out->normalizer[t] = score_stump(b, &found);
    for (int side = 0; side < 2; side++)
        memcpy(out->leaf_scores + (2 * t + side) * q, b->leaf + side * b->weights.stride, (size_t)q * sizeof *b->leaf);
    gmo_stump_weights_update(&b->weights, found.feature, found.threshold, b->leaf);
}

gmo_status gmo_stump_booster_boost(gmo_stump_booster *b, const gmo_stumps *out, int64_t first, int64_t last) {
    if (out->n_labels != b->rows.n_labels || first < 0 || first > last || last > out->n_stumps)
        return GMO_ERR_ARGUMENT;
    for (int64_t t = first; t < last; t++)
        boost_round(b, out, t);
    return GMO_OK;
}

/* Whether n_rows * n_features * labels in whole vectors fits: all other sizes are smaller. */
static bool sizes_fit(const gmo_stump_rows *rows) {
    int64_t entries, work;
    return rows->n_rows <= GMO_MAX_ROWS && rows->n_features <= INT32_MAX &&
           gmo_size_mul(rows->n_rows, rows->n_features, &entries) &&
           gmo_size_mul(entries, (int64_t)rows->n_labels + GMO_LABEL_LANES, &work) && work <= INT64_MAX / 16;
}

static gmo_status booster_init(gmo_stump_booster *b) {
    if (!sizes_fit(&b->rows))
        return GMO_ERR_SIZE;
    GMO_TRY(gmo_stump_weights_init(&b->weights, &b->rows));
    int64_t stride = b->weights.stride;
    b->leaf = gmo_alloc_zero(6 * stride, sizeof *b->leaf);
    if (!b->leaf)
        return GMO_ERR_MEMORY;
    b->side = (gmo_label_sums){b->leaf + 2 * stride, b->leaf + 3 * stride};
    b->other = (gmo_label_sums){b->leaf + 4 * stride, b->leaf + 5 * stride};
    return gmo_stump_search_init(&b->search, &b->weights, b->n_threads);
}

gmo_status gmo_stump_booster_create(const gmo_stump_rows *rows, double smoothing, int32_t n_threads,
                                    gmo_stump_booster **out) {
    *out = NULL;
    if (rows->n_rows < 1 || rows->n_features < 1 || rows->n_labels < 1 || n_threads < 1 || !(smoothing > 0) ||
        !isfinite(smoothing))
        return GMO_ERR_ARGUMENT;
    gmo_stump_booster *b = gmo_alloc_zero(1, sizeof *b);
    if (!b)
        return GMO_ERR_MEMORY;
    b->rows = *rows;
    b->smoothing = smoothing;
    b->n_threads = n_threads;
    gmo_status status = booster_init(b);
    if (status != GMO_OK) {
        gmo_stump_booster_free(b);
        return status;
    }
    *out = b;
    return GMO_OK;
}

void gmo_stump_booster_free(gmo_stump_booster *b) {
    if (!b)
        return;
    gmo_stump_search_free(&b->search);
    gmo_stump_weights_free(&b->weights);
    free(b->leaf);
    free(b);
}
