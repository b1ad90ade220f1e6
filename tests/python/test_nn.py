"""hg.nn and hg.optim against NumPy formulas, and what they say about mistakes."""

import copy
import inspect
import pickle
import textwrap

import numpy as np
import pytest

import double_of_cuda
import hologram as hg

f4 = np.float32


def data(*shape, seed=0, kind="f8"):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


# ---- layers ---------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(kind, bias):
    layer = hg.nn.Linear(5, 3, bias, kind)
    p = layer.init(hg.random.key(1))
    assert sorted(p) == (["bias", "weight"] if bias else ["weight"])
    assert p["weight"].shape == (3, 5) and p["weight"].dtype == kind and abs(p["weight"].numpy()).max() <= 5**-0.5
    x = data(2, 4, 5, kind=kind)
    expected = x @ p["weight"].numpy().T + (p["bias"].numpy() if bias else 0)
    np.testing.assert_allclose(layer(p, hg.asarray(x)).numpy(), expected, rtol=1e-5, atol=1e-6)


def test_the_same_key_makes_the_same_parameters():
    model = hg.nn.Sequential(hg.nn.Linear(4, 4), hg.nn.Linear(4, 4))
    a, b, c = (model.init(hg.random.key(seed)) for seed in (3, 3, 4))
    assert a[0]["weight"].tolist() == b[0]["weight"].tolist() != c[0]["weight"].tolist()
    assert a[0]["weight"].tolist() != a[1]["weight"].tolist()
    assert set(a[0]["weight"].numpy().ravel()[:4]).isdisjoint(a[0]["bias"].tolist())


def test_embedding():
    layer = hg.nn.Embedding(7, 3)
    p = layer.init(hg.random.key(1))
    index = np.array([[0, 6, 2], [2, 2, 1]])
    assert np.array_equal(layer(p, hg.asarray(index)).numpy(), p["weight"].numpy()[index])
    gradient = hg.grad(lambda p: layer(p, hg.asarray(index)).sum())(p)["weight"].numpy()
    assert gradient[:, 0].tolist() == [1, 1, 3, 0, 0, 0, 1]


def test_layer_norm():
    layer = hg.nn.LayerNorm(6, 1e-3, "float64")
    p = layer.init(hg.random.key(1))
    assert p["weight"].tolist() == [1] * 6 and p["bias"].tolist() == [0] * 6
    p = {"weight": hg.asarray(data(6, seed=1)), "bias": hg.asarray(data(6, seed=2))}
    x = data(4, 6)
    d = x - x.mean(-1, keepdims=True)
    expected = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-3) * p["weight"].numpy() + p["bias"].numpy()
    np.testing.assert_allclose(layer(p, hg.asarray(x)).numpy(), expected, rtol=1e-12)


def test_dropout():
    layer, x, key = hg.nn.Dropout(0.25), hg.ones((100, 100)), hg.random.key(5)
    assert layer({}, x) is x
    y = layer(layer.init(key), x, key).numpy()
    assert set(np.unique(y)) == {f4(0), f4(1 / 0.75)} and abs((y == 0).mean() - 0.25) < 0.02
    assert np.array_equal(y, layer({}, x, hg.random.key(5)).numpy())
    assert not np.array_equal(y, layer({}, x, hg.random.key(6)).numpy())


def test_sequential_gives_every_layer_a_key_of_its_own():
    model, key = hg.nn.Sequential(hg.nn.Dropout(0.5), hg.nn.Dropout(0.5)), hg.random.key(5)
    y = model(model.init(key), hg.ones(4000), key).numpy()
    assert abs((y == 4).mean() - 0.25) < 0.04 and set(np.unique(y)) == {0, 4}


@pytest.mark.parametrize("is_eager", [False, True])
def test_sequential(is_eager):
    with hg.eager(is_eager):
        model = hg.nn.Sequential(hg.nn.Linear(4, 8), hg.tanh, hg.nn.Sequential(hg.nn.Linear(8, 2)), hg.nn.Dropout())
        p = model.init(hg.random.key(0))
        x = data(3, 4, kind=f4)
        got = model(p, hg.asarray(x)).numpy()
    s = {name: v.numpy() for name, v in hg.nn.state_dict(p).items()}
    assert list(s) == ["0.weight", "0.bias", "2.0.weight", "2.0.bias"]
    expected = np.tanh(x @ s["0.weight"].T + s["0.bias"]) @ s["2.0.weight"].T + s["2.0.bias"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    gradient = hg.grad(lambda p: model(p, hg.asarray(x)).sum())(p)
    assert gradient[1] == {} and gradient[2][0]["bias"].tolist() == [3, 3]


def test_state_dicts():
    model = hg.nn.Sequential(hg.nn.Linear(4, 8), hg.relu, hg.nn.LayerNorm(8))
    p, q = model.init(hg.random.key(0)), model.init(hg.random.key(1))
    state = {name: x.numpy() for name, x in hg.nn.state_dict(p).items()}
    q = hg.nn.load_state_dict(q, dict(reversed(state.items())))
    assert q[1] == {} and all(np.array_equal(x.numpy(), state[name]) for name, x in hg.nn.state_dict(q).items())
    with pytest.raises(ValueError, match="0.bias"):
        hg.nn.load_state_dict(q, {name: x for name, x in state.items() if name != "0.bias"})
    with pytest.raises(ValueError, match="2.weight is float32"):
        hg.nn.load_state_dict(q, {**state, "2.weight": state["2.weight"][:4]})
    with pytest.raises(ValueError, match="float64"):
        hg.nn.load_state_dict(q, {**state, "2.weight": state["2.weight"].astype("f8")})


def test_mistakes():
    for make in (lambda: hg.nn.Linear(0, 3), lambda: hg.nn.Embedding(3, 0), lambda: hg.nn.Dropout(1.5),
                 lambda: hg.nn.Sequential(hg.relu)([], hg.ones(3)), lambda: hg.optim.SGD(0.1, nesterov=True)):
        with pytest.raises(ValueError):
            make()
    optimizer = hg.optim.Adam()
    p = {"a": hg.ones(3), "b": hg.ones(2)}
    with pytest.raises(ValueError, match="one form"):
        optimizer.update(p, {"a": hg.ones(3)}, optimizer.init(p))
    with pytest.raises(ValueError, match="one form"):
        optimizer.update(p, {"a": hg.ones(2), "b": hg.ones(3)}, optimizer.init(p))


# ---- optimisers, in f64 against their papers ------------------------------------------------------------------------------

def sgd(p, gradients, rate, momentum=0.0, dampening=0.0, nesterov=False, decay=0.0):
    b = None
    for g in gradients:
        d = g + decay * p
        b = momentum * b + (1 - dampening) * d if momentum and b is not None else d
        p = p - rate * (d + momentum * b if nesterov else b)
    return p


def adam(p, gradients, rate, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0, decoupled=False):
    m = v = np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        if decoupled:
            p = p - rate * decay * p
        else:
            g = g + decay * p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        p = p - rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + eps)
    return p


CASES = [
    (hg.optim.SGD, sgd, {}), (hg.optim.SGD, sgd, {"decay": 0.1}), (hg.optim.SGD, sgd, {"momentum": 0.9}),
    (hg.optim.SGD, sgd, {"momentum": 0.9, "dampening": 0.5, "decay": 0.01}), (hg.optim.SGD, sgd, {"momentum": 0.8, "nesterov": True}),
    (hg.optim.Adam, adam, {}), (hg.optim.Adam, adam, {"beta1": 0.5, "beta2": 0.9, "eps": 1e-3, "decay": 0.1}),
    (hg.optim.AdamW, lambda *a, **k: adam(*a, **{"decay": 0.01, **k}, decoupled=True), {}),
    (hg.optim.AdamW, lambda *a, **k: adam(*a, **k, decoupled=True), {"decay": 0.3}),
]


@pytest.mark.parametrize("kind, formula, options", CASES)
@pytest.mark.parametrize("is_jit", [False, True])
def test_optimisers(kind, formula, options, is_jit):
    start = {"w": [data(3, 4, seed=1), data(5, seed=2)], "b": data(1, seed=3)}
    steps = [{"w": [data(3, 4, seed=10 + i), data(5, seed=20 + i)], "b": data(1, seed=30 + i)} for i in range(4)]
    as_arrays = lambda tree: {"w": [hg.asarray(x) for x in tree["w"]], "b": hg.asarray(tree["b"])}
    optimizer = kind(0.05, **options)
    p = as_arrays(start)
    state = optimizer.init(p)
    update = hg.jit(optimizer.update) if is_jit else optimizer.update
    for gradients in steps:
        p, state = update(p, as_arrays(gradients), state)
    for path in (lambda t: t["w"][0], lambda t: t["w"][1], lambda t: t["b"]):
        np.testing.assert_allclose(path(p).numpy(), formula(path(start), [path(g) for g in steps], 0.05, **options), rtol=1e-6)


def test_another_rate_for_a_step():
    for optimizer in (hg.optim.SGD(1.0), hg.optim.Adam(1.0)):
        p = {"w": hg.ones(3, "float64")}
        new, _ = optimizer.update(p, {"w": hg.ones(3, "float64")}, optimizer.init(p), rate=0.25)
        np.testing.assert_allclose(new["w"].numpy(), 0.75)


def test_clip_norm():
    g = {"a": hg.asarray(np.array([3.0, 0.0], f4)), "b": [hg.asarray(np.array([[4.0]], f4))]}
    clipped, norm = hg.optim.clip_norm(g, 1.0)
    assert float(norm) == 5 and abs(clipped["a"].numpy()[0] - 0.6) < 1e-6 and abs(clipped["b"][0].numpy()[0, 0] - 0.8) < 1e-6
    same, _ = hg.optim.clip_norm(g, 10.0)
    assert same["a"].tolist() == [3, 0]


@pytest.mark.parametrize("is_eager", [False, True])
def test_a_network_learns_with_the_same_bits(is_eager):
    model = hg.nn.Sequential(hg.nn.Linear(2, 16), hg.tanh, hg.nn.LayerNorm(16), hg.nn.Dropout(0.1), hg.nn.Linear(16, 2))
    x = hg.asarray(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], f4))
    y = hg.asarray(np.array([0, 1, 1, 0]))
    optimizer = hg.optim.AdamW(0.05)

    def step(p, state, key):
        value, g = hg.value_and_grad(lambda p: hg.cross_entropy(model(p, x, key), y))(p)
        g, _ = hg.optim.clip_norm(g, 1.0)
        return value, *optimizer.update(p, g, state)

    def train(step):
        p = model.init(hg.random.key(0))
        state = optimizer.init(p)
        for key in hg.random.split(hg.random.key(1), 200):
            value, p, state = step(p, state, key)
        assert hg.argmax(model(p, x), axis=-1).tolist() == [0, 1, 1, 0]
        return {name: v.tolist() for name, v in hg.nn.state_dict(p).items()}

    with hg.eager(is_eager):
        assert train(hg.jit(step)) == train(step)


def test_names_of_other_libraries():
    for make, words in ((lambda: hg.optim.Adam(lr=0.1), "Adam has no argument 'lr': write rate"),
                        (lambda: hg.optim.AdamW(0.1, betas=(0.9, 0.99)), "write beta1 and beta2"),
                        (lambda: hg.nn.Linear(in_features=3, out_features=4), "Linear has no argument 'in_features': write inputs"),
                        (lambda: hg.nn.MultiHeadAttention(8, num_heads=2), "write heads")):
        with pytest.raises(TypeError, match=words):
            make()

    class Own(hg.nn.Layer):
        def __init__(self, d_model):
            self.width = d_model

    assert repr(Own(d_model=3)) == "Own(width=3)" == repr(pickle.loads(pickle.dumps(hg.nn.Linear(2, 3))) and copy.deepcopy(Own(3)))


def test_examples_of_docstrings_run():
    """Their indented lines; each class, function and method of hg.nn and hg.optim with a docstring of its own."""
    count = 0
    for module in (hg.nn, hg.optim):
        for name, thing in vars(module).items():
            if name[0] == "_" or not callable(thing) or not (thing.__module__ or "").startswith("hologram"):
                continue
            methods = [method for method in vars(thing).values() if inspect.isfunction(method)] if inspect.isclass(thing) else []
            for text in [inspect.getdoc(part) or "" for part in (thing, *methods)]:
                lines = [line for line in text.splitlines()[1:] if line.startswith("    ") or not line]
                code = textwrap.dedent("\n".join(lines))
                if "torch" not in code and code.strip():
                    exec(code, {"hg": hg})
                    count += 1
    assert count >= 23


ON_ANY = """
import hashlib, hologram as hg
nn, key = hg.nn, hg.random.key(3)
model = nn.Sequential(nn.Embedding(11, 8, padding=0), nn.TransformerBlock(8, 2, 16, dropout=0.1, causal=True), nn.LSTM(8, 8),
                      nn.BatchNorm(8, axis=-1), nn.ChannelDropout(0.1, -1), nn.AlphaDropout(0.1), nn.RMSNorm(8), nn.Linear(8, 11))
words = hg.random.integers(key, (4, 4), 0, 11)

def loss(p):
    y, kept = model.apply(p, words[:, :-1], key, training=True)
    return hg.cross_entropy(y.reshape(12, 11), words[:, 1:].reshape(12)), kept

(value, p), g = hg.value_and_grad(loss, has_aux=True)(model.init(key))
steps = [kind.update(p, hg.optim.clip_value(g, 0.5), kind.init(p)) for kind in (
    hg.optim.NAdam(hg.optim.warmup(hg.optim.cosine(0.1, 5), 2)), hg.optim.RMSprop(0.01, momentum=0.9, centered=True), hg.optim.Lion(0.01))]
arrays = [x.numpy().tobytes() for x in nn.state_dict([value, g, steps]).values()]
print(hg.default_executor().backend, float(value) < 9, hashlib.sha256(b"".join(arrays)).hexdigest())
"""


@double_of_cuda.needed
def test_training_has_the_same_bits_on_the_double_of_cuda():
    lines = [double_of_cuda.run(ON_ANY, **more).split() for more in ({"LD_LIBRARY_PATH": ""}, {})]
    assert [line[:2] for line in lines] == [["cpu", "True"], ["cuda", "True"]] and lines[0][2] == lines[1][2]
