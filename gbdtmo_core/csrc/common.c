#define _DEFAULT_SOURCE /* madvise */
#include "common.h"

#include <omp.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

/* Arrays from this size on ask for huge pages: rows of a node lie far apart, and each would need a page of its own. */
#define HUGE_ARRAY ((int64_t)4 << 20)
#define HUGE_PAGE ((int64_t)2 << 20)

void *gmo_alloc(int64_t count, size_t size) {
    int64_t bytes;
    if (count < 0 || !gmo_size_mul(count, (int64_t)size, &bytes) || bytes > INT64_MAX - 2 * HUGE_PAGE)
        return NULL;
    int64_t alignment = bytes >= HUGE_ARRAY ? HUGE_PAGE : 64;
    bytes = (bytes / alignment + 1) * alignment;
    void *memory = aligned_alloc((size_t)alignment, (size_t)bytes);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (memory && alignment == HUGE_PAGE)
        (void)madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* only a wish */
#endif
    return memory;
}

void *gmo_alloc_zero(int64_t count, size_t size) {
    void *memory = gmo_alloc(count, size);
    if (memory)
        memset(memory, 0, (size_t)count * size);
    return memory;
}

gmo_status gmo_reserve(void **array, int64_t *capacity, int64_t needed, size_t size) {
    if (needed <= *capacity)
        return GMO_OK;
    int64_t larger = *capacity * 2 > needed ? *capacity * 2 : needed + 16;
    void *memory = gmo_alloc(larger, size);
    if (!memory)
        return GMO_ERR_MEMORY;
    if (*array)
        memcpy(memory, *array, (size_t)*capacity * size);
    free(*array);
    *array = memory;
    *capacity = larger;
    return GMO_OK;
}

int32_t gmo_threads_max(void) { return (int32_t)omp_get_max_threads(); }

int32_t gmo_thread_number(void) { return (int32_t)omp_get_thread_num(); }

int32_t gmo_thread_count(void) { return (int32_t)omp_get_num_threads(); }

gmo_range gmo_thread_range(int64_t n) {
    int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
    return (gmo_range){n * thread / threads, n * (thread + 1) / threads};
}

double gmo_seconds(void) { return omp_get_wtime(); }

double gmo_midpoint(double a, double b) {
    double middle = a / 2 + b / 2; /* halves first, so that the sum cannot overflow */
    return middle >= a && middle < b ? middle : a;
}
