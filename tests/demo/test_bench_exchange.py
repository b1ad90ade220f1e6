"""bench/python/exchange.py runs in small; its figures, the report and the plot are made."""

import json
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parent.parent.parent


def test_exchange(tmp_path):
    command = [sys.executable, ROOT / "bench/python/exchange.py", "--json", "--most", "1000", "--seconds", "0.01", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(row["library"], row["elements"]) for row in found["rows"]} >= {("NumPy", 100), ("NumPy", 1000)}
    ways = [f"{way}_{where}" for way in ("json", "copy", "shared") for where in ("in", "out")]
    assert all(row[way] > 0 for row in found["rows"] for way in ways)
    report = (tmp_path / "exchange.md").read_text()
    assert report.count("| 1,000 |") == len(found["rows"]) / 2 and "exchange.png" in report
    assert str(ROOT) not in report
    with Image.open(tmp_path / "exchange.png") as picture:
        assert picture.width >= 880 and len(picture.convert("L").getcolors()) > 20
