"""Counts, histograms and sums of segments, and integers added at indices, beside NumPy: exact, since integers are, and sums of floats
are of whole numbers or in the order of test_scatter_add.py."""

import ml_dtypes
import numpy as np
import pytest

import hgops
from hgops import FLOATS, TYPES

pytestmark = pytest.mark.engine
INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
INDICES = ("i8", "i32", "i64", "u16", "u32", "u64")


def added(base, index, source, axis):
    expected, where = base.copy(), list(np.indices(index.shape))
    where[axis] = index.astype(np.int64)
    with np.errstate(over="ignore"):
        np.add.at(expected, tuple(where), source)
    return expected


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("shape, axis, places", [
    ((5000,), 0, 7), ((5000,), 0, 900), ((70, 3, 90), 1, 2), ((400, 5, 3), 0, 11), ((3, 4100), 1, 5), ((70000,), 0, 60000),
    ((4100, 1), 0, 1), ((300, 3), 0, 1), ((1, 300, 3), 1, 1), ((257,), 0, 16), ((255,), 0, 16)])
def test_integers_are_added(kind, shape, axis, places):
    """Small and large results, in shared memory or not; sums wrap."""
    random = np.random.default_rng(len(shape) + places)
    limits, own = np.iinfo(TYPES[kind]), TYPES[kind]
    to = [places if d == axis else n for d, n in enumerate(shape)]
    source = random.integers(limits.min, limits.max, shape, own, endpoint=True)
    base = random.integers(limits.min, limits.max, to, own, endpoint=True)
    index = random.integers(0, places, shape).astype(TYPES[INDICES[INTEGERS.index(kind) % len(INDICES)] if places < 128 else "u64"])
    assert np.array_equal(hgops.apply("scatter_add", base, index, source, axis=axis), added(base, index, source, axis))


@pytest.mark.parametrize("bounds", ["wrap", "clamp"])
def test_integers_are_added_within_bounds(bounds):
    random = np.random.default_rng(5)
    base, source, index = np.arange(9), random.integers(-9, 9, 3000), random.integers(-9, 9, 3000)
    right = np.where(index < 0, index + 9, index) if bounds == "wrap" else np.clip(index, 0, 8)
    assert np.array_equal(hgops.apply("scatter_add", base, index, source, bounds=bounds), added(base, right, source, 0))


def test_an_index_for_whole_rows():
    random = np.random.default_rng(6)
    base, source, index = np.zeros((6, 40), np.int32), random.integers(-9, 9, (500, 40), np.int32), random.integers(0, 6, (500, 1))
    c = hgops.Computation()
    c.output(c.op("scatter_add", c.input(base), c.input(index), c.input(source), axis=0))
    assert np.array_equal(c.run()[0], added(base, np.broadcast_to(index, source.shape), source, 0))


@pytest.mark.parametrize("places, wrong", [(30, 30), (30, -1), (70000, 70000), (30, 2**40)])
def test_a_wrong_number_is_told(places, wrong):
    index = np.arange(1000) % places
    index[777] = wrong
    with pytest.raises(hgops.Error, match=rf"bincount: index {wrong} is out of range of axis 0, which has {places} elements"):
        hgops.apply("bincount", index, length=places)


@pytest.mark.parametrize("kind", INTEGERS)
@pytest.mark.parametrize("count", [0, 1, 255, 4097, 100_003])
def test_bincount(kind, count):
    random = np.random.default_rng(count)
    for length in (1, 10, 100, 70_001):
        index = random.integers(0, min(length, 100), count).astype(TYPES[kind])
        assert np.array_equal(hgops.apply("bincount", index, length=length), np.bincount(index.astype(int), minlength=length))
        for of in ("i32", "u8", "f32", "f64", "bf16"):
            weights = random.integers(0, 2 if of == "u8" else 3, count).astype(TYPES[of])
            right = np.bincount(index.astype(int), weights.astype(float), minlength=length)
            own = hgops.apply("bincount", index, weights, length=length)
            assert own.dtype == TYPES[of]
            assert np.array_equal(own, right.astype(np.int64).astype(TYPES[of]) if of == "u8" else right.astype(TYPES[of]))


def test_bincount_takes_any_shape():
    index = np.array([[1, 2, 0], [2, 2, 1]])
    assert np.array_equal(hgops.apply("bincount", index, length=4), [1, 2, 3, 0])
    for words in ({}, {"length": -1}):
        with pytest.raises(hgops.Error, match="length is -1; it has to lie from 0"):
            hgops.apply("bincount", index, **words)


@pytest.mark.parametrize("kind", INTEGERS + FLOATS + ("bool",))
@pytest.mark.parametrize("shape, axis", [((40,), 0), ((6, 5000), 1), ((300, 7), 0), ((4, 9, 5), -2), ((0, 3), 0)])
def test_segments(kind, shape, axis):
    random, own = np.random.default_rng(len(kind)), TYPES[kind]
    x = random.integers(0, 2 if kind == "bool" else 9, shape).astype(own)
    numbers = random.integers(0, 5, shape[axis]).astype(np.int32)
    sums, means = (hgops.apply(f"segment_{of}", x, numbers, num_segments=7, axis=axis) for of in ("sum", "mean"))
    moved, wide = np.moveaxis(x, axis, 0).astype(np.float64), np.zeros((7, *np.delete(shape, axis)))
    np.add.at(wide, numbers, moved)
    n = np.bincount(numbers, minlength=7).reshape(-1, *(1,) * (len(shape) - 1))
    is_float = kind in FLOATS
    assert sums.dtype == (own if is_float else np.uint64 if kind[0] == "u" else np.int64)
    assert means.dtype == (own if is_float else np.float32)
    assert np.array_equal(sums, np.moveaxis(wide, 0, axis).astype(sums.dtype))
    with np.errstate(invalid="ignore"):
        right = np.moveaxis(wide / n, 0, axis)
    if kind in ("f16", "bf16"):  # f32, rounded once
        right = right.astype(np.float32)
    assert np.array_equal(means, right.astype(means.dtype), equal_nan=True)


@pytest.mark.parametrize("kind", INTEGERS + FLOATS)
@pytest.mark.parametrize("shape, axis", [((40,), 0), ((6, 5000), 1), ((300, 7), 0), ((4, 9, 5), -2), ((0, 3), 0)])
def test_segments_of_one_element(kind, shape, axis):
    """Products, and the largest and the smallest."""
    random, own = np.random.default_rng(len(kind)), TYPES[kind]
    x = random.integers(-2 if kind[0] != "u" else 0, 3, shape).astype(own)
    numbers = random.integers(0, 5, shape[axis]).astype(np.int16)
    is_float = kind in FLOATS
    ends = (-np.inf, np.inf) if is_float else (np.iinfo(own).min, np.iinfo(own).max)
    for of, ufunc, none in (("prod", np.multiply, 1), ("max", np.maximum, ends[0]), ("min", np.minimum, ends[1])):
        kept = own if of != "prod" or is_float else np.uint64 if kind[0] == "u" else np.int64
        right = np.full((7, *np.delete(shape, axis)), none, np.float32 if kind in ("f16", "bf16") else kept)
        with np.errstate(over="ignore"):
            ufunc.at(right, numbers, np.moveaxis(x, axis, 0).astype(right.dtype))
            result = hgops.apply(f"segment_{of}", x, numbers, num_segments=7, axis=axis)
            assert result.dtype == kept and np.array_equal(result, np.moveaxis(right, 0, axis).astype(kept)), of


def test_segments_of_special_values():
    nan = hgops.apply("segment_max", np.array([1, np.nan, -0.0, 0, 2]), np.array([0, 0, 1, 1, 0]), num_segments=2)
    assert np.isnan(nan[0]) and nan[1] == 0 and not np.signbit(nan[1])
    x = np.array([np.inf, 1, -np.inf, np.nan, -0.0, 2, -np.inf], np.float32)
    own = hgops.apply("segment_sum", x, np.array([0, 0, 1, 2, 3, 0, 0]), num_segments=5)
    assert np.array_equal(own, np.array([np.nan, -np.inf, np.nan, 0, 0], np.float32), equal_nan=True)


@pytest.mark.parametrize("kind", ["i8", "i64", "u32"])
def test_confusion_matrix(kind):
    random = np.random.default_rng(1)
    labels, guesses = (random.integers(0, 6, (30, 50)).astype(TYPES[kind]) for _ in range(2))
    right = np.zeros((6, 6), np.int64)
    np.add.at(right, (labels.astype(int), guesses.astype(int)), 1)
    assert np.array_equal(hgops.apply("confusion_matrix", labels, guesses, classes=6), right)
    weights = random.integers(0, 9, labels.shape).astype(np.float64)
    of_weights = np.zeros((6, 6))
    np.add.at(of_weights, (labels.astype(int), guesses.astype(int)), weights)
    assert np.array_equal(hgops.apply("confusion_matrix", labels, guesses, weights, classes=6), of_weights)
    for wrong in (labels[0], guesses[0]):
        wrong[3] = 6
        with pytest.raises(hgops.Error, match="out of range"):
            hgops.apply("confusion_matrix", labels, guesses, classes=6)
        wrong[3] = 0


def counts_of(x, edges, **words):
    place = hgops.apply("even_bins", x, edges)
    assert place.dtype == np.int64 and place.shape == x.shape
    return np.bincount(place.ravel(), minlength=len(edges))[:len(edges) - 1]


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bf16", "i8", "u16", "i64"])
@pytest.mark.parametrize("bins", [1, 2, 10, 333])
def test_even_bins(kind, bins):
    """A bin of every value as the comparisons with its edges say; also of the edges themselves and their neighbours."""
    random, own = np.random.default_rng(bins), TYPES[kind]
    for spread in (1.0, 1e-3, 50.0):
        x = (random.standard_normal(2000) * spread + (60 if kind == "u16" else 0)).astype(own)
        for low, high in ((-np.inf, np.inf), (-1.0, 2.0), (0.0, 0.7), (-np.inf, 100.0)):
            edges = hgops.apply("even_edges", x, bins=bins, low=low, high=high)
            assert edges.dtype == (own if kind in FLOATS else np.float64)
            ends = [float(x.min()) if low == -np.inf else low, float(x.max()) if high == np.inf else high]
            ends = [ends[0] - 0.5, ends[1] + 0.5] if ends[0] == ends[1] else ends
            exact = np.linspace(*ends, bins + 1)
            assert np.array_equal(edges, exact.astype(edges.dtype))
            if kind not in ("f32", "f64") and bins > 10:
                continue  # edges of 8 or 11 bits are not at equal distances
            more = x
            if kind in ("f32", "f64"):
                near = [np.nextafter(edges, own(9)), np.nextafter(edges, own(-9)), np.array([np.nan, np.inf, -np.inf], own)]
                more = np.concatenate([x, edges, *near])
            finite = more[np.isfinite(more)] if kind in ("f32", "f64") else more.astype(np.float64)
            right = np.histogram(finite.astype(np.float64), edges.astype(np.float64))[0]
            assert np.array_equal(counts_of(more, edges), right), (kind, low, high)


def test_edges_of_little():
    for x, right in ((np.zeros(0, np.float32), [0, 0.5, 1]), (np.full(3, 4, np.float32), [3.5, 4, 4.5]),
                     (np.array([True, False]), [0, 0.5, 1]),
                     (np.array([3, 7], np.int64), [3, 5, 7])):
        assert np.array_equal(hgops.apply("even_edges", x, bins=2), right)
    assert hgops.apply("even_edges", np.array([1, np.nan, 2], ml_dtypes.bfloat16), bins=3).astype(float).tolist() != [1, 2]
    with pytest.raises(hgops.Error, match="bins is 0; it has to lie from 1"):
        hgops.apply("even_edges", np.ones(3), bins=0)
