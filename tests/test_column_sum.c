/*
 * column_sum: the sums of columns over all rows, in every dtype and on every instruction set that this machine runs, against sums in
 * long double.
 */
#include "testing.h"

#include <stdlib.h>

#include "internal.h"
#include "numbers.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

enum { ROOM = 1 << 20, COLUMNS_MOST = 1100, SUMS_MOST = 5000 };
static _Alignas(16) char memory[ROOM], sums[SUMS_MOST * 8 + 64];

static double sample_value(int64_t row, int64_t column)
{
    return (double)((row * 7919 + column * 104729 + row * column) % 509 - 254) / 32;
}

/* Fills a matrix in memory, whose elements are `row_stride` and 1 apart. */
static void fill(const struct format *format, char *data, int64_t rows, int64_t columns, int64_t row_stride)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t column = 0; column < columns; column++)
            store(format, data + (row * row_stride + column) * format->size, sample_value(row, column));
}

/* The largest error met, in units of the last place. */
static double worst[FORMATS];

/* The sum of one column of what `fill` wrote, and the largest error that it may have: one rounding, besides that of sums in double. */
static void assert_sum(const struct format *format, double got, int64_t rows, int64_t column)
{
    long double right = 0, total = 0;
    char element[8];
    for (int64_t row = 0; row < rows; row++) {
        store(format, element, sample_value(row, column));
        right += load(format, element);
        total += fabs(load(format, element));
    }
    worst[format - formats] = fmax(worst[format - formats], (double)(fabsl(got - right) / ulp_at(format, right)));
    long double bound = 0.5L * ulp_at(format, right) + (long double)rows * 0x1p-52L * total;
    if (!(fabsl(got - right) <= bound)) {
        print_error("%s, column %d of %d rows: %.17g, wanted %.17Lg\n", format->name, (int)column, (int)rows, got, right);
        fail();
    }
}

/* Numbers with every digit, whose sums are not exact. Of one sign, so that long double judges float64 too. */
static void accuracy(void **state)
{
    (void)state;
    enum { ROWS = 1000, COLUMNS = 97 };
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            if (format->size == 8 && !long_double_is_wider())
                continue;
            test_use_variant(*variant);
            for (int i = 0; i < ROWS * COLUMNS; i++)
                store(format, memory + i * format->size, 0.5 + fmod(i * 0.6180339887498949, 1));
            DLTensor x = tensor_of(memory, format->dtype, 2, DIMS(ROWS, COLUMNS), NULL),
                     sum = tensor_of(sums, format->dtype, 1, DIMS(COLUMNS), NULL);
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
            for (int column = 0; column < COLUMNS; column++) {
                long double right = 0;
                for (int row = 0; row < ROWS; row++)
                    right += load(format, memory + (row * COLUMNS + column) * format->size);
                double error = (double)(fabsl(load(format, sums + column * format->size) - right) / ulp_at(format, right));
                worst[f] = fmax(worst[f], error);
                assert_true(error <= 0.51);
            }
        }
}

static void sizes_and_strides(void **state)
{
    (void)state;
    static const int64_t rows[] = {1, 2, 7, 100}, columns[] = {1, 2, 3, 33, 64, 511, 513, COLUMNS_MOST};
    for (int f = 0; f < FORMATS; f++)
        for (int r = 0; r < COUNT(rows); r++)
            for (int c = 0; c < COUNT(columns); c++)
                for (int pad = 0; pad <= 3; pad += 3)
                    FOR_EACH_VARIANT(variant)
                    {
                        const struct format *format = &formats[f];
                        int shift = pad == 0 ? 0 : offset_of(9, format->size); /* any alignment */
                        if (rows[r] * columns[c] > 60000 && pad == 0)
                            continue;
                        test_use_variant(*variant);
                        memset(sums, 0x5a, sizeof sums);
                        fill(format, memory + shift, rows[r], columns[c], columns[c] + pad);
                        DLTensor x = tensor_of(memory + shift, format->dtype, 2, DIMS(rows[r], columns[c]),
                                               DIMS(columns[c] + pad, 1)),
                                 sum = tensor_of(sums + 16 + shift, format->dtype, 1, DIMS(columns[c]), NULL);
                        assert_ok(fuseline_column_sum(&x, NULL, &sum));
                        for (int64_t column = 0; column < columns[c]; column++)
                            assert_sum(format, load(format, sums + 16 + shift + column * format->size), rows[r], column);
                        for (int i = 0; i < (int)sizeof sums; i++)
                            assert_true((i >= 16 + shift && i < 16 + shift + columns[c] * format->size) || sums[i] == 0x5a);
                    }
}

/* Large enough for threads: wide, narrow, long; the same bits at every call. */
static void large_and_repeatable(void **state)
{
    (void)state;
    static const int64_t shapes[][2] = {{2000, 130}, {260, 1000}, {30, SUMS_MOST}, {140001, 1}, {50000, 3}, {4111, 63}};
    static char first[SUMS_MOST * 8];
    for (int k = 0; k < COUNT(shapes); k++)
        for (int f = 0; f < FORMATS; f++) {
            const struct format *format = &formats[f];
            int64_t rows = shapes[k][0], columns = shapes[k][1];
            char *data = test_malloc((size_t)(rows * columns * format->size));
            fill(format, data, rows, columns, columns);
            DLTensor x = tensor_of(data, format->dtype, 2, DIMS(rows, columns), NULL),
                     sum = tensor_of(sums, format->dtype, 1, DIMS(columns), NULL);
            for (int again = 0; again < 5; again++) {
                test_use_variant(test_variants[0]);
                memset(sums, 0x5a, sizeof sums);
                assert_ok(fuseline_column_sum(&x, NULL, &sum));
                if (again == 0)
                    memcpy(first, sums, sizeof first);
                assert_memory_equal(first, sums, (size_t)(columns * format->size));
            }
            FOR_EACH_VARIANT(variant)
            {
                test_use_variant(*variant);
                assert_ok(fuseline_column_sum(&x, NULL, &sum));
                assert_memory_equal(first, sums,
                                    (size_t)(columns * format->size)); /* double, in one order: nothing to differ in */
            }
            for (int64_t column = 0; column < columns; column += 7)
                assert_sum(format, load(format, sums + column * format->size), rows, column);
            test_free(data);
        }
}

/* Sums a matrix of one or more columns on every instruction set; each element must be `right`. */
static void assert_sums(const struct format *format, char *data, int64_t rows, int64_t columns, const double *right)
{
    FOR_EACH_VARIANT(variant)
    {
        test_use_variant(*variant);
        DLTensor x = tensor_of(data, format->dtype, 2, DIMS(rows, columns), NULL),
                 sum = tensor_of(sums, format->dtype, 1, DIMS(columns), NULL);
        assert_ok(fuseline_column_sum(&x, NULL, &sum));
        for (int64_t column = 0; column < columns; column++) {
            double got = load(format, sums + column * format->size);
            if (got != right[column]) {
                print_error("%s, %s, column %d: %.17g, wanted %.17g\n", (*variant)->name, format->name, (int)column, got,
                            right[column]);
                fail();
            }
        }
    }
}

/*
 * L29: one rounding, to nearest. Sums near a tie between two numbers of a 16-bit type, at all places of its range: the part that tells to which side
 * they belong is too small for a float.
 */
static void rounded_once(void **state)
{
    (void)state;
    enum { CASES = 2 * 3 * 3 * 2 };
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++) {
        const struct format *format = &formats[f];
        int lowest = format->exponent_least - format->digits + 1; /* of the least number */
        for (int exponent = lowest; exponent <= format->exponent_most; exponent++) {
            double right[CASES];
            int column = 0, last_place = exponent - format->digits + 1 < lowest ? lowest : exponent - format->digits + 1;
            if (last_place - 1 < lowest) /* no element is half of the last place */
                continue;
            for (int sign = -1; sign <= 1; sign += 2)
                for (int side = -1; side <= 1; side++)
                    for (int odd = 0; odd < 3; odd++) /* the number above the tie: an odd one, or the end of the range */
                        for (int deep = 0; deep < 2; deep++) {
                            int small = last_place - (deep == 0 ? 25 : 40);
                            double rows[] = {ldexp(1, exponent) +
                                                 (odd < 2 ? odd : ldexp(1, format->digits - 1) - 1) * ldexp(1, last_place),
                                             ldexp(1, last_place - 1), side * ldexp(1, small < lowest ? lowest : small)};
                            for (int row = 0; row < 3; row++)
                                store(format, memory + (row * CASES + column) * format->size, sign * rows[row]);
                            right[column++] = round_to(format, sign * (rows[0] + rows[1] + rows[2])); /* exact in double */
                        }
            assert_sums(format, memory, 3, CASES, right);
        }
    }
    /* Past the largest number: the tie is to inf. */
    for (int f = IN_FLOAT16; f <= IN_BFLOAT16; f++) {
        const struct format *format = &formats[f];
        double most = finite_most(format), half = ldexp(1, format->exponent_most - format->digits), right[] = {most, INFINITY};
        for (int column = 0; column < 2; column++) {
            store(format, memory + column * format->size, most);
            store(format, memory + (2 + column) * format->size, half);
            store(format, memory + (4 + column) * format->size, column == 0 ? -ldexp(half, -24) : 0);
        }
        assert_sums(format, memory, 3, 2, right);
    }
}

/* float64: what is lost on the way is kept. Large numbers that cancel, in different orders, leave the small ones exactly. */
static void cancellation(void **state)
{
    (void)state;
    enum { COLUMNS = 9 };
    static const int64_t lengths[] = {3, 4, 8, 9, 40, 1001, 20000};
    static const double large[] = {1e16, 1e15, 3e20, -1e17, 1e16, 7e18, -1e22, 5e15, 1e18};
    const struct format *format = &formats[IN_FLOAT64];
    double *x = test_malloc(20000 * COLUMNS * sizeof *x);
    for (int k = 0; k < COUNT(lengths); k++) {
        double right[COLUMNS] = {0};
        int64_t rows = lengths[k];
        for (int64_t row = 0; row < rows; row++)
            for (int column = 0; column < COLUMNS; column++) {
                int64_t from = (row + column) % rows; /* the large one, small ones, and the large one taken away */
                double value = from == 0 ? large[column] : from == rows - 1 ? -large[column] : (double)(row % 7 + 1);
                x[row * COLUMNS + column] = value;
                right[column] += fabs(value) < 10 ? value : 0;
            }
        assert_sums(format, (char *)x, rows, COLUMNS, right);
    }
    test_free(x);
}

/* Any rank; leading dimensions in any order, and rows repeated, as long as one stride leads from row to row. */
static void ranks_and_orders(void **state)
{
    (void)state;
    float x[60], y[5];
    static const struct {
        int ndim;
        int64_t shape[4], strides[4], rows;
    } cases[] = {
        {1, {5}, {1}, 1},
        {2, {12, 5}, {5, 1}, 12},
        {3, {3, 4, 5}, {20, 5, 1}, 12},
        {3, {4, 3, 5}, {5, 20, 1}, 12}, /* permuted */
        {4, {3, 1, 4, 5}, {20, -7, 5, 1}, 12},
        {3, {3, 2, 5}, {20, 10, 1}, 6},
        {4, {1, 1, 1, 5}, {9, -9, 0, 1}, 1},
    };
    for (int i = 0; i < 60; i++)
        x[i] = (float)(i * i % 37) / 4;
    for (int k = 0; k < COUNT(cases); k++) {
        int64_t shape[4], strides[4];
        memcpy(shape, cases[k].shape, sizeof shape);
        memcpy(strides, cases[k].strides, sizeof strides);
        DLTensor from = tensor_of(x, FLOAT32, cases[k].ndim, shape, strides), sum = tensor_of(y, FLOAT32, 1, DIMS(5), NULL);
        int64_t step = cases[k].rows == 6 ? 10 : 5;
        assert_ok(fuseline_column_sum(&from, NULL, &sum));
        for (int column = 0; column < 5; column++) {
            float right = 0;
            for (int64_t row = 0; row < cases[k].rows; row++)
                right += x[row * step + column];
            assert_float_equal(y[column], right, 0); /* quarters: exact */
        }
    }
    /* one column; of a larger matrix; each row the same */
    DLTensor column = tensor_of(x, FLOAT32, 2, DIMS(12, 1), NULL), sum = tensor_of(y, FLOAT32, 1, DIMS(1), NULL);
    float all = 0, fifth = 0;
    for (int i = 0; i < 12; i++) {
        all += x[i];
        fifth += x[5 * i];
    }
    assert_ok(fuseline_column_sum(&column, NULL, &sum));
    assert_float_equal(y[0], all, 0);
    column.strides = DIMS(5, 1);
    assert_ok(fuseline_column_sum(&column, NULL, &sum));
    assert_float_equal(y[0], fifth, 0);
    column.strides = DIMS(5, 77); /* means nothing */
    assert_ok(fuseline_column_sum(&column, NULL, &sum));
    assert_float_equal(y[0], fifth, 0);
    DLTensor same = tensor_of(x, FLOAT32, 2, DIMS(8, 5), DIMS(0, 1)), five = tensor_of(y, FLOAT32, 1, DIMS(5), NULL);
    assert_ok(fuseline_column_sum(&same, NULL, &five));
    for (int i = 0; i < 5; i++)
        assert_float_equal(y[i], 8 * x[i], 0);
}

/* G18: zero rows leave zeros, zero columns nothing. */
static void zero_elements(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            test_use_variant(*variant);
            memset(sums, 0x5a, sizeof sums);
            DLTensor x = tensor_of(NULL, formats[f].dtype, 2, DIMS(0, 600), NULL),
                     sum = tensor_of(sums, formats[f].dtype, 1, DIMS(600), NULL);
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
            for (int i = 0; i < 600 * formats[f].size; i++)
                assert_int_equal(sums[i], 0);
            assert_int_equal(sums[600 * formats[f].size], 0x5a);
            x.shape = DIMS(3, 0);
            sum.shape = DIMS(0);
            sum.data = NULL;
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
            x.ndim = 3;
            x.shape = DIMS(3, 0, 600);
            sum.shape = DIMS(600);
            sum.data = sums;
            memset(sums, 0x5a, sizeof sums);
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
            assert_int_equal(sums[0], 0);
            x.ndim = 1;
            x.shape = DIMS(0);
            sum.shape = DIMS(0);
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
        }
    DLTensor x = tensor_of(NULL, FLOAT32, 2, DIMS(0, 4), NULL), sum = tensor_of(sums, FLOAT32, 1, DIMS(4), NULL);
    x.device = (DLDevice){kDLCUDA, 7}; /* not a reason to pass the sum's memory to a GPU */
    assert_refused(fuseline_column_sum(&x, NULL, &sum), FUSELINE_ERROR_DEVICE, "sum is on ", "x is on CUDA device 7");
    x.device = sum.device;
    sum.strides = DIMS(2);
    assert_refused(fuseline_column_sum(&x, NULL, &sum), FUSELINE_ERROR_LAYOUT, "sum: strides are (2)");
}

static void special_values(void **state)
{
    (void)state;
    enum { COLUMNS = 7 };
    static const double values[3][COLUMNS] = {
        {1, INFINITY, INFINITY, NAN, -0.0, 3e38, -INFINITY}, {2, 1, -INFINITY, 1, -0.0, 3e38, 1}, {-3, 1, 1, 1, -0.0, -3e38, 1}};
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            double got[COLUMNS];
            test_use_variant(*variant);
            for (int row = 0; row < 3; row++)
                for (int column = 0; column < COLUMNS; column++)
                    store(format, memory + (row * COLUMNS + column) * format->size, values[row][column]);
            DLTensor x = tensor_of(memory, format->dtype, 2, DIMS(3, COLUMNS), NULL),
                     sum = tensor_of(sums, format->dtype, 1, DIMS(COLUMNS), NULL);
            assert_ok(fuseline_column_sum(&x, NULL, &sum));
            for (int column = 0; column < COLUMNS; column++)
                got[column] = load(format, sums + column * format->size);
            assert_true(got[0] == 0 && got[1] == INFINITY && isnan(got[2]) && isnan(got[3]) && got[4] == 0 &&
                        got[6] == -INFINITY);
            /* 3e38 + 3e38 - 3e38 does not overflow on the way, which is double, but in a GPU's float; in float16 it is inf - inf */
            if (is_on_gpu() && f != IN_FLOAT64 && f != IN_FLOAT16)
                assert_true(isinf(got[5]));
            else
                assert_true(f == IN_FLOAT16 ? isnan(got[5]) : fabs(got[5] - 3e38) <= (double)ulp_at(format, 3e38));
        }
}

static void refusals(void **state)
{
    (void)state;
    float x[64] = {0}, y[16];
    for (int i = 0; i < 16; i++)
        y[i] = 99;
    DLTensor from = tensor_of(x, FLOAT32, 2, DIMS(4, 4), NULL), sum = tensor_of(y, FLOAT32, 1, DIMS(4), NULL), bad;
    bad = from;
    bad.ndim = 0;
    assert_refused(fuseline_column_sum(&bad, NULL, &sum), FUSELINE_ERROR_SHAPE, "x: has no axis");
    bad = sum;
    bad.shape = DIMS(5);
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_SHAPE, "sum: shape is (5)", "accepted: (4)");
    bad.ndim = 2;
    bad.shape = DIMS(1, 4);
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_SHAPE, "sum: shape is (1, 4)", "accepted: (4)");
    bad.ndim = 0;
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_SHAPE, "sum: shape is ()", "accepted: (4)");
    bad = sum;
    bad.dtype = BFLOAT16;
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_DTYPE, "sum: dtype is bfloat16", "x is float32");
    bad = sum;
    bad.device = (DLDevice){kDLROCM, 7};
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_DEVICE, "sum is on ROCm device 7", "x is on ");
    bad = sum;
    bad.strides = DIMS(2);
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_LAYOUT, "sum: strides are (2)", "accepted: (1)");
    bad.strides = DIMS(0);
    assert_refused(fuseline_column_sum(&from, NULL, &bad), FUSELINE_ERROR_LAYOUT, "sum: strides are (0)");
    static int64_t strides[][2] = {{1, 4}, {8, 2}, {4, 0}, {0, 0}, {4, -1}};
    for (int k = 0; k < COUNT(strides); k++) { /* the first is a square transposed one, whose rows are as long as its columns */
        char found[32];
        snprintf(found, sizeof found, "x: strides are (%d, %d)", (int)strides[k][0], (int)strides[k][1]);
        bad = from;
        bad.data = x + 8;
        bad.strides = strides[k];
        assert_refused(fuseline_column_sum(&bad, NULL, &sum), FUSELINE_ERROR_LAYOUT, found, "copy it to a contiguous tensor");
    }
    bad = from;
    bad.data = x + 20;
    bad.strides = DIMS(-4, 1);
    assert_refused(fuseline_column_sum(&bad, NULL, &sum), FUSELINE_ERROR_LAYOUT, "x: strides are (-4, 1)");
    bad = tensor_of(x, FLOAT32, 3, DIMS(2, 2, 4), DIMS(9, 4, 1));
    assert_refused(fuseline_column_sum(&bad, NULL, &sum), FUSELINE_ERROR_LAYOUT, "x: strides are (9, 4, 1)",
                   "one stride between rows");
    bad = sum;
    for (int shift = -3; shift < 16; shift += 3) {
        bad.data = x + 8 + shift;
        DLTensor inside = tensor_of(x + 8, FLOAT32, 2, DIMS(4, 4), NULL);
        assert_refused(fuseline_column_sum(&inside, NULL, &bad), FUSELINE_ERROR_OVERLAP, "sum: overlaps x");
    }
    assert_refused(fuseline_column_sum(NULL, NULL, &sum), FUSELINE_ERROR_ARGUMENT, "x: tensor is NULL");
    assert_refused(fuseline_column_sum(&from, NULL, NULL), FUSELINE_ERROR_ARGUMENT, "sum: tensor is NULL");
    for (int i = 0; i < 16; i++)
        assert_true(y[i] == 99);
}

#ifndef TEST_ON_STANDIN
static void gpu_calls_are_passed_on(void **state)
{
    (void)state;
    DLTensor x = tensor_of((void *)0x1000, BFLOAT16, 3, DIMS(3, 5, 7), DIMS(50, 10, 1)),
             sum = tensor_of((void *)0x8000, BFLOAT16, 1, DIMS(7), NULL);
    x.device = sum.device = (DLDevice){kDLROCM, 1};
    assert_ok(fuseline_column_sum(&x, (void *)0x55, &sum));
    assert_string_equal(test_launch.op->kernel, "column_sum");
    assert_int_equal(test_launch.device_kind, FL_ROCM);
    assert_ptr_equal(test_launch.stream, (void *)0x55);
    assert_int_equal(test_launch.arguments.rows, 15);
    assert_int_equal(test_launch.arguments.columns, 7);
    assert_int_equal(test_launch.arguments.row_stride[0], 10);
    assert_ptr_equal(test_launch.arguments.data[0], (void *)0x1000);
    assert_ptr_equal(test_launch.arguments.data[1], (void *)0x8000);
    x.shape = DIMS(0, 5, 7); /* zeros are the kernel's to write */
    assert_ok(fuseline_column_sum(&x, NULL, &sum));
    assert_int_equal(test_launch.arguments.rows, 0);
    assert_int_equal(test_launch.arguments.columns, 7);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accuracy),
        cmocka_unit_test(sizes_and_strides),
        cmocka_unit_test(large_and_repeatable),
        cmocka_unit_test(rounded_once),
        cmocka_unit_test(cancellation),
        cmocka_unit_test(ranks_and_orders),
        cmocka_unit_test(zero_elements),
        cmocka_unit_test(special_values),
        cmocka_unit_test(refusals),
#ifndef TEST_ON_STANDIN
        cmocka_unit_test(gpu_calls_are_passed_on),
#endif
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int f = 0; f < FORMATS && getenv("FUSELINE_TEST_FIGURES") != NULL; f++)
        print_message("# column_sum %s: %.4f ulp\n", formats[f].name, worst[f]);
    return failed;
}
