"""Arrays of 2^31 + 1 and of 2^32 + 7 elements: bytes, and views that repeat a few. One operation of each kind of node of a computation,
and of each way to write it as a program; looked at in places, or as one number."""

import numpy as np
import pytest

import hologram as hg
from hologram import _core
from laid import PERIOD, at, fold, host, numbers, places, same

pytestmark = pytest.mark.whole
SIZES = [pytest.param((1 << 31) + 1, id="2^31 + 1"), pytest.param((1 << 32) + 7, id="2^32 + 7")]


@pytest.fixture(scope="module", params=SIZES)
def size(request):
    return request.param


@pytest.fixture(scope="module")
def given(size):
    return numbers(size, "u1")


@pytest.fixture(scope="module")
def x(given):
    from conftest import DEVICE
    return hg.asarray(given) if DEVICE == "cpu" else hg.asarray(given).to_device(hg.Executor(backend=DEVICE))


def sums(given, columns):
    """Of rows of so many bytes, a part at a time: NumPy would widen all of them."""
    wide = given[: given.size // columns * columns].reshape(-1, columns)
    step = max(1, (1 << 26) // columns)
    return np.concatenate([wide[i : i + step].sum(axis=1, dtype="u8") for i in range(0, len(wide), step)])


# ---- maps ----------------------------------------------------------------------------------------------------------------------------

def test_map(size, given, x):
    where = places(size)
    same(at(x + 1, where), given[where] + np.uint8(1))


def test_map_of_a_matrix(size, given, x):
    """By blocks of a row: what is the same along a row is computed once."""
    rows, where = size // 65536, places(size // 65536 * 65536)
    column = np.arange(rows, dtype="u1").reshape(-1, 1)
    right = given[where] + column[where // 65536, 0]
    same(at(x[: rows * 65536].reshape((rows, 65536)) + hg.asarray(column).to_device(x.device), where), right)


def test_coordinate(size, x):
    where = places(size)
    same(at((hg.arange(size).to_device(x.device) % 251).astype("uint8"), where), (where % 251).astype("u1"))


def test_views(size, given, x):
    where, third = places(size), places(-(-size // 3))
    same(at(x[::-1] + 1, where), given[::-1][where] + np.uint8(1))
    same(at(x[::3] + 1, third), given[::3][third] + np.uint8(1))
    rows = size // 65536
    turned = places(rows * 65536)
    same(at(hg.array(x[: rows * 65536].reshape((rows, 65536)).T), turned), given[turned % rows * 65536 + turned // rows])


def test_joins(size, given, x):
    where, half = places(size), size // 2
    same(at(hg.concatenate([x[half:], x[:half]]), where), given[(where + half) % size])
    same(at(hg.pad(x[:1000], (size - 1500, 500), constant_values=7), places(size)),
         np.where((where >= size - 1500) & (where < size - 500), given[(where - size + 1500).clip(0, 999)], np.uint8(7)))


def test_update(size, given, x):
    y = x + 0
    y[size - 9 :: 4] = 3
    right = given[-12:].copy()
    right[3::4] = 3
    same(y[-12:], right)


# ---- reductions ----------------------------------------------------------------------------------------------------------------------

def test_of_all(size, given, x):
    same(x.sum(), np.uint64(sums(given, 1 << 20).sum() + given[size >> 20 << 20 :].sum(dtype="u8")))
    same(x.max(), given.max())
    last = hg.minimum(x, 254)  # one element alone is the largest
    last[size - 2] = 255
    same(last.argmax(), np.int64(size - 2))
    same((255 - last).argmin(), np.int64(size - 2))


def test_of_one_number(size, x):
    """A view that repeats one element has no memory of its own."""
    one = hg.asarray(np.ones(1, "f4")).to_device(x.device)
    same(hg.broadcast(one.astype("uint8"), (size,)).sum(), np.uint64(size))
    same(hg.broadcast(one, (size,)).mean(), np.float32(1))
    same(hg.logsumexp(hg.broadcast(one * 0, (size,))), host(hg.log(hg.asarray(np.float32(size)))))


def test_of_a_view_of_many():
    """2^33 elements along one axis: numbers of elements need more than 32 bits, and so do those of chunks of 4096, in bytes."""
    from conftest import DEVICE
    one = hg.asarray(np.array([3], "u1"))
    one = one if DEVICE == "cpu" else one.to_device(hg.Executor(backend=DEVICE))
    x = hg.broadcast(one, (1 << 33,))
    same(x.sum(), np.uint64(3 << 33))
    same(x.max(), np.uint8(3))
    same(x.argmax(), np.int64(0))
    last = hg.arange(1 << 33).to_device(one.device) == (1 << 33) - 2
    same(last.astype("uint8").argmax(), np.int64((1 << 33) - 2))
    same((x == 3).all(), np.bool_(True))


def test_of_few_long_rows(size, given, x):
    third = size // 3
    y = x[: 3 * third].reshape((3, third))
    same(y.sum(axis=1), np.array([sums(given[i * third : (i + 1) * third], 1 << 20).sum() +
                                  given[i * third + (third >> 20 << 20) : (i + 1) * third].sum(dtype="u8") for i in range(3)]))
    same(y.max(axis=0)[-5:], given[: 3 * third].reshape(3, third)[:, -5:].max(axis=0))


def test_of_many_short_rows(size, given, x):
    """Rows of 3 are held by a lane each."""
    third = size // 3
    y, where = x[: 3 * third].reshape((third, 3)), places(third)
    same(at(y.max(axis=1), where), given[: 3 * third].reshape(third, 3)[where].max(axis=1))
    same(y.argmax(axis=0).max() < third, np.True_)
    totals = np.array([given[i : 3 * third : 3].sum(dtype="u8") for i in range(3)])
    same(y.sum(axis=0), totals)


def test_of_a_matrix(size, given, x):
    """Rows of 65536, columns of 32768 and more."""
    rows = size // 65536
    y = x[: rows * 65536].reshape((rows, 65536))
    same(y.sum(axis=1), sums(given, 65536))
    few = given[: rows * 65536].reshape(rows, 65536)
    same(y.sum(axis=0)[::997], few[:, ::997].sum(axis=0, dtype="u8"))
    same(y.argmax(axis=0)[::997], few[:, ::997].argmax(axis=0))


def test_softmax(size, x):
    """Rows of 65536 repeated: each of them is the first one."""
    row = numbers(65536, "f4").reshape(1, -1)
    wide = hg.broadcast(hg.asarray(row).to_device(x.device), (size // 65536, 65536))
    right = host(hg.softmax(hg.asarray(row))).max(axis=1)
    made = host(hg.softmax(wide).max(axis=1))
    same(made, np.repeat(right, size // 65536))


# ---- products ------------------------------------------------------------------------------------------------------------------------

def test_products(size, given, x):
    rows = size // 1024
    weights = (np.arange(2048) % 5).astype("i1").reshape(1024, 2)
    y, where = hg.bitcast(x[: rows * 1024], "int8").reshape((rows, 1024)), places(2 * rows)
    right = given[: rows * 1024].view("i1").reshape(rows, 1024)[where // 2].astype("i4") @ weights.astype("i4")
    made = hg.matmul(y, hg.asarray(weights).to_device(x.device))
    same(at(made, where), right[np.arange(len(where)), where % 2].astype(host(made[:1, :1]).dtype))


def test_long_products(size, given, x):
    """What products are summed over is longer than tiles count to, and is cut."""
    if size > 1 << 32:
        pytest.skip("takes minutes, and is cut in the same way")
    weights = hg.broadcast(hg.asarray(np.full((1, 1), 3, "i1")).to_device(x.device), (size, 1))
    right = 3 * sum(int(given[i : i + (1 << 26)].view("i1").sum(dtype="i8")) for i in range(0, size, 1 << 26))
    same(hg.matmul(hg.bitcast(x, "int8").reshape((1, size)), weights), np.array([[right & 0xFFFFFFFF]], "u4").view("i4"))


def test_products_of_many_rows(size, given, x):
    where, three = places(size), hg.asarray(np.full((1, 1), 3, "u1")).to_device(x.device)
    same(at(hg.matmul(x.reshape((size, 1)), three), where), given[where] * np.uint8(3))
    same(at(hg.matmul(three, x.reshape((1, size))), where), given[where] * np.uint8(3))


# ---- by number -----------------------------------------------------------------------------------------------------------------------

def test_take(size, given, x):
    where = places(size)
    same(at(x, where), given[where])
    table = np.arange(256, dtype="u1")[::-1].copy()
    same(at(hg.take(hg.asarray(table).to_device(x.device), x), where), table[given[where]])


def test_scatter(size, given, x):
    """Four bytes for each place besides."""
    if size > 1 << 32:
        pytest.skip("needs 26 GiB: four bytes more for each place, which tell the last source")
    where = places(size)
    new = np.arange(len(where)).astype("u1")
    made = hg.scatter(x, hg.asarray(where).to_device(x.device), hg.asarray(new).to_device(x.device))
    same(at(made, where), new)
    same(made[1000:1010], np.where(np.isin(np.arange(1000, 1010), where), host(made[1000:1010]), given[1000:1010]))


def test_scatter_add(size, given, x):
    """Ten bytes for each place besides: of few of them, from the end of a long index."""
    few = 1 << 28
    where = places(few)
    base = x[size - few :]
    made = hg.scatter_add(base, hg.asarray(where).to_device(x.device), hg.asarray(np.ones(len(where), "u1")).to_device(x.device))
    same(at(made, where), given[size - few :][where] + np.uint8(1))


def test_scatter_of_many(size, given, x):
    """Of five places each keeps its last source."""
    made = hg.scatter(hg.asarray(np.zeros(5, "u1")).to_device(x.device), x % 5, x)
    last = given[-1000:]
    same(made, np.array([last[last % 5 == place][-1] for place in range(5)]))


def test_scatter_add_of_many(size, given, x):
    """Five bytes for each source besides, twice that beyond 2^32."""
    if size > 1 << 32:
        pytest.skip("needs 45 GiB: nine bytes more for each source")
    made = hg.scatter_add(hg.asarray(np.zeros(256, "u1")).to_device(x.device), x, hg.broadcast(x[-1:], (size,)))
    counts = sum(np.bincount(given[i : i + (1 << 26)], minlength=256) for i in range(0, size, 1 << 26))
    same(made, (counts * given[-1]).astype("u1"))


# ---- numbers from nothing ------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("back", [1, 6])
def test_random(size, back):
    """Element i is word i mod 4 of counter i // 4, beyond 2^32 too: one element among all, the rest is 0."""
    key, number = hg.random.key(3), size - back
    chosen = hg.where(hg.arange(size) == number, hg.random.uniform(key, (size,)), 0.0).max()
    counter = hg.asarray(np.uint64(number // 4))
    same(chosen, host(_core.uniform(key, counter, shape=(4,)))[number % 4])


def test_sum_of_a_fold(size):
    """Order F of a view that repeats a period: chunks of chunks of chunks."""
    period = numbers(PERIOD, "f4", 9)
    count = size // PERIOD
    long = hg.broadcast(hg.asarray(period), (count, PERIOD))
    level = fold(period.reshape(-1, 4096))
    same(long.sum(), fold(np.tile(level, count)))
