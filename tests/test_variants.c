/*
 * The unary operators on every instruction set that this machine runs, against right values in a higher precision: all dtypes, all
 * short sizes, any alignment, large tensors, the whole range of inputs. FUSELINE_TEST_THIN=1 takes fewer inputs (for runs under valgrind).
 */
#include "testing.h"

#include <stdlib.h>

#include "internal.h"
#include "numbers.h"
#include "operators.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

/* What is judged: an operator with its parameter. */
struct subject {
    const struct operator_case *op;
    double beta;
};

static struct subject subjects[64];
static int subject_count;

/* Every unary operator; and those with a beta at others than 1 too. */
static void list_subjects(void)
{
    static const double betas[] = {1.702, -1, 0, 1e-30, 0.0014, 0.01, 0.1, 1e30, 1e38, -3.7};
    for (const struct operator_case *op = operators; op < operators + OPERATORS; op++) {
        if (op->is_gated)
            continue;
        subjects[subject_count++] = (struct subject){op, 1};
        for (int b = 0; op->has_beta && b < COUNT(betas); b++)
            subjects[subject_count++] = (struct subject){op, betas[b]};
    }
}

#define FOR_EACH_SUBJECT(subject) for (const struct subject *subject = subjects; subject < subjects + subject_count; subject++)

/* Those of an ordinary size. */
#define FOR_EACH_PLAIN_SUBJECT(subject) FOR_EACH_SUBJECT(subject) if (fabs(subject->beta) >= 1 && fabs(subject->beta) < 2)

static int is_thin(void)
{
    return getenv("FUSELINE_TEST_THIN") != NULL;
}

static fuseline_status try_forward(const struct subject *subject, const struct format *operand, const struct format *result,
                                   int64_t count, void *x, void *y)
{
    DLTensor from = tensor_of(x, operand->dtype, 1, &count, NULL), to = tensor_of(y, result->dtype, 1, &count, NULL);
    struct scalars scalars = plain_scalars;
    scalars.beta = subject->beta;
    return subject->op->forward.borrow((void *[]){&from, &to}, &scalars);
}

/* dy_stride: 1, or 0 where one value stands for all. */
static fuseline_status try_backward(const struct subject *subject, const struct format *operand, const struct format *result,
                                    int64_t count, void *dy, int64_t dy_stride, void *x, void *dx)
{
    DLTensor gradient = tensor_of(dy, result->dtype, 1, &count, &dy_stride), from = tensor_of(x, operand->dtype, 1, &count, NULL),
             to = tensor_of(dx, operand->dtype, 1, &count, NULL);
    struct scalars scalars = plain_scalars;
    scalars.beta = subject->beta;
    return subject->op->backward.borrow((void *[]){&gradient, &from, &to}, &scalars);
}

static void forward(const struct subject *subject, const struct format *format, int64_t count, void *x, void *y)
{
    assert_ok(try_forward(subject, format, format, count, x, y));
}

static void backward(const struct subject *subject, const struct format *format, int64_t count, void *dy, int64_t dy_stride,
                     void *x, void *dx)
{
    assert_ok(try_backward(subject, format, format, count, dy, dy_stride, x, dx));
}

static long double right_forward(const struct subject *subject, double x)
{
    return subject->op->value(x, subject->beta);
}

static long double right_slope(const struct subject *subject, double x)
{
    return subject->op->slope(x, subject->beta);
}

/* The bar for the forward, in units of the last place, where the result is a normal number. Without a long double wider than
 * double the right values for float64 carry the rounding of an exponent, which may be 750, into the result. */
static double forward_bar(const struct format *format)
{
    if (format->size == 2)
        return 0.51;
    return format->size == 8 && !long_double_is_wider() ? 1000 : 2;
}

/* How far a result is from right, in ulps; in units of the smallest number where the result is not normal. Infinite for a nan or
 * an inf that is not right. */
static double error_of(const struct format *format, double got, long double right)
{
    if (isinf(got) && fabsl(right) > finite_most(format) && signbit(got) == signbit(right))
        return 0;
    return isfinite(got) ? ulps_between(format, got, right) : INFINITY;
}

/* Sizes and alignments: every size around the widths of vectors, every address, nothing written beside the result. */
static void check_sizes(const struct subject *subject, const struct format *format, const struct fl_cpu_variant *variant)
{
    enum { MOST = 67, MARGIN = 32, ROOM = MOST * 8 + 2 * MARGIN };
    static _Alignas(64) char dy[ROOM], x[ROOM], y[ROOM], base_y[ROOM];
    int size = format->size;
    for (int count = 0; count <= MOST; count++)
        for (int offset = 0; offset <= 17; offset++) {
            if (is_thin() && (count * 18 + offset) % 23 != 0)
                continue;
            char *x_at = x + offset_of(offset, size), *dy_at = dy + offset_of((offset * 5 + count) % 18, size);
            char *y_at = y + MARGIN + offset_of((offset * 7 + 3 * count) % 18, size);
            for (int i = 0; i < count; i++) {
                store(format, x_at + i * size, (i * 37 % 64 - 31) * 0.3125L);
                store(format, dy_at + i * size, (i * 11 % 32 - 15) * 0.25L);
            }
            for (int way = 0; way < 3; way++) {
                memset(y, 0x5a, sizeof y);
                test_use_variant(&fl_cpu_base);
                if (way == 0)
                    forward(subject, format, count, x_at, base_y);
                else
                    backward(subject, format, count, dy_at, way == 1, x_at, base_y);
                test_use_variant(variant);
                if (way == 0)
                    forward(subject, format, count, x_at, y_at);
                else
                    backward(subject, format, count, dy_at, way == 1, x_at, y_at);
                for (int i = 0; i < count; i++) {
                    double value = load(format, x_at + i * size), got = load(format, y_at + i * size);
                    double gradient = way == 0 ? 1 : load(format, dy_at + (way == 1 ? i * size : 0));
                    long double right = way == 0 ? right_forward(subject, value) : gradient * right_slope(subject, value);
                    double unit = (double)ulp_at(format, way == 0 ? right : fmaxl(fabsl(right), fabs(gradient)));
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
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
    check_sizes(subject, &formats[f], *variant);
}

/* A number far out, infinity or nan among others, which takes the whole block another way, changes no bit of those others; nor does it
 * matter whether results are written over an input, which is gone then. */
static void far_numbers_among_near_ones(void **state)
{
    (void)state;
    enum { LENGTH = 150, PLACE = 71 };
    static const double far[] = {200, -200, 3000, -3000, INFINITY, -INFINITY, NAN};
    char dy[LENGTH * 8], x[LENGTH * 8], near_y[LENGTH * 8], near_dx[LENGTH * 8], y[LENGTH * 8], dx[LENGTH * 8], over[LENGTH * 8];
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            size_t before = PLACE * (size_t)format->size, behind = before + (size_t)format->size;
            test_use_variant(*variant);
            for (int i = 0; i < LENGTH; i++) {
                store(format, x + i * format->size, (i - 75) * 0.21L);
                store(format, dy + i * format->size, (i * 11 % 32 - 15) * 0.25L);
            }
            forward(subject, format, LENGTH, x, near_y);
            backward(subject, format, LENGTH, dy, 1, x, near_dx);
            for (size_t k = 0; k < sizeof far / sizeof *far; k++) {
                store(format, x + before, far[k]);
                forward(subject, format, LENGTH, x, y);
                backward(subject, format, LENGTH, dy, 1, x, dx);
                assert_memory_equal(y, near_y, before);
                assert_memory_equal(y + behind, near_y + behind, LENGTH * (size_t)format->size - behind);
                assert_memory_equal(dx, near_dx, before);
                assert_memory_equal(dx + behind, near_dx + behind, LENGTH * (size_t)format->size - behind);
                memcpy(over, x, sizeof over);
                forward(subject, format, LENGTH, over, over);
                assert_memory_equal(over, y, LENGTH * (size_t)format->size);
                memcpy(over, x, sizeof over);
                backward(subject, format, LENGTH, dy, 1, over, over);
                assert_memory_equal(over, dx, LENGTH * (size_t)format->size);
                memcpy(over, dy, sizeof over);
                backward(subject, format, LENGTH, over, 1, x, over);
                assert_memory_equal(over, dx, LENGTH * (size_t)format->size);
            }
        }
}

/* Large enough for threads, and no multiple of anything. In place for the backward. */
static void large_tensors(void **state)
{
    (void)state;
    enum { LENGTH = (1 << 18) + 13 };
    static double x_memory[LENGTH + 1], y_memory[LENGTH + 1];
    FOR_EACH_SUBJECT(subject)
    if (subject->beta == 1)
        for (int f = 0; f < FORMATS; f++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                char *x = (char *)x_memory + offset_of((f % 2) * 3, format->size), *y = (char *)y_memory;
                double gradient = 1.5;
                char dy[8];
                int step = is_thin() ? 1009 : 7;
                test_use_variant(*variant);
                for (int i = 0; i < LENGTH; i++)
                    store(format, x + i * format->size, (i % 4001 - 2000) / 128.0L);
                store(format, dy, gradient);
                forward(subject, format, LENGTH, x, y);
                for (int i = 0; i < LENGTH; i += step)
                    assert_true(error_of(format, load(format, y + i * format->size),
                                         right_forward(subject, load(format, x + i * format->size))) <= forward_bar(format));
                memcpy(y, x, (size_t)LENGTH * (size_t)format->size);
                backward(subject, format, LENGTH, dy, 0, x, x);
                for (int i = 0; i < LENGTH; i += step) {
                    long double right = gradient * right_slope(subject, load(format, y + i * format->size));
                    assert_true(fabsl(load(format, x + i * format->size) - right) <=
                                4 * ulp_at(format, fmaxl(gradient, fabsl(right))));
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

/* What the variants' errors come to. */
enum { VARIANTS_MOST = 4 };
struct tally {
    double worst, at, small, sum, units;
};

/* K11, K16, K17, K22: a bounded error over the whole range, in the negative tail too. */
static void accuracy_of_forward(void **state)
{
    (void)state;
    static char x[BATCH * 8], y[BATCH * 8];
    static long double right[BATCH];
    FOR_EACH_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++) {
        const struct format *format = &formats[f];
        struct tally tallies[VARIANTS_MOST] = {{0, 0, 0, 0, 0}};
        if (is_on_gpu() && format->size == 2 && fabs(subject->beta) < 0.0015)
            continue; /* a GPU's 16-bit arithmetic loses the tail of |x| > 2^16: lib/formulas/exp2_short.h */
        for (int first = 0; first < input_count(format); first = next_batch(first)) {
            int count = inputs(format, first, x);
            for (int i = 0; i < count; i++)
                right[i] = right_forward(subject, load(format, x + i * format->size));
            FOR_EACH_VARIANT(variant)
            {
                struct tally *tally = &tallies[variant - test_variants];
                test_use_variant(*variant);
                forward(subject, format, count, x, y);
                for (int i = 0; i < count; i++) {
                    double error = error_of(format, load(format, y + i * format->size), right[i]);
                    if (fabsl(right[i]) < normal_least(format) && isfinite(error)) {
                        tally->small = fmax(tally->small, error);
                    } else if (!(error <= tally->worst)) {
                        tally->worst = error;
                        tally->at = load(format, x + i * format->size);
                    }
                }
            }
        }
        FOR_EACH_VARIANT(variant)
        {
            struct tally *tally = &tallies[variant - test_variants];
            if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                print_message("# forward %s %s %s beta %g: %.4f ulp at %a; %.3g below the normal numbers\n", subject->op->name,
                              (*variant)->name, format->name, subject->beta, tally->worst, tally->at, tally->small);
            if (format->size == 2 && !is_on_gpu() && !(tally->small <= forward_bar(format)))
                fail_msg("%s %s %s beta %g: %g of the smallest number off", subject->op->name, (*variant)->name, format->name,
                         subject->beta, tally->small);
            if (!(tally->worst <= forward_bar(format))) {
                print_error("%s %s %s beta %g: %g ulp at x = %.17g (%a)\n", subject->op->name, (*variant)->name, format->name,
                            subject->beta, tally->worst, tally->at, tally->at);
                fail();
            }
        }
    }
}

/* The largest error of dx, relative to |dy|, is not above the textbook's. Never a nan or inf out of finite numbers. */
static void accuracy_of_backward(void **state)
{
    (void)state;
    static char dy[BATCH * 8], x[BATCH * 8], dx[BATCH * 8];
    static long double right[BATCH];
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++) {
        const struct format *format = &formats[f];
        struct tally textbook = {0, 0, 0, 0, 0}, tallies[VARIANTS_MOST] = {{0, 0, 0, 0, 0}};
        if (format->size == 8 && !long_double_is_wider())
            continue;
        for (int first = 0; first < input_count(format); first = next_batch(first)) {
            int count = inputs(format, first, x);
            for (int i = 0; i < count; i++) {
                store(format, dy + i * format->size, i % 3 == 0 ? 1 : (i * 7 % 33 - 16) / 16.0L + 0.03125L);
                double gradient = load(format, dy + i * format->size), value = load(format, x + i * format->size);
                right[i] = gradient * right_slope(subject, value);
                double other = round_to(format, subject->op->textbook(gradient, value, subject->beta, format->size == 8));
                double error = (double)(fabsl(other - right[i]) / fabs(gradient));
                if (isfinite(other) && fabsl(right[i]) <= finite_most(format)) {
                    textbook.worst = fmax(textbook.worst, error);
                    textbook.sum += error;
                }
            }
            FOR_EACH_VARIANT(variant)
            {
                struct tally *tally = &tallies[variant - test_variants];
                test_use_variant(*variant);
                backward(subject, format, count, dy, 1, x, dx);
                for (int i = 0; i < count; i++) {
                    double got = load(format, dx + i * format->size);
                    double error = (double)(fabsl(got - right[i]) / fabs(load(format, dy + i * format->size)));
                    if (fabsl(right[i]) > finite_most(format)) {
                        assert_true(isinf(got) || fabs(got) == finite_most(format));
                        continue;
                    }
                    if (isinf(got)) { /* a slope without a bound may overflow by itself */
                        double value = load(format, x + i * format->size);
                        assert_true(fabsl(right_slope(subject, value)) >
                                    finite_most(&formats[format->size == 8 ? IN_FLOAT64 : IN_FLOAT32]));
                        continue;
                    }
                    assert_true(isfinite(got));
                    tally->sum += error;
                    long double larger = fmaxl(fabsl(right[i]), fabs(load(format, dy + i * format->size)));
                    tally->units = fmax(tally->units, (double)(fabsl(got - right[i]) / ulp_at(format, larger)));
                    if (error > tally->worst) {
                        tally->worst = error;
                        tally->at = load(format, x + i * format->size);
                    }
                }
            }
        }
        FOR_EACH_VARIANT(variant)
        {
            struct tally *tally = &tallies[variant - test_variants];
            if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                print_message("# backward %s %s %s beta %g: %.4f ulp of the larger of dx and dy; worst %.9g (textbook %.9g) at "
                              "%a, sum %.9g (%.9g)\n",
                              subject->op->name, (*variant)->name, format->name, subject->beta, tally->units, tally->worst,
                              textbook.worst, tally->at, tally->sum, textbook.sum);
            if (tally->worst > textbook.worst) {
                print_error("backward %s %s %s beta %g: %.17g at x = %a, textbook %.17g\n", subject->op->name, (*variant)->name,
                            format->name, subject->beta, tally->worst, tally->at, textbook.worst);
                fail();
            }
        }
    }
}

/* Nor is the mean error on what networks hold: x and dy like normally distributed numbers. (For the 16-bit types, where both are
 * rounded to the same few numbers, the means are the same but for chance.) */
static void mean_error_of_backward(void **state)
{
    (void)state;
    FOR_EACH_PLAIN_SUBJECT(subject)
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
            backward(subject, format, BATCH, dy, 1, x, dx);
            for (int i = 0; i < BATCH; i++) {
                double gradient = load(format, dy + i * format->size), value = load(format, x + i * format->size);
                long double right = gradient * right_slope(subject, value);
                double textbook = subject->op->textbook(gradient, value, subject->beta, format->size == 8);
                sum += (double)fabsl(load(format, dx + i * format->size) - right);
                textbook_sum += (double)fabsl(textbook - right);
            }
            if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                print_message("# backward %s %s %s: mean error %.3f of the textbook's\n", subject->op->name, (*variant)->name,
                              format->name, sum / textbook_sum);
            assert_true(sum <= textbook_sum);
        }
}

/* The largest slope there is, either way; infinite for one without a bound. */
static double slope_most(const struct subject *subject)
{
    double most = 0;
    for (double z = -12; z <= 12; z += 0.01)
        most = fmax(most, (double)fabsl(right_slope(subject, subject->op->has_beta ? z / subject->beta : z)));
    return fabsl(right_slope(subject, 1e6)) > 2 ? INFINITY : most;
}

/* K9: huge and odd numbers through the backward: finite in, finite out, and bounded. */
static void backward_stays_finite(void **state)
{
    (void)state;
    static char x[BATCH * 8], dx[BATCH * 8];
    FOR_EACH_SUBJECT(subject)
    {
        double bound = subject->beta != 0 ? slope_most(subject) * 1.01 : 1;
        if (isfinite(bound))
            for (int f = 0; f < FORMATS; f++)
                FOR_EACH_VARIANT(variant)
                {
                    const struct format *format = &formats[f];
                    char dy[8];
                    double most = (double)round_to(format, finite_most(format) * 0.98 / fmax(1, bound));
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
                            backward(subject, format, count, dy, 0, x, dx);
                            for (int i = 0; i < count; i++)
                                assert_true(fabs(load(format, dx + i * format->size)) / gradient <= bound);
                        }
                    }
                }
    }
}

/* True if they are the same number, or both nan. The sign of a zero counts; but valgrind's fused multiply-add loses it. */
static int is_same(double got, double right)
{
    if (isnan(got) || isnan(right))
        return isnan(got) && isnan(right);
    return got == right && (right != 0 || !signbit(got) == !signbit(right) || !long_double_is_wider());
}

/* K1, K2, K8, K13, K19: special values, in every position of a vector and of what is left over, without harm to the neighbours. */
static void special_values(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    static const double specials[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        for (int at = 0; at < LENGTH; at++)
            for (int s = 0; s < COUNT(specials); s++)
                FOR_EACH_VARIANT(variant)
                {
                    const struct format *format = &formats[f];
                    char dy[LENGTH * 8], x[LENGTH * 8], y[LENGTH * 8], dx[LENGTH * 8];
                    test_use_variant(*variant);
                    for (int i = 0; i < LENGTH; i++) {
                        store(format, x + i * format->size, i == at ? specials[s] : (i - 18) * 0.5);
                        store(format, dy + i * format->size, -2);
                    }
                    forward(subject, format, LENGTH, x, y);
                    backward(subject, format, LENGTH, dy, 1, x, dx);
                    for (int i = 0; i < LENGTH; i++) {
                        double got = load(format, y + i * format->size), slope = load(format, dx + i * format->size);
                        if (i != at) {
                            assert_true(error_of(format, got, right_forward(subject, (i - 18) * 0.5)) <= forward_bar(format));
                            assert_true(isfinite(slope));
                        } else {
                            if (!is_same(got, (double)right_forward(subject, specials[s])))
                                print_error("%s %s %s %g: %g\n", subject->op->name, (*variant)->name, format->name, specials[s],
                                            got);
                            assert_true(is_same(got, (double)right_forward(subject, specials[s])));
                            double right = -2 * (double)right_slope(subject, specials[s]);
                            assert_true(right == 0 ? slope == 0 : is_same(slope, right));
                        }
                    }
                }
}

/* The same as numbers of their own. */
static void known_values(void **state)
{
    (void)state;
    FOR_EACH_SUBJECT(subject)
    if (subject->beta == 1)
        for (const struct known *known = subject->op->known; known < subject->op->known + subject->op->known_count; known++)
            for (int f = 0; f < FORMATS; f++)
                FOR_EACH_VARIANT(variant)
                {
                    const struct format *format = &formats[f];
                    char dy[8], x[8], y[8], dx[8];
                    test_use_variant(*variant);
                    store(format, dy, 1);
                    store(format, x, known->x);
                    forward(subject, format, 1, x, y);
                    backward(subject, format, 1, dy, 1, x, dx);
                    double got = load(format, y), slope = load(format, dx), right = known->value;
                    if (isfinite(right) && right != 0)
                        assert_true(error_of(format, got, right) <= forward_bar(format) + (format->size == 8));
                    else
                        assert_true(is_same(got, right));
                    assert_true(isinf(known->slope) ? slope == known->slope
                                                    : fabs(slope - known->slope) <= 2 * (double)ulp_at(format, 1));
                }
}

/* A gradient that is nan or inf is passed on; an infinite one times a slope of 0 is nan, as a product is. */
static void special_gradients(void **state)
{
    (void)state;
    static const double cases[][2] = {/* dy and x */
                                      {NAN, 1},  {NAN, -INFINITY}, {INFINITY, 1},     {-INFINITY, 1},       {INFINITY, -2},
                                      {NAN, -2}, {NAN, 0},         {-INFINITY, -0.0}, {INFINITY, INFINITY}, {INFINITY, -INFINITY},
                                      {0.0, 5},  {0.0, INFINITY}};
    FOR_EACH_SUBJECT(subject)
    if (subject->beta == 1)
        for (int f = 0; f < FORMATS; f++)
            for (int k = 0; k < COUNT(cases); k++)
                FOR_EACH_VARIANT(variant)
    for (int count = 1; count <= 33; count += 32) {
        const struct format *format = &formats[f];
        char dy[33 * 8], x[33 * 8], dx[33 * 8];
        double right = (double)right_gradient(subject->op, cases[k][0], cases[k][1], 1);
        test_use_variant(*variant);
        for (int i = 0; i < count; i++) {
            store(format, dy + i * format->size, cases[k][0]);
            store(format, x + i * format->size, cases[k][1]);
        }
        backward(subject, format, count, dy, 1, x, dx);
        for (int i = 0; i < count; i++) {
            double got = load(format, dx + i * format->size);
            assert_true(isnan(right) ? isnan(got) : got == right);
        }
    }
}

/* A place in an operator's far tail. */
struct tail {
    const char *name;
    int format;
    double x;
};

/* A unary operator, with beta = 1. */
static const struct subject *subject_named(const char *name)
{
    FOR_EACH_SUBJECT(subject)
    if (strcmp(subject->op->name, name) == 0 && subject->beta == 1)
        return subject;
    fail_msg("there is no %s", name);
    return NULL;
}

/* K5, K16, K17: the far tail, where an exponential of -x overflows or 1 + erf is 0: the results are still normal numbers. */
static void far_tail(void **state)
{
    (void)state;
    static const struct tail cases[] = {
        {"swish", IN_FLOAT32, -88},        {"swish", IN_FLOAT32, -89},        {"swish", IN_FLOAT32, -91.5},
        {"swish", IN_FLOAT64, -709.8},     {"swish", IN_FLOAT64, -714},       {"swish", IN_BFLOAT16, -89},
        {"swish", IN_BFLOAT16, -91.5},     {"gelu", IN_FLOAT32, -9},          {"gelu", IN_FLOAT32, -13.0625},
        {"gelu", IN_FLOAT64, -37.5},       {"gelu", IN_BFLOAT16, -13},        {"gelu", IN_FLOAT16, -3.75},
        {"gelu_tanh", IN_FLOAT32, -6.5},   {"gelu_tanh", IN_FLOAT32, -10.05}, {"gelu_tanh", IN_FLOAT64, -21},
        {"gelu_tanh", IN_BFLOAT16, -9.75}, {"gelu_tanh", IN_FLOAT16, -3.75},
    };
    for (int k = 0; k < COUNT(cases); k++)
        FOR_EACH_VARIANT(variant)
        {
            const struct subject *subject = subject_named(cases[k].name);
            const struct format *format = &formats[cases[k].format];
            char x[8], y[8];
            if (format->size == 8 && !long_double_is_wider())
                continue;
            test_use_variant(*variant);
            store(format, x, cases[k].x);
            forward(subject, format, 1, x, y);
            assert_true(load(format, y) <= -normal_least(format));
            assert_true(error_of(format, load(format, y), right_forward(subject, load(format, x))) <= forward_bar(format));
        }
}

/* The same of gradients: not beside dy, as accuracy_of_backward has it, but by themselves, far from where they cross 0. */
static void far_tail_of_gradients(void **state)
{
    (void)state;
    static const struct tail cases[] = {
        {"swish", IN_FLOAT32, -85},      {"swish", IN_BFLOAT16, -85},     {"swish", IN_FLOAT16, -12},
        {"swish", IN_FLOAT64, -700},     {"gelu", IN_FLOAT32, -13},       {"gelu", IN_BFLOAT16, -13.25},
        {"gelu", IN_BFLOAT16, -13.3125}, {"gelu", IN_FLOAT16, -3.75},     {"gelu", IN_FLOAT64, -37.5},
        {"gelu_tanh", IN_FLOAT32, -10},  {"gelu_tanh", IN_BFLOAT16, -10}, {"gelu_tanh", IN_FLOAT16, -3.75},
    };
    for (int k = 0; k < COUNT(cases); k++)
        FOR_EACH_VARIANT(variant)
        {
            const struct subject *subject = subject_named(cases[k].name);
            const struct format *format = &formats[cases[k].format];
            char dy[8], x[8], dx[8];
            if ((format->size == 8 && !long_double_is_wider()) || (format->size == 2 && is_on_gpu()))
                continue; /* a GPU's exponentials underflow there: lib/formulas/gelu.h */
            test_use_variant(*variant);
            store(format, dy, 1);
            store(format, x, cases[k].x);
            backward(subject, format, 1, dy, 1, x, dx);
            long double right = right_slope(subject, load(format, x));
            double error = error_of(format, load(format, dx), right);
            assert_true(right <= -normal_least(format));
            if (!(error <= (format->size == 2 ? 0.51 : 4)))
                fail_msg("%s %s %s: %g ulp at %g", subject->op->name, (*variant)->name, format->name, error, cases[k].x);
        }
}

/* A result, and its gradient, of another dtype than the operand's: float32 with either 16-bit type. Nothing else mixes. */
static void mixed_dtypes(void **state)
{
    (void)state;
    enum { MOST = 600 };
    static char dy[MOST * 8], x[MOST * 8], y[MOST * 8], dx[MOST * 8];
    static const int counts[] = {1, 2, 7, 31, 33, 511, 513, MOST};
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        for (int g = 0; g < FORMATS; g++)
            for (int c = 0; c < COUNT(counts); c++)
                FOR_EACH_VARIANT(variant)
                {
                    const struct format *operand = &formats[f], *result = &formats[g];
                    int count = counts[c];
                    if (f == g)
                        continue;
                    test_use_variant(*variant);
                    memset(y, 0x5a, sizeof y);
                    memset(dx, 0x5a, sizeof dx);
                    for (int i = 0; i < count; i++) {
                        store(operand, x + i * operand->size, (i * 37 % 640 - 319) / 64.0);
                        store(result, dy + i * result->size, (i * 11 % 32 - 15) * 0.25);
                    }
                    if (operand->size + result->size != 6) {
                        assert_refused(try_forward(subject, operand, result, count, x, y), FUSELINE_ERROR_DTYPE, "y: dtype is ",
                                       result->name, operand->name, "float32 with a 16-bit type");
                        assert_refused(try_backward(subject, operand, result, count, dy, 1, x, dx), FUSELINE_ERROR_DTYPE,
                                       "dy: dtype is ", result->name, operand->name);
                        assert_true(y[0] == 0x5a && dx[0] == 0x5a);
                        continue;
                    }
                    assert_ok(try_forward(subject, operand, result, count, x, y));
                    assert_ok(try_backward(subject, operand, result, count, dy, 1, x, dx));
                    for (int i = 0; i < count; i++) {
                        double value = load(operand, x + i * operand->size), gradient = load(result, dy + i * result->size);
                        long double right = gradient * right_slope(subject, value);
                        assert_true(error_of(result, load(result, y + i * result->size), right_forward(subject, value)) <=
                                    forward_bar(result));
                        assert_true(fabsl(load(operand, dx + i * operand->size) - right) <=
                                    4 * ulp_at(operand, fmaxl(fabsl(right), fabs(gradient))));
                    }
                    for (int i = count * result->size; i < (int)sizeof y; i++)
                        assert_true(y[i] == 0x5a);
                    for (int i = count * operand->size; i < (int)sizeof dx; i++)
                        assert_true(dx[i] == 0x5a);
                }
}

/* Rows that lie apart, in vectors and one element at a time; and gradients that repeat one value in a row, or one row. */
static void strided_rows(void **state)
{
    (void)state;
    enum { ROWS = 5, MOST = ROWS * 80 };
    static _Alignas(64) char dy[MOST * 8], x[MOST * 8], y[MOST * 8], dx[MOST * 8];
    static const int shapes[][2] = {{64, 16}, {64, 0}, {7, 3}, {33, 1}}; /* columns, elements between rows */
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        for (int g = 0; g < FORMATS; g++)
            for (int s = 0; s < COUNT(shapes); s++)
                for (int repeats = 0; repeats < 3; repeats++)
                    FOR_EACH_VARIANT(variant)
                    {
                        const struct format *operand = &formats[f], *result = &formats[g];
                        int64_t columns = shapes[s][0], step = columns + shapes[s][1], shape[] = {ROWS, columns};
                        int64_t strides[] = {step, 1}, gradient_strides[] = {repeats == 2 ? 0 : step, repeats != 1};
                        struct scalars scalars = plain_scalars;
                        DLTensor from = tensor_of(x, operand->dtype, 2, shape, strides),
                                 to = tensor_of(y, result->dtype, 2, shape, strides),
                                 gradient = tensor_of(dy, result->dtype, 2, shape, gradient_strides),
                                 slope = tensor_of(dx, operand->dtype, 2, shape, strides);
                        if (f != g && operand->size + result->size != 6)
                            continue;
                        test_use_variant(*variant);
                        scalars.beta = subject->beta;
                        memset(y, 0x5a, sizeof y);
                        memset(dx, 0x5a, sizeof dx);
                        for (int i = 0; i < MOST; i++) {
                            store(operand, x + i * operand->size, (i * 37 % 640 - 319) / 64.0);
                            store(result, dy + i * result->size, (i * 11 % 32 - 15) * 0.25);
                        }
                        assert_ok(subject->op->forward.borrow((void *[]){&from, &to}, &scalars));
                        assert_ok(subject->op->backward.borrow((void *[]){&gradient, &from, &slope}, &scalars));
                        for (int64_t row = 0; row < ROWS; row++)
                            for (int64_t column = 0; column < step && row * step + column < MOST; column++) {
                                int64_t at = row * step + column;
                                if (column >= columns) { /* between rows */
                                    for (int b = 0; b < result->size; b++)
                                        assert_true(y[at * result->size + b] == 0x5a);
                                    for (int b = 0; b < operand->size; b++)
                                        assert_true(dx[at * operand->size + b] == 0x5a);
                                    continue;
                                }
                                double value = load(operand, x + at * operand->size);
                                double factor =
                                    load(result, dy + (row * gradient_strides[0] + column * gradient_strides[1]) * result->size);
                                long double right = factor * right_slope(subject, value);
                                assert_true(error_of(result, load(result, y + at * result->size),
                                                     right_forward(subject, value)) <= forward_bar(result));
                                assert_true(fabsl(load(operand, dx + at * operand->size) - right) <=
                                            4 * ulp_at(operand, fmaxl(fabsl(right), fabs(factor))));
                            }
                    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_alignments),
        cmocka_unit_test(far_numbers_among_near_ones),
        cmocka_unit_test(large_tensors),
        cmocka_unit_test(accuracy_of_forward),
        cmocka_unit_test(accuracy_of_backward),
        cmocka_unit_test(mean_error_of_backward),
        cmocka_unit_test(backward_stays_finite),
        cmocka_unit_test(special_values),
        cmocka_unit_test(known_values),
        cmocka_unit_test(special_gradients),
        cmocka_unit_test(far_tail),
        cmocka_unit_test(far_tail_of_gradients),
        cmocka_unit_test(mixed_dtypes),
        cmocka_unit_test(strided_rows),
    };
    list_subjects();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
