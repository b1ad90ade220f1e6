"""Rows of what combines elements: reductions, products, and elements by their numbers."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from hologram import _core
from hologram._index import _joined
from hologram_torch._compile.rows import Array, Function, cast, filled, row

# ---- reductions ------------------------------------------------------------------------------------------------------


def _axes(x: Array, axes: Any) -> list[int]:
    return list(range(x.ndim)) if axes is None or axes == [] else [axes % max(x.ndim, 1)] if isinstance(axes, int) else [
        axis % max(x.ndim, 1) for axis in axes]  # fmt: skip


def _reduced(operation: Function, x: Array, axes: Any, keep: Any) -> Any:
    """x along axes; a number is a row of one element."""
    if x.ndim == 0:
        return _core.reshape(operation(_core.reshape(x, [1]), [0], int(keep)), [])
    return operation(x, _axes(x, axes), int(keep))


@row("sum")
def _sum(to: Any, x: Array, axes: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    return cast(_reduced(_core.sum, x if dtype is None else cast(x, to), axes, keep), to)


@row("mean")
def _mean(to: Any, x: Array, axes: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    return cast(_reduced(_core.mean, cast(x, to), axes, keep), to)


@row("prod")
def _prod(to: Any, x: Array, axes: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    return cast(_reduced(_core.prod, x if dtype is None else cast(x, to), axes, keep), to)


def _of_numbers(operation: Function) -> Function:
    """The operation, which bools go through as numbers."""
    return lambda x, axes, keep: operation(cast(x, "uint8") if x.dtype.name == "bool" else x, axes, keep)


for _name in ("max", "min"):
    _value, _place = _of_numbers(getattr(_core, _name)), _of_numbers(getattr(_core, f"arg{_name}"))
    row(f"a{_name}")(lambda to, x, axes=(), keep=False, value=_value: cast(_reduced(value, x, list(axes), keep), to))
    row(f"{_name}.default")(lambda to, x, value=_value: cast(_reduced(value, x, None, False), to))
    row(f"{_name}.dim")(lambda to, x, axis, keep=False, value=_value, place=_place: (
        cast(_reduced(value, x, axis, keep), to[0]), _reduced(place, x, axis, keep)))  # fmt: skip
    row(f"arg{_name}")(lambda to, x, axis=None, keep=False, place=_place: _reduced(place, x, axis, keep))
for _name in ("any", "all"):
    row(_name)(lambda to, x, axes=None, keep=False, operation=getattr(_core, _name): _reduced(operation, x, axes, keep))


def _deviations(name: str) -> Function:
    operation = getattr(_core, name)

    def of(to: Any, x: Array, axes: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Any:
        ddof = 1.0 if correction is None else float(correction)
        return operation(x, _axes(x, axes), ddof=ddof, keep=int(keepdim))

    return of


for _name in ("var", "std", "var_mean"):
    row(f"{_name}.correction", of_integers=False)(_deviations(_name))


@row("logsumexp", of_integers=False)
def _logsumexp(to: Any, x: Array, axes: Any, keep: bool = False) -> Any:
    return _reduced(_core.logsumexp, x, axes, keep)


@row("linalg_vector_norm", of_integers=False)
def _vector_norm(to: Any, x: Array, order: float = 2, axes: Any = None, keep: bool = False, *, dtype: Any = None) -> Any:
    norm = lambda x, axes, keep: _core.norm(x, axes, float(order), keep)  # noqa: E731
    return cast(_reduced(norm, cast(x, to), axes, keep), to)


def _rows(operation: Function, x: Array, axis: int) -> Array:
    return operation(x, axis) if x.ndim else _core.reshape(operation(_core.reshape(x, [1]), 0), [])


for _name, _own in (("cumsum", "cumulative_sum"), ("cumprod", "cumulative_prod")):
    row(_name)(lambda to, x, axis, dtype=None, operation=getattr(_core, _own): cast(_rows(operation, cast(x, to), axis), to))
for _name in ("max", "min"):
    row(f"cum{_name}")(
        lambda to, x, axis, value=getattr(_core, f"cumulative_{_name}"), place=getattr(_core, f"cumulative_arg{_name}"): (
            cast(_rows(value, cast(x, "uint8") if to[0] == "bool" else x, axis), to[0]),
            _rows(place, cast(x, "uint8") if to[0] == "bool" else x, axis)))  # fmt: skip


@row("logcumsumexp", of_integers=False)
def _logcumsumexp(to: Any, x: Array, axis: int) -> Array:
    return _rows(_core.cumulative_logsumexp, x, axis)


@row("_softmax")
def _softmax(to: Any, x: Array, axis: int, *rest: Any) -> Array:
    return _rows(_core.softmax, cast(x, to), axis)


@row("_safe_softmax")
def _safe_softmax(to: Any, x: Array, axis: int, dtype: Any = None) -> Array:
    """0 in rows of -inf: where nothing may be attended to."""

    def safe(x: Array, axis: int) -> Array:
        return _core.where(_core.equal(_core.max(x, axis, True), -inf), 0.0, _core.softmax(x, axis))

    return _rows(safe, cast(x, to), axis)


@row("_log_softmax")
def _log_softmax(to: Any, x: Array, axis: int, *rest: Any) -> Array:
    return _rows(_core.log_softmax, cast(x, to), axis)


@row("native_layer_norm")
def _layer_norm(to: Any, x: Array, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Array, ...]:
    axes = list(range(x.ndim - len(shape), x.ndim))
    wide = cast(x, "float32") if x.dtype.name in ("float16", "bfloat16") else x
    mean = _core.mean(wide, axes, True)
    deviation = _core.reciprocal(_core.sqrt(_core.add(_core.mean(_core.square(_core.sub(wide, mean)), axes, True), eps)))
    return _core.layer_norm(x, weight, bias, axes, eps), cast(mean, to[1]), cast(deviation, to[2])


# ---- products --------------------------------------------------------------------------------------------------------


@row("mm", "bmm", "dot", "matmul")
def _product(to: Any, a: Array, b: Array) -> Array:
    return _core.matmul(a, b)


@row("mv")
def _mv(to: Any, a: Array, b: Array) -> Array:
    return _core.matvec(a, b)


def _combined(c: Array, product: Array, beta: Any, alpha: Any) -> Array:
    """beta c + alpha product; a c that counts for nothing may be anything."""
    if c.dtype.kind != "float":
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else _core.mul(product, alpha)
    return product if beta == 0 else _core.add(product, c if beta == 1 else _core.mul(c, beta))


@row("addmm", "baddbmm")
def _addmm(to: Any, c: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _combined(c, _core.matmul(a, b), beta, alpha)


@row("addmv")
def _addmv(to: Any, c: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _combined(c, _core.matvec(a, b), beta, alpha)


@row("addbmm")
def _addbmm(to: Any, c: Array, a: Array, b: Array, *, beta: Any = 1, alpha: Any = 1) -> Array:
    return _combined(c, _core.sum(_core.matmul(a, b), 0), beta, alpha)


@row("linalg_solve_triangular")
def _solve_triangular(to: Any, a: Array, b: Array, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    if left:
        return _core.triangular_solve(a, b, int(upper), 0, int(unitriangular))
    made = _core.triangular_solve(_core.swap(a), _core.swap(b), int(not upper), 0, int(unitriangular))
    return _core.swap(made)


def _window(x: Array, stride: Any, padding: Any, dilation: Any) -> tuple[list[int], list[int], list[int]]:
    """With a number for each axis."""
    axes = x.ndim - 2
    stride, padding, dilation = (list(one) * axes if len(one) == 1 else list(one) for one in (stride, padding, dilation))
    return stride, padding, dilation


@row("convolution")
def _convolution(to: Any, x: Array, w: Array, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool, more: Any,
                 groups: int) -> Array:  # fmt: skip
    stride, low, dilation = _window(x, stride, padding, dilation)
    if not is_transposed:
        return _core.conv(x, w, bias, stride, low, low, dilation, groups)
    more = list(more) * (x.ndim - 2) if len(more) == 1 else more
    sizes = [(size - 1) * step - 2 * pad + wide * (window - 1) + extra + 1
             for size, window, step, pad, wide, extra in zip(x.shape[2:], w.shape[2:], stride, low, dilation, more)]  # fmt: skip
    return _core.conv_transposed(x, w, bias, [x.shape[0], w.shape[1] * groups, *sizes], stride, low, dilation, groups)


@row("convolution_backward")
def _convolution_backward(to: Any, g: Array, x: Array, w: Array, bias: Any, stride: Any, padding: Any, dilation: Any, is_transposed: bool,
                          more: Any, groups: int, wanted: Any) -> list[Any]:  # fmt: skip
    stride, low, dilation = _window(x, stride, padding, dilation)
    by_x = by_w = None
    if wanted[0] and is_transposed:
        by_x = _core.convolution(g, w, stride, low, low, dilation, groups, 0, list(x.shape))
    elif wanted[0]:
        by_x = _core.convolution_back(g, w, list(x.shape), stride, low, dilation, groups)
    if wanted[1]:
        a, b = (g, x) if is_transposed else (x, g)
        by_w = _core.convolution_weights(a, b, list(w.shape), stride, low, dilation, groups)
    return [by_x, by_w, _core.sum(g, [0, *range(2, g.ndim)]) if wanted[2] else None]


# ---- by number -------------------------------------------------------------------------------------------------------


def _from_front(index: Array, x: Array, axis: int) -> Array:
    """Numbers along the axis, of which those below 0, which else count from the end, are out of range."""
    index = cast(index, "int64")
    return _core.where(_core.less(index, 0), x.shape[axis], index)


@row("embedding")
def _embedding(to: Any, weight: Array, index: Array, *rest: Any) -> Array:
    return _core.embedding(weight, index)


@row("index_select")
def _index_select(to: Any, x: Array, axis: int, index: Array) -> Array:
    if x.ndim == 0:
        return _core.reshape(_index_select(to, _core.reshape(x, [1]), 0, index), [])
    return _core.take(x, _from_front(_core.reshape(index, [index.size]), x, axis), axis)


@row("gather")
def _gather(to: Any, x: Array, axis: int, index: Array, *, sparse_grad: bool = False) -> Array:
    if x.ndim == 0 or index.ndim == 0:
        one = [_core.reshape(y, [y.size]) for y in (x, index)]
        return _core.reshape(_gather(to, one[0], 0, one[1]), list(index.shape))
    return _core.take_along(_cut(x, index, axis), _from_front(index, x, axis), axis)


def _cut(x: Array, index: Array, axis: int) -> Array:
    """x without what lies beyond the index along other axes."""
    for i, size in enumerate(index.shape):
        if i != axis % x.ndim and x.shape[i] > size:
            x = _core.slice(x, i, 0, size)
    return x


def _indices(indices: Any) -> tuple[list[int], list[Array]]:
    """The axes that are indexed, and the numbers, which below 0 count from the end."""
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    return axes, [cast(indices[axis], "int64") for axis in axes]


def _flat(x: Array, axes: list[int], own: list[Array]) -> tuple[Array, Array, list[int]]:
    """x with the indexed axes in front as one, the numbers of places in it, and the other axes."""
    others = [axis for axis in range(x.ndim) if axis not in axes]
    place = own[0]
    if len(own) > 1:
        named = [_core.axis_numbers(index, axis, x.shape[axis]) for axis, index in zip(axes, own)]  # what a fault is to say of them
        place = _joined([(index, x.shape[axis], False) for axis, index in zip(axes, named)])
    moved = _core.permute(x, axes + others) if axes + others != list(range(x.ndim)) else x
    return _core.reshape(moved, [prod(x.shape[axis] for axis in axes), *(x.shape[axis] for axis in others)]), place, others


@row("index.Tensor", "_unsafe_index.Tensor")
def _index(to: Any, x: Array, indices: Any) -> Array:
    axes, own = _indices(indices)
    if len(axes) == 1:
        return _core.take(x, own[0], axes[0])
    flat, place, others = _flat(x, axes, own)
    made = _core.take(flat, place, 0)
    if axes != list(range(axes[0], axes[-1] + 1)) or axes[0] == 0:
        return made
    rank, front = place.ndim, axes[0]  # adjacent axes: their place is that of the first
    return _core.permute(made, [*range(rank, rank + front), *range(rank), *range(rank + front, made.ndim)])


@row("index_put", "_unsafe_index_put")
def _index_put(to: Any, x: Array, indices: Any, values: Array, accumulate: bool = False, unsafe: bool = False) -> Array:
    masks = [axis for axis, index in enumerate(indices) if index is not None and index.dtype.name == "bool"]
    if masks:  # one of them, and one value: graph.py
        mask = indices[masks[0]]
        shape = [1] * masks[0] + list(mask.shape)
        return _core.where(_core.reshape(mask, shape + [1] * (x.ndim - len(shape))), _core.reshape(values, []), x)
    axes, own = _indices(indices)
    flat, place, others = _flat(x, axes, own)
    shape = [*place.shape, *(x.shape[axis] for axis in others)]
    front = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    if front and values.ndim > len(shape) - front - place.ndim:  # the values' numbers lie where the axes lay
        sizes = [x.shape[axis] for axis in others]
        values = _core.broadcast(values, [*sizes[:front], *place.shape, *sizes[front:]])
        values = _core.permute(values, [*range(front, front + place.ndim), *range(front), *range(front + place.ndim, values.ndim)])
    values = _core.reshape(_core.broadcast(values, shape), [place.size, *flat.shape[1:]])
    at = _core.reshape(place, [place.size, *[1] * (flat.ndim - 1)])
    made = (_core.scatter_add if accumulate else _core.scatter)(flat, _core.broadcast(at, list(values.shape)), values, 0)
    order = axes + others
    made = _core.reshape(made, [x.shape[axis] for axis in order])
    return made if order == list(range(x.ndim)) else _core.permute(made, [order.index(axis) for axis in range(x.ndim)])


@row("index_copy")
def _index_copy(to: Any, x: Array, axis: int, index: Array, source: Array, accumulate: bool = False) -> Any:
    if x.ndim == 0:
        one = [_core.reshape(y, [1]) for y in (x, index, source)]
        return _core.reshape(_index_copy(to, one[0], 0, one[1], one[2], accumulate), [])
    axis, index = axis % x.ndim, _from_front(_core.reshape(index, [index.size]), x, axis)
    return _index_put(to, x, [None] * axis + [index], source, accumulate)


@row("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(to: Any, x: Array, axis: int, index: Array, value: Any) -> Any:
    if x.ndim == 0:
        return _core.reshape(_index_fill(to, _core.reshape(x, [1]), 0, index, value), [])
    index = _core.reshape(index, [index.size])  # below 0 it counts from the end
    return _index_put(to, x, [None] * (axis % x.ndim) + [index], filled((), value, x.dtype.name))


@row("index_add")
def _index_add(to: Any, x: Array, axis: int, index: Array, source: Array, *, alpha: Any = 1) -> Any:
    return _index_copy(to, x, axis, index, source if alpha == 1 else _core.mul(source, alpha), True)


def _scattered(operation: Function) -> Function:
    def of(to: Any, x: Array, axis: int, index: Array, source: Any) -> Any:
        if x.ndim == 0 or index.ndim == 0:
            one = [_core.reshape(y, [y.size]) if isinstance(y, Array) else y for y in (x, index, source)]
            return _core.reshape(of(to, one[0], 0, one[1], one[2]), list(x.shape))
        values = filled(index.shape, source, x.dtype.name) if not isinstance(source, Array) else source
        for i, size in enumerate(index.shape):
            values = values if values.shape[i] == size else _core.slice(values, i, 0, size)
        part = _cut(x, index, axis)
        made = operation(part, _from_front(index, x, axis), values, axis)
        return made if part is x else _core.update(x, made, [0] * x.ndim, list(made.shape), [1] * x.ndim)

    return of


row("scatter_add")(_scattered(_core.scatter_add))
row("scatter.src", "scatter.value")(_scattered(_core.scatter))


@row("scatter_reduce.two")
def _scatter_reduce(to: Any, x: Array, axis: int, index: Array, source: Array, reduce: str, *, include_self: bool = True) -> Any:
    def reduced(x: Array, index: Array, source: Array, axis: int) -> Array:
        return _core.scatter_reduce(x, index, source, axis, reduce, int(include_self))

    return _scattered(reduced)(to, x, axis, index, source)


@row("index_reduce")
def _index_reduce(to: Any, x: Array, axis: int, index: Array, source: Array, reduce: str, *, include_self: bool = True) -> Array:
    if x.ndim == 0:
        one = [_core.reshape(y, [1]) for y in (x, index, source)]
        return _core.reshape(_index_reduce(to, one[0], 0, one[1], one[2], reduce, include_self=include_self), [])
    return _core.index_reduce(x, _from_front(index, x, axis), source, axis, reduce, int(include_self))


@row("topk")
def _top_k(to: Any, x: Array, k: int, axis: int = -1, largest: bool = True, is_sorted: bool = True) -> tuple[Array, Array]:
    values, places = _core.top_k(x if x.ndim else _core.reshape(x, [1]), k, axis, int(largest))
    return (values, places) if x.ndim else (_core.reshape(values, []), _core.reshape(places, []))


@row("searchsorted.Tensor")
def _searchsorted(to: Any, x: Array, values: Array, *, out_int32: bool = False, right: bool = False, side: str | None = None,
                  sorter: Array | None = None) -> Array:  # fmt: skip
    return _core.searchsorted(x, values, sorter, side or ("right" if right else "left"))


@row("bucketize.Tensor")
def _bucketize(to: Any, x: Array, boundaries: Array, *, out_int32: bool = False, right: bool = False) -> Array:
    return _core.searchsorted(boundaries, x, None, "right" if right else "left")


@row("sort.default")
def _sort(to: Any, x: Array, axis: int = -1, descending: bool = False) -> tuple[Array, Array]:
    if x.ndim == 0:
        return x, filled((), 0, "int64")
    values, places = _core.sort_with_places(x, axis, int(descending))
    return values, places


@row("sort.stable")
def _sort_stable(to: Any, x: Array, *, stable: Any = None, dim: int = -1, descending: bool = False) -> Any:
    return _sort(to, x, dim, descending)


@row("tril")
def _tril(to: Any, x: Array, k: int = 0) -> Array:
    return _core.tril(x, k)


@row("triu")
def _triu(to: Any, x: Array, k: int = 0) -> Array:
    return _core.triu(x, k)
