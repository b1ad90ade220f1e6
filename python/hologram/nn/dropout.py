"""Layers that drop something while training."""

from __future__ import annotations

from math import sqrt  # correctly rounded everywhere

from hologram import _core
from hologram._core import Array
from hologram._create import ones
from hologram.nn.layer import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


class Dropout(Layer):
    """While training 0 with probability p, else x / (1 - p); at inference x (Srivastava and others 2014).

        layer = hg.nn.Dropout(0.1)
        y, _ = layer.apply({}, hg.ones((3, 4)), hg.random.key(0), training=True)

    ValueError: p below 0 or above 1; training without a key."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: the probability p is from 0 to 1, not {p}")
        self.p = p

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        if not training or self.p == 0:
            return x, parameters
        if key is None:
            raise ValueError(f"{type(self).__name__}: training needs a key: layer.apply(parameters, x, key, training=True)")
        return self._dropped(x, key), parameters

    def _dropped(self, x: Array, key: Array) -> Array:
        return _core.dropout(x, key, p=self.p)


class ChannelDropout(Dropout):
    """Drops whole channels of each element of a batch: x [batch, channels, ...], or channels along another axis (Tompson and others 2015;
    PyTorch's Dropout1d, Dropout2d and Dropout3d).

        layer = hg.nn.ChannelDropout(0.1)
        y, _ = layer.apply({}, hg.ones((3, 4, 5, 5)), hg.random.key(0), training=True)

    ValueError: p below 0 or above 1; x has no such axis, or it is the first; training without a key."""

    def __init__(self, p: float = 0.5, axis: int = 1) -> None:
        super().__init__(p)
        self.axis = axis

    def _dropped(self, x: Array, key: Array) -> Array:
        axis = self.axis + x.ndim if self.axis < 0 else self.axis
        if not 0 < axis < x.ndim:
            raise ValueError(f"ChannelDropout: channels lie along axis {self.axis}; x is {x.shape}, its first axis the batch")
        shape = tuple(size if i in (0, axis) else 1 for i, size in enumerate(x.shape))
        return x * _core.dropout(ones(shape, x.dtype), key, p=self.p)


class AlphaDropout(Dropout):
    """Dropout that keeps mean 0 and variance 1 behind selu: dropped elements get selu's limit at minus infinity, then all are scaled and
    moved (Klambauer and others 2017).

        layer = hg.nn.AlphaDropout(0.1)
        y, _ = layer.apply({}, hg.ones((3, 4)), hg.random.key(0), training=True)

    ValueError: p below 0 or above 1; training without a key."""

    def _dropped(self, x: Array, key: Array) -> Array:
        if self.p == 1:
            return x * 0
        limit = -1.7580993408473766  # -scale * alpha of selu
        scale = 1 / sqrt((1 - self.p) * (1 + self.p * limit * limit))
        is_kept = _core.dropout(ones(x.shape, x.dtype), key, p=self.p) > 0
        return _core.where(is_kept, x, limit) * scale - scale * self.p * limit
