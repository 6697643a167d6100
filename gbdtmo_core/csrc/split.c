#include "split.h"

#include <omp.h>
#include <string.h>

/* Sums on both sides of a candidate. Integer arrays are laid out as a row of gmo_fixed. */
typedef struct {
    int32_t *left, *right, *missing, *with_missing, *total; /* (stride + GMO_LANES,) */
    double *left_score, *right_score;                       /* (d + GMO_LANES,) if top_k */
    double *top;                                            /* (top_k,) */
} scan_scratch;

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed) {
    int32_t k = params->top_k > 0 && params->top_k < fixed->d ? params->top_k : 0;
    int64_t ints = (shape->stride + GMO_LANES) * 5, doubles = k ? k + 2 * (fixed->d + GMO_LANES) : 0;
    int64_t bytes = ints * 4 + doubles * 8;
    *splitter = (gmo_splitter){
        .shape = shape,
        .fixed = fixed,
        .reg_lambda = params->reg_lambda,
        .reg_alpha = params->reg_alpha,
        .top_k = k,
        .restricted = params->restricted,
        .min_side = params->growth == GMO_GROWTH_RELEASED ? 0 : params->min_samples_leaf,
        .n_threads = params->n_threads,
        .scratch_bytes = (bytes + 63) / 64 * 64,
    };
    int64_t size;
    if (!gmo_size_mul(splitter->scratch_bytes, params->n_threads, &size))
        return GMO_ERR_SIZE;
    splitter->scratch = gmo_alloc_zero(size, 1);
    return splitter->scratch ? GMO_OK : GMO_ERR_MEMORY;
}

void gmo_splitter_free(gmo_splitter *splitter) {
    free(splitter->scratch);
    splitter->scratch = NULL;
}

static scan_scratch scratch_of(const gmo_splitter *s, int32_t thread) {
    char *at = s->scratch + thread * s->scratch_bytes;
    int64_t n = s->shape->stride + GMO_LANES;
    int32_t *ints = (int32_t *)at;
    int64_t d = s->fixed->d + GMO_LANES;
    double *scores = (double *)(at + 5 * n * (int64_t)sizeof *ints);
    return (scan_scratch){ints, ints + n, ints + 2 * n, ints + 3 * n, ints + 4 * n, scores, scores + d, scores + 2 * d};
}

static double sum_of(const double *values, int32_t n) {
    double sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

/* The order of this sum is fixed, whatever the instruction set. */
GMO_INLINE double sum_lanes(const double a[GMO_LANES]) {
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
    double l[GMO_LANES] = {0}, r[GMO_LANES] = {0};
    const double *unit = s->fixed->gradient_unit;
    for (int32_t j = 0; j < s->fixed->d; j += GMO_LANES)
        for (int32_t i = 0; i < GMO_LANES; i++) {
            l[i] += soft_square(left[j + i] * unit[j + i], s->reg_alpha);
            r[i] += soft_square((total[j + i] - left[j + i]) * unit[j + i], s->reg_alpha);
        }
    int32_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    return ratio(sum_lanes(l), n_left + s->reg_lambda) + ratio(sum_lanes(r), n_right + s->reg_lambda);
}

/* The same with the diagonal of the Hessian [eq. 16]. */
GMO_INLINE double full_diagonal(const gmo_splitter *s, const int32_t *left, const int32_t *total) {
    double l[GMO_LANES] = {0}, r[GMO_LANES] = {0};
    const double *unit = s->fixed->gradient_unit, *h_unit = s->fixed->hessian_unit;
    const int32_t *h_left = left + s->fixed->d, *h_total = total + s->fixed->d;
    for (int32_t j = 0; j < s->fixed->d; j += GMO_LANES)
        for (int32_t i = 0; i < GMO_LANES; i++) {
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
    for (int32_t j = 0; j < s->fixed->d; j += GMO_LANES)
        for (int32_t i = 0; i < GMO_LANES; i++)
            score[j + i] = ratio(soft_square(g[j + i] * unit[j + i], s->reg_alpha),
                                 (h ? h[j + i] * h_unit[j + i] : count) + s->reg_lambda);
}

void gmo_split_scores(const gmo_splitter *s, const int32_t *row, double *score) {
    side_scores(s, row, s->fixed->has_hessian ? row + s->fixed->d : NULL, row[s->fixed->count_lane], score);
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

/* Scores of the best k outputs: one shared set [eq. 22], or one a side [eq. 21]. */
GMO_INLINE double sparse_value(const gmo_splitter *s, const int32_t *left, const int32_t *total, scan_scratch *w) {
    int32_t d = s->fixed->d, stride = s->shape->stride, count_lane = s->fixed->count_lane;
    const int32_t *h_left = s->fixed->has_hessian ? left + d : NULL, *h_right = h_left ? w->right + d : NULL;
    for (int32_t j = 0; j < stride; j++)
        w->right[j] = total[j] - left[j];
    side_scores(s, left, h_left, left[count_lane], w->left_score);
    side_scores(s, w->right, h_right, w->right[count_lane], w->right_score);
    if (!s->restricted)
        return top_sum(w->left_score, d, s->top_k, w->top) + top_sum(w->right_score, d, s->top_k, w->top);
    for (int32_t j = 0; j < d; j++)
        w->left_score[j] += w->right_score[j];
    return top_sum(w->left_score, d, s->top_k, w->top);
}

GMO_INLINE double candidate_value(const gmo_splitter *s, const int32_t *left, const int32_t *total, scan_scratch *w) {
    if (s->top_k)
        return sparse_value(s, left, total, w);
    return s->fixed->has_hessian ? full_diagonal(s, left, total) : full_constant(s, left, total);
}

GMO_INLINE void try_candidate(const gmo_splitter *s, int64_t feature, int32_t bin, bool missing_left,
                              const int32_t *left, const int32_t *total, scan_scratch *w, gmo_split *best) {
    int64_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    if (n_left < s->min_side || n_right < s->min_side)
        return;
    double value = candidate_value(s, left, total, w);
    if (value > best->value)
        *best = (gmo_split){value, 0, feature, n_left, bin, missing_left};
}

/* All candidates of one feature, bins in order; missing values right, then left, if the node has any. */
GMO_INLINE void scan_feature(const gmo_splitter *s, const int32_t *hist, int64_t feature, scan_scratch *w,
                             gmo_split *best) {
    const gmo_hist_shape *shape = s->shape;
    int32_t stride = shape->stride, n_bins = shape->n_bins[feature], count_lane = s->fixed->count_lane;
    const int32_t *cells = hist + shape->cell_start[feature] * stride;
    bool missing = shape->has_missing[feature] && cells[n_bins * (int64_t)stride + count_lane] > 0;
    if (missing)
        memcpy(w->missing, cells + n_bins * (int64_t)stride, (size_t)stride * sizeof *cells);
    memset(w->left, 0, (size_t)stride * sizeof *w->left);
    for (int32_t bin = 0; bin < n_bins - 1 + missing; bin++) {
        const int32_t *cell = cells + bin * (int64_t)stride;
        for (int32_t j = 0; j < stride; j++)
            w->left[j] += cell[j];
        try_candidate(s, feature, bin, false, w->left, w->total, w, best);
        if (!missing || bin == n_bins - 1)
            continue;
        for (int32_t j = 0; j < stride; j++)
            w->with_missing[j] = w->left[j] + w->missing[j];
        try_candidate(s, feature, bin, true, w->with_missing, w->total, w, best);
    }
}

GMO_CLONES
static gmo_split scan_features(const gmo_splitter *s, const int32_t *hist, int64_t first, int64_t last,
                               scan_scratch w) {
    gmo_split best = {.feature = -1};
    for (int64_t feature = first; feature < last; feature++)
        scan_feature(s, hist, feature, &w, &best);
    return best;
}

/* Sums of all rows of the node: the cells of any one feature. */
static void node_total(const gmo_splitter *s, const int32_t *hist, int32_t *total) {
    int32_t stride = s->shape->stride;
    memset(total, 0, (size_t)stride * sizeof *total);
    for (int64_t cell = 0; cell < s->shape->cell_start[1]; cell++)
        for (int32_t j = 0; j < stride; j++)
            total[j] += hist[cell * stride + j];
}

static void set_gain(const gmo_splitter *s, scan_scratch *w, gmo_split *best) {
    /* With everything on the left, the right side scores 0 (or is no part of any top k). */
    double parent = candidate_value(s, w->total, w->total, w);
    best->gain = 0.5 * (best->value - parent) / (s->top_k ? s->top_k : s->fixed->d);
}

/* A later missing value goes where more rows went, if training showed none at this node. */
static void set_missing_side(const gmo_splitter *s, const int32_t *hist, int64_t n_total, gmo_split *best) {
    const gmo_hist_shape *shape = s->shape;
    int64_t missing_cell = shape->cell_start[best->feature] + shape->n_bins[best->feature];
    bool missing = shape->has_missing[best->feature] && hist[missing_cell * shape->stride + s->fixed->count_lane] > 0;
    if (!missing)
        best->missing_left = 2 * best->n_left >= n_total;
}

gmo_split gmo_split_find(const gmo_splitter *s, const int32_t *hist) {
    gmo_split best = {.feature = -1};
    int64_t m = s->shape->data->n_features;
    int64_t scores = s->shape->cell_start[m] * s->fixed->d;
#pragma omp parallel num_threads(s->n_threads) if (GMO_PARALLEL(s -> n_threads, scores * 8))
    {
        int64_t thread = omp_get_thread_num(), n = omp_get_num_threads();
        scan_scratch w = scratch_of(s, (int32_t)thread);
        node_total(s, hist, w.total);
        gmo_split own = scan_features(s, hist, m * thread / n, m * (thread + 1) / n, w);
#pragma omp critical(gmo_split_merge)
        if (own.value > best.value || (own.value == best.value && own.feature >= 0 && own.feature < best.feature))
            best = own;
    }
    if (best.feature >= 0) {
        scan_scratch w = scratch_of(s, 0);
        set_gain(s, &w, &best);
        set_missing_side(s, hist, w.total[s->fixed->count_lane], &best);
    }
    return best;
}
