/* Scores of candidates in float64: what decides. */
#ifndef GMO_SCORE_H
#define GMO_SCORE_H

#include "split.h"

#include <math.h>

/* Sums over outputs are taken in so many lanes, whatever the machine. */
#define SUM_LANES 8

/* Working memory of top-k sums. */
typedef struct {
    double kth[2];  /* the k-th largest scores of the candidate scored last: of both sides together, or of either */
    int32_t *right; /* (stride + GMO_LANES,) laid out as a row of gmo_fixed */
    double *left_score, *right_score; /* (d + GMO_LANES,) */
    double *top;                      /* (top_k,) */
} score_scratch;

GMO_INLINE double sum_of(const double *values, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

/* SUM_LANES outputs at a time. Vectors are passed between functions that are always inlined, so that no calling convention
 * matters. */
#pragma GCC diagnostic ignored "-Wpsabi"
typedef double gmo_double8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef int64_t gmo_long8 __attribute__((vector_size(64), aligned(8), may_alias));

GMO_INLINE gmo_double8 load_doubles(const double *values) { return *(const gmo_double8 *)values; }

GMO_INLINE gmo_double8 doubles_of(gmo_int8 values) { return __builtin_convertvector(values, gmo_double8); }

GMO_INLINE gmo_int8 load_int8(const int32_t *values) { return *(const gmo_int8 *)values; }

/* values where the condition holds, a comparison's result; 0 elsewhere. */
GMO_INLINE gmo_double8 where(gmo_long8 condition, gmo_double8 values) {
    return (gmo_double8)(condition & (gmo_long8)values);
}

/* The order of this sum is fixed, whatever the instruction set. */
GMO_INLINE double sum_lanes(gmo_double8 a) { return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); }

GMO_INLINE double ratio(double numerator, double denominator) { return denominator > 0 ? numerator / denominator : 0; }

GMO_INLINE gmo_double8 ratios(gmo_double8 numerator, gmo_double8 denominator) {
    return where(denominator > 0, numerator / denominator);
}

/* soft(G, alpha)^2 of gradients in units. */
GMO_INLINE gmo_double8 soft_squares(gmo_int8 gradient, const double *unit, double alpha) {
    gmo_double8 g = doubles_of(gradient) * load_doubles(unit);
    gmo_double8 size = (gmo_double8)((gmo_long8)g & INT64_MAX) - alpha;
    size = where(size > 0, size);
    return size * size;
}

/* Scores of both sides summed over all outputs, with a constant Hessian (the row count): one division a side. */
GMO_INLINE double full_constant(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    gmo_double8 l = {0}, r = {0};
    const double *unit = s->fixed->gradient_unit;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES) {
        gmo_int8 g = load_int8(left + j);
        l += soft_squares(g, unit + j, s->reg_alpha);
        r += soft_squares(load_int8(total + j) - g, unit + j, s->reg_alpha);
    }
    int32_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    return ratio(sum_lanes(l), n_left + s->reg_lambda) + ratio(sum_lanes(r), n_right + s->reg_lambda);
}

/* The same with the diagonal of the Hessian [eq. 16]. */
GMO_INLINE double full_diagonal(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    gmo_double8 l = {0}, r = {0};
    const double *unit = s->fixed->gradient_unit, *h_unit = s->fixed->hessian_unit;
    const int32_t *h_left = left + s->fixed->d, *h_total = total + s->fixed->d;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES) {
        gmo_int8 g = load_int8(left + j), h = load_int8(h_left + j);
        gmo_double8 h_units = load_doubles(h_unit + j);
        l += ratios(soft_squares(g, unit + j, s->reg_alpha), doubles_of(h) * h_units + s->reg_lambda);
        r += ratios(soft_squares(load_int8(total + j) - g, unit + j, s->reg_alpha),
                    doubles_of(load_int8(h_total + j) - h) * h_units + s->reg_lambda);
    }
    return sum_lanes(l) + sum_lanes(r);
}

/* Score of every output of one side into score (d + GMO_LANES,). h is a row's Hessian lanes, or NULL: count rows. */
GMO_INLINE void side_scores(const gmo_splitter *s, const int32_t *g, const int32_t *h, int32_t count, double *score) {
    const double *unit = s->fixed->gradient_unit, *h_unit = s->fixed->hessian_unit;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES) {
        gmo_double8 sum = h ? doubles_of(load_int8(h + j)) * load_doubles(h_unit + j) : (gmo_double8){0} + count;
        *(gmo_double8 *)(score + j) =
            ratios(soft_squares(load_int8(g + j), unit + j, s->reg_alpha), sum + s->reg_lambda);
    }
}

/* Sum of the k largest of values (d,), added in descending order; top (k,) is working memory. */
GMO_INLINE double top_sum(const double *values, int32_t d, int32_t k, double *top) {
    int32_t size = 0;
    for (int32_t j = 0; j < d; j++) {
        double value = values[j];
        if (size == k && value <= top[k - 1])
            continue;
        int32_t at = size < k ? size++ : k - 1;
        for (; at > 0 && top[at - 1] < value; at--)
            top[at] = top[at - 1];
        top[at] = value;
    }
    return sum_of(top, size);
}

/* A search for an upper bound of the sum of the k largest of some values: for any t it is at most k t + what exceeds t, and
 * no more where t is the k-th largest. */
typedef struct {
    double t, next;   /* tried last, and to be tried */
    double low, high; /* the k-th largest lies between; 0: not known */
    double bound;     /* but for rounding */
    bool done;
} top_search;

GMO_INLINE top_search top_start(double t) { return (top_search){t, t, 0, 0, INFINITY, false}; }

/* Tries the next t on values (d,), zeros beyond d up to SUM_LANES. */
GMO_INLINE void top_step(top_search *search, const double *values, int32_t d, int32_t k) {
    gmo_double8 lanes = {0}, counts = {0};
    double t = search->t = search->next;
    for (int32_t j = 0; j < d; j += SUM_LANES) {
        gmo_double8 over = load_doubles(values + j) - t; /* 0 - t beyond d */
        lanes += where(over > 0, over);
        counts += where(over > 0, (gmo_double8){0} + 1);
    }
    double bound = k * t + sum_lanes(lanes), n_above = sum_lanes(counts);
    search->bound = bound < search->bound ? bound : search->bound;
    search->done = n_above == k || t == 0;
    if (n_above > k) {
        search->low = t;
        search->next = search->high > 0 ? (t + search->high) / 2 : 1.25 * t;
    } else {
        search->high = t;
        search->next = search->low > 0 ? (search->low + t) / 2 : 0.8 * t;
    }
}

/* Steps before a candidate's top k are selected one by one. */
#define TOP_STEPS 8

/* Scores of the best k outputs: one shared set [eq. 22], or one a side [eq. 21]. 0 if bounds show it to be below limit, by
 * far more than what rounding may do. */
GMO_INLINE double sparse_value(const gmo_splitter *s, const int32_t *left, const int32_t *total, double limit,
                               score_scratch *w) {
    int32_t d = s->fixed->d, k = s->top_k, stride = s->shape->stride, count_lane = s->fixed->count_lane;
    const int32_t *h_left = s->fixed->has_hessian ? left + d : NULL, *h_right = h_left ? w->right + d : NULL;
    double enough = limit * (1 - 1e-12), *a = w->left_score, *b = w->right_score;
    for (int32_t j = 0; j < stride; j++)
        w->right[j] = total[j] - left[j];
    side_scores(s, left, h_left, left[count_lane], a);
    side_scores(s, w->right, h_right, w->right[count_lane], b);
    for (int32_t j = d; j < d + SUM_LANES; j++)
        a[j] = b[j] = 0;
    if (s->restricted) {
        for (int32_t j = 0; j < d; j++)
            a[j] += b[j];
        top_search both = top_start(w->kth[0]);
        for (int32_t step = 0; step < TOP_STEPS && !both.done && both.bound >= enough; step++)
            top_step(&both, a, d, k);
        w->kth[0] = both.t;
        if (both.bound < enough)
            return 0;
        double value = top_sum(a, d, k, w->top);
        w->kth[0] = w->top[k - 1];
        return value;
    }
    top_search l = top_start(w->kth[0]), r = top_start(w->kth[1]);
    for (int32_t step = 0; step < TOP_STEPS && !(l.done && r.done) && l.bound + r.bound >= enough; step++) {
        if (!l.done)
            top_step(&l, a, d, k);
        if (!r.done)
            top_step(&r, b, d, k);
    }
    w->kth[0] = l.t;
    w->kth[1] = r.t;
    if (l.bound + r.bound < enough)
        return 0;
    double value = top_sum(a, d, k, w->top);
    w->kth[0] = w->top[k - 1];
    value += top_sum(b, d, k, w->top);
    w->kth[1] = w->top[k - 1];
    return value;
}

/* Score of the left side + score of the right side; 0 may stand for a value below limit. */
GMO_INLINE double candidate_value(const gmo_splitter *s, const int32_t *left, const int32_t *total, double limit,
                                  score_scratch *w) {
    if (s->top_k)
        return sparse_value(s, left, total, limit, w);
    return s->fixed->has_hessian ? full_diagonal(s, left, total) : full_constant(s, left, total);
}

#endif
