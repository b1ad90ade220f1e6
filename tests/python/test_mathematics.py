"""Small functions by NumPy's names: comparisons, NaN left out, integers, rounding, products, diagonals, differences, interpolation and
covariances. NumPy says what they are, PyTorch what their gradients are."""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

import double_of_cuda
import hologram as hg

INF, NAN = np.inf, np.nan
FLOATS = ("float32", "float64")
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
RANDOM = np.random.default_rng(7)


def random(*shape, kind="float64"):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(kind)


def same(own, right):
    """Of shape, type (but float32 where NumPy makes float64 of integers), and bits; a NaN is a NaN."""
    own, right = own.numpy(), np.asarray(right)
    assert own.shape == right.shape
    assert own.dtype == right.dtype
    np.testing.assert_array_equal(own, right)


def near(own, right, ulps=8):
    own, right = own.numpy(), np.asarray(right)
    assert own.shape == right.shape
    room = ulps * np.finfo(own.dtype).eps
    np.testing.assert_allclose(own, right, rtol=room, atol=room * np.nanmax(np.abs(np.where(np.isfinite(right), right, 1)), initial=0))


X, Y = random(4, 6), random(6, 4)
HOLES = np.where(X > 1, NAN, X)


# ---- element by element ------------------------------------------------------------------------------------------------------

def rows_of_floats(kind, least=0):
    numbers = st.floats(width=8 * np.dtype(kind).itemsize) | st.sampled_from([0.0, -0.0, INF, -INF, NAN, 1.0])
    return hn.arrays(kind, hn.array_shapes(min_dims=2, max_dims=2, min_side=least, max_side=5), elements=numbers)


@pytest.mark.parametrize("kind", FLOATS)
def test_close(kind):
    @given(rows_of_floats(kind), st.sampled_from([0.0, 1e-3, 1.0, -1.0, 1e-9, INF, NAN]), st.booleans())
    def check(a, by, equal_nan):
        b = (a + np.array(by, kind)).astype(kind)
        for more in ({}, {"rtol": 0.0, "atol": 0.0}, {"rtol": 0.5, "atol": 1e-3}):
            x, y = hg.asarray(a.copy()), hg.asarray(b)
            same(hg.isclose(x, y, equal_nan=equal_nan, **more), np.isclose(a, b, equal_nan=equal_nan, **more))
            assert bool(hg.allclose(x, y, equal_nan=equal_nan, **more)) == np.allclose(a, b, equal_nan=equal_nan, **more)
    check()


def test_close_integers_are_compared_in_64_bits():
    a = np.array([2**24, 0, 250], np.int64)
    assert hg.isclose(hg.asarray(a), a + np.array([1, 1, 0]), rtol=0.0).tolist() == [False, False, True]
    assert hg.isclose(hg.asarray(a.astype("u1")), 0).tolist() == [True, True, False]
    assert hg.asarray(np.array([True, False])).isclose(True).tolist() == [True, False]
    with pytest.raises(ValueError, match="rtol is -1; it has to lie from 0"):
        hg.isclose(hg.ones(2), 1.0, rtol=-1.0)


@pytest.mark.parametrize("kind", ["float16", *FLOATS])
def test_numbers_for_what_is_none(kind):
    x = np.array([NAN, INF, -INF, 1.5, -0.0, np.finfo(kind).max], kind)
    same(hg.nan_to_num(hg.asarray(x)), np.nan_to_num(x))
    same(hg.asarray(x).nan_to_num(2.0, posinf=3.0, neginf=INF), np.nan_to_num(x, nan=2.0, posinf=3.0, neginf=INF))
    same(hg.nan_to_num(hg.asarray(x), posinf=hg.asarray(x)), np.where(x == INF, INF, np.nan_to_num(x)).astype(kind))
    same(hg.isposinf(hg.asarray(x)), np.isposinf(x))
    same(hg.isneginf(hg.asarray(x)), np.isneginf(x))
    same(hg.nan_to_num(hg.asarray([1, 2])), np.array([1, 2]))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["fmin", "fmax"])
def test_beside_a_nan_the_other(kind, name):
    a, b = (v.ravel() for v in np.meshgrid(*[np.array([1.0, -2.0, 0.0, INF, -INF, NAN], kind)] * 2))
    same(getattr(hg, name)(hg.asarray(a), hg.asarray(b)), getattr(np, name)(a, b))
    assert isinstance(getattr(np, name)(hg.asarray(a), b), hg.Array)
    same(getattr(hg, name)(hg.asarray([1, 5]), hg.asarray([3, 2])), getattr(np, name)([1, 5], [3, 2]))


@pytest.mark.parametrize("share", [0, 1e-4, 0.5, 1 - 1e-4, 1])
def test_extremes_of_bytes(share):
    """Rows of every length by which the processor takes them: vectors, chunks of 4096, and what is left."""
    rng = np.random.default_rng(5)
    for shape in [(3, 1), (5, 63), (2, 4095), (40, 4096), (3, 4097), (2, 20000), (4096,), (9000,), (50001,), (3, 4, 300), (300, 7)]:
        bools, numbers = rng.random(shape) < share, rng.integers(int(share * 100), 250, shape).astype(np.uint8)
        for axis in (None, -1, 0):
            axes = {} if axis is None else {"axis": axis}
            for own, right in ((hg.any, np.any), (hg.all, np.all)):
                same(own(hg.asarray(bools), **axes), right(bools, **axes))
                same(own(hg.asarray(bools)[1:], **axes), right(bools[1:], **axes))
            for own, right in ((hg.max, np.max), (hg.min, np.min)):
                same(own(hg.asarray(numbers), **axes), right(numbers, **axes))


def test_degrees():
    x = random(9, kind="float32")
    near(hg.degrees(hg.asarray(x)), np.degrees(x), 2)
    near(hg.asarray(x).radians(), np.radians(x), 2)
    assert (hg.deg2rad(hg.asarray(x)).tolist(), hg.rad2deg(180.0).item()) == (hg.radians(x).tolist(), hg.degrees(180.0).item())


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("decimals", [-4, -1, 0, 1, 2, 7, 19, 22])
def test_round_to_decimals(kind, decimals):
    x = (RANDOM.standard_normal(500) * 10.0 ** RANDOM.integers(-4, 4, 500)).astype(kind)
    x = np.concatenate([x, np.array([0.125, 0.375, 2.5, -2.5, -0.0, INF, -INF, NAN, 25, 35], kind)])
    same(hg.round(hg.asarray(x), decimals), np.round(x, decimals))
    same(hg.asarray(x).round(decimals=decimals), np.round(x, decimals))
    same(hg.round(hg.asarray([15, 25, -35, 1249]), decimals), np.round(np.array([15, 25, -35, 1249]), decimals))


def test_round_beyond_the_type():
    assert hg.round(hg.asarray([3e38]), 2).item() == np.float32(3e38)
    with pytest.raises(ValueError, match="decimals is 40; it has to lie from -22 to 22"):
        hg.round(hg.ones(1), 40)


@pytest.mark.parametrize("kind", INTEGERS)
def test_divisors_and_multiples(kind):
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    a, b = RANDOM.integers(low, high, (2, 400), kind, endpoint=True)
    edges = np.array([0, 1, 2, 12, 18, high, high - 1, low, min(low + 1, 1)], kind)
    fibonacci = [1, 1]
    while fibonacci[-1] + fibonacci[-2] <= high:
        fibonacci.append(sum(fibonacci[-2:]))  # what takes most steps
    lines = [v.ravel() for v in np.meshgrid(edges, edges)]
    a = np.concatenate([a, lines[0], np.array(fibonacci[:-1], kind), np.array(fibonacci[1:], kind), a // 7 * 7])
    b = np.concatenate([b, lines[1], np.array(fibonacci[1:], kind), np.array(fibonacci[:-1], kind), b // 7 * 7])
    same(hg.gcd(hg.asarray(a), hg.asarray(b)), np.gcd(a, b))
    same(hg.lcm(hg.asarray(a), hg.asarray(b)), np.lcm(a, b))
    assert np.gcd(hg.asarray(a[:3]), b[:3]).tolist() == np.gcd(a[:3], b[:3]).tolist()


def test_of_integers_only():
    assert hg.gcd(hg.asarray([12, 7]), 18).tolist() == [6, 1]
    with pytest.raises(ValueError, match="gcd: a is f32.*it takes integer"):
        hg.gcd(hg.ones(2), hg.ones(2))


@pytest.mark.parametrize("kind", ["int32", *FLOATS])
def test_divmod(kind):
    a, b = np.array([7, -7, 7, -7, 0], kind), np.array([2, 2, -2, -2, 3], kind)
    for own, right in zip(divmod(hg.asarray(a), hg.asarray(b)), divmod(a, b), strict=True):
        same(own, right)
    assert [v.tolist() for v in divmod(7, hg.asarray([2, 4]))] == [[3, 1], [1, 3]]
    assert [v.tolist() for v in np.divmod(hg.asarray([7]), 2)] == [[3], [1]]


# ---- NaN left out ------------------------------------------------------------------------------------------------------------

@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", FLOATS)
def test_nan_left_out(kind):
    names = {"nansum": np.nansum, "nanmean": np.nanmean, "nanmin": np.nanmin, "nanmax": np.nanmax}

    @given(rows_of_floats(kind, 1).map(lambda x: np.where(np.abs(x) > 1e18, np.sign(x) * INF, x).astype(kind)), st.booleans())
    def check(x, keep):
        for name, right in names.items():
            for axis in (None, 0, -1, (0, 1)):
                own, expected = getattr(hg, name)(hg.asarray(x.copy()), axis=axis, keepdims=keep), right(x, axis=axis, keepdims=keep)
                near(own, expected) if name in ("nansum", "nanmean") else same(own, np.asarray(expected, kind))
    check()


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["nanargmin", "nanargmax"])
def test_places_but_nan(kind, name):
    @given(rows_of_floats(kind, 1))
    def check(x):
        own = getattr(hg, name)(hg.asarray(x.copy()), axis=1).tolist()
        for place, line in zip(own, x, strict=True):
            left = np.flatnonzero(line == line)
            assert place == (left[getattr(np, name[3:])(line[left])] if left.size else -1)
    check()
    assert hg.asarray([3, 9, 1]).nanargmin().item() == 2


def test_of_integers_as_without_nan():
    x = np.array([[3, 200, 1], [7, 7, 255]], "u1")
    for name in ("nansum", "nanmean", "nanmin", "nanmax", "nanargmin", "nanargmax"):
        assert getattr(hg, name)(hg.asarray(x), axis=1).tolist() == getattr(hg, name[3:])(hg.asarray(x), axis=1).tolist()


@pytest.mark.parametrize("ddof", [0, 1, 3])
@pytest.mark.filterwarnings("ignore")
def test_spread_but_nan(ddof):
    x = np.concatenate([HOLES, [[NAN] * 6, [2.0, NAN] * 3, [NAN] * 5 + [1.0]]])
    for name, right in (("nanvar", np.nanvar), ("nanstd", np.nanstd)):
        near(getattr(hg, name)(hg.asarray(x), axis=1, correction=ddof), right(x, axis=1, ddof=ddof))
        near(getattr(hg.asarray(x), name)(), right(x))
    for row in ([1.0, NAN, 4.0, 2.5, 7.0], [3.0, NAN, 3.0, 3.0, 3.0], [NAN] * 5):
        own = hg.grad(lambda v: hg.nanstd(v, correction=ddof))(hg.asarray(np.array(row))).numpy()
        left = np.array(row)[np.array(row) == np.array(row)]
        rest = hg.grad(lambda v: hg.std(v, correction=ddof))(hg.asarray(left)).numpy() if left.size else left
        np.testing.assert_allclose(own[np.array(row) == np.array(row)], rest, rtol=1e-12)
        assert (own[np.isnan(row)] == 0).all()


@pytest.mark.parametrize("name", ["nanmin", "nanmax"])
def test_greatest_but_nan(name):
    """Gradients: shared by those that tie, never a NaN's."""
    def slope(*row):
        return hg.grad(lambda x: getattr(hg, name)(x))(hg.asarray(row)).tolist()
    assert slope(NAN, 2.0, 2.0) == [0, 0.5, 0.5]
    far = INF if name == "nanmin" else -INF
    assert (slope(NAN, far), slope(NAN, NAN)) == ([0, 1], [0, 0])


def test_mean_beside_its_spread():
    x = random(4, 6)
    for own, right in zip((*hg.var_mean(hg.asarray(x), axis=0), *hg.asarray(x).std_mean(correction=1, keepdims=True)),
                          (x.var(0), x.mean(0), x.std(ddof=1, keepdims=True), x.mean(keepdims=True)), strict=True):
        near(own, right)
    assert hg.var_mean(hg.asarray([2**24, 2**24 + 1]))[1].item() == hg.mean(hg.asarray([2**24, 2**24 + 1])).item()


# ---- products and diagonals --------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 5, 3)), ((), (3,)), ((3, 1), ()), ((0, 3), (2, 3))])
def test_inner(shapes):
    a, b = (random(*shape) for shape in shapes)
    near(hg.inner(hg.asarray(a), b), np.inner(a, b))


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((2, 3), (4,)), ((2, 1, 3), (4, 5)), ((), (3,)), ((0, 3), (2, 3)),
                                    ((2, 1, 2, 3), (1, 3, 2, 2))])
def test_outer_and_kron(shapes):
    a, b = (random(*shape) for shape in shapes)
    same(hg.outer(hg.asarray(a), hg.asarray(b)), np.outer(a, b))
    same(hg.kron(hg.asarray(a), b), np.kron(a, b))


def test_cross():
    a, b = random(2, 4, 3), random(4, 3)
    same(hg.cross(hg.asarray(a), hg.asarray(b)), np.cross(a, b))
    same(hg.cross(hg.asarray(a.T), hg.asarray(a.T + 1), axis=0), np.cross(a.T, a.T + 1, axis=0))
    same(hg.cross(hg.asarray([1, 2, 3]), [3, 2, 1]), np.cross([1, 2, 3], [3, 2, 1]))
    with pytest.raises(ValueError, match="length is 4; it has to lie from 3 to 3"):
        hg.cross(hg.asarray(b.T), hg.asarray(b.T))
    with pytest.raises(ValueError, match="axis is 1; it has to lie from -8 to -1"):
        hg.cross(hg.asarray(a), hg.asarray(b), axis=1)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 1), (0, 3), (2, 3, 4)])
@pytest.mark.parametrize("k", range(-5, 6, 2))
def test_diagonals(shape, k):
    x = random(*shape)
    own = hg.asarray(x)
    same(hg.diagonal(own, k), np.diagonal(x, k))
    near(hg.trace(own, k), np.trace(x, k))
    if len(shape) == 3:
        same(hg.diagonal(own, k, 2, 0), np.diagonal(x, k, 2, 0))
        near(hg.trace(own, k, -1, 1), np.trace(x, k, -1, 1))
    else:
        same(hg.diag(own, k), np.diag(x, k))
        same(hg.diag(own.reshape(-1), k), np.diag(x.reshape(-1), k))
        same(hg.tri(*shape, k), np.tri(*shape, k, dtype="float32"))


def test_types_of_diagonals():
    assert hg.diag([True, False]).tolist() == [[True, False], [False, False]]
    assert hg.trace(hg.full((3, 3), 100, "int8")).dtype == hg.int64
    assert hg.trace(hg.full((3, 3), 100, "int8"), dtype="float32").item() == 300
    for wrong, words in ((lambda: hg.diagonal(hg.ones(3)), "hg.diag makes a matrix"), (lambda: hg.diag(hg.ones((1, 1, 1))), "hg.diagonal"),
                         (lambda: hg.diagonal(hg.ones((2, 2)), 0, 1, -1), "both axis 1"),
                         (lambda: hg.kron(hg.ones((1,) * 5), 1.0), "at most 4"),
                         (lambda: hg.inner(hg.ones(3), hg.ones(4)), "3 elements.*4")):
        with pytest.raises(ValueError, match=words):
            wrong()


@pytest.mark.parametrize("name, arguments", [("diagonal", (1,)), ("trace", (0, 1, 0)), ("diag", (-1,)), ("inner", (X[:2],)), ("kron", (X,)),
                                             ("diff", (2, 0)), ("cov", (Y.T,)), ("corrcoef", ()), ("tril", (1,)), ("outer", (X,))])
def test_methods(name, arguments):
    x = hg.asarray(X)
    same(getattr(x, name)(*map(hg.asarray, arguments) if name in ("outer", "cov") else arguments), getattr(hg, name)(x, *arguments).numpy())


# ---- differences, areas, functions by their values -------------------------------------------------------------------------------

@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("n", [0, 1, 3])
def test_diff(axis, n):
    x = random(4, 5)
    same(hg.diff(hg.asarray(x), n, axis), np.diff(x, n, axis))
    same(hg.diff(hg.asarray(x), n, axis, prepend=1.0, append=x), np.diff(x, n, axis, prepend=1.0, append=x))
    same(hg.diff(hg.asarray(x > 0), n, axis), np.diff(x > 0, n, axis))


@pytest.mark.parametrize("edge_order", [1, 2])
def test_slopes_of_samples(edge_order):
    x, places = random(4, 6), np.cumsum(np.random.default_rng(1).uniform(0.5, 2, 6))
    for spacing in ((), (0.5,), (2.0, 0.25), (3.0, places)):
        own = hg.gradient(hg.asarray(x), *spacing, edge_order=edge_order)
        for mine, right in zip(own, np.gradient(x, *spacing, edge_order=edge_order), strict=True):
            near(mine, right, 32)
    near(hg.gradient(hg.asarray(x), axis=-1, edge_order=edge_order), np.gradient(x, axis=-1, edge_order=edge_order))
    assert hg.gradient([1, 4, 9]).tolist() == [3, 4, 5]
    for wrong, error in ((lambda: hg.gradient(hg.ones((3, 3)), 1.0, 1.0, 1.0), TypeError), (lambda: hg.gradient(hg.ones(1)), ValueError),
                         (lambda: hg.gradient(hg.ones(4), hg.ones(3)), ValueError),
                         (lambda: hg.gradient(hg.ones(4), edge_order=3), ValueError)):
        with pytest.raises(error, match="gradient: "):
            wrong()


def test_trapezoids():
    y, x = random(4, 6), np.cumsum(np.random.default_rng(2).uniform(0.5, 2, (4, 6)), axis=1)
    for more in ({}, {"dx": 0.5}, {"x": x}, {"x": x[0]}, {"axis": 0}, {"x": x[:, 0], "axis": 0}):
        near(hg.trapezoid(hg.asarray(y), **more), np.trapezoid(y, **more))
        axis = more.get("axis", -1)
        parts = [np.trapezoid(y.take(range(n), axis), **{**more, **({"x": more["x"][..., :n]} if "x" in more else {})})
                 for n in range(2, y.shape[axis] + 1)]
        near(hg.cumulative_trapezoid(hg.asarray(y), **more), np.stack(parts, axis), 32)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_interpolation(numbers, is_open, is_periodic):
    xp = np.array(numbers if is_periodic else sorted(numbers), float)
    fp, x = random(len(xp)), np.arange(-12, 13) / 2
    more = {"left": -7.0, "right": 7.0} if is_open else {}
    if is_periodic:  # one value for each place
        xp, more = np.unique(xp % 4), {"period": 4}
        fp = fp[: len(xp)]
    near(hg.interp(x, xp, fp, **more), np.interp(x, xp, fp, **more), 16)
    assert hg.interp(NAN, xp, fp).isnan().item()


def test_unwrap():
    p = np.cumsum(np.random.default_rng(3).uniform(-4, 4, (3, 40)), axis=1)
    wrapped = (p + np.pi) % (2 * np.pi) - np.pi
    for more in ({}, {"axis": 0}, {"discont": 4.0}, {"period": 4.0}):
        near(hg.unwrap(hg.asarray(wrapped), **more), np.unwrap(wrapped, **more), 64)
    assert hg.unwrap([0, 1, 2, -1, 0], period=4).tolist() == np.unwrap([0, 1, 2, -1, 0], period=4).tolist()
    assert hg.unwrap([0.0, 2.0, 0.0], period=4).tolist() == np.unwrap([0.0, 2.0, 0.0], period=4).tolist()  # half a period, both ways


def test_what_does_not_fit():
    for wrong, error, words in ((lambda: hg.trapezoid(hg.ones(3), x=hg.ones(4)), ValueError, r"places of shape \(4,\).*3 samples"),
                                (lambda: hg.trapezoid(1.0), IndexError, "trapezoid: axis -1"),
                                (lambda: hg.interp(1.0, [1.0, 2.0], [1.0]), ValueError, "vectors of one size"),
                                (lambda: hg.interp(1.0, [1.0], [1.0], period=0), ValueError, "period is 0"),
                                (lambda: hg.diff(hg.ones(3), n=-1), ValueError, "n is -1"),
                                (lambda: hg.diagonal(hg.ones((2, 2)), 1.5), TypeError, "integer")):
        with pytest.raises(error, match=words):
            wrong()


def test_polynomials():
    x = random(3, 4)
    same(hg.polyval([1, 0, 2], hg.asarray(x)), np.polyval([1, 0, 2], x))
    same(hg.polyval(random(5), hg.asarray(x)), np.polyval(random(5), x))
    same(hg.polyval([], hg.asarray(x)), np.polyval([], x))
    assert hg.polyval([2, 1], 3).item() == 7


# ---- covariances -------------------------------------------------------------------------------------------------------------

COUNTS, WEIGHTS = np.array([1, 2, 0, 3, 1, 2]), np.random.default_rng(4).uniform(0.1, 1, 6)


@pytest.mark.parametrize("more", [{}, {"bias": True}, {"ddof": 2}, {"fweights": COUNTS}, {"aweights": WEIGHTS}, {"ddof": 6},
                                  {"fweights": COUNTS, "aweights": WEIGHTS}, {"aweights": WEIGHTS, "ddof": 0}, {"y": random(2, 6)}])
@pytest.mark.filterwarnings("ignore")
def test_covariances(more):
    x = random(3, 6)
    near(hg.cov(hg.asarray(x), **more), np.cov(x, **more), 32)
    near(hg.cov(hg.asarray(x[0]), **more), np.cov(x[0], **more), 32)
    if "y" not in more:
        near(hg.cov(hg.asarray(x.T.copy()), rowvar=False, **more), np.cov(x.T, rowvar=False, **more), 32)


def test_correlations():
    x = random(3, 6)
    near(hg.corrcoef(hg.asarray(x)), np.corrcoef(x))
    near(hg.corrcoef(hg.asarray(x), x[:2] ** 2), np.corrcoef(x, x[:2] ** 2))
    near(hg.corrcoef(hg.asarray(x[0])), np.corrcoef(x[0]))
    assert hg.corrcoef(hg.asarray([[0.0, 2.0, 4.0], [1.0, 5.0, 9.0]])).max().item() <= 1
    with pytest.raises(ValueError, match="3 axes"):
        hg.cov(hg.ones((1, 1, 1)))


# ---- gradients, and the same bits everywhere -----------------------------------------------------------------------------------

GRADIENTS = {  # by the name of a function here and in PyTorch
    "nansum": (lambda m, x: m.nansum(x, 1), HOLES), "nanmean": (lambda m, x: m.nanmean(x, 1), HOLES),
    "nan_to_num": (lambda m, x: m.nan_to_num(x), HOLES), "fmax": (lambda m, x: m.fmax(x, x * x), HOLES),
    "std_mean": (lambda m, x: m.std_mean(x, 1, correction=1)[0] * m.std_mean(x, 1, correction=1)[1], X),
    "rad2deg": (lambda m, x: m.rad2deg(x), X), "outer": (lambda m, x: m.outer(x[0], x[1]), X),
    "inner": (lambda m, x: m.inner(x, x[:2] * 2), X), "kron": (lambda m, x: m.kron(x, x[:2, :2]), X),
    "cross": (lambda m, x: m.linalg.cross(x[:, :3], x[:, 3:]) if m is not hg else m.cross(x[:, :3], x[:, 3:]), X),
    "diagonal": (lambda m, x: m.diagonal(x, 1) ** 2, X), "diag": (lambda m, x: m.diag(x[0], -2) ** 2, X),
    "trace": (lambda m, x: m.trace(x * x), X), "diff": (lambda m, x: m.diff(x, 2) ** 2, X),
    "trapezoid": (lambda m, x: m.trapezoid(x * x, **{"axis" if m is hg else "dim": 0}), X),
    "cumulative_trapezoid": (lambda m, x: m.cumulative_trapezoid(x) ** 2, X),
    "gradient": (lambda m, x: m.gradient(x)[0] ** 2 if m is not hg else m.gradient(x, axis=0) ** 2, X),
    "cov": (lambda m, x: m.cov(x), X), "corrcoef": (lambda m, x: m.corrcoef(x), X),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_beside_torch(name):
    torch = pytest.importorskip("torch")
    function, values = GRADIENTS[name]
    own, right = hg.asarray(values.copy()), torch.tensor(values, requires_grad=True)
    y = function(torch, right)
    weights = random(*y.shape) if y.ndim else np.array(1.5)
    (y * torch.tensor(weights)).sum().backward()
    near(hg.grad(lambda x: (function(hg, x) * weights).sum())(own), right.grad.numpy(), 64)


def test_gradients_of_interpolation():
    xp, fp, x = np.array([0.0, 1.0, 3.0]), np.array([1.0, 5.0, 2.0]), np.array([-1.0, 0.5, 1.5, 9.0])
    slopes = hg.grad(lambda *v: hg.interp(*v).sum(), argnums=(0, 1, 2))(*map(hg.asarray, (x, xp, fp)))
    for k, own in enumerate(slopes):
        for i in range(own.size):
            sides = []
            for step in (1e-6, -1e-6):
                moved = [v.copy() for v in (x, xp, fp)]
                moved[k][i] += step
                sides.append(np.interp(*moved).sum())
            assert abs(own[i].item() - (sides[0] - sides[1]) / 2e-6) < 1e-8


W, Q = X.astype("float32"), HOLES.astype("float32")
PROGRAMS = {
    "close": lambda x, q, i: hg.isclose(x, q, 0.1, equal_nan=1), "all close": lambda x, q, i: hg.allclose(q, q, equal_nan=1),
    "no NaN": lambda x, q, i: hg.nan_to_num(q), "nanmean": lambda x, q, i: hg.nanmean(q, 1), "nansum": lambda x, q, i: hg.nansum(q),
    "nanmax": lambda x, q, i: hg.nanmax(q, 0), "nanargmin": lambda x, q, i: hg.nanargmin(q, 1), "fmin": lambda x, q, i: hg.fmin(x * 2, q),
    "std": lambda x, q, i: hg.stack(hg.std_mean(x, 1)), "degrees": lambda x, q, i: hg.degrees(x), "gcd": lambda x, q, i: hg.gcd(i, 360),
    "lcm": lambda x, q, i: hg.lcm(i.astype("int32"), 36), "round": lambda x, q, i: hg.round(x, 2), "outer": lambda x, q, i: hg.outer(x, x),
    "divmod": lambda x, q, i: hg.stack(divmod(x, 0.3)), "cross": lambda x, q, i: hg.cross(x[:, :3], x[:, 3:]),
    "inner": lambda x, q, i: hg.inner(x, x), "kron": lambda x, q, i: hg.kron(x, x), "diagonal": lambda x, q, i: hg.diagonal(x, 1),
    "diag": lambda x, q, i: hg.diag(x[0], 1), "diff": lambda x, q, i: hg.diff(x, 2), "gradient": lambda x, q, i: hg.stack(hg.gradient(x)),
    "trapezoid": lambda x, q, i: hg.trapezoid(x), "interp": lambda x, q, i: hg.interp(x, hg.arange(4.0), x[0, :4]),
    "unwrap": lambda x, q, i: hg.unwrap(x * 4), "polyval": lambda x, q, i: hg.polyval([1.0, -2.0, 0.5], x),
    "cov": lambda x, q, i: hg.cov(x), "corrcoef": lambda x, q, i: hg.corrcoef(x),
    "slopes": lambda x, q, i: hg.grad(lambda v: hg.corrcoef(v).sum() + hg.nanmean(v * q))(x),
}


def digests(run=lambda f: f):
    made = [run(function)(hg.asarray(W), hg.asarray(Q), hg.arange(-50, 974)) for function in PROGRAMS.values()]
    return [hashlib.sha256(y.numpy().tobytes()).hexdigest()[:16] for y in made]


def test_the_same_bits_eager_and_compiled():
    lazy = digests()
    assert digests(hg.jit) == lazy
    with hg.eager():
        assert digests() == lazy
    assert len(set(lazy)) == len(PROGRAMS)


@double_of_cuda.needed
def test_the_same_bits_on_the_double():
    printed = double_of_cuda.run("import hologram as hg, test_mathematics as t; hg.set_default_executor(hg.Executor('cuda')); "
                                 "print(*t.digests())")
    assert dict(zip(PROGRAMS, printed.split(), strict=True)) == dict(zip(PROGRAMS, digests(), strict=True))


@pytest.mark.parametrize("kind", ["bool", "uint8", "int8", "int32", "int64", "float16", "float32", "float64"])
def test_extremes_of_cast_bools(kind):
    """Rows of bools that are cast before they are compared have the type's numbers."""
    for size in (1, 5, 4096, 4097, 8192):
        one = np.zeros((3, size), bool)
        one[1, size // 2], one[2] = True, True
        for rows in (one, one[1], one[2]):
            x = hg.asarray(rows).astype(kind)
            for name in ("max", "min") if kind != "bool" else ("any", "all"):
                assert np.array_equal(getattr(hg, name)(x, -1), getattr(rows.astype(kind), name)(-1)), (name, rows.shape)
