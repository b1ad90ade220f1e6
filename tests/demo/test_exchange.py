"""bench/python: the programs run in small, what they say fits together, and the report and the plot are made."""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent


def bench(name, *options):
    command = [sys.executable, ROOT / f"bench/python/{name}.py", *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_exchange(tmp_path):
    found = json.loads(bench("exchange", "--json", "--most", 1000, "--seconds", 0.01, "--out", tmp_path))
    assert {(row["library"], row["elements"]) for row in found["rows"]} >= {("NumPy", 100), ("NumPy", 1000)}
    ways = [f"{way}_{where}" for way in ("json", "copy", "shared") for where in ("in", "out")]
    assert all(row[way] > 0 for row in found["rows"] for way in ways)
    report = (tmp_path / "exchange.md").read_text()
    assert report.count("| 1,000 |") == len(found["rows"]) / 2 and "exchange.png" in report
    assert str(ROOT) not in report
    with Image.open(tmp_path / "exchange.png") as picture:
        assert picture.width >= 880 and len(picture.convert("L").getcolors()) > 20


def test_step():
    found = json.loads(bench("step", "--json", "--hidden", 8, "--batch", 4))
    assert found["hologram"]["min_ns"] > 0 and found["batch"] == 4
    if "torch" in found:
        assert found["ratio"]["min_ns"] == found["hologram"]["min_ns"] / found["torch"]["min_ns"]
