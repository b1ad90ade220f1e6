"""examples/python: each runs, agrees with NumPy and notices when it does not; bits are the same whatever computes. The package is found
by PYTHONPATH; the driver's double lies beside the command that HOLOGRAM_CLI names."""

import json
import os
import subprocess
import sys
from pathlib import Path

import engines
import pytest
from PIL import Image

FOLDER = Path(__file__).resolve().parent.parent.parent / "examples/python"
DOUBLE = Path(os.environ.get("HOLOGRAM_CLI", "hologram")).resolve().parent / "tests/sim"
PICTURES = {"digits": ("digits", "digits-misread"), "images": ("images",), "nbody": ("nbody", "nbody-energy"), "kmeans": ("kmeans",),
            "logistic": ("logistic",), "tour": ()}
QUICK = ("--quick",)  # the reference machine and the driver's double are slow


def python(*arguments, **settings):
    environment = {name: value for name, value in os.environ.items() if name not in engines.SETTINGS} | settings
    return subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=300)


def run(name, *options, **settings):
    done = python(FOLDER / f"{name}.py", *options, **settings)
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


def hashes(*options, **settings):
    return json.loads(run("hashes", "--json", *options, **settings))


@pytest.fixture(scope="module")
def reference():
    return hashes("--backend", "cpu", *QUICK, **engines.settings("interp"))


@pytest.mark.parametrize("name", PICTURES)
def test_runs(name, tmp_path):
    output = run(name, "--out", tmp_path, *(() if name in ("digits", "tour") else QUICK))
    assert len(output.splitlines()[-1].removeprefix("  bits ")) == 64
    assert {path.name for path in tmp_path.glob("*")} == {f"python-{picture}.png" for picture in PICTURES[name]}
    for path in tmp_path.glob("*"):
        with Image.open(path) as picture:
            assert min(picture.size) > 100 and len(picture.convert("L").getcolors()) > 20, path.name


SPOIL = """
import sys
sys.path.insert(0, {folder!r})
import {name} as example
result = example.compute(True)
{array} = array = {array}.copy()
array.reshape(-1).view("u4")[3] ^= {bits}
example.check(result, True)
"""


@pytest.mark.parametrize("name, array, bits", [
    ("digits", "result['scores']", 1 << 23), ("images", "result['results']['coffee'][0]", 1), ("nbody", "result['seen'][1][0]", 1),
    ("kmeans", "result['centres']", 1), ("logistic", "result['found'][0]", 1 << 20), ("tour", "result['results']['vector_mul']", 1)])
def test_notices(name, array, bits):
    assert python("-c", SPOIL.format(folder=str(FOLDER), name=name, array=array, bits=0)).returncode == 0
    done = python("-c", SPOIL.format(folder=str(FOLDER), name=name, array=array, bits=bits))
    assert done.returncode == 1 and "NumPy's" in done.stderr


@pytest.mark.parametrize("name", ["interp", "tile", "tile:avx2", "tile:sse2", "native", "native:avx2", "native:sse2"])
def test_engines(name, reference):
    for threads in "12":
        again = hashes("--backend", "cpu", *QUICK, HOLOGRAM_NUM_THREADS=threads, **engines.settings(name))
        assert again["hashes"] == reference["hashes"], threads
    assert reference["engine"] == "reference"


def test_in_full():
    first = hashes("--backend", "cpu", HOLOGRAM_NUM_THREADS="1", **engines.settings("native"))
    again = hashes("--backend", "cpu", HOLOGRAM_NUM_THREADS="2", **engines.settings("native:avx2"))
    assert again["hashes"] == first["hashes"] and again["engine"] != "reference"


def test_double_of_cuda(reference):
    if not (DOUBLE / "libcuda.so.1").exists():
        pytest.skip("this build has no double of libcuda")
    on_cuda = hashes("--backend", "cuda", *QUICK, LD_LIBRARY_PATH=str(DOUBLE), HOLOGRAM_CACHE="0")
    assert on_cuda["engine"] == "ptx" and on_cuda["hashes"] == reference["hashes"]


def test_compares_with_another_machine(tmp_path, reference):
    expected = tmp_path / "there.json"
    command = (FOLDER / "hashes.py", "--backend", "cpu", "--expect", expected)
    expected.write_text(json.dumps(reference))
    assert python(*command, *QUICK).returncode == 0
    assert python(*command).returncode == 1  # of another size
    expected.write_text(json.dumps(reference | {"hashes": reference["hashes"] | {"nbody": "0" * 64}}))
    done = python(*command, *QUICK)
    assert done.returncode == 1 and done.stdout.count("DIFFERS") == 1
