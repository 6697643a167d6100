#include "shape.h"

#include <string.h>

/* Histogram bytes that the features of a block may take: part of a usual second-level cache. Of wide rows, which come from
 * memory once a block, more. */
#define BLOCK_BYTES ((int64_t)192 << 10)
#define WIDE_BLOCK_BYTES ((int64_t)1000 << 10)
/* Blocks a thread, so that threads end at about the same time. Narrow rows have one: reading a row's list costs as much as
 * several entries, once a block. */
#define WIDE_BLOCKS_PER_THREAD 3
/* Cells of a block, numbered in 16 bits. */
#define BLOCK_CELLS ((int64_t)1 << 16)
/* Share of entries up to which a block keeps them in lists: a listed entry costs more than one of a full row. */
#define LISTED_SHARE 0.7

static void describe_features(gmo_hist_shape *shape, const uint8_t *has_missing) {
    const gmo_binned *data = shape->data;
    int64_t cells = 0;
    for (int64_t f = 0; f < data->n_features; f++) {
        shape->cell_start[f] = cells;
        shape->n_bins[f] = (int32_t)(data->edge_start[f + 1] - data->edge_start[f]) + 1;
        shape->has_missing[f] = has_missing[f];
        cells += shape->n_bins[f] + has_missing[f];
    }
    shape->cell_start[data->n_features] = cells;
}

/* The most frequent bin of every feature. */
static gmo_status find_frequent(gmo_hist_shape *shape, int32_t n_threads) {
    const gmo_binned *data = shape->data;
    int64_t m = data->n_features;
    int64_t *counts = gmo_alloc_zero(shape->cell_start[m], sizeof *counts);
    if (!counts)
        return GMO_ERR_MEMORY;
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, data -> n_rows * m))
    {
        gmo_range part = gmo_thread_range(m);
        for (int64_t i = 0; i < data->n_rows; i++)
            for (int64_t f = part.first; f < part.last; f++)
                counts[shape->cell_start[f] + data->bins[i * m + f]]++;
        for (int64_t f = part.first; f < part.last; f++) {
            const int64_t *count = counts + shape->cell_start[f];
            int32_t best = 0;
            for (int32_t bin = 1; bin < shape->n_bins[f] + shape->has_missing[f]; bin++)
                if (count[bin] > count[best])
                    best = bin;
            shape->frequent[f] = (uint8_t)best;
            shape->n_other[f] = data->n_rows - count[best];
        }
    }
    free(counts);
    return GMO_OK;
}

static void count_others(gmo_hist_shape *shape) {
    int64_t m = shape->data->n_features;
    for (int64_t i = 0; i < shape->data->n_rows; i++) {
        const uint8_t *bins = shape->data->bins + i * m;
        int32_t n = 0;
        for (int64_t f = 0; f < m; f++)
            n += bins[f] != shape->frequent[f];
        shape->row_other[i] = n;
    }
}

/* What a feature costs in a tree, roughly, in entries: those that a few visits of every row add, and the cells of a few
 * hundred nodes. */
static int64_t feature_cost(const gmo_hist_shape *shape, int64_t f) {
    return 3 * shape->n_other[f] + 300 * (shape->cell_start[f + 1] - shape->cell_start[f]);
}

/* Blocks of features in order, each within its bytes, BLOCK_CELLS and an even share of the work. */
static void divide_blocks(gmo_hist_shape *shape, int32_t n_threads) {
    int64_t m = shape->data->n_features, first = 0, cost = 0, share = 0;
    bool is_wide = shape->stride > GMO_CHUNK_LANES;
    for (int64_t f = 0; f < m; f++)
        share += feature_cost(shape, f);
    share = n_threads > 1 ? share / (n_threads * (is_wide ? WIDE_BLOCKS_PER_THREAD : 1)) : share;
    int64_t lanes = shape->stride < GMO_BAND_LANES ? shape->stride : GMO_BAND_LANES;
    int64_t most_bytes = is_wide ? WIDE_BLOCK_BYTES : BLOCK_BYTES;
    shape->n_blocks = 0;
    for (int64_t f = 0; f < m; f++) {
        int64_t cells = shape->cell_start[f + 1] - shape->cell_start[first];
        bool full = cells > BLOCK_CELLS || cells * lanes * 4 > most_bytes || cost >= share;
        if (f > first && full) {
            shape->blocks[shape->n_blocks++] = (gmo_hist_block){first, f, NULL, NULL};
            first = f;
            cost = 0;
        }
        cost += feature_cost(shape, f);
    }
    shape->blocks[shape->n_blocks++] = (gmo_hist_block){first, m, NULL, NULL};
}

static void place_blocks(gmo_hist_shape *shape) {
    for (int64_t b = 0; b < shape->n_blocks; b++)
        for (int64_t f = shape->blocks[b].first; f < shape->blocks[b].last; f++)
            shape->start[f] = shape->cell_start[f] * shape->stride + b * GMO_LANES;
    shape->size += shape->n_blocks * GMO_LANES;
}

int64_t gmo_hist_block_size(const gmo_hist_shape *shape, const gmo_hist_block *block) {
    return (shape->cell_start[block->last] - shape->cell_start[block->first]) * shape->stride;
}

/* Lists the block's entries outside the most frequent bins, if they are few. */
static gmo_status list_entries(const gmo_hist_shape *shape, gmo_hist_block *block) {
    int64_t n = shape->data->n_rows, m = shape->data->n_features, n_entries = 0;
    for (int64_t f = block->first; f < block->last; f++)
        n_entries += shape->n_other[f];
    if (n_entries > LISTED_SHARE * (double)n * (double)(block->last - block->first) || n_entries > UINT32_MAX)
        return GMO_OK;
    block->entry = gmo_alloc(n_entries, sizeof *block->entry);
    block->row_start = gmo_alloc(n + 1, sizeof *block->row_start);
    if (!block->entry || !block->row_start)
        return GMO_ERR_MEMORY;
    uint32_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *bins = shape->data->bins + i * m;
        block->row_start[i] = at;
        for (int64_t f = block->first; f < block->last; f++)
            if (bins[f] != shape->frequent[f])
                block->entry[at++] = (uint16_t)(shape->cell_start[f] - shape->cell_start[block->first] + bins[f]);
    }
    block->row_start[n] = at;
    return GMO_OK;
}

gmo_status gmo_hist_shape_init(gmo_hist_shape *shape, const gmo_binned *data, const uint8_t *has_missing,
                               int32_t stride, int32_t n_threads) {
    int64_t m = data->n_features;
    shape->data = data;
    shape->stride = stride;
    shape->cell_start = gmo_alloc(m + 1, sizeof *shape->cell_start);
    shape->start = gmo_alloc(m, sizeof *shape->start);
    shape->n_bins = gmo_alloc(m, sizeof *shape->n_bins);
    shape->has_missing = gmo_alloc(m, sizeof *shape->has_missing);
    shape->frequent = gmo_alloc(m, sizeof *shape->frequent);
    shape->n_other = gmo_alloc(m, sizeof *shape->n_other);
    shape->row_other = gmo_alloc(data->n_rows, sizeof *shape->row_other);
    shape->blocks = gmo_alloc_zero(m, sizeof *shape->blocks);
    if (!shape->cell_start || !shape->start || !shape->n_bins || !shape->has_missing || !shape->frequent ||
        !shape->n_other || !shape->row_other || !shape->blocks)
        return GMO_ERR_MEMORY;
    describe_features(shape, has_missing);
    if (!gmo_size_mul(shape->cell_start[m], stride, &shape->size) || shape->size > INT64_MAX / 16)
        return GMO_ERR_SIZE;
    GMO_TRY(find_frequent(shape, n_threads));
    count_others(shape);
    divide_blocks(shape, n_threads);
    place_blocks(shape);
    for (int64_t b = 0; b < shape->n_blocks; b++)
        GMO_TRY(list_entries(shape, &shape->blocks[b]));
    return GMO_OK;
}

void gmo_hist_shape_free(gmo_hist_shape *shape) {
    for (int64_t b = 0; shape->blocks && b < shape->n_blocks; b++) {
        free(shape->blocks[b].entry);
        free(shape->blocks[b].row_start);
    }
    free(shape->cell_start);
    free(shape->start);
    free(shape->n_bins);
    free(shape->has_missing);
    free(shape->frequent);
    free(shape->n_other);
    free(shape->row_other);
    free(shape->blocks);
    memset(shape, 0, sizeof *shape);
}

int64_t gmo_hist_entries(const gmo_hist_shape *shape, const int32_t *rows, int64_t n_rows) {
    int64_t n_entries = 0;
    for (int64_t i = 0; i < n_rows; i++)
        n_entries += shape->row_other[rows ? rows[i] : i];
    return n_entries;
}
