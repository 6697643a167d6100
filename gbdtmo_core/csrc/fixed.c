#include "fixed.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Gradients below this count as zero (their squares would vanish), above that as a fault (their squares would overflow). */
#define SMALLEST_EXPONENT (-500)
#define LARGEST_EXPONENT 500
/* Rows taken at once: few enough for float64 sums of integers up to 2^32 to be exact. */
#define CHUNK_ROWS 4096
/* Rows ahead whose memory is asked for. */
#define AHEAD 8

gmo_status gmo_fixed_init(gmo_fixed *fixed, int64_t n_rows, int32_t d, bool has_hessian) {
    /* Whole vectors; of wide rows, whole cache lines. */
    int64_t used = (int64_t)d * (has_hessian ? 2 : 1) + 1, step = used > 32 ? 16 : used > 4 ? 8 : 4, size;
    int64_t stride = (used + step - 1) / step * step;
    if (stride > INT32_MAX / 8 || !gmo_size_mul(n_rows, stride, &size))
        return GMO_ERR_SIZE;
    fixed->d = d;
    fixed->n_rows = n_rows;
    fixed->has_hessian = has_hessian;
    fixed->count_lane = (int32_t)used - 1;
    fixed->stride = (int32_t)stride;
    fixed->rows = gmo_alloc_zero(size + GMO_LANES, sizeof *fixed->rows);
    fixed->gradient_unit = gmo_alloc_zero(d + GMO_LANES, sizeof(double));
    fixed->hessian_unit = gmo_alloc_zero(d + GMO_LANES, sizeof(double));
    if (!fixed->rows || !fixed->gradient_unit || !fixed->hessian_unit)
        return GMO_ERR_MEMORY;
    for (int64_t i = 0; i < n_rows; i++)
        fixed->rows[i * stride + fixed->count_lane] = 1;
    return GMO_OK;
}

void gmo_fixed_free(gmo_fixed *fixed) {
    free(fixed->rows);
    free(fixed->gradient_unit);
    free(fixed->hessian_unit);
    memset(fixed, 0, sizeof *fixed);
}

/* All rows of d columns. */
typedef struct {
    gmo_derivatives from;
    int64_t n_rows;
    int32_t d;
} columns;

/* What is found about each of the d columns, and working memory. */
typedef struct {
    double *largest;        /* magnitude; infinite if a value is no number */
    double *scale;          /* a power of two */
    uint64_t *plus, *minus; /* sums of the values of either sign times scale, each rounded up */
    double *chunk;          /* (n_threads, 3 d): sums of a chunk of rows, and a row */
} bounds;

static gmo_status bounds_init(bounds *b, int32_t d, int32_t n_threads) {
    int64_t size;
    if (!gmo_size_mul(d, 4 + 3 * (int64_t)n_threads, &size))
        return GMO_ERR_SIZE;
    double *memory = gmo_alloc(size, sizeof *memory);
    if (!memory)
        return GMO_ERR_MEMORY;
    *b = (bounds){memory, memory + d, (uint64_t *)(memory + 2 * (int64_t)d), (uint64_t *)(memory + 3 * (int64_t)d),
                  memory + 4 * (int64_t)d};
    return GMO_OK;
}

/* Largest magnitude of every column over rows first .. last. */
GMO_CLONES
static void chunk_largest(const columns *c, int64_t first, int64_t last, double *largest, double *buffer) {
    memset(largest, 0, (size_t)c->d * sizeof *largest);
    for (int64_t i = first; i < last; i++) {
        const double *row = gmo_derivatives_row(&c->from, i, c->d, buffer);
        for (int32_t j = 0; j < c->d; j++) {
            double magnitude = fabs(row[j]);
            magnitude = magnitude <= DBL_MAX ? magnitude : INFINITY; /* NaN too */
            largest[j] = magnitude > largest[j] ? magnitude : largest[j];
        }
    }
}

/* The integer above value, 0 <= value < 2^52; a whole value counts as below. */
GMO_INLINE double next_integer(double value) {
    const double magic = 4503599627370496.0; /* 2^52: adding it rounds to an integer */
    double nearest = (value + magic) - magic;
    return nearest > value ? nearest : nearest + 1;
}

GMO_CLONES
static void chunk_sums(const columns *c, const double *scale, int64_t first, int64_t last, double *plus, double *minus,
                       double *buffer) {
    memset(plus, 0, (size_t)c->d * sizeof *plus);
    memset(minus, 0, (size_t)c->d * sizeof *minus);
    for (int64_t i = first; i < last; i++) {
        const double *row = gmo_derivatives_row(&c->from, i, c->d, buffer);
        for (int32_t j = 0; j < c->d; j++) {
            double value = row[j] * scale[j], next = next_integer(fabs(value));
            plus[j] += value > 0 ? next : 0;
            minus[j] += value < 0 ? next : 0;
        }
    }
}

static double *thread_chunk(const bounds *b, int32_t d) { return b->chunk + 3 * (int64_t)d * gmo_thread_number(); }

static int64_t chunk_end(const columns *c, int64_t first) {
    return first + CHUNK_ROWS < c->n_rows ? first + CHUNK_ROWS : c->n_rows;
}

static void find_largest(const columns *c, bounds *b, int32_t n_threads) {
    memset(b->largest, 0, (size_t)c->d * sizeof *b->largest);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, c->n_rows * c->d * 4))
    for (int64_t first = 0; first < c->n_rows; first += CHUNK_ROWS) {
        double *own = thread_chunk(b, c->d);
        chunk_largest(c, first, chunk_end(c, first), own, own + c->d);
#pragma omp critical(gmo_fixed_merge)
        for (int32_t j = 0; j < c->d; j++)
            b->largest[j] = own[j] > b->largest[j] ? own[j] : b->largest[j];
    }
}

static void find_sums(const columns *c, bounds *b, int32_t n_threads) {
    memset(b->plus, 0, (size_t)c->d * 2 * sizeof *b->plus);
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, c->n_rows * c->d * 4))
    for (int64_t first = 0; first < c->n_rows; first += CHUNK_ROWS) {
        double *plus = thread_chunk(b, c->d), *minus = plus + c->d;
        chunk_sums(c, b->scale, first, chunk_end(c, first), plus, minus, minus + c->d);
#pragma omp critical(gmo_fixed_merge)
        for (int32_t j = 0; j < c->d; j++) {
            b->plus[j] += (uint64_t)plus[j];
            b->minus[j] += (uint64_t)minus[j];
        }
    }
}

/* The largest k such that bound * 2^k leaves room within int32 for rounding every row by a half. */
static int largest_shift(uint64_t bound, int64_t n_rows) {
    double limit = (double)(INT32_MAX - 1 - n_rows / 2);
    int shift = 0;
    while (ldexp((double)bound, shift) > limit)
        shift--;
    while (ldexp((double)bound, shift + 1) <= limit)
        shift++;
    return shift;
}

/* Finds the scale of every column, and what one integer is then worth. */
static gmo_status find_scales(const columns *c, bounds *b, double *unit, int32_t n_threads) {
    find_largest(c, b, n_threads);
    for (int32_t j = 0; j < c->d; j++) {
        int exponent;
        frexp(b->largest[j], &exponent);
        if (!isfinite(b->largest[j]) || exponent > LARGEST_EXPONENT)
            return GMO_ERR_NUMERIC;
        bool is_zero = b->largest[j] == 0 || exponent < SMALLEST_EXPONENT;
        b->scale[j] = is_zero ? 0 : ldexp(1, 32 - exponent); /* magnitudes below 2^32 */
    }
    find_sums(c, b, n_threads);
    for (int32_t j = 0; j < c->d; j++) {
        unit[j] = 0;
        if (b->scale[j] == 0)
            continue;
        uint64_t bound = b->plus[j] > b->minus[j] ? b->plus[j] : b->minus[j];
        b->scale[j] = ldexp(b->scale[j], largest_shift(bound, c->n_rows));
        unit[j] = 1 / b->scale[j];
    }
    return GMO_OK;
}

GMO_CLONES
static void round_rows(const columns *c, const double *scale, int64_t first, int64_t last, int32_t stride, int32_t *out,
                       double *buffer) {
    /* Adding and taking away 1.5 * 2^52 rounds to the nearest integer, ties to even, and vectorises. */
    const double magic = 6755399441055744.0;
    for (int64_t i = first; i < last; i++) {
        const double *row = gmo_derivatives_row(&c->from, i, c->d, buffer);
        for (int32_t j = 0; j < c->d; j++)
            out[i * stride + j] = (int32_t)((row[j] * scale[j] + magic) - magic);
    }
}

/* Rounds d columns into the lanes from lane on. */
static gmo_status round_columns(gmo_fixed *fixed, const columns *c, int32_t lane, double *unit, int32_t n_threads) {
    bounds b;
    GMO_TRY(bounds_init(&b, c->d, n_threads));
    gmo_status status = find_scales(c, &b, unit, n_threads);
    if (status == GMO_OK) {
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, c->n_rows * c->d * 4))
        for (int64_t first = 0; first < c->n_rows; first += CHUNK_ROWS)
            round_rows(c, b.scale, first, chunk_end(c, first), fixed->stride, fixed->rows + lane,
                       thread_chunk(&b, c->d));
    }
    free(b.largest);
    return status;
}

gmo_status gmo_fixed_round(gmo_fixed *fixed, const gmo_derivatives *gradient, const gmo_derivatives *hessian,
                           int32_t n_threads) {
    columns c = {*gradient, fixed->n_rows, fixed->d};
    GMO_TRY(round_columns(fixed, &c, 0, fixed->gradient_unit, n_threads));
    if (!fixed->has_hessian)
        return GMO_OK;
    c.from = *hessian;
    return round_columns(fixed, &c, fixed->d, fixed->hessian_unit, n_threads);
}

GMO_CLONES
void gmo_fixed_total(const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows, int32_t *total) {
    int32_t stride = fixed->stride;
    memset(total, 0, (size_t)stride * sizeof *total);
    for (int64_t i = 0; i < n_rows; i++) {
        if (rows && i + AHEAD < n_rows)
            for (int32_t j = 0; j < stride; j += 16)
                __builtin_prefetch(fixed->rows + rows[i + AHEAD] * (int64_t)stride + j);
        gmo_add_row(total, fixed->rows + (rows ? rows[i] : i) * (int64_t)stride, stride);
    }
}
