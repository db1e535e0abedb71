/*
 * The source of the GPU kernels, run thread by thread on the CPU: kernels/device.h says how. Built by kernels.sh once per dtype, and
 * compared with the formulas in long double.
 */
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>

#include "../kernels/swish.hip"

extern "C" {
#include "gpu/geometry.h"
#include "rate.h"
}

thread_local unsigned fl_host_block, fl_host_blocks, fl_host_thread;

#if FL_PRECISION == 64
typedef swish_parameters_64 parameters_type;
#else
typedef swish_parameters_32 parameters_type;
#endif

/* Significant bits and the least normal exponent of the dtype. */
#if FL_NUMBER(FL_OPERAND) == FL_NUMBER_float16
static const int bits = 11, least = -14;
static const double largest = 65504, forward_bound = 0.51;
#elif FL_NUMBER(FL_OPERAND) == FL_NUMBER_bfloat16
static const int bits = 8, least = -126;
static const double largest = 3.3895e38, forward_bound = 0.51;
#elif FL_NUMBER(FL_OPERAND) == FL_NUMBER_float32
static const int bits = 24, least = -126;
static const double largest = std::numeric_limits<float>::max(), forward_bound = 2;
#else
static const int bits = 53, least = -1022;
static const double largest = std::numeric_limits<double>::max(), forward_bound = 2;
#endif

static int failures;

static const fl_operator operators[] = {
    {FL_INDEX_swish_forward, "swish_forward", "swish", fl_operator::FL_ELEMENTWISE_KIND, 1, 1, "xy"},
    {FL_INDEX_swish_backward, "swish_backward", "swish", fl_operator::FL_ELEMENTWISE_KIND, 2, 1, "yxx"},
};
static const enum fl_dtype dtype = (enum fl_dtype)(FL_NUMBER(FL_OPERAND) - 1);
const int fl_dtype_size[FL_DTYPES] = {2, 2, 4, 8};

static void fail(const char *what, int element, double got, double wanted)
{
    if (failures++ < 10)
        std::printf("%s, element %d: %.17g, wanted %.17g\n", what, element, got, wanted);
}

static parameters_type parameters_of(double beta)
{
    struct {
        fl_rate_32 in_float;
        fl_rate_64 in_double;
    } rate;
    parameters_type parameters;
    fl_rate_set(-beta, &rate.in_float, &rate.in_double);
#if FL_PRECISION == 64
    parameters.rate = rate.in_double;
#else
    parameters.rate = rate.in_float;
#endif
    parameters.beta = (fl_real)beta;
    return parameters;
}

static fl_operand in_memory(fl_real x)
{
    fl_operand result;
    fl_to_memory(x, result);
    return result;
}

struct alignas(FL_VECTOR_BYTES) aligned_bytes {
    unsigned char byte[FL_VECTOR_BYTES];
};

/* An operand: where its elements lie in a buffer that is aligned to 16 bytes. */
struct operand {
    std::vector<aligned_bytes> memory;
    long long offset, row_stride;
    int column_stride;

    operand(long long elements, long long offset_, long long row_stride_, int column_stride_)
        : memory(elements / FL_LENGTH + 4), offset(offset_), row_stride(row_stride_), column_stride(column_stride_)
    {
    }
    fl_operand *data()
    {
        return reinterpret_cast<fl_operand *>(memory.data());
    }
    long long place(long long row, long long column) const
    {
        return offset + row * row_stride + column * column_stride;
    }
    double at(long long row, long long column)
    {
        return fl_from_memory(data()[place(row, column)]);
    }
};

/* Runs a kernel over rows x columns as a launch would; with blocks > 0 on a smaller grid than it would get. Returns the mode. */
static fl_mode run(int inputs, operand *const *operands, long long rows, long long columns, double beta, unsigned blocks)
{
    fl_arguments arguments = {};
    for (int k = 0; k <= inputs; k++) {
        arguments.data[k] = operands[k]->data() + operands[k]->offset;
        arguments.row_stride[k] = operands[k]->row_stride;
        arguments.column_stride[k] = operands[k]->column_stride;
    }
    arguments.rows = rows;
    arguments.columns = columns;
    struct fl_geometry geometry = fl_geometry(&arguments, &operators[inputs - 1], {dtype, dtype});
    parameters_type parameters = parameters_of(beta);
    fl_host_blocks = blocks != 0 ? blocks : geometry.blocks;
    for (fl_host_block = 0; fl_host_block < fl_host_blocks; fl_host_block++)
        for (fl_host_thread = 0; fl_host_thread < FL_BLOCK_THREADS; fl_host_thread++) {
#define CALL(kernel, mode) FL_KERNEL_NAME(kernel, FL_DTYPES, mode)(arguments, geometry.division, parameters)
            if (inputs == 1)
                geometry.mode == FL_MODE_VECTOR ? CALL(swish_forward, vector)
                : geometry.mode == FL_MODE_ROWS ? CALL(swish_forward, rows)
                                                : CALL(swish_forward, element);
            else
                geometry.mode == FL_MODE_VECTOR ? CALL(swish_backward, vector)
                : geometry.mode == FL_MODE_ROWS ? CALL(swish_backward, rows)
                                                : CALL(swish_backward, element);
        }
    return geometry.mode;
}

static long double forward_of(long double x, long double beta)
{
    return x / (1 + std::exp(-beta * x));
}

static long double backward_of(long double dy, long double x, long double beta)
{
    long double z = beta * x;
    return dy * (1 / (1 + std::exp(-z))) * (1 + z / (1 + std::exp(z)));
}

/* In units of the last place of the value wanted. */
static double error_of(long double got, long double wanted)
{
    int exponent = wanted != 0 ? std::ilogb(wanted) : least;
    return (double)(std::fabs(got - wanted) / std::ldexp(1.0L, (exponent < least ? least : exponent) - (bits - 1)));
}

static double random_number()
{
    return std::rand() / (double)RAND_MAX * 12 - 6;
}

/* Both kernels over one layout; what lies between the outputs' elements must stay 0. */
static void check_layout(const char *what, fl_mode mode, long long rows, long long columns, const long long (&offset)[3],
                         const long long (&row_stride)[3], const int (&column_stride)[2], unsigned blocks)
{
    long long size = rows * (row_stride[2] > columns ? row_stride[2] : columns) + 64;
    operand dy(size, offset[0], row_stride[0], column_stride[0]), x(size, offset[1], row_stride[1], column_stride[1]),
        y(size, offset[2], row_stride[2], 1), dx(size, offset[2], row_stride[2], 1);
    operand *forward[] = {&x, &y}, *backward[] = {&dy, &x, &dx};
    for (long long k = 0; k < size; k++) {
        dy.data()[k] = in_memory((fl_real)random_number());
        x.data()[k] = in_memory((fl_real)random_number());
    }
    run(1, forward, rows, columns, 1, blocks);
    if (run(2, backward, rows, columns, 1, blocks) != mode)
        fail("another mode than was meant", mode, 0, 0);
    std::vector<char> written(size);
    for (long long row = 0; row < rows; row++)
        for (long long column = 0; column < columns; column++) {
            double in = x.at(row, column), g = dy.at(row, column);
            written[y.place(row, column)] = 1;
            if (error_of(y.at(row, column), forward_of(in, 1)) > forward_bound)
                fail(what, (int)column, y.at(row, column), (double)forward_of(in, 1));
            if (std::fabs(dx.at(row, column) - backward_of(g, in, 1)) > std::ldexp(8.0, -bits) * (1 + std::fabs(g)))
                fail(what, (int)column, dx.at(row, column), (double)backward_of(g, in, 1));
        }
    for (long long k = 0; k < size; k++)
        if (!written[k] && (fl_from_memory(y.data()[k]) != 0 || fl_from_memory(dx.data()[k]) != 0))
            fail("written outside", (int)k, fl_from_memory(y.data()[k]), 0);
}

static void check_layouts()
{
    const long long n = FL_LENGTH;
    for (long long columns = 1; columns <= 4 * 17 + 1; columns++) {
        check_layout("dense", FL_MODE_VECTOR, 1, columns, {0, n, n}, {0, 0, 0}, {1, 1}, 0);
        check_layout("unaligned", FL_MODE_ELEMENT, 1, columns, {0, 1, 0}, {0, 0, 0}, {1, 1}, 0);
        check_layout("one gradient", FL_MODE_VECTOR, 1, columns, {3, 0, n}, {0, 0, 0}, {0, 1}, 0);
    }
    check_layout("beyond the grid", FL_MODE_ELEMENT, 1, 5 * FL_BLOCK_THREADS + 3, {0, 1, 0}, {0, 0, 0}, {1, 1}, 2);
    check_layout("beyond the grid", FL_MODE_ROWS, 99, 11 * n, {0, 0, 0}, {12 * n, 12 * n, 12 * n}, {1, 1}, 1);
    check_layout("rows", FL_MODE_ROWS, 7, 3 * n, {n, 0, 0}, {5 * n, 4 * n, 3 * n}, {1, 1}, 0);
    check_layout("rows of one vector", FL_MODE_ROWS, 300, n, {0, 0, 0}, {2 * n, 2 * n, 2 * n}, {1, 1}, 0);
    check_layout("odd rows", FL_MODE_ELEMENT, 9, 5, {0, 0, 0}, {7, 5, 6}, {1, 1}, 0);
    check_layout("row repeated", FL_MODE_ROWS, 7, 3 * n, {0, 0, 0}, {0, 4 * n, 4 * n}, {1, 1}, 0);
    check_layout("value per row", FL_MODE_ROWS, 7, 3 * n, {1, 0, 0}, {1, 4 * n, 4 * n}, {0, 1}, 0);
    check_layout("value per odd row", FL_MODE_ELEMENT, 7, 5, {1, 0, 0}, {1, 6, 6}, {0, 1}, 0);
}

/* Over the range where the result is a normal number; 16-bit types over all their numbers. */
static void check_accuracy(double beta)
{
    const int size = sizeof(fl_operand) == 2 ? 65536 : 200001;
    operand x(size, 0, 0, 1), y(size, 0, 0, 1);
    operand *operands[] = {&x, &y};
    double worst = 0, tail = bits == 53 ? 714 : 92;
    for (int k = 0; k < size; k++) {
        if (sizeof(fl_operand) == 2) {
            unsigned short pattern = (unsigned short)k;
            std::memcpy(&x.data()[k], &pattern, sizeof pattern);
        } else {
            x.data()[k] = in_memory((fl_real)((2.0 * k / (size - 1) - 1) * tail / std::fabs(beta)));
        }
    }
    run(1, operands, 1, size, beta, 0);
    for (int k = 0; k < size; k++) {
        double in = x.at(0, k), got = y.at(0, k);
        long double wanted = forward_of(in, beta);
        if (in != in && got == got)
            fail("nan", k, got, in);
        if (!std::isfinite(in))
            continue;
        if (!std::isfinite(got))
            fail("from a finite number", k, got, (double)wanted);
        if (std::fabs(wanted) < std::ldexp(1.0L, least) || std::fabs(wanted) > largest)
            continue;
        double error = error_of(got, wanted);
        worst = error > worst ? error : worst;
        if (error > forward_bound)
            fail("accuracy", k, got, (double)wanted);
    }
    std::printf("beta %g: largest error %.4f ulp\n", beta, worst);
}

static void check_specials()
{
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    const double in[] = {inf, -inf, nan, 0, -0.0}, wanted[] = {inf, nan, nan, 0, -0.0}, derivative[] = {1, -0.0, nan, 0.5, 0.5};
    operand dy(64, 0, 0, 1), x(64, 0, 0, 1), y(64, 0, 0, 1), dx(64, 0, 0, 1);
    operand *forward[] = {&x, &y}, *backward[] = {&dy, &x, &dx};
    for (int k = 0; k < 50; k++) {
        x.data()[k] = in_memory((fl_real)in[k % 5]);
        dy.data()[k] = in_memory((fl_real)1);
    }
    run(1, forward, 1, 50, 1, 0);
    run(2, backward, 1, 50, 1, 0);
    for (int k = 0; k < 50; k++) {
        double a = wanted[k % 5], b = y.at(0, k), c = derivative[k % 5], d = dx.at(0, k);
        if (!((a != a && b != b) || (a == b && std::signbit(a) == std::signbit(b))))
            fail("special", k, b, a);
        if (!((c != c && d != d) || c == d))
            fail("special, backward", k, d, c);
    }
}

/* L29: rounded to nearest, ties to even; past the largest number to inf. */
static void check_rounding()
{
#if FL_PRECISION == 16
    const int kept = bits - 1;
    const double cases[][2] = {
        {1 + std::ldexp(1, -kept - 1), 1},                           /* halfway, to the even number below */
        {1 + std::ldexp(3, -kept - 1), 1 + std::ldexp(2, -kept)},    /* halfway, to the even one above */
        {1 + std::ldexp(1.01, -kept - 1), 1 + std::ldexp(1, -kept)}, /* just above */
        {-1 - std::ldexp(3, -kept - 1), -1 - std::ldexp(2, -kept)},
        {std::ldexp(1, least - kept - 1), 0}, /* half the least number */
        {std::ldexp(3, least - kept - 1), std::ldexp(2, least - kept)},
        {bits == 8 ? 3.39e38 : 65519.0, bits == 8 ? std::ldexp(255, 120) : 65504.0},
        {bits == 8 ? 3.3962e38 : 65520.0, std::numeric_limits<double>::infinity()},
    };
    for (const double(&one)[2] : cases)
        if (fl_from_memory(in_memory((float)one[0])) != one[1])
            fail("rounding", -1, fl_from_memory(in_memory((float)one[0])), one[1]);
#endif
}

int main()
{
    check_rounding();
    check_layouts();
    check_accuracy(1);
    check_accuracy(1.702);
    check_accuracy(-1);
    check_specials();
    return failures != 0;
}
