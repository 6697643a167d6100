/* Estimates of candidates in float32. Their order of summation is free, since no result depends on an estimate: it only
 * decides whether a candidate is worth scoring exactly. Every term is >= 0, so the relative error of a sum is at most that
 * of its terms plus one rounding an addition. */
#ifndef GMO_SCREEN_H
#define GMO_SCREEN_H

#include "split.h"

/* Vectors are passed between functions that are always inlined, so that no calling convention matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef float float8 __attribute__((vector_size(32), aligned(4), may_alias));

/* d outputs of one side: sums in fixed point to float32. */
GMO_INLINE float8 floats(const int32_t *values) { return __builtin_convertvector(*(const gmo_int8 *)values, float8); }

GMO_INLINE float8 difference(const int32_t *a, const int32_t *b) {
    return __builtin_convertvector(*(const gmo_int8 *)a - *(const gmo_int8 *)b, float8);
}

GMO_INLINE float8 load(const float *values) { return *(const float8 *)values; }

GMO_INLINE float sum8(float8 v) { return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])); }

/* Estimates divided by screen.scale. */

GMO_INLINE double screen_constant(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    const gmo_screen *screen = &s->screen;
    float8 l = {0}, r = {0};
    for (int32_t j = 0; j < s->fixed->d; j += GMO_LANES) {
        float8 weight = load(screen->weight + j); /* 0 beyond d */
        float8 a = floats(left + j) * weight, b = difference(total + j, left + j) * weight;
        l += a * a;
        r += b * b;
    }
    int32_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    return sum8(l) / (n_left + s->reg_lambda) + sum8(r) / (n_right + s->reg_lambda);
}

/* a^2 / p + b^2 / q with one division. */
GMO_INLINE float8 two_ratios(float8 a, float8 b, float8 p, float8 q) { return (a * a * q + b * b * p) / (p * q); }

GMO_INLINE float8 diagonal_term(const gmo_splitter *s, const int32_t *left, const int32_t *total, int32_t j,
                                bool is_tail) {
    const gmo_screen *screen = &s->screen;
    int32_t h = s->fixed->d + j;
    float8 a = floats(left + j), b = difference(total + j, left + j);
    float8 slope = load(screen->slope + j), add = load(screen->add + j);
    float8 p = slope * floats(left + h) + add, q = slope * difference(total + h, left + h) + add;
    if (is_tail) { /* the lanes beyond d hold Hessians or counts */
        float8 mask = load(screen->mask + j);
        a *= mask;
        b *= mask;
        p = p * mask + (1 - mask);
        q = q * mask + (1 - mask);
    }
    return two_ratios(a, b, p, q);
}

GMO_INLINE double screen_diagonal(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    float8 sum = {0};
    int32_t j = 0, d = s->fixed->d;
    for (; j + GMO_LANES <= d; j += GMO_LANES)
        sum += diagonal_term(s, left, total, j, false);
    if (j < d)
        sum += diagonal_term(s, left, total, j, true);
    return sum8(sum);
}

/* Score of every output of one side, or of both together, into score (d + GMO_LANES,), for top-k sums. */
GMO_INLINE void screen_scores(const gmo_splitter *s, const int32_t *left, const int32_t *total, bool together,
                              float *left_score, float *right_score) {
    const gmo_screen *screen = &s->screen;
    int32_t d = s->fixed->d, n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    float by_left = (float)(1 / (n_left + s->reg_lambda)), by_right = (float)(1 / (n_right + s->reg_lambda));
    for (int32_t j = 0; j < d; j += GMO_LANES) {
        float8 a = floats(left + j), b = difference(total + j, left + j), l, r;
        if (s->fixed->has_hessian) {
            float8 slope = load(screen->slope + j), add = load(screen->add + j), mask = load(screen->mask + j);
            float8 p = slope * floats(left + d + j) + add, q = slope * difference(total + d + j, left + d + j) + add;
            a *= mask;
            b *= mask;
            p = p * mask + (1 - mask);
            q = q * mask + (1 - mask);
            if (together) {
                *(float8 *)(left_score + j) = two_ratios(a, b, p, q);
                continue;
            }
            l = a * a / p;
            r = b * b / q;
        } else {
            float8 weight = load(screen->weight + j);
            a *= weight;
            b *= weight;
            l = a * a * by_left;
            r = b * b * by_right;
        }
        if (together)
            *(float8 *)(left_score + j) = l + r;
        else {
            *(float8 *)(left_score + j) = l;
            *(float8 *)(right_score + j) = r;
        }
    }
}

/* Sum of the k largest of score (d + GMO_LANES,), 0 beyond d; top (k,) is working memory. Most groups of eight have no
 * value above the k-th largest so far, and are passed over whole. */
GMO_INLINE double screen_top_sum(const float *score, int32_t d, int32_t k, float *top) {
    for (int32_t i = 0; i < k; i++)
        top[i] = 0;
    for (int32_t j = 0; j < d; j += GMO_LANES) {
        gmo_int8 above = load(score + j) > top[k - 1];
        typedef int64_t int4 __attribute__((vector_size(32)));
        int4 any = (int4)above;
        if (!((any[0] | any[1]) | (any[2] | any[3])))
            continue;
        for (int32_t i = j; i < j + GMO_LANES; i++) {
            float value = score[i];
            if (value <= top[k - 1])
                continue;
            int32_t at = k - 1;
            for (; at > 0 && top[at - 1] < value; at--)
                top[at] = top[at - 1];
            top[at] = value;
        }
    }
    double sum = 0;
    for (int32_t i = 0; i < k; i++)
        sum += top[i];
    return sum;
}

#endif
