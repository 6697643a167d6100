/* Search for the best split of a node from its histogram [alg. 2, alg. 4]. */
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
} gmo_split;

/* What the search needs besides the histogram; made once a tree. */
typedef struct {
    const gmo_hist_shape *shape;
    const gmo_fixed *fixed;
    double reg_lambda, reg_alpha;
    int32_t top_k; /* 0: full split */
    bool restricted;
    int64_t min_side; /* rows that either side needs */
    int32_t n_threads;
    char *scratch; /* n_threads areas of scratch_bytes */
    int64_t scratch_bytes;
} gmo_splitter;

gmo_status gmo_splitter_init(gmo_splitter *splitter, const gmo_params *params, const gmo_hist_shape *shape,
                             const gmo_fixed *fixed);
void gmo_splitter_free(gmo_splitter *splitter);

gmo_split gmo_split_find(const gmo_splitter *splitter, const int32_t *hist);

/* Score of every output from sums laid out as a row of gmo_fixed, with GMO_LANES spare elements at the end of both. */
void gmo_split_scores(const gmo_splitter *splitter, const int32_t *row, double *score);

/* soft(G, alpha): G shrunk towards 0 by alpha. */
static inline double gmo_soft(double g, double alpha) {
    double size = (g < 0 ? -g : g) - alpha;
    size = size > 0 ? size : 0;
    return g < 0 ? -size : size;
}

#endif
