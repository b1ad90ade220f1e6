"""Scans beside NumPy, bit for bit, in the order that their rows say: every operator and type, any axis, both directions, lines of one
chunk, of several in a block and of several launches; and in graphs: what they are made of, what reads them, their gradients."""

import ml_dtypes
import numpy as np
import pytest

from hgops import FLOATS, NO_FUSION, TYPES, Computation, Error, apply, laid_out
from test_values import INTEGERS

pytestmark = pytest.mark.engine

CHUNK = 256
CANONICAL = {"f32": 0x7fc00000, "f64": 0x7ff8000000000000, "f16": 0x7e00, "bf16": 0x7fc0}
SHAPES = [((2,), 0), ((3,), 0), ((31,), 0), ((7, 5), 0), ((3, 70), -1), ((2, 130, 3), 1), ((2, 256), 1), ((3, 257), 1), ((9, 33), 0),
          ((40, 17), 0), ((300, 9), 0), ((2, 513, 10), 1), ((17, 33), 0), ((300, 70), 0), ((2, 40, 3, 5), 1), ((3, 270, 2, 9), 1),
          ((1, 1), 0), ((5, 1), 1), ((0, 3), 1), ((3, 0), 1), ((0,), 0),
          ((2, 1, 3, 1, 2, 1, 2, 5), 2)]
LONG = [((3, 1025), 1), ((4096,), 0), ((2, 4097), 1), ((70000,), 0), ((9, 5000), 1), ((5000, 9), 0), ((66000, 8), 0), ((70000, 3), 0)]


def greater(a, b):
    return np.where(np.isnan(a) | (a > b) | (a == b) & ~np.signbit(a), a, b) if a.dtype.kind == "f" else np.maximum(a, b)


def smaller(a, b):
    return np.where(np.isnan(a) | (a < b) | (a == b) & np.signbit(a), a, b) if a.dtype.kind == "f" else np.minimum(a, b)


def together(a, b):
    """log(e^a + e^b) by the exponential and the logarithm of the table."""
    m = greater(a, b)
    d = smaller(a, b) - m
    return np.where(np.isnan(d), m, m + (apply("log1p", apply("exp", d)) if d.size else d))


OPERATORS = {"sum": (np.add, 0), "prod": (np.multiply, 1), "max": (greater, -np.inf), "min": (smaller, np.inf),
             "logsumexp": (together, -np.inf)}


def identity_of(name, dtype):
    identity = OPERATORS[name][1]
    if dtype.kind == "f" or np.isfinite(identity):
        return np.asarray(identity, dtype)
    return np.asarray(np.iinfo(dtype).min if identity < 0 else np.iinfo(dtype).max, dtype)


def wide_type(name, kind):
    """In which it is computed."""
    if kind in FLOATS:
        return np.float64 if kind == "f64" else np.float32
    if name in ("max", "min"):
        return TYPES[kind]
    return np.uint64 if kind.startswith("u") else np.int64


def chunks_of(x, combine):
    """Lines, the last axis of x, by the decisions: strides within 256, the chunks' totals likewise, what was before op own."""
    size = x.shape[-1]
    if size > CHUNK:
        count = -(-size // CHUNK)
        whole = np.zeros((*x.shape[:-1], count * CHUNK), x.dtype)
        whole[..., :size] = x
        local = chunks_of(whole.reshape(*x.shape[:-1], count, CHUNK), combine)
        local[..., 1:, :] = combine(chunks_of(local[..., -1], combine)[..., :-1, None], local[..., 1:, :])
        return local.reshape(whole.shape)[..., :size]
    stride = 1
    while stride < size:
        x = np.concatenate([x[..., :stride], combine(x[..., :-stride], x[..., stride:])], -1)
        stride *= 2
    return x


def scanned(name, x, axis, exclusive=0, reverse=0):
    kind = next(kind for kind in TYPES if np.dtype(TYPES[kind]) == x.dtype)
    lines = np.moveaxis(x.astype(wide_type(name, kind)), axis, -1)
    lines = (lines[..., ::-1] if reverse else lines).copy()
    first = identity_of(name, lines.dtype)
    if exclusive:
        lines = np.concatenate([np.full((*lines.shape[:-1], 1), first), lines], -1)[..., :lines.shape[-1]]
    with np.errstate(all="ignore"):
        lines = together(np.full_like(lines, first), lines) if name == "logsumexp" else lines
        lines = chunks_of(lines, OPERATORS[name][0])
    wide = np.moveaxis(lines[..., ::-1] if reverse else lines, -1, axis)
    if kind not in FLOATS:
        return wide
    with np.errstate(all="ignore"):
        made = np.array(wide.astype(x.dtype), order="C")
    bits = made.view(f"u{made.itemsize}")
    bits[np.isnan(made.astype(np.float64))] = CANONICAL[kind]
    return made


def sums_of(x, axis):
    return scanned("sum", x, axis)


def numbers(kind, shape, seed):
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.random(shape) < 0.4
    if kind in FLOATS:
        return (rng.standard_normal(shape) * 3).astype(TYPES[kind])
    limits = np.iinfo(TYPES[kind])
    return rng.integers(limits.min, limits.max, shape, TYPES[kind], endpoint=True)


def check(name, x, axis, layout="dense", **more):
    c = Computation()
    c.output(c.op(f"cumulative_{name}", c.input(laid_out(x, layout, 3) if layout != "dense" else x), axis=axis, **more), layout)
    own = c.run()[0]
    right = scanned(name, x, axis, **more)
    assert own.dtype == right.dtype and own.tobytes() == right.tobytes(), f"{name} {x.dtype} {x.shape} along {axis} {more}"


EVERY = [(name, kind) for name in OPERATORS for kind in [*INTEGERS, *FLOATS, "bool"]
         if kind in FLOATS and (name, kind) != ("logsumexp", "f16") or name != "logsumexp" and (kind != "bool" or name in ("sum", "prod"))]
WAYS = [{"exclusive": 1}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}]


@pytest.mark.parametrize("name, kind", EVERY)
def test_lines(name, kind):
    for seed, (shape, axis) in enumerate(SHAPES):
        check(name, numbers(kind, shape, seed), axis)
        check(name, numbers(kind, shape, seed), axis, **WAYS[seed % 3])
    check(name, numbers(kind, (4, 33), 5), 1, "mixed")
    check(name, numbers(kind, (14, 33), 5), 0, "apart", reverse=1)


@pytest.mark.parametrize("name, kind", [("sum", "u8"), ("sum", "f32"), ("sum", "f64"), ("sum", "bf16"), ("prod", "i16"), ("max", "i8"),
                                        ("max", "f32"), ("min", "f64"), ("logsumexp", "f32")])
@pytest.mark.parametrize("shape, axis", LONG)
def test_long_lines(name, kind, shape, axis):
    check(name, numbers(kind, shape, 7), axis)
    check(name, numbers(kind, shape, 7), axis, **WAYS[shape[axis] % 3])


def test_totals_of_totals_of_totals():
    for name in ("sum", "max"):
        check(name, numbers("f32", (4097 * CHUNK + 3,), 8), 0, reverse=1)


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape, axis", [((3, 40), 1), ((20, 9), 0), ((600,), 0), ((1,), 0), ((3, 5000), 1)])
def test_odd_numbers(name, kind, shape, axis):
    """-0 alone stays (but of logsumexp), an infinity stays until its opposite comes, and a NaN, also the first of all, is the canonical
    one from there."""
    for seed, odd in enumerate((-0.0, np.nan, -np.nan, np.inf, -np.inf, 65504.0)):
        x = np.full(shape, -0.0, TYPES[kind])
        x.reshape(-1)[seed::37] = odd
        x.reshape(-1)[20 * seed::101] = -odd
        check(name, x, axis)
        check(name, x, axis, **WAYS[seed % 3])
    payload = np.full(shape, -0.0, TYPES[kind]).view(f"u{np.dtype(TYPES[kind]).itemsize}")
    payload.reshape(-1)[0] = CANONICAL[kind] + 5
    check(name, payload.view(TYPES[kind]), axis)


@pytest.mark.parametrize("name", OPERATORS)
def test_every_length(name):
    """Around every power of two, along either axis."""
    for size in sorted({max(1, 2**k + d) for k in range(11) for d in (-1, 0, 1)}):
        check(name, numbers("f32", (2, size), size), 1, **WAYS[size % 3])
        check(name, numbers("f32", (size, 9), size), 0)


def test_more_lines_than_a_launch_has_blocks():
    """Refused, before there is memory for any of them."""
    c = Computation()
    c.output(c.op("cumulative_sum", c.input(np.broadcast_to(np.float16(1), (2**35, 17))), axis=1))
    with pytest.raises(Error, match="a scan along 34359738368 lines takes [0-9]+ blocks, more than the 2147483647 of a launch"):
        c.run()


def test_sums_round_once_of_narrow_types():
    x = np.full(3000, 0.1, np.float16)
    assert apply("cumulative_sum", x)[-1] == np.float16(3000 * np.float32(np.float16(0.1)))
    assert apply("cumulative_sum", np.full(600, 1, ml_dtypes.bfloat16))[299] == 300


@pytest.mark.parametrize("flags", [0, NO_FUSION])
def test_it_is_read_and_made_of_others(flags):
    x, w = numbers("f64", (6, 500), 2), np.array(3.0)
    c = Computation()
    scaled = c.op("mul", c.op("flip", c.input(x), axes=[1]), c.input(w))
    sums = c.op("cumulative_sum", scaled, axis=1)
    c.output(c.op("add", sums, scaled))
    c.output(c.op("cumulative_sum", c.op("flip", sums, axes=[0]), axis=0))
    c.output(c.op("sum", c.op("slice", sums, axis=1, start=499, stop=500)))
    own = c.run(flags)
    product = x[:, ::-1] * w
    right = sums_of(product, 1)
    assert own[0].tobytes() == (right + product).tobytes()
    assert own[1].tobytes() == sums_of(right[::-1].copy(), 0).tobytes()


def test_over_its_own_input():
    x = numbers("f32", (3, 5000), 4)
    c = Computation()
    a = c.input(x)
    c.update(a, c.op("cumulative_sum", a, axis=1))
    memory = c.run()[-1]
    assert memory.reshape(x.shape).tobytes() == sums_of(x, 1).tobytes()


@pytest.mark.parametrize("reverse", [0, 1])
@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape, axis", [((7, 3), 0), ((2, 700), 1), ((600, 9), 0)])
def test_gradient(kind, shape, axis, reverse):
    """The sums from the other end on, in the same order."""
    x, weight = numbers(kind, shape, 5), numbers(kind, shape, 6)
    c = Computation()
    a = c.input(x)
    total = c.op("sum", c.op("mul", c.op("cumulative_sum", a, axis=axis, reverse=reverse), c.input(weight)))
    c.output(c.gradient(total, [a])[0])
    assert c.run()[0].tobytes() == scanned("sum", weight, axis, reverse=1 - reverse).tobytes()


@pytest.mark.parametrize("kind", ["i8", "u64", "f16", "f32", "f64"])
@pytest.mark.parametrize("reverse", [0, 1])
def test_places_of_extremes(kind, reverse):
    """The last that is no worse; a NaN is better than every number, and as good as another."""
    for shape, axis in [((7,), 0), ((3, 600), 1), ((300, 9), 0), ((1, 1), 0), ((0, 3), 0), ((2, 0), 1)]:
        x = np.random.default_rng(4).integers(0, 9, shape).astype(TYPES[kind])
        if kind in FLOATS and x.size > 3:
            x.reshape(-1)[x.size // 2::97] = np.nan
            x[x == 0] = -0.0
        for name, sign in (("cumulative_argmax", 1), ("cumulative_argmin", -1)):
            lines = np.moveaxis(x.astype(np.float64) * sign, axis, -1)
            lines = lines[..., ::-1] if reverse else lines
            right = np.zeros(lines.shape, np.int64)
            for place in range(1, lines.shape[-1]):
                best = np.take_along_axis(lines, right[..., place - 1, None], -1)[..., 0]
                new = np.isnan(lines[..., place]) | (lines[..., place] >= best)
                right[..., place] = np.where(new, place, right[..., place - 1])
            right = np.moveaxis(lines.shape[-1] - 1 - right[..., ::-1] if reverse else right, -1, axis)
            own = apply(name, x, axis=axis, reverse=reverse)
            assert own.dtype == np.int64 and np.array_equal(own, right), (name, shape, axis)
