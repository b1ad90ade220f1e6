"""Arrays on an executor that is not the default one: what is made beside them, of constants, lists or NumPy's arrays, lies there too."""

import numpy as np
import pytest

import hologram as hg
from hologram import array_api as xp

OTHER = hg.Executor(backend="cpu")


def given(shape, below=None):
    generator = np.random.default_rng(1)
    values = generator.integers(0, below, shape) if below else generator.standard_normal(shape).astype("f4")
    return hg.array(values, device=OTHER)


X, M, I, SMALL, NONE, NO_ROWS = given((300,)), given((6, 300)), given((300,), 50), given((20,)), given((0,)), given((3, 0))
WIDE, LABELS = given((300,), 1 << 40), given((6,), 300)
MASK = X > 0
ALL = (X, M, I, SMALL, MASK, NONE, I.astype("uint8"), WIDE, NO_ROWS)
ONES = np.ones(300, "f4")

CALLS = {
    "sort": lambda: [xp.sort(a, descending=d) for a in ALL for d in (False, True)],
    "argsort": lambda: [xp.argsort(a) for a in ALL],
    "cumulative": lambda: [f(a, axis=-1, include_initial=i) for a in ALL if a is not MASK for i in (False, True)
                           for f in (xp.cumulative_sum, xp.cumulative_prod)],
    "searchsorted": lambda: [xp.searchsorted(xp.sort(X), X), xp.searchsorted(X, SMALL, sorter=xp.argsort(X), side="right"),
                             xp.searchsorted(X, 0.5), xp.searchsorted(NONE, X), xp.searchsorted(X, NONE)],
    "unique": lambda: [a for x in ALL for f in (xp.unique_all, xp.unique_counts, xp.unique_inverse) for a in f(x)],
    "nonzero": lambda: [a for x in (MASK, M, NONE, NO_ROWS) for a in xp.nonzero(x)],
    "masks": lambda: [X[MASK], M[M > 0], NONE[NONE > 0], X[np.arange(300) > 5], X.at[MASK].set(0.0)],
    "repeat": lambda: [xp.repeat(X, 3), xp.repeat(SMALL, I[:20]), xp.repeat(M, 2, axis=1), xp.repeat(X, 0), xp.tile(X, (2, 2))],
    "roll": lambda: [xp.roll(X, 3), xp.roll(M, (1, 2), axis=(0, 1)), xp.roll(NONE, 1)],
    "diff": lambda: [xp.diff(X), xp.diff(M, axis=0, n=2), xp.diff(X, prepend=SMALL, append=[1.0, 2.0])],
    "mathematics": lambda: [hg.nanmean(M, axis=0), hg.kron(M, SMALL), hg.inner(M, ONES), hg.diag(SMALL), hg.diagonal(M, 1),
                            hg.interp(X, SMALL, SMALL), hg.unwrap(X), *hg.gradient(M), hg.trapezoid(X, ONES), hg.polyval([1.0, 2.0], X),
                            hg.cov(M, ONES)],
    "grids": lambda: [*xp.meshgrid(X, SMALL), *xp.unstack(M), *xp.broadcast_arrays(X, M)],
    "take": lambda: [xp.take(X, I), xp.take(X, [1, 2]), xp.take(M, np.array([0, 1]), axis=0), xp.take_along_axis(M, xp.argsort(M))],
    "indices": lambda: [X[3], X[I], X[[1, 2]], M[1, I], M[np.array([1, 2])], X[::-1], M[:, None], X.at[3].set(1.0), X.at[I].add(X),
                        M.at[[0, 1], [2, 3]].set([1.0, 2.0])],
    "products": lambda: [xp.tensordot(M, M, axes=((1,), (1,))), xp.vecdot(M, M), M @ M.T, M @ ONES],
    "joined": lambda: [hg.stack([X, X]), xp.concat([X, SMALL, NONE]), hg.array([X[0], X[1]]), hg.array([[X[0], 2.0], [1.0, 3.0]]),
                       hg.array([X, ONES])],
    "short names": lambda: [hg.hstack([X, ONES]), hg.vstack([ONES, X]), hg.column_stack([[1.0] * 300, X]), *hg.split(X, 3),
                            *hg.atleast_2d(X, ONES),
                            hg.rot90(M), hg.einsum("ij,j", M, ONES), hg.einsum("ij,j,", M, X, 2.0)],
    "operands": lambda: [X + ONES, ONES - X, [1.0] * 300 + X, hg.where(MASK, X, ONES), hg.maximum([1.0] * 300, X), np.add(ONES, X),
                         X + np.float32(2), xp.clip(X, np.float32(0), None)],
    "likes": lambda: [xp.zeros_like(X), xp.ones_like(M), xp.full_like(X, 3), xp.empty_like(X), hg.array(X), hg.asarray(X, copy=True)],
    "reductions": lambda: [xp.var(M, axis=0), xp.mean(NONE), xp.argmax(X), xp.count_nonzero(M), xp.any(NONE), hg.norm(M, axis=-1)],
    "gradients": lambda: [hg.grad(lambda x: (x**2).sum())(X), hg.value_and_grad(lambda x: xp.sort(x).sum())(X)[0],
                          hg.grad(lambda x: (x[I] * ONES).sum())(X)],
    "jit": lambda: [hg.jit(lambda x: x + ONES)(X), hg.jit(lambda x: x * hg.arange(300))(X),
                    hg.jit(lambda x: hg.array([x[0], 2.0, x[1]]))(X), hg.jit(lambda x: hg.array([[x[0], 2.0], [1.0, 3.0]]))(X)],
    "training": lambda: [hg.optim.Adam(0.1).update([X], [X], hg.optim.Adam(0.1).init([X]))[0][0], hg.cross_entropy(M, LABELS),
                         hg.dropout(X, hg.random.key(1), p=0.5), hg.one_hot(I, 50), hg.embedding(M, LABELS % 6),
                         hg.nn.Linear(300, 4)(hg.nn.Linear(300, 4).init(hg.random.key(0)), M)],
    "optimisers": lambda: [hg.nn.state_dict(kind(hg.optim.cosine(0.1, 9)).update([X], [X], kind().init([X]) | {"step": hg.ones(())}))["0.0"]
                           for kind in (hg.optim.NAdam, hg.optim.Adamax, hg.optim.RMSprop, hg.optim.Adagrad, hg.optim.Lion)],
    "layers": lambda: [y for layer in (hg.nn.BatchNorm(300), hg.nn.ChannelDropout(), hg.nn.AlphaDropout(), hg.nn.LSTM(300, 4),
                                       hg.nn.GRU(300, 4), hg.nn.MultiHeadAttention(300, 2, causal=True),
                                       hg.nn.TransformerBlock(300, 2, 8, dropout=0.1))
                       for y in [layer.apply(layer.init(hg.random.key(0)), M, hg.random.key(1), training=True)[0]]],
    "caches": lambda: [hg.nn.MultiHeadAttention(300, 2).extend(hg.nn.MultiHeadAttention(300, 2).init(hg.random.key(0)), M,
                                                               hg.nn.MultiHeadAttention(300, 2).cache((), 8))[0]],
}


@pytest.mark.parametrize("name", CALLS)
def test_results_are_beside_what_they_are_made_of(name):
    assert hg.default_executor() != OTHER
    results = CALLS[name]()
    assert results
    for number, result in enumerate(results):
        result.numpy()
        assert result.device == OTHER, f"result {number} of {name}"


def test_arrays_of_two_devices_do_not_mix():
    with pytest.raises(ValueError, match=r"add: its inputs are on two executors; move one of them with to_device\(\)"):
        X + hg.array(ONES)
