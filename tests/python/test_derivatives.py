"""vjp, jvp, jacobian and hessian against PyTorch's; has_aux and check of grad."""

import numpy as np
import pytest

import hologram as hg

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")

X = np.random.default_rng(1).standard_normal((2, 3))
V = np.random.default_rng(2).standard_normal((2, 3))
KEY = hg.random.key(5)
NOISE = hg.random.normal(KEY, (2, 3), dtype="float64").numpy()


def steps(m, x):
    y = x
    for i in range(64):
        y = m.sin(y) + 0.1 * i * x
    return y


def assigned(m, x):
    y = x * 2
    y[0] = m.exp(y[1] * 1)  # torch keeps no view that is assigned over
    y[:, 1] = y[:, 1] * 2 * (y[:, 0] * 1)
    y[1, ::2] = 3.0
    return y * x


def masked(m, x):
    y = m.where(x > 0, m.sqrt(m.where(x > 0, x, 1 + 0 * x)), x * x)
    y[x < -0.5] = 0.0
    return y


def noisy(m, x):
    noise = torch.tensor(NOISE) if m is torch else hg.random.normal(KEY, (2, 3), dtype="float64")
    return m.tanh(x + noise) * noise


FUNCTIONS = [steps, assigned, masked, noisy]


def ours(x):
    return hg.asarray(np.array(x))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("is_eager", [False, True])
def test_products_as_torch(function, is_eager):
    expected, theirs = torch.func.vjp(lambda x: function(torch, x), torch.tensor(X))
    # torch's jvp knows no assignment to what it is not by: the Jacobian says the same
    slopes = torch.autograd.functional.jacobian(lambda x: function(torch, x), torch.tensor(X))
    with hg.eager(is_eager):
        value, pull = hg.vjp(lambda x: function(hg, x), ours(X))
        (gradient,) = pull(ours(V))
        same, slope = hg.jvp(lambda x: function(hg, x), (ours(X),), (ours(V),))
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12)
    assert same.numpy().tobytes() == value.numpy().tobytes()
    np.testing.assert_allclose(gradient.numpy(), theirs(torch.tensor(V))[0], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(slope.numpy(), torch.einsum("abcd,cd->ab", slopes, torch.tensor(V)), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_jacobians_as_torch(function):
    expected = torch.autograd.functional.jacobian(lambda x: function(torch, x), torch.tensor(X))
    np.testing.assert_allclose(hg.jacobian(lambda x: function(hg, x))(ours(X)).numpy(), expected, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("function", [assigned, masked, noisy])
def test_hessians_as_torch(function):
    expected = torch.autograd.functional.hessian(lambda x: function(torch, x).pow(3).sum(), torch.tensor(X))
    made = hg.hessian(lambda x: (function(hg, x) ** 3).sum())(ours(X))
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-10, atol=1e-11)


def test_nests_and_types():
    def function(x, parts):
        return {"a": (x * parts["k"]).astype("float32"), "b": [parts["k"][0]]}

    value, pull = hg.vjp(function, ours(X[0]), {"k": ours(V[0])})
    ones = {"a": hg.ones(3), "b": [hg.zeros((), dtype="float64")]}
    by_x, by_parts = pull(ones)
    assert value["a"].dtype == "float32" and by_x.tolist() == V[0].tolist() and by_parts["k"].tolist() == X[0].tolist()
    value, slope = hg.jvp(function, (ours(X[0]), {"k": ours(V[0])}), (ours(V[0]), {"k": ours(X[0])}))
    assert slope["a"].tolist() == (X[0] ** 2 + V[0] ** 2).astype("f4").tolist() and slope["b"][0].tolist() == X[0, 0]
    assert value["b"][0].tolist() == V[0, 0]
    by_both = hg.jacobian(lambda x, parts: x * parts["k"], argnums=(0, 1))(ours(X[0]), {"k": ours(V[0])})
    assert by_both[0].tolist() == np.diag(V[0]).tolist() and by_both[1]["k"].tolist() == np.diag(X[0]).tolist()


def test_jacobians_of_nests():
    """Of each array by each array what it is of functions of one array; PyTorch's are nests of tuples alone."""
    def function(x, parts):
        return {"a": (x * parts["k"]).astype("float32"), "b": [parts["k"] @ x, hg.outer(x, x)]}

    x, k = X[0], V[0]
    made = hg.jacobian(function, argnums=(0, 1))(ours(x), {"k": ours(k)})
    both = torch.autograd.functional.jacobian(lambda x, k: (x * k, k @ x, torch.outer(x, x)), (torch.tensor(x), torch.tensor(k)))
    for ((by_x, by_parts), kind), expected in zip([(made["a"], "float32"), *((part, "float64") for part in made["b"])], both, strict=True):
        for slope, other in zip((by_x, by_parts["k"]), expected, strict=True):
            assert slope.dtype == "float64" and slope.shape == tuple(other.shape)
            np.testing.assert_allclose(slope.numpy(), other, rtol=1e-6 if kind == "float32" else 1e-12)
    assert list(made) == ["a", "b"] and type(made["b"]) is list
    again = hg.jit(hg.jacobian(function, argnums=(0, 1)))(ours(x), {"k": ours(k)})
    assert [y.tolist() for y in hg._core._arrays_of(again, True)] == [y.tolist() for y in hg._core._arrays_of(made, True)]


def test_hessians_of_nests():
    def loss(parameters, x):
        return hg.tanh(x @ parameters["w"] + parameters["b"]).sum()

    w, b = V[0], np.array(0.25)
    made = hg.hessian(loss)({"w": ours(w), "b": ours(b)}, ours(X))
    expected = torch.autograd.functional.hessian(lambda w, b: torch.tanh(torch.tensor(X) @ w + b).sum(), (torch.tensor(w), torch.tensor(b)))
    for i, first in enumerate("wb"):
        for j, second in enumerate("wb"):
            np.testing.assert_allclose(made[first][second].numpy(), expected[i][j], rtol=1e-11, atol=1e-14)


def test_products_are_differentiated_again():
    def second(x):
        return hg.jvp(lambda z: hg.jvp(hg.sin, (z,), (hg.ones(3, dtype="float64"),))[1] * x, (x,), (ours(V[0]),))[1]

    np.testing.assert_allclose(second(ours(X[0])).numpy(), -np.sin(X[0]) * V[0] * X[0], rtol=1e-12)
    third = hg.grad(lambda x: second(x).sum())(ours(X[0]))
    np.testing.assert_allclose(third.numpy(), (-np.cos(X[0]) * X[0] - np.sin(X[0])) * V[0], rtol=1e-12)


def test_a_pull_that_is_called_twice_and_inside_jit():
    value, pull = hg.vjp(lambda x: x * x, ours(X))
    assert pull(ours(V))[0].tolist() == (2 * X * V).tolist() == pull(ours(V))[0].tolist()
    made = hg.jit(lambda x, v: hg.vjp(lambda x: x * x, x)[1](v)[0])(ours(X), ours(V))
    assert made.tolist() == (2 * X * V).tolist()


def test_aux():
    def function(x):
        y = hg.exp(x)
        x[0] = 0.0  # its own
        return y.sum(), {"y": y, "x": x, "n": 3, "names": ("a", None)}

    x = ours(X[0])
    (value, aux), gradient = hg.value_and_grad(function, has_aux=True)(x)
    assert aux["n"] == 3 and aux["names"] == ("a", None) and aux["x"].tolist() == [0, *X[0, 1:]] and x.tolist() == X[0].tolist()
    float(value)
    assert not aux["y"].is_pending and not gradient.is_pending  # one computation
    gradient, aux = hg.grad(function, has_aux=True)(x)
    assert aux["y"].tolist() == gradient.tolist()
    value, pull, aux = hg.vjp(lambda x: (x * x, x.sum()), x, has_aux=True)
    assert float(aux) == float(x.sum())
    value, slope, aux = hg.jvp(lambda x: (x * x, [x.sum(), 2]), (x,), (x,), has_aux=True)
    assert float(aux[0]) == float(x.sum()) and aux[1] == 2 and slope.tolist() == (2 * X[0] * X[0]).tolist()
    made, aux = hg.jacobian(lambda x: (x * x, x.sum()), has_aux=True)(x)
    assert float(aux) == float(x.sum()) and made.shape == (3, 3)


def test_what_is_refused():
    x = ours(X[0])
    for call, kind, sentence in [
        (lambda: hg.vjp(lambda x: x > 0, x), TypeError, "arrays of floats.*not bool"),
        (lambda: hg.vjp(lambda x: x, x)[1](hg.ones(3)), ValueError, r"float32\[3\], and should be float64\[3\]"),
        (lambda: hg.jvp(lambda x: x, (x,), (x, x)), ValueError, "tangents are"),
        (lambda: hg.jvp(lambda x: x, x, x), TypeError, r"jvp\(f, \(x,\), \(v,\)\)"),
        (lambda: hg.grad(lambda x: (x.sum(), 1))(x), TypeError, "has_aux=True"),
        (lambda: hg.grad(lambda x: x.sum(), has_aux=True)(x), TypeError, "returns .value, aux., not Array"),
        (lambda: hg.jacobian(lambda x: [x, x > 0])(x), TypeError, "float64, bool"),
        (lambda: hg.jacobian(lambda x: x, argnums=1)(x), ValueError, "argnums is 1"),
    ]:
        with pytest.raises(kind, match=sentence):
            call()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_check_accepts(function):
    x = ours(X.astype("f4"))
    checked = hg.grad(lambda x: (function(hg, x) * 0.5).sum(), check=True)(x)
    assert checked.dtype == "float32"
    assert checked.tolist() == hg.grad(lambda x: (function(hg, x) * 0.5).sum())(x).tolist()


def test_check_raises_with_what_differs():
    def function(parameters, x):
        return (parameters["w"] * hg.stop_gradient(parameters["w"]) * x + parameters["b"]).sum()

    parameters = {"b": hg.ones(3), "w": hg.ones(3)}
    with pytest.raises(ValueError, match=r"argument 0, array 1 of it, of shape \(3,\).*the gradient says .*, and differences"):
        hg.grad(function, check=True)(parameters, hg.ones(3))
    kinked = hg.grad(lambda x: hg.relu(x).sum(), check=True)(hg.asarray([0.5, -0.5]))
    assert kinked.tolist() == [1, 0]


def test_shapes_without_elements():
    empty = hg.zeros((0, 2))
    assert hg.jacobian(lambda x: x * 2)(empty).shape == (0, 2, 0, 2)
    assert hg.jvp(lambda x: x * 2, (empty,), (empty,))[1].shape == (0, 2)
