#!/usr/bin/env python3
"""Fits the tables of gelu and gelu.tanh in src/functions/exp.atlas, and the polynomial of gelu's far tail: gelu.py. It needs NumPy.

G(t) = t - gelu(t) = -gelu(-t) in 15 pieces of t from 0 on. A piece is the t for which t (t^2 + stretch) / UNIT rounds to its number, so
that pieces grow shorter as G falls faster; a 16th entry is 0. Each piece is a polynomial in t - centre, centre being where the value and
nearly the slope are almost f32 (Gal and Bachelis 1991), near the middle or on the side of the smaller values, whichever makes the least
error in ulp. Coefficients are weighted least squares with the weights changed by the error of the round before (Lawson), rounded one
after another from the lowest, the others fitted anew; the last may differ by a unit from machine to machine."""
import math

import numpy as np

PIECES, UNIT = 15, 32
erfc = np.vectorize(math.erfc)
f32 = np.float32


def normal(t):
    return t / 2 * erfc(t * math.sqrt(0.5))


def by_tanh(t):
    return t / (1 + np.exp(2 * math.sqrt(2 / math.pi) * (t + 0.044715 * t**3)))


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


def spread(low, high, count):
    return (low + high) / 2 + (high - low) / 2 * np.cos((np.arange(count) + 0.5) * np.pi / count)


def coefficients(value, low, high, centre, first, degree):
    """Those behind `first`, which are given."""
    t, found = spread(low, high, 100), list(first)
    y, d = value(t), t - centre
    fixed = sum(float(c) * d**n for n, c in enumerate(first))
    for n in range(len(first), degree + 1):
        found.append(f32(lawson(d, y, range(n, degree + 1), fixed)[0]))
        fixed = fixed + float(found[-1]) * d**n
    return found


def fma(a, b, c):
    return (np.float64(a) * np.float64(b) + np.float64(c)).astype(f32)


def horner(row, d):
    p = row[-1]
    for c in row[-2::-1]:
        p = fma(p, d, c)
    return p


def ulps(got, want):
    return (np.abs(got - want) / np.exp2(np.floor(np.log2(want)) - 23)).max()


def centres(value, low, high):
    for off in (0, 0.08, 0.16, 0.24):
        middle = (low + high) / 2 + (high - low) / 2 * (off if value(high) < value(low) else -off)
        c = np.unique(f32(middle + np.arange(-3000, 3001) * 2.0 ** (np.floor(np.log2(middle)) - 23))).astype(float)
        y, slope = value(c), (value(c + 1e-4) - value(c - 1e-4)) / 2e-4
        lost = np.abs(y - f32(y)) + np.abs(slope - f32(slope)) * (high - low) / 4
        yield from c[np.argsort(lost / y)[:4]]


def piece(value, low, high, degree):
    x = np.random.default_rng(1).uniform(max(low, 2.0**-12), high, 40000).astype(f32)
    if low == 0:
        rows = [[0, f32(0), *coefficients(value, 1e-6, high, 0, [0, f32(0.5)], degree)[1:]]]
    else:
        rows = [[c, *coefficients(value, low, high, c, [f32(value(c))], degree)] for c in centres(value, low, high)]
    return min(((ulps(horner(row[1:], x - f32(row[0])), value(x.astype(float))), row) for row in rows), key=lambda r: r[0])


def table(name, value, degree, stretch):
    t = np.linspace(0, 8, 800001)
    bounds = np.interp(np.arange(PIECES) + 0.5, t * (t * t + stretch) / UNIT, t)
    rows = []
    for low, high in zip([0, *bounds], bounds):
        worst, row = piece(value, low, high, degree)
        rows.append(row)
        print(f"; {name} to {high:.3f}: {worst:.3f} ulp")
    rows.append([0] * (degree + 2))
    for k, of in enumerate(["centre"] + [f"c{i}" for i in range(degree + 1)]):
        print(f".const  {name}_{of} f32 {{")
        for i in range(0, 16, 4):
            print("    " + ", ".join("#" + short(row[k]) for row in rows[i:i + 4]) + (" }" if i == 12 else ","))


def short(value):
    if value == 0:
        return "0"
    mantissa, exponent = float(value).hex().split("p")
    return mantissa.rstrip("0").rstrip(".") + "p" + str(int(exponent))


def far(low=5.36, high=14.5, added=3.5, degree=4):
    """t e^(t^2/2) Phi(-t) as a polynomial in 1 / (t^2 + added)."""
    def value(z):
        t = np.sqrt(1 / z - added)
        return normal(t) * np.exp(t * t / 2)
    c = coefficients(value, 1 / (high**2 + added), 1 / (low**2 + added), 0, [], degree)
    print("; far:", ", ".join(short(v) for v in reversed(c)))


table("gelu", normal, 6, 57.6)
table("gelu_tanh", by_tanh, 7, 60)
far()
