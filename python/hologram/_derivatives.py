"""Derivatives beyond the gradient of one number: products with Jacobians from either side, and Jacobians themselves.

There is one table of gradients. A product from the right, J v, is the transpose of the product from the left: what u J is, is linear in u,
and its gradient by u, with the cotangent v, is J v."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import integers_of
from hologram._gradients import by_position, grad, recorded, with_aux
from hologram._transformations import vmap

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Sequence
    from typing import Any, SupportsIndex


def _joined(who: str, arrays: list[Array]) -> Array:
    """All elements as one array, whose gradients are theirs."""
    if not arrays or any(x.dtype.kind != "float" for x in arrays):
        raise TypeError(f"{who} are arrays of floats, or lists, tuples and dicts of them, not "
                        + (", ".join(str(x.dtype) for x in arrays) or "none at all") + "; what is no float can be the aux of has_aux=True")
    return arrays[0] if len(arrays) == 1 else _core.concatenate([x.reshape(-1) for x in arrays])


def _parts(joined: Array, like: list[Array]) -> list[Array]:
    """What was joined, apart."""
    if len(like) == 1:
        return [joined]
    parts, at = [], 0
    for x in like:
        parts.append(joined[at : at + x.size].reshape(x.shape).astype(x.dtype))
        at += x.size
    return parts


def _checked(who: str, what: str, given: Any, like: list[Array]) -> list[Array]:
    arrays = _core._arrays_of(given, True)
    if not _core._have_one_form(arrays, like):
        forms = [" ".join(f"{x.dtype}{list(x.shape)}" for x in part) or "none" for part in (arrays, like)]
        raise ValueError(f"{who}: the {what} are {forms[0]}, and should be {forms[1]}, as the values they belong to")
    return arrays


def vjp(function: Callable[..., Any], *arguments: Any, has_aux: bool = False) -> Any:
    """(value, pull) of function(*arguments), by which pull(cotangents) gives cotangents J: the vector-Jacobian product.

    The function takes and returns arrays, or lists, tuples and dicts of them; what it returns is of floats. pull takes a nest of the form
    of the value and gives a tuple with a nest of the form of each argument. It can be called any number of times.
    has_aux: the function returns (value, aux), and vjp (value, pull, aux). TypeError: of what has no gradient; ValueError: of cotangents
    of another form.

        value, pull = hg.vjp(lambda x: x * x, hg.arange(3.0))
        (by_x,) = pull(hg.ones(3))                                 # 0, 2, 4"""
    numbers = range(len(arguments))

    def whole(*own: Any) -> Any:
        value, aux = with_aux(function(*own)) if has_aux else (function(*own), None)
        return value, aux, _joined("what vjp differentiates", _core._arrays_of(value, True))

    (value, aux, joined), leaves = recorded(whole, list(arguments), {}, numbers, None)
    outputs = _core._arrays_of(value, True)

    def pull(cotangents: Any) -> Any:
        given = _joined("cotangents", _checked("vjp", "cotangents", cotangents, outputs))
        rest = iter(_core._gradients(joined, given, leaves)[1:])
        return tuple(_core._rebuild(argument, rest) for argument in arguments)

    return (value, pull, aux) if has_aux else (value, pull)


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, has_aux: bool = False) -> Any:
    """(value, J tangents) of function(*primals): the Jacobian-vector product, the derivative in the direction of the tangents.

    primals and tangents are tuples of arguments of one form: arrays of floats, or lists, tuples and dicts of them. The second result has
    the form of the value. has_aux: the function returns (value, aux), and jvp (value, product, aux).

        value, slope = hg.jvp(hg.sin, (hg.zeros(3),), (hg.ones(3),))"""
    if not isinstance(primals, (list, tuple)) or not isinstance(tangents, (list, tuple)):
        raise TypeError("jvp: primals and tangents are tuples of arguments: jvp(f, (x,), (v,))")
    direction = _joined("tangents", _checked("jvp", "tangents", list(tangents), _core._arrays_of(list(primals), True)))

    def whole(*own: Any) -> Any:
        by = tuple(_core._twin(x) for x in _core._arrays_of(own, True))
        value, aux = with_aux(function(*own)) if has_aux else (function(*own), None)
        joined = _joined("what jvp differentiates", _core._arrays_of(value, True))
        trace, (u,), _ = _core._begin_trace([joined], ())  # a leaf of its form: what it is worth does not matter
        try:
            product = _joined("the arguments of jvp", list(_core._gradients(joined, u, by)[1:]))
        finally:
            _core._end_trace(trace)
        return value, aux, u, product

    (value, aux, u, product), _ = recorded(whole, list(primals), {}, range(len(primals)), None)
    outputs = _core._arrays_of((value, aux), False)
    _, slope, *rest = _core._gradients(product, direction, (u,), outputs)
    count = len(_core._arrays_of(value, False))
    shaped = _core._rebuild(value, iter(_parts(slope, rest[:count])))
    value, aux = _core._rebuild((value, aux), iter(rest))
    return (value, shaped, aux) if has_aux else (value, shaped)


def jacobian(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0, *,
             has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives the Jacobian of `function`, which returns arrays of floats: all derivatives of their elements.

    By an array of shape s, of a value of shape t, it has shape t + s. argnums, and arguments that are nests of arrays: as of
    value_and_grad. Of a nest (a list, tuple or dict) it is a nest of that form, which has what belongs to an array in its place.
    has_aux: the function returns (value, aux), and the new one (jacobian, aux).

        hg.jacobian(lambda x: x * x)(hg.arange(3.0))               # 3 x 3, with 2 x on the diagonal"""
    numbers = integers_of(argnums)

    def rows(*arguments: Any, **named: Any) -> Any:
        places = by_position(argnums, numbers, len(arguments))

        def chosen(*by: Any) -> Any:
            own = list(arguments)
            for place, part in zip(places, by, strict=True):
                own[place] = part
            return function(*own, **named)

        value, pull, *aux = vjp(chosen, *(arguments[place] for place in places), has_aux=has_aux)
        outputs, by = (_core._arrays_of(nest, True) for nest in (value, [arguments[place] for place in places]))
        joined = _joined("", outputs)
        unit = _core.eye(joined.size, dtype=joined.dtype).reshape((joined.size, *joined.shape))
        pulled = vmap(lambda row: pull(_core._rebuild(value, iter(_parts(row, outputs)))))(unit)
        products = _core._arrays_of(pulled, True)
        slopes, at = [], 0
        for y in outputs:
            rest = iter([part[at : at + y.size].reshape(y.shape + x.shape) for part, x in zip(products, by, strict=True)])
            shaped = tuple(_core._rebuild(arguments[place], rest) for place in places)
            slopes.append(shaped if isinstance(argnums, (tuple, list)) else shaped[0])
            at += y.size
        result = _core._rebuild(value, iter(slopes))
        return (result, *aux) if has_aux else result

    rows.__name__ = getattr(function, "__name__", "function")
    rows.__doc__ = function.__doc__
    return rows


def hessian(function: Callable[..., Any], argnums: SupportsIndex | Sequence[SupportsIndex] = 0, *,
            has_aux: bool = False) -> Callable[..., Any]:
    """A function that gives all second derivatives of `function`, which returns an array of one element: by an array of shape s, s + s.

    argnums, and has_aux: as of jacobian. By a nest of arrays it is a nest of nests: h["w"]["b"] has the derivatives by w and then by b.

        hg.hessian(lambda x: (x * x * x).sum())(hg.arange(3.0))    # 3 x 3, with 6 x on the diagonal"""
    return jacobian(grad(function, argnums, has_aux=has_aux), argnums, has_aux=has_aux)
