#include "grow.h"

#include <string.h>

gmo_status gmo_grower_init(gmo_grower *g, const gmo_params *params, const gmo_binned *data, const uint8_t *has_missing,
                           int32_t d, bool has_hessian, gmo_trees *trees) {
    memset(g, 0, sizeof *g);
    g->params = params;
    g->trees = trees;
    GMO_TRY(gmo_fixed_init(&g->fixed, data->n_rows, d, has_hessian));
    GMO_TRY(gmo_hist_shape_init(&g->shape, data, has_missing, g->fixed.stride, params->n_threads));
    GMO_TRY(gmo_splitter_init(&g->splitter, params, &g->shape, &g->fixed));
    g->rows = gmo_alloc(data->n_rows, sizeof *g->rows);
    g->spare = gmo_alloc(data->n_rows, sizeof *g->spare);
    /* A parent, its two children: three histograms must be possible at any bound. */
    int64_t slots = params->histogram_pool_bytes / (gmo_slot_size(g) * (int64_t)sizeof **g->pool);
    int64_t most = data->n_rows + 3;
    g->n_slots = slots < 3 ? 3 : slots > most ? most : slots;
    g->pool = gmo_alloc_zero(g->n_slots, sizeof *g->pool);
    g->slot_owner = gmo_alloc(g->n_slots, sizeof *g->slot_owner);
    g->part_left = gmo_alloc(params->n_threads, sizeof *g->part_left);
    for (int64_t i = 0; i < g->shape.n_blocks; i++) {
        int64_t size = gmo_hist_block_size(&g->shape, &g->shape.blocks[i]);
        g->part_size = size > g->part_size ? size : g->part_size;
    }
    g->part_size += GMO_LANES;
    int64_t parts_size, thread_totals_size;
    if (!gmo_size_mul(2 * (int64_t)params->n_threads, g->part_size, &parts_size) ||
        !gmo_size_mul(params->n_threads, gmo_total_size(&g->shape), &thread_totals_size))
        return GMO_ERR_SIZE;
    g->parts = gmo_alloc(parts_size, sizeof *g->parts);
    g->thread_totals = gmo_alloc(thread_totals_size, sizeof *g->thread_totals);
    g->totals = gmo_alloc_zero(2 * gmo_total_size(&g->shape), sizeof *g->totals);
    if (!g->rows || !g->spare || !g->pool || !g->slot_owner || !g->part_left || !g->parts || !g->totals ||
        !g->thread_totals)
        return GMO_ERR_MEMORY;
    for (int64_t i = 0; i < g->n_slots; i++)
        g->slot_owner[i] = -1;
    return GMO_OK;
}

void gmo_grower_free(gmo_grower *g) {
    for (int64_t i = 0; g->pool && i < g->n_slots; i++)
        free(g->pool[i]);
    free(g->pool);
    free(g->slot_owner);
    free(g->part_left);
    free(g->totals);
    free(g->thread_totals);
    free(g->parts);
    free(g->rows);
    free(g->spare);
    free(g->nodes);
    free(g->pending);
    free(g->leaves);
    gmo_exact_free(&g->exact);
    gmo_splitter_free(&g->splitter);
    gmo_hist_shape_free(&g->shape);
    gmo_fixed_free(&g->fixed);
    memset(g, 0, sizeof *g);
}

static gmo_status add_node(gmo_grower *g, int64_t begin, int64_t count, int32_t depth, int32_t parent, bool is_left,
                           int64_t *node) {
    GMO_TRY(gmo_reserve((void **)&g->nodes, &g->node_capacity, g->n_nodes + 1, sizeof *g->nodes));
    g->nodes[g->n_nodes] = (gmo_node){begin, count, -1, depth, parent, is_left, {.feature = -1}};
    *node = g->n_nodes++;
    return GMO_OK;
}

gmo_status gmo_grower_start(gmo_grower *g, int64_t *root) {
    int64_t n = g->fixed.n_rows;
    for (int64_t i = 0; i < n; i++)
        g->rows[i] = (int32_t)i;
    for (int64_t i = 0; i < g->n_slots; i++)
        g->slot_owner[i] = -1;
    g->n_nodes = g->n_pending = g->n_leaves = 0;
    gmo_splitter_start_tree(&g->splitter);
    return add_node(g, 0, n, 0, -1, false, root);
}

/* Rows ahead whose bins are asked for. */
#define AHEAD 16

/* Parts rows[0 .. count): those that go left stay in place, in order, the others go to right, in order; returns how many
 * stay. */
static int64_t part_rows(const gmo_binned *data, const gmo_split *split, int32_t *rows, int32_t *right, int64_t count) {
    const uint8_t *column = data->bins + split->feature;
    int64_t missing_bin = data->edge_start[split->feature + 1] - data->edge_start[split->feature] + 1;
    int64_t m = data->n_features, n_left = 0, n_right = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t row = rows[i];
        if (i + AHEAD < count)
            __builtin_prefetch(column + rows[i + AHEAD] * m);
        bool left = gmo_goes_left(column[row * m], (uint8_t)split->bin, split->missing_left, missing_bin);
        rows[n_left] = row;
        right[n_right] = row;
        n_left += left;
        n_right += !left;
    }
    return n_left;
}

/* Parts the rows of a node, each thread an even share of them; returns how many go left. */
static int64_t part_node(gmo_grower *g, const gmo_node *node) {
    int32_t *rows = g->rows + node->begin, *spare = g->spare, n_threads = g->params->n_threads;
    int64_t count = node->count, n_left = 0;
    if (!GMO_PARALLEL(n_threads, count * 64)) {
        n_left = part_rows(g->shape.data, &node->split, rows, spare, count);
        memcpy(rows + n_left, spare, (size_t)(count - n_left) * sizeof *rows);
        return n_left;
    }
#pragma omp parallel num_threads(n_threads)
    {
        int32_t thread = gmo_thread_number(), n_parts = gmo_thread_count();
        gmo_range part = gmo_thread_range(count);
        g->part_left[thread] =
            part_rows(g->shape.data, &node->split, rows + part.first, spare + part.first, part.last - part.first);
#pragma omp barrier
        /* Lefts move down one part after the other, since they move over each other; then rights have their places. */
#pragma omp single
        for (int32_t i = 0; i < n_parts; i++) {
            memmove(rows + n_left, rows + count * i / n_parts, (size_t)g->part_left[i] * sizeof *rows);
            n_left += g->part_left[i];
        }
        int64_t at = n_left;
        for (int32_t i = 0; i < thread; i++)
            at += count * (i + 1) / n_parts - count * i / n_parts - g->part_left[i];
        memcpy(rows + at, spare + part.first, (size_t)(part.last - part.first - g->part_left[thread]) * sizeof *rows);
    }
    return n_left;
}

/* Lets the parent in the tree point to child: a node number or -1 - leaf. */
static void link_child(gmo_grower *g, int32_t parent, bool is_left, int32_t child) {
    if (parent < 0)
        return;
    int64_t at = g->trees->node_start[g->trees->n_trees - 1] + parent;
    if (is_left)
        g->trees->left[at] = child;
    else
        g->trees->right[at] = child;
}

gmo_status gmo_grower_split(gmo_grower *g, int64_t node, int64_t *left, int64_t *right) {
    gmo_node parent = g->nodes[node];
    int32_t number;
    GMO_TRY(gmo_trees_add_node(g->trees, parent.split.feature, parent.split.bin, parent.split.missing_left, &number));
    link_child(g, parent.parent, parent.is_left, number);
    double start = gmo_seconds();
    int64_t n_left = part_node(g, &parent);
    g->times.partition += gmo_seconds() - start;
    GMO_TRY(add_node(g, parent.begin, n_left, parent.depth + 1, number, true, left));
    return add_node(g, parent.begin + n_left, parent.count - n_left, parent.depth + 1, number, false, right);
}

gmo_status gmo_grower_make_leaf(gmo_grower *g, int64_t node) {
    const gmo_node *n = &g->nodes[node];
    int32_t width = g->fixed.d, leaf;
    GMO_TRY(gmo_reserve((void **)&g->leaves, &g->leaf_capacity, g->n_leaves + 1, sizeof *g->leaves));
    GMO_TRY(gmo_trees_add_leaf(g->trees, width, &leaf));
    link_child(g, n->parent, n->is_left, -1 - leaf);
    g->leaves[g->n_leaves++] = (gmo_leaf_rows){n->begin, n->count, leaf};
    gmo_grower_release(g, node);
    return GMO_OK;
}

/* Whether node a is split before node b: larger gain, then the one made first. */
static bool before(const gmo_grower *g, int64_t a, int64_t b) {
    double gain_a = g->nodes[a].split.gain, gain_b = g->nodes[b].split.gain;
    return gain_a > gain_b || (gain_a == gain_b && a < b);
}

/* pending is a binary heap here. */
static gmo_status heap_push(gmo_grower *g, int64_t node) {
    GMO_TRY(gmo_reserve((void **)&g->pending, &g->pending_capacity, g->n_pending + 1, sizeof *g->pending));
    int64_t at = g->n_pending++;
    for (; at > 0 && before(g, node, g->pending[(at - 1) / 2]); at = (at - 1) / 2)
        g->pending[at] = g->pending[(at - 1) / 2];
    g->pending[at] = node;
    return GMO_OK;
}

static int64_t heap_pop(gmo_grower *g) {
    int64_t top = g->pending[0], last = g->pending[--g->n_pending], at = 0;
    for (int64_t child = 1; child < g->n_pending; child = 2 * at + 1) {
        if (child + 1 < g->n_pending && before(g, g->pending[child + 1], g->pending[child]))
            child++;
        if (!before(g, g->pending[child], last))
            break;
        g->pending[at] = g->pending[child];
        at = child;
    }
    g->pending[at] = last;
    return top;
}

static bool may_split(const gmo_grower *g, int64_t node) {
    return g->nodes[node].depth < g->params->max_depth && g->nodes[node].count >= 2 * g->params->min_samples_leaf;
}

/* A searched node waits for its turn if its gain is enough, else it is a leaf. */
static gmo_status settle(gmo_grower *g, int64_t node, bool searched) {
    if (searched && g->nodes[node].split.feature >= 0 && g->nodes[node].split.gain > g->params->min_split_gain)
        return heap_push(g, node);
    return gmo_grower_make_leaf(g, node);
}

gmo_status gmo_grow_complete(gmo_grower *g) {
    int64_t root, left, right;
    GMO_TRY(gmo_grower_start(g, &root));
    bool want_root = may_split(g, root) && g->params->max_leaves > 1;
    if (want_root)
        GMO_TRY(gmo_grower_search(g, root));
    GMO_TRY(settle(g, root, want_root));
    while (g->n_pending > 0 && g->n_leaves + g->n_pending < g->params->max_leaves) {
        int64_t node = heap_pop(g);
        GMO_TRY(gmo_grower_split(g, node, &left, &right));
        /* With these two the budget may be used up: then neither needs a histogram. */
        bool room = g->n_leaves + g->n_pending + 2 < g->params->max_leaves;
        bool want_left = room && may_split(g, left), want_right = room && may_split(g, right);
        GMO_TRY(gmo_grower_search_children(g, node, left, right, want_left, want_right));
        GMO_TRY(settle(g, left, want_left));
        GMO_TRY(settle(g, right, want_right));
    }
    while (g->n_pending > 0)
        GMO_TRY(gmo_grower_make_leaf(g, heap_pop(g)));
    return GMO_OK;
}
