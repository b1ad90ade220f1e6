"""Methods of arrays that are no operation of the table. Each gives a new array: no method changes one."""

from __future__ import annotations

from hologram import _core, _order, _scans, _words
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import _count

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def flatten(x: Array, start: Any = 0, end: Any = -1, /) -> Array:
    if isinstance(start, str):
        raise TypeError(f"flatten: the elements come in C order, not {start!r}; x.T.flatten() has the other one")
    if x.ndim == 0:
        return x.reshape((1,))
    first, last = axis_of("flatten", x.ndim, start), axis_of("flatten", x.ndim, end)
    if first > last:
        raise ValueError(f"flatten: axis {first} comes behind axis {last}")
    return x.reshape((*x.shape[:first], _count(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def _along(x: Array, axis: Any) -> tuple[Array, Any]:
    """None: all elements in C order."""
    return (x, axis) if axis is not None else (ravel(x), 0)


def ravel(x: Array) -> Array:
    return x.reshape((x.size,))


def copy(x: Array) -> Array:
    return _core._copy(x)


def repeat(x: Array, repeats: Any, /, *others: Any, axis: Any = None) -> Any:
    from hologram.array_api import repeat

    if others:
        raise TypeError("repeat: the axis is named, as in x.repeat(2, axis=0); hologram.tile(x, (2, 3)) puts x side by side with itself")
    return repeat(x, repeats, axis=axis)


def sort(x: Array, axis: Any = -1, *, descending: Any = False, stable: Any = True) -> Any:
    x, axis = _along(x, axis)
    return _order.sort(x, axis=axis, descending=descending)


def argsort(x: Array, axis: Any = -1, *, descending: Any = False, stable: Any = True) -> Any:
    x, axis = _along(x, axis)
    return _order.argsort(x, axis=axis, descending=descending)


def cumsum(x: Array, axis: Any = None, dtype: Any = None) -> Any:
    x, axis = _along(x, axis)
    return _scans.cumulative_sum(x, axis, dtype=dtype)


def listed(x: Array) -> list[str]:
    """For dir(): without the names that are only there to say what to write instead."""
    return [name for name in object.__dir__(x) if hasattr(type(x), name)]


_words.explain()
