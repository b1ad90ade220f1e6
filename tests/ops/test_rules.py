"""What nobody should have to guess: rules of the table that are no formula's matter. Besides: the orders of sums and products in
test_fold_order.c and test_contract_programs.c, of scatter_add in test_scatter_add.py, statistics of batch_norm in
test_value_formulas.py, memory layouts in test_values.py, overlapping memory in test_executables.c and test_updates.py."""

import operator

import numpy as np
import pytest

from hgops import NAME_OF, NO_FUSION, TYPES, Computation, Error, apply

pytestmark = pytest.mark.engine
f32 = np.float32
INF, NAN = np.inf, np.nan


def array(*numbers, kind=f32):
    return np.array(numbers, kind)


EDGES = [0, 1, -1, 2**7, 2**8, 2**15, 2**24, 2**24 + 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**62, 2**63, 2**64]


@pytest.mark.parametrize("name, right", [("less", operator.lt), ("less_equal", operator.le), ("greater", operator.gt),
                                         ("greater_equal", operator.ge), ("equal", operator.eq), ("not_equal", operator.ne)])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
@pytest.mark.parametrize("whole", ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_integers_and_floats_compare_as_numbers(name, right, kind, whole):
    limits = np.iinfo(TYPES[whole])
    numbers = {sign * edge + more for edge in EDGES for sign in (1, -1) for more in (-1, 0, 1)} | {limits.min, limits.max}
    integers = sorted(n for n in numbers if limits.min <= n <= limits.max)
    with np.errstate(over="ignore"):
        near = {float(TYPES[kind](v)) for n in numbers for v in (float(n), n + 0.5, n - 0.25)}
    floats = sorted(near | {5e-324, 1e300, -1e300, INF, -INF}) + [NAN, -0.0]
    with np.errstate(over="ignore"):
        a, b = np.array(integers, TYPES[whole])[:, None], np.array(floats, TYPES[kind])[None, :]
    expected = [[right(int(i), float(f)) for f in b[0]] for i in a[:, 0]]  # Python compares them exactly
    assert np.array_equal(apply(name, a, b), expected)
    mirrored = [[right(float(f), int(i)) for f in b[0]] for i in a[:, 0]]
    assert np.array_equal(apply(name, b, a), mirrored)


@pytest.mark.parametrize("a, b, right", [("i64", "f32", "f32"), ("bool", "f16", "f16"), ("u64", "f64", "f64"), ("bool", "i8", "i8")])
def test_of_two_kinds_the_higher_one_s_type(a, b, right):
    for first, second in ((a, b), (b, a)):
        own = apply("maximum", np.full(2, 1, TYPES[first]), np.full(2, 1, TYPES[second]))
        assert NAME_OF[own.dtype] == right and own.tolist() == [1, 1]


def test_functions_make_f32_of_integers():
    own = apply("sqrt", np.array([0, 4, 2**40]))
    assert NAME_OF[own.dtype] == "f32" and own.tolist() == [0, 2, 2.0**20]
    assert apply("floor", np.array([2**53 + 1])).tolist() == [2**53 + 1]


@pytest.mark.parametrize("name, right", [("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True), ("mean", NAN), ("var", NAN)])
def test_of_nothing(name, right):
    own = apply(name, np.zeros((0,), f32))
    assert np.array_equal(own, right, equal_nan=True) and not np.signbit(own if name == "sum" else 1.0)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
def test_nothing_to_choose_from(name):
    with pytest.raises(Error):
        apply(name, np.zeros((0,), f32))


def test_integers_add_up_in_64_bits():
    assert apply("sum", np.full(300, 200, np.uint8)).dtype == np.uint64
    assert apply("sum", np.full(300, 100, np.int8)) == 30000
    assert apply("sum", np.ones(5, bool)).dtype == np.int64
    mean = apply("mean", array(1, 2, 2, kind=np.int32))
    assert mean.dtype == f32 and mean == f32(5 / 3)


@pytest.mark.parametrize("ddof", [3.0, 4.0])
def test_var_without_degrees_of_freedom(ddof):
    assert np.isnan(apply("var", array(1, 2, 3), ddof=ddof))


def fold(values):
    """Order F: by halves, in chunks of 4096."""
    values = list(values)
    while len(values) > 4096:
        values = [fold(values[i:i + 4096]) for i in range(0, len(values), 4096)]
    half = 1 << max(0, (len(values) - 1).bit_length() - 1)
    while len(values) > 1:
        values = [a + values[i + half] if i + half < len(values) else a for i, a in enumerate(values[:half])]
        half //= 2
    return values[0]


@pytest.mark.parametrize("n", [1, 2, 3, 100, 4095, 4096, 4097, 9001])
def test_sums_fold_by_halves(n):
    x = np.random.default_rng(n).standard_normal(n, f32)
    total, count = fold(x), f32(n)
    assert apply("sum", x) == total and apply("mean", x) == total / count
    d = x - total / count
    assert apply("var", x) == fold(d * d) / count
    if n > 1:
        assert apply("var", x, ddof=1.0) == fold(d * d) / (count - f32(1))


@pytest.mark.parametrize("shape", [(8192, 64), (9001, 70), (33000, 20), (600, 900)])
def test_long_columns_fold_by_halves(shape):
    """So large that a processor reads them in one pass: whole chunks and others, columns of blocks and of lanes."""
    x = np.random.default_rng(shape[0]).standard_normal(shape)
    x[:, 1] = -0.0
    total = fold(x)
    assert apply("sum", x, axes=[0]).tobytes() == total.tobytes()
    assert np.array_equal(apply("max", x, axes=[0]), x.max(0))


def test_zeros_keep_their_sign():
    assert np.signbit(apply("sum", array(-0.0, -0.0))) and not np.signbit(apply("sum", array(-0.0, 0.0)))


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_what_nothing_is_left_of_has_the_divisor_s_sign(kind):
    own = apply("remainder", array(0, -0.0, 0, -0.0, 6, -6, kind=TYPES[kind]), array(2, 2, -2, -2, -3, 3, kind=TYPES[kind]))
    assert np.array_equal(own, np.zeros(6)) and np.signbit(own).tolist() == [False, False, True, True, True, False]


def test_several_axes_are_one_sequence():
    x = np.random.default_rng(2).standard_normal((5, 7, 300)).astype(f32)
    for axes in ((0, 2), (2, 0), (0, 1), (0, 1, 2)):
        kept = [i for i in range(3) if i not in axes]
        line = np.ascontiguousarray(x.transpose(kept + sorted(axes))).reshape([x.shape[i] for i in kept] + [-1])
        assert np.array_equal(apply("sum", x, axes=list(axes)), apply("sum", line, axes=[-1]))


def test_mean_of_integers_is_a_quotient_in_f64():
    rng, differs = np.random.default_rng(3), 0
    for _ in range(50):
        x = rng.integers(-2**31, 2**31, 7, np.int32)
        total = x.sum(dtype=np.int64)
        assert apply("mean", x) == f32(np.float64(total) / 7)
        differs += f32(np.float64(total) / 7) != f32(total) / f32(7)
    assert differs > 0


def test_products_of_nothing_and_of_what_is_not_read():
    nothing = apply("matmul", np.zeros((2, 0), f32), np.zeros((0, 3), f32))
    assert nothing.tolist() == [[0] * 3] * 2 and not np.signbit(nothing).any()
    a, b, c = np.full((2, 3), 2, f32), np.full((3, 2), 3, f32), np.full((2, 2), NAN, f32)
    assert apply("gemm", a, b, c, beta=0.0).tolist() == [[18, 18], [18, 18]]
    assert np.isnan(apply("gemm", a, b, c, alpha=0.0)).all()


@pytest.mark.parametrize("a, b, right", [
    ("u8", "i16", "i16"), ("u8", "i8", "i16"), ("u16", "i8", "i32"), ("u32", "i32", "i64"), ("u32", "u8", "u32"), ("i64", "i8", "i64"),
    ("f16", "f32", "f32"), ("f16", "bf16", "f32"), ("bf16", "f32", "f32"), ("f32", "f64", "f64"), ("bool", "bool", "bool")])
def test_promotion(a, b, right):
    """The array API's table, and for bf16 what it says of two types neither of which holds the other."""
    for first, second in ((a, b), (b, a)):
        own = apply("equal" if a == "bool" else "maximum", np.zeros(2, TYPES[first]), np.zeros(2, TYPES[second]))
        assert NAME_OF[own.dtype] == right


@pytest.mark.parametrize("a, b", [("u64", "i64"), ("u64", "i8")])
def test_no_common_type(a, b):
    with pytest.raises(Error, match=rf"{a}.*{b}"):
        apply("add", np.zeros(2, TYPES[a]), np.zeros(2, TYPES[b]))


def test_errors_name_both_operands():
    with pytest.raises(Error, match=r"add.*f32\[3, 4\].*f32\[5\]"):
        apply("add", np.zeros((3, 4), f32), np.zeros(5, f32))
    with pytest.raises(Error, match=r"matmul.*f32\[3, 4\].*f32\[5, 2\]"):
        apply("matmul", np.zeros((3, 4), f32), np.zeros((5, 2), f32))
    with pytest.raises(Error, match=r"concatenate.*f32\[3, 4\].*f32\[3\]"):
        apply("concatenate", np.zeros((3, 4), f32), np.zeros(3, f32))
    with pytest.raises(Error, match=r"softmax\(f32\[3, 4\]\).*axis 2"):
        apply("softmax", np.zeros((3, 4), f32), axis=2)


def test_places_of_extremes():
    assert apply("argmax", array(1, NAN, 9, NAN)) == 1 and apply("argmin", array(1, NAN, -9, NAN)) == 1
    assert apply("argmax", array(-0.0, 0.0)) == 0 and apply("argmin", array(0.0, -0.0)) == 0
    assert apply("argmax", array(3, 7, 7)) == 1


def test_infinities_in_rows():
    assert apply("logsumexp", array(INF, 1)) == INF and apply("logsumexp", array(-INF, -INF)) == -INF
    assert np.isnan(apply("softmax", array(-INF, -INF))).all()
    assert apply("softmax", array(-INF, 0)).tolist() == [0, 1]


def test_bounds():
    x = array(10, 20, 30)
    assert apply("take", x, array(-1, 0, kind=np.int32), bounds="wrap").tolist() == [30, 10]
    assert apply("take", x, array(-9, 9, kind=np.int32), bounds="clamp").tolist() == [10, 30]
    for bounds, bad in (("fault", 3), ("fault", -1), ("wrap", 3), ("wrap", -4)):
        with pytest.raises(Error) as error:
            apply("take", x, array(bad, kind=np.int32), bounds=bounds)
        assert error.value.status == "FAULT"


def test_formulas_of_16_bits_round_once():
    x = np.random.default_rng(1).standard_normal(64).astype(np.float16)
    assert np.array_equal(apply("softmax", x), apply("softmax", x.astype(f32)).astype(np.float16))
    assert apply("mean", x) == apply("mean", x.astype(f32)).astype(np.float16)


def test_operations_of_16_bits_round_each():
    """A graph of several operations is another program than a formula."""
    rng = np.random.default_rng(5)
    a, b, w = (rng.standard_normal(300).astype(np.float16) for _ in range(3))
    c = Computation()
    x, y, z = (c.input(v) for v in (a, b, w))
    c.output(c.op("mul", c.op("add", x, y), z))
    at_once = ((a.astype(f32) + b) * w).astype(np.float16)
    each = (a + b) * w
    assert not np.array_equal(at_once, each)
    assert np.array_equal(c.run()[0], each) and np.array_equal(c.run(NO_FUSION)[0], each)


def test_losses_at_the_extremes():
    x = array(1e4, -1e4)
    assert apply("softplus", x).tolist() == [1e4, 0]
    assert apply("bce_with_logits", x, array(1, 0)) == 0 and apply("bce_with_logits", x, array(0, 1)) == 1e4
    assert apply("kl_div", array(-1, -1), array(0, 0), reduction="sum") == 0
    assert apply("huber", array(1e30), array(0)) == f32(1e30)


def test_ignored_targets():
    x, t = np.zeros((3, 4), f32), np.array([1, -100, 2])
    own = apply("cross_entropy", x, t, reduction="none")
    assert own[1] == 0 and own[0] == own[2] == apply("cross_entropy", x, t)
    assert np.isclose(apply("cross_entropy", x, t, smoothing=0.3), np.log(4))


def test_values_that_are_read_twice_again_and_again():
    """2^1000 ways lead from the result to the input: each value is gone through once at each index."""
    x = np.arange(24, dtype=f32).reshape(4, 6)
    c = Computation()
    y, half = c.input(x), c.number("f32", 0.5)
    for _ in range(500):
        y = c.op("mul", c.op("add", y, y), half)
        y = c.op("mul", c.op("add", y, y), half)
        y = c.op("swap", y)
    c.output(y)
    assert np.array_equal(c.run()[0], x)
