"""What a report needs of the machine: each check says what was found and, where something is missing, what to do.

Nothing is collected that tells one machine from another of its kind: no serial numbers, no names.
"""

import glob
import grp
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time

import steps

OK, MISSING, NOTE = "ok", "missing", "note"

# Where /dev, /sys, /etc and /opt are; tests have a machine of their own making there.
_ROOT_VARIABLE = "FUSELINE_REPORT_ROOT"
_NEEDED_BYTES = 2 << 30
LIMIT = 100  # seconds, for all checks together
_GRACE = ((signal.SIGTERM, 1), (signal.SIGKILL, 2))
_end = None  # when the time of all checks is over, while they run
_HERE = os.path.dirname(os.path.abspath(__file__))

# As configure probes: one small kernel for one target.
_PROBE = 'extern "C" __attribute__((global)) void fuseline_probe(float *x) { *x = __builtin_fmaf(*x, *x, 1.0f); }\n'
_PROBE_FLAGS = ("-x", "hip", "--offload-device-only", "-c", "-nogpuinc", "-nogpulib")


class Check:
    """Attributes: name; state, one of the three above; found, a sentence; advice, what to do where it is MISSING."""

    def __init__(self, name, state, found, advice=""):
        self.name, self.state, self.found, self.advice = name, state, found, advice

    def as_json(self):
        return {"name": self.name, "state": self.state, "found": self.found, "advice": self.advice}


def _path(path):
    return os.environ.get(_ROOT_VARIABLE, "") + path


def _read(path):
    try:
        with open(_path(path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _glob(pattern):
    return sorted(glob.glob(_path(pattern)))


def run(command, seconds=20, **keywords):
    """(exit status, output); a program that is not there, or hangs, has status None.

    Never waits for longer, also not for a program that cannot be ended since it waits for a driver: so its output goes
    into a file, which ends at any time.
    """
    if _end is not None:
        seconds = min(seconds, _end - time.monotonic())
        if seconds <= 0:
            return None, f"no time was left: all checks have {LIMIT} s"
    with tempfile.TemporaryFile() as output:
        try:
            process = steps.start(command, output, **keywords)
        except OSError as error:
            return None, str(error)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            steps.stop(process, _GRACE)
            return None, f"no answer within {seconds:.0f} s"
        except BaseException:
            steps.stop(process, _GRACE)
            raise
        output.seek(0)
        return process.returncode, output.read().decode("utf-8", "replace")


# --- the machine ---


def system():
    name = re.search(r'^PRETTY_NAME="?([^"\n]*)', _read("/etc/os-release"), re.MULTILINE)
    processor = re.search(r"^model name\s*:\s*(.*)", _read("/proc/cpuinfo"), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.MULTILINE)
    parts = [name[1] if name else "unknown system", f"Linux {os.uname().release}", os.uname().machine]
    parts += [processor[1].strip()] if processor else []
    parts += [f"{int(memory[1]) >> 20} GiB of memory"] if memory else []
    return Check("system", NOTE, ", ".join(parts))


def architectures():
    """The AMD GPUs by the kernel driver's list of compute nodes, such as ["gfx1151"]."""
    found = []
    for path in _glob("/sys/class/kfd/kfd/topology/nodes/*/properties"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                number = re.search(r"^gfx_target_version (\d+)", file.read(), re.MULTILINE)
        except OSError:  # a container may let nobody read a card that is another's
            continue
        if number and int(number[1]) > 0:
            major, minor, step = int(number[1]) // 10000, int(number[1]) // 100 % 100, int(number[1]) % 100
            found.append(f"gfx{major}{minor:x}{step:x}")
    return found


def of_torch(torch):
    """The same by PyTorch, whose runtime HSA_OVERRIDE_GFX_VERSION makes take a card for another."""
    named = [(device.get("architecture") or "").split(":")[0] for device in torch.get("devices") or []]
    return [name for name in named if re.fullmatch(r"gfx[0-9a-f]+", name)]


def cards(by_driver, by_torch=()):
    listed = {"the driver lists": by_driver, "PyTorch lists": by_torch}
    found = "; ".join(f"{who} {', '.join(names)}" for who, names in listed.items() if names)
    if found:
        return Check("GPU", OK, found)
    return Check(
        "GPU",
        MISSING,
        "the driver lists no AMD GPU (/sys/class/kfd), and neither does PyTorch",
        "see the checks of driver and PyTorch; the card has to be one that the amdgpu driver computes on",
    )


def variables():
    """[{"name", "value"}] of the environment that decide which cards are seen, and as what."""
    names = [name for name in sorted(os.environ) if name.startswith("HSA_")]
    names += ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"]
    return [{"name": name, "value": os.environ[name]} for name in names if name in os.environ]


def environment():
    text = ", ".join(f"{item['name']}={item['value']}" for item in variables())
    return Check("variables", NOTE, text or "none is set that hides cards, or gives them other names")


def _on_wsl():
    """Whether the card is reached through Windows' driver, which has none of Linux' devices."""
    return os.path.exists(_path("/dev/dxg")) and not os.path.exists(_path("/dev/kfd"))


def _group_of(path):
    number = os.stat(path).st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def _join_groups(groups):
    return f'sudo usermod -a -G {",".join(groups)} "$USER"; then log out and in again'


def driver():
    if _on_wsl():
        return Check("driver", NOTE, "WSL: the card is reached by /dev/dxg and Windows' driver; there is no /dev/kfd")
    if not os.path.isdir(_path("/sys/module/amdgpu")):
        return Check(
            "driver",
            MISSING,
            "the kernel module amdgpu is not loaded",
            "sudo modprobe amdgpu; if that fails, install a kernel that knows the card, or AMD's amdgpu-dkms; in a "
            "container the host needs it",
        )
    version = _read("/sys/module/amdgpu/version").strip()
    device = _path("/dev/kfd")
    if not os.path.exists(device):
        return Check(
            "driver",
            MISSING,
            "amdgpu is loaded, but there is no /dev/kfd",
            "the kernel was built without CONFIG_HSA_AMD, or does not compute on this card; in a container add "
            "--device=/dev/kfd --device=/dev/dri",
        )
    if not os.access(device, os.R_OK | os.W_OK):
        group = _group_of(device)
        return Check(
            "driver",
            MISSING,
            f"/dev/kfd is there, but not to be read and written by this user (its group is {group})",
            _join_groups(sorted({group, "render", "video"} - {"root"})) + "; in a container add --group-add",
        )
    return Check(
        "driver", OK, f"amdgpu{' ' + version if version else ', the kernel own'}, /dev/kfd can be read and written"
    )


def render_nodes():
    if _on_wsl():
        return Check("render node", NOTE, "WSL needs none")
    nodes = _glob("/dev/dri/renderD*")
    closed = [node for node in nodes if not os.access(node, os.R_OK | os.W_OK)]
    if not nodes:
        return Check(
            "render node", MISSING, "there is no /dev/dri/renderD*", "load amdgpu; in a container add --device=/dev/dri"
        )
    if len(closed) == len(nodes):
        groups = sorted({_group_of(node) for node in closed} - {"root"}) or ["render"]
        return Check(
            "render node", MISSING, "no /dev/dri/renderD* can be read and written by this user", _join_groups(groups)
        )
    return Check("render node", OK, f"{len(nodes) - len(closed)} of {len(nodes)} can be read and written")


def groups():
    """Membership alone decides nothing, as a login may grant access to the devices themselves."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container's user may be a number alone
        user = None
    names = []
    for name in ("render", "video"):
        try:
            known = grp.getgrnam(name)
        except KeyError:
            continue
        member = known.gr_gid in os.getgroups() or user in known.gr_mem
        names.append(f"{name}: {'member' if member else 'not a member'}")
    return Check("groups", NOTE, ", ".join(names) or "this system has neither render nor video")


def runtime(torch):
    """The ROCm runtime: that of PyTorch, of an installed ROCm, or of the system."""
    version = _read("/opt/rocm/.info/version").strip()
    found = list(torch.get("runtime") or [])
    for pattern in ("/opt/rocm/lib/libamdhip64.so.*", "/opt/rocm-*/lib/libamdhip64.so.*", "/usr/lib*/libamdhip64.so.*"):
        found += _glob(pattern)
    found += _glob("/usr/lib/*/libamdhip64.so.*")
    named = os.environ.get("FUSELINE_GPU_RUNTIME")
    if named:
        found.insert(0, named)
    if not found:
        return Check(
            "ROCm runtime",
            MISSING,
            "no libamdhip64.so: not in PyTorch, /opt/rocm or the system's libraries",
            "a PyTorch for ROCm brings one; else install ROCm, or name the file by FUSELINE_GPU_RUNTIME",
        )
    of_torch = " (PyTorch's own)" if torch.get("runtime") and found[0] == torch["runtime"][0] else ""
    return Check("ROCm runtime", OK, f"{found[0]}{of_torch}{', ROCm ' + version + ' in /opt/rocm' if version else ''}")


# --- PyTorch ---


def ask_torch(python, environment):
    """What scripts/report/ask_torch.py prints, as a dict; with "error" if it died."""
    status, output = run([python, os.path.join(_HERE, "ask_torch.py")], seconds=60, env=environment)
    lines = output.strip().splitlines()
    try:
        return json.loads(lines[-1])
    except (IndexError, ValueError):
        said = lines[-1] if lines else "no output"
        return {"error": said if status is None else f"exit status {status}: {said}"}


def ask_folders(python, environment):
    """{"prefixes": [the folders of a Python and of what it was made from], "torch": PyTorch's folder, or None}."""
    code = (
        "import importlib.util, json, os, sys; found = importlib.util.find_spec('torch'); "
        "print(json.dumps({'prefixes': [sys.prefix, sys.base_prefix], "
        "'torch': os.path.dirname(found.origin) if found and found.origin else None}))"
    )
    _, output = run([python, "-c", code], env=environment)
    try:
        return json.loads(output.strip().splitlines()[-1])
    except (IndexError, ValueError):
        return {"prefixes": [], "torch": None}


def pytorch(python, known):
    install = "install a PyTorch for ROCm into a Python environment, and name that: --python /path/to/its/python"
    if known.get("version") is None:
        return Check("PyTorch", MISSING, f"{python} has none that works: {known.get('error')}", install)
    name = f"PyTorch {known['version']} of Python {known['python']}"
    if known.get("hip") is None:
        return Check("PyTorch", MISSING, f"{name} is not built for ROCm", install)
    if not known.get("available"):
        return Check(
            "PyTorch",
            MISSING,
            f"{name}, for ROCm {known['hip']}, sees no GPU: {known.get('error') or 'is_available() is False'}",
            "see the checks of driver and render node; HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES may hide the card",
        )
    names = ", ".join(f"{device['name']} ({device['architecture']})" for device in known["devices"])
    return Check("PyTorch", OK, f"{name}, for ROCm {known['hip']}, sees {names or 'a GPU'}")


# --- what the build needs ---


def _compilers(torch):
    if os.environ.get("HIPCC"):
        yield os.environ["HIPCC"]
        return
    rocm = os.environ.get("ROCM_PATH") or _path("/opt/rocm")
    names = ["hipcc", f"{rocm}/bin/hipcc", "amdclang++", f"{rocm}/bin/amdclang++", f"{rocm}/llvm/bin/clang++"]
    # ROCm from wheels lies beside PyTorch, in packages of its own.
    for path in torch.get("runtime") or []:
        packages = os.path.dirname(os.path.dirname(os.path.dirname(path)))
        names += sorted(glob.glob(f"{glob.escape(packages)}/_rocm_sdk_*/lib/llvm/bin/clang++"))
    names += [f"clang++-{version}" for version in range(29, 13, -1)] + ["clang++"]
    yield from filter(shutil.which, names)


def _builds(compiler, target, folder):
    version = ["-mcode-object-version=6"] if target.endswith("-generic") else []
    command = [*compiler.split(), *_PROBE_FLAGS, f"--offload-arch={target}", *version, "-o", "probe.out", "probe.hip"]
    status, _ = run(command, cwd=folder, env={**os.environ, "HIP_PLATFORM": "amd"})
    return status == 0


# For a chip that no compiler knows: (the chip's name, the generic target, a chip that configure chooses a compiler by).
_GENERIC = (
    (r"gfx90[02469c]", "gfx9-generic", "gfx900"),
    (r"gfx101.", "gfx10-1-generic", "gfx1010"),
    (r"gfx103.", "gfx10-3-generic", "gfx1030"),
    (r"gfx11..", "gfx11-generic", "gfx1100"),
)


class Choice:
    """Attributes: compiler, its name, or None; targets, what it builds; left_out, what it does not; tried, names."""

    def __init__(self, compiler, targets, left_out, tried):
        self.compiler, self.targets, self.left_out, self.tried = compiler, targets, left_out, tried


def choose_compiler(targets, torch):
    """The compiler that builds for most of the targets, since the library is built by one; else for a generic one."""
    targets, tried, best = sorted(set(targets)), list(_compilers(torch)), (None, [])
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "probe.hip"), "w", encoding="utf-8") as file:
            file.write(_PROBE)
        for name in tried:
            built = [target for target in targets if _builds(name, target, folder)]
            if len(built) > len(best[1]):
                best = name, built
            if len(best[1]) == len(targets):
                break
        left_out = [target for target in targets if target not in best[1]]
        if targets and not best[1]:
            pairs = [row[1:] for target in targets for row in _GENERIC if re.fullmatch(row[0], target)]
            for name, (generic, chip) in ((name, pair) for name in tried for pair in pairs):
                if _builds(name, chip, folder) and _builds(name, generic, folder):
                    best = name, [chip, generic]
                    break
    return Choice(best[0], best[1], left_out, tried)


def compiler(choice):
    tried = ", ".join(choice.tried) or "none, since none is here"
    builds = f"{choice.compiler} builds for {', '.join(choice.targets)}" if choice.targets else ""
    if choice.left_out:
        return Check(
            "GPU compiler",
            MISSING,
            "; ".join(filter(None, [f"none builds for {', '.join(choice.left_out)}", builds, f"tried: {tried}"])),
            "install ROCm's compiler (hipcc), or clang, lld, clang-tools and llvm of one version, 17 or newer for "
            "gfx1151; HIPCC names another",
        )
    if not builds:
        return Check("GPU compiler", NOTE, f"not tried, for want of a target; there is {tried}")
    return Check("GPU compiler", OK, builds)


def build_tools(python):
    """The list is that of scripts/prepare."""
    libraries = os.path.join(os.path.dirname(_HERE), "lib")
    code = (
        f'source "{libraries}/packages.sh"; find_missing "$1" tests; '
        'printf "%s\\n" "${missing_names[@]}"; echo "packages ${missing_required[*]}"'
    )
    status, output = run(["bash", "-c", code, "bash", python], seconds=60)
    *names, packages = output.strip().splitlines() or [""]
    # A Python whose venv lacks ensurepip will do for the report.
    names = [name for name in names if name and not name.startswith("Python's venv")]
    if status != 0 or not packages.startswith("packages"):
        return Check("build tools", NOTE, f"could not be looked for: {packages}")
    if names:
        wanted = " ".join(package for package in packages.split()[1:] if not package.endswith("-venv"))
        return Check(
            "build tools",
            MISSING,
            f"not here: {', '.join(names)}",
            f"on Debian and Ubuntu: sudo apt-get install {wanted}",
        )
    return Check("build tools", OK, "a C and a C++ compiler, make, autotools, pkg-config and cmocka are here")


def disk(folder):
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB are free where the report is made"
    if free < _NEEDED_BYTES:
        return Check("disk", MISSING, found, f"{_NEEDED_BYTES >> 30} GiB are needed; --work names another folder")
    return Check("disk", OK, found)


def all_checks(python, environment_of_steps, folder, builds, limit=LIMIT, begin=None):
    """([Check], what PyTorch said, the names of the machine's GPUs, the Choice of a compiler).

    builds: whether the library is to be built, which needs a compiler. begin(name, seconds) is called before each
    check, with the time that it may take, or 0 if that is none to speak of.
    """
    global _end
    found = []

    def look(name, check, *arguments, seconds=0, otherwise=None):
        """What a check returns; it may throw what it likes, and is a note then."""
        if begin:
            begin(name, seconds)
        try:
            value = check(*arguments)
        except Exception as error:
            found.append(Check(name, NOTE, f"could not be looked at: {type(error).__name__}: {error}"))
            return otherwise
        if isinstance(value, Check):
            found.append(value)
        return value

    _end = time.monotonic() + limit
    try:
        torch = look("PyTorch's answer", ask_torch, python, environment_of_steps, seconds=60, otherwise={})
        by_driver = look("list of GPUs", architectures, otherwise=[])
        by_torch = of_torch(torch)
        targets = sorted({*by_driver, *by_torch})
        choice = Choice(None, [], targets, [])
        look("system", system)
        look("driver", driver)
        look("render node", render_nodes)
        look("groups", groups)
        look("GPU", cards, by_driver, by_torch)
        look("variables", environment)
        look("ROCm runtime", runtime, torch)
        look("PyTorch", pytorch, python, torch)
        if builds:
            choice = look("compilers", choose_compiler, targets, torch, seconds=LIMIT, otherwise=choice)
            look("GPU compiler", compiler, choice)
            look("build tools", build_tools, python, seconds=60)
        look("disk", disk, folder)
    finally:
        _end = None
    return found, torch, targets, choice
