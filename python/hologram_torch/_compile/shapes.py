"""Rows of arrays that are made of nothing, and of views."""

from __future__ import annotations

from math import prod
from typing import Any

import hologram as hg
from hologram import _core
from hologram_torch._compile.rows import Array, cast, filled, row

# ---- from nothing ----------------------------------------------------------------------------------------------------


@row("full")
def _full(to: Any, shape: Any, value: Any, **named: Any) -> Array:
    return filled(shape, value, to)


@row("full_like")
def _full_like(to: Any, x: Array, value: Any, **named: Any) -> Array:
    return filled(x.shape, value, to)


for _name, _value in (("zeros", 0), ("empty", 0), ("ones", 1)):
    row(_name)(lambda to, shape, value=_value, **named: filled(shape, value, to))
    row(f"{_name}_like")(lambda to, x, value=_value, **named: filled(x.shape, value, to))
    row(f"new_{_name}")(lambda to, x, shape, value=_value, **named: filled(shape, value, to))


@row("empty_strided", "new_empty_strided")
def _empty_strided(to: Any, *arguments: Any, **named: Any) -> Array:
    return filled(arguments[-2], 0, to)


@row("empty_permuted")
def _empty_permuted(to: Any, shape: Any, order: Any, **named: Any) -> Array:
    return filled(shape, 0, to)


@row("scalar_tensor")
def _scalar_tensor(to: Any, value: Any, **named: Any) -> Array:
    return filled((), value, to)


@row("arange.start_step")
def _arange(to: Any, start: Any, end: Any, step: Any = 1, **named: Any) -> Array:
    return _core.arange(start, end, step, to)


# ---- views -----------------------------------------------------------------------------------------------------------


def _sizes(x: Array, given: Any) -> list[int]:
    """With a -1 resolved, which ours does not do of nothing."""
    shape: list[int] = list(given)
    if -1 in shape:
        rest: int = prod(size for size in shape if size != -1)
        shape[shape.index(-1)] = x.size // rest if rest else 0
    return shape


@row("view.default", "_unsafe_view", "reshape", "view_copy.default")
def _view(to: Any, x: Array, shape: Any) -> Array:
    return _core.reshape(x, _sizes(x, shape))


@row("permute", "permute_copy")
def _permute(to: Any, x: Array, axes: Any) -> Array:
    return _core.permute(x, [axis % x.ndim for axis in axes]) if x.ndim else x


@row("transpose.int")
def _transpose(to: Any, x: Array, a: int, b: int) -> Array:
    return _core.swap(x, a, b) if x.ndim else x


@row("t")
def _t(to: Any, x: Array) -> Array:
    return _core.swap(x, 0, 1) if x.ndim == 2 else x


@row("expand")
def _expand(to: Any, x: Array, shape: Any, implicit: bool = False) -> Array:
    more = len(shape) - x.ndim
    return _core.broadcast(x, [x.shape[i - more] if size == -1 else size for i, size in enumerate(shape)])


@row("unsqueeze")
def _unsqueeze(to: Any, x: Array, axis: int) -> Array:
    return _core.expand(x, axis % (x.ndim + 1))


@row("squeeze")
def _squeeze(to: Any, x: Array, axes: Any = None) -> Array:
    own = range(x.ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    gone = {axis % x.ndim for axis in own if x.ndim and x.shape[axis] == 1}
    return _core.reshape(x, [size for axis, size in enumerate(x.shape) if axis not in gone]) if gone else x


@row("slice.Tensor")
def _slice(to: Any, x: Array, axis: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    first, last, _ = slice(start, end).indices(x.shape[axis])
    return x if (first, last, step) == (0, x.shape[axis], 1) else _core.slice(x, axis, first, max(first, last), step)


@row("select.int")
def _select(to: Any, x: Array, axis: int, index: int) -> Array:
    axis, index = axis % x.ndim, index + x.shape[axis] if index < 0 else index
    return _core.squeeze(_core.slice(x, axis, index, index + 1), axis)


@row("split_with_sizes")
def _split_with_sizes(to: Any, x: Array, sizes: Any, axis: int = 0) -> list[Array]:
    at = [sum(sizes[:i]) for i in range(len(sizes))]
    return [_core.slice(x, axis, start, start + size) for start, size in zip(at, sizes)]


@row("split.Tensor")
def _split(to: Any, x: Array, size: int, axis: int = 0) -> list[Array]:
    length = x.shape[axis]
    return [_core.slice(x, axis, start, min(start + size, length)) for start in range(0, length, size)] or [x]


@row("unbind.int")
def _unbind(to: Any, x: Array, axis: int = 0) -> list[Array]:
    return [_select(to, x, axis, i) for i in range(x.shape[axis])]


@row("repeat")
def _repeat(to: Any, x: Array, times: Any) -> Any:
    return hg.tile(x, tuple(times))


@row("flip")
def _flip(to: Any, x: Array, axes: Any) -> Array:
    return _core.flip(x, [axis % x.ndim for axis in axes]) if axes else x


@row("diagonal")
def _diagonal(to: Any, x: Array, offset: int = 0, a: int = 0, b: int = 1) -> Array:
    return hg.diagonal(x, offset, a, b)


@row("cat")
def _cat(to: Any, tensors: Any, axis: int = 0) -> Array:
    own = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    return _core.concatenate(*(cast(x, to) for x in own), axis=axis)


@row("stack")
def _stack(to: Any, tensors: Any, axis: int = 0) -> Array:
    return _core.stack(*(cast(x, to) for x in tensors), axis=axis)


@row("constant_pad_nd")
def _constant_pad(to: Any, x: Array, pads: Any, value: Any = 0) -> Array:
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pads) // 2):
        low[-1 - i], high[-1 - i] = pads[2 * i], pads[2 * i + 1]
    for axis in range(x.ndim):  # below 0: cut off
        if low[axis] < 0 or high[axis] < 0:
            x = _core.slice(x, axis, max(-low[axis], 0), x.shape[axis] - max(-high[axis], 0))
    return _core.pad(x, filled((), value, x.dtype.name), [max(n, 0) for n in low], [max(n, 0) for n in high])


@row("slice_scatter")
def _slice_scatter(to: Any, x: Array, source: Array, axis: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    first, last, _ = slice(start, end).indices(x.shape[axis])
    axis %= x.ndim
    starts = [first if i == axis else 0 for i in range(x.ndim)]
    stops = [max(first, last) if i == axis else size for i, size in enumerate(x.shape)]
    return _core.update(x, source, starts, stops, [step if i == axis else 1 for i in range(x.ndim)])


@row("select_scatter")
def _select_scatter(to: Any, x: Array, source: Array, axis: int, index: int) -> Any:
    index += x.shape[axis] if index < 0 else 0
    return _slice_scatter(to, x, _core.expand(source, axis % x.ndim), axis, index, index + 1)
