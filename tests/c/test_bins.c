#include "bins.h"
#include "check.h"

#include <float.h>

static gmo_matrix rows_of(const double *values, int64_t n_rows, int64_t n_cols) {
    return (gmo_matrix){(const char *)values, n_rows, n_cols, n_cols * 8, 8, 1};
}

static void few_values_get_an_edge_between_each_two(void) {
    double values[] = {1, 2, 4}, edges[254];
    int64_t counts[] = {5, 1, 1};
    CHECK(gmo_edges_quantile(values, counts, 3, 255, edges) == 2);
    CHECK(edges[0] == 1.5 && edges[1] == 3);
    CHECK(gmo_edges_quantile(values, counts, 1, 255, edges) == 0);
    CHECK(gmo_edges_quantile(values, counts, 0, 255, edges) == 0);
}

static void many_values_get_edges_at_equal_counts(void) {
    double values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, edges[2];
    int64_t counts[] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    /* Targets: 10 / 3, reached at value 3; then 4 + 6 / 2 = 7, reached at value 6. */
    CHECK(gmo_edges_quantile(values, counts, 10, 3, edges) == 2);
    CHECK(edges[0] == 3.5 && edges[1] == 6.5);
    /* Half of 19 rows is reached with the heavy first value. */
    counts[0] = 10;
    CHECK(gmo_edges_quantile(values, counts, 10, 2, edges) == 1);
    CHECK(edges[0] == 0.5);
    /* A heavy last value leaves nothing to the right of it, so it gets no edge. */
    counts[0] = 1;
    counts[9] = 100;
    CHECK(gmo_edges_quantile(values, counts, 10, 2, edges) == 0);
}

static void the_released_rule_counts_values_first(void) {
    double values[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, edges[254];
    int64_t counts[] = {10, 10, 10, 10, 10, 10, 10, 10, 10, 10};
    /* First target 10 values / 3, reached by the 10 rows of value 0; then 10 + 90 / 2 = 55, reached at value 5. */
    CHECK(gmo_edges_released(values, counts, 10, 3, edges) == 2);
    CHECK(edges[0] == 0 && edges[1] == 5);
    /* Two values: their mean, weighted by the counts. */
    counts[1] = 30;
    CHECK(gmo_edges_released(values, counts, 2, 8, edges) == 1);
    CHECK_NEAR(edges[0], 0.75);
    CHECK(gmo_edges_released(values, counts, 4, 8, edges) == 3);
    CHECK(edges[0] == 0.5 && edges[1] == 1.5 && edges[2] == 2.5);
    CHECK(gmo_edges_released(values, counts, 1, 8, edges) == 0);
}

static void neighbouring_numbers_stay_apart(void) {
    double x[] = {1, -DBL_MAX, 0.0, DBL_TRUE_MIN, nextafter(1, 2), DBL_MAX, -0.0, 0};
    gmo_matrix m = rows_of(x, 2, 4);
    double edges[4 * 254];
    int32_t n_edges[4];
    uint8_t has_missing[4], bins[8];
    CHECK(gmo_bins_fit(&m, GMO_BINNING_QUANTILE, 255, 1, edges, n_edges, has_missing) == GMO_OK);
    CHECK(n_edges[0] == 1 && n_edges[1] == 1 && n_edges[2] == 0 && n_edges[3] == 1); /* -0 equals 0 */
    CHECK(edges[254] == 0);
    double packed[] = {edges[0], edges[254], edges[3 * 254]};
    int64_t start[] = {0, 1, 2, 2, 3};
    CHECK(gmo_bins_apply(&m, packed, start, 1, bins) == GMO_OK);
    uint8_t expected[] = {0, 0, 0, 1, 1, 1, 0, 0};
    CHECK(memcmp(bins, expected, sizeof bins) == 0);
}

static void missing_values_have_the_last_bin(void) {
    double x[] = {NAN, NAN, 2, NAN, 1, NAN};
    gmo_matrix m = rows_of(x, 3, 2);
    double edges[2 * 254];
    int32_t n_edges[2];
    uint8_t has_missing[2], bins[6];
    CHECK(gmo_bins_fit(&m, GMO_BINNING_QUANTILE, 255, 2, edges, n_edges, has_missing) == GMO_OK);
    CHECK(n_edges[0] == 1 && n_edges[1] == 0 && has_missing[0] && has_missing[1]);
    int64_t start[] = {0, 1, 1};
    CHECK(gmo_bins_apply(&m, edges, start, 1, bins) == GMO_OK);
    uint8_t expected[] = {2, 1, 1, 1, 0, 1};
    CHECK(memcmp(bins, expected, sizeof bins) == 0);
}

static void an_edge_belongs_to_its_left_bin(void) {
    double x[] = {0.5, 1.5, nextafter(0.5, 1), INFINITY, -INFINITY}, edges[] = {0.5, 1.5};
    int64_t start[] = {0, 2};
    uint8_t bins[5], expected[] = {0, 1, 1, 2, 0};
    gmo_matrix m = rows_of(x, 5, 1);
    CHECK(gmo_bins_apply(&m, edges, start, 1, bins) == GMO_OK);
    CHECK(memcmp(bins, expected, sizeof bins) == 0);
}

/* The same numbers as float64 rows and as float32 columns with gaps, on several threads: same edges, same bins. */
static void layout_and_threads_do_not_matter(void) {
    enum { N = 500, M = 9, BINS = 255, EDGES = BINS - 1 };
    static double x[N * M], edges[2][M * EDGES], packed[M * EDGES];
    static float strided[2 * N * M];
    static uint8_t bins[2][N * M];
    int32_t n_edges[2][M];
    uint8_t has_missing[2][M];
    for (int64_t i = 0; i < N; i++)
        for (int64_t f = 0; f < M; f++) {
            float value = f == 0 ? 7.0f : (float)random_below(f == 1 ? 2 : 100000) / 64;
            x[i * M + f] = random_below(20) ? value : (double)NAN;
            strided[2 * (f * N + i)] = (float)x[i * M + f];
        }
    gmo_matrix views[2] = {rows_of(x, N, M), {(const char *)strided, N, M, 8, 8 * N, 0}};
    for (int v = 0; v < 2; v++) {
        memset(edges[v], 0, sizeof edges[v]);
        CHECK(gmo_bins_fit(&views[v], GMO_BINNING_QUANTILE, BINS, 1 + 2 * v, edges[v], n_edges[v], has_missing[v]) ==
              GMO_OK);
    }
    CHECK(memcmp(edges[0], edges[1], sizeof edges[0]) == 0);
    CHECK(memcmp(n_edges[0], n_edges[1], sizeof n_edges[0]) == 0);
    CHECK(n_edges[0][0] == 0 && n_edges[0][1] == 1 && n_edges[0][2] == EDGES);
    int64_t start[M + 1] = {0};
    for (int f = 0; f < M; f++) {
        memcpy(packed + start[f], edges[0] + f * EDGES, (size_t)n_edges[0][f] * sizeof *packed);
        start[f + 1] = start[f] + n_edges[0][f];
        for (int64_t e = start[f] + 1; e < start[f + 1]; e++)
            CHECK(packed[e - 1] < packed[e]);
    }
    for (int v = 0; v < 2; v++)
        CHECK(gmo_bins_apply(&views[v], packed, start, 1 + 2 * v, bins[v]) == GMO_OK);
    CHECK(memcmp(bins[0], bins[1], sizeof bins[0]) == 0);
    for (int64_t i = 0; i < N * M; i++)
        CHECK((bins[0][i] == n_edges[0][i % M] + 1) == isnan(x[i]));
}

static void arguments_are_checked(void) {
    double x[] = {1}, edges[254];
    int32_t n_edges;
    uint8_t has_missing, bins;
    int64_t start[] = {0, 0};
    gmo_matrix m = rows_of(x, 1, 1);
    CHECK(gmo_bins_fit(&m, 0, 1, 1, edges, &n_edges, &has_missing) == GMO_ERR_ARGUMENT);
    CHECK(gmo_bins_fit(&m, 0, 256, 1, edges, &n_edges, &has_missing) == GMO_ERR_ARGUMENT);
    CHECK(gmo_bins_fit(&m, 0, 255, 0, edges, &n_edges, &has_missing) == GMO_ERR_ARGUMENT);
    CHECK(gmo_bins_apply(&m, edges, start, 0, &bins) == GMO_ERR_ARGUMENT);
}

static void short_memory_is_reported(void) {
    double x[] = {1, 2, 3}, edges[3 * 254];
    int32_t n_edges[3];
    uint8_t has_missing[3];
    gmo_matrix m = rows_of(x, 1, 3);
    for (long n = 0; n < 4; n++) {
        allocations_left = n;
        CHECK(gmo_bins_fit(&m, 0, 255, 1, edges, n_edges, has_missing) == GMO_ERR_MEMORY);
    }
    allocations_left = -1;
    CHECK(gmo_bins_fit(&m, 0, 255, 1, edges, n_edges, has_missing) == GMO_OK);
}

int main(void) {
    few_values_get_an_edge_between_each_two();
    many_values_get_edges_at_equal_counts();
    the_released_rule_counts_values_first();
    neighbouring_numbers_stay_apart();
    missing_values_have_the_last_bin();
    an_edge_belongs_to_its_left_bin();
    layout_and_threads_do_not_matter();
    arguments_are_checked();
    short_memory_is_reported();
    return check_report();
}
