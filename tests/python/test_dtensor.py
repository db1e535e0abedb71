"""Distributed tensors: two processes get what one gets, on the CPU by gloo and on two GPUs by NCCL."""

import os
import subprocess
import sys

import pytest
import torch

PROGRAM = """
import sys, torch, torch.distributed as dist, fuseline
from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor, init_device_mesh
rank, store, backend, kind = int(sys.argv[1]), *sys.argv[2:]
device, more = torch.device("cpu"), {}
if kind == "cuda":
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    more = {"device_id": device}
dist.init_process_group(backend, init_method="file://" + store, rank=rank, world_size=2, **more)
mesh = init_device_mesh(kind, (2,))
torch.manual_seed(0)
make = lambda *shape: torch.randn(*shape, dtype=torch.float64).to(device)
shapes = {"x": (4, 8), "up": (4, 8), "bias": (16,), "packed": (4, 8), "packed_bias": (8,)}
whole = {name: make(*shape) for name, shape in shapes.items()}
cases = {
    "swish": (lambda x: fuseline.swish(x, 1.5), ["x"]),
    "gelu": (fuseline.gelu, ["x"]),
    "swiglu": (fuseline.swiglu, ["x", "up"]),
    "swiglu bias": (lambda x, up, bias: fuseline.swiglu(x, up, bias=bias), ["x", "up", "bias"]),
    "packed": (fuseline.swiglu, ["packed"]),
    "interleaved": (lambda x: fuseline.geglu(x, interleaved=True), ["packed"]),
    "packed bias": (lambda x, bias: fuseline.swiglu(x, bias=bias), ["packed", "packed_bias"]),
}
for name, (function, names) in cases.items():
    for lead in (Shard(0), Shard(1), Replicate()):
        for other in (lead, Replicate()):
            leaves = [whole[n].clone().requires_grad_() for n in names]
            y = function(*leaves)
            dy = torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=device).reshape(y.shape)
            y.backward(dy)
            kinds = [lead] + [Replicate() if "bias" in n else other for n in names[1:]]
            shards = [distribute_tensor(whole[n], mesh, [kind]).requires_grad_() for n, kind in zip(names, kinds)]
            z = function(*shards)
            assert z.to_local().device == device
            torch.testing.assert_close(z.full_tensor(), y)
            z.backward(distribute_tensor(dy, mesh, z.placements))
            for leaf, shard in zip(leaves, shards):
                assert shard.grad.to_local().device == device
                assert torch.allclose(shard.grad.full_tensor(), leaf.grad), (name, lead, other)
partial = torch.distributed.tensor.DTensor.from_local(whole["x"] / 2, mesh, [Partial()])
torch.testing.assert_close(fuseline.swish(partial).full_tensor(), fuseline.swish(whole["x"]))
z = fuseline.column_sum(distribute_tensor(whole["x"], mesh, [Shard(0)]))
torch.testing.assert_close(z.full_tensor(), whole["x"].sum(0))
dist.destroy_process_group()
"""


BACKENDS = [("gloo", "cpu"), ("nccl", "cuda")]


def why_not(backend, kind):
    """Why two processes cannot work so; None if they can."""
    if not torch.distributed.is_available():
        return "this PyTorch has no torch.distributed"
    if not getattr(torch.distributed, f"is_{backend}_available")():
        return f"this PyTorch has no {backend}"
    if kind == "cuda" and torch.cuda.device_count() < 2:
        return f"needs two GPUs that PyTorch can use; it finds {torch.cuda.device_count()}"
    return None


@pytest.mark.parametrize("backend, kind", BACKENDS, ids=[" on ".join(pair) for pair in BACKENDS])
def test_two_processes_equal_one(backend, kind, tmp_path):
    if why_not(backend, kind) is not None:
        pytest.skip(why_not(backend, kind))
    pytest.importorskip("torch.distributed.tensor")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if backend == "gloo":
        environment["GLOO_SOCKET_IFNAME"] = "lo"
    running = [
        subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", PROGRAM, str(rank), str(tmp_path / "store"), backend, kind],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0, 0], "\n".join(outputs)
