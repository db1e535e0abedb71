# Tests. Every program and script speaks TAP, so that each case counts by itself.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	export srcdir='$(abs_srcdir)' builddir='$(abs_builddir)' CMOCKA_MESSAGE_OUTPUT=TAP; \
	export HIP_TARGETS='$(HIP_TARGETS)' CC='$(CC)' CFLAGS='$(CFLAGS)' CXX='$(CXX)' NM='$(NM)' DLPACK_CPPFLAGS='$(DLPACK_CPPFLAGS)' SED='$(SED)' PYTHON='$(PYTHON)';

tests_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/lib -I$(top_srcdir)/tests
tests_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)
tests_libs = libfuseline.la $(CMOCKA_LIBS) -lm
EXTRA_DIST += tests/testing.h tests/tensors.h tests/numbers.h tests/operators.h tests/curvatures.h tests/internal.h tests/convert_variant.h

# The library's code with a switchable instruction set and a recording GPU side: tests/internal.h.
check_LTLIBRARIES += libinternal.la
libinternal_la_SOURCES = $(core_sources) tests/internal.c
libinternal_la_CPPFLAGS = $(tests_cppflags)
libinternal_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(OPENMP_CFLAGS)
libinternal_la_LIBADD = libcpu_base.la
if X86_VARIANTS
libinternal_la_LIBADD += libcpu_avx2.la libcpu_avx512.la
endif
tests_internal_libs = libinternal.la $(OPENMP_CFLAGS) $(CMOCKA_LIBS) -lm

# The conversions of each instruction set: tests/convert_variant.h.
convert_cflags = $(AM_CFLAGS) -fvisibility=hidden $(FORMULA_CFLAGS)
check_LTLIBRARIES += libconvert_base.la
libconvert_base_la_SOURCES = tests/convert_variant.c
libconvert_base_la_CPPFLAGS = $(tests_cppflags) -DVARIANT=base
libconvert_base_la_CFLAGS = $(convert_cflags)
tests_convert_libs = libconvert_base.la
if X86_VARIANTS
check_LTLIBRARIES += libconvert_avx2.la libconvert_avx512.la
libconvert_avx2_la_SOURCES = tests/convert_variant.c
libconvert_avx2_la_CPPFLAGS = $(tests_cppflags) -DVARIANT=avx2
libconvert_avx2_la_CFLAGS = $(convert_cflags) $(AVX2_CFLAGS)
libconvert_avx512_la_SOURCES = tests/convert_variant.c
libconvert_avx512_la_CPPFLAGS = $(tests_cppflags) -DVARIANT=avx512
libconvert_avx512_la_CFLAGS = $(convert_cflags) $(AVX512_CFLAGS)
tests_convert_libs += libconvert_avx2.la libconvert_avx512.la
endif

script_tests = \
	tests/exports.sh \
	tests/fastmath.sh \
	tests/headers.sh \
	tests/install.sh \
	tests/needed.sh \
	tests/operators.sh
TESTS += $(script_tests)
EXTRA_DIST += tests/tap.sh $(script_tests)

if HAVE_CMOCKA
C_TESTS = \
	tests/test_column_sum \
	tests/test_convert \
	tests/test_copy \
	tests/test_double_backward \
	tests/test_errors \
	tests/test_exchange \
	tests/test_gated \
	tests/test_gated_double_backward \
	tests/test_ownership \
	tests/test_places \
	tests/test_plan \
	tests/test_select \
	tests/test_tensor \
	tests/test_threads \
	tests/test_variants
check_PROGRAMS += $(C_TESTS)
TESTS += $(C_TESTS)

tests_test_column_sum_CPPFLAGS = $(tests_cppflags)
tests_test_column_sum_CFLAGS = $(tests_cflags)
tests_test_column_sum_LDADD = $(tests_internal_libs)

tests_test_copy_CPPFLAGS = $(tests_cppflags)
tests_test_copy_CFLAGS = $(tests_cflags)
tests_test_copy_LDADD = $(tests_internal_libs)

tests_test_convert_CPPFLAGS = $(tests_cppflags)
tests_test_convert_CFLAGS = $(tests_cflags)
tests_test_convert_LDADD = $(tests_convert_libs) $(tests_internal_libs)

tests_test_double_backward_CPPFLAGS = $(tests_cppflags)
tests_test_double_backward_CFLAGS = $(tests_cflags)
tests_test_double_backward_LDADD = $(tests_internal_libs)

tests_test_errors_CPPFLAGS = $(tests_cppflags)
tests_test_errors_CFLAGS = $(tests_cflags)
tests_test_errors_LDADD = $(tests_libs)

tests_test_exchange_CPPFLAGS = $(tests_cppflags)
tests_test_exchange_CFLAGS = $(tests_cflags)
tests_test_exchange_LDADD = $(tests_internal_libs)

tests_test_gated_CPPFLAGS = $(tests_cppflags)
tests_test_gated_CFLAGS = $(tests_cflags)
tests_test_gated_LDADD = $(tests_internal_libs)

tests_test_gated_double_backward_CPPFLAGS = $(tests_cppflags)
tests_test_gated_double_backward_CFLAGS = $(tests_cflags)
tests_test_gated_double_backward_LDADD = $(tests_internal_libs)

tests_test_ownership_CPPFLAGS = $(tests_cppflags)
tests_test_ownership_CFLAGS = $(tests_cflags)
tests_test_ownership_LDADD = $(tests_libs)

tests_test_places_CPPFLAGS = $(tests_cppflags)
tests_test_places_CFLAGS = $(tests_cflags)
tests_test_places_LDADD = $(tests_internal_libs)

tests_test_plan_CPPFLAGS = $(tests_cppflags)
tests_test_plan_CFLAGS = $(tests_cflags)
tests_test_plan_LDADD = $(tests_internal_libs)

tests_test_select_CPPFLAGS = $(tests_cppflags)
tests_test_select_CFLAGS = $(tests_cflags)
tests_test_select_LDADD = $(tests_libs)

tests_test_tensor_CPPFLAGS = $(tests_cppflags)
tests_test_tensor_CFLAGS = $(tests_cflags)
tests_test_tensor_LDADD = $(tests_libs)

tests_test_threads_CPPFLAGS = $(tests_cppflags)
tests_test_threads_CFLAGS = $(tests_cflags) $(OPENMP_CFLAGS)
tests_test_threads_LDADD = $(tests_libs)

tests_test_variants_CPPFLAGS = $(tests_cppflags)
tests_test_variants_CFLAGS = $(tests_cflags)
tests_test_variants_LDADD = $(tests_internal_libs)
endif

# The fuzzer's target with a sequence of its own needs no cmocka; "make fuzz" makes a fuzzer of it: see the file's head.
check_PROGRAMS += tests/fuzz_tensor
TESTS += tests/fuzz_tensor
tests_fuzz_tensor_CPPFLAGS = $(tests_cppflags)
tests_fuzz_tensor_LDADD = libfuseline.la
EXTRA_PROGRAMS = tests/fuzz
tests_fuzz_SOURCES = tests/fuzz_tensor.c
tests_fuzz_CPPFLAGS = $(tests_cppflags) -DFUZZER
tests_fuzz_LDFLAGS = -fsanitize=fuzzer
tests_fuzz_LDADD = libfuseline.la
fuzz: tests/fuzz
.PHONY: fuzz

# By hand: every float32 input. See the file's head.
EXTRA_PROGRAMS += tests/exhaustive
tests_exhaustive_CPPFLAGS = $(tests_cppflags)
tests_exhaustive_CFLAGS = $(AM_CFLAGS) $(OPENMP_CFLAGS) -O2
tests_exhaustive_LDADD = libfuseline.la -lm
CLEANFILES += tests/exhaustive tests/fuzz
exhaustive: tests/exhaustive
.PHONY: exhaustive

# The C tests under valgrind, which knows neither AVX-512 nor more than a double in long double; fewer inputs, since it is slow.
# Python's allocator, OpenMP's threads and the like are not ours to mend: only errors and definite losses count.
VALGRIND = valgrind
VALGRIND_FLAGS = --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
	--trace-children=yes --child-silent-after-fork=yes
check-valgrind: all $(check_LTLIBRARIES) $(C_TESTS) tests/fuzz_tensor
	@failed=; for test in $(C_TESTS) tests/fuzz_tensor; do \
	    echo "valgrind $$test"; \
	    FUSELINE_CPU=avx2 FUSELINE_TEST_THIN=1 OMP_NUM_THREADS=2 CMOCKA_MESSAGE_OUTPUT=TAP \
	    $(LIBTOOL) --mode=execute $(VALGRIND) $(VALGRIND_FLAGS) ./$$test >$$test.valgrind.log 2>&1 || { \
	        failed="$$failed $$test"; cat $$test.valgrind.log; }; \
	done; test -z "$$failed" || { echo "failed under valgrind:$$failed"; exit 1; }
.PHONY: check-valgrind
CLEANFILES += tests/*.valgrind.log

include tests/gpu.mk
include tests/emulated.mk

# The Python tests run on an installed library, by pytest: scripts/test.
EXTRA_DIST += \
	tests/python/activations.py \
	tests/python/conftest.py \
	tests/python/cupy_arrays.py \
	tests/python/devices.py \
	tests/python/memory.py \
	tests/python/process.py \
	tests/python/producers.py \
	tests/python/reference.py \
	tests/python/standin.py \
	tests/python/test_activation_arrays.py \
	tests/python/test_activation_forms.py \
	tests/python/test_activation_gpu.py \
	tests/python/test_activation_gradients.py \
	tests/python/test_activation_values.py \
	tests/python/test_bench.py \
	tests/python/test_builtin.py \
	tests/python/test_cli.py \
	tests/python/test_compile.py \
	tests/python/test_cupy.py \
	tests/python/test_dlpack.py \
	tests/python/test_dtensor.py \
	tests/python/test_gpu.py \
	tests/python/test_gpu_runtime.py \
	tests/python/test_jax.py \
	tests/python/test_layouts.py \
	tests/python/test_library.py \
	tests/python/test_modes.py \
	tests/python/test_nn.py \
	tests/python/test_numpy.py \
	tests/python/test_several_gpus.py \
	tests/python/test_standin.py \
	tests/python/test_openmp.py \
	tests/python/test_overlap.py \
	tests/python/test_real_runtime.py \
	tests/python/test_replace.py \
	tests/python/test_rocm_conventions.py \
	tests/python/test_second_derivatives.py \
	tests/python/test_tensor.py \
	tests/python/test_threads.py \
	tests/python/test_torch.py \
	tests/python/test_values.py
