"""Fast numerics: contractions by the vendor's library where there is one, and what the report says of them. On the doubles of
libcuda and cuBLASLt, whose sums have other bits than the exact kernel's."""

import os

import ml_dtypes
import numpy as np
import pytest

import hgops

FAST = 1
f32, bf16 = np.float32, ml_dtypes.bfloat16
on_cuda = pytest.mark.skipif(hgops.BACKEND != 3, reason="cuBLASLt is for NVIDIA's GPUs")
doubled = pytest.mark.skipif("sim" not in os.environ.get("LD_LIBRARY_PATH", ""), reason="asks the double of cuBLASLt")


def numbers(*shape, kind=f32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def product(a, b, behind=None, kind=None):
    c = hgops.Computation()
    value = c.op("matmul", c.input(a), c.input(b))
    if behind is not None:
        value = c.op("relu", c.op("add", value, c.input(behind)))
    c.output(c.op("cast", value, dtype=kind) if kind else value)
    return c


def both(c):
    (exact,), _ = c.run_on(hgops.ENGINES[0], 0, report=True)
    (fast,), text = c.run_on(hgops.ENGINES[0], FAST, report=True)
    return exact.astype(np.float64), fast.astype(np.float64), text


def check_fast(c, tolerance=1e-5):
    exact, fast, text = both(c)
    assert "cublaslt" in text and "not bit-exact" in text and "fast numerics" in text, text
    assert np.allclose(exact, fast, rtol=tolerance, atol=tolerance * 10), abs(exact - fast).max()
    return exact, fast, text


def check_exact(c):
    exact, fast, text = both(c)
    assert "cublaslt" not in text and "canonical numerics" in text and "bit-exact: fast numerics were asked for" in text, text
    assert exact.tobytes() == fast.tobytes()


SHAPES = [((40, 300), (300, 24)), ((1, 70), (70, 9)), ((33, 65), (65, 1)), ((3, 17, 40), (3, 40, 8)), ((2, 17, 40), (40, 8))]


@on_cuda
@doubled
@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("kind", [f32, np.float16, bf16])
def test_products(left, right, kind):
    tolerance = {f32: 1e-5, np.float16: 2e-3, bf16: 2e-2}[kind]
    exact, fast, _ = check_fast(product(numbers(*left, kind=kind), numbers(*right, kind=kind, seed=2)), tolerance)
    assert exact.size < 100 or kind != f32 or exact.tobytes() != fast.tobytes()


@on_cuda
@doubled
@pytest.mark.parametrize("turned", range(4))
def test_transposed_operands(turned):
    a, b = numbers(40, 30), numbers(30, 20, seed=2)
    check_fast(product(a.T.copy().T if turned & 1 else a, b.T.copy().T if turned & 2 else b))


@on_cuda
@doubled
def test_what_follows_is_another_launch():
    """A bias and relu, of which the library knows nothing; and a 16-bit result, which it rounds itself."""
    check_fast(product(numbers(40, 30), numbers(30, 20, seed=2), numbers(20, seed=3)))
    text = check_fast(product(numbers(40, 30, kind=bf16), numbers(30, 20, kind=bf16, seed=2)), 2e-2)[2]
    assert "1 launches" in text


@on_cuda
@doubled
def test_unaligned_operands():
    a = numbers(41 * 30 + 1)[1:].reshape(41, 30)
    check_fast(product(a, numbers(30, 21, seed=2)))


@on_cuda
@doubled
@pytest.mark.parametrize("kind", [np.float64, np.int32])
def test_other_types_are_exact(kind):
    check_exact(product((numbers(20, 30) * 9).astype(kind), (numbers(30, 10, seed=2) * 9).astype(kind)))


@on_cuda
@doubled
def test_operands_that_the_library_cannot_read():
    check_exact(product(numbers(40, 60)[:, ::2], numbers(30, 20, seed=2)))


@on_cuda
@doubled
@pytest.mark.parametrize("why", ["none", "refuse"])
def test_without_the_library(why, monkeypatch):
    """A new executor asks anew."""
    monkeypatch.setenv("FAKECUBLASLT", why)
    monkeypatch.setattr(hgops, "_executors", {})
    check_exact(product(numbers(40, 30), numbers(30, 20, seed=2)))


@pytest.mark.skipif(hgops.BACKEND == 3, reason="of processors")
def test_processors_are_exact():
    check_exact(product(numbers(40, 30), numbers(30, 20, seed=2)))
