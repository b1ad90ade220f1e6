"""Indexing whose result's shape depends on values."""

from hologram import _core
from hologram._core import Array


def take_mask(x: Array, mask: Array) -> Array:
    """The elements of x where the mask, of the shape of its first axes, holds: in C order, along one axis."""
    if mask.dtype != _core.bool_:
        raise TypeError(f"an array of {mask.dtype} is no index; integers and bool are")
    if x.shape[: mask.ndim] != mask.shape:
        raise IndexError(f"a mask of shape {mask.shape} does not fit an array of shape {x.shape}")
    flat = memoryview(mask.reshape(-1)).tolist() if mask.size else []
    numbers = [i for i, holds in enumerate(flat) if holds]
    rest = x.shape[mask.ndim :]
    source = x.reshape((mask.size, *rest))
    if not numbers:
        return source[:0]
    from hologram._create import asarray

    return _core.take(source, asarray(numbers), 0)
