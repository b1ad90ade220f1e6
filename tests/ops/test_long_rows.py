"""Long rows: a warp of a block has a chunk of 4096 columns in its registers, where a GPU can spread a block over several
multiprocessors; rows that are longer than that, or no whole chunks, lie in shared memory in part. Both are for many rows, so what is
computed is a few rows, many times over."""

import hgops
import numpy as np
import pytest
from hgops import BACKEND, ENGINES, REFERENCE, TYPES, Computation

ROWS = 3


def softmax(c, x, y, w):
    return c.op("softmax", x, axis=-1)


def layer_norm(c, x, y, w):
    return c.op("layer_norm", x, w, w)


def spread(c, x, y, w):
    """Two sums side by side, then one of what they make: three stages."""
    mean, other = c.op("mean", x, axes=-1, keep=1), c.op("mean", y, axes=-1, keep=1)
    both = c.op("mul", c.op("sub", x, mean), c.op("sub", y, other))
    return c.op("mul", c.op("sub", both, c.op("mean", both, axes=-1, keep=1)), w)


def variance(c, x, y, w):
    return c.op("var", x, axes=-1)


SHARED = [(softmax, 65537, "f32"), (softmax, 262144, "f32"), (softmax, 200002, "bf16"), (layer_norm, 140004, "f32"),
          (spread, 262144, "f32"), (spread, 70002, "f16"), (variance, 266240, "f32")]
WEIGHTS = [(layer_norm, 20480, "f32"), (layer_norm, 32768, "bf16"), (spread, 20481, "f32")]
BY_CHUNKS = [(softmax, 131072, "f32"), (softmax, 98304, "bf16"), (layer_norm, 61440, "f32"), (layer_norm, 49152, "f16"),
             (spread, 65536, "f32"), (variance, 102400, "f32"), (variance, 131072, "bf16")]


def computed(engine, copies, what, x, y, w):
    c = Computation()
    x, y = (np.broadcast_to(a, (copies, *a.shape)) for a in (x, y))
    c.output(what(c, c.input(x), c.input(y), c.input(w)))
    return c.run_on(engine, report=True)


def check(what, columns, kind, rows, lanes):
    """`rows`: at least so many are computed; `lanes`: of a row's block."""
    rng = np.random.default_rng(columns)
    x, y, w = (rng.standard_normal(shape).astype(TYPES[kind]) for shape in ((ROWS, columns), (ROWS, columns), columns))
    (result,), report = computed(ENGINES[0], -(-rows // ROWS), what, x, y, w)
    (expected,), _ = computed(REFERENCE, 1, what, x, y, w)
    for copy in result:
        assert copy.tobytes() == expected.tobytes()
    if BACKEND == hgops.CUDA:
        assert f" rows, {lanes * ROWS * len(result)} lanes" in report, report


@pytest.mark.parametrize("what, columns, kind", SHARED)
def test_partly_in_shared_memory(what, columns, kind):
    check(what, columns, kind, 2 * hgops.compute_units(ENGINES[0]) if BACKEND > 1 else 1, 1024)


@pytest.mark.parametrize("what, columns, kind", BY_CHUNKS)
def test_a_chunk_a_warp(what, columns, kind):
    warps = 16 if columns <= 65536 else 32
    check(what, columns, kind, 2048 // warps if BACKEND == hgops.CUDA else 1, 32 * warps)


@pytest.mark.parametrize("what, columns, kind", WEIGHTS)
def test_weights_are_read_behind_what_is_reduced(what, columns, kind):
    """A GPU's registers hold the rows or the weights."""
    rng = np.random.default_rng(columns)
    x, y, w = (rng.standard_normal(shape).astype(TYPES[kind]) for shape in ((ROWS, columns), (ROWS, columns), columns))
    (result,), report = computed(ENGINES[0], 3, what, x, y, w)
    (expected,), _ = computed(REFERENCE, 1, what, x, y, w)
    for copy in result:
        assert copy.tobytes() == expected.tobytes()
    assert "2. rows" in report or BACKEND < 2, report


def special(kind, rows, columns, name):
    """Ties in a chunk and across chunks, zeros of both signs, infinities, and NaNs of which the first counts."""
    low, high = ("-inf", "inf") if kind.startswith("f") else (-100, 100)
    worst, best = (low, high) if name == "argmax" else (high, low)
    lines = np.full((5, columns), worst, TYPES[kind])
    lines[1, [5000, 5001, 9000, columns - 1]] = best
    lines[2, columns - 1] = best
    if kind.startswith("f"):
        lines[0] = lines[3] = 0
        lines[0, ::2] = -0.0
        lines[3, [4095, 4096]] = best
        lines[3, [8193, columns - 2]] = np.nan
    return lines[-rows:] if rows < 3 else lines[:rows]


@pytest.mark.parametrize("kind", ["f32", "f64", "i16"])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("rows, columns", [(1, 12289), (2, 16384), (5, 70000)])
def test_the_chunk_of_an_extreme(name, kind, rows, columns):
    """A processor finds the chunk first, then the place in it."""
    x = special(kind, rows, columns, name)
    expected = getattr(np, name)(x, axis=1)
    c = Computation()
    place = c.op(name, c.input(x), axes=-1)
    c.output(place)
    c.output(c.op("add", place, place))
    for engine in [REFERENCE, *ENGINES]:
        result, twice = c.run_on(engine)
        assert result.tolist() == expected.tolist() and twice.tolist() == (2 * expected).tolist(), engine
