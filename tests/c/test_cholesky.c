#include "check.h"
#include "cholesky.h"

#include <float.h>

enum { MAX_D = 128, MAX_PAIRS = MAX_D * (MAX_D - 1) / 2 };

/* Eight systems, and what they were before elimination. */
typedef struct {
    gmo_double8 g[MAX_D], weight[MAX_PAIRS], excess[MAX_D], inverse[MAX_D];
} memory;

static memory work, given;

static gmo_systems systems_of(int32_t d) { return (gmo_systems){d, work.g, work.weight, work.excess, work.inverse}; }

/* Random weights, and right-hand sides that sum to 0, scaled differently in every lane. */
static void make_systems(int32_t d, double lambda) {
    for (int32_t lane = 0; lane < GMO_SYSTEMS; lane++) {
        double size = ldexp(1, 6 * lane - 20);
        for (int32_t j = 0; j < d; j++) {
            work.excess[j][lane] = lambda;
            work.g[j][lane] = j ? size * ((double)random_below(2001) - 1000) : 0;
            work.g[0][lane] -= j ? work.g[j][lane] : 0;
            for (int32_t k = 0; k < j; k++) /* some pairs of classes never meet */
                work.weight[gmo_first_pair(j) + k][lane] = random_below(4) ? size * (1 + random_below(1000)) : 0;
        }
    }
    given = work;
}

/* Largest error of A x - g in a lane, as a share of the sums that make it. */
static double residual(int32_t d, int32_t lane) {
    double worst = 0;
    for (int32_t j = 0; j < d; j++) {
        double x = work.g[j][lane], sum = given.excess[j][lane] * x - given.g[j][lane];
        double size = fabs(given.excess[j][lane] * x) + fabs(given.g[j][lane]);
        for (int32_t k = 0; k < d; k++) {
            int64_t pair = j > k ? gmo_first_pair(j) + k : gmo_first_pair(k) + j;
            double w = j == k ? 0 : given.weight[pair][lane];
            sum += w * (x - work.g[k][lane]);
            size += w * (fabs(x) + fabs(work.g[k][lane]));
        }
        worst = fmax(worst, size > 0 ? fabs(sum) / size : 0);
    }
    return worst;
}

static void solutions_solve(void) {
    static const int32_t sizes[] = {1, 2, 3, 10, 33, MAX_D};
    static const double lambdas[] = {1e-12, 1, 1e6};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t l = 0; l < sizeof lambdas / sizeof *lambdas; l++) {
            int32_t d = sizes[i];
            gmo_double8 score;
            make_systems(d, lambdas[l]);
            gmo_systems systems = systems_of(d);
            gmo_systems_eliminate(&systems, &score);
            gmo_systems_solve(&systems);
            for (int32_t lane = 0; lane < GMO_SYSTEMS; lane++) {
                double product = 0, size = 0;
                for (int32_t j = 0; j < d; j++) {
                    product += given.g[j][lane] * work.g[j][lane];
                    size += fabs(given.g[j][lane] * work.g[j][lane]);
                }
                CHECK(residual(d, lane) < 1e-13);
                CHECK(score[lane] >= 0 && fabs(score[lane] - product) <= 1e-12 * size);
            }
        }
}

/* A = [3 -1; -1 2.5] has inverse [2.5 1; 1 3] / 6.5. */
static void two_unknowns_by_hand(void) {
    gmo_double8 score;
    memset(&work, 0, sizeof work);
    work.weight[0][3] = 1;
    work.excess[0][3] = 2;
    work.excess[1][3] = 1.5;
    work.g[0][3] = 1;
    work.g[1][3] = -1;
    gmo_systems systems = systems_of(2);
    gmo_systems_eliminate(&systems, &score);
    gmo_systems_solve(&systems);
    CHECK_NEAR(work.g[0][3], 1.5 / 6.5);
    CHECK_NEAR(work.g[1][3], -2 / 6.5);
    CHECK_NEAR(score[3], 3.5 / 6.5);
    CHECK(score[2] == 0 && work.g[0][2] == 0 && work.g[1][2] == 0); /* nothing but zeros */
}

/* Equal weights w and a penalty far below their rounding: x = g / (d w + lambda), and g sums to 0 only but for rounding. */
static void tiny_penalties_do_no_harm(void) {
    static const double g[] = {0.1, 0.2, 0.3, -0.4, -0.2};
    for (double lambda = 1; lambda >= 1e-300; lambda *= 1e-20) {
        gmo_double8 score;
        double expected = 0;
        memset(&work, 0, sizeof work);
        for (int32_t i = 0; i < 10; i++)
            work.weight[i][0] = 0.25;
        for (int32_t j = 0; j < 5; j++) {
            work.excess[j][0] = lambda;
            work.g[j][0] = g[j];
            expected += g[j] * g[j] / (1.25 + lambda);
        }
        gmo_systems systems = systems_of(5);
        gmo_systems_eliminate(&systems, &score);
        gmo_systems_solve(&systems);
        for (int32_t j = 0; j < 5; j++)
            CHECK_NEAR(work.g[j][0], g[j] / (1.25 + lambda));
        CHECK_NEAR(score[0], expected);
    }
}

/* Without a penalty the first unknown of every connected part is 0; the others solve the system if g allows it. Unknowns 0,
 * 2, 3 are one part, 1 and 4 the other. */
static void zero_pivots(void) {
    static const double x[] = {0, 0, 1.5, -2, 0.25};
    gmo_double8 score;
    memset(&work, 0, sizeof work);
    work.weight[gmo_first_pair(2)][1] = 2;
    work.weight[gmo_first_pair(3)][1] = 0.5;
    work.weight[gmo_first_pair(3) + 2][1] = 1;
    work.weight[gmo_first_pair(4) + 1][1] = 4;
    double g[] = {-2 * 1.5 + 0.5 * 2, -1, 2 * 1.5 + 1.5 + 2, -2 * 0.5 - 2 - 1.5, 1};
    for (int32_t j = 0; j < 5; j++)
        work.g[j][1] = g[j];
    gmo_systems systems = systems_of(5);
    gmo_systems_eliminate(&systems, &score);
    CHECK(work.inverse[0][1] == 0 && work.inverse[1][1] == 0 && work.inverse[2][1] > 0);
    gmo_systems_solve(&systems);
    double expected = 0;
    for (int32_t j = 0; j < 5; j++) {
        CHECK_NEAR(work.g[j][1], x[j]);
        expected += g[j] * x[j];
    }
    CHECK_NEAR(score[1], expected);
}

/* The smallest penalties there are do not divide to infinity. */
static void pivots_too_small_to_divide_by(void) {
    gmo_double8 score;
    memset(&work, 0, sizeof work);
    work.excess[0][0] = work.excess[1][0] = DBL_TRUE_MIN;
    work.excess[0][1] = work.excess[1][1] = DBL_MIN;
    work.g[0][0] = work.g[0][1] = DBL_MIN;
    work.g[1][0] = work.g[1][1] = -DBL_MIN;
    gmo_systems systems = systems_of(2);
    gmo_systems_eliminate(&systems, &score);
    gmo_systems_solve(&systems);
    CHECK(work.g[0][0] == 0 && work.g[1][0] == 0 && score[0] == 0);
    CHECK(work.g[0][1] == 1 && work.g[1][1] == -1);
}

int main(void) {
    solutions_solve();
    two_unknowns_by_hand();
    tiny_penalties_do_no_harm();
    zero_pivots();
    pivots_too_small_to_divide_by();
    return check_report();
}
