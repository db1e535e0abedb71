/*
 * The gated units: every operator in its three forms (gate and up as two tensors, as halves of one, interleaved in one), with and
 * without bias, clamp and offset, on every instruction set that this machine runs, against the formula in long double.
 */
#include "testing.h"

#include <stdlib.h>

#include "internal.h"
#include "numbers.h"
#include "operators.h"
#include "tensors.h"

#define FOR_EACH_VARIANT(variant) for (const struct fl_cpu_variant *const *variant = test_variants; *variant != NULL; variant++)
#define FOR_EACH_GATED(op)                                                                                                       \
    for (const struct operator_case *op = operators; op < operators + OPERATORS; op++)                                           \
        if (op->is_gated)

enum form { TWO, HALVES, PAIRS, FORMS };

/* The operands of both kernels; gate and up, and what goes with each, follow each other. */
enum { GATE, UP, GATE_BIAS, UP_BIAS, DY, Y, DGATE, DUP, OPERANDS };

enum { ROOM = 1 << 16 };

/* Where an operand's element (row, column) is: data + (row * row_stride + column * step) elements. */
struct operand {
    const struct format *format;
    char *data;
    int64_t row_stride;
    int step;
};

/* One problem: rows x columns. The public tensors follow from it, and may be changed before the call. */
struct problem {
    const struct operator_case *op;
    enum form form;
    int has_bias;
    struct scalars scalars;
    int64_t rows, columns, bias_length;
    struct operand operands[OPERANDS];
    int64_t shapes[2][2], strides[4][2];
    DLTensor gate, up, bias, dy, y, dgate, dup;
};

static char memory[OPERANDS][ROOM], before[OPERANDS][ROOM];
static _Alignas(64) char packed_input[2 * ROOM], packed_output[2 * ROOM];

static double value_at(const struct operand *operand, int64_t row, int64_t column)
{
    const struct format *format = operand->format;
    return load(format, operand->data + (row * operand->row_stride + column * operand->step) * format->size);
}

/* Small multiples of 1/16, exact in every dtype, sums of two too. */
static double sample_value(int operand, int64_t row, int64_t column)
{
    int64_t mixed = (row * 7919 + column * 104729 + operand * 31) % 127;
    switch (operand) {
    case GATE:
        return (double)(mixed - 63) / 16;
    case UP:
        return (double)((mixed * 5) % 127 - 63) / 16;
    case DY:
        return (double)((mixed * 11) % 63 - 31) / 8;
    default: /* a bias: the same for every row */
        return (double)((column * 13 + operand * 5) % 31 - 15) / 8;
    }
}

/* A pair of operands, in a packed tensor or apart. `pad` elements lie between rows. */
static void place_pair(struct problem *p, int first, char *data, char *other, const struct format *format, int pad)
{
    int64_t width = p->form == TWO ? p->columns : 2 * p->columns;
    int step = p->form == PAIRS ? 2 : 1;
    p->operands[first] = (struct operand){format, data, width + pad, step};
    p->operands[first + 1] = (struct operand){format, other, width + pad, step};
    if (p->form != TWO)
        p->operands[first + 1].data = data + (p->form == HALVES ? p->columns : 1) * format->size;
}

/* Fills in everything, for contiguous rows that are `pad` elements apart, and the inputs' values. */
static void set_up(struct problem *p, const struct format *operand, const struct format *result, int pad)
{
    place_pair(p, GATE, p->form == TWO ? memory[GATE] : packed_input, memory[UP], operand, pad);
    place_pair(p, DGATE, p->form == TWO ? memory[DGATE] : packed_output, memory[DUP], operand, pad);
    enum form form = p->form;
    p->form = form == TWO ? HALVES : form; /* of the bias */
    place_pair(p, GATE_BIAS, memory[GATE_BIAS], NULL, operand, 0);
    p->form = form;
    p->operands[GATE_BIAS].row_stride = p->operands[UP_BIAS].row_stride = 0;
    p->operands[DY] = (struct operand){result, memory[DY], p->columns + pad, 1};
    p->operands[Y] = (struct operand){result, memory[Y], p->columns + pad, 1};
    memset(memory, 0x5a, sizeof memory);
    memset(packed_input, 0x5a, sizeof packed_input);
    memset(packed_output, 0x5a, sizeof packed_output);
    for (int k = GATE; k <= DY; k++)
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++) {
                const struct operand *o = &p->operands[k];
                store(o->format, o->data + (row * o->row_stride + column * o->step) * o->format->size,
                      sample_value(k, row, column));
            }
    p->bias_length = 2 * p->columns;
    for (int k = 0; k < 2; k++)
        p->shapes[k][0] = p->rows;
    p->shapes[0][1] = p->columns;
    p->shapes[1][1] = p->form == TWO ? p->columns : 2 * p->columns;
    static const int of[] = {GATE, DY, Y, DGATE};
    for (int k = 0; k < 4; k++) {
        p->strides[k][0] = p->operands[of[k]].row_stride;
        p->strides[k][1] = 1;
    }
    p->gate = tensor_of(p->operands[GATE].data, operand->dtype, 2, p->shapes[1], p->strides[0]);
    p->up = tensor_of(p->operands[UP].data, operand->dtype, 2, p->shapes[1], p->strides[0]);
    p->bias = tensor_of(p->operands[GATE_BIAS].data, operand->dtype, 1, &p->bias_length, NULL);
    p->dy = tensor_of(p->operands[DY].data, result->dtype, 2, p->shapes[0], p->strides[1]);
    p->y = tensor_of(p->operands[Y].data, result->dtype, 2, p->shapes[0], p->strides[2]);
    p->dgate = tensor_of(p->operands[DGATE].data, operand->dtype, 2, p->shapes[1], p->strides[3]);
    p->dup = tensor_of(p->operands[DUP].data, operand->dtype, 2, p->shapes[1], p->strides[3]);
}

static struct problem problem_of(const struct operator_case *op, enum form form, int64_t rows, int64_t columns)
{
    struct problem p = {.op = op, .form = form, .scalars = plain_scalars, .rows = rows, .columns = columns};
    p.scalars.packing = form == PAIRS ? FUSELINE_INTERLEAVED : FUSELINE_HALVES;
    return p;
}

static fuseline_status forward(struct problem *p)
{
    return p->op->forward.borrow((void *[]){&p->gate, p->form == TWO ? &p->up : NULL, p->has_bias ? &p->bias : NULL, &p->y},
                                 &p->scalars);
}

static fuseline_status backward(struct problem *p)
{
    return p->op->backward.borrow((void *[]){&p->dy, &p->gate, p->form == TWO ? &p->up : NULL, p->has_bias ? &p->bias : NULL,
                                             &p->dgate, p->form == TWO ? &p->dup : NULL},
                                  &p->scalars);
}

/* What the inputs at one place should give. */
struct right {
    long double y, dgate, dup;
    double scale; /* |dy * (up + offset)|: what dgate's error is measured by */
};

static struct right right_of(const struct operator_case *op, const struct scalars *s, double dy, double gate, double up)
{
    double g = gate > s->limit ? s->limit : gate, held = fabs(up) > s->limit ? copysign(s->limit, up) : up;
    int gate_passes = gate <= s->limit || isinf(s->limit), up_passes = fabs(up) <= s->limit || isinf(s->limit); /* nan does not */
    long double u = held + (long double)s->offset, value = op->value(g, s->beta);
    return (struct right){value * u, gate_passes ? right_gradient(op, dy * u, g, s->beta) : 0, up_passes ? dy * value : 0,
                          fabs((double)(dy * u))};
}

/* Some units of the type computed in, and of a 16-bit result its rounding; what is not a normal number is rounded to the smallest.
 * GPUs take less trouble for 16-bit results: an error of 2^-18 before they are rounded. */
static void assert_near(const struct format *format, double got, long double right, double scale)
{
    double unit = ldexp(1, format->size == 8 ? -52 : format->size == 2 && is_on_gpu() ? -20 : -23);
    long double bound = 4 * unit * fmaxl(fabsl(right), scale) + (format->size == 2 ? 0.505L : 0.5L) * ulp_at(format, right);
    if (format->size == 8 && !long_double_is_wider())
        bound *= 100;
    if (!(fabsl(got - right) <= bound)) {
        print_error("%s: %.17g, wanted %.17Lg within %Lg\n", format->name, got, right, bound);
        fail();
    }
}

static void assert_near_or_nan(const struct format *format, double got, long double right, double scale)
{
    if (isnan(right))
        assert_true(isnan(got));
    else
        assert_near(format, got, right, isnan(scale) ? 0 : scale);
}

/* The inputs at one place, biases added. Reads what was there before the calls. */
static struct right right_at(const struct problem *p, int64_t row, int64_t column)
{
    double gate = sample_value(GATE, row, column), up = sample_value(UP, row, column);
    if (p->has_bias) {
        gate += sample_value(GATE_BIAS, row, column);
        up += sample_value(UP_BIAS, row, column);
    }
    return right_of(p->op, &p->scalars, sample_value(DY, row, column), gate, up);
}

static void assert_forward_is_right(const struct problem *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++)
            assert_near(p->operands[Y].format, value_at(&p->operands[Y], row, column), right_at(p, row, column).y, 0);
}

static void assert_backward_is_right(const struct problem *p)
{
    for (int64_t row = 0; row < p->rows; row++)
        for (int64_t column = 0; column < p->columns; column++) {
            struct right right = right_at(p, row, column);
            assert_near(p->operands[DGATE].format, value_at(&p->operands[DGATE], row, column), right.dgate, right.scale);
            assert_near(p->operands[DUP].format, value_at(&p->operands[DUP], row, column), right.dup, 0);
        }
}

/* Bytes of a buffer that are not the operands' stay what they were. */
static void assert_rest_untouched(const struct problem *p, const char *buffer, size_t size, int first, int last)
{
    static char is_ours[2 * ROOM];
    memset(is_ours, 0, size);
    for (int k = first; k <= last; k++) {
        const struct operand *o = &p->operands[k];
        for (int64_t row = 0; row < p->rows; row++)
            for (int64_t column = 0; column < p->columns; column++) {
                const char *at = o->data + (row * o->row_stride + column * o->step) * o->format->size;
                if (at >= buffer && at < buffer + size)
                    memset(is_ours + (at - buffer), 1, (size_t)o->format->size);
            }
    }
    for (size_t i = 0; i < size; i++)
        assert_true(is_ours[i] || buffer[i] == 0x5a);
}

/* Both directions; H4: the inputs stay what they were. */
static void check(struct problem *p)
{
    static char packed_before[2 * ROOM];
    memcpy(before, memory, sizeof memory);
    memcpy(packed_before, packed_input, sizeof packed_before);
    assert_ok(forward(p));
    assert_forward_is_right(p);
    assert_rest_untouched(p, memory[Y], ROOM, Y, Y);
    assert_ok(backward(p));
    assert_backward_is_right(p);
    assert_rest_untouched(p, p->form == TWO ? memory[DGATE] : packed_output, p->form == TWO ? ROOM : 2 * ROOM, DGATE, DUP);
    assert_rest_untouched(p, memory[DUP], ROOM, DGATE, DUP);
    assert_memory_equal(packed_input, packed_before, sizeof packed_before);
    for (int k = GATE; k <= DY; k++)
        assert_memory_equal(memory[k], before[k], ROOM);
}

/* What is set beside the tensors. */
static const struct setting {
    double beta, limit, offset;
    int has_bias;
} settings[] = {
    {1, INFINITY, 0, 0},    {1, INFINITY, 0, 1}, /* what every gated unit has */
    {1.702, 2.5, 1, 0},     {1.702, 2.5, 1, 1},  /* the clamped form of recent models */
    {-1.5, INFINITY, 0, 0}, {1, INFINITY, -0.25, 0}, {1, 1, 0, 0},
};

#define FOR_EACH_SETTING(setting, op)                                                                                            \
    for (const struct setting *setting = settings; setting < settings + ((op)->has_clamp ? COUNT(settings) : 2); setting++)

static void apply(struct problem *p, const struct setting *setting)
{
    p->scalars.beta = setting->beta;
    p->scalars.limit = setting->limit;
    p->scalars.offset = setting->offset;
    p->has_bias = setting->has_bias;
}

/*
 * How far results lie from right, where they and the activation itself are normal numbers; gates and ups like normally distributed
 * numbers, the gates of two widths. y and dup in units of their last place; dgate in those of the larger of itself and dy * (up + offset).
 */
static void accuracy(void **state)
{
    (void)state;
    enum { LENGTH = 1 << 20 };
    static double gate[LENGTH], up[LENGTH], dy[LENGTH], y[LENGTH], dgate[LENGTH], dup[LENGTH];
    const char *shows_figures = getenv("FUSELINE_TEST_FIGURES"); /* 1, or how many pairs to take */
    int64_t length = getenv("FUSELINE_TEST_THIN") != NULL ? 1 << 9 : 1 << 13;
    if (shows_figures != NULL)
        length = atoi(shows_figures) > 1 && atoi(shows_figures) < LENGTH ? atoi(shows_figures) : LENGTH;
    FOR_EACH_GATED(op)
    FOR_EACH_SETTING(setting, op)
    for (int f = 0; f < FORMATS; f++) {
        const struct format *format = &formats[f];
        struct scalars scalars = {setting->beta, setting->limit, setting->offset, FUSELINE_HALVES, NULL};
        double least = normal_least(&formats[format->size == 8 ? IN_FLOAT64 : IN_FLOAT32]); /* of the type computed in */
        if (setting->has_bias || (format->size == 8 && !long_double_is_wider()))
            continue;
        for (int64_t i = 0; i < length; i++) { /* Box and Muller's transform of evenly spread numbers */
            double radius = sqrt(-2 * log(((double)i + 0.5) / (double)length));
            double angle = 2 * M_PI * fmod((double)i * 0.6180339887498949, 1);
            store(format, (char *)gate + i * format->size, radius * cos(angle) * (i % 2 != 0 ? 1 : 4));
            store(format, (char *)up + i * format->size, radius * sin(angle));
            store(format, (char *)dy + i * format->size, (double)(i * 7 % 33 - 16) / 16 + 0.03125);
        }
        DLTensor g = tensor_of(gate, format->dtype, 1, &length, NULL), u = tensor_of(up, format->dtype, 1, &length, NULL),
                 d = tensor_of(dy, format->dtype, 1, &length, NULL), out = tensor_of(y, format->dtype, 1, &length, NULL),
                 dg = tensor_of(dgate, format->dtype, 1, &length, NULL), du = tensor_of(dup, format->dtype, 1, &length, NULL);
        FOR_EACH_VARIANT(variant)
        {
            double worst[3] = {0, 0, 0};
            test_use_variant(*variant);
            assert_ok(op->forward.borrow((void *[]){&g, &u, NULL, &out}, &scalars));
            assert_ok(op->backward.borrow((void *[]){&d, &g, &u, NULL, &dg, &du}, &scalars));
            for (int64_t i = 0; i < length; i++) {
                double at[3], got[3];
                int64_t offset = i * format->size;
                at[0] = load(format, (char *)gate + offset);
                at[1] = load(format, (char *)up + offset);
                at[2] = load(format, (char *)dy + offset);
                got[0] = load(format, (char *)y + offset);
                got[1] = load(format, (char *)dgate + offset);
                got[2] = load(format, (char *)dup + offset);
                struct right right = right_of(op, &scalars, at[2], at[0], at[1]);
                long double exact[] = {right.y, right.dgate, right.dup},
                            value = op->value(fmin(at[0], scalars.limit), scalars.beta);
                for (int k = 0; k < 3; k++) {
                    long double size = fmaxl(fabsl(exact[k]), k == 1 ? right.scale : 0);
                    if (size >= normal_least(format) && (k == 1 || fabsl(value) >= least))
                        worst[k] = fmax(worst[k], (double)(fabsl(got[k] - exact[k]) / ulp_at(format, size)));
                }
            }
            if (shows_figures != NULL)
                print_message("# %s %s %s beta %g limit %g offset %g: y %.4f, dgate %.4f, dup %.4f ulp\n", op->name,
                              (*variant)->name, format->name, scalars.beta, scalars.limit, scalars.offset, worst[0], worst[1],
                              worst[2]);
            for (int k = 0; k < 3; k++) /* a unit of the product may be half of one of the activation, whose bar is 2 */
                assert_true(worst[k] <= (format->size == 2 ? 0.51 : k == 2 ? 6 : 4.5));
        }
    }
}

/* G23: odd rows too; rows that lie apart, and begin at every distance from 16 bytes; more columns than are worked on at once, and more
 * vectors than a GPU's block has threads. */
static const int64_t shapes[][3] = {{1, 1, 0}, {3, 7, 0},   {3, 7, 1},   {4, 33, 3}, {5, 1, 0},
                                    {5, 1, 2}, {2, 600, 0}, {7, 16, 16}, {7, 16, 1}, {40, 64, 16}};

static int is_mixed(const struct format *operand, const struct format *result)
{
    return operand != result && operand->size + result->size == 6;
}

/* Every operator, form, setting, dtype and pair of dtypes, and instruction set. K23: one rounding, of the product. */
static void every_form(void **state)
{
    (void)state;
    int thin = getenv("FUSELINE_TEST_THIN") != NULL, number = 0;
    FOR_EACH_GATED(op)
    FOR_EACH_SETTING(setting, op)
    for (enum form form = 0; form < FORMS; form++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int f = 0; f < FORMATS; f++)
                for (int g = 0; g < FORMATS; g++)
                    FOR_EACH_VARIANT(variant)
                    {
                        struct problem p = problem_of(op, form, shapes[s][0], shapes[s][1]);
                        if ((f != g && !is_mixed(&formats[f], &formats[g])) || (thin && number++ % 41 != 0))
                            continue;
                        if (p.columns > 500 && f != g && setting != settings)
                            continue; /* enough is enough */
                        test_use_variant(*variant);
                        apply(&p, setting);
                        set_up(&p, &formats[f], &formats[g], (int)shapes[s][2]);
                        check(&p);
                    }
}

/* H9 and threads: large packed tensors, shared out in the middle of rows. */
static void large_tensors(void **state)
{
    (void)state;
    enum { ROWS = 151, COLUMNS = 999 };
    float *packed = test_malloc(ROWS * 2 * COLUMNS * 4), *gradient = test_malloc(ROWS * 2 * COLUMNS * 4);
    float *y = test_malloc(ROWS * COLUMNS * 4), bias[2 * COLUMNS];
    FOR_EACH_GATED(op)
    for (enum form form = HALVES; form < FORMS; form++) {
        struct scalars scalars = plain_scalars;
        int second = form == HALVES ? COLUMNS : 1, step = form == HALVES ? 1 : 2;
        scalars.packing = form == HALVES ? FUSELINE_HALVES : FUSELINE_INTERLEAVED;
        for (int i = 0; i < ROWS * 2 * COLUMNS; i++)
            packed[i] = (float)(i % 1013 - 506) / 64;
        for (int i = 0; i < 2 * COLUMNS; i++)
            bias[i] = (float)(i % 31 - 15) / 8;
        DLTensor x = tensor_of(packed, FLOAT32, 2, DIMS(ROWS, 2 * COLUMNS), NULL),
                 dx = tensor_of(gradient, FLOAT32, 2, DIMS(ROWS, 2 * COLUMNS), NULL),
                 out = tensor_of(y, FLOAT32, 2, DIMS(ROWS, COLUMNS), NULL),
                 add = tensor_of(bias, FLOAT32, 1, DIMS(2 * COLUMNS), NULL);
        assert_ok(op->forward.borrow((void *[]){&x, NULL, &add, &out}, &scalars));
        assert_ok(op->backward.borrow((void *[]){&out, &x, NULL, &add, &dx, NULL}, &scalars));
        for (int row = 0; row < ROWS; row++)
            for (int column = row % 5; column < COLUMNS; column += 5) {
                int at = row * 2 * COLUMNS + column * step, b = column * step;
                float dy = y[row * COLUMNS + column];
                struct right right = right_of(op, &scalars, dy, packed[at] + bias[b], packed[at + second] + bias[b + second]);
                assert_near(&formats[IN_FLOAT32], dy, right.y, 0);
                assert_near(&formats[IN_FLOAT32], gradient[at], right.dgate, right.scale);
                assert_near(&formats[IN_FLOAT32], gradient[at + second], right.dup, 0);
            }
    }
    test_free(packed);
    test_free(gradient);
    test_free(y);
}

/* Outputs that are inputs: both kernels read all of an element before they write it. */
static void outputs_that_are_inputs(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++)
        for (int s = 0; s < COUNT(shapes); s++)
            for (int f = 0; f < FORMATS; f++)
                for (int way = 0; way < 6; way++)
                    FOR_EACH_VARIANT(variant)
                    {
                        struct problem p = problem_of(op, form, shapes[s][0], shapes[s][1]);
                        test_use_variant(*variant);
                        set_up(&p, &formats[f], &formats[f], (int)shapes[s][2]);
                        if (form == PAIRS && way < 2)
                            continue; /* y would have to be interleaved too */
                        switch (way) {
                        case 0: /* y is gate, or its half */
                        case 1: /* y is up */
                            p.operands[Y] = p.operands[way == 0 ? GATE : UP];
                            p.y.data = p.operands[Y].data;
                            p.strides[2][0] = p.operands[Y].row_stride;
                            assert_ok(forward(&p));
                            assert_forward_is_right(&p);
                            continue;
                        case 2: /* every gradient its own input; the whole packed tensor */
                            p.operands[DGATE] = p.operands[GATE];
                            p.operands[DUP] = p.operands[UP];
                            break;
                        case 3: /* crossed */
                            if (form != TWO)
                                continue;
                            p.operands[DGATE] = p.operands[UP];
                            p.operands[DUP] = p.operands[GATE];
                            break;
                        case 4: /* dy's memory, as far as it goes */
                            if (form != TWO)
                                continue;
                            p.operands[DGATE] = p.operands[DY];
                            break;
                        case 5: /* dy lies in what becomes dgate's half */
                            if (form != HALVES)
                                continue;
                            p.operands[DY].data = p.operands[DGATE].data;
                            p.operands[DY].row_stride = p.operands[DGATE].row_stride;
                            p.strides[1][0] = p.operands[DY].row_stride;
                            p.dy.data = p.operands[DY].data;
                            for (int64_t row = 0; row < p.rows; row++)
                                for (int64_t column = 0; column < p.columns; column++)
                                    store(&formats[f],
                                          p.operands[DY].data + (row * p.operands[DY].row_stride + column) * formats[f].size,
                                          sample_value(DY, row, column));
                            break;
                        }
                        p.dgate.data = p.operands[DGATE].data;
                        p.dup.data = p.operands[DUP].data;
                        p.strides[3][0] = p.operands[DGATE].row_stride;
                        assert_ok(backward(&p));
                        assert_backward_is_right(&p);
                    }
}

static void outputs_that_overlap(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++) {
        struct problem p = problem_of(op, form, 3, 8), whole;
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        whole = p;
        p.y.data = (float *)p.gate.data + 1;
        assert_refused(forward(&p), FUSELINE_ERROR_OVERLAP, "y: overlaps gate");
        p.y.data = p.gate.data;
        if (form == HALVES) /* rows as long as its own, across those of the packed one */
            assert_refused(forward(&p), FUSELINE_ERROR_OVERLAP, "y: overlaps gate");
        if (form == PAIRS) {
            assert_refused(forward(&p), FUSELINE_ERROR_OVERLAP, "y: overlaps gate");
            p.strides[2][0] = 16;
            p.strides[2][1] = 2;
            assert_refused(forward(&p), FUSELINE_ERROR_LAYOUT, "y: strides are (16, 2)");
        }
        p = whole;
        p.y.data = (char *)p.gate.data + 2; /* of elements, too */
        if (!is_on_gpu())
            assert_refused(forward(&p), FUSELINE_ERROR_OVERLAP, "y: overlaps gate");
        p = whole;
        p.has_bias = 1;
        p.y.data = p.bias.data;
        assert_refused(forward(&p), FUSELINE_ERROR_OVERLAP, "y: overlaps bias");
        p = whole;
        p.dgate.data = (float *)p.gate.data + 1;
        assert_refused(backward(&p), FUSELINE_ERROR_OVERLAP, "dgate: overlaps ");
        p.dgate.data = (char *)p.gate.data + 1;
        if (!is_on_gpu())
            assert_refused(backward(&p), FUSELINE_ERROR_OVERLAP, "dgate: overlaps ");
        if (form == TWO) {
            p.dgate.data = p.dup.data;
            assert_refused(backward(&p), FUSELINE_ERROR_OVERLAP, "dup: is the same memory as dgate");
            p.dgate.data = (float *)p.dup.data + 3;
            assert_refused(backward(&p), FUSELINE_ERROR_OVERLAP, "dup: overlaps dgate");
        } else {
            p.dgate.data = p.gate.data; /* interleaved where the input is in halves would be another matter: by rows */
            p.dgate.byte_offset = 64;
            assert_refused(backward(&p), FUSELINE_ERROR_OVERLAP, "dgate: overlaps ");
        }
    }
    /* the same memory, another dtype */
    float x[64] = {0};
    DLTensor gate = tensor_of(x, FLOAT32, 1, DIMS(8), NULL), up = tensor_of(x + 16, FLOAT32, 1, DIMS(8), NULL),
             y = tensor_of(x, BFLOAT16, 1, DIMS(8), NULL);
    assert_refused(fuseline_reglu_forward(&gate, &up, NULL, FUSELINE_HALVES, NULL, &y), FUSELINE_ERROR_OVERLAP,
                   "y: overlaps gate");
}

/* H1, H5: gradients and inputs that repeat a value or a row; the gradient of a sum is one value. */
static void repeated_inputs(void **state)
{
    (void)state;
    static const int64_t dy_strides[][2] = {{0, 0}, {0, 1}, {1, 0}};
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++)
        for (int f = 0; f < FORMATS; f++)
            for (int k = 0; k < COUNT(dy_strides); k++)
                for (int has_bias = 0; has_bias < 2; has_bias++) {
                    struct problem p = problem_of(op, form, 5, 37);
                    set_up(&p, &formats[f], &formats[f], 0);
                    p.has_bias = has_bias;
                    memcpy(p.strides[1], dy_strides[k], sizeof p.strides[1]);
                    assert_ok(backward(&p));
                    for (int64_t row = 0; row < p.rows; row++)
                        for (int64_t column = 0; column < p.columns; column++) {
                            int64_t at = row * dy_strides[k][0] + column * dy_strides[k][1];
                            double bias = has_bias ? sample_value(GATE_BIAS, 0, column) : 0;
                            double up_bias = has_bias ? sample_value(UP_BIAS, 0, column) : 0;
                            struct right right =
                                right_of(op, &p.scalars, sample_value(DY, 0, at), sample_value(GATE, row, column) + bias,
                                         sample_value(UP, row, column) + up_bias);
                            assert_near(&formats[f], value_at(&p.operands[DGATE], row, column), right.dgate, right.scale);
                            assert_near(&formats[f], value_at(&p.operands[DUP], row, column), right.dup, 0);
                        }
                }
    /* up one value for all, gate one row for all */
    FOR_EACH_GATED(op)
    {
        float gate[7], up = 1.5f, y[3][7];
        for (int i = 0; i < 7; i++)
            gate[i] = (float)i - 3;
        DLTensor g = tensor_of(gate, FLOAT32, 2, DIMS(3, 7), DIMS(0, 1)), u = tensor_of(&up, FLOAT32, 2, DIMS(3, 7), DIMS(0, 0)),
                 out = tensor_of(y, FLOAT32, 2, DIMS(3, 7), NULL);
        assert_ok(op->forward.borrow((void *[]){&g, &u, NULL, &out}, &plain_scalars));
        for (int i = 0; i < 21; i++)
            assert_near(&formats[IN_FLOAT32], y[i / 7][i % 7], op->value(gate[i % 7], 1) * up, 0);
    }
}

/* Dense in another order of dimensions, a packed one too; more dimensions than two; one; none. */
static void other_ranks_and_orders(void **state)
{
    (void)state;
    enum { ROWS = 6, COLUMNS = 4 };
    static float packed[ROWS * 2 * COLUMNS], y[ROWS * COLUMNS], gradient[ROWS * 2 * COLUMNS], bias[2 * COLUMNS];
    for (int i = 0; i < 2 * COLUMNS; i++)
        bias[i] = (float)(i - 3) / 4;
    static const struct {
        int ndim;
        int64_t x_shape[4], x_strides[4], y_shape[4], y_strides[4];
        int64_t row_stride, column_stride, y_row_stride, y_column_stride;
    } cases[] = {
        {2, {6, 8}, {8, 1}, {6, 4}, {4, 1}, 8, 1, 4, 1},
        {2, {6, 8}, {1, 6}, {6, 4}, {1, 6}, 1, 6, 1, 6}, /* transposed */
        {3, {2, 3, 8}, {24, 8, 1}, {2, 3, 4}, {12, 4, 1}, 8, 1, 4, 1},
        {4, {2, 1, 3, 8}, {24, 7, 8, 1}, {2, 1, 3, 4}, {12, -9, 4, 1}, 8, 1, 4, 1},
        {3, {2, 3, 8}, {3, 1, 6}, {2, 3, 4}, {3, 1, 6}, 1, 6, 1, 6}, /* channels first */
        {1, {8}, {1}, {4}, {1}, 0, 1, 0, 1},
    };
    FOR_EACH_GATED(op)
    for (int k = 0; k < COUNT(cases); k++)
        for (int has_bias = 0; has_bias < 2; has_bias++)
            for (int is_halves = 0; is_halves < 2; is_halves++) {
                int64_t shapes_[2][4], strides_[2][4];
                struct scalars scalars = plain_scalars;
                memcpy(shapes_[0], cases[k].x_shape, sizeof shapes_[0]);
                memcpy(shapes_[1], cases[k].y_shape, sizeof shapes_[1]);
                memcpy(strides_[0], cases[k].x_strides, sizeof strides_[0]);
                memcpy(strides_[1], cases[k].y_strides, sizeof strides_[1]);
                scalars.packing = is_halves ? FUSELINE_HALVES : FUSELINE_INTERLEAVED;
                for (int i = 0; i < ROWS * 2 * COLUMNS; i++)
                    packed[i] = (float)(i * 37 % 61 - 30) / 8;
                DLTensor x = tensor_of(packed, FLOAT32, cases[k].ndim, shapes_[0], strides_[0]),
                         dx = tensor_of(gradient, FLOAT32, cases[k].ndim, shapes_[0], strides_[0]),
                         out = tensor_of(y, FLOAT32, cases[k].ndim, shapes_[1], strides_[1]),
                         add = tensor_of(bias, FLOAT32, 1, DIMS(2 * COLUMNS), NULL);
                fuseline_status status = op->forward.borrow((void *[]){&x, NULL, has_bias ? &add : NULL, &out}, &scalars);
                assert_ok(status);
                assert_ok(op->backward.borrow((void *[]){&out, &x, NULL, has_bias ? &add : NULL, &dx, NULL}, &scalars));
                int rows = cases[k].ndim == 1 ? 1 : ROWS;
                for (int row = 0; row < rows; row++)
                    for (int column = 0; column < COLUMNS; column++) {
                        int g = is_halves ? column : 2 * column, u = is_halves ? COLUMNS + column : 2 * column + 1;
                        int64_t at = row * cases[k].row_stride, step = cases[k].column_stride;
                        float dy = y[row * cases[k].y_row_stride + column * cases[k].y_column_stride];
                        struct right right = right_of(op, &scalars, dy, packed[at + g * step] + (has_bias ? bias[g] : 0),
                                                      packed[at + u * step] + (has_bias ? bias[u] : 0));
                        assert_near(&formats[IN_FLOAT32], dy, right.y, 0);
                        assert_near(&formats[IN_FLOAT32], gradient[at + g * step], right.dgate, right.scale);
                        assert_near(&formats[IN_FLOAT32], gradient[at + u * step], right.dup, 0);
                    }
            }
    FOR_EACH_GATED(op)
    {
        float g = 2, u = 3, out = 0;
        DLTensor gate = tensor_of(&g, FLOAT32, 0, NULL, NULL), up = tensor_of(&u, FLOAT32, 0, NULL, NULL),
                 to = tensor_of(&out, FLOAT32, 0, NULL, NULL);
        assert_ok(op->forward.borrow((void *[]){&gate, &up, NULL, &to}, &plain_scalars));
        assert_near(&formats[IN_FLOAT32], out, op->value(2, 1) * 3, 0);
    }
}

/* G22: a bias anywhere in memory, and in every alignment. */
static void unaligned_bias(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++)
        for (int f = 0; f < FORMATS; f++)
            for (int shift = 1; shift < 8; shift++) {
                struct problem p = problem_of(op, form, 3, 9);
                set_up(&p, &formats[f], &formats[f], 0);
                p.has_bias = 1;
                int offset = offset_of(shift, formats[f].size);
                memmove((char *)p.bias.data + offset, p.bias.data, (size_t)(18 * formats[f].size));
                p.bias.byte_offset = (uint64_t)offset;
                assert_ok(forward(&p));
                assert_forward_is_right(&p);
                assert_ok(backward(&p));
                assert_backward_is_right(&p);
            }
}

/* G18: nothing to do, in any form; pointers may be NULL then. */
static void zero_elements(void **state)
{
    (void)state;
    static const int64_t empty[][2] = {{0, 4}, {3, 0}, {0, 0}};
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++)
        for (int k = 0; k < COUNT(empty); k++)
            for (int has_bias = 0; has_bias < 2; has_bias++) {
                struct problem p = problem_of(op, form, empty[k][0], empty[k][1]);
                set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
                p.has_bias = has_bias;
                p.gate.data = p.up.data = p.y.data = p.dy.data = p.dgate.data = p.dup.data = NULL;
                assert_ok(forward(&p));
                assert_ok(backward(&p));
                p.bias_length += 2; /* even so it must be a right call */
                if (has_bias) {
                    assert_refused(forward(&p), FUSELINE_ERROR_SHAPE, "bias: shape is ");
                    assert_refused(backward(&p), FUSELINE_ERROR_SHAPE, "bias: shape is ");
                }
            }
}

static void wrong_shapes(void **state)
{
    (void)state;
    float room[64] = {0};
    FOR_EACH_GATED(op)
    {
        const struct entry *forward_ = &op->forward, *backward_ = &op->backward;
        struct scalars scalars = plain_scalars;
        for (int packing = 0; packing < 2; packing++) {
            DLTensor odd = tensor_of(room, FLOAT32, 2, DIMS(2, 5), NULL), none = tensor_of(room, FLOAT32, 0, NULL, NULL),
                     even = tensor_of(room, FLOAT32, 2, DIMS(2, 6), NULL), y = tensor_of(room + 32, FLOAT32, 2, DIMS(2, 3), NULL),
                     y_none = tensor_of(room + 32, FLOAT32, 0, NULL, NULL);
            scalars.packing = packing == 0 ? FUSELINE_HALVES : FUSELINE_INTERLEAVED;
            assert_refused(forward_->borrow((void *[]){&odd, NULL, NULL, &y}, &scalars), FUSELINE_ERROR_SHAPE,
                           "gate: last extent is 5", "even");
            assert_refused(backward_->borrow((void *[]){&y, &odd, NULL, NULL, &even, NULL}, &scalars), FUSELINE_ERROR_SHAPE,
                           "gate: last extent is 5", "even");
            assert_refused(backward_->borrow((void *[]){&y, &even, NULL, NULL, &odd, NULL}, &scalars), FUSELINE_ERROR_SHAPE,
                           "dgate: last extent is 5", "even");
            assert_refused(forward_->borrow((void *[]){&none, NULL, NULL, &y_none}, &scalars), FUSELINE_ERROR_SHAPE,
                           "gate: has no axis to split");
            assert_refused(forward_->borrow((void *[]){&even, NULL, NULL, &even}, &scalars), FUSELINE_ERROR_SHAPE,
                           "y: shape is (2, 6), but half of gate is (2, 3)");
            assert_refused(backward_->borrow((void *[]){&even, &even, NULL, NULL, &even, NULL}, &scalars), FUSELINE_ERROR_SHAPE,
                           "dy: shape is (2, 6), but half of gate is (2, 3)");
            DLTensor longer = tensor_of(room + 16, FLOAT32, 2, DIMS(2, 8), NULL);
            assert_refused(backward_->borrow((void *[]){&y, &even, NULL, NULL, &longer, NULL}, &scalars), FUSELINE_ERROR_SHAPE,
                           "dgate: shape is (2, 8), but gate is (2, 6)");
            DLTensor transposed = tensor_of(room, FLOAT32, 2, DIMS(2, 6), DIMS(1, 2));
            assert_refused(forward_->borrow((void *[]){&transposed, NULL, NULL, &y}, &scalars), FUSELINE_ERROR_LAYOUT,
                           "gate: strides are (1, 2)");
            transposed.strides = DIMS(18, 3);
            assert_refused(forward_->borrow((void *[]){&transposed, NULL, NULL, &y}, &scalars), FUSELINE_ERROR_LAYOUT,
                           "gate: strides are (18, 3) for shape (2, 6)");
            for (int length = 0; length <= 9; length++) {
                DLTensor bias = tensor_of(room + 48, FLOAT32, 1, DIMS(length), NULL);
                char found[32];
                snprintf(found, sizeof found, "shape is (%d)", length);
                if (length == 6)
                    continue;
                assert_refused(forward_->borrow((void *[]){&even, NULL, &bias, &y}, &scalars), FUSELINE_ERROR_SHAPE,
                               "bias: ", found, "accepted: (6), an element for each column of gate and up");
                assert_refused(backward_->borrow((void *[]){&y, &even, NULL, &bias, &even, NULL}, &scalars), FUSELINE_ERROR_SHAPE,
                               "bias: ", found, "accepted: (6)");
            }
            DLTensor row = tensor_of(room + 48, FLOAT32, 2, DIMS(1, 6), NULL);
            assert_refused(forward_->borrow((void *[]){&even, NULL, &row, &y}, &scalars), FUSELINE_ERROR_SHAPE,
                           "bias: shape is (1, 6)", "accepted: (6)");
            assert_refused(forward_->borrow((void *[]){&even, NULL, &none, &y}, &scalars), FUSELINE_ERROR_SHAPE,
                           "bias: shape is (); accepted: (6)");
            DLTensor apart = tensor_of(room + 40, FLOAT32, 1, DIMS(6), DIMS(2));
            assert_refused(forward_->borrow((void *[]){&even, NULL, &apart, &y}, &scalars), FUSELINE_ERROR_LAYOUT,
                           "bias: strides are (2)", "accepted: (1)");
            DLTensor two = tensor_of(room + 48, FLOAT32, 1, DIMS(2), NULL);
            assert_refused(forward_->borrow((void *[]){&none, &none, &two, &y_none}, &scalars), FUSELINE_ERROR_SHAPE,
                           "gate: has no axis", "bias");
        }
        DLTensor gate = tensor_of(room, FLOAT32, 2, DIMS(2, 3), NULL), up = tensor_of(room + 8, FLOAT32, 2, DIMS(3, 2), NULL),
                 y = tensor_of(room + 32, FLOAT32, 2, DIMS(2, 3), NULL);
        assert_refused(forward_->borrow((void *[]){&gate, &up, NULL, &y}, &scalars), FUSELINE_ERROR_SHAPE, "up: shape is (3, 2)");
        assert_refused(forward_->borrow((void *[]){&gate, &up, NULL, &gate}, &scalars), FUSELINE_ERROR_SHAPE,
                       "up: shape is (3, 2)");
    }
}

/* A limit is never 0 in the type computed in, nor anything but infinity beyond its range. */
static void limits_at_the_ends_of_floats_range(void **state)
{
    (void)state;
    static const double limits[] = {0x1p-149, FLT_MIN, 0x1p127, FLT_MAX, 0x1.ffffff8p127, 1e39, 1e300, DBL_MAX};
    FOR_EACH_GATED(op)
    if (op->has_clamp)
        for (int f = 0; f < FORMATS; f++)
            for (int k = 0; k < COUNT(limits); k++) {
                const struct format *format = &formats[f];
                double most = finite_most(format), in_float = limits[k] > FLT_MAX ? INFINITY : limits[k];
                double limit = f == IN_FLOAT64 ? limits[k] : in_float, held = most < limit ? most : limit;
                struct scalars scalars = plain_scalars;
                char gate[8], up[8], y[8];
                DLTensor g = tensor_of(gate, format->dtype, 0, NULL, NULL), u = tensor_of(up, format->dtype, 0, NULL, NULL),
                         out = tensor_of(y, format->dtype, 0, NULL, NULL);
                scalars.limit = limits[k];
                store(format, gate, most); /* clamped too; the largest multiplier of up that there is */
                store(format, up, -most);
                assert_ok(op->forward.borrow((void *[]){&g, &u, NULL, &out}, &scalars));
                long double right = -op->value(held, 1) * held;
                if (right < -finite_most(format))
                    assert_true(load(format, y) == -INFINITY);
                else
                    assert_near(format, load(format, y), right, 0);
                store(format, gate, 0);
                store(format, up, INFINITY);
                assert_ok(op->forward.borrow((void *[]){&g, &u, NULL, &out}, &scalars));
                assert_true(isinf(limit) ? isnan(load(format, y)) : load(format, y) == 0);
            }
}

/* up and dup come both or not at all; and no dtype or device of its own for a tensor that goes with gate. */
static void what_goes_with_gate(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    {
        struct problem p = problem_of(op, TWO, 3, 4);
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        const struct entry *b = &op->backward;
        assert_refused(b->borrow((void *[]){&p.dy, &p.gate, &p.up, NULL, &p.dgate, NULL}, &p.scalars), FUSELINE_ERROR_ARGUMENT,
                       "dup: is NULL, but up is given");
        assert_refused(b->borrow((void *[]){&p.dy, &p.gate, NULL, NULL, &p.dgate, &p.dup}, &p.scalars), FUSELINE_ERROR_ARGUMENT,
                       "dup: is given, but up is NULL");
        p.up.dtype = FLOAT16;
        assert_refused(forward(&p), FUSELINE_ERROR_DTYPE, "up: dtype is float16", "gate is float32");
        p.up.dtype = FLOAT32;
        p.has_bias = 1;
        p.bias.dtype = BFLOAT16;
        assert_refused(forward(&p), FUSELINE_ERROR_DTYPE, "bias: dtype is bfloat16", "gate is float32");
        p.bias.dtype = FLOAT32;
        p.dup.dtype = BFLOAT16;
        assert_refused(backward(&p), FUSELINE_ERROR_DTYPE, "dup: dtype is bfloat16", "gate is float32");
        p.dup.dtype = FLOAT32;
        p.bias.device = (DLDevice){kDLCUDA, 1};
        assert_refused(forward(&p), FUSELINE_ERROR_DEVICE, "bias is on CUDA device 1", "gate is on ");
        p.bias.device = p.gate.device;
        p.y.dtype = FLOAT64;
        assert_refused(forward(&p), FUSELINE_ERROR_DTYPE, "y: dtype is float64", "gate is float32");
        p.dy.dtype = FLOAT64;
        assert_refused(backward(&p), FUSELINE_ERROR_DTYPE, "dy: dtype is float64", "gate is float32");
    }
}

static void bad_scalars(void **state)
{
    (void)state;
    static const double bad_limits[] = {NAN, 0, -0.0, -1, -INFINITY, 1e-300, 1e-60, 0x1p-150},
                        good_limits[] = {INFINITY, 7, 0x1p-149, 1e300}, bad_offsets[] = {NAN, INFINITY, -INFINITY, 1e39},
                        good_offsets[] = {-0.0, 1, -3e38}, bad_betas[] = {NAN, INFINITY, 1e39};
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++) {
        struct problem p = problem_of(op, form, 3, 4), good;
        char found[32];
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        good = p;
        for (int k = 0; k < 3; k++) {
            static const int packings[] = {-1, 2, 77};
            p.scalars.packing = (fuseline_packing)packings[k];
            snprintf(found, sizeof found, "packing: is %d", packings[k]);
            assert_refused(forward(&p), FUSELINE_ERROR_ARGUMENT, found, "FUSELINE_HALVES", "FUSELINE_INTERLEAVED");
            assert_refused(backward(&p), FUSELINE_ERROR_ARGUMENT, found);
        }
        if (!op->has_clamp)
            continue;
        for (int k = 0; k < COUNT(bad_limits); k++) {
            p = good;
            p.scalars.limit = bad_limits[k];
            snprintf(found, sizeof found, "limit: is %g", bad_limits[k]);
            assert_refused(forward(&p), FUSELINE_ERROR_ARGUMENT, found, "accepted: a positive number");
            assert_refused(backward(&p), FUSELINE_ERROR_ARGUMENT, found);
        }
        for (int k = 0; k < COUNT(bad_offsets); k++) {
            p = good;
            p.scalars.offset = bad_offsets[k];
            snprintf(found, sizeof found, "offset: is %g", bad_offsets[k]);
            assert_refused(forward(&p), FUSELINE_ERROR_ARGUMENT, found, "accepted: a finite number");
            assert_refused(backward(&p), FUSELINE_ERROR_ARGUMENT, found);
        }
        for (int k = 0; k < COUNT(bad_betas); k++) {
            p = good;
            p.scalars.beta = bad_betas[k];
            snprintf(found, sizeof found, "beta: is %g", bad_betas[k]);
            assert_refused(forward(&p), FUSELINE_ERROR_ARGUMENT, found);
            assert_refused(backward(&p), FUSELINE_ERROR_ARGUMENT, found);
        }
        for (size_t i = 0; i < ROOM; i++)
            assert_true(memory[Y][i] == 0x5a && memory[DGATE][i] == 0x5a && packed_output[i] == 0x5a);
        p = good;
        for (int k = 0; k < COUNT(good_limits); k++) {
            p.scalars.limit = good_limits[k];
            assert_ok(forward(&p));
        }
        for (int k = 0; k < COUNT(good_offsets); k++) {
            p.scalars.offset = good_offsets[k];
            assert_ok(backward(&p));
        }
    }
}

/* With two tensors the order within a packed one makes no difference, but to nothing either. */
static void packing_of_two_tensors(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    {
        struct problem p = problem_of(op, TWO, 3, 4);
        set_up(&p, &formats[IN_FLOAT32], &formats[IN_FLOAT32], 0);
        p.has_bias = 1;
        p.scalars.packing = FUSELINE_INTERLEAVED;
        check(&p);
    }
}

/* Special values, one at a time in every position: what the formula gives, 0 * inf being nan, and the neighbours unharmed. */
static void special_values(void **state)
{
    (void)state;
    enum { LENGTH = 37 };
    static const double specials[][2] = {
        /* gate and up */
        {NAN, 1},  {1, NAN},      {INFINITY, 1},  {-INFINITY, 1},        {1, INFINITY},  {1, -INFINITY}, {0, INFINITY},
        {-0.0, 2}, {INFINITY, 0}, {-INFINITY, 0}, {INFINITY, -INFINITY}, {-1, INFINITY}, {-1, NAN}};
    FOR_EACH_GATED(op)
    for (int f = 0; f < FORMATS; f++)
        for (int at = 0; at < LENGTH; at += f == IN_FLOAT32 ? 1 : 9)
            for (int s = 0; s < COUNT(specials); s++)
                FOR_EACH_VARIANT(variant)
    for (int full = 0; full < 2; full++) {
        struct problem p = problem_of(op, TWO, 1, LENGTH);
        const struct format *format = &formats[f];
        test_use_variant(*variant);
        set_up(&p, format, format, 0);
        p.has_bias = full;
        memset(p.bias.data, 0, (size_t)(2 * LENGTH * format->size)); /* adds nothing; but the sum of -0 and 0 is 0 */
        store(format, (char *)p.gate.data + at * format->size, specials[s][0]);
        store(format, (char *)p.up.data + at * format->size, specials[s][1]);
        store(format, (char *)p.dy.data + at * format->size, -2);
        assert_ok(forward(&p));
        assert_ok(backward(&p));
        for (int i = 0; i < LENGTH; i++) {
            double y = value_at(&p.operands[Y], 0, i), dgate = value_at(&p.operands[DGATE], 0, i),
                   dup = value_at(&p.operands[DUP], 0, i);
            if (i != at) {
                p.has_bias = 0;
                struct right right = right_at(&p, 0, i);
                p.has_bias = full;
                assert_near(format, y, right.y, 0);
                assert_near(format, dgate, right.dgate, right.scale);
                assert_near(format, dup, right.dup, 0);
                continue;
            }
            double value = (double)op->value(specials[s][0], 1), got[] = {y, dgate, dup},
                   right[] = {value * specials[s][1], (double)right_gradient(op, -2 * specials[s][1], specials[s][0], 1),
                              -2 * value};
            for (int k = 0; k < 3; k++) {
                if (isfinite(right[k]))
                    assert_near(format, got[k], right[k], 2);
                else if (isnan(right[k]) ? !isnan(got[k]) : got[k] != right[k]) {
                    print_error("%s %s %s, gate %g, up %g, result %d: %g, wanted %g\n", op->name, (*variant)->name, format->name,
                                specials[s][0], specials[s][1], k, got[k], right[k]);
                    fail();
                }
            }
        }
    }
}

/* The clamp: values and gradients on both sides of the limit and on it, as torch.clamp has them; nan passes, inf is held. */
static void clamp(void **state)
{
    (void)state;
    static const double values[] = {-INFINITY, -8, -7.0625, -7, -6.9375, -1, 0, 1, 6.9375, 7, 7.0625, 8, INFINITY, NAN};
    struct scalars scalars = plain_scalars;
    scalars.limit = 7;
    scalars.offset = 1;
    scalars.beta = 1.702;
    FOR_EACH_GATED(op)
    if (op->has_clamp)
        for (int f = 0; f < FORMATS; f++)
            for (int g = 0; g < COUNT(values); g++)
                for (int u = 0; u < COUNT(values); u++)
                    FOR_EACH_VARIANT(variant)
                    {
                        const struct format *format = &formats[f];
                        char gate[8], up[8], dy[8], y[8], dgate[8], dup[8];
                        DLTensor tensors[] = {
                            tensor_of(gate, format->dtype, 0, NULL, NULL),  tensor_of(up, format->dtype, 0, NULL, NULL),
                            tensor_of(dy, format->dtype, 0, NULL, NULL),    tensor_of(y, format->dtype, 0, NULL, NULL),
                            tensor_of(dgate, format->dtype, 0, NULL, NULL), tensor_of(dup, format->dtype, 0, NULL, NULL)};
                        test_use_variant(*variant);
                        store(format, gate, values[g]);
                        store(format, up, values[u]);
                        store(format, dy, 0.5);
                        assert_ok(op->forward.borrow((void *[]){&tensors[0], &tensors[1], NULL, &tensors[3]}, &scalars));
                        assert_ok(op->backward.borrow(
                            (void *[]){&tensors[2], &tensors[0], &tensors[1], NULL, &tensors[4], &tensors[5]}, &scalars));
                        double got_y = load(format, y), got_dgate = load(format, dgate), got_dup = load(format, dup);
                        struct right right = right_of(op, &scalars, 0.5, values[g], values[u]);
                        assert_near_or_nan(format, got_y, right.y, 0);
                        assert_near_or_nan(format, got_dgate, right.dgate, right.scale);
                        assert_near_or_nan(format, got_dup, right.dup, 0);
                        assert_true(values[g] <= 7 || got_dgate == 0);
                        assert_true((-7 <= values[u] && values[u] <= 7) || got_dup == 0);
                        assert_true(values[g] != 7 || values[u] == -1 || got_dgate != 0);
                    }
}

/* An absent bias adds nothing, not even to the sign of a zero. */
static void absent_bias_keeps_zeros_sign(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (int f = 0; f < FORMATS; f++)
        for (int64_t columns = 3; columns < 60; columns += 20)
            FOR_EACH_VARIANT(variant)
            {
                const struct format *format = &formats[f];
                struct problem p = problem_of(op, TWO, 1, columns);
                test_use_variant(*variant);
                set_up(&p, format, format, 0);
                p.scalars.limit = 7; /* so that it is not the plain form */
                for (int64_t i = 0; i < columns; i++) {
                    store(format, p.operands[GATE].data + i * format->size, -0.0);
                    store(format, p.operands[UP].data + i * format->size, 1);
                }
                assert_ok(forward(&p));
                for (int64_t i = 0; i < columns; i++) {
                    double y = value_at(&p.operands[Y], 0, i);
                    assert_true(y == 0 && signbit(y));
                }
            }
}

/* K5: the tail times a large number; K19: large gates. */
static void tail_times_large(void **state)
{
    (void)state;
    static const double gates[] = {-87.5, -88, -88.7, -13, -12.5, -9.5, 10.5, 12, 100};
    FOR_EACH_GATED(op)
    for (int k = 0; k < COUNT(gates); k++)
        FOR_EACH_VARIANT(variant)
        {
            float gate = (float)gates[k], up = 1e10f, y;
            DLTensor g = tensor_of(&gate, FLOAT32, 0, NULL, NULL), u = tensor_of(&up, FLOAT32, 0, NULL, NULL),
                     out = tensor_of(&y, FLOAT32, 0, NULL, NULL);
            test_use_variant(*variant);
            assert_ok(op->forward.borrow((void *[]){&g, &u, NULL, &out}, &plain_scalars));
            long double value = op->value(gate, 1);
            if (fabsl(value) >= FLT_MIN || value == 0)
                assert_near(&formats[IN_FLOAT32], y, value * up, 0);
            else
                assert_true(fabsl(y - value * up) <= 1e10L * 2 * ldexpl(1, -149)); /* the activation is no normal number */
        }
}

#ifndef TEST_ON_STANDIN
/* What a kernel on a GPU is told: which operand is where, and that the plain form is. */
static void gpu_calls_are_passed_on(void **state)
{
    (void)state;
    FOR_EACH_GATED(op)
    for (enum form form = 0; form < FORMS; form++)
        FOR_EACH_SETTING(setting, op)
        {
            struct problem p = problem_of(op, form, 3, 8);
            apply(&p, setting);
            set_up(&p, &formats[IN_BFLOAT16], &formats[IN_FLOAT32], 8);
            p.gate.device = p.up.device = p.bias.device = p.dy.device = p.y.device = p.dgate.device = p.dup.device =
                (DLDevice){kDLCUDA, 2};
            p.scalars.stream = (void *)0x77;
            static const int in_forward[] = {GATE, UP, GATE_BIAS, UP_BIAS, Y},
                             in_backward[] = {DY, GATE, UP, GATE_BIAS, UP_BIAS, DGATE, DUP};
            for (int way = 0; way < 2; way++) {
                const int *operands = way == 0 ? in_forward : in_backward;
                assert_ok(way == 0 ? forward(&p) : backward(&p));
                assert_string_equal(test_launch.op->kernel, way == 0 ? op->forward.name : op->backward.name);
                assert_string_equal(test_launch.op->family, op->name);
                assert_int_equal(test_launch.types.operand, FL_BFLOAT16);
                assert_int_equal(test_launch.types.result, FL_FLOAT32);
                assert_int_equal(test_launch.device_id, 2);
                assert_ptr_equal(test_launch.stream, (void *)0x77);
                const struct fl_arguments *arguments = &test_launch.arguments;
                assert_int_equal(arguments->rows, 3);
                assert_int_equal(arguments->columns, 8);
                assert_int_equal(arguments->plain, isinf(setting->limit) && setting->offset == 0 && !setting->has_bias);
                for (int k = 0; k < test_launch.op->inputs + test_launch.op->outputs; k++) {
                    const struct operand *o = &p.operands[operands[k]];
                    if (!p.has_bias && (operands[k] == GATE_BIAS || operands[k] == UP_BIAS)) {
                        assert_null(arguments->data[k]);
                        assert_int_equal(arguments->column_stride[k], 0);
                        continue;
                    }
                    assert_ptr_equal(arguments->data[k], o->data);
                    assert_int_equal(arguments->row_stride[k], o->row_stride);
                    assert_int_equal(arguments->column_stride[k], o->step);
                }
            }
        }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form),
        cmocka_unit_test(accuracy),
        cmocka_unit_test(large_tensors),
        cmocka_unit_test(outputs_that_are_inputs),
        cmocka_unit_test(outputs_that_overlap),
        cmocka_unit_test(repeated_inputs),
        cmocka_unit_test(other_ranks_and_orders),
        cmocka_unit_test(unaligned_bias),
        cmocka_unit_test(zero_elements),
        cmocka_unit_test(wrong_shapes),
        cmocka_unit_test(what_goes_with_gate),
        cmocka_unit_test(bad_scalars),
        cmocka_unit_test(limits_at_the_ends_of_floats_range),
        cmocka_unit_test(packing_of_two_tensors),
        cmocka_unit_test(special_values),
        cmocka_unit_test(clamp),
        cmocka_unit_test(tail_times_large),
        cmocka_unit_test(absent_bias_keeps_zeros_sign),
#ifndef TEST_ON_STANDIN
        cmocka_unit_test(gpu_calls_are_passed_on),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
