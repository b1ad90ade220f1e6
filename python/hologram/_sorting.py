"""Running sums and products: the array API's functions, over operations of the table."""

from __future__ import annotations

from hologram import _core
from hologram._create import full, owned
from hologram._order import _axis

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


# ---- running sums and products ----------------------------------------------------------------------------------------

def _running(name: str, first: int, x: Any, axis: Any, dtype: Any, include_initial: Any, *how: Any) -> Any:
    x = owned(x)
    axis = _axis(name, x, axis)
    scan = getattr(_core, name)
    made = scan(x, axis, *how) if dtype is None else scan(x.astype(dtype), axis, *how).astype(dtype)
    if not include_initial:
        return made
    shape = tuple(1 if d == axis else n for d, n in enumerate(made.shape))
    parts = [full(shape, first, made.dtype), made]
    return _core.concatenate(parts[::-1] if how[1] else parts, axis=axis)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False, exclusive: Any = False,
                   reverse: Any = False) -> Any:  # fmt: skip
    """Sums of all that stands before, and itself, along an axis. Types are sum's. exclusive: of 0 and all elements but the last;
    reverse: from the end to the beginning; include_initial: 0 stands in front, too."""
    return _running("cumulative_sum", 0, x, axis, dtype, include_initial, exclusive, reverse)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: Any = False, exclusive: Any = False,
                    reverse: Any = False) -> Any:  # fmt: skip
    """Products of all that stands before, and itself, along an axis, which has to be given if there are several. Types are prod's;
    the arguments those of cumulative_sum, with 1 for 0.

    hg.cumulative_prod(hg.asarray([1, 2, 3, 4]))        # [1, 2, 6, 24]"""
    return _running("cumulative_prod", 1, x, axis, dtype, include_initial, exclusive, reverse)
