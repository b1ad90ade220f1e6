"""When arrays are computed, and what becomes of them."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Any, Literal, Self, SupportsIndex


_variables: dict[str, Any] = {}


def _variable(name: str) -> Any:
    """Of this thread or task."""
    if name not in _variables:
        from contextvars import ContextVar

        _variables.setdefault(name, ContextVar(f"hologram.{name}", default=None))
    return _variables[name]


class _Mode:
    """From now on, or inside a with block. One that was made before its block, or has several, holds inside each of them."""

    _set: Callable[[Any], Any]  # gives what was before

    def __init__(self, value: Any) -> None:
        self._value, self._before = value, type(self)._set(value)
        _variable("mode made last").set(self)

    def __enter__(self) -> Self:
        made, blocks = _variable("mode made last"), _variable("blocks of modes")
        before = self._before if made.get() is self else type(self)._set(self._value)
        made.set(None)
        blocks.set((*(blocks.get() or ()), (self, before)))
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        blocks = _variable("blocks of modes")
        entered: list[tuple[_Mode, Any]] = list(blocks.get() or ())
        own = [i for i, (mode, _) in enumerate(entered) if mode is self]  # none: it was entered in another thread or task
        type(self)._set(entered.pop(own[-1])[1] if own else self._before)
        blocks.set(tuple(entered))
        _variable("mode made last").set(None)


class _Switch(_Mode):
    def __init__(self, on: bool = True) -> None:
        super().__init__(on)


class eager(_Switch):
    """Computes every operation when it is called: `hg.eager()` from now on, `with hg.eager():` inside a block,
    `hg.eager(False)` not any more. The bits are the same either way."""

    _set = staticmethod(_core._set_eager)


class strict(_Switch):
    """Makes an error (StrictError) of what otherwise happens silently: `hg.strict()` from now on, `with hg.strict():`
    inside a block, `hg.strict(False)` not any more. That is

    - a change of backend: 'auto' goes past a backend that has a device here;
    - a fallback: an operation or a program that the executor's engine leaves to a slower one, or fast numerics that are canonical;
    - a hidden copy: `asarray` of memory that cannot be shared, `numpy()` of a GPU's, a view of elements that do not lie
      in C order, an assignment to elements that others see;
    - a mix of kinds: bools, integers and floats in one operation, a Python float beside integers among them."""

    _set = staticmethod(_core._set_strict)


class numerics(_Mode):
    """How contractions are computed that are recorded from now on, `hg.numerics("fast")`, or inside a block,
    `with hg.numerics("fast"):`, by this thread or task: matmul, linear, gemm and whatever else is made of products of matrices, and
    their gradients, wherever those are asked for. Others are untouched.

    "canonical", which is what holds where nobody says anything, has the same bits on every machine. "fast" leaves products of float16,
    bfloat16 and float32 to the library of the GPU's vendor where there is one (NVIDIA's cuBLASLt), together with a bias, relu or
    gelu_tanh right behind them. It sums in float32, in an order of its own, and does not round in between: the bits are others than
    the canonical ones, and may be others on another GPU, with another version of the library or another batch; relu of a NaN may be 0.
    tf32=True lets it round the factors of float32 products to 11 bits besides, which is silently done by nothing else.

    `hg.explain(x)` says which launches are fast, and of the others why they are not: without the library, on another backend and for
    other types the canonical kernels run, with the canonical bits. Inside `hg.strict()` that is an error."""

    _set = staticmethod(_core._set_numerics)

    def __init__(self, mode: Literal["canonical", "fast"], *, tf32: bool = False) -> None:
        if mode not in ("canonical", "fast"):
            raise ValueError(f"numerics is 'canonical' or 'fast', not {mode!r}")
        if tf32 and mode != "fast":
            raise ValueError("numerics: tf32=True is a way of fast numerics: hg.numerics('fast', tf32=True)")
        fast = _core._NUMERICS_FAST | (_core._NUMERICS_TF32 if tf32 else 0)
        super().__init__(fast if mode == "fast" else 0)


_PRINTED = {"precision": 6, "threshold": 1000, "edgeitems": 3, "linewidth": 75}


def print_options() -> dict[str, Any]:
    """Of this thread or task."""
    return _variable("print options").get() or _PRINTED


def _set_print_options(changes: dict[str, Any]) -> dict[str, Any]:
    before = print_options()
    _variable("print options").set({**before, **changes})
    return before


class printoptions(_Mode):
    """How arrays are printed, from now on or inside a with block: `hg.printoptions(precision=3)`, `with hg.printoptions(precision=3):`.
    What is not named stays. It holds for this thread or task.

    precision: significant digits of floats (6), 1 to 17; "exact": as many as tell a number from all others of its type, so that reading
    them gives the same bits. threshold: how many elements are printed (1000); of larger arrays the first and last `edgeitems` (3) of each
    axis. linewidth: characters in a line (75). ValueError: another one.

    with hg.printoptions(precision="exact", threshold=10):
        print(hg.arange(100) / 3)          # 0.33333334 and not 0.333333"""

    _set = staticmethod(_set_print_options)

    def __init__(self, *, precision: int | Literal["exact"] | None = None, threshold: int | None = None, edgeitems: int | None = None,
                 linewidth: int | None = None) -> None:  # fmt: skip
        given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
        changes = {name: value for name, value in given.items() if value is not None}
        least = {"precision": 1, "threshold": 0, "edgeitems": 1, "linewidth": 10}
        for name, value in changes.items():
            is_whole = isinstance(value, int) and least[name] <= value <= (17 if name == "precision" else value)
            if not is_whole and (name, value) != ("precision", "exact"):
                wish = "1 to 17 or 'exact'" if name == "precision" else f"a whole number from {least[name]} on"
                raise ValueError(f"printoptions: {name} is {wish}, not {value!r}")
        super().__init__(changes)


def _heirs(arguments: tuple[Any, ...], donate: tuple[int, ...], result: Any) -> tuple[list[Array], list[Array]]:
    """Arrays that are given up, and beside each the result that may have its memory: those of the first part of the result that
    has the form of the argument."""
    parts = [_core._arrays_of(part, False) for part in (result if isinstance(result, tuple) else (result,))]
    given: list[Array] = []
    onto: list[Array] = []
    for number in donate:
        own = _core._arrays_of(arguments[number], False)
        place = next((i for i, part in enumerate(parts) if _core._have_one_form(own, part)), None)
        if place is None:
            raise ValueError(f"argument {number} is given up, but no part of the result has its form")
        given += own
        onto += parts.pop(place)
    return given, onto


def jit(function: Callable[..., Any], *, donate: SupportsIndex | Sequence[SupportsIndex] = ()) -> Callable[..., Any]:
    """The function as one computation: all arrays of what it returns are computed together when it is called.

    What it is given is computed before, so that every call is the same computation, which is compiled once for each
    shape and type. Nothing else changes: the function runs each time, and its bits are the same with and without.

    donate: arguments, by number, whose arrays are given up. The first part of the result that has an argument's form is written
    where they were, unless somebody else sees that memory; whoever reads them afterwards gets a ValueError. A training step
    changes its parameters in place so: `parameters, state = step(parameters, state, batch)` with donate=(0, 1).

    step = hg.jit(lambda x: (x * 2, x.sum()))
    double, total = step(hg.ones(3))"""
    numbers = integers_of(donate)

    def run(*arguments: Any, **named: Any) -> Any:
        if _core._is_tracing():
            return function(*arguments, **named)
        _core.compute(*_core._arrays_of((arguments, named), False))
        result = function(*arguments, **named)
        arrays = _core._arrays_of(result, False)
        if numbers:
            given, onto = _heirs(arguments, numbers, result)
            _core._compute_onto(arrays, given, onto)
        else:
            _core.compute(*arrays)
        return result

    run.__name__ = getattr(function, "__name__", "function")
    run.__doc__ = function.__doc__
    return run


def explain(x: Array, *, json: bool = False, file: Any = None) -> Any:
    """Prints which operations of a pending array become which launch, the bytes moved, and what was not fused and why.

    json=True returns it as data instead; None for an array that is computed already.

    hg.explain(hg.exp(hg.ones(3)) + 1)"""
    if json:
        from json import loads

        return loads(_core._report(x, True))
    print(_core._report(x, False), end="", file=file)
    return None
