"""k-means on 150 irises: three groups are found without being told the species.

    python examples/python/kmeans.py --out build/demo

Fisher's measurements (1936), as scikit-learn carries them. Begins with flowers that are far from each other, and goes on until no flower
changes its group. NumPy goes the same way, and gets the same bits."""

import sys
from itertools import permutations

import numpy as np
from common import digest, folded, main, require, same_bits
from data import labelled
from plots import Chart

import hologram as hg

GROUPS, MOST_ROUNDS = 3, 50


def far_apart(x):
    """The numbers of flowers to begin with: the first one, then always the one that is furthest from those that there are."""
    chosen = [0]
    while len(chosen) < GROUPS:
        chosen.append(int(((x[:, None] - x[chosen]) ** 2).sum(2).min(1).argmax()))
    return chosen


def nearest(x, centres, xp, total):
    """Of each row the number of the centre that is nearest."""
    away = x[:, None, :] - centres[None, :, :]
    return xp.argmin(total(away * away, 2), axis=1)


def middles(x, labels, xp, total):
    """The mean of each group's rows."""
    found = []
    for group in range(GROUPS):
        inside = (labels == group)[:, None]
        found.append(total(xp.where(inside, x, 0.0), 0) / total(xp.where(inside, xp.ones_like(x), 0.0), 0))
    return xp.stack(found)


def settle(x, first, xp, total):
    """Centres, groups, and after how many rounds nothing changes any more."""
    centres, before = x[first], None
    for number in range(MOST_ROUNDS):
        labels = nearest(x, centres, xp, total)
        centres = middles(x, labels, xp, total)
        now = np.asarray(labels)
        if number > 0 and np.array_equal(now, before):
            break
        before = now
    return np.asarray(centres), now, number


def compute(quick):
    x, species, names = labelled("iris.csv")
    first = far_apart(x)
    centres, labels, rounds = settle(hg.asarray(x), hg.asarray(first), hg.array_api, hg.sum)
    right = max(int((np.array(order)[labels] == species).sum()) for order in permutations(range(GROUPS)))
    return {"hash": digest((centres, labels)), "x": x, "first": first, "centres": centres, "labels": labels, "right": right,
            "species": species, "names": names,
            "text": f"  150 irises in {GROUPS} groups after {rounds} rounds; {right} are with their species"}


def check(result, quick):
    centres, labels, _ = settle(result["x"], result["first"], np, folded)
    same_bits("centres", result["centres"], centres)
    same_bits("groups", result["labels"], labels)
    require(result["right"] >= 130, f"only {result['right']} irises are with their species")
    return "same bits as NumPy"


def draw(result):
    chart = Chart("150 irises in three groups", "length of petals, cm", "width of petals, cm")
    for group in range(GROUPS):
        inside = result["labels"] == group
        kind = result["names"][np.bincount(result["species"][inside]).argmax()]
        chart.points(result["x"][inside, 2], result["x"][inside, 3], f"mostly {kind}", radius=3.5)
    chart.points(result["centres"][:, 2], result["centres"][:, 3], "centres", colour="#222222", radius=6)
    return {"python-kmeans": chart.image(legend="left")}


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, draw))
