/* Shape of the histograms of a data set: its features in blocks, whose histograms stay in cache together and which are the
 * unit of work of a thread, and lists of the entries that a block needs to add. */
#ifndef GMO_SHAPE_H
#define GMO_SHAPE_H

#include "fixed.h"

/* Lanes of a row that are held in registers while they are added; longer rows, wide ones, are added in chunks of so many.
 * Of wide rows BAND_LANES pass all features before the next lanes do. */
#define GMO_CHUNK_LANES 32
#define GMO_BAND_LANES 256

/* Features first .. last. Where few entries lie outside the features' most frequent bins, those entries alone are kept,
 * row by row, as cell numbers within the block: entry[row_start[i] .. row_start[i + 1]). */
typedef struct {
    int64_t first, last;
    uint16_t *entry;     /* NULL: all bins are read from the binned rows */
    uint32_t *row_start; /* (n_rows + 1,) */
} gmo_hist_block;

/* Shape of a histogram: feature f has cells cell_start[f] .. cell_start[f + 1], one a bin and, if rows miss it in
 * training, a last one for them. A cell has stride integers, laid out as a row of gmo_fixed; those of a feature lie one
 * after the other from start[f] on. Between blocks lie GMO_LANES spare integers, since vectors may read beyond a cell. The
 * part of block b begins at start[b->first]. */
typedef struct {
    const gmo_binned *data;
    int64_t *cell_start;    /* (n_features + 1,) */
    int64_t *start;         /* (n_features,) */
    int32_t *n_bins;        /* (n_features,) without the bin of missing values */
    uint8_t *has_missing;   /* (n_features,) */
    uint8_t *frequent;      /* (n_features,) the most frequent bin */
    int64_t *n_other;       /* (n_features,) training rows outside it */
    int32_t *row_other;     /* (n_rows,) features whose most frequent bin the row is outside of */
    gmo_hist_block *blocks; /* (n_blocks,) */
    int64_t n_blocks, size; /* size: integers in a histogram */
    int32_t stride;
} gmo_hist_shape;

gmo_status gmo_hist_shape_init(gmo_hist_shape *shape, const gmo_binned *data, const uint8_t *has_missing,
                               int32_t stride, int32_t n_threads);
void gmo_hist_shape_free(gmo_hist_shape *shape);

/* Integers of a block's cells. */
int64_t gmo_hist_block_size(const gmo_hist_shape *shape, const gmo_hist_block *block);
/* How many entries outside the features' most frequent bins these rows have: what no histogram can do without adding. */
int64_t gmo_hist_entries(const gmo_hist_shape *shape, const int32_t *rows, int64_t n_rows);

#endif
