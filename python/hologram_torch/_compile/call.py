"""A graph whose nodes all have rows, called with tensors: their memory is lent, and results have torch's strides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

import hologram as hg
from hologram import _core
from hologram_torch._compile.graph import Function, values_of
from hologram_torch.convert import as_array, as_tensor

_TYPES = (torch.Tensor, torch.nn.Parameter)


class Layout(NamedTuple):
    """Where torch expects an output's elements: in C order of its axes in another order, once for those that are expanded."""

    order: tuple[int, ...]
    back: tuple[int, ...]
    expanded: tuple[int, ...]
    strides: tuple[int, ...] | None  # None: they depend on sizes that torch does not know yet


def layout_of(value: Any) -> Layout | None:
    """None: C order, or no tensor."""
    if not isinstance(value, torch.Tensor) or value.ndim == 0:
        return None
    strides, sizes = [_hint(n) for n in value.stride()], [_hint(n) for n in value.shape]
    expected, dense = 1, True
    for size, stride in zip(reversed(sizes), reversed(strides)):
        dense = dense and (size == 1 or stride == expected)
        expected *= size
    if dense or 0 in sizes:
        return None
    expanded = tuple(axis for axis, stride in enumerate(strides) if stride == 0 and sizes[axis] > 1)
    order = tuple(sorted(range(value.ndim), key=lambda axis: -strides[axis]))
    back = tuple(order.index(axis) for axis in range(value.ndim))
    return Layout(order, back, expanded, tuple(strides) if all(isinstance(n, int) for n in (*value.stride(), *value.shape)) else None)


def _hint(number: Any) -> int:
    return number if isinstance(number, int) else int(number.node.hint)


class How(NamedTuple):
    """What options say."""

    numerics: int
    executor: hg.Executor | None
    is_strict: bool


def boxed(module: fx.GraphModule, how: How) -> Callable[..., Any]:
    """The graph as a function that torch calls with a list, which it empties."""
    compiled = Compiled(module, how)

    def computation(arguments: list[Any]) -> list[Any]:
        return compiled(arguments)

    computation._boxed_call = True  # type: ignore[attr-defined]
    return computation


class Compiled:
    """What a graph became."""

    def __init__(self, module: fx.GraphModule, how: How) -> None:
        graph = module.graph
        self.function = Function(graph)
        self.numerics, self.executor = how.numerics, how.executor
        self.constants = [getattr(module, name) for _, name in self.function.constants]
        (result,) = graph.find_nodes(op="output")
        outputs = [result.args[0]] if self.function.is_single else result.args[0]
        self.layouts = [layout_of(values_of(value)[0]) if isinstance(value, fx.Node) else None for value in outputs]
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.given = {i: inputs.index(value) for i, value in enumerate(outputs) if isinstance(value, fx.Node) and value.op == "placeholder"}

    def __call__(self, arguments: list[Any]) -> list[Any]:
        inputs = list(arguments)
        arguments.clear()
        places = [i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
        tensors = [inputs[i] for i in places] + self.constants
        if self.function.keys:
            keys = torch.empty(self.function.keys, dtype=torch.int64).random_()
            tensors.append(keys.to(tensors[0].device) if tensors else keys)
        results: list[Any] = [None] * len(self.layouts)
        made: list[int] = []
        shapes: list[tuple[int, ...]] = []

        def record(*arrays: hg.Array) -> tuple[hg.Array, ...]:
            values = list(inputs)
            for i, array in zip(places, arrays):
                values[i] = array
            own = self.record(values, arrays[len(places) :])
            made[:] = [i for i, value in enumerate(own) if isinstance(value, hg.Array) and i not in self.given]
            results[:] = own
            shapes[:] = [own[i].shape for i in made]
            return tuple(_laid(own[i], self.layouts[i]) for i in made)

        computed = self._run(record, tuple(tensors))
        for i, tensor, shape in zip(made, computed, shapes):
            results[i] = _as_expected(tensor, self.layouts[i], shape)
        for i, place in self.given.items():
            results[i] = inputs[place]
        return results

    def record(self, values: list[Any], more: Sequence[hg.Array]) -> list[Any]:
        """The outputs of inputs, constants and a row of keys."""
        keys = _core.cast(more[-1], "uint64") if self.function.keys else None
        before = _core._set_numerics(self.numerics)
        try:
            return self.function(values, more, keys)
        finally:
            _core._set_numerics(before)

    def _run(self, record: Callable[..., tuple[hg.Array, ...]], tensors: tuple[torch.Tensor, ...]) -> Sequence[torch.Tensor]:
        made = _core._run_on_tensors(record, tensors, _TYPES) if self.executor is None else None
        if made is not None:
            return tuple(made)
        device = tensors[0].device if tensors else None
        arrays = record(*(as_array(tensor, self.executor) for tensor in tensors))
        _core.compute(*arrays)  # as one computation
        return tuple(as_tensor(_core._own(x), device) for x in arrays)


def _laid(array: hg.Array, layout: Layout | None) -> hg.Array:
    """The array whose C order is what torch expects."""
    if layout is None:
        return array
    for axis in layout.expanded:
        array = _core.slice(array, axis, 0, 1)
    return _core.permute(array, list(layout.order))


def _as_expected(tensor: torch.Tensor, layout: Layout | None, shape: tuple[int, ...]) -> torch.Tensor:
    if layout is None:
        return tensor
    tensor = tensor.permute(layout.back).expand(shape)
    if layout.strides is None or tensor.stride() == layout.strides:
        return tensor
    return torch.empty_strided(shape, layout.strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)
