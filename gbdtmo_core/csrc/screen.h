/* Estimates of candidates in float32: they only decide which candidates are worth scoring in float64, so that no result
 * depends on the order of their sums. */
#ifndef GMO_SCREEN_H
#define GMO_SCREEN_H

#include "split.h"

typedef float gmo_float16 __attribute__((vector_size(64), aligned(4), may_alias));

/* The bins of a feature in a node: cells of its histogram, or its rows in the order of their bins. */
typedef struct {
    const int32_t *cells; /* NULL: rows */
    const int32_t *order; /* places of the rows within the node */
    const int32_t *start; /* rows of bin b: order[start[b]] .. order[start[b + 1]] */
    const int32_t *rows;  /* the node's row numbers */
} feature_bins;

/* A candidate: all bins up to this one go left, and the missing values if missing_left. */
typedef struct {
    int32_t bin, n_left;
    bool missing_left;
    /* Constant Hessian: the left side's share of the denominators, and what squares are divided by. */
    float share, by_left, by_right, by_both;
    float threshold[2]; /* top-k: of both sides' scores together, or of either side's */
} candidate;

/* The candidates of one feature of a node, and their estimates. */
typedef struct {
    int64_t feature;
    feature_bins bins;
    int32_t n_candidates, n_missing;
    candidate *candidates;      /* (MAX_CANDIDATES,) */
    int32_t *missing;           /* (stride + GMO_LANES,) sum of the rows that miss the feature */
    int32_t *estimated_missing; /* the same, laid out as gmo_estimates.rows */
    gmo_float16 *sums;          /* (MAX_CANDIDATES, number of sums of the kind of split): see gmo_bound_sums */
    double *bounds;             /* (MAX_CANDIDATES,) upper bounds of the values */
    int32_t *start;             /* (MAX_CELLS + 1,) memory of bins.start */
    int32_t *order;             /* (small_rows,) memory of bins.order */
} feature_scan;

/* Features whose candidates are looked at together. */
#define GMO_GROUP_FEATURES 8

/* What is summed over the outputs of a candidate, with scores l and r of either side. The sum of the k largest of scores is
 * at most their whole sum, and at most k t + the sum of what exceeds t, for any t; it is the latter where t is the k-th
 * largest. So a threshold t near that of a candidate scored before shows most others to be worse without any selection.
 * Full: l + r. Restricted: l + r, and what exceeds t. Unrestricted: l, r, and what they exceed their own t by. */
typedef enum { SUMS_FULL = 1, SUMS_RESTRICTED = 2, SUMS_UNRESTRICTED = 4 } gmo_bound_sums;
#define GMO_MAX_SUMS 4

gmo_bound_sums gmo_screen_kind(const gmo_splitter *splitter);
/* Whether estimates can be bounded in this tree. */
bool gmo_screen_is_sound(const gmo_splitter *splitter);
/* Completes node->estimates, whose layout, rows and rest are set, with the factors of its outputs. */
void gmo_screen_prepare(const gmo_splitter *splitter, gmo_split_node *node);
/* Upper bounds of the values of all candidates of n scans; they may be loose once they are below least. kth: the k-th
 * largest scores of a candidate scored before, of both sides together, or of either, a row. */
void gmo_screen_bound(const gmo_splitter *splitter, const gmo_estimates *e, feature_scan *scans, int32_t n,
                      const double kth[2], double least);

#endif
