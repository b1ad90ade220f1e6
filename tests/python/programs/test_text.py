"""A model of text, letter by letter, with a long short-term memory written out: gradients beside PyTorch's through 24 steps."""

import numpy as np
import pytest

import hologram as hg

TEXT = "the sun sets in the sea and the sea sees the sun "
LETTERS = sorted(set(TEXT))
WIDTH = 12


def parameters_of(key):
    keys = hg.random.split(key, 4)
    bound = WIDTH**-0.5
    uniform = lambda k, shape: hg.random.uniform(k, shape, -bound, bound)
    return {"embedding": hg.random.normal(keys[0], (len(LETTERS), WIDTH)), "w": uniform(keys[1], (4 * WIDTH, WIDTH)),
            "u": uniform(keys[2], (4 * WIDTH, WIDTH)), "b": hg.zeros(4 * WIDTH), "out": uniform(keys[3], (len(LETTERS), WIDTH))}


def loss(p, text, following):
    h, c = hg.zeros((text.shape[0], WIDTH)), hg.zeros((text.shape[0], WIDTH))
    total = 0.0
    for t in range(text.shape[1]):
        gates = p["embedding"][text[:, t]] @ p["w"].T + h @ p["u"].T + p["b"]
        i, f, g, o = (gates[:, k * WIDTH:(k + 1) * WIDTH] for k in range(4))
        c = hg.sigmoid(f) * c + hg.sigmoid(i) * hg.tanh(g)
        h = hg.sigmoid(o) * hg.tanh(c)
        total = total + hg.cross_entropy(h @ p["out"].T, following[:, t])
    return total / text.shape[1]


def test_text():
    numbers = np.array([LETTERS.index(c) for c in TEXT])
    text = np.stack([numbers[i:i + 24] for i in range(0, 24, 3)])
    following = np.stack([numbers[i + 1:i + 25] for i in range(0, 24, 3)])
    p = parameters_of(hg.random.key(2))
    gradients = hg.grad(loss, check=True)(p, text, following)

    adam = hg.optim.Adam(0.02)
    state, trained, first = adam.init(p), p, float(loss(p, text, following))
    step = hg.jit(lambda p: hg.value_and_grad(loss)(p, text, following))
    for _ in range(60):
        _, g = step(trained)
        trained, state = adam.update(trained, g, state)
    assert float(loss(trained, text, following)) < 0.5 * first

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    twin = torch.nn.LSTM(WIDTH, WIDTH, batch_first=True)
    with torch.no_grad():
        twin.weight_ih_l0.copy_(torch.from_numpy(np.array(p["w"])))
        twin.weight_hh_l0.copy_(torch.from_numpy(np.array(p["u"])))
        twin.bias_ih_l0.zero_()
        twin.bias_hh_l0.zero_()
    embedding = torch.tensor(np.array(p["embedding"]), requires_grad=True)
    out = torch.tensor(np.array(p["out"]), requires_grad=True)
    states, _ = twin(embedding[torch.from_numpy(text)])
    value = torch.nn.functional.cross_entropy((states @ out.T).reshape(-1, len(LETTERS)), torch.from_numpy(following).reshape(-1))
    value.backward()
    np.testing.assert_allclose(first, value.item(), rtol=1e-5)
    for name, theirs in {"w": twin.weight_ih_l0, "u": twin.weight_hh_l0, "b": twin.bias_ih_l0, "embedding": embedding, "out": out}.items():
        np.testing.assert_allclose(np.asarray(gradients[name]), theirs.grad.numpy(), rtol=1e-3, atol=2e-6)
