"""How arrays are printed: at most a thousand elements, else the first and last three of each axis."""

from __future__ import annotations


from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_MOST = 1000
_EDGE = 3


def _number(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if any(c in text for c in ".en") else text + "."
    return str(value)




def _rows(x: Array, summarised: bool, indent: int) -> str:
    if x.ndim == 0:
        return _number(x.item())
    size = x.shape[0]
    cut = summarised and size > 2 * _EDGE
    if x.ndim == 1:
        if cut:
            parts = [_number(v) for v in x[:_EDGE].tolist()] + ["..."] + [_number(v) for v in x[-_EDGE:].tolist()]
        else:
            parts = [_number(v) for v in x.tolist()]
        width = max((len(p) for p in parts), default=0)
        return "[" + ", ".join(p if p == "..." else p.rjust(width) for p in parts) + "]"
    which = [*range(_EDGE), -1, *range(size - _EDGE, size)] if cut else list(range(size))
    parts = ["..." if i < 0 else _rows(x[i], summarised, indent + 1) for i in which]
    return "[" + (",\n" + " " * (indent + 1)).join(parts) + "]"


def _text(x: Array, indent: int) -> str:
    x.compute()
    if x.dtype.kind == "storage" or x.dtype == "bfloat16":
        x = x.astype("float32")
    return _rows(x, x.size > _MOST, indent)


def array_str(x: Array) -> str:
    return _text(x, 0)


def array_repr(x: Array) -> str:
    return f"Array({_text(x, 6)}, dtype={x.dtype})"
