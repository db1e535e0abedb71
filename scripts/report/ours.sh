# shellcheck shell=bash
# What the report may delete: only what lies in a folder with its marker.

marker=.made-by-amd-report # main.py's MARKER

# check_ours FOLDER: ends the script where FOLDER is there, but not in a folder of the report's own.
check_ours() {
    if [[ -e $1 && ! -f $(dirname "$1")/$marker ]]; then
        echo "$1 was not made by scripts/amd-report, and stays as it is." >&2
        exit 1
    fi
}
