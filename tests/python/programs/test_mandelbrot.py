"""The Mandelbrot set with pairs of numbers, and how many steps each point takes to leave."""

import numpy as np


def escape(xp, cx, cy):
    x, y = xp.zeros_like(cx), xp.zeros_like(cy)
    steps = xp.zeros(cx.shape, dtype=xp.int32)
    for _ in range(60):
        inside = x * x + y * y <= 4
        steps = steps + inside
        x, y = xp.where(inside, x * x - y * y + cx, x), xp.where(inside, 2 * x * y + cy, y)
    return steps


def test_mandelbrot(both):
    cy, cx = np.meshgrid(np.linspace(-1.2, 1.2, 48), np.linspace(-2, 0.6, 64), indexing="ij")
    steps = both(escape, cx, cy)
    assert int(steps.max()) == 60 and int(steps.min()) < 3
