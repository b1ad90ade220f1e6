"""Functions of the array API that the table lacks, element by element: formulas over its operations."""

from __future__ import annotations

from hologram import _core

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_LARGE = 2.0**28  # from here on x * x + 1 is x * x in f64
_LOG_2 = 0.6931471805599453
_BITS = {"float16": "int16", "bfloat16": "int16", "float32": "int32", "float64": "int64"}


def _need_float(name: str, x: Any) -> None:
    if x.dtype.kind != "float":
        raise TypeError(f"{name} is of floats, not {x.dtype}; cast the array first: x.astype('float32')")


def _pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a Python number, as arrays of their type together."""
    if not isinstance(x1, _core.Array):
        x1 = _core._scalar(x1, x2.dtype)
    if not isinstance(x2, _core.Array):
        x2 = _core._scalar(x2, x1.dtype)
    if x1.dtype != x2.dtype:
        together = (_core._scalar(0, x1.dtype) + _core._scalar(0, x2.dtype)).dtype
        x1, x2 = x1.astype(together), x2.astype(together)
    return x1, x2


def _in_f64(name: str, function: Any, *arrays: Any) -> Any:
    """Of narrower types the f64 result, rounded once more; of integers and bools float32."""
    arrays = tuple(x if x.dtype.kind == "float" else x.astype("float32") for x in arrays)
    return function(*(x.astype("float64") for x in arrays)).astype(arrays[0].dtype)


def _acosh(x: Any) -> Any:
    t = _core.minimum(x, _LARGE) - 1.0
    near = _core.log1p(t + _core.sqrt(t * (t + 2.0)))
    return _core.where(x < 1.0, float("nan"), _core.where(x > _LARGE, _core.log(x) + _LOG_2, near))


def acosh(x: Any, /) -> Any:
    """Area hyperbolic cosine; below 1 NaN."""
    return _in_f64("acosh", _acosh, x)


def _asinh(x: Any) -> Any:
    a = _core.abs(x)
    t = _core.minimum(a, _LARGE)
    near = _core.log1p(t + t * t / (1.0 + _core.sqrt(t * t + 1.0)))
    return _core.copysign(_core.where(a > _LARGE, _core.log(a) + _LOG_2, near), x)


def asinh(x: Any, /) -> Any:
    """Area hyperbolic sine."""
    return _in_f64("asinh", _asinh, x)


def _atanh(x: Any) -> Any:
    a = _core.abs(x)
    return _core.copysign(_core.log1p(2.0 * a / (1.0 - a)) * 0.5, x)


def atanh(x: Any, /) -> Any:
    """Area hyperbolic tangent; of 1 infinite, beyond NaN."""
    return _in_f64("atanh", _atanh, x)


def _hypot(x1: Any, x2: Any) -> Any:
    a, b = _core.abs(x1), _core.abs(x2)
    largest = _core.maximum(a, b)
    # a power of two that keeps the squares among the normal numbers
    down, up, same = (_core._scalar(power, "float64") for power in (2.0**-600, 2.0**600, 1.0))
    scale = _core.where(largest > 2.0**500, down, _core.where(largest < 2.0**-400, up, same))
    a, b = a * scale, b * scale
    length = _core.sqrt(_core.fma(a, a, b * b)) / scale
    return _core.where(_core.logical_or(a == float("inf"), b == float("inf")), float("inf"), length)


def hypot(x1: Any, x2: Any, /) -> Any:
    """The length of the vector (x1, x2), without overflow on the way; beside an infinity a NaN does not matter."""
    return _in_f64("hypot", _hypot, *_pair("hypot", x1, x2))


def nextafter(x1: Any, x2: Any, /) -> Any:
    """The next number of the type from x1 in x2's direction."""
    x1, x2 = _pair("nextafter", x1, x2)
    _need_float("nextafter", x1)
    kind = x1.dtype
    bits = _core.bitcast(x1, _BITS[kind.name])
    moved = _core.bitcast(_core.where(_core.equal(x1 < x2, x1 > 0.0), bits + 1, bits - 1), kind)
    least = _core.copysign(_core.bitcast(_core._scalar(1, bits.dtype), kind), x2)
    near = _core.where(x1 == x2, x2, _core.where(x1 == 0.0, least, moved))
    return _core.where(_core.logical_or(x1 != x1, x2 != x2), float("nan"), near)


def power_of_integers(x1: Any, x2: Any) -> Any:
    """x1 to the x2 by squaring; wraps. Of a negative exponent 0, but of a Python number an error."""
    if isinstance(x2, int):
        if x2 < 0:
            raise ValueError(f"an integer to the {x2} is none; cast the array to a float type first")
        result, factor = x1 * 0 + 1, x1
        while x2:
            result = result * factor if x2 & 1 else result
            factor, x2 = factor * factor, x2 >> 1
        return result
    x1, x2 = _pair("pow", x1, x2)
    if x1.dtype.kind != "integer":
        raise TypeError(f"pow is of numbers, not {x1.dtype}")
    is_signed = not x1.dtype.name.startswith("u")
    result, factor = x1 * 0 + 1, x1
    for bit in range(8 * x1.dtype.itemsize - is_signed):
        result = _core.where(x2 & (1 << bit) != 0, result * factor, result)
        factor = factor * factor
    return _core.where(x2 < 0, 0, result) if is_signed else result


def _shifted(name: str, x1: Any, x2: Any) -> Any:
    """By counts beyond the width, too, which the table takes modulo it: in two steps."""
    x1, x2 = _pair(name, x1, x2)
    last, operation = 8 * x1.dtype.itemsize - 1, getattr(_core, name)
    return operation(operation(x1, _core.minimum(x2, last)), (x2 > last).astype(x1.dtype))


def bitwise_left_shift(x1: Any, x2: Any, /) -> Any:
    """x1 * 2 to the x2, wrapped: 0 where x2 is the width or more."""
    return _shifted("shift_left", x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 / 2 to the x2, rounded down."""
    return _shifted("shift_right", x1, x2)


def pow(x1: Any, x2: Any, /) -> Any:  # noqa: A001
    """x1 to the x2; of integers by products."""
    return x1**x2


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """Between min and max, numbers or arrays; NaN stays. Of x's type."""
    for limit, bound in ((min, _core.maximum), (max, _core.minimum)):
        if limit is not None:
            x = bound(x, limit).astype(x.dtype)
    return x


def _of_integers(name: str, value: Any) -> Any:
    """The table's function of floats, and what it is of the integers, which are whole and finite."""
    operation = getattr(_core, name)

    def function(x: Any, /) -> Any:
        return value(x) if x.dtype.kind == "integer" else operation(x)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = operation.__doc__
    return function


floor, ceil, trunc, round = (_of_integers(name, lambda x: x) for name in ("floor", "ceil", "trunc", "round"))  # noqa: A001
isnan, isinf = (_of_integers(name, lambda x: x != x) for name in ("isnan", "isinf"))
isfinite = _of_integers("isfinite", lambda x: x == x)
