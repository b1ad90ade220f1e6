"""The names of the array API standard (2024.12), over the operations of the table."""

from __future__ import annotations

from builtins import abs as _abs
from builtins import any as _any
from builtins import max as _max
from builtins import min as _min
from builtins import slice as _slice
from operator import index as _index
from builtins import sum as _sum

from hologram import _core, _scans
from hologram._core import *  # noqa: F403  # pyright: ignore[reportAssignmentType]
from hologram._axes import axes_of as _axes_of
from hologram._axes import axis_of as _axis_of
from hologram._core import add as add
from hologram._counts import bincount as bincount  # type: ignore[assignment]
from hologram._create import _RANGES, _count
from hologram._create import asarray as asarray
from hologram._create import empty as empty
from hologram._create import from_dlpack as from_dlpack
from hologram._create import full as full
from hologram._create import full_like as full_like
from hologram._create import integers_of as _integers_of
from hologram._create import linspace as linspace
from hologram._create import need_held as _need_held
from hologram._create import need_numbers as _need_numbers
from hologram._create import ones as ones
from hologram._create import ones_like as ones_like
from hologram._create import owned as _own
from hologram._create import plain as _plain
from hologram._create import zeros as zeros
from hologram._create import zeros_like as zeros_like
from hologram._dtypes import can_cast as can_cast
from hologram._dtypes import finfo as finfo
from hologram._dtypes import iinfo as iinfo
from hologram._dtypes import isdtype as isdtype
from hologram._dtypes import of_the_standard as result_type
from hologram._dtypes import type_of as _type_of
from hologram._elementwise import bitwise_left_shift as bitwise_left_shift
from hologram._elementwise import bitwise_right_shift as bitwise_right_shift
from hologram._elementwise import clip as clip  # type: ignore[assignment]
from hologram._elementwise import pow as pow  # type: ignore[assignment]
from hologram._order import _axis
from hologram._order import argsort as argsort  # type: ignore[assignment]
from hologram._order import lexsort as lexsort  # type: ignore[assignment]
from hologram._order import median as median  # type: ignore[assignment]
from hologram._order import quantile as quantile  # type: ignore[assignment]
from hologram._order import searchsorted as searchsorted  # type: ignore[assignment]
from hologram._order import sort as sort
from hologram._scans import cumulative_logsumexp as cumulative_logsumexp  # type: ignore[assignment]
from hologram._scans import cumulative_max as cumulative_max  # type: ignore[assignment]
from hologram._scans import cumulative_min as cumulative_min  # type: ignore[assignment]
from hologram._selection import nonzero as nonzero
from hologram._selection import unique_all as unique_all
from hologram._selection import unique_counts as unique_counts
from hologram._selection import unique_inverse as unique_inverse
from hologram._selection import unique_values as unique_values

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

__array_api_version__ = "2024.12"

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
newaxis = None
bool = _core.bool_  # noqa: A001

subtract = _core.sub
multiply = _core.mul
negative = _core.neg
permute_dims = _core.permute
matrix_transpose = _core.swap
bitwise_invert = _core.bitwise_not


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """x, repeated along axes that are missing or have one element, as an array of that shape; any dtype. ValueError where x
    does not fit it.

    hg.broadcast_to(hg.arange(3), (2, 3))               # [[0, 1, 2], [0, 1, 2]]"""
    return _own(x).broadcast_to(shape)


def divide(x1: Any, x2: Any, /) -> Any:
    """x1 / x2, whose shapes broadcast; of integers and bools in float32.

    hg.divide(hg.asarray([1, 2]), 2)                    # [0.5, 1.]"""
    return _own(x1) / x2


def positive(x: Any, /) -> Any:
    """x, as an array of its own: an assignment to one of them is none to the other.

    y = hg.positive(hg.ones(2))"""
    return +_own(x)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """x as another type, of the same shape; on another executor, if one is given. TypeError: there is no such type.

    hg.astype(hg.asarray([1.7, -1.7]), "int32")         # [1, -1]"""
    made = _own(x).astype(dtype)
    return made if device is None else made.to_device(device)


# ---- creation ---------------------------------------------------------------------------------------------------------

def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:  # type: ignore[no-redef]
    """start + i * step to before stop; with one number from 0 to before it. Of floats float32, else int64, unless a type is given.
    OverflowError where that does not hold the numbers.

    hg.arange(2, 8, 2)                                  # [2, 4, 6]"""
    if stop is None:
        start, stop = 0, start
    is_plain = is_whole = type(start) is type(stop) is type(step) is int
    if not is_plain:
        if _any(isinstance(v, _core.Array) for v in (start, stop, step)):
            _core.arange(start, stop, step, "float64")  # which refuses numbers that a gradient should flow to
        start, stop, step = _plain(start), _plain(stop), _plain(step)
        is_whole = not _any(isinstance(v, float) for v in (start, stop, step))
    kind = _type_of(dtype if dtype is not None else _core.int64 if is_whole else _core.float32)
    made = _exact_arange(start, stop, step, kind, is_plain) if is_whole and kind.kind == "integer" else None
    if made is None:
        made = _core.arange(start, stop, step, kind)
    return made if device is None else made.to_device(device)


_EXACT = {name: (_max(low, -(2**53)), _min(high - 1, 2**53)) for name, (low, high) in _RANGES.items()}


def _exact_arange(start: int, stop: int, step: int, kind: Any, is_plain: Any) -> Any:
    """What the table's numbers, which are f64, do not hold. None: the table has it. is_plain: they are Python's ints."""
    low, high = _EXACT[kind.name]
    if is_plain and low <= start <= high and low <= stop <= high and -(2**53) <= step <= 2**53:
        return None
    numbers = range(start, stop, step)
    if numbers:
        _need_held("arange", kind, numbers[0], numbers[-1])
    if not numbers or _max(_abs(start), _abs(stop), _abs(step)) <= 2**53:
        return None
    return (_core.arange(0, len(numbers), 1, "uint64") * (step % 2**64) + start % 2**64).astype(kind)


def eye(n_rows: Any, n_cols: Any = None, /, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Any:  # type: ignore[no-redef]
    """A matrix that is 1 on the k-th diagonal (above the main one where k > 0), else 0; n_cols None: as many as rows. float32, unless
    a type is given.

    hg.array_api.eye(2, 3, k=1)                         # [[0., 1., 0.], [0., 0., 1.]]"""
    n_cols = n_rows if n_cols is None else n_cols
    made = _core.eye(n_rows, n_cols, _max(-n_rows, _min(k, n_cols)), dtype or _core.float32)  # any k, however large
    return made if device is None else made.to_device(device)


# ---- reductions -------------------------------------------------------------------------------------------------------

def count_nonzero(x: Any, /, axis: Any = None, keepdims: Any = False) -> Any:  # type: ignore[no-redef]
    """How many along axes (None: all) are not 0, or are true: int64.

    hg.count_nonzero(hg.asarray([[1, 0], [2, 3]]), axis=0)   # [2, 1]"""
    x = _own(x)
    return _core.sum(x if x.dtype == bool else x != 0, axis, keepdims)


# ---- by other operations ----------------------------------------------------------------------------------------------

def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An Array of x's shape and dtype, unless another is given; it is 0 everywhere.

    hg.empty_like(hg.ones((2, 3)), dtype="int8")"""
    return zeros_like(x, dtype, device=device)


def broadcast_arrays(*arrays: Any) -> Any:
    """The arrays, repeated to the shape that they have together: a list. ValueError where there is none.

    x, y = hg.broadcast_arrays(hg.ones((2, 1)), hg.ones(3))   # both of shape (2, 3)"""
    arrays = tuple(_own(x) for x in arrays)
    rank = _max((x.ndim for x in arrays), default=0)
    shape = [1] * rank
    for x in arrays:
        for d, size in enumerate(x.shape, rank - x.ndim):
            if size != 1 and shape[d] not in (1, size):
                raise ValueError(f"shapes {[a.shape for a in arrays]} do not broadcast")
            shape[d] = size if shape[d] == 1 else shape[d]
    return [x.broadcast_to(tuple(shape)) for x in arrays]


def meshgrid(*arrays: Any, indexing: Any = "xy") -> Any:
    """Coordinates of a grid, of one-dimensional arrays: for each an array of all axes. indexing "xy": the first two axes are exchanged, as
    in pictures; "ij": they are in order. ValueError: another one.

    x, y = hg.meshgrid(hg.arange(3), hg.arange(2))      # both of shape (2, 3)"""
    arrays = tuple(_own(x) for x in arrays)
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    count = len(arrays)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    shaped = [x.reshape(tuple(-1 if d == order[i] else 1 for d in range(count))) for i, x in enumerate(arrays)]
    return broadcast_arrays(*shaped)


def concat(arrays: Any, /, *, axis: Any = 0) -> Any:
    """One after the other along an axis, in which alone their shapes differ; None: all their elements in C order. Dtypes mix as in
    arithmetic. ValueError where shapes do not fit.

    hg.concat([hg.ones((2, 1)), hg.zeros((2, 2))], axis=1)   # shape (2, 3)"""
    if axis is None:
        arrays, axis = [_own(x).reshape(-1) for x in arrays], 0
    return _core.concatenate(arrays, axis)


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:  # type: ignore[no-redef]
    """The same elements in C order in another shape; one size may be -1: what is left. Arrays are values: copy means nothing. ValueError
    where the shape has another number of elements.

    hg.reshape(hg.arange(6), (2, -1))                   # [[0, 1, 2], [3, 4, 5]]"""
    return _own(x).reshape(shape)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """One axis more, of one element, at this place; of several, these places of the result. IndexError: there is no such place.

    hg.expand_dims(hg.ones(3), axis=0)                  # shape (1, 3), as x[None]"""
    x, axes = _own(x), _integers_of(axis)
    for d in sorted(_axes_of("expand_dims", x.ndim + len(axes), axes)):
        x = _core.expand(x, d)
    return x if axes else +x


def repeat(x: Any, repeats: Any, /, *, axis: Any = None) -> Any:
    """Each element along an axis so many times (None: of all, in C order); repeats is a number, or one for each element. ValueError below
    0. hg.tile puts the whole side by side.

    hg.repeat(hg.asarray([1, 2]), 2)                    # [1, 1, 2, 2]"""
    x = _own(x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = _axis_of("repeat", x.ndim, axis)
    if not isinstance(repeats, _core.Array) and (isinstance(repeats, (list, tuple)) or getattr(repeats, "ndim", 0) > 0):
        repeats = _own(repeats)
    if not isinstance(repeats, _core.Array):
        repeats = _index(repeats)
        if repeats < 0:
            raise ValueError(f"repeat: an element is repeated at least 0 times, not {repeats}")
        index = arange(x.shape[axis] * repeats) // repeats if repeats else zeros((0,), "int64", device=x.device)
        return take(x, index, axis=axis)
    if repeats.size and int(_core.min(repeats)) < 0:
        raise ValueError("repeat: an element is repeated at least 0 times, not fewer")
    ends = _core.cumulative_sum(repeats.reshape(-1).broadcast_to((x.shape[axis],)).astype("int64"), 0)
    count = int(ends[-1]) if ends.size else 0
    return take(x, searchsorted(ends, arange(count), side="right"), axis=axis)


def take(x: Any, indices: Any, /, *, axis: Any = None) -> Any:  # type: ignore[no-redef]
    """Elements of x by their numbers along an axis, in whose place the indices' shape stands. Negative numbers count from the end;
    IndexError out of range.

    hg.array_api.take(hg.arange(4), hg.asarray([3, -4]))     # [3, 0]"""
    x = _own(x)
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: axis has to be given for an array of {x.ndim} axes")
    return _core.take(x, indices, _axis_of("take", x.ndim, 0 if axis is None else axis))


def take_along_axis(x: Any, indices: Any, /, *, axis: Any = -1) -> Any:
    """x's elements whose number along an axis is the index at that place; the other axes broadcast.

    x = hg.asarray([[3, 1, 2]])
    hg.take_along_axis(x, hg.argsort(x), axis=1)        # [[1, 2, 3]]"""
    x = _own(x)
    return _core.take_along(x, indices, _axis_of("take_along_axis", x.ndim, axis))


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """x with axes at other places; the others keep their order. IndexError: there is no such axis.

    hg.moveaxis(hg.ones((2, 3, 4)), 0, -1)              # shape (3, 4, 2)"""
    x = _own(x)
    from_, to = _axes_of("moveaxis", x.ndim, source), _axes_of("moveaxis", x.ndim, destination)
    if len(from_) != len(to):
        raise ValueError(f"moveaxis: {len(from_)} axes cannot be moved to {len(to)} places")
    order = [d for d in range(x.ndim) if d not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return x.transpose(tuple(order)) if order else x


def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """The parts of x along an axis, which they lack: a tuple.

    first, second = hg.unstack(hg.ones((2, 3)))"""
    x = _own(x)
    moved = moveaxis(x, _axis_of("unstack", x.ndim, axis), 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """x with elements moved along axes, and at its ends around; None: of all, in C order. An axis may come twice.

    hg.roll(hg.arange(4), 1)                            # [3, 0, 1, 2]"""
    x = +_own(x)
    shifts = _integers_of(shift)
    if axis is None:
        return roll(x.reshape(-1), _sum(shifts), axis=0).reshape(x.shape)
    axes = _integers_of(axis)
    if 1 not in (len(shifts), len(axes)) and len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts do not go with {len(axes)} axes")
    count = _max(len(shifts), len(axes)) if shifts and axes else 0
    for by, d in zip(shifts * (count if len(shifts) == 1 else 1), axes * (count if len(axes) == 1 else 1), strict=False):
        d = _axis_of("roll", x.ndim, d)
        size = x.shape[d]
        by = by % size if size else 0
        if by:
            before = (_slice(None),) * d
            x = concat([x[(*before, _slice(size - by, None))], x[(*before, _slice(None, size - by))]], axis=d)
    return x


def tile(x: Any, repetitions: Any, /) -> Any:
    """x side by side with itself, so many times along each axis.

    hg.tile(hg.asarray([1, 2]), (2, 2))                 # [[1, 2, 1, 2], [1, 2, 1, 2]]"""
    x, counts = _own(x), _integers_of(repetitions)
    counts = (1,) * (x.ndim - len(counts)) + counts
    shape = (1,) * (len(counts) - x.ndim) + tuple(x.shape)
    for d, count in reversed(tuple(enumerate(counts))):
        if count != 1:  # one axis at a time: a view of all of them would have twice as many
            rows, rest = _count(shape[:d]), _count(shape[d:])
            shape = (*shape[:d], count * shape[d], *shape[d + 1 :])
            x = x.reshape((rows, 1, rest)).broadcast_to((rows, count, rest))
    return x.reshape(shape)


def pad(x: Any, pad_width: Any = None, mode: Any = "constant", *, constant_values: Any = 0,  # type: ignore[no-redef]
        value: Any = None, low: Any = (), high: Any = ()) -> Any:  # fmt: skip
    """x amid a number: so many before and behind along each axis. pad_width as NumPy's: one width for all, (before, behind), or
    a pair for each axis; or in the table's words value, low and high. ValueError of a width that is none of those, and of another mode.

    hg.pad(hg.ones(2), (1, 2), constant_values=5)       # [5., 1., 1., 5., 5.]"""
    if mode != "constant":
        raise ValueError(f"pad: mode is 'constant', not {mode!r}")
    x = _own(x)
    if pad_width is None:
        return _core.pad(x, value, low, high)
    _need_numbers(getattr(pad_width, "dtype", None))
    pairs: Any = pad_width.tolist() if hasattr(pad_width, "tolist") else pad_width
    pairs = [pairs, pairs] if isinstance(pairs, int) else list(pairs)
    if len(pairs) == 2 and hasattr(pairs[0], "__index__"):
        pairs = [pairs]
    pairs = pairs * x.ndim if len(pairs) == 1 else pairs
    if len(pairs) != x.ndim or _any(len(pair) != 2 for pair in pairs) or low or high or value is not None:
        raise ValueError(f"pad: pad_width {pad_width!r} of an array of {x.ndim} axes; it is a width, (before, behind), or such a pair "
                         "for each axis, and low, high and value do not go with it")
    return _core.pad(x, constant_values, [pair[0] for pair in pairs], [pair[1] for pair in pairs])


def diff(x: Any, /, *, axis: Any = -1, n: Any = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times."""
    x = +_own(x)
    axis = _axis_of("diff", x.ndim, axis)
    if n < 0:
        raise ValueError(f"diff: n is {n}; differences are taken 0 times or more")
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1 and n > 0:
        x = concat(parts, axis=axis)
    before, subtract = (_slice(None),) * axis, _core.not_equal if x.dtype == bool else _core.sub
    for _ in range(n):
        x = subtract(x[(*before, _slice(1, None))], x[(*before, _slice(None, -1))])
    return x


def signbit(x: Any, /) -> Any:
    """Whether a float's sign is set: of -0 too. bool.

    hg.signbit(hg.asarray([-0.0, 0.0]))                 # [True, False]"""
    x = _own(x)
    return _core.copysign(ones_like(x), x) < 0


def matmul(x1: Any, x2: Any, /) -> Any:  # type: ignore[no-redef]
    """Products of matrices; of the type that theirs promote to, where the table's matmul makes int32 of int8."""
    made = _core.matmul(x1, x2)
    return made.astype(_core.int8) if x1.dtype == x2.dtype == _core.int8 else made


def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """The sum of products along an axis, which has one size in both (ValueError else) and counts from the end; of their dtype.

    hg.vecdot(hg.asarray([1, 2]), hg.asarray([3, 4]))   # 11"""
    x1, x2, axis = _own(x1), _own(x2), _index(axis)
    if not -_min(x1.ndim, x2.ndim) <= axis < 0:
        raise ValueError(f"vecdot: axis is from -{_min(x1.ndim, x2.ndim)} to -1, not {axis}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: the axis has {x1.shape[axis]} elements in one and {x2.shape[axis]} in the other")
    products = x1 * x2
    return sum(products, axis=axis, dtype=products.dtype)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Products, summed along the last axes of x1 and the first of x2 (so many), or along the axes of two lists. ValueError where their
    sizes differ.

    hg.tensordot(hg.ones((2, 3)), hg.ones((3, 4)), axes=1)   # shape (2, 4)"""
    x1, x2, axes = _own(x1), _own(x2), _plain(axes)
    if isinstance(axes, int):
        axes = tuple(range(x1.ndim - axes, x1.ndim)), tuple(range(axes))
    left, right = (_axes_of("tensordot", x.ndim, chosen) for x, chosen in zip((x1, x2), axes, strict=True))
    if [x1.shape[d] for d in left] != [x2.shape[d] for d in right]:
        raise ValueError(f"tensordot: axes {left} of {x1.shape} and {right} of {x2.shape} differ in size")
    rows = [d for d in range(x1.ndim) if d not in left]
    columns = [d for d in range(x2.ndim) if d not in right]
    shape = [x1.shape[d] for d in rows] + [x2.shape[d] for d in columns]
    size = _count(tuple(x1.shape[d] for d in left))
    a = x1.transpose((*rows, *left)).reshape((_count(tuple(x1.shape[d] for d in rows)), size))
    b = x2.transpose((*right, *columns)).reshape((size, _count(tuple(x2.shape[d] for d in columns))))
    return matmul(a, b).reshape(tuple(shape))


def real(x: Any, /) -> Any:
    """x, as an array of its own: there are no complex types.

    hg.real(hg.ones(2))"""
    return +_own(x)


conj = real


def imag(x: Any, /) -> Any:
    """0 everywhere: there are no complex types.

    hg.imag(hg.ones(2))                                 # [0., 0.]"""
    return zeros_like(_own(x))


class _Info:
    """What __array_namespace_info__ gives."""

    def capabilities(self) -> Any:
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 8}

    def default_device(self) -> Any:
        return _core.default_executor()

    def devices(self) -> Any:
        return [_core.default_executor()]

    def default_dtypes(self, *, device: Any = None) -> Any:
        return {"real floating": _core.float32, "complex floating": None, "integral": _core.int64, "indexing": _core.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> Any:
        names = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)] + ["float32", "float64"]
        types = {"bool": _core.bool_, **{name: getattr(_core, name) for name in names}}
        return types if kind is None else {name: t for name, t in types.items() if isdtype(t, kind)}


def __array_namespace_info__() -> Any:
    """What there is: types, devices, capabilities."""
    return _Info()


from hologram import linalg as linalg  # noqa: E402  it is made of what stands above


# ---- running results --------------------------------------------------------------------------------------------------

def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None,  # type: ignore[no-redef]
                   include_initial: Any = False, exclusive: Any = False,
                   reverse: Any = False, segments: Any = None) -> Any:  # fmt: skip
    """hg.cumulative_sum along an axis, which has to be given if there are several.

    hg.array_api.cumulative_sum(hg.asarray([1, 2, 3]))  # [1, 3, 6]"""
    x = _own(x)
    return _scans.cumulative_sum(x, _axis("cumulative_sum", x, axis), dtype=dtype, include_initial=include_initial, exclusive=exclusive,
                                 reverse=reverse, segments=segments)  # fmt: skip


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None,  # type: ignore[no-redef]
                    include_initial: Any = False, exclusive: Any = False,
                    reverse: Any = False, segments: Any = None) -> Any:  # fmt: skip
    """hg.cumulative_prod along an axis, which has to be given if there are several.

    hg.array_api.cumulative_prod(hg.asarray([1, 2, 3])) # [1, 2, 6]"""
    x = _own(x)
    return _scans.cumulative_prod(x, _axis("cumulative_prod", x, axis), dtype=dtype, include_initial=include_initial, exclusive=exclusive,
                                  reverse=reverse, segments=segments)  # fmt: skip
