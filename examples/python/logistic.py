"""Logistic regression: is a tumour benign? Learned from 30 measurements of cells, by gradient descent on hg.value_and_grad.

    python examples/python/logistic.py --out build/demo

The 569 cases of Wisconsin (Street, Wolberg and Mangasarian 1993), as scikit-learn carries them; 114 are held out. NumPy descends in f64
beside it: the weights stay within a bound."""

import sys

import numpy as np
from common import digest, main, require, shuffled
from data import labelled
from plots import COLOURS, Chart, beside

import hologram as hg

HELD_OUT, RATE, DECAY = 114, 0.5, 0.01


def loss(parameters, x, target):
    weights, bias = parameters
    return hg.bce_with_logits(x @ weights + bias, target) + DECAY / 2 * hg.sum(weights * weights)


@hg.jit
def step(parameters, x, target):
    value, gradients = hg.value_and_grad(loss)(parameters, x, target)
    return value, [p - RATE * g for p, g in zip(parameters, gradients)]


def step_of_numpy(parameters, x, target):
    """The same in f64, with the gradient found by hand."""
    weights, bias = parameters
    off = (1 / (1 + np.exp(-(x @ weights + bias))) - target) / len(x)
    return weights - RATE * (x.T @ off + DECAY * weights), bias - RATE * off.sum()


def prepared():
    """Learned and held-out measurements, at mean 0 and deviation 1 among those learned from; 1 is benign."""
    x, benign, _ = labelled("breast_cancer.csv")
    order = shuffled(len(x), 3)
    learned, held_out = order[:-HELD_OUT], order[-HELD_OUT:]
    x = ((x - x[learned].mean(0, np.float64)) / x[learned].std(0, np.float64)).astype(np.float32)
    y = benign.astype(np.float32)
    return (x[learned], y[learned]), (x[held_out], y[held_out])


def compute(quick):
    steps = 30 if quick else 400
    (x, y), (unseen, truth) = prepared()
    inputs = hg.asarray(x), hg.asarray(y)
    parameters, losses = [hg.zeros(30), hg.zeros(())], []
    for _ in range(steps):
        value, parameters = step(parameters, *inputs)
        losses.append(float(value))
    chances = hg.sigmoid(hg.asarray(unseen) @ parameters[0] + parameters[1]).numpy()
    right = int(((chances > 0.5) == (truth > 0.5)).sum())
    found = [p.numpy() for p in parameters]
    return {"hash": digest(found), "found": found, "losses": losses, "data": (x, y), "chances": chances, "truth": truth, "right": right,
            "text": f"  {len(x)} cases learned in {steps} steps, loss {losses[0]:.4f} to {losses[-1]:.4f}; "
                    f"{right} of {HELD_OUT} held-out cases right ({100 * right / HELD_OUT:.1f}%)"}


def check(result, quick):
    x, y = (a.astype(np.float64) for a in result["data"])
    parameters = np.zeros(30), 0.0
    for _ in result["losses"]:
        parameters = step_of_numpy(parameters, x, y)
    off = max(np.abs(ours - numpys).max() for ours, numpys in zip(result["found"], parameters))
    require(off < 1e-5, f"a weight is {off} away from NumPy's")
    require(result["right"] >= 0.95 * HELD_OUT, f"only {result['right']} of {HELD_OUT} held-out cases are right")
    return f"weights within {off:.1g} of NumPy's in f64 (bound: 1e-5)"


def draw(result):
    learning = Chart("Learning 455 cases", "step", "loss")
    learning.line(range(1, len(result["losses"]) + 1), result["losses"])
    chances = Chart(f"The {HELD_OUT} held out", "cases, by how sure it is", "chance that it is benign")
    order = np.argsort(result["chances"], kind="stable")
    for kind, name, colour in ((0, "malignant", COLOURS[1]), (1, "benign", COLOURS[0])):
        those = np.flatnonzero(result["truth"][order] == kind)
        chances.points(those, result["chances"][order][those], name, colour=colour)
    chances.line([0, HELD_OUT - 1], [0.5, 0.5], colour="#999999", width=1)
    return {"python-logistic": beside(learning.image(), chances.image(legend="left"))}


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, draw))
