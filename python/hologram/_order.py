"""Order along an axis: sorting, searching, the first of many, medians and quantiles, over operations of the table. All orders are
stable, NaN is the greatest and equals nothing, -0 equals +0."""

from __future__ import annotations

from builtins import slice as _slice
from operator import index as _index

from hologram import _core
from hologram._axes import axes_of, axis_of
from hologram._create import beside, owned, plain

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


# ---- sorting ----------------------------------------------------------------------------------------------------------

def _order_of_two(keys: Any) -> Any:
    """Of 0 and 1 along the last axis: those that are 0 come first, in the order that they have."""
    number, zero = _core.arange(0, keys.shape[-1], 1, "int64").broadcast_to(keys.shape), keys == 0
    zeros_up_to = _core.cumulative_sum(zero, -1)
    return _core.scatter(number, _core.where(zero, zeros_up_to - 1, number - zeros_up_to + zeros_up_to[..., -1:]), number)


def ordered(x: Any, axis: int, descending: Any) -> tuple[Any, Any]:
    """The elements along an axis in their order, and the numbers that they had. Two values are counted where the operation does not take
    so many of them."""
    if x.dtype.kind != "bool" or x.shape[axis] <= _MOST_SORTED:
        return _core.sort_with_places(x, axis, bool(descending))
    rows = x.swap(axis, -1)
    flat = rows.reshape((-1, rows.shape[-1])).astype("uint8")
    order = _order_of_two(flat ^ 1 if descending else flat).reshape(rows.shape).swap(axis, -1)
    return _core.take_along(x, order, axis, "clamp"), order


def argsort(x: Any, /, *, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    """The numbers of the elements along an axis in their order: int64. Equal ones stay in theirs; NaN is the greatest.

    hg.argsort(hg.asarray([3.0, 1.0, 2.0]))             # [1, 2, 0]"""
    x = owned(x)
    return ordered(x, _axis("argsort", x, axis), descending)[1]


def sort(x: Any, /, *, axis: Any = -1, descending: Any = False, stable: Any = True) -> Any:
    """The elements along an axis in their order, as a new array. NaN is the greatest: last, and descending first.

    hg.sort(hg.asarray([3.0, 1.0, 2.0]), descending=True)    # [3., 2., 1.]"""
    x = owned(x)
    return ordered(x, _axis("sort", x, axis), descending)[0]


def lexsort(keys: Any, axis: Any = -1) -> Any:
    """The numbers of the elements along an axis in the order of the last key; where it has equal ones, in that of the one before it, and
    so on: int64. Keys are arrays of one shape, or the rows of one array.

    hg.lexsort((hg.asarray([2, 1, 1]), hg.asarray([0, 5, 0])))    # [2, 0, 1]"""
    return _core.lexsort(*map(owned, keys), axis=axis)


def _kth(name: str, size: int, kth: Any) -> None:
    for number in (kth,) if not hasattr(kth, "__iter__") else kth:
        if not -size <= _index(number) < size:
            raise ValueError(f"{name}: kth is {number}; it has to lie from {-size} to {size - 1}, numbers of the {size} elements")


def partition(x: Any, kth: Any, axis: Any = -1) -> Any:
    """The elements along an axis (None: all), of which those before place kth are not above that one, and those behind it not below:
    here all of them in order. ValueError: there is no such place.

    hg.partition(hg.asarray([3, 1, 2]), 1)              # [1, 2, 3]"""
    x, axis = (owned(x).ravel(), 0) if axis is None else (owned(x), axis)
    _kth("partition", x.shape[_axis("partition", x, axis)], kth)
    return sort(x, axis=axis)


def argpartition(x: Any, kth: Any, axis: Any = -1) -> Any:
    """The numbers of partition's elements: int64.

    hg.argpartition(hg.asarray([3, 1, 2]), 1)           # [1, 2, 0]"""
    x, axis = (owned(x).ravel(), 0) if axis is None else (owned(x), axis)
    _kth("argpartition", x.shape[_axis("argpartition", x, axis)], kth)
    return argsort(x, axis=axis)


# ---- searching --------------------------------------------------------------------------------------------------------

def searchsorted(x1: Any, x2: Any, /, *, side: Any = "left", sorter: Any = None) -> Any:
    """Where each of x2 would stand among x1, which is sorted along its last axis (by sorter): before those that equal it, or
    side='right' behind. int64, of x2's shape; x1 has one axis, or all but the last are x2's. ValueError: another side or shape.

    hg.searchsorted(hg.asarray([1.0, 3.0]), hg.asarray([2.0, 3.0]))   # [1, 1]"""
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    x1 = owned(x1)
    return _core.searchsorted(x1, beside(x2, x1), sorter, side)


# ---- medians and quantiles --------------------------------------------------------------------------------------------

def _rows(name: str, x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """x with the axes, all of them for None, as one at the end; which they are."""
    x = owned(x)
    axes = tuple(range(x.ndim)) if axis is None else axes_of(name, x.ndim, axis)
    if len(axes) == 1:
        return (x if axes[0] == x.ndim - 1 else _core.permute(x, [d for d in range(x.ndim) if d != axes[0]] + [axes[0]])), axes
    others = [d for d in range(x.ndim) if d not in axes]
    return _core.permute(x, [*others, *axes]).reshape((*(x.shape[d] for d in others), -1)), axes


def _kept(made: Any, axes: tuple[int, ...], keepdims: Any, in_front: int = 0) -> Any:
    """With an axis of one element for each that is gone."""
    shape = list(made.shape)
    for axis in sorted(axes) if keepdims else ():
        shape.insert(in_front + axis, 1)
    return made.reshape(tuple(shape)) if keepdims else made


def median(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """The middle one of the elements along one or several axes (None: all), in order, or the mean of the two: computed in f64 and
    rounded once; of integers float32. A NaN makes it NaN; ValueError where there are no elements.

    hg.median(hg.asarray([5.0, 1.0, 2.0, 9.0]))         # 3.5"""
    rows, axes = _rows("median", x, axis)
    return _kept(_core.median(rows), axes, keepdims)


def nanmedian(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    """median of those elements that are no NaN; of none NaN.

    hg.nanmedian(hg.asarray([5.0, float("nan"), 2.0]))  # 3.5"""
    rows, axes = _rows("nanmedian", x, axis)
    return _kept(_core.median(rows, ignore_nan=1), axes, keepdims)


def _quantiles(name: str, x: Any, q: Any, scale: float, axis: Any, method: Any, keepdims: Any, ignore_nan: int) -> Any:
    rows, axes = _rows(name, x, axis)
    given = q if isinstance(q, _core.Array) else plain(q)
    if not isinstance(given, _core.Array):
        numbers = [given] if isinstance(given, (int, float)) else list(_flat(given))
        for number in numbers:
            if not 0 <= number <= scale:
                raise ValueError(f"{name}: q is {number}; it has to lie from 0 to {scale:g}")
    shares = _core.asarray(given, "float64") if not isinstance(given, _core.Array) else given.astype("float64")
    shares = shares / scale if scale != 1 else shares
    made = _core.quantile(rows, shares.reshape(-1), -1, method, ignore_nan)
    made = _core.permute(made, [made.ndim - 1, *range(made.ndim - 1)])
    return _kept(made.reshape((*shares.shape, *made.shape[1:])), axes, keepdims, shares.ndim)


def _flat(numbers: Any) -> Any:
    for number in numbers:
        if hasattr(number, "__iter__"):
            yield from _flat(number)
        else:
            yield number


def quantile(x: Any, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False) -> Any:
    """What a share q of the elements along one or several axes (None: all) is below: the axes of q come first. Methods are NumPy's
    (Hyndman and Fan, "Sample Quantiles in Statistical Packages", 1996); computed in f64 and rounded once; of integers float32. A NaN
    makes it NaN. ValueError: q outside 0 to 1, or another method.

    hg.quantile(hg.asarray([1.0, 2.0, 4.0]), [0.5, 0.75])    # [2., 3.]"""
    return _quantiles("quantile", x, q, 1, axis, method, keepdims, 0)


def nanquantile(x: Any, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False) -> Any:
    """quantile of those elements that are no NaN; of none NaN.

    hg.nanquantile(hg.asarray([1.0, float("nan"), 4.0]), [0.0, 1.0])   # [1., 4.]"""
    return _quantiles("nanquantile", x, q, 1, axis, method, keepdims, 1)


def percentile(x: Any, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False) -> Any:
    """quantile of q / 100.

    hg.percentile(hg.asarray([1.0, 2.0, 4.0]), [50, 75])     # [2., 3.]"""
    return _quantiles("percentile", x, q, 100, axis, method, keepdims, 0)


def nanpercentile(x: Any, q: Any, axis: Any = None, method: Any = "linear", keepdims: Any = False) -> Any:
    """nanquantile of q / 100.

    hg.nanpercentile(hg.asarray([1.0, float("nan"), 4.0]), [0, 100])   # [1., 4.]"""
    return _quantiles("nanpercentile", x, q, 100, axis, method, keepdims, 1)
