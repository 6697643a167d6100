/* Growth as the released program does it (GBDTMO, commit 639615f), to measure what it does to results. Its rules, found
 * by reading and running it: the node cache holds few pending nodes and forgets the rest; a child under the minimum of
 * samples is dropped; the leaf budget ends the tree at once. Rows of dropped and still pending nodes get nothing. */
#include "grow.h"

#include <string.h>

/* Inserts into the list, which is kept in descending order of gain; a node that finds no room is forgotten. */
static gmo_status list_push(gmo_grower *g, int64_t node) {
    int64_t cache = g->params->node_cache;
    double gain = g->nodes[node].split.gain;
    if (g->n_pending == cache) {
        int64_t last = g->pending[cache - 1];
        if (!(gain > g->nodes[last].split.gain)) {
            gmo_grower_release(g, node);
            return GMO_OK;
        }
        gmo_grower_release(g, last);
        g->n_pending--;
    }
    GMO_TRY(gmo_reserve((void **)&g->pending, &g->pending_capacity, g->n_pending + 1, sizeof *g->pending));
    int64_t at = g->n_pending++;
    for (; at > 0 && g->nodes[g->pending[at - 1]].split.gain < gain; at--)
        g->pending[at] = g->pending[at - 1];
    g->pending[at] = node;
    return GMO_OK;
}

static int64_t list_take_first(gmo_grower *g) {
    int64_t first = g->pending[0];
    g->n_pending--;
    memmove(g->pending, g->pending + 1, (size_t)g->n_pending * sizeof *g->pending);
    return first;
}

static bool is_kept(const gmo_grower *g, int64_t node) { return g->nodes[node].count >= g->params->min_samples_leaf; }

static bool may_split(const gmo_grower *g, int64_t node) {
    return is_kept(g, node) && g->nodes[node].depth < g->params->max_depth;
}

static gmo_status settle(gmo_grower *g, int64_t node) {
    if (!is_kept(g, node))
        return GMO_OK;
    bool splits = g->nodes[node].split.feature >= 0 && g->nodes[node].split.gain > g->params->min_split_gain;
    return splits ? list_push(g, node) : gmo_grower_make_leaf(g, node);
}

gmo_status gmo_grow_released(gmo_grower *g) {
    int64_t root, left, right;
    GMO_TRY(gmo_grower_start(g, &root));
    GMO_TRY(gmo_grower_search(g, root));
    if (g->nodes[root].split.feature < 0)
        return gmo_grower_make_leaf(g, root);
    GMO_TRY(list_push(g, root));
    while (g->n_pending > 0) {
        int64_t node = list_take_first(g);
        GMO_TRY(gmo_grower_split(g, node, &left, &right));
        GMO_TRY(gmo_grower_search_children(g, node, left, right, may_split(g, left), may_split(g, right)));
        if (g->n_leaves >= g->params->max_leaves)
            return GMO_OK;
        GMO_TRY(settle(g, left));
        if (g->n_leaves >= g->params->max_leaves)
            return GMO_OK;
        GMO_TRY(settle(g, right));
    }
    return GMO_OK;
}
