/* Growth of one tree, best node first [alg. 5]. */
#ifndef GMO_GROW_H
#define GMO_GROW_H

#include "exact.h"
#include "tree.h"

/* A node while its tree grows: a range of gmo_grower.rows. */
typedef struct {
    int64_t begin, count;
    int64_t slot;          /* histogram in the pool, -1: none */
    int32_t depth, parent; /* parent: node number in the tree, -1: root */
    bool is_left;
    gmo_split split;
} gmo_node;

/* A finished leaf: its rows and its number. */
typedef struct {
    int64_t begin, count;
    int32_t leaf;
} gmo_leaf_rows;

/* Seconds; of parallel work the mean over its threads. */
typedef struct {
    double histogram, split, partition;
    int64_t entries; /* that histograms had to add: those outside their feature's most frequent bin */
} gmo_growth_times;

/* What growing needs. Made once a booster, used for every tree. */
typedef struct {
    const gmo_params *params;
    gmo_hist_shape shape;
    gmo_fixed fixed;
    gmo_splitter splitter;
    gmo_exact exact; /* takes the place of fixed-point sums and splitter if exact.d > 0 */
    gmo_trees *trees;

    int32_t *rows, *spare; /* (n_rows,) row numbers, parted by node; each node's rows stay ascending */
    int64_t *part_left;    /* (n_threads,) rows that go left of every thread's share */
    gmo_node *nodes;
    int64_t n_nodes, node_capacity;
    int64_t *pending; /* nodes that wait for their split */
    int64_t n_pending, pending_capacity;
    gmo_leaf_rows *leaves;
    int64_t n_leaves, leaf_capacity;

    int32_t **pool;      /* histograms, each followed by the total of its node; allocated when first used */
    int64_t *slot_owner; /* node that holds a slot, -1: free */
    int64_t n_slots;
    int32_t *totals;        /* (2, total size) of two nodes that have no slot */
    int32_t *thread_totals; /* (n_threads, total size) of every thread's share of a node */
    int32_t *parts;         /* (n_threads, 2, part_size) a block of two histograms that are not kept */
    int64_t part_size;

    gmo_growth_times times; /* of the trees so far */
} gmo_grower;

/* The Hessian is summed in histograms unless it is constant. d: outputs of one tree. */
gmo_status gmo_grower_init(gmo_grower *grower, const gmo_params *params, const gmo_binned *data,
                           const uint8_t *has_missing, int32_t d, bool has_hessian, gmo_trees *trees);
void gmo_grower_free(gmo_grower *grower);

/* Grows a tree on the derivatives in grower->fixed into the open tree of grower->trees; leaves hold zeros yet. */
gmo_status gmo_grow_complete(gmo_grower *grower);
/* As the released program (commit 639615f) does: nodes beyond its limits are dropped, their rows get no leaf. */
gmo_status gmo_grow_released(gmo_grower *grower);

/* Integers of a slot: a histogram and the total behind it. */
static inline int64_t gmo_slot_size(const gmo_grower *grower) {
    return grower->shape.size + gmo_total_size(&grower->shape);
}

/* The steps that both share. */
gmo_status gmo_grower_start(gmo_grower *grower, int64_t *root);
/* Turns a node into an inner node of the tree and parts its rows; *left and *right are its new children. */
gmo_status gmo_grower_split(gmo_grower *grower, int64_t node, int64_t *left, int64_t *right);
gmo_status gmo_grower_make_leaf(gmo_grower *grower, int64_t node);
/* Best split of a node from its rows (search.c). */
gmo_status gmo_grower_search(gmo_grower *grower, int64_t node);
/* The same for two children at once: the larger (if wanted) by subtraction from the parent's histogram if that is held. */
gmo_status gmo_grower_search_children(gmo_grower *grower, int64_t parent, int64_t left, int64_t right, bool want_left,
                                      bool want_right);
void gmo_grower_release(gmo_grower *grower, int64_t node);

#endif
