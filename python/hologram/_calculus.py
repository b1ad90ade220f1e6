"""Differences, areas, interpolation, polynomials and covariances by NumPy's names, over operations of the table."""

from __future__ import annotations

from hologram import _core, array_api
from hologram._axes import axes_of, axis_of
from hologram._core import Array
from hologram._create import arrays_beside, owned

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def _floats(*values: Any) -> list[Array]:
    """As arrays of floats, of integers and bools float32."""
    return [x if x.dtype.kind == "float" else x.astype("float32") for x in arrays_beside(values)]


def _part(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    return x[(*(slice(None),) * axis, slice(start, stop))]


def _alone(axis: int, rank: int) -> tuple[int, ...]:
    """The shape of a vector that lies along an axis."""
    return tuple(-1 if d == axis else 1 for d in range(rank))


# ---- differences -------------------------------------------------------------------------------------------------------------

def diff(x: Any, /, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Array:
    """Differences of neighbours along an axis, n times, each of which leaves one element less; of bools whether they differ. prepend,
    append: what stands before and behind, a number or an array that has x's other sizes.

        hg.diff(hg.asarray([1, 4, 9]))  # [3, 5]

    ValueError of n below 0. The type stays."""
    x = owned(x)
    place = axis_of("diff", x.ndim, axis)
    size = tuple(1 if d == place else n for d, n in enumerate(x.shape))

    def end(value: Any) -> Any:
        value = _core._scalar(value, x.dtype) if isinstance(value, (bool, int, float)) else arrays_beside((x, value))[1]
        return value if value.ndim else value.broadcast_to(size)

    ends = [None if value is None else end(value) for value in (prepend, append)]
    return array_api.diff(x, axis=place, n=n, prepend=ends[0], append=ends[1])  # type: ignore[no-any-return]


def gradient(x: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Slopes along axes, by central differences, and at both ends by one-sided ones of first or second order: an array of x's shape, or
    a tuple of them, one for each of several axes. spacing: the distance of neighbours (1), one for all axes or one for each, or the
    coordinates along an axis as a vector. (hg.grad differentiates functions.)

        hg.gradient(hg.asarray([1.0, 4.0, 9.0]))  # [3, 4, 5]

    ValueError of an axis of fewer than edge_order + 1 elements, TypeError of another number of spacings. Integers become float32."""
    (x,) = _floats(x)
    axes = tuple(range(x.ndim)) if axis is None else axes_of("gradient", x.ndim, axis)
    steps = [step if isinstance(step, (int, float)) else arrays_beside((x, step))[1] for step in spacing]
    is_one = len(steps) == 1 and (isinstance(steps[0], (int, float)) or steps[0].ndim == 0)
    steps = steps * len(axes) if is_one else steps or [1.0] * len(axes)
    if len(steps) != len(axes):
        raise TypeError(f"gradient: {len(steps)} spacings for {len(axes)} axes; give none, one number, or one for each axis")
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order is {edge_order}; it is 1 or 2")
    made = [_slopes(x, d, step, edge_order) for d, step in zip(axes, steps, strict=True)]
    return made[0] if len(made) == 1 else tuple(made)


def _slopes(x: Array, axis: int, step: Any, order: int) -> Array:
    """By Fornberg's weights of three neighbours at distances p and q (SIAM Review 40, 1998); at the ends of two or three."""
    size = x.shape[axis]
    if size <= order:
        raise ValueError(f"gradient: axis {axis} has {size} elements; edge_order {order} takes at least {order + 1}")
    places = isinstance(step, Array) and step.ndim > 0
    if places and step.shape != (size,):
        raise ValueError(f"gradient: coordinates of shape {step.shape} along axis {axis}, which has {size} elements")
    gaps = diff(step).reshape(_alone(axis, x.ndim)) if places else None
    first, last = (_part(gaps, axis, 0, 1), _part(gaps, axis, -1, None)) if gaps is not None else (step, step)
    parts = [_part(x, axis, 0, 1), _part(x, axis, 1, 2), _part(x, axis, -2, -1), _part(x, axis, -1, None)]
    low, high = (parts[1] - parts[0]) / first, (parts[3] - parts[2]) / last
    if order == 2:
        second, before = (_part(gaps, axis, 1, 2), _part(gaps, axis, -2, -1)) if gaps is not None else (step, step)
        low = low + (low - (_part(x, axis, 2, 3) - parts[1]) / second) * first / (first + second)
        high = high + (high - (parts[2] - _part(x, axis, -3, -2)) / before) * last / (last + before)
    if gaps is None:
        middle = (_part(x, axis, 2, None) - _part(x, axis, None, -2)) / (2.0 * step)
    else:
        slopes = diff(x, axis=axis) / gaps
        p, q = _part(gaps, axis, None, -1), _part(gaps, axis, 1, None)
        middle = (_part(slopes, axis, None, -1) * q + _part(slopes, axis, 1, None) * p) / (p + q)
    return _core.concatenate([low, middle, high], axis)


# ---- areas -------------------------------------------------------------------------------------------------------------------

def _areas(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Array, int]:
    y, *places = _floats(y) if x is None else _floats(y, x)
    place = axis_of(name, y.ndim, axis)
    for x in places:
        if x.ndim == 1 and x.shape[0] != y.shape[place]:
            raise ValueError(f"{name}: places of shape {x.shape} beside {y.shape[place]} samples along axis {place}")
        dx = diff(x).reshape(_alone(place, y.ndim)) if x.ndim == 1 else diff(x, axis=axis)
    return (_part(y, place, 1, None) + _part(y, place, None, -1)) * dx / 2.0, place


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule: of samples y at places x (a vector, or of y's shape), or at distances dx.

        hg.trapezoid(hg.asarray([0.0, 1.0, 4.0]))  # 3

    The axis is gone. Integers become float32."""
    areas, place = _areas("trapezoid", y, x, dx, axis)
    return _core.sum(areas, place)


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integrals from the first sample up to each of the others by the trapezoidal rule, one fewer than samples: see trapezoid.

        hg.cumulative_trapezoid(hg.asarray([0.0, 1.0, 4.0]))  # [0.5, 3]"""
    areas, place = _areas("cumulative_trapezoid", y, x, dx, axis)
    return _core.cumulative_sum(areas, place)


# ---- functions by their values -------------------------------------------------------------------------------------------------

def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Array:
    """A function that is fp at the ascending places xp (vectors of n) and straight between them, at x, of any shape. Before the first
    place it is left (fp[0]), behind the last right (fp[-1]); with a period, after which it repeats, the places may have any order.

        hg.interp(1.5, [0.0, 1.0, 2.0], [0.0, 10.0, 20.0])  # 15

    ValueError where xp and fp are no vectors of one size, or empty, or period is 0. Gradients flow to x, xp and fp."""
    x, xp, fp = _floats(x, xp, fp)
    if xp.ndim != 1 or xp.shape != fp.shape or xp.size == 0:
        raise ValueError(f"interp: xp and fp are of shapes {xp.shape} and {fp.shape}; they are vectors of one size, not empty")
    if period is not None:
        if period == 0:
            raise ValueError("interp: period is 0; a function repeats after another number")
        period, left, right = abs(period), None, None
        x, xp = x % period, xp % period
        order = array_api.argsort(xp)
        xp, fp = xp[order], fp[order]
        xp = _core.concatenate([xp[-1:] - period, xp, xp[:1] + period])
        fp = _core.concatenate([fp[-1:], fp, fp[:1]])
    place = array_api.searchsorted(xp, x, side="right") - 1
    (x0, x1), (f0, f1) = ([_core.take(v, place + i, 0, "clamp") for i in (0, 1)] for v in (xp, fp))
    is_flat = _core.logical_or(x == x0, x1 == x0)  # at a place its value, though the slope beside it be infinite
    made = _core.where(is_flat, f0, (f1 - f0) / _core.where(is_flat, 1.0, x1 - x0) * (x - x0) + f0)
    made = _core.where(x < xp[0], fp[0] if left is None else left, made)
    made = _core.where(x > xp[-1], fp[-1] if right is None else right, made)
    return _core.where(x == x, made, x)


def unwrap(p: Any, discont: float | None = None, axis: int = -1, *, period: float = 6.283185307179586) -> Array:
    """Phases along an axis, to each of which as many periods are added as make steps of at most half a period; steps smaller than
    discont stay as they are.

        hg.unwrap(hg.asarray([0.0, 3.0, -3.0]))  # [0, 3, 3.283...]

    Integers become float32."""
    (x,) = _floats(p)
    place, half = axis_of("unwrap", x.ndim, axis), period / 2
    steps = diff(x, axis=place)
    near = (steps + half) % period - half
    near = _core.where(_core.logical_and(near == -half, steps > 0), half, near)
    added = _core.where(abs(steps) < (half if discont is None else discont), 0.0, near - steps)
    return _core.concatenate([_part(x, place, 0, 1), _part(x, place, 1, None) + _core.cumulative_sum(added, place)], place)


def polyval(p: Any, x: Any) -> Array:
    """The polynomial with the coefficients p, a vector or list, the highest power's first, at x, by Horner's rule.

        hg.polyval([1, 0, 2], hg.asarray([2.0, 3.0]))  # [6, 11]: x * x + 2

    Each coefficient is an operation: for more than some hundreds of them write a product of matrices."""
    x = owned(x)
    made = x * 0
    for coefficient in p if isinstance(p, (list, tuple)) else arrays_beside((x, p))[1]:
        made = made * x + coefficient
    return made  # type: ignore[no-any-return]


# ---- covariances -------------------------------------------------------------------------------------------------------------

def _rows(x: Array, rowvar: bool) -> Array:
    if x.ndim > 2:
        raise ValueError(f"cov: an array of {x.ndim} axes; it takes variables by observations")
    if x.ndim < 2:
        return x.reshape((1, -1))
    return x if rowvar else x.T


def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, *, fweights: Any = None,
        aweights: Any = None) -> Array:  # fmt: skip
    """Covariances of the variables m, which are its rows (rowvar=False: its columns), each of n observations, and of further ones y: a
    square matrix, of one variable its variance. Sums of products are divided by n - ddof; ddof is 1, with bias 0. fweights: how often
    each observation counts; aweights: its weight.

        hg.cov(hg.asarray([[0.0, 2.0], [1.0, 5.0]]))  # [[2, 4], [4, 8]]

    ValueError of more than two axes. Integers become float32."""
    parts = [_rows(v, rowvar) for v in (_floats(m) if y is None else _floats(m, y))]
    x = parts[0] if y is None else _core.concatenate(parts)
    weights: Any = None
    total: Any = float(x.shape[1])
    less: Any = float((0 if bias else 1) if ddof is None else ddof)
    if fweights is not None or aweights is not None:
        given = [arrays_beside((x, w))[1].astype(x.dtype) for w in (fweights, aweights) if w is not None]
        weights = given[0] * given[-1] if len(given) == 2 else given[0]
        total = _core.sum(weights)
        less = less * _core.sum(weights * given[-1]) / total if aweights is not None else less
    mean = _core.sum(x if weights is None else x * weights, 1, True) / total
    apart = x - mean
    products = _core.matmul(apart if weights is None else apart * weights, apart, transpose_b=1)
    free = max(total - less, 0.0) if weights is None else _core.maximum(total - less, 0.0)
    return _core.squeeze(products / free)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Array:
    """Pearson's correlations of the variables x, which are its rows (rowvar=False: its columns), and of further ones y: a square
    matrix, within -1 and 1; of one variable 1.

        hg.corrcoef(hg.asarray([[0.0, 2.0, 4.0], [1.0, 5.0, 9.0]]))  # [[1, 1], [1, 1]]"""
    c = cov(x, y, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = _core.sqrt(c.reshape(-1)[:: c.shape[0] + 1])
    return _core.clip(c / deviation[:, None] / deviation, -1.0, 1.0)
