"""The second derivatives of a gated unit in PyTorch: one kernel, or with a bias composed of its activation's own.

With hg and hu the gradients of the backward's results dgate and dup, and g, u as the unit has them after bias and
clamp, the gradients of the backward's inputs are

    ddy   = hg * (u + offset) * a'(g) + hu * a(g)
    dgate = hg * dy * (u + offset) * a''(g) + hu * dy * a'(g)
    dup   = hg * dy * a'(g)

each 0 where a clamp lets nothing pass. The bias's are the column sums of the last two.
"""

from math import inf


def second_gradients(call, kernel, grads, inputs, scalars, needed):
    """As ``_differentiation.gradients``, for the backward kernel of a gated unit."""
    if inputs[3] is None:
        return _fused(call, kernel, grads, inputs[:3], scalars, needed)
    dy, gate, up, bias = inputs
    packed, alternates = kernel.is_packed(inputs), kernel.alternates(scalars)
    beta, (limit, offset) = scalars[1:2], scalars[2:4] or (inf, 0.0)
    wide = _wider(dy, gate)

    def parts(first, second, shift):
        """The halves of gate and up, or of their gradients, with what is added to each row."""
        if packed:
            first, second = _halves(first, alternates)
        made = [dy.new_zeros(dy.shape, dtype=wide) if part is None else part.to(wide) for part in (first, second)]
        if shift is not None:
            made = [part + half.to(wide) for part, half in zip(made, _halves(shift, packed and alternates))]
        return made

    present = iter(grads)
    hg_gate = next(present)
    hg_up = None if packed else next(present)
    gate_in, up_in = parts(gate, up, bias)
    # Column sums that were not wanted have no gradient.
    hg, hu = parts(hg_gate, hg_up, next(present, None))
    g, u = gate_in, up_in
    if limit < inf:
        g, u = gate_in.clamp(max=limit), up_in.clamp(-limit, limit)
        stops_gate, stops_up = ~(gate_in <= limit), ~(up_in.abs() <= limit)
        hg, hu = hg.masked_fill(stops_gate, 0), hu.masked_fill(stops_up, 0)
    u = u + offset
    dy_wide = dy.to(wide)

    value, slope, second = _activation(call, kernel.activation, beta)
    along, dgate = second(hg, dy_wide * u, g)
    ddy = along * u + hu * value(g)
    dgate = dgate + slope(hu * dy_wide, g)
    dup = along * dy_wide
    if limit < inf:
        dgate, dup = dgate.masked_fill(stops_gate, 0), dup.masked_fill(stops_up, 0)

    results = [ddy.to(dy.dtype), None, None, None]
    if packed:
        results[1] = _joined(dgate, dup, alternates).to(gate.dtype)
    else:
        results[1:3] = dgate.to(gate.dtype), dup.to(up.dtype)
    sums = [part.sum(tuple(range(part.ndim - 1))) if part.ndim > 1 else part for part in (dgate, dup)]
    results[3] = _joined(*sums, packed and alternates).to(bias.dtype)
    return [result if wanted else None for result, wanted in zip(results, needed)]


def _fused(call, kernel, grads, inputs, scalars, needed):
    directions = kernel.placed((*inputs, None), grads)
    for k, (direction, array) in enumerate(zip(directions, inputs[1:])):
        if direction is None and array is not None:
            directions[k] = array.new_zeros(()).expand_as(array)  # one value, which costs no pass
    made = call(kernel.fused, (*directions, *inputs), scalars)
    results = kernel.fused.placed((*directions, *inputs), made)
    return [*(result if wanted else None for result, wanted in zip(results, needed)), None]


def _activation(call, forward, scalars):
    """a(x); dy * a'(x); and from ddx, dy and x the two of ``<activation>_double_backward``."""
    if forward is None:
        return _relu, _relu_slope, lambda ddx, dy, x: (_relu_slope(ddx, x), x.new_zeros(x.shape))
    backward = forward.gradient
    return tuple(
        lambda *arrays, kernel=kernel: call(kernel, _alike(arrays), scalars)
        for kernel in (forward, backward, backward.gradient)
    )


def _alike(arrays):
    """With the last one's shape, which a gradient need not have that is one value for all."""
    return [array.expand_as(arrays[-1]) for array in arrays]


def _relu(x):
    return x.relu()


def _relu_slope(dy, x):
    return dy.masked_fill(x <= 0, 0)


def _wider(dy, gate):
    """The dtype to compute in: float32 for 16-bit types."""
    import torch

    return next((tensor.dtype for tensor in (gate, dy) if tensor.element_size() > 2), torch.float32)


def _halves(packed, alternates):
    if packed is None:
        return None, None
    return (packed[..., ::2], packed[..., 1::2]) if alternates else packed.chunk(2, -1)


def _joined(first, second, alternates):
    import torch

    return torch.stack((first, second), -1).flatten(-2) if alternates else torch.cat((first, second), -1)
