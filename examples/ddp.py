"""Data-parallel training with fuseline's modules: on any number of GPUs, or of processes on the CPU.

    torchrun --standalone --nproc-per-node=2 examples/ddp.py [--wrap ddp|fsdp|both] [--steps 40]

Each process works on its share of every batch. Their gradients are averaged by DistributedDataParallel ("ddp"), or by
FSDP2's fully_shard ("fsdp", PyTorch 2.6 and newer), which also gives each process only its share of the weights. Each
process trains the same network alone too, on the whole batches; the exit status is 1 if the losses or the weights
differ by more than rounding. Where PyTorch has GPUs, process k of a machine uses GPU k, and they talk by NCCL; else
by gloo.
"""

import argparse
import gc
import os
import sys

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

import fuseline.torch.nn as fnn

FEATURES = 32
BATCH = 96  # of all processes together; a multiple of their number
TOLERANCE = 1e-4  # relative; sums in another order differ by about 1e-6, a missing average by 1e-1


class Block(torch.nn.Module):
    """A gated feed-forward with a residual connection; gate and up come from one projection."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(FEATURES)
        self.gate_up = torch.nn.Linear(FEATURES, 4 * FEATURES)
        self.unit = fnn.SwiGLU()
        self.down = torch.nn.Linear(2 * FEATURES, FEATURES)

    def forward(self, x):
        return x + self.down(self.unit(self.gate_up(self.norm(x))))


class Network(torch.nn.Module):
    """Some features in, one number out."""

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(FEATURES, FEATURES)
        self.activation = fnn.GELU()
        self.blocks = torch.nn.Sequential(Block(), Block())
        self.last = torch.nn.Linear(FEATURES, 1)

    def forward(self, x):
        return self.last(self.blocks(self.activation(self.first(x))))


def make_network(device):
    """The same one at each call, in each process."""
    torch.manual_seed(0)
    return Network().to(device)


def make_batch(step, device):
    """The whole batch of a step: points, and a smooth function of them."""
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(BATCH, FEATURES, generator=generator)
    return x.to(device), (torch.sin(x[:, :1]) + x[:, 1:2].abs()).to(device)


def wrap_ddp(network, device):
    return DistributedDataParallel(network, device_ids=[device.index] if device.type == "cuda" else None)


def wrap_fsdp(network, device):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    for block in network.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(network, mesh=mesh)


WRAPS = {"ddp": wrap_ddp, "fsdp": wrap_fsdp}


def full_weights(network):
    """All weights, as plain tensors in the order of the network's parameters. Every process has to call this."""
    weights = [parameter.detach() for parameter in network.parameters()]
    return [weight.full_tensor() if hasattr(weight, "full_tensor") else weight for weight in weights]


def train(network, steps, device, rank=0, processes=1):
    """Returns the loss of each step, over the whole batch."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)
    losses = []
    for step in range(steps):
        x, y = (tensor.chunk(processes)[rank] for tensor in make_batch(step, device))
        loss = torch.nn.functional.mse_loss(network(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss = loss.detach()
        if processes > 1:  # shares are of one size, so that the mean of means is the mean
            torch.distributed.all_reduce(loss)
            loss /= processes
        losses.append(loss.item())
    return losses


def largest_difference(ours, theirs):
    """Of two lists of tensors, relative to the largest element."""
    return max(
        ((a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1e-30)).item()
        for a, b in zip(ours, theirs)
    )


def compare(name, alone, losses, device):
    """Trains the network in all processes. Returns whether it came to what one process, `alone`, came to."""
    rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    wrapped = WRAPS[name](make_network(device), device)
    shared = train(wrapped, len(losses), device, rank, processes)
    of_losses = largest_difference([torch.tensor(shared)], [torch.tensor(losses)])
    of_weights = largest_difference(full_weights(wrapped), full_weights(alone))
    if rank == 0:
        print(
            f"{name:<4} on {processes} x {device.type}: loss {shared[0]:.6f} to {shared[-1]:.6f}, alone "
            f"{losses[0]:.6f} to {losses[-1]:.6f}; largest difference of the losses {of_losses:.1e}, of the weights "
            f"{of_weights:.1e}"
        )
    if not max(of_losses, of_weights) <= TOLERANCE:
        print(f"FAILED: {name}, process {rank}: a difference above {TOLERANCE}")
        return False
    if not sum(shared[-5:]) < sum(shared[:5]):
        print(f"FAILED: {name}, process {rank}: the loss did not fall")
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wrap", choices=("ddp", "fsdp", "both"), default="both")
    parser.add_argument("--steps", type=int, default=40)
    options = parser.parse_args()

    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        torch.distributed.init_process_group("nccl", device_id=device)
    else:
        device = torch.device("cpu")
        torch.set_num_threads(1)  # so small a network gains nothing from threads
        torch.distributed.init_process_group("gloo")
    processes = torch.distributed.get_world_size()
    if BATCH % processes:
        parser.error(f"the batch of {BATCH} cannot be shared by {processes} processes")

    alone = make_network(device)
    losses = train(alone, options.steps, device)
    names = ("ddp", "fsdp") if options.wrap == "both" else (options.wrap,)
    good = [compare(name, alone, losses, device) for name in names]  # (all of them, in every process)
    gc.collect()  # the wrapped networks, so that nothing uses the processes' connections when these are closed
    torch.distributed.destroy_process_group()
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
