"""Draws the bench's figures, by the bench's own function: run by the Python that has fuseline.

draw.py FILE.json...      FILE.png each; files without cases are passed over
"""

import sys

import figures

from fuseline.bench import _plot


def main(paths):
    pyplot = _plot.load()
    for path in paths:
        cases = figures.bench_cases(path)
        if cases:
            picture = path[: -len(".json")] + ".png"
            _plot.roofline(cases, picture, pyplot)
            print(f"drawn: {picture}")


if __name__ == "__main__":
    main(sys.argv[1:])
