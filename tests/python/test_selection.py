"""Masks, places, values that occur, runs and sets, beside NumPy and PyTorch: every type, NaN, both zeros, ties, nothing, shapes of every
rank, views; and what jit, vmap and gradients make of them."""

import hashlib
import warnings

import double_of_cuda
import numpy as np
import pytest

import hologram as hg

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TYPES = ["bool", *INTEGERS, "float16", "float32", "float64"]
SHAPES = [(0,), (1,), (2,), (255,), (256,), (257,), (1000,), (0, 3), (3, 0, 2), (1, 1), (7, 50), (4, 1, 30), (2, 3, 4, 5),
          (1, 2, 1, 3, 2, 1, 4, 2)]
LINES = (0, 1, 2, 3, 17, 256, 1000)


def numbers(kind, shape, seed):
    """Few values, each often; of floats both zeros, infinities and NaN."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 2 if kind == "bool" else 9, shape).astype(kind)
    if kind.startswith("int"):
        x -= np.array(4, kind)
    if kind.startswith("float"):
        for nth, odd in enumerate((np.nan, -0.0, np.inf, -np.inf, -2.5, np.nan)):
            x.reshape(-1)[nth::13] = odd
    return x


def views(x, seed):
    """The array and others that lie otherwise in memory, with NumPy's beside them."""
    yield hg.asarray(x), x
    if x.ndim > 1:
        order = np.random.default_rng(seed).permutation(x.ndim)
        yield hg.asarray(x).transpose(tuple(int(d) for d in order)), x.transpose(order)
    if x.ndim and x.shape[-1] > 2:
        yield hg.asarray(x)[..., ::-2], x[..., ::-2]
    if x.ndim and x.shape[0] > 1:
        yield hg.asarray(x)[1:], x[1:]


def same(own, right, what=""):
    """The same shape, type and values; NaN is NaN, and which zero it is counts."""
    right = np.asarray(right)
    assert own.shape == right.shape and str(own.dtype) == str(right.dtype), f"{what}: {own.shape} {own.dtype}, {right.shape} {right.dtype}"
    own = own.numpy()
    assert np.array_equal(own, right, equal_nan=right.dtype.kind == "f"), what
    if right.dtype.kind == "f":
        assert np.array_equal(np.signbit(own[own == 0]), np.signbit(right[right == 0])), what


def all_same(own, right, what=""):
    assert len(own) == len(right)
    for part, other in zip(own, right, strict=True):
        same(part, other, what)


# ---- masks and places -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", TYPES)
def test_places(kind):
    for seed, shape in enumerate(SHAPES):
        for own, x in views(numbers(kind, shape, seed), seed):
            all_same(hg.nonzero(own), np.nonzero(x), shape)
            same(hg.argwhere(own), np.argwhere(x), shape)
            same(hg.flatnonzero(own), np.flatnonzero(x), shape)
            assert int(hg.count_nonzero(own)) == np.count_nonzero(x)


@pytest.mark.parametrize("kind", TYPES)
def test_masks(kind):
    rng = np.random.default_rng(5)
    for seed, shape in enumerate(SHAPES):
        for own, x in views(numbers(kind, shape, seed), seed):
            for share in (0, 0.1, 0.5, 0.9, 1):
                mask = rng.random(x.shape) < share
                same(own[hg.asarray(mask)], x[mask], shape)
                same(hg.masked_select(own, mask), x[mask], shape)
                same(hg.extract(mask, own), np.extract(mask, x), shape)
            if x.ndim > 1:
                rows = rng.random(x.shape[0]) < 0.5
                same(own[hg.asarray(rows)], x[rows], shape)
                same(hg.masked_select(own, mask[:1]), x[np.broadcast_to(mask[:1], x.shape)] if x.shape[0] else x.reshape(-1)[:0], shape)
            for axis in range(x.ndim):
                condition = rng.random(rng.integers(0, x.shape[axis] + 1)) < 0.5
                same(hg.compress(condition, own, axis=axis), np.compress(condition, x, axis=axis), (shape, axis))
            same(hg.compress(mask.ravel()[:200], own), np.compress(mask.ravel()[:200], x), shape)


def test_masks_of_no_axes():
    x = hg.asarray(3.0)
    for holds in (True, False):
        same(x[hg.asarray(holds)], np.float32([3.0][:holds]))
        same(hg.masked_select(x, holds), np.float32([3.0][:holds]))
        same(hg.argwhere(holds), np.argwhere(holds))
        same(hg.flatnonzero(holds), np.flatnonzero(holds))


def test_a_mask_is_computed_on_the_way():
    x = np.random.default_rng(1).standard_normal((300, 70)).astype("f4")
    own = hg.asarray(x)
    same(own[own > 0.5] * 2, x[x > 0.5] * 2)
    same((own * 2)[own > 0.5], (x * 2)[x > 0.5])
    same(hg.nonzero(own > 0.5)[1], np.nonzero(x > 0.5)[1])
    with hg.eager():
        same(own[own > 0.5] * 2, x[x > 0.5] * 2)
    same(hg.unique(hg.floor(own)), np.unique(np.floor(x)))


def test_assignment_of_a_value_for_each():
    rng = np.random.default_rng(2)
    for shape in ((5,), (300,), (7, 50), (4, 1, 30)):
        x, mask = rng.standard_normal(shape).astype("f4"), rng.random(shape) < 0.5
        values = rng.standard_normal(int(mask.sum())).astype("f4")
        own = hg.asarray(x, copy=True)
        own[hg.asarray(mask)] = hg.asarray(values)
        x[mask] = values
        same(own, x)
        with pytest.raises(ValueError):
            own[hg.asarray(mask)] = hg.zeros(values.size + 2)


# ---- where a size is given --------------------------------------------------------------------------------------------

def test_a_size_is_given():
    """As many as are asked for, then 0: nothing is read, so jit and vmap take it."""
    x = numbers("int32", (6, 50), 3)
    for own in (hg.asarray(x), hg.asarray(x).T):
        right = [np.pad(part, (0, 400))[:400] for part in np.nonzero(own.numpy())]
        all_same(hg.nonzero(own, size=400), right)
        same(hg.argwhere(own, size=400), np.stack(right, 1))
        all_same(hg.jit(lambda y: hg.nonzero(y, size=400))(own), right)
    rows = hg.vmap(lambda row: hg.masked_select(row, row > 0, size=30))(hg.asarray(x))
    same(rows, np.stack([np.pad(row[row > 0], (0, 30))[:30] for row in x]))
    same(hg.vmap(hg.vmap(lambda row: hg.flatnonzero(row, size=4)))(hg.asarray(x.reshape(2, 3, 50))),
         np.stack([np.flatnonzero(row)[:4] for row in x]).reshape(2, 3, 4))


def test_jit_reads_a_size_again():
    f = hg.jit(lambda x: hg.unique(x[x > 1]) * 2)
    for values in ([1.0, 2.0, 3.0], [0.0, 0.0, 5.0], [4.0, 4.0, 4.0], [0.0, 0.0, 0.0]):
        same(f(hg.asarray(values)), np.unique(np.float32([v for v in values if v > 1])) * 2)


@pytest.mark.parametrize("call", [lambda x: x[x > 0], lambda x: hg.nonzero(x)[0], hg.unique, hg.run_lengths, lambda x: hg.setdiff1d(x, x)])
def test_vmap_says_what_it_cannot_do(call):
    with pytest.raises(ValueError, match=r"another one for each example of vmap.*has a size that depends on values.*hologram.where"):
        hg.vmap(call)(hg.ones((3, 4)))


def test_gradients():
    """A selected element's gradient goes back to where it stood."""
    x = np.float32([[3.0, -1.0, 2.0], [0.5, 4.0, -2.0]])
    weights = np.float32([1.0, 10.0, 100.0, 1000.0])
    own = hg.asarray(x)
    right = np.zeros_like(x)
    right[x > 0] = weights
    same(hg.grad(lambda y: (y[y > 0] * weights).sum())(own), right)
    same(hg.grad(lambda y: (hg.masked_select(y, y > 0, size=6)[:4] * weights).sum())(own), right)
    right[x > 2.5] *= 1
    same(hg.grad(lambda y: (hg.unique(y)[2:] * weights).sum())(own), np.float32([[100.0, 0.0, 10.0], [1.0, 1000.0, 0.0]]))
    same(hg.jit(hg.grad(lambda y: (hg.masked_select(y, y > 0, size=2) * weights[:2]).sum()))(own), np.float32([[1, 0, 10], [0, 0, 0]]))


# ---- values that occur ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", TYPES)
def test_unique(kind):
    for seed, shape in enumerate(SHAPES[:-1]):
        for own, x in views(numbers(kind, shape, seed), seed):
            for equal_nan in (True, False):
                right = np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan)
                made = hg.unique(own, True, True, True, equal_nan=equal_nan)
                same(made[0] + 0 if x.dtype.kind == "f" else made[0], right[0] + 0 if x.dtype.kind == "f" else right[0], shape)
                same(made[3], right[3], shape)
                if equal_nan or x.dtype.kind != "f":
                    same(made[1], right[1], shape)
                    same(made[2], right[2].reshape(x.shape), shape)
                if x.dtype.kind == "f" and x.size:
                    assert np.array_equal(made[0].numpy()[made[2].numpy()], x, equal_nan=True)
            same(hg.unique_values(own), hg.unique(own, equal_nan=False).numpy())
            assert hg.unique_counts(own).counts.tolist() == hg.unique_all(own).counts.tolist()
            same(hg.unique_inverse(own).inverse_indices, hg.unique_all(own).inverse_indices.numpy())


@pytest.mark.parametrize("kind", ["bool", "int8", "uint32", "int64", "float32", "float64"])
def test_unique_along_an_axis(kind):
    rng = np.random.default_rng(7)
    for shape in ((1, 1), (5, 2), (2, 5), (60, 2), (30, 1, 2), (3, 40, 2), (0, 2), (2, 3, 4)):
        x = rng.integers(0, 2, shape).astype(kind)
        for axis in range(x.ndim):
            if x.shape[axis] == 0 or x.size == 0:
                continue
            right = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            made = hg.unique(hg.asarray(x), True, True, True, axis=axis)
            all_same(made, [right[0], right[1], right[2].reshape(-1), right[3]], (shape, axis))
            same(hg.unique(hg.asarray(x), axis=axis - x.ndim), right[0])


@pytest.mark.parametrize("kind", ["int64", "float32", "bool"])
def test_unique_consecutive(kind):
    torch = pytest.importorskip("torch")
    for seed, shape in enumerate([(0,), (1,), (300,), (1000,), (6, 50), (5, 4, 3)]):
        x = numbers(kind, shape, seed) if kind != "int64" else np.random.default_rng(seed).integers(0, 2, shape)
        for axis in (None, *range(x.ndim)):
            if x.size == 0 and axis is not None:
                continue
            right = torch.unique_consecutive(torch.tensor(x), return_inverse=True, return_counts=True, dim=axis)
            made = hg.unique_consecutive(hg.asarray(x), True, True, axis)
            all_same(made, [part.numpy() for part in right], (shape, axis))
            same(hg.unique_consecutive(hg.asarray(x), axis=axis), right[0].numpy())


@pytest.mark.parametrize("kind", TYPES)
def test_runs(kind):
    for seed, size in enumerate(LINES):
        x = np.sort(numbers(kind, (size,), seed)) if seed % 2 else numbers(kind, (size,), seed)
        values, starts, lengths = hg.run_lengths(hg.asarray(x))
        begins = np.flatnonzero(np.concatenate([[True], x[1:] != x[:-1]])) if size else np.arange(0)
        same(values, x[begins])
        same(starts, begins)
        same(lengths, np.diff([*begins, size]) if size else begins)
        assert np.array_equal(hg.repeat(values, lengths).numpy(), x, equal_nan=kind[0] == "f")


# ---- sets -------------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", TYPES)
def test_sets(kind):
    for seed, (m, n) in enumerate((m, n) for m in LINES for n in LINES):
        x, y = numbers(kind, (m,), seed), numbers(kind, (n,), seed + 100)
        if seed % 3 == 0 and kind != "bool":
            y = y[y != y[:1]] if n else y
        own = hg.asarray(x), hg.asarray(y)
        same(hg.isin(*own), np.isin(x, y), (m, n))
        same(hg.isin(*own, invert=True), np.isin(x, y, invert=True), (m, n))
        for name in ("union1d", "intersect1d", "setdiff1d", "setxor1d"):
            made, right = getattr(hg, name)(*own), getattr(np, name)(x, y)
            if kind[0] == "f":  # which zero NumPy keeps is chance
                made, right = made + 0, right + 0
            same(made, right, (name, m, n))
        made, right = hg.intersect1d(*own, return_indices=True), np.intersect1d(x, y, return_indices=True)
        all_same(made[1:], right[1:], (m, n))


def test_sets_of_several_axes_and_types():
    x, y = np.arange(12).reshape(3, 4), np.float32([[2.0, 2.5], [11.0, -1.0]])
    same(hg.isin(hg.asarray(x), y), np.isin(x, y))
    same(hg.intersect1d(hg.asarray(x), hg.asarray(y)), np.float32([2, 11]))
    same(hg.union1d(hg.asarray(x), [3, 40]), np.union1d(x, [3, 40]))
    same(hg.isin(3, [1, 3]), np.isin(3, [1, 3]))
    with pytest.raises(hg.Error, match="no integer type holds both"):
        hg.isin(hg.asarray([1], "int64"), hg.asarray([1], "uint64"))


def test_of_many():
    """So many elements that counts are scanned in several launches."""
    x = np.random.default_rng(9).integers(0, 5000, 1_100_001)
    own = hg.asarray(x)
    same(hg.flatnonzero(own), np.flatnonzero(x))
    same(own[own < 700], x[x < 700])
    all_same(hg.unique(own, True, True, True), np.unique(x, return_index=True, return_inverse=True, return_counts=True))


# ---- errors -----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, error, says", [
    (lambda: hg.nonzero(3.0), ValueError, r"without axes has no places; write hg.argwhere\(x\)"),
    (lambda: hg.masked_select(hg.ones(3), hg.ones(3)), TypeError, "a mask is of bool, not float32; write mask != 0"),
    (lambda: hg.masked_select(hg.ones(3), hg.asarray([True, False])), ValueError, "broadcast"),
    (lambda: hg.compress([True] * 4, hg.ones(3)), ValueError, "4 conditions for an axis of 3 elements"),
    (lambda: hg.compress([[True]], hg.ones(3)), ValueError, r"a vector, not of shape \(1, 1\); hg.masked_select takes any"),
    (lambda: hg.compress([True], hg.ones((3, 2)), axis=2), IndexError, "compress"),
    (lambda: hg.unique(hg.ones((3, 2)), axis=5), IndexError, "unique"),
    (lambda: hg.nonzero(hg.ones(3), size=-1), hg.Error, "size is -1; a result has 0 elements or more"),
])
def test_bad_calls(call, error, says):
    with pytest.raises(error, match=says):
        call()


# ---- devices ----------------------------------------------------------------------------------------------------------

def digest():
    """Of results over types and sizes."""
    made = hashlib.sha256()
    for seed, kind in enumerate(TYPES):
        for size in (5, 257, 1500):
            x = hg.asarray(numbers(kind, (size,), seed))
            y = hg.asarray(numbers(kind, (40,), seed + 1))
            parts = [*hg.nonzero(x), x[x == y[0]], *hg.unique(x, True, True, True), hg.isin(x, y), hg.setxor1d(x, y), *hg.run_lengths(x),
                     hg.masked_select(x, x == y[0], size=100)]
            for part in parts:
                made.update(part.numpy().tobytes())
    return made.hexdigest()


@double_of_cuda.needed
def test_the_double_of_cuda_has_the_same_bits():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert double_of_cuda.digest_of("test_selection") == digest()
