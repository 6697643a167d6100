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

/* The order of this sum is fixed, whatever the instruction set. */
GMO_INLINE double sum_lanes(const double a[SUM_LANES]) {
    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
}

GMO_INLINE double ratio(double numerator, double denominator) { return denominator > 0 ? numerator / denominator : 0; }

/* soft(G, alpha)^2 */
GMO_INLINE double soft_square(double g, double alpha) {
    double size = (g < 0 ? -g : g) - alpha;
    size = size > 0 ? size : 0;
    return size * size;
}

/* Scores of both sides summed over all outputs, with a constant Hessian (the row count): one division a side. */
GMO_INLINE double full_constant(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    double l[SUM_LANES] = {0}, r[SUM_LANES] = {0};
    const double *unit = s->fixed->gradient_unit;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES)
        for (int32_t i = 0; i < SUM_LANES; i++) {
            l[i] += soft_square(left[j + i] * unit[j + i], s->reg_alpha);
            r[i] += soft_square((total[j + i] - left[j + i]) * unit[j + i], s->reg_alpha);
        }
    int32_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    return ratio(sum_lanes(l), n_left + s->reg_lambda) + ratio(sum_lanes(r), n_right + s->reg_lambda);
}

/* The same with the diagonal of the Hessian [eq. 16]. */
GMO_INLINE double full_diagonal(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    double l[SUM_LANES] = {0}, r[SUM_LANES] = {0};
    const double *unit = s->fixed->gradient_unit, *h_unit = s->fixed->hessian_unit;
    const int32_t *h_left = left + s->fixed->d, *h_total = total + s->fixed->d;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES)
        for (int32_t i = 0; i < SUM_LANES; i++) {
            l[i] += ratio(soft_square(left[j + i] * unit[j + i], s->reg_alpha),
                          h_left[j + i] * h_unit[j + i] + s->reg_lambda);
            r[i] += ratio(soft_square((total[j + i] - left[j + i]) * unit[j + i], s->reg_alpha),
                          (h_total[j + i] - h_left[j + i]) * h_unit[j + i] + s->reg_lambda);
        }
    return sum_lanes(l) + sum_lanes(r);
}

/* Score of every output of one side into score (d + GMO_LANES,). h is a row's Hessian lanes, or NULL: count rows. */
GMO_INLINE void side_scores(const gmo_splitter *s, const int32_t *g, const int32_t *h, int32_t count, double *score) {
    const double *unit = s->fixed->gradient_unit, *h_unit = s->fixed->hessian_unit;
    for (int32_t j = 0; j < s->fixed->d; j += SUM_LANES)
        for (int32_t i = 0; i < SUM_LANES; i++)
            score[j + i] = ratio(soft_square(g[j + i] * unit[j + i], s->reg_alpha),
                                 (h ? h[j + i] * h_unit[j + i] : count) + s->reg_lambda);
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

/* Upper bound of the sum of the k largest of values (d,), but for rounding: for any t the sum is at most k t + what exceeds
 * t. *t is brought near the k-th largest, where the bound is the sum itself, by halving an interval, until the bound is
 * below enough. */
GMO_INLINE double top_bound(const double *values, int32_t d, int32_t k, double *t, double enough) {
    double low = 0, high = 0, best = INFINITY; /* high = 0: not known */
    for (int32_t step = 0; step < 8; step++) {
        double lanes[SUM_LANES] = {0}, counts[SUM_LANES] = {0};
        for (int32_t j = 0; j < d; j += SUM_LANES)
            for (int32_t i = 0; i < SUM_LANES; i++) {
                double over = values[j + i] - *t; /* 0 - t beyond d */
                lanes[i] += over > 0 ? over : 0;
                counts[i] += over > 0 ? 1 : 0;
            }
        double bound = k * *t + sum_lanes(lanes), n_above = sum_lanes(counts);
        best = bound < best ? bound : best;
        if (best < enough || n_above == k || *t == 0)
            break;
        if (n_above > k)
            low = *t;
        else
            high = *t;
        *t = high > 0 ? (low + high) / 2 : 2 * *t;
    }
    return best;
}

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
        if (top_bound(a, d, k, &w->kth[0], enough) < enough)
            return 0;
        double value = top_sum(a, d, k, w->top);
        w->kth[0] = w->top[k - 1];
        return value;
    }
    double left_bound = top_bound(a, d, k, &w->kth[0], 0);
    if (left_bound + top_bound(b, d, k, &w->kth[1], enough - left_bound) < enough)
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
