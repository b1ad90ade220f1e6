#!/usr/bin/env python3
"""Times work as users call it: from Python and PyTorch, in loops, from the first call on.

    ./dev bench door [OPTION]...      (bench/README.md)

All contenders of a row have turns in one process, in an order drawn anew each time; first calls are made in a process of their own each,
with empty caches. The exit status tells of failures and wrong answers, never of times."""

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any, Callable

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FEWEST = 7       # samples of a loop
KEPT = 4         # results that live at a time, where they are kept
HOST_CALLS = 64  # few enough that a device's queue takes them all
COMPARED = 1 << 20  # elements at a time
SLOW_NS = 5e7    # calls that take longer are timed two at a time
# Where compiled code is kept between processes.
CACHES = ("HOLOGRAM_CACHE_DIR", "CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUPY_CACHE_DIR")


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="./dev bench door", description=__doc__.splitlines()[0])
    p.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="(default cpu)")
    p.add_argument("--rows", type=lambda t: t.split(","), default=[""], metavar="A,B", help="those that begin so")
    p.add_argument("--who", type=lambda t: t.split(","), metavar="A,B", help="of those in contenders.py (default: all)")
    p.add_argument("--threads", type=int, default=1, help="of everybody on the CPU; 0: as many as each takes (default 1)")
    p.add_argument("--seconds", type=float, default=4.0, help=f"for the loops of a row; {FEWEST} samples are taken anyway (default 4)")
    p.add_argument("--sample", type=float, default=10, metavar="MS", help="milliseconds of one sample, at least (default 10)")
    p.add_argument("--warm", type=float, default=1.0, metavar="S", help="seconds of calls before a contender is timed (default 1)")
    p.add_argument("--first", type=float, default=2.0, metavar="S",
                   help="seconds in which first calls are watched; 0: not at all (default 2)")
    p.add_argument("--plot", type=Path, default=ROOT / "build/bench/door.png", metavar="FILE", help="(default build/bench/door.png)")
    p.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    return p.parse_args()


# ---- loops ------------------------------------------------------------------------------------------------------------------------

def replaced(call: Callable[[], Any], wait: Callable[[], None], count: int) -> None:
    for _ in range(count):
        result = call()  # noqa: F841: it lives until the next one is there


def dropped(call: Callable[[], Any], wait: Callable[[], None], count: int) -> None:
    for _ in range(count):
        call()


def kept(call: Callable[[], Any], wait: Callable[[], None], count: int) -> None:
    results = [None] * KEPT
    for i in range(count):
        results[i % KEPT] = call()


def waited(call: Callable[[], Any], wait: Callable[[], None], count: int) -> None:
    for _ in range(count):
        result = call()  # noqa: F841
        wait()


LOOPS = {loop.__name__: loop for loop in (replaced, dropped, kept, waited)}


def time_loop(name: str, call: Callable[[], Any], wait: Callable[[], None], count: int) -> float:
    """Nanoseconds a call, the wait for the last one in them."""
    begun = time.perf_counter_ns()
    LOOPS[name](call, wait, count)
    wait()
    return (time.perf_counter_ns() - begun) / count


def time_host(call: Callable[[], Any], wait: Callable[[], None], count: int) -> float:
    """Nanoseconds until a call returns, the device's queue being empty at first."""
    count = min(count, HOST_CALLS)
    begun = time.perf_counter_ns()
    dropped(call, wait, count)
    took = (time.perf_counter_ns() - begun) / count
    wait()
    return took


def measure(calls: dict[str, tuple[Callable, Callable]], options: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """Samples by contender and loop. Each has been called long enough before that its code is compiled in full."""
    counts, samples, order = {}, {}, random.Random(1)
    for who, (call, wait) in calls.items():
        ends, one = time.monotonic() + options.warm, 0.0
        while time.monotonic() < ends or one == 0.0:
            one = time_loop("waited", call, wait, 1)
        counts[who] = max(2 * KEPT if one < SLOW_NS else 2, round(options.sample * 1e6 / one))
        samples[who] = {name: [] for name in (*LOOPS, "host")}
    begun = time.monotonic()
    while (len(next(iter(samples.values()))["host"]) < FEWEST) or time.monotonic() - begun < options.seconds:
        for who, name in order.sample([(w, n) for w in calls for n in (*LOOPS, "host")], len(calls) * (len(LOOPS) + 1)):
            call, wait = calls[who]
            measured = time_host(call, wait, counts[who]) if name == "host" else time_loop(name, call, wait, counts[who])
            samples[who][name].append(measured)
    return samples


def moved(row, answer: list) -> int:
    """Bytes of the inputs and results."""
    size = {"bf16": 2, "f64": 8, "i64": 8}
    half = any(one.kind == "bf16" for one in row.inputs.values())
    return (sum(size.get(one.kind, 4) * math.prod(one.shape) for one in row.inputs.values())
            + sum(part.size * (2 if half and part.dtype == "f4" else part.itemsize) for part in answer))


def limits(backend: str) -> dict[str, float]:
    """What limits the machine, a nanosecond: the bytes that a copy moves, measured here, and f32 operations: of a GPU on paper, of a
    CPU what NumPy's product of matrices reaches."""
    import numpy as np

    def best(call, wait, work):
        return max(work / time_loop("waited", call, wait, 2) for _ in range(10))
    if backend == "cpu":
        big, a = np.ones(1 << 25, np.float32), np.ones((1024, 1024), np.float32)
        to = big.copy()
        return {"bytes": best(lambda: np.copyto(to, big), lambda: None, 2 * big.nbytes),
                "flop": best(lambda: a @ a, lambda: None, 2 * 1024**3)}
    import torch
    sys.path.append(str(HERE.parent / "cuda"))
    from driver import Driver
    big = torch.ones(1 << 28, device="cuda")
    to = big.clone()
    return {"bytes": best(lambda: to.copy_(big), torch.cuda.synchronize, 2 * 4 << 28), "flop": Driver().paper_products()}


def is_near(a, b, tolerance: float) -> bool:
    """Of arrays that may be large: no copy of them is made as a whole."""
    import numpy as np
    if a.shape != b.shape:
        return False
    if a.size == 0:
        return True
    most = max(1.0, abs(float(a.max())), abs(float(a.min())))
    a, b = a.reshape(-1), b.reshape(-1)

    def part_is_near(begin: int) -> bool:
        own, other = (v[begin:begin + COMPARED] for v in (a, b))
        return np.abs(own.astype(np.float64) - other).max() <= tolerance * most
    with ThreadPoolExecutor() as threads:
        return all(threads.map(part_is_near, range(0, a.size, COMPARED)))


def prepare(row, options: argparse.Namespace, missing: dict[str, str]) -> tuple[dict[str, tuple[Callable, Callable]], dict[str, str], int]:
    """The contenders' calls; what is wrong with those that fail or give another answer than the first one; the bytes it moves."""
    from contenders import CONTENDERS, Missing
    calls, answer, wrong = {}, None, {}
    values = [one.values(number) for number, one in enumerate(row.inputs.values())]
    for who in options.who:
        try:
            contender = CONTENDERS[who](options.backend)
            call = contender.prepare(row, values)
            own = contender.as_numpy(call())
        except Missing as error:
            missing.setdefault(who, str(error))
            continue
        except Exception as error:  # whatever it is: the others and the other rows are still to be measured
            wrong[who] = f"{who} fails: {type(error).__name__}: {error}"
            continue
        answer = answer or own
        is_random = not row.inputs
        if not all(a.shape == b.shape if is_random else is_near(a, b, row.options.get("tolerance", 1e-4))
                   for a, b in zip(answer, own, strict=True)):
            wrong[who] = f"{who} gives another answer than {next(iter(calls))}"
            continue
        calls[who] = call, contender.wait
    return calls, wrong, moved(row, answer or [])


# ---- first calls ------------------------------------------------------------------------------------------------------------------

def first_calls(name: str, who: str, options: argparse.Namespace) -> dict[str, float] | None:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {cache: f"{folder}/{cache}" for cache in CACHES}
        environment.pop("HOLOGRAM_QUICK", None)  # a first call is made as users make it
        command = [sys.executable, str(HERE / "first.py"), name, who, options.backend, str(options.first)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        print(f"{name}, {who}: the first call failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


# ---- what is said -----------------------------------------------------------------------------------------------------------------

def text(ns: float) -> str:
    unit, size = ("us", 1e3) if ns < 1e7 else ("ms", 1e6) if ns < 1e10 else ("s", 1e9)
    value = ns / size
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"


def summary(samples: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    return {who: {name: median(own) for name, own in loops.items()} for who, loops in samples.items()}


def ratios(medians: dict[str, dict[str, float]], ours: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Of each of ours, time / the best peer's, loop by loop."""
    peers = [who for who in medians if who not in ours]
    if not peers:
        return {}
    return {who: {name: ns / min(medians[p][name] for p in peers) for name, ns in medians[who].items()} for who in medians if who in ours}


def say(name: str, medians: dict, firsts: dict, found: dict, least_ns: float) -> None:
    print(f"\n{name}")
    for who, loops in medians.items():
        line = f"  {who:<10}"
        for loop, ns in loops.items():
            line += f"{text(ns):>10}" + (f"{found[who][loop]:>6.2f}x" if who in found else " " * 7)
        line += f"{least_ns / min(loops[loop] for loop in LOOPS):>7.0%}"
        first = firsts.get(who)
        if first:
            line += "".join(f"{text(first[what]):>11}" for what in ("first_ns", "second_ns", "until_full_ns"))
            line += "".join(f"{first[what] / 2**20:>8.0f}" for what in ("held_bytes", "most_bytes"))
        print(line.rstrip())
    sys.stdout.flush()


def plot(data: dict, path: Path) -> None:
    """Ours / the best peer's, a row a line of points."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    rows = [row for row in data["rows"] if row["ratios"]]
    if not rows:
        return
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.4 * len(rows)))
    for number, loop in enumerate((*LOOPS, "host")):
        points = [(row["ratios"]["hologram"][loop], i) for i, row in enumerate(rows) if "hologram" in row["ratios"]]
        axes.scatter([x for x, _ in points], [y + (number - 2) * 0.12 for _, y in points], s=18, label=loop)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [row["row"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"time / the best peer's: left of 1 Hologram is faster ({data['machine']['device']})")
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    sys.path.append(str(HERE))
    options = parse_options()
    if options.threads and options.backend == "cpu":  # before NumPy is imported, whose BLAS asks when it is loaded
        os.environ |= {name: str(options.threads) for name in ("HOLOGRAM_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    from contenders import CONTENDERS, OURS
    from rows import rows
    options.who = options.who or list(CONTENDERS)
    import hologram as hg
    device = hg.Executor(backend=options.backend).info["device"]
    limit = limits(options.backend)
    data = {"limits": limit, "machine": {"device": device, "system": platform.platform(terse=True), "python": platform.python_version(),
                        "hologram": hg.__version__, "backend": options.backend, "threads": options.threads}, "rows": [], "wrong": []}
    missing: dict[str, str] = {}
    print(f"{device}: a call's median, and ours / the best peer's; limit: {limit['bytes']:.4g} GB/s, {limit['flop']:.4g} GFLOP/s; MiB")
    print(f"{'':<12}" + "".join(f"{loop:>10}{'':7}" for loop in (*LOOPS, "host")) + f"{'limit':>7}"
          + (f"{'first':>11}{'second':>11}{'until full':>11}{'held':>8}{'most':>8}" if options.first > 0 else ""))
    for name, row in rows(options.backend).items():
        if not any(name.startswith(word) for word in options.rows):
            continue
        calls, wrong, byte_count = prepare(row, options, missing)
        if wrong:
            data["wrong"].append({"row": name, "who": list(wrong)})
            print(f"\n{name}: WRONG: " + "; ".join(wrong.values()))
        if not calls:
            continue
        samples = measure(calls, options)
        firsts = {who: first_calls(name, who, options) for who in calls} if options.first > 0 else {}
        medians = summary(samples)
        least_ns = row.flop / limit["flop"] if row.flop else byte_count / limit["bytes"]
        found = ratios(medians, OURS)
        data["rows"].append({"row": name, "samples_ns": samples, "medians_ns": medians, "first": firsts, "ratios": found,
                             "least_ns": least_ns})
        say(name, medians, firsts, found, least_ns)
    for who, why in missing.items():
        print(f"left out in some rows or all: {who}: {why}", file=sys.stderr)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    try:
        plot(data, options.plot)
    except ImportError:
        print("there is no matplotlib, so no plot", file=sys.stderr)
    return 1 if data["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
