"""x[...] by masks, and by several arrays."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import _count, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def take_mask(x: Array, mask: Array) -> Array:
    """The elements of x where the mask, of the shape of its first axes, holds: in C order, along one axis."""
    if mask.dtype != _core.bool_:
        raise TypeError(f"an array of {mask.dtype} is no index; integers and bool are")
    if mask.ndim > x.ndim or any(m not in (0, size) for m, size in zip(mask.shape, x.shape)):  # 0: of nothing, as in NumPy
        raise IndexError(f"a mask of shape {mask.shape} does not fit an array of shape {x.shape}")
    from hologram._sorting import places

    rest = x.shape[mask.ndim :]
    if mask.size == 0:
        return zeros((0, *rest), x.dtype)
    return _core.take(x.reshape((mask.size, *rest)), places(mask.reshape(-1)), 0)


def _is_place(part: Any) -> bool:
    """Whether a part of a key names places, and no range of them."""
    return not isinstance(part, slice) and part is not None and part is not Ellipsis


def _whole_key(x: Array, key: tuple[Any, ...]) -> list[Any]:
    """The key with a part for each axis, of which masks are the numbers where they hold."""
    from hologram.array_api import nonzero

    parts: list[Any] = []
    for part in key:
        parts += nonzero(part) if isinstance(part, Array) and part.dtype == _core.bool_ else (part,)
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    rest = x.ndim - sum(part is not None and part is not Ellipsis for part in parts)
    if rest < 0:
        raise IndexError(f"too many indices: the array has {x.ndim} axes")
    return [*parts[:at], *(slice(None),) * rest, *parts[at + 1 :]]


def take_places(x: Array, key: tuple[Any, ...]) -> Array:
    """x by a key with arrays: integers in it name, together and with numbers, places; their shape stands where they stand side by
    side, else in front, as in NumPy."""
    parts = _whole_key(x, key)
    view = x[tuple(slice(None) if _is_place(part) else part for part in parts)]
    axes = [d for d, part in enumerate(parts) if _is_place(part)]
    first = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    order = [d for d in range(view.ndim) if d not in axes]
    order[first:first] = axes
    moved = view.transpose(tuple(order))
    sizes = moved.shape[first : first + len(axes)]
    flat = moved.reshape((*moved.shape[:first], _count(sizes), *moved.shape[first + len(axes) :]))
    return _core.take(flat, _joined([parts[d] for d in axes], sizes), first)


def _joined(numbers: list[Any], sizes: tuple[int, ...]) -> Any:
    """One number for several along axes of these sizes; beyond all of them where one is out of range."""
    place, is_out = _core._scalar(0, "int64"), _core._scalar(False, "bool")
    for number, size in zip(numbers, sizes, strict=True):
        if isinstance(number, Array):
            if number.dtype.kind != "integer":
                raise TypeError(f"an array of {number.dtype} is no index; integers and bool are")
            number = number.astype("int64")
        elif not -size <= number < size:
            raise IndexError(f"index {number} is out of range of an axis of {size} elements")
        else:
            number = _core._scalar(int(number), "int64")
        is_out = _core.logical_or(is_out, _core.logical_or(number < -size, number >= size))
        place = place * size + _core.where(number < 0, number + size, number)
    return _core.where(is_out, _count(sizes), place)
