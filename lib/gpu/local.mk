libfuseline_la_SOURCES += lib/gpu/gpu.h
EXTRA_DIST += lib/gpu/tuning.def lib/gpu/tuning.h lib/gpu/walk.h

if GPU_CODE
libfuseline_la_SOURCES += \
	lib/gpu/cuda.c \
	lib/gpu/find.c lib/gpu/find.h \
	lib/gpu/geometry.c lib/gpu/geometry.h \
	lib/gpu/hip.c \
	lib/gpu/images.c lib/gpu/images.h \
	lib/gpu/info.c \
	lib/gpu/launch.c \
	lib/gpu/module.c lib/gpu/module.h \
	lib/gpu/runtime.c lib/gpu/runtime.h \
	lib/gpu/symbols-cuda.def \
	lib/gpu/symbols-hip.def \
	lib/gpu/tuning.c \
	lib/gpu/vendor.h
else
libfuseline_la_SOURCES += lib/gpu/none.c
endif
