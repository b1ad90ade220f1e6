"""Two spirals told apart by a network, trained with Adam: the same steps as PyTorch's."""

import numpy as np
import pytest

import hologram as hg


def spirals(count):
    t = np.linspace(0.5, 3.0, count) * np.pi
    one = np.stack([t * np.cos(t), t * np.sin(t)], axis=1) / 10
    return np.concatenate([one, -one]).astype(np.float32), np.repeat([0, 1], count)


def test_spirals():
    x, y = spirals(100)
    model = hg.nn.Sequential(hg.nn.Linear(2, 32), hg.tanh, hg.nn.Linear(32, 32), hg.tanh, hg.nn.Linear(32, 2))
    parameters = model.init(hg.random.key(0))
    before = {name: np.array(value) for name, value in hg.nn.state_dict(parameters).items()}

    def loss(p):
        return hg.cross_entropy(model(p, x), y)

    hg.grad(loss, check=True)(parameters)
    adam = hg.optim.Adam(0.02)
    state = adam.init(parameters)
    losses = []
    for _ in range(150):
        value, gradients = hg.value_and_grad(loss)(parameters)
        parameters, state = adam.update(parameters, gradients, state)
        losses.append(value)
    losses = [float(value) for value in losses]
    right = (hg.argmax(model(parameters, x), axis=1) == y).sum()
    assert losses[-1] < 0.2 * losses[0] and int(right) > 180

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    layers = [torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2)]
    twin = torch.nn.Sequential(*layers)
    twin.load_state_dict({name: torch.from_numpy(value) for name, value in before.items()})
    optimizer = torch.optim.Adam(twin.parameters(), 0.02)
    for step in range(20):
        value = torch.nn.functional.cross_entropy(twin(torch.from_numpy(x)), torch.from_numpy(y))
        np.testing.assert_allclose(losses[step], value.item(), rtol=2e-3)
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
