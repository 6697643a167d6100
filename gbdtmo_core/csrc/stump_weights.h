/* Weights D(i, l) of rows and labels in AdaBoost.MH, and their sums.
 *
 * Weights are kept as logarithms, so that none is ever lost. For sums they are taken relative to the largest and rounded
 * to multiples of a power of two, one for each label and round, such that float64 adds them exactly: no sum depends on the
 * order of rows or on threads, a side is exactly the total less the other, and stumps that part the rows alike tie. */
#ifndef GMO_STUMP_WEIGHTS_H
#define GMO_STUMP_WEIGHTS_H

#include "common.h"

/* Labels are padded to whole vectors of so many. */
#define GMO_LABEL_LANES 8

/* Weights of every label over some rows: W+ plus W-, and W+ minus W-, of the relevant and the irrelevant. */
typedef struct {
    double *sum, *difference; /* (stride,) */
} gmo_label_sums;

typedef struct {
    const gmo_stump_rows *rows;
    int64_t stride;       /* labels, padded */
    double *log_weight;   /* (n_rows, stride) ln D but for a constant; -infinity in padding */
    double *weight;       /* (n_rows, stride) D but for a factor, rounded; negative where the label is irrelevant */
    double *unit;         /* (stride,) powers of two; a label's weights are rounded to multiples of 2^-52 of its own */
    gmo_label_sums total; /* over all rows */
    double grand;         /* over all rows and labels */
} gmo_stump_weights;

/* The first D: the rows' weights. Borrows rows, whose n_rows * n_features * stride must fit its type. */
gmo_status gmo_stump_weights_init(gmo_stump_weights *weights, const gmo_stump_rows *rows);
void gmo_stump_weights_free(gmo_stump_weights *weights);
/* Makes weight, total and grand from log_weight. */
void gmo_stump_weights_find(gmo_stump_weights *weights, int32_t n_threads);
/* D(i, l) <- D(i, l) exp(-Y(i, l) c): row i has the scores c of side 1, the second row of leaf (2, stride), if its value of
 * the feature is > threshold, else those of side 0. A feature of -1: side 0. */
void gmo_stump_weights_update(gmo_stump_weights *weights, int64_t feature, double threshold, const double *leaf);

#endif
