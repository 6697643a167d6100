/* How fast this machine adds: what no histogram of gradients can beat. Compiled on demand, called through ctypes.
 *
 * Each function repeats a fixed amount of work and returns nothing; the caller times it.
 */
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define FASTEST __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FASTEST
#endif

typedef int32_t vector __attribute__((vector_size(32)));

/* A constant number of vectors lets the compiler unroll the loop over them. */
#define ADD_ROWS(VECTORS)                                                                                              \
    for (size_t i = 0; i + n_distinct <= n_rows; i += n_distinct)                                                      \
        for (size_t k = 0; k < n_distinct; k++) {                                                                      \
            vector *restrict cell = sums + (size_t)cells[i + k] * (VECTORS);                                           \
            const vector *restrict row = rows + k * (VECTORS);                                                         \
            for (size_t v = 0; v < (VECTORS); v++)                                                                     \
                cell[v] += row[v];                                                                                     \
        }

/* sums[cells[i]] += rows[i mod n_distinct] for i < n_rows, a multiple of n_distinct, all of them of n_vectors vectors,
 * aligned to 32 bytes. */
FASTEST void add_to_cells(vector *restrict sums, const uint32_t *restrict cells, const vector *restrict rows,
                          size_t n_rows, size_t n_distinct, size_t n_vectors) {
    switch (n_vectors) {
    case 1:
        ADD_ROWS(1)
        break;
    case 2:
        ADD_ROWS(2)
        break;
    case 3:
        ADD_ROWS(3)
        break;
    case 4:
        ADD_ROWS(4)
        break;
    case 6:
        ADD_ROWS(6)
        break;
    case 8:
        ADD_ROWS(8)
        break;
    default:
        ADD_ROWS(n_vectors)
    }
}

/* sums[i] += row[i] for i < n, `repeats` times. The barrier keeps the passes from being merged into one. */
FASTEST void add_contiguous(int32_t *restrict sums, const int32_t *restrict row, size_t n, size_t repeats) {
    for (size_t pass = 0; pass < repeats; pass++) {
        for (size_t i = 0; i < n; i++)
            sums[i] += row[i];
        __asm__ volatile("" : : "r"(sums) : "memory");
    }
}

/* Sum of n 64-bit words, read once from the first to the last. */
FASTEST uint64_t read_words(const uint64_t *restrict words, size_t n) {
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += words[i];
    return sum;
}
