"""Inputs that a run updates: written in place where nothing else needs the old elements, and never with other bits than one by one.

Behind a contraction, behind a reduction, and among maps; what reads the old elements otherwise is computed before, or from a copy.
"""

import random

import numpy as np
import pytest

from hgops import ENGINES, NO_FUSION, Computation

RATE = 0.01


def check(computation, copies=None):
    """Fused and one by one, on all engines; `copies`: how many launches of the first engine's fused form copy."""
    fused, single = computation.run(), computation.run(NO_FUSION)
    for a, b in zip(fused, single):
        assert a.tobytes() == b.tobytes()
    if copies is not None:
        report = computation.run_on(ENGINES[0], report=True)[1]
        assert report.count("copy,") == copies, report
    return fused


def arrays(*shapes, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


def inputs(c, *shapes, seed=1):
    return [c.input(array) for array in arrays(*shapes, seed=seed)]


def adam(c, weight, gradient, shape):
    states = inputs(c, shape, shape, seed=9)
    states[1] = c.input(np.abs(arrays(shape)[0]))
    step = c.input(np.ones((), np.float32))
    for old, new in zip([weight, *states], c.op_all("adam", weight, gradient, *states, c.number("f32", RATE), step)):
        c.update(old, new)


@pytest.mark.parametrize("m, n, k", [(3, 5, 2), (33, 64, 17), (64, 130, 300), (1, 300, 40), (300, 1, 600)])
def test_optimisers_behind_a_contraction(m, n, k):
    for name in ("sgd", "adam"):
        c = Computation()
        x, y, w = inputs(c, (m, k), (k, n), (m, n))
        gradient = c.op("matmul", x, y)
        if name == "adam":
            adam(c, w, gradient, (m, n))
        else:
            c.update(w, c.op("sgd", w, gradient, c.number("f32", RATE)))
        before = c.arrays[2]
        after = check(c, copies=0)[0].reshape(m, n)
        if name == "sgd":
            np.testing.assert_allclose(after, before - np.float32(RATE) * (c.arrays[0] @ c.arrays[1]), atol=1e-4)


@pytest.mark.parametrize("rows, columns, axis", [(5, 3, 0), (130, 64, 0), (64, 300, 1), (3, 9000, 1), (9000, 3, 0), (2, 70000, 1)])
def test_optimisers_behind_a_reduction(rows, columns, axis):
    c = Computation()
    x, b = inputs(c, (rows, columns), ((rows, columns)[1 - axis],))
    adam(c, b, c.op("sum", x, axes=[axis]), c.arrays[1].shape)
    check(c, copies=0)


def test_a_contraction_that_is_the_update():
    c = Computation()
    x, y, w = inputs(c, (8, 9), (9, 7), (8, 7))
    c.update(w, c.op("matmul", x, y))
    check(c, copies=0)


@pytest.mark.parametrize("shape", [(8, 9, 7), (33, 17, 130), (1, 40, 3)])
def test_a_contraction_is_one_launch(shape):
    """Its result lies where it was asked for, under whatever shape."""
    m, k, n = shape
    c = Computation()
    c.output(c.op("matmul", *inputs(c, (m, k), (k, n))))
    check(c)
    assert " 1 launches" in c.run_on(ENGINES[0], report=True)[1]


def test_others_read_the_old_elements():
    """Before the update, at the same place beside it, and by a contraction."""
    c = Computation()
    x, y, w = inputs(c, (33, 17), (17, 20), (33, 20))
    product = c.op("matmul", x, y)
    c.update(w, c.op("sub", w, product))
    c.output(c.op("mul", w, product))
    c.output(c.op("matmul", w, c.op("permute", y, axes=[1, 0])))
    c.output(c.op("sum", w, axes=[0]))
    check(c, copies=0)


def test_read_elsewhere_by_its_own_launch():
    """Transposed, and as an operand: what is updated then lies elsewhere first."""
    for operand in (False, True):
        c = Computation()
        x, w = inputs(c, (40, 40), (40, 40))
        product = c.op("matmul", x, w if operand else x)
        c.update(w, c.op("add", product, w if operand else c.op("permute", w, axes=[1, 0])))
        check(c)


@pytest.mark.parametrize("kind", ["map", "contraction", "reduction"])
def test_updates_that_read_each_other(kind):
    """All are computed before the first is stored."""
    c = Computation()
    x, y, a, b, d = inputs(c, (20, 40), (40, 30), *[(20,) if kind == "reduction" else (20, 30)] * 3)
    if kind == "contraction":
        value = c.op("matmul", x, y)
    elif kind == "reduction":
        value = c.op("sum", x, axes=[1])
    else:
        value = c.op("exp", c.input(arrays((20, 30))[0]))
    c.output(c.op("add", a, c.op("mul", b, value)))
    c.update(a, c.op("sub", value, b))
    c.update(b, c.op("mul", value, d))
    c.update(d, c.op("fma", value, a, b))
    check(c, copies=0)


@pytest.mark.parametrize("kind", ["f16", "bf16", "f64", "i32"])
def test_other_types_and_strides(kind):
    from hgops import TYPES
    c = Computation()
    rng = np.random.default_rng(3)
    draw = lambda *shape: rng.integers(-9, 9, shape).astype(TYPES[kind])
    x, y = c.input(draw(33, 20)), c.input(draw(20, 18))
    product = c.op("matmul", x, y)
    for array in (draw(18, 33).T, draw(33, 18)[::-1], draw(33, 36)[:, ::2]):
        w = c.input(array)
        c.update(w, c.op("sub", w, product))
    check(c, copies=0)


def test_a_reduction_of_what_is_updated():
    """It is a launch of its own, so that no copy is needed."""
    c = Computation()
    w, g = inputs(c, (30, 70), (30, 70))
    new = c.op("sgd", w, g, c.number("f32", RATE))
    c.update(w, new)
    c.output(c.op("sum", c.op("square", new), axes=[1]))
    scaled = c.op("div", g, c.op("norm", g, axes=[1], keep=1))
    v = c.input(arrays((30, 70), seed=4)[0])
    c.update(v, c.op("sub", v, scaled))
    check(c, copies=0)


def draft(seed):
    """A few weights, and values that contractions, reductions, maps and transpositions make of them, some of which update them."""
    r, c, n = random.Random(seed), Computation(), 12
    square, vectors = inputs(c, *[(n, n)] * 4, seed=seed), inputs(c, *[(n,)] * 3, seed=seed)
    weights = {"square": square[:], "vectors": vectors[:]}
    for _ in range(r.randint(3, 9)):
        a, b, v = r.choice(square), r.choice(square), r.choice(vectors)
        what = r.randrange(7)
        if what == 0:
            square.append(c.op("matmul", a, b))
        elif what == 1:
            square.append(c.op("permute", a, axes=[1, 0]))
        elif what == 2:
            square.append(c.op("add", a, v))
        elif what == 3:
            vectors.append(c.op(r.choice(["sum", "max"]), a, axes=[r.randint(0, 1)]))
        elif what == 4:
            vectors.append(c.op("sub", v, r.choice(vectors)))
        else:
            square.append(c.op(r.choice(["sub", "mul", "minimum"]), a, b))
    for kind, made in (("square", square), ("vectors", vectors)):
        for weight in r.sample(weights[kind], r.randint(0, 3)):
            c.update(weight, r.choice(made[-5:]))
        if r.random() < 0.5:
            c.output(r.choice(made))
    return c


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_random_updates(first):
    for seed in range(first, first + 50):
        c = draft(seed)
        if c.results or c.updated:
            check(c)


@pytest.mark.parametrize("count", range(1, 5))
def test_read_by_rows_that_others_join(count):
    """Sums join the rows that they read once nothing lies between, and the update comes behind these, as it did before."""
    c = Computation()
    w = inputs(c, (8, 2))[0]
    c.update(w, c.op("add", c.op("exp", w), c.op("mul", w, w)))
    part = c.op("slice", w, axis=0, start=0, stop=4, step=1)
    most = c.op("max", part, axes=[1], keep=1)
    c.output(most)
    for i in range(count):
        large = c.op("flip", c.op("sum", inputs(c, (4, 1024), seed=i + 2)[0], axes=[1], keep=1), axes=[0])
        c.output(c.op("sum", c.op("mul", c.op("sub", part, most), large), axes=[1]))
    check(c, copies=0)
    report = c.run_on(ENGINES[0], report=True)[1]
    assert f": {count + 2} launches" in report, report
