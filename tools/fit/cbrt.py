#!/usr/bin/env python3
"""cbrt.py - the numbers of src/functions/cbrt.atlas and cbrt_f64.atlas.

The first guess at y = x^(-1/3) is C - bits / 3, the exponent divided along with the rest of the bits. C is the one for which
h = 1 - x y^3 is least at its worst over three octaves, after which everything repeats. Then 1 + a h + b h^2 is what is best
between the extremes of h for (1 - h)^(-1/3), relatively: y (1 + a h + b h^2) is the next guess."""

import mpmath
import numpy as np

SAMPLES = 1 << 18


def guesses(c: int) -> np.ndarray:
    """h at points of three octaves, of the f32 seed; that of f64 is the same in the upper word."""
    bits = np.linspace(0x3f800000, 0x41000000 - 1, SAMPLES).astype(np.uint64)
    x = bits.astype(np.uint32).view(np.float32).astype(np.float64)
    y = (c - (bits * 0x55555556 >> np.uint64(32))).astype(np.uint32).view(np.float32).astype(np.float64)
    return 1 - x * y ** 3


def best_seed() -> int:
    """By thirds: the worst h falls, then rises."""
    low, high = 0x54000000, 0x55000000
    while high - low > 2:
        third = (high - low) // 3
        a, b = low + third, high - third
        if np.abs(guesses(a)).max() < np.abs(guesses(b)).max():
            high = b
        else:
            low = a
    return low + 1


def seed_f64(c: int) -> int:
    """The same guess for the upper word of an f64, whose exponents are biased by 1023 and whose fraction is cut to 20 bits."""
    bias32, bias64 = 127 << 23, 1023 << 20
    fraction = (c - bias32 * 4 / 3) / 8
    return round(bias64 * 4 / 3 + fraction)


def best_step(low: float, high: float) -> tuple[float, float, float]:
    """a, b and the relative error that they leave."""
    mpmath.mp.prec = 100
    h = np.cos(np.linspace(0, np.pi, 4001)) * (high - low) / 2 + (high + low) / 2
    weight = (1 - h) ** (1 / 3)  # relative: multiply the polynomial by the inverse of the function
    a, b = 1 / 3, 2 / 9
    w = np.ones_like(h)
    for _ in range(300):  # Lawson's weights
        matrix = np.stack([h * weight, h * h * weight], 1) * w[:, None] ** 0.5
        a, b = np.linalg.lstsq(matrix, (1 - weight) * w ** 0.5, rcond=None)[0]
        error = np.abs((1 + a * h + b * h * h) * weight - 1)
        w *= error / error.max()
        w /= w.max()
    return float(a), float(b), float(error.max())


def main():
    c = best_seed()
    h = guesses(c)
    a, b, error = best_step(h.min(), h.max())
    print(f"f32: seed {c:#010x}, h from {h.min():.5f} to {h.max():.5f}")
    print(f"f64: seed {seed_f64(c):#010x} (upper word)")
    print(f"a {np.float32(a).item().hex()} b {np.float32(b).item().hex()}, error 2^{np.log2(error):.2f}")


if __name__ == "__main__":
    main()
