# shellcheck shell=bash
# The library: configured and built in build/, installed into .venv.

: "${root:?}" "${venv:?}"
build=$root/build
build_record=$build/fuseline-configured # what the build was configured for; written last

# check_folder: ends the script where the folder's name would break make and libtool.
check_folder() {
    case $root in
    *[[:space:]\"\#\$\&\'\`\\\;\(\)\<\>\|\*\?\[\]\{\}%,~!:]*)
        die "The folder's name has a space or another character that make and libtool cannot handle:
    $root
Move the clone to a folder whose whole name consists of letters, digits and . _ - + / only." ;;
    esac
    [[ ! -e $root/config.status ]] || die "$root itself is configured, which rules out a build in another folder.
Run \"make distclean\" there first."
}

# describe_build: everything that decides whether the build can stay as it is: the build system, the compilers, the options.
describe_build() {
    local compiler
    echo "folder=$root"
    echo "files=$(cd "$root" && find . \( -path ./build -o -path ./.venv -o -path ./.git \) -prune -o \
        \( -name configure.ac -o -name Makefile.am -o -name autogen.sh -o -name '*.mk' -o -path './m4/fuseline*.m4' -o -name '*.in' \
        ! -name Makefile.in ! -name config.h.in \) -type f -print0 | sort -z | xargs -0 cat | cksum)"
    echo "environment=$("$venv/bin/python" -c 'import sys; print(sys.version.replace("\n", " "))')"
    echo "cmocka=$(pkg-config --modversion cmocka 2>/dev/null || echo none)"
    echo "variables=${CC:-} ${CFLAGS:-} ${CPPFLAGS:-} ${LDFLAGS:-} ${HIPCC:-} ${HIPCCFLAGS:-} ${PTXCC:-} ${PTXFLAGS:-}"
    for compiler in "${CC:-cc}" "clang++-$(gpu_compiler_version)" hipcc amdclang++ "${ROCM_PATH:-/opt/rocm}/bin/hipcc"; do
        if have "$compiler"; then
            echo "compiler=$(command -v "$compiler"): $("$compiler" --version 2>/dev/null | sed -n 1p)"
        fi
    done
    echo "options=$*"
}

# make_configure: ./configure, from configure.ac.
make_configure() {
    "$root/autogen.sh"
}

# configure_build OPTION...: an empty build/, but for its logs, then configure.
configure_build() {
    local dlpack
    dlpack=$("$venv/bin/python" -c 'import importlib.util, os
print(os.path.join(os.path.dirname(importlib.util.find_spec("tvm_ffi").origin), "include"))') &&
        find "$build" -mindepth 1 -maxdepth 1 ! -name logs ! -name lock -exec rm -rf {} + &&
        cd "$build" && ../configure --prefix="$venv" --with-dlpack="$dlpack" PYTHON="$venv/bin/python" "$@"
}

compile() {
    make -C "$build" -j"$(nproc)"
}

# install_library: the package's folder goes first, so that files of an older version do not stay behind.
install_library() {
    rm -rf "$venv"/lib/python*/site-packages/fuseline && make -C "$build" install
}

# prepare_build LOGS OPTION...: everything up to a library that .venv/bin/python can import.
prepare_build() {
    local logs=$1 description fresh=no
    shift
    description=$(describe_build "$@")
    if [[ ! -r $build_record || $(<"$build_record") != "$description" || ! -x $root/configure || ! -r $build/Makefile ]]; then
        rm -f "$build_record"
        run_step "making configure" "$logs/autogen.log" make_configure || die "The build system could not be made. The whole log: $logs/autogen.log"
        # A subshell, for its change of folder.
        (run_step "configuring" "$logs/configure.log" configure_build "$@") ||
            die "The library could not be configured. The whole log: $logs/configure.log (and $build/config.log)"
        printf '%s\n' "$description" >"$build_record"
        fresh=yes
    fi
    if ! run_step "building" "$logs/make.log" compile; then
        # What an older version left behind can break a build, such as a dependency on a header that is gone.
        [[ $fresh == no ]] || die "The library could not be built. The whole log: $logs/make.log"
        say "  Once more, from nothing:"
        rm -f "$build_record"
        prepare_build "$logs" "$@"
        return
    fi
    run_step "installing into .venv" "$logs/install.log" install_library || die "The library could not be installed. The whole log: $logs/install.log"
    (cd / && "$venv/bin/python" -m fuseline info) >"$logs/info.log" 2>&1 ||
        die "The library was installed, but .venv/bin/python -m fuseline info fails:
$(tail -n 25 "$logs/info.log")"
}
