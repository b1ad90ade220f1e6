"""hg.checkpoint and hg.custom_gradient: equal bits, less memory, and gradients that the user says."""

import numpy as np
import pytest

import hologram as hg

RNG = np.random.default_rng(11)
W = RNG.standard_normal((16, 16)) * 0.3
KEY = hg.random.key(1)


def step(x, w):
    y = hg.tanh(x @ w)
    noise = hg.random.normal(KEY, y.shape, dtype="float64")
    y[0] = y[1] * 0.5 + noise[0]
    y[y > 0.9] = 0.5
    return hg.where(y > 0, y * x, y + hg.softmax(x))


def loop(one, x, w, count=64):
    for _ in range(count):
        x = one(x, w)
    return (x * x).sum()


def bits(*arrays):
    return [x.numpy().tobytes() for x in arrays]


@pytest.mark.parametrize("is_eager", [False, True])
def test_equal_bits_over_a_loop(is_eager):
    x, w = hg.asarray(RNG.standard_normal((4, 16))), hg.asarray(W)
    with hg.eager(is_eager):
        value, plain = hg.value_and_grad(lambda x, w: loop(step, x, w), argnums=(0, 1))(x, w)
        same, found = hg.value_and_grad(lambda x, w: loop(hg.checkpoint(step), x, w), argnums=(0, 1))(x, w)
    assert bits(value, *plain) == bits(same, *found)


def test_equal_bits_of_what_is_taken_from_outside_and_of_nests():
    x, w = hg.asarray(RNG.standard_normal((4, 16))), hg.asarray(W)

    def whole(wrap):
        def function(x, w):
            twice = w * 2

            def inner(parts, scale):
                parts = {**parts, "x": hg.array(parts["x"])}
                parts["x"][0] = 1.0
                return {"x": hg.tanh(parts["x"] @ twice) * scale, "n": parts["n"] + 1, "i": hg.argmax(parts["x"])}

            parts = {"x": x, "n": 0}
            for _ in range(4):
                parts = {**wrap(inner)(parts, 0.9)}
            assert parts["n"] == 4
            return parts["x"].sum() + parts["i"] * 0.0 + x.sum()

        return hg.grad(function, argnums=(0, 1))(x, w)

    assert bits(*whole(lambda f: f)) == bits(*whole(hg.checkpoint))


def test_values_that_nobody_reads_and_that_are_arguments():
    x, w = hg.asarray(RNG.standard_normal(3)), hg.asarray(RNG.standard_normal(3))

    def function(x, w):
        return [x, hg.exp(w) * x, w, hg.argmax(w), hg.sin(w)]

    for i in (0, 1, 2, 4):
        plain, found = (hg.grad(lambda x, w, i=i, one=one: (one(x, w)[i] * w).sum(), argnums=(0, 1))(x, w)
                        for one in (function, hg.checkpoint(function)))
        assert bits(*plain) == bits(*found), i


def layers(x, w, count):
    for _ in range(count):
        x = hg.tanh(x @ w)
    return x


@pytest.mark.parametrize("outer, inner, kept", [(64, 8, 512), (8, 24, 192)])
def test_peak_memory_of_64_steps(outer, inner, kept):
    """Of 64 steps of 8 layers each, and of 8 blocks of 8 steps of 3, only what is between steps or blocks is kept, and one of them."""
    x, w = hg.asarray(RNG.standard_normal((4096, 16)).astype("f4")), hg.asarray(W.astype("f4"))
    one = [lambda x, w: layers(x, w, inner), hg.checkpoint(lambda x, w: layers(x, w, inner))]
    plain, found = (hg.grad(lambda x, w, one=one: loop(one, x, w, outer), argnums=(0, 1))(x, w) for one in one)
    peaks = [hg.explain(gradients[0], json=True)["temporary_bytes"] for gradients in (plain, found)]
    assert peaks[0] >= kept * x.size * 4 and 4 * peaks[1] <= peaks[0], peaks
    assert bits(*plain) == bits(*found)


def test_checkpoints_inside_each_other_and_second_derivatives():
    x, w = hg.asarray(RNG.standard_normal((2, 16))), hg.asarray(W)
    inner = hg.checkpoint(step)
    outer = hg.checkpoint(lambda x, w: inner(inner(x, w), w))
    right = hg.grad(lambda x: loop(step, x, w, 4))(x)
    assert bits(right) == bits(hg.grad(lambda x: loop(outer, x, w, 2))(x))

    def second(one):
        return hg.grad(lambda x: (hg.grad(lambda z: loop(one, z, w, 2))(x) ** 2).sum())(x)

    np.testing.assert_allclose(second(inner).numpy(), second(step).numpy(), rtol=1e-10, atol=1e-12)
    slope = hg.jvp(lambda x: inner(x, w), (x,), (x,))[1]
    np.testing.assert_allclose(slope.numpy(), hg.jvp(lambda x: step(x, w), (x,), (x,))[1].numpy(), rtol=1e-12, atol=1e-14)


def test_checkpoint_without_gradients_is_the_function():
    x, w = hg.asarray(RNG.standard_normal((2, 16))), hg.asarray(W)
    before = x.numpy().tobytes()
    assert bits(hg.checkpoint(step)(x, w)) == bits(step(x, w))
    assert hg.checkpoint(lambda x, n: (x, n))(x, "text")[1] == "text"

    def assigns(x):
        x[:] = 0.0
        return x.sum()

    assert float(hg.checkpoint(assigns)(x)) == 0 and x.numpy().tobytes() == before


# ---- custom_gradient ----

@hg.custom_gradient
def clipped(x):
    return x * 1.0, lambda g: hg.clip(g, -0.5, 0.5)


def test_the_gradient_is_what_is_said():
    x, w = hg.asarray([1.0, 2.0, 3.0]), hg.asarray([3.0, 0.25, -2.0])
    assert hg.grad(lambda x: (clipped(x) * w).sum())(x).tolist() == [0.5, 0.25, -0.5]
    assert clipped(x).tolist() == [1, 2, 3]
    assert hg.grad(lambda x: (x * clipped(x) * w).sum())(x).tolist() == [3.5, 1.0, -6.5]
    assert hg.vmap(hg.grad(lambda x: clipped(x) * 4.0))(x).tolist() == [0.5] * 3
    assert hg.grad(lambda x: hg.vmap(clipped)(x).sum() * 4)(x).tolist() == [0.5] * 3
    assert hg.vmap(lambda c: hg.grad(lambda x: (clipped(x) * c).sum())(x))(w).tolist() == [[0.5] * 3, [0.25] * 3, [-0.5] * 3]
    assert hg.grad(lambda x: (hg.checkpoint(lambda x: clipped(x * 2))(x) * w).sum())(x).tolist() == [1.0, 0.5, -1.0]


@hg.custom_gradient
def log1pexp(x):
    e = hg.exp(x)
    return hg.log(1 + e), lambda g: g * (1 - 1 / (1 + e))


def test_a_stable_gradient_through_loops_and_derivatives_again():
    x = hg.asarray([100.0, 0.0])  # exp overflows in float32
    assert hg.grad(lambda x: log1pexp(x).sum())(x).tolist() == [1.0, 0.5]
    y = hg.asarray([0.3, -0.2], dtype="float64")
    second = hg.grad(lambda y: hg.grad(lambda z: log1pexp(z).sum())(y).sum())(y).numpy()
    s = 1 / (1 + np.exp(-y.numpy()))
    np.testing.assert_allclose(second, s * (1 - s), rtol=1e-12)
    np.testing.assert_allclose(hg.jvp(log1pexp, (y,), (y,))[1].numpy(), s * y.numpy(), rtol=1e-12)

    def repeated(one):
        def total(y):
            for _ in range(64):
                y = one(y) - 0.5
            return y.sum()

        return hg.grad(total)(y).numpy()

    np.testing.assert_allclose(repeated(log1pexp), repeated(hg.softplus), rtol=1e-9)


def test_several_arguments_and_nests():
    @hg.custom_gradient
    def function(parts, index, scale):
        value = {"a": parts["a"] * scale, "b": [parts["b"].sum()]}
        return value, lambda g: ({"a": g["a"] * 10.0, "b": g["b"][0] * hg.ones(2)}, None, hg.zeros(()))

    def total(parts, index, scale):
        value = function(parts, index, scale)
        return value["a"].sum() * 2 + value["b"][0]

    parts = {"a": hg.ones(3), "b": hg.ones(2)}
    by_parts, by_scale = hg.grad(total, argnums=(0, 2))(parts, hg.asarray([1, 2]), hg.asarray(3.0))
    assert by_parts["a"].tolist() == [20.0] * 3 and by_parts["b"].tolist() == [1, 1] and float(by_scale) == 0
    assert hg.grad(lambda parts: function(parts, None, 2.0)["b"][0])(parts)["a"].tolist() == [0] * 3  # cotangents that are zero


def test_what_is_refused():
    x = hg.ones(3)
    with pytest.raises(ValueError, match="from outside that a gradient flows through"):
        hg.grad(lambda x: hg.custom_gradient(lambda y: (y * x, lambda g: g))(x * 2).sum())(x)
    free = hg.custom_gradient(lambda y: (y * hg.stop_gradient(x), lambda g: g))
    assert hg.grad(lambda x: free(x * 2).sum())(x).tolist() == [2] * 3
    for function, kind, sentence in [
        (lambda x: x, TypeError, "returns .value, pull."),
        (lambda x: (x, lambda g: (g, g)), TypeError, "a tuple of 1 gradients"),
        (lambda x: (x, lambda g: g[0]), ValueError, r"\[\(\)\], and the arrays of that argument \[\(3,\)\]"),
        (lambda x: (x, lambda g: g * float(g[0])), ValueError, "custom_gradient"),
    ]:
        with pytest.raises(kind, match=sentence):
            hg.grad(lambda x, function=function: hg.custom_gradient(function)(x).sum())(x)
