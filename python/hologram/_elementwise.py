"""Functions of the array API that the table lacks, element by element: formulas over its operations."""

from __future__ import annotations

from hologram import _core
from hologram._create import beside

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def _pair(name: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands, one of which may be a Python number, as arrays of their type together."""
    x1 = beside(x1, x2)
    x2 = beside(x2, x1)
    if x1.dtype != x2.dtype:
        together = (_core._scalar(0, x1.dtype) + _core._scalar(0, x2.dtype)).dtype
        x1, x2 = x1.astype(together), x2.astype(together)
    return x1, x2


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
    """x1 * 2 to the x2, wrapped: 0 where x2 is the width or more. Integers, whose shapes broadcast.

    hg.bitwise_left_shift(hg.asarray([1, 2]), 3)        # [8, 16]"""
    return _shifted("shift_left", x1, x2)


def bitwise_right_shift(x1: Any, x2: Any, /) -> Any:
    """x1 / 2 to the x2, rounded down. Integers, whose shapes broadcast.

    hg.bitwise_right_shift(hg.asarray([8, -1]), 2)      # [2, -1]"""
    return _shifted("shift_right", x1, x2)


def pow(x1: Any, x2: Any, /) -> Any:  # noqa: A001
    """x1 to the x2; of integers by products."""
    return x1**x2


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    """Between min and max, numbers or arrays; NaN stays. Of x's type, but float32 of integers between floats."""
    has_arrays = any(isinstance(bound, _core.Array) for bound in (min, max))
    made = _core.clamp(x, min, max) if has_arrays else _core.clip(x, min, max)
    return made.astype(x.dtype) if made.dtype.kind == x.dtype.kind else made
