/* What the C tests share. Each test file is one program: its main calls the tests and returns check_report(). */
#ifndef GMO_TEST_CHECK_H
#define GMO_TEST_CHECK_H

#include "random.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_count, check_failures;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        check_count++;                                                                                                 \
        if (!(condition)) {                                                                                            \
            check_failures++;                                                                                          \
            fprintf(stderr, "%s:%d: %s: not true: %s\n", __FILE__, __LINE__, __func__, #condition);                    \
        }                                                                                                              \
    } while (0)

#define CHECK_NEAR(actual, expected)                                                                                   \
    do {                                                                                                               \
        double actual_ = (actual), expected_ = (expected);                                                             \
        check_count++;                                                                                                 \
        if (!(fabs(actual_ - expected_) <= 1e-14 * fmax(1, fabs(expected_)))) {                                        \
            check_failures++;                                                                                          \
            fprintf(stderr, "%s:%d: %s: %s is %.17g, not %.17g\n", __FILE__, __LINE__, __func__, #actual, actual_,     \
                    expected_);                                                                                        \
        }                                                                                                              \
    } while (0)

static int check_report(void) {
    fprintf(stderr, "%d checks, %d failed\n", check_count, check_failures);
    return check_failures || !check_count;
}

/* All programs are linked with --wrap=aligned_alloc. When allocations_left reaches 0, allocations fail. */
static long allocations_left = -1;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    long left;
#pragma omp atomic capture
    left = allocations_left--;
    if (left < 0) {
#pragma omp atomic write
        allocations_left = -1;
    }
    return left == 0 ? NULL : __real_aligned_alloc(alignment, size);
}

#endif
