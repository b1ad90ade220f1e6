"""x.at[key]: a new array that is x but for what is done at x[key], where an element that is named several times takes part in it so
often.

add, subtract and multiply give old op F(contributions in the order of the source), as scatter_add does; f16 and bf16 are computed
in float32 and rounded once. min and max have the gradients of an even share among all that tie, the old value included."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._index import Key, Split, fitted, update

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any

_CHUNK = 4096  # of F
_WHOLE = slice(None)


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
        return self._changed("add", value, _core.add, _sums)

    def subtract(self, value: Any) -> Array:
        """The array less a value there."""
        return self._changed("subtract", value, _core.sub, lambda x, index, value: _sums(x, index, -value))

    def multiply(self, value: Any) -> Array:
        """The array times a value there."""
        return self._changed("multiply", value, _core.mul, _products)

    def min(self, value: Any) -> Array:
        """The smaller of the array and a value there."""
        return self._changed("min", value, _core.minimum, _minima)

    def max(self, value: Any) -> Array:
        """The larger of the array and a value there."""
        return self._changed("max", value, _core.maximum, _maxima)

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
        wide = "float32" if x.dtype.kind == "float" and x.dtype.itemsize < 4 else x.dtype
        rows = fit.reshape((split.flat.shape[0], -1, split.flat.shape[2])).astype(wide)
        return update(x, read, split.back(often(split.flat.astype(wide), number, rows).astype(x.dtype)))


# Of x as [before, elements, after] the contributions [before, sources, after] go to the elements with these numbers. The scatter
# tells of a number that is out of range.

def _sums(x: Array, number: Array, value: Array) -> Array:
    return _core.scatter_add(x, number[None, :, None], value, 1)


def _products(x: Array, number: Array, value: Array) -> Array:
    to, value = _folded(x, number, value, _core.mul, lambda value: 1)
    return _core.scatter(x, to[None, :, None], _core.take(x, to, 1, "clamp") * value, 1, "fault")


def _minima(x: Array, number: Array, value: Array) -> Array:
    if x.dtype.kind == "integer":
        return _extremes(x, number, value, _core.minimum)
    return -_maxima(-x, number, -value)


def _maxima(x: Array, number: Array, value: Array) -> Array:
    """The largest are found without gradients, y, and then written as what those of the same value make up, whose gradients are
    right: y - sum((y - v) / n), in which all terms are 0, or sum(v / n) of infinite ones and of zeros with their signs."""
    if x.dtype.kind == "integer":
        return _extremes(x, number, value, _core.maximum)
    index = number[None, :, None]
    y = _bits_of(_extremes(_bits_of(x), number, _bits_of(value), _core.maximum))
    is_here = _core.scatter(_like(x, False, "bool"), index, _like(value, True, "bool"), 1)
    is_plain = _core.logical_and(_core.abs(y) < float("inf"), y != 0)
    own, at = x == y, [_core.take(part, number, 1) for part in (y, is_plain)]
    other = value == at[0]
    ties = _core.maximum(_core.scatter_add(own.astype(x.dtype), index, other.astype(x.dtype), 1), 1)
    share = _core.where(own, _core.where(is_plain, y - x, x) / ties, -0.0)
    shares = _core.where(other, _core.where(at[1], at[0] - value, value) / _core.take(ties, number, 1), -0.0)
    made = _core.scatter_add(share, index, shares, 1)
    made = _core.where(y != y, y, _core.where(is_plain, y - made, made))
    return _core.where(is_here, made, x)


def _extremes(x: Array, number: Array, value: Array, either: Callable[..., Array]) -> Array:
    to, value = _folded(x, number, value, either, lambda value: value)
    return _core.scatter(x, to[None, :, None], either(_core.take(x, to, 1, "clamp"), value), 1, "fault")


def _bits_of(x: Array) -> Array:
    """The same values, through which no gradient flows."""
    return _core.bitcast(_core.bitcast(x, "uint64" if x.dtype == "float64" else "uint32"), x.dtype)


def _like(x: Array, value: Any, dtype: str) -> Array:
    return _core._scalar(value, dtype).broadcast_to(x.shape)


def _folded(x: Array, number: Array, value: Array, combine: Callable[..., Array],
            neutral: Callable[[Array], Any]) -> tuple[Array, Array]:
    """The contributions in the order of their elements' numbers, which come first and count from the start, each as F of all for
    that element. What is taken here is there: nothing of it could tell of a number of the caller's."""
    from hologram._order import argsort, searchsorted

    size = x.shape[1]
    if not number.dtype.name.startswith("u"):
        number = _core.where(number < 0, number.astype("int64") + size, number.astype("int64"))
    order = argsort(number)
    to, value = _core.take(number, order, 0, "clamp"), _core.take(value, order, 1, "clamp")
    first, behind = searchsorted(to, to), searchsorted(to, to, side="right")
    rank = _core.arange(0, to.size, 1, "int64") - first
    of_chunk, chunk = rank % _CHUNK, rank // _CHUNK
    count = behind - first
    value = _fold(value, of_chunk, _core.minimum(count - chunk * _CHUNK, _CHUNK), 1, combine, neutral)
    if to.size > _CHUNK:
        chunks = _core.where(of_chunk == 0, (count + (_CHUNK - 1)) // _CHUNK, 0)
        value = _fold(value, chunk, chunks, _CHUNK, combine, neutral)
    return to, _core.take(value, first, 1, "clamp")


def _fold(value: Array, rank: Array, count: Array, stride: int, combine: Callable[..., Array], neutral: Callable[[Array], Any]) -> Array:
    """F of groups that lie one after the other: value[rank] op value[rank + half], half = ..., 2, 1; `stride` apart."""
    size = value.shape[1]
    half = 1 << (min(-(-size // stride), _CHUNK) - 1).bit_length() >> 1
    while half > 0:
        away = half * stride
        other = _core.pad(value[:, away:, :], None, (0, 0, 0), (0, away, 0))
        is_there = _core.logical_and(rank < half, rank + half < count)[None, :, None]
        value = combine(value, _core.where(is_there, other, neutral(value)))
        half //= 2
    return value
