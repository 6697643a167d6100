#include "exact.h"
#include "cholesky.h"

#include <math.h>
#include <string.h>

/* Bytes of histograms that a thread holds, unless one feature alone needs more; about a quarter of a second-level cache. */
#define BLOCK_BYTES ((int64_t)256 << 10)
/* Candidates that are scored together: two sides each. */
#define MOST_CANDIDATES (GMO_SYSTEMS / 2)

/* Working memory of a thread. Sums are laid out as gradients, weights, count. */
typedef struct {
    double *cells; /* (block_features, most_cells, stride) */
    double *left;  /* (stride,) */
    double *row;   /* (stride,) */
    double *p;     /* (d,) */
    gmo_systems systems;
    gmo_split candidates[MOST_CANDIDATES]; /* lanes 2 i and 2 i + 1 hold the sides of number i */
    int32_t n_candidates;
} exact_scratch;

static char *lay(char *base, int64_t *at, int64_t bytes) {
    char *array = base ? base + *at : NULL;
    *at += (bytes + 63) / 64 * 64;
    return array;
}

/* Lays a thread's memory out from base on (NULL: only counts), w itself first; returns the bytes it takes. */
static int64_t lay_out(const gmo_exact *e, char *base, exact_scratch *w) {
    int64_t at = 0, vector = sizeof(gmo_double8);
    lay(base, &at, sizeof *w);
    w->cells = (double *)lay(base, &at, e->block_features * e->most_cells * e->stride * 8);
    w->left = (double *)lay(base, &at, e->stride * 8);
    w->row = (double *)lay(base, &at, e->stride * 8);
    w->p = (double *)lay(base, &at, e->d * 8);
    w->systems.d = e->d;
    w->systems.g = (gmo_double8 *)lay(base, &at, e->d * vector);
    w->systems.weight = (gmo_double8 *)lay(base, &at, (e->n_sums - e->d) * vector); /* follows g: see put_side */
    w->systems.excess = (gmo_double8 *)lay(base, &at, e->d * vector);
    w->systems.inverse = (gmo_double8 *)lay(base, &at, e->d * vector);
    return at;
}

static exact_scratch *scratch_of(const gmo_exact *e) {
    return (exact_scratch *)(e->scratch + gmo_thread_number() * e->scratch_bytes);
}

static int64_t cells_of(const gmo_exact *e, int64_t feature) {
    return e->shape->cell_start[feature + 1] - e->shape->cell_start[feature];
}

/* Features a block: as many as fit, but few enough to give every thread some blocks. */
static int64_t block_features(const gmo_exact *e) {
    int64_t fit = BLOCK_BYTES / (e->most_cells * e->stride * 8),
            share = e->shape->data->n_features / (4 * e->n_threads);
    int64_t size = fit < share ? fit : share;
    return size < 1 ? 1 : size;
}

gmo_status gmo_exact_init(gmo_exact *e, const gmo_params *params, const gmo_hist_shape *shape, const double *gradient,
                          const int32_t *labels, int32_t d) {
    int64_t n_sums = d + gmo_first_pair(d), size;
    int exponent;
    frexp((double)shape->data->n_rows, &exponent);
    *e = (gmo_exact){
        .d = d,
        .n_threads = params->n_threads,
        .shape = shape,
        .gradient = gradient,
        .labels = labels,
        .reg_lambda = params->reg_lambda,
        .learning_rate = params->learning_rate,
        .min_side = params->min_samples_leaf,
        .n_sums = n_sums,
        .stride = (n_sums + 1 + 7) / 8 * 8,
        /* No value of a row exceeds 1: sums stay below 2^52, where every integer is a double. */
        .scale = ldexp(1, 52 - exponent < 50 ? 52 - exponent : 50),
    };
    for (int64_t f = 0; f < shape->data->n_features; f++)
        e->most_cells = cells_of(e, f) > e->most_cells ? cells_of(e, f) : e->most_cells;
    e->block_features = block_features(e);
    exact_scratch w;
    e->scratch_bytes = lay_out(e, NULL, &w);
    if (!gmo_size_mul(e->scratch_bytes, e->n_threads, &size))
        return GMO_ERR_SIZE;
    e->total = gmo_alloc(e->stride, sizeof *e->total);
    e->scratch = gmo_alloc_zero(size, 1);
    if (!e->total || !e->scratch)
        return GMO_ERR_MEMORY;
    for (int32_t thread = 0; thread < e->n_threads; thread++) {
        char *own = e->scratch + thread * e->scratch_bytes;
        lay_out(e, own, (exact_scratch *)own);
    }
    return GMO_OK;
}

void gmo_exact_free(gmo_exact *e) {
    free(e->total);
    free(e->scratch);
    memset(e, 0, sizeof *e);
}

GMO_INLINE void add_sums(double *sums, const double *row, int64_t stride) {
    for (int64_t i = 0; i < stride; i += 8)
        *(gmo_double8 *)(sums + i) += *(const gmo_double8 *)(row + i);
}

/* A row's gradient, weights and count into w->row. */
GMO_INLINE void expand(const gmo_exact *e, int64_t row, exact_scratch *w) {
    const double *gradient = e->gradient + row * e->d;
    memcpy(w->row, gradient, (size_t)e->d * sizeof *gradient);
    memcpy(w->p, gradient, (size_t)e->d * sizeof *gradient);
    w->p[e->labels[row]] += 1;
    double *weight = w->row + e->d;
    for (int32_t j = 0; j < e->d; weight += j, j++)
        for (int32_t k = 0; k < j; k++)
            weight[k] = w->p[j] * w->p[k];
    w->row[e->n_sums] = 1;
}

/* Turns w->row into integers. */
GMO_INLINE void round_row(const gmo_exact *e, exact_scratch *w) {
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, of either sign */
    for (int64_t i = 0; i < e->n_sums; i++)
        w->row[i] = (w->row[i] * e->scale + magic) - magic;
}

GMO_CLONES
static void sum_rows(const gmo_exact *e, const int32_t *rows, int64_t n_rows, bool in_integers, exact_scratch *w,
                     double *sums) {
    memset(sums, 0, (size_t)e->stride * sizeof *sums);
    for (int64_t i = 0; i < n_rows; i++) {
        expand(e, rows[i], w);
        if (in_integers)
            round_row(e, w);
        add_sums(sums, w->row, e->stride);
    }
}

/* The cell of the most frequent bin is what the others leave of the total. */
GMO_INLINE void fill_frequent(const gmo_exact *e, int64_t feature, double *cells) {
    double *frequent = cells + e->shape->frequent[feature] * e->stride;
    memcpy(frequent, e->total, (size_t)e->stride * sizeof *frequent);
    for (int64_t bin = 0; bin < cells_of(e, feature); bin++)
        for (int64_t i = 0; bin != e->shape->frequent[feature] && i < e->stride; i++)
            frequent[i] -= cells[bin * e->stride + i];
}

/* Histograms of features first .. last into w->cells. */
GMO_CLONES
static void build(const gmo_exact *e, const int32_t *rows, int64_t n_rows, int64_t first, int64_t last,
                  exact_scratch *w) {
    const gmo_binned *data = e->shape->data;
    int64_t feature_size = e->most_cells * e->stride;
    for (int64_t f = first; f < last; f++)
        memset(w->cells + (f - first) * feature_size, 0, (size_t)(cells_of(e, f) * e->stride) * sizeof *w->cells);
    for (int64_t i = 0; i < n_rows; i++) {
        const uint8_t *bins = data->bins + rows[i] * data->n_features;
        expand(e, rows[i], w);
        round_row(e, w);
        for (int64_t f = first; f < last; f++)
            if (bins[f] != e->shape->frequent[f])
                add_sums(w->cells + (f - first) * feature_size + bins[f] * e->stride, w->row, e->stride);
    }
    for (int64_t f = first; f < last; f++)
        fill_frequent(e, f, w->cells + (f - first) * feature_size);
}

/* Makes sums (n_sums,) times unit, right-hand side and weights, the system of a lane. */
GMO_INLINE void put_side(const gmo_exact *e, exact_scratch *w, int32_t lane, const double *sums, double unit) {
    double *g = (double *)w->systems.g + lane;
    for (int64_t i = 0; i < e->n_sums; i++)
        g[i * GMO_SYSTEMS] = sums[i] * unit;
}

/* Eliminates the systems of the first n lanes; the others are cleared. */
GMO_INLINE void eliminate(const gmo_exact *e, int32_t n, exact_scratch *w, gmo_double8 *score) {
    for (int64_t i = 0; n < GMO_SYSTEMS && i < e->n_sums; i++)
        for (int32_t lane = n; lane < GMO_SYSTEMS; lane++)
            w->systems.g[i][lane] = 0;
    for (int32_t j = 0; j < e->d; j++)
        w->systems.excess[j] = e->reg_lambda + (gmo_double8){0};
    gmo_systems_eliminate(&w->systems, score);
}

/* Scores the candidates that wait. */
static void flush(const gmo_exact *e, exact_scratch *w, gmo_split *best) {
    gmo_double8 score;
    if (w->n_candidates == 0)
        return;
    eliminate(e, 2 * w->n_candidates, w, &score);
    for (int32_t c = 0; c < w->n_candidates; c++) {
        w->candidates[c].value = score[2 * c] + score[2 * c + 1];
        if (w->candidates[c].value > best->value)
            *best = w->candidates[c];
    }
    w->n_candidates = 0;
}

/* Lets a candidate wait for its turn if either side has rows enough; w->left: the sums of its left side. */
static void push(const gmo_exact *e, gmo_split candidate, exact_scratch *w, gmo_split *best) {
    int64_t n_total = (int64_t)e->total[e->n_sums];
    candidate.n_left = (int64_t)w->left[e->n_sums];
    if (candidate.n_left < e->min_side || n_total - candidate.n_left < e->min_side)
        return;
    int32_t lane = 2 * w->n_candidates;
    put_side(e, w, lane, w->left, 1 / e->scale);
    for (int64_t i = 0; i < e->n_sums; i++)
        w->row[i] = e->total[i] - w->left[i];
    put_side(e, w, lane + 1, w->row, 1 / e->scale);
    w->candidates[w->n_candidates++] = candidate;
    if (w->n_candidates == MOST_CANDIDATES)
        flush(e, w, best);
}

/* Candidates of a feature, bins in order; missing values right, then left, if the node has any. */
static void scan(const gmo_exact *e, int64_t feature, const double *cells, exact_scratch *w, gmo_split *best) {
    int32_t n_bins = e->shape->n_bins[feature];
    const double *missing = cells + n_bins * e->stride;
    bool seen = e->shape->has_missing[feature] && missing[e->n_sums] > 0;
    memset(w->left, 0, (size_t)e->stride * sizeof *w->left);
    for (int32_t bin = 0; bin < n_bins - 1 + seen; bin++) {
        const double *cell = cells + bin * e->stride;
        if (cell[e->n_sums] == 0 && bin > 0)
            continue; /* the candidates of the bin before, once more */
        add_sums(w->left, cell, e->stride);
        gmo_split candidate = {.feature = feature, .bin = bin, .missing_seen = seen};
        push(e, candidate, w, best);
        if (!seen || bin == n_bins - 1)
            continue;
        candidate.missing_left = 1;
        add_sums(w->left, missing, e->stride);
        push(e, candidate, w, best);
        for (int64_t i = 0; i < e->stride; i++)
            w->left[i] -= missing[i];
    }
}

/* Builds and searches the features of a block. */
static gmo_split search_block(const gmo_exact *e, const int32_t *rows, int64_t n_rows, int64_t first,
                              gmo_exact_times *times) {
    exact_scratch *w = scratch_of(e);
    gmo_split best = {.feature = -1};
    int64_t m = e->shape->data->n_features, last = first + e->block_features < m ? first + e->block_features : m;
    double start = gmo_seconds();
    build(e, rows, n_rows, first, last, w);
    double built = gmo_seconds();
    for (int64_t f = first; f < last; f++)
        scan(e, f, w->cells + (f - first) * e->most_cells * e->stride, w, &best);
    flush(e, w, &best);
    times->histogram += built - start;
    times->split += gmo_seconds() - built;
    return best;
}

/* Completes the best split with its gain and the way of missing values. */
static void finish(const gmo_exact *e, gmo_split *best) {
    if (best->feature < 0)
        return;
    exact_scratch *w = scratch_of(e);
    gmo_double8 score;
    put_side(e, w, 0, e->total, 1 / e->scale);
    eliminate(e, 1, w, &score);
    best->gain = 0.5 * (best->value - score[0]) / e->d;
    /* A later missing value goes where more rows went, if training showed none at this node. */
    if (!best->missing_seen)
        best->missing_left = 2 * best->n_left >= (int64_t)e->total[e->n_sums];
}

gmo_split gmo_exact_search(const gmo_exact *e, const int32_t *rows, int64_t n_rows, gmo_exact_times *times) {
    int64_t m = e->shape->data->n_features, work = n_rows * m + e->shape->cell_start[m] * (e->n_sums * e->d / 4);
    int32_t n_threads = e->n_threads;
    gmo_split best = {.feature = -1};
    double start = gmo_seconds();
    sum_rows(e, rows, n_rows, true, scratch_of(e), e->total);
    times->histogram += gmo_seconds() - start;
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, work))
    {
        gmo_split own = {.feature = -1};
        gmo_exact_times own_times = {0};
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t first = 0; first < m; first += e->block_features)
            own = gmo_split_better(own, search_block(e, rows, n_rows, first, &own_times));
#pragma omp critical(gmo_exact_merge)
        {
            best = gmo_split_better(best, own);
            times->histogram += own_times.histogram / gmo_thread_count();
            times->split += own_times.split / gmo_thread_count();
        }
    }
    finish(e, &best);
    return best;
}

void gmo_exact_leaf(const gmo_exact *e, const int32_t *rows, int64_t n_rows, double *value) {
    exact_scratch *w = scratch_of(e);
    gmo_double8 score;
    sum_rows(e, rows, n_rows, false, w, w->left);
    put_side(e, w, 0, w->left, 1);
    eliminate(e, 1, w, &score);
    gmo_systems_solve(&w->systems);
    /* The solution sums to 0, as the gradient does; without penalty it is made to, which is the limit of small ones. */
    double mean = 0;
    for (int32_t j = 0; j < e->d; j++)
        mean += w->systems.g[j][0] / e->d;
    for (int32_t j = 0; j < e->d; j++)
        value[j] = -e->learning_rate * (w->systems.g[j][0] - mean);
}
