"""hg.jit(donate=...): results are written where arguments were, with the same bits; what was given up is gone; nobody else's memory is
written."""

import ctypes
import threading

import numpy as np
import pytest

import double_of_cuda
import hologram as hg

f4 = np.float32
ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
ctypes.pythonapi.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def data(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(f4)


def address(x):
    """Of an array's elements, on its device; nobody holds the memory for it afterwards. A DLTensor begins with it."""
    capsule = x.__dlpack__()
    tensor = ctypes.pythonapi.PyCapsule_GetPointer(capsule, b"dltensor")
    return ctypes.c_void_p.from_address(tensor).value + ctypes.c_uint64.from_address(tensor + 40).value


def training(donate):
    """A step of Adam for two layers of one shape; parameters, state, the step."""
    network = hg.nn.Sequential(hg.nn.Linear(8, 8), hg.tanh, hg.nn.Linear(8, 8))
    optimizer = hg.optim.Adam(0.01)
    parameters = network.init(hg.random.key(1))
    x, y = hg.array(data(16, 8, seed=1)), hg.array(data(16, 8, seed=2))

    def step(parameters, state):
        loss, gradients = hg.value_and_grad(lambda p: hg.mse(network(p, x), y))(parameters)
        return loss, *optimizer.update(parameters, gradients, state)

    return parameters, optimizer.init(parameters), hg.jit(step, donate=donate)


def leaves(*trees):
    return [x for tree in trees for x in hg.nn.state_dict(tree).values()]


def test_a_training_step_updates_in_place():
    parameters, state, step = training((0, 1))
    before = [address(x) for x in leaves(parameters, state)]
    assert len(set(before)) == len(before) == 13
    for _ in range(4):
        given = leaves(parameters, state)
        loss, parameters, state = step(parameters, state)
        assert [address(x) for x in leaves(parameters, state)] == before and address(loss) not in before
        for x in given:
            with pytest.raises(ValueError, match="given up"):
                x.numpy()


def test_the_same_bits_for_many_steps():
    results = []
    for donate in ((), (0, 1), 0, 1, (1, 0), np.int64(1), np.array([0, 1])):
        parameters, state, step = training(donate)
        for _ in range(20):
            loss, parameters, state = step(parameters, state)
        results.append([x.numpy().tobytes() for x in leaves(loss, parameters, state)])
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("use", [lambda x: x.numpy(), lambda x: (x + 1).numpy(), lambda x: x[1:].numpy(), lambda x: float(x[0]),
                                 lambda x: hg.grad(lambda y: y.sum())(x), lambda x: hg.explain(x + 1), lambda x: x.__setitem__(0, 1.0),
                                 lambda x: hg.asarray(x).tolist(), lambda x: hg.array(x).tolist(), np.from_dlpack, memoryview, repr,
                                 lambda x: hg.jit(lambda y: y * 2, donate=0)(x)])
def test_what_is_given_up_is_gone(use):
    x = hg.array(data(5))
    twice = x * 2  # pending: it would need x
    y = hg.jit(lambda x: x + 1, donate=0)(x)
    with pytest.raises(ValueError, match="given up"):
        use(x)
    with pytest.raises(ValueError, match="given up"):
        twice.numpy()
    assert np.array_equal(y.numpy(), data(5) + f4(1)) and x.shape == (5,)


def view(x):
    return x[1:]


@pytest.mark.parametrize("look", [np.asarray, np.from_dlpack, memoryview, view, lambda x: x.__array_interface__ and x])
def test_memory_that_others_see_is_not_written(look):
    source = data(64)
    x = hg.array(source)
    seen, where = look(x), address(x)
    y = hg.jit(lambda x: x * 3, donate=0)(x)
    assert address(y) != where and np.array_equal(y.numpy(), source * f4(3))
    if seen is not x:
        assert np.asarray(seen).tobytes() == source[len(source) - len(np.asarray(seen)):].tobytes()


def test_memory_of_others_is_not_written():
    source = data(64)
    y = hg.jit(lambda x: x * 3, donate=0)(hg.asarray(source))
    assert np.array_equal(source, data(64)) and np.array_equal(y.numpy(), source * f4(3))


@pytest.mark.parametrize("function, is_in_place", [
    (lambda x: hg.flip(x, axis=0) * 2, True), (lambda x: x - x.sum(), True), (lambda x: hg.softmax(x), True),
    (lambda x: hg.concatenate(x[8:], x[:8]), False), (lambda x: x[::-1] + x, False), (lambda x: x.reshape((8, 8)).T.reshape(64), False)])
def test_results_that_read_elsewhere_than_they_write(function, is_in_place):
    """A view is somebody else who sees the memory."""
    x = hg.array(data(64))
    expected, where = hg.jit(function)(x).numpy().tobytes(), address(x)
    y = hg.jit(function, donate=0)(x)
    assert y.numpy().tobytes() == expected and (address(y) == where) == is_in_place


def test_a_gradient_is_not_by_what_the_function_closes_over():
    def step(x):
        return x - 0.1 * hg.grad(lambda y: (y * x).sum())(x)  # by y alone: x, and not 2 x

    x = hg.array(data(9))
    where = address(x)
    y = hg.jit(step, donate=0)(x)
    assert y.numpy().tobytes() == hg.jit(step)(hg.array(data(9))).numpy().tobytes() and address(y) == where
    np.testing.assert_allclose(y.numpy(), data(9) * 0.9, rtol=1e-6)


def test_several_parts_of_one_form():
    a, b = hg.array(data(7, seed=1)), hg.array(data(7, seed=2))
    where = [address(a), address(b)]
    x, y = hg.jit(lambda a, b: (a + b, a - b), donate=(0, 1))(a, b)
    assert [address(x), address(y)] == where
    assert np.array_equal(x.numpy(), data(7, seed=1) + data(7, seed=2))
    assert np.array_equal(y.numpy(), data(7, seed=1) - data(7, seed=2))


@pytest.mark.parametrize("function", [
    lambda a, b: (b + 1, a * 2), lambda a, b: (a + b, a + b), lambda a, b: (b - 0.0, a - 0.0),
    lambda a, b: (hg.flip(b, axis=0), hg.exp(hg.flip(a, axis=0))), lambda a, b: (b.sum() + a, a.sum() + b)])
def test_results_that_read_what_the_other_writes(function):
    expected = [x.numpy().tobytes() for x in hg.jit(function)(hg.array(data(50)), hg.array(data(50, seed=1)))]
    a, b = hg.array(data(50)), hg.array(data(50, seed=1))
    where = [address(a), address(b)]
    results = hg.jit(function, donate=(0, 1))(a, b)
    assert [x.numpy().tobytes() for x in results] == expected and [address(x) for x in results] == where


def test_one_array_as_two_arguments():
    a = hg.array(data(7))
    x, y = hg.jit(lambda a, b: (a + b, a * b), donate=(0, 1))(a, a)
    assert np.array_equal(x.numpy(), data(7) * f4(2)) and np.array_equal(y.numpy(), data(7) * data(7))


def test_what_comes_back_as_it_is_stays():
    a, b = hg.array(data(7)), hg.array(data(7, seed=1))
    x, y = hg.jit(lambda pair: [pair[0], pair[1] + 1], donate=0)([a, b])
    assert np.array_equal(a.numpy(), data(7)) and np.array_equal(x.numpy(), data(7))
    assert np.array_equal(y.numpy(), data(7, seed=1) + f4(1))
    with pytest.raises(ValueError, match="given up"):
        b.numpy()


def test_a_result_of_another_form():
    x = hg.array(data(7))
    for function in (lambda x: x[1:], lambda x: x.astype("float64"), lambda x: (x.sum(), [x, x]), lambda x: None):
        with pytest.raises(ValueError, match="argument 0 is given up, but no part of the result has its form"):
            hg.jit(function, donate=0)(x)
    assert np.array_equal(x.numpy(), data(7))


def test_a_fault_leaves_nothing_to_read():
    x, index = hg.array(data(7)), hg.array(np.array([9]))
    with pytest.raises(hg.Fault):
        hg.jit(lambda x: x + hg.take(x, index), donate=0)(x).numpy()
    with pytest.raises(ValueError, match="given up"):
        x.numpy()


def test_eager_and_traced():
    x = hg.array(data(7))
    with hg.eager():
        y = hg.jit(lambda x: x + 1, donate=0)(x)
    assert np.array_equal(y.numpy(), data(7) + f4(1))
    double = hg.jit(lambda x: x * 2, donate=0)
    assert hg.grad(lambda x: double(x).sum())(y).tolist() == [2] * 7 and y.numpy() is not None  # inside a gradient nothing is given up


def test_threads_that_give_up_the_same():
    """One of them gets it, or both have no use of each other's memory; nobody gets other numbers."""
    step, results = hg.jit(lambda x: hg.exp(x) + x.sum(), donate=0), []
    expected = hg.jit(lambda x: hg.exp(x) + x.sum())(hg.array(data(100_000))).numpy().tobytes()

    def work(x, barrier):
        barrier.wait()
        try:
            results.append(step(x).numpy().tobytes() == expected)
        except ValueError:
            results.append(None)

    for _ in range(30):
        x, barrier = hg.array(data(100_000)), threading.Barrier(2)
        threads = [threading.Thread(target=work, args=(x, barrier)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 60 and results.count(True) >= 30 and False not in results


ON_CUDA = """
import hologram as hg
hg.set_default_executor(hg.Executor("cuda"))
import test_donate
test_donate.test_the_same_bits_for_many_steps()
test_donate.test_a_training_step_updates_in_place()
test_donate.test_a_gradient_is_not_by_what_the_function_closes_over()
print("fine")
"""


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.run(ON_CUDA) == "fine\n"
