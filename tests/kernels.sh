#!/bin/sh
# The GPU kernels' source on the CPU, for each dtype: kernels.cc. Needs a C++ compiler.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch

cxx=
for candidate in "$CXX" c++ g++ clang++ clang++-19; do
    if [ -n "$candidate" ] && echo 'int main() { return 0; }' | $candidate -x c++ - -o "$folder/probe" 2>/dev/null; then
        cxx=$candidate
        break
    fi
done

includes="-I$srcdir/lib -I$srcdir/include $DLPACK_CPPFLAGS"

# build DTYPE
build() {
    # shellcheck disable=SC2086 # several words each
    ${CC:-cc} -std=gnu11 -O2 -ffp-contract=off -c $includes -o "$folder/geometry.o" "$srcdir/lib/gpu/geometry.c" &&
        ${CC:-cc} -std=gnu11 -O2 -ffp-contract=off -c $includes -o "$folder/rate.o" "$srcdir/lib/rate.c" &&
        $cxx -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Werror -DFL_DTYPES="$1" -DFL_OPERAND="$1" \
            -DFL_RESULT="$1" $includes -o "$folder/$1" \
            "$srcdir/tests/kernels.cc" "$folder/geometry.o" "$folder/rate.o" -lm
}

# build_column_sum DTYPE
build_column_sum() {
    # shellcheck disable=SC2086 # several words each
    $cxx -std=c++17 -O2 -ffp-contract=off -Wall -Wextra -Werror -DFL_DTYPES="$1" -DFL_OPERAND="$1" -DFL_RESULT="$1" \
        $includes -o "$folder/column_sum-$1" "$srcdir/tests/column_sum_kernel.cc" -pthread
}

for dtype in float16 bfloat16 float32 float64; do
    if [ -n "$cxx" ]; then
        check "kernels build for $dtype" build "$dtype"
        check "kernels compute $dtype" "$folder/$dtype"
        check "the kernel of column_sum builds for $dtype" build_column_sum "$dtype"
        check "the kernel of column_sum computes $dtype" "$folder/column_sum-$dtype"
    else
        skip "kernels compute $dtype" "no C++ compiler"
    fi
done
plan
