#!/usr/bin/env python3
"""Times the programs of programs/ on the CPU, beside compiled loops, NumPy, numexpr and PyTorch in the same run.

    ./dev bench cpu [OPTION]...      (what the columns mean: bench/README.md)

Everybody's answer is checked before anybody is timed. The exit status tells of wrong answers and of failures, never of times."""

import argparse
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import report
import translate
from programs import PROGRAMS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))
import operations.table  # noqa: E402
from operations import on_cpu  # noqa: E402

PARTS = ("programs", "operations")
ENGINES = ("auto", "native", "tile", "interp")
PEERS = ("loop", "hand", "numpy", "numpy-expr", "numexpr", "torch")
SIZES = [1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26]
SOURCES = [ROOT / "src/functions/exp.atlas", ROOT / "src/functions/log.atlas"]
FUNCTIONS = ["exp_f32", "sigmoid_f32", "gelu_f32", "gelu_tanh_f32"]
SCALAR_FUNCTIONS = ["log_f32"]  # once a row: nothing to vectorise
# The bits of the ISA need all of these but the first three; what is never observed here (errno, traps) costs nothing.
FLAGS = ["-O3", "-march=native", "-mprefer-vector-width=512", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno",
         "-fno-trapping-math", "-fno-tree-loop-distribute-patterns", "-fopenmp", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror"]


# ---- options ----------------------------------------------------------------------------------------------------------------------

def count_of(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20}
    number, unit = (text[:-1], units[text[-1].upper()]) if text[-1:].upper() in units else (text, 1)
    count = int(number) * unit
    side = int(count ** 0.5)
    if count < 1024 or count % 1024 or side * side != count:
        raise argparse.ArgumentTypeError(f"'{text}': a size is the square of a multiple of 32 (1K, 4K, 16K, 64K, ... 64M)")
    return count


def names_of(known):
    def parse(text: str) -> list[str]:
        names = text.split(",")
        unknown = [n for n in names if n not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(known)}")
        return names
    return parse


def threads_of(text: str) -> list[int]:
    every = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        return list(dict.fromkeys(every if t == "all" else int(t) for t in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}': numbers of threads, or all") from None


def parse_options() -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="./dev bench cpu", description="Times the benchmark programs on the CPU beside their peers.")
    p.add_argument("--parts", type=names_of(PARTS), default=list(PARTS), metavar="A,B", help=", ".join(PARTS) + " (default both)")
    p.add_argument("--operations", type=lambda t: t.split(","), default=[], metavar="A,B",
                   help="of the part of that name: rows, narrow, reductions, losses, chains, products, optimisers, embedding, training, "
                   "every, calls, or names such as softmax, or NAME:TYPE:COLUMNS such as softmax:bf16:1000 (default all)")
    p.add_argument("--explain", action="store_true", help="which launches an operation becomes")
    p.add_argument("--elements", type=count_of, default=1 << 24, metavar="16M", help="of rows, chains and reductions among operations")
    p.add_argument("--programs", type=names_of(list(PROGRAMS)), default=list(PROGRAMS), metavar="A,B", help=", ".join(PROGRAMS))
    p.add_argument("--sizes", type=lambda t: [count_of(s) for s in t.split(",")], default=SIZES, metavar="1K,4M",
                   help="elements, of a matrix or a picture too (default 1K,16K,256K,4M,64M)")
    p.add_argument("--threads", type=threads_of, default=threads_of("1,all"), metavar="1,all", help="default 1,all")
    p.add_argument("--engines", type=names_of(ENGINES), default=["native", "tile"], metavar="A,B",
                   help=", ".join(ENGINES) + "; auto is the library's own choice (default native,tile; the targets are the first's)")
    p.add_argument("--peers", type=names_of(PEERS), default=[n for n in PEERS if n != "numpy-expr"], metavar="A,B",
                   help=", ".join(PEERS) + " (default: all but numpy-expr)")
    p.add_argument("--repeat", type=int, default=25, metavar="N", help="samples at most (default 25)")
    p.add_argument("--seconds", type=float, default=1.0, help="for the samples of one program and size; at least 3 are taken (default 1)")
    p.add_argument("--longest", type=float, default=2.0, help="a call foretold to take more seconds is skipped (default 2)")
    p.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    p.add_argument("--library", type=Path, default=ROOT / "build/release/libhologram.so", help=argparse.SUPPRESS)
    p.add_argument("--out", type=Path, default=ROOT / "build/bench/cpu", metavar="DIR", help="for the plot and the loops")
    return p.parse_args()


# ---- what is compiled here ----------------------------------------------------------------------------------------------------------

def build_loops(out: Path) -> Path:
    """The compiled loops for this machine; -mprefer-vector-width only where there is such a thing."""
    out.mkdir(parents=True, exist_ok=True)
    (out / "functions.h").write_text(translate.functions(SOURCES, FUNCTIONS, SCALAR_FUNCTIONS), encoding="utf-8")
    flags = [f for f in FLAGS if platform.machine() in ("x86_64", "AMD64") or not f.startswith("-mprefer")]
    library = out / "libloops.so"
    subprocess.run([os.environ.get("CC", "gcc"), *flags, f"-I{out}", f"-I{HERE}", str(HERE / "loops.c"), str(HERE / "limits.c"),
                    "-o", str(library), "-lm"], check=True)
    return library


# ---- the machine ------------------------------------------------------------------------------------------------------------------

def cache_sizes() -> dict[str, int]:
    """Bytes of the data caches of one processor; what most machines have where the system does not say."""
    sizes, units = {}, {"K": 1 << 10, "M": 1 << 20}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        text = {n: (index / n).read_text(encoding="ascii").strip() for n in ("level", "type", "size")}
        if text["type"] != "Instruction":
            sizes["L" + text["level"]] = int(text["size"][:-1]) * units[text["size"][-1]]
    return sizes or {"L1": 32 << 10, "L2": 1 << 20}


def levels(caches: dict[str, int], threads: int) -> dict[str, tuple[int, int]]:
    """Level -> (bytes a thread that it holds, bytes a thread to measure it with). The last cache is shared."""
    last = list(caches)[-1]
    found = {}
    for name, size in caches.items():
        holds = size // threads if name == last and len(caches) > 2 else size
        found[name] = holds, holds // 2
    return found | {"DRAM": (1 << 62, max(4 * caches[last], 256 << 20) // threads)}


def machine(threads: list[int], caches: dict) -> dict:
    model = "unknown"
    if Path("/proc/cpuinfo").exists():
        model = next((s.split(":", 1)[1].strip() for s in Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
                      if s.startswith("model name")), model)
    versions = {}
    for package in ("numpy", "scipy", "numexpr", "torch"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    return {"processor": model, "architecture": platform.machine(), "system": platform.platform(terse=True),
            "processors": os.cpu_count(), "threads": threads, "caches": caches, "python": platform.python_version()} | versions


def compile_times(library: Path) -> list[dict]:
    """What kernels cost the compiler, from the program built with the library; none where that is not there."""
    program = library.parent / "bench/bench_compile"
    if not program.exists():
        return []
    return json.loads(subprocess.run([program, "--json", "--kernels"], stdout=subprocess.PIPE, check=True).stdout)


# ---- the run -------------------------------------------------------------------------------------------------------------------------

class Run:
    def __init__(self, options: argparse.Namespace, loops: Path):
        self.options, self.loops = options, loops
        self.caches = cache_sizes()
        self.limits = report.Limits()
        self.data = {"machine": machine(options.threads, self.caches), "limits": [], "fixed": [], "rows": [], "operations": [], "calls": [],
                     "skipped": [], "wrong": [], "errors": []}
        wanted = [PROGRAMS[n].peers.keys() | {"loop"} | ({"hand"} if n == "mandelbrot" else set()) for n in options.programs]
        self.peers = [p for p in options.peers if any(p in w for w in wanted)]

    def operations(self, threads: int) -> None:
        o, group = self.options, ""
        team = on_cpu.Team(o.library, o.elements, o.operations, threads)
        for who, why in team.missing.items():
            print(f"left out: {who} ({why})")
        peers = [p for p in ("torch", "numpy", "by hand") if p not in team.missing]
        print(f"\noperations, {threads} thread{'s' * (threads > 1)}\n{operations.table.heading(peers)}", flush=True)
        for operation in on_cpu.operations(o.library, o.elements, o.operations):
            if operation.group != group:
                group = operation.group
                team.forget()
            row, text = team.measure(operation, o.seconds, self.take_operation_failure)
            if row:
                limit = self.limits.find(threads, row["work"])[1] if operations.table.moves(row) else None
                self.data["operations"].append(operations.table.complete(row, limit))
                print(operations.table.line(row, peers) + (f"\n{text}" if o.explain else ""), flush=True)
        team.close()

    def take_operation_failure(self, operation, kind: str, who: str, why: str) -> None:
        self.data["wrong" if kind == "wrong" else "errors"].append({"program": operation.name, "who": who, "why": why})
        print(f"{operation.name}: {who} {kind}: {why}", flush=True)

    def calls(self) -> None:
        if self.options.operations and "calls" not in self.options.operations:
            return
        self.data["calls"] = on_cpu.calls(self.options.library)
        print("\ncalls from C")
        for row in self.data["calls"]:
            print(f"  {row['name']:<52}{report.digits(row['median_ns']):>12} ns  (p10 {report.digits(row['p10_ns'])})")

    def measure(self, threads: int) -> None:
        """One process for a number of threads; what it finds is shown as it comes."""
        o, sizes = self.options, levels(self.caches, threads)
        variables = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "HOLOGRAM")
        environment = os.environ | {f"{v}_NUM_THREADS": str(threads) for v in variables} | {"NUMEXPR_MAX_THREADS": str(threads)}
        given = {"threads": threads, "library": str(o.library), "loops": str(self.loops),
                 "programs": o.programs if "programs" in o.parts else [],
                 "sizes": sorted(o.sizes), "engines": o.engines, "peers": self.peers, "repeat": o.repeat, "seconds": o.seconds,
                 "longest": o.longest, "levels": {name: size for name, (_, size) in sizes.items()}}
        child = subprocess.Popen([sys.executable, str(HERE / "measure.py"), json.dumps(given)], stdout=subprocess.PIPE, text=True,
                                 env=environment)
        for text in child.stdout:
            found = json.loads(text)
            if found["kind"] == "limit":
                found["holds"] = sizes[found["level"]][0]
            getattr(self, "take_" + found.pop("kind"))(found)
        if child.wait() != 0 and not self.data["errors"]:
            self.take_error({"why": f"the measuring process ended with status {child.returncode}"})

    def take_limit(self, row: dict) -> None:
        if row["threads"] not in self.limits.rows:
            print(f"\n{row['threads']} thread{'s' * (row['threads'] > 1)}\n{'limit, GB/s':<13}{'KB/thread':>10}{'copy':>8}{'triad':>8}"
                  f"{'streaming: copy':>17}{'triad':>8}")
        self.limits.add(row)
        self.data["limits"].append(row)
        rates = (("copy", 8), ("triad", 8), ("copy-streaming", 17), ("triad-streaming", 8))
        print(f"{row['level']:<13}{row['bytes'] // 1024:>10}" + "".join(f"{report.digits(row[k]):>{w}}" for k, w in rates), flush=True)

    def take_fixed(self, row: dict) -> None:
        self.data["fixed"].append(row)
        print(f"engine {row['engine']} ({row['ran']} runs): a launch of one element {report.digits(row['launch_ns'])} ns, "
              f"a new gelu kernel {report.digits(row['kernel_ns'] / 1000)} us", flush=True)

    def take_row(self, row: dict) -> None:
        if not self.data["rows"] or self.data["rows"][-1]["threads"] != row["threads"]:
            print("\n" + report.heading(self.peers))
        self.data["rows"].append(report.complete(row, self.limits))
        print(report.line(row, self.peers), flush=True)

    def take_skip(self, row: dict) -> None:
        self.data["skipped"].append(row)
        size = report.size_name(row["count"]) if row["count"] else ""
        print(f"{row['program']:<13}{size:>5}{row['threads']:>4} {row['who']} skipped: {row['why']}", flush=True)

    def take_wrong(self, row: dict) -> None:
        self.data["wrong"].append(row)
        print(f"{row['program']:<13}{report.size_name(row['count']):>5}{row['threads']:>4} {row['who']} WRONG, not timed: "
              f"{row['elements']} elements differ, first {row['first']}: {row['has']}, {row['against']} has {row['expected']}", flush=True)

    def take_error(self, row: dict) -> None:
        self.data["errors"].append(row)
        print(f"bench: {row['why']}", file=sys.stderr)

    def finish(self) -> None:
        o, rows = self.options, self.data["rows"]
        self.data["compiled"] = compile_times(o.library)
        self.data["targets"] = report.targets(rows, self.data["fixed"], self.data["compiled"], o.engines[0])
        self.data["targets"] += on_cpu.targets(self.data["operations"], self.data["calls"])
        ran = ", ".join(dict.fromkeys(f["ran"] for f in self.data["fixed"] if f["engine"] == o.engines[0])) or "nothing"
        print(f"\nStanding targets, engine {o.engines[0]} ({ran} ran); ratios are ours / theirs in time, medians")
        for target in self.data["targets"]:
            if "programs" in o.parts or target["met"] is not None:
                print(report.target_line(target))
        if o.json:
            o.json.write_text(json.dumps(self.data, indent=1) + "\n", encoding="utf-8")
        if rows:
            report.plot(rows, o.out / "cpu.png")
            print(f"\nplot: {o.out / 'cpu.png'}")


def main() -> int:
    options = parse_options()
    if not options.library.exists():
        sys.exit(f"bench: there is no {options.library}; ./dev bench cpu builds it")
    run = Run(options, build_loops(options.out))
    about = run.data["machine"]
    print(f"{about['processor']}, {about['processors']} processors, caches {', '.join(f'{n} {s >> 10}K' for n, s in run.caches.items())}; "
          + ", ".join(f"{n} {about[n] or 'not installed'}" for n in ("numpy", "scipy", "numexpr", "torch")), flush=True)
    try:
        for threads in options.threads:
            run.measure(threads)
            if "operations" in options.parts:
                run.operations(threads)
        if "operations" in options.parts:
            run.calls()
    except KeyboardInterrupt:
        print("interrupted: what follows is of what was measured until then")
    run.finish()
    return 1 if run.data["wrong"] or run.data["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
