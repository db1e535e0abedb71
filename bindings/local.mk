# The Python package: plain files, and one that tells it where the library was installed.
python_package = \
	bindings/python/fuseline/__init__.py
EXTRA_DIST += $(python_package) bindings/python/fuseline/_config.py.in

if PYTHON_PACKAGE
fuselinepythondir = $(pythondir)/fuseline
fuselinepython_PYTHON = $(python_package)
nodist_fuselinepython_PYTHON = bindings/python/fuseline/_config.py
CLEANFILES += bindings/python/fuseline/_config.py

# The installed file name is the SONAME, which is there without a development package.
bindings/python/fuseline/_config.py: bindings/python/fuseline/_config.py.in Makefile libfuseline.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	soname=$$($(SED) -n "s/^dlname='\(.*\)'/\1/p" libfuseline.la) && \
	$(SED) -e 's|@libdir[@]|$(libdir)|' -e "s|@soname[@]|$$soname|" \
	    $(srcdir)/bindings/python/fuseline/_config.py.in > $@.tmp && mv $@.tmp $@
endif
