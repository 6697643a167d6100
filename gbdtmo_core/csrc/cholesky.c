#include "cholesky.h"

#include <float.h>

GMO_CLONES
void gmo_systems_eliminate(gmo_systems *s, gmo_double8 *score) {
    gmo_double8 sum = {0}, left_over = {0};
    for (int32_t j = s->d - 1; j >= 0; j--) {
        const gmo_double8 *row = s->weight + gmo_first_pair(j);
        gmo_double8 pivot = s->excess[j], inverse;
        for (int32_t k = 0; k < j; k++)
            pivot += row[k];
        if (j == 0)
            s->g[0] = left_over;
        for (int32_t i = 0; i < GMO_SYSTEMS; i++)
            inverse[i] = pivot[i] >= DBL_MIN ? 1 / pivot[i] : 0;
        s->inverse[j] = inverse;
        sum += s->g[j] * s->g[j] * inverse;
        left_over -= s->g[j] * (s->excess[j] * inverse);
        for (int32_t a = 0; a < j; a++) {
            gmo_double8 share = row[a] * inverse;
            s->g[a] += share * s->g[j];
            s->excess[a] += share * s->excess[j];
            gmo_double8 *target = s->weight + gmo_first_pair(a);
            for (int32_t b = 0; b < a; b++)
                target[b] += share * row[b];
        }
    }
    *score = sum;
}

void gmo_systems_solve(gmo_systems *s) {
    for (int32_t j = 0; j < s->d; j++) {
        const gmo_double8 *row = s->weight + gmo_first_pair(j);
        for (int32_t k = 0; k < j; k++)
            s->g[j] += row[k] * s->g[k];
        s->g[j] *= s->inverse[j];
    }
}
