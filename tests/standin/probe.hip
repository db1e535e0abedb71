/* Kernels by which the stand-in itself is tested: each does one thing that kernels of the library may. */
#define FL_PRECISION 32
#include "../../kernels/device.h"

/* Each thread notes where it is, and in a grid of how many threads. */
FL_KERNEL void fl_probe_places(unsigned long long *places, unsigned *threads)
{
    long long index = fl_thread_index();
    places[index] = (unsigned long long)fl_block_index() << 32 | (unsigned)fl_block_thread();
    threads[index] = (unsigned)fl_thread_count() + fl_block_count();
}
FL_HOST_KERNEL(fl_probe_places)

/* Each block reverses its values again and again, through memory that its threads share. */
FL_KERNEL void fl_probe_barriers(unsigned *values, int times)
{
    FL_SHARED unsigned shared[FL_BLOCK_THREADS];
    int thread = fl_block_thread();
    unsigned *mine = values + fl_thread_index();
    for (int k = 0; k < times; k++) {
        shared[thread] = *mine + 1;
        fl_barrier();
        *mine = shared[FL_BLOCK_THREADS - 1 - thread];
        fl_barrier();
    }
}
FL_HOST_KERNEL(fl_probe_barriers)

/* Each wave adds up its values, and each thread notes the sum, the count of lanes, and what its neighbour passed. */
FL_KERNEL void fl_probe_lanes(unsigned *sums, unsigned *lanes, unsigned *neighbours)
{
    int lane = fl_block_thread() % fl_lanes();
    long long index = fl_thread_index();
    unsigned sum = (unsigned)index;
    for (int step = 1; step < fl_lanes(); step *= 2)
        sum += fl_from_lane(sum, lane ^ step);
    sums[index] = sum;
    lanes[index] = (unsigned)fl_lanes();
    neighbours[index] = fl_from_lane((unsigned)index, lane + 1);
}
FL_HOST_KERNEL(fl_probe_lanes)

/* Arguments of every size and alignment. */
struct fl_probe_pair {
    float a;
    double b;
};
FL_KERNEL void fl_probe_arguments(char a, double b, short c, fl_probe_pair d, unsigned char e, double *out)
{
    if (fl_thread_index() == 0)
        *out = a + b * 10 + c * 100 + d.a * 1000 + d.b * 10000 + e * 100000.0;
}
FL_HOST_KERNEL(fl_probe_arguments)

/* A barrier that half of a wave does not reach. */
FL_KERNEL void fl_probe_torn_barrier(unsigned *out)
{
    if (fl_block_thread() % 2 == 0)
        fl_barrier();
    *out = 1;
}
FL_HOST_KERNEL(fl_probe_torn_barrier)
