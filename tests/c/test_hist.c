#include "check.h"
#include "hist.h"

enum { N = 700, M = 5, D = 3, MAX_CELLS = M * 256 };

/* Binned rows of M features with 1, 2, 17, 100 and 255 bins, the third and the last with missing values. */
static const int32_t n_bins[M] = {1, 2, 17, 100, 255};
static const uint8_t has_missing[M] = {0, 0, 1, 0, 1};
static int64_t edge_start[M + 1];
static uint8_t bins[N * M];
static const gmo_binned data = {bins, edge_start, N, M};

static void make_rows(void) {
    for (int f = 0; f < M; f++)
        edge_start[f + 1] = edge_start[f] + n_bins[f] - 1;
    for (int i = 0; i < N * M; i++)
        bins[i] = (uint8_t)random_below((uint32_t)(n_bins[i % M] + has_missing[i % M]));
}

/* Integer derivatives, so that double sums are exact. */
static void make_derivatives(double *gradient, double *hessian) {
    for (int i = 0; i < N * D; i++) {
        gradient[i] = (double)random_below(2001) - 1000;
        hessian[i] = (double)random_below(50);
    }
}

static int64_t make_subset(int32_t *rows) {
    int64_t n = 0;
    for (int32_t i = 0; i < N; i++)
        if (random_below(3) == 0)
            rows[n++] = i;
    return n;
}

/* Compares a cell with sums taken the slow way. */
static void check_cell(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *hist, int f, int bin,
                       const int32_t *rows, int64_t n_rows, const double *gradient, const double *hessian) {
    const int32_t *cell = hist + (shape->cell_start[f] + bin) * shape->stride;
    double g[D] = {0}, h[D] = {0};
    int64_t count = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t row = rows ? rows[i] : i;
        if (bins[row * M + f] != bin)
            continue;
        count++;
        for (int j = 0; j < D; j++) {
            g[j] += gradient[row * D + j];
            h[j] += hessian[row * D + j];
        }
    }
    CHECK(cell[fixed->count_lane] == count);
    for (int j = 0; j < D; j++) {
        CHECK(cell[j] * fixed->gradient_unit[j] == g[j]);
        if (fixed->has_hessian)
            CHECK(cell[D + j] * fixed->hessian_unit[j] == h[j]);
    }
}

static void sums_equal_direct_sums(bool has_hessian) {
    static double gradient[N * D], hessian[N * D];
    static int32_t rows[N];
    gmo_fixed fixed = {0};
    gmo_hist_shape shape = {0};
    make_derivatives(gradient, hessian);
    CHECK(gmo_fixed_init(&fixed, N, D, has_hessian) == GMO_OK);
    CHECK(gmo_fixed_round(&fixed, gradient, hessian, D, 0, 2) == GMO_OK);
    CHECK(gmo_hist_shape_init(&shape, &data, has_missing, fixed.stride, 1) == GMO_OK);
    int32_t *hist = gmo_alloc(shape.size, sizeof *hist);
    int64_t n_rows = make_subset(rows);
    for (int all = 0; all < 2; all++) {
        gmo_hist_build(&shape, &fixed, all ? NULL : rows, all ? N : n_rows, 1, hist);
        for (int f = 0; f < M; f++)
            for (int bin = 0; bin < n_bins[f] + has_missing[f]; bin++)
                check_cell(&shape, &fixed, hist, f, bin, all ? NULL : rows, all ? N : n_rows, gradient, hessian);
    }
    free(hist);
    gmo_hist_shape_free(&shape);
    gmo_fixed_free(&fixed);
}

/* Parent - child equals the sibling's own histogram, and any number of threads gives the same integers. */
static void subtraction_equals_building(void) {
    static double gradient[N * D], hessian[N * D];
    static int32_t rows[N], others[N];
    for (int i = 0; i < N * D; i++) {
        gradient[i] = sin(i) * exp(random_below(10));
        hessian[i] = cos(i) * cos(i);
    }
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, N, D, true) == GMO_OK);
    CHECK(gmo_fixed_round(&fixed, gradient, hessian, D, 0, 1) == GMO_OK);
    int64_t n_rows = make_subset(rows), n_others = 0;
    for (int32_t i = 0, at = 0; i < N; i++) {
        if (at < n_rows && rows[at] == i)
            at++;
        else
            others[n_others++] = i;
    }
    int32_t *first = NULL;
    for (int32_t threads = 1; threads <= 3; threads++) {
        gmo_hist_shape shape = {0};
        CHECK(gmo_hist_shape_init(&shape, &data, has_missing, fixed.stride, threads) == GMO_OK);
        int32_t *parent = gmo_alloc(shape.size, 4), *child = gmo_alloc(shape.size, 4), *own = gmo_alloc(shape.size, 4);
        gmo_hist_build(&shape, &fixed, NULL, N, threads, parent);
        gmo_hist_build(&shape, &fixed, rows, n_rows, threads, child);
        gmo_hist_build(&shape, &fixed, others, n_others, threads, own);
        gmo_hist_subtract(&shape, parent, child, threads);
        CHECK(memcmp(parent, own, (size_t)shape.size * 4) == 0);
        if (threads == 1)
            first = own;
        else
            CHECK(memcmp(first, own, (size_t)shape.size * 4) == 0);
        free(parent);
        free(child);
        if (threads > 1)
            free(own);
        gmo_hist_shape_free(&shape);
    }
    free(first);
    gmo_fixed_free(&fixed);
}

/* The scale leaves room for the sum of all rows and uses it: the error of a sum is far below float32's. */
static void fixed_point_uses_its_range(void) {
    static double gradient[N];
    double sum = 0;
    int64_t fixed_sum = 0;
    for (int i = 0; i < N; i++)
        sum += gradient[i] = 1e-3 * (1 + (double)random_below(1000) / 7);
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, N, 1, false) == GMO_OK);
    CHECK(gmo_fixed_round(&fixed, gradient, NULL, 1, 0, 1) == GMO_OK);
    for (int i = 0; i < N; i++)
        fixed_sum += fixed.rows[i * (int64_t)fixed.stride];
    CHECK(fixed_sum <= INT32_MAX && fixed_sum > INT32_MAX / 4);
    CHECK(fabs((double)fixed_sum * fixed.gradient_unit[0] / sum - 1) < 1e-6);
    int exponent;
    CHECK(frexp(fixed.gradient_unit[0], &exponent) == 0.5); /* a power of two */
    gmo_fixed_free(&fixed);
}

static void one_column_of_a_wider_array_can_be_taken(void) {
    double gradient[] = {1, 10, 2, 20, 3, 30};
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, 3, 1, false) == GMO_OK);
    CHECK(gmo_fixed_round(&fixed, gradient, NULL, 2, 1, 1) == GMO_OK);
    for (int i = 0; i < 3; i++)
        CHECK(fixed.rows[i * fixed.stride] * fixed.gradient_unit[0] == 10 * (i + 1));
    gmo_fixed_free(&fixed);
}

static void derivatives_that_are_no_numbers_are_refused(void) {
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, 2, 1, false) == GMO_OK);
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e300};
    for (int i = 0; i < 4; i++) {
        double gradient[] = {1, bad[i]};
        CHECK(gmo_fixed_round(&fixed, gradient, NULL, 1, 0, 1) == GMO_ERR_NUMERIC);
    }
    double zeros[] = {0, -0.0};
    CHECK(gmo_fixed_round(&fixed, zeros, NULL, 1, 0, 1) == GMO_OK);
    CHECK(fixed.gradient_unit[0] == 0 && fixed.rows[0] == 0);
    gmo_fixed_free(&fixed);
}

static void sizes_that_overflow_are_refused(void) {
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, INT64_MAX / 2, 100, true) == GMO_ERR_SIZE);
    gmo_fixed_free(&fixed);
    CHECK(gmo_fixed_init(&fixed, INT64_MAX / 8, 1, false) != GMO_OK);
    gmo_fixed_free(&fixed);
}

int main(void) {
    make_rows();
    sums_equal_direct_sums(false);
    sums_equal_direct_sums(true);
    subtraction_equals_building();
    fixed_point_uses_its_range();
    one_column_of_a_wider_array_can_be_taken();
    derivatives_that_are_no_numbers_are_refused();
    sizes_that_overflow_are_refused();
    return check_report();
}
