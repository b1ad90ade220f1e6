"""QR, eigenvalues and singular values of more than 64 columns, in blocks, beside LAPACK: also of matrices that are hard. On the default
engine; test_linear_algebra.py has what they consist of on every one."""

import numpy as np
import pytest

from hgops import TYPES, apply
from test_linear_algebra import made, near, turned, wide


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(2, 65, 65), (100, 100), (150, 129)])
def test_blocks_of_reflections(shape, kind):
    """Panels of 32 columns; of what has no rank, is a triangle already, overflows or vanishes, as well."""
    m, n = shape[-2:]
    low = made((*shape[:-1], 3), kind) @ made((3, n), kind)
    for x in (made(shape, kind), low, np.zeros(shape, TYPES[kind]), np.triu(made(shape, kind))):
        for scale in (1.0, 1e30, 1e-30) if x is low else (1.0,):
            for name, columns in (("qr_blocks", n), ("qr_complete_blocks", m)):
                y = wide(apply(name, (x * scale).astype(x.dtype)))
                q, r = y[..., :m, :], turned(y[..., m:, :]) / scale
                near(q @ r, x, kind, 4, name)
                near(turned(q) @ q, np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)), kind, 4, name)
                assert not np.tril(r, -1).any()
    near(apply("qr_factors", x)[..., m:m + n, :], turned(np.linalg.qr(x)[1]), kind, 4, "signs of R")
    x[..., 1, 0] = np.nan
    assert np.isnan(apply("qr_blocks", x)[..., :m, :]).all()


def hard_ones(n):
    """Symmetric matrices whose eigenvalues are clustered, graded, equal, few, or next to each other."""
    q, g, i = np.linalg.qr(made((n, n), "f64", 1))[0], made((n, n), "f64", 2), np.arange(n)
    beside = np.diag(np.ones(n - 1), 1)
    yield "any", g + g.T
    yield "clusters", q * (i % 4 + 1e-9 * g[0]) @ q.T
    yield "graded", q * 10.0 ** (-16 * i / n) @ q.T
    yield "graded rows", (g + g.T) * 10.0 ** (-8 * i / n) * 10.0 ** (-8 * i[:, None] / n)
    yield "of rank 3", q[:, :3] * [3, 2, -1] @ q[:, :3].T
    yield "one apart", q * np.where(i == 0, 1, 1e-3) @ q.T
    yield from ((f"pairs {k}", np.where((i + k) % 2, beside, 0) + np.where((i + k) % 2, beside, 0).T) for k in (0, 1))
    yield "Wilkinson's", np.diag(np.abs(i - n // 2).astype(float)) + beside + beside.T
    yield from (("ones", np.ones((n, n))), ("nothing", np.zeros((n, n))), ("diagonal", np.diag(g[0])), ("I", np.eye(n)))


@pytest.mark.parametrize("n, kind", [(65, "f32"), (129, "f64")])
def test_blocks_of_eigenvalues(n, kind):
    for name, x in hard_ones(n):
        for scale in (1.0, 1e30, 1e-30) if name == "any" else (1.0,):
            given = (x * scale).astype(TYPES[kind])
            y = wide(apply("eigh_blocks", given))
            v, w, right = y[:n], y[n] / scale, wide(given) / scale
            near(v * w @ v.T, right, kind, 12, name)
            near(v.T @ v, np.eye(n), kind, 12, name)
            near(w, np.linalg.eigvalsh(right), kind, 8, name)
            assert np.all(np.diff(w) >= 0), name
    for k in (1, 2, 34):
        near(apply("eigh_reduced", given[:k, :k].copy())[k] / scale, np.linalg.eigvalsh(right[:k, :k]), kind, 8, "eigh_reduced")
    batch = made((3, n, n), kind)
    assert all(np.array_equal(apply("eigh_blocks", one), found) for one, found in zip(batch, apply("eigh_blocks", batch)))
    f = wide(apply("tridiagonal", batch[0]))
    w = np.linalg.eigvalsh(wide(np.tril(batch[0]) + np.tril(batch[0], -1).T))
    near(wide(apply("tridiagonal_eigh", f[n:n + 2].astype(TYPES[kind])))[n], w, kind, 8, "tridiagonal_eigh")
    batch[1, 3, 2] = np.inf
    assert np.array_equal(np.isnan(apply("eigh_blocks", batch)).all((-1, -2)), [False, True, False])


@pytest.mark.parametrize("m, n, kind", [(65, 65, "f32"), (130, 66, "f64")])
def test_blocks_of_singular_values(m, n, kind):
    q, scales = np.linalg.qr(made((m, n), "f64"))[0], (1.0, 1e30, 1e-30)
    left = [("shifted", np.diag(np.ones(n - 1), 1)), ("equal", np.triu(np.ones((n, n))))]
    for name, x in [*hard_ones(n), *left]:
        for scale in scales if name == "any" else (1.0,):
            given = ((x if m == n else q @ x) * scale).astype(TYPES[kind])
            y = wide(apply("svd_packed", given))
            u, v, s, right = y[:m], y[m:m + n], y[m + n] / scale, wide(given) / scale
            near(u * s @ v.T, right, kind, 12, name)
            near(u.T @ u, np.eye(n), kind, 12, name)
            near(v.T @ v, np.eye(n), kind, 12, name)
            near(s, np.linalg.svd(right)[1], kind, 8, name)
            assert np.all(np.diff(s) <= 0) and np.all(s >= 0), name
    for k in (1, 2, 34):
        near(apply("svd_reduced", given[:k + 1, :k].copy())[-1], np.linalg.svd(right[:k + 1, :k])[1], kind, 8, "svd_reduced")
    b, w = wide(apply("bidiagonal", given[:n])), np.linalg.svd(right[:n])[1]
    near(np.linalg.svd(np.diag(b[2 * n]) + np.diag(b[2 * n + 1, :-1], 1))[1], w, kind, 8, "bidiagonal")
    given[3, 2] = np.nan
    assert np.isnan(apply("svd_packed", given)).all()
