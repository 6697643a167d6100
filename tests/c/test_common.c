#include "check.h"
#include "common.h"

static void sizes_are_checked(void) {
    int64_t product;
    CHECK(gmo_size_mul(1 << 20, 1 << 20, &product) && product == (int64_t)1 << 40);
    CHECK(!gmo_size_mul((int64_t)1 << 40, (int64_t)1 << 40, &product));
}

static void allocations_refuse_what_does_not_fit(void) {
    CHECK(gmo_alloc(INT64_MAX, 8) == NULL);
    CHECK(gmo_alloc(INT64_MAX, 1) == NULL);
    CHECK(gmo_alloc(-1, 8) == NULL);
    CHECK(gmo_alloc_zero(INT64_MAX / 2, 4) == NULL);
}

static void allocations_are_aligned_and_never_empty(void) {
    void *nothing = gmo_alloc(0, 8);
    CHECK(nothing != NULL);
    free(nothing);
    unsigned char *zeros = gmo_alloc_zero(65, 1);
    CHECK((uintptr_t)zeros % 64 == 0);
    for (int i = 0; i < 65; i++)
        CHECK(zeros[i] == 0);
    free(zeros);
}

static void reserve_keeps_contents(void) {
    int32_t *array = NULL;
    int64_t capacity = 0;
    for (int32_t i = 0; i < 1000; i++) {
        CHECK(gmo_reserve((void **)&array, &capacity, i + 1, sizeof *array) == GMO_OK);
        array[i] = i;
    }
    CHECK(capacity >= 1000);
    for (int32_t i = 0; i < 1000; i++)
        CHECK(array[i] == i);

    int64_t before = capacity;
    CHECK(gmo_reserve((void **)&array, &capacity, INT64_MAX - 16, sizeof *array) == GMO_ERR_MEMORY);
    CHECK(capacity == before && array[999] == 999);
    free(array);
}

int main(void) {
    sizes_are_checked();
    allocations_refuse_what_does_not_fit();
    allocations_are_aligned_and_never_empty();
    reserve_keeps_contents();
    return check_report();
}
