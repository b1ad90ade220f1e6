"""What each special case is worth: the library without it, beside the library with it. ./dev bench cases --help

The counts are those of tests/shapes. For times: --keep FOLDER, then `bench cpu` or `bench cuda` with --library FOLDER/NAME.so beside
--library FOLDER/with.so, alternately. docs/measured/special-cases.md has what was found."""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "tests/shapes"))
import shapes  # noqa: E402

TREE = ROOT / "build/cases/tree"
SHOWN = ("hot.insns", "all.insns", "insns", "is there")


def left_out(case):
    """(file, text without the case)."""
    if "pass" in case:
        name, pass_id = case["pass"].split()
        text = (TREE / name).read_text(encoding="utf-8")
        without = re.sub(rf"^PASS\({pass_id},[^;]*?\)\n", "", text, flags=re.MULTILINE | re.DOTALL)
    else:
        name, function, *answer = case["answer"].split()
        text = (TREE / name).read_text(encoding="utf-8")
        without = re.sub(rf"(^[\w *]*\b{function}\([^;{{]*\) \{{\n)", rf"\1  if (1) return {' '.join(answer)};\n", text, count=1,
                         flags=re.MULTILINE)
    if without == text:
        sys.exit(f"cases: {name} has no such pass or function: {case}")
    return TREE / name, text, without


def build():
    subprocess.run(["ninja", "-C", TREE / "build", "libhologram.so.0.1.0", "tests/shapes/shapes"], check=True, stdout=subprocess.DEVNULL)


def set_up():
    """A copy of the tree, built."""
    shutil.rmtree(TREE, ignore_errors=True)
    shutil.copytree(ROOT, TREE, ignore=lambda folder, names: [name for name in names if name == "build" or name.startswith(".")])
    subprocess.run(["meson", "setup", TREE / "build", TREE, "--buildtype=release"], check=True, stdout=subprocess.DEVNULL)
    build()


def counts():
    return {name: shapes.flat(row) for name, row in shapes.count(TREE / "build/tests/shapes/shapes").items()}


def moved(with_it, without):
    """Shapes whose counts move: name, count, with, without; those that move most first."""
    rows = []
    for name in sorted(with_it.keys() & without.keys()):
        for key in sorted(with_it[name].keys() | without[name].keys()):
            a, b = with_it[name].get(key, 0), without[name].get(key, 0)
            if a != b and isinstance(a, int) and isinstance(b, int):
                rows.append((name, key, a, b))
    for name in sorted(with_it.keys() ^ without.keys()):
        rows.append((name, "is there", int(name in with_it), int(name in without)))
    return sorted(rows, key=lambda row: -abs(row[3] - row[2]) / max(1, min(row[2], row[3])))


def lines(files):
    """Lines of code, without blanks and comments."""
    count = 0
    for name in files:
        path = next(ROOT.glob(f"src/**/{name}"), None)
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL) if path else ""
        count += sum(1 for line in text.splitlines() if line.strip())
    return count


def main():
    parser = argparse.ArgumentParser(prog="./dev bench cases", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="cases (default: all of bench/cases/cases.toml)")
    parser.add_argument("--json", type=Path, help="write everything found")
    parser.add_argument("--keep", type=Path, help="a folder for the libraries, NAME.so each, to time them elsewhere")
    parser.add_argument("--tree", type=Path, default=TREE, help="where the library is built")
    arguments = parser.parse_args()
    globals()["TREE"] = arguments.tree.resolve()
    cases = tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))
    names = arguments.names or list(cases)
    set_up()
    base, found = counts(), {}
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(TREE / "build/libhologram.so.0.1.0", arguments.keep / "with.so")
    for name in names:
        path, text, without = left_out(cases[name])
        path.write_text(without, encoding="utf-8")
        try:
            build()
            found[name] = moved(base, counts())
            if arguments.keep:
                shutil.copy(TREE / "build/libhologram.so.0.1.0", arguments.keep / f"{name}.so")
        finally:
            path.write_text(text, encoding="utf-8")
        print(f"{name}: {lines(cases[name]['files'])} lines, {len({row[0] for row in found[name]})} shapes move", flush=True)
        for shape, key, a, b in [row for row in found[name] if row[1] in SHOWN][:6]:
            print(f"    {shape}: {key} {a}, without it {b}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
