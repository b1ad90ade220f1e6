#!/usr/bin/env python3
"""Fits the tables `gelu` of src/functions/exp.atlas: gelu.py. It needs mpmath and NumPy.

t e^(t^2/2) Phi(-t) for t up to 14.5 in 16 pieces, which are quarters of octaves of u = SCALE t + FIRST, from FIRST to 20: with FIRST
between 1.25 and 1.5 the first piece, which has no constant term, is short, and FIRST was chosen for the least error of the whole
function. Coefficients are weighted least squares with the weights changed by the error of the round before (Lawson), rounded one
after another from the lowest, the others fitted anew; the last may differ by a unit from machine to machine. Every value is scaled
by 2^-26."""
import mpmath
import numpy as np

mpmath.mp.dps = 40
FIRST, LAST, DEGREE = 1.325, 14.5, 5
SCALE = np.floor((20 - FIRST) / LAST * 2**12) / 2**12


def value(t):
    t = mpmath.mpf(float(t))
    return t * mpmath.exp(t * t / 2) * mpmath.erfc(t / mpmath.sqrt(2)) / 2


def lawson(d, y, powers, fixed):
    h, weight, best = np.abs(d).max(), np.ones(len(d)), None
    rows = np.stack([(d / h) ** n for n in powers], 1)
    for _ in range(25):
        scale = np.sqrt(weight) / np.abs(y)
        c = np.linalg.lstsq(rows * scale[:, None], (y - fixed) * scale, rcond=None)[0]
        error = np.abs((rows @ c + fixed - y) / y)
        if best is None or error.max() < best[0]:
            best = error.max(), c
        weight *= error / error.max() + 1e-3
        weight /= weight.mean()
    return [c / h**n for c, n in zip(best[1], powers)]


def coefficients(low, high, centre, c0):
    t = (low + high) / 2 + (high - low) / 2 * np.cos((np.arange(160) + 0.5) * np.pi / 160)
    y, found, fixed = np.array([float(value(v)) for v in t]), [], np.full(160, float(c0))
    for n in range(1, DEGREE + 1):
        c = np.float32(lawson(t - centre, y, range(n, DEGREE + 1), fixed)[0])
        fixed += float(c) * (t - centre) ** n
        found.append(c)
    return found, np.abs(fixed / y - 1).max()


def centre_near(t, step):
    """Where the value is almost an f32 (Gal and Bachelis 1991)."""
    def off(c):
        y = value(c)
        return abs(float(y - mpmath.mpf(float(np.float32(float(y)))))) / float(y)
    return min((np.float32(t + k * step) for k in range(-150, 151)), key=off)


def piece(low, high):
    if low == 0:
        found, error = coefficients(1e-6, high, 0, 0)
        return [0, 0, *found], error
    centre = centre_near((low + high) / 2, 2.0 ** np.floor(np.log2(low + high)) * 2**-17)
    c0 = np.float32(float(value(centre)))
    found, error = coefficients(low, high, float(centre), c0)
    return [centre, c0, *found], error


bounds = [FIRST] + [2.0**o * (1 + q / 4) for o in range(5) for q in range(4) if FIRST < 2.0**o * (1 + q / 4) <= 20]
rows = [None] * 16
for u, end in zip(bounds, bounds[1:]):
    index = int(np.float32(u).view(np.uint32)) >> 21 & 15
    rows[index], worst = piece((u - FIRST) / SCALE, (end - FIRST) / SCALE)
    print(f"; from {(u - FIRST) / SCALE:.3f}: relative error 2^{np.log2(worst):.1f}")
print(f"; scale {SCALE.hex()}")
for k, name in enumerate(["centre"] + [f"c{i}" for i in range(DEGREE + 1)]):
    print(name, ", ".join(float(row[k] * (1 if k == 0 else 2.0**-26)).hex() for row in rows))
