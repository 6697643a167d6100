/* Trains models of every kind on problems that take every kernel, and prints a hash of each model's bits: the same on any
 * instruction set (test_instruction_sets.py). */
#include "gbdtmo.h"
#include "random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1500, M = 24, MAX_D = 70 };

static uint8_t bins[N * M], has_missing[M];
static int64_t edge_start[M + 1];
static int32_t labels[N];
static double values[N * MAX_D], base_score[MAX_D];

/* Half of the features are mostly zero, a third have missing values; bins from 2 to 255. */
static void make_rows(int32_t d) {
    static const int32_t n_bins[] = {2, 5, 16, 40, 64, 255};
    for (int f = 0; f < M; f++) {
        edge_start[f + 1] = edge_start[f] + n_bins[f % 6] - 1;
        has_missing[f] = f % 3 == 1;
    }
    for (int i = 0; i < N; i++) {
        for (int f = 0; f < M; f++) {
            bool zero = f % 2 && random_below(10) < 8;
            bins[i * M + f] = zero ? 0 : (uint8_t)random_below((uint32_t)(n_bins[f % 6] + has_missing[f]));
        }
        labels[i] = (int32_t)((bins[i * M + 3] + random_below(3)) % (uint32_t)d);
        for (int j = 0; j < d; j++)
            values[i * d + j] = (bins[i * M + j % M] > 1 + j % 3) ^ (random_below(8) == 0);
    }
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u; /* FNV-1a */
    return hash;
}

/* Scores of rows whose values are their bins, from the packed nodes. */
static uint64_t hash_scores(uint64_t hash, const gmo_forest *forest) {
    static float x[N * M];
    static double edges[M * 255], scores[N * MAX_D];
    static int64_t trees[4 * MAX_D];
    for (int i = 0; i < N * M; i++)
        x[i] = bins[i];
    for (int f = 0; f < M; f++)
        for (int64_t e = edge_start[f]; e < edge_start[f + 1]; e++)
            edges[e] = (double)(e - edge_start[f]) + 0.5;
    for (int64_t t = 0; t < forest->n_trees; t++)
        trees[t] = t;
    gmo_matrix rows = {(const char *)x, N, M, M * sizeof *x, sizeof *x, 0};
    gmo_packed_node *nodes =
        malloc((size_t)(2 * forest->node_start[forest->n_trees] + forest->n_trees) * sizeof *nodes);
    gmo_predictor predictor = {forest, base_score, trees, nodes, forest->n_trees};
    if (!nodes || gmo_forest_pack(forest, edges, edge_start, nodes) != GMO_OK ||
        gmo_predictor_add(&predictor, 0, forest->n_trees, &rows, 1, scores) != GMO_OK)
        exit(1);
    free(nodes);
    return hash_bytes(hash, scores, (int64_t)sizeof *scores * N * forest->n_outputs);
}

static uint64_t train(const gmo_params *params, int32_t d) {
    gmo_binned rows = {bins, edge_start, N, M};
    gmo_target target = params->loss == GMO_LOSS_SOFTMAX ? (gmo_target){labels, NULL} : (gmo_target){NULL, values};
    gmo_booster *booster;
    gmo_forest forest;
    int32_t finished;
    if (gmo_booster_create(params, &rows, has_missing, &target, base_score, d, &booster) != GMO_OK ||
        gmo_booster_boost(booster, 4, &finished) != GMO_OK)
        exit(1);
    gmo_booster_forest(booster, &forest);
    int64_t n_nodes = forest.node_start[forest.n_trees], n_values = forest.value_start[forest.n_trees];
    uint64_t hash = 14695981039346656037u;
    hash = hash_bytes(hash, forest.feature, 4 * n_nodes);
    hash = hash_bytes(hash, forest.bin, n_nodes);
    hash = hash_bytes(hash, forest.missing_left, n_nodes);
    hash = hash_bytes(hash, forest.leaf_values, 8 * n_values);
    hash = hash_scores(hash, &forest);
    gmo_booster_free(booster);
    return hash;
}

static gmo_params params_of(int32_t loss, int32_t top_k, bool small_leaves) {
    return (gmo_params){.loss = loss,
                        .top_k = top_k,
                        .restricted = small_leaves,
                        .max_depth = 7,
                        .node_cache = 16,
                        .n_threads = 1 + small_leaves,
                        .max_leaves = 60,
                        .min_samples_leaf = small_leaves ? 1 : 40,
                        .histogram_pool_bytes = 1 << 24,
                        .learning_rate = 0.3,
                        .reg_lambda = small_leaves ? 0 : 1};
}

static void print(const gmo_params *params, int32_t d, bool small_leaves) {
    printf("%d outputs, loss %d, top_k %d, exact Hessian %d, small leaves %d: %016llx\n", d, params->loss,
           params->top_k, params->exact_hessian, small_leaves, (unsigned long long)train(params, d));
}

/* Stumps of a few rounds, on rows whose values are their bins. */
static uint64_t boost_stumps(int32_t q) {
    enum { ROUNDS = 8 };
    static double x[N * M], threshold[ROUNDS], leaf_scores[ROUNDS * 2 * MAX_D], normalizer[ROUNDS], scores[N * MAX_D];
    static uint8_t indicator[N * MAX_D];
    static int32_t feature[ROUNDS];
    for (int i = 0; i < N * M; i++)
        x[i] = bins[i];
    for (int i = 0; i < N * q; i++) {
        indicator[i] = values[i] > 0;
        scores[i] = 0;
    }
    gmo_stump_rows rows = {x, indicator, NULL, N, M, q};
    gmo_stumps stumps = {ROUNDS, q, feature, threshold, leaf_scores, normalizer};
    gmo_stump_booster *booster;
    if (gmo_stump_booster_create(&rows, 1.0 / (N * q), 1, &booster) != GMO_OK ||
        gmo_stump_booster_boost(booster, &stumps, 0, ROUNDS) != GMO_OK ||
        gmo_stumps_add(&stumps, 0, ROUNDS, x, N, M, 1, scores) != GMO_OK)
        exit(1);
    gmo_stump_booster_free(booster);
    uint64_t hash = hash_bytes(14695981039346656037u, feature, (int64_t)sizeof feature);
    hash = hash_bytes(hash, threshold, (int64_t)sizeof threshold);
    hash = hash_bytes(hash, normalizer, (int64_t)sizeof normalizer);
    hash = hash_bytes(hash, leaf_scores, (int64_t)sizeof *leaf_scores * ROUNDS * 2 * q);
    return hash_bytes(hash, scores, (int64_t)sizeof *scores * N * q);
}

/* A ranking machine of a kernel without functions of the C library, whose bits are its own. */
static uint64_t train_ranking(double c, bool linear) {
    enum { ROWS = 200, LABELS = 6 };
    static double x[ROWS * M], gram[ROWS * ROWS], diagonal[ROWS], cost[ROWS], dual_coef[ROWS * LABELS], bias[LABELS];
    static uint8_t relevant[ROWS * LABELS];
    for (int i = 0; i < ROWS; i++) {
        int size = 0;
        for (int f = 0; f < M; f++)
            x[i * M + f] = random_below(1000) / 1000.0;
        for (int k = 0; k < LABELS; k++)
            size += relevant[i * LABELS + k] = x[i * M + k] + x[i * M + k + 1] > 1.1;
        cost[i] = size && size < LABELS ? c / (size * (LABELS - size)) : 0;
    }
    gmo_features rows = {x, NULL, NULL, ROWS, M};
    gmo_kernel kernel = {linear ? GMO_KERNEL_LINEAR : GMO_KERNEL_POLY, 3, 1, 1};
    gmo_ranksvm_problem problem = {.n_samples = ROWS,
                                   .n_labels = LABELS,
                                   .n_groups = 1,
                                   .relevant = relevant,
                                   .group_start = (int32_t[]){0, LABELS},
                                   .cost = cost,
                                   .diagonal = diagonal,
                                   .gram = linear ? NULL : gram,
                                   .features = linear ? &rows : NULL,
                                   .tolerance = 1e-4,
                                   .max_epochs = 200};
    gmo_ranksvm *machine;
    gmo_ranksvm_state state;
    if (gmo_kernel_block(&kernel, &rows, 0, ROWS, &rows, 2, gram) != GMO_OK ||
        gmo_kernel_diagonal(&kernel, &rows, diagonal) != GMO_OK || gmo_ranksvm_create(&problem, &machine) != GMO_OK ||
        gmo_ranksvm_run(machine, INT64_MAX / 2) != GMO_OK)
        exit(1);
    gmo_ranksvm_look(machine, &state);
    gmo_ranksvm_solution(machine, dual_coef, bias);
    gmo_ranksvm_free(machine);
    uint64_t hash = hash_bytes(14695981039346656037u, &state.gap, sizeof state.gap);
    return hash_bytes(hash_bytes(hash, dual_coef, sizeof dual_coef), bias, sizeof bias);
}

int main(void) {
    static const int32_t widths[] = {1, 3, 10, 16, 24, 70};
    for (int w = 0; w < 6; w++) {
        make_rows(widths[w]);
        printf("%d labels, stumps: %016llx\n", widths[w], (unsigned long long)boost_stumps(widths[w]));
        for (int32_t small_leaves = 0; small_leaves < 2; small_leaves++) {
            for (int32_t loss = GMO_LOSS_SQUARED; loss <= GMO_LOSS_SIGMOID; loss++)
                for (int32_t top_k = 0; top_k <= 4; top_k += 2) {
                    gmo_params params = params_of(loss, top_k, small_leaves);
                    params.single_output = widths[w] == 3 && small_leaves;
                    print(&params, widths[w], small_leaves);
                }
            gmo_params params = params_of(GMO_LOSS_SOFTMAX, 0, small_leaves);
            params.exact_hessian = 1;
            if (widths[w] > 1 && widths[w] < 20) /* its time grows with the cube of the outputs */
                print(&params, widths[w], small_leaves);
        }
    }
    for (int32_t linear = 0; linear < 2; linear++)
        for (int32_t hard = 0; hard < 2; hard++)
            printf("ranking, linear %d, hard margin %d: %016llx\n", linear, hard,
                   (unsigned long long)train_ranking(hard ? HUGE_VAL : 0.5, linear));
    return 0;
}
