"""x.at[key]: a new array that is x but for what is done at x[key], where an element that is named several times takes part in it so
often.

Elements by arrays are scatter_add's, scatter_multiply's, scatter_min's and scatter_max's."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._index import Key, Split, fitted, update

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any


class At:
    """x.at: x.at[key] names elements of x."""

    def __init__(self, x: Array) -> None:
        self._x = x

    def __getitem__(self, key: Any) -> Elements:
        return Elements(self._x, key)


class Elements:
    """Elements of an array by a key; each method gives a new array."""

    def __init__(self, x: Array, key: Any) -> None:
        self._x, self._key = x, key

    def get(self) -> Array:
        """The elements: x[key]."""
        return self._x[self._key]

    def set(self, value: Any) -> Array:
        """The array with a value there; of several for one element the last one stays."""
        made = _core._twin(self._x)
        made[self._key] = value
        return made

    def add(self, value: Any) -> Array:
        """The array plus a value there."""
        return self._changed("add", value, _core.add, _core.scatter_add)

    def subtract(self, value: Any) -> Array:
        """The array less a value there."""
        return self._changed("subtract", value, _core.sub, lambda x, index, value, axis: _core.scatter_add(x, index, -value, axis))

    def multiply(self, value: Any) -> Array:
        """The array times a value there."""
        return self._changed("multiply", value, _core.mul, _core.scatter_multiply)

    def min(self, value: Any) -> Array:
        """The smaller of the array and a value there."""
        return self._changed("min", value, _core.minimum, _core.scatter_min)

    def max(self, value: Any) -> Array:
        """The larger of the array and a value there."""
        return self._changed("max", value, _core.maximum, _core.scatter_max)

    def _changed(self, name: str, value: Any, once: Callable[..., Array], often: Callable[..., Array]) -> Array:
        was_eager = _core._set_eager(False)  # as one computation, whose faults know the key
        try:
            made = self._made(name, value, once, often)
        finally:
            _core._set_eager(was_eager)
        return _core._settled(made)

    def _made(self, name: str, value: Any, once: Callable[..., Array], often: Callable[..., Array]) -> Array:
        x, key = self._x, self._key
        if x.dtype.kind not in ("float", "integer"):
            raise TypeError(f"x.at[...].{name} is of numbers, not of {x.dtype}")
        value = _core._value_for(x, value)
        if not _core._is_by_places(key):
            part = x[key]
            return self.set(once(part, _core._fitted(value, part.shape)))
        read = Key(x, key)
        number, shape = read.numbers()
        split = Split(x, read)
        fit = fitted(value, (*split.before, *shape, *split.after))
        if fit.size == 0:
            return _core._twin(x)
        rows = fit.reshape((split.flat.shape[0], -1, split.flat.shape[2]))
        return update(x, read, split.back(often(split.flat, number[None, :, None], rows, 1)))
