"""Files of arrays that `hologram run` reads: what it accepts, each refusal with its sentence, and broken files."""

import random
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command import CLI, refused, run


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
