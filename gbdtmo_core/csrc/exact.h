/* Splits and leaves with softmax's whole Hessian, sum of diag(p) - p p' over rows [eq. 13, eq. 14], instead of its diagonal.
 *
 * Sums are kept as w_jk = sum of p_j p_k for k < j alone (cholesky.h); since the probabilities of a row sum to 1, the
 * diagonal, sum of p_j (1 - p_j), is what the others of its row add up to. For the search, rows are rounded to integers
 * that float64 sums exactly, as fixed.h does with int32: the order of rows and threads change no bit. The histogram
 * [alg. 1] of a few features at a time is built, searched and forgotten, by every thread on its own: one of all features
 * would hold d^2 / 2 sums a bin. Time: O(bins features d^3) a node, and O(rows features d^2). */
#ifndef GMO_EXACT_H
#define GMO_EXACT_H

#include "split.h"

/* Made once a booster, for trees of all outputs in complete growth, without top-k and L1 penalty. */
typedef struct {
    int32_t d; /* 0: the Hessian is not exact, nothing here is used */
    int32_t n_threads;
    const gmo_hist_shape *shape;
    const double *gradient; /* (n_rows, d) p - onehot; borrowed, read when a tree grows */
    const int32_t *labels;  /* (n_rows,) borrowed */
    double reg_lambda, learning_rate;
    int64_t min_side; /* rows that either side needs */

    int64_t n_sums,
        stride;   /* d gradients and d (d - 1) / 2 weights; with a count after them and zeros up to whole vectors */
    double scale; /* a sum's integer is its value times this power of two */
    int64_t block_features; /* features whose histograms a thread holds at once */
    int64_t most_cells;     /* bins of a feature at most, that of missing values among them */
    double *total;          /* (stride,) of the node that is searched */
    char *scratch;          /* n_threads areas of scratch_bytes */
    int64_t scratch_bytes;
} gmo_exact;

/* Seconds, the mean over threads. */
typedef struct {
    double histogram, split;
} gmo_exact_times;

gmo_status gmo_exact_init(gmo_exact *exact, const gmo_params *params, const gmo_hist_shape *shape,
                          const double *gradient, const int32_t *labels, int32_t d);
void gmo_exact_free(gmo_exact *exact);

/* The best split of a node with these rows; ties, gain and missing values as in split.h. Adds to *times. */
gmo_split gmo_exact_search(const gmo_exact *exact, const int32_t *rows, int64_t n_rows, gmo_exact_times *times);
/* value (d,): the vector of a leaf with these rows [eq. 13], from float64 sums in their order. Threads may call it at once. */
void gmo_exact_leaf(const gmo_exact *exact, const int32_t *rows, int64_t n_rows, double *value);

#endif
