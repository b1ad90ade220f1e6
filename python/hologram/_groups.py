"""Rows that belong together by their keys: hg.group(keys).mean(x)."""

from __future__ import annotations

from hologram import _core
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import full, owned, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_FEW = 4  # times as many numbers as rows: integer keys among which they are found without sorting


def group(*keys: Any) -> Group:
    """The groups of rows whose keys are equal: keys is a vector of any type, or several of one length. The groups are in ascending
    order of their keys, of the first vector first; NaN equals NaN here and is the greatest, -0 equals +0. How many there are is read
    once (of one vector of integers its least and greatest key, too). ValueError: no vectors, or of other lengths.

    sales = hg.group(hg.asarray([2, 1, 2]))
    sales.keys, sales.sum(hg.asarray([1.0, 2.0, 3.0]))  # [1, 2], [2., 4.]"""
    columns = [owned(key) for key in keys]
    if not columns or any(x.ndim != 1 for x in columns) or len({x.shape for x in columns}) != 1:
        raise ValueError(f"group: keys are one or more vectors of one length, not of shapes {[x.shape for x in columns]}")
    return Group(columns)


class Group:
    """Groups of rows, as hg.group makes them: `keys`, a vector with each group's key, or a tuple of one for each vector of keys; `codes`,
    the number of each row's group, int64; `size`, how many groups there are. A method takes an array with a row for each key along an
    axis, in whose place its result has the groups; what it is of those rows is that of hg.segment_sum and others."""

    def __init__(self, columns: list[Array]) -> None:
        self._rows = columns[0].shape[0]
        found = _by_range(columns[0]) if len(columns) == 1 and columns[0].dtype.kind == "integer" else None
        self.codes, self.size = _by_order(columns) if found is None else found
        numbers, back = _core.arange(0, self._rows, 1, "int64"), _core.flip(self.codes)
        none = zeros((self.size,), "int64", device=columns[0].device)
        self._first = _core.scatter(none, back, _core.flip(numbers))
        self._last = _core.scatter(none, self.codes, numbers)
        made = tuple(_core.take(x, self._first) for x in columns)
        self.keys: Any = made if len(made) > 1 else made[0]

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        return f"<{self.size} groups of {self._rows} rows>"

    def _of(self, name: str, x: Any, axis: Any) -> tuple[Any, int]:
        x = owned(x)
        axis = axis_of(name, x.ndim, axis)
        if x.shape[axis] != self._rows:
            raise ValueError(f"{name}: along axis {axis} there are {x.shape[axis]} rows, not one for each of {self._rows} keys")
        return x, axis

    def count(self) -> Array:
        """How many rows each group has: int64."""
        return _core.bincount(self.codes, None, self.size)

    def sum(self, x: Any, axis: int = 0) -> Array:
        """The groups' sums; types are hg.sum's."""
        x, axis = self._of("sum", x, axis)
        return _core.segment_sum(x, self.codes, self.size, axis)

    def mean(self, x: Any, axis: int = 0) -> Array:
        """The groups' means; types are hg.mean's."""
        x, axis = self._of("mean", x, axis)
        return _core.segment_mean(x, self.codes, self.size, axis)

    def var(self, x: Any, axis: int = 0, ddof: float = 0.0) -> Array:
        """Mean squares of the differences from the groups' means, over n - ddof; NaN where that is not above 0."""
        x, axis = self._of("var", x, axis)
        x = x if x.dtype.kind == "float" else x.astype("float32")
        away = x - _core.take(_core.segment_mean(x, self.codes, self.size, axis), self.codes, axis)
        n = self.count().reshape(tuple(-1 if d == axis else 1 for d in range(x.ndim))).astype(x.dtype) - ddof
        return _core.where(n > 0, _core.segment_sum(away * away, self.codes, self.size, axis) / n, float("nan"))

    def std(self, x: Any, axis: int = 0, ddof: float = 0.0) -> Array:
        """Square roots of var."""
        return _core.sqrt(self.var(x, axis, ddof))

    def first(self, x: Any, axis: int = 0) -> Array:
        """The row of each group that stands first."""
        x, axis = self._of("first", x, axis)
        return _core.take(x, self._first, axis)

    def last(self, x: Any, axis: int = 0) -> Array:
        """The row of each group that stands last."""
        x, axis = self._of("last", x, axis)
        return _core.take(x, self._last, axis)

    def any(self, x: Any, axis: int = 0) -> Array:
        """Whether one of a group's elements is not 0: bool."""
        x, axis = self._of("any", x, axis)
        return _core.segment_sum(x if x.dtype.kind == "bool" else x != 0, self.codes, self.size, axis) > 0

    def all(self, x: Any, axis: int = 0) -> Array:
        """Whether none of a group's elements is 0: bool."""
        x, axis = self._of("all", x, axis)
        return _core.segment_sum(x if x.dtype.kind == "bool" else x != 0, self.codes, self.size, axis) == self.count().reshape(
            tuple(-1 if d == axis else 1 for d in range(x.ndim)))


def _by_range(key: Array) -> tuple[Array, int] | None:
    """Codes and how many groups there are, by counting each number from the least to the greatest; None: there are too many."""
    if key.size == 0:
        return None
    low, high = _core.stack([_core.min(key), _core.max(key)]).tolist()
    if high - low >= _FEW * key.size:
        return None
    place = (key.astype("int64") - (low - 2**64 if low >= 2**63 else low))
    numbers = _core.cumulative_sum(_core.bincount(place, None, high - low + 1) > 0, 0)
    return _core.take(numbers, place) - 1, int(numbers[-1])


def _by_order(columns: list[Array]) -> tuple[Array, int]:
    """The same by sorting."""
    rows = columns[0].shape[0]
    if rows == 0:
        return zeros((0,), "int64", device=columns[0].device), 0
    order = None
    for key in reversed(columns):
        own = _core.sort_with_places(key if order is None else _core.take(key, order), 0, False)[1]
        order = own if order is None else _core.take(order, own)
    is_new = _core._scalar(False, "bool")
    for key in columns:
        made = _core.take(key, order)
        before, after = made[:-1], made[1:]
        differs = before != after
        if key.dtype.kind == "float":
            differs = _core.logical_and(differs, _core.logical_not(_core.logical_and(before != before, after != after)))
        is_new = _core.logical_or(is_new, differs)
    number = _core.cumulative_sum(_core.concatenate([full((1,), False), is_new], 0), 0)
    return _core.scatter(number, order, number), int(number[-1]) + 1
