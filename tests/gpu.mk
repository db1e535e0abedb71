# Tests of the GPU side that need no GPU.
EXTRA_DIST += tests/standin/common.h tests/standin/standin.h tests/kernels.sh tests/kernels.cc \
	tests/column_sum_kernel.cc tests/codegen.sh
TESTS += tests/kernels.sh tests/codegen.sh

if HAVE_CMOCKA
if GPU_CODE
check_LTLIBRARIES += tests/standin/libamdhip64.la tests/standin/libcuda.la
# (rpath, since libtool makes a module that can be opened only of what could be installed.)
standin_ldflags = -module -avoid-version -shared -rpath $(abs_builddir)/tests/standin
tests_standin_libamdhip64_la_SOURCES = tests/standin/hip.c
tests_standin_libamdhip64_la_CPPFLAGS = $(tests_cppflags)
tests_standin_libamdhip64_la_LDFLAGS = $(standin_ldflags)
tests_standin_libcuda_la_SOURCES = tests/standin/cuda.c
tests_standin_libcuda_la_CPPFLAGS = $(tests_cppflags)
tests_standin_libcuda_la_LDFLAGS = $(standin_ldflags)

GPU_TESTS = tests/test_geometry tests/test_gpu_loader
check_PROGRAMS += $(GPU_TESTS)
TESTS += $(GPU_TESTS)

tests_test_geometry_SOURCES = tests/test_geometry.c lib/gpu/geometry.c
tests_test_geometry_CPPFLAGS = $(tests_cppflags)
tests_test_geometry_CFLAGS = $(tests_cflags)
tests_test_geometry_LDADD = $(tests_internal_libs)

tests_test_gpu_loader_CPPFLAGS = $(tests_cppflags)
tests_test_gpu_loader_CFLAGS = $(tests_cflags)
tests_test_gpu_loader_LDADD = $(tests_libs) -lpthread
endif
endif
