/*
 * The second derivatives of the gated units: every operator in its three forms, with and without clamp and offset, every pair of dtypes, on
 * every instruction set that this machine runs, against the formulas in long double; special values; refusals.
 */
#include "testing.h"

#include <stdlib.h>

#include "curvatures.h"
#include "internal.h"
#include "numbers.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)
#define FOR_EACH_GATED(op)                                                                                                       \
    for (const struct operator_case *op = operators; op < operators + OPERATORS; op++)                                           \
        if (op->is_gated)

enum form { TWO, HALVES, PAIRS, FORMS };

/* The operands, in the order of the entry's tensors. */
enum { DDGATE, DDUP, DY, GATE, UP, DDY, DGATE, DUP, OPERANDS };
#define INPUTS       DDY
#define OF_RESULT(k) ((k) == DY || (k) == DDY)
#define IS_SECOND(k) ((k) == DDUP || (k) == UP || (k) == DUP)

enum { MOST = 1 << 12 };

/* rows x columns; where operand k's element (row, column) is: data[k] + (row * row_stride[k] + column * step[k]) elements. */
struct problem {
    const struct operator_case *op;
    enum form form;
    struct scalars scalars;
    int64_t rows, columns;
    const struct format *format[OPERANDS];
    char *data[OPERANDS];
    int64_t row_stride[OPERANDS];
    int step[OPERANDS];
    int64_t shapes[OPERANDS][2], strides[OPERANDS][2];
    DLTensor tensors[OPERANDS];
    void *list[OPERANDS];
};

static _Alignas(64) char memory[OPERANDS][MOST * 8];

static right_function *curvature_of(const struct operator_case *op)
{
    static const struct {
        right_function *slope, *curvature;
    } known[] = {{swish_slope, swish_curvature},
                 {gelu_slope, gelu_curvature},
                 {gelu_tanh_slope, gelu_tanh_curvature},
                 {relu_slope, relu_curvature}};
    for (int k = 0; k < COUNT(known); k++)
        if (known[k].slope == op->slope)
            return known[k].curvature;
    fail();
    return NULL;
}

/* Contiguous rows that lie `pad` elements apart. A packed tensor lies where its first operand does. */
static void set_up(struct problem *p, const struct format *operand, const struct format *result, int pad)
{
    for (int k = 0; k < OPERANDS; k++) {
        int is_packed = p->form != TWO && !OF_RESULT(k);
        int64_t width = is_packed ? 2 * p->columns : p->columns;
        p->format[k] = OF_RESULT(k) ? result : operand;
        p->row_stride[k] = width + pad;
        p->step[k] = is_packed && p->form == PAIRS ? 2 : 1;
        p->data[k] = memory[k];
        if (is_packed && IS_SECOND(k))
            p->data[k] = memory[k - 1] + (p->form == HALVES ? p->columns : 1) * operand->size;
        p->shapes[k][0] = p->rows, p->shapes[k][1] = width;
        p->strides[k][0] = p->row_stride[k], p->strides[k][1] = 1;
        assert_true(p->rows * p->row_stride[k] <= MOST);
        p->tensors[k] = tensor_of(p->data[k], p->format[k]->dtype, 2, p->shapes[k], p->strides[k]);
        p->list[k] = is_packed && IS_SECOND(k) ? NULL : &p->tensors[k];
    }
    p->scalars.packing = p->form == PAIRS ? FUSELINE_INTERLEAVED : FUSELINE_HALVES;
    memset(memory, 0x5a, sizeof memory);
}

static char *element(const struct problem *p, int k, int64_t row, int64_t column)
{
    return p->data[k] + (row * p->row_stride[k] + column * p->step[k]) * p->format[k]->size;
}

/* Small multiples of 1/16, exact in every dtype. */
static double sample(int k, int64_t row, int64_t column)
{
    static const int factor[INPUTS] = {3, 7, 11, 1, 5};
    return (double)((row * 7919 + column * 104729 * factor[k] + k * 31) % 127 - 63) / (k == GATE ? 16 : 32);
}

/* The results at one place, and what their errors are measured by: the largest of the terms that are added. */
struct right {
    long double value[3];
    double scale[3];
};

static struct right right_of(const struct operator_case *op, const struct scalars *s, const double in[INPUTS])
{
    double g = in[GATE] > s->limit ? s->limit : in[GATE], held = fabs(in[UP]) > s->limit ? copysign(s->limit, in[UP]) : in[UP];
    int gate_passes = in[GATE] <= s->limit || isinf(s->limit), up_passes = fabs(in[UP]) <= s->limit || isinf(s->limit);
    long double u = held + (long double)s->offset, bend = curvature_of(op)(g, s->beta), none = 0;
    long double along_gate = gate_passes ? right_gradient(op, in[DDGATE], g, s->beta) : none,
                along_up = up_passes ? in[DDUP] : none;
    long double terms[3][2] = {
        {along_gate * u, along_up * op->value(g, s->beta)},
        {bend == 0 ? none : in[DDGATE] * (in[DY] * u) * bend, right_gradient(op, along_up * in[DY], g, s->beta)},
        {along_gate * in[DY], none}};
    struct right right;
    for (int k = 0; k < 3; k++) {
        int passes = k == 1 ? gate_passes : k == 2 ? up_passes : 1;
        right.value[k] = passes ? terms[k][0] + terms[k][1] : 0;
        right.scale[k] = fmax(fabs((double)terms[k][0]), fabs((double)terms[k][1]));
    }
    /* A slope that crosses 0 has the error of what it is made of: an argument of 1. */
    right.scale[0] = fmax(right.scale[0], fabs((double)(in[DDGATE] * u)));
    right.scale[1] =
        fmax(right.scale[1], fmax(fabs((double)(in[DDGATE] * in[DY] * u)) * fmax(1, fabs(s->beta)), fabs(in[DDUP] * in[DY])));
    right.scale[2] = fmax(right.scale[2], fabs(in[DDGATE] * in[DY]));
    return right;
}

/* Some units of the type computed in, and of a 16-bit result its rounding. GPUs take less trouble for 16-bit results. */
static void assert_near(const struct problem *p, int k, double got, long double right, double scale, const double in[INPUTS])
{
    const struct format *format = p->format[k];
    double unit = ldexp(1, format->size == 8 ? -52 : format->size == 2 && is_on_gpu() ? -19 : -23);
    long double bound = 5 * unit * fmaxl(fabsl(right), scale) + (format->size == 2 ? 0.505L : 0.5L) * ulp_at(format, right);
    if (format->size == 8 && !long_double_is_wider())
        bound *= 100;
    double rounded = (double)right; /* under valgrind a long double is infinite only here */
    if (isnan(right) ? !isnan(got) : isinf(rounded) ? got != rounded : !(fabsl(got - right) <= bound)) {
        print_error("%s %s, result %d, form %d: ddgate %g, ddup %g, dy %g, gate %g, up %g: %.17g, wanted %.17Lg within %Lg\n",
                    p->op->name, format->name, k - DDY, p->form, in[0], in[1], in[2], in[3], in[4], got, right, bound);
        fail();
    }
}

static void assert_all_right(const struct problem *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            double in[INPUTS];
            for (int k = 0; k < INPUTS; k++)
                in[k] = load(p->format[k], element(p, k, row, column));
            struct right right = right_of(p->op, &p->scalars, in);
            for (int k = DDY; k < OPERANDS; k++)
                assert_near(p, k, load(p->format[k], element(p, k, row, column)), right.value[k - DDY], right.scale[k - DDY], in);
        }
}

/* What is not an element stays what it was, and so do the inputs. */
static void assert_rest_untouched(const struct problem *p, const char before[INPUTS][MOST * 8])
{
    static char is_ours[OPERANDS][MOST * 8];
    memset(is_ours, 0, sizeof is_ours);
    for (int k = DDY; k < OPERANDS; k++)
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++)
                memset(&is_ours[0][0] + (element(p, k, row, column) - &memory[0][0]), 1, (size_t)p->format[k]->size);
    for (int k = 0; k < INPUTS; k++)
        assert_memory_equal(memory[k], before[k], sizeof memory[k]);
    for (int k = DDY; k < OPERANDS; k++)
        for (size_t i = 0; i < sizeof memory[k]; i++)
            assert_true(is_ours[k][i] || memory[k][i] == 0x5a);
}

static const struct setting {
    double beta, limit, offset;
} settings[] = {{1, INFINITY, 0}, {1.702, 1.25, 1}, {-1.5, INFINITY, -0.25}};

/* Rows that lie apart, begin anywhere, and are longer and shorter than what is worked on at once. */
static const int64_t shapes[][3] = {{1, 1, 0}, {3, 7, 1}, {4, 33, 3}, {1, 64, 0}, {3, 64, 16}, {2, 520, 0}, {2, 519, 1}};

static void every_form(void **state)
{
    static char before[INPUTS][MOST * 8];
    int is_thin = getenv("FUSELINE_TEST_THIN") != NULL, turn = 0;
    (void)state;
    FOR_EACH_GATED(op)
    for (int s = 0; s < (op->has_clamp ? COUNT(settings) : 1); s++)
        for (enum form form = TWO; form < FORMS; form++)
            for (int f = 0; f < FORMATS; f++)
                for (int g = 0; g < FORMATS; g++)
                    for (int shape = 0; shape < COUNT(shapes); shape++) {
                        const struct format *operand = &formats[f], *result = &formats[g];
                        if ((f != g && operand->size + result->size != 6) || (is_thin && turn++ % 5 != 0))
                            continue;
                        FOR_EACH_VARIANT(variant)
                        {
                            struct problem p = {.op = op,
                                                .form = form,
                                                .scalars = {settings[s].beta, settings[s].limit, settings[s].offset, 0, NULL},
                                                .rows = shapes[shape][0],
                                                .columns = shapes[shape][1]};
                            set_up(&p, operand, result, (int)shapes[shape][2]);
                            for (int k = 0; k < INPUTS; k++)
                                for (int64_t row = 0; row < p.rows; row++)
                                    for (int64_t column = 0; column < p.columns; column++)
                                        store(p.format[k], element(&p, k, row, column), sample(k, row, column));
                            memcpy(before, memory, sizeof before);
                            test_use_variant(*variant);
                            assert_ok(op->double_backward.borrow(p.list, &p.scalars));
                            assert_all_right(&p);
                            assert_rest_untouched(&p, before);
                        }
                    }
}

/* Outputs in the memory of inputs; gradients that are one value for all. */
static void aliases_and_broadcasts(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (enum form form = TWO; form < FORMS; form++)
        for (int f = 0; f < FORMATS; f++)
            for (int broadcast = 0; broadcast < 2; broadcast++)
                FOR_EACH_VARIANT(variant)
                {
                    struct problem p = {.op = op, .form = form, .scalars = plain_scalars, .rows = 3, .columns = 40};
                    static const int input_of[] = {[DDY] = DY, [DGATE] = GATE, [DUP] = UP};
                    struct right right[3][40];
                    double in[3][40][INPUTS];
                    set_up(&p, &formats[f], &formats[f], 0);
                    for (int k = DDY; k < OPERANDS && !broadcast; k++) {
                        p.tensors[k].data = p.tensors[input_of[k]].data;
                        p.data[k] = p.data[input_of[k]];
                    }
                    for (int k = DDGATE; k <= DY && broadcast; k++) {
                        p.row_stride[k] = p.strides[k][0] = p.step[k] = 0, p.strides[k][1] = 0;
                        if (p.form != TWO && k == DDUP)
                            p.data[k] = p.data[DDGATE];
                    }
                    for (int row = 0; row < 3; row++)
                        for (int column = 0; column < 40; column++)
                            for (int k = 0; k < INPUTS; k++)
                                store(p.format[k], element(&p, k, row, column), sample(k, row, column));
                    for (int row = 0; row < 3; row++)
                        for (int column = 0; column < 40; column++) {
                            for (int k = 0; k < INPUTS; k++)
                                in[row][column][k] = load(p.format[k], element(&p, k, row, column));
                            right[row][column] = right_of(op, &p.scalars, in[row][column]);
                        }
                    test_use_variant(*variant);
                    assert_ok(op->double_backward.borrow(p.list, &p.scalars));
                    for (int row = 0; row < 3; row++)
                        for (int column = 0; column < 40; column++)
                            for (int k = DDY; k < OPERANDS; k++)
                                assert_near(&p, k, load(p.format[k], element(&p, k, row, column)),
                                            right[row][column].value[k - DDY], right[row][column].scale[k - DDY],
                                            in[row][column]);
                }
}

/* K1, K2, K9: 0 * inf is nan, but for what a clamp or relu holds back, and where the activation is straight. */
static void special_values(void **state)
{
    static const double numbers[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0, 1, -2.5};
    enum { N = COUNT(numbers) };
    (void)state;
    FOR_EACH_GATED(op)
    for (int s = 0; s < (op->has_clamp ? 2 : 1); s++)
        for (int f = 0; f < FORMATS; f++)
            for (int k = 0; k < INPUTS; k++)
                for (int other = 0; other < INPUTS; other++)
                    FOR_EACH_VARIANT(variant)
                    {
                        /* Two inputs take all pairs of numbers; the rest is ordinary. */
                        struct problem p = {.op = op,
                                            .form = TWO,
                                            .scalars = {settings[s].beta, settings[s].limit, settings[s].offset, 0, NULL},
                                            .rows = 1,
                                            .columns = N * N};
                        set_up(&p, &formats[f], &formats[f], 0);
                        for (int i = 0; i < N * N; i++)
                            for (int j = 0; j < INPUTS; j++)
                                store(p.format[j], element(&p, j, 0, i),
                                      j == k       ? numbers[i % N]
                                      : j == other ? numbers[i / N]
                                                   : 0.75);
                        test_use_variant(*variant);
                        assert_ok(op->double_backward.borrow(p.list, &p.scalars));
                        assert_all_right(&p);
                    }
}

/* Wrong arguments are named; outputs must lie apart. */
static void refusals(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    {
        const struct entry *entry = &op->double_backward;
        struct problem p = {.op = op, .form = TWO, .scalars = plain_scalars, .rows = 2, .columns = 4};
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        for (int k = 0; k < OPERANDS; k++) {
            char named[32];
            snprintf(named, sizeof named, "%s: ", entry->names[k]);
            p.list[k] = NULL;
            assert_refused(entry->borrow(p.list, &p.scalars), FUSELINE_ERROR_ARGUMENT, k == UP ? "ddup: is given" : named);
            p.list[k] = &p.tensors[k];
            p.tensors[k].dtype = FLOAT64;
            assert_refused(entry->borrow(p.list, &p.scalars), FUSELINE_ERROR_DTYPE, "dtype is ");
            p.tensors[k].dtype = FLOAT32;
            p.shapes[k][0] = 1;
            assert_refused(entry->borrow(p.list, &p.scalars), FUSELINE_ERROR_SHAPE, "shape is ");
            p.shapes[k][0] = 2;
        }
        p.tensors[DUP].data = memory[DGATE];
        assert_refused(entry->borrow(p.list, &p.scalars), FUSELINE_ERROR_OVERLAP, "dup: ", "dgate");
        p.tensors[DUP].data = memory[DUP];
        p.scalars.packing = (fuseline_packing)7;
        assert_refused(entry->borrow(p.list, &p.scalars), FUSELINE_ERROR_ARGUMENT, "packing: is 7");
    }
}

/* The ways that take tensors over delete each once, also after an error. */
static void ownership(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (int fails = 0; fails < 2; fails++) {
        struct problem p = {.op = op, .form = TWO, .scalars = plain_scalars, .rows = 2, .columns = 4};
        DLManagedTensor managed[OPERANDS];
        DLManagedTensorVersioned versioned[OPERANDS];
        int deletions[2][OPERANDS] = {{0}};
        void *lists[2][OPERANDS];
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        memset(memory, 0, sizeof memory);
        if (fails)
            p.tensors[DUP].dtype = FLOAT64;
        for (int k = 0; k < OPERANDS; k++) {
            managed[k] = (DLManagedTensor){p.tensors[k], &deletions[0][k], count_deletion};
            versioned[k] = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                      .manager_ctx = &deletions[1][k],
                                                      .deleter = count_deletion_versioned,
                                                      .dl_tensor = p.tensors[k]};
            lists[0][k] = &managed[k];
            lists[1][k] = &versioned[k];
        }
        fuseline_status expected = fails ? FUSELINE_ERROR_DTYPE : FUSELINE_OK;
        assert_int_equal(op->double_backward.managed(lists[0], &p.scalars), expected);
        assert_int_equal(op->double_backward.versioned(lists[1], &p.scalars), expected);
        for (int k = 0; k < 2 * OPERANDS; k++)
            assert_int_equal(deletions[k / OPERANDS][k % OPERANDS], 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),     cmocka_unit_test(aliases_and_broadcasts),
        cmocka_unit_test(special_values), cmocka_unit_test(refusals),
        cmocka_unit_test(ownership),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
