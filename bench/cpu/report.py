"""What the driver makes of measurements: lines of a table, the standing targets, a plot."""

import math


def size_name(count: int) -> str:
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if count % unit == 0 and count:
            return f"{count // unit}{letter}"
    return str(count)


def digits(value: float | None, unit: str = "") -> str:
    """Three significant digits."""
    if value is None or not math.isfinite(value):
        return "-"
    if value >= 1e7:
        return f"{value:.2e}{unit}"
    places = 0 if value == 0 else min(3, max(0, 2 - math.floor(math.log10(value))))
    return f"{value:.{places}f}{unit}"


class Limits:
    """Which of the measured limits a working set runs against."""

    def __init__(self):
        self.rows = {}  # threads -> [limit, ...], smallest level first

    def add(self, row: dict) -> None:
        self.rows.setdefault(row["threads"], []).append(row)

    def find(self, threads: int, working_set: float) -> tuple[str, float]:
        """The first level whose cache holds a thread's part; its best rate in GB/s."""
        rows = self.rows[threads]
        row = next((r for r in rows if working_set / threads <= r["holds"]), rows[-1])
        return row["level"], max(row[k] for k in ("copy", "copy-streaming", "triad", "triad-streaming"))


def complete(row: dict, limits: Limits) -> dict:
    """A measured row with everything derived from it."""
    count, ns = row["count"], row["median_ns"]
    row["ps"], row["min_ps"] = ns * 1e3 / count, row["min_ns"] * 1e3 / count
    row["gbs"] = row["share"] = row["level"] = None
    if row["bytes"]:
        row["gbs"] = row["bytes"] * count / ns
        row["level"], limit = limits.find(row["threads"], row["bytes"] * count)
        row["share"] = row["gbs"] / limit
    for peer in row["peers"].values():
        peer["ps"], peer["ratio"] = peer["median_ns"] * 1e3 / count, ns / peer["median_ns"]
    return row


# ---- the table ---------------------------------------------------------------------------------------------------------------------

def columns(peers: list[str]) -> list[str]:
    """The peers with a column; `hand` has one program only and stands at the end of its line."""
    return [p for p in peers if p != "hand"]


def heading(peers: list[str]) -> str:
    return (f"{'program':<13}{'size':>5}{'thr':>4} {'engine':<10} {'ps':>8} {'min':>8} {'GB/s':>7}  {'of limit':<10}"
            + "".join(f"{'/' + p:>17}" for p in columns(peers)))


def beside(peer: dict | None) -> str:
    return "-" if peer is None else f"{digits(peer['ratio'])} ({digits(peer['ps'])})"


def line(row: dict, peers: list[str]) -> str:
    share = "" if row["share"] is None else f"{row['share'] * 100:3.0f}% {row['level']}"
    hand = row["peers"].get("hand")
    return (f"{row['program']:<13}{size_name(row['count']):>5}{row['threads']:>4} {row['ran']:<10} {digits(row['ps']):>8}"
            f" {digits(row['min_ps']):>8} {digits(row['gbs']):>7}  {share:<10}"
            + "".join(f"{beside(row['peers'].get(p)):>17}" for p in columns(peers))
            + (f"  /hand {beside(hand)}" if hand else "") + ("  noisy" if row["others"] > 0.05 else ""))


# ---- the standing targets ----------------------------------------------------------------------------------------------------------

CACHED = (1 << 10, 1 << 14, 1 << 18, 1 << 22)
LARGE = (1 << 26,)
POINTWISE = ("add", "relu", "chain", "exp", "sigmoid", "gelu", "gelu_tanh")
ROW_PROGRAMS = ("softmax_held", "layer_norm", "cross_entropy", "row_sum", "column_sum")
COMPILED = ("add", "relu", "chain", "gelu_tanh", "gelu", "sigmoid")

# What is compared, programs, peer, sizes (None: all), bound on ours / theirs in time, threads (None: all).
RATIOS = [
    ("the compiled loop of the same bits, 1K to 4M, a launch's cost taken off", COMPILED, "loop", CACHED, 1.1, 1),
    ("the compiled loop at 64M: 1.3 times ahead", ("add", "chain"), "loop", LARGE, 1 / 1.3, 1),
    ("NumPy, output given", ("add",), "numpy", None, 1.03, None),
    ("NumPy, output given, 64M", ("add",), "numpy", LARGE, 0.75, None),
    ("NumPy, outputs given", ("chain",), "numpy", None, 0.25, None),
    ("NumPy, outputs given", ("gelu_tanh",), "numpy", None, 0.4, None),
    ("NumPy and SciPy's erf, outputs given", ("gelu",), "numpy", None, 0.6, None),
    ("PyTorch eager", POINTWISE, "torch", None, 1.03, None),
    ("PyTorch eager", ("chain",), "torch", None, 0.3, None),
    ("PyTorch eager", ("gelu",), "torch", None, 0.7, None),
    ("numexpr", POINTWISE, "numexpr", None, 0.5, None),
    ("four interleaved AVX-512 vectors by hand", ("mandelbrot",), "hand", (1 << 18,), 1.2, 1),
    ("PyTorch eager, 1K to 4M", ROW_PROGRAMS, "torch", CACHED, 0.8, None),
    ("PyTorch eager, 64M", ROW_PROGRAMS, "torch", LARGE, 0.95, None),
    ("OpenBLAS, by NumPy, 4M", ("matmul_tiled",), "numpy", (1 << 22,), 1 / 0.75, None),
    ("the compiled loop", ("histogram",), "loop", None, 1, None),
    ("the compiled loop, 64K to 4M", ("search", "row_search", "sparse", "queens", "stencil7", "stencil7_linear"), "loop",
     (1 << 16, 1 << 18, 1 << 22), 1.5, 1),
    ("the loop split at its barriers, a launch's cost taken off", ("block_sum",), "loop", None, 1.3, 1),
]


def ratio_target(rows: list[dict], launch_ns: dict, what: str, programs, peer, sizes, bound, threads) -> dict:
    """The worst ratio of ours to the peer's median among the rows the target is about."""
    net = "taken off" in what
    found = []
    for row in rows:
        theirs = row["peers"].get(peer)
        if (row["program"] in programs and theirs and (sizes is None or row["count"] in sizes)
                and threads in (None, row["threads"])):
            ours = row["median_ns"] - (launch_ns.get(row["threads"], 0) if net else 0)
            found.append((max(ours, 0) / theirs["median_ns"], row))
    text = f"{', '.join(programs)} / {what}"
    if not found:
        return {"target": text, "bound": bound, "unit": "x", "measured": None, "met": None, "note": "no measurement"}
    worst, row = max(found, key=lambda f: f[0])
    note = f"worst of {len(found)}: {row['program']} {size_name(row['count'])}, {row['threads']} thread{'s' * (row['threads'] > 1)}"
    missing = sorted(set(programs) - {r["program"] for _, r in found})
    absent = f"; not measured: {', '.join(missing)}" if missing else ""
    return {"target": text, "bound": bound, "unit": "x", "measured": worst, "met": worst <= bound, "note": note + absent}


def cost_target(text: str, measured: float | None, bound: float, unit: str, note: str) -> dict:
    return {"target": text, "bound": bound, "unit": unit, "measured": measured, "met": None if measured is None else measured <= bound,
            "note": note}


def targets(rows: list[dict], fixed: list[dict], compiled: list[dict], engine: str) -> list[dict]:
    """Every standing target with what was measured on one engine; `met` is None where nothing was."""
    rows, fixed = [r for r in rows if r["engine"] == engine], [f for f in fixed if f["engine"] == engine]
    launch_ns = {f["threads"]: f["launch_ns"] for f in fixed}
    gelu = next((c["all_us"] for c in compiled if c["kernel"] == "gelu" and engine == "native"), None)
    return [ratio_target(rows, launch_ns, *target) for target in RATIOS] + [
        cost_target("a launch of one element", max((f["launch_ns"] for f in fixed), default=None), 150, " ns", "hg_launch from C, median"),
        cost_target("machine code for the gelu program from its canonical SSA", gelu, 50, " us", "bench_compile, the shortest of 4000")]


def target_line(target: dict) -> str:
    verdict = {True: "met", False: "not met", None: "not measured"}[target["met"]]
    bound = f"<= {digits(target['bound'])}{target['unit']}"
    measured = "-" if target["measured"] is None else f"{digits(target['measured'])}{target['unit']}"
    return f"  {verdict:<13}{measured:>10}  {bound:<11} {target['target']}  ({target['note']})"


# ---- the plot ----------------------------------------------------------------------------------------------------------------------

def plot(rows: list[dict], path) -> None:
    """ps an element over size, a panel a program, solid for one thread and dashed for more."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    programs = list(dict.fromkeys(r["program"] for r in rows))
    across = min(4, len(programs))
    down = -(-len(programs) // across)
    figure, panels = pyplot.subplots(down, across, figsize=(4.2 * across, 3.2 * down), squeeze=False, layout="constrained")
    lines = {}
    for row in rows:
        points = [(row["ran"], row["ps"])] + [(name, peer["ps"]) for name, peer in row["peers"].items()]
        for name, ps in points:
            lines.setdefault((row["program"], name, row["threads"]), {})[row["count"]] = ps
    names = list(dict.fromkeys(name for _, name, _ in lines))
    for panel, program in zip(panels.flat, programs):
        for (of, name, threads), points in lines.items():
            if of == program:
                ours = any(r["ran"] == name for r in rows)
                panel.loglog(list(points), list(points.values()), color=f"C{names.index(name)}", marker=".",
                             linestyle="-" if threads == 1 else "--", linewidth=2.2 if ours else 1.1,
                             label=f"{name}, {threads} thread{'s' * (threads > 1)}")
        panel.set_title(program)
        counts = sorted({r["count"] for r in rows})
        panel.set_xticks(counts, [size_name(n) for n in counts])
        panel.set_xticks([], minor=True)
        panel.set_xlabel("elements")
        panel.set_ylabel("ps an element")
        panel.grid(True, which="major", linewidth=0.4)
    for panel in list(panels.flat)[len(programs):]:
        panel.set_axis_off()
    handles = {}
    for panel in panels.flat:
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
