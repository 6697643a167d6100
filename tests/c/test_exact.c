#include "check.h"
#include "exact.h"

enum { N = 300, M = 40, D = 5, MAX_BINS = 12 };

/* Rows of random bins; a third of the features have missing values, a few one bin only or a bin that most rows share. */
static uint8_t bins[N * M], has_missing[M];
static int64_t edge_start[M + 1];
static int32_t labels[N], rows[N];
static double gradient[N * D], probability[N * D];
static gmo_binned data = {bins, edge_start, N, M};

static int32_t bins_of(int64_t f) { return f % 7 == 3 ? 1 : 2 + (int32_t)(f * 5 % (MAX_BINS - 1)); }

static void make_rows(void) {
    for (int64_t f = 0; f < M; f++) {
        edge_start[f + 1] = edge_start[f] + bins_of(f) - 1;
        has_missing[f] = f % 3 == 1;
    }
    for (int64_t i = 0; i < N; i++) {
        for (int64_t f = 0; f < M; f++) {
            uint32_t most = (uint32_t)(bins_of(f) + has_missing[f]);
            bins[i * M + f] = (uint8_t)(f % 2 && random_below(3) ? 0 : random_below(most));
        }
        labels[i] = (int32_t)random_below(D);
        rows[i] = (int32_t)i;
        double sum = 0;
        for (int32_t j = 0; j < D; j++)
            sum += probability[i * D + j] = 1 + random_below(1000);
        for (int32_t j = 0; j < D; j++) {
            probability[i * D + j] /= sum;
            gradient[i * D + j] = probability[i * D + j] - (j == labels[i]);
        }
    }
}

static gmo_params plain(void) {
    return (gmo_params){.n_threads = 1, .min_samples_leaf = 4, .reg_lambda = 0.5, .learning_rate = 1};
}

/* g' inv(A) g for the listed rows by Gaussian elimination of the whole matrix sum diag(p) - p p' + lambda I; x: the
 * solution. */
static double solve_dense(const int32_t *listed, int64_t n, double lambda, double x[D]) {
    double a[D][D + 1] = {{0}}, g[D], score = 0;
    for (int32_t j = 0; j < D; j++) {
        a[j][j] = lambda;
        for (int64_t i = 0; i < n; i++) {
            const double *p = probability + listed[i] * D;
            a[j][D] += gradient[listed[i] * D + j];
            for (int32_t k = 0; k < D; k++)
                a[j][k] += (j == k ? p[j] : 0) - p[j] * p[k];
        }
        g[j] = a[j][D];
    }
    for (int32_t j = 0; j < D; j++)
        for (int32_t r = 0; r < D; r++) {
            double factor = a[r][j] / a[j][j];
            for (int32_t k = j; r != j && k <= D; k++)
                a[r][k] -= factor * a[j][k];
        }
    for (int32_t j = 0; j < D; j++) {
        x[j] = a[j][D] / a[j][j];
        score += x[j] * g[j];
    }
    return score;
}

/* Value of a candidate of the listed rows by the equations; 0 if a side has too few rows. */
static double value_of(const gmo_params *params, const int32_t *listed, int64_t n, int64_t feature, int32_t bin,
                       bool missing_left) {
    static int32_t side[2][N];
    int64_t count[2] = {0};
    double x[D];
    for (int64_t i = 0; i < n; i++) {
        uint8_t b = bins[listed[i] * M + feature];
        bool left = b == bins_of(feature) ? missing_left : b <= bin;
        side[left][count[left]++] = listed[i];
    }
    if (count[0] < params->min_samples_leaf || count[1] < params->min_samples_leaf)
        return 0;
    return solve_dense(side[0], count[0], params->reg_lambda, x) +
           solve_dense(side[1], count[1], params->reg_lambda, x);
}

static double best_value(const gmo_params *params, const int32_t *listed, int64_t n) {
    double best = 0;
    for (int64_t f = 0; f < M; f++)
        for (int32_t bin = 0; bin < bins_of(f); bin++)
            for (int missing_left = 0; missing_left < 2; missing_left++)
                best = fmax(best, value_of(params, listed, n, f, bin, missing_left));
    return best;
}

typedef struct {
    gmo_hist_shape shape;
    gmo_exact exact;
} searcher;

static void open_searcher(const gmo_params *params, searcher *s) {
    memset(s, 0, sizeof *s);
    CHECK(gmo_hist_shape_init(&s->shape, &data, has_missing, 16, params->n_threads) == GMO_OK);
    CHECK(gmo_exact_init(&s->exact, params, &s->shape, gradient, labels, D) == GMO_OK);
}

static void close_searcher(searcher *s) {
    gmo_exact_free(&s->exact);
    gmo_hist_shape_free(&s->shape);
}

/* All rows, and nodes of fewer: the split is a candidate whose value is the best there is, and its gain that of eq. 14. */
static void the_best_split_is_found(void) {
    gmo_params params = plain();
    searcher s;
    open_searcher(&params, &s);
    for (int64_t n = N; n >= 8; n = n * 2 / 3) {
        gmo_exact_times times = {0};
        double x[D], best = best_value(&params, rows, n), parent = solve_dense(rows, n, params.reg_lambda, x);
        gmo_split split = gmo_exact_search(&s.exact, rows, n, &times);
        CHECK(split.feature >= 0 && times.histogram > 0 && times.split > 0);
        CHECK(fabs(split.value - best) < 1e-9 * best);
        CHECK(fabs(split.gain - (best - parent) / 2 / D) < 1e-9 * best);
        double own = value_of(&params, rows, n, split.feature, split.bin, split.missing_left);
        CHECK(fabs(own - best) < 1e-9 * best);
    }
    close_searcher(&s);
}

static void too_few_rows_have_no_split(void) {
    gmo_params params = plain();
    searcher s;
    gmo_exact_times times = {0};
    open_searcher(&params, &s);
    CHECK(gmo_exact_search(&s.exact, rows, 7, &times).feature == -1);
    close_searcher(&s);
}

/* More threads mean smaller blocks; rows in another order are summed in another order. */
static void threads_and_the_order_of_rows_change_no_bit(void) {
    gmo_params params = plain();
    gmo_exact_times times = {0};
    gmo_split expected = {.feature = -1};
    for (params.n_threads = 1; params.n_threads <= 3; params.n_threads++) {
        searcher s;
        open_searcher(&params, &s);
        gmo_split split = gmo_exact_search(&s.exact, rows, N, &times);
        expected = params.n_threads == 1 ? split : expected;
        CHECK(split.value == expected.value && split.gain == expected.gain && split.feature == expected.feature &&
              split.bin == expected.bin && split.missing_left == expected.missing_left);
        for (int32_t i = 0; i < N; i++)
            rows[i] = (rows[i] * 7 + 1) % N;
        close_searcher(&s);
    }
    for (int32_t i = 0; i < N; i++)
        rows[i] = i;
}

/* Feature 35 parts the rows as feature 2 does, mirrored: left and right change places, nothing else. */
static void ties_go_to_the_first_feature(void) {
    gmo_params params = plain();
    params.n_threads = 2;
    gmo_exact_times times = {0};
    static uint8_t before[N * M];
    memcpy(before, bins, sizeof bins);
    CHECK(bins_of(2) == bins_of(35));
    for (int64_t i = 0; i < N; i++)
        for (int64_t f = 0; f < M; f++)
            bins[i * M + f] = f == 2 ? (labels[i] * 3 + random_below(4)) % (uint32_t)bins_of(2) : 0;
    for (int64_t i = 0; i < N; i++)
        bins[i * M + 35] = (uint8_t)(bins_of(2) - 1 - bins[i * M + 2]);
    searcher s;
    open_searcher(&params, &s);
    gmo_split split = gmo_exact_search(&s.exact, rows, N, &times);
    CHECK(split.feature == 2);
    for (int64_t i = 0; i < N; i++)
        bins[i * M + 2] = 0;
    close_searcher(&s);
    open_searcher(&params, &s);
    gmo_split mirrored = gmo_exact_search(&s.exact, rows, N, &times);
    CHECK(mirrored.feature == 35 && mirrored.value == split.value && mirrored.gain == split.gain);
    CHECK(mirrored.bin == bins_of(2) - 2 - split.bin && mirrored.n_left == N - split.n_left);
    close_searcher(&s);
    memcpy(bins, before, sizeof bins);
}

static void leaves_solve_the_equation(void) {
    gmo_params params = plain();
    params.learning_rate = 0.25;
    searcher s;
    double x[D], value[D];
    open_searcher(&params, &s);
    for (int64_t n = 1; n <= N; n *= 3) {
        solve_dense(rows + 5, n, params.reg_lambda, x);
        gmo_exact_leaf(&s.exact, rows + 5, n, value);
        for (int32_t j = 0; j < D; j++)
            CHECK(fabs(value[j] + 0.25 * x[j]) < 1e-12);
    }
    close_searcher(&s);
}

static gmo_params boosted(void) {
    gmo_params params = plain();
    params.loss = GMO_LOSS_SOFTMAX;
    params.metric = GMO_METRIC_LOG_LOSS;
    params.exact_hessian = params.node_cache = 1;
    params.max_depth = 3;
    params.max_leaves = 6;
    params.histogram_pool_bytes = 1 << 20;
    params.n_threads = 2;
    return params;
}

static gmo_status create(const gmo_params *params, int32_t d, gmo_booster **booster) {
    static const double base_score[GMO_EXACT_MAX_OUTPUTS + 1];
    static double values[N * D];
    gmo_target target = params->loss == GMO_LOSS_SOFTMAX ? (gmo_target){labels, NULL} : (gmo_target){.values = values};
    return gmo_booster_create(params, &data, has_missing, &target, base_score, d, booster);
}

static void what_has_no_meaning_is_refused(void) {
    gmo_params wrong[8];
    for (int i = 0; i < 8; i++)
        wrong[i] = boosted();
    wrong[0].loss = GMO_LOSS_SQUARED;
    wrong[1].loss = GMO_LOSS_SIGMOID;
    wrong[2].constant_hessian = 1;
    wrong[3].single_output = 1;
    wrong[4].growth = GMO_GROWTH_RELEASED;
    wrong[5].top_k = D - 1;
    wrong[6].reg_alpha = 0.1;
    gmo_booster *booster;
    for (int i = 0; i < 8; i++) {
        CHECK(create(&wrong[i], D, &booster) == (i < 7 ? GMO_ERR_ARGUMENT : GMO_OK));
        gmo_booster_free(booster);
    }
    CHECK(create(&wrong[7], GMO_EXACT_MAX_OUTPUTS + 1, &booster) == GMO_ERR_ARGUMENT && !booster);
}

/* The training loss falls, and short memory at any point is reported. */
static void boosting_works_and_reports_short_memory(void) {
    gmo_params params = boosted();
    gmo_target target = {labels, NULL};
    bool done = false;
    for (long n = 1; !done && n < 10000; n++) {
        gmo_booster *booster;
        gmo_progress progress;
        int32_t finished;
        allocations_left = n;
        gmo_status status = create(&params, D, &booster);
        if (status == GMO_OK)
            status = gmo_booster_validate(booster, &data, &target);
        if (status == GMO_OK)
            status = gmo_booster_boost(booster, 3, &finished);
        done = allocations_left >= 0; /* none failed */
        CHECK(status == (done ? GMO_OK : GMO_ERR_MEMORY));
        allocations_left = -1;
        if (done) {
            gmo_booster_progress(booster, &progress);
            CHECK(progress.history[0] < log(D));
            CHECK(progress.history[1] < progress.history[0] && progress.history[2] < progress.history[1]);
        }
        gmo_booster_free(booster);
    }
    CHECK(done);
}

int main(void) {
    make_rows();
    the_best_split_is_found();
    too_few_rows_have_no_split();
    threads_and_the_order_of_rows_change_no_bit();
    ties_go_to_the_first_feature();
    leaves_solve_the_equation();
    what_has_no_meaning_is_refused();
    boosting_works_and_reports_short_memory();
    return check_report();
}
