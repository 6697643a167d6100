/* Estimates of candidates in float32: they only decide which candidates are worth scoring in float64, so that no result
 * depends on the order of their sums. Every term is >= 0, so the relative error of a sum is at most that of its terms plus
 * one rounding an addition. */
#ifndef GMO_SCREEN_H
#define GMO_SCREEN_H

#include "split.h"

/* Vectors are passed between functions that are always inlined, so that no calling convention matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Unsigned, since lanes that count for nothing may hold anything and overflow. */
typedef uint32_t uint16_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef float float16 __attribute__((vector_size(64), aligned(4), may_alias));

/* The bins of a feature in a node: cells of its histogram, or its rows in the order of their bins. */
typedef struct {
    const int32_t *cells; /* NULL: rows */
    const int32_t **sorted;
    const int32_t *start; /* rows of bin b: sorted[start[b]] .. sorted[start[b + 1]] */
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
    candidate *candidates;             /* (MAX_CANDIDATES,) */
    int32_t *missing;                  /* (stride + GMO_LANES,) sum of the rows that miss the feature */
    float16 *sums;                     /* (MAX_CANDIDATES,) full split: sums over the outputs so far */
    float *left_scores, *right_scores; /* (MAX_CANDIDATES, d + GMO_LANES) top-k: scores of both sides, added together in
                                        * left_scores for the restricted split */
    int32_t *start;                    /* (MAX_CELLS + 1,) memory of bins.start */
    const int32_t **sorted;            /* (small_rows,) memory of bins.sorted */
} feature_scan;

GMO_INLINE float16 floats(uint16_lanes values) { return __builtin_convertvector((gmo_int16)values, float16); }

GMO_INLINE uint16_lanes load_ints(const int32_t *values) { return *(const uint16_lanes *)values; }

GMO_INLINE float16 load_floats(const float *values) { return *(const float16 *)values; }

GMO_INLINE float sum_of_lanes(float16 v) {
    float sum = 0;
    for (int32_t i = 0; i < GMO_LANES; i++)
        sum += v[i];
    return sum;
}

/* Outputs that are summed in registers at a time, in vectors. */
#define CHUNK_VECTORS 2

/* Sums of the left side for a chunk of outputs. */
typedef struct {
    uint16_lanes g[CHUNK_VECTORS], h[CHUNK_VECTORS];
} chunk_sums;

/* Adds a row or cell; at: its first output, n_vectors: constants where this is inlined. */
GMO_INLINE void add_to_chunk(chunk_sums *sums, const int32_t *at, int32_t d, int32_t n_vectors, bool has_hessian) {
    for (int32_t i = 0; i < n_vectors; i++) {
        sums->g[i] += load_ints(at + i * GMO_LANES);
        if (has_hessian)
            sums->h[i] += load_ints(at + d + i * GMO_LANES);
    }
}

/* Scores of sixteen outputs from j on for one candidate; g and h: sums of its left side. Those of both sides together are
 * returned for a full split, noted for top-k. */
GMO_INLINE float16 estimate(const gmo_splitter *s, const feature_scan *scan, const int32_t *total, int32_t c, int32_t j,
                            uint16_lanes g, uint16_lanes h, bool has_hessian, bool sparse) {
    const gmo_screen *screen = &s->screen;
    const candidate *at = &scan->candidates[c];
    if (at->missing_left) {
        g += load_ints(scan->missing + j);
        if (has_hessian)
            h += load_ints(scan->missing + s->fixed->d + j);
    }
    float16 weight = load_floats(screen->weight + j);
    float16 a = floats(g) * weight, b = floats(load_ints(total + j) - g) * weight, p = weight, q = weight;
    a *= a;
    b *= b;
    if (has_hessian) {
        float16 slope = load_floats(screen->slope + j), add = load_floats(screen->add + j);
        p = slope * floats(h) + add;
        q = slope * floats(load_ints(total + s->fixed->d + j) - h) + add;
    }
    if (!sparse)
        return has_hessian ? (a * q + b * p) / (p * q) : a * at->by_left + b * at->by_right;
    float16 l = has_hessian ? a / p : a * at->by_left, r = has_hessian ? b / q : b * at->by_right;
    int64_t out = c * (int64_t)(s->fixed->d + GMO_LANES) + j;
    if (s->restricted)
        l += r;
    else
        *(float16 *)(scan->right_scores + out) = r;
    *(float16 *)(scan->left_scores + out) = l;
    return l;
}

/* All candidates for the outputs from first on, n_vectors of sixteen. */
GMO_INLINE void screen_chunk(const gmo_splitter *s, const feature_scan *scan, const int32_t *total, int32_t first,
                             int32_t n_vectors, bool has_hessian, bool sparse) {
    chunk_sums sums;
    for (int32_t i = 0; i < n_vectors; i++)
        sums.g[i] = sums.h[i] = (uint16_lanes){0};
    int32_t d = s->fixed->d, stride = s->shape->stride, next = 0;
    const feature_bins *bins = &scan->bins;
    for (int32_t c = 0; c < scan->n_candidates; c++) {
        int32_t bin = scan->candidates[c].bin;
        if (bins->cells)
            for (; next <= bin; next++)
                add_to_chunk(&sums, bins->cells + next * (int64_t)stride + first, d, n_vectors, has_hessian);
        else
            for (; next < bins->start[bin + 1]; next++)
                add_to_chunk(&sums, bins->sorted[next] + first, d, n_vectors, has_hessian);
        float16 sum = {0};
        for (int32_t i = 0; i < n_vectors; i++)
            sum += estimate(s, scan, total, c, first + i * GMO_LANES, sums.g[i], sums.h[i], has_hessian, sparse);
        if (!sparse)
            scan->sums[c] += sum;
    }
}

/* Estimates of a group of features, a chunk of outputs at a time, so that the chunk of all rows stays in cache. sparse:
 * scores for top-k sums. */
GMO_INLINE void screen_group(const gmo_splitter *s, const feature_scan *scans, int32_t n_scans, const int32_t *total,
                             bool has_hessian, bool sparse) {
    int32_t d = s->fixed->d;
    for (int32_t first = 0; first < d; first += CHUNK_VECTORS * GMO_LANES) {
        int32_t n_vectors = (d - first + GMO_LANES - 1) / GMO_LANES;
        for (int32_t i = 0; i < n_scans; i++)
            if (n_vectors == 1)
                screen_chunk(s, &scans[i], total, first, 1, has_hessian, sparse);
            else
                screen_chunk(s, &scans[i], total, first, CHUNK_VECTORS, has_hessian, sparse);
    }
}

/* Whether any of sixteen is larger. */
GMO_INLINE bool any_above(float16 values, float limit) {
    int32_t any = 0;
    for (int32_t i = 0; i < GMO_LANES; i++)
        any |= values[i] > limit;
    return any;
}

/* Sum of the k largest of score (d + GMO_LANES,), 0 beyond d; top (k,) is working memory. Most vectors have no value above
 * the k-th largest so far, and are passed over whole. */
GMO_INLINE double top_estimate(const float *score, int32_t d, int32_t k, float *top) {
    for (int32_t i = 0; i < k; i++)
        top[i] = 0;
    for (int32_t j = 0; j < d; j += GMO_LANES) {
        if (!any_above(load_floats(score + j), top[k - 1]))
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
