"""Running sums, sorting, searching, sets: the array API's functions, over operations of the table. All orders are stable, NaNs
come last and equal nothing, -0 equals +0."""

from __future__ import annotations

from builtins import slice as _slice

from hologram import _core
from hologram._axes import axis_of
from hologram._create import beside, full, owned, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_MOST_SORTED = 1 << 31  # elements along the axis that sort_with_places takes


def _axis(name: str, x: Any, axis: Any) -> int:
    """None: its only one."""
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}: axis has to be given for an array of {x.ndim} axes")
        axis = 0
    return axis_of(name, x.ndim, axis)


def _at_end(name: str, x: Any, axis: Any) -> Any:
    """x with an axis moved to the end."""
    axis = _axis(name, x, axis)
    order = [d for d in range(x.ndim) if d != axis] + [axis]
    return x.transpose(tuple(order)) if axis != x.ndim - 1 else x


def _back(x: Any, axis: Any) -> Any:
    """_at_end's other way round."""
    if axis is None or axis % x.ndim == x.ndim - 1:
        return x
    order = list(range(x.ndim - 1))
    order.insert(axis % x.ndim, x.ndim - 1)
    return x.transpose(tuple(order))


def _part(x: Any, start: Any, stop: Any, axis: int = -1) -> Any:
    return x[(..., _slice(start, stop), *(_slice(None),) * (-1 - axis))]


# ---- running sums and products ----------------------------------------------------------------------------------------

def _running(name: str, first: int, x: Any, axis: Any, dtype: Any, include_initial: Any, *how: Any) -> Any:
    x = owned(x)
    axis = _axis(name, x, axis)
    scan = getattr(_core, name)
    made = scan(x, axis, *how) if dtype is None else scan(x.astype(dtype), axis, *how).astype(dtype)
    if not include_initial:
        return made
    shape = tuple(1 if d == axis else n for d, n in enumerate(made.shape))
    parts = [full(shape, first, made.dtype), made]
    return _core.concatenate(parts[::-1] if how[1] else parts, axis=axis)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False, exclusive: Any = False,
                   reverse: Any = False) -> Any:  # fmt: skip
    """Sums of all that stands before, and itself, along an axis. Types are sum's. exclusive: of 0 and all elements but the last;
    reverse: from the end to the beginning; include_initial: 0 stands in front, too."""
    return _running("cumulative_sum", 0, x, axis, dtype, include_initial, exclusive, reverse)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False, exclusive: Any = False,
                    reverse: Any = False) -> Any:  # fmt: skip
    """Products of all that stands before, and itself, along an axis, which has to be given if there are several. Types are prod's;
    the arguments those of cumulative_sum, with 1 for 0.

    hg.cumulative_prod(hg.asarray([1, 2, 3, 4]))        # [1, 2, 6, 24]"""
    return _running("cumulative_prod", 1, x, axis, dtype, include_initial, exclusive, reverse)


# ---- sorting ----------------------------------------------------------------------------------------------------------

def _keys(x: Any) -> Any:
    """Unsigned numbers in the order of x."""
    if x.dtype.kind == "bool":
        return x.astype("uint8")
    if x.dtype.name.startswith("u"):
        return x
    if x.dtype.kind == "float":
        x = x.astype("float32") if x.dtype.itemsize < 4 else x
        x = x + 0.0  # one zero, one NaN
    bits = 8 * x.dtype.itemsize
    key, top = _core.bitcast(x, f"uint{bits}"), 1 << (bits - 1)
    return key ^ top if x.dtype.kind == "integer" else _core.where(key >= top, ~key, key | top)


def _numbers(shape: tuple[int, ...]) -> Any:
    return _core.arange(0, shape[-1], 1, "int64").broadcast_to(shape)


def _order_of_two(keys: Any) -> Any:
    """Of 0 and 1: those that are 0 come first, in the order that they have."""
    number, zero = _numbers(keys.shape), keys == 0
    zeros_up_to = _core.cumulative_sum(zero, -1)
    return _core.scatter(number, _core.where(zero, zeros_up_to - 1, number - zeros_up_to + _part(zeros_up_to, -1, None)), number)


def _ordered(x: Any, axis: int, descending: Any) -> tuple[Any, Any]:
    """The elements along an axis in their order, and the numbers that they had. Two values are counted where the operation does not take
    so many of them."""
    if x.dtype.kind != "bool" or x.shape[axis] <= _MOST_SORTED:
        return _core.sort_with_places(x, axis, bool(descending))
    rows = _at_end("sort", x, axis)
    flat = rows.reshape((-1, rows.shape[-1])).astype("uint8")
    order = _back(_order_of_two(flat ^ 1 if descending else flat).reshape(rows.shape), axis)
    return _core.take_along(x, order, axis, "clamp"), order


def argsort(x: Any, /, *, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    """The numbers of the elements along an axis in their order: int64. Equal ones stay in theirs, NaNs come last.

    hg.argsort(hg.asarray([3.0, 1.0, 2.0]))             # [1, 2, 0]"""
    x = owned(x)
    return _ordered(x, _axis("argsort", x, axis), descending)[1]


def sort(x: Any, /, *, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    """The elements along an axis in their order, as a new array. NaNs come last, descending too.

    hg.sort(hg.asarray([3.0, 1.0, 2.0]), descending=True)    # [3., 2., 1.]"""
    x = owned(x)
    return _ordered(x, _axis("sort", x, axis), descending)[0]


def searchsorted(x1: Any, x2: Any, /, *, side: Any = "left", sorter: Any = None) -> Any:
    """Where each of x2 would stand among x1, which is sorted (by sorter): before those that equal it, or side='right' behind. int64, of
    x2's shape. ValueError: another side.

    hg.searchsorted(hg.asarray([1.0, 3.0]), hg.asarray([2.0, 3.0]))   # [1, 1]"""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    x1 = owned(x1)
    x2 = beside(x2, x1)
    if x1.dtype != x2.dtype:
        together = (_core._scalar(0, x1.dtype) + _core._scalar(0, x2.dtype)).dtype
        x1, x2 = x1.astype(together), x2.astype(together)
    sorted_keys, keys = _keys(x1 if sorter is None else _core.take(x1, sorter)), _keys(x2)
    low = zeros(x2.shape, "int64", device=x1.device)
    high = low + x1.shape[0]
    for _ in range(x1.shape[0].bit_length()):
        middle = low + high >> 1
        there = _core.take(sorted_keys, middle, 0, "clamp")
        goes_on = _core.logical_and(low < high, there < keys if side == "left" else there <= keys)
        low, high = _core.where(goes_on, middle + 1, low), _core.where(goes_on, high, middle)
    return low
