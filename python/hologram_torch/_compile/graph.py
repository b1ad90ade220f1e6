"""A graph of torch's operations as one function of arrays, where every node has a row; and what has none, and why."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Container, Sequence
from typing import Any
from typing import cast as cast_type

import torch
from torch import fx
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

import hologram as hg
from hologram_torch._compile import elements, shapes, sums  # noqa: F401  their rows
from hologram_torch._compile.rows import Row, cast, filled, row_of

TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64")


def name_of(dtype: torch.dtype) -> str:
    return str(dtype)[6:]


def values_of(node: fx.Node) -> list[Any]:
    """What torch says the node gives: fake tensors and numbers."""
    value = node.meta.get("val")
    return list(value) if isinstance(value, (tuple, list)) else [value]


def why_not(node: fx.Node, views: Container[fx.Node] = ()) -> str:
    """Why a node is left to torch; nothing: it is not. Of the views, torch expects the memory."""
    if node.op == "get_attr" or node.op == "placeholder":
        return ""
    if node.op != "call_function":
        return "it is no operation"
    if not any(isinstance(value, torch.Tensor) for value in values_of(node)):
        return "" if _is_of_numbers(node) else "it gives no tensor"
    if node.target is operator.getitem:
        return why_not(node.all_input_nodes[0], views)
    if node in views:
        return RETURNED
    row = row_of(node.target)
    if row is None:
        return "no row"
    for value in (*values_of(node), *(v for source in node.all_input_nodes for v in values_of(source))):
        reason = _why_not_tensor(value)
        if reason:
            return reason
    if not row.of_integers and not any(value.dtype.is_floating_point for value in values_of(node) if isinstance(value, torch.Tensor)):
        inputs = [v for source in node.all_input_nodes for v in values_of(source) if isinstance(v, torch.Tensor)]
        if not any(v.dtype.is_floating_point for v in inputs):
            return "of integers"
    return _why_not_arguments(node)


RETURNED = "a view that is returned"


def returned_views(graph: fx.Graph, seen: int | None) -> set[fx.Node]:
    """The views of inputs and of other results among the outputs that somebody sees, and what they are views of: where sizes are
    symbols, AOTAutograd makes them again of the strides and the offset in memory that the graph's outputs have."""
    if not any(_has_symbols(value) for node in graph.nodes for value in values_of(node)):
        return set()
    (result,) = graph.find_nodes(op="output")
    outputs: Any = result.args[0] if isinstance(result.args[0], (tuple, list)) else [result.args[0]]
    returned = {node for node in outputs[:seen] if isinstance(node, fx.Node)}
    times = Counter(key for node in returned for key in _storages(node))
    made = {key for node in returned if node.op != "placeholder" for key in _storages(node)}
    lent = {key for node in graph.nodes if node.op == "placeholder" for key in _storages(node)}
    several = {key for key in made if times[key] > 1}

    def is_left(node: fx.Node) -> bool:
        own = _storages(node)
        return bool(own & made & lent) or any(own & several & _storages(source) for source in node.all_input_nodes)

    return {node for node in graph.nodes if node.op == "call_function" and is_left(node)}


def _has_symbols(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.layout == torch.strided and any(isinstance(n, torch.SymInt) for n in (*value.shape, *value.stride()))
    return isinstance(value, torch.SymInt)


def _storages(node: fx.Node) -> set[int]:
    tensors = [value for value in values_of(node) if isinstance(value, torch.Tensor) and value.layout == torch.strided]
    return {int(value.untyped_storage()._cdata) for value in tensors}


def _why_not_tensor(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return ""
    if name_of(value.dtype) not in TYPES:
        return f"of {name_of(value.dtype)}"
    if value.layout != torch.strided or value.ndim > 8:
        return f"of {value.ndim} axes" if value.ndim > 8 else "not strided"
    return "" if value.device.type in ("cpu", "cuda") else f"on {value.device.type}"


def _why_not_arguments(node: fx.Node) -> str:
    aten = torch.ops.aten
    if node.target in (aten.index.Tensor, aten._unsafe_index.Tensor, aten.index_put.default, aten._unsafe_index_put.default):
        indices = [values_of(index)[0].dtype for index in cast_type(list[fx.Node], node.args[1]) if index is not None]
        return "by a mask" if not {torch.bool, torch.uint8}.isdisjoint(indices) and not _puts_one_value(node, indices) else ""
    if node.target in POWERS and not values_of(node)[0].is_floating_point() and node.args[1] not in (1, 2, 3):
        return "of integers"
    if node.target is aten.polygamma.default and cast_type(int, node.args[0]) > 2:
        return "of an order above 2"
    return "of a generator of its own" if node.kwargs.get("generator") is not None else ""


POWERS = (torch.ops.aten.pow.Scalar, torch.ops.aten.pow.Tensor_Scalar, torch.ops.aten.pow.Tensor_Tensor)
VIEWS = {getattr(torch.ops.aten, name).default for name in "view permute expand unsqueeze squeeze t alias detach".split()} | {
    torch.ops.aten.squeeze.dim, torch.ops.aten.squeeze.dims, torch.ops.aten.transpose.int, torch.ops.aten.slice.Tensor,
    torch.ops.aten.select.int, torch.ops.aten.split.Tensor, torch.ops.aten.split_with_sizes.default, operator.getitem}  # fmt: skip


def _puts_one_value(node: fx.Node, indices: list[torch.dtype]) -> bool:
    """x[mask] = value"""
    is_put = node.target in (torch.ops.aten.index_put.default, torch.ops.aten._unsafe_index_put.default)
    if not is_put or indices != [torch.bool] or (len(node.args) > 3 and node.args[3]):
        return False
    value = cast_type(list[fx.Node], list(node.args))[2]
    return bool(values_of(value)[0].ndim == 0)


def is_view(node: fx.Node) -> bool:
    """It costs torch nothing."""
    return node.target in VIEWS


def _is_of_numbers(node: fx.Node) -> bool:
    """Sizes, and what is computed of them."""
    values = [value for source in node.all_input_nodes for value in values_of(source)]
    is_size = node.target in (torch.ops.aten.sym_size.int, torch.ops.aten.sym_numel.default)
    return is_size or not any(isinstance(value, torch.Tensor) for value in values)


class Step:
    """One node: what is called, with places of a list of values in its arguments."""

    __slots__ = ("arguments", "common", "function", "is_pointwise", "is_random", "named", "place", "to")

    def __init__(self, node: fx.Node, place: int, places: dict[fx.Node, int]) -> None:
        row = row_of(node.target) if node.op == "call_function" else None
        self.place = place
        self.function: Any = node.target if row is None else row.function
        if node.target is torch.ops.aten.sym_size.int:
            self.function = lambda x, axis: x.shape[axis]
        elif node.target is torch.ops.aten.sym_numel.default:
            self.function = lambda x: x.size
        self.arguments = tuple(_planned(value, places) for value in node.args)
        self.named = {key: _planned(value, places) for key, value in node.kwargs.items()}
        self.to = None if row is None else _type_of(node)
        self.is_pointwise = row is not None and row.is_pointwise
        self.is_random = row is not None and row.is_random
        self.common = _common(node, row)

    def run(self, values: list[Any], key: Any) -> Any:
        arguments = [_filled(value, values) for value in self.arguments]
        named = {name: _filled(value, values) for name, value in self.named.items()} if self.named else {}
        if self.to is None:
            return self.function(*arguments, **named)
        if self.is_pointwise:
            arguments = [cast(value, self.common) for value in arguments]
            return cast(_whole(self.function(self.to, *arguments, **named), self.common), self.to)
        made = self.function(key, self.to, *arguments, **named) if self.is_random else self.function(self.to, *arguments, **named)
        return cast(made, self.to) if isinstance(self.to, str) else made


class Place(int):
    """The number of a value."""


def _planned(value: Any, places: dict[fx.Node, int]) -> Any:
    if isinstance(value, fx.Node):
        return Place(places[value])
    if isinstance(value, (tuple, list)):
        return [_planned(one, places) for one in value]
    return value


def _filled(value: Any, values: list[Any]) -> Any:
    if value.__class__ is Place:
        return values[value]
    return [_filled(one, values) for one in value] if value.__class__ is list else value


def _whole(value: Any, kind: str) -> Any:
    return value if isinstance(value, hg.Array) else filled((), value, kind)


def _type_of(node: fx.Node) -> Any:
    types = [name_of(value.dtype) if isinstance(value, torch.Tensor) else "" for value in values_of(node)]
    return types if isinstance(node.meta.get("val"), (tuple, list)) else types[0]


def _common(node: fx.Node, row: Row | None) -> str:
    """The type that operands become before they meet: the result's, but of what gives bools torch's common one, and float32 where
    16-bit floats meet a number, which they need not hold."""
    if row is None or not row.is_pointwise:
        return ""
    kind = name_of(values_of(node)[0].dtype)
    if kind in ("float16", "bfloat16") and _meets_number(node):
        return "float32"
    if kind != "bool":
        return kind
    operands = [values_of(value)[0] if isinstance(value, fx.Node) else value for value in node.args]
    numbers = [value for value in operands if isinstance(value, (torch.Tensor, int, float, torch.SymInt, torch.SymFloat))]
    return name_of(elementwise_dtypes(*numbers, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)[1])


def _meets_number(node: fx.Node) -> bool:
    """It is a product of a tensor of its own type and a number, which a tensor without axes is as well, or such a quotient by one. Sums
    are none: torch rounds the number first."""
    packet, aten = getattr(node.target, "overloadpacket", None), torch.ops.aten
    if packet not in (aten.mul, aten.div, aten.true_divide):
        return False
    operands: list[Any] = [values_of(value)[0] if isinstance(value, fx.Node) else value for value in (*node.args, *node.kwargs.values())]
    is_number = [not isinstance(value, torch.Tensor) or value.ndim == 0 for value in operands]
    kind = values_of(node)[0].dtype
    is_of_kind = all(value.dtype == kind for value, is_one in zip(operands, is_number) if not is_one)
    return is_of_kind and (any(is_number) if packet == aten.mul else is_number[1])


class Function:
    """The graph as a function of what its placeholders stand for: arrays and numbers, and a key for each random node."""

    def __init__(self, graph: fx.Graph) -> None:
        places: dict[fx.Node, int] = {}
        self.constants: list[tuple[int, str]] = []  # attributes of the module
        self.steps: list[Step] = []
        self.inputs: list[int] = []  # placeholders stand anywhere in a part of a graph
        for node in graph.nodes:
            places[node] = len(places)
            if node.op == "placeholder":
                self.inputs.append(places[node])
            elif node.op == "get_attr":
                self.constants.append((places[node], str(node.target)))
            elif node.op == "call_function":
                self.steps.append(Step(node, places[node], places))
        self.keys = sum(step.is_random for step in self.steps)
        self.count = len(places)
        (result,) = graph.find_nodes(op="output")
        self.is_single = not isinstance(result.args[0], (tuple, list))
        self.outputs = [_planned(value, places) for value in ([result.args[0]] if self.is_single else result.args[0])]

    def __call__(self, inputs: Sequence[Any], constants: Sequence[Any], keys: hg.Array | None) -> list[Any]:
        """Of each output an array, a number or None."""
        values: list[Any] = [None] * self.count
        for place, value in zip(self.inputs, inputs):
            values[place] = value
        for (place, _), constant in zip(self.constants, constants):
            values[place] = constant
        drawn = 0
        for step in self.steps:
            key = None
            if step.is_random:
                key, drawn = keys[drawn], drawn + 1  # type: ignore[index]
            values[step.place] = step.run(values, key)
        return [_filled(value, values) for value in self.outputs]


def left_to_torch(graph: fx.Graph, views: Container[fx.Node] = ()) -> Counter[str]:
    """The nodes without a row, by name and reason."""
    reasons: Counter[str] = Counter()
    for node in graph.nodes:
        if node.op not in ("placeholder", "output") and node.target is not operator.getitem and (reason := why_not(node, views)):
            reasons[f"{node.target}: {reason}"] += 1
    return reasons
