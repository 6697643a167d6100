/* Kernels of rows of numbers, from their products or their squared distances. These are summed in the order of the features,
 * one after the other, so that an entry's bits do not depend on its block. Distances are sums of squares, not
 * |x|^2 + |y|^2 - 2 x.y: far from the origin nothing would be left of that. */
#include "common.h"

#include <math.h>
#include <string.h>

/* Rows of y side by side in a panel; with the products of one row of x it stays in the nearest caches. */
enum { PANEL = 64 };

typedef double panel_row[PANEL];

GMO_INLINE double power(double base, int32_t degree) {
    double result = 1;
    for (; degree; degree >>= 1, base *= base)
        if (degree & 1)
            result *= base;
    return result;
}

/* Kernel values from products, or from squared distances. */
static void finish(const gmo_kernel *kernel, int64_t count, double *out) {
    if (kernel->kind == GMO_KERNEL_POLY)
        for (int64_t j = 0; j < count; j++)
            out[j] = power(kernel->gamma * out[j] + kernel->coef0, kernel->degree);
    if (kernel->kind == GMO_KERNEL_RBF)
        for (int64_t j = 0; j < count; j++)
            out[j] = exp(-kernel->gamma * out[j]);
}

static double squared_norm(const gmo_features *x, int64_t row) {
    int64_t first = x->row_start ? x->row_start[row] : row * x->n_features,
            last = x->row_start ? x->row_start[row + 1] : first + x->n_features;
    double sum = 0;
    for (int64_t i = first; i < last; i++)
        sum += x->values[i] * x->values[i];
    return sum;
}

static void fill_panel(const gmo_features *y, int64_t first, int64_t count, panel_row *panel) {
    for (int64_t f = 0; f < y->n_features; f++)
        for (int64_t j = 0; j < PANEL; j++)
            panel[f][j] = j < count ? y->values[(first + j) * y->n_features + f] : 0;
}

/* Products of a row of x with the rows of a panel. */
GMO_CLONES
static void multiply(const double *restrict x, int64_t n_features, const panel_row *restrict panel,
                     double *restrict product) {
    for (int32_t j = 0; j < PANEL; j++)
        product[j] = 0;
    for (int64_t f = 0; f < n_features; f++)
        for (int32_t j = 0; j < PANEL; j++)
            product[j] += x[f] * panel[f][j];
}

/* Squared distances of a row of x from the rows of a panel. */
GMO_CLONES
static void measure(const double *restrict x, int64_t n_features, const panel_row *restrict panel,
                    double *restrict square) {
    for (int32_t j = 0; j < PANEL; j++)
        square[j] = 0;
    for (int64_t f = 0; f < n_features; f++)
        for (int32_t j = 0; j < PANEL; j++) {
            double difference = x[f] - panel[f][j];
            square[j] += difference * difference;
        }
}

/* Columns first .. first + count of the block, for dense rows. */
static void dense_columns(bool distances, const gmo_features *x, int64_t x_first, int64_t x_last, const gmo_features *y,
                          int64_t first, int64_t count, panel_row *panel, double *out) {
    panel_row values;
    fill_panel(y, first, count, panel);
    for (int64_t i = x_first; i < x_last; i++) {
        (distances ? measure : multiply)(x->values + i * x->n_features, x->n_features, panel, values);
        memcpy(out + (i - x_first) * y->n_rows + first, values, (size_t)count * sizeof *values);
    }
}

static gmo_status dense_block(bool distances, const gmo_features *x, int64_t first, int64_t last, const gmo_features *y,
                              int32_t n_threads, double *out) {
    int64_t n_panels = (y->n_rows + PANEL - 1) / PANEL;
    bool failed = false;
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, (last - first) * y -> n_rows))
    {
        panel_row *panel = gmo_alloc(x->n_features, sizeof *panel);
        gmo_range range = gmo_thread_range(n_panels);
        if (!panel) {
#pragma omp atomic write
            failed = true;
        }
        for (int64_t p = range.first; panel && p < range.last; p++) {
            int64_t rest = y->n_rows - p * PANEL;
            dense_columns(distances, x, first, last, y, p * PANEL, rest < PANEL ? rest : PANEL, panel, out);
        }
        free(panel);
    }
    return failed ? GMO_ERR_MEMORY : GMO_OK;
}

static double sparse_product(const gmo_features *y, int64_t row, const double *spread) {
    double sum = 0;
    for (int64_t i = y->row_start[row]; i < y->row_start[row + 1]; i++)
        sum += spread[y->columns[i]] * y->values[i];
    return sum;
}

/* The squared distance of two rows, column by column as for dense rows. */
static double sparse_distance(const gmo_features *x, int64_t x_row, const gmo_features *y, int64_t y_row) {
    int64_t i = x->row_start[x_row], j = y->row_start[y_row];
    const int64_t x_end = x->row_start[x_row + 1], y_end = y->row_start[y_row + 1];
    double sum = 0;
    while (i < x_end || j < y_end) {
        bool takes_x = j == y_end || (i < x_end && x->columns[i] <= y->columns[j]),
             takes_y = i == x_end || (j < y_end && y->columns[j] <= x->columns[i]);
        double difference = (takes_x ? x->values[i] : 0) - (takes_y ? y->values[j] : 0);
        sum += difference * difference;
        i += takes_x;
        j += takes_y;
    }
    return sum;
}

/* One row of x with all rows of y; for products it is spread out in `spread`, all 0 before and after. */
static void sparse_row(bool distances, const gmo_features *x, int64_t row, const gmo_features *y, double *spread,
                       double *out) {
    if (distances) {
        for (int64_t j = 0; j < y->n_rows; j++)
            out[j] = sparse_distance(x, row, y, j);
        return;
    }
    for (int64_t i = x->row_start[row]; i < x->row_start[row + 1]; i++)
        spread[x->columns[i]] = x->values[i];
    for (int64_t j = 0; j < y->n_rows; j++)
        out[j] = sparse_product(y, j, spread);
    for (int64_t i = x->row_start[row]; i < x->row_start[row + 1]; i++)
        spread[x->columns[i]] = 0;
}

static gmo_status sparse_block(bool distances, const gmo_features *x, int64_t first, int64_t last,
                               const gmo_features *y, int32_t n_threads, double *out) {
    bool failed = false;
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, (last - first) * y -> n_rows))
    {
        double *spread = gmo_alloc_zero(x->n_features, sizeof *spread);
        gmo_range range = gmo_thread_range(last - first);
        if (!spread) {
#pragma omp atomic write
            failed = true;
        }
        for (int64_t i = range.first; spread && i < range.last; i++)
            sparse_row(distances, x, first + i, y, spread, out + i * y->n_rows);
        free(spread);
    }
    return failed ? GMO_ERR_MEMORY : GMO_OK;
}

gmo_status gmo_kernel_block(const gmo_kernel *kernel, const gmo_features *x, int64_t first, int64_t last,
                            const gmo_features *y, int32_t n_threads, double *out) {
    int64_t size;
    if (!gmo_size_mul(last - first, y->n_rows, &size))
        return GMO_ERR_SIZE;
    if ((x->row_start != NULL) != (y->row_start != NULL))
        return GMO_ERR_ARGUMENT;
    bool distances = kernel->kind == GMO_KERNEL_RBF;
    if (x->row_start)
        GMO_TRY(sparse_block(distances, x, first, last, y, n_threads, out));
    else
        GMO_TRY(dense_block(distances, x, first, last, y, n_threads, out));
#pragma omp parallel for num_threads(n_threads) if (GMO_PARALLEL(n_threads, size))
    for (int64_t i = 0; i < last - first; i++)
        finish(kernel, y->n_rows, out + i * y->n_rows);
    return GMO_OK;
}

gmo_status gmo_kernel_diagonal(const gmo_kernel *kernel, const gmo_features *x, double *out) {
    for (int64_t i = 0; i < x->n_rows; i++) {
        out[i] = kernel->kind == GMO_KERNEL_RBF ? 0 : squared_norm(x, i);
        finish(kernel, 1, out + i);
    }
    return GMO_OK;
}
