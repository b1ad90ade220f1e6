"""Poisson's equation on a square by conjugate gradients, with the operator as slices; beside the solution by eigenfunctions."""

import numpy as np


def laplacian(xp, u):
    padded = xp.pad(u, 1)
    return 4 * u - padded[:-2, 1:-1] - padded[2:, 1:-1] - padded[1:-1, :-2] - padded[1:-1, 2:]


def solve(xp, b):
    x = xp.zeros_like(b)
    r = b - laplacian(xp, x)
    p, rr = r, xp.sum(r * r)
    for _ in range(80):
        q = laplacian(xp, p)
        alpha = rr / xp.sum(p * q)
        x = x + alpha * p
        r = r - alpha * q
        new = xp.sum(r * r)
        p, rr = r + new / rr * p, new
        if float(rr) < 1e-24:
            break
    return x


def test_conjugate_gradients(both):
    n = 31
    i = np.arange(1, n + 1) * np.pi / (n + 1)
    right = np.sin(i)[:, None] * np.sin(2 * i)[None, :] + 0.3 * np.sin(3 * i)[:, None] * np.sin(i)[None, :]
    values = lambda a, b: 4 - 2 * np.cos(a * np.pi / (n + 1)) - 2 * np.cos(b * np.pi / (n + 1))
    expected = (np.sin(i)[:, None] * np.sin(2 * i) / values(1, 2) + 0.3 * np.sin(3 * i)[:, None] * np.sin(i) / values(3, 1))
    x = both(solve, right, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-8, atol=1e-9)
