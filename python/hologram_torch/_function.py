"""Functions of arrays as functions of tensors. The gradient is the table's, recorded as one more function of arrays: it has a
gradient in its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import hologram as hg
from hologram import _core
from hologram_torch.convert import as_array, as_tensor

Arrays = Callable[..., Any]  # of arrays; gives one, or a tuple of them
_TYPES = (torch.Tensor, torch.nn.Parameter)


def apply(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    """The function of the tensors' memory. Where a gradient is wanted torch's graph remembers it."""
    follows = torch.is_grad_enabled()
    if executor is None:
        made = _core._call_on(function, tensors, _TYPES, "requires_grad" if follows else None)
        if made is not None:
            return made
    if follows and any(tensor.requires_grad for tensor in tensors):
        return _Function.apply(function, executor, *tensors)
    return _run(function, executor, tensors)


def _run(function: Arrays, executor: hg.Executor | None, tensors: tuple[torch.Tensor, ...]) -> Any:
    result = function(*(as_array(tensor, executor) for tensor in tensors))
    device = tensors[0].device if tensors else None
    if isinstance(result, tuple):
        _core.compute(*result)  # as one computation
        return tuple(as_tensor(value, device, is_own=True) for value in result)
    return as_tensor(result, device, is_own=True)


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
        value = function(*leaves)
        if isinstance(value, tuple) and len(value) == 1:
            value = value[0]
        if isinstance(value, tuple):
            terms = [hg.sum(part * cotangent) for part, cotangent in zip(value, cotangents)]
            value = terms[0]
            for term in terms[1:]:
                value = value + term
            cotangent = None
        else:
            cotangent = cotangents[0]
    finally:
        _core._trace(-1)
    return _core._gradients(value, cotangent, tuple(leaf for leaf, one in zip(leaves, wanted) if one))[1:]
