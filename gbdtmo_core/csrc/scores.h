/* Scores of all samples, r_k(x_i) - b_k = 1/2 sum_j a_jk K(x_i, x_j) [Elisseeff & Weston, sec. 3], kept up to date while a
 * changes: as a matrix, from rows of the kernel; or, for the linear kernel, as the vectors w_k = 1/2 sum_j a_jk x_j. */
#ifndef GMO_SCORES_H
#define GMO_SCORES_H

#include "rows.h"

typedef struct {
    int64_t n;
    int32_t q;
    gmo_rows rows;  /* kernel */
    double *values; /* (q, stride) scores */
    int64_t stride;
    const gmo_features *x; /* linear kernel; NULL: rows */
    double *weights;       /* (n_features, width) */
    int32_t width;
} gmo_scores;

/* Exactly one of gram, x and neither (rows are put) is used. All of a is 0. */
gmo_status gmo_scores_init(gmo_scores *scores, int64_t n, int32_t q, const double *gram, const gmo_features *x,
                           int64_t cache_bytes);
void gmo_scores_free(gmo_scores *scores);

/* False: the kernel's row of the sample must be put before a change of it can be added. */
bool gmo_scores_ready(gmo_scores *scores, int64_t sample);
/* s: out, (q,) scores of a sample. */
void gmo_scores_read(const gmo_scores *scores, int64_t sample, double *s);
/* a of a sample changes by change[c] for labels label[c], c < count. */
void gmo_scores_add(gmo_scores *scores, int64_t sample, const int32_t *label, const double *change, int32_t count);

#endif
