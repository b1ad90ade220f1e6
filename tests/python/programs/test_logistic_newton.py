"""Logistic regression by Newton's method with exact second derivatives."""

import numpy as np

import hologram as hg


def loss(w, x, y):
    return hg.bce_with_logits(x @ w, y) + 0.01 * hg.sum(w * w)


def test_newton():
    rng = np.random.default_rng(9)
    x = rng.normal(size=(200, 4))
    y = (x @ [1.0, -2.0, 0.5, 0.0] + rng.normal(0, 0.5, 200) > 0).astype(np.float64)
    w = hg.zeros(4, dtype="float64")
    for _ in range(8):
        gradient, hessian = hg.grad(loss)(w, x, y), hg.hessian(loss)(w, x, y)
        w = w - hg.asarray(np.linalg.solve(np.asarray(hessian), np.asarray(gradient)))
    hg.grad(loss, check=True)(w, x, y)

    expected = np.zeros(4)
    for _ in range(8):
        p = 1 / (1 + np.exp(-x @ expected))
        gradient = x.T @ (p - y) / 200 + 0.02 * expected
        hessian = (x.T * (p * (1 - p))) @ x / 200 + 0.02 * np.eye(4)
        expected -= np.linalg.solve(hessian, gradient)
    np.testing.assert_allclose(np.asarray(w), expected, rtol=1e-10)
