EXTRA_DIST += kernels/local.mk
