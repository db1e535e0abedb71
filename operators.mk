# The operators, one line each. Their headers, kernels and GPU modules follow from the names.
OPERATOR_SOURCES = \
	lib/operators/swish.c
OPERATORS = $(notdir $(basename $(OPERATOR_SOURCES)))
