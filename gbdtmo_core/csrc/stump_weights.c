#include "stump_weights.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void start(gmo_stump_weights *w) {
    const double *of_rows = w->rows->weight;
    for (int64_t i = 0; i < w->rows->n_rows; i++)
        for (int64_t l = 0; l < w->stride; l++)
            w->log_weight[i * w->stride + l] = l >= w->rows->n_labels ? -INFINITY : of_rows ? log(of_rows[i]) : 0;
}

gmo_status gmo_stump_weights_init(gmo_stump_weights *w, const gmo_stump_rows *rows) {
    w->rows = rows;
    w->stride = ((int64_t)rows->n_labels + GMO_LABEL_LANES - 1) / GMO_LABEL_LANES * GMO_LABEL_LANES;
    int64_t cells = rows->n_rows * w->stride;
    w->log_weight = gmo_alloc(cells, sizeof *w->log_weight);
    w->weight = gmo_alloc(cells, sizeof *w->weight);
    w->unit = gmo_alloc(w->stride, sizeof *w->unit);
    w->total.sum = gmo_alloc(w->stride, sizeof *w->total.sum);
    w->total.difference = gmo_alloc(w->stride, sizeof *w->total.difference);
    if (!w->log_weight || !w->weight || !w->unit || !w->total.sum || !w->total.difference)
        return GMO_ERR_MEMORY;
    start(w);
    return GMO_OK;
}

void gmo_stump_weights_free(gmo_stump_weights *w) {
    free(w->log_weight);
    free(w->weight);
    free(w->unit);
    free(w->total.sum);
    free(w->total.difference);
    memset(w, 0, sizeof *w);
}

GMO_CLONES
static double largest_of(const double *values, int64_t n) {
    double lanes[GMO_LABEL_LANES], largest = -INFINITY;
    for (int i = 0; i < GMO_LABEL_LANES; i++)
        lanes[i] = -INFINITY;
    for (int64_t k = 0; k < n; k += GMO_LABEL_LANES)
        for (int i = 0; i < GMO_LABEL_LANES; i++)
            lanes[i] = values[k + i] > lanes[i] ? values[k + i] : lanes[i];
    for (int i = 0; i < GMO_LABEL_LANES; i++)
        largest = lanes[i] > largest ? lanes[i] : largest;
    return largest;
}

/* The calling thread's share of exp(log_weight - largest). */
static void exponentials(gmo_stump_weights *w, double largest) {
    gmo_range part = gmo_thread_range(w->rows->n_rows);
    for (int64_t k = part.first * w->stride; k < part.last * w->stride; k++)
        w->weight[k] = exp(w->log_weight[k] - largest);
}

GMO_CLONES
static void column_maxima(const double *weight, int64_t n_rows, int64_t stride, double *largest) {
    memset(largest, 0, (size_t)stride * sizeof *largest);
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t l = 0; l < stride; l++)
            largest[l] = weight[i * stride + l] > largest[l] ? weight[i * stride + l] : largest[l];
}

/* Column sums of the weights, each rounded as (weight + unit) - unit: exact, if unit is at least their sum. */
GMO_CLONES
static void sum_rounded(const double *weight, int64_t n_rows, int64_t stride, const double *unit, double *sum) {
    memset(sum, 0, (size_t)stride * sizeof *sum);
    for (int64_t i = 0; i < n_rows; i++)
        for (int64_t l = 0; l < stride; l++)
            sum[l] += (weight[i * stride + l] + unit[l]) - unit[l];
}

/* The least power of two above x; 0 for 0. */
static double power_above(double x) {
    int exponent;
    frexp(x, &exponent);
    return x > 0 ? ldexp(1, exponent) : 0;
}

/* Units that the columns' sums do not exceed: first from their maxima, then from sums rounded with these, so that they are
 * near the sums and do not depend on the order of rows. */
static void find_units(gmo_stump_weights *w) {
    int64_t n = w->rows->n_rows;
    double *sum = w->total.sum;
    column_maxima(w->weight, n, w->stride, w->unit);
    for (int64_t l = 0; l < w->stride; l++)
        w->unit[l] = power_above((double)n * w->unit[l]);
    sum_rounded(w->weight, n, w->stride, w->unit, sum);
    for (int64_t l = 0; l < w->stride; l++) {
        double bound = power_above(sum[l] + (double)n * (DBL_EPSILON / 2) * w->unit[l]);
        w->unit[l] = bound < w->unit[l] ? bound : w->unit[l];
    }
}

/* Rounds the weights, gives them the sign of Y and adds them up. */
GMO_CLONES
static void round_weights(const gmo_stump_rows *rows, int64_t stride, const double *unit, double *weight,
                          const gmo_label_sums *total) {
    double *restrict sum = total->sum, *restrict difference = total->difference;
    memset(sum, 0, (size_t)stride * sizeof *sum);
    memset(difference, 0, (size_t)stride * sizeof *difference);
    for (int64_t i = 0; i < rows->n_rows; i++) {
        const uint8_t *restrict relevant = rows->indicator + i * rows->n_labels;
        double *restrict w = weight + i * stride;
        for (int64_t l = 0; l < rows->n_labels; l++) {
            double rounded = (w[l] + unit[l]) - unit[l];
            w[l] = relevant[l] ? rounded : -rounded;
            sum[l] += rounded;
            difference[l] += w[l];
        }
    }
}

void gmo_stump_weights_find(gmo_stump_weights *w, int32_t n_threads) {
    int64_t cells = w->rows->n_rows * w->stride;
    double largest = largest_of(w->log_weight, cells);
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, cells * 16))
    exponentials(w, largest);
    find_units(w);
    round_weights(w->rows, w->stride, w->unit, w->weight, &w->total);
    w->grand = 0;
    for (int64_t l = 0; l < w->rows->n_labels; l++)
        w->grand += w->total.sum[l];
}

GMO_CLONES
void gmo_stump_weights_update(gmo_stump_weights *w, int64_t feature, double threshold, const double *leaf) {
    const gmo_stump_rows *rows = w->rows;
    for (int64_t i = 0; i < rows->n_rows; i++) {
        bool right = feature >= 0 && rows->x[i * rows->n_features + feature] > threshold;
        const uint8_t *restrict relevant = rows->indicator + i * rows->n_labels;
        const double *restrict c = leaf + right * w->stride;
        double *restrict log_weight = w->log_weight + i * w->stride;
        for (int64_t l = 0; l < rows->n_labels; l++)
            log_weight[l] -= relevant[l] ? c[l] : -c[l];
    }
}
