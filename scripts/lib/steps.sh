# shellcheck shell=bash
# Steps: long commands with a line of progress, their output in a log, and the log's end shown when they fail.

# say TEXT...: one line for the person at the terminal.
say() {
    printf '%s\n' "$*"
}

# die TEXT: says why the script cannot go on, and ends it.
die() {
    printf '\n%s\n' "$*" >&2
    exit 1
}

# duration SECONDS: "12 s" or "3 min 05 s".
duration() {
    if (($1 < 60)); then
        printf '%d s' "$1"
    else
        printf '%d min %02d s' $(($1 / 60)) $(($1 % 60))
    fi
}

# show_progress TITLE LOG: once a second, the time passed and the log's last line, until it is killed. For terminals only.
show_progress() {
    local start=$SECONDS width line
    width=$(tput cols 2>/dev/null) || width=80
    while :; do
        line=$(tail -c 500 "$2" 2>/dev/null | tr '\r\t' '\n ' | tail -n 1 | tr -cd '[:print:]')
        line="  $1 ... $(duration $((SECONDS - start)))  $line"
        printf '\r%s\033[K' "${line:0:width-1}"
        sleep 1
    done
}

# run_step TITLE LOG COMMAND...: runs the command without input and with its output in LOG. Says how long it took; on
# failure shows the log's last lines, a plain reason where the log has a well-known one, and the log's path. Returns the command's
# exit status.
run_step() {
    local title=$1 log=$2 start=$SECONDS status=0 progress=
    shift 2
    mkdir -p "$(dirname "$log")" || die "Cannot make the folder $(dirname "$log")."
    : >"$log" || die "Cannot write $log."
    if [[ -t 1 ]]; then
        show_progress "$title" "$log" &
        progress=$!
        # shellcheck disable=SC2064 # this very process is to be ended
        trap "kill $progress 2>/dev/null" EXIT
    else
        printf '  %s ...\n' "$title"
    fi
    "$@" </dev/null >"$log" 2>&1 || status=$?
    if [[ -n $progress ]]; then
        kill "$progress" 2>/dev/null
        wait "$progress" 2>/dev/null
        trap - EXIT
        printf '\r\033[K'
    fi
    if ((status == 0)); then
        say "  $title: done in $(duration $((SECONDS - start)))"
    else
        say "  $title: FAILED (exit status $status) after $(duration $((SECONDS - start))). The end of $log:"
        tail -n 25 "$log" | sed 's/^/    | /'
        explain_failure "$log"
    fi
    return "$status"
}

# explain_failure LOG: a plain sentence for failures whose message is easily misread.
explain_failure() {
    if grep -qi 'no space left on device' "$1"; then
        say "  The disk is full: $(df -h . | awk 'NR == 2 { print $4 " left on " $6 }')."
    elif grep -qiE 'could not resolve|name resolution|network is unreachable|failed to establish a new connection|connection timed out' "$1"; then
        say "  The network, or the package index, cannot be reached from here."
    elif grep -qi 'no matching distribution found' "$1"; then
        say "  The package index cannot be reached, or has no version for this Python and machine; FUSELINE_PYTHON names another Python."
    elif grep -qi 'could not get lock' "$1"; then
        say "  Another program is installing packages: try again when it is done."
    fi
}
