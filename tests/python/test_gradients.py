"""Gradients of Python functions against central differences in f64."""

from collections import namedtuple

import numpy as np
import pytest

import hologram as hg

FUNCTIONS = {
    "square": lambda x: (x * x).sum(),
    "softmax": lambda x: (hg.softmax(x) * x).sum(),
    "matmul": lambda x: hg.tanh(x @ x.T).mean(),
    "norm": lambda x: hg.layer_norm(x)[0].sum() * 0.1 + hg.norm(x),
    "views": lambda x: (x[1:, ::-1] * x[:-1]).sum(),
    "where": lambda x: hg.where(x > 0, hg.exp(x), x).sum(),
    "loss": lambda x: hg.mse(hg.gelu(x), hg.sigmoid(x)),
    "transposed": lambda x: (x.T.reshape(-1) * hg.arange(12.0, dtype="float64")).sum(),
    "indexed": lambda x: (x[hg.asarray([0, 2, 0])] ** 2).sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("is_eager", [False, True])
def test_against_differences(name, is_eager):
    function = FUNCTIONS[name]
    data = np.random.default_rng(4).standard_normal((3, 4))
    with hg.eager(is_eager):
        value, gradient = hg.value_and_grad(function)(hg.asarray(data))
    assert gradient.shape == data.shape and gradient.dtype == "float64"
    assert float(value) == float(function(hg.asarray(data)))
    expected = np.zeros_like(data)
    for i in np.ndindex(*data.shape):
        step = np.zeros_like(data)
        step[i] = 1e-6
        expected[i] = (float(function(hg.asarray(data + step))) - float(function(hg.asarray(data - step)))) / 2e-6
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-5, atol=1e-7)


def test_nests_of_parameters():
    def loss(parameters, x):
        hidden = hg.tanh(x @ parameters["w"][0] + parameters["b"])
        return (hidden @ parameters["w"][1]).sum()

    parameters = {"w": [hg.ones((3, 2)) * 0.5, hg.ones((2, 1))], "b": hg.zeros(2)}
    x = hg.ones((4, 3))
    gradients = hg.grad(loss)(parameters, x)
    assert gradients["w"][0].shape == (3, 2) and gradients["w"][1].shape == (2, 1) and gradients["b"].shape == (2,)
    both = hg.grad(loss, argnums=(0, 1))(parameters, x)
    assert both[1].shape == (4, 3)
    assert both[0]["b"].tolist() == gradients["b"].tolist()


def test_reading_inside_the_function():
    def loss(x):
        y = hg.exp(x)
        assert float(y.sum()) > 0
        return (y * y).sum()

    x = hg.asarray([0.0, 1.0])
    np.testing.assert_allclose(hg.grad(loss)(x).numpy(), 2 * np.exp([0, 2]), rtol=1e-6)


def test_second_derivatives():
    x = hg.asarray(np.array([0.3, 1.2]))
    second = hg.grad(lambda x: hg.grad(lambda x: hg.sin(x).sum())(x).sum())
    np.testing.assert_allclose(second(x).numpy(), -np.sin([0.3, 1.2]), rtol=1e-12)


def test_what_the_inner_function_takes_from_outside():
    x = hg.asarray(np.array([2.0, 3.0]))
    outer = hg.value_and_grad(lambda x: hg.grad(lambda z: (z * x * z).sum())(x).sum())
    value, gradient = outer(x)
    assert float(value) == 26.0 and gradient.tolist() == [8.0, 12.0]  # 2 z x at z = x, and its derivative, 4 x


def test_value_and_gradients_are_computed_together():
    x, w = hg.ones((4, 3)), hg.ones(3)
    value, (gx, gw) = hg.value_and_grad(lambda x, w: (x @ w).sum(), argnums=(0, 1))(x, w)
    float(value)
    assert not gx.is_pending and not gw.is_pending


def test_what_has_no_gradient():
    with pytest.raises(ValueError, match="3 elements"):
        hg.grad(lambda x: x * 2)(hg.ones(3))
    with pytest.raises(TypeError):
        hg.grad(lambda x: 2.0)(hg.ones(3))
    with pytest.raises(TypeError):
        hg.grad(lambda x: x)(3.0)
    x = hg.ones(3)
    assert hg.grad(lambda x: hg.ones(()) * 2.0)(x).tolist() == [0, 0, 0]
    assert x.tolist() == [1, 1, 1]


def test_training_converges_and_keeps_no_memory():
    rng = np.random.default_rng(0)
    x = hg.asarray(rng.standard_normal((64, 3)).astype("f4"))
    true = hg.asarray(np.array([1.0, -2.0, 0.5], "f4"))
    y = x @ true
    w = hg.zeros(3)
    step = hg.value_and_grad(lambda w: hg.mse(x @ w, y))
    for _ in range(200):
        loss, gradient = step(w)
        w = w - gradient * 0.1
    assert float(loss) < 1e-6
    np.testing.assert_allclose(w.numpy(), true.numpy(), atol=1e-3)


def test_nests():
    pair = namedtuple("pair", "first second")

    class Parts(list):
        pass

    tree = {"a": (hg.ones(2), [hg.ones(3)]), "b": pair(hg.ones(4), {}), "c": Parts([hg.ones(5)]), "d": ()}
    made = hg.grad(lambda t: sum((part * part).sum() for part in (t["a"][0], t["a"][1][0], t["b"].first, t["c"][0])), 0)(
        {**tree, "b": pair(tree["b"].first, hg.ones(1))})
    assert list(made) == ["a", "b", "c", "d"] and isinstance(made["b"], pair) and isinstance(made["c"], Parts) and made["d"] == ()
    assert [x.tolist() for x in (*made["a"][1], made["b"].first, made["b"].second, made["c"][0])] == [[2] * 3, [2] * 4, [0], [2] * 5]
    with pytest.raises(TypeError, match="not str"):
        hg.grad(lambda t: t["x"].sum())({"x": hg.ones(2), "name": "no"})
    deep = []
    deep.append(deep)
    with pytest.raises(RecursionError):
        hg.grad(lambda t: hg.ones(()))(deep)
    assert hg.jit(lambda x, name: {"y": x + 1, name: None})(hg.ones(1), "text").keys() == {"y", "text"}
