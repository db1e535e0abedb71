"""Trains a small Llama-style language model on Python's own manual, in PyTorch's functions and with fuseline's.

    python examples/language_model.py [--steps 60] [--device cpu|cuda] [--picture language_model.png]

The text is what help() shows, pydoc_data.topics, which comes with Python; the model reads it byte by byte. Two copies
of one model take the same batches, step by step in turn: one as it is written, the other after fuseline.torch.replace.
Prints what was replaced, the time of a step and the memory that it needs: on a GPU the peak above what the model and
its optimizer hold, on the CPU the bytes that are kept for the backward. Draws both loss curves, and ends with exit
status 1 if they differ by more than rounding explains. Needs PyTorch 2.4 or newer.
"""

import argparse
import copy
import pydoc_data.topics
import statistics
import sys
import time
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional

import fuseline
import fuseline.torch

WARM_UP = 3  # steps whose time does not count
# Of the loss, averaged over AVERAGED steps. Training lets rounding grow; a wrong gradient is far above.
LARGEST_DIFFERENCE = {torch.float32: 0.001, torch.bfloat16: 0.05}
AVERAGED = 8


class Size(NamedTuple):
    """Of the model and of a batch."""

    width: int
    layers: int
    heads: int
    intermediate: int
    context: int
    batch: int


SIZES = {
    "cpu": Size(width=128, layers=3, heads=4, intermediate=384, context=64, batch=12),
    "cuda": Size(width=768, layers=8, heads=12, intermediate=2048, context=512, batch=32),
}


# --- the model, as one would write it without fuseline ---


class FeedForward(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.gate_proj = nn.Linear(size.width, size.intermediate, bias=False)
        self.up_proj = nn.Linear(size.width, size.intermediate, bias=False)
        self.down_proj = nn.Linear(size.intermediate, size.width, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Attention(nn.Module):
    """Causal attention whose queries and keys are turned by an angle that grows with the position."""

    def __init__(self, size):
        super().__init__()
        self.heads = size.heads
        self.qkv_proj = nn.Linear(size.width, 3 * size.width, bias=False)
        self.o_proj = nn.Linear(size.width, size.width, bias=False)
        half = size.width // size.heads // 2
        angles = torch.outer(torch.arange(size.context), 10000.0 ** (-torch.arange(half) / half))
        self.register_buffer("turns", torch.stack((angles.cos(), angles.sin())), persistent=False)

    def turned(self, x):
        cos, sin = self.turns[:, : x.shape[-2]].to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat((first * cos - second * sin, first * sin + second * cos), -1)

    def forward(self, x):
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv_proj(x).chunk(3, -1)
        )
        mixed = functional.scaled_dot_product_attention(self.turned(query), self.turned(key), value, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.attention_norm = nn.RMSNorm(size.width)
        self.attention = Attention(size)
        self.norm = nn.RMSNorm(size.width)
        self.feed_forward = FeedForward(size)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.norm(x))


class LanguageModel(nn.Module):
    """From bytes to the logits of the byte that follows each."""

    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(256, size.width)
        self.layers = nn.Sequential(*[Layer(size) for _ in range(size.layers)])
        self.norm = nn.RMSNorm(size.width)
        self.head = nn.Linear(size.width, 256, bias=False)

    def forward(self, text):
        return self.head(self.norm(self.layers(self.embedding(text))))


# --- training ---


def load_text():
    """Python's manual as one tensor of bytes."""
    topics = pydoc_data.topics.topics
    return torch.frombuffer(bytearray("\n\n".join(topics[name] for name in sorted(topics)).encode()), dtype=torch.uint8)


class Run:
    """One of the two trainings."""

    def __init__(self, title, model, dtype):
        self.title, self.model, self.dtype = title, model, dtype
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95))
        self.losses, self.times, self.memory = [], [], 0
        self.device = next(model.parameters()).device

    def loss(self, text):
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            logits = self.model(text[:, :-1])
        return functional.cross_entropy(logits.flatten(0, 1).float(), text[:, 1:].flatten())

    def step(self, text):
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            held = torch.cuda.memory_allocated()
        elif not self.losses:
            self.memory = count_saved_bytes(self.model, lambda: self.loss(text))
        start = time.perf_counter()
        loss = self.loss(text)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())  # waits for the GPU
        self.times.append(time.perf_counter() - start)
        if on_gpu and len(self.times) > WARM_UP:  # the first step makes the optimizer's state too
            self.memory = max(self.memory, torch.cuda.max_memory_allocated() - held)

    @property
    def step_time(self):
        """The median, in seconds."""
        return statistics.median(self.times[WARM_UP:] or self.times)


def count_saved_bytes(model, function):
    """The bytes that autograd keeps until the backward of what the function returns, beyond the model's weights."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept = {}

    def pack(tensor):
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = function()
    saved = sum(storage.nbytes() for pointer, storage in kept.items() if pointer not in weights)
    del result
    return saved


def train(runs, text, size, steps):
    """Gives all runs the same batches, in turn."""
    generator = torch.Generator().manual_seed(0)
    start = time.perf_counter()
    for step in range(1, steps + 1):
        places = torch.randint(len(text) - size.context - 1, (size.batch, 1), generator=generator)
        batch = text[places + torch.arange(size.context + 1)].long().to(runs[0].device)
        for run in runs if step % 2 else reversed(runs):
            run.step(batch)
        losses = ", ".join(f"{run.losses[-1]:.4f}" for run in runs)
        show_progress("training", step, steps, f"losses {losses}  {time.perf_counter() - start:5.1f} s")


def show_progress(title, done, total, note):
    if not sys.stdout.isatty():
        if done == total:
            print(f"  {title} {note}")
        return
    filled = 30 * done // total
    bar = "█" * filled + "░" * (30 - filled)
    print(f"\r  {title} {bar} {done:>3}/{total}  {note}", end="\n" if done == total else "", flush=True)


def averaged(losses):
    return torch.tensor(losses).unfold(0, min(AVERAGED, len(losses)), 1).mean(-1)


def draw(path, runs, difference, where):
    """The two loss curves, and the distance between them."""
    from matplotlib.figure import Figure

    eager, replaced = runs
    figure = Figure(figsize=(8, 6), layout="constrained")
    figure.suptitle("A Llama-style model learns Python's manual, byte by byte", fontsize=14)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    steps = range(1, len(eager.losses) + 1)
    for run, color, width in ((eager, "#f2a541", 6), (replaced, "#20456e", 1.8)):
        label = f"{run.title}: {run.step_time * 1e3:.1f} ms and {run.memory / 2**20:.1f} MiB a step"
        top.plot(steps, run.losses, color=color, linewidth=width, label=label)
    top.set_ylabel("training loss (cross-entropy per byte)")
    top.legend(frameon=False)
    bottom.bar(steps, difference, color="#a33b3b")
    bottom.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    bottom.set_ylabel("difference")
    bottom.set_xlabel(f"step (AdamW, same weights and batches, on {where})")
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.margins(x=0.01)
    figure.savefig(path, dpi=120)


def choose_device():
    """The GPU, if PyTorch has one and the library has code for it; else the CPU."""
    if torch.cuda.is_available():
        try:
            fuseline.swish(torch.ones(1, device="cuda"))
            return "cuda"
        except fuseline.DeviceError as error:
            print(f"The GPU is not used: {error}")
    return "cpu"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, help="default: 60 on the CPU, 400 on a GPU")
    parser.add_argument("--device", help="cpu or cuda (default: the GPU, if there is one that can be used)")
    parser.add_argument("--picture", default="language_model.png")
    options = parser.parse_args()

    device = options.device or choose_device()
    on_gpu = device.startswith("cuda")
    size = SIZES["cuda" if on_gpu else "cpu"]
    dtype = torch.bfloat16 if on_gpu else torch.float32
    steps = options.steps or (400 if on_gpu else 60)
    where = torch.cuda.get_device_name() if on_gpu else "the CPU"
    if not on_gpu:
        torch.set_num_threads(1)  # so small a model gains little from threads, and waits for them on a busy machine

    text = load_text()
    torch.manual_seed(0)
    model = LanguageModel(size)
    count = sum(parameter.numel() for parameter in model.parameters())
    print(f"Python's manual: {len(text)} bytes; a model of {count / 1e6:.1f} million weights, on {where}, {dtype}")
    runs = [Run(title, copy.deepcopy(model).to(device), dtype) for title in ("eager", "replaced")]
    print("\n".join("  " + line for line in repr(fuseline.torch.replace(runs[1].model)).splitlines()))
    train(runs, text, size, steps)

    eager, replaced = runs
    difference = (torch.tensor(replaced.losses) - torch.tensor(eager.losses)).abs()
    farthest = (averaged(replaced.losses) - averaged(eager.losses)).abs().max().item()
    draw(options.picture, runs, difference.tolist(), where)
    what = "peak memory" if on_gpu else "kept for the backward"
    for run in runs:
        print(
            f"  {run.title:<8}  loss {run.losses[0]:.3f} to {run.losses[-1]:.3f}, {run.step_time * 1e3:.1f} ms a step, "
            f"{run.memory / 2**20:.1f} MiB {what}"
        )
    time_ratio, memory_ratio = replaced.step_time / eager.step_time, replaced.memory / eager.memory
    print(f"  replaced / eager: time {time_ratio:.3f}, memory {memory_ratio:.3f}")
    print(
        f"  largest difference between the curves {difference.max():.2e}; averaged over {AVERAGED} steps {farthest:.2e}"
    )
    print(f"  the curves: {options.picture}")
    if not farthest <= LARGEST_DIFFERENCE[dtype]:
        print(f"  FAILED: the loss curves differ by more than {LARGEST_DIFFERENCE[dtype]}")
        return 1
    if not replaced.losses[-1] < replaced.losses[0] - 0.5:
        print("  FAILED: the model did not learn")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
