"""Every function that array-api-strict and hologram.array_api both have, one beside the other, on inputs that Hypothesis makes.

CASES[name] = (types, inputs): inputs(draw, type) gives the positional and the named arguments, arrays among them NumPy's. Both give
the same shapes, types and numbers; bit for bit, but for a sum's order and functions that are rounded otherwise (ROUNDED)."""

import zlib

import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hn

import hologram as hg
from hologram import array_api as xp

BOOL, FLOATS = ("bool",), ("float32", "float64")
SIGNED, UNSIGNED = tuple(f"int{b}" for b in (8, 16, 32, 64)), tuple(f"uint{b}" for b in (8, 16, 32, 64))
INTEGERS = SIGNED + UNSIGNED
NUMBERS, ALL = INTEGERS + FLOATS, BOOL + INTEGERS + FLOATS
# The strict library's flags; what the standard has since 2025.12; imag takes complex numbers only, which there are none of here.
OTHERS = {"ArrayAPIStrictFlags", "Device", "ModuleType", "broadcast_shapes", "isin", "imag", "complex64", "complex128",
          "get_array_api_strict_flags", "set_array_api_strict_flags", "reset_array_api_strict_flags"}
# At most so many units in the last place from NumPy, which is not correctly rounded either.
ROUNDED = dict.fromkeys("exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh atan2 hypot "
                        "logaddexp pow mean var std linspace".split(), 4)
CONTRACTIONS = ("matmul", "tensordot", "vecdot")  # NumPy begins at +0, so that a sum of -0 is that


@pytest.fixture(autouse=True)
def quiet_numpy():
    """Without the other one's collection of garbage, which takes longer than these tests."""
    with np.errstate(all="ignore"):
        yield


def shapes(min_dims=0, max_dims=3, min_side=0):
    return hn.array_shapes(min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=4)


def elements(kind, low=None, high=None, whole=False):
    """Numbers of a type; whole ones are so small that sums and products of a few are exact."""
    kind = np.dtype(kind)
    if kind == bool:
        return st.booleans()
    if kind.kind == "f" and not whole:
        return st.floats(low, high, width=8 * kind.itemsize, allow_subnormal=False)
    least, most = (-9, 9) if kind.kind == "f" else (np.iinfo(kind).min, np.iinfo(kind).max)
    if whole:
        least, most = max(least, -9), min(most, 9)
    numbers = st.integers(least if low is None else max(low, least), most if high is None else min(high, most))
    return numbers.map(float if kind.kind == "f" else int)


def array(draw, kind, shape=None, **limits):
    """An array; of a shape, or of up to three axes."""
    return draw(hn.arrays(kind, shapes() if shape is None else shape, elements=elements(kind, **limits)))


def axis_of(draw, x):
    return draw(st.integers(-x.ndim, x.ndim - 1))


def one(**limits):
    return lambda draw, kind: ([array(draw, kind, **limits)], {})


def two(second=None, **limits):
    """Two arrays that broadcast, or one and a Python number."""
    def inputs(draw, kind):
        made = draw(hn.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4))
        a = array(draw, kind, made.input_shapes[0], **limits)
        b = array(draw, kind, made.input_shapes[1], **(limits if second is None else second(kind)))
        return [a, b.reshape(-1)[0].item() if b.size and draw(st.booleans()) else b], {}
    return inputs


def divisors(kind):
    return {"low": 1, "whole": True}


def exponents(kind):
    return {"low": 0, "high": 7, "whole": True}


def counts(kind):
    return {"low": 0, "high": 8 * np.dtype(kind).itemsize - 1}


def reduced(min_side=0, named=None, **limits):
    """An array of whole numbers, and axes of it."""
    def inputs(draw, kind):
        x = array(draw, kind, draw(shapes(min_side=min_side)), whole=True, **limits)
        axes = st.none() if x.ndim == 0 else st.none() | st.integers(-x.ndim, x.ndim - 1) | st.sets(st.integers(0, x.ndim - 1)).map(tuple)
        return [x], {"axis": draw(axes), "keepdims": draw(st.booleans()), **({} if named is None else draw(named))}
    return inputs


def place(draw, kind):
    x = array(draw, kind, draw(shapes(1, min_side=1)), whole=True)
    return [x], {"axis": draw(st.none() | st.integers(-x.ndim, x.ndim - 1)), "keepdims": draw(st.booleans())}


def running(draw, kind):
    x = array(draw, kind, draw(shapes(1)), low=-2, high=2, whole=True)
    return [x], {"axis": axis_of(draw, x), "include_initial": draw(st.booleans())}


def along(*named, min_side=0, **limits):
    """An array, an axis, and flags."""
    def inputs(draw, kind):
        x = array(draw, kind, draw(shapes(1, min_side=min_side)), **limits)
        return [x], {"axis": axis_of(draw, x), **{name: draw(st.booleans()) for name in named}}
    return inputs


def joined(draw, kind):
    shape = draw(shapes(1))
    return [[array(draw, kind, shape) for _ in range(draw(st.integers(1, 3)))]], {"axis": draw(st.integers(-len(shape), len(shape) - 1))}


def flattened(draw, kind):
    made, named = joined(draw, kind)
    return made, {"axis": draw(st.sampled_from([None, named["axis"]]))}


def clipped(draw, kind):
    x, (low, high) = array(draw, kind, whole=True), sorted(draw(st.tuples(*[elements(kind, whole=True)] * 2)))
    return [x], draw(st.fixed_dictionaries({}, optional={"min": st.just(low), "max": st.just(np.full((1, *x.shape[1:]), high, kind))}))


def broadcast(draw, kind):
    made = draw(hn.mutually_broadcastable_shapes(num_shapes=3, max_dims=3))
    return [array(draw, kind, shape) for shape in made.input_shapes], {}


def wider(draw, kind):
    x = array(draw, kind, draw(shapes(min_side=1)))
    return [x, (draw(st.integers(1, 3)), *x.shape)], {}


def grid(draw, kind):
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    return [array(draw, kind, (n,)) for n in sizes], {"indexing": draw(st.sampled_from(["xy", "ij"]))}


def expanded(draw, kind):
    x = array(draw, kind)
    return [x], {"axis": draw(st.integers(-x.ndim - 1, x.ndim))}


def permuted(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    return [x, tuple(draw(st.permutations(range(x.ndim))))], {}


def moved(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    order = st.permutations(range(x.ndim))
    count = draw(st.integers(1, x.ndim))
    return [x, tuple(draw(order)[:count]), tuple(draw(order)[:count])], {}


def reshaped(draw, kind):
    x = array(draw, kind, draw(shapes(1, min_side=1)))
    return [x, draw(st.sampled_from([(-1,), (x.size, 1), x.shape[::-1], (1, *x.shape[:-1], -1)]))], {}


def repeated(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    axis = axis_of(draw, x)
    return [x, draw(st.integers(0, 3) | hn.arrays("int64", x.shape[axis], elements=st.integers(0, 3)))], {"axis": axis}


def rolled(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    return [x, draw(st.integers(-9, 9))], {"axis": draw(st.none() | st.integers(-x.ndim, x.ndim - 1))}


def squeezed(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    ones = [d for d in range(x.ndim) if x.shape[d] == 1]
    return [x, tuple(draw(st.sets(st.sampled_from(ones)))) if ones else ()], {}


def tiled(draw, kind):
    return [array(draw, kind), tuple(draw(st.lists(st.integers(0, 2), max_size=3)))], {}


def matrices(draw, kind):
    return [array(draw, kind, draw(shapes(2)))], {}


def triangle(draw, kind):
    return [array(draw, kind, draw(shapes(2)))], {"k": draw(st.integers(-4, 4))}


def differences(draw, kind):
    x = array(draw, kind, draw(shapes(1, min_side=1)), whole=True)
    return [x], {"axis": axis_of(draw, x), "n": draw(st.integers(0, 2))}


def ordered(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    return [x], {"axis": axis_of(draw, x), "descending": False if x.dtype.kind == "f" and np.isnan(x).any() else draw(st.booleans())}


def searched(draw, kind):
    limits = {"low": -9, "high": 9} if np.dtype(kind).kind == "f" else {}
    a, b = array(draw, kind, draw(shapes(1, 1)), **limits), array(draw, kind, **limits)
    order = draw(st.permutations(range(a.size)))
    shuffled = np.argsort(np.asarray(order, dtype="int64"))
    a.sort()
    side = {"side": draw(st.sampled_from(["left", "right"]))}
    return ([a, b], side) if draw(st.booleans()) else ([a[order], b], {"sorter": shuffled, **side})


def some(draw, kind):
    x = array(draw, kind, draw(shapes(1)))
    return [np.where(array(draw, "bool", x.shape), x, np.zeros_like(x))], {}


def chosen(draw, kind):
    made, _ = two()(draw, kind)
    return [array(draw, "bool", made[0].shape), *made], {}


def taken(draw, kind):
    x = array(draw, kind, draw(shapes(1, min_side=1)))
    axis = axis_of(draw, x)
    numbers = st.integers(-x.shape[axis], x.shape[axis] - 1)
    return [x, draw(hn.arrays(draw(st.sampled_from(["int32", "int64"])), draw(shapes(1, 1)), elements=numbers))], {"axis": axis}


def taken_along(draw, kind):
    x = array(draw, kind, draw(shapes(1, min_side=1)))
    axis = axis_of(draw, x)
    shape = [draw(st.integers(0, 4)) if d == axis % x.ndim else size for d, size in enumerate(x.shape)]
    return [x, draw(hn.arrays("int64", tuple(shape), elements=st.integers(-x.shape[axis], x.shape[axis] - 1)))], {"axis": axis}


def products(draw, kind):
    made = draw(hn.mutually_broadcastable_shapes(signature="(m?,k),(k,n?)->(m?,n?)", max_dims=2, max_side=3))
    return [array(draw, kind, shape, whole=True) for shape in made.input_shapes], {}


def tensors(draw, kind):
    shared, left, right = (tuple(draw(st.lists(st.integers(0, 3), max_size=2))) for _ in range(3))
    a, b = array(draw, kind, left + shared, whole=True), array(draw, kind, shared + right, whole=True)
    both = tuple(range(len(left), a.ndim)), tuple(range(len(shared)))
    return [a, b], {"axes": draw(st.sampled_from([len(shared), both]))}


def vectors(draw, kind):
    made = draw(hn.mutually_broadcastable_shapes(signature="(k),(k)->()", max_dims=2, max_side=4))
    return [array(draw, kind, shape, whole=True) for shape in made.input_shapes], {}


def of_shape(*more):
    def inputs(draw, kind):
        return [draw(shapes()), *(draw(elements(kind)) for _ in more)], {"dtype": kind}
    return inputs


def like(*more):
    def inputs(draw, kind):
        return [array(draw, "int16"), *(draw(elements(kind)) for _ in more)], {"dtype": kind}
    return inputs


def steps(draw, kind):
    start, stop, step = draw(st.integers(0, 50)), draw(st.integers(0, 50)), draw(st.integers(1, 9))
    return draw(st.sampled_from([[stop], [start, stop], [start, stop, step]])), {"dtype": kind}


def diagonal(draw, kind):
    return [draw(st.integers(0, 4)), draw(st.none() | st.integers(0, 4))], {"k": draw(st.integers(-5, 5)), "dtype": kind}


def distances(draw, kind):
    ends, count = st.integers(-50, 50), st.integers(0, 9)
    return [draw(ends), draw(ends), draw(count)], {"dtype": kind, "endpoint": draw(st.booleans())}


def cast(draw, kind):
    """Whole numbers that every type has."""
    return [array(draw, kind, low=0, high=1, whole=True), draw(st.sampled_from(ALL))], {}


def lists(draw, kind):
    return [array(draw, kind).tolist()], {"dtype": kind}


UNARY = {
    FLOATS: "exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sqrt reciprocal signbit",
    NUMBERS: "abs negative positive sign square floor ceil trunc round isnan isinf isfinite real conj", BOOL: "logical_not",
    BOOL + INTEGERS: "bitwise_invert",
}
BINARY = {
    FLOATS: "divide atan2 hypot logaddexp copysign nextafter",
    NUMBERS: "add subtract multiply minimum maximum less less_equal greater greater_equal", ALL: "equal not_equal",
    BOOL: "logical_and logical_or logical_xor", BOOL + INTEGERS: "bitwise_and bitwise_or bitwise_xor",
}
CASES = {
    **{name: (types, one()) for types, names in UNARY.items() for name in names.split()},
    **{name: (types, two()) for types, names in BINARY.items() for name in names.split()},
    "floor_divide": (NUMBERS, two(divisors, whole=True)), "remainder": (NUMBERS, two(divisors)),
    "pow": (NUMBERS, two(exponents, whole=True)), "bitwise_left_shift": (INTEGERS, two(counts)),
    "bitwise_right_shift": (INTEGERS, two(counts)), "clip": (NUMBERS, clipped), "sum": (NUMBERS, reduced()),
    "prod": (NUMBERS, reduced(low=-2, high=2)), "mean": (FLOATS, reduced(1)), "any": (ALL, reduced()), "all": (ALL, reduced()),
    "var": (FLOATS, reduced(1)), "std": (FLOATS, reduced(1)), "max": (NUMBERS, reduced(1)), "min": (NUMBERS, reduced(1)),
    "count_nonzero": (ALL, reduced()), "argmax": (NUMBERS, place), "argmin": (NUMBERS, place), "cumulative_sum": (NUMBERS, running),
    "cumulative_prod": (NUMBERS, running), "broadcast_arrays": (ALL, broadcast), "broadcast_to": (ALL, wider), "concat": (ALL, flattened),
    "stack": (ALL, joined), "expand_dims": (ALL, expanded), "flip": (ALL, along()), "moveaxis": (ALL, moved),
    "permute_dims": (ALL, permuted), "repeat": (ALL, repeated), "reshape": (ALL, reshaped), "roll": (ALL, rolled),
    "squeeze": (ALL, squeezed), "tile": (ALL, tiled), "unstack": (ALL, along(min_side=1)), "matrix_transpose": (ALL, matrices),
    "tril": (ALL, triangle), "triu": (ALL, triangle), "diff": (NUMBERS, differences), "meshgrid": (ALL, grid), "sort": (NUMBERS, ordered),
    "argsort": (NUMBERS, ordered), "searchsorted": (NUMBERS, searched), "unique_all": (ALL, one()), "unique_counts": (ALL, one()),
    "unique_inverse": (ALL, one()), "unique_values": (ALL, one()), "nonzero": (ALL, some), "where": (ALL, chosen), "take": (ALL, taken),
    "take_along_axis": (ALL, taken_along), "matmul": (NUMBERS, products), "tensordot": (NUMBERS, tensors), "vecdot": (NUMBERS, vectors),
    "full": (ALL, of_shape("value")), "ones": (ALL, of_shape()), "zeros": (ALL, of_shape()), "empty": (ALL, of_shape()),
    "full_like": (ALL, like("value")), "ones_like": (ALL, like()), "zeros_like": (ALL, like()), "empty_like": (ALL, like()),
    "arange": (NUMBERS, steps), "eye": (ALL, diagonal), "linspace": (FLOATS, distances), "astype": (ALL, cast), "asarray": (ALL, lists),
    "from_dlpack": (NUMBERS, one()),
}
TYPE_FUNCTIONS = {"can_cast", "finfo", "iinfo", "isdtype", "result_type"}
CONSTANTS = ("e", "inf", "nan", "newaxis", "pi")


def given_to(namespace, name, value):
    """The argument as a namespace takes it: arrays, types by name."""
    if isinstance(value, np.ndarray):
        return value if name == "from_dlpack" else namespace.asarray(value)
    if isinstance(value, (list, tuple)) and any(isinstance(part, np.ndarray) for part in value):
        return [given_to(namespace, name, part) for part in value]
    return getattr(namespace, value) if isinstance(value, str) and value in ALL else value


def call(namespace, name, positional, named):
    made = getattr(namespace, name)(*(given_to(namespace, name, v) for v in positional),
                                    **{key: given_to(namespace, name, v) for key, v in named.items()})
    return [np.asarray(x) for x in made] if isinstance(made, (list, tuple)) else [np.asarray(made)]


def are_near(name, a, b):
    """Equal, NaNs and signs of zeros too; or some units in the last place apart."""
    ulps = ROUNDED.get(name, 0)
    is_near = (a == b) & ((np.signbit(a) == np.signbit(b)) | (name in CONTRACTIONS)) | np.isnan(a) & np.isnan(b)
    if ulps:
        is_near |= np.abs(a - b) <= ulps * np.spacing(np.maximum(np.abs(a), np.abs(b)))
    return bool(np.all(is_near))


def beside_strict(name, kind, data):
    positional, named = CASES[name][1](data.draw, kind)
    theirs, ours = call(strict, name, positional, named), call(xp, name, positional, named)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape and mine.dtype == other.dtype
        if name in ("empty", "empty_like"):
            continue
        if mine.dtype.kind == "f":
            assert are_near(name, mine, other), (mine, other)
        else:
            assert np.array_equal(mine, other), (mine, other)


@pytest.mark.parametrize("name,kind", [(name, kind) for name, (types, _) in CASES.items() for kind in types])
def test_beside_strict(name, kind):
    """A Hypothesis test of its own for each case: for one with parameters, Hypothesis keeps settings within settings, one more for each
    case that a process runs, and a thousand of them are too many for Python's stack."""
    @settings(max_examples=settings().max_examples // 7)
    @seed(zlib.crc32(f"{name} {kind}".encode()))
    @given(st.data())
    def one_case(data):
        beside_strict(name, kind, data)
    one_case()


def test_all_that_both_have():
    public = {name for name in dir(strict) if not name.startswith("_")} - OTHERS
    assert public == set(CASES) | TYPE_FUNCTIONS | set(CONSTANTS) | set(ALL)
    assert not [name for name in public if not hasattr(xp, name)]


@pytest.mark.parametrize("name", CONSTANTS)
def test_constants(name):
    assert getattr(xp, name) == getattr(strict, name) or name == "nan" and np.isnan(xp.nan)


@pytest.mark.parametrize("kind", ALL)
def test_kinds_of_types(kind):
    for group in (*"bool integral numeric".split(), "signed integer", "unsigned integer", "real floating", "complex floating",
                  ("bool", "integral")):
        assert xp.isdtype(getattr(xp, kind), group) == strict.isdtype(getattr(strict, kind), group)
    for other in ALL:
        pairs = [(n.can_cast, getattr(n, kind), getattr(n, other)) for n in (xp, strict)]
        assert pairs[0][0](*pairs[0][1:]) == pairs[1][0](*pairs[1][1:])
