/*
 * The ruler's kernels: what each reads arrives, in every dtype and on every instruction set that this machine runs, and nothing else is
 * written.
 */
#include "testing.h"

#include <stdlib.h>

#include "internal.h"
#include "numbers.h"
#include "operators.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

#define FORM_A_B_C_Y_Z(T, ...) (T *)t[0], (T *)t[1], (T *)t[2], __VA_ARGS__(T *) t[3], (T *)t[4]
DEFINE_ENTRY(copy_1_1, FORM_X_Y)
DEFINE_ENTRY(copy_2_1, FORM_DY_X_DX)
DEFINE_ENTRY(copy_3_2, FORM_A_B_C_Y_Z)

static const struct entry entries[] = {
    ENTRY_OF(copy_1_1, 1, NAMES("a", "y"), "xx"),
    ENTRY_OF(copy_2_1, 1, NAMES("a", "b", "y"), "xxx"),
    ENTRY_OF(copy_3_2, 2, NAMES("a", "b", "c", "y", "z"), "xxxxx"),
};

enum { OPERANDS = 5, ELEMENTS_MOST = 100003, AROUND = 64, ROOM = ELEMENTS_MOST * 8 + 2 * AROUND };
static char *memory[OPERANDS];

/* Different in each operand, with more digits than a 16-bit type has, so that sums are rounded. */
static double sample_value(int operand, int64_t i)
{
    return (double)((i * 7919 + operand * 104729) % 2039 - 1019) / 512 + operand;
}

/* An output's element from those read: y = a, or a + b; z = b + c. Exact in double. */
static double right_value(const struct entry *entry, int output, const double *read)
{
    return entry->tensors == 2 ? read[0] : read[output] + read[output + 1];
}

/* Runs an entry on rows whose elements lie `shift` bytes from aligned memory; each output's every byte must be right. */
static void assert_copied(const struct entry *entry, const struct format *format, int64_t rows, int64_t columns,
                          int64_t row_stride, int shift)
{
    int inputs = entry->tensors - entry->outputs;
    DLTensor tensors[OPERANDS];
    void *pointers[OPERANDS];
    int64_t shape[] = {rows, columns}, strides[] = {row_stride, 1}, span = (rows - 1) * row_stride + columns;
    for (int k = 0; k < entry->tensors; k++) {
        memset(memory[k], 0x5a, ROOM);
        for (int64_t i = 0; k < inputs && i < span; i++)
            store(format, memory[k] + AROUND + shift + i * format->size, sample_value(k, i));
        tensors[k] = tensor_of(memory[k] + AROUND + shift, format->dtype, 2, shape, strides);
        pointers[k] = &tensors[k];
    }
    assert_ok(entry->borrow(pointers, &plain_scalars));
    for (int k = inputs; k < entry->tensors; k++) {
        for (int64_t row = 0; row < rows; row++)
            for (int64_t column = 0; column < columns; column++) {
                double read[OPERANDS] = {0};
                int64_t at = AROUND + shift + (row * row_stride + column) * format->size;
                for (int input = 0; input < inputs; input++)
                    read[input] = load(format, memory[input] + at);
                double got = load(format, memory[k] + at), right = round_to(format, right_value(entry, k - inputs, read));
                if (got != right) {
                    print_error("%s, %s, %s at %d, %d: %.17g, wanted %.17g\n", entry->name, format->name, entry->names[k],
                                (int)row, (int)column, got, right);
                    fail();
                }
                memset(memory[k] + at, 0x5a, (size_t)format->size);
            }
        for (int i = 0; i < ROOM; i++)
            assert_int_equal(memory[k][i], 0x5a);
    }
}

static void every_dtype_and_layout(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, columns, row_stride;
        int shift;
    } layouts[] = {{1, 1, 1, 0},
                   {1, 7, 7, 0},
                   {1, 512, 512, 0},
                   {1, 1000, 1000, 0},
                   {1, 1000, 1000, 8},
                   {1, 513, 513, 3},
                   {9, 64, 128, 0},
                   {9, 33, 35, 0},
                   {1, 10597, 10597, 0}, /* blocks of 512 vectors, vectors and elements left over */
                   {1, ELEMENTS_MOST, ELEMENTS_MOST, 0}};
    for (int e = 0; e < COUNT(entries); e++)
        for (int f = 0; f < FORMATS; f++)
            for (int k = 0; k < COUNT(layouts); k++)
                FOR_EACH_VARIANT(variant)
                {
                    if (layouts[k].columns == ELEMENTS_MOST && variant != test_variants) /* threads: the same in each */
                        continue;
                    test_use_variant(*variant);
                    assert_copied(&entries[e], &formats[f], layouts[k].rows, layouts[k].columns, layouts[k].row_stride,
                                  offset_of(layouts[k].shift, formats[f].size));
                }
}

/* An output in an input's memory: all of a place is read before it is written. */
static void in_place(void **state)
{
    (void)state;
    enum { COUNT_OF = 2309 };
    int64_t shape[] = {COUNT_OF};
    for (int e = 0; e < COUNT(entries); e++)
        for (int input = 0; input < entries[e].tensors - entries[e].outputs; input++)
            FOR_EACH_VARIANT(variant)
            {
                const struct entry *entry = &entries[e];
                int inputs = entry->tensors - entry->outputs;
                DLTensor tensors[OPERANDS];
                void *pointers[OPERANDS];
                test_use_variant(*variant);
                for (int k = 0; k < entry->tensors; k++) {
                    for (int i = 0; i < COUNT_OF; i++)
                        ((double *)memory[k])[i] = sample_value(k, i);
                    tensors[k] = tensor_of(memory[k == inputs ? input : k], FLOAT64, 1, shape, NULL);
                    pointers[k] = &tensors[k];
                }
                assert_ok(entry->borrow(pointers, &plain_scalars));
                for (int i = 0; i < COUNT_OF; i++) {
                    double read[OPERANDS];
                    for (int k = 0; k < inputs; k++)
                        read[k] = sample_value(k, i);
                    for (int output = 0; output < entry->outputs; output++)
                        assert_true(((double *)tensors[inputs + output].data)[i] == right_value(entry, output, read));
                }
            }
}

static void special_values(void **state)
{
    (void)state;
    enum { VALUES = 5 };
    static const double values[VALUES] = {INFINITY, -INFINITY, -0.0, 0.0, NAN};
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            test_use_variant(*variant);
            for (int i = 0; i < VALUES; i++)
                store(format, memory[0] + i * format->size, values[i]);
            DLTensor a = tensor_of(memory[0], format->dtype, 1, DIMS(VALUES), NULL),
                     y = tensor_of(memory[1], format->dtype, 1, DIMS(VALUES), NULL);
            assert_ok(fuseline_copy_1_1(&a, NULL, &y));
            for (int i = 0; i < VALUES - 1; i++)
                assert_memory_equal(memory[0] + i * format->size, memory[1] + i * format->size, (size_t)format->size);
            assert_true(isnan(load(format, memory[1] + (VALUES - 1) * format->size)));
        }
}

/* Those that take tensors over: run, and delete each once. */
static void owned(void **state)
{
    (void)state;
    enum { COUNT_OF = 3 };
    int64_t shape[] = {COUNT_OF};
    for (int e = 0; e < COUNT(entries); e++) {
        const struct entry *entry = &entries[e];
        int inputs = entry->tensors - entry->outputs, deleted = 0;
        DLManagedTensor managed[OPERANDS];
        DLManagedTensorVersioned versioned[OPERANDS];
        void *pointers[OPERANDS], *versions[OPERANDS];
        double values[OPERANDS][COUNT_OF] = {{0}};
        test_use_variant(test_variants[0]);
        for (int k = 0; k < entry->tensors; k++) {
            for (int i = 0; k < inputs && i < COUNT_OF; i++)
                values[k][i] = sample_value(k, i);
            DLTensor tensor = tensor_of(values[k], FLOAT64, 1, shape, NULL);
            managed[k] = (DLManagedTensor){tensor, &deleted, count_deletion};
            versioned[k] = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, 0},
                                                      .manager_ctx = &deleted,
                                                      .deleter = count_deletion_versioned,
                                                      .dl_tensor = tensor};
            pointers[k] = &managed[k];
            versions[k] = &versioned[k];
        }
        for (int form = 0; form < 2; form++) {
            memset(values[inputs], 0, sizeof values[0] * (size_t)entry->outputs);
            assert_ok(form == 0 ? entry->managed(pointers, &plain_scalars) : entry->versioned(versions, &plain_scalars));
            assert_int_equal(deleted, (form + 1) * entry->tensors);
            for (int i = 0; i < COUNT_OF; i++) {
                double read[] = {values[0][i], values[1][i], values[2][i]};
                for (int output = 0; output < entry->outputs; output++)
                    assert_true(values[inputs + output][i] == right_value(entry, output, read));
            }
        }
    }
}

/* One dtype for all, and no word of them among the operators. */
static void refusals(void **state)
{
    (void)state;
    char info[4096];
    DLTensor a = tensor_of(memory[0], FLOAT32, 1, DIMS(4), NULL), b = tensor_of(memory[1], FLOAT32, 1, DIMS(4), NULL),
             y = tensor_of(memory[2], FLOAT16, 1, DIMS(4), NULL);
    assert_refused(fuseline_copy_1_1(&a, NULL, &y), FUSELINE_ERROR_DTYPE, "y: dtype is float16, but a is float32");
    assert_refused(fuseline_copy_2_1(&a, NULL, NULL, &y), FUSELINE_ERROR_ARGUMENT, "b: tensor is NULL");
    y.dtype = FLOAT32;
    b.shape = DIMS(3);
    assert_refused(fuseline_copy_2_1(&a, &b, NULL, &y), FUSELINE_ERROR_SHAPE, "b: shape is (3)");
    fuseline_info(info, sizeof info);
    assert_non_null(strstr(info, "\"swish\""));
    assert_null(strstr(info, "copy"));
}

static int allocate(void **state)
{
    (void)state;
    for (int k = 0; k < OPERANDS; k++)
        memory[k] = test_malloc(ROOM);
    return 0;
}

static int release(void **state)
{
    (void)state;
    for (int k = 0; k < OPERANDS; k++)
        test_free(memory[k]);
    return 0;
}

/* A signalling nan becomes a quiet one, wherever in a tensor it lies. */
static void nan_becomes_quiet(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    uint16_t x[LENGTH], y[LENGTH];
    int64_t shape[] = {LENGTH};
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++)
        FOR_EACH_VARIANT(variant)
        {
            const uint16_t infinity = f == IN_FLOAT16 ? 0x7c00 : 0x7f80, quiet = f == IN_FLOAT16 ? 0x200 : 0x40;
            DLTensor from = tensor_of(x, formats[f].dtype, 1, shape, NULL), to = tensor_of(y, formats[f].dtype, 1, shape, NULL);
            test_use_variant(*variant);
            for (int i = 0; i < LENGTH; i++)
                x[i] = infinity | 1;
            assert_int_equal(fuseline_copy_1_1(&from, NULL, &to), FUSELINE_OK);
            for (int i = 0; i < LENGTH; i++)
                assert_int_equal(y[i] & (infinity | quiet), infinity | quiet);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_layout), cmocka_unit_test(in_place), cmocka_unit_test(special_values),
        cmocka_unit_test(nan_becomes_quiet),      cmocka_unit_test(owned),    cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests_name("copy", tests, allocate, release);
}
