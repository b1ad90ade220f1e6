#!/usr/bin/env python3
"""Generates docs/measured.md: what each operation's error may be (tests/ops/accuracy.toml) and what it costs (docs/measured/*.json,
runs of the benchmark), around docs/measured.intro.md.

    tools/gen_measured.py                     write docs/measured.md
    tools/gen_measured.py --check             exit 1 if docs/measured.md is not what would be written
    tools/gen_measured.py --record NAME FILE... [--note WHEN]
                                              docs/measured/NAME.json from what `./dev bench cuda --json`, or cpu, wrote; of several
                                              files the later ones' rows replace the former's; the note says what was measured"""

import argparse
import json
import re
import sys
import tomllib

from gen_isa import DOCS, ROOT, anchor
from gen_operations import load, sections, write_or_check

FLOATS = ("f16", "bf16", "f32", "f64")
SHARED = ("f32", "bf16", "f64")         # types with a column of shares
OTHERS = ("i32", "i64", "bool")         # whose shares stand in the column of f32
SCALES = {"result": "", "largest": " *l*", "terms": " *t*"}
KEPT = ("program", "group", "count", "unit", "rate", "share", "median_ns", "launches", "moved", "work", "threads")
ABOUT = ("gpu", "driver", "processor", "processors", "hologram", "torch", "numpy", "system")


# ---- recording ------------------------------------------------------------------------------------------------------------------------

def record(name, files, note):
    """One run, or one that was made in parts."""
    machine, limits, rows = {}, {}, {}
    for file in files:
        data = json.loads(open(file, encoding="utf-8").read())
        machine, limits = {k: data["machine"][k] for k in ABOUT if data["machine"].get(k)}, data["limits"]
        for row in data["operations"]:
            if isinstance(limits, dict) and row["unit"].endswith("B/s"):
                row["share"] = row["work"] / row["median_ns"] / copy_of(limits)
            kept = {k: rounded(row[k]) for k in KEPT if k in row}
            rows[row["program"], row.get("threads")] = kept | {"peers": {n: rounded(p["ratio"]) for n, p in row["peers"].items()}}
    lines = ",\n".join(json.dumps(row) for row in rows.values())
    machine |= {"note": note} if note else {}
    text = f'{{"machine": {json.dumps(machine)},\n"limits": {json.dumps(limits)},\n"operations": [\n{lines}\n]}}\n'
    (DOCS / "measured").mkdir(exist_ok=True)
    (DOCS / "measured" / f"{name}.json").write_text(text, encoding="utf-8", newline="\n")


def copy_of(limits):
    """GB/s of a GPU's better copy."""
    return max(limits["copy kernel"], limits["driver's copy"])


def rounded(value):
    return float(f"{value:.4g}") if isinstance(value, float) else value


# ---- the page -------------------------------------------------------------------------------------------------------------------------

def recorded():
    """Name -> run."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted((DOCS / "measured").glob("*.json"))}


def machines(runs):
    lines = []
    for name, run in runs.items():
        about = run["machine"]
        what = about.get("gpu") and f"{about['gpu']}, driver {about['driver']}" or f"{about['processor']}, {about['processors']} processors"
        with_what = ", ".join(f"{package} {about[package]}" for package in ("hologram", "torch", "numpy") if package in about)
        lines.append(f"- **{name}**: {what}; {limit_of(run)}; {with_what}" + (f"; {about['note']}" if "note" in about else ""))
    return "\n".join(lines)


def limit_of(run):
    limits = run["limits"]
    if isinstance(limits, dict):
        return f"a copy moves {copy_of(limits) / 1e3:.2f} TB/s"
    levels = ", ".join(f"{row['level']} {max(row['copy'], row['copy-streaming']):.0f}" for row in limits if row["threads"] == 1)
    return f"a copy by one thread moves, in GB/s: {levels}"


def accuracy(stated, kind):
    if stated is None or kind not in stated:
        return ""
    return f"{stated[kind]:g}{SCALES[stated.get('scale', 'result')]}"


def share(run, name, kinds):
    """Of one thread, or of a GPU."""
    for row in run["operations"]:
        if any(row["program"] == f"every {name}.{kind}" for kind in kinds) and row.get("threads", 1) == 1:
            return f"{row['share'] * 100:.0f}%" if row["share"] is not None else f"{row['rate']:.3g} {row['unit']}"
    return ""


def head(names):
    return ["| " + " | ".join(names) + " |", "|---|" + "---|" * (len(names) - 1)]


def operations(runs):
    """A table for each section of operations.def."""
    table, lines = ROOT / "tests" / "ops" / "accuracy.toml", []
    stated = tomllib.loads(table.read_text(encoding="utf-8")) if table.exists() else {}
    runs = {name: run for name, run in runs.items() if any(r["group"].startswith("every") for r in run["operations"])}
    columns = [f"{name} {kind}" for name in runs for kind in SHARED]
    for title, members in sections(load()).items():
        members = [o for o in members if o.kind != "view"]
        if not members:
            continue
        lines += ["", f"### {title}", "", *head(["operation", *FLOATS, *columns])]
        for o in members:
            cells = [accuracy(stated.get(o.name), kind) for kind in FLOATS]
            cells += [share(run, o.name, (kind, *OTHERS) if kind == "f32" else (kind,)) for run in runs.values() for kind in SHARED]
            lines.append(f"| [`{o.name}`](operations.md#{anchor(o.name)}) | " + " | ".join(cells) + " |")
    return "\n".join(lines).strip()


def shapes(runs):
    sizes = {name: max((r["count"] for r in run["operations"] if r["program"] == "every exp.f32"), default=None)
             for name, run in runs.items()}
    known = [f"{count >> 20}M elements of f32 ({name})" for name, count in sizes.items() if count]
    return f"- Shapes: {', '.join(known)}, of other types as many bytes; reductions are along rows of 4096.\n" if known else ""


def beside(runs):
    lines = []
    for name, run in runs.items():
        rows = [r for r in run["operations"] if not r["group"].startswith("every")]
        peers = list(dict.fromkeys(p for r in rows for p in r["peers"]))
        has_threads = any("threads" in r for r in rows)
        if not rows:
            continue
        heads = ["operation", *["threads"] * has_threads, "us", "rate", "share", *(f"/{p}" for p in peers), "launches", "moved"]
        lines += ["", f"### {name}", "", *head(heads)]
        for r in rows:
            cells = [r["program"], *[str(r.get("threads"))] * has_threads, f"{r['median_ns'] / 1e3:.3g}", f"{r['rate']:.3g} {r['unit']}",
                     f"{r['share'] * 100:.0f}%" if r["share"] is not None else "",
                     *(f"{r['peers'][p]:.2f}" if p in r["peers"] else "" for p in peers),
                     str(r["launches"]), f"{r['moved'] / r['work']:.2f}" if r["unit"].endswith("B/s") else ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines).strip()


def generate():
    runs = recorded()
    values = {"generated": "<!-- Generated by tools/gen_measured.py from docs/measured/*.json, tests/ops/accuracy.toml and "
                           "docs/measured.intro.md: ./dev docs. -->",
              "machines": machines(runs), "operations": operations(runs), "beside": beside(runs), "shapes": shapes(runs)}
    text = (DOCS / "measured.intro.md").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match.group(1)], text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with docs/measured.md instead of writing it")
    parser.add_argument("--record", nargs="+", metavar=("NAME", "FILE"))
    parser.add_argument("--note", default="", help="of what is recorded: the commit, the day")
    options = parser.parse_args()
    if options.record:
        record(options.record[0], options.record[1:], options.note)
    return write_or_check(DOCS / "measured.md", generate(), options.check)


if __name__ == "__main__":
    sys.exit(main())
