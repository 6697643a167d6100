#include "check.h"
#include "split.h"

enum { MAX_FEATURES = 64, MAX_BINS = 256 };

/* A node of n rows: the bins (n, m) of its rows, n_bins[f] bins a feature (missing values have bin n_bins[f]), and their
 * gradients (n, d); the Hessian is the row count, or the array given. */
typedef struct {
    int64_t n, m;
    int32_t d;
    const uint8_t *bins;
    const int32_t *n_bins;
    const uint8_t *has_missing;
    const double *gradient, *hessian;
} node;

typedef struct {
    gmo_binned data;
    gmo_fixed fixed;
    gmo_hist_shape shape;
    gmo_splitter splitter;
    int32_t *hist, *total, *rows;
} searched;

static void prepare(const node *t, const gmo_params *params, int64_t *edge_start, searched *s) {
    for (int64_t f = 0; f < t->m; f++)
        edge_start[f + 1] = edge_start[f] + t->n_bins[f] - 1;
    s->data = (gmo_binned){t->bins, edge_start, t->n, t->m};
    CHECK(gmo_fixed_init(&s->fixed, t->n, t->d, t->hessian != NULL) == GMO_OK);
    gmo_derivatives gradient = {t->gradient, NULL, t->d}, hessian = {t->hessian, NULL, t->d};
    CHECK(gmo_fixed_round(&s->fixed, &gradient, &hessian, 1) == GMO_OK);
    CHECK(gmo_hist_shape_init(&s->shape, &s->data, t->has_missing, s->fixed.stride, params->n_threads) == GMO_OK);
    CHECK(gmo_splitter_init(&s->splitter, params, &s->shape, &s->fixed) == GMO_OK);
    gmo_splitter_start_tree(&s->splitter);
    s->hist = gmo_alloc(s->shape.size + GMO_LANES, sizeof *s->hist);
    s->total = gmo_alloc_zero(gmo_total_size(&s->shape), sizeof *s->total);
    s->rows = gmo_alloc(t->n, sizeof *s->rows);
    for (int64_t i = 0; i < t->n; i++)
        s->rows[i] = (int32_t)i;
    gmo_fixed_total(&s->fixed, NULL, t->n, s->total);
    for (int64_t b = 0; b < s->shape.n_blocks; b++)
        gmo_hist_build(&s->shape, &s->fixed, NULL, t->n, s->total, &s->shape.blocks[b],
                       s->hist + s->shape.start[s->shape.blocks[b].first]);
}

/* The best split; blocks are taken from the last to the first, since their order must not matter. */
static gmo_split search(searched *s, int64_t n, bool by_rows) {
    gmo_split best = {.feature = -1};
    if (by_rows)
        gmo_split_prepare_small(&s->splitter, 1, s->rows, n, s->total);
    else
        gmo_split_prepare(&s->splitter, 1, s->total);
    for (int64_t b = s->shape.n_blocks - 1; b >= 0; b--)
        if (by_rows)
            gmo_split_scan_small(&s->splitter, &s->splitter.nodes[1], &s->shape.blocks[b], &best);
        else
            gmo_split_scan(&s->splitter, &s->splitter.nodes[1], s->hist + s->shape.start[s->shape.blocks[b].first],
                           &s->shape.blocks[b], &best);
    gmo_split_finish(&s->splitter, s->total, &best);
    return best;
}

static void check_same(gmo_split a, gmo_split b) {
    CHECK(a.feature == b.feature && a.value == b.value);
    CHECK(a.feature < 0 ||
          (a.gain == b.gain && a.n_left == b.n_left && a.bin == b.bin && a.missing_left == b.missing_left));
}

/* The best split of a node, found in all ways there are: from the histogram, and from the rows where they are few
 * enough; with candidates estimated first, and with all of them scored exactly. */
static gmo_split find(const node *t, const gmo_params *params) {
    int64_t edge_start[MAX_FEATURES + 1] = {0};
    searched s = {0};
    prepare(t, params, edge_start, &s);
    gmo_split split = search(&s, t->n, false);
    bool by_rows = t->n <= s.splitter.small_rows;
    if (by_rows)
        check_same(split, search(&s, t->n, true));
    s.splitter.estimates = false;
    check_same(split, search(&s, t->n, false));
    if (by_rows)
        check_same(split, search(&s, t->n, true));
    free(s.hist);
    free(s.total);
    free(s.rows);
    gmo_splitter_free(&s.splitter);
    gmo_hist_shape_free(&s.shape);
    gmo_fixed_free(&s.fixed);
    return split;
}

static gmo_params plain(void) { return (gmo_params){.restricted = 1, .min_samples_leaf = 1, .n_threads = 1}; }

static const uint8_t none_missing[MAX_FEATURES];

/* Four rows in four bins, gradients -1 -1 1 1 in the first output, 0 in the second. */
static void four_rows(void) {
    const uint8_t bins[] = {0, 1, 2, 3};
    const int32_t n_bins[] = {4};
    const double gradient[] = {-1, 0, -1, 0, 1, 0, 1, 0};
    node t = {4, 1, 2, bins, n_bins, none_missing, gradient, NULL};
    gmo_params p = plain();
    gmo_split s = find(&t, &p);
    CHECK(s.feature == 0 && s.bin == 1 && s.n_left == 2);
    CHECK_NEAR(s.value, 4); /* (-2)^2 / 2 + 2^2 / 2 */
    CHECK_NEAR(s.gain, 1);  /* half of 4 - 0, over two outputs */

    p.reg_lambda = 1;
    s = find(&t, &p);
    CHECK_NEAR(s.value, 8.0 / 3); /* 4 / 3 on each side */
    p.reg_alpha = 1;
    s = find(&t, &p);
    CHECK_NEAR(s.value, 2.0 / 3); /* sums shrink from 2 to 1 */

    p = plain();
    const double hessian[] = {1, 1, 1, 1, 2, 1, 2, 1};
    t.hessian = hessian;
    s = find(&t, &p);
    CHECK(s.bin == 1);
    CHECK_NEAR(s.value, 3); /* 4 / 2 + 4 / 4 */
}

static void sides_need_their_rows(void) {
    const uint8_t bins[] = {0, 1, 2, 3};
    const int32_t n_bins[] = {4};
    const double gradient[] = {-3, 1, 1, 1};
    node t = {4, 1, 1, bins, n_bins, none_missing, gradient, NULL};
    gmo_params p = plain();
    CHECK(find(&t, &p).bin == 0);
    p.min_samples_leaf = 2;
    CHECK(find(&t, &p).bin == 1);
    p.min_samples_leaf = 3;
    CHECK(find(&t, &p).feature == -1);
    /* The released program asks for no rows here: it drops such children later. */
    p.growth = GMO_GROWTH_RELEASED;
    CHECK(find(&t, &p).bin == 0);
}

static void nothing_to_split(void) {
    const uint8_t bins[] = {0, 0, 0};
    const int32_t one_bin[] = {1};
    const double gradient[] = {-1, 1, 5}, zeros[] = {0, 0, 0};
    gmo_params p = plain();
    node constant = {3, 1, 1, bins, one_bin, none_missing, gradient, NULL};
    CHECK(find(&constant, &p).feature == -1);
    const uint8_t spread[] = {0, 1, 2};
    const int32_t three_bins[] = {3};
    node flat = {3, 1, 1, spread, three_bins, none_missing, zeros, NULL};
    CHECK(find(&flat, &p).feature == -1);
    node one_row = {1, 1, 1, spread, three_bins, none_missing, gradient, NULL};
    CHECK(find(&one_row, &p).feature == -1);
}

/* Two rows, three outputs, gradients (2, 0, 1.5) and (0, 2, 1.5): scores (4, 0, 2.25) and (0, 4, 2.25). */
static void sparse_splits(void) {
    const uint8_t bins[] = {0, 1};
    const int32_t n_bins[] = {2};
    const double gradient[] = {2, 0, 1.5, 0, 2, 1.5};
    node t = {2, 1, 3, bins, n_bins, none_missing, gradient, NULL};
    gmo_params p = plain();
    p.top_k = 1;
    gmo_split s = find(&t, &p);
    CHECK_NEAR(s.value, 4.5); /* the third output serves both sides best [eq. 22] */
    CHECK_NEAR(s.gain, 0);    /* the parent's best output has 3^2 / 2 */
    p.restricted = 0;
    s = find(&t, &p);
    CHECK_NEAR(s.value, 8); /* each side has its own [eq. 21] */
    CHECK_NEAR(s.gain, 1.75);
    p.top_k = 2;
    s = find(&t, &p);
    CHECK_NEAR(s.value, 12.5);
    CHECK_NEAR(s.gain, 0.5 * (12.5 - 6.5) / 2);
    p.top_k = 3; /* all outputs: the full split */
    s = find(&t, &p);
    CHECK_NEAR(s.value, 12.5);
    CHECK_NEAR(s.gain, 0.5 * (12.5 - 8.5) / 3);
}

/* Rows in bins 0 and 1 and one without a value. */
static void missing_values(void) {
    const uint8_t bins[] = {0, 1, 2}, missing[] = {1};
    const int32_t n_bins[] = {2};
    double gradient[] = {-1, 1, -1};
    node t = {3, 1, 1, bins, n_bins, missing, gradient, NULL};
    gmo_params p = plain();
    gmo_split s = find(&t, &p);
    CHECK(s.bin == 0 && s.missing_left && s.n_left == 2);
    CHECK_NEAR(s.value, 3); /* 4 / 2 + 1 */
    gradient[2] = 1;
    s = find(&t, &p);
    CHECK(s.bin == 0 && !s.missing_left && s.n_left == 1);
    gradient[0] = 1;
    gradient[2] = -2; /* best alone: everything else goes left */
    s = find(&t, &p);
    CHECK(s.bin == 1 && !s.missing_left && s.n_left == 2);
    CHECK_NEAR(s.value, 6);
}

/* Where training shows no missing value, a later one goes to the side of more rows, on a tie to the left. */
static void later_missing_values(void) {
    const uint8_t bins[] = {0, 1, 1, 1};
    const int32_t n_bins[] = {2};
    double gradient[] = {-1, 1, 1, 1};
    node t = {4, 1, 1, bins, n_bins, none_missing, gradient, NULL};
    gmo_params p = plain();
    CHECK(find(&t, &p).missing_left == 0);
    t.n = 2;
    CHECK(find(&t, &p).missing_left == 1);
    const uint8_t mostly_left[] = {0, 0, 0, 1};
    t.n = 4;
    t.bins = mostly_left;
    CHECK(find(&t, &p).missing_left == 1);
}

/* Equal values: the lowest feature, then the lowest bin, for any number of threads. */
static void ties(void) {
    enum { N = 256, M = 64, D = 9 };
    static uint8_t bins[N * M];
    static double gradient[N * D];
    int32_t n_bins[M];
    for (int f = 0; f < M; f++)
        n_bins[f] = f < 5 ? 1 : N - 1; /* features 5 to 63 are all alike */
    for (int i = 0; i < N; i++) {
        for (int f = 5; f < M; f++)
            bins[i * M + f] = (uint8_t)(i < N - 1 ? i : N - 2);
        for (int j = 0; j < D; j++)
            gradient[i * D + j] = i < 100 ? -1 : 1;
    }
    node t = {N, M, D, bins, n_bins, none_missing, gradient, NULL};
    gmo_params p = plain();
    gmo_split first = find(&t, &p);
    CHECK(first.feature == 5 && first.bin == 99);
    for (p.n_threads = 2; p.n_threads <= 3; p.n_threads++) {
        gmo_split s = find(&t, &p);
        CHECK(s.feature == first.feature && s.bin == first.bin && s.value == first.value && s.gain == first.gain);
    }
    const uint8_t four[] = {0, 1, 2, 3};
    const int32_t four_bins[] = {4};
    const double symmetric[] = {-1, 1, 1, -1}; /* bins 0 and 2 are mirror images */
    node mirror = {4, 1, 1, four, four_bins, none_missing, symmetric, NULL};
    p = plain();
    CHECK(find(&mirror, &p).bin == 0);
}

/* Random nodes of all kinds: every way finds the same (checked in find). Gradients of the outputs differ in scale by up to
 * 2^20; values of few digits give ties. */
static void all_ways_agree(void) {
    enum { N = 96, M = 12, MOST_D = 70 };
    static const int32_t widths[] = {1, 2, 7, 8, 9, 33, 70};
    static uint8_t bins[N * M];
    static double gradient[N * MOST_D], hessian[N * MOST_D];
    int n_found = 0, n_left_out = 0;
    for (int round = 0; round < 400; round++) {
        int32_t n_bins[M], d = widths[random_below(7)], coarse = (int32_t)random_below(2);
        uint8_t has_missing[M];
        for (int f = 0; f < M; f++) {
            n_bins[f] = 1 + (int32_t)random_below(20);
            has_missing[f] = (uint8_t)random_below(2);
        }
        for (int i = 0; i < N * M; i++)
            bins[i] = (uint8_t)random_below((uint32_t)(n_bins[i % M] + has_missing[i % M]));
        int32_t spread = (int32_t)random_below(21);
        for (int i = 0; i < N * d; i++) {
            double value = coarse ? (double)random_below(5) - 2 : (double)random_below(1000000) / 1e6 - 0.4;
            gradient[i] = ldexp(value, -(i % d) * spread / d);
            hessian[i] = coarse ? (double)random_below(3) : (double)random_below(1000000) / 4e6;
        }
        bool has_hessian = random_below(2);
        /* Of classes most have no row here: their derivatives vary little. */
        if (d > 30 && random_below(2)) {
            has_hessian = true;
            n_left_out++;
            for (int i = 0; i < N * d; i++) {
                double p = 0.01 + 0.002 * random_below(1000) / 1000.0;
                bool own = i % d == (i / d * 7) % 5;
                gradient[i] = own ? p - 1 : p;
                hessian[i] = p * (1 - p);
            }
        }
        node t = {N, M, d, bins, n_bins, has_missing, gradient, has_hessian ? hessian : NULL};
        gmo_params p = plain();
        p.min_samples_leaf = 1 + random_below(20);
        p.reg_lambda = random_below(4) ? ldexp(1, 60 * (int)random_below(8) - (int)random_below(90)) : 0;
        p.reg_alpha = random_below(8) ? 0 : 0.5;
        p.top_k = random_below(2) ? 1 + (int32_t)random_below((uint32_t)d) : 0;
        p.restricted = (int32_t)random_below(2);
        n_found += find(&t, &p).feature >= 0;
    }
    CHECK(n_found > 300 && n_left_out > 30);
}

static void helpers(void) {
    CHECK(gmo_soft(3, 1) == 2 && gmo_soft(-3, 1) == -2 && gmo_soft(0.5, 1) == 0 && gmo_soft(-0.5, 0) == -0.5);
}

int main(void) {
    four_rows();
    sides_need_their_rows();
    nothing_to_split();
    sparse_splits();
    missing_values();
    later_missing_values();
    ties();
    all_ways_agree();
    helpers();
    return check_report();
}
