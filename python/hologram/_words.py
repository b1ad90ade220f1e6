"""Functions written in Python refuse an argument by another library's name in the words of those of the table: near.def has them."""

from __future__ import annotations

import sys
from functools import wraps
from types import FunctionType

from hologram._core import _near_word

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_HAVE_NEAR_ONES = {"axis", "axes", "keepdims"}


def _arguments(function: FunctionType) -> tuple[str, ...]:
    code = function.__code__
    return code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]


def _explained(function: Any) -> Any:
    own = _arguments(function)

    @wraps(function)
    def called(*arguments: Any, **words: Any) -> Any:
        try:
            return function(*arguments, **words)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # it was called
                raise
            for word in words:
                what = None if word in own else _near_word(word)
                if what is None or (" " not in what and what not in own):
                    continue
                what = f"it is {what} here" if what in own else what
                raise TypeError(f"{function.__name__} has no argument {word!r}: {what}") from None
            raise
    return called


def explain() -> None:
    """Puts functions that do so in place of those of the modules that have been imported."""
    made: dict[Any, Any] = {}
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] != "hologram":
            continue
        names = vars(module)
        for name, value in [*names.items()]:
            if type(value) is FunctionType and not _HAVE_NEAR_ONES.isdisjoint(_arguments(value)) and value.__name__[0] != "_":
                if value not in made:
                    made[value] = _explained(value)
                names[name] = made[value]
