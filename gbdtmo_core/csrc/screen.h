/* Estimates of candidates in float32: they only decide which candidates are worth scoring in float64, so that no result
 * depends on the order of their sums. Every term is >= 0, so the relative error of a sum is at most that of its terms plus
 * one rounding an addition. */
#ifndef GMO_SCREEN_H
#define GMO_SCREEN_H

#include "split.h"

#include <string.h>

/* Vectors are passed between functions that are always inlined, so that no calling convention matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Unsigned, since lanes that count for nothing may hold anything and overflow. */
typedef uint32_t uint16_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef float float16 __attribute__((vector_size(64), aligned(4), may_alias));

/* The bins of a feature in a node: cells of its histogram, or its rows in the order of their bins. */
typedef struct {
    const int32_t *cells; /* NULL: rows */
    const int32_t *order; /* places of the rows within the node */
    const int32_t *start; /* rows of bin b: order[start[b]] .. order[start[b + 1]] */
    const int32_t *rows;  /* the node's row numbers */
} feature_bins;

/* A candidate: all bins up to this one go left, and the missing values if missing_left. */
typedef struct {
    int32_t bin, n_left;
    bool missing_left;
    float by_left, by_right; /* constant Hessian: 1 / (n + reg_lambda) of either side */
} candidate;

/* The candidates of one feature of a node, and their estimates. */
typedef struct {
    int64_t feature;
    feature_bins bins;
    int32_t n_candidates, n_missing;
    candidate *candidates;      /* (MAX_CANDIDATES,) */
    int32_t *missing;           /* (stride + GMO_LANES,) sum of the rows that miss the feature */
    int32_t *estimated_missing; /* the same, laid out as gmo_estimated.rows */
    float16 *sums;              /* (MAX_CANDIDATES, number of sums of the kind of split): see bound_sums */
    double *bounds; /* (MAX_CANDIDATES,) upper bounds of the values, but for rounding, divided by screen.scale */
    int32_t *start; /* (MAX_CELLS + 1,) memory of bins.start */
    int32_t *order; /* (small_rows,) memory of bins.order */
} feature_scan;

/* What is summed over the outputs of a candidate, with scores l and r of either side. The sum of the k largest of scores is
 * at most their whole sum, and at most k t + the sum of what exceeds t, for any t; it is the latter where t is the k-th
 * largest. So a threshold t near that of the best candidate so far shows most others to be worse without any selection.
 * Full: l + r. Restricted: l + r, and what exceeds t. Unrestricted: l, r, and what they exceed their own t by. */
typedef enum { SUMS_FULL = 1, SUMS_RESTRICTED = 2, SUMS_UNRESTRICTED = 4 } bound_sums;
#define MAX_SUMS 4

GMO_INLINE float16 floats(uint16_lanes values) { return __builtin_convertvector((gmo_int16)values, float16); }

GMO_INLINE uint16_lanes load_ints(const int32_t *values) { return *(const uint16_lanes *)values; }

GMO_INLINE float16 load_floats(const float *values) { return *(const float16 *)values; }

typedef float float4 __attribute__((vector_size(16), aligned(4), may_alias));

GMO_INLINE float sum_of_lanes(const float16 *v) {
    const float *lanes = (const float *)v;
    float4 sum = (*(const float4 *)lanes + *(const float4 *)(lanes + 4)) +
                 (*(const float4 *)(lanes + 8) + *(const float4 *)(lanes + 12));
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* 1 / x for x > 0 within float32's middle range, at most SCREEN_RECIPROCAL_ERROR too small: the bits of x, taken from a
 * constant, are those of a number within 5.1 % of 1 / x, and a step of Newton's method squares the error. A division would
 * take as long as all the rest. */
#define SCREEN_RECIPROCAL_ERROR 1e-5
GMO_INLINE float16 reciprocal(float16 x) {
    float16 y = (float16)(0x7EF311C3 - (gmo_int16)x);
    y *= 2 - x * y;
    return y * (2 - x * y);
}

/* The part of non-negative values that exceeds t. */
GMO_INLINE float16 excess(float16 values, float t) {
    float16 over = values - t;
    gmo_int16 positive = over > 0;
    return (float16)((gmo_int16)over & positive);
}

/* Outputs that are summed in registers at a time, in vectors. */
#define CHUNK_VECTORS 2

/* Sums of the left side for a chunk of outputs. */
typedef struct {
    uint16_lanes g[CHUNK_VECTORS], h[CHUNK_VECTORS];
} chunk_sums;

/* Adds a row or cell; at: its first output, n_vectors: constants where this is inlined. */
GMO_INLINE void add_to_chunk(chunk_sums *sums, const int32_t *at, int32_t hessian, int32_t n_vectors,
                             bool has_hessian) {
    for (int32_t i = 0; i < n_vectors; i++) {
        sums->g[i] += load_ints(at + i * GMO_LANES);
        if (has_hessian)
            sums->h[i] += load_ints(at + hessian + i * GMO_LANES);
    }
}

/* Adds the scores of sixteen outputs from j on of one candidate to its sums; g and h: what its left side sums to. */
GMO_INLINE void estimate(const gmo_estimated *e, const feature_scan *scan, int32_t c, int32_t j, uint16_lanes g,
                         uint16_lanes h, bool has_hessian, bound_sums kind, const float threshold[2],
                         float16 sums[MAX_SUMS]) {
    const candidate *at = &scan->candidates[c];
    if (at->missing_left) {
        g += load_ints(scan->estimated_missing + j);
        if (has_hessian)
            h += load_ints(scan->estimated_missing + e->hessian + j);
    }
    float16 a = floats(g), b = floats(load_ints(e->total + j) - g), p = a, q = b;
    if (has_hessian) {
        float16 slope = load_floats(e->slope + j), add = load_floats(e->add + j);
        p = slope * floats(h) + add;
        q = slope * floats(load_ints(e->total + e->hessian + j) - h) + add;
    } else {
        float16 weight = load_floats(e->weight + j);
        a *= weight;
        b *= weight;
    }
    a *= a;
    b *= b;
    if (kind == SUMS_UNRESTRICTED) {
        float16 l = a, r = b;
        if (has_hessian) {
            l *= reciprocal(p);
            r *= reciprocal(q);
        } else {
            l *= at->by_left;
            r *= at->by_right;
        }
        sums[0] += l;
        sums[1] += r;
        sums[2] += excess(l, threshold[0]);
        sums[3] += excess(r, threshold[1]);
        return;
    }
    float16 both = has_hessian ? (a * q + b * p) * reciprocal(p * q) : a * at->by_left + b * at->by_right;
    sums[0] += both;
    if (kind == SUMS_RESTRICTED)
        sums[1] += excess(both, threshold[0]);
}

/* All candidates for the outputs from first on, n_vectors of sixteen. */
GMO_INLINE void screen_chunk(const gmo_estimated *e, const feature_scan *scan, int32_t first, int32_t n_vectors,
                             bool has_hessian, bound_sums kind, const float threshold[2]) {
    chunk_sums sums;
    for (int32_t i = 0; i < n_vectors; i++)
        sums.g[i] = sums.h[i] = (uint16_lanes){0};
    int32_t stride = e->stride, next = 0;
    const feature_bins *bins = &scan->bins;
    for (int32_t c = 0; c < scan->n_candidates; c++) {
        int32_t bin = scan->candidates[c].bin;
        if (bins->cells)
            for (; next <= bin; next++)
                add_to_chunk(&sums, bins->cells + next * (int64_t)stride + first, e->hessian, n_vectors, has_hessian);
        else
            for (; next < bins->start[bin + 1]; next++)
                add_to_chunk(&sums, e->rows + bins->order[next] * (int64_t)stride + first, e->hessian, n_vectors,
                             has_hessian);
        float16 outputs[MAX_SUMS] = {{0}, {0}, {0}, {0}};
        for (int32_t i = 0; i < n_vectors; i++)
            estimate(e, scan, c, first + i * GMO_LANES, sums.g[i], sums.h[i], has_hessian, kind, threshold, outputs);
        for (int32_t i = 0; i < (int32_t)kind; i++)
            scan->sums[c * (int32_t)kind + i] += outputs[i];
    }
}

/* Estimates of a group of features, a chunk of outputs at a time, so that the chunk of all rows stays in cache. */
GMO_INLINE void screen_group(const gmo_estimated *e, const feature_scan *scans, int32_t n_scans, bool has_hessian,
                             bound_sums kind, const float threshold[2]) {
    for (int32_t i = 0; i < n_scans; i++)
        memset(scans[i].sums, 0, (size_t)scans[i].n_candidates * kind * sizeof *scans[i].sums);
    for (int32_t first = 0; first < e->d; first += CHUNK_VECTORS * GMO_LANES) {
        int32_t n_vectors = (e->d - first + GMO_LANES - 1) / GMO_LANES;
        for (int32_t i = 0; i < n_scans; i++)
            if (n_vectors == 1)
                screen_chunk(e, &scans[i], first, 1, has_hessian, kind, threshold);
            else
                screen_chunk(e, &scans[i], first, CHUNK_VECTORS, has_hessian, kind, threshold);
    }
}

/* Upper bound of a candidate's value, but for rounding, divided by screen.scale. */
GMO_INLINE double estimated_bound(const float16 *sums, bound_sums kind, int32_t k, const float threshold[2]) {
    double first = sum_of_lanes(&sums[0]);
    if (kind == SUMS_FULL)
        return first;
    double second = sum_of_lanes(&sums[1]);
    if (kind == SUMS_RESTRICTED) {
        double above = (double)k * threshold[0] + second;
        return above < first ? above : first;
    }
    double left = (double)k * threshold[0] + sum_of_lanes(&sums[2]);
    double right = (double)k * threshold[1] + sum_of_lanes(&sums[3]);
    return (left < first ? left : first) + (right < second ? right : second);
}

#endif
