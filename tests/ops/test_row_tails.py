"""Rows that a block holds, but not as a whole number of its lanes: the last columns of each are a tail, and of short rows the
last block has fewer than others."""

import numpy as np
import pytest
from hgops import ENGINES, REFERENCE, TYPES, Computation
from test_rules import fold

ROWS = 37


def softmax(c, x, w):
    return c.op("softmax", x, axis=-1)


def log_softmax(c, x, w):
    return c.op("log_softmax", x, axis=-1)


def layer_norm(c, x, w):
    return c.op("layer_norm", x, w, w)


def difference(c, x, w):
    """What lanes beyond a row's end hold counts nowhere but in the sum."""
    return c.op("mul", c.op("sub", x, c.op("max", x, axes=-1, keep=1)), c.op("add", c.op("sum", x, axes=-1, keep=1), w))


def variance(c, x, w):
    return c.op("var", x, axes=-1)


def place(c, x, w):
    return c.op("argmax", x, axes=-1)


CASES = [softmax, log_softmax, layer_norm, difference, variance, place]


@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize("columns, kind", [(17, "f32"), (100, "f32"), (129, "bf16"), (240, "f64"), (300, "f32"), (300, "f16"),
                                           (513, "f32"), (1000, "f32"), (1000, "bf16"), (1023, "f16"), (1100, "f32"), (1500, "f32"),
                                           (2000, "f32"), (2000, "bf16"), (3001, "f32"), (4000, "f32"), (4095, "bf16")])
def test_same_bits(what, columns, kind):
    rng = np.random.default_rng(columns)
    x, w = (rng.standard_normal(shape).astype(TYPES[kind]) for shape in ((ROWS, columns), columns))
    c = Computation()
    c.output(what(c, c.input(x), c.input(w)))
    (expected,) = c.run_on(REFERENCE)
    for engine in ENGINES:
        (result,) = c.run_on(engine)
        assert result.tobytes() == expected.tobytes(), engine


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("columns", [65536 + 1, 65536 + 300, 17 * 4096 - 1])
def test_last_chunk(rows, columns):
    """An incomplete last chunk of a long row has a launch of its own on a processor."""
    x = np.random.default_rng(columns).standard_normal((rows, columns)).astype(np.float32)
    x[-1, -1] = 9
    c = Computation()
    for name in ("sum", "max", "argmax"):
        c.output(c.op(name, c.input(x), axes=-1))
    for engine in [REFERENCE, *ENGINES]:
        total, most, place = c.run_on(engine)
        assert total.reshape(-1).tolist() == [fold(row) for row in x], engine
        assert most.reshape(-1).tolist() == x.max(1).tolist() and place.reshape(-1).tolist() == x.argmax(1).tolist(), engine
