"""Operations on tensors: `name(tensors...)`, or `name(executor, tensors...)`.

Those with torch's names have torch's arguments (`_signatures.py` has most of them, a row each). Their results have the same bits on
every machine, and their gradients, of any order, are those of Hologram's table. Besides these every operation of the table that
takes arrays is here by its own name and with its own arguments (docs/operations.md): `functional.logsumexp(x, axis=-1)`.

Errors: TypeError and ValueError as of the operation; hologram.Error with the library's sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

import hologram as hg
from hologram import _convolution, _core
from hologram_torch import _signatures
from hologram_torch._function import on_tensors as _on_tensors

Tensor = torch.Tensor
_one: Callable[[str], Callable[..., Tensor]] = _on_tensors  # of operations with one result


def _executor_first(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function whose first argument may be an executor, which it takes as its keyword."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Tensor:
        if arguments and isinstance(arguments[0], hg.Executor):
            return function(*arguments[1:], executor=arguments[0], **named)
        return function(*arguments, **named)

    return call


def _call(name: str, executor: hg.Executor | None, *arguments: Any, **settings: Any) -> Tensor:
    """The operation of the table, which has one result."""
    function = _one(name)
    return function(*arguments, **settings) if executor is None else function(*arguments, **settings, executor=executor)


def __getattr__(name: str) -> Any:
    try:
        made = globals()[name] = _signatures.function(name) if name in _signatures.rows() else _on_tensors(name)
    except AttributeError:
        raise AttributeError(f"hologram_torch.functional has no {name}: no operation of the table has that name") from None
    return made


def __dir__() -> list[str]:
    return sorted({*globals(), *_signatures.rows()})


add, sub, mul, div, minimum, maximum = map(_one, ("add", "sub", "mul", "div", "minimum", "maximum"))
relu, sigmoid, tanh, silu = map(_one, ("relu", "sigmoid", "tanh", "silu"))
exp, log, sqrt, abs, neg = map(_one, ("exp", "log", "sqrt", "abs", "neg"))  # noqa: A001
matmul, matvec, where = map(_one, ("matmul", "matvec", "where"))


@_executor_first
def gelu(input: Tensor, approximate: str = "none", *, executor: hg.Executor | None = None) -> Tensor:
    """x times the normal distribution's share below x; approximate: 'none' or 'tanh'."""
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate is 'none' or 'tanh', not {approximate!r}")
    return _call("gelu" if approximate == "none" else "gelu_tanh", executor, input)


def _along(name: str) -> Callable[..., Tensor]:
    function = _one(name)

    @_executor_first
    def call(input: Tensor, dim: int = -1, *, executor: hg.Executor | None = None) -> Tensor:
        try:
            return function(input, dim) if executor is None else function(input, dim, executor=executor)
        except ValueError:  # there is no such axis
            if input.ndim > 0 or dim not in (0, -1):
                raise
        return _call(name, executor, input.reshape(1), 0).reshape(())  # a row of one element

    call.__name__ = call.__qualname__ = name
    call.__doc__ = function.__doc__
    return call


softmax, log_softmax = _along("softmax"), _along("log_softmax")
logcumsumexp = _along("cumulative_logsumexp")


def _running(name: str) -> Callable[..., Tensor]:
    function = _along(name)

    @_executor_first
    def call(input: Tensor, dim: int, *, dtype: torch.dtype | None = None, executor: hg.Executor | None = None) -> Tensor:
        made = function(input if dtype is None else input.to(dtype), dim, executor=executor)
        return made if input.is_floating_point() and dtype is None else made.to(dtype or torch.int64)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{function.__doc__}\n\nOf integers and bools in int64, or the dtype that the input becomes first."
    return call


cumsum, cumprod = _running("cumulative_sum"), _running("cumulative_prod")


def _extremes(name: str) -> Callable[..., Any]:
    values, places = _along(f"cumulative_{name}"), _along(f"cumulative_arg{name}")

    @_executor_first
    def call(input: Tensor, dim: int, *, executor: hg.Executor | None = None) -> Any:
        made = values(input, dim, executor=executor), places(input, dim, executor=executor)
        return getattr(torch.return_types, f"cum{name}")(made)

    call.__name__ = call.__qualname__ = f"cum{name}"
    call.__doc__ = f"{values.__doc__}\n\nThe values, and the indices of the elements that they are: of equal ones the last."
    return call


cummax, cummin = _extremes("max"), _extremes("min")


def _both(kind: Any, executor: hg.Executor | None, name: str, input: Tensor, *arguments: Any) -> Any:
    """Values and places of an operation that has both, of a number as of a row of it."""
    made: Any = _call(name, executor, input if input.ndim else input.reshape(1), *arguments)
    return kind(tuple(part if input.ndim else part.reshape(()) for part in made))


@_executor_first
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *,  # noqa: A002
         executor: hg.Executor | None = None) -> Any:  # fmt: skip
    """The k largest along a dimension, or the smallest, and their indices: in order, equal ones as they stand. NaN is the greatest."""
    return _both(torch.return_types.topk, executor, "top_k", input, k, dim, int(largest))


@_executor_first
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, *, executor: hg.Executor | None = None) -> Any:
    """The elements in order along a dimension, and their indices: always stable. NaN is the greatest."""
    return _both(torch.return_types.sort, executor, "sort_with_places", input, dim, int(descending))


@_executor_first
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = True, *,
            executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """The indices of the elements in order along a dimension: always stable."""
    made: Tensor = sort(input, dim, descending, executor=executor)[1]
    return made


@_executor_first
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, executor: hg.Executor | None = None) -> Any:
    """The k-th smallest along a dimension, from 1 on, and its index; a gradient flows to it."""
    return _both(torch.return_types.kthvalue, executor, "kth_value", input, k, dim, int(keepdim))


@_executor_first
def searchsorted(sorted_sequence: Tensor, input: Tensor, *, right: bool = False, side: str | None = None,
                 sorter: Tensor | None = None, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Where each number would stand in a sorted sequence, or in that of its row: before equal ones, on the right side behind them."""
    return _call("searchsorted", executor, sorted_sequence, input, sorter, side or ("right" if right else "left"))


@_executor_first
def bucketize(input: Tensor, boundaries: Tensor, *, right: bool = False, executor: hg.Executor | None = None) -> Tensor:
    """How many of the boundaries, which ascend, come before each number; right: or equal it."""
    return _call("searchsorted", executor, boundaries, input, None, "right" if right else "left")


@_executor_first
def quantile(input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
             executor: hg.Executor | None = None, _ignore_nan: int = 0) -> Tensor:  # fmt: skip
    """What a share q of the elements along a dimension is below, all of them for None: computed in f64 and rounded once."""
    shares = torch.as_tensor(q, dtype=torch.float64, device="cpu")
    rows, own = input.reshape(-1) if dim is None else input, hg.asarray(shares.detach().reshape(-1).numpy())  # of a type of its own
    made = _call("quantile", executor, rows, own, -1 if dim is None else dim, interpolation, _ignore_nan)
    made = made.movedim(-1 if dim is None else dim, 0)
    if keepdim:
        made = made.reshape(-1, *(1,) * input.ndim) if dim is None else made.unsqueeze(dim + 1 if dim >= 0 else dim)
    return made if shares.ndim else made[0]


@_executor_first
def nanquantile(input: Tensor, q: Tensor | float, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear",
                executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """quantile of those elements that are no NaN."""
    return quantile(input, q, dim, keepdim, interpolation=interpolation, executor=executor, _ignore_nan=1)


def _corner(index: Tensor, dim: int) -> tuple[slice, ...]:
    """What an index of fewer elements along other dimensions is about: those in front."""
    return tuple(slice(None) if d == dim % index.ndim else slice(n) for d, n in enumerate(index.shape))


@_executor_first
def gather(input: Tensor, dim: int, index: Tensor, *, executor: hg.Executor | None = None) -> Tensor:
    """The elements whose number along a dimension is the index at that place. The index may have fewer elements along the others."""
    return _call("take_along", executor, input[_corner(index, dim)], index, dim)


def _scattered(name: str) -> Callable[..., Tensor]:
    function = _one(name)

    @_executor_first
    def call(input: Tensor, dim: int, index: Tensor, src: Tensor, *more: Any, executor: hg.Executor | None = None, **named: Any) -> Tensor:
        corner = _corner(index, dim)
        source = src[tuple(slice(n) for n in index.shape)]
        made = function(input[corner], index, source, dim, *more, **named, executor=executor)
        if made.shape == input.shape:
            return made
        whole = input.clone()
        whole[corner] = made
        return whole

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"{function.__doc__}\n\nThe index may have fewer elements than the input and the source: those in front."
    return call


scatter, scatter_add, scatter_reduce = map(_scattered, ("scatter", "scatter_add", "scatter_reduce"))


@_executor_first
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, executor: hg.Executor | None = None) -> Tensor:
    """input [..., in] times the transposed weight [out, in], and bias [out]."""
    return _call("linear", executor, input, weight, bias)


def _conv(axes: int) -> Callable[..., Tensor]:
    who = f"conv{axes}d"

    @_executor_first
    def call(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
             groups: int = 1, *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
        x, is_alone = _convolution.began(who, axes, input, weight)
        made = _call("conv", executor, x, weight, bias, *_convolution.steps(who, weight.shape[2:], stride, padding, dilation), groups)
        return made[0] if is_alone else made

    call.__name__ = call.__qualname__ = who
    call.__doc__ = getattr(hg, who).__doc__
    return call


def _conv_transpose(axes: int) -> Callable[..., Tensor]:
    who = f"conv_transpose{axes}d"

    @_executor_first
    def call(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
             groups: int = 1, dilation: Any = 1, *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
        x, is_alone = _convolution.began(who, axes, input, weight)
        sizes, *steps = _convolution.steps_back(who, x.shape[2:], weight.shape[2:], stride, padding, output_padding, dilation)
        made = _call("conv_transposed", executor, x, weight, bias, [x.shape[0], weight.shape[1] * groups, *sizes], *steps, groups)
        return made[0] if is_alone else made

    call.__name__ = call.__qualname__ = who
    call.__doc__ = getattr(hg, who).__doc__
    return call


conv1d, conv2d, conv3d = map(_conv, (1, 2, 3))
conv_transpose1d, conv_transpose2d, conv_transpose3d = map(_conv_transpose, (1, 2, 3))


@_executor_first
def embedding(input: Tensor, weight: Tensor, *, executor: hg.Executor | None = None) -> Tensor:
    """Rows of weight [classes, width] by number; a number out of range raises hologram.IndexFault."""
    return _call("embedding", executor, weight, input)


def _last_axes(name: str, input: Tensor, normalized_shape: Any) -> tuple[int, ...]:
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape:
        raise ValueError(f"{name}: the input's shape {tuple(input.shape)} does not end with {shape}")
    return tuple(range(-len(shape), 0))


@_executor_first
def layer_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5,
               *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """(x - mean) / sqrt(var + eps) over the last axes, which are of normalized_shape, times weight, plus bias."""
    axes = _last_axes("layer_norm", input, normalized_shape)
    return _call("layer_norm", executor, input, weight, bias, axes, eps)


@_executor_first
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None,
             *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """x / sqrt(mean(x^2) + eps) over the last axes, times weight; eps: that of the type where none is given."""
    axes = _last_axes("rms_norm", input, normalized_shape)
    least = torch.finfo(input.dtype).eps if eps is None else eps
    return _call("rms_norm", executor, input, weight, axis=axes, eps=least)


def _reduction(name: str, reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{name}: reduction is 'mean', 'sum' or 'none', not {reduction!r}")
    return reduction


def _class_axis(input: Tensor) -> int:
    return 1 if input.ndim > 1 else 0


@_executor_first
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0,
                  *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of logits [n, classes, ...] or [classes] and class numbers [n, ...], or probabilities of the logits' shape."""
    settings: dict[str, Any] = {"axis": _class_axis(input), "reduction": _reduction("cross_entropy", reduction),
                                "smoothing": label_smoothing}  # fmt: skip
    if not target.is_floating_point():
        settings["ignore_index"] = ignore_index
    elif ignore_index >= 0:
        raise ValueError("cross_entropy: ignore_index is of class numbers; the target has probabilities")
    return _call("cross_entropy", executor, input, target, weight, **settings)


@_executor_first
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
             *, executor: hg.Executor | None = None) -> Tensor:  # fmt: skip
    """Of log-probabilities [n, classes, ...] or [classes] and class numbers."""
    settings = {"axis": _class_axis(input), "reduction": _reduction("nll_loss", reduction), "ignore_index": ignore_index}
    return _call("nll", executor, input, target, weight, **settings)


@_executor_first
def dropout(input: Tensor, p: float = 0.5, training: bool = True, *, executor: hg.Executor | None = None) -> Tensor:
    """0 with probability p, else x / (1 - p). The key is drawn from torch's generator: torch.manual_seed repeats it."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout: the probability p is from 0 to 1, not {p}")
    if not training or p == 0:
        return input
    key = torch.empty((), dtype=torch.int64).random_().item()
    return _call("dropout", executor, input, _core._scalar(key, "uint64"), p=p)
