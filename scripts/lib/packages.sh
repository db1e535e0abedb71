# shellcheck shell=bash
# What the build needs of the system, found by trying it, and the Debian and Ubuntu packages that provide it.

missing_required=() # packages without which nothing can be built
missing_optional=() # packages without which less is built
missing_names=()    # the same in words, for systems without apt-get

# need NAME PACKAGES COMMAND...: notes PACKAGES as required unless the command succeeds.
need() {
    local name=$1 packages=$2
    shift 2
    "$@" >/dev/null 2>&1 && return 0
    missing_names+=("$name")
    read -ra packages <<<"$packages"
    missing_required+=("${packages[@]}")
}

# have COMMAND...: whether all of them are there.
have() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null 2>&1 || return 1
    done
}

# can_compile COMPILER LANGUAGE: whether the compiler makes a program, which needs the C library's headers too.
can_compile() {
    printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' | "$1" -x "$2" -o /dev/null -
}

# can_make_environments PYTHON: whether this Python is new enough and has what virtual environments need.
can_make_environments() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))'
}

# find_missing PYTHON [tests]: fills missing_required.
find_missing() {
    local python=$1 purpose=${2:-} version
    missing_required=() missing_names=()
    need "a C compiler" "gcc libc6-dev" can_compile "${CC:-cc}" c
    need "make" "make" have make
    need "autoconf" "autoconf" have autoreconf
    need "automake 1.16 or newer" "automake" have automake
    need "libtool" "libtool" have libtoolize
    need "pkg-config" "pkg-config" have pkg-config
    # A system's own Python comes in pieces; the piece is named after its version.
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || version=
    if [[ -n $version && $(command -v "$python") == /usr/bin/* ]]; then
        need "Python's venv and ensurepip" "python$version-venv" can_make_environments "$python"
    elif [[ -z $version ]]; then
        need "Python 3.9 or newer" "python3 python3-venv" can_make_environments "$python"
    fi
    if [[ $purpose == tests ]]; then
        need "cmocka" "libcmocka-dev" pkg-config --exists cmocka
        need "a C++ compiler" "g++" can_compile "${CXX:-c++}" c++
    fi
}

# gpu_compiler_version: the newest clang at hand that has its linker, its bundler, and the objcopy that the bundler runs, or 0.
gpu_compiler_version() {
    local version
    for version in {30..14}; do
        if have "clang++-$version" "ld.lld-$version" "clang-offload-bundler-$version" "llvm-objcopy-$version"; then
            echo "$version"
            return
        fi
    done
    echo 0
}

# newest_packaged_clang: the highest N of which the package index has clang-N, lld-N, clang-tools-N and llvm-N, or 0.
newest_packaged_clang() {
    local version
    for version in $(apt-cache --names-only search '^clang-[0-9]+$' 2>/dev/null |
        sed -n 's/^clang-\([0-9]*\) .*/\1/p' | sort -rn); do
        if is_packaged "lld-$version" && is_packaged "clang-tools-$version" && is_packaged "llvm-$version"; then
            echo "$version"
            return
        fi
    done
    echo 0
}

# find_gpu_compiler: fills missing_optional. From clang 17 on, gfx1151 and all that is older is known; an older clang is kept
# only where there is none newer. Other compilers (hipcc, amdclang++) are used as well, but often cannot build for NVIDIA.
find_gpu_compiler() {
    local here packaged
    missing_optional=()
    here=$(gpu_compiler_version)
    ((here < 17)) || return 0
    packaged=$(newest_packaged_clang)
    ((packaged > here)) && missing_optional=("clang-$packaged" "lld-$packaged" "clang-tools-$packaged" "llvm-$packaged")
    return 0
}

# is_packaged PACKAGE: whether apt-get could install it.
is_packaged() {
    [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) == *"Candidate: "[!\(]* ]]
}

# run_as_root COMMAND...: directly, or by sudo where that asks nothing.
run_as_root() {
    if [[ $(id -u) == 0 ]]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

may_install() {
    have apt-get && { [[ $(id -u) == 0 ]] || sudo -n true >/dev/null 2>&1; }
}

apt_update() {
    run_as_root apt-get update
}

apt_install() {
    run_as_root env DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends -o DPkg::Lock::Timeout=300 install "$@"
}

# index_is_usable PACKAGE...: whether the package index is there and knows every package.
index_is_usable() {
    local package
    for package in gcc "$@"; do
        is_packaged "$package" || return 1
    done
}

# install_packages LOGS PYTHON [tests]: installs what is missing, or ends the script with what to install. GPU compilers
# are wished for, not needed.
install_packages() {
    local logs=$1 python=$2 purpose=${3:-}
    find_missing "$python" "$purpose"
    if ! have apt-get; then
        ((${#missing_required[@]} == 0)) || die "This system lacks:$(printf '\n    %s' "${missing_names[@]}")
Install them (this system has no apt-get, so this script cannot), then run it again."
        [[ $(gpu_compiler_version) != 0 ]] || note_gpu_compiler
        return 0
    fi
    find_gpu_compiler
    if ((${#missing_required[@]} == 0)) && [[ $(gpu_compiler_version) != 0 ]]; then
        # A newer compiler would only add targets; it is not worth stopping for.
        ((${#missing_optional[@]})) || return 0
    fi
    if ! may_install; then
        if ((${#missing_required[@]})); then
            die "Packages are missing, and installing them needs root (or sudo without a password). Run this, then try again:

    sudo apt-get update
    sudo apt-get install -y ${missing_required[*]} ${missing_optional[*]:-clang lld clang-tools llvm}"
        fi
        [[ $(gpu_compiler_version) != 0 ]] || note_gpu_compiler
        return 0
    fi
    if ! index_is_usable "${missing_required[@]}" || { [[ $(gpu_compiler_version) == 0 ]] && ((${#missing_optional[@]} == 0)); }; then
        run_step "updating the package index" "$logs/apt-update.log" apt_update || true # an index in part may do
        find_gpu_compiler
    fi
    if ((${#missing_required[@]} + ${#missing_optional[@]})); then
        say "  packages to install: ${missing_required[*]} ${missing_optional[*]}"
    fi
    if ((${#missing_required[@]})); then
        run_step "installing packages" "$logs/apt-install.log" apt_install "${missing_required[@]}" ||
            { run_step "updating the package index" "$logs/apt-update.log" apt_update &&
                run_step "installing packages" "$logs/apt-install.log" apt_install "${missing_required[@]}"; } ||
            die "The packages could not be installed: ${missing_required[*]}"
    fi
    if ((${#missing_optional[@]})); then
        run_step "installing the GPU compiler" "$logs/apt-clang.log" apt_install "${missing_optional[@]}" ||
            say "  The GPU compiler could not be installed: ${missing_optional[*]}"
    fi
    find_missing "$python" "$purpose"
    ((${#missing_required[@]} == 0)) || die "Still missing after the installation:$(printf '\n    %s' "${missing_names[@]}")"
    [[ $(gpu_compiler_version) != 0 ]] || note_gpu_compiler
}

note_gpu_compiler() {
    say "  No clang with lld, clang-offload-bundler and llvm-objcopy is here. Unless configure finds hipcc or amdclang++, there will be no"
    say "  code for AMD GPUs. On Debian and Ubuntu clang-N, lld-N, clang-tools-N and llvm-N bring it, N being 17 or more for gfx1151."
}
