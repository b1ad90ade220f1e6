"""Counts, histograms, groups and draws beside NumPy and PyTorch; the same bits eager, recorded, jitted and on the double of CUDA's driver.

Draws: moments and chi-square with stated seeds. A chi-square of k degrees of freedom is below k + 5 sqrt(2 k) but for one in a million."""

import hashlib

import double_of_cuda
import numpy as np
import pytest

import hologram as hg

FLOATS, INTEGERS = ("float32", "float64", "float16"), ("int8", "int32", "int64", "uint8", "uint64")


def wide(x):
    return x.astype("float64").numpy()


# ---- counts and histograms --------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", (*INTEGERS, "bool"))
def test_bincount(kind):
    rng = np.random.default_rng(len(kind))
    for n in (0, 1, 7, 1000, 40_000):
        x = rng.integers(0, 2 if kind == "bool" else 120, n).astype(kind)
        plain = x.astype(int)
        assert np.array_equal(hg.bincount(hg.asarray(x)).numpy(), np.bincount(plain))
        assert np.array_equal(hg.bincount(x, minlength=200).numpy(), np.bincount(plain, minlength=200))
        assert np.array_equal(hg.jit(lambda v: hg.bincount(v, length=150))(hg.asarray(x)).numpy(), np.bincount(plain, minlength=150))
        w = rng.integers(-9, 9, n)
        for weights in (w.astype("float32"), w.astype("float64"), w, w > 0):
            own = hg.bincount(hg.asarray(x), weights)
            assert np.array_equal(own.numpy(), np.bincount(plain, weights)[:own.size])
            assert own.dtype == ("int64" if weights.dtype == bool else weights.dtype.name)


def test_wrong_counts():
    for call, error, words in (
        (lambda: hg.bincount([1.5]), TypeError, "bincount counts integers, not float32; hg.histogram"),
        (lambda: hg.bincount([1, 2], [1.0]), ValueError, r"weights have the shape of what is counted, \(2,\), not \(1,\)"),
        (lambda: hg.bincount([1], minlength=-1), ValueError, "minlength is 0 or more, not -1"),
        (lambda: hg.bincount([3, -1]).compute(), IndexError, "index -1 is out of range of axis 0, which has 4 elements"),
        (lambda: hg.histogram([1.0], "auto"), ValueError, "bins is a number of bins or their edges, not 'auto': write how many"),
        (lambda: hg.histogram([1.0], 0), ValueError, "there is at least 1 bin, not 0"),
        (lambda: hg.histogram([1.0], [1.0]), ValueError, "of bins there are at least two edges, not 1"),
        (lambda: hg.histogram([1.0], [2, 1, 0]), ValueError, "the edges of bins stand in ascending order"),
        (lambda: hg.histogram([1.0], 3, (2, 1)), ValueError, r"range is two finite numbers, the lower one first, not \(2.0, 1.0\)"),
        (lambda: hg.histogram([1.0], 3, (0, np.inf)), ValueError, "range is two finite numbers"),
        (lambda: hg.histogram([1.0], 3, weights=[1.0, 2.0]), ValueError, "weights have the shape"),
        (lambda: hg.histogramdd(np.ones(4)), ValueError, r"points are of shape \(points, axes\), not \(4,\)"),
        (lambda: hg.histogramdd(np.ones((4, 2)), [3]), ValueError, "one for each of 2 axes, not 1 and 2"),
        (lambda: hg.digitize([1.0], [[1.0]]), ValueError, r"digitize: bounds are a vector, not of shape \(1, 1\)"),
        (lambda: hg.confusion_matrix([0, 3], [0, 1], classes=2).compute(), IndexError, "out of range"),
        (lambda: hg.segment_sum([1.0], [0]), hg.Error, "num_segments is -1; it has to lie from 0"),
        (lambda: hg.group([1], [1, 2]), ValueError, "keys are one or more vectors of one length"),
        (lambda: hg.group([1, 2]).sum([1.0]), ValueError, "along axis 0 there are 1 rows, not one for each of 2 keys"),
        (lambda: hg.random.permutation(hg.random.key(0), -1), ValueError, "of 0 numbers or more, not -1"),
        (lambda: hg.random.choice(hg.random.key(0), 3, (4,), replace=False), ValueError, "4 cannot be drawn of 3, each once at most"),
        (lambda: hg.random.choice(hg.random.key(0), 0, (4,)), ValueError, "4 cannot be drawn of 0"),
        (lambda: hg.random.choice(hg.random.key(0), 3, (1,), p=[1, 2]), ValueError, r"p has a weight for each of 3 rows, not shape \(2,\)"),
        (lambda: hg.random.choice(hg.random.key(0), 2, (1,), p=[1, -2]), ValueError, "a weight is 0 or more and finite, not -2"),
        (lambda: hg.random.multinomial(hg.random.key(0), -1, [1.0]), ValueError, "of 0 draws or more, not -1"),
    ):
        with pytest.raises(error, match=words):
            call()


@pytest.mark.parametrize("kind", (*FLOATS, *INTEGERS, "bool"))
def test_histogram(kind):
    """Edges that a user gives are compared as they are; those that are computed are NumPy's up to rounding, and its counts are right for
    them."""
    rng = np.random.default_rng(7)
    for n in (0, 1, 50, 3000):
        x = (rng.standard_normal(n) * 20 + (60 if kind[0] in "ub" else 0)).astype(kind)
        plain = x.astype("float64")
        weights = rng.integers(0, 9, n).astype("float64")
        for bins, span in ((1, None), (10, None), (64, (-20, 20)), (7, (0.1, 0.7)), ([-10, 0, 0, 3, 50], None), ([0.5, 1.5], None),
                           (np.array([-3.0, 3, 9]), None), (np.array([0, 1, 60]), None)):
            if isinstance(bins, int):
                edges = hg.histogram_bin_edges(x, bins, span)
                assert edges.dtype == (kind if kind in FLOATS else "float64")
                right = np.histogram_bin_edges(x.astype("uint8") if kind == "bool" else x, bins, span)
                near = {"rtol": 4 * float(np.finfo(right.dtype).eps), "atol": 0.1 * (kind == "float16")}
                np.testing.assert_allclose(wide(edges), right.astype("float64"), **near)
            counts, edges = hg.histogram(x, bins, span)
            exact = wide(edges) if isinstance(bins, int) else bins
            assert counts.dtype == "int64" and np.array_equal(counts.numpy(), np.histogram(plain, exact)[0])
            of_weights = hg.histogram(hg.asarray(x), bins, span, weights=weights)[0]
            assert np.array_equal(of_weights.numpy(), np.histogram(plain, exact, weights=weights)[0])
            with np.errstate(all="ignore"):
                right = np.histogram(plain, exact, density=True)[0]
            np.testing.assert_allclose(wide(hg.histogram(x, bins, span, density=True)[0]), right, rtol=2e-3 if kind == "float16" else 1e-6)


def test_histogram_of_special_values():
    x = np.array([np.nan, 1, 2, np.inf, -np.inf, 2, -0.0], "f4")
    assert hg.histogram(x, 2, (0, 2))[0].tolist() == [1, 3]
    assert hg.histogram(x, [0.0, 1.0, 2.0])[0].tolist() == [1, 3]
    counts, edges = hg.histogram(x, 2)
    assert counts.tolist() == [0, 0] and np.isnan(edges.numpy()).all()
    assert hg.histogram(np.full(4, 3.0, "f4"), 2)[1].tolist() == [2.5, 3, 3.5]
    seventh = np.arange(11).astype("f4") / np.float32(10)  # each is an edge, as in NumPy, whose edges are of x's type, too
    assert np.array_equal(hg.histogram(seventh, 10, (0, 1))[0].numpy(), np.histogram(seventh, 10, (0, 1))[0])


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_histograms_of_points(axes):
    rng = np.random.default_rng(axes)
    points, weights = rng.standard_normal((2000, axes)), rng.integers(0, 9, 2000).astype("float64")
    for bins in (4, [3, [-1, 0, 0.5, 9], 5][:axes], [[-2, 0, 2]] * axes):
        for span in (None, [(-1, 1), None, (0, 2)][:axes]):
            for density in (False, True):
                own = hg.histogramdd(hg.asarray(points), bins, span, density, weights)
                right = np.histogramdd(points, bins, span, density, weights)
                np.testing.assert_allclose(own[0].numpy(), right[0], rtol=1e-13)
                assert all(np.array_equal(a.numpy(), b) for a, b in zip(own[1], right[1], strict=True))
    assert hg.histogramdd(list(points.T), 3)[0].dtype == "int64"
    if axes == 2:
        for bins in (5, [-2, 0, 1, 2], [4, [-1, 1]]):
            own, right = hg.histogram2d(*points.T, bins), np.histogram2d(*points.T, bins)
            assert all(np.array_equal(a.numpy(), b) for a, b in zip(own, right, strict=True))


@pytest.mark.parametrize("kind", [*FLOATS, "int32"])
def test_digitize(kind):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((30, 7)) * 3).astype(kind)
    bounds = np.sort(rng.standard_normal(9) * 3).astype(kind)
    x[0, :] = bounds[:7]
    for right in (False, True):
        for b in (bounds, bounds[::-1].copy(), bounds[:1], np.repeat(bounds, 2)):
            assert np.array_equal(hg.digitize(x, b, right).numpy(), np.digitize(x, b, right))
        for other in ("float32", "float64", "int64", "uint8"):  # types of both
            b = np.abs(bounds).astype(other)
            b.sort()
            assert np.array_equal(hg.searchsorted(b, x).numpy(), np.searchsorted(b.astype("f8"), x.astype("f8")))
    if kind != "int32":
        assert hg.digitize(np.array([np.nan], kind), bounds).tolist() == [9]


# ---- groups -----------------------------------------------------------------------------------------------------------

def groups_of(*keys):
    """By NumPy: which rows each group has, in order."""
    rank = [np.unique(k, return_inverse=True)[1].ravel() for k in keys]
    rows = {}
    for i, code in enumerate(zip(*rank, strict=True)):
        rows.setdefault(code, []).append(i)
    return [rows[code] for code in sorted(rows)]


KEYS = {
    "few": lambda r, n: r.integers(-3, 4, n), "bytes": lambda r, n: r.integers(0, 200, n).astype("u1"),
    "bools": lambda r, n: r.random(n) < 0.5,
    "far": lambda r, n: r.integers(-2, 3, n) * 2**61, "unsigned": lambda r, n: r.integers(0, 5, n).astype("u8") + np.uint64(2**63),
    "floats": lambda r, n: r.choice(np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1.5, -2]), n), "each": lambda r, n: r.standard_normal(n),
    "halves": lambda r, n: r.integers(0, 9, n).astype("f2"), "one": lambda r, n: np.zeros(n, "i4"),
}


@pytest.mark.parametrize("names", [(name,) for name in KEYS] + [("few", "floats"), ("floats", "bools", "bytes"), ("far", "one")])
@pytest.mark.parametrize("n", [0, 1, 2, 300])
def test_groups(names, n):
    rng = np.random.default_rng(n)
    keys = [KEYS[name](rng, n) for name in names]
    g, rows = hg.group(*keys), groups_of(*keys)
    assert g.size == len(g) == len(rows) and str(len(rows)) in repr(g)
    codes = np.zeros(n, int)
    for i, own in enumerate(rows):
        codes[own] = i
    assert np.array_equal(g.codes.numpy(), codes) and np.array_equal(g.count().numpy(), [len(own) for own in rows])
    for own, right in zip(g.keys if len(keys) > 1 else (g.keys,), keys, strict=True):
        first = right[[own[0] for own in rows]]
        assert own.numpy().tobytes() == first.tobytes()  # the first of equal ones
    for x in (rng.integers(-9, 9, n), rng.integers(0, 9, (n, 3)).astype("f4"), rng.integers(0, 9, n).astype("f8"), rng.random(n) < 0.5):
        for name in ("sum", "mean", "var", "std", "any", "all"):
            right = np.array([getattr(x[own], name)(axis=0) for own in rows]).reshape(len(rows), *x.shape[1:])
            own = getattr(g, name)(hg.asarray(x))
            assert own.shape == right.shape
            np.testing.assert_allclose(wide(own), right, rtol=2e-6, atol=1e-6)
        for name in ("prod", "max", "min"):
            if x.dtype != bool or name == "prod":
                right = np.array([getattr(x[own] % 3, name)(axis=0) for own in rows]).reshape(len(rows), *x.shape[1:])
                np.testing.assert_allclose(wide(getattr(g, name)(x % 3 if x.dtype != bool else x)), right, rtol=2e-6)
        assert np.array_equal(g.first(x).numpy(), x[[own[0] for own in rows]])
        assert np.array_equal(g.last(x).numpy(), x[[own[-1] for own in rows]])
    assert g.sum(np.ones((2, n), "f4"), axis=-1).shape == (2, len(rows))


def test_beside_torch():
    torch, rng = pytest.importorskip("torch"), np.random.default_rng(5)
    x, bounds, i = rng.standard_normal(4000).astype("f4"), np.sort(rng.standard_normal(9)).astype("f4"), rng.integers(0, 50, 4000)
    of_x, of_i = torch.from_numpy(x), torch.from_numpy(i)
    assert np.array_equal(hg.histogram(of_x, 7, (-2, 2))[0].numpy(), torch.histc(of_x, 7, -2, 2).numpy())
    assert np.array_equal(hg.bincount(of_i, minlength=70).numpy(), torch.bincount(of_i, minlength=70).numpy())
    for right in (False, True):
        bucket = torch.bucketize(of_x, torch.from_numpy(bounds), right=not right)
        assert np.array_equal(hg.digitize(x, bounds, right).numpy(), bucket.numpy())
    means = torch.full((60,), torch.nan).scatter_reduce_(0, of_i, of_x, "mean", include_self=False)
    np.testing.assert_allclose(hg.segment_mean(x, i, num_segments=60).numpy(), means.numpy(), rtol=1e-5, atol=1e-6)


def test_gradients_of_groups():
    """Of a mean and a variance, beside PyTorch's of the same by masks."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    keys, x = rng.integers(0, 4, 50), rng.standard_normal(50)
    g, leaf = hg.group(keys), torch.from_numpy(x).requires_grad_()
    own = hg.grad(lambda x: (g.mean(x) ** 2 + g.var(x, ddof=1) * hg.arange(4)).sum())(hg.asarray(x))
    parts = [leaf[torch.from_numpy(keys == k)] for k in range(4)]
    sum(part.mean() ** 2 + k * part.var() for k, part in enumerate(parts)).backward()
    np.testing.assert_allclose(own.numpy(), leaf.grad.numpy(), rtol=1e-12, atol=1e-15)
    weights = hg.grad(lambda w: (hg.bincount(hg.asarray(keys), w, length=4) ** 2).sum())(hg.asarray(x))
    np.testing.assert_allclose(weights.numpy(), 2 * np.bincount(keys, x)[keys], rtol=1e-12)


# ---- draws ------------------------------------------------------------------------------------------------------------

def assert_shares(counts, shares):
    """Chi-square."""
    expected = np.asarray(shares) * counts.sum()
    assert (counts[expected == 0] == 0).all()
    squares = ((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    freedom = (expected > 0).sum() - 1
    assert squares < freedom + 5 * np.sqrt(2 * freedom), squares


def test_permutations():
    for n in (0, 1, 2, 1000, 100_000):
        order = hg.random.permutation(hg.random.key(1), n).numpy()
        assert order.dtype == np.int64 and np.array_equal(np.sort(order), np.arange(n))
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 5 / np.sqrt(n)
    keys = hg.random.split(hg.random.key(11), 12_000)
    orders = hg.vmap(lambda key: hg.random.permutation(key, 4))(keys).numpy()
    codes = np.unique(orders @ [64, 16, 4, 1], return_counts=True)[1]
    assert len(codes) == 24
    assert_shares(codes, np.full(24, 1 / 24))
    x = np.arange(60).reshape(10, 6)
    order = hg.random.permutation(hg.random.key(2), 10).numpy()
    assert np.array_equal(hg.random.shuffle(hg.random.key(2), x).numpy(), x[order])
    assert np.array_equal(hg.random.shuffle(hg.random.key(2), x.T, axis=1).numpy(), x.T[:, order])


def test_choice():
    n, key = 60_000, hg.random.key(21)
    p = np.array([0, 1, 2, 0, 4, 3, 0.0])
    assert_shares(np.bincount(hg.random.choice(key, 7, (n,)).numpy(), minlength=7), np.full(7, 1 / 7))
    for weights in (p, p.astype("f4"), p * 1e-300, p.astype(int), list(p), hg.asarray(p)):
        drawn = hg.random.choice(key, 7, (n // 10, 10), p=weights)
        assert drawn.shape == (n // 10, 10) and drawn.dtype == "int64"
        assert_shares(np.bincount(drawn.numpy().ravel(), minlength=7), p / p.sum())
    rows = np.arange(21).reshape(7, 3)
    assert np.array_equal(hg.random.choice(key, rows, (5, 2), p=p).numpy(), rows[hg.random.choice(key, 7, (5, 2), p=p).numpy()])
    assert np.array_equal(hg.random.choice(key, rows.T, 4, axis=1).numpy(), rows.T[:, hg.random.choice(key, 7, 4).numpy()])
    assert hg.random.choice(key, 7).shape == () and hg.random.choice(key, rows).shape == (3,)
    assert hg.random.choice(key, 0, (0, 3)).shape == (0, 3)


def test_choice_without_replacement():
    keys = hg.random.split(hg.random.key(31), 20_000)
    pairs = hg.vmap(lambda key: hg.random.choice(key, 4, (2,), replace=False))(keys).numpy()
    assert (pairs[:, 0] != pairs[:, 1]).all()
    assert_shares(np.unique(pairs @ [4, 1], return_counts=True)[1], np.full(12, 1 / 12))
    p = np.array([0.1, 0.2, 0.0, 0.7])
    pairs = hg.vmap(lambda key: hg.random.choice(key, 4, (2,), replace=False, p=hg.asarray(p)))(keys).numpy()
    shares = np.array([[p[i] * p[j] / (1 - p[i]) if i != j else 0 for j in range(4)] for i in range(4)])
    assert_shares(np.bincount(pairs @ [4, 1], minlength=16), shares.ravel())
    assert hg.random.choice(keys[0], 4, (4,), replace=False, p=p).numpy()[3] == 2  # weight 0 comes last


def test_no_row_of_weight_0_is_drawn():
    """However running sums are rounded."""
    rng = np.random.default_rng(4)
    for n in (300, 5000, 70_000):
        p = np.where(rng.random(n) < 0.5, 0, rng.random(n)).astype("f4")
        drawn = hg.random.choice(hg.random.key(n), n, (20_000,), p=p).numpy()
        assert drawn.max() < n and (p[drawn] > 0).all()


def test_categorical():
    n, key, p = 30_000, hg.random.key(41), np.array([[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]])
    with np.errstate(divide="ignore"):
        logits = np.log(p).astype("f4") + np.float32([[3], [-5]])
    drawn = hg.random.categorical(key, logits, (n,))
    assert drawn.shape == (n, 2) and drawn.dtype == "int64"
    for row in range(2):
        assert_shares(np.bincount(drawn.numpy()[:, row], minlength=3), p[row])
    assert np.array_equal(hg.random.categorical(key, logits.T, (n,), axis=0).numpy().shape, (n, 2))
    assert hg.random.categorical(key, logits).shape == (2,) and hg.random.categorical(key, logits[0]).shape == ()


def test_multinomial():
    key, p = hg.random.key(51), np.array([1, 3, 0, 6.0])
    for weights in (p, np.stack([p, p])):
        drawn = hg.random.multinomial(key, 50, weights, (3000,)).numpy().reshape(-1, 4)
        assert (drawn.sum(1) == 50).all() and (drawn[:, 2] == 0).all()
        share, rows = p / 10, len(drawn)
        assert np.abs(drawn.mean(0) - 50 * share).max() < 5 * np.sqrt(50 * 0.25 / rows)
        away = np.cov(drawn.T) - 50 * (np.diag(share) - np.outer(share, share))
        assert np.abs(away).max() < 5 * 12.5 * np.sqrt(2 / rows)
        assert_shares(drawn.sum(0), share)
    assert hg.random.multinomial(key, 0, p, (2,)).tolist() == [[0] * 4] * 2 and hg.random.multinomial(key, 9, p).sum().item() == 9


# ---- bits -------------------------------------------------------------------------------------------------------------

def digest():
    """On the default executor."""
    rng, key = np.random.default_rng(2), hg.random.key(9)
    x, w = hg.asarray(rng.standard_normal(1501).astype("f4")), hg.asarray(rng.standard_normal(1501).astype("f4"))
    i = hg.asarray(rng.integers(0, 300, 1501))
    g = hg.group(hg.round(x), i % 3)
    made = [hg.bincount(i, length=300), hg.bincount(i, length=90000), hg.bincount(i, w, length=300), *hg.histogram(x, 33),
            *hg.histogram(x, [-1.0, 0, 2], weights=w), hg.histogram2d(x, w, 9)[0], hg.digitize(x, [2.0, 0.0, -1.0]),
            hg.confusion_matrix(i % 7, i % 5, classes=7), g.codes, *g.keys, g.mean(w), g.var(w), g.sum(i), hg.group(i).mean(w),
            hg.random.permutation(key, 700), hg.random.choice(key, 300, (999,), p=hg.abs(w[:300])),
            hg.random.choice(key, 300, (99,), False, p=hg.abs(w[:300])), hg.random.categorical(key, x[:300].reshape((30, 10)), (9,)),
            hg.random.multinomial(key, 99, hg.abs(w[:9]), (5,))]
    together = hashlib.sha256()
    for part in made:
        together.update(part.numpy().tobytes())
    return together.hexdigest()


def test_one_answer():
    lazy = digest()
    with hg.eager():
        assert digest() == lazy


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_groups") == digest()
