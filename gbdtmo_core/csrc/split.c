#include "score.h"
#include "screen.h"

#include <math.h>
#include <string.h>

/* A node is searched by its rows if they are at most so many times the mean number of cells of a feature: then the pass
 * over the rows costs less than building, subtracting and scanning a histogram. */
#define SMALL_ROWS_PER_CELL 16
/* Bins and the bin of missing values. */
#define MAX_CELLS 256
/* Spread of the outputs' scales that float32 estimates bear, as powers of two. */
#define LARGEST_SPREAD 20
/* Largest reg_lambda with which candidates are estimated. */
#define LARGEST_LAMBDA 0x1p60

/* Candidates of a feature: one or, with missing values, two a bin. */
#define MAX_CANDIDATES (2 * MAX_CELLS)
/* Features whose candidates are looked at together. */
#define GROUP_FEATURES 8

/* Working memory of a thread. */
typedef struct {
    int32_t *left; /* (stride + GMO_LANES,) */
    score_scratch score;
    uint8_t *row_bin; /* (GROUP_FEATURES, small_rows) */
    double kth[2];    /* of the best candidates so far: the k-th largest scores (score_scratch.kth) */
    feature_scan scans[GROUP_FEATURES];
} scan_scratch;

/* Lanes of a copied row at most: whole vectors of gradients, then of Hessians. */
static int64_t copied_stride(const gmo_splitter *s) {
    int64_t lanes = ((int64_t)s->fixed->d + GMO_LANES - 1) / GMO_LANES * GMO_LANES;
    return s->fixed->has_hessian ? 2 * lanes : lanes;
}

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
    w->row_bin = (uint8_t *)lay(base, &at, GROUP_FEATURES * s->small_rows);
    for (int32_t i = 0; i < GROUP_FEATURES; i++) {
        feature_scan *scan = &w->scans[i];
        scan->candidates = (candidate *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(candidate));
        scan->missing = (int32_t *)lay(base, &at, row);
        scan->estimated_missing = (int32_t *)lay(base, &at, row + copied_stride(s) * 4);
        scan->sums = (float16 *)lay(base, &at, MAX_CANDIDATES * MAX_SUMS * (int64_t)sizeof(float16));
        scan->bounds = (double *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(double));
        scan->start = (int32_t *)lay(base, &at, (MAX_CELLS + 1) * 4);
        scan->order = (int32_t *)lay(base, &at, s->small_rows * 4);
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

static gmo_status small_init(const gmo_splitter *s, gmo_small_node *node) {
    int64_t n = s->fixed->d + GMO_LANES, size;
    if (!gmo_size_mul(s->small_rows, copied_stride(s), &size))
        return GMO_ERR_SIZE;
    node->copied = gmo_alloc(size + GMO_LANES, sizeof *node->copied);
    node->copied_total = gmo_alloc(copied_stride(s) + GMO_LANES, sizeof *node->copied_total);
    node->weight = gmo_alloc(n, sizeof(float));
    node->slope = gmo_alloc(n, sizeof(float));
    node->add = gmo_alloc(n, sizeof(float));
    node->rest = gmo_alloc(s->small_rows + 1, sizeof *node->rest);
    node->outputs = gmo_alloc(n, sizeof *node->outputs);
    return node->copied && node->copied_total && node->weight && node->slope && node->add && node->rest && node->outputs
               ? GMO_OK
               : GMO_ERR_MEMORY;
}

static void small_free(gmo_small_node *node) {
    free(node->copied);
    free(node->copied_total);
    free(node->weight);
    free(node->slope);
    free(node->add);
    free(node->rest);
    free(node->outputs);
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
    for (int32_t i = 0; i < 2 && splitter->small_rows > 0; i++)
        GMO_TRY(small_init(splitter, &splitter->small[i]));
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
    small_free(&splitter->small[0]);
    small_free(&splitter->small[1]);
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
    /* L1 shrinkage cancels leading digits, a side without rows may have no score, and so large a penalty leaves none that
     * float32 could hold: then nothing is estimated. */
    s->screen.on = largest > 0 && s->reg_alpha == 0 && s->min_side > 0 && s->reg_lambda <= LARGEST_LAMBDA &&
                   smallest >= ldexp(largest, -LARGEST_SPREAD);
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
        gmo_add_row(sum, s->fixed->rows + bins->rows[bins->order[i]] * (int64_t)stride, stride);
}

/* Sum of the rows that miss the feature, as estimates need it. */
GMO_INLINE void add_missing(const gmo_estimated *e, const feature_bins *bins, int32_t bin, int32_t *sum) {
    memset(sum, 0, (size_t)(e->stride + GMO_LANES) * sizeof *sum);
    for (int32_t i = bins->start[bin]; i < bins->start[bin + 1]; i++)
        gmo_add_row(sum, e->rows + bins->order[i] * (int64_t)e->stride, e->stride);
}

GMO_INLINE void push_candidate(const gmo_splitter *s, feature_scan *scan, int32_t bin, int32_t n_left, int32_t n_total,
                               bool missing_left) {
    if (n_left < s->min_side || n_total - n_left < s->min_side)
        return;
    candidate *at = &scan->candidates[scan->n_candidates++];
    *at = (candidate){bin, n_left, missing_left, 0, 0};
    if (s->fixed->has_hessian)
        return;
    at->by_left = (float)(1 / (n_left + s->reg_lambda));
    at->by_right = (float)(1 / (n_total - n_left + s->reg_lambda));
}

/* Candidates of a feature, bins in order; missing values right, then left, if the node has any. An empty bin gives the
 * candidates of the bin before it once more. */
GMO_INLINE void list_candidates(const gmo_splitter *s, const gmo_estimated *e, feature_scan *scan, int32_t n_total) {
    int32_t n_bins = s->shape->n_bins[scan->feature], n_left = 0, stride = s->shape->stride;
    scan->n_missing = s->shape->has_missing[scan->feature] ? bin_count(s, &scan->bins, n_bins) : 0;
    scan->n_candidates = 0;
    if (scan->n_missing > 0) {
        memset(scan->missing, 0, (size_t)stride * sizeof *scan->missing);
        add_bin(s, &scan->bins, n_bins, scan->missing);
        if (scan->bins.cells)
            memcpy(scan->estimated_missing, scan->missing, (size_t)stride * sizeof *scan->missing);
        else if (s->screen.on)
            add_missing(e, &scan->bins, n_bins, scan->estimated_missing);
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
GMO_INLINE void screen_any(const gmo_splitter *s, const gmo_estimated *e, const feature_scan *scans, int32_t n,
                           const float threshold[2]) {
    bound_sums kind = kind_of(s);
    if (!s->fixed->has_hessian)
        if (kind == SUMS_FULL)
            screen_group(e, scans, n, false, SUMS_FULL, threshold);
        else if (kind == SUMS_RESTRICTED)
            screen_group(e, scans, n, false, SUMS_RESTRICTED, threshold);
        else
            screen_group(e, scans, n, false, SUMS_UNRESTRICTED, threshold);
    else if (kind == SUMS_FULL)
        screen_group(e, scans, n, true, SUMS_FULL, threshold);
    else if (kind == SUMS_RESTRICTED)
        screen_group(e, scans, n, true, SUMS_RESTRICTED, threshold);
    else
        screen_group(e, scans, n, true, SUMS_UNRESTRICTED, threshold);
}

/* Upper bounds of the scans' candidates. */
GMO_INLINE void find_bounds(const gmo_splitter *s, const gmo_estimated *e, feature_scan *scans, int32_t n,
                            const float threshold[2]) {
    bound_sums kind = kind_of(s);
    screen_any(s, e, scans, n, threshold);
    for (int32_t i = 0; i < n; i++)
        for (int32_t c = 0; c < scans[i].n_candidates; c++) {
            double rest = e->rest ? e->rest[scans[i].candidates[c].n_left] / s->screen.scale : 0;
            scans[i].bounds[c] = estimated_bound(scans[i].sums + c * (int32_t)kind, kind, s->top_k, threshold) + rest;
        }
}

/* Scores the candidates of the first n scans. total: of the node. */
GMO_INLINE void scan_group(const gmo_splitter *s, const gmo_estimated *e, int32_t n, const int32_t *total,
                           scan_scratch *w, gmo_split *best) {
    const float threshold[2] = {(float)(w->kth[0] / s->screen.scale), (float)(w->kth[1] / s->screen.scale)};
    for (int32_t i = 0; i < n; i++)
        list_candidates(s, e, &w->scans[i], total[s->fixed->count_lane]);
    if (s->screen.on) {
        find_bounds(s, e, w->scans, n, threshold);
        decide_first(s, n, total, w, best);
    }
    for (int32_t i = 0; i < n; i++)
        decide(s, &w->scans[i], total, w, best);
}

GMO_CLONES
void gmo_split_scan(const gmo_splitter *s, const int32_t *part, const int32_t *total, const gmo_hist_block *block,
                    gmo_split *best) {
    const gmo_screen *screen = &s->screen;
    gmo_estimated estimated = {
        s->fixed->d, s->fixed->d, s->shape->stride, total, screen->weight, screen->slope, screen->add, NULL, NULL};
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    for (int64_t first = block->first; first < block->last; first += GROUP_FEATURES) {
        int32_t n = 0;
        for (int64_t feature = first; feature < block->last && n < GROUP_FEATURES; feature++, n++) {
            w->scans[n].feature = feature;
            w->scans[n].bins =
                (feature_bins){part + s->shape->start[feature] - s->shape->start[block->first], NULL, NULL, NULL};
        }
        scan_group(s, &estimated, n, total, w, best);
    }
}

/* Bins of the node's rows for n features from first on: out[f * n_rows + i]. */
static void gather_bins(const gmo_splitter *s, const gmo_small_node *node, int64_t first, int32_t n, uint8_t *out) {
    const gmo_binned *data = s->shape->data;
    for (int64_t i = 0; i < node->n_rows; i++) {
        const uint8_t *bins = data->bins + node->rows[i] * data->n_features + first;
        for (int32_t f = 0; f < n; f++)
            out[f * node->n_rows + i] = bins[f];
    }
}

/* Sorts the node's rows by their bins of the feature; false if all have the same bin. */
static bool sort_rows(const gmo_splitter *s, const gmo_small_node *node, const uint8_t *row_bin, feature_scan *scan) {
    int32_t n_cells = (int32_t)(s->shape->cell_start[scan->feature + 1] - s->shape->cell_start[scan->feature]);
    int32_t *start = scan->start, next[MAX_CELLS], n_rows = (int32_t)node->n_rows;
    memset(start, 0, (size_t)(n_cells + 1) * sizeof *start);
    for (int32_t i = 0; i < n_rows; i++)
        start[row_bin[i] + 1]++;
    if (start[row_bin[0] + 1] == n_rows)
        return false;
    for (int32_t bin = 0; bin < n_cells; bin++) {
        start[bin + 1] += start[bin];
        next[bin] = start[bin];
    }
    for (int32_t i = 0; i < n_rows; i++)
        scan->order[next[row_bin[i]]++] = i;
    scan->bins = (feature_bins){NULL, scan->order, start, node->rows};
    return true;
}

GMO_CLONES
void gmo_split_scan_small(const gmo_splitter *s, const gmo_small_node *node, const gmo_hist_block *block,
                          gmo_split *best) {
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    for (int64_t first = block->first; first < block->last; first += GROUP_FEATURES) {
        int32_t n_features = (int32_t)(block->last - first < GROUP_FEATURES ? block->last - first : GROUP_FEATURES),
                n = 0;
        gather_bins(s, node, first, n_features, w->row_bin);
        for (int32_t f = 0; f < n_features; f++) {
            w->scans[n].feature = first + f;
            n += sort_rows(s, node, w->row_bin + f * node->n_rows, &w->scans[n]);
        }
        scan_group(s, &node->estimated, n, node->total, w, best);
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
