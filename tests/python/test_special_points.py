"""Values and gradients at special points: beside PyTorch's, but where docs/semantics.toml has another reason; and exact ones."""

import math
from fractions import Fraction

import numpy as np
import pytest

import hologram as hg

INF, NAN = math.inf, math.nan
POINTS = [0.0, -0.0, 1.0, -1.0, 3.0, -3.0, 0.5, -20.0, 40.0, -40.0, 1e-40, 1e30, -1e30, INF, -INF]
ONE = ("abs acosh asinh atan atanh cos cosh erf erfc exp exp2 expm1 log log10 log1p log2 neg reciprocal relu rsqrt sigmoid sin sinh sqrt "
       "tan tanh square").split()
OTHER = {"elu": "elu", "gelu": "gelu", "hardswish": "hardswish", "leaky_relu": "leaky_relu", "mish": "mish", "silu": "silu",
         "softplus": "softplus"}
TWO = "add sub mul div maximum minimum hypot logaddexp nextafter copysign remainder pow atan2".split()


def slopes_of_hologram(f, kind, numbers):
    given = [hg.asarray(np.array(v, kind)) for v in numbers]
    value, gradients = hg.value_and_grad(f, argnums=tuple(range(len(given))))(*given)
    return [float(value), *map(float, gradients)]


def slopes_of_torch(f, kind, numbers):
    torch = pytest.importorskip("torch")
    given = [torch.tensor(v, dtype=getattr(torch, kind), requires_grad=True) for v in numbers]
    value = f(*given)
    found = torch.autograd.grad(value, given, allow_unused=True)
    return [float(value.detach()), *(0.0 if g is None else float(g) for g in found)]


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("name", [*ONE, *OTHER, *TWO])
def test_beside_torch(name, kind):
    torch = pytest.importorskip("torch")
    theirs = getattr(torch.nn.functional if name in OTHER else torch, OTHER.get(name, name))
    numbers = [(a, b) for a in POINTS for b in POINTS] if name in TWO else [(a,) for a in POINTS]
    for given in numbers:
        right = slopes_of_torch(theirs, kind, given)
        own = slopes_of_hologram(getattr(hg, name), kind, given)
        for a, b in zip(own, right):
            if math.isnan(b) or (name == "acosh" and given[0] < 1):  # ours may have the limit, or NaN where there is no value
                continue
            size = max(map(abs, given))
            if name == "expm1" or name in ("atan2", "hypot", "atan") and (size > 1e19 or size < 1e-19):
                continue  # PyTorch's squares overflow or vanish, and its expm1 cancels
            assert a == b or abs(a - b) <= (1e-12 if kind == "float64" else 2e-6) * max(abs(b), 1e-3), f"{name}{given}: {own}, not {right}"


def test_second_derivatives_of_products_with_zeros():
    for numbers in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [2.0, 3.0, 5.0], [0.0, 0.0, 0.0, 0.0]):
        count = len(numbers)
        for k in range(count):
            own = hg.grad(lambda x, k=k: hg.grad(lambda v: v.prod())(x)[k])(hg.asarray(np.array(numbers)))
            right = [0.0 if i == k else math.prod(v for j, v in enumerate(numbers) if j not in (i, k)) for i in range(count)]
            np.testing.assert_allclose(own.numpy(), right, atol=1e-12)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_floor_divide_and_remainder_are_exact(kind):
    """The floor of the exact quotient, and what it leaves, each rounded once."""
    r = np.random.default_rng(3)
    limits = np.finfo(kind)
    some = r.standard_normal(300) * 2.0 ** r.integers(limits.minexp // 2, limits.maxexp // 2, 300)
    a = np.concatenate([some, np.arange(1, 200), [limits.smallest_subnormal, limits.max, -limits.smallest_subnormal] * 9]).astype(kind)
    b = np.concatenate([r.permutation(some), np.full(199, 0.1), r.permutation([limits.max, 3, limits.smallest_subnormal] * 9)]).astype(kind)
    near = np.concatenate([a, (b * r.integers(1, 2**9, len(b))).astype(kind)])
    a, b = np.concatenate([near, np.nextafter(near, np.array(0, kind))]), np.tile(b, 4)
    is_good = np.isfinite(a) & (b != 0)
    a, b = a[is_good], b[is_good]
    quotient, rest = (f(hg.asarray(a), hg.asarray(b)).numpy() for f in (hg.floor_divide, hg.remainder))

    def rounded(exact):
        """Once: an odd last digit of 53 bits keeps what a second rounding needs."""
        if exact == 0:
            return np.array(0, kind)
        try:
            wide = float(exact)
        except OverflowError:
            return np.array(INF if exact > 0 else -INF, kind)
        if kind != "float64" and Fraction(wide) != exact:
            lower = wide if abs(Fraction(wide)) < abs(exact) else math.nextafter(wide, 0.0)
            bits = np.array(lower).view(np.uint64) | np.uint64(1)
            wide = float(bits.view(np.float64))
        with np.errstate(over="ignore"):
            return np.array(wide).astype(kind)

    for p, q, own, left in zip(a.tolist(), b.tolist(), quotient, rest):
        exact = Fraction(p) // Fraction(q)
        assert own == rounded(exact), (kind, p, q, own)
        assert left == rounded(Fraction(p) - exact * Fraction(q)), (kind, p, q, left)


def test_numbers_that_are_none():
    x, key = hg.ones(3), hg.random.key(0)
    for call in (lambda: hg.dropout(x, key, p=1.5), lambda: hg.dropout(x, key, p=NAN), lambda: hg.huber(x, x, delta=0.0),
                 lambda: hg.clip(x, NAN, 1.0), lambda: hg.random.uniform(key, 3, 1.0, -1.0), lambda: hg.random.uniform(key, 3, 0.0, INF),
                 lambda: hg.random.normal(key, 3, 0.0, -1.0), lambda: hg.cross_entropy(hg.ones((4, 3)), hg.ones((4, 1))),
                 lambda: hg.bce(hg.ones((4, 1)), hg.ones((4, 3))), lambda: x.pad(1)):
        with pytest.raises(hg.Error):
            hg.compute(call())


def test_bounds_and_ends():
    large = hg.asarray(np.array([2**53, 2**62]))
    assert hg.clip(large, 2**53 + 1, 2**62 - 1).tolist() == [2**53 + 1, 2**62 - 1]
    assert hg.clip(large, -(2**70), 2**70).tolist() == [2**53, 2**62] and hg.clip(large, 0.5, 3).dtype == hg.float32
    assert hg.clip(hg.asarray(np.array([3, 2**64 - 1], "u8")), -1, 2**64 - 2).tolist() == [3, 2**64 - 2]
    assert hg.linspace(-1.7e308, 1.7e308, 3, "float64").tolist() == [-1.7e308, 0, 1.7e308]
    assert hg.linspace(2**53 + 1, 0, 2, "int64").tolist() == [2**53 + 1, 0]
    assert hg.linspace(4, -3, 5, "int32").tolist() == np.linspace(4, -3, 5, dtype="i4").tolist()
    wide = hg.random.uniform(hg.random.key(1), (1000,), -3e38, 3e38).numpy()
    assert np.isfinite(wide).all() and wide.min() < -2.9e38 and wide.max() > 2.9e38
    assert hg.pad(hg.ones(1), (np.int64(1), np.int64(2))).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert np.array_equal(hg.pad(hg.ones((2, 2)), [(0, 1), (2, 0)]).numpy(), np.pad(np.ones((2, 2)), [(0, 1), (2, 0)]))
    assert float(hg.asarray(np.array([2**62] * 3)).mean()) == 2.0**62
