"""A small transformer: causal attention of two heads, trained to copy; what it says with a cache of keys and values, letter by letter,
is what it says of the whole."""

import numpy as np
import pytest

import hologram as hg

WIDTH, HEADS, SYMBOLS, LENGTH = 16, 2, 10, 12


def parameters_of(key):
    keys = hg.random.split(key, 7)
    normal = lambda k, shape: hg.random.normal(k, shape) * 0.2
    return {"symbol": normal(keys[0], (SYMBOLS, WIDTH)), "place": normal(keys[1], (LENGTH, WIDTH)),
            "qkv": normal(keys[2], (WIDTH, 3 * WIDTH)), "back": normal(keys[3], (WIDTH, WIDTH)),
            "up": normal(keys[4], (WIDTH, 4 * WIDTH)), "down": normal(keys[5], (4 * WIDTH, WIDTH)),
            "out": normal(keys[6], (WIDTH, SYMBOLS)), "norm1": hg.ones(WIDTH), "norm2": hg.ones(WIDTH)}


def heads_of(x):
    return hg.permute_dims(x.reshape(x.shape[0], x.shape[1], HEADS, WIDTH // HEADS), (0, 2, 1, 3))


def block(p, x, keys, values, hidden):
    qkv = hg.layer_norm(x, p["norm1"]) @ p["qkv"]
    q, k, v = (heads_of(part) for part in hg.split(qkv, 3, axis=-1))
    if keys is not None:
        k, v = hg.concat([keys, k], axis=2), hg.concat([values, v], axis=2)
    scores = q @ hg.matrix_transpose(k) / (WIDTH // HEADS) ** 0.5
    weights = hg.softmax(hg.where(hidden, -hg.inf, scores))
    joined = hg.permute_dims(weights @ v, (0, 2, 1, 3)).reshape(x.shape)
    x = x + joined @ p["back"]
    x = x + hg.gelu(hg.layer_norm(x, p["norm2"]) @ p["up"]) @ p["down"]
    return x, k, v


def logits(p, text):
    n = text.shape[1]
    x = p["symbol"][text] + p["place"][:n]
    hidden = hg.triu(hg.ones((n, n), dtype="bool"), k=1)
    x, _, _ = block(p, x, None, None, hidden)
    return x @ p["out"]


def loss(p, text):
    return hg.cross_entropy(logits(p, text[:, :-1]).reshape(-1, SYMBOLS), text[:, 1:].reshape(-1))


def test_transformer():
    rng = np.random.default_rng(17)
    half = rng.integers(1, SYMBOLS, (16, LENGTH // 2))
    text = np.concatenate([half, half], axis=1)
    p = parameters_of(hg.random.key(3))
    gradients = hg.grad(loss, check=True)(p, text)

    whole = np.asarray(logits(p, text))
    keys = values = None
    for t in range(LENGTH):
        x = p["symbol"][text[:, t:t + 1]] + p["place"][t:t + 1]
        x, keys, values = block(p, x, keys, values, hg.zeros((1, t + 1), dtype="bool"))
        np.testing.assert_allclose(np.asarray(x @ p["out"])[:, 0], whole[:, t], rtol=1e-4, atol=1e-5)

    adam = hg.optim.Adam(0.01)
    state, trained, first = adam.init(p), p, float(loss(p, text))
    step = hg.jit(lambda p: hg.value_and_grad(loss)(p, text))
    for _ in range(40):
        _, g = step(trained)
        trained, state = adam.update(trained, g, state)
    assert float(loss(trained, text)) < 0.8 * first

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    f = torch.nn.functional
    w = {name: torch.tensor(np.array(value), requires_grad=True) for name, value in p.items()}
    t = torch.from_numpy(text)
    x = w["symbol"][t[:, :-1]] + w["place"][:LENGTH - 1]
    qkv = f.layer_norm(x, (WIDTH,), w["norm1"]) @ w["qkv"]
    q, k, v = (part.reshape(16, LENGTH - 1, HEADS, -1).transpose(1, 2) for part in qkv.chunk(3, -1))
    x = x + f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape) @ w["back"]
    x = x + f.gelu(f.layer_norm(x, (WIDTH,), w["norm2"]) @ w["up"]) @ w["down"]
    value = f.cross_entropy((x @ w["out"]).reshape(-1, SYMBOLS), t[:, 1:].reshape(-1))
    value.backward()
    np.testing.assert_allclose(first, value.item(), rtol=1e-5)
    for name, gradient in gradients.items():
        np.testing.assert_allclose(np.asarray(gradient), w[name].grad.numpy(), rtol=2e-3, atol=2e-6, err_msg=name)
