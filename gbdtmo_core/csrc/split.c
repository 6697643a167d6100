#include "score.h"
#include "screen.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A node is searched by its rows if they are at most so many times the mean number of cells of a feature: then the pass
 * over the rows costs less than building, subtracting and scanning a histogram. */
#define SMALL_ROWS_PER_CELL 16
/* Bins and the bin of missing values. */
#define MAX_CELLS 256
/* Spread of the outputs' scales that float32 estimates bear, as powers of two. */
#define LARGEST_SPREAD 20

/* Candidates of a feature: one or, with missing values, two a bin. */
#define MAX_CANDIDATES (2 * MAX_CELLS)
/* Features whose candidates are looked at together. */
#define GROUP_FEATURES 8

/* Working memory of a thread. */
typedef struct {
    int32_t *left; /* (stride + GMO_LANES,) */
    score_scratch score;
    uint8_t *row_bin; /* (small_rows,) */
    double kth[2];    /* of the best candidates so far: the k-th largest scores (score_scratch.kth) */
    feature_scan scans[GROUP_FEATURES];
} scan_scratch;

static char *lay(char *base, int64_t *at, int64_t bytes) {
    char *array = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return array;
}

/* Lays a thread's memory out from base on (NULL: only counts), w itself first; returns the bytes it takes. */
static int64_t lay_out(const gmo_splitter *s, char *base, scan_scratch *w) {
    int64_t row = gmo_total_size(s->shape) * 4, d = s->fixed->d + GMO_LANES, k = s->top_k, at = 0;
    int64_t exact = k ? d * 8 : 0;
    lay(base, &at, sizeof *w);
    w->left = (int32_t *)lay(base, &at, row);
    w->score.right = (int32_t *)lay(base, &at, row);
    w->score.left_score = (double *)lay(base, &at, exact);
    w->score.right_score = (double *)lay(base, &at, exact);
    w->score.top = (double *)lay(base, &at, k * 8);
    w->row_bin = (uint8_t *)lay(base, &at, s->small_rows);
    for (int32_t i = 0; i < GROUP_FEATURES; i++) {
        feature_scan *scan = &w->scans[i];
        scan->candidates = (candidate *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(candidate));
        scan->missing = (int32_t *)lay(base, &at, row);
        scan->sums = (float16 *)lay(base, &at, MAX_CANDIDATES * MAX_SUMS * (int64_t)sizeof(float16));
        scan->bounds = (double *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(double));
        scan->start = (int32_t *)lay(base, &at, (MAX_CELLS + 1) * 4);
        scan->sorted = (const int32_t **)lay(base, &at, s->small_rows * (int64_t)sizeof(int32_t *));
    }
    return at;
}

static scan_scratch *scratch_of(const gmo_splitter *s, int32_t thread) {
    return (scan_scratch *)(s->scratch + thread * s->scratch_bytes);
}

static gmo_status screen_init(gmo_screen *screen, int32_t d) {
    int32_t n = d + GMO_LANES;
    screen->weight = gmo_alloc_zero(n, sizeof(float));
    screen->slope = gmo_alloc_zero(n, sizeof(float));
    screen->add = gmo_alloc_zero(n, sizeof(float));
    if (!screen->weight || !screen->slope || !screen->add)
        return GMO_ERR_MEMORY;
    /* The lanes beyond d hold Hessians or counts: such a denominator leaves little of them, and too much only makes an
     * estimate too large. */
    for (int32_t j = d; j < n; j++)
        screen->add[j] = 0x1p60f;
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
    if (!splitter->scratch)
        return GMO_ERR_MEMORY;
    for (int32_t thread = 0; thread < params->n_threads; thread++) {
        scan_scratch *own = scratch_of(splitter, thread);
        lay_out(splitter, (char *)own, own);
    }
    return GMO_OK;
}

void gmo_splitter_free(gmo_splitter *splitter) {
    free(splitter->scratch);
    free(splitter->screen.weight);
    free(splitter->screen.slope);
    free(splitter->screen.add);
    memset(splitter, 0, sizeof *splitter);
}

/* Denominators of estimates: score = G^2 / (slope H + add) * scale for integers G and H. The weights that make up for the
 * outputs' different units are in the denominators, which reach 2^20 at most; with a reg_lambda that keeps them above
 * 2^-40, no product of two of them and of a squared gradient leaves float32's range. */
static bool scale_denominators(gmo_splitter *s, double largest) {
    const gmo_fixed *fixed = s->fixed;
    double top = 0;
    for (int32_t j = 0; j < fixed->d; j++) {
        double unit = fixed->gradient_unit[j], denominator = fixed->hessian_unit[j] * 0x1p31 + s->reg_lambda;
        denominator *= unit > 0 ? (largest / unit) * (largest / unit) : 0;
        top = denominator > top ? denominator : top;
    }
    int exponent;
    frexp(top, &exponent);
    double factor = ldexp(1, 20 - exponent);
    for (int32_t j = 0; j < fixed->d; j++) {
        double unit = fixed->gradient_unit[j], by = unit > 0 ? factor * (largest / unit) * (largest / unit) : 0;
        s->screen.slope[j] = (float)(fixed->hessian_unit[j] * by);
        s->screen.add[j] = unit > 0 ? (float)(s->reg_lambda * by) : 1; /* all gradients are 0: any will do */
    }
    s->screen.scale *= factor;
    return isfinite(top) && s->reg_lambda * factor >= 0x1p-40;
}

void gmo_splitter_start_tree(gmo_splitter *s) {
    const gmo_fixed *fixed = s->fixed;
    double largest = 0, smallest = INFINITY;
    for (int32_t j = 0; j < fixed->d; j++) {
        double unit = fixed->gradient_unit[j];
        largest = unit > largest ? unit : largest;
        smallest = unit > 0 && unit < smallest ? unit : smallest;
    }
    for (int32_t j = 0; j < fixed->d; j++)
        s->screen.weight[j] = largest > 0 ? (float)(fixed->gradient_unit[j] / largest) : 0;
    s->screen.scale = largest * largest;
    /* L1 shrinkage cancels leading digits, and a side without rows may have no score: then nothing is estimated. */
    s->screen.on = largest > 0 && s->reg_alpha == 0 && s->min_side > 0 && smallest >= ldexp(largest, -LARGEST_SPREAD);
    if (s->screen.on && fixed->has_hessian)
        s->screen.on = scale_denominators(s, largest);
    /* A term takes fewer than 40 roundings of 2^-24 each; then come d / 16 + 16 additions. What exceeds a threshold loses
     * digits, in all at most those of d thresholds, where k of them are in the bound. */
    double roundings = fixed->d / GMO_LANES + 60;
    if (s->top_k)
        roundings *= 2 + (double)fixed->d / s->top_k;
    s->screen.slack = 1 - roundings * 0x1p-23 - SCREEN_RECIPROCAL_ERROR;
}

void gmo_split_scores(const gmo_splitter *s, const int32_t *row, double *score) {
    side_scores(s, row, s->fixed->has_hessian ? row + s->fixed->d : NULL, row[s->fixed->count_lane], score);
}

gmo_split gmo_split_better(gmo_split a, gmo_split b) {
    if (a.feature < 0 || b.feature < 0)
        return a.feature < 0 ? b : a;
    if (a.value != b.value)
        return a.value > b.value ? a : b;
    return a.feature <= b.feature ? a : b;
}

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

GMO_INLINE void push_candidate(const gmo_splitter *s, feature_scan *scan, int32_t bin, int32_t n_left, int32_t n_total,
                               bool missing_left) {
    if (n_left < s->min_side || n_total - n_left < s->min_side)
        return;
    float by_left = (float)(1 / (n_left + s->reg_lambda)), by_right = (float)(1 / (n_total - n_left + s->reg_lambda));
    scan->candidates[scan->n_candidates++] = (candidate){bin, n_left, missing_left, by_left, by_right};
}

/* Candidates of a feature, bins in order; missing values right, then left, if the node has any. An empty bin gives the
 * candidates of the bin before it once more. */
GMO_INLINE void list_candidates(const gmo_splitter *s, feature_scan *scan, int32_t n_total) {
    int32_t n_bins = s->shape->n_bins[scan->feature], n_left = 0, stride = s->shape->stride;
    scan->n_missing = s->shape->has_missing[scan->feature] ? bin_count(s, &scan->bins, n_bins) : 0;
    scan->n_candidates = 0;
    if (scan->n_missing > 0) {
        memset(scan->missing, 0, (size_t)stride * sizeof *scan->missing);
        add_bin(s, &scan->bins, n_bins, scan->missing);
    }
    for (int32_t bin = 0; bin < n_bins - 1 + (scan->n_missing > 0); bin++) {
        int32_t count = bin_count(s, &scan->bins, bin);
        if (count == 0 && bin > 0)
            continue;
        n_left += count;
        if (n_total - n_left < s->min_side)
            break;
        push_candidate(s, scan, bin, n_left, n_total, false);
        if (scan->n_missing > 0 && bin < n_bins - 1)
            push_candidate(s, scan, bin, n_left + scan->n_missing, n_total, true);
    }
}

static bound_sums kind_of(const gmo_splitter *s) {
    return s->top_k == 0 ? SUMS_FULL : s->restricted ? SUMS_RESTRICTED : SUMS_UNRESTRICTED;
}

/* Whether candidate a of one split comes before b among equals: the lowest feature, then the lowest bin, then missing
 * values right. */
static bool comes_first(const gmo_split *a, const gmo_split *b) {
    if (a->feature != b->feature)
        return a->feature < b->feature;
    return a->bin != b->bin ? a->bin < b->bin : a->missing_left < b->missing_left;
}

/* Scores candidate c in float64; w->left holds the bins before *next. */
GMO_INLINE void score_candidate(const gmo_splitter *s, const feature_scan *scan, int32_t c, const int32_t *total,
                                int32_t *next, scan_scratch *w, gmo_split *best) {
    int32_t stride = s->shape->stride;
    const candidate *at = &scan->candidates[c];
    for (; *next <= at->bin; (*next)++)
        add_bin(s, &scan->bins, *next, w->left);
    if (at->missing_left)
        gmo_add_row(w->left, scan->missing, stride);
    double value = candidate_value(s, w->left, total, best->value, &w->score);
    if (at->missing_left)
        for (int32_t j = 0; j < stride; j++)
            w->left[j] -= scan->missing[j];
    gmo_split split = {value, 0, scan->feature, at->n_left, at->bin, at->missing_left, scan->n_missing > 0};
    if (value > best->value || (value == best->value && best->feature >= 0 && comes_first(&split, best))) {
        *best = split;
        memcpy(w->kth, w->score.kth, sizeof w->kth);
    }
}

/* Scores the candidates of a feature that are not shown to be worse than the best so far. */
GMO_INLINE void decide(const gmo_splitter *s, const feature_scan *scan, const int32_t *total, scan_scratch *w,
                       gmo_split *best) {
    int32_t next = 0;
    memset(w->left, 0, (size_t)s->shape->stride * sizeof *w->left);
    for (int32_t c = 0; c < scan->n_candidates; c++)
        if (!s->screen.on || scan->bounds[c] * s->screen.scale >= best->value * s->screen.slack)
            score_candidate(s, scan, c, total, &next, w, best);
}

/* Scores the candidate of the largest bound first: it shows most others to be worse. */
GMO_INLINE void decide_first(const gmo_splitter *s, int32_t n, const int32_t *total, scan_scratch *w, gmo_split *best) {
    int32_t first = 0, first_candidate = -1, next = 0;
    double largest = best->value * s->screen.slack / s->screen.scale;
    for (int32_t i = 0; i < n; i++)
        for (int32_t c = 0; c < w->scans[i].n_candidates; c++)
            if (w->scans[i].bounds[c] > largest) {
                largest = w->scans[i].bounds[c];
                first = i;
                first_candidate = c;
            }
    if (first_candidate < 0)
        return;
    memset(w->left, 0, (size_t)s->shape->stride * sizeof *w->left);
    score_candidate(s, &w->scans[first], first_candidate, total, &next, w, best);
}

/* The kinds of estimates, each compiled on its own. */
GMO_INLINE void screen_any(const gmo_splitter *s, const feature_scan *scans, int32_t n, const int32_t *total,
                           const float threshold[2]) {
    bound_sums kind = kind_of(s);
    if (!s->fixed->has_hessian)
        if (kind == SUMS_FULL)
            screen_group(s, scans, n, total, false, SUMS_FULL, threshold);
        else if (kind == SUMS_RESTRICTED)
            screen_group(s, scans, n, total, false, SUMS_RESTRICTED, threshold);
        else
            screen_group(s, scans, n, total, false, SUMS_UNRESTRICTED, threshold);
    else if (kind == SUMS_FULL)
        screen_group(s, scans, n, total, true, SUMS_FULL, threshold);
    else if (kind == SUMS_RESTRICTED)
        screen_group(s, scans, n, total, true, SUMS_RESTRICTED, threshold);
    else
        screen_group(s, scans, n, total, true, SUMS_UNRESTRICTED, threshold);
}

/* Scores the candidates of the first n scans. */
GMO_INLINE void scan_group(const gmo_splitter *s, int32_t n, const int32_t *total, scan_scratch *w, gmo_split *best) {
    const float threshold[2] = {(float)(w->kth[0] / s->screen.scale), (float)(w->kth[1] / s->screen.scale)};
    for (int32_t i = 0; i < n; i++)
        list_candidates(s, &w->scans[i], total[s->fixed->count_lane]);
    if (s->screen.on) {
        screen_any(s, w->scans, n, total, threshold);
        for (int32_t i = 0; i < n; i++)
            for (int32_t c = 0; c < w->scans[i].n_candidates; c++)
                w->scans[i].bounds[c] =
                    estimated_bound(w->scans[i].sums + c * (int32_t)kind_of(s), kind_of(s), s->top_k, threshold);
        decide_first(s, n, total, w, best);
    }
    for (int32_t i = 0; i < n; i++)
        decide(s, &w->scans[i], total, w, best);
}

GMO_CLONES
void gmo_split_scan(const gmo_splitter *s, const int32_t *part, const int32_t *total, const gmo_hist_block *block,
                    gmo_split *best) {
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    for (int64_t first = block->first; first < block->last; first += GROUP_FEATURES) {
        int32_t n = 0;
        for (int64_t feature = first; feature < block->last && n < GROUP_FEATURES; feature++, n++) {
            w->scans[n].feature = feature;
            w->scans[n].bins =
                (feature_bins){part + s->shape->start[feature] - s->shape->start[block->first], NULL, NULL};
        }
        scan_group(s, n, total, w, best);
    }
}

/* Sorts the rows by the feature's bin; false if all have the same bin. */
static bool sort_rows(const gmo_splitter *s, const int32_t *rows, int64_t n_rows, uint8_t *row_bin,
                      feature_scan *scan) {
    const gmo_binned *data = s->shape->data;
    int32_t n_cells = (int32_t)(s->shape->cell_start[scan->feature + 1] - s->shape->cell_start[scan->feature]);
    int32_t *start = scan->start, next[MAX_CELLS];
    memset(start, 0, (size_t)(n_cells + 1) * sizeof *start);
    for (int64_t i = 0; i < n_rows; i++) {
        row_bin[i] = data->bins[rows[i] * data->n_features + scan->feature];
        start[row_bin[i] + 1]++;
    }
    if (start[row_bin[0] + 1] == n_rows)
        return false;
    for (int32_t bin = 0; bin < n_cells; bin++) {
        start[bin + 1] += start[bin];
        next[bin] = start[bin];
    }
    for (int64_t i = 0; i < n_rows; i++)
        scan->sorted[next[row_bin[i]]++] = s->fixed->rows + rows[i] * (int64_t)s->fixed->stride;
    scan->bins = (feature_bins){NULL, scan->sorted, start};
    return true;
}

GMO_CLONES
void gmo_split_scan_small(const gmo_splitter *s, const int32_t *rows, int64_t n_rows, const int32_t *total,
                          const gmo_hist_block *block, gmo_split *best) {
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    int64_t feature = block->first;
    while (feature < block->last) {
        int32_t n = 0;
        for (; feature < block->last && n < GROUP_FEATURES; feature++) {
            w->scans[n].feature = feature;
            n += sort_rows(s, rows, n_rows, w->row_bin, &w->scans[n]);
        }
        scan_group(s, n, total, w, best);
    }
}

void gmo_split_finish(const gmo_splitter *s, const int32_t *total, gmo_split *best) {
    if (best->feature < 0)
        return;
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    /* With everything on the left, the right side scores 0 (or is no part of any top k). */
    double parent = candidate_value(s, total, total, 0, &w->score);
    best->gain = 0.5 * (best->value - parent) / (s->top_k ? s->top_k : s->fixed->d);
    /* A later missing value goes where more rows went, if training showed none at this node. */
    if (!best->missing_seen)
        best->missing_left = 2 * best->n_left >= total[s->fixed->count_lane];
}
