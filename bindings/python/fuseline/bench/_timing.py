"""How long calls take: many short series of calls, the ways that are compared by turns, all in one process."""

import math
import statistics
import time
from typing import NamedTuple


class Effort(NamedTuple):
    """How much is spent on a case.

    Attributes:
        runs: timed series of each way.
        seconds: what a series should last at least, so that the clock and the gap before its first call do not count.
        calls: the most calls in a series.
        warm_up: calls before the first series.
    """

    runs: int
    seconds: float
    calls: int
    warm_up: int


GPU_EFFORT = Effort(runs=50, seconds=1e-3, calls=200, warm_up=5)
CPU_EFFORT = Effort(runs=50, seconds=5e-4, calls=200, warm_up=3)


class HostTimer:
    """By the host's clock, for devices that are done when a call returns."""

    name = "host clock"

    def series(self, function, calls, lead=0.0):
        """Calls a function of the call's number; returns a function that tells the seconds.

        Args:
            lead: seconds of other work that a device is given first.
        """
        start = time.perf_counter()
        for call in range(calls):
            function(call)
        taken = time.perf_counter() - start
        return lambda: taken

    def wait(self):
        pass


class EventTimer:
    """By events on the device's stream.

    Nothing waits for the device between the series: it always has work queued, so that the time between two events is
    that of the device's work. Where the device works faster than the host can call it is kept busy before the first
    event, by clearing memory, until the host has called; that also leaves nothing of the tensors in the caches.
    """

    CLEARED = 256 << 20

    name = "device events"

    def __init__(self, torch, device):
        self._torch = torch
        self._device = device
        self._memory = torch.empty(self.CLEARED, dtype=torch.uint8, device=device)
        self._seconds = None

    def _clear(self):
        self._memory.zero_()

    def _keep_busy(self, seconds):
        if self._seconds is None:  # what clearing takes; the first call loads its code
            for _ in range(2):
                taken = self.series(lambda call: self._clear(), 4)
                self.wait()
            self._seconds = max(taken() / 4, 1e-6)
        for _ in range(math.ceil(seconds / self._seconds)):
            self._clear()

    def series(self, function, calls, lead=0.0):
        if lead > 0:
            self._keep_busy(lead)
        start, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in range(calls):
            function(call)
        end.record()
        return lambda: start.elapsed_time(end) / 1e3

    def wait(self):
        self._torch.cuda.synchronize(self._device)


class Times(NamedTuple):
    """Microseconds of one call, over all runs: median, 20th and 80th percentile, least."""

    us: float
    p20: float
    p80: float
    least: float
    runs: int
    calls: int


def summary(values, calls):
    """Times from the microseconds of one call in each series."""
    fifths = statistics.quantiles(values, n=5, method="inclusive") if len(values) > 1 else values * 4
    return Times(statistics.median(values), fifths[0], fifths[-1], min(values), len(values), calls)


class _Way:
    """One of the functions that are compared, and where it is in the rotation of its tensors."""

    def __init__(self, sets):
        self._sets = sets
        self._kept = [None] * len(sets)
        self._next = 0
        self.calls = 1
        self.lead = 0.0
        self.taken = []

    def __call__(self, call):
        """Calls the function on the tensors that it has not used for longest.

        Its result is kept until then, so that the allocator has no memory for the next one that a cache holds.
        """
        used = self._next
        self._next = (used + 1) % len(self._sets)
        self._kept[used] = self._sets[used]()

    def __len__(self):
        return len(self._sets)


def measure(ways, timer, effort, on_run=lambda share: None):
    """Times of each way.

    Args:
        ways: {name: functions without arguments, the same on different tensors}; each call takes the next one.
        on_run: is told how much is done, from 0 to 1.
    """
    ways = {name: _Way(sets) for name, sets in ways.items()}
    for way in ways.values():
        timer.series(way, max(effort.warm_up, len(way) + 1))  # each set at least once: no allocation is timed
        timer.wait()
        few = max(1, effort.warm_up)
        start = time.perf_counter()
        taken = timer.series(way, few)
        host = (time.perf_counter() - start) / few
        timer.wait()
        one = max(taken() / few, 1e-9)
        way.calls = max(1, min(effort.calls, round(effort.seconds / one)))
        if host > 0.3 * one:  # the host may be what is measured
            way.lead = 1.5 * host * way.calls
    names = list(ways)
    for run in range(effort.runs):
        first = run % len(names)
        order = names[first:] + names[:first]  # none is always first, nor always after the same
        for name in order if run // len(names) % 2 == 0 else reversed(order):
            way = ways[name]
            way.taken.append(timer.series(way, way.calls, way.lead))
        on_run((run + 1) / effort.runs)
    timer.wait()
    return {name: summary([taken() / way.calls * 1e6 for taken in way.taken], way.calls) for name, way in ways.items()}
