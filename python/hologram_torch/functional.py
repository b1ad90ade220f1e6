"""Operations on tensors: `name(tensors...)`, or `name(executor, tensors...)`.

Those with torch's names have torch's arguments. Their results have the same bits on every machine, and their gradients, of any
order, are those of Hologram's table. Besides these every operation of the table that takes arrays is here by its own name and
with its own arguments (docs/operations.md): `functional.logsumexp(x, axis=-1)`.

Errors: TypeError and ValueError as of the operation; hologram.Error with the library's sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

import hologram as hg
from hologram import _core
from hologram_torch._function import _TYPES, apply

Tensor = torch.Tensor
_follows = torch.is_grad_enabled


def _executor_first(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function whose first argument may be an executor, which it takes as its keyword."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Tensor:
        if arguments and isinstance(arguments[0], hg.Executor):
            return function(*arguments[1:], executor=arguments[0], **named)
        return function(*arguments, **named)

    return call


def _of_table(name: str) -> Callable[..., Tensor]:
    """The operation of the table; tensors among its arguments are its operands, others go through."""
    operation = getattr(_core, name)

    def call(*arguments: Any, executor: hg.Executor | None = None, **named: Any) -> Any:
        if not named and executor is None and arguments:
            made = _core._call_on(operation, arguments, _TYPES, "requires_grad" if _follows() else None)
            if made is not None:
                return made
        if arguments and isinstance(arguments[0], hg.Executor):
            executor, arguments = arguments[0], arguments[1:]
        places = [i for i, value in enumerate(arguments) if isinstance(value, Tensor)]
        names = [key for key, value in named.items() if isinstance(value, Tensor)]

        def function(*arrays: hg.Array) -> Any:
            values, given = list(arguments), dict(named)
            for place, array in zip(places, arrays):
                values[place] = array
            for key, array in zip(names, arrays[len(places) :]):
                given[key] = array
            return operation(*values, **given)

        return apply(function, executor, tuple([arguments[i] for i in places] + [named[key] for key in names]))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = operation.__doc__
    return call


def __getattr__(name: str) -> Any:
    if name.startswith("_") or not callable(getattr(_core, name, None)) or isinstance(getattr(_core, name), type):
        raise AttributeError(f"hologram_torch.functional has no {name}: no operation of the table has that name")
    made = globals()[name] = _of_table(name)
    return made


add, sub, mul, div, minimum, maximum = map(_of_table, ("add", "sub", "mul", "div", "minimum", "maximum"))
relu, sigmoid, tanh, silu, mish = map(_of_table, ("relu", "sigmoid", "tanh", "silu", "mish"))
exp, log, sqrt, abs, neg = map(_of_table, ("exp", "log", "sqrt", "abs", "neg"))  # noqa: A001
matmul, matvec, where = map(_of_table, ("matmul", "matvec", "where"))


@_executor_first
def gelu(input: Tensor, approximate: str = "none", *, executor: hg.Executor | None = None) -> Tensor:
    """x times the normal distribution's share below x; approximate: 'none' or 'tanh'."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return apply(_core.gelu if approximate == "none" else _core.gelu_tanh, executor, (input,))


def _along(name: str, operation: Callable[..., hg.Array]) -> Callable[..., Tensor]:
    @_executor_first
    def call(input: Tensor, dim: int = -1, *, executor: hg.Executor | None = None) -> Tensor:
        return apply(lambda x: operation(x, axis=dim), executor, (input,))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = operation.__doc__
    return call


softmax, log_softmax = _along("softmax", _core.softmax), _along("log_softmax", _core.log_softmax)


@_executor_first
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, executor: hg.Executor | None = None) -> Tensor:
    """input [..., in] times the transposed weight [out, in], and bias [out]."""
    return apply(_core.linear, executor, (input, weight) if bias is None else (input, weight, bias))


@_executor_first
def embedding(input: Tensor, weight: Tensor, *, executor: hg.Executor | None = None) -> Tensor:
    """Rows of weight [classes, width] by number; a number out of range raises hologram.Fault."""
    return apply(lambda index, table: _core.embedding(table, index), executor, (input, weight))


@_executor_first
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) over the last axes, which are of normalized_shape, times weight, plus bias."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(f"layer_norm: the input's shape {tuple(input.shape)} does not end with {shape}")
    axes = tuple(range(-len(shape), 0))
    return _with_scale(lambda x, w, b: _core.layer_norm(x, w, b, axis=axes, eps=eps), input, weight, bias, executor)


@_executor_first
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None,
             *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """x / sqrt(mean(x^2) + eps) over the last axes, times weight; eps: that of the type where none is given."""
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(f"rms_norm: the input's shape {tuple(input.shape)} does not end with {shape}")
    axes, least = tuple(range(-len(shape), 0)), torch.finfo(input.dtype).eps if eps is None else eps
    return _with_scale(lambda x, w, b: _core.rms_norm(x, w, axis=axes, eps=least), input, weight, None, executor)


def _with_scale(function: Callable[..., hg.Array], x: Tensor, weight: Tensor | None, bias: Tensor | None,
                executor: hg.Executor | None) -> Tensor:  # fmt: skip
    """Of a function of x and perhaps a weight and a bias, which are None where they are not there."""
    tensors = tuple(t for t in (x, weight, bias) if t is not None)

    def call(*arrays: hg.Array) -> hg.Array:
        rest = iter(arrays[1:])
        return function(arrays[0], next(rest) if weight is not None else None, next(rest) if bias is not None else None)

    return apply(call, executor, tensors)


def _reduction(name: str, reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return reduction


@_executor_first
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", *, executor: hg.Executor | None = None) -> Tensor:
    """(input - target)^2: its mean, its sum, or all of it."""
    how = _reduction("mse_loss", reduction)
    return apply(lambda x, t: _core.mse(x, t, reduction=how), executor, (input, target))


@_executor_first
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", *, executor: hg.Executor | None = None) -> Tensor:
    """|input - target|: its mean, its sum, or all of it."""
    how = _reduction("l1_loss", reduction)
    return apply(lambda x, t: _core.l1(x, t, reduction=how), executor, (input, target))


@_executor_first
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Half the square of the difference where that is below delta, a line beyond."""
    how = _reduction("huber_loss", reduction)
    return apply(lambda x, t: _core.huber(x, t, delta=delta, reduction=how), executor, (input, target))


@_executor_first
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0,
                  *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of logits [n, classes, ...] or [classes] and class numbers [n, ...], or probabilities of the logits' shape."""
    how, axis = _reduction("cross_entropy", reduction), 1 if input.ndim > 1 else 0
    if target.is_floating_point():
        if ignore_index >= 0:
            raise ValueError("cross_entropy: ignore_index is of class numbers; the target has probabilities")
        return _shares(input, target, weight, how, label_smoothing, axis, executor)
    settings: dict[str, Any] = {"axis": axis, "reduction": how, "smoothing": label_smoothing, "ignore_index": ignore_index}

    def function(x: hg.Array, t: hg.Array, w: hg.Array | None = None) -> hg.Array:
        return _core.cross_entropy(x, t, w, **settings)

    return apply(function, executor, (input, target) if weight is None else (input, target, weight))


def _shares(input: Tensor, target: Tensor, weight: Tensor | None, how: str, smoothing: float, axis: int,
            executor: hg.Executor | None) -> Tensor:  # fmt: skip
    def function(x: hg.Array, t: hg.Array, w: hg.Array | None = None) -> hg.Array:
        return _core.cross_entropy(x, t, w, axis=axis, reduction=how, smoothing=smoothing)

    return apply(function, executor, (input, target) if weight is None else (input, target, weight))


@_executor_first
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
             *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of log-probabilities [n, classes, ...] or [classes] and class numbers."""
    how, axis = _reduction("nll_loss", reduction), 1 if input.ndim > 1 else 0

    def function(x: hg.Array, t: hg.Array, w: hg.Array | None = None) -> hg.Array:
        return _core.nll(x, t, w, axis=axis, reduction=how, ignore_index=ignore_index)

    return apply(function, executor, (input, target) if weight is None else (input, target, weight))


@_executor_first
def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                         *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of probabilities; logarithms are at least -100."""
    how = _reduction("binary_cross_entropy", reduction)

    def function(x: hg.Array, t: hg.Array, w: hg.Array | None = None) -> hg.Array:
        return _core.bce(x, t, w, reduction=how)

    return apply(function, executor, (input, target) if weight is None else (input, target, weight))


@_executor_first
def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                                     pos_weight: Tensor | None = None,
                                     *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of logits, stable at the extremes."""
    how = _reduction("binary_cross_entropy_with_logits", reduction)

    def function(x: hg.Array, t: hg.Array, *rest: hg.Array) -> hg.Array:
        more = iter(rest)
        w = next(more) if weight is not None else None
        return _core.bce_with_logits(x, t, w, next(more) if pos_weight is not None else None, reduction=how)

    return apply(function, executor, tuple(t for t in (input, target, weight, pos_weight) if t is not None))


@_executor_first
def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, executor: hg.Executor | None = None) -> Tensor:
    """0 with probability p, else x / (1 - p). The key is drawn from torch's generator: torch.manual_seed repeats it."""
    if not 0 <= p < 1:
        raise ValueError(f"dropout: p is at least 0 and below 1, not {p}")
    if not training or p == 0:
        return input
    key = torch.empty((), dtype=torch.int64).random_().item()
    return apply(lambda x: _core.dropout(x, _core._scalar(key, "uint64"), p=p), executor, (input,))
