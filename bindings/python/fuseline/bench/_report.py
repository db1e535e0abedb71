"""What a person sees: progress while it works, and a line for each case."""

import sys

_WIDTH = 30


class Progress:
    """A bar on a terminal's standard error; where that is none, a line when a case begins."""

    def __init__(self, total, stream=None):
        self._stream = stream or sys.stderr
        self._total = total
        self._is_terminal = self._stream.isatty()
        self._done, self._label, self._shown = 0, "", None

    def begin(self, label):
        self._label = label
        if self._is_terminal:
            self.within(0.0)
        else:
            print(f"{self._done + 1}/{self._total} {label}", file=self._stream, flush=True)

    def within(self, share):
        """How much of the case is done, from 0 to 1."""
        if not self._is_terminal:
            return
        full = int((self._done + share) / max(self._total, 1) * _WIDTH)
        text = f"[{'#' * full}{'.' * (_WIDTH - full)}] {self._done}/{self._total} {self._label}"
        if text != self._shown:
            print(f"\r\x1b[K{text[:150]}", end="", file=self._stream, flush=True)
            self._shown = text

    def end(self):
        """The case is done; the bar makes room for what is printed."""
        self._done += 1
        if self._is_terminal:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
            self._shown = None


def _time(us):
    for limit, divisor, unit in ((1e3, 1, "us"), (1e6, 1e3, "ms")):
        if us < limit:
            return f"{us / divisor:.4g} {unit}"
    return f"{us / 1e6:.4g} s"


def head(environment, device):
    """The line above the cases."""
    known = [environment["card"], environment["architecture"], environment["runtime"]]
    if environment["driver"]:
        known.append(f"driver {environment['driver']}")
    known += [f"PyTorch {environment['torch']}", f"fuseline {environment['fuseline']}", environment["commit"]]
    if environment.get("load") is not None:
        known.append(f"load {environment['load']}")
    return f"{device}: {', '.join(filter(None, known))}"


def lines(case, figures):
    """Yields the lines of one case."""
    yield str(case)
    marks = [] if figures["beyond_cache"] else ["in reach of a cache"]
    if figures["timing"] != "device events":
        marks.append(figures["timing"])
    yield (
        f"    {_time(figures['us'])} ({_time(figures['us_p20'])} to {_time(figures['us_p80'])}), "
        f"{figures['bytes'] / 1e6:.4g} MB, {figures['gbps']:.4g} GB/s{''.join(f', {mark}' for mark in marks)}"
    )
    shares = [f"{100 * figures['of_copy']:.1f} % of copy"]
    if figures["of_peak"] is not None:
        shares.append(f"{100 * figures['of_peak']:.1f} % of {figures['peak_gbps']:.0f} GB/s")
    shares += [f"{ratio:.2f} x {name}" for name, ratio in figures["against"].items()]
    yield f"    {', '.join(shares)}"
