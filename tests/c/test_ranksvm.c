#include "check.h"
#include "common.h"

enum { N = 40, M = 3, Q = 5 };

static double x[N * M], gram[N * N], diagonal[N], cost[N];
static uint8_t relevant[N * Q];
static const int32_t one_group[] = {0, Q};

static double random_unit(void) { return (double)random_below(1u << 30) / (double)(1u << 30); }

static void make_problem(double c) {
    random_state = 5;
    for (int32_t i = 0; i < N; i++) {
        int32_t size = 0;
        for (int32_t f = 0; f < M; f++)
            x[i * M + f] = 2 * random_unit() - 1;
        for (int32_t k = 0; k < Q; k++)
            size += relevant[i * Q + k] = x[i * M + k % M] + 0.3 * random_unit() * k > 0.2;
        cost[i] = size && size < Q ? c / (size * (Q - size)) : 0;
    }
    for (int32_t i = 0; i < N; i++)
        for (int32_t j = 0; j < N; j++) {
            double square = 0;
            for (int32_t f = 0; f < M; f++)
                square += (x[i * M + f] - x[j * M + f]) * (x[i * M + f] - x[j * M + f]);
            gram[i * N + j] = exp(-2 * square);
        }
    for (int32_t i = 0; i < N; i++)
        diagonal[i] = gram[i * N + i];
}

static gmo_ranksvm_problem problem_of(const double *kernel, const gmo_features *features) {
    return (gmo_ranksvm_problem){.n_samples = N,
                                 .n_labels = Q,
                                 .n_groups = 1,
                                 .relevant = relevant,
                                 .group_start = one_group,
                                 .cost = cost,
                                 .diagonal = diagonal,
                                 .gram = kernel,
                                 .features = features,
                                 .tolerance = 1e-6,
                                 .max_epochs = 5000,
                                 .seed = 1};
}

/* Runs to the end, a few visits at a time, putting rows where they are wanted. */
static gmo_status solve(const gmo_ranksvm_problem *problem, gmo_ranksvm_state *state, double *dual_coef, double *bias) {
    static double rows[64 * N];
    gmo_ranksvm *machine;
    GMO_TRY(gmo_ranksvm_create(problem, &machine));
    gmo_status status;
    do {
        status = gmo_ranksvm_run(machine, 17);
        gmo_ranksvm_look(machine, state);
        CHECK(state->gap >= 0 && state->dual <= state->primal);
        for (int64_t i = 0; i < state->n_wanted; i++)
            memcpy(rows + i * N, gram + state->wanted[i] * N, N * sizeof *rows);
        if (state->n_wanted)
            gmo_ranksvm_put(machine, rows);
    } while (status == GMO_OK && !state->finished);
    gmo_ranksvm_solution(machine, dual_coef, bias);
    gmo_ranksvm_free(machine);
    return status;
}

/* The objective of the solution, done slowly. */
static double primal_of(const double *a, const double *bias) {
    double value = 0;
    for (int32_t k = 0; k < Q; k++)
        for (int32_t i = 0; i < N; i++)
            for (int32_t j = 0; j < N; j++)
                value += 0.25 * a[i * Q + k] * gram[i * N + j] * a[j * Q + k];
    for (int32_t i = 0; i < N; i++) {
        double s[Q];
        for (int32_t k = 0; k < Q; k++) {
            s[k] = bias[k];
            for (int32_t j = 0; j < N; j++)
                s[k] += 0.5 * gram[i * N + j] * a[j * Q + k];
        }
        for (int32_t k = 0; k < Q; k++)
            for (int32_t l = 0; l < Q; l++)
                if (relevant[i * Q + k] && !relevant[i * Q + l] && s[k] - s[l] < 1 - 1e-12)
                    value += cost[i] * (1 - s[k] + s[l]);
    }
    return value;
}

static void objectives_are_those_of_the_solution(void) {
    static const double costs[] = {1e-3, 1, 100, INFINITY};
    for (size_t c = 0; c < sizeof costs / sizeof *costs; c++) {
        gmo_ranksvm_state state;
        double a[N * Q], bias[Q];
        make_problem(costs[c]);
        gmo_ranksvm_problem problem = problem_of(gram, NULL);
        CHECK(solve(&problem, &state, a, bias) == GMO_OK);
        CHECK(state.gap <= 1e-6 && state.n_epochs < problem.max_epochs);
        CHECK(fabs(primal_of(a, bias) / state.primal - 1) < 1e-9);
    }
}

/* Rows on demand, down to one at a time. */
static void cached_rows_give_the_optimum(void) {
    make_problem(1);
    double a[N * Q], bias[Q];
    gmo_ranksvm_state whole, state;
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    CHECK(solve(&problem, &whole, a, bias) == GMO_OK);
    for (int64_t rows = 0; rows <= N; rows += 13) {
        problem = problem_of(NULL, NULL);
        problem.cache_bytes = rows * N * (int64_t)sizeof(double);
        CHECK(solve(&problem, &state, a, bias) == GMO_OK);
        CHECK(state.gap <= 1e-6 && fabs(state.primal / whole.primal - 1) < 2e-6);
        CHECK(fabs(primal_of(a, bias) / state.primal - 1) < 1e-9);
    }
}

/* Another origin of feature space changes the way, not the end. */
static void the_origin_does_not_matter(void) {
    make_problem(2);
    double a[N * Q], bias[Q], share[N], with[N], norm = 0;
    gmo_ranksvm_state plain, moved;
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    CHECK(solve(&problem, &plain, a, bias) == GMO_OK);
    for (int32_t i = 0; i < N; i++)
        share[i] = i < N / 2 ? 2.0 / N : 0;
    for (int32_t i = 0; i < N; i++) {
        with[i] = 0;
        for (int32_t j = 0; j < N; j++)
            with[i] += share[j] * gram[i * N + j];
    }
    for (int32_t i = 0; i < N; i++)
        norm += share[i] * with[i];
    problem.share = share;
    problem.with_origin = with;
    problem.origin = norm;
    CHECK(solve(&problem, &moved, a, bias) == GMO_OK);
    CHECK(fabs(moved.primal / plain.primal - 1) < 2e-6);
    CHECK(fabs(primal_of(a, bias) / moved.primal - 1) < 1e-9);
    problem.max_epochs = 1; /* sums need not be 0 yet */
    CHECK(solve(&problem, &moved, a, bias) == GMO_OK);
    CHECK(fabs(primal_of(a, bias) / moved.primal - 1) < 1e-9);
}

static void the_linear_kernel_keeps_its_vectors(void) {
    make_problem(1);
    double a[N * Q], bias[Q];
    gmo_ranksvm_state dense, sparse, whole;
    gmo_kernel kernel = {GMO_KERNEL_LINEAR, 1, 1, 0};
    gmo_features rows = {x, NULL, NULL, N, M};
    CHECK(gmo_kernel_block(&kernel, &rows, 0, N, &rows, 2, gram) == GMO_OK);
    CHECK(gmo_kernel_diagonal(&kernel, &rows, diagonal) == GMO_OK);
    int64_t row_start[N + 1];
    int32_t columns[N * M];
    for (int32_t i = 0; i <= N; i++)
        row_start[i] = i * M;
    for (int32_t i = 0; i < N * M; i++)
        columns[i] = i % M;
    gmo_features packed = {x, row_start, columns, N, M};
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    CHECK(solve(&problem, &whole, a, bias) == GMO_OK);
    problem = problem_of(NULL, &rows);
    CHECK(solve(&problem, &dense, a, bias) == GMO_OK);
    CHECK(fabs(primal_of(a, bias) / dense.primal - 1) < 1e-9);
    problem = problem_of(NULL, &packed);
    CHECK(solve(&problem, &sparse, a, bias) == GMO_OK);
    CHECK(dense.primal == sparse.primal && fabs(dense.primal / whole.primal - 1) < 2e-6);
}

static void kernels_by_hand(void) {
    double one[] = {1, 2, -1}, two[] = {0.5, 0, 2, 1, 2, -1}, out[2];
    gmo_features a = {one, NULL, NULL, 1, 3}, b = {two, NULL, NULL, 2, 3};
    CHECK(gmo_kernel_block(&(gmo_kernel){GMO_KERNEL_LINEAR, 1, 1, 0}, &a, 0, 1, &b, 1, out) == GMO_OK);
    CHECK(out[0] == -1.5 && out[1] == 6);
    CHECK(gmo_kernel_block(&(gmo_kernel){GMO_KERNEL_POLY, 3, 2, 1}, &a, 0, 1, &b, 1, out) == GMO_OK);
    CHECK(out[0] == -8 && out[1] == 13 * 13 * 13);
    CHECK(gmo_kernel_block(&(gmo_kernel){GMO_KERNEL_RBF, 0, 0.5, 0}, &a, 0, 1, &b, 1, out) == GMO_OK);
    CHECK_NEAR(out[0], exp(-0.5 * (0.25 + 4 + 9)));
    CHECK(out[1] == 1);
    /* The rows (0, 3, 1, 0) and (2, 1, 0, 5), with a 0 that is stored, and an empty row. */
    double stored[] = {3, 1, 0, 2, 1, 5}, values[9];
    gmo_features sparse = {stored, (int64_t[]){0, 3, 6, 6}, (int32_t[]){1, 2, 3, 0, 1, 3}, 3, 4};
    CHECK(gmo_kernel_block(&(gmo_kernel){GMO_KERNEL_RBF, 0, 0.5, 0}, &sparse, 0, 3, &sparse, 1, values) == GMO_OK);
    CHECK(values[0] == 1 && values[4] == 1 && values[8] == 1 && values[1] == values[3]);
    CHECK_NEAR(values[1], exp(-0.5 * (4 + 4 + 1 + 25)));
    CHECK_NEAR(values[2], exp(-0.5 * 10));
    CHECK_NEAR(values[5], exp(-0.5 * 30));
    CHECK(gmo_kernel_block(&(gmo_kernel){GMO_KERNEL_LINEAR, 1, 1, 0}, &a, 0, 1, &sparse, 1, values) ==
          GMO_ERR_ARGUMENT);
}

/* Any block, any number of threads: the same bits. */
static void kernel_entries_do_not_depend_on_their_block(void) {
    static double whole[N * N], part[N * N];
    make_problem(1);
    gmo_features rows = {x, NULL, NULL, N, M};
    gmo_kernel kernel = {GMO_KERNEL_RBF, 0, 0.7, 0};
    CHECK(gmo_kernel_block(&kernel, &rows, 0, N, &rows, 1, whole) == GMO_OK);
    for (int64_t first = 0; first < N; first += 7) {
        int64_t last = first + 7 < N ? first + 7 : N;
        CHECK(gmo_kernel_block(&kernel, &rows, first, last, &rows, 3, part) == GMO_OK);
        CHECK(memcmp(part, whole + first * N, (size_t)((last - first) * N) * sizeof *part) == 0);
    }
}

static void no_pairs_no_epochs(void) {
    make_problem(1);
    memset(cost, 0, sizeof cost);
    double a[N * Q], bias[Q];
    gmo_ranksvm_state state;
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    CHECK(solve(&problem, &state, a, bias) == GMO_OK);
    CHECK(state.primal == 0 && state.dual == 0 && state.gap == 0 && state.n_epochs == 0);
}

static void impossible_margins_end(void) {
    make_problem(INFINITY);
    for (int32_t j = 0; j < N; j++)
        gram[N + j] = gram[j];
    for (int32_t j = 0; j < N; j++)
        gram[j * N + 1] = gram[j * N];
    for (int32_t k = 0; k < Q; k++)
        relevant[Q + k] = !relevant[k];
    double a[N * Q], bias[Q];
    gmo_ranksvm_state state;
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    problem.max_epochs = 100;
    CHECK(solve(&problem, &state, a, bias) == GMO_OK);
    CHECK(isinf(state.primal) && isinf(state.gap) && isfinite(state.dual) && state.n_epochs == 100);
}

static void bad_arguments_are_refused(void) {
    make_problem(1);
    gmo_ranksvm *machine;
    gmo_ranksvm_problem problem = problem_of(gram, NULL);
    problem.n_samples = 0;
    CHECK(gmo_ranksvm_create(&problem, &machine) == GMO_ERR_ARGUMENT && !machine);
    problem = problem_of(gram, NULL);
    problem.group_start = (int32_t[]){0, Q - 1};
    CHECK(gmo_ranksvm_create(&problem, &machine) == GMO_ERR_ARGUMENT && !machine);
    problem = problem_of(gram, NULL);
    problem.n_samples = INT64_MAX;
    CHECK(gmo_ranksvm_create(&problem, &machine) == GMO_ERR_SIZE && !machine);
    gmo_ranksvm_free(NULL);
}

/* Each allocation fails once; nothing leaks. */
static void failed_allocations_are_reported(void) {
    make_problem(1);
    gmo_features rows = {x, NULL, NULL, N, M};
    gmo_ranksvm_problem problems[] = {problem_of(gram, NULL), problem_of(NULL, NULL), problem_of(NULL, &rows)};
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++) {
        long failing = 0;
        gmo_status status;
        do {
            gmo_ranksvm *machine;
            allocations_left = failing++;
            status = gmo_ranksvm_create(problems + p, &machine);
            allocations_left = -1;
            CHECK(status == GMO_OK || (status == GMO_ERR_MEMORY && !machine));
            gmo_ranksvm_free(machine);
        } while (status != GMO_OK && failing < 100);
        CHECK(failing > 10 && status == GMO_OK);
    }
    gmo_kernel kernel = {GMO_KERNEL_RBF, 0, 1, 0};
    allocations_left = 0;
    CHECK(gmo_kernel_block(&kernel, &rows, 0, N, &rows, 1, gram) == GMO_ERR_MEMORY);
    allocations_left = -1;
}

int main(void) {
    objectives_are_those_of_the_solution();
    cached_rows_give_the_optimum();
    the_origin_does_not_matter();
    the_linear_kernel_keeps_its_vectors();
    kernels_by_hand();
    kernel_entries_do_not_depend_on_their_block();
    no_pairs_no_epochs();
    impossible_margins_end();
    bad_arguments_are_refused();
    failed_allocations_are_reported();
    return check_report();
}
