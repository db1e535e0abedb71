#!/bin/sh
# What the library exports is what its headers declare, no more and no less.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch

# Every header by itself, so that one that fuseline.h forgets is seen too.
for header in "$srcdir"/include/fuseline/*.h; do
    # shellcheck disable=SC2086 # several words each
    $CC -E -P -I"$srcdir/include" $DLPACK_CPPFLAGS "$header" || exit 99
done | tr '\n' ' ' | grep -o 'fuseline_[a-z0-9_]* *([^)]*) *;' | sed 's/ *(.*//' | LC_ALL=C sort -u >"$folder/declared"

$NM -D "$(library)" | grep -v ' [UwvA] ' | sed 's/.* //; s/@.*//' | LC_ALL=C sort -u >"$folder/exported"
$NM -D "$(library)" | grep ' T .*@@FUSELINE_' | sed 's/.* //; s/@.*//' | LC_ALL=C sort -u >"$folder/versioned"

check "headers declare something" grep -qx fuseline_swish_forward "$folder/declared"
check "exports equal the headers' prototypes" diff "$folder/declared" "$folder/exported"
check "every export is a function with a version" diff "$folder/exported" "$folder/versioned"
plan
