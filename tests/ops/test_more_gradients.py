"""Gradients along random directions against central differences, in f64: of what moves, joins and chooses, of layers, of losses by
class, and gradients of gradients for every operation that has one."""

import numpy as np
import pytest

import hgops
from hgops import TABLE, Computation
from test_operation_gradients import INSIDE, OF_ONE_OR_TWO, POSITIVE, SHAPES

pytestmark = pytest.mark.engine

STEP, NEAR = 1e-6, 2e-6


def random(seed, *shape, low=-2.0, high=2.0):
    return np.asarray(np.random.default_rng(seed).uniform(low, high, shape))


def evaluate(build, arrays, with_gradients, cotangent=None):
    """The value that build(computation, *inputs) makes, or with a cotangent the gradients by the floating-point arrays."""
    c = Computation()
    given = [c.input(a) for a in arrays]
    y = build(c, *given)
    if not with_gradients:
        c.output(y)
        return c.run_on(hgops.ENGINES[0])[0]
    wrt = [value for value, array in zip(given, arrays) if array.dtype == np.float64]
    for gradient in c.gradient(y, wrt, c.input(cotangent)):
        c.output(gradient)
    return c.run()


def agrees(name, build, arrays):
    y = evaluate(build, arrays, False)
    assert np.isfinite(y).all(), name
    cotangent = random(5, *y.shape, low=-1.0)
    own = iter(evaluate(build, arrays, True, cotangent))
    for k, array in enumerate(arrays):
        if array.dtype != np.float64:
            continue
        gradient = next(own)
        assert gradient.shape == array.shape, f"{name}: input {k}"
        for seed in range(2):
            direction = random(100 + seed, *array.shape, low=-1.0)
            sides = []
            for sign in (1, -1):
                moved = [np.asarray(a + sign * STEP * direction) if i == k else a for i, a in enumerate(arrays)]
                sides.append(np.sum(evaluate(build, moved, False) * cotangent))
            expected, found = (sides[0] - sides[1]) / (2 * STEP), np.sum(gradient * direction)
            assert abs(found - expected) <= NEAR * (1 + abs(expected)), f"{name}: input {k}: {found}, not {expected}"


def call(name, **arguments):
    return lambda c, *given: c.op(name, *given, **arguments)


X, INDEX = random(1, 3, 4), np.array([[2, 0, 2, 1], [1, 1, 0, 2]], np.int32)
BEFORE = np.maximum(np.arange(X.shape[0])[:, None] - np.arange(X.shape[1]) % 3, 0)  # of segments along axis 0: from row 0, 1 or 2 on
PLACES = np.array([2, 0, 2, 2, 1], np.int64)
MOVES = {
    "reshape": (call("reshape", shape=[2, 6]), [X]),
    "permute": (call("permute", axes=[2, 0, 1]), [random(2, 2, 3, 4)]),
    "swap": (call("swap", a=0, b=-1), [X]),
    "slice": (call("slice", axis=1, start=3, stop=0, step=-2), [X]),
    "slice of steps": (call("slice", axis=0, start=0, stop=3, step=2), [X]),
    "flip": (call("flip", axes=[1]), [X]),
    "broadcast": (call("broadcast", shape=[5, 3, 4]), [random(3, 3, 1)]),
    "expand": (call("expand", axis=1), [X]),
    "squeeze": (call("squeeze", axes=[1]), [random(4, 3, 1, 4)]),
    "take": (call("take", axis=0), [X, PLACES]),
    "take wrapped": (call("take", axis=1, bounds="wrap"), [X, np.array([-1, 3, 0, -4], np.int32)]),
    "take clamped": (call("take", axis=1, bounds="clamp"), [X, np.array([-9, 3, 0, 9], np.int32)]),
    "take_along": (call("take_along", axis=0), [X, INDEX]),
    "sort_with_places": (call("sort_with_places", axis=0), [X]),
    "sort_with_places down": (call("sort_with_places", descending=1), [X.astype(np.float32).astype(np.float64)]),
    "top_k": (call("top_k", k=2, axis=0), [X]),
    "top_k smallest": (call("top_k", k=3, largest=0), [X]),
    "top_k of many": (call("top_k", k=2), [random(10, 2, 140)]),
    "sort_by_key": (lambda c, x: c.op_all("sort_by_key", c.op("neg", x), c.op("square", x), axis=0)[1], [X]),
    "kth_value": (call("kth_value", k=2, axis=0), [X]),
    "merge": (call("merge"), [np.sort(X), np.sort(random(10, 3, 2))]),
    "quantile": (call("quantile", axis=0), [X, np.array([0.2, 0.7])]),
    "median": (call("median"), [X]),
    "take_where": (lambda c, x, m: c.op("take_where", x, c.op("greater", m, c.number("f64", 0)), size=5), [X, random(6, 3, 4)]),
    "take_where and zeros": (lambda c, x, m: c.op("take_where", c.op("mul", x, m), c.op("greater", x, m), size=14), [X, random(6, 3, 4)]),
    "cumulative_sum": (call("cumulative_sum", axis=0), [X]),
    "cumulative_sum of rows": (call("cumulative_sum", reverse=1), [X]),
    "cumulative_prod": (call("cumulative_prod", axis=0, reverse=1), [X]),
    "cumulative_prod of zeros": (call("cumulative_prod", exclusive=1), [np.array([[2, 0, 3, 5, 7], [0, 2, 0, 3, 0], [2, 3, 5, 7, 0.0]])]),
    "cumulative_max": (call("cumulative_max", axis=0), [X]),
    "cumulative_min of rows": (call("cumulative_min", reverse=1), [X]),
    "cumulative_logsumexp": (call("cumulative_logsumexp"), [X]),
    "cumulative_logsumexp of columns": (call("cumulative_logsumexp", axis=0, reverse=1), [X]),
    **{f"segmented_scan {by}": (lambda c, x, p, by=by: c.op("segmented_scan", x, p, axis=0, by=by, reverse=by % 2), [X, BEFORE])
       for by in range(5)},
    "segmented_scan of columns": (lambda c, x: c.op("segmented_scan", x, c.op("segment_places", c.op("greater", x, c.number("f64", 0))),
                                                    exclusive=1), [X]),  # fmt: skip
    "scatter": (call("scatter", axis=0), [X, np.array([[2, 0, 1, 1], [0, 1, 2, 0]], np.int32), random(6, 2, 4)]),
    "scatter_add": (call("scatter_add", axis=0), [X, INDEX, random(6, 2, 4)]),
    "scatter_multiply": (call("scatter_multiply", axis=0), [X, INDEX, random(6, 2, 4)]),
    "scatter_multiply of zeros": (call("scatter_multiply"), [X, np.array([[0, 0, 1, 1, 1, 2, 2]] * 3),
                                                              np.array([[2, 0, 0, 3, 0, 5, 7.0]] * 3)]),
    "scatter_mean": (call("scatter_mean", axis=0), [X, INDEX, random(6, 2, 4)]),
    "scatter_min": (call("scatter_min", axis=0), [X, INDEX, random(6, 2, 4)]),
    "scatter_max": (call("scatter_max", axis=0), [X, INDEX, random(6, 2, 4)]),
    "scatter_reduce": (call("scatter_reduce", axis=0, reduce="prod", include_self=0), [X, INDEX, random(6, 2, 4)]),
    "index_add": (call("index_add", axis=1, alpha=-0.5), [X, PLACES, random(6, 3, PLACES.size)]),
    "index_copy": (call("index_copy", axis=1), [X, PLACES, random(6, 3, PLACES.size)]),
    "index_fill": (call("index_fill", axis=1), [X, PLACES, np.array(0.5)]),
    "index_reduce": (call("index_reduce", axis=1, reduce="amax"), [X, PLACES, random(6, 3, PLACES.size)]),
    "embedding_bag": (call("embedding_bag", mode="mean"), [X, np.array([0, 2, 2, 1]), np.array([0, 1, 1]), random(6, 4)]),
    "embedding_bag of the largest": (call("embedding_bag", mode="max"), [X, np.array([[0, 2], [2, 1]])]),
    "segment_sum": (call("segment_sum", num_segments=4), [X, np.array([2, 0, 2], np.int32)]),
    "segment_prod": (call("segment_prod", num_segments=4), [X, np.array([2, 0, 2], np.int32)]),
    "segment_max": (call("segment_max", num_segments=2), [X, np.array([1, 0, 1], np.int32)]),
    "segment_min": (call("segment_min", num_segments=3, axis=1), [X, np.array([2, 0, 2, 1], np.int64)]),
    "segment_mean": (call("segment_mean", num_segments=3, axis=1), [X, np.array([2, 0, 2, 1], np.int64)]),
    "bincount": (call("bincount", length=4), [np.array([[2, 0, 2], [3, 2, 0]], np.int32), random(10, 2, 3)]),
    "confusion_matrix": (call("confusion_matrix", classes=2), [np.array([1, 0, 1]), np.array([1, 1, 1]), random(11, 3)]),
    "embedding": (call("embedding"), [X, np.array([[1, 1], [0, 2]], np.int32)]),
    "concatenate": (call("concatenate", axis=1), [X, random(7, 3, 2), X + 1]),
    "stack": (call("stack", axis=1), [X, random(8, 3, 4)]),
    "pad": (call("pad", low=[1, 0], high=[0, 2]), [X, np.array(0.5)]),
    "update": (call("update", start=[0, 1], stop=[2, 3]), [X, random(9, 2, 1)]),
    "update of steps": (call("update", start=[2, 3], stop=[-1, -1], step=[-2, -3]), [X, random(9, 2)]),
    "update twice": (lambda c, x, y: c.op("mul", c.op("update", c.op("update", x, y, start=[0, 0], stop=[3, 2]), c.op("exp", c.op(
        "slice", x, axis=1, start=0, stop=2)), start=[0, 1], stop=[3, 3]), x), [X, random(9, 2)]),
    "update of itself": (lambda c, x: c.op("square", c.op("update", c.op("square", x), c.op("slice", c.op(
        "square", x), axis=0, start=0, stop=1), start=[1, 0], stop=[3, 4])), [X]),
    "triu": (call("triu", k=1), [X]),
    "tril": (call("tril", k=-1), [X]),
    "where": (lambda c, x, y: c.op("where", c.op("greater", x, y), x, y), [X, random(9, 3, 4)]),
    "cast": (lambda c, x: c.op("mul", c.op("cast", x, type="f64"), x), [X]),
    "row taken twice": (lambda c, x, i: c.op("mul", c.op("take", x, i), c.op("take", c.op("flip", x, axes=[0]), i)), [X, PLACES]),
}
CLASSES = np.array([1, 3, -100], np.int64)
SIGNS = np.array([[1, -1, 1, -1], [-1, 1, 1, 1], [1, -1, -1, -1]], np.int32)
LAYERS = {
    "layer_norm": (call("layer_norm"), [X, random(11, 4), random(12, 4)]),
    "rms_norm": (call("rms_norm"), [X, random(11, 4)]),
    "batch_norm": (call("batch_norm"), [random(13, 5, 3), random(14, 3), random(15, 3)]),
    "batch_norm of statistics": (call("batch_norm", training=0), [random(13, 5, 3), random(14, 3), random(15, 3), random(16, 3),
                                                                  random(17, 3, low=0.5)]),
    "group_norm": (call("group_norm", groups=2), [random(13, 2, 4, 3), random(14, 4), random(15, 4)]),
    "group_norm of bias": (lambda c, x, b: c.op("group_norm", x, None, b, groups=2), [random(13, 2, 4, 3), random(15, 4)]),
    "instance_norm": (call("instance_norm"), [random(13, 2, 3, 2, 2), random(14, 3), random(15, 3)]),
    "normalize": (call("normalize", axes=[0]), [X]),
    "glu": (call("glu", axis=0), [random(13, 4, 2, 3)]),
    "prelu of one": (call("prelu"), [X, random(14, 1)]),
    "prelu": (call("prelu"), [random(13, 2, 3, 4), random(14, 3)]),
    "multi_margin": (call("multi_margin"), [X, np.array([1, 3, 0], np.int32), random(25, 4, low=0.5)]),
    "multi_margin of squares": (call("multi_margin", p=2, axis=0, margin=0.5), [X, np.array([1, 2, 0, 0], np.int64)]),
    "hinge_embedding": (call("hinge_embedding", margin=0.5), [X, SIGNS]),
    "cosine_embedding": (call("cosine_embedding", margin=-0.5), [X, random(26, 3, 4), SIGNS[:, 0].copy()]),
    "gaussian_nll of rows": (call("gaussian_nll", full=1), [X, random(26, 3, 4), random(27, 3, low=0.5)]),
    "poisson_nll of rates": (call("poisson_nll", log_input=0, full=1), [random(26, 3, 4, low=0.5), random(27, 3, 4, low=1.1)]),
    "smooth_l1 of beta": (call("smooth_l1", beta=0.25), [X, random(26, 3, 4)]),
    "triplet_margin": (call("triplet_margin", swap=1, p=1.0), [X, random(26, 3, 4), random(27, 3, 4)]),
    "cdist of columns": (call("cdist", p=1.0), [random(26, 3, 4), random(27, 2, 4)]),
    "cdist of the greatest": (call("cdist", p=float("inf")), [random(26, 3, 4), random(27, 2, 4)]),
    "cdist_slope": (call("cdist_slope", p=3.0), [random(26, 3, 4), random(27, 2, 4), random(28, 3, 2, low=0.5), random(29, 3, 2)]),
    "cdist of batches": (call("cdist", p=3.0), [random(26, 2, 3, 4), random(27, 5, 4)]),
    "linear": (call("linear"), [X, random(18, 2, 4), random(19, 2)]),
    "gemm": (call("gemm", alpha=0.5, beta=-2.0, transpose_b=1), [X, random(18, 2, 4), random(20, 3, 2)]),
    "matmul of batches": (call("matmul"), [random(21, 2, 1, 3, 4), random(22, 5, 4, 2)]),
    "matmul turned": (call("matmul", transpose_a=1, transpose_b=1), [random(23, 4, 3), random(24, 2, 4)]),
    "convolution of groups": (call("convolution", stride=[2, 1], low=[1, 0], high=[0, 2], dilation=[1, 2], groups=2),
                              [random(21, 2, 2, 4, 3), random(22, 4, 1, 2, 2)]),
    "convolution_back": (call("convolution_back", shape=[2, 3, 6], stride=[2], low=[1]), [random(21, 2, 2, 3), random(22, 2, 3, 3)]),
    "convolution_weights": (call("convolution_weights", shape=[3, 2, 2], stride=[2]), [random(21, 2, 2, 5), random(22, 2, 3, 2)]),
    "conv_transposed": (call("conv_transposed", shape=[2, 4, 4], last=1), [random(21, 2, 3, 2), random(22, 2, 4, 2), random(23, 4)]),
    "nll": (call("nll"), [X, CLASSES, random(25, 4, low=0.5)]),
    "cross_entropy": (call("cross_entropy"), [X, CLASSES]),
    "cross_entropy weighted and smoothed": (call("cross_entropy", smoothing=0.2), [X, CLASSES, random(25, 4, low=0.5)]),
    "cross_entropy of shares": (call("cross_entropy", smoothing=0.1), [X, random(26, 3, 4, low=0.1)]),
    "bce weighted": (call("bce"), [random(27, 3, 4, low=0.1, high=0.9), random(28, 3, 4, low=0.1, high=0.9), random(29, 3, 4)]),
    "bce_with_logits": (call("bce_with_logits"), [X, random(28, 3, 4, low=0.1, high=0.9), random(29, 3, 4), random(30, 4, low=0.5)]),
    "kl_div of logs": (call("kl_div", log_target=1, reduction="batchmean"), [X, random(31, 3, 4)]),
    "dropout": (call("dropout", p=0.25), [X, np.array(9, np.uint64)]),
    "fmod": (call("fmod"), [X, np.full((3, 4), 0.75)]),
    "remainder": (call("remainder"), [X, np.full((3, 4), 0.75)]),
    "sum of columns": (call("sum", axes=[0]), [X]),
    "clamp": (call("clamp"), [X, random(36, 3, 4, high=0.0), random(37, 3, 4, low=0.0)]),
    "bce_logit_of": (call("bce_logit_of"), [X, random(28, 3, 4, low=0.1, high=0.9), random(30, 4, low=0.5)]),
    "prod of columns": (call("prod", axes=[0]), [random(34, 3, 4, low=0.5)]),
    "max of rows": (call("max", axes=[-1], keep=1), [X]),
    "mean of columns": (call("mean", axes=[0]), [X]),
    "var of columns": (call("var", axes=[0], ddof=1.0), [X]),
    "norm of powers": (call("norm", axes=[1], ord=3.0), [random(35, 3, 4, low=0.5)]),
    "norm of the greatest": (call("norm", axes=[1], ord=float("inf")), [X]),
    "norm of magnitudes": (call("norm", axes=[1], ord=1.0), [X]),
    "softmax of columns": (call("softmax", axis=0), [X]),
    "divmod": (lambda c, x, y: c.op("add", *c.op_all("divmod", x, y)), [X, np.full((3, 4), 0.75)]),
    "var_mean": (lambda c, x: c.op("mul", *c.op_all("var_mean", x, axes=[0])), [X]),
    "std_mean": (lambda c, x: c.op("mul", *c.op_all("std_mean", x, axes=[1], ddof=1.0)), [X]),
    "nan_to_num of NaN": (call("nan_to_num"), [np.where(X > 1, np.nan, X)[1:], np.array(2.0)]),
    "nanmean": (call("nanmean", axes=[1]), [X]),
    "cross of columns": (call("cross", axis=0), [X, random(38, 3, 1)]),
}


def of_symmetric(name, **arguments):
    """Of a matrix that stays symmetric and positive definite, whose eigenvalues differ."""
    def build(c, x, shift):
        return c.op(name, c.op("add", c.op("matmul", x, x, transpose_b=1), c.op("add", shift, c.op("swap", shift))), **arguments)
    return build


SQUARE, TALL, RIGHT = random(40, 2, 4, 4), random(41, 5, 3), random(42, 2, 4, 3)
SHIFT, RTOL = np.diag([1.0, 2.0, 3.5, 5.0]), np.float32([1e-6])
ALGEBRA = {
    "triangular_solve": (call("triangular_solve"), [SQUARE + SHIFT, RIGHT]),
    "triangular_solve upper": (call("triangular_solve", upper=1, transpose=1), [SQUARE + SHIFT, RIGHT]),
    "triangular_solve upper of one": (call("triangular_solve", upper=1, unit=1), [SQUARE[0], RIGHT]),
    "triangular_solve turned": (call("triangular_solve", transpose=1, unit=1), [SQUARE, RIGHT[0]]),
    "cholesky": (of_symmetric("cholesky"), [SQUARE, SHIFT]), "cholesky upper": (of_symmetric("cholesky", upper=1), [SQUARE, SHIFT]),
    "lower_solve": (call("lower_solve"), [SQUARE + SHIFT, RIGHT[0]]),
    "lu": (lambda c, x: c.op("slice", c.op("lu", x), axis=-1, start=0, stop=4), [SQUARE]),
    "solve turned": (lambda c, a, b: c.op("swap", c.op("solve", a, b)), [SQUARE, RIGHT]),
    "solve": (call("solve"), [SQUARE, RIGHT]), "solve of one": (call("solve"), [SQUARE, RIGHT[0]]),
    "det": (call("det"), [SQUARE]), "log_abs_det": (call("log_abs_det"), [SQUARE]),
    "qr_packed": (call("qr_packed"), [TALL]), "qr": (lambda c, x: c.op_all("qr", x)[1], [TALL.T.copy()]),
    "eigh_packed": (of_symmetric("eigh_packed"), [SQUARE, SHIFT]), "eigh": (of_symmetric("eigh"), [SQUARE, SHIFT]),
    "svd_packed": (call("svd_packed"), [TALL]), "svd_packed of squares": (call("svd_packed"), [SQUARE]),
    "svd": (lambda c, x: c.op_all("svd", x)[1], [TALL.T.copy()]),
    "pinv": (lambda c, x, r: c.op("pinv", x, c.op("squeeze", r)), [TALL, RTOL]),
    "pinv of rows": (lambda c, x, r: c.op("pinv", x, c.op("squeeze", r)), [TALL.T.copy(), RTOL]),
}
LAYERS |= ALGEBRA


@pytest.mark.parametrize("name", MOVES)
def test_moves(name):
    agrees(name, *MOVES[name])


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    agrees(name, *LAYERS[name])


def gradients_of(build, is_float):
    """A function of the inputs, a cotangent and a weight for each gradient: the weighted sum of all gradients."""
    def build_gradients(c, *given):
        inputs, cotangent, weights = given[:len(is_float)], given[len(is_float)], given[len(is_float) + 1:]
        wrt = [value for value, one in zip(inputs, is_float) if one]
        total = None
        for gradient, weight in zip(c.gradient(build(c, *inputs), wrt, cotangent), weights):
            term = c.op("sum", c.op("mul", gradient, weight))
            total = term if total is None else c.op("add", total, term)
        return total
    return build_gradients


def agrees_twice(name, build, arrays):
    is_float = [a.dtype == np.float64 for a in arrays]
    y = evaluate(build, arrays, False)
    weights = [random(60 + i, *a.shape, low=-1.0) for i, a in enumerate(arrays) if is_float[i]]
    agrees(name, gradients_of(build, is_float), [*arrays, random(50, *y.shape, low=-1.0), *weights])


# Their second derivative is tetragamma, which has no gradient: the error is tested in tests/python/test_special_functions.py.
ONCE_ONLY = {"trigamma", "polygamma"}


@pytest.mark.parametrize("name", [name for name in OF_ONE_OR_TWO if name not in ONCE_ONLY])
def test_second_gradients(name):
    count = len([i for i in TABLE[name]["inputs"].split(",") if not i.strip().endswith("?")])
    low, high = (0.5, 2.0) if name in POSITIVE else INSIDE.get(name, (-2.0, 2.0))
    shapes = SHAPES.get(name, [(3, 4)] * count)
    agrees_twice(name, call(name), [random(70 + i, *shape, low=low, high=high) for i, shape in enumerate(shapes)])


@pytest.mark.parametrize("name", [*MOVES, *LAYERS])
def test_second_gradients_of_the_rest(name):
    agrees_twice(name, *{**MOVES, **LAYERS}[name])


# Whose gradient is no finite difference: none, zero everywhere, or of a type that differences are too coarse for.
OTHERS = {"any", "all", "argmin", "argmax", "random_bits", "uniform", "normal", "integers", "full", "arange", "eye", "one_hot",
          "axis_numbers",  # of integers
          "uniform_open", "exponential", "gumbel", "laplace", "window_places", "hann", "hamming", "blackman", "bartlett",
          "kaiser", "truncated_normal",
          "global_norm",  # f32 by definition; tests/ops/test_optimisers.py
          "nextafter",  # tests/python/test_special_points.py
          "tetragamma",  # tests/python/test_special_functions.py
          "upper_solve", "lu_solve", "cholesky_lower", "forward_solve",  # within those of ALGEBRA
          "forward_blocks", "cholesky_blocks", "lu_blocks", "qr_blocks", "qr_complete_blocks", "eigh_reduced", "eigh_blocks", "inv",
          "clip_norm", "logit_nll", "cross_entropy_of_classes", "batch_norm"}  # within those of LAYERS


def test_every_gradient_has_its_test():
    tested = {name.split(" ")[0] for name in (*MOVES, *LAYERS)} | set(OF_ONE_OR_TWO) | OTHERS
    for name, row in TABLE.items():
        is_zero = row["gradient"].strip() and set(row["gradient"].replace(";", " ").split()) == {"0"}
        assert name in tested or row["gradient"] == "none" or is_zero, name
