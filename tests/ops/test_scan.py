"""cumulative_sum beside NumPy, bit for bit, in the order that its row says: every type, any axis, lines of one chunk, of several in a
block and of several launches; and in graphs: what it is made of, what reads it, its gradient."""

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


def wide_type(kind):
    """In which it adds up."""
    if kind in FLOATS:
        return np.float64 if kind == "f64" else np.float32
    return np.uint64 if kind.startswith("u") else np.int64


def chunks_of(x):
    """Lines, the last axis of x, by the decisions: strides within 256, the chunks' totals likewise, what was before + own."""
    size = x.shape[-1]
    if size > CHUNK:
        count = -(-size // CHUNK)
        whole = np.zeros((*x.shape[:-1], count * CHUNK), x.dtype)
        whole[..., :size] = x
        local = chunks_of(whole.reshape(*x.shape[:-1], count, CHUNK))
        local[..., 1:, :] = chunks_of(local[..., -1])[..., :-1, None] + local[..., 1:, :]
        return local.reshape(whole.shape)[..., :size]
    stride = 1
    while stride < size:
        before = x[..., :-stride] + x[..., stride:]
        x = np.concatenate([x[..., :stride], before], -1)
        stride *= 2
    return x


def sums_of(x, axis):
    kind = next(name for name in TYPES if np.dtype(TYPES[name]) == x.dtype)
    with np.errstate(all="ignore"):
        wide = np.moveaxis(chunks_of(np.moveaxis(x.astype(wide_type(kind)), axis, -1).copy()), -1, axis)
    if kind not in FLOATS:
        return wide
    with np.errstate(all="ignore"):
        made = np.array(wide.astype(x.dtype), order="C")
    bits = made.view(f"u{made.itemsize}")
    bits[np.isnan(made.astype(np.float64))] = CANONICAL[kind]
    return made


def numbers(kind, shape, seed):
    rng = np.random.default_rng(seed)
    if kind == "bool":
        return rng.random(shape) < 0.4
    if kind in FLOATS:
        return (rng.standard_normal(shape) * 3).astype(TYPES[kind])
    limits = np.iinfo(TYPES[kind])
    return rng.integers(limits.min, limits.max, shape, TYPES[kind], endpoint=True)


def check(x, axis, layout="dense"):
    c = Computation()
    c.output(c.op("cumulative_sum", c.input(laid_out(x, layout, 3) if layout != "dense" else x), axis=axis), layout)
    own = c.run()[0]
    right = sums_of(x, axis)
    assert own.dtype == right.dtype and own.tobytes() == right.tobytes(), f"{x.dtype} {x.shape} along {axis}"


@pytest.mark.parametrize("kind", [*INTEGERS, *FLOATS, "bool"])
def test_lines(kind):
    for seed, (shape, axis) in enumerate(SHAPES):
        check(numbers(kind, shape, seed), axis)
    check(numbers(kind, (4, 33), 5), 1, "mixed")
    check(numbers(kind, (14, 33), 5), 0, "apart")


@pytest.mark.parametrize("kind", ["u8", "f32", "f64", "bf16"])
@pytest.mark.parametrize("shape, axis", LONG)
def test_long_lines(kind, shape, axis):
    check(numbers(kind, shape, 7), axis)


def test_totals_of_totals_of_totals():
    check(numbers("f32", (4097 * CHUNK + 3,), 8), 0)


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape, axis", [((3, 40), 1), ((20, 9), 0), ((600,), 0), ((1,), 0), ((3, 5000), 1)])
def test_odd_numbers(kind, shape, axis):
    """-0 alone stays, an infinity stays until its opposite comes, and a NaN, also the first of all, is the canonical one from there."""
    for seed, odd in enumerate((-0.0, np.nan, -np.nan, np.inf, -np.inf, 65504.0)):
        x = np.full(shape, -0.0, TYPES[kind])
        x.reshape(-1)[seed::37] = odd
        x.reshape(-1)[20 * seed::101] = -odd
        check(x, axis)
    payload = np.full(shape, -0.0, TYPES[kind]).view(f"u{np.dtype(TYPES[kind]).itemsize}")
    payload.reshape(-1)[0] = CANONICAL[kind] + 5
    check(payload.view(TYPES[kind]), axis)


def test_every_length():
    """Around every power of two, along either axis."""
    for size in sorted({max(1, 2**k + d) for k in range(11) for d in (-1, 0, 1)}):
        check(numbers("f32", (2, size), size), 1)
        check(numbers("f32", (size, 9), size), 0)


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


@pytest.mark.parametrize("kind", FLOATS)
@pytest.mark.parametrize("shape, axis", [((7, 3), 0), ((2, 700), 1), ((600, 9), 0)])
def test_gradient(kind, shape, axis):
    """The sums from the other end on, in the same order."""
    x, weight = numbers(kind, shape, 5), numbers(kind, shape, 6)
    c = Computation()
    a = c.input(x)
    total = c.op("sum", c.op("mul", c.op("cumulative_sum", a, axis=axis), c.input(weight)))
    c.output(c.gradient(total, [a])[0])
    assert c.run()[0].tobytes() == np.flip(sums_of(np.flip(weight, axis).copy(), axis), axis).tobytes()
