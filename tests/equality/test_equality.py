"""Equality of programs: `hologram equal A B` over pairs that are one program and pairs that are not.

Each pair NAME.a.atlas, NAME.b.atlas in same/ or different/ says in its first line what it is about. HOLOGRAM_CLI names the
command; it exits with 0 for equal programs and with 1 for different ones, and then says where they part."""

import os
import shlex
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
COMMAND = shlex.split(os.environ.get("HOLOGRAM_CLI", "hologram"))
LEAST_PAIRS = 50


def pairs(kind):
    return sorted(path.name.removesuffix(".a.atlas") for path in (HERE / kind).glob("*.a.atlas"))


def files(kind, name):
    return [HERE / kind / f"{name}.{side}.atlas" for side in "ab"]


def equal(first, second):
    return subprocess.run([*COMMAND, "equal", str(first), str(second)], capture_output=True, text=True, timeout=60, check=False)


def explain(run, first):
    about = first.read_text().splitlines()[0].removeprefix("; ")
    return f"{about}: exit {run.returncode}\n{run.stdout}{run.stderr}"


@pytest.mark.parametrize("kind", ["same", "different"])
def test_battery_is_whole(kind):
    names = pairs(kind)
    assert len(names) >= LEAST_PAIRS
    for name in names:
        texts = [path.read_text() for path in files(kind, name)]
        assert texts[0] != texts[1], f"{kind}/{name}: the two texts are one"
        assert all(text.startswith("; ") for text in texts), f"{kind}/{name}: the first line says what the pair is about"
    assert len(list((HERE / kind).glob("*.atlas"))) == 2 * len(names), f"{kind}: a program without its pair"


@pytest.mark.parametrize("name", pairs("same"))
def test_same(name):
    first, second = files("same", name)
    for one, other in ((first, second), (second, first), (first, first)):
        run = equal(one, other)
        assert run.returncode == 0, explain(run, first)


@pytest.mark.parametrize("name", pairs("different"))
def test_different(name):
    first, second = files("different", name)
    for one, other in ((first, second), (second, first)):
        run = equal(one, other)
        assert run.returncode == 1, explain(run, first)
        parting = [line.split(": ", 1)[1] for line in run.stdout.splitlines()[1:]]
        assert len(parting) == 2 and parting[0] != parting[1], "it must say where the programs part"
