#!/bin/sh
# Each public header compiles alone, without a warning, as C and as C++.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch

system_flags=$(echo "$DLPACK_CPPFLAGS" | sed 's/-I */-isystem /g')
warnings="-Wall -Wextra -Wstrict-prototypes -Werror"
cxx=
for candidate in "$CXX" c++ g++ clang++ clang++-19; do
    if [ -n "$candidate" ] && echo 'int main() { return 0; }' | $candidate -x c++ -fsyntax-only - 2>/dev/null; then
        cxx=$candidate
        break
    fi
done

for path in "$srcdir"/include/fuseline/*.h; do
    header=fuseline/$(basename "$path")
    # Twice, so that the include guard is tried too.
    printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$folder/alone.c"
    for standard in c11 gnu99; do
        # shellcheck disable=SC2086 # several words each
        check "$header as $standard" $CC -std=$standard -pedantic $warnings -I"$srcdir/include" $system_flags -fsyntax-only \
            "$folder/alone.c"
    done
    if [ -z "$cxx" ]; then
        skip "$header as C++" "no C++ compiler"
        continue
    fi
    cp "$folder/alone.c" "$folder/alone.cc"
    for standard in c++11 c++17; do
        # shellcheck disable=SC2086 # several words each
        check "$header as $standard" $cxx -std=$standard -pedantic -Wall -Wextra -Werror -I"$srcdir/include" $system_flags \
            -fsyntax-only "$folder/alone.cc"
    done
done

# From C++ the functions have their C names.
if [ -n "$cxx" ]; then
    cat >"$folder/call.cc" <<'END'
#include <fuseline/fuseline.h>
int main()
{
    DLTensor *tensor = nullptr;
    return fuseline_swish_forward(tensor, 1, nullptr, tensor) == FUSELINE_ERROR_ARGUMENT && *fuseline_version() != 0 ? 0 : 1;
}
END
    # shellcheck disable=SC2086 # several words
    check "a C++ program links" $cxx -std=c++11 -I"$srcdir/include" $system_flags "$folder/call.cc" "$(library)" \
        -Wl,-rpath,"$builddir/.libs" -Wl,--allow-shlib-undefined -o "$folder/call"
    case $CFLAGS in
        *-fsanitize*) skip "and runs" "the library's sanitizer wants to be in the program too" ;;
        *) check "and runs" "$folder/call" ;;
    esac
else
    skip "a C++ program links" "no C++ compiler"
    skip "and runs" "no C++ compiler"
fi
plan
