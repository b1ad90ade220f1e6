"""Every operation of the table with 2^24 - 1, 2^24 and 2^24 + 1 elements along rows, along columns and along both: in f32 all
integers up to 2^24 are exact, in launches a block has 4096 of 4096 chunks."""

import numpy as np
import pytest

import hologram as hg
from hologram import _core, array_api as xp
from laid import at, fold, host, numbers, places, same

MANY = 1 << 24
whole = pytest.mark.whole
SIZES = [pytest.param(MANY - 1, marks=whole), pytest.param(MANY, marks=whole), MANY + 1]

# ---- element by element: what single elements give is tested elsewhere; here that each is where it belongs ---------------------------

FLOATS = """abs neg sign reciprocal sqrt rsqrt cbrt floor ceil trunc round exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos
atan sinh cosh tanh sigmoid erf erfc relu gelu gelu_tanh square clip leaky_relu elu silu softplus hardswish mish isnan
isinf isfinite""".split()
PAIRS = """add sub mul div fmod minimum maximum copysign pow atan2 equal not_equal less less_equal greater greater_equal floor_divide
remainder logaddexp""".split()
INTEGERS = "bitwise_not popcount leading_zeros trailing_zeros reverse_bits".split()
INTEGER_PAIRS = "rem mulhi bitwise_and bitwise_or bitwise_xor shift_left shift_right".split()
BOOLS = "logical_and logical_or logical_xor".split()
FEW = ("add", "exp", "bitwise_xor", "logical_not", "where")  # without ./dev test-large

CASES = {name: ["f4"] for name in FLOATS}
CASES |= {name: ["f4"] * 2 for name in PAIRS}
CASES |= {name: ["i4"] for name in INTEGERS}
CASES |= {name: ["i4"] * 2 for name in INTEGER_PAIRS}
CASES |= {name: ["?"] * 2 for name in BOOLS}
CASES |= {"logical_not": ["?"], "fma": ["f4"] * 3, "mad": ["i4"] * 3, "lerp": ["f4"] * 3, "where": ["?", "f4", "f4"]}
CASES |= {"dot4_ss": ["i4"] * 3, "dot4_uu": ["u4"] * 3, "dot4_us": ["i4"] * 3}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [name if name in FEW else pytest.param(name, marks=whole) for name in CASES])
def test_by_element(name, size, put):
    arrays = [numbers(size, kind, seed) for seed, kind in enumerate(CASES[name])]
    where = places(size)
    operation = getattr(_core, name)
    same(at(operation(*map(put, arrays)), where), host(operation(*[put(array[where]) for array in arrays])))


# ---- reductions ----------------------------------------------------------------------------------------------------------------------

def rows(size):
    """Shapes and axes of so many elements, or a few more, that become one result or few: a row, columns, both."""
    return [((1, size), 1), ((size, 2), 0), ((4097, -(-size // 4097)), (0, 1))]


def in_order(x, axis):
    """The reduced elements of x along its last axis, in C order."""
    if axis == 0:
        return np.ascontiguousarray(x.T)
    return x.reshape(1, -1) if axis == (0, 1) else x


def by_numpy(function):
    return lambda x: function(x, axis=-1)


def computed(function, array):
    """By the library, element by element: of what is tested above."""
    return host(function(hg.asarray(array)))


REDUCTIONS = {
    "sum": ("f4", fold), "prod": ("i4", lambda x: np.multiply.reduce(x.astype("i8"), axis=-1)),
    "min": ("f4", by_numpy(np.min)), "max": ("u1", by_numpy(np.max)), "any": ("?", by_numpy(np.any)), "all": ("?", by_numpy(np.all)),
    "argmin": ("f4", by_numpy(np.argmin)), "argmax": ("u1", by_numpy(np.argmax)),
    "count_nonzero": ("i4", by_numpy(np.count_nonzero)),
    "mean": ("f4", lambda x: fold(x) / np.float32(x.shape[-1])),
}


@pytest.mark.parametrize("way", range(3), ids=["row", "columns", "both"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, size, way, put):
    kind, right = REDUCTIONS[name]
    shape, axis = rows(size)[way]
    x = numbers(shape[0] * shape[1], kind, 3).reshape(shape)
    x[-1, -1] = 0 if name in ("argmin", "min", "all") else 211 if kind == "u1" else x[-1, -1]  # the last one decides
    same(host(getattr(_core, name)(put(x), axis=axis)).reshape(-1), right(in_order(x, axis)).reshape(-1))


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("fill", [0.0, np.inf, -np.inf, np.nan])
def test_the_first_of_equal_ones(name, fill, put):
    """What is looked for may be what a fold begins with, and a NaN wins wherever it stands."""
    x = np.full((1, MANY + 4097), fill, np.float32)
    same(getattr(_core, name)(put(x), axis=1), np.array([0]))
    if fill == 0:
        x[0, MANY + 77] = np.nan
        same(getattr(_core, name)(put(x), axis=1), np.array([MANY + 77]))


def moments(x, size):
    mean = fold(x)[..., None] / size
    return fold((x - mean) * (x - mean)) / size


ROWS = {
    "var": moments,
    "std": lambda x, size: np.sqrt(moments(x, size)),
    "norm": lambda x, size: np.sqrt(fold(x * x)),
    "logsumexp": lambda x, size: (lambda m: m[..., 0] + computed(hg.log, fold(computed(hg.exp, x - m))))(x.max(axis=-1, keepdims=True)),
}


@pytest.mark.parametrize("way", range(3), ids=["row", "columns", "both"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [pytest.param(name, marks=whole) for name in ROWS])
def test_formulas_that_reduce(name, size, way, put):
    shape, axis = rows(size)[way]
    x = numbers(shape[0] * shape[1], "f4", 4).reshape(shape)
    lines = in_order(x, axis)
    same(host(getattr(_core, name)(put(x), axis=axis)).reshape(-1), ROWS[name](lines, np.float32(lines.shape[-1])).reshape(-1))


def softmax(x):
    e = computed(hg.exp, x - x.max(axis=-1, keepdims=True))
    return e / fold(e)[..., None]


def log_softmax(x):
    d = x - x.max(axis=-1, keepdims=True)
    return d - computed(hg.log, fold(computed(hg.exp, d)))[..., None]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", [pytest.param("softmax", marks=whole), "log_softmax"])
@pytest.mark.parametrize("axis", [1, pytest.param(0, marks=whole)])
def test_rows_that_stay(name, axis, size, put):
    x = numbers(2 * size, "f4", 5).reshape((2, size) if axis else (size, 2))
    lines = {"softmax": softmax, "log_softmax": log_softmax}[name](x if axis else np.ascontiguousarray(x.T))
    where = places(2 * size)
    same(at(getattr(_core, name)(put(x), axis=axis), where), (lines if axis else lines.T).reshape(-1)[where])


@whole
@pytest.mark.parametrize("size", SIZES)
def test_norms_of_rows(size, put):
    x, where = numbers(size, "f4", 6).reshape(1, size), places(size)
    count, eps = np.float32(size), np.float32(1e-5)
    mean = fold(x)[..., None] / count
    d = x - mean
    same(at(_core.layer_norm(put(x)), where), (d / np.sqrt(fold(d * d)[..., None] / count + eps)).reshape(-1)[where])
    same(at(_core.rms_norm(put(x)), where), (x / np.sqrt(fold(x * x)[..., None] / count + eps)).reshape(-1)[where])


@whole
@pytest.mark.parametrize("name", ["mse", "l1", "huber", "kl_div"])
def test_losses(name, put):
    x, t = numbers(MANY + 1, "f4", 7), numbers(MANY + 1, "f4", 8)
    each = host(getattr(_core, name)(put(x), put(t), reduction="none"))
    where = places(MANY + 1)
    same(each[where], host(getattr(_core, name)(put(x[where]), put(t[where]), reduction="none")))
    same(getattr(_core, name)(put(x), put(t), reduction="sum"), fold(each))
    same(getattr(_core, name)(put(x), put(t), reduction="mean"), fold(each) / np.float32(MANY + 1))


# ---- products ------------------------------------------------------------------------------------------------------------------------

def chain(a, b):
    """Order C over the last axis of whole numbers, whose sums f32 holds exactly: any order gives the same."""
    return (a.astype("i8") * b.astype("i8")).sum(axis=-1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["i8", pytest.param("f4", marks=whole)])
def test_products(kind, size, put):
    a, b = (numbers(2 * size, "u1", seed).reshape(2, size) % 3 == 0 for seed in (1, 2))
    right = np.stack([chain(a[i], b) for i in range(2)])
    same(_core.matmul(put(a.astype(kind)), put(np.ascontiguousarray(b.T.astype(kind)))), right.astype(kind))
    same(_core.dot(put(a[0].astype(kind)), put(b[0].astype(kind))), right[0, 0].astype(kind))
    same(_core.matvec(put(a.astype(kind)), put(b[1].astype(kind))), right[:, 1].astype(kind))


@pytest.mark.parametrize("size", SIZES)
def test_products_of_many_rows(size, put):
    a, b = numbers(size, "f4", 1).reshape(size, 1), numbers(2, "f4", 2).reshape(1, 2)
    where = places(2 * size)
    same(at(_core.matmul(put(a), put(b)), where), (a * b + np.float32(0)).reshape(-1)[where])
    same(at(_core.matmul(put(b.T.copy()), put(a.T.copy())), where), (b.T * a.T + np.float32(0)).reshape(-1)[where])


# ---- moves ---------------------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", SIZES)
def test_views(size, put):
    n = numbers(2 * size, "u1").reshape(size, 2)
    x, where = put(n), places(2 * size)
    same(at(hg.array(x.T), where), n.T.reshape(-1)[where])
    same(at(hg.flip(x, (0, 1)) + 1, where), n[::-1, ::-1].reshape(-1)[where] + np.uint8(1))
    same(at(x[1:-1:3] + 1, places(2 * len(n[1:-1:3]))), n[1:-1:3].reshape(-1)[places(2 * len(n[1:-1:3]))] + np.uint8(1))
    same(at(hg.broadcast(put(n[:1]), (size, 2)) + x, where), (n[:1] + n).reshape(-1)[where])


@pytest.mark.parametrize("size", SIZES)
def test_joins(size, put):
    n = numbers(size, "i2")
    x, where = put(n), places(2 * size)
    same(at(hg.concatenate([x, x[::-1]]), where), np.concatenate([n, n[::-1]])[where])
    same(at(hg.stack([x, x + 1], axis=-1), where), np.stack([n, n + np.int16(1)], axis=-1).reshape(-1)[where])
    same(at(hg.pad(x, (3, size - 3), constant_values=7), where), np.pad(n, (3, size - 3), constant_values=7)[where])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["i4", pytest.param("i8", marks=whole)])
def test_by_number(kind, size, put):
    n = numbers(size, "u1")
    order = np.random.default_rng(1).permutation(size).astype(kind)
    where = places(size)
    x, index = put(n), put(order)
    same(at(hg.take(x, index), where), n[order][where])
    same(at(hg.take_along(x.reshape((1, -1)), index.reshape((1, -1)), 1), where), n[order][where])
    right = np.zeros_like(n)
    right[order] = n
    same(at(hg.scatter(put(np.zeros_like(n)), index, x), where), right[where])


@pytest.mark.parametrize("size", SIZES)
def test_added_by_number(size, put):
    n, place = numbers(size, "i4"), np.resize(np.array([0, 2, 4, 1, 3], "i4"), size)
    same(hg.scatter_add(put(np.zeros(5, "i4")), put(place), put(n)), np.bincount(place, n, 5).astype("i4"))


@pytest.mark.parametrize("size", [*(pytest.param(MANY + k, marks=whole) for k in (-1, 0, 1)), MANY + 12293,
                                  pytest.param(3 * MANY + 4095, marks=whole)])
def test_added_at_one_place(size, put):
    """In order F beyond chunks of chunks, of which the last may be short."""
    n = numbers(size, "f4")
    same(hg.scatter_add(put(np.array([0.5], "f4")), put(np.zeros(size, "u1")), put(n)), np.array([0.5], "f4") + fold(n))


@pytest.mark.parametrize("size", SIZES)
def test_from_nothing(size, put):
    where = places(size)
    same(at(hg.arange(size, dtype="int32"), where), where.astype("i4"))
    same(at(hg.arange(size)[::-1], where), size - 1 - where)
    same(at(hg.full((size,), 3, dtype="int16"), where), np.full(len(where), 3, "i2"))
    key = hg.random.key(5)
    whole_row, tail = hg.random.uniform(key, (size + 4,)), size // 4 * 4
    same(host(whole_row)[tail:tail + 4], host(hg.random.uniform(key, (MANY + 8,)))[tail:tail + 4])


# ---- what the array API makes of them ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("size", SIZES)
def test_masks(size, put):
    n = np.zeros(size, np.uint8)
    n[[5, 4096, size // 2, size - 1]] = 1, 2, 3, 4
    x = put(n)
    same(x[x != 0], np.array([1, 2, 3, 4], np.uint8))
    same(xp.nonzero(x)[0], np.flatnonzero(n))
    x[x > 2] = 9
    same(x[x != 0], np.array([1, 2, 9, 9], np.uint8))


@whole
@pytest.mark.parametrize("size", SIZES)
def test_running_sums(size, put):
    n, where = numbers(size, "i4"), places(size)
    same(at(xp.cumulative_sum(put(n)), where), np.cumsum(n, dtype="i8")[where])


@whole
@pytest.mark.parametrize("size", SIZES[::2])
def test_sorting(size, put):
    n = numbers(size, "u2")[::-1].copy()
    where = places(size)
    order = np.argsort(n, kind="stable")
    same(at(xp.argsort(put(n)), where), order[where])
    same(at(xp.sort(put(n)), where), n[order][where])
    same(at(xp.searchsorted(put(n[order]), put(n)), where), np.searchsorted(n[order], n)[where])


def test_sets_of_too_many(put):
    """An error at the call, before anything is sorted."""
    x = hg.broadcast(put(np.zeros(1, np.uint8)), (2**31 + 1,))
    for function in (xp.unique_all, xp.unique_counts, xp.unique_inverse, xp.unique_values, xp.sort, xp.argsort):
        with pytest.raises(hg.Unsupported, match="at most 2\\^31"):
            function(x)
