#!/usr/bin/env python3
"""Records what a library makes of random programs, of random graphs of operations and of the conformance tests' launches, as a line
of digests each, and compares two such files: whether a change that claims to change no bit and no hash did. ./dev record --help"""

import argparse
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATHS = (ROOT / "tests", ROOT / "tests/conformance", ROOT / "tests/ops", HERE)
FIRST_PROGRAM = 100000001  # the first seed of all operations and shapes (tests/random/draft.h)
TOGETHER = {"program": 500, "graph": 500}  # seeds a process
SECONDS_EACH = 60
SHOWN = 10

FIELDS = {"program": ("program", "hash", "results"), "graph": ("graph", "programs", "plan", "results"),
          "test": ("launches", "given", "hashes", "results")}
GIVEN = {"program": 0, "graph": 0, "test": 1}  # the field that says what was run: where it differs nothing else is compared
CHANGES_WITH_MACHINE = {("graph", "programs"), ("graph", "plan")}  # with its engine and the number of its processors

# ---- processes --------------------------------------------------------------------------------------------------------


def environment(options, library: Path, operations: str = "") -> dict[str, str]:
    return {**os.environ, "HOLOGRAM_LIB": str(library), "HOLOGRAM_RECORD_OPERATIONS": operations, "HOLOGRAM_TEST_BACKEND": "cpu",
            "HOLOGRAM_TEST_ENGINES": options.engine, "PYTHONDONTWRITEBYTECODE": "1",
            "HOLOGRAM_EMIT_LAUNCHES": str(ROOT / "build/release/tests/random/emit_launches")}


def maker_of(kind: str):
    sys.path[:0] = map(str, PATHS)
    return importlib.import_module({"program": "programs", "graph": "graphs"}[kind])


def work(kind: str, first: int, count: int, with_code: bool) -> None:
    """In a process of its own: a line for each seed. One that takes too long ends it."""
    maker = maker_of(kind)
    signal.alarm(SECONDS_EACH)
    for seed, fields in maker.lines(first, count, with_code):
        print(kind, seed, *fields, flush=True)
        signal.alarm(SECONDS_EACH)


def chunk_of(kind, first, count, options, settings) -> list[str]:
    """The lines of these seeds. A seed that a process did not survive has a line that says so, and another one goes on behind it."""
    found, end = [], first + count
    while first < end:
        command = [sys.executable, __file__, "--work", kind, str(first), str(end - first), *(["--code"] if options.code else [])]
        done = subprocess.run(command, env=settings, stdout=subprocess.PIPE, text=True)
        lines = done.stdout.splitlines()
        if done.returncode > 0:
            raise SystemExit(f"record: {' '.join(command[1:])} ended with exit status {done.returncode}")
        found += lines
        first += len(lines)
        if done.returncode:
            found.append(f"{kind} {first} died of signal {-done.returncode}")
            first += 1
    return found


def record_seeds(options, settings):
    chunks = []
    for kind, first, count in (("program", options.seed or FIRST_PROGRAM, options.programs), ("graph", options.seed or 0, options.graphs)):
        chunks += [(kind, at, min(TOGETHER[kind], first + count - at)) for at in range(first, first + count, TOGETHER[kind])]
    with ThreadPoolExecutor(options.processes) as pool:
        for lines in pool.map(lambda chunk: chunk_of(*chunk, options, settings), chunks):
            yield from lines


# ---- the conformance tests --------------------------------------------------------------------------------------------


def record_tests(options, settings):
    """A line for each test: how many launches, and digests over all of them, in their order."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(options.processes), "--dist", "worksteal",
                   "-m", "engine", "--engine", options.engine, "--one-in", str(options.one_test_in), str(ROOT / "tests/conformance")]
        done = subprocess.run(command, cwd=ROOT, env={**settings, "HOLOGRAM_TEST_DIGESTS": folder}, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            print(f"conformance tests, which are recorded all the same: {done.stdout.splitlines()[-1]}", file=sys.stderr)
        launches = {}
        for path in Path(folder).iterdir():
            for line in path.read_text(encoding="utf-8").splitlines():
                test, *digests = json.loads(line)
                launches.setdefault(test, []).append(digests)
    for test in sorted(launches):
        digests = (hashlib.sha256("".join(column).encode()).hexdigest()[:8] for column in zip(*launches[test]))
        yield " ".join(("test", json.dumps(test).replace(" ", "\\u0020"), str(len(launches[test])), *digests))


# ---- recording --------------------------------------------------------------------------------------------------------

FACTS = """
import json, re, numpy, hgops
c = hgops.Computation()
c.output(c.op("neg", c.input(numpy.ones(9, numpy.float32))))
report = c.run_on(hgops.ENGINES[0], report=True)[1]
engine = re.search("lanes .(.*?).:", report)[1].replace(" ", "-")
import programs
targets = " ".join(f"{name}{capability or ''}" for name, capability, _ in programs.targets())
print(json.dumps([" ".join(sorted(hgops.TABLE)), f"{engine}-{hgops.compute_units(hgops.ENGINES[0])}", targets]))
"""


def facts_of(settings) -> tuple[str, str, str]:
    """The library's operations; its engine here with the number of processors that it sees; what it writes code for."""
    paths = os.pathsep.join(map(str, PATHS))
    return json.loads(subprocess.run([sys.executable, "-c", FACTS], env=settings | {"PYTHONPATH": paths}, stdout=subprocess.PIPE,
                                     check=True, text=True).stdout)


def record(options, library: Path, path: Path, others: str = "") -> str:
    """Writes the file; the library's operations. `others`: of a library that is to draw the same graphs."""
    settings = environment(options, library, others)
    operations, machine, targets = facts_of(settings)
    if others:
        operations = " ".join(name for name in operations.split() if name in others.split())
        settings = environment(options, library, operations)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        drawn_from = hashlib.sha256(operations.encode()).hexdigest()[:8]
        file.write(f"record 1 machine {machine} operations {drawn_from} code {targets if options.code else ''}\n")
        for line in record_seeds(options, settings):
            file.write(line + "\n")
        for line in record_tests(options, settings) if options.one_test_in else ():
            file.write(line + "\n")
    print(f"{path}: sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}")
    return operations


# ---- comparing --------------------------------------------------------------------------------------------------------


def read(path: Path) -> tuple[str, dict]:
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    if not head.startswith("record 1 "):
        raise SystemExit(f"record: {path} is no record")
    return head, {tuple(line.split(" ", 2)[:2]): line.split(" ")[2:] for line in lines}


def differing(kind: str, a: list[str], b: list[str], one_machine: bool, targets=()) -> list[str]:
    """The names of the fields that differ. "-": one of the two does not say."""
    if a[0] != b[0] and "died" in (a[0], b[0]):
        return ["died"]
    if len(a) > GIVEN[kind] < len(b) and a[GIVEN[kind]] != b[GIVEN[kind]]:
        return ["given"]
    names = (*FIELDS[kind], *(f"code for {target}" for target in targets))
    found = [name for name, x, y in zip(names, a, b) if x != y and "-" not in (x, y)]
    return [name for name in found if one_machine or (kind, name) not in CHANGES_WITH_MACHINE]


def compare(first: Path, second: Path, only_common: bool = False) -> dict:
    """Prints what differs; by kind the seeds or tests that do. One that a file lacks differs, too, but for `only_common`."""
    (head, a), (other_head, b) = read(first), read(second)
    common, found, counts = [key for key in a if key in b], {}, {}
    one_machine = head.split()[3] == other_head.split()[3]
    if not one_machine:
        print(f"{head.split()[3]} and {other_head.split()[3]}: plans of graphs and their programs are not compared")
    for key in common:
        for name in differing(key[0], a[key], b[key], one_machine, head.split()[7:]):
            counts.setdefault((key[0], name), []).append(key[1])
            found.setdefault(key[0], []).append(key[1])
    for kind in FIELDS:
        both = sum(key[0] == kind for key in common)
        alone = [[key[1] for key in mine if key[0] == kind and key not in theirs] for mine, theirs in ((a, b), (b, a))]
        print(f"{both} {kind}s in both files" + (f", {len(alone[0])} and {len(alone[1])} in one only" if any(alone) else ""))
        if any(alone) and not only_common:
            found.setdefault(kind, []).extend(alone[0] + alone[1])
        for (of, name), keys in counts.items():
            if of == kind and name == "given":
                print(f"  {len(keys)} are others than in the other file, and were not compared, first {keys[0]}")
            elif of == kind:
                print(f"  {name}: {len(keys)} differ, first {' '.join(keys[:SHOWN])}")
    if not common:
        raise SystemExit(f"record: {first} and {second} have nothing in common")
    for kind, keys in found.items():
        print(f"to see the first {kind}: " + (f"./dev record --show {kind} {keys[0]} [--library LIBRARY]" if kind != "test" else
                                              f"pytest {json.loads(keys[0])!r}, with HOLOGRAM_LIB=LIBRARY"))
    print("they differ" if found else "nothing differs")
    return found


# ---- the command ------------------------------------------------------------------------------------------------------


def show(options, kind: str, seed: int, library: Path) -> str:
    command = [sys.executable, __file__, "--work", kind, str(seed), "0"]
    return subprocess.run(command, env=environment(options, library), stdout=subprocess.PIPE, text=True).stdout


def against(options) -> int:
    """This tree's library beside another: both recorded, the first that differ shown as each has them."""
    paths = [ROOT / "build/record/there.record", ROOT / "build/record/here.record"]
    operations = record(options, options.other, paths[0], facts_of(environment(options, options.library))[0])
    record(options, options.library, paths[1], operations)
    found = compare(*paths)
    for kind, keys in found.items():
        for name, library in (("there", options.other), ("here", options.library)) if kind != "test" else ():
            print(f"---- {kind} {keys[0]} {name} ({library}) ----\n{show(options, kind, int(keys[0]), library)}")
    return int(bool(found))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--library", type=Path, default=ROOT / "build/release/libhologram.so")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"))
    parser.add_argument("--common", action="store_true", help="with --compare: what only one of the files has is no difference")
    parser.add_argument("--other", type=Path, help="the library to compare with")
    parser.add_argument("--show", nargs=2, metavar=("KIND", "SEED"))
    parser.add_argument("--programs", type=int, default=50000)
    parser.add_argument("--graphs", type=int, default=100000)
    parser.add_argument("--one-test-in", type=int, default=1, help="0: none")
    parser.add_argument("--engine", default="default", help="of the CPU, as tests/engines.py names them; all have the same bits")
    parser.add_argument("--seed", type=int, help="the first program's and graph's")
    parser.add_argument("--code", action="store_true", help="digests of each program's code for each target, too")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--work", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        kind, first, count = options.work[0], int(options.work[1]), int(options.work[2])
        work(kind, first, count, options.code) if count else print(maker_of(kind).show(first))
        return 0
    if options.compare:
        return int(bool(compare(*options.compare, options.common)))
    options.library = options.library.resolve()
    if options.show:
        print(show(options, options.show[0], int(options.show[1]), options.library))
        return 0
    if options.other:
        options.other = options.other.resolve()
        return against(options)
    if not options.file:
        parser.error("which file? FILE, or --compare A B, or --other LIBRARY")
    record(options, options.library, options.file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
