"""Number formats, stated from their definitions: bits to exact values and back, rounding once with ties to even.

A finite value is a Python float where that is exact (every format here fits binary64) or a Fraction; nothing below relies
on the machine's own conversions between narrow types.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from tables import FLOAT, INT, bits_of, mask_of


@dataclass(frozen=True)
class Format:
    bits: int
    fraction: int  # stored fraction bits
    nan: int  # the canonical NaN
    infinity: int | None  # positive infinity; None: the format has none
    largest: int  # bits of the largest finite value

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.fraction - 2)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)


FORMATS = {
    "f16": Format(16, 10, 0x7E00, 0x7C00, 0x7BFF),
    "bf16": Format(16, 7, 0x7FC0, 0x7F80, 0x7F7F),
    "f32": Format(32, 23, 0x7FC00000, 0x7F800000, 0x7F7FFFFF),
    "f64": Format(64, 52, 0x7FF8000000000000, 0x7FF0000000000000, 0x7FEFFFFFFFFFFFFF),
    "f8e4m3": Format(8, 3, 0x7F, None, 0x7E),
    "f8e5m2": Format(8, 2, 0x7E, 0x7C, 0x7B),
}


def is_nan(t: str, bits: int) -> bool:
    f = FORMATS[t]
    magnitude = bits & (f.sign - 1)
    return magnitude > (f.largest if f.infinity is None else f.infinity)


def is_negative(t: str, bits: int) -> bool:
    """The sign bit, also of zeros and NaNs."""
    return bool(bits & FORMATS[t].sign)


def to_float(t: str, bits: int) -> float:
    """The value of float bits, exact; NaN for any NaN."""
    f = FORMATS[t]
    magnitude = bits & (f.sign - 1)
    if is_nan(t, bits):
        return math.nan
    if magnitude == f.infinity:
        value = math.inf
    else:
        exponent, fraction = magnitude >> f.fraction, magnitude & ((1 << f.fraction) - 1)
        if exponent:
            fraction += 1 << f.fraction
        value = math.ldexp(fraction, max(exponent, 1) - f.bias - f.fraction)
    return -value if bits & f.sign else value


def round_ratio(t: str, negative: bool, numerator: int, denominator: int) -> int:
    """Bits of numerator / denominator (both >= 0 and > 0) rounded once to format t, ties to even."""
    f = FORMATS[t]
    sign = f.sign if negative else 0
    if numerator == 0:
        return sign
    exponent = numerator.bit_length() - denominator.bit_length()
    if numerator << max(-exponent, 0) < denominator << max(exponent, 0):
        exponent -= 1  # now 2^exponent <= value < 2^(exponent + 1)
    exponent = max(exponent, 1 - f.bias)
    quantum = exponent - f.fraction
    n, d = numerator << max(-quantum, 0), denominator << max(quantum, 0)
    q, r = divmod(n, d)
    if 2 * r > d or (2 * r == d and q & 1):
        q += 1
    # q carries the leading 1 of normal values, which adds one to the exponent field
    magnitude = ((exponent - (1 - f.bias)) << f.fraction) + q
    if magnitude > f.largest:
        return f.nan if f.infinity is None else sign | f.infinity
    return sign | magnitude


def from_exact(t: str, value: float | Fraction | int) -> int:
    """Bits of format t for an exact value: a float (NaN, infinities and -0 included), a Fraction or an int."""
    f = FORMATS[t]
    if isinstance(value, float):
        if math.isnan(value):
            return f.nan
        negative = math.copysign(1.0, value) < 0
        if math.isinf(value):
            return f.nan if f.infinity is None else f.infinity | (f.sign if negative else 0)
        n, d = abs(value).as_integer_ratio()
        return round_ratio(t, negative, n, d)
    value = Fraction(value)
    return round_ratio(t, value < 0, abs(value.numerator), value.denominator)


def to_int(t: str, bits: int) -> int:
    """The value of integer bits."""
    width = bits_of(t)
    bits &= (1 << width) - 1
    return bits - (1 << width) if t[0] == "i" and bits >> (width - 1) else bits


def range_of(t: str) -> tuple[int, int]:
    width = bits_of(t)
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if t[0] == "i" else (0, (1 << width) - 1)


def convert(to: str, source: str, bits: int) -> int:
    """cvt.to.source."""
    if source == "bool":
        value: int | float = int(bits != 0)
    elif source in INT:
        value = to_int(source, bits)
    else:
        value = to_float(source, bits)
    if to == "bool":
        return int(not value == 0)  # NaN is not equal to zero
    if to in INT:
        if isinstance(value, int):
            return value & mask_of(to)
        low, high = range_of(to)
        if math.isnan(value):
            return 0
        clamped = low if value <= low else high if value >= high else int(value)
        return clamped & mask_of(to)
    return from_exact(to, value)


def widen(t: str, bits: int) -> int:
    """f16 or bf16 bits to f32 bits (exact; a NaN becomes the canonical one)."""
    return convert("f32", t, bits)


def show(t: str, bits: int) -> str:
    """For failure messages."""
    text = f"{bits:#0{bits_of(t) // 4 + 2}x}"
    if t in FORMATS:
        text += f" ({to_float(t, bits)!r})"
    return text


assert set(FLOAT) < set(FORMATS)
