"""exp, sin, pow and their kin: special values and exact cases by bits, everything else within a bound of a high-precision
reference; f16 and bf16 are the f32 function rounded once, bit for bit."""

import math

import pytest

from formats import FORMATS, convert, from_exact, is_nan, show, to_float, widen
from functions import BINARY, UNARY, exact, reference, ulps
from harness import compare, run_columns
from tables import OPS
from values import SEED, generator, random_bits, specials

pytestmark = pytest.mark.engine

BOUND = 2.3  # ulp, f32 and f64
WIDE = ("f32", "f64")
# Where the interesting things happen: ranges of ordinary operands, and places where a function has a root, a pole, a
# limit of its range or a change of method.
RANGES = {"exp": 110, "exp2": 160, "expm1": 100, "sin": 30, "cos": 30, "tan": 30, "sinpi": 30, "cospi": 30, "asin": 1, "acos": 1,
          "atan": 20, "sinh": 95, "cosh": 95, "tanh": 12, "sigmoid": 110, "silu": 110, "erf": 5, "erfc": 11, "gelu": 15, "gelu.tanh": 12}
WIDER = {"exp": 760, "exp2": 1100, "expm1": 720, "sinh": 720, "cosh": 720, "sigmoid": 760, "silu": 760, "erfc": 28, "gelu": 40}
PLACES = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 10.0, 16.0, 100.0, 1000.0, math.sqrt(0.5), math.sqrt(2), math.e,
          math.pi / 4, math.pi / 2, math.pi, 3 * math.pi / 2, 2 * math.pi, 1e5 * math.pi, 1e15 * math.pi, math.log(2),
          88.72284, 87.33655, 103.97208, 709.782712893384, 708.396418532264, 745.1332191019412, 128.0, 126.0, 149.0, 150.0, 1024.0, 1074.0,
          1075.0, 5.863584748755167, 9.0, 9.194, 26.54]


def operands(op: str, t: str) -> list[int]:
    """Special values; random bits; a spread over every exponent; the ordinary range; around the places."""
    rng = generator("functions", op, t)
    out = specials(t) + random_bits(t, 500, rng)
    f = FORMATS[t]
    exponents = (1 << (f.bits - 1 - f.fraction)) - 1
    for e in range(0, exponents, max(1, exponents // 300)):
        out.append(e << f.fraction | rng.getrandbits(f.fraction) | rng.getrandbits(1) << (f.bits - 1))
    limit = (WIDER if t == "f64" else {}).get(op, RANGES.get(op, 10))
    out += [from_exact(t, rng.uniform(-limit, limit)) for _ in range(1500)]
    out += [from_exact(t, 1 + rng.uniform(-1, 1) * 2.0 ** -rng.randint(1, f.fraction)) for _ in range(150)]
    for place in PLACES:
        near = from_exact(t, place)
        out += [near, max(near - 1, 0), near + 1, near | f.sign, near + 1 | f.sign, max(near - 1, 0) | f.sign]
    out += [from_exact(t, 2.0**k) for k in range(-160, 130, 7)]
    return out


def pairs(op: str, t: str) -> list[list[int]]:
    rng = generator("functions", op, t)
    rows = [(a, b) for a in specials(t) for b in specials(t)]
    rows += list(zip(random_bits(t, 500, rng), random_bits(t, 500, rng)))
    rows += [(from_exact(t, rng.uniform(0, 4)), from_exact(t, rng.uniform(-60, 60))) for _ in range(500)]
    rows += [(from_exact(t, rng.uniform(-9, 9)), from_exact(t, float(rng.randint(-30, 30)))) for _ in range(300)]
    rows += [(from_exact(t, 1 + rng.uniform(-1, 1) / 2 ** rng.randint(4, 20)), from_exact(t, rng.uniform(-1e4, 1e4))) for _ in range(300)]
    rows += [(from_exact(t, 2.0 ** rng.randint(-20, 20)), from_exact(t, float(rng.randint(-6, 6)))) for _ in range(100)]
    rows += [(from_exact(t, rng.uniform(-100, 100)), from_exact(t, rng.uniform(-1, 1))) for _ in range(200)]
    return [list(c) for c in zip(*rows)]


def judge(op: str, t: str, columns: list[list[int]], got: list[int]) -> None:
    failures, worst, at = [], 0.0, None
    for row, result in zip(zip(*columns), got):
        want = exact(op, t, row)
        if want is not None:
            if result != want:
                failures.append(f"{', '.join(show(t, a) for a in row)}: got {show(t, result)}, want {show(t, want)} exactly")
            continue
        true = reference(op, tuple(to_float(t, a) for a in row))
        distance = ulps(t, result, true)
        if distance > worst:
            worst, at = distance, row
        if not distance <= BOUND:
            failures.append(f"{', '.join(show(t, a) for a in row)}: got {show(t, result)}, want {float(true)!r}: {distance:.3f} ulp")
    assert not failures, "\n  ".join([f"{op}.{t}: {len(failures)} of {len(got)} fail (bound {BOUND} ulp, seed {SEED})"] + failures[:8])
    print(f"{op}.{t}: worst {worst:.3f} ulp at {at and ', '.join(show(t, a) for a in at)}")


@pytest.mark.parametrize("t", WIDE)
@pytest.mark.parametrize("op", UNARY)
def test_unary(executor, op, t):
    columns = [operands(op, t)]
    judge(op, t, columns, run_columns(executor, op, t, None, columns))


@pytest.mark.parametrize("t", WIDE)
@pytest.mark.parametrize("op", BINARY)
def test_binary(executor, op, t):
    columns = pairs(op, t)
    judge(op, t, columns, run_columns(executor, op, t, None, columns))


@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("op", UNARY)
def test_narrow_unary(executor, op, t):
    columns = [list(range(0, 65536, 13)) + specials(t)]
    narrow(executor, op, t, columns)


@pytest.mark.parametrize("t", ["f16", "bf16"])
@pytest.mark.parametrize("op", BINARY)
def test_narrow_binary(executor, op, t):
    narrow(executor, op, t, pairs(op, t))


def narrow(executor, op, t, columns):
    wide = run_columns(executor, op, "f32", None, [[widen(t, a) for a in column] for column in columns])
    want = [convert(t, "f32", a) for a in wide]
    got = run_columns(executor, op, t, None, columns)
    compare(f"{op}.{t} against {op}.f32 rounded once", [t] * len(columns), columns, got, want, t, SEED)


@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", [name for name, o in OPS.items() if "FUNC" in o.flags])
def test_nan_is_canonical(executor, op, t):
    """A NaN operand gives the canonical NaN (pow(x, 0) and pow(1, y) apart)."""
    nans = [b for b in specials(t) if is_nan(t, b)]
    ordinary = [from_exact(t, v) for v in (0.5, -2.0, math.inf)]
    columns = [nans]
    if OPS[op].operands == "dss":
        columns = [nans + ordinary * 3 + nans, ordinary + [n for n in nans for _ in ordinary] + nans]
    got = run_columns(executor, op, t, None, columns)
    compare(f"{op}.{t}", [t] * len(columns), columns, got, [FORMATS[t].nan] * len(got), t)


def test_every_function_has_a_reference():
    assert {name for name, o in OPS.items() if "FUNC" in o.flags} == set(UNARY) | set(BINARY)
