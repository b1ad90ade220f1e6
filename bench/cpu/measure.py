"""Measures everything for one thread count and prints one JSON object a line: run.py starts this in a process of its own, because
most of what is compared here takes its number of threads from the environment, once.

    measure.py OPTIONS       a JSON object: threads, library, loops, programs, sizes, engines, peers, repeat, seconds, longest
"""

import ctypes as c
import json
import os
import random
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np

from library import Error, Executor, Launch, Library
from programs import PROGRAMS, Case, Program

HERE = Path(__file__).resolve().parent
PROBE = 1024          # elements of the launch from which times are foretold
BATCH = 100_000       # nanoseconds a sample takes at least: so many calls are timed together
WARM = 200_000_000    # a call longer than this needs no call before it to warm up caches, or memory that was idle meanwhile
WAKING = 10           # times as many calls before a sample where threads must wake up: some libraries do not wait until they have
FEWEST = 3            # samples


def emit(kind: str, **fields) -> None:
    print(json.dumps({"kind": kind} | fields), flush=True)


# ---- what is timed ---------------------------------------------------------------------------------------------------------------

class LoopArgs(c.Structure):
    _fields_ = [("out", c.c_void_p), ("a", c.c_void_p), ("b", c.c_void_p), ("c", c.c_void_p), ("count", c.c_uint64),
                ("size", c.c_uint64)]


class Loops:
    """The compiled loops, the machine's limits and the clocks: loops.h."""

    def __init__(self, path: Path):
        self.c = c.CDLL(str(path.resolve()))
        self.c.time_loops.restype = self.c.time_launches.restype = c.c_uint64
        self.c.time_loops.argtypes = [c.c_void_p, c.POINTER(LoopArgs), c.c_int, c.c_uint64]
        self.c.time_launches.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_uint64, c.POINTER(c.c_int)]
        self.c.memory_rate.restype, self.c.memory_rate.argtypes = c.c_double, [c.c_int, c.c_int, c.c_uint64, c.c_int]

    def find(self, name: str) -> c.c_void_p:
        return c.cast(getattr(self.c, name), c.c_void_p)


class Loop:
    """A compiled loop on the arrays of a case."""

    def __init__(self, loops: Loops, name: str, case: Case):
        self.loops, self.function, self.case = loops, loops.find(name), case
        pointer = [None if v is None else v.ctypes.data for v in (case.out, case.a, case.b, case.c)]
        self.args = LoopArgs(*pointer, case.count, case.size())

    def time(self, repeat: int) -> int:
        return self.loops.c.time_loops(self.function, c.byref(self.args), self.case.threads, repeat)

    def answer(self) -> np.ndarray:
        self.case.out[:] = 0
        self.time(1)
        return self.case.out


class Peer:
    """A Python callable."""

    def __init__(self, call, case: Case):
        self.call, self.case = call, case

    def time(self, repeat: int) -> int:
        call, times = self.call, range(repeat)
        start = time.perf_counter_ns()
        for _ in times:
            call()
        return time.perf_counter_ns() - start

    def answer(self) -> np.ndarray:
        self.case.out[:] = 0
        getattr(self.call, "finish", self.call)()
        return self.case.out


class Ours:
    """Launches of the library, called from C: what a program in C pays."""

    def __init__(self, loops: Loops, launch: Launch, case: Case):
        self.loops, self.launch, self.case = loops, launch, case
        self.function = c.cast(launch.library.c.hg_launch, c.c_void_p)

    def time(self, repeat: int) -> int:
        status = c.c_int()
        took = self.loops.c.time_launches(self.function, self.launch.kernel.handle, c.addressof(self.launch.desc), repeat,
                                          c.byref(status))
        self.launch.library.check(status.value)
        return took

    def answer(self) -> np.ndarray:
        """Of the first launch: some programs add to what is there."""
        out = np.empty_like(self.case.out)
        self.launch.run()
        self.launch.read(self.case.program.output, out)
        return out


# ---- everything, on one thread count -------------------------------------------------------------------------------------------

class Bench:
    def __init__(self, options: dict):
        self.options, self.threads = options, options["threads"]
        self.loops, self.library = Loops(Path(options["loops"])), Library(Path(options["library"]))
        self.executors = {name: Executor(self.library, None if name == "auto" else name) for name in options["engines"]}
        self.seen = {}      # (program, contender) -> work and seconds of a call, the latest
        self.kept = None    # text and kernels of the latest program
        self.said = set()   # reasons for which something is left out everywhere

    def skip(self, program: Program, count: int, who: str, why: str) -> None:
        emit("skip", program=program.name, count=count, threads=self.threads, who=who, why=why)

    def skip_once(self, program: Program, who: str, why: str) -> None:
        if (who, why) not in self.said:
            self.said.add((who, why))
            self.skip(program, 0, who, why)

    # What is there -----------------------------------------------------------------------------------------------------------

    def kernels(self, program: Program, count: int) -> dict:
        """Engine -> kernel for so many elements, and under "ran" what the launch report says; an engine that runs what another one ran
        is left out. The kernels of the last call are kept: most programs have one text for all sizes."""
        text = program.source(count)
        if self.kept and self.kept[0] == text:
            return self.kept[1]
        case = Case(program, least(program) if not program.text else count, self.threads)
        kernels, ran = {}, {}
        for engine, executor in self.executors.items():
            kernel = executor.kernel(text, program.name)
            name = self.launch(kernel, case).run()
            if name in ran.values():
                first = next(e for e, n in ran.items() if n == name)
                self.skip_once(program, engine, f"'{name}' ran, as for {first}")
            else:
                kernels[engine], ran[engine] = kernel, name
        self.ran, self.kept = ran, (text, kernels)
        return kernels

    def launch(self, kernel, case: Case) -> Launch:
        output = {case.program.output: np.zeros_like(case.out)}
        return Launch(kernel, case.inputs | output, case.scalars(), case.program.shape(case))

    def peer(self, name: str, case: Case):
        program = case.program
        if name == "loop":
            return Loop(self.loops, f"loop_{program.loop or program.name}", case)
        if name == "hand":
            there = program.name == "mandelbrot" and case.side % 64 == 0 and self.loops.c.hand_available()
            return Loop(self.loops, "hand_mandelbrot", case) if there else None
        if name not in program.peers:
            return None
        try:
            return Peer(program.peers[name](case), case)
        except ImportError as error:
            self.skip_once(program, name, f"not installed ({error})")
            return None

    # Foretelling -------------------------------------------------------------------------------------------------------------

    def probe(self, program: Program, kernels: dict) -> None:
        case = Case(program, least(program), self.threads)
        for name, contender in self.contenders(case, kernels, list(kernels) + self.options["peers"]).items():
            self.note(program, name, case.count, min(contender.time(1) for _ in range(4)))

    def note(self, program: Program, name: str, count: int, nanoseconds: float) -> None:
        self.seen[program.name, name] = program.work(count), nanoseconds

    def short_enough(self, program: Program, name: str, count: int) -> bool:
        if (program.name, name) not in self.seen:
            return True
        work, nanoseconds = self.seen[program.name, name]
        foretold = nanoseconds * program.work(count) / work / 1e9
        if foretold <= self.options["longest"]:
            return True
        self.skip(program, count, name, f"a call would take about {foretold:.1f} s; --longest {self.options['longest']:g}")
        return False

    # One program, one size ---------------------------------------------------------------------------------------------------

    def contenders(self, case: Case, kernels: dict, names: list[str]) -> dict:
        found = {n: Ours(self.loops, self.launch(kernels[n], case), case) if n in kernels else self.peer(n, case) for n in names}
        return {n: contender for n, contender in found.items() if contender is not None}

    def check(self, case: Case, contenders: dict) -> None:
        """Takes out whoever does not have the answer of the loop, the one that owes nothing to the library; without a loop, of
        the first engine."""
        program, names = case.program, sorted(contenders, key=lambda n: n != "loop")
        expected = contenders[names[0]].answer().copy()
        for name in names[1:]:
            answer, wanted = contenders[name].answer(), expected
            bits = isinstance(contenders[name], (Loop, Ours))
            if bits:
                answer, wanted = answer.view(np.uint32), wanted.view(np.uint32)
            same = answer == wanted
            if not bits and program.tolerance:
                same = np.isclose(answer, wanted, rtol=program.tolerance, atol=program.tolerance)
            if not same.all():
                first, show = int(np.argmin(same)), hex if bits else repr
                emit("wrong", program=program.name, count=case.count, threads=self.threads, who=name, against=names[0],
                     elements=int(same.size - np.count_nonzero(same)), first=first, has=show(answer[first]), expected=show(wanted[first]))
                del contenders[name]

    def check_any_bits(self, program: Program, kernels: dict) -> None:
        """Engines and the loop on floats of random bits: NaN, infinities, subnormals, whatever is rare."""
        case = Case(program, least(program), self.threads)
        for given in case.inputs.values():
            if given.dtype == np.uint32:  # places, which stay what they are
                continue
            given.view(np.uint8)[:] = np.random.default_rng(1).integers(0, 256, given.nbytes, np.uint8)
        self.check(case, self.contenders(case, kernels, list(kernels) + [p for p in self.options["peers"] if p == "loop"]))

    def rounds(self, program: Program, count: int, contenders: dict) -> tuple[dict, float]:
        """Nanoseconds a call, many samples of each contender, taken in turns so that what disturbs one disturbs all; and how
        much of a processor others used meanwhile."""
        names, samples, batch = list(contenders), {n: [] for n in contenders}, {}
        for name in names:
            once = min(contenders[name].time(1), contenders[name].time(1))
            batch[name] = max(1, BATCH // max(once, 1))
            self.note(program, name, count, once)
        order = random.Random(1)
        before, start, own = busy(), time.monotonic(), time.process_time()
        for turn in range(self.options["repeat"]):
            if turn >= FEWEST and time.monotonic() - start > self.options["seconds"]:
                break
            for name in order.sample(names, len(names)):  # nobody always follows the same one
                if self.threads > 1:
                    time.sleep(program.pause)
                if self.seen[program.name, name][1] < WARM:
                    contenders[name].time(batch[name] * (WAKING if self.threads > 1 else 1))
                samples[name].append(contenders[name].time(batch[name]) / batch[name])
        others = (busy() - before) - (time.process_time() - own)
        return samples, max(0.0, others / (time.monotonic() - start))

    def measure(self, program: Program, kernels: dict, count: int) -> None:
        wanted = [n for n in list(kernels) + self.options["peers"] if self.short_enough(program, n, count)]
        engines = [n for n in wanted if n in kernels]
        if not engines:
            return
        case = Case(program, count, self.threads)
        contenders = self.contenders(case, kernels, wanted)
        self.check(case, contenders)
        samples, others = self.rounds(program, count, contenders)
        timed = {n: {"median_ns": median(s), "min_ns": min(s), "samples": len(s)} for n, s in samples.items()}
        peers = {n: t for n, t in timed.items() if n not in kernels}
        for engine in engines:
            if engine in timed:
                emit("row", program=program.name, count=count, threads=self.threads, engine=engine, ran=self.ran[engine],
                     bytes=program.bytes, others=others, peers=peers, **timed[engine])

    # Figures that are no program's ---------------------------------------------------------------------------------------------

    def limits(self) -> None:
        for level, size in self.options["levels"].items():
            rates = {f"{kind}{'-streaming' if streaming else ''}": self.loops.c.memory_rate(triad, streaming, size, self.threads) / 1e9
                     for triad, kind in enumerate(("copy", "triad")) for streaming in (0, 1)}
            emit("limit", level=level, bytes=size, threads=self.threads, **rates)

    def fixed_costs(self, engine: str, executor: Executor) -> None:
        """A launch of one element, and what a kernel costs that nobody has seen before."""
        case = Case(PROGRAMS["add"], 1, self.threads)
        text = (HERE / "programs" / "add.atlas").read_text(encoding="utf-8")
        ours = Ours(self.loops, self.launch(executor.kernel(text, "add"), case), case)
        ran = ours.launch.run()
        launches = []
        for _ in range(101):  # over half a second: neighbours slow a processor down for tens of milliseconds
            time.sleep(0.005)
            ours.time(1000)
            launches.append(ours.time(1000) / 1000)
        text, kernels = (HERE / "programs" / "gelu.atlas").read_text(encoding="utf-8"), []
        executor.choose_engine()
        for number in range(41):
            other = text.replace("    stg", f"    add.f32 r0, r0, #0x{0x3f800000 + os.getpid() % 4096 * 64 + number:08x}\n    stg")
            program, handle = self.library.parse(other, "gelu"), c.c_void_p()
            start = time.perf_counter_ns()
            status = self.library.c.hg_kernel_create(executor.handle, program, c.byref(handle))
            kernels.append(time.perf_counter_ns() - start)
            self.library.c.atlas_program_release(program)
            self.library.check(status)
            self.library.c.hg_kernel_release(handle)
        emit("fixed", engine=engine, ran=ran, threads=self.threads, launch_ns=median(launches), launch_min_ns=min(launches),
             kernel_ns=median(kernels), kernel_min_ns=min(kernels))

    def run(self) -> None:
        self.limits()
        for engine, executor in self.executors.items():
            self.fixed_costs(engine, executor)
        for name in self.options["programs"]:
            program = PROGRAMS[name]
            kernels = self.kernels(program, least(program))
            self.check_any_bits(program, kernels)
            self.probe(program, kernels)
            for count in self.options["sizes"]:
                if count >= program.least:
                    self.measure(program, self.kernels(program, count), count)


def least(program: Program) -> int:
    """The size to foretell from."""
    return max(PROBE, program.least)


def busy() -> float:
    """Processor seconds that everybody has used so far; 0 where the system does not say."""
    try:
        fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return sum(int(v) for i, v in enumerate(fields[1:9]) if i not in (3, 4)) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def main() -> int:
    options = json.loads(sys.argv[1])
    if options["threads"] == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one thread stays where its caches are
    try:
        Bench(options).run()
    except Error as error:
        emit("error", why=str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
