/* Derivatives in fixed point.
 *
 * Sums must not depend on the order of rows or on threads, and parent - child must be exact. So derivatives are rounded
 * once a tree to int32 multiples of a power of two, chosen for each output so that no sum over rows can overflow, and
 * all that is summed afterwards is integers. */
#ifndef GMO_FIXED_H
#define GMO_FIXED_H

#include "common.h"

/* Lanes read together at most; arrays that are read in such steps have as many spare elements at their end. */
#define GMO_LANES 16

/* A row holds d gradients, then d Hessians if has_hessian, then a 1 that counts the row, then zeros up to stride. */
typedef struct {
    int32_t *rows; /* (n_rows, stride), and GMO_LANES spare elements */
    int64_t n_rows;
    int32_t d, stride, count_lane;
    bool has_hessian;
    double *gradient_unit,
        *hessian_unit; /* (d + GMO_LANES,) value of 1, a power of two; 0 if all are 0, and beyond d */
} gmo_fixed;

gmo_status gmo_fixed_init(gmo_fixed *fixed, int64_t n_rows, int32_t d, bool has_hessian);
void gmo_fixed_free(gmo_fixed *fixed);
/* Derivatives of d outputs, rows width apart: values, or, unless less is NULL, values - less. The difference is taken
 * whenever it is needed, which costs less than the memory of another matrix. */
typedef struct {
    const double *values, *less;
    int64_t width;
} gmo_derivatives;

/* A row (d,), in place or in buffer (d,). */
GMO_INLINE const double *gmo_derivatives_row(const gmo_derivatives *from, int64_t row, int32_t d, double *buffer) {
    const double *values = from->values + row * from->width;
    if (!from->less)
        return values;
    const double *less = from->less + row * from->width;
    for (int32_t j = 0; j < d; j++)
        buffer[j] = values[j] - less[j];
    return buffer;
}

/* Rounds fixed->d columns; hessian is read only if has_hessian. */
gmo_status gmo_fixed_round(gmo_fixed *fixed, const gmo_derivatives *gradient, const gmo_derivatives *hessian,
                           int32_t n_threads);
/* Sum of the listed rows, or of all n_rows if rows is NULL, into total (stride,). */
void gmo_fixed_total(const gmo_fixed *fixed, const int32_t *rows, int64_t n_rows, int32_t *total);

/* Vectors written out: left to itself, the compiler turns short loops of known length into single additions. Where the
 * machine has shorter registers it takes several. */
typedef int32_t gmo_int4 __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t gmo_int8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t gmo_int16 __attribute__((vector_size(64), aligned(4), may_alias));

/* sum += row, both laid out as rows; stride is a multiple of 8, or 4. */
GMO_INLINE void gmo_add_row(int32_t *sum, const int32_t *row, int32_t stride) {
    if (stride == 4) {
        *(gmo_int4 *)sum += *(const gmo_int4 *)row;
        return;
    }
    int32_t j = 0;
    for (; j + 16 <= stride; j += 16)
        *(gmo_int16 *)(sum + j) += *(const gmo_int16 *)(row + j);
    if (j < stride)
        *(gmo_int8 *)(sum + j) += *(const gmo_int8 *)(row + j);
}

#endif
