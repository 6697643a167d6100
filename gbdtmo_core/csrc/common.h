/* What every unit shares: checked sizes, allocation, run-time choice of instruction set. */
#ifndef GMO_COMMON_H
#define GMO_COMMON_H

#include "gbdtmo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* One binary that picks AVX-512, AVX2 or the baseline when it is loaded. Contraction is off (build_native.py), so all give
 * the same bits. With GMO_NO_CLONES there is one version, for the instruction set that the compiler is told: tests compile
 * each on its own, and sanitizers do not go with resolvers. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__ELF__) && !defined(GMO_NO_CLONES)
#define GMO_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define GMO_CLONES
#endif
#define GMO_INLINE static inline __attribute__((always_inline))

/* Work, in simple operations, below which a second thread costs more than it brings: waking one takes microseconds, on a
 * busy machine milliseconds. Tests set it to 0, so that small problems take every parallel path. */
#ifndef GMO_PARALLEL_WORK
#define GMO_PARALLEL_WORK 500000
#endif
#define GMO_PARALLEL(n_threads, work) ((n_threads) > 1 && (work) > GMO_PARALLEL_WORK)

/* Largest number of rows: row numbers are int32, and rounding may add half a unit a row to a fixed-point sum. */
#define GMO_MAX_ROWS ((int64_t)1 << 30)

#define GMO_TRY(call)                                                                                                  \
    do {                                                                                                               \
        gmo_status try_status_ = (call);                                                                               \
        if (try_status_ != GMO_OK)                                                                                     \
            return try_status_;                                                                                        \
    } while (0)

/* *out = a * b for non-negative sizes; false if it does not fit. */
static inline bool gmo_size_mul(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }

/* count * size bytes, 64-byte aligned, never NULL for a size of zero; NULL if it cannot be had. Freed by free(). */
void *gmo_alloc(int64_t count, size_t size);
/* The same, filled with zeros. */
void *gmo_alloc_zero(int64_t count, size_t size);
/* Number of the calling thread within its team, and the size of the team. */
int32_t gmo_thread_number(void);
int32_t gmo_thread_count(void);
/* The calling thread's even share of 0 .. n within its team. */
typedef struct {
    int64_t first, last;
} gmo_range;
gmo_range gmo_thread_range(int64_t n);
/* Seconds of a clock that only goes forward. */
double gmo_seconds(void);
/* A threshold between finite a < b: at least a and below b, so that it keeps them apart. */
double gmo_midpoint(double a, double b);
/* Grows *array so that it holds needed elements, keeping its contents. */
gmo_status gmo_reserve(void **array, int64_t *capacity, int64_t needed, size_t size);

#endif
