# FUSELINE_CPU
# ------------
# The flags of the host library: warnings, what the formulas rest on, OpenMP, and the instruction sets that
# the compiler can build for.

# FUSELINE_TRY_FLAGS(VARIABLE, FLAGS): appends FLAGS to VARIABLE if the C compiler takes them without a warning.
AC_DEFUN([FUSELINE_TRY_FLAGS], [
  AC_MSG_CHECKING([whether $CC accepts $2])
  fuseline_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $2"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes]); $1="$$1 $2"],
    [AC_MSG_RESULT([no])])
  CFLAGS=$fuseline_saved_CFLAGS
])

# FUSELINE_TRY_VARIANT(NAME, FLAGS): whether the compiler can build for an x86-64 instruction set with FLAGS.
AC_DEFUN([FUSELINE_TRY_VARIANT], [
  AC_MSG_CHECKING([whether $CC builds for $1])
  fuseline_saved_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $2"
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
#ifndef __x86_64__
#error not x86-64
#endif
#include <immintrin.h>
]], [[$3]])],
    [fuseline_with_$1=yes], [fuseline_with_$1=no])
  AC_MSG_RESULT([$fuseline_with_$1])
  CFLAGS=$fuseline_saved_CFLAGS
])

AC_DEFUN([FUSELINE_CPU], [
  FUSELINE_TRY_FLAGS([WARNING_CFLAGS], [-Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith])
  AS_IF([test "$enable_werror" = yes], [WARNING_CFLAGS="$WARNING_CFLAGS -Werror"])
  AC_SUBST([WARNING_CFLAGS])

  # The formulas need every product and sum as written, and inf and nan; they need neither errno nor traps.
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-ffp-contract=off])
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-fno-math-errno])
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-fno-trapping-math])
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-ftree-vectorize])
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-fvect-cost-model=unlimited])
  FUSELINE_TRY_FLAGS([FORMULA_CFLAGS], [-fopenmp-simd])
  AC_SUBST([FORMULA_CFLAGS])

  AC_OPENMP

  AVX2_CFLAGS="-mavx2 -mfma -mf16c"
  AVX512_CFLAGS="$AVX2_CFLAGS -mavx512f -mavx512bw -mavx512dq -mavx512vl"
  FUSELINE_TRY_VARIANT([avx2], [$AVX2_CFLAGS], [return _mm_cvtsi128_si32(_mm256_cvtps_ph(_mm256_setzero_ps(), 0));])
  FUSELINE_TRY_VARIANT([avx512], [$AVX512_CFLAGS], [return (int)_mm512_reduce_add_ps(_mm512_setzero_ps());])
  FUSELINE_TRY_FLAGS([AVX512_CFLAGS], [-mprefer-vector-width=512])
  AC_SUBST([AVX2_CFLAGS])
  AC_SUBST([AVX512_CFLAGS])
  fuseline_variants=base
  AS_IF([test "$fuseline_with_avx2$fuseline_with_avx512" = yesyes], [
    fuseline_variants="base avx2 avx512"
    AC_DEFINE([FL_WITH_X86_VARIANTS], [1], [Define to 1 if the AVX2 and AVX-512 variants are built.])
  ])
  AM_CONDITIONAL([X86_VARIANTS], [test "$fuseline_variants" != base])
])
