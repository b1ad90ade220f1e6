"""The names of the array API standard (2024.12), over the operations of the table."""

from __future__ import annotations


from builtins import bool as _bool
from builtins import max as _max
from builtins import slice as _slice

from hologram import _core
from hologram._core import *  # noqa: F403
from hologram._core import add as add
from hologram._create import array as _array  # noqa: F401
from hologram._create import asarray as asarray
from hologram._create import empty as empty
from hologram._create import from_dlpack as from_dlpack
from hologram._create import full as full
from hologram._create import full_like as full_like
from hologram._create import linspace as linspace
from hologram._create import ones as ones
from hologram._create import ones_like as ones_like
from hologram._create import zeros as zeros
from hologram._create import zeros_like as zeros_like

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
divide = _core.div
negative = _core.neg
concat = _core.concatenate
permute_dims = _core.permute
matrix_transpose = _core.swap
bitwise_invert = _core.bitwise_not
bitwise_left_shift = _core.shift_left
bitwise_right_shift = _core.shift_right
expand_dims = _core.expand
pow = _core.pow  # noqa: A001


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """x repeated along axes that are missing or have one element."""
    return x.broadcast_to(shape)


def positive(x: Any, /) -> Any:
    """x itself."""
    return x


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """x as another type."""
    made = x.astype(dtype)
    return made if device is None else made.to_device(device)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a type is another, or of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
    'complex floating', 'numeric', or any of a tuple of them."""
    if isinstance(kind, tuple):
        for one in kind:
            if isdtype(dtype, one):
                return True
        return False
    if not isinstance(kind, str):
        return dtype == kind
    kinds = {"integer": {"integral", "numeric"}, "float": {"real floating", "numeric"}, "bool": {"bool"}, "storage": set()}
    own = set(kinds[dtype.kind])
    if dtype.kind == "integer":
        own.add("unsigned integer" if dtype.name.startswith("u") else "signed integer")
    return kind in own


# ---- types ------------------------------------------------------------------------------------------------------------

class _Limits:
    """What finfo and iinfo give."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __repr__(self) -> str:
        return "limits(" + ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items()) + ")"


_DIGITS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}  # of the fraction; greatest exponent


def _type_of(value: Any) -> Any:
    return value.dtype if isinstance(value, _core.Array) else _core._scalar(0, value).dtype


def finfo(type: Any, /) -> Any:
    """The limits of a float type, or of an array's: bits, eps, max, min, smallest_normal, dtype."""
    dtype = _type_of(type)
    if dtype.name not in _DIGITS:
        raise TypeError(f"finfo is of float types, not {dtype}")
    digits, exponent = _DIGITS[dtype.name]
    greatest = (2.0 - 2.0**-digits) * 2.0**exponent
    return _Limits(bits=8 * dtype.itemsize, eps=2.0**-digits, max=greatest, min=-greatest,
                   smallest_normal=2.0 ** (1 - exponent), dtype=dtype)


def iinfo(type: Any, /) -> Any:
    """The limits of an integer type, or of an array's: bits, max, min, dtype."""
    dtype = _type_of(type)
    if dtype.kind != "integer":
        raise TypeError(f"iinfo is of integer types, not {dtype}")
    bits = 8 * dtype.itemsize
    if dtype.name.startswith("u"):
        return _Limits(bits=bits, max=2**bits - 1, min=0, dtype=dtype)
    return _Limits(bits=bits, max=2 ** (bits - 1) - 1, min=-(2 ** (bits - 1)), dtype=dtype)


def _promoted(a: Any, b: Any) -> Any:
    """The type that both become; None: there is none."""
    if a == b:
        return a
    try:
        return (_core._scalar(0, a) + _core._scalar(0, b)).dtype
    except (TypeError, _core.Error):
        return None


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether every value of a type, or of an array's, is one of another type by the standard's promotion."""
    target = _type_of(to)
    return _promoted(_type_of(from_), target) == target


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type that arrays, types and Python numbers become together."""
    made, numbers = None, []
    for value in arrays_and_dtypes:
        if isinstance(value, (int, float)):
            numbers.append(value)
            continue
        dtype = _type_of(value)
        both = dtype if made is None else _promoted(made, dtype)
        if both is None:
            raise TypeError(f"{made} and {dtype} have no type in common; cast one of them")
        made = both
    if made is None:
        raise ValueError("result_type takes at least one array or type")
    for number in numbers:
        if not isinstance(number, _bool) and (made.kind == "bool" or (isinstance(number, float) and made.kind != "float")):
            raise TypeError(f"{number!r} is no number of {made}")
    return made


# ---- by other operations ----------------------------------------------------------------------------------------------

def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    """An Array of x's shape and type; it is 0 everywhere."""
    return zeros_like(x, dtype, device=device)


def broadcast_arrays(*arrays: Any) -> Any:
    """The arrays, repeated to the shape that they have together."""
    rank = _max((x.ndim for x in arrays), default=0)
    shape = [1] * rank
    for x in arrays:
        for d, size in enumerate(x.shape, rank - x.ndim):
            if size != 1 and shape[d] not in (1, size):
                raise ValueError(f"shapes {[a.shape for a in arrays]} do not broadcast")
            shape[d] = size if shape[d] == 1 else shape[d]
    return [x.broadcast_to(tuple(shape)) for x in arrays]


def meshgrid(*arrays: Any, indexing: Any = "xy") -> Any:
    """Coordinates of a grid, of one-dimensional arrays."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    count = len(arrays)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    shaped = [x.reshape(tuple(-1 if d == order[i] else 1 for d in range(count))) for i, x in enumerate(arrays)]
    return broadcast_arrays(*shaped)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """x with axes at other places."""
    from_ = [d % x.ndim for d in ((source,) if isinstance(source, int) else source)]
    to = [d % x.ndim for d in ((destination,) if isinstance(destination, int) else destination)]
    order = [d for d in range(x.ndim) if d not in from_]
    for place, axis in sorted(zip(to, from_, strict=True)):
        order.insert(place, axis)
    return x.transpose(tuple(order)) if order else x


def unstack(x: Any, /, *, axis: Any = 0) -> Any:
    """The parts of x along an axis, which they lack: a tuple."""
    moved = moveaxis(x, axis, 0)
    return tuple(moved[i] for i in range(moved.shape[0]))


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """x with elements moved along axes, and at its ends around."""
    if axis is None:
        return roll(x.reshape(-1), shift, axis=0).reshape(x.shape)
    shifts, axes = ((v,) if isinstance(v, int) else tuple(v) for v in (shift, axis))
    for by, d in zip(shifts * (len(axes) if len(shifts) == 1 else 1), axes, strict=True):
        size, d = x.shape[d], d % x.ndim
        by = by % size if size else 0
        if by:
            before = (_slice(None),) * d
            x = concat([x[(*before, _slice(size - by, None))], x[(*before, _slice(None, size - by))]], axis=d)
    return x


def tile(x: Any, repetitions: Any, /) -> Any:
    """x side by side with itself, so many times along each axis."""
    counts = (1,) * (x.ndim - len(repetitions)) + tuple(repetitions)
    shape = (1,) * (len(counts) - x.ndim) + tuple(x.shape)
    parts, wide, last = [], [], []
    for count, size in zip(counts, shape, strict=True):
        parts += [1, size]
        wide += [count, size]
        last.append(count * size)
    if len(parts) > 8:
        raise NotImplementedError("tile of more than four axes")
    return x.reshape(tuple(parts)).broadcast_to(tuple(wide)).reshape(tuple(last))


def diff(x: Any, /, *, axis: Any = -1, n: Any = 1, prepend: Any = None, append: Any = None) -> Any:
    """Differences of neighbours along an axis, n times."""
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    before = (_slice(None),) * (axis % x.ndim)
    for _ in range(n):
        x = x[(*before, _slice(1, None))] - x[(*before, _slice(None, -1))]
    return x


def signbit(x: Any, /) -> Any:
    """Whether a float's sign is set: of -0 too."""
    return _core.copysign(ones_like(x), x) < 0


def vecdot(x1: Any, x2: Any, /, *, axis: Any = -1) -> Any:
    """The sum of products along an axis."""
    return _core.sum(x1 * x2, axis)


def real(x: Any, /) -> Any:
    """x itself: there are no complex types."""
    return x


conj = real


def nonzero(x: Any, /) -> Any:
    """The places of elements that are not zero: an array of int64 for each axis. Computed on the host."""
    if x.ndim == 0:
        raise ValueError("nonzero: an array without axes has no places")
    flat = (x if x.dtype == bool else x != 0).reshape(-1).tolist()
    numbers = [i for i, holds in enumerate(flat) if holds]
    places: list[Any] = []
    for size in reversed(x.shape):
        places.append(asarray([i % size for i in numbers], "int64"))
        numbers = [i // size for i in numbers]
    return tuple(reversed(places))


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
