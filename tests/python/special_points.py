"""Every operation of the table through which a gradient flows, here and in PyTorch, and the points at which they are compared.

cases_of(kind, torch) are named after their operation, with a word or two behind where it has several; each is a function of arrays
here, the same of tensors, and the arrays, whose first axis counts points."""

import math
from typing import NamedTuple

import numpy as np

import hologram as hg

INF, NAN = math.inf, math.nan
WEIGHTS = [1.0, -2.0, 0.5]
ONE = ("abs acos acosh asin asinh atan atanh ceil cos cosh erf erfc exp exp2 expm1 floor log log10 log1p log2 neg reciprocal relu round "
       "rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc").split()
OTHER = ("celu elu gelu hardshrink hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink softsign "
         "tanhshrink").split()
SPECIAL = "entr erfinv logit".split()
TWO = "add atan2 copysign div fmax fmin fmod hypot logaddexp maximum minimum mul nextafter pow remainder sub".split()
LOSSES = {"mse": "mse_loss", "l1": "l1_loss", "huber": "huber_loss", "bce": "binary_cross_entropy",
          "bce_with_logits": "binary_cross_entropy_with_logits", "kl_div": "kl_div",
          "smooth_l1": "smooth_l1_loss", "poisson_nll": "poisson_nll_loss"}

# What PyTorch cannot judge, or what another operation's cases go through.
ELSEWHERE = {
    **dict.fromkeys("equal not_equal less less_equal greater greater_equal isnan isinf isfinite any all isclose allclose isposinf "
                    "isneginf".split(), "gives bools"),
    **dict.fromkeys("argmin argmax count_nonzero bitcast nanargmin nanargmax".split(), "gives integers"),
    **dict.fromkeys("cumulative_argmin cumulative_argmax argsort lexsort searchsorted argtop_k bucketize".split(), "gives integers"),
    **dict.fromkeys("even_bins uneven_bins".split(), "gives integers"),
    **dict.fromkeys("sort_by_key median merge".split(), "PyTorch has none: tests/ops/test_top.py"),
    "kth_value": "PyTorch's index of equal ones is any of theirs: tests/ops/test_top.py",
    "quantile": "PyTorch's is NaN beside infinities: tests/ops/test_top.py",
    "segmented_scan": "of parts of an axis: test_scans.py",
    "divmod": "floor_divide and remainder", "var_mean": "var and mean", "std_mean": "std and mean",
    **dict.fromkeys(["nanmin", "nanmax", "nanvar", "nanstd"], "PyTorch has none: test_mathematics.py"),
    "cross": "PyTorch fuses its products: test_mathematics.py, beside NumPy",
    **dict.fromkeys("convolution convolution_back convolution_weights conv conv_transposed".split(), "of images: test_convolution.py"),
    "bce_of": "bce", "bce_logit_of": "bce_with_logits", "logit_nll": "cross_entropy", "cross_entropy_of_classes": "cross_entropy",
    "cross_entropy_of_shares": "cross_entropy", "floor_of_quotient": "floor_divide",
    **dict.fromkeys("scatter_multiply scatter_mean scatter_min scatter_max scatter_reduce index_reduce embedding_bag".split(),
                    "PyTorch's gradients are NaN at zeros, ties and NaNs: test_scatters.py"),
    "index_copy": "PyTorch's gradient goes to those that are overwritten, too: scatter",
    "at_least": "cosine_similarity", "cdist_slope": "cdist", "cbrt": "PyTorch has none: test_cube_roots",
    **dict.fromkeys("lower_solve upper_solve triangular_solve cholesky_lower cholesky lu lu_solve solve lu_sign det log_abs_det "
                    "forward_solve forward_blocks cholesky_blocks lu_blocks inv qr_blocks eigh_blocks eigh_reduced "
                    "qr_packed qr_complete_blocks qr eigh_packed eigh svd_packed svd pinv".split(), "of matrices: test_linalg.py"),
    **dict.fromkeys("digamma i0 i1 lgamma log_ndtr ndtr ndtr_tail ndtri ndtri_of polygamma sinc tetragamma trigamma".split(),
                    "PyTorch's have large errors, and NaN at infinity: test_special_functions.py"),
}


class Case(NamedTuple):
    own: object
    theirs: object
    arrays: list


def numbers_of(kind):
    """Zeros, numbers, subnormal, large and infinite ones, and NaN."""
    limits = np.finfo(kind)
    sizes = [0.5, 3.0, 40.0, limits.smallest_subnormal, limits.max / 4]
    others = [0.0, -0.0, 1.0, -1.0, 2.5, -20.0, limits.tiny / 8, limits.max**0.75, INF, -INF, NAN]
    return np.array([*others, *sizes, *(-v for v in sizes)], kind)


def rows_of(kind):
    limits = np.finfo(kind)
    small, mid, large = limits.smallest_subnormal, limits.max**0.4, limits.max / 4
    return np.array([[2, 2, 2], [0, 0, 0], [-0.0, 0, 0], [1, 2, 3], [3, 3, 1], [1, -1, 1], [0, 2, 3], [0, 0, 5], [small, -small, 2 * small],
                     [small] * 3, [large, large, 1], [large, -large, 0], [mid, -mid, mid], [INF, 1, 2], [INF, INF, 1], [-INF, 1, 2],
                     [-INF] * 3, [INF, -INF, 0], [NAN, 1, 2], [1e3, -1e3, 1e3], [-800, -800, -801]], kind)


def mixed(*columns):
    """All combinations, an array for each."""
    return [a.ravel().copy() for a in np.meshgrid(*columns, indexing="ij")]


def pairs_of(kind, first=None, second=None):
    return mixed(*(numbers_of(kind) if v is None else np.array(v, kind) for v in (first, second)))


def triples_of(kind):
    limits = np.finfo(kind)
    few = np.array([0.0, -0.0, 1.0, -2.5, limits.tiny / 8, limits.max**0.75, INF, -INF, NAN], kind)
    return mixed(few, few, few)


def row_pairs_of(kind):
    """Each row beside itself, another, and ones."""
    rows = rows_of(kind)
    return [np.tile(rows, (3, 1)), np.concatenate([rows, rows[::-1], np.ones_like(rows)])]


def of_numbers(kind, torch):
    functional, x = torch.nn.functional, [numbers_of(kind)]
    calls = {name: (getattr(hg, name), getattr(torch, name)) for name in ONE}
    calls |= {name: (getattr(hg, name), getattr(functional, name)) for name in OTHER}
    calls |= {name: (getattr(hg, name), getattr(torch.special, name)) for name in SPECIAL}
    calls |= {
        "logit of eps": (lambda v: hg.logit(v, eps=0.1), lambda v: torch.logit(v, 0.1)),
        "gelu_tanh": (hg.gelu_tanh, lambda v: functional.gelu(v, approximate="tanh")),
        "clip": (lambda v: hg.clip(v, -1.0, 1.0), lambda v: torch.clamp(v, -1, 1)),
        "clip below": (lambda v: hg.clip(v, high=1.0), lambda v: torch.clamp(v, max=1)),
        "clip above": (lambda v: hg.clip(v, -1.0), lambda v: torch.clamp(v, -1)),
        "elu of alpha": (lambda v: hg.elu(v, alpha=0.5), lambda v: functional.elu(v, alpha=0.5)),
        "leaky_relu of slope": (lambda v: hg.leaky_relu(v, slope=-0.5), lambda v: torch.where(v > 0, v, v * -0.5)),
        "softplus of 2": (lambda v: hg.softplus(v, beta=2.0), lambda v: functional.softplus(v, beta=2, threshold=30)),
        "softplus of a half": (lambda v: hg.softplus(v, beta=0.5), lambda v: functional.softplus(v, beta=0.5, threshold=30)),
        "celu of alpha": (lambda v: hg.celu(v, alpha=0.5), lambda v: functional.celu(v, alpha=0.5)),
        "hardsigmoid": (hg.hardsigmoid, lambda v: functional.relu6(v + 3) / 6),  # whose own has no second derivative
        "hardtanh of bounds": (lambda v: hg.hardtanh(v, low=-20.0, high=0.5), lambda v: functional.hardtanh(v, -20, 0.5)),
        "threshold": (lambda v: hg.threshold(v, threshold=1.0, value=-2.0), lambda v: functional.threshold(v, 1.0, -2.0)),
        "softshrink of 3": (lambda v: hg.softshrink(v, threshold=3.0), lambda v: functional.softshrink(v, 3.0)),
        "stop_gradient": (hg.stop_gradient, torch.detach),
        "degrees": (hg.degrees, torch.rad2deg), "radians": (hg.radians, torch.deg2rad),
        "nan_to_num": (hg.nan_to_num, torch.nan_to_num),
        "nan_to_num of numbers": (lambda v: hg.nan_to_num(v, 1.5, 7.0, -INF), lambda v: torch.nan_to_num(v, 1.5, 7.0, -INF)),
        "round_to": (lambda v: hg.round(v, 2), lambda v: torch.round(v, decimals=2)),
        "cast": (lambda v: hg.cast(v, "float32"), lambda v: v.to(torch.float32)),
    }
    return {name: Case(*both, x) for name, both in calls.items()}


def of_pairs(kind, torch):
    functional = torch.nn.functional
    calls = {name: (getattr(hg, name), getattr(torch, name)) for name in TWO}
    for name, other in LOSSES.items():
        calls[name] = tuple(lambda a, b, f=f: f(a, b, reduction="none") for f in (getattr(hg, name), getattr(functional, other)))
    calls |= {name: (getattr(hg, name), getattr(torch.special, name)) for name in ("xlogy", "xlog1py")}
    calls["floor_divide"] = (hg.floor_divide, lambda a, b: torch.floor_divide(a.detach(), b.detach()))  # which has no gradient there
    calls |= {
        "huber of delta": (lambda a, b: hg.huber(a, b, delta=2.5, reduction="none"), lambda a, b: functional.huber_loss(a, b, "none", 2.5)),
        "smooth_l1 of beta": (lambda a, b: hg.smooth_l1(a, b, beta=2.5, reduction="none"),
                              lambda a, b: functional.smooth_l1_loss(a, b, reduction="none", beta=2.5)),
        "smooth_l1 of no beta": (lambda a, b: hg.smooth_l1(a, b, beta=0.0, reduction="none"),
                                 lambda a, b: functional.smooth_l1_loss(a, b, reduction="none", beta=0.0)),
        "poisson_nll of rates": (lambda a, b: hg.poisson_nll(a, b, log_input=0, full=1, reduction="none"),
                                 lambda a, b: functional.poisson_nll_loss(a, b, False, True, reduction="none")),
        "hinge_embedding": (lambda a, b: hg.hinge_embedding(a, b, reduction="none"),
                            lambda a, b: functional.hinge_embedding_loss(a, b, reduction="none")),
        "glu": (lambda a, b: hg.glu(hg.stack(a, b, axis=1)), lambda a, b: functional.glu(torch.stack([a, b], 1))),
        "kl_div of logs": (lambda a, b: hg.kl_div(a, b, log_target=1, reduction="none"),
                           lambda a, b: functional.kl_div(a, b, reduction="none", log_target=True)),
        "bce_with_logits weighted": (
            lambda a, b: hg.bce_with_logits(a, b, positive=hg.full(a.shape, 3.0, dtype=a.dtype), reduction="none"),
            lambda a, b: functional.binary_cross_entropy_with_logits(a, b, reduction="none", pos_weight=torch.full_like(a, 3.0))),
        "clamp low": (lambda a, b: hg.clamp(a, b), lambda a, b: torch.clamp(a, b)),
        "clamp high": (lambda a, b: hg.clamp(a, None, b), lambda a, b: torch.clamp(a, max=b)),
        "clip_norm": (lambda a, b: hg.clip_norm(a, b, max_norm=2.0), lambda a, b: a * torch.clamp(2.0 / (b + 1e-6), max=1.0)),
        "where": (lambda a, b: hg.where(hg.asarray(np.arange(a.shape[0]) % 2 == 0), a, b),
                  lambda a, b: torch.where(torch.arange(len(a)) % 2 == 0, a, b)),
    }
    targets = [0.0, 1.0, 0.3]
    logits, small = pairs_of(kind, None, targets), np.finfo(kind).smallest_subnormal
    at = {"bce": pairs_of(kind, [0.0, 1.0, 0.5, small, 0.75], targets), "bce_with_logits": logits, "bce_with_logits weighted": logits,
          "poisson_nll of rates": pairs_of(kind, [0.5, 3.0, 40.0, INF, NAN], [0.3, 1.0, 2.5, 40.0]),
          "hinge_embedding": pairs_of(kind, None, [1.0, -1.0]), "clip_norm": pairs_of(kind, None, [0.0, small, 0.5, 3.0, 40.0, INF, NAN])}
    return {name: Case(*both, at.get(name, pairs_of(kind))) for name, both in calls.items()}


def of_triples(kind, torch):
    calls = {"fma": (hg.fma, lambda a, b, c: torch.addcmul(c, a, b)), "mad": (hg.mad, lambda a, b, c: torch.addcmul(c, a, b)),
             "clamp": (hg.clamp, torch.clamp), "lerp": (hg.lerp, torch.lerp)}
    cases = {name: Case(*both, triples_of(kind)) for name, both in calls.items()}
    functional, few = torch.nn.functional, np.array([0.0, 1.0, -2.5, INF, NAN], kind)
    cases["margin_ranking"] = Case(lambda a, b, c: hg.margin_ranking(a, b, c, margin=0.5, reduction="none"),
                                   lambda a, b, c: functional.margin_ranking_loss(a, b, c, 0.5, reduction="none"),
                                   mixed(numbers_of(kind), few, np.array([1.0, -1.0], kind)))
    cases["gaussian_nll"] = Case(lambda a, b, c: hg.gaussian_nll(a, b, c, full=1, reduction="none"),
                                 lambda a, b, c: functional.gaussian_nll_loss(a, b, c, True, reduction="none"),
                                 mixed(numbers_of(kind), few, np.array([0.0, 1e-6, 0.5, 3.0, INF], kind)))
    weighted = mixed(numbers_of(kind), np.array([0.0, 1.0, 0.3], kind), np.array([0.0, 1.0, 3.0, NAN], kind))
    return cases | {"bce_with_logits by weight": Case(
        lambda a, b, c: hg.bce_with_logits(a, b, positive=c, reduction="none"),
        lambda a, b, c: (1 - b) * a - (1 + (c - 1) * b) * torch.nn.functional.logsigmoid(a), weighted)}


def of_rows(kind, torch):
    functional, rows = torch.nn.functional, rows_of(kind)
    classes = np.arange(len(rows)) % 3
    own, other = hg.asarray(classes), torch.tensor(classes)
    own_weights, weights = hg.asarray(np.array(WEIGHTS, kind)), torch.tensor(np.array(WEIGHTS, kind))
    own_sizes, sizes = abs(own_weights), abs(weights)
    parts = np.tile(np.array([0.2, 0.3, 0.5], kind), (len(rows), 1))

    def weighted(f, g):
        return lambda x: f(x) * own_weights, lambda x: g(x) * weights

    def of_classes(**more):
        theirs = {{"smoothing": "label_smoothing"}.get(k, k): v[1] if isinstance(v, tuple) else v for k, v in more.items()}
        ours = {k: v[0] if isinstance(v, tuple) else v for k, v in more.items()}
        return (lambda x: hg.cross_entropy(x, own, reduction="none", **ours),
                lambda x: functional.cross_entropy(x, other, reduction="none", **theirs))

    def margins(x, p=1):  # PyTorch's own has no second derivative, and takes NaN for 0
        own = torch.arange(3) == other[:, None]
        return torch.where(own, 0, functional.relu(1 - x.gather(1, other[:, None]) + x) ** p).sum(1) / 3

    calls = {
        "sum": (lambda x: x.sum(1), lambda x: x.sum(1)), "mean": (lambda x: x.mean(1), lambda x: x.mean(1)),
        "prod": (lambda x: hg.prod(x, 1), lambda x: x.prod(1)),
        "min": (lambda x: hg.min(x, 1), lambda x: x.amin(1)), "max": (lambda x: hg.max(x, 1), lambda x: x.amax(1)),
        "var": (lambda x: hg.var(x, 1), lambda x: x.var(1, correction=0)),
        "var of a sample": (lambda x: hg.var(x, 1, correction=1), lambda x: x.var(1)),
        "std": (lambda x: hg.std(x, 1), lambda x: x.std(1, correction=0)),
        "std of a sample": (lambda x: hg.std(x, 1, correction=1), lambda x: x.std(1)),
        "logsumexp": (lambda x: hg.logsumexp(x, 1), lambda x: torch.logsumexp(x, 1)),
        "softmax": weighted(lambda x: hg.softmax(x, 1), lambda x: torch.softmax(x, 1)),
        "log_softmax": weighted(lambda x: hg.log_softmax(x, 1), lambda x: torch.log_softmax(x, 1)),
        "layer_norm": weighted(hg.layer_norm, lambda x: functional.layer_norm(x, (3,))),
        "layer_norm weighted": weighted(lambda x: hg.layer_norm(x, own_sizes, own_weights),
                                        lambda x: functional.layer_norm(x, (3,), sizes, weights)),
        "rms_norm": weighted(hg.rms_norm, lambda x: functional.rms_norm(x, (3,), eps=1e-5)),
        "rms_norm weighted": weighted(lambda x: hg.rms_norm(x, own_sizes), lambda x: functional.rms_norm(x, (3,), sizes, eps=1e-5)),
        "nll": (lambda x: hg.nll(x, own, reduction="none"), lambda x: functional.nll_loss(x, other, reduction="none")),
        "nll weighted": (lambda x: hg.nll(x, own, own_sizes, reduction="none"),
                         lambda x: functional.nll_loss(x, other, sizes, reduction="none")),
        "cross_entropy": of_classes(), "cross_entropy smoothed": of_classes(smoothing=0.1),
        "cross_entropy weighted": of_classes(weight=(own_sizes, sizes)),
        "cross_entropy weighted and smoothed": of_classes(weight=(own_sizes, sizes), smoothing=0.1),
        "cross_entropy of shares": (lambda x: hg.cross_entropy(x, hg.asarray(parts), reduction="none"),
                                    lambda x: functional.cross_entropy(x, torch.tensor(parts), reduction="none")),
        "softmin": weighted(lambda x: hg.softmin(x, 1), lambda x: functional.softmin(x, 1)),
        "normalize": weighted(hg.normalize, functional.normalize),
        "multi_margin": (lambda x: hg.multi_margin(x, own, reduction="none"), lambda x: margins(x)),
        "multi_margin of squares": (lambda x: hg.multi_margin(x, own, own_sizes, p=2, reduction="none"),
                                    lambda x: margins(x, 2) * sizes[other]),
        "triu": weighted(hg.triu, torch.triu), "tril": weighted(hg.tril, torch.tril),
        "nansum": (lambda x: hg.nansum(x, 1), lambda x: torch.nansum(x, 1)),
        "nanmean": (lambda x: hg.nanmean(x, 1), lambda x: torch.nanmean(x, 1)),
    }
    for name in ("sum", "prod", "max", "min", "mean"):
        calls[f"segment_{name}"] = (lambda x, f=getattr(hg, f"segment_{name}"): f(x, hg.asarray([1, 0, 1]), 2, 1),
                                    lambda x, g=getattr(torch, {"max": "amax", "min": "amin"}.get(name, name)):
                                    torch.stack([g(x[:, 1:2], 1), g(x[:, ::2], 1)], 1))
    for order in (0.0, 0.5, 1.0, 2.0, 3.0, -1.0, INF, -INF):
        calls[f"norm {order:g}"] = (lambda x, o=order: hg.norm(x, 1, ord=o), lambda x, o=order: torch.linalg.vector_norm(x, o, 1))
    return {name: Case(*both, [rows]) for name, both in calls.items()}


def by_point(stack, f):
    """f of each point alone, such as a mean, which would mix them."""
    return lambda *arrays: stack([f(i, *(a[i] for a in arrays)) for i in range(arrays[0].shape[0])])


def of_batches(kind, torch):
    """What makes one number of many, of rows and of matrices."""
    functional, rows = torch.nn.functional, rows_of(kind)
    pairs, matrices = [rows, rows[::-1].copy()], [rows.reshape(7, 3, 3)]
    small = np.finfo(kind).smallest_subnormal
    shares = [np.array([[0, 1, 0.5], [0.25, 0.75, 1], [0.5, 0.5, 0.5], [small, 0.5, 1]], kind), np.array([[0, 1, 0.3]] * 4, kind)]
    logits = [rows, np.array([[0, 1, 0.3]] * len(rows), kind)]
    own, sizes = hg.asarray(np.abs(np.array(WEIGHTS, kind))), torch.tensor(np.abs(np.array(WEIGHTS, kind)))
    classes = np.arange(21).reshape(7, 3) % 3
    classes[:, 1] = -100
    calls = {}
    for name, other in LOSSES.items():
        for reduction in ("mean", "sum"):
            f, g = getattr(hg, name), getattr(functional, other)
            calls[f"{name} {reduction}"] = (lambda i, a, b, f=f, r=reduction: f(a, b, reduction=r),
                                            lambda i, a, b, g=g, r=reduction: g(a, b, reduction=r),
                                            {"bce": shares, "bce_with_logits": logits}.get(name, pairs))
    calls["kl_div of a batch"] = (lambda i, a, b: hg.kl_div(a.reshape((1, 3)), b.reshape((1, 3)), reduction="batchmean"),
                                  lambda i, a, b: functional.kl_div(a[None], b[None], reduction="batchmean"), pairs)
    calls["bce weighted"] = (lambda i, a, b: hg.bce(a, b, own), lambda i, a, b: functional.binary_cross_entropy(a, b, sizes), shares)
    for name, f, g in (("nll", hg.nll, functional.nll_loss), ("cross_entropy", hg.cross_entropy, functional.cross_entropy)):
        for reduction in ("mean", "sum"):
            calls[f"{name} {reduction}"] = (lambda i, x, f=f, r=reduction: f(x, hg.asarray(classes[i]), own, reduction=r),
                                            lambda i, x, g=g, r=reduction: g(x, torch.tensor(classes[i]), sizes, reduction=r), matrices)
    weights = [rows, np.resize(np.array([[1, -2, 0.5], [0, 3, 1], [NAN, 1, 1], [0, 0, 0], [small, 1, -1]], kind), rows.shape)]
    calls["layer_norm by weight"] = (lambda i, x, w: hg.layer_norm(x, w, w * 2),
                                     lambda i, x, w: functional.layer_norm(x, (3,), w, w * 2), weights)
    calls["rms_norm by weight"] = (lambda i, x, w: hg.rms_norm(x, w), lambda i, x, w: functional.rms_norm(x, (3,), w, 1e-5), weights)
    calls["prelu"] = (lambda i, x, w: hg.prelu(x, w[:1]), lambda i, x, w: functional.prelu(x, w[:1]), pairs)
    calls["total"] = (lambda i, x: hg.total(x), lambda i, x: x.mean(), [rows])
    weighted = {"bincount": (lambda x: hg.bincount([2, 0, 2], x, length=4), [2, 0, 2]),
                "confusion_matrix": (lambda x: hg.confusion_matrix([1, 0, 1], [1, 1, 1], x, classes=2).reshape((4,)), [3, 1, 3])}
    for name, (f, places) in weighted.items():
        calls[name] = (lambda i, x, f=f: f(x), lambda i, x, p=torch.tensor(places): x.new_zeros(4).index_add(0, p, x), [rows])
    calls["dot"] = (lambda i, a, b: hg.dot(a, b), lambda i, a, b: torch.dot(a, b), pairs)
    calls["outer"] = (lambda i, a, b: hg.outer(a, b), lambda i, a, b: torch.outer(a, b), pairs)
    calls["global_norm"] = (lambda i, x: hg.global_norm(x[:1], x[1:]), lambda i, x: torch.linalg.vector_norm(x).to(torch.float32), [rows])
    return {name: Case(by_point(lambda made: hg.stack(*made), f), by_point(torch.stack, g), arrays)
            for name, (f, g, arrays) in calls.items()}


def of_products(kind, torch):
    """Contractions; each point is a row beside a row."""
    functional = torch.nn.functional
    square = np.array([[1, -2, 0.5], [0, 3, 1], [-1, 0.25, 2]], kind)
    own_square, square = hg.asarray(square), torch.tensor(square)

    def column(x):
        return x.reshape((x.shape[0], 3, 1))

    def row(x):
        return x.reshape((x.shape[0], 1, 3))

    def first(x):
        return x[:, :1].reshape((x.shape[0], 1, 1))

    calls = {
        "matvec": (lambda a, b: hg.matvec(row(a), b), lambda a, b: torch.matmul(row(a), column(b))[:, :, 0]),
        "matmul": (lambda a, b: hg.matmul(row(a), column(b)), lambda a, b: torch.matmul(row(a), column(b))),
        "matmul of columns": (lambda a, b: hg.matmul(column(a), row(b)), lambda a, b: torch.matmul(column(a), row(b))),
        "linear": (lambda a, b: hg.linear(row(a), row(b)), lambda a, b: torch.matmul(row(a), column(b))),
        "linear biased": (lambda a, b: hg.linear(a, own_square, b[0]), lambda a, b: functional.linear(a, square, b[0])),
        "gemm": (lambda a, b: hg.gemm(row(a), column(b), first(b), alpha=0.5, beta=-2.0),
                 lambda a, b: torch.baddbmm(first(b), row(a), column(b), alpha=0.5, beta=-2.0)),
    }
    cases = {name: Case(*both, row_pairs_of(kind)) for name, both in calls.items()}
    return cases


def of_distances(kind, torch):
    """Of two rows or three, all the ways."""
    functional = torch.nn.functional
    rows = np.array([[1, 2, 3], [3, 3, 1], [0, 0, 0], [1, -1, 1], [0, 0, 5], [40, -40, 1e3], [NAN, 1, 2], [INF, 1, 2]], kind)
    first, second = (v.ravel() for v in np.meshgrid(*[np.arange(len(rows))] * 2))
    pairs = [rows[first], rows[second]]
    calls = {
        "cosine_similarity": (hg.cosine_similarity, functional.cosine_similarity),
        "cosine_embedding": (
            lambda a, b: hg.cosine_embedding(a, b, hg.where(hg.arange(a.shape[0]) % 2 == 0, 1, -1), margin=-0.5, reduction="none"),
            lambda a, b: functional.cosine_embedding_loss(a, b, 1 - torch.arange(len(a)) % 2 * 2, -0.5, reduction="none")),
    }
    for p in (1.0, 2.0, INF):
        calls[f"pairwise_distance {p:g}"] = (lambda a, b, p=p: hg.pairwise_distance(a, b, p=p),
                                             lambda a, b, p=p: functional.pairwise_distance(a, b, p))
        calls[f"cdist {p:g}"] = (lambda a, b, p=p: hg.cdist(a[:, None], b[:, None], p=p),
                                 lambda a, b, p=p: torch.linalg.vector_norm(a - b, p, -1)[:, None, None])  # cdist's has no second one
    cases = {name: Case(*both, pairs) for name, both in calls.items()}
    cases["triplet_margin"] = Case(lambda a, b, c: hg.triplet_margin(a, b, c, swap=1, reduction="none"),
                                   lambda a, b, c: functional.triplet_margin_loss(a, b, c, swap=True, reduction="none"),
                                   [*pairs, np.roll(pairs[1], 1, 0)])
    return cases


def of_channels(kind, torch):
    """batch_norm, with a channel for each row."""
    rows = rows_of(kind)
    sizes, bias, variance = (np.resize(np.array(v, kind), len(rows)) for v in ([1.0, 3.0], [0.5, -1.0], [2.0, 0.25]))
    weights = np.array(WEIGHTS, kind)

    def own(x, **more):
        given = {k: hg.asarray(v) if isinstance(v, np.ndarray) else v for k, v in more.items()}
        return hg.batch_norm(x, **given, axis=0)[0] * hg.asarray(weights)

    def theirs(x, mean=None, var=None, weight=None, bias=None, training=1):
        given = [None if v is None else torch.tensor(v) for v in (mean, var, weight, bias)]
        return torch.nn.functional.batch_norm(x.T, *given, training=bool(training)).T * torch.tensor(weights)

    kinds = {"batch_norm": {}, "batch_norm weighted": {"weight": sizes, "bias": bias},
             "batch_norm of statistics": {"mean": bias, "var": variance, "training": 0, "weight": sizes, "bias": bias}}
    cases = {name: Case(lambda x, k=k: own(x, **k), lambda x, k=k: theirs(x, **k), [rows]) for name, k in kinds.items()}
    one, more, items = np.array([3.0], kind), np.array([-0.5], kind), rows.reshape(-1, 1, 3)
    near = hg.asarray(weights), torch.tensor(weights)
    cases["group_norm"] = Case(lambda x: hg.group_norm(x, hg.asarray(one), hg.asarray(more)) * near[0],
                               lambda x: torch.nn.functional.group_norm(x, 1, torch.tensor(one), torch.tensor(more)) * near[1], [items])
    cases["instance_norm"] = Case(lambda x: hg.instance_norm(x) * near[0],
                                  lambda x: torch.nn.functional.instance_norm(x) * near[1], [items])
    return cases


def of_moves(kind, torch):
    """What moves elements, squared there and with a weight for each place."""
    functional, rows = torch.nn.functional, rows_of(kind)
    count, pairs = len(rows), [rows, rows[::-1].copy()]
    index, along = np.array([2, 0, 2]), np.tile([2, 0], (count, 1))
    own_index, own_along, index, along = hg.asarray(index), hg.asarray(along), torch.tensor(index), torch.tensor(along)
    mask = torch.tensor(np.resize([True, False, True, True], (count, 3)))
    own_mask, key = hg.asarray(mask.numpy()), hg.random.key(5)
    kept = torch.tensor(hg.dropout(hg.ones((count, 3)), key).numpy() > 0)
    calls = {
        "reshape": (lambda x: hg.reshape(x, (3, -1)), lambda x: x.reshape(3, -1)), "permute": (hg.permute, lambda x: x.T),
        "swap": (lambda x: hg.swap(x, 0, 1), lambda x: x.swapaxes(0, 1)), "flip": (lambda x: hg.flip(x, (1,)), lambda x: x.flip(1)),
        "slice": (lambda x: hg.slice(x, 1, 2, 0, -1), lambda x: x[:, [2, 1]]),
        "expand": (lambda x: hg.expand(x, 1), lambda x: x.unsqueeze(1)),
        "broadcast": (lambda x: hg.broadcast(x, (2, count, 3)), lambda x: x.expand(2, count, 3)),
        "squeeze": (lambda x: hg.squeeze(x[:, None], (1,)), lambda x: x[:, None].squeeze(1)),
        "take": (lambda x: hg.take(x, own_index, 1), lambda x: x.index_select(1, index)),
        "take_along": (lambda x: hg.take_along(x, own_along, 1), lambda x: x.gather(1, along)),
        "cumulative_sum": (lambda x: hg.cumulative_sum(x, 1), lambda x: x.cumsum(1)),
        "cumulative_prod": (lambda x: hg.cumulative_prod(x, axis=1), lambda x: x.cumprod(1)),
        "cumulative_max": (lambda x: hg.cumulative_max(x, 1), lambda x: x.cummax(1)[0]),
        "cumulative_min": (lambda x: hg.cumulative_min(x, 1), lambda x: x.cummin(1)[0]),
        "cumulative_logsumexp": (lambda x: hg.cumulative_logsumexp(x, 1), lambda x: x.logcumsumexp(1)),
        "sort_with_places": (lambda x: hg.sort_with_places(x, 1)[0], lambda x: x.sort(dim=1, stable=True)[0]),
        "top_k": (lambda x: hg.top_k(x, 2, 1)[0], lambda x: x.topk(2, 1)[0]),
        "take_where": (lambda x: hg.take_where(x, own_mask, size=4), lambda x: x[mask][:4]),
        "embedding": (lambda x: hg.embedding(x, own_index), lambda x: functional.embedding(index, x)),
        "pad": (lambda x: hg.pad(x, ((0, 0), (1, 2))), lambda x: functional.pad(x, (1, 2))),
        "dropout": (lambda x: hg.dropout(x, key), lambda x: torch.where(kept, x * 2, 0)),
        "concatenate": (lambda x, y: hg.concatenate(x, y, axis=1), lambda x, y: torch.cat([x, y], 1)),
        "stack": (lambda x, y: hg.stack(x, y, axis=1), lambda x, y: torch.stack([x, y], 1)),
        "scatter": (lambda x, y: hg.scatter(x, own_along, y[:, :2]), lambda x, y: x.scatter(1, along, y[:, :2])),
        "scatter_add": (lambda x, y: hg.scatter_add(x, own_along, y[:, :2]), lambda x, y: x.scatter_add(1, along, y[:, :2])),
        "update": (lambda x, y: hg.update(x, y[:, :2], start=(0, 1), stop=(count, 3)), lambda x, y: x.slice_scatter(y[:, :2], 1, 1, 3)),
    }

    def squared(f):
        def call(*arrays):
            y = f(*arrays)
            return y * y * places(y.shape, y)
        return call

    def places(shape, like):
        numbers = np.resize(np.array([2, -1, 0.5, 1, -3], kind), tuple(shape))
        return hg.asarray(numbers) if isinstance(like, hg.Array) else torch.tensor(numbers)

    calls["index_add"] = (lambda x, y: hg.index_add(x, own_index, y[:, :4], axis=1), lambda x, y: x.index_add(1, index, y[:, :4]))
    calls["index_fill"] = (lambda x, y: hg.index_fill(x, own_index, 2.5, axis=1), lambda x, y: x.index_fill(1, index, 2.5))
    two = ["concatenate", "stack", "scatter", "scatter_add", "update", "index_add", "index_fill"]
    return {name: Case(squared(f), squared(g), pairs if name in two else [rows]) for name, (f, g) in calls.items()}


def cases_of(kind, torch):
    parts = (of_numbers, of_pairs, of_triples, of_rows, of_batches, of_products, of_distances, of_channels, of_moves)
    return {name: case for part in parts for name, case in part(kind, torch).items()}
