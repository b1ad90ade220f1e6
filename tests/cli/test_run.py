"""`hologram run`, as a user meets it: results, which backend, exit codes, and one clear sentence for each kind of bad input."""

import json
import os
import re
import shutil
from pathlib import Path

import engines
import numpy as np
import pytest
from command import CLI, LANES, SAXPY, SAXPY_RUN, refused, run

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
    ("missing.npy: cannot be read: there is no such file, it is no regular one, or it may not be read",
     ("saxpy.atlas", "--buffer", "x=missing.npy", *Y, *A)),
    ("d.npy: dtype is '<f8'; buffer 'x' is f32 and needs '<f4'", ("saxpy.atlas", "--buffer", "x=d.npy", *Y, *A)),
    ("saxpy.atlas: is no .npy file", ("saxpy.atlas", "--buffer", "x=saxpy.atlas", *Y, *A)),
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
    ("nowhere/o.npy: cannot be written: its folder is not there, may not be written to, or is full",
     ("saxpy.atlas", *X, *Y, *A, "--out", "y=nowhere/o.npy")),
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
    refused(1, "empty: is no .npy file", "run", "square.atlas", "--buffer", "x=empty", cwd=work)


def test_library_cannot_run(work):
    (work / "lib.atlas").write_text(".entry exp f32 f\nf:\nret\n")
    refused(1, "lib.atlas: a library of functions (.entry) cannot be run", "run", "lib.atlas", cwd=work)
