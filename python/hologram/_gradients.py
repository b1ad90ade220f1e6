"""hg.grad: derivatives of Python functions of arrays, by the gradients of the table."""

from __future__ import annotations

from operator import index, itemgetter

from hologram import _core
from hologram._core import Array
from hologram._create import integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Sequence
    from typing import Any, SupportsIndex


def value_and_grad(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0) -> Callable[..., Any]:
    """A function that gives (value, gradient) of `function`, which returns an array of one element.

    argnums: which arguments the gradient is by; each is an array, or lists, tuples and dicts of arrays, and its gradient
    has the same form. Several: a tuple of gradients. Value and gradients are recorded and computed together."""
    numbers: tuple[int, ...]
    try:
        numbers, is_one = (index(argnums),), True  # type: ignore[arg-type]
    except TypeError:
        numbers, is_one = integers_of(argnums), False

    known: dict[int, Callable[[list[Any]], Any]] = {}  # by how many arguments there are

    def others_of(count: int) -> Callable[[list[Any]], Any]:
        """Takes the arguments that the gradient is not by of so many; each number stands once."""
        own = {number + count if number < 0 else number for number in numbers}
        if len(own) < len(numbers) or any(not 0 <= number < count for number in own):
            raise ValueError(f"argnums is {argnums}: it names arguments by position, of {count} here, each once")
        others = [number for number in range(count) if number not in own]
        known[count] = itemgetter(*others) if others else lambda arguments: None
        return known[count]

    def both(*arguments: Any, **named: Any) -> Any:
        by: list[Array] = []
        own = list(arguments)
        try:
            others = known[len(own)]
        except KeyError:
            others = others_of(len(own))
        for number in numbers:
            by += _core._arrays_of(arguments[number], True)
        if not _core._is_tracing():
            _core.compute(*by)
        trace, leaves, twins = _core._begin_trace(by, (others(own), named))
        try:
            rest = iter(twins)  # the function may assign to what it is given
            for number in numbers:
                own[number] = _core._rebuild(arguments[number], rest)
            value = function(*own, **named)
            if not isinstance(value, Array):
                raise TypeError(f"a function to differentiate returns an Array of one element, not {type(value).__name__}")
            value = _core._twin(value)
        finally:
            _core._end_trace(trace)
        value, *gradients = _core._gradients(value, None, leaves)
        rest = iter(gradients)
        shaped = tuple(_core._rebuild(arguments[number], rest) for number in numbers)
        return value, shaped[0] if is_one else shaped

    both.__name__ = getattr(function, "__name__", "function")
    both.__doc__ = function.__doc__
    return both


def grad(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0) -> Callable[..., Any]:
    """A function that gives the gradient of `function`; see value_and_grad."""
    both = value_and_grad(function, argnums)

    def gradient(*arguments: Any, **named: Any) -> Any:
        return both(*arguments, **named)[1]

    gradient.__name__ = both.__name__
    gradient.__doc__ = function.__doc__
    return gradient
