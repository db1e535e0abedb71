/*
 * The source of the GPU kernel of column_sum on the CPU, block by block, each with as many threads as a GPU's block has. Built by
 * kernels.sh once per dtype, and compared with sums in long double.
 */
#include <cmath>
#include <cstdio>
#include <limits>
#include <pthread.h>
#include <thread>
#include <vector>

#include "../kernels/column_sum.hip"

thread_local unsigned fl_host_block, fl_host_blocks, fl_host_thread;

static pthread_barrier_t threads_of_the_block;

void fl_host_barrier()
{
    pthread_barrier_wait(&threads_of_the_block);
}

#if FL_NUMBER(FL_OPERAND) == FL_NUMBER_float16
static const int bits = 11, least = -14, most = 15;
#elif FL_NUMBER(FL_OPERAND) == FL_NUMBER_bfloat16
static const int bits = 8, least = -126, most = 127;
#elif FL_NUMBER(FL_OPERAND) == FL_NUMBER_float32
static const int bits = 24, least = -126, most = 127;
#else
static const int bits = 53, least = -1022, most = 1023;
#endif

static int failures;

static fl_operand in_memory(double x)
{
    fl_operand result;
    fl_to_memory((fl_real)x, result);
    return result;
}

/* x: rows x columns, of the dtype's own numbers. */
static std::vector<double> column_sum(const std::vector<double> &x, long long rows, long long columns)
{
    std::vector<fl_operand> data(x.size() + 1), sums(columns);
    for (size_t i = 0; i < x.size(); i++)
        data[i] = in_memory(x[i]);
    fl_arguments arguments = {};
    arguments.data[0] = data.data();
    arguments.data[1] = sums.data();
    arguments.row_stride[0] = columns;
    arguments.rows = rows;
    arguments.columns = columns;
    std::vector<std::thread> threads;
    unsigned blocks = (unsigned)((columns + FL_REDUCTION_COLUMNS - 1) / FL_REDUCTION_COLUMNS);
    for (unsigned thread = 0; thread < FL_BLOCK_THREADS; thread++)
        threads.emplace_back([=] {
            fl_host_thread = thread;
            fl_host_blocks = blocks;
            for (fl_host_block = 0; fl_host_block < blocks; fl_host_block++)
                FL_KERNEL_NAME(column_sum, FL_DTYPES, element)(arguments, {}, {});
        });
    for (std::thread &thread : threads)
        thread.join();
    std::vector<double> result;
    for (fl_operand sum : sums)
        result.push_back(fl_from_memory(sum));
    return result;
}

static void check(const char *what, const std::vector<double> &x, long long rows, const std::vector<double> &right)
{
    std::vector<double> got = column_sum(x, rows, (long long)right.size());
    for (size_t i = 0; i < right.size(); i++)
        if (!(got[i] == right[i] || (got[i] != got[i] && right[i] != right[i])) && failures++ < 10)
            std::printf("%s, column %d: %.17g, wanted %.17g\n", what, (int)i, got[i], right[i]);
}

/* L29: sums near a tie between two numbers of the dtype, over its whole range; the smallest part decides, and is lost in one addition. */
static void check_rounding()
{
    for (int exponent = least + bits; exponent <= most; exponent++) {
        double last_place = std::ldexp(1, exponent - bits + 1), smaller = std::ldexp(1, least - bits + 1);
        if (last_place * 0x1p-20 > smaller)
            smaller = last_place * 0x1p-20;
        std::vector<double> rows[3], right;
        for (int sign = -1; sign <= 1; sign += 2)
            for (int odd = 0; odd < 2; odd++)
                for (int side = -1; side <= 1; side++) {
                    double below = std::ldexp(1, exponent) + odd * last_place;
                    rows[0].push_back(sign * below);
                    rows[1].push_back(sign * last_place / 2);
                    rows[2].push_back(sign * side * smaller);
                    right.push_back(sign * (side > 0 || (side == 0 && odd) ? below + last_place : below));
                }
        std::vector<double> x = rows[0];
        x.insert(x.end(), rows[1].begin(), rows[1].end());
        x.insert(x.end(), rows[2].begin(), rows[2].end());
        if (exponent % 16 == 0 || bits == 11 || exponent > most - 3)
            check("near a tie", x, 3, right);
    }
}

/* What is lost on the way comes back: large numbers that cancel leave the small ones. */
static void check_cancellation()
{
    double large = std::ldexp(1, bits == 11 ? 14 : bits);
    for (long long rows : {3, 8, 9, 100}) {
        std::vector<double> x, right(40);
        for (long long row = 0; row < rows; row++)
            for (int column = 0; column < 40; column++) {
                long long from = (row + column) % rows;
                double small = bits == 11 ? 0x1p-20 : 1;
                x.push_back(from == 0 ? large : from == rows - 1 ? -large : small);
                right[column] += from == 0 || from == rows - 1 ? 0 : small;
            }
        check("numbers that cancel", x, rows, right);
    }
}

static void check_specials()
{
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    check("special", {1, inf, inf, nan, -inf, 1, 2, 1, -inf, 1, 1, -inf, -3, 1, 1, 1, 1, 1}, 3, {0, inf, nan, nan, -inf, -inf});
    check("no rows", {}, 0, {0, 0, 0});
}

int main()
{
    pthread_barrier_init(&threads_of_the_block, nullptr, FL_BLOCK_THREADS);
    check_rounding();
    check_cancellation();
    check_specials();
    return failures != 0;
}
