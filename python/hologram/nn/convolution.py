"""Layers of windows that move over images."""

from __future__ import annotations

from math import prod, sqrt  # correctly rounded everywhere

from hologram import _convolution, random
from hologram._core import Array
from hologram.nn.layer import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


class _Conv(Layer):
    """What the layers of all axes share."""

    axes = 0

    def __init__(self, inputs: int, outputs: int, window: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", dtype: Any = "float32", channels_last: bool = False) -> None:
        self.window = _convolution.each(type(self).__name__, "window", window, self.axes)
        if groups < 1 or inputs < 1 or outputs < 1 or inputs % groups or outputs % groups or min(self.window) < 1:
            raise ValueError(f"{type(self).__name__}: {inputs} channels to {outputs} in {groups} groups by windows of {window!r}; both are "
                             "multiples of the groups, and a window has an element")
        self.inputs, self.outputs, self.stride, self.padding, self.dilation = inputs, outputs, stride, padding, dilation
        self.groups, self.bias, self.padding_mode, self.dtype = groups, bias, padding_mode, dtype
        self.channels_last = channels_last

    def _shape(self) -> tuple[int, ...]:
        return (self.outputs, self.inputs // self.groups, *self.window)

    def init(self, key: Array) -> dict[str, Array]:
        keys, shape = random.split(key), self._shape()
        bound = 1 / sqrt(prod(shape[1:]))
        made = {"weight": random.uniform(keys[0], shape, -bound, bound, self.dtype)}
        if self.bias:
            made["bias"] = random.uniform(keys[1], (self.outputs,), -bound, bound, self.dtype)
        return made

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        function = getattr(_convolution, f"conv{self.axes}d")
        made = function(x, parameters["weight"], parameters.get("bias"), self.stride, self.padding, self.dilation, self.groups,
                        padding_mode=self.padding_mode, channels_last=self.channels_last)
        return made, parameters


class Conv1d(_Conv):
    """`hg.conv1d` by a weight [outputs, inputs / groups, window], and a bias [outputs]; both begin uniform below 1 / sqrt(inputs / groups *
    window). padding is a number, 'same' or 'valid'; padding_mode 'zeros', 'reflect', 'replicate' or 'circular'.

        layer = hg.nn.Conv1d(2, 4, 3, padding="same")
        y = layer(layer.init(hg.random.key(0)), hg.ones((5, 2, 8)))    # [5, 4, 8]

    ValueError: channels that are no multiples of the groups, or an empty window."""

    axes = 1


class Conv2d(_Conv):
    """`hg.conv2d` by a weight [outputs, inputs / groups, rows, columns]: what `Conv1d` says.

        layer = hg.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        y = layer(layer.init(hg.random.key(0)), hg.ones((2, 3, 8, 8)))    # [2, 8, 4, 4]"""

    axes = 2


class Conv3d(_Conv):
    """`hg.conv3d` by a weight [outputs, inputs / groups, planes, rows, columns]: what `Conv1d` says.

        layer = hg.nn.Conv3d(1, 2, 3, padding=1)
        y = layer(layer.init(hg.random.key(0)), hg.ones((1, 1, 4, 4, 4)))    # [1, 2, 4, 4, 4]"""

    axes = 3


class _ConvTranspose(_Conv):
    def __init__(self, inputs: int, outputs: int, window: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                 groups: int = 1, bias: bool = True, dilation: Any = 1, dtype: Any = "float32", channels_last: bool = False) -> None:
        super().__init__(inputs, outputs, window, stride, padding, dilation, groups, bias, dtype=dtype, channels_last=channels_last)
        self.output_padding = output_padding

    def _shape(self) -> tuple[int, ...]:
        return (self.inputs, self.outputs // self.groups, *self.window)

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        function = getattr(_convolution, f"conv_transpose{self.axes}d")
        made = function(x, parameters["weight"], parameters.get("bias"), self.stride, self.padding, self.output_padding, self.groups,
                        self.dilation, channels_last=self.channels_last)
        return made, parameters


class ConvTranspose1d(_ConvTranspose):
    """`hg.conv_transpose1d` by a weight [inputs, outputs / groups, window], and a bias [outputs]; both begin uniform below 1 / sqrt(outputs
    / groups * window), as PyTorch's.

        layer = hg.nn.ConvTranspose1d(2, 4, 2, stride=2)
        y = layer(layer.init(hg.random.key(0)), hg.ones((5, 2, 8)))    # [5, 4, 16]

    ValueError: channels that are no multiples of the groups, or an empty window."""

    axes = 1


class ConvTranspose2d(_ConvTranspose):
    """`hg.conv_transpose2d` by a weight [inputs, outputs / groups, rows, columns]: what `ConvTranspose1d` says.

        layer = hg.nn.ConvTranspose2d(3, 2, 2, stride=2)
        y = layer(layer.init(hg.random.key(0)), hg.ones((1, 3, 4, 4)))    # [1, 2, 8, 8]"""

    axes = 2


class ConvTranspose3d(_ConvTranspose):
    """`hg.conv_transpose3d` by a weight [inputs, outputs / groups, planes, rows, columns]: what `ConvTranspose1d` says.

        layer = hg.nn.ConvTranspose3d(1, 1, 2, stride=2)
        y = layer(layer.init(hg.random.key(0)), hg.ones((1, 1, 2, 2, 2)))    # [1, 1, 4, 4, 4]"""

    axes = 3
