"""examples/digits: it learns, and its weights have the same bits whatever trained them. The program lies beside the command
that HOLOGRAM_CLI names."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import engines
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(os.environ.get("HOLOGRAM_CLI", "hologram")).resolve().parent
SHORT = ("--hidden", "24", "--batch", "256", "--epochs", "1")  # the reference machine and the driver's double are slow


def load_example():
    spec = importlib.util.spec_from_file_location("digits", ROOT / "examples/digits/digits.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PICTURES = load_example().pictures()


def train(*options, text=PICTURES, **settings):
    """The program's process, given the pictures."""
    environment = {name: value for name, value in os.environ.items() if name not in engines.SETTINGS} | settings
    command = [BUILD / "examples/digits/digits", *options]
    return subprocess.run(command, input=text, capture_output=True, env=environment, timeout=120)


def report(*options, **settings):
    done = train("--json", *options, **settings)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def reference():
    return report("--backend", "cpu", *SHORT, **engines.settings("interp"))


def test_learns():
    first = report("--backend", "cpu")
    assert first["right"] >= 0.95 * first["held_out"]
    assert first["loss"][-1] < 0.7 * first["loss"][0] and min(first["loss"]) == first["loss"][-1]
    for engine in ("native", "native:avx2"):
        for threads in "12":
            again = report("--backend", "cpu", HOLOGRAM_NUM_THREADS=threads, **engines.settings(engine))
            assert again | {"engine": ""} == first | {"engine": ""}, engine


@pytest.mark.parametrize("name", ["interp", "tile", "tile:avx2", "tile:sse2", "native", "native:avx2", "native:sse2"])
def test_engines(name, reference):
    for threads in "12":
        again = report("--backend", "cpu", *SHORT, HOLOGRAM_NUM_THREADS=threads, **engines.settings(name))
        assert again | {"engine": ""} == reference | {"engine": ""}, threads
    assert reference["engine"] == "reference"


def test_double_of_cuda(reference):
    double = BUILD / "tests/sim"
    if not (double / "libcuda.so.1").exists():
        pytest.skip("this build has no double of libcuda")
    on_cuda = report("--backend", "cuda", *SHORT, LD_LIBRARY_PATH=str(double), HOLOGRAM_CACHE="0")
    assert on_cuda["engine"] == "ptx" and on_cuda["weights"] == reference["weights"]


def test_simulated_metal(reference):
    double = BUILD / "tests/sim/metal"
    if not (double / "libobjc.A.dylib").exists():
        pytest.skip("this build has no simulated Metal")
    on_metal = report("--backend", "metal", *SHORT, LD_LIBRARY_PATH=str(double), SIMMETAL_CACHE=str(BUILD.parent / "metal-kernels"),
                      HOLOGRAM_CACHE="0")
    assert on_metal["engine"] == "msl" and on_metal["weights"] == reference["weights"]


@pytest.mark.parametrize("text", [b"", PICTURES[:1000], b"17" + PICTURES[1:], PICTURES.replace(b",", b";", 1)])
def test_other_data(text):
    done = train(text=text)
    assert done.returncode == 1 and b"1,797 lines" in done.stderr


@pytest.mark.parametrize("options", ["--batch 0", "--batch 1438", "--hidden", "--hidden x", "--backend abacus", "x"])
def test_usage(options):
    done = train(*options.split())
    assert done.returncode == 2 and done.stderr.startswith(b"usage: digits")


def test_says_what_it_does():
    done = train("--epochs", "2", "--report")
    assert done.returncode == 0
    assert b"launches on" in done.stdout and b"epoch  2  loss" in done.stdout and b"of 360 held-out digits right" in done.stdout
