"""hg.warm: what a function will compute, compiled before it is called."""

from __future__ import annotations

from time import perf_counter

from hologram import _core

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Sequence
    from typing import Any

    from hologram._core import Array, Executor


class Spec:
    """An array's form without the array, for warm: `Spec((8192, 768), "bfloat16")`. device: an Executor; None: the default one."""

    __slots__ = ("device", "dtype", "shape")

    def __init__(self, shape: int | Sequence[int], dtype: Any = "float32", device: Executor | None = None) -> None:
        blank = _core._blank(shape, dtype, device)
        self.shape, self.dtype, self.device = blank.shape, blank.dtype, device

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype.name!r})"

    def _array(self) -> Array:
        return _core._blank(self.shape, self.dtype, self.device)


class Warmed:
    """What warm has made ready: computations, their kernels, and the seconds that it took."""

    __slots__ = ("computations", "kernels", "seconds")

    def __init__(self, computations: int, kernels: int, seconds: float) -> None:
        self.computations, self.kernels, self.seconds = computations, kernels, seconds

    def __repr__(self) -> str:
        return f"Warmed(computations={self.computations}, kernels={self.kernels}, seconds={self.seconds:.3f})"


def _filled(nest: Any) -> Any:
    """The same nest with arrays in place of its specs."""
    if isinstance(nest, Spec):
        return nest._array()
    if isinstance(nest, dict):
        parts = {key: _filled(value) for key, value in nest.items()}
        return parts if any(parts[key] is not nest[key] for key in nest) else nest
    if isinstance(nest, (list, tuple)):
        values = [_filled(value) for value in nest]
        if all(value is before for value, before in zip(values, nest, strict=True)):
            return nest
        return type(nest)(*values) if hasattr(nest, "_fields") else type(nest)(values)
    return nest


def warm(function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Warmed:
    """Compiles all that `function(*arguments)` computes, in full, and computes nothing: the first real call finds it ready, and on a
    GPU runs at the full rate. The kernel cache on disk keeps it for other processes.

    arguments: as the calls will have them, arrays or a Spec in place of one, also inside lists, tuples and dicts. The function is
    called once, jitted or not, eager or not; what it returns counts as computed together, as by `hg.compute`. Nothing is launched or
    written: arrays that it assigns to or gives up keep their values, and what else of Python it changes stays changed. It cannot read
    the elements of what it computes (ValueError). A Program that it launches, and what it does with buffers (`hg.ops`), does run.

    print(hg.warm(hg.jit(hg.softmax), hg.Spec((8, 5))))      # Warmed(computations=1, ...)"""
    begun = perf_counter()
    number = _core._begin_warm()
    try:
        result = function(*_filled(arguments), **_filled(named))
        _core.compute(*_core._arrays_of(result, False))
    finally:
        result = None  # arrays go before they become what they were
        counts = _core._end_warm(number)
    return Warmed(*counts, perf_counter() - begun)
