"""PageRank of a random graph: links as pairs, added up by scatter; compared with the matrix."""

import numpy as np

import hologram as hg


def test_pagerank():
    rng = np.random.default_rng(7)
    n, links = 60, rng.integers(0, 60, (400, 2))
    source, target = hg.asarray(links[:, 0]), hg.asarray(links[:, 1])
    ones = hg.ones(400, dtype="float64")
    degree = hg.zeros(n, dtype="float64").at[source].add(ones)
    rank = hg.full(n, 1 / n, dtype="float64")
    for _ in range(100):
        share = hg.where(degree > 0, rank / hg.maximum(degree, 1), 0)
        lost = hg.sum(hg.where(degree > 0, 0, rank))
        rank = 0.15 / n + 0.85 * (hg.zeros(n, dtype="float64").at[target].add(share[source]) + lost / n)

    matrix = np.zeros((n, n))
    np.add.at(matrix, (links[:, 1], links[:, 0]), 1)
    out = matrix.sum(axis=0)
    matrix = np.where(out > 0, matrix / np.maximum(out, 1), 1 / n)
    expected = np.full(n, 1 / n)
    for _ in range(100):
        expected = 0.15 / n + 0.85 * matrix @ expected
    np.testing.assert_allclose(np.asarray(rank), expected, rtol=1e-12)
    assert abs(float(rank.sum()) - 1) < 1e-12
