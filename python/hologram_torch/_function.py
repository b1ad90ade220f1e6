"""Functions of arrays as functions of tensors. The gradient is the table's, recorded as one more function of arrays: it has a
gradient in its turn."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

import torch

import hologram as hg
from hologram import _core
from hologram_torch.convert import as_array, as_tensor

Arrays = Callable[..., Any]  # of arrays; gives one, or a tuple of them
_TYPES = (torch.Tensor, torch.nn.Parameter)
_KINDS = set(_TYPES)
_OPERAND = object()


def call(operation: Arrays, executor: hg.Executor | None, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """operation(*arguments, **settings), of which tensors are the operands. What else there is goes through."""
    if not settings and {*map(type, arguments)} <= _KINDS:
        return apply(operation, executor, arguments)
    tensors = tuple(value for value in (*arguments, *settings.values()) if isinstance(value, torch.Tensor))
    places = [_OPERAND if isinstance(value, torch.Tensor) else value for value in arguments]
    named = {key: _OPERAND if isinstance(value, torch.Tensor) else value for key, value in settings.items()}

    def function(*arrays: hg.Array) -> Any:
        rest = iter(arrays)
        own = [next(rest) if value is _OPERAND else value for value in places]
        return operation(*own, **{key: next(rest) if value is _OPERAND else value for key, value in named.items()})

    return apply(function, executor, tensors)


def apply(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    """The function of the tensors' memory. Where a gradient is wanted torch's graph remembers it."""
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return _Function.apply(function, executor, *tensors)
    return _run(function, executor, tensors)


def _run(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    arrays = _core._borrow_by_table(tensors, _TYPES) if executor is None else None
    device = None
    if arrays is None:
        arrays = tuple(as_array(tensor, executor) for tensor in tensors)
        device = tensors[0].device if tensors else None
    result = function(*arrays)
    if not isinstance(result, tuple):
        return _own_tensor(result, device)
    _core.compute(*result)  # as one computation
    return tuple(_own_tensor(value, device) for value in result)


def _own_tensor(array: hg.Array, device: torch.device | None) -> torch.Tensor:
    """It shares no memory with what the array was made of."""
    tensor = _core._export_by_table(array, torch.Tensor, True) if device is None else None
    return as_tensor(_core._own(array), device) if tensor is None else tensor


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, function: Arrays, executor: hg.Executor | None, *tensors: torch.Tensor) -> Any:
        ctx.function, ctx.executor = function, executor
        ctx.save_for_backward(*tensors)
        return _run(function, executor, tensors)

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> Any:
        tensors, wanted = ctx.saved_tensors, ctx.needs_input_grad[2:]
        count = len(tensors)

        def pulled(*arrays: hg.Array) -> tuple[hg.Array, ...]:
            return _pull(ctx.function, arrays[:count], wanted, arrays[count:])

        gradients = iter(apply(pulled, ctx.executor, (*tensors, *cotangents)))
        return None, None, *(next(gradients) if one else None for one in wanted)


def _pull(function: Arrays, arrays: tuple[hg.Array, ...], wanted: tuple[bool, ...],
          cotangents: tuple[hg.Array, ...]) -> tuple[hg.Array, ...]:  # fmt: skip
    """The gradients by the arrays that are wanted of what the function gives, weighted by the cotangents."""
    leaves = tuple(_core._alias(array) for array in arrays)
    _core._trace(1)
    try:
        value, cotangent = function(*leaves), cotangents[0]
        if isinstance(value, tuple):
            value, cotangent = reduce(add, (hg.sum(part * weight) for part, weight in zip(value, cotangents))), None
    finally:
        _core._trace(-1)
    return _core._gradients(value, cotangent, tuple(leaf for leaf, one in zip(leaves, wanted) if one))[1:]
