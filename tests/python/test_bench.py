"""python -m fuseline bench: what it counts, computes, compares and prints. Times themselves are nobody's to test."""

import io
import json
import math
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves  # noqa: E402

import fuseline  # noqa: E402
from fuseline import __main__  # noqa: E402
from fuseline.bench import _cases, _machine, _operators, _plot, _report, _run, _timing  # noqa: E402
from fuseline.bench._cases import Case  # noqa: E402

OPERATORS = _operators.OPERATORS
EVERY = [(op, direction) for op, operator in OPERATORS.items() for direction in operator.stages]


@pytest.fixture(autouse=True)
def little_effort(monkeypatch):
    """A test measures nothing: few and short series."""
    monkeypatch.setattr(_timing, "CPU_EFFORT", _timing.Effort(runs=2, seconds=0, calls=1, warm_up=1))
    monkeypatch.setattr(_timing, "GPU_EFFORT", _timing.Effort(runs=2, seconds=0, calls=1, warm_up=1))
    monkeypatch.setattr(_run, "_SETS_MOST", 2)


def bench(*arguments):
    return __main__.main(["bench", *arguments])


def measured(tmp_path, *arguments):
    """The figures that a run writes."""
    file = tmp_path / "figures.json"
    assert bench(*arguments, "--json", str(file)) == 0
    return json.loads(file.read_text())


def case_of(op, direction, dtype="float32", shape=(6, 32), **more):
    return Case(op, direction, dtype, shape, "cpu", **more)


@pytest.fixture
def machine():
    return _machine.Machine(torch, "cpu", "0")


def test_figures_of_a_case(tmp_path, capsys):
    figures = measured(
        tmp_path, "--device", "cpu", "--shape", "4x8", "--dtype", "bfloat16", "--against", "eager,builtin"
    )
    assert isinstance(figures, list) and len(figures) == 1
    case = figures[0]
    assert (case["op"], case["direction"], case["dtype"]) == ("swish", "forward", "bfloat16")
    assert case["shape"] == [4, 8] and case["device"] == "cpu" and case["bytes"] == 2 * 32 * 2
    for name in ("us", "us_p20", "us_p80", "us_least", "gbps", "of_copy", "copy_us", "copy_gbps"):
        assert isinstance(case[name], float) and case[name] > 0
    assert case["us_least"] <= case["us_p20"] <= case["us"] <= case["us_p80"]
    assert case["peak_gbps"] is None and case["of_peak"] is None
    assert set(case["against"]) == {"eager", "builtin"} and all(ratio > 0 for ratio in case["against"].values())
    assert case["timing"] == "host clock" and case["runs"] == 2 and case["missing"] == {}
    environment = case["environment"]
    assert environment["torch"] == torch.__version__ and environment["fuseline"]
    assert {"card", "driver", "commit", "date", "python"} <= set(environment)
    assert environment["instructions"] == {
        "fuseline": fuseline.info()["cpu"]["variant"],
        "torch": torch.backends.cpu.get_cpu_capability(),
    }
    printed = capsys.readouterr()
    assert (
        "swish forward bfloat16 4x8 on cpu" in printed.out and "% of copy" in printed.out and "x eager" in printed.out
    )
    assert printed.err == "1/1 swish forward bfloat16 4x8 on cpu\n"


def test_at_least_fifty_runs():
    program = (
        "from fuseline.bench import _timing as t; print(t.GPU_EFFORT.runs, t.CPU_EFFORT.runs, t.GPU_EFFORT.warm_up)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    gpu, cpu, warm_up = map(int, done.stdout.split())
    assert gpu >= 50 and cpu >= 50 and warm_up >= 1


def test_every_operator_is_measured():
    assert set(fuseline.info()["operators"]) <= set(OPERATORS)
    for op, operator in OPERATORS.items():
        assert "forward" in operator.stages and (operator.backward is None or "backward" in operator.stages), op


# --- bytes ---


class Counter(TorchDispatchMode):
    """The bytes of what operators read and write; an axis with stride 0 counts once, views cost nothing."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        result = function(*arguments, **(keywords or {}))
        if not (function.is_view or function._schema.name in ("aten::detach", "aten::ones_like")):
            for tensor in tree_leaves(arguments) + tree_leaves(result):
                if isinstance(tensor, torch.Tensor):
                    extents = [extent for extent, stride in zip(tensor.shape, tensor.stride()) if stride]
                    self.bytes += math.prod(extents) * tensor.element_size()
        return result


@pytest.mark.parametrize("dtype", ["bfloat16", "float64"])
@pytest.mark.parametrize("op, direction", EVERY)
def test_bytes_are_those_of_the_operands(op, direction, dtype):
    """As PyTorch sees the operators' arguments and results go by."""
    case = case_of(op, direction, dtype, (64, 96))
    call = _run._ours(case, _run.Tensors(case, "cpu"))
    call()
    with Counter() as counter:
        call()
    item = _cases.ITEM_SIZES[dtype]
    counted = counter.bytes
    if op == "swiglu_bias" and direction != "forward":
        counted += 2 * case.numel * item  # the bias's gradient is read off the others within one operator
    assert abs(_operators.moved_bytes(case, item) - counted) <= 4 * item  # one value: a sum, a gradient


@pytest.mark.parametrize(
    "name, function, passes", [("builtin", torch.nn.functional.silu, 5), ("eager", lambda x: x * torch.sigmoid(x), 16)]
)
def test_the_tutorials_step_costs_as_many_passes(name, function, passes):
    """What ours is compared with there: built-in and expression, as PyTorch makes them."""
    case = case_of("swish", "step", shape=(100_000,))
    step = _run._WAYS[name](case, _run.Tensors(case, "cpu"))
    with Counter() as counter:
        step()
    assert round(counter.bytes / 4 / case.numel) == passes


# --- arithmetic ---


def test_arithmetic(machine, monkeypatch):
    """Every figure follows from the times: with those of nobody's making."""
    times = {"fuseline": 50.0, "eager": 125.0, (2, 1): 30.0, (3, 2): 15.0}
    monkeypatch.setattr(
        _timing,
        "measure",
        lambda ways, *_: {way: _timing.Times(*[times[way]] * 4, 7, 3) for way in ways},
    )
    machine.peak = 0.5
    figures = _run.run(case_of("swiglu", "both", shape=(10, 100), against=("eager",)), machine, _timing.CPU_EFFORT)
    assert figures["bytes"] == 8 * 1000 * 4  # gate, up, y; dy, gate, up, dgate, dup
    assert figures["gbps"] == pytest.approx(32_000 / 50e-6 / 1e9)
    assert figures["copy_us"] == 45.0 and figures["of_copy"] == pytest.approx(0.9)
    assert figures["of_peak"] == pytest.approx(0.64 / 0.5)
    assert figures["against"] == {"eager": pytest.approx(2.5)}
    assert {name: copy["us"] for name, copy in figures["copies"].items()} == {"2+1": 30.0, "3+2": 15.0}


@pytest.mark.parametrize(
    "stage, streams, share",
    [((1, 1), (1, 1), 1), ((2, 1), (2, 1), 1), ((3, 2), (3, 2), 1), ((1, 0), (1, 1), 0.5), ((2, 2), (3, 2), 0.8)],
)
def test_copy_for_a_stage(stage, streams, share):
    assert _run.copy_for(*stage) == (streams, share)


def test_every_stage_has_a_copy():
    for op, direction in EVERY:
        for stage in OPERATORS[op].stages[direction]:
            (reads, writes), share = _run.copy_for(*stage)
            assert (reads + writes) * share == sum(stage)


def test_copies_are_of_the_cases_bytes():
    """Moved as float32, whatever the dtype, since conversions are no part of moving memory."""
    for dtype, item in _cases.ITEM_SIZES.items():
        for out in (False, True):
            (copy,) = _run._copy_sets((3, 2), case_of("swiglu", "backward", dtype, out=out), "cpu", 1)
            tensors = [*copy.args[:3], *copy()]
            assert [tensor.numel() * tensor.element_size() for tensor in tensors] == [192 * item] * 5
            assert (copy.args[3] is None) != out and (not out or copy()[0] is copy.args[3][0])


def test_summary():
    times = _timing.summary([5, 1, 4, 2, 3, 6], 9)
    assert times == (3.5, 2, 5, 1, 6, 9)
    assert _timing.summary([2.0], 1) == (2, 2, 2, 2, 1, 1)


def test_copies_copy(device, dtype):
    """The ruler's kernels, against what they stand for."""
    a, b, c = (torch.randn(1000, device=device).to(dtype) for _ in range(3))
    y, z = _run._copies[3, 2](a, b, c, None, None)
    assert torch.equal(_run._copies[1, 1](a, None, None), a)
    assert torch.equal(_run._copies[2, 1](a, b, None, None), a + b)
    assert torch.equal(y, a + b) and torch.equal(z, b + c)


# --- timing ---


class Recorder:
    """A timer that keeps what was asked of it."""

    def __init__(self):
        self.log = []

    def series(self, function, calls, lead=0.0):
        for call in range(calls):
            function(call)
        self.log.append(calls)
        return lambda: 1e-6 * calls

    def wait(self):
        self.log.append("wait")


def test_ways_take_turns_and_tensors_rotate():
    used = []
    ways = {name: [lambda name=name, k=k: used.append((name, k)) for k in range(3)] for name in "ab"}
    effort = _timing.Effort(runs=4, seconds=5e-6, calls=100, warm_up=2)
    times = _timing.measure(ways, Recorder(), effort)
    assert times["a"] == (1, 1, 1, 1, 4, 5)
    timed = used[12:]  # after four calls of warm-up, and two to see how long they take, of each
    assert [timed[at][0] for at in range(0, len(timed), 5)] == list("abbabaab")
    for name in "ab":
        assert [k for way, k in used if way == name] == [k % 3 for k in range(6 + 4 * 5)]


def test_results_are_kept_until_their_tensors_turn():
    """So that memory which a cache holds is not given to the next result."""

    class Result:
        living = 0

        def __init__(self):
            Result.living += 1

        def __del__(self):
            Result.living -= 1

    living = []

    def function():
        living.append(Result.living)
        return Result()

    _timing.measure({"a": [function] * 3}, Recorder(), _timing.Effort(runs=4, seconds=5e-6, calls=100, warm_up=2))
    assert living[:3] == [0, 1, 2] and set(living[3:]) == {3}


def test_nothing_waits_between_series():
    """So that a device never runs out of work: the gap before a first call is not measured."""
    timer = Recorder()
    _timing.measure({"a": [lambda: None], "b": [lambda: None]}, timer, _timing.Effort(3, 1e-6, 1, 1))
    assert timer.log[-7:] == [1] * 6 + ["wait"]


class Gpu:
    """What EventTimer uses of PyTorch, with a device on which clearing memory takes a millisecond."""

    uint8 = "uint8"

    def __init__(self):
        self.log, self.now = [], 0.0
        self.cuda = types.SimpleNamespace(Event=lambda enable_timing: GpuEvent(self), synchronize=self.log.append)

    def empty(self, size, dtype, device):
        return types.SimpleNamespace(zero_=self.clear)

    def clear(self):
        self.log.append("clear")
        self.now += 1e-3


class GpuEvent:
    def __init__(self, gpu):
        self.gpu = gpu

    def record(self):
        self.gpu.log.append("event")
        self.at = self.gpu.now

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3


def test_events_enclose_the_calls():
    gpu = Gpu()
    timer = _timing.EventTimer(gpu, "cuda:1")

    def call(number):
        gpu.log.append(number)
        gpu.now += 0.25

    taken = timer.series(call, 2)
    assert gpu.log == ["event", 0, 1, "event"] and taken() == 0.5
    timer.wait()
    assert gpu.log[-1] == "cuda:1"


def test_a_device_is_kept_busy_until_the_host_has_called():
    gpu = Gpu()
    timer = _timing.EventTimer(gpu, "cuda")
    timer.series(gpu.log.append, 1, lead=1e-3)  # sees how long clearing takes
    del gpu.log[:]
    taken = timer.series(gpu.log.append, 1, lead=2.5e-3)
    assert gpu.log == ["clear"] * 3 + ["event", 0, "event"] and taken() == 0

    class Slow(Recorder):
        def series(self, function, calls, lead=0.0):
            self.log.append((calls, lead))
            return super().series(function, calls)

    slow, quick = Slow(), Slow()
    effort = _timing.Effort(runs=1, seconds=4e-6, calls=9, warm_up=1)
    _timing.measure({"a": [lambda: sum(range(20_000))]}, slow, effort)  # the device takes 1 us, says the timer
    calls, lead = slow.log[-3]
    assert calls == 4 and 4e-6 < lead < 10
    quick.series = lambda function, calls, lead=0.0: (quick.log.append(lead), lambda: 1.0 * calls)[1]
    _timing.measure({"a": [lambda: None]}, quick, effort)
    assert quick.log[-2] == 0


def test_tensors_exceed_the_cache(machine, monkeypatch):
    monkeypatch.setattr(_run, "_SETS_MOST", 256)
    machine.cache = 100_000
    machine.free_bytes = lambda: None
    count, is_beyond = _run._numbers_of_sets(case_of("swish", "forward", shape=(1000,)), machine)
    assert count * 4000 >= 3 * machine.cache and is_beyond
    assert _run._numbers_of_sets(case_of("swish", "forward", shape=(10**6,)), machine) == (1, True)
    assert _run._numbers_of_sets(case_of("swish", "forward", shape=(16,)), machine) == (256, False)
    assert _run._numbers_of_sets(case_of("swish", "forward", shape=(1000,), is_cached=True), machine) == (1, False)
    sets = _run._numbers_of_sets(case_of("swiglu", "backward", shape=(1000,), out=True), machine)[0]
    assert sets == math.ceil(3 * machine.cache / (5 * 4000))


def test_sets_share_no_memory_and_hold_the_same():
    case = case_of("swiglu", "both")
    first = _run.Tensors(case, "cpu")
    second = _run.Tensors(case, "cpu", first)
    for mine, other in zip([*first.inputs, first.dy], [*second.inputs, second.dy]):
        assert torch.equal(mine, other) and mine.data_ptr() != other.data_ptr()


def test_too_large_is_skipped(machine, monkeypatch, capsys):
    monkeypatch.setattr(_machine.Machine, "free_bytes", lambda self: 10**6)
    assert bench("--device", "cpu", "--numel", "100,2^20", "--against", "none") == 0
    printed = capsys.readouterr()
    assert (
        "skipped: swish forward float32 1048576 on cpu: needs" in printed.err
        and "swish forward float32 100 on" in printed.out
    )
    assert bench("--device", "cpu", "--numel", "2^20", "--against", "none") == 1
    assert "nothing was measured" in capsys.readouterr().err


# --- rivals ---


@pytest.mark.parametrize("dtype", _cases.DTYPES)
@pytest.mark.parametrize("op, direction", EVERY)
def test_rivals_agree(op, direction, dtype, machine):
    torch.manual_seed(0)
    rivals = ("eager", "builtin", "contiguous", "full_gradient")
    figures = _run.run(case_of(op, direction, dtype, against=rivals), machine, _timing.CPU_EFFORT)
    assert "eager" in figures["against"] and figures["missing"] == {}
    assert ("builtin" in figures["against"]) == (OPERATORS[op].builtin is not None)
    assert ("contiguous" in figures["against"]) == (op == "swish_strided")
    assert ("full_gradient" in figures["against"]) == (direction == "backward_broadcast")


def test_a_rival_sums_columns_of_one_row(machine):
    case = case_of("column_sum", "forward", against=("eager",))._replace(shape=(96,))
    assert "eager" in _run.run(case, machine, _timing.CPU_EFFORT)["against"]


@pytest.mark.parametrize("op, direction", [("swish", "forward"), ("gelu", "backward"), ("swiglu", "forward")])
def test_into_memory_that_is_there(op, direction, machine):
    case = case_of(op, direction, out=True, against=("eager", "builtin"))
    tensors = _run.Tensors(case, "cpu")
    assert _run._ours(case, tensors)() is tensors.out
    if OPERATORS[op].builtin:
        assert _run._builtin(case, tensors)() is tensors.out
    assert _run.run(case, machine, _timing.CPU_EFFORT)["out"]


@pytest.mark.parametrize("wrong", [lambda x: x * torch.sigmoid(x) * 1.001, lambda x: x[:3], lambda x: x * math.nan])
def test_a_rival_that_disagrees_is_an_error(wrong, monkeypatch, capsys):
    monkeypatch.setitem(OPERATORS, "swish", OPERATORS["swish"]._replace(eager=wrong))
    assert bench("--device", "cpu", "--shape", "4x25", "--op", "swish,gelu", "--against", "eager") == 1
    printed = capsys.readouterr()
    assert "error: swish forward float32 4x25 on cpu: eager" in printed.err and "Traceback" not in printed.err
    assert "gelu forward" in printed.out  # the others are measured all the same


def test_a_compiler_that_is_not_there_is_missing(tmp_path, capsys, monkeypatch):
    from torch._inductor import config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    with config.patch({"cpp.cxx": (str(tmp_path / "no-compiler"),)}):
        (figures,) = measured(tmp_path, "--device", "cpu", "--numel", "77", "--against", "eager,compile")
    assert set(figures["against"]) == {"eager"} and set(figures["missing"]) == {"compile"}
    assert "not measured: compile (" in capsys.readouterr().out


def test_torch_compile_that_works_is_measured(machine, monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    for direction in OPERATORS["swish"].stages:
        figures = _run.run(case_of("swish", direction, against=("compile",)), machine, _timing.CPU_EFFORT)
        assert set(figures["against"]) == {"compile"}


def liger(monkeypatch, function):
    """A Liger-Kernel with that function, whose backward overwrites what it saved, as theirs does."""

    class Unit(torch.autograd.Function):
        @staticmethod
        def forward(context, gate, up):
            context.save_for_backward(gate, up)
            return function(gate, up)

        @staticmethod
        def backward(context, dy):
            saved = context.saved_tensors
            with torch.enable_grad():
                leaves = [tensor.detach().clone().requires_grad_() for tensor in saved]
                gradients = torch.autograd.grad(function(*leaves), leaves, dy)
            for tensor, gradient in zip(saved, gradients):
                tensor.detach().copy_(gradient)
            return gradients

    module = types.ModuleType("liger_kernel.ops.swiglu")
    module.LigerSiLUMulFunction = Unit
    for name in ("liger_kernel", "liger_kernel.ops"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_liger_kernel(machine, monkeypatch):
    liger(monkeypatch, lambda gate, up: torch.nn.functional.silu(gate) * up)
    for direction in ("forward", "both"):
        case = case_of("swiglu", direction, against=("liger", "eager"))
        assert set(_run.run(case, machine, _timing.CPU_EFFORT)["against"]) == {"liger", "eager"}
    liger(monkeypatch, lambda gate, up: torch.nn.functional.silu(gate) * up * 2)
    with pytest.raises(_run.Disagreement, match="liger disagrees"):
        _run.run(case_of("swiglu", "both", against=("liger",)), machine, _timing.CPU_EFFORT)


def test_aiter(machine, monkeypatch):
    module = types.ModuleType("aiter")
    module.silu_and_mul = lambda out, packed: out.copy_(_operators.OPERATORS["swiglu_packed"].eager(packed))
    monkeypatch.setitem(sys.modules, "aiter", module)
    for shape in ((6, 32), (32,), (2, 3, 32)):
        case = case_of("swiglu_packed", "forward", shape=shape, against=("aiter",))
        assert set(_run.run(case, machine, _timing.CPU_EFFORT)["against"]) == {"aiter"}


def test_packages_that_are_not_there_are_missing(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    monkeypatch.setitem(sys.modules, "aiter", None)
    assert set(_run.run(case_of("swiglu", "both", against=("liger",)), machine, _timing.CPU_EFFORT)["missing"]) == {
        "liger"
    }
    case = case_of("geglu_packed", "forward", against=("aiter", "liger"))
    assert set(_run.run(case, machine, _timing.CPU_EFFORT)["missing"]) == {"aiter"}


# --- presets and options ---


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:1"])
@pytest.mark.parametrize("name", _cases.PRESETS)
def test_presets(name, device):
    if (name == "cpu") != (device == "cpu") and name in ("cpu", "gpu"):
        with pytest.raises(ValueError, match=f"--preset: {name} is for"):
            _cases.preset(name, device)
        return
    cases = _cases.preset(name, device)
    assert cases and len(set(cases)) == len(cases)
    for case in cases:
        assert case.device == device and case.dtype in _cases.DTYPES and case.direction in OPERATORS[case.op].stages
        assert case.against is None or set(case.against) <= set(_run.RIVALS)


def test_what_presets_hold():
    tutorial = {(case.numel, case.direction, case.dtype) for case in _cases.preset("tutorial", "cuda")}
    sizes = (50_000_000, 67_108_864)
    assert tutorial == {(size, direction, "float32") for size in sizes for direction in ("forward", "step")}
    layers = {case.shape for case in _cases.preset("feed-forward", "cuda")}
    assert layers == {(8192, 14336), (4096, 11008), (4096, 4096)}
    (on_cpu,) = {case.numel for case in _cases.preset("tutorial", "cpu")}
    assert on_cpu < 10**7  # seconds
    swept = {case.numel for case in _cases.preset("sizes", "cuda")}
    assert min(swept) == 2**10 and max(swept) == 2**30
    assert max(case.numel for case in _cases.preset("sizes", "cpu")) == 2**26
    assert all("compile" not in case.against for case in _cases.preset("quick", "cuda"))
    cpu = _cases.preset("cpu", "cpu")
    assert all(case.out for case in cpu) and {case.threads for case in cpu} == {1, 2}
    assert {(case.numel, case.is_cached) for case in cpu} == {(2**14, True), (2**24, False)}


def test_threads_are_set_and_put_back(machine):
    before = torch.get_num_threads()
    case = case_of("swish", "forward", threads=before + 1, against=())
    assert _run.run(case, machine, _timing.CPU_EFFORT)["threads"] == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--op", "swosh"], "--op: 'swosh' is none of swish,"),
        (
            ["--op", "column_sum", "--direction", "backward"],
            "--direction: column_sum has no backward; accepted: forward",
        ),
        (["--direction", "sideways"], "--direction: 'sideways' is none of forward,"),
        (["--dtype", "int8"], "--dtype: 'int8' is none of float16,"),
        (["--numel", "many"], "--numel: 'many' is no number of elements"),
        (["--numel", "0"], "--numel: '0' is no number"),
        (["--numel", "2^-1"], "--numel: '2^-1' is no number"),
        (["--numel", "2^99"], "--numel: '2^99' is no number"),
        (["--shape", "8x"], "--shape: '' is no number"),
        (["--shape", "8", "--numel", "8"], "not allowed with"),
        (["--against", "nobody"], "--against: 'nobody' is none of eager,"),
        (["--preset", "all"], "--preset: 'all' is none of tutorial,"),
        (["--preset", "quick", "--op", "swish"], "--op: is given, and --preset quick has cases of its own"),
        (["--runs", "0"], "--runs: is 0; accepted: 1 or more"),
        (["--threads", "0"], "--threads: is 0; accepted: 1 to 1024"),
        (["--out", "--direction", "both"], "--out: both has no such form"),
        (["--json", "no/such/folder/a.json"], "--json: there is no folder for no/such/folder/a.json"),
        (["--plot", "no/such/folder/a.png"], "--plot: there is no folder"),
    ],
)
def test_options_that_mean_nothing(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        bench("--device", "cpu", *arguments)
    printed = capsys.readouterr()
    assert stopped.value.code == 2 and printed.out == ""
    assert len([line for line in printed.err.splitlines() if "error:" in line]) == 1 and message in printed.err


@pytest.mark.parametrize("name", ["gpu", "cpu:0", "cuda:", "cuda:x"])
def test_devices_that_are_none(name, capsys):
    with pytest.raises(SystemExit):
        bench("--device", name)
    assert f"--device: {name!r} is none" in capsys.readouterr().err


def test_gpus_that_are_not_there(monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit):
        bench("--device", "cuda")
    assert "--device: 'cuda', but PyTorch finds no GPU" in capsys.readouterr().err
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(SystemExit):
        bench("--device", "cuda:2")
    assert "--device: 'cuda:2', but PyTorch finds 2 GPUs" in capsys.readouterr().err


def test_pytorch_is_imported_only_to_run():
    program = (
        "import sys, fuseline.bench, fuseline.__main__ as m\n"
        "m.main(['info'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "m.main(['bench'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 2 and "error: bench needs PyTorch, which cannot be imported" in done.stderr


# --- devices ---


def test_on_every_device(device, tmp_path):
    """A GPU by its events; a device without them, as the one that is played, by the clock."""
    arguments = ["--device", device, "--shape", "4x64", "--op", "swish,swiglu_packed", "--against", "eager,builtin"]
    figures = measured(tmp_path, *arguments, "--direction", "forward,both", "--dtype", "float32,bfloat16")
    assert len(figures) == 8
    for case in figures:
        assert case["timing"] == ("device events" if device.startswith("cuda") else "host clock")
        assert case["device"] == ("cuda:0" if device == "cuda" else "cpu")


def test_peaks():
    h200 = types.SimpleNamespace(memory_clock_rate=3_201_000, memory_bus_width=6144)
    assert _machine.nvidia_peak(h200) == pytest.approx(4916.7, abs=0.1)
    assert _machine.nvidia_peak(types.SimpleNamespace()) is None
    assert _machine.amd_peak("AMD Radeon 8060S Graphics") == 256  # 8000 MT/s, 32 bytes
    assert _machine.amd_peak("AMD Radeon RX 7900 XTX") == 960 and _machine.amd_peak("AMD Radeon RX 7900 XT") == 800
    assert _machine.amd_peak("AMD Instinct MI300X") == 5300
    assert _machine.amd_peak("AMD Radeon 780M Graphics") is None  # as fast as the memory that someone put in


class Properties(types.SimpleNamespace):
    major, minor = 9, 0


def gpu(monkeypatch, hip, name, **properties):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: Properties(**properties))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: name)
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setattr(_machine, "_output", lambda *command: "580.1" if command[0] == "nvidia-smi" else None)
    return _machine.Machine(torch, "cuda:1", "0")


def test_a_rocm_device_is_described(monkeypatch):
    made = gpu(monkeypatch, "7.0.1", "AMD Radeon 8060S Graphics", gcnArchName="gfx1151", L2_cache_size=2 << 20)
    assert made.device == "cuda:1" and made.peak == 256 and made.cache >= 32 << 20
    assert made.environment["architecture"] == "gfx1151" and made.environment["runtime"] == "ROCm 7.0.1"
    assert made.environment["driver"] and made.environment["card"] == "AMD Radeon 8060S Graphics"


def test_an_nvidia_device_is_described(monkeypatch):
    facts = {"memory_clock_rate": 1000, "memory_bus_width": 800, "L2_cache_size": 1 << 30}
    made = gpu(monkeypatch, None, "NVIDIA H200", **facts)
    assert made.peak == pytest.approx(0.2) and made.cache == 1 << 30
    assert made.environment["architecture"] == "9.0" and made.environment["driver"] == "580.1"


# --- what a person sees ---


def test_pictures(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(_cases, "LARGEST_SIZE", 14)
    arguments = ["--device", "cpu", "--numel", "500", "--op", "swish,gelu", "--against", "eager"]
    figures = measured(tmp_path, *arguments, "--plot", str(tmp_path / "picture.png"))
    for name in ("picture-roofline.png", "picture-sizes.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    assert [case["shape"] for case in figures] == [[500], [500], [1024], [4096], [16384]]
    assert "picture-sizes.png" in capsys.readouterr().out


def test_pictures_need_matplotlib(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(SystemExit):
        bench("--device", "cpu", "--plot", "a.png")
    assert "--plot: needs matplotlib, which cannot be imported" in capsys.readouterr().err


def test_pictures_have_names():
    assert _plot.files("a/b.png") == _plot.files("a/b") == ("a/b-roofline.png", "a/b-sizes.png")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal_is_a_bar():
    stream = Terminal()
    progress = _report.Progress(2, stream)
    progress.begin("one")
    progress.within(0.5)
    progress.end()
    progress.begin("two")
    shown = stream.getvalue().split("\r\x1b[K")
    assert shown[1] == f"[{'.' * 30}] 0/2 one" and shown[2] == f"[{'#' * 7}{'.' * 23}] 0/2 one"
    assert shown[3] == "" and shown[4] == f"[{'#' * 15}{'.' * 15}] 1/2 two" and "\n" not in stream.getvalue()


def test_progress_elsewhere_is_lines():
    stream = io.StringIO()
    progress = _report.Progress(2, stream)
    for label in ("one", "two"):
        progress.begin(label)
        progress.within(0.5)
        progress.end()
    assert stream.getvalue() == "1/2 one\n2/2 two\n"
