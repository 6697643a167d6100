#include "score.h"
#include "screen.h"

#include <math.h>
#include <string.h>

/* A node is searched by its rows if they are at most so many times the mean number of cells of a feature: then the pass
 * over the rows costs less than building, subtracting and scanning a histogram. Of many classes most are bounded there
 * [small.c], which no histogram can do. */
#define SMALL_ROWS_PER_CELL 8
#define SMALL_ROWS_PER_CELL_MANY 24
/* Bins and the bin of missing values. */
#define MAX_CELLS 256
/* Candidates of a feature: one or, with missing values, two a bin. */
#define MAX_CANDIDATES (2 * MAX_CELLS)

/* Working memory of a thread. */
typedef struct {
    int32_t *left; /* (stride + GMO_LANES,) */
    score_scratch score;
    uint8_t *row_bin; /* (GMO_GROUP_FEATURES, small_rows) */
    double kth[2];    /* of the candidate scored last: the k-th largest scores, those of either side a row of it */
    feature_scan scans[GMO_GROUP_FEATURES];
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
    w->row_bin = (uint8_t *)lay(base, &at, GMO_GROUP_FEATURES * s->small_rows);
    for (int32_t i = 0; i < GMO_GROUP_FEATURES; i++) {
        feature_scan *scan = &w->scans[i];
        scan->candidates = (candidate *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(candidate));
        scan->missing = (int32_t *)lay(base, &at, row);
        scan->estimated_missing = (int32_t *)lay(base, &at, row + copied_stride(s) * 4);
        scan->sums = (gmo_float16 *)lay(base, &at, MAX_CANDIDATES * GMO_MAX_SUMS * (int64_t)sizeof(gmo_float16));
        scan->bounds = (double *)lay(base, &at, MAX_CANDIDATES * (int64_t)sizeof(double));
        scan->start = (int32_t *)lay(base, &at, (MAX_CELLS + 1) * 4);
        scan->order = (int32_t *)lay(base, &at, s->small_rows * 4);
    }
    return at;
}

static scan_scratch *scratch_of(const gmo_splitter *s, int32_t thread) {
    return (scan_scratch *)(s->scratch + thread * s->scratch_bytes);
}

static gmo_status node_init(const gmo_splitter *s, gmo_split_node *node) {
    int64_t n = s->fixed->d + GMO_LANES, size;
    if (!gmo_size_mul(s->small_rows, copied_stride(s), &size))
        return GMO_ERR_SIZE;
    gmo_estimates *e = &node->estimates;
    float **factors[] = {&e->weight, &e->gradient, &e->own, &e->slope, &e->add};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (!(*factors[i] = gmo_alloc(n, sizeof(float))))
            return GMO_ERR_MEMORY;
    node->copied = gmo_alloc(size + GMO_LANES, sizeof *node->copied);
    node->copied_total = gmo_alloc(copied_stride(s) + GMO_LANES, sizeof *node->copied_total);
    node->rest = gmo_alloc(2 * (s->small_rows + 1), sizeof *node->rest);
    node->least = gmo_alloc(s->fixed->stride, sizeof *node->least);
    node->most = gmo_alloc(s->fixed->stride, sizeof *node->most);
    node->outputs = gmo_alloc(n, sizeof *node->outputs);
    node->ranked = gmo_alloc(n, sizeof *node->ranked);
    return node->copied && node->copied_total && node->rest && node->least && node->most && node->outputs &&
                   node->ranked
               ? GMO_OK
               : GMO_ERR_MEMORY;
}

static void node_free(gmo_split_node *node) {
    gmo_estimates *e = &node->estimates;
    void *arrays[] = {e->weight,          e->gradient, e->own,      e->slope,   e->add,        node->copied,
                      node->copied_total, node->rest,  node->least, node->most, node->outputs, node->ranked};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
}

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed) {
    bool complete = params->growth == GMO_GROWTH_COMPLETE;
    int64_t mean_cells = shape->cell_start[shape->data->n_features] / shape->data->n_features;
    bool many = fixed->has_hessian && fixed->d > GMO_FIRST_OUTPUTS;
    *splitter = (gmo_splitter){
        .shape = shape,
        .fixed = fixed,
        .reg_lambda = params->reg_lambda,
        .reg_alpha = params->reg_alpha,
        .top_k = params->top_k > 0 && params->top_k < fixed->d ? params->top_k : 0,
        .restricted = params->restricted,
        .min_side = complete ? params->min_samples_leaf : 0,
        .small_rows = complete ? (many ? SMALL_ROWS_PER_CELL_MANY : SMALL_ROWS_PER_CELL) * mean_cells : 0,
    };
    for (int32_t i = 0; i < 2; i++)
        GMO_TRY(node_init(splitter, &splitter->nodes[i]));
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
    node_free(&splitter->nodes[0]);
    node_free(&splitter->nodes[1]);
    memset(splitter, 0, sizeof *splitter);
}

void gmo_splitter_start_tree(gmo_splitter *s) { s->estimates = gmo_screen_is_sound(s); }

int32_t gmo_split_all_outputs(const gmo_splitter *s, gmo_split_node *node) {
    for (int32_t j = 0; j < s->fixed->d; j++)
        node->outputs[j] = j;
    return s->fixed->d;
}

void gmo_split_prepare(gmo_splitter *s, int32_t number, const int32_t *total) {
    gmo_split_node *node = &s->nodes[number];
    gmo_estimates *e = &node->estimates;
    node->total = e->total = total;
    e->d = e->hessian = gmo_split_all_outputs(s, node);
    e->stride = s->fixed->stride;
    e->rows = NULL;
    e->rest = e->later = NULL;
    gmo_screen_prepare(s, node);
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
GMO_INLINE void add_missing(const gmo_estimates *e, const feature_bins *bins, int32_t bin, int32_t *sum) {
    memset(sum, 0, (size_t)(e->stride + GMO_LANES) * sizeof *sum);
    for (int32_t i = bins->start[bin]; i < bins->start[bin + 1]; i++)
        gmo_add_row(sum, e->rows + bins->order[i] * (int64_t)e->stride, e->stride);
}

GMO_INLINE void push_candidate(const gmo_splitter *s, feature_scan *scan, int32_t bin, int32_t n_left, int32_t n_total,
                               bool missing_left) {
    if (n_left < s->min_side || n_total - n_left < s->min_side)
        return;
    candidate *at = &scan->candidates[scan->n_candidates++];
    *at = (candidate){.bin = bin, .n_left = n_left, .missing_left = missing_left};
    if (s->fixed->has_hessian)
        return;
    double share = (n_left + s->reg_lambda) / (n_total + 2 * s->reg_lambda);
    at->share = (float)share;
    at->by_left = (float)(1 / share);
    at->by_right = (float)(1 / (1 - share));
    at->by_both = (float)(1 / (share * (1 - share)));
}

/* Candidates of a feature, bins in order; missing values right, then left, if the node has any. An empty bin gives the
 * candidates of the bin before it once more. */
GMO_INLINE void list_candidates(const gmo_splitter *s, const gmo_estimates *e, feature_scan *scan, int32_t n_total) {
    int32_t n_bins = s->shape->n_bins[scan->feature], n_left = 0, stride = s->shape->stride;
    scan->n_missing = s->shape->has_missing[scan->feature] ? bin_count(s, &scan->bins, n_bins) : 0;
    scan->n_candidates = 0;
    if (scan->n_missing > 0) {
        memset(scan->missing, 0, (size_t)stride * sizeof *scan->missing);
        add_bin(s, &scan->bins, n_bins, scan->missing);
        if (scan->bins.cells)
            memcpy(scan->estimated_missing, scan->missing, (size_t)stride * sizeof *scan->missing);
        else if (e->on)
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
    if (value > best->value || (value == best->value && best->feature >= 0 && comes_first(&split, best)))
        *best = split;
    if (!s->top_k || !s->estimates)
        return;
    int32_t n_right = total[s->fixed->count_lane] - at->n_left;
    w->kth[0] = s->restricted ? w->score.kth[0] : w->score.kth[0] / at->n_left;
    w->kth[1] = s->restricted ? 0 : w->score.kth[1] / n_right;
}

/* Scores the candidates of a feature that are not shown to be worse than the best so far. */
GMO_INLINE void decide(const gmo_splitter *s, const gmo_split_node *node, const feature_scan *scan, scan_scratch *w,
                       gmo_split *best) {
    int32_t next = 0;
    memset(w->left, 0, (size_t)s->shape->stride * sizeof *w->left);
    for (int32_t c = 0; c < scan->n_candidates; c++)
        if (!node->estimates.on || scan->bounds[c] >= best->value)
            score_candidate(s, scan, c, node->total, &next, w, best);
}

/* Scores the candidate of the largest bound first: it shows most others to be worse. */
GMO_INLINE void decide_first(const gmo_splitter *s, int32_t n, const int32_t *total, scan_scratch *w, gmo_split *best) {
    int32_t first = 0, first_candidate = -1, next = 0;
    double largest = best->value;
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

/* Scores the candidates of the first n scans. */
GMO_INLINE void scan_group(const gmo_splitter *s, const gmo_split_node *node, int32_t n, scan_scratch *w,
                           gmo_split *best) {
    for (int32_t i = 0; i < n; i++)
        list_candidates(s, &node->estimates, &w->scans[i], node->total[s->fixed->count_lane]);
    if (node->estimates.on) {
        gmo_screen_bound(s, &node->estimates, w->scans, n, w->kth, best->value);
        decide_first(s, n, node->total, w, best);
    }
    for (int32_t i = 0; i < n; i++)
        decide(s, node, &w->scans[i], w, best);
}

GMO_CLONES
void gmo_split_scan(const gmo_splitter *s, const gmo_split_node *node, const int32_t *part, const gmo_hist_block *block,
                    gmo_split *best) {
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    for (int64_t first = block->first; first < block->last; first += GMO_GROUP_FEATURES) {
        int32_t n = 0;
        for (int64_t feature = first; feature < block->last && n < GMO_GROUP_FEATURES; feature++, n++) {
            w->scans[n].feature = feature;
            w->scans[n].bins =
                (feature_bins){part + s->shape->start[feature] - s->shape->start[block->first], NULL, NULL, NULL};
        }
        scan_group(s, node, n, w, best);
    }
}

/* Reads the bins of the node's rows for a group of features, and counts the rows of every bin b in start[b + 1]. */
GMO_INLINE void read_bins(const gmo_splitter *s, const gmo_split_node *node, int64_t first, int32_t n_features,
                          scan_scratch *w) {
    const gmo_binned *data = s->shape->data;
    for (int32_t f = 0; f < n_features; f++)
        memset(w->scans[f].start, 0, (MAX_CELLS + 1) * sizeof *w->scans[f].start);
    for (int64_t i = 0; i < node->n_rows; i++) {
        const uint8_t *bins = data->bins + node->rows[i] * data->n_features + first;
        for (int32_t f = 0; f < n_features; f++) {
            w->row_bin[f * s->small_rows + i] = bins[f];
            w->scans[f].start[bins[f] + 1]++;
        }
    }
}

/* Sorts the node's rows by their bins of a feature; they are not all in the same. */
static void sort_rows(const gmo_splitter *s, const gmo_split_node *node, const uint8_t *row_bin, feature_scan *scan) {
    int32_t n_cells = (int32_t)(s->shape->cell_start[scan->feature + 1] - s->shape->cell_start[scan->feature]);
    int32_t *start = scan->start, next[MAX_CELLS], n_rows = (int32_t)node->n_rows;
    for (int32_t bin = 0; bin < n_cells; bin++) {
        start[bin + 1] += start[bin];
        next[bin] = start[bin];
    }
    for (int32_t i = 0; i < n_rows; i++)
        scan->order[next[row_bin[i]]++] = i;
    scan->bins = (feature_bins){NULL, scan->order, start, node->rows};
}

GMO_CLONES
void gmo_split_scan_small(const gmo_splitter *s, const gmo_split_node *node, const gmo_hist_block *block,
                          gmo_split *best) {
    scan_scratch *w = scratch_of(s, gmo_thread_number());
    for (int64_t first = block->first; first < block->last; first += GMO_GROUP_FEATURES) {
        int32_t n_features = GMO_GROUP_FEATURES, n = 0;
        if (block->last - first >= GMO_GROUP_FEATURES)
            read_bins(s, node, first, GMO_GROUP_FEATURES, w);
        else
            read_bins(s, node, first, n_features = (int32_t)(block->last - first), w);
        for (int32_t f = 0; f < n_features; f++) {
            const uint8_t *row_bin = w->row_bin + f * s->small_rows;
            if (w->scans[f].start[row_bin[0] + 1] == node->n_rows)
                continue; /* all in one bin */
            feature_scan spare = w->scans[n];
            w->scans[n] = w->scans[f];
            w->scans[f] = spare;
            w->scans[n].feature = first + f;
            sort_rows(s, node, row_bin, &w->scans[n++]);
        }
        scan_group(s, node, n, w, best);
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
