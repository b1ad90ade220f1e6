"""hg.grad(f, check=True): gradients beside differences of the function, in float64 along random directions."""

from __future__ import annotations

from hologram import _core, random
from hologram._core import Array
from hologram._create import integers_of
from hologram._gradients import by_position, recorded, value_and_grad

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any

_STEPS = (2.0**-13, 2.0**-16)  # of central differences: their errors are about 1e-8 and 1e-10, in the units of third derivatives


def _wide(nest: Any) -> Any:
    """Floats as float64."""
    return _core._rebuild(nest, iter([x.astype("float64") if x.dtype.kind == "float" else x for x in _core._arrays_of(nest, False)]))


def check_gradient(function: Callable[..., Any], argnums: Any, has_aux: bool, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    """ValueError where they differ by more than the two steps' differences explain, which kinks near by make large."""
    own, named = list(_wide(arguments)), _wide(named)
    places = by_position(argnums, integers_of(argnums), len(own))

    def value_at(by: list[Array]) -> float:
        moved, rest = list(own), iter(by)
        for place in places:
            moved[place] = _core._rebuild(own[place], rest)
        value, _ = recorded(function, moved, named, (), moved)  # what it assigns to stays as it was
        return float(value[0] if has_aux else value)

    by = _core._arrays_of([own[place] for place in places], True)
    numbers = [(place, i) for place in places for i in range(len(_core._arrays_of(own[place], True)))]
    _, gradients = value_and_grad(function, tuple(places), has_aux=has_aux)(*own, **named)
    for i, (x, gradient) in enumerate(zip(by, _core._arrays_of(gradients, True), strict=True)):
        if x.dtype.kind != "float" or x.size == 0:
            continue
        direction = random.normal(random.key(i), x.shape, dtype="float64")
        said = float((gradient * direction).sum())
        ahead, behind = ([value_at([*by[:i], x + direction * (h * sign), *by[i + 1 :]]) for h in _STEPS] for sign in (1, -1))
        first, second = ((a - b) / (2 * h) for a, b, h in zip(ahead, behind, _STEPS, strict=True))
        scale = max(abs(said), abs(second), float((gradient * direction).abs().sum()), 1e-3)
        if not abs(said - second) <= 1e-5 * scale + 4 * abs(first - second):
            place, part = numbers[i]
            name = f"argument {place}" + (f", array {part} of it" if part > 0 or isinstance(own[place], (dict, list, tuple)) else "")
            raise ValueError(f"grad(check=True): {name}, of shape {x.shape}: along a random direction the gradient says {said:.9g}, and "
                             f"differences of the function {second:.9g}; a stop_gradient or a jump of the function may be why")
