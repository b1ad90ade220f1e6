"""What the functions of the table (exp, sin, pow, ...) must give: special values and exact cases by their bits, everything
else within a bound of a high-precision reference.

`exact(op, t, operands)` gives the result bits where the definition fixes them (ops.def, C11 Annex F), else None.
`reference(op, operands)` gives the true value of finite ordinary operands as an mpmath number.
`ulps(t, bits, true)` is the distance in units of the spacing of t at the true value.
"""

import math
from fractions import Fraction

import mpmath
from mpmath import mp, mpf

from formats import FORMATS, from_exact, is_nan, to_float

mp.prec = 120

UNARY = ("rsqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan sinpi cospi asin acos atan sinh cosh tanh sigmoid silu erf erfc "
         "gelu gelu.tanh").split()
BINARY = ("fmod", "pow", "atan2")

INF, NAN = math.inf, math.nan
# op -> results for -inf, -0, +0, +inf; None: not fixed by the definition
AT_EXTREMES = {
    "rsqrt": (NAN, -INF, INF, 0.0),
    "cbrt": (-INF, -0.0, 0.0, INF),
    "exp": (0.0, 1.0, 1.0, INF),
    "exp2": (0.0, 1.0, 1.0, INF),
    "expm1": (-1.0, -0.0, 0.0, INF),
    "log": (NAN, -INF, -INF, INF),
    "log2": (NAN, -INF, -INF, INF),
    "log10": (NAN, -INF, -INF, INF),
    "log1p": (NAN, -0.0, 0.0, INF),
    "sin": (NAN, -0.0, 0.0, NAN),
    "cos": (NAN, 1.0, 1.0, NAN),
    "tan": (NAN, -0.0, 0.0, NAN),
    "sinpi": (NAN, -0.0, 0.0, NAN),
    "cospi": (NAN, 1.0, 1.0, NAN),
    "asin": (NAN, -0.0, 0.0, NAN),
    "acos": (NAN, None, None, NAN),
    "atan": (None, -0.0, 0.0, None),
    "sinh": (-INF, -0.0, 0.0, INF),
    "cosh": (INF, 1.0, 1.0, INF),
    "tanh": (-1.0, -0.0, 0.0, 1.0),
    "sigmoid": (0.0, 0.5, 0.5, 1.0),
    "silu": (-0.0, -0.0, 0.0, INF),
    "erf": (-1.0, -0.0, 0.0, 1.0),
    "erfc": (2.0, 1.0, 1.0, 0.0),
    "gelu": (-0.0, -0.0, 0.0, INF),
    "gelu.tanh": (-0.0, -0.0, 0.0, INF),
}


def _power_of_two(x: float) -> int | None:
    m, e = math.frexp(x)
    return e - 1 if m == 0.5 else None


def _unary_value(op: str, x: float) -> float | Fraction | None:
    """The fixed result for a number x that is not an infinity or a zero."""
    if op in ("rsqrt", "log", "log2", "log10") and x < 0:
        return NAN
    if op == "log1p" and x <= -1:
        return -INF if x == -1 else NAN
    if op in ("asin", "acos") and abs(x) > 1:
        return NAN
    if op in ("sinpi", "cospi") and 2 * Fraction(x) % 1 == 0:
        quarter = int(2 * Fraction(x)) % 4
        if op == "sinpi":
            return math.copysign(0.0, x) if quarter % 2 == 0 else 2.0 - quarter
        return 0.0 if quarter % 2 else 1.0 - quarter
    if op == "exp2" and x == math.floor(x):
        return Fraction(2) ** int(max(min(x, 5000), -5000))
    if op == "log2" and _power_of_two(x) is not None:
        return Fraction(_power_of_two(x))
    if (op in ("log", "log10") and x == 1) or (op == "acos" and x == 1):
        return 0.0
    return None


def _fmod(t: str, a: int, b: int) -> int:
    x, y = to_float(t, a), to_float(t, b)
    if math.isinf(x) or y == 0:
        return FORMATS[t].nan
    if math.isinf(y) or x == 0:
        return a
    n, d = Fraction(abs(x)), Fraction(abs(y))
    return from_exact(t, n - d * (n // d)) | (a & FORMATS[t].sign)


def _pow_value(x: float, y: float) -> float | None:
    """C11 F.10.4.4 for operands of which neither is NaN; None where the result is an ordinary number."""
    odd = math.isfinite(y) and y == math.floor(y) and int(y) % 2 == 1
    if y == 0 or x == 1:
        return 1.0
    if x == 0:
        big = INF if y < 0 else 0.0
        return math.copysign(big, x) if odd else big
    if math.isinf(y):
        if abs(x) == 1:
            return 1.0
        return INF if (abs(x) > 1) == (y > 0) else 0.0
    if math.isinf(x):
        size = INF if y > 0 else 0.0
        return -size if x < 0 and odd else size
    if x < 0 and y != math.floor(y):
        return NAN
    return None


def _pow(t: str, a: int, b: int) -> int | None:
    x, y = to_float(t, a), to_float(t, b)
    if is_nan(t, a) or is_nan(t, b):
        return from_exact(t, 1.0) if y == 0 or x == 1 else FORMATS[t].nan
    value = _pow_value(x, y)
    if value is not None:
        return from_exact(t, value)
    if y == 1:
        return a
    exponent = _power_of_two(abs(x))
    if exponent is not None and y == math.floor(y) and abs(exponent * y) < 5000:
        size = Fraction(2) ** int(exponent * y)
        return from_exact(t, -size if x < 0 and int(y) % 2 else size)
    return None


def _atan2(t: str, a: int, b: int) -> int | None:
    """C11 F.10.1.4: the cases that give a zero; the others are angles, and inside the bound of the reference."""
    if is_nan(t, a) or is_nan(t, b):
        return FORMATS[t].nan
    y, x = to_float(t, a), to_float(t, b)
    right = not b & FORMATS[t].sign
    if (y == 0 and right) or (math.isfinite(y) and math.isinf(x) and right):
        return a & FORMATS[t].sign
    return None


def exact(op: str, t: str, operands: tuple[int, ...]) -> int | None:
    if op in BINARY:
        if op == "fmod" and any(is_nan(t, a) for a in operands):
            return FORMATS[t].nan
        return {"fmod": _fmod, "pow": _pow, "atan2": _atan2}[op](t, *operands)
    (a,) = operands
    if is_nan(t, a):
        return FORMATS[t].nan
    x = to_float(t, a)
    if math.isinf(x) or x == 0:
        position = (0 if x < 0 else 3) if x else (1 if a & FORMATS[t].sign else 2)
        value = AT_EXTREMES[op][position]
    else:
        value = _unary_value(op, x)
    return None if value is None else from_exact(t, value)


def _gelu_tanh(x: mpf) -> mpf:
    return x / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (x + mpf(44715) / 1000000 * x**3)))


def _erf(x: mpf) -> mpf:
    return mp.erf(x) if abs(x) < 40 else mp.sign(x)


def _erfc(x: mpf) -> mpf:
    if x > 20000:
        return mpf(0)
    return mp.erfc(x) if x > -40 else mpf(2)


def _exp(x: mpf) -> mpf:
    return mp.exp(max(min(x, mpf(20000)), mpf(-20000)))


def _sigmoid(x: mpf) -> mpf:
    return _exp(x) / (1 + _exp(x)) if x < 0 else 1 / (1 + _exp(-x))


def _clamp(x: mpf) -> mpf:
    return max(min(x, mpf(20000)), mpf(-20000))


def _atan2_value(y: float, x: float) -> mpf:
    if math.isinf(x) or math.isinf(y):  # the diagonals and axes, by unit steps
        x, y = ((math.copysign(1, v) if math.isinf(v) else math.copysign(0, v)) for v in (x, y))
    if y == 0:  # on the axis the signs of the zeros choose
        angle = mpf(mp.pi) if math.copysign(1, x) < 0 else mpf(0)
        return angle if math.copysign(1, y) > 0 else -angle
    return mp.atan2(mpf(y), mpf(x))


REFERENCE = {
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "exp": _exp,
    "exp2": lambda x: mpf(2) ** _clamp(x),
    "expm1": lambda x: mpmath.expm1(_clamp(x)),
    "log": mp.log,
    "log2": lambda x: mp.log(x) / mp.ln2,
    "log10": lambda x: mp.log(x) / mp.ln10,
    "log1p": mpmath.log1p,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "sinpi": mp.sinpi,
    "cospi": mp.cospi,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": lambda x: mp.sinh(_clamp(x)),
    "cosh": lambda x: mp.cosh(_clamp(x)),
    "tanh": lambda x: mp.tanh(_clamp(x)),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "erf": _erf,
    "erfc": _erfc,
    "gelu": lambda x: x * _erfc(-x / mp.sqrt(2)) / 2,
    "gelu.tanh": lambda x: _gelu_tanh(x) if abs(x) < 1000 else max(x, mpf(0)),
}


def reference(op: str, values: tuple[float, ...]) -> mpf:
    if op == "pow":
        x, y = values
        power = _clamp(mp.log(abs(mpf(x))) * mpf(y)) if abs(x) != 1 else mpf(0)
        size = mp.exp(power)
        return -size if x < 0 and y == math.floor(y) and int(y) % 2 else size
    if op == "atan2":
        return _atan2_value(*values)
    (x,) = values
    if math.isinf(x):  # the limits that are angles
        return mp.sign(x) * mp.pi / 2
    return mpf(REFERENCE[op](mpf(x)))


def ulps(t: str, bits: int, true: mpf) -> float:
    """|result - true| in units of the spacing of t at the true value; infinite for a NaN or a wrong sign."""
    f = FORMATS[t]
    if is_nan(t, bits) or (true != 0 and bool(bits & f.sign) != (true < 0)):
        return math.inf
    top = f.bias + 1  # an infinity counts as 2^top, and so does everything beyond it
    limit = mpf(2) ** top
    got = to_float(t, bits)
    got = mp.sign(got) * limit if math.isinf(got) else mpf(got)
    true = max(min(true, limit), -limit)
    exponent = int(mp.frexp(true)[1]) - 1 if true else 1 - f.bias
    exponent = max(min(exponent, top - 1), 1 - f.bias)
    return float(abs(got - true) / mpf(2) ** (exponent - f.fraction))
