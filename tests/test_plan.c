/*
 * Layouts and aliasing: what can be walked without a copy gives the right numbers and touches nothing else; what cannot is
 * FUSELINE_ERROR_LAYOUT or FUSELINE_ERROR_OVERLAP, and nothing is written. Right values come from a plain loop over indices.
 */
#include "testing.h"

#include "internal.h"
#include "numbers.h"
#include "tensors.h"

enum { AXES = 6, SIZE = 4096, BUFFERS = 3 };

/* An operand in one of the buffers: where its first element is, and its strides; both in elements. */
struct operand {
    int buffer;
    int64_t start;
    int64_t strides[AXES];
};

/* dx = dy * swish'(x) with its three operands. */
struct problem {
    int ndim;
    int64_t shape[AXES];
    struct operand dy, x, dx;
};

static float buffers[BUFFERS][SIZE], before[BUFFERS][SIZE], right[BUFFERS][SIZE];

static int64_t count_of(const struct problem *p)
{
    int64_t count = 1;
    for (int axis = 0; axis < p->ndim; axis++)
        count *= p->shape[axis];
    return count;
}

/* The place, in its buffer, of the element with row-major number `index`. */
static int64_t place_of(const struct problem *p, const struct operand *operand, int64_t index)
{
    int64_t place = operand->start;
    for (int axis = p->ndim - 1; axis >= 0; axis--) {
        place += index % p->shape[axis] * operand->strides[axis];
        index /= p->shape[axis];
    }
    return place;
}

static void fill(void)
{
    for (int b = 0; b < BUFFERS; b++)
        for (int i = 0; i < SIZE; i++)
            before[b][i] = buffers[b][i] = (float)((i * 7 + b * 3) % 101 - 50) / 8;
}

static fuseline_status call(const struct problem *p)
{
    struct operand operands[3] = {p->dy, p->x, p->dx};
    DLTensor tensors[3];
    for (int k = 0; k < 3; k++)
        tensors[k] = (DLTensor){.data = buffers[operands[k].buffer] + operands[k].start,
                                .device = {kDLCPU, 0},
                                .ndim = p->ndim,
                                .dtype = FLOAT32,
                                .shape = (int64_t *)p->shape,
                                .strides = operands[k].strides};
    fill();
    return fuseline_swish_backward(&tensors[0], &tensors[1], 1, NULL, &tensors[2]);
}

/* Compares every element of every buffer: the output's with the right values, all others with what was there. */
static int is_right(const struct problem *p)
{
    memcpy(right, before, sizeof right);
    for (int64_t i = 0; i < count_of(p); i++) {
        double dy = before[p->dy.buffer][place_of(p, &p->dy, i)], x = before[p->x.buffer][place_of(p, &p->x, i)];
        right[p->dx.buffer][place_of(p, &p->dx, i)] = (float)(dy * swish_slope_in_double(x, 1));
    }
    for (int b = 0; b < BUFFERS; b++)
        for (int i = 0; i < SIZE; i++)
            if (!(fabs(buffers[b][i] - right[b][i]) <= 1e-5))
                return 0;
    return 1;
}

#define assert_works(...)                                                                                                        \
    do {                                                                                                                         \
        const struct problem p_ = {__VA_ARGS__};                                                                                 \
        assert_ok(call(&p_));                                                                                                    \
        assert_true(is_right(&p_));                                                                                              \
    } while (0)

static int is_untouched(void)
{
    return memcmp(buffers, before, sizeof buffers) == 0;
}

/* assert_refuses(status, words in parentheses, problem) */
#define UNPACK(...) __VA_ARGS__
#define assert_refuses(status, words, ...)                                                                                       \
    do {                                                                                                                         \
        const struct problem p_ = {__VA_ARGS__};                                                                                 \
        assert_refused(call(&p_), status, UNPACK words);                                                                         \
        assert_true(is_untouched());                                                                                             \
    } while (0)

/* Dense strides for a shape whose axes stand in memory in the order of `order`, outermost first. */
static void dense_strides(const int64_t *shape, int ndim, const int *order, int64_t *strides)
{
    int64_t stride = 1;
    for (int k = ndim - 1; k >= 0; k--) {
        strides[order[k]] = stride;
        stride *= shape[order[k]];
    }
}

/* Every dimension order of a 4-d shape, shared by all operands, is one run of memory. */
static void dense_in_every_order(void **state)
{
    (void)state;
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 4; b++)
            for (int c = 0; c < 4; c++) {
                int order[4] = {a, b, c, 6 - a - b - c};
                if (a == b || b == c || a == c)
                    continue;
                struct problem p = {4, {3, 5, 2, 7}, {0, 3, {0}}, {1, 1, {0}}, {2, 2, {0}}};
                dense_strides(p.shape, 4, order, p.dy.strides);
                memcpy(p.x.strides, p.dy.strides, sizeof p.x.strides);
                memcpy(p.dx.strides, p.dy.strides, sizeof p.dx.strides);
                assert_ok(call(&p));
                assert_true(is_right(&p));
            }
}

/* The plan itself: dense operands become one row, whatever their order and rank. */
static void dense_is_one_row(void **state)
{
    (void)state;
    struct fl_tensor operands[2];
    struct fl_arguments arguments;
    float values[2][24];
    for (int k = 0; k < 2; k++) {
        DLTensor tensor = tensor_of(values[k], FLOAT32, 4, DIMS(2, 3, 1, 4), DIMS(12, 1, 999, 3));
        assert_ok(fl_tensor_check(&tensor, k ? "y" : "x", &operands[k]));
    }
    assert_ok(fl_plan((const struct fl_tensor *[]){&operands[0], &operands[1]}, 1, 1, &arguments));
    assert_int_equal(arguments.rows, 1);
    assert_int_equal(arguments.columns, 24);
    assert_int_equal(arguments.column_stride[0], 1);
    assert_int_equal(arguments.column_stride[1], 1);
    assert_ptr_equal(arguments.data[0], values[0]);
    assert_ptr_equal(arguments.data[1], values[1]);
}

/* What chunk(2, -1) gives: rows whose stride is twice their length. */
static void rows_with_larger_stride(void **state)
{
    (void)state;
    assert_works(2, {5, 7}, {0, 0, {14, 1}}, {1, 7, {14, 1}}, {2, 3, {9, 1}});
    assert_works(2, {5, 7}, {0, 0, {7, 1}}, {1, 7, {14, 1}}, {2, 0, {7, 1}});
    assert_works(2, {7, 5}, {0, 0, {1, 14}}, {1, 7, {1, 14}}, {2, 3, {1, 9}}); /* columns as rows */
    assert_works(1, {5}, {0, 3, {1}}, {1, 0, {1}}, {2, 9, {1}});
}

/* Three and more dimensions that one row stride can walk. */
static void collapses_to_rows(void **state)
{
    (void)state;
    assert_works(3, {3, 4, 5}, {0, 0, {40, 10, 1}}, {1, 5, {40, 10, 1}}, {2, 0, {20, 5, 1}});
    assert_works(4, {3, 1, 4, 5}, {0, 0, {40, -3, 10, 1}}, {1, 5, {40, 0, 10, 1}}, {2, 0, {24, 7, 6 * 1, 1}});
    assert_works(4, {2, 3, 2, 5}, {0, 0, {60, 20, 5 * 2, 1}}, {1, 0, {30, 10, 5, 1}}, {2, 0, {36, 12, 6, 1}});
    struct fl_tensor operands[2];
    struct fl_arguments arguments;
    DLTensor x = tensor_of(buffers[0], FLOAT32, 3, DIMS(3, 4, 5), DIMS(40, 10, 1)),
             y = tensor_of(buffers[1], FLOAT32, 3, DIMS(3, 4, 5), NULL);
    assert_ok(fl_tensor_check(&x, "x", &operands[0]));
    assert_ok(fl_tensor_check(&y, "y", &operands[1]));
    assert_ok(fl_plan((const struct fl_tensor *[]){&operands[0], &operands[1]}, 1, 1, &arguments));
    assert_int_equal(arguments.rows, 12);
    assert_int_equal(arguments.columns, 5);
    assert_int_equal(arguments.row_stride[0], 10);
    assert_int_equal(arguments.row_stride[1], 5);
}

/* What .sum().backward() gives, and broadcasts along either of two dimensions. */
static void broadcast_inputs(void **state)
{
    (void)state;
    assert_works(1, {900}, {0, 5, {0}}, {1, 0, {1}}, {2, 0, {1}});
    assert_works(3, {5, 7, 3}, {0, 5, {0, 0, 0}}, {1, 0, {21, 3, 1}}, {2, 0, {21, 3, 1}});
    assert_works(3, {5, 7, 3}, {0, 5, {0, 0, 0}}, {1, 0, {1, 15, 5}}, {2, 0, {1, 15, 5}});
    assert_works(2, {5, 7}, {0, 5, {1, 0}}, {1, 0, {7, 1}}, {2, 0, {7, 1}}); /* inner */
    assert_works(2, {5, 7}, {0, 5, {2, 0}}, {1, 0, {7, 1}}, {2, 0, {7, 1}}); /* inner, strided */
    assert_works(2, {5, 7}, {0, 5, {0, 1}}, {1, 0, {7, 1}}, {2, 0, {7, 1}}); /* outer */
    assert_works(2, {5, 7}, {0, 5, {0, 1}}, {1, 0, {1, 0}}, {2, 0, {7, 1}}); /* one each */
    assert_works(2, {5, 7}, {0, 5, {0, 0}}, {1, 9, {0, 0}}, {2, 0, {9, 1}}); /* both from one value */
    assert_works(3, {2, 5, 7}, {0, 5, {5, 1, 0}}, {1, 0, {35, 7, 1}}, {2, 0, {35, 7, 1}});
    assert_works(3, {2, 5, 7}, {0, 5, {0, 0, 1}}, {1, 0, {35, 7, 1}}, {2, 0, {35, 7, 1}});
    assert_works(2, {600, 3}, {0, 5, {1, 0}}, {1, 0, {3, 1}}, {2, 0, {3, 1}});
    assert_works(2, {3, 600}, {0, 5, {1, 0}}, {1, 0, {600, 1}}, {2, 0, {600, 1}});
}

/* C17: rows out of the middle, the last column cut. */
static void column_slice(void **state)
{
    (void)state;
    assert_works(2, {2, 2}, {0, 0, {3, 1}}, {1, 0, {3, 1}}, {2, 0, {2, 1}});
}

static void strides_that_no_kernel_walks(void **state)
{
    (void)state;
    /* x[::2]: as an input, as an output */
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("x: ", "(2)", "(6)", "accepted: "), 1, {6}, {0, 0, {1}}, {1, 0, {2}}, {2, 0, {1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(2)", "accepted: "), 1, {6}, {0, 0, {1}}, {1, 0, {1}}, {2, 0, {2}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dy: ", "(12, 2)"), 2, {3, 6}, {0, 0, {12, 2}}, {1, 0, {6, 1}}, {2, 0, {6, 1}});
    /* negative: C15's kind on the CPU */
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("x: ", "(-1)", "copy"), 1, {6}, {0, 0, {1}}, {1, 5, {-1}}, {2, 0, {1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dy: ", "(-6, 1)", "copy"), 2, {3, 6}, {0, 12, {-6, 1}}, {1, 0, {6, 1}},
                   {2, 0, {6, 1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(-6, 1)", "copy"), 2, {3, 6}, {0, 0, {6, 1}}, {1, 0, {6, 1}},
                   {2, 12, {-6, 1}});
    /* transposed against contiguous */
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("x: ", "(1, 3)", "dx has (5, 1)", "the same dimension order"), 2, {3, 5},
                   {0, 0, {5, 1}}, {1, 0, {1, 3}}, {2, 0, {5, 1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dy: ", "(5, 1)", "dx has (1, 3)"), 2, {3, 5}, {0, 0, {5, 1}}, {1, 0, {1, 3}},
                   {2, 0, {1, 3}});
    /* broadcast along two axes that are not neighbours */
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dy: ", "(0, 1, 0)"), 3, {2, 3, 4}, {0, 0, {0, 1, 0}}, {1, 0, {12, 4, 1}},
                   {2, 0, {12, 4, 1}});
    /* three levels */
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("x: ", "(100, 10, 1)"), 3, {2, 3, 4}, {0, 0, {12, 4, 1}}, {1, 0, {100, 10, 1}},
                   {2, 0, {12, 4, 1}});
}

static void outputs_that_overlap_themselves(void **state)
{
    (void)state;
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(0)", "do not overlap"), 1, {6}, {0, 0, {1}}, {1, 0, {1}}, {2, 0, {0}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(0, 1)"), 2, {3, 6}, {0, 0, {6, 1}}, {1, 0, {6, 1}}, {2, 0, {0, 1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(1, 0)"), 2, {3, 6}, {0, 0, {6, 1}}, {1, 0, {6, 1}}, {2, 0, {1, 0}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(1, 1)"), 2, {3, 6}, {0, 0, {6, 1}}, {1, 0, {6, 1}}, {2, 0, {1, 1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(5, 1)"), 2, {3, 6}, {0, 0, {6, 1}}, {1, 0, {6, 1}}, {2, 0, {5, 1}});
    assert_refuses(FUSELINE_ERROR_LAYOUT, ("dx: ", "(5, 1)"), 2, {3, 6}, {0, 0, {5, 1}}, {1, 0, {5, 1}}, {2, 0, {5, 1}});
}

/* Inputs may overlap themselves and each other as they like. */
static void inputs_that_overlap(void **state)
{
    (void)state;
    assert_works(2, {3, 6}, {0, 0, {5, 1}}, {0, 2, {2, 1}}, {2, 0, {6, 1}}); /* a sliding window */
    assert_works(1, {6}, {0, 0, {1}}, {0, 3, {1}}, {2, 0, {1}});
    assert_works(1, {6}, {0, 0, {1}}, {0, 0, {1}}, {2, 0, {1}});
}

static void output_is_an_input(void **state)
{
    (void)state;
    assert_works(1, {600}, {0, 4, {1}}, {1, 0, {1}}, {0, 4, {1}});             /* dx is dy */
    assert_works(1, {600}, {1, 4, {1}}, {0, 4, {1}}, {0, 4, {1}});             /* dx is x */
    assert_works(1, {600}, {0, 4, {1}}, {0, 4, {1}}, {0, 4, {1}});             /* all one */
    assert_works(2, {5, 7}, {0, 3, {14, 1}}, {1, 0, {7, 1}}, {0, 3, {14, 1}}); /* rows */
    assert_works(2, {5, 7}, {0, 3, {1, 5}}, {1, 0, {1, 5}}, {0, 3, {1, 5}});   /* transposed */
    assert_works(1, {1}, {0, 4, {7}}, {1, 4, {-3}}, {0, 4, {0}});              /* one element */
    assert_works(3, {1, 1, 1}, {0, 4, {7, 2, 1}}, {1, 4, {-3, 0, 9}}, {0, 4, {0, 5, 5}});
    float x[4] = {-1, 0, 1, 2};
    DLTensor tensor = tensor_of(x, FLOAT32, 1, DIMS(4), NULL);
    assert_ok(fuseline_swish_forward(&tensor, 1, NULL, &tensor)); /* y is x, one structure */
    assert_float_equal(x[3], swish_in_double(2, 1), 1e-6);
}

static void partial_overlap(void **state)
{
    (void)state;
    for (int shift = -5; shift <= 5; shift++) {
        if (shift == 0)
            continue;
        assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps dy"), 1, {6}, {0, 20, {1}}, {1, 0, {1}}, {0, 20 + shift, {1}});
        assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x"), 1, {6}, {1, 0, {1}}, {0, 20, {1}}, {0, 20 + shift, {1}});
        assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x", "exactly the same memory, or apart"), 2, {3, 6}, {1, 0, {6, 1}},
                       {0, 60, {12, 1}}, {0, 60 + shift, {12, 1}});
    }
    /* a row further on, two rows further on with a shift */
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x"), 2, {3, 6}, {1, 0, {6, 1}}, {0, 60, {12, 1}}, {0, 72, {12, 1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x"), 2, {3, 6}, {1, 0, {6, 1}}, {0, 60, {12, 1}}, {0, 87, {12, 1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x"), 2, {3, 6}, {1, 0, {6, 1}}, {0, 60, {12, 1}}, {0, 43, {12, 1}});
    /* the same start, other strides */
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps x"), 2, {3, 6}, {1, 0, {6, 1}}, {0, 60, {12, 1}}, {0, 60, {6, 1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps dy"), 1, {6}, {0, 20, {0}}, {1, 0, {1}}, {0, 20, {1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps dy"), 1, {6}, {0, 23, {0}}, {1, 0, {1}}, {0, 20, {1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps dy"), 2, {3, 6}, {0, 23, {0, 1}}, {1, 0, {6, 1}}, {0, 20, {6, 1}});
    assert_refuses(FUSELINE_ERROR_OVERLAP, ("dx: overlaps dy"), 2, {3, 6}, {0, 23, {1, 0}}, {1, 0, {6, 1}}, {0, 20, {6, 1}});
    /* part of an element */
    float x[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, copy[10];
    memcpy(copy, x, sizeof x);
    DLTensor from = tensor_of(x, FLOAT32, 1, DIMS(1), NULL), to = tensor_of((char *)x + 2, FLOAT32, 1, DIMS(1), NULL);
    assert_refused(fuseline_swish_forward(&from, 1, NULL, &to), FUSELINE_ERROR_OVERLAP, "y: overlaps x");
    assert_refused(fuseline_swish_forward(&to, 1, NULL, &from), FUSELINE_ERROR_OVERLAP, "y: overlaps x");
    from = tensor_of(x, FLOAT32, 2, DIMS(2, 2), DIMS(5, 1)); /* rows of 8 bytes, 12 bytes apart */
    for (int offset = 0; offset < 20; offset++) {
        to = from;
        to.byte_offset = (uint64_t)offset;
        if (offset != 0 && (offset < 8 || offset > 12))
            assert_refused(fuseline_swish_forward(&from, 1, NULL, &to), FUSELINE_ERROR_OVERLAP, "y: overlaps x");
    }
    assert_memory_equal(x, copy, sizeof x);
    for (int offset = 8; offset <= 12; offset++) {
        to.byte_offset = (uint64_t)offset;
        memcpy(x, copy, sizeof x);
        assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
        float second;
        memcpy(&second, (char *)x + offset + 20 + 4, sizeof second);
        assert_float_equal(second, swish_in_double(copy[6], 1), 1e-5);
    }
}

/* Operands that share a buffer, but no element: the halves of chunk(2, -1), one before the other. */
static void neighbours_in_one_buffer(void **state)
{
    (void)state;
    assert_works(2, {5, 7}, {1, 0, {7, 1}}, {0, 0, {14, 1}}, {0, 7, {14, 1}});
    assert_works(2, {5, 7}, {1, 0, {7, 1}}, {0, 7, {14, 1}}, {0, 0, {14, 1}});
    assert_works(2, {5, 7}, {0, 0, {21, 1}}, {0, 7, {21, 1}}, {0, 14, {21, 1}});
    assert_works(2, {5, 7}, {0, 0, {21, 1}}, {0, 14, {21, 1}}, {0, 7, {21, 1}});
    assert_works(2, {5, 7}, {0, 50, {14, 1}}, {1, 0, {14, 1}}, {0, 50 + 14 * 2 + 7, {14, 1}}); /* and rows further on */
    assert_works(2, {5, 7}, {0, 50, {14, 1}}, {1, 0, {14, 1}}, {0, 50 - 14 * 2 + 7, {14, 1}});
    assert_works(1, {6}, {1, 0, {1}}, {0, 0, {1}}, {0, 6, {1}});
    assert_works(1, {6}, {1, 0, {1}}, {0, 6, {1}}, {0, 0, {1}});
    assert_works(1, {6}, {0, 6, {0}}, {1, 0, {1}}, {0, 0, {1}}); /* the value stands just behind */
    assert_works(1, {6}, {0, 0, {0}}, {1, 0, {1}}, {0, 1, {1}});
    assert_works(2, {5, 7}, {1, 0, {1, 5}}, {0, 0, {1, 10}}, {0, 5, {1, 10}});
}

/* A large call, shared out to threads in the middle of rows. */
static void threads_start_in_the_middle_of_rows(void **state)
{
    (void)state;
    enum { ROWS = 301, COLUMNS = 999, STRIDE = 1003 };
    static float x[ROWS][STRIDE], y[ROWS][COLUMNS];
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < STRIDE; j++)
            x[i][j] = (float)((i * 31 + j) % 997) / 50 - 10;
    DLTensor from = tensor_of(x, FLOAT32, 2, DIMS(ROWS, COLUMNS), DIMS(STRIDE, 1)),
             to = tensor_of(y, FLOAT32, 2, DIMS(ROWS, COLUMNS), NULL);
    assert_ok(fuseline_swish_forward(&from, 1, NULL, &to));
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            assert_true(fabs(y[i][j] - swish_in_double(x[i][j], 1)) < 1e-5);
}

/* Small numbers in a fixed sequence, the same on every machine. */
static unsigned draw(unsigned below)
{
    static uint64_t seed = 42;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* Moves the operand so that its elements lie inside the buffer, somewhere at random; 0 if they do not fit. */
static int place_at_random(const struct problem *p, struct operand *operand)
{
    int64_t lowest = 0, highest = 0;
    for (int axis = 0; axis < p->ndim; axis++) {
        int64_t reach = (p->shape[axis] - 1) * operand->strides[axis];
        lowest += reach < 0 ? reach : 0;
        highest += reach > 0 ? reach : 0;
    }
    if (highest - lowest >= SIZE)
        return 0;
    int64_t room = SIZE - (highest - lowest);
    operand->start = draw((unsigned)(room < 40 ? room : 40)) - lowest;
    return 1;
}

static int has_conflict(const struct problem *p)
{
    static int owner[SIZE]; /* number + 1 of the output's element that stands there */
    const struct operand *inputs[] = {&p->dy, &p->x};
    memset(owner, 0, sizeof owner);
    for (int64_t i = 0; i < count_of(p); i++) {
        int *here = &owner[place_of(p, &p->dx, i)];
        if (*here != 0)
            return 1;
        *here = (int)i + 1;
    }
    for (int k = 0; k < 2; k++) {
        if (inputs[k]->buffer != p->dx.buffer)
            continue;
        int same = 0, others = 0;
        for (int64_t i = 0; i < count_of(p); i++) {
            int here = owner[place_of(p, inputs[k], i)];
            same += here == (int)i + 1;
            others += here != 0 && here != (int)i + 1;
        }
        if (others != 0 || (same != 0 && same != count_of(p)))
            return 1;
    }
    return 0;
}

/*
 * Random strides. Whatever they are: success means right numbers and nothing else touched, a conflict of the output with itself or
 * with an input is never a success, and dense operands of one dimension order in buffers of their own always are.
 */
static void random_layouts(void **state)
{
    (void)state;
    static const int64_t strides[] = {0, 0, 1, 1, 1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 48, -1, -4};
    int works = 0, layout = 0, overlap = 0;
    for (int round = 0; round < 20000; round++) {
        struct problem p = {.ndim = (int)draw(5)};
        struct operand *operands[] = {&p.dy, &p.x, &p.dx};
        int order[4] = {0, 1, 2, 3}, is_dense = draw(2) == 0, is_apart = draw(2) == 0, is_shared = draw(3) == 0;
        int64_t dense[AXES] = {0};
        for (int axis = 0; axis < p.ndim; axis++)
            p.shape[axis] = 1 + (int)draw(4);
        for (int k = p.ndim - 1; k > 0; k--) {
            int other = (int)draw((unsigned)k + 1), kept = order[k];
            order[k] = order[other];
            order[other] = kept;
        }
        dense_strides(p.shape, p.ndim, order, dense);
        int64_t pad = draw(2) ? 0 : draw(3);
        for (int k = 0; k < 3; k++) {
            operands[k]->buffer = is_apart ? k : (int)draw(2);
            for (int axis = 0; axis < p.ndim; axis++) {
                int is_odd = !is_dense && !is_shared && draw(3) == 0;
                operands[k]->strides[axis] = is_odd ? strides[draw(COUNT(strides))] : dense[axis];
                if (!is_dense && p.ndim >= 2 && dense[axis] > 1)
                    operands[k]->strides[axis] += pad * (dense[axis] / p.shape[order[p.ndim - 1]]);
                if (is_shared && k > 0 && !is_dense)
                    operands[k]->strides[axis] = operands[0]->strides[axis];
            }
            if (!place_at_random(&p, operands[k]))
                operands[k]->start = 0;
        }
        fuseline_status status = call(&p);
        if (status == FUSELINE_OK) {
            works++;
            assert_false(has_conflict(&p));
            assert_true(is_right(&p));
            continue;
        }
        assert_true(is_untouched());
        assert_true(status == FUSELINE_ERROR_LAYOUT || status == FUSELINE_ERROR_OVERLAP);
        if (status == FUSELINE_ERROR_OVERLAP)
            assert_false(is_apart);
        assert_false(is_dense && !has_conflict(&p));
        layout += status == FUSELINE_ERROR_LAYOUT;
        overlap += status == FUSELINE_ERROR_OVERLAP;
    }
    assert_true(works > 2000 && layout > 1000 && overlap > 500); /* the cases are no monoculture */
}

/* The dispatcher: which device runs a call, and what it is told. */
static void gpu_calls_are_passed_on(void **state)
{
    (void)state;
    static const struct {
        DLDeviceType type;
        enum fl_device_kind kind;
    } types[] = {{kDLCUDA, FL_CUDA}, {kDLCUDAManaged, FL_CUDA}, {kDLROCM, FL_ROCM}};
    for (int k = 0; k < COUNT(types); k++) {
        DLTensor dy = tensor_of((void *)0x1000, FLOAT32, 2, DIMS(5, 7), DIMS(0, 0)),
                 x = tensor_of((void *)0x2000, FLOAT32, 2, DIMS(5, 7), DIMS(14, 1)),
                 dx = tensor_of((void *)0x3000, FLOAT32, 2, DIMS(5, 7), NULL);
        dy.device = x.device = dx.device = (DLDevice){types[k].type, 3};
        x.byte_offset = 8;
        int launches = test_launch.count;
        assert_ok(fuseline_swish_backward(&dy, &x, 1, (void *)0xabc, &dx));
        assert_int_equal(test_launch.count, launches + 1);
        assert_int_equal(test_launch.device_kind, types[k].kind);
        assert_int_equal(test_launch.device_id, 3);
        assert_ptr_equal(test_launch.stream, (void *)0xabc);
        assert_string_equal(test_launch.op->kernel, "swish_backward");
        assert_int_equal(test_launch.types.operand, FL_FLOAT32);
        assert_int_equal(test_launch.arguments.rows, 5);
        assert_int_equal(test_launch.arguments.columns, 7);
        assert_ptr_equal(test_launch.arguments.data[1], (void *)0x2008);
        assert_int_equal(test_launch.arguments.row_stride[1], 14);
        assert_int_equal(test_launch.arguments.column_stride[0], 0);
        size_t single_size = test_launch.parameters_size;
        dy.dtype = x.dtype = dx.dtype = FLOAT64;
        assert_ok(fuseline_swish_backward(&dy, &x, 1, NULL, &dx));
        assert_int_equal(test_launch.types.operand, FL_FLOAT64);
        assert_true(test_launch.parameters_size > single_size);
        dx.data = (void *)0x3004; /* GPUs want whole elements */
        assert_refused(fuseline_swish_backward(&dy, &x, 1, NULL, &dx), FUSELINE_ERROR_ARGUMENT, "dx: ", "0x3004",
                       "element size 8");
        dy.shape = x.shape = dx.shape = DIMS(5, 0); /* nothing to launch */
        launches = test_launch.count;
        assert_ok(fuseline_swish_backward(&dy, &x, 1, NULL, &dx));
        assert_int_equal(test_launch.count, launches);
    }
}

/* Element counts beyond 2^32 stay whole on their way to the kernel. */
static void huge_counts(void **state)
{
    (void)state;
    const int64_t counts[] = {(int64_t)1 << 31, ((int64_t)1 << 32) + 7, (int64_t)1 << 40};
    for (int k = 0; k < COUNT(counts); k++) {
        DLTensor x = tensor_of((void *)0x10000, BFLOAT16, 1, DIMS(counts[k]), NULL), y = x;
        y.data = (void *)((uintptr_t)1 << 46);
        x.device = y.device = (DLDevice){kDLROCM, 0};
        assert_ok(fuseline_swish_forward(&x, 1, NULL, &y));
        assert_int_equal(test_launch.arguments.columns, counts[k]);
        assert_int_equal(test_launch.arguments.rows, 1);
        x.ndim = y.ndim = 2;
        x.shape = y.shape = DIMS(counts[k], 3);
        x.strides = DIMS(6, 1);
        assert_ok(fuseline_swish_forward(&x, 1, NULL, &y));
        assert_int_equal(test_launch.arguments.rows, counts[k]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_in_every_order),
        cmocka_unit_test(dense_is_one_row),
        cmocka_unit_test(rows_with_larger_stride),
        cmocka_unit_test(collapses_to_rows),
        cmocka_unit_test(broadcast_inputs),
        cmocka_unit_test(column_slice),
        cmocka_unit_test(strides_that_no_kernel_walks),
        cmocka_unit_test(outputs_that_overlap_themselves),
        cmocka_unit_test(inputs_that_overlap),
        cmocka_unit_test(output_is_an_input),
        cmocka_unit_test(partial_overlap),
        cmocka_unit_test(neighbours_in_one_buffer),
        cmocka_unit_test(threads_start_in_the_middle_of_rows),
        cmocka_unit_test(random_layouts),
        cmocka_unit_test(gpu_calls_are_passed_on),
        cmocka_unit_test(huge_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
