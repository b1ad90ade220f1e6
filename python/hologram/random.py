"""Random numbers with explicit keys: the same key gives the same numbers, on every device.

    key = hg.random.key(0)
    key, part = hg.random.split(key)
    x = hg.random.normal(part, (3, 4))
"""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import integers_of, need_held, plain

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


def bernoulli(key: Array, shape: Any = (), p: float | Array = 0.5) -> Array:
    """True with probability p, a number or an array of them."""
    if not isinstance(p, Array) and not 0 <= p <= 1:
        raise ValueError(f"bernoulli: the probability p is from 0 to 1, not {p}")
    return uniform(key, shape) < p


def _sized(shape: Any) -> tuple[int, ...]:
    """A shape as the table takes it; its empty list is the default, which has one element."""
    return integers_of(shape) or (1,)


def _made(x: Array, shape: Any) -> Array:
    return x if integers_of(shape) else x.reshape(())
