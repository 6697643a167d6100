#include "check.h"
#include "hist.h"

enum { N = 700, M = 8, MOST_D = 300 };

/* Binned rows of M features. Most rows of the features from FIRST_RARE on are in one bin, so that a block of them lists
 * the others; the features before are spread evenly. */
enum { FIRST_RARE = 4 };
static const int32_t n_bins[M] = {9, 30, 17, 255, 3, 1, 100, 5};
static const uint8_t has_missing[M] = {0, 0, 1, 1, 0, 0, 1, 1};
static int64_t edge_start[M + 1];
static uint8_t bins[N * M];
static const gmo_binned data = {bins, edge_start, N, M};
static double gradient[N * MOST_D], hessian[N * MOST_D];

static void make_rows(void) {
    for (int f = 0; f < M; f++)
        edge_start[f + 1] = edge_start[f] + n_bins[f] - 1;
    for (int i = 0; i < N * M; i++) {
        int f = i % M, usual = f == M - 1 ? n_bins[f] : n_bins[f] / 2; /* of the last feature most values are missing */
        bool rare = f < FIRST_RARE || random_below(5) == 0;
        bins[i] = (uint8_t)(rare ? (int)random_below((uint32_t)(n_bins[f] + has_missing[f])) : usual);
    }
}

/* Integer derivatives, so that double sums are exact. */
static void make_derivatives(void) {
    for (int i = 0; i < N * MOST_D; i++) {
        gradient[i] = (double)random_below(2001) - 1000;
        hessian[i] = (double)random_below(50);
    }
}

static int64_t make_subset(int32_t *rows) {
    int64_t n = 0;
    for (int32_t i = 0; i < N; i++)
        if (random_below(3) == 0)
            rows[n++] = i;
    return n;
}

typedef struct {
    gmo_fixed fixed;
    gmo_hist_shape shape;
} problem;

static problem make_problem(int32_t d, bool has_hessian, int32_t n_threads) {
    problem p = {0};
    CHECK(gmo_fixed_init(&p.fixed, N, d, has_hessian) == GMO_OK);
    gmo_derivatives first = {gradient, NULL, d}, second = {hessian, NULL, d};
    CHECK(gmo_fixed_round(&p.fixed, &first, &second, 1) == GMO_OK);
    CHECK(gmo_hist_shape_init(&p.shape, &data, has_missing, p.fixed.stride, n_threads) == GMO_OK);
    return p;
}

static void free_problem(problem *p) {
    gmo_hist_shape_free(&p->shape);
    gmo_fixed_free(&p->fixed);
}

static int32_t *build(const problem *p, const int32_t *rows, int64_t n_rows) {
    int32_t *hist = gmo_alloc_zero(p->shape.size, sizeof *hist), *total = gmo_alloc(p->fixed.stride, sizeof *total);
    gmo_fixed_total(&p->fixed, rows, n_rows, total);
    for (int64_t b = 0; b < p->shape.n_blocks; b++)
        gmo_hist_build(&p->shape, &p->fixed, rows, n_rows, total, &p->shape.blocks[b],
                       hist + p->shape.start[p->shape.blocks[b].first]);
    free(total);
    return hist;
}

/* Compares a cell with sums taken the slow way. */
static void check_cell(const problem *p, const int32_t *hist, int f, int bin, const int32_t *rows, int64_t n_rows) {
    const gmo_fixed *fixed = &p->fixed;
    const int32_t *cell = hist + p->shape.start[f] + bin * p->shape.stride;
    int32_t d = fixed->d;
    static double g[MOST_D], h[MOST_D];
    memset(g, 0, sizeof g);
    memset(h, 0, sizeof h);
    int64_t count = 0;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t row = rows ? rows[i] : i;
        if (bins[row * M + f] != bin)
            continue;
        count++;
        for (int j = 0; j < d; j++) {
            g[j] += gradient[row * d + j];
            h[j] += hessian[row * d + j];
        }
    }
    CHECK(cell[fixed->count_lane] == count);
    int wrong = 0;
    for (int j = 0; j < d; j++) {
        wrong += cell[j] * fixed->gradient_unit[j] != g[j];
        if (fixed->has_hessian)
            wrong += cell[d + j] * fixed->hessian_unit[j] != h[j];
    }
    CHECK(wrong == 0);
}

/* Rows of every width: registers hold the narrow ones, wide ones are added in chunks of 32 and bands of 256 lanes. */
static void sums_equal_direct_sums(void) {
    static const int32_t widths[] = {1, 3, 7, 10, 15, 20, 24, 31, 40, 60, 150, 300};
    static int32_t rows[N];
    for (int w = 0; w < 12; w++)
        for (int has_hessian = 0; has_hessian < 2; has_hessian++) {
            problem p = make_problem(widths[w], has_hessian, 3);
            int64_t n_listed = 0, n_rows = make_subset(rows);
            for (int64_t b = 0; b < p.shape.n_blocks; b++)
                n_listed += p.shape.blocks[b].entry != NULL;
            CHECK(n_listed > 0 && n_listed < p.shape.n_blocks);
            for (int all = 0; all < 2; all++) {
                int32_t *hist = build(&p, all ? NULL : rows, all ? N : n_rows);
                for (int f = 0; f < M; f++)
                    for (int bin = 0; bin < n_bins[f] + has_missing[f]; bin++)
                        check_cell(&p, hist, f, bin, all ? NULL : rows, all ? N : n_rows);
                free(hist);
            }
            free_problem(&p);
        }
}

/* Parent - child equals the sibling's own histogram, and any division into blocks gives the same integers. */
static void subtraction_equals_building(void) {
    static int32_t rows[N], others[N];
    int64_t n_rows = make_subset(rows), n_others = 0;
    for (int32_t i = 0, at = 0; i < N; i++) {
        if (at < n_rows && rows[at] == i)
            at++;
        else
            others[n_others++] = i;
    }
    static int32_t first[1 << 16];
    for (int32_t threads = 1; threads <= 3; threads++) {
        problem p = make_problem(5, true, threads);
        int32_t *parent = build(&p, NULL, N), *child = build(&p, rows, n_rows), *own = build(&p, others, n_others);
        int64_t at = 0;
        for (int64_t b = 0; b < p.shape.n_blocks; b++) {
            int64_t start = p.shape.start[p.shape.blocks[b].first];
            gmo_hist_subtract(&p.shape, &p.shape.blocks[b], parent + start, child + start, parent + start);
        }
        for (int64_t f = 0; f < M; f++) {
            int64_t size = (n_bins[f] + has_missing[f]) * (int64_t)p.shape.stride;
            CHECK(memcmp(parent + p.shape.start[f], own + p.shape.start[f], (size_t)size * 4) == 0);
            if (threads == 1)
                memcpy(first + at, own + p.shape.start[f], (size_t)size * 4);
            CHECK(memcmp(first + at, own + p.shape.start[f], (size_t)size * 4) == 0);
            at += size;
        }
        free(parent);
        free(child);
        free(own);
        free_problem(&p);
    }
}

/* Entries outside the most frequent bins, counted one by one. */
static void entries_are_counted(void) {
    static int32_t rows[N];
    problem p = make_problem(1, false, 1);
    int64_t n_rows = make_subset(rows), n_entries = 0;
    for (int f = 0; f < M; f++) {
        int64_t counts[256] = {0}, most = 0;
        for (int i = 0; i < N; i++)
            counts[bins[i * M + f]]++;
        for (int bin = 0; bin < 256; bin++)
            most = counts[bin] > most ? counts[bin] : most;
        CHECK(counts[p.shape.frequent[f]] == most && p.shape.n_other[f] == N - most);
        for (int64_t i = 0; i < n_rows; i++)
            n_entries += bins[rows[i] * M + f] != p.shape.frequent[f];
    }
    CHECK(gmo_hist_entries(&p.shape, rows, n_rows) == n_entries);
    free_problem(&p);
}

int main(void) {
    make_rows();
    make_derivatives();
    sums_equal_direct_sums();
    subtraction_equals_building();
    entries_are_counted();
    return check_report();
}
