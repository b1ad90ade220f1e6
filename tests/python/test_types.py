"""Types that meet, and numbers: what becomes of two types, what a type holds, NumPy's numbers as Python's, sizes."""

import itertools
import operator
import os
import subprocess
import sys

import numpy as np
import pytest

import hologram as hg
import hologram.array_api as xp

SIGNED, UNSIGNED = ["int8", "int16", "int32", "int64"], ["uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
TYPES = ["bool", *SIGNED, *UNSIGNED, *FLOATS]
COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]


def kind(name):
    return 0 if name == "bool" else 2 if name in FLOATS else 1


def together(a, b):
    """The rule in words: of two kinds the higher one's type; else the smallest that holds both."""
    if kind(a) != kind(b):
        return max(a, b, key=kind)
    if kind(a) == 2:
        return "float32" if {a, b} == {"float16", "bfloat16"} else max(a, b, key=FLOATS.index)
    if a == b or kind(a) == 0:
        return a
    if (a in SIGNED) == (b in SIGNED):
        return max(a, b, key=(SIGNED if a in SIGNED else UNSIGNED).index)
    signed, other = (a, b) if a in SIGNED else (b, a)
    place = max(SIGNED.index(signed), UNSIGNED.index(other) + 1)
    return SIGNED[place] if place < 4 else None


@pytest.mark.parametrize("a", TYPES)
def test_all_pairs(a):
    for b in TYPES:
        x, y, mask = hg.asarray([1, 0]).astype(a), hg.asarray([0, 1]).astype(b), hg.asarray([True, False])
        right = together(a, b)
        functions = [lambda: hg.where(mask, x, y), lambda: hg.concatenate([x, y])]
        functions += [lambda: x + y] if {a, b} != {"bool"} else []
        for function in functions:
            if right is None:
                with pytest.raises(hg.Error, match=r"no integer type holds both; cast one of them, as in cast\(x, i64\)"):
                    function()
            else:
                assert function().dtype == right, (a, b)
        if right is not None:
            assert hg.where(mask, x, y).tolist() == [1, 1] and hg.equal(x, y).tolist() == [False, False]


def test_arrays_of_rank_zero_are_arrays():
    assert (hg.ones(3, "float32") * hg.full((), 2.0, "float64")).dtype == "float64"
    assert (hg.ones(3, "int8") * hg.full((), 2, "int64")).dtype == "int64"


def test_8_bit_floats_are_cast_first():
    with pytest.raises(hg.Error, match="storage only; cast"):
        hg.where(hg.asarray([True]), hg.ones(1).astype("float8_e5m2"), hg.ones(1))


def test_numbers_beside_arrays():
    whole, bits, half = hg.arange(3), hg.asarray([True, False]), hg.ones(2, "float16")
    for made, right in ((whole * 0.5, "float32"), (whole.astype("int8") * 2, "int8"), (bits * 2, "int64"), (bits * 2.0, "float32"),
                        (half * 0.5, "float16"), (half * np.float64(0.5), "float16"), (hg.ones(2) * np.sqrt(2), "float32"),
                        (whole.astype("uint8") + np.int64(3), "uint8"), (whole / 2, "float32"), (whole / whole, "float32"),
                        (bits / bits, "float32"), (3 / whole, "float32"), (whole / np.int64(2), "float32"),
                        (hg.sqrt(whole), "float32"), (hg.exp(bits), "float32"), (hg.mean(whole), "float32"),
                        (hg.sum(bits), "int64"), (whole**0.5, "float32")):  # fmt: skip
        assert made.dtype == right


def test_gradients_flow_through_casts():
    x, whole = hg.asarray(np.array([1, 2, 3], "f2")), hg.asarray([4, 5, 6])
    gradient = hg.grad(lambda x: (x * hg.asarray(np.array([0.5, 1, 2])) * whole).sum())(x)
    assert gradient.dtype == "float16" and gradient.tolist() == [2, 5, 12]
    second = hg.grad(lambda x: (hg.grad(lambda y: (y * y * whole).sum())(x) * whole).sum())(hg.ones(3))
    assert second.dtype == "float32" and second.tolist() == [32, 50, 72]


# ---- comparisons ------------------------------------------------------------------------------------------------------

LIMITS = [0, 1, 255, 2**11 + 1, 2**24, 2**24 + 1, 2**53, 2**53 + 1, 2**62 + 1, 2**63 - 1, 2**63, 2**64, 2**70 + 1, 10**400]


@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED, "float16", "float32", "float64"])
@pytest.mark.parametrize("compare", COMPARISONS, ids=lambda f: f.__name__)
def test_comparisons_with_python_s_integers_are_exact(name, compare):
    if name in ("float16", "float32", "float64"):
        with np.errstate(over="ignore"):
            own = np.array([float(n) for n in LIMITS[:-1]] + [-2.0**53, -1.5, np.inf, -np.inf, np.nan], name)
    else:
        limits = np.iinfo(name)
        own = np.array([n for n in (*LIMITS, limits.min, limits.max) if limits.min <= n <= limits.max], name)
    x = hg.asarray(own)
    for number in (*LIMITS, *(-n for n in LIMITS)):
        assert compare(x, number).tolist() == [compare(v, number) for v in own.tolist()], number
        assert compare(number, x).tolist() == [compare(number, v) for v in own.tolist()], number


def test_comparisons_with_fractions_are_exact():
    x = hg.asarray(np.array([2**53 + 1, 0, -1, 2**63 - 1]))
    assert (x > 2.0**53).tolist() == [True, False, False, True] and (x == 2.0**53).tolist() == [False] * 4
    assert (x < 0.5).tolist() == [False, True, True, False] and (x < 2.0**63).tolist() == [True] * 4
    assert (hg.asarray(np.array([16777217])) == hg.asarray(np.array([16777216], "f4"))).tolist() == [False]


# ---- what a type holds ------------------------------------------------------------------------------------------------

def one(name):
    return hg.asarray([1]).astype(name)


PLACES = {
    "x + n": lambda name, n: one(name) + n, "n - x": lambda name, n: n - one(name), "x ^ n": lambda name, n: one(name) ^ n,
    "x // n": lambda name, n: one(name) // n, "maximum": lambda name, n: hg.maximum(one(name), n),
    "where": lambda name, n: hg.where(hg.asarray([True]), n, one(name)), "full": lambda name, n: hg.full(2, n, dtype=name),
    "full_like": lambda name, n: hg.full_like(one(name), n), "asarray": lambda name, n: hg.asarray([n], dtype=name),
    "arange": lambda name, n: hg.arange(n, n + (1 if n > 0 else -1), 1 if n > 0 else -1, dtype=name),
    "fill": lambda name, n: hg.default_executor().allocate(1, dtype=name).fill(n),
}  # fmt: skip


@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
@pytest.mark.parametrize("place", PLACES)
def test_integers_out_of_range(place, name):
    limits = np.iinfo(name)
    for number in (limits.max + 1, limits.min - 1, 2**64, -(2**70)):
        with pytest.raises(OverflowError, match=f"{number} is out of range of {name}"):
            PLACES[place](name, number)
    for number in (int(limits.max), int(limits.min)):
        PLACES[place](name, number)


@pytest.mark.parametrize("name", [*SIGNED, *UNSIGNED])
def test_scalars_of_programs_out_of_range(name):
    short, limits = name[0] + name.lstrip("uint"), np.iinfo(name)
    body = f" mov.{short} r0, a\n stg.{short} [y + lane], r0\n exit\n"
    program = hg.Program(f".program s\n.scalar a {short}\n.buffer y {short} out\n{body}")
    for number in (limits.max + 1, limits.min - 1):
        with pytest.raises(OverflowError, match="out of range"):
            program.run(hg.default_executor(), 1, y=np.zeros(1, name), a=number)
    for number in (int(limits.max), int(limits.min), np.int8(5)):
        y = np.zeros(1, name)
        program.run(hg.default_executor(), 1, y=y, a=number)
        assert y[0] == number


def test_ranges_out_of_a_type():
    for call in (lambda: hg.arange(254, 258, dtype="uint8"), lambda: hg.arange(129, dtype="int8"), lambda: hg.arange(0, 2**70, 2**68),
                 lambda: hg.arange(2**63 - 2, 2**63 + 1), lambda: hg.arange(0, -2, -1, dtype="uint64"),
                 lambda: hg.random.integers(hg.random.key(0), 4, 0, 300, dtype="int8"),
                 lambda: hg.random.integers(hg.random.key(0), 4, -1, 3, dtype="uint32")):  # fmt: skip
        with pytest.raises(OverflowError):
            call()
    assert hg.arange(254, 256, dtype="uint8").tolist() == [254, 255]
    assert hg.arange(2**63 - 2, 2**63).tolist() == [2**63 - 2, 2**63 - 1]
    assert hg.arange(2**53, 2**53 + 3).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
    assert hg.random.integers(hg.random.key(0), 99, 0, 256, dtype="uint8").tolist() != [0] * 99
    for start, stop, step in ((hg.inf, 1, 5), (0, hg.inf, 1), (0, -hg.inf, 1), (0, 1, hg.nan), (0, 1, -hg.inf)):
        with pytest.raises(ValueError, match="no number of steps"):
            hg.arange(start, stop, step)


def test_fractions_are_no_integers():
    buffer = hg.default_executor().allocate(1, dtype="uint8")
    for call in (lambda: buffer.fill(1.5), lambda: hg.full(2, 1.5, dtype="int32"), lambda: hg.full_like(hg.arange(3), 0.5)):
        with pytest.raises(TypeError, match=r"float (1|0)\.5 is no number of"):
            call()


# ---- NumPy's numbers --------------------------------------------------------------------------------------------------

def test_numpy_s_numbers_are_numbers():
    two, key, x = np.int64(2), hg.random.key(np.uint32(3)), hg.asarray(np.array([[1, 2], [3, 4]], "f4"))
    for made in (hg.zeros(two), hg.ones(np.int32(2)), hg.full(two, 1.0), hg.empty((two,)), hg.random.uniform(key, two),
                 hg.random.normal(key, two), hg.ones(()).broadcast_to(two), hg.sum(x, axis=np.int64(1)), x.max(axis=np.int8(0)),
                 x.argmin(axis=np.int64(1)),
                 hg.random.split(key, two), hg.eye(two)[0], hg.ones(4)[:2].reshape(two),
                 xp.roll(x, np.int64(1), axis=np.int64(0))[0],
                 xp.repeat(hg.ones(1), two), xp.tile(hg.ones(1), (two,)), hg.arange(two), hg.sum(x, axis=(np.int64(0),))):  # fmt: skip
        assert made.shape == (2,)
    assert xp.divide(hg.arange(3), two).tolist() == [0, 0.5, 1]
    assert hg.sum(x, axis=np.int64(1), keepdims=np.True_).shape == (2, 1) and xp.expand_dims(x, np.int64(0)).shape == (1, 2, 2)
    assert hg.all(hg.random.key(np.int64(7)) == hg.random.key(7)).item()
    for number in (np.int64(3), np.uint8(3), np.int32(3)):
        assert hg.full((2,), number).dtype == "int64" and (hg.arange(3) * number).tolist() == [0, 3, 6]
    assert hg.where(x > 1, np.float32(5), x).tolist() == [[1, 5], [5, 5]] and hg.maximum(np.float32(2), 1).dtype == "float32"
    assert hg.arange(np.float32(0), np.float32(1), np.float32(0.25)).tolist() == [0, 0.25, 0.5, 0.75]
    assert (x * np.float16(2)).dtype == "float32" and (x == np.bool_(True)).tolist() == [[True, False], [False, False]]


# ---- sizes ------------------------------------------------------------------------------------------------------------

def test_sizes_below_zero():
    x = hg.ones(3)
    makers = (hg.zeros, hg.ones, hg.empty, xp.zeros, lambda shape: hg.full(shape, 5.0))
    calls = [lambda make=make, shape=shape: make(shape) for make in makers for shape in (-1, (2, -1), (-2,))]
    calls += [lambda: hg.broadcast(x, (-1, 3)), lambda: x.broadcast_to((-1, 3)), lambda: xp.broadcast_to(x, (-1, 2, 3)),
              lambda: xp.repeat(x, -1), lambda: xp.repeat(x, hg.asarray([1, -1, 1])), lambda: xp.tile(x, (-1, 1)),
              lambda: x.reshape(-1, -1), lambda: x.reshape(-3),
              lambda: hg.reshape(x, (-2,)), lambda: hg.random.uniform(hg.random.key(0), -1), lambda: hg.eye(-1)]  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError):
            call()
    assert x.reshape(-1, 1).shape == (3, 1) and hg.zeros(0).shape == (0,)


# ---- sentences --------------------------------------------------------------------------------------------------------

def test_advice_fits():
    for call in (lambda: ~hg.ones(2), lambda: hg.ones(2) & 1, lambda: hg.arange(2) | 0.5):
        with pytest.raises(hg.Error, match=r"it takes integer bool: cast\(\w+, bool\) or cast\(\w+, i32\) makes it one"):
            call()


def test_numbers_have_a_point_in_every_locale(tmp_path):
    folder = str(tmp_path / "de_DE.UTF-8")
    made = subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", folder], capture_output=True, check=False)
    if made.returncode != 0:
        pytest.skip("localedef cannot make a locale whose point is a comma")
    code = """if True:
        import locale, os, sys, hologram as hg
        locale.setlocale(locale.LC_ALL, "de_DE.UTF-8")
        assert locale.localeconv()["decimal_point"] == ","
        for call in (lambda: hg.arange(0.5, hg.inf), lambda: hg.arange(0.5, 3.5, dtype="int64"), lambda: hg.arange(0.5, 3, hg.nan)):
            try: print(call())
            except Exception as error: print(error)
    """
    environment = {**os.environ, "LOCPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "0.5" in done.stdout and "0,5" not in done.stdout, done.stdout


def test_result_type_keeps_the_standard_s_rules():
    for a, b in itertools.product(TYPES, TYPES):
        if kind(a) != kind(b):
            with pytest.raises(TypeError):
                xp.result_type(getattr(hg, a if a != "bool" else "bool_"), getattr(hg, b if b != "bool" else "bool_"))
    assert not xp.can_cast(hg.int32, hg.float32) and xp.can_cast(hg.int8, hg.int16)
