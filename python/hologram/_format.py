"""How arrays are printed: aligned by columns; of more elements than the threshold the first and last of each axis. hologram.printoptions
has the numbers."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._modes import print_options

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


# ---- numbers -------------------------------------------------------------------------------------------------------------

_CODES = {"float16": "e", "float32": "f", "float64": "d"}


def _is_that(text: str, value: float, dtype: str) -> bool:
    """Whether a decimal is this number once it has been rounded to the type."""
    import struct

    if dtype in _CODES:
        try:
            return bool(struct.unpack(_CODES[dtype], struct.pack(_CODES[dtype], float(text)))[0] == value)
        except OverflowError:
            return False
    low, high = (struct.unpack("I", struct.pack("f", number))[0] for number in (float(text), value))
    return bool((low + 0x7FFF + (low >> 16 & 1)) >> 16 == high >> 16)  # bfloat16: to even


def _number(value: Any, dtype: str, precision: Any) -> str:
    """So many significant digits, of narrow types not more than tell their numbers apart; "exact": just so many."""
    if not isinstance(value, float):
        return str(value)
    most = 17 if precision == "exact" else precision
    first = 1 if precision == "exact" or dtype in ("float16", "bfloat16") else most
    text = f"{value:.{most}g}"
    for digits in range(first, most) if abs(value) < float("inf") else ():
        shorter = f"{value:.{digits}g}"
        if _is_that(shorter, value, dtype):
            text = shorter
            break
    return text if any(c in text for c in ".en") else text + "."


# ---- what is shown ---------------------------------------------------------------------------------------------------------


def _ends(x: Array, edge: int) -> tuple[Array, tuple[bool, ...]]:
    """The first and last of each axis that is longer than both, and which axes those are."""
    cut = tuple(size > 2 * edge for size in x.shape)
    for d, is_cut in enumerate(cut):
        if is_cut:
            before = (slice(None),) * d
            x = _core.concatenate([x[(*before, slice(None, edge))], x[(*before, slice(-edge, None))]], axis=d)
    return x, cut


def _texts(value: Any, cut: tuple[bool, ...], edge: int, text: Any) -> Any:
    """Numbers as nested lists of text; None: some are left out there."""
    if not isinstance(value, list):
        return text(value)
    parts = [_texts(part, cut[1:], edge, text) for part in value]
    return [*parts[:edge], None, *parts[edge:]] if cut[0] else parts


def _leaves(parts: Any) -> list[str]:
    if isinstance(parts, list):
        return [text for part in parts for text in _leaves(part)]
    return [] if parts is None else [parts]


# ---- lines -----------------------------------------------------------------------------------------------------------------


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


def _rows(parts: Any, columns: tuple[int, int], depth: int, indent: int, width: int) -> str:
    """Columns below one another, matrices with an empty line between; a row that is longer than a line goes on in the next."""
    if depth > 1:
        rows = ["..." if part is None else _rows(part, columns, depth - 1, indent + 1, width) for part in parts]
        return "[" + ("," + "\n" * (depth - 1) + " " * (indent + 1)).join(rows) + "]"
    line, lines = "", []
    for i, part in enumerate(parts):
        text = ("..." if part is None else _placed(part, columns)) + (", " if i + 1 < len(parts) else "]")
        if line and indent + 1 + len(line) + len(text.rstrip()) > width:
            lines.append(line.rstrip())
            line = ""
        line += text
    return "[" + ("\n" + " " * (indent + 1)).join([*lines, line])


def _text(x: Array, indent: int) -> str:
    if x.size == 0:
        return "[]"
    options, dtype = print_options(), x.dtype
    x.compute()
    edge = options["edgeitems"]
    x, cut = _ends(x, edge) if x.size > options["threshold"] else (x, (False,) * x.ndim)
    value = (x.astype("float32") if dtype.kind == "storage" or dtype == "bfloat16" else x).tolist()
    parts = _texts(value, cut, edge, lambda number: _number(number, dtype.name, options["precision"]))
    return _rows(parts, _columns(_leaves(parts)), x.ndim, indent, options["linewidth"]) if x.ndim else str(parts)


def array_str(x: Array) -> str:
    return _text(x, 0)


def array_repr(x: Array) -> str:
    """An array without elements says its shape, which brackets do not."""
    shape = f", shape={x.shape}" if x.size == 0 and x.shape != (0,) else ""
    return f"Array({_text(x, 6)}{shape}, dtype={x.dtype})"
