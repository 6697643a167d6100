#include "hist.h"

#include <string.h>

/* Histogram bytes that the features of a block may take: part of a usual second-level cache. Of wide rows, which come from
 * memory once a block, more. */
#define BLOCK_BYTES ((int64_t)256 << 10)
#define WIDE_BLOCK_BYTES ((int64_t)768 << 10)
/* Blocks a thread, so that threads end at about the same time. */
#define BLOCKS_PER_THREAD 4
/* Cells of a block, numbered in 16 bits. */
#define BLOCK_CELLS ((int64_t)1 << 16)
/* Share of entries up to which a block keeps them in lists: a listed entry costs more than one of a full row. */
#define LISTED_SHARE 0.7
/* Rows ahead whose memory is asked for. */
#define AHEAD 12

/* Wide rows are added in pieces, so that all that is touched at a time stays in the nearest caches: BAND_LANES of TILE_ROWS
 * rows in the second, CHUNK_LANES of the cells of a few features in the first. A chunk of a row is held in registers. */
#define BAND_LANES 256
#define CHUNK_LANES 32
#define TILE_ROWS 512
#define GROUP_CELLS 256
#define GROUP_FEATURES 8

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
    for (int64_t f = 0; f < m; f++)
        share += feature_cost(shape, f);
    share = n_threads > 1 ? share / (n_threads * BLOCKS_PER_THREAD) : share;
    int64_t lanes = shape->stride < BAND_LANES ? shape->stride : BAND_LANES;
    int64_t most_bytes = shape->stride > CHUNK_LANES ? WIDE_BLOCK_BYTES : BLOCK_BYTES;
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

/* Integers of a feature's cells. */
static int64_t feature_size(const gmo_hist_shape *shape, int64_t f) {
    return (shape->cell_start[f + 1] - shape->cell_start[f]) * shape->stride;
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

GMO_INLINE void prefetch_row(const int32_t *derivatives, int64_t row, int32_t stride) {
    for (int32_t j = 0; j < stride; j += 16)
        __builtin_prefetch(derivatives + row * stride + j);
}

/* A row of up to CHUNK_LANES, held in registers while it is added to cells: stores to cells might else be taken to change
 * it. Its lanes are a multiple of 8, and a constant where this is inlined. */
typedef struct {
    gmo_int16 first, second;
    gmo_int8 rest;
} held_row;

GMO_INLINE held_row hold(const int32_t *row, int32_t lanes) {
    held_row held = {{0}, {0}, {0}};
    if (lanes >= 16)
        held.first = *(const gmo_int16 *)row;
    if (lanes == 32)
        held.second = *(const gmo_int16 *)(row + 16);
    if (lanes % 16)
        held.rest = *(const gmo_int8 *)(row + lanes / 16 * 16);
    return held;
}

GMO_INLINE void add_held(int32_t *cell, const held_row *held, int32_t lanes) {
    if (lanes >= 16)
        *(gmo_int16 *)cell += held->first;
    if (lanes == 32)
        *(gmo_int16 *)(cell + 16) += held->second;
    if (lanes % 16)
        *(gmo_int8 *)(cell + lanes / 16 * 16) += held->rest;
}

/* The listed entries of the rows. stride is a constant where this is inlined. */
GMO_INLINE void add_listed(const gmo_hist_block *block, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                           int32_t stride, int32_t *cells) {
    const uint16_t *entry = block->entry;
    const uint32_t *row_start = block->row_start;
    const int32_t *derivatives = fixed->rows;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t row = rows ? rows[i] : i;
        if (rows && i + 2 * AHEAD < n_rows) {
            __builtin_prefetch(row_start + rows[i + 2 * AHEAD]);
            __builtin_prefetch(entry + row_start[rows[i + AHEAD]]);
            prefetch_row(derivatives, rows[i + AHEAD], stride);
        }
        const int32_t *add = derivatives + row * stride;
        const uint16_t *e = entry + row_start[row], *end = entry + row_start[row + 1];
        if (stride == 4 || stride > CHUNK_LANES) {
            for (; e < end; e++)
                gmo_add_row(cells + *e * (int64_t)stride, add, stride);
            continue;
        }
        held_row held = hold(add, stride);
        for (; e < end; e++)
            add_held(cells + *e * (int64_t)stride, &held, stride);
    }
}

/* All bins of the rows. */
GMO_INLINE void add_all(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                        const int32_t *rows, int64_t n_rows, int32_t stride, int32_t *hist) {
    int64_t m = shape->data->n_features, first = block->first, n_features = block->last - first;
    const uint8_t *bins = shape->data->bins + first;
    const int64_t *feature_start = shape->start + first;
    const int32_t *derivatives = fixed->rows;
    for (int64_t i = 0; i < n_rows; i++) {
        int64_t row = rows ? rows[i] : i;
        if (rows && i + AHEAD < n_rows) {
            __builtin_prefetch(bins + rows[i + AHEAD] * m);
            prefetch_row(derivatives, rows[i + AHEAD], stride);
        }
        const uint8_t *bin = bins + row * m;
        const int32_t *add = derivatives + row * stride;
        if (stride == 4) {
            for (int64_t f = 0; f < n_features; f++)
                gmo_add_row(hist + feature_start[f] + bin[f] * (int64_t)stride, add, stride);
            continue;
        }
        held_row held = hold(add, stride);
        for (int64_t f = 0; f < n_features; f++)
            add_held(hist + feature_start[f] + bin[f] * (int64_t)stride, &held, stride);
    }
}

/* Row numbers of a tile, and the cells of a group of features in it. */
typedef struct {
    int64_t n_rows, first; /* first feature */
    int32_t n_features;
    int32_t row[TILE_ROWS];
    uint16_t cell[TILE_ROWS * GROUP_FEATURES]; /* (n_rows, n_features) from the first feature's first cell */
} tile;

GMO_INLINE void find_cells(const gmo_hist_shape *shape, tile *t, bool is_first, const int32_t *derivatives) {
    const uint8_t *bins = shape->data->bins + t->first;
    int64_t m = shape->data->n_features;
    uint16_t offset[GROUP_FEATURES], *cell = t->cell;
    for (int32_t f = 0; f < t->n_features; f++)
        offset[f] = (uint16_t)(shape->cell_start[t->first + f] - shape->cell_start[t->first]);
    for (int64_t i = 0; i < t->n_rows; i++) {
        const uint8_t *bin = bins + t->row[i] * m;
        if (is_first && i + AHEAD < t->n_rows) {
            __builtin_prefetch(bins + t->row[i + AHEAD] * m);
            prefetch_row(derivatives, t->row[i + AHEAD], shape->stride < BAND_LANES ? shape->stride : BAND_LANES);
        }
        for (int32_t f = 0; f < t->n_features; f++)
            *cell++ = (uint16_t)(offset[f] + bin[f]);
    }
}

/* lanes of the rows of a tile, at most CHUNK_LANES and a constant where this is inlined. */
GMO_INLINE void add_chunk(const tile *t, const int32_t *derivatives, int32_t stride, int32_t lanes, int32_t *cells) {
    const uint16_t *cell = t->cell;
    int32_t n_features = t->n_features;
    for (int64_t i = 0; i < t->n_rows; i++) {
        held_row held = hold(derivatives + t->row[i] * (int64_t)stride, lanes);
        for (int32_t f = 0; f < n_features; f++)
            add_held(cells + *cell++ * (int64_t)stride, &held, lanes);
    }
}

GMO_INLINE void add_band(const tile *t, const int32_t *derivatives, int32_t stride, int32_t first, int32_t last,
                         int32_t *cells) {
    for (int32_t lane = first; lane < last; lane += CHUNK_LANES)
        switch (last - lane) {
        case 8:
            add_chunk(t, derivatives + lane, stride, 8, cells + lane);
            break;
        case 16:
            add_chunk(t, derivatives + lane, stride, 16, cells + lane);
            break;
        case 24:
            add_chunk(t, derivatives + lane, stride, 24, cells + lane);
            break;
        default:
            add_chunk(t, derivatives + lane, stride, CHUNK_LANES, cells + lane);
        }
}

/* As many features from first on as make a group. */
GMO_INLINE int32_t group_size(const gmo_hist_shape *shape, int64_t first, int64_t last) {
    int32_t n = 1;
    while (n < GROUP_FEATURES && first + n < last &&
           shape->cell_start[first + n + 1] - shape->cell_start[first] <= GROUP_CELLS)
        n++;
    return n;
}

/* All bins of rows wider than CHUNK_LANES. */
GMO_INLINE void add_wide(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                         const int32_t *rows, int64_t n_rows, int32_t *hist) {
    int32_t stride = shape->stride;
    tile t;
    for (int32_t band = 0; band < stride; band += BAND_LANES)
        for (int64_t start = 0; start < n_rows; start += TILE_ROWS) {
            t.n_rows = n_rows - start < TILE_ROWS ? n_rows - start : TILE_ROWS;
            for (int64_t i = 0; i < t.n_rows; i++)
                t.row[i] = rows ? rows[start + i] : (int32_t)(start + i);
            for (t.first = block->first; t.first < block->last; t.first += t.n_features) {
                t.n_features = group_size(shape, t.first, block->last);
                find_cells(shape, &t, t.first == block->first, fixed->rows + band);
                add_band(&t, fixed->rows, stride, band, band + BAND_LANES < stride ? band + BAND_LANES : stride,
                         hist + shape->start[t.first]);
            }
        }
}

GMO_INLINE void add_rows(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                         const int32_t *rows, int64_t n_rows, int32_t stride, int32_t *hist) {
    if (block->entry)
        add_listed(block, fixed, rows, n_rows, stride, hist + shape->start[block->first]);
    else if (stride > CHUNK_LANES)
        add_wide(shape, block, fixed, rows, n_rows, hist);
    else
        add_all(shape, block, fixed, rows, n_rows, stride, hist);
}

/* Known strides are written out, so that a row stays in registers. */
GMO_CLONES
static void add_block(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                      const int32_t *rows, int64_t n_rows, int32_t *hist) {
    switch (shape->stride) {
    case 4:
        add_rows(shape, block, fixed, rows, n_rows, 4, hist);
        break;
    case 8:
        add_rows(shape, block, fixed, rows, n_rows, 8, hist);
        break;
    case 16:
        add_rows(shape, block, fixed, rows, n_rows, 16, hist);
        break;
    case 24:
        add_rows(shape, block, fixed, rows, n_rows, 24, hist);
        break;
    case 32:
        add_rows(shape, block, fixed, rows, n_rows, 32, hist);
        break;
    default:
        add_rows(shape, block, fixed, rows, n_rows, shape->stride, hist);
    }
}

/* The cells of the most frequent bins, which the lists leave out: what the others leave of the total. */
GMO_CLONES
static void fill_frequent(const gmo_hist_shape *shape, const gmo_hist_block *block, const int32_t *total,
                          int32_t *hist) {
    int32_t stride = shape->stride;
    for (int64_t f = block->first; f < block->last; f++) {
        int32_t *cells = hist + shape->start[f], *rest = cells + shape->frequent[f] * (int64_t)stride;
        memcpy(rest, total, (size_t)stride * sizeof *rest);
        for (const int32_t *other = cells; other < cells + feature_size(shape, f); other += stride)
            if (other != rest)
                for (int32_t j = 0; j < stride; j++)
                    rest[j] -= other[j];
    }
}

void gmo_hist_build(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                    const int32_t *total, const gmo_hist_block *block, int32_t *hist) {
    int32_t *first = hist + shape->start[block->first], *end = hist + shape->start[block->last - 1];
    end += feature_size(shape, block->last - 1);
    memset(first, 0, (size_t)(end - first) * sizeof *hist);
    add_block(shape, block, fixed, rows, n_rows, hist);
    if (block->entry)
        fill_frequent(shape, block, total, hist);
}

void gmo_hist_subtract(const gmo_hist_shape *shape, int64_t feature, int32_t *parent, const int32_t *child) {
    int64_t begin = shape->start[feature], end = begin + feature_size(shape, feature);
    for (int64_t i = begin; i < end; i++)
        parent[i] -= child[i];
}

int64_t gmo_hist_entries(const gmo_hist_shape *shape, const int32_t *rows, int64_t n_rows) {
    int64_t n_entries = 0;
    for (int64_t i = 0; i < n_rows; i++)
        n_entries += shape->row_other[rows ? rows[i] : i];
    return n_entries;
}
