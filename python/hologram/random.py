"""Random numbers with explicit keys: the same key gives the same numbers, on every device.

    key = hg.random.key(0)
    key, part = hg.random.split(key)
    x = hg.random.normal(part, (3, 4))
"""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import asarray, integers_of, need_held, plain

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def key(seed: int) -> Array:
    """A key of a number from 0 to 2^64 - 1."""
    seed = plain(seed)
    if not 0 <= seed < 2**64:
        raise ValueError(f"a seed is from 0 to 2^64 - 1, not {seed}")
    return _core._scalar(seed, "uint64")


def split(key: Array, count: int = 2) -> Array:
    """New keys, which share no numbers with this one or each other: an array of count keys."""
    words = _core.random_bits(key, _core._scalar(2**63, "uint64"), (count, 2)).astype("uint64")
    return (words[:, 0] << 32) | words[:, 1]


def bits(key: Array, shape: Any = ()) -> Array:
    """uint32 words, every one as likely."""
    return _made(_core.random_bits(key, None, _sized(shape)), shape)


def uniform(key: Array, shape: Any = (), low: float = 0.0, high: float = 1.0, dtype: Any = "float32") -> Array:
    """Numbers in [low, high); low and what is computed are rounded to the type."""
    return _made(_core.uniform(key, None, _sized(shape), low, high, dtype), shape)


def normal(key: Array, shape: Any = (), mean: float = 0.0, deviation: float = 1.0, dtype: Any = "float32") -> Array:
    """Normally distributed numbers."""
    return _made(_core.normal(key, None, _sized(shape), mean, deviation, dtype), shape)


def integers(key: Array, shape: Any = (), low: int = 0, high: int = 2, dtype: Any = "int64") -> Array:
    """Whole numbers in [low, high), all of which the type has."""
    low, high, kind = plain(low), plain(high), _core._scalar(0, dtype).dtype
    if kind.kind == "integer" and low < high:
        need_held("integers", kind, low, high - 1)
    return _made(_core.integers(key, None, _sized(shape), low, high, dtype), shape)


def bernoulli(key: Array, shape: Any = None, p: Any = 0.5) -> Array:
    """True with probability p, a number or an array, whose shape it has unless another is given: p broadcasts to that, and each element
    has a random number of its own. Of p below `uniform` in float32; where p is NaN False. ValueError: a number that is no probability.

    hg.random.bernoulli(key, (3, 4), 0.2)            # bool, shape (3, 4)
    hg.random.bernoulli(key, p=hg.sigmoid(logits))   # of logits' shape"""
    p = plain(p) if getattr(p, "shape", None) == () and not isinstance(p, Array) else p
    if isinstance(p, (int, float)):
        if not 0 <= p <= 1:
            raise ValueError(f"bernoulli: the probability p is from 0 to 1, not {p}")
        return uniform(key, () if shape is None else shape) < p
    each: Array = asarray(p) if shape is None else asarray(p).broadcast_to(shape)
    return uniform(key, each.shape) < each


def exponential(key: Array, shape: Any = (), scale: float = 1.0, dtype: Any = "float32") -> Array:
    """Exponentially distributed numbers, of mean scale (PyTorch's 1 / lambd): -log(u) * scale, all above 0. Any float dtype.

    waits = hg.random.exponential(hg.random.key(0), (1000,), scale=2.0)"""
    return _made(_core.exponential(key, None, _sized(shape), scale, dtype), shape)


def gumbel(key: Array, shape: Any = (), loc: float = 0.0, scale: float = 1.0, dtype: Any = "float32") -> Array:
    """Gumbel distributed numbers: loc - log(-log(u)) * scale. The argmax of logits plus these is drawn with softmax's shares
    (Gumbel 1954; Maddison, Tarlow, Minka: A* sampling, 2014). Any float dtype.

    drawn = (logits + hg.random.gumbel(key, logits.shape)).argmax(-1)"""
    return _made(_core.gumbel(key, None, _sized(shape), loc, scale, dtype), shape)


def laplace(key: Array, shape: Any = (), loc: float = 0.0, scale: float = 1.0, dtype: Any = "float32") -> Array:
    """Laplace distributed numbers: the density is e^(-|x - loc| / scale) / (2 scale). Any float dtype.

    noise = hg.random.laplace(hg.random.key(0), (3, 4), scale=0.1)"""
    return _made(_core.laplace(key, None, _sized(shape), loc, scale, dtype), shape)


def truncated_normal(key: Array, shape: Any = (), low: float = -2.0, high: float = 2.0, mean: float = 0.0, deviation: float = 1.0,
                     dtype: Any = "float32") -> Array:  # fmt: skip
    """Normal numbers of a mean and deviation, of which only those from low to high are left; low and high are values, as in PyTorch's
    trunc_normal_, not numbers of deviations. Any float dtype; ValueError: bounds of which none is within 37 deviations of the mean.

    weight = hg.random.truncated_normal(hg.random.key(0), (128, 64), -0.04, 0.04, deviation=0.02)"""
    return _made(_core.truncated_normal(key, None, _sized(shape), low, high, mean, deviation, dtype), shape)


def _sized(shape: Any) -> tuple[int, ...]:
    """A shape as the table takes it; its empty list is the default, which has one element."""
    return integers_of(shape) or (1,)


def _made(x: Array, shape: Any) -> Array:
    return x if integers_of(shape) else x.reshape(())
