#include "check.h"
#include "common.h"

enum { MAX_N = 300, MAX_M = 9, MAX_Q = 20, ROUNDS = 12 };

static double x[MAX_N * MAX_M], weight[MAX_N], scores[MAX_N * MAX_Q];
static uint8_t indicator[MAX_N * MAX_Q];

/* Room for the stumps of a run. */
typedef struct {
    int32_t feature[ROUNDS];
    double threshold[ROUNDS], leaf_scores[ROUNDS * 2 * MAX_Q], normalizer[ROUNDS];
} memory;

static gmo_stumps stumps_in(memory *m, int32_t q) {
    memset(m, 0, sizeof *m);
    return (gmo_stumps){ROUNDS, q, m->feature, m->threshold, m->leaf_scores, m->normalizer};
}

/* Columns of 1, 2, 3 ... or of nearly n values, by turns. */
static gmo_stump_rows make_rows(int64_t n, int64_t m, int32_t q) {
    for (int64_t i = 0; i < n; i++) {
        for (int64_t f = 0; f < m; f++)
            x[i * m + f] = f % 2 ? (double)random_below(1000000) : (double)random_below((uint32_t)(f / 2 + 1)) - 1;
        for (int32_t l = 0; l < q; l++)
            indicator[i * q + l] = random_below(5) == 0 ? (uint8_t)random_below(2) : x[i * m + l % m] > 400000;
        weight[i] = 0.25 + random_below(8);
    }
    return (gmo_stump_rows){x, indicator, weight, n, m, q};
}

static gmo_status boost(const gmo_stump_rows *rows, int32_t n_threads, const gmo_stumps *out) {
    gmo_stump_booster *booster;
    gmo_status status = gmo_stump_booster_create(rows, 1e-3, n_threads, &booster);
    for (int64_t t = 0; status == GMO_OK && t < ROUNDS; t += 4)
        status = gmo_stump_booster_boost(booster, out, t, t + 4);
    gmo_stump_booster_free(booster);
    return status;
}

/* Z of a stump, from weights D: one pass over the rows for every label. */
static double value_of(const gmo_stump_rows *rows, const double *d, int64_t f, double threshold) {
    double z = 0;
    for (int32_t l = 0; l < rows->n_labels; l++) {
        double w[2][2] = {{0}};
        for (int64_t i = 0; i < rows->n_rows; i++)
            w[rows->x[i * rows->n_features + f] > threshold][rows->indicator[i * rows->n_labels + l]] +=
                d[i * rows->n_labels + l];
        z += 2 * sqrt(w[0][0] * w[0][1]) + 2 * sqrt(w[1][0] * w[1][1]);
    }
    return z;
}

/* The least Z over all features and over all values as thresholds. */
static double least_value(const gmo_stump_rows *rows, const double *d) {
    double least = INFINITY;
    for (int64_t f = 0; f < rows->n_features; f++)
        for (int64_t i = 0; i < rows->n_rows; i++)
            least = fmin(least, value_of(rows, d, f, rows->x[i * rows->n_features + f]));
    return least;
}

/* D times exp(-Y c), divided by its sum, which is returned. */
static double update(const gmo_stump_rows *rows, const gmo_stumps *stumps, int64_t t, double *d) {
    double sum = 0;
    int64_t q = rows->n_labels, cells = rows->n_rows * q;
    for (int64_t k = 0; k < cells; k++) {
        bool right = rows->x[k / q * rows->n_features + stumps->feature[t]] > stumps->threshold[t];
        double c = stumps->leaf_scores[(2 * t + right) * q + k % q];
        d[k] *= exp(rows->indicator[k] ? -c : c);
        sum += d[k];
    }
    for (int64_t k = 0; k < cells; k++)
        d[k] /= sum;
    return sum;
}

static void stumps_are_the_best_of_all(void) {
    static const int32_t sizes[][3] = {{2, 1, 1},  {15, 2, 2},  {60, 5, 7}, {40, 9, 8},
                                       {50, 3, 9}, {90, 2, 20}, {300, 4, 3}};
    static double d[MAX_N * MAX_Q];
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        memory m;
        int64_t n = sizes[s][0], cells = n * sizes[s][2];
        gmo_stump_rows rows = make_rows(n, sizes[s][1], sizes[s][2]);
        gmo_stumps stumps = stumps_in(&m, sizes[s][2]);
        double sum = 0;
        x[1] = x[0] + 1; /* one column can be split at least */
        CHECK(boost(&rows, 1, &stumps) == GMO_OK);
        for (int64_t i = 0; i < n; i++)
            sum += weight[i] * rows.n_labels;
        for (int64_t k = 0; k < cells; k++)
            d[k] = weight[k / rows.n_labels] / sum;
        for (int64_t t = 0; t < ROUNDS; t++) {
            CHECK(m.feature[t] >= 0);
            CHECK(fabs(value_of(&rows, d, m.feature[t], m.threshold[t]) - least_value(&rows, d)) < 1e-12);
            CHECK(fabs(update(&rows, &stumps, t, d) - m.normalizer[t]) < 1e-12);
        }
    }
}

static void threads_and_order_of_rows_do_not_matter(void) {
    static const int32_t sizes[][3] = {{1, 3, 2}, {7, 1, 3}, {250, 9, 17}, {300, 8, 8}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        memory expected, other;
        int64_t n = sizes[s][0], m = sizes[s][1];
        int32_t q = sizes[s][2];
        gmo_stump_rows rows = make_rows(n, m, q);
        gmo_stumps stumps = stumps_in(&expected, q);
        CHECK(boost(&rows, 1, &stumps) == GMO_OK);
        for (int32_t n_threads = 2; n_threads <= 5; n_threads++) {
            stumps = stumps_in(&other, q);
            CHECK(boost(&rows, n_threads, &stumps) == GMO_OK);
            CHECK(memcmp(&expected, &other, sizeof other) == 0);
        }
        static double x_turned[MAX_N * MAX_M], weight_turned[MAX_N];
        static uint8_t indicator_turned[MAX_N * MAX_Q];
        for (int64_t i = 0; i < n; i++) {
            memcpy(x_turned + i * m, x + (n - 1 - i) * m, (size_t)m * sizeof *x);
            memcpy(indicator_turned + i * q, indicator + (n - 1 - i) * q, (size_t)q);
            weight_turned[i] = weight[n - 1 - i];
        }
        gmo_stump_rows turned = {x_turned, indicator_turned, weight_turned, n, m, q};
        stumps = stumps_in(&other, q);
        CHECK(boost(&turned, 1, &stumps) == GMO_OK);
        CHECK(memcmp(&expected, &other, sizeof other) == 0);
    }
}

static void scores_are_sums_over_rounds(void) {
    memory m;
    gmo_stump_rows rows = make_rows(77, 5, 11);
    gmo_stumps stumps = stumps_in(&m, 11);
    CHECK(boost(&rows, 2, &stumps) == GMO_OK);
    for (int32_t n_threads = 1; n_threads <= 3; n_threads++) {
        memset(scores, 0, sizeof scores);
        CHECK(gmo_stumps_add(&stumps, 0, 5, x, 77, 5, n_threads, scores) == GMO_OK);
        CHECK(gmo_stumps_add(&stumps, 5, ROUNDS, x, 77, 5, n_threads, scores) == GMO_OK);
        for (int64_t k = 0; k < 77 * 11; k++) {
            double sum = 0;
            for (int64_t t = 0; t < ROUNDS; t++)
                sum += m.leaf_scores[(2 * t + (x[k / 11 * 5 + m.feature[t]] > m.threshold[t])) * 11 + k % 11];
            CHECK(scores[k] == sum);
        }
    }
    CHECK(gmo_stumps_add(&stumps, 0, ROUNDS, x, 0, 5, 1, scores) == GMO_OK);
}

static void a_failed_allocation_is_reported(void) {
    gmo_stump_rows rows = make_rows(30, 4, 3);
    gmo_status status = GMO_ERR_MEMORY;
    int failed = -1;
    for (long allowed = 0; status == GMO_ERR_MEMORY && allowed < 100; allowed++) {
        memory m;
        gmo_stumps stumps = stumps_in(&m, 3);
        allocations_left = allowed;
        status = boost(&rows, 3, &stumps);
        CHECK(status == GMO_OK || status == GMO_ERR_MEMORY);
        failed++;
    }
    allocations_left = -1;
    CHECK(status == GMO_OK && failed > 8);
}

static void sizes_that_do_not_fit_are_refused(void) {
    static const int64_t sizes[][3] = {{((int64_t)1 << 30) + 1, 1, 1},
                                       {1, (int64_t)1 << 31, 1},
                                       {1 << 30, INT32_MAX, 8},
                                       {1 << 30, INT32_MAX, INT32_MAX},
                                       {1 << 30, 1, INT32_MAX}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        gmo_stump_rows rows = {x, indicator, NULL, sizes[s][0], sizes[s][1], (int32_t)sizes[s][2]};
        gmo_stump_booster *booster;
        CHECK(gmo_stump_booster_create(&rows, 1e-3, 1, &booster) == GMO_ERR_SIZE && booster == NULL);
    }
}

static void arguments_outside_their_ranges_are_refused(void) {
    memory m;
    gmo_stump_rows rows = make_rows(20, 3, 2);
    gmo_stumps stumps = stumps_in(&m, 2);
    gmo_stump_booster *booster;
    static const double smoothings[] = {0, -1, INFINITY, NAN};
    for (int i = 0; i < 4; i++)
        CHECK(gmo_stump_booster_create(&rows, smoothings[i], 1, &booster) == GMO_ERR_ARGUMENT && !booster);
    CHECK(gmo_stump_booster_create(&rows, 1, 0, &booster) == GMO_ERR_ARGUMENT);
    gmo_stump_rows none[] = {rows, rows, rows};
    none[0].n_rows = none[1].n_features = none[2].n_labels = 0;
    for (int i = 0; i < 3; i++)
        CHECK(gmo_stump_booster_create(&none[i], 1, 1, &booster) == GMO_ERR_ARGUMENT);
    CHECK(gmo_stump_booster_create(&rows, 1, 1, &booster) == GMO_OK);
    CHECK(gmo_stump_booster_boost(booster, &stumps, -1, 1) == GMO_ERR_ARGUMENT);
    CHECK(gmo_stump_booster_boost(booster, &stumps, 2, 1) == GMO_ERR_ARGUMENT);
    CHECK(gmo_stump_booster_boost(booster, &stumps, 0, ROUNDS + 1) == GMO_ERR_ARGUMENT);
    CHECK(gmo_stump_booster_boost(booster, &stumps, 0, ROUNDS) == GMO_OK);
    gmo_stump_booster_free(booster);
    CHECK(gmo_stumps_add(&stumps, 0, ROUNDS + 1, x, 20, 3, 1, scores) == GMO_ERR_ARGUMENT);
    m.feature[3] = 3;
    CHECK(gmo_stumps_add(&stumps, 0, ROUNDS, x, 20, 3, 1, scores) == GMO_ERR_ARGUMENT);
    m.feature[3] = -2;
    CHECK(gmo_stumps_add(&stumps, 0, ROUNDS, x, 20, 3, 1, scores) == GMO_ERR_ARGUMENT);
}

int main(void) {
    stumps_are_the_best_of_all();
    threads_and_order_of_rows_do_not_matter();
    scores_are_sums_over_rounds();
    a_failed_allocation_is_reported();
    sizes_that_do_not_fit_are_refused();
    arguments_outside_their_ranges_are_refused();
    return check_report();
}
