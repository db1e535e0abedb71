# Tests. Every program and script speaks TAP, so that each case counts by itself.
TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
AM_TESTS_ENVIRONMENT = \
	export srcdir='$(abs_srcdir)' builddir='$(abs_builddir)' CMOCKA_MESSAGE_OUTPUT=TAP; \
	export CC='$(CC)' CXX='$(CXX)' NM='$(NM)' DLPACK_CPPFLAGS='$(DLPACK_CPPFLAGS)' SED='$(SED)' PYTHON='$(PYTHON)';

tests_cppflags = $(AM_CPPFLAGS) -I$(top_srcdir)/lib -I$(top_srcdir)/tests
tests_cflags = $(AM_CFLAGS) $(CMOCKA_CFLAGS)

if HAVE_CMOCKA
C_TESTS =
check_PROGRAMS += $(C_TESTS)
TESTS += $(C_TESTS)
endif
