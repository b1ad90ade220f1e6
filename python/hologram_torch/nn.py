"""Layers: those of torch.nn by the same names, arguments and state dicts, computed by hologram_torch.functional. Besides these
every layer of torch.nn is here whose function is a row of `_signatures.py`: ReLU6, GroupNorm, SmoothL1Loss, ... Where torch's work in
place (`inplace=True`) these do not, and give the same.

An executor may come first, or `backend='cpu'`, `'cuda'`, `'metal'` or `'auto'` as a keyword; without either a layer works where
its input is. They stand anywhere in a torch.nn.Module."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch

import hologram as hg
from hologram_torch import _signatures, functional

Tensor = torch.Tensor


class _Placed:
    """Takes the executor out of a layer's arguments. It is no part of the state, and copies and pickles leave it out."""

    _executor: hg.Executor | None

    def __init__(self, *arguments: Any, backend: Any = None, executor: hg.Executor | None = None, **named: Any) -> None:
        if arguments and isinstance(arguments[0], hg.Executor):
            executor, *arguments = arguments  # type: ignore[assignment]
        if executor is not None and backend is not None:
            raise TypeError("an executor and a backend are given; one of them says where")
        super().__init__(*arguments, **named)
        self._executor = hg.Executor(backend=backend) if backend is not None else executor

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_executor": None}


class Linear(_Placed, torch.nn.Linear):
    """x [..., in] to [..., out]: x weight^T + bias."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias, executor=self._executor)


class _Conv(_Placed):
    """What the layers of all axes share: padding of modes other than zeros is torch's."""

    def _conv_forward(self: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        function, padding = getattr(functional, f"conv{weight.ndim - 2}d"), self.padding
        if self.padding_mode != "zeros":
            input = torch.nn.functional.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        made: Tensor = function(input, weight, bias, self.stride, padding, self.dilation, self.groups, executor=self._executor)
        return made


class Conv1d(_Conv, torch.nn.Conv1d):
    """Windows of x [batch, channels, length] by a weight, and a bias."""


class Conv2d(_Conv, torch.nn.Conv2d):
    """The same of images."""


class Conv3d(_Conv, torch.nn.Conv3d):
    """The same of volumes."""


class _ConvTranspose(_Placed):
    def forward(self: Any, input: Tensor, output_size: Any = None) -> Tensor:
        axes = self.weight.ndim - 2
        more = self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, axes, self.dilation)
        function = getattr(functional, f"conv_transpose{axes}d")
        made: Tensor = function(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation,
                                executor=self._executor)  # fmt: skip
        return made


class ConvTranspose1d(_ConvTranspose, torch.nn.ConvTranspose1d):
    """Conv1d's transpose: a larger x from a smaller one."""


class ConvTranspose2d(_ConvTranspose, torch.nn.ConvTranspose2d):
    """The same of images."""


class ConvTranspose3d(_ConvTranspose, torch.nn.ConvTranspose3d):
    """The same of volumes."""


class Embedding(_Placed, torch.nn.Embedding):
    """Rows of a table by number. padding_idx is initialised to 0 but does learn; max_norm, scaling and sparse are refused."""

    def forward(self, input: Tensor) -> Tensor:
        if self.max_norm is not None or self.scale_grad_by_freq or self.sparse or self.padding_idx is not None:
            raise NotImplementedError("Embedding: padding_idx, max_norm, scale_grad_by_freq and sparse are torch.nn.Embedding's")
        return functional.embedding(input, self.weight, executor=self._executor)


class LayerNorm(_Placed, torch.nn.LayerNorm):
    """(x - mean) / sqrt(var + eps) over the last axes, times weight, plus bias."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps, executor=self._executor)


class RMSNorm(_Placed, torch.nn.RMSNorm):
    """x / sqrt(mean(x^2) + eps) over the last axes, times weight."""

    def forward(self, x: Tensor) -> Tensor:
        return functional.rms_norm(x, self.normalized_shape, self.weight, self.eps, executor=self._executor)


class Dropout(_Placed, torch.nn.Dropout):
    """0 with probability p, else x / (1 - p), while training."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training, executor=self._executor)


class ReLU(_Placed, torch.nn.ReLU):
    """max(x, 0)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input, executor=self._executor)


class Sigmoid(_Placed, torch.nn.Sigmoid):
    """1 / (1 + e^-x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.sigmoid(input, executor=self._executor)


class Tanh(_Placed, torch.nn.Tanh):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanh(input, executor=self._executor)


class SiLU(_Placed, torch.nn.SiLU):
    """x / (1 + e^-x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input, executor=self._executor)


class GELU(_Placed, torch.nn.GELU):
    """x times the normal distribution's share below x."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, self.approximate, executor=self._executor)


class Softmax(_Placed, torch.nn.Softmax):
    """The shares of e^x along dim; -1 where none is given."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, -1 if self.dim is None else self.dim, executor=self._executor)


class LogSoftmax(_Placed, torch.nn.LogSoftmax):
    """The logarithms of the shares of e^x along dim; -1 where none is given."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, -1 if self.dim is None else self.dim, executor=self._executor)


class CrossEntropyLoss(_Placed, torch.nn.CrossEntropyLoss):
    """Of logits and class numbers or probabilities."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(input, target, self.weight, self.ignore_index, self.reduction, self.label_smoothing,
                                        executor=self._executor)  # fmt: skip


class PairwiseDistance(_Placed, torch.nn.PairwiseDistance):
    """Norm of x1 - x2 + eps along the last axis."""

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        made: Tensor = functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim, executor=self._executor)
        return made


Sequential = torch.nn.Sequential


def __getattr__(name: str) -> Any:
    """A layer of torch.nn whose function is a row of _signatures.py: what the row names behind forward's inputs are attributes."""
    found, base = _signatures.layer_row(name), getattr(torch.nn, name, None)
    if found is None or base is None:
        raise AttributeError(f"hologram_torch.nn has no {name}; layers of torch.nn stand beside those that are here")
    function, row = found
    keys = [key for key in list(row.arguments)[len(signature(base.forward).parameters) - 1 :] if key != "inplace"]

    def forward(self: Any, *inputs: Tensor) -> Tensor:
        made: Tensor = getattr(functional, function)(*inputs, **{key: getattr(self, key) for key in keys}, executor=self._executor)
        return made

    body = {"forward": forward, "__module__": __name__, "__doc__": getattr(functional, function).__doc__}
    layer = globals()[name] = type(name, (_Placed, base), body)
    return layer
