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
    expanded: tuple[int, ...]
    strides: tuple[int, ...] | None  # None: they depend on sizes that torch does not know yet
    has_gaps: bool


def layout_of(value: Any) -> Layout | None:
    """None: C order, or no tensor, or sizes of which nothing is known."""
    if not isinstance(value, torch.Tensor) or value.ndim == 0:
        return None
    known = [n for n in map(_hint, (*value.stride(), *value.shape)) if n is not None]
    strides, sizes = known[: value.ndim], known[value.ndim :]
    if len(known) < 2 * value.ndim or 0 in sizes or _agree(strides, _strides(sizes, range(value.ndim), ()), sizes):
        return None
    order = tuple(sorted(range(value.ndim), key=lambda axis: -strides[axis]))
    expanded = tuple(axis for axis, stride in enumerate(strides) if stride == 0 and sizes[axis] > 1)
    is_known = all(isinstance(n, int) for n in (*value.stride(), *value.shape))
    return Layout(order, expanded, tuple(strides) if is_known else None, not _agree(strides, _strides(sizes, order, expanded), sizes))


def _without_gaps(layout: Layout | None) -> Layout | None:
    return layout._replace(strides=None, has_gaps=False) if layout is not None and layout.has_gaps else layout


def _hint(number: Any) -> int | None:
    """None: it depends on what a tensor holds."""
    if isinstance(number, int):
        return number
    return int(number.node.hint) if number.node.has_hint() else None


def _agree(a: Sequence[int], b: Sequence[int], sizes: Sequence[int]) -> bool:
    return all(size == 1 or m == n for m, n, size in zip(a, b, sizes))


def _strides(sizes: Sequence[int], order: Sequence[int], expanded: Sequence[int]) -> tuple[int, ...]:
    """Those of elements side by side."""
    made, step = [0] * len(sizes), 1
    for axis in reversed(order):
        if axis not in expanded:
            made[axis], step = step, step * sizes[axis]
    return tuple(made)


class How(NamedTuple):
    """What options say."""

    numerics: int
    executor: hg.Executor | None
    is_strict: bool
    seen: int | None = None  # how many outputs somebody sees: what else is kept for a backward graph needs no gaps. None: all


class Recorder:
    """The graph, recorded for the arrays and numbers of one call."""

    def __init__(self, module: fx.GraphModule, how: How) -> None:
        graph = module.graph
        self.function = Function(graph)
        self.numerics = how.numerics
        (result,) = graph.find_nodes(op="output")
        outputs = [result.args[0]] if self.function.is_single else result.args[0]
        layouts = [layout_of(values_of(value)[0]) if isinstance(value, fx.Node) else None for value in outputs]
        seen = len(layouts) if how.seen is None else how.seen
        self.layouts = layouts[:seen] + [_without_gaps(layout) for layout in layouts[seen:]]
        inputs = [node for node in graph.nodes if node.op == "placeholder"]
        self.given = {i: inputs.index(value) for i, value in enumerate(outputs) if isinstance(value, fx.Node) and value.op == "placeholder"}

    def __call__(self, values: list[Any]) -> tuple[tuple[hg.Array, ...], tuple[Any, ...], tuple[Any, ...]]:
        """For inputs, constants and a row of keys: what is to compute, (shape, strides) of each or None, and of each output the place
        in that, -1 less the place of an input that it is, or (value,)."""
        count = len(self.function.inputs)
        keys = _core.cast(values[-1], "uint64") if self.function.keys else None
        before = _core._set_numerics(self.numerics)
        trace, _, _ = _core._begin_trace([], None)  # so that nothing is computed meanwhile, and views are nodes
        try:
            results = self.function(values[:count], values[count:], keys)
        finally:
            _core._end_trace(trace)
            _core._set_numerics(before)
        arrays: list[hg.Array] = []
        views: list[Any] = []
        form: list[Any] = []
        places: dict[int, int] = {}
        for i, value in enumerate(results):
            if i in self.given:
                form.append(-1 - self.given[i])
            elif not isinstance(value, hg.Array):
                form.append((value,))
            else:
                if id(value) not in places:
                    places[id(value)] = len(arrays)
                    arrays.append(_laid(value, self.layouts[i]))
                    views.append(_view(value.shape, self.layouts[i]))
                form.append(places[id(value)])
        return tuple(arrays), tuple(views), tuple(form)


class Compiled:
    """What a graph became. It is called as torch calls it: with a list, which it empties."""

    def __init__(self, module: fx.GraphModule, how: How) -> None:
        self.recorder = Recorder(module, how)
        self.executor = how.executor
        function = self.recorder.function
        self.is_single = function.is_single
        self.keys = function.keys
        self.constants = [getattr(module, name) for _, name in function.constants]
        self.is_elsewhere = self.executor is not None or any(layout is not None and layout.has_gaps for layout in self.recorder.layouts)
        self.is_plain = not (self.constants or self.keys or self.is_elsewhere)
        self.run = _core._compiled(self.recorder, _TYPES)

    def __call__(self, arguments: list[Any]) -> list[Any]:
        if self.constants or self.keys:
            arguments.extend(self.constants)
            if self.keys:
                keys = torch.empty(self.keys, dtype=torch.int64).random_()
                devices = [value.device for value in arguments if isinstance(value, torch.Tensor)]
                arguments.append(keys.to(devices[0]) if devices else keys)
        made = None if self.is_elsewhere else self.run(arguments)
        return self.compute(arguments) if made is None else made

    def compute(self, arguments: list[Any]) -> list[Any]:
        """On another executor, of memory that no table lends, or into memory with gaps."""
        inputs = list(arguments)
        arguments.clear()
        device = next((value.device for value in inputs if isinstance(value, torch.Tensor)), None)
        own = [as_array(value, self.executor) if isinstance(value, torch.Tensor) else value for value in inputs]
        arrays, views, form = self.recorder(own)
        _core.compute(*arrays)  # as one computation
        made = [_seen(as_tensor(_core._own(x), device), view) for x, view in zip(arrays, views)]
        return [entry[0] if isinstance(entry, tuple) else made[entry] if entry >= 0 else inputs[-1 - entry] for entry in form]


def _laid(array: hg.Array, layout: Layout | None) -> hg.Array:
    """The array whose C order is what torch expects."""
    if layout is None:
        return array
    for axis in layout.expanded:
        array = _core.slice(array, axis, 0, 1)
    return _core.permute(array, list(layout.order))


def _view(shape: tuple[int, ...], layout: Layout | None) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    return None if layout is None else (shape, layout.strides or _strides(shape, layout.order, layout.expanded))


def _seen(tensor: torch.Tensor, view: tuple[tuple[int, ...], tuple[int, ...]] | None) -> torch.Tensor:
    if view is None:
        return tensor
    shape, strides = view
    last = sum((size - 1) * stride for size, stride in zip(shape, strides))
    if last < tensor.numel():
        return tensor.as_strided(shape, strides)
    order = sorted(range(len(shape)), key=lambda axis: -strides[axis])
    dense = tensor.as_strided(shape, _strides(shape, order, [axis for axis in order if strides[axis] == 0 and shape[axis] > 1]))
    return torch.empty_strided(shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(dense)


def boxed(module: fx.GraphModule, how: How) -> Callable[..., Any]:
    """The graph as a function that torch calls with a list, which it empties."""
    compiled = Compiled(module, how)
    run = compiled.run

    def at_once(arguments: list[Any]) -> list[Any]:
        made = run(arguments)
        return compiled.compute(arguments) if made is None else made

    def prepared(arguments: list[Any]) -> list[Any]:
        return compiled(arguments)

    computation = at_once if compiled.is_plain else prepared
    computation._boxed_call = True  # type: ignore[attr-defined]
    return computation
