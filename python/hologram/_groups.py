"""Rows that belong together by their keys: hg.group(keys).mean(x)."""

from __future__ import annotations

from hologram import _core
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import owned, zeros
from hologram._selection import Held, _begins

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
        self.keys: Any
        self.size: int
        is_one = len(columns) == 1 and columns[0].dtype.kind == "integer" and self._rows > 0
        if not (is_one and self._by_range(columns[0])):
            self._by_order(columns)

    def _by_range(self, key: Array) -> bool:
        """Finds the groups by counting each number from the least key to the greatest; False: these are too many."""
        low, high = _core.stack([_core.min(key), _core.max(key)]).tolist()
        count = high - low + 1
        if count > _FEW * key.size:
            return False
        low = low - 2**64 if low >= 2**63 else low  # as int64 has it
        place = key.astype("int64") - low
        held = Held(_core.bincount(place, None, count) > 0)
        self.codes = _core.take(_core.cumulative_sum(held.mask, 0), place) - 1
        self.keys = (held.places() + low).astype(key.dtype)
        self.size = self.keys.size
        return True

    def _by_order(self, columns: list[Array]) -> None:
        """The same by sorting."""
        order = _core.lexsort(columns[::-1], 0)
        is_first = zeros((self._rows,), "bool", device=order.device)
        for key in columns if self._rows else []:
            is_first = _core.logical_or(is_first, _begins(_core.take(key, order), True))
        held = Held(is_first)
        first = held.of(order)
        self.codes = _core.scatter(order, order, _core.cumulative_sum(is_first, 0) - 1) if self._rows else order
        made = [_core.take(x, first) if self._rows else x for x in columns]
        self.keys = tuple(made) if len(made) > 1 else made[0]
        self.size = first.size

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

    def _segments(self, name: str, x: Any, axis: int) -> Array:
        x, axis = self._of(name, x, axis)
        made: Array = getattr(_core, f"segment_{name}")(x, self.codes, self.size, axis)
        return made

    def count(self) -> Array:
        """How many rows each group has: int64."""
        return _core.bincount(self.codes, None, self.size)

    def sum(self, x: Any, axis: int = 0) -> Array:
        """The groups' sums; types are hg.sum's."""
        return self._segments("sum", x, axis)

    def prod(self, x: Any, axis: int = 0) -> Array:
        """The groups' products; types are hg.prod's."""
        return self._segments("prod", x, axis)

    def max(self, x: Any, axis: int = 0) -> Array:
        """The largest element of each group; a NaN wins."""
        return self._segments("max", x, axis)

    def min(self, x: Any, axis: int = 0) -> Array:
        """The smallest element of each group; a NaN wins."""
        return self._segments("min", x, axis)

    def mean(self, x: Any, axis: int = 0) -> Array:
        """The groups' means; types are hg.mean's."""
        return self._segments("mean", x, axis)

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
        return _core.take(x, _core.segment_min(self._numbers(), self.codes, self.size), axis)

    def last(self, x: Any, axis: int = 0) -> Array:
        """The row of each group that stands last."""
        x, axis = self._of("last", x, axis)
        return _core.take(x, _core.segment_max(self._numbers(), self.codes, self.size), axis)

    def _numbers(self) -> Array:
        return _core.arange(0, self._rows, 1, "int64")

    def any(self, x: Any, axis: int = 0) -> Array:
        """Whether one of a group's elements is not 0: bool."""
        x, axis = self._of("any", x, axis)
        return _core.segment_sum(x if x.dtype.kind == "bool" else x != 0, self.codes, self.size, axis) > 0

    def all(self, x: Any, axis: int = 0) -> Array:
        """Whether none of a group's elements is 0: bool."""
        x, axis = self._of("all", x, axis)
        return _core.segment_sum(x if x.dtype.kind == "bool" else x != 0, self.codes, self.size, axis) == self.count().reshape(
            tuple(-1 if d == axis else 1 for d in range(x.ndim)))
