"""Values and gradients of every operation at special points: beside PyTorch's, but where docs/semantics.toml has another reason."""

import functools
import math
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import special_points

import hologram as hg

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import gen_operations  # noqa: E402

ROWS = tomllib.loads((ROOT / "docs/semantics.toml").read_text(encoding="utf-8"))["row"]
PARTS = ("value", "slope", "second")
JUDGED = [o.name for o in gen_operations.load() if o.gradient != "none" and o.inputs and o.kind not in ("random", "create")
          and {"float", "number", "any"} & set(o.types.replace(";", " ").split())]


def nothing(part, *arrays):
    return 0.0


def one(part, *arrays):
    return 1.0


class Room(NamedTuple):
    """How far off results may be: so many units in the last place of PyTorch's, or of what `scale` says that they come from, by
    part and arrays, where that is larger. What is smaller than `small` smallest normal numbers counts as so large."""

    ulps: float
    scale: object = nothing
    small: float = 0


def reach(rows):
    """The largest number of each row, and the largest distance from its mean."""
    return np.abs(rows).max(-1), np.abs(rows - rows.mean(-1, keepdims=True)).max(-1)


def spread(part, rows):
    """Of var and std: what a mean that is rounded changes."""
    large, far = reach(rows)
    return {"value": large, "slope": large / far, "second": large / far**2}[part]


def deviation(part, rows):
    """Of norms by a deviation: each derivative divides by it once more."""
    large, far = reach(rows)
    size = np.sqrt(far**2 / 3 + 1e-5)
    return {"value": large / size, "slope": 4 * large / size**2, "second": 4 * large / size**3}[part]


def root(part, rows):
    """The same of rms_norm."""
    size = np.sqrt((rows**2).mean(-1) + 1e-5)
    return {"value": 0.0, "slope": 4 / size, "second": 16 / size**2}[part]


def by_weight(scale):
    """Of what is differentiated by a weight besides: a second derivative may be as large as a slope."""
    return lambda part, rows, weights: np.maximum(scale(part, rows), scale("slope", rows) if part == "second" else 0)


def shares(part, rows):
    """Of softmax's kind: PyTorch takes e to what is left of a row when the value is subtracted, which is rounded where it is large."""
    large = reach(rows)[0]
    return np.where(large < 1e4, np.maximum(large, 1), 1)


def over_norm(part, rows):
    """Of rows over their norm: each derivative divides by it once more, and may cancel."""
    size = np.sqrt((rows**2).sum(-1))
    return {"value": 0.0, "slope": 4 / size, "second": 16 / size**2}[part]


def apart(part, a, b, c=None):
    """Of distances, and of their differences."""
    sides = [np.sqrt(((p - q + 1e-6) ** 2).sum(-1)) for p, q in [(a, b)] + ([] if c is None else [(a, c), (b, c)])]
    size = functools.reduce(np.minimum, sides)
    return {"value": 0.0 if c is None else sides[0], "slope": 0.0 if c is None else 1.0, "second": 16 / size}[part]


def turned(part, a, b):
    """Of angles: each derivative divides by a length once more, and may cancel."""
    size = np.minimum(*(np.maximum(np.sqrt((v**2).sum(-1)), 1e-8) for v in (a, b)))
    return {"value": 1.0, "slope": 4 / size, "second": 16 / size**2}[part]


def second_of_norm(part, rows):
    return 4 / np.where(rows == 0, np.inf, np.abs(rows)).min(-1) if part == "second" else 0.0


# Where more than four units are needed, and why.
ROOM = {
    "rsqrt": Room(8),  # a cube
    # 1 - y of a y that is rounded
    **dict.fromkeys("sigmoid silu softplus logsigmoid mish logaddexp gelu gelu_tanh bce_with_logits".split(), Room(4, one)),
    "glu": Room(4, lambda part, a, b: np.fmax(np.abs(a), 1)),
    "softsign": Room(4, lambda part, a: {"value": 0.0, "slope": 1 / (1 + np.abs(a)), "second": 4 / (1 + np.abs(a)) ** 2}[part]),
    "poisson_nll": Room(4, lambda part, a, b: 8.0 if part == "slope" else 0.0),  # logarithms that cancel
    **dict.fromkeys("pairwise_distance cdist triplet_margin".split(), Room(4, apart)),
    **dict.fromkeys("cosine_similarity cosine_embedding".split(), Room(4, turned)),
    "atan2": Room(8, small=64),  # the coordinates over the larger one, and squares of that
    "hypot": Room(4, lambda part, a, b: 1 / np.hypot(a, b) if part == "second" else 0.0),  # 1 / y - a * a / y ** 3
    "prod": Room(4, lambda part, r: reach(r)[0] if part == "second" else 0.0),  # a sum of products, which may cancel
    "var": Room(4, lambda part, r: {"value": reach(r)[0] * reach(r)[1], "slope": reach(r)[0], "second": 0.0}[part]),
    "std": Room(4, spread),
    "kl_div": Room(4, lambda part, a, b: np.abs(a * b) if part == "value" else 0.0),  # a sum of terms of both signs
    "normalize": Room(4, over_norm), **dict.fromkeys(["norm", "global_norm"], Room(4, second_of_norm)),
    **dict.fromkeys("logsumexp cumulative_logsumexp softmax softmin log_softmax cross_entropy".split(), Room(4, shares)),
    **dict.fromkeys("layer_norm batch_norm group_norm instance_norm".split(), Room(4, deviation, 1e8)), "rms_norm": Room(4, root, 1e8),
    "layer_norm by weight": Room(4, by_weight(deviation), 1e8), "rms_norm by weight": Room(4, by_weight(root), 1e8),
}


def orders_of_hologram(f, arrays):
    """The value, its slopes by each array, and theirs."""
    given, by = [hg.asarray(v) for v in arrays], tuple(range(len(arrays)))

    def slopes(*x):
        return hg.grad(lambda *v: f(*v).sum(), argnums=by)(*x)

    second = [hg.grad(lambda *x, i=i: slopes(*x)[i].sum(), argnums=by)(*given) for i in by]
    return [[f(*given).numpy()], [g.numpy() for g in slopes(*given)], [g.numpy() for row in second for g in row]]


def orders_of_torch(f, arrays):
    given = [torch.tensor(v, requires_grad=True) for v in arrays]

    def slopes(value):
        if not value.requires_grad:
            return [torch.zeros_like(x) for x in given]
        found = torch.autograd.grad(value.sum(), given, create_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, given)]

    value = f(*given)
    first = slopes(value)
    return [[v.numpy(force=True) for v in values] for values in ([value], first, [g for s in first for g in slopes(s)])]


def units(a, b, scale, small):
    """How far a is from b, in units in the last place of b, of the scale, or of the small number, whichever is largest."""
    scale = np.broadcast_to(scale, b.shape[:1]) if np.ndim(scale) < 2 else np.max(scale, axis=tuple(range(1, np.ndim(scale))))
    scale = np.where(np.isfinite(scale), scale, 0).reshape(b.shape[:1] + (1,) * (b.ndim - 1))
    size = np.maximum(np.maximum(np.where(np.isfinite(b), np.abs(b), 0), scale), small * float(np.finfo(b.dtype).tiny)).astype(b.dtype)
    off = np.abs(a.astype(np.float64) - b.astype(np.float64)) / np.spacing(size).astype(np.float64)
    off = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, off)
    return np.where(np.isnan(off), np.inf, off)


def far_points(own, right, room, scale):
    """The indices of elements that are neither PyTorch's nor, rounded, what it has in f64, and how far off the nearer is."""
    off = np.minimum.reduce([units(own, v.astype(own.dtype), scale, room.small) for v in right])
    return [tuple(at) for at in np.argwhere(off > room.ulps)], off


def holds(points, arrays):
    """1 if a row's points are one of these: of numbers a and b (and c), or of their rows r."""
    numbers = [np.ravel(v) for v in arrays]
    return any(eval(points, {"r": numbers[0], "a": n[0], "b": n[min(1, len(n) - 1)], "c": n[-1], "np": np, "inf": math.inf})  # noqa: S307
               for n in zip(*numbers))


def check(operation, name, kind, case, wide, used):
    """Every order of derivative beside PyTorch's; where they differ, a row of the table has to say so, and goes into `used`."""
    own, right = orders_of_hologram(case.own, case.arrays), orders_of_torch(case.theirs, case.arrays)
    wider = right if kind == "float64" else orders_of_torch(wide, [v.astype(np.float64) for v in case.arrays])
    reasons = [(i, row) for i, row in enumerate(ROWS) if "points" in row and row["operation"] in (operation, name)]
    room = ROOM.get(name, ROOM.get(operation, Room(4)))
    for part, ours, *theirs in zip(PARTS, own, right, wider):
        scale = room.scale(part, *(v.astype(np.float64) for v in case.arrays))
        for a, *b in zip(ours, *theirs):
            far, off = far_points(a, b, room, scale)
            for i in far:
                point = [v[i[0]] for v in case.arrays if len(v) == len(a)]
                found = [k for k, row in reasons if part in row.get("parts", PARTS) and point and holds(row["points"], point)]
                assert found, f"{name} in {kind}, {part} at {point}, {i[1:]}: {a[i]}, not {b[0][i]} (in f64 {b[-1][i]}): {off[i]:.4g} ulps"
                used.update(found)


@functools.cache
def all_cases():
    return {kind: special_points.cases_of(kind, torch) for kind in ("float64", "float32")}


@pytest.mark.filterwarnings("ignore:reduction")  # PyTorch's of kl_div's mean
@pytest.mark.parametrize("operation", [name for name in JUDGED if name not in special_points.ELSEWHERE])
def test_beside_torch(operation):
    used, wide = set(), all_cases()["float64"]
    names = [name for name in wide if name.split()[0] == operation]
    assert names, f"{operation} has no case in special_points.py, and no line in its ELSEWHERE"
    with np.errstate(all="ignore"):
        for name in names:
            for kind, cases in all_cases().items():
                check(operation, name, kind, cases[name], wide[name].theirs, used)
    unused = [row["about"] for i, row in enumerate(ROWS) if row["operation"] in (operation, *names) and "points" in row and i not in used]
    assert not unused, f"{operation}: these rows of the table excuse nothing: {unused}"


def test_elsewhere():
    """What is said to be judged elsewhere is not judged here, and is an operation."""
    assert set(special_points.ELSEWHERE) <= set(JUDGED) - {name.split()[0] for name in all_cases()["float64"]}


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_cube_roots(kind):
    """cbrt, which PyTorch lacks, beside the root in a wider type."""
    x = special_points.numbers_of(kind)
    y = np.cbrt(x.astype(np.longdouble))
    with np.errstate(all="ignore"):
        right = [y, 1 / (3 * y * y), -2 / (9 * y**5)]
        for ours, exact in zip(orders_of_hologram(hg.cbrt, [x]), right):
            assert not far_points(ours[0], [exact], Room(8), 0.0)[0], (ours, exact)
