"""Every operation that computes element by element or reduces, in every type that it takes, on shapes and layouts of every kind,
beside NumPy's exact values (reference.py, accuracy.py)."""

import numpy as np
import pytest

import hgops
from accuracy import wide
from graph_draft import MATHEMATICS, inputs_of, types_of
from hgops import FLOATS, TABLE, TYPES, Computation, laid_out
from reference import REFERENCE, SCALE

pytestmark = pytest.mark.engine

INTEGERS = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
SHAPES = [(), (1,), (7,), (300,), (3, 5), (1, 4, 3), (4, 1, 70), (0, 3), (2, 0), (2, 0, 3, 1)]
LARGE = (3, 23341)  # more than one block of anything
# What is out of an operation's domain gives NaN, which compares too; these ranges keep most inputs inside.
RANGES = {"asin": (-1, 1), "acos": (-1, 1), "log1p": (-0.9, 9), "pow": (0.1, 4), "exp2": (-9, 9), "exp": (-9, 9), "bce_of": (0.01, 0.99),
          "acosh": (1, 9), "atanh": (-1, 1)}
WORDS = ("dot4_ss", "dot4_uu", "dot4_us")


def numbers(rng, kind, shape, low=-4.0, high=4.0):
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in INTEGERS:
        info = np.iinfo(TYPES[kind])
        small = rng.integers(max(info.min, -9), 10, shape).astype(TYPES[kind])
        far = rng.integers(info.min, info.max, shape, dtype=TYPES[kind], endpoint=True)
        return np.where(rng.random(shape) < 0.7, small, far).astype(TYPES[kind])
    return np.asarray(rng.uniform(low, high, shape)).astype(TYPES[kind])


def layouts(array):
    """The array itself, and with other strides: transposed, backwards, every second element, all of these."""
    yield array
    if array.ndim >= 2:
        yield laid_out(array, "turned")
    if array.ndim >= 1 and array.size:
        yield laid_out(array, "backwards")
        yield laid_out(array, "apart")
        yield laid_out(array, "mixed", array.size)


POINTWISE = [name for name, row in TABLE.items() if name in REFERENCE and
             (row["kind"] == "pointwise" or 0x1200 <= row["op"] < 0x1300 or name == "bce_of" or name in MATHEMATICS)]


@pytest.mark.parametrize("name", POINTWISE)
def test_element_by_element(name, judge):
    """All types, shapes and layouts, as one computation of many outputs for each type and shape."""
    count = len(inputs_of(name))
    kinds = ("i32", "u32") if name in WORDS else types_of(name, count - 1)
    for kind in [k for k in kinds if not k.startswith("f8")]:
        rng = np.random.default_rng(len(name) * 31 + hgops.CODES[kind])
        for shape in SHAPES + ([LARGE] if kind in ("f32", "bool", "i16") else []):
            computation, expected = Computation(), []
            others = [shape] * count
            if count > 1 and len(shape) > 1 and name not in WORDS:
                others[1] = tuple(1 if i == 0 else n for i, n in enumerate(shape))
            arrays = [numbers(rng, kind if kind in types_of(name, i) else types_of(name, i)[0], others[i], *RANGES.get(name, (-4.0, 4.0)))
                      for i in range(count)]
            for first in layouts(arrays[0]) if shape != LARGE else arrays[:1]:
                given = [first] + arrays[1:]
                computation.output(computation.op(name, *[computation.input(a) for a in given]))
                with np.errstate(all="ignore"):
                    exact = [wide(a) for a in given]
                    expected.append((REFERENCE[name](*exact), SCALE[name](*exact) if name in SCALE and kind in FLOATS else None))
            for own, right in zip(computation.run(), expected):
                judge(name, own, *right)


REDUCTIONS = [name for name, row in TABLE.items() if row["kind"] == "reduce"] + [
    "mean", "var", "std", "norm", "logsumexp", "count_nonzero", "nansum", "nanmean", "nanmin", "nanmax", "nanargmin", "nanargmax",
    "nanvar", "nanstd"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, judge):
    for kind in types_of(name, 0):
        rng = np.random.default_rng(len(name) + hgops.CODES[kind])
        for shape, axes in [((7,), [0]), ((3, 5), [1]), ((3, 5), [0]), ((3, 5), [1, 0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]),
                            ((2, 1000), [1]), ((700, 3), [0]), ((1, 5000), [-1]), ((5, 1), [1]), ((4, 6, 10), [0, 1, 2]), ((0, 4), [1]),
                            ((3, 9000), [0, 1])]:
            if shape == (3, 9000) and kind not in ("f32", "i32", "bool"):
                continue
            computation, expected = Computation(), []
            base = numbers(rng, kind, shape, 0.9, 1.1) if name == "prod" else numbers(rng, kind, shape)
            if name in ("sum", "prod", "mean", "nansum", "nanmean") and kind in INTEGERS:
                base = (base % 7).astype(base.dtype)
            if name.startswith("nan") and kind in FLOATS:
                base = np.where(rng.random(shape) < 0.3, np.nan, base).astype(base.dtype)
            for array in layouts(base):
                for keep in (0, 1):
                    computation.output(computation.op(name, computation.input(array), axes=axes, keep=keep))
                    with np.errstate(all="ignore"):
                        exact = wide(array)
                        if name in ("sum", "prod", "nansum") and kind in INTEGERS:
                            exact = exact.astype(np.int64 if kind[0] == "i" else np.uint64)
                        scale = SCALE[name](exact, axes=axes, keep=keep) if name in SCALE and kind in FLOATS else None
                        expected.append((REFERENCE[name](exact, axes=axes, keep=keep), scale))
            for own, (right, scale) in zip(computation.run(), expected):
                if name in ("mean", "nanmean") and kind not in FLOATS:
                    right = np.asarray(right).astype(np.float32)
                    scale = right
                judge(name, own, right, scale)
