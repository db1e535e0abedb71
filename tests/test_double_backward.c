/*
 * The second derivatives of the unary operators, on every instruction set that this machine runs: all dtypes, short and long tensors,
 * broadcast gradients, special values, and errors that are not above those of the expression that PyTorch differentiates twice.
 */
#include "testing.h"

#include <stdlib.h>

#include "curvatures.h"
#include "internal.h"
#include "numbers.h"
#include "operators.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)

/* What automatic differentiation makes of the backward that PyTorch writes, with dy = 1, in the type it computes in. */
#define IN(real, function, x) ((real)(sizeof(real) == sizeof(float) ? function##f((float)(x)) : function((double)(x))))
#define TEXTBOOKS_IN(real, bits)                                                                                                 \
    static real swish_second_##bits(real x, real beta)                                                                           \
    {                                                                                                                            \
        real s = 1 / (1 + IN(real, exp, -beta * x)), s_slope = beta * s * (1 - s);                                               \
        return s_slope * (1 + beta * x * (1 - s)) + s * (beta * (1 - s) - beta * x * s_slope);                                   \
    }                                                                                                                            \
    static real gelu_second_##bits(real x, real beta)                                                                            \
    {                                                                                                                            \
        real pdf = IN(real, exp, x * x * (real) - 0.5) * (real)0.39894228040143268;                                              \
        (void)beta;                                                                                                              \
        return pdf + pdf + x * (pdf * -x);                                                                                       \
    }                                                                                                                            \
    static real gelu_tanh_second_##bits(real x, real beta)                                                                       \
    {                                                                                                                            \
        const real scale = (real)0.79788456080286536, cubic = (real)0.044715;                                                    \
        real t = IN(real, tanh, scale * (x + cubic * x * x * x)), rest = 1 - t * t, inner = scale * (1 + 3 * cubic * x * x);     \
        (void)beta;                                                                                                              \
        return (real)0.5 * rest * inner + (real)0.5 * rest * inner + (real)0.5 * x * (-2 * t * rest * inner) * inner +           \
               (real)0.5 * x * rest * (scale * 6 * cubic * x);                                                                   \
    }                                                                                                                            \
    static real relu2_second_##bits(real x, real beta)                                                                           \
    {                                                                                                                            \
        (void)beta;                                                                                                              \
        return x > 0 ? 2 : 0;                                                                                                    \
    }
TEXTBOOKS_IN(float, 32)
TEXTBOOKS_IN(double, 64)

static const struct second {
    const char *name;
    right_function *curvature;
    float (*textbook_32)(float x, float beta);
    double (*textbook_64)(double x, double beta);
} seconds[] = {
/* clang-format off */
#define ROW(name) {                                                                                                              \
        #name, name##_curvature, name##_second_32, name##_second_64}
    /* clang-format on */
    ROW(swish),
    ROW(gelu),
    ROW(gelu_tanh),
    ROW(relu2),
};

/* What is judged: an operator with its parameter. */
struct subject {
    const struct second *second;
    const struct operator_case *op;
    double beta;
};
static struct subject subjects[32];
static int subject_count;

static void list_subjects(void)
{
    static const double betas[] = {1.702, -1, 0, 1e-30, 1e30, -3.7};
    for (int k = 0; k < COUNT(seconds); k++)
        for (const struct operator_case *op = operators; op < operators + OPERATORS; op++) {
            if (strcmp(op->name, seconds[k].name) != 0)
                continue;
            subjects[subject_count++] = (struct subject){&seconds[k], op, 1};
            for (int b = 0; op->has_beta && b < COUNT(betas); b++)
                subjects[subject_count++] = (struct subject){&seconds[k], op, betas[b]};
        }
}

#define FOR_EACH_SUBJECT(subject) for (const struct subject *subject = subjects; subject < subjects + subject_count; subject++)

/* Those of an ordinary size. */
#define FOR_EACH_PLAIN_SUBJECT(subject) FOR_EACH_SUBJECT(subject) if (fabs(subject->beta) >= 1 && fabs(subject->beta) < 2)

static int is_thin(void)
{
    return getenv("FUSELINE_TEST_THIN") != NULL;
}

/* The operands' memory, and how far each is broadcast: a stride of 1, or 0. */
struct operands {
    void *ddx, *dy, *x, *ddy, *dx;
    int64_t ddx_stride, dy_stride;
};

static fuseline_status try(const struct subject *subject, const struct format *operand, const struct format *result,
                           int64_t count, struct operands o)
{
    DLTensor ddx = tensor_of(o.ddx, operand->dtype, 1, &count, &o.ddx_stride),
             dy = tensor_of(o.dy, result->dtype, 1, &count, &o.dy_stride), x = tensor_of(o.x, operand->dtype, 1, &count, NULL),
             ddy = tensor_of(o.ddy, result->dtype, 1, &count, NULL), dx = tensor_of(o.dx, operand->dtype, 1, &count, NULL);
    struct scalars scalars = plain_scalars;
    scalars.beta = subject->beta;
    return subject->op->double_backward.borrow((void *[]){&ddx, &dy, &x, &ddy, &dx}, &scalars);
}

static long double right_slope(const struct subject *subject, double x)
{
    return subject->op->slope(x, subject->beta);
}

static long double right_curvature(const struct subject *subject, double x)
{
    return subject->second->curvature(x, subject->beta);
}

/* Both results at one element: within some units in the last place of the result, or of the product of the gradients. */
static void check_element(const struct subject *subject, const struct format *operand, const struct format *result,
                          const double in[3], double ddy, double dx)
{
    long double right_ddy = in[0] * right_slope(subject, in[2]), right_dx = in[0] * (in[1] * right_curvature(subject, in[2]));
    double scale = fabs(in[0] * in[1]) * fmax(1, fabs(subject->beta));
    if (!(fabsl(ddy - right_ddy) <= 4 * ulp_at(result, fmaxl(fabsl(right_ddy), fabs(in[0])))) ||
        !(fabsl(dx - right_dx) <= 4 * ulp_at(operand, fmaxl(fabsl(right_dx), scale)))) {
        print_error("%s beta %g %s %s: ddx %g, dy %g, x %.17g: ddy %.17g (%.17g), dx %.17g (%.17g)\n", subject->op->name,
                    subject->beta, operand->name, result->name, in[0], in[1], in[2], ddy, (double)right_ddy, dx,
                    (double)right_dx);
        fail();
    }
}

/* Fills memory with values that differ from place to place. */
static void fill(const struct format *format, char *to, int count, int factor, double scale)
{
    for (int i = 0; i < count; i++)
        store(format, to + i * format->size, (i * factor % 64 - 31) * scale);
}

/* Every size around the widths of vectors, at any address and aligned, with broadcast gradients, in place, and with mixed dtypes. */
static void sizes_and_forms(void **state)
{
    (void)state;
    enum { MOST = 70, ROOM = (MOST + 8) * 8 };
    static _Alignas(64) char ddx[ROOM], dy[ROOM], x[ROOM], ddy[ROOM], dx[ROOM];
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        for (int g = 0; g < FORMATS; g++)
            for (int count = 0; count <= MOST; count++)
                for (int form = 0; form < 7; form++)
                    FOR_EACH_VARIANT(variant)
                    {
                        const struct format *operand = &formats[f], *result = &formats[g];
                        int m = operand->size, n = result->size, shift = count % 5;
                        if ((f != g && m + n != 6) || (is_thin() && (count + form) % 7 != 0))
                            continue;
                        struct operands o = {ddx + shift * m, dy + n, x, ddy + 2 * n, dx + shift * m, form != 1, form != 2};
                        if (form == 3) { /* in place */
                            o.ddy = o.dy;
                            o.dx = o.x;
                        } else if (form == 4) {
                            o.dx = o.ddx;
                        } else if (form >= 5) { /* aligned; ddx is one value, for which a GPU has another kernel */
                            o = (struct operands){ddx, dy, x, ddy, dx, form == 5, 1};
                        }
                        fill(operand, o.ddx, count + 1, 11, 0.125);
                        fill(result, o.dy, count + 1, 23, 0.25);
                        fill(operand, o.x, count + 1, 37, 0.25);
                        memset(ddy, 0x5a, sizeof ddy);
                        memset(dx, 0x5a, sizeof dx);
                        double in[MOST][3];
                        for (int i = 0; i < count; i++) {
                            in[i][0] = load(operand, (char *)o.ddx + i * o.ddx_stride * m);
                            in[i][1] = load(result, (char *)o.dy + i * o.dy_stride * n);
                            in[i][2] = load(operand, (char *)o.x + i * m);
                        }
                        test_use_variant(*variant);
                        assert_ok(try(subject, operand, result, count, o));
                        for (int i = 0; i < count; i++)
                            check_element(subject, operand, result, in[i], load(result, (char *)o.ddy + i * n),
                                          load(operand, (char *)o.dx + i * m));
                        for (char *c = ddy; form != 3 && form != 4 && c < ddy + sizeof ddy; c++)
                            assert_true((c >= (char *)o.ddy && c < (char *)o.ddy + count * n) || *c == 0x5a);
                        for (char *c = dx; form != 3 && form != 4 && c < dx + sizeof dx; c++)
                            assert_true((c >= (char *)o.dx && c < (char *)o.dx + count * m) || *c == 0x5a);
                    }
}

/* Large enough for threads, and no multiple of anything. */
static void large_tensors(void **state)
{
    (void)state;
    enum { LENGTH = (1 << 18) + 13 };
    static double x_memory[LENGTH], ddx_memory[LENGTH], ddy_memory[LENGTH], dx_memory[LENGTH];
    FOR_EACH_SUBJECT(subject)
    if (subject->beta == 1)
        for (int f = 0; f < FORMATS; f++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                int size = format->size;
                char *x = (char *)x_memory, *ddx = (char *)ddx_memory, dy[8];
                for (int i = 0; i < LENGTH; i++) {
                    store(format, x + i * size, (i % 4001 - 2000) / 128.0);
                    store(format, ddx + i * size, (i % 31 - 15) / 8.0);
                }
                store(format, dy, 1.5);
                test_use_variant(*variant);
                assert_ok(try(subject, format, format, LENGTH, (struct operands){ddx, dy, x, ddy_memory, dx_memory, 1, 0}));
                for (int i = 0; i < LENGTH; i += is_thin() ? 1009 : 7) {
                    double in[3] = {load(format, ddx + i * size), 1.5, load(format, x + i * size)};
                    check_element(subject, format, format, in, load(format, (char *)ddy_memory + i * size),
                                  load(format, (char *)dx_memory + i * size));
                }
            }
}

/* Inputs on which accuracy is judged: all numbers of a 16-bit type, else many from the whole range and more of what is not large. */
enum { BATCH = 4096 };
static double input(const struct format *format, int number)
{
    char bytes[8] = {0};
    if (format->size == 2) {
        uint16_t bits = (uint16_t)number;
        memcpy(bytes, &bits, 2);
    } else if (number < 16384) {
        int exponents = format->exponent_most - format->exponent_least + 1;
        store(format, bytes,
              ldexp((number % 2 ? -1 : 1) * (1 + fmod(number * 0.6180339887498949, 1)),
                    format->exponent_least + number / 2 % exponents));
    } else {
        store(format, bytes, (number - 40960) / 1500.0);
    }
    double value = load(format, bytes);
    return isfinite(value) ? value : 0;
}

/* The largest errors, relative to the gradients, are not above the textbook's. Never a nan or an inf out of finite numbers. */
static void accuracy(void **state)
{
    (void)state;
    static char ddx[8], dy[8], x[BATCH * 8], ddy[BATCH * 8], dx[BATCH * 8];
    FOR_EACH_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            double worst[2] = {0, 0}, textbook[2] = {0, 0}, at[2] = {0, 0};
            if (format->size == 8 && !long_double_is_wider())
                continue;
            store(format, ddx, 0.7);
            store(format, dy, -1.3);
            double a = load(format, ddx), b = load(format, dy);
            test_use_variant(*variant);
            for (int first = 0; first < 65536; first += BATCH * (is_thin() ? 5 : 1)) {
                for (int i = 0; i < BATCH; i++)
                    store(format, x + i * format->size, input(format, first + i));
                assert_ok(try(subject, format, format, BATCH, (struct operands){ddx, dy, x, ddy, dx, 0, 0}));
                for (int i = 0; i < BATCH; i++) {
                    double value = load(format, x + i * format->size), got[2], other[2];
                    long double right[2] = {a * right_slope(subject, value), a * (b * right_curvature(subject, value))};
                    got[0] = load(format, ddy + i * format->size);
                    got[1] = load(format, dx + i * format->size);
                    other[0] = subject->op->textbook(a, value, subject->beta, format->size == 8);
                    other[1] =
                        format->size == 8
                            ? a * b * subject->second->textbook_64(value, subject->beta)
                            : (double)((float)a * (float)b * subject->second->textbook_32((float)value, (float)subject->beta));
                    for (int k = 0; k < 2; k++) {
                        double rounded = round_to(format, other[k]);
                        if (fabsl(right[k]) > finite_most(format))
                            continue;
                        if (isfinite(rounded))
                            textbook[k] = fmax(textbook[k], (double)fabsl(rounded - right[k]));
                        if (!isfinite(got[k]) && fabsl(right_slope(subject, value)) * 2 > finite_most(format))
                            continue; /* of relu2, whose slope 2 * x may overflow by itself */
                        assert_true(isfinite(got[k]));
                        double error = (double)fabsl(got[k] - right[k]);
                        if (error > worst[k]) {
                            worst[k] = error;
                            at[k] = value;
                        }
                    }
                }
            }
            for (int k = 0; k < 2; k++) {
                if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                    print_message("# %s %s %s %s beta %g: worst %.9g (textbook %.9g) at %a\n", k ? "dx" : "ddy",
                                  subject->op->name, (*variant)->name, format->name, subject->beta, worst[k], textbook[k], at[k]);
                /* What the roundings on the way come to is as good, where the textbook has luck with them. */
                if (!(worst[k] <= fmax(textbook[k], (format->size == 2 ? 0.5 : 1.5) * (double)ulp_at(format, 1) *
                                                        fmax(1, fabs(subject->beta))))) {
                    print_error("%s %s %s %s beta %g: %.17g at x = %a, textbook %.17g\n", k ? "dx" : "ddy", subject->op->name,
                                (*variant)->name, format->name, subject->beta, worst[k], at[k], textbook[k]);
                    fail();
                }
            }
        }
}

/* Nor is the mean error on what networks hold: numbers like normally distributed ones. */
static void mean_error(void **state)
{
    (void)state;
    static char ddx[BATCH * 8], dy[BATCH * 8], x[BATCH * 8], ddy[BATCH * 8], dx[BATCH * 8];
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = IN_FLOAT32; f <= IN_FLOAT64; f++)
        FOR_EACH_VARIANT(variant)
        {
            const struct format *format = &formats[f];
            int size = format->size;
            double sum = 0, textbook_sum = 0;
            if (size == 8 && !long_double_is_wider())
                continue;
            for (int i = 0; i < BATCH; i++) { /* Box and Muller's transform of evenly spread numbers */
                double radius = sqrt(-2 * log((i + 0.5) / BATCH)), angle = 2 * M_PI * fmod(i * 0.6180339887498949, 1);
                store(format, x + i * size, radius * cos(angle));
                store(format, dy + i * size, radius * sin(angle));
                store(format, ddx + i * size, radius * cos(angle * 3));
            }
            test_use_variant(*variant);
            assert_ok(try(subject, format, format, BATCH, (struct operands){ddx, dy, x, ddy, dx, 1, 1}));
            for (int i = 0; i < BATCH; i++) {
                double a = load(format, ddx + i * size), b = load(format, dy + i * size), value = load(format, x + i * size);
                long double right = a * (b * right_curvature(subject, value));
                double other =
                    size == 8 ? a * b * subject->second->textbook_64(value, subject->beta)
                              : (double)((float)a * (float)b * subject->second->textbook_32((float)value, (float)subject->beta));
                sum += (double)fabsl(load(format, dx + i * size) - right);
                textbook_sum += (double)fabsl(other - right);
            }
            if (getenv("FUSELINE_TEST_FIGURES") != NULL)
                print_message("# dx %s %s %s: mean error %.3f of the textbook's\n", subject->op->name, (*variant)->name,
                              format->name, sum / textbook_sum);
            assert_true(sum <= textbook_sum);
        }
}

/* Special values in every position of a vector and of what is left over, without harm to the neighbours; and special gradients. */
static void special_values(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    static const double cases[][3] = {/* ddx, dy, x */
                                      {1, -2, NAN},      {1, -2, INFINITY}, {1, -2, -INFINITY}, {1, -2, 0.0},
                                      {1, -2, -0.0},     {NAN, -2, 1},      {1, NAN, 1},        {INFINITY, -2, 1},
                                      {1, -INFINITY, 1}, {0, 0, INFINITY},  {0, 0, 1},          {INFINITY, 1, INFINITY}};
    FOR_EACH_PLAIN_SUBJECT(subject)
    for (int f = 0; f < FORMATS; f++)
        for (int at = 0; at < LENGTH; at++)
            for (int c = 0; c < COUNT(cases); c++)
                FOR_EACH_VARIANT(variant)
                {
                    const struct format *format = &formats[f];
                    int size = format->size;
                    char ddx[LENGTH * 8], dy[LENGTH * 8], x[LENGTH * 8], ddy[LENGTH * 8], dx[LENGTH * 8];
                    for (int i = 0; i < LENGTH; i++) {
                        store(format, ddx + i * size, i == at ? cases[c][0] : 0.5);
                        store(format, dy + i * size, i == at ? cases[c][1] : -2);
                        store(format, x + i * size, i == at ? cases[c][2] : (i - 18) * 0.5);
                    }
                    test_use_variant(*variant);
                    assert_ok(try(subject, format, format, LENGTH, (struct operands){ddx, dy, x, ddy, dx, 1, 1}));
                    for (int i = 0; i < LENGTH; i++) {
                        double in[3] = {load(format, ddx + i * size), load(format, dy + i * size), load(format, x + i * size)};
                        double got[2] = {load(format, ddy + i * size), load(format, dx + i * size)};
                        double right[2] = {(double)(in[0] * right_slope(subject, in[2])),
                                           (double)(in[0] * (in[1] * right_curvature(subject, in[2])))};
                        for (int k = 0; k < 2; k++) {
                            if (!isfinite(right[k]) && !(isnan(right[k]) ? isnan(got[k]) : got[k] == right[k])) {
                                print_error("%s %s beta %g, %s: ddx %g, dy %g, x %g: %g, not %g\n", subject->op->name,
                                            format->name, subject->beta, k ? "dx" : "ddy", in[0], in[1], in[2], got[k], right[k]);
                                fail();
                            }
                            if (isinf(in[2]) && right[k] == 0)
                                assert_true(got[k] == 0);
                        }
                        if (isfinite(right[0]) && isfinite(right[1]))
                            check_element(subject, format, format, in, got[0], got[1]);
                    }
                }
}

/* The same as numbers of their own. */
static void known_values(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double x, curvature;
    } cases[] = {
        {"swish", 0, 0.5},
        {"swish", 1, 0.30236611881001529},
        {"swish", -1, 0.30236611881001529},
        {"gelu", 0, 0.79788456080286541},
        {"gelu", 2, -0.10798193302637613},
        {"gelu", -2, -0.10798193302637613},
        {"gelu_tanh", 0, 0.79788456080286541},
        {"relu2", 3, 2},
        {"relu2", 0, 0},
        {"relu2", -3, 0},
        {"relu2", INFINITY, 2},
    };
    for (int k = 0; k < COUNT(cases); k++)
        FOR_EACH_SUBJECT(subject)
    if (strcmp(subject->op->name, cases[k].name) == 0 && subject->beta == 1)
        for (int f = 0; f < FORMATS; f++)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                char one[8], x[8], ddy[8], dx[8];
                store(format, one, 1);
                store(format, x, cases[k].x);
                test_use_variant(*variant);
                assert_ok(try(subject, format, format, 1, (struct operands){one, one, x, ddy, dx, 1, 1}));
                assert_true(fabs(load(format, dx) - cases[k].curvature) <= 2 * (double)ulp_at(format, 1));
            }
}

/* Wrong arguments are named; the outputs must lie apart. */
static void refusals(void **state)
{
    (void)state;
    static float memory[5][8];
    static int64_t shape[] = {8};
    FOR_EACH_SUBJECT(subject)
    {
        for (int k = 0; k < 5; k++) {
            const struct entry *entry = &subject->op->double_backward;
            DLTensor tensors[5];
            void *list[5];
            char expected[32];
            for (int j = 0; j < 5; j++) {
                tensors[j] = tensor_of(memory[j], FLOAT32, 1, shape, NULL);
                list[j] = &tensors[j];
            }
            snprintf(expected, sizeof expected, "%s: ", entry->names[k]);
            list[k] = NULL;
            assert_refused(entry->borrow(list, &plain_scalars), FUSELINE_ERROR_ARGUMENT, expected);
            list[k] = &tensors[k];
            tensors[k].dtype = FLOAT64;
            assert_refused(entry->borrow(list, &plain_scalars), FUSELINE_ERROR_DTYPE, "dtype is ");
            tensors[k].dtype = FLOAT32;
            tensors[4].data = memory[3];
            assert_refused(entry->borrow(list, &plain_scalars), FUSELINE_ERROR_OVERLAP, "dx: ", "ddy");
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_and_forms), cmocka_unit_test(large_tensors),  cmocka_unit_test(accuracy),
        cmocka_unit_test(mean_error),      cmocka_unit_test(special_values), cmocka_unit_test(known_values),
        cmocka_unit_test(refusals),
    };
    list_subjects();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
