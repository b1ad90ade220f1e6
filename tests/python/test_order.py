"""Orders along an axis in Python: NumPy's and PyTorch's names beside NumPy and PyTorch, gradients, many examples at once, and what is
refused. What the operations give in every type is in tests/ops/test_top.py."""

import warnings

import numpy as np
import pytest

import hologram as hg

torch = pytest.importorskip("torch")
NAN = float("nan")


def row(seed, *shape, holes=False):
    x = np.round(np.random.default_rng(seed).standard_normal(shape) * 4).astype(np.float32) / 4
    if holes:
        x.reshape(-1)[:: max(2, x.size // 5)] = NAN
    return x


SHAPES = [(5,), (3, 8), (2, 3, 7), (4, 200), (2, 2, 2, 9)]


@pytest.mark.parametrize("shape", SHAPES)
def test_medians_and_quantiles(shape):
    axes = [None, *range(-len(shape), len(shape)), *([(0, -1), (-2, 0)] if len(shape) > 2 else [])]
    for holes in (False, True):
        x = row(len(shape), *shape, holes=holes)
        given, wide = hg.asarray(x), x.astype(np.float64)
        for axis in axes:
            for keep in (False, True):
                for name in ("median", "nanmedian"):
                    with warnings.catch_warnings(action="ignore"):  # NumPy's, of rows of NaN
                        expected = np.float32(getattr(np, name)(wide, axis, keepdims=keep))
                    own = getattr(hg, name)(given, axis, keepdims=keep).numpy()
                    assert own.dtype == np.float32 and np.array_equal(own, expected, equal_nan=True), (name, axis)
                for name, q in (("quantile", 0.3), ("quantile", [[0.0, 0.25], [0.5, 1.0]]), ("nanquantile", [0.1, 0.9]),
                                ("percentile", 30), ("nanpercentile", [10, 99.5])):
                    for method in ("linear", "hazen", "nearest"):
                        with warnings.catch_warnings(action="ignore"):
                            expected = np.float32(getattr(np, name)(wide, q, axis, method=method, keepdims=keep))
                        own = getattr(hg, name)(given, q, axis, method=method, keepdims=keep).numpy()
                        assert own.shape == expected.shape and np.allclose(own, expected, 1e-7, 1e-7, equal_nan=True), (name, axis, method)


@pytest.mark.parametrize("shape", SHAPES)
def test_beside_torch(shape):
    x = row(9, *shape)
    x = np.random.default_rng(3).permutation(x.size).reshape(shape).astype(np.float32)  # torch promises no order of equal ones
    t, given = torch.from_numpy(x), hg.asarray(x)
    for axis in range(-len(shape), len(shape)):
        for k in {1, 2, shape[axis] // 2 + 1, shape[axis]}:
            k = min(k, shape[axis])
            for largest in (True, False):
                for own, right in zip(hg.topk(given, k, axis, largest), torch.topk(t, k, axis, largest)):
                    assert np.array_equal(own.numpy(), right.numpy())
            for keep in (False, True):
                for own, right in zip(hg.kthvalue(given, k, axis, keepdims=keep), torch.kthvalue(t, k, axis, keep)):
                    assert np.array_equal(own.numpy(), right.numpy())
        own = hg.quantile(given, [0.2, 0.5], axis)
        assert np.allclose(own.numpy(), torch.quantile(t, torch.tensor([0.2, 0.5]), axis).numpy(), 1e-5)


def test_searching_beside_torch():
    x, v = np.sort(row(1, 3, 40), -1), row(2, 3, 25)
    for right in (False, True):
        side = "right" if right else "left"
        own = hg.searchsorted(hg.asarray(x), hg.asarray(v), side=side).numpy()
        assert np.array_equal(own, torch.searchsorted(torch.from_numpy(x), torch.from_numpy(v), right=right).numpy())
        own = hg.bucketize(hg.asarray(v), hg.asarray(x[0]), right=right).numpy()
        assert np.array_equal(own, torch.bucketize(torch.from_numpy(v), torch.from_numpy(x[0]), right=right).numpy())
    sorter = np.argsort(v, -1)
    own = hg.searchsorted(hg.asarray(v), hg.asarray(x), sorter=hg.asarray(sorter)).numpy()
    assert np.array_equal(own, torch.searchsorted(torch.from_numpy(v), torch.from_numpy(x), sorter=torch.from_numpy(sorter)).numpy())
    assert hg.searchsorted(hg.asarray([1, 2, 3]), hg.asarray(2.5)).item() == 2  # of several types: the one they have together


@pytest.mark.parametrize("jit", [False, True])
def test_gradients_beside_torch(jit):
    x = np.random.default_rng(5).permutation(3 * 150).reshape(3, 150).astype(np.float32)
    cases = {"top_k": (lambda h: hg.top_k(h, 7, 1)[0], lambda t: torch.topk(t, 7, 1)[0]),
             "top_k smallest": (lambda h: hg.top_k(h, 2, 0, largest=False)[0], lambda t: torch.topk(t, 2, 0, False)[0]),
             "sort": (lambda h: hg.sort(h, axis=0), lambda t: torch.sort(t, 0)[0]),
             "kth_value": (lambda h: hg.kth_value(h, 30, 1)[0], lambda t: torch.kthvalue(t, 30, 1)[0]),
             "quantile": (lambda h: hg.quantile(h, [0.25, 0.7], 1), lambda t: torch.quantile(t, torch.tensor([0.25, 0.7]), 1)),
             "nanmedian": (lambda h: hg.nanquantile(h, 0.5, 0), lambda t: torch.nanquantile(t, 0.5, 0))}
    for name, (own, right) in cases.items():
        t = torch.from_numpy(x).requires_grad_()
        made = right(t)
        weights = np.random.default_rng(6).standard_normal(tuple(made.shape)).astype(np.float32)
        made.backward(torch.from_numpy(weights))
        loss = hg.grad(lambda v, own=own, w=weights: (own(v) * hg.asarray(w)).sum())
        assert np.allclose((hg.jit(loss) if jit else loss)(hg.asarray(x)).numpy(), t.grad.numpy(), 1e-4, 1e-6), name


def test_many_examples_at_once():
    x = row(4, 6, 5, 140)
    given = hg.asarray(x)
    for name, function in {"top_k": lambda v: hg.top_k(v, 3, 1), "top_k of columns": lambda v: hg.top_k(v, 2, 0, largest=False),
                           "searchsorted": lambda v: hg.searchsorted(hg.sort(v, axis=-1), v), "median": lambda v: hg.median(v, 0),
                           "lexsort": lambda v: hg.lexsort((v, -v)), "sort_by_key": lambda v: hg.sort_by_key(v, -v, 0),
                           "quantile": lambda v: hg.quantile(v, [0.1, 0.5], 1),
                           "merge": lambda v: hg.merge(hg.sort(v), hg.sort(-v))}.items():
        together = hg.vmap(function)(given)
        for i in range(6):
            for own, right in zip(*(v if isinstance(v, tuple) else (v,) for v in (together, function(given[i])))):
                assert np.array_equal(own[i].numpy(), right.numpy(), equal_nan=True), name


def test_the_same_bits_whichever_way():
    x = hg.asarray(row(8, 9, 300, holes=True))
    functions = [lambda v: hg.top_k(v, 5)[0], lambda v: hg.top_k(v, 5)[1], lambda v: hg.quantile(v, 0.3, 1), lambda v: hg.nanmedian(v, 0)]
    for function in functions:
        lazy = function(x).numpy().tobytes()
        with hg.eager():
            assert function(x).numpy().tobytes() == lazy
        assert hg.jit(function)(x).numpy().tobytes() == lazy


def test_partitions():
    x = row(3, 4, 50)
    for axis in (0, 1, -1, None):
        for kth in (0, 2, -1, [1, 2]):
            own = hg.partition(hg.asarray(x), kth, axis).numpy()
            flat = x.ravel() if axis is None else x
            right = np.partition(flat, kth, -1 if axis is None else axis)
            assert np.array_equal(np.take(own, kth, axis or 0), np.take(right, kth, axis or 0))
            order = hg.argpartition(hg.asarray(x), kth, axis).numpy()
            assert np.array_equal(np.take_along_axis(flat, order, -1 if axis is None else axis), own)


def test_lexsort_beside_numpy():
    rng = np.random.default_rng(2)
    for kind in ("float32", "int64", "uint8", "bool"):
        keys = [rng.integers(0, 4, (3, 60)).astype(kind) for _ in range(4)]
        for axis in (0, 1):
            assert np.array_equal(hg.lexsort([hg.asarray(k) for k in keys], axis).numpy(), np.lexsort(keys, axis))
    assert hg.lexsort(hg.asarray([[1, 2, 1], [0, 0, 0]])).tolist() == [0, 2, 1]


def test_what_is_refused():
    x = hg.asarray([3.0, 1.0, 2.0])
    for error, sentence, call in [(ValueError, "q is 1.5; it has to lie from 0 to 1", lambda: hg.quantile(x, 1.5)),
                                  (ValueError, "q is nan; it has to lie from 0 to 100", lambda: hg.percentile(x, [NAN])),
                                  (ValueError, "linear|lower", lambda: hg.quantile(x, 0.5, method="middle")),
                                  (IndexError, "median: axis 1 is out of range", lambda: hg.median(x, 1)),
                                  (ValueError, "kth is 3; it has to lie from -3 to 2", lambda: hg.partition(x, 3)),
                                  (ValueError, "k is 4; it has to lie from 0 to 3", lambda: hg.top_k(x, 4)),
                                  (ValueError, "k is 0", lambda: hg.kth_value(x, 0)),
                                  (ValueError, "side is 'left' or 'right', not 'up'", lambda: hg.searchsorted(x, x, side="up"))]:
        with pytest.raises(error, match=sentence):
            hg.compute(call())


def test_functional_names():
    F = pytest.importorskip("hologram_torch").functional
    x = torch.from_numpy(np.random.default_rng(1).permutation(4 * 60).reshape(4, 60).astype(np.float32))
    for name, arguments in [("topk", (3,)), ("topk", (2, 0, False)), ("sort", ()), ("sort", (0, True)), ("kthvalue", (7,)),
                            ("kthvalue", (2, 0, True))]:
        ours, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        own, right = getattr(F, name)(ours, *arguments), getattr(torch, name)(theirs, *arguments)
        assert type(own) is type(right) and torch.equal(own.values, right.values) and torch.equal(own.indices, right.indices)
        (own.values * own.values).sum().backward()
        (right.values * right.values).sum().backward()
        assert torch.equal(ours.grad, theirs.grad)
    assert torch.equal(F.argsort(x, 0), torch.argsort(x, 0)) and F.topk(torch.tensor(2.0), 1).indices.item() == 0
    edges = x[0].sort()[0]
    assert torch.equal(F.searchsorted(edges, x, right=True), torch.searchsorted(edges, x, right=True))
    assert torch.equal(F.searchsorted(x, x, sorter=x.argsort(1)), torch.searchsorted(x, x, sorter=x.argsort(1)))
    assert torch.equal(F.bucketize(x, edges), torch.bucketize(x, edges))
    x[1, 3] = NAN
    for name in ("quantile", "nanquantile"):
        for q in (0.3, torch.tensor([0.1, 0.9], dtype=torch.float32)):
            for dim, keep in ((0, False), (1, True), (-1, True), (None, False), (None, True)):
                own, right = (getattr(space, name)(x, q, dim, keep) for space in (F, torch))
                assert own.shape == right.shape and torch.allclose(own, right, 1e-5, equal_nan=True), (name, dim, keep)
