# FUSELINE_CXX
# ------------
# A C++17 compiler, by which tests run the source of the GPU kernels on the CPU; nothing else needs one. CXXFLAGS favours a quick
# compilation. Sets the conditional HAVE_CXX, and fuseline_cxx for the summary.

AC_DEFUN([FUSELINE_CXX], [
  AC_ARG_VAR([CXX], [C++ compiler, for tests])
  AC_ARG_VAR([CXXFLAGS], [its flags])
  : ${CXXFLAGS=-O1}
  AC_CACHE_CHECK([for a C++17 compiler], [fuseline_cv_cxx], [
    fuseline_cv_cxx=none
    cat >conftest.cc <<'FUSELINE_EOF'
template <class... T> constexpr int count(T...) { if constexpr (sizeof...(T) > 1) return sizeof...(T); else return 1; }
static thread_local int place = count(1, 2);
int main() { return place != 2; }
FUSELINE_EOF
    fuseline_IFS=$IFS
    IFS='
'
    for fuseline_compiler in ${CXX:-`for each in g++ c++ clang++ clang++-19; do echo $each; done`}; do
      IFS=$fuseline_IFS
      AS_IF([$fuseline_compiler -std=c++17 $CXXFLAGS -o conftest.out conftest.cc >&AS_MESSAGE_LOG_FD 2>&1],
        [fuseline_cv_cxx=$fuseline_compiler; break])
    done
    IFS=$fuseline_IFS
    rm -f conftest.cc conftest.out
  ])
  fuseline_cxx=$fuseline_cv_cxx
  CXX=$fuseline_cxx
  AM_CONDITIONAL([HAVE_CXX], [test "$fuseline_cxx" != none])
])
