#include "tree.h"

#include <string.h>

void gmo_trees_free(gmo_trees *t) {
    void *arrays[] = {t->node_start, t->value_start, t->n_unassigned, t->n_leaves, t->tree_output,  t->tree_round,
                      t->feature,    t->left,        t->right,        t->bin,      t->missing_left, t->leaf_values};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    memset(t, 0, sizeof *t);
}

/* Grows arrays that share one capacity. */
static gmo_status reserve_all(void **arrays[], const size_t sizes[], int n_arrays, int64_t *capacity, int64_t needed) {
    int64_t reached = *capacity;
    for (int i = 0; i < n_arrays; i++) {
        int64_t own = *capacity;
        GMO_TRY(gmo_reserve(arrays[i], &own, needed, sizes[i]));
        reached = own;
    }
    *capacity = reached;
    return GMO_OK;
}

gmo_status gmo_trees_open(gmo_trees *t, int32_t output, int32_t round) {
    void **arrays[] = {(void **)&t->node_start, (void **)&t->value_start, (void **)&t->n_unassigned,
                       (void **)&t->n_leaves,   (void **)&t->tree_output, (void **)&t->tree_round};
    const size_t sizes[] = {8, 8, 8, 4, 4, 4};
    GMO_TRY(reserve_all(arrays, sizes, 6, &t->tree_capacity, t->n_trees + 2));
    int64_t tree = t->n_trees++;
    t->node_start[tree] = t->node_start[tree + 1] = t->n_nodes;
    t->value_start[tree] = t->value_start[tree + 1] = t->n_values;
    t->n_unassigned[tree] = 0;
    t->n_leaves[tree] = 0;
    t->tree_output[tree] = output;
    t->tree_round[tree] = round;
    return GMO_OK;
}

void gmo_trees_drop(gmo_trees *t) {
    t->n_trees--;
    t->n_nodes = t->node_start[t->n_trees];
    t->n_values = t->value_start[t->n_trees];
}

gmo_status gmo_trees_add_node(gmo_trees *t, int64_t feature, int32_t bin, uint8_t missing_left, int32_t *node) {
    void **arrays[] = {(void **)&t->feature, (void **)&t->left, (void **)&t->right, (void **)&t->bin,
                       (void **)&t->missing_left};
    const size_t sizes[] = {4, 4, 4, 1, 1};
    if (feature > INT32_MAX)
        return GMO_ERR_SIZE;
    GMO_TRY(reserve_all(arrays, sizes, 5, &t->node_capacity, t->n_nodes + 1));
    int64_t at = t->n_nodes++;
    t->feature[at] = (int32_t)feature;
    t->bin[at] = (uint8_t)bin;
    t->missing_left[at] = missing_left;
    t->left[at] = t->right[at] = GMO_NO_LEAF;
    t->node_start[t->n_trees] = t->n_nodes;
    *node = (int32_t)(at - t->node_start[t->n_trees - 1]);
    return GMO_OK;
}

gmo_status gmo_trees_add_leaf(gmo_trees *t, int32_t width, int32_t *leaf) {
    GMO_TRY(gmo_reserve((void **)&t->leaf_values, &t->value_capacity, t->n_values + width, sizeof *t->leaf_values));
    memset(t->leaf_values + t->n_values, 0, (size_t)width * sizeof *t->leaf_values);
    t->n_values += width;
    t->value_start[t->n_trees] = t->n_values;
    *leaf = t->n_leaves[t->n_trees - 1]++;
    return GMO_OK;
}

void gmo_trees_view(const gmo_trees *t, int32_t n_outputs, gmo_forest *out) {
    *out = (gmo_forest){t->n_trees,     n_outputs,     t->node_start,   t->value_start, t->n_leaves,
                        t->tree_output, t->tree_round, t->n_unassigned, t->feature,     t->left,
                        t->right,       t->bin,        t->missing_left, t->leaf_values};
}

/* The leaf of a tree that a row falls into, or -1. */
static int32_t leaf_of(const gmo_forest *forest, int64_t tree, const gmo_binned *rows, const uint8_t *bins) {
    int64_t base = forest->node_start[tree];
    if (forest->node_start[tree + 1] == base)
        return forest->n_leaves[tree] - 1;
    int32_t at = 0;
    while (at >= 0) {
        int64_t node = base + at;
        int32_t f = forest->feature[node];
        int64_t missing_bin = rows->edge_start[f + 1] - rows->edge_start[f] + 1;
        at = gmo_goes_left(bins[f], forest->bin[node], forest->missing_left[node], missing_bin) ? forest->left[node]
                                                                                                : forest->right[node];
    }
    return at == GMO_NO_LEAF ? -1 : -1 - at;
}

static void add_tree(const gmo_forest *forest, int64_t tree, const gmo_binned *rows, const uint8_t *bins,
                     double *scores) {
    int32_t leaf = leaf_of(forest, tree, rows, bins), output = forest->tree_output[tree];
    if (leaf < 0)
        return;
    const double *values = forest->leaf_values + forest->value_start[tree];
    if (output >= 0) {
        scores[output] += values[leaf];
        return;
    }
    values += leaf * (int64_t)forest->n_outputs;
    for (int32_t j = 0; j < forest->n_outputs; j++)
        scores[j] += values[j];
}

gmo_status gmo_forest_predict(const gmo_forest *forest, const int64_t *trees, int64_t n_trees, const gmo_binned *rows,
                              int32_t n_threads, double *scores) {
    if (n_threads < 1)
        return GMO_ERR_ARGUMENT;
    for (int64_t t = 0; t < n_trees; t++)
        if (trees[t] < 0 || trees[t] >= forest->n_trees)
            return GMO_ERR_ARGUMENT;
#pragma omp parallel for schedule(static)                                                                              \
    num_threads(n_threads) if (GMO_PARALLEL(n_threads, rows->n_rows * n_trees * 64))
    for (int64_t i = 0; i < rows->n_rows; i++)
        for (int64_t t = 0; t < n_trees; t++)
            add_tree(forest, trees[t], rows, rows->bins + i * rows->n_features, scores + i * forest->n_outputs);
    return GMO_OK;
}
