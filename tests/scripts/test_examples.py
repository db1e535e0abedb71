"""The examples do what they say."""

import os
import re
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small gain nothing from threads, and lose much where other processes keep the cores busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def load(root, monkeypatch):
    """Imports examples/NAME.py."""

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


def test_language_model(root, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "language_model.png"
    program = os.path.join(root, "examples", "language_model.py")
    command = [sys.executable, program, "--device", "cpu", "--steps", "6", "--picture", str(picture)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FeedForward -> swiglu(gate_proj, up_proj)  (3 times)" in result.stdout
    memory = re.search(r"memory ([0-9.]+)\n", result.stdout)
    assert float(memory[1]) < 0.95  # of each layer's intermediate tensors, one in four is not kept
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_language_model_notices_wrong_gradients(load, monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    example = load("examples", "language_model")

    def replace(model):
        for layer in model.layers:
            layer.feed_forward.register_forward_hook(lambda module, arguments, result: result.detach())

    monkeypatch.setattr(example.fuseline.torch, "replace", replace)
    arguments = ["language_model.py", "--device", "cpu", "--steps", "12", "--picture", str(tmp_path / "model.png")]
    monkeypatch.setattr(sys, "argv", arguments)
    assert example.main() == 1
    assert "the loss curves differ" in capsys.readouterr().out


def run_processes(command, environment, limit):
    """Runs a command that starts others, all of which end with it. Returns (what it printed, its exit status)."""
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=limit)[0], process.returncode
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


@pytest.mark.parametrize("backend, kind", [("gloo", "cpu"), ("nccl", "cuda")])
def test_ddp(root, backend, kind):
    """Two processes, by DistributedDataParallel and by fully_shard, come to what one comes to: the example compares."""
    if not (torch.distributed.is_available() and getattr(torch.distributed, f"is_{backend}_available")()):
        pytest.skip(f"this PyTorch has no {backend}")
    if kind == "cuda" and torch.cuda.device_count() < 2:
        pytest.skip(f"needs two GPUs that PyTorch can use; it finds {torch.cuda.device_count()}")
    pytest.importorskip("torch.distributed.fsdp", reason="no FSDP")
    if not hasattr(torch.distributed.fsdp, "fully_shard"):
        pytest.skip("this PyTorch has no fully_shard")
    program = os.path.join(root, "examples", "ddp.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    if kind == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = ""
    shown, status = run_processes(command, environment, 150)
    assert re.search(rf"^ddp  on 2 x {kind}: loss ", shown, re.MULTILINE), shown
    assert re.search(rf"^fsdp on 2 x {kind}: loss ", shown, re.MULTILINE), shown
    assert "FAILED: ddp" not in shown and "FAILED: fsdp" not in shown, shown
    # Rarely a process dies after its last statement, while PyTorch's own threads end; with torch.nn's modules too.
    assert status == 0 or "terminate called without an active exception" in shown, shown
