#include "bins.h"

#include <math.h>
#include <omp.h>
#include <string.h>

static double matrix_get(const gmo_matrix *x, int64_t row, int64_t col) {
    const char *at = x->data + row * x->row_stride + col * x->col_stride;
    if (x->is_float64) {
        double value;
        memcpy(&value, at, sizeof value);
        return value;
    }
    float value;
    memcpy(&value, at, sizeof value);
    return (double)value;
}

/* An integer that orders as the double does; -0.0 counts as 0.0. */
static uint64_t key_of(double value) {
    value += 0.0;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

static double value_of(uint64_t key) {
    uint64_t bits = key >> 63 ? key & ~((uint64_t)1 << 63) : ~key;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Radix sort by bytes, lowest first; bytes that all keys share are skipped. Returns the buffer that holds the result. */
static uint64_t *sort_keys(uint64_t *keys, uint64_t *spare, int64_t n) {
    for (int shift = 0; shift < 64; shift += 8) {
        int64_t start[256] = {0};
        for (int64_t i = 0; i < n; i++)
            start[keys[i] >> shift & 255]++;
        if (start[keys[0] >> shift & 255] == n)
            continue;
        int64_t sum = 0;
        for (int b = 0; b < 256; b++) {
            int64_t count = start[b];
            start[b] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++)
            spare[start[keys[i] >> shift & 255]++] = keys[i];
        uint64_t *swap = keys;
        keys = spare;
        spare = swap;
    }
    return keys;
}

static int32_t edges_between_all(const double *values, int64_t n_values, double *edges) {
    for (int64_t i = 0; i + 1 < n_values; i++)
        edges[i] = gmo_midpoint(values[i], values[i + 1]);
    return (int32_t)(n_values - 1);
}

int32_t gmo_edges_quantile(const double *values, const int64_t *counts, int64_t n_values, int32_t max_bins,
                           double *edges) {
    if (n_values <= max_bins)
        return n_values ? edges_between_all(values, n_values, edges) : 0;
    int64_t n = 0, seen = 0;
    for (int64_t i = 0; i < n_values; i++)
        n += counts[i];
    int32_t n_edges = 0;
    double target = (double)n / max_bins;
    for (int64_t i = 0; i + 1 < n_values && n_edges < max_bins - 1; i++) {
        seen += counts[i];
        if ((double)seen < target)
            continue;
        edges[n_edges++] = gmo_midpoint(values[i], values[i + 1]);
        target = (double)seen + (double)(n - seen) / (max_bins - n_edges);
    }
    return n_edges;
}

/* The rule of the released program (commit 639615f): the first target is a number of distinct values, not of rows, and an
 * edge is a value of the column. */
int32_t gmo_edges_released(const double *values, const int64_t *counts, int64_t n_values, int32_t max_bins,
                           double *edges) {
    if (n_values <= 1)
        return 0;
    if (n_values == 2) {
        double total = (double)(counts[0] + counts[1]);
        edges[0] = values[0] * ((double)counts[0] / total) + values[1] * ((double)counts[1] / total);
        if (!(edges[0] >= values[0] && edges[0] < values[1]))
            edges[0] = values[0];
        return 1;
    }
    if (n_values <= max_bins)
        return edges_between_all(values, n_values, edges);
    int64_t n = 0, seen = 0;
    for (int64_t i = 0; i < n_values; i++)
        n += counts[i];
    int32_t n_edges = 0;
    double target = (double)n_values / max_bins;
    for (int64_t i = 0; i < n_values && n_edges < max_bins - 1; i++) {
        seen += counts[i];
        if ((double)seen < target)
            continue;
        edges[n_edges++] = values[i];
        target = (double)seen + (double)(n - seen) / (max_bins - n_edges);
    }
    return n_edges;
}

/* Working memory of one thread, for a column of n rows. */
typedef struct {
    uint64_t *keys, *spare;
    double *values;
    int64_t *counts;
} column_scratch;

static void scratch_free(column_scratch *s) {
    free(s->keys);
    free(s->spare);
    free(s->values);
    free(s->counts);
}

static bool scratch_init(column_scratch *s, int64_t n) {
    s->keys = gmo_alloc(n, sizeof *s->keys);
    s->spare = gmo_alloc(n, sizeof *s->spare);
    s->values = gmo_alloc(n, sizeof *s->values);
    s->counts = gmo_alloc(n, sizeof *s->counts);
    return s->keys && s->spare && s->values && s->counts;
}

static int32_t column_edges(const gmo_matrix *x, int64_t col, int32_t rule, int32_t max_bins, column_scratch *s,
                            double *edges, uint8_t *has_missing) {
    int64_t n = 0;
    for (int64_t i = 0; i < x->n_rows; i++) {
        double value = matrix_get(x, i, col);
        if (!isnan(value))
            s->keys[n++] = key_of(value);
    }
    *has_missing = n < x->n_rows;
    if (n == 0)
        return 0;
    const uint64_t *sorted = sort_keys(s->keys, s->spare, n);
    int64_t n_values = 0;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || sorted[i] != sorted[i - 1]) {
            s->values[n_values] = value_of(sorted[i]);
            s->counts[n_values++] = 0;
        }
        s->counts[n_values - 1]++;
    }
    return rule == GMO_BINNING_RELEASED ? gmo_edges_released(s->values, s->counts, n_values, max_bins, edges)
                                        : gmo_edges_quantile(s->values, s->counts, n_values, max_bins, edges);
}

gmo_status gmo_bins_fit(const gmo_matrix *x, int32_t rule, int32_t max_bins, int32_t n_threads, double *edges,
                        int32_t *n_edges, uint8_t *has_missing) {
    if (max_bins < 2 || max_bins > 255 || n_threads < 1)
        return GMO_ERR_ARGUMENT;
    int failed = 0;
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, x -> n_rows * x->n_cols * 32))
    {
        column_scratch scratch = {0};
        bool ready = scratch_init(&scratch, x->n_rows);
        if (!ready) {
#pragma omp atomic write
            failed = 1;
        }
#pragma omp for schedule(dynamic, 8)
        for (int64_t col = 0; col < x->n_cols; col++)
            if (ready)
                n_edges[col] =
                    column_edges(x, col, rule, max_bins, &scratch, edges + col * (max_bins - 1), &has_missing[col]);
        scratch_free(&scratch);
    }
    return failed ? GMO_ERR_MEMORY : GMO_OK;
}

/* Number of edges below value: the first bin b with value <= edge b, by bisection. */
static uint8_t bin_of(double value, const double *edges, int64_t n_edges) {
    if (isnan(value))
        return (uint8_t)(n_edges + 1);
    int64_t low = 0, high = n_edges;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (value <= edges[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return (uint8_t)low;
}

gmo_status gmo_bins_apply(const gmo_matrix *x, const double *edges, const int64_t *edge_start, int32_t n_threads,
                          uint8_t *bins) {
    if (n_threads < 1)
        return GMO_ERR_ARGUMENT;
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, x->n_rows * x->n_cols * 8))
    for (int64_t i = 0; i < x->n_rows; i++)
        for (int64_t f = 0; f < x->n_cols; f++)
            bins[i * x->n_cols + f] =
                bin_of(matrix_get(x, i, f), edges + edge_start[f], edge_start[f + 1] - edge_start[f]);
    return GMO_OK;
}
