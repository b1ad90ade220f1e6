"""A mixture of two normal distributions in one dimension, fitted by expectation and maximisation."""

import numpy as np


def fit(xp, x):
    weight = xp.asarray([0.5, 0.5], dtype=x.dtype)
    mean = xp.asarray([-1.0, 1.0], dtype=x.dtype)
    deviation = xp.asarray([1.0, 1.0], dtype=x.dtype)
    for _ in range(40):
        z = (x[:, None] - mean) / deviation
        joint = weight * xp.exp(-0.5 * z**2) / (deviation * np.sqrt(2 * np.pi))
        responsibility = joint / joint.sum(axis=1, keepdims=True)
        count = responsibility.sum(axis=0)
        weight = count / x.shape[0]
        mean = (responsibility * x[:, None]).sum(axis=0) / count
        deviation = xp.sqrt((responsibility * (x[:, None] - mean) ** 2).sum(axis=0) / count)
    return weight, mean, deviation


def test_expectation_and_maximisation(both):
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.normal(-2, 0.5, 300), rng.normal(1.5, 1.0, 700)])
    weight, mean, _ = both(fit, x, rtol=1e-9)
    assert abs(float(weight[0]) - 0.3) < 0.05 and abs(float(mean[0]) + 2) < 0.1
