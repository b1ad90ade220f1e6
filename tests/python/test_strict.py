"""hg.strict(): what goes on silently otherwise is an error that says what to write."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import hologram as hg
from double_of_cuda import DOUBLE, needed

UNALIGNED = np.frombuffer(bytes(17), "u1")[1:].view("f4")


def silent_copies():
    x = hg.asarray(np.arange(6, dtype="f4").reshape(2, 3))
    shared = x + 1
    held = shared.numpy()
    e = hg.default_executor()
    program = hg.Program(".program p\n.buffer x f32 in\n.buffer y f32 out\n  ldg.f32 r0, [x + lane]\n  stg.f32 [y + lane], r0\n  exit\n")
    out = np.zeros(6, "f4")
    return {"unaligned": lambda: hg.asarray(UNALIGNED), "C order": lambda: struct.unpack_from("6f", x.T),
            "assignment": lambda: shared.__setitem__(0, held[0, 0].item()),
            "parameter": lambda: program.run(e, 6, x=x.T, y=out)}


@pytest.mark.parametrize("what", ["unaligned", "C order", "assignment", "parameter"])
def test_hidden_copies(what):
    silent_copies()[what]()
    action = silent_copies()[what]
    with hg.strict(), pytest.raises(hg.StrictError, match="cop"):
        action()
    action()


def test_what_is_no_hidden_copy():
    with hg.strict():
        x = hg.asarray(np.arange(6, dtype="f4").reshape(2, 3))
        assert hg.array(UNALIGNED).tolist() == hg.asarray(UNALIGNED, copy=True).tolist() == [0] * 4
        assert x.T.tolist() == [[0, 3], [1, 4], [2, 5]] and np.asarray(x.T).shape == (3, 2)
        y = hg.array(x)
        y[0] = 7
        assert hg.softmax(x @ x.T + y[:, :2]).shape == (2, 2)
        assert np.array(x, copy=True)[0, 0] == 0 and str(x.T)


def test_it_nests_and_ends():
    with hg.strict():
        with hg.strict(False):
            hg.asarray(UNALIGNED)
        with pytest.raises(hg.StrictError):
            hg.asarray(UNALIGNED)
    hg.asarray(UNALIGNED)
    assert issubclass(hg.StrictError, hg.Error)


def run(code, **environment):
    done = subprocess.run([sys.executable, "-c", "import hologram as hg, numpy as np\n" + code], capture_output=True, text=True,
                          timeout=60, env={**os.environ, "HOLOGRAM_CACHE": "0", **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout


@needed
def test_a_gpu_that_fails_is_no_cpu():
    code = ("print(hg.Executor().backend)\nhg.strict()\n"
            "try: hg.Executor()\nexcept hg.StrictError as e: print(e)\nprint(hg.Executor('cpu').backend)\n"
            "try: hg.ones(3) + hg.asarray(np.ones(3))\nexcept hg.StrictError as e: print(e)\n")
    first, refused, named, again = run(code, LD_LIBRARY_PATH=DOUBLE, FAKECUDA_FAIL="cuDevicePrimaryCtxRetain:0=2").splitlines()
    assert first == named == "cpu" and refused.startswith("'auto' is cpu here, though there is a device of cuda") and again == refused
    assert run("hg.strict()\nprint(hg.Executor().backend)\n", LD_LIBRARY_PATH=DOUBLE) == "cuda\n"


@needed
def test_copies_from_and_to_a_gpu():
    code = ("e = hg.Executor('cuda')\nx = hg.array(np.ones(3, 'f4'), device=e) + 1\nhg.strict()\n"
            "for f in (lambda: x.numpy(), lambda: np.asarray(x), lambda: hg.asarray(np.ones(3, 'f4'), device=e)):\n"
            "    try: f()\n    except hg.StrictError as error: print('copied' in str(error) or 'copies' in str(error))\n"
            "print(x.tolist(), x.to_device(hg.Executor('cpu')).numpy(), hg.array(np.ones(1), device=e).tolist())\n")
    assert run(code, LD_LIBRARY_PATH=DOUBLE) == "True\nTrue\nTrue\n[2.0, 2.0, 2.0] [2. 2. 2.] [1.0]\n"


def test_a_slower_engine():
    code = ("p = hg.Program('.program p\\n.buffer x f32 inout\\n  ldg.f32 r0, [x + lane]\\n  stg.f32 [x + lane], r0\\n  exit\\n')\n"
            "e = hg.Executor('cpu', engine='tile')\nhg.strict()\np.run(e, 3, x=np.ones(3, 'f4'))\n"
            "print((hg.asarray(np.ones(3), device=e) + 1).tolist())\n")
    assert run(code) == "[2.0, 2.0, 2.0]\n"  # asked for by name


MIXED = {
    "arrays": lambda x, k, m: x * k, "a bool": lambda x, k, m: m + x, "a comparison": lambda x, k, m: k < x,
    "a choice": lambda x, k, m: hg.where(m, x, k), "a float": lambda x, k, m: k * 0.5,
    "NumPy's float": lambda x, k, m: k * np.float32(2), "an int beside bools": lambda x, k, m: m * 2,
    "parts": lambda x, k, m: hg.stack([x, k]), "inputs of a function": lambda x, k, m: hg.mse(x, k),
}  # fmt: skip


@pytest.mark.parametrize("what", MIXED)
def test_kinds_that_mix(what):
    x, k, m = hg.ones(3), hg.arange(3), hg.asarray([True, False, True])
    MIXED[what](x, k, m)
    with hg.strict(), pytest.raises(hg.StrictError, match=r"cast one of them, as in x\.astype\('(float32|int64)'\)"):
        MIXED[what](x, k, m)


def test_what_is_no_mix_of_kinds():
    x, k, m = hg.ones(3), hg.arange(3), hg.asarray([True, False, True])
    with hg.strict():
        for made in (x * 2, x < 2**70, k / k, k / 2, hg.sqrt(k), hg.where(m, k, 1), k.astype("int8") + k, hg.sum(m), k + True):
            made.compute()
