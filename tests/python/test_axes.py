"""Axes as arguments: whatever takes one refuses what no axis is, in words that name it; and functions of array_api that move elements
along axes beside NumPy's."""

import inspect
import itertools

import hologram as hg
import hologram.array_api as xp
import numpy as np
import pytest

X = np.arange(24, dtype="f4").reshape(2, 3, 4)
INDEX = np.zeros((2, 3, 4), "i8")
SEGMENTS = ("sum", "prod", "mean", "min", "max")
MORE = {  # what a function takes besides x
    "repeat": (2,), "take": (np.array([0]),), "take_along_axis": (INDEX,), "take_along": (INDEX,), "scatter": (INDEX, X),
    "scatter_add": (INDEX, X), "roll": (1,), "nll": (INDEX[..., 0],), "logit_nll": (INDEX[..., :1],), "cross_entropy": (INDEX[..., 0],),
    "cross_entropy_of_classes": (INDEX[..., 0],), "cross_entropy_of_shares": (X,), "vecdot": (X,), "cross": (X,), "slice": (), "expand": (),
    "multi_margin": (INDEX[..., 0],), "cosine_similarity": (X,), "split": (2,), "array_split": (2,), "merge": (X,), "sort_by_key": (X,),
    "segmented_scan": (INDEX,), "partition": (1,), "argpartition": (1,), "compress": (X,),
    **dict.fromkeys(("quantile", "nanquantile", "percentile", "nanpercentile"), (0.5,)),
    **{f"scatter_{name}": (INDEX, X) for name in ("multiply", "mean", "min", "max", "reduce")},
    **{f"index_{name}": (INDEX[0, 0, :2], X) for name in ("add", "copy", "reduce")}, "index_fill": (INDEX[0, 0, :2], 1.0),
    **{f"segment_{name}": (INDEX[0, 0, :2],) for name in SEGMENTS},
}  # fmt: skip
NAMED = {f"segment_{name}": {"num_segments": 2} for name in SEGMENTS}
FIRST = {"segment_places": INDEX, "places_from_end": INDEX == 0, "compress": np.array([True, False])}


def same(ours, theirs):
    ours = np.asarray(ours)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


def functions_of_axes():
    """Of all public names these that have an argument `axis`."""
    for space, name in itertools.product((xp, hg), sorted({*dir(xp), *dir(hg)})):
        function = getattr(space, name, None)
        if not callable(function) or name.startswith("_") or inspect.isclass(function):
            continue
        try:
            words = inspect.signature(function).parameters
        except ValueError:
            continue
        if "axis" in words:
            yield pytest.param(function, id=f"{space.__name__}.{name}")


@pytest.mark.parametrize("function", [*functions_of_axes()])
@pytest.mark.parametrize("axis", [7, -9])
def test_what_no_axis_is(function, axis):
    name = function.__name__
    takes_list = name in ("concat", "concatenate", "stack")
    x = hg.asarray(FIRST.get(name, X))
    inputs = [[x] * 2] if takes_list else [x]
    with pytest.raises((IndexError, ValueError)) as caught:
        np.asarray(function(*inputs, *map(hg.asarray, MORE.get(name, ())), **NAMED.get(name, {}), axis=axis))
    assert "axis" in str(caught.value) and str(axis) in str(caught.value), caught.value


def test_unstack():
    for axis in (-3, 0, 1, 2):
        for ours, theirs in zip(xp.unstack(hg.asarray(X), axis=axis), np.unstack(X, axis=axis), strict=True):
            same(ours, theirs)
    with pytest.raises(IndexError, match="unstack: axis 0 .* 0 axes"):
        xp.unstack(hg.ones(()))


def test_moveaxis():
    for source, to in [(0, 2), (-1, 0), ((0, 1), (2, 0)), ((2, 0, 1), (0, 1, 2)), ((), ())]:
        same(xp.moveaxis(hg.asarray(X), source, to), np.moveaxis(X, source, to))
    wrong = [(5, 0, "axis 5"), (0, -4, "axis -4"), ((0, 1), (1, 1), "twice"), ((0, -3), (0, 1), "twice"), ((0, 1), (1,), "2 axes")]
    for source, to, words in wrong:
        with pytest.raises((IndexError, ValueError), match=words):
            xp.moveaxis(hg.asarray(X), source, to)


def test_diff():
    for n, axis in itertools.product(range(4), (-1, 0, 1)):
        same(xp.diff(hg.asarray(X), n=n, axis=axis), np.diff(X, n=n, axis=axis))
        same(xp.diff(hg.asarray(X), n=n, axis=axis, prepend=hg.asarray(X)), np.diff(X, n=n, axis=axis, prepend=X))
    for call in (lambda: xp.diff(hg.arange(3), n=-1), lambda: xp.diff(hg.ones(()))):
        with pytest.raises((ValueError, IndexError), match="diff: "):
            call()


def test_roll():
    cases = [(1, None), (-5, None), ((1, 2), None), (1, 0), ((1, 2), (0, 2)), (1, (0, 2)), ((1, 2), 1), ((1, 5), (2, 2)), (0, 0), (100, -1)]
    for shift, axis in cases:
        same(xp.roll(hg.asarray(X), shift, axis=axis), np.roll(X, shift, axis))
    with pytest.raises(ValueError, match="roll: 2 shifts do not go with 3 axes"):
        xp.roll(hg.asarray(X), (1, 2), axis=(0, 1, 2))


def test_tile():
    for counts in (2, (), (3,), (2, 1), (1, 2, 3), (2, 1, 2, 1, 2), (0,), (2, 0, 1), (1, 2, 1, 1, 2, 1, 1, 2)):
        same(xp.tile(hg.asarray(X), counts), np.tile(X, counts))
    five = X.reshape(1, 2, 3, 2, 2)
    same(xp.tile(hg.asarray(five), (2, 1, 3, 1, 2)), np.tile(five, (2, 1, 3, 1, 2)))
    got = hg.grad(lambda x: (xp.tile(x, (2, 1, 3)) * hg.asarray(np.tile(X, (2, 1, 3)))).sum())(hg.asarray(X))
    same(got, 6 * X)


def test_kinds_of_types():
    for kind in ("float", "foo", "float32", "complex"):
        with pytest.raises(ValueError, match="no kind"):
            xp.isdtype(hg.float32, kind)
    assert not xp.isdtype(hg.float32, "complex floating") and xp.isdtype(hg.float32, ("bool", "real floating"))


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "stack", "take_along"])
def test_one_axis_is_not_none(name):
    x = hg.asarray(X)
    inputs = {"stack": [[x, x]], "take_along": [x, hg.asarray(INDEX)]}.get(name, [x])
    with pytest.raises(TypeError, match="axis is one axis"):
        getattr(hg, name)(*inputs, axis=None)


@pytest.mark.parametrize("shape", [-1, (-1, 2, 3), (2, -3, 4), (2**63 - 1, -1)])
def test_no_size_is_negative(shape):
    for call in (lambda: xp.broadcast_to(hg.asarray(X), shape), lambda: hg.asarray(X).broadcast_to(shape)):
        with pytest.raises(ValueError, match="a size is at least 0"):
            call()


def test_numbers_from_the_end():
    index = np.array([[-1, 0], [2, -3]])
    same(xp.take(hg.asarray(X), hg.asarray(index), axis=1), np.take(X, index, axis=1))
    along = np.array([[[-1]], [[2]]])
    same(xp.take_along_axis(hg.asarray(X), hg.asarray(along), axis=1), np.take_along_axis(X, np.broadcast_to(along, (2, 1, 4)), axis=1))
    for index in (np.array([-1, 0]), np.array([-1, 0], "i1")):
        x, along, right = hg.asarray(X), hg.asarray(index.reshape(1, 2, 1)), X.copy()
        same(hg.take(x, hg.asarray(index), axis=1), X[:, index])
        same(x.take_along(along, axis=1), X[:, index])
        right[:, index] = X[:, :2]
        same(hg.scatter(x, along, hg.asarray(X[:, :2]), axis=1), right)
        same(hg.scatter_add(hg.zeros(X.shape), along, hg.asarray(X[:, :2]), axis=1, bounds=None)[:, -1], X[:, 0])
    for call in (
        lambda: hg.take(x, hg.asarray([-1]), bounds="fault"),
        lambda: hg.embedding(x, hg.asarray([-1])),
        lambda: hg.cross_entropy(x[0], hg.asarray([0, 1, -1])),
        lambda: hg.nll(x[0], hg.asarray([0, 1, -1])),
    ):
        with pytest.raises(hg.Fault):
            np.asarray(call())
    for wrong in (np.array([3]), np.array([-4]), np.array([2**64 - 1], "u8"), np.array([-(2**63)])):
        for call in (lambda: xp.take(hg.asarray(X), hg.asarray(wrong), axis=1), lambda: hg.asarray(X[0])[hg.asarray(wrong)]):  # noqa: B023
            with pytest.raises((hg.Fault, IndexError)):
                np.asarray(call())
