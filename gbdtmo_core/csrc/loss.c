#include "loss.h"

#include <math.h>
#include <string.h>

static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}

/* Probabilities of one row into p. The largest score is subtracted first, so that no exponential overflows. */
static void softmax(const double *scores, int32_t d, double *p) {
    double largest = scores[0], sum = 0;
    for (int32_t j = 1; j < d; j++)
        largest = scores[j] > largest ? scores[j] : largest;
    for (int32_t j = 0; j < d; j++) {
        p[j] = exp(scores[j] - largest);
        sum += p[j];
    }
    for (int32_t j = 0; j < d; j++)
        p[j] /= sum;
}

static void row_derivatives(int32_t loss, const gmo_target *target, int64_t row, const double *scores, int32_t d,
                            double *g, double *h) {
    const double *y = target->values ? target->values + row * d : NULL;
    if (loss == GMO_LOSS_SOFTMAX)
        softmax(scores, d, g);
    else
        for (int32_t j = 0; j < d; j++)
            g[j] = sigmoid(scores[j]);
    for (int32_t j = 0; h && j < d; j++)
        h[j] = g[j] * (1 - g[j]);
    if (loss == GMO_LOSS_SOFTMAX)
        g[target->labels[row]] -= 1;
    else
        for (int32_t j = 0; j < d; j++)
            g[j] -= y[j];
}

void gmo_loss_derivatives(int32_t loss, const gmo_target *target, const double *scores, int64_t n, int32_t d,
                          int32_t n_threads, double *gradient, double *hessian) {
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, n * d * 16))
    for (int64_t i = 0; i < n; i++)
        row_derivatives(loss, target, i, scores + i * d, d, gradient + i * d, hessian ? hessian + i * d : NULL);
}

/* The first largest score, as np.argmax. */
static int32_t argmax(const double *scores, int32_t d) {
    int32_t best = 0;
    for (int32_t j = 1; j < d; j++)
        if (scores[j] > scores[best])
            best = j;
    return best;
}

static double accuracy(const gmo_target *target, const double *scores, int64_t n, int32_t d) {
    int64_t hits = 0;
    for (int64_t i = 0; i < n; i++) {
        int32_t top = argmax(scores + i * d, d);
        hits += target->labels ? target->labels[i] == top : target->values[i * d + top] > 0;
    }
    return (double)hits / (double)n;
}

static double softmax_log_loss(const double *scores, int32_t d, int32_t label) {
    double largest = scores[argmax(scores, d)], sum = 0;
    for (int32_t j = 0; j < d; j++)
        sum += exp(scores[j] - largest);
    return log(sum) + largest - scores[label];
}

static double log_loss(int32_t loss, const gmo_target *target, const double *scores, int64_t n, int32_t d) {
    double sum = 0;
    if (loss == GMO_LOSS_SOFTMAX) {
        for (int64_t i = 0; i < n; i++)
            sum += softmax_log_loss(scores + i * d, d, target->labels[i]);
        return sum / (double)n;
    }
    for (int64_t i = 0; i < n * d; i++) {
        double x = scores[i];
        sum += (x > 0 ? x : 0) - x * target->values[i] + log1p(exp(-fabs(x)));
    }
    return sum / ((double)n * d);
}

/* Mean absolute (power 1) or squared (power 2) error over the cells of one column or all. */
static double mean_error(const gmo_target *target, const double *scores, int64_t n, int32_t d, int32_t output,
                         bool squared) {
    int32_t first = output < 0 ? 0 : output, last = output < 0 ? d : output + 1;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int32_t j = first; j < last; j++) {
            double error = scores[i * d + j] - target->values[i * d + j];
            sum += squared ? error * error : fabs(error);
        }
    return sum / ((double)n * (last - first));
}

double gmo_metric_value(int32_t metric, int32_t loss, const gmo_target *target, const double *scores, int64_t n,
                        int32_t d, int32_t output) {
    switch (metric) {
    case GMO_METRIC_ACCURACY:
        return accuracy(target, scores, n, d);
    case GMO_METRIC_LOG_LOSS:
        return log_loss(loss, target, scores, n, d);
    case GMO_METRIC_MAE:
        return mean_error(target, scores, n, d, output, false);
    case GMO_METRIC_RMSE:
        return sqrt(mean_error(target, scores, n, d, output, true));
    default:
        return mean_error(target, scores, n, d, output, true);
    }
}

bool gmo_metric_is_score(int32_t metric) { return metric == GMO_METRIC_ACCURACY; }
