"""The device, and what its data sheet says of its memory."""

import os
import platform
import re
import shutil
import subprocess
import time

from fuseline import info

# GB/s, by a pattern of the name that the driver gives; the first that fits counts. Bus width times data rate of the
# memory that the card is sold with; an MI250's device is one of its two halves.
AMD_PEAKS = (
    (r"8060S|8050S", 256.0),  # Ryzen AI Max: LPDDR5X-8000, 256 bits
    (r"MI355X|MI350X", 8000.0),
    (r"MI325X", 6000.0),
    (r"MI300X", 5300.0),
    (r"MI300A", 5300.0),
    (r"MI250X?|MI210", 1638.4),
    (r"MI100", 1228.8),
    (r"MI60|MI50|Radeon VII", 1024.0),
    (r"9070", 640.0),
    (r"9060 XT", 320.0),
    (r"7900 XTX", 960.0),
    (r"7900 XT\b", 800.0),
    (r"7900 GRE", 576.0),
    (r"7800 XT", 624.0),
    (r"7700 XT", 432.0),
    (r"7600", 288.0),
    (r"W7900", 864.0),
    (r"W7800", 576.0),
    (r"6950 XT", 576.0),
    (r"69\d0 XT|6800", 512.0),
    (r"6700 XT", 384.0),
    (r"6600 XT", 256.0),
    (r"6600", 224.0),
)

# Bytes that a rotation has to exceed several times: larger than what any of these keeps beside its second-level cache
# (AMD's Infinity Cache: 256 MiB in an MI300X, 32 in a Radeon 8060S), which no property tells.
GPU_CACHE_LEAST = 256 << 20
CPU_CACHE_DEFAULT = 32 << 20


def amd_peak(name):
    """GB/s of an AMD device by its name; None where it is not known."""
    return next((peak for pattern, peak in AMD_PEAKS if re.search(pattern, name)), None)


def nvidia_peak(properties):
    """GB/s from the memory's clock in kHz and the width of its bus in bits, at two transfers a clock; None without."""
    clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
    return 2 * clock * 1e3 * width / 8 / 1e9 or None


class Machine:
    """A device that PyTorch names.

    Attributes:
        device: "cpu", or "cuda:0" and so on.
        is_gpu: as PyTorch sees it.
        peak: theoretical GB/s of its memory; None where it is not known.
        cache: bytes that a rotation of tensors has to exceed several times.
        environment: card, driver, versions and commit, on the CPU the instruction sets in use; for the record.
    """

    def __init__(self, torch, device, version):
        self._torch = torch
        self.is_gpu = device != "cpu"
        self.environment = {
            "card": None,
            "architecture": None,
            "driver": None,
            "runtime": None,
            "torch": torch.__version__,
            "fuseline": version,
            "python": platform.python_version(),
            "commit": _commit(),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
        }
        if self.is_gpu:
            index = torch.device(device).index or 0
            self.device = f"cuda:{index}"
            self._describe_gpu(index)
        else:
            self.device = device
            self.peak = None
            self.cache = max(_cpu_cache(), CPU_CACHE_DEFAULT)
            self.environment.update(
                card=_cpu_name(),
                architecture=platform.machine(),
                instructions={"fuseline": info()["cpu"]["variant"], "torch": torch.backends.cpu.get_cpu_capability()},
                load=_load(),
            )

    def _describe_gpu(self, index):
        torch = self._torch
        properties = torch.cuda.get_device_properties(index)
        name, hip = torch.cuda.get_device_name(index), torch.version.hip
        self.peak = amd_peak(name) if hip else nvidia_peak(properties)
        self.cache = max(getattr(properties, "L2_cache_size", 0) or 0, GPU_CACHE_LEAST)
        self.environment.update(
            card=name,
            architecture=getattr(properties, "gcnArchName", None) or f"{properties.major}.{properties.minor}",
            driver=_amd_driver() if hip else _nvidia_driver(index),
            runtime=f"ROCm {hip}" if hip else f"CUDA {torch.version.cuda}",
        )

    def free_bytes(self):
        """Memory that may be used; None where it is not known."""
        if self.is_gpu:
            self._torch.cuda.empty_cache()
            return self._torch.cuda.mem_get_info(self.device)[0]
        found = _first_number("/proc/meminfo", r"MemAvailable:\s+(\d+)")
        return found and found * 1024


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def _first_number(path, pattern):
    found = re.search(pattern, _read(path))
    return int(found[1]) if found else None


def _cpu_name():
    found = re.search(r"model name\s*:\s*(.+)", _read("/proc/cpuinfo"))
    return f"{found[1].strip() if found else platform.processor() or 'CPU'}, {os.cpu_count()} threads"


def _cpu_cache():
    """Bytes of the last level's cache."""
    found = _first_number("/sys/devices/system/cpu/cpu0/cache/index3/size", r"(\d+)K")
    return (found or 0) * 1024


def _load():
    try:
        return round(os.getloadavg()[0], 2)
    except OSError:
        return None


def _output(*command):
    """What a program prints; None where it does not, or is not there."""
    if shutil.which(command[0]) is None:
        return None
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None


def _nvidia_driver(index):
    return _output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "-i", str(index))


def _amd_driver():
    """The version of the kernel's module; the kernel's own where it is part of that."""
    return _read("/sys/module/amdgpu/version").strip() or f"kernel {platform.release()}"


def _commit():
    """Of fuseline's source, where this is run in it."""
    if not os.path.isfile(os.path.join("lib", "operators.def")):
        return None
    return _output("git", "describe", "--always", "--dirty", "--match=v*")
