"""What the PyTorch of this Python is and sees, as one line of JSON: run by the Python that the owner chose."""

import json
import os
import sys


def mapped(name):
    """The files of a name that this process has mapped, such as the ROCm runtime that PyTorch brought."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if len(line.split(None, 5)) == 6}
    return sorted(path for path in paths if os.path.basename(path).startswith(name))


def main():
    known = {"python": sys.version.split()[0]}
    try:
        import torch
    except Exception as error:  # whatever a broken installation raises
        known["error"] = f"{type(error).__name__}: {error}"
    else:
        known.update(version=torch.__version__, hip=torch.version.hip, cuda=torch.version.cuda, devices=[])
        try:
            known["available"] = torch.cuda.is_available()
            for index in range(torch.cuda.device_count() if known["available"] else 0):
                found = torch.cuda.get_device_properties(index)
                # None of these tells one card from another of its kind.
                known["devices"].append(
                    {
                        "name": found.name,
                        "architecture": getattr(found, "gcnArchName", None),
                        "memory_bytes": found.total_memory,
                        "compute_units": found.multi_processor_count,
                        "wave": getattr(found, "warp_size", None),
                    }
                )
        except Exception as error:
            known["error"] = f"{type(error).__name__}: {error}"
        known["runtime"] = mapped("libamdhip64.so")
    print(json.dumps(known))


if __name__ == "__main__":
    main()
