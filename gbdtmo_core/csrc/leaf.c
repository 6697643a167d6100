#include "leaf.h"

#include <math.h>
#include <string.h>

/* Rows ahead whose memory is asked for. */
#define AHEAD 8

/* A tree's derivatives and scores. */
typedef struct {
    const gmo_grower *grower;
    const gmo_derivatives *gradient, *hessian; /* hessian: NULL if constant */
    double *scores;
} tree_rows;

/* Working memory of one thread. */
typedef struct {
    double *g, *h, *score, *row; /* (d + GMO_LANES,) */
    int32_t *fixed;              /* (stride + GMO_LANES,) */
} leaf_scratch;

static int64_t scratch_bytes(const gmo_fixed *fixed) {
    return (4 * 8 * (int64_t)(fixed->d + GMO_LANES) + 4 * (int64_t)(fixed->stride + GMO_LANES) + 63) / 64 * 64;
}

static leaf_scratch scratch_of(const gmo_fixed *fixed, char *at) {
    double *doubles = (double *)at;
    int64_t n = fixed->d + GMO_LANES;
    return (leaf_scratch){doubles, doubles + n, doubles + 2 * n, doubles + 3 * n, (int32_t *)(doubles + 4 * n)};
}

/* Sets the values of the outputs that are not among the k of largest score to zero [eq. 18]; ties keep the lowest output.
 * score is used up. */
static void keep_top(double *value, double *score, int32_t d, int32_t k) {
    for (int32_t kept = 0; kept < k; kept++) {
        int32_t best = 0;
        for (int32_t j = 1; j < d; j++)
            if (score[j] > score[best])
                best = j;
        score[best] = -1 - score[best]; /* negative: kept */
    }
    for (int32_t j = 0; j < d; j++)
        if (score[j] >= 0)
            value[j] = 0;
}

GMO_INLINE void prefetch_values(const double *values, int64_t n) {
    for (int64_t j = 0; j < n; j += 8)
        __builtin_prefetch(values + j);
}

/* Sums of the derivatives of a leaf's rows, in the order of the rows. */
GMO_CLONES
static void sum_rows(const tree_rows *t, const int32_t *rows, int64_t n_rows, leaf_scratch w) {
    int32_t d = t->grower->fixed.d;
    int64_t width = t->gradient->width;
    const double *other = t->gradient->less ? t->gradient->less : t->gradient->values; /* than the scores */
    double *g = w.g, *h = w.h;
    memset(g, 0, (size_t)d * sizeof *g);
    memset(h, 0, (size_t)d * sizeof *h);
    for (int64_t i = 0; i < n_rows; i++) {
        if (i + AHEAD < n_rows) {
            prefetch_values(other + rows[i + AHEAD] * width, d);
            prefetch_values(t->scores + rows[i + AHEAD] * width, d);
        }
        const double *gradient = gmo_derivatives_row(t->gradient, rows[i], d, w.row);
        for (int32_t j = 0; j < d; j++)
            g[j] += gradient[j];
        if (!t->hessian)
            continue;
        const double *hessian = gmo_derivatives_row(t->hessian, rows[i], d, w.row);
        for (int32_t j = 0; j < d; j++)
            h[j] += hessian[j];
    }
}

/* Adds a leaf's values to the scores of its rows; false if one of them is then no number. */
GMO_CLONES
static bool add_values(const tree_rows *t, const int32_t *rows, int64_t n_rows, const double *value) {
    int32_t d = t->grower->fixed.d, bad = 0;
    int64_t width = t->gradient->width;
    for (int64_t i = 0; i < n_rows; i++) {
        double *scores = t->scores + rows[i] * width;
        if (i + AHEAD < n_rows)
            prefetch_values(t->scores + rows[i + AHEAD] * width, d);
        for (int32_t j = 0; j < d; j++) {
            scores[j] += value[j];
            bad |= !isfinite(scores[j]);
        }
    }
    return !bad;
}

/* The vector of a leaf [eq. 15] from float64 sums over its rows. */
static void leaf_value(const tree_rows *t, const int32_t *rows, int64_t n_rows, double *value, leaf_scratch w) {
    const gmo_params *p = t->grower->params;
    const gmo_fixed *fixed = &t->grower->fixed;
    if (t->grower->exact.d > 0) {
        gmo_exact_leaf(&t->grower->exact, rows, n_rows, value);
        return;
    }
    sum_rows(t, rows, n_rows, w);
    for (int32_t j = 0; j < fixed->d; j++) {
        double curvature = (t->hessian ? w.h[j] : (double)n_rows) + p->reg_lambda;
        value[j] = curvature > 0 ? -p->learning_rate * (gmo_soft(w.g[j], p->reg_alpha) / curvature) : 0;
    }
    if (p->top_k > 0 && p->top_k < fixed->d) {
        /* From the fixed-point sums: equal scores stay equal in any order of the rows, which float64 sums would not
         * promise. */
        gmo_fixed_total(fixed, rows, n_rows, w.fixed);
        gmo_split_scores(&t->grower->splitter, w.fixed, w.score);
        keep_top(value, w.score, fixed->d, p->top_k);
    }
}

gmo_status gmo_leaf_finish(const gmo_grower *g, const gmo_derivatives *gradient, const gmo_derivatives *hessian,
                           double *values, double *scores, int64_t *n_assigned) {
    tree_rows t = {g, gradient, hessian, scores};
    int32_t d = g->fixed.d, n_threads = g->params->n_threads;
    int64_t bytes = scratch_bytes(&g->fixed), assigned = 0;
    char *scratch = gmo_alloc_zero(n_threads * bytes, 1);
    if (!scratch)
        return GMO_ERR_MEMORY;
    bool finite = true;
#pragma omp parallel for schedule(dynamic, 1) reduction(+ : assigned) reduction(&& : finite)                           \
    num_threads(n_threads) if (GMO_PARALLEL(n_threads, g->fixed.n_rows * d * 4))
    for (int64_t l = 0; l < g->n_leaves; l++) {
        const gmo_leaf_rows *leaf = &g->leaves[l];
        const int32_t *rows = g->rows + leaf->begin;
        double *value = values + leaf->leaf * (int64_t)d;
        leaf_value(&t, rows, leaf->count, value, scratch_of(&g->fixed, scratch + gmo_thread_number() * bytes));
        finite = add_values(&t, rows, leaf->count, value) && finite;
        assigned += leaf->count;
    }
    free(scratch);
    *n_assigned = assigned;
    return finite ? GMO_OK : GMO_ERR_NUMERIC;
}
