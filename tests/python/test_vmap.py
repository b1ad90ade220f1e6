"""hg.vmap has the bits of a loop over the examples: every operation of the table, and programs; with gradients as PyTorch's."""

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest

import double_of_cuda
import hologram as hg
from program_draft import Draft
from random_programs import OURS, Program

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import gen_operations  # noqa: E402

BATCH = 3
RNG = np.random.default_rng(7)
ROWS = {o.name: o for o in gen_operations.load()}


def made(words, shape, batched):
    shape = (BATCH, *shape) if batched else shape
    words = words.split()
    if words[0] in ("number", "float", "any"):
        return hg.asarray(RNG.standard_normal(shape).astype("f4"))
    if words[0] == "integer":
        return hg.asarray(RNG.integers(0, 3, shape))
    return hg.asarray(RNG.integers(0, 2, shape).astype(bool))


# what each takes where it is not (2, 3) of each input: shapes, and arguments by name
CALLS = {
    "reshape": [[(2, 3)], {"shape": (3, 2)}], "permute": [[(2, 3, 4)], {"axes": (1, 2, 0)}],
    "slice": [[(2, 5)], {"axis": 1, "start": 4, "stop": 0, "step": -2}], "broadcast": [[(1, 3)], {"shape": (4, 2, 3)}],
    "squeeze": [[(2, 1, 3)], {"axis": 1}], "axis_numbers": [[(3,)], {"number": 0, "length": 3}], "bitcast": [[(2, 3)], {"dtype": "uint32"}],
    "dot": [[(5,), (5,)], {}], "matvec": [[(2, 4, 5), (2, 5)], {}], "matmul": [[(2, 4, 5), (5, 3)], {}],
    "take": [[(4, 3), (2, 2)], {"axis": 0}], "take_along": [[(3, 4), (3, 2)], {}], "scatter": [[(3, 4), (3, 2), (3, 2)], {}],
    **dict.fromkeys(("scatter_add", "scatter_multiply", "scatter_mean", "scatter_min", "scatter_max", "scatter_reduce"),
                    [[(3, 4), (3, 5), (3, 5)], {}]),
    "index_add": [[(3, 4), (2,), (3, 2)], {"axis": 1}], "index_copy": [[(3, 4), (2,), (2, 4)], {}], "index_fill": [[(3, 4), (2,), ()], {}],
    "index_reduce": [[(3, 4), (2,), (2, 4)], {"reduce": "amax"}], "embedding_bag": [[(4, 3), (2, 3)], {}],
    "take_where": [[(20, 30), (20, 30)], {"size": 200}], "pad": [[(2, 3), ()], {"low": (1, 0), "high": (0, 2)}],
    "update": [[(4, 5), (2, 2)], {"start": (3, 0), "stop": (0, 4), "step": (-2, 2)}], "one_hot": [[(3,)], {"classes": 4}],
    "nll": [[(2, 3), (2,), (3,)], {}], "logit_nll": [[(2, 3), (2, 1)], {}], "cross_entropy": [[(2, 3), (2,), (3,)], {}],
    "cross_entropy_of_classes": [[(2, 3), (2,), (3,)], {"smoothing": 0.1}], "layer_norm": [[(2, 3), (3,), (3,)], {}],
    "rms_norm": [[(2, 3), (3,)], {}], "batch_norm": [[(2, 3), (3,), (3,), (3,), (3,)], {}],
    "random_bits": [[(), ()], {"shape": (5,)}], "uniform": [[(), ()], {"shape": (2, 3)}], "normal": [[(), ()], {"shape": (3,)}],
    "cross_entropy_of_shares": [[(2, 3), (2, 3), (3,)], {}], "gemm": [[(2, 3), (3, 4), (2, 4)], {}], "linear": [[(2, 3), (4, 3), (4,)], {}],
    "embedding": [[(4, 3), (2,)], {}], "segment_sum": [[(4, 3), (4,)], {"num_segments": 5}],
    **dict.fromkeys(("segment_prod", "segment_max", "segment_min"), [[(4, 3), (4,)], {"num_segments": 5}]),
    "segment_mean": [[(3, 4), (4,)], {"num_segments": 5, "axis": 1}],
    "uneven_bins": [[(2, 3), (4,)], {}], "bincount": [[(2, 3), (2, 3)], {"length": 5}],
    "confusion_matrix": [[(4,), (4,), (4,)], {"classes": 5}], "even_bins": [[(2, 3), (4,)], {}], "dropout": [[(2, 3), (), ()], {}],
    "group_norm": [[(2, 4, 3), (4,), (4,)], {"groups": 2}], "instance_norm": [[(2, 3, 4), (3,), (3,)], {}], "glu": [[(2, 4)], {}],
    "prelu": [[(2, 3), (3,)], {}], "multi_margin": [[(2, 3), (2,), (3,)], {}], "cosine_embedding": [[(2, 3), (2, 3), (2,)], {}],
    "uniform_open": [[(), ()], {"shape": (3,)}], "exponential": [[(), ()], {"shape": (3,)}], "gumbel": [[(), ()], {"shape": (3,)}],
    "laplace": [[(), ()], {"shape": (3,)}], "truncated_normal": [[(), ()], {"shape": (3,)}],
    "integers": [[(), ()], {"shape": (3,), "high": 10}],
    **dict.fromkeys(("lower_solve", "upper_solve", "triangular_solve", "solve", "forward_solve"), [[(3, 3), (3, 2)], {}]),
    **dict.fromkeys(("cholesky_lower", "cholesky", "cholesky_blocks", "lu_blocks", "det", "log_abs_det", "inv", "eigh_packed", "eigh",
                    "qr_blocks", "tridiagonal", "eigh_blocks", "bidiagonal", "svd_reduced", "svd_rotated", "svd_packed"), [[(3, 3)], {}]),
}
OF_FACTORS = {"lu_solve"}  # what it takes is made by solve
BY_INTEGERS = {"dot4_ss": "int32", "dot4_uu": "int32", "dot4_us": "int32"}


def loop(function, arguments, batched):
    rows = [function(*(x[i] if is_batch else x for x, is_batch in zip(arguments, batched, strict=True))) for i in range(BATCH)]
    return [hg.stack(list(part)) for part in zip(*rows, strict=True)] if isinstance(rows[0], tuple) else [hg.stack(rows)]


def check(function, arguments, batched):
    found = hg.vmap(function, in_axes=tuple(0 if is_batch else None for is_batch in batched))(*arguments)
    for own, right in zip(found if isinstance(found, tuple) else [found], loop(function, arguments, batched), strict=True):
        assert own.dtype == right.dtype and own.shape == right.shape
        assert own.numpy().tobytes() == right.numpy().tobytes()


def call_of(name):
    row = ROWS[name]
    inputs = [part for part in row.inputs.strip('"').split(",") if part.strip()]
    words = [part.strip() for part in row.types.strip('"').split(";")]
    shapes, named = CALLS.get(name, [[(2, 3)] * max(1, len(inputs)), {}])
    types = [words[min(i, len(words) - 1)] for i in range(len(shapes))]
    if "..." in row.inputs and name not in CALLS:
        shapes, types = [(2, 3), (2, 3)], types * 2
    return shapes, types, named


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.inputs.strip('"') and name not in OF_FACTORS])
@pytest.mark.parametrize("first_alone", [False, True])
def test_every_operation(name, first_alone):
    shapes, types, named = call_of(name)
    batched = [i == 0 or not first_alone for i in range(len(shapes))]
    arguments = [made(words, shape, is_batch) for words, shape, is_batch in zip(types, shapes, batched, strict=True)]
    if name in BY_INTEGERS:
        arguments = [x.astype(BY_INTEGERS[name]) for x in arguments]
    if name not in CALLS:
        try:
            getattr(hg._core, name)(*(x[0] if is_batch else x for x, is_batch in zip(arguments, batched, strict=True)))
        except hg.InvalidArgument as error:
            pytest.skip(f"its inputs have no common shape: CALLS needs an entry ({error})")
    check(lambda *own: getattr(hg._core, name)(*own, **named), arguments, batched)
    if len(shapes) > 1 and not first_alone and name not in ("axis_numbers",):
        batched = [i > 0 for i in range(len(shapes))]
        arguments = [x if is_batch else x[0] for x, is_batch in zip(arguments, batched, strict=True)]
        check(lambda *own: getattr(hg._core, name)(*own, **named), arguments, batched)


X = RNG.standard_normal((BATCH, 4))
KEYS = hg.array(hg.random.split(hg.random.key(3), BATCH))


def steps(x):
    y = x
    for i in range(64):
        y = hg.sin(y) + 0.1 * i * x.sum()
    return y


def assigned(x):
    y = x * 2
    y[0] = hg.exp(y[1])
    y[1:3] *= y[0]
    y[x > 0.5] = 3.0
    y[[0, 2]] = x[[1, 1]]
    y.at[hg.asarray([0, 0, 3])].add(1.0)
    x[3] = 0.0  # its own
    return y * x


def masked(x):
    y = hg.where(x > 0, hg.sqrt(hg.where(x > 0, x, 1.0)), x * x)
    y[x < -0.5] = 0.0
    return y


def sorted_and_taken(x):
    order = hg.array_api.argsort(x)
    return x[order], hg.array_api.sort(x), hg.cumulative_sum(x)[order], hg.take(x, hg.argmax(x)), hg.concatenate([x, x[::-1]])


def nested(x):
    return hg.vmap(lambda a: hg.softmax(a * x) + a)(x), hg.vmap(lambda a, b: a * b, in_axes=(None, 0))(x, x)


def differentiated(x):
    value, pull = hg.vjp(assigned, x)
    slope = hg.jvp(hg.tanh, (x,), (x,))[1]
    return hg.grad(lambda z: steps(z).sum())(x), pull(value)[0], slope, hg.jacobian(masked)(x), hg.hessian(hg.norm)(x)


PROGRAMS = [steps, assigned, masked, sorted_and_taken, nested, differentiated]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("how", ["plain", "eager", "jit around", "jit inside", "checkpoint"])
def test_programs(program, how):
    x = hg.asarray(np.array(X))
    with hg.eager(how == "eager"):
        own = {"jit inside": hg.jit, "checkpoint": hg.checkpoint}.get(how, lambda f: f)(program)
        mapped = hg.vmap(own)
        found = (hg.jit(mapped) if how == "jit around" else mapped)(x)
    assert x.numpy().tobytes() == X.tobytes()
    rows = [program(hg.asarray(np.array(row))) for row in X]
    rows = rows if isinstance(rows[0], tuple) else [(row,) for row in rows]
    for part, right in zip(found if isinstance(found, tuple) else (found,), zip(*rows, strict=True), strict=True):
        assert part.numpy().tobytes() == hg.stack(list(right)).numpy().tobytes()


def digest():
    """The digest of what the programs make, and their gradients behind checkpoints, on the default executor."""
    x = hg.asarray(np.array(X))
    arrays = hg._core._arrays_of([hg.vmap(program)(x) for program in (steps, assigned, masked, sorted_and_taken, nested)], True)
    arrays.append(hg.vmap(lambda key: hg.random.normal(key, (5,)))(KEYS))
    arrays.append(hg.grad(lambda x: hg.vmap(hg.checkpoint(assigned))(x).sum())(x))
    return hashlib.sha256(b"".join(part.numpy().tobytes() for part in arrays)).hexdigest()


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_vmap") == digest()


@pytest.mark.parametrize("draw", [
    lambda key: hg.random.normal(key, (5,)), lambda key: hg.random.normal(key), lambda key: hg.random.uniform(key, (2, 3), dtype="float64"),
    lambda key: hg.random.integers(key, (7,), -5, 5), lambda key: hg.random.split(key, 3),
    lambda key: hg.random.normal(hg.random.split(key)[1], (2,)), lambda key: hg.dropout(hg.ones(5), key),
    lambda key: hg.random.normal(key, (7,), dtype="float64"), lambda key: hg.random.gumbel(key, (3, 2), dtype="float64"),
    lambda key: hg.random.gumbel(key, 5), lambda key: hg.random.integers(key, 5, 0, 2**40)])
def test_random_numbers_of_keys(draw):
    assert hg.vmap(draw)(KEYS).numpy().tobytes() == hg.stack([draw(KEYS[i]) for i in range(BATCH)]).numpy().tobytes()


def test_gradients_through_it_as_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")
    w = RNG.standard_normal((4, 2))

    def loss(m, w, x):
        return (m.tanh(x @ w) ** 2).sum() + m.logsumexp(x, 0)

    t, tw = torch.tensor(X), torch.tensor(w)
    each = torch.func.vmap(torch.func.grad(lambda w, x: loss(torch, w, x)), in_dims=(None, 0))(tw, t)
    own = hg.vmap(hg.grad(lambda w, x: loss(hg, w, x)), in_axes=(None, 0))(hg.asarray(w), hg.asarray(X))
    np.testing.assert_allclose(own.numpy(), each, rtol=1e-12)
    through = torch.func.grad(lambda w: torch.func.vmap(lambda x: loss(torch, w, x))(t).pow(2).sum())(tw)
    own = hg.grad(lambda w: (hg.vmap(lambda x: loss(hg, w, x))(hg.asarray(X)) ** 2).sum())(hg.asarray(w))
    np.testing.assert_allclose(own.numpy(), through, rtol=1e-12)


@pytest.mark.parametrize("function", [hg.norm, hg.logsumexp, hg.std, lambda x: (hg.softmax(x) * x).sum(), lambda x: hg.max(x) + hg.prod(x)])
def test_special_points_of_gradients(function):
    x = hg.asarray([[0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [-np.inf, 1.0, 2.0], [np.inf, 2.0, 1.0]])
    through = hg.grad(lambda x: hg.vmap(function)(x).sum())(x).numpy()
    inside = hg.vmap(hg.grad(function))(x).numpy()
    alone = np.stack([hg.grad(function)(x[i]).numpy() for i in range(4)])
    assert inside.tobytes() == alone.tobytes()
    np.testing.assert_array_equal(through, alone)


def test_axes_and_nests():
    x, y = hg.asarray(X), hg.asarray(X.T.copy())
    assert hg.vmap(lambda a, b: a + b, in_axes=(0, 1), out_axes=1)(x, y).tolist() == (X + X).T.tolist()
    assert hg.vmap(lambda a, b: a + b, in_axes=(0, -1), out_axes=-1)(x, y).tolist() == (X + X).T.tolist()
    made = hg.vmap(lambda p, k: {"a": p["w"] * k, "b": [p["b"], k]}, in_axes=({"w": 0, "b": None}, None), out_axes={"a": 0, "b": None})(
        {"w": x, "b": hg.ones(2)}, hg.asarray(2.0))
    assert made["a"].tolist() == (X * 2).tolist() and made["b"][0].tolist() == [1, 1] and made["b"][1].tolist() == 2
    assert hg.vmap(lambda a, scale: a * scale, in_axes=(0, None))(x, 2.0).tolist() == (X * 2).tolist()
    assert hg.vmap(lambda a, scale: a * scale)(x, scale=2.0).tolist() == (X * 2).tolist()
    assert hg.vmap(lambda a: hg.ones(2))(x).tolist() == [[1, 1]] * BATCH
    assert hg.vmap(lambda a: a.sum() * hg.ones(2))(hg.zeros((0, 3))).shape == (0, 2)
    assert hg.vmap(lambda a: (a > 0).astype("int64"))(x).tolist() == (X > 0).astype(int).tolist()


def test_what_is_refused():
    x = hg.asarray(X)
    outside = hg.zeros(4, dtype="float64")
    kept = []

    def assigns(a):
        outside[:] = a
        return a

    for call, kind, sentence in [
        (lambda: hg.vmap(lambda a: a if a[0] > 0 else -a)(x), ValueError, "another one for each example"),
        (lambda: hg.vmap(lambda a: a[a > 0])(x), ValueError, "hologram.where"),
        (lambda: hg.vmap(lambda a: hg.array_api.nonzero(a)[0])(x), ValueError, "size that depends on values read"),
        (lambda: hg.vmap(lambda a: a.numpy())(x), ValueError, "another one for each example"),
        (lambda: hg.vmap(lambda a: hg.asarray(a.tolist()))(x), ValueError, "another one for each example"),
        (lambda: hg.vmap(assigns)(x), ValueError, "from outside the function"),
        (lambda: hg.vmap(lambda a, b: a)(x, hg.ones((2, 2))), ValueError, "2 and 3 examples"),
        (lambda: hg.vmap(lambda a: a, in_axes=None)(x), ValueError, "names no array"),
        (lambda: hg.vmap(lambda a: a, in_axes=2)(x), ValueError, "axis 2 is out of range"),
        (lambda: hg.vmap(lambda a: a, in_axes=(0, 0))(x), ValueError, "2 parts for 1 arguments"),
        (lambda: hg.vmap(lambda a: a, in_axes=([0],))(x), ValueError, "has not the form"),
        (lambda: hg.vmap(lambda a, b: a)(x, 2.0), TypeError, "None says that all examples share it"),
        (lambda: hg.vmap(lambda a: 1.0)(x), TypeError, "float"),
        (lambda: hg.vmap(lambda a: a.reshape((1,) * 7 + (4,)))(x), ValueError, "at most 8 axes"),
    ]:
        with pytest.raises(kind, match=sentence):
            call()
    assert outside.tolist() == [0] * 4
    hg.vmap(lambda a: kept.append(a * 2) or a)(x)
    with pytest.raises(ValueError):
        kept[0].tolist()


def test_an_index_out_of_range_is_a_fault():
    """Its axis is counted as the function of one example counts."""
    x, places = hg.asarray(np.array(X)[:3, :4]), hg.asarray([0, 1, 4])
    words = "index 4 is out of range of axis 0, which has 4 elements"
    for program in (lambda a, i: a[i], lambda a, i: hg.take(a, i), hg.grad(lambda a, i: a[i]), lambda a, i: a.at[i].add(1.0),
                    lambda a, i: hg.vmap(lambda one: hg.take(one, i))(hg.stack([a, a]))):  # fmt: skip
        with pytest.raises(IndexError, match=words):
            hg.vmap(program)(x, places).tolist()
    with pytest.raises(IndexError, match="index 4 is out of range of axis 1, which has 4 elements"):
        hg.vmap(lambda a, i: hg.take(hg.stack([a, a]), i, axis=1))(x, places).tolist()


def bits_of(arrays):
    return [(str(x.dtype), x.shape, x.numpy().tobytes()) for x in arrays]


def rows_of(program, function):
    """What a random program makes of its inputs, and of others; None: it raises."""
    rows = [program.inputs, [value * 0.5 if value.dtype.kind == "f" else value for value in program.inputs]]
    try:
        return rows, [function(*(hg.array(value) for value in row)) for row in rows]
    except (ValueError, IndexError, TypeError, OverflowError):
        return rows, None


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part):
    """Values, what is assigned to arguments, and gradients inside; a program that reads elements is refused."""
    same = refused = 0
    for seed in range(part * 50, part * 50 + 50):
        draft = Draft(seed)
        program = Program(draft.source(), list(draft.inputs.values()))

        def values(*arrays, program=program):
            own = list(arrays)
            return [*program.values(OURS, own), *own]

        def total(*arrays, program=program):
            return program.total(OURS, arrays, hg.asarray)

        rows, right = rows_of(program, values)
        if right is None:
            continue
        batch = [hg.array(np.stack(pair)) for pair in zip(*rows, strict=True)]
        try:
            found = hg.vmap(values)(*batch)
            gradients = hg.vmap(hg.grad(total, tuple(program.by)))(*batch)
        except ValueError as error:
            assert "another one for each example" in str(error), program.source
            refused += 1
            continue
        alone = [hg.grad(total, tuple(program.by))(*(hg.array(value) for value in row)) for row in rows]
        for own, pairs in ((found, right), (gradients, alone)):
            assert bits_of(own) == bits_of([hg.stack(list(pair)) for pair in zip(*pairs, strict=True)]), program.source
        same += 1
    assert same > 20 and refused > 2
