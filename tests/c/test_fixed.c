#include "check.h"
#include "fixed.h"

enum { N = 700 };

/* Rounds the last d of width columns. */
static gmo_status round_last(gmo_fixed *fixed, const double *gradient, const double *hessian, int32_t width,
                             int32_t n_threads) {
    int32_t first = width - fixed->d;
    gmo_derivatives g = {gradient + first, NULL, width}, h = {hessian ? hessian + first : NULL, NULL, width};
    return gmo_fixed_round(fixed, &g, &h, n_threads);
}

/* The scale leaves room for the sum of all rows and uses it: the error of a sum is far below float32's. */
static void fixed_point_uses_its_range(void) {
    static double gradient[N];
    double sum = 0;
    int64_t fixed_sum = 0;
    for (int i = 0; i < N; i++)
        sum += gradient[i] = 1e-3 * (1 + (double)random_below(1000) / 7);
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, N, 1, false) == GMO_OK);
    CHECK(round_last(&fixed, gradient, NULL, 1, 1) == GMO_OK);
    for (int i = 0; i < N; i++)
        fixed_sum += fixed.rows[i * (int64_t)fixed.stride];
    CHECK(fixed_sum <= INT32_MAX && fixed_sum > INT32_MAX / 4);
    CHECK(fabs((double)fixed_sum * fixed.gradient_unit[0] / sum - 1) < 1e-6);
    int exponent;
    CHECK(frexp(fixed.gradient_unit[0], &exponent) == 0.5); /* a power of two */
    gmo_fixed_free(&fixed);
}

static void one_column_of_a_wider_array_can_be_taken(void) {
    double gradient[] = {1, 10, 2, 20, 3, 30};
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, 3, 1, false) == GMO_OK);
    CHECK(round_last(&fixed, gradient, NULL, 2, 1) == GMO_OK);
    for (int i = 0; i < 3; i++)
        CHECK(fixed.rows[i * fixed.stride] * fixed.gradient_unit[0] == 10 * (i + 1));
    gmo_fixed_free(&fixed);
}

/* Half the squared error's derivatives, scores - targets, give what their matrix gives. */
static void a_difference_is_rounded_as_its_matrix(void) {
    static double scores[N * 2], targets[N * 2], difference[N * 2];
    for (int i = 0; i < 2 * N; i++)
        difference[i] = (scores[i] = sin(i)) - (targets[i] = (double)random_below(5));
    gmo_fixed a = {0}, b = {0};
    CHECK(gmo_fixed_init(&a, N, 2, false) == GMO_OK && gmo_fixed_init(&b, N, 2, false) == GMO_OK);
    gmo_derivatives from = {scores, targets, 2};
    CHECK(gmo_fixed_round(&a, &from, NULL, 1) == GMO_OK);
    CHECK(round_last(&b, difference, NULL, 2, 1) == GMO_OK);
    CHECK(memcmp(a.rows, b.rows, sizeof(int32_t) * N * (size_t)a.stride) == 0);
    CHECK(memcmp(a.gradient_unit, b.gradient_unit, 2 * sizeof(double)) == 0);
    gmo_fixed_free(&a);
    gmo_fixed_free(&b);
}

static void derivatives_that_are_no_numbers_are_refused(void) {
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, 2, 1, false) == GMO_OK);
    const double bad[] = {NAN, INFINITY, -INFINITY, 1e300};
    for (int i = 0; i < 4; i++) {
        double gradient[] = {1, bad[i]};
        CHECK(round_last(&fixed, gradient, NULL, 1, 1) == GMO_ERR_NUMERIC);
    }
    double zeros[] = {0, -0.0};
    CHECK(round_last(&fixed, zeros, NULL, 1, 1) == GMO_OK);
    CHECK(fixed.gradient_unit[0] == 0 && fixed.rows[0] == 0);
    gmo_fixed_free(&fixed);
}

static void sizes_that_overflow_are_refused(void) {
    gmo_fixed fixed = {0};
    CHECK(gmo_fixed_init(&fixed, INT64_MAX / 2, 100, true) == GMO_ERR_SIZE);
    gmo_fixed_free(&fixed);
    CHECK(gmo_fixed_init(&fixed, INT64_MAX / 8, 1, false) != GMO_OK);
    gmo_fixed_free(&fixed);
}

/* Rows taken a chunk at a time by several threads give the integers that one thread gives. */
static void threads_give_the_same_integers(void) {
    enum { ROWS = 10000, D = 3 };
    static double gradient[ROWS * D], hessian[ROWS * D];
    for (int i = 0; i < ROWS * D; i++) {
        gradient[i] = sin(i) * exp(random_below(20));
        hessian[i] = cos(i) * cos(i);
    }
    gmo_fixed one = {0}, many = {0};
    CHECK(gmo_fixed_init(&one, ROWS, D, true) == GMO_OK && gmo_fixed_init(&many, ROWS, D, true) == GMO_OK);
    CHECK(round_last(&one, gradient, hessian, D, 1) == GMO_OK);
    CHECK(round_last(&many, gradient, hessian, D, 3) == GMO_OK);
    CHECK(memcmp(one.rows, many.rows, sizeof(int32_t) * ROWS * (size_t)one.stride) == 0);
    CHECK(memcmp(one.gradient_unit, many.gradient_unit, sizeof(double) * D) == 0);
    /* Every value is within half a unit of what it was. */
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < D; j++) {
            CHECK(fabs(one.rows[i * one.stride + j] * one.gradient_unit[j] - gradient[i * D + j]) <=
                  one.gradient_unit[j] / 2);
            CHECK(fabs(one.rows[i * one.stride + D + j] * one.hessian_unit[j] - hessian[i * D + j]) <=
                  one.hessian_unit[j] / 2);
        }
    int32_t total[16] = {0}, rows[] = {3, 5000, 9999};
    gmo_fixed_total(&one, rows, 3, total);
    for (int32_t j = 0; j < one.stride; j++)
        CHECK(total[j] ==
              one.rows[3 * one.stride + j] + one.rows[5000 * one.stride + j] + one.rows[9999 * one.stride + j]);
    gmo_fixed_total(&one, NULL, 2, total);
    CHECK(total[one.count_lane] == 2 && total[0] == one.rows[0] + one.rows[one.stride]);
    gmo_fixed_free(&one);
    gmo_fixed_free(&many);
}

int main(void) {
    fixed_point_uses_its_range();
    one_column_of_a_wider_array_can_be_taken();
    a_difference_is_rounded_as_its_matrix();
    derivatives_that_are_no_numbers_are_refused();
    sizes_that_overflow_are_refused();
    threads_give_the_same_integers();
    return check_report();
}
