"""Layers that normalise, by statistics of each row or of the batch."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import integers_of, ones, zeros
from hologram.nn.layer import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def _affine(shape: Any, dtype: Any, weight: bool, bias: bool) -> dict[str, Array]:
    """What multiplies and is added, as it begins."""
    return {**({"weight": ones(shape, dtype)} if weight else {}), **({"bias": zeros(shape, dtype)} if bias else {})}


def _last_axes(who: str, x: Array, width: Any) -> tuple[int, ...]:
    shape = integers_of(width)
    if x.shape[x.ndim - len(shape):] != shape or x.ndim < len(shape):
        raise ValueError(f"{who}: x {x.shape} does not end with {shape}")
    return tuple(range(-len(shape), 0))


class LayerNorm(Layer):
    """The last axis, or axes of the shape `width`, to mean 0 and variance 1, by a weight and a bias (Ba, Kiros and Hinton 2016).

        layer = hg.nn.LayerNorm(4)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 4)))

    ValueError: x does not end with that shape."""

    def __init__(self, width: Any, eps: float = 1e-5, dtype: Any = "float32", affine: bool = True, bias: bool = True) -> None:
        self.width, self.eps, self.dtype, self.affine, self.bias = width, eps, dtype, affine, bias

    def init(self, key: Array) -> dict[str, Array]:
        return _affine(self.width, self.dtype, self.affine, self.affine and self.bias)

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        axes = _last_axes("LayerNorm", x, self.width)
        return _core.layer_norm(x, parameters.get("weight"), parameters.get("bias"), axes, eps=self.eps), parameters


class RMSNorm(Layer):
    """The last axis, or axes of the shape `width`, over the root of its mean square, by a weight (Zhang and Sennrich 2019). eps: that of
    x's type where it is None, as PyTorch's.

        layer = hg.nn.RMSNorm(4)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 4)))

    ValueError: x does not end with that shape."""

    def __init__(self, width: Any, eps: float | None = None, dtype: Any = "float32", affine: bool = True) -> None:
        self.width, self.eps, self.dtype, self.affine = width, eps, dtype, affine

    def init(self, key: Array) -> dict[str, Array]:
        return _affine(self.width, self.dtype, self.affine, False)

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        axes, eps = _last_axes("RMSNorm", x, self.width), _EPS[x.dtype.name] if self.eps is None else self.eps
        return _core.rms_norm(x, parameters.get("weight"), axes, eps=eps), parameters


class GroupNorm(Layer):
    """Each of `groups` groups of the channels of x [batch, width, ...] to mean 0 and variance 1, by a weight and a bias of each channel (Wu
    and He 2018).

        layer = hg.nn.GroupNorm(2, 4)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 4, 5)))

    ValueError: the width is no multiple of the groups; x has not that many channels."""

    def __init__(self, groups: int, width: int, eps: float = 1e-5, dtype: Any = "float32", affine: bool = True) -> None:
        if groups < 1 or width % groups:
            raise ValueError(f"GroupNorm: the width is a multiple of the number of groups, not {width} of {groups}")
        self.groups, self.width, self.eps, self.dtype, self.affine = groups, width, eps, dtype, affine

    def init(self, key: Array) -> dict[str, Array]:
        return _affine(self.width, self.dtype, self.affine, self.affine)

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        if x.ndim < 2 or x.shape[1] != self.width:
            raise ValueError(f"{type(self).__name__}: x is [batch, {self.width}, ...], not {x.shape}")
        return _core.group_norm(x, parameters.get("weight"), parameters.get("bias"), groups=self.groups, eps=self.eps), parameters


class InstanceNorm(GroupNorm):
    """Each channel of each element of the batch to mean 0 and variance 1, x [batch, width, ...]; with affine by a weight and a bias of each
    channel (Ulyanov, Vedaldi and Lempitsky 2016).

        layer = hg.nn.InstanceNorm(4)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 4, 5)))

    ValueError: x has not that many channels, or one value in each."""

    def __init__(self, width: int, eps: float = 1e-5, dtype: Any = "float32", affine: bool = False) -> None:
        super().__init__(width, width, eps, dtype, affine)

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        if x.ndim >= 2 and x.size == x.shape[0] * x.shape[1] > 0:
            raise ValueError(f"InstanceNorm: a channel needs more than one value; x is {x.shape}")
        return super().apply(parameters, x, key, training)


class BatchNorm(Layer):
    """Each channel to mean 0 and variance 1 over the batch and all other axes, by a weight and a bias (Ioffe and Szegedy 2015). x is
    [batch, width, ...], or has its channels along another axis.

    Training normalises with the batch's own mean and biased variance, and gives parameters with new running ones: old + momentum * (new -
    old), of the unbiased variance; momentum None: their mean over all batches. Inference normalises with the running ones; without
    them (tracked=False) always with the batch's. Optimisers leave them as they are.

        layer = hg.nn.BatchNorm(3)
        y, parameters = layer.apply(layer.init(hg.random.key(0)), hg.ones((8, 3, 5)), training=True)

    ValueError: x has no such axis of `width` channels; training with one value a channel."""

    def __init__(self, width: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, tracked: bool = True,
                 axis: int = 1, dtype: Any = "float32") -> None:
        self.width, self.eps, self.momentum, self.affine = width, eps, momentum, affine
        self.tracked, self.axis, self.dtype = tracked, axis, dtype

    def init(self, key: Array) -> dict[str, Array]:
        kept = {"running_mean": zeros(self.width, self.dtype), "running_var": ones(self.width, self.dtype),
                "num_batches_tracked": zeros((), "int64")}  # fmt: skip
        return {**_affine(self.width, self.dtype, self.affine, self.affine), **(kept if self.tracked else {})}

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        if not -x.ndim <= self.axis < x.ndim or x.shape[self.axis] != self.width:
            raise ValueError(f"BatchNorm: x {x.shape} has no axis {self.axis} of {self.width} channels")
        weight, bias, mean, var = (parameters.get(name) for name in ("weight", "bias", "running_mean", "running_var"))
        if not training and self.tracked:
            return _core.batch_norm(x, weight, bias, mean, var, axis=self.axis, training=False, eps=self.eps)[0], parameters
        if training and x.size <= self.width:
            raise ValueError(f"BatchNorm: training needs more than one value a channel; x is {x.shape}")
        if not self.tracked:
            return _core.batch_norm(x, weight, bias, axis=self.axis, eps=self.eps)[0], parameters
        count = parameters["num_batches_tracked"] + 1
        if self.momentum is None:
            y, new_mean, new_var = _core.batch_norm(x, weight, bias, axis=self.axis, eps=self.eps)
            share = 1 / count.astype(mean.dtype)
            new_mean, new_var = mean + (new_mean - mean) * share, var + (new_var - var) * share
        else:
            y, new_mean, new_var = _core.batch_norm(x, weight, bias, mean, var, axis=self.axis, momentum=self.momentum, eps=self.eps)
        return y, {**parameters, "running_mean": _core.stop_gradient(new_mean).astype(mean.dtype),
                   "running_var": _core.stop_gradient(new_var).astype(var.dtype), "num_batches_tracked": count}  # fmt: skip
