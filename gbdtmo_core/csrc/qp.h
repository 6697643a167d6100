/* The dual of the ranking machine [Elisseeff & Weston, sec. 3], in sums over each label's pairs (pairs.h):
 *
 *     maximise  D(a) = sum_i T_i - 1/4 sum_k a_k' K a_k,   T_i = sum of a_ik over relevant k,
 *     where a_i comes from multipliers 0 <= alpha_ikl <= cost_i, and sum_i a_ik = 0 for every k (the condition of b_k).
 *
 * Method: block coordinate ascent, one sample at a time and exactly, on D with the conditions of b priced in (augmented
 * Lagrangian: multipliers b, penalty rho/4 sum_k (sum_i a_ik)^2; b_k += rho/2 sum_i a_ik after an epoch). rho is adapted to
 * what samples gain. They are taken in random order; those that would gain less than the average is left for later, which saves most row operations.
 *
 * Certificate: the sums are moved to 0 along what multipliers still allow, which makes a feasible and D(a) a lower bound
 * of the optimum; scores with b, stretched where all pairs are ranked, give an upper bound. Both are those of points that
 * satisfy every condition, whatever the state of the iteration.
 *
 * While the sums are 0, feature space may have any origin o: K(x, y) - K(x, o) - K(o, y) + K(o, o) gives the same norms, and
 * scores that differ by constants. The mean of the samples takes most from K_ii, so that steps are longest.
 *
 * Labels come in groups: label k and l are in one group if there are circles of pairs through both. Pairs across groups
 * cost nothing (their multipliers must be 0) and are left out; biases that rank them are the caller's business. */
#ifndef GMO_QP_H
#define GMO_QP_H

#include "pairs.h"
#include "scores.h"

typedef struct {
    int64_t n;
    int32_t q, n_groups;
    const int32_t *group_start; /* (n_groups + 1,) labels group_start[g] .. group_start[g + 1] are group g */
    const uint8_t *relevant;    /* (n, q) */
    const double *cost;         /* (n,) C_i; INFINITY: hard margin, then for all; 0: no pairs */
    const double *diagonal;     /* (n,) K(x_i, x_i) */
    const double *share;        /* (n,) o = sum_i share_i phi(x_i), or NULL: o = 0 */
    const double *with_origin;  /* (n,) K(x_i, o), or NULL */
    double origin;              /* K(o, o) */
    double tolerance;           /* relative gap to end at */
    int64_t max_epochs;
    uint64_t seed;
} gmo_qp_problem;

/* A step of the repair: a_up of a sample grows by size, a_down falls by it. */
typedef struct {
    int64_t sample;
    int32_t up, down;
    double size;
} gmo_qp_move;

typedef enum { GMO_QP_EVALUATE, GMO_QP_EPOCH, GMO_QP_REPAIR, GMO_QP_APPLY, GMO_QP_DONE } gmo_qp_phase;

typedef struct {
    gmo_qp_problem problem;
    gmo_scores scores;
    bool hard;
    double *a, *sum, *bias; /* (n, q), (q,) sums of a, (q,) */
    double *shift;          /* (q,) 1/2 sum_i a_ik K(x_i, o) */
    double rho, least_rho, most_rho, threshold, gains;
    /* The run: which samples are visited, in which order, how many epochs they rest and rested. */
    gmo_qp_phase phase;
    int64_t *order, n_order, position, epoch, next_check;
    uint8_t *rest, *waited;
    int64_t *batch, n_batch, batch_limit, *wanted, n_wanted;
    uint64_t random;
    /* Certificate. */
    double primal, dual, *best_a, *best_bias, best_scale;
    bool best_balanced, indefinite, unbounded;
    double *all; /* (n, q) scores without bias */
    gmo_qp_move *moves;
    int64_t n_moves, max_moves, next_move, asked, max_asked;
    double mean_diagonal, largest; /* of K_ii; bound of the scores, and of what they are summed from, so far */
    bool repaired;
    double *s, *t, *fresh, *change; /* (q,) each */
    int32_t *label;                 /* (2 q,) */
    int64_t *by;                    /* (q,) */
    gmo_entry *room;                /* (4 q,) */
} gmo_qp;

/* gram (n, n), or x for the linear kernel, or neither: then run asks for rows. */
gmo_status gmo_qp_init(gmo_qp *qp, const gmo_qp_problem *problem, const double *gram, const gmo_features *x,
                       int64_t cache_bytes);
void gmo_qp_free(gmo_qp *qp);
/* Visits about n_visits samples; ends before that in phase GMO_QP_DONE, or with n_wanted > 0: then rows wanted[0 ..
 * n_wanted) must be put into scores.rows, in this order, before the next call. */
gmo_status gmo_qp_run(gmo_qp *qp, int64_t n_visits);

/* A number below n, at random. */
int64_t gmo_random_below(uint64_t *state, int64_t n);
/* Scores of a sample, without biases, for the origin o. s: out, (q,). */
void gmo_qp_read(const gmo_qp *qp, int64_t sample, double *s);
/* The best primal point as what the plain kernel K takes: a (n, q) and biases (q,). */
void gmo_qp_solution(const gmo_qp *qp, double *a, double *bias);

/* What the parts of the solver share; bounds.c has these. Chooses moves that take the sums to 0; a and sum change at
 * once, scores when the moves are applied. */
void gmo_qp_choose_moves(gmo_qp *qp);
/* Primal and dual values of the state. */
gmo_status gmo_qp_evaluate(gmo_qp *qp);
double gmo_qp_gap(const gmo_qp *qp);

#endif
