"""What layers and optimisers have in common: they are made of settings, which their text shows, and know other libraries' names of them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any, Self


class Settings:
    _near: dict[str, str] = {}  # other names of arguments, and what to write instead

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        own = getattr(getattr(cls.__init__, "__code__", None), "co_varnames", ())
        for name in named:
            if name in cls._near and name not in own:
                raise TypeError(f"{cls.__name__} has no argument {name!r}: write {cls._near[name]}")
        return super().__new__(cls)

    def _shown(self) -> str:
        """The settings as arguments; None and what is private are left out."""
        return ", ".join(f"{name}={text(value)}" for name, value in vars(self).items()
                         if name[0] != "_" and value is not None and not isinstance(value, Settings))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._shown()})"


def text(value: Any) -> str:
    """A function by its name, others as they are written."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)
