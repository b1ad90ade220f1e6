"""hg_gradient of every differentiable operation of one or two f64 inputs against central differences."""

import numpy as np
import pytest

import hgops
from hgops import TABLE, Computation

pytestmark = pytest.mark.engine

INSIDE = {"asin": (-0.8, 0.8), "acos": (-0.8, 0.8), "log1p": (-0.5, 3), "bce": (0.1, 0.9), "bce_of": (0.1, 0.9), "kl_div": (0.1, 0.9),
          "acosh": (1.1, 4), "atanh": (-0.8, 0.8), "at_least": (0.1, 2), "gaussian_nll": (0.5, 2),
          "logit": (0.1, 0.9), "ndtri": (0.1, 0.9), "erfinv": (-0.8, 0.8), "xlog1py": (-0.5, 2), "ndtr_tail": (-20, -13),
          "ndtri_of": (0.05, 0.35), "digamma": (0.5, 4), "lgamma": (-1.9, -1.1), "trigamma": (0.5, 4), "polygamma": (0.5, 4)}
SHAPES = {"dot": [(4,), (4,)], "matvec": [(3, 4), (4,)], "matmul": [(3, 4), (4, 2)], "gemm": [(3, 4), (4, 2)],
          "linear": [(3, 4), (2, 4)], "prelu": [(3, 4), (4,)], "cosine_embedding": [(3, 4), (3, 4), (3,)], "cdist": [(3, 4), (2, 4)],
          "cross": [(4, 3), (4, 3)], "convolution": [(2, 2, 4), (3, 2, 2)], "conv": [(2, 2, 4), (3, 2, 2)]}
ALGEBRA = 0x18  # the section of rows of matrices, whose gradients are in test_more_gradients.py
POSITIVE = "sqrt rsqrt log log2 log10 pow cbrt reciprocal div prod norm xlogy entr".split()
OF_ONE_OR_TWO = [name for name, row in TABLE.items() if row["kind"] in ("pointwise", "reduce", "formula", "contract") and
                 row["gradient"] != "none" and row["output_count"] == 1 and "float" in row["types"].replace("number", "float") and
                 row["inputs"] != "" and
                 1 <= len([i for i in row["inputs"].split(",") if not i.strip().endswith("?")]) <= 3 and "..." not in row["inputs"] and
                 set(part.strip() for part in row["types"].split(";")) <= {"float", "number", "number bool", "any"} and
                 row["op"] >> 8 != ALGEBRA and
                 name not in ("argmin", "argmax", "any", "all", "equal", "not_equal", "bitcast", "isnan", "isinf", "isfinite", "cast",
                              "less", "less_equal", "greater", "greater_equal", "count_nonzero", "clip_norm",
                              "batch_norm", "fmod", "remainder", "nextafter", "tetragamma", "isclose", "allclose", "isposinf", "isneginf",
                              "nanargmin", "nanargmax", "cumulative_argmin",
                              "cumulative_argmax", "even_bins", "uneven_bins", "convolution_back", "convolution_weights",
                              "conv_transposed")]


def values(name, arrays, cotangent=None):
    c = Computation()
    given = [c.input(a) for a in arrays]
    y = c.op(name, *given)
    if cotangent is None:
        c.output(y)
        return c.run_on(hgops.ENGINES[0])[0]
    for g in c.gradient(y, given, c.input(cotangent)):
        c.output(g)
    return c.run()


@pytest.mark.parametrize("name", OF_ONE_OR_TWO)
def test_gradient(name):
    row, rng = TABLE[name], np.random.default_rng(len(name))
    count = len([i for i in row["inputs"].split(",") if not i.strip().endswith("?")])
    low, high = (0.5, 2.0) if name in POSITIVE else INSIDE.get(name, (-2.0, 2.0))
    shapes = SHAPES.get(name, [(3, 4)] * count)
    arrays = [rng.uniform(low, high, shape) for shape in shapes]
    y = values(name, arrays)
    cotangent = rng.uniform(-1, 1, y.shape)
    own = values(name, arrays, cotangent)
    step = 1e-6
    for k, array in enumerate(arrays):
        for at in np.ndindex(array.shape):
            sides = []
            for sign in (1, -1):
                moved = [a.copy() for a in arrays]
                moved[k][at] += sign * step
                sides.append(np.sum(values(name, moved) * cotangent))
            expected = (sides[0] - sides[1]) / (2 * step)
            assert abs(own[k][at] - expected) <= 1e-6 * (1 + abs(expected)), f"{name}: input {k} at {at}: {own[k][at]}, not {expected}"
