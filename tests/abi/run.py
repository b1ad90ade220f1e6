#!/usr/bin/env python3
"""Version 1 of the ABI, for years: tests/abi/version-1.h is the flat header as version 1 has it.

    tests/abi/run.py            ends in "N passed, N failed"; writes under build/abi
    tests/abi/run.py --keep     while version 1 is not released: keeps today's header as version 1, but for fields that structs
                                have got behind their last one of src/base/version1.def

- What version 1 declares is declared still: structs have their fields where they were, enumerators their values, functions
  their types; and src/base/version1.def knows its sizes.
- The library is built once more with three fields added to every public struct that may grow, under AddressSanitizer. Programs
  compiled against the kept header run on it, and on the library as it is.
- Programs compiled against such a grown header run on the library as it is."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import gen_flat  # noqa: E402

HERE = Path(__file__).resolve().parent
KEPT = HERE / "version-1.h"
WORK = ROOT / "build" / "abi"
HEAD = """/* version-1.h - include/hologram/flat/all.h of version 1. `run.py --keep` wrote it. */
"""
GROWTH = "  uint64_t grown[3];\n"
MAY_CHANGE = re.compile(r"HG_VERSION_\w+|(ATLAS|HG)_\w+_(VERSION|COUNT)")  # enumerators that say what this version is
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]

passed = failed = 0


def check(what, problems):
    """One test, of which the problems are printed."""
    global passed, failed
    problems = list(problems)
    passed, failed = passed + (not problems), failed + bool(problems)
    print(f"== {what}" + "".join(f"\nFAILED: {p}" for p in problems), flush=True)


def growable():
    """The rows of version1.def."""
    table = (ROOT / "src" / "base" / "version1.def").read_text(encoding="utf-8")
    return re.findall(r"^(?:STRUCT|ELEMENT)\((\w+),", table, re.M)


def keep():
    """Today's header with the structs of version1.def."""
    text = HEAD + gen_flat.flat_text().removeprefix(gen_flat.HEAD)
    table = (ROOT / "src" / "base" / "version1.def").read_text(encoding="utf-8")
    for name, last in re.findall(r"^(?:STRUCT|ELEMENT)\((\w+),\s*(\w+)\)", table, re.M):
        text, found = re.subn(rf"(\n  [^\n;]*\b{last}\b[^\n;]*;\n)(?:  [^\n]*\n)*(\}} {name};)", r"\1\2", text)
        if found != 1:
            raise ValueError(f"{name} of version1.def: {last} is {'no field of it' if found == 0 else 'found more than once'}")
    KEPT.write_text(text, encoding="utf-8")


# ---- what the headers declare ----------------------------------------------------------------------------------------


def compare(kept, today):
    """What a program of version 1 would take for something else."""
    old, new = gen_flat.facts(kept, kept), gen_flat.facts(today, today)
    for name, numbers in old.items():
        if name not in new:
            yield f"{name} of version 1 is gone"
        elif new[name] != numbers and not MAY_CHANGE.fullmatch(name):
            if name not in growable() or new[name] < numbers:
                yield f"{name} is {new[name]}, in version 1 {numbers}"
    functions, still = gen_flat.parse(kept)[2], gen_flat.parse(today)[2]
    for name, declaration in functions.items():
        if still.get(name) != declaration:
            yield f"version 1 has: {declaration}; now: {still.get(name, 'nothing')}"


def room(text):
    """Structs that could not grow."""
    facts, structs = gen_flat.facts(text, text), gen_flat.parse(text)[0]
    rows = growable()
    for name, fields in structs.items():
        if fields[0] == "size" and name not in rows:
            yield f"{name} begins with its size and has no row in version1.def"
    for name in rows:
        offset, size = facts[f"{name}.{structs[name][-1]}"]
        if facts[name] != (offset + size,):
            yield f"{name} has {facts[name][0] - offset - size} bytes behind its last field, which callers leave unset"


def sizes(kept):
    facts = gen_flat.facts(kept, kept)
    rows = "".join(f'printf("{n} %d\\n", (int)HG_V1_{n});' for n in growable())
    source = '#include "base/abi.h"\n#include <stdio.h>\nint main(void) { ' + rows + " return 0; }\n"
    for line in gen_flat.compiled(source, f"-I{ROOT}/include", f"-I{ROOT}/src").splitlines():
        name, size = line.split()
        if facts.get(name) != (int(size),):
            yield f"version1.def gives {name} {size} bytes; version 1 has {facts.get(name)}"


# ---- a grown library -------------------------------------------------------------------------------------------------


def write(path, text):
    """Only where it is new: else all would be compiled again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def grow_headers(include):
    """The public headers, with more fields in every struct that may grow."""
    names = growable()
    seen = set()
    for source in sorted((ROOT / "include").rglob("*.*")):
        text = source.read_text(encoding="utf-8")
        if source.suffix == ".h" and source != gen_flat.FLAT:
            for name in names:
                text, found = re.subn(rf"^\}} {name};", GROWTH + rf"}} {name};", text, flags=re.M)
                seen |= {name} if found else set()
        write(include / source.relative_to(ROOT / "include"), text)
    return [f"{name} stands in no header" for name in names if name not in seen]


def build_grown(tree):
    """The library's static form, from a tree that is this one but for its headers. Of undefined behaviour the other sanitized builds
    tell: here it is about what lies behind a struct."""
    for name in ("src", "tools", "cmake", "meson.build", "meson_options.txt"):
        link = tree / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    folder = WORK / "grown"
    if not (folder / "build.ninja").exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["meson", "setup", str(folder), str(tree), "--buildtype=debug", "-Dtests=false", "-Db_lundef=false",
                        "-Db_sanitize=address", "-Dc_args=-gline-tables-only"], check=True,
                       env={**os.environ, "CC": "clang", "CC_FOR_BUILD": "clang"})
    subprocess.run(["ninja", "-C", str(folder), "libhologram.a"], check=True)
    return folder / "libhologram.a"


# ---- programs --------------------------------------------------------------------------------------------------------


def run_program(what, program, header, library):
    """Compiles a program of this folder, under AddressSanitizer, and adds what it counts."""
    global passed, failed
    target = WORK / "programs" / re.sub(r"\W+", "-", what)
    target.parent.mkdir(parents=True, exist_ok=True)
    link = [str(library), f"-Wl,-rpath,{library.parent}", "-lm", "-ldl", "-lpthread"]
    print(f"== {what}", flush=True)
    subprocess.run(["clang", "-std=c11", "-g", "-Wall", "-Wextra", "-Werror", *SANITIZE, f'-DHEADER="{header}"', f"-I{WORK}",
                    f"-I{ROOT}/tests/unit", str(HERE / program), "-o", str(target), *link], check=True)
    done = subprocess.run([str(target)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, end="", flush=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    if counts:
        passed, failed = passed + int(counts.group(1)), failed + int(counts.group(2))
    if done.returncode != 0 and not (counts and int(counts.group(2))):
        check(what, [f"exit status {done.returncode}"])


def main():
    if sys.argv[1:] == ["--keep"]:
        keep()
        return 0
    kept, today = KEPT.read_text(encoding="utf-8"), gen_flat.flat_text()
    check("what version 1 declares is declared still", compare(kept, today))
    check("structs can grow", [*room(kept), *room(today)])
    check("the library knows the sizes of version 1", sizes(kept))
    check("headers grow", grow_headers(WORK / "tree" / "include"))
    grown_header, sizes_header = WORK / "grown.h", WORK / "sizes.h"
    facts = gen_flat.facts(kept, kept)
    write(grown_header, gen_flat.flat_text(WORK / "tree" / "include"))
    write(sizes_header, "enum {\n" + "".join(f"  version_1_{n} = {facts[n][0]},\n" for n in growable()) + "};\n")
    grown, library = build_grown(WORK / "tree"), ROOT / "build" / "release" / "libhologram.so"
    run_program("a program of version 1 on the grown library", "uses.c", KEPT, grown)
    run_program("a program of version 1 on this library", "uses.c", KEPT, library)
    run_program("a grown program on the grown library", "uses.c", grown_header, grown)
    run_program("a grown program on this library", "uses.c", grown_header, library)
    run_program("a grown program asks this library for more", "newer.c", grown_header, library)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
