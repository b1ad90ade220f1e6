"""Tensors as arrays and buffers, and back. Memory is shared where both sides can reach it, and copied where not."""

from __future__ import annotations

import torch
from torch.utils.dlpack import from_dlpack

import hologram as hg
from hologram import _core

HOST = 1  # DLPack's name of the CPU


def as_array(tensor: torch.Tensor, executor: hg.Executor | None = None) -> hg.Array:
    """An Array over a tensor's memory, in order behind what torch's current stream has been given.

    With an executor of another device, a copy there. Gradients are not followed: see hologram_torch.functional."""
    array = _core._import_by_table(tensor, executor)
    if array is not None:
        return array
    tensor = tensor.detach().resolve_neg()
    return hg.asarray(tensor) if executor is None else hg.asarray(tensor, device=executor)


def as_tensor(array: hg.Array, device: torch.device | str | None = None) -> torch.Tensor:
    """A tensor over an array's memory, computed first; elsewhere than on `device`, a copy there.

    What is written into it is written into the array."""
    if device is not None and torch.device(device).type == "cpu" and array.__dlpack_device__()[0] != HOST:
        return from_dlpack(array.__dlpack__(dl_device=(HOST, 0)))  # by the executor: torch may know nothing of its device
    tensor: torch.Tensor | None = _core._export_by_table(array, torch.Tensor, False)
    if tensor is None:
        tensor = from_dlpack(array.__dlpack__(stream=_stream_of(array), max_version=None))
    return tensor if device is None or tensor.device == torch.device(device) else tensor.to(device)


def _stream_of(array: hg.Array) -> int | None:
    kind, number = array.__dlpack_device__()
    if kind == HOST:
        return None
    return torch.cuda.current_stream(number).cuda_stream or 1  # DLPack's name of the default stream


def tensor_to_buffer(tensor: torch.Tensor, executor: hg.Executor | None = None) -> hg.Buffer:
    """A new buffer of the executor (the default one, where none is given) with a tensor's elements, in C order."""
    executor = hg.default_executor() if executor is None else executor
    array = as_array(tensor, executor)
    buffer = executor.allocate(array.size, dtype=array.dtype)
    buffer.assign(array.reshape(array.size))
    return buffer


def buffer_to_tensor(buffer: hg.Buffer, shape: tuple[int, ...] | None = None) -> torch.Tensor:
    """A tensor over a buffer's memory, [n], or of a shape: what is written into one is read from the other."""
    tensor = as_tensor(buffer.array())
    return tensor if shape is None else tensor.view(shape)
