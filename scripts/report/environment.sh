#!/usr/bin/env bash
# The report's own Python environment: it sees all packages of the owner's Python, PyTorch first of all, and adds only what is missing.
# Nothing is ever installed into the owner's.
#
#     scripts/report/environment.sh FOLDER PYTHON
set -euo pipefail

scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
venv=$1 python=$2 requirements=$scripts/report/requirements.txt

# shellcheck source=scripts/report/ours.sh
source "$scripts/report/ours.sh"
check_ours "$venv"

# Some systems have venv without ensurepip; pip is then the owner's, if there is one.
rm -rf "$venv"
"$python" -m venv "$venv" 2>/dev/null || "$python" -m venv --clear --without-pip "$venv"
"$python" "$scripts/lib/environment.py" share "$venv"

if missing=$("$venv/bin/python" "$scripts/lib/environment.py" met "$requirements"); then
    echo "Everything that is needed is there already."
    exit
fi
echo "Missing: ${missing//$'\n'/ }"
if "$venv/bin/python" "$scripts/lib/environment.py" wanted "$requirements" >"$venv/wanted.txt" &&
    "$venv/bin/python" "$scripts/lib/environment.py" owned "$venv" >"$venv/owned.txt" &&
    "$venv/bin/python" -m pip install -q --disable-pip-version-check --no-input --retries 1 --timeout 15 \
        --requirement "$venv/wanted.txt" --constraint "$venv/owned.txt"; then
    exit
fi
echo "They could not be installed; what needs them is left out of the report."
exit 1
