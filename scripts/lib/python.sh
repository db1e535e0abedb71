# shellcheck shell=bash
# The Python environment .venv: which Python it is made from, whose PyTorch it uses, and what is installed into it.
#
# A Python that has PyTorch keeps it: .venv then sees that Python's packages and adds only what is missing. That is how a
# PyTorch for ROCm is used, which no plain "pip install torch" brings. Else the pinned PyTorch is installed into .venv.
#   FUSELINE_PYTHON=/path/to/python   makes .venv from this Python (default: the one .venv was made from, then python3)
#   FUSELINE_TORCH=new                installs the pinned PyTorch even so; FUSELINE_TORCH=own goes back
# Both are remembered with .venv.

: "${root:?}"
venv=$root/.venv
venv_record=$venv/fuseline-environment # written last, so that an environment made by half has none

# recorded NAME: what the record of .venv says, or nothing.
recorded() {
    [[ ! -r $venv_record ]] || sed -n "s/^$1=//p" "$venv_record"
}

# base_python: the Python to make .venv from.
base_python() {
    local recorded
    recorded=$(recorded python)
    if [[ ${FUSELINE_PYTHON:-} == "$venv"/* ]]; then
        die "FUSELINE_PYTHON is the Python that .venv is to be made from, and cannot be in it."
    elif [[ -n ${FUSELINE_PYTHON:-} ]]; then
        command -v "$FUSELINE_PYTHON" || die "FUSELINE_PYTHON=$FUSELINE_PYTHON is not a program."
    elif [[ -n $recorded && -x $recorded ]]; then
        echo "$recorded"
    elif [[ $(command -v python3) == "$venv/bin/python3" ]]; then # .venv is active, but has no record: broken
        PATH=${PATH//"$venv/bin:"/} command -v python3 || echo python3
    else
        command -v python3 || echo python3
    fi
}

# describe_environment PYTHON: what decides whether .venv can stay as it is, one "name=value" a line.
describe_environment() {
    echo "python=$1"
    echo "version=$("$1" -c 'import sys; print(sys.version.replace("\n", " "))')"
    echo "folder=$root"
    local choice own_torch=
    choice=${FUSELINE_TORCH:-$(recorded choice)}
    [[ $choice == new ]] || own_torch=$("$1" "$root/scripts/lib/environment.py" torch)
    echo "choice=${choice:-own}"
    echo "torch=${own_torch:-pinned}"
}

# make_environment PYTHON DESCRIPTION: .venv from nothing.
make_environment() {
    rm -rf "$venv" && "$1" -m venv "$venv" &&
        { grep -q '^torch=pinned$' <<<"$2" || "$1" "$root/scripts/lib/environment.py" share "$venv"; } &&
        printf '%s\n' "$2" >"$venv_record"
}

# prepare_python LOGS PYTHON REQUIREMENTS...: makes or completes .venv.
prepare_python() {
    local logs=$1 python=$2 description requirements=() file
    shift 2
    if ! can_make_environments "$python" >/dev/null 2>&1; then
        die "$python is no Python 3.9 or newer with the modules venv and ensurepip. FUSELINE_PYTHON=/path/to/python names another,
such as FUSELINE_PYTHON=/usr/bin/python3."
    fi
    description=$(describe_environment "$python")
    if [[ ! -r $venv_record || $(<"$venv_record") != "$description" ]] ||
        ! "$venv/bin/python" -c 'import pip' >/dev/null 2>&1; then
        run_step "making .venv from $python" "$logs/venv.log" make_environment "$python" "$description" ||
            die "The Python environment could not be made."
        if [[ $(recorded torch) != pinned ]]; then
            say "  .venv uses PyTorch $(recorded torch) of $python (FUSELINE_TORCH=new would install its own)"
        fi
    fi
    for file in "$@"; do
        requirements+=(--requirement "$file")
    done
    if ! "$venv/bin/python" "$root/scripts/lib/environment.py" met "$@" >/dev/null; then
        if [[ $(recorded torch) == pinned ]]; then
            run_step "installing Python packages" "$logs/pip.log" \
                "$venv/bin/python" -m pip install --disable-pip-version-check "${requirements[@]}"
        else
            # The owner's packages stay as they are, and the others are chosen to suit them.
            "$venv/bin/python" "$root/scripts/lib/environment.py" wanted "$@" >"$logs/wanted.txt" &&
                "$venv/bin/python" "$root/scripts/lib/environment.py" owned "$venv" >"$logs/owned.txt" &&
                run_step "installing Python packages beside those of $python" "$logs/pip.log" \
                    "$venv/bin/python" -m pip install --disable-pip-version-check \
                    --requirement "$logs/wanted.txt" --constraint "$logs/owned.txt"
        fi || die "The Python packages could not be installed. The whole log: $logs/pip.log"
    fi
    note_amd_gpu
}

# name_amd_gpu: reads the kernel driver's properties of the machine's compute nodes; prints the architecture of the first GPU,
# such as gfx1151, or nothing.
name_amd_gpu() {
    awk '$1 == "gfx_target_version" && $2 > 0 && !name {
        name = sprintf("gfx%d%x%x", int($2 / 10000), int($2 / 100) % 100, $2 % 100)
        print name
    }'
}

# note_amd_gpu: says what to do where there is an AMD GPU that PyTorch cannot use.
note_amd_gpu() {
    local gpu
    gpu=$({ cat /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null || true; } | name_amd_gpu)
    [[ -n $gpu ]] || return 0
    "$venv/bin/python" -c 'import sys, torch; sys.exit(torch.version.hip is None)' >/dev/null 2>&1 && return 0
    say ""
    say "  There is an AMD GPU here ($gpu), but .venv's PyTorch is not built for ROCm: examples run on the CPU. To use the GPU, take a"
    say "  Python in which torch.cuda.is_available() is True, and run: FUSELINE_PYTHON=/path/to/that/python scripts/quickstart"
    say ""
}
