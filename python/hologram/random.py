"""Random numbers with explicit keys: the same key gives the same numbers, on every device.

    key = hg.random.key(0)
    key, part = hg.random.split(key)
    x = hg.random.normal(part, (3, 4))
"""

from __future__ import annotations

from hologram import _core
from hologram._axes import axis_of
from hologram._core import Array
from hologram._create import _count, _leaves, asarray, integers_of, need_held, owned, plain, zeros

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
    """Normally distributed numbers, each rounded to the type: by Box and Muller (1958), of two words of Philox or, of float64, four.

    noise = hg.random.normal(hg.random.key(0), (3, 4), deviation=0.1)"""
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


# ---- orders and choices -----------------------------------------------------------------------------------------------

def permutation(key: Array, n: int) -> Array:
    """The numbers from 0 to below n in a random order: int64, the stable argsort of n words. numpy.random.Generator.permutation;
    torch.randperm.

    hg.random.permutation(hg.random.key(0), 5)"""
    (n,) = integers_of(n)
    if n < 0:
        raise ValueError(f"permutation: of 0 numbers or more, not {n}")
    if n == 0:
        return zeros((0,), "int64")
    return _core.argsort(_core.random_bits(key, None, (n,)))


def shuffle(key: Array, x: Any, axis: int = 0) -> Array:
    """x with its rows along an axis in the order of `permutation`, as a new array.

    hg.random.shuffle(hg.random.key(0), hg.asarray([[1, 2], [3, 4], [5, 6]]))"""
    x = owned(x)
    axis = axis_of("shuffle", x.ndim, axis)
    return _core.take(x, permutation(key, x.shape[axis]), axis)


def choice(key: Array, x: Any, shape: Any = (), replace: bool = True, p: Any = None, axis: int = 0) -> Array:
    """Rows of x along an axis (of a number n: of the numbers below n) drawn at random, in whose place `shape` stands. p: a weight for each
    row, in any scale; what is not above 0 is never drawn. replace=False: each row once at most, the first being those drawn first; rows
    of weight 0 come after all others. ValueError: fewer rows than are asked for.

    With replacement `integers`, or of weights where a number of `uniform` lies in their running sum (both float64); without it the first
    of `permutation`, or of weights the greatest of log p + `gumbel` (Gumbel-top-k; Efraimidis, Spirakis 2006; Kool, van Hoof, Welling
    2019). numpy.random.Generator.choice; torch.multinomial draws by weights, without replacement.

    hg.random.choice(hg.random.key(0), 10, (3,), replace=False)
    hg.random.choice(hg.random.key(0), hg.asarray([1.5, 2.5]), (4,), p=[3, 1])"""
    rows = None if getattr(x, "shape", ()) == () and not isinstance(x, (list, tuple)) else owned(x)
    axis = 0 if rows is None else axis_of("choice", rows.ndim, axis)
    (n,), sizes = integers_of(x) if rows is None else (rows.shape[axis],), integers_of(shape)
    count = _count(sizes)
    if n < 1 and count > 0 or (not replace and count > n):
        raise ValueError(f"choice: {count} cannot be drawn of {n}" + ("" if replace else ", each once at most"))
    weights = None if p is None else _weights("choice", p, n)
    if count == 0:
        index = zeros((0,), "int64")
    elif replace:
        index = _core.integers(key, None, (count,), 0, n, "int64") if weights is None else _placed(key, (count,), weights)
    elif weights is None:
        index = permutation(key, n)[:count]
    else:
        index = _core.argtop_k(_core.log(weights) + _core.gumbel(key, None, (n,), 0.0, 1.0, "float64"), count)
    index = index.reshape(sizes)
    return index if rows is None else _core.take(rows, index, axis)


def _weights(name: str, p: Any, n: int | None = None) -> Any:
    """Weights as float64, the largest of a row 1: 0 for what is not above 0. What Python holds is looked at."""
    numbers = [v for v in _leaves(p) if isinstance(v, (int, float))]
    wrong = [v for v in numbers if not 0 <= v < float("inf")]
    if wrong:
        raise ValueError(f"{name}: a weight is 0 or more and finite, not {wrong[0]}")
    if numbers and not any(numbers):
        raise ValueError(f"{name}: all weights are 0; one at least is above it")
    made = owned(p).astype("float64")
    if made.ndim == 0 or (n is not None and made.shape != (n,)):
        raise ValueError(f"{name}: p has a weight for each of {'some' if n is None else n} rows, not shape {made.shape}")
    made = _core.where(made > 0, made, 0)
    return made / _core.max(made, -1, 1) if made.size else made


def _placed(key: Array, shape: tuple[int, ...], weights: Any) -> Any:
    """Numbers of weights along their last axis, as often as they weigh; the other axes are the shape's, which has one more. The running
    sum of what weighs nothing is that before it, whatever was rounded. A row that weighs nothing is a fault."""
    ends = _core.cumulative_max(_core.where(weights > 0, _core.cumulative_sum(weights, -1), 0), -1)
    found = _core.searchsorted(ends, _core.uniform(key, None, shape, 0.0, 1.0, "float64") * ends[..., -1:], None, "right")
    return _core.take(_core.arange(0, weights.shape[-1], 1, "int64"), found)


def categorical(key: Array, logits: Any, shape: Any = (), axis: int = -1) -> Array:
    """Numbers of classes, each drawn with softmax's share of the logits along an axis: int64, of the shape `shape` and then the logits'
    without the axis. The argmax of the logits plus `gumbel` (Maddison, Tarlow, Minka 2014). jax.random.categorical;
    torch.distributions.Categorical(logits=logits).sample(shape).

    hg.random.categorical(hg.random.key(0), hg.asarray([[0.0, 1.0], [2.0, 0.0]]), (3,))     # shape (3, 2)"""
    logits = owned(logits)
    logits = logits if logits.dtype.kind == "float" else logits.astype("float32")
    axis = axis_of("categorical", logits.ndim, axis)
    sizes = integers_of(shape)
    noise = _core.gumbel(key, None, (*sizes, *logits.shape), 0.0, 1.0, "float64" if logits.dtype == "float64" else "float32")
    return _core.argmax(logits + noise, axis + len(sizes))


def multinomial(key: Array, n: int, p: Any, shape: Any = ()) -> Array:
    """How often each class comes in n draws, by the weights p along its last axis, in any scale: int64, of the shape `shape` and then
    p's, drawn as `choice` draws. numpy.random.Generator.multinomial; what torch.multinomial gives is hg.random.choice.

    hg.random.multinomial(hg.random.key(0), 100, [0.2, 0.3, 0.5])"""
    (n,), sizes = integers_of(n), integers_of(shape)
    if n < 0:
        raise ValueError(f"multinomial: of 0 draws or more, not {n}")
    weights = _weights("multinomial", p)
    classes, lead = weights.shape[-1], (*sizes, *weights.shape[:-1])
    rows = _count(lead)
    if n == 0 or rows == 0:
        return zeros((*lead, classes), "int64")
    drawn = _placed(key, (*lead, n), weights.broadcast_to((*lead, classes)))
    place = _core.arange(0, rows, 1, "int64")[:, None] * classes + drawn.reshape((rows, n))
    return _core.bincount(place, None, rows * classes).reshape((*lead, classes))


def _sized(shape: Any) -> tuple[int, ...]:
    """A shape as the table takes it; its empty list is the default, which has one element."""
    return integers_of(shape) or (1,)


def _made(x: Array, shape: Any) -> Array:
    return x if integers_of(shape) else x.reshape(())
