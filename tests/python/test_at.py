"""x.at[key]: what takes part at each element is the model's (indexing_model.py); values and gradients of both orders beside what follows
from the definitions in plain Python."""

from math import prod

import hologram as hg
import numpy as np
import pytest
from indexing_model import Refused, select, spread, together
from test_indexing import elements, own_key, own_value, result, some_cases, some_values

NUMBERS = [1.0, 2.0, 0.5, -1.0, -2.0, 0.0, 4.0]


def contributions(shape, key, value_shape):
    """Of each element the numbers of the values that take part in it, in their order."""
    made, positions = select(shape, key)
    while len(value_shape) > len(made) and value_shape[0] == 1:
        value_shape = value_shape[1:]
    if together([made, value_shape]) != made:
        raise Refused(f"{value_shape} into {made}")
    parts = [[] for _ in range(prod(shape))]
    for position, number in zip(positions, spread(value_shape, list(range(prod(value_shape))), made)):
        parts[position].append(number)
    return parts


def without(numbers, *places):
    return prod(number for i, number in enumerate(numbers) if i not in places)


def derivatives(name, numbers):
    """Of the old value and what is given to it: the result, its derivative by each, and by the first and each."""
    old, *given = range(len(numbers))
    none = [0.0] * len(numbers)
    if name == "add":
        return sum(numbers), [1.0] * len(numbers), none
    if name == "subtract":
        return numbers[0] - sum(numbers[1:]), [1.0] + [-1.0] * (len(numbers) - 1), none
    if name == "multiply":
        return prod(numbers), [without(numbers, i) for i in (old, *given)], [0.0] + [without(numbers, old, i) for i in given]
    made = (min if name == "min" else max)(numbers)
    share = 1 / numbers.count(made)
    return made, [share if number == made else 0.0 for number in numbers], none


def some_calls(seed):
    for rng, shape, key in some_cases(seed):
        try:
            value_shape = some_values(rng, select(shape, key)[0])[1]
        except Refused:
            value_shape = (1,)
        values = [rng.choice(NUMBERS) for _ in range(prod(value_shape))]
        numbers = np.array([rng.choice(NUMBERS) for _ in range(prod(shape))], "f4").reshape(shape)
        yield rng, shape, key, numbers, value_shape, values


def close(ours, right):
    ours = np.asarray(ours).ravel()
    assert np.allclose(ours, np.array(right, "f8"), rtol=1e-6, atol=1e-6), (ours, right)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("mode", ["eager", "lazy", "jit"])
def test_values(name, mode):
    for rng, shape, key, numbers, value_shape, values in some_calls(11):
        own, x, value = own_key(rng, key), hg.asarray(numbers), own_value(rng, values, value_shape)
        if mode != "lazy" and not isinstance(value, hg.Array):
            continue
        with hg.eager(mode == "eager"):
            call = lambda x, value: getattr(x.at[own], name)(value)  # noqa: B023, E731
            ours = result(lambda: (hg.jit(call) if mode == "jit" else call)(x, value))  # noqa: B023
        try:
            parts = contributions(shape, key, value_shape)
        except Refused:
            assert isinstance(ours, Exception) or np.array_equal(ours, numbers), (shape, own)
            continue
        assert not isinstance(ours, Exception), (shape, own, value, ours)
        given = np.asarray(value, "f4").ravel()  # integers of a value that people write so
        right = [derivatives(name, [x, *(float(given[i]) for i in own)])[0] for x, own in zip(numbers.ravel().tolist(), parts)]
        assert ours.shape == shape and ours.ravel().tolist() == right, (shape, own, value)
        assert np.asarray(x).tolist() == numbers.tolist()


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "min", "max"])
def test_gradients(name):
    for rng, shape, key, numbers, value_shape, values in some_calls(12):
        own = own_key(rng, key)
        try:
            parts = contributions(shape, key, value_shape)
        except Refused:
            continue
        weights, by = (np.array([rng.choice(NUMBERS) for _ in parts], "f4").reshape(shape) for _ in range(2))
        loss = lambda x, v: (hg.asarray(weights) * getattr(x.at[own], name)(v) ** 2).sum()  # noqa: B023, E731
        turned = lambda x, v: (hg.grad(loss)(x, v) * hg.asarray(by)).sum()  # noqa: B023, E731
        by_x, by_value, second = [], [0.0] * len(values), [0.0] * len(values)
        for w, u, old, own_parts in zip(weights.ravel().tolist(), by.ravel().tolist(), numbers.ravel().tolist(), parts):
            y, first, mixed = derivatives(name, [old, *(values[i] for i in own_parts)])
            by_x.append(2 * w * y * first[0])
            for i, d, m in zip(own_parts, first[1:], mixed[1:]):
                by_value[i] += 2 * w * y * d
                second[i] += 2 * w * u * (d * first[0] + y * m)
        x, value = hg.asarray(numbers), hg.asarray(np.array(values, "f4").reshape(value_shape))
        got = hg.grad(loss, (0, 1))(x, value)
        close(got[0], by_x)
        close(got[1], by_value)
        close(hg.grad(turned, 1)(x, value), second)


def folded(values, combine):
    """F, of operations.md."""
    values = list(values)
    if len(values) > 4096:
        return folded([folded(values[i : i + 4096], combine) for i in range(0, len(values), 4096)], combine)
    half = 1 << (len(values) - 1).bit_length() >> 1
    while half > 0:
        values = [combine(v, values[i + half]) if i < half and i + half < len(values) else v for i, v in enumerate(values)]
        half //= 2
    return values[0]


@pytest.mark.parametrize("name", ["add", "multiply"])
def test_order_of_contributions(name):
    """Bits: old op F(contributions in their order), however many there are for an element."""
    rng = np.random.default_rng(5)
    combine = {"add": np.float32.__add__, "multiply": np.float32.__mul__}[name]
    value = (rng.random(10_000, "f4") * 0.2 + 0.9).astype("f4")
    index = np.where(rng.random(10_000) < 0.9, 3, rng.integers(0, 40, 10_000))
    x = rng.random(50, "f4")
    right = x.copy()
    for place in set(index.tolist()):
        right[place] = combine(x[place], folded(value[index == place], combine))
    ours = np.asarray(getattr(hg.asarray(x).at[index], name)(value))
    assert np.array_equal(ours, right)


def test_zeros_infinities_and_nans():
    x, index = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0], "f4"), [0, 1, 2, 3, 4, 5, 0, 1, 2, 3]
    value = np.array([-0.0, -0.0, np.inf, -np.inf, 1.0, np.nan, -0.0, 0.0, 1.0, -np.inf], "f4")
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        got = {name: np.asarray(getattr(hg.asarray(x).astype(dtype).at[index], name)(value).astype("float64")) for name in ("min", "max")}
        right = {"min": [-0.0, -0.0, 1.0, -np.inf, np.nan, np.nan, 2.0], "max": [0.0, 0.0, np.inf, -np.inf, np.nan, np.nan, 2.0]}
        for name, ours in got.items():
            assert np.array_equal(ours, right[name], equal_nan=True) and np.array_equal(np.signbit(ours[:4]), np.signbit(right[name][:4]))
    largest = hg.grad(lambda x, v: x.at[index].max(v).sum(), (0, 1))(hg.asarray(x), hg.asarray(value))
    close(largest[0], [1 / 3, 1 / 3, 1 / 2, 1 / 3, 1, 0, 1])
    close(largest[1], [1 / 3, 1 / 3, 1 / 2, 1 / 3, 0, 1, 1 / 3, 1 / 3, 0, 1 / 3])


def test_types():
    for dtype in ("int8", "uint8", "int32", "uint64"):
        x, index = np.array([3, 100, 7], dtype), np.array([1, 1, 0, -2])
        value = np.array([100, 2, 3, 1], dtype)
        for name, ufunc in ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("min", np.minimum), ("max", np.maximum):
            right = x.copy()
            ufunc.at(right, index, value)
            ours = np.asarray(getattr(hg.asarray(x).at[hg.asarray(index)], name)(value))
            assert ours.dtype == right.dtype and ours.tolist() == right.tolist(), (dtype, name)
    halves = np.asarray(hg.asarray(np.array([1.0], "f2")).at[[0, 0, 0]].multiply(hg.asarray(np.array([3.001, 5.003, 7.007], "f2"))))
    assert halves[0] == np.float16(np.prod(np.array([3.001, 5.003, 7.007], "f2").astype("f4")))
    with pytest.raises(TypeError, match="astype"):
        hg.arange(3).at[[0]].add(1.5)
    with pytest.raises(OverflowError):
        hg.asarray(np.zeros(3, "i1")).at[[0]].add(300)
    with pytest.raises(TypeError, match="numbers"):
        hg.asarray([True]).at[[0]].add(True)


def test_the_array_stays():
    x = hg.asarray(elements((3,)))
    y = x.at[0].set(5.0)
    assert np.asarray(x).tolist() == [1, 2, 3] and np.asarray(y).tolist() == [5, 2, 3]
    assert np.asarray(x.at[[0, 0, -1]].get()).tolist() == [1, 1, 3]
    z = x.at[[]].add([])
    z[0] = 9.0
    assert np.asarray(x).tolist() == [1, 2, 3]
    with pytest.raises(IndexError, match="index 3 is out of range of axis 0"):
        x.at[[3]].add(1.0)
    for name in ("add", "subtract", "multiply", "min", "max", "set"):
        for wrong in (3, -4, -6, 2**62, -(2**62)):
            with pytest.raises(hg.Fault):
                np.asarray(getattr(x.at[hg.asarray([0, wrong])], name)(5.0))
