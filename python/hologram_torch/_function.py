"""Functions of arrays as functions of tensors. The gradient is the table's, recorded as one more function of arrays: it has a
gradient in its turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce
from operator import add
from typing import Any

import torch

import hologram as hg
from hologram import _core
from hologram_torch.convert import as_array, as_tensor

Arrays = Callable[..., Any]  # of arrays; gives one, or a tuple of them
_TYPES = (torch.Tensor, torch.nn.Parameter)


@cache
def on_tensors(name: str) -> Callable[..., Any]:
    """The operation of the table; tensors among its arguments are its operands, others go through. An executor may come first, or
    as a keyword."""
    operation = getattr(_core, name)

    def call(*arguments: Any, executor: hg.Executor | None = None, **named: Any) -> Any:
        if arguments and isinstance(arguments[0], hg.Executor):
            executor, arguments = arguments[0], arguments[1:]
        arguments, named = _of_one_type(name, arguments, named)
        return _call(operation, executor, arguments, named)

    return _core._on_tensors(name, _TYPES, torch.is_grad_enabled, _follow, call)


def _of_one_type(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Tensors that an operation makes of one type, cast to the one that torch makes of them."""
    kind = None
    for value in (*arguments, *named.values()) if named else arguments:
        if isinstance(value, torch.Tensor):
            dtype = value.dtype
            if kind is not None and dtype is not kind:
                break
            kind = dtype
    else:
        if kind is not None and (name != "div" or kind.is_floating_point):
            return arguments, named
    inputs = _core._row_inputs(name)
    groups: dict[int, list[Any]] = {}  # of places
    for place, (key, group) in enumerate(inputs):
        groups.setdefault(group, []).extend(at for at in (place, key) if isinstance(_at(at, arguments, named), torch.Tensor))
    own, words = list(arguments), dict(named)
    for places in groups.values():
        tensors = [_at(place, arguments, named) for place in places]
        if not tensors:
            continue
        dtype = _together(tensors)
        if name == "div" and not dtype.is_floating_point:
            dtype = torch.get_default_dtype()
        for place, tensor in zip(places, tensors):
            if isinstance(place, int):
                own[place] = tensor.to(dtype)
            else:
                words[place] = tensor.to(dtype)
    return tuple(own), words


def _at(place: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """An argument by its number or its name; None: it is not given."""
    if isinstance(place, int):
        return arguments[place] if place < len(arguments) else None
    return named.get(place)


def _together(tensors: list[torch.Tensor]) -> torch.dtype:
    """torch's result_type of any number of tensors."""
    made = tensors[0]
    for tensor in tensors[1:]:
        if tensor.dtype != made.dtype:
            made = torch.empty((0,) if made.ndim or tensor.ndim else (), dtype=torch.result_type(made, tensor))
        elif tensor.ndim:
            made = tensor
    return made.dtype


def _call(operation: Arrays, executor: hg.Executor | None, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """operation(*arguments, **settings), of which tensors are the operands."""
    tensors = tuple(value for value in (*arguments, *settings.values()) if isinstance(value, torch.Tensor))
    if not settings and len(tensors) == len(arguments):
        return _apply(operation, executor, tensors)
    places: Sequence[Any] = [... if isinstance(value, torch.Tensor) else value for value in arguments]
    named = {key: ... if isinstance(value, torch.Tensor) else value for key, value in settings.items()}
    if _is_followed(tensors):
        places, named = _core._kept(places), dict(zip(named, _core._kept((*named.values(),))))
    return _apply(_with(operation, places, named), executor, tensors)


def _with(operation: Arrays, places: Sequence[Any], named: dict[str, Any]) -> Arrays:
    """The operation as a function of its arrays alone: an ellipsis stands where one goes."""

    def function(*arrays: hg.Array) -> Any:
        rest = iter(arrays)
        own = [next(rest) if value is ... else value for value in places]
        return operation(*own, **{key: next(rest) if value is ... else value for key, value in named.items()})

    return function


def _apply(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    """The function of the tensors' memory. Where a gradient is wanted torch's graph remembers it."""
    if torch._C._are_functorch_transforms_active():
        return _Transformed.apply(function, executor, *tensors)  # type: ignore[no-untyped-call]  # torch's
    if _is_followed(tensors):
        return _Function.apply(function, executor, *tensors)  # type: ignore[no-untyped-call]  # torch's
    return _run(function, executor, tensors)


def _is_followed(tensors: tuple[torch.Tensor, ...]) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return True
    return False


def _run(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    made = _core._run_on_tensors(function, tensors, _TYPES) if executor is None else None
    if made is not None:
        return made
    result = function(*(as_array(tensor, executor) for tensor in tensors))
    device = tensors[0].device if tensors else None
    if not isinstance(result, tuple):
        return as_tensor(_core._own(result), device)
    _core.compute(*result)  # as one computation
    return tuple(as_tensor(_core._own(value), device) for value in result)


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Arrays, executor: hg.Executor | None, *tensors: torch.Tensor) -> Any:
        ctx.function, ctx.executor, ctx.numerics = function, executor, _core._numerics()
        ctx.save_for_backward(*tensors)
        return _run(function, executor, tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        wanted = ctx.needs_input_grad[2:]
        return None, None, *_gradients(ctx.function, ctx.numerics, ctx.executor, ctx.saved_tensors, wanted, cotangents)


class _Transformed(torch.autograd.Function):
    """The function where torch.func is at work: its transformations are those of arrays."""

    @staticmethod
    def forward(function: Arrays, executor: hg.Executor | None, *tensors: torch.Tensor) -> Any:
        return _run(function, executor, tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.function, ctx.executor, *tensors = inputs
        ctx.numerics = _core._numerics()
        ctx.save_for_backward(*tensors)
        ctx.save_for_forward(*tensors)

    backward = staticmethod(_Function.backward)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        function, executor, *tensors = arguments
        made = _apply(hg.vmap(function, in_dims[2:]), executor, tuple(tensors))
        return made, tuple(0 for _ in made) if isinstance(made, tuple) else 0

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> Any:
        tensors, function = ctx.saved_tensors, ctx.function
        by = [place for place, tangent in enumerate(tangents[2:]) if tangent is not None]

        def pushed(*arrays: hg.Array) -> Any:
            own = list(arrays[: len(tensors)])

            def of(*moved: hg.Array) -> Any:
                for place, array in zip(by, moved):
                    own[place] = array
                return function(*own)

            return hg.jvp(of, tuple(own[place] for place in by), arrays[len(tensors) :])[1]

        return _apply(pushed, ctx.executor, (*tensors, *(tangents[2 + place] for place in by)))  # type: ignore[arg-type]


class _Row(torch.autograd.Function):
    """An operation of the table where the tensors are: of a function of _core._on_tensors, its names and its values."""

    forward = staticmethod(_core._tensors_forward)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        made = None if torch.is_grad_enabled() else _core._tensors_backward(ctx, *cotangents)
        if made is not None:
            return made
        function, names, rest, numerics = ctx.call
        unnamed = len(rest) - len(names or ())
        operation = _with(getattr(_core, function.operation), rest[:unnamed], dict(zip(names or (), rest[unnamed:])))
        wanted = tuple(one for one, value in zip(ctx.needs_input_grad[2:], rest) if value is ...)
        gradients = iter(_gradients(operation, numerics, None, ctx.saved_tensors, wanted, cotangents))
        return None, None, *(next(gradients) if value is ... else None for value in rest)


# What Function.apply calls where torch.func is not at work.
_apply_row: Callable[..., Any] = getattr(super(torch.autograd.Function, _Row), "apply")  # noqa: B009


def _follow(*call: Any) -> Any:
    return NotImplemented if torch._C._are_functorch_transforms_active() else _apply_row(*call)


def _gradients(function: Arrays, numerics: int, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...],
               wanted: tuple[bool, ...], cotangents: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor | None, ...]:  # fmt: skip
    """Of each tensor, None where it is not wanted; by a function of tensors in its turn. The numerics are those of the call, not
    of the thread and time of its gradient."""
    count = len(tensors)

    def pulled(*arrays: hg.Array) -> tuple[hg.Array, ...]:
        before = _core._set_numerics(numerics)
        try:
            return _pull(function, arrays[:count], wanted, arrays[count:])
        finally:
            _core._set_numerics(before)

    gradients = iter(_apply(pulled, executor, (*tensors, *cotangents)))
    return tuple(next(gradients) if one else None for one in wanted)


def _pull(function: Arrays, arrays: tuple[hg.Array, ...], wanted: tuple[bool, ...],
          cotangents: tuple[hg.Array, ...]) -> tuple[hg.Array, ...]:  # fmt: skip
    """The gradients by the arrays that are wanted of what the function gives, weighted by the cotangents. Others are not traced:
    they may be numbers to the operation."""
    trace, leaves, twins = _core._begin_trace([array for array, one in zip(arrays, wanted) if one], None)
    try:
        own = iter(twins)
        value: Any = function(*(next(own) if one else array for array, one in zip(arrays, wanted)))
        cotangent: hg.Array | None = cotangents[0]
        if isinstance(value, tuple):
            value, cotangent = reduce(add, (hg.sum(part * weight) for part, weight in zip(value, cotangents))), None
    finally:
        _core._end_trace(trace)
    return _core._gradients(value, cotangent, leaves)[1:]
