"""Running results along an axis: sums, products, extremes, logarithms of sums, also within segments. Over operations of the table."""

from __future__ import annotations

from hologram import _core
from hologram._axes import axis_of
from hologram._create import full, owned
from hologram._dtypes import finfo, iinfo

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

    from hologram._core import Array



def _first(what: str, kind: Any) -> Any:
    """What changes nothing."""
    if what in ("sum", "prod"):
        return int(what == "prod")
    if kind.kind == "float":
        return finfo(kind).max * float("inf") * (1 if what == "min" else -1)
    return iinfo(kind).max if what == "min" else iinfo(kind).min


def _places(name: str, x: Any, axis: int, segments: Any, reverse: bool) -> Any:
    """How many elements of its segment are before each, in the direction of the scan."""
    segments = owned(segments)
    if segments.dtype.kind == "float":
        raise TypeError(f"{name}: segments are bool (where one begins) or integers (runs of equal ones), not {segments.dtype}")
    if segments.shape == x.shape:
        return _core.segment_places(segments, axis, reverse)
    if segments.shape != (x.shape[axis],):
        raise ValueError(f"{name}: segments has shape {segments.shape}; it has x's, {x.shape}, or is a vector of {x.shape[axis]} along "
                         f"axis {axis}")  # fmt: skip
    along = tuple(n if d == axis else 1 for d, n in enumerate(x.shape))
    return _core.segment_places(segments, 0, reverse).reshape(along)


def _running(what: str, x: Any, axis: Any, dtype: Any, include_initial: Any, exclusive: Any, reverse: Any,
             segments: Any) -> Array:  # fmt: skip
    name = f"cumulative_{what}"
    x = owned(x) if dtype is None else owned(x).astype(dtype)
    axis = axis_of(name, x.ndim, axis)
    exclusive, reverse = bool(exclusive), bool(reverse)
    if segments is None:
        made: Array = getattr(_core, name)(x, axis, exclusive, reverse)
    elif include_initial:
        raise ValueError(f"{name}: include_initial=True is of whole lines; exclusive=True begins each segment with that value")
    else:
        places = _places(name, x, axis, segments, reverse)
        made = _core.segmented_scan(x, places, axis, what, exclusive, reverse)
    if dtype is not None:
        made = made.astype(dtype)
    if not include_initial:
        return made
    shape = tuple(1 if d == axis else n for d, n in enumerate(made.shape))
    parts = [full(shape, _first(what, made.dtype), made.dtype), made]
    return _core.concatenate(parts[::-1] if reverse else parts, axis=axis)


def cumulative_sum(x: Any, /, axis: int = -1, *, dtype: Any = None, include_initial: bool = False, exclusive: bool = False,
                   reverse: bool = False, segments: Any = None) -> Array:  # fmt: skip
    """The sum of all elements up to each one along an axis, of x's shape; types are sum's, or what `dtype` says, in which it is computed.

    exclusive: of 0 and all elements before each. reverse: from the end to the beginning. include_initial: 0 stands in front, too.
    segments: sums begin anew where a segment does: a bool array that is true there, or integers whose runs of equal ones are the segments,
    of x's shape or a vector along the axis (the operator of flags and values of Blelloch, "Prefix sums and their applications", 1990).
    Chunks of 256 are counted from the axis' end, so the bits of sums of floats depend on where their segment begins modulo 256; rows of
    a batch are the exact form. ValueError: an axis or a shape that does not fit; TypeError: segments of floats.

    hg.cumulative_sum(hg.asarray([1, 2, 3, 4]))                              # [1, 3, 6, 10]
    hg.cumulative_sum(hg.asarray([1, 2, 3, 4]), segments=[7, 7, 9, 9])       # [1, 3, 3, 7]"""
    return _running("sum", x, axis, dtype, include_initial, exclusive, reverse, segments)


def cumulative_prod(x: Any, /, axis: int = -1, *, dtype: Any = None, include_initial: bool = False, exclusive: bool = False,
                    reverse: bool = False, segments: Any = None) -> Array:  # fmt: skip
    """The product of all elements up to each one along an axis, with the arguments of cumulative_sum and 1 for 0. Types are prod's.

    hg.cumulative_prod(hg.asarray([1, 2, 3, 4]))        # [1, 2, 6, 24]"""
    return _running("prod", x, axis, dtype, include_initial, exclusive, reverse, segments)


def cumulative_max(x: Any, /, axis: int = -1, *, dtype: Any = None, include_initial: bool = False, exclusive: bool = False,
                   reverse: bool = False, segments: Any = None) -> Array:  # fmt: skip
    """The largest element up to each one along an axis, with the arguments of cumulative_sum and the type's least number for 0; a NaN wins,
    -0 < +0. The gradient goes to the element that stands, the last of equal ones.

    hg.cumulative_max(hg.asarray([1, 3, 2, 5]))         # [1, 3, 3, 5]"""
    return _running("max", x, axis, dtype, include_initial, exclusive, reverse, segments)


def cumulative_min(x: Any, /, axis: int = -1, *, dtype: Any = None, include_initial: bool = False, exclusive: bool = False,
                   reverse: bool = False, segments: Any = None) -> Array:  # fmt: skip
    """The smallest element up to each one along an axis, as cumulative_max with the type's greatest number.

    hg.cumulative_min(hg.asarray([4, 2, 3, 1]))         # [4, 2, 2, 1]"""
    return _running("min", x, axis, dtype, include_initial, exclusive, reverse, segments)


def cumulative_logsumexp(x: Any, /, axis: int = -1, *, dtype: Any = None, include_initial: bool = False, exclusive: bool = False,
                         reverse: bool = False, segments: Any = None) -> Array:  # fmt: skip
    """The logarithm of the sum of e^x of all elements up to each one along an axis, with the arguments of cumulative_sum and -inf for 0.

    hg.cumulative_logsumexp(hg.asarray([0.0, -1e9]))    # [0., 0.]"""
    return _running("logsumexp", x, axis, dtype, include_initial, exclusive, reverse, segments)
