#!/usr/bin/env python3
"""Fits the polynomials and quotients of polynomials of the special functions of operations.def: special.py [NAME...]. It needs mpmath.

A quotient p / q has q(0) = 1. Least squares of its relative error at Chebyshev points make that nearly the least that the degrees allow.
Coefficients are rounded to f64 one after another from the lowest, the others fitted anew. Where a variable begins inside an interval,
coefficients have one sign: nothing cancels. Printed are Horner's schemes, and the largest relative error found."""
import functools
import sys

import mpmath
from mpmath import mp, mpf

mp.dps = 90
ROOT = mpmath.findroot(mpmath.digamma, mpf(1.46))


def points(low, high, count):
    return [(low + high) / 2 + (high - low) / 2 * mpmath.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def fit(f, low, high, top, bottom):
    """Coefficients of p (degree top) and q (degree bottom), from the lowest."""
    order = sorted([(k, 0) for k in range(top + 1)] + [(k, 1) for k in range(1, bottom + 1)])
    at, known = points(low, high, 2 * len(order)), {}
    values = [f(x) for x in at]
    terms = {c: mpmath.matrix([-(x ** c[0]) if c[1] else x ** c[0] / y for x, y in zip(at, values)]) for c in order}
    rest = mpmath.matrix([1] * len(at))
    for n, c in enumerate(order):
        free = order[n:]
        left = mpmath.matrix([[mpmath.fdot(terms[a], terms[b]) for b in free] for a in free])
        known[c] = mpf(float(mpmath.lu_solve(left, mpmath.matrix([mpmath.fdot(terms[a], rest) for a in free]))[0]))
        rest -= known[c] * terms[c]
    return [known[k, 0] for k in range(top + 1)], [mpf(1)] + [known[k, 1] for k in range(1, bottom + 1)]


def worst(f, low, high, p, q):
    at = points(low, high, 400)
    return max(abs(mpmath.polyval(p[::-1], x) / mpmath.polyval(q[::-1], x) / f(x) - 1) for x in at)


def scheme(c, name):
    text = repr(float(c[-1]))
    for v in c[-2::-1]:
        text = f"fma({text}, {name}, {float(v)!r})"
    return text


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def ndtr_tail(z):
    x = -1 / mpmath.sqrt(z)
    return mpmath.log(-x * ndtr(x) / mpmath.npdf(x)) / z


def sinc_slope(t):
    """sinc'(x) / x by t = x^2."""
    x = mpmath.sqrt(t)
    return (mpmath.cospi(x) - mpmath.sincpi(x)) / t


def ndtri(p):
    """The quantile of p < 1/2, by Newton's method on the logarithm."""
    x = -mpmath.sqrt(-2 * mpmath.log(p)) if p < 0.1 else mpf(-0.5)
    while True:
        step = (mpmath.log(ndtr(x)) - mpmath.log(p)) * ndtr(x) / mpmath.npdf(x)
        x -= step
        if abs(step) < mpf(10) ** -60 * (1 + abs(x)):
            return x


def ndtri_near(t):
    """ndtri(1/2 + c) / c by t = 0.375^2 - c^2."""
    c = mpmath.sqrt(mpf(0.375) ** 2 - t)
    return mpmath.sqrt(2) * mpmath.erfinv(2 * c) / c


def ndtri_far(s):
    """-ndtri(p) / s by s = sqrt(-2 log(p))."""
    return -ndtri(mpmath.exp(-s * s / 2)) / s


def lgamma_near(u):
    """lgamma(1 + u) / (u (u - 1))."""
    return mpmath.log(mpmath.gamma(1 + u)) / (u * (u - 1))


def lgamma_far(z):
    """What Stirling's formula lacks, times x, by z = 1 / x^2."""
    x = 1 / mpmath.sqrt(z)
    return x * (mpmath.loggamma(x) - (x - mpf(0.5)) * mpmath.log(x) + x - mpmath.log(2 * mp.pi) / 2)


def digamma_near(u):
    """digamma(1 + u) over 1 + u less its root."""
    return mpmath.digamma(1 + u) / (1 + u - ROOT)


def digamma_far(z):
    x = 1 / mpmath.sqrt(z)
    return (mpmath.log(x) - 1 / (2 * x) - mpmath.digamma(x)) / z


def trigamma_far(z):
    x = 1 / mpmath.sqrt(z)
    return (mpmath.psi(1, x) - 1 / x - z / 2) * x**3


def tetragamma_far(z):
    x = 1 / mpmath.sqrt(z)
    return (-mpmath.psi(2, x) - z - z / x) / z**2


def bessel_near(order):
    """Over x^order, by t = x^2."""
    return lambda t: mpmath.besseli(order, mpmath.sqrt(t)) / mpmath.sqrt(t) ** order


def bessel_far(order):
    """Times e^-x sqrt(x), by r = 1 / x."""
    return lambda r: mpmath.besseli(order, 1 / r) * mpmath.exp(-1 / r) / mpmath.sqrt(r)


FITS = {  # the function, its variable's name and interval, the degrees of p and q
    "ndtr_tail": (ndtr_tail, "z", 0, 1 / mpf(12.5) ** 2, 6, 0), "sinc's slope": (sinc_slope, "t", 0, mpf(0.25), 7, 0),
    "ndtri, near": (ndtri_near, "t", 0, mpf(0.375) ** 2, 6, 6),
    "ndtri, far": (lambda v: ndtri_far(v + 2), "v", 0, mpf(4.5), 8, 7),
    "ndtri, farther": (lambda r: ndtri_far(1 / r), "r", 1 / mpf(39), 1 / mpf(6.5), 8, 8),
    "lgamma, near": (lgamma_near, "u", 0, 2, 7, 7), "lgamma, far": (lgamma_far, "z", 0, mpf(1) / 9, 9, 0),
    "digamma, near": (digamma_near, "u", 0, 2, 6, 6), "digamma, far": (digamma_far, "z", 0, mpf(1) / 9, 10, 0),
    "trigamma, far": (trigamma_far, "z", 0, mpf(1) / 9, 11, 0), "tetragamma, far": (tetragamma_far, "z", 0, mpf(1) / 9, 13, 0),
    "i0, near": (bessel_near(0), "t", 0, 100, 17, 0), "i0, far": (bessel_far(0), "r", 0, mpf(1) / 10, 17, 0),
    "i1, near": (bessel_near(1), "t", 0, 100, 17, 0), "i1, far": (bessel_far(1), "r", 0, mpf(1) / 10, 17, 0),
}

print(f"digamma's root: {float(ROOT)!r} + {float(ROOT - float(ROOT))!r}")
for name, (function, variable, low, high, top, bottom) in FITS.items():
    if sys.argv[1:] and name.split(",")[0] not in sys.argv[1:]:
        continue
    function = functools.cache(function)
    p, q = fit(function, mpf(low), mpf(high), top, bottom)
    print(f"{name}: {mpmath.nstr(worst(function, mpf(low), mpf(high), p, q), 3)}\n  {scheme(p, variable)}")
    if bottom:
        print(f"  / {scheme(q, variable)}")
