# FUSELINE_GPU
# ------------
# The compilers of device code, and what each of them can build. A compiler counts only if it compiled, and for AMD linked, a
# small kernel: a clang may lack a back end, its linker or its bundler. AMD and NVIDIA are probed apart.
#
# Sets the conditionals GPU_CODE, HIP_CODE, PTX_CODE and CUDA_CODE, the variables of the rules in kernels/local.mk, and for the
# summary fuseline_hip_compiler, fuseline_hip_targets, fuseline_ptx_compiler, fuseline_ptx_targets and fuseline_cuda_targets.

# Flags without which a probe would not speak for the real build. hipcc turns into something else where it sees nvcc,
# unless HIP_PLATFORM is set; other compilers do not mind. -c makes every version of clang bundle several targets.
m4_define([FUSELINE_HIP_FLAGS], [-x hip --offload-device-only -c -nogpuinc -nogpulib])
m4_define([FUSELINE_PTX_FLAGS], [-x cuda --cuda-device-only -S -nocudainc -nocudalib --cuda-path=/nonexistent])
m4_define([FUSELINE_HIP_ALL],
  [gfx900 gfx906 gfx908 gfx90a gfx942 gfx950 gfx1010 gfx1030 gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 gfx1200 gfx1201])
# For chips that have no code of their own. A generic target serves a list of chips that is closed, and the other two (gfx9-4-generic,
# gfx12-generic) serve none but those above. They come in code-object version 6, so in bundles of their own: docs/amd-codegen.md.
m4_define([FUSELINE_HIP_GENERIC], [gfx9-generic gfx10-1-generic gfx10-3-generic gfx11-generic])

# FUSELINE_GPU_FUNCTIONS: shell functions for the probes, which leave their result in fuseline_accepted.
AC_DEFUN([FUSELINE_GPU_FUNCTIONS], [
# fuseline_fn_list WORDS: commas to blanks.
fuseline_fn_list ()
{
  AS_ECHO(["$[]1"]) | tr ',' ' '
}

# fuseline_fn_compilers FIRST...: those of the names that exist, then the clang++ there are, newest first.
fuseline_fn_compilers ()
{
  for fuseline_name in "$[]@" \
      clang++-29 clang++-28 clang++-27 clang++-26 clang++-25 clang++-24 clang++-23 clang++-22 clang++-21 clang++-20 \
      clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14 clang++; do
    if command -v "$fuseline_name" >/dev/null 2>&1; then AS_ECHO(["$fuseline_name"]); fi
  done
}

# fuseline_fn_try_hip COMPILER TARGETS [FLAGS]: succeeds if the compiler builds one file for all targets at once.
fuseline_fn_try_hip ()
{
  rm -f conftest.out
  fuseline_flags=$[]3
  for fuseline_target in $[]2; do fuseline_flags="$fuseline_flags --offload-arch=$fuseline_target"; done
  HIP_PLATFORM=amd $[]1 FUSELINE_HIP_FLAGS $fuseline_flags $HIPCCFLAGS -o conftest.out conftest.hip >conftest.log 2>&1 &&
    test -s conftest.out
  fuseline_result=$?
  cat conftest.log >&AS_MESSAGE_LOG_FD
  AS_ECHO(["$[]1 for $[]2: exit status $fuseline_result"]) >&AS_MESSAGE_LOG_FD
  return $fuseline_result
}

# fuseline_fn_hip COMPILER TARGETS: sets fuseline_accepted to the targets that the compiler builds. Those that an error message
# names are left out, and the rest is tried again, which takes a few short runs. After a message that names none the targets are
# tried one by one, unless the first, which every clang for AMD knows, fails too.
fuseline_fn_hip ()
{
  fuseline_accepted=$[]2
  while test -n "$fuseline_accepted"; do
    if fuseline_fn_try_hip "$[]1" "$fuseline_accepted"; then return; fi
    fuseline_left=
    fuseline_named=no
    for fuseline_target in $fuseline_accepted; do
      if $SED 's/(e\.g\..*//' conftest.log | grep -w "error.*$fuseline_target" >/dev/null; then
        fuseline_named=yes
      else
        fuseline_left="$fuseline_left $fuseline_target"
      fi
    done
    fuseline_accepted=$fuseline_left
    test "$fuseline_named" = yes || break
  done
  fuseline_left=$fuseline_accepted
  fuseline_accepted=
  for fuseline_each in $fuseline_left; do
    if fuseline_fn_try_hip "$[]1" "$fuseline_each"; then
      fuseline_accepted="$fuseline_accepted $fuseline_each"
    elif test -z "$fuseline_accepted"; then
      return
    fi
  done
}

# fuseline_fn_ptx COMPILER NUMBERS: succeeds if the compiler emits PTX for each compute capability. Sets fuseline_ptx_version to
# the flags that it needs for that: a clang that finds no CUDA takes PTX's oldest version for granted, and from 22 on refuses to
# write newer instructions into it.
fuseline_fn_ptx ()
{
  for fuseline_version in none 63 70 78 86; do
    fuseline_ptx_version=
    test $fuseline_version = none || fuseline_ptx_version="-Xclang -target-feature -Xclang +ptx$fuseline_version"
    fuseline_accepted=yes
    for fuseline_number in $[]2; do
      rm -f conftest.out
      $[]1 FUSELINE_PTX_FLAGS --cuda-gpu-arch=sm_$fuseline_number $fuseline_ptx_version $PTXFLAGS -o conftest.out conftest.hip \
          >&AS_MESSAGE_LOG_FD 2>&1 &&
        grep 'entry fuseline_probe' conftest.out >/dev/null || { fuseline_accepted=no; break; }
    done
    test $fuseline_accepted = no || return 0
  done
  return 1
}

cat >conftest.hip <<'FUSELINE_EOF'
extern "C" __attribute__((global)) void fuseline_probe(float *x) { *x = __builtin_fmaf(*x, *x, 1.0f); }
FUSELINE_EOF
])

AC_DEFUN([FUSELINE_GPU], [
  AC_ARG_WITH([gpu], [AS_HELP_STRING([--without-gpu], [build no GPU code at all])], [], [with_gpu=yes])
  AC_ARG_WITH([hip-targets],
    [AS_HELP_STRING([--with-hip-targets=LIST],
       [AMD targets to build code for, such as gfx942,gfx1151, or "no" (default: all that the best compiler accepts)])],
    [], [with_hip_targets=yes])
  AC_ARG_WITH([ptx],
    [AS_HELP_STRING([--with-ptx=LIST],
       [compute capabilities to build PTX for, which newer devices run too, or "no", lowest first (default: 75,80)])],
    [], [with_ptx=yes])
  AC_ARG_WITH([cuda-targets],
    [AS_HELP_STRING([--with-cuda-targets=LIST],
       [compute capabilities, such as 80,90, to build machine code for, by ptxas (default: none; PTX serves all)])],
    [], [with_cuda_targets=no])
  AC_ARG_VAR([HIPCC], [compiler of device code for AMD: hipcc, amdclang++ or clang++])
  AC_ARG_VAR([HIPCCFLAGS], [further flags for HIPCC])
  AC_ARG_VAR([PTXCC], [compiler of device code for NVIDIA: a clang++ with the NVPTX back end])
  AC_ARG_VAR([PTXFLAGS], [further flags for PTXCC])
  AC_ARG_VAR([PTXAS], [assembler of PTX: ptxas])
  AS_IF([test "$with_gpu" = no], [with_hip_targets=no with_ptx=no with_cuda_targets=no])
  FUSELINE_GPU_FUNCTIONS

  # AMD: the compiler that accepts most targets; of equals, the first.
  fuseline_hip_compiler= fuseline_hip_targets=
  AS_IF([test "$with_hip_targets" != no], [
    fuseline_wanted= fuseline_wanted_generic=
    for fuseline_target in `fuseline_fn_list "$with_hip_targets"`; do
      AS_CASE([$fuseline_target],
        [*-generic], [fuseline_wanted_generic="$fuseline_wanted_generic $fuseline_target"],
        [fuseline_wanted="$fuseline_wanted $fuseline_target"])
    done
    AS_IF([test "$with_hip_targets" = yes],
      [fuseline_wanted="FUSELINE_HIP_ALL" fuseline_wanted_generic="FUSELINE_HIP_GENERIC"])
    AS_IF([test -z "$fuseline_wanted"],
      [AC_MSG_ERROR([--with-hip-targets needs a target that is not generic, too: it serves to choose the compiler])])
    AC_CACHE_CHECK([for the compiler that builds for most AMD targets], [fuseline_cv_hip_compiler], [
      fuseline_cv_hip_compiler=none
      fuseline_cv_hip_targets=
      fuseline_most=0
      fuseline_rocm=${ROCM_PATH:-/opt/rocm}
      AS_IF([test -n "$HIPCC"], [fuseline_compilers=$HIPCC],
        [fuseline_compilers=`fuseline_fn_compilers hipcc "$fuseline_rocm/bin/hipcc" amdclang++ "$fuseline_rocm/bin/amdclang++" \
          "$fuseline_rocm/llvm/bin/clang++"`])
      fuseline_IFS=$IFS
      IFS='
'
      for fuseline_compiler in $fuseline_compilers; do
        IFS=$fuseline_IFS
        fuseline_fn_hip "$fuseline_compiler" "$fuseline_wanted"
        set x $fuseline_accepted; shift
        AS_IF([test $[]@%:@ -gt "$fuseline_most"],
          [fuseline_most=$[]@%:@ fuseline_cv_hip_compiler=$fuseline_compiler fuseline_cv_hip_targets="$[]*"])
        set x $fuseline_wanted; shift
        AS_IF([test "$fuseline_most" -eq $[]@%:@], [break])
      done
      IFS=$fuseline_IFS
    ])
    # Code-object version 5 where the compiler knows it, not a newer default of its own: older versions of ROCm load it too.
    # And no moving of constants out of loops: most launches go round once, and the constants would only fill registers.
    AC_CACHE_CHECK([for the flags that it takes], [fuseline_cv_hip_options], [
      fuseline_cv_hip_options=
      set x $fuseline_cv_hip_targets; shift
      for fuseline_option in "-mcode-object-version=5" "-mllvm -disable-machine-licm"; do
        AS_IF([test $[]@%:@ -gt 0 && fuseline_fn_try_hip "$fuseline_cv_hip_compiler" $[]1 "$fuseline_option -Werror"],
          [fuseline_cv_hip_options="$fuseline_cv_hip_options $fuseline_option"])
      done
    ])
    AC_CACHE_CHECK([for generic AMD targets that it builds], [fuseline_cv_hip_generic], [
      fuseline_cv_hip_generic=
      for fuseline_target in $fuseline_wanted_generic; do
        AS_IF([test "$fuseline_cv_hip_compiler" != none &&
               fuseline_fn_try_hip "$fuseline_cv_hip_compiler" $fuseline_target "-mcode-object-version=6 -w"],
          [fuseline_cv_hip_generic="$fuseline_cv_hip_generic $fuseline_target"])
      done
    ])
    fuseline_wanted="$fuseline_wanted $fuseline_wanted_generic"
    fuseline_cv_hip_targets="$fuseline_cv_hip_targets$fuseline_cv_hip_generic"
    AC_MSG_CHECKING([for which AMD targets it builds])
    AC_MSG_RESULT([${fuseline_cv_hip_targets:-none}])
    AS_IF([test "$fuseline_cv_hip_compiler" != none],
      [fuseline_hip_compiler=$fuseline_cv_hip_compiler fuseline_hip_targets=$fuseline_cv_hip_targets])
    for fuseline_target in $fuseline_wanted; do
      AS_CASE(["$with_hip_targets: $fuseline_hip_targets "], [yes:*], [], [*:*" $fuseline_target "*], [],
        [AC_MSG_ERROR([no compiler at hand builds for the target $fuseline_target of --with-hip-targets (see config.log; HIPCC names
another)])])
    done
  ])
  HIPCC=$fuseline_hip_compiler
  HIP_TARGETS=$fuseline_hip_targets
  AC_SUBST([HIP_TARGETS])
  HIP_OPTIONS=$fuseline_cv_hip_options
  AC_SUBST([HIP_OPTIONS])

  # NVIDIA: the newest clang that emits PTX.
  fuseline_ptx_compiler= fuseline_ptx_targets=
  AS_IF([test "$with_ptx" != no], [
    fuseline_wanted=`fuseline_fn_list "$with_ptx"`
    AS_IF([test "$with_ptx" = yes], [fuseline_wanted="75 80"])
    AC_CACHE_CHECK([for a compiler that emits PTX for $fuseline_wanted], [fuseline_cv_ptx_compiler], [
      fuseline_cv_ptx_compiler=none
      AS_IF([test -n "$PTXCC"], [fuseline_compilers=$PTXCC], [fuseline_compilers=`fuseline_fn_compilers`])
      fuseline_IFS=$IFS
      IFS='
'
      for fuseline_compiler in $fuseline_compilers; do
        IFS=$fuseline_IFS
        AS_IF([fuseline_fn_ptx "$fuseline_compiler" "$fuseline_wanted"], 
          [fuseline_cv_ptx_compiler=$fuseline_compiler fuseline_cv_ptx_version=$fuseline_ptx_version; break])
      done
      IFS=$fuseline_IFS
    ])
    AS_IF([test "$fuseline_cv_ptx_compiler" != none],
      [fuseline_ptx_compiler=$fuseline_cv_ptx_compiler fuseline_ptx_targets=$fuseline_wanted],
      [test "$with_ptx" != yes],
      [AC_MSG_ERROR([no compiler at hand emits PTX for $fuseline_wanted (--with-ptx; see config.log; PTXCC names another)])])
  ])
  PTXCC=$fuseline_ptx_compiler
  PTX_TARGETS=$fuseline_ptx_targets
  PTX_VERSION=$fuseline_cv_ptx_version
  AC_SUBST([PTX_VERSION])
  AC_SUBST([PTX_TARGETS])

  # Machine code for NVIDIA: assembled from PTX.
  fuseline_cuda_targets=
  AS_IF([test "$with_cuda_targets" != no && test "$with_cuda_targets" != yes], [
    fuseline_cuda_targets=`fuseline_fn_list "$with_cuda_targets"`
    AS_IF([test -z "$fuseline_ptx_targets"], [AC_MSG_ERROR([--with-cuda-targets needs PTX to assemble, and none is built])])
    AC_CHECK_PROGS([PTXAS], [ptxas])
    AS_IF([test -z "$PTXAS"], [AC_MSG_ERROR([--with-cuda-targets needs ptxas; PTXAS names it])])
    set x $fuseline_ptx_targets
    fuseline_fn_ptx "$fuseline_ptx_compiler" "$[]2"
    for fuseline_number in $fuseline_cuda_targets; do
      AS_IF([$PTXAS -arch=sm_$fuseline_number -o conftest.cubin conftest.out >&AS_MESSAGE_LOG_FD 2>&1], [],
        [AC_MSG_ERROR([$PTXAS does not build for sm_$fuseline_number of --with-cuda-targets (see config.log)])])
    done
  ])
  CUDA_TARGETS=$fuseline_cuda_targets
  AC_SUBST([CUDA_TARGETS])
  rm -f conftest.hip conftest.out conftest.log conftest.cubin

  AM_CONDITIONAL([HIP_CODE], [test -n "$fuseline_hip_targets"])
  AM_CONDITIONAL([PTX_CODE], [test -n "$fuseline_ptx_targets"])
  AM_CONDITIONAL([CUDA_CODE], [test -n "$fuseline_cuda_targets"])
  AM_CONDITIONAL([GPU_CODE], [test -n "$fuseline_hip_targets$fuseline_ptx_targets"])
  fuseline_names=
  for fuseline_target in $fuseline_hip_targets; do
    fuseline_names="$fuseline_names${fuseline_names:+, }\"$fuseline_target\""
  done
  for fuseline_target in $fuseline_ptx_targets; do
    fuseline_names="$fuseline_names${fuseline_names:+, }\"ptx_$fuseline_target\""
  done
  for fuseline_target in $fuseline_cuda_targets; do
    fuseline_names="$fuseline_names${fuseline_names:+, }\"sm_$fuseline_target\""
  done
  AS_IF([test -n "$fuseline_names"],
    [AC_DEFINE_UNQUOTED([FL_GPU_TARGETS], [$fuseline_names], [The GPU targets that code is embedded for, as strings.])])
])
