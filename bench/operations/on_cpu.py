"""Operations on the CPU: a process for each library, which take turns, so that one's waiting threads are in nobody's way."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from library import Device, Library

from . import cases, contenders, every, table
from .computation import table as table_of

SAMPLE = 0.002   # seconds of calls in a row that a sample takes at least
PAUSE = 0.005    # seconds between turns: until threads of the one before sleep
WAKING = 3       # calls before the first sample of a turn
FEWEST = 5
LIBRARIES = ("hologram", "torch", "numpy")
# Rows of bench_eager: what is timed, nanoseconds at most.
CALLS = {"hg_apply of an add of 1024": 200,
         **{f"building and compiling 1000 operations, {what}": 20_000_000 for what in ("a chain", "layers")},
         **{f"finding 1000 operations again, {what}": 100_000 for what in ("a chain", "layers")}}


def operations(library: Path, total: int, words: list[str]) -> list:
    known = cases.on_cpu(total) + every.operations(table_of(Library(library)), total // 4)
    return cases.in_gigabytes(cases.chosen(known, words, total))


# ---- in a library's process -----------------------------------------------------------------------------------------------------------

class Worker:
    def __init__(self, who: str, library: Path, total: int, words: list[str], threads: int):
        if threads == 1 and hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        self.who, self.operations = who, {o.name: o for o in operations(library, total, words)}
        if who == "hologram":
            self.device = Device(library)
        elif who == "torch":
            import torch
            torch.set_num_threads(threads)
            self.torch = contenders.Torch(torch, "cpu")

    def prepare(self, name: str):
        """The first call's answer, its nanoseconds and what is to be said of it."""
        operation, by_hand = self.operations[name], None
        if self.who == "hologram":
            self.contender = contenders.Ours(self.device, operation)
            compile_ns = self.contender.compile_ns
            by_hand = contenders.ByHand(self.device, operation) if operation.program else None
        else:
            self.contender = self.torch.contender(operation, False) if self.who == "torch" else contenders.numpy_contender(operation)
            compile_ns = 0
        self.calls = {self.who: self.contender.call} | ({"by hand": by_hand.call} if by_hand else {})
        begun = time.perf_counter_ns()
        answer = self.contender.answer()
        took = time.perf_counter_ns() - begun + compile_ns
        return answer, took, getattr(self.contender, "facts", {}), list(self.calls), operation.work

    def samples(self, who: str, seconds: float) -> list[float]:
        """Nanoseconds a call."""
        call, clock, found = self.calls[who], time.perf_counter_ns, []
        for _ in range(WAKING):
            begun = clock()
            call()
            took = clock() - begun
        batch = max(1, int(SAMPLE * 1e9 / max(took, 1)))
        end = clock() + int(seconds * 1e9)
        while not found or clock() < end:
            begun = clock()
            for _ in range(batch):
                call()
            found.append((clock() - begun) / batch)
        return found

    def forget(self) -> None:
        self.contender = self.calls = None
        if self.who == "hologram":
            while self.device.buffers:
                self.device.library.c.hg_buffer_release(self.device.buffers.popitem()[1])
        elif self.who == "torch":
            self.torch.tensors.clear()


def serve(pipe, *arguments) -> None:
    try:
        worker = Worker(*arguments)
        pipe.send((True, None))
    except Exception as error:  # noqa: BLE001: a library that is not here
        pipe.send((False, f"{type(error).__name__}: {error}"))
        return
    while (asked := pipe.recv()) is not None:
        try:
            pipe.send((True, getattr(worker, asked[0])(*asked[1:])))
        except Exception as error:  # noqa: BLE001: the others go on
            pipe.send((False, f"{type(error).__name__}: {error}".split("\n", 1)[0]))


# ---- in the benchmark's -----------------------------------------------------------------------------------------------------------------

class Team:
    """A process for each library, each with so many threads."""

    def __init__(self, library: Path, total: int, words: list[str], threads: int):
        variables = ("OMP", "OPENBLAS", "MKL", "HOLOGRAM")
        os.environ.update({f"{v}_NUM_THREADS": str(threads) for v in variables})
        context, self.threads, self.pipes = multiprocessing.get_context("spawn"), threads, {}
        for who in LIBRARIES:
            pipe, other = context.Pipe()
            context.Process(target=serve, args=(other, who, library, total, words, threads), daemon=True).start()
            self.pipes[who] = pipe
        self.missing = {who: why for who, (is_here, why) in ((w, p.recv()) for w, p in self.pipes.items()) if not is_here}
        for who in self.missing:
            self.pipes.pop(who)

    def ask(self, who: str, *what):
        self.pipes[who].send(what)
        return self.pipes[who].recv()

    def measure(self, operation, seconds: float, note) -> tuple[dict | None, str]:
        """A row, and which launches it is; note(operation, kind, who, why) is told what is wrong."""
        calls, expected, facts, first = {}, None, None, 0
        for who in ("torch", "numpy", "hologram"):
            if who not in self.pipes or (who != "hologram" and who not in operation.peers):
                continue
            is_fine, found = self.ask(who, "prepare", operation.name)
            if not is_fine:
                note(operation, "failed", who, found)
                continue
            answer, first_ns, about, names, operation.work = found
            expected = answer if expected is None else expected
            wrong = contenders.difference(operation, expected, answer)
            if wrong:
                note(operation, "wrong", who, wrong)
                continue
            calls |= dict.fromkeys(names, who)
            if who == "hologram":
                facts, first = about, first_ns
        if facts is None:
            return None, ""
        samples, order = {name: [] for name in calls}, random.Random(1)
        for _ in range(FEWEST):
            for name in order.sample(list(calls), len(calls)):
                time.sleep(PAUSE)
                samples[name] += self.ask(calls[name], "samples", name, seconds / FEWEST / len(calls))[1]
        timed = {n: {"median_ns": median(s), "min_ns": min(s), "samples": len(s)} for n, s in samples.items()}
        return table.row_of(operation, facts, first, timed) | {"threads": self.threads}, facts["report"]

    def forget(self) -> None:
        for who in self.pipes:
            self.ask(who, "forget")

    def close(self) -> None:
        for pipe in self.pipes.values():
            pipe.send(None)


def calls(library: Path) -> list[dict]:
    """What calls cost from C: the program built with the library, if it is there."""
    program = library.parent / "bench/bench_eager"
    if not program.exists():
        return []
    return json.loads(subprocess.run([program, "--json"], stdout=subprocess.PIPE, check=True).stdout)


def targets(rows: list[dict], calls: list[dict]) -> list[dict]:
    """As those of bench/cpu/report.py."""
    found = []
    for threads in dict.fromkeys(r["threads"] for r in rows):
        def target(what, bound, unit, measured, _, note=f"{threads} thread{'s' * (threads > 1)}"):
            return {"target": what, "bound": bound, "unit": unit, "measured": measured, "met": measured <= bound, "note": note}
        found += table.targets([r for r in rows if r["threads"] == threads], target)
    return found + [{"target": r["name"], "bound": CALLS[r["name"]], "unit": " ns", "measured": r["median_ns"],
                     "met": r["median_ns"] <= CALLS[r["name"]], "note": "from C, median"} for r in calls if r["name"] in CALLS]
