/* The certificate of the dual's solver (qp.h): a feasible dual point, and the two bounds. */
#include "qp.h"

#include <math.h>
#include <string.h>

/* A hard margin ends once the dual bound says that scores need a norm beyond this (kernel scaled to a mean K_ii of 1). */
static const double LARGEST_NORM = 1e14;

enum { MOVES_OF_A_SAMPLE = 4, TRIES_OF_A_SAMPLE = 16 };

/* A norm that is below 0 by more than this share of the multipliers is no rounding of many steps. */
static const double INDEFINITE = 1e-6;

/* Scores are updated step by step, from kernel values that may cancel: what rounding makes of them, relative to the largest
 * that they, or the sums of absolute values that they come from, have been. */
static const double ROUNDING = 1e-14;

/* Paths are looked for up to this multiple of the rounding: about a hundredth of the sums of absolute values. */
static const double MOST_FOR_PATHS = 1e12;

static gmo_pairs pairs_of(const gmo_qp *qp, int64_t sample, int32_t group) {
    const gmo_qp_problem *problem = &qp->problem;
    return (gmo_pairs){problem->relevant + sample * problem->q, problem->cost[sample], qp->room,
                       problem->group_start[group], problem->group_start[group + 1]};
}

static void read_all(gmo_qp *qp) {
    for (int64_t i = 0; i < qp->n_order; i++) {
        double *s = qp->all + qp->order[i] * qp->problem.q;
        gmo_qp_read(qp, qp->order[i], s);
        for (int32_t k = 0; k < qp->problem.q; k++)
            qp->largest = fmax(qp->largest, fabs(s[k]));
    }
}

/* The sums anew, without the rounding of many steps; returns a bound of what rounding leaves of them. */
static double renew_sums(gmo_qp *qp) {
    double largest = 0;
    for (int32_t k = 0; k < qp->problem.q; k++) {
        double sum = 0, size = 0, shift = 0;
        for (int64_t i = 0; i < qp->n_order; i++) {
            double a = qp->a[qp->order[i] * qp->problem.q + k];
            sum += a;
            size += fabs(a);
            shift += qp->problem.share ? 0.5 * a * qp->problem.with_origin[qp->order[i]] : 0;
        }
        qp->sum[k] = sum;
        qp->shift[k] = shift;
        largest = size > largest ? size : largest;
    }
    qp->largest = fmax(qp->largest, 0.5 * largest * qp->mean_diagonal);
    return 1e-14 * largest;
}

/* What a move of a sample costs the dual per unit, to first order: small where both labels have free multipliers. */
static double loss_of(const gmo_qp *qp, int64_t sample, int32_t up, int32_t down) {
    const uint8_t *relevant = qp->problem.relevant + sample * qp->problem.q;
    const double *s = qp->all + sample * qp->problem.q;
    return s[up] + qp->bias[up] - relevant[up] - (s[down] + qp->bias[down] - relevant[down]);
}

/* 0 also once the repair has asked too often. */
static double capacity_of(gmo_qp *qp, int64_t sample, int32_t group, int32_t up, int32_t down) {
    gmo_pairs pairs = pairs_of(qp, sample, group);
    const double *a = qp->a + sample * qp->problem.q;
    bool can_rise = pairs.relevant[up] || a[up] < 0, can_fall = !pairs.relevant[down] || a[down] > 0;
    return can_rise && can_fall && qp->asked++ < qp->max_asked ? gmo_pairs_capacity(&pairs, a, up, down) : 0;
}

static void make_move(gmo_qp *qp, int64_t sample, int32_t up, int32_t down, double size) {
    double *a = qp->a + sample * qp->problem.q;
    a[up] += size;
    a[down] -= size;
    qp->sum[up] += size;
    qp->sum[down] -= size;
    if (qp->problem.share) {
        qp->shift[up] += 0.5 * size * qp->problem.with_origin[sample];
        qp->shift[down] -= 0.5 * size * qp->problem.with_origin[sample];
    }
    qp->moves[qp->n_moves++] = (gmo_qp_move){sample, up, down, size};
}

/* A move of one sample that takes sums nearer to 0: up a label whose sum is too small, down one whose sum is too large. The
 * lowest and the highest in scores less 1 for relevant labels; or any, if they are drawn. */
static bool find_move(gmo_qp *qp, int64_t sample, int32_t group, double noise, bool draw, int32_t *up, int32_t *down) {
    const gmo_qp_problem *problem = &qp->problem;
    const uint8_t *relevant = problem->relevant + sample * problem->q;
    const double *s = qp->all + sample * problem->q, *a = qp->a + sample * problem->q;
    int32_t first = problem->group_start[group], last = problem->group_start[group + 1], n_relevant = 0;
    *up = *down = first;
    for (int32_t k = first; k < last; k++)
        n_relevant += relevant[k];
    /* All pairs of a label at their bound. */
    double most_up = (1 - 1e-12) * problem->cost[sample] * (last - first - n_relevant),
           most_down = (1 - 1e-12) * problem->cost[sample] * n_relevant, lowest = INFINITY, highest = -INFINITY;
    for (int32_t k = first; k < last; k++) {
        double level = draw ? (double)gmo_random_below(&qp->random, INT32_MAX) : s[k] + qp->bias[k] - relevant[k];
        if (qp->sum[k] < -noise && (relevant[k] ? a[k] < most_up : a[k] < 0) && level < lowest) {
            lowest = level;
            *up = k;
        }
        if (qp->sum[k] > noise && (relevant[k] ? a[k] > 0 : -a[k] < most_down) && level > highest) {
            highest = level;
            *down = k;
        }
    }
    return lowest < INFINITY && highest > -INFINITY;
}

/* False if it is smaller than the rounding. */
static bool try_move(gmo_qp *qp, int64_t sample, int32_t group, int32_t up, int32_t down, double noise) {
    double size = fmin(fmin(-qp->sum[up], qp->sum[down]), capacity_of(qp, sample, group, up, down));
    if (size <= noise || qp->n_moves >= qp->max_moves)
        return false;
    make_move(qp, sample, up, down, size);
    return true;
}

/* Moves of single samples that cost at most most_loss per unit. */
static void sweep(gmo_qp *qp, int32_t group, double noise, double most_loss) {
    int32_t up, down;
    for (int64_t i = 0; i < qp->n_order && qp->asked < qp->max_asked; i++)
        for (int32_t turn = 0; turn < MOVES_OF_A_SAMPLE; turn++)
            if (!find_move(qp, qp->order[i], group, noise, false, &up, &down) ||
                loss_of(qp, qp->order[i], up, down) > most_loss || !try_move(qp, qp->order[i], group, up, down, noise))
                break;
}

/* What the best moves leave, by any other. */
static void sweep_at_random(gmo_qp *qp, int32_t group, double noise) {
    int32_t up, down;
    for (int64_t i = 0; i < qp->n_order && qp->asked < qp->max_asked; i++)
        for (int32_t turn = 0; turn < TRIES_OF_A_SAMPLE; turn++) {
            if (!find_move(qp, qp->order[i], group, noise, true, &up, &down))
                break;
            (void)try_move(qp, qp->order[i], group, up, down, noise);
        }
}

/* Where no sample can move between two labels at once: a shortest way over others, by breadth first from `up`. queue: (q,)
 * labels reached; from, by: (q,) the label before and the sample between. Moves along it; false if there is no way. */
static bool move_along_path(gmo_qp *qp, int32_t group, int32_t up, int32_t down, double noise) {
    int32_t first = qp->problem.group_start[group], last = qp->problem.group_start[group + 1], n_queue = 0;
    int32_t *queue = qp->label, *from = queue + qp->problem.q;
    int64_t *by = qp->by;
    for (int32_t k = first; k < last; k++)
        from[k] = -1;
    from[up] = up;
    queue[n_queue++] = up;
    for (int32_t head = 0; head < n_queue && from[down] < 0; head++)
        for (int64_t i = 0; i < qp->n_order && qp->asked < qp->max_asked; i++)
            for (int32_t k = first; k < last; k++)
                if (from[k] < 0 && capacity_of(qp, qp->order[i], group, queue[head], k) > noise) {
                    from[k] = queue[head];
                    by[k] = qp->order[i];
                    queue[n_queue++] = k;
                }
    if (from[down] < 0)
        return false;
    double size = fmin(-qp->sum[up], qp->sum[down]);
    int64_t length = 0;
    for (int32_t k = down; k != up; k = from[k], length++)
        size = fmin(size, capacity_of(qp, by[k], group, from[k], k));
    if (qp->n_moves + length > qp->max_moves)
        return false;
    for (int32_t k = down; k != up; k = from[k])
        make_move(qp, by[k], from[k], k, size);
    return true;
}

/* The labels whose sums are furthest from 0 on either side; returns the smaller of the two distances. */
static double find_extremes(const gmo_qp *qp, int32_t group, int32_t *up, int32_t *down) {
    *up = *down = qp->problem.group_start[group];
    for (int32_t k = *up; k < qp->problem.group_start[group + 1]; k++) {
        *up = qp->sum[k] < qp->sum[*up] ? k : *up;
        *down = qp->sum[k] > qp->sum[*down] ? k : *down;
    }
    return fmin(-qp->sum[*up], qp->sum[*down]);
}

static bool repair_group(gmo_qp *qp, int32_t group, double noise) {
    static const double losses[] = {0.01, 0.1, 1, INFINITY};
    int32_t up, down;
    for (size_t i = 0; i < sizeof losses / sizeof *losses && find_extremes(qp, group, &up, &down) > noise; i++)
        sweep(qp, group, noise, losses[i]);
    if (find_extremes(qp, group, &up, &down) > noise)
        sweep_at_random(qp, group, noise);
    /* Paths are dear: they are for what little is left near the solution. */
    int32_t n_paths = qp->problem.group_start[group + 1] - qp->problem.group_start[group];
    for (double rest; (rest = find_extremes(qp, group, &up, &down)) > noise; n_paths--)
        if (rest > MOST_FOR_PATHS * noise || !n_paths || !move_along_path(qp, group, up, down, noise))
            return false;
    /* The sums of a group add up to 0 but for rounding: what one side may keep for each label can be left on the other. */
    return fmax(-qp->sum[up], qp->sum[down]) <=
           (qp->problem.group_start[group + 1] - qp->problem.group_start[group]) * noise;
}

void gmo_qp_choose_moves(gmo_qp *qp) {
    double noise = renew_sums(qp);
    qp->n_moves = 0;
    qp->asked = 0;
    qp->repaired = true;
    read_all(qp);
    for (int32_t g = 0; g < qp->problem.n_groups; g++)
        qp->repaired = repair_group(qp, g, noise) && qp->repaired;
}

/* Sums over samples that both bounds need. */
typedef struct {
    double norm;    /* 1/4 sum_k a_k' K a_k = sum_k |w_k|^2 */
    double total;   /* sum of T_i */
    double hinge;   /* sum of cost_i times the hinges of the pairs, at their most */
    double least;   /* least margin of a pair that is left by rounding */
    double size;    /* sum of |a| */
    double stretch; /* a may be multiplied by this at least without passing the bounds */
} balance;

/* `noise`: what rounding may make of a margin. */
static void add_sample(const gmo_qp *qp, int64_t sample, double noise, balance *sums) {
    const gmo_qp_problem *problem = &qp->problem;
    const double *s = qp->all + sample * problem->q, *a = qp->a + sample * problem->q;
    const uint8_t *relevant = problem->relevant + sample * problem->q;
    for (int32_t k = 0; k < problem->q; k++) {
        sums->norm += 0.5 * a[k] * s[k];
        sums->size += fabs(a[k]);
        qp->s[k] = s[k] + qp->bias[k];
    }
    for (int32_t g = 0; g < problem->n_groups; g++) {
        gmo_pairs pairs = pairs_of(qp, sample, g);
        double least, hinge = gmo_pairs_hinge(&pairs, qp->s, 1 + noise, &least), total = 0, most_up = 0, most_down = 0;
        for (int32_t k = pairs.first; k < pairs.last; k++) {
            total += relevant[k] ? a[k] : 0;
            most_up = relevant[k] && a[k] > most_up ? a[k] : most_up;
            most_down = !relevant[k] && -a[k] > most_down ? -a[k] : most_down;
        }
        sums->total += total;
        sums->hinge += hinge > 0 ? pairs.cost * hinge : 0;
        sums->least = fmin(sums->least, least - noise);
        if (most_up * most_down > 0)
            sums->stretch = fmin(sums->stretch, pairs.cost * total / (most_up * most_down));
    }
}

static void keep(gmo_qp *qp, double primal, double scale) {
    qp->primal = primal;
    qp->best_scale = scale;
    qp->best_balanced = qp->repaired;
    memcpy(qp->best_a, qp->a, (size_t)qp->problem.n * (size_t)qp->problem.q * sizeof *qp->a);
    memcpy(qp->best_bias, qp->bias, (size_t)qp->problem.q * sizeof *qp->bias);
}

gmo_status gmo_qp_evaluate(gmo_qp *qp) {
    balance sums = {.least = INFINITY, .stretch = INFINITY};
    read_all(qp);
    for (int64_t i = 0; i < qp->n_order; i++)
        add_sample(qp, qp->order[i], 2 * ROUNDING * qp->largest, &sums);
    if (!isfinite(sums.norm) || !isfinite(sums.total))
        return GMO_ERR_NUMERIC;
    double error = ROUNDING * sums.size * qp->largest, left = 0;
    qp->indefinite = qp->indefinite || sums.norm < -INDEFINITE * sums.total - error;
    for (int32_t k = 0; k < qp->problem.q; k++)
        left += fabs(qp->sum[k] * qp->bias[k]);
    /* Both bounds hold with a norm that is not below the true one. */
    double norm = fmax(sums.norm, 0) + error, total = sums.total, primal = norm + sums.hinge, scale = 1 / sums.least;
    if (primal < qp->primal || !isfinite(qp->primal))
        keep(qp, primal, 1);
    if (sums.least > 0 && scale <= sums.stretch && norm * scale * scale < qp->primal)
        keep(qp, norm * scale * scale, scale);
    if (!qp->repaired)
        return GMO_OK;
    /* D(x a) = x T - x^2 N is largest at x = T / 2 N; a soft margin's a may shrink, but not grow. What is left of the sums is
     * priced at the biases. */
    total = fmax(total - left, 0);
    double best = norm > 0 ? total / (2 * norm) : 1;
    if (!qp->hard && best > 1)
        best = 1;
    qp->dual = fmax(qp->dual, best * total - best * best * norm);
    qp->unbounded = qp->hard && !isfinite(qp->primal) && qp->dual * qp->least_rho > LARGEST_NORM;
    return GMO_OK;
}

double gmo_qp_gap(const gmo_qp *qp) {
    if (qp->primal <= qp->dual) /* by rounding; more than a little of it is no gap that could be trusted */
        return qp->dual > 0 ? (qp->dual - qp->primal) / qp->dual : 0;
    return isfinite(qp->primal) ? (qp->primal - qp->dual) / qp->primal : INFINITY;
}
