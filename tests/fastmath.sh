#!/bin/sh
# L30: flags that give up inf and nan stop the build with a clear message, since the formulas rest on both.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch

compile() {
    # shellcheck disable=SC2086 # several words each
    $CC -std=gnu11 -I"$builddir" -I"$srcdir/include" $DLPACK_CPPFLAGS "$@" -c "$srcdir/lib/cpu/base.c" -o "$folder/base.o"
}

refuses() {
    if output=$(compile "$1" 2>&1); then
        echo "compiled with $1"
        return 1
    fi
    echo "$output"
    echo "$output" | grep -q 'error.*fuseline keeps inf and nan'
}

check "compiles as it is" compile -O2
check "refuses -ffast-math" refuses -ffast-math
check "refuses -ffinite-math-only" refuses -ffinite-math-only
check "refuses -Ofast" refuses -Ofast
plan
