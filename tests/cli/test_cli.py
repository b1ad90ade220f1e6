"""The `hologram` command, as a user meets it: results, exit codes, and one clear sentence for each kind of bad input.

The command to test is named by the environment variable HOLOGRAM_CLI.
"""

import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import engines
import numpy as np
import pytest

CLI = os.environ.get("HOLOGRAM_CLI", "hologram")

SAXPY = """\
.program saxpy
.buffer  x f32 in
.buffer  y f32 inout
.scalar  a f32
    ldg.f32  r0, [x + lane]        ; element form: each lane its own element
    ldg.f32  r1, [y + lane]
    mov.f32  r2, a
    fma.f32  r3, r2, r0, r1
    stg.f32  [y + lane], r3
    exit
"""

SQUARE = """\
.program square
.buffer x f32 in
.buffer y f32 out
    ldg.f32 r0, [x + lane]
    mul.f32 r0, r0, r0
    stg.f32 [y + lane], r0
    exit
"""

LANES = """\
.program lanes
.buffer y u64 out
    mov.u64 r0, lane
    stg.u64 [y + lane], r0
    exit
"""


def run(*arguments, cwd=None, stdin=None):
    """Runs the command; the result has returncode, stdout and stderr. It must end by itself, and never by a signal."""
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1")  # as malloc does without a sanitizer
    result = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment, timeout=60,
                            stdin=stdin)
    assert result.returncode in (0, 1, 2, 3), (arguments, result.returncode, result.stderr)
    assert "ERROR: " not in result.stderr and "runtime error" not in result.stderr, result.stderr  # of a sanitizer
    return result


def refused(code, sentence, *arguments, cwd=None):
    """The command must end with this code and say exactly this one sentence."""
    result = run(*arguments, cwd=cwd)
    assert result.stderr == f"hologram: {sentence}\n"
    assert result.returncode == code
    return result


@pytest.fixture
def work(tmp_path):
    """A folder with programs and arrays."""
    (tmp_path / "saxpy.atlas").write_text(SAXPY)
    (tmp_path / "square.atlas").write_text(SQUARE)
    (tmp_path / "lanes.atlas").write_text(LANES)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "y.npy", np.ones((2, 3), np.float32))
    np.save(tmp_path / "d.npy", np.ones(6))
    return tmp_path


SAXPY_RUN = ("run", "saxpy.atlas", "--buffer", "x=x.npy", "--buffer", "y=y.npy", "--scalar", "a=2")


# ---- run: results ----------------------------------------------------------------------------------------------------


def test_saxpy(work, engine):
    result = run(*SAXPY_RUN, "--out", "y=out.npy", cwd=work)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    out = np.load(work / "out.npy")
    assert out.dtype == np.float32 and out.shape == (2, 3)
    assert np.array_equal(out, 2 * np.load(work / "x.npy") + 1)


def test_option_with_equals_sign(work):
    result = run("run", "saxpy.atlas", "--buffer=x=x.npy", "--buffer=y=y.npy", "--scalar=a=2", "--out=y=out.npy", cwd=work)
    assert result.returncode == 0
    assert np.load(work / "out.npy")[1, 2] == 11


def test_out_buffer_is_created_like_the_first_input(work):
    assert run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.array_equal(np.load(work / "out.npy"), np.load(work / "x.npy") ** 2)


def test_out_buffer_is_created_from_lanes(work, engine):
    assert run("run", "lanes.atlas", "--lanes", "1000", "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.array_equal(np.load(work / "out.npy"), np.arange(1000, dtype=np.uint64))


def test_out_buffer_is_created_from_grid(work, engine):
    assert run("run", "lanes.atlas", "--grid", "3,2", "--block", "5", "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.array_equal(np.load(work / "out.npy"), np.arange(30, dtype=np.uint64))


def test_out_buffer_is_created_from_grid_and_required_block(work):
    (work / "tiles.atlas").write_text(".block 4, 2\n" + LANES.replace(".program lanes\n", ""))
    assert run("run", "tiles.atlas", "--grid", "3", "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.array_equal(np.load(work / "out.npy"), np.arange(24, dtype=np.uint64))
    refused(1, "tiles.atlas: program 'program' requires blocks of 4 x 2 x 1 lanes; launch it with a grid, not with lanes",
            "run", "tiles.atlas", "--lanes", "24", cwd=work)


def test_default_block(work):
    (work / "tiles.atlas").write_text(".block 4, 2 default\n" + LANES.replace(".program lanes\n", ""))
    for arguments, lanes in ((["--grid", "3"], 24), (["--grid", "3", "--block", "5"], 15), (["--lanes", "24"], 24)):
        assert run("run", "tiles.atlas", *arguments, "--out", "y=out.npy", cwd=work).returncode == 0
        assert np.array_equal(np.load(work / "out.npy"), np.arange(lanes, dtype=np.uint64))


def test_size(work):
    result = run("run", "lanes.atlas", "--size", "y=10", "--lanes", "4", "--out", "y=out.npy", cwd=work)
    assert result.returncode == 0
    assert np.load(work / "out.npy").tolist() == [0, 1, 2, 3, 0, 0, 0, 0, 0, 0]


def test_lanes_default_to_the_first_output(work):
    result = run("run", "lanes.atlas", "--size", "y=7", "--out", "y=out.npy", "--json", cwd=work)
    assert json.loads(result.stdout)["lanes"] == 7


def test_no_lanes(work, engine):
    np.save(work / "x.npy", np.zeros((0, 4), np.float32))
    assert run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.load(work / "out.npy").shape == (0, 4)


def test_scalar_array(work):
    np.save(work / "x.npy", np.float32(3))
    assert run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work).returncode == 0
    out = np.load(work / "out.npy")
    assert out.shape == () and out == 9


TYPES = {
    "i8": "|i1", "i16": "<i2", "i32": "<i4", "i64": "<i8", "u8": "|u1", "u16": "<u2", "u32": "<u4", "u64": "<u8",
    "f16": "<f2", "bf16": "<u2", "f32": "<f4", "f64": "<f8", "f8e4m3": "|u1", "f8e5m2": "|u1", "bool": "|b1",
}


@pytest.mark.parametrize("name", TYPES)
def test_every_type(work, engine, name):
    (work / "copy.atlas").write_text(
        f".buffer x {name} in\n.buffer y {name} out\nldg.{name} r0, [x + lane]\nstg.{name} [y + lane], r0\nexit\n")
    dtype = np.dtype(TYPES[name])
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    np.save(work / "x.npy", values)
    result = run("run", "copy.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work)
    assert result.stderr == "" and result.returncode == 0
    out = np.load(work / "out.npy")
    assert out.dtype == dtype and np.array_equal(out, values)


@pytest.mark.parametrize("name, text, bits", [
    ("f32", "2", 0x40000000), ("f32", "#2", 0x40000000), ("f32", "-1.5e-3", 0xBAC49BA6), ("f32", "0x1.8p3", 0x41400000),
    ("f32", "0x7fc12345", 0x7FC12345), ("f32", "-inf", 0xFF800000), ("f32", "nan", 0x7FC00000),
    ("f16", "0.1", 0x2E66), ("bf16", "0.1", 0x3DCD), ("f64", "0.1", 0x3FB999999999999A),
    ("i8", "-128", 0x80), ("i8", "0x80", 0x80), ("u64", "18446744073709551615", 2**64 - 1), ("i64", "-1", 2**64 - 1),
])
def test_scalar_values(work, name, text, bits):
    (work / "scalar.atlas").write_text(
        f".buffer y {name} out\n.scalar a {name}\nmov.{name} r0, a\nstg.{name} [y + lane], r0\nexit\n")
    result = run("run", "scalar.atlas", "--scalar", f"a={text}", "--lanes", "1", "--out", "y=out.npy", cwd=work)
    assert result.stderr == "" and result.returncode == 0
    assert int.from_bytes(np.load(work / "out.npy").tobytes(), "little") == bits


def test_table_and_pool(work, engine):
    (work / "table.atlas").write_text(
        ".table t 4 inout\n.pool heap\n.buffer y u32 out\nmovi.u32 r0, #2\nmovi.u32 r1, #4\nldg.u32 r2, [r0 : r1]\n"
        "movi.u32 r3, #8\nstg.u32 [r0 : r3], r2\nmovi.u64 r4, #16\npool.store.u32 [heap + r4], r2\nstg.u32 [y + lane], r2\nexit\n")
    np.save(work / "t.npy", np.array([[1.5, 2.5, 3.5]], np.float32))
    result = run("run", "table.atlas", "--table", "t:2=t.npy", "--pool", "heap=64", "--lanes", "1", "--out", "t:2=t2.npy",
                 "--out", "heap=heap.npy", "--out", "y=y.npy", cwd=work)
    assert result.stderr == "" and result.returncode == 0
    assert np.load(work / "t2.npy").tolist() == [[1.5, 2.5, 2.5]]
    assert np.load(work / "y.npy").tolist() == [0x40200000]
    heap = np.load(work / "heap.npy")
    assert heap.dtype == np.uint8 and heap.shape == (64,) and heap[16:20].view(np.float32)[0] == 2.5


def test_time(work, engine):
    result = run(*SAXPY_RUN, "--time", cwd=work)
    said = re.fullmatch(r"saxpy: \d+\.\d{3} ms for 6 lanes on cpu \((.+?) engine(: .+)?\)\n", result.stdout)
    assert said and engines.is_report_of(engine, said.group(1))


@pytest.mark.parametrize("name, ran", [("native", "(native|tile) .+"), ("tile", "tile .+"), ("interp", "reference")])
def test_engine_option(work, name, ran):
    """Before what the environment says; a slower one with its reason."""
    with engines.chosen("interp" if name == "tile" else "tile"):
        result = run(*SAXPY_RUN, "--engine", name, "--time", cwd=work)
        report = json.loads(run(*SAXPY_RUN, f"--engine={name}", "--json", cwd=work).stdout)
    said = re.fullmatch(r"saxpy: \d+\.\d{3} ms for 6 lanes on cpu \((.+?) engine(: (.+))?\)\n", result.stdout)
    assert said and re.fullmatch(ran, said[1]) and re.fullmatch(ran, report["engine"])
    assert (said[3] or "") == report["notes"]
    if name != "native":
        assert said[3] == f"the engine '{name}' was asked for"


def test_slower_launch_says_why(work):
    (work / "steps.atlas").write_text(
        ".program steps\n.buffer y u32 out\n    movi.u32 r0, #9\n    movi.u32 r1, #0\nagain:\n    mul.u32 r1, r1, #3\n"
        "    add.u32 r1, r1, #1\n    loop r0, again\n    stg.u32 [y + lane], r1\n    exit\n")
    options = ("run", "steps.atlas", "--lanes", "4", "--size", "y=4", "--engine", "native", "--step-limit", "3", "--json")
    report = json.loads(run(*options, cwd=work).stdout)
    if report["engine"].startswith("native"):
        assert report["notes"] == "left to the tile engine: machine code does not count steps up to so low a limit"


def test_repeat(work, engine):
    """Each run on what the first was given: y is added to once, and what nobody gave is zero."""
    text = (".program count\n.buffer y f32 inout\n.buffer z u32 inout\n    ldg.f32 r0, [y + lane]\n    add.f32 r0, r0, #1\n"
            "    stg.f32 [y + lane], r0\n    atom.add.u32 r1, [z + #0], #1\n    set.lt.u32 p0, r1, #6\n    @p0 bra fine\n    trap #1\n"
            "fine:\n    exit\n")
    (work / "count.atlas").write_text(text)
    options = ("run", "count.atlas", "--buffer", "y=y.npy", "--size", "z=1", "--out", "y=after.npy", "--lanes", "6", "--repeat", "5")
    result = run(*options, cwd=work)
    times = r"(\d+\.\d{3}) ms \(minimum\), (\d+\.\d{3}) ms \(median of 5 runs\)"
    said = re.fullmatch(rf"count: {times} for 6 lanes on cpu \((.+?) engine(: .+)?\)\n", result.stdout)
    assert said and float(said[1]) <= float(said[2]) and engines.is_report_of(engine, said[3])
    np.testing.assert_array_equal(np.load(work / "after.npy"), np.load(work / "y.npy") + 1)
    report = json.loads(run(*options, "--json", cwd=work).stdout)
    assert report["runs"] == 5 and 0 < report["minimum_nanoseconds"] <= report["median_nanoseconds"]
    assert "runs" not in json.loads(run(*options[:-2], "--json", cwd=work).stdout)


def test_repeat_after_a_fault(work, engine):
    result = run(*SAXPY_RUN, "--lanes", "9", "--repeat", "3", "--json", cwd=work)
    assert result.returncode == 3 and "runs" not in json.loads(result.stdout)


def test_no_such_engine(work):
    refused(1, "the cpu backend is not available: the CPU has no engine 'warp', only 'interp', 'tile' and 'native'",
            *SAXPY_RUN, "--backend", "cpu", "--engine", "warp", cwd=work)


# ---- run: --json -------------------------------------------------------------------------------------------------------


@pytest.mark.posix  # the name of a file
def test_json(work, engine):
    report = json.loads(run(*SAXPY_RUN, "--out", 'y=a "b".npy', "--json", cwd=work).stdout)
    assert report.pop("nanoseconds") > 0 and engines.is_report_of(engine, report.pop("engine"))
    notes, chosen = report.pop("notes"), engine.split(":")[0]
    assert notes == f"HOLOGRAM_CPU_ENGINE is '{chosen}'" if chosen in ("tile", "interp") else isinstance(notes, str)
    assert report == {"status": "HG_OK", "program": "saxpy", "backend": "cpu", "lanes": 6, "fault": None,
                      "outputs": [{"name": "y", "file": 'a "b".npy', "dtype": "<f4", "shape": [2, 3]}]}


def test_json_fault(work, engine):
    result = run(*SAXPY_RUN, "--lanes", "9", "--out", "y=out.npy", "--json", cwd=work)
    assert result.returncode == 3
    sentence = "saxpy.atlas: line 6 (ldg): lane 6 read past 'y': index 6, extent 6"  # the canonical program loads y first
    assert result.stderr == f"hologram: {sentence}\n"
    report = json.loads(result.stdout)
    assert report["status"] == "HG_FAULT" and report["error"] == sentence
    assert report["fault"] == {"kind": "out of bounds", "instruction": 1, "line": 6, "lane": 6, "code": 0, "buffer": "y",
                               "index": 6, "extent": 6}
    assert np.load(work / "out.npy")[1, 2] == 11  # what the other lanes did stands


def test_json_bad_input(work):
    result = run("run", "saxpy.atlas", *A, "--json", cwd=work)
    assert result.returncode == 1
    assert json.loads(result.stdout) == {"status": "HG_BINDING",
                                         "error": "buffer 'x' (f32, in) is not given; use --buffer x=FILE.npy"}


def test_trap_and_step_limit(work, engine):
    (work / "trap.atlas").write_text("trap #7\n")
    refused(3, "trap.atlas: line 1 (trap): lane 0 trapped with code 7", "run", "trap.atlas", "--lanes", "2", cwd=work)
    (work / "endless.atlas").write_text("again:\nbra again\n")
    refused(3, "endless.atlas: line 2 (bra): lane 0 took more than 10 backward branches, the step limit of the launch",
            "run", "endless.atlas", "--lanes", "2", "--step-limit", "10", cwd=work)


# ---- run and info: which backend ------------------------------------------------------------------------------------------


@pytest.fixture
def double(monkeypatch):
    """Commands find the double of libcuda, where it is built, in the driver's place."""
    folder = Path(CLI).resolve().parent / "tests" / "sim"
    if not (folder / "libcuda.so.1").exists():
        pytest.skip("the double of libcuda is not built beside the command")
    find_libraries_in(folder, monkeypatch)
    monkeypatch.setenv("HOLOGRAM_CACHE", "0")
    return folder


def find_libraries_in(folder, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{folder}:{os.environ.get('LD_LIBRARY_PATH', '')}".strip(":"))


def test_gpu_is_left_alone(work, double, monkeypatch):
    """The driver is loaded where a GPU may be used, and not before."""
    loaded = work / "loaded"
    monkeypatch.setenv("FAKECUDA_LOADED", str(loaded))
    assert run(*SAXPY_RUN, "--backend", "cpu", cwd=work).returncode == 0
    refused(2, "--backend: there is no backend 'tpu': auto, metal, cuda, cpu (see hologram run --help)", "run", "a", "--backend", "tpu")
    assert not loaded.exists()
    assert json.loads(run(*SAXPY_RUN, "--backend", "cuda", "--json", cwd=work).stdout)["backend"] == "cuda"
    assert loaded.exists()


def test_no_cuda(work, monkeypatch):
    """A file that is no library stands in the driver's place, also where there is one."""
    (work / "libcuda.so.1").touch()
    find_libraries_in(work, monkeypatch)
    reason = "no NVIDIA driver is installed here (its library, libcuda, cannot be loaded)"
    refused(1, f"the cuda backend is not available: {reason}", *SAXPY_RUN, "--backend=cuda", cwd=work)
    report = json.loads(run("info", "--json").stdout)
    assert report["backend"] == "cpu" and f"; cuda: {reason}; cpu: chosen" in report["selection"]
    assert report["backends"][1] == {"name": "cuda", "available": False, "reason": reason}


def test_cuda_without_a_function(work, double, monkeypatch):
    """Another library, which has none of the driver's functions, stands in its place."""
    shutil.copy(double / "libfakenvtx.so", work / "libcuda.so.1")
    find_libraries_in(work, monkeypatch)
    reason = "the NVIDIA driver is too old: its libcuda has no cuInit; install a driver for CUDA 11.0 or later"
    refused(1, f"the cuda backend is not available: {reason}", *SAXPY_RUN, "--backend=cuda", cwd=work)
    assert f"; cuda: {reason}; cpu: chosen\n" in run("info").stdout


def test_help_says_which_gpu():
    for command in ("run", "info"):
        assert "Of several GPUs " in run(command, "--help").stdout and "CUDA_VISIBLE_DEVICES" in run(command, "--help").stdout


def test_gpu_that_does_not_start(work, double, monkeypatch):
    """It is named, and the CPU is used."""
    monkeypatch.setenv("FAKECUDA_FAIL", "cuInit:0=999")
    reason = ("the CUDA driver did not start: the driver failed and does not know why; nvidia-smi and the system's log may say more "
              "(CUDA_ERROR_UNKNOWN, 999)")
    report = json.loads(run("info", "--json").stdout)
    assert report["backend"] == "cpu" and f"; cuda: {reason}; cpu: chosen" in report["selection"]
    assert report["backends"][1] == {"name": "cuda", "available": False, "reason": reason}
    assert json.loads(run(*SAXPY_RUN, "--json", cwd=work).stdout)["backend"] == "cpu"
    refused(1, reason, *SAXPY_RUN, "--backend", "cuda", cwd=work)


# ---- run: bad input -----------------------------------------------------------------------------------------------------

X = ("--buffer", "x=x.npy")
Y = ("--buffer", "y=y.npy")
A = ("--scalar", "a=2")


@pytest.mark.parametrize("sentence, arguments", [
    ("missing.atlas: cannot open: No such file or directory", ("missing.atlas",)),
    ("missing.npy: cannot open: No such file or directory", ("saxpy.atlas", "--buffer", "x=missing.npy", *Y, *A)),
    ("d.npy: dtype is '<f8'; buffer 'x' is f32 and needs '<f4'", ("saxpy.atlas", "--buffer", "x=d.npy", *Y, *A)),
    ("saxpy.atlas: the file is not a .npy file", ("saxpy.atlas", "--buffer", "x=saxpy.atlas", *Y, *A)),
    ("buffer 'x' (f32, in) is not given; use --buffer x=FILE.npy", ("saxpy.atlas", *Y, *A)),
    ("buffer 'y' (f32, inout) is not given; use --buffer y=FILE.npy", ("saxpy.atlas", *X, *A)),
    ("scalar 'a' (f32) is not given; use --scalar a=VALUE", ("saxpy.atlas", *X, *Y)),
    ("--buffer: the program has no parameter 'z' of that kind; it has: x, y", ("saxpy.atlas", *A, "--buffer", "z=x.npy")),
    ("--scalar: the program has no parameter 'b' of that kind; it has: a", ("saxpy.atlas", "--scalar", "b=1")),
    ("--pool: the program has no parameter 'b' of that kind; it has: none", ("saxpy.atlas", *A, "--pool", "b=1")),
    ("--buffer: 'a' is a scalar of the program", ("saxpy.atlas", *A, "--buffer", "a=x.npy")),
    ("--scalar: 'x' is a buffer of the program", ("saxpy.atlas", "--scalar", "x=1")),
    ("--buffer: 'x' is not a table and has no entries", ("saxpy.atlas", *A, "--buffer", "x:1=x.npy")),
    ("--out x: the program only reads 'x' (in); --out takes out and inout", ("saxpy.atlas", *X, *Y, *A, "--out", "x=o.npy")),
    ("--out y is given twice", ("saxpy.atlas", *X, *Y, *A, "--out", "y=o.npy", "--out", "y=p.npy")),
    ("--buffer: 'x' has a file or a size already", ("saxpy.atlas", *A, *X, *X)),
    ("--size: 'x' has a file or a size already", ("saxpy.atlas", *A, *X, "--size", "x=3")),
    ("--size x: 'many' is not a number of elements", ("saxpy.atlas", *A, "--size", "x=many")),
    ("--scalar a is given twice", ("saxpy.atlas", *A, *A)),
    ("--scalar a: '2x' is not a constant of type f32; expected a number in its range such as 2, -1.5e-3, 0x1.8p3, inf or nan, "
     "or 0x and its bits", ("saxpy.atlas", "--scalar", "a=2x")),
    ("--scalar a: '1e99' is not a constant of type f32; expected a number in its range such as 2, -1.5e-3, 0x1.8p3, inf or "
     "nan, or 0x and its bits", ("saxpy.atlas", "--scalar", "a=1e99")),
    ("how large is buffer 'y'? use --size y=COUNT or --lanes", ("lanes.atlas",)),
    ("how large is buffer 'y'? use --size y=COUNT or --lanes", ("lanes.atlas", "--lanes", "18446744073709551615")),
    ("how large is buffer 'y'? use --size y=COUNT or --lanes", ("lanes.atlas", "--grid", "4294967295,4294967295,4294967295")),
    ("the metal backend is not available: Metal is Apple's: this system has no Objective-C runtime with Metal",
     ("saxpy.atlas", *X, *Y, *A, "--backend", "metal")),
    ("nowhere/o.npy: cannot write: No such file or directory", ("saxpy.atlas", *X, *Y, *A, "--out", "y=nowhere/o.npy")),
    ("saxpy.atlas: a block of 2000 x 1 x 1 lanes is too large; a block has at most 1024 lanes",
     ("saxpy.atlas", *X, *Y, *A, "--grid", "1", "--block", "2000")),
    ("saxpy.atlas: 1099511627776 lanes are too many; a launch has fewer than 2^40",
     ("saxpy.atlas", *X, *Y, *A, "--lanes", "0x10000000000")),
])
def test_bad_input(work, sentence, arguments):
    refused(1, sentence, "run", *arguments, cwd=work)


def test_huge_size(work):
    result = run("run", "lanes.atlas", "--size", f"y={2**59}", "--lanes", "1", cwd=work)
    assert result.returncode == 1
    assert "hologram: buffer 'y': could not allocate 4611686018427387904 bytes for a buffer\n" in result.stderr


def test_scalar_ranges(work):
    for name, texts in {"u8": ["256", "-1", "1.5", "0x100"], "i8": ["128", "-129"], "f16": ["65520", "1e5", "0x10000"]}.items():
        (work / "s.atlas").write_text(f".scalar a {name}\nexit\n")
        for text in texts:
            result = run("run", "s.atlas", "--lanes", "1", "--scalar", f"a={text}", cwd=work)
            assert result.returncode == 1 and result.stderr.startswith(f"hologram: --scalar a: '{text}' is not "), text
    (work / "s.atlas").write_text(".scalar a u8\nexit\n")
    result = run("run", "s.atlas", "--lanes", "1", "--scalar", "a=1\nexit", cwd=work)  # no way to smuggle text in
    assert result.returncode == 1


def test_text_error(work):
    (work / "bad.atlas").write_text(SAXPY.replace("r2, r0, r1", "r2, r0"))
    for command in ("run", "check", "dis"):
        result = run(command, "bad.atlas", cwd=work)
        assert result.returncode == 1
        assert re.fullmatch(r"hologram: bad\.atlas:8:\d+: 'fma' needs 4 operands, got 3: fma rD, a, b, c\n", result.stderr)


def test_verify_error(work):
    (work / "bad.atlas").write_text(".buffer x f32 out\nstg.f32 [x + lane], r0\nexit\n")
    result = run("check", "bad.atlas", cwd=work)
    assert result.returncode == 1 and result.stderr.startswith("hologram: bad.atlas:2")


@pytest.mark.posix  # Windows cannot open a folder
def test_folder(work):
    (work / "folder").mkdir()
    refused(1, "folder: cannot read: Is a directory", "check", "folder", cwd=work)


def test_empty_file(work):
    (work / "empty").write_bytes(b"")
    result = run("check", "empty", cwd=work)
    assert result.returncode == 1 and result.stderr.startswith("hologram: empty")
    refused(1, "empty: the file is not a .npy file", "run", "square.atlas", "--buffer", "x=empty", cwd=work)


def test_library_cannot_run(work):
    (work / "lib.atlas").write_text(".entry exp f32 f\nf:\nret\n")
    refused(1, "lib.atlas: a library of functions (.entry) cannot be run", "run", "lib.atlas", cwd=work)


# ---- wrong usage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence, arguments", [
    ("there is no command 'fly' (see hologram --help)", ("fly",)),
    ("there is no command 'fly' (see hologram --help)", ("help", "fly")),
    ("which program? hologram run PROGRAM [OPTIONS] (see hologram run --help)", ("run",)),
    ("one program at a time: 'b' comes after 'a' (see hologram run --help)", ("run", "a", "b")),
    ("there is no option '--fast' (see hologram run --help)", ("run", "a", "--fast=1")),
    ("there is no option '-x' (see hologram run --help)", ("run", "a", "-x")),
    ("--buffer needs NAME=FILE.npy (see hologram run --help)", ("run", "a", "--buffer")),
    ("--buffer takes NAME=FILE.npy, not 'x' (see hologram run --help)", ("run", "a", "--buffer", "x")),
    ("--buffer takes NAME=FILE.npy, not 'x=' (see hologram run --help)", ("run", "a", "--buffer", "x=")),
    ("--buffer takes NAME=FILE.npy, not '=x' (see hologram run --help)", ("run", "a", "--buffer", "=x")),
    ("--table takes NAME:ENTRY=FILE.npy, not 't=x' (see hologram run --help)", ("run", "a", "--table", "t=x")),
    ("--table 't:q=x': what follows ':' must be the number of a table's entry (see hologram run --help)",
     ("run", "a", "--table", "t:q=x")),
    ("--lanes takes a number, not '-1' (see hologram run --help)", ("run", "a", "--lanes", "-1")),
    ("--lanes takes a number, not '18446744073709551616' (see hologram run --help)",
     ("run", "a", "--lanes", "18446744073709551616")),
    ("--grid takes up to three positive numbers X[,Y[,Z]], not '1,2,3,4' (see hologram run --help)",
     ("run", "a", "--grid", "1,2,3,4")),
    ("--grid takes up to three positive numbers X[,Y[,Z]], not '0' (see hologram run --help)", ("run", "a", "--grid", "0")),
    ("--block takes up to three positive numbers X[,Y[,Z]], not '2,' (see hologram run --help)", ("run", "a", "--block", "2,")),
    ("--lanes excludes --grid and --block (see hologram run --help)", ("run", "a", "--lanes", "1", "--grid", "1")),
    ("--block needs --grid (see hologram run --help)", ("run", "a", "--block", "1")),
    ("--backend: there is no backend 'tpu': auto, metal, cuda, cpu (see hologram run --help)", ("run", "a", "--backend", "tpu")),
    ("--engine needs a name (see hologram run --help)", ("run", "a", "--engine=")),
    ("--repeat takes a number from 1 to 1000000, not '0' (see hologram run --help)", ("run", "a", "--repeat", "0")),
    ("--repeat takes a number, not 'x' (see hologram run --help)", ("run", "a", "--repeat=x")),
    ("--step-limit must be at least 1 (see hologram run --help)", ("run", "a", "--step-limit", "0")),
    ("--json takes no value (see hologram run --help)", ("run", "a", "--json=1")),
    ("which program? hologram check PROGRAM... (see hologram check --help)", ("check",)),
    ("there is no option '-z' (see hologram check --help)", ("check", "-z", "a")),
    ("where to? the binary form needs -o FILE (see hologram asm --help)", ("asm", "a")),
    ("-o needs a file name (see hologram asm --help)", ("asm", "a", "-o")),
    ("-o is given twice (see hologram dis --help)", ("dis", "a", "-o", "b", "-o", "c")),
    ("which program? hologram dis PROGRAM -o FILE (see hologram dis --help)", ("dis",)),
    *((f"--capability is a number from 75 to 999, such as 90 for 9.0, not '{n}' (see hologram emit --help)",
       ("emit", "a", "--target", "ptx", "--capability", n)) for n in ("74", "1000", "4294967295", "9.0")),
    ("there is no option '--yaml' (see hologram info --help)", ("info", "--yaml")),
])
def test_usage(sentence, arguments):
    assert refused(2, sentence, *arguments).stdout == ""


def test_no_arguments():
    result = run()
    assert result.returncode == 2 and result.stdout == "" and "SYNOPSIS" in result.stderr


@pytest.mark.parametrize("command", [None, "run", "check", "asm", "dis", "info", "cache"])
def test_help(command):
    pages = [run(*(x for x in (command, "--help") if x)), run("help", *([command] if command else []))]
    if command:
        pages.append(run(command, "ignored", "-h"))
    for page in pages:
        assert page.returncode == 0 and page.stderr == "" and page.stdout == pages[0].stdout
    sections = ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES"] + (["OPTIONS"] if command else ["COMMANDS"])
    for section in sections:
        assert f"\n{section}\n" in "\n" + pages[0].stdout
    assert max(map(len, pages[0].stdout.splitlines())) <= 120
    for option in re.findall(r"--[a-z-]+", pages[0].stdout.split("SYNOPSIS")[1].split("DESCRIPTION")[0]):
        assert option in ("--help", "--version") or option in pages[0].stdout.split("OPTIONS")[1]


def test_version():
    assert re.fullmatch(r"hologram \d+\.\d+\.\d+\n", run("--version").stdout)


# ---- check, asm, dis, info ---------------------------------------------------------------------------------------------------


def test_check(work):
    result = run("check", "saxpy.atlas", "missing.atlas", "lanes.atlas", cwd=work)
    assert result.returncode == 1
    assert result.stdout == ("saxpy.atlas: ok: program 'saxpy', 6 instructions, 3 symbols\n"
                             "lanes.atlas: ok: program 'lanes', 3 instructions, 1 symbol\n")
    assert result.stderr == "hologram: missing.atlas: cannot open: No such file or directory\n"
    result = run("check", "-q", "saxpy.atlas", cwd=work)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize("form", ["text", "binary"])
def test_standard_input(work, form):
    """- is a program that comes by a pipe or from a file, in either form and wherever a program is read."""
    if form == "binary":
        run("asm", "saxpy.atlas", "-o", "saxpy.atb", cwd=work)
    path = work / ("saxpy.atlas" if form == "text" else "saxpy.atb")

    def given(*arguments):
        with open(path, "rb") as program:
            return run(*arguments, cwd=work, stdin=program)

    assert given("check", "-").stdout == "-: ok: program 'saxpy', 6 instructions, 3 symbols\n"
    assert given("check", "lanes.atlas", "-q", "-").stdout == ""
    assert given("dis", "-").stdout == run("dis", path, cwd=work).stdout
    assert given("canon", "-").stdout == run("canon", path, cwd=work).stdout
    assert given("hash", "-").stdout.split()[0] == run("hash", path, cwd=work).stdout.split()[0]
    assert given("equal", path, "-").stdout == "equal\n"
    assert given("info", "-").stdout == run("info", path, cwd=work).stdout
    assert given("emit", "--target", "ptx", "-").stdout == run("emit", "--target", "ptx", path, cwd=work).stdout
    assert given(*["-" if a == "saxpy.atlas" else a for a in SAXPY_RUN], "--out", "y=out.npy").returncode == 0
    assert np.load(work / "out.npy")[1, 2] == 11


def test_standard_input_is_refused(work):
    (work / "bad.atlas").write_text(".program bad\n  add.f32 r0, r1\n  exit\n")
    with open(work / "bad.atlas", "rb") as program:
        result = run("check", "-", cwd=work, stdin=program)
    assert result.returncode == 1 and re.fullmatch(r"hologram: -:2:\d+: .*\n", result.stderr)


def test_both_forms(work):
    assert run("asm", "saxpy.atlas", "-o", "saxpy.atb", cwd=work).returncode == 0
    text = run("dis", "saxpy.atb", cwd=work).stdout
    assert text == run("dis", "saxpy.atlas", cwd=work).stdout
    assert run("dis", "saxpy.atb", "-o", "again.atlas", cwd=work).returncode == 0
    assert (work / "again.atlas").read_text() == text
    assert run("asm", "saxpy.atb", "--output", "again.atb", cwd=work).returncode == 0
    assert (work / "again.atb").read_bytes() == (work / "saxpy.atb").read_bytes()
    assert run("check", "saxpy.atb", cwd=work).returncode == 0
    arguments = [a.replace("saxpy.atlas", "saxpy.atb") for a in SAXPY_RUN]
    assert run(*arguments, "--out", "y=out.npy", cwd=work).returncode == 0
    assert np.load(work / "out.npy")[1, 2] == 11


def test_broken_binary(work):
    run("asm", "saxpy.atlas", "-o", "saxpy.atb", cwd=work)
    good = (work / "saxpy.atb").read_bytes()
    (work / "cut.atb").write_bytes(good[:-7])
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    (work / "flipped.atb").write_bytes(flipped)
    for name in ("cut.atb", "flipped.atb"):
        result = run("check", name, cwd=work)
        assert result.returncode == 1 and result.stderr.startswith(f"hologram: {name}: ") and result.stderr.count("\n") == 1


def test_output_cannot_be_written(work):
    refused(1, "nowhere/s.atb: cannot write: No such file or directory", "asm", "saxpy.atlas", "-o", "nowhere/s.atb", cwd=work)
    refused(1, "nowhere/s: cannot write: No such file or directory", "dis", "saxpy.atlas", "-o", "nowhere/s", cwd=work)


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")


@pytest.mark.posix  # it opens the link
@needs_full
def test_what_was_there_is_not_removed(work):
    (work / "full").symlink_to("/dev/full")
    for arguments in (("asm", "saxpy.atlas", "-o", "full"), (*SAXPY_RUN, "--out", "y=full")):
        refused(1, "full: cannot write: No space left on device", *arguments, cwd=work)
        assert (work / "full").is_symlink() and Path("/dev/full").exists()


def test_help_names_every_target():
    """The text of the help and the table that the backends make are the same."""
    offered = re.search(r"hologram emit --target (\S+) PROGRAM", run("emit").stderr).group(1)
    assert f"hologram emit --target {offered} [--capability N] PROGRAM\n" in run("emit", "--help").stdout


@needs_full
@pytest.mark.parametrize("arguments", [
    ("--help",), ("help", "run"), ("run", "--help"), ("--version",), ("check", "saxpy.atlas"), ("dis", "saxpy.atlas"),
    ("emit", "--target", "ptx", "saxpy.atlas"), ("info",),
], ids=" ".join)
def test_full_standard_output(work, arguments):
    (work / "full").symlink_to("/dev/full")
    with open(work / "full", "wb") as full:
        result = subprocess.run([CLI, *arguments], cwd=work, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (1, "hologram: cannot write to the standard output\n")


@pytest.mark.posix  # resource.setrlimit
def test_no_half_a_file_is_left(work):
    """A file that the command made is removed where it cannot be written to its end; one that was there is not."""
    resource = pytest.importorskip("resource", reason="there is no limit on the size of a file here")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))

    (work / "old.atb").write_bytes(b"")
    for name in ("new.atb", "old.atb"):
        result = subprocess.run([CLI, "asm", "saxpy.atlas", "-o", name], cwd=work, preexec_fn=limit, capture_output=True, text=True)
        assert (result.returncode, result.stderr) == (1, f"hologram: {name}: cannot write: File too large\n")
    assert not (work / "new.atb").exists() and (work / "old.atb").exists()


def test_info(engine):
    text = run("info").stdout
    report = json.loads(run("info", "--json").stdout)
    metal, cuda, cpu = report["backends"]
    assert [b["name"] for b in (metal, cuda, cpu)] == ["metal", "cuda", "cpu"]
    assert "metal: Metal is Apple's: this system has no Objective-C runtime with Metal\n" in text
    assert not metal["available"] and cpu["available"]
    if cuda["available"]:
        pytest.skip("this machine has CUDA, which is chosen before the CPU")
    assert f"cuda: {cuda['reason']}\n" in text and report["backend"] == "cpu"
    assert engines.is_report_of(engine, report["engine"]) and report["max_block_lanes"] == 1024
    assert report["selection"].endswith("cpu: chosen") and report["compute_units"] >= 1


def test_info_names_bad_settings(monkeypatch):
    for name in ("HOLOGRAM_NUM_THREADS", "HOLOGRAM_STREAM_BYTES"):
        monkeypatch.delenv(name, raising=False)
    if json.loads(run("info", "--json").stdout)["backend"] != "cpu":
        pytest.skip("this machine has CUDA, and these are settings of the CPU")
    assert json.loads(run("info", "--json").stdout)["settings"] is None and "settings" not in run("info").stdout
    monkeypatch.setenv("HOLOGRAM_NUM_THREADS", 40 * "9")
    monkeypatch.setenv("HOLOGRAM_STREAM_BYTES", "y")
    settings = ("cpu: HOLOGRAM_NUM_THREADS is not a number from 1 to 256 and is ignored; "
                "HOLOGRAM_STREAM_BYTES is not a number of bytes and is ignored")
    assert run("info").stdout.endswith(f"\nsettings   {settings}\n")
    assert json.loads(run("info", "--json").stdout)["settings"] == settings


def test_info_of_a_program(work, engine):
    text = run("info", "saxpy.atlas", cwd=work).stdout
    report = json.loads(run("info", "--json", "saxpy.atlas", cwd=work).stdout)
    assert report["program"] == "saxpy" and run("hash", "saxpy.atlas", cwd=work).stdout.startswith(report["hash"] + "  ")
    assert report["block"] == [0, 0, 0] and "block      any\n" in text
    names = ("name", "kind", "type", "access", "required")
    assert [[p[name] for name in names] for p in report["parameters"]] == [
        ["x", "buffer", "f32", "in", True], ["y", "buffer", "f32", "inout", True], ["a", "scalar", "f32", None, True]]
    assert "parameters x: buffer f32 in\n           y: buffer f32 inout\n           a: scalar f32\n" in text
    if report["backend"] != "cpu":
        pytest.skip("this machine has CUDA, which is chosen before the CPU")
    assert engines.is_report_of(engine, report["engine"]) and f"engine     {report['engine']}\n" in text
    asked = engine.split(":")[0]
    if asked in ("interp", "tile"):
        assert report["why"] == f"HOLOGRAM_CPU_ENGINE is '{asked}'" and f"why        {report['why']}\n" in text
    elif report["engine"].startswith("native"):
        assert report["why"] is None and "why" not in text


def test_notes(work):
    """Lines that machine code is slow at: what they are, behind the time and in reports."""
    (work / "gather.atlas").write_text(
        ".program gather\n.buffer i u32 in\n.buffer x f32 in\n.buffer y f32 out\n    ldg.u32 r0, [i + lane]\n    ldg.f32 r1, [x + r0]\n"
        "    stg.f32 [y + lane], r1\n    exit\n")
    sizes = [word for name in "ixy" for word in ("--size", f"{name}=4")]
    options = ("run", "gather.atlas", "--lanes", "4", *sizes, "--engine", "native", "--backend", "cpu")
    report = json.loads(run(*options, "--json", cwd=work).stdout)
    if not report["engine"].startswith("native"):
        pytest.skip("this machine has no machine code")
    assert report["notes"] == "line 6 (ldg) accesses memory lane by lane: neighbouring lanes have no neighbouring elements"
    assert f" ({report['engine']} engine: {report['notes']})\n" in run(*options, "--time", cwd=work).stdout
    with engines.chosen("native"):
        info = json.loads(run("info", "--json", "gather.atlas", cwd=work).stdout)
        if info["backend"] == "cpu":
            assert info["notes"] == report["notes"] and info["why"] is None
            assert f"notes      {report['notes']}\n" in run("info", "gather.atlas", cwd=work).stdout


def test_info_of_bad_programs(work):
    assert run("info", "none.atlas", cwd=work).stderr == "hologram: none.atlas: cannot open: No such file or directory\n"
    assert run("info", "a", "b").stderr == ("hologram: one program at a time: 'b' comes after 'a' "
                                            "(see hologram info --help)\n")
    (work / "library.atlas").write_text(".entry exp f32 f\nf: ret\n")
    result = run("info", "library.atlas", cwd=work)
    assert result.returncode == 1 and "is a library of functions (.entry) and cannot be launched" in result.stderr


# ---- .npy files ----------------------------------------------------------------------------------------------------------------


def npy(header, data=b"", version=(1, 0), length=None):
    header = header.encode() if isinstance(header, str) else header
    size = len(header) if length is None else length
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version[0] == 1 else "<I", size) + header + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
EIGHT = struct.pack("<ff", 1, 2)


@pytest.mark.parametrize("content", [
    npy(GOOD, EIGHT), npy(GOOD, EIGHT, (2, 0)), npy(GOOD, EIGHT, (3, 0)),
    npy("{'shape':(2L,),\"descr\":\"<f4\",'fortran_order':False}", EIGHT),
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1), }" + " " * 100 + "\n", EIGHT),
])
def test_npy_accepted(work, content):
    (work / "x.npy").write_bytes(content)
    assert run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work).stderr == ""
    assert np.load(work / "out.npy").ravel().tolist() == [1, 4]


@pytest.mark.parametrize("sentence, content", [
    ("is not a .npy file", b"\x93NUMP"),
    ("is not a .npy file", b"PK\3\4" + bytes(40)),
    ("is of .npy version 4.0; expected 1.0, 2.0 or 3.0", npy(GOOD, EIGHT, (4, 0))),
    ("is of .npy version 1.1; expected 1.0, 2.0 or 3.0", npy(GOOD, EIGHT, (1, 1))),
    ("is not a valid .npy file: it ends in its header", npy(GOOD, length=1000)),
    ("is not a valid .npy file: it ends in its header", npy(GOOD, version=(2, 0), length=2**32 - 1)),
    ("is not a valid .npy file: its header is not a dictionary", npy("[]")),
    ("is not a valid .npy file: its header is not a dictionary", npy("{3: 4}")),
    ("is not a valid .npy file: its header does not end", npy("{'descr': '<f4'")),
    ("is not a valid .npy file: its header lacks descr, fortran_order or shape", npy("{'descr': '<f4'}")),
    ("is not a valid .npy file: its header gives 'descr' twice", npy("{'descr': '<f4', 'descr': '<f4'}")),
    ("is not a valid .npy file: its header has the unknown key 'other'", npy("{'other': '<f4'}")),
    ("is not a valid .npy file: there is more after its header's dictionary", npy(GOOD.strip() + "x")),
    ("is not a valid .npy file: its header gives no dtype", npy("{'descr': 4}")),
    ("is not a valid .npy file: its header gives no shape", npy("{'shape': 4}")),
    ("is not a valid .npy file: its shape is not a list of sizes", npy("{'shape': (-4,)}")),
    ("is not a valid .npy file: its shape is not a list of sizes", npy("{'shape': (99999999999999999999,)}")),
    ("is not a valid .npy file: its shape does not end", npy("{'shape': (4 5)}")),
    ("is not a valid .npy file: its fortran_order is neither True nor False", npy("{'fortran_order': 0}")),
    ("has more than 32 dimensions", npy("{'shape': (" + "1," * 33 + ")}")),
    ("claims a shape too large to exist", npy("{'shape': (4294967296, 4294967296)}")),
    ("claims a shape too large to exist", npy("{'shape': (18446744073709551615,)}")),
    ("is in Fortran order; save it in C order (numpy.ascontiguousarray)", npy(GOOD.replace("False", "True"), EIGHT)),
    ("holds big-endian data (dtype '>f4'); convert it to little-endian first", npy(GOOD.replace("<", ">"), EIGHT)),
    ("holds records (a structured dtype); expected an array of plain numbers", npy("{'descr': [('a', '<f4')]}")),
    ("has dtype '<c8'; expected numbers of an Atlas type, such as '<f4', '<i4' or '|u1'", npy(GOOD.replace("f4", "c8"), EIGHT)),
    ("has dtype '|O'; expected numbers of an Atlas type, such as '<f4', '<i4' or '|u1'", npy(GOOD.replace("<f4", "|O"), EIGHT)),
    ("holds 7 bytes of data where its shape and dtype need 8", npy(GOOD, EIGHT[:7])),
    ("goes on after the 8 bytes of data that its shape and dtype need", npy(GOOD, EIGHT + b"x")),
    ("goes on after the 8 bytes of data that its shape and dtype need", npy(GOOD, EIGHT + bytes(100000))),
    ("holds 0 bytes of data where its shape and dtype need 2305843009213693952",
     npy(GOOD.replace("(2,)", "(576460752303423488,)"))),
])
def test_npy_refused(work, sentence, content):
    (work / "x.npy").write_bytes(content)
    refused(1, f"x.npy: the file {sentence}", "run", "square.atlas", "--buffer", "x=x.npy", cwd=work)


@pytest.mark.posix
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="there is no /dev/stdin here")
@pytest.mark.parametrize("most, sentence, start, arguments", [
    (257, "the file is larger than the 256 MiB that a program may take", b"", ("check", "/dev/stdin")),
    (1, "the file is not a .npy file", b"", ("run", "square.atlas", "--buffer", "x=/dev/stdin")),
    (1, "the file goes on after the 8 bytes of data that its shape and dtype need", npy(GOOD, EIGHT),
     ("run", "square.atlas", "--buffer", "x=/dev/stdin")),
], ids=["program", "no array", "array"])
def test_endless_input(work, most, sentence, start, arguments):
    """Zeros without an end, as from /dev/zero: after `most` MiB at the latest the command has seen enough."""
    command = subprocess.Popen([CLI, *arguments], cwd=work, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    taken = 0
    with pytest.raises(BrokenPipeError):
        command.stdin.write(start)
        while taken < 400:
            command.stdin.write(bytes(2**20))
            taken += 1
    assert command.communicate(timeout=60)[1].decode() == f"hologram: /dev/stdin: {sentence}\n"
    assert command.returncode == 1 and taken <= most


def test_npy_fuzz(work):
    """Cut and flipped files: an exit code and at most one sentence, never a crash or a wild allocation."""
    random.seed(7)
    np.save(work / "good.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    good = (work / "good.npy").read_bytes()
    variants = [good[:n] for n in range(0, len(good), 3)]
    for _ in range(250):
        broken = bytearray(good)
        for _ in range(random.randint(1, 4)):
            broken[random.randrange(len(broken) - 48 if random.random() < 0.9 else len(broken))] = random.choice(
                [random.randrange(256), ord(random.choice("(){}',:0123456789<>|fiuTF "))])
        variants.append(bytes(broken))
    for content in variants:
        (work / "x.npy").write_bytes(content)
        result = run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work)
        assert result.returncode in (0, 1) and result.stderr.count("\n") == (1 if result.returncode else 0), content
        if result.returncode == 0:
            assert np.load(work / "out.npy").dtype == np.float32
