#include "bins.h"
#include "check.h"
#include "tree.h"

enum { MAX_N = 700, MAX_M = 40, MAX_D = 70, MAX_TREES = 60, MAX_NODES = 100, MAX_EDGES = 9, MAX_OUT = 5000 };

/* A forest, rows and their bins. x holds float64 or float32 values with rows and columns of any stride. */
typedef struct {
    gmo_trees trees;
    gmo_forest forest;
    int64_t n, m;
    int32_t d;
    double values[MAX_N * MAX_M], base_score[MAX_OUT], edges[MAX_M * MAX_EDGES];
    int64_t edge_start[MAX_M + 1];
    uint8_t bins[MAX_N * MAX_M];
    int64_t order[MAX_TREES], n_order;
    gmo_packed_node nodes[MAX_TREES * (2 * MAX_NODES + 1)];
} problem;

static problem p;
static double expected[MAX_N * MAX_D], actual[MAX_N * MAX_D];

/* Values on edges, between and beyond them, of both zeros, infinite and missing. All are exact in float32. */
static void make_rows(int64_t n, int64_t m) {
    p.n = n;
    p.m = m;
    p.edge_start[0] = 0;
    for (int64_t f = 0; f < m; f++) {
        int64_t n_edges = f == 0 ? 0 : random_below(MAX_EDGES + 1);
        for (int64_t e = 0; e < n_edges; e++)
            p.edges[p.edge_start[f] + e] = (double)(e - 3) * (f % 2 ? 0.5 : 1);
        p.edge_start[f + 1] = p.edge_start[f] + n_edges;
    }
    const double rare[] = {NAN, -0.0, INFINITY, -INFINITY};
    for (int64_t i = 0; i < n * m; i++)
        p.values[i] = random_below(4) ? random_below(40) * 0.25 - 4 : rare[random_below(4)];
    gmo_matrix x = {(const char *)p.values, n, m, m * 8, 8, 1};
    CHECK(gmo_bins_apply(&x, p.edges, p.edge_start, 1, p.bins) == GMO_OK);
}

static int32_t new_end(int32_t width) {
    int32_t leaf;
    if (random_below(5) == 0)
        return GMO_NO_LEAF;
    CHECK(gmo_trees_add_leaf(&p.trees, width, &leaf) == GMO_OK);
    for (int32_t j = 0; j < width; j++)
        p.trees.leaf_values[p.trees.n_values - width + j] = (double)random_below(1000000) / 7 - 70000;
    return -1 - leaf;
}

/* A tree of n_nodes nodes, or, if deep, a path of them with an end at each. */
static void add_tree(int32_t n_nodes, int32_t output, bool deep) {
    static int64_t open[MAX_NODES + 1]; /* twice the node, plus 1 for its right side */
    int32_t n_open = 0, node, width = output < 0 ? p.d : 1;
    CHECK(gmo_trees_open(&p.trees, output, 0) == GMO_OK);
    int64_t first = p.trees.n_nodes;
    for (int32_t k = 0; k < n_nodes; k++) {
        int64_t f = random_below((uint32_t)p.m), n_edges = p.edge_start[f + 1] - p.edge_start[f];
        int32_t bin = (int32_t)random_below((uint32_t)n_edges + 1);
        CHECK(gmo_trees_add_node(&p.trees, f, bin, (uint8_t)random_below(2), &node) == GMO_OK);
        if (k > 0) {
            int32_t slot = deep ? n_open - 1 : (int32_t)random_below((uint32_t)n_open);
            (open[slot] % 2 ? p.trees.right : p.trees.left)[first + open[slot] / 2] = node;
            open[slot] = open[--n_open];
        }
        open[n_open++] = 2 * node;
        open[n_open++] = 2 * node + 1;
    }
    while (n_open--) {
        int32_t end = new_end(width);
        (open[n_open] % 2 ? p.trees.right : p.trees.left)[first + open[n_open] / 2] = end;
    }
    if (n_nodes == 0)
        new_end(width);
}

/* Trees of every kind; the order names some twice, some not at all. */
static void make_forest(int32_t d, int64_t n_trees) {
    gmo_trees_free(&p.trees);
    p.d = d;
    for (int64_t t = 0; t < n_trees; t++) {
        int32_t n_nodes = t % 7 == 3 ? 0 : 1 + (int32_t)random_below(MAX_NODES);
        add_tree(n_nodes, random_below(3) ? -1 : (int32_t)random_below((uint32_t)d), t % 5 == 4);
    }
    gmo_trees_view(&p.trees, d, &p.forest);
    p.n_order = n_trees;
    for (int64_t t = 0; t < n_trees; t++)
        p.order[t] = random_below((uint32_t)n_trees);
    for (int32_t j = 0; j < d; j++)
        p.base_score[j] = (double)random_below(1000) / 3;
}

static gmo_predictor predictor_of_problem(void) {
    CHECK(gmo_forest_pack(&p.forest, p.edges, p.edge_start, p.nodes) == GMO_OK);
    return (gmo_predictor){&p.forest, p.base_score, p.order, p.nodes, p.n_order};
}

/* The plain version: on bins, one row, tree and node after the other. */
static void predict_plainly(double *scores) {
    gmo_binned rows = {p.bins, p.edge_start, p.n, p.m};
    for (int64_t i = 0; i < p.n; i++)
        memcpy(scores + i * p.d, p.base_score, (size_t)p.d * sizeof *scores);
    CHECK(gmo_forest_predict(&p.forest, p.order, p.n_order, &rows, 1, scores) == GMO_OK);
}

static void check_scores(const double *scores) {
    CHECK(memcmp(scores, expected, (size_t)(p.n * p.d) * sizeof *scores) == 0);
}

/* A copy of the values with other strides (bytes), behind an odd offset where misaligned; freed by the caller. */
static gmo_matrix strided(bool float64, int64_t row_stride, int64_t col_stride, bool misaligned, char **memory) {
    int64_t size = float64 ? 8 : 4, bytes = llabs(row_stride) * p.n + llabs(col_stride) * p.m + size + 1;
    *memory = malloc((size_t)bytes);
    char *start = *memory + misaligned + (row_stride < 0 ? -row_stride * (p.n - 1) : 0) +
                  (col_stride < 0 ? -col_stride * (p.m - 1) : 0);
    for (int64_t i = 0; i < p.n; i++)
        for (int64_t f = 0; f < p.m; f++) {
            double value = p.values[i * p.m + f];
            float narrow = (float)value;
            memcpy(start + i * row_stride + f * col_stride, float64 ? (char *)&value : (char *)&narrow, (size_t)size);
        }
    return (gmo_matrix){start, p.n, p.m, row_stride, col_stride, float64};
}

static void check_layout(const gmo_predictor *predictor, bool float64, int64_t row_stride, int64_t col_stride,
                         bool misaligned) {
    char *memory;
    gmo_matrix x = strided(float64, row_stride, col_stride, misaligned, &memory);
    for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
        memset(actual, 0xFF, sizeof actual);
        CHECK(gmo_predictor_add(predictor, 0, p.n_order, &x, n_threads, actual) == GMO_OK);
        check_scores(actual);
    }
    free(memory);
}

static void check_problem(int64_t n, int64_t m, int32_t d, int64_t n_trees) {
    make_rows(n, m);
    make_forest(d, n_trees);
    gmo_predictor predictor = predictor_of_problem();
    predict_plainly(expected);
    for (int float64 = 0; float64 < 2; float64++) {
        int64_t size = float64 ? 8 : 4;
        check_layout(&predictor, float64, m * size, size, false);
        check_layout(&predictor, float64, m * size + 4, size, true);
        check_layout(&predictor, float64, size, n * size, false);
        check_layout(&predictor, float64, -m * size, size, false);
        check_layout(&predictor, float64, -m * 3 * size, -3 * size, false);
    }
    gmo_matrix x = {(const char *)p.values, n, m, m * 8, 8, 1};
    for (int64_t t = 0; t < n_trees || t == 0; t++) /* a tree at a time, as in staged prediction */
        CHECK(gmo_predictor_add(&predictor, t, t < n_trees ? t + 1 : t, &x, 2, actual) == GMO_OK);
    check_scores(actual);
}

static void same_bits_as_plain_walks_on_bins(void) {
    const int64_t rows[] = {1, 2, 7, 8, 9, 65, MAX_N}, features[] = {1, 3, MAX_M}, trees[] = {0, 1, 9, MAX_TREES};
    const int32_t outputs[] = {1, 3, 8, MAX_D};
    for (int r = 0; r < 7; r++)
        for (int o = 0; o < 4; o++)
            check_problem(rows[r], features[(r + o) % 3], outputs[o], trees[(r + 2 * o) % 4]);
    for (int t = 0; t < 4; t++)
        check_problem(1, MAX_M, 3, trees[t]);
}

/* One split at x <= 1, whose left side has the leaf 10 and whose right side nothing. */
static void one_split_by_hand(void) {
    const double edge = 1;
    const int64_t edge_start[] = {0, 1};
    const double x[] = {0, 1, nextafter(1, 2), NAN, -INFINITY, INFINITY};
    for (uint8_t missing_left = 0; missing_left < 2; missing_left++) {
        const int32_t feature = 0, left = -1, right = GMO_NO_LEAF, n_leaves = 1, output = -1, round = 0;
        const int64_t node_start[] = {0, 1}, value_start[] = {0, 1}, tree = 0;
        const uint8_t bin = 0;
        const double value = 10, base_score = 0.5;
        gmo_forest forest = {1,    1,        node_start, value_start, &n_leaves, &output,       &round,
                             NULL, &feature, &left,      &right,      &bin,      &missing_left, &value};
        gmo_packed_node nodes[3];
        CHECK(gmo_forest_pack(&forest, &edge, edge_start, nodes) == GMO_OK);
        gmo_predictor predictor = {&forest, &base_score, &tree, nodes, 1};
        gmo_matrix rows = {(const char *)x, 6, 1, 8, 8, 1};
        double scores[6];
        CHECK(gmo_predictor_add(&predictor, 0, 1, &rows, 1, scores) == GMO_OK);
        CHECK(scores[0] == 10.5 && scores[1] == 10.5 && scores[2] == 0.5);
        CHECK(scores[3] == (missing_left ? 10.5 : 0.5));
        CHECK(scores[4] == 10.5 && scores[5] == 0.5);
    }
}

static void thousands_of_outputs(void) {
    make_rows(9, 3);
    make_forest(MAX_OUT, 5);
    gmo_predictor predictor = predictor_of_problem();
    predict_plainly(expected);
    gmo_matrix x = {(const char *)p.values, p.n, p.m, p.m * 8, 8, 1};
    CHECK(gmo_predictor_add(&predictor, 0, p.n_order, &x, 2, actual) == GMO_OK);
    check_scores(actual);
}

static void arguments_are_checked(void) {
    make_rows(4, 3);
    make_forest(2, 5);
    gmo_predictor predictor = predictor_of_problem();
    gmo_matrix x = {(const char *)p.values, 4, 3, 24, 8, 1}, empty = x;
    CHECK(gmo_predictor_add(&predictor, 0, 6, &x, 1, actual) == GMO_ERR_ARGUMENT);
    CHECK(gmo_predictor_add(&predictor, 3, 2, &x, 1, actual) == GMO_ERR_ARGUMENT);
    CHECK(gmo_predictor_add(&predictor, -1, 2, &x, 1, actual) == GMO_ERR_ARGUMENT);
    CHECK(gmo_predictor_add(&predictor, 0, 5, &x, 0, actual) == GMO_ERR_ARGUMENT);
    empty.n_cols = 0;
    CHECK(gmo_predictor_add(&predictor, 0, 5, &empty, 1, actual) == GMO_ERR_ARGUMENT);
    empty = (gmo_matrix){NULL, 0, 3, 24, 8, 1};
    CHECK(gmo_predictor_add(&predictor, 0, 5, &empty, 2, NULL) == GMO_OK); /* no rows: nothing is touched */
}

/* Only rows whose columns are apart need memory. */
static void short_memory_is_reported(void) {
    make_rows(50, 3);
    make_forest(2, 5);
    gmo_predictor predictor = predictor_of_problem();
    gmo_matrix by_rows = {(const char *)p.values, 50, 3, 24, 8, 1},
               by_columns = {(const char *)p.values, 3, 50, 8, 24, 1};
    allocations_left = 0;
    CHECK(gmo_predictor_add(&predictor, 0, 5, &by_rows, 2, actual) == GMO_OK);
    CHECK(gmo_predictor_add(&predictor, 0, 5, &by_columns, 2, actual) == GMO_ERR_MEMORY);
    allocations_left = -1;
}

int main(void) {
    one_split_by_hand();
    same_bits_as_plain_walks_on_bins();
    thousands_of_outputs();
    arguments_are_checked();
    short_memory_is_reported();
    gmo_trees_free(&p.trees);
    return check_report();
}
