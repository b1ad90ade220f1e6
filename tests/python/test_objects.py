"""Arrays as ordinary objects: pickle, copy, weak references, text, iteration; beside NumPy's arrays and lists."""

import copy
import gc
import multiprocessing
import operator
import pickle
import weakref

import numpy as np
import pytest

import hologram as hg
import hologram.array_api as api

TYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64",
         "float8_e4m3fn", "float8_e5m2"]


def same(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and x.tolist() == y.tolist()


# ---- copies and pickles ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(name, protocol):
    x = hg.asarray([[0, 1, 1], [1, 0, 1]]).astype("float32").astype(name)
    for y in (x, x[:, ::-1], x[1], x[0, 0], x[:0], x.reshape(3, 2).T):
        assert same(pickle.loads(pickle.dumps(y, protocol)), y)


def test_pickles_beside_their_elements():
    x, buffers = hg.asarray(np.arange(1000, dtype="f4")), []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(text) < 500 and len(buffers) == 1 and buffers[0].raw().nbytes == 4000
    again = pickle.loads(text, buffers=buffers)
    assert same(again, x) and np.shares_memory(np.asarray(again), np.asarray(x))


def test_pickles_keep_bits():
    bits = np.array([0x7FC1, 0xFF81, 0x0001, 0x8000], "u2")
    for name in ("bfloat16", "float16"):
        x = hg.bitcast(hg.asarray(bits), name)
        assert np.array_equal(np.asarray(hg.bitcast(pickle.loads(pickle.dumps(x)), "uint16")), bits)


def test_copies():
    x = hg.asarray(np.array([1.0, 2.0], "f4"))
    weights = {"w": [x, x * 2]}
    for make in (copy.copy, copy.deepcopy, lambda tree: pickle.loads(pickle.dumps(tree))):
        again = make(weights)
        assert again["w"][0].tolist() == [1, 2] and again["w"][1].tolist() == [2, 4]
    y = copy.copy(x)
    y[0] = 5
    assert x.tolist() == [1, 2] and y.tolist() == [5, 2]
    for make in (copy.copy, copy.deepcopy):
        assert hg.grad(lambda v, make=make: (make(v) * v).sum())(x).tolist() == [2, 4]
    with pytest.raises(TypeError, match="stop_gradient"):
        hg.grad(lambda v: pickle.loads(pickle.dumps(v)).sum())(x)


def double(x):
    return x * 2


def test_processes_send_arrays():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert [x.tolist() for x in pool.map(double, [hg.asarray([1.0, 2.0]), hg.ones(2)])] == [[2, 4], [2, 2]]


def test_weak_references():
    x = hg.ones(3)
    reference, gone = weakref.ref(x), []
    weakref.finalize(x, gone.append, True)
    assert reference() is x
    del x
    gc.collect()
    assert reference() is None and gone == [True]


# ---- text ------------------------------------------------------------------------------------------------------------------


def test_format():
    x = hg.asarray(np.float32(0.12345))
    assert f"{x:.3f}" == f"{x.reshape(1, 1):.3f}" == "0.123" and f"{x}" == str(x) and f"{hg.asarray(5):4d}" == "   5"
    with pytest.raises(TypeError, match="2 elements"):
        f"{hg.ones(2):.3f}"


def test_columns_stand_below_one_another():
    x = hg.asarray([[1.0, -20.5], [300.0, 4.0]])
    assert repr(x) == "Array([[  1. , -20.5],\n       [300. ,   4. ]], dtype=float32)"
    lines = repr(hg.arange(0, 100, 1)).split("\n")
    assert len(lines) == 6 and max(map(len, lines[:-1])) <= 76 and all(line.startswith("       ") for line in lines[1:])
    assert str(hg.zeros((2000, 2))).split("\n")[3] == " ...," and "0., 0., 0., ..., 0." in str(hg.zeros(2000))
    assert [row.tolist() for row in x] == x.tolist()


def test_reductions_as_numpy_calls_them():
    x = hg.asarray(np.arange(6, dtype="i1").reshape(2, 3))
    assert np.sum(x).tolist() == 15 and np.sum(x, axis=0).tolist() == [3, 5, 7] and np.max(x, axis=1).tolist() == [2, 5]
    assert x.sum(dtype="int8").dtype == "int8" and hg.mean(x, dtype="float64", out=None).dtype == "float64"
    assert x.sum(axis=1, dtype=hg.float32, keepdims=True).tolist() == [[3], [12]]
    y = hg.asarray(np.arange(6, dtype="f4").reshape(2, 3))
    assert np.var(y, ddof=1).tolist() == 3.5 and np.std(y, axis=0).tolist() == [1.5] * 3 and np.any(y, axis=1).tolist() == [True, True]
    assert y.var(dtype="float64").dtype == "float64" and np.argmax(y, axis=1).tolist() == [2, 2]
    for place in (y.argmax, y.any, y.count_nonzero):  # the elements would be of that type first
        with pytest.raises(TypeError, match="no argument 'dtype'"):
            place(dtype="int8")
    with pytest.raises(TypeError, match="out"):
        x.sum(out=np.zeros(()))
    with pytest.raises(TypeError, match="out"):
        hg.exp(hg.ones(2), out=None)


def test_types_by_numpy_s_codes():
    for code, name in (("f4", "float32"), ("f8", "float64"), ("i4", "int32"), ("f2", "float16"), ("i2", "int16"), ("u1", "uint8")):
        assert hg.ones(2, code).dtype == name == np.dtype(code)
    assert hg.ones(2, "i8").dtype == "int8" and hg.ones(2, np.dtype("i8")).dtype == "int64"  # Hologram's own word
    for name in TYPES:
        if name in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
            with pytest.raises(TypeError):
                np.dtype(hg.ones(2, name).dtype)
        else:
            assert np.zeros(2, dtype=hg.ones(2, name).dtype).dtype == np.dtype(hg.ones(2, name).dtype) == np.dtype(name)
    types = {float: "float32", int: "int64", bool: "bool", np.float64: "float64", hg.bfloat16: "bfloat16"}
    assert all(hg.ones(2, given).dtype == name for given, name in types.items())


# ---- beside NumPy ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("make", [lambda a: a, lambda a: a.tolist(), lambda a: tuple(a.tolist())])
def test_operators_with_arrays_and_lists(name, make):
    a, b = np.array([[1.5, 2.0], [4.0, 3.0]], "f4"), np.array([[2.0, 2.0], [0.5, 1.0]], "f4")
    own = getattr(operator, name)
    for left, right in ((hg.asarray(a), make(b)), (make(a), hg.asarray(b))):
        made = own(left, right)
        assert isinstance(made, hg.Array) and made.tolist() == own(hg.asarray(a), hg.asarray(b)).tolist()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "ge"])
@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.float16(2), np.int8(2), np.int64(2), np.uint64(2)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
def test_numbers_of_numpy_are_numbers_on_either_side(name, scalar, dtype):
    x, own = hg.asarray([1, 3], dtype=dtype), getattr(operator, name)
    for made, right in ((own(x, scalar), own(x, scalar.item())), (own(scalar, x), own(scalar.item(), x))):
        assert made.dtype == right.dtype and made.tolist() == right.tolist()


def test_numbers_of_numpy_compare_alike_on_either_side():
    x = hg.asarray([0.1, 0.2], dtype="float32")  # 0.1 as float32 is more than 0.1
    for scalar in (np.float64(0.1), np.float32(0.1), 0.1):
        assert (x == scalar).tolist() == (scalar == x).tolist() == [True, False] and (scalar < x).tolist() == [False, True]


STRANGE = [np.complex64(2), np.complex128(2), np.str_("2"), np.bytes_(b"2"), np.void(b"2"), np.array((1, 2.0), "i4,f4")[()],
           np.timedelta64(1), np.timedelta64(1, "ns"), np.timedelta64("NaT"), np.datetime64(1, "s"), np.datetime64(1, "ns")]  # fmt: skip


def as_value(x, scalar):
    x[0] = scalar


USES = [
    operator.add, operator.mul, operator.truediv, operator.floordiv, operator.pow, operator.lt, operator.eq, hg.maximum, as_value,
    lambda x, scalar: x[scalar], lambda x, scalar: x.at[0].add(scalar), lambda x, scalar: x.sum(axis=scalar),
    lambda x, scalar: hg.softmax(x, axis=scalar), lambda x, scalar: hg.zeros(scalar), lambda x, scalar: x.reshape(scalar, 2),
    lambda x, scalar: hg.full(2, scalar), lambda x, scalar: hg.asarray([scalar, 1.0]), lambda x, scalar: hg.where(x > 0, x, scalar),
    lambda x, scalar: hg.linspace(0, 1, scalar), lambda x, scalar: api.sort(x, axis=scalar), lambda x, scalar: api.roll(x, scalar),
    lambda x, scalar: api.tile(x, scalar), lambda x, scalar: hg.pad(x, scalar), lambda x, scalar: api.expand_dims(x, axis=scalar),
    lambda x, scalar: api.roll(x, 1, axis=scalar), lambda x, scalar: api.diff(x, axis=scalar), lambda x, scalar: api.repeat(x, scalar),
    lambda x, scalar: api.vecdot(x, x, axis=scalar), lambda x, scalar: hg.grad(lambda v: v.sum(), scalar)(x),
    lambda x, scalar: hg.random.key(scalar), lambda x, scalar: hg.arange(scalar)]  # fmt: skip


@pytest.mark.parametrize("scalar", [*STRANGE, np.longdouble(2)], ids=repr)
def test_scalars_of_numpy_that_are_no_numbers_here(scalar):
    for use in USES:
        for x in (hg.ones(2), hg.arange(2)):
            with pytest.raises(TypeError):
                use(x, scalar)
    for use in (operator.add, operator.mul, operator.truediv):
        with pytest.raises(TypeError):
            use(scalar, hg.ones(2))


@pytest.mark.parametrize("scalar", STRANGE, ids=repr)
def test_they_are_no_bounds_and_no_elements(scalar):
    for use in (hg.asarray, lambda v: hg.clip(hg.ones(2), v, 3), lambda v: hg.leaky_relu(hg.ones(2), v), lambda v: hg.linspace(0, v, 3),
                lambda v: hg.random.uniform(hg.random.key(1), (2,), 0.0, v)):  # fmt: skip
        with pytest.raises(TypeError):
            use(scalar)


@pytest.mark.parametrize("code", ["M8[s]", "m8[ns]", "U2", "S2", "c8", "V4", "i4,f4"])
def test_arrays_of_numpy_that_have_no_numbers(code):
    for array in (np.zeros(2, code), np.zeros((), code), np.zeros((2, 2), code)[:, ::2]):
        for use in (hg.asarray, hg.array, lambda a: hg.ones(2) + a, lambda a: a * hg.ones(2), lambda a: hg.asarray([a, a])):
            with pytest.raises(TypeError):
                use(array)


def test_sizes_and_axes_are_written_down():
    x = hg.ones((2, 2))
    for axis in (np.array([0, 1]), np.array([0]), hg.asarray([0, 1]), {0, 1}, "0", b"0", 0.0, np.float64(0), iter((0, 1))):
        for use in (x.sum, x.var, x.argmax, hg.flip, x.squeeze, hg.softmax, hg.logsumexp):
            with pytest.raises(TypeError, match="axis takes an int"):
                use(axis=axis) if use not in (hg.flip, hg.softmax, hg.logsumexp) else use(x, axis=axis)
    for axis in ((0, 1), [0, 1], range(2)):
        assert x.sum(axis=axis).tolist() == 4
    for axis in (0, np.int8(0), np.array(0), hg.asarray(0)):
        assert x.sum(axis=axis).tolist() == [2, 2]
    for sizes in ({2, 3}, {2: 3}, b"23", bytearray(b"2"), "23", iter((2, 3))):
        for use in (hg.zeros, hg.ones(6).reshape, hg.ones(2).broadcast_to):
            with pytest.raises(TypeError):
                use(sizes)
    assert api.roll(hg.asarray([[1, 2], [3, 4]]), np.array([1, 1]), axis=np.array([0, 1])).tolist() == [[4, 3], [2, 1]]
    assert hg.zeros(np.array([2, 3])).shape == hg.zeros(hg.asarray([2, 3])).shape == (2, 3)


def test_comparing_with_what_is_none():
    x = hg.ones(2)
    assert (x == [1, 2]).tolist() == [True, False] and (x != [1, 2]).tolist() == [False, True]
    assert (x == None) is False and (x != "one") is True and (x == object()) is False  # noqa: E711
    with pytest.raises(TypeError):
        hash(x)


def test_operands_are_read_when_they_are_given():
    a = np.ones(3, "f4")
    y, z = hg.ones(3) + a, hg.exp(a)
    a[:] = 100
    assert y.tolist() == [2, 2, 2] and z.tolist() == pytest.approx([2.7182817] * 3)


def test_functions_take_arrays_lists_and_numbers():
    a = np.array([1.0, 4.0])
    assert hg.sqrt(a).dtype == "float64" and hg.sqrt([1.0, 4.0]).tolist() == [1, 2] and hg.add(a, 0.1).tolist() == (a + 0.1).tolist()
    assert hg.maximum([1.0, 5.0], a).tolist() == [1, 5] and hg.stack([a, [0.0, 1.0]]).tolist() == [[1, 4], [0, 1]]
    assert hg.matmul(a, a).tolist() == 17 and hg.where([True, False], a, hg.asarray(a) * 2).tolist() == [1, 8]
    with pytest.raises(TypeError):
        hg.sqrt(np.array([1j]))


def test_functions_of_numpy():
    a = np.array([0.5, 1.5], "f4")
    x = hg.asarray(a)
    for made in (np.exp(x), np.add(a, x), a + x, a * x, np.maximum(a, x), np.arctan2(x, a), -x, np.negative(x), np.float32(2) * x):
        assert isinstance(made, hg.Array)
    assert (a - x).tolist() == [0, 0] and np.exp(x).tolist() == hg.exp(x).tolist() and (a < x).tolist() == [False, False]
    assert np.power(x, 2).tolist() == (x**2).tolist()
    assert isinstance(np.heaviside(x, 0.5), np.ndarray) and isinstance(np.add.reduce(x), np.float32)  # the table has none of them
    b = a.copy()
    b += x
    assert isinstance(b, np.ndarray) and b.tolist() == [1, 3]
    np.multiply(x, x, out=b)
    assert b.tolist() == [0.25, 2.25]
    with pytest.raises(TypeError, match="out="):
        np.add(a, a, out=x)
    with pytest.raises(TypeError):
        whole = np.array([1, 2])
        whole += x
    assert hg.grad(lambda v: (np.exp(v) * a).sum())(x).tolist() == (hg.exp(x) * x).tolist()
    with pytest.raises(TypeError, match="stop_gradient"):
        hg.grad(lambda v: hg.asarray(np.heaviside(v, 0.5)).sum())(x)


def test_what_plotting_libraries_do_with_arrays():
    a = np.sin(np.arange(12.0, dtype="f4")).reshape(3, 4)
    for x, right in ((hg.asarray(a), a), (hg.asarray(a)[:, ::-2], a[:, ::-2]), (hg.asarray(a).T * 1.0, a.T)):
        for use in (np.ma.masked_invalid, np.ma.getmaskarray, np.ma.asarray, np.atleast_1d, np.isfinite, np.ravel, np.nanmin, np.size,
                    np.shape, np.iterable, lambda v: np.asanyarray(v, float), lambda v: np.column_stack([v, v]), np.squeeze,
                    lambda v: np.histogram(v, bins=v[0].sum() * 0 + np.arange(3.0))[0], lambda v: np.broadcast_arrays(v, 1.0)[0],
                    lambda v: np.r_[v[0], v[1]], lambda v: [len(row) for row in v], lambda v: np.array(v, copy=True), np.diff,
                    lambda v: np.interp(v.reshape(-1), [0, 1], [0, 2]), lambda v: np.ma.masked_where(v < 0, v), np.median,
                    lambda v: (float(v.min()), float(v.max())), lambda v: np.where(v > 0, v, 0),
                    lambda v: np.linspace(v[0, 0], v[0, 1], 3)):  # fmt: skip
            made, wanted = use(x), use(right)
            assert np.array_equal(np.ma.getmaskarray(made), np.ma.getmaskarray(wanted))
            np.testing.assert_allclose(np.ma.getdata(made), np.ma.getdata(wanted), rtol=1e-6)
    narrow = hg.asarray(a).astype("bfloat16")
    assert np.array_equal(np.asarray(narrow, float), np.asarray(narrow.astype("float64")))
    with pytest.raises(BufferError, match="cast it to float32"):
        np.asarray(narrow)


def test_what_asarray_takes():
    class Series:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    assert hg.asarray(Series()).tolist() == hg.array(Series()).tolist() == [0, 1, 2]
    assert hg.asarray(Series(), dtype="float32").dtype == "float32"
    assert hg.asarray([np.ones(2, "f4"), np.zeros(2, "f4")]).dtype == "float32"
    assert hg.asarray([np.ones(2), hg.zeros(2, "float64"), [3, 4]]).tolist() == [[1, 1], [0, 0], [3, 4]]
    big = np.arange(6, dtype=">i4").reshape(2, 3)[:, ::2]
    assert hg.asarray(big).tolist() == big.tolist() and hg.asarray(big).dtype == "int32"
    assert hg.asarray(np.arange(2, dtype=">f8")).dtype == "float64"
    with pytest.raises(ValueError, match="order"):
        hg.asarray(big, copy=False)
    with pytest.raises(ValueError, match="lengths"):
        hg.asarray([np.ones(2), np.ones(3)])
