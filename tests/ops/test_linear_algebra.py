"""The rows of matrices beside LAPACK: residuals in units of the last place, every float type, batches, views, sizes that a block has
in shared memory and others; on every engine the same bits (run compares them). Gradients: test_more_gradients.py."""

import numpy as np
import pytest

from hgops import FLOATS, TABLE, TYPES, Computation, Error, apply, laid_out

pytestmark = pytest.mark.engine

SHAPES = [(1, 1), (2, 2), (3, 2, 2), (3, 3), (2, 7, 7), (33, 33), (64, 64), (70, 70)]
TALL = [(5, 1), (2, 6, 3), (40, 33), (66, 64), (90, 70)]


def made(shape, kind, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(TYPES[kind])


def wide(x):
    return np.asarray(x).astype(np.float64)


def turned(x):
    return np.swapaxes(x, -1, -2)


def near(found, right, kind, room, what):
    """Within so many units in the last place of the largest number, times the matrix's size."""
    eps = {"f64": 2.0**-52, "f32": 2.0**-23, "f16": 2.0**-10, "bf16": 2.0**-7}[kind]
    off = np.abs(wide(found) - wide(right)).max(initial=0) / (eps * max(1.0, np.abs(wide(right)).max(initial=0)))
    assert off <= room * np.sqrt(max(np.shape(right)[-2:], default=1)), f"{what}: {off} units"


def positive(shape, kind):
    x = wide(made(shape, kind))
    return (x @ turned(x) / shape[-1] + np.eye(shape[-1])).astype(TYPES[kind])


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_square_ones(shape, kind):
    n, x = shape[-1], made(shape, kind)
    s = positive(shape, kind)
    lower = apply("cholesky", s)
    near(wide(lower) @ turned(wide(lower)), s, kind, 2, "cholesky")
    assert not np.triu(wide(lower), 1).any()
    assert np.array_equal(apply("cholesky", np.tril(wide(s)).astype(s.dtype), upper=1), turned(lower))
    if kind in ("f32", "f64"):
        p = wide(apply("lu", x))
        rows = p[..., n:].astype(int)
        assert np.array_equal(np.sort(rows[..., 0], -1), np.broadcast_to(np.arange(n), shape[:-1]))
        assert np.abs(np.tril(p[..., :n], -1)).max() <= 1
        near((np.tril(p[..., :n], -1) + np.eye(n)) @ np.triu(p[..., :n]), np.take_along_axis(x, rows, -2), kind, 4, "lu")
        sign, size = np.linalg.slogdet(wide(x))
        assert np.array_equal(apply("lu_sign", apply("lu", x)), sign)
        near(apply("log_abs_det", x), size, kind, 200 if n > 1 else 4, "log_abs_det")
    b = made((n, 3), kind, 1)
    for upper in (0, 1):
        for transpose in (0, 1):
            for unit in (0, 1):
                a = np.triu(s) if upper else np.tril(s)
                used = wide(a) - unit * np.eye(n) * (wide(a) - 1)
                y = apply("triangular_solve", s, b, upper=upper, transpose=transpose, unit=unit)
                room, right = 8 + 8 * unit * np.abs(wide(y)).max(), np.broadcast_to(b, (*shape[:-1], 3))
                near((turned(used) if transpose else used) @ wide(y), right, kind, room, "triangular_solve")
    near(wide(s) @ wide(apply("solve", s, b)), np.broadcast_to(b, (*shape[:-1], 3)), kind, 30, "solve")
    y = wide(apply("eigh_packed", s))
    v, w = y[..., :n, :], y[..., n, :]
    near(v * w[..., None, :] @ turned(v), s, kind, 12, "eigh")
    near(turned(v) @ v, np.broadcast_to(np.eye(n), shape), kind, 12, "eigenvectors")
    near(w, np.linalg.eigvalsh(wide(s)), kind, 8, "eigenvalues")


@pytest.mark.parametrize("shape", [(2, 65, 65), (64, 64), (150, 150)])
def test_blocks(shape):
    """Larger ones in blocks of 64 and 128, whose products are contractions."""
    n, x, s = shape[-1], made(shape, "f64"), positive(shape, "f64")
    lower = apply("cholesky_blocks", s)
    near(lower @ turned(lower), s, "f64", 2, "cholesky")
    assert not np.triu(lower, 1).any()
    p = apply("lu_blocks", x)
    rows = p[..., n:].astype(int)
    assert np.array_equal(np.sort(rows[..., 0], -1), np.broadcast_to(np.arange(n), shape[:-1]))
    assert np.abs(np.tril(p[..., :n], -1)).max() <= 1
    near((np.tril(p[..., :n], -1) + np.eye(n)) @ np.triu(p[..., :n]), np.take_along_axis(x, rows, -2), "f64", 4, "lu")
    b = made((n, 3), "f64", 1)
    near(np.tril(s) @ apply("forward_solve", s, b), np.broadcast_to(b, (*shape[:-1], 3)), "f64", 8, "forward_solve")
    near(np.triu(s) @ apply("upper_solve", s, b), np.broadcast_to(b, (*shape[:-1], 3)), "f64", 8, "upper_solve")
    near(s @ apply("lu_solve", apply("lu_blocks", s), b), np.broadcast_to(b, (*shape[:-1], 3)), "f64", 30, "lu_solve")
    near(s @ apply("inv", s), np.broadcast_to(np.eye(n), shape), "f64", 30, "inv")
    sign, size = np.linalg.slogdet(x)
    assert np.array_equal(np.sign(apply("det", x)), sign) and np.allclose(apply("log_abs_det", x), size, rtol=1e-12)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_parts_of_blocks(kind):
    """What larger ones are cut into, of 40 columns: two blocks. On large ones: test_large_factors.py."""
    x = made((40, 40), kind)
    s = (x + turned(x)).astype(x.dtype)
    near(turned(apply("qr_factors", x)[40:80]), np.linalg.qr(wide(x))[1], kind, 4, "qr_factors")
    near(apply("eigh_reduced", s)[40], np.linalg.eigvalsh(wide(s)), kind, 8, "eigh_reduced")
    near(apply("svd_reduced", x)[80], np.linalg.svd(wide(x))[1], kind, 8, "svd_reduced")


def test_parts_of_factors():
    found = apply("matrix_scale", np.array([[[3.0, -10]], [[0, 0.4]], [[np.inf, 1]]])).ravel()
    assert np.array_equal(found, [8, 0.25, np.nan], equal_nan=True)
    near(apply("orthonormal", np.array([[3.0, 0, 0], [0, 0, 0], [0, 0, -2]])), np.diag([1, 1, -1]), "f64", 1, "orthonormal")
    v, t, x = made((5, 3), "f64"), made((1, 3), "f64", 1), made((5, 2), "f64", 2)
    right = x
    for k in (2, 1, 0):
        right = right - t[0, k] * np.outer(v[:, k], v[:, k] @ right)
    near(apply("reflected", v, t, x), right, "f64", 8, "reflected")


def test_roots_of_a_rational_function():
    """Between poles at 0 and 4 with weights 1: half of the way, or all bits of where 1 + 1 / (0 - t) + 1 / (4 - t) is 0."""
    x, w, bits = np.array([[0.0, 4.0]]), np.ones((1, 2)), np.float64(0.25).view(np.int64).reshape(1, 1)
    assert apply("secular_bit", bits, x, w, np.full((1, 1), 2.0), bit=2.0**52) == bits + 2**52
    assert apply("secular_bit", bits, x, w, np.full((1, 1), 0.4), bit=2.0**52) == bits
    found = bits
    for bit in range(53, 0, -6):
        found = apply("secular_bits", found, x, w, np.full((1, 1), 2.0), bit=2.0**bit)
    assert abs(found.view(np.float64).item() - (3 - 5**0.5)) <= 2.0**-51
    y = apply("eigh_joined", np.array([[1.0], [2.0]]), np.array([[1.0], [2.0]]), np.array([[-1.0]]))  # of [[3, -1], [-1, 3]]
    near(y[2], [2, 4], "f64", 2, "eigh_joined")
    near(y[:2] * y[2] @ y[:2].T, [[3, -1], [-1, 3]], "f64", 2, "eigh_joined")


def test_gradients_of_blocks():
    """Along a direction, against differences; also through views of what is packed."""
    x, direction, weights = positive((66, 66), "f64") + np.diag(np.arange(66.0)), made((66, 66), "f64", 2), made((66, 132), "f64", 3)
    for name in ("cholesky_blocks", "lu_blocks", "qr_blocks", "eigh_blocks", "inv", "log_abs_det"):
        def value(at):
            c = Computation()
            given = c.input(at)
            made_of_it = c.op(name, given)
            if name.endswith("blocks"):
                made_of_it = c.op("swap", c.op("slice", made_of_it, axis=-1, start=0, stop=66))
            if name == "eigh_blocks":  # of whose vectors the signs are arbitrary
                made_of_it = c.op("square", made_of_it)
            y = c.op("sum", c.op("mul", made_of_it, c.input(weights[:, :{"qr_blocks": 132, "eigh_blocks": 67}.get(name, 66)].copy())))
            c.output(y)
            return c, given, y
        moved = [value(x + sign * 1e-6 * (direction + direction.T))[0].run()[0] for sign in (1, -1)]
        c, given, y = value(x)
        c.output(c.gradient(y, [given])[0])
        found, expected = np.sum(c.run()[1] * (direction + direction.T)), (moved[0] - moved[1]) / 2e-6
        assert abs(found - expected) <= 1e-5 * (1 + abs(expected)), f"{name}: {found}, not {expected}"


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape", SHAPES + TALL)
def test_tall_ones(shape, kind):
    m, n = shape[-2:]
    x, square = made(shape, kind), np.broadcast_to(np.eye(n), (*shape[:-2], n, n))
    for name, columns in (("qr_packed", n), ("qr_complete", m)):
        y = wide(apply(name, x))
        q, r = y[..., :m, :], turned(y[..., m:, :])
        near(q @ r, x, kind, 6, name)
        near(turned(q) @ q, np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)), kind, 6, name)
        assert not np.tril(r, -1).any()
    near(r[..., :n, :], np.linalg.qr(wide(x))[1], kind, 30, "signs of R")
    y = wide(apply("svd_packed", x))
    u, v, s = y[..., :m, :], y[..., m:m + n, :], y[..., m + n, :]
    near(u * s[..., None, :] @ turned(v), x, kind, 12, "svd")
    near(turned(u) @ u, square, kind, 12, "U")
    near(turned(v) @ v, square, kind, 12, "V")
    near(s, np.linalg.svd(wide(x))[1], kind, 8, "singular values")


@pytest.mark.parametrize("layout", ["turned", "backwards", "apart", "mixed"])
def test_layouts(layout):
    """Of a view, and into one."""
    x = laid_out(made((3, 6, 6), "f32"), layout, 3)
    for name in ("lu", "qr_packed", "qr_reflections", "svd_rotated", "eigh_packed"):
        c = Computation()
        c.output(c.op(name, c.op("swap", c.input(x))), layout=layout, seed=4)
        assert c.run()[0].tobytes() == apply(name, np.ascontiguousarray(turned(x))).tobytes(), name


@pytest.mark.parametrize("name", ["qr_packed", "svd_packed", "eigh_packed", "lu", "cholesky"])
def test_batches_and_views_change_nothing(name):
    x = positive((5, 8, 8), "f64")
    assert all(np.array_equal(apply(name, x[i]), found) for i, found in enumerate(apply(name, x)))


def test_special_matrices():
    """Zeros, equal columns, numbers whose squares overflow or vanish, NaN, infinities, nothing."""
    for x in (np.zeros((4, 3)), np.ones((4, 3)), np.eye(4)[:, :3], np.diag([1.0, 0, 2, 0])[:, :3], np.ones((1, 1)) * -2):
        for scale in (1.0, 1e30, 1e-30):
            given = (x * scale).astype(np.float32)
            m, n = given.shape
            y = wide(apply("svd_packed", given))
            u, v, s = y[:m], y[m:m + n], y[m + n]
            near(u * (s / scale) @ v.T, wide(given) / scale, "f32", 8, "svd")
            near(u.T @ u, np.eye(n), "f32", 8, "U")
            near(v.T @ v, np.eye(n), "f32", 8, "V")
            y = wide(apply("qr_packed", given))
            near(y[:m] @ (y[m:].T / scale), wide(given) / scale, "f32", 8, "qr")
            near(y[:m].T @ y[:m], np.eye(n), "f32", 8, "Q")
            square = (wide(given) @ wide(given).T / scale if m > 1 else given).astype(np.float32)
            y = wide(apply("eigh_packed", square))
            near(y[:m] * (y[m] / scale) @ y[:m].T, wide(square) / scale, "f32", 8, "eigh")
    for odd in (np.nan, np.inf, -np.inf):
        x = positive((3, 3), "f64")
        x[1, 0] = odd
        for name in ("svd_packed", "eigh_packed"):
            assert np.isnan(apply(name, x)).all(), name
        for name in ("cholesky", "qr_packed") + ("det", "log_abs_det") * int(np.isnan(odd)):
            assert np.isnan(apply(name, x)).any(), name
    found = apply("cholesky", np.array([[1.0, 2, 0], [2, 1, 0], [0, 0, 1]]))
    assert np.array_equal(np.isnan(found), [[False] * 3, [False, True, False], [False, True, True]])
    assert apply("det", np.zeros((0, 0))) == 1 and apply("det", np.ones((3, 3))) == 0
    assert apply("log_abs_det", np.ones((3, 3))) == -np.inf
    assert apply("solve", np.zeros((2, 0, 0)), np.zeros((0, 3))).shape == (2, 0, 3)


def test_refusals():
    for name, arrays, sentence in [
            ("cholesky", [np.zeros((2, 3))], r"x is f64\[2, 3\]; it takes square matrices"),
            ("eigh", [np.zeros(3)], r"x is f64\[3\]; it takes square matrices: \[\.\.\., n, n\]"),
            ("solve", [np.zeros((2, 2)), np.zeros((3, 1))], "f64"),
            ("lower_solve", [np.zeros((2, 2)), np.zeros((3, 1))], "b has to have as many rows as a"),
            ("svd_rotated", [np.zeros((2, 3))], "at least as many rows as columns"),
            ("qr_factors", [np.zeros((2, 3))], "at least as many rows as columns")]:
        with pytest.raises(Error, match=sentence):
            apply(name, *arrays)
    c = Computation()
    x = c.input(np.ones((3, 2)))
    y = c.op("sum", c.op("qr_complete", x))
    with pytest.raises(Error, match="qr_complete has no gradient"):
        c.gradient(y, [x])
        c.check()


def test_every_row_of_matrices_is_here():
    files = ("linear_algebra", "large_factors", "more_gradients")
    own = "".join(open(__file__.replace(files[0], name), encoding="utf-8").read() for name in files)
    assert [name for name, row in TABLE.items() if row["op"] >> 8 == 0x18 and f'"{name}"' not in own] == []
