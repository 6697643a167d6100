/* Nodes of few rows: copies of their rows, and bounds of the outputs that matter little in them (gmo_split_prepare_small of
 * split.h).
 *
 * Deep in a tree most outputs hardly vary within a node: of a hundred classes a few have rows there. What such an output
 * can score on both sides of any split with n_left rows on the left is bounded from the smallest and largest derivative of
 * the node's rows, so that all of them together are one number for each n_left, and the candidates need estimates of the
 * others alone. */
#include "screen.h"

#include <string.h>

/* Outputs are left out while what they may gain, in an even split, stays below this share of the node's mean score. */
#define LOOSE_SHARE 0.1

/* Smallest and largest of every lane of the node's rows. */
GMO_CLONES
static void find_ranges(const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows, int32_t *least, int32_t *most) {
    int32_t stride = fixed->stride;
    const int32_t *first = fixed->rows + rows[0] * (int64_t)stride;
    memcpy(least, first, (size_t)stride * sizeof *least);
    memcpy(most, first, (size_t)stride * sizeof *most);
    for (int64_t i = 1; i < n_rows; i++) {
        const int32_t *row = fixed->rows + rows[i] * (int64_t)stride;
        for (int32_t j = 0; j < stride; j++) {
            least[j] = row[j] < least[j] ? row[j] : least[j];
            most[j] = row[j] > most[j] ? row[j] : most[j];
        }
    }
}

/* What is known of one output in a node. */
typedef struct {
    double g, least_g, most_g; /* sum over the rows, and of a row */
    double h, least_h, most_h; /* the same of Hessians */
    double lambda, least_score;
} output_range;

static output_range range_of(const gmo_splitter *s, const gmo_split_node *node, int32_t j) {
    const gmo_fixed *fixed = s->fixed;
    double unit = fixed->gradient_unit[j], h_unit = fixed->hessian_unit[j];
    output_range r = {.g = node->total[j] * unit,
                      .least_g = node->least[j] * unit,
                      .most_g = node->most[j] * unit,
                      .h = (double)node->n_rows,
                      .least_h = 1,
                      .most_h = 1,
                      .lambda = s->reg_lambda};
    if (fixed->has_hessian) {
        r.h = node->total[fixed->d + j] * h_unit;
        r.least_h = node->least[fixed->d + j] * h_unit;
        r.most_h = node->most[fixed->d + j] * h_unit;
    }
    r.least_score = r.g * r.g / (r.h + 2 * r.lambda);
    return r;
}

GMO_INLINE double larger(double a, double b) { return a > b ? a : b; }
GMO_INLINE double smaller(double a, double b) { return a < b ? a : b; }

/* The most that the output can gain with n_left and n_right rows, over the least that it scores in any split [screen.c]:
 * the sum of both sides' scores is convex in the left side's gradient, so that it is largest at one end of what that can
 * be. Estimates are made only where no denominator can be 0. */
GMO_INLINE double most_gain(const output_range *r, double n_left, double n_right) {
    double low = larger(n_left * r->least_g, r->g - n_right * r->most_g);
    double high = smaller(n_left * r->most_g, r->g - n_right * r->least_g);
    double h_left = larger(n_left * r->least_h, r->h - n_right * r->most_h) + r->lambda;
    double h_right = larger(n_right * r->least_h, r->h - n_left * r->most_h) + r->lambda;
    return larger(low * low / h_left + (r->g - low) * (r->g - low) / h_right,
                  high * high / h_left + (r->g - high) * (r->g - high) / h_right) -
           r->least_score;
}

/* Adds what outputs[first .. last) may gain, for every number of rows on the left that a candidate can have. */
GMO_CLONES
static void add_gains(const gmo_splitter *s, const gmo_split_node *node, int32_t first, int32_t last, double *gains) {
    int32_t n_rows = (int32_t)node->n_rows, side = (int32_t)s->min_side;
    for (int32_t k = first; k < last; k++) {
        output_range r = range_of(s, node, node->outputs[k]);
        for (int32_t n_left = side; n_left <= n_rows - side; n_left++)
            gains[n_left] += most_gain(&r, n_left, n_rows - n_left);
    }
}

static int by_gain(const void *a, const void *b) {
    const gmo_ranked_output *x = a, *y = b;
    if (x->gain != y->gain)
        return x->gain > y->gain ? -1 : 1;
    return x->output - y->output;
}

/* Orders the outputs by what they may gain, and chooses the first so many to be estimated one by one. */
static int32_t choose_outputs(const gmo_splitter *s, gmo_split_node *node) {
    int32_t d = s->fixed->d, n_rows = (int32_t)node->n_rows, n_chosen = 0;
    double score = 0;
    find_ranges(s->fixed, node->rows, n_rows, node->least, node->most);
    for (int32_t j = 0; j < d; j++) {
        output_range r = range_of(s, node, j);
        node->ranked[j] = (gmo_ranked_output){most_gain(&r, n_rows / 2, n_rows - n_rows / 2), j};
        score += r.least_score;
    }
    qsort(node->ranked, (size_t)d, sizeof *node->ranked, by_gain);
    for (int32_t k = 0; k < d; k++) {
        node->outputs[k] = node->ranked[k].output;
        n_chosen += node->ranked[k].gain > LOOSE_SHARE * score / d;
    }
    return n_chosen;
}

/* Chooses outputs, and bounds what the rest may gain; returns how many are to be estimated. */
static int32_t bound_outputs(const gmo_splitter *s, gmo_split_node *node) {
    int32_t d = s->fixed->d, n = choose_outputs(s, node);
    n = (n + GMO_LANES - 1) / GMO_LANES * GMO_LANES; /* whole vectors cost no more */
    n = n < d ? n : d;
    double *rest = node->rest, *later = node->rest + s->small_rows + 1;
    size_t bytes = (size_t)(node->n_rows + 1) * sizeof *rest;
    memset(rest, 0, bytes);
    add_gains(s, node, n, d, rest);
    node->estimates.rest = rest;
    if (n <= GMO_FIRST_OUTPUTS)
        return n;
    memcpy(later, rest, bytes);
    add_gains(s, node, GMO_FIRST_OUTPUTS, n, later);
    node->estimates.later = later;
    return n;
}

static void copy_lanes(const gmo_split_node *node, const gmo_fixed *fixed, int32_t d, int32_t lanes,
                       const int32_t *from, int32_t *to) {
    for (int32_t part = 0; part < (fixed->has_hessian ? 2 : 1); part++) {
        for (int32_t k = 0; k < d; k++)
            to[k] = from[part * fixed->d + node->outputs[k]];
        memset(to + d, 0, (size_t)(lanes - d) * sizeof *to);
        to += lanes;
    }
}

void gmo_split_prepare_small(gmo_splitter *s, int32_t number, const int32_t *rows, int64_t n_rows,
                             const int32_t *total) {
    gmo_split_node *node = &s->nodes[number];
    gmo_estimates *e = &node->estimates;
    const gmo_fixed *fixed = s->fixed;
    node->total = total;
    node->rows = rows;
    node->n_rows = n_rows;
    e->on = false;
    if (!s->estimates)
        return;
    e->rest = e->later = NULL;
    e->d = s->top_k ? gmo_split_all_outputs(s, node) : bound_outputs(s, node);
    e->hessian = (e->d + GMO_LANES - 1) / GMO_LANES * GMO_LANES;
    e->stride = fixed->has_hessian ? 2 * e->hessian : e->hessian;
    for (int64_t i = 0; i < n_rows; i++)
        copy_lanes(node, fixed, e->d, e->hessian, fixed->rows + rows[i] * (int64_t)fixed->stride,
                   node->copied + i * e->stride);
    copy_lanes(node, fixed, e->d, e->hessian, total, node->copied_total);
    e->total = node->copied_total;
    e->rows = node->copied;
    gmo_screen_prepare(s, node);
}
