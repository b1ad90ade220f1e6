"""L-BFGS with backtracking on Rosenbrock's function, by gradients."""

import numpy as np

import hologram as hg


def rosenbrock(x):
    return hg.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def minimise(value_and_grad, x, steps, memory=6):
    value, gradient = value_and_grad(x)
    pairs = []
    for _ in range(steps):
        direction, alphas = gradient, []
        for s, y in reversed(pairs):
            alpha = (s @ direction) / (s @ y)
            alphas.append(alpha)
            direction = direction - alpha * y
        if pairs:
            s, y = pairs[-1]
            direction = direction * ((s @ y) / (y @ y))
        for (s, y), alpha in zip(pairs, reversed(alphas)):
            direction = direction + s * (alpha - (y @ direction) / (s @ y))
        slope, step = float(direction @ gradient), 1.0
        while True:
            new_x = x - step * direction
            new_value, new_gradient = value_and_grad(new_x)
            if float(new_value) <= float(value) - 1e-4 * step * slope or step < 1e-10:
                break
            step /= 2
        if float((new_x - x) @ (new_gradient - gradient)) > 1e-12:
            pairs = [*pairs, (new_x - x, new_gradient - gradient)][-memory:]
        x, value, gradient = new_x, new_value, new_gradient
    return x, value


def test_quasi_newton():
    start = hg.asarray(np.linspace(-1.5, 1.5, 6))
    expected = hg.grad(rosenbrock, check=True)(start)
    x = np.linspace(-1.5, 1.5, 6)
    by_hand = np.zeros(6)
    by_hand[:-1] += -400 * x[:-1] * (x[1:] - x[:-1] ** 2) - 2 * (1 - x[:-1])
    by_hand[1:] += 200 * (x[1:] - x[:-1] ** 2)
    np.testing.assert_allclose(np.asarray(expected), by_hand, rtol=1e-12)
    found, value = minimise(hg.value_and_grad(rosenbrock), start, 60)
    assert float(value) < 1e-10
    np.testing.assert_allclose(np.asarray(found), np.ones(6), atol=1e-4)
