"""Random numbers: the words of Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3; SC 2011), and
what is made of them, element by element, and as a distribution."""

import math

import mpmath
import numpy as np
import pytest

from hgops import Error, apply

pytestmark = pytest.mark.engine
f32, f64 = np.float32, np.float64
MANY, INF = 200_000, float("inf")


def philox(counter, key):
    """Four words of a counter of 128 bits and a key of 64, lowest first."""
    c = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)]
    k = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


def number(*words):
    return sum(word << 32 * i for i, word in enumerate(words))


def u64(value):
    return np.asarray(np.uint64(value))


def draw(name, shape, key=77, counter=None, **arguments):
    return apply(name, u64(key), None if counter is None else u64(counter), shape=shape, **arguments)


@pytest.mark.parametrize("counter, key, words", [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0), (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1))])
def test_published_words(counter, key, words):
    """Random123's kat_vectors, philox4x32 of 10 rounds."""
    assert tuple(philox(number(*counter), number(*key))) == words


@pytest.mark.parametrize("key", [0, 1, 0xFFFFFFFF, 0x0123456789ABCDEF, 2**64 - 1])
@pytest.mark.parametrize("counter", [0, 5, 2**32 - 2, 2**32, 2**63 + 3])
def test_words(key, counter):
    """Element i is word i mod 4 of counter + i / 4."""
    right = [word for block in range(5) for word in philox(counter + block, key)][:18]
    assert draw("random_bits", [18], key, counter).tolist() == right
    assert draw("random_bits", [3, 2, 3], key, counter).ravel().tolist() == right


def test_uniform():
    words = draw("random_bits", [1001])
    u = (words >> np.uint32(8)).astype(f32) * f32(2.0 ** -24)
    assert np.array_equal(draw("uniform", [1001]), u)
    between = draw("uniform", [1001], low=-2.0, high=6.0)
    assert np.array_equal(between, (u.astype(f64) * 8 - 2).astype(f32))
    kept = apply("dropout", np.ones(1001, f32), u64(77), None, p=0.5)
    assert np.array_equal(kept, np.where(u >= 0.5, f32(2), f32(0)))


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("low, high", [(1.0, 1.0 + 2.0 ** -22), (-1e30, 0.0), (-3.0, -3.0 + 2.0 ** -21), (0.1, 0.7), (-1e-40, 1e-40)])
def test_uniform_stays_below_high(kind, low, high):
    """Where rounding leads to high, the number is the one before it."""
    own = draw("uniform", [4001], low=low, high=high, type=kind)
    unit = draw("uniform", [4001], type=kind)
    last = np.nextafter(unit.dtype.type(high), unit.dtype.type(-INF))
    last = unit.dtype.type(high) if float(unit.dtype.type(high)) < high else last
    rounded = apply("fma", unit, np.full_like(unit, high - low), np.full_like(unit, low))
    assert (own < high).all() and (own >= unit.dtype.type(low)).all()
    assert np.array_equal(own, np.minimum(rounded, last))


def test_uniform_f64():
    """53 bits of two words, the first the higher ones; below 1."""
    words = draw("random_bits", [2002]).astype(np.uint64).reshape(-1, 2)
    u = ((words[:, 0] << np.uint64(32) | words[:, 1]) >> np.uint64(11)).astype(f64) * 2.0 ** -53
    own = draw("uniform", [1001], type="f64")
    assert np.array_equal(own, u) and own.max() < 1


def test_uniform_is_uniform():
    for kind in ("f32", "f64"):
        own = np.sort(draw("uniform", [MANY], type=kind).astype(f64))
        distance = np.abs(own - (np.arange(MANY) + 0.5) / MANY).max()
        assert distance < 1.95 / math.sqrt(MANY)  # Kolmogorov and Smirnov, 0.1%
        assert own[0] >= 0 and own[-1] < 1


def box_muller(count, kind, key=77):
    """What the row of the table says, of Philox's words, in 40 digits."""
    of_each = 2 if kind == "f64" else 1
    words = [word for block in range((count + 1) // 2 * of_each // 2 + 1) for word in philox(block, key)]
    bits = 53 if kind == "f64" else 24
    numbers = [int.from_bytes(b"".join(w.to_bytes(4, "big") for w in words[i:i + of_each]), "big") >> 32 * of_each - bits
               for i in range(0, len(words), of_each)]
    made = []
    for a, b in zip(numbers[0::2], numbers[1::2]):
        u, v = mpmath.mpf(a + 1) / 2**bits, mpmath.mpf(b) / 2**bits
        r = mpmath.sqrt(-2 * mpmath.log(u))
        made += [r * mpmath.cospi(2 * v), r * mpmath.sinpi(2 * v)]
    return made[:count]


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_normal(kind):
    """Within 3 ulp of Box and Muller's numbers: log, the square root, the sine and the product round."""
    with mpmath.workdps(40):
        right = box_muller(1002, kind)
        own = draw("normal", [1002], type=kind)
        ulp = [abs(mpmath.mpf(float(x)) - y) / mpmath.mpf(float(np.spacing(abs(own.dtype.type(y))))) for x, y in zip(own, right)]
    assert max(ulp) < 3
    assert np.array_equal(draw("normal", [1001], type=kind), own[:1001])
    assert np.array_equal(draw("normal", [7, 11], type=kind).reshape(-1), own[:77])
    for shape in ([2, 4, 8], [3, 5, 2], [1], [2], [0], [5, 0]):
        assert np.array_equal(draw("normal", shape, type=kind).reshape(-1), own[:math.prod(shape)])
    moved = draw("normal", [1001], type=kind, mean=3.0, deviation=0.5)
    assert np.array_equal(moved, own[:1001] * own.dtype.type(0.5) + own.dtype.type(3))
    if kind == "f32":
        for narrow in ("f16", "bf16"):
            rounded = draw("normal", [1001], type=narrow)
            assert np.array_equal(rounded, own[:1001].astype(rounded.dtype))


def test_normal_at_the_ends():
    """The words that give the smallest and the greatest fractions: u = 2^-24 and 1, v = 0 and the last one."""
    for counter in range(2**40, 2**40 + 50_000, 25_000):
        u = np.array(draw("random_bits", [100_000], counter=counter)[0::2] >> np.uint32(8), np.float64)
        x = draw("normal", [100_000], counter=counter).reshape(-1, 2).astype(f64)
        assert np.allclose((x ** 2).sum(1), -2 * np.log((u + 1) * 2.0 ** -24), rtol=4e-7, atol=0)
        assert np.abs(x).max() <= math.sqrt(48 * math.log(2)) * (1 + 1e-6)


def test_normal_is_normal():
    for kind in ("f32", "f64"):
        own = np.sort(draw("normal", [MANY], key=6, type=kind).astype(f64))
        below = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in own])
        assert np.abs(below - (np.arange(MANY) + 0.5) / MANY).max() < 1.95 / math.sqrt(MANY)
        assert np.isfinite(own).all()
        halves = draw("normal", [MANY], key=6, type=kind).astype(f64).reshape(-1, 2)
        assert abs(np.mean(halves[:, 0] * halves[:, 1])) < 3.3 / math.sqrt(MANY / 2)  # sine and cosine are independent
        assert abs(own.mean()) < 3.3 / math.sqrt(MANY) and abs(own.var() - 1) < 3.3 * math.sqrt(2 / MANY)
        assert abs((own ** 3).mean()) < 3.3 * math.sqrt(15 / MANY) and abs((own ** 4).mean() - 3) < 3.3 * math.sqrt(96 / MANY)
        shares = np.histogram(below, np.linspace(0, 1, 101))[0]
        assert np.sum((shares - MANY / 100) ** 2) / (MANY / 100) < 148.2  # chi squared, 99 degrees, 0.1%


def test_integers():
    words = draw("random_bits", [1001]).astype(np.uint64)
    assert np.array_equal(draw("integers", [1001], low=-3, high=10), (words * 13 >> 32).astype(np.int64) - 3)
    all_of_them = draw("integers", [1001], low=-2**31, high=2**31 - 1)
    assert np.array_equal(all_of_them, (words * (2**32 - 1) >> 32).astype(np.int64) - 2**31)
    assert draw("integers", [50], low=4, high=5).tolist() == [4] * 50
    for low, high in ((3, 3), (4, 3), (-1, 2**63 - 1)):
        with pytest.raises(Error, match="1 to 2\\^63 - 1"):
            draw("integers", [4], low=low, high=high)


def test_integers_of_many():
    words = [int(word) for word in draw("random_bits", [2002])]
    for low, high in ((0, 2**32), (-5, 2**40 + 7), (-2**62, 2**62 - 1), (0, 2**63 - 1)):
        right = [low + ((words[2 * i] << 32 | words[2 * i + 1]) * (high - low) >> 64) for i in range(1001)]
        assert draw("integers", [7, 143], low=low, high=high).reshape(-1).tolist() == right


def test_integers_are_uniform():
    counts = np.bincount(draw("integers", [MANY], low=0, high=100))
    assert len(counts) == 100 and np.sum((counts - MANY / 100) ** 2) / (MANY / 100) < 148.2  # chi squared, 99 degrees, 0.1%


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_open_uniform(kind):
    """The middles of 2^23 parts of [0, 1), or 2^52."""
    u, parts = draw("uniform", [1001], type=kind), 2.0 ** (52 if kind == "f64" else 23)
    own = draw("uniform_open", [1001], type=kind)
    assert own.dtype == u.dtype and np.array_equal(own, ((np.floor(u.astype(f64) * parts) + 0.5) / parts).astype(u.dtype))
    if kind == "f32":
        words = draw("random_bits", [1001])
        assert np.array_equal(own, ((words >> np.uint32(9)).astype(f64) + 0.5).astype(f32) * f32(2.0 ** -23))
        for narrow in ("f16", "bf16"):
            assert np.array_equal(draw("uniform_open", [1001], type=narrow), own)


def by_open_uniform(name, kind, loc=0.0, scale=1.0, **more):
    """What the table says, by the functions of the ISA on what uniform_open gives."""
    u = draw("uniform_open", [1001], type=kind, **more)
    loc, scale = u.dtype.type(loc), u.dtype.type(scale)
    if name == "exponential":
        return -apply("log", u) * scale
    if name == "gumbel":
        return loc - apply("log", -apply("log", u)) * scale
    half = apply("log", np.minimum(u, 1 - u) * 2)
    return loc + np.where(u < 0.5, half, -half) * scale


@pytest.mark.parametrize("name, more", [("exponential", {}), ("exponential", {"scale": 0.25}), ("gumbel", {}), ("laplace", {}),
                                        ("gumbel", {"loc": -3.0, "scale": 0.3}), ("laplace", {"loc": 2.0, "scale": 5.0})])
def test_other_distributions(name, more):
    for kind in ("f32", "f64"):
        right = by_open_uniform(name, kind, **more)
        assert np.array_equal(draw(name, [7, 11, 13], type=kind, **more).reshape(-1), right)
    right = by_open_uniform(name, "f32", counter=2**40, **more)
    for kind in ("f16", "bf16"):
        own = draw(name, [1001], counter=2**40, type=kind, **more)
        assert np.array_equal(own, right.astype(own.dtype))


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("name, below, mean, variance", [
    ("exponential", lambda x: 1 - np.exp(-x), 1.0, 1.0),
    ("gumbel", lambda x: np.exp(-np.exp(-x)), 0.5772156649015329, math.pi**2 / 6),
    ("laplace", lambda x: np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2), 0.0, 2.0)])
def test_distribution_functions(name, below, mean, variance, kind):
    own = np.sort(draw(name, [MANY], key=11, type=kind).astype(f64))
    assert np.abs(below(own) - (np.arange(MANY) + 0.5) / MANY).max() < 1.95 / math.sqrt(MANY)  # Kolmogorov and Smirnov, 0.1%
    assert abs(own.mean() - mean) < 3.3 * math.sqrt(variance / MANY) and abs(own.var() / variance - 1) < 0.02
    assert np.isfinite(own).all() and (name != "exponential" or own[0] > 0)


def test_bad_distributions():
    for name, wrong, said in (("exponential", {"scale": -1.0}, "scale is -1; it has to lie from 0"), ("gumbel", {"loc": INF}, "loc is inf"),
                              ("laplace", {"type": "i32"}, "numbers are floats, not i32"), ("gumbel", {"type": "u8"}, "floats, not u8")):
        with pytest.raises(Error, match=said):
            draw(name, [4], **wrong)


def share_below(x):
    """Of normal numbers, by the erfc of C's library, from the lower tail."""
    return np.array([0.5 * math.erfc(-v / math.sqrt(2)) for v in np.ravel(x)])


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("low, high, mean, deviation", [
    (-2.0, 2.0, 0.0, 1.0), (1.0, 3.0, 0.0, 1.0), (5.0, 6.0, 0.0, 1.0), (0.0, INF, 0.0, 1.0), (-INF, INF, 3.0, 2.0), (-1.0, 10.0, 2.0, 3.0),
    (30.0, 30.25, 0.0, 1.0)])
def test_truncated_normal(kind, low, high, mean, deviation):
    own = draw("truncated_normal", [7, 2000], key=3, type=kind, low=low, high=high, mean=mean, deviation=deviation).astype(f64).ravel()
    assert low <= own.min() and own.max() <= high
    side = -1 if low + high > 2 * mean else 1  # from the tail that the interval lies in
    a, b = sorted((side * (low - mean) / deviation, side * (high - mean) / deviation))
    from_below, upto, x = share_below(a), share_below(b), share_below(side * (own - mean) / deviation)
    u = (x - from_below) / (upto - from_below)
    right = draw("uniform_open", [14000], key=3, type=kind).astype(f64)
    assert np.abs(u - right).max() < (1e-9 if kind == "f64" else 3e-5)
    assert np.abs(np.sort(u) - (np.arange(14000) + 0.5) / 14000).max() < 1.95 / math.sqrt(14000)


def test_truncated_normal_is_symmetric_and_rounded_once():
    up = draw("truncated_normal", [1001], low=1.0, high=3.0, type="f64")
    assert np.array_equal(up, -draw("truncated_normal", [1001], low=-3.0, high=-1.0, type="f64"))
    x = draw("truncated_normal", [1001])
    for kind in ("f16", "bf16"):
        own = draw("truncated_normal", [1001], type=kind)
        assert np.abs(own.astype(f32) - x).max() <= (2.0 ** -11 if kind == "f16" else 2.0 ** -8)
    for wrong, said in (({"low": 2.0, "high": 1.0}, "high is 1; it has to be above 2"),
                        ({"deviation": 0.0}, "deviation is 0; it has to be above 0"),
                        ({"low": 39.0, "high": 40.0}, "nearer is -39; it has to be above -37"), ({"type": "i32"}, "floats, not i32")):
        with pytest.raises(Error, match=said):
            draw("truncated_normal", [4], **wrong)
