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

/* How float32 estimates of candidates are made: a candidate whose estimate is below the best value by more than the
 * estimate's error bound cannot win, and is not scored in float64. */
typedef struct {
    bool on;
    double scale;       /* value = estimate * scale */
    double slack;       /* 1 - bound of the relative error of an estimate */
    float *weight;      /* (d + GMO_LANES,) factor of a gradient; 0 beyond d */
    float *slope, *add; /* (d + GMO_LANES,) denominator = slope * Hessian + add; slope is 0, add 1 beyond d */
} gmo_screen;

/* What the search needs besides the node; made once a booster. */
typedef struct {
    const gmo_hist_shape *shape;
    const gmo_fixed *fixed;
    double reg_lambda, reg_alpha;
    int32_t top_k; /* 0: full split */
    bool restricted;
    int64_t min_side;   /* rows that either side needs */
    int64_t small_rows; /* nodes of at most so many rows are searched without a histogram; 0: none */
    gmo_screen screen;
    char *scratch; /* n_threads areas of scratch_bytes */
    int64_t scratch_bytes;
} gmo_splitter;

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed);
void gmo_splitter_free(gmo_splitter *splitter);
/* To be called whenever the derivatives in fixed were rounded anew. */
void gmo_splitter_start_tree(gmo_splitter *splitter);

/* Integers of a node's total: a row of gmo_fixed with spare elements. */
static inline int64_t gmo_total_size(const gmo_hist_shape *shape) { return (int64_t)shape->stride + GMO_LANES; }

/* Looks for a better split than *best among the features of a block; a thread calls it with its own best. Of equal splits
 * the one of the lowest feature, then the lowest bin wins, in whatever order blocks are taken. total: of the node. */
void gmo_split_scan(const gmo_splitter *splitter, const int32_t *hist, const int32_t *total,
                    const gmo_hist_block *block, gmo_split *best);
/* The same from the n_rows <= small_rows rows of the node. */
void gmo_split_scan_small(const gmo_splitter *splitter, const int32_t *rows, int64_t n_rows, const int32_t *total,
                          const gmo_hist_block *block, gmo_split *best);
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
