/* Prediction from values (gmo_forest_pack and gmo_predictor_add of gbdtmo.h). The plain version, on bins and a node at a
 * time, is gmo_forest_predict of tree.h. */
#include "common.h"

#include <math.h>
#include <string.h>

/* Walks in flight at once: each waits for memory at every node, and they wait together. */
#define LANES 8
/* Walks (rows x trees) and trees of a tile, at most: the leaves of its rows are found first, then added. */
#define TILE_WALKS 2048
#define TILE_TREES 64
#define CACHE_LINE 64
/* Cache lines of a row that one tree reads, roughly. */
#define WALK_LINES 8
/* Rows of a block, with their scores, stay in the second-level cache while all trees pass. */
#define BLOCK_BYTES 524288

/* Where the nodes of a tree start: the children of its node k are at 1 + 2 k and 2 + 2 k from there. */
static int64_t root_of(const gmo_forest *forest, int64_t tree) { return 2 * forest->node_start[tree] + tree; }

/* A NaN that carries the number of a leaf, and what it carries. */
static double mark_of(int32_t leaf) {
    uint64_t bits = (uint64_t)0x7FF80000 << 32 | (uint32_t)leaf;
    double mark;
    memcpy(&mark, &bits, sizeof mark);
    return mark;
}

static int32_t leaf_of(double mark) {
    uint64_t bits;
    memcpy(&bits, &mark, sizeof bits);
    return (int32_t)(uint32_t)bits;
}

/* The node at place `at` for `child` of a tree, numbered as in gmo_forest.left. A leaf reads feature 0, for nothing. */
static gmo_packed_node packed_node(const gmo_forest *forest, int64_t tree, int32_t child, int64_t at,
                                   const double *edges, const int64_t *edge_start) {
    if (child < 0)
        return (gmo_packed_node){.threshold = mark_of(child == GMO_NO_LEAF ? -1 : -1 - child), .feature = 1};
    int64_t node = forest->node_start[tree] + child;
    int32_t f = forest->feature[node], bin = forest->bin[node];
    bool parts_values = bin < edge_start[f + 1] - edge_start[f]; /* else it parts missing from known values */
    return (gmo_packed_node){.threshold = parts_values ? edges[edge_start[f] + bin] : INFINITY,
                             .feature = 2 * (uint32_t)f + (forest->missing_left[node] != 0),
                             .step = (int32_t)(root_of(forest, tree) + 1 + 2 * (int64_t)child - at)};
}

gmo_status gmo_forest_pack(const gmo_forest *forest, const double *edges, const int64_t *edge_start,
                           gmo_packed_node *nodes) {
    for (int64_t tree = 0; tree < forest->n_trees; tree++) {
        int64_t first = forest->node_start[tree], n_nodes = forest->node_start[tree + 1] - first;
        int64_t at = root_of(forest, tree);
        if (n_nodes > INT32_MAX / 2)
            return GMO_ERR_SIZE;
        int32_t top = n_nodes ? 0 : forest->n_leaves[tree] ? -1 : GMO_NO_LEAF;
        nodes[at] = packed_node(forest, tree, top, at, edges, edge_start);
        for (int64_t k = 0; k < n_nodes; k++)
            for (int side = 0; side < 2; side++) {
                int32_t child = side ? forest->right[first + k] : forest->left[first + k];
                at++;
                nodes[at] = packed_node(forest, tree, child, at, edges, edge_start);
            }
    }
    return GMO_OK;
}

/* Rows whose values lie side by side. */
typedef struct {
    const char *data;
    int64_t n_rows, stride;
} row_block;

GMO_INLINE double value_of(const char *row, uint32_t feature, bool is_float64) {
    if (is_float64) {
        double value;
        memcpy(&value, row + (size_t)feature * sizeof value, sizeof value);
        return value;
    }
    float value;
    memcpy(&value, row + (size_t)feature * sizeof value, sizeof value);
    return (double)value;
}

/* Takes every lane from at[lane] to a leaf, where it rests until the last one is there. No branch depends on a value:
 * which way a row goes cannot be foretold. */
GMO_INLINE void walk(const char *const rows[LANES], const gmo_packed_node *at[LANES], bool is_float64) {
    int32_t moved;
    do {
        moved = 0;
        for (int lane = 0; lane < LANES; lane++) {
            const gmo_packed_node *node = at[lane];
            double x = value_of(rows[lane], node->feature >> 1, is_float64);
            int32_t right = (x > node->threshold) | ((x != x) & ~node->feature & 1);
            int32_t step = node->step + right;
            at[lane] += step;
            moved |= step;
        }
    } while (moved);
}

/* leaf[t * n_rows + i]: the leaf of row i in trees[t], or -1. Lanes run over rows, then trees. */
GMO_INLINE void find_leaves(const gmo_predictor *p, const int64_t *trees, int64_t n_trees, const row_block *rows,
                            int32_t *leaf, bool is_float64) {
    int64_t n_walks = n_trees * rows->n_rows, row = 0, tree = 0;
    for (int64_t first = 0; first < n_walks; first += LANES) {
        const char *row_of[LANES];
        const gmo_packed_node *at[LANES];
        for (int lane = 0; lane < LANES; lane++) {
            row_of[lane] = rows->data + row * rows->stride;
            at[lane] = p->nodes + root_of(p->forest, trees[tree]);
            if (++row == rows->n_rows) {
                row = 0;
                tree += tree + 1 < n_trees; /* lanes beyond the last walk repeat one */
            }
        }
        walk(row_of, at, is_float64);
        for (int64_t lane = 0; lane < LANES && first + lane < n_walks; lane++)
            leaf[first + lane] = leaf_of(at[lane]->threshold);
    }
}

typedef double double4 __attribute__((vector_size(32), aligned(8), may_alias));

/* Adds outputs j .. j + 4 n_sums of n vectors to a row. The sums stay in registers meanwhile. */
GMO_INLINE void add_some(double *row, const double *const *vectors, int64_t n, int64_t j, int n_sums) {
    double4 sum[4];
    for (int s = 0; s < n_sums; s++)
        sum[s] = *(const double4 *)(row + j + 4 * s);
    for (int64_t t = 0; t < n; t++)
        for (int s = 0; s < n_sums; s++)
            sum[s] += *(const double4 *)(vectors[t] + j + 4 * s);
    for (int s = 0; s < n_sums; s++)
        *(double4 *)(row + j + 4 * s) = sum[s];
}

/* Adds n vectors of d values to a row, in their order. */
GMO_INLINE void add_vectors(double *row, const double *const *vectors, int64_t n, int64_t d) {
    int64_t j = 0;
    for (; j + 16 <= d; j += 16)
        add_some(row, vectors, n, j, 4);
    for (; j + 4 <= d; j += 4)
        add_some(row, vectors, n, j, 1);
    for (; j < d; j++)
        for (int64_t t = 0; t < n; t++)
            row[j] += vectors[t][j];
}

/* Adds to each row what its leaves hold; leaf: as find_leaves left it. */
GMO_INLINE void add_leaves(const gmo_forest *forest, const int64_t *trees, int64_t n_trees, const int32_t *leaf,
                           int64_t n_rows, double *scores) {
    int64_t d = forest->n_outputs;
    for (int64_t i = 0; i < n_rows; i++) {
        double *row = scores + i * d;
        const double *vectors[TILE_TREES];
        int64_t n = 0;
        for (int64_t t = 0; t < n_trees; t++) {
            int32_t number = leaf[t * n_rows + i], output = forest->tree_output[trees[t]];
            const double *values = forest->leaf_values + forest->value_start[trees[t]];
            if (number < 0)
                continue;
            if (output < 0) {
                vectors[n++] = values + number * d;
                continue;
            }
            add_vectors(row, vectors, n, d); /* those before it come first */
            n = 0;
            row[output] += values[number];
        }
        add_vectors(row, vectors, n, d);
    }
}

GMO_INLINE void add_trees(const gmo_predictor *p, const int64_t *trees, int64_t n_trees, const row_block *rows,
                          double *scores, bool is_float64) {
    int32_t leaf[TILE_WALKS];
    int64_t tile = TILE_WALKS / rows->n_rows;
    tile = tile < TILE_TREES ? tile : TILE_TREES;
    for (int64_t t = 0; t < n_trees; t += tile) {
        int64_t n = n_trees - t < tile ? n_trees - t : tile;
        find_leaves(p, trees + t, n, rows, leaf, is_float64);
        add_leaves(p->forest, trees + t, n, leaf, rows->n_rows, scores);
    }
}

/* One call: trees first .. last of the predictor are added to the rows of x, so many at a time. */
typedef struct {
    const gmo_predictor *predictor;
    const gmo_matrix *x;
    int64_t first, last, rows_per_block;
    char *copies; /* room for a block a thread; NULL if the columns of x lie side by side */
    double *scores;
} job;

GMO_CLONES static void add_to_rows(const job *j, const row_block *rows, double *scores) {
    const gmo_predictor *p = j->predictor;
    int64_t d = p->forest->n_outputs;
    if (j->first == 0)
        for (int64_t i = 0; i < rows->n_rows; i++)
            memcpy(scores + i * d, p->base_score, (size_t)d * sizeof *scores);
    if (j->x->is_float64)
        add_trees(p, p->trees + j->first, j->last - j->first, rows, scores, true);
    else
        add_trees(p, p->trees + j->first, j->last - j->first, rows, scores, false);
}

static size_t value_size(const gmo_matrix *x) { return x->is_float64 ? sizeof(double) : sizeof(float); }

/* Asks for whole rows in order, which is several times as fast as waiting for each value that a tree reads first. */
static void fetch(const row_block *rows, int64_t row_bytes) {
    for (int64_t i = 0; i < rows->n_rows; i++)
        for (int64_t byte = 0; byte < row_bytes; byte += CACHE_LINE)
            __builtin_prefetch(rows->data + i * rows->stride + byte);
}

/* Copies rows into `copy` so that their columns lie side by side; size: of a value. */
GMO_INLINE row_block copied(const gmo_matrix *x, const row_block *rows, int64_t size, char *copy) {
    int64_t stride = x->n_cols * size;
    for (int64_t f = 0; f < x->n_cols; f++)
        for (int64_t i = 0; i < rows->n_rows; i++)
            memcpy(copy + i * stride + f * size, rows->data + i * rows->stride + f * x->col_stride, (size_t)size);
    return (row_block){copy, rows->n_rows, stride};
}

static void add_block(const job *j, int64_t block) {
    const gmo_matrix *x = j->x;
    int64_t row = block * j->rows_per_block, left = x->n_rows - row;
    int64_t row_bytes = x->n_cols * (int64_t)value_size(x);
    row_block rows = {x->data + row * x->row_stride, left < j->rows_per_block ? left : j->rows_per_block,
                      x->row_stride};
    if (j->copies) {
        char *copy = j->copies + gmo_thread_number() * j->rows_per_block * row_bytes;
        rows = x->is_float64 ? copied(x, &rows, sizeof(double), copy) : copied(x, &rows, sizeof(float), copy);
    } else if ((j->last - j->first) * WALK_LINES > row_bytes / CACHE_LINE) {
        fetch(&rows, row_bytes);
    }
    add_to_rows(j, &rows, j->scores + row * j->predictor->forest->n_outputs);
}

static int64_t choose_block_rows(const gmo_matrix *x, int64_t n_outputs, int32_t n_threads) {
    int64_t rows = BLOCK_BYTES / (x->n_cols * (int64_t)value_size(x) + n_outputs * (int64_t)sizeof(double));
    int64_t share = (x->n_rows + n_threads - 1) / n_threads;
    rows = rows < LANES ? LANES : rows > TILE_WALKS ? TILE_WALKS : rows;
    return rows < share ? rows : share;
}

gmo_status gmo_predictor_add(const gmo_predictor *p, int64_t first, int64_t last, const gmo_matrix *x,
                             int32_t n_threads, double *scores) {
    if (n_threads < 1 || x->n_cols < 1 || first < 0 || first > last || last > p->n_trees)
        return GMO_ERR_ARGUMENT;
    if (x->n_rows == 0)
        return GMO_OK;
    if (!GMO_PARALLEL(n_threads, x->n_rows * (last - first) * 64))
        n_threads = 1;
    job j = {p, x, first, last, choose_block_rows(x, p->forest->n_outputs, n_threads), NULL, scores};
    if (x->col_stride != (int64_t)value_size(x)) {
        j.copies = gmo_alloc(n_threads * j.rows_per_block, (size_t)x->n_cols * value_size(x));
        if (!j.copies)
            return GMO_ERR_MEMORY;
    }
    int64_t n_blocks = (x->n_rows + j.rows_per_block - 1) / j.rows_per_block;
    if (n_threads == 1) { /* OpenMP's entry costs as much as some of the trees of a single row */
        for (int64_t b = 0; b < n_blocks; b++)
            add_block(&j, b);
    } else {
#pragma omp parallel for schedule(static) num_threads(n_threads)
        for (int64_t b = 0; b < n_blocks; b++)
            add_block(&j, b);
    }
    free(j.copies);
    return GMO_OK;
}
