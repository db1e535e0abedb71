"""Distributed tensors of PyTorch: a kernel on each process's own shard.

Every operator is elementwise but for packed inputs and biases along the last axis, so shards of all inputs that lie
alike give the result's shards. What lies otherwise is redistributed first, as PyTorch's own operators do it.
"""

import sys

from ._kernels import COLUMNS


def is_distributed(tensor):
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def call(adapter, kernel, inputs, scalars, out, dtype, wanted):
    """``Adapter.call`` where at least the leading input is distributed."""
    from torch.distributed.tensor import DTensor, Partial, Replicate, Shard

    lead = inputs[kernel.lead]
    mesh, last = lead.device_mesh, lead.ndim - 1
    has_bias = any(x is not None for x, operand in zip(inputs, kernel.inputs) if operand.form is COLUMNS)
    keeps_rows = kernel.is_packed(inputs) or has_bias
    placements = [
        placement
        if isinstance(placement, Shard) and not (keeps_rows and placement.dim % lead.ndim == last)
        else Replicate()
        for placement in lead.placements
    ]
    # A bias belongs to all rows, so what a process computes of its gradient is part of a sum.
    whole = [Replicate()] * len(placements)
    part = [Partial() if isinstance(placement, Shard) else Replicate() for placement in placements]

    def local(operand, tensor):
        if tensor is None:
            return None
        if not isinstance(tensor, DTensor):
            tensor = DTensor.from_local(tensor, mesh, whole, run_check=False)
        if operand.form is COLUMNS:
            return tensor.redistribute(mesh, whole).to_local(grad_placements=part)
        return tensor.redistribute(mesh, placements).to_local(grad_placements=placements)

    shards = [local(operand, tensor) for operand, tensor in zip(kernel.inputs, inputs)]
    made = adapter.call(kernel, shards, scalars, None, dtype, wanted)
    several = made if isinstance(made, tuple) else (made,)
    results = kernel.results(inputs, wanted)
    made = tuple(
        DTensor.from_local(
            shard, mesh, part if result.form is COLUMNS or result.summed else placements, run_check=False
        )
        for shard, result in zip(several, results)
    )
    made = made if len(made) > 1 else made[0]
    if out is None:
        return made
    for target, source in zip(out, made) if isinstance(made, tuple) else ((out, made),):
        target.copy_(source)
    return out
