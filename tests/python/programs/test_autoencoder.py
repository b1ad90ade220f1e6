"""A variational autoencoder on noisy patterns: reparametrised, trained with Adam; gradients beside PyTorch's."""

import numpy as np
import pytest

import hologram as hg

WIDTH, HIDDEN, LATENT = 16, 24, 3


def patterns(count):
    rng = np.random.default_rng(16)
    t = np.linspace(0, 2 * np.pi, WIDTH)
    phase = rng.uniform(0, 2 * np.pi, (count, 1))
    return (0.5 + 0.45 * np.sin(t + phase)).astype(np.float32)


encoder = hg.nn.Sequential(hg.nn.Linear(WIDTH, HIDDEN), hg.tanh, hg.nn.Linear(HIDDEN, 2 * LATENT))
decoder = hg.nn.Sequential(hg.nn.Linear(LATENT, HIDDEN), hg.tanh, hg.nn.Linear(HIDDEN, WIDTH))


def loss(parameters, x, noise):
    code = encoder(parameters["encoder"], x)
    mean, log_variance = code[:, :LATENT], code[:, LATENT:]
    z = mean + hg.exp(log_variance / 2) * noise
    rebuilt = decoder(parameters["decoder"], z)
    likelihood = hg.bce_with_logits(rebuilt, x, reduction="sum")
    divergence = -0.5 * hg.sum(1 + log_variance - mean**2 - hg.exp(log_variance))
    return (likelihood + divergence) / x.shape[0]


def test_variational_autoencoder():
    x = hg.asarray(patterns(64))
    keys = hg.random.split(hg.random.key(1), 3)
    parameters = {"encoder": encoder.init(keys[0]), "decoder": decoder.init(keys[1])}
    noise = hg.random.normal(keys[2], (64, LATENT))
    gradients = hg.grad(loss, check=True)(parameters, x, noise)

    adam, step = hg.optim.Adam(0.01), hg.jit(lambda p, s, n: hg.value_and_grad(loss)(p, x, n))
    state, trained, first = adam.init(parameters), parameters, float(loss(parameters, x, noise))
    for i in range(100):
        _, g = step(trained, state, hg.random.normal(hg.random.key(100 + i), (64, LATENT)))
        trained, state = adam.update(trained, g, state)
    assert float(loss(trained, x, noise)) < first - 0.3

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    state = {name: torch.tensor(np.array(value), requires_grad=True) for name, value in hg.nn.state_dict(parameters).items()}
    layer = lambda name, x: torch.nn.functional.linear(x, state[name + ".weight"], state[name + ".bias"])
    tx, tn = torch.from_numpy(np.array(x)), torch.from_numpy(np.array(noise))
    code = layer("encoder.2", torch.tanh(layer("encoder.0", tx)))
    mean, log_variance = code[:, :LATENT], code[:, LATENT:]
    rebuilt = layer("decoder.2", torch.tanh(layer("decoder.0", mean + torch.exp(log_variance / 2) * tn)))
    value = torch.nn.functional.binary_cross_entropy_with_logits(rebuilt, tx, reduction="sum")
    value = (value - 0.5 * torch.sum(1 + log_variance - mean**2 - log_variance.exp())) / 64
    value.backward()
    for name, gradient in hg.nn.state_dict(gradients).items():
        np.testing.assert_allclose(np.asarray(gradient), state[name].grad.numpy(), rtol=2e-4, atol=2e-6)
