/*
 * Every instruction set that this machine runs, against right values in a higher precision: all dtypes, all short sizes, any
 * alignment, large tensors, the whole range of inputs. FUSELINE_TEST_THIN=1 takes fewer inputs (for runs under valgrind).
 */
#include "testing.h"

#include <stdlib.h>

#include "internal.h"
#include "numbers.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

static const double betas[] = {1, 1.702, -1, 0, 1e-30, 1e30, 1e38, -3.7};

static int is_thin(void)
{
    return getenv("FUSELINE_TEST_THIN") != NULL;
}

static void forward(const struct format *format, int64_t count, void *x, double beta, void *y)
{
    DLTensor from = tensor_of(x, format->dtype, 1, &count, NULL), to = tensor_of(y, format->dtype, 1, &count, NULL);
    assert_ok(fuseline_swish_forward(&from, beta, NULL, &to));
}

/* dy_stride: 1, or 0 where one value stands for all. */
static void backward(const struct format *format, int64_t count, void *dy, int64_t dy_stride, void *x, double beta, void *dx)
{
    DLTensor gradient = tensor_of(dy, format->dtype, 1, &count, &dy_stride), from = tensor_of(x, format->dtype, 1, &count, NULL),
             to = tensor_of(dx, format->dtype, 1, &count, NULL);
    assert_ok(fuseline_swish_backward(&gradient, &from, beta, NULL, &to));
}

static long double right_forward(const struct format *format, double x, double beta)
{
    return format->size == 8 ? swish_in_long_double(x, beta) : (long double)swish_in_double(x, beta);
}

static long double right_slope(const struct format *format, double x, double beta)
{
    return format->size == 8 ? swish_slope_in_long_double(x, beta) : (long double)swish_slope_in_double(x, beta);
}

/* The bar for the forward, in units of the last place, where the result is a normal number. Without a long double wider than
 * double the right values for float64 carry the rounding of beta * x, which may be 750, into the result. */
static double forward_bar(const struct format *format)
{
    if (format->size == 2)
        return 0.51;
    return format->size == 8 && !long_double_is_wider() ? 1000 : 2;
}

/* How far a forward result is from right, in ulps; in units of the smallest number where the result is not normal. Infinite for a
 * nan or an inf out of a finite input. */
static double forward_error(const struct format *format, double x, double beta, double got)
{
    return isfinite(got) ? ulps_between(format, got, right_forward(format, x, beta)) : INFINITY;
}

/* Sizes and alignments: every size around the widths of vectors, every address, nothing written beside the result. */
static void check_sizes(const struct format *format, const struct fl_cpu_variant *variant)
{
    enum { MOST = 67, MARGIN = 32, ROOM = MOST * 8 + 2 * MARGIN };
    static _Alignas(64) char dy[ROOM], x[ROOM], y[ROOM], base_y[ROOM];
    int size = format->size;
    for (int count = 0; count <= MOST; count++)
        for (int offset = 0; offset <= 17; offset++) {
            if (is_thin() && (count * 18 + offset) % 23 != 0)
                continue;
            char *x_at = x + offset, *dy_at = dy + (offset * 5 + count) % 18, *y_at = y + MARGIN + (offset * 7 + 3 * count) % 18;
            for (int i = 0; i < count; i++) {
                store(format, x_at + i * size, (i * 37 % 64 - 31) * 0.3125L);
                store(format, dy_at + i * size, (i * 11 % 32 - 15) * 0.25L);
            }
            for (int way = 0; way < 3; way++) {
                memset(y, 0x5a, sizeof y);
                test_use_variant(&fl_cpu_base);
                if (way == 0)
                    forward(format, count, x_at, 1.702, base_y);
                else
                    backward(format, count, dy_at, way == 1, x_at, 1.702, base_y);
                test_use_variant(variant);
                if (way == 0)
                    forward(format, count, x_at, 1.702, y_at);
                else
                    backward(format, count, dy_at, way == 1, x_at, 1.702, y_at);
                for (int i = 0; i < count; i++) {
                    double value = load(format, x_at + i * size), got = load(format, y_at + i * size);
                    double gradient = way == 0 ? 1 : load(format, dy_at + (way == 1 ? i * size : 0));
                    long double right =
                        way == 0 ? right_forward(format, value, 1.702) : gradient * right_slope(format, value, 1.702);
                    double unit = (double)ulp_at(format, way == 0 ? right : gradient);
                    assert_true(fabsl(got - right) <= fmax(4, forward_bar(format)) * unit);
                    assert_true(fabs(got - load(format, base_y + i * size)) <= 4 * unit);
                }
                for (char *c = y; c < y + sizeof y; c++)
                    assert_true((c >= y_at && c < y_at + count * size) || *c == 0x5a);
            }
        }
}

static void sizes_and_alignments(void **state)
{
    (void)state;
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
    check_sizes(&formats[f], *variant);
}

/* Large enough for threads, and no multiple of anything. In place for the backward. */
static void large_tensors(void **state)
{
    (void)state;
    enum { LENGTH = (1 << 18) + 13 };
    static double x_memory[LENGTH + 1], y_memory[LENGTH + 1];
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
    for (int offset = 0; offset <= 3; offset += 3) {
        const struct format *format = &formats[f];
        char *x = (char *)x_memory + offset, *y = (char *)y_memory;
        double gradient = 1.5;
        char dy[8];
        int step = is_thin() ? 1009 : 1;
        test_use_variant(*variant);
        for (int i = 0; i < LENGTH; i++)
            store(format, x + i * format->size, (i % 4001 - 2000) / 128.0L);
        store(format, dy, gradient);
        forward(format, LENGTH, x, 1, y);
        for (int i = 0; i < LENGTH; i += step)
            assert_true(forward_error(format, load(format, x + i * format->size), 1, load(format, y + i * format->size)) <=
                        forward_bar(format));
        memcpy(y, x, (size_t)LENGTH * (size_t)format->size);
        backward(format, LENGTH, dy, 0, x, 1, x);
        for (int i = 0; i < LENGTH; i += step) {
            double right = gradient * swish_slope_in_double(load(format, y + i * format->size), 1);
            assert_true(fabs(load(format, x + i * format->size) - right) <= 4 * ulp_at(format, gradient));
        }
    }
}

/*
 * The inputs on which accuracy is judged, one at a time, by number; all finite. For the 16-bit types these are all there are. For
 * float32 and float64 every exponent and both signs, with significands spread evenly, and besides them the range where results go
 * from -0.3 to the end of the normal numbers, more densely.
 */
static int input_count(const struct format *format)
{
    if (format->size == 2)
        return 65536;
    return (format->size == 4 ? 254 * 2 * 300 : 2046 * 2 * 30) + 100000;
}

static void input(const struct format *format, int number, void *to)
{
    if (format->size == 2) {
        uint16_t bits = (uint16_t)number;
        memcpy(to, &bits, 2);
        if (!isfinite(load(format, to)))
            memset(to, 0, 2);
        return;
    }
    int exponents = format->exponent_most - format->exponent_least + 1, each = format->size == 4 ? 300 : 30;
    if (number < exponents * 2 * each) {
        int exponent = format->exponent_least + number / (2 * each), part = number / 2 % each;
        /* the golden ratio's multiples, modulo 1, fill an interval evenly; the first significand is 1, the last just below 2 */
        long double significand = part == 0   ? 1
                                  : part == 1 ? 2 - ldexpl(1, 1 - format->digits)
                                              : 1 + fmodl(part * 0.6180339887498949L, 1);
        store(format, to, ldexpl(number % 2 != 0 ? -significand : significand, exponent));
        return;
    }
    number -= exponents * 2 * each;
    store(format, to, -(format->size == 4 ? 92.0L : 715.0L) * (number + fmodl(number * 0.6180339887498949L, 1)) / 100000);
}

/* Fills up to MOST inputs from number `first` on; returns how many. */
enum { BATCH = 4096 };
static int inputs(const struct format *format, int first, char *to)
{
    int count = input_count(format) - first, step = is_thin() ? 61 : 1, filled = 0;
    for (int k = 0; k < count && filled < BATCH; k++)
        if ((first + k) % step == 0)
            input(format, first + k, to + filled++ * format->size);
    return filled;
}

static int next_batch(int first)
{
    return first + BATCH * (is_thin() ? 61 : 1);
}

static void accuracy_of_forward(void **state)
{
    (void)state;
    static char x[BATCH * 8], y[BATCH * 8];
    for (int f = 0; f < FORMATS; f++)
        for (int b = 0; b < COUNT(betas); b++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                double worst = 0, worst_x = 0, worst_small = 0;
                test_use_variant(*variant);
                for (int first = 0; first < input_count(format); first = next_batch(first)) {
                    int count = inputs(format, first, x);
                    forward(format, count, x, betas[b], y);
                    for (int i = 0; i < count; i++) {
                        double value = load(format, x + i * format->size), got = load(format, y + i * format->size);
                        double error = forward_error(format, value, betas[b], got);
                        int is_normal = fabsl(right_forward(format, value, betas[b])) >= normal_least(format);
                        if (!is_normal && isfinite(error)) {
                            worst_small = fmax(worst_small, error);
                        } else if (!(error <= worst)) {
                            worst = error;
                            worst_x = value;
                        }
                    }
                }
                if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                    print_message("# forward %s %s beta %g: %.4f ulp at %a; %.3g below the normal numbers\n", (*variant)->name,
                                  format->name, betas[b], worst, worst_x, worst_small);
                if (!(worst <= forward_bar(format))) {
                    print_error("%s %s beta %g: %g ulp at x = %.17g (%a)\n", (*variant)->name, format->name, betas[b], worst,
                                worst_x, worst_x);
                    fail();
                }
            }
}

/* The backward as PyTorch writes it, in the precision that it computes in. */
static double textbook_backward(const struct format *format, double dy, double x, double beta)
{
    if (format->size == 8) {
        double sigmoid = 1 / (1 + exp(-beta * x));
        return dy * sigmoid * (1 + beta * x * (1 - sigmoid));
    }
    float gradient = (float)dy, value = (float)beta * (float)x;
    float sigmoid = 1 / (1 + expf(-value));
    return (double)round_to(format, gradient * sigmoid * (1 + value * (1 - sigmoid)));
}

/* The largest error of dx, relative to |dy|, is not above the textbook's. Never a nan or inf out of finite numbers. */
static void accuracy_of_backward(void **state)
{
    (void)state;
    static const double some_betas[] = {1, 1.702, -1};
    static char dy[BATCH * 8], x[BATCH * 8], dx[BATCH * 8];
    for (int f = 0; f < FORMATS; f++)
        for (int b = 0; b < COUNT(some_betas); b++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                double worst = 0, worst_x = 0, textbook_worst = 0, sum = 0, textbook_sum = 0;
                if (format->size == 8 && !long_double_is_wider())
                    continue;
                test_use_variant(*variant);
                for (int first = 0; first < input_count(format); first = next_batch(first)) {
                    int count = inputs(format, first, x);
                    for (int i = 0; i < count; i++)
                        store(format, dy + i * format->size, i % 3 == 0 ? 1 : (i * 7 % 33 - 16) / 16.0L + 0.03125L);
                    backward(format, count, dy, 1, x, some_betas[b], dx);
                    for (int i = 0; i < count; i++) {
                        double gradient = load(format, dy + i * format->size), value = load(format, x + i * format->size);
                        double got = load(format, dx + i * format->size);
                        long double right = gradient * right_slope(format, value, some_betas[b]);
                        double textbook = textbook_backward(format, gradient, value, some_betas[b]);
                        assert_true(isfinite(got));
                        double error = (double)(fabsl(got - right) / fabsl(gradient));
                        double textbook_error = (double)(fabsl(textbook - right) / fabsl(gradient));
                        sum += error;
                        textbook_sum += isfinite(textbook) ? textbook_error : 0;
                        if (error > worst) {
                            worst = error;
                            worst_x = value;
                        }
                        if (isfinite(textbook) && textbook_error > textbook_worst)
                            textbook_worst = textbook_error;
                    }
                }
                if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                    print_message("# backward %s %s beta %g: worst %.9g (textbook %.9g) at %a, sum %.9g (%.9g)\n",
                                  (*variant)->name, format->name, some_betas[b], worst, textbook_worst, worst_x, sum,
                                  textbook_sum);
                if (worst > textbook_worst) {
                    print_error("backward %s %s beta %g: %.17g at x = %a, textbook %.17g\n", (*variant)->name, format->name,
                                some_betas[b], worst, worst_x, textbook_worst);
                    fail();
                }
            }
}

/* Nor is the mean error on what networks hold: x and dy like normally distributed numbers. (For the 16-bit types, where both are
 * rounded to the same few numbers, the means are the same but for chance.) */
static void mean_error_of_backward(void **state)
{
    (void)state;
    for (int f = IN_FLOAT32; f <= IN_FLOAT64; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            static char dy[BATCH * 8], x[BATCH * 8], dx[BATCH * 8];
            double sum = 0, textbook_sum = 0;
            if (format->size == 8 && !long_double_is_wider())
                continue;
            test_use_variant(*variant);
            for (int i = 0; i < BATCH; i++) { /* Box and Muller's transform of evenly spread numbers */
                double radius = sqrt(-2 * log((i + 0.5) / BATCH)), angle = 2 * M_PI * fmod(i * 0.6180339887498949, 1);
                store(format, x + i * format->size, radius * cos(angle));
                store(format, dy + i * format->size, radius * sin(angle));
            }
            backward(format, BATCH, dy, 1, x, 1, dx);
            for (int i = 0; i < BATCH; i++) {
                double gradient = load(format, dy + i * format->size), value = load(format, x + i * format->size);
                long double right = gradient * right_slope(format, value, 1);
                sum += (double)fabsl(load(format, dx + i * format->size) - right);
                textbook_sum += (double)fabsl(textbook_backward(format, gradient, value, 1) - right);
            }
            if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                print_message("# backward %s %s: mean error %.3f of the textbook's\n", (*variant)->name, format->name,
                              sum / textbook_sum);
            assert_true(sum <= textbook_sum);
        }
}

/* Huge and odd numbers through the backward: finite in, finite out, and bounded by 1.1 * |dy|. */
static void backward_stays_finite(void **state)
{
    (void)state;
    static char x[BATCH * 8], dx[BATCH * 8];
    for (int f = 0; f < FORMATS; f++)
        for (int b = 0; b < COUNT(betas); b++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                char dy[8];
                double most = (double)round_to(format, finite_most(format) * 0.9L);
                test_use_variant(*variant);
                for (int way = 0; way < 2; way++) {
                    double gradient = way ? most : 1;
                    store(format, dy, gradient);
                    for (int first = 0; first < input_count(format); first = next_batch(first)) {
                        int count = inputs(format, first, x);
                        if (count > 2) {
                            store(format, x, finite_most(format));
                            store(format, x + format->size, -finite_most(format));
                        }
                        backward(format, count, dy, 0, x, betas[b], dx);
                        for (int i = 0; i < count; i++)
                            assert_true(fabs(load(format, dx + i * format->size)) / gradient <= 1.11);
                    }
                }
            }
}

/* Special values, in every position of a vector and of what is left over, without harm to the neighbours. */
static void special_values(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    for (int f = 0; f < FORMATS; f++)
        for (int at = 0; at < LENGTH; at++)
            for (int s = 0; s < COUNT(specials); s++)
                for (int sign = -1; sign <= 1; sign += 2)
                    FOR_EACH_VARIANT(variant)
                    {
                        const struct format *format = &formats[f];
                        char dy[LENGTH * 8], x[LENGTH * 8], y[LENGTH * 8], dx[LENGTH * 8];
                        double special = specials[s], beta = sign;
                        test_use_variant(*variant);
                        for (int i = 0; i < LENGTH; i++) {
                            store(format, x + i * format->size, i == at ? special : (i - 18) * 0.5);
                            store(format, dy + i * format->size, -2);
                        }
                        forward(format, LENGTH, x, beta, y);
                        backward(format, LENGTH, dy, 1, x, beta, dx);
                        for (int i = 0; i < LENGTH; i++) {
                            double got = load(format, y + i * format->size), slope = load(format, dx + i * format->size);
                            if (i != at) {
                                assert_true(forward_error(format, (i - 18) * 0.5, beta, got) <= forward_bar(format));
                                assert_true(isfinite(slope));
                            } else if (isnan(special)) {
                                assert_true(isnan(got) && isnan(slope));
                            } else if (isinf(special) && special * beta > 0) {
                                assert_true(got == special && slope == -2);
                            } else if (isinf(special)) {
                                assert_true(isnan(got) && slope == 0);
                            } else {
                                assert_true(got == 0 && slope == -1);
                                /* valgrind's fused multiply-add loses the sign of a zero */
                                assert_true(!signbit(got) == !signbit(special) || !long_double_is_wider());
                            }
                        }
                    }
}

/* A gradient that is nan or inf is passed on; an infinite one times a slope of 0 is nan, as a product is. */
static void special_gradients(void **state)
{
    (void)state;
    static const struct {
        double dy, x, right;
    } cases[] = {
        {NAN, 1, NAN},
        {NAN, -INFINITY, NAN},
        {INFINITY, 1, INFINITY},
        {-INFINITY, 1, -INFINITY},
        {INFINITY, -2, -INFINITY},
        {INFINITY, INFINITY, INFINITY},
        {INFINITY, -INFINITY, NAN},
        {0.0, 5, 0.0},
        {0.0, INFINITY, 0.0},
    };
    for (int f = 0; f < FORMATS; f++)
        for (int k = 0; k < COUNT(cases); k++)
            FOR_EACH_VARIANT(variant)
    for (int count = 1; count <= 33; count += 32) {
        const struct format *format = &formats[f];
        char dy[33 * 8], x[33 * 8], dx[33 * 8];
        test_use_variant(*variant);
        for (int i = 0; i < count; i++) {
            store(format, dy + i * format->size, cases[k].dy);
            store(format, x + i * format->size, cases[k].x);
        }
        backward(format, count, dy, 1, x, 1, dx);
        for (int i = 0; i < count; i++) {
            double got = load(format, dx + i * format->size);
            assert_true(isnan(cases[k].right) ? isnan(got) : got == cases[k].right);
        }
    }
}

/* The far tail, where an exponential of -x overflows: the results are still normal numbers. */
static void far_tail(void **state)
{
    (void)state;
    static const struct {
        int format;
        double x;
    } cases[] = {{IN_FLOAT32, -88},  {IN_FLOAT32, -89},  {IN_FLOAT32, -91.5}, {IN_FLOAT64, -709.8},
                 {IN_FLOAT64, -714}, {IN_BFLOAT16, -89}, {IN_BFLOAT16, -91.5}};
    for (int k = 0; k < COUNT(cases); k++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[cases[k].format];
            char x[8], y[8];
            if (format->size == 8 && !long_double_is_wider())
                continue;
            test_use_variant(*variant);
            store(format, x, cases[k].x);
            forward(format, 1, x, 1, y);
            assert_true(load(format, y) < 0);
            assert_true(forward_error(format, cases[k].x, 1, load(format, y)) <= forward_bar(format));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_alignments), cmocka_unit_test(large_tensors),          cmocka_unit_test(accuracy_of_forward),
        cmocka_unit_test(accuracy_of_backward), cmocka_unit_test(mean_error_of_backward), cmocka_unit_test(backward_stays_finite),
        cmocka_unit_test(special_values),       cmocka_unit_test(special_gradients),      cmocka_unit_test(far_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
