"""Questions about types: limits, kinds, and which type several become together."""

from __future__ import annotations

from hologram import _core
from hologram._create import plain

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def type_of(value: Any) -> Any:
    """Of an array, or the type that a name or another library's type means."""
    is_array = isinstance(value, _core.Array) or (hasattr(value, "__array_interface__") and not isinstance(value, type))
    return value.dtype if isinstance(value, _core.Array) else _core._scalar(0, value.dtype if is_array else value).dtype


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a type is another, or of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
    'complex floating', 'numeric', or any of a tuple of them. ValueError of another kind.

    hg.isdtype(hg.int8, "integral")         # True"""
    if isinstance(kind, tuple):
        for one in kind:
            if isdtype(dtype, one):
                return True
        return False
    if not isinstance(kind, str):
        return dtype == kind
    kinds = {"integer": {"integral", "numeric"}, "float": {"real floating", "numeric"}, "bool": {"bool"}, "storage": set()}
    if kind not in {"signed integer", "unsigned integer", "complex floating"}.union(*kinds.values()):
        raise ValueError(f"isdtype: {kind!r} is no kind of types")
    own = set(kinds[dtype.kind])
    if dtype.kind == "integer":
        own.add("unsigned integer" if dtype.name.startswith("u") else "signed integer")
    return kind in own


class _Limits:
    """What finfo and iinfo give."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __repr__(self) -> str:
        return "limits(" + ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items()) + ")"


_DIGITS = {"float16": (10, 15), "bfloat16": (7, 127), "float32": (23, 127), "float64": (52, 1023)}  # of the fraction; greatest exponent


def finfo(type: Any, /) -> Any:
    """The limits of a float type, or of an array's: bits, eps, max, min, smallest_normal, dtype. TypeError of other types.

    hg.finfo("float32").eps                 # 2 ** -23"""
    dtype = type_of(type)
    if dtype.name not in _DIGITS:
        raise TypeError(f"finfo is of float types, not {dtype}")
    digits, exponent = _DIGITS[dtype.name]
    greatest = (2.0 - 2.0**-digits) * 2.0**exponent
    return _Limits(bits=8 * dtype.itemsize, eps=2.0**-digits, max=greatest, min=-greatest,
                   smallest_normal=2.0 ** (1 - exponent), dtype=dtype)


def iinfo(type: Any, /) -> Any:
    """The limits of an integer type, or of an array's: bits, max, min, dtype. TypeError of other types.

    hg.iinfo(hg.int8).max                   # 127"""
    dtype = type_of(type)
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
    if a.kind != b.kind:  # the standard mixes no kinds
        return None
    try:
        return (_core._scalar(0, a) + _core._scalar(0, b)).dtype
    except (TypeError, _core.Error):
        return None


def can_cast(from_: Any, to: Any, /) -> Any:
    """Whether every value of a type, or of an array's, is one of another type: whether both become that by the standard's promotion.

    hg.can_cast(hg.int8, hg.int16), hg.can_cast("int64", "float32")     # True, False"""
    target = type_of(to)
    return _promoted(type_of(from_), target) == target


def of_the_standard(*arrays_and_dtypes: Any) -> Any:
    """The type that arrays, types and Python numbers become together by the standard's rules, which mix no kinds (TypeError).

    hologram.array_api.result_type(hg.int8, hg.int16)      # int16"""
    made, numbers = None, []
    for value in arrays_and_dtypes:
        if isinstance(value, (int, float)):
            numbers.append(value)
            continue
        dtype = type_of(value)
        both = dtype if made is None else _promoted(made, dtype)
        if both is None:
            raise TypeError(f"{made} and {dtype} have no type in common; cast one of them")
        made = both
    if made is None:
        raise ValueError("result_type takes at least one array or type")
    for number in numbers:
        if not isinstance(number, bool) and (made.kind == "bool" or (isinstance(number, float) and made.kind != "float")):
            raise TypeError(f"{number!r} is no number of {made}")
    return made


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The type that arrays, types and Python numbers become together in an operation: of two kinds the higher one's, bool < integers <
    floats, and numbers take the type of what is beside them, but that a float beside integers makes float32. TypeError where none holds
    both: uint64 with a signed type, 8-bit floats with others.

    hg.result_type(hg.int64, "float32", 2)  # float32"""
    if not arrays_and_dtypes:
        raise ValueError("result_type takes at least one array, type or number")
    values = [value if isinstance(value, _core.Array) else plain(value) if getattr(value, "shape", None) == () else value
              for value in arrays_and_dtypes]  # fmt: skip
    numbers: list[Any] = [type(value)(0) for value in values if isinstance(value, (bool, int, float))]
    types = [_core._scalar(0, type_of(value)) for value in values if not isinstance(value, (bool, int, float))]
    made = types[0] if types else _core.asarray(numbers)
    for other in types[1:] + numbers if types else ():
        try:
            made = _core.where(True, made, other)
        except _core.InvalidArgument as error:
            raise TypeError(str(error).replace("where: ", "result_type: ").replace("[]", "")) from None
    return made.dtype
