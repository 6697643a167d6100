#include "screen.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A node is searched by its rows if they are at most so many times the mean number of cells of a feature: then the pass
 * over the rows costs less than building, subtracting and scanning a histogram. */
#define SMALL_ROWS_PER_CELL 8
/* Bins and the bin of missing values. */
#define MAX_CELLS 256
/* Spread of the outputs' scales that float32 estimates bear, as powers of two. */
#define LARGEST_SPREAD 20

/* Working memory of a thread. Integer arrays are laid out as a row of gmo_fixed. */
typedef struct {
    int32_t *left, *right, *missing, *with_missing; /* (stride + GMO_LANES,) */
    double *left_score, *right_score;               /* (d + GMO_LANES,) if top_k */
    double *top;                                    /* (top_k,) */
    float *left_estimate, *right_estimate, *top_estimate;
    const int32_t **sorted; /* (small_rows,) rows of gmo_fixed in the order of their bins */
    uint8_t *row_bin;       /* (small_rows,) */
} scan_scratch;

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Lays the arrays out from base on (NULL: only counts); returns the bytes they take. */
static int64_t lay_out(const gmo_splitter *s, char *base, scan_scratch *w) {
    int64_t lanes = gmo_total_size(s->shape) * (int64_t)sizeof(int32_t), d = s->fixed->d + GMO_LANES, at = 0;
    void **arrays[] = {(void **)&w->left,          (void **)&w->right,          (void **)&w->missing,
                       (void **)&w->with_missing,  (void **)&w->left_score,     (void **)&w->right_score,
                       (void **)&w->top,           (void **)&w->left_estimate,  (void **)&w->right_estimate,
                       (void **)&w->top_estimate,  (void **)&w->sorted,         (void **)&w->row_bin};
    int64_t scores = s->top_k ? d : 0;
    const int64_t bytes[] = {lanes,      lanes,        lanes,        lanes,
                             scores * 8, scores * 8,   s->top_k * 8, scores * 4,
                             scores * 4, s->top_k * 4, s->small_rows * (int64_t)sizeof(int32_t *), s->small_rows};
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
        *arrays[i] = base ? base + at : NULL;
        at += aligned(bytes[i]);
    }
    return at;
}

static scan_scratch scratch_of(const gmo_splitter *s) {
    scan_scratch w;
    lay_out(s, s->scratch + gmo_thread_number() * s->scratch_bytes, &w);
    return w;
}

static gmo_status screen_init(gmo_screen *screen, int32_t d) {
    int64_t n = d + GMO_LANES;
    screen->weight = gmo_alloc_zero(n, sizeof(float));
    screen->slope = gmo_alloc_zero(n, sizeof(float));
    screen->add = gmo_alloc_zero(n, sizeof(float));
    screen->mask = gmo_alloc_zero(n, sizeof(float));
    if (!screen->weight || !screen->slope || !screen->add || !screen->mask)
        return GMO_ERR_MEMORY;
    for (int32_t j = 0; j < d; j++)
        screen->mask[j] = 1;
    return GMO_OK;
}

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed) {
    bool complete = params->growth == GMO_GROWTH_COMPLETE;
    int64_t mean_cells = shape->cell_start[shape->data->n_features] / shape->data->n_features;
    *splitter = (gmo_splitter){
        .shape = shape,
        .fixed = fixed,
        .reg_lambda = params->reg_lambda,
        .reg_alpha = params->reg_alpha,
        .top_k = params->top_k > 0 && params->top_k < fixed->d ? params->top_k : 0,
        .restricted = params->restricted,
        .min_side = complete ? params->min_samples_leaf : 0,
        .small_rows = complete ? SMALL_ROWS_PER_CELL * mean_cells : 0,
    };
    GMO_TRY(screen_init(&splitter->screen, fixed->d));
    scan_scratch w;
    splitter->scratch_bytes = lay_out(splitter, NULL, &w);
    int64_t size;
    if (!gmo_size_mul(splitter->scratch_bytes, params->n_threads, &size))
        return GMO_ERR_SIZE;
    splitter->scratch = gmo_alloc_zero(size, 1);
    return splitter->scratch ? GMO_OK : GMO_ERR_MEMORY;
}

void gmo_splitter_free(gmo_splitter *splitter) {
    free(splitter->scratch);
    free(splitter->screen.weight);
    free(splitter->screen.slope);
    free(splitter->screen.add);
    free(splitter->screen.mask);
    memset(splitter, 0, sizeof *splitter);
}

/* Estimates of a constant Hessian: gradients relative to the output of the largest unit. */
static bool scale_constant(gmo_splitter *s, double largest, double smallest) {
    for (int32_t j = 0; j < s->fixed->d; j++)
        s->screen.weight[j] = (float)(s->fixed->gradient_unit[j] / largest);
    s->screen.scale = largest * largest;
    return smallest / largest >= ldexp(1, -2 * LARGEST_SPREAD);
}

/* With a Hessian: score = G^2 / (slope H + add) * scale for the integers G and H. Denominators reach 2^20 at most; with a
 * reg_lambda that keeps them above 2^-40, no product of two of them and of a squared gradient leaves float32's range. */
static bool scale_diagonal(gmo_splitter *s, double largest, double smallest) {
    const gmo_fixed *fixed = s->fixed;
    double top = 0;
    for (int32_t j = 0; j < fixed->d; j++) {
        double weight = fixed->gradient_unit[j] / largest;
        double denominator = weight > 0 ? (fixed->hessian_unit[j] * 0x1p31 + s->reg_lambda) / (weight * weight) : 0;
        top = denominator > top ? denominator : top;
    }
    int exponent;
    frexp(top, &exponent);
    double factor = ldexp(1, 20 - exponent);
    for (int32_t j = 0; j < fixed->d; j++) {
        double weight = fixed->gradient_unit[j] / largest, by = weight > 0 ? factor / (weight * weight) : 0;
        s->screen.slope[j] = (float)(fixed->hessian_unit[j] * by);
        s->screen.add[j] = weight > 0 ? (float)(s->reg_lambda * by) : 1; /* all gradients are 0: any will do */
    }
    s->screen.scale = largest * largest * factor;
    return isfinite(top) && smallest / largest >= ldexp(1, -LARGEST_SPREAD) && s->reg_lambda * factor >= 0x1p-40;
}

void gmo_splitter_start_tree(gmo_splitter *s) {
    const gmo_fixed *fixed = s->fixed;
    double largest = 0, smallest = INFINITY;
    for (int32_t j = 0; j < fixed->d; j++) {
        double unit = fixed->gradient_unit[j];
        largest = unit > largest ? unit : largest;
        smallest = unit > 0 && unit < smallest ? unit : smallest;
    }
    /* L1 shrinkage cancels leading digits, and a side without rows may have no score: then nothing is estimated. */
    s->screen.on = largest > 0 && s->reg_alpha == 0 && s->min_side > 0;
    if (s->screen.on)
        s->screen.on = fixed->has_hessian ? scale_diagonal(s, largest, smallest) : scale_constant(s, largest, smallest);
    /* A term takes fewer than 30 roundings of 2^-24 each; then come d / 8 + 8 or, of the largest, k additions. */
    s->screen.slack = 1 - (fixed->d / GMO_LANES + 40 + s->top_k) * 0x1p-23;
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

/* Whether float32 shows that a candidate is worse than the best so far. */
GMO_INLINE bool is_worse(const gmo_splitter *s, const int32_t *left, const int32_t *total, double best, scan_scratch *w) {
    if (!s->screen.on)
        return false;
    double estimate;
    if (s->top_k) {
        screen_scores(s, left, total, s->restricted, w->left_estimate, w->right_estimate);
        estimate = screen_top_sum(w->left_estimate, s->fixed->d, s->top_k, w->top_estimate);
        if (!s->restricted)
            estimate += screen_top_sum(w->right_estimate, s->fixed->d, s->top_k, w->top_estimate);
    } else
        estimate = s->fixed->has_hessian ? screen_diagonal(s, left, total) : screen_constant(s, left, total);
    return estimate * s->screen.scale < best * s->screen.slack;
}

gmo_split gmo_split_better(gmo_split a, gmo_split b) {
    if (a.feature < 0 || b.feature < 0)
        return a.feature < 0 ? b : a;
    if (a.value != b.value)
        return a.value > b.value ? a : b;
    return a.feature <= b.feature ? a : b;
}

/* left: sums of the candidate's left side. Within a feature candidates come in order, so that the first of equals stays. */
GMO_INLINE void try_candidate(const gmo_splitter *s, int64_t feature, int32_t bin, bool missing_left, bool missing_seen,
                              const int32_t *left, const int32_t *total, scan_scratch *w, gmo_split *best) {
    int64_t n_left = left[s->fixed->count_lane], n_right = total[s->fixed->count_lane] - n_left;
    if (n_left < s->min_side || n_right < s->min_side || is_worse(s, left, total, best->value, w))
        return;
    double value = candidate_value(s, left, total, w);
    if (value > best->value || (value == best->value && feature < best->feature))
        *best = (gmo_split){value, 0, feature, n_left, bin, missing_left, missing_seen};
}

/* The bins of a feature in a node: cells of its histogram, or its rows in the order of their bins. */
typedef struct {
    const int32_t *cells; /* NULL: rows */
    const int32_t **sorted;
    const int32_t *start; /* rows of bin b: sorted[start[b]] .. sorted[start[b + 1]] */
} feature_bins;

GMO_INLINE int32_t bin_count(const gmo_splitter *s, const feature_bins *bins, int32_t bin) {
    if (bins->cells)
        return bins->cells[bin * (int64_t)s->shape->stride + s->fixed->count_lane];
    return bins->start[bin + 1] - bins->start[bin];
}

GMO_INLINE void add_bin(const gmo_splitter *s, const feature_bins *bins, int32_t bin, int32_t *sum) {
    int32_t stride = s->shape->stride;
    if (bins->cells) {
        gmo_add_row(sum, bins->cells + bin * (int64_t)stride, stride);
        return;
    }
    for (int32_t i = bins->start[bin]; i < bins->start[bin + 1]; i++)
        gmo_add_row(sum, bins->sorted[i], stride);
}

/* All candidates of one feature, bins in order; missing values right, then left, if the node has any. An empty bin gives
 * the candidate of the bin before it once more, or none. */
GMO_INLINE void scan_feature(const gmo_splitter *s, const feature_bins *bins, int64_t feature, const int32_t *total,
                             scan_scratch *w, gmo_split *best) {
    int32_t stride = s->shape->stride, n_bins = s->shape->n_bins[feature], count_lane = s->fixed->count_lane;
    bool missing = s->shape->has_missing[feature] && bin_count(s, bins, n_bins) > 0;
    memset(w->missing, 0, (size_t)stride * sizeof *w->missing);
    if (missing)
        add_bin(s, bins, n_bins, w->missing);
    memset(w->left, 0, (size_t)stride * sizeof *w->left);
    for (int32_t bin = 0; bin < n_bins - 1 + missing; bin++) {
        if (bin_count(s, bins, bin) == 0 && (bin > 0 || s->min_side > 0))
            continue;
        add_bin(s, bins, bin, w->left);
        if (total[count_lane] - w->left[count_lane] < s->min_side)
            return;
        try_candidate(s, feature, bin, false, missing, w->left, total, w, best);
        if (!missing || bin == n_bins - 1)
            continue;
        for (int32_t j = 0; j < stride; j++)
            w->with_missing[j] = w->left[j] + w->missing[j];
        try_candidate(s, feature, bin, true, true, w->with_missing, total, w, best);
    }
}

GMO_CLONES
void gmo_split_scan(const gmo_splitter *s, const int32_t *hist, const int32_t *total, const gmo_hist_block *block,
                    gmo_split *best) {
    scan_scratch w = scratch_of(s);
    for (int64_t feature = block->first; feature < block->last; feature++) {
        feature_bins bins = {hist + s->shape->cell_start[feature] * s->shape->stride, NULL, NULL};
        scan_feature(s, &bins, feature, total, &w, best);
    }
}

/* Sorts the rows by the feature's bin; start: out, (n_cells + 1,). False if all have the same bin. */
static bool sort_rows(const gmo_splitter *s, int64_t feature, const int32_t *rows, int64_t n_rows, scan_scratch *w,
                      int32_t *start) {
    const gmo_binned *data = s->shape->data;
    int32_t n_cells = (int32_t)(s->shape->cell_start[feature + 1] - s->shape->cell_start[feature]), next[MAX_CELLS];
    memset(start, 0, (size_t)(n_cells + 1) * sizeof *start);
    for (int64_t i = 0; i < n_rows; i++) {
        w->row_bin[i] = data->bins[rows[i] * data->n_features + feature];
        start[w->row_bin[i] + 1]++;
    }
    if (start[w->row_bin[0] + 1] == n_rows)
        return false;
    for (int32_t bin = 0; bin < n_cells; bin++) {
        start[bin + 1] += start[bin];
        next[bin] = start[bin];
    }
    for (int64_t i = 0; i < n_rows; i++)
        w->sorted[next[w->row_bin[i]]++] = s->fixed->rows + rows[i] * (int64_t)s->fixed->stride;
    return true;
}

GMO_CLONES
void gmo_split_scan_small(const gmo_splitter *s, const int32_t *rows, int64_t n_rows, const int32_t *total,
                          const gmo_hist_block *block, gmo_split *best) {
    scan_scratch w = scratch_of(s);
    int32_t start[MAX_CELLS + 1];
    feature_bins bins = {NULL, w.sorted, start};
    for (int64_t feature = block->first; feature < block->last; feature++)
        if (sort_rows(s, feature, rows, n_rows, &w, start))
            scan_feature(s, &bins, feature, total, &w, best);
}

void gmo_split_finish(const gmo_splitter *s, const int32_t *total, gmo_split *best) {
    if (best->feature < 0)
        return;
    scan_scratch w = scratch_of(s);
    /* With everything on the left, the right side scores 0 (or is no part of any top k). */
    double parent = candidate_value(s, total, total, &w);
    best->gain = 0.5 * (best->value - parent) / (s->top_k ? s->top_k : s->fixed->d);
    /* A later missing value goes where more rows went, if training showed none at this node. */
    if (!best->missing_seen)
        best->missing_left = 2 * best->n_left >= total[s->fixed->count_lane];
}
