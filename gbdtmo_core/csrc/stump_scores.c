#include "common.h"

/* Rows that a stump passes at a time: their values and scores stay in cache while all stumps do. */
#define BLOCK_ROWS 32

/* Every row adds its stumps' scores in the order of the rounds, whatever the blocks and threads. */
GMO_CLONES
static void add_block(const gmo_stumps *stumps, int64_t first, int64_t last, const double *x, int64_t n_rows,
                      int64_t n_features, double *restrict scores) {
    int64_t q = stumps->n_labels;
    for (int64_t t = first; t < last; t++) {
        int64_t f = stumps->feature[t];
        for (int64_t i = 0; i < n_rows; i++) {
            bool right = f >= 0 && x[i * n_features + f] > stumps->threshold[t];
            const double *leaf = stumps->leaf_scores + (2 * t + right) * q;
            for (int64_t l = 0; l < q; l++)
                scores[i * q + l] += leaf[l];
        }
    }
}

gmo_status gmo_stumps_add(const gmo_stumps *stumps, int64_t first, int64_t last, const double *x, int64_t n_rows,
                          int64_t n_features, int32_t n_threads, double *scores) {
    int64_t q = stumps->n_labels, n_blocks = (n_rows + BLOCK_ROWS - 1) / BLOCK_ROWS;
    if (n_threads < 1 || n_rows < 0 || n_features < 1 || q < 1 || first < 0 || first > last || last > stumps->n_stumps)
        return GMO_ERR_ARGUMENT;
    double work = (double)n_rows * (double)(last - first) * (double)q;
    for (int64_t t = first; t < last; t++)
        if (stumps->feature[t] < -1 || stumps->feature[t] >= n_features)
            return GMO_ERR_ARGUMENT;
#pragma omp parallel for schedule(static) num_threads(n_threads) if (GMO_PARALLEL(n_threads, work))
    for (int64_t b = 0; b < n_blocks; b++) {
        int64_t row = b * BLOCK_ROWS, left = n_rows - row;
        add_block(stumps, first, last, x + row * n_features, left < BLOCK_ROWS ? left : BLOCK_ROWS, n_features,
                  scores + row * q);
    }
    return GMO_OK;
}
