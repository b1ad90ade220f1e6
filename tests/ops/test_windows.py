"""Windows beside NumPy's and PyTorch's formulas in f64, rounded once to each type, and to the bit by the library's own cosine."""

import itertools
import math

import numpy as np
import pytest

from hgops import FLOATS, TYPES, Error, apply

pytestmark = pytest.mark.engine
SIZES = (0, 1, 2, 3, 8, 33, 4097)
NUMPY = {"hann": np.hanning, "hamming": np.hamming, "blackman": np.blackman, "bartlett": np.bartlett}


def of_formula(name, x):
    """Of places from -1 to 1: the table's formula, on NumPy's arrays."""
    if name == "bartlett":
        return 1 - np.abs(x)
    c = apply("cos", x * math.pi)
    return {"hann": c * 0.5 + 0.5, "hamming": c * 0.46 + 0.54, "blackman": (c + 1) * (c * 0.16 + 0.34)}[name]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NUMPY)
def test_windows(name, size):
    for periodic in (0, 1):
        own = apply(name, size=size, periodic=periodic, type="f64")
        longer = size + 1 if periodic and size > 1 else size
        right = NUMPY[name](longer)[:size]
        assert own.shape == (size,) and own.dtype == np.float64
        assert np.abs(own - right).max(initial=0) <= 4e-16
        places = (2.0 * np.arange(size) - max(longer - 1, 0)) / max(longer - 1, 1)
        assert np.array_equal(apply("window_places", size=size, periodic=periodic), places)
        assert np.array_equal(own, of_formula(name, places))
        for kind in FLOATS:
            assert np.array_equal(apply(name, size=size, periodic=periodic, type=kind), own.astype(TYPES[kind]))
    assert np.array_equal(apply(name, size=size, type="f64"), apply(name, size=size, type="f64")[::-1])


@pytest.mark.parametrize("beta", [0.0, 2.5, -3.0, 14.0, 600.0])
def test_kaiser(beta):
    for size, periodic in itertools.product(SIZES, (0, 1)):
        own = apply("kaiser", size=size, beta=beta, periodic=periodic, type="f64")
        right = np.kaiser(size + 1 if periodic and size > 1 else size, beta)[:size]
        np.testing.assert_allclose(own, right, rtol=2e-14 * max(1, abs(beta)))
        for kind in FLOATS:
            assert np.array_equal(apply("kaiser", size=size, beta=beta, periodic=periodic, type=kind), own.astype(TYPES[kind]))
    with pytest.raises(Error, match="beta is 1000; it has to lie from -700 to 700"):
        apply("kaiser", size=3, beta=1000.0)


def test_ends_and_middle():
    for name, end in (("hann", 0.0), ("blackman", 0.0), ("bartlett", 0.0)):
        assert apply(name, size=9).tolist()[::4] == [end, 1.0, end]
    with pytest.raises(Error, match="size is -1; it has to lie from 0"):
        apply("hann", size=-1)
