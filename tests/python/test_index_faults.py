"""A fault of an index in an array names the index as it was given, its axis, how many elements that has, and the operation."""

import threading

import numpy as np
import pytest

import double_of_cuda
import hologram as hg


def numbers(*values, dtype="int64"):
    return hg.asarray(np.array(values, dtype))


def fault_of(call):
    with pytest.raises(hg.IndexFault) as caught:
        result = call()
        for part in result if isinstance(result, tuple) else (result,):
            part.numpy()
    assert isinstance(caught.value, hg.Fault) and isinstance(caught.value, IndexError)
    return caught.value


def check(call, name, index, axis, length):
    fault = fault_of(call)
    assert (fault.index, fault.axis, fault.length) == (index, axis, length)
    assert str(fault) == f"{name}: index {index} is out of range of axis {axis}, which has {length} elements"


X = np.ones((3, 4), np.float32)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_every_integer_type(dtype):
    check(lambda: hg.take(hg.asarray(X), numbers(0, 100, dtype=dtype)), "take", 100, 0, 3)


@pytest.mark.parametrize("index", [7777, -5, 2**40, -(2**40), 2**31, 4])
def test_numbers_as_they_were_given(index):
    check(lambda: hg.take(hg.asarray(X), numbers(3, index), axis=1), "take", index, 1, 4)
    check(lambda: hg.take(hg.asarray(X), numbers(3, index + 1) - 1, axis=1), "take", index, 1, 4)


def test_operations():
    x, wrong = hg.asarray(X), numbers(1, 77, -3)
    check(lambda: hg.embedding(x, wrong), "embedding", 77, 0, 3)
    check(lambda: hg.cross_entropy(x, wrong), "cross_entropy", 77, 1, 4)
    check(lambda: hg.take_along(x, numbers(-6).reshape((1, 1))), "take_along", -6, 1, 4)
    check(lambda: hg.scatter(x, wrong.reshape((3, 1)), x, axis=0), "scatter", 77, 0, 3)
    check(lambda: hg.scatter_add(x, wrong.reshape((3, 1)), x, axis=0), "scatter_add", 77, 0, 3)


def test_jit_gradients_and_eager():
    x, wrong = hg.asarray(X), numbers(1, 77)
    check(lambda: hg.jit(lambda x, i: hg.take(x, i) * 2)(x, wrong), "take", 77, 0, 3)
    check(lambda: hg.grad(lambda x: (hg.embedding(x, wrong) ** 2).sum())(x), "embedding", 77, 0, 3)
    check(lambda: hg.grad(lambda x: hg.take(x, wrong).sum())(x), "take", 77, 0, 3)
    with hg.eager():
        check(lambda: hg.take(x, wrong), "take", 77, 0, 3)
        check(lambda: hg.take(x, wrong), "take", 77, 0, 3)


def test_the_first_one_of_a_matrix_in_any_layout():
    wrong = hg.asarray(np.array([[0, 1], [9, 8]]))
    check(lambda: hg.take(hg.asarray(X), wrong), "take", 9, 0, 3)
    assert fault_of(lambda: hg.take(hg.asarray(X), wrong.T)).index in (8, 9)


def test_an_index_of_an_index():
    table = numbers(0, 1, 7)
    check(lambda: hg.embedding(hg.asarray(X), hg.take(table, numbers(0, 2))), "embedding", 7, 0, 3)
    check(lambda: hg.embedding(hg.asarray(X), hg.take(table, numbers(0, 9))), "take", 9, 0, 3)


def test_the_executor_stays_usable():
    for _ in range(3):
        fault_of(lambda: hg.asarray(X)[numbers(9)])
    assert hg.take(hg.asarray(X), numbers(2)).numpy().tolist() == X[[2]].tolist()
    assert "hg_" not in str(fault_of(lambda: hg.asarray(X)[numbers(9)]))


KEYS = {  # what names elements of an array of shape (3, 4, 5): the index that is wrong, its axis and length
    "rows": (numbers(2, 9), (9, 0, 3)), "after a new axis": ((None, numbers(9)), (9, 0, 3)),
    "second": ((slice(None), numbers(-5)), (-5, 1, 4)),
    "last": ((..., numbers(0, -7)), (-7, 2, 5)), "first of two": ((numbers(0, -4), numbers(1, 1)), (-4, 0, 3)),
    "second of two": ((numbers(0, -3), numbers(1, 4)), (4, 1, 4)), "apart": ((numbers(0, 1), slice(None), numbers(1, 77)), (77, 2, 5)),
    "with a number": ((1, numbers(9)), (9, 1, 4)), "with a new axis": ((numbers(9), None, 2), (9, 0, 3)),
    "of three": ((numbers(0, 1)[:, None], numbers(1, 1), numbers(0, -6)), (-6, 2, 5)),
    "with a mask": ((numbers(3, 0, dtype="int8"), hg.asarray([True, False, False, True])), (3, 0, 3)),
    "unsigned": ((0, numbers(2**63, dtype="uint64"), numbers(0)), (2**63 - 1, 1, 4)),
}  # fmt: skip
USES = {  # the operation that the sentence names, and how the key is used
    "get": ("take", lambda x, key: x[key]), "set": ("scatter", lambda x, key: assigned(x, key)),
    "at.set": ("scatter", lambda x, key: x.at[key].set(1.0)), "at.add": ("scatter_add", lambda x, key: x.at[key].add(1.0)),
    "at.max": ("scatter_max", lambda x, key: x.at[key].max(1.0)),
    "at.multiply": ("scatter_multiply", lambda x, key: x.at[key].multiply(1.0)),
}  # fmt: skip


def assigned(x, key):
    made = hg.array(x)
    made[key] = 1.0
    return made


@pytest.mark.parametrize("is_eager", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("key", KEYS)
def test_keys(key, use, is_eager):
    """Axes are the array's own, however the key is computed."""
    (key, (index, axis, length)), (name, call) = KEYS[key], USES[use]
    with hg.eager(is_eager):
        fault = fault_of(lambda: call(hg.ones((3, 4, 5)), key))
    assert (fault.index, fault.axis, fault.length) == (index, axis, length)
    assert str(fault).startswith(f"{name}: index ")


def test_keys_in_gradients():
    x, (i, j) = hg.ones((3, 4)), (numbers(0, 1), numbers(1, 9))
    check(lambda: hg.grad(lambda x: (x[i, j] ** 2).sum())(x), "take", 9, 1, 4)
    check(lambda: hg.grad(lambda x: (x.at[i, j].add(x[0, :2]) ** 2).sum())(x), "scatter_add", 9, 1, 4)
    check(lambda: hg.jit(lambda x: x[i, j] + x[j, i])(x), "take", 9, 1, 4)


def test_large_computations():
    """They are given to a stream of the CPU."""
    x, wrong = hg.ones((3, 1 << 21)), numbers(1, 77)
    check(lambda: hg.take(x, wrong) + 1, "take", 77, 0, 3)
    check(lambda: hg.take(x, wrong + 1) + 1, "take", 78, 0, 3)
    check(lambda: hg.grad(lambda x: (hg.embedding(x, wrong) ** 2).sum())(x), "embedding", 77, 0, 3)
    given = np.array([1, 77])
    check(lambda: hg.take(x, hg.from_dlpack(given)) + 1, "take", 77, 0, 3)
    assert (hg.take(x, numbers(2)) + 1).numpy().sum() == 2 << 21


def test_large_tensors_of_torch():
    torch = pytest.importorskip("torch")
    import hologram_torch.functional as F

    weight = torch.ones((3, 1 << 21))
    check(lambda: F.embedding(torch.tensor([1, 77]), weight), "embedding", 77, 0, 3)
    check(lambda: F.embedding(torch.tensor([[1, 0], [2, -4]], dtype=torch.int32), weight), "embedding", -4, 0, 3)


def test_threads():
    """No thread finds what another one has done wrong."""
    found = {}

    def work(number):
        index = numbers(1, number)
        for _ in range(20):
            found.setdefault(number, set()).add(fault_of(lambda: hg.take(hg.asarray(X), index)).index)

    threads = [threading.Thread(target=work, args=(number,)) for number in (7, 70, 700)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {7: {7}, 70: {70}, 700: {700}}


@double_of_cuda.needed
def test_on_a_gpu():
    """This file, where every computation is given to one stream, whose faults are anybody's."""
    code = ("import hologram, pytest, sys; assert hologram.default_executor().backend == 'cuda'; "
            "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '-k', sys.argv[2], sys.argv[1]]))")
    some = "not large and not gpu and not threads and (not test_keys or get)"
    assert " passed" in double_of_cuda.run(code, __file__, some)
