/* Values of the leaves of a grown tree [eq. 13, eq. 15, eq. 18], and the new scores of its rows. */
#ifndef GMO_LEAF_H
#define GMO_LEAF_H

#include "grow.h"

/* For the tree that the grower has just grown on these derivatives (hessian NULL: constant). values: out, a vector of
 * fixed.d a leaf. Adds them to the scores of the leaves' rows, which are gradient->width apart. *n_assigned: out, rows that
 * have a leaf. */
gmo_status gmo_leaf_finish(const gmo_grower *grower, const gmo_derivatives *gradient, const gmo_derivatives *hessian,
                           double *values, double *scores, int64_t *n_assigned);

#endif
