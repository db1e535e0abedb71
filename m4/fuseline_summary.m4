# FUSELINE_SUMMARY
# ----------------
# What was configured, in words.

AC_DEFUN([FUSELINE_SUMMARY], [
  fuseline_threads=no
  AS_IF([test -n "$OPENMP_CFLAGS"], [fuseline_threads="OpenMP ($OPENMP_CFLAGS)"])
  fuseline_python_note="none"
  AS_IF([test "$PYTHON" != :], [
    fuseline_pythondir=$pythondir
    while true; do # the folder's name is made of variables, which are made of variables
      fuseline_expanded=`test "$prefix" != NONE || prefix=$ac_default_prefix
                         test "$exec_prefix" != NONE || exec_prefix=$prefix
                         eval "echo \"$fuseline_pythondir\""`
      test "$fuseline_expanded" != "$fuseline_pythondir" || break
      fuseline_pythondir=$fuseline_expanded
    done
    fuseline_python_note="$PYTHON $PYTHON_VERSION, into $fuseline_pythondir"
  ])
  AC_MSG_NOTICE([

  fuseline $PACKAGE_VERSION
    C compiler           $CC
    CPU variants         $fuseline_variants
    threads              $fuseline_threads
    dlpack.h             $fuseline_dlpack
    AMD code             ${fuseline_hip_targets:-none: tensors on ROCm devices get an error}
      built by           ${fuseline_hip_compiler:--}
    NVIDIA code          ${fuseline_ptx_targets:+PTX for $fuseline_ptx_targets} ${fuseline_cuda_targets:+machine code for $fuseline_cuda_targets}
      built by           ${fuseline_ptx_compiler:-none: tensors on CUDA devices get an error}
    Python package       $fuseline_python_note
    C tests              ${have_cmocka} (cmocka)
      of kernels         $fuseline_cxx (C++17)])
  AS_IF([test "$PYTHON" != : &&
         ! "$PYTHON" -c 'import os, sys
sys.exit(os.path.realpath(sys.argv@<:@1@:>@) not in map(os.path.realpath, sys.path))' "$fuseline_pythondir" 2>/dev/null],
    [AC_MSG_NOTICE([$PYTHON does not look for packages in the folder above. After "make install":
    export PYTHONPATH=$fuseline_pythondir])])
])
