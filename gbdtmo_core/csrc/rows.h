/* Rows of a kernel matrix: all of them, or the most recently used ones that a memory bound allows. */
#ifndef GMO_ROWS_H
#define GMO_ROWS_H

#include "common.h"

typedef struct {
    const double *gram; /* (n, n), borrowed; or NULL: rows are kept in slots */
    int64_t n;
    double *slots; /* (n_slots, n) */
    int64_t n_slots, n_used;
    int64_t *slot_of;       /* (n,) slot of a row, or -1 */
    int64_t *row_of;        /* (n_slots,) */
    int64_t *newer, *older; /* (n_slots,) list in the order of use; -1 ends it */
    int64_t newest, oldest;
} gmo_rows;

/* bytes: bound of the slots' memory; at least one row is kept. */
gmo_status gmo_rows_init(gmo_rows *rows, const double *gram, int64_t n, int64_t bytes);
void gmo_rows_free(gmo_rows *rows);

/* Most rows that can be held at once. */
int64_t gmo_rows_limit(const gmo_rows *rows);
/* The row, which counts as used now; NULL if it is not held. */
const double *gmo_rows_get(gmo_rows *rows, int64_t row);
/* Takes a copy of a row that is not held, in the place of the one that was not used for longest. */
void gmo_rows_put(gmo_rows *rows, int64_t row, const double *values);

#endif
