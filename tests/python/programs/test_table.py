"""A table of sales: totals and means by group, counts, the best of each group, running sums of each day."""

import numpy as np

import hologram as hg


def test_group_by():
    rng = np.random.default_rng(13)
    group, amount = rng.integers(0, 7, 500), rng.gamma(2, 10, 500)
    g, a = hg.asarray(group), hg.asarray(amount)
    total = hg.zeros(7, dtype="float64").at[g].add(a)
    count = hg.zeros(7, dtype="int64").at[g].add(1)
    best = hg.full(7, -hg.inf, dtype="float64").at[g].max(a)
    np.testing.assert_allclose(np.asarray(total), np.bincount(group, amount, 7), rtol=1e-13)
    assert np.array_equal(np.asarray(count), np.bincount(group, minlength=7))
    assert np.array_equal(np.asarray(best), [amount[group == k].max() for k in range(7)])
    np.testing.assert_allclose(np.asarray(total / count), [amount[group == k].mean() for k in range(7)], rtol=1e-13)
    days = a[:490].reshape(70, 7)
    running = hg.cumulative_sum(days, axis=1)
    np.testing.assert_allclose(np.asarray(running), np.cumsum(amount[:490].reshape(70, 7), axis=1), rtol=1e-13)
    assert np.asarray(a[g == 3]).tolist() == amount[group == 3].tolist()
    share = hg.grad(lambda a: hg.sum((hg.zeros(7, dtype="float64").at[g].add(a)) ** 2), check=True)(a)
    np.testing.assert_allclose(np.asarray(share), 2 * np.bincount(group, amount, 7)[group], rtol=1e-12)
