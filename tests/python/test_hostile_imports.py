"""Memory that others describe wrongly: capsules of DLPack, array interfaces and buffers whose shapes, strides and offsets are
drawn at random. The memory stays valid, so each is refused in words, or read as it is described, element by element."""

import ctypes
import gc
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hologram as hg

REFUSALS = (BufferError, TypeError, ValueError, OverflowError, hg.Error)
COUNT, FIRST = 256, 128  # floats in memory; the one that the producers point at


class DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", Deleter)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", Deleter),
                ("flags", ctypes.c_uint64), ("tensor", DLTensor)]


class Producer:
    """Its capsule says of the memory what it is told to; the deleter is Python, and raises and catches on its way."""

    kept = []  # type: ignore[var-annotated]  # the deleters of ctypes must outlive what calls them

    def __init__(self, shape, strides=None, version=None, null_shape=False, **fields):
        self.memory = np.arange(COUNT, dtype="f4")
        self.deleted = 0
        self.shape = (ctypes.c_int64 * max(1, len(shape)))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * max(1, len(strides)))(*strides)
        self.managed = Versioned() if version else Managed()
        tensor = self.managed.tensor
        tensor.data, tensor.device_type, tensor.ndim = self.memory.ctypes.data + 4 * FIRST, 1, len(shape)
        tensor.code, tensor.bits, tensor.lanes = 2, 32, 1
        tensor.shape = None if null_shape else ctypes.addressof(self.shape)
        tensor.strides = None if strides is None else ctypes.addressof(self.strides)
        for name, value in fields.items():
            setattr(tensor, name, value)
        if version:
            self.managed.major, self.managed.minor = version
        self.deleter = self.managed.deleter = Deleter(self.delete)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.capsule = make(ctypes.addressof(self.managed), b"dltensor_versioned" if version else b"dltensor", None)
        Producer.kept.append(self)

    def delete(self, _):
        try:
            raise KeyError("inside of a deleter")
        except KeyError:
            self.deleted += 1

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def described(shape, strides, offset=0):
    """The elements' numbers in memory; None: there are none, or outside of it, or too many to tell."""
    if any(size <= 0 for size in shape):
        return None
    reach = [(size - 1) * step for size, step in zip(shape, strides)]
    first = FIRST + offset
    if not (0 <= first + sum(min(0, r) for r in reach) and first + sum(max(0, r) for r in reach) < COUNT):
        return None
    if np.prod([float(size) for size in shape]) > 100_000:
        return None
    places = np.full(shape, first)
    for d, step in enumerate(strides):
        places += np.arange(shape[d]).reshape([-1 if k == d else 1 for k in range(len(shape))]) * step
    return places


def dense(shape):
    return tuple(int(np.prod([int(size) for size in shape[d + 1:]], dtype=object)) for d in range(len(shape)))


def check(take, shape, places, memory):
    """What take() gives has the elements at these places; where these are None it is an error in words, or is not read."""
    try:
        x = take()
    except REFUSALS as error:
        assert str(error)
        assert places is None, f"refused: {error}"
        return False
    assert x.shape == shape
    if places is not None:
        assert np.array_equal(x.numpy(), memory[places])
        assert np.array_equal((x + 1).numpy(), memory[places] + 1)
        assert np.array_equal(hg.array(x).numpy(), memory[places])
    return True


edges = [2**k + d for k in (20, 28, 31, 32, 40, 56, 60, 61, 62) for d in (-1, 0, 1)] + [2**63 - 1]
sizes = st.one_of(st.integers(0, 6), st.integers(-3, 40), st.sampled_from([*edges, *(-e for e in edges), -(2**63)]))
steps = st.one_of(st.integers(-9, 9), st.integers(-140, 140), st.sampled_from([*edges, *(-e for e in edges), -(2**63)]))
axes = st.lists(st.tuples(sizes, steps), max_size=4)
versions = st.sampled_from([None, (1, 0), (1, 3)])


def impossible(shape, strides):
    """No memory has such elements, wherever it is."""
    if any(size < 0 for size in shape):
        return True
    if 0 in shape:
        return False
    reach = sum((size - 1) * abs(step) for size, step in zip(shape, strides))
    return int(np.prod([int(size) for size in shape], dtype=object)) > 2**40 or reach > 2**56


@given(axes, st.booleans(), versions)
def test_capsules(axes, has_strides, version):
    shape = tuple(size for size, _ in axes)
    strides = tuple(step for _, step in axes) if has_strides else dense(shape)
    producer = Producer(shape, strides if has_strides else None, version)
    taken = check(lambda: hg.from_dlpack(producer), shape, described(shape, strides), producer.memory)
    assert not (taken and impossible(shape, strides))
    producer.capsule = None
    gc.collect(0)
    assert producer.deleted <= 1


@given(axes, st.booleans())
def test_array_interfaces(axes, has_strides):
    class Owner:
        pass

    memory = np.arange(COUNT, dtype="f4")
    shape = tuple(size for size, _ in axes)
    strides = tuple(step for _, step in axes) if has_strides else dense(shape)
    owner = Owner()
    owner.memory = memory
    owner.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": shape, "data": (memory.ctypes.data + 4 * FIRST, False)}
    if has_strides:
        owner.__array_interface__["strides"] = tuple(4 * step for step in strides)
    taken = check(lambda: hg.asarray(owner), shape, described(shape, strides), memory)
    assert not (taken and impossible(shape, strides))


FIELDS = {
    "data": [0, 1, 2**64 - 4], "ndim": [-1, -(2**31), 9, 2**31 - 1], "null_shape": [True], "code": [0, 1, 3, 4, 5, 6, 7, 77, 255],
    "bits": [0, 1, 8, 33, 64, 255], "lanes": [0, 2, 4, 65535], "device_type": [0, 2, 3, 7, 13, 99, -1, 2**31 - 1],
    "byte_offset": [1, 2**62, 2**63, 2**64 - 4, 2**64 - 1]}


@pytest.mark.parametrize("version", [None, (1, 0), (1, 1), (2, 0)])
@pytest.mark.parametrize("field,value", [(field, value) for field, values in FIELDS.items() for value in values])
def test_fields_of_capsules(field, value, version):
    producer = Producer((4,), None, version, **{field: value})
    try:
        x = hg.from_dlpack(producer)
    except REFUSALS as error:
        assert str(error)
    else:  # another type, which the memory has elements of
        assert field in ("code", "bits", "device_type") and x.shape == (4,) and x.nbytes <= 32
        del x
    assert producer.deleted <= 1
    assert not (version and version[0] != 1 and producer.deleted)  # it is not taken: the capsule's own


@pytest.mark.parametrize("interface", [
    {"data": (-8, False)}, {"data": (2**64, False)}, {"data": ("0x10", False)}, {"data": (0, False)}, {"typestr": "<f"}, {"typestr": ""},
    {"typestr": "<f3"}, {"typestr": None}, {"shape": (4.0,)}, {"shape": None}, {"shape": 4}, {"shape": (1,) * 9}, {"strides": (4, 4)},
    {"strides": (2,)}, {"strides": ("4",)}, {"strides": 4}, {"mask": np.zeros(4)}, {"data": b"1234", "offset": -4},
    {"data": b"1234", "offset": 4}, {"data": b"1234", "shape": (-1,)}, {"data": b"1234", "shape": (2,)}, {"data": 7}, {"data": None}])
def test_fields_of_array_interfaces(interface):
    class Owner:
        pass

    memory = np.arange(8, dtype="f4")
    owner = Owner()
    owner.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": (4,), "data": (memory.ctypes.data, False), **interface}
    with pytest.raises(REFUSALS) as error:
        hg.asarray(owner)
    assert str(error.value)


@pytest.mark.parametrize("answer", [None, 3, (1,), (1, 2, 3), ("a", 0), (1, None), (2**40, 0)])
def test_devices_that_are_none(answer):
    class Odd(Producer):
        def __dlpack_device__(self):
            return answer

    with pytest.raises(REFUSALS):
        hg.from_dlpack(Odd((4,)))


def test_a_refusal_stays_while_a_deleter_runs():
    """In the words of what is wrong, on whichever thread."""
    found = []

    def work():
        for _ in range(50):
            with pytest.raises(BufferError, match="of no type that arrays have"):
                hg.from_dlpack(Producer((4,), code=5))
        found.append(True)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 3


def test_a_borrowed_tensor_ends_where_it_ends():
    """A computation on a tensor that is borrowed has its elements alone: what lies beside them is nobody's to read."""
    torch = pytest.importorskip("torch")
    from hologram_torch import functional

    memory = torch.arange(32, dtype=torch.float32)
    with pytest.raises(hg.Fault):
        functional.take(memory[4:8], torch.tensor([4]))
    assert functional.flip(memory[4:8], (0,)).tolist() == [7, 6, 5, 4] and functional.mul(memory[::2], 2.0)[15] == 60
