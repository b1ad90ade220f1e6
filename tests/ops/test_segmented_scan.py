"""Scans within segments: the operator of pairs (a segment begins here, value) at the elements' own positions: bits, orders, gradients."""

import numpy as np
import pytest

from hgops import Error, apply

pytestmark = pytest.mark.engine
RNG = np.random.default_rng(41)
CHUNK = 256
OPERATORS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "max": (np.maximum, -np.inf), "min": (np.minimum, np.inf)}


def strides(flags, values, combine):
    """Hillis and Steele's scan of pairs by strides 1, 2, 4, ..."""
    flags, values, stride = flags.copy(), values.copy(), 1
    while stride < len(values):
        both = np.where(flags[stride:], values[stride:], combine(values[:-stride], values[stride:]))
        flags[stride:] |= flags[:-stride].copy()
        values[stride:] = both
        stride *= 2
    return flags, values


def scanned(flags, values, combine):
    """Chunks, their totals in the same way, then what came before a chunk."""
    parts = [strides(flags[i:i + CHUNK], values[i:i + CHUNK], combine) for i in range(0, len(values), CHUNK)]
    if len(parts) == 1:
        return parts[0][1]
    totals = scanned(np.array([f[-1] for f, _ in parts]), np.array([v[-1] for _, v in parts], values.dtype), combine)
    for k in range(1, len(parts)):
        f, v = parts[k]
        v[...] = np.where(f, v, combine(totals[k - 1], v))
    return np.concatenate([v for _, v in parts])


def expected(x, begins, name, exclusive=False, reverse=False):
    combine, first = OPERATORS[name]
    if reverse:
        ends = np.append(begins[1:], True)
        return expected(x[::-1], ends[::-1], name, exclusive)[::-1]
    if exclusive:
        first = first if np.isfinite(first) or x.dtype.kind == "f" else getattr(np.iinfo(x.dtype), "min" if first < 0 else "max")
        x = np.where(begins, x.dtype.type(first), np.roll(x, 1))
    return scanned(begins, x, combine)


def flags(n, share):
    begins = RNG.random(n) < share
    begins[:1] = True
    return begins


def ours(x, segments, name, axis=-1, exclusive=False, reverse=False):
    places = apply("segment_places", segments, axis=axis, reverse=int(reverse))
    return apply("segmented_scan", x, places, axis=axis, by=list(OPERATORS).index(name), exclusive=int(exclusive), reverse=int(reverse))


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("n, share", [(1, 0), (2, .5), (255, .1), (256, 0), (257, .02), (1000, .01), (1000, 1), (5000, .001),
                                      (70_000, .0005)])
def test_bits(name, n, share):
    x = RNG.standard_normal(n).astype(np.float32)
    begins = flags(n, share)
    for exclusive in (False, True):
        for reverse in (False, True):
            right = expected(x, begins, name, exclusive, reverse)
            assert np.array_equal(ours(x, begins, name, -1, exclusive, reverse), right)
    ids = np.cumsum(begins) % 7 - 3  # runs of equal numbers, which come again
    assert np.array_equal(ours(x, ids.astype(np.int16), name), expected(x, begins, name))


@pytest.mark.parametrize("kind", ["i8", "u8", "i32", "i64", "u64", "f64", "bool"])
def test_types(kind):
    dtype = np.dtype({"i": "int", "u": "uint", "f": "float", "b": "bool"}[kind[0]] + (kind[1:] if kind != "bool" else ""))
    x = RNG.integers(0, 3, 700).astype(dtype)
    begins = flags(700, .01)
    wide = x.astype("uint64" if kind[0] == "u" else "int64" if kind != "f64" else dtype)
    for name in ("sum", "prod") if kind == "bool" else OPERATORS:
        values = wide if name in ("sum", "prod") else x
        for exclusive in (False, True):
            own = ours(x, begins, name, -1, exclusive)
            right = expected(values, begins, name, exclusive)
            assert own.dtype == right.dtype and np.array_equal(own, right)


@pytest.mark.parametrize("shape, axis", [((3, 700), 1), ((700, 3), 0), ((2, 300, 5), 1), ((5, 1), 1), ((0, 4), 0), ((4, 0), 1),
                                         ((300, 40), 0), ((6, 5), 0)])
def test_axes_and_views(shape, axis):
    x, begins = RNG.standard_normal(shape), RNG.random(shape) < .02
    own = ours(x, begins, "sum", axis)
    assert own.shape == shape
    for reverse in (False, True):
        own = ours(x, begins, "sum", axis, reverse=reverse)
        if x.size:
            first = begins.copy()
            np.moveaxis(first, axis, 0)[0] = True
            lines = (np.moveaxis(a, axis, -1).reshape(-1, shape[axis]) for a in (x, first))
            right = np.stack([expected(line, f, "sum", reverse=reverse) for line, f in zip(*lines)])
            assert np.array_equal(np.moveaxis(own, axis, -1).reshape(right.shape), right)
    if x.size:
        assert np.array_equal(ours(x.T, begins.T, "sum", x.ndim - 1 - axis), ours(x, begins, "sum", axis).T)


def test_special_values():
    x = np.array([np.nan, 1, np.inf, -np.inf, 2, -0.0, np.nan, -0.0, 0.0], np.float32)
    begins = np.array([1, 1, 1, 0, 1, 1, 1, 1, 0], bool)
    own = ours(x, begins, "sum")
    right = np.array([np.nan, 1, np.inf, np.nan, 2, -0.0, np.nan, -0.0, 0.0], np.float32)
    assert np.array_equal(own.view(np.uint32), right.view(np.uint32))
    assert np.array_equal(ours(x, begins, "max")[[0, 1, 3, 6]], [np.nan, 1, np.inf, np.nan], equal_nan=True)
    together = apply("segmented_scan", x[1:3], np.zeros(2, np.int64), by=4)
    assert together.tolist() == [1, np.inf]
    lse = apply("segmented_scan", np.arange(600, dtype=np.float64), apply("segment_places", np.arange(600) // 7 % 2), by=4)
    right = np.concatenate([np.logaddexp.accumulate(part) for part in np.split(np.arange(600.0), range(7, 600, 7))])
    assert np.allclose(lse, right, rtol=1e-14)


def test_one_segment_has_the_bits_of_none():
    x = RNG.standard_normal(3000).astype(np.float32)
    for name, whole in (("sum", "cumulative_sum"), ("prod", "cumulative_prod"), ("max", "cumulative_max")):
        assert np.array_equal(ours(x, np.zeros(3000, np.int32), name), apply(whole, x))


def test_refused():
    with pytest.raises(Error, match="no such scan"):
        apply("segmented_scan", np.ones(3, np.int32), np.zeros(3, np.int64), by=4)
    with pytest.raises(Error, match="no such scan"):
        apply("segmented_scan", np.ones(3, bool), np.zeros(3, np.int64), by=2)
    with pytest.raises(Error):
        apply("segmented_scan", np.ones(3), np.zeros(4, np.int64))
