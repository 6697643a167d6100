#include "stump_search.h"

#include <math.h>
#include <string.h>

typedef double double8 __attribute__((vector_size(64), may_alias));
typedef int64_t bits8 __attribute__((vector_size(64), may_alias));

/* Rows of a feature that are taken at a time. */
#define BLOCK_ROWS 16
/* Candidates in a block from which on a bound of all is cheaper than their values. */
#define BOUNDED_CANDIDATES 4
/* What rounding may do to a bound or a value, generously. */
#define SLACK 1e-9

typedef struct {
    double value;
    uint32_t row;
} sorted_value;

static int compare_values(const void *a, const void *b) {
    const sorted_value *u = a, *v = b;
    if (u->value != v->value)
        return u->value < v->value ? -1 : 1;
    return u->row < v->row ? -1 : u->row > v->row;
}

static void sort_feature(const gmo_stump_rows *rows, int64_t f, sorted_value *sorted, uint32_t *order) {
    int64_t n = rows->n_rows;
    for (int64_t i = 0; i < n; i++)
        sorted[i] = (sorted_value){rows->x[i * rows->n_features + f], (uint32_t)i};
    qsort(sorted, (size_t)n, sizeof *sorted, compare_values);
    for (int64_t k = 0; k < n; k++)
        order[k] = sorted[k].row << 1 | (k + 1 < n && sorted[k].value < sorted[k + 1].value);
}

static gmo_status sort_features(gmo_stump_search *search) {
    const gmo_stump_rows *rows = search->weights->rows;
    int64_t n = rows->n_rows, m = rows->n_features, size;
    if (!gmo_size_mul(n, search->n_threads, &size))
        return GMO_ERR_SIZE;
    sorted_value *sorted = gmo_alloc(size, sizeof *sorted);
    if (!sorted)
        return GMO_ERR_MEMORY;
#pragma omp parallel num_threads(search->n_threads) if (GMO_PARALLEL(search -> n_threads, n * m))
    {
        gmo_range part = gmo_thread_range(m);
        for (int64_t f = part.first; f < part.last; f++)
            sort_feature(rows, f, sorted + gmo_thread_number() * n, search->order + f * n);
    }
    free(sorted);
    return GMO_OK;
}

static bool searcher_init(gmo_stump_searcher *s, int64_t stride) {
    s->memory = gmo_alloc(5 * stride, sizeof *s->memory);
    if (!s->memory)
        return false;
    s->left = (gmo_label_sums){s->memory, s->memory + stride};
    s->before = (gmo_label_sums){s->memory + 2 * stride, s->memory + 3 * stride};
    s->term = s->memory + 4 * stride;
    return true;
}

gmo_status gmo_stump_search_init(gmo_stump_search *search, const gmo_stump_weights *weights, int32_t n_threads) {
    const gmo_stump_rows *rows = weights->rows;
    search->weights = weights;
    search->n_threads = n_threads < rows->n_features ? n_threads : (int32_t)rows->n_features;
    search->order = gmo_alloc(rows->n_rows * rows->n_features, sizeof *search->order);
    search->searchers = gmo_alloc_zero(search->n_threads, sizeof *search->searchers);
    if (!search->order || !search->searchers)
        return GMO_ERR_MEMORY;
    for (int32_t t = 0; t < search->n_threads; t++)
        if (!searcher_init(&search->searchers[t], weights->stride))
            return GMO_ERR_MEMORY;
    return sort_features(search);
}

void gmo_stump_search_free(gmo_stump_search *search) {
    for (int32_t t = 0; search->searchers && t < search->n_threads; t++)
        free(search->searchers[t].memory);
    free(search->searchers);
    free(search->order);
    memset(search, 0, sizeof *search);
}

static void clear(const gmo_label_sums *sums, int64_t stride) {
    memset(sums->sum, 0, (size_t)stride * sizeof *sums->sum);
    memset(sums->difference, 0, (size_t)stride * sizeof *sums->difference);
}

/* Adds the weights of rows in this order to sums, eight labels at a time. */
GMO_INLINE void add_rows(const double *weight, int64_t stride, const uint32_t *order, int64_t n,
                         const gmo_label_sums *to) {
    for (int64_t l = 0; l < stride; l += GMO_LABEL_LANES) {
        double8 sum = *(double8 *)(to->sum + l), difference = *(double8 *)(to->difference + l);
        for (int64_t k = 0; k < n; k++) {
            double8 w = *(const double8 *)(weight + (int64_t)(order[k] >> 1) * stride + l);
            sum += (double8)((bits8)w & INT64_MAX); /* the magnitude */
            difference += w;
        }
        *(double8 *)(to->sum + l) = sum;
        *(double8 *)(to->difference + l) = difference;
    }
}

/* 2 sqrt(W+ W-) of the left side plus that of the right one, from 2 W+ and 2 W- of the left and of both. */
GMO_INLINE double both_sides(double plus, double minus, double all_plus, double all_minus) {
    return sqrt(plus * minus) + sqrt((all_plus - plus) * (all_minus - minus));
}

GMO_INLINE double sum_terms(const double *term, int64_t stride) {
    double8 s = {0};
    for (int64_t l = 0; l < stride; l += GMO_LABEL_LANES)
        s += *(const double8 *)(term + l);
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Z of a stump with these sums on its left. */
GMO_INLINE double value_of_split(const gmo_label_sums *left, const gmo_label_sums *total, int64_t stride,
                                 double *restrict term) {
    for (int64_t l = 0; l < stride; l++)
        term[l] = both_sides(left->sum[l] + left->difference[l], left->sum[l] - left->difference[l],
                             total->sum[l] + total->difference[l], total->sum[l] - total->difference[l]);
    return sum_terms(term, stride);
}

GMO_INLINE double smaller(double a, double b) { return a < b ? a : b; }

/* A lower bound of Z for every stump whose left side lies between two sums. sqrt(W+ W-) is concave, and so is a label's
 * share of Z in what the left side holds: over a box it is least in a corner. */
GMO_INLINE double bound_of_block(const gmo_label_sums *low, const gmo_label_sums *high, const gmo_label_sums *total,
                                 int64_t stride, double *restrict term) {
    for (int64_t l = 0; l < stride; l++) {
        double plus0 = low->sum[l] + low->difference[l], minus0 = low->sum[l] - low->difference[l];
        double plus1 = high->sum[l] + high->difference[l], minus1 = high->sum[l] - high->difference[l];
        double plus = total->sum[l] + total->difference[l], minus = total->sum[l] - total->difference[l];
        term[l] = smaller(smaller(both_sides(plus0, minus0, plus, minus), both_sides(plus1, minus1, plus, minus)),
                          smaller(both_sides(plus0, minus1, plus, minus), both_sides(plus1, minus0, plus, minus)));
    }
    return sum_terms(term, stride);
}

GMO_INLINE void copy_sums(const gmo_label_sums *from, const gmo_label_sums *to, int64_t stride) {
    memcpy(to->sum, from->sum, (size_t)stride * sizeof *to->sum);
    memcpy(to->difference, from->difference, (size_t)stride * sizeof *to->difference);
}

/* Values of the candidates among n rows of a feature, in order from row k on, starting with the sums before them. */
GMO_INLINE void search_block(const gmo_stump_weights *w, const uint32_t *order, int64_t n, int64_t f, int64_t k,
                             gmo_stump_searcher *s) {
    for (int64_t i = 0; i < n; i++) {
        add_rows(w->weight, w->stride, order + i, 1, &s->before);
        if (!(order[i] & 1))
            continue;
        double value = value_of_split(&s->before, &w->total, w->stride, s->term);
        if (value < s->best) {
            s->best = value;
            s->feature = f;
            s->at = k + i;
        }
    }
}

GMO_CLONES
static void search_feature(const gmo_stump_weights *w, const uint32_t *order, int64_t f, gmo_stump_searcher *s) {
    int64_t n_rows = w->rows->n_rows;
    clear(&s->left, w->stride);
    for (int64_t k = 0; k < n_rows; k += BLOCK_ROWS) {
        int64_t n = n_rows - k < BLOCK_ROWS ? n_rows - k : BLOCK_ROWS;
        int32_t candidates = 0;
        for (int64_t i = k; i < k + n; i++)
            candidates += order[i] & 1;
        copy_sums(&s->left, &s->before, w->stride);
        add_rows(w->weight, w->stride, order + k, n, &s->left);
        if (candidates == 0)
            continue;
        if (candidates >= BOUNDED_CANDIDATES &&
            bound_of_block(&s->before, &s->left, &w->total, w->stride, s->term) * (1 - SLACK) >= s->best)
            continue;
        search_block(w, order + k, n, f, k, s);
    }
}

/* Threads take the features in order: of equal values the first thread's is the lowest feature. */
static const gmo_stump_searcher *search_all(gmo_stump_search *search) {
    const gmo_stump_rows *rows = search->weights->rows;
    int64_t m = rows->n_features, work = rows->n_rows * m * search->weights->stride;
    for (int32_t t = 0; t < search->n_threads; t++) {
        search->searchers[t].best = INFINITY;
        search->searchers[t].feature = -1;
    }
#pragma omp parallel num_threads(search->n_threads) if (GMO_PARALLEL(search -> n_threads, work))
    {
        gmo_range part = gmo_thread_range(m);
        for (int64_t f = part.first; f < part.last; f++)
            search_feature(search->weights, search->order + f * rows->n_rows, f,
                           &search->searchers[gmo_thread_number()]);
    }
    const gmo_stump_searcher *best = search->searchers;
    for (int32_t t = 1; t < search->n_threads; t++)
        if (search->searchers[t].best < best->best)
            best = &search->searchers[t];
    return best;
}

void gmo_stump_search_run(gmo_stump_search *search, gmo_stump_found *found) {
    const gmo_stump_weights *w = search->weights;
    const gmo_stump_searcher *best = search_all(search);
    found->feature = best->feature;
    found->threshold = INFINITY;
    if (best->feature < 0)
        return;
    const uint32_t *order = search->order + best->feature * w->rows->n_rows;
    const double *column = w->rows->x + best->feature;
    found->threshold = gmo_midpoint(column[(int64_t)(order[best->at] >> 1) * w->rows->n_features],
                                    column[(int64_t)(order[best->at + 1] >> 1) * w->rows->n_features]);
    clear(&found->side, w->stride);
    add_rows(w->weight, w->stride, order, best->at + 1, &found->side);
}
