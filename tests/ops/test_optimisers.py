"""Steps of optimisers over many tensors in one computation: the bits of its operations one by one, and few launches on a GPU."""

import re

import numpy as np
import pytest

import hgops

pytestmark = pytest.mark.engine
f32, f16 = np.float32, np.float16
SHAPES = [(5, 3), (1,), (17,), (64, 4), (2, 3, 5), (1030,), (33, 8), (), (4,), (3,), (8, 8), (300, 7)]


def arrays(shapes, count, seed=3, kind=f32):
    """Of each shape so many, transposed where there is more than one axis and the number is odd."""
    random = np.random.default_rng(seed)
    made = [[np.asarray(abs(random.standard_normal(shape)), kind) for _ in range(count)] for shape in shapes]
    return [[a.T.copy().T if len(a.shape) > 1 and i % 2 else a for a in group] for i, group in enumerate(made)]


def steps(name, state, kind=f32, **arguments):
    """A computation that updates tensors of all shapes in place."""
    c = hgops.Computation()
    rate, step = c.number("f16" if kind == f16 else "f32", 0.1), c.number("f32", 3)
    for group in arrays(SHAPES, 2 + state, kind=kind):
        values = [c.input(a) for a in group]
        own, gradient, *kept = values
        results = c.op_all(name, own, gradient, *kept, rate, *([step] if name[0] == "a" else []), **arguments) if name[0] == "a" \
            else c.op_all(name, own, gradient, rate, *kept, **arguments)
        for old, new in zip([own, *kept], results):
            c.update(old, new)
    return c


def launches(c):
    text = c.run_on(hgops.ENGINES[0], report=True)[1]
    return int(re.search(r"(\d+) launches", text).group(1)), text


CASES = [("sgd", 0, {}), ("sgd", 1, {"momentum": 0.9}), ("sgd", 1, {"momentum": 0.9, "nesterov": 1, "decay": 0.01}),
         ("adam", 2, {}), ("adamw", 2, {}), ("adamax", 2, {}), ("amsgrad", 3, {"decoupled": 1})]


@pytest.mark.parametrize("name, state, arguments", CASES)
@pytest.mark.parametrize("kind", [f32, f16])
def test_many_tensors(name, state, arguments, kind):
    c = steps(name, state, kind, **arguments)
    for one, all_of_them in zip(c.run(hgops.NO_FUSION), c.run()):
        assert one.tobytes() == all_of_them.tobytes()


def test_maps_that_wait_for_each_other():
    """Of a chain through reductions each map waits for one before it; two chains share launches."""
    c = hgops.Computation()
    for (x,) in arrays([(40, 3), (6,), (9, 9)], 1):
        value = c.input(x)
        for _ in range(3):
            total = c.op("sum", c.op("exp", value), axes=list(range(x.ndim)))
            value = c.op("div", value, total)
        c.output(value)
    for one, fused in zip(c.run(hgops.NO_FUSION), c.run()):
        assert one.tobytes() == fused.tobytes()


def test_an_update_waits_for_its_readers():
    """One map writes over what another one of another shape reads, transposed: never one launch."""
    c = hgops.Computation()
    x, y = c.input(np.arange(12, dtype=f32).reshape(3, 4)), c.input(np.ones(5, f32))
    c.output(c.op("mul", c.op("permute", x, axes=[1, 0]), c.number("f32", 2)))
    c.update(x, c.op("neg", x))
    c.update(y, c.op("neg", y))
    first = c.run(hgops.NO_FUSION)
    assert first[0][1, 2] == 18
    for one, fused in zip(first, c.run()):
        assert one.tobytes() == fused.tobytes()


@pytest.mark.skipif(hgops.BACKEND not in (2, 3), reason="a processor's launches cost little")
def test_few_launches():
    count, text = launches(steps("adam", 2))
    assert count <= 1 + -(-len(SHAPES) // 5), text
