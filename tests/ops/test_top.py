"""The first of rows, orders by several keys, searching, merging and quantiles beside NumPy: every type, NaN, both zeros, equal elements,
rows of a few elements, of a block's and of several blocks', any axis; the same bits on all engines."""

import json

import numpy as np
import pytest

import hgops
from hgops import ENGINES, FLOATS, TYPES, Computation, laid_out
from test_sort import numbers, order_of
from test_values import INTEGERS

pytestmark = pytest.mark.engine

KINDS = [*INTEGERS, *FLOATS, "bool"]
# Rows with a lane for each element, several in a block; one in a block; with as many elements as are sorted; of two axes
SHORT = [((1,), 0, 1), ((5,), 0, 0), ((7, 5), 0, 2), ((3, 70), -1, 70), ((2, 128), 1, 5), ((9, 8), 1, 2), ((0, 3), 1, 2),
         ((2, 3, 33), 1, 3)]
LONG = [((2, 129), 1, 1), ((2, 1025), 1, 128), ((2, 300, 2), 1, 37), ((1, 3000), 1, 129), ((2, 500), 1, 100), ((700, 3), 0, 6)]


def check(x, axis, k, largest, layout="dense"):
    c = Computation()
    values, places = c.op_all("top_k", c.input(laid_out(x, layout, 3) if layout != "dense" else x), k=k, axis=axis, largest=largest)
    c.output(values, layout)
    c.output(places)
    own, own_places = c.run()
    right = np.take(order_of(x, axis, largest), np.arange(k), axis)
    assert np.array_equal(own_places, right), f"places of {x.dtype} {x.shape}, {k}"
    assert own.tobytes() == np.take_along_axis(x, right, axis).tobytes(), f"values of {x.dtype} {x.shape}, {k}"


@pytest.mark.parametrize("kind", KINDS)
def test_first(kind):
    for seed, (shape, axis, k) in enumerate([*SHORT, *LONG]):
        for largest in (0, 1):
            check(numbers(kind, shape, seed), axis, k, largest)
    check(numbers(kind, (4, 33), 5), 1, 3, 1, "mixed")
    check(numbers(kind, (300, 4), 5), 0, 3, 0, "apart")


@pytest.mark.parametrize("kind", ["u8", "f32", "i64"])
@pytest.mark.parametrize("size, k", [(70000, 5), (40000, 100), (9000, 128)])
def test_first_of_long_rows(kind, size, k):
    """In several parts, and their first ones again."""
    check(numbers(kind, (2, size), 7), 1, k, 1)


@pytest.mark.parametrize("way", ["equal", "up", "down", "periods of 64", "periods of 256", "one of many"])
def test_rows_whose_best_lie_together(way):
    """All that is better than the bound is in few lanes, however many there are."""
    at = np.arange(60000 if way == "one of many" else 6000)
    x = {"equal": at * 0, "up": at, "down": -at, "periods of 64": at % 64, "periods of 256": (at % 256 == 3) * 1000 + at // 256,
         "one of many": (at % 64 == 5) * (at * 7919 % 60000)}[way].astype(np.float32)
    for k in (1, 5, 64, 128):
        check(x, 0, k, 1)
        check(x, 0, k, 0)


def test_more_that_reach_the_bound_than_there_are_slots():
    """A few lanes have all the best: several bounds, of many rows, so that none is in parts."""
    at, best = np.arange(20000), np.random.default_rng(4).permutation(20000)
    for k, some in ((64, at % 128 < 66), (128, at % 256 < 130), (5, at % 64 < 5), (5, at % 256 < 6)):
        for order in (at, best):
            x = np.where(some, order, -20001).astype(np.float32)
            check(np.stack([x, x[::-1]] * 8), 1, k, 1)


def test_what_reads_it_and_what_it_is_made_of():
    """One launch; its values and its places alone, and made of what is computed."""
    x = numbers("f32", (5, 300), 1)
    for name, wanted in (("top_k", 0), ("top_k", 1), ("argtop_k", 0)):
        c = Computation()
        c.output(c.op_all(name, c.op("neg", c.input(x)), k=4)[wanted])
        right = order_of(-x, 1, 1)[:, :4]
        expected = right if (name, wanted) != ("top_k", 0) else np.take_along_axis(-x, right, 1)
        assert c.run()[0].tobytes() == expected.tobytes()
        assert len(json.loads(c.run_on(ENGINES[0], 0, report="json")[1])["launches"]) == 1


def test_how_many_are_wanted():
    x = np.ones((2, 5), np.float32)
    assert hgops.apply("top_k", x, k=0).shape == (2, 0)
    with pytest.raises(hgops.Error, match=r"top_k: k is 6; it has to lie from 0 to 5, the elements of .*f32\[2, 5\] along axis 1"):
        hgops.apply("top_k", x, k=6)
    with pytest.raises(hgops.Error, match="k is -1"):
        hgops.apply("argtop_k", x, k=-1)


@pytest.mark.parametrize("kind", KINDS)
def test_orders_by_keys(kind):
    for seed, (shape, axis) in enumerate([((50,), 0), ((3, 200), 1), ((40, 3), 0), ((2, 1), 1), ((0, 4), 1)]):
        key, other = numbers(kind, shape, seed), numbers("i8", shape, seed + 9) % 3
        for keys in ([key], [other, key], [key, other], [key, other, other * 0]):
            order = np.broadcast_to(np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape)
            for one in keys:
                order = np.take_along_axis(order, order_of(np.take_along_axis(one, order, axis), axis, 0), axis)
            assert np.array_equal(hgops.apply("lexsort", *keys, axis=axis), order)
        for down in (0, 1):
            right = order_of(key, axis, down)
            assert np.array_equal(hgops.apply("argsort", key, axis=axis, descending=down), right)
            sorted_key, payload = hgops.apply_all("sort_by_key", key, other, axis=axis, descending=down)
            assert sorted_key.tobytes() == np.take_along_axis(key, right, axis).tobytes()
            assert np.array_equal(payload, np.take_along_axis(other, right, axis))
        for k in range(1, min(shape[axis], 7) + 1) if 0 not in shape else ():
            value, place = hgops.apply_all("kth_value", key, k=k, axis=axis, keep=1)
            right = np.take(order_of(key, axis, 0), [k - 1], axis)
            assert np.array_equal(place, right) and value.tobytes() == np.take_along_axis(key, right, axis).tobytes()
    with pytest.raises(hgops.Error, match="keys have one shape"):
        hgops.apply("lexsort", np.ones(3, np.float32), np.ones(4, np.float32))


def wide(x):
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 64, 100, 1000])
def test_searching(kind, size):
    x, v = np.sort(wide(numbers(kind, (size,), 1))), numbers(kind, (3, 11), 2)
    x = x.astype(TYPES[kind])
    for number, side in enumerate(("left", "right")):
        expected = np.searchsorted(wide(x), wide(v), side)
        assert np.array_equal(hgops.apply("searchsorted", x, v, side=side), expected)
        assert np.array_equal(hgops.apply("bucketize", v, x, right=number), expected)
        batch = np.stack([x, np.roll(x, 1), x])
        batch[1] = x
        assert np.array_equal(hgops.apply("searchsorted", batch, v, side=side), expected)
        order = np.random.default_rng(3).permutation(size)
        back = np.argsort(order)
        assert np.array_equal(hgops.apply("searchsorted", x[order], v, back, side=side), expected)


def test_searching_what_does_not_fit():
    x = np.ones((2, 5), np.float32)
    with pytest.raises(hgops.Error, match="x has one axis, or all but the last are those of values"):
        hgops.apply("searchsorted", x, np.ones((3, 4), np.float32))
    with pytest.raises(hgops.Error, match="it has a number for each element of x"):
        hgops.apply("searchsorted", x, x, np.ones(5, np.int64))


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("sizes, axis", [((5, 7), -1), ((1, 1), 0), ((0, 3), 0), ((300, 2), -1)])
def test_merging(kind, sizes, axis):
    for rows in ((), (3,)):
        a, b = (np.sort(wide(numbers(kind, (*rows, size), 4 + size)), -1).astype(TYPES[kind]) for size in sizes)
        both = np.concatenate([wide(a), wide(b)], -1)
        right = np.take_along_axis(np.concatenate([a, b], -1), np.argsort(both, -1, kind="stable"), -1)
        own = hgops.apply("merge", a, b) if axis == -1 else np.moveaxis(hgops.apply("merge", a.T.copy(), b.T.copy(), axis=0), 0, -1)
        nans = wide(right) != wide(right)
        assert own.dtype == right.dtype and np.array_equal(wide(own) != wide(own), nans)
        assert own[~nans].tobytes() == right[~nans].tobytes()


METHODS = hgops.TABLE["quantile"]["defaults"]["method"].split("|")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["f64", "f32", "i32", "f16"])
def test_quantiles(kind, method):
    """What NumPy computes in f64; a share of two neighbours may be rounded otherwise in its last bit."""
    rng, shares = np.random.default_rng(5), np.array([0, 0.1, 0.25, 1 / 3, 0.5, 0.6, 0.75, 0.9, 1])
    for size in (1, 2, 3, 4, 5, 8, 9, 20, 100):
        x = (rng.standard_normal((3, size)) * 8).astype(TYPES[kind])
        expected = np.quantile(x.astype(np.float64), shares, 1, method=method).T
        own = hgops.apply("quantile", x, shares, method=method)
        assert own.dtype == (np.float32 if kind == "i32" else TYPES[kind])
        if kind == "f64":
            assert np.allclose(own, expected, 1e-13, 1e-13)
        else:
            assert np.array_equal(own, expected.astype(own.dtype))
        if kind != "i32":
            x[1, size // 2] = np.nan
            own = hgops.apply("quantile", x, shares, method=method)
            assert np.isnan(own[1]).all() and np.array_equal(own[[0, 2]], expected.astype(own.dtype)[[0, 2]]) or kind == "f64"
            left = np.delete(x[1].astype(np.float64), size // 2)
            own = hgops.apply("quantile", x, shares, method=method, ignore_nan=1)[1]
            expected = np.quantile(left, shares, method=method).astype(own.dtype) if size > 1 else own * np.nan
            assert np.allclose(own, expected, 1e-13, 1e-13, equal_nan=True)


def test_quantiles_that_are_infinite_or_none():
    inf = np.inf
    x = np.array([1, 2, inf])
    assert hgops.apply("quantile", x, np.array([0.5, 1.0, -0.1, 1.1, np.nan])).tolist()[:2] == [2, inf]
    assert np.isnan(hgops.apply("quantile", x, np.array([-0.1, 1.1, np.nan]))).all()
    assert hgops.apply("median", np.array([inf, inf, 1.0, inf])) == inf and hgops.apply("median", np.array([-inf, -inf])) == -inf
    assert np.isnan(hgops.apply("median", np.array([-inf, inf])))
    assert hgops.apply("median", np.array([[5, 1], [2, 9], [7, 7]], np.int32), axis=0).tolist() == [5, 7]
    assert hgops.apply("median", np.array([1, 2], np.int8)) == 1.5


def test_methods():
    assert METHODS == ("linear lower higher midpoint nearest hazen weibull median_unbiased normal_unbiased inverted_cdf "
                       "averaged_inverted_cdf closest_observation interpolated_inverted_cdf").split()
