"""Arrays from what Python has: objects that share their memory, numbers, lists of numbers, shapes."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array, Buffer, DType, Executor

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def integers_of(value: Any) -> tuple[int, ...]:
    """One integer or several, Python's or NumPy's, as a tuple of ints."""
    from operator import index

    try:
        return (index(value),)
    except TypeError:
        if not _is_sequence(value):
            raise TypeError(f"{value!r} is no int and no sequence of ints") from None
    return tuple(index(part) for part in value)


def _is_sequence(value: Any) -> bool:
    """Of texts, bytes and sets the parts are no list of numbers; an array of rank 0 has none."""
    is_other = isinstance(value, (str, bytes, bytearray, set, frozenset, dict))
    return not is_other and hasattr(value, "__iter__") and getattr(value, "shape", None) != ()


def need_numbers(dtype: Any) -> None:
    """TypeError of NumPy's types that Python or the buffer protocol take as integers: dates, spans of time and texts."""
    if getattr(dtype, "kind", None) in ("M", "m", "S", "U"):
        raise TypeError(f"arrays have no elements of {dtype}; convert them first, as in x.astype('int64')")


def plain(number: Any) -> Any:
    """Python's number of NumPy's, or of an array of one element; anything else as it is."""
    if isinstance(number, (int, float)) or not hasattr(number, "item"):
        return number
    need_numbers(getattr(number, "dtype", None))
    return number.item()


def _real(who: str, number: Any) -> float:
    """A number as a float; a text is none."""
    number = plain(number)
    if isinstance(number, (str, bytes, bytearray)):
        raise TypeError(f"{who}: {number!r} is no number")
    return float(number)


def need_held(who: str, kind: DType, *numbers: int) -> None:
    """OverflowError where an integer type does not hold one of the numbers."""
    low, high = _RANGES[kind.name]
    for number in numbers:
        if not low <= number < high:
            raise OverflowError(f"{who}: {number} is out of range of {kind}")


_RANGES = {f"int{bits}": (-(1 << bits - 1), 1 << bits - 1) for bits in (8, 16, 32, 64)}
_RANGES |= {f"uint{bits}": (0, 1 << bits) for bits in (8, 16, 32, 64)}


def _type_of(numbers: list[Any]) -> DType:
    """The type of Python numbers: bool, int64 where all are whole, else float32."""
    if all(isinstance(v, bool) for v in numbers) and numbers:
        return _core.bool_
    if all(isinstance(v, int) for v in numbers) and numbers:
        return _core.int64
    return _core.float32


def _flatten(value: Any, numbers: list[Any], depth: int = 0) -> tuple[int, ...]:
    """Appends the numbers of nested lists in C order; their shape."""
    if isinstance(value, (bool, int, float)):
        numbers.append(value)
        return ()
    if isinstance(value, Array):
        return _flatten(value.tolist(), numbers, depth)
    if getattr(value, "shape", None) == () and isinstance(number := plain(value), (bool, int, float)):
        numbers.append(number)
        return ()
    if not isinstance(value, (list, tuple, range)):
        raise TypeError(f"an Array cannot be made of {type(value).__name__}")
    if depth > 8:
        raise ValueError("lists are nested more than eight deep")
    shapes = {_flatten(part, numbers, depth + 1) for part in value}
    if len(shapes) > 1:
        raise ValueError("lists of different lengths make no array")
    return (len(value), *(shapes.pop() if shapes else ()))


def _is_foreign(leaf: Any) -> bool:
    """Whether it is an array of somebody else's, and no number."""
    return not isinstance(leaf, (bool, int, float, Array, range)) and (hasattr(leaf, "__array__") or hasattr(leaf, "__dlpack__")) and bool(
        getattr(leaf, "shape", True))  # fmt: skip


def _with_arrays(value: Any, device: Executor | None) -> Any:
    """Nested lists with arrays in place of others' arrays."""
    if isinstance(value, (list, tuple)):
        return [_with_arrays(part, device) for part in value]
    return asarray(value, device=device) if _is_foreign(value) else value


def _leaves(value: Any, depth: int = 0) -> list[Any]:
    """What nested lists hold."""
    if not isinstance(value, (list, tuple)) or depth > 8:
        return [value]
    return [leaf for part in value for leaf in _leaves(part, depth + 1)]


def _stacked(value: Any, kind: DType, device: Executor | None = None) -> Array:
    """Nested lists of arrays and numbers as one array, through which gradients flow to the arrays."""
    if isinstance(value, Array):
        return value.astype(kind)
    if not any(isinstance(leaf, Array) for leaf in _leaves(value)):
        return asarray(value, kind, device=device)
    parts = [_stacked(part, kind, device) for part in value]
    if len({part.shape for part in parts}) > 1:
        raise ValueError("lists of different lengths make no array")
    return _core.stack(*parts, axis=0)


def _from_parts(value: Any, dtype: Any, device: Executor | None) -> Array | None:
    """An array of lists in which there are arrays; None: there are none. Its type is theirs, unless one is given."""
    leaves = _leaves(value)
    arrays = [leaf for leaf in leaves if isinstance(leaf, Array)]
    if device is None and arrays:
        device = arrays[0].device
    if any(_is_foreign(leaf) for leaf in leaves):
        value = _with_arrays(value, device)
        arrays = [leaf for leaf in _leaves(value) if isinstance(leaf, Array)]
    if not arrays:
        return None
    if dtype is None:
        from hologram._dtypes import result_type

        dtype = result_type(*arrays)
    if _core._is_tracing():
        return _placed(_stacked(value, _core._scalar(0, dtype).dtype, device), device)
    return _from_numbers(value, dtype, device)


def _from_numbers(value: Any, dtype: Any, device: Executor | None) -> Array:
    numbers: list[Any] = []
    shape = _flatten(value, numbers)
    kind = _core._scalar(0, dtype).dtype if dtype is not None else _type_of(numbers)
    if kind.kind == "float" or kind.kind == "storage":
        storage, code = _core.float64, "d"
        numbers = [float(v) for v in numbers]
    elif kind.kind == "bool":
        storage, code = _core.bool_, "?"
    else:
        storage, code = (_core.uint64, "Q") if kind == "uint64" else (_core.int64, "q")
        if any(isinstance(v, float) for v in numbers):
            raise TypeError(f"floats make no array of {kind}; convert them with int() first")
        need_held("asarray", kind, *numbers)
    import struct

    data: Any = memoryview(struct.pack(f"={max(len(numbers), 1)}{code}", *(numbers or [0])))
    view = data.cast(code)[: len(numbers)]
    made = _core._share(view, device, 2).reshape(shape)
    return made if storage == kind else made.astype(kind)


def _shared(value: Any, device: Executor | None, may_copy: int) -> Array | None:
    """By the buffer protocol or DLPack; None where the object has neither."""
    if isinstance(value, Array):
        return value if device is None else value.to_device(device)
    if isinstance(value, Buffer):
        return value.array()
    if _has_memory(value):
        try:
            return _core._share(value, device, may_copy)
        except TypeError:
            own = _in_own_order(value, may_copy)
            if own is value:
                raise
        return _core._share(own, device, may_copy)
    made = _described(value, device, may_copy)
    if made is None and hasattr(value, "__array__"):
        return asarray(value.__array__(), device=device, copy=None if may_copy == 1 else may_copy == 2)
    if made is None or device is not None or made.device.backend != "cpu" or _core.default_executor().backend == "cpu":
        return _core._copy(made) if made is not None and may_copy == 2 else made
    return _moved(made, _core.default_executor(), may_copy)


def _in_own_order(value: Any, may_copy: int) -> Any:
    """NumPy's array, with the bytes of its elements in the machine's order."""
    dtype = getattr(value, "dtype", None)
    need_numbers(dtype)
    order = getattr(dtype, "newbyteorder", None)
    if order is None or value.dtype.isnative:
        return value
    if may_copy == 0:
        raise ValueError("the bytes of its elements are in another order than the machine's, and copy is False")
    return value.astype(order("="))


def _has_memory(value: Any) -> bool:
    """Whether it has the buffer protocol, and its memory is the host's."""
    try:
        memoryview(value)
    except TypeError:
        return False
    except (ValueError, BufferError):
        return not hasattr(value, "__dlpack__")
    return True


def _described(value: Any, device: Executor | None, may_copy: int) -> Array | None:
    """By Arrow's interface, DLPack, or an array interface; None where the object has none of them."""
    need_numbers(getattr(value, "dtype", None))
    if hasattr(value, "__arrow_c_array__"):
        from hologram._arrow import taken

        column = taken(value, may_copy)
        if column is not None:
            return column if device is None or device.backend == "cpu" else _moved(column, device, may_copy)
    if hasattr(value, "__dlpack__"):
        return _imported(value, device, may_copy)
    for name in ("__cuda_array_interface__", "__array_interface__"):
        interface = getattr(value, name, None)
        if interface is not None:
            return _adopted(value, interface, name.startswith("__cuda"), device, may_copy)
    return None


def _moved(made: Array, device: Executor, may_copy: int) -> Array:
    """On an executor of another device, by a copy."""
    if may_copy == 0:
        raise ValueError(f"the memory is on a {made.device.backend}, not on the executor, and copy is False")
    if may_copy == 1 and _core._is_strict():
        raise _core.StrictError(f"memory of the {made.device.backend} would be copied to the executor; copy=True copies it")
    return made.to_device(device)


def _imported(value: Any, device: Executor | None, may_copy: int) -> Array:
    if device is None:
        return _core._from_dlpack(value)
    try:
        return _core._from_dlpack(value, device)
    except BufferError:
        return _moved(_core._from_dlpack(value), device, may_copy)


# By the code of an array interface the type, and the code of struct.
_CODES = {"i1": ("int8", "b"), "i2": ("int16", "h"), "i4": ("int32", "i"), "i8": ("int64", "q"), "u1": ("uint8", "B"),
          "u2": ("uint16", "H"), "u4": ("uint32", "I"), "u8": ("uint64", "Q"), "f2": ("float16", "e"), "f4": ("float32", "f"),
          "f8": ("float64", "d"), "b1": ("bool", "?")}  # fmt: skip


def _adopted(value: Any, interface: Any, is_gpu: bool, device: Executor | None, may_copy: int) -> Array:
    """The memory that an array interface describes."""
    word, shape = interface.get("typestr"), interface.get("shape")
    kind = _CODES.get(word[1:]) if isinstance(word, str) and word[:1] in ("<", "=", "|") else None
    if kind is None or interface.get("mask") is not None:
        raise TypeError(f"an array interface of {word!r} is of no type that arrays have, or has a mask")
    if not isinstance(shape, tuple):
        raise TypeError(f"an array interface whose shape is {shape!r}, not a tuple")
    strides, data = interface.get("strides"), interface.get("data")
    if not isinstance(data, tuple):
        return _within(value if data is None else data, interface.get("offset", 0), kind, shape, strides, device, may_copy)
    name = _core._scalar(0, kind[0]).dtype
    backend = "cuda" if is_gpu else "cpu"
    own = device if device is not None and device.backend == backend else None
    made = _core._adopt(value, data[0] or 0, name, shape, strides, bool(data[1]), own, interface.get("stream"), is_gpu)
    return made if device is None or own is not None else _moved(made, device, may_copy)


def _within(memory: Any, offset: Any, kind: tuple[str, str], shape: tuple[Any, ...], strides: Any, device: Executor | None,
            may_copy: int) -> Array:  # fmt: skip
    """Elements in C order from a byte of another object's memory on."""
    view: Any = memoryview(memory).cast("B")
    size = _core._scalar(0, kind[0]).dtype.itemsize
    if strides is not None:
        raise TypeError("an array interface over another object's memory has no strides here")
    if any(not isinstance(n, int) or n < 0 for n in (offset, *shape)) or offset + size * _count(shape) > view.nbytes:
        raise ValueError(f"an array interface of shape {shape} from byte {offset} on of {view.nbytes} bytes")
    flat = view[offset : offset + size * _count(shape)].cast(kind[1])
    return _core._share(flat, device, may_copy).reshape(shape)


def _count(shape: tuple[int, ...]) -> int:
    """Elements of a shape."""
    count = 1
    for size in shape:
        count *= size
    return count


def asarray(value: Any, dtype: Any = None, *, device: Executor | None = None, copy: bool | None = None) -> Array:
    """An Array of an object, without a copy where its memory can be shared (see hologram.asarray)."""
    may_copy = 1 if copy is None else 2 if copy else 0
    if isinstance(value, (bool, int, float, list, tuple, range)):
        if copy is False:
            raise ValueError("Python numbers cannot be shared, and copy is False")
        has_parts = isinstance(value, (list, tuple)) and not _core._has_numbers_only(value)
        made = _from_parts(value, dtype, device) if has_parts else None
        return made if made is not None else _from_numbers(value, dtype, device)
    made = _shared(value, device, may_copy)
    if made is None:
        if copy is False:
            raise ValueError(f"the memory of {type(value).__name__} cannot be shared, and copy is False")
        return _from_numbers(value, dtype, device)
    if isinstance(value, Array) and copy:
        made = _core._copy(made)
    if dtype is None or made.dtype == dtype:
        return made
    if copy is False:
        raise ValueError(f"{made.dtype} becomes {dtype} by a copy only, and copy is False")
    return made.astype(dtype)


def arrays_beside(values: Any) -> list[Array]:
    """Arrays of objects, copies of them (see owned), on the device of those that are arrays."""
    values = list(values)
    device = next((x.device for x in values if isinstance(x, Array)), None)
    return [x if isinstance(x, Array) else array(x, device=device) for x in values]


def array(value: Any, dtype: Any = None, *, device: Executor | None = None, copy: bool | None = True) -> Array:
    """An Array of an object, with memory of its own unless copy says otherwise. See asarray for what it may be, and its errors.

    hg.array([[1.0, 2.0], [3.0, 4.0]])                  # float32, shape (2, 2)"""
    return asarray(value, dtype, device=device, copy=copy)


def owned(value: Any) -> Array:
    """An Array as it is; of NumPy's arrays, lists and numbers a copy, since what is recorded is read later."""
    return value if isinstance(value, Array) else array(value)


def beside(value: Any, other: Any) -> Array:
    """The same beside another operand, whose type Python's numbers and NumPy's scalars take."""
    number = None if isinstance(value, (Array, list, tuple)) else plain(value) if getattr(value, "shape", ()) == () else None
    return owned(value) if number is None or not isinstance(other, Array) else _core._scalar(number, other.dtype)


def from_dlpack(value: Any, /, *, device: Executor | None = None, copy: bool | None = None) -> Array:
    """An Array over the memory of an object that has `__dlpack__`: a PyTorch tensor, a NumPy, CuPy or JAX array. BufferError where
    the memory is none that arrays have.

    import numpy
    hg.from_dlpack(numpy.ones(3))                       # float64"""
    made = _imported(value, device, 1 if copy is None else 2 if copy else 0)
    return _core._copy(made) if copy else made


def _placed(value: Array, device: Executor | None) -> Array:
    return value if device is None else value.to_device(device)


def _one(value: Array, dtype: Any) -> Array:
    """The element of an array that has one, as an array without axes."""
    if value.size != 1:
        raise ValueError(f"an array of shape {value.shape} is not one number")
    to = _core._scalar(0, dtype).dtype
    if value.dtype.kind == "float" and to.kind not in ("float", "storage"):
        raise TypeError(f"an element of {value.dtype} is no number of {to}; cast it: x.astype({str(to)!r})")
    return value.reshape(()).astype(to)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Executor | None = None) -> Array:
    """An Array of a shape that is one number everywhere; of its type, unless another is given: bool, int64 or float32. OverflowError where
    that does not hold it.

    hg.full((2, 3), 7)                                  # int64"""
    if isinstance(fill_value, Array):
        number = _one(fill_value, dtype if dtype is not None else fill_value.dtype)
    else:
        if not isinstance(fill_value, (int, float)):
            fill_value = plain(fill_value)
        number = _core._scalar(fill_value, dtype if dtype is not None else _type_of([fill_value]))
    return _placed(number.broadcast_to(shape), device)


def zeros(shape: Any, dtype: Any = "float32", *, device: Executor | None = None) -> Array:
    """An Array of a shape that is 0 everywhere.

    hg.zeros((2, 3), "int8")"""
    return full(shape, 0, dtype if dtype is not None else "float32", device=device)


def ones(shape: Any, dtype: Any = "float32", *, device: Executor | None = None) -> Array:
    """An Array of a shape that is 1 everywhere.

    hg.ones((2, 3))                                     # float32"""
    return full(shape, 1, dtype if dtype is not None else "float32", device=device)


def empty(shape: Any, dtype: Any = "float32", *, device: Executor | None = None) -> Array:
    """An Array of a shape; it is 0 everywhere, too.

    hg.empty(4)"""
    return zeros(shape, dtype, device=device)


def full_like(x: Array, /, fill_value: Any, dtype: Any = None, *, device: Executor | None = None) -> Array:
    """An Array of x's shape, and its type unless another is given, that is one number everywhere.

    hg.full_like(hg.ones((2, 3)), 5)"""
    x = owned(x)
    return full(x.shape, fill_value, dtype if dtype is not None else x.dtype, device=device or x.device)


def zeros_like(x: Array, /, dtype: Any = None, *, device: Executor | None = None) -> Array:
    """An Array of x's shape and type that is 0 everywhere.

    hg.zeros_like(hg.ones((2, 3)))"""
    return full_like(x, 0, dtype, device=device)


def ones_like(x: Array, /, dtype: Any = None, *, device: Executor | None = None) -> Array:
    """An Array of x's shape and type that is 1 everywhere.

    hg.ones_like(hg.zeros((2, 3)), dtype="bool")"""
    return full_like(x, 1, dtype, device=device)


def linspace(start: float | Array, stop: float | Array, num: int, dtype: Any = "float32", *, endpoint: bool = True,
             device: Executor | None = None) -> Array:
    """num numbers from start to stop at equal distances, computed in float64 and rounded once, to integers down; the first is
    start and the last, unless endpoint is false, stop. ValueError: num is below 0.

    hg.linspace(0, 1, 5)                                # [0., 0.25, 0.5, 0.75, 1.]"""
    from operator import index as whole

    num = whole(plain(num))
    if num < 0:
        raise ValueError(f"linspace: {num} numbers")
    steps = num - 1 if endpoint else num
    kind = _core._scalar(0, dtype if dtype is not None else "float32").dtype
    index = _core.arange(0.0, float(num), 1.0, "float64")
    first, last = (_one(end, "float64") if isinstance(end, Array) else _real("linspace", end) for end in (start, stop))
    made = _between(index, first, last, max(steps, 1))
    ends = {num - 1: last} if endpoint and num > 1 else {}
    if kind.kind == "integer":  # which float64 does not hold all of
        made = _core.floor(made)
        ends = {place: _rounded_down(stop) for place in ends} | {0: _rounded_down(start)}
    made = made.astype(kind)
    for place, end in ends.items():
        made = _core.where(index == float(place), end.astype(kind) if isinstance(end, Array) else _core._scalar(end, kind), made)
    return _placed(made, device)


def _between(index: Array, start: Any, stop: Any, steps: int) -> Any:
    """start + index * (stop - start) / steps; of halves where the difference of numbers overflows."""
    step = (stop - start) / steps
    if isinstance(step, float) and abs(step) == float("inf"):
        return (index * (stop / 2 / steps - start / 2 / steps) + start / 2) * 2.0
    return index * step + start


def _rounded_down(number: Any) -> Any:
    if isinstance(number, (int, Array)):
        return number if isinstance(number, int) else _core.floor(number)
    return int(number // 1)
