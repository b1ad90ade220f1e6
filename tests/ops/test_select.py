"""take_where and mask_ends beside NumPy, bit for bit: every type, none, some and all of the elements, results that are too short, right
and too long; masks and elements that are computed where they are read."""

import json

import numpy as np
import pytest

from hgops import ENGINES, NO_FUSION, TYPES, Computation, Error, laid_out

pytestmark = pytest.mark.engine

SHAPES = [(1,), (2,), (255,), (256,), (257,), (1, 1), (7, 50), (3, 1, 300), (2, 5, 1, 60), (70001,), (0,), (3, 0)]
SHARES = (0.0, 0.1, 0.5, 0.9, 1.0)


def elements(kind, shape, seed):
    """Any bits at all, of bool 0 and 1."""
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.random(shape) < 0.5
    own = np.dtype(TYPES[kind])
    return rng.integers(0, 256, (*shape, own.itemsize), np.uint8).view(own).reshape(shape)


def selected(x, mask, size):
    found = x[mask][:size]
    return np.concatenate([found, np.zeros(size - len(found), x.dtype)])


def ends_of(mask):
    flat = mask.ravel()
    starts = range(0, len(flat), 256)
    return np.cumsum([0, *(np.count_nonzero(flat[k : k + 256]) for k in starts)])


@pytest.mark.parametrize("kind", TYPES)
def test_every_type(kind):
    rng = np.random.default_rng(1)
    for seed, shape in enumerate(SHAPES):
        for share in SHARES:
            x, mask = elements(kind, shape, seed), rng.random(shape) < share
            count = int(np.count_nonzero(mask))
            for size in {count, count // 2, count + 3, x.size + 300}:
                c = Computation()
                layout = rng.choice(["dense", "strided"]) if x.ndim > 1 and x.size else "dense"
                value = c.input(laid_out(x, layout, 3) if layout != "dense" else x)
                ends = c.op("mask_ends", c.input(mask))
                c.output(c.op("take_where", value, c.input(mask), *([ends] if size <= count else []), size=size))
                c.output(ends)
                own, own_ends = c.run()
                assert own.tobytes() == selected(x, mask, size).tobytes(), f"{size} of {kind} {shape}, of which {count} hold"
                assert np.array_equal(own_ends, ends_of(mask))


@pytest.mark.parametrize("flags", [0, NO_FUSION])
def test_what_is_computed_on_the_way(flags):
    """A mask, elements and numbers of places that no launch stores, and what is made of the result."""
    rng = np.random.default_rng(2)
    for shape in ((40, 33), (1000,), (5000,)):
        x, w = (rng.integers(-9, 10, shape).astype(np.float32) for _ in range(2))
        for level in (-20, 0, 7, 20):
            c = Computation()
            a, b = c.input(x), c.input(w)
            mask = c.op("greater", c.op("mul", a, b), c.number("f32", level))
            right = x * w > level
            size = int(np.count_nonzero(right)) + 2
            c.output(c.op("add", c.op("take_where", c.op("add", a, b), mask, size=size), c.number("f32", 1)))
            c.output(c.op("take_where", c.op("arange", start=0, stop=x.size, type="i64"), c.op("reshape", mask, shape=[x.size]), size=size))
            c.output(c.op("sum", c.op("take_where", a, mask, size=size)))
            values, places, total = c.run(flags)
            assert np.array_equal(values, selected(x + w, right, size) + 1)
            assert np.array_equal(places, selected(np.arange(x.size).reshape(shape), right, size))
            assert total == x[right].sum()


def test_shapes_broadcast():
    rng = np.random.default_rng(3)
    x, mask = rng.integers(0, 99, (4, 1, 6)), rng.random((5, 1)) < 0.5
    c = Computation()
    c.output(c.op("take_where", c.input(x), c.input(mask), size=100))
    both = np.broadcast_arrays(x, mask)
    assert np.array_equal(c.run()[0], selected(both[0], both[1], 100))


def test_launches():
    """The mask is read twice, the elements once: a count of each part, sums of the counts, and one launch for the rest."""
    c = Computation()
    x = np.random.default_rng(4).standard_normal(100_000).astype(np.float32)
    mask = x > 0
    c.output(c.op("take_where", c.input(x), c.input(mask), size=int(mask.sum())))
    c.run()
    report = c.run_on(ENGINES[0], report="json")[1]
    launches = json.loads(report)["launches"]
    assert [launch["kind"] for launch in launches].count("select") == 1 and len(launches) <= 4


def test_fewer_than_the_ends_are_asked_for():
    for shape in ((5,), (300,), (70001,)):
        c = Computation()
        mask = c.input(np.arange(shape[0]) % 3 == 0)
        c.output(c.op("take_where", c.input(np.zeros(shape)), mask, c.op("mask_ends", mask), size=(shape[0] + 2) // 3 + 1))
        with pytest.raises(Error, match="FAULT"):
            c.run()


@pytest.mark.parametrize("ends", [[0, 0, 0, 0, 450], [0, 450, 450, 450, 450], [2**32] * 4 + [2**32 + 450], [-450, 0, 100, 200, 450]])
def test_ends_of_another_mask(ends):
    """Elements would stay unwritten, or be written twice."""
    c = Computation()
    mask = c.input(np.arange(1000) % 2 == 0)
    c.output(c.op("take_where", c.input(np.ones(1000, np.float32)), mask, c.input(np.array(ends)), size=450))
    with pytest.raises(Error, match="FAULT"):
        c.run()


def test_bad_calls():
    for call, says in ((lambda c, x, m: c.op("take_where", x, m, size=-1), "size is -1; a result has 0 elements or more"),
                       (lambda c, x, m: c.op("take_where", x, x, size=1), "cast(mask, bool)"),
                       (lambda c, x, m: c.op("take_where", x, m, size=1 << 41), "more than 2^40 elements"),
                       (lambda c, x, m: c.op("take_where", x, m, c.op("mask_ends", m), size=301),
                        "size is 301, and the mask has 300 elements"),
                       (lambda c, x, m: c.op("take_where", x, m, c.op("arange", start=0, stop=5), size=1),
                        "ends is i64[5] and not what mask_ends makes of a mask of 300 elements")):
        c = Computation()
        with pytest.raises(Error) as error:
            c.output(call(c, c.input(np.zeros(300, np.float32)), c.input(np.zeros(300, bool))))
            c.run()
        assert says in str(error.value)
