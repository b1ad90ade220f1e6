"""x[key] and x[key] = value: held to a model in plain Python (indexing_model.py), and that to NumPy; read and assigned eagerly, lazily,
in one computation, and differentiated."""

import random
from math import prod

import hologram as hg
import numpy as np
import pytest
from indexing_model import Numbers, Refused, assign, select

KEYS = 300
ERRORS = (IndexError, ValueError, TypeError, hg.Error)


# ---- keys by chance ---------------------------------------------------------------------------------------------------

def some_numbers(rng, size):
    shape = rng.choice([(0,), (1,), (2,), (3,), (5,), (1, 3), (2, 1), (2, 3), ()])
    low, high = (-size, size - 1) if size and rng.random() < 0.95 else (-size - 2, size + 1)
    return Numbers(shape, [rng.randint(low, high) for _ in range(prod(shape))])


def some_mask(rng, sizes):
    shape = tuple(sizes) if rng.random() < 0.95 else tuple(size + 1 for size in sizes)
    chance = rng.choice([0, 0.3, 0.7, 1])
    return Numbers(shape, [rng.random() < chance for _ in range(prod(shape))], True)


def some_slice(rng, size):
    ends = [None, *range(-size - 2, size + 3)]
    return slice(rng.choice(ends), rng.choice(ends), rng.choice([None, 1, 2, -1, -2, 3]))


def some_key(rng, shape):
    """For an array of this shape: what most keys are made of, and at times a part too many, or one beyond the end."""
    key, axis, has_dots = [], 0, False
    while axis < len(shape) + (rng.random() < 0.03):
        size, kind = (shape[axis] if axis < len(shape) else 1), rng.random()
        if kind < 0.08:
            key.append(None)
        elif kind < 0.13:
            key.append(rng.random() < 0.6)
        elif kind < 0.21 and not has_dots:
            key.append(...)
            has_dots, axis = True, axis + rng.randint(0, max(len(shape) - axis, 0))
        elif kind < 0.36 and axis < len(shape):
            key.append(some_mask(rng, shape[axis : axis + rng.choice([1, 1, 2])]))
            axis += len(key[-1].shape)
        elif kind < 0.62:
            key.append(some_numbers(rng, size))
            axis += 1
        elif kind < 0.75 and size:
            key.append(rng.randint(-size, size - 1 + (rng.random() < 0.05)))
            axis += 1
        else:
            key.append(some_slice(rng, size))
            axis += 1
        if rng.random() < 0.12:
            break
    return tuple(key)


def some_cases(seed, count=KEYS):
    rng = random.Random(seed)
    for _ in range(count):
        shape = tuple(rng.choice([0, 1, 2, 3, 3, 4]) for _ in range(rng.randint(0, 4)))
        yield rng, shape, some_key(rng, shape)


def of_numpy(part):
    return np.array(part.values, bool if part.is_mask else "int64").reshape(part.shape) if isinstance(part, Numbers) else part


def numpy_key(key):
    return tuple(of_numpy(part) for part in key)


def nested(part):
    """As lists; an array that is none of them as it is."""
    array = of_numpy(part)
    return array.tolist() if array.ndim > 0 and array.size > 0 else array


def own_key(rng, key):
    """The same key as people write it."""

    def one(part):
        if isinstance(part, Numbers):
            way = rng.choice(["list", "numpy", "array", "array", "short"])
            if way == "short" and not part.is_mask:
                return hg.asarray(of_numpy(part).astype(rng.choice(["int8", "int32"])))
            return nested(part) if way == "list" else of_numpy(part) if way == "numpy" else hg.asarray(of_numpy(part))
        if isinstance(part, bool):
            return rng.choice([part, np.bool_(part), hg.asarray(np.array(part))])
        if isinstance(part, int):
            return rng.choice([part, part, np.int64(part), np.int8(part), hg.asarray(np.array(part))])
        return part

    made = tuple(one(part) for part in key)
    return made[0] if len(made) == 1 and not isinstance(made[0], tuple) and rng.random() < 0.5 else made


def some_values(rng, shape):
    """Elements and the shape of a value for a part of this shape: broadcast to it, and at times of another shape."""
    made = [1 if rng.random() < 0.2 else size for size in shape[rng.randint(0, len(shape)) if rng.random() < 0.4 else 0 :]]
    if rng.random() < 0.15:
        made = [rng.choice((1, 1, 3)), *made]
    if rng.random() < 0.05:
        made = [*made, 2]
    return [float(rng.randint(1, 99)) for _ in range(prod(made))], tuple(made[:8])


def result(call):
    """The elements of what it gives, or the error."""
    try:
        return np.asarray(call())
    except ERRORS as error:
        return error


def elements(shape):
    return np.arange(1.0, prod(shape) + 1.0, dtype="f4").reshape(shape)


# ---- the model is NumPy's ---------------------------------------------------------------------------------------------

def test_model_reads_as_numpy():
    refused = 0
    for _, shape, key in some_cases(1, 10 * KEYS):
        numbers = np.arange(prod(shape)).reshape(shape)
        theirs = result(lambda: numbers[numpy_key(key)])
        try:
            made, positions = select(shape, key)
        except Refused:
            assert isinstance(theirs, IndexError), (shape, key)
            refused += 1
            continue
        assert not isinstance(theirs, Exception), (shape, key, theirs)
        assert theirs.shape == made and theirs.ravel().tolist() == positions, (shape, key)
    assert KEYS < refused < 4 * KEYS


def test_model_assigns_as_numpy():
    for rng, shape, key in some_cases(2, 5 * KEYS):
        theirs = elements(shape)
        try:
            made, _ = select(shape, key)
        except Refused:
            continue
        values, value_shape = some_values(rng, made)
        value = np.array(values).reshape(value_shape)
        try:
            theirs[numpy_key(key)] = value
        except ValueError as error:
            if "an array element with a sequence" in str(error):
                continue  # of an element, not a part, NumPy takes no array of one number; PyTorch and the package do
            with pytest.raises(Refused):
                assign(elements(shape).ravel().tolist(), shape, key, value_shape, values)
                pytest.fail(f"{error}: {shape}, {key}, {value_shape}")
            continue
        except TypeError as error:
            assert "0 or 1-dimensional input" in str(error)  # a rule of its own for a mask of all axes
            continue
        ours, _ = assign(elements(shape).ravel().tolist(), shape, key, value_shape, values)
        assert theirs.ravel().tolist() == ours, (shape, key, value_shape)


# ---- reading ----------------------------------------------------------------------------------------------------------

def known_at_the_call(key):
    return all(not isinstance(part, hg.Array) for part in (key if isinstance(key, tuple) else (key,)))


@pytest.mark.parametrize("mode", ["eager", "lazy", "jit"])
def test_reading(mode):
    for rng, shape, key in some_cases(3):
        x, own = hg.asarray(elements(shape)), own_key(rng, key)
        if mode == "lazy":
            x = x * 1.0
        with hg.eager(mode == "eager"):
            ours = result(lambda: hg.jit(lambda x: x[own])(x) if mode == "jit" else x[own])
        try:
            made, positions = select(shape, key)
        except Refused:
            if known_at_the_call(own):
                assert isinstance(ours, IndexError), (shape, own, ours)
            else:  # an array's numbers are looked at where they take something
                assert isinstance(ours, Exception) or ours.size == 0, (shape, own, ours)
            continue
        assert not isinstance(ours, Exception), (shape, own, ours)
        assert ours.shape == made and ours.dtype == np.float32
        assert ours.ravel().tolist() == [p + 1.0 for p in positions], (shape, own)


def test_gradients_of_reading():
    for rng, shape, key in some_cases(4):
        own, numbers = own_key(rng, key), elements(shape)
        try:
            made, positions = select(shape, key)
        except Refused:
            continue
        weights = np.array([rng.randint(-3, 3) for _ in positions], "f4").reshape(made)
        by = np.array([rng.randint(-3, 3) for _ in range(numbers.size)], "f4").reshape(shape)
        cubes = lambda x: (hg.asarray(weights) * x[own] * x[own] * x[own]).sum()  # noqa: B023, E731
        first = hg.grad(cubes)
        x = hg.asarray(numbers)
        sums = np.zeros(numbers.size)
        np.add.at(sums, np.array(positions, "int64"), weights.ravel())
        sums = sums.reshape(shape)
        assert np.array_equal(np.asarray(first(x)), 3 * sums * numbers**2), (shape, own)
        second = hg.grad(lambda x: (first(x) * hg.asarray(by)).sum())  # noqa: B023
        assert np.array_equal(np.asarray(second(x)), 6 * sums * numbers * by), (shape, own)


# ---- assigning --------------------------------------------------------------------------------------------------------

def own_value(rng, values, shape):
    """The same value as people write it."""
    array = np.array(values).reshape(shape)
    if shape == ():
        return rng.choice([values[0], int(values[0]), np.float32(values[0]), np.int64(values[0]), array, hg.asarray(array)])
    ways = [array, array.astype("f4"), array.astype("int16"), hg.asarray(array), hg.asarray(array.astype("f4")) * 1.0]
    return rng.choice([*ways, array.tolist()] if array.size else ways)


def assigned(x, key, value):
    x[key] = value
    return x


@pytest.mark.parametrize("mode", ["eager", "lazy", "jit", "at"])
def test_assigning(mode):
    for rng, shape, key in some_cases(5):
        own, numbers = own_key(rng, key), elements(shape)
        try:
            made, _ = select(shape, key)
        except Refused:
            made = ()
        values, value_shape = some_values(rng, made)
        x, value = hg.asarray(numbers), own_value(rng, values, value_shape)
        with hg.eager(mode == "eager"):
            if mode == "jit":
                ours = result(lambda: hg.jit(lambda x, value: assigned(x * 1.0, own, value))(x, value))
            elif mode == "at":
                ours = result(lambda: x.at[own].set(value))
            else:
                ours = result(lambda: assigned(x * 1.0 if mode == "lazy" else hg.array(x), own, value))
        try:
            theirs, _ = assign(numbers.ravel().tolist(), shape, key, value_shape, values)
        except Refused:
            if known_at_the_call(own) or isinstance(ours, Exception):
                assert isinstance(ours, Exception), (shape, own, value)
            else:
                assert np.array_equal(ours, numbers), (shape, own, value)
            continue
        assert not isinstance(ours, Exception), (shape, own, value, ours)
        assert ours.shape == shape and ours.ravel().tolist() == theirs, (shape, own, value)
        assert np.asarray(x).tolist() == numbers.tolist()


def test_gradients_of_assigning():
    for rng, shape, key in some_cases(6):
        own, numbers = own_key(rng, key), elements(shape)
        try:
            made, _ = select(shape, key)
            values, value_shape = some_values(rng, made)
            theirs, stays = assign(numbers.ravel().tolist(), shape, key, value_shape, values)
        except Refused:
            continue
        weights = np.array([rng.randint(-3, 3) for _ in theirs], "f4")
        loss = lambda x, v: (hg.asarray(weights.reshape(shape)) * assigned(x * 1.0, own, v) ** 2).sum()  # noqa: B023, E731
        by_x = np.array([0.0 if p in stays else 2 * w * v for p, (w, v) in enumerate(zip(weights, theirs))])
        by_value = np.zeros(len(values))
        for p, number in stays.items():
            by_value[number] += 2 * weights[p] * theirs[p]
        x, value = hg.asarray(numbers), hg.asarray(np.array(values, "f4").reshape(value_shape))
        got = hg.grad(loss, (0, 1))(x, value)
        assert np.asarray(got[0]).ravel().tolist() == by_x.tolist(), (shape, own, value_shape)
        assert np.asarray(got[1]).ravel().tolist() == by_value.tolist(), (shape, own, value_shape)
        turned = hg.grad(lambda x: (hg.grad(loss)(x, value) * x).sum())(x)  # noqa: B023
        assert np.asarray(turned).ravel().tolist() == (2 * by_x).tolist(), (shape, own)


def test_a_part_of_a_key_that_assigns_to_the_array():
    x = hg.array(np.arange(6.0).reshape(2, 3))

    class Part:
        def __index__(self):
            x[...] = 9.0
            for _ in range(100):
                (hg.array(np.arange(3.0))[1:] * 2.0).compute()
            return 1

    assert x[Part(), 0].tolist() in (3.0, 9.0) and x.tolist() == [[9.0] * 3] * 2
    x[Part(), 0] = 3.0
    assert x.tolist() == [[9.0] * 3, [3.0, 9.0, 9.0]]


@pytest.mark.parametrize("kind", ["f32", "f64", "u8", "i16", "i64", "bool"])
def test_reversed_and_rolled_axes(kind):
    """Whole vectors are read in reverse, or from one of two arrays; those at a row's end, or between both, are not whole."""
    for shape in ((1,), (15,), (16,), (17,), (5000,), (7, 33), (3, 1000), (1000, 3), (5, 4, 64)):
        x = np.random.default_rng(1).integers(0, 2 if kind == "bool" else 100, shape)
        a = hg.array(x).astype(kind)
        for axis in range(len(shape)):
            assert np.array_equal(hg.flip(a, axis=axis).numpy(), np.flip(a.numpy(), axis))
            for by in (1, 13, 100):
                assert np.array_equal(hg.roll(a, by, axis=axis).numpy(), np.roll(a.numpy(), by, axis))
