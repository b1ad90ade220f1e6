"""Files of arrays that `hologram run` reads: what it accepts, each refusal with its sentence, and broken files."""

import io
import os
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
    npy(GOOD, EIGHT), npy(GOOD, EIGHT, (2, 0)), npy(GOOD.replace("False", "True"), EIGHT),
    npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1), }" + " " * 100 + "\n", EIGHT),
])
def test_npy_accepted(work, content):
    (work / "x.npy").write_bytes(content)
    assert run("run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=out.npy", cwd=work).stderr == ""
    assert np.load(work / "out.npy").ravel().tolist() == [1, 4]


# Files are the library's to read: tests/ops/test_tensor_files.py has all that it says of them.
@pytest.mark.parametrize("sentence, content", [
    ("is no .npy file", b"PK\3\4" + bytes(40)),
    ("its elements are '>f4'; expected little-endian numbers such as '<f4'", npy(GOOD.replace("<", ">"), EIGHT)),
    ("has more than 8 dimensions, the most of a tensor", npy("{'shape': (" + "1," * 9 + ")}")),
    ("has 7 bytes of elements where its shape and type need 8", npy(GOOD, EIGHT[:7])),
    ("is in Fortran order; save it in C order (numpy.ascontiguousarray)",
     npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }\n", EIGHT + EIGHT)),
])
def test_npy_refused(work, sentence, content):
    (work / "x.npy").write_bytes(content)
    refused(1, f"x.npy: {sentence}", "run", "square.atlas", "--buffer", "x=x.npy", cwd=work)


def test_bf16_of_others(work):
    """Two bytes without a meaning to NumPy, as hologram.save and ml_dtypes write them; an output is written as it was given."""
    (work / "copy.atlas").write_text(".buffer x bf16 inout\nldg.bf16 r0, [x + lane]\nstg.bf16 [x + lane], r0\nexit\n")
    for name in ("<u2", "<V2"):
        content = npy(GOOD.replace("<f4", name), EIGHT[2:6])
        (work / "x.npy").write_bytes(content)
        assert run("run", "copy.atlas", "--buffer", "x=x.npy", "--out", "x=out.npy", cwd=work).stderr == ""
        assert name.encode() in (work / "out.npy").read_bytes() and (work / "out.npy").read_bytes()[-4:] == content[-4:]


@pytest.mark.posix
@pytest.mark.skipif(not Path("/dev/stdin").exists(), reason="there is no /dev/stdin here")
def test_endless_program(work):
    """Zeros without an end, as from /dev/zero: after 257 MiB at the latest the command has seen enough."""
    command = subprocess.Popen([CLI, "check", "/dev/stdin"], cwd=work, stdin=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
    taken = 0
    with pytest.raises(BrokenPipeError):
        while taken < 400:
            command.stdin.write(bytes(2**20))
            taken += 1
    assert command.communicate(timeout=60)[1].decode() == \
        "hologram: /dev/stdin: the file is larger than the 256 MiB that a program may take\n"
    assert command.returncode == 1 and taken <= 257


@pytest.mark.posix
def test_pipes(work):
    """An array is written to a pipe, but not read from one: how long it is has to be known first."""
    np.save(work / "x.npy", np.float32([1, 2]))
    os.mkfifo(work / "pipe")
    refused(1, "pipe: cannot be read: there is no such file, it is no regular one, or it may not be read",
            "run", "square.atlas", "--buffer", "x=pipe", cwd=work)
    done = subprocess.run([CLI, "run", "square.atlas", "--buffer", "x=x.npy", "--out", "y=/dev/stdout"], cwd=work, capture_output=True)
    assert done.returncode == 0 and np.load(io.BytesIO(done.stdout)).tolist() == [1, 4]


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
