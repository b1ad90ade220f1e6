"""Values and gradients at special points: beside PyTorch's, but where docs/semantics.toml has another reason."""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

import hologram as hg

INF, NAN = math.inf, math.nan
ROWS = tomllib.loads((Path(__file__).parents[2] / "docs/semantics.toml").read_text(encoding="utf-8"))["row"]
PARTS = ("value", "slope", "second")
WEIGHTS = [1.0, -2.0, 0.5]
ONE = ("abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 neg reciprocal relu round "
       "rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc").split()
OTHER = "elu gelu hardswish leaky_relu mish silu softplus".split()
TWO = ("add atan2 copysign div floor_divide fmod hypot logaddexp maximum minimum mul nextafter pow remainder sub").split()


def points_of(kind):
    """Numbers, subnormal, large and infinite ones."""
    limits = np.finfo(kind)
    sizes = [0.5, 3.0, 40.0, limits.smallest_subnormal, limits.max / 4]
    return [0.0, -0.0, 1.0, -1.0, 2.5, -20.0, limits.tiny / 8, limits.max**0.75, INF, -INF, NAN, *sizes, *(-v for v in sizes)]


def rows_of(kind):
    limits = np.finfo(kind)
    small, mid, large = limits.smallest_subnormal, limits.max**0.4, limits.max / 4
    return [[2, 2, 2], [0, 0, 0], [-0.0, 0, 0], [1, 2, 3], [3, 3, 1], [1, -1, 1], [0, 2, 3], [0, 0, 5], [small, -small, 2 * small],
            [small] * 3, [large, large, 1], [large, -large, 0], [mid, -mid, mid], [INF, 1, 2], [INF, INF, 1], [-INF, 1, 2], [-INF] * 3,
            [INF, -INF, 0], [NAN, 1, 2], [1e3, -1e3, 1e3], [-800, -800, -801]]


def of_two_numbers():
    torch = pytest.importorskip("torch")
    own, theirs = "mse l1 huber bce bce_with_logits kl_div".split(), torch.nn.functional
    names = "mse_loss l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div".split()
    calls = {name: (getattr(hg, name), getattr(torch, name)) for name in TWO}
    for name, other in zip(own, names):
        calls[name] = tuple(lambda a, b, f=f: f(a, b, reduction="none") for f in (getattr(hg, name), getattr(theirs, other)))
    calls["floor_divide"] = (hg.floor_divide, lambda a, b: torch.floor_divide(a.detach(), b.detach()))  # which has no gradient there
    return calls | {"lerp": (lambda a, b: hg.lerp(a, b, 0.25), lambda a, b: torch.lerp(a, b, 0.25))}


def of_one_number():
    torch = pytest.importorskip("torch")
    calls = {name: (getattr(hg, name), getattr(torch, name)) for name in ONE}
    calls |= {name: (getattr(hg, name), getattr(torch.nn.functional, name)) for name in OTHER}
    return calls | {"gelu_tanh": (hg.gelu_tanh, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
                    "clip": (lambda x: hg.clip(x, -1.0, 1.0), lambda x: torch.clamp(x, -1, 1))}


def of_rows():
    torch = pytest.importorskip("torch")
    functional, classes = torch.nn.functional, np.arange(len(rows_of("float32"))) % 3
    own, other = hg.asarray(classes), torch.tensor(classes)

    def weighted(f, g):
        return (lambda x: f(x) * hg.asarray(np.array(WEIGHTS)).astype(x.dtype), lambda x: g(x) * torch.tensor(WEIGHTS, dtype=x.dtype))

    def shares(x):
        return np.tile(np.array([0.2, 0.3, 0.5], x.dtype.name if isinstance(x, hg.Array) else str(x.dtype)[6:]), (len(classes), 1))

    calls = {
        "sum": (lambda x: x.sum(1), lambda x: x.sum(1)), "mean": (lambda x: x.mean(1), lambda x: x.mean(1)),
        "prod": (lambda x: hg.prod(x, 1), lambda x: x.prod(1)),
        "min": (lambda x: hg.min(x, 1), lambda x: x.amin(1)), "max": (lambda x: hg.max(x, 1), lambda x: x.amax(1)),
        "var": (lambda x: hg.var(x, 1), lambda x: x.var(1, correction=0)),
        "std": (lambda x: hg.std(x, 1), lambda x: x.std(1, correction=0)),
        "logsumexp": (lambda x: hg.logsumexp(x, 1), lambda x: torch.logsumexp(x, 1)),
        "softmax": weighted(lambda x: hg.softmax(x, 1), lambda x: torch.softmax(x, 1)),
        "log_softmax": weighted(lambda x: hg.log_softmax(x, 1), lambda x: torch.log_softmax(x, 1)),
        "layer_norm": weighted(hg.layer_norm, lambda x: functional.layer_norm(x, (3,))),
        "rms_norm": weighted(hg.rms_norm, lambda x: functional.rms_norm(x, (3,), eps=1e-5)),
        "nll": (lambda x: hg.nll(x, own, reduction="none"), lambda x: functional.nll_loss(x, other, reduction="none")),
        "cross_entropy": (lambda x: hg.cross_entropy(x, own, reduction="none"),
                          lambda x: functional.cross_entropy(x, other, reduction="none")),
        "cross_entropy smoothed": (lambda x: hg.cross_entropy(x, own, reduction="none", smoothing=0.1),
                                   lambda x: functional.cross_entropy(x, other, reduction="none", label_smoothing=0.1)),
        "cross_entropy of shares": (lambda x: hg.cross_entropy(x, hg.asarray(shares(x)), reduction="none"),
                                    lambda x: functional.cross_entropy(x, torch.tensor(shares(x)), reduction="none"))}
    for order in (0.0, 0.5, 1.0, 2.0, 3.0, INF, -INF):
        calls[f"norm {order:g}"] = (lambda x, o=order: hg.norm(x, 1, ord=o), lambda x, o=order: torch.linalg.vector_norm(x, o, 1))
    return calls


def orders_of_hologram(f, arrays):
    """The value, its slopes by each array, and theirs."""
    given, by = [hg.asarray(v) for v in arrays], tuple(range(len(arrays)))

    def slopes(*x):
        return hg.grad(lambda *v: f(*v).sum(), argnums=by)(*x)

    second = [hg.grad(lambda *x, i=i: slopes(*x)[i].sum(), argnums=by)(*given) for i in by]
    return [[f(*given).numpy()], [g.numpy() for g in slopes(*given)], [g.numpy() for row in second for g in row]]


def orders_of_torch(f, arrays):
    torch = pytest.importorskip("torch")
    given = [torch.tensor(v, requires_grad=True) for v in arrays]

    def slopes(value):
        if not value.requires_grad:
            return [torch.zeros_like(x) for x in given]
        found = torch.autograd.grad(value.sum(), given, create_graph=True, allow_unused=True)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, given)]

    value = f(*given)
    first = slopes(value)
    return [[v.numpy(force=True) for v in values] for values in ([value], first, [g for s in first for g in slopes(s)])]


def check(name, calls, kind, arrays, used):
    """Every order of derivative beside PyTorch's; where they differ, a row of the table has to say so, and goes into `used`."""
    own, right = orders_of_hologram(calls[0], arrays), orders_of_torch(calls[1], arrays)
    reasons = [(i, row) for i, row in enumerate(ROWS) if "points" in row and row["operation"] == name]
    tolerance = 1e-10 if kind == "float64" else 1e-4
    for part, ours, theirs in zip(PARTS, own, right):
        for a, b in zip(ours, theirs):
            size = np.abs(np.where(np.isfinite(b), b, 0))
            size = size if b.ndim == 1 else np.maximum(size.max(1, keepdims=True), 1)
            same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= tolerance * np.maximum(size, 1e-2))
            for i in np.flatnonzero(~(same if same.ndim == 1 else same.all(1))):
                at = {"r": arrays[0][i], "a": arrays[0][i], "b": arrays[-1][i], "np": np, "inf": INF}
                found = [k for k, row in reasons if part in row.get("parts", PARTS) and eval(row["points"], at)]  # noqa: S307  our table
                assert found, f"{name} in {kind}, {part} at {[v[i] for v in arrays]}: {a[i]}, not {b[i]}"
                used.update(found)


def check_kinds(name, calls, points):
    used = set()
    with np.errstate(all="ignore"):
        for kind in ("float64", "float32"):
            check(name, calls, kind, points(kind), used)
    unused = [row["about"] for i, row in enumerate(ROWS) if row["operation"] == name and "points" in row and i not in used]
    assert not unused, f"{name}: these rows of the table excuse nothing: {unused}"


@pytest.mark.parametrize("name", [*ONE, *OTHER, "gelu_tanh", "clip"])
def test_numbers_beside_torch(name):
    check_kinds(name, of_one_number()[name], lambda kind: [np.array(points_of(kind), kind)])


@pytest.mark.parametrize("name", [*TWO, *"mse l1 huber bce bce_with_logits kl_div lerp".split()])
def test_pairs_beside_torch(name):
    def pairs(kind):
        first = second = points_of(kind)
        if name == "bce":
            first = [0.0, 1.0, 0.5, np.finfo(kind).smallest_subnormal, 0.75]
        if name.startswith("bce"):
            second = [0.0, 1.0, 0.3]
        return [np.repeat(np.array(first, kind), len(second)), np.tile(np.array(second, kind), len(first))]

    check_kinds(name, of_two_numbers()[name], pairs)


@pytest.mark.parametrize("name", [
    *"sum mean prod min max var std logsumexp softmax log_softmax layer_norm rms_norm nll cross_entropy".split(), "cross_entropy smoothed",
    "cross_entropy of shares", "norm 0", "norm 0.5", "norm 1", "norm 2", "norm 3", "norm inf", "norm -inf"])
def test_rows_beside_torch(name):
    check_kinds(name, of_rows()[name], lambda kind: [np.array(rows_of(kind), kind)])


def test_second_derivatives_of_products_with_zeros():
    for numbers in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0], [2.0, 3.0, 5.0], [0.0, 0.0, 0.0, 0.0]):
        count = len(numbers)
        for k in range(count):
            own = hg.grad(lambda x, k=k: hg.grad(lambda v: v.prod())(x)[k])(hg.asarray(np.array(numbers)))
            right = [0.0 if i == k else math.prod(v for j, v in enumerate(numbers) if j not in (i, k)) for i in range(count)]
            np.testing.assert_allclose(own.numpy(), right, atol=1e-12)
