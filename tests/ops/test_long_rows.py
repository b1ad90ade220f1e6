"""Rows that are longer than a block's registers: on a GPU with enough shared memory a block has a part of its row there. It does so
where every multiprocessor gets two rows, so what is computed is a few rows, many times over."""

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


CASES = [(softmax, 65537, "f32"), (softmax, 131072, "f32"), (softmax, 200002, "bf16"), (layer_norm, 140004, "f32"), (spread, 131072, "f32"),
         (spread, 70002, "f16"), (variance, 266240, "f32")]


def computed(engine, copies, what, x, y, w):
    c = Computation()
    x, y = (np.broadcast_to(a, (copies, *a.shape)) for a in (x, y))
    c.output(what(c, c.input(x), c.input(y), c.input(w)))
    return c.run_on(engine, report=True)


@pytest.mark.parametrize("what, columns, kind", CASES)
def test_longer_than_registers(what, columns, kind):
    rng = np.random.default_rng(columns)
    x, y, w = (rng.standard_normal(shape).astype(TYPES[kind]) for shape in ((ROWS, columns), (ROWS, columns), columns))
    units = hgops.compute_units(ENGINES[0]) if BACKEND > 1 else 0
    (result,), report = computed(ENGINES[0], max(1, -(-2 * units // ROWS)), what, x, y, w)
    (expected,), _ = computed(REFERENCE, 1, what, x, y, w)
    for copy in result:
        assert copy.tobytes() == expected.tobytes()
    if BACKEND == hgops.CUDA:
        assert f" rows, {1024 * ROWS * len(result)} lanes" in report, report
