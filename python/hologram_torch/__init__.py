"""Hologram for PyTorch: operations on tensors with the same bits on every machine, with gradients of every order.

    import torch
    import hologram_torch as hg_torch

    y = hg_torch.functional.softmax(torch.randn(4, 8))         # any tensor; memory is shared, not copied
    layer = hg_torch.nn.Linear(512, 256)                       # state dicts are torch.nn.Linear's

    model = torch.compile(model, backend="hologram")           # fused, forward and backward

An executor may come first in every call and in every layer: `functional.add(executor, a, b)`. Without one the work is done
where the tensors are.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("hologram_torch needs PyTorch 2.10 or later: pip install torch") from error

from hologram_torch import convert, functional, nn, optim, training
from hologram_torch._compile.report import report as report
from hologram_torch.convert import as_array as as_array
from hologram_torch.convert import as_tensor as as_tensor
from hologram_torch.convert import buffer_to_tensor as buffer_to_tensor
from hologram_torch.convert import tensor_to_buffer as tensor_to_buffer
from hologram_torch.custom import custom_op as custom_op

__all__ = ["as_array", "as_tensor", "buffer_to_tensor", "convert", "custom_op", "functional", "nn", "optim", "report", "tensor_to_buffer",
           "training"]  # fmt: skip
