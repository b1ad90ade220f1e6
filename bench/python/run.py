#!/usr/bin/env python3
"""Times the Python package and hologram_torch beside NumPy, PyTorch and the library called from C, in one process.

    ./dev bench python [OPTION]...      (bench/README.md)

A sample is so many calls in a row that they take --sample microseconds; everybody has turns, in an order drawn anew each time. The
exit status tells of wrong answers, never of times."""

import argparse
import json
import os
import platform
import random
import sys
import time
import timeit
from pathlib import Path
from statistics import median

sys.path += [str(Path(__file__).resolve().parent.parent / part) for part in (".", "cpu", "cuda")]
sys.path.append(str(Path(__file__).resolve().parent))
import numpy as np  # noqa: E402
from rows import ROOT, ROWS, Contender, Here  # noqa: E402

import hologram as hg  # noqa: E402

FEWEST = 5


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="./dev bench python", description=__doc__.splitlines()[0])
    p.add_argument("--rows", type=lambda t: t.split(","), default=[""], metavar="A,B", help="those that begin so: " + ", ".join(ROWS))
    p.add_argument("--backend", choices=("cpu", "cuda"), default="cpu", help="(default cpu)")
    p.add_argument("--threads", type=int, default=1, help="of everybody; 0: as many as each takes (default 1)")
    p.add_argument("--samples", type=int, default=2000, metavar="N", help="of everybody, at most (default 2000)")
    p.add_argument("--sample", type=float, default=100, metavar="US", help="microseconds of one, at least (default 100)")
    p.add_argument("--seconds", type=float, default=4.0, help=f"for a row; {FEWEST} samples are taken in any case (default 4)")
    p.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    p.add_argument("--library", type=Path, default=ROOT / "build/release/libhologram.so", help=argparse.SUPPRESS)
    return p.parse_args()


def find_torch(threads: int):
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is left out: {error}", file=sys.stderr)
        return None
    if threads:
        torch.set_num_threads(threads)
    return torch


# ---- measuring --------------------------------------------------------------------------------------------------------------------

def clock(contender: Contender):
    """Nanoseconds of so many calls."""
    if contender.time:
        return contender.time
    timer = timeit.Timer(contender.statement, globals=contender.names, timer=time.perf_counter_ns)
    return timer.timeit


def differing(contenders: dict[str, Contender]) -> list[str]:
    """Whoever is not close to the first one's answer."""
    answers = {who: contender.answer() for who, contender in contenders.items()}
    first = next(iter(answers.values()))
    return [who for who, answer in answers.items()
            if answer is not None and not np.allclose(answer, first, rtol=1e-5, atol=1e-5)]


def measure(contenders: dict[str, Contender], options: argparse.Namespace) -> dict[str, dict]:
    clocks = {who: clock(contender) for who, contender in contenders.items()}
    repeat, samples, order = {}, {who: [] for who in clocks}, random.Random(1)
    for who, take in clocks.items():
        took = min(take(1) for _ in range(5))
        repeat[who] = max(1, round(1000 * options.sample / max(took, 1)))
        contenders[who].wait()
    begun = time.monotonic()
    for turn in range(options.samples):
        if turn >= FEWEST and time.monotonic() - begun > options.seconds:
            break
        for who in order.sample(list(clocks), len(clocks)):
            if repeat[who] > 1:
                clocks[who](1)
            samples[who].append(clocks[who](repeat[who]) / repeat[who])
            contenders[who].wait()
    return {who: {"median_ns": median(own), "min_ns": min(own), "samples": len(own)} for who, own in samples.items()}


# ---- what is said -----------------------------------------------------------------------------------------------------------------

def judged(timed: dict[str, dict], bounds: dict[str, float]) -> list[dict]:
    """By medians, which what else runs here moves for all alike; nanoseconds by the fastest sample."""
    found, ours = [], timed["hologram"]
    for what, bound in bounds.items():
        if what != "ns" and what not in timed:
            continue
        value = ours["min_ns"] if what == "ns" else ours["median_ns"] / timed[what]["median_ns"]
        found.append({"of": what, "value": value, "bound": bound, "is_met": value <= bound})
    return found


def text(ns: float) -> str:
    return f"{ns:.0f} ns" if ns < 1e4 else f"{ns / 1e3:.1f} us" if ns < 1e7 else f"{ns / 1e6:.1f} ms"


def line(name: str, timed: dict[str, dict], targets: list[dict]) -> str:
    ours = timed["hologram"]
    peers = "".join(f"   {who} {text(t['median_ns'])} ({text(t['min_ns'])}), ratio {ours['median_ns'] / t['median_ns']:.2f} "
                    f"({ours['min_ns'] / t['min_ns']:.2f})" for who, t in timed.items() if who != "hologram")
    said = "".join(f"   {'met' if t['is_met'] else 'not met'}: {t['of']} {t['value']:.4g} <= {t['bound']:g}" for t in targets)
    return f"{name:<22} {text(ours['median_ns']):>9} ({text(ours['min_ns'])}){peers}{said}"


def main() -> int:
    options = parse_options()
    if options.threads:
        os.environ["HOLOGRAM_NUM_THREADS"] = str(options.threads)
    here = Here(options.backend, find_torch(options.threads), options.library.resolve())
    machine = {"system": platform.platform(terse=True), "python": platform.python_version(), "numpy": np.__version__,
               "torch": here.torch.__version__ if here.torch else None, "hologram": hg.__version__, "backend": options.backend,
               "threads": options.threads}
    data = {"machine": machine, "rows": [], "wrong": []}
    print("row: ours, peers and ratio by medians (fastest sample)")
    for name, row in ROWS.items():
        if options.backend not in row.backends or not any(name.startswith(word) for word in options.rows):
            continue
        contenders = row.make(here)
        if not contenders:
            continue
        wrong = differing(contenders)
        if wrong:
            data["wrong"].append({"row": name, "who": wrong})
            print(f"{name:<22} WRONG: {', '.join(wrong)} differ")
            continue
        timed = measure(contenders, options)
        targets = judged(timed, row.bounds)
        data["rows"].append({"row": name, "timed": timed, "targets": targets})
        print(line(name, timed, targets), flush=True)
    if options.json:
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    return 1 if data["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
