/*
 * Kernels on the host, for tests: a stand-in for a GPU's runtime (tests/standin) runs the very same source there, thread by thread.
 * Included by device.h where no device is compiled for, and by the stand-in, in C.
 */
#ifndef FL_KERNELS_HOST_H
#define FL_KERNELS_HOST_H

#include "../lib/gpu/tuning.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where in the grid the calling thread is, and on what device: set by whoever runs a kernel. */
struct fl_host_place {
    unsigned block, blocks;
    unsigned thread, threads; /* of the block */
    unsigned lanes;           /* of a wave */
    const struct fl_tuning *tuning;
};
extern __thread struct fl_host_place fl_host_place;

/* As on a device; supplied by whoever runs a kernel. */
void fl_host_barrier(void);
unsigned fl_host_from_lane(unsigned value, unsigned lane);

/* A kernel, as it is found by its name: the symbol "fl_host_<kernel>". */
#define FL_HOST_ARGUMENTS_MOST 8
struct fl_host_kernel {
    void (*call)(const void *const *arguments); /* pointers to them, of any alignment */
    unsigned count, sizes[FL_HOST_ARGUMENTS_MOST];
};

#ifdef __cplusplus
}

/* Calls a function with arguments that are copied from memory, one after the other. */
template <class... Left> struct fl_host_arguments {
    template <class Function, class... Taken> static void call(Function *function, const void *const *, const Taken &...taken)
    {
        function(taken...);
    }
};
template <class First, class... Rest> struct fl_host_arguments<First, Rest...> {
    template <class Function, class... Taken> static void call(Function *function, const void *const *from, const Taken &...taken)
    {
        First argument;
        __builtin_memcpy(&argument, *from, sizeof argument);
        fl_host_arguments<Rest...>::call(function, from + 1, taken..., argument);
    }
};

template <class... Arguments> void fl_host_call(void (*kernel)(Arguments...), const void *const *arguments)
{
    fl_host_arguments<Arguments...>::call(kernel, arguments);
}
template <class... Arguments> constexpr fl_host_kernel fl_host_describe(void (*)(Arguments...), void (*call)(const void *const *))
{
    return {call, sizeof...(Arguments), {sizeof(Arguments)...}};
}

/* Lets a kernel be found by its name. */
#define FL_PASTE_HOST_KERNEL(kernel)                                                                                             \
    static void kernel##_on_host(const void *const *arguments)                                                                   \
    {                                                                                                                            \
        fl_host_call(kernel, arguments);                                                                                         \
    }                                                                                                                            \
    extern "C" {                                                                                                                 \
    extern const fl_host_kernel fl_host_##kernel;                                                                                \
    const fl_host_kernel fl_host_##kernel = fl_host_describe(kernel, kernel##_on_host);                                          \
    }
#define FL_HOST_KERNEL(kernel) FL_PASTE_HOST_KERNEL(kernel)
#endif

#endif
