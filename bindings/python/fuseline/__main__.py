"""``python -m fuseline``: ``info`` tells what the library is and finds on this machine, ``bench`` measures it."""

import argparse
import sys

from . import _info_text, bench, info


def _lines(known):
    """Yields (label, text) for the table."""
    gpu = known["gpu"]
    yield "fuseline", known["version"]
    yield "library", known["library"]
    yield "operators", ", ".join(known["operators"])
    yield "CPU", f"{known['cpu']['variant']}, {known['cpu']['threads']} threads"
    yield "GPU code", ", ".join(gpu["targets"]) or "none"
    yield "GPU runtime", gpu["runtime"] or f"none ({gpu.get('error') or 'not found'})"
    if not gpu["devices"]:
        yield "GPU devices", "none"
    for device in gpu["devices"]:
        support = "supported" if device["supported"] else "no code for it in this library"
        yield f"GPU {device['index']}", f"{device['architecture']} ({device['kind']}), {support}"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m fuseline", description="Looks at fuseline on this machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    shown = commands.add_parser("info", help="print what the library is and what it finds on this machine")
    shown.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    measured = commands.add_parser("bench", help="measure the operators by a copy and by their rivals")
    bench.add_arguments(measured)
    chosen = parser.parse_args(arguments)
    if chosen.command == "bench":
        try:
            return bench.run(chosen)
        except bench.UsageError as error:
            measured.error(str(error))
    if chosen.json:
        print(_info_text())
    else:
        for label, text in _lines(info()):
            print(f"{label:12} {text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
