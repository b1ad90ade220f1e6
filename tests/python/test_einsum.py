"""einsum beside NumPy's and PyTorch's, in values, gradients and the number of multiplications; bits beside those of matmul."""

import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg
from hologram import _einsum

RNG = np.random.default_rng(40)
TEXTS = ["ij,jk->ik", "ij,jk", "ij,kj->ki", "ii", "ii->i", "iij->ji", "iji", "iii->i", "i,i", "i,j->ji", "ij,j->i", "j,ij", "ij->",
         "ij->ji", "ba", "ij,ij->ij", "ij,ji->", "...ij,...jk", "i...->...", "...i,i...->...", "bij,bjk->bik", "bhqd,bhkd->bhqk",
         "bhqk,bkhd->bqhd", "a,ab,abc->c", "ij,jk,kl->il", "ij,kl,kl->ij", " i j , j k -> k i ", "ab,bc,cd,de->ea", "i,ij,j", "Ab,bA->b",
         "b...a,a->...b", "ijkl,kl->ij", "ijk,ilm,njm,nlk->"]  # fmt: skip
SIZES = {name: 2 + i % 4 for i, name in enumerate(string.ascii_letters)}


def operands_of(text, dtype="f4", more=(3, 2)):
    arrays = []
    for part in text.replace(" ", "").partition("->")[0].split(","):
        before, dots, after = part.partition("...")
        shape = [SIZES[n] for n in before] + list(more) * bool(dots) + [SIZES[n] for n in after]
        arrays.append((RNG.integers(-4, 5, shape) if dtype[0] in "iu" else RNG.standard_normal(shape)).astype(dtype))
    return arrays


def agrees(own, right, of):
    own = own.numpy()
    assert own.shape == right.shape and own.dtype == right.dtype
    np.testing.assert_allclose(own, right, rtol=2e-5, atol=2e-5 * max(1, np.abs(right).max(initial=0)), err_msg=str(of))


@pytest.mark.parametrize("text", TEXTS)
def test_beside_numpy(text):
    for dtype in ("f4", "f8", "i4", "i1"):
        arrays = operands_of(text, dtype)
        right = np.einsum(text, *arrays)
        agrees(hg.einsum(text, *map(hg.asarray, arrays)), right, text)
        if dtype != "f4":
            continue
        agrees(hg.einsum(text, *arrays, optimize=False), right, text)  # NumPy's arrays
        agrees(hg.einsum(text, arrays) if len(arrays) > 1 else hg.einsum(text, arrays[0]), right, text)
        path = np.einsum_path(text, *arrays, optimize="greedy")[0]
        agrees(hg.einsum(text, *arrays, optimize=path), right, text)


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_beside_torch(text):
    torch = pytest.importorskip("torch")
    arrays = operands_of(text, "f8")
    tensors = [torch.tensor(x, requires_grad=True) for x in arrays]
    y = torch.einsum(text, *tensors)
    weight = RNG.standard_normal(y.shape)
    right = torch.autograd.grad((y * torch.tensor(weight)).sum(), tensors)
    own = hg.grad(lambda *x: (hg.einsum(text, *x) * hg.asarray(weight)).sum(), argnums=tuple(range(len(arrays))))(*map(hg.asarray, arrays))
    for a, b in zip(own, right, strict=True):
        agrees(a, b.numpy(), text)


@st.composite
def problems(draw):
    """Any number of arrays with any names, sizes of 1 and 0 among them, '...' and a result."""
    sizes = dict(zip("abcde", draw(st.lists(st.integers(0, 4), min_size=5, max_size=5))))
    more = draw(st.lists(st.integers(1, 3), max_size=2))
    terms, shapes = [], []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from("abcde"), max_size=4))
        lone = {n for n in names if draw(st.integers(0, 9)) == 0}
        shape, names = [1 if n in lone else sizes[n] for n in names], list(names)
        if draw(st.booleans()):
            at, rank = draw(st.integers(0, len(names))), draw(st.integers(0, len(more)))
            dots = [draw(st.sampled_from((1, n))) for n in more[len(more) - rank :]]
            names.insert(at, "...")
            shape[at:at] = dots
        terms.append("".join(names))
        shapes.append(shape)
    if draw(st.booleans()):
        return ",".join(terms), shapes
    letters = sorted({n for term in terms for n in term if n != "."})
    kept = draw(st.permutations([n for n in letters if draw(st.booleans())]))
    dots = ["..."] if any("..." in term for term in terms) else []
    at = draw(st.integers(0, len(kept)))
    return f"{','.join(terms)}->{''.join([*kept[:at], *dots, *kept[at:]])}", shapes


@settings(max_examples=200)
@given(problems())
def test_random_problems(problem):
    text, shapes = problem
    arrays = [RNG.integers(-3, 4, shape).astype("f8") for shape in shapes]
    try:
        right = np.einsum(text, *arrays)
    except ValueError:  # of a diagonal of unequal sizes, for one
        with pytest.raises(ValueError, match="^einsum: "):
            hg.einsum(text, *arrays).numpy()
        return
    for optimize in (True, False):
        own = hg.einsum(text, *arrays, optimize=optimize).numpy()
        assert own.shape == right.shape and np.array_equal(own, right), text


def test_bits():
    """Products of matrices are matmul's, whatever the arrays lie like; eager, lazy and jitted alike."""
    a, b, v = (hg.asarray(RNG.standard_normal(shape).astype("f4")) for shape in ((37, 300), (300, 41), (300,)))
    same = {"ij,jk": (a @ b, (a, b)), "ji,jk->ik": (a @ b, (hg.array(a.T), b)), "ij,kj->ki": ((a @ b).T, (a, hg.array(b.T))),
            "ij,j->i": (a @ v, (a, v)), "i,ij": (v @ b, (v, b)), "i,i": ((v * v).sum(), (v, v)), "ij->j": (a.sum(0), (a,))}  # fmt: skip
    for text, (right, arrays) in same.items():
        bits = right.numpy().tobytes()
        assert hg.einsum(text, *arrays).numpy().tobytes() == bits, text
        assert hg.jit(lambda *x, text=text: hg.einsum(text, *x))(*arrays).numpy().tobytes() == bits, text
        with hg.eager():
            assert hg.einsum(text, *arrays).numpy().tobytes() == bits, text


def cost_of(text, shapes, path):
    """Multiplications of a path, as those of a result's and the summed sizes."""
    terms, result = text.partition("->")[0].split(","), text.partition("->")[2]
    size = {name: n for term, shape in zip(terms, shapes) for name, n in zip(term, shape)}
    sets, total = [set(term) for term in terms], 0
    for step in path:
        chosen = [sets[i] for i in step]
        sets = [s for i, s in enumerate(sets) if i not in step]
        total += int(np.prod([size[n] for n in set().union(*chosen)], dtype=object))
        sets.append(set().union(*chosen) & set(result).union(*sets))
    return total


@pytest.mark.parametrize("count", [3, 4, 5, 6, 11])
def test_paths_beside_numpy(count):
    """No path of NumPy's costs less; of more arrays than are tried in every order, none from left to right."""
    for _ in range(6):
        names = string.ascii_lowercase[: count + 2]
        terms = ["".join(RNG.permutation(list(names))[: RNG.integers(1, 4)]) for _ in range(count)]
        result = "".join(n for n in names if n in "".join(terms) and RNG.random() < 0.2)
        size = {n: int(RNG.integers(2, 40)) for n in names}
        shapes = [tuple(size[n] for n in term) for term in terms]
        # what stands in one array alone is summed before anything is multiplied
        terms = ["".join(n for n in t if n in result or any(n in o for k, o in enumerate(terms) if k != i)) for i, t in enumerate(terms)]
        shapes, text = [tuple(size[n] for n in t) for t in terms], f"{','.join(terms)}->{result}"
        own = _einsum._best_path(tuple(map(tuple, terms)), tuple(result), tuple(size.items()))
        assert len(own) == count - 1 and all(len(step) == 2 for step in own)
        others = [[(0, 1)] + [(0, count - 1 - k) for k in range(1, count - 1)]]
        if count <= 6:
            others = [np.einsum_path(text, *[np.empty(s) for s in shapes], optimize=how)[0][1:] for how in ("optimal", "greedy")]
        for other in others:  # in which more than two are at times joined at once
            assert any(len(step) > 2 for step in other) or cost_of(text, shapes, own) <= cost_of(text, shapes, other), text


def test_types():
    x, y = hg.ones((2, 3), "float16"), hg.arange(3)
    assert hg.einsum("ij,j->i", x, y).dtype == "float16" and hg.einsum("i->", hg.asarray(np.ones(300, "i1"))).dtype == "int8"
    assert hg.einsum(",i->i", 2.5, y).dtype == "float32" and hg.einsum(",i->i", 2, y).dtype == "int64"
    assert hg.einsum(",i->i", 2.5, np.ones(3)).tolist() == [2.5] * 3 and hg.einsum(",", 2, 3).item() == 6
    mask = np.eye(3, dtype=bool)
    for text, arrays in (("ij,jk", (mask, ~mask)), ("ij->i", (mask & False,)), ("ii->i", (mask,)), ("i,i", (mask[0], mask[1]))):
        own = hg.einsum(text, *arrays).numpy()
        assert own.dtype == bool and np.array_equal(own, np.einsum(text, *arrays))
    assert hg.einsum("ij->ij", hg.asarray(mask)).dtype == "bool"


def test_lists():
    a, b = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((4, 5))
    agrees(hg.einsum(a, [0, 1, 2], b, [2, 3], [3, 0, 1]), np.einsum(a, [0, 1, 2], b, [2, 3], [3, 0, 1]), "lists")
    agrees(hg.einsum(a, [..., 2], b, [2, 3]), np.einsum(a, [..., 2], b, [2, 3]), "lists")
    agrees(hg.einsum(a, [0, 51, 30]), np.einsum(a, [0, 51, 30]), "lists")


def test_the_result_is_an_array_of_its_own():
    x = hg.ones((2, 2))
    y = hg.einsum("ij", x)
    y[0, 0] = 5.0
    assert x[0, 0] == 1


@pytest.mark.parametrize("arguments, said", [
    (("ij,jk", np.ones((2, 3))), "names of 2 arrays stand in 'ij,jk'; 1 are given"),
    (("ijk", np.ones((2, 3))), "'ijk' names 3 axes of array 0, which has 2"),
    (("i...jk", np.ones((2, 3))), "'i...jk' names 3 axes of array 0, which has 2"),
    (("ij->z", np.ones((2, 3))), "'z' is the name of no array's axis in the result 'z'"),
    (("ij->ii", np.ones((2, 3))), "'i' stands twice in the result 'ii'"),
    (("ij,jk", np.ones((2, 3)), np.ones((4, 5))), "axis 'j' has 3 elements in array 0 and 4 in array 1"),
    (("...i,...i", np.ones((2, 3)), np.ones((4, 3))), "axis -1 of '...' has 2 elements in array 0 and 4 in array 1"),
    (("i%j", np.ones((2, 3))), "'%' in 'i%j'; axes are named by letters"),
    (("i->j->k", np.ones(3)), "'-' in 'i->j->k'"),
    (("....i", np.ones((2, 3))), "'...' stands once for each array"),
    (("...i->i", np.ones((2, 3))), "'...' stands for 1 axes, and the result has none"),
    (("i,i,i", *[np.ones(3)] * 3, ), None),
])  # fmt: skip
def test_bad_names(arguments, said):
    if said is None:
        for path, wrong in (([(0, 1)], "leaves 2 arrays, not"), ([(0, 3), (0, 1)], r"\(0, 3\) in the path"), ([(0, 0)], r"\(0, 0\) in")):
            with pytest.raises(ValueError, match=wrong):
                hg.einsum(*arguments, optimize=path)
        return
    with pytest.raises(ValueError) as error:
        hg.einsum(*arguments)
    assert str(error.value).startswith("einsum: ") and said in str(error.value)


def test_bad_operands():
    for arguments, said in ((("ij",), "0 are given"), ((), "it takes the names of axes and arrays"),
                            ((np.ones(3), "i"), "stands the list of its axes'"),
                            ((np.ones(3), [52]), "numbered from 0 to 51"), ((np.ones(3), [-1]), "numbered from 0 to 51"),
                            (("i,i", 2.5, np.arange(3)), "'i' names 1 axes of array 0, which has 0"),
                            (("i", "abc"), "an Array cannot be made of str")):
        with pytest.raises((ValueError, TypeError), match=said):
            hg.einsum(*arguments)


def test_arrays_stay_on_their_device():
    other = hg.Executor(backend="cpu")
    x = hg.array(np.ones((3, 3)), device=other)
    for y in (hg.einsum("ij,jk", x, np.ones((3, 2))), hg.einsum("ii,", x, 2.0), hg.einsum("ij,j->i", [[1.0] * 3] * 2, x[0])):
        assert y.numpy() is not None and y.device == other
