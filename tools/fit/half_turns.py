#!/usr/bin/env python3
"""half_turns.py - the polynomials of src/functions/half_turns.atlas and half_turns_f64.atlas.

sin(pi r) = r p(r^2) and cos(pi r) = 1 + r^2 q(r^2) for |r| <= 1/4. Least squares of the error of the result at Chebyshev's nodes, which is
within a quarter of the best error. The coefficients are rounded one after the other from the lowest on, and those behind are fitted again
to what is left, so that a rounding costs nothing. The first of sin is pi, in two parts."""

import mpmath
from mpmath import mp, mpf

mp.prec = 300
REACH = mpf(1) / 16  # of s = r^2


def rounded(x: mpf, bits: int) -> mpf:
    m, e = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), e - bits)


def fit(left, powers: range, scale) -> list[mpf]:
    """The coefficients of these powers of s with which the polynomial is nearest to `left` on [0, REACH]."""
    nodes = [REACH * (1 - mp.cos(mp.pi * (2 * i + 1) / 80)) / 2 for i in range(40)]
    matrix = mp.matrix([[scale(s) * s ** j for j in powers] for s in nodes])
    return list(mp.qr_solve(matrix, mp.matrix([scale(s) * left(s) for s in nodes]))[0])


def fit_rounded(f, count: int, bits: int, scale) -> list[mpf]:
    made: list[mpf] = []
    while len(made) < count:
        def left(s, made=tuple(made)):
            return f(s) - sum(c * s ** j for j, c in enumerate(made))
        made.append(rounded(fit(left, range(len(made), count), scale)[0], bits))
    return made


def sine(s: mpf) -> mpf:
    r = mp.sqrt(s)
    return mp.sin(mp.pi * r) / r


def cosine(s: mpf) -> mpf:
    return (mp.cos(mp.pi * mp.sqrt(s)) - 1) / s


def report(name: str, made: list[mpf], f, scale) -> None:
    points = [REACH * (i + mpf(1) / 2) / 2000 for i in range(2000)]
    worst = max(abs(sum(c * s ** j for j, c in enumerate(made)) - f(s)) * scale(s) for s in points)
    print(f"{name}: error 2^{float(mp.log(worst, 2)):.2f}")
    for c in made:
        print("   ", float(c).hex())


def main() -> None:
    for kind, bits, of_sine, of_cosine in (("f32", 24, 4, 4), ("f64", 53, 7, 7)):
        high = rounded(mp.pi, bits)
        low = rounded(mp.pi - high, bits)
        print(f"{kind}: pi {float(high).hex()} + {float(low).hex()}")
        rest = fit_rounded(lambda s: (sine(s) - high - low) / s, of_sine, bits, lambda s: s / mp.pi)
        report(f"{kind} sine, r^3 on", rest, lambda s: (sine(s) - high - low) / s, lambda s: s / mp.pi)
        rest = fit_rounded(cosine, of_cosine, bits, lambda s: s)
        report(f"{kind} cosine, r^2 on", rest, cosine, lambda s: s)


if __name__ == "__main__":
    main()
