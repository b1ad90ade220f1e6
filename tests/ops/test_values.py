"""Every operation of the table that has a reference, in every type that it takes, on shapes of every kind."""

import numpy as np
import pytest

import hgops
from hgops import NAME_OF, TABLE, TYPES, Computation
from reference import REFERENCE

pytestmark = pytest.mark.engine

FLOATS, INTEGERS = ("f16", "bf16", "f32", "f64"), ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
SETS = {"number": INTEGERS + FLOATS, "float": FLOATS, "integer": INTEGERS, "bool": ("bool",), "any": INTEGERS + FLOATS + ("bool",)}
SHAPES = [(), (1,), (7,), (300,), (3, 5), (1, 4, 3), (4, 1, 70), (0, 3), (2, 0)]
EPSILON = {"f16": 2.0 ** -10, "bf16": 2.0 ** -7, "f32": 2.0 ** -23, "f64": 2.0 ** -52}
TINY = {"f16": 2.0 ** -24, "bf16": 2.0 ** -133, "f32": 2.0 ** -149, "f64": 2.0 ** -1074}
# What is out of an operation's domain gives NaN, which compares too; these ranges keep most inputs inside.
RANGES = {"asin": (-1, 1), "acos": (-1, 1), "log1p": (-0.9, 9), "pow": (0.1, 4), "exp2": (-9, 9), "exp": (-9, 9)}
# Units in the last place of the type: functions are within one, formulas add up the roundings of their steps (f32 for 16 bits).
LOOSE = {"softmax": 16, "log_softmax": 16, "layer_norm": 40, "rms_norm": 16, "mish": 16, "silu": 8, "softplus": 8, "elu": 4, "norm": 16,
         "huber": 16, "mse": 16, "l1": 16, "bce_with_logits": 16, "lerp": 8, "hardswish": 8, "logsumexp": 16, "var": 16, "std": 16}
# Where the reference itself is off in f64: it rounds what the operation does not, or an argument that matters.
LOOSE_F64 = {"fma": 64, "gelu": 64, "gelu_tanh": 64}


def types_of(name, place=0):
    parts = TABLE[name]["types"].split(";")
    words = parts[min(place, len(parts) - 1)].split()
    return [kind for word in words for kind in SETS[word]]


def numbers(rng, kind, shape, low=-4.0, high=4.0):
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in INTEGERS:
        info = np.iinfo(TYPES[kind])
        small = rng.integers(max(info.min, -9), 10, shape).astype(TYPES[kind])
        wide = rng.integers(info.min, info.max, shape, dtype=TYPES[kind], endpoint=True)
        return np.where(rng.random(shape) < 0.7, small, wide).astype(TYPES[kind])
    return np.asarray(rng.uniform(low, high, shape)).astype(TYPES[kind])


def wide(array):
    """As the reference wants it."""
    return array.astype(np.float64) if NAME_OF[array.dtype] in FLOATS else array


def assert_close(name, own, expected, scale=None):
    kind = NAME_OF[own.dtype]
    assert own.shape == np.shape(expected), f"{name}: shape {own.shape}, not {np.shape(expected)}"
    if kind not in FLOATS:
        expected = np.asarray(expected)
        if expected.dtype == object or expected.dtype.kind in "iu":
            bits = own.dtype.itemsize * 8
            mask = (1 << bits) - 1
            same = [(int(a) - int(b)) & mask == 0 for a, b in zip(own.ravel(), expected.ravel())]
            assert all(same), f"{name} {kind}"
        else:
            assert np.array_equal(own, expected.astype(own.dtype)), f"{name} {kind}"
        return
    own = own.astype(np.float64)
    largest = float(np.finfo(TYPES[kind]).max) if kind != "bf16" else 3.39e38
    with np.errstate(all="ignore"):
        expected = np.asarray(expected, np.float64)
        expected = np.where(np.abs(expected) > largest * (1 + EPSILON[kind] / 4), np.sign(expected) * np.inf, expected)
        size = np.maximum(np.abs(expected), 0 if scale is None else scale)
        units = LOOSE.get(name, LOOSE_F64.get(name, 4) if kind == "f64" else 1.01)
        allowed = units * EPSILON[kind] * size + 1.5 * TINY[kind]
        wrong = ~((own == expected) | (np.isnan(own) & np.isnan(expected)) | (np.abs(own - expected) <= allowed))
    at = np.argwhere(np.atleast_1d(wrong))
    assert at.size == 0, f"{name} {kind}: {len(at)} of {own.size} are off, first {np.atleast_1d(own)[tuple(at[0])]!r}, " \
                         f"not {np.atleast_1d(expected)[tuple(at[0])]!r}"


def layouts(array):
    """The array itself, and with other strides: transposed, backwards, every second element."""
    yield array
    if array.ndim >= 2:
        yield np.ascontiguousarray(array.T).T
    if array.ndim >= 1 and array.size:
        yield np.ascontiguousarray(array[::-1])[::-1]
        doubled = np.repeat(array, 2, axis=-1)
        yield doubled[..., ::2]


POINTWISE = [name for name, row in TABLE.items() if row["kind"] == "pointwise" and name in REFERENCE]


@pytest.mark.parametrize("name", POINTWISE)
def test_pointwise(name):
    """All types, shapes and layouts as one computation of many outputs a type."""
    count = len([i for i in TABLE[name]["inputs"].split(",") if i.strip()])
    for kind in types_of(name, count - 1):
        rng = np.random.default_rng(len(name) * 31 + hgops.CODES[kind])
        for shape in SHAPES:
            computation, expected = Computation(), []
            low, high = RANGES.get(name, (-4.0, 4.0))
            others = [shape] * count
            if count > 1 and len(shape) > 1:
                others[1] = tuple(1 if i == 0 else n for i, n in enumerate(shape))
            arrays = [numbers(rng, kind if kind in types_of(name, i) else types_of(name, i)[0], others[i], low, high)
                      for i in range(count)]
            for first in layouts(arrays[0]):
                given = [first] + arrays[1:]
                computation.output(computation.op(name, *[computation.input(a) for a in given]))
                with np.errstate(all="ignore"):
                    expected.append(REFERENCE[name](*[wide(a) for a in given]))
            for own, right in zip(computation.run(), expected):
                assert_close(name, own, right)


@pytest.mark.parametrize("name", [n for n, row in TABLE.items() if row["kind"] == "reduce" or n in
                                  ("mean", "var", "std", "norm", "logsumexp", "count_nonzero")])
def test_reductions(name):
    for kind in types_of(name):
        rng = np.random.default_rng(len(name) + hgops.CODES[kind])
        for shape, axes in [((7,), [0]), ((3, 5), [1]), ((3, 5), [0]), ((3, 5), [1, 0]), ((2, 3, 4), [0, 2]), ((2, 3, 4), [1]),
                            ((2, 1000), [1]), ((700, 3), [0]), ((1, 5000), [-1]), ((5, 1), [1]), ((4, 6, 10), [0, 1, 2])]:
            computation, expected = Computation(), []
            base = numbers(rng, kind, shape, 0.9, 1.1) if name == "prod" else numbers(rng, kind, shape)
            if name in ("sum", "prod", "mean") and kind in INTEGERS:
                base = (base % 7).astype(base.dtype)
            for array in layouts(base):
                for keep in (0, 1):
                    computation.output(computation.op(name, computation.input(array), axes=axes, keep=keep))
                    with np.errstate(all="ignore"):
                        exact = wide(array)
                        if name in ("sum", "prod") and kind in INTEGERS:
                            exact = exact.astype(np.int64 if kind[0] == "i" else np.uint64)
                        expected.append(REFERENCE[name](exact, axes=axes, keep=keep))
            size = np.sum(np.abs(wide(base)), axis=tuple(axes)).max() if kind in FLOATS and name in ("sum", "mean") else None
            for own, right in zip(computation.run(), expected):
                if name == "prod" and kind in FLOATS:
                    size = np.abs(right).max() * 40
                if name in ("mean", "var", "std") and kind not in FLOATS:
                    right = np.asarray(right).astype(np.float32)
                assert_close(name, own, right, size)


FORMULAS = [name for name in REFERENCE if TABLE[name]["kind"] == "formula" and name not in
            ("mean", "var", "std", "norm", "logsumexp", "count_nonzero", "linear")]


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas(name):
    inputs = [i.strip() for i in TABLE[name]["inputs"].split(",")]
    for kind in [k for k in types_of(name) if k in FLOATS]:
        rng = np.random.default_rng(len(name) * 7 + hgops.CODES[kind])
        for shape in [(7,), (3, 5), (4, 1, 70), (2, 3000)]:
            arrays = []
            for i in inputs:
                if i in ("positive?", "weight?") and name.startswith("bce"):
                    continue
                arrays.append(numbers(rng, kind, shape[-1:] if i in ("weight?", "bias?") else shape,
                                      *((0, 1) if i == "target" and name.startswith("bce") else (-4, 4))))
            computation = Computation()
            computation.output(computation.op(name, *[computation.input(a) for a in arrays]))
            right = REFERENCE[name](*[wide(a) for a in arrays])
            size = np.abs(right).max() if name in ("layer_norm", "rms_norm", "log_softmax", "mish", "silu", "lerp", "hardswish") else None
            assert_close(name, computation.run()[0], right, size)


@pytest.mark.parametrize("kind", FLOATS + ("i8", "i32", "i64"))
def test_matmul(kind):
    rng = np.random.default_rng(3)
    for a, b in [((3, 4), (4, 5)), ((1, 7), (7, 1)), ((65, 300), (300, 33)), ((2, 3, 8), (8, 4)), ((2, 1, 3, 8), (5, 8, 4)),
                 ((7,), (7, 3)), ((3, 7), (7,)), ((2, 0), (0, 3)), ((0, 2), (2, 3))]:
        x, y = numbers(rng, kind, a, -1, 1), numbers(rng, kind, b, -1, 1)
        if kind == "i64":
            x, y = (x % 1000).astype(np.int64), (y % 1000).astype(np.int64)
        if kind == "i32":
            x, y = (x % 1000).astype(np.int32), (y % 1000).astype(np.int32)
        exact = np.int64 if kind in INTEGERS else np.float64
        right = np.matmul(wide(x).astype(exact), wide(y).astype(exact))
        assert_close("matmul", hgops.apply("matmul", x, y), right, None if kind in INTEGERS else 100.0)
