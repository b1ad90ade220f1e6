"""Attention between the elements of sequences, and the block that transformers are made of."""

from __future__ import annotations

from math import sqrt  # correctly rounded everywhere

from hologram import _core, random
from hologram._core import Array
from hologram._create import integers_of, zeros
from hologram.array_api import arange
from hologram.nn.dropout import Dropout
from hologram.nn.layer import Layer, split
from hologram.nn.linear import Linear
from hologram.nn.norms import LayerNorm

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any


def _swapped(x: Array) -> Array:
    """[..., time, heads, width] as [..., heads, time, width], and back."""
    n = x.ndim
    return _core.permute(x, [*range(n - 3), n - 2, n - 3, n - 1])


def _weights(scores: Array, allowed: Array | None, is_sure: bool) -> Array:
    """The shares of each query; is_sure: each has something that it may see, else its shares may all be 0."""
    if allowed is None:
        return _core.softmax(scores, axis=-1)
    seen = _core.where(allowed, scores, float("-inf"))
    if is_sure:
        return _core.softmax(seen, axis=-1)
    some = _core.any(allowed, axis=-1, keepdims=True)
    return _core.where(allowed, _core.softmax(_core.where(some, seen, 0.0), axis=-1), 0.0)


class MultiHeadAttention(Layer):
    """Attention of x [..., time, width] to itself or to a context: softmax(q k^T / sqrt(width / heads)) v of each head (Vaswani and
    others 2017). Parameters are those of PyTorch's MultiheadAttention. causal: an element sees none that comes after it.

        layer = hg.nn.MultiHeadAttention(8, heads=2, causal=True)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 5, 8)))    # [3, 5, 8]

    ValueError: the width is no multiple of the heads, or x is not of that width; dropout while training without a key."""

    def __init__(self, width: int, heads: int, bias: bool = True, dropout: float = 0.0, causal: bool = False,
                 dtype: Any = "float32") -> None:
        if heads < 1 or width < 1 or width % heads:
            raise ValueError(f"MultiHeadAttention: the width is a multiple of the number of heads, not {width} of {heads}")
        self.width, self.heads, self.bias, self.dropout, self.causal, self.dtype = width, heads, bias, dropout, causal, dtype
        self._drop = Dropout(dropout)

    def init(self, key: Array) -> dict[str, Any]:
        keys, n = random.split(key), self.width
        bound, out = sqrt(6 / (4 * n)), 1 / sqrt(n)
        made: dict[str, Any] = {"in_proj_weight": random.uniform(keys[0], (3 * n, n), -bound, bound, self.dtype),
                                "out_proj": {"weight": random.uniform(keys[1], (n, n), -out, out, self.dtype)}}  # fmt: skip
        if self.bias:
            made["in_proj_bias"], made["out_proj"]["bias"] = zeros(3 * n, self.dtype), zeros(n, self.dtype)
        return made

    def _projected(self, parameters: Any, x: Array, first: int, last: int) -> list[Array]:
        """x by parts of the first weight (query 0, key 1, value 2), each [..., heads, time, width / heads]."""
        n, count, bias = self.width, last - first, parameters.get("in_proj_bias")
        if x.ndim < 2 or x.shape[-1] != n:
            raise ValueError(f"MultiHeadAttention: sequences are [..., time, {n}], not {x.shape}")
        made = _core.linear(x, parameters["in_proj_weight"][first * n:last * n], None if bias is None else bias[first * n:last * n])
        parts = made.reshape((*x.shape[:-1], count, self.heads, n // self.heads))
        return [_swapped(parts[..., i, :, :]) for i in range(count)]

    def _attended(self, parameters: Any, qkv: list[Array], allowed: Array | None, is_sure: bool, key: Array | None,
                  training: bool) -> Array:
        q, k, v = qkv
        scores = _core.matmul(q * (1 / sqrt(self.width // self.heads)), k, transpose_b=True)
        weights, _ = self._drop.apply({}, _weights(scores, allowed, is_sure), key, training)
        y = _swapped(_core.matmul(weights, v))
        out = parameters["out_proj"]
        return _core.linear(y.reshape((*y.shape[:-2], self.width)), out["weight"], out.get("bias"))

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False, *, context: Array | None = None,
              lengths: Array | None = None, mask: Array | None = None) -> tuple[Array, Any]:
        """context: what keys and values are made of, [..., other time, width]; x without it. lengths [...]: so many of its elements
        count. mask: True where a query (the axis before the last) may see a key (the last), broadcast to [..., heads, time, time].
        A query that may see nothing attends to zeros."""
        if context is None:
            qkv = self._projected(parameters, x, 0, 3)
        elif self.causal:
            raise ValueError("MultiHeadAttention: causal attention is of one sequence; it has no context")
        else:
            qkv = self._projected(parameters, x, 0, 1) + self._projected(parameters, context, 1, 3)
        places, allowed = arange(qkv[1].shape[-2]), None
        if self.causal:
            allowed = places <= places[:, None]
        if lengths is not None:
            own = places < _core.asarray(lengths)[..., None, None, None]
            allowed = own if allowed is None else allowed & own
        if mask is not None:
            if mask.dtype != _core.bool_:
                raise TypeError(f"MultiHeadAttention: a mask is bool, True where a query may see a key; this one is {mask.dtype}")
            allowed = mask if allowed is None else allowed & mask
        return self._attended(parameters, qkv, allowed, lengths is None and mask is None, key, training), parameters

    def cache(self, batch: Any, length: int) -> dict[str, Array]:
        """An empty cache for so many elements of sequences, of which there are `batch` (a number or a shape): a tree of arrays."""
        shape = (*integers_of(batch), self.heads, length, self.width // self.heads)
        return {"key": zeros(shape, self.dtype), "value": zeros(shape, self.dtype), "used": zeros((), "int64")}

    def extend(self, parameters: Any, x: Array, cache: Any) -> tuple[Array, Any]:
        """Causal attention of further elements x [..., time, width] to those of the cache and themselves; and the cache with them.
        hg.IndexFault: the cache is full.

            layer = hg.nn.MultiHeadAttention(8, heads=2)
            y, cache = layer.extend(layer.init(hg.random.key(0)), hg.ones((3, 1, 8)), layer.cache(3, length=16))"""
        q, k, v = self._projected(parameters, x, 0, 3)
        places = cache["used"] + arange(x.shape[-2])
        k, v = (cache[name].at[..., places, :].set(new) for name, new in (("key", k), ("value", v)))
        allowed = arange(k.shape[-2]) <= places[:, None]
        y = self._attended(parameters, [q, k, v], allowed, True, None, False)
        return y, {"key": k, "value": v, "used": cache["used"] + x.shape[-2]}


class TransformerBlock(Layer):
    """Attention, then two linear layers with an activation between, each added to what it was given: x [..., time, width]. Normalised
    before each (norm_first), or after each as in the paper (Vaswani and others 2017). Parameters are those of PyTorch's
    TransformerEncoderLayer.

        block = hg.nn.TransformerBlock(8, heads=2, causal=True)
        y = block(block.init(hg.random.key(0)), hg.ones((3, 5, 8)))    # [3, 5, 8]

    ValueError: the width is no multiple of the heads; dropout while training without a key."""

    def __init__(self, width: int, heads: int, hidden: int | None = None, activation: Callable[[Array], Array] = _core.gelu,
                 dropout: float = 0.0, norm_first: bool = True, causal: bool = False, bias: bool = True, eps: float = 1e-5,
                 dtype: Any = "float32") -> None:
        hidden = 4 * width if hidden is None else hidden
        self.activation, self.dropout, self.norm_first = activation, dropout, norm_first
        self.self_attn = MultiHeadAttention(width, heads, bias, dropout, causal, dtype)
        self.linear1, self.linear2 = Linear(width, hidden, bias, dtype), Linear(hidden, width, bias, dtype)
        self.norm1, self.norm2 = LayerNorm(width, eps, dtype, bias=bias), LayerNorm(width, eps, dtype, bias=bias)
        self._drop = Dropout(dropout)

    def init(self, key: Array) -> dict[str, Any]:
        names = ("self_attn", "linear1", "linear2", "norm1", "norm2")
        keys = random.split(key, len(names))
        return {name: getattr(self, name).init(keys[i]) for i, name in enumerate(names)}

    def _joined(self, parameters: Any, x: Array, attend: Callable[[Array], Array], keys: list[Array | None], training: bool) -> Array:
        """The block around its attention."""

        def drop(x: Array, i: int) -> Array:
            return self._drop.apply({}, x, keys[i], training)[0]

        def feed(x: Array) -> Array:
            return self.linear2(parameters["linear2"], drop(self.activation(self.linear1(parameters["linear1"], x)), 0))

        norm1, norm2 = parameters["norm1"], parameters["norm2"]
        if self.norm_first:
            x = x + drop(attend(self.norm1(norm1, x)), 1)
            return x + drop(feed(self.norm2(norm2, x)), 2)
        x = self.norm1(norm1, x + drop(attend(x), 1))
        return self.norm2(norm2, x + drop(feed(x), 2))

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False, *, lengths: Array | None = None,
              mask: Array | None = None) -> tuple[Array, Any]:
        """lengths and mask: as MultiHeadAttention's."""
        *keys, own = split(key, 4)

        def attend(x: Array) -> Array:
            return self.self_attn.apply(parameters["self_attn"], x, own, training, lengths=lengths, mask=mask)[0]

        return self._joined(parameters, x, attend, keys, training), parameters

    def cache(self, batch: Any, length: int) -> dict[str, Array]:
        """An empty cache of its attention."""
        return self.self_attn.cache(batch, length)

    def extend(self, parameters: Any, x: Array, cache: Any) -> tuple[Array, Any]:
        """What comes out for further elements x [..., time, width] behind those of the cache, and the cache with them.
        hg.IndexFault: the cache is full.

            block = hg.nn.TransformerBlock(8, heads=2)
            y, cache = block.extend(block.init(hg.random.key(0)), hg.ones((3, 1, 8)), block.cache(3, length=16))"""
        new = []

        def attend(x: Array) -> Array:
            y, own = self.self_attn.extend(parameters["self_attn"], x, cache)
            new.append(own)
            return y

        return self._joined(parameters, x, attend, [None] * 3, False), new[0]
