# The scripts, the examples and the benchmarks, for the tarball.
EXTRA_DIST += \
	bench/tutorial.py \
	examples/digits.py \
	examples/tutorial_checks.py \
	scripts/lib/build.sh \
	scripts/lib/counts.sh \
	scripts/lib/environment.py \
	scripts/lib/packages.sh \
	scripts/lib/python.sh \
	scripts/lib/steps.sh \
	scripts/prepare \
	scripts/quickstart \
	scripts/requirements.txt \
	scripts/test \
	tests/requirements.txt
