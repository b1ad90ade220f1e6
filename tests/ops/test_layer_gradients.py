"""Gradients of layers: a weight's is computed as the weight lies, whichever way the product reads it."""

import numpy as np
import pytest

import hgops

pytestmark = pytest.mark.engine


def gradient_of(operation, x, weight, cotangent, flags=0, **arguments):
    computation = hgops.Computation()
    a, b, g = computation.input(x), computation.input(weight), computation.input(cotangent)
    for gradient in computation.gradient(computation.op(operation, a, b, **arguments), [a, b], g):
        computation.output(gradient)
    return computation, computation.run(flags)


@pytest.mark.parametrize("flags", [0, hgops.NO_FUSION])
@pytest.mark.parametrize("m, k, n", [(5, 7, 3), (1, 4, 6), (4, 1, 6), (4, 6, 1), (1, 1, 1), (33, 40, 50)])
def test_turned_operands(m, k, n, flags):
    """Small integers, whose sums are exact: any order gives the same."""
    random = np.random.default_rng(1)
    a, b, g = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))
    for turned_a in (0, 1):
        for turned_b in (0, 1):
            x, y = a.T.copy() if turned_a else a, b.T.copy() if turned_b else b
            _, found = gradient_of("matmul", x, y, g, flags, transpose_a=turned_a, transpose_b=turned_b)
            by_a, by_b = g @ b.T, a.T @ g
            assert np.array_equal(found[0], by_a.T if turned_a else by_a)
            assert np.array_equal(found[1], by_b.T if turned_b else by_b)


def test_same_bits_either_way():
    random = np.random.default_rng(2)
    x, weight, g = (random.standard_normal(shape, np.float32) for shape in ((33, 70), (50, 70), (33, 50)))
    _, (_, turned) = gradient_of("linear", x, weight, g)
    _, (_, straight) = gradient_of("matmul", x, weight.T.copy(), g)
    assert turned.tobytes() == straight.T.copy().tobytes()


def test_goes_into_what_follows():
    """Nothing stands between the product and what is made of it: no sum over the one batch, no turning."""
    random = np.random.default_rng(3)
    computation = hgops.Computation()
    x, weight, g = (computation.input(random.standard_normal(shape, np.float32)) for shape in ((32, 64), (48, 64), (32, 48)))
    gradient, = computation.gradient(computation.op("linear", x, weight), [weight], g)
    computation.output(computation.op("add", weight, gradient))
    _, report = computation.run_on(hgops.ENGINES[0], report=True)
    launches = [line for line in report.splitlines() if " lanes " in line]
    assert all("contract" in line for line in launches) and "add" in launches[0], report
