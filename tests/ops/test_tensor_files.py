"""Files of tensors: .npy as NumPy writes and reads it, .safetensors written here by hand, and broken ones, refused with a sentence."""

import ctypes as c
import json
import struct

import ml_dtypes
import numpy as np
import pytest
from hgops import CODES, ENGINES, LIB, NAME_OF, TYPES, Error, P, Tensor, check, executor

LIB.hg_tensor_load.argtypes = [P, c.c_char_p, c.POINTER(Tensor)]
LIB.hg_tensor_save.argtypes = [c.POINTER(Tensor), c.c_char_p]
LIB.hg_tensors_load.argtypes = [P, c.c_char_p, c.POINTER(P)]
LIB.hg_tensors_save.argtypes = [c.POINTER(c.c_char_p), c.POINTER(Tensor), c.c_size_t, c.c_char_p]
LIB.hg_tensors_save_texts.argtypes = [c.POINTER(c.c_char_p), c.POINTER(Tensor), c.c_size_t, c.POINTER(c.c_char_p), c.c_size_t, c.c_char_p]
LIB.hg_tensors_text.argtypes, LIB.hg_tensors_text.restype = [P, c.c_size_t], c.c_char_p
LIB.hg_tensors_count.argtypes, LIB.hg_tensors_count.restype = [P], c.c_size_t
LIB.hg_tensors_name.argtypes, LIB.hg_tensors_name.restype = [P, c.c_size_t], c.c_char_p
LIB.hg_tensors_at.argtypes, LIB.hg_tensors_at.restype = [P, c.c_size_t], c.POINTER(Tensor)
LIB.hg_tensors_release.argtypes, LIB.hg_tensors_release.restype = [P], None
LIB.hg_tensor_create.argtypes = [P, c.c_int, c.c_uint32, P, c.POINTER(Tensor)]

ST = {"i8": "I8", "i16": "I16", "i32": "I32", "i64": "I64", "u8": "U8", "u16": "U16", "u32": "U32", "u64": "U64", "f16": "F16",
      "bf16": "BF16", "f32": "F32", "f64": "F64", "f8e4m3": "F8_E4M3", "f8e5m2": "F8_E5M2", "bool": "BOOL"}
NPY = [name for name in TYPES if not name.startswith("f8")]


def some(name, shape, seed=1):
    """Any bits, but a bool's."""
    kind, draw = np.dtype(TYPES[name]), np.random.default_rng(seed)
    count = int(np.prod(shape))
    if name == "bool":
        return draw.integers(0, 2, count).astype(bool).reshape(shape)
    return draw.integers(0, 256, count * kind.itemsize, dtype="u1").view(kind).reshape(shape)


def array_of(tensor):
    """As its strides say; its buffer may be released afterwards."""
    kind = np.dtype(next(TYPES[name] for name, code in CODES.items() if code == tensor.type))
    shape, strides = tensor.shape[:tensor.rank], [s * kind.itemsize for s in tensor.stride[:tensor.rank]]
    memory = np.zeros(int(np.prod(shape)), kind)
    check(LIB.hg_buffer_read(tensor.buffer, 0, memory.ctypes.data, memory.nbytes))
    return np.ndarray(shape, kind, memory, 0, strides)


def tensor_of(array):
    tensor, shape = Tensor(), (c.c_uint64 * 8)(*array.shape)
    check(LIB.hg_tensor_create(executor(ENGINES[0]), CODES[NAME_OF[array.dtype]], array.ndim, shape, c.byref(tensor)))
    check(LIB.hg_buffer_write(tensor.buffer, 0, np.ascontiguousarray(array).ctypes.data, array.nbytes))
    return tensor


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()


def load(path):
    tensor = Tensor()
    check(LIB.hg_tensor_load(executor(ENGINES[0]), str(path).encode(), c.byref(tensor)))
    array = array_of(tensor)
    LIB.hg_buffer_release(tensor.buffer)
    return array


def load_all(path):
    tensors = P()
    check(LIB.hg_tensors_load(executor(ENGINES[0]), str(path).encode(), c.byref(tensors)))
    found = {LIB.hg_tensors_name(tensors, i).decode(): array_of(LIB.hg_tensors_at(tensors, i).contents)
             for i in range(LIB.hg_tensors_count(tensors))}
    assert not LIB.hg_tensors_at(tensors, len(found)) and LIB.hg_tensors_name(tensors, len(found)) is None
    LIB.hg_tensors_release(tensors)
    return found


def refused(read, path, status, sentence):
    with pytest.raises(Error) as error:
        read(path)
    assert error.value.status == status and error.value.message.startswith(f"{path}: ") and sentence in error.value.message, error.value


# ---- .npy ------------------------------------------------------------------------------------------------------------

SHAPES = [(), (1,), (7,), (0,), (3, 4), (2, 0, 3), (2, 3, 4), (1, 2, 1, 2, 1, 2, 1, 2)]


@pytest.mark.parametrize("name", NPY)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_npy(tmp_path, name, shape):
    array = some(name, shape)
    for order in "CF":
        np.save(tmp_path / "x.npy", np.asarray(array, order=order))
        assert same(load(tmp_path / "x.npy"), array)
    tensor = tensor_of(array)
    check(LIB.hg_tensor_save(c.byref(tensor), str(tmp_path / "y.npy").encode()))
    LIB.hg_buffer_release(tensor.buffer)
    assert same(np.load(tmp_path / "y.npy").view(array.dtype), array)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_npy_versions(tmp_path, version):
    array = some("f32", (3, 5))
    with open(tmp_path / "x.npy", "wb") as file:
        np.lib.format.write_array(file, array, version)
    assert same(load(tmp_path / "x.npy"), array)


def npy(header, data=b"", version=1):
    text = header.encode()
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data


GOOD = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"


@pytest.mark.parametrize("header", [
    "{'shape':(2L,),\"descr\":\"<f4\",'fortran_order':False}", GOOD + " " * 100 + "\n",
    GOOD.replace("(2,)", "(1L, 2L)"),
])
def test_npy_of_others(tmp_path, header):
    """As NumPy under Python 2 wrote sizes, in either kind of quotes, in any order."""
    (tmp_path / "x.npy").write_bytes(npy(header, np.float32([1, 2]).tobytes()))
    assert load(tmp_path / "x.npy").ravel().tolist() == [1, 2]


def test_npy_of_a_view(tmp_path):
    """Any strides: it is saved as its elements follow each other."""
    array = some("i32", (4, 6))
    tensor = tensor_of(array)
    view = Tensor.from_buffer_copy(tensor)
    view.rank, view.offset = 2, 5
    view.shape[:2], view.stride[:2] = [3, 4], [-1, 6]
    check(LIB.hg_tensor_save(c.byref(view), str(tmp_path / "v.npy").encode()))
    assert same(np.load(tmp_path / "v.npy"), np.ascontiguousarray(array.T[5:2:-1]))
    LIB.hg_buffer_release(tensor.buffer)


@pytest.mark.parametrize("content, status, sentence", [
    (b"", "FORMAT", "is no .npy file"),
    (b"PK\3\4 an archive", "FORMAT", "is no .npy file"),
    (npy(GOOD, bytes(8))[:20], "FORMAT", "ends in its header"),
    (npy(GOOD, bytes(8), 2)[:9], "FORMAT", "is no .npy file"),
    (npy(GOOD, bytes(7)), "FORMAT", "has 7 bytes of elements where its shape and type need 8"),
    (npy(GOOD, bytes(9)), "FORMAT", "has 9 bytes of elements"),
    (npy(GOOD, bytes(8), 4), "UNSUPPORTED", "is of version 4.0 of .npy"),
    (npy(GOOD.replace("<f4", ">f4"), bytes(8)), "UNSUPPORTED", "expected little-endian numbers"),
    (npy(GOOD.replace("<f4", "|V1"), bytes(8)), "UNSUPPORTED", "8-bit floats are in .safetensors files"),
    (npy(GOOD.replace("'<f4'", "[('a', '<f4')]"), bytes(8)), "UNSUPPORTED", "no plain numbers of one type"),
    (npy(GOOD.replace("(2,)", "(1,1,1,1,1,1,1,1,2)"), bytes(8)), "UNSUPPORTED", "more than 8 dimensions"),
    (npy(GOOD.replace("(2,)", "(18446744073709551616,)"), bytes(8)), "FORMAT", "no number below 2^63"),
    (npy(GOOD.replace("(2,)", "(4294967296, 4294967296)"), bytes(8)), "FORMAT", "too large for any memory"),
    (npy(GOOD.replace("(2,)", "(9223372036854775808, 0)")), "FORMAT", "no number below 2^63"),
    (npy(GOOD.replace("(2,)", "(2305843009213693952, 8)"), bytes(8)), "FORMAT", "too large for any memory"),
    (npy(GOOD.replace("False", "Maybe"), bytes(8)), "FORMAT", "neither True nor False"),
    (npy(GOOD.replace("'shape'", "'descr'"), bytes(8)), "FORMAT", "'descr' twice"),
    (npy(GOOD.replace("'shape'", "'other'"), bytes(8)), "FORMAT", "has the unknown key 'other'"),
    (npy(GOOD.replace("'shape'", "'sh\u00e4pe'"), bytes(8)), "FORMAT", "its header is no dictionary"),
    (npy(GOOD.replace("<f4", "<f\\n4"), bytes(8)), "UNSUPPORTED", "no plain numbers of one type"),
    (npy(GOOD.replace("(2,)", "(-2,)"), bytes(8)), "FORMAT", "no number below 2^63"),
    (npy(GOOD.replace("(2,)", "(2 1)"), bytes(8)), "FORMAT", "its shape does not end"),
    (npy(GOOD.replace("(2,)", "2"), bytes(8)), "FORMAT", "gives no shape"),
    (npy("[]"), "FORMAT", "is not the dictionary"),
    (npy("{'descr': '<f4'"), "FORMAT", "its header does not end"),
    (npy(GOOD.replace(", 'shape': (2,)", ""), bytes(8)), "FORMAT", "is not the dictionary"),
    (npy(GOOD + "!", bytes(8)), "FORMAT", "is not the dictionary"),
])
def test_npy_refused(tmp_path, content, status, sentence):
    (tmp_path / "x.npy").write_bytes(content)
    refused(load, tmp_path / "x.npy", status, sentence)


@pytest.mark.parametrize("kind", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
def test_small_floats_of_npy(tmp_path, kind):
    np.save(tmp_path / "x.npy", np.ones(3, kind))
    refused(load, tmp_path / "x.npy", "UNSUPPORTED", "8-bit floats are in .safetensors files")


def test_files_that_are_not_there(tmp_path):
    refused(load, tmp_path / "none.npy", "IO", "cannot be read")
    refused(load_all, tmp_path, "IO", "cannot be read")
    tensor = tensor_of(some("f32", (2,)))
    assert LIB.hg_tensor_save(c.byref(tensor), str(tmp_path / "none" / "x.npy").encode()) == 11
    eighth = tensor_of(some("f8e4m3", (2,)))
    assert LIB.hg_tensor_save(c.byref(eighth), str(tmp_path / "x.npy").encode()) == 7
    for t in (tensor, eighth):
        LIB.hg_buffer_release(t.buffer)


# ---- .safetensors ----------------------------------------------------------------------------------------------------


def safetensors(arrays, metadata=None, spaces=0):
    header, data = {} if metadata is None else {"__metadata__": metadata}, b""
    for name, array in arrays.items():
        bits = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": ST[NAME_OF[array.dtype]], "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    return raw(json.dumps(header) + " " * spaces, data)


def raw(header, data=b""):
    text = header.encode()
    return struct.pack("<Q", len(text)) + text + data


ALL = {name: some(name, (2, 3), number) for number, name in enumerate(TYPES)} | {
    "empty": some("f32", (0, 4)), "one": some("f64", ()), 'a "name" \\ of\nünïcode \U0001f600': some("u8", (5,))}


TEXTS = [None, {}, {"format": "pt", "note": "x\"y"}, {"": "", "ünïcode \U0001f600": "\\ \n\x01\x7f" + "long" * 1000}]


def texts_of(path):
    tensors = P()
    check(LIB.hg_tensors_load(executor(ENGINES[0]), str(path).encode(), c.byref(tensors)))
    texts = []
    while (text := LIB.hg_tensors_text(tensors, len(texts))) is not None:
        texts.append(text.decode())
    LIB.hg_tensors_release(tensors)
    return dict(zip(texts[::2], texts[1::2], strict=True))


@pytest.mark.parametrize("metadata", TEXTS)
def test_safetensors_load(tmp_path, metadata):
    (tmp_path / "x.safetensors").write_bytes(safetensors(ALL, metadata, 5))
    found = load_all(tmp_path / "x.safetensors")
    assert found.keys() == ALL.keys() and all(same(found[name], ALL[name]) for name in ALL)
    assert texts_of(tmp_path / "x.safetensors") == (metadata or {})


def save_texts(path, *texts, count=None):
    array = (c.c_char_p * len(texts))(*texts)
    return LIB.hg_tensors_save_texts(None, None, 0, array, len(texts) // 2 if count is None else count, str(path).encode())


@pytest.mark.parametrize("metadata", TEXTS[1:])
def test_texts_are_saved(tmp_path, metadata):
    """As JSON that others read; none: as if there were no such thing."""
    path = tmp_path / "x.safetensors"
    assert save_texts(path, *(text.encode() for pair in metadata.items() for text in pair)) == 0
    data = path.read_bytes()
    assert json.loads(data[8:]) == ({"__metadata__": metadata} if metadata else {}) and len(data) % 8 == 0
    assert texts_of(path) == metadata and load_all(path) == {}


def test_texts_that_are_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    for texts, sentence in (((b"a", b"1", b"b", b"2", b"a", b"3"), b"has the key 'a' twice"), ((b"a", b"\xff"), b"is NULL or no UTF-8"),
                            ((b"a", None), b"text 1 of its metadata is NULL"), ((b"\xc3", b""), b"text 0 of its metadata")):
        assert save_texts(path, *texts) == 1 and sentence in LIB.hg_last_error()
    assert LIB.hg_tensors_save_texts(None, None, 0, None, 1, str(path).encode()) == 1 and not path.exists()
    assert LIB.hg_tensors_text(None, 0) is None


def save_all(path, arrays):
    names, tensors = (c.c_char_p * len(arrays))(*(n.encode() for n in arrays)), [tensor_of(a) for a in arrays.values()]
    status = LIB.hg_tensors_save(names, (Tensor * len(arrays))(*tensors), len(arrays), str(path).encode())
    for tensor in tensors:
        LIB.hg_buffer_release(tensor.buffer)
    check(status)


@pytest.mark.parametrize("arrays", [{}, ALL], ids=["none", "all"])
def test_safetensors_save(tmp_path, arrays):
    save_all(tmp_path / "x.safetensors", arrays)
    content = (tmp_path / "x.safetensors").read_bytes()
    length, = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    assert length % 8 == 0 and header.keys() == arrays.keys()
    for name, array in arrays.items():
        first, end = header[name]["data_offsets"]
        assert header[name]["dtype"] == ST[NAME_OF[array.dtype]] and tuple(header[name]["shape"]) == array.shape
        assert first % array.dtype.itemsize == 0 and content[8 + length:][first:end] == array.tobytes()
    found = load_all(tmp_path / "x.safetensors")
    assert all(same(found[name], arrays[name]) for name in arrays) and len(found) == len(arrays)


def entry(first, end, dtype="F32", shape="[2]"):
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{first},{end}]}}'


@pytest.mark.parametrize("content, status, sentence", [
    (b"1234567", "FORMAT", "is no .safetensors file"),
    (struct.pack("<Q", 2**64 - 1) + b"{}", "FORMAT", "ends in its header"),
    (struct.pack("<Q", 3) + b"{}", "FORMAT", "ends in its header"),
    (raw("[]"), "FORMAT", "is no JSON object"),
    (raw('{"a":' + entry(0, 8), bytes(8)), "FORMAT", "does not end"),
    (raw("{} x"), "FORMAT", "goes on after its object"),
    (raw("{}", b"left"), "FORMAT", "its last 4 bytes are of no tensor"),
    (raw('{"a":' + entry(0, 8) + ',"a":' + entry(8, 16) + "}", bytes(16)), "FORMAT", "has the tensor 'a' twice"),
    (raw('{"a":' + entry(0, 8) + ',"b":' + entry(4, 12) + "}", bytes(12)), "FORMAT", "overlaps another"),
    (raw('{"a":' + entry(0, 8) + ',"b":' + entry(12, 20) + "}", bytes(20)), "FORMAT", "behind bytes that no tensor has"),
    (raw('{"a":' + entry(0, 12) + "}", bytes(12)), "FORMAT", "has 12 bytes where its shape and type need 8"),
    (raw('{"a":' + entry(8, 0) + "}", bytes(8)), "FORMAT", "lies at bytes 8 to 0"),
    (raw('{"a":' + entry(0, 16) + "}", bytes(8)), "FORMAT", "lies at bytes 0 to 16 of 8"),
    (raw('{"a":' + entry(0, 2**64) + "}", bytes(8)), "FORMAT", "data_offsets that are not two numbers"),
    (raw('{"a":' + entry(0, 8, shape="[4294967296,4294967296]") + "}", bytes(8)), "FORMAT", "too large for any memory"),
    (raw('{"a":' + entry(0, 8, shape="[-2]") + "}", bytes(8)), "FORMAT", "no number below 2^63"),
    (raw('{"a":' + entry(0, 0, shape="[0,9223372036854775808]") + "}"), "FORMAT", "no number below 2^63"),
    (raw('{"a":' + entry(0, 8, shape="[1,1,1,1,1,1,1,1,2]") + "}", bytes(8)), "UNSUPPORTED", "more than 8 dimensions"),
    (raw('{"a":' + entry(0, 8, dtype="F4") + "}", bytes(8)), "UNSUPPORTED", "of type 'F4'"),
    (raw('{"a":{"dtype":"F32","shape":[2]}}', bytes(8)), "FORMAT", "without dtype, shape and data_offsets"),
    (raw('{"a":{"dtype":"F32","dtype":"F32","shape":[2]}}', bytes(8)), "FORMAT", "the key 'dtype' twice"),
    (raw('{"a":{"colour":"F32"}}', bytes(8)), "FORMAT", "the key 'colour', which means nothing"),
    (raw('{"\\ud800":' + entry(0, 8) + "}", bytes(8)), "FORMAT", "is no JSON"),
    (raw('{"__metadata__":{"a":1}}'), "FORMAT", "a __metadata__ that is not texts"),
    (raw('{"__metadata__":{"a":"b"'), "FORMAT", "a __metadata__ that does not end"),
    (raw('{"__metadata__":{"a":"\\u0000"}}'), "FORMAT", "a __metadata__ that is not texts"),
    (struct.pack("<Q", 26) + b'{"__metadata__":{"a":"\xff"}}'[:26] + b"  ", "FORMAT", "a __metadata__ that is no UTF-8"),
])
def test_safetensors_refused(tmp_path, content, status, sentence):
    (tmp_path / "x.safetensors").write_bytes(content)
    refused(load_all, tmp_path / "x.safetensors", status, sentence)


# Bytes that look like UTF-8: too few, a part that begins nothing, a code in more bytes than it needs, a surrogate, beyond Unicode.
NO_UTF8 = [b"\xff", b"\xc3", b"\xc3a", b"\xa9", b"\xc1\xa9", b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]


@pytest.mark.parametrize("name", NO_UTF8)
def test_safetensors_names_are_utf8(tmp_path, name):
    path, tensor = tmp_path / "x.safetensors", tensor_of(some("f32", (2,)))
    text = b'{"' + name + b'":' + entry(0, 8).encode() + b"}"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))
    refused(load_all, path, "FORMAT", "has a name that is no UTF-8")
    assert LIB.hg_tensors_save((c.c_char_p * 1)(name), (Tensor * 1)(tensor), 1, str(path).encode()) == 1
    assert LIB.hg_last_error().endswith(b"is no UTF-8")
    LIB.hg_buffer_release(tensor.buffer)


def test_the_least_and_the_most_of_utf8(tmp_path):
    tree = {chr(code): some("u8", (1,), code) for code in (1, 0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff)}
    save_all(tmp_path / "x.safetensors", tree)
    assert load_all(tmp_path / "x.safetensors").keys() == tree.keys()


def test_safetensors_names(tmp_path):
    for name in ("", "__metadata__"):
        with pytest.raises(Error, match="needs a name"):
            save_all(tmp_path / "x.safetensors", {name: some("f32", (2,))})
    tensor = tensor_of(some("f32", (2,)))
    names = (c.c_char_p * 2)(b"a", b"a")
    assert LIB.hg_tensors_save(names, (Tensor * 2)(tensor, tensor), 2, str(tmp_path / "x").encode()) == 1
    assert b"has the tensor 'a' twice" in LIB.hg_last_error()
    LIB.hg_buffer_release(tensor.buffer)
    assert list(tmp_path.iterdir()) == []


def test_npy_bf16_is_plain_bytes(tmp_path):
    np.save(tmp_path / "x.npy", np.array([1.5, -2], ml_dtypes.bfloat16))
    assert b"<V2" in (tmp_path / "x.npy").read_bytes() and load(tmp_path / "x.npy").tolist() == [1.5, -2]
