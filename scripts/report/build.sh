#!/usr/bin/env bash
# The library: configured in a folder of its own, built, and installed into the report's environment.
#
#     scripts/report/build.sh FOLDER ENVIRONMENT OPTION...      options: configure's
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
folder=$1 venv=$2
shift 2
# shellcheck source=scripts/lib/steps.sh
source "$root/scripts/lib/steps.sh"
# shellcheck source=scripts/lib/build.sh
source "$root/scripts/lib/build.sh"
build=$folder # scripts/prepare's own stays as it is
# shellcheck source=scripts/report/ours.sh
source "$root/scripts/report/ours.sh"
check_ours "$build"

check_folder
[[ -x $root/configure ]] || make_configure
options=(--prefix="$venv" PYTHON="$venv/bin/python" "$@")
if dlpack=$("$venv/bin/python" -c 'import importlib.util, os
print(os.path.join(os.path.dirname(importlib.util.find_spec("tvm_ffi").origin), "include"))' 2>/dev/null); then
    options+=(--with-dlpack="$dlpack")
fi
rm -rf "$build"
mkdir -p "$build"
(cd "$build" && "$root/configure" "${options[@]}")
compile
install_library
