"""Operations of any number of tensors: bit for bit beside NumPy, each element moved a few times at most, however many there are."""

import json

import numpy as np
import pytest

from hgops import ALL, NO_FUSION, Computation, apply

pytestmark = pytest.mark.engine
MANY = 1000
SMALL, RUN = 4096, 8  # neighbours that have so many elements together are joined by so many at a time, each time by one launch


def pieces(rng, count, shape, axis):
    """Of one shape, but for the axis."""
    sizes = rng.integers(0, 2 * shape[axis] + 1, count)
    return [rng.standard_normal((*shape[:axis], size, *shape[axis + 1:])).astype(np.float32) for size in sizes]


def joined(name, arrays, axis, flags=0):
    computation = Computation()
    values = [computation.input(x) for x in arrays]
    computation.output(computation.op(name, *values, axis=axis))
    answer = computation.run(flags)[0]
    return answer, json.loads(computation.run_on(ALL[0], flags, report="json")[1])


@pytest.mark.parametrize("shape, axis", [((3,), 0), ((2, 3), 0), ((2, 3), 1), ((5, 40, 2), 1), ((1,), 0)])
@pytest.mark.parametrize("count", [2, 3, 8, 9, 24, 25, 65, MANY])
def test_concatenate(count, shape, axis):
    arrays = pieces(np.random.default_rng(count), count, shape, axis)
    answer, report = joined("concatenate", arrays, axis)
    right = np.concatenate(arrays, axis)
    assert answer.shape == right.shape and answer.tobytes() == right.tobytes()
    levels = 1 + np.ceil(np.log(SMALL) / np.log(RUN))
    assert report["bytes_written"] <= levels * right.nbytes
    assert len(report["launches"]) <= max(1, len(arrays) / 2 + 2)


@pytest.mark.parametrize("count", [2, 3, 9, 255, MANY])
def test_stack(count):
    rng = np.random.default_rng(count)
    arrays = [rng.integers(0, 1 << 40, (3, 2)) for _ in range(count)]
    for axis in (0, 1, -1):
        answer, _ = joined("stack", arrays, axis)
        right = np.stack(arrays, axis)
        assert answer.shape == right.shape and answer.tobytes() == right.tobytes()


@pytest.mark.parametrize("flags", [0, NO_FUSION])
def test_large_tensors_are_written_once(flags):
    arrays = list(np.random.default_rng(1).standard_normal((30, 9000)).astype(np.float32))
    answer, report = joined("concatenate", arrays, 0, flags)
    assert answer.tobytes() == np.concatenate(arrays).tobytes()
    assert report["bytes_written"] == answer.nbytes and report["temporary_bytes"] == 0


def test_one_piece_is_most_of_it():
    arrays = [np.arange(size, dtype=np.int32) for size in (5, 50000, 7, 1)]
    answer, report = joined("concatenate", arrays, 0)
    assert answer.tobytes() == np.concatenate(arrays).tobytes() and report["bytes_written"] == answer.nbytes


def test_one_tensor_again_and_again():
    x = np.arange(7, dtype=np.float64)
    computation = Computation()
    value = computation.input(x)
    computation.output(computation.op("concatenate", *[value] * MANY))
    assert computation.run()[0].tobytes() == np.tile(x, MANY).tobytes()


def test_joins_of_one_shape_beside_each_other():
    """They share nothing: each has memory of its own, although what they begin with is one value."""
    rng = np.random.default_rng(2)
    computation, right = Computation(), []
    first = rng.standard_normal((3, 2000)).astype(np.float32)
    for _ in range(3):
        others = rng.standard_normal((2, 3, 2000)).astype(np.float32)
        parts = [first, *others]
        value = computation.op("concatenate", *[computation.input(x) for x in parts], axis=1)
        computation.output(value)
        computation.output(computation.op("exp", computation.op("neg", value)))
        right.append(np.concatenate(parts, 1))
    answers = computation.run()
    assert all(mine.tobytes() == its.tobytes() for mine, its in zip(answers[::2], right))


def test_made_of_what_is_computed_and_fused_or_not():
    rng = np.random.default_rng(3)
    arrays = pieces(rng, 40, (300,), 0)
    computation = Computation()
    values = [computation.op("mul", v, v) for v in map(computation.input, arrays)]
    whole = computation.op("concatenate", *values)
    computation.output(computation.op("add", whole, whole))
    right = np.concatenate([x * x for x in arrays])
    for flags in (0, NO_FUSION):
        assert computation.run(flags)[0].tobytes() == (right + right).tobytes()


@pytest.mark.parametrize("count, size", [(3, 5), (3, 4000), (20, 3), (100, 300), (MANY, 2)])
def test_gradients(count, size):
    rng = np.random.default_rng(count)
    arrays = pieces(rng, count, (2, size), 1)
    weights = rng.standard_normal((2, sum(x.shape[1] for x in arrays))).astype(np.float32)
    computation = Computation()
    values = [computation.input(x) for x in arrays]
    whole = computation.op("concatenate", *values, axis=1)
    product = computation.op("mul", computation.op("mul", whole, whole), computation.input(weights))
    value = computation.op("sum", product)
    for gradient in computation.gradient(value, values):
        computation.output(gradient)
    at = 0
    for x, gradient in zip(arrays, computation.run()):
        own = weights[:, at:at + x.shape[1]]
        assert np.array_equal(gradient, own * x + own * x)
        at += x.shape[1]


def test_norm():
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal((3, 5)).astype(np.float32) for _ in range(MANY)]
    exact = np.sqrt(sum(float(np.sum(np.square(x, dtype=np.float64))) for x in arrays))
    norm = apply("global_norm", *arrays)
    assert abs(norm - exact) <= 4 * np.spacing(np.float32(exact))
    halved = apply("clip_norm", arrays[0], norm, max_norm=float(norm) / 2)
    assert np.allclose(halved, arrays[0] / 2, rtol=1e-5, atol=0)


def test_refusals():
    arrays = [np.zeros((2, 3), np.float32)] * 300 + [np.zeros((3, 3), np.float32)]
    for name, message in (("concatenate", "they need as many axes, of equal sizes but for axis 1"), ("stack", "they need one shape")):
        with pytest.raises(Exception, match=message):
            apply(name, *arrays, axis=1)
