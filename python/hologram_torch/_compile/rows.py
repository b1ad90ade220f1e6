"""torch's operations as ours: what a node of a graph is called with becomes arrays, and a row says what is done with them.

A row is a function of (to, *arguments), `to` being the type of the result by its name; of several results a list. Operations that have no
row are decomposed by torch until they have, or computed by torch (graph.py). The rows stand in elements.py, shapes.py and sums.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

import hologram as hg
from hologram import _core
from hologram_torch.custom import FUNCTIONS, _listed

Array = hg.Array
Function = Callable[..., Any]
aten = torch.ops.aten
full: Callable[..., Array] = getattr(_core, "full")  # noqa: B009  the operation, which the stub has not


class Row(NamedTuple):
    """How a node is computed."""

    function: Function
    is_pointwise: bool = False  # operands become of the common type
    of_integers: bool = True
    is_random: bool = False  # the first argument is a key


ROWS: dict[Any, Row] = {}


def overloads(name: str) -> list[Any]:
    """Of `aten.name`, or the one of `aten.name.overload`. Those that write into an argument are none."""
    packet_name, _, overload = name.partition(".")
    packet = getattr(aten, packet_name, None)
    if packet is None:
        return []
    if overload:
        return [getattr(packet, overload)] if overload in packet.overloads() else []
    return [one for one in (getattr(packet, key) for key in packet.overloads()) if not one._schema.is_mutable]


def row(*names: str, **settings: Any) -> Callable[[Function], Function]:
    """The function is the row of torch's operations of these names."""

    def keep(function: Function) -> Function:
        for name in names:
            for overload in overloads(name):
                ROWS[overload] = Row(function, **settings)
        return function

    return keep


def pointwise(*names: str, **settings: Any) -> Callable[[Function], Function]:
    """A row whose operands become of one type first, as torch promotes them."""
    return row(*names, is_pointwise=True, **settings)


def row_of(operation: Any) -> Row | None:
    """Its row; of a custom_op the function of arrays that it was made of."""
    if operation not in ROWS and operation in FUNCTIONS:
        function = FUNCTIONS[operation]
        ROWS[operation] = Row(lambda to, arrays: _listed(function(*arrays)))
    return ROWS.get(operation)


def cast(x: Any, kind: str) -> Any:
    """x of a type; to bool whether it is not zero, as torch casts."""
    if not isinstance(x, Array) or x.dtype.name == kind:
        return x
    return _core.not_equal(x, 0) if kind == "bool" else _core.cast(x, kind)


def filled(shape: Any, value: Any, kind: str) -> Array:
    """One number, or an array of one element, everywhere."""
    return full(list(shape), value, kind) if not isinstance(value, Array) else _core.broadcast(cast(value, kind), list(shape))
