fuselineincludedir = $(includedir)/fuseline
fuselineinclude_HEADERS = \
	include/fuseline/conventions.h \
	include/fuseline/fuseline.h \
	include/fuseline/info.h \
	include/fuseline/python.h \
	include/fuseline/status.h \
	include/fuseline/tensor.h \
	$(OPERATORS:%=include/fuseline/%.h)
