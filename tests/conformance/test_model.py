"""The model against other people's arithmetic: a mistake in the statement should not be able to hide in it."""

import math

import ml_dtypes
import numpy as np
import pytest

import model
from formats import FORMATS, convert, from_exact, is_nan, to_float, to_int, widen
from harness import UINT, array_of
from tables import FLOAT, INT, bits_of
from values import SEED, conversion_edges, generator, random_bits, specials

DTYPE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64, "f8e4m3": ml_dtypes.float8_e4m3fn,
         "f8e5m2": ml_dtypes.float8_e5m2}
# Conversions that ml_dtypes does in one rounding. (From f64 it goes through f32 for some types.)
DIRECT = [(d, s) for d in DTYPE for s in ("f16", "bf16", "f32") if d != s] + [("f32", "f64"), ("f16", "f64")]


def canonical(t, bits):
    return FORMATS[t].nan if is_nan(t, bits) else bits


@pytest.mark.parametrize("d, s", DIRECT)
def test_rounding(d, s):
    bits = conversion_edges(s) + random_bits(s, 4000, generator("rounding", d, s))
    with np.errstate(all="ignore"):
        theirs = array_of(s, bits).view(DTYPE[s]).astype(DTYPE[d]).view(UINT[bits_of(d)])
    for a, want in zip(bits, theirs):
        if d == "f8e4m3" and math.isinf(to_float(s, a)):
            want = 0x7F
        assert convert(d, s, a) == canonical(d, int(want)), hex(a)


@pytest.mark.parametrize("t", ["f8e4m3", "f8e5m2", "f16", "bf16"])
def test_reading_every_value(t):
    bits = list(range(1 << bits_of(t)))
    with np.errstate(invalid="ignore"):
        theirs = array_of(t, bits).view(DTYPE[t]).astype(np.float64)
    for a, want in zip(bits, theirs):
        ours = to_float(t, a)
        assert (math.isnan(ours) and math.isnan(want)) or (ours == want and math.copysign(1, ours) == math.copysign(1, want))
        assert is_nan(t, a) or from_exact(t, ours) == a


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("op", ["add", "mul"])
def test_fma_with_one_and_zero_is_add_and_mul(op, t):
    rng = generator("model", op, t)
    a, b = ([x for x in random_bits(t, 2000, rng) + specials(t)] for _ in range(2))
    one, zero = [from_exact(t, 1.0)] * len(a), [FORMATS[t].sign] * len(a)
    fma = model.evaluate("fma", t, None, [a, one, b] if op == "add" else [a, b, zero])
    plain = model.evaluate(op, t, None, [a, b])
    for x, y, f, p in zip(a, b, fma, plain):
        if not (op == "mul" and p & (FORMATS[t].sign - 1) == 0):  # -0 as the addend turns no zero but its own sign
            assert f == p, (hex(x), hex(y))


@pytest.mark.parametrize("t", INT)
def test_integer_identities(t):
    rng = generator("model", t)
    for a, b in zip(random_bits(t, 500, rng) + specials(t), specials(t) * 30):
        one = lambda op, *v: model.evaluate_one(op, t, None, *v)
        assert one("add", one("sub", a, b), b) == a
        assert one("add", one("mul", one("div", a, b), b), one("rem", a, b)) == a
        assert one("brev", one("brev", a)) == a and one("not", one("not", a)) == a
        wide = to_int(t, one("mulhi", a, b)) << bits_of(t) | one("mul", a, b)
        assert wide == to_int(t, a) * to_int(t, b)


@pytest.mark.parametrize("t", FLOAT)
def test_widening_is_exact(t):
    for a in specials(t):
        if t in ("f16", "bf16") and not is_nan(t, a):
            assert convert(t, "f32", widen(t, a)) == a
        assert model.evaluate_one("relu", t, None, a) == model.evaluate_one("max", t, None, a, 0)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13, 64, 100, 257])
def test_collectives_sum(n):
    rng = generator("model", str(n))
    lanes = [None if i and rng.random() < 0.3 else rng.randrange(1000) for i in range(n)]
    assert model.reduce("reduce.add", "u32", lanes) == sum(v or 0 for v in lanes)
    total = 0
    for v, s in zip(lanes, model.scan("scan.incl", "u32", lanes)):
        total += v or 0
        assert (s or 0) == total
    floats = [from_exact("f32", rng.uniform(-1, 1)) for _ in range(n)]
    level = [to_float("f32", v) for v in floats]  # by halves, restated with NumPy on a padded array
    while len(level) > 1:
        half = 1 << (len(level) - 1).bit_length() - 1
        level = [float(np.float32(level[i]) + np.float32(level[i + half])) if i + half < len(level) else level[i] for i in range(half)]
    assert to_float("f32", model.reduce("reduce.add", "f32", floats)) == level[0]


def test_seed_is_fixed():
    assert generator("a", "b").random() == generator("a", "b").random() and SEED == 20240611
