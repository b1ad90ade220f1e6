"""Memory that is shared with NumPy and others: addresses, lifetimes, read-only, copies."""

import array
import gc
import sys
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
    with pytest.raises(ValueError):
        hg.asarray(np.zeros(3, ">f4"), copy=False)
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


def test_the_array_interface_outwards():
    x = (hg.asarray(np.arange(12, dtype="f4").reshape(3, 4)) + 1).compute()
    view = x[::2, 1:].__array_interface__
    assert view["shape"] == (2, 3) and view["strides"] == (32, 4) and view["typestr"] == "<f4" and view["version"] == 3
    assert view["data"] == (address(x) + 4, True)
    for name in TYPES:
        assert hg.ones(3, name).__array_interface__["typestr"] == np.ones(3, name).__array_interface__["typestr"]
    assert not hasattr(hg.ones(3, "bfloat16"), "__array_interface__") and not hasattr(x, "__cuda_array_interface__")


def test_what_an_array_interface_shows_stays_as_it_is():
    class Only:
        def __init__(self, x):
            self.x, self.__array_interface__ = x, x.__array_interface__

    x = hg.ones(1000) + 1
    taken = np.asarray(Only(x))
    kept = x[1:]
    x[:] = 5
    del kept
    gc.collect()
    others = [(hg.ones(1000) * i).compute() for i in range(5)]
    assert (taken == 2).all() and not taken.flags.writeable and x.tolist() == [5] * 1000 and len(others) == 5


def test_the_array_interface_inwards():
    class Owner:
        def __init__(self, array, **more):
            self.__array_interface__ = {**array.__array_interface__, **more}
            self.array = array

    source = np.arange(12, dtype="i4").reshape(3, 4)[:, ::2]
    owner = Owner(source)
    gone = weakref.ref(owner)
    x = hg.asarray(owner)
    assert x.tolist() == source.tolist() and address(x) == address(source)
    assert hg.array(owner).tolist() == source.tolist() and address(hg.array(owner)) != address(source)
    del owner
    gc.collect()
    assert gone() is not None
    del x
    gc.collect()
    assert gone() is None
    assert hg.asarray(Owner(np.arange(4, dtype="u1"), data=b"abcdef", offset=2, strides=None)).tolist() == [99, 100, 101, 102]
    for bad in (Owner(np.zeros(2, ">f4")), Owner(np.zeros(2, "c8")), Owner(np.zeros(2), mask=np.ones(2))):
        with pytest.raises(TypeError):
            hg.asarray(bad)


def test_an_image_is_an_array():
    image = pytest.importorskip("PIL.Image").new("RGB", (5, 3), (1, 2, 3))
    assert hg.asarray(image).shape == (3, 5, 3) and hg.asarray(image)[0, 0].tolist() == [1, 2, 3]


def test_dlpack_s_arguments():
    x = hg.ones((2, 3)) + 1
    names = [repr(x.__dlpack__(max_version=version)).split('"')[1] for version in (None, (0, 8), (1, 0), (1, 3), (2, 0))]
    assert names == ["dltensor"] * 2 + ["dltensor_versioned"] * 3
    x.__dlpack__(stream=None, dl_device=(1, 0), copy=False, max_version=None)
    x.__dlpack__(stream=-1)
    for kind, arguments in ((ValueError, {"stream": 1}), (TypeError, {"max_version": 3}), (TypeError, {"what": 3}),
                            (BufferError, {"dl_device": (2, 0)})):
        with pytest.raises(kind):
            x.__dlpack__(**arguments)
    with pytest.raises(TypeError):
        x.__dlpack__(1)
    narrow = hg.ones(3, "float8_e5m2")
    with pytest.raises(BufferError, match="1.1"):
        narrow.__dlpack__(max_version=(1, 0))
    assert hg.from_dlpack(narrow).tolist() == [1, 1, 1]
    assert np.from_dlpack(x, device="cpu", copy=False).tolist() == x.tolist()
    assert hg.from_dlpack(hg.ones(0)).shape == (0,)


def test_read_only_memory_by_dlpack():
    source = np.ones(3, "f4")
    source.flags.writeable = False
    x = hg.from_dlpack(source)
    x[0] = 2
    assert source.tolist() == [1, 1, 1] and x.tolist() == [2, 1, 1]


@pytest.mark.skipif(not __import__("importlib").util.find_spec("torch"), reason="torch is not installed")
def test_torch():
    import torch

    t = torch.arange(6, dtype=torch.float32).reshape(2, 3).T
    x = hg.from_dlpack(t)
    assert x.tolist() == t.tolist() and address(x) == t.data_ptr() == address(hg.asarray(t))
    y = (x + 1).compute()
    shared, copy = torch.from_dlpack(y), torch.from_dlpack(y.__dlpack__(copy=True, max_version=(1, 0)))
    assert shared.data_ptr() == address(y) != copy.data_ptr() and shared.tolist() == copy.tolist()
    assert hg.asarray(torch.ones(3, dtype=torch.bfloat16)).dtype == "bfloat16"
    del y, x
    gc.collect()
    assert shared.tolist() == (t + 1).tolist()


def test_the_same_memory_again_and_again():
    """What was noted of memory when it was shared last says nothing of what it is shared as now."""
    memory = np.arange(64, dtype=np.float32)
    frozen = memory.view()
    frozen.flags.writeable = False
    views = [memory, frozen, memory[:63], memory[::2], memory[::-1], memory.reshape(8, 8).T, memory[:0], memory.view(np.int32)]
    held = sys.getrefcount(memory)
    for _ in range(3):
        for view in views:
            x, y = hg.asarray(view), hg.asarray(view)
            memory += 1
            for z in (x, y):
                assert np.array_equal(np.asarray(z), view) and z.dtype == view.dtype
                assert not view.size or address(z) == view.__array_interface__["data"][0]
    del x, y, z
    gc.collect()
    assert sys.getrefcount(memory) == held


def test_memory_that_is_where_other_memory_was():
    for size in (5, 1000, 5, 100_000):
        for seed in range(40):
            source = np.random.default_rng(seed).normal(size=size)
            assert (hg.asarray(source) * 2.0).tolist() == (source * 2.0).tolist()
            del source
