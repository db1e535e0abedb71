"""The checks of a well-known tutorial on custom operators: its numbers, the formula's, and ours.

    python examples/tutorial_checks.py [--device cpu|cuda]

The tutorial writes Swish as a PyTorch extension for an AMD GPU, prints five inputs with their outputs and gradients,
and checks that the derivative at 0 is 0.5. The outputs and gradients that it prints are not the values of its own
formula: Swish of its first input is 1.2692, where it prints 1.2668. What counts here is therefore the formula,
evaluated in float64; the printed numbers stand beside it. Ends with exit status 1 if a value of ours differs from
the formula.
"""

import argparse
import math
import sys

import torch

import fuseline

# As printed there.
INPUTS = (1.5409961, -0.2934289, -2.1787894, 0.56843126, -1.0845224)
OUTPUTS = (1.266752, -0.12532969, -0.22169162, 0.3628173, -0.27663696)
GRADIENTS = (1.0177128, 0.43097112, 0.05644776, 0.71746385, 0.23094234)

TOLERANCE = 1.2e-7  # float32: one unit in the last place of a number between 1 and 2


def swish(x):
    return x / (1 + math.exp(-x))


def derivative(x):
    sigmoid = 1 / (1 + math.exp(-x))
    return sigmoid + x * sigmoid * (1 - sigmoid)


def check(name, printed, right, ours):
    same = abs(ours - right) <= TOLERANCE
    print(f"  {name:<24} {printed:>12.8f} {right:>14.8f} {ours:>14.8f}   {'ok' if same else 'DIFFERS'}")
    return same


def run(device):
    """Prints every value three times; returns whether ours are the formula's."""
    x = torch.tensor(INPUTS, device=device, requires_grad=True)
    y = fuseline.swish(x)
    y.sum().backward()
    zero = torch.zeros(1, device=device, requires_grad=True)
    fuseline.swish(zero).sum().backward()

    results = []
    print(f"  {'':<24} {'tutorial':>12} {'formula':>14} {'fuseline':>14}")
    for value, printed, ours in zip(x.tolist(), OUTPUTS, y.tolist()):
        results.append(check(f"swish({value:.7f})", printed, swish(value), ours))
    for value, printed, ours in zip(x.tolist(), GRADIENTS, x.grad.tolist()):
        results.append(check(f"gradient at {value:.7f}", printed, derivative(value), ours))
    results.append(check("derivative at 0", 0.5, derivative(0.0), zero.grad.item()))
    print("  ok: fuseline has the formula's value. The tutorial's printed numbers do not follow from its formula.")
    return all(results)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    return 0 if run(parser.parse_args().device) else 1


if __name__ == "__main__":
    sys.exit(main())
