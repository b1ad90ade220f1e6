"""Products of arrays and diagonals of matrices by NumPy's names, over operations of the table."""

from __future__ import annotations

from operator import index

from hologram import _core
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import arrays_beside, ones, owned
from hologram.array_api import moveaxis, tensordot

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def inner(a: Any, b: Any, /) -> Array:
    """Sums of products along the last axes, which have one size: of shapes (..., n) and (---, n) an array of (..., ---). With an
    array without axes it is the product.

        hg.inner(hg.ones((2, 3)), hg.arange(3.0))  # [3, 3]

    ValueError where the sizes differ. The type is that of matmul."""
    a, b = arrays_beside((a, b))
    if not (a.ndim and b.ndim):
        return a * b  # type: ignore[no-any-return]
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(f"inner: the last axis has {a.shape[-1]} elements in one and {b.shape[-1]} in the other")
    return tensordot(a, b, axes=((-1,), (-1,)))  # type: ignore[no-any-return]


def kron(a: Any, b: Any, /) -> Array:
    """Kronecker's product: each element of a, times b, in the element's place. Sizes are products of the two arrays', from the last
    axis on; both have at most 4 axes.

        hg.kron(hg.eye(2), hg.ones((1, 2)))  # [[1, 1, 0, 0], [0, 0, 1, 1]]"""
    a, b = arrays_beside((a, b))
    rank = max(a.ndim, b.ndim)
    if rank > 4:
        raise ValueError(f"kron: an array of {rank} axes; both have at most 4")
    rows, columns = ((1,) * (rank - x.ndim) + x.shape for x in (a, b))
    left, right = tuple(n for size in rows for n in (size, 1)), tuple(n for size in columns for n in (1, size))
    apart: Array = a.reshape(left) * b.reshape(right)
    return apart.reshape(tuple(m * n for m, n in zip(rows, columns, strict=True)))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The diagonal of the matrices along two axes, as a last axis in their place; offset > 0 is above the main one, < 0 below.

        hg.diagonal(hg.reshape(hg.arange(6), (2, 3)), 1)  # [1, 5]

    ValueError where x has fewer than two axes, or the two are one. The type stays."""
    x = owned(x)
    if x.ndim < 2:
        raise ValueError(f"diagonal: an array of {x.ndim} axes has no diagonal; hg.diag makes a matrix of a vector")
    axes = axis_of("diagonal", x.ndim, axis1), axis_of("diagonal", x.ndim, axis2)
    if axes[0] == axes[1]:
        raise ValueError(f"diagonal: axis1 and axis2 are both axis {axes[0]}; a matrix has two")
    moved = moveaxis(x, axes, (-2, -1))
    *rest, rows, columns = moved.shape
    offset = index(offset)
    count = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    first = (offset if offset > 0 else -offset * columns) if count else 0
    return moved.reshape((*rest, rows * columns))[..., first : first + count * (columns + 1) : columns + 1]  # type: ignore[no-any-return]


def diag(x: Any, k: int = 0) -> Array:
    """Of a matrix its k-th diagonal; of a vector the square matrix that has it there, and 0 elsewhere.

        hg.diag(hg.asarray([1.0, 2.0]))  # [[1, 0], [0, 2]]

    ValueError of other numbers of axes (see diagonal). The type stays."""
    x = owned(x)
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: an array of {x.ndim} axes; it takes a vector or a matrix, and hg.diagonal more axes")
    column = _core.pad(x, None, (max(-k, 0),), (max(k, 0),))
    number = _core.arange(0, column.size, 1, "int64")
    return _core.where(number - number[:, None] == k, column[:, None], _core._scalar(0, x.dtype))


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """The sum of a diagonal; dtype: of its elements as another type. Types are sum's.

        hg.trace(hg.eye(3))  # 3"""
    return _core.sum(diagonal(x, offset, axis1, axis2), -1, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = "float32") -> Array:  # noqa: N803  NumPy's names
    """N rows of M elements (of N, unless it is given) that are 1 on the k-th diagonal and below it, else 0.

        hg.tri(2, 3)  # [[1, 0, 0], [1, 1, 0]]"""
    return _core.tril(ones((N, N if M is None else M), dtype), k)
