"""x[...] = value is part of what gradients see: values beside NumPy's, gradients beside central differences in f64."""

import contextlib

import numpy as np
import pytest

import hologram as hg
import hologram.array_api as api


def overwritten(xp, x):
    x[0] = 5.0
    x[1, 1:] = x[0, :3] * 2.0
    return x


def rows_of_zeros(xp, x):
    y = xp.zeros((3, 4), dtype="float64")
    for i in range(3):
        y[i] = x[i] * x[2 - i]
    return y


def recurrence(xp, x):
    y = xp.zeros(5, dtype="float64")
    y[0] = x[0, 0]
    for i in range(1, 5):
        y[i] = y[i - 1] * x[i % 3, i % 4] + x[0, i % 4]
    return y


def heat(xp, x):
    for _ in range(3):
        x[:, 1:-1] = x[:, 1:-1] + 0.25 * (x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2])
    return x


def added(xp, x):
    x[1:, ::2] += 3.0
    x[..., -1] *= x[0, 0]
    x[::-2, ::-1] -= x[:2] * 0.5
    return x * x


def overlapping(xp, x):
    y = x * x
    for i in range(3):
        y[:, i : i + 2] = xp.exp(y[:, i : i + 2] * 0.1)
    return y * y


def with_views(xp, x):
    y = x * 1.0
    view, copy = (y * 1.0)[1:], y * y
    y[1:] = 2.0
    return y[:2] * view + copy[1:]


def new_axes(xp, x):
    y = x * 1.0
    y[1, None, 1:] = x[:1, :3]
    y[None, 2] = x[0][None, :]
    y[..., 0] = x[:, 3]
    return y * y


PROGRAMS = (overwritten, rows_of_zeros, recurrence, heat, added, overlapping, with_views, new_axes)


def differences(f, data):
    result = np.zeros_like(data)
    for i in np.ndindex(*data.shape):
        step = np.zeros_like(data)
        step[i] = 1e-6
        result[i] = (f(data + step) - f(data - step)) / 2e-6
    return result


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs(program):
    data = np.random.default_rng(5).standard_normal((3, 4)) + 0.5
    weights = np.random.default_rng(6).standard_normal(program(np, data.copy()).shape)
    x, held = hg.array(data), hg.asarray(weights)

    def total(x):
        return (program(hg, x) * held).sum()

    def plain(data):
        return float((program(np, data.copy()) * weights).sum())

    for f in (total, hg.jit(total)):
        given = hg.array(data)
        np.testing.assert_allclose(float(f(given)), plain(data), rtol=1e-12)
        changed = data.copy()
        program(np, changed)
        np.testing.assert_allclose(given.numpy(), changed, rtol=1e-12)  # the caller's array has changed
    right = differences(plain, data)
    with_eager = [False, True]
    for ways in (hg.value_and_grad(total), hg.jit(hg.value_and_grad(total)), hg.value_and_grad(hg.jit(total))):
        for is_eager in with_eager:
            with hg.eager(is_eager):
                value, gradient = ways(x)
            np.testing.assert_allclose(float(value), plain(data), rtol=1e-12)
            np.testing.assert_allclose(gradient.numpy(), right, rtol=1e-6, atol=1e-7)
    np.testing.assert_array_equal(x.numpy(), data)  # and here it has not

    def first(data):
        return float((hg.grad(total)(hg.asarray(data)) * hg.sin(hg.arange(12.0, dtype="float64").reshape(3, 4))).sum())

    second = hg.grad(lambda x: (hg.grad(total)(x) * hg.sin(hg.arange(12.0, dtype="float64").reshape(3, 4))).sum())(x)
    np.testing.assert_allclose(second.numpy(), differences(first, data), rtol=1e-5, atol=1e-6)


def test_two_names_and_copies():
    def f(x):
        y = x * 1.0
        other, view, same = y, y[:2], hg.asarray(y)
        y[0] = 7.0
        return other[0] + 10.0 * view[0] + 100.0 * same[0]

    value, gradient = hg.value_and_grad(f)(hg.asarray([2.0, 3.0]))
    assert float(value) == 7.0 + 20.0 + 700.0 and gradient.tolist() == [10.0, 0.0]


NOTHING_TO_DO = {
    "roll": lambda x: api.roll(x, 3, axis=1), "roll by pairs": lambda x: api.roll(x, (0, 1), axis=(0, 1)),
    "roll of all": lambda x: api.roll(x, 3), "positive": api.positive, "real": api.real, "conj": api.conj,
    "diff": lambda x: api.diff(x, n=0), "expand_dims": lambda x: api.expand_dims(x, axis=()),
    "flip": lambda x: api.flip(x, axis=()), "tile": lambda x: api.tile(x, 1), "repeat": lambda x: api.repeat(x, 1, axis=0),
    "moveaxis": lambda x: api.moveaxis(x, 0, 0), "broadcast_to": lambda x: api.broadcast_to(x, x.shape),
    "reshape": lambda x: api.reshape(x, x.shape), "permute_dims": lambda x: api.permute_dims(x, (0, 1)),
    "squeeze": lambda x: api.squeeze(x, axis=()), "concat": lambda x: api.concat([x]), "clip": api.clip,
    "sum": lambda x: api.sum(x, axis=()), "astype": lambda x: api.astype(x, x.dtype), "sort": api.sort, "pad": lambda x: api.pad(x, 0),
    "floor": api.floor, "ceil": api.ceil, "trunc": api.trunc, "round": api.round,
    "get": lambda x: x.at[...].get(), "add": lambda x: x.at[[]].add(1),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING_TO_DO)
def test_a_result_is_an_array_of_its_own(name):
    """Of functions that have nothing to do, too: what is assigned to the result is not seen in the argument."""
    x = hg.asarray([[1], [2], [3]], dtype="int32")
    made = NOTHING_TO_DO[name](x)
    made[...] = 7
    assert x.tolist() == [[1], [2], [3]]


def test_computed_before_the_assignment():
    def f(x):
        y = hg.exp(x)
        y.compute()
        y[0] = y[1] * 3.0
        y.compute()
        y[1] = 2.0
        return y.sum()

    value, gradient = hg.value_and_grad(f)(hg.asarray(np.array([0.5, 1.0, 2.0])))
    e = np.exp([1.0, 2.0])
    np.testing.assert_allclose(float(value), 3 * e[0] + 2 + e[1], rtol=1e-14)
    np.testing.assert_allclose(gradient.numpy(), [0, 3 * e[0], e[1]], rtol=1e-14)


def test_arguments_are_the_function_s_own():
    buffer, nest = hg.zeros(3), {"a": [hg.ones(2)]}

    def f(x, buffer, *, nest):
        buffer[0] = x[0] * x[0]
        nest["a"][0][:] = x
        return buffer.sum() + (nest["a"][0] * x).sum()

    value, gradient = hg.value_and_grad(f)(hg.asarray([2.0, 3.0]), buffer, nest=nest)
    assert float(value) == 4.0 + 13.0 and gradient.tolist() == [8.0, 6.0]
    assert buffer.tolist() == [0.0, 0.0, 0.0] and nest["a"][0].tolist() == [1.0, 1.0]

    def gives_its_argument(x, buffer):
        buffer[...] = x.sum()
        return buffer

    one = hg.zeros(())
    value, gradient = hg.value_and_grad(gives_its_argument)(hg.asarray([2.0, 3.0]), one)
    assert float(value) == 5.0 and gradient.tolist() == [1.0, 1.0] and float(one) == 0.0


def test_captured_arrays():
    kept, count = hg.zeros(3), hg.zeros(1)

    def leaks(x):
        kept[0] = x[0] * 2.0
        return x.sum()

    with pytest.raises(ValueError, match="stop_gradient"):
        hg.grad(leaks)(hg.asarray([1.0, 2.0]))
    assert kept.tolist() == [0.0, 0.0, 0.0]

    def counts(x):
        count[0] += 1.0
        return (x * count[0]).sum()

    assert hg.grad(counts)(hg.asarray([1.0, 2.0])).tolist() == [1.0, 1.0]
    assert hg.grad(counts)(hg.asarray([1.0, 2.0])).tolist() == [2.0, 2.0]
    assert count.tolist() == [2.0]

    def inner(x, y):
        held = x * 1.0

        def g(y):
            held[0] = y[0]
            return y.sum()

        return hg.grad(g)(y).sum() + held.sum()

    with pytest.raises(ValueError, match="stop_gradient"):
        hg.grad(inner)(hg.ones(2), hg.ones(2))

    def outer_value(x):
        held = x * 1.0

        def g(y):
            held[0] = x[1] * 2.0  # of the outer gradient alone
            return (y * held[0]).sum()

        return hg.grad(g)(hg.ones(2)).sum() + held.sum()

    assert hg.grad(outer_value)(hg.asarray([1.0, 2.0])).tolist() == [0.0, 2.0 * 2 + 3.0]


def test_values_that_do_not_fit():
    """In the same words inside a gradient and outside."""
    wrong = ((slice(1, 3), 0), hg.ones(3)), ((None, 0), hg.ones((2, 4))), (0, hg.ones((2, 4))), (Ellipsis, hg.ones((1, 2, 3, 4)))
    for key, value in wrong:
        words = []

        def put(x, key=key, value=value):
            x[key] = value
            return x.sum()

        for call in (put, hg.grad(put)):
            with pytest.raises(ValueError, match="does not broadcast to the shape") as raised:
                call(hg.zeros((3, 4)))
            words.append(str(raised.value))
        assert words[0] == words[1]


def test_a_captured_array_by_a_mask():
    held = hg.zeros(3)

    def f(x):
        held[held == 0.0] = 2.0
        held[hg.asarray([1])] = 3.0
        return (x * held).sum()

    assert hg.grad(f)(hg.ones(3)).tolist() == [2.0, 3.0, 2.0]
    held[0] = 7.0
    assert held.tolist() == [7.0, 3.0, 2.0]


def test_a_result_of_a_gradient_is_an_array_like_others():
    made = []

    def f(x):
        made.append(hg.exp(x))
        return made[-1].sum()

    hg.grad(f)(hg.asarray([0.0, 0.0]))
    y = made[0].compute()
    y[0] = 5.0
    assert hg.grad(lambda x: (x * y).sum())(hg.ones(2)).tolist() == [5.0, 1.0]


def test_arguments_by_number():
    x = hg.ones(2)
    for numbers in ((0, 0), (0, -1), (1,), (-2,)):
        with pytest.raises(ValueError, match="argnums"):
            hg.grad(lambda a: (a * a).sum(), argnums=numbers)(x)
    for number in (-1, 1, np.int64(1), np.uint8(1), np.array(1)):
        assert hg.grad(lambda a, b: (a * b).sum(), argnums=number)(x, 3.0 * x).tolist() == [1.0, 1.0]
    for numbers in (np.array([1]), [np.int32(-1)], range(1, 2)):
        assert hg.grad(lambda a, b: (a * b).sum(), argnums=numbers)(x, 3.0 * x)[0].tolist() == [1.0, 1.0]
    for numbers in (1.0, "0", (0.5,), None):
        with pytest.raises(TypeError, match="as an integer|no int and no sequence of ints"):
            hg.grad(lambda a: a.sum(), argnums=numbers)


def launches_of(f, x):
    """What computing f(x) inside a gradient launches."""
    trace, _, (x,) = hg._core._begin_trace([x], None)
    try:
        return hg.explain(f(x), json=True)["launches"]
    finally:
        hg._core._end_trace(trace)


SIZE, TIMES = 10000, 150


def filled(x):
    y = hg.zeros(SIZE)
    for i in range(TIMES):
        y[i : i + 2] = x[i : i + 2] * x[i]
    return y


def from_the_one_before(x):
    y = hg.zeros(SIZE)
    for i in range(1, TIMES):
        y[i] = y[i - 1] * x[i] + x[i]
    return y


def read_meanwhile(x):
    y, seen = hg.exp(x), []
    for i in range(TIMES):
        seen.append(y[i : i + 8])
        y[i + 4] = x[i]
    return y[:8] * sum(seen[1:], seen[0])


@pytest.mark.parametrize("f", [filled, from_the_one_before, read_meanwhile])
def test_a_loop_costs_what_it_assigns(f):
    """A box is written where the array lies: so many bytes for an assignment, and the array once or twice."""
    x = hg.asarray(np.linspace(0.0, 1.0, SIZE).astype(np.float32))
    np.testing.assert_allclose(hg.value_and_grad(lambda x: (f(x) * f(x)).sum())(x)[0].item(), float((f(x) * f(x)).sum()), rtol=1e-6)
    launches = launches_of(f, x)
    assert sum(launch["bytes_written"] for launch in launches) < 3 * 4 * SIZE + 200 * TIMES
    assert sum(launch["lanes"] for launch in launches) < 3 * SIZE + 50 * TIMES


@pytest.mark.parametrize("f", [filled, from_the_one_before])
def test_so_does_its_gradient(f):
    x = hg.asarray(np.linspace(0.0, 1.0, SIZE).astype(np.float32))
    launches = launches_of(lambda x: hg.grad(lambda x: (f(x) * f(x)).sum())(x), x)
    copies = sum(launch["bytes_written"] for launch in launches) / (4 * SIZE)
    assert copies < TIMES / 3


@pytest.mark.parametrize("is_eager", [False, True])
def test_elements_that_were_one_place_in_memory(is_eager):
    """A broadcast array has an element for each place as soon as one is assigned."""
    with hg.eager() if is_eager else contextlib.nullcontext():
        x = api.broadcast_to(hg.asarray(np.arange(3.0)), (2, 3)).compute()
        x[0, 1:] *= 10.0
        y = api.tile(hg.asarray(np.arange(3.0)), (2, 1))
        y[1] = 7.0
    np.testing.assert_array_equal(np.asarray(x), [[0, 10, 20], [0, 1, 2]])
    np.testing.assert_array_equal(np.asarray(y), [[0, 1, 2], [7, 7, 7]])


SPECIAL = [0.0, -0.0, 1.5, 1 + 2.0**-24, -1e-46, 3e-45, 1e39, -np.inf, np.nan, -np.nan]


@pytest.mark.parametrize("kind", ["f32", "f64", "f16", "bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"])
def test_an_element_gets_the_bits_that_a_row_gets(kind):
    """A number for one element is written by the host, one for a row by a launch; elements of other arrays are copied."""
    is_float = kind in ("f32", "f64", "f16")
    values = SPECIAL if is_float else [False, True] if kind == "bool" else [0, 1, 127]
    x = hg.zeros((len(values), 5), kind).compute()
    kept = hg.where(x == x, x, x)  # pending: it reads what is there now
    for i, value in enumerate(values):
        x[i, :3] = value
        x[i, 3] = value
        x[-len(values) + i, -1] = x[i, 3]
    assert x.numpy().tobytes() == np.repeat(x.numpy()[:, :1], 5, 1).tobytes()
    assert not kept.astype("f64").numpy().any()
    if is_float:
        np.testing.assert_array_equal(x.astype("f64").numpy()[:, 0], hg.array(values, "f64").astype(kind).astype("f64").numpy())
    else:
        assert x[:, 0].tolist() == values


def test_rows_are_views_in_any_order():
    """Of memory, of an array that is pending, and where a gradient is recorded: beside NumPy's."""
    plain = np.arange(24.0).reshape(2, 3, 4)
    keys = [1, -1, (0, 2), (1, slice(None, None, -2)), (slice(1), 0, slice(3, None, -1)), (slice(2, 1),), (0, None, 1), (slice(None), 2, 3)]
    for x in (hg.array(plain).compute(), hg.array(plain) + 0.0, hg.array(plain).transpose((2, 0, 1)).compute().transpose((1, 2, 0))):
        for key in keys:
            np.testing.assert_array_equal(np.asarray(x[key]), plain[key])
            np.testing.assert_array_equal(np.asarray(hg.grad(lambda x, key=key: x[key].sum())(x)), np.isin(plain, plain[key]))
        assert [[row.tolist() for row in part] for part in x] == plain.tolist()
