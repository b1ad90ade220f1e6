"""Names of the array API standard that are made of others, beside NumPy's."""

import itertools

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
