/* Losses and their derivatives, and the metrics that early stopping watches. */
#ifndef GMO_LOSS_H
#define GMO_LOSS_H

#include "common.h"

/* First and second derivatives of the loss at scores (n, d), into gradient (n, d) and, unless it is NULL, hessian (n, d):
 * half the squared error: g = f - y, h = 1; softmax cross-entropy: g = p - onehot, h = p (1 - p), the diagonal of the
 * Hessian [eq. 15]; sigmoid cross-entropy: g = p - y, h = p (1 - p). */
void gmo_loss_derivatives(int32_t loss, const gmo_target *target, const double *scores, int64_t n, int32_t d,
                          int32_t n_threads, double *gradient, double *hessian);

/* A metric over the rows, for one output column (output >= 0, squared error only) or all (output = -1). */
double gmo_metric_value(int32_t metric, int32_t loss, const gmo_target *target, const double *scores, int64_t n,
                        int32_t d, int32_t output);
/* Whether a larger value is better. */
bool gmo_metric_is_score(int32_t metric);

#endif
