"""Arrays as text: aligned, cut, with as many digits as are asked for; types by all their spellings."""

import re
import threading

import ml_dtypes
import numpy as np
import pytest

import hologram as hg


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 2), (2, 1, 2, 2), (1500,), (50, 40), (8, 9, 20), (7, 7, 7, 7)], ids=str)
@pytest.mark.parametrize("kind", ["int64", "bool", "float64"])
def test_beside_numpy(shape, kind):
    """Lines, empty lines and dots are NumPy's, but that it prints some floats with exponents."""
    if kind == "float64" and np.prod(shape) > 1000:
        kind = "int32"
    n = (np.arange(np.prod(shape)) % 2 < 1 if kind == "bool" else np.arange(np.prod(shape)).astype(kind)).reshape(shape)
    assert str(hg.asarray(n)) == np.array2string(n, separator=", ", threshold=1000, edgeitems=3, max_line_width=77)


@pytest.mark.parametrize("shape, text", [((0,), "Array([], dtype=float32)"), ((0, 3), "Array([], shape=(0, 3), dtype=float32)"),
                                         ((2, 0), "Array([], shape=(2, 0), dtype=float32)")])  # fmt: skip
def test_no_elements(shape, text):
    assert repr(hg.zeros(shape)) == text and str(hg.zeros(shape)) == "[]"


def test_columns():
    assert repr(hg.asarray([[1.0, -20.5], [300.0, 4.0]])) == "Array([[  1. , -20.5],\n       [300. ,   4. ]], dtype=float32)"
    assert str(hg.asarray([float("nan"), -float("inf"), 0.5])) == "[ nan, -inf,  0.5]"
    assert str(hg.asarray([1e-7, 1.0, 12345678.0])) == "[      1e-07,          1., 1.23457e+07]"
    assert str(hg.asarray(2.5)) == "2.5" and repr(hg.asarray(3)) == "Array(3, dtype=int64)"


def test_digits_of_narrow_types():
    """Not more than tell a number from the others of its type."""
    assert str(hg.asarray([0.1, 1 / 3]).astype("float16")) == "[0.1   , 0.3333]"
    assert str(hg.asarray([0.1, 1 / 3]).astype("bfloat16")) == "[0.1  , 0.334]"
    assert str(hg.asarray([0.1]).astype("float8_e5m2")) == "[0.09375]"


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_exact_digits(kind):
    """What is printed is, read again, the same number: of any bits."""
    bits = np.random.default_rng(3).integers(0, 256, 8 * 600, dtype="u1")
    own = np.dtype(ml_dtypes.bfloat16 if kind == "bfloat16" else kind)
    n = bits.view(own)[:600]
    x = hg.bitcast(hg.asarray(n.view(f"u{own.itemsize}")), kind)
    with hg.printoptions(precision="exact", threshold=10_000), np.errstate(all="ignore"):
        found = np.array([float(word) for word in re.findall(r"[^\s,\[\]]+", str(x))]).astype(own)
    assert len(found) == 600 and np.array_equal(found.astype("f8"), n.astype("f8"), equal_nan=True)
    with hg.printoptions(precision="exact"):
        assert str(hg.asarray([0.1, 1.0, 1e22]).astype("float32")) == "[  0.1,    1., 1e+22]"


def test_options_hold_inside_a_block():
    x = hg.arange(100) / 3
    before = str(x)
    with hg.printoptions(precision=2, threshold=10, edgeitems=1):
        assert str(x) == "[ 0., ..., 33.]"
        with hg.printoptions(edgeitems=2, precision=4):
            assert str(x) == "[ 0.    ,  0.3333, ..., 32.67  , 33.    ]"
        assert str(x) == "[ 0., ..., 33.]"
        found = []
        thread = threading.Thread(target=lambda: found.append(str(x)))
        thread.start(), thread.join()
        assert found == [before]  # of another thread they are none
    assert str(x) == before
    try:
        hg.printoptions(linewidth=20)
        assert max(map(len, str(x).split("\n"))) <= 20
    finally:
        hg.printoptions(linewidth=75)
    assert str(x) == before


@pytest.mark.parametrize("options, words", [
    ({"precision": 0}, "precision is 1 to 17 or 'exact', not 0"), ({"precision": 18}, "not 18"), ({"precision": "all"}, "not 'all'"),
    ({"threshold": -1}, "threshold is a whole number from 0 on"), ({"edgeitems": 0}, "edgeitems is a whole number from 1"),
    ({"linewidth": 2.5}, "linewidth is"),
])  # fmt: skip
def test_options_that_mean_nothing(options, words):
    with pytest.raises(ValueError, match=words):
        hg.printoptions(**options)


def test_printing_computes_what_is_shown():
    """And takes no gradient away."""
    assert hg.grad(lambda x: (str(x), (x * x).sum())[1])(hg.arange(2000.0))[7] == 14
    with pytest.raises(hg.Fault):
        str(hg.take(hg.ones(3), hg.asarray([7])))


SPELLINGS = {
    "float32": ["float32", "f32", "f4", "<f4", "=f4", "f", "single", float, np.float32, np.dtype("f4"), np.dtype(">f4")],
    "float64": ["float64", "f64", "f8", "d", "double", np.float64], "float16": ["float16", "f16", "f2", "e", "half", np.half],
    "bool": ["bool", "bool_", "?", "b1", "|b1", bool, np.bool_], "int64": ["int64", "i64", "<i8", int, np.longlong, np.dtype("i8")],
    "int8": ["int8", "i8", "i1", "|i1", np.int8], "uint8": ["uint8", "u8", "u1", np.dtype("u1")],
    "uint64": ["uint64", "u64", "=u8", np.ulonglong],
    "bfloat16": ["bfloat16", "bf16", ml_dtypes.bfloat16], "float8_e4m3fn": ["float8_e4m3fn", ml_dtypes.float8_e4m3fn],
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_spellings_of_types(name):
    for spelling in SPELLINGS[name]:
        assert hg.zeros(1, spelling).dtype == getattr(hg, name) == spelling, spelling


def test_types_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for name in ("float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "bool", "float8_e5m2", "float8_e4m3fn"):
        own = getattr(torch, name)
        assert hg.zeros(1, own).dtype == name and getattr(hg, name) == own and hg.ones(2).astype(own).dtype == name
    with pytest.raises(TypeError, match="torch.complex64 is no element type"):
        hg.zeros(1, torch.complex64)


@pytest.mark.parametrize("wrong", [">f4", "float", "complex64", "U", np.longdouble, np.complex64, np.dtype("M8[s]"), np.dtype("O"),
                                   complex, str, object, 3, "<int8", "torch.float32"], ids=str)  # fmt: skip
def test_no_types(wrong):
    with pytest.raises(TypeError, match="is no element type; those are int8 to int64"):
        hg.zeros(1, wrong)
