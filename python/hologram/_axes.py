"""Axes by number, of which negative ones count from the end."""

from __future__ import annotations

from operator import index

from hologram._create import integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def axis_of(name: str, rank: int, axis: Any) -> int:
    """An axis, counted from the first; `name` says of which function it is an argument."""
    number = index(axis)
    if not -rank <= number < rank:
        raise IndexError(f"{name}: axis {number} is out of range of an array of {rank} axes")
    return number % rank


def axes_of(name: str, rank: int, axes: Any) -> tuple[int, ...]:
    """One axis or several, each once."""
    numbers = tuple(axis_of(name, rank, axis) for axis in integers_of(axes))
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name}: an axis comes twice among {tuple(axes)}")
    return numbers
