/* Fixed-point derivatives and the histograms that sum them [alg. 1].
 *
 * Sums must not depend on the order of rows or on threads, and parent - child must be exact. So derivatives are rounded
 * once a round to int32 multiples of a power of two, chosen for each output so that no sum over rows can overflow, and
 * histograms hold integer sums. */
#ifndef GMO_HIST_H
#define GMO_HIST_H

#include "common.h"

/* Lanes read together; arrays that are read in such steps have as many spare elements at their end. */
#define GMO_LANES 8

/* Derivatives of all rows in fixed point. A row holds d gradients, then d Hessians if has_hessian, then a 1 that counts
 * the row, then zeros up to stride. */
typedef struct {
    int32_t *rows; /* (n_rows, stride) */
    int64_t n_rows;
    int32_t d, stride, count_lane;
    bool has_hessian;
    double *gradient_unit, *hessian_unit; /* (d + GMO_LANES,) value of 1; zero beyond d */
} gmo_fixed;

gmo_status gmo_fixed_init(gmo_fixed *fixed, int64_t n_rows, int32_t d, bool has_hessian);
void gmo_fixed_free(gmo_fixed *fixed);
/* Rounds columns first .. first + d of gradient and hessian (n_rows, width); hessian is read only if has_hessian. */
gmo_status gmo_fixed_round(gmo_fixed *fixed, const double *gradient, const double *hessian, int32_t width,
                           int32_t first, int32_t n_threads);

/* Shape of a histogram: feature f has cells cell_start[f] .. cell_start[f + 1], one a bin and, if rows miss it in
 * training, a last one for them. A cell has stride integers, laid out as a row of gmo_fixed. */
typedef struct {
    const gmo_binned *data;
    int64_t *cell_start;    /* (n_features + 1,) */
    int64_t *block_start;   /* (n_blocks + 1,) features whose cells stay in cache together */
    int32_t *n_bins;        /* (n_features,) without the bin of missing values */
    uint8_t *has_missing;   /* (n_features,) */
    int64_t n_blocks, size; /* size: integers in a histogram */
    int32_t stride;
} gmo_hist_shape;

gmo_status gmo_hist_shape_init(gmo_hist_shape *shape, const gmo_binned *data, const uint8_t *has_missing,
                               int32_t stride, int32_t n_threads);
void gmo_hist_shape_free(gmo_hist_shape *shape);

/* Sums the listed rows, or all n_rows if rows is NULL, into hist (shape->size,). */
void gmo_hist_build(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                    int32_t n_threads, int32_t *hist);
/* parent -= child. */
void gmo_hist_subtract(const gmo_hist_shape *shape, int32_t *parent, const int32_t *child, int32_t n_threads);

#endif
