/* Root-free Cholesky factorisation (L D L') of Newton's equations of softmax, several systems side by side.
 *
 * The systems are A x = g with A = diag(e) + Laplacian(w): A_jj = e_j + sum over k of w_jk, A_jk = -w_jk, all w and e
 * non-negative, and g sums to 0. Softmax's Hessian summed over rows is such a Laplacian, w_jk = sum of p_j p_k, its gradient
 * sums to 0, and reg_lambda is e [eq. 13]. Elimination keeps the shape, so it is written in w and e: every step adds
 * non-negative numbers, nothing cancels, and no pivot can turn negative by rounding, however small e is (Grassmann, Taksar &
 * Heyman, Operations Research 33, 1985). What is left of g sums to what the steps before gave off to e; the last unknown
 * takes it from there, and no error of g is divided by a small e. */
#ifndef GMO_CHOLESKY_H
#define GMO_CHOLESKY_H

#include "common.h"

/* Systems that are factorised together: one a lane, none sees another. */
#define GMO_SYSTEMS 8
typedef double gmo_double8 __attribute__((vector_size(64), may_alias));

/* Memory belongs to the caller, aligned as gmo_alloc does. w_jk with k < j is weight[gmo_first_pair(j) + k]. */
typedef struct {
    int32_t d;
    gmo_double8 *g;       /* (d,) in: right-hand sides; out: eliminated ones, or solutions */
    gmo_double8 *weight;  /* (d (d - 1) / 2,) in: w; out: row j as it was when j was eliminated */
    gmo_double8 *excess;  /* (d,) in: e */
    gmo_double8 *inverse; /* (d,) out: 1 / pivot; 0 for a pivot of 0 */
} gmo_systems;

static inline int64_t gmo_first_pair(int32_t j) { return (int64_t)j * (j - 1) / 2; }

/* Eliminates the unknowns from the last to the first. *score: out, g' inv(A) g of every system. A pivot of 0 (below the
 * smallest normal number), which a positive e rules out, leaves its unknown at 0 and out of the score. With e = 0 it is
 * unknown 0 that stays, if w connects all: then x solves the system, and so does x + constant. */
void gmo_systems_eliminate(gmo_systems *systems, gmo_double8 *score);
/* Turns g into the solutions, after gmo_systems_eliminate. */
void gmo_systems_solve(gmo_systems *systems);

#endif
