#!/bin/sh
# "make install" puts everything under DESTDIR and the prefix and nowhere else, and what it installs works from there.
. "${srcdir:?is set by make check}/tests/tap.sh"
scratch
unset MAKEFLAGS MFLAGS MAKELEVEL DESTDIR

install_tree() {
    "${MAKE-make}" -C "$1" install DESTDIR="$2"
}

# files FOLDER: every file and link below it, without the compiled Python files, which depend on the interpreter.
files() {
    (cd "$1" && find . ! -type d ! -name '*.pyc' | LC_ALL=C sort)
}

# make_variable NAME FOLDER: what a build tree's Makefile says.
make_variable() {
    # shellcheck disable=SC2016 # make's variable, not the shell's
    printf 'include Makefile\nshow-variable:\n\t@echo "$(%s)"\n' "$1" >"$folder/show.mk"
    "${MAKE-make}" -s -C "$2" -f "$folder/show.mk" show-variable
}

# expected_files BUILD: what an installation of this build consists of, with its folders.
expected_files() {
    libdir=$(make_variable libdir "$1")
    version=$(sed -n "s/^library_names='\([^ ]*\).*/\1/p" "$1/libfuseline.la")
    soname=$(sed -n "s/^dlname='\(.*\)'/\1/p" "$1/libfuseline.la")
    {
        for header in "$srcdir"/include/fuseline/*.h; do
            echo "$(make_variable includedir "$1")/fuseline/$(basename "$header")"
        done
        echo "$libdir/libfuseline.la"
        echo "$libdir/libfuseline.so"
        echo "$libdir/$soname"
        echo "$libdir/$version"
        echo "$libdir/pkgconfig/fuseline.pc"
        if [ -n "$(make_variable fuselinepythondir "$1")" ]; then
            (cd "$srcdir/bindings/python/fuseline" && find . -name '*.py' ! -name _config.py; echo ./_config.py) |
                sed "s|^\.|$(make_variable fuselinepythondir "$1")|"
        fi
    } | sed 's|//*|/|g; s|^/|./|' | LC_ALL=C sort -u
}

same_files() {
    files "$2" >"$folder/found"
    expected_files "$1" >"$folder/expected"
    diff "$folder/expected" "$folder/found"
}

# O12
relative_links() {
    find "$1" -type l | while read -r link; do
        case $(readlink "$link") in
            /*) echo "$link -> $(readlink "$link")" ;;
        esac
    done >"$folder/absolute"
    cat "$folder/absolute"
    ! [ -s "$folder/absolute" ]
}

# O6: no installed text leads back to the build tree or into DESTDIR. (The library's debug information may name its sources.)
no_trace() {
    ! grep -rF -e "$1" -e "$builddir" --include='*.la' --include='*.pc' --include='*.py' --include='*.h' "$1"
}

no_rpath() {
    find "$1" -name 'libfuseline.so*' -type f -exec readelf -dW {} \; >"$folder/dynamic"
    grep -q SONAME "$folder/dynamic" && ! grep -E 'RPATH|RUNPATH' "$folder/dynamic"
}

cat >"$folder/program.c" <<'END'
#include <fuseline/fuseline.h>
#include <stdio.h>
int main(void)
{
    float x[3] = {-1, 0, 1}, y[3];
    int64_t shape[] = {3};
    DLTensor from = {x, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, NULL, 0}, to = from;
    to.data = y;
    if (fuseline_swish_forward(&from, 1.0, NULL, &to) != FUSELINE_OK)
        return puts(fuseline_last_error()), 1;
    return y[2] > 0.7310f && y[2] < 0.7311f ? 0 : 2;
}
END

# uses_it SYSROOT LIBDIR: compiles the program with pkg-config's flags and runs it.
uses_it() {
    flags=$(PKG_CONFIG_SYSROOT_DIR=$1 PKG_CONFIG_LIBDIR=$1$2/pkgconfig pkg-config --cflags --libs fuseline) || return 1
    flags=$(echo "$flags" | sed "s|-I$1\($dlpack_folder\)|-I\1|g") # that header is not ours to install
    # shellcheck disable=SC2086 # several words each
    $CC $CFLAGS "$folder/program.c" $flags -Wl,-rpath,"$1$2" -o "$folder/program" && "$folder/program"
}
dlpack_folder=$(echo "$DLPACK_CPPFLAGS" | sed 's/^-I//')

# With the prefix that this tree was configured for, under DESTDIR: O3.
stage=$folder/stage
check "installs under DESTDIR" install_tree "$builddir" "$stage"
check "every file is at DESTDIR + prefix, and no other is" same_files "$builddir" "$stage"
check "links are relative" relative_links "$stage"
check "nothing leads to the build tree or DESTDIR" no_trace "$stage"
if command -v readelf >/dev/null; then
    check "no RPATH and no RUNPATH" no_rpath "$stage"
else
    skip "no RPATH and no RUNPATH" "no readelf"
fi
if command -v pkg-config >/dev/null; then
    check "a C program finds it by pkg-config" uses_it "$stage" "$(make_variable libdir "$builddir")"
else
    skip "a C program finds it by pkg-config" "no pkg-config"
fi
check "installs a second time over the first" install_tree "$builddir" "$stage"
check "uninstalls" "${MAKE-make}" -C "$builddir" uninstall DESTDIR="$stage"
check "and leaves no file" test -z "$(files "$stage")"

# Other trees of the same source: a build outside of it with --prefix=/ (O11), and one with a prefix that is really used (O13).
# Each is configured anew, so this is the slow part; a source tree that was configured itself allows no other.
configure_and_install() { # FOLDER PREFIX DESTDIR
    mkdir -p "$1" && cd "$1" || return 1
    "$srcdir/configure" --quiet --cache-file="$folder/config.cache" --prefix="$2" --without-gpu \
        --with-dlpack="${dlpack_folder:-yes}" CC="$CC" CFLAGS=-O1 &&
        "${MAKE-make}" -j2 && "${MAKE-make}" install DESTDIR="$3"
}

imports_it() {
    (cd "$folder" && env -u LD_LIBRARY_PATH PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$1" "$PYTHON" -m fuseline info --json) |
        grep '"operators"'
}

if [ -e "$srcdir/config.status" ]; then
    for name in "--prefix=/ stays under DESTDIR" "--prefix=/: the same files" "--prefix=/: a C program finds it by pkg-config" \
        "--prefix=FOLDER/ installs" "--prefix=FOLDER/: the same files" "Python finds the library without help"; do
        skip "$name" "the source tree is configured itself"
    done
else
    check "--prefix=/ stays under DESTDIR" configure_and_install "$folder/build-root" / "$folder/root"
    check "--prefix=/: the same files" same_files "$folder/build-root" "$folder/root"
    if command -v pkg-config >/dev/null; then
        check "--prefix=/: a C program finds it by pkg-config" uses_it "$folder/root" /lib
    else
        skip "--prefix=/: a C program finds it by pkg-config" "no pkg-config"
    fi
    place=$folder/place
    check "--prefix=FOLDER/ installs" configure_and_install "$folder/build-place" "$place/" ""
    same_under_place() {
        files "$place" | sed "s|^\.|.$place|" >"$folder/found"
        expected_files "$folder/build-place" >"$folder/expected"
        diff "$folder/expected" "$folder/found"
    }
    check "--prefix=FOLDER/: the same files" same_under_place
    pythondir=$(make_variable pythondir "$folder/build-place")
    if [ -n "$(make_variable fuselinepythondir "$folder/build-place")" ]; then
        check "Python finds the library without help" imports_it "$pythondir"
    else
        skip "Python finds the library without help" "no Python package"
    fi
fi
plan
