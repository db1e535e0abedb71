"""The two pictures. Needs matplotlib."""

import math
import os


def files(path):
    """The pictures' names, from the one that the user gave."""
    stem = path[:-4] if path.lower().endswith(".png") else path
    return f"{stem}-roofline.png", f"{stem}-sizes.png"


def load():
    """matplotlib's pyplot, for files alone. Raises ImportError."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def roofline(figures, path, pyplot):
    """Achieved against limit: a bar for each case, a mark where the copy is, a line at the card's peak."""
    height = 1.2 + 0.32 * len(figures)
    canvas, axes = pyplot.subplots(figsize=(10, height), layout="constrained")
    for row, case in enumerate(figures):
        axes.barh(row, case["gbps"], color="tab:blue", label="fuseline" if row == 0 else None)
        copy = case["copy_gbps"]
        axes.plot([copy, copy], [row - 0.42, row + 0.42], color="black", lw=2, label="copy" if row == 0 else None)
        axes.annotate(f" {100 * case['of_copy']:.0f} %", (max(case["gbps"], copy), row), va="center", fontsize=8)
    axes.set_yticks(range(len(figures)), [_label(case) for case in figures], fontsize=8)
    axes.invert_yaxis()
    peak = figures[0]["peak_gbps"]
    if peak is not None:
        axes.axvline(peak, color="tab:red", ls="--", label=f"peak, {peak:.0f} GB/s")
    axes.set_xlabel("GB/s")
    axes.set_xlim(left=0, right=1.15 * max(max(case["gbps"], case["copy_gbps"], peak or 0) for case in figures))
    axes.set_title(f"{figures[0]['environment']['card']}: achieved, and what a copy reaches (percent of it)")
    axes.legend(loc="lower right", fontsize=8)
    canvas.savefig(path, dpi=120)
    pyplot.close(canvas)


def sizes(figures, path, pyplot):
    """Time against size, for each kind of case that has several sizes: ours, the rivals, and the copy."""
    kinds = {}
    for case in figures:
        kinds.setdefault((case["op"], case["direction"], case["dtype"]), []).append(case)
    kinds = {kind: cases for kind, cases in kinds.items() if len(cases) > 1} or kinds
    columns = min(2, len(kinds))
    rows = math.ceil(len(kinds) / columns)
    canvas, grid = pyplot.subplots(
        rows, columns, figsize=(6.5 * columns, 4.5 * rows), squeeze=False, layout="constrained"
    )
    for axes, (kind, cases) in zip(grid.flat, kinds.items()):
        cases = sorted(cases, key=_numel)
        counts = [_numel(case) for case in cases]
        axes.loglog(counts, [case["copy_us"] for case in cases], color="black", ls="--", label="copy")
        axes.loglog(counts, [case["us"] for case in cases], color="tab:blue", marker="o", lw=2, label="fuseline")
        names = dict.fromkeys(name for case in cases for name in case["rivals"])
        for number, name in enumerate(names, 1):  # color 0 is ours
            measured = [
                (count, case["rivals"][name]["us"]) for count, case in zip(counts, cases) if name in case["rivals"]
            ]
            axes.loglog(*zip(*measured), marker=".", color=f"C{number}", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("elements")
        axes.set_ylabel("us")
        axes.set_title(" ".join(kind))
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)
    for axes in grid.flat[len(kinds) :]:
        axes.set_visible(False)
    canvas.suptitle(figures[0]["environment"]["card"])
    canvas.savefig(path, dpi=120)
    pyplot.close(canvas)


def draw(figures, swept, path):
    """Draws both pictures: all cases, and those that were measured at many sizes. Returns the files' names."""
    pyplot, (first, second) = load(), files(path)
    roofline(figures, first, pyplot)
    sizes(swept, second, pyplot)
    return first, second


def check(path):
    """Raises ValueError if there is no folder for the pictures, ImportError without matplotlib."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise ValueError(f"there is no folder {folder}")
    load()


def _numel(case):
    return math.prod(case["shape"])


def _label(case):
    words = [case["op"], case["direction"], case["dtype"], "x".join(map(str, case["shape"]))]
    return " ".join(words + (["out="] if case["out"] else []))
