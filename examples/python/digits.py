"""Trains a network of two layers to read handwritten digits: hg.nn, hg.optim, hg.jit.

    python examples/python/digits.py --out build/demo        (with --backend cuda on a GPU: the weights get the same bits)

The 1,797 pictures of scikit-learn (Alpaydin and Kaynak 1998) are shuffled once; 360 are held out and not looked at before the end. How
long and how fast to learn was chosen by cross-validation among the other 1,437."""

import sys

import numpy as np
from common import digest, main, require, shuffled
from data import labelled_digits
from PIL import Image
from plots import Chart, beside, sheet

import hologram as hg

HELD_OUT, RATE, SMOOTHING = 360, 0.01, 0.2


class Reader:
    """The network and how it learns. Pictures are u8 [count, 64], shades from 0 to 16."""

    def __init__(self, pictures, digits, hidden):
        self.pictures, self.digits = hg.asarray(pictures), hg.asarray(digits)
        self.network = hg.nn.Sequential(hg.nn.Linear(64, hidden), hg.relu, hg.nn.Linear(hidden, 10))
        self.optimizer = hg.optim.Adam(RATE)
        self.step = hg.jit(self._step, donate=(0, 1))  # parameters and state are changed where they are

    def scores(self, parameters, numbers):
        """How much each picture of these numbers looks like each digit."""
        return self.network(parameters, hg.take(self.pictures, numbers).astype("float32") / 16)

    def loss(self, parameters, numbers):
        return hg.cross_entropy(self.scores(parameters, numbers), hg.take(self.digits, numbers), smoothing=SMOOTHING)

    def _step(self, parameters, state, numbers, rate):
        loss, gradients = hg.value_and_grad(self.loss)(parameters, numbers)
        return loss, *self.optimizer.update(parameters, gradients, state, rate)


def train(reader, numbers, epochs, batch):
    """The parameters, and of each epoch the mean of its batches' losses."""
    parameters = reader.network.init(hg.random.key(1))
    state, losses = reader.optimizer.init(parameters), []
    for epoch in range(epochs):
        order = hg.asarray(numbers[shuffled(len(numbers), 100 + epoch)])
        rate = hg.asarray(np.float32(RATE * (1 - epoch / epochs)))
        total = 0.0
        for first in range(0, len(numbers) - batch + 1, batch):
            loss, parameters, state = reader.step(parameters, state, order[first:first + batch], rate)
            total += float(loss)
        losses.append(total / (len(numbers) // batch))
    return parameters, losses


def compute(quick):
    pictures, digits = labelled_digits()
    order = shuffled(len(digits), 0)
    learned, held_out = order[:-HELD_OUT], order[-HELD_OUT:]
    reader = Reader(pictures, digits, 24 if quick else 96)
    parameters, losses = train(reader, learned, *((1, 256) if quick else (20, 32)))
    scores = reader.scores(parameters, hg.asarray(held_out)).numpy()
    weights = {name: x.numpy() for name, x in hg.nn.state_dict(parameters).items()}
    read = scores.argmax(1)
    right = int((read == digits[held_out]).sum())
    return {"hash": digest(weights.values()), "weights": weights, "losses": losses, "scores": scores, "read": read, "right": right,
            "pictures": pictures[held_out], "digits": digits[held_out],
            "text": f"  {len(learned)} digits learned, loss {losses[0]:.4f} to {losses[-1]:.4f}; "
                    f"{right} of {HELD_OUT} held-out digits right ({100 * right / HELD_OUT:.1f}%)"}


def check(result, quick):
    """The scores by NumPy, in f64, of the same weights."""
    w1, b1, w2, b2 = (w.astype(np.float64) for w in result["weights"].values())
    scores = np.maximum(result["pictures"] / 16.0 @ w1.T + b1, 0) @ w2.T + b2
    off = np.abs(scores - result["scores"]).max()
    require(off < 1e-4, f"a score is {off} away from NumPy's")
    require(quick or result["right"] >= 0.97 * HELD_OUT, f"only {result['right']} of {HELD_OUT} held-out digits are right")
    return f"scores within {off:.1g} of NumPy's in f64 (bound: 1e-4)"


def draw(result):
    chart = Chart("Learning 1,437 digits", "epoch", "mean loss of the batches", size=(560, 360))
    chart.line(range(1, len(result["losses"]) + 1), result["losses"], dots=True)
    wrong = np.flatnonzero(result["read"] != result["digits"])[:18]
    if wrong.size == 0:
        return {"python-digits": chart.image()}
    pictures = [Image.fromarray((255 - result["pictures"][i].reshape(8, 8) * 15.9).astype(np.uint8)) for i in wrong]
    captions = [f"{result['digits'][i]}, read as {result['read'][i]}" for i in wrong]
    misread = sheet(pictures, captions, min(len(wrong), 6), title=f"The {HELD_OUT - result['right']} misread of {HELD_OUT} held out",
                    cell=(96, 96))
    return {"python-digits": chart.image(), "python-digits-misread": misread}


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, draw))
