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


def recorded(function: Callable[..., Any], arguments: list[Any], named: dict[str, Any], numbers: Sequence[int],
             others: Any) -> tuple[Any, tuple[Array, ...]]:
    """What the function returns, and the leaves that gradients are by: new arrays of the values of those arguments."""
    by: list[Array] = []
    own = list(arguments)
    for number in numbers:
        by += _core._arrays_of(own[number], True)
    if not _core._is_tracing():
        _core.compute(*by)
    trace, leaves, twins = _core._begin_trace(by, (others, named))
    try:
        rest = iter(twins)  # the function may assign to what it is given
        for number in numbers:
            own[number] = _core._rebuild(own[number], rest)
        result = function(*own, **named)
        if isinstance(result, Array):
            result = _core._twin(result)
        else:
            result = _core._rebuild(result, map(_core._twin, _core._arrays_of(result, False)))
    finally:
        _core._end_trace(trace)
    return result, leaves


def with_aux(result: Any) -> tuple[Any, Any]:
    """What a function returns that has_aux=True is said of."""
    if not isinstance(result, tuple) or len(result) != 2:
        raise TypeError(f"has_aux=True: the function returns (value, aux), not {type(result).__name__}")
    return result


def by_position(argnums: SupportsIndex | Sequence[SupportsIndex], numbers: Sequence[int], count: int) -> list[int]:
    """Those arguments of so many, each of which stands once."""
    own = [number + count if number < 0 else number for number in numbers]
    if len(set(own)) < len(own) or any(not 0 <= number < count for number in own):
        raise ValueError(f"argnums is {argnums}: it names arguments by position, of {count} here, each once")
    return own


def value_and_grad(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0, *,
                   has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives (value, gradient) of `function`, which returns an array of one element.

    argnums: which arguments the gradient is by; each is an array, or lists, tuples and dicts of arrays, and its gradient
    has the same form. Several: a tuple of gradients. Value and gradients are recorded and computed together.
    has_aux: the function returns (value, aux), and the new one ((value, aux), gradient): aux is anything, such as a nest of arrays.

        value, gradient = hg.value_and_grad(lambda w: (w * w).sum())(hg.ones(3))"""
    numbers: tuple[int, ...]
    try:
        numbers, is_one = (index(argnums),), True  # type: ignore[arg-type]
    except TypeError:
        numbers, is_one = integers_of(argnums), False

    known: dict[int, Callable[[list[Any]], Any]] = {}  # by how many arguments there are

    def others_of(count: int) -> Callable[[list[Any]], Any]:
        """Takes the arguments that the gradient is not by of so many."""
        own = by_position(argnums, numbers, count)
        others = [number for number in range(count) if number not in own]
        known[count] = itemgetter(*others) if others else lambda arguments: None
        return known[count]

    def both(*arguments: Any, **named: Any) -> Any:
        own = list(arguments)
        try:
            others = known[len(own)]
        except KeyError:
            others = others_of(len(own))
        value, leaves = recorded(function, own, named, numbers, others(own))
        aux, beside = None, []
        if has_aux:
            value, aux = with_aux(value)
            beside = _core._arrays_of(aux, False)
        if not isinstance(value, Array):
            raise TypeError(f"a function to differentiate returns an Array of one element, not {type(value).__name__}"
                            + (": has_aux=True is for (value, aux)" if isinstance(value, tuple) else ""))
        value, *gradients = _core._gradients(value, None, leaves, beside)
        rest = iter(gradients)
        shaped = tuple(_core._rebuild(arguments[number], rest) for number in numbers)
        return (value, _core._rebuild(aux, rest)) if has_aux else value, shaped[0] if is_one else shaped

    both.__name__ = getattr(function, "__name__", "function")
    both.__doc__ = function.__doc__
    return both


def grad(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0, *, has_aux: bool = False,
         check: bool = False) -> Callable[..., Any]:
    """A function that gives the gradient of `function`; see value_and_grad. With has_aux it gives (gradient, aux).

    check: each call compares the gradient with differences of the function in float64, along a random direction of each array, and
    raises a ValueError that says which array's gradient differs, and by how much. The function runs in float64 for that, several times.

        gradient = hg.grad(lambda w: (w * w).sum(), check=True)(hg.ones(3))"""
    both = value_and_grad(function, argnums, has_aux=has_aux)

    def gradient(*arguments: Any, **named: Any) -> Any:
        if check:
            from hologram._check import check_gradient

            check_gradient(function, argnums, has_aux, arguments, named)
        value, result = both(*arguments, **named)
        return (result, value[1]) if has_aux else result

    gradient.__name__ = both.__name__
    gradient.__doc__ = function.__doc__
    return gradient
