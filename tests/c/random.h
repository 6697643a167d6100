#ifndef GMO_TEST_RANDOM_H
#define GMO_TEST_RANDOM_H

#include <stdint.h>

/* Numbers that look random and are the same everywhere (a 64-bit linear congruential generator). */
static uint64_t random_state = 1;
static inline uint32_t random_below(uint32_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % n);
}

#endif
