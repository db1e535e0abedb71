# FUSELINE_PYTHON
# ---------------
# The interpreter that the Python package is installed for, or none (--without-python).

AC_DEFUN([FUSELINE_PYTHON], [
  AC_ARG_WITH([python],
    [AS_HELP_STRING([--without-python], [do not install the Python package])],
    [], [with_python=yes])
  AS_IF([test "$with_python" != no], [AM_PATH_PYTHON([3.9], [], [:])], [PYTHON=:])
  AM_CONDITIONAL([PYTHON_PACKAGE], [test "$PYTHON" != :])
])
