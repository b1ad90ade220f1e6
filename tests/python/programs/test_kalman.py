"""A Kalman filter of position and speed, with positions that are missing now and then."""

import numpy as np


def track(xp, seen, is_seen):
    a = xp.asarray([[1.0, 1.0], [0.0, 1.0]], dtype=seen.dtype)
    h = xp.asarray([[1.0, 0.0]], dtype=seen.dtype)
    q = xp.eye(2, dtype=seen.dtype) * 1e-3
    state, p, states = xp.zeros(2, dtype=seen.dtype), xp.eye(2, dtype=seen.dtype) * 10, []
    for t in range(seen.shape[0]):
        state, p = a @ state, a @ p @ a.T + q
        s = (h @ p @ h.T)[0, 0] + 0.25
        gain = (p @ h.T)[:, 0] / s
        gain = xp.where(is_seen[t], gain, 0)
        state = state + gain * (seen[t] - state[0])
        p = p - gain[:, None] * (h @ p)
        states.append(state)
    return xp.stack(states), p


def test_kalman(both):
    rng = np.random.default_rng(8)
    t = np.arange(60.0)
    states, _ = both(track, 0.7 * t + rng.normal(0, 0.5, 60), rng.random(60) > 0.2, rtol=1e-10)
    assert abs(float(states[-1, 1]) - 0.7) < 0.05
