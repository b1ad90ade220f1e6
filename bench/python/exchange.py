#!/usr/bin/env python3
"""What it costs to bring numbers into Hologram and out again: as JSON, by a copy, and without one.

    ./dev bench exchange [--json] [--most N] [--seconds S] [--out FOLDER]

From 100 floats to 10 million, of NumPy's arrays and, where PyTorch is installed, of tensors. Writes exchange.md and exchange.png into the
folder. Everything is compared with what was put in before it is timed, and what shares memory has to."""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np

import hologram as hg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples/python"))
from plots import Chart, beside  # noqa: E402

try:
    import torch

    import hologram_torch as hg_torch
except ImportError:
    torch = None

SIZES = [10**k for k in range(2, 8)]
WAYS = ("json", "copy", "shared")
NAMES = {"json": "JSON", "copy": "copy", "shared": "zero copy"}
BATCH_NS = 200_000


class Numpy:
    """Each way takes the library's elements in, or what came in out again."""

    def __init__(self, values, executor):
        self.own, self.buffer, self.array = values, executor.allocate(values.size), hg.array(values)

    def json_in(self):
        self.buffer.from_numpy(np.array(json.loads(json.dumps(self.own.tolist())), np.float32))
        return self.buffer

    def json_out(self):
        return np.array(json.loads(json.dumps(self.buffer.to_list())), np.float32)

    def copy_in(self):
        self.buffer.from_numpy(self.own)
        return self.buffer

    def copy_out(self):
        return self.buffer.to_numpy()

    def shared_in(self):
        return hg.asarray(self.own)

    def shared_out(self):
        return np.asarray(self.array)

    def address(self, x):
        return x.__array_interface__["data"][0]


class Torch:
    def __init__(self, values, executor):
        self.own, self.executor, self.array = torch.from_numpy(values.copy()), executor, hg.array(values)
        self.buffer = hg_torch.tensor_to_buffer(self.own, executor)

    def json_in(self):
        return hg_torch.tensor_to_buffer(torch.tensor(json.loads(json.dumps(self.own.tolist()))), self.executor)

    def json_out(self):
        return torch.tensor(json.loads(json.dumps(self.buffer.to_list())))

    def copy_in(self):
        return hg_torch.tensor_to_buffer(self.own, self.executor)

    def copy_out(self):
        return hg_torch.buffer_to_tensor(self.buffer).clone()

    def shared_in(self):
        return hg_torch.as_array(self.own)

    def shared_out(self):
        return hg_torch.as_tensor(self.array)

    def address(self, x):
        return x.data_ptr() if isinstance(x, torch.Tensor) else x.__array_interface__["data"][0]


def first(library, name, values):
    """Nanoseconds of a first call, which has to give the same bits, and the same memory where it is shared."""
    begun = time.perf_counter_ns()
    result = getattr(library, name)()
    took = time.perf_counter_ns() - begun
    there = np.asarray(result.to_numpy() if isinstance(result, hg.Buffer) else result)
    mine = library.own if name.endswith("in") else library.array
    if name.startswith("shared") and library.address(result) != library.address(mine):
        sys.exit(f"exchange: {name} of {type(library).__name__} shares no memory")
    if there.dtype != np.float32 or there.tobytes() != values.tobytes():
        sys.exit(f"exchange: {name} of {type(library).__name__} changes {values.size} elements")
    return took


def sample(call):
    """Nanoseconds a call, of as many in a row as the clock needs."""
    clock = time.perf_counter_ns
    begun = clock()
    call()
    took = clock() - begun
    batch = max(1, min(10_000, BATCH_NS // max(took, 1)))
    begun = clock()
    for _ in range(batch):
        call()
    return (clock() - begun) / batch


def measure(library, values, seconds):
    """Of each way in and out the shortest of samples, which take turns. What takes longer than its time is measured once."""
    names = [f"{way}_{where}" for way in WAYS for where in ("in", "out")]
    firsts = {name: first(library, name, values) for name in names}
    samples = {name: [took] if took > seconds * 1e9 else [] for name, took in firsts.items()}
    spent = {name: sum(found) / 1e9 for name, found in samples.items()}
    while waiting := [name for name in names if spent[name] < seconds]:
        for name in waiting:
            begun = time.perf_counter()
            samples[name].append(sample(getattr(library, name)))
            spent[name] += time.perf_counter() - begun
    return {name: min(found) for name, found in samples.items()}


def spelled(ns):
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= unit:
            return f"{ns / unit:.3g} {name}"
    return f"{ns:.3g} ns"


def report(found):
    lines = ["# JSON, a copy, zero copy", "",
             f"What it costs to bring floats into Hologram and out again, the shortest of several. On {found['machine']}; "
             f"{found['versions']}.", "",
             "- **JSON**: the elements become a text, which is read, and lie in a buffer; out: the same from a buffer.",
             "- **Copy**: `from_numpy` and `to_numpy` of a buffer; of tensors `tensor_to_buffer`, and `buffer_to_tensor` with a `clone`.",
             "- **Zero copy**: `hg.asarray(x)` and `np.asarray(x)`; of tensors `as_array` and `as_tensor`. Both sides have one memory.", ""]
    for library in dict.fromkeys(row["library"] for row in found["rows"]):
        lines += [f"## {library}", "",
                  "| elements |" + "".join(f" JSON {w} | copy {w} | zero copy {w} | JSON / zero copy |" for w in ("in", "out")),
                  "|---:" * 9 + "|"]
        for row in (row for row in found["rows"] if row["library"] == library):
            cells = [f"{row['elements']:,}"]
            for where in ("in", "out"):
                ns = [row[f"{way}_{where}"] for way in WAYS]
                cells += [*map(spelled, ns), f"{ns[0] / ns[2]:,.0f}"]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    lines += ["![](exchange.png)", ""]
    return "\n".join(lines)


def plot(found):
    charts = []
    for library in dict.fromkeys(row["library"] for row in found["rows"]):
        for where in ("in", "out"):
            rows = [row for row in found["rows"] if row["library"] == library]
            chart = Chart(f"{library}, {where}", "elements", "microseconds", log_x=True, log_y=True, size=(440, 340))
            for way in WAYS:
                chart.line([row["elements"] for row in rows], [row[f"{way}_{where}"] / 1000 for row in rows], NAMES[way], dots=True)
            charts.append(chart.image(legend="left"))
    return beside(*charts, columns=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the report")
    parser.add_argument("--most", type=int, default=SIZES[-1], help="elements at most (10,000,000)")
    parser.add_argument("--seconds", type=float, default=0.3, help="what each measurement takes at least (0.3)")
    parser.add_argument("--out", type=Path, default=Path("build/bench"), help="folder of report and plot (build/bench)")
    options = parser.parse_args()
    executor = hg.Executor(backend="cpu")
    hg.set_default_executor(executor)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}" + (f", PyTorch {torch.__version__}" if torch else "")
    found = {"machine": f"{executor.info['device']}, {executor.info['compute_units']} cores", "versions": versions, "rows": []}
    for library in (Numpy, Torch) if torch else (Numpy,):
        for size in [size for size in SIZES if size <= options.most]:
            values = np.random.default_rng(size).standard_normal(size).astype(np.float32)
            row = {"library": {"Numpy": "NumPy", "Torch": "PyTorch"}[library.__name__], "elements": size}
            found["rows"].append(row | measure(library(values, executor), values, options.seconds))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "exchange.md").write_text(report(found))
    plot(found).save(options.out / "exchange.png")
    print(json.dumps(found, indent=2) if options.json else report(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
