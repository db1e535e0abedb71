"""Whether tensors share memory, whatever their strides; for those outputs of which C does not learn where they lie."""

from math import gcd

from . import _dlpack

# Beyond this many steps, which ordinary strides are far from, two tensors are taken to share memory.
_STEPS_MOST = 100_000


class Footprint:
    """The bytes that a DLTensor's elements take.

    Attributes:
        shape, strides: in elements.
    """

    def __init__(self, tensor):
        self.shape, self.strides = _dlpack.shape(tensor), _dlpack.strides(tensor)
        self._tensor = tensor
        self._size = tensor.dtype.bits // 8
        self._address = (tensor.data or 0) + tensor.byte_offset
        # Strides in bytes and how often each is taken at most. Backwards they lead to the same elements.
        pairs = [(step * self._size, extent - 1) for step, extent in zip(self.strides, self.shape) if extent != 1]
        self._steps = [(abs(step), most) for step, most in pairs]
        self._lowest = self._address + sum(step * most for step, most in pairs if step < 0)
        self._span = sum(step * most for step, most in self._steps)
        self._is_empty = 0 in self.shape

    def part(self, first, count, step):
        """That of `count` elements of every `step` along the last axis, from `first` on."""
        shape, strides = (*self.shape[:-1], count), (*self.strides[:-1], self.strides[-1] * step)
        return Footprint(
            _dlpack.redescribe(self._tensor, shape=shape, strides=strides, offset=first * self.strides[-1])
        )

    def is_same(self, other):
        """True if both are the same elements at the same indices."""
        return (self.shape, self._address, self._size) == (other.shape, other._address, other._size) and all(
            mine == its for mine, its, extent in zip(self.strides, other.strides, self.shape) if extent != 1
        )

    def shares_memory(self, other):
        """True if any byte belongs to both."""
        if self._is_empty or other._is_empty:
            return False
        apart = other._lowest - self._lowest
        # The difference of two elements' places; the other's steps are counted from its far end, so that all add up.
        return _reaches(
            self._steps + other._steps, apart + other._span - self._size + 1, apart + other._span + other._size - 1
        )

    def overlaps_itself(self):
        """True if two elements share a byte."""
        if self._is_empty:
            return False
        span = self._size
        for step, most in sorted(self._steps):
            if step < span:
                break
            span += step * most
        else:
            return False
        # Two elements differ along some axis, by at least one step there, and anyhow along the others.
        for axis, (step, most) in enumerate(self._steps):
            others = [(other, 2 * times) for k, (other, times) in enumerate(self._steps) if k != axis]
            middle = self._span - step * most - step
            if _reaches([*others, (step, most - 1)], middle - self._size + 1, middle + self._size - 1):
                return True
        return False


def _reaches(steps, low, high):
    """True if some sum of steps, each taken from 0 to its most times, lies in low..high."""
    times = {}
    for step, most in steps:
        if step != 0:
            times[step] = times.get(step, 0) + most
    steps = sorted(times.items(), reverse=True)
    spans, divisors = [0], [0]  # of the steps from here on: their sum at most, and what divides every sum
    for step, most in reversed(steps):
        spans.insert(0, spans[0] + step * most)
        divisors.insert(0, gcd(divisors[0], step))
    left = _STEPS_MOST

    def search(k, low, high):
        nonlocal left
        left -= 1
        if low <= 0 <= high or left < 0:
            return True
        if high < 0 or low > spans[k] or low + -low % divisors[k] > high:
            return False
        step, most = steps[k]
        first, last = max(0, -((spans[k + 1] - low) // step)), min(most, high // step)
        return any(search(k + 1, low - step * taken, high - step * taken) for taken in range(first, last + 1))

    return search(0, low, high)
