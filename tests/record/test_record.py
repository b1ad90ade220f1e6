"""The recorder: one library gives one file, and what differs is named, by seed or test."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
LIBRARY = Path(os.environ["HOLOGRAM_LIB"])
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "conformance"), str(HERE.parent / "ops")]

import record as recorder  # noqa: E402

FEW = ["--programs", "40", "--graphs", "40", "--one-test-in", "500", "--processes", "1", "--library", str(LIBRARY)]


def recorded(path, *more) -> str:
    subprocess.run([sys.executable, HERE / "record.py", *FEW, *more, path], check=True)
    return path.read_text()


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    path = tmp_path_factory.mktemp("record") / "first"
    return path, recorded(path)


def test_one_library_gives_one_file(first, tmp_path):
    """And other engines give its bits."""
    path, text = first
    assert recorded(tmp_path / "again") == text
    kinds = [line.split()[0] for line in text.splitlines()]
    assert kinds.count("program") == kinds.count("graph") == 40 and kinds.count("test") > 3
    recorded(tmp_path / "tile", "--engine", "tile", "--one-test-in", "0")
    assert recorder.compare(path, tmp_path / "tile", only_common=True) == {}


@pytest.mark.parametrize("kind, field", [("program", "hash"), ("program", "results"), ("graph", "plan"), ("test", "results")])
def test_what_differs_is_named(first, tmp_path, capsys, kind, field):
    path, text = first
    lines = text.splitlines()
    at = [i for i, line in enumerate(lines) if line.startswith(kind)][2]
    words = lines[at].split(" ")
    place = 2 + recorder.FIELDS[kind].index(field)
    words[place] = "".join(reversed("0123456789abcdef"))[:8]
    (tmp_path / "other").write_text("\n".join([*lines[:at], " ".join(words), *lines[at + 1:]]) + "\n")
    assert recorder.compare(path, tmp_path / "other") == {kind: [words[1]]}
    said = capsys.readouterr().out
    assert f"  {field}: 1 differ, first {words[1]}\n" in said and "to see the first" in said


def test_files_of_other_lengths(first, tmp_path, capsys):
    path, text = first
    (tmp_path / "short").write_text("".join(line + "\n" for line in text.splitlines() if not line.startswith("program 1000000")
                                            or int(line.split()[1]) < 100000011))
    assert recorder.compare(path, tmp_path / "short", only_common=True) == {}
    assert "10 programs in both files, 30 and 0 in one only" in capsys.readouterr().out
    for files in ((path, tmp_path / "short"), (tmp_path / "short", path)):
        assert recorder.compare(*files) == {"program": [str(seed) for seed in range(100000011, 100000041)]}
        assert "they differ" in capsys.readouterr().out


def test_a_bit_that_changes(monkeypatch):
    """A library whose results have one bit flipped gives lines that differ in just these."""
    import graphs
    import hg
    import hgops
    import programs
    monkeypatch.setenv("HOLOGRAM_EMIT_LAUNCHES", str(recorder.ROOT / "build/release/tests/random/emit_launches"))

    def both():
        return [dict(maker.lines(first, 12, False)) for maker, first in ((programs, recorder.FIRST_PROGRAM), (graphs, 0))]

    before, run_on, read = both(), hgops.Computation.run_on, hg.lib.hg_buffer_read

    def flipped(self, engine, *given, report=False, **more):
        answers, text = run_on(self, engine, *given, report="json", **more)
        for answer in answers:
            if answer.size:
                answer.reshape(-1).view("u1")[0] ^= 1
        return (answers, text) if report else answers

    def flipped_read(buffer, offset, memory, size):
        status = read(buffer, offset, memory, size)
        if isinstance(memory, ctypes.Array):  # a program's arena
            memory[size - 1] = bytes([memory[size - 1][0] ^ 1])
        return status

    monkeypatch.setattr(hgops.Computation, "run_on", flipped)
    monkeypatch.setattr(hg.lib, "hg_buffer_read", flipped_read)
    after = both()
    for kind, a, b in zip(("program", "graph"), before, after):
        names = [recorder.differing(kind, a[seed], b[seed], True) for seed in a]
        assert ["results"] in names and all(name in ([], ["results"]) for name in names)


def test_a_seed_that_ends_the_process(tmp_path, monkeypatch):
    """It has a line that says so, and the next ones theirs."""
    dying = tmp_path / "record.py"
    dying.write_text("import os, sys\n_, _, kind, first, count = sys.argv[:5]\n"
                     "for seed in range(int(first), int(first) + int(count)):\n"
                     "    os.kill(os.getpid(), 9) if seed == 3 else print(kind, seed, 'x', flush=True)\n")
    monkeypatch.setattr(recorder, "__file__", str(dying))
    options = type("", (), {"code": False})
    assert recorder.chunk_of("graph", 1, 5, options, dict(os.environ)) == \
        ["graph 1 x", "graph 2 x", "graph 3 died of signal 9", "graph 4 x", "graph 5 x"]
    assert recorder.differing("graph", ["x", "-", "-", "y"], ["died", "of", "signal", "9"], True) == ["died"]
