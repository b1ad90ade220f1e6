"""hg.warm: what a function will compute is compiled before, and nothing else happens: no array has another value afterwards."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import hologram as hg
from double_of_cuda import DOUBLE, needed


def test_what_it_says():
    warmed = hg.warm(lambda x, w: hg.softmax(x @ w), hg.Spec((4, 8)), w=hg.ones((8, 3)))
    assert warmed.computations == 1 and warmed.kernels >= 1 and warmed.seconds > 0
    assert repr(warmed).startswith("Warmed(computations=1, kernels=")
    assert repr(hg.Spec((4, 8), "int32")) == "Spec((4, 8), 'int32')" and repr(hg.Spec(3)) == "Spec((3,), 'float32')"
    assert hg.warm(lambda: None).computations == 0


@pytest.mark.parametrize("mode", ["plain", "jit", "eager"])
def test_the_function_has_the_same_bits(mode):
    def f(x, many):
        y = hg.exp(x) * many["w"][0]
        y[1:] = 7
        y[hg.asarray([0])] += 1
        return y, (y.sum(axis=0), y.max())

    x, w = hg.asarray(np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)), hg.asarray([2, 3, 5, 7], dtype="float32")
    run = hg.jit(f) if mode == "jit" else f
    expected = [part.numpy() for part in (lambda a, b: (a, *b))(*f(x, {"w": [w]}))]
    with hg.eager(mode == "eager"):
        first = hg.warm(run, hg.Spec((3, 4)), {"w": [hg.Spec(4)]})
        assert hg.warm(run, x, {"w": [w]}).kernels == first.kernels > 0
        y, (total, most) = run(x, {"w": [w]})
    for part, right in zip((y, total, most), expected, strict=True):
        assert part.numpy().tobytes() == right.tobytes()


def test_arrays_are_what_they_were():
    """Assigned, pending, given up, captured: none has another value, and what is pending can be computed."""
    memory = np.arange(6, dtype="f4")
    shared, own = hg.asarray(memory), hg.zeros(3) + 1
    pending = hg.exp(own)
    kept = []

    def f(x):
        shared[1] = 100
        x[0] = 200
        own[:] = own + x
        kept.append(pending * 2)
        return kept[-1] + own, x.argmax()

    x = hg.asarray(np.float32([3, 1, 2]))
    hg.warm(f, x)
    hg.warm(hg.jit(f, donate=0), x)
    assert memory.tolist() == [0, 1, 2, 3, 4, 5] and shared.tolist() == [0, 1, 2, 3, 4, 5]
    assert x.tolist() == [3, 1, 2] and own.tolist() == [1, 1, 1]
    assert kept[0].tolist() == kept[1].tolist() == (2 * hg.exp(hg.ones(3))).tolist()
    assert pending.tolist() == hg.exp(hg.ones(3)).tolist()


def test_a_step_of_training():
    network = hg.nn.Sequential(hg.nn.Linear(8, 16), hg.tanh, hg.nn.Linear(16, 4))
    adam = hg.optim.Adam(0.01)
    x = hg.random.normal(hg.random.key(1), (32, 8))
    y = hg.random.normal(hg.random.key(2), (32, 4))

    def step(weights, state):
        loss, gradients = hg.value_and_grad(lambda p: hg.mse(network(p, x), y))(weights)
        return loss, *adam.update(weights, gradients, state)

    def losses(is_warm):
        weights = network.init(hg.random.key(3))
        state = adam.init(weights)
        run = hg.jit(step, donate=(0, 1))
        if is_warm:
            assert hg.warm(run, weights, state).kernels > 3
        found = []
        for _ in range(3):
            loss, weights, state = run(weights, state)
            found.append(float(loss))
        return found

    assert losses(True) == losses(False)


def test_elements_cannot_be_read():
    for read in (float, bool, lambda x: x.numpy(), lambda x: np.asarray(x.sum()), lambda x: x.sum().tolist(),
                 lambda x: x.sum().__dlpack__(), lambda x: hg.array(x.sum()).item(), lambda x: hg.ones(3)[x.argmax()],
                 lambda x: [1, 2][x.argmax()]):
        with pytest.raises(ValueError, match="hologram.warm computes nothing"):
            hg.warm(lambda x, read=read: read(x.sum()), hg.Spec(4))
    has_elements = hg.asarray(np.float32([2.5]))
    assert hg.warm(lambda x: hg.ones(3) + x.numpy()[0], has_elements).computations == 1


def test_what_a_spec_was_has_no_elements_afterwards():
    kept = []
    hg.warm(lambda x: kept.append(x + 1), hg.Spec(4))
    with pytest.raises(ValueError, match="hologram.warm computes nothing"):
        kept[0].numpy()
    hg.warm(lambda x: kept.append(x), hg.Spec(4))
    with pytest.raises(ValueError, match="hologram.warm computes nothing"):
        (kept[1] * 2).numpy()
    with pytest.raises(ValueError, match="hologram.warm computes nothing"):
        kept[1].tolist()


def test_errors():
    x = hg.exp(hg.ones(3))

    def wrong(a):
        x[0] = 5
        hg.compute(x * a)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        hg.warm(wrong, hg.Spec(3))
    assert x.tolist() == hg.exp(hg.ones(3)).tolist()
    with pytest.raises(ValueError):
        hg.warm(lambda a, b: a @ b, hg.Spec((2, 3)), hg.Spec((4, 5)))
    with pytest.raises(TypeError):
        hg.Spec("abc")
    with pytest.raises((TypeError, ValueError)):
        hg.Spec((2, -1))
    with pytest.raises(TypeError):
        hg.Spec(3, "no such type")
    with pytest.raises(TypeError):
        hg.warm()
    assert (x + 1).tolist() == (hg.exp(hg.ones(3)) + 1).tolist()


def test_another_thread_computes_meanwhile():
    is_over, wrong = threading.Event(), []

    def compute():
        n = 0
        while not is_over.is_set() or n < 5:
            n += 1
            x = hg.full(16, float(n)) + 1
            x[3] = -1
            if x.tolist() != [n + 1.0] * 3 + [-1.0] + [n + 1.0] * 12:
                wrong.append(n)

    other = threading.Thread(target=compute)
    other.start()
    for n in range(20):
        hg.warm(lambda x, n=n: hg.tanh(x * (n + 0.5)) @ x, hg.Spec((n + 2, n + 2)))
    is_over.set()
    other.join()
    assert not wrong


def test_one_call_in_another():
    inside = []

    def outer(x):
        inside.append(hg.warm(lambda a: hg.exp(a), x))
        return hg.exp(x) + 1

    assert hg.warm(outer, hg.Spec(5)).computations == 1
    assert inside[0].computations == 1


@needed
@pytest.mark.parametrize("mode", ["plain", "jit", "eager"])
def test_the_first_call_compiles_nothing(mode):
    """The double counts what the driver compiles: quickly, and in full."""
    code = """
import ctypes
import hologram as hg
mode = {mode!r}
f = lambda x, w: hg.softmax(x @ w, axis=-1) + hg.exp(x.sum())
f = hg.jit(f) if mode == "jit" else f
double = ctypes.CDLL("libcuda.so.1")
links = lambda: [double.fakecuda_links(which) for which in (0, 1)]
hg.eager(mode == "eager")
x, w = hg.asarray([[1.0] * 24] * 8), hg.asarray([[0.5] * 4096] * 24)
hg.compute(x, w)
before = links()
warmed = hg.warm(f, hg.Spec((8, 24)), hg.Spec((24, 4096)))
ready = links()
y = f(x, w)
hg.compute(y)
print(warmed.kernels > 1, ready != before, links() == ready, double.fakecuda_links(2), y.shape)
"""
    environment = os.environ | {"LD_LIBRARY_PATH": DOUBLE, "HOLOGRAM_CACHE_DIR": "/dev/null/none", "HOLOGRAM_BACKEND": "cuda"}
    done = subprocess.run([sys.executable, "-c", code.format(mode=mode)], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout == "True True True 0 (8, 4096)\n", done.stdout + done.stderr


@needed
@pytest.mark.skipif("HOLOGRAM_CLI" not in os.environ, reason="HOLOGRAM_CLI names no command")
def test_a_filled_cache_has_what_is_common(tmp_path):
    """`hologram cache fill` on the double; then another process compiles nothing, whatever the number of rows, but what is not common."""
    code = """
import ctypes
import hologram as hg
double = ctypes.CDLL("libcuda.so.1")
links = lambda: sum(double.fakecuda_links(which) for which in (0, 1))
S = hg.Spec
for dtype in ("float32", "bfloat16", "float16"):
    with hg.eager():
        hg.warm(lambda x, y: (hg.exp(x), hg.gelu(x), x + y, x / y), S((3, 5), dtype), S((3, 5), dtype))
    for rows, length in ((8, 768), (100, 4096)):
        hg.warm(lambda x: hg.softmax(x), S((rows, length), dtype))
        hg.warm(lambda x, w, b: hg.layer_norm(x, w, b), S((rows, length), dtype), S(length, dtype), S(length, dtype))
        hg.warm(lambda x: x.sum(axis=1), S((rows, length), dtype))
    hg.warm(lambda a, b: a @ b, S((1024, 1024), dtype), S((1024, 1024), dtype))
print(links())
hg.warm(lambda x: hg.softmax(x), S((8, 4095)))
print(links())
"""
    environment = os.environ | {"LD_LIBRARY_PATH": DOUBLE, "HOLOGRAM_CACHE_DIR": str(tmp_path / "cache"), "HOLOGRAM_BACKEND": "cuda"}
    environment.pop("HOLOGRAM_CACHE", None)
    alone = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}  # the command has its own sanitizer
    filled = subprocess.run([os.environ["HOLOGRAM_CLI"], "cache", "fill"], capture_output=True, text=True, timeout=120, env=alone)
    assert filled.returncode == 0 and "new entries" in filled.stdout, filled.stdout + filled.stderr
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=environment)
    assert done.stdout == "0\n2\n", done.stdout + done.stderr
