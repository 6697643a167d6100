#include "hist.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* Gradients below this count as zero (their squares would vanish), above that as a fault (their squares would overflow). */
#define SMALLEST_EXPONENT (-500)
#define LARGEST_EXPONENT 500
/* Histogram bytes that the features of a block may take: half of a usual L2 cache. */
#define BLOCK_BYTES ((int64_t)256 << 10)

gmo_status gmo_fixed_init(gmo_fixed *fixed, int64_t n_rows, int32_t d, bool has_hessian) {
    int32_t used = d * (has_hessian ? 2 : 1) + 1, step = used > 4 ? 8 : 4;
    fixed->d = d;
    fixed->n_rows = n_rows;
    fixed->has_hessian = has_hessian;
    fixed->count_lane = used - 1;
    fixed->stride = (used + step - 1) / step * step;
    int64_t size;
    if (!gmo_size_mul(n_rows, fixed->stride, &size))
        return GMO_ERR_SIZE;
    fixed->rows = gmo_alloc_zero(size, sizeof *fixed->rows);
    fixed->gradient_unit = gmo_alloc_zero(d + GMO_LANES, sizeof(double));
    fixed->hessian_unit = gmo_alloc_zero(d + GMO_LANES, sizeof(double));
    if (!fixed->rows || !fixed->gradient_unit || !fixed->hessian_unit)
        return GMO_ERR_MEMORY;
    for (int64_t i = 0; i < n_rows; i++)
        fixed->rows[i * fixed->stride + fixed->count_lane] = 1;
    return GMO_OK;
}

void gmo_fixed_free(gmo_fixed *fixed) {
    free(fixed->rows);
    free(fixed->gradient_unit);
    free(fixed->hessian_unit);
    memset(fixed, 0, sizeof *fixed);
}

static double largest_magnitude(const double *values, int64_t n, int32_t width, int32_t n_threads) {
    double largest = 0;
    bool bad = false;
#pragma omp parallel for reduction(max : largest) reduction(|| : bad)                                                  \
    num_threads(n_threads) if (GMO_PARALLEL(n_threads, n * 16))
    for (int64_t i = 0; i < n; i++) {
        double magnitude = fabs(values[i * width]);
        largest = magnitude > largest ? magnitude : largest;
        bad = bad || !isfinite(magnitude);
    }
    return bad ? INFINITY : largest;
}

/* Sum of the values of one sign, in steps of 2^(exponent - 32), each rounded up: an upper bound that, being a sum of
 * integers, is the same for any order of rows. */
static uint64_t integer_sum(const double *values, int64_t n, int32_t width, int exponent, double sign,
                            int32_t n_threads) {
    double scale = sign * ldexp(1, 32 - exponent);
    uint64_t sum = 0;
#pragma omp parallel for reduction(+ : sum) num_threads(n_threads) if (GMO_PARALLEL(n_threads, n * 16))
    for (int64_t i = 0; i < n; i++) {
        double value = values[i * width] * scale;
        sum += value > 0 ? (uint64_t)value + 1 : 0;
    }
    return sum;
}

/* The largest k such that sums of values * 2^k, each rounded to an integer, stay within int32 on any subset of rows. */
static int scale_exponent(const double *values, int64_t n, int32_t width, int exponent, int32_t n_threads) {
    uint64_t plus = integer_sum(values, n, width, exponent, 1, n_threads);
    uint64_t minus = integer_sum(values, n, width, exponent, -1, n_threads);
    double bound = (double)(plus > minus ? plus : minus);
    double limit = (double)(INT32_MAX - 1 - n / 2);
    int shift = 0;
    while (ldexp(bound, shift) > limit)
        shift--;
    while (ldexp(bound, shift + 1) <= limit)
        shift++;
    return shift + 32 - exponent;
}

/* Rounds one column to integers in lane of every row, and says what one integer is worth. */
static gmo_status round_column(gmo_fixed *fixed, const double *values, int32_t width, int32_t lane, double *unit,
                               int32_t n_threads) {
    int64_t n = fixed->n_rows, stride = fixed->stride;
    double largest = largest_magnitude(values, n, width, n_threads);
    int exponent;
    frexp(largest, &exponent);
    if (!isfinite(largest) || exponent > LARGEST_EXPONENT)
        return GMO_ERR_NUMERIC;
    double scale = 0;
    *unit = 0;
    if (largest > 0 && exponent >= SMALLEST_EXPONENT) {
        int k = scale_exponent(values, n, width, exponent, n_threads);
        scale = ldexp(1, k);
        *unit = ldexp(1, -k);
    }
    /* Adding and taking away 1.5 * 2^52 rounds to the nearest integer, ties to even, and vectorises. */
    const double magic = 6755399441055744.0;
    int32_t *out = fixed->rows + lane;
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, n * 16))
    for (int64_t i = 0; i < n; i++)
        out[i * stride] = (int32_t)((values[i * width] * scale + magic) - magic);
    return GMO_OK;
}

gmo_status gmo_fixed_round(gmo_fixed *fixed, const double *gradient, const double *hessian, int32_t width,
                           int32_t first, int32_t n_threads) {
    for (int32_t j = 0; j < fixed->d; j++) {
        GMO_TRY(round_column(fixed, gradient + first + j, width, j, &fixed->gradient_unit[j], n_threads));
        if (fixed->has_hessian)
            GMO_TRY(round_column(fixed, hessian + first + j, width, fixed->d + j, &fixed->hessian_unit[j], n_threads));
    }
    return GMO_OK;
}

/* Blocks of features in order, each within BLOCK_BYTES and within an even share of the threads. */
static void divide_blocks(gmo_hist_shape *shape, int32_t n_threads) {
    int64_t m = shape->data->n_features, share = (m + n_threads - 1) / n_threads, first = 0;
    shape->n_blocks = 0;
    shape->block_start[0] = 0;
    for (int64_t f = 1; f <= m; f++) {
        int64_t cells = f < m ? shape->cell_start[f + 1] - shape->cell_start[first] : INT64_MAX / 4096;
        if (f == m || f - first >= share || cells * shape->stride * 4 > BLOCK_BYTES) {
            shape->block_start[++shape->n_blocks] = f;
            first = f;
        }
    }
}

gmo_status gmo_hist_shape_init(gmo_hist_shape *shape, const gmo_binned *data, const uint8_t *has_missing,
                               int32_t stride, int32_t n_threads) {
    int64_t m = data->n_features, cells = 0;
    shape->data = data;
    shape->stride = stride;
    shape->cell_start = gmo_alloc(m + 1, sizeof *shape->cell_start);
    shape->block_start = gmo_alloc(m + 1, sizeof *shape->block_start);
    shape->n_bins = gmo_alloc(m, sizeof *shape->n_bins);
    shape->has_missing = gmo_alloc(m, sizeof *shape->has_missing);
    if (!shape->cell_start || !shape->block_start || !shape->n_bins || !shape->has_missing)
        return GMO_ERR_MEMORY;
    for (int64_t f = 0; f < m; f++) {
        shape->cell_start[f] = cells;
        shape->n_bins[f] = (int32_t)(data->edge_start[f + 1] - data->edge_start[f]) + 1;
        shape->has_missing[f] = has_missing[f];
        cells += shape->n_bins[f] + has_missing[f];
    }
    shape->cell_start[m] = cells;
    if (!gmo_size_mul(cells, stride, &shape->size) || shape->size > INT64_MAX / 8)
        return GMO_ERR_SIZE;
    divide_blocks(shape, n_threads);
    return GMO_OK;
}

void gmo_hist_shape_free(gmo_hist_shape *shape) {
    free(shape->cell_start);
    free(shape->block_start);
    free(shape->n_bins);
    free(shape->has_missing);
    memset(shape, 0, sizeof *shape);
}

/* Vectors written out: left to itself, the compiler turns short loops of known length into single additions. */
typedef int32_t vector4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t vector8 __attribute__((vector_size(32), aligned(4), may_alias));

GMO_INLINE void add_cell(int32_t *cell, const int32_t *row, int32_t stride) {
    if (stride == 4) {
        *(vector4 *)cell += *(const vector4 *)row;
        return;
    }
    for (int32_t j = 0; j < stride; j += 8)
        *(vector8 *)(cell + j) += *(const vector8 *)(row + j);
}

/* Adds the rows to the cells of features first .. last. stride is a constant where this is inlined. */
GMO_INLINE void add_rows(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                         int64_t first, int64_t last, int32_t stride, int32_t *hist) {
    int64_t m = shape->data->n_features;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t row = rows ? rows[i] : i;
        const uint8_t *bins = shape->data->bins + row * m;
        const int32_t *add = fixed->rows + row * stride;
        for (int64_t f = first; f < last; f++)
            add_cell(hist + (shape->cell_start[f] + bins[f]) * stride, add, stride);
    }
}

GMO_CLONES
static void add_block(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                      int64_t block, int32_t *hist) {
    int64_t first = shape->block_start[block], last = shape->block_start[block + 1];
    switch (shape->stride) {
    case 4:
        add_rows(shape, fixed, rows, n_rows, first, last, 4, hist);
        break;
    case 8:
        add_rows(shape, fixed, rows, n_rows, first, last, 8, hist);
        break;
    case 16:
        add_rows(shape, fixed, rows, n_rows, first, last, 16, hist);
        break;
    case 24:
        add_rows(shape, fixed, rows, n_rows, first, last, 24, hist);
        break;
    case 32:
        add_rows(shape, fixed, rows, n_rows, first, last, 32, hist);
        break;
    default:
        add_rows(shape, fixed, rows, n_rows, first, last, shape->stride, hist);
    }
}

void gmo_hist_build(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                    int32_t n_threads, int32_t *hist) {
    int64_t adds = n_rows * shape->data->n_features * shape->stride;
#pragma omp parallel for schedule(dynamic, 1) num_threads(n_threads) if (GMO_PARALLEL(n_threads, adds))
    for (int64_t block = 0; block < shape->n_blocks; block++) {
        int64_t begin = shape->cell_start[shape->block_start[block]] * shape->stride;
        int64_t end = shape->cell_start[shape->block_start[block + 1]] * shape->stride;
        memset(hist + begin, 0, (size_t)(end - begin) * sizeof *hist);
        add_block(shape, fixed, rows, n_rows, block, hist);
    }
}

void gmo_hist_subtract(const gmo_hist_shape *shape, int32_t *parent, const int32_t *child, int32_t n_threads) {
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, shape->size))
    for (int64_t i = 0; i < shape->size; i++)
        parent[i] -= child[i];
}
