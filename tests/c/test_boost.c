#include "check.h"
#include "tree.h"

enum { MAX_N = 400, MAX_M = 3, MAX_D = 17, ROUNDS = 3 };

/* A training problem with its bins. */
typedef struct {
    int64_t n, m;
    int32_t d;
    double x[MAX_N * MAX_M], values[MAX_N * MAX_D], base_score[MAX_D];
    int32_t labels[MAX_N];
    double edges[MAX_M * 254];
    int64_t edge_start[MAX_M + 1];
    uint8_t bins[MAX_N * MAX_M], has_missing[MAX_M];
} problem;

static problem p;

static void bin_problem(int32_t max_bins) {
    static double edges[MAX_M * 254];
    int32_t n_edges[MAX_M];
    gmo_matrix x = {(const char *)p.x, p.n, p.m, p.m * 8, 8, 1};
    CHECK(gmo_bins_fit(&x, GMO_BINNING_QUANTILE, max_bins, 1, edges, n_edges, p.has_missing) == GMO_OK);
    p.edge_start[0] = 0;
    for (int64_t f = 0; f < p.m; f++) {
        memcpy(p.edges + p.edge_start[f], edges + f * (max_bins - 1), (size_t)n_edges[f] * sizeof *edges);
        p.edge_start[f + 1] = p.edge_start[f] + n_edges[f];
    }
    CHECK(gmo_bins_apply(&x, p.edges, p.edge_start, 1, p.bins) == GMO_OK);
}

/* Feature 0 is constant, feature 1 has missing values if asked for, feature 2 many distinct values. */
static void make_problem(int64_t n, int64_t m, int32_t d, int32_t max_bins, bool missing) {
    p = (problem){.n = n, .m = m, .d = d};
    for (int64_t i = 0; i < n; i++) {
        for (int64_t f = 0; f < m; f++)
            p.x[i * m + f] = f == 0 && m > 1 ? 4 : (double)random_below(f == 1 ? 20 : 100000);
        if (missing && m > 1 && random_below(4) == 0)
            p.x[i * m + 1] = NAN;
        p.labels[i] = (int32_t)random_below((uint32_t)d);
        for (int32_t j = 0; j < d; j++)
            p.values[i * d + j] = random_below(2);
    }
    bin_problem(max_bins);
}

static gmo_binned rows_of_problem(void) { return (gmo_binned){p.bins, p.edge_start, p.n, p.m}; }

static gmo_target target_of_problem(int32_t loss) {
    return loss == GMO_LOSS_SOFTMAX ? (gmo_target){p.labels, NULL} : (gmo_target){NULL, p.values};
}

static gmo_params plain(void) {
    return (gmo_params){.metric = GMO_METRIC_MSE,
                        .restricted = 1,
                        .max_depth = 4,
                        .node_cache = 16,
                        .n_threads = 1,
                        .max_leaves = 1000,
                        .min_samples_leaf = 1,
                        .histogram_pool_bytes = 1 << 20,
                        .learning_rate = 1};
}

static gmo_booster *boosted(const gmo_params *params, int64_t n_rounds) {
    gmo_binned rows = rows_of_problem();
    gmo_target target = target_of_problem(params->loss);
    gmo_booster *booster;
    int32_t finished;
    CHECK(gmo_booster_create(params, &rows, p.has_missing, &target, p.base_score, p.d, &booster) == GMO_OK);
    CHECK(gmo_booster_boost(booster, n_rounds, &finished) == GMO_OK);
    return booster;
}

static void predict(const gmo_booster *booster, int32_t n_threads, double *scores) {
    static int64_t trees[ROUNDS * MAX_D];
    gmo_forest forest;
    gmo_booster_forest(booster, &forest);
    for (int64_t t = 0; t < forest.n_trees; t++)
        trees[t] = t;
    for (int64_t i = 0; i < p.n; i++)
        memcpy(scores + i * p.d, p.base_score, (size_t)p.d * sizeof *scores);
    gmo_binned rows = rows_of_problem();
    CHECK(gmo_forest_predict(&forest, trees, forest.n_trees, &rows, n_threads, scores) == GMO_OK);
}

/* Four rows, x = 0 1 2 3, y = 0 0 1 1, one split: the leaves are means of what is left, shrunk by lambda. */
static void four_rows_by_hand(void) {
    p = (problem){.n = 4, .m = 1, .d = 1, .x = {0, 1, 2, 3}, .values = {0, 0, 1, 1}, .base_score = {0.5}};
    bin_problem(255);
    gmo_params params = plain();
    params.max_depth = 1;
    double scores[4];
    gmo_booster *booster = boosted(&params, 1);
    predict(booster, 1, scores);
    for (int i = 0; i < 4; i++)
        CHECK(scores[i] == p.values[i]);
    gmo_forest forest;
    gmo_booster_forest(booster, &forest);
    CHECK(forest.n_trees == 1 && forest.n_leaves[0] == 2 && forest.node_start[1] == 1);
    CHECK(forest.feature[0] == 0 && forest.bin[0] == 1 && forest.left[0] == -1 && forest.right[0] == -2);
    gmo_booster_free(booster);

    params.reg_lambda = 1;
    params.learning_rate = 0.5;
    booster = boosted(&params, 1);
    predict(booster, 1, scores);
    CHECK_NEAR(scores[0], 0.5 - 0.5 * 1 / 3); /* G = 0.5 + 0.5, H = 2 */
    CHECK_NEAR(scores[3], 0.5 + 0.5 * 1 / 3);
    gmo_booster_free(booster);

    params.min_split_gain = 0.35; /* the gain is half of 1 / 3 + 1 / 3 */
    booster = boosted(&params, 1);
    gmo_booster_forest(booster, &forest);
    CHECK(forest.n_leaves[0] == 1 && forest.node_start[1] == 0 && forest.leaf_values[0] == 0);
    gmo_booster_free(booster);
}

/* Every node is reached once, children come after parents, leaves are numbered without gaps. */
static void check_tree(const gmo_forest *forest, int64_t tree, bool complete) {
    int64_t base = forest->node_start[tree], n_nodes = forest->node_start[tree + 1] - base;
    int32_t n_leaves = forest->n_leaves[tree], seen_leaves = 0, missing_children = 0;
    int32_t width = forest->tree_output[tree] < 0 ? forest->n_outputs : 1;
    CHECK(forest->value_start[tree + 1] - forest->value_start[tree] == (int64_t)n_leaves * width);
    for (int64_t node = 0; node < n_nodes; node++) {
        int32_t feature = forest->feature[base + node];
        CHECK(feature >= 0 && feature < p.m);
        for (int side = 0; side < 2; side++) {
            int32_t child = side ? forest->right[base + node] : forest->left[base + node];
            if (child == GMO_NO_LEAF) {
                missing_children++;
            } else if (child < 0) {
                seen_leaves++;
                CHECK(-1 - child < n_leaves);
            } else {
                CHECK(child > node && child < n_nodes);
            }
        }
    }
    for (int64_t v = forest->value_start[tree]; v < forest->value_start[tree + 1]; v++)
        CHECK(isfinite(forest->leaf_values[v]));
    if (complete) {
        CHECK(missing_children == 0 && forest->n_unassigned[tree] == 0);
        CHECK(n_leaves == n_nodes + 1 && seen_leaves == (n_nodes ? n_leaves : 0));
    }
}

static void check_same(const gmo_booster *a, const gmo_booster *b) {
    gmo_forest f, g;
    gmo_booster_forest(a, &f);
    gmo_booster_forest(b, &g);
    CHECK(f.n_trees == g.n_trees);
    CHECK(memcmp(f.node_start, g.node_start, (size_t)(f.n_trees + 1) * sizeof *f.node_start) == 0);
    CHECK(memcmp(f.value_start, g.value_start, (size_t)(f.n_trees + 1) * sizeof *f.value_start) == 0);
    size_t n_nodes = (size_t)f.node_start[f.n_trees], n_values = (size_t)f.value_start[f.n_trees];
    if (n_nodes) {
        CHECK(memcmp(f.feature, g.feature, n_nodes * sizeof *f.feature) == 0);
        CHECK(memcmp(f.bin, g.bin, n_nodes) == 0);
        CHECK(memcmp(f.left, g.left, n_nodes * sizeof *f.left) == 0);
        CHECK(memcmp(f.right, g.right, n_nodes * sizeof *f.right) == 0);
        CHECK(memcmp(f.missing_left, g.missing_left, n_nodes) == 0);
    }
    if (n_values)
        CHECK(memcmp(f.leaf_values, g.leaf_values, n_values * sizeof *f.leaf_values) == 0);
}

/* Trains with one to three threads and without room for histograms: always the same model, and a sound one. */
static void check_training(gmo_params params) {
    static double scores[2][MAX_N * MAX_D];
    params.n_threads = 1;
    gmo_booster *first = boosted(&params, ROUNDS);
    gmo_forest forest;
    gmo_booster_forest(first, &forest);
    CHECK(forest.n_trees == ROUNDS * (params.single_output ? p.d : 1));
    for (int64_t t = 0; t < forest.n_trees; t++)
        check_tree(&forest, t, params.growth == GMO_GROWTH_COMPLETE);
    predict(first, 1, scores[0]);
    for (params.n_threads = 2; params.n_threads <= 3; params.n_threads++) {
        params.histogram_pool_bytes = params.n_threads == 2 ? 1 << 20 : 0;
        gmo_booster *again = boosted(&params, ROUNDS);
        check_same(first, again);
        predict(again, params.n_threads, scores[1]);
        CHECK(memcmp(scores[0], scores[1], (size_t)(p.n * p.d) * sizeof(double)) == 0);
        gmo_booster_free(again);
    }
    gmo_booster_free(first);
}

static void check_all_settings(void) {
    const int32_t losses[] = {GMO_LOSS_SQUARED, GMO_LOSS_SOFTMAX, GMO_LOSS_SIGMOID};
    bool missing = false;
    for (int64_t f = 0; f < p.m; f++)
        missing = missing || p.has_missing[f];
    for (int l = 0; l < 3; l++)
        for (int variant = 0; variant < 6; variant++) {
            gmo_params params = plain();
            params.loss = losses[l];
            params.reg_lambda = 0.5;
            params.constant_hessian = variant == 1;
            params.single_output = variant == 2;
            params.top_k = variant == 3 ? 1 : variant == 4 ? (p.d + 1) / 2 : 0;
            params.restricted = variant != 4;
            params.growth = variant == 5 ? GMO_GROWTH_RELEASED : GMO_GROWTH_COMPLETE;
            params.max_leaves = variant == 5 ? 5 : 1000;
            params.node_cache = variant == 5 ? 2 : 16;
            if (!(missing && params.growth == GMO_GROWTH_RELEASED)) /* that growth refuses missing values */
                check_training(params);
        }
}

static void odd_shapes(void) {
    const int64_t rows[] = {1, 2, 7, MAX_N};
    const int32_t outputs[] = {1, 2, 9, 17};
    for (int r = 0; r < 4; r++)
        for (int o = 0; o < 4; o++)
            for (int64_t m = 1; m <= 3; m += 2) {
                make_problem(rows[r], m, outputs[o], o % 2 ? 255 : 2, (r + o) % 2);
                check_all_settings();
            }
}

/* A tree per output equals the trees of models with that output alone. */
static void single_output_trees_are_independent(void) {
    make_problem(MAX_N, 3, 2, 32, true);
    gmo_params params = plain();
    params.single_output = 1;
    static double both[MAX_N * 2], alone[MAX_N];
    gmo_booster *booster = boosted(&params, ROUNDS);
    predict(booster, 1, both);
    gmo_booster_free(booster);
    for (int64_t i = 0; i < p.n; i++)
        p.values[i] = p.values[2 * i + 1];
    p.d = 1;
    booster = boosted(&params, ROUNDS);
    predict(booster, 1, alone);
    gmo_booster_free(booster);
    for (int64_t i = 0; i < p.n; i++)
        CHECK(alone[i] == both[2 * i + 1]);
}

/* Validation rows of opposite targets: the first round is the best, and training ends after the patience. */
static void early_stopping_stops(void) {
    make_problem(200, 3, 3, 32, false);
    static double opposite[200 * 3];
    for (int i = 0; i < 200 * 3; i++)
        opposite[i] = -p.values[i];
    gmo_params params = plain();
    params.learning_rate = 0.1;
    params.early_stopping_rounds = 4;
    gmo_binned rows = rows_of_problem();
    gmo_target target = {NULL, p.values}, validation = {NULL, opposite};
    gmo_booster *booster;
    int32_t finished = 0;
    gmo_progress progress;
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, p.d, &booster) == GMO_OK);
    CHECK(gmo_booster_validate(booster, &rows, &validation) == GMO_OK);
    CHECK(gmo_booster_validate(booster, &rows, &validation) == GMO_ERR_ARGUMENT); /* once */
    CHECK(gmo_booster_boost(booster, 100, &finished) == GMO_OK);
    gmo_booster_progress(booster, &progress);
    CHECK(finished && progress.n_rounds == 5 && progress.n_tracks == 1 && progress.best_round[0] == 1);
    for (int64_t i = 1; i < progress.n_rounds; i++)
        CHECK(progress.history[i] > progress.history[i - 1]);
    CHECK(gmo_booster_boost(booster, 100, &finished) == GMO_OK); /* nothing more happens */
    gmo_booster_progress(booster, &progress);
    CHECK(finished && progress.n_rounds == 5);
    gmo_booster_free(booster);
}

static void arguments_are_checked(void) {
    make_problem(7, 1, 2, 32, false);
    gmo_binned rows = rows_of_problem(), none = rows;
    gmo_target target = target_of_problem(GMO_LOSS_SQUARED);
    gmo_booster *booster = (gmo_booster *)&p;
    gmo_params params = plain();
    none.n_rows = 0;
    CHECK(gmo_booster_create(&params, &none, p.has_missing, &target, p.base_score, 2, &booster) == GMO_ERR_ARGUMENT);
    CHECK(booster == NULL);
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, 0, &booster) == GMO_ERR_ARGUMENT);
    params.n_threads = 0;
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, 2, &booster) == GMO_ERR_ARGUMENT);
    gmo_booster_free(NULL);
}

/* Numbers of rows and outputs that no array could have: refused before any of them is read. */
static void sizes_that_overflow_are_refused(void) {
    make_problem(7, 1, 2, 32, false);
    gmo_binned rows = rows_of_problem();
    gmo_target target = target_of_problem(GMO_LOSS_SQUARED);
    gmo_params params = plain();
    gmo_booster *booster;
    rows.n_rows = (int64_t)INT32_MAX + 1;
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, 2, &booster) == GMO_ERR_SIZE);
    CHECK(booster == NULL);
    rows.n_rows = INT64_MAX / 2;
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, 2, &booster) == GMO_ERR_SIZE);
}

static void bad_gradients_are_reported(void) {
    make_problem(7, 1, 2, 32, false);
    p.values[3] = NAN;
    gmo_binned rows = rows_of_problem();
    gmo_target target = target_of_problem(GMO_LOSS_SQUARED);
    gmo_params params = plain();
    gmo_booster *booster;
    int32_t finished;
    CHECK(gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, 2, &booster) == GMO_OK);
    CHECK(gmo_booster_boost(booster, 1, &finished) == GMO_ERR_NUMERIC);
    gmo_booster_free(booster);
}

/* Whichever allocation fails, the status says so and nothing leaks. */
static void short_memory_is_reported(void) {
    make_problem(50, 3, 9, 32, true);
    gmo_binned rows = rows_of_problem();
    gmo_target target = target_of_problem(GMO_LOSS_SOFTMAX);
    gmo_params params = plain();
    params.loss = GMO_LOSS_SOFTMAX;
    params.metric = GMO_METRIC_LOG_LOSS;
    params.top_k = 2;
    bool done = false;
    for (long n = 0; !done; n++) {
        gmo_booster *booster;
        int32_t finished;
        allocations_left = n;
        gmo_status status = gmo_booster_create(&params, &rows, p.has_missing, &target, p.base_score, p.d, &booster);
        CHECK((status == GMO_OK) == (booster != NULL));
        if (status == GMO_OK)
            status = gmo_booster_validate(booster, &rows, &target);
        if (status == GMO_OK)
            status = gmo_booster_boost(booster, 2, &finished);
        done = allocations_left >= 0; /* none failed */
        CHECK(status == (done ? GMO_OK : GMO_ERR_MEMORY));
        allocations_left = -1;
        gmo_booster_free(booster);
        if (n > 10000)
            break;
    }
    CHECK(done);
}

int main(void) {
    four_rows_by_hand();
    odd_shapes();
    single_output_trees_are_independent();
    early_stopping_stops();
    arguments_are_checked();
    sizes_that_overflow_are_refused();
    bad_gradients_are_reported();
    short_memory_is_reported();
    return check_report();
}
