"""Results against exact ones: within the ulp that accuracy.toml states for the operation and the type, and equal where it states
none. An ulp is the distance of neighbours at the exact value, in the result's type."""

import tomllib
from pathlib import Path

import numpy as np

from hgops import FLOATS, NAME_OF

STATED = tomllib.loads((Path(__file__).parent / "accuracy.toml").read_text())
PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}  # bits
SMALLEST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}  # exponents of two
LARGEST = {"f16": 65504.0, "bf16": 255 * 2.0 ** 120, "f32": (2 - 2.0 ** -23) * 2.0 ** 127, "f64": float(np.finfo(float).max)}


def ulp_at(size, kind):
    _, exponent = np.frexp(size)
    return np.ldexp(np.ones_like(size), np.maximum(exponent - PRECISION[kind], SMALLEST[kind]))


def wide(array):
    """As a reference wants it: f64 in longdouble, other floats in f64."""
    kind = NAME_OF[array.dtype]
    return array.astype(np.longdouble if kind == "f64" else np.float64) if kind in FLOATS else array


class Judge:
    """Counts what it has judged, and keeps the worst of each operation and type."""

    def __init__(self):
        self.cases, self.worst = 0, {}

    def __call__(self, name, own, expected, scale=None):
        self.cases += 1
        kind = NAME_OF[own.dtype]
        assert own.shape == np.shape(expected), f"{name}: shape {own.shape}, not {np.shape(expected)}"
        expected = np.asarray(expected)
        if kind not in FLOATS:
            if expected.dtype == object or expected.dtype.kind in "iu":
                mask = (1 << own.dtype.itemsize * 8) - 1
                same = all((int(a) - int(b)) & mask == 0 for a, b in zip(own.ravel().tolist(), expected.ravel().tolist()))
            else:
                same = np.array_equal(own.astype(np.float32) if kind.startswith("f8") else own, expected.astype(own.dtype).astype(
                    np.float32 if kind.startswith("f8") else own.dtype), equal_nan=kind.startswith("f8"))
            assert same, f"{name} {kind} {list(own.shape)}"
            return
        if not own.size:
            return
        values = own.astype(np.longdouble)
        exact = expected.astype(np.longdouble)
        with np.errstate(all="ignore"):
            exact = np.where(np.abs(exact) > LARGEST[kind] * (1 + 0.25 * 2.0 ** -PRECISION[kind]), np.sign(exact) * np.inf, exact)
            same = (values == exact) | (np.isnan(values) & np.isnan(exact))
            size = np.abs(exact)
            row = STATED.get(name, {})
            if row.get("scale") == "largest":
                size = np.broadcast_to(np.max(np.where(np.isfinite(size), size, 0)), size.shape)
            if row.get("scale") == "terms":
                size = np.abs(np.asarray(scale, np.longdouble))
            off = np.where(same, 0, np.abs(values - exact) / ulp_at(np.where(np.isfinite(size), size, 0), kind))
            off = np.where(np.isnan(off), np.inf, off)
        worst = float(np.max(off))
        self.worst[name, kind] = max(worst, self.worst.get((name, kind), 0))
        at = np.unravel_index(np.argmax(off), off.shape) if off.shape else ()
        limit = row.get(kind, 0.0)  # and what the reference itself may round
        assert worst <= limit + (0.001 if limit else 0), \
            f"{name} {kind} {list(own.shape)}: {worst:.3g} ulp, stated are {limit}; {own[at]!r}, not {expected[at]!r}"
