"""An independent statement of what every instruction of ops.def computes, on bits.

`evaluate(op, type, type2, columns)` gives the result bits for columns of operand bits: one list an operand, all of one
length. Predicates are 0 or 1. Integers are Python integers; f32 and f64 arithmetic is NumPy's, fma is exact rational
arithmetic rounded once; f16 and bf16 operations are the f32 operation, rounded once. Functions (exp, ...) have
their own statement in functions.py; `reduce`, `scan` and the classes are at the end.
"""

import math
from fractions import Fraction

import numpy as np

from formats import FORMATS, convert, from_exact, is_nan, is_negative, range_of, to_float, to_int, widen
from tables import FLOAT, INT, bits_of, mask_of

# ---- integers -------------------------------------------------------------------------------------------------------


def _quotient(a: int, b: int) -> int:
    """Truncated; 0 for a zero divisor."""
    if b == 0:
        return 0
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def _reverse(t: str, a: int) -> int:
    return int(f"{a & mask_of(t):0{bits_of(t)}b}"[::-1], 2)


def _leading_zeros(t: str, a: int) -> int:
    return bits_of(t) - (a & mask_of(t)).bit_length()


def _trailing_zeros(t: str, a: int) -> int:
    a &= mask_of(t)
    return (a & -a).bit_length() - 1 if a else bits_of(t)


# On values, of type t; the result is wrapped to the type by the caller.
INTEGER = {
    "add": lambda t, a, b: a + b,
    "sub": lambda t, a, b: a - b,
    "mul": lambda t, a, b: a * b,
    "mulhi": lambda t, a, b: (a * b) >> bits_of(t),
    "div": lambda t, a, b: _quotient(a, b),
    "rem": lambda t, a, b: a - _quotient(a, b) * b,
    "mad": lambda t, a, b, c: a * b + c,
    "min": lambda t, a, b: min(a, b),
    "max": lambda t, a, b: max(a, b),
    "abs": lambda t, a: abs(a),
    "neg": lambda t, a: -a,
    "sign": lambda t, a: (a > 0) - (a < 0),
    "and": lambda t, a, b: a & b,
    "or": lambda t, a, b: a | b,
    "xor": lambda t, a, b: a ^ b,
    "not": lambda t, a: ~a,
    "popc": lambda t, a: (a & mask_of(t)).bit_count(),
    "clz": _leading_zeros,
    "ctz": _trailing_zeros,
    "brev": _reverse,
}

# ---- floats ---------------------------------------------------------------------------------------------------------

UINT_OF = {"f32": np.uint32, "f64": np.uint64}
FLOAT_OF = {"f32": np.float32, "f64": np.float64}
ARITHMETIC = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "recip": lambda a: np.divide(a.dtype.type(1), a),
    "sqrt": np.sqrt,
}


def _machine_arithmetic(op: str, t: str, columns: list[list[int]]) -> list[int]:
    """One rounded f32 or f64 operation by NumPy; NaN made canonical."""
    arrays = [np.array(c, UINT_OF[t]).view(FLOAT_OF[t]) for c in columns]
    with np.errstate(all="ignore"):
        result = ARITHMETIC[op](*arrays)
    bits = np.where(np.isnan(result), UINT_OF[t](FORMATS[t].nan), result.view(UINT_OF[t]))
    return [int(b) for b in bits]


def _fma(t: str, a: int, b: int, c: int) -> int:
    """a * b + c, exact and rounded once, for f32 and f64."""
    if is_nan(t, a) or is_nan(t, b) or is_nan(t, c):
        return FORMATS[t].nan
    x, y, z = to_float(t, a), to_float(t, b), to_float(t, c)
    negative = is_negative(t, a) != is_negative(t, b)
    if math.isinf(x) or math.isinf(y):
        if x == 0 or y == 0 or (math.isinf(z) and (z < 0) != negative):
            return FORMATS[t].nan
        return from_exact(t, -math.inf if negative else math.inf)
    if math.isinf(z):
        return c
    product = Fraction(x) * Fraction(y)
    total = product + Fraction(z)
    if total == 0:  # -0 only when both addends are -0 or an exact negative zero product meets -0
        both = product == 0 and z == 0 and negative and is_negative(t, c)
        return FORMATS[t].sign if both else 0
    return from_exact(t, total)


def _total(t: str, a: int) -> tuple[float, bool]:
    """A key that orders numbers with -0 below +0."""
    return to_float(t, a), not is_negative(t, a)


def _float_min(t: str, a: int, b: int) -> int:
    if is_nan(t, a) or is_nan(t, b):
        return FORMATS[t].nan
    return a if _total(t, a) <= _total(t, b) else b


def _float_max(t: str, a: int, b: int) -> int:
    if is_nan(t, a) or is_nan(t, b):
        return FORMATS[t].nan
    return a if _total(t, a) >= _total(t, b) else b


def _float_sign(t: str, a: int) -> int:
    if is_nan(t, a):
        return FORMATS[t].nan
    value = to_float(t, a)
    return from_exact(t, 0.0 if value == 0 else math.copysign(1.0, value))


def _nearest_even(value: Fraction) -> int:
    low = math.floor(value)
    rest = value - low
    return low + int(rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1))


INTEGRAL = {"floor": math.floor, "ceil": math.ceil, "trunc": math.trunc, "round": _nearest_even}


def _integral(op: str, t: str, a: int) -> int:
    """Rounding to an integral value: the sign of a is the sign of the result, zeros included."""
    if is_nan(t, a):
        return FORMATS[t].nan
    if math.isinf(to_float(t, a)):
        return a
    whole = INTEGRAL[op](Fraction(to_float(t, a)))
    bits = from_exact(t, Fraction(whole))
    return bits if whole else bits | (a & FORMATS[t].sign)


# On bits of type t.
FLOAT_BITS = {
    "min": _float_min,
    "max": _float_max,
    "sign": _float_sign,
    "relu": lambda t, a: _float_max(t, a, 0),
    "abs": lambda t, a: a & (FORMATS[t].sign - 1),
    "neg": lambda t, a: a ^ FORMATS[t].sign,
    "copysign": lambda t, a, b: (a & (FORMATS[t].sign - 1)) | (b & FORMATS[t].sign),
    "floor": lambda t, a: _integral("floor", t, a),
    "ceil": lambda t, a: _integral("ceil", t, a),
    "trunc": lambda t, a: _integral("trunc", t, a),
    "round": lambda t, a: _integral("round", t, a),
}


def _float(op: str, t: str, columns: list[list[int]]) -> list[int]:
    if op in FLOAT_BITS:
        return [FLOAT_BITS[op](t, *row) for row in zip(*columns)]
    if t in ("f16", "bf16"):
        wide = _float(op, "f32", [[widen(t, a) for a in column] for column in columns])
        return [convert(t, "f32", a) for a in wide]
    if op in ("fma", "mad"):
        return [_fma(t, *row) for row in zip(*columns)]
    return _machine_arithmetic(op, t, columns)


# ---- predicates and the rest ----------------------------------------------------------------------------------------

COMPARE = {
    "set.eq": lambda a, b: a == b,
    "set.ne": lambda a, b: not a == b,
    "set.lt": lambda a, b: a < b,
    "set.le": lambda a, b: a <= b,
    "set.gt": lambda a, b: a > b,
    "set.ge": lambda a, b: a >= b,
    "set.num": lambda a, b: not (math.isnan(a) or math.isnan(b)),
    "set.nan": lambda a, b: math.isnan(a) or math.isnan(b),
}
LOGIC = {
    "pand": lambda a, b: a & b,
    "por": lambda a, b: a | b,
    "pxor": lambda a, b: a ^ b,
    "pnot": lambda a: 1 - a,
    "vote.any": None,
    "vote.all": None,
}


def value_of(t: str, bits: int) -> int | float:
    return to_int(t, bits) if t in INT else to_float(t, bits)


def _shift(op: str, t: str, a: int, count: int) -> int:
    count %= bits_of(t)
    return (to_int(t, a) << count if op == "shl" else to_int(t, a) >> count) & mask_of(t)


DOT = {"dot4.ss": ("i8", "i8"), "dot4.uu": ("u8", "u8"), "dot4.us": ("u8", "i8")}  # what the bytes of a and of b are


def _dot(op: str, t: str, a: int, b: int, c: int) -> int:
    left, right = (memoryview((word & mask_of("u32")).to_bytes(4, "little")).cast("b" if kind == "i8" else "B")
                   for word, kind in zip((a, b), DOT[op]))
    return (c + sum(x * y for x, y in zip(left, right))) & mask_of(t)


def evaluate(op: str, t: str, t2: str | None, columns: list[list[int]]) -> list[int]:
    """The result bits of a pure instruction. Class instructions raise Fault where the machine would report one."""
    rows = zip(*columns)
    if op in COMPARE:
        return [int(COMPARE[op](value_of(t, a), value_of(t, b))) for a, b in rows]
    if op in LOGIC:
        return [LOGIC[op](*row) for row in rows]
    if op in ("shl", "shr"):
        return [_shift(op, t, a, n) for a, n in rows]
    if op in DOT:
        return [_dot(op, t, *row) for row in rows]
    if op == "cvt":
        return [convert(t, t2, a) for (a,) in rows]
    if op == "sel":
        return [a if p else b for p, a, b in rows]
    if op in ("mov", "movi", "bitcast"):
        return list(columns[0])
    if op in CLASS_OPS:
        return [CLASS_OPS[op](*row) for row in rows]
    if t in INT and op in INTEGER:
        return [INTEGER[op](t, *(to_int(t, a) for a in row)) & mask_of(t) for row in rows]
    if t in FLOAT:
        return _float(op, t, columns)
    raise NotImplementedError(f"{op}.{t}")


def evaluate_one(op: str, t: str, t2: str | None, *operands: int) -> int:
    return evaluate(op, t, t2, [[a] for a in operands])[0]


PURE = set(INTEGER) | set(DOT) | set(ARITHMETIC) | set(FLOAT_BITS) | set(COMPARE) | set(LOGIC) - {"vote.any", "vote.all"} | {
    "fma", "shl", "shr", "cvt", "sel", "mov", "movi", "bitcast"}

# ---- atomics --------------------------------------------------------------------------------------------------------


def atomic(op: str, t: str, old: int, *operands: int) -> int:
    """What the location holds afterwards."""
    if op == "atom.exch":
        return operands[0]
    if op == "atom.cas":
        return operands[1] if old == operands[0] else old
    return evaluate_one(op.removeprefix("atom."), t, None, old, operands[0])


# ---- block collectives ----------------------------------------------------------------------------------------------
# One entry a lane of the block, in order of its lane; None: the lane is missing.


def _combine(op: str, t: str, left: list, right: list) -> list:
    """left[i] op right[i], where a missing side is skipped."""
    both = [(a, b) for a, b in zip(left, right) if a is not None and b is not None]
    results = iter(evaluate(op, t, None, [list(c) for c in zip(*both)]) if both else ())
    return [next(results) if a is not None and b is not None else b if a is None else a for a, b in zip(left, right)]


def reduce(op: str, t: str, lanes: list[int | None]) -> int:
    """reduce.op by halves from the power of two at or above the lane count."""
    operation = op.removeprefix("reduce.")
    values = list(lanes)
    half = 1
    while half < len(values):
        half *= 2
    half //= 2
    while half >= 1:
        upper = values[half : 2 * half]
        values = _combine(operation, t, values[: len(upper)], upper) + values[len(upper) : half]
        half //= 2
    return values[0]


def scan_inclusive(t: str, lanes: list[int | None]) -> list[int | None]:
    values = list(lanes)
    stride = 1
    while stride < len(values):
        values = values[:stride] + _combine("add", t, values[:-stride], values[stride:])
        stride *= 2
    return values


def scan(op: str, t: str, lanes: list[int | None]) -> list[int]:
    inclusive = scan_inclusive(t, lanes)
    if op == "scan.incl":
        return inclusive
    return [0] + [0 if v is None else v for v in inclusive[:-1]]


def rank(lanes: list[int | None], bits: int) -> tuple[list[int], list[int]]:
    """Of each lane how many before it have its low bits; how many lanes have each value of them. None: a lane that is missing."""
    low = [None if v is None else v % 2**bits for v in lanes]
    return [low[:i].count(v) for i, v in enumerate(low)], [low.count(v) for v in range(2**bits)]


# ---- classes --------------------------------------------------------------------------------------------------------
# class(byte) = 24 * h2 + 8 * d + l, restated over bits: b7 b6 are h2, (b4, b5) choose d, b3 b2 b1 are l.

CLASS_COUNT = 96


class Fault(Exception):
    """kind as in hg_fault_kind, index and extent as in the record."""

    def __init__(self, kind: str, index: int = 0, extent: int = 0, code: int = 0, buffer: str = ""):
        super().__init__(kind)
        self.kind, self.index, self.extent, self.code, self.buffer = kind, index, extent, code, buffer


def class_of_byte(byte: int) -> int:
    b = [byte >> i & 1 for i in range(8)]
    d = {(0, 0): 0, (1, 1): 0, (1, 0): 1, (0, 1): 2}[b[4], b[5]]
    return 24 * (2 * b[7] + b[6]) + 8 * d + (4 * b[3] + 2 * b[2] + b[1])


def class_byte(c: int) -> int:
    """The canonical byte: b0 = 0; (b4, b5) = 00, 10, 01."""
    h2, rest = divmod(c, 24)
    d, low = divmod(rest, 8)
    return h2 << 6 | {0: 0, 1: 0x10, 2: 0x20}[d] | low << 1


def neighbours(c: int) -> list[int]:
    """Flip b1, b2, b3, b6 of the canonical byte, then the moves of d, ascending."""
    byte = class_byte(c)
    flips = [class_of_byte(byte ^ 1 << bit) for bit in (1, 2, 3, 6)]
    d = c // 8 % 3
    return flips + [c + 8 * (to - d) for to in ({1, 2} if d == 0 else {0})]


def _class(c: int) -> int:
    if c >= CLASS_COUNT:
        raise Fault("class", c, CLASS_COUNT)
    return c


def _neighbour(c: int, number: int) -> int:
    found = neighbours(_class(c))
    if number >= len(found):
        raise Fault("class", number, len(found))
    return found[number]


def _boundary(c: int, page: int, byte: int) -> int:
    for value, count in ((c, CLASS_COUNT), (page, 48), (byte, 256)):
        if value >= count:
            raise Fault("class", value, count)
    return c * 12288 + page * 256 + byte


CLASS_OPS = {
    "mirror": lambda c: class_of_byte(class_byte(_class(c)) ^ 0x80),
    "unity.test": lambda c: int(_class(c) in (0, 48)),
    "nbr.count": lambda c: len(neighbours(_class(c))),
    "nbr.get": _neighbour,
    "bound.map": _boundary,
}

__all__ = ["evaluate", "evaluate_one", "reduce", "scan", "atomic", "range_of"]
