"""The report in a page that a person can read."""

import figures
import steps

_MOST_FAILURES = 30


def _heading(text):
    return ["", text, "-" * len(text)]


def _checks(report):
    yield from _heading("What the machine has")
    for check in report["checks"]:
        yield f"  {check['state']:<8} {check['name']}: {check['found']}"
        if check["advice"]:
            yield f"  {'':<8} what to do: {check['advice']}"


def _steps(report):
    yield from _heading("What was run")
    for step in report["steps"]:
        counts = step["cases"]
        cases = (
            ""
            if counts is None
            else f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"
        )
        yield f"  {step['status']:<8} {step['title']:<42} {steps.duration(step['seconds']):>12}   {cases}".rstrip()
        if step["reason"]:
            yield f"  {'':<8} {step['reason']}"
    total = report["cases"]
    yield ""
    yield f"  The test on the GPU in C, tests/test_on_gpu: {report['c_tests_ran_on'] or 'not on any device'}"
    yield f"  {total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped"


def _failures(report):
    failed, unfinished = report["failed_tests"], report["unfinished_test"]
    if not failed and not unfinished:
        return
    yield from _heading("Tests that failed" if failed else "The test that was stopped")
    if unfinished:
        yield f"  did not end: {unfinished}"
    for test in failed[:_MOST_FAILURES]:
        yield f"  {test['test']}"
        yield f"      {(test['message'].splitlines() or ['no message'])[0][:160]}"
    if len(failed) > _MOST_FAILURES:
        yield f"  and {len(failed) - _MOST_FAILURES} more, in report.json"


def _tutorial(report):
    times = figures.TUTORIAL_MS
    yield from _heading("The tutorial's benchmark: swish, forward + sum + backward, float32")
    eager, fused = times["x*sigmoid(x)"], times["fused"]
    yield f"  {'':<44} {'x*sigmoid(x)':>14} {'fused':>10} {'speed-up':>10}"
    name = f"the tutorial, on a {figures.TUTORIAL_CARD}"
    yield f"  {name:<44} {eager:>11.2f} ms {fused:>7.2f} ms {eager / fused:>9.2f}x"
    for time in report["tutorial"]:
        name = f"this card, {time['elements'] / 1e6:.1f}M elements"
        theirs = f"{time['eager_ms']:>11.2f} ms" if time["eager_ms"] else f"{'not measured':>14}"
        ratio = f"{time['ratio']:>9.2f}x" if time["ratio"] else ""
        yield f"  {name:<44} {theirs} {time['fused_ms']:>7.2f} ms {ratio}".rstrip()
    if not report["tutorial"]:
        yield "  this card: not measured"
    yield "  The tutorial's output names 67.1M elements, its listing measures 50M; its fused operator is its extension."


def _bench(report):
    cases = [(preset, case) for preset, list_of_cases in report["bench"].items() for case in list_of_cases]
    yield from _heading("Speed, in percent of a copy of the same bytes on this card in the same run")
    if not cases:
        yield "  not measured"
        return
    yield f"  {'':<52} {'us':>10} {'GB/s':>8} {'of copy':>8}"
    for preset, case in cases:
        shape = case.get("shape")
        extents = " x ".join(map(str, shape)) if isinstance(shape, list) else str(shape)
        name = f"{preset}: {case.get('op')} {case.get('direction')} {case.get('dtype')} {extents}"
        share = figures.of_copy_in_percent(case)
        percent = f"{share:>7.1f}%" if share is not None else ""
        speed = f"{case['gbps']:>8.1f}" if case.get("gbps") is not None else f"{'':>8}"
        yield f"  {name:<52} {case['us']:>10.1f} {speed} {percent}".rstrip()
    shares = sorted(share for _, case in cases if (share := figures.of_copy_in_percent(case)) is not None)
    if shares:
        middle = shares[len(shares) // 2]
        yield f"  of copy: lowest {shares[0]:.1f}%, median {middle:.1f}%, highest {shares[-1]:.1f}%"


def _card(report):
    devices = report["torch"].get("devices") or []
    names = [f"{device['name']}, {device['architecture']}" for device in devices]
    tested = [
        name for name, device in zip(names, devices) if (device["architecture"] or "").split(":")[0] == report["tested"]
    ]
    if not tested:
        return ", ".join(report["targets"]) or "none found"
    if len(devices) == 1:
        return tested[0]
    which = "the first" if tested[0] == names[0] else "one"
    return f"{tested[0]}: {which} of {len(devices)} devices, and the only one that is tested"


def text(report):
    """summary.txt, from what report.json holds."""
    torch, info = report["torch"], report["info"] or {}
    lines = ["fuseline on an AMD GPU: a report", ""]
    lines.append(f"  card       {_card(report)}")
    code = ", ".join((info.get("gpu") or {}).get("targets", [])) or "no GPU"
    lines.append(
        f"  fuseline   {info.get('version', 'not run')}, commit {report['commit'] or 'unknown'}, code for {code}"
    )
    lines.append(f"  PyTorch    {torch.get('version') or 'none'}, ROCm {torch.get('hip') or 'none'}")
    lines.append(f"  date       {report['date']}, took {steps.duration(report['seconds'])}")
    for part in (_checks, _steps, _failures, _tutorial, _bench):
        lines.extend(part(report))
    return "\n".join(lines) + "\n"
