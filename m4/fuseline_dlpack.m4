# FUSELINE_DLPACK
# ---------------
# Finds dlpack/dlpack.h, version 1.1 or newer: --with-dlpack=DIR, pkg-config, the compiler's include path, or the copy
# that the Python package apache-tvm-ffi carries. Sets DLPACK_CPPFLAGS.

AC_DEFUN([FUSELINE_DLPACK_TRY], [
  AS_IF([test "$fuseline_dlpack" = no], [
    CPPFLAGS="$fuseline_saved_CPPFLAGS $1"
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include <dlpack/dlpack.h>
#if DLPACK_MAJOR_VERSION != 1 || DLPACK_MINOR_VERSION < 1
#error too old, or too new
#endif
]])], [fuseline_dlpack="$2"; DLPACK_CPPFLAGS="$1"])
  ])
])

AC_DEFUN([FUSELINE_DLPACK], [
  AC_ARG_WITH([dlpack],
    [AS_HELP_STRING([--with-dlpack=DIR], [folder that holds dlpack/dlpack.h, version 1.1 or newer])],
    [], [with_dlpack=yes])
  AC_ARG_VAR([PYTHON], [the Python interpreter to install the package for])
  PKG_PROG_PKG_CONFIG
  AC_MSG_CHECKING([for dlpack.h 1.1 or newer])
  fuseline_dlpack=no
  fuseline_saved_CPPFLAGS=$CPPFLAGS
  AS_IF([test "$with_dlpack" != yes && test "$with_dlpack" != no], [
    FUSELINE_DLPACK_TRY([-I$with_dlpack], [$with_dlpack])
    FUSELINE_DLPACK_TRY([-I$with_dlpack/include], [$with_dlpack/include])
  ], [
    fuseline_flags=`$PKG_CONFIG --cflags dlpack 2>/dev/null`
    AS_IF([test -n "$fuseline_flags"], [FUSELINE_DLPACK_TRY([$fuseline_flags], [pkg-config])])
    FUSELINE_DLPACK_TRY([], [the compiler's include path])
    for fuseline_python in "$PYTHON" python3 python; do
      AS_IF([test -n "$fuseline_python" && test "$fuseline_dlpack" = no], [
        fuseline_dir=`"$fuseline_python" -c 'import importlib.util as u, os
print(os.path.join(os.path.dirname(u.find_spec("tvm_ffi").origin), "include"))' 2>/dev/null`
        AS_IF([test -n "$fuseline_dir"], [FUSELINE_DLPACK_TRY([-I$fuseline_dir], [$fuseline_dir])])
      ])
    done
  ])
  CPPFLAGS=$fuseline_saved_CPPFLAGS
  AC_MSG_RESULT([$fuseline_dlpack])
  AS_IF([test "$fuseline_dlpack" = no],
    [AC_MSG_ERROR([dlpack/dlpack.h of version 1.1 or newer was not found: give its folder with --with-dlpack=DIR, or install
the Python package apache-tvm-ffi, which carries it])])
  AC_SUBST([DLPACK_CPPFLAGS])
])
