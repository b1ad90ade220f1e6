"""What torch.compile's graphs became: how much is ours, and what is left to torch and why."""

from __future__ import annotations

from collections import Counter
from typing import Any

_graphs: list[dict[str, Any]] = []
MOST = 1000  # graphs that are remembered: the last ones


def note(kind: str, own: int, left: Counter[str], parts: int) -> dict[str, Any]:
    """Remembers a graph; the row counts its plans from now on."""
    found = {"graph": kind, "operations": own, "computations": parts, "left_to_torch": dict(left)}
    _graphs.append(found)
    del _graphs[:-MOST]
    return found


def report(*, clear: bool = False) -> list[dict[str, Any]]:
    """The graphs that `torch.compile(backend="hologram")` has made in this process, oldest first.

    Of each: `graph`, which is "forward", "backward" or "inference"; `operations`, how many are Hologram's; `computations`, into how many
    fused parts they fall; `left_to_torch`, how often each operation stayed PyTorch's, by its name and the reason. clear: forgets them.

        model = torch.compile(torch.nn.Linear(3, 2), backend="hologram")
        model(torch.ones(1, 3))
        assert not hologram_torch.report()[-1]["left_to_torch"]"""
    found = [dict(one) for one in _graphs]
    if clear:
        _graphs.clear()
    return found
