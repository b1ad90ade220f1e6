"""Convolutions along one, two and three axes, and their transposes: PyTorch's arguments become those of the table's rows."""

from __future__ import annotations

from hologram import _core

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

    from hologram._core import Array

_MODES = ("zeros", "reflect", "replicate", "circular")


def each(who: str, name: str, value: Any, axes: int) -> tuple[int, ...]:
    """One number for each axis, of one for all or of as many."""
    given: tuple[Any, ...] = (value,) * axes if hasattr(value, "__index__") else tuple(value)
    if len(given) == 1:
        given *= axes
    if len(given) != axes or not all(hasattr(one, "__index__") for one in given):
        raise ValueError(f"{who}: {name} is an integer, or {axes} of them, not {value!r}")
    return tuple(one.__index__() for one in given)


def _around(who: str, padding: Any, kernel: tuple[int, ...], stride: Any, dilation: Any) -> tuple[Any, Any]:
    """How many elements stand before and behind along each axis."""
    if not isinstance(padding, str):
        low = each(who, "padding", padding, len(kernel))
        if min(low) < 0:
            raise ValueError(f"{who}: padding is 0 or more, not {padding!r}")
        return low, low
    if padding not in ("same", "valid"):
        raise ValueError(f"{who}: padding is a number, numbers, 'same' or 'valid', not {padding!r}")
    if padding == "same" and max(stride) > 1:
        raise ValueError(f"{who}: padding 'same' goes with stride 1, not {stride}: write the numbers")
    both = [step * (size - 1) if padding == "same" else 0 for size, step in zip(kernel, dilation)]
    return tuple(n // 2 for n in both), tuple(n - n // 2 for n in both)


def _filled(who: str, x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """x with elements of itself before and behind along an axis."""
    size, most = x.shape[axis], max(low, high)
    if low == high == 0:
        return x
    if most > {"reflect": size - 1, "circular": size}.get(mode, most) or size == 0:
        raise ValueError(f"{who}: padding {most} of an axis of {size} elements is too much for padding_mode {mode!r}")
    at = _core.arange(-low, size + high)
    if mode == "reflect":
        at = size - 1 - abs(size - 1 - abs(at))
    at = _core.clip(at, 0, size - 1) if mode == "replicate" else (at + size) % size if mode == "circular" else at
    return _core.take(x, at, axis)


def steps(who: str, window: Any, stride: Any, padding: Any, dilation: Any) -> tuple[Any, Any, Any, Any]:
    """A convolution's stride, elements before and behind, and dilation along each axis of the window."""
    axes = len(window)
    stride, dilation = each(who, "stride", stride, axes), each(who, "dilation", dilation, axes)
    return stride, *_around(who, padding, window, stride, dilation), dilation


def steps_back(who: str, sizes: Any, window: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any) -> tuple[Any, ...]:
    """The sizes of the transpose's result along each axis, its stride, padding and dilation."""
    axes = len(window)
    stride, dilation = each(who, "stride", stride, axes), each(who, "dilation", dilation, axes)
    low, more = each(who, "padding", padding, axes), each(who, "output_padding", output_padding, axes)
    if any(not 0 <= n < max(s, d) for n, s, d in zip(more, stride, dilation)):
        raise ValueError(f"{who}: output_padding {output_padding!r} is 0 or more, and less than the stride or the dilation")
    made = [(n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, s, p, d, k, o in zip(sizes, stride, low, dilation, window, more)]
    if min(made) < 1:
        raise ValueError(f"{who}: the result's sizes would be {made}: less padding, or a larger x")
    return made, stride, low, dilation


def began(who: str, axes: int, x: Any, weight: Any) -> tuple[Any, bool]:
    """x with a batch, and whether it had none."""
    if x.ndim not in (axes + 1, axes + 2) or weight.ndim != axes + 2:
        raise ValueError(f"{who}: x {tuple(x.shape)} and weight {tuple(weight.shape)}; x has {axes + 2} axes, or {axes + 1} without a "
                         f"batch, and weight {axes + 2}")
    return (x[None], True) if x.ndim == axes + 1 else (x, False)


def _conv(axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int, mode: str,
          channels_last: bool) -> Array:
    who, weight = f"conv{axes}d", _core.asarray(weight)
    x, is_alone = began(who, axes, _core.asarray(x), weight)
    if mode not in _MODES:
        raise ValueError(f"{who}: padding_mode is one of {', '.join(_MODES)}, not {mode!r}")
    stride, low, high, dilation = steps(who, weight.shape[2:], stride, padding, dilation)
    if mode != "zeros":
        for i in range(axes):
            x = _filled(who, x, i + (1 if channels_last else 2), low[i], high[i], mode)
        low = high = (0,) * axes
    made: Array = _core.conv(x, weight, bias, stride, low, high, dilation, groups, int(channels_last))
    return made[0] if is_alone else made


def _transposed(axes: int, x: Any, weight: Any, bias: Any, stride: Any, padding: Any, output_padding: Any, groups: int,
                dilation: Any, channels_last: bool) -> Array:
    who, weight = f"conv_transpose{axes}d", _core.asarray(weight)
    x, is_alone = began(who, axes, _core.asarray(x), weight)
    sizes = x.shape[1:-1] if channels_last else x.shape[2:]
    sizes, stride, low, dilation = steps_back(who, sizes, weight.shape[2:], stride, padding, output_padding, dilation)
    channels = [weight.shape[1] * groups]
    shape = [x.shape[0], *(() if channels_last else channels), *sizes, *(channels if channels_last else ())]
    made: Array = _core.conv_transposed(x, weight, bias, shape, stride, low, dilation, groups, int(channels_last))
    return made[0] if is_alone else made


def conv1d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, *,
           padding_mode: str = "zeros", channels_last: bool = False) -> Array:
    """Windows of x [batch, channels, length] by weight [outputs, channels / groups, window], each a sum in order C over (channel, place
    in the window), and a bias [outputs]. Shapes, arguments and results are those of torch.nn.functional.conv1d; x may have no batch.

    padding: elements on either side, 'valid' (0) or 'same' (the result has x's length; stride 1); padding_mode: zeros, which are
    multiplied as numbers are, or x's own elements: 'reflect', 'replicate', 'circular'. channels_last: x and the result are [batch, length,
    channels], with the same bits. f16 and bf16 are summed in f32 and rounded once, int8 in int32.

    ValueError: shapes, groups or settings that do not fit; the sentence says which. Gradients flow to x, weight and bias.
    Source: V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning (2016).

    hg.conv1d(hg.ones((1, 1, 4)), hg.ones((1, 1, 3)), padding=1)      # [[[2., 3., 3., 2.]]]"""
    return _conv(1, x, weight, bias, stride, padding, dilation, groups, padding_mode, channels_last)


def conv2d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, *,
           padding_mode: str = "zeros", channels_last: bool = False) -> Array:
    """The same of images x [batch, channels, rows, columns] by weight [outputs, channels / groups, rows, columns]: what `conv1d` says, a
    number or a pair for each setting.

    hg.conv2d(hg.ones((1, 3, 8, 8)), hg.ones((4, 3, 3, 3)), stride=2, padding=1).shape      # (1, 4, 4, 4)"""
    return _conv(2, x, weight, bias, stride, padding, dilation, groups, padding_mode, channels_last)


def conv3d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, *,
           padding_mode: str = "zeros", channels_last: bool = False) -> Array:
    """The same of volumes x [batch, channels, planes, rows, columns]: what `conv1d` says, a number or three for each setting.

    hg.conv3d(hg.ones((1, 2, 4, 4, 4)), hg.ones((1, 2, 2, 2, 2))).shape      # (1, 1, 3, 3, 3)"""
    return _conv(3, x, weight, bias, stride, padding, dilation, groups, padding_mode, channels_last)


def conv_transpose1d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                     groups: int = 1, dilation: Any = 1, *, channels_last: bool = False) -> Array:
    """conv1d's transpose: x [batch, channels, length] by weight [channels, outputs / groups, window] gives [batch, outputs, (length - 1) *
    stride - 2 * padding + dilation * (window - 1) + output_padding + 1]. Shapes and arguments are torch.nn.functional's; x may have no
    batch. Each result is a sum in order C over (channel, place in the window) of x with stride - 1 zeros between its elements.

    ValueError: shapes, groups or settings that do not fit; the sentence says which. Gradients flow to x, weight and bias.
    Source: V. Dumoulin and F. Visin, A guide to convolution arithmetic for deep learning (2016), chapter 4.

    hg.conv_transpose1d(hg.ones((1, 1, 2)), hg.ones((1, 1, 2)), stride=2)      # [[[1., 1., 1., 1.]]]"""
    return _transposed(1, x, weight, bias, stride, padding, output_padding, groups, dilation, channels_last)


def conv_transpose2d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                     groups: int = 1, dilation: Any = 1, *, channels_last: bool = False) -> Array:
    """The same of images x [batch, channels, rows, columns]: what `conv_transpose1d` says, a number or a pair for each setting.

    hg.conv_transpose2d(hg.ones((1, 3, 4, 4)), hg.ones((3, 2, 2, 2)), stride=2).shape      # (1, 2, 8, 8)"""
    return _transposed(2, x, weight, bias, stride, padding, output_padding, groups, dilation, channels_last)


def conv_transpose3d(x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
                     groups: int = 1, dilation: Any = 1, *, channels_last: bool = False) -> Array:
    """The same of volumes x [batch, channels, planes, rows, columns]: what `conv_transpose1d` says, a number or three for each setting.

    hg.conv_transpose3d(hg.ones((1, 1, 2, 2, 2)), hg.ones((1, 1, 2, 2, 2)), stride=2).shape      # (1, 1, 4, 4, 4)"""
    return _transposed(3, x, weight, bias, stride, padding, output_padding, groups, dilation, channels_last)
