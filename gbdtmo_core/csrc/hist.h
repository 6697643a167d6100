/* Histograms of fixed-point derivatives [alg. 1], built block by block. */
#ifndef GMO_HIST_H
#define GMO_HIST_H

#include "shape.h"

/* Sums the listed rows, or all n_rows if rows is NULL, into part, the block's part of a histogram, with GMO_LANES spare
 * integers. total: sum of the rows. */
void gmo_hist_build(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                    const int32_t *total, const gmo_hist_block *block, int32_t *part);
/* part = parent - child for the block's parts of three histograms; part may be parent. */
void gmo_hist_subtract(const gmo_hist_shape *shape, const gmo_hist_block *block, const int32_t *parent,
                       const int32_t *child, int32_t *part);

#endif
