"""asarray of columns of Arrow, which capsules of its C data interface hand over; those here are made by hand."""

import ctypes
import gc

import numpy as np
import pytest

import hologram as hg

CODES = {"c": "int8", "C": "uint8", "s": "int16", "S": "uint16", "i": "int32", "I": "uint32", "l": "int64", "L": "uint64", "e": "float16",
         "f": "float32", "g": "float64"}  # fmt: skip


class Schema(ctypes.Structure):
    pass


class Column(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
                   ("release", RELEASE), ("private", ctypes.c_void_p)]  # fmt: skip
Column._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                   ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
                   ("dictionary", ctypes.c_void_p), ("release", RELEASE), ("private", ctypes.c_void_p)]  # fmt: skip
NEW = ctypes.pythonapi.PyCapsule_New
NEW.restype, NEW.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Made:
    """An object with a column; it counts how often its memory is released."""

    def __init__(self, code, data, length, offset=0, nulls=0, validity=None, names=(b"arrow_schema", b"arrow_array"), **fields):
        self.released, self.data, self.validity, self.names = 0, data, validity, names
        self.schema = Schema(format=code.encode(), release=RELEASE(lambda _: None))
        address = data if data is None or isinstance(data, int) else data.ctypes.data
        self.buffers = (ctypes.c_void_p * 2)(None if validity is None else validity.ctypes.data, address)
        self.count = RELEASE(self.release)
        self.column = Column(length=length, null_count=nulls, offset=offset, n_buffers=2, buffers=self.buffers, release=self.count)
        for name, value in fields.items():
            setattr(self.schema if name == "schema_dictionary" else self.column, name.removeprefix("schema_"), value)

    def release(self, _):
        self.released += 1

    def __arrow_c_array__(self, requested_schema=None):
        return tuple(NEW(ctypes.addressof(one), name, None) for one, name in zip((self.schema, self.column), self.names, strict=True))


def bits(values, first=0):
    """Packed from bit `first` on; the others are the opposite of what would do."""
    return np.packbits([not values[0]] * first + list(values) + [not values[-1]] * 3, bitorder="little")


@pytest.mark.parametrize("code", CODES)
def test_memory_is_shared(code):
    data = np.arange(10).astype(CODES[code])
    for offset, length in ((0, 10), (3, 4), (9, 1), (5, 0)):
        made = Made(code, data, length, offset)
        x = hg.asarray(made)
        assert x.dtype == CODES[code] and x.tolist() == data[offset : offset + length].tolist()
        assert length == 0 or np.shares_memory(x.numpy(), data) and not x.numpy().flags.writeable
        view = x[::-1]
        del x
        gc.collect()
        assert made.released == 0 or length == 0
        assert view.tolist() == data[offset : offset + length].tolist()[::-1]
        del view
        gc.collect()
        assert made.released == 1
        with pytest.raises(BufferError, match="released"):  # it is given away once
            hg.asarray(made)


def test_copies():
    data = np.arange(4.0)
    made = Made("g", data, 4)
    x = hg.asarray(made, copy=True).compute()
    gc.collect()
    data[:] = 9
    assert x.tolist() == [0, 1, 2, 3] and made.released == 1
    assert hg.asarray(Made("g", data, 4), dtype="float32").dtype == "float32"
    assert hg.asarray(Made("g", data, 4), copy=False).tolist() == [9] * 4
    bytes_ = np.zeros(41, "u1")
    for start in (1, 4, 8):
        at = bytes_[start : start + 32]
        at[:] = np.arange(4.0).view("u1")
        made = Made("g", bytes_.ctypes.data + start, 4)
        is_whole = (bytes_.ctypes.data + start) % 8 == 0
        x = hg.asarray(made)
        assert x.tolist() == [0, 1, 2, 3] and np.shares_memory(x.numpy(), bytes_) == is_whole
        if not is_whole:
            with pytest.raises(ValueError, match="copy is False"):
                hg.asarray(Made("g", bytes_.ctypes.data + start, 4), copy=False)
            with hg.strict(), pytest.raises(hg.StrictError, match="copy=True"):
                hg.asarray(Made("g", bytes_.ctypes.data + start, 4))
            assert hg.asarray(Made("e", np.zeros(4, "u1").ctypes.data | 1, 0)).shape == (0,)


@pytest.mark.parametrize("first", range(10))
def test_bools_are_bits(first):
    values = [True, False, False, True, True, False, True, False, True, True, False]
    for length in (1, 5, 11):
        made = Made("b", bits(values, first), length, first)
        assert hg.asarray(made).dtype == "bool" and hg.asarray(Made("b", bits(values, first), length, first)).tolist() == values[:length]
    with pytest.raises(ValueError, match="copy is False"):
        hg.asarray(Made("b", bits(values), 3), copy=False)
    assert hg.asarray(Made("b", None, 0)).tolist() == []


def test_nulls():
    data, some = np.arange(5.0), [True, True, False, True, False]
    for code, numbers in (("g", data), ("b", bits([True] * 5))):
        for nulls in (2, -1):
            made = Made(code, numbers, 5, 0, nulls, bits(some))
            with pytest.raises(ValueError, match="2 of 5 elements are null"):
                hg.asarray(made)
            gc.collect()
            assert made.released == 1
        assert hg.asarray(Made(code, numbers, 2, 0, -1, bits(some))).shape == (2,)
    assert hg.asarray(Made("g", data, 1, 3, -1, bits(some))).tolist() == [3]
    assert hg.asarray(Made("g", data, 5, 0, 0, bits(some))).tolist() == data.tolist()  # it says that none is
    assert hg.asarray(Made("g", data, 5, 0, -1, None)).tolist() == data.tolist()


def test_columns_that_are_no_numbers():
    class Text(Made):
        def __array__(self, dtype=None, copy=None):
            return np.array([1.5, 2.5])

    data = np.zeros(4)
    for code in ("u", "tsn:", "d:10,2", "w:4", "+s", "n", "", "gg"):
        made = Made(code, data, 4)
        with pytest.raises(TypeError):
            hg.asarray(made)
        gc.collect()
        assert made.released == 1
        assert hg.asarray(Text(code, data, 4)).tolist() == [1.5, 2.5]
    other = Column()
    for fields in ({"n_children": 1}, {"dictionary": ctypes.addressof(other)}, {"schema_dictionary": ctypes.addressof(other)}):
        with pytest.raises(TypeError):
            hg.asarray(Made("l", data, 4, **fields))


def test_hostile_columns():
    data, far = np.zeros(4), 1 << 62
    for made in (Made("g", data, -1), Made("g", data, 4, -1), Made("g", data, far), Made("g", data, 1, far), Made("g", data, far, far),
                 Made("c", data, 2, 2**63 - 1), Made("b", data, far, 7), Made("g", 2**64 - 8, 2), Made("g", None, 4), Made("l", None, 1, 1),
                 Made("g", data, 4, n_buffers=1), Made("g", data, 4, n_buffers=-1), Made("g", data, 4, n_buffers=3),
                 Made("g", data, 4, buffers=None), Made("g", data, 4, n_buffers=0, buffers=None), Made("g", data, far, 0, -1, data),
                 Made("g", data, 4, release=RELEASE())):  # fmt: skip
        with pytest.raises((BufferError, hg.Error)):
            hg.asarray(made)
        gc.collect()
        assert made.released <= 1
    for names in ((b"arrow_array", b"arrow_schema"), (b"arrow_schema", b"arrow_array_stream")):
        with pytest.raises(TypeError, match="capsules"):
            hg.asarray(Made("g", data, 4, names=names))
    for made in (Made("g", data, 4).__arrow_c_array__()[:1], [1, 2], None):
        with pytest.raises(TypeError):
            hg.asarray(type("Odd", (), {"__arrow_c_array__": lambda self, made=made: made})())


def test_indices():
    assert hg.arange(5)[Made("i", np.array([3, -1], "i4"), 2)].tolist() == [3, 4]


def test_gradients_take_them_as_constants():
    column = hg.asarray(Made("f", np.array([2.0, 3.0], "f4"), 2))
    assert hg.grad(lambda v: (v * column).sum())(hg.ones(2)).tolist() == [2, 3]
