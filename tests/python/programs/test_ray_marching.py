"""A sphere over a plane, found by marching along signed distances; the light is the gradient of the distance."""

import numpy as np

import hologram as hg


def distance(xp, p):
    sphere = xp.sqrt(xp.sum(p * p, axis=-1)) - 1
    return xp.minimum(sphere, p[..., 1] + 1)


def march(xp, directions):
    origin = xp.asarray([0.0, 0.5, -4.0], dtype=directions.dtype)
    along = xp.zeros(directions.shape[:-1], dtype=directions.dtype)
    for _ in range(48):
        along = xp.minimum(along + distance(xp, origin + along[..., None] * directions), 20)
    return along, origin + along[..., None] * directions


def test_ray_marching(both):
    y, x = np.meshgrid(np.linspace(0.7, -0.7, 24), np.linspace(-1, 1, 32), indexing="ij")
    directions = np.stack([x, y, np.full_like(x, 1.5)], axis=-1)
    directions /= np.sqrt((directions**2).sum(-1, keepdims=True))
    along, hit = both(march, directions, rtol=1e-9, atol=1e-9)
    middle = float(along[12, 16])
    assert 2.9 < middle < 3.3  # the sphere
    normal = hg.grad(lambda p: hg.sum(distance(hg, p)), check=True)(hit)
    shade = np.asarray(hg.where(along < 19, hg.clip(normal @ hg.asarray([0.3, 0.9, -0.3], dtype="float64"), 0, 1), 0))
    assert shade.max() > 0.9 and shade[0, 0] == 0  # the sky
