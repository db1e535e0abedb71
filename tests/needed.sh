#!/bin/sh
# The library by itself: it links no GPU library and no Python, and asks for no executable stack.
. "${srcdir:?is set by make check}/tests/tap.sh"

if ! command -v readelf >/dev/null; then
    echo "1..0 # SKIP no readelf"
    exit 0
fi
dynamic=$(readelf -dW "$(library)") || exit 99
segments=$(readelf -lW "$(library)") || exit 99

has() {
    echo "$2" | grep -E "$1"
}

lacks() {
    ! has "$1" "$2"
}

check "names the libraries that it needs" has 'NEEDED.*libc\.so' "$dynamic"
check "needs no GPU library" lacks 'NEEDED.*\[lib(amdhip|hip|hsa|roc|cuda|cudart|nvrtc|nv)' "$dynamic"
check "needs no Python and no framework" lacks 'NEEDED.*\[lib(python|torch|c10)' "$dynamic"
check "needs no C++ runtime" lacks 'NEEDED.*\[lib(stdc|c\+\+)' "$dynamic"
check "has a numbered SONAME" has 'SONAME.*\[libfuseline\.so\.[0-9]+\]' "$dynamic"
check "is free of text relocations" lacks 'TEXTREL' "$dynamic"
check "tells what its stack is" has 'GNU_STACK' "$segments"
check "asks for no executable stack" lacks 'GNU_STACK.*E ' "$segments"
check "has no segment both writable and executable" lacks 'RWE' "$segments"
plan
