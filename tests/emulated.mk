# "make check-emulated TINYGRAD=FOLDER": the AMD code as it was built, run by an emulator of instructions. See tests/emulated/check.py; not a
# part of "make check", since the emulator is in no package.
EXTRA_DIST += $(addprefix tests/emulated/,check.py machine.py plugin.py walk.c)

emulated_made =

if GPU_CODE
if HAVE_CXX
if HAVE_CMOCKA
# The tests of right values on stand-ins once more, as libraries, for a process that has the emulator.
emulated_tests = $(addprefix tests/emulated/,test_column_sum.so test_copy.so test_double_backward.so test_gated.so test_gated_double_backward.so test_variants.so)
$(emulated_tests): tests/emulated/%.so: tests/%.c tests/on_standin.c Makefile libfuseline.la
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(DEFS) $(DEFAULT_INCLUDES) $(tests_standin_cppflags) $(CPPFLAGS) $(tests_cflags) $(CFLAGS) -fPIC \
	    -shared -o $@ $(srcdir)/tests/$*.c $(srcdir)/tests/on_standin.c -L.libs -lfuseline $(CMOCKA_LIBS) -lm
tests/emulated/walk.so: tests/emulated/walk.c Makefile
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(AM_CFLAGS) -O2 -fPIC -shared -o $@ $(srcdir)/tests/emulated/walk.c
emulated_made += $(emulated_tests) tests/emulated/walk.so
CLEANFILES += $(emulated_made)
emulated_made += tests/standin/libamdhip64.so tests/standin/libcuda.so
endif
endif
endif

check-emulated: all $(emulated_made)
	@test -n '$(emulated_made)' || { echo 'check-emulated needs GPU code, a C++17 compiler and cmocka: see the end of what configure prints' >&2; exit 1; }
	$(PYTHON) $(srcdir)/tests/emulated/check.py --build . --tinygrad '$(TINYGRAD)' $(EMULATED)
.PHONY: check-emulated
