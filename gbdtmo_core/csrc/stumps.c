/* AdaBoost.MH with real-valued decision stumps.
 *
 * Source: Schapire & Singer, "BoosTexter", Machine Learning 39 (2000), fig. 1 and section 4.1; "Improved boosting algorithms
 * using confidence-rated predictions", Machine Learning 37 (1999), sections 3 and 4.2.
 *
 * A weight D(i, l) for every row and label, Y(i, l) = 1 or -1 for a relevant or irrelevant label. With W+ and W- the
 * weights of relevant and irrelevant pairs of a label l on a side j of a stump:
 *   score  c_jl = 1/2 ln((W+ + eps) / (W- + eps)),
 *   chosen by the least  Z = 2 sum_j sum_l sqrt(W+ W-),
 *   then  D(i, l) <- D(i, l) exp(-Y(i, l) c_jl) / normaliser.
 *
 * Weights are kept as logarithms, so that none is ever lost; for sums they are taken relative to the largest and rounded to
 * multiples of a power of two, one for each label and round, such that float64 adds them exactly. So no sum depends on the
 * order of rows or on threads, a side is exactly the total less the other, and stumps that part the rows alike tie. */
#include "common.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Labels are padded to whole vectors of so many. */
#define LANES 8
typedef double double8 __attribute__((vector_size(64), may_alias));
typedef int64_t bits8 __attribute__((vector_size(64), may_alias));

/* Rows that a feature's search takes at a time. */
#define BLOCK_ROWS 16
/* Candidates in a block from which on a bound of all is cheaper than their values. */
#define BOUNDED_CANDIDATES 4
/* What rounding may do to a bound or a value, generously. */
#define SLACK 1e-9

/* Weights of every label over some rows: W+ plus W-, and W+ minus W-. */
typedef struct {
    double *sum, *difference; /* (stride,) */
} sums;

/* A thread's working memory, and the best stump it has found: the rows up to `at` in the feature's order are side 0. */
typedef struct {
    double *memory;
    sums left, before; /* rows up to here, and up to the block */
    double *term;      /* (stride,) */
    double best;       /* Z of the best stump, not normalised */
    int64_t feature, at;
} searcher;

struct gmo_stump_booster {
    gmo_stump_rows rows;
    double smoothing;
    int32_t n_threads;
    int64_t stride;     /* labels, padded */
    uint32_t *order;    /* (n_features, n_rows) rows by value: twice the row, + 1 where the next value is larger */
    double *log_weight; /* (n_rows, stride) ln D but for a constant; -infinity in padding */
    double *weight;     /* (n_rows, stride) Y D but for a factor, rounded */
    double *unit;       /* (stride,) powers of two; a label's weights are rounded to multiples of 2^-52 of its own */
    sums total;
    double grand;        /* sum of all weights */
    double *leaf;        /* (2, stride) scores of the stump just found */
    searcher *searchers; /* (n_threads,) */
};

static const double *value_of(const gmo_stump_rows *rows, uint32_t entry, int64_t f) {
    return rows->x + (int64_t)(entry >> 1) * rows->n_features + f;
}

/* ---- Rows in the order of their values ---- */

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

static gmo_status sort_features(gmo_stump_booster *b) {
    int64_t n = b->rows.n_rows, m = b->rows.n_features, size;
    if (!gmo_size_mul(n, b->n_threads, &size))
        return GMO_ERR_SIZE;
    sorted_value *sorted = gmo_alloc(size, sizeof *sorted);
    if (!sorted)
        return GMO_ERR_MEMORY;
#pragma omp parallel num_threads(b->n_threads) if (GMO_PARALLEL(b -> n_threads, n * m))
    {
        gmo_range part = gmo_thread_range(m);
        for (int64_t f = part.first; f < part.last; f++)
            sort_feature(&b->rows, f, sorted + gmo_thread_number() * n, b->order + f * n);
    }
    free(sorted);
    return GMO_OK;
}

/* ---- Weights ---- */

/* ln of the first D: the rows' weights. */
static void start_weights(gmo_stump_booster *b) {
    for (int64_t i = 0; i < b->rows.n_rows; i++)
        for (int64_t l = 0; l < b->stride; l++)
            b->log_weight[i * b->stride + l] =
                l >= b->rows.n_labels ? -INFINITY : (b->rows.weight ? log(b->rows.weight[i]) : 0);
}

GMO_CLONES
static double largest_of(const double *values, int64_t n) {
    double lanes[LANES], largest = -INFINITY;
    for (int i = 0; i < LANES; i++)
        lanes[i] = -INFINITY;
    for (int64_t k = 0; k < n; k += LANES)
        for (int i = 0; i < LANES; i++)
            lanes[i] = values[k + i] > lanes[i] ? values[k + i] : lanes[i];
    for (int i = 0; i < LANES; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
}

static void exponentials(gmo_stump_booster *b, double largest, gmo_range part) {
    for (int64_t k = part.first * b->stride; k < part.last * b->stride; k++)
        b->weight[k] = exp(b->log_weight[k] - largest);
}

/* Column sums of the weights, each rounded as (weight + unit) - unit: exact, if unit is at least their sum. */
GMO_CLONES
static void sum_rounded(const double *weight, int64_t n_rows, int64_t stride, const double *unit, double *sum) {
    memset(sum, 0, (size_t)stride * sizeof *sum);
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t l = 0; l < stride; l++)
            sum[l] += (weight[i * stride + l] + unit[l]) - unit[l];
}

GMO_CLONES
static void column_maxima(const double *weight, int64_t n_rows, int64_t stride, double *largest) {
    memset(largest, 0, (size_t)stride * sizeof *largest);
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t l = 0; l < stride; l++)
            largest[l] = weight[i * stride + l] > largest[l] ? weight[i * stride + l] : largest[l];
}

/* The least power of two above x; 0 for 0. */
static double power_above(double x) {
    int exponent;
    frexp(x, &exponent);
    return x > 0 ? ldexp(1, exponent) : 0;
}

/* Units that the columns' sums do not exceed: first from their maxima, then from sums rounded with these, so that they are
 * near the sums and do not depend on the order of rows. */
static void find_units(gmo_stump_booster *b) {
    int64_t n = b->rows.n_rows;
    double *sum = b->total.sum;
    column_maxima(b->weight, n, b->stride, b->unit);
    for (int64_t l = 0; l < b->stride; l++)
        b->unit[l] = power_above((double)n * b->unit[l]);
    sum_rounded(b->weight, n, b->stride, b->unit, sum);
    for (int64_t l = 0; l < b->stride; l++) {
        double bound = power_above(sum[l] + (double)n * (DBL_EPSILON / 2) * b->unit[l]);
        b->unit[l] = bound < b->unit[l] ? bound : b->unit[l];
    }
}

/* Rounds the weights and gives them the sign of Y. */
GMO_CLONES
static void round_weights(const gmo_stump_rows *rows, int64_t stride, const double *unit, double *weight) {
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const uint8_t *relevant = rows->indicator + i * rows->n_labels;
        double *w = weight + i * stride;
        for (int64_t l = 0; l < rows->n_labels; l++) {
            double rounded = (w[l] + unit[l]) - unit[l];
            w[l] = relevant[l] ? rounded : -rounded;
        }
    }
}

/* Adds the weights of rows in this order to sums, eight labels at a time. */
GMO_INLINE void add_rows(const double *weight, int64_t stride, const uint32_t *order, int64_t n, const sums *to) {
    for (int64_t l = 0; l < stride; l += LANES) {
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

GMO_CLONES
static void sum_all(gmo_stump_booster *b) {
    memset(b->total.sum, 0, (size_t)b->stride * sizeof(double));
    memset(b->total.difference, 0, (size_t)b->stride * sizeof(double));
    add_rows(b->weight, b->stride, b->order, b->rows.n_rows, &b->total);
    b->grand = 0;
    for (int64_t l = 0; l < b->rows.n_labels; l++)
        b->grand += b->total.sum[l];
}

static void find_weights(gmo_stump_booster *b) {
    int64_t n = b->rows.n_rows;
    double largest = largest_of(b->log_weight, n * b->stride);
#pragma omp parallel num_threads(b->n_threads) if (GMO_PARALLEL(b -> n_threads, n * b->stride * 16))
    exponentials(b, largest, gmo_thread_range(n));
    find_units(b);
    round_weights(&b->rows, b->stride, b->unit, b->weight);
    sum_all(b);
}

/* ---- Search ---- */

/* sqrt(4 W+ W-) of the left side plus that of the right one, from twice the relevant and irrelevant weight of the left. */
GMO_INLINE double both_sides(double plus, double minus, double all_plus, double all_minus) {
    return sqrt(plus * minus) + sqrt((all_plus - plus) * (all_minus - minus));
}

GMO_INLINE double sum_terms(const double *term, int64_t stride) {
    double8 s = {0};
    for (int64_t l = 0; l < stride; l += LANES)
        s += *(const double8 *)(term + l);
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* Z of a stump with these sums on its left. */
GMO_INLINE double value_of_split(const sums *left, const sums *total, int64_t stride, double *restrict term) {
    for (int64_t l = 0; l < stride; l++)
        term[l] = both_sides(left->sum[l] + left->difference[l], left->sum[l] - left->difference[l],
                             total->sum[l] + total->difference[l], total->sum[l] - total->difference[l]);
    return sum_terms(term, stride);
}

GMO_INLINE double smaller(double a, double b) { return a < b ? a : b; }

/* A lower bound of Z for every stump whose left side lies between two sums. sqrt(W+ W-) is concave, and so is a label's
 * share of Z in what the left side holds: over a box it is least in a corner. */
GMO_INLINE double bound_of_block(const sums *low, const sums *high, const sums *total, int64_t stride,
                                 double *restrict term) {
    for (int64_t l = 0; l < stride; l++) {
        double plus0 = low->sum[l] + low->difference[l], minus0 = low->sum[l] - low->difference[l];
        double plus1 = high->sum[l] + high->difference[l], minus1 = high->sum[l] - high->difference[l];
        double plus = total->sum[l] + total->difference[l], minus = total->sum[l] - total->difference[l];
        term[l] = smaller(smaller(both_sides(plus0, minus0, plus, minus), both_sides(plus1, minus1, plus, minus)),
                          smaller(both_sides(plus0, minus1, plus, minus), both_sides(plus1, minus0, plus, minus)));
    }
    return sum_terms(term, stride);
}

GMO_INLINE void copy_sums(const sums *from, const sums *to, int64_t stride) {
    memcpy(to->sum, from->sum, (size_t)stride * sizeof(double));
    memcpy(to->difference, from->difference, (size_t)stride * sizeof(double));
}

/* Values of all candidates of a block, from the sums before it on. */
GMO_INLINE void search_block(const gmo_stump_booster *b, searcher *s, int64_t f, int64_t first, int64_t last) {
    const uint32_t *order = b->order + f * b->rows.n_rows;
    for (int64_t k = first; k < last; k++) {
        add_rows(b->weight, b->stride, order + k, 1, &s->before);
        if (!(order[k] & 1))
            continue;
        double value = value_of_split(&s->before, &b->total, b->stride, s->term);
        if (value < s->best) {
            s->best = value;
            s->feature = f;
            s->at = k;
        }
    }
}

GMO_CLONES
static void search_feature(const gmo_stump_booster *b, searcher *s, int64_t f) {
    int64_t n = b->rows.n_rows;
    const uint32_t *order = b->order + f * n;
    memset(s->left.sum, 0, (size_t)b->stride * sizeof(double));
    memset(s->left.difference, 0, (size_t)b->stride * sizeof(double));
    for (int64_t first = 0; first < n; first += BLOCK_ROWS) {
        int64_t last = first + BLOCK_ROWS < n ? first + BLOCK_ROWS : n;
        int32_t candidates = 0;
        for (int64_t k = first; k < last; k++)
            candidates += order[k] & 1;
        copy_sums(&s->left, &s->before, b->stride);
        add_rows(b->weight, b->stride, order + first, last - first, &s->left);
        if (candidates == 0)
            continue;
        if (candidates >= BOUNDED_CANDIDATES &&
            bound_of_block(&s->before, &s->left, &b->total, b->stride, s->term) * (1 - SLACK) >= s->best)
            continue;
        search_block(b, s, f, first, last);
    }
}

/* The best stump: the first of those with the least Z. Its feature is -1 if no feature has two values. */
static const searcher *search(gmo_stump_booster *b) {
    int64_t m = b->rows.n_features;
    for (int32_t t = 0; t < b->n_threads; t++) {
        b->searchers[t].best = INFINITY;
        b->searchers[t].feature = -1;
    }
#pragma omp parallel num_threads(b->n_threads) if (GMO_PARALLEL(b -> n_threads, b->rows.n_rows * m * b->stride))
    {
        gmo_range part = gmo_thread_range(m);
        for (int64_t f = part.first; f < part.last; f++)
            search_feature(b, &b->searchers[gmo_thread_number()], f);
    }
    const searcher *best = b->searchers;
    for (int32_t t = 1; t < b->n_threads; t++)
        if (b->searchers[t].best < best->best)
            best = &b->searchers[t];
    return best;
}

/* ---- A round ---- */

/* Halves first, so that the sum cannot overflow; at least a, below b, so that a and b stay apart. */
static double midpoint(double a, double b) {
    double middle = a / 2 + b / 2;
    return middle >= a && middle < b ? middle : a;
}

/* Scores of a side, and its share of the normaliser, sum of D exp(-Y c). */
static double score_side(const gmo_stump_booster *b, const sums *side, double *leaf) {
    double share = 0;
    for (int64_t l = 0; l < b->rows.n_labels; l++) {
        double plus = (side->sum[l] + side->difference[l]) / 2 / b->grand;
        double minus = (side->sum[l] - side->difference[l]) / 2 / b->grand;
        leaf[l] = (log(plus + b->smoothing) - log(minus + b->smoothing)) / 2;
        share += plus * exp(-leaf[l]) + minus * exp(leaf[l]);
    }
    return share;
}

/* Scores of both sides of the stump found; returns the normaliser. */
static double score_leaves(gmo_stump_booster *b, const searcher *found) {
    sums side = b->searchers->left, other = b->searchers->before;
    if (found->feature < 0) {
        double normalizer = score_side(b, &b->total, b->leaf);
        memcpy(b->leaf + b->stride, b->leaf, (size_t)b->stride * sizeof(double));
        return normalizer;
    }
    memset(side.sum, 0, (size_t)b->stride * sizeof(double));
    memset(side.difference, 0, (size_t)b->stride * sizeof(double));
    add_rows(b->weight, b->stride, b->order + found->feature * b->rows.n_rows, found->at + 1, &side);
    for (int64_t l = 0; l < b->stride; l++) {
        other.sum[l] = b->total.sum[l] - side.sum[l];
        other.difference[l] = b->total.difference[l] - side.difference[l];
    }
    return score_side(b, &side, b->leaf) + score_side(b, &other, b->leaf + b->stride);
}

GMO_CLONES
static void update_weights(gmo_stump_booster *b, int64_t feature, double threshold) {
    const gmo_stump_rows *rows = &b->rows;
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const uint8_t *relevant = rows->indicator + i * rows->n_labels;
        const double *leaf = b->leaf;
        double *log_weight = b->log_weight + i * b->stride;
        if (feature >= 0 && rows->x[i * rows->n_features + feature] > threshold)
            leaf += b->stride;
        for (int64_t l = 0; l < rows->n_labels; l++)
            log_weight[l] -= relevant[l] ? leaf[l] : -leaf[l];
    }
}

static void boost_round(gmo_stump_booster *b, const gmo_stumps *out, int64_t t) {
    int64_t q = b->rows.n_labels;
    find_weights(b);
    const searcher *found = search(b);
    double threshold = INFINITY;
    if (found->feature >= 0) {
        const uint32_t *at = b->order + found->feature * b->rows.n_rows + found->at;
        threshold = midpoint(*value_of(&b->rows, at[0], found->feature), *value_of(&b->rows, at[1], found->feature));
    }
    out->feature[t] = (int32_t)found->feature;
    out->threshold[t] = threshold;
    out->normalizer[t] = score_leaves(b, found);
    for (int side = 0; side < 2; side++)
        memcpy(out->leaf_scores + (2 * t + side) * q, b->leaf + side * b->stride, (size_t)q * sizeof(double));
    update_weights(b, found->feature, threshold);
}

gmo_status gmo_stump_booster_boost(gmo_stump_booster *b, const gmo_stumps *out, int64_t first, int64_t last) {
    if (out->n_labels != b->rows.n_labels || first < 0 || first > last || last > out->n_stumps)
        return GMO_ERR_ARGUMENT;
    for (int64_t t = first; t < last; t++)
        boost_round(b, out, t);
    return GMO_OK;
}

/* ---- Lifetime ---- */

static bool searcher_init(searcher *s, int64_t stride) {
    s->memory = gmo_alloc(5 * stride, sizeof *s->memory);
    if (!s->memory)
        return false;
    s->left = (sums){s->memory, s->memory + stride};
    s->before = (sums){s->memory + 2 * stride, s->memory + 3 * stride};
    s->term = s->memory + 4 * stride;
    return true;
}

static gmo_status booster_init(gmo_stump_booster *b) {
    int64_t n = b->rows.n_rows, m = b->rows.n_features, cells, entries;
    if (n > GMO_MAX_ROWS || m > INT32_MAX || !gmo_size_mul(n, b->stride, &cells) || cells > INT64_MAX / 16 ||
        !gmo_size_mul(n, m, &entries) || !gmo_size_mul(entries, b->stride, &(int64_t){0}))
        return GMO_ERR_SIZE;
    b->order = gmo_alloc(entries, sizeof *b->order);
    b->log_weight = gmo_alloc(cells, sizeof *b->log_weight);
    b->weight = gmo_alloc(cells, sizeof *b->weight);
    b->unit = gmo_alloc(b->stride, sizeof *b->unit);
    b->total.sum = gmo_alloc(b->stride, sizeof *b->total.sum);
    b->total.difference = gmo_alloc(b->stride, sizeof *b->total.difference);
    b->leaf = gmo_alloc_zero(2 * b->stride, sizeof *b->leaf);
    b->searchers = gmo_alloc_zero(b->n_threads, sizeof *b->searchers);
    if (!b->order || !b->log_weight || !b->weight || !b->unit || !b->total.sum || !b->total.difference || !b->leaf ||
        !b->searchers)
        return GMO_ERR_MEMORY;
    for (int32_t t = 0; t < b->n_threads; t++)
        if (!searcher_init(&b->searchers[t], b->stride))
            return GMO_ERR_MEMORY;
    GMO_TRY(sort_features(b));
    start_weights(b);
    return GMO_OK;
}

gmo_status gmo_stump_booster_create(const gmo_stump_rows *rows, double smoothing, int32_t n_threads,
                                    gmo_stump_booster **out) {
    *out = NULL;
    if (rows->n_rows < 1 || rows->n_features < 1 || rows->n_labels < 1 || n_threads < 1 || !(smoothing > 0) ||
        !isfinite(smoothing))
        return GMO_ERR_ARGUMENT;
    gmo_stump_booster *b = gmo_alloc_zero(1, sizeof *b);
    if (!b)
        return GMO_ERR_MEMORY;
    b->rows = *rows;
    b->smoothing = smoothing;
    b->n_threads = n_threads < rows->n_features ? n_threads : (int32_t)rows->n_features;
    b->stride = ((int64_t)rows->n_labels + LANES - 1) / LANES * LANES;
    gmo_status status = booster_init(b);
    if (status != GMO_OK) {
        gmo_stump_booster_free(b);
        return status;
    }
    *out = b;
    return GMO_OK;
}

void gmo_stump_booster_free(gmo_stump_booster *b) {
    if (!b)
        return;
    for (int32_t t = 0; b->searchers && t < b->n_threads; t++)
        free(b->searchers[t].memory);
    void *arrays[] = {b->order,     b->log_weight,       b->weight, b->unit,
                      b->total.sum, b->total.difference, b->leaf,   b->searchers};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    free(b);
}
