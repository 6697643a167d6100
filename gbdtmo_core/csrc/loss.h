/* Losses and their derivatives, and the metrics that early stopping watches. */
#ifndef GMO_LOSS_H
#define GMO_LOSS_H

#include "common.h"

/* First and second derivatives of a cross-entropy at scores (n, d), into gradient (n, d) and, unless it is NULL, hessian
 * (n, d). Softmax: g = p - onehot, h = p (1 - p), the diagonal of the Hessian [eq. 15]; sigmoid: g = p - y, h = p (1 - p).
 * (Those of half the squared error are f - y and 1.) */
void gmo_loss_derivatives(int32_t loss, const gmo_target *target, const double *scores, int64_t n, int32_t d,
                          int32_t n_threads, double *gradient, double *hessian);

/* A metric over the rows, for one output column (output >= 0, squared error only) or all (output = -1). */
double gmo_metric_value(int32_t metric, int32_t loss, const gmo_target *target, const double *scores, int64_t n,
                        int32_t d, int32_t output);
/* Whether a larger value is better. */
bool gmo_metric_is_score(int32_t metric);

#endif
