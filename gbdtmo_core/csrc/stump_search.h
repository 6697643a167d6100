/* Search for the stump of the least Z = 2 sum over sides and labels of sqrt(W+ W-), among all features and all
 * thresholds between neighbouring values. */
#ifndef GMO_STUMP_SEARCH_H
#define GMO_STUMP_SEARCH_H

#include "stump_weights.h"

/* A thread's working memory, and the best stump it has found. */
typedef struct {
    double *memory;
    gmo_label_sums left, before; /* rows up to here, and up to the block */
    double *term;                /* (stride,) */
    double best;                 /* Z, not normalised */
    int64_t feature, at;         /* side 0 are the rows up to `at` in the feature's order */
} gmo_stump_searcher;

typedef struct {
    const gmo_stump_weights *weights;
    uint32_t *order; /* (n_features, n_rows) rows by value: twice the row, + 1 where the next value is larger */
    gmo_stump_searcher *searchers; /* (n_threads,) */
    int32_t n_threads;
} gmo_stump_search;

/* side: in: memory, (stride,) each; out, if a feature is found: sums over side 0. A feature of -1: none has two values. */
typedef struct {
    int64_t feature;
    double threshold;
    gmo_label_sums side;
} gmo_stump_found;

/* Sorts the rows by every feature. Borrows weights. */
gmo_status gmo_stump_search_init(gmo_stump_search *search, const gmo_stump_weights *weights, int32_t n_threads);
void gmo_stump_search_free(gmo_stump_search *search);
/* The best stump: the lowest feature, then the lowest threshold of those with the least Z. */
void gmo_stump_search_run(gmo_stump_search *search, gmo_stump_found *found);

#endif
