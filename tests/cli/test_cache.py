"""`hologram cache`, on entries that this file writes itself: a second writing-down of the form that the C code has."""

import hashlib
import json
import os
import struct
import subprocess
from pathlib import Path

import pytest

CLI = os.environ.get("HOLOGRAM_CLI", "hologram")
DOUBLE = Path(CLI).resolve().parent / "tests" / "sim"


def entry(program, target, driver, compiler, specialisation, payload):
    """File name and bytes of an entry."""
    key = program + struct.pack("<IIII", compiler, len(target), len(driver), len(specialisation))
    key += target + driver + specialisation
    body = b"HGKERNEL" + struct.pack("<IIQ", 1, len(key), len(payload)) + key + payload
    return hashlib.sha256(key).hexdigest() + ".kernel", body + hashlib.sha256(body).digest()


def cache(*arguments, **environment):
    settings = {k: v for k, v in os.environ.items() if not k.startswith("HOLOGRAM_CACHE")} | environment
    return subprocess.run([CLI, "cache", *arguments], capture_output=True, text=True, env=settings, timeout=60)


@pytest.fixture
def folder(tmp_path):
    """A cache folder with three entries, the middle one damaged, and a file that is not the cache's."""
    path = tmp_path / "cache"
    path.mkdir(mode=0o700)
    for i, seconds in enumerate((1_000_000_000, 1_000_000_060, 1_000_000_120)):
        name, data = entry(bytes([i]) * 32, b"sm_90", b'cuda "12"', 7 + i, b"spec", bytes(100 * i))
        (path / name).write_bytes(data[:-1] if i == 1 else data)
        (path / name).chmod(0o600)
        os.utime(path / name, (seconds, seconds))
    (path / "notes.kernel").write_text("mine")
    return path


def test_ls(folder):
    result = cache("ls", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.returncode == 0 and result.stderr == ""
    assert result.stdout == (
        f"{'02' * 32}         322  2001-09-09 01:48:40  sm_90, cuda \"12\", compiler 9\n"
        f"damaged{' ' * 57}         221  2001-09-09 01:47:40\n"
        f"{'00' * 32}         122  2001-09-09 01:46:40  sm_90, cuda \"12\", compiler 7\n"
        f"3 entries, 1 damaged, 665 of at most 268435456 bytes in {folder}\n")
    assert len(list(folder.iterdir())) == 4


def test_ls_json(folder):
    result = cache("ls", "--json", HOLOGRAM_CACHE_DIR=str(folder), HOLOGRAM_CACHE_SIZE="5000")
    report = json.loads(result.stdout)
    assert (report["folder"], report["problem"], report["byte_cap"]) == (str(folder), None, 5000)
    assert (report["bytes"], report["damaged"]) == (665, 1)
    assert [e["state"] for e in report["entries"]] == ["ok", "damaged", "ok"]
    first = report["entries"][0]
    assert (folder / first.pop("file")).exists()
    assert first == {"state": "ok", "bytes": 322, "used": 1_000_000_120, "program": "02" * 32, "target": "sm_90",
                     "driver": 'cuda "12"', "compiler": 9, "specialisation_bytes": 4, "payload_bytes": 200}


def test_verify_removes_what_is_damaged(folder):
    result = cache("verify", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.returncode == 1 and len(list(folder.iterdir())) == 3
    assert result.stdout.endswith(f"3 entries, 1 damaged and removed, 665 of at most 268435456 bytes in {folder}\n")
    result = cache("verify", "--json", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.returncode == 0 and json.loads(result.stdout)["damaged"] == 0


def test_clear_leaves_files_of_others(folder):
    (folder / ("0" * 64 + ".12-3.tmp")).write_text("left behind")
    result = cache("clear", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.returncode == 0 and result.stdout == f"removed 4 files, 676 bytes, from {folder}\n"
    assert [p.name for p in folder.iterdir()] == ["notes.kernel"]
    result = cache("clear", "--json", HOLOGRAM_CACHE_DIR=str(folder))
    assert json.loads(result.stdout)["removed"] == 0


def test_entry_under_a_wrong_name(folder):
    name, data = entry(b"p" * 32, b"", b"", 1, b"", b"")
    (folder / ("f" * 64 + ".kernel")).write_bytes(data)
    (folder / ("f" * 64 + ".kernel")).chmod(0o600)
    report = json.loads(cache("ls", "--json", HOLOGRAM_CACHE_DIR=str(folder)).stdout)
    assert report["damaged"] == 2


def test_absent_folder(tmp_path):
    for action in ("ls", "verify", "clear"):
        result = cache(action, HOLOGRAM_CACHE_DIR=str(tmp_path / "none"))
        assert result.returncode == 0 and result.stderr == "" and not (tmp_path / "none").exists()


@pytest.mark.parametrize("action", ["ls", "verify", "clear"])
def test_off(action):
    result = cache(action, HOLOGRAM_CACHE="0")
    assert result.returncode == 0
    assert result.stdout == "the kernel cache on disk is not used: HOLOGRAM_CACHE=0 turns it off\n"
    report = json.loads(cache(action, "--json", HOLOGRAM_CACHE="0").stdout)
    assert report == {"folder": "", "problem": "HOLOGRAM_CACHE=0 turns it off", "remark": None, "byte_cap": 268435456}


def test_bad_size(folder):
    remark = "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored"
    result = cache("ls", HOLOGRAM_CACHE_DIR=str(folder), HOLOGRAM_CACHE_SIZE="abc")
    assert result.returncode == 0 and result.stdout.startswith(remark + "\n") and "of at most 268435456 bytes" in result.stdout
    report = json.loads(cache("ls", "--json", HOLOGRAM_CACHE_DIR=str(folder), HOLOGRAM_CACHE_SIZE="abc").stdout)
    assert (report["remark"], report["problem"], report["byte_cap"]) == (remark, None, 268435456)


def test_folder_that_cannot_be(tmp_path):
    file = tmp_path / "file"
    file.write_text("mine")
    for path, problem in ((file, "its path is not a folder"), (file / "none", "its folder cannot be made")):
        result = cache("ls", HOLOGRAM_CACHE_DIR=str(path))
        assert result.returncode == 0 and result.stdout.startswith(f"the kernel cache on disk is not used: {problem}\n")
        assert json.loads(cache("ls", "--json", HOLOGRAM_CACHE_DIR=str(path)).stdout)["problem"] == problem


def test_folder_too_long(tmp_path):
    """No other folder is emptied in its place."""
    entry_path = tmp_path / "hologram" / entry(b"p" * 32, b"", b"", 1, b"", b"")[0]
    entry_path.parent.mkdir(mode=0o700)
    entry_path.write_text("an entry")
    result = cache("clear", HOLOGRAM_CACHE_DIR=5000 * "x", XDG_CACHE_HOME=str(tmp_path))
    assert result.stdout == "the kernel cache on disk is not used: HOLOGRAM_CACHE_DIR is too long\n"
    assert entry_path.exists()


@pytest.mark.posix  # on Windows a folder inherits who may enter it
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_folder_open_to_others(folder, mode):
    folder.chmod(mode)
    result = cache("ls", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.stdout.startswith("the kernel cache on disk is not used: its folder belongs to another user or others may write")
    problem = json.loads(cache("verify", "--json", HOLOGRAM_CACHE_DIR=str(folder)).stdout)["problem"]
    assert problem.startswith("its folder belongs to another user or others may write")


@pytest.mark.posix
def test_refused_entries(folder):
    """A link, a pipe, a folder and a file that others may write to: shown, never read; `clear` removes what it can."""
    names = [entry(bytes([i]) * 32, b"", b"", 1, b"", b"") for i in range(10, 14)]
    (folder / names[0][0]).symlink_to("/etc/passwd")
    os.mkfifo(folder / names[1][0])
    (folder / names[2][0]).mkdir()
    (folder / names[3][0]).write_bytes(names[3][1])
    (folder / names[3][0]).chmod(0o666)
    result = cache("ls", HOLOGRAM_CACHE_DIR=str(folder))
    assert result.returncode == 0 and result.stdout.count("\nrefused  ") + result.stdout.startswith("refused  ") == 4
    assert "4 refused: links, no regular files, or such as others may have written" in result.stdout
    result = cache("verify", "--json", HOLOGRAM_CACHE_DIR=str(folder))
    report = json.loads(result.stdout)
    assert result.returncode == 1 and (report["refused"], report["damaged"]) == (4, 1)
    assert sorted(e["file"] for e in report["entries"] if e["state"] == "refused") == sorted(name for name, _ in names)
    cache("clear", HOLOGRAM_CACHE_DIR=str(folder))
    assert sorted(p.name for p in folder.iterdir()) == sorted([names[2][0], "notes.kernel"]) and os.path.exists("/etc/passwd")


# ---- fill --------------------------------------------------------------------------------------------------------------------------

def fill(*arguments, **environment):
    """Without a GPU, but for one that the environment brings."""
    return cache("fill", *arguments, **{"CUDA_VISIBLE_DEVICES": "-1"} | environment)


def test_fill_without_a_gpu(tmp_path):
    folder = str(tmp_path / "none")
    result = fill(HOLOGRAM_CACHE_DIR=folder)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == f"there is no GPU here; the kernels of CPUs are not kept on disk\n0 new entries, 0 bytes in {folder}\n"
    report = json.loads(fill("--json", HOLOGRAM_CACHE_DIR=folder).stdout)
    assert (report["devices"], report["new_entries"], report["bytes"], report["complete"]) == ([], 0, 0, True)


def test_fill_without_a_cache():
    result = fill("--json", HOLOGRAM_CACHE="0")
    assert result.returncode == 1 and json.loads(result.stdout)["problem"] == "HOLOGRAM_CACHE=0 turns it off"
    assert result.stderr == "hologram: there is no kernel cache to fill: HOLOGRAM_CACHE=0 turns it off\n"


@pytest.mark.posix  # the double of libcuda
@pytest.mark.skipif(not DOUBLE.is_dir(), reason="the double of libcuda is not beside the command")
def test_fill(tmp_path):
    """On two GPUs that are alike: what the first had compiled the second finds. When the time is over the rest is left out."""
    gpus = {"HOLOGRAM_CACHE_DIR": str(tmp_path / "cache"), "LD_LIBRARY_PATH": str(DOUBLE), "CUDA_VISIBLE_DEVICES": "",
            "FAKECUDA_DEVICES": "2"}
    report = json.loads(fill("--json", "--seconds", "1", **gpus).stdout)
    first = report["devices"][0]
    assert first["kernels"] == sum(group["kernels"] for group in first["groups"])
    left_out = 0 if report["complete"] else 16  # kernels of the computation that the time cut short
    assert 0 <= report["new_entries"] <= first["kernels"] + left_out
    result = fill("--seconds", "1", **gpus)
    assert (result.returncode, result.stderr) == (0, "") and result.stdout.startswith("cuda: Fake GPU 0")
    is_over = "the time is over: the rest is left out\n" in result.stdout  # a slow machine's element-wise ones may be cut short, too
    assert is_over or result.stdout.count("  element-wise           72 computations,   72 kernels\n") == 2
    assert "  element-wise " in result.stdout
    assert json.loads(cache("verify", "--json", HOLOGRAM_CACHE_DIR=gpus["HOLOGRAM_CACHE_DIR"]).stdout)["damaged"] == 0


@pytest.mark.parametrize("sentence, arguments", [
    ("what about it? hologram cache ls|verify|clear|fill", ()),
    ("there is no action 'list': ls, verify, clear or fill", ("list",)),
    ("--seconds is for fill, not for ls", ("ls", "--seconds", "5")),
    ("--seconds takes a number from 1 to 86400, not '0'", ("fill", "--seconds", "0")),
    ("--seconds takes a number from 1 to 86400, not '86401'", ("fill", "--seconds", "86401")),
    ("--seconds takes a number from 1 to 86400, not 'soon'", ("fill", "--seconds", "soon", "--json")),
    ("--seconds takes a number from 1 to 86400, not ''", ("fill", "--seconds")),
    ("there is no option '-x'", ("ls", "-x")),
    ("one action at a time: 'clear' comes after 'ls'", ("ls", "clear")),
])
def test_usage(sentence, arguments):
    result = cache(*arguments)
    assert result.returncode == 2 and result.stderr == f"hologram: {sentence} (see hologram cache --help)\n"
