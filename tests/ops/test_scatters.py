"""scatter, scatter_add, _multiply, _mean, _min and _max, and what is made of them, beside NumPy: every type, shape and axis, negative
and repeated numbers, NaNs and zeros of both signs; products and means by the order F of contributions, bit for bit."""

import numpy as np
import pytest

import hgops
from test_scatter_add import folded

pytestmark = pytest.mark.engine
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
         "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
SHAPES = [((7,), 20), ((7,), 1), ((3, 5), 9), ((2, 4, 3), 6), ((1, 300), 40), ((300, 2), 700), ((5,), 0), ((2, 1, 3, 2, 2), 3)]
ODD = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.0, 3.0]


def some(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return np.where(rng.random(shape) < 0.7, rng.choice(ODD, shape), rng.standard_normal(shape)).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    extreme = rng.choice(np.array([low, high, 0, 1], dtype), shape)
    return np.where(rng.random(shape) < 0.3, extreme, rng.integers(low, high, shape, dtype, True))


def lists(x, index, source, axis):
    """Of each place its contributions, in the order of the source."""
    for lead in np.ndindex(*[1 if i == axis else n for i, n in enumerate(x.shape)]):
        line = tuple(slice(None) if i == axis else k for i, k in enumerate(lead))
        where = index[tuple(slice(None) if i == axis else min(k, index.shape[i] - 1) for i, k in enumerate(lead))] % x.shape[axis]
        for place in range(x.shape[axis]):
            yield tuple(place if i == axis else k for i, k in enumerate(lead)), source[line][where == place]


def combined(name, old, given, alone, dtype):
    """What the row says; alone: without the old value."""
    if len(given) == 0:
        return old
    wide = np.float32 if dtype == np.float16 else dtype
    given, old = given.astype(wide), wide(old)
    if name == "max":
        return np.maximum.reduce(given if alone else [old, *given])
    if name == "min":
        return np.minimum.reduce(given if alone else [old, *given])
    if name == "mean" and np.dtype(dtype).kind != "f":
        return (sum(map(int, given)) + (0 if alone else int(old))) // (len(given) + (not alone))
    total = folded(given, np.multiply if name == "multiply" else np.add)
    if name == "multiply":
        return wide(1) * total if alone else old * total
    total = (wide(0) if alone else old) + total
    return total / wide(len(given) + (not alone)) if name == "mean" else total


def expected(name, x, index, source, axis, alone=False):
    right = x.copy()
    with np.errstate(all="ignore"):
        for place, given in lists(x, index, source, axis):
            right[place] = combined(name, x[place], given, alone, x.dtype.type)
    return right


def same(own, right, name):
    bits = f"u{right.dtype.itemsize}"
    if right.dtype.kind != "f":
        assert np.array_equal(own, right), name
        return
    is_nan = np.isnan(right)
    assert np.array_equal(np.isnan(own), is_nan), name
    own, right = own[~is_nan], right[~is_nan]
    if name in ("min", "max"):  # NumPy's order of zeros is not defined
        assert np.array_equal(own, right), name
    else:
        assert np.array_equal(own.view(bits), right.view(bits)), (name, own, right)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["add", "multiply", "mean", "min", "max"])
def test_values(name, kind):
    rng = np.random.default_rng(len(name) + hgops.CODES[kind])
    for shape, count in SHAPES:
        for axis in range(len(shape)):
            around = [count if i == axis else n for i, n in enumerate(shape)]
            narrow = [n if i == axis or rng.random() < 0.6 else 1 for i, n in enumerate(around)]
            x, source = some(rng, shape, TYPES[kind]), some(rng, around, TYPES[kind])
            index = rng.integers(-shape[axis], shape[axis], narrow)
            if name == "mean" and kind in ("i64", "u64"):  # whose sums wrap
                x, source = x >> x.dtype.type(12), source >> x.dtype.type(12)
            own = hgops.apply("scatter_" + name, x, index, source, axis=axis, bounds="wrap")
            same(own, expected(name, x, index, source, axis), name)


@pytest.mark.parametrize("kind", ["f32", "f16", "i32", "u64", "i64", "i8"])
@pytest.mark.parametrize("reduce, name", [("sum", "add"), ("prod", "multiply"), ("mean", "mean"), ("amax", "max"), ("amin", "min")])
def test_without_the_old_value(kind, reduce, name):
    rng = np.random.default_rng(3)
    for shape, count, axis in [((7,), 20, 0), ((3, 5), 9, 1), ((40, 3), 11, 0)]:
        around = [count if i == axis else n for i, n in enumerate(shape)]
        x, source, index = some(rng, shape, TYPES[kind]), some(rng, around, TYPES[kind]), rng.integers(0, shape[axis], around)
        if name == "mean" and kind in ("i64", "u64"):
            x, source = x >> x.dtype.type(12), source >> x.dtype.type(12)
        own = hgops.apply("scatter_reduce", x, index, source, axis=axis, reduce=reduce, include_self=0)
        same(own, expected(name, x, index, source, axis, alone=True), name)


def test_zeros_have_an_order():
    x, index = np.array([0.0, -0.0, 0.0, -0.0], np.float32), np.array([0, 1, 2, 2, 3, 3])
    source = np.array([-0.0, 0.0, -0.0, 0.0, -0.0, -0.0], np.float32)
    smallest, largest = (hgops.apply("scatter_" + name, x, index, source, axis=0) for name in ("min", "max"))
    assert np.signbit(smallest).tolist() == [True, True, True, True] and np.signbit(largest).tolist() == [False, False, False, True]


@pytest.mark.parametrize("places, sources", [(1, 4097), (3, 9000), (70_000, 300)])
@pytest.mark.parametrize("name", ["multiply", "min", "max"])
def test_many_contributions(name, places, sources):
    rng = np.random.default_rng(places)
    x, source = (rng.random(n, np.float32) * np.float32(0.2) + np.float32(0.9) for n in (places, sources))
    index, right = rng.integers(0, places, sources), x.copy()
    for place in set(index.tolist()):
        given = source[index == place]
        while len(given) > 4096:
            given = np.array([folded(given[i : i + 4096], np.multiply) for i in range(0, len(given), 4096)])
        right[place] = {"multiply": lambda: x[place] * folded(given, np.multiply), "min": lambda: min(x[place], *source[index == place]),
                        "max": lambda: max(x[place], *source[index == place])}[name]()
    assert np.array_equal(hgops.apply("scatter_" + name, x, index, source, axis=0), right)


def test_slices():
    rng = np.random.default_rng(9)
    for shape, axis in [((6,), 0), ((6, 3), 0), ((4, 5), 1), ((2, 6, 3), 1)]:
        x, index = rng.standard_normal(shape).astype(np.float32), rng.integers(-shape[axis], shape[axis], 8)
        source = rng.standard_normal([8 if i == axis else n for i, n in enumerate(shape)]).astype(np.float32)
        lines = (slice(None),) * axis
        copied, filled, wide = x.copy(), x.copy(), index.reshape([8 if i == axis else 1 for i in range(len(shape))])
        for k in range(8):
            copied[(*lines, index[k])] = source[(*lines, k)]
        filled[(*lines, index)] = 7
        more = {"axis": axis, "bounds": "wrap"}
        assert np.array_equal(hgops.apply("index_copy", x, index, source, **more), copied)
        assert np.array_equal(hgops.apply("index_fill", x, index, np.float32(7), **more), filled)
        added = expected("add", x, wide, source * np.float32(-2), axis)
        assert np.array_equal(hgops.apply("index_add", x, index, source, alpha=-2.0, **more), added)
        for reduce, name in [("prod", "multiply"), ("mean", "mean"), ("amax", "max"), ("amin", "min")]:
            for alone in (0, 1):
                own = hgops.apply("index_reduce", x, index, source, reduce=reduce, include_self=1 - alone, **more)
                assert np.array_equal(own, expected(name, x, wide, source, axis, alone)), (reduce, alone)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    rng = np.random.default_rng(2)
    table = rng.standard_normal((9, 4)).astype(np.float32)
    for n, offsets in [(12, [0, 3, 3, 7, 12]), (5, [0]), (0, [0, 0]), (6, [0, 6])]:
        index, weights = rng.integers(0, 9, n), rng.random(n, np.float32)
        for by in (None, weights):
            rows = table[index] if by is None else table[index] * by[:, None]
            right = np.zeros((len(offsets), 4), np.float32)
            for k, (a, b) in enumerate(zip(offsets, [*offsets[1:], n])):
                if b > a:
                    right[k] = rows[a:b].max(0) if mode == "max" else folded(rows[a:b]) / np.float32(b - a if mode == "mean" else 1)
            own = hgops.apply("embedding_bag", table, index, np.array(offsets), by, mode=mode)
            assert np.array_equal(own, right), (mode, n)
    for shape in [(3, 5), (2, 1), (2, 0)]:
        index = rng.integers(0, 9, shape)
        right = np.zeros((shape[0], 4), np.float32) if shape[1] == 0 else np.stack([
            table[row].max(0) if mode == "max" else folded(table[row]) / np.float32(len(row) if mode == "mean" else 1) for row in index])
        assert np.array_equal(hgops.apply("embedding_bag", table, index, mode=mode), right)


@pytest.mark.parametrize("name", ["multiply", "min", "max"])
def test_a_number_out_of_range(name):
    index = np.array([1, 5, 2], np.int32)
    with pytest.raises(hgops.Error, match=f"scatter_{name}: index 5 is out of range of axis 0, which has 4 elements"):
        hgops.apply("scatter_" + name, np.ones(4, np.float32), index, np.ones(3, np.float32), axis=0)
