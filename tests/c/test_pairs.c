#include "check.h"
#include "pairs.h"

enum { MOST = 12 };

static gmo_entry room[4 * MOST];
static uint8_t relevant[MOST];
static double t[MOST], a[MOST];

static double random_unit(void) { return (double)random_below(1u << 30) / (double)(1u << 30); }

static gmo_pairs random_sample(int32_t q, double cost) {
    for (int32_t k = 0; k < q; k++) {
        relevant[k] = (uint8_t)random_below(2);
        t[k] = 2 * random_unit() - 1;
        if (random_below(5) == 0)
            t[k] = round(2 * t[k]) / 2; /* ties */
    }
    return (gmo_pairs){relevant, cost, room, 0, q};
}

/* Whether sums lie in what multipliers can make: every cut, by every set of relevant labels inside and irrelevant ones
 * outside. */
static double worst_cut(const gmo_pairs *pairs) {
    double worst = 0, total = 0;
    for (int32_t k = 0; k < pairs->last; k++)
        total += relevant[k] ? a[k] : 0;
    for (uint32_t set = 0; set < 1u << pairs->last; set++) {
        double slack = total;
        int64_t inside = 0, outside = 0;
        for (int32_t k = 0; k < pairs->last; k++)
            if (set >> k & 1) {
                slack -= relevant[k] ? a[k] : -a[k];
                inside += relevant[k];
                outside += !relevant[k];
            }
        if (inside && outside)
            slack += pairs->cost * (double)(inside * outside);
        worst = fmin(worst, slack);
    }
    return worst;
}

/* kappa / 2 |a|^2 + t a is least over the polytope if and only if z = t + kappa a has a z = - cost sum (z_l - z_k)+, the least
 * that any point of it has: and a is one of its points. */
static void steps_are_optimal(void) {
    for (int32_t turn = 0; turn < 4000; turn++) {
        int32_t q = 1 + (int32_t)random_below(8);
        gmo_pairs pairs = random_sample(q, turn % 3 ? (turn % 3 == 1 ? 0.05 : 1.5) * random_unit() + 1e-3 : INFINITY);
        double kappa = 0.1 + random_unit(), product = 0, least = 0, sum = 0;
        gmo_pairs_solve(&pairs, t, kappa, a);
        for (int32_t k = 0; k < q; k++) {
            sum += a[k];
            product += a[k] * (t[k] + kappa * a[k]);
            for (int32_t l = 0; l < q; l++) {
                double above = t[l] + kappa * a[l] - t[k] - kappa * a[k];
                if (!relevant[k] || relevant[l] || above <= 1e-12)
                    continue;
                CHECK(isfinite(pairs.cost));
                least -= pairs.cost * above;
            }
        }
        CHECK(fabs(product - least) < 1e-12);
        CHECK(fabs(sum) < 1e-12);
        CHECK(worst_cut(&pairs) > -1e-12);
    }
}

/* One pair: a = (1 - (s_k - s_l)) / 2 kappa, within its bounds. */
static void one_pair_by_hand(void) {
    gmo_pairs pairs = {(uint8_t[]){1, 0}, 0.25, room, 0, 2};
    gmo_pairs_solve(&pairs, (double[]){0.1 - 1, 0.3}, 4, a);
    CHECK_NEAR(a[0], 1.2 / 8);
    CHECK_NEAR(a[1], -1.2 / 8);
    gmo_pairs_solve(&pairs, (double[]){0.1 - 1, 0.3}, 1, a);
    CHECK(a[0] == 0.25 && a[1] == -0.25);
    gmo_pairs_solve(&pairs, (double[]){0.1, 0}, 1, a);
    CHECK(a[0] == 0 && a[1] == 0);
}

static void bounded_multipliers_are_exact(void) {
    gmo_pairs pairs = {(uint8_t[]){1, 1, 0, 0, 0}, 1e-12, room, 0, 5};
    gmo_pairs_solve(&pairs, (double[]){-1, -1.5, 0, 0.5, 0.25}, 3, a);
    CHECK(a[0] == 3e-12 && a[1] == 3e-12 && a[2] == -2e-12 && a[3] == -2e-12 && a[4] == -2e-12);
}

/* A move of the capacity stays within all cuts; a little more passes one. */
static void capacity_is_the_longest_move(void) {
    for (int32_t turn = 0; turn < 2000; turn++) {
        int32_t q = 2 + (int32_t)random_below(7);
        gmo_pairs pairs = random_sample(q, turn % 4 ? 0.3 * random_unit() + 1e-3 : INFINITY);
        gmo_pairs_solve(&pairs, t, 0.5, a);
        int32_t up = (int32_t)random_below((uint32_t)q), down = (int32_t)random_below((uint32_t)q);
        if (up == down)
            continue;
        double most = gmo_pairs_capacity(&pairs, a, up, down);
        CHECK(most >= 0 || worst_cut(&pairs) > -1e-12);
        double move = isfinite(most) ? most : 100;
        a[up] += move;
        a[down] -= move;
        bool signs = (relevant[up] || a[up] <= 1e-12) && (!relevant[down] || a[down] >= -1e-12);
        CHECK(signs && worst_cut(&pairs) > -1e-12);
        if (!isfinite(most))
            continue;
        a[up] += 1e-3;
        a[down] -= 1e-3;
        signs = (relevant[up] || a[up] <= 0) && (!relevant[down] || a[down] >= 0);
        CHECK(!signs || worst_cut(&pairs) < -1e-4);
    }
}

static void hinges_by_hand(void) {
    gmo_pairs pairs = {(uint8_t[]){1, 0, 0, 1}, 1, room, 0, 4};
    double least, s[] = {2, 1.5, 0, 3};
    CHECK_NEAR(gmo_pairs_hinge(&pairs, s, 1, &least), 0.5);
    CHECK_NEAR(least, 0.5);
    CHECK_NEAR(gmo_pairs_hinge(&pairs, s, 2, &least), 2);
    CHECK(gmo_pairs_hinge(&pairs, s, 0.5, &least) == 0);
    pairs.last = 1;
    CHECK(gmo_pairs_hinge(&pairs, s, 1, &least) == 0 && isinf(least));
}

int main(void) {
    steps_are_optimal();
    one_pair_by_hand();
    bounded_multipliers_are_exact();
    capacity_is_the_longest_move();
    hinges_by_hand();
    return check_report();
}
