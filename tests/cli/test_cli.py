"""The `hologram` command, as a user meets it: its usage, and check, asm, dis and info."""

import json
import re
import signal
import subprocess
from pathlib import Path

import engines
import numpy as np
import pytest
from command import CLI, SAXPY_RUN, refused, run

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
    refused(1, "full: cannot write: No space left on device", "asm", "saxpy.atlas", "-o", "full", cwd=work)
    refused(1, "full: cannot be written: its folder is not there, may not be written to, or is full",
            *SAXPY_RUN, "--out", "y=full", cwd=work)
    assert (work / "full").is_symlink() and Path("/dev/full").is_char_device()


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
