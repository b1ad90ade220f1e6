"""k-means with centres that are assigned one by one, and k-means++ begun from the farthest points."""

import numpy as np


def cluster(xp, x, k):
    centres = xp.zeros((k, x.shape[1]), dtype=x.dtype)
    centres[0] = x[0]
    for i in range(1, k):
        distance = xp.min(xp.sum((x[:, None] - centres[None, :i]) ** 2, axis=2), axis=1)
        centres[i] = x[xp.argmax(distance)]
    for _ in range(15):
        nearest = xp.argmin(xp.sum((x[:, None] - centres) ** 2, axis=2), axis=1)
        for i in range(k):
            member = nearest == i
            centres[i] = xp.sum(xp.where(member[:, None], x, 0), axis=0) / xp.sum(member)
    return centres, nearest


def test_kmeans(both):
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.normal(c, 0.3, (50, 2)) for c in ((0, 0), (3, 0), (0, 4))])
    centres, nearest = both(lambda xp, x: cluster(xp, x, 3), x, rtol=1e-12)
    assert np.array_equal(np.bincount(np.asarray(nearest)), [50, 50, 50])
