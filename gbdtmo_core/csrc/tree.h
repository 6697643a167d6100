/* Trees as growing arrays (the owner's side of gmo_forest), and prediction of binned rows. */
#ifndef GMO_TREE_H
#define GMO_TREE_H

#include "common.h"

typedef struct {
    int64_t n_trees, tree_capacity, n_nodes, node_capacity, n_values, value_capacity;
    int64_t *node_start, *value_start, *n_unassigned;
    int32_t *n_leaves, *tree_output, *tree_round;
    int32_t *feature, *left, *right;
    uint8_t *bin, *missing_left;
    double *leaf_values;
} gmo_trees;

void gmo_trees_free(gmo_trees *trees);
/* Opens a tree at the end; nodes and leaves that follow belong to it. output: -1 for all. */
gmo_status gmo_trees_open(gmo_trees *trees, int32_t output, int32_t round);
/* Takes the last tree away again. */
void gmo_trees_drop(gmo_trees *trees);
/* Appends a node whose children are GMO_NO_LEAF; *node is its number within the tree. */
gmo_status gmo_trees_add_node(gmo_trees *trees, int64_t feature, int32_t bin, uint8_t missing_left, int32_t *node);
/* Appends a leaf of width zeros; *leaf is its number within the tree. */
gmo_status gmo_trees_add_leaf(gmo_trees *trees, int32_t width, int32_t *leaf);
void gmo_trees_view(const gmo_trees *trees, int32_t n_outputs, gmo_forest *out);

/* Adds the listed trees, in that order, to scores (n_rows, n_outputs): the plain version of gmo_predictor_add, for rows that
 * have bins, as in training. */
gmo_status gmo_forest_predict(const gmo_forest *forest, const int64_t *trees, int64_t n_trees, const gmo_binned *rows,
                              int32_t n_threads, double *scores);

/* Whether a row with this bin of the node's feature goes left. */
static inline bool gmo_goes_left(uint8_t bin, uint8_t node_bin, uint8_t missing_left, int64_t missing_bin) {
    return bin == missing_bin ? missing_left : bin <= node_bin;
}

#endif
