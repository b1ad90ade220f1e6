"""Hamiltonian Monte Carlo on a correlated normal distribution: many chains at once, moments beside the true ones."""

import numpy as np

import hologram as hg

PRECISION = np.array([[2.0, -0.8], [-0.8, 1.0]])


def energy(q):
    return 0.5 * hg.sum((q @ hg.asarray(PRECISION)) * q)


def test_hamiltonian_monte_carlo():
    force = hg.grad(energy)
    hg.grad(energy, check=True)(hg.asarray(np.random.default_rng(0).normal(size=(5, 2))))
    key = hg.random.key(11)
    q = hg.zeros((2000, 2), dtype="float64")
    accepted = []
    for _ in range(12):
        key, momentum_key, accept_key = hg.random.split(key, 3)
        start = p = hg.random.normal(momentum_key, (2000, 2), dtype="float64")
        new = q
        for _ in range(8):
            p = p - 0.1 * force(new)
            new = new + 0.2 * p
            p = p - 0.1 * force(new)
        each = lambda q: 0.5 * hg.sum((q @ hg.asarray(PRECISION)) * q, axis=1)
        change = each(q) - each(new) + 0.5 * hg.sum(start * start - p * p, axis=1)
        take = hg.log(hg.random.uniform(accept_key, (2000,), dtype="float64")) < change
        q = hg.where(take[:, None], new, q)
        accepted.append(float(take.astype("float32").mean()))
    assert min(accepted) > 0.85
    covariance = np.cov(np.asarray(q).T)
    np.testing.assert_allclose(covariance, np.linalg.inv(PRECISION), atol=0.12)
    assert np.abs(np.asarray(q).mean(0)).max() < 0.1
