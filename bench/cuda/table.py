"""What the driver makes of measurements: lines of a table, the standing targets, a plot."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cpu"))
sys.path.append(str(Path(__file__).resolve().parent.parent))
import operations.table  # noqa: E402
from report import digits, size_name  # noqa: E402

# TB/s that programs should reach on an H200 at 2^28 elements.
RATES = {"add": 4.30, "relu": 4.25, "chain": 4.25, "exp": 4.2, "log": 4.2, "tanh": 4.2, "sigmoid": 4.2, "gelu_tanh": 4.0, "gelu": 3.5,
         "sum": 4.2, "max": 4.2}
NARROW_SHARE = 0.95   # of f32's rate, of f16 and bf16
NOISE = 1.01          # ours / best peer that still counts as no slower
# Programs of blocks: of a plain copy kernel's rate; the first rates of those with loops over memory, which are to double; whose time is
# to be no longer than the best peer's; bounds on our time / a peer's.
BLOCK_SHARES = {"softmax": 0.94, "layer_norm": 0.94, "row_sum": 0.95, "column_sum": 0.95, "row_argmax": 0.95, "transpose": 0.9}
LOOP_RATES = {"softmax loops 1024": 1.19, "softmax loops 4096": 1.36, "softmax loops 16384": 0.90,
              "layer_norm loops 1024": 1.42, "layer_norm loops 4096": 1.63, "layer_norm loops 16384": 1.05}
NARROW_RATE = 2.4
NO_SLOWER = [f"{p}{kind} {columns}" for p in ("softmax", "layer_norm") for kind in ("", ".bf16") for columns in (4096, 16384)]
PEER_RATIOS = {"row_scan": {"torch": 1 / 0.9}, "histogram wide": {"nvrtc": 1 / 0.9}, "matmul": {"nvrtc": 1 / 0.95},
               "matmul_tree": {"nvrtc": 1 / 0.95}, "blur": {"nvrtc": 1.03}}
INT8_RATIO = 1.5      # of products of bytes to those of f32, in operations
LAUNCH_RATIO = 1.1    # of cuLaunchKernel
COLD_MS, CACHED_MS = 15, 2
COPY_RATIO = 1.3      # of PyTorch's pageable copy


# ---- lines --------------------------------------------------------------------------------------------------------------------------

def heading(peers: list[str]) -> str:
    return (f"{'program':<13}{'size':>6} {'us':>8} {'min':>8} {'TB/s':>6} {'of limit':>9} {'of paper':>9}"
            + "".join(f"{'/' + p:>17}" for p in peers))


def complete(row: dict, limit: float, paper: float) -> dict:
    """A measured row with everything derived from it; rates in GB/s."""
    row["gbs"] = row["bytes"] * row["count"] / row["median_ns"]
    row["share"], row["paper"] = row["gbs"] / limit, row["gbs"] / paper if paper else 0
    for peer in row["peers"].values():
        peer["gbs"], peer["ratio"] = row["bytes"] * row["count"] / peer["median_ns"], row["median_ns"] / peer["median_ns"]
    return row


def line(row: dict, peers: list[str]) -> str:
    def beside(name):
        peer = row["peers"].get(name)
        return "-" if peer is None else f"{digits(peer['ratio'])} ({digits(peer['gbs'] / 1e3)})"
    return (f"{row['program']:<13}{size_name(row['count']):>6} {digits(row['median_ns'] / 1e3):>8} {digits(row['min_ns'] / 1e3):>8}"
            f" {digits(row['gbs'] / 1e3):>6} {row['share'] * 100:>8.1f}% {row['paper'] * 100:>8.1f}%"
            + "".join(f"{beside(p):>17}" for p in peers))


def block_heading(peers: list[str]) -> str:
    return (f"{'block program':<22}{'us':>8} {'min':>8} {'rate':>7} {'':<8}{'of copy':>8}{'/best':>7}"
            + "".join(f"{'/' + p:>17}" for p in peers))


def copy_rate(limits: dict) -> float:
    """Of the better copy."""
    return max(limits["copy kernel"], limits["driver's copy"])


def complete_block(row: dict, copy: float) -> dict:
    """A measured row with everything derived from it; rates in thousands of bytes or operations a nanosecond. `copy`: of a plain copy
    kernel, in bytes a nanosecond."""
    row["rate"] = row["work"] / row["median_ns"] / 1e3
    row["share"] = row["rate"] / (copy / 1e3) if row["unit"] == "TB/s" else None
    for peer in row["peers"].values():
        peer["rate"], peer["ratio"] = row["work"] / peer["median_ns"] / 1e3, row["median_ns"] / peer["median_ns"]
    return row


def block_line(row: dict, peers: list[str]) -> str:
    def beside(name):
        peer = row["peers"].get(name)
        return "-" if peer is None else f"{digits(peer['ratio'])} ({digits(peer['rate'])})"
    share = "" if row["share"] is None else f"{row['share'] * 100:.1f}%"
    best = max((p["ratio"] for p in row["peers"].values()), default=None)
    return (f"{row['program']:<22}{digits(row['median_ns'] / 1e3):>8} {digits(row['min_ns'] / 1e3):>8} {digits(row['rate']):>7}"
            f" {row['unit']:<8}{share:>8}{digits(best):>7}" + "".join(f"{beside(p):>17}" for p in peers))


def launch_line(row: dict) -> str:
    return f"  {row['what']:<18} {row['who']:<22} {digits(row['median_ns'] / 1e3):>8} us  (min {digits(row['min_ns'] / 1e3)})"


def cold_line(row: dict) -> str:
    def part(found):
        if "why" in found:
            return f"failed: {found['why']}"
        steps = ", ".join(f"{k[:-3]} {digits(found[k] / 1e6)}" for k in ("parse_ns", "kernel_ns", "launch_ns") if k in found)
        return f"{digits(found['cold_ns'] / 1e6)} ms" + (f" ({steps})" if steps else "")
    return f"  {row['program']:<10} {row['who']:<10} {part(row['fresh']):<46} with its cache: {part(row['cached'])}"


def copy_line(row: dict) -> str:
    rate, best = row["bytes"] / row["median_ns"], row["bytes"] / row["min_ns"]
    return f"  {row['what']:<14} {row['who']:<14} {digits(rate):>6} GB/s  (best {digits(best)})"


# ---- the standing targets -----------------------------------------------------------------------------------------------------------

def target(what: str, bound: float, unit: str, measured, at_least: bool) -> dict:
    met = None if measured is None else measured >= bound if at_least else measured <= bound
    return {"target": what, "bound": bound, "unit": unit, "measured": measured, "at_least": at_least, "met": met}


def program_targets(rows: list[dict]) -> list[dict]:
    largest = {r["program"]: r for r in sorted(rows, key=lambda r: r["count"])}
    found = []
    for name, row in largest.items():
        base, _, kind = name.partition(".")
        if kind:
            wide = find(rows, program=base, count=row["count"] // 2)
            found.append(target(f"{name}: share of the rate of {base} on as many bytes", NARROW_SHARE, "",
                                wide and row["gbs"] / wide["gbs"], True))
        else:
            found.append(target(f"{name}: rate", RATES[name], " TB/s", row["gbs"] / 1e3, True))
        if row["peers"]:
            best = max(row["peers"], key=lambda p: row["peers"][p]["ratio"])
            found.append(target(f"{name}: our time / the best peer's, {best}", NOISE, "x", row["peers"][best]["ratio"], False))
    return found


def block_targets(rows: list[dict]) -> list[dict]:
    found = []
    for row in rows:
        name, share, least = row["program"], row["share"], BLOCK_SHARES.get(row["program"].split(" ")[0])
        best = min(row["peers"].values(), key=lambda p: p["median_ns"], default=None)
        if name in LOOP_RATES:
            found.append(target(f"{name}: twice its first rate", 2 * LOOP_RATES[name], " TB/s", row["rate"], True))
        elif least:
            found.append(target(f"{name}: share of the copy", least, "", share, True))
        elif ".bf16" in name:
            found.append(target(f"{name}: rate", NARROW_RATE, " TB/s", row["rate"], True))
        if name in NO_SLOWER and best:
            found.append(target(f"{name}: our time / the best peer's", NOISE, "x", best["ratio"], False))
        for who, bound in PEER_RATIOS.get(name, PEER_RATIOS.get(name.split(" ")[0], {})).items():
            if who in row["peers"]:
                found.append(target(f"{name}: our time / {who}'s", bound, "x", row["peers"][who]["ratio"], False))
    whole, wide = find(rows, program="matmul_int8 4096"), find(rows, program="matmul 4096")
    if whole and "nvrtc" in (wide or {}).get("peers", {}):
        ratio_to_wide = whole["rate"] / wide["peers"]["nvrtc"]["rate"]
        found.append(target("matmul_int8 4096: our rate / nvrtc's of f32", INT8_RATIO, "x", ratio_to_wide, True))
    return found


def find(rows: list[dict], **wanted):
    return next((r for r in rows if all(r[k] == v for k, v in wanted.items())), None)


def ratio_of(one: dict | None, other: dict | None):
    return one["median_ns"] / other["median_ns"] if one and other else None


def ratio(rows: list[dict], what: str, ours: str, theirs: str):
    return ratio_of(find(rows, what=what, who=ours), find(rows, what=what, who=theirs))


def targets(data: dict) -> list[dict]:
    """Every standing target with what was measured; `met` is None where nothing was."""
    cold = find(data["cold"], program="add", who="hologram") or {}
    replayed = ratio_of(find(data["launches"], what="graph of 8", who="hologram"),
                        find(data["launches"], what="launch alone", who="torch, from Python"))
    copied = ratio(data["copies"], "to the GPU", "torch", "hologram")

    def milliseconds(name):
        return cold[name]["cold_ns"] / 1e6 if "cold_ns" in cold.get(name, {}) else None
    return program_targets(data["rows"]) + block_targets(data["blocks"]) + operations.table.targets(data["operations"], target) + [
        target("a launch alone / cuLaunchKernel", LAUNCH_RATIO, "x", ratio(data["launches"], "launch alone", "hologram", "driver"), False),
        target("a graph of 8 launches / one launch of torch", 1, "x", replayed, False),
        target("add from text to the end of its first launch", COLD_MS, " ms", milliseconds("fresh"), False),
        target("the same with the disk cache", CACHED_MS, " ms", milliseconds("cached"), False),
        target("pageable memory to the GPU, of torch's rate", COPY_RATIO, "x", copied, True)]


def target_line(t: dict) -> str:
    verdict = {True: "met", False: "not met", None: "not measured"}[t["met"]]
    measured = "-" if t["measured"] is None else f"{digits(t['measured'])}{t['unit']}"
    return f"  {verdict:<13}{measured:>10}  {'>=' if t['at_least'] else '<='} {digits(t['bound'])}{t['unit']:<6} {t['target']}"


# ---- the plot -----------------------------------------------------------------------------------------------------------------------

def plot(data: dict, path) -> None:
    """TB/s of everybody, a group a program, the limit as a line."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    rows = list({r["program"]: r for r in sorted(data["rows"], key=lambda r: r["count"])}.values())
    names = ["hologram"] + [p for p in data["peers"] if any(p in r["peers"] for r in rows)]
    figure, panel = pyplot.subplots(figsize=(max(6, 1.1 * len(rows)), 4), layout="constrained")
    width = 0.8 / len(names)
    for i, name in enumerate(names):
        heights = [(r if name == "hologram" else r["peers"].get(name, {"gbs": 0}))["gbs"] / 1e3 for r in rows]
        panel.bar([x + i * width for x in range(len(rows))], heights, width, label=name)
    panel.axhline(data["limit"] / 1e3, color="black", linewidth=0.8, label="the card's limit, measured")
    panel.axhline(data["limits"]["paper"] / 1e3, color="grey", linewidth=0.8, linestyle="--", label="on paper")
    panel.set_xticks([x + 0.4 - width / 2 for x in range(len(rows))], [r["program"] for r in rows], rotation=30)
    panel.set_ylabel("TB/s")
    panel.set_title(f"{data['machine']['gpu']}, {size_name(rows[0]['count'])} elements")
    figure.legend(fontsize="small", ncols=4, loc="outside lower center")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=140)
