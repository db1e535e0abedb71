/*
 * All that kernels ask of a device, for three compilers: clang for AMD (-x hip), clang for NVIDIA (-x cuda), and a plain
 * host C++ compiler, with which tests run the very same kernel source thread by thread on the CPU: see host.h.
 *
 * No vendor header and no device library: compiler builtins and single instructions only.
 */
#ifndef FL_DEVICE_H
#define FL_DEVICE_H

#define FL_KERNEL_CODE 1

#include "../lib/formulas/precision.h"
#include "../lib/gpu/tuning.h"
#include "../lib/gpu/walk.h"

/*
 * FL_KERNEL begins a kernel's definition, and FL_HOST_KERNEL(its name) follows it; FL_GLOBAL marks a pointer to the memory that
 * operands lie in. The compiler has to know the number of threads in a block. For AMD it takes no notice of launch_bounds, which AMD's
 * headers replace too, and would allow for 1024.
 */
#if FL_DEVICE_CODE
#if defined(__HIP__)
#define FL_BLOCK_SIZE amdgpu_flat_work_group_size(FL_BLOCK_THREADS, FL_BLOCK_THREADS)
#else
#define FL_BLOCK_SIZE launch_bounds(FL_BLOCK_THREADS)
#endif
#define FL_KERNEL extern "C" __attribute__((global, FL_BLOCK_SIZE))
#define FL_GLOBAL __attribute__((address_space(1)))
#define FL_HOST_KERNEL(kernel)
#else
#define FL_KERNEL extern "C"
#define FL_GLOBAL
#include "host.h"
#endif

/*
 * The row of lib/gpu/tuning.def, a constant: that of the target, whose macro clang defines as 1. On the host, where the same code plays all
 * devices, that of the one which is played.
 */
#if FL_DEVICE_CODE
static constexpr fl_tuning fl_tunings[] = {
#define FL_TUNING FL_TUNING_ROW
#include "../lib/gpu/tuning.def"
};
#define FL_TEXT(text)        #text
#define FL_IS_DEFINED(macro) (sizeof(FL_TEXT(macro)) == sizeof "1")
static constexpr int fl_family =
#if defined(__CUDA__)
    FL_FAMILY_nvidia;
#else
#define FL_TUNED(architecture, family) FL_IS_DEFINED(__##architecture##__) ? FL_FAMILY_##family:
#include "../lib/gpu/tuning.def"
    FL_FAMILY_UNLISTED;
#endif
FL_INLINE constexpr fl_tuning fl_tuned()
{
    return fl_tunings[fl_family];
}
FL_INLINE constexpr bool fl_loads_stream()
{
    return fl_tuned().loads == FL_LOADS_STREAMING;
}
#else
FL_INLINE const fl_tuning &fl_tuned()
{
    return *fl_host_place.tuning;
}
FL_INLINE constexpr bool fl_loads_stream() /* which makes no difference to results */
{
    return false;
}
#endif

/* The calling thread's index in the grid, and the number of threads in the grid. */
#if defined(__HIP__)
FL_INLINE long long fl_thread_index()
{
    return (long long)__builtin_amdgcn_workgroup_id_x() * FL_BLOCK_THREADS + __builtin_amdgcn_workitem_id_x();
}
FL_INLINE long long fl_thread_count()
{
    return __builtin_amdgcn_grid_size_x();
}
#elif defined(__CUDA__)
FL_INLINE long long fl_thread_index()
{
    return (long long)__nvvm_read_ptx_sreg_ctaid_x() * FL_BLOCK_THREADS + __nvvm_read_ptx_sreg_tid_x();
}
FL_INLINE long long fl_thread_count()
{
    return (long long)__nvvm_read_ptx_sreg_nctaid_x() * FL_BLOCK_THREADS;
}
#else
FL_INLINE long long fl_thread_index()
{
    return (long long)fl_host_place.block * FL_BLOCK_THREADS + fl_host_place.thread;
}
FL_INLINE long long fl_thread_count()
{
    return (long long)fl_host_place.blocks * fl_host_place.threads;
}
#endif

/* The calling thread within its block, its block, and the number of blocks. */
FL_INLINE int fl_block_thread()
{
#if defined(__HIP__)
    return (int)__builtin_amdgcn_workitem_id_x();
#elif defined(__CUDA__)
    return (int)__nvvm_read_ptx_sreg_tid_x();
#else
    return (int)fl_host_place.thread;
#endif
}
FL_INLINE unsigned fl_block_index()
{
#if defined(__HIP__)
    return __builtin_amdgcn_workgroup_id_x();
#elif defined(__CUDA__)
    return __nvvm_read_ptx_sreg_ctaid_x();
#else
    return fl_host_place.block;
#endif
}
FL_INLINE unsigned fl_block_count()
{
    return (unsigned)(fl_thread_count() / FL_BLOCK_THREADS);
}

/* FL_SHARED marks a variable that a block's threads share; fl_barrier lets each see what all wrote to it before. */
#if FL_DEVICE_CODE
#define FL_SHARED static __attribute__((shared))
#else
#define FL_SHARED static thread_local /* one thread of the host runs all threads of a block */
#endif
FL_INLINE void fl_barrier()
{
#if defined(__HIP__)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#elif defined(__CUDA__)
    __syncthreads();
#else
    fl_host_barrier();
#endif
}

/*
 * The lanes of a wave run together. fl_from_lane gives what another lane passes, all lanes of the wave taking part; the lane's
 * number is taken modulo their count, which is no constant: 32 or 64 with AMD, 32 with NVIDIA.
 */
FL_INLINE int fl_lanes()
{
#if defined(__HIP__) && __has_builtin(__builtin_amdgcn_wavefrontsize)
    return __builtin_amdgcn_wavefrontsize();
#elif defined(__HIP__) /* compilers before LLVM 16 know it as a constant alone */
    return __AMDGCN_WAVEFRONT_SIZE;
#elif defined(__CUDA__)
    return 32;
#else
    return (int)fl_host_place.lanes;
#endif
}
FL_INLINE unsigned fl_from_lane(unsigned value, int lane)
{
#if defined(__HIP__)
    return (unsigned)__builtin_amdgcn_ds_bpermute(lane * 4, (int)value);
#elif defined(__CUDA__)
    unsigned result;
    __asm__ volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(result) : "r"(value), "r"(lane));
    return result;
#else
    return fl_host_from_lane(value, (unsigned)lane);
#endif
}

/*
 * 2^t and 1 / b by the hardware's approximations: about one unit in the last place. Where 2^t is below the normal range the
 * result is it or 0. b is a normal number whose reciprocal is one too. ("ftz" concerns nothing but subnormal numbers.)
 */
#if defined(__HIP__)
FL_INLINE float fl_approximate_exp2(float t)
{
#if __has_builtin(__builtin_amdgcn_exp2f)
    return __builtin_amdgcn_exp2f(t);
#else
    return __builtin_exp2f(t);
#endif
}
FL_INLINE float fl_approximate_reciprocal(float b)
{
    return __builtin_amdgcn_rcpf(b);
}
FL_INLINE double fl_approximate_reciprocal_64(double b)
{
    return __builtin_amdgcn_rcp(b);
}
#elif defined(__CUDA__)
FL_INLINE float fl_approximate_exp2(float t)
{
    return __nvvm_ex2_approx_ftz_f(t);
}
FL_INLINE float fl_approximate_reciprocal(float b)
{
    float result;
    __asm__("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(b));
    return result;
}
FL_INLINE double fl_approximate_reciprocal_64(double b)
{
    double result;
    __asm__("rcp.approx.ftz.f64 %0, %1;" : "=d"(result) : "d"(b));
    return result;
}
#else
FL_INLINE float fl_approximate_exp2(float t)
{
    return __builtin_exp2f(t);
}
FL_INLINE float fl_approximate_reciprocal(float b)
{
    return 1.0f / b;
}
FL_INLINE double fl_approximate_reciprocal_64(double b)
{
    double result = 1.0 / b;
    unsigned long long bits;
    __builtin_memcpy(&bits, &result, sizeof bits);
    bits &= ~0xffffffffull; /* no better than theirs */
    __builtin_memcpy(&result, &bits, sizeof result);
    return result;
}
#endif

/*
 * a / b as the formulas ask for it. b is at least 1 and its reciprocal a normal number; a is any number, inf and nan included.
 *
 * In float: the quotient by the approximate reciprocal, corrected by what its product with b is too much: the correctly rounded one but
 * for rare cases, and for those the error stays within 0.51 units in the last place as long as all of these are normal numbers.
 */
FL_INLINE float fl_divide_16(float a, float b)
{
    return a * fl_approximate_reciprocal(b);
}
FL_INLINE float fl_divide_32(float a, float b)
{
    float r = fl_approximate_reciprocal(b);
    float quotient = a * r;
    float excess = __builtin_fmaf(b, quotient, -a); /* so, and not the remainder, since then -0 / b stays -0 */
    return __builtin_fmaf(-__builtin_fmaxf(excess, -3.402823466e+38f), r, quotient); /* inf - inf is nan: any number will do */
}
FL_INLINE float fl_divide_finite_32(float a, float b)
{
    float r = fl_approximate_reciprocal(b);
    float quotient = a * r;
    return __builtin_fmaf(-__builtin_fmaf(b, quotient, -a), r, quotient);
}

/*
 * In double the approximation is right to 20 bits at least (NVIDIA's looks at the upper half of b alone), and two of Newton's steps make
 * that 40 and all of them; the quotient is corrected as above.
 */
FL_INLINE double fl_reciprocal_64(double b)
{
    double r = fl_approximate_reciprocal_64(b);
    r = __builtin_fma(__builtin_fma(-b, r, 1.0), r, r);
    return __builtin_fma(__builtin_fma(-b, r, 1.0), r, r);
}
FL_INLINE double fl_divide_64(double a, double b)
{
    double r = fl_reciprocal_64(b);
    double quotient = a * r, excess = __builtin_fma(b, quotient, -a);
    return __builtin_fma(excess == excess ? -excess : 0.0, r, quotient);
}
FL_INLINE double fl_divide_finite_64(double a, double b)
{
    double r = fl_reciprocal_64(b);
    double quotient = a * r;
    return __builtin_fma(-__builtin_fma(b, quotient, -a), r, quotient);
}

/* 16 bytes in one access; the address is a multiple of 16. */
#if FL_DEVICE_CODE
typedef unsigned fl_vector __attribute__((vector_size(FL_VECTOR_BYTES)));
#else
typedef unsigned fl_vector __attribute__((vector_size(FL_VECTOR_BYTES), may_alias));
#endif
template <bool is_streaming> FL_INLINE fl_vector fl_load_vector(const void *from)
{
#if FL_DEVICE_CODE
    if constexpr (is_streaming)
        return __builtin_nontemporal_load((const FL_GLOBAL fl_vector *)from);
#endif
    return *(const FL_GLOBAL fl_vector *)from;
}
FL_INLINE void fl_store_vector(void *to, fl_vector vector)
{
    *(FL_GLOBAL fl_vector *)to = vector;
}

/* One element. */
template <class T> FL_INLINE T fl_load(const T *from)
{
    return *(const FL_GLOBAL T *)from;
}
template <class T> FL_INLINE void fl_store(T *to, T value)
{
    *(FL_GLOBAL T *)to = value;
}

FL_INLINE unsigned fl_multiply_high(unsigned a, unsigned b)
{
    return (unsigned)((unsigned long long)a * b >> 32);
}

/* Between the 16-bit types, as their bits, and float. To 16 bits: rounded to nearest, ties to even; nan stays nan, a quiet one. */
FL_INLINE float fl_bfloat16_to_float(unsigned short bits)
{
    unsigned wide = (unsigned)bits << 16;
    float result;
    __builtin_memcpy(&result, &wide, sizeof result);
    return result;
}
FL_INLINE unsigned short fl_float_to_bfloat16(float x)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned short result;
    __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(result) : "f"(x));
    return result;
#else
    unsigned bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    unsigned rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return (unsigned short)((x == x ? rounded : bits | 0x400000u) >> 16);
#endif
}
#if defined(__HIP__)
/* clang before 17 puts vectors whose elements are taken as half numbers into LDS; so it gets to see integers alone. */
FL_INLINE unsigned short fl_float16_bits(unsigned short bits)
{
#if __clang_major__ < 17
    unsigned wide = bits;
    __asm__("" : "+v"(wide));
    return (unsigned short)wide;
#else
    return bits;
#endif
}
FL_INLINE float fl_float16_to_float(unsigned short bits)
{
    _Float16 half;
    bits = fl_float16_bits(bits);
    __builtin_memcpy(&half, &bits, sizeof half);
    return (float)half;
}
FL_INLINE unsigned short fl_float_to_float16(float x)
{
    __asm__("" : "+v"(x)); /* clang 19 would merge a product into the conversion as x * y + 0, and -0 would become 0 */
    _Float16 half = (_Float16)x;
    unsigned short bits;
    __builtin_memcpy(&bits, &half, sizeof bits);
    return fl_float16_bits(bits);
}
#elif defined(__CUDA__)
FL_INLINE float fl_float16_to_float(unsigned short bits)
{
    float result;
    __asm__("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(bits));
    return result;
}
FL_INLINE unsigned short fl_float_to_float16(float x)
{
    unsigned short bits;
    __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
#else
FL_INLINE float fl_float16_to_float(unsigned short bits)
{
    unsigned sign = (unsigned)(bits & 0x8000) << 16, magnitude = bits & 0x7fff, wide;
    float result;
    if (magnitude >= 0x7c00) /* inf and nan */
        wide = magnitude << 13 | 0x7f800000u;
    else {
        result = (float)magnitude * 5.9604644775390625e-08f; /* 2^-24: right below the normal range, exact */
        if (magnitude >= 0x0400) {
            wide = (magnitude << 13) + (112u << 23);
            __builtin_memcpy(&result, &wide, sizeof result);
        }
        __builtin_memcpy(&wide, &result, sizeof wide);
    }
    wide |= sign;
    __builtin_memcpy(&result, &wide, sizeof result);
    return result;
}
FL_INLINE unsigned short fl_float_to_float16(float x)
{
    unsigned bits, sign, magnitude;
    __builtin_memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000u;
    magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (unsigned short)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520, half way past the largest, and inf */
        return (unsigned short)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) { /* below 2^-14: adding 1/2 puts the last place of the result into the last bit of a float */
        float shifted;
        __builtin_memcpy(&shifted, &magnitude, sizeof shifted);
        shifted += 0.5f;
        __builtin_memcpy(&magnitude, &shifted, sizeof magnitude);
        return (unsigned short)(sign | (magnitude - 0x3f000000u));
    }
    magnitude += 0xfffu + (magnitude >> 13 & 1u);
    return (unsigned short)(sign | (magnitude - (112u << 23)) >> 13);
}
#endif

/* Two neighbours in one word, the first in its lower half. */
FL_INLINE void fl_bfloat16_pair_to_floats(unsigned word, float *low, float *high)
{
    *low = fl_bfloat16_to_float((unsigned short)word);
    unsigned upper = word & 0xffff0000u;
    __builtin_memcpy(high, &upper, sizeof *high);
}
FL_INLINE unsigned fl_floats_to_bfloat16_pair(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned word;
    __asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return fl_float_to_bfloat16(low) | (unsigned)fl_float_to_bfloat16(high) << 16;
#endif
}
FL_INLINE void fl_float16_pair_to_floats(unsigned word, float *low, float *high)
{
#if defined(__CUDA__)
    __asm__("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}" : "=f"(*low), "=f"(*high) : "r"(word));
#else
    *low = fl_float16_to_float((unsigned short)word);
    *high = fl_float16_to_float((unsigned short)(word >> 16));
#endif
}
FL_INLINE unsigned fl_floats_to_float16_pair(float low, float high)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned word;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
    return word;
#else
    return fl_float_to_float16(low) | (unsigned)fl_float_to_float16(high) << 16;
#endif
}

#endif
