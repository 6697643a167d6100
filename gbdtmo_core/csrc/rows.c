#include "rows.h"

#include <string.h>

gmo_status gmo_rows_init(gmo_rows *rows, const double *gram, int64_t n, int64_t bytes) {
    *rows = (gmo_rows){.gram = gram, .n = n, .newest = -1, .oldest = -1};
    if (gram)
        return GMO_OK;
    int64_t row_bytes;
    if (!gmo_size_mul(n, (int64_t)sizeof(double), &row_bytes))
        return GMO_ERR_SIZE;
    int64_t fit = bytes / row_bytes, size;
    rows->n_slots = fit < 1 ? 1 : fit > n ? n : fit;
    if (!gmo_size_mul(rows->n_slots, n, &size))
        return GMO_ERR_SIZE;
    rows->slots = gmo_alloc(size, sizeof *rows->slots);
    rows->slot_of = gmo_alloc(n, sizeof *rows->slot_of);
    rows->row_of = gmo_alloc(rows->n_slots, sizeof *rows->row_of);
    rows->newer = gmo_alloc(rows->n_slots, sizeof *rows->newer);
    rows->older = gmo_alloc(rows->n_slots, sizeof *rows->older);
    if (!rows->slots || !rows->slot_of || !rows->row_of || !rows->newer || !rows->older) {
        gmo_rows_free(rows);
        return GMO_ERR_MEMORY;
    }
    for (int64_t i = 0; i < n; i++)
        rows->slot_of[i] = -1;
    return GMO_OK;
}

void gmo_rows_free(gmo_rows *rows) {
    free(rows->slots);
    free(rows->slot_of);
    free(rows->row_of);
    free(rows->newer);
    free(rows->older);
    *rows = (gmo_rows){0};
}

int64_t gmo_rows_limit(const gmo_rows *rows) { return rows->gram ? rows->n : rows->n_slots; }

static void unlink_slot(gmo_rows *rows, int64_t slot) {
    int64_t newer = rows->newer[slot], older = rows->older[slot];
    if (newer >= 0)
        rows->older[newer] = older;
    else
        rows->newest = older;
    if (older >= 0)
        rows->newer[older] = newer;
    else
        rows->oldest = newer;
}

static void link_newest(gmo_rows *rows, int64_t slot) {
    rows->newer[slot] = -1;
    rows->older[slot] = rows->newest;
    if (rows->newest >= 0)
        rows->newer[rows->newest] = slot;
    else
        rows->oldest = slot;
    rows->newest = slot;
}

const double *gmo_rows_get(gmo_rows *rows, int64_t row) {
    if (rows->gram)
        return rows->gram + row * rows->n;
    int64_t slot = rows->slot_of[row];
    if (slot < 0)
        return NULL;
    unlink_slot(rows, slot);
    link_newest(rows, slot);
    return rows->slots + slot * rows->n;
}

void gmo_rows_put(gmo_rows *rows, int64_t row, const double *values) {
    int64_t slot;
    if (rows->n_used < rows->n_slots) {
        slot = rows->n_used++;
    } else {
        slot = rows->oldest;
        unlink_slot(rows, slot);
        rows->slot_of[rows->row_of[slot]] = -1;
    }
    rows->slot_of[row] = slot;
    rows->row_of[slot] = row;
    link_newest(rows, slot);
    memcpy(rows->slots + slot * rows->n, values, (size_t)rows->n * sizeof *values);
}
