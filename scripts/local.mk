# The scripts, the examples and the benchmarks, with their tests, for the tarball.
EXTRA_DIST += \
	bench/call_cost.py \
	bench/eager.py \
	bench/tutorial.py \
	examples/ddp.py \
	examples/digits.py \
	examples/language_model.py \
	examples/tutorial_checks.py \
	scripts/codegen.py \
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
	tests/requirements.txt \
	tests/scripts/conftest.py \
	tests/scripts/test_codegen.py \
	tests/scripts/test_counts.py \
	tests/scripts/test_environment.py \
	tests/scripts/test_examples.py \
	tests/scripts/test_prepare.py
