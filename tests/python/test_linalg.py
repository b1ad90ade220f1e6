"""hg.linalg beside NumPy in values, beside PyTorch in gradients; the same bits eager, lazy, under jit and on the double of the CUDA
driver."""


import numpy as np
import pytest

import double_of_cuda
import hologram as hg

la, inf = hg.linalg, np.inf
RANDOM = np.random.default_rng(7)
SQUARE, TALL, WIDE, RIGHT, VECTOR = (RANDOM.standard_normal(shape) for shape in ((2, 5, 5), (3, 6, 4), (4, 6), (5, 3), (5,)))
SYMMETRIC = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(5)
FLAT = TALL[0, :, :1] * TALL[0, :1] + TALL[1, :, 1:2] * TALL[1, :1]  # of rank 2


def near(found, right, room=1e-12):
    found = np.asarray(found)
    assert found.shape == np.shape(right), (found.shape, np.shape(right))
    assert np.allclose(found, right, rtol=room, atol=room * max(1.0, np.abs(right).max(initial=0)))


CALLS = {
    "cholesky": (la.cholesky, np.linalg.cholesky, [SYMMETRIC]), "cholesky upper": (lambda x: la.cholesky(x, upper=True),
                                                                                  lambda x: np.linalg.cholesky(x, upper=True), [SYMMETRIC]),
    "solve": (la.solve, np.linalg.solve, [SQUARE, RIGHT]), "solve vector": (la.solve, np.linalg.solve, [SQUARE, VECTOR]),
    "solve batches": (la.solve, np.linalg.solve, [SQUARE[0], np.stack([RIGHT, RIGHT * 2])]),
    "inv": (la.inv, np.linalg.inv, [SQUARE]), "det": (la.det, np.linalg.det, [SQUARE]), "pinv": (la.pinv, np.linalg.pinv, [TALL]),
    "pinv of rows": (la.pinv, np.linalg.pinv, [WIDE]), "pinv of rank 2": (la.pinv, lambda x: np.linalg.pinv(x, rcond=1e-12), [FLAT]),
    "slogdet": (la.slogdet, np.linalg.slogdet, [SQUARE]), "qr": (la.qr, np.linalg.qr, [TALL]), "qr of rows": (la.qr, np.linalg.qr, [WIDE]),
    "qr complete": (lambda x: la.qr(x, mode="complete")[1], lambda x: np.linalg.qr(x, mode="complete")[1], [TALL]),
    "eigvalsh": (la.eigvalsh, np.linalg.eigvalsh, [SYMMETRIC]), "svdvals": (la.svdvals, np.linalg.svdvals, [WIDE]),
    "matrix_rank": (la.matrix_rank, np.linalg.matrix_rank, [TALL]), "matrix_rank 2": (la.matrix_rank, np.linalg.matrix_rank, [FLAT]),
    "lstsq": (lambda a, b: la.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], [TALL[0], TALL[1]]),
    "lstsq of rows": (lambda a, b: la.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b, rcond=None)[0], [WIDE, VECTOR[:4]]),
    "lstsq of rank 2": (lambda a, b: la.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b, rcond=1e-12)[0], [FLAT, TALL[2]]),
    "trace": (la.trace, lambda x: np.trace(x, axis1=-2, axis2=-1), [SQUARE]), "cross": (la.cross, np.cross, [TALL[..., :3], WIDE[:1, :3]]),
    "cross axis": (lambda a, b: la.cross(a, b, axis=0), lambda a, b: np.cross(a, b, axis=0), [TALL, TALL[:, ::-1].copy()]),
    "outer": (la.outer, np.outer, [VECTOR, WIDE[0]]),
    **{f"power {n}": (lambda x, n=n: la.matrix_power(x, n), lambda x, n=n: np.linalg.matrix_power(x, n), [SQUARE])
       for n in (-3, -1, 0, 1, 2, 7)},
    **{f"diagonal {k}": (lambda x, k=k: la.diagonal(x, offset=k), lambda x, k=k: np.diagonal(x, k, -2, -1), [WIDE])
       for k in (-9, -3, -1, 0, 2, 5, 6)},
    **{f"matrix_norm {o} {k}": (lambda x, o=o, k=k: la.matrix_norm(x, ord=o, keepdims=k),
                                lambda x, o=o, k=k: np.linalg.matrix_norm(x, ord=o, keepdims=k), [TALL])
       for o in ("fro", "nuc", 1, -1, 2, -2, inf, -inf) for k in (False, True)},
    **{f"vector_norm {o} {axis}": (lambda x, o=o, axis=axis: la.vector_norm(x, ord=o, axis=axis),
                                   lambda x, o=o, axis=axis: np.linalg.vector_norm(x, ord=o, axis=axis), [TALL])
       for o in (0, 1, 2, 3.5, inf, -inf) for axis in (None, 1, (0, 2))},
}


@pytest.mark.parametrize("name", CALLS)
def test_beside_numpy(name):
    own, theirs, arrays = CALLS[name]
    for dtype, room in ((np.float64, 1e-12), (np.float32, 2e-4)):
        found, right = own(*(hg.asarray(a.astype(dtype)) for a in arrays)), theirs(*arrays)
        for f, r in zip(found, right) if isinstance(found, tuple) else [(found, right)]:
            assert f.dtype.name in (np.dtype(dtype).name, "int64")
            near(f, r, room)


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (4, 6), (2, 3, 5), (1, 1), (0, 0), (0, 3), (3, 0), (2, 0, 0)])
def test_factors(shape):
    x = RANDOM.standard_normal(shape)
    m, n = shape[-2:]
    for full in (False, True):
        if 0 in shape and full:
            continue
        u, s, vh = la.svd(hg.asarray(x), full_matrices=full)
        right = np.linalg.svd(x, full_matrices=full)
        assert [a.shape for a in (u, s, vh)] == [a.shape for a in right]
        k = min(m, n)
        near(u[..., :k] * s[..., None, :] @ vh[..., :k, :], x)
        near(hg.swap(u) @ u,
             np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], *2 * u.shape[-1:])))
    for mode in ("reduced", "complete") if 0 not in shape else ("reduced",):
        q, r = la.qr(hg.asarray(x), mode=mode)
        assert [q.shape, r.shape] == [a.shape for a in np.linalg.qr(x, mode=mode)]
        near(q @ r, x)
    if m == n:
        s = x + x.swapaxes(-1, -2)
        w, v = la.eigh(hg.asarray(s))
        near(v * w[..., None, :], s @ np.asarray(v))
        assert la.inv(hg.asarray(x)).shape == shape and la.det(hg.asarray(x)).shape == shape[:-2]
    assert la.pinv(hg.asarray(x)).shape == (*shape[:-2], n, m)


def gradients(torch):
    t = torch.linalg if torch is not None else np.linalg  # of which nothing is called
    return {
        "cholesky": (la.cholesky, t.cholesky, [SYMMETRIC]), "solve": (la.solve, t.solve, [SQUARE, RIGHT]),
        "solve vector": (lambda a, b: la.solve(a, b), lambda a, b: t.solve(a, b[..., None])[..., 0], [SQUARE[0], VECTOR]),
        "inv": (la.inv, t.inv, [SQUARE]), "det": (la.det, t.det, [SQUARE]),
        "logabsdet": (lambda x: la.slogdet(x)[1], lambda x: t.slogdet(x)[1], [SQUARE]),
        "triangular": (lambda a, b: la.triangular_solve(a, b, upper=True, unit=True),
                       lambda a, b: t.solve_triangular(a, b, upper=True, unitriangular=True), [SQUARE, RIGHT]),
        "q": (lambda x: la.qr(x)[0] ** 2, lambda x: t.qr(x)[0] ** 2, [TALL]),
        "r": (lambda x: la.qr(x)[1] ** 2, lambda x: t.qr(x)[1] ** 2, [WIDE]),
        "eigenvalues": (lambda x: la.eigh(x)[0], lambda x: t.eigh(x)[0], [SYMMETRIC]),
        "eigenvectors": (lambda x: la.eigh(x)[1] ** 2, lambda x: t.eigh(x)[1] ** 2, [SYMMETRIC]),
        "u": (lambda x: la.svd(x, full_matrices=False)[0] ** 2, lambda x: t.svd(x, full_matrices=False)[0] ** 2, [TALL]),
        "vh": (lambda x: la.svd(x, full_matrices=False)[2] ** 2, lambda x: t.svd(x, full_matrices=False)[2] ** 2, [WIDE]),
        "svdvals": (la.svdvals, t.svdvals, [WIDE]), "pinv": (la.pinv, t.pinv, [WIDE]), "lstsq": (
            lambda a, b: la.lstsq(a, b).solution, lambda a, b: t.pinv(a) @ b, [TALL[0], TALL[1]]),
        "power": (lambda x: la.matrix_power(x, -3), lambda x: t.matrix_power(x, -3), [SQUARE]),
        "nuc": (lambda x: la.matrix_norm(x, ord="nuc"), lambda x: t.matrix_norm(x, "nuc"), [TALL]),
        "spectral": (lambda x: la.matrix_norm(x, ord=2), lambda x: t.matrix_norm(x, 2), [TALL]),
        "fro": (la.matrix_norm, t.matrix_norm, [TALL]),
    }


@pytest.mark.parametrize("name", ["cholesky", "solve", "solve vector", "inv", "det", "logabsdet", "triangular", "q", "r", "eigenvalues",
                                  "eigenvectors", "u", "vh", "svdvals", "pinv", "lstsq", "power", "nuc", "spectral", "fro"])
def test_gradients_beside_torch(name):
    torch = pytest.importorskip("torch")
    own, theirs, arrays = gradients(torch)[name]
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = theirs(*given)
    weights = np.cos(np.arange(y.numel())).reshape(y.shape)
    right = torch.autograd.grad((y * torch.tensor(weights)).sum(), given)
    found = hg.grad(lambda *x: (own(*x) * hg.asarray(weights)).sum(), argnums=tuple(range(len(arrays))))(*map(hg.asarray, arrays))
    for f, r in zip(found, right):
        near(f, r.numpy(), 1e-9)


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "det", "r", "eigenvectors", "svdvals", "pinv"])
def test_vmap_is_a_batch(name):
    """Of batches the same bits, gradients included; of many right sides one matrix' factor."""
    own, _, arrays = gradients(None)[name] if name != "r" else (lambda x: la.qr(x)[1], None, [TALL])
    x = np.stack([arrays[0]] * 2) * np.arange(1, 3).reshape((2,) + (1,) * arrays[0].ndim)
    rest = [hg.asarray(a) for a in arrays[1:]]
    made = hg.vmap(lambda x: own(x, *rest))(hg.asarray(x))
    slopes = hg.vmap(hg.grad(lambda x: own(x, *rest).sum()))(hg.asarray(x))
    for i in range(2):
        assert made[i].tolist() == own(hg.asarray(x[i]), *rest).tolist()
        assert slopes[i].tolist() == hg.grad(lambda x: own(x, *rest).sum())(hg.asarray(x[i])).tolist()


def test_where_gradients_depend_on_a_choice():
    """Sums over equal eigenvalues have gradients; their vectors, whose choice is free, have none."""
    near(hg.grad(lambda x: (la.eigvalsh(x) ** 2).sum())(hg.eye(3, type="f64")), 2 * np.eye(3))
    near(hg.grad(lambda x: la.svdvals(x).sum())(hg.eye(3, type="f64")), np.eye(3))
    found = hg.grad(lambda x: (la.eigh(x)[1] * hg.asarray(SQUARE[0, :3, :3])).sum())(hg.eye(3, type="f64"))
    assert not np.isfinite(np.asarray(found)).any()
    with pytest.raises(hg.Error, match="qr_complete has no gradient"):
        hg.grad(lambda x: la.qr(x, mode="complete")[0].sum())(hg.asarray(TALL)).numpy()


def test_singular_matrices_show_themselves():
    x = hg.ones((3, 3))
    assert not np.isfinite(np.asarray(la.inv(x))).any()
    assert not np.isfinite(np.asarray(la.solve(x, hg.ones(3)))).all()
    assert la.det(x).item() == 0 and la.slogdet(x)[1].item() == -inf and la.slogdet(x)[0].item() == 0
    assert np.isnan(np.asarray(la.cholesky(-x))).any()
    assert la.matrix_rank(x).item() == 1 and la.matrix_rank(x, rtol=hg.asarray(2.0)).item() == 0


EVERYTHING = """
def everything(a, b, c):
    s = a @ hg.swap(a) + hg.eye(a.shape[-1])
    la = hg.linalg
    return (la.cholesky(s), la.solve(a, b), la.det(a), *la.qr(b), *la.eigh(s), *la.svd(b), la.pinv(b), la.inv(a), *la.slogdet(a),
            *la.qr(c), la.qr(c, mode="complete")[0], hg.grad(lambda x: (la.qr(x)[0] ** 3).sum())(c),
            hg.eigh_reduced((hg.swap(c) @ c)[:40, :40]), hg.svd_reduced(b),
            hg.grad(lambda x: (la.solve(x, b) ** 2).sum() + la.svdvals(x).sum() + la.eigh(x)[1].sum())(a))
rows = np.random.default_rng(3)
given = [rows.standard_normal(shape).astype("f4") for shape in ((2, 40, 40), (2, 40, 9), (70, 66))]
"""


def test_same_bits_everywhere():
    names = {"hg": hg, "np": np}
    exec(EVERYTHING, names)
    given = [hg.asarray(a) for a in names["given"]]
    made = [y.numpy().tobytes() for y in names["everything"](*given)]
    assert made == [y.numpy().tobytes() for y in hg.jit(names["everything"])(*given)]
    with hg.eager():
        assert made == [y.numpy().tobytes() for y in names["everything"](*given)]


@double_of_cuda.needed
@pytest.mark.parametrize("name", ["qr", "eigh", "svd"])
def test_blocks_have_the_same_bits_on_a_gpu(name):
    code = ("import sys, zlib, numpy as np, hologram as hg\nx = np.random.default_rng(0).standard_normal((66, 66)).astype('f4')\n"
            "x = hg.asarray(x + x.T, device=hg.Executor(sys.argv[1]))\n"
            "print([zlib.crc32(y.numpy().tobytes()) for y in getattr(hg.linalg, sys.argv[2])(x)])")
    assert double_of_cuda.run(code, "cpu", name) == double_of_cuda.run(code, "cuda", name)


@double_of_cuda.needed
def test_a_gpu_of_little_shared_memory():
    """Too little for a matrix of 32 x 32 and its vectors, which lie in a temporary then; the bits stay."""
    code = ("import sys, hologram as hg\nhg.set_default_executor(hg.Executor(sys.argv[1]))\n"
            "x = hg.random.normal(hg.random.key(0), (32, 32))\nx = x + x.swap(-1, -2)\n"
            "print([part.bitcast('i32').sum().item() for part in (*hg.linalg.eigh(x), *hg.linalg.qr(x))])")
    assert double_of_cuda.run(code, "cpu") == double_of_cuda.run(code, "cuda", FAKECUDA_SHARED="8192")


@double_of_cuda.needed
def test_same_bits_on_a_gpu():
    code = ("import sys, zlib, numpy as np, hologram as hg\n" + EVERYTHING.replace("40, 40", "9, 9").replace("40, 9", "9, 4") +
            "device = hg.Executor(sys.argv[1])\n"
            "print([zlib.crc32(y.numpy().tobytes()) for y in everything(*[hg.asarray(a, device=device) for a in given])])")
    assert double_of_cuda.run(code, "cpu") == double_of_cuda.run(code, "cuda")


@pytest.mark.parametrize("call, sentence", [
    (lambda: la.inv(hg.ones((2, 3))), r"inv: square matrices on the last two axes are expected, not an array of shape \(2, 3\)"),
    (lambda: la.svd(hg.ones(3)), r"svd: matrices on the last two axes are expected, not an array of shape \(3,\)"),
    (lambda: la.qr(hg.ones((2, 2)), mode="raw"), "qr: mode is 'reduced' or 'complete', not 'raw'"),
    (lambda: la.matrix_norm(hg.ones((2, 2)), ord=3), "matrix_norm: ord is 'fro', 'nuc', 1"),
    (lambda: la.outer(hg.ones((2, 2)), hg.ones(2)), "outer: two vectors are expected"),
    (lambda: la.cross(hg.ones(2), hg.ones(2)), "cross: there have to be 3 elements along axis -1 of both"),
    (lambda: la.solve(hg.ones((2, 2)), hg.ones((3, 1))), "b has to have as many rows as a|2"),
])
def test_errors(call, sentence):
    with pytest.raises((ValueError, hg.Error), match=sentence):
        call()


def test_every_name_is_documented():
    for name in la.__all__:
        assert getattr(la, name).__doc__, name


def test_names_of_others():
    with pytest.raises(AttributeError, match="hologram.linalg has no 'norm': use vector_norm or matrix_norm"):
        la.norm  # noqa: B018
    with pytest.raises(AttributeError, match="hologram.linalg has no 'expm'$"):
        la.expm  # noqa: B018
