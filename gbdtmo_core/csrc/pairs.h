/* The pairs of one sample: every relevant label k of a range of labels against every irrelevant label l of it.
 *
 * Their multipliers 0 <= alpha_kl <= c need not be kept. The objective sees only a_k = sum_l alpha_kl (relevant) and
 * a_l = -sum_k alpha_kl (irrelevant), and such sums come from multipliers within their bounds exactly if, with u the a of
 * relevant labels, v = -a of irrelevant ones, both in descending order, and T their common sum,
 *
 *     u_1 + .. + u_p + v_1 + .. + v_m - T <= c p m      for all p, m      (maximum flow = minimum cut; Gale 1957).
 *
 * This is the base polytope of the submodular function c |S relevant| |not S, irrelevant|; both functions below use its
 * structure. c may be INFINITY: then u, v >= 0 with equal sums is all there is. */
#ifndef GMO_PAIRS_H
#define GMO_PAIRS_H

#include "common.h"

typedef struct {
    double value;
    int32_t label;
} gmo_entry;

/* Labels first .. last of one sample, and room for 4 (last - first) entries. */
typedef struct {
    const uint8_t *relevant; /* (last,) 1: relevant */
    double cost;             /* c > 0 */
    gmo_entry *room;
    int32_t first, last;
} gmo_pairs;

/* The a that minimises sum_k kappa / 2 a_k^2 + t_k a_k over what multipliers can make, for kappa > 0. That is the step
 * of one sample: t holds its scores less 1 for relevant labels, without what the sample itself adds to them. t, a: (last,),
 * entries first .. last are read and written. */
void gmo_pairs_solve(const gmo_pairs *pairs, const double *t, double kappa, double *a);

/* The largest x by which a_up may grow while a_down falls. */
double gmo_pairs_capacity(const gmo_pairs *pairs, const double *a, int32_t up, int32_t down);

/* Sum over pairs of max(0, target - (s_k - s_l)); *least: out, least s_k - s_l, INFINITY without pairs. */
double gmo_pairs_hinge(const gmo_pairs *pairs, const double *s, double target, double *least);

#endif
