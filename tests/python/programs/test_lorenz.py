"""Lorenz's equations by Runge and Kutta, and how the end depends on the beginning, through 64 steps."""

import numpy as np

import hologram as hg


def slope(xp, s):
    x, y, z = s[..., 0], s[..., 1], s[..., 2]
    return xp.stack([10 * (y - x), x * (28 - z) - y, x * y - 8 / 3 * z], axis=-1)


def integrate(xp, s, steps=64, h=0.01):
    for _ in range(steps):
        k1 = slope(xp, s)
        k2 = slope(xp, s + h / 2 * k1)
        k3 = slope(xp, s + h / 2 * k2)
        k4 = slope(xp, s + h * k3)
        s = s + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return s


def test_lorenz(both):
    starts = np.random.default_rng(14).normal(size=(10, 3)) + [0, 1, 20]
    both(integrate, starts, rtol=1e-9)
    start = hg.asarray(starts[0])
    hg.grad(lambda s: hg.sum(integrate(hg, s)), check=True)(start)
    jacobian = np.asarray(hg.jacobian(lambda s: integrate(hg, s))(start))
    differences = [(integrate(np, starts[0] + d) - integrate(np, starts[0] - d)) / 2e-6 for d in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(jacobian, np.stack(differences, axis=1), rtol=1e-4, atol=1e-6)
