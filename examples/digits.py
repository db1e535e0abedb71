"""Trains a small network on handwritten digits, once with fuseline.swish and once with PyTorch's own silu.

    python examples/digits.py [--epochs 30] [--device cpu|cuda] [--picture digits.png]

The data is the set of 1797 pictures of 8 x 8 pixels that scikit-learn ships. Both runs start from the same weights and
see the same batches in the same order, so that they differ only by the activation's rounding. Prints both test
accuracies and the largest difference between the two loss curves, draws the curves, and ends with exit status 1 if
the runs disagree.
"""

import argparse
import sys
import time

import numpy
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fuseline

BATCH = 64
LEAST_ACCURACY = 0.95  # of either run; an untrained network has 0.1
LARGEST_LOSS_DIFFERENCE = 0.01  # rounding alone stays far below; a wrong gradient is far above


class Network(torch.nn.Module):
    """64 pixels, two hidden layers, 10 classes."""

    def __init__(self, activation):
        super().__init__()
        self.first = torch.nn.Linear(64, 128)
        self.second = torch.nn.Linear(128, 64)
        self.last = torch.nn.Linear(64, 10)
        self.activation = activation

    def forward(self, pixels):
        hidden = self.activation(self.first(pixels))
        return self.last(self.activation(self.second(hidden)))


def choose_device():
    """The GPU, if PyTorch has one and the library has code for it; else the CPU."""
    if torch.cuda.is_available():
        try:
            fuseline.swish(torch.ones(1, device="cuda"))
            return "cuda"
        except fuseline.DeviceError as error:
            print(f"The GPU is not used: {error}")
    return "cpu"


def load_data(device):
    """Pixels from 0 to 1 and labels, four fifths to train with and one fifth to test with."""
    digits = load_digits()
    parts = train_test_split(
        (digits.data / 16).astype(numpy.float32), digits.target, test_size=0.2, random_state=0, stratify=digits.target
    )
    return [torch.from_numpy(part).to(device) for part in parts]


def show_progress(title, done, total, note):
    if not sys.stdout.isatty():
        if done == total:
            print(f"  {title:<16} {note}")
        return
    filled = 30 * done // total
    bar = "█" * filled + "░" * (30 - filled)
    print(f"\r  {title:<16} {bar} {done:>3}/{total}  {note}", end="\n" if done == total else "", flush=True)


def train(title, activation, data, epochs, device):
    """Returns the mean training loss of each epoch, and the network's answers for the test pictures."""
    train_pixels, test_pixels, train_labels, _ = data
    torch.manual_seed(0)
    network = Network(activation).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    order = torch.Generator().manual_seed(0)
    losses = []
    start = time.perf_counter()
    for epoch in range(1, epochs + 1):
        total = torch.zeros((), device=device)
        for batch in torch.randperm(len(train_labels), generator=order).to(device).split(BATCH):
            loss = torch.nn.functional.cross_entropy(network(train_pixels[batch]), train_labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.detach() * len(batch)
        losses.append(total.item() / len(train_labels))
        show_progress(title, epoch, epochs, f"loss {losses[-1]:.5f}  {time.perf_counter() - start:4.1f} s")
    with torch.no_grad():
        return losses, network(test_pixels).argmax(1)


def draw(path, runs, difference, data, where):
    """Some test digits with the network's answers, the two loss curves, and the distance between them."""
    from matplotlib.figure import Figure

    (our_title, ours, our_accuracy, answers), (their_title, theirs, their_accuracy, _) = runs
    pixels, labels = data[1].cpu().numpy(), data[3].tolist()
    epochs = range(1, len(ours) + 1)
    figure = Figure(figsize=(8, 7), layout="constrained")
    figure.suptitle("A 64-128-64-10 network learns handwritten digits", fontsize=14)
    strip, curves = figure.subfigures(2, 1, height_ratios=(1, 6))

    for axes, picture, answer, label in zip(strip.subplots(1, 14), pixels, answers.tolist(), labels):
        axes.imshow(picture.reshape(8, 8), cmap="gray_r")
        axes.set_title(str(answer), fontsize=11, color="#2b7a3f" if answer == label else "#c02020")
        axes.set_axis_off()

    top, bottom = curves.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    their_label = f"{their_title}: {their_accuracy:.1%} of the test digits right"
    our_label = f"{our_title}: {our_accuracy:.1%} of the test digits right"
    top.plot(epochs, theirs, color="#f2a541", linewidth=6, label=their_label)
    top.plot(epochs, ours, color="#20456e", linewidth=1.8, label=our_label)
    top.set_yscale("log")
    top.set_ylabel("training loss (cross-entropy)")
    top.legend(frameon=False, loc="upper right")
    bottom.bar(epochs, difference, color="#a33b3b")
    bottom.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    bottom.set_ylabel("difference")
    bottom.set_xlabel(f"epoch ({BATCH} pictures a batch, Adam, same weights and order, on {where})")
    for axes in (top, bottom):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        axes.margins(x=0.01)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--device", help="cpu or cuda (default: the GPU, if there is one that can be used)")
    parser.add_argument("--picture", default="digits.png")
    options = parser.parse_args()

    device = options.device or choose_device()
    where = torch.cuda.get_device_name() if device.startswith("cuda") else "the CPU"
    if device == "cpu":
        torch.set_num_threads(1)  # so small a network gains nothing from threads, and waits for them on a busy machine
    data = load_data(device)
    print(f"Handwritten digits: {len(data[2])} to train with, {len(data[3])} to test with, on {where}")
    runs = []
    for title, activation in (("fuseline.swish", fuseline.swish), ("F.silu", torch.nn.functional.silu)):
        losses, answers = train(title, activation, data, options.epochs, device)
        accuracy = (answers == data[3]).float().mean().item()
        runs.append((title, losses, accuracy, answers))

    (_, ours, our_accuracy, _), (_, theirs, their_accuracy, _) = runs
    difference = numpy.abs(numpy.subtract(ours, theirs))
    draw(options.picture, runs, difference, data, where)
    print(f"  accuracy on the test digits: fuseline.swish {our_accuracy:.2%}, F.silu {their_accuracy:.2%}")
    print(f"  loss: {ours[0]:.3f} to {ours[-1]:.5f}, largest difference between the curves {difference.max():.2e}")
    print(f"  the curves: {options.picture}")
    if min(our_accuracy, their_accuracy) < LEAST_ACCURACY:
        print(f"  FAILED: an accuracy is below {LEAST_ACCURACY:.0%}")
        return 1
    if not difference.max() <= LARGEST_LOSS_DIFFERENCE:
        print(f"  FAILED: the loss curves differ by more than {LARGEST_LOSS_DIFFERENCE}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
