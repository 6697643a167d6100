/* Gradient boosted decision trees for multiple outputs: the public interface of the C core.
 *
 * Source: Zhang & Jung, "GBDT-MO", arXiv 1909.04373 (equation and algorithm numbers below are the paper's).
 *
 * Conventions
 * - Arrays are C-contiguous (row-major) unless a stride is given. Rows n, features m, outputs d.
 * - The caller owns every array it passes and keeps it alive while an object that borrowed it lives.
 * - Fallible functions return a gmo_status; on anything but GMO_OK their outputs are unspecified, and nothing leaks.
 * - No function prints, exits, touches files or keeps state outside its arguments. Two threads may call any function at
 *   once as long as they do not share a gmo_booster.
 * - Values are checked by the caller (NaN in targets, parameter ranges); sizes and allocations are checked here.
 * - Results do not depend on n_threads: same input, same bits.
 */
#ifndef GBDTMO_H
#define GBDTMO_H

#include <stdint.h>

/* [cffi: the declarations between these two marks are read by build_native.py] */
typedef enum {
    GMO_OK = 0,
    GMO_ERR_MEMORY = 1,  /* an allocation failed */
    GMO_ERR_SIZE = 2,    /* a product of sizes, a row number or a node number does not fit its type */
    GMO_ERR_NUMERIC = 3, /* gradients, leaf values or scores became infinite or NaN */
    GMO_ERR_ARGUMENT = 4 /* a parameter is outside its range */
} gmo_status;

enum { GMO_LOSS_SQUARED = 0, GMO_LOSS_SOFTMAX = 1, GMO_LOSS_SIGMOID = 2 };
enum { GMO_GROWTH_COMPLETE = 0, GMO_GROWTH_RELEASED = 1 };
enum { GMO_BINNING_QUANTILE = 0, GMO_BINNING_RELEASED = 1 };
enum { GMO_METRIC_MSE = 0, GMO_METRIC_RMSE = 1, GMO_METRIC_MAE = 2, GMO_METRIC_ACCURACY = 3, GMO_METRIC_LOG_LOSS = 4 };

enum { GMO_EXACT_MAX_OUTPUTS = 128 };

/* A strided view of a matrix of float32 or float64 values; strides in bytes. */
typedef struct {
    const char *data;
    int64_t n_rows, n_cols, row_stride, col_stride;
    int32_t is_float64;
} gmo_matrix;

typedef struct {
    int32_t loss, growth, metric;
    int32_t top_k;            /* outputs kept in a leaf; 0 or >= d: all */
    int32_t restricted;       /* 1: both sides of a split share one top-k set [eq. 22]; 0: each its own [eq. 21] */
    int32_t constant_hessian; /* 1: every second derivative is taken as 1 */
    int32_t exact_hessian;    /* 1: softmax's whole Hessian; for complete growth of trees for all outputs, at most
                                 GMO_EXACT_MAX_OUTPUTS, without top_k and reg_alpha */
    int32_t single_output;    /* 1: a tree per output (GBDT-SO) */
    int32_t max_depth;
    int32_t node_cache;            /* released growth: pending nodes at most */
    int32_t n_threads;             /* >= 1 */
    int64_t max_leaves;            /* >= 1 */
    int64_t min_samples_leaf;      /* >= 1 */
    int64_t early_stopping_rounds; /* 0: off */
    int64_t histogram_pool_bytes;  /* complete growth: histograms beyond this are dropped and rebuilt when needed */
    double learning_rate, reg_lambda, reg_alpha, min_split_gain;
} gmo_params;

/* Binned rows. bins is (n_rows, n_features); feature f has edges edge[edge_start[f] .. edge_start[f + 1]), ascending, at
 * most 254 of them. Value x falls in the first bin b with x <= edge b, else in the bin after the last edge; a missing
 * value (NaN) has bin number n_edges + 1. */
typedef struct {
    const uint8_t *bins;
    const int64_t *edge_start; /* (n_features + 1,) */
    int64_t n_rows, n_features;
} gmo_binned;

/* Targets of n rows: labels (n,) for softmax, else values (n, d). The other pointer is NULL. */
typedef struct {
    const int32_t *labels;
    const double *values;
} gmo_target;

/* Trees as arrays. Tree t has nodes node_start[t] .. node_start[t + 1]; node 0 of a tree is its root. left / right hold a
 * node number within the tree (>= 0), a leaf number within the tree as -1 - leaf, or GMO_NO_LEAF (rows that end there
 * get nothing). A row goes left if its bin <= bin of the node; a missing value goes left if missing_left. The vector of
 * leaf l starts at leaf_values[value_start[t] + l * width], width = 1 for a single-output tree, else n_outputs. A tree
 * without nodes gives its only leaf (or, without leaves, nothing) to all rows. */
typedef struct {
    int64_t n_trees;
    int32_t n_outputs;
    const int64_t *node_start, *value_start; /* (n_trees + 1,) */
    const int32_t *n_leaves;                 /* (n_trees,) */
    const int32_t *tree_output;              /* (n_trees,) output served, -1: all */
    const int32_t *tree_round;               /* (n_trees,) boosting round, from 0 */
    const int64_t *n_unassigned;             /* (n_trees,) training rows without a leaf; may be NULL for prediction */
    const int32_t *feature, *left, *right;   /* (n_nodes,) */
    const uint8_t *bin, *missing_left;       /* (n_nodes,) */
    const double *leaf_values;               /* (value_start[n_trees],) scaled by the learning rate */
} gmo_forest;

/* Columns of gmo_progress.profile: seconds of a round (in parallel work the mean over its threads) spent on derivatives,
 * rounding to fixed point, histograms, split search (with subtraction), parting rows, leaf values with new scores, and
 * validation rows; the round's wall time; and the entries outside their feature's most frequent bin that histograms had
 * to add. */
enum {
    GMO_PROFILE_GRADIENT = 0,
    GMO_PROFILE_ROUNDING = 1,
    GMO_PROFILE_HISTOGRAM = 2,
    GMO_PROFILE_SPLIT = 3,
    GMO_PROFILE_PARTITION = 4,
    GMO_PROFILE_LEAF = 5,
    GMO_PROFILE_EVALUATION = 6,
    GMO_PROFILE_TOTAL = 7,
    GMO_PROFILE_ENTRIES = 8,
    GMO_PROFILE_COLUMNS = 9
};

/* What early stopping saw, and what rounds cost. n_tracks is d for single-output squared error, where each output stops on its own, else 1. */
typedef struct {
    int64_t n_rounds, n_tracks;
    const double *history;     /* (n_rounds, n_tracks); NaN after a track stopped; NULL without validation rows */
    const int64_t *best_round; /* (n_tracks,) number of rounds of the best model, from 1; without validation n_rounds */
    const double *profile;     /* (n_rounds, GMO_PROFILE_COLUMNS) */
} gmo_progress;

/* A node as prediction walks it. A row goes right if its value of the feature is > threshold, or if it is missing and the
 * node does not send missing values left. In a leaf the threshold is a NaN whose lower half is the number of the leaf, or
 * -1 where rows get nothing: no value is larger, so that a walk rests there. */
typedef struct {
    double threshold;
    uint32_t feature; /* twice the feature, plus 1 if missing values go left */
    int32_t step;     /* from here to the left child, which the right one follows; 0 in a leaf */
} gmo_packed_node;

/* What prediction reads; all of it borrowed. */
typedef struct {
    const gmo_forest *forest;
    const double *base_score;     /* (n_outputs,) */
    const int64_t *trees;         /* (n_trees,) trees of the forest in the order of adding */
    const gmo_packed_node *nodes; /* (2 * n_nodes + n_trees of the forest,) */
    int64_t n_trees;
} gmo_predictor;

typedef struct gmo_booster gmo_booster;

/* Bin edges of every column of x (alg. 1's bins; the paper leaves the rule open). edges: out, (n_cols, max_bins - 1), row f
 * holds n_edges[f] values. has_missing: out, (n_cols,). 2 <= max_bins <= 255; no infinite values in x. */
gmo_status gmo_bins_fit(const gmo_matrix *x, int32_t rule, int32_t max_bins, int32_t n_threads, double *edges,
                        int32_t *n_edges, uint8_t *has_missing);

/* Bin numbers of every value of x. edges: (edge_start[n_cols],). bins: out, (n_rows, n_cols). */
gmo_status gmo_bins_apply(const gmo_matrix *x, const double *edges, const int64_t *edge_start, int32_t n_threads,
                          uint8_t *bins);

/* A booster borrows bins, has_missing, target and base_score (d,) until it is freed. *out is NULL on failure. */
gmo_status gmo_booster_create(const gmo_params *params, const gmo_binned *train, const uint8_t *has_missing,
                              const gmo_target *target, const double *base_score, int32_t n_outputs, gmo_booster **out);
/* Validation rows, binned with the same edges; borrowed. At most once, before the first round. */
gmo_status gmo_booster_validate(gmo_booster *booster, const gmo_binned *rows, const gmo_target *target);
/* Runs up to n_rounds rounds. *finished: out, 1 once early stopping has ended training. */
gmo_status gmo_booster_boost(gmo_booster *booster, int64_t n_rounds, int32_t *finished);
/* Views into the booster's memory, valid until the next boost or free. */
void gmo_booster_forest(const gmo_booster *booster, gmo_forest *out);
void gmo_booster_progress(const gmo_booster *booster, gmo_progress *out);
void gmo_booster_free(gmo_booster *booster); /* NULL is fine */

/* Fills nodes (2 * n_nodes + n_trees,) for a forest whose bins have these edges. */
gmo_status gmo_forest_pack(const gmo_forest *forest, const double *edges, const int64_t *edge_start,
                           gmo_packed_node *nodes);
/* Adds trees[first .. last) of the predictor to scores (n_rows, n_outputs), which start anew at the base score if first
 * is 0. x: values of the features, NaN where missing. Same bits as a walk over the bins of x. */
gmo_status gmo_predictor_add(const gmo_predictor *predictor, int64_t first, int64_t last, const gmo_matrix *x,
                             int32_t n_threads, double *scores);

/* Rank-SVM. Source: Elisseeff & Weston, "A kernel method for multi-labelled classification", NIPS 14 (2001). Samples n,
 * labels q. */

/* Rows of numbers: dense (n_rows, n_features), or, if row_start is given, compressed sparse rows: row i has entries
 * row_start[i] .. row_start[i + 1] with ascending columns. */
typedef struct {
    const double *values;
    const int64_t *row_start; /* (n_rows + 1,) or NULL */
    const int32_t *columns;   /* (row_start[n_rows],) or NULL */
    int64_t n_rows, n_features;
} gmo_features;

enum { GMO_KERNEL_LINEAR = 0, GMO_KERNEL_POLY = 1, GMO_KERNEL_RBF = 2 };

/* x . y; (gamma x . y + coef0)^degree; exp(-gamma |x - y|^2). */
typedef struct {
    int32_t kind, degree;
    double gamma, coef0;
} gmo_kernel;

/* The kernel of rows first .. last of x with all rows of y, both dense or both sparse. out: (last - first, y->n_rows); an
 * entry has the same bits in whatever block it is computed. */
gmo_status gmo_kernel_block(const gmo_kernel *kernel, const gmo_features *x, int64_t first, int64_t last,
                            const gmo_features *y, int32_t n_threads, double *out);
/* K(x_i, x_i). out: (n_rows,). */
gmo_status gmo_kernel_diagonal(const gmo_kernel *kernel, const gmo_features *x, double *out);

/* A training problem. The kernel is one of: gram (n, n), symmetric; features, then it is linear, and the solver keeps the q
 * vectors w_k; or neither, then rows of at most cache_bytes are kept, and asked for where they are missing.
 * Labels group_start[g] .. group_start[g + 1] are group g; pairs of relevant and irrelevant labels count within groups. */
typedef struct {
    int64_t n_samples;
    int32_t n_labels, n_groups;
    const uint8_t *relevant;    /* (n, q) 0 or 1 */
    const int32_t *group_start; /* (n_groups + 1,) */
    const double *cost;     /* (n,) bound of the multiplier of a pair: C / (|Y_i| |not Y_i|); INFINITY (for all, or 0)
                                   for the hard margin; 0: the sample has no pairs */
    const double *diagonal; /* (n,) K(x_i, x_i) */
    const double *share;    /* (n,) or NULL. The solver is faster with an origin o = sum_i share_i phi(x_i) of feature
                                   space amid the samples; its choice does not change the optimum */
    const double *with_origin; /* (n,) K(x_i, o); NULL without share */
    double origin;             /* K(o, o) */
    const double *gram;
    const gmo_features *features;
    int64_t cache_bytes;
    double tolerance; /* ends at a relative duality gap of at most this */
    int64_t max_epochs;
    uint64_t seed;
} gmo_ranksvm_problem;

typedef struct {
    double primal, dual; /* bounds of the optimum: the best of feasible points so far; primal may be INFINITY */
    double gap;          /* (primal - dual) / primal; 0 if primal is 0; INFINITY if it is */
    int64_t n_epochs;
    int64_t n_wanted;      /* > 0: rows of the kernel that must be put before the next run, in this order */
    const int64_t *wanted; /* (n_wanted,) */
    int32_t finished;      /* 1: converged, at max_epochs, or not separable */
    int32_t indefinite;    /* 1: the kernel is seen not to be positive semi-definite; then the bounds are none */
    int32_t unbounded;     /* 1: hard margin; the dual says that the margin is 0 for all that can be computed */
} gmo_ranksvm_state;

typedef struct gmo_ranksvm gmo_ranksvm;

/* A machine borrows all arrays of the problem until it is freed. *out is NULL on failure. */
gmo_status gmo_ranksvm_create(const gmo_ranksvm_problem *problem, gmo_ranksvm **out);
/* Goes on for about n_visits visits of a sample, or until rows are wanted, or to the end. */
gmo_status gmo_ranksvm_run(gmo_ranksvm *machine, int64_t n_visits);
/* Rows wanted[0 .. n_wanted) of the kernel. rows: (n_wanted, n). */
void gmo_ranksvm_put(gmo_ranksvm *machine, const double *rows);
/* Views into the machine's memory, valid until the next run or free. */
void gmo_ranksvm_look(const gmo_ranksvm *machine, gmo_ranksvm_state *out);
/* The best primal point so far. dual_coef: out, (n, q) a with w_k = 1/2 sum_i a_ik phi(x_i); bias: out, (q,). */
void gmo_ranksvm_solution(const gmo_ranksvm *machine, double *dual_coef, double *bias);
void gmo_ranksvm_free(gmo_ranksvm *machine); /* NULL is fine */

/* Threads OpenMP would use by itself (OMP_NUM_THREADS, affinity). */
int32_t gmo_threads_max(void);

/* ---- AdaBoost.MH with decision stumps (csrc/stumps.c names the source and the equations) ---- */

/* Rows to train on. x: (n_rows, n_features), finite. indicator: (n_rows, n_labels), 1 where a label is relevant, else 0.
 * weight: (n_rows,), positive and finite; NULL: all 1. */
typedef struct {
    const double *x;
    const uint8_t *indicator;
    const double *weight;
    int64_t n_rows, n_features;
    int32_t n_labels;
} gmo_stump_rows;

/* Stumps in the order of the rounds. A row is on side 1 of a stump if its value of the feature is > threshold, else on side
 * 0, and gets that side's scores. Where no feature could be split the feature is -1, and all rows are on side 0. */
typedef struct {
    int64_t n_stumps;
    int32_t n_labels;
    int32_t *feature;    /* (n_stumps,) */
    double *threshold;   /* (n_stumps,) */
    double *leaf_scores; /* (n_stumps, 2, n_labels) */
    double *normalizer; /* (n_stumps,) factor by which the stump reduced the exponential loss; not read by prediction */
} gmo_stumps;

typedef struct gmo_stump_booster gmo_stump_booster;

/* A booster borrows the arrays of rows until it is freed. smoothing > 0 is added to both weights of a side's label, where
 * all weights sum to 1. *out is NULL on failure. */
gmo_status gmo_stump_booster_create(const gmo_stump_rows *rows, double smoothing, int32_t n_threads,
                                    gmo_stump_booster **out);
/* Runs the next last - first rounds and writes stumps first .. last. */
gmo_status gmo_stump_booster_boost(gmo_stump_booster *booster, const gmo_stumps *stumps, int64_t first, int64_t last);
void gmo_stump_booster_free(gmo_stump_booster *booster); /* NULL is fine */

/* Adds the scores of stumps first .. last to scores (n_rows, n_labels). x: (n_rows, n_features). */
gmo_status gmo_stumps_add(const gmo_stumps *stumps, int64_t first, int64_t last, const double *x, int64_t n_rows,
                          int64_t n_features, int32_t n_threads, double *scores);
/* [cffi: end] */

#define GMO_NO_LEAF INT32_MIN

#endif
