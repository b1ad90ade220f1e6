"""NumPy's short names for joining arrays, cutting them, giving them axes and turning them."""

from __future__ import annotations

from hologram import _core
from hologram._axes import axes_of, axis_of
from hologram._create import arrays_beside, asarray, integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any

    from hologram._core import Array


# ---- axes that are missing ----------------------------------------------------------------------------------------------

def _each(grown: Callable[[Array], Array], arrays: tuple[Any, ...]) -> Any:
    made = tuple(grown(x) for x in arrays_beside(arrays))
    return made[0] if len(made) == 1 else made


def _grown_1d(x: Array) -> Array:
    return +x if x.ndim else x.reshape(1)


def _grown_2d(x: Array) -> Array:
    return +x if x.ndim > 1 else x.reshape((1, x.size))


def _grown_3d(x: Array) -> Array:
    return +x if x.ndim > 2 else x.reshape((*_grown_2d(x).shape, 1))


def atleast_1d(*arrays: Any) -> Any:
    """The array with at least one axis: a number becomes shape (1,). Of several arrays a tuple. Any dtype; what is no array becomes one.

    hg.atleast_1d(hg.asarray(3.0))          # shape (1,)
    a, b = hg.atleast_1d(1.0, hg.ones((2, 2)))"""
    return _each(_grown_1d, arrays)


def atleast_2d(*arrays: Any) -> Any:
    """The array with at least two axes: shape (n,) becomes (1, n). Of several arrays a tuple. Any dtype.

    row = hg.atleast_2d(hg.ones(3))         # shape (1, 3)"""
    return _each(_grown_2d, arrays)


def atleast_3d(*arrays: Any) -> Any:
    """The array with at least three axes: (n,) becomes (1, n, 1), (m, n) becomes (m, n, 1). Of several arrays a tuple. Any dtype.

    image = hg.atleast_3d(hg.ones((4, 5)))  # shape (4, 5, 1)"""
    return _each(_grown_3d, arrays)


# ---- joining ------------------------------------------------------------------------------------------------------------

def _joined(name: str, arrays: Any, grown: Callable[[Array], Array], axis: int) -> Array:
    if isinstance(arrays, _core.Array) and not arrays.ndim or not hasattr(arrays, "__iter__"):
        raise TypeError(f"{name} takes a list of arrays, not {type(arrays).__name__}: hg.{name}([a, b])")
    parts = [grown(x) for x in arrays_beside(arrays)]
    if not parts:
        raise ValueError(f"{name}: the list of arrays is empty")
    axis = 0 if parts[0].ndim == 1 else axis
    for i, part in enumerate(parts):
        first, own = list(parts[0].shape), list(part.shape)
        if len(own) != len(first) or own[:axis] + own[axis + 1:] != first[:axis] + first[axis + 1:]:
            raise ValueError(f"{name}: array {i} has shape {part.shape} and array 0 {parts[0].shape}; they are joined along axis "
                             f"{axis}, and the other axes have to agree")  # fmt: skip
    return _core.concatenate(parts, axis=axis)


def hstack(arrays: Any, /) -> Array:
    """Arrays side by side: along axis 1, vectors and numbers along axis 0. The other axes agree (ValueError); dtypes mix as in
    arithmetic.

    hg.hstack([hg.ones((2, 1)), hg.zeros((2, 3))])   # shape (2, 4)"""
    return _joined("hstack", arrays, _grown_1d, 1)


def vstack(arrays: Any, /) -> Array:
    """Arrays one below the other: along axis 0, vectors of n elements as rows (1, n). The other axes agree (ValueError); dtypes mix as
    in arithmetic.

    hg.vstack([hg.ones(3), hg.zeros((2, 3))])        # shape (3, 3)"""
    return _joined("vstack", arrays, _grown_2d, 0)


def dstack(arrays: Any, /) -> Array:
    """Arrays behind each other: along axis 2, after `atleast_3d`. The other axes agree (ValueError); dtypes mix as in arithmetic.

    hg.dstack([hg.ones((2, 3)), hg.zeros((2, 3))])   # shape (2, 3, 2)"""
    return _joined("dstack", arrays, _grown_3d, 2)


def column_stack(arrays: Any, /) -> Array:
    """Vectors as the columns of a matrix; matrices side by side. The other axes agree (ValueError); dtypes mix as in arithmetic.

    hg.column_stack([hg.arange(3), hg.ones(3)])      # shape (3, 2)"""
    return _joined("column_stack", arrays, lambda x: x.reshape((x.size, 1)) if x.ndim < 2 else x, 1)


# ---- cutting ------------------------------------------------------------------------------------------------------------

def _cut(x: Array, ends: list[int], axis: int) -> list[Array]:
    before = (slice(None),) * axis
    return [x[(*before, slice(start, end))] for start, end in zip([0, *ends], [*ends, None])]


def _split(name: str, x: Any, where: Any, axis: Any, is_even: bool) -> list[Array]:
    x = asarray(x)
    axis = axis_of(name, x.ndim, axis)
    if hasattr(where, "__iter__") and getattr(where, "shape", None) != ():
        return _cut(x, list(integers_of(where)), axis)
    size, count = x.shape[axis], integers_of(where)[0]
    if count < 1:
        raise ValueError(f"{name}: an axis is split into 1 part or more, not {count}")
    if is_even and size % count:
        raise ValueError(f"{name}: {size} elements of axis {axis} do not split into {count} equal parts; array_split makes parts of "
                         f"unequal lengths, and a list says where to cut: hg.split(x, [2, 5])")  # fmt: skip
    each, more = divmod(size, count)
    return _cut(x, [each * i + min(i, more) for i in range(1, count)], axis)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """The parts of x along an axis, as a list: so many of equal length (ValueError where that does not divide), or cut before the
    numbers of a list. As NumPy's; PyTorch's `split` takes the length of the parts. Any shape and dtype.

    first, last = hg.split(hg.arange(6), 2)          # [0, 1, 2] and [3, 4, 5]
    a, b, c = hg.split(hg.arange(6), [2, 5])         # [0, 1], [2, 3, 4] and [5]"""
    return _split("split", x, indices_or_sections, axis, True)


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """`split`, where the first parts are longer by one if the length does not divide. Any shape and dtype.

    a, b = hg.array_split(hg.arange(5), 2)           # [0, 1, 2] and [3, 4]"""
    return _split("array_split", x, indices_or_sections, axis, False)


def _split_of_rank(name: str, x: Any, where: Any, least: int, axis: int) -> list[Array]:
    x = asarray(x)
    if x.ndim < least:
        raise ValueError(f"{name} cuts along axis {axis}; an array of shape {x.shape} has none: see hg.split")
    return _split(name, x, where, axis if x.ndim > 1 else 0, True)


def hsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 1, of a vector along axis 0.

    left, right = hg.hsplit(hg.ones((3, 4)), 2)      # two of shape (3, 2)"""
    return _split_of_rank("hsplit", x, indices_or_sections, 1, 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 0 of an array of two axes or more.

    upper, lower = hg.vsplit(hg.ones((4, 3)), 2)     # two of shape (2, 3)"""
    return _split_of_rank("vsplit", x, indices_or_sections, 2, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Array]:
    """`split` along axis 2 of an array of three axes or more.

    front, back = hg.dsplit(hg.ones((2, 3, 4)), 2)   # two of shape (2, 3, 2)"""
    return _split_of_rank("dsplit", x, indices_or_sections, 3, 2)


# ---- turning ------------------------------------------------------------------------------------------------------------

def rot90(x: Any, k: int = 1, axes: Any = (0, 1)) -> Array:
    """x turned by 90 degrees k times, from the first of two axes towards the second. Any dtype; IndexError and ValueError say which
    axes are wrong.

    hg.rot90(hg.asarray([[1, 2], [3, 4]]))           # [[2, 4], [1, 3]]"""
    x = asarray(x)
    places = axes_of("rot90", x.ndim, axes)
    if len(places) != 2:
        raise ValueError(f"rot90: axes are two, not {axes!r}")
    first, second = places
    turned = k % 4
    if turned % 2 == 0:
        return _core.flip(x, places) if turned else +x
    return _core.swap(_core.flip(x, second), first, second) if turned == 1 else _core.flip(_core.swap(x, first, second), second)
