#!/usr/bin/env python3
"""Times programs on the GPU, beside PyTorch, torch.compile, Triton and CuPy in the same run.

    ./dev bench cuda [OPTION]...      (what the columns mean: bench/README.md)

Needs Python with NumPy, the NVIDIA driver and build/release; nothing is built. Everybody's answer is checked before anybody is timed.
The exit status tells of wrong answers and of failures, never of times."""

import argparse
import importlib.metadata
import json
import os
import platform
import random
import sys
import time
from pathlib import Path
from statistics import median

import block_contenders
import costs
import overlap
import table
from block_cases import BLOCKS
from block_contenders import Both, OurBlocks
from cases import PROGRAMS, TILE, Case
from contenders import NAMES, Gpu, Ours, open_peers
from driver import Driver, DriverError
from library import Error

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import operations.table  # noqa: E402
from operations import cases as operation_cases  # noqa: E402
from operations import computation, every  # noqa: E402
from operations import contenders as operation_contenders  # noqa: E402

ROOT = HERE.parent.parent
PARTS = ("programs", "blocks", "operations", "launches", "cold", "copies", "overlap")
SAMPLE_NS = 10_000_000  # a sample takes at least: so many calls are timed together
FEWEST = 5              # samples
BLOCK_SECONDS = 0.5     # for the samples of a program of blocks, or an operation, at most: there are many


# ---- options ------------------------------------------------------------------------------------------------------------------------

def count_of(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    count = int(number) * unit
    if count < 4096 or count % 4096 or (count > TILE and count % TILE):
        raise argparse.ArgumentTypeError(f"'{text}': a size is a multiple of 4K, and from 1M on of 1M")
    return count


def names_of(known):
    def parse(text: str) -> list[str]:
        names = [n for n in text.split(",") if n]
        unknown = [n for n in names if n not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(known)}")
        return names
    return parse


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="./dev bench cuda", description="Times programs on the GPU beside their peers.")
    every = [*PROGRAMS, *BLOCKS]
    p.add_argument("--programs", type=names_of(every), default=every, metavar="A,B", help=", ".join(every))
    p.add_argument("--operations", type=lambda t: t.split(","), default=[], metavar="A,B",
                   help="of the part of that name: rows, narrow, reductions, losses, chains, products, optimisers, embedding, training, "
                   "every, or names such as softmax, or NAME:TYPE:COLUMNS such as softmax:bf16:1000 (default all)")
    p.add_argument("--explain", action="store_true", help="which launches an operation becomes")
    p.add_argument("--types", type=names_of(("f32", "f16", "bf16")), default=["f32", "f16", "bf16"], metavar="A,B",
                   help="element types, of those programs that have them (default f32,f16,bf16)")
    p.add_argument("--sizes", type=lambda t: [count_of(s) for s in t.split(",")], default=[1 << 28], metavar="16M,256M",
                   help="elements (default 256M)")
    p.add_argument("--peers", type=names_of(NAMES), default=list(NAMES), metavar="A,B", help=", ".join(NAMES) + " (default all)")
    p.add_argument("--parts", type=names_of(PARTS), default=list(PARTS), metavar="A,B", help=", ".join(PARTS) + " (default all)")
    p.add_argument("--repeat", type=int, default=50, metavar="N", help="samples at most (default 50)")
    p.add_argument("--seconds", type=float, default=1.0, help=f"for the samples of one program; at least {FEWEST} are taken (default 1)")
    p.add_argument("--copy", type=count_of, default=256 << 20, metavar="256M", help="bytes copied from the host (default 256M)")
    p.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    p.add_argument("--library", type=Path, default=ROOT / "build/release/libhologram.so", help=argparse.SUPPRESS)
    p.add_argument("--out", type=Path, default=ROOT / "build/bench/cuda", metavar="DIR", help="for the plot")
    return p.parse_args()


# ---- the run ------------------------------------------------------------------------------------------------------------------------

class Run:
    def __init__(self, options: argparse.Namespace):
        self.options, self.driver = options, Driver()
        self.gpu = Gpu(options.library, self.driver)
        self.peers, missing = open_peers(options.peers)
        self.block_peers = [name for name, peer in block_contenders.NAMES.items() if peer in self.peers]
        self.data = {"machine": self.machine(), "peers": list(self.peers), "missing": missing, "limits": {}, "limit": 0.0, "rows": [],
                     "blocks": [], "operations": [], "launches": [], "cold": [], "copies": [], "overlap": [], "wrong": [], "failed": []}

    def machine(self) -> dict:
        versions = {}
        for package in ("numpy", "torch", "triton", "cupy"):
            names = [package] + [f"{package}-cuda{v}x" for v in (11, 12, 13) if package == "cupy"]
            versions[package] = next((v for v in map(version_of, names) if v), None)
        driver = self.driver.version.value
        return {"gpu": self.driver.name(), "driver": f"CUDA {driver // 1000}.{driver % 1000 // 10}",
                "system": platform.platform(terse=True), "python": platform.python_version(),
                "hologram": self.gpu.library.c.hg_version().decode()} | versions

    # One program -----------------------------------------------------------------------------------------------------------------

    def contenders(self, case, makers: dict) -> dict:
        """Whoever has the right answer, ready. Makers: name -> what makes a contender."""
        found = {}
        for name, make in makers.items():
            try:
                contender = make()
                wrong = next(filter(None, (case.difference(contender.answer(first, count), first) for first, count in case.windows())), "")
            except LookupError as error:
                if name in self.peers:
                    print(f"  {name}: left out: {error}", flush=True)
                continue
            except Exception as error:  # noqa: BLE001: whatever keeps somebody's library from working here; the others go on
                self.note("failed", case, name, f"{type(error).__name__}: {error}".split("\n", 1)[0])
                continue
            if wrong:
                self.note("wrong", case, name, wrong)
            else:
                found[name] = contender
        return found

    def note(self, kind: str, case, who: str, why: str) -> None:
        self.data[kind].append({"program": case.label, "count": case.count, "who": who, "why": why})
        print(f"  {kind}: {who}, {case.label}: {why}", flush=True)

    def sample(self, contender, repeat: int) -> float:
        """Nanoseconds of one of `repeat` calls: the GPU's where the work is put on a stream, else the host's."""
        if contender.stream is not None:
            return self.driver.time(contender.stream, contender.call, repeat)
        start = time.perf_counter_ns()
        for _ in range(repeat):
            contender.call()
        return (time.perf_counter_ns() - start) / repeat

    def rounds(self, contenders: dict, seconds: float) -> dict:
        """What samples of everybody come to, taken in turns, so that what disturbs one disturbs all."""
        samples, order, batch = {n: [] for n in contenders}, random.Random(1), {}
        for name, contender in contenders.items():
            batch[name] = max(1, int(SAMPLE_NS / max(min(self.sample(contender, 1) for _ in range(3)), 1)))
        start = time.monotonic()
        for turn in range(self.options.repeat):
            if turn >= FEWEST and time.monotonic() - start > seconds:
                break
            for name in order.sample(list(contenders), len(contenders)):
                samples[name].append(self.sample(contenders[name], batch[name]))
        return {n: {"median_ns": median(s), "min_ns": min(s), "samples": len(s)} for n, s in samples.items()}

    def measure(self, case: Case) -> None:
        makers = {name: lambda n=name: self.peers[n].contender(case, n) for name in self.peers}
        contenders = self.contenders(case, {"hologram": lambda: Ours(self.gpu, case)} | makers)
        if "hologram" not in contenders:
            return
        timed = self.rounds(contenders, self.options.seconds)
        row = {"program": case.label, "count": case.count, "bytes": case.bytes} | timed.pop("hologram") | {"peers": timed}
        self.data["rows"].append(table.complete(row, self.data["limit"], self.data["limits"]["paper"]))
        print(table.line(row, list(self.peers)), flush=True)

    def measure_blocks(self, variant, both: Both) -> None:
        """A program of blocks, after a small case of it on the GPU and on the CPU."""
        case = variant.make(variant.fixed or max(self.options.sizes))
        wrong = both.difference(variant.make(variant.small))
        if wrong:
            self.note("wrong", case, "hologram", wrong)
        makers = {n: lambda n=n: block_contenders.contender(self.peers, case, n) for n in self.block_peers}
        contenders = self.contenders(case, {"hologram": lambda: OurBlocks(self.gpu, case)} | makers)
        if "hologram" not in contenders:
            return
        timed = self.rounds(contenders, min(self.options.seconds, BLOCK_SECONDS))
        row = {"program": case.label, "count": case.count, "work": case.work, "unit": case.unit} | timed.pop("hologram") | {"peers": timed}
        self.data["blocks"].append(table.complete_block(row, self.data["limits"]["copy kernel"]))
        print(table.block_line(row, self.block_peers), flush=True)

    def counts(self, kind: str) -> list[int]:
        """f32 has as many bytes as the types of 16 bits too, which are compared with it."""
        sizes, narrow = self.options.sizes, any(t != "f32" for t in self.options.types)
        halves = [n // 2 for n in sizes if n % (2 * TILE) == 0] if kind == "f32" and narrow else []
        return sorted({*sizes, *halves})

    # The parts -------------------------------------------------------------------------------------------------------------------

    def forget(self, kind: str) -> None:
        """Arrays of other element types."""
        for holder in {id(h): h for h in (self.gpu, *self.peers.values())}.values():
            holder.forget(kind)

    def programs(self) -> None:
        wanted = [PROGRAMS[n] for n in self.options.programs if n in PROGRAMS]
        if not wanted:
            return
        print(f"\n{table.heading(list(self.peers))}", flush=True)
        for kind in self.options.types:
            self.forget(kind)
            for program in wanted:
                for count in self.counts(kind):
                    if kind in program.kinds:
                        self.measure(Case(program, kind, count))

    def blocks(self) -> None:
        wanted = [v for n in self.options.programs if n in BLOCKS for v in BLOCKS[n]]
        if not wanted:
            return
        print(f"\n{table.block_heading(self.block_peers)}", flush=True)
        both = Both(self.gpu, self.options.library)
        for kind in (*self.options.types, "u8"):
            self.forget(kind)
            for variant in wanted:
                if variant.kind == kind:
                    self.measure_blocks(variant, both)

    def operations(self) -> None:
        size = max(self.options.sizes)
        known = operation_cases.on_gpu(size) + every.operations(computation.table(self.gpu.library), size // 4)
        chosen = operation_cases.chosen(known, self.options.operations, size)
        peers = [p for p in ("torch", "compile") if p in self.peers]
        torch = operation_contenders.Torch(self.peers[peers[0]].torch, "cuda") if peers else None
        print(f"\n{operations.table.heading(peers)}", flush=True)
        group = ""
        for operation in chosen:
            if operation.group != group:
                group = operation.group
                self.forget("")
                if torch:
                    torch.forget()
            self.measure_operation(operation, torch, peers)

    def measure_operation(self, operation, torch, peers: list[str]) -> None:
        """Everybody's answer is compared with the first one's, which is PyTorch's where there is one."""
        makers = {p: lambda p=p: torch.contender(operation, p == "compile") for p in peers if p in operation.peers}
        makers["hologram"] = lambda: operation_contenders.Ours(self.gpu, operation)
        if operation.program:
            makers["by hand"] = lambda: operation_contenders.ByHand(self.gpu, operation)
        found, expected = {}, None
        for name, make in makers.items():
            try:
                contender = make()
                begun = time.perf_counter_ns()
                answer = contender.answer()
                first_ns = time.perf_counter_ns() - begun
            except Exception as error:  # noqa: BLE001: whatever keeps somebody's library from working here; the others go on
                self.note("failed", operation, name, f"{type(error).__name__}: {error}".split("\n", 1)[0])
                continue
            expected = answer if expected is None else expected
            wrong = operation_contenders.difference(operation, expected, answer)
            if wrong:
                self.note("wrong", operation, name, wrong)
            else:
                found[name] = contender
        if "hologram" not in found:
            return
        ours = found["hologram"]
        timed = self.rounds(found, min(self.options.seconds, BLOCK_SECONDS))
        row = operations.table.row_of(operation, ours.facts, ours.compile_ns + first_ns, timed)
        self.data["operations"].append(operations.table.complete(row, table.copy_rate(self.data["limits"]), self.driver.paper_products()))
        print(operations.table.line(row, peers), flush=True)
        if self.options.explain:
            print(ours.facts["report"], flush=True)

    def launches(self) -> None:
        print("\na launch of one element", flush=True)
        found = costs.launches(self.driver, self.gpu, costs.Calls(self.options.library.parent / "bench/libbench_calls.so"), self.peers)
        self.show("launches", found, table.launch_line)

    def cold(self) -> None:
        print("\nfrom source text to the end of the first launch, in a new process", flush=True)
        for program in ("add", "gelu"):
            for who in ["hologram", *self.peers]:
                self.show("cold", [costs.cold(self.options.library.resolve(), program, who)], table.cold_line)

    def copies(self) -> None:
        print(f"\n{self.options.copy >> 20} MiB between memory of the host and the GPU", flush=True)
        self.show("copies", costs.copies(self.gpu, self.peers.get("torch"), self.options.copy), table.copy_line)

    def overlap(self) -> None:
        print(f"\n{self.options.copy >> 20} MiB in {overlap.CHUNKS} chunks to the GPU, worked on, and back", flush=True)
        rows = overlap.measure(self.gpu, self.options.copy)
        longest = max(row["ms"] for row in rows)
        self.show("overlap", rows, lambda row: overlap.lines(row, longest))

    def show(self, kind: str, rows: list[dict], line) -> None:
        self.data[kind] += rows
        for row in rows:
            print(line(row), flush=True)

    def run(self) -> None:
        print(", ".join(f"{k} {v}" for k, v in self.data["machine"].items() if v))
        for name, why in self.data["missing"].items():
            print(f"left out: {name} ({why})")
        print("our launches are timed " + ("by the GPU's events, as the peers' are" if self.gpu.stream else
                                            "by the host's clock, each with its wait: this library has no streams"))
        limits = self.data["limits"] = costs.limits(self.driver, 4 * max(self.options.sizes))
        self.data["limit"] = max(rate for name, rate in limits.items() if name != "paper")
        print("GB/s: " + ", ".join(f"{name} {rate:.0f}" for name, rate in limits.items()), flush=True)
        for part in self.options.parts:
            getattr(self, part)()

    def judge(self) -> None:
        self.data["targets"] = table.targets(self.data)
        print("\ntargets (H200, 256M elements)")
        for target in self.data["targets"]:
            if target["met"] is not None:
                print(table.target_line(target))


def version_of(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def finish(data: dict, options: argparse.Namespace) -> int:
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    if data["rows"]:
        try:
            table.plot(data, options.out / "cuda.png")
            print(f"plot: {options.out / 'cuda.png'}")
        except ImportError as error:
            print(f"no plot: {error}")
    return 1 if data["wrong"] or data["failed"] else 0


def main() -> int:
    options = parse_options()
    os.environ.setdefault("HOLOGRAM_QUICK", "0")  # rates are those of code in full
    try:
        run = Run(options)
        try:
            run.run()
        except KeyboardInterrupt:
            print("interrupted: what follows is of what was measured until then")
        run.judge()
    except (Error, DriverError) as error:
        print(f"bench cuda: {error}", file=sys.stderr)
        return 1
    return finish(run.data, options)


if __name__ == "__main__":
    sys.exit(main())
