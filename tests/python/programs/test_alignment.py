"""Two texts aligned (Needleman and Wunsch 1970) in a table that is filled by assignment, diagonal by diagonal."""

import numpy as np

import hologram as hg


def align(one, two):
    n, m = len(one), len(two)
    table = hg.zeros((n + 1, m + 1), dtype="int64")
    table[:, 0] = -hg.arange(n + 1)
    table[0, :] = -hg.arange(m + 1)
    a, b = hg.asarray(one), hg.asarray(two)
    for d in range(2, n + m + 1):
        i = hg.arange(max(1, d - m), min(n, d - 1) + 1)
        j = d - i
        same = hg.where(a[i - 1] == b[j - 1], 1, -1)
        table[i, j] = hg.maximum(table[i - 1, j - 1] + same, hg.maximum(table[i - 1, j], table[i, j - 1]) - 1)
    return table


def test_alignment():
    rng = np.random.default_rng(15)
    one, two = rng.integers(0, 4, 20), rng.integers(0, 4, 26)
    table = align(one, two)
    expected = np.zeros((21, 27), dtype=np.int64)
    expected[:, 0], expected[0, :] = -np.arange(21), -np.arange(27)
    for i in range(1, 21):
        for j in range(1, 27):
            same = 1 if one[i - 1] == two[j - 1] else -1
            expected[i, j] = max(expected[i - 1, j - 1] + same, expected[i - 1, j] - 1, expected[i, j - 1] - 1)
    assert np.array_equal(np.asarray(table), expected)
