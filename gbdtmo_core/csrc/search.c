/* Search of nodes for their splits, by rows or by histogram, and the pool of histograms (the second half of grow.h). */
#include "grow.h"

#include <string.h>

static int32_t *slot_total(const gmo_grower *g, int64_t slot) { return g->pool[slot] + g->shape.size; }

void gmo_grower_release(gmo_grower *g, int64_t node) {
    if (g->nodes[node].slot >= 0)
        g->slot_owner[g->nodes[node].slot] = -1;
    g->nodes[node].slot = -1;
}

/* A free slot, or that of the pending node with the least gain: its histogram is rebuilt, should its turn come. */
static int64_t find_slot(gmo_grower *g) {
    for (int64_t i = 0; i < g->n_slots; i++)
        if (g->slot_owner[i] < 0)
            return i;
    int64_t victim = -1;
    for (int64_t i = 0; i < g->n_pending; i++) {
        int64_t node = g->pending[i];
        if (g->nodes[node].slot >= 0 && (victim < 0 || g->nodes[node].split.gain < g->nodes[victim].split.gain))
            victim = node;
    }
    if (victim < 0)
        return -1;
    int64_t slot = g->nodes[victim].slot;
    gmo_grower_release(g, victim);
    return slot;
}

static gmo_status take_slot(gmo_grower *g, int64_t node) {
    int64_t slot = find_slot(g);
    if (slot < 0)
        return GMO_ERR_MEMORY;
    if (!g->pool[slot]) {
        g->pool[slot] = gmo_alloc(gmo_slot_size(g), sizeof **g->pool);
        if (!g->pool[slot])
            return GMO_ERR_MEMORY;
        /* The spare elements of the total are read, though they count for nothing. */
        memset(slot_total(g, slot), 0, (size_t)gmo_total_size(&g->shape) * sizeof **g->pool);
    }
    g->slot_owner[slot] = node;
    g->nodes[node].slot = slot;
    return GMO_OK;
}

/* How a node is searched: not at all (a histogram may be built for the sibling's sake), by its rows, or from a histogram
 * that is built from its rows or is what the sibling's leaves of the parent's. */
typedef enum { WAY_NONE, WAY_ROWS, WAY_BUILD, WAY_SUBTRACT } search_way;

typedef struct {
    int64_t node;
    const int32_t *rows;
    int64_t count;
    int32_t number; /* 0 or 1, of two siblings */
    bool wanted;    /* whether a split is looked for */
    search_way way;
    int32_t *kept;         /* where its histogram is kept; NULL: a block of it lives as long as the block is searched */
    const int32_t *parent; /* the parent's histogram, for WAY_SUBTRACT; may be kept */
    int32_t *total;
} search;

/* The block's part of the node's histogram. */
static int32_t *part_of(const gmo_grower *g, const search *s, const gmo_hist_block *block) {
    if (s->kept)
        return s->kept + g->shape.start[block->first];
    return g->parts + (2 * gmo_thread_number() + s->number) * g->part_size;
}

static void scan(const gmo_grower *g, const search *s, const gmo_hist_block *block, const int32_t *part,
                 gmo_split *best) {
    if (!s->wanted || s->way == WAY_NONE)
        return;
    const gmo_split_node *node = &g->splitter.nodes[s->number];
    if (s->way == WAY_ROWS)
        gmo_split_scan_small(&g->splitter, node, block, best);
    else
        gmo_split_scan(&g->splitter, node, part, block, best);
}

/* Builds and searches one block of two siblings. */
static void search_block(const gmo_grower *g, const gmo_hist_block *block, const search pair[2], gmo_split best[2],
                         gmo_growth_times *times) {
    const search *small = &pair[0], *large = &pair[1];
    int32_t *small_part = part_of(g, small, block), *large_part = part_of(g, large, block);
    double start = gmo_seconds();
    if (small->way == WAY_BUILD)
        gmo_hist_build(&g->shape, &g->fixed, small->rows, small->count, small->total, block, small_part);
    double built = gmo_seconds();
    times->histogram += built - start;
    scan(g, small, block, small_part, &best[0]);
    if (large->way == WAY_SUBTRACT)
        gmo_hist_subtract(&g->shape, block, large->parent + g->shape.start[block->first], small_part, large_part);
    scan(g, large, block, large_part, &best[1]);
    times->split += gmo_seconds() - built;
}

/* Work of a search, in simple operations. */
static int64_t search_work(const gmo_grower *g, const search pair[2]) {
    static const int64_t cell_passes[] = {[WAY_NONE] = 0, [WAY_ROWS] = 0, [WAY_BUILD] = 2, [WAY_SUBTRACT] = 3};
    static const int64_t row_passes[] = {[WAY_NONE] = 0, [WAY_ROWS] = 1, [WAY_BUILD] = 1, [WAY_SUBTRACT] = 0};
    int64_t m = g->shape.data->n_features, work = 0;
    for (int i = 0; i < 2; i++)
        work += row_passes[pair[i].way] * pair[i].count * m + cell_passes[pair[i].way] * g->shape.cell_start[m];
    return work * g->shape.stride;
}

static void run_search(gmo_grower *g, const search pair[2]) {
    gmo_split best[2] = {{.feature = -1}, {.feature = -1}};
    int32_t n_threads = g->params->n_threads;
    double start = gmo_seconds();
    for (int i = 0; i < 2; i++)
        if (pair[i].way == WAY_ROWS)
            gmo_split_prepare_small(&g->splitter, i, pair[i].rows, pair[i].count, pair[i].total);
        else if (pair[i].wanted && pair[i].way != WAY_NONE)
            gmo_split_prepare(&g->splitter, i, pair[i].total);
    g->times.split += gmo_seconds() - start;
    if (pair[0].way == WAY_BUILD)
        g->times.entries += gmo_hist_entries(&g->shape, pair[0].rows, pair[0].count);
#pragma omp parallel num_threads(n_threads) if (GMO_PARALLEL(n_threads, search_work(g, pair)))
    {
        gmo_split own[2] = {{.feature = -1}, {.feature = -1}};
        gmo_growth_times times = {0};
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t b = 0; b < g->shape.n_blocks; b++)
            search_block(g, &g->shape.blocks[b], pair, own, &times);
#pragma omp critical(gmo_grow_merge)
        {
            for (int i = 0; i < 2; i++)
                best[i] = gmo_split_better(best[i], own[i]);
            g->times.histogram += times.histogram / gmo_thread_count();
            g->times.split += times.split / gmo_thread_count();
        }
    }
    for (int i = 0; i < 2; i++)
        if (pair[i].wanted && pair[i].way != WAY_NONE) {
            gmo_split_finish(&g->splitter, pair[i].total, &best[i]);
            g->nodes[pair[i].node].split = best[i];
        }
}

static search search_of(const gmo_grower *g, int64_t node, int32_t number, bool wanted) {
    const gmo_node *n = &g->nodes[node];
    return (search){node, g->rows + n->begin, n->count, number, wanted, WAY_NONE, NULL, NULL, NULL};
}

static const search no_search = {.node = -1, .number = 1};

static bool is_small(const gmo_grower *g, int64_t node) { return g->nodes[node].count <= g->splitter.small_rows; }

/* Whether a histogram of the node may serve a child: one that may be split, and has too many rows for a search by them. */
static bool is_worth_keeping(const gmo_grower *g, int64_t node) {
    int64_t most_rows = g->nodes[node].count - g->splitter.min_side; /* of a child */
    return g->nodes[node].depth + 1 < g->params->max_depth && most_rows >= 2 * g->splitter.min_side &&
           most_rows > g->splitter.small_rows;
}

/* Sum of a node's rows into s->total, each thread over an even share of them. */
static void sum_node(const gmo_grower *g, const search *s) {
    int32_t stride = g->shape.stride, n_threads = g->params->n_threads;
    if (!GMO_PARALLEL(n_threads, s->count * stride)) {
        gmo_fixed_total(&g->fixed, s->rows, s->count, s->total);
        return;
    }
    memset(s->total, 0, (size_t)stride * sizeof *s->total);
#pragma omp parallel num_threads(n_threads)
    {
        int32_t *own = g->thread_totals + gmo_thread_number() * gmo_total_size(&g->shape);
        gmo_range part = gmo_thread_range(s->count);
        gmo_fixed_total(&g->fixed, s->rows + part.first, part.last - part.first, own);
#pragma omp critical(gmo_grow_merge)
        gmo_add_row(s->total, own, stride);
    }
}

/* Sets a search up that sums the node's rows: by its rows, or with a histogram. */
static gmo_status prepare(gmo_grower *g, search *s, search_way way, int32_t *spare_total) {
    s->way = way;
    s->total = spare_total;
    if (way == WAY_BUILD && s->wanted && is_worth_keeping(g, s->node)) {
        GMO_TRY(take_slot(g, s->node));
        s->kept = g->pool[g->nodes[s->node].slot];
        s->total = slot_total(g, g->nodes[s->node].slot);
    }
    sum_node(g, s);
    return GMO_OK;
}

/* Sets the larger child's search up by subtraction; it takes the parent's slot over if its histogram is worth keeping. */
static void prepare_difference(gmo_grower *g, int64_t parent, const search *small, search *large) {
    int64_t slot = g->nodes[parent].slot;
    const int32_t *parent_total = slot_total(g, slot);
    large->way = WAY_SUBTRACT;
    large->parent = g->pool[slot];
    large->total = g->totals + gmo_total_size(&g->shape);
    if (is_worth_keeping(g, large->node)) {
        g->nodes[parent].slot = -1;
        g->nodes[large->node].slot = slot;
        g->slot_owner[slot] = large->node;
        large->kept = g->pool[slot];
        large->total = slot_total(g, slot);
    }
    for (int32_t j = 0; j < g->shape.stride; j++)
        large->total[j] = parent_total[j] - small->total[j];
}

/* With the exact Hessian no histogram outlives its search, so that nothing is subtracted. */
static void search_exact(gmo_grower *g, int64_t node) {
    const int32_t *rows = g->rows + g->nodes[node].begin;
    int64_t count = g->nodes[node].count;
    gmo_exact_times times = {0};
    g->nodes[node].split = gmo_exact_search(&g->exact, rows, count, &times);
    g->times.histogram += times.histogram;
    g->times.split += times.split;
    g->times.entries += gmo_hist_entries(&g->shape, rows, count);
}

gmo_status gmo_grower_search(gmo_grower *g, int64_t node) {
    if (g->exact.d > 0) {
        search_exact(g, node);
        return GMO_OK;
    }
    search pair[2] = {search_of(g, node, 0, true), no_search};
    GMO_TRY(prepare(g, &pair[0], is_small(g, node) ? WAY_ROWS : WAY_BUILD, g->totals));
    run_search(g, pair);
    return GMO_OK;
}

gmo_status gmo_grower_search_children(gmo_grower *g, int64_t parent, int64_t left, int64_t right, bool want_left,
                                      bool want_right) {
    if (g->exact.d > 0) {
        if (want_left)
            search_exact(g, left);
        if (want_right)
            search_exact(g, right);
        return GMO_OK;
    }
    bool left_larger = g->nodes[left].count > g->nodes[right].count;
    search pair[2] = {left_larger ? search_of(g, right, 0, want_right) : search_of(g, left, 0, want_left),
                      left_larger ? search_of(g, left, 1, want_left) : search_of(g, right, 1, want_right)};
    search *small = &pair[0], *large = &pair[1];
    bool by_histogram = large->wanted && !is_small(g, large->node);
    bool subtract = by_histogram && g->nodes[parent].slot >= 0, rebuild = by_histogram && !subtract;
    if (small->wanted || subtract)
        GMO_TRY(prepare(g, small, subtract || !is_small(g, small->node) ? WAY_BUILD : WAY_ROWS, g->totals));
    if (subtract)
        prepare_difference(g, parent, small, large);
    else if (large->wanted && !rebuild)
        GMO_TRY(prepare(g, large, WAY_ROWS, g->totals + gmo_total_size(&g->shape)));
    run_search(g, pair);
    gmo_grower_release(g, parent);
    return rebuild ? gmo_grower_search(g, large->node) : GMO_OK;
}
