#!/usr/bin/env python3
"""Counts that decide speed, without times: of the code that operations and programs become for AVX-512, AVX2, NEON, PTX and Metal.

    python3 tests/shapes/shapes.py            (compares them with shapes.json; ends in "N passed, N failed")
    python3 tests/shapes/shapes.py --record   (writes shapes.json)

A row is a piece of code: the operation or program, the target, of an operation the launch, on CPUs the version ("steps": for any
launch, "whole": for blocks with all their lanes, "several": for several of those at once). A change that moves a count shows as a diff
of shapes.json, and its commit says why. The operations are in cases.def, the machine is in shapes.c: no count depends on the machine
that runs this."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RECORD = HERE / "shapes.json"
MOST_PRINTED = 100
sys.path.insert(0, str(ROOT / "bench"))
import row_programs  # noqa: E402
import tile_programs  # noqa: E402


def programs():
    """Texts by name: the examples, what the benchmarks have besides them and operations, and programs that the benchmarks write."""
    names = ("block_sum", "chain", "matmul_tiled", "queens", "row_search", "search", "sparse", "stencil", "stencil7", "stencil7_linear")
    bench = [ROOT / f"bench/cpu/programs/{name}.atlas" for name in names]
    texts = {f"{path.parts[-2].replace('programs', 'bench')} {path.stem}": path.read_text(encoding="utf-8")
             for path in [*(ROOT / "examples").glob("*.atlas"), *bench]}
    return texts | written()


def written():
    rows = ("softmax f32 4096", "softmax bf16 4096", "layer_norm f32 1024", "rms_norm bf16 4096", "cross_entropy f32 4096",
            "row_sum f32 4096", "row_argmax f32 4096", "row_scan f32 4096")
    texts = {}
    for name in rows:
        program, kind, columns = name.split()
        texts[f"rows {name}"] = getattr(row_programs, program)(kind, int(columns))
    return texts | {"tiles matmul f32": tile_programs.matmul(), "tiles matmul bf16": tile_programs.matmul("bf16"),
                    "tiles matmul by halves f32": tile_programs.matmul(tree=True), "tiles column_sum f32": tile_programs.column_sum(),
                    "tiles fold_rows 16 f32": tile_programs.fold_rows(16)}


def count(tool):
    """Rows by name."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in sorted(programs().items()):
            paths.append(Path(folder, f"{name}.atlas"))
            paths[-1].write_text(text, encoding="utf-8")
        done = subprocess.run([tool, *paths], capture_output=True, text=True, check=False)
    sys.stderr.write(done.stderr)
    if done.returncode != 0:
        sys.exit(f"{tool} failed: exit status {done.returncode}\n0 passed, 1 failed")
    rows = {}
    for line in done.stdout.splitlines():
        row = json.loads(line)
        name = row.pop("name")
        assert name not in rows, f"two rows are named {name}"
        rows[name] = row
    return rows


def text_of(rows):
    """One row a line, so that a change of one is a change of a line."""
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items())) + "\n}\n"


def flat(row):
    """Counts by name: "hot.loads"."""
    counts = {}
    for key, value in row.items():
        counts |= {f"{key}.{name}": number for name, number in value.items()} if isinstance(value, dict) else {key: value}
    return counts


def difference(before, now):
    """What moved in one row, as text; "": nothing."""
    if before is None or now is None:
        return "a row that is not recorded" if before is None else "recorded, but there is no such code any more"
    before, now = flat(before), flat(now)
    keys = [*now, *(key for key in before if key not in now)]
    return ", ".join(f"{key} {before.get(key, 0)} -> {now.get(key, 0)}" for key in keys if before.get(key) != now.get(key))


def compare(recorded, rows):
    moved = {name: what for name in sorted(recorded.keys() | rows.keys())
             if (what := difference(recorded.get(name), rows.get(name)))}
    for name, what in list(moved.items())[:MOST_PRINTED]:
        print(f"FAILED: {name}: {what}")
    if len(moved) > MOST_PRINTED:
        print(f"... and {len(moved) - MOST_PRINTED} more")
    if moved:
        print("If these are what the change is for, record them (python3 tests/shapes/shapes.py --record) and say why in its commit.")
    print(f"{len(recorded.keys() | rows.keys()) - len(moved)} passed, {len(moved)} failed")
    return len(moved) == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write shapes.json")
    parser.add_argument("--tool", type=Path, default=ROOT / "build/release/tests/shapes/shapes", help="what counts, where it was built")
    arguments = parser.parse_args()
    rows = count(arguments.tool.resolve())
    if arguments.record:
        RECORD.write_text(text_of(rows), encoding="utf-8")
        return 0
    recorded = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return 0 if compare(recorded, rows) else 1


if __name__ == "__main__":
    sys.exit(main())
