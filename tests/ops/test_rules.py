"""What nobody should have to guess: rules of the table that are no formula's matter."""

import numpy as np
import pytest

from hgops import Computation, Error, apply

pytestmark = pytest.mark.engine
f32 = np.float32
INF, NAN = np.inf, np.nan


def array(*numbers, kind=f32):
    return np.array(numbers, kind)


def test_integers_and_floats_name_the_cast():
    with pytest.raises(Error, match="cast"):
        apply("add", array(1), array(1, kind=np.int32))


@pytest.mark.parametrize("name, right", [("sum", 0.0), ("prod", 1.0), ("any", False), ("all", True), ("mean", NAN), ("var", NAN)])
def test_of_nothing(name, right):
    own = apply(name, np.zeros((0,), f32))
    assert np.array_equal(own, right, equal_nan=True) and not np.signbit(own if name == "sum" else 1.0)


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax"])
def test_nothing_to_choose_from(name):
    with pytest.raises(Error):
        apply(name, np.zeros((0,), f32))


def test_integers_add_up_in_64_bits():
    assert apply("sum", np.full(300, 200, np.uint8)).dtype == np.uint64
    assert apply("sum", np.full(300, 100, np.int8)) == 30000
    assert apply("sum", np.ones(5, bool)).dtype == np.int64
    mean = apply("mean", array(1, 2, 2, kind=np.int32))
    assert mean.dtype == f32 and mean == f32(5 / 3)


@pytest.mark.parametrize("ddof", [3.0, 4.0])
def test_var_without_degrees_of_freedom(ddof):
    assert np.isnan(apply("var", array(1, 2, 3), ddof=ddof))


def test_places_of_extremes():
    assert apply("argmax", array(1, NAN, 9, NAN)) == 1 and apply("argmin", array(1, NAN, -9, NAN)) == 1
    assert apply("argmax", array(-0.0, 0.0)) == 0 and apply("argmin", array(0.0, -0.0)) == 0
    assert apply("argmax", array(3, 7, 7)) == 1


def test_infinities_in_rows():
    assert apply("logsumexp", array(INF, 1)) == INF and apply("logsumexp", array(-INF, -INF)) == -INF
    assert np.isnan(apply("softmax", array(-INF, -INF))).all()
    assert apply("softmax", array(-INF, 0)).tolist() == [0, 1]


@pytest.mark.parametrize("key, counter, words", [
    (0, 0, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])])
def test_philox_has_the_published_words(key, counter, words):
    """Random123's kat_vectors, philox4x32 of 10 rounds."""
    own = apply("random_bits", np.asarray(np.uint64(key)), np.asarray(np.uint64(counter)), shape=[4])
    assert own.tolist() == words


def test_uniform_integers_and_dropout_of_words():
    key = np.asarray(np.uint64(77))
    words = apply("random_bits", key, None, shape=[1001])
    u = (words >> np.uint32(8)).astype(f32) * f32(2.0 ** -24)
    assert np.array_equal(apply("uniform", key, None, shape=[1001]), u)
    chosen = apply("integers", key, None, shape=[1001], low=-3, high=10)
    assert np.array_equal(chosen, (words.astype(np.uint64) * 13 >> 32).astype(np.int64) - 3)
    kept = apply("dropout", np.ones(1001, f32), key, None, p=0.5)
    assert np.array_equal(kept, np.where(u >= 0.5, f32(2), f32(0)))
    later = apply("random_bits", key, np.asarray(np.uint64(5)), shape=[8])
    assert np.array_equal(later, words[20:28])


def test_bounds():
    x = array(10, 20, 30)
    assert apply("take", x, array(-1, 0, kind=np.int32), bounds="wrap").tolist() == [30, 10]
    assert apply("take", x, array(-9, 9, kind=np.int32), bounds="clamp").tolist() == [10, 30]
    for bounds, bad in (("fault", 3), ("fault", -1), ("wrap", 3), ("wrap", -4)):
        with pytest.raises(Error) as error:
            apply("take", x, array(bad, kind=np.int32), bounds=bounds)
        assert error.value.status == "FAULT"


def test_formulas_of_16_bits_round_once():
    x = np.random.default_rng(1).standard_normal(64).astype(np.float16)
    assert np.array_equal(apply("softmax", x), apply("softmax", x.astype(f32)).astype(np.float16))
    assert apply("mean", x) == apply("mean", x.astype(f32)).astype(np.float16)


def test_losses_at_the_extremes():
    x = array(1e4, -1e4)
    assert apply("softplus", x).tolist() == [1e4, 0]
    assert apply("bce_with_logits", x, array(1, 0)) == 0 and apply("bce_with_logits", x, array(0, 1)) == 1e4
    assert apply("kl_div", array(-1, -1), array(0, 0), reduction="sum") == 0
    assert apply("huber", array(1e30), array(0)) == f32(1e30)


def test_ignored_targets():
    x, t = np.zeros((3, 4), f32), np.array([1, -100, 2])
    own = apply("cross_entropy", x, t, reduction="none")
    assert own[1] == 0 and own[0] == own[2] == apply("cross_entropy", x, t)
    assert np.isclose(apply("cross_entropy", x, t, smoothing=0.3), np.log(4))


def test_values_that_are_read_twice_again_and_again():
    """2^1000 ways lead from the result to the input: each value is gone through once at each index."""
    x = np.arange(24, dtype=f32).reshape(4, 6)
    c = Computation()
    y, half = c.input(x), c.number("f32", 0.5)
    for _ in range(500):
        y = c.op("mul", c.op("add", y, y), half)
        y = c.op("mul", c.op("add", y, y), half)
        y = c.op("swap", y)
    c.output(y)
    assert np.array_equal(c.run()[0], x)
