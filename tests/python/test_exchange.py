"""Memory that is shared with NumPy and others: addresses, lifetimes, read-only, copies."""

import array
import gc
import weakref

import numpy as np
import pytest

import hologram as hg

TYPES = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "bool"]


def address(x):
    return np.asarray(x).__array_interface__["data"][0]


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (0,), (3, 4), (2, 0, 3), (2, 3, 4, 5)])
def test_asarray_shares(name, shape):
    source = np.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 2).astype(name)
    x = hg.asarray(source)
    assert x.shape == shape and x.dtype == name and x.dtype == source.dtype
    assert np.array_equal(x.numpy(), source) and x.numpy().dtype == source.dtype
    assert x.tolist() == source.tolist()
    if source.size:
        assert address(x) == address(source)
    y = hg.from_dlpack(source) if source.flags.writeable else x
    assert np.array_equal(y.numpy(), source)
    z = np.from_dlpack(x)
    assert np.array_equal(z, source) and z.dtype == source.dtype
    if source.size:
        assert address(y) == address(source) == address(z)
    copy = hg.array(source)
    assert np.array_equal(copy.numpy(), source) and (not source.size or address(copy) != address(source))


@pytest.mark.parametrize("view", [lambda a: a[::2], lambda a: a[::-1], lambda a: a.T, lambda a: a[1:, ::-2], lambda a: a[:, 0],
                                  lambda a: np.broadcast_to(a[0], (3, 6)), lambda a: a[2:2], lambda a: a[..., None]])
def test_views_are_shared(view):
    source = view(np.arange(24, dtype="f4").reshape(4, 6))
    x = hg.asarray(source)
    assert np.array_equal(x.numpy(), source)
    assert np.array_equal((x + 1).numpy(), source + 1)
    if source.size:
        assert address(x) == address(source)
    assert np.array_equal(np.from_dlpack(x), source)
    assert np.array_equal(hg.array(source).numpy(), source)
    assert np.array_equal(np.array(x, copy=True), source)


def test_memory_lives_as_long_as_it_is_used():
    class Owner(np.ndarray):
        pass

    source = np.arange(1000, dtype="f4").view(Owner)
    gone = weakref.ref(source)
    x = hg.asarray(source)
    y = x[10:20]
    del source, x
    gc.collect()
    assert gone() is not None
    assert y.tolist() == list(range(10, 20))
    z = memoryview(y)
    del y
    gc.collect()
    assert gone() is not None and z[0] == 10
    del z
    gc.collect()
    assert gone() is None


def test_pending_results_hold_their_inputs():
    x = hg.asarray(np.arange(100, dtype="f4")) * 2
    gc.collect()
    assert x.tolist() == [2 * i for i in range(100)]


def test_arrays_are_values():
    x = hg.ones(4) + 1
    with pytest.raises(TypeError, match="read-only"):
        memoryview(x)[0] = 1.0
    assert not x.numpy().flags.writeable
    held = x.numpy()
    x[0] = 9
    assert held.tolist() == [2, 2, 2, 2] and x.tolist() == [9, 2, 2, 2]


def test_a_copy_by_dlpack_is_one():
    x = hg.ones(4) + 1
    shared, copy = np.from_dlpack(x), np.from_dlpack(x, copy=True)
    assert not shared.flags.writeable and copy.flags.writeable
    assert address(copy) != address(x) == address(shared)


def test_capsules_that_nobody_takes():
    x = hg.ones(1000) + 1
    for version in (None, (1, 0)):
        x.__dlpack__(max_version=version)
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError):
        hg.from_dlpack(3)
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))


def test_other_objects_with_the_buffer_protocol():
    assert hg.asarray(array.array("d", [1, 2, 3])).tolist() == [1, 2, 3]
    assert hg.asarray(bytearray(b"abc")).dtype == "uint8"
    assert hg.asarray(memoryview(b"abcd").cast("I")).dtype == "uint32"
    assert hg.asarray(range(3)).tolist() == [0, 1, 2]


def test_what_cannot_be_shared():
    unaligned = np.frombuffer(bytes(17), "u1")[1:].view("f4")
    assert hg.asarray(unaligned).tolist() == [0] * 4
    with pytest.raises(ValueError):
        hg.asarray(unaligned, copy=False)
    with pytest.raises(ValueError):
        hg.asarray([1, 2], copy=False)
    with pytest.raises(TypeError):
        hg.asarray(np.zeros(3, "c8"))
    with pytest.raises(TypeError):
        hg.asarray(np.zeros(3, ">f4"))
    with pytest.raises(TypeError):
        hg.asarray(object())
    with pytest.raises(ValueError):
        hg.asarray(np.zeros((1,) * 9, "f4"))


@pytest.mark.parametrize("value,shape,name", [
    (1, (), "int64"), (1.5, (), "float32"), (True, (), "bool"), ([], (0,), "float32"), ([[1, 2], [3, 4]], (2, 2), "int64"),
    ([1, 2.5], (2,), "float32"), ([[], []], (2, 0), "float32"), ([True, False], (2,), "bool"), ((1, (2)), (2,), "int64")])
def test_numbers_and_lists(value, shape, name):
    x = hg.asarray(value)
    assert x.shape == shape and x.dtype == name
    assert x.tolist() == np.asarray(value).tolist()


def test_lists_that_make_no_array():
    for value, kind in (([1, [2]], (ValueError, TypeError)), (["a"], TypeError), ([[1], [2, 3]], ValueError)):
        with pytest.raises(kind):
            hg.asarray(value)
    with pytest.raises(OverflowError):
        hg.asarray([300], dtype="int8")
    with pytest.raises(TypeError):
        hg.asarray([1.5], dtype="int32")


def test_narrow_types():
    x = hg.asarray([1.0, 2.5, -3.0], dtype="bfloat16")
    assert x.dtype == "bfloat16" and x.tolist() == [1, 2.5, -3]
    with pytest.raises(BufferError):
        memoryview(x)
    assert hg.asarray([1.0, 2.0], dtype="float8_e4m3fn").tolist() == [1, 2]
    assert hg.asarray(2**63, dtype="uint64").item() == 2**63


def test_others_writes_are_seen_when_read():
    source = np.zeros(4, "f4")
    x = hg.asarray(source)
    source[0] = 5
    assert x.tolist() == [5, 0, 0, 0]


def test_numpy_leaves_operators_to_arrays():
    x = hg.ones(3)
    with pytest.raises(TypeError, match="asarray"):
        np.ones(3, "f4") + x
    assert (np.asarray(x) + 1).tolist() == [2, 2, 2]
    assert (x * np.float32(2)).tolist() == (np.float64(2) * x).tolist() == (np.int8(2) * x).tolist() == [2, 2, 2]
