#include "scores.h"

/* Columns of the scores that are worked on at a time: they and a piece of the kernel's row stay in the first cache. */
enum { PIECE = 512 };

static gmo_status init_weights(gmo_scores *scores) {
    int64_t size;
    scores->width = (scores->q + 7) / 8 * 8;
    if (!gmo_size_mul(scores->x->n_features, scores->width, &size))
        return GMO_ERR_SIZE;
    scores->weights = gmo_alloc_zero(size, sizeof *scores->weights);
    return scores->weights ? GMO_OK : GMO_ERR_MEMORY;
}

static gmo_status init_values(gmo_scores *scores, const double *gram, int64_t cache_bytes) {
    int64_t size;
    /* Whole vectors, and no multiple of 4 KiB: the scores of a sample would share a few lines of the cache. */
    scores->stride = (scores->n + 7) / 8 * 8;
    if (scores->stride % 512 == 0)
        scores->stride += 8;
    if (!gmo_size_mul(scores->stride, scores->q, &size))
        return GMO_ERR_SIZE;
    GMO_TRY(gmo_rows_init(&scores->rows, gram, scores->n, cache_bytes));
    scores->values = gmo_alloc_zero(size, sizeof *scores->values);
    return scores->values ? GMO_OK : GMO_ERR_MEMORY;
}

gmo_status gmo_scores_init(gmo_scores *scores, int64_t n, int32_t q, const double *gram, const gmo_features *x,
                           int64_t cache_bytes) {
    *scores = (gmo_scores){.n = n, .q = q, .x = x};
    gmo_status status = x ? init_weights(scores) : init_values(scores, gram, cache_bytes);
    if (status != GMO_OK)
        gmo_scores_free(scores);
    return status;
}

void gmo_scores_free(gmo_scores *scores) {
    gmo_rows_free(&scores->rows);
    free(scores->values);
    free(scores->weights);
    *scores = (gmo_scores){0};
}

bool gmo_scores_ready(gmo_scores *scores, int64_t sample) {
    return scores->x || gmo_rows_get(&scores->rows, sample) != NULL;
}

GMO_CLONES
static void read_weights(const gmo_scores *scores, int64_t sample, double *s) {
    const gmo_features *x = scores->x;
    bool sparse = x->row_start != NULL;
    int64_t first = sparse ? x->row_start[sample] : sample * x->n_features,
            last = sparse ? x->row_start[sample + 1] : first + x->n_features;
    for (int32_t k = 0; k < scores->q; k++)
        s[k] = 0;
    for (int64_t entry = first; entry < last; entry++) {
        double value = x->values[entry];
        const double *w = scores->weights + (sparse ? x->columns[entry] : entry - first) * (int64_t)scores->width;
        for (int32_t k = 0; k < scores->q; k++)
            s[k] += value * w[k];
    }
}

static void add_weights(gmo_scores *scores, int64_t sample, const int32_t *label, const double *change, int32_t count) {
    const gmo_features *x = scores->x;
    bool sparse = x->row_start != NULL;
    int64_t first = sparse ? x->row_start[sample] : sample * x->n_features,
            last = sparse ? x->row_start[sample + 1] : first + x->n_features;
    for (int64_t entry = first; entry < last; entry++) {
        double half = 0.5 * x->values[entry];
        double *w = scores->weights + (sparse ? x->columns[entry] : entry - first) * (int64_t)scores->width;
        for (int32_t c = 0; c < count; c++)
            w[label[c]] += half * change[c];
    }
}

GMO_CLONES
static void add_row(gmo_scores *scores, const double *row, const int32_t *label, const double *change, int32_t count) {
    for (int64_t first = 0; first < scores->n; first += PIECE) {
        int64_t size = scores->n - first < PIECE ? scores->n - first : PIECE;
        const double *restrict k = row + first;
        for (int32_t c = 0; c < count; c++) {
            double *restrict s = scores->values + label[c] * scores->stride + first;
            double half = 0.5 * change[c];
            for (int64_t i = 0; i < size; i++)
                s[i] += half * k[i];
        }
    }
}

void gmo_scores_read(const gmo_scores *scores, int64_t sample, double *s) {
    if (scores->x) {
        read_weights(scores, sample, s);
        return;
    }
    for (int32_t k = 0; k < scores->q; k++)
        s[k] = scores->values[k * scores->stride + sample];
}

void gmo_scores_add(gmo_scores *scores, int64_t sample, const int32_t *label, const double *change, int32_t count) {
    if (scores->x)
        add_weights(scores, sample, label, change, count);
    else
        add_row(scores, gmo_rows_get(&scores->rows, sample), label, change, count);
}
