/*
 * One formula, several precisions, two languages.
 *
 * A formula header (swish.h beside this file, say) is read by the C compiler for the CPU and by clang for the GPU, and it
 * has no include guard: the reader defines FL_PRECISION before each inclusion and gets the formula's functions with
 * the matching suffix. The precisions are
 *
 *     64   double, for float64 tensors
 *     32   float, for float32 tensors, and where a 16-bit type and float32 are mixed
 *     16   float with approximate exp2 and reciprocal, for 16-bit tensors: their error, 2^-18.5 at the most, is far below half a
 *          unit of a 16-bit result
 *
 * Inside a formula fl_real is the type computed in, fl_name(f) is f with the precision's suffix, and fl_struct(s) the structure s that
 * the host prepared for it (that of float for 16).
 */
#ifndef FL_PRECISION
#error "define FL_PRECISION as 16, 32 or 64 before including a formula"
#endif

#undef fl_real
#undef fl_name
#undef fl_struct

#if FL_PRECISION == 64
#define fl_real         double
#define fl_name(name)   name##_64
#define fl_struct(name) struct name##_64
#elif FL_PRECISION == 32
#define fl_real         float
#define fl_name(name)   name##_32
#define fl_struct(name) struct name##_32
#elif FL_PRECISION == 16
#define fl_real         float
#define fl_name(name)   name##_16
#define fl_struct(name) struct name##_32
#else
#error "FL_PRECISION is 16, 32 or 64"
#endif

#ifndef FL_PRECISION_ONCE
#define FL_PRECISION_ONCE

#define fl_parameters(family) fl_struct(family##_parameters)

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "fuseline keeps inf and nan: build without -ffast-math and -ffinite-math-only"
#endif

/* A formula may take another way in a GPU's kernels: also where those are compiled for the host, which kernels/device.h says. */
#ifndef FL_KERNEL_CODE
#define FL_KERNEL_CODE 0
#endif

#if defined(__HIP__) || defined(__CUDA__)
#define FL_DEVICE_CODE 1
#define FL_INLINE      static inline __attribute__((always_inline, device))
#define FL_METHOD      inline __attribute__((always_inline, device)) /* of a C++ class */
#define FL_CONSTANT    static constexpr
#else
#define FL_DEVICE_CODE 0
#define FL_INLINE      static inline __attribute__((always_inline))
#define FL_METHOD      inline __attribute__((always_inline))
#define FL_CONSTANT    static const
#endif

#endif
