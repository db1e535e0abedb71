libfuseline_la_SOURCES += \
	lib/gpu/gpu.h \
	lib/gpu/none.c
