"""Joining, cutting and turning arrays, numbers at equal ratios, and draws, beside NumPy and PyTorch (where that is there)."""

import hashlib

import double_of_cuda
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg

RNG = np.random.default_rng(41)
SHAPES = [(), (3,), (2, 3), (2, 3, 4), (0, 3), (2, 1, 4, 2)]


def arrays_of(*shapes, dtype="f4"):
    return [RNG.standard_normal(shape).astype(dtype) for shape in shapes]


def same(own, right):
    own = own.numpy()
    assert own.shape == right.shape and own.dtype == right.dtype and np.array_equal(own, right)


def same_parts(own, right):
    assert len(own) == len(right)
    for a, b in zip(own, right):
        same(a, b)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
def test_stacks(name):
    own, numpy = getattr(hg, name), getattr(np, name)
    for shapes in ([(3,), (3,)], [(2, 3), (2, 3)], [(2, 3, 4), (2, 3, 4)], [(2, 3, 4, 5)] * 3, [(), ()], [(3,)], [(0,), (3,)],
                   [(2, 1), (2, 3)], [(1, 3), (4, 3)], [(3,), (2, 3)], [(2,), (2, 3)], [(2, 3, 1), (2, 3)]):
        arrays = arrays_of(*shapes)
        try:
            right = numpy(arrays)
        except ValueError:
            with pytest.raises(ValueError, match=f"^{name}: array 1 has shape .* the other axes have to agree$"):
                own(arrays)
            continue
        same(own(arrays), right)
        same(own([hg.asarray(x) for x in arrays]), right)
        same(own(tuple(x.astype("i4") for x in arrays)), numpy([x.astype("i4") for x in arrays]))
    same(own([[1.0, 2.0], np.float32([3, 4])]), numpy([np.float32([1, 2]), np.float32([3, 4])]))
    with pytest.raises(ValueError, match=f"{name}: the list of arrays is empty"):
        own([])
    with pytest.raises(TypeError, match=rf"takes a list of arrays, not float: hg.{name}\(\[a, b\]\)"):
        own(1.0)


def test_stacks_of_mixed_types_and_gradients():
    x, n = hg.asarray(RNG.standard_normal((2, 3)).astype("f4")), np.arange(6).reshape(2, 3)
    assert hg.hstack([x, n]).dtype == hg.vstack([n, x]).dtype == "float32"
    g = hg.grad(lambda x: (hg.vstack([x, n, x * 2]) * hg.arange(18).reshape(6, 3)).sum())(x)
    assert g.tolist() == (np.arange(6).reshape(2, 3) + 2 * np.arange(12, 18).reshape(2, 3)).tolist()


def test_at_least():
    for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
        own, numpy = getattr(hg, name), getattr(np, name)
        arrays = arrays_of(*SHAPES)
        for x in arrays:
            same(own(x), numpy(x))
        same_parts(own(*arrays), numpy(*arrays))
        assert own(3.0).numpy().shape == numpy(3.0).shape and own().__class__ is tuple
    x = hg.ones((2, 2, 2))
    y = hg.atleast_3d(x)
    y[0] = 0.0
    assert x.sum() == 8


@given(st.integers(0, 9), st.one_of(st.integers(1, 11), st.lists(st.integers(-11, 11), max_size=4)), st.integers(-2, 1))
def test_splits(size, where, axis):
    shape = (size, 2) if axis in (0, -2) else (2, size)
    x = np.arange(size * 2, dtype="f4").reshape(shape)
    same_parts(hg.array_split(x, where, axis), np.array_split(x, where, axis))
    if isinstance(where, int) and size % where:
        with pytest.raises(ValueError, match=f"split: {size} elements of axis {axis % 2} do not split into {where} equal parts"):
            hg.split(x, where, axis)
    else:
        same_parts(hg.split(hg.asarray(x), where, axis), np.split(x, where, axis))


def test_beside_torch():
    torch = pytest.importorskip("torch")
    for x in arrays_of(*SHAPES):
        t = torch.tensor(x)
        for name in ("atleast_1d", "atleast_2d", "atleast_3d"):
            same(getattr(hg, name)(x), getattr(torch, name)(t).numpy())
        for name in ("hstack", "vstack", "dstack", "column_stack"):
            same(getattr(hg, name)([x, x]), getattr(torch, name)([t, t]).numpy())
        if x.ndim > 1:
            same(hg.rot90(x, 3), torch.rot90(t, 3).numpy())


def test_splits_of_axes():
    x = np.arange(64).reshape(4, 4, 4)
    for name, rank in (("hsplit", 1), ("vsplit", 2), ("dsplit", 3)):
        own, numpy = getattr(hg, name), getattr(np, name)
        for where in (2, [1], np.array([1, 3]), hg.asarray([1, 3]), np.int64(4)):
            same_parts(own(x, where), numpy(x, np.asarray(where) if hasattr(where, "shape") else where))
        with pytest.raises(ValueError, match=f"{name} cuts along axis"):
            own(np.ones((1,) * (rank - 1)), 1)
    same_parts(hg.hsplit(x[0, 0], 2), np.hsplit(x[0, 0], 2))
    with pytest.raises(ValueError, match="split into 1 part or more, not 0"):
        hg.split(x, 0)
    with pytest.raises(IndexError, match="array_split: axis 3 is out of range"):
        hg.array_split(x, 2, 3)
    with pytest.raises(TypeError):
        hg.split(x, 1.5)


def test_turned():
    for shape in ((2, 3), (3, 3), (2, 3, 4), (0, 2)):
        x = arrays_of(shape)[0]
        for k in range(-5, 6):
            for axes in ((0, 1), (1, 0), (-1, 0), (-2, -1)):
                if axes[0] % x.ndim != axes[1] % x.ndim:
                    same(hg.rot90(x, k, axes), np.rot90(x, k, axes))
    for axes, error, said in (((0, 0), ValueError, "an axis comes twice"), ((0, 5), IndexError, "axis 5 is out of range"),
                              ((0,), ValueError, "axes are two")):
        with pytest.raises(error, match=f"rot90: .*{said}|{said}"):
            hg.rot90(np.ones((2, 3)), 1, axes)


@pytest.mark.parametrize("endpoint", [True, False])
def test_ratios(endpoint):
    for start, stop, num in ((1, 1000, 4), (1, 256, 9), (-8, -1, 4), (1e-300, 1e300, 7), (3, 7, 1), (3, 7, 0), (2, 2, 3), (1e5, 1e-5, 11)):
        right = np.geomspace(start, stop, num, endpoint=endpoint)
        np.testing.assert_allclose(hg.geomspace(start, stop, num, "float64", endpoint=endpoint).numpy(), right, rtol=1e-12)
        own = hg.geomspace(start, stop, num, endpoint=endpoint).numpy()
        assert own.dtype == "float32" and (num == 0 or own[0] == np.float32(start))
        assert num < 2 or not endpoint or own[-1] == np.float32(stop)
    for start, stop, num, base in ((0, 3, 4, 10.0), (0, 10, 11, 2), (-2, 2.5, 6, 10.0), (1, 2, 1, 3.0), (1, 2, 0, 3.0)):
        right = np.logspace(start, stop, num, base=base, endpoint=endpoint)
        np.testing.assert_allclose(hg.logspace(start, stop, num, "float64", base=base, endpoint=endpoint).numpy(), right, rtol=1e-14)
        np.testing.assert_allclose(hg.logspace(start, stop, num, base=base, endpoint=endpoint).numpy(), right.astype("f4"), rtol=1e-7)
    assert hg.logspace(0, 3, 4, "int64").tolist() == hg.geomspace(1, 1000, 4, "int64").tolist() == [1, 10, 100, 1000]


def test_ratios_have_gradients_and_say_what_is_wrong():
    for f, a in ((lambda a: (hg.geomspace(a, 8.0, 4, "float64") ** 2).sum(), 1.5),
                 (lambda a: (hg.logspace(a, 2.0, 4, "float64") ** 2).sum(), 0.5),
                 (lambda a: hg.logspace(0.0, 2.0, 4, "float64", base=a).sum(), 3.0),
                 (lambda a: hg.geomspace(-8.0, -a, 4, "float64").sum(), 2.0)):
        step, at = 1e-6, lambda v, f=f: f(hg.asarray(np.float64(v))).item()
        slope = (at(a + step) - at(a - step)) / (2 * step)
        np.testing.assert_allclose(hg.grad(f)(hg.asarray(np.float64(a))).item(), slope, rtol=1e-7)
    for ends in ((0, 1), (1, 0), (-1, 1)):
        with pytest.raises(ValueError, match="no numbers have equal ratios; both have one sign, and neither is 0"):
            hg.geomspace(*ends, 3)
    with pytest.raises(ValueError, match="shape \\(3,\\) is not one number"):
        hg.geomspace(hg.ones(3), 1, 3)


def test_bernoulli_of_an_array():
    """Each element has a number of its own."""
    key, p = hg.random.key(3), np.linspace(0, 1, 5).astype("f4")
    drawn = hg.random.bernoulli(key, (20000, 5), p).numpy()
    assert drawn.dtype == bool and not drawn[:, 0].any() and drawn[:, 4].all()
    assert np.abs(drawn.mean(0) - p).max() < 3.3 * np.sqrt(0.25 / 20000)
    assert np.abs(np.corrcoef(drawn[:, 1:4].T) - np.eye(3)).max() < 3.3 / np.sqrt(20000)
    own = hg.random.bernoulli(key, p=hg.full((50, 40), 0.5))
    assert own.shape == (50, 40) and 0.44 < own.numpy().mean() < 0.56
    assert np.array_equal(own.numpy(), hg.random.bernoulli(key, (50, 40)).numpy())
    assert hg.random.bernoulli(key).shape == hg.random.bernoulli(key, (), np.float32(0.5)).shape == ()
    assert not hg.random.bernoulli(key, p=[np.nan] * 9).numpy().any()
    with pytest.raises(ValueError, match="the probability p is from 0 to 1, not 2.0"):
        hg.random.bernoulli(key, (3,), np.float32(2))
    with pytest.raises(hg.Error, match="does not broadcast"):
        hg.random.bernoulli(key, (2,), np.ones(3))


def test_distributions_of_keys():
    key = hg.random.key(5)
    for name in ("exponential", "gumbel", "laplace"):
        draw = getattr(hg.random, name)
        assert draw(key).shape == () and draw(key, 7).shape == (7,) and draw(key, (2, 3), dtype="float16").dtype == "float16"
        x = draw(key, (1000,), scale=3.0).numpy()
        assert np.allclose(x, 3 * draw(key, (1000,)).numpy(), rtol=1e-6)
        assert np.array_equal(x, draw(hg.random.key(5), (1000,), scale=3.0).numpy())
        assert np.array_equal(hg.jit(lambda k, draw=draw: draw(k, (1000,), scale=3.0))(key).numpy(), x)
    logits = hg.asarray(np.log(np.float32([0.1, 0.2, 0.7])))
    drawn = (logits + hg.random.gumbel(key, (20000, 3))).argmax(-1).numpy()
    assert np.abs(np.bincount(drawn) / 20000 - [0.1, 0.2, 0.7]).max() < 3.3 * np.sqrt(0.25 / 20000)


def digest():
    """Of joins, sums of products, windows, ranges, draws and first values, on the default executor."""
    rng, key = np.random.default_rng(2), hg.random.key(9)
    a, b, c, s, q = (hg.asarray(rng.standard_normal(shape).astype("f4")) for shape in ((7, 65), (65, 9), (9, 5), (3, 3), (4, 6, 8, 16)))
    made = [hg.einsum("ij,jk,kl->il", a, b, c), hg.einsum("ii", s), hg.einsum("ii->i", s), hg.einsum("bqhd,bkhd->bhqk", q, q),
            hg.einsum("bi,bi->b", a, a), hg.einsum("i,j", s[0], s[1]), hg.grad(lambda x: (hg.einsum("ij,jk,kl", x, b, c) ** 2).sum())(a),
            hg.hstack([a, a]), *hg.array_split(a, 3, 1), hg.rot90(a), hg.geomspace(1, 7, 33), hg.logspace(0, 2, 9, "float64"),
            hg.random.bernoulli(key, p=hg.sigmoid(a)), hg.nn.init.orthogonal(key, (17, 9)), hg.nn.init.he_normal(key, (17, 9))]
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        made += [getattr(hg, name)(67, dtype=dtype).astype("float64") for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")]
        made += [getattr(hg.random, name)(key, (501,), dtype=dtype).astype("float64") for name in
                 ("exponential", "gumbel", "laplace", "truncated_normal")]  # fmt: skip
    together = hashlib.sha256()
    for x in made:
        together.update(x.numpy().tobytes())
    return together.hexdigest()


def test_one_answer():
    lazy = digest()
    with hg.eager():
        assert digest() == lazy


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_joining") == digest()


@pytest.mark.parametrize("kind", ["float32", "uint8"])
@pytest.mark.parametrize("n", [63, 100, 1000])
def test_parts_have_code_of_their_own(n, kind):
    """Rows of few elements and of many, parts of one element, several conditions beside each other and one behind another."""
    rng = np.random.default_rng(n)
    a, b, c = (rng.integers(0, 100, shape).astype(kind) for shape in ((7, n), (9, n), (7, 1)))
    forms = [
        lambda xp, a, b, c: xp.concatenate([a, b, a * 2, b]),
        lambda xp, a, b, c: xp.concatenate([c, a, c, a], axis=1)[:, ::-1] * 2,
        lambda xp, a, b, c: xp.roll(a, (2, 3), axis=(0, 1)) * xp.roll(xp.concatenate([a, a])[:7], 1, axis=1),
        lambda xp, a, b, c: xp.concatenate([xp.pad(a, ((2, 0), (1, 3))), xp.pad(b, ((0, 0), (4, 0)))]).T + c[0, 0],
        lambda xp, a, b, c: xp.concatenate([xp.concatenate([a, b]).reshape(-1), xp.roll(b.reshape(-1), -5)]),
        lambda xp, a, b, c: (xp.concatenate([a, b]) * 2).sum(1),
    ]
    for i, form in enumerate(forms):
        assert np.array_equal(np.asarray(form(hg, *map(hg.array, (a, b, c)))), form(np, a, b, c)), i


@pytest.mark.parametrize("seed", range(4))
def test_results_that_are_copies(seed):
    """Rows of all lengths, joined, rolled, cut and exchanged: the processor copies rows instead of computing elements."""
    rng = np.random.default_rng(seed)
    for _ in range(60):
        shape = tuple(rng.choice([1, 2, 3, 5, 7, 16, 33, 70], rng.integers(1, 5)).tolist())
        if rng.integers(8) == 0:
            shape = (int(rng.integers(4000, 20000)), *shape[:1])
        axis, many = int(rng.integers(len(shape))), int(rng.integers(2, 6))
        dtype = rng.choice(["f4", "f8", "u1", "i2", "f2", "i8", "?"])
        arrays = [rng.integers(0, 250, shape).astype(dtype) for _ in range(many)]
        own, order = [hg.array(x).compute() for x in arrays], tuple(rng.permutation(len(shape)).tolist())
        cut = tuple(slice(int(rng.integers(2)), None, int(rng.integers(1, 3))) for _ in shape)
        by, back = int(rng.integers(-9, 9)), int(rng.integers(-3, 3))
        same(hg.concatenate(own, axis), np.concatenate(arrays, axis))
        same(hg.concatenate([x[cut] for x in own], axis), np.concatenate([x[cut] for x in arrays], axis))
        same(hg.stack(own, axis), np.stack(arrays, axis))
        same(hg.stack(own, -1), np.stack(arrays, -1))
        same(hg.roll(hg.roll(own[0], by, axis=axis), back, axis=0), np.roll(np.roll(arrays[0], by, axis), back, 0))
        same(hg.roll(hg.concatenate(own, axis), by, axis=axis), np.roll(np.concatenate(arrays, axis), by, axis))
        same(own[0].permute(order).reshape(-1), arrays[0].transpose(order).reshape(-1))
        same(own[0][cut].reshape(-1), arrays[0][cut].reshape(-1))
        same(own[0][cut].swap(0, -1).reshape(-1), arrays[0][cut].swapaxes(0, -1).reshape(-1))
