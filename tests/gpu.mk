# Tests of the GPU side that need no GPU: on libraries that stand in for the vendors' runtimes and run the kernels on the CPU.
standin_headers = $(addprefix tests/standin/,code_object.h grid.h memory.h module.h ptx.h signature.h standin.h stream.h)
EXTRA_DIST += $(standin_headers) tests/standin/probe.hip \
	$(addprefix tests/standin/,code_object.c cuda.c grid.c hip.c memory.c module.c ptx.c stream.c) \
	tests/codegen.sh
TESTS += tests/codegen.sh

if GPU_CODE
if HAVE_CXX
# Every GPU module's source, once more by the host's compiler; and the kernels by which the stand-in itself is tested.
standin_kernels = $(gpu_modules:kernels/%=tests/standin/kernels/%.o)
standin_probe = tests/standin/probe.o
standin_common = $(addprefix tests/standin/,grid.o memory.o module.o stream.o tuning.o)
standin_hip = $(addprefix tests/standin/,hip.o code_object.o)
standin_cuda = $(addprefix tests/standin/,cuda.o ptx.o)
standin_objects = $(standin_common) $(standin_hip) $(standin_cuda)
standin_libraries = tests/standin/libamdhip64.so tests/standin/libcuda.so
check_DATA = $(standin_libraries)

host_compile = $(CXX) -std=c++17 -fPIC -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra $(filter -Werror,$(WARNING_CFLAGS)) \
	$(CXXFLAGS) -c -x c++

verbose_host = $(verbose_host_@AM_V@)
verbose_host_ = $(verbose_host_@AM_DEFAULT_V@)
verbose_host_0 = @echo "  HOSTCXX " $@;
verbose_host_1 =

$(standin_kernels): Makefile
	$(verbose_host)$(MKDIR_P) $(@D) && $(host_compile) $(image_compile)

$(standin_probe): Makefile
	$(verbose_host)$(MKDIR_P) $(@D) && $(host_compile) -MD -MP -MF $@.d -o $@ $(srcdir)/tests/standin/probe.hip

standin_compile = $(AM_V_CC)$(MKDIR_P) $(@D) && $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(tests_cppflags) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC \
	    -MD -MP -MF $@.d -c -o $@ $<
$(filter-out %/tuning.o,$(standin_objects)): tests/standin/%.o: tests/standin/%.c Makefile
	$(standin_compile)
tests/standin/tuning.o: lib/gpu/tuning.c Makefile
	$(standin_compile)

# The sonames are those of the vendors' own libraries; the files are called as in PyTorch's wheels, without the number.
standin_link = $(AM_V_CCLD)$(CC) $(AM_CFLAGS) $(CFLAGS) $(LDFLAGS) -shared -o $@ $(filter %.o,$^) -lm -lpthread $(LIBS) -Wl,-soname,
tests/standin/libamdhip64.so: $(standin_common) $(standin_hip) $(standin_kernels) $(standin_probe)
	$(standin_link)libamdhip64.so.7
tests/standin/libcuda.so: $(standin_common) $(standin_cuda) $(standin_kernels) $(standin_probe)
	$(standin_link)libcuda.so.1

# The same probe as the library under test has its code: for the first target of each kind.
standin_probes =
if HIP_CODE
standin_probes += tests/standin/probe.hipfb
endif
if PTX_CODE
standin_probes += tests/standin/probe.ptx
endif
check_DATA += $(standin_probes)
tests/standin/probe.hipfb: Makefile
	$(verbose_hip)$(MKDIR_P) $(@D) && $(hip_compile) -MD -MP -MF $@.d -o $@ $(srcdir)/tests/standin/probe.hip
tests/standin/probe.ptx: Makefile
	$(verbose_ptx)$(MKDIR_P) $(@D) && $(ptx_compile) --cuda-gpu-arch=sm_$(ptx_base) -MD -MP -MF $@.d -o $@ \
	    $(srcdir)/tests/standin/probe.hip

standin_made = $(standin_kernels) $(standin_probe) $(standin_objects) $(standin_probes)
-include $(standin_made:%=%.d)
CLEANFILES += $(standin_libraries) $(standin_made) $(standin_made:%=%.d)

if HAVE_CMOCKA
GPU_TESTS = tests/test_geometry tests/test_gpu_loader tests/test_on_gpu tests/test_standin \
	tests/test_column_sum_on_standin tests/test_copy_on_standin tests/test_double_backward_on_standin tests/test_gated_on_standin \
	tests/test_gated_double_backward_on_standin \
	tests/test_variants_on_standin
check_PROGRAMS += $(GPU_TESTS)
TESTS += $(GPU_TESTS)

tests_test_geometry_SOURCES = tests/test_geometry.c lib/gpu/geometry.c lib/gpu/tuning.c
tests_test_geometry_CPPFLAGS = $(tests_cppflags)
tests_test_geometry_CFLAGS = $(tests_cflags)
tests_test_geometry_LDADD = $(tests_internal_libs)

tests_test_gpu_loader_CPPFLAGS = $(tests_cppflags)
tests_test_gpu_loader_CFLAGS = $(tests_cflags)
tests_test_gpu_loader_LDADD = $(tests_libs) -lpthread

tests_test_on_gpu_CPPFLAGS = $(tests_cppflags)
tests_test_on_gpu_CFLAGS = $(tests_cflags)
tests_test_on_gpu_LDADD = $(tests_libs)

tests_test_standin_CPPFLAGS = $(tests_cppflags)
tests_test_standin_CFLAGS = $(tests_cflags)
tests_test_standin_LDADD = $(CMOCKA_LIBS)

# AMD's own runtime, where it is installed. Neither under sanitizers nor under valgrind, which would report of it.
check_PROGRAMS += tests/test_real_runtime
TESTS += tests/test_real_runtime
tests_test_real_runtime_CPPFLAGS = $(tests_cppflags)
tests_test_real_runtime_CFLAGS = $(tests_cflags)
tests_test_real_runtime_LDADD = $(tests_libs) -lpthread

# The tests of right values once more, on the devices that the stand-ins play.
tests_standin_cppflags = $(tests_cppflags) -DTEST_ON_STANDIN
tests_test_column_sum_on_standin_SOURCES = tests/test_column_sum.c tests/on_standin.c
tests_test_column_sum_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_column_sum_on_standin_CFLAGS = $(tests_cflags)
tests_test_column_sum_on_standin_LDADD = $(tests_libs)

tests_test_copy_on_standin_SOURCES = tests/test_copy.c tests/on_standin.c
tests_test_copy_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_copy_on_standin_CFLAGS = $(tests_cflags)
tests_test_copy_on_standin_LDADD = $(tests_libs)

tests_test_double_backward_on_standin_SOURCES = tests/test_double_backward.c tests/on_standin.c
tests_test_double_backward_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_double_backward_on_standin_CFLAGS = $(tests_cflags)
tests_test_double_backward_on_standin_LDADD = $(tests_libs)

tests_test_gated_on_standin_SOURCES = tests/test_gated.c tests/on_standin.c
tests_test_gated_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_gated_on_standin_CFLAGS = $(tests_cflags)
tests_test_gated_on_standin_LDADD = $(tests_libs)

tests_test_gated_double_backward_on_standin_SOURCES = tests/test_gated_double_backward.c tests/on_standin.c
tests_test_gated_double_backward_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_gated_double_backward_on_standin_CFLAGS = $(tests_cflags)
tests_test_gated_double_backward_on_standin_LDADD = $(tests_libs)

tests_test_variants_on_standin_SOURCES = tests/test_variants.c tests/on_standin.c
tests_test_variants_on_standin_CPPFLAGS = $(tests_standin_cppflags)
tests_test_variants_on_standin_CFLAGS = $(tests_cflags)
tests_test_variants_on_standin_LDADD = $(tests_libs)
endif
endif
endif
