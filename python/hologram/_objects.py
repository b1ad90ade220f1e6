"""Arrays as ordinary objects: copies, pickles, text of one element, and NumPy's functions of them."""

from __future__ import annotations

import operator

from hologram import _core
from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

# ---- copies and pickles --------------------------------------------------------------------------------------------------

_WORDS = {1: "uint8", 2: "uint16"}  # what elements that the buffer protocol has no word for are handed over as
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def copied(x: Array, memo: Any = None) -> Array:
    """For copy and deepcopy. Gradients flow through it."""
    return _core._copy(x)


def reduced(x: Array, protocol: int) -> Any:
    """For pickle: from protocol 5 on the elements may travel beside it. On which executor they were is not kept."""
    import pickle

    name, shape = x.dtype.name, x.shape
    if name == "bfloat16":
        x = _core.bitcast(x, "uint16")
    elif name in _NARROW:
        x = x.astype("float32")  # which has all their numbers
    if x.device.backend != "cpu":
        x = x.to_device(_core.Executor("cpu"))
    data = memoryview(x.reshape(-1)).cast("B") if x.size else memoryview(b"")
    return rebuilt, (pickle.PickleBuffer(data) if protocol >= 5 else bytes(data), name, x.dtype.name, shape)


def rebuilt(data: Any, name: str, stored: str, shape: tuple[int, ...]) -> Array:
    """What was pickled, over the memory that it came in."""
    code = {"bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
            "float32": "f", "float64": "d"}.get(stored)  # fmt: skip
    if not memoryview(data).nbytes:
        return _core._scalar(0, name).broadcast_to(shape)
    if code is None:  # float16, which memoryview does not cast to
        return _core.bitcast(rebuilt(data, "uint16", "uint16", shape), name)
    view: Any = memoryview(data).cast("B")
    x = _core._share(view.cast(code), None, 1).reshape(shape)
    return x if name == stored else _core.bitcast(x, name) if name == "bfloat16" else x.astype(name)


# ---- text ------------------------------------------------------------------------------------------------------------------

def formatted(x: Array, spec: str) -> str:
    """f"{x:.3f}" of one element."""
    if not spec:
        return str(x)
    if x.size != 1:
        raise TypeError(f"the format {spec!r} is of one number, not of an array of {x.size} elements; str(x) shows them")
    return format(x.item(), spec)


# ---- beside NumPy ----------------------------------------------------------------------------------------------------------

_OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv,
              "floor_divide": operator.floordiv, "remainder": operator.mod, "power": operator.pow, "matmul": operator.matmul,
              "bitwise_and": operator.and_, "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "left_shift": operator.lshift,
              "right_shift": operator.rshift, "less": operator.lt, "less_equal": operator.le, "equal": operator.eq,
              "not_equal": operator.ne, "greater": operator.gt, "greater_equal": operator.ge, "negative": operator.neg,
              "absolute": operator.abs, "invert": operator.invert, "positive": operator.pos}  # fmt: skip
_COMPARISONS = ("less", "less_equal", "equal", "not_equal", "greater", "greater_equal")
_NAMES = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "arctan2": "atan2", "rint": "round", "deg2rad": "radians",
          "rad2deg": "degrees",
          **{name: name for name in ("maximum", "minimum", "sign", "copysign", "reciprocal", "sqrt", "cbrt", "floor", "ceil", "trunc",
                                     "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh",
                                     "tanh", "logical_and", "logical_or", "logical_xor", "logical_not", "square", "degrees",
                                     "radians", "divmod", "fmin", "fmax", "gcd", "lcm")}}  # fmt: skip


def _ours(name: str) -> Any:
    """The function of arrays that a function of NumPy is here; None: the table has none."""
    return _OPERATORS.get(name) or (getattr(_core, _NAMES[name], None) if name in _NAMES else None)


def ufunc(x: Array, function: Any, method: str, *inputs: Any, out: Any = None, **settings: Any) -> Any:
    """NumPy's functions of arrays. Those of the table are computed here, into `out` where that is one of NumPy's arrays; the others
    are NumPy's, of the memory that arrays export."""
    from importlib import import_module

    numpy: Any = import_module("numpy")
    own = _ours(function.__name__) if method == "__call__" and not settings else None
    if out is not None and any(isinstance(one, Array) for one in out):
        raise TypeError(f"numpy.{function.__name__}: out= is one of NumPy's arrays; an Array is a value: write x = x + y")
    if own is None:
        given = [numpy.asarray(value) if isinstance(value, Array) else value for value in inputs]
        return getattr(function, method)(*given, **settings, **({} if out is None else {"out": out}))
    if not isinstance(inputs[0], Array):
        first: Any = inputs[0]
        if function.__name__ in _COMPARISONS and getattr(first, "shape", None) == ():
            first = first[()]  # NumPy compares its numbers as arrays of rank 0
        inputs = (_operand(first, numpy.generic, x), *inputs[1:])
    made = own(*inputs)
    if out is None:
        return made
    numpy.copyto(out[0], numpy.asarray(made), casting="same_kind")
    return out[0]


def _operand(value: Any, scalar: Any, beside: Array) -> Any:
    """NumPy's arrays as arrays on the device of another one, so that an operator is ours, and its scalars as numbers: float64 is a
    float, and yet NumPy's."""
    from hologram._create import array

    if isinstance(value, scalar):
        is_number = value.dtype.kind in "biuf" and value.dtype.itemsize <= 8
        return value.item() if is_number else array(value, device=beside.device)
    return value if isinstance(value, (int, float)) else array(value, device=beside.device)
