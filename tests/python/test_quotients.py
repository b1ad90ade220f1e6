"""floor_divide and remainder of floats beside fractions: the floor of the exact quotient and what it leaves, each rounded once."""

import math
from fractions import Fraction

import numpy as np
import pytest

import double_of_cuda
import hologram as hg

FORMATS = {"float16": (11, -24, 16), "bfloat16": (8, -133, 128), "float32": (24, -149, 128), "float64": (53, -1074, 1024)}


def rounded(exact, kind):
    """A fraction to a type: bits, the exponent of its smallest number, and of what is beyond its largest."""
    bits, least, beyond = FORMATS[kind]
    if exact == 0:
        return 0.0
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length() - bits
    while abs(exact) / Fraction(2) ** exponent >= 2**bits:
        exponent += 1
    unit = Fraction(2) ** max(exponent, least)
    near = round(exact / unit) * unit  # ties to even
    return float(near) if abs(near) < Fraction(2) ** beyond else math.inf if near > 0 else -math.inf


def pairs_of(kind):
    """Numbers of all sizes, multiples of the divisor and what is next to them, and the ends of the type, as arrays of f64."""
    bits, least, beyond = FORMATS[kind]
    r = np.random.default_rng(3)
    small, large = 2.0**least, (2.0 - 2.0 ** (1 - bits)) * 2.0 ** (beyond - 1)
    some = r.standard_normal(300) * 2.0 ** r.integers((least + bits) // 2, beyond // 2, 300)
    a = np.concatenate([some, np.arange(1, 200), [small, large, -small] * 9])
    b = np.concatenate([r.permutation(some), np.full(199, 0.1), r.permutation([large, 3, small] * 9)])
    a, b = of_type(a, kind), of_type(b, kind)
    with np.errstate(over="ignore"):
        near = np.concatenate([a, of_type(b * r.integers(1, 2**9, len(b)), kind)])
    a, b = np.concatenate([near, of_type(near * (1 - 2.0**-bits), kind)]), np.tile(b, 4)
    is_good = np.isfinite(a) & (b != 0)
    return a[is_good], b[is_good]


def of_type(numbers, kind):
    return np.array([rounded(Fraction(v), kind) if math.isfinite(v) else v for v in numbers.tolist()])


def check(kind):
    a, b = pairs_of(kind)
    x, y = (hg.asarray(v).astype(kind) for v in (a, b))
    quotient, rest = (f(x, y).astype("float64").tolist() for f in (hg.floor_divide, hg.remainder))
    for p, q, own, left in zip(a.tolist(), b.tolist(), quotient, rest):
        exact = Fraction(p) // Fraction(q)
        assert own == rounded(exact, kind), (kind, p, q, own)
        assert left == rounded(Fraction(p) - exact * Fraction(q), kind), (kind, p, q, left)
        assert left != 0 or math.copysign(1, left) == math.copysign(1, q), (kind, p, q, left)


@pytest.mark.parametrize("kind", FORMATS)
def test_floor_divide_and_remainder_are_exact(kind):
    check(kind)


@double_of_cuda.needed
def test_they_are_exact_on_the_double():
    double_of_cuda.run("import hologram as hg, test_quotients as t; hg.set_default_executor(hg.Executor('cuda')); "
                       "[t.check(k) for k in t.FORMATS]")
