lib_LTLIBRARIES = libfuseline.la

# All but the choice of the instruction set and the GPU side, for which some tests have their own.
core_sources = \
	lib/arguments.h \
	lib/capsule.c \
	lib/dispatch.c \
	lib/entries.h \
	lib/exchange.c \
	lib/host_tensor.c \
	lib/gated.c lib/gated.h \
	lib/info.c \
	lib/operator.h \
	lib/operators.def \
	lib/ownership.c \
	lib/pages.h \
	lib/part.c lib/part.h \
	lib/plan.c lib/plan.h \
	lib/python.c \
	lib/rate.c lib/rate.h \
	lib/status.c lib/status.h \
	lib/tensor.c lib/tensor.h \
	lib/text.c lib/text.h \
	lib/cpu/cpu.h \
	lib/cpu/reduce.c \
	lib/cpu/reduce.h \
	lib/cpu/run.c \
	lib/cpu/select.h \
	lib/cpu/variant.h \
	lib/operators/activations.h \
	$(OPERATOR_SOURCES)

libfuseline_la_SOURCES = $(core_sources) lib/cpu/select.c
libfuseline_la_CFLAGS = $(AM_CFLAGS) -fvisibility=hidden $(OPENMP_CFLAGS)
libfuseline_la_LDFLAGS = -version-info $(FUSELINE_VERSION_INFO) -no-undefined \
	-Wl,--version-script=$(srcdir)/lib/libfuseline.map
libfuseline_la_LIBADD = libcpu_base.la -lm
EXTRA_libfuseline_la_DEPENDENCIES = lib/libfuseline.map
EXTRA_DIST += lib/libfuseline.map

# Each instruction set is one small file around lib/cpu/body.h, with flags of its own.
variant_cflags = $(AM_CFLAGS) -fvisibility=hidden $(FORMULA_CFLAGS)

noinst_LTLIBRARIES += libcpu_base.la
libcpu_base_la_SOURCES = \
	lib/cpu/base.c \
	lib/cpu/body.h \
	lib/cpu/convert.h \
	lib/cpu/short.h \
	lib/formulas/all.h \
	lib/formulas/exp2.h \
	lib/formulas/exp2_exact.h \
	lib/formulas/exp2_short.h \
	lib/formulas/gated.h \
	lib/formulas/host.h \
	lib/formulas/precision.h \
	lib/formulas/rate.h \
	lib/formulas/relu.h \
	lib/formulas/unary.h
libcpu_base_la_CFLAGS = $(variant_cflags)
EXTRA_DIST += $(patsubst %,lib/formulas/%.h,$(filter-out column_sum,$(OPERATORS)))

if X86_VARIANTS
noinst_LTLIBRARIES += libcpu_avx2.la libcpu_avx512.la
libcpu_avx2_la_SOURCES = lib/cpu/avx2.c
libcpu_avx2_la_CFLAGS = $(variant_cflags) $(AVX2_CFLAGS)
libcpu_avx512_la_SOURCES = lib/cpu/avx512.c
libcpu_avx512_la_CFLAGS = $(variant_cflags) $(AVX512_CFLAGS)
libfuseline_la_LIBADD += libcpu_avx2.la libcpu_avx512.la
endif

include lib/gpu/local.mk
