"""Arrays against NumPy: operators, functions of the table, shapes, indexing, printing."""

import operator
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg

FLOATS = ["float32", "float64"]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


def numbers(shape, name, seed=0):
    rng = np.random.default_rng(seed)
    if name == "bool":
        return np.asarray(rng.integers(0, 2, shape)).astype(bool)
    if name.startswith("float"):
        return np.asarray(rng.uniform(-3, 3, shape)).astype(name)
    return np.asarray(rng.integers(0 if name[0] == "u" else -20, 20, shape)).astype(name)


def same(x, expected, **tolerance):
    expected = np.asarray(expected)
    assert x.shape == expected.shape and x.dtype == expected.dtype, (x.shape, x.dtype, expected.shape, expected.dtype)
    if tolerance:
        np.testing.assert_allclose(x.numpy(), expected, **tolerance)
    else:
        np.testing.assert_array_equal(x.numpy(), expected)


@st.composite
def broadcastable(draw):
    shape = draw(shapes)
    other = tuple(1 if draw(st.booleans()) else size for size in shape)[draw(st.integers(0, len(shape))):]
    return (shape, other) if draw(st.booleans()) else (other, shape)


BOTH = [operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@pytest.mark.parametrize("function", BOTH, ids=lambda f: f.__name__)
@given(broadcastable(), st.integers(0, 9))
def test_operators(function, name, pair, seed):
    a, b = numbers(pair[0], name, seed), numbers(pair[1], name, seed + 1)
    same(function(hg.asarray(a), hg.asarray(b)), function(a, b))


@pytest.mark.parametrize("name", FLOATS)
@given(broadcastable(), st.integers(0, 9))
def test_division_of_floats(name, pair, seed):
    a, b = numbers(pair[0], name, seed), numbers(pair[1], name, seed + 1)
    x, y = hg.asarray(a), hg.asarray(b)
    same(x / y, a / b)
    same(x // y, np.floor(a / b))
    same(x % y, np.remainder(a, b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", INTEGERS)
@given(shapes, st.integers(0, 9))
def test_division_of_integers(name, shape, seed):
    a, b = numbers(shape, name, seed), np.asarray(numbers(shape, name, seed + 1))
    b = np.where(b == 0, b.dtype.type(3), b)
    x, y = hg.asarray(a), hg.asarray(b)
    same(x // y, a // b)
    same(x % y, a % b)
    same(x / y, a.astype("f4") / b.astype("f4"))


@pytest.mark.parametrize("name", ["bool", *INTEGERS])
@pytest.mark.parametrize("function", BITS, ids=lambda f: f.__name__)
def test_bits(function, name):
    a, b = numbers((3, 5), name), numbers((3, 5), name, 1)
    same(function(hg.asarray(a), hg.asarray(b)), function(a, b))
    same(~hg.asarray(a), ~a)


@pytest.mark.parametrize("name", INTEGERS)
def test_shifts(name):
    a, count = numbers((7,), name), (np.arange(7)).astype(name)
    same(hg.asarray(a) << hg.asarray(count), a << count)
    same(hg.asarray(a) >> hg.asarray(count), a >> count)


@pytest.mark.parametrize("name", FLOATS + INTEGERS)
@given(st.integers(0, 20))
def test_python_numbers_take_the_array_s_type(name, number):
    a = numbers((5,), name)
    x = hg.asarray(a)
    same(x + number, a + a.dtype.type(number))
    same(number - x, a.dtype.type(number) - a)
    same(number * x, a * a.dtype.type(number))
    same(x < number, a < number)
    if name in FLOATS:
        same(2.5 / x, a.dtype.type(2.5) / a)
        same(x**2, a * a)
        same(x**2.0, a * a)
    else:
        same(x + 0.5, a.astype("f4") + np.float32(0.5))
        same(x**2, a * a)


def test_numbers_out_of_range():
    with pytest.raises(OverflowError):
        hg.asarray([1], dtype="uint8") + 256
    with pytest.raises(OverflowError):
        hg.asarray([1], dtype="uint8") - (-1)


def test_types_that_meet():
    assert (hg.ones(3) + hg.arange(3)).dtype == "float32"
    assert (hg.asarray([1], dtype="int8") + hg.asarray([1], dtype="int32")).dtype == "int32"
    assert (hg.asarray([1.0], dtype="float32") + hg.asarray([1.0], dtype="float64")).dtype == "float64"
    with pytest.raises(ValueError, match="broadcast"):
        hg.ones(3) + hg.ones(4)


def test_numbers_that_change_give_the_same_program_s_bits():
    x = numbers((100,), "float32")
    for number in (0.1, 0.2, 0.3, 1e-30, float("inf")):
        same(hg.asarray(x) * number + 1, x * np.float32(number) + np.float32(1))
    big = hg.asarray(numbers((10,), "float64"))
    for number in (0.1, 0.2, 0.7):
        same(big + number, big.numpy() + number)
    for number in (1, 2**40, -7):
        same(hg.asarray([1, 2]) + number, np.array([1, 2]) + number)


UNARY = {"exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil,
         "trunc": np.trunc, "round": np.round, "abs": np.abs, "neg": np.negative, "expm1": np.expm1, "log1p": np.log1p, "log2": np.log2,
         "log10": np.log10, "cbrt": np.cbrt, "exp2": np.exp2, "square": np.square, "sinh": np.sinh, "cosh": np.cosh, "atan": np.arctan,
         "sign": np.sign, "reciprocal": np.reciprocal, "isnan": np.isnan, "isfinite": np.isfinite, "isinf": np.isinf, "tan": np.tan}


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", UNARY)
def test_functions(function, name):
    for shape in ((), (0,), (7,), (3, 5)):
        a = numbers(shape, name)
        expected = np.asarray(UNARY[function](a))
        for made in (getattr(hg, function)(hg.asarray(a)), getattr(hg.asarray(a), function)()):
            same(made, expected, rtol=2e-6 if name == "float32" else 1e-14, atol=1e-7 if name == "float32" else 1e-15)


REDUCTIONS = ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean", "var", "std"]


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("function", REDUCTIONS)
@given(st.integers(0, 3), st.booleans())
def test_reductions(function, name, axis, keep):
    a = numbers((2, 3, 4), name)
    x = hg.asarray(a)
    axis = None if axis == 3 else axis
    if function in ("any", "all"):
        a, x = a > 0, x > 0
    expected = getattr(np, function)(a, axis=axis, keepdims=keep)
    tolerance = {} if function in ("any", "all", "min", "max", "argmin", "argmax") else {"rtol": 1e-5}
    same(getattr(hg, function)(x, axis=axis, keepdims=keep), expected, **tolerance)
    same(getattr(x, function)(axis, keep=keep), expected, **tolerance)


@pytest.mark.parametrize("name", INTEGERS)
def test_sums_of_integers_are_wide(name):
    a = numbers((1000,), name)
    same(hg.sum(hg.asarray(a)), a.sum(dtype="uint64" if name[0] == "u" else "int64"))


@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 5), st.integers(0, 3))
def test_matmul(m, k, n, batch):
    a, b = numbers((batch, m, k) if batch else (m, k), "float64"), numbers((k, n), "float64", 1)
    same(hg.asarray(a) @ hg.asarray(b), a @ b, rtol=1e-12, atol=1e-12)
    same(hg.asarray(a) @ hg.asarray(b[:, 0]), a @ b[:, 0], rtol=1e-12, atol=1e-12)


def test_joining():
    a, b = numbers((2, 3), "float32"), numbers((2, 3), "float32", 1)
    x, y = hg.asarray(a), hg.asarray(b)
    for made in (hg.concatenate([x, y], axis=1), hg.concatenate((x, y), 1), hg.concatenate(x, y, axis=1)):
        same(made, np.concatenate([a, b], 1))
    same(hg.stack([x, y]), np.stack([a, b]))
    same(hg.where(x > y, x, 0.0), np.where(a > b, a, np.float32(0)))
    same(hg.maximum(x, 0), np.maximum(a, np.float32(0)))
    many = [hg.asarray(numbers((2,), "float32", i)) for i in range(40)]
    same(hg.concatenate(many), np.concatenate([m.numpy() for m in many]))


@given(shapes.filter(lambda s: np.prod(s) > 0), st.data())
def test_reshape_and_transpose(shape, data):
    a = numbers(shape, "float32")
    x = hg.asarray(a)
    axes = data.draw(st.permutations(range(len(shape))))
    same(x.reshape(-1), a.reshape(-1))
    same(x.T, a.T)
    same((x + 1).T, (a + 1).T)
    same(x.transpose(axes), a.transpose(axes))
    same(x.transpose(axes).reshape(-1), a.transpose(axes).reshape(-1))
    same(x.broadcast_to((2, *shape[:3])) if len(shape) < 4 else x, np.broadcast_to(a, (2, *shape)) if len(shape) < 4 else a)


@st.composite
def indexed(draw):
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple))
    parts = []
    for size in shape[: draw(st.integers(0, len(shape)))]:
        parts.append(draw(st.one_of(st.integers(-size, size - 1), st.slices(size), st.just(slice(None)))))
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return shape, tuple(parts)


@given(indexed(), st.booleans())
def test_indexing(case, is_pending):
    shape, key = case
    a = numbers(shape, "float32")
    x = hg.asarray(a)
    if is_pending:
        a, x = a + 1, x + 1
    try:
        expected = a[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key]
        return
    same(x[key], expected)


@given(indexed(), st.booleans(), st.booleans())
def test_assignment(case, is_pending, is_number):
    shape, key = case
    a = numbers(shape, "float32")
    before = hg.asarray(a.copy())
    x = before + 0 if is_pending else hg.array(a)
    held, pending = x, x * 2
    try:
        part = a[key]
    except IndexError:
        with pytest.raises(IndexError):
            x[key] = 1
        return
    value = 7.0 if is_number else numbers(part.shape, "float32", 3)
    twice = a * 2
    a[key] = value
    x[key] = value if is_number else hg.asarray(value)
    same(x, a)
    assert held is x
    same(pending, twice)


def test_assignment_of_overlapping_parts():
    a = np.arange(10, dtype="f4")
    x = hg.array(a)
    x[2:] = x[:-2]
    a[2:] = a[:-2].copy()
    same(x, a)
    x[::-1] = x
    same(x, a[::-1])
    x += 1
    same(x, a[::-1] + 1)
    with pytest.raises(ValueError):
        x[:3] = hg.ones(4)
    with pytest.raises(TypeError):
        x[0] = "a"
    with pytest.raises(TypeError):
        del x[0]


def test_indexing_by_arrays():
    a = numbers((5, 3), "float32")
    x = hg.asarray(a)
    for index in ([0, 4, -1], [[1, 2], [-5, 0]], []):
        key = np.asarray(index, "int64")
        same(x[hg.asarray(key)], a[key])
    same(x[hg.asarray(np.array([1, 2], "uint8"))], a[[1, 2]])
    for mask in (a > 0, a[:, 0] > 0, np.zeros(5, bool)):
        same(x[hg.asarray(mask)], a[mask])
    y = hg.array(a)
    y[y > 0] = 0.0
    same(y, np.where(a > 0, np.float32(0), a))
    with pytest.raises(IndexError):
        x[hg.asarray(np.zeros(4, bool))]
    with pytest.raises(TypeError):
        x[1.5]
    with pytest.raises(IndexError, match="axis 0, which has 5"):
        x[5]
    with pytest.raises(IndexError):
        x[0, 0, 0]


def test_conversions():
    assert float(hg.asarray(2.5)) == 2.5 and int(hg.asarray([3])) == 3 and bool(hg.asarray(0.0)) is False
    assert [10, 20][hg.asarray(1)] == 20
    with pytest.raises(ValueError, match="any"):
        bool(hg.ones(2))
    with pytest.raises(TypeError):
        [1][hg.ones(())]
    with pytest.raises(TypeError):
        len(hg.asarray(1.0))
    with pytest.raises(TypeError):
        hash(hg.ones(2))
    assert len(hg.ones((3, 2))) == 3 and [row.tolist() for row in hg.ones((2, 1))] == [[1], [1]]
    assert hg.asarray([1, 2]).astype("float32").dtype == hg.float32
    for value in (0, -1, 127, -128):
        assert hg.asarray(value, dtype="int8").item() == value


def test_creation():
    same(hg.zeros((2, 3)), np.zeros((2, 3), "f4"))
    same(hg.ones(4, dtype="int16"), np.ones(4, "i2"))
    same(hg.full((2,), 7), np.full(2, 7))
    same(hg.full((), 2**62 + 1), np.array(2**62 + 1))
    same(hg.zeros_like(hg.ones((2, 2))), np.zeros((2, 2), "f4"))
    same(hg.arange(5), np.arange(5))
    same(hg.arange(9, 2, -2), np.arange(9, 2, -2))
    same(hg.arange(2.0, 4), np.arange(2, 4, dtype="f4"))
    same(hg.linspace(0, 1, 5, dtype="float64"), np.linspace(0, 1, 5))
    same(hg.eye(3, type="float32"), np.eye(3, dtype="f4"))


def test_printing():
    assert str(hg.asarray([1, 2, 30])) == "[ 1,  2, 30]"
    assert repr(hg.asarray([[1.5], [2.0]])) == "Array([[1.5],\n       [2. ]], dtype=float32)"
    assert repr(hg.asarray(True)) == "Array(True, dtype=bool)"
    assert "..." in str(hg.ones(2000)) and len(str(hg.ones((100, 100, 100)))) < 4000
    assert str(hg.ones((2, 0))) == "[]" and str(hg.asarray([float("nan"), float("inf")])) == "[nan, inf]"
    assert repr(hg.asarray([1.0], dtype="bfloat16")) == "Array([1.], dtype=bfloat16)"
    assert repr(hg.float32) == "hologram.float32" and str(hg.int8) == "int8"


def test_calls_that_are_wrong():
    x = hg.ones((2, 3))
    for call, words in ((lambda: hg.exp(), "missing"), (lambda: hg.exp(x, 1), "arguments"), (lambda: hg.exp("a"), "asarray"),
                        (lambda: hg.sum(x, along=1), "along"), (lambda: hg.exp(x, x=x), "twice"), (lambda: hg.sum(x, axis="a"), "axis"),
                        (lambda: hg.add(x, None), "missing"), (lambda: hg.exp(object()), "asarray")):
        with pytest.raises(TypeError, match=words):
            call()
    for call, words in ((lambda: hg.sum(x, axis=2), "axis|2"), (lambda: hg.mse(x, x, reduction="most"), "one of"),
                        (lambda: x.reshape(4), "6|4"), (lambda: x.reshape(-1, -1), "-1"), (lambda: x @ hg.ones((2, 2)), "matmul")):
        with pytest.raises(ValueError, match=words):
            call()


def test_every_row_has_a_function_with_a_signature():
    import inspect

    for name in ("softmax", "layer_norm", "concatenate", "adam", "full", "uniform", "sum"):
        function = getattr(hg, name)
        assert function.__doc__ and inspect.signature(function)
    assert list(inspect.signature(hg.layer_norm).parameters) == ["x", "weight", "bias", "axis", "eps"]
    assert "Softmax" in hg.cross_entropy_of_classes.__doc__


def test_types_are_what_numpy_calls_them():
    assert hg.float32 == np.float32 == hg.float32 and hg.float32 == np.dtype("f4") and hg.float32 == "float32" and hg.float32 != "float64"
    assert hg.float32 == "f32" and hg.bool == bool and hg.float32.itemsize == 4 and hg.bfloat16.kind == "float"
    assert {hg.int8: 1}[hg.int8] == 1
    import pickle

    assert pickle.loads(pickle.dumps(hg.uint8)) is hg.uint8


def test_rows_are_gone_through():
    x = hg.asarray(np.arange(6, dtype="f4").reshape(2, 3))
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]] and isinstance(x, Iterable)
    with pytest.raises(TypeError, match="without axes"):
        iter(hg.asarray(1.0))


def test_a_thousand_arrays_in_one_call():
    rng = np.random.default_rng(0)
    right = list(rng.standard_normal((1000, 3)).astype(np.float32))
    arrays = [hg.asarray(x) for x in right]
    norm = np.sqrt(np.sum(np.square(right, dtype=np.float64)))
    for wrap in (lambda f: f, hg.jit):
        assert np.array_equal(np.asarray(wrap(lambda *xs: hg.concatenate(list(xs)))(*arrays)), np.concatenate(right))
        assert np.array_equal(np.asarray(wrap(lambda *xs: hg.stack(list(xs), 1))(*arrays)), np.stack(right, 1))
        clipped, total = wrap(lambda *xs: hg.optim.clip_norm(list(xs), 1.0))(*arrays)
        assert np.isclose(float(total), norm, rtol=1e-6)
        assert np.allclose(np.stack([np.asarray(x) for x in clipped]), right / norm, rtol=1e-4)
    assert np.array_equal(np.asarray(hg.array(arrays)), np.stack(right))
