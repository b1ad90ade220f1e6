"""Names of the array API standard that are made of others: what test_array_api_strict.py does not ask. Beside NumPy and mpmath."""

import itertools

import mpmath
import numpy as np
import pytest

import hologram as hg
from hologram import array_api as xp

A = np.arange(24, dtype="f4").reshape(2, 3, 4)
TYPES = ["bool", *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)), "float32", "float64"]
CALLS = {
    "concat": lambda n, a: n.concat([a, a], axis=1), "stack": lambda n, a: n.stack([a, a], axis=1),
    "roll": lambda n, a: n.roll(a, 1), "roll back": lambda n, a: n.roll(a, -5), "roll axes": lambda n, a: n.roll(a, (1, -1), axis=(0, 2)),
    "tile": lambda n, a: n.tile(a[0], (2, 3)), "tile more": lambda n, a: n.tile(a[0], (2, 1, 2)), "tile less": lambda n, a: n.tile(a, (2,)),
    "diff": lambda n, a: n.diff(a, n=2), "diff axis": lambda n, a: n.diff(a, axis=0, prepend=a[:1], append=a[1:]),
    "moveaxis": lambda n, a: n.moveaxis(a, 0, -1), "moveaxis axes": lambda n, a: n.moveaxis(a, (0, 1), (2, 0)),
    "meshgrid": lambda n, a: n.meshgrid(a[0, 0], a[0, :, 0]), "meshgrid ij": lambda n, a: n.meshgrid(a[0, 0], a[0, :, 0], indexing="ij"),
    "unstack": lambda n, a: n.unstack(a, axis=1), "vecdot": lambda n, a: n.vecdot(a, a), "nonzero": lambda n, a: n.nonzero(a[1:] > 14),
    "nonzero floats": lambda n, a: n.nonzero(a), "broadcast": lambda n, a: n.broadcast_arrays(a, a[0, 0], a[:, :1]),
    "signbit": lambda n, a: n.signbit(a * -0.0), "empty_like": lambda n, a: n.empty_like(a) * 0, "conj": lambda n, a: n.conj(n.real(a)),
}

INDICES = {
    "numbers and an array": lambda a: (0, 1, a([1, 0, -1])), "an array and a number": lambda a: (a([1, 0]), 2),
    "two arrays": lambda a: (a([[0], [1]]), a([0, 2, 1])), "two arrays and a range": lambda a: (a([0, 1]), a([2, -3]), slice(1, 3)),
    "a range between": lambda a: (a([0, 1, 1]), slice(None), a([3, 0, -4])),
    "behind a range": lambda a: (slice(None, None, -1), a([2, 0]), a([1, 1])), "... and an array": lambda a: (..., a([3, 3, 0])),
    "a new axis": lambda a: (None, a([1, 0]), 0), "a mask and a number": lambda a: (a([[True, False, True], [False, True, True]]), 1),
    "a mask": lambda a: a([[True, False, True], [False, False, False]]), "a mask of nothing": lambda a: a(np.zeros((0, 3), bool)),
    "one mask": lambda a: a(np.asarray(True)), "no mask": lambda a: a(np.asarray(False)),
    "unsigned": lambda a: (0, a(np.array([1, 2], "u1"))), "nothing": lambda a: (0, a(np.zeros((0,), "i8"))),
}


@pytest.mark.parametrize("what", INDICES)
def test_indexing(what):
    key = INDICES[what]
    ours, theirs = hg.asarray(A)[key(hg.asarray)], A[key(np.asarray)]
    assert ours.shape == theirs.shape and np.array_equal(ours.numpy(), theirs)


def test_indices_out_of_range():
    x = hg.asarray(A)
    for key in ((2, hg.asarray([0])), (hg.asarray([0]), slice(None), slice(None), 0), hg.asarray(np.zeros((3, 3), bool))):
        with pytest.raises(IndexError):
            x[key]
    for numbers in ([3], [-4]):
        with pytest.raises(hg.Fault):
            x[0, hg.asarray(numbers)].compute()
    with pytest.raises(TypeError):
        x[0, hg.asarray([1.0])]


@pytest.mark.parametrize("name", "sum prod max min mean any all var std squeeze flip".split())
def test_along_no_axis(name):
    x = np.array([[1, 2, 3]], "f4")
    assert np.array_equal(getattr(hg, name)(hg.asarray(x), axis=()).numpy(), getattr(np, name)(x, axis=()))
    assert getattr(hg.asarray(x), name)(()).shape == (1, 3)


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000, 65536, 65537, 70000])
def test_running_sums(size):
    x = np.random.default_rng(size).integers(-50, 50, size)
    assert np.array_equal(xp.cumulative_sum(hg.asarray(x)).numpy(), np.cumsum(x))
    assert np.array_equal(xp.cumulative_sum(hg.asarray(x.astype("f4"))).numpy(), np.cumsum(x))
    signs = np.where(x < 0, -1, 1)
    assert np.array_equal(xp.cumulative_prod(hg.asarray(signs), dtype=xp.int32, include_initial=True).numpy()[1:], np.cumprod(signs))


def test_running_sums_round_once_of_narrow_types():
    x = hg.full((3000,), 0.1, "float16")
    assert float(xp.cumulative_sum(x)[-1]) == float(np.float16(3000 * np.float32(np.float16(0.1))))
    assert str(xp.cumulative_sum(hg.asarray([-0.0, 0.0]))) == "[-0.,  0.]"


@pytest.mark.parametrize("name", ["bool", *TYPES[1:], "float16"])
def test_sorting_much(name):
    """Rows of several blocks, and with equal elements enough."""
    x = np.random.default_rng(3).integers(-100, 100, (2, 5000)).astype(name)
    if np.dtype(name).kind == "f":
        x[:, ::7] = [[np.nan], [-np.inf]]
        x[:, 1::7] = -0.0
    ours = xp.argsort(hg.asarray(x))
    assert np.array_equal(ours.numpy(), np.argsort(x, stable=True))
    assert np.array_equal(xp.sort(hg.asarray(x)).numpy(), np.sort(x, stable=True), equal_nan=np.dtype(name).kind == "f")
    down = xp.argsort(hg.asarray(x[0]), descending=True).numpy()
    assert np.array_equal(down, np.lexsort((np.arange(5000), -np.unique(x[0], return_inverse=True, equal_nan=True)[1])))


@pytest.mark.parametrize("shape", [(3, 300), (70, 200), (3, 512), (5, 513), (2, 2048), (2, 2049), (1, 1 << 14), (1,) * 7 + (300,)])
@pytest.mark.parametrize("name", ["uint8", "float32", "int64"])
def test_sorting_each_way(name, shape):
    """Few and many rows, several in a block, one, and one in several blocks; keys of 32 bits and of 64."""
    random = np.random.default_rng(4)
    most = np.iinfo("int64").max if name == "int64" else 99
    x = random.integers(-most if name == "int64" else 0, most, shape).astype(name)
    assert np.array_equal(xp.argsort(hg.asarray(x)).numpy(), np.argsort(x, stable=True))
    assert np.array_equal(xp.sort(hg.asarray(x), descending=True).numpy(), np.flip(np.sort(x), -1))
    if name == "float32":  # and the way back
        weights = hg.asarray(random.integers(0, 9, shape).astype(name))
        gradient = hg.grad(lambda v: (xp.sort(v) * weights).sum())(hg.asarray(x)).numpy()
        assert np.array_equal(np.take_along_axis(gradient, np.argsort(x, stable=True), -1), weights.numpy())


@pytest.mark.parametrize("shape", [(300,), (5,), (2, 3, 260), (1,) * 7 + (300,), (1,) * 7 + (2,)])
@pytest.mark.parametrize("axis", [0, -1])
def test_sorting_of_two_values(shape, axis):
    x = np.random.default_rng(6).random(shape) < 0.3
    assert np.array_equal(xp.argsort(hg.asarray(x), axis=axis).numpy(), np.argsort(x, axis=axis, stable=True))
    assert np.array_equal(xp.sort(hg.asarray(x), axis=axis, descending=True).numpy(), np.flip(np.sort(x, axis=axis), axis))


@pytest.mark.parametrize("shape, axis", [((300,), 0), ((2, 3, 260), -1), ((5, 3), 0)])
def test_more_of_two_values_than_are_sorted(monkeypatch, shape, axis):
    """They are counted; here as if 2 were more than the operation takes."""
    monkeypatch.setattr("hologram._order._MOST_SORTED", 2)
    test_sorting_of_two_values(shape, axis)


@pytest.mark.parametrize("name, descending", [("float32", False), ("uint16", True)])
def test_sorting_of_a_million(name, descending):
    """So many blocks that they form groups, the last of which has few."""
    x = np.random.default_rng(8).integers(0, 3000, 1_100_001).astype(name)
    key = 3000 - x if descending else x
    right = np.argsort(key, kind="stable")
    assert np.array_equal(xp.argsort(hg.asarray(x), descending=descending).numpy(), right)
    assert np.array_equal(xp.sort(hg.asarray(x), descending=descending).numpy(), x[right])


def test_sorting_takes_few_launches():
    """One of rows that a block holds; of longer ones a launch for each digit of 8 bits, three where a row has several blocks."""
    sizes = [(100, "float32", 1), (2048, "int64", 1), (5000, "float32", 4), (5000, "int8", 1), (20000, "float64", 24), (20000, "int8", 3)]
    for size, name, launches in sizes:
        made = xp.sort(hg.asarray(np.random.default_rng(5).random(size, np.float32).astype(name)))
        assert len(hg.explain(made, json=True)["launches"]) == launches
    assert xp.argsort(hg.asarray([3.0, 1.0]), axis=None).tolist() == [1, 0]


def test_sorting_has_a_gradient():
    x = hg.asarray([3.0, 1.0, 2.0])
    weights = hg.asarray([10.0, 20.0, 30.0])
    assert hg.grad(lambda v: (xp.sort(v) * weights).sum())(x).tolist() == [30.0, 10.0, 20.0]
    assert hg.grad(lambda v: (xp.cumulative_sum(v) * weights).sum())(x).tolist() == [60.0, 50.0, 30.0]
    assert hg.jit(lambda v: xp.argsort(v))(x).tolist() == [1, 2, 0]


def test_sets_of_numbers_that_equal_nothing():
    made = xp.unique_all(hg.asarray([np.nan, 0.0, np.nan, -0.0]))
    assert made.counts.tolist() == [2, 1, 1] and made.indices.tolist() == [1, 0, 2] and made.inverse_indices.tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("name", ["acosh", "asinh", "atanh"])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_area_functions(name, kind):
    """Within two units in the last place of 40 digits, from small numbers to large ones; narrower types are rounded once."""
    top = {"float16": 4, "float32": 38, "float64": 300}[kind]
    size = {"acosh": (0, top), "asinh": (-top, top), "atanh": (-top, 0)}[name]
    x = (10 ** np.random.default_rng(4).uniform(*size, 60)).astype(kind)
    x[:3] = np.nextafter(np.ones(3, kind), np.array([2 if name == "acosh" else 0] * 3, kind))
    own = getattr(xp, name)(hg.asarray(x)).numpy()
    with mpmath.workdps(40):
        exact = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        errors = [abs(mpmath.mpf(float(o)) - t) / float(np.spacing(np.abs(o))) for o, t in zip(own, exact, strict=True)]
    assert max(errors) <= (2 if kind == "float64" else 0.51)


def test_hypot_at_the_ends():
    for kind, numbers in (("f4", (1e-45, 1e-30, 3e38)), ("f8", (5e-324, 1e-300, 1e-160, 1e160, 1.2e308))):
        a = np.array([*numbers, np.inf, np.nan, 0], kind)
        x, y = (v.reshape(-1) for v in np.meshgrid(a, a))
        own, right = xp.hypot(hg.asarray(x), hg.asarray(y)).numpy(), np.hypot(x, y)
        assert np.all((own == right) | np.isnan(own) & np.isnan(right) | (np.abs(own - right) <= np.spacing(right)))


def test_powers_of_integers():
    x = hg.asarray([-3, 0, 1, 2, 7])
    assert (x**5).tolist() == [-243, 0, 1, 32, 16807] and (x**0).tolist() == [1] * 5
    assert (2 ** hg.asarray([0, 3, 62])).tolist() == [1, 8, 2**62]
    assert (x ** hg.asarray([2, 0, -1, -1, 1])).tolist() == [9, 1, 0, 0, 7] and (hg.asarray([3], "uint8") ** 200).tolist() == [3**200 % 256]
    with pytest.raises(ValueError):
        x**-1
    with pytest.raises(TypeError):
        hg.asarray([True]) ** hg.asarray([True])


def test_large_steps():
    assert xp.eye(2, k=2**70).tolist() == xp.eye(2, k=-(2**63)).tolist() == [[0, 0], [0, 0]] and xp.eye(0, k=1).shape == (0, 0)
    assert xp.arange(2**60 + 1, 2**60 + 9, 3).tolist() == [2**60 + 1, 2**60 + 4, 2**60 + 7]
    assert xp.arange(0, -(2**62), -(2**61) + 1).tolist() == [0, -(2**61) + 1, -(2**62) + 2]
    assert xp.arange(2**64 - 2, 2**64, dtype=xp.uint64).tolist() == [2**64 - 2, 2**64 - 1]


def test_executors_of_one_device_are_equal():
    x, device = hg.ones(3), hg.default_executor()
    assert x.device == device and hash(x.device) == hash(device) and x.device in xp.__array_namespace_info__().devices()
    with hg.Executor("cpu") as other:
        assert other != device and x.to_device(other, stream=None).device == other
    assert other == other and other != device and device != "cpu" and complex(hg.asarray(2.5)) == 2.5


@pytest.mark.parametrize("what", CALLS)
def test_beside_numpy(what):
    ours, theirs = CALLS[what](xp, hg.asarray(A)), CALLS[what](np, A)
    if isinstance(theirs, np.ndarray):
        ours, theirs = (ours,), (theirs,)
    assert len(ours) == len(theirs)
    for x, expected in zip(ours, theirs):
        assert x.shape == expected.shape and x.dtype == expected.dtype and np.array_equal(x.numpy(), expected)


@pytest.mark.parametrize("a,b", list(itertools.product(TYPES, TYPES)))
def test_promotion(a, b):
    try:
        together = xp.result_type(getattr(xp, a), hg.ones(2, b))
    except TypeError:
        kinds = {np.dtype(a).kind.replace("u", "i"), np.dtype(b).kind.replace("u", "i")}
        assert len(kinds) == 2 or {a, b} > {"uint64"}
        assert not xp.can_cast(getattr(xp, a), getattr(xp, b))
        return
    assert together == np.result_type(a, b)
    assert xp.can_cast(getattr(xp, a), getattr(xp, b)) == np.can_cast(a, b)


def test_limits():
    for name in ("float16", "float32", "float64"):
        ours, theirs = xp.finfo(name), np.finfo(name)
        assert all(getattr(ours, f) == float(getattr(theirs, f)) for f in ("bits", "eps", "max", "min", "smallest_normal"))
    for name in TYPES[1:9]:
        ours, theirs = xp.iinfo(hg.ones(1, name)), np.iinfo(name)
        assert (ours.bits, ours.max, ours.min, ours.dtype) == (theirs.bits, theirs.max, theirs.min, name)
    for call, wrong in ((xp.finfo, "int8"), (xp.iinfo, "float32"), (xp.iinfo, "bool")):
        with pytest.raises(TypeError):
            call(wrong)


def test_numbers_take_an_array_s_type():
    assert xp.result_type(xp.float32, 1, 2.5) == xp.float32 and xp.result_type(hg.ones(2, "int8"), 300) == xp.int8
    for wrong in ((xp.int32, 1.5), (xp.bool, 1)):
        with pytest.raises(TypeError):
            xp.result_type(*wrong)
    with pytest.raises(ValueError):
        xp.result_type(1)


def test_what_there_is():
    info = xp.__array_namespace_info__()
    assert set(info.dtypes()) == set(TYPES) and set(info.dtypes(kind="real floating")) == {"float32", "float64"}
    assert info.capabilities()["max dimensions"] == 8 and info.default_dtypes()["integral"] == xp.int64
