"""Functions of functions: for many examples at once, and with gradients that are found in another way."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any


def _axes_of(what: str, nest: Any, axes: Any) -> list[tuple[Array, int | None]]:
    """The arrays of a nest, each with its axis: `axes` is one for all of them, None, or a nest of such of the same form."""
    if axes is None:
        return [(x, None) for x in _core._arrays_of(nest, False)]
    if isinstance(axes, dict) and isinstance(nest, dict) and axes.keys() == nest.keys():
        return [pair for name in nest for pair in _axes_of(what, nest[name], axes[name])]
    if isinstance(axes, (list, tuple)) and isinstance(nest, (list, tuple)) and len(axes) == len(nest):
        return [pair for part, own in zip(nest, axes, strict=True) for pair in _axes_of(what, part, own)]
    if isinstance(axes, (dict, list, tuple)) or isinstance(axes, (float, str, Array)):
        raise ValueError(f"vmap: {what} is {axes!r}, which is no axis and has not the form of what it is for")
    if not isinstance(nest, (Array, list, tuple, dict)):
        raise TypeError(f"vmap: {what} is {axes} for {type(nest).__name__}, which has no axes; None says that all examples share it")
    return [(x, axes) for x in _core._arrays_of(nest, True)]


def _moved(x: Array, source: int, target: int) -> Array:
    """x with an axis in another place."""
    if not -x.ndim <= source < x.ndim or not -x.ndim <= target < x.ndim:
        raise ValueError(f"vmap: axis {source if source else target} is out of range of an array of shape {x.shape}")
    axes = list(range(x.ndim))
    axes.insert(target % x.ndim, axes.pop(source % x.ndim))
    return x if axes == sorted(axes) else _core.permute(x, axes)


def vmap(function: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """The function for many examples at once: written for one, it takes a batch of them, and has the bits of a loop over it.

    in_axes: along which axis of the arguments' arrays the examples lie: one number for all, None where all examples share an argument, a
    tuple with one for each argument, in which nests stand for nests of arrays. Arguments by name are shared. out_axes: where their axis
    stands in the results, likewise; of a result that is the same for all examples, None gives it once.

    The function runs once, with arrays that have the shape of one example; vmap, grad, jvp and jit go inside and around. ValueError: where
    it reads elements (`float(x)`, `if x > 0`, `x[mask]`), since these differ between examples, and where batches differ in size.

        hg.vmap(lambda row, w: (row * w).sum(), in_axes=(0, None))(hg.ones((5, 3)), hg.arange(3.0))      # of shape (5,)"""

    def mapped(*arguments: Any, **named: Any) -> Any:
        own = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(arguments)
        if len(own) != len(arguments):
            raise ValueError(f"vmap: in_axes has {len(own)} parts for {len(arguments)} arguments")
        pairs = [_axes_of("in_axes", argument, axes) for argument, axes in zip(arguments, own, strict=True)]
        batches = [_moved(x, axis, 0) for part in pairs for x, axis in part if axis is not None]
        sizes = sorted({x.shape[0] for x in batches})
        if len(sizes) != 1:
            raise ValueError("vmap: in_axes names no array, so there are no examples" if not sizes else
                             f"vmap: the batches have {' and '.join(map(str, sizes))} examples; they need as many")
        shared = [x for part in pairs for x, axis in part if axis is None]
        trace, examples, twins = _core._begin_map(batches, (shared, named))
        try:
            rest = iter(twins)  # the function may assign to what it is given
            given = [_core._rebuild(argument, iter([x if axis is None else next(rest) for x, axis in part]))
                     for argument, part in zip(arguments, pairs, strict=True)]
            result = function(*given, **named)
            values = [_core._twin(x) for x in _core._arrays_of(result, True)]
        finally:
            _core._end_trace(trace)
        places = [axis for _, axis in _axes_of("out_axes", result, out_axes)]
        mapped = _core._map(values, examples, batches, sizes[0])
        made = [x[0] if place is None else _moved(x, 0, place) for x, place in zip(mapped, places, strict=True)]
        return _core._rebuild(result, iter(made))

    mapped.__name__ = getattr(function, "__name__", "function")
    mapped.__doc__ = function.__doc__
    return mapped


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, of which gradients keep nothing but what it is given: they compute it once more when they need what is between.

    So a gradient through many calls needs the memory of one, and takes the time of one more. Values have the same bits, and so have
    gradients of calls that follow each other, as in a loop; parts of a gradient by an array that the function also returns, or that others
    use beside it, may be summed in another order.
    It takes and returns anything that has arrays in lists, tuples and dicts; arrays from outside are inputs, too (Chen et al. 2016,
    "Training deep nets with sublinear memory cost").

        step = hg.checkpoint(lambda x: hg.tanh(x * 2))
        hg.grad(lambda x: step(step(x)).sum())(hg.ones(3))"""

    def run(*arguments: Any, **named: Any) -> Any:
        given = _core._arrays_of((arguments, named), False)
        own, named_own = _core._rebuild((arguments, named), iter([_core._twin(x) for x in given]))
        if not _core._is_tracing():
            return function(*own, **named_own)
        before = _core._count_nodes()
        result = function(*own, **named_own)
        return _core._rebuild(result, iter(_core._checkpoint(_core._arrays_of(result, False), before)))

    run.__name__ = getattr(function, "__name__", "function")
    run.__doc__ = function.__doc__
    return run


def custom_gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function with a gradient of one's own: `function` returns (value, pull), and pull(cotangent) gives the gradient by each argument.

    value: an array, or lists, tuples and dicts of them; the cotangent has its form. pull returns a tuple with one for each argument, of its
    form, or that alone where there is one argument; of an argument without arrays of floats, anything. It is called once, with arrays that
    have no elements yet, so it cannot read any; what it returns may be differentiated again. Arguments by name have no gradient. A value
    that is made of an array from outside that a gradient flows through is a ValueError.

        @hg.custom_gradient
        def clipped(x):
            return x, lambda g: hg.clip(g, -1, 1)"""

    def run(*arguments: Any, **named: Any) -> Any:
        inputs = _core._arrays_of(arguments, False)
        own = _core._rebuild(arguments, iter([_core._twin(x) for x in inputs]))
        inputs = [_core._twin(x) for x in inputs]
        pair = function(*own, **named)
        if not isinstance(pair, tuple) or len(pair) != 2 or not callable(pair[1]):
            raise TypeError("custom_gradient: the function returns (value, pull), where pull(cotangent) gives a gradient")
        value, pull = pair
        if not _core._is_tracing():
            return value
        values = [_core._twin(x) for x in _core._arrays_of(value, True)]
        trace, cotangents, twins = _core._begin_map(values, (), True)
        try:
            gradients = pull(_core._rebuild(value, iter(twins)))
            if len(arguments) == 1 and not isinstance(gradients, tuple):
                gradients = (gradients,)
            if not isinstance(gradients, tuple) or len(gradients) != len(arguments):
                raise TypeError(f"custom_gradient: pull returns a tuple of {len(arguments)} gradients, one for each argument")
            by: list[Array | None] = []
            for argument, gradient in zip(arguments, gradients, strict=True):
                by += _gradients_of(_core._arrays_of(argument, False), gradient)
            by = [x if x is None else _core._twin(x) for x in by]
        finally:
            _core._end_trace(trace)
        return _core._rebuild(value, iter(_core._custom_gradient(values, inputs, cotangents, by)))

    run.__name__ = getattr(function, "__name__", "function")
    run.__doc__ = function.__doc__
    return run


def _gradients_of(inputs: list[Array], gradient: Any) -> list[Array | None]:
    if not any(x.dtype.kind == "float" for x in inputs):
        return [None] * len(inputs)
    made = _core._arrays_of(gradient, True)
    if [x.shape for x in made] != [x.shape for x in inputs]:
        raise ValueError(f"custom_gradient: the gradients that pull returns have the shapes {[x.shape for x in made]}, and the arrays of "
                         f"that argument {[x.shape for x in inputs]}")
    return list(made)
