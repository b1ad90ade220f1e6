"""Selection: elements and places where something holds, values that occur, runs of equal ones, sets.

How many elements a result has depends on values, so the number is read: once, when the function is called. Where a size is given
nothing is read, and jit and vmap take it. Sets are sorted; -0 equals +0."""

from __future__ import annotations

from collections import namedtuple

from hologram import _core
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import _count, arrays_beside, full, owned, zeros
from hologram._order import searchsorted

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


class Held:
    """The elements where a mask holds, in C order."""

    def __init__(self, mask: Array, size: Any = None) -> None:
        self.mask, self.count, self.ends = mask, size, None
        if size is None:
            self.ends = ends = _core.mask_ends(mask)
            _core.compute(ends)  # so that a view of it needs no launch
            self.count = int(ends[-1])

    def of(self, x: Array) -> Array:
        """Those of an array of the mask's shape."""
        return _core.take_where(x, self.mask, self.ends, self.count)

    def places(self) -> Array:
        """Their numbers in C order: int64."""
        return self.of(_core.arange(0, self.mask.size, 1, "int64").reshape(self.mask.shape))


def _holding(x: Any) -> Array:
    """Where x is not 0, or true."""
    x = owned(x)
    return x if x.dtype.kind == "bool" else _core.not_equal(x, 0)


def _at_axes(numbers: Array, shape: tuple[int, ...]) -> list[Array]:
    """Numbers in C order as one along each axis."""
    found = []
    for size in reversed(shape):
        found.append(numbers % size if size and len(shape) > 1 else numbers)
        numbers = numbers // size if size else numbers
    return found[::-1]


# ---- by a mask --------------------------------------------------------------------------------------------------------

def nonzero(x: Any, /, *, size: Any = None) -> tuple[Array, ...]:
    """The places of elements that are not zero, in C order: a vector of int64 for each axis. How many there are is read at once, unless
    a size is given: then there are so many, of which the last are 0 if fewer are found. ValueError of an array without axes.

        rows, columns = hg.nonzero(hg.asarray([[0, 1], [2, 0]]))  # [0, 1], [1, 0]"""
    mask = _holding(x)
    if mask.ndim == 0:
        raise ValueError("nonzero: an array without axes has no places; write hg.argwhere(x), or x.reshape(1)")
    return tuple(_at_axes(Held(mask, size).places(), mask.shape))


def argwhere(x: Any, /, *, size: Any = None) -> Array:
    """The places of elements that are not zero, in C order: a row of int64 for each, with its number along each axis. `size` is
    nonzero's.

        hg.argwhere(hg.asarray([[0, 1], [2, 0]]))  # [[0, 1], [1, 0]]"""
    mask = _holding(x)
    places = Held(mask, size).places()
    return _core.stack(_at_axes(places, mask.shape), 1) if mask.ndim else zeros((places.size, 0), "int64", device=mask.device)


def flatnonzero(x: Any, /, *, size: Any = None) -> Array:
    """The numbers, in C order, of elements that are not zero: a vector of int64. `size` is nonzero's.

        hg.flatnonzero(hg.asarray([0, 3, 0, 5]))  # [1, 3]"""
    return Held(_holding(x), size).places()


def masked_select(x: Any, mask: Any, /, *, size: Any = None) -> Array:
    """The elements of x where a mask of bool holds, in C order: a vector of x's dtype. Their shapes broadcast; `size` is nonzero's.
    TypeError of a mask that is not of bool.

        hg.masked_select(hg.asarray([1.0, 2.0, 3.0]), hg.asarray([True, False, True]))  # [1., 3.]"""
    x, mask = arrays_beside((x, mask))
    if mask.dtype.kind != "bool":
        raise TypeError(f"masked_select: a mask is of bool, not {mask.dtype}; write mask != 0")
    shape = _together(x, mask)
    return Held(mask.broadcast_to(shape), size).of(x.broadcast_to(shape))


def compress(condition: Any, x: Any, /, axis: Any = None, *, size: Any = None) -> Array:
    """The parts of x along an axis where a vector of conditions holds (is not 0); None: the elements of x in C order. The condition may
    be shorter than the axis, and holds nowhere behind its end; ValueError of a longer one. `size` is nonzero's.

        hg.compress([False, True], hg.asarray([[1, 2], [3, 4], [5, 6]]), axis=0)  # [[3, 4]]"""
    condition, x = _holding(condition), owned(x)
    if condition.ndim != 1:
        raise ValueError(f"compress: the condition is a vector, not of shape {condition.shape}; hg.masked_select takes any")
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis_of("compress", x.ndim, axis))
    if condition.size > x.shape[axis]:
        raise ValueError(f"compress: {condition.size} conditions for an axis of {x.shape[axis]} elements")
    held = Held(condition, size)
    if x.ndim == 1:
        return held.of(x[: condition.size])
    return _core.take(x, held.places(), axis, "clamp") if x.shape[axis] else x


def extract(condition: Any, x: Any, /, *, size: Any = None) -> Array:
    """compress of both in C order: the elements of x where a condition holds.

        hg.extract(hg.asarray([[1, 0], [0, 1]]), hg.asarray([[1, 2], [3, 4]]))  # [1, 4]"""
    return compress(_holding(condition).reshape(-1), x, size=size)


def _together(*arrays: Array) -> tuple[int, ...]:
    """The shape that arrays have together."""
    from hologram.array_api import broadcast_arrays

    return broadcast_arrays(*arrays)[0].shape  # type: ignore[no-any-return]


# ---- values that occur ------------------------------------------------------------------------------------------------

unique_all_result = namedtuple("unique_all_result", "values indices inverse_indices counts")
unique_counts_result = namedtuple("unique_counts_result", "values counts")
unique_inverse_result = namedtuple("unique_inverse_result", "values inverse_indices")
run_lengths_result = namedtuple("run_lengths_result", "values starts lengths")


class _Runs:
    """Parts of an array along its first axis, of which equal ones stand side by side."""

    def __init__(self, parts: Array, equal_nan: bool, order: Array | None = None) -> None:
        self.parts, self.order = parts, order
        self.held = Held(_begins(parts, equal_nan))

    def values(self) -> Array:
        return self.held.of(self.parts) if self.parts.ndim == 1 else _core.take(self.parts, self.starts(), 0, "clamp")

    def starts(self) -> Array:
        return self.held.places()

    def indices(self) -> Array:
        """Where the first of each stood before they were ordered."""
        return self.held.of(self.order) if self.order is not None else self.starts()

    def counts(self) -> Array:
        starts, end = self.starts(), full((1,), self.parts.shape[0], "int64")
        return _core.concatenate([starts[1:], end], 0) - starts if starts.size else starts

    def inverse(self) -> Array:
        number = _core.cumulative_sum(self.held.mask, 0) - 1
        return _core.scatter(number, self.order, number, 0, "clamp") if self.order is not None and number.size else number


def _begins(parts: Array, equal_nan: bool) -> Array:
    """Which parts differ from the one before."""
    before, after = parts[:-1], parts[1:]
    differ = before != after
    if equal_nan and parts.dtype.kind == "float":
        differ = _core.logical_and(differ, _core.logical_or(before == before, after == after))
    if parts.ndim > 1:
        differ = _core.any(differ, tuple(range(1, parts.ndim)))
    return _core.concatenate([full((min(parts.shape[0], 1),), True), differ], 0)


def _ordered(parts: Array, axis: Any) -> tuple[Array, Array]:
    """The elements of a vector in order, or the parts of x along an axis by their elements in C order; and where each was."""
    if axis is None:
        return _core.sort_with_places(parts, 0)
    rows = parts.reshape((parts.shape[0], _count(parts.shape[1:])))
    order = _core.arange(0, parts.shape[0], 1, "int64")
    for column in reversed(range(rows.shape[1])):
        order = _core.take(order, _core.sort_with_places(_core.take(rows[:, column], order, 0, "clamp"), 0)[1], 0, "clamp")
    return _core.take(parts, order, 0, "clamp") if parts.shape[0] else parts, order


def _parts(name: str, x: Any, axis: Any) -> tuple[Array, int | None]:
    """x as parts along its first axis; None: as its elements."""
    from hologram.array_api import moveaxis

    x = owned(x)
    if axis is None:
        return x.reshape(-1), None
    axis = axis_of(name, x.ndim, axis)
    return moveaxis(x, axis, 0), axis


def _back(values: Array, axis: int | None) -> Array:
    from hologram.array_api import moveaxis

    return moveaxis(values, 0, axis) if axis else values


def unique(x: Any, /, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, axis: Any = None, *,
           equal_nan: Any = True) -> Any:  # fmt: skip
    """The values of x, each once and sorted; or the different parts of x along an axis, sorted by their elements in C order. With
    return_index also where each stands first, with return_inverse which of them each element is (of x's shape; along an axis a vector),
    with return_counts how often each occurs: then the result is a tuple. NaNs are one value, or each for itself if equal_nan is
    False. How many there are is read at once.

        hg.unique(hg.asarray([3, 1, 3]))  # [1, 3]
        hg.unique(hg.asarray([3, 1, 3]), return_counts=True)  # [1, 3], [1, 2]"""
    parts, at = _parts("unique", x, axis)
    ordered, order = _ordered(parts, axis)
    needs_order = return_index or return_inverse
    runs = _Runs(ordered, bool(equal_nan), order if needs_order else None)
    made = [_back(runs.values(), at)]
    if return_index:
        made.append(runs.indices())
    if return_inverse:
        made.append(runs.inverse() if axis is not None else runs.inverse().reshape(owned(x).shape))
    if return_counts:
        made.append(runs.counts())
    return tuple(made) if len(made) > 1 else made[0]


def unique_all(x: Any, /) -> Any:
    """The values of x, each once and sorted, where each stands first, which of them each element is, and how often each occurs: a named
    tuple. NaNs are each for itself. How many there are is read at once.

    values, indices, inverse, counts = hg.unique_all(hg.asarray([3, 1, 3]))"""
    return unique_all_result(*unique(x, True, True, True, equal_nan=False))


def unique_counts(x: Any, /) -> Any:
    """The values of x, each once and sorted, and how often each occurs: a named tuple. NaNs are each for itself. How many there are is
    read at once.

    values, counts = hg.unique_counts(hg.asarray([3, 1, 3]))  # [1, 3], [1, 2]"""
    return unique_counts_result(*unique(x, return_counts=True, equal_nan=False))


def unique_inverse(x: Any, /) -> Any:
    """The values of x, each once and sorted, and which of them each element is: a named tuple. NaNs are each for itself. How many there
    are is read at once.

    values, inverse = hg.unique_inverse(hg.asarray([3, 1, 3]))   # [1, 3], [1, 0, 1]"""
    return unique_inverse_result(*unique(x, return_inverse=True, equal_nan=False))


def unique_values(x: Any, /) -> Any:
    """The values of x, each once and sorted. NaNs are each for itself. How many there are is read at once.

    hg.unique_values(hg.asarray([3, 1, 3]))             # [1, 3]"""
    return unique(x, equal_nan=False)


def unique_consecutive(x: Any, /, return_inverse: Any = False, return_counts: Any = False, axis: Any = None) -> Any:
    """x without elements that equal the one before (in C order), or without such parts along an axis. With return_inverse also which of
    those that are left each element is, with return_counts how many it stands for: then the result is a tuple. NaN equals nothing. How
    many are left is read at once.

        hg.unique_consecutive(hg.asarray([1, 1, 2, 1]))  # [1, 2, 1]"""
    parts, at = _parts("unique_consecutive", x, axis)
    runs = _Runs(parts, False)
    made = [_back(runs.values(), at)]
    if return_inverse:
        made.append(runs.inverse() if axis is not None else runs.inverse().reshape(owned(x).shape))
    if return_counts:
        made.append(runs.counts())
    return tuple(made) if len(made) > 1 else made[0]


def run_lengths(x: Any, /) -> Any:
    """Runs of equal elements of x, in C order: the value of each, where it starts, and how many elements it has: a named tuple of
    vectors. NaN equals nothing. How many there are is read at once; hg.repeat(values, lengths) is x again.

        values, starts, lengths = hg.run_lengths(hg.asarray([7, 7, 5]))  # [7, 5], [0, 2], [2, 1]"""
    runs = _Runs(owned(x).reshape(-1), False)
    return run_lengths_result(runs.values(), runs.starts(), runs.counts())


# ---- sets -------------------------------------------------------------------------------------------------------------

def _of_one_type(name: str, x: Any, y: Any) -> list[Array]:
    """Two arrays, of one type; all elements of each in C order."""
    x, y = (part.reshape(-1) for part in arrays_beside((x, y)))
    together = _core.concatenate([x[:0], y[:0]], 0).dtype
    return [x.astype(together), y.astype(together)]


def _is_in(x: Array, ordered: Array) -> Array:
    """Which of x are among elements that are sorted; NaN is not."""
    if ordered.size == 0:
        return zeros(x.shape, "bool", device=x.device)
    return _core.take(ordered, searchsorted(ordered, x), 0, "clamp") == x


def isin(x: Any, values: Any, /, *, invert: Any = False) -> Array:
    """Which elements of x are among the values, an array of any shape; invert: which are not. bool, of x's shape. NaN is among none.

        hg.isin(hg.asarray([1, 2, 3]), hg.asarray([3, 1]))  # [True, False, True]"""
    shape = owned(x).shape
    x, values = _of_one_type("isin", x, values)
    made = _is_in(x, _core.sort_with_places(values, 0)[0]).reshape(shape)
    return _core.logical_not(made) if invert else made


def _once(x: Array) -> tuple[Array, Array]:
    """A vector sorted, and which elements differ from the one before."""
    ordered = _core.sort_with_places(x, 0)[0]
    return ordered, _begins(ordered, True)


def intersect1d(x: Any, y: Any, /, *, return_indices: Any = False) -> Any:
    """The values that x and y both have, each once and sorted; with return_indices also where each stands first in x and in y: a tuple of
    three. NaN is in none.

        hg.intersect1d(hg.asarray([3, 1, 2]), hg.asarray([2, 3, 3]))  # [2, 3]"""
    x, y = _of_one_type("intersect1d", x, y)
    (x, at_x), (y, at_y) = _core.sort_with_places(x, 0), _core.sort_with_places(y, 0)
    held = Held(_core.logical_and(_begins(x, True), _is_in(x, y)))
    values = held.of(x)
    if not return_indices:
        return values
    return values, held.of(at_x), _core.take(at_y, searchsorted(y, values), 0, "clamp") if y.size else at_y


def union1d(x: Any, y: Any, /) -> Array:
    """The values that x or y have, each once and sorted; NaNs are one.

        hg.union1d(hg.asarray([3, 1]), hg.asarray([2, 3]))  # [1, 2, 3]"""
    return unique(_core.concatenate(_of_one_type("union1d", x, y), 0))  # type: ignore[no-any-return]


def setdiff1d(x: Any, y: Any, /) -> Array:
    """The values of x that y has not, each once and sorted.

        hg.setdiff1d(hg.asarray([3, 1, 2, 3]), hg.asarray([2]))  # [1, 3]"""
    x, y = _of_one_type("setdiff1d", x, y)
    x, begins = _once(x)
    lacks = _core.logical_not(_is_in(x, _core.sort_with_places(y, 0)[0]))
    return Held(_core.logical_and(begins, lacks)).of(x)


def setxor1d(x: Any, y: Any, /) -> Array:
    """The values that only one of x and y has, each once and sorted.

        hg.setxor1d(hg.asarray([3, 1]), hg.asarray([2, 3]))  # [1, 2]"""
    (x, first), (y, second) = map(_once, _of_one_type("setxor1d", x, y))
    alone = [_core.logical_and(first, _core.logical_not(_is_in(x, y))), _core.logical_and(second, _core.logical_not(_is_in(y, x)))]
    return _core.sort_with_places(Held(_core.concatenate(alone, 0)).of(_core.concatenate([x, y], 0)), 0)[0]
