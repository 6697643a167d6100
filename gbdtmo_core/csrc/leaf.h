/* Values of the leaves of a grown tree [eq. 13, eq. 15, eq. 18], and the new scores of its rows. */
#ifndef GMO_LEAF_H
#define GMO_LEAF_H

#include "grow.h"

/* For the tree that the grower has just grown on outputs 0 .. fixed.d of gradient, hessian (NULL: constant) and scores,
 * all (n_rows, width). values: out, a vector of fixed.d a leaf. Adds them to the scores of the leaves' rows.
 * *n_assigned: out, rows that have a leaf. */
gmo_status gmo_leaf_finish(const gmo_grower *grower, const double *gradient, const double *hessian, int32_t width,
                           double *values, double *scores, int64_t *n_assigned);

#endif
