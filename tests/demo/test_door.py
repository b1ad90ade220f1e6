"""bench/door/run.py runs in small: every library gives the same answer, and its figures are all there."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOOPS = ("replaced", "dropped", "kept", "waited", "host")


def test_door(tmp_path):
    command = [sys.executable, ROOT / "bench/door/run.py", "--rows", "add 1K,chain of eight,linear 1K,MLP", "--seconds", "0",
               "--sample", "0.01", "--warm", "0", "--first", "0.05", "--who", "hologram,jit,numpy,functional,torch",
               "--json", tmp_path / "door.json", "--plot", tmp_path / "door.png"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    data = json.loads((tmp_path / "door.json").read_text())
    rows = {row["row"]: row for row in data["rows"]}
    assert set(rows) == {"add 1K", "chain of eight 1K", "linear 1K", "MLP step"} and data["wrong"] == []
    for row in rows.values():
        assert {"hologram", "jit"} <= set(row["samples_ns"]) == set(row["first"])
        assert all(len(samples) >= 7 and min(samples) > 0 for loops in row["samples_ns"].values() for samples in loops.values())
        assert all(set(loops) == set(LOOPS) for loops in row["medians_ns"].values())
        assert all(0 < first["full_ns"] and first["second_ns"] > 0 and first["calls"] >= 5 for first in row["first"].values())
    assert rows["add 1K"]["first"]["hologram"]["result_bytes"] == 4096
    assert set(rows["chain of eight 1K"]["ratios"]["hologram"]) == set(LOOPS)  # beside NumPy, which there is


def test_a_wrong_answer_is_told(tmp_path):
    """A peer whose work is another one, and one that fails: the others are measured."""
    script = ("import sys; sys.path.insert(0, sys.argv[1]); import rows, run\n"
              "rows.rows = lambda backend: {'wrong': rows.Row({'x': rows.Input((8,))}, 'x + 1', 'x', None, 'x + 2'),\n"
              "                             'broken': rows.Row({'x': rows.Input((8,))}, 'x + 1', 'x', None, 'x.nothing')}\n"
              "sys.argv = ['run.py', '--who', 'hologram,numpy', '--first', '0', '--seconds', '0', '--plot', sys.argv[2]]\n"
              "sys.exit(run.main())")
    done = subprocess.run([sys.executable, "-c", script, ROOT / "bench/door", tmp_path / "door.png"], capture_output=True, text=True,
                          timeout=120)
    said = done.stdout
    assert done.returncode == 1 and "wrong: WRONG: numpy gives another answer than hologram\n" in said, said + done.stderr
    assert "broken: WRONG: numpy fails: AttributeError: " in said and said.count("  hologram ") == 2, said
