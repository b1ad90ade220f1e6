#!/usr/bin/env python3
"""Searches the constants of a text in src/functions/narrow.atlas: narrow.py HOLOGRAM LABEL TYPE OP [TRIES]

Runs the text on all arguments of the type in NumPy's f32 and counts those whose result rounds otherwise than OP's of the reference
machine (HOLOGRAM is the program `hologram`); then moves constants by a few units in the last place as long as that does not make it
worse, and prints those of the best text. The first constants of a polynomial are those of Sollya's fpminimax (as in exp.sollya), those of
a rational function are `rational`'s. NaNs and the text's branches are not looked at: tests/unit/test_narrow.c tries every argument."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

f32, u32 = np.float32, np.uint32
SOURCE = Path(__file__).resolve().parents[2] / "src/functions/narrow.atlas"


def rational(target, low, high, n, d, rounds=60, points=3000):
    """Coefficients of P and Q, of degrees n and d, Q(0) = 1, with a small relative error of P / Q: linear least squares, weighted
    anew by the error of the round before (Lawson)."""
    x = (low + high) / 2 + (high - low) / 2 * np.cos(np.pi * (np.arange(points) + 0.5) / points)
    y, weight, q, best = target(x), np.ones(points), np.ones(points), None
    s = x / high
    for _ in range(rounds):
        rows = np.stack([s**i / y for i in range(n + 1)] + [-(s**i) for i in range(1, d + 1)], 1)
        scale = np.sqrt(weight) / q
        c = np.linalg.lstsq(rows * scale[:, None], scale, rcond=1e-18)[0]
        q = np.abs(1 + sum(c[n + i] * s**i for i in range(1, d + 1)))
        error = np.abs(sum(c[i] * s**i for i in range(n + 1)) / q / y - 1)
        if best is None or error.max() < best[0]:
            best = error.max(), [c[i] / high**i for i in range(n + 1)], [1.0] + [c[n + i] / high**i for i in range(1, d + 1)]
        weight *= error / error.max() + 1e-3
        weight /= weight.mean()
    return best


def lines_of(source, label):
    """The instructions from a label to its ret, calls put in."""
    code, at = [], source.index(f"\n{label}:\n") + len(label) + 3
    for line in source[at:].split("\n"):
        words = re.split(r"[\s,]+", line.split(";")[0].strip())
        if words[0] == "ret":
            return code
        if words[0] == "call":
            code += lines_of(source, words[1])
        elif words[0] and not words[0].endswith(":"):
            code.append(words)
    raise ValueError(label)


def value_of(text):
    return f32(float.fromhex(text) if "0x" in text else float(text))


STEPS = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": np.maximum, "min": np.minimum,
    "fma": lambda a, b, c: (a.astype(float) * b + c).astype(f32), "neg": lambda a: -a, "abs": np.abs, "copysign": np.copysign,
    "mov": lambda a: a, "shl": lambda a, b: a << b, "and": lambda a, b: a & b, "cvt": lambda a: a.astype(f32),
    "set.lt": lambda a, b: a < b, "set.eq": lambda a, b: a == b, "set.num": lambda a, b: a == b, "sel": np.where,
}


def run(code, constants, x):
    """The text on all of x; constants[k] stands for the k-th f32 constant of it."""
    r, k = {"r0": x}, 0
    for op, d, *operands in code:
        a = []
        for o in operands:
            if not o.startswith("#"):
                a.append(r[o])
            elif ".u32" in op:
                a.append(u32(int(o[1:], 0)))
            else:
                a.append(f32(np.nan) if o == "#nan" else constants[k])
                k += o != "#nan"
        name, *types = op.split(".")
        if name == "bitcast":
            r[d] = a[0].view({"u32": u32, "i32": np.int32, "f32": f32}[types[0]])
        else:
            r[d] = STEPS[f"set.{types[0]}" if name == "set" else name](*a)
    return r["r0"]


def arguments(kind):
    bits = np.arange(65536, dtype=np.uint16)
    return bits.view(np.float16).astype(f32) if kind == "f16" else (bits.astype(u32) << u32(16)).view(f32)


def rounded(values, kind):
    if kind == "f16":
        return values.astype(np.float16).view(np.uint16)
    bits = values.view(u32)
    return ((bits + u32(0x7FFF) + (bits >> u32(16) & u32(1))) >> u32(16)).astype(np.uint16)


def definition(hologram, op, kind):
    with tempfile.TemporaryDirectory() as folder:
        program, x, y = (str(Path(folder) / n) for n in ("p.atlas", "x.npy", "y.npy"))
        Path(program).write_text(f".program p\n.buffer a {kind} in\n.buffer y {kind} out\nldg.{kind} r0, [a + lane]\n"
                                 f"{op}.{kind} r0, r0\nstg.{kind} [y + lane], r0\nexit\n", encoding="utf-8")
        bits = np.arange(65536, dtype=np.uint16)
        np.save(x, bits.view(np.float16) if kind == "f16" else bits)
        subprocess.run([hologram, "run", program, "--buffer", f"a={x}", "--out", f"y={y}"], check=True,
                       env={**os.environ, "HOLOGRAM_CPU_ENGINE": "interp"})
        return np.load(y).view(np.uint16)


def main(hologram, label, kind, op, tries="2000"):
    code = lines_of(SOURCE.read_text(encoding="utf-8"), label)
    texts = [o[1:] for c in code for o in c[2:] if o.startswith("#") and ".u32" not in c[0] and o != "#nan"]
    free = [i for i, t in enumerate(texts) if t.startswith(("0x1.", "-0x1.")) and len(t) > 12]
    best, x, want = [value_of(t) for t in texts], arguments(kind), definition(hologram, op, kind)
    size = want & np.uint16(0x7FFF)
    number, rng = ~np.isnan(x) & (size <= (0x7C00 if kind == "f16" else 0x7F80)), np.random.default_rng(1)

    def misses(constants):
        return int((rounded(run(code, constants, x), kind) != want)[number].sum())

    with np.errstate(all="ignore"):
        least = misses(best)
        print(f"{least} of {number.sum()} round otherwise")
        for _ in range(int(tries) if least > 0 else 0):
            trial = list(best)
            for i in rng.choice(free, rng.integers(1, 4)):
                trial[i] = (np.array(trial[i]).view(u32) + u32(rng.integers(-64, 65) & 0xFFFFFFFF)).view(f32)[()]
            found = misses(trial)
            if found <= least:
                best, least = trial, found
        print(f"{least}: " + " ".join(float(c).hex() for c in best))


if __name__ == "__main__":
    main(*sys.argv[1:])
