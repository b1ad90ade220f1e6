"""x[key] and x[key] = value where the key names places: by masks, lists, arrays of integers or bool, beside numbers, slices, None
and ..., as in NumPy."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import _count, asarray, plain, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_WHOLE = slice(None)


def as_value(x: Array, value: Any) -> Any:
    """What is assigned to elements of x, as an array or a number: lists, NumPy's arrays and scalars."""
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        return plain(value)
    if not isinstance(value, (list, tuple, range)):
        return asarray(value, device=x.device, copy=True)  # the object may change before x is computed
    try:
        return asarray(value, x.dtype, device=x.device)
    except TypeError:
        return asarray(value, device=x.device)


# ---- what a key says --------------------------------------------------------------------------------------------------

class _Numbers:
    """A part of a key that is an array of integers or bool. low, high: the ends of its integers, where they are known."""

    def __init__(self, array: Array, ends: tuple[int, int] | None = None) -> None:
        if array.dtype.kind not in ("integer", "bool"):
            raise TypeError(f"an array of {array.dtype} is no index; integers and bool are")
        self.array, self.ends = array, ends
        self.is_mask = array.dtype.kind == "bool"
        self.axes = array.ndim if self.is_mask else 1


def _ends(value: Any) -> tuple[int, int] | None:
    """The smallest and the largest of the integers that a list or an array of the host holds; None: it has none, or an Array."""
    if isinstance(value, Array):
        return None
    if isinstance(value, (list, tuple, range)):
        parts = [_ends(part) for part in value]
        known = [part for part in parts if part is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if known and len(known) == len(parts) else None
    if hasattr(value, "min"):
        return (int(value.min()), int(value.max())) if 0 not in value.shape else None
    return (int(value), int(value)) if hasattr(value, "__index__") else None


def _part(x: Array, part: Any) -> Any:
    """A part of a key as a slice, None, ..., an int or _Numbers."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    if isinstance(part, Array):
        is_one = part.ndim == 0 and part.dtype.kind == "integer" and not _core._is_of_examples(part)
        return int(part) if is_one else _Numbers(part)
    if isinstance(part, int) and not isinstance(part, bool):
        return part
    if isinstance(part, (list, tuple, range)):
        array = asarray(part, device=x.device)
        return _Numbers(array if array.size else array.astype("int64"), _ends(part) if array.dtype.kind == "integer" else None)
    if hasattr(part, "__index__") and getattr(part, "ndim", 0) == 0 and not isinstance(part, bool):
        try:
            return part.__index__()
        except TypeError:
            pass  # NumPy's bool
    try:
        array = asarray(part, device=x.device, copy=True)  # the object may change before x is computed
    except TypeError:
        raise TypeError(
            f"an index is a number, a slice, None, ... or an array of integers or bool, not {type(part).__name__}"
        ) from None
    return _Numbers(array, _ends(part) if array.dtype.kind == "integer" else None)


def _axes_of(part: Any) -> int:
    """How many axes of an array a part of a key takes."""
    return part.axes if isinstance(part, _Numbers) else 0 if part is None or part is Ellipsis else 1


def _parts(x: Array, key: Any) -> list[Any]:
    """The parts of a key, for all axes of x. What ... stands for comes behind it."""
    parts = [_part(x, part) for part in (key if isinstance(key, tuple) else (key,))]
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    rest = x.ndim - sum(_axes_of(part) for part in parts)
    if len(dots) > 1:
        raise IndexError("an index can have one ... only")
    if rest < 0:
        raise IndexError(f"too many indices: the array has {x.ndim} axes")
    at = dots[0] + 1 if dots else len(parts)
    return [*parts[:at], *(_WHOLE,) * rest, *parts[at:]]


class Key:
    """A key with places. They are named along the axes `axes` of x[basic], and their shape stands at its axis `first`."""

    def __init__(self, x: Array, key: Any) -> None:
        parts = _parts(x, key)
        named = [i for i, part in enumerate(parts) if isinstance(part, (int, _Numbers))]
        basic: list[Any] = []
        self.axes: list[int] = []
        self.named: list[tuple[Any, int, tuple[int, ...]]] = []  # a part, its first axis of x, the sizes of its axes
        self.first = axis = 0
        for i, part in enumerate(parts):
            count = _axes_of(part)
            if isinstance(part, (int, _Numbers)):
                if i == named[0] and named[-1] - named[0] + 1 == len(named):
                    self.first = len(basic)
                self.named.append((part, axis, x.shape[axis : axis + count]))
                self.axes += range(len(basic), len(basic) + count)
                basic += [_WHOLE] * count
            elif part is not Ellipsis:
                basic.append(part)
            axis += count
        self.basic = tuple(basic)
        self.is_whole = all(isinstance(part, slice) and part == _WHOLE for part in basic)
        alone = self.named[0][0] if len(named) == 1 else None
        self.mask = alone.array if isinstance(alone, _Numbers) and alone.is_mask else None  # the only place
        self._check()

    def _check(self) -> None:
        for part, axis, sizes in self.named:
            if isinstance(part, int):
                _check_number(part, axis, sizes[0])
            elif part.is_mask:
                for d, (length, size) in enumerate(zip(part.array.shape, sizes, strict=True), axis):
                    if length not in (0, size):  # 0: of nothing, as in NumPy
                        raise IndexError(f"a mask of {length} elements lies along axis {d}, which has {size}")

    def numbers(self) -> tuple[Array, tuple[int, ...]]:
        """Which elements of the named axes, as one, are named: a vector, and the shape that it stands for. How many elements a mask
        has is read."""
        numbers = [_number_of(*named) for named in self.named]
        shape = _broadcast([number.shape for number in numbers if isinstance(number, Array)])
        for part, axis, sizes in self.named:
            if 0 in shape or isinstance(part, int) or part.is_mask:
                continue
            for number in part.ends or (0,):  # not known: at least there is one
                _check_number(number, axis, sizes[0])
        number = numbers[0]
        if len(numbers) > 1:
            good = [isinstance(part, _Numbers) and part.is_mask for part, _, _ in self.named]
            number = _joined(list(zip(numbers, [_count(sizes) for _, _, sizes in self.named], good, strict=True)))
        return number.broadcast_to(shape).reshape(-1), shape


def _check_number(number: int, axis: int, size: int) -> None:
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of range of axis {axis}, which has {size} elements")


def _number_of(part: Any, axis: int, sizes: tuple[int, ...]) -> Any:
    """The numbers that a part of a key names: an int, or an array."""
    if isinstance(part, int):
        return part
    if not part.is_mask:
        return part.array if part.ends else _core.axis_numbers(part.array, axis, sizes[0])  # what a fault is to say of them
    if part.array.ndim == 0:
        return zeros((int(bool(part.array)),), "int64")
    from hologram._selection import Held

    return Held(part.array).places()


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that index arrays have together."""
    made = [1] * max(map(len, shapes))
    for shape in shapes:
        for d, size in enumerate(shape, len(made) - len(shape)):
            if size != 1 and made[d] not in (1, size):
                raise IndexError(f"index arrays of shapes {', '.join(map(str, shapes))} do not broadcast to one shape")
            made[d] = size if made[d] == 1 else made[d]
    return tuple(made)


def _joined(places: list[tuple[Any, int, bool]]) -> Any:
    """One number for several along axes of these sizes; the lowest of all, which is nobody's, where one is out of range."""
    place, is_out = _core._scalar(0, "int64"), _core._scalar(False, "bool")
    for number, size, is_good in places:
        if isinstance(number, int):
            number = _core._scalar(number % size if size else 0, "int64")
        elif not is_good:
            number = number.astype("int64")
            is_out = _core.logical_or(is_out, _core.logical_or(number < -size, number >= size))
            number = _core.where(number < 0, number + size, number)
        place = place * size + number
    return _core.where(is_out, -(2**63), place)


# ---- reading and assigning --------------------------------------------------------------------------------------------

def fitted(value: Array, shape: tuple[int, ...]) -> Array:
    """A value broadcast to elements that are named by places. As in NumPy, which reshapes it to its last axes, an empty value may have
    too many leading axes of any size; to slices, as there, only axes of one element may be too many."""
    extra = value.ndim - len(shape)
    if extra > 0 and 0 in value.shape[extra:]:
        value = value.reshape(value.shape[extra:])
    return _core._fitted(value, shape)


class Split:
    """x[key.basic] as [before, the named elements, after]."""

    def __init__(self, x: Array, key: Key) -> None:
        self.view = view = x if key.is_whole else x[key.basic]
        order = [d for d in range(view.ndim) if d not in key.axes]
        order[key.first : key.first] = key.axes
        self._order = order
        moved = view if order == list(range(view.ndim)) else view.transpose(tuple(order))
        self._shape = moved.shape
        end = key.first + len(key.axes)
        self.before, self.after = moved.shape[: key.first], moved.shape[end:]
        sizes = (_count(self.before), _count(moved.shape[key.first : end]), _count(self.after))
        self.flat = moved.reshape(sizes)

    def back(self, flat: Array) -> Array:
        """x[key.basic] of other elements."""
        moved = flat.reshape(self._shape)
        order = self._order
        return moved if order == list(range(len(order))) else moved.transpose(tuple(order.index(d) for d in range(len(order))))


def take(x: Array, key: Any) -> Array:
    """x[key]."""
    read = Key(x, key)
    if read.mask is not None and read.is_whole and read.mask.shape == x.shape:
        from hologram._selection import Held

        return Held(read.mask).of(x)
    number, shape = read.numbers()
    split = Split(x, read)
    made = (*split.before, *shape, *split.after)
    if 0 in made:
        return zeros(made, x.dtype, device=x.device)
    return _core.take(split.flat, number, 1).reshape(made)


def put(x: Array, key: Any, value: Array) -> Array:
    """x with a value of its type at x[key]."""
    read = Key(x, key)
    made = _put_by_mask(x, read, value) if read.mask is not None else None
    if made is None:
        number, shape = read.numbers()
        split = Split(x, read)
        fit = fitted(value, (*split.before, *shape, *split.after))
        if fit.size == 0:
            return x
        rows = fit.reshape((split.flat.shape[0], -1, split.flat.shape[2]))
        made = split.back(_core.scatter(split.flat, number[None, :, None], rows, 1))
    return update(x, read, made)


def update(x: Array, key: Key, part: Array) -> Array:
    """x with other elements at x[key.basic]."""
    if key.is_whole:
        return part
    made = _core._twin(x)
    made[key.basic] = part
    return made


def _put_by_mask(x: Array, key: Key, value: Array) -> Array | None:
    """x[key.basic] with a value at a mask; None: how many elements that are is to be known, since it has one for each."""
    mask, axes, view = key.mask, len(key.axes), x if key.is_whole else x[key.basic]
    assert mask is not None
    after = view.shape[key.first + axes :]
    own = value.ndim - 1 - len(after)  # the axis of the value that lies along the elements of the mask
    if mask.shape != view.shape[key.first : key.first + axes] or (own >= 0 and value.shape[own] != 1):
        return None
    before = view.shape[: key.first]
    fit = fitted(value, (*before, 1, *after)).reshape((*before, *(1,) * axes, *after)) if value.ndim else value
    return _core.where(mask.reshape((*mask.shape, *(1,) * len(after))), fit, view)
