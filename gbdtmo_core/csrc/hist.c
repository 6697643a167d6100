#include "hist.h"

#include <string.h>

/* Rows ahead whose memory is asked for. */
#define AHEAD 12

/* Wide rows are added in pieces, so that all that is touched at a time stays in the nearest caches: a band of TILE_ROWS
 * rows in the second, a chunk of the cells of a few features in the first. */
#define TILE_ROWS 256
#define GROUP_CELLS 512
#define GROUP_FEATURES 8

GMO_INLINE void prefetch_row(const int32_t *derivatives, int64_t row, int32_t stride) {
    for (int32_t j = 0; j < stride; j += 16)
        __builtin_prefetch(derivatives + row * stride + j);
}

/* A row of up to GMO_CHUNK_LANES, held in registers while it is added to cells: stores to cells might else be taken to change
 * it. Its lanes are a multiple of 8, and a constant where this is inlined. */
typedef struct {
    gmo_int16 sixteens[2];
    gmo_int8 eights[3];
} held_row;

/* Vectors of sixteen only where no cell has them across two cache lines. */
GMO_INLINE held_row hold(const int32_t *row, int32_t lanes) {
    held_row held = {{{0}, {0}}, {{0}, {0}, {0}}};
    if (lanes % 16)
        for (int32_t i = 0; 8 * i < lanes && i < 3; i++)
            held.eights[i] = *(const gmo_int8 *)(row + 8 * i);
    else
        for (int32_t i = 0; 16 * i < lanes && i < 2; i++)
            held.sixteens[i] = *(const gmo_int16 *)(row + 16 * i);
    return held;
}

GMO_INLINE void add_held(int32_t *cell, const held_row *held, int32_t lanes) {
    if (lanes % 16)
        for (int32_t i = 0; 8 * i < lanes && i < 3; i++)
            *(gmo_int8 *)(cell + 8 * i) += held->eights[i];
    else
        for (int32_t i = 0; 16 * i < lanes && i < 2; i++)
            *(gmo_int16 *)(cell + 16 * i) += held->sixteens[i];
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
        if (stride == 4 || stride > GMO_CHUNK_LANES) {
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
                        const int32_t *rows, int64_t n_rows, int32_t stride, int32_t *part) {
    int64_t m = shape->data->n_features, first = block->first, n_features = block->last - first;
    const uint8_t *bins = shape->data->bins + first;
    const int64_t *cell_start = shape->cell_start + first;
    int64_t first_cell = cell_start[0];
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
                gmo_add_row(part + (cell_start[f] - first_cell + bin[f]) * stride, add, stride);
            continue;
        }
        held_row held = hold(add, stride);
        for (int64_t f = 0; f < n_features; f++)
            add_held(part + (cell_start[f] - first_cell + bin[f]) * stride, &held, stride);
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
            prefetch_row(derivatives, t->row[i + AHEAD],
                         shape->stride < GMO_BAND_LANES ? shape->stride : GMO_BAND_LANES);
        }
        for (int32_t f = 0; f < t->n_features; f++)
            *cell++ = (uint16_t)(offset[f] + bin[f]);
    }
}

/* 16 or GMO_CHUNK_LANES lanes of the rows of a tile, a constant where this is inlined. */
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
    for (int32_t lane = first; lane < last; lane += GMO_CHUNK_LANES)
        if (last - lane == 16)
            add_chunk(t, derivatives + lane, stride, 16, cells + lane);
        else
            add_chunk(t, derivatives + lane, stride, GMO_CHUNK_LANES, cells + lane);
}

/* As many features from first on as make a group. */
GMO_INLINE int32_t group_size(const gmo_hist_shape *shape, int64_t first, int64_t last) {
    int32_t n = 1;
    while (n < GROUP_FEATURES && first + n < last &&
           shape->cell_start[first + n + 1] - shape->cell_start[first] <= GROUP_CELLS)
        n++;
    return n;
}

/* All bins of rows wider than GMO_CHUNK_LANES. */
GMO_INLINE void add_wide(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                         const int32_t *rows, int64_t n_rows, int32_t *part) {
    int32_t stride = shape->stride;
    tile t;
    for (int32_t band = 0; band < stride; band += GMO_BAND_LANES)
        for (int64_t start = 0; start < n_rows; start += TILE_ROWS) {
            t.n_rows = n_rows - start < TILE_ROWS ? n_rows - start : TILE_ROWS;
            for (int64_t i = 0; i < t.n_rows; i++)
                t.row[i] = rows ? rows[start + i] : (int32_t)(start + i);
            for (t.first = block->first; t.first < block->last; t.first += t.n_features) {
                t.n_features = group_size(shape, t.first, block->last);
                find_cells(shape, &t, t.first == block->first, fixed->rows + band);
                add_band(&t, fixed->rows, stride, band, band + GMO_BAND_LANES < stride ? band + GMO_BAND_LANES : stride,
                         part + (shape->cell_start[t.first] - shape->cell_start[block->first]) * stride);
            }
        }
}

GMO_INLINE void add_rows(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                         const int32_t *rows, int64_t n_rows, int32_t stride, int32_t *part) {
    if (block->entry)
        add_listed(block, fixed, rows, n_rows, stride, part);
    else if (stride > GMO_CHUNK_LANES)
        add_wide(shape, block, fixed, rows, n_rows, part);
    else
        add_all(shape, block, fixed, rows, n_rows, stride, part);
}

/* Known strides are written out, so that a row stays in registers. */
GMO_CLONES
static void add_block(const gmo_hist_shape *shape, const gmo_hist_block *block, const gmo_fixed *fixed,
                      const int32_t *rows, int64_t n_rows, int32_t *part) {
    switch (shape->stride) {
    case 4:
        add_rows(shape, block, fixed, rows, n_rows, 4, part);
        break;
    case 8:
        add_rows(shape, block, fixed, rows, n_rows, 8, part);
        break;
    case 16:
        add_rows(shape, block, fixed, rows, n_rows, 16, part);
        break;
    case 24:
        add_rows(shape, block, fixed, rows, n_rows, 24, part);
        break;
    case 32:
        add_rows(shape, block, fixed, rows, n_rows, 32, part);
        break;
    default:
        add_rows(shape, block, fixed, rows, n_rows, shape->stride, part);
    }
}

/* The cells of the most frequent bins, which the lists leave out: what the others leave of the total. */
GMO_CLONES
static void fill_frequent(const gmo_hist_shape *shape, const gmo_hist_block *block, const int32_t *total,
                          int32_t *part) {
    int32_t stride = shape->stride, *cells = part;
    for (int64_t f = block->first; f < block->last; f++) {
        int32_t *rest = cells + shape->frequent[f] * (int64_t)stride,
                *end = cells + (shape->cell_start[f + 1] - shape->cell_start[f]) * stride;
        memcpy(rest, total, (size_t)stride * sizeof *rest);
        for (; cells < end; cells += stride)
            if (cells != rest)
                for (int32_t j = 0; j < stride; j++)
                    rest[j] -= cells[j];
    }
}

void gmo_hist_build(const gmo_hist_shape *shape, const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows,
                    const int32_t *total, const gmo_hist_block *block, int32_t *part) {
    memset(part, 0, (size_t)gmo_hist_block_size(shape, block) * sizeof *part);
    add_block(shape, block, fixed, rows, n_rows, part);
    if (block->entry)
        fill_frequent(shape, block, total, part);
}

GMO_CLONES
void gmo_hist_subtract(const gmo_hist_shape *shape, const gmo_hist_block *block, const int32_t *parent,
                       const int32_t *child, int32_t *part) {
    int64_t size = gmo_hist_block_size(shape, block);
    for (int64_t i = 0; i < size; i++)
        part[i] = parent[i] - child[i];
}
