#include "pairs.h"

#include <math.h>

enum { MOST_STEPS = 100 };

/* Shell's sort, descending; for the few entries of most samples it is an insertion sort. */
static void sort_down(gmo_entry *entry, int32_t count) {
    static const int32_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        int32_t gap = gaps[g];
        for (int32_t i = gap; i < count; i++) {
            gmo_entry moved = entry[i];
            int32_t j = i;
            for (; j >= gap && entry[j - gap].value < moved.value; j -= gap)
                entry[j] = entry[j - gap];
            entry[j] = moved;
        }
    }
}

/* Labels that their order forces to move: relevant ones (up) below the highest irrelevant one, and irrelevant ones (down)
 * above the lowest relevant one. All others have a = 0. */
typedef struct {
    gmo_entry *up, *down;
    int32_t n_up, n_down;
    double low, high; /* lowest t of a relevant label, highest of an irrelevant one */
} contest;

static contest find_contest(const gmo_pairs *pairs, const double *t) {
    contest found = {pairs->room, pairs->room + (pairs->last - pairs->first), 0, 0, INFINITY, -INFINITY};
    for (int32_t k = pairs->first; k < pairs->last; k++) {
        found.low = pairs->relevant[k] && t[k] < found.low ? t[k] : found.low;
        found.high = !pairs->relevant[k] && t[k] > found.high ? t[k] : found.high;
    }
    if (found.high <= found.low)
        return found;
    for (int32_t k = pairs->first; k < pairs->last; k++) {
        if (pairs->relevant[k] && t[k] < found.high)
            found.up[found.n_up++] = (gmo_entry){t[k], k};
        if (!pairs->relevant[k] && t[k] > found.low)
            found.down[found.n_down++] = (gmo_entry){t[k], k};
    }
    return found;
}

/* The level at which what pulls labels up to it equals what pulls labels down to it: Newton's method on a function that
 * is piecewise linear and increasing, kept within a bracket. */
static double meeting_level(const contest *c) {
    double low = c->low, high = c->high, level = low + (high - low) / 2;
    for (int32_t step = 0; step < MOST_STEPS; step++) {
        double pull = 0;
        int32_t count = 0;
        for (int32_t i = 0; i < c->n_up; i++) {
            bool below = c->up[i].value < level;
            pull += below ? c->up[i].value - level : 0;
            count += below;
        }
        for (int32_t i = 0; i < c->n_down; i++) {
            bool above = c->down[i].value > level;
            pull += above ? c->down[i].value - level : 0;
            count += above;
        }
        if (pull == 0 || !count)
            break;
        if (pull > 0)
            low = level;
        else
            high = level;
        double next = level + pull / count;
        if (!(next > low && next < high))
            next = low + (high - low) / 2;
        if (next == level || fabs(next - level) <= 1e-16 * fabs(level))
            break;
        level = next;
    }
    return level;
}

/* Without bounds the labels of both sides meet at one level; a holds what takes them there. False if a bound is passed. */
static bool meet(const gmo_pairs *pairs, const contest *c, double kappa, double *a) {
    double level = meeting_level(c), most_up = 0, most_down = 0, total = 0;
    for (int32_t i = 0; i < c->n_up; i++) {
        double pull = level > c->up[i].value ? (level - c->up[i].value) / kappa : 0;
        a[c->up[i].label] = pull;
        most_up = pull > most_up ? pull : most_up;
        total += pull;
    }
    for (int32_t i = 0; i < c->n_down; i++) {
        double pull = level < c->down[i].value ? (c->down[i].value - level) / kappa : 0;
        a[c->down[i].label] = -pull;
        most_down = pull > most_down ? pull : most_down;
    }
    /* alpha_kl = u_k v_l / T are multipliers of these sums. */
    return !isfinite(pairs->cost) || most_up * most_down <= pairs->cost * total;
}

/* A part of the contest: up[up_first .. up_last), down[down_first .. down_last), all above the parts that follow. Pairs
 * across parts are at their bound where the irrelevant label is in the higher part, and at 0 otherwise. */
typedef struct {
    int32_t up_first, up_last, down_first, down_last;
} part;

/* Mean of a part's t after the bounds across parts: up labels raised by lift, down labels lowered by drop. */
static double part_level(const contest *c, const part *p, double lift, double drop) {
    double base = p->up_first < p->up_last ? c->up[p->up_first].value + lift : c->down[p->down_first].value - drop;
    double sum = 0;
    for (int32_t i = p->up_first; i < p->up_last; i++)
        sum += c->up[i].value + lift - base;
    for (int32_t i = p->down_first; i < p->down_last; i++)
        sum += c->down[i].value - drop - base;
    return base + sum / (p->up_last - p->up_first + p->down_last - p->down_first);
}

/* Where to cut a part so that the upper piece stays above its level, the lower below: the minimum over m, q of
 * bound m (n_up - q) - sum over the first m down labels and the first q up labels of (t - level). For every m the best q
 * follows from the order. False if nothing is below 0: the part stays together. */
static bool find_cut(const contest *c, const part *p, double bound, double lift, double drop, part *upper) {
    double level = part_level(c, p, lift, drop), least = 0, down_sum = 0, up_sum = 0;
    int32_t n_up = p->up_last - p->up_first, n_down = p->down_last - p->down_first, q = 0;
    *upper = (part){p->up_first, p->up_first, p->down_first, p->down_first};
    for (int32_t m = 0; m <= n_down; m++) {
        if (m)
            down_sum += c->down[p->down_first + m - 1].value - drop - level;
        for (; q < n_up && c->up[p->up_first + q].value + lift - level + bound * m > 0; q++)
            up_sum += c->up[p->up_first + q].value + lift - level;
        double value = bound * m * (n_up - q) - down_sum - up_sum;
        if (value < least && m + q > 0 && m + q < n_up + n_down) {
            least = value;
            upper->up_last = p->up_first + q;
            upper->down_last = p->down_first + m;
        }
    }
    return least < 0;
}

/* a of a part that stays together, or whose labels all lie on one side. */
static void settle(const contest *c, const part *p, double cost, double kappa, double *a) {
    double raised = cost * p->down_first, lowered = cost * (c->n_up - p->up_last);
    bool one_sided = p->up_first == p->up_last || p->down_first == p->down_last;
    double lift = kappa * raised, drop = kappa * lowered, level = one_sided ? 0 : part_level(c, p, lift, drop);
    for (int32_t i = p->up_first; i < p->up_last; i++)
        a[c->up[i].label] = raised + (one_sided ? 0 : (level - (c->up[i].value + lift)) / kappa);
    for (int32_t i = p->down_first; i < p->down_last; i++)
        a[c->down[i].label] = -lowered + (one_sided ? 0 : (level - (c->down[i].value - drop)) / kappa);
}

/* Divides the contest into parts of one level each (the decomposition algorithm of submodular minimisation; Groenevelt
 * 1991). Parts that wait lie on a stack, of at most as many as there are labels, in room. */
static void divide(const gmo_pairs *pairs, contest *c, double kappa, part *waiting, double *a) {
    sort_down(c->up, c->n_up);
    sort_down(c->down, c->n_down);
    int32_t n_waiting = 1;
    waiting[0] = (part){0, c->n_up, 0, c->n_down};
    while (n_waiting) {
        part p = waiting[--n_waiting], upper;
        double bound = kappa * pairs->cost;
        bool one_sided = p.up_first == p.up_last || p.down_first == p.down_last;
        if (one_sided || !find_cut(c, &p, bound, bound * p.down_first, bound * (c->n_up - p.up_last), &upper)) {
            settle(c, &p, pairs->cost, kappa, a);
            continue;
        }
        waiting[n_waiting++] = upper;
        waiting[n_waiting++] = (part){upper.up_last, p.up_last, upper.down_last, p.down_last};
    }
}

/* Both sides have one total; t's rounding makes two of it, which can be all there is of an a that is tiny. The larger side is
 * taken down to the smaller. */
static void balance(const gmo_pairs *pairs, double *a) {
    double up = 0, down = 0;
    for (int32_t k = pairs->first; k < pairs->last; k++) {
        up += pairs->relevant[k] ? a[k] : 0;
        down -= pairs->relevant[k] ? 0 : a[k];
    }
    if (up == down)
        return;
    bool is_up_larger = up > down;
    double scale = fmax(fmin(up, down), 0) / fmax(up, down);
    for (int32_t k = pairs->first; k < pairs->last; k++)
        a[k] *= (pairs->relevant[k] == 1) == is_up_larger ? scale : 1;
}

void gmo_pairs_solve(const gmo_pairs *pairs, const double *t, double kappa, double *a) {
    for (int32_t k = pairs->first; k < pairs->last; k++)
        a[k] = 0;
    contest c = find_contest(pairs, t);
    if (!c.n_up)
        return;
    if (!meet(pairs, &c, kappa, a))
        divide(pairs, &c, kappa, (part *)(pairs->room + 2 * (pairs->last - pairs->first)), a);
    balance(pairs, a);
}

double gmo_pairs_capacity(const gmo_pairs *pairs, const double *a, int32_t up, int32_t down) {
    /* Signs alone. */
    double most = pairs->relevant[up] ? INFINITY : -a[up];
    if (pairs->relevant[down] && a[down] < most)
        most = a[down];
    if (!isfinite(pairs->cost) || !(most > 0))
        return most;
    /* Every cut with up inside and down outside: relevant labels inside and irrelevant ones outside, largest first. */
    gmo_entry *inside = pairs->room, *outside = inside + (pairs->last - pairs->first);
    int32_t n_inside = 0, n_outside = 0;
    double total = 0;
    for (int32_t k = pairs->first; k < pairs->last; k++) {
        total += pairs->relevant[k] ? a[k] : 0;
        if (k == up || k == down)
            continue;
        /* A label whose a is 0 only widens a cut. */
        if (pairs->relevant[k] && a[k] > 0)
            inside[n_inside++] = (gmo_entry){a[k], k};
        else if (!pairs->relevant[k] && a[k] < 0)
            outside[n_outside++] = (gmo_entry){-a[k], k};
    }
    sort_down(inside, n_inside);
    sort_down(outside, n_outside);
    int32_t p0 = pairs->relevant[up], m0 = !pairs->relevant[down];
    double above = p0 ? a[up] : 0;
    for (int32_t p = p0; p <= p0 + n_inside; p++) {
        above += p > p0 ? inside[p - p0 - 1].value : 0;
        double below = m0 ? -a[down] : 0;
        for (int32_t m = m0; m <= m0 + n_outside; m++) {
            below += m > m0 ? outside[m - m0 - 1].value : 0;
            double slack = pairs->cost * p * m + total - above - below;
            most = slack < most ? slack : most;
        }
    }
    return most > 0 ? most : 0;
}

double gmo_pairs_hinge(const gmo_pairs *pairs, const double *s, double target, double *least) {
    double sum = 0;
    *least = INFINITY;
    for (int32_t k = pairs->first; k < pairs->last; k++)
        for (int32_t l = pairs->first; pairs->relevant[k] && l < pairs->last; l++) {
            double margin = s[k] - s[l];
            if (pairs->relevant[l])
                continue;
            *least = margin < *least ? margin : *least;
            sum += margin < target ? target - margin : 0;
        }
    return sum;
}
