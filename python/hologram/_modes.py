"""When arrays are computed, and what becomes of them."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from types import TracebackType
    from typing import Any


class eager:
    """Computes every operation when it is called: `hg.eager()` from now on, `with hg.eager():` inside a block,
    `hg.eager(False)` not any more. The bits are the same either way."""

    def __init__(self, on: bool = True) -> None:
        self._before = _core._set_eager(on)

    def __enter__(self) -> "eager":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _core._set_eager(self._before)


def explain(x: Array, *, json: bool = False, file: Any = None) -> Any:
    """Prints which operations of a pending array become which launch, the bytes moved, and what was not fused and why.

    json=True returns it as data instead; None for an array that is computed already."""
    if json:
        from json import loads

        return loads(_core._report(x, True))
    print(_core._report(x, False), end="", file=file)
    return None
