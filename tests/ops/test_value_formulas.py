"""Products, rows, losses, layers and optimisers, in every float type and on shapes of every kind, with and without what may be absent,
beside NumPy's exact values (reference.py, accuracy.py)."""

import itertools

import numpy as np
import pytest

import hgops
from accuracy import wide
from hgops import FLOATS, TYPES, Computation, laid_out
from reference import REFERENCE, SCALE
from test_values import INTEGERS, numbers

pytestmark = pytest.mark.engine


def compare(judge, name, arrays, **arguments):
    """All the results of an operation, a first input that is not large in three layouts."""
    for layout in ("dense", "turned", "mixed") if arrays[0].size < 1000 else ("dense",):
        given = [laid_out(arrays[0], layout, 3)] + list(arrays[1:])
        c = Computation()
        for value in c.op_all(name, *[None if a is None else c.input(a) for a in given], **arguments):
            c.output(value)
        exact = [None if a is None else wide(a) for a in given]
        with np.errstate(all="ignore"):
            right = REFERENCE[name](*exact, **arguments)
            scale = SCALE[name](*exact, **arguments) if name in SCALE else None
        several = isinstance(right, tuple)
        for own, expected, beside in zip(c.run(), right if several else (right,), scale if several and scale else (scale,) * 9):
            judge(name, own, expected, beside)


@pytest.mark.parametrize("kind", FLOATS + INTEGERS)
@pytest.mark.parametrize("a, b", [((3, 4), (4, 5)), ((1, 7), (7, 1)), ((65, 300), (300, 33)), ((2, 3, 8), (8, 4)),
                                  ((2, 1, 3, 8), (5, 8, 4)), ((7,), (7, 3)),
                                  ((3, 7), (7,)), ((2, 0), (0, 3)), ((0, 2), (2, 3)), ((9,), (9,)), ((2, 1030), (1030, 2))])
def test_products(kind, a, b, judge):
    rng = np.random.default_rng(3)
    x, y = numbers(rng, kind, a, -1, 1), numbers(rng, kind, b, -1, 1)
    if kind in INTEGERS:  # whose products NumPy makes in 64 bits
        x, y = (x % 100).astype(x.dtype), (y % 100).astype(y.dtype)
    exact = (lambda v: v.astype(np.int64)) if kind in INTEGERS else wide
    for left, right in itertools.product(("dense", "turned", "mixed"), repeat=2):
        p, q = laid_out(x, left, 1), laid_out(y, right, 2)
        names = ["matmul"] + (["dot"] if len(a) == len(b) == 1 else []) + (["matvec"] if len(b) == 1 and len(a) > 1 else [])
        c = Computation()
        given = c.input(p), c.input(q)
        for name in names:
            c.output(c.op(name, *given))
        for name, own in zip(names, c.run()):
            judge(name, own, REFERENCE[name](exact(p), exact(q)), SCALE[name](exact(p), exact(q)))


@pytest.mark.parametrize("kind", FLOATS)
def test_layers(kind, judge):
    rng = np.random.default_rng(4)
    for m, k, n in [(3, 4, 5), (1, 1, 1), (33, 270, 17), (0, 4, 5), (3, 0, 5)]:
        x, w, bias, c = (numbers(rng, kind, shape, -1, 1) for shape in ((m, k), (n, k), (n,), (m, n)))
        for b in (bias, None):
            compare(judge, "linear", (x, w, b))
        for alpha, beta in ((1.0, 1.0), (0.5, -2.0), (2.0, 0.0)):
            compare(judge, "gemm", (x, w, c), alpha=alpha, beta=beta, transpose_b=1)
        compare(judge, "gemm", (x, w.T.copy(), None), alpha=3.0)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "rms_norm"])
def test_rows(name, kind, judge):
    rng = np.random.default_rng(5)
    for shape in [(7,), (3, 5), (1, 1), (4, 1, 70), (2, 3000), (0, 5), (130, 33), (2, 5001)]:
        x, w, b = numbers(rng, kind, shape), numbers(rng, kind, shape[-1:]), numbers(rng, kind, shape[-1:])
        if name.endswith("softmax"):
            for axis in [a for a in range(len(shape)) if shape[a]]:
                compare(judge, name, (x,), axis=axis)
        else:
            for given in ((w, b), (w, None), (None, b), (None, None)) if name == "layer_norm" else ((w,), (None,)):
                compare(judge, name, (x, *given))


@pytest.mark.parametrize("kind", FLOATS)
def test_batch_norm(kind, judge):
    rng = np.random.default_rng(6)
    for shape, axis in [((8, 3), 1), ((4, 3, 5), 1), ((2, 600, 3), 2), ((5, 1), 0), ((3, 70), 0)]:
        x, one = numbers(rng, kind, shape), (shape[axis],)
        w, b, mean = (numbers(rng, kind, one) for _ in range(3))
        var = numbers(rng, kind, one, 0.5, 2)
        for given in itertools.product((w, None), (b, None), ((mean, var), (None, None))):
            compare(judge, "batch_norm", (x, given[0], given[1], *given[2]), axis=axis, momentum=0.25)
        compare(judge, "batch_norm", (x, w, b, mean, var), axis=axis, training=0)


@pytest.mark.parametrize("kind", FLOATS)
def test_norms_of_channels(kind, judge):
    rng = np.random.default_rng(11)
    for shape, groups in [((3, 4), 2), ((2, 6, 5), 3), ((1, 4, 3, 7), 4), ((2, 2, 30, 40), 1), ((0, 4, 3), 2)]:
        x, w, b = numbers(rng, kind, shape), numbers(rng, kind, shape[1:2]), numbers(rng, kind, shape[1:2])
        for given in itertools.product((w, None), (b, None)):
            compare(judge, "group_norm", (x, *given), groups=groups)
            compare(judge, "instance_norm", (x, *given))
        for one in (w, w[:1], w[0]):
            compare(judge, "prelu", (x, np.asarray(one)))
        for axis in (i for i, n in enumerate(shape) if n):
            compare(judge, "softmin", (x,), axis=axis)
            for p in (1.0, 2.0, np.inf):
                compare(judge, "normalize", (x,), axes=[axis], p=p)
            if shape[axis] % 2 == 0:
                compare(judge, "glu", (x,), axis=axis)


@pytest.mark.parametrize("kind", FLOATS)
def test_losses_of_distances(kind, judge):
    rng = np.random.default_rng(12)
    for shape in [(3, 5), (2, 70), (1, 1), (4, 3, 300)]:
        a, b, c = (numbers(rng, kind, shape) for _ in range(3))
        var, signs = numbers(rng, kind, shape, 0.3, 2), rng.choice(np.array([-1, 1], np.int32), shape)
        for axis in range(len(shape)):
            compare(judge, "cosine_similarity", (a, b), axis=axis)
        for p in (1.0, 2.0, np.inf):
            compare(judge, "pairwise_distance", (a, b), p=p)
            compare(judge, "cdist", (a, b[..., :2, :].copy()), p=p)
        for reduction in ("mean", "sum", "none"):
            compare(judge, "cosine_embedding", (a, b, signs[..., 0].copy()), margin=0.25, reduction=reduction)
            compare(judge, "margin_ranking", (a, b, signs), margin=0.5, reduction=reduction)
            compare(judge, "hinge_embedding", (a, signs), margin=0.5, reduction=reduction)
            for full, v in itertools.product((0, 1), (var, var[..., 0].copy())):
                compare(judge, "gaussian_nll", (a, b, v), full=full, reduction=reduction)
            for p, swap in ((1.0, 0), (2.0, 1)):
                compare(judge, "triplet_margin", (a, b, c), p=p, swap=swap, reduction=reduction)


@pytest.mark.parametrize("kind", FLOATS)
def test_losses(kind, judge):
    rng = np.random.default_rng(7)
    for shape in [(7,), (3, 5), (4, 1, 70), (2, 3000), (1, 1)]:
        x, y = numbers(rng, kind, shape), numbers(rng, kind, shape)
        p, q, w = (numbers(rng, kind, shape, 0.05, 0.95) for _ in range(3))
        for reduction in ("mean", "sum", "none"):
            for name in ("mse", "l1", "huber"):
                compare(judge, name, (x, y), reduction=reduction)
            for weight in (w, None):
                compare(judge, "bce", (p, q, weight), reduction=reduction)
                for positive in (p, None):
                    compare(judge, "bce_with_logits", (x, q, weight, positive), reduction=reduction)
            compare(judge, "kl_div", (x, q), reduction=reduction)
            for beta in (0.0, 0.5, 1.0):
                compare(judge, "smooth_l1", (x, y), beta=beta, reduction=reduction)
            for log_input, full in itertools.product((0, 1), (0, 1)):
                compare(judge, "poisson_nll", (x if log_input else p, q + 1 if full else y), log_input=log_input, full=full,
                        reduction=reduction)
            compare(judge, "total", (x,), reduction=reduction)
        compare(judge, "kl_div", (x, y), log_target=1, reduction="batchmean")


@pytest.mark.parametrize("kind", FLOATS)
def test_losses_of_classes(kind, judge):
    """Along each axis, with weights of classes, what is ignored, smoothing, and probabilities."""
    rng = np.random.default_rng(8)
    for shape in [(6, 5), (1, 1), (3, 70, 2), (4, 3000)]:
        x = numbers(rng, kind, shape)
        for axis, reduction in itertools.product(range(len(shape)), ("mean", "sum", "none")):
            classes, around = shape[axis], tuple(n for i, n in enumerate(shape) if i != axis)
            target = rng.integers(0, classes, around)
            some = np.where(rng.random(around) < 0.3, -100, target)
            some.flat[0] = target.flat[0]
            for weight in (numbers(rng, kind, (classes,), 0.5, 2), None):
                compare(judge, "nll", (x, some, weight), axis=axis, reduction=reduction)
                for smoothing in (0.0, 0.1):
                    compare(judge, "cross_entropy", (x, some, weight), axis=axis, reduction=reduction, smoothing=smoothing)
                    shares = REFERENCE["softmax"](numbers(rng, "f64", shape), axis=axis).astype(TYPES[kind])
                    compare(judge, "cross_entropy", (x, shares, weight), axis=axis, reduction=reduction, smoothing=smoothing)
            for p in (1, 2):
                compare(judge, "multi_margin", (x, target, weight), axis=axis, p=p, margin=0.5, reduction=reduction)
            compare(judge, "logit_nll", (x, np.expand_dims(target, axis)), axis=axis)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("state", ["same", "f32"])
def test_optimisers(kind, state, judge):
    rng = np.random.default_rng(9)
    other = kind if state == "same" else "f32"
    for shape in [(7,), (3, 5), (), (0, 3), (90, 70)]:
        p, g = numbers(rng, kind, shape), numbers(rng, kind, shape)
        m, v = numbers(rng, other, shape, -1, 1), numbers(rng, other, shape, 0, 1)
        largest, square, mean = numbers(rng, other, shape, 0, 1), numbers(rng, other, shape, 1, 2), numbers(rng, other, shape, -0.25, 0.25)
        wider = np.float64 if kind == "f64" else np.float32
        lr, step = np.asarray(0.01, wider), np.asarray(3.0, wider)
        for momentum, nesterov, decay, dampening in [(0.0, 0, 0.0, 0.0), (0.9, 0, 0.0, 0.5), (0.9, 1, 0.1, 0.0)]:
            for buffer in (m, None):
                compare(judge, "sgd", (p, g, lr, buffer), momentum=momentum, nesterov=nesterov, decay=decay, dampening=dampening)
        for decay in (0.0, 0.1):
            compare(judge, "adam", (p, g, m, v, lr, step), decay=decay)
            compare(judge, "adamw", (p, g, m, v, lr, step), decay=decay)
            compare(judge, "adamax", (p, g, m, v, lr, step), decay=decay)
            compare(judge, "lion", (p, g, m, lr), decay=decay)
            compare(judge, "adagrad", (p, g, v, lr, step), decay=decay, rate_decay=decay)
            for decoupled in (0, 1):
                compare(judge, "amsgrad", (p, g, m, v, largest, lr, step), decay=decay, decoupled=decoupled)
                compare(judge, "nadam", (p, g, m, v, np.asarray(0.25, wider), lr, step), decay=decay, decoupled=decoupled)
            compare(judge, "rmsprop", (p, g, v, lr), decay=decay)
            compare(judge, "rmsprop", (p, g, square, lr, mean, m), decay=decay, momentum=0.9)


@pytest.mark.parametrize("kind", FLOATS)
def test_norms_of_many(kind, judge):
    rng = np.random.default_rng(10)
    for shapes in [[(7,)], [(3, 5), (), (2, 0)], [(300,), (70, 90), (1,)]]:
        tensors = [numbers(rng, kind, shape) for shape in shapes]
        compare(judge, "global_norm", tensors)
        norm = hgops.apply("global_norm", *tensors).astype(np.float64 if kind == "f64" else np.float32)
        for most in (1.0, 1e6):
            compare(judge, "clip_norm", (tensors[0], norm), max_norm=most)
