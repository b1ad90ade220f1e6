"""Lines and targets of operations."""

from report import digits


def heading(peers: list[str]) -> str:
    return (f"{'operation':<24}{'us':>9} {'min':>8} {'rate':>7} {'':<8}{'of limit':>9}{'/best':>7}"
            + "".join(f"{'/' + p:>16}" for p in peers) + f"{'launches':>10}{'moved':>7}{'first ms':>10}")


def row_of(operation, ours, first_ns: float, timed: dict) -> dict:
    """What was found of an operation. ours: the library's contender; timed: name -> {"median_ns", "min_ns", "samples"}."""
    peers, ours = dict(timed), {k: v for k, v in ours.items() if k != "report"}
    return {"program": operation.name, "group": operation.group, "count": operation.count, "work": operation.work,
            "unit": operation.unit, "bounds": operation.bounds, "first_ns": first_ns} | ours | peers.pop("hologram") | {"peers": peers}


def moves(row: dict) -> bool:
    """Whether its work is bytes."""
    return row["unit"].endswith("B/s")


def complete(row: dict, copy: float | None, peak: float | None = None) -> dict:
    """A measured row with everything derived from it: rates in its unit. Its limit is `copy` bytes a nanosecond of a copy, or `peak`
    operations a nanosecond."""
    unit = 1e3 if row["unit"].startswith("T") else 1
    row["rate"] = row["work"] / row["median_ns"] / unit
    limit = copy if moves(row) else peak
    row["share"] = row["work"] / row["median_ns"] / limit if limit else None
    for peer in row["peers"].values():
        peer["rate"], peer["ratio"] = row["work"] / peer["median_ns"] / unit, row["median_ns"] / peer["median_ns"]
    row["best"] = max((p["ratio"] for name, p in row["peers"].items() if name != "by hand"), default=None)
    return row


def line(row: dict, peers: list[str]) -> str:
    def beside(name):
        peer = row["peers"].get(name)
        return "-" if peer is None else f"{digits(peer['ratio'])} ({digits(peer['median_ns'] / 1e3)})"
    share = "" if row["share"] is None else f"{row['share'] * 100:.1f}%"
    moved = row["moved"] / row["work"] if moves(row) else None
    return (f"{row['program']:<24}{digits(row['median_ns'] / 1e3):>9} {digits(row['min_ns'] / 1e3):>8} {digits(row['rate']):>7}"
            f" {row['unit']:<8}{share:>9}{digits(row['best']):>7}" + "".join(f"{beside(p):>16}" for p in peers)
            + f"{row['launches']:>10}{digits(moved, 'x'):>7}{digits(row['first_ns'] / 1e6):>10}")


def targets(rows: list[dict], target) -> list[dict]:
    """target: of bench/cuda/table.py or bench/cpu/report.py."""
    found, by_name = [], {row["program"]: row for row in rows}
    for row in rows:
        for what, bound in row["bounds"].items():
            name = row["program"]
            if what == "copy":
                found.append(target(f"{name}: share of the copy", bound, "", row["share"], True))
            elif what == "rate":
                found.append(target(f"{name}: rate", bound, f" {row['unit']}", row["rate"], True))
            elif what == "best":
                found.append(target(f"{name}: our time / the best peer's", bound, "x", row["best"], False))
            elif what in row["peers"]:
                found.append(target(f"{name}: our time / {what}'s", bound, "x", row["peers"][what]["ratio"], False))
            elif what in by_name:
                times = row["median_ns"] / by_name[what]["median_ns"]
                found.append(target(f"{name}: our time / that of our {what}", bound, "x", times, False))
    return found
