/* Search for the best split of a node [alg. 2, alg. 4]: over the histogram of the node, or, where the node has few rows,
 * over the rows themselves in the order of their bins. Both ways find the same split. */
#ifndef GMO_SPLIT_H
#define GMO_SPLIT_H

#include "hist.h"

typedef struct {
    double value;    /* score of the left side + score of the right side; 0: no candidate */
    double gain;     /* half of (value - score of the parent), averaged over the outputs used [app. B] */
    int64_t feature; /* -1: no candidate */
    int64_t n_left;
    int32_t bin;          /* bins up to this one go left */
    uint8_t missing_left; /* where missing values go */
    uint8_t missing_seen; /* whether a row of the node misses the feature */
} gmo_split;

/* What float32 estimates of candidates are made of [screen.c]: the sums of a node, and factors of the outputs that are
 * estimated one by one. */
typedef struct {
    bool on;                    /* whether candidates are estimated */
    int32_t n_rows;             /* of the node */
    int32_t d, hessian, stride; /* outputs; lane of the first Hessian; lanes of a row or cell */
    const int32_t *total;       /* (stride + GMO_LANES,) sum of all rows */
    const int32_t *rows;        /* (n_rows, stride) of a node searched by its rows */
    /* (n_rows + 1,) the most that outputs can gain, by the rows on the left: those not estimated, and those after the first
     * GMO_FIRST_OUTPUTS; NULL: none, and not known */
    const double *rest, *later;
    float *weight, *gradient, *own, *slope, *add; /* (d + GMO_LANES,) see gmo_screen_prepare */
    double scale, base, margin;
} gmo_estimates;

#define GMO_FIRST_OUTPUTS 32

typedef struct {
    double gain; /* that it may have */
    int32_t output;
} gmo_ranked_output;

/* A node to be searched. */
typedef struct {
    const int32_t *total; /* laid out as a row of gmo_fixed */
    const int32_t *rows;  /* (n_rows,) row numbers, if it is searched by its rows */
    int64_t n_rows;
    gmo_estimates estimates;
    int32_t *copied, *copied_total; /* memory of estimates: rows copied so that they lie together */
    double *rest;                   /* (2, small_rows + 1) */
    int32_t *least, *most;          /* (stride,) of the rows' lanes */
    int32_t *outputs;               /* (d,) in the order of estimating */
    gmo_ranked_output *ranked;      /* (d,) */
} gmo_split_node;

/* What the search needs besides the node; made once a booster. */
typedef struct {
    const gmo_hist_shape *shape;
    const gmo_fixed *fixed;
    double reg_lambda, reg_alpha;
    int32_t top_k; /* 0: full split */
    bool restricted;
    int64_t min_side;        /* rows that either side needs */
    int64_t small_rows;      /* nodes of at most so many rows are searched without a histogram; 0: none */
    bool estimates;          /* whether candidates may be estimated in this tree */
    gmo_split_node nodes[2]; /* two siblings */
    char *scratch;           /* n_threads areas of scratch_bytes */
    int64_t scratch_bytes;
} gmo_splitter;

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed);
void gmo_splitter_free(gmo_splitter *splitter);
/* To be called whenever the derivatives in fixed were rounded anew. */
void gmo_splitter_start_tree(gmo_splitter *splitter);

/* Integers of a node's total: a row of gmo_fixed with spare elements. */
static inline int64_t gmo_total_size(const gmo_hist_shape *shape) { return (int64_t)shape->stride + GMO_LANES; }

/* Sets node->outputs to all outputs, in order, and returns how many they are. */
int32_t gmo_split_all_outputs(const gmo_splitter *splitter, gmo_split_node *node);
/* Sets splitter->nodes[number] to a node that is searched from its histogram; total is borrowed. */
void gmo_split_prepare(gmo_splitter *splitter, int32_t number, const int32_t *total);
/* The same of a node that is searched by its n_rows <= small_rows rows; rows and total are borrowed. */
void gmo_split_prepare_small(gmo_splitter *splitter, int32_t number, const int32_t *rows, int64_t n_rows,
                             const int32_t *total);
/* Looks for a better split than *best among the features of a block; a thread calls it with its own best. Of equal splits
 * the one of the lowest feature, then the lowest bin wins, in whatever order blocks are taken. part: the block's part of
 * the node's histogram. */
void gmo_split_scan(const gmo_splitter *splitter, const gmo_split_node *node, const int32_t *part,
                    const gmo_hist_block *block, gmo_split *best);
/* As gmo_split_scan, from the rows of the node. */
void gmo_split_scan_small(const gmo_splitter *splitter, const gmo_split_node *node, const gmo_hist_block *block,
                          gmo_split *best);
/* The better of two splits, by the rule of ties above. */
gmo_split gmo_split_better(gmo_split a, gmo_split b);
/* Completes the best split of a node with its gain and the way of missing values. */
void gmo_split_finish(const gmo_splitter *splitter, const int32_t *total, gmo_split *best);

/* Score of every output from sums laid out as a row of gmo_fixed, with GMO_LANES spare elements at the end of both. */
void gmo_split_scores(const gmo_splitter *splitter, const int32_t *row, double *score);

/* soft(G, alpha): G shrunk towards 0 by alpha. */
static inline double gmo_soft(double g, double alpha) {
    double size = (g < 0 ? -g : g) - alpha;
    size = size > 0 ? size : 0;
    return g < 0 ? -size : size;
}

#endif
