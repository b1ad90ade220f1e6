"""The special functions of the table, exactly: in mpmath's arithmetic, whose roundings are MPFR's, with 50 digits. EXACT[name] takes
and gives numbers of mpmath; DOMAIN[name] is where it has finite values; beside(name, x, y) is what an ulp of the value y is taken of."""

import mpmath
import numpy as np
from mpmath import mp, mpf

DIGITS = 50


def ndtr(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def log_ndtr(x):
    return mpmath.log1p(-ndtr(-x)) if x > 0 else mpmath.log(ndtr(x))


def ndtri(p):
    """By Newton's method on the logarithm of the smaller share, which is nearly a parabola."""
    if p == 0.5:
        return mpf(0)
    low = min(p, 1 - p)
    x = -mpmath.sqrt(-2 * mpmath.log(low)) if low < 0.1 else mpf(-0.5)
    for _ in range(99):
        step = (log_ndtr(x) - mpmath.log(low)) * ndtr(x) / mpmath.npdf(x)
        x -= step
        if abs(step) < mpf(10) ** (8 - mp.dps) * (1 + abs(x)):
            return x if p < 0.5 else -x
    raise ArithmeticError(f"no quantile of {p}")


def erfinv(x):
    return mpmath.erfinv(x) if abs(x) < 0.1 else -mpmath.sign(x) * ndtri((1 - abs(x)) / 2) / mpmath.sqrt(2)


def lgamma(x):
    return mpmath.log(abs(mpmath.gamma(x))) if abs(x) < 1000 else mpmath.loggamma(x).real


EXACT = {
    "logit": lambda x: mpmath.log(x / (1 - x)), "entr": lambda x: -x * mpmath.log(x), "sinc": mpmath.sincpi, "ndtr": ndtr,
    "log_ndtr": log_ndtr, "ndtri": ndtri, "erfinv": erfinv, "lgamma": lgamma, "digamma": mpmath.digamma,
    "trigamma": lambda x: mpmath.psi(1, x), "tetragamma": lambda x: mpmath.psi(2, x),
    "i0": lambda x: mpmath.besseli(0, x), "i1": lambda x: mpmath.besseli(1, x),
    "xlogy": lambda a, b: a * mpmath.log(b), "xlog1py": lambda a, b: a * mpmath.log1p(b),
}
DOMAIN = {
    "logit": (0, 1), "entr": (0, 1e300), "sinc": (-1e6, 1e6), "ndtr": (-38, 40), "log_ndtr": (-1e15, 38), "ndtri": (0, 1),
    "erfinv": (-1, 1), "lgamma": (-150, 1e300), "digamma": (-150, 1e300), "trigamma": (-150, 1e150), "tetragamma": (-150, 1e90),
    "i0": (-712, 712), "i1": (-712, 712), "xlogy": (0, 1e300), "xlog1py": (-1, 1e300),
}
ELSEWHERE = {"ndtr_tail": "log_ndtr", "ndtri_of": "ndtri and erfinv, in f64", "polygamma": "digamma, trigamma and tetragamma"}
CENTRES = (1, 2, 3, 0.5, 0.25, 0.75, 0.125, 0.875, 1.4616321449683623, -1, -2, -2.4570247382208006, -12.5, 10)


def beside(name, x, y):
    """Below 0 lgamma, digamma and tetragamma are differences, with zeros between the poles."""
    if x < 0 and name == "lgamma":
        return max(abs(y), abs(lgamma(-x)), 1)
    if x < 0 and name == "digamma":
        return max(abs(y), mpmath.digamma(1 - x), 1)
    return max(abs(y), 2 * mp.pi**3) if x < 0 and name == "tetragamma" else abs(y)


def points(name, kind, count):
    """Numbers of the domain: of every exponent, of every size that bends, and beside zeros, poles and where formulas change."""
    rng, (low, high) = np.random.default_rng(len(name) + count), DOMAIN[name]
    limits = np.finfo(kind)
    most = min(np.log2(max(abs(low), abs(high))), limits.maxexp - 1)
    spread = np.exp2(rng.uniform(np.log2(float(limits.smallest_subnormal)), most, count)) * rng.choice([-1.0, 1.0], count)
    bend = rng.uniform(max(low, -45), min(high, 45), 2 * count)
    near = np.concatenate([c + s * np.exp2(-rng.uniform(1, limits.nmant + 2, count // 16)) for c in CENTRES for s in (1, -1)])
    with np.errstate(over="ignore"):
        x = np.unique(np.concatenate([spread, bend, bend / 12, near, CENTRES]).astype(kind))
    return x[is_inside(name, x)]


def is_inside(name, x):
    """A mask of numbers of the domain that are not 0, nor poles."""
    x = x.astype(np.float64)
    inside = (x > DOMAIN[name][0]) & (x < DOMAIN[name][1]) & (x != 0)
    return inside & ((x > 0) | (x != np.round(x))) if "gamma" in name else inside
