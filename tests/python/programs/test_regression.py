"""Gaussian process regression: a kernel matrix, its solution by Gauss and Jordan's elimination in place, the hyperparameters' gradient."""

import numpy as np

import hologram as hg


def eliminate(xp, a, b):
    a, b = xp.array(a), xp.array(b)
    for k in range(a.shape[0]):
        pivot = a[k, k]
        a[k] = a[k] / pivot
        b[k] = b[k] / pivot
        factor = xp.array(a[:, k])
        factor[k] = 0
        a = a - factor[:, None] * a[k][None, :]
        b = b - factor * b[k]
    return b


def kernel(xp, one, two, width):
    return xp.exp(-0.5 * ((one[:, None] - two[None, :]) / width) ** 2)


def predict(xp, x, y, new):
    weights = eliminate(xp, kernel(xp, x, x, 0.7) + 0.01 * xp.eye(x.shape[0], dtype=x.dtype), y)
    return kernel(xp, new, x, 0.7) @ weights


def test_gaussian_process(both):
    rng = np.random.default_rng(18)
    x = np.sort(rng.uniform(-3, 3, 16))
    y = np.sin(x) + rng.normal(0, 0.05, 16)
    new = np.linspace(-2.5, 2.5, 21)
    mean = both(predict, x, y, new, rtol=1e-8, atol=1e-9)
    assert np.abs(np.asarray(mean) - np.sin(new)).max() < 0.3

    def fit(width):
        matrix = kernel(hg, hg.asarray(x), hg.asarray(x), width) + 0.05 * hg.eye(16, dtype="float64")
        return hg.sum(hg.asarray(y) * eliminate(hg, matrix, hg.asarray(y)))

    slope = hg.grad(fit, check=True)(hg.asarray(0.9, dtype="float64"))
    matrix = lambda w: kernel(np, x, x, w) + 0.05 * np.eye(16)
    inverse, z = np.linalg.inv(matrix(0.9)), (x[:, None] - x) ** 2
    derivative = (matrix(0.9) - 0.05 * np.eye(16)) * z / 0.9**3
    np.testing.assert_allclose(float(slope), -y @ inverse @ derivative @ inverse @ y, rtol=1e-8)
