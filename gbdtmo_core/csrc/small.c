/* Nodes of few rows: copies of their rows, and bounds of the outputs that matter little in them (gmo_split_prepare_small of
 * split.h).
 *
 * Deep in a tree most outputs hardly vary within a node: of a hundred classes a few have rows there. What such an output
 * can score on both sides of any split with n_left rows on the left is bounded from the smallest and largest derivative of
 * the node's rows, so that all of them together are one number for each n_left, and the candidates need estimates of the
 * others alone. */
#include "split.h"

#include <string.h>

/* Outputs are left out while what their bounds exceed their scores by, in an even split, stays below this share of the
 * node's score. */
#define LOOSE_SHARE 0.1
/* Fewer are not worth it: estimates come sixteen at a time. */
#define LEAST_LEFT_OUT 16

/* What is known of one output in a node. */
typedef struct {
    double g, least_g, most_g; /* sum over the rows, and of a row */
    double h, least_h, most_h; /* the same of Hessians */
    double lambda;
} output_range;

static output_range range_of(const gmo_splitter *s, const gmo_small_node *node, int32_t j) {
    const gmo_fixed *fixed = s->fixed;
    int32_t least_g = INT32_MAX, most_g = INT32_MIN, least_h = INT32_MAX, most_h = INT32_MIN;
    for (int64_t i = 0; i < node->n_rows; i++) {
        const int32_t *row = fixed->rows + node->rows[i] * (int64_t)fixed->stride + j;
        least_g = row[0] < least_g ? row[0] : least_g;
        most_g = row[0] > most_g ? row[0] : most_g;
        if (!fixed->has_hessian)
            continue;
        least_h = row[fixed->d] < least_h ? row[fixed->d] : least_h;
        most_h = row[fixed->d] > most_h ? row[fixed->d] : most_h;
    }
    double unit = fixed->gradient_unit[j], h_unit = fixed->hessian_unit[j];
    output_range r = {node->total[j] * unit, least_g * unit, most_g * unit, (double)node->n_rows, 1, 1, s->reg_lambda};
    if (fixed->has_hessian) {
        r.h = node->total[fixed->d + j] * h_unit;
        r.least_h = least_h * h_unit;
        r.most_h = most_h * h_unit;
    }
    return r;
}

GMO_INLINE double larger(double a, double b) { return a > b ? a : b; }
GMO_INLINE double smaller(double a, double b) { return a < b ? a : b; }

/* The most that the output can score on both sides with n_left and n_right rows: the sum of both scores is convex in the
 * left side's gradient, so that it is largest at one end of what that can be. Estimates are made only where no denominator
 * can be 0. */
GMO_INLINE double most_score(const output_range *r, double n_left, double n_right) {
    double low = larger(n_left * r->least_g, r->g - n_right * r->most_g);
    double high = smaller(n_left * r->most_g, r->g - n_right * r->least_g);
    double h_left = larger(n_left * r->least_h, r->h - n_right * r->most_h) + r->lambda;
    double h_right = larger(n_right * r->least_h, r->h - n_left * r->most_h) + r->lambda;
    return larger(low * low / h_left + (r->g - low) * (r->g - low) / h_right,
                  high * high / h_left + (r->g - high) * (r->g - high) / h_right);
}

/* Its score where both sides have half of everything. */
static double even_score(const output_range *r) { return r->g * r->g / 2 / (r->h / 2 + r->lambda); }

/* Adds the output's bounds for every number of rows on the left. */
GMO_CLONES
static void add_bounds(const output_range *range, int32_t n_rows, double *rest) {
    output_range r = *range;
    for (int32_t n_left = 1; n_left < n_rows; n_left++)
        rest[n_left] += most_score(&r, n_left, n_rows - n_left);
}

/* Chooses the outputs to be estimated one by one, and bounds the rest; returns how many are chosen. */
static int32_t choose_outputs(const gmo_splitter *s, gmo_small_node *node) {
    int32_t d = s->fixed->d, n_chosen = 0, n_rows = (int32_t)node->n_rows;
    double score = 0;
    for (int32_t j = 0; j < d; j++) {
        double h = s->fixed->has_hessian ? node->total[s->fixed->d + j] * s->fixed->hessian_unit[j] : n_rows;
        double g = node->total[j] * s->fixed->gradient_unit[j];
        score += g * g / (h + s->reg_lambda);
    }
    double bearable = LOOSE_SHARE * score / d;
    memset(node->rest, 0, (size_t)(n_rows + 1) * sizeof *node->rest);
    for (int32_t j = 0; j < d; j++) {
        output_range r = range_of(s, node, j);
        if (most_score(&r, n_rows / 2, n_rows - n_rows / 2) - even_score(&r) <= bearable)
            add_bounds(&r, n_rows, node->rest);
        else
            node->outputs[n_chosen++] = j;
    }
    return n_chosen;
}

static void copy_lanes(const gmo_small_node *node, const gmo_fixed *fixed, int32_t d, int32_t lanes,
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
    gmo_small_node *node = &s->small[number];
    const gmo_fixed *fixed = s->fixed;
    node->rows = rows;
    node->n_rows = n_rows;
    node->total = total;
    if (!s->screen.on)
        return;
    int32_t d = s->top_k ? fixed->d : choose_outputs(s, node);
    bool is_bounded = !s->top_k && fixed->d - d >= LEAST_LEFT_OUT;
    if (!is_bounded) {
        d = fixed->d;
        for (int32_t j = 0; j < d; j++)
            node->outputs[j] = j;
    }
    int32_t lanes = (d + GMO_LANES - 1) / GMO_LANES * GMO_LANES, stride = fixed->has_hessian ? 2 * lanes : lanes;
    for (int64_t i = 0; i < n_rows; i++)
        copy_lanes(node, fixed, d, lanes, fixed->rows + rows[i] * (int64_t)fixed->stride, node->copied + i * stride);
    copy_lanes(node, fixed, d, lanes, total, node->copied_total);
    for (int32_t k = 0; k < lanes; k++) {
        node->weight[k] = k < d ? s->screen.weight[node->outputs[k]] : 0;
        node->slope[k] = k < d ? s->screen.slope[node->outputs[k]] : 0;
        node->add[k] = k < d ? s->screen.add[node->outputs[k]] : 1;
    }
    node->estimated = (gmo_estimated){d,
                                      lanes,
                                      stride,
                                      node->copied_total,
                                      node->weight,
                                      node->slope,
                                      node->add,
                                      node->copied,
                                      is_bounded ? node->rest : NULL};
}
