"""The examples and the benchmark do what they say."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small gain nothing from threads, and lose much where other processes keep the cores busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def load(root, monkeypatch):
    """Imports examples/NAME.py or bench/NAME.py."""

    def run(folder, name):
        monkeypatch.syspath_prepend(os.path.join(root, folder))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return run


def test_digits(root, tmp_path):
    pytest.importorskip("sklearn")
    picture = tmp_path / "digits.png"
    program = os.path.join(root, "examples", "digits.py")
    command = [sys.executable, program, "--device", "cpu", "--picture", str(picture)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "largest difference" in result.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_digits_notices_a_wrong_gradient(load, monkeypatch, tmp_path, capsys):
    pytest.importorskip("sklearn")
    digits = load("examples", "digits")

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.nn.functional.silu(x)

        @staticmethod
        def backward(ctx, dy):
            return dy * torch.sigmoid(ctx.saved_tensors[0])

    monkeypatch.setattr(digits.fuseline, "swish", Wrong.apply)
    arguments = ["digits.py", "--device", "cpu", "--epochs", "20", "--picture", str(tmp_path / "digits.png")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert digits.main() == 1
    assert "the loss curves differ" in capsys.readouterr().out


def test_digits_notices_a_network_that_does_not_learn(load, monkeypatch, tmp_path, capsys):
    pytest.importorskip("sklearn")
    digits = load("examples", "digits")
    arguments = ["digits.py", "--device", "cpu", "--epochs", "1", "--picture", str(tmp_path / "digits.png")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert digits.main() == 1
    assert "an accuracy is below" in capsys.readouterr().out


def test_tutorial_checks(load, monkeypatch, capsys):
    checks = load("examples", "tutorial_checks")
    assert checks.run("cpu")
    monkeypatch.setattr(checks.fuseline, "swish", lambda x: torch.nn.functional.silu(x) * 1.0001)
    assert not checks.run("cpu")
    assert "DIFFERS" in capsys.readouterr().out


class PassCounter(TorchDispatchMode):
    """Counts the elements that PyTorch's operators read and write; an element with stride 0 counts once."""

    def __init__(self):
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if not (function.is_view or function._schema.name == "aten::detach"):
            for tensor in tree_leaves(arguments) + tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    self.elements += torch.tensor([n for n, s in zip(tensor.shape, tensor.stride()) if s]).prod().item()
        return result


@pytest.mark.parametrize("name", ["x*sigmoid(x)", "F.silu"])
def test_benchmark_counts_passes_as_pytorch_makes_them(load, name):
    tutorial = load("bench", "tutorial")
    elements = 100_000
    function = tutorial.make_variants(elements, "cpu")[name]
    with PassCounter() as counter:
        function()
    assert round(counter.elements / elements) == tutorial.PASSES[name]


def test_benchmark_runs(load, capsys):
    results = load("bench", "tutorial").run("cpu", [1000], rounds=3)
    assert set(results[1000]) == {"x*sigmoid(x)", "F.silu", "fuseline.swish", "copy"}
    assert all(seconds > 0 for seconds in results[1000].values())
    assert "GB/s" in capsys.readouterr().out
