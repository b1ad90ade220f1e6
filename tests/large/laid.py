"""Large arrays, places of theirs to look at, and what results must be: bit for bit."""

import numpy as np

import hologram as hg

CHUNK = 4096
PERIOD = 1 << 20


def places(count, seed=0):
    """Numbers of elements: both ends, around powers of two, anywhere."""
    around = [(1 << k) + d for k in range(8, 34) for d in range(-2, 3)]
    anywhere = np.random.default_rng(seed).integers(0, count, 500).tolist()
    return np.array(sorted({p for p in [*range(4), *range(count - 4, count), *around, *anywhere] if 0 <= p < count}), np.int64)


def numbers(count, kind, seed=0):
    """Random elements, a period of them repeated and changed here and there, so that a wrong multiple of any size shows."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(kind)
    few = min(count, PERIOD)
    if kind == bool:
        period = rng.integers(0, 2, few).astype(bool)
    elif kind.kind in "iu":
        period = rng.integers(0, 200 if kind.itemsize > 1 else 100, few).astype(kind)
    else:
        period = rng.uniform(0.25, 2.0, few).astype(kind)
    made = np.resize(period, count)
    if kind != bool:
        made[:: PERIOD + 7] *= kind.type(0.5) if kind.kind == "f" else kind.type(3)
    return made


def fold(values, combine=np.add, absent=-0.0):
    """Order F of docs/numerics.md along the last axis: by halves in chunks of 4096, and the chunks' results again."""
    size = values.shape[-1]
    width = CHUNK
    while size <= width // 2 and width > 1:
        width //= 2
    short = -size % width
    if short:
        values = np.concatenate([values, np.full((*values.shape[:-1], short), absent, values.dtype)], axis=-1)
    values = values.reshape(*values.shape[:-1], -1, width)
    while width > 1:
        width //= 2
        values = combine(values[..., :width], values[..., width:])
    values = values[..., 0]
    return values[..., 0] if values.shape[-1] == 1 else fold(values, combine, absent)


def host(array):
    return np.asarray(array if isinstance(array, np.ndarray) else array.to_device(hg.default_executor()))


def at(array, where):
    """Elements by their numbers in C order."""
    array.compute()
    flat = array.reshape((-1,))
    return host(hg.take(flat, hg.asarray(where).to_device(flat.device)))


def same(got, right):
    got, right = host(got), np.asarray(right)
    assert got.dtype == right.dtype and got.shape == right.shape
    wrong = np.flatnonzero(got.reshape(-1).view(np.uint8) != np.ascontiguousarray(right).reshape(-1).view(np.uint8))
    assert wrong.size == 0, f"element {wrong[0] // got.dtype.itemsize}: {got.reshape(-1)[wrong[0] // got.dtype.itemsize]!r}, " \
                            f"right is {right.reshape(-1)[wrong[0] // got.dtype.itemsize]!r}"
