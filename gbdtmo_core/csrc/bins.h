/* Bin edges and bin numbers (gmo_bins_fit and gmo_bins_apply are public, see gbdtmo.h). */
#ifndef GMO_BINS_H
#define GMO_BINS_H

#include "common.h"

/* Edges from the ascending distinct values of a column and their row counts (all > 0). Returns the number of edges. */
int32_t gmo_edges_quantile(const double *values, const int64_t *counts, int64_t n_values, int32_t max_bins,
                           double *edges);
int32_t gmo_edges_released(const double *values, const int64_t *counts, int64_t n_values, int32_t max_bins,
                           double *edges);

#endif
