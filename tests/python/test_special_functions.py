"""Special functions as Python has them: slopes beside mpmath's, special points, one answer however they are computed. Their values
are judged in tests/ops/test_special_values.py, where PyTorch is right their special points in test_special_points.py."""

import hashlib
import math
import sys
from pathlib import Path

import double_of_cuda
import mpmath
import numpy as np
import pytest
from mpmath import mpf

import hologram as hg

sys.path.append(str(Path(__file__).parents[1]))
import special_functions as special  # noqa: E402

INF, NAN = math.inf, math.nan
EXACT = special.EXACT
SLOPES = {
    "logit": lambda x: 1 / (x * (1 - x)), "entr": lambda x: -1 - mpmath.log(x), "sinc": lambda x: (mpmath.cospi(x) - mpmath.sincpi(x)) / x,
    "ndtr": mpmath.npdf, "log_ndtr": lambda x: mpmath.npdf(x) / special.ndtr(x), "ndtri": lambda x: 1 / mpmath.npdf(special.ndtri(x)),
    "erfinv": lambda x: mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(special.erfinv(x) ** 2), "lgamma": EXACT["digamma"],
    "digamma": EXACT["trigamma"], "trigamma": EXACT["tetragamma"], "i0": EXACT["i1"], "i1": lambda x: EXACT["i0"](x) - EXACT["i1"](x) / x,
}
# What an error is small beside, where that is more than the slope: the larger term of a difference.
TERMS = {"sinc": lambda x: 1 / abs(x), "entr": lambda x: 1, "lgamma": lambda x: special.beside("digamma", x, 0),
         "trigamma": lambda x: special.beside("tetragamma", x, 0)}
# Units in the last place, by the point: a power of e has its argument's, as many times as that is large.
ROOM = {"ndtr": lambda x: 4 + x * x, "ndtri": lambda x: 4 + 2 * special.ndtri(x) ** 2, "erfinv": lambda x: 4 + 4 * special.erfinv(x) ** 2}


def slope(f):
    return lambda x: hg.grad(lambda v: f(v).sum())(hg.asarray(x)).numpy()


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", SLOPES)
def test_slopes(name, kind):
    x, limits = special.points(name, kind, 16), np.finfo(kind)
    assert len(x) > 40
    for own, at in zip(slope(getattr(hg, name))(x).tolist(), map(float, x)):
        with mpmath.workdps(special.DIGITS):
            right = SLOPES[name](mpf(at))
            size = max(abs(right), TERMS[name](mpf(at)) if name in TERMS else 0, float(limits.tiny))
            off = abs(mpf(own) - right) / size / float(limits.eps)
            over = abs(right) * (1 + 1000 * float(limits.eps)) > float(limits.max) and abs(own) == INF
            assert over or off <= ROOM.get(name, lambda x: 8)(mpf(at)), f"{name} of {at!r}: {own!r}, not {mpmath.nstr(right, 20)}: {off}"


POINTS = {  # values and slopes
    "lgamma": ([0.0, -0.0, 1, 2, -1, -3, INF, -INF, NAN, 1e307, -1e20, -1e308],
               [INF, INF, 0, 0, INF, INF, INF, INF, NAN, INF, INF, INF],
               [-INF, INF, -0.5772156649015329, 0.42278433509846714, NAN, NAN, INF, NAN, NAN, 706.893623549172, NAN, NAN]),
    "digamma": ([0.0, -0.0, 1, -1, -2, INF, -INF, NAN, -1e20], [-INF, INF, -0.5772156649015329, NAN, NAN, INF, NAN, NAN, NAN],
                [INF, INF, 1.6449340668482264, INF, INF, 0, NAN, NAN, INF]),
    "trigamma": ([0.0, -0.0, 1, -1, INF, -INF, NAN, -1e20], [INF, INF, 1.6449340668482264, INF, 0, NAN, NAN, INF],
                 [-INF, -INF, -2.4041138063191886, -INF, 0, NAN, NAN, -INF]),
    "sinc": ([0.0, -0.0, 1, -5, 1e17, INF, -INF, NAN], [1, 1, 0, 0, 0, NAN, NAN, NAN], [0, 0, -1, 0.2, 1e-17, NAN, NAN, NAN]),
    "ndtr": ([0.0, INF, -INF, NAN, -41], [0.5, 1, 0, NAN, 0], [0.3989422804014327, 0, 0, NAN, 0]),
    "log_ndtr": ([0.0, INF, -INF, NAN, -1e200, 41], [-0.6931471805599453, 0, -INF, NAN, -INF, 0],
                 [0.7978845608028654, 0, INF, NAN, 1e200, 0]),
    "ndtri": ([0.0, -0.0, 0.5, 1, -1, 2, INF, NAN], [-INF, -INF, 0, INF, NAN, NAN, NAN, NAN],
              [INF, INF, 2.5066282746310002, INF] + [NAN] * 4),
    "erfinv": ([0.0, -0.0, 1, -1, 2, INF, NAN], [0, -0.0, INF, -INF, NAN, NAN, NAN], [0.886226925452758] * 2 + [INF, INF] + [NAN] * 3),
    "i0": ([0.0, -0.0, INF, -INF, NAN, 720], [1, 1, INF, INF, NAN, INF], [0, -0.0, INF, -INF, NAN, INF]),
    "i1": ([0.0, -0.0, INF, -INF, NAN, 720, -720], [0, -0.0, INF, -INF, NAN, INF, -INF], [0.5, 0.5, INF, INF, NAN, INF, INF]),
    "logit": ([0.0, 1, 0.5, -1, 2, NAN], [-INF, INF, 0, NAN, NAN, NAN], [INF, INF, 4, NAN, NAN, NAN]),
    "entr": ([0.0, -0.0, 1, -1, INF, NAN], [0, 0, 0, -INF, -INF, NAN], [INF, INF, -1, NAN, -INF, NAN]),
}


@pytest.mark.parametrize("name", POINTS)
def test_special_points(name):
    x, values, slopes = (np.array(v, "f8") for v in POINTS[name])
    f = getattr(hg, name)
    for own, right in ((f(hg.asarray(x)).numpy(), values), (slope(f)(x), slopes)):
        np.testing.assert_allclose(own, right, rtol=4e-16, atol=0)
        assert np.array_equal(np.signbit(own)[right != 0], np.signbit(right)[right != 0]) or np.isnan(right).any()


def test_second_slopes():
    """At points that are safe, and where a branch that was not taken is NaN or infinite."""
    def second(f, at):
        return hg.grad(lambda x: hg.grad(lambda v: f(v).sum())(x).sum())(hg.asarray(np.array(at))).numpy()

    np.testing.assert_allclose(second(hg.sinc, [0.0, 1.0]), [-np.pi**2 / 3, 2.0], rtol=1e-14)
    np.testing.assert_allclose(second(hg.i1, [0.0, 2.0]), [0.0, 1.2461626307879599], rtol=1e-14)
    np.testing.assert_allclose(second(hg.lgamma, [1.0, -1.5]), [np.pi**2 / 6, 9.37924664498912], rtol=1e-14)
    np.testing.assert_allclose(second(hg.log_ndtr, [-2.0, -20.0, 3.0]), [-0.885720899585919, -0.997536738384948, -0.0133332115417408],
                               rtol=1e-12)
    np.testing.assert_allclose(second(hg.erfinv, [0.0, 0.5]), [0.0, 1.1807463499934], rtol=1e-12)


def test_one_answer():
    """Eager, lazy, compiled, alone and in a row of others."""
    for name in SLOPES:
        x = special.points(name, "float32", 32)
        f = getattr(hg, name)
        lazy = f(hg.asarray(x)).numpy()
        with hg.eager():
            assert f(hg.asarray(x)).numpy().tobytes() == lazy.tobytes()
        assert hg.jit(f)(hg.asarray(x)).numpy().tobytes() == lazy.tobytes()
        assert f(hg.asarray(x[5])).numpy().tobytes() == lazy[5].tobytes()


def digest():
    """Of the values and slopes of all of them, in three types, on the default executor."""
    made = hashlib.sha256()
    for name in SLOPES:
        for kind in ("float64", "float32", "float16"):
            x = special.points(name, "float32", 8).astype(kind)
            made.update(getattr(hg, name)(hg.asarray(x)).numpy().tobytes() + slope(getattr(hg, name))(x).tobytes())
    return made.hexdigest()


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_special_functions") == digest()


def test_types_and_bounds():
    assert hg.lgamma(hg.arange(1, 5)).tolist() == pytest.approx([0, 0, math.log(2), math.log(6)], rel=1e-7)
    assert hg.lgamma(hg.arange(1, 5)).dtype == hg.float32
    assert hg.xlogy(hg.asarray([0.0, 2.0]), hg.asarray([-1.0, 1.0])).tolist() == [0, 0]
    with pytest.raises(ValueError, match="n is 3; it has to lie from 0 to 2"):
        hg.polygamma(hg.ones(3), 3)
    with pytest.raises(hg.Error, match="n is 3; it has to lie from 0 to 2"):
        slope(hg.tetragamma)(np.ones(3))
    with pytest.raises(ValueError, match="eps is 0.6; it has to lie from -inf to 0.5"):
        hg.logit(hg.ones(3), eps=0.6)
