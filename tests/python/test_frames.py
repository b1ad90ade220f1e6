"""asarray of what tables are read with: stand-ins that speak the protocols of pandas, polars and pyarrow, and the packages themselves
where they are installed."""

import numpy as np
import pytest

import hologram as hg


class Series:
    """As a series of pandas or polars: no buffer, no shape that counts, a NumPy array for whoever asks."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape, self.dtype = self._values.shape, "their own"

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        return self._values if dtype is None else self._values.astype(dtype)




STAND_INS = {
    "numbers": (Series([1.5, -2.0]), [1.5, -2.0], "float64"), "integers": (Series([1, 2]), [1, 2], "int64"),
    "bools": (Series([True, False]), [True, False], "bool"),
    "a frame": (Series(np.arange(6.0).reshape(2, 3)), np.arange(6.0).reshape(2, 3), "float64"),
    "big-endian": (Series(np.array([1, 2], ">i4")), [1, 2], "int32"), "strided": (Series(np.arange(6)[::2]), [0, 2, 4], "int64"),
    "missing": (Series([1.0, np.nan]), [1.0, np.nan], "float64"), "none": (Series(np.zeros((0, 3))), np.zeros((0, 3)), "float64"),
    "a list of series": ([Series([1.0, 2.0]), Series([3.0, 4.0])], [[1.0, 2.0], [3.0, 4.0]], "float64"),
}  # fmt: skip


@pytest.mark.parametrize("what", STAND_INS)
def test_stand_ins(what):
    given, expected, dtype = STAND_INS[what]
    made = hg.asarray(given)
    assert made.dtype == dtype and np.array_equal(made, expected, equal_nan=dtype == "float64")
    assert hg.asarray(given, "float32").dtype == "float32"


@pytest.mark.parametrize("values", [np.array(["a"]), np.array(["2020-01-01"], "M8[s]"), np.array([print], object), np.array([1j])])
def test_what_has_no_numbers(values):
    with pytest.raises(TypeError, match="no type that arrays have|no elements of"):
        hg.asarray(Series(values))


@pytest.mark.parametrize("order", "<>=")
@pytest.mark.parametrize("code", ["i2", "i4", "i8", "u2", "u4", "u8", "f2", "f4", "f8"])
def test_orders_of_bytes(code, order):
    n = np.arange(-3 if code[0] != "u" else 0, 5).astype(order + code)
    for given in (n, n[::-2], n[:4].reshape(2, 2).T):
        made = hg.asarray(given)
        assert np.array_equal(made, given) and made.dtype == np.dtype(code)
    assert np.array_equal(hg.asarray(np.array([1.0, 2.0])) + n[:2], n[:2] + 1.0 + [0, 1])


def test_masked_arrays():
    """Whose buffer has all elements, those too that are not there."""
    n = np.ma.array([1.0, 2.0], mask=[False, True])
    for take in (hg.asarray, hg.array, lambda n: hg.asarray(n, "float32"), lambda n: hg.ones(2)[0] + hg.asarray([n, n])):
        with pytest.raises(ValueError, match=r"elements of a masked array are not there.*x.filled\(0\)"):
            take(n)
    assert hg.asarray(n.filled(0)).tolist() == [1.0, 0.0] and hg.asarray(np.ma.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert hg.asarray(np.array([3.0])).tolist() == [3.0]


def test_pandas():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    assert hg.asarray(pd.Series([1, 2])).tolist() == [1, 2] and hg.asarray(pd.Index([3, 4])).dtype == "int64"
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert hg.asarray(frame).tolist() == [[1.0, 3.0], [2.0, 4.0]] and hg.asarray(frame, "float32").dtype == "float32"
    assert np.isnan(hg.asarray(pd.Series([1, None], dtype="Int64"))[1])
    for wrong in (pd.Series(["a"]), pd.Series(pd.to_datetime(["2020-01-01"])), pd.DataFrame({"a": [1], "b": ["x"]})):
        with pytest.raises(TypeError, match="no type that arrays have|no elements of"):
            hg.asarray(wrong)


def test_polars():
    pl = pytest.importorskip("polars", reason="polars is not installed")
    assert hg.asarray(pl.Series([1, 2])).tolist() == [1, 2] and hg.asarray(pl.Series([True, False])).dtype == "bool"
    assert hg.asarray(pl.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert hg.asarray(pl.concat([pl.Series([1, 2]), pl.Series([3])], rechunk=False)).tolist() == [1, 2, 3]
    for wrong in (pl.Series(["a"]), pl.Series([[1], [2, 3]])):
        with pytest.raises(TypeError, match="no type that arrays have|no elements of"):
            hg.asarray(wrong)


def test_pyarrow():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    column = pa.array([1, 2, 3, 4])
    assert hg.asarray(column[1:3]).tolist() == [2, 3] and hg.asarray(column, copy=False).tolist() == [1, 2, 3, 4]
    assert hg.asarray(pa.array([True, False, True])[1:]).tolist() == [False, True]
    assert hg.asarray(pa.chunked_array([[1, 2], [3]])).tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="1 of 2 elements are null"):
        hg.asarray(pa.array([1, None]))
    with pytest.raises(TypeError):
        hg.asarray(pa.array(["a"]))
