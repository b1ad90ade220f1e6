"""A density estimated with normal kernels; its logarithm's gradient is the mean shift."""

import numpy as np

import hologram as hg


def log_density(xp, points, data, width):
    z = (points[:, None] - data[None, :]) / width
    return xp.log(xp.mean(xp.exp(-0.5 * z**2), axis=1) / (width * np.sqrt(2 * np.pi)))


def test_kernel_density(both):
    rng = np.random.default_rng(6)
    data, points = rng.normal(size=300), np.linspace(-3, 3, 61)
    density = both(lambda xp, p, d: log_density(xp, p, d, 0.4), points, data, rtol=1e-12)
    assert abs(float(hg.sum(hg.exp(density))) * 0.1 - 1) < 0.02
    shift = hg.grad(lambda p: hg.sum(log_density(hg, p, hg.asarray(data), 0.4)), check=True)(hg.asarray(points))
    kernel = np.exp(-0.5 * ((points[:, None] - data) / 0.4) ** 2)
    np.testing.assert_allclose(np.asarray(shift), ((kernel * data).sum(1) / kernel.sum(1) - points) / 0.16, rtol=1e-10)
