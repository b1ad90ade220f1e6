"""Two galaxies pass each other: every body attracts every other, steps by the leapfrog method.

    python examples/python/nbody.py --out build/demo

The leapfrog keeps the energy, but for an error that swings and does not grow; the chart shows how little it drifts. A step is one
computation: forces of n x n pairs and their sums are one launch, and no matrix of pairs is in memory. NumPy takes the same steps, and gets
the same bits."""

import math
import sys

import numpy as np
from common import digest, folded, main, require, same_bits
from plots import COLOURS, Chart, beside

import hologram as hg

SOFTENING, STEP = 0.05, 0.005


def forces(x, mass, root, total):
    """On each body of mass 1 by all, along three axes; root and total are the square root and the sum along an axis."""
    away = [along[None, :] - along[:, None] for along in x]
    square = away[0] * away[0] + away[1] * away[1] + away[2] * away[2] + SOFTENING * SOFTENING
    pull = mass / (square * root(square))
    return [total(along * pull, 1) for along in away]


def leap(x, v, mass, root, total):
    """Half a drift, a kick, half a drift. x and v: [n] along each of three axes."""
    x = [a + b * (STEP / 2) for a, b in zip(x, v)]
    v = [a + b * STEP for a, b in zip(v, forces(x, mass, root, total))]
    return [a + b * (STEP / 2) for a, b in zip(x, v)], v


def disc(seed, count, middle, velocity, tilt, spin):
    """A heavy body and light ones that circle it. Random numbers of a key, and arithmetic that rounds once: the same bits everywhere."""
    words = hg.random.uniform(hg.random.key(seed), (3, count - 1), -1.0, 1.0).numpy()
    corner = words[:2] / np.sqrt(np.maximum(words[0] * words[0] + words[1] * words[1], np.float32(1e-6)))  # a direction
    radius = np.float32(0.25) + np.float32(0.85) * np.abs(words[2])
    speed = spin * np.sqrt(np.float32(1) / radius)
    x, v = np.zeros((3, count), np.float32), np.zeros((3, count), np.float32)
    x[:, 1:] = radius * corner[0], radius * corner[1] * tilt[0], radius * corner[1] * tilt[1]
    v[:, 1:] = -speed * corner[1], speed * corner[0] * tilt[0], speed * corner[0] * tilt[1]
    mass = np.full(count, 1e-4, np.float32)
    mass[0] = 1
    return x + np.float32(middle)[:, None], v + np.float32(velocity)[:, None], mass


def galaxies(count):
    halves = (disc(1, count // 2, (-1.6, -1.3, 0), (0.4, 0.12, 0), np.float32([0.8, 0.6]), np.float32(1)),
              disc(2, count - count // 2, (1.6, 1.3, 0), (-0.4, -0.12, 0), np.float32([0.6, -0.8]), np.float32(-1)))
    x, v, mass = (np.concatenate(parts, axis=-1) for parts in zip(*halves))
    return list(x), list(v), mass


def energy(x, v, mass):
    """Of motion and of all pairs, in f64."""
    x, v, mass = np.array(x, np.float64), np.array(v, np.float64), mass.astype(np.float64)
    square = ((x[:, None, :] - x[:, :, None]) ** 2).sum(0) + SOFTENING * SOFTENING
    pairs = np.triu(mass[:, None] * mass / np.sqrt(square), 1)
    return 0.5 * (mass * (v * v).sum(0)).sum() - pairs.sum()


def compute(quick):
    count, steps, every = (64, 20, 5) if quick else (600, 1000, 10)
    begin = galaxies(count)
    mass = hg.asarray(begin[2])
    step = hg.jit(lambda x, v: leap(x, v, mass, hg.sqrt, hg.sum))
    x, v = ([hg.asarray(along) for along in part] for part in begin[:2])
    seen = []
    for number in range(steps + 1):
        if number % every == 0:
            seen.append([np.array([along.numpy() for along in part]) for part in (x, v)])
        x, v = step(x, v)
    energies = np.array([energy(*state, begin[2]) for state in seen])
    drift = energies / energies[0] - 1
    return {"hash": digest(seen[-1]), "begin": begin, "every": every, "seen": seen, "drift": drift,
            "text": f"  {count} bodies, {steps} steps: the energy swings by {np.abs(drift).max():.1e} of itself, "
                    f"and is {abs(drift[-1]):.1e} away in the end"}


def check(result, quick):
    require(np.abs(result["drift"]).max() < 1e-3, "the energy drifts")
    x, v, mass = result["begin"]
    for _ in range(result["every"]):
        x, v = leap(x, v, mass, np.sqrt, folded)
    for what, ours, numpys in zip(("places", "velocities"), result["seen"][1], (x, v)):
        same_bits(what, ours, np.array(numpys))
    return f"same bits as NumPy after {result['every']} steps"


def draw(result):
    panels, half = [], len(result["begin"][2]) // 2
    for share in (0, 1 / 3, 2 / 3, 1):
        number = math.floor(share * (len(result["seen"]) - 1))
        x, y, _ = result["seen"][number][0]
        chart = Chart(f"after {number * result['every']} steps", "x", "y", size=(360, 330), limits=((-2.8, 2.8), (-2.5, 2.5)))
        chart.points(x[:half], y[:half], radius=1.2, colour=COLOURS[0])
        chart.points(x[half:], y[half:], radius=1.2, colour=COLOURS[1])
        panels.append(chart.image())
    chart = Chart("Energy, as a share of what it was", "step", "away from the beginning", size=(720, 280))
    chart.line(np.arange(len(result["drift"])) * result["every"], result["drift"])
    return {"python-nbody": beside(*panels), "python-nbody-energy": chart.image()}


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, draw))
