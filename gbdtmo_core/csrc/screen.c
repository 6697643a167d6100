/* With sums G = a + b of both sides' gradients and denominators p and q that are shares of their sum S (of Hessians, and
 * twice reg_lambda), the scores of an output are together
 *
 *     a^2 / (S p) + b^2 / (S q) = G^2 / S + (a - G p)^2 / (S p q).
 *
 * The first term is the same for all candidates of a node; only the second, what the split gains, is estimated.
 *
 * Errors, with e = 2^-24: every term is >= 0, so that the relative error of a sum is at most that of its terms and one e
 * an addition. p and q are sums of non-negative numbers, good to 3 e. The difference u = a - G p may lose digits: its error
 * is at most e (2 |u| + 7 |G| p). What the second part of that adds up to, over all outputs, is bounded by
 * margin: with A the estimate and B = (8 e)^2 base / (least q) it is
 * (sqrt(A) + sqrt(B))^2 <= (1 + h) A + (1 + 1 / h) B for any h > 0, here 2^-10. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("fp-contract=fast") /* no result depends on it */
#endif
#include "screen.h"

#include <math.h>
#include <string.h>

/* Vectors are passed between functions that are always inlined, so that no calling convention matters. */
#pragma GCC diagnostic ignored "-Wpsabi"

/* Spreads that float32 estimates bear, as powers of two: of the outputs' scales, of their weights, of a denominator's
 * share. */
#define LARGEST_SPREAD 20
#define LARGEST_WEIGHTS 80
#define SMALLEST_SHARE 0x1p-40
/* h above. */
#define MARGIN_STEP 0x1p-10

/* Unsigned, since lanes that count for nothing may hold anything and overflow. */
typedef uint32_t uint16_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef gmo_float16 float16;

GMO_INLINE float16 floats(uint16_lanes values) { return __builtin_convertvector((gmo_int16)values, float16); }

GMO_INLINE uint16_lanes load_ints(const int32_t *values) { return *(const uint16_lanes *)values; }

GMO_INLINE float16 load_floats(const float *values) { return *(const float16 *)values; }

GMO_INLINE float16 all_lanes(float x) { return (float16){0} + x; }

typedef float float4 __attribute__((vector_size(16), aligned(4), may_alias));

GMO_INLINE float sum_of_lanes(const float16 *v) {
    const float *lanes = (const float *)v;
    float4 sum = (*(const float4 *)lanes + *(const float4 *)(lanes + 4)) +
                 (*(const float4 *)(lanes + 8) + *(const float4 *)(lanes + 12));
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* 1 / x for x > 0 within float32's middle range, too small by at most so much: the bits of x, taken from a constant, are
 * those of a number within 5.1 % of 1 / x, and a step of Newton's method squares the error. A division would take as long
 * as all the rest. */
#define ROUGH_RECIPROCAL_ERROR 2.7e-3
#define RECIPROCAL_ERROR 1e-5
GMO_INLINE float16 rough_reciprocal(float16 x) {
    float16 y = (float16)(0x7EF311C3 - (gmo_int16)x);
    return y * (2 - x * y);
}
GMO_INLINE float16 reciprocal(float16 x) {
    float16 y = rough_reciprocal(x);
    return y * (2 - x * y);
}

/* The part of non-negative values that exceeds t. */
GMO_INLINE float16 excess(float16 values, float t) {
    float16 over = values - t;
    gmo_int16 positive = over > 0;
    return (float16)((gmo_int16)over & positive);
}

gmo_bound_sums gmo_screen_kind(const gmo_splitter *s) {
    return s->top_k == 0 ? SUMS_FULL : s->restricted ? SUMS_RESTRICTED : SUMS_UNRESTRICTED;
}

bool gmo_screen_is_sound(const gmo_splitter *s) {
    const gmo_fixed *fixed = s->fixed;
    double largest = 0, smallest = INFINITY;
    for (int32_t j = 0; j < fixed->d; j++) {
        double unit = fixed->gradient_unit[j];
        largest = unit > largest ? unit : largest;
        smallest = unit > 0 && unit < smallest ? unit : smallest;
    }
    /* L1 shrinkage does not follow the identity above, and a side without rows may have no score. */
    return largest > 0 && s->reg_alpha == 0 && s->min_side > 0 && (!fixed->has_hessian || s->reg_lambda > 0) &&
           smallest >= ldexp(largest, -LARGEST_SPREAD);
}

/* Roundings of a sum of terms; a term takes fewer than 40. */
static double sum_inflation(const gmo_splitter *s) {
    double roundings = s->fixed->d / GMO_LANES + 60;
    /* What exceeds a threshold loses digits, in all at most those of d thresholds, where k of them are in the bound. */
    if (s->top_k)
        roundings *= 2 + (double)s->fixed->d / s->top_k;
    return 1 + roundings * 0x1p-23;
}

/* What an estimated gain is multiplied by, so that it and margin bound the gain. */
static double gain_inflation(const gmo_splitter *s) {
    double terms = s->fixed->has_hessian ? 1 + 1.01 * ROUGH_RECIPROCAL_ERROR : 1;
    return (1 + MARGIN_STEP) * terms * sum_inflation(s);
}

/* S of an output. */
static double denominator_sum(const gmo_splitter *s, const int32_t *total, int32_t j) {
    const gmo_fixed *fixed = s->fixed;
    double h = fixed->has_hessian ? total[fixed->d + j] * fixed->hessian_unit[j] : total[fixed->count_lane];
    return h + 2 * s->reg_lambda;
}

/* Factors of the outputs: a term is weight (a - gradient p)^2 / (p q) with integers a, and p = slope h + add with integers
 * h; own = weight gradient^2 is the first term of the identity. base is the sum of all first terms. Values are weighted
 * sums times scale. */
void gmo_screen_prepare(const gmo_splitter *s, gmo_split_node *node) {
    const gmo_fixed *fixed = s->fixed;
    gmo_estimates *e = &node->estimates;
    double inflation = gmo_screen_kind(s) == SUMS_UNRESTRICTED ? 1 : gain_inflation(s), largest_sum = 0,
           smallest = INFINITY;
    e->n_rows = node->total[fixed->count_lane];
    e->base = e->scale = 0;
    for (int32_t j = 0; j < fixed->d; j++) {
        double g = node->total[j] * fixed->gradient_unit[j], sum = denominator_sum(s, node->total, j);
        double weight = fixed->gradient_unit[j] * fixed->gradient_unit[j] / sum;
        e->base += g * g / sum;
        e->scale = weight > e->scale ? weight : e->scale;
        smallest = weight > 0 && weight < smallest ? weight : smallest;
        largest_sum = sum > largest_sum ? sum : largest_sum;
    }
    for (int32_t k = 0; k < e->d; k++) {
        int32_t j = node->outputs[k];
        double sum = denominator_sum(s, node->total, j), unit = fixed->gradient_unit[j];
        double weight = unit * unit / sum / e->scale;
        e->gradient[k] = (float)node->total[j];
        e->weight[k] = (float)(weight * inflation);
        e->own[k] = (float)(weight * node->total[j] * node->total[j]);
        e->slope[k] = fixed->has_hessian ? (float)(fixed->hessian_unit[j] / sum) : 0;
        e->add[k] = fixed->has_hessian ? (float)(s->reg_lambda / sum) : 0;
    }
    for (int32_t k = e->d; k < e->d + GMO_LANES; k++) {
        e->gradient[k] = e->weight[k] = e->own[k] = e->slope[k] = 0;
        e->add[k] = 0.5f;
    }
    double least_side = fixed->has_hessian ? s->reg_lambda : (double)s->min_side + s->reg_lambda;
    double least_share = least_side / largest_sum;
    e->margin = ((1 + 1 / MARGIN_STEP) * 64 * 0x1p-48 / least_share + 1e-12) * e->base;
    e->on = s->estimates && isnormal(e->scale) && isfinite(e->base) && least_share >= SMALLEST_SHARE &&
            smallest >= ldexp(e->scale, -LARGEST_WEIGHTS);
}

/* Outputs that are summed in registers at a time, in vectors. */
#define CHUNK_VECTORS 2

/* Sums of the left side for a chunk of outputs. */
typedef struct {
    uint16_lanes g[CHUNK_VECTORS], h[CHUNK_VECTORS];
} chunk_sums;

/* What is needed of the outputs of a chunk, held in registers: stores to sums might else be taken to change it. */
typedef struct {
    uint16_lanes g, h; /* of all rows */
    float16 weight, gradient, own, slope, add;
} output_factors;

GMO_INLINE output_factors load_factors(const gmo_estimates *e, int32_t j, bool has_hessian) {
    output_factors f = {load_ints(e->total + j),    {0},
                        load_floats(e->weight + j), load_floats(e->gradient + j),
                        load_floats(e->own + j),    load_floats(e->slope + j),
                        load_floats(e->add + j)};
    if (has_hessian)
        f.h = load_ints(e->total + e->hessian + j);
    return f;
}

/* Adds a row or cell; at: its first output, n_vectors: constants where this is inlined. */
GMO_INLINE void add_to_chunk(chunk_sums *sums, const int32_t *at, int32_t hessian, int32_t n_vectors,
                             bool has_hessian) {
    for (int32_t i = 0; i < n_vectors; i++) {
        sums->g[i] += load_ints(at + i * GMO_LANES);
        if (has_hessian)
            sums->h[i] += load_ints(at + hessian + i * GMO_LANES);
    }
}

/* Adds the terms of sixteen outputs of one candidate to its sums; g and h: what its left side sums to. */
GMO_INLINE void estimate(const output_factors *f, const candidate *at, uint16_lanes g, uint16_lanes h, bool has_hessian,
                         gmo_bound_sums kind, float16 sums[GMO_MAX_SUMS]) {
    float16 a = floats(g), p = a, q = a;
    if (has_hessian) {
        p = f->slope * floats(h) + f->add;
        q = f->slope * floats(f->h - h) + f->add;
    }
    if (kind == SUMS_UNRESTRICTED) {
        float16 b = floats(f->g - g), l = f->weight * (a * a), r = f->weight * (b * b);
        l *= has_hessian ? reciprocal(p) : all_lanes(at->by_left);
        r *= has_hessian ? reciprocal(q) : all_lanes(at->by_right);
        sums[0] += l;
        sums[1] += r;
        sums[2] += excess(l, at->threshold[0]);
        sums[3] += excess(r, at->threshold[1]);
        return;
    }
    float16 u = a - f->gradient * (has_hessian ? p : all_lanes(at->share));
    float16 gain = u * u * (has_hessian ? rough_reciprocal(p * q) : all_lanes(at->by_both));
    sums[0] += f->weight * gain;
    if (kind == SUMS_RESTRICTED)
        sums[1] += excess(f->weight * gain + f->own, at->threshold[0]);
}

/* All candidates for the outputs from first on, n_vectors of sixteen. */
GMO_INLINE void screen_chunk(const gmo_estimates *e, const feature_scan *scan, int32_t first, int32_t n_vectors,
                             bool has_hessian, gmo_bound_sums kind) {
    chunk_sums sums;
    output_factors factors[CHUNK_VECTORS];
    for (int32_t i = 0; i < n_vectors; i++) {
        sums.g[i] = sums.h[i] = (uint16_lanes){0};
        factors[i] = load_factors(e, first + i * GMO_LANES, has_hessian);
    }
    int32_t hessian = e->hessian, n_candidates = scan->n_candidates;
    const int32_t *cell = scan->bins.cells ? scan->bins.cells + first : NULL, *rows = e->rows + first;
    const int32_t *missing = scan->estimated_missing + first, *start = scan->bins.start;
    const int32_t *row = scan->bins.order, *end;
    int64_t stride = e->stride;
    for (int32_t c = 0, next = 0; c < n_candidates; c++) {
        const candidate *at = &scan->candidates[c];
        if (cell)
            for (; next <= at->bin; next++, cell += stride)
                add_to_chunk(&sums, cell, hessian, n_vectors, has_hessian);
        else
            for (end = scan->bins.order + start[at->bin + 1]; row < end; row++)
                add_to_chunk(&sums, rows + *row * stride, hessian, n_vectors, has_hessian);
        chunk_sums left = sums;
        if (at->missing_left)
            add_to_chunk(&left, missing, hessian, n_vectors, has_hessian);
        float16 outputs[GMO_MAX_SUMS] = {{0}, {0}, {0}, {0}};
        for (int32_t i = 0; i < n_vectors; i++)
            estimate(&factors[i], at, left.g[i], left.h[i], has_hessian, kind, outputs);
        for (int32_t i = 0; i < (int32_t)kind; i++)
            scan->sums[c * (int32_t)kind + i] += outputs[i];
    }
}

/* Sums of a group of features over outputs first .. last, a chunk of them at a time, so that the chunk of all rows stays
 * in cache. */
GMO_INLINE void screen_group(const gmo_estimates *e, feature_scan *const *scans, int32_t n_scans, int32_t first,
                             int32_t last, bool has_hessian, gmo_bound_sums kind) {
    for (; first < last; first += CHUNK_VECTORS * GMO_LANES)
        for (int32_t i = 0; i < n_scans; i++)
            if (last - first <= GMO_LANES)
                screen_chunk(e, scans[i], first, 1, has_hessian, kind);
            else
                screen_chunk(e, scans[i], first, CHUNK_VECTORS, has_hessian, kind);
}

/* The kinds of estimates, each compiled on its own. */
GMO_INLINE void screen_any(const gmo_estimates *e, feature_scan *const *scans, int32_t n, int32_t first, int32_t last,
                           bool has_hessian, gmo_bound_sums kind) {
    if (!has_hessian)
        if (kind == SUMS_FULL)
            screen_group(e, scans, n, first, last, false, SUMS_FULL);
        else if (kind == SUMS_RESTRICTED)
            screen_group(e, scans, n, first, last, false, SUMS_RESTRICTED);
        else
            screen_group(e, scans, n, first, last, false, SUMS_UNRESTRICTED);
    else if (kind == SUMS_FULL)
        screen_group(e, scans, n, first, last, true, SUMS_FULL);
    else if (kind == SUMS_RESTRICTED)
        screen_group(e, scans, n, first, last, true, SUMS_RESTRICTED);
    else
        screen_group(e, scans, n, first, last, true, SUMS_UNRESTRICTED);
}

static inline double smaller(double a, double b) { return a < b ? a : b; }

/* Upper bound of a candidate's value from the outputs that are estimated. */
GMO_INLINE double upper_bound(const gmo_estimates *e, const float16 *sums, gmo_bound_sums kind, int32_t k,
                              double inflation, const candidate *at) {
    double first = sum_of_lanes(&sums[0]);
    if (kind == SUMS_FULL)
        return e->base + e->margin + e->scale * first;
    double second = sum_of_lanes(&sums[1]);
    if (kind == SUMS_RESTRICTED)
        return e->margin +
               smaller(e->base + e->scale * first, e->scale * inflation * (k * (double)at->threshold[0] + second));
    double left = k * (double)at->threshold[0] + sum_of_lanes(&sums[2]);
    double right = k * (double)at->threshold[1] + sum_of_lanes(&sums[3]);
    return e->scale * inflation * (smaller(left, first) + smaller(right, second));
}

/* Bounds of a scan's candidates, with what other outputs may gain by the rows on the left; returns the largest. */
GMO_INLINE double bound_scan(const gmo_splitter *s, const gmo_estimates *e, feature_scan *scan, const double *others) {
    gmo_bound_sums kind = gmo_screen_kind(s);
    double inflation = sum_inflation(s) * (kind == SUMS_UNRESTRICTED ? 1 + RECIPROCAL_ERROR : 1), largest = 0;
    for (int32_t c = 0; c < scan->n_candidates; c++) {
        const candidate *at = &scan->candidates[c];
        double bound = upper_bound(e, scan->sums + c * (int32_t)kind, kind, s->top_k, inflation, at);
        bound += others ? others[at->n_left] : 0;
        scan->bounds[c] = bound;
        largest = bound > largest ? bound : largest;
    }
    return largest;
}

/* Thresholds of a scan's candidates. Scores of a side grow about as its rows do. */
static void set_thresholds(const gmo_splitter *s, const gmo_estimates *e, const double kth[2], feature_scan *scan) {
    int32_t n = e->n_rows;
    for (int32_t c = 0; c < scan->n_candidates; c++) {
        candidate *at = &scan->candidates[c];
        bool is_shared = s->restricted;
        at->threshold[0] = (float)(kth[0] * (is_shared ? 1 : at->n_left) / e->scale);
        at->threshold[1] = (float)(kth[1] * (is_shared ? 1 : n - at->n_left) / e->scale);
    }
}

GMO_CLONES
void gmo_screen_bound(const gmo_splitter *s, const gmo_estimates *e, feature_scan *scans, int32_t n,
                      const double kth[2], double least) {
    gmo_bound_sums kind = gmo_screen_kind(s);
    feature_scan *open[GMO_GROUP_FEATURES];
    int32_t n_open = n, first = 0;
    for (int32_t i = 0; i < n; i++) {
        open[i] = &scans[i];
        if (kind != SUMS_FULL)
            set_thresholds(s, e, kth, &scans[i]);
        memset(scans[i].sums, 0, (size_t)scans[i].n_candidates * kind * sizeof *scans[i].sums);
    }
    if (e->later) {
        first = GMO_FIRST_OUTPUTS;
        screen_any(e, open, n, 0, first, s->fixed->has_hessian, kind);
        n_open = 0;
        for (int32_t i = 0; i < n; i++)
            if (bound_scan(s, e, &scans[i], e->later) >= least)
                open[n_open++] = &scans[i];
    }
    screen_any(e, open, n_open, first, e->d, s->fixed->has_hessian, kind);
    for (int32_t i = 0; i < n_open; i++)
        bound_scan(s, e, open[i], e->rest);
}
