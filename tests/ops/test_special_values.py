"""Special functions beside exact values (special_functions.py): within the ulp that accuracy.toml states, in every type of floats."""

import functools

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import hgops
import special_functions as special
from hgops import FLOATS, TABLE, TYPES

pytestmark = pytest.mark.engine


@functools.cache
def exact(name, *x):
    """The value, and what its ulp is taken of, of f64 numbers, as longdoubles."""
    with mpmath.workdps(special.DIGITS):
        y = special.EXACT[name](*map(mpf, x))
        return tuple(np.longdouble(mpmath.nstr(v, 25)) for v in (y, special.beside(name, x[-1], y)))


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", special.EXACT)
def test_values(name, kind, judge):
    x = special.points(name, "float64" if kind == "f64" else "float32", 64 if kind in ("f32", "f64") else 24)
    with np.errstate(over="ignore"):
        given = [x.astype(TYPES[kind])]
    if len(TABLE[name]["inputs"].split(",")) == 2:
        given.insert(0, np.resize([-3, 0.7, 2.5e-3, 11], x.shape).astype(TYPES[kind]))
    inside = special.is_inside(name, given[-1])
    given = [v[inside] for v in given]
    right = np.array([exact(name, *map(float, v)) for v in zip(*given)], np.longdouble)
    assert len(right) > 20
    judge(name, hgops.apply(name, *given), right[:, 0], right[:, 1])


@pytest.mark.parametrize("kind", FLOATS)
def test_polygamma_is_a_choice(kind):
    x = np.array([0.3, 1.5, -0.7, 20, 0], TYPES[kind])
    for n, name in enumerate(("digamma", "trigamma", "tetragamma")):
        assert hgops.apply("polygamma", x, n=n).tobytes() == hgops.apply(name, x).tobytes()
    with pytest.raises(hgops.Error, match="n is 3; it has to lie from 0 to 2"):
        hgops.apply("polygamma", x, n=3)


def test_every_special_function_is_judged():
    assert {name for name, row in TABLE.items() if row["op"] >> 8 == 0x17} == set(special.EXACT) | set(special.ELSEWHERE)
