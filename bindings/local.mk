# The Python package: plain files, and one that tells it where the library was installed.
python_package = \
	bindings/python/fuseline/__init__.py \
	bindings/python/fuseline/__main__.py \
	bindings/python/fuseline/_adapter.py \
	bindings/python/fuseline/_builtin.py \
	bindings/python/fuseline/_call.py \
	bindings/python/fuseline/_cupy.py \
	bindings/python/fuseline/_differentiation.py \
	bindings/python/fuseline/_dlpack.py \
	bindings/python/fuseline/_dtensor.py \
	bindings/python/fuseline/_dynamo.py \
	bindings/python/fuseline/_errors.py \
	bindings/python/fuseline/_gated_second.py \
	bindings/python/fuseline/_generic.py \
	bindings/python/fuseline/_gpu_runtime.py \
	bindings/python/fuseline/_jax.py \
	bindings/python/fuseline/_kernels.py \
	bindings/python/fuseline/_library.py \
	bindings/python/fuseline/_numpy.py \
	bindings/python/fuseline/_overlap.py \
	bindings/python/fuseline/_registered.py \
	bindings/python/fuseline/_tensor.py \
	bindings/python/fuseline/_torch.py
# A Python function may serve several operators, such as both forms of gelu: those without a module of their own.
python_operators = \
	bindings/python/fuseline/operators/__init__.py \
	bindings/python/fuseline/operators/_gated.py \
	$(foreach operator,$(OPERATORS),$(patsubst $(srcdir)/%,%, \
	    $(wildcard $(srcdir)/bindings/python/fuseline/operators/$(operator).py)))
python_bench = \
	bindings/python/fuseline/bench/__init__.py \
	bindings/python/fuseline/bench/_cases.py \
	bindings/python/fuseline/bench/_machine.py \
	bindings/python/fuseline/bench/_operators.py \
	bindings/python/fuseline/bench/_plot.py \
	bindings/python/fuseline/bench/_report.py \
	bindings/python/fuseline/bench/_run.py \
	bindings/python/fuseline/bench/_timing.py
python_torch = \
	bindings/python/fuseline/torch/__init__.py \
	bindings/python/fuseline/torch/_expression.py \
	bindings/python/fuseline/torch/_formulas.py \
	bindings/python/fuseline/torch/_replace.py \
	bindings/python/fuseline/torch/nn.py
EXTRA_DIST += $(python_package) $(python_bench) $(python_operators) $(python_torch) bindings/python/fuseline/_config.py.in

if PYTHON_PACKAGE
fuselinepythondir = $(pythondir)/fuseline
fuselinepython_PYTHON = $(python_package)
fuselinebenchdir = $(pythondir)/fuseline/bench
nodist_fuselinebench_PYTHON = $(python_bench)
fuselineoperatorsdir = $(pythondir)/fuseline/operators
# (nodist, since automake loses the pattern in its own list of what to distribute; EXTRA_DIST has these files.)
nodist_fuselineoperators_PYTHON = $(python_operators)
fuselinetorchdir = $(pythondir)/fuseline/torch
nodist_fuselinetorch_PYTHON = $(python_torch)
nodist_fuselinepython_PYTHON = bindings/python/fuseline/_config.py
CLEANFILES += bindings/python/fuseline/_config.py

# The installed file name is the SONAME, which is there without a development package.
bindings/python/fuseline/_config.py: bindings/python/fuseline/_config.py.in Makefile libfuseline.la
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	soname=$$($(SED) -n "s/^dlname='\(.*\)'/\1/p" libfuseline.la) && \
	$(SED) -e 's|@libdir[@]|$(libdir)|' -e "s|@soname[@]|$$soname|" \
	    $(srcdir)/bindings/python/fuseline/_config.py.in > $@.tmp && mv $@.tmp $@
endif
