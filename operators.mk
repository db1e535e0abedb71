# The operators, one line each. Their headers, kernels and GPU modules follow from the names.
OPERATOR_SOURCES = \
	lib/operators/column_sum.c \
	lib/operators/copy.c \
	lib/operators/geglu.c \
	lib/operators/geglu_tanh.c \
	lib/operators/gelu.c \
	lib/operators/gelu_tanh.c \
	lib/operators/reglu.c \
	lib/operators/relu2.c \
	lib/operators/swiglu.c \
	lib/operators/swish.c
OPERATORS = $(notdir $(basename $(OPERATOR_SOURCES)))
