# What every test script starts from: results in TAP. The scripts run in the build tree; srcdir and builddir are absolute.
# shellcheck shell=sh
# shellcheck disable=SC2154 # srcdir and builddir come from the Makefile

number=0

# check NAME COMMAND...: one case; the command's output is shown if it fails.
check() {
    name=$1
    shift
    number=$((number + 1))
    if output=$("$@" 2>&1); then
        echo "ok $number - $name"
    else
        echo "not ok $number - $name"
        printf '%s\n' "$output" | sed 's/^/# /'
    fi
}

skip() {
    number=$((number + 1))
    echo "ok $number - $1 # SKIP $2"
}

plan() {
    echo "1..$number"
}

# The library in the build tree: the file, not a link to it.
library() {
    soname=$(sed -n "s/^dlname='\(.*\)'/\1/p" "$builddir/libfuseline.la")
    echo "$builddir/.libs/$soname"
}

# A folder of the script's own, removed at its end. In the build tree, where programs can run: /tmp may forbid it.
scratch() {
    folder=$(mktemp -d "$builddir/tests/scratch.XXXXXX") || exit 99
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 99' HUP INT TERM
}
