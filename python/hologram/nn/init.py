"""First values of weights. Shapes are a layer's own, [outputs, inputs, ...], as PyTorch's: an output is made of inputs * the sizes behind
(fan in), an input goes to outputs * the sizes behind (fan out).

    weight = hg.nn.init.he_normal(hg.random.key(0), (128, 64))

Each takes a key, a shape and a float dtype, and gives the same bits everywhere. ValueError: a shape with fewer than two axes.
"""

from __future__ import annotations

from math import sqrt  # exact to the last bit everywhere, which ** 0.5 is not

from hologram import _core, random
from hologram._core import Array
from hologram._create import _count, integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_CUT = 0.87962566103423978  # the deviation of what is left of normal numbers within two deviations


def variance_scaling(key: Array, shape: Any, scale: float = 1.0, mode: str = "fan_in", distribution: str = "normal",
                     dtype: Any = "float32") -> Array:  # fmt: skip
    """Numbers of mean 0 and variance scale / fan. mode: 'fan_in', 'fan_out', or 'fan_avg', their mean. distribution: 'normal', 'uniform',
    or 'truncated_normal', which is cut at two deviations and then has this variance.

    hg.nn.init.variance_scaling(hg.random.key(0), (128, 64), 2.0, "fan_out", "truncated_normal")"""
    sizes = integers_of(shape)
    if len(sizes) < 2:
        raise ValueError(f"a weight of shape {sizes}; it has two axes or more, [outputs, inputs, ...]")
    field = _count(sizes[2:])
    fans = {"fan_in": sizes[1] * field, "fan_out": sizes[0] * field, "fan_avg": (sizes[0] + sizes[1]) * field / 2}
    if mode not in fans:
        raise ValueError(f"mode is 'fan_in', 'fan_out' or 'fan_avg', not {mode!r}")
    deviation = sqrt(scale / max(fans[mode], 1))
    if distribution == "normal":
        return random.normal(key, sizes, 0.0, deviation, dtype)
    if distribution == "uniform":
        bound = deviation * sqrt(3.0)
        return random.uniform(key, sizes, -bound, bound, dtype)
    if distribution == "truncated_normal":
        whole = deviation / _CUT
        return random.truncated_normal(key, sizes, -2.0 * whole, 2.0 * whole, 0.0, whole, dtype)
    raise ValueError(f"distribution is 'normal', 'uniform' or 'truncated_normal', not {distribution!r}")


def glorot_uniform(key: Array, shape: Any, gain: float = 1.0, dtype: Any = "float32") -> Array:
    """Uniform numbers of variance gain^2 * 2 / (fan in + fan out). PyTorch's xavier_uniform_ (Glorot and Bengio 2010).

    weight = hg.nn.init.glorot_uniform(hg.random.key(0), (128, 64))"""
    return variance_scaling(key, shape, gain * gain, "fan_avg", "uniform", dtype)


def glorot_normal(key: Array, shape: Any, gain: float = 1.0, dtype: Any = "float32") -> Array:
    """Normal numbers of variance gain^2 * 2 / (fan in + fan out). PyTorch's xavier_normal_ (Glorot and Bengio 2010).

    weight = hg.nn.init.glorot_normal(hg.random.key(0), (128, 64))"""
    return variance_scaling(key, shape, gain * gain, "fan_avg", "normal", dtype)


def he_uniform(key: Array, shape: Any, slope: float = 0.0, mode: str = "fan_in", dtype: Any = "float32") -> Array:
    """Uniform numbers of variance 2 / ((1 + slope^2) fan), for relu, or leaky_relu of that slope.
    PyTorch's kaiming_uniform_ (He et al. 2015).

    weight = hg.nn.init.he_uniform(hg.random.key(0), (128, 64))"""
    return variance_scaling(key, shape, 2 / (1 + slope * slope), mode, "uniform", dtype)


def he_normal(key: Array, shape: Any, slope: float = 0.0, mode: str = "fan_in", dtype: Any = "float32") -> Array:
    """Normal numbers of variance 2 / ((1 + slope^2) fan), for relu, or leaky_relu of that slope.
    PyTorch's kaiming_normal_ (He et al. 2015).

    kernel = hg.nn.init.he_normal(hg.random.key(0), (32, 16, 3, 3), mode="fan_out")"""
    return variance_scaling(key, shape, 2 / (1 + slope * slope), mode, "normal", dtype)


def lecun_uniform(key: Array, shape: Any, dtype: Any = "float32") -> Array:
    """Uniform numbers of variance 1 / fan in (LeCun et al., Efficient BackProp, 1998).

    weight = hg.nn.init.lecun_uniform(hg.random.key(0), (128, 64))"""
    return variance_scaling(key, shape, 1.0, "fan_in", "uniform", dtype)


def lecun_normal(key: Array, shape: Any, dtype: Any = "float32") -> Array:
    """Normal numbers of variance 1 / fan in, as selu wants (LeCun et al., Efficient BackProp, 1998).

    weight = hg.nn.init.lecun_normal(hg.random.key(0), (128, 64))"""
    return variance_scaling(key, shape, 1.0, "fan_in", "normal", dtype)


# ---- orthogonal -----------------------------------------------------------------------------------------------------------

def orthogonal(key: Array, shape: Any, gain: float = 1.0, dtype: Any = "float32") -> Array:
    """gain times a matrix [outputs, the rest] whose rows, or columns if these are fewer, are orthonormal: any such matrix as likely as any
    other. A product of Householder's reflections by random vectors (Stewart 1980), in float64, rounded once.

    weight = hg.nn.init.orthogonal(hg.random.key(0), (64, 64))"""
    sizes = integers_of(shape)
    if len(sizes) < 2:
        raise ValueError(f"a weight of shape {sizes}; it has two axes or more, [outputs, inputs, ...]")
    rows, columns = sizes[0], _count(sizes[1:])
    made = _orthonormal(random.normal(key, (max(rows, columns), min(rows, columns)), dtype="float64"))
    return ((made if rows >= columns else made.T) * gain).reshape(sizes).astype(dtype)


def _orthonormal(x: Array) -> Array:
    """The first columns of the product of reflections, each of which takes a column of x, from its own row on, to that row's axis: with the
    reflecting vectors V, I - V T V' (Schreiber and Van Loan 1989), whose inverse of T is V' V above the diagonal and half of it there."""
    unit = _core.eye(x.shape[0], x.shape[1], dtype="float64")
    x = _core.tril(x)
    sign = _core.copysign(1.0, _core.sum(x * unit, 0))
    v = x + unit * (sign * _core.sqrt(_core.sum(x * x, 0)))
    products = v.T @ v
    t = _inverse(_core.triu(products, 1) + _core.tril(_core.triu(products)) * 0.5)
    return (v @ (t @ v[: x.shape[1]].T) - unit) * sign


def _inverse(s: Array) -> Array:
    """Of an upper triangular matrix: of its diagonal blocks of 1, 2, 4, ... elements; the block above two of them is -A B C, A and C their
    inverses."""
    count, size = s.shape[0], 1
    while size < count:
        size *= 2
    more = size - count
    s = _core.pad(s, None, (0, 0), (more, more)) + _core.eye(size, size, dtype="float64") * (_core.arange(0, size, 1, "int64") >= count)
    made = 1 / s.reshape(size * size)[:: size + 1].reshape((size, 1, 1))
    width = 1
    while width < size:
        pairs = size // (2 * width)
        blocks = s.reshape((pairs, 2 * width, pairs, 2 * width)).transpose((0, 2, 1, 3)).reshape((-1, 2 * width, 2 * width))[:: pairs + 1]
        upper, lower = made[0::2], made[1::2]
        between = -(upper @ blocks[:, :width, width:] @ lower)
        first = _core.concatenate([upper, between], axis=2)
        made = _core.concatenate([first, _core.concatenate([lower * 0, lower], axis=2)], axis=1)
        width *= 2
    return made[0][:count, :count]
