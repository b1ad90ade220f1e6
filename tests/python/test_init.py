"""hg.nn.init: bounds and deviations beside PyTorch's, orthogonal matrices beside NumPy's reflections, one after the other."""

import math

import numpy as np
import pytest

import hologram as hg

KEY = hg.random.key(12)
SHAPES = [(64, 48), (20, 30, 3), (16, 24, 3, 2)]
CALLS = [("glorot", {}, "xavier", {}), ("glorot", {"gain": 1.5}, "xavier", {"gain": 1.5}), ("he", {}, "kaiming", {}),
         ("he", {"slope": 0.5, "mode": "fan_out"}, "kaiming", {"a": 0.5, "mode": "fan_out"}),
         ("lecun", {}, "kaiming", {"nonlinearity": "linear"})]  # fmt: skip


def drawn(name, *arguments, **more):
    return getattr(hg.nn.init, name)(KEY, *arguments, **more)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name, more, other, given", CALLS)
def test_beside_torch(name, more, other, given, shape):
    torch = pytest.importorskip("torch")
    torch.manual_seed(1)
    for kind in ("uniform", "normal"):
        own, w = drawn(f"{name}_{kind}", shape, **more).numpy(), torch.empty(shape)
        right = torch.stack([getattr(torch.nn.init, f"{other}_{kind}_")(w, **given).clone() for _ in range(8)]).numpy()
        assert own.shape == shape and own.dtype == np.float32
        assert abs(own.std() / right.std() - 1) < 4 / math.sqrt(own.size) and abs(own.mean()) < 4 * right.std() / math.sqrt(own.size)
        if kind == "uniform":
            assert abs(np.abs(own).max() / np.abs(right).max() - 1) < 20 / own.size


@pytest.mark.parametrize("mode, fan", [("fan_in", 48), ("fan_out", 64), ("fan_avg", 56)])
@pytest.mark.parametrize("distribution", ["normal", "uniform", "truncated_normal"])
def test_variance_scaling(mode, fan, distribution):
    x = drawn("variance_scaling", (64, 48, 20), 3.0, mode, distribution, "float64").numpy()
    assert abs(x.var() * fan * 20 / 3 - 1) < 4 * math.sqrt(2 / x.size) and abs(x.mean()) < 4 * x.std() / math.sqrt(x.size)
    most = {"normal": math.inf, "uniform": math.sqrt(3), "truncated_normal": 2 / 0.8796256610342398}[distribution]
    assert 0.9 * min(most, 3) < np.abs(x).max() / math.sqrt(3 / (fan * 20)) <= most


def reflected(x):
    """Of numbers [m, k]: the first k columns of reflections that take each column, from its row on, to the axis, with its signs."""
    m, k = x.shape
    q, signs = np.eye(m), []
    for j in range(k):
        v = x[j:, j].copy()
        signs.append(-np.copysign(1.0, v[0]))
        v[0] += np.copysign(np.linalg.norm(v), v[0])
        q[:, j:] -= np.outer(q[:, j:] @ v, v) * (2 / (v @ v))
    return q[:, :k] * signs


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 3), (3, 5), (7, 1), (1, 7), (33, 33), (100, 37), (12, 3, 3, 3), (0, 3), (3, 0)])
def test_orthogonal(shape):
    rows, columns = shape[0], math.prod(shape[1:])
    q = drawn("orthogonal", shape, dtype="float64").numpy()
    own = q.reshape(rows, columns)
    own = own if rows >= columns else own.T
    x = hg.random.normal(KEY, own.shape, dtype="float64").numpy()
    assert np.abs(own - reflected(x)).max(initial=0) < 1e-14 * max(own.shape)
    assert np.abs(own.T @ own - np.eye(own.shape[1])).max(initial=0) < 1e-14
    assert q.shape == shape and np.array_equal(drawn("orthogonal", shape).numpy(), q.astype("f4"))
    np.testing.assert_allclose(drawn("orthogonal", shape, 0.5, "float16").numpy(), (q * 0.5).astype("f2"))


def test_orthogonal_matrices_are_any():
    """Haar's measure: each element has the mean 0 and the mean square 1 / n, both determinants come up, elements do not go together."""
    keys = hg.random.split(hg.random.key(1), 600)
    q = np.stack([hg.nn.init.orthogonal(keys[i], (3, 3), dtype="float64").numpy() for i in range(600)])
    room = 3.3 / math.sqrt(600)
    assert np.abs(q.mean(0)).max() < room / math.sqrt(3) and np.abs((q * q).mean(0) - 1 / 3).max() < room * 0.3
    assert abs(np.linalg.det(q).mean()) < room
    assert np.abs(np.corrcoef(q.reshape(600, 9).T) - np.eye(9)).max() < 1.2 * room


@pytest.mark.parametrize("name", ["glorot_uniform", "he_normal", "orthogonal", "lecun_uniform"])
def test_the_same_bits(name):
    x = drawn(name, (20, 12)).numpy()
    assert np.array_equal(x, drawn(name, (20, 12)).numpy())
    assert np.array_equal(x, hg.jit(lambda key: getattr(hg.nn.init, name)(key, (20, 12)))(KEY).numpy())
    with hg.eager():
        assert np.array_equal(x, drawn(name, (20, 12)).numpy())


def test_bad_shapes():
    for name in ("glorot_uniform", "he_normal", "orthogonal"):
        with pytest.raises(ValueError, match=r"a weight of shape \(3,\); it has two axes or more"):
            drawn(name, 3)
    with pytest.raises(ValueError, match="mode is 'fan_in', 'fan_out' or 'fan_avg', not 'in'"):
        drawn("he_normal", (3, 4), mode="in")
    with pytest.raises(ValueError, match="distribution is 'normal'"):
        drawn("variance_scaling", (3, 4), distribution="gauss")
    with pytest.raises(hg.Error, match="its numbers are floats, not i32"):
        drawn("he_normal", (3, 4), dtype="int32")
