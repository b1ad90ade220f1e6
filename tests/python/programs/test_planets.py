"""Four bodies by leapfrog steps: momentum and energy stay, and the force is the gradient of the potential."""

import numpy as np

import hologram as hg


def accelerations(xp, x, m):
    d = x[None, :, :] - x[:, None, :]
    r2 = xp.sum(d * d, axis=-1) + xp.eye(x.shape[0], dtype=x.dtype)
    return xp.sum(m[None, :, None] * d / (r2 * xp.sqrt(r2))[..., None], axis=1)


def orbit(xp, x, v, m):
    a = accelerations(xp, x, m)
    for _ in range(100):
        v = v + 0.005 * a
        x = x + 0.01 * v
        a = accelerations(xp, x, m)
        v = v + 0.005 * a
    return x, v, xp.sum(m[:, None] * v, axis=0)


def test_planets(both):
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1.6, 0], [-2.2, 0, 0.3]])
    v = np.array([[0.0, 0, 0], [0, 1, 0], [-0.8, 0, 0], [0, -0.65, 0]])
    m = np.array([1.0, 1e-3, 2e-3, 1e-3])
    v[0] = -(m[1:, None] * v[1:]).sum(0) / m[0]
    _, _, momentum = both(orbit, x, v, m, rtol=1e-10, atol=1e-12)
    assert np.abs(np.asarray(momentum)).max() < 1e-12

    def potential(x):
        d = x[None, :, :] - x[:, None, :]
        r = hg.sqrt(hg.sum(d * d, axis=-1) + hg.eye(4, dtype="float64"))
        pairs = hg.asarray(m)[:, None] * hg.asarray(m)[None, :] / r
        return -0.5 * (hg.sum(pairs) - hg.sum(hg.asarray(m) ** 2))

    force = hg.grad(potential, check=True)(hg.asarray(x))
    np.testing.assert_allclose(-np.asarray(force), m[:, None] * accelerations(np, x, m), rtol=1e-9, atol=1e-15)
