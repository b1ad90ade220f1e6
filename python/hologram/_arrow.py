"""Arrays of objects with `__arrow_c_array__`, of columns of Arrow, pyarrow and nanoarrow: numbers without nulls."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

# By the interface's format; bool ("b") has a bit for each element.
_TYPES = {"c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64",
          "e": "float16", "f": "float32", "g": "float64", "b": "bool"}  # fmt: skip


def taken(value: Any, may_copy: int) -> Array | None:
    """On the CPU, over the memory of the column where it lies as arrays do; None: it is no column of numbers."""
    capsules = value.__arrow_c_array__()
    if not isinstance(capsules, tuple) or len(capsules) != 2:
        raise TypeError("__arrow_c_array__ gave no pair of capsules")
    owner, code, length, nulls, offset, validity, data, buffers, has_parts = _core._read_arrow(*capsules)
    if code not in _TYPES or has_parts:
        return None
    if buffers != 2:
        raise BufferError(f"an Arrow array of format {code!r} with {buffers} buffers, not 2")
    if offset + length >= 1 << 53:
        raise BufferError(f"an Arrow array of {length} elements from element {offset} on reaches beyond any memory")
    if nulls != 0 and validity:
        valid = _bits(owner, validity, offset, length)
        nulls = length - int(valid.sum())
        if nulls:
            raise ValueError(f"{nulls} of {length} elements are null, which arrays have none of: fill them first, as in fill_null(0)")
    if code == "b":
        _need_copy(may_copy, "bools of Arrow are bits")
        return _bits(owner, data, offset, length)
    return _numbers(owner, data, offset, length, _TYPES[code], may_copy)


def _over(owner: Any, address: int, count: int, dtype: str) -> Array:
    """The memory from an address on, which is measured there."""
    if address >= 1 << 64:
        raise BufferError("an Arrow array whose offset leads beyond the last address")
    return _core._adopt(owner, address, dtype, (count,), None, True, None, None, False)


def _need_copy(may_copy: int, why: str) -> None:
    if may_copy == 0:
        raise ValueError(f"{why}, and copy is False")
    if may_copy == 1 and _core._is_strict():
        raise _core.StrictError(f"{why}: copy=True copies them")


def _bits(owner: Any, address: int, offset: int, length: int) -> Array:
    """Bits from one on, the lowest of a byte first, as bools."""
    first = offset % 8
    packed = _over(owner, address + offset // 8, (first + length + 7) // 8, "uint8")
    each = (packed.reshape(-1, 1) >> _core.arange(0, 8, 1, "uint8")) & 1
    return each.reshape(-1)[first : first + length].astype("bool")


def _numbers(owner: Any, data: int, offset: int, length: int, dtype: str, may_copy: int) -> Array:
    size = _core._scalar(0, dtype).dtype.itemsize
    address = data + offset * size if data else 0
    if address % size == 0:
        made = _over(owner, address, length, dtype)
        return _core._copy(made) if may_copy == 2 else made
    from hologram._objects import rebuilt

    _need_copy(may_copy, f"its elements do not lie at multiples of {size} bytes")
    return rebuilt(bytes(memoryview(_over(owner, address, length * size, "uint8"))), dtype, dtype, (length,))
