"""sort_with_places beside NumPy, bit for bit: every type, both directions, any axis, rows of a few elements, of a block's and of several
blocks'; and a node with two results in graphs: which of them is wanted, what reads them, what they are made of."""

import json

import numpy as np
import pytest

from hgops import ENGINES, FLOATS, NO_FUSION, TYPES, Computation, laid_out
from test_values import INTEGERS

pytestmark = pytest.mark.engine

SHAPES = [((2,), 0), ((3,), 0), ((7, 5), 0), ((3, 70), -1), ((2, 130, 3), 1), ((2, 1025), 1), ((1, 1), 0), ((0, 3), 1), ((3, 0), 1)]
LONG = [((2, 2048), 1), ((2, 2049), 1), ((3, 4500), 1), ((9000, 2), 0), ((70000,), 0)]


def numbers(kind, shape, seed):
    """Many equal ones, and all that floats have."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.random(shape) < 0.4
    if kind in FLOATS:
        x = (rng.integers(-40, 40, shape) / 8).astype(TYPES[kind])
        for nth, odd in enumerate((np.nan, -np.nan, -0.0, np.inf, -np.inf, 2**-13)):
            x.reshape(-1)[nth::17] = odd
        return x
    limits = np.iinfo(TYPES[kind])
    x = rng.integers(limits.min, limits.max, shape, TYPES[kind], endpoint=True)
    x.reshape(-1)[::3] = x.reshape(-1)[:1]
    x.reshape(-1)[1::11], x.reshape(-1)[2::13] = limits.max, limits.min
    return x


def order_of(x, axis, descending):
    """Stable in both directions; NaN is the greatest."""
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    if not descending:
        return np.argsort(wide, axis, kind="stable")
    turned = np.argsort(np.flip(wide, axis), axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


def check(x, axis, descending, layout="dense"):
    c = Computation()
    values, places = c.op_all("sort_with_places", c.input(laid_out(x, layout, 3) if layout != "dense" else x), axis=axis,
                              descending=descending)
    c.output(values, layout)
    c.output(places)
    own, own_places = c.run()
    right = order_of(x, axis, descending)
    assert np.array_equal(own_places, right), f"places of {x.dtype} {x.shape}"
    assert own.tobytes() == np.take_along_axis(x, right, axis).tobytes(), f"values of {x.dtype} {x.shape}"


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, "bool"])
def test_rows(kind):
    for seed, (shape, axis) in enumerate(SHAPES):
        for descending in (0, 1):
            check(numbers(kind, shape, seed), axis, descending)
    check(numbers(kind, (4, 33), 5), 1, 1, "mixed")
    check(numbers(kind, (4, 33), 5), 0, 0, "apart")


@pytest.mark.parametrize("kind", ["u8", "f32", "i64"])
@pytest.mark.parametrize("shape, axis", LONG)
def test_long_rows(kind, shape, axis):
    check(numbers(kind, shape, 7), axis, len(shape) - 1)


@pytest.mark.parametrize("wanted", ["values", "places", "both"])
@pytest.mark.parametrize("flags", [0, NO_FUSION])
def test_what_is_wanted_of_two_results(wanted, flags):
    """One launch, whichever of its results others read; what is made of them comes after it."""
    x = numbers("f32", (5, 40), 1)
    c = Computation()
    values, places = c.op_all("sort_with_places", c.input(x), axis=1)
    for value in {"values": [values], "places": [places], "both": [values, places]}[wanted]:
        c.output(value)
    right = order_of(x, 1, 0)
    expected = {"values": np.take_along_axis(x, right, 1), "places": right}
    own = c.run(flags)
    for made, name in zip(own, [wanted] if wanted != "both" else ["values", "places"]):
        assert made.tobytes() == expected[name].tobytes()
    launches = json.loads(c.run_on(ENGINES[0], flags, report="json")[1])["launches"]
    assert [launch["kind"] for launch in launches].count("sort") == 1


@pytest.mark.parametrize("flags", [0, NO_FUSION])
def test_results_are_read_and_made_of_others(flags):
    x, w = numbers("f64", (6, 50), 2), np.array(3.0)
    c = Computation()
    a = c.input(x)
    scaled = c.op("mul", a, c.input(w))
    values, places = c.op_all("sort_with_places", scaled, axis=0, descending=1)
    again = c.op_all("sort_with_places", places, axis=1)
    c.output(c.op("add", values, c.op("cast", places, type="f64")))
    c.output(again[1])
    c.output(c.op("sum", values, axes=[0]))
    own = c.run(flags)
    right = order_of(x * w, 0, 1)
    ordered = np.take_along_axis(x * w, right, 0)
    assert np.array_equal(ordered + right, own[0], equal_nan=True)
    assert np.array_equal(own[1], order_of(right, 1, 0))


def test_a_deep_chain_before_it_is_cut():
    """More than one launch can compute: its two results stay together."""
    x = np.linspace(-2, 2, 96, dtype=np.float32).reshape(2, 48)
    c = Computation()
    value, right = c.input(x), x
    for k in range(300):
        value = c.op("mul", value, c.number("f32", 1 + 2.0**-10 * (k % 3)))
        right = right * np.float32(1 + 2.0**-10 * (k % 3))
    values, places = c.op_all("sort_with_places", value, axis=1, descending=1)
    c.output(places)
    c.output(values)
    own = c.run()
    assert np.array_equal(own[0], order_of(right, 1, 1)) and own[1].tobytes() == np.flip(right, 1).tobytes()


def test_over_its_own_input():
    """The tensor becomes its sorted self; where each element was is a result besides."""
    x = numbers("i32", (3, 600), 4)
    c = Computation()
    a = c.input(x)
    values, places = c.op_all("sort_with_places", a, axis=1)
    c.output(places)
    c.update(a, values)
    own, memory = c.run()
    right = order_of(x, 1, 0)
    assert np.array_equal(own, right) and np.array_equal(memory.reshape(x.shape), np.take_along_axis(x, right, 1))


def test_an_update_over_the_second_result():
    x = numbers("u16", (5, 9), 6)
    c = Computation()
    _, places = c.op_all("sort_with_places", c.input(x), axis=1)
    c.output(c.op("update", places, c.number("i64", -1), start=[1, 0], stop=[2, 9], step=[1, 2]))
    right = order_of(x, 1, 0)
    right[1, ::2] = -1
    assert np.array_equal(c.run()[0], right)
