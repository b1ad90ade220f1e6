#!/usr/bin/env python3
"""Searches the constants of reciprocal_seed in src/functions/exp.atlas: with r = magic - bits(d), as a float, r (c - d r) is to be
near 1 / d. The error depends on the fraction of d alone, so one octave stands for all."""
import numpy as np


def worst(magic, c, d):
    r = (np.uint32(magic) - d.view(np.uint32)).view(np.float32).astype(np.float64)
    exact = d.astype(np.float64)
    return np.abs(1 - exact * r * (c - exact * r)).max()


def search(magics, constants, step):
    d = np.arange(0x3f800000, 0x40000000, step, dtype=np.uint32).view(np.float32)
    return min((worst(magic, c, d), magic, float(c)) for magic in magics for c in constants)


_, magic, c = search(range(0x7ef00000, 0x7ef80000, 0x2000), np.linspace(1.99, 2.01, 101), 16411)
_, magic, c = search(range(magic - 0x2000, magic + 0x2000, 0x400), np.linspace(c - 3e-4, c + 3e-4, 61), 4099)
error = worst(magic, float(np.float32(c)), np.arange(0x3f800000, 0x40000000, dtype=np.uint32).view(np.float32))
print(f"magic {magic:#x}, with the sign of -d {magic + 0x80000000:#x}; c {float(np.float32(c)).hex()}; error 2^{np.log2(error):.2f}")
