#!/usr/bin/env python3
"""The architecture, checked: which folder of src/ may use which, and that the files of a folder stand in an order.

    rooms.py                            folders by their #includes
    rooms.py --library libhologram.a    also by the symbols they use, and the files within each folder
    rooms.py --library ... --table      and a table: lines, files, dependencies, circles

A folder that has no row here, a use that its row does not allow and an allowance that nobody uses are findings. So is a circle of
files (each uses a function of the next, the last one of the first) that the folder's header does not name, by a line
"Circle: a b c: reason", and what a file offers and nobody else uses. Prints one line a finding; exit status 1 if there are any."""

import argparse
import collections
import functools
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folder: what it may use, all of which stands before it. `backend` is backend.h and work.c, `cpu` the files right in it.
ROOMS = {
    "base": "",
    "ir": "base",
    "atlas": "base ir",
    "compiler/analysis": "base ir atlas",
    "compiler/canon": "base ir atlas compiler/analysis",
    "compiler": "base ir atlas compiler/analysis compiler/canon",
    "vector": "base ir atlas compiler compiler/analysis",
    "backend": "base ir atlas",
    "backend/cpu/engine": "base atlas compiler vector",
    "backend/cpu/contract": "base atlas backend backend/cpu/engine",
    "backend/cpu/rows": "base atlas backend backend/cpu/engine",
    "backend/cpu/tile": "base atlas backend/cpu/engine",
    "backend/cpu/native": "base atlas compiler/analysis vector backend/cpu/engine",
    "backend/cpu/x86": "base atlas compiler backend/cpu/engine backend/cpu/native",
    "backend/cpu/arm64": "base atlas compiler backend/cpu/native",
    "backend/cpu": "base ir compiler/canon compiler vector backend backend/cpu/engine backend/cpu/contract backend/cpu/rows "
                   "backend/cpu/tile backend/cpu/native backend/cpu/x86 backend/cpu/arm64",
    "backend/gpu": "base ir atlas compiler/analysis compiler/canon compiler backend",
    "backend/cuda/ptx": "base ir atlas compiler/canon compiler backend/gpu",
    "backend/cuda": "base compiler backend backend/gpu backend/cuda/ptx",
    "backend/metal/msl": "base ir atlas compiler/canon compiler backend/gpu",
    "backend/metal": "base compiler backend backend/gpu backend/metal/msl",
    "runtime": "base ir atlas compiler/canon backend backend/cpu backend/cuda backend/metal",
    "ops/graph": "base atlas",
    "ops/write": "base atlas backend ops/graph",
    "ops/plan": "base atlas ops/graph ops/write",
    "ops/run": "base atlas runtime ops/graph ops/write ops/plan",
    "tensors": "base atlas runtime ops/graph",
    "circuit": "base atlas runtime",
    "cli": "",
}
ORDER = list(ROOMS)


def sources(suffixes):
    return sorted(p for p in (ROOT / "src").rglob("*") if p.suffix in suffixes)


def room_of(path):
    return path.relative_to(ROOT / "src").parent.as_posix()


def uses_by_includes():
    """(file, line, room it includes from) of every #include of another folder."""
    for path in sources({".c", ".h", ".def"}):
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
            included = re.match(r'\s*#\s*include "([\w/]+)/[\w.]+"', line)
            if included and included.group(1) != room_of(path) and (ROOT / "src" / included.group(1)).is_dir():
                yield path, number, included.group(1)


class Symbols:
    """Which file of the library uses which, by the symbols of its objects."""

    def __init__(self, library):
        files = {p.relative_to(ROOT).as_posix().replace("/", "_") + ".o": p for p in sources({".c"})}
        listing = subprocess.run(["nm", "-A", "-g", library], text=True, capture_output=True, check=True).stdout
        defined, needed = {}, collections.defaultdict(set)
        for line in listing.split("\n"):
            entry = re.search(r":([^:]+\.o):\s*[0-9a-f]*\s+(\w)\s+(\S+)$", line)
            if not entry or entry.group(1) not in files:
                continue
            path, kind, symbol = files[entry.group(1)], entry.group(2), entry.group(3)
            if kind == "U":
                needed[path].add(symbol)
            else:
                defined[symbol] = path
        if not defined:
            sys.exit(f"rooms.py: {library} has no object of these sources")
        self.uses = {p: {defined[s] for s in needed[p] if s in defined} - {p} for p in files.values()}
        self.alone = sorted((path, s) for s, path in defined.items() if not any(s in symbols for symbols in needed.values()))

    def circles(self, room):
        """Of files of one folder: the strongly connected components (Tarjan, 1972) that have more than one."""
        files = {p for p in self.uses if room_of(p) == room}
        index, low, stack, found = {}, {}, [], []

        def visit(path):
            index[path] = low[path] = len(index)
            stack.append(path)
            for used in sorted(self.uses[path] & files):
                if used not in index:
                    visit(used)
                if used in stack:
                    low[path] = min(low[path], low[used])
            if low[path] == index[path]:
                component = stack[stack.index(path):]
                del stack[stack.index(path):]
                if len(component) > 1:
                    found.append(sorted(p.stem for p in component))

        for path in sorted(files):
            if path not in index:
                visit(path)
        return found


def words_elsewhere(path):
    """All words of the API, of the other files (which another platform may build), and of tests: what somebody may use of this one."""
    found = set()
    for folder in ("src", "include", "tests", "bench", "python"):
        for other in (ROOT / folder).rglob("*"):
            is_code = other.suffix in (".c", ".def", ".cpp") or (other.suffix == ".h" and folder != "src")
            if is_code and other != path:
                found |= words_of(other)
    return found


@functools.cache
def words_of(path):
    return set(re.findall(r"\w+", path.read_text(encoding="utf-8")))


def named_circles(room):
    """Those that a header of the folder names, with a reason."""
    for header in (ROOT / "src" / room).glob("*.h"):
        for names, reason in re.findall(r"Circle: ([\w ]+): (\w+)", header.read_text(encoding="utf-8")):
            if reason:
                yield sorted(names.split())


def check(symbols):
    allowed = {room: set(row.split()) for room, row in ROOMS.items()}
    unused = {(room, used) for room, row in allowed.items() for used in row}
    for room, row in allowed.items():
        for used in row - set(ORDER[: ORDER.index(room)]):
            yield f"tools/rooms.py: {room} may not use {used}, which does not stand before it"
    for room in {room_of(p) for p in sources({".c", ".h"})} - set(ROOMS):
        yield f"src/{room}: this folder has no row in tools/rooms.py"
    uses = [(f"{path.relative_to(ROOT)}:{number}: includes {used}/", room_of(path), used) for path, number, used in uses_by_includes()]
    if symbols:
        uses += [(f"{path.relative_to(ROOT)}: uses {used.relative_to(ROOT)}", room_of(path), room_of(used))
                 for path, row in symbols.uses.items() for used in row if room_of(path) != room_of(used)]
    for what, room, used in uses:
        unused.discard((room, used))
        if used not in allowed.get(room, {used}):
            yield f"{what}, which tools/rooms.py does not allow {room}"
    if symbols:
        for room, used in sorted(unused):
            yield f"tools/rooms.py: {room} does not use {used}: take it away"
        for path, symbol in symbols.alone:
            if symbol not in words_elsewhere(path):
                yield f"{path.relative_to(ROOT)}: nobody else uses {symbol}: make it static, or take it away"
        for room in ROOMS:
            named = list(named_circles(room))
            for circle in symbols.circles(room):
                if circle not in named:
                    yield f"src/{room}: a circle that no header names with its reason: {' '.join(circle)}"


def print_table(symbols):
    print(f"{'folder':<20} {'files':>5} {'lines':>6} {'uses':>5} {'circles':>7}")
    total = collections.Counter()
    for room in ROOMS:
        files = [p for p in sources({".c", ".h", ".def"}) if room_of(p) == room]
        units = [p for p in symbols.uses if room_of(p) == room]
        row = {"files": len(files), "lines": sum(p.read_text(encoding="utf-8").count("\n") for p in files),
               "uses": sum(len(symbols.uses[p]) for p in units), "circles": len(symbols.circles(room))}
        total.update(row)
        print(f"{room:<20} {row['files']:>5} {row['lines']:>6} {row['uses']:>5} {row['circles']:>7}")
    print(f"{'all':<20} {total['files']:>5} {total['lines']:>6} {total['uses']:>5} {total['circles']:>7}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", help="the static library, for what files use of each other")
    parser.add_argument("--table", action="store_true", help="print the table, too")
    options = parser.parse_args()
    symbols = Symbols(options.library) if options.library else None
    if options.table and symbols:
        print_table(symbols)
    findings = list(check(symbols))
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
