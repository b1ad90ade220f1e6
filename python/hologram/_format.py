"""How arrays are printed: at most a thousand elements, else the first and last three of each axis."""

from __future__ import annotations

from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_MOST = 1000
_EDGE = 3
_LINE = 75


def _number(value: Any) -> str:
    if isinstance(value, float):
        text = f"{value:.6g}"
        return text if any(c in text for c in ".en") else text + "."
    return str(value)


def _shown(x: Array, summarised: bool) -> Any:
    """The numbers that are shown, as nested lists of text; None: some are left out there."""
    if x.ndim == 0:
        return _number(x.item())
    size = x.shape[0]
    if not summarised or size <= 2 * _EDGE:
        return _nested(x.tolist()) if not summarised else [_shown(x[i], summarised) for i in range(size)]
    ends = [*range(_EDGE), *range(size - _EDGE, size)]
    parts: list[Any] = [_shown(x[i], summarised) for i in ends]
    return [*parts[:_EDGE], None, *parts[_EDGE:]]


def _nested(value: Any) -> Any:
    return [_nested(part) for part in value] if isinstance(value, list) else _number(value)


def _texts(parts: Any) -> list[str]:
    return [text for part in parts or [] for text in _texts(part)] if isinstance(parts, list) or parts is None else [parts]


def _columns(texts: list[str]) -> tuple[int, int]:
    """Places before the point, and from it on; of numbers with exponents all are before."""
    if any("e" in text for text in texts):
        return max(map(len, texts)), 0
    after = max((len(text) - text.index(".") for text in texts if "." in text), default=0)
    before = max((text.index(".") for text in texts if "." in text), default=0)
    return max(before, max((len(text) for text in texts if "." not in text), default=0) - after), after


def _placed(text: str, columns: tuple[int, int]) -> str:
    before, after = columns
    if after == 0 or "." not in text:
        return text.rjust(before + after)
    point = text.index(".")
    return text[:point].rjust(before) + text[point:].ljust(after)


def _rows(parts: Any, columns: tuple[int, int], indent: int) -> str:
    """Columns below one another; a row that is longer than a line goes on in the next."""
    if not isinstance(parts, list):
        return str(parts)
    if any(isinstance(part, list) for part in parts) or not parts:
        rows = ["..." if part is None else _rows(part, columns, indent + 1) for part in parts]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    line, lines = "", []
    for i, part in enumerate(parts):
        text = ("..." if part is None else _placed(part, columns)) + (", " if i + 1 < len(parts) else "")
        if line and indent + 1 + len(line) + len(text.rstrip()) > _LINE:
            lines.append(line.rstrip())
            line = ""
        line += text
    return "[" + ("\n" + " " * (indent + 1)).join([*lines, line]) + "]"


def _text(x: Array, indent: int) -> str:
    x.compute()
    if x.dtype.kind == "storage" or x.dtype == "bfloat16":
        x = x.astype("float32")
    parts = _shown(x, x.size > _MOST)
    return _rows(parts, _columns(_texts(parts)) if x.size else (0, 0), indent)


def array_str(x: Array) -> str:
    return _text(x, 0)


def array_repr(x: Array) -> str:
    return f"Array({_text(x, 6)}, dtype={x.dtype})"
