"""Whatever gives an array keeps the gradient, or says that it does not: copies, arrays made of parts, the names of the array API,
numbers that are given as arrays, and the ways from an array to memory of others."""

import numpy as np
import pytest

import hologram as hg
import hologram.array_api as xp

CALLS = {
    "concat": lambda x: xp.concat([x, x * 2], axis=1),
    "stack": lambda x: xp.stack([x, x * 2], axis=1),
    "reshape": lambda x: xp.reshape(x, (4, 3), copy=True),
    "expand_dims": lambda x: xp.expand_dims(x, axis=1),
    "repeat": lambda x: xp.repeat(x, 2, axis=1),
    "repeat by numbers": lambda x: xp.repeat(x, hg.asarray([1, 0, 2]), axis=0),
    "take": lambda x: xp.take(x, hg.asarray([2, 0, -1]), axis=1),
    "take_along_axis": lambda x: xp.take_along_axis(x, hg.asarray([[0, 1, 2, 1]]), axis=0),
    "moveaxis": lambda x: xp.moveaxis(x, 0, 1),
    "unstack": lambda x: xp.unstack(x, axis=1)[2],
    "roll": lambda x: xp.roll(x, 1, axis=1) + xp.roll(x, 5),
    "tile": lambda x: xp.tile(x, (2, 3)),
    "diff": lambda x: xp.diff(x, axis=1, n=2),
    "diff with ends": lambda x: xp.diff(x, prepend=x[:, :1], append=x[:, 1:2]),
    "matmul": lambda x: xp.matmul(x, xp.matrix_transpose(x)),
    "vecdot": lambda x: xp.vecdot(x, x * 2),
    "tensordot": lambda x: xp.tensordot(x, x, axes=((1,), (1,))),
    "sort": lambda x: xp.sort(x, axis=1) + xp.sort(x, axis=0, descending=True),
    "cumulative_sum": lambda x: xp.cumulative_sum(x, axis=1, include_initial=True),
    "cumulative_prod": lambda x: xp.cumulative_prod(x, axis=1),
    "broadcast": lambda x: xp.broadcast_arrays(x, x[:1])[1] + xp.broadcast_to(x, (2, 3, 4)),
    "meshgrid": lambda x: xp.meshgrid(x[0], x[1])[0],
    "permute_dims": lambda x: xp.permute_dims(x, (1, 0)),
    "flip": lambda x: xp.flip(x),
    "astype": lambda x: xp.astype(x, xp.float64) * xp.astype(x, xp.float64, copy=False),
    "asarray": lambda x: xp.asarray(x) * xp.asarray(x, copy=True),
    "full": lambda x: xp.full((2, 2), x[0, 0]),
    "full_like": lambda x: xp.full_like(x, x[1, 1]),
    "linspace": lambda x: xp.linspace(x[0, 0], x[1, 1], 5, dtype=xp.float64),
    "linspace without its end": lambda x: xp.linspace(x[0, 0], 2.0, 5, dtype=xp.float64, endpoint=False),
    "clip by numbers": lambda x: xp.clip(x, -0.5, 0.5),
    "clip by arrays": lambda x: xp.clip(x, x[:1] - 0.1, x[1:2] + 2),
    "unique_values": lambda x: xp.unique_values(x),
    "places": lambda x: xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1),
    "array": lambda x: hg.array(x) * x,
    "array of elements": lambda x: hg.asarray([[x[0, 0], 1.0], [x[1, 1] * x[0, 1], x[2, 3]]]),
    "array of rows": lambda x: hg.asarray([x[0], x[1] * 2, x[0]]),
    "array of many": lambda x: hg.asarray([x[i % 3, i % 4] * i for i in range(70)]),
    "array by iteration": lambda x: hg.asarray([row[::-1] for row in x]),
    "positive": lambda x: +x * x,
    "mask": lambda x: x[x > 0],
    "mask of rows": lambda x: x[x[:, 0] > 0],
    "rows by number": lambda x: x[hg.asarray([0, -1, 0])],
    "elements by number": lambda x: x[hg.asarray([0, -1, 0]), hg.asarray([1, 1, 3])],
    "transposed": lambda x: x.T + x.mT,
}


def weighed(y):
    return (y * hg.sin(hg.arange(float(y.size), dtype="float64") + 1).reshape(y.shape)).sum()


@pytest.mark.parametrize("name", CALLS)
def test_against_differences(name):
    data = np.random.default_rng(3).standard_normal((3, 4))
    right = np.zeros_like(data)

    def f(x):
        return weighed(CALLS[name](x))

    for i in np.ndindex(*data.shape):
        step = np.zeros_like(data)
        step[i] = 1e-6
        right[i] = (float(f(hg.asarray(data + step))) - float(f(hg.asarray(data - step)))) / 2e-6
    np.testing.assert_allclose(hg.grad(f)(hg.asarray(data)).numpy(), right, rtol=1e-5, atol=1e-6)


NUMBERS = {
    "leaky_relu": lambda x, a: hg.leaky_relu(x, a),
    "elu": lambda x, a: hg.elu(x, alpha=a),
    "clip": lambda x, a: hg.clip(x, a, 3.0),
    "uniform": lambda x, a: x * hg.random.uniform(hg.random.key(0), (2,), a, 2.0),
    "normal": lambda x, a: x * hg.random.normal(hg.random.key(0), (2,), a),
    "layer_norm": lambda x, a: hg.layer_norm(x, eps=a)[0],
    "arange": lambda x, a: hg.arange(0.0, 2.0, a)[:2] * x,
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_arrays(name):
    """No gradient flows to a number: it is refused by name, unless the array is a constant."""
    call, x = NUMBERS[name], hg.asarray([0.5, -1.5])
    with pytest.raises(TypeError, match="no gradient flows to"):
        hg.grad(lambda x: call(x, x[0]).sum())(x)
    constant = hg.grad(lambda x: call(x, hg.asarray(0.5)).sum())(x)
    assert constant.tolist() == hg.grad(lambda x: call(x, 0.5).sum())(x).tolist()
    assert hg.grad(lambda x: call(x, hg.stop_gradient(x[0])).sum())(x).tolist() == constant.tolist()


def in_a_gradient(look):
    """What `look` gives for an array that depends on what the gradient is by, and the gradient."""
    seen = []

    def f(x):
        y = x * x
        seen.append(look(y))
        return y.sum()

    gradient = hg.grad(f)(hg.asarray([1.0, 2.0])).tolist()
    return seen[0], gradient


DOORS = {
    "numpy": lambda y: y.numpy(),
    "asarray": np.asarray,
    "array": np.array,
    "memoryview": memoryview,
    "bytes": bytes,
    "__array__": lambda y: y.__array__(),
    "__array_interface__": lambda y: y.__array_interface__,
    "__dlpack__": lambda y: y.__dlpack__(),
    "from_dlpack": np.from_dlpack,
    "view": lambda y: np.asarray(y[1:]),
    "copy": lambda y: np.asarray(hg.array(y)),
    "nested": lambda y: hg.grad(lambda z: (np.asarray(y).sum() * z).sum())(hg.ones(2)),
}


@pytest.mark.parametrize("name", DOORS)
def test_memory_of_others(name):
    with pytest.raises(TypeError, match="stop_gradient"):
        in_a_gradient(DOORS[name])
    DOORS[name](hg.asarray([1.0, 2.0]) * 2)  # outside of a gradient all of them do


def test_what_drops_a_gradient():
    for look, right in ((lambda y: float(y[1]), 4.0), (lambda y: y[0].item(), 1.0), (lambda y: y.tolist(), [1.0, 4.0]),
                        (lambda y: bool(y[0] > 0), True), (repr, "Array([1., 4.], dtype=float32)"),
                        (lambda y: np.asarray(y > 2).tolist(), [False, True]),
                        (lambda y: np.asarray(hg.stop_gradient(y)).tolist(), [1.0, 4.0]),
                        (lambda y: np.asarray(hg.ones(2) * 3).tolist(), [3.0, 3.0])):  # fmt: skip
        assert in_a_gradient(look) == (right, [2.0, 4.0])


def test_stop_gradient():
    x = hg.asarray([1.0, 2.0])
    assert hg.grad(lambda x: (x * hg.stop_gradient(x)).sum())(x).tolist() == [1.0, 2.0]
    assert hg.grad(lambda x: hg.stop_gradient(x * x).sum())(x).tolist() == [0.0, 0.0]
    assert hg.grad(lambda x: hg.grad(lambda y: (y * y * hg.stop_gradient(y)).sum())(x).sum())(x).tolist() == [2.0, 4.0]
    for kind in ("int8", "bool", "float16", "float64"):
        assert hg.stop_gradient(x.astype(kind)).tolist() == x.astype(kind).tolist()


def test_types_of_arrays_of_arrays():
    third = hg.asarray(np.array([1 / 3]))
    for look in (lambda f: f(), lambda f: [f(), hg.grad(lambda x: (x * f()).sum())(third)][0]):
        assert look(lambda: hg.asarray([third[0], third[0] * 2])).dtype == "float64"
        assert float(look(lambda: hg.full(2, third[0]))[1]) == 1 / 3
    with pytest.raises(TypeError, match="astype"):
        hg.full(2, third[0], dtype="int32")


WRONG = {
    "rows": lambda x: x[hg.asarray([7, 0])].sum(),
    "one row": lambda x: x[hg.asarray([7])].sum(),
    "take": lambda x: hg.take(x, hg.asarray([7]), 0).sum(),
    "take_along": lambda x: hg.take_along(x, hg.asarray([[7, 0, 0, 0]]), 0).sum(),
    "embedding": lambda x: hg.embedding(x, hg.asarray([7])).sum(),
    "nll": lambda x: hg.nll(x, hg.asarray([0, 1, 7])),
    "cross_entropy": lambda x: hg.cross_entropy(x, hg.asarray([0, 1, 7])),
    "scatter": lambda x: hg.scatter(x, hg.asarray([[7, 1, 1, 1]]), x[:1], 0).sum(),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_index_faults_in_a_gradient(name):
    """Also where nobody reads the value."""
    f, x = WRONG[name], hg.ones((3, 4))
    second = hg.grad(lambda x: hg.grad(lambda y: f(y * y))(x).sum())
    for call in (f, hg.grad(f), lambda x: hg.value_and_grad(f)(x)[1], second):
        with pytest.raises(hg.Fault):
            call(x).compute()
