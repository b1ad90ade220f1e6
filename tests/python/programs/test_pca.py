"""Principal components by power iteration with deflation, and the share of variance that they explain."""

import numpy as np


def components(xp, x):
    x = x - x.mean(axis=0)
    covariance = x.T @ x / (x.shape[0] - 1)
    total = xp.sum(x * x) / (x.shape[0] - 1)
    found, shares = [], []
    for k in range(2):
        v = xp.ones(x.shape[1], dtype=x.dtype)
        for _ in range(60):
            v = covariance @ v
            v = v / xp.sqrt(xp.sum(v * v))
        value = v @ covariance @ v
        covariance = covariance - value * v[:, None] * v[None, :]
        found.append(v)
        shares.append(value / total)
    projected = x @ xp.stack(found, axis=1)
    return xp.stack(found), xp.stack(shares), projected


def test_principal_components(both):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(200, 5)) * np.array([5.0, 3.0, 1.0, 0.5, 0.1])
    vectors, shares, _ = both(components, x, rtol=1e-6, atol=1e-7)
    assert abs(float(vectors[0] @ vectors[1])) < 1e-6 and 0.9 < float(shares.sum()) < 1
