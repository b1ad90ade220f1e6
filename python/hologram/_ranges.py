"""Numbers at equal ratios."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import _one, linspace

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

    from hologram._core import Executor


def logspace(start: Any, stop: Any, num: int, dtype: Any = "float32", *, base: Any = 10.0, endpoint: bool = True,
             device: Executor | None = None) -> Array:  # fmt: skip
    """base to num powers from start to stop at equal distances (see linspace), computed in float64 and rounded once, to integers down.
    start, stop and base: numbers, or arrays of one element, to which gradients flow.

    hg.logspace(0, 3, 4)                     # [1, 10, 100, 1000]"""
    powers = linspace(start, stop, num, "float64", endpoint=endpoint, device=device)
    base = base if isinstance(base, Array) else _core._scalar(base, "float64")
    return _core.pow(base.astype("float64"), powers).astype(dtype if dtype is not None else "float32")


def geomspace(start: Any, stop: Any, num: int, dtype: Any = "float32", *, endpoint: bool = True, device: Executor | None = None) -> Array:
    """num numbers from start to stop, each the same multiple of the one before, computed in float64 and rounded once, to integers down; the
    first is start and the last, unless endpoint is false, stop. start and stop: numbers of one sign, not 0 (ValueError), or arrays of one
    element, to which gradients flow.

    hg.geomspace(1, 1000, 4)                 # [1, 10, 100, 1000]"""
    ends = [_one(end, "float64") if isinstance(end, Array) else _core._scalar(end, "float64") for end in (start, stop)]
    signs = {end > 0 for end in (start, stop) if not isinstance(end, Array)}
    if len(signs) > 1 or any(end == 0 for end in (start, stop) if not isinstance(end, Array)):
        raise ValueError(f"geomspace: from {start} to {stop} no numbers have equal ratios; both have one sign, and neither is 0")
    first, last = (_core.log10(_core.abs(end)) for end in ends)
    made = logspace(first, last, num, "float64", endpoint=endpoint, device=device) * _core.sign(ends[0])
    index = _core.arange(0.0, float(num), 1.0, "float64")
    for place, end in zip((0, num - 1) if endpoint and num > 1 else (0,), ends):
        made = _core.where(index == float(place), end, made)
    return made.astype(dtype if dtype is not None else "float32")
