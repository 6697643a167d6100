#include "check.h"
#include "loss.h"

static void squared_error(void) {
    double values[] = {0, 5, 1, 1}, scores[] = {1, 2, 1, -1};
    gmo_target target = {.values = values};
    /* Cells: 1, 9, 0, 4. */
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_MSE, GMO_LOSS_SQUARED, &target, scores, 2, 2, -1), 3.5);
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_RMSE, GMO_LOSS_SQUARED, &target, scores, 2, 2, -1), sqrt(3.5));
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_MAE, GMO_LOSS_SQUARED, &target, scores, 2, 2, -1), 1.5);
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_MSE, GMO_LOSS_SQUARED, &target, scores, 2, 2, 1), 6.5);
}

/* Scores 0 and ln 3 give probabilities 1/4 and 3/4. */
static void softmax(void) {
    int32_t labels[] = {0, 1};
    double scores[] = {0, log(3), 0, log(3)}, g[4], h[4];
    gmo_target target = {.labels = labels};
    gmo_loss_derivatives(GMO_LOSS_SOFTMAX, &target, scores, 2, 2, 1, g, h);
    double expected[] = {-0.75, 0.75, 0.25, -0.25};
    for (int i = 0; i < 4; i++) {
        CHECK_NEAR(g[i], expected[i]);
        CHECK_NEAR(h[i], 0.1875);
    }
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_LOG_LOSS, GMO_LOSS_SOFTMAX, &target, scores, 2, 2, -1),
               -(log(0.25) + log(0.75)) / 2);
    CHECK(gmo_metric_value(GMO_METRIC_ACCURACY, GMO_LOSS_SOFTMAX, &target, scores, 2, 2, -1) == 0.5);
    double equal[] = {1, 1, 1, 1}; /* the first of equal scores counts */
    CHECK(gmo_metric_value(GMO_METRIC_ACCURACY, GMO_LOSS_SOFTMAX, &target, equal, 2, 2, -1) == 0.5);
}

static void sigmoid(void) {
    double values[] = {1, 0}, scores[] = {0, log(3)}, g[2], h[2];
    gmo_target target = {.values = values};
    gmo_loss_derivatives(GMO_LOSS_SIGMOID, &target, scores, 1, 2, 1, g, h);
    CHECK_NEAR(g[0], -0.5);
    CHECK_NEAR(g[1], 0.75);
    CHECK_NEAR(h[0], 0.25);
    CHECK_NEAR(h[1], 0.1875);
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_LOG_LOSS, GMO_LOSS_SIGMOID, &target, scores, 1, 2, -1),
               -(log(0.5) + log(0.25)) / 2);
    /* The label of largest score is not among the row's labels. */
    CHECK(gmo_metric_value(GMO_METRIC_ACCURACY, GMO_LOSS_SIGMOID, &target, scores, 1, 2, -1) == 0);
    CHECK(gmo_metric_is_score(GMO_METRIC_ACCURACY) && !gmo_metric_is_score(GMO_METRIC_LOG_LOSS));
}

/* Scores far out neither overflow nor give NaN; what is certain has gradient 0 or -+1. */
static void extreme_scores(void) {
    double far[] = {1e4, -1e4}, values[] = {1, 1}, g[2], h[2];
    int32_t label = 1;
    gmo_target labels = {.labels = &label}, indicator = {.values = values};
    gmo_loss_derivatives(GMO_LOSS_SOFTMAX, &labels, far, 1, 2, 1, g, h);
    CHECK(g[0] == 1 && g[1] == -1 && h[0] == 0 && h[1] == 0);
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_LOG_LOSS, GMO_LOSS_SOFTMAX, &labels, far, 1, 2, -1), 2e4);
    gmo_loss_derivatives(GMO_LOSS_SIGMOID, &indicator, far, 1, 2, 1, g, h);
    CHECK(g[0] == 0 && g[1] == -1 && h[0] == 0 && h[1] == 0);
    CHECK_NEAR(gmo_metric_value(GMO_METRIC_LOG_LOSS, GMO_LOSS_SIGMOID, &indicator, far, 1, 2, -1), 5e3);
}

/* A constant Hessian is not asked for, and rows are divided among threads. */
static void threads_give_the_same_bits(void) {
    enum { N = 3000, D = 9 };
    static double scores[N * D], g[2][N * D], h[N * D];
    static int32_t labels[N];
    for (int i = 0; i < N; i++)
        labels[i] = (int32_t)random_below(D);
    for (int i = 0; i < N * D; i++)
        scores[i] = sin(i) * 10;
    gmo_target target = {.labels = labels};
    gmo_loss_derivatives(GMO_LOSS_SOFTMAX, &target, scores, N, D, 1, g[0], NULL);
    gmo_loss_derivatives(GMO_LOSS_SOFTMAX, &target, scores, N, D, 3, g[1], h);
    CHECK(memcmp(g[0], g[1], sizeof g[0]) == 0);
}

int main(void) {
    squared_error();
    softmax();
    sigmoid();
    extreme_scores();
    threads_give_the_same_bits();
    return check_report();
}
