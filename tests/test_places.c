/*
 * A number's result is its own: it does not depend on where in a tensor the number lies, on what lies beside it, or on whether results go
 * over an input. For every operator, direction, dtype and instruction set that this machine runs, bit for bit, with numbers among the
 * others that take a block another way.
 */
#include "testing.h"

#include "internal.h"
#include "numbers.h"
#include "operators.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

/* More than a block, and no multiple of anything. */
enum { LENGTH = 1024 + 150, ROOM = LENGTH * 8 };

static char inputs[TENSORS_MOST][ROOM], over[TENSORS_MOST][ROOM], outputs[TENSORS_MOST][ROOM], others[TENSORS_MOST][ROOM];

static const double far[] = {200, -200, 3000, -3000, INFINITY, -INFINITY, NAN, 0, -0.0};

/* Near numbers, but for a few in one input: so each input is once that which has them. */
static void fill(const struct entry *entry, const struct format *format, int which)
{
    int count = entry->tensors - entry->outputs;
    for (int k = 0; k < count; k++)
        for (int i = 0; i < LENGTH; i++)
            store(format, inputs[k] + i * format->size, ((i * (7 + 2 * k) + k * 11) % 151 - 75) * 0.0625);
    for (int i = 0; i < COUNT(far) && which < count; i++) {
        store(format, inputs[which] + (71 + 3 * i) * format->size, far[i]);
        store(format, inputs[which] + (LENGTH - 1 - i) * format->size, far[i]);
    }
}

/* Runs an entry on `length` elements from `first` on. Output k is written over input under[k], or, where that is negative, to `to`. */
static void run(const struct entry *entry, const struct format *format, char (*from)[ROOM], char (*to)[ROOM], const int *under,
                int first, int length)
{
    DLTensor tensors[TENSORS_MOST];
    void *pointers[TENSORS_MOST];
    int count = entry->tensors - entry->outputs;
    int64_t shape[] = {length};
    for (int k = 0; k < entry->tensors; k++) {
        char *data = k < count ? from[k] : under[k - count] < 0 ? to[k - count] : from[under[k - count]];
        tensors[k] = tensor_of(data + first * format->size, format->dtype, 1, shape, NULL);
        pointers[k] = entry->roles[k] == 'b' ? NULL : &tensors[k];
    }
    assert_ok(entry->borrow(pointers, &plain_scalars));
}

/* The same bits; any nan is any other. */
static void assert_same(const struct entry *entry, const struct format *format, const char *a, const char *b, int first,
                        int length)
{
    for (int i = first; i < first + length; i++) {
        double at_a = load(format, a + i * format->size), at_b = load(format, b + i * format->size);
        if (memcmp(a + i * format->size, b + i * format->size, (size_t)format->size) != 0 && !(isnan(at_a) && isnan(at_b)))
            fail_msg("%s %s: element %d is %a, and was %a", entry->name, format->name, i, at_a, at_b);
    }
}

static void check(const struct entry *entry, const struct format *format, int which)
{
    static const int nowhere[] = {-1, -1, -1};
    int count = entry->tensors - entry->outputs;
    fill(entry, format, which);
    run(entry, format, inputs, outputs, nowhere, 0, LENGTH);

    for (int first = 0; first < LENGTH; first += 13) { /* alone */
        run(entry, format, inputs, others, nowhere, first, 1);
        for (int k = 0; k < entry->outputs; k++)
            assert_same(entry, format, others[k], outputs[k], first, 1);
    }
    run(entry, format, inputs, others, nowhere, 5, LENGTH - 5); /* elsewhere in a vector, and in a block */
    for (int k = 0; k < entry->outputs; k++)
        assert_same(entry, format, others[k], outputs[k], 5, LENGTH - 5);

    for (int k = 0; k < entry->outputs; k++) /* one output over each input */
        for (int i = 0; i < count; i++) {
            int under[] = {-1, -1, -1};
            if (entry->roles[i] == 'b')
                continue;
            under[k] = i;
            memcpy(over, inputs, sizeof over);
            run(entry, format, over, others, under, 0, LENGTH);
            for (int j = 0; j < entry->outputs; j++)
                assert_same(entry, format, j == k ? over[i] : others[j], outputs[j], 0, LENGTH);
        }
}

#define TEST_OF(direction)                                                                                                       \
    static void direction##_##places(void **state)                                                                               \
    {                                                                                                                            \
        (void)state;                                                                                                             \
        for (const struct operator_case *op = operators; op < operators + OPERATORS; op++)                                       \
            for (int f = 0; f < FORMATS; f++)                                                                                    \
                FOR_EACH_VARIANT(variant)                                                                                        \
                {                                                                                                                \
                    test_use_variant(*variant);                                                                                  \
                    for (int which = 0; which <= op->direction.tensors - op->direction.outputs; which++)                         \
                        check(&op->direction, &formats[f], which);                                                               \
                }                                                                                                                \
    }
TEST_OF(forward)
TEST_OF(backward)
TEST_OF(double_backward)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_places),
        cmocka_unit_test(backward_places),
        cmocka_unit_test(double_backward_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
