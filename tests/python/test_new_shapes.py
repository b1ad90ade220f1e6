"""Computations of shapes that were not seen before: their code is that of shapes before them, and so are their bits those of an executor
that has seen no other. Loops without jit whose numbers or counters change are planned a few times. Memory has a bound."""

import contextlib
import functools
import io
import random
import subprocess
import sys
import threading

import hologram as hg
import numpy as np
import pytest

SIZES = (0, 1, 1, 2, 3, 4, 7, 8, 16, 31, 33, 64, 100, 257)


@contextlib.contextmanager
def fresh():
    """A default executor that knows nothing."""
    before, executor = hg.default_executor(), hg.Executor(backend="cpu", threads=1)
    hg.set_default_executor(executor)
    try:
        yield executor
    finally:
        hg.set_default_executor(before)
        executor.close()


def values(seed, shape):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def attend(x, y):
    return hg.softmax((x @ y) * 0.25) @ y.swap(0, 1)


FORMS = {
    "elements": lambda x, y: x * 2.5 + hg.exp(-x),
    "broadcast": lambda x, y: x + x[:1] * x[:, :1] if x.shape[0] and x.shape[1] else x + 1,
    "rows": lambda x, y: hg.softmax(x) if x.shape[1] else x,
    "norms": lambda x, y: hg.norm(x, -1),
    "columns": lambda x, y: hg.sum(x * x, axis=0),
    "all": lambda x, y: hg.mean(x) + hg.sum(hg.abs(x)),
    "product": lambda x, y: x @ y,
    "attend": lambda x, y: attend(x, y) if y.shape[1] else x @ y,
    "scan": lambda x, y: hg.cumulative_sum(x, axis=1),
    "join": lambda x, y: hg.concat([x, x[::-1], x * 2], axis=0),
    "view": lambda x, y: x.swap(0, 1)[::2, 1:] * 3,
    "gather": lambda x, y: x[hg.arange(x.shape[0]) // 2] + 1,
    "sort": lambda x, y: hg.sort(x, axis=-1),
    "scatter": lambda x, y: x.at[:1].add(x[-1:]),
    "gradient": lambda x, y: hg.grad(lambda x: hg.sum(hg.tanh(x @ y) ** 2))(x),
}


def compute(form, m, k, n, offset):
    """The bytes of the form's result on the default executor; offset moves the first element, and with it the alignment."""
    x = hg.array(values(m * 1000 + k, offset + m * k))[offset:].reshape(m, k)
    y = hg.array(values(k * 1000 + n + 7, k * n)).reshape(k, n)
    hg.compute(x, y)
    result = FORMS[form](x, y)
    return result.shape, np.asarray(result).tobytes()


def shapes(form, count):
    numbers = random.Random(form)
    for _ in range(count):
        m, k, n = (numbers.choice(SIZES) for _ in range(3))
        if form in ("scatter", "gather"):
            m = max(m, 1)
        yield m, k, n, numbers.choice((0, 0, 1, 3))


@pytest.mark.parametrize("form", FORMS)
def test_bits_are_those_of_a_fresh_plan(form):
    with fresh():
        again = {shape: compute(form, *shape) for shape in shapes(form, 14)}
    for shape, expected in again.items():
        with fresh():
            assert compute(form, *shape) == expected, shape


class Structure:
    """A random computation on arrays whose sizes m, k and n are open: steps, each on two arrays made before it."""

    LEAVES = (("m", "k"), ("k", "n"), ("m", 1), ("k",), (1, "n"), ("m", "k"))
    ELEMENTS = (hg.exp, hg.tanh, hg.abs, lambda x: x * 0.3, lambda x: 1.25 - x, lambda x: hg.clip(x, -0.5, 0.7))
    ROWS = (lambda x: hg.softmax(x) if x.shape[-1] else x, lambda x: hg.cumulative_sum(x, axis=-1), lambda x: x[..., ::-1],
            lambda x: hg.concat([x, x * 2], axis=-1)[..., :x.shape[-1]], lambda x: x - hg.mean(x, axis=-1, keepdims=True),
            lambda x: x / (1 + hg.norm(x, -1, keepdims=True)), lambda x: hg.sort(x, axis=-1))
    SIZES = (0, 1, 2, 3, 7, 31, 63, 64, 65, 100, 127, 129, 257)

    def __init__(self, seed):
        draw = random.Random(seed)
        known, self.steps = list(self.LEAVES), []
        for _ in range(draw.randint(2, 7)):
            a = draw.randrange(len(known))
            steps = [(known[a], draw.choice(self.ELEMENTS))] + [(known[a], row) for row in draw.sample(self.ROWS, 2)]
            fitting = [b for b, shape in enumerate(known) if self.joined(known[a], shape) is not None]
            b = draw.choice(fitting)
            steps.append((self.joined(known[a], known[b]), draw.choice((hg.add, hg.multiply, hg.maximum))))
            if len(known[a]) == 2:
                axis = draw.randrange(2)
                steps += [(tuple(1 if d == axis else size for d, size in enumerate(known[a])),
                           functools.partial(draw.choice((hg.sum, hg.mean)), axis=axis, keepdims=True)),
                          (known[a][::-1], lambda x: x.swap(0, 1))]
                factors = [c for c, shape in enumerate(known) if len(shape) == 2 and shape[0] == known[a][1]]
                if factors:
                    c = draw.choice(factors)
                    steps += [((known[a][0], known[c][1]), lambda x, y: hg.tanh((x @ y) * 0.1))] * 2
            shape, step = draw.choice(steps)
            is_product = len(steps) > 6 and step is steps[-1][1]
            is_of_two = is_product or step in (hg.add, hg.multiply, hg.maximum)
            self.steps.append((step, (a, c if is_product else b) if is_of_two else (a,)))
            known.append(shape)
        self.has_gradient = draw.random() < 0.3
        self.sizes = [{name: draw.choice(self.SIZES) for name in "mkn"} for _ in range(5)]

    @staticmethod
    def joined(a, b):
        """The shape of a and b together; None: they do not fit."""
        longer, shorter = (a, b) if len(a) >= len(b) else (b, a)
        pairs = [*zip(longer[len(longer) - len(shorter):], shorter, strict=True)]
        if any(x != y and x != 1 and y != 1 for x, y in pairs):
            return None
        return longer[:len(longer) - len(shorter)] + tuple(y if x == 1 else x for x, y in pairs)

    def result(self, *arrays):
        arrays = list(arrays)
        for step, of in self.steps:
            arrays.append(step(*(arrays[i] for i in of)))
        return arrays[-1]

    def compute(self, sizes):
        """The plan in words, without names of operations, which may be those of an equal plan; the bytes of the result. Or the error."""
        leaves = [hg.array(values(i, [sizes.get(size, 1) for size in shape])) for i, shape in enumerate(self.LEAVES)]
        hg.compute(*leaves)
        try:
            result = self.result(*leaves)
            if self.has_gradient:
                result = hg.grad(lambda *x: hg.mean(self.result(*x) * 1.5), argnums=0)(*leaves)
            with contextlib.redirect_stdout(io.StringIO()) as words:
                hg.explain(result)
            plan = [line.split(": ")[0] if line[:2].isspace() else line for line in words.getvalue().splitlines()]
            return plan, result.shape, np.asarray(result).tobytes()
        except hg.Error as error:
            return str(error)


def test_random_structures_have_the_plan_and_the_bits_of_a_fresh_executor():
    structures = [Structure(seed) for seed in range(200)]
    work = [(structure, sizes) for structure in structures for sizes in structure.sizes]
    order = list(range(len(work)))
    random.Random(5).shuffle(order)
    again = {}
    with fresh() as executor:
        for i in order:
            again[i] = work[i][0].compute(work[i][1])
        plans, compilations = executor.counts["plans"], executor.counts["compilations"]
    assert compilations < plans
    for i, (structure, sizes) in enumerate(work):
        with fresh():
            assert structure.compute(sizes) == again[i], (i // 5, sizes)


def test_more_elements_than_31_bits_number():
    def end(count):
        return np.asarray((hg.broadcast_to(hg.array([1.5, 2.5]), (count, 2)) * 2)[count - 3:, 1]).tolist()

    with fresh():
        for count in (5, (1 << 31) + 5, 6, (1 << 32) + 9):
            assert end(count) == [5.0] * 3


def test_threads_share_code():
    with fresh():
        work = [(form, shape) for form in ("rows", "norms", "product", "gradient") for shape in shapes(form, 12)]
        expected = {one: compute(one[0], *one[1]) for one in work}
    wrong = []

    def run(number):
        mine = work[:]
        random.Random(number).shuffle(mine)
        wrong.extend(one for one in mine if compute(one[0], *one[1]) != expected[one])

    with fresh():
        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_lengths_of_a_cache_compile_once():
    with fresh() as executor:
        keys = hg.array(values(1, (4, 400, 16)))
        query = hg.array(values(2, (4, 1, 16)))
        hg.compute(keys, query)
        for length in range(1, 301):
            known = keys[:, :length]
            hg.compute(hg.softmax((query * known).sum(-1)))
            if length == 270:
                before = executor.counts
        assert executor.counts["plans"] - before["plans"] == 30
        assert executor.counts["compilations"] == before["compilations"]


def test_batches_of_any_size_compile_a_few_layouts():
    """Contractions of all sizes share code, the number that a mean divides by is a scalar from the third size on, and blocks of rows
    have the length of their rows only in the launch."""
    with fresh() as executor:
        weights = hg.array(values(1, (24, 40))), hg.array(values(2, (40, 7)))
        columns = hg.array(values(3, (40,)))
        hg.compute(*weights, columns)
        gradient = hg.value_and_grad(lambda w, x: ((hg.tanh(x @ w[0]) @ w[1]) ** 2).mean())

        def step(batch):
            x = hg.array(values(batch, (batch, 24)))
            loss, gradients = gradient(weights, x)
            hg.compute(loss, *gradients, hg.exp((x @ weights[0]).swap(0, 1)) * columns[:, None])

        for batch in (70, 80, 90, 100):
            step(batch)
        before = executor.counts
        for batch in range(71, 100):
            step(batch)
        assert executor.counts["plans"] - before["plans"] == 27
        assert executor.counts["compilations"] - before["compilations"] <= 4


# ---- loops without jit ----------------------------------------------------------------------------------------------------

def plans_of(executor, step, count):
    """How many plans each of the first steps makes."""
    made = []
    for i in range(count):
        before = executor.counts["plans"]
        step(i)
        made.append(executor.counts["plans"] - before)
    return made


def test_numbers_that_change_are_planned_twice():
    with fresh() as executor:
        x = hg.array(values(3, (20, 30)))

        def step(i):
            nonlocal x
            x = x - (0.1 * 0.99**i) * (x * i + 1.5)
            hg.compute(x)
        assert plans_of(executor, step, 8)[3:] == [0] * 5


ARGUMENTS = {
    "clip": lambda x, v: hg.clip(x, -v, v + 1),
    "leaky_relu": lambda x, v: hg.leaky_relu(x.astype("float32"), v / 40),
    "elu": lambda x, v: hg.elu(x.astype("float32"), v / 3 + 0.1),
    "gelu after clip": lambda x, v: hg.gelu(hg.clip(x, -v, v + 1).astype("float32")) + hg.softmax(x.astype("float32") * 2.5),
    "arange": lambda x, v: hg.arange(v, v + 33) * x,
    "rows": lambda x, v: hg.sum(hg.clip(x, v, 2 * v + 1), axis=-1),
    "columns": lambda x, v: hg.max(hg.clip(x, v - 3, v), axis=0),
    "gradient": lambda x, v: hg.grad(lambda y: hg.sum(hg.elu(y, v / 5 + 0.1)))(x.astype("float32")),
}


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64", "int8", "uint16", "int32", "int64"])
def test_arguments_that_change_compile_twice_and_keep_bits(kind):
    """Constants that vary are scalars of the launches; the bits are those of constants."""
    def bytes_of(name, v):
        x = (hg.abs(hg.array(values(5, (9, 33)))) * 20).astype(kind).compute()
        result = ARGUMENTS[name](x, v)
        return np.asarray(result.astype("float64")).tobytes()

    for name in ARGUMENTS:
        numbers = [13, 14, 17, 0, 1, 2, 11, 7, 60]
        if kind == "uint16" and name in ("clip", "columns", "gelu after clip"):
            continue
        with fresh() as executor:
            again = []
            for v in numbers:
                again.append(bytes_of(name, v))
                if v == 2:
                    before = executor.counts["compilations"]
            assert executor.counts["compilations"] == before, name
        for v, expected in zip(numbers, again, strict=True):
            with fresh():
                assert bytes_of(name, v) == expected, (name, v)


def test_a_counter_that_is_one_ahead_is_planned_a_few_times():
    with fresh() as executor:
        x, counter, passed = hg.ones((8,)), hg.zeros(()), []

        def step(i):
            nonlocal x, counter
            x = x * 0.5 + counter
            counter = counter + 1
            passed.append(x.sum())
            float(passed.pop())
        assert plans_of(executor, step, 12)[4:] == [0] * 8
        expected = np.ones(8, "float32")
        for i in range(12):
            expected = expected * np.float32(0.5) + np.float32(i)
        assert np.array_equal(np.asarray(x), expected) and float(counter) == 12


def test_a_step_that_returns_its_loss_computes_nothing_twice():
    """Who reads a loss after the step's function has returned holds no gradients, but the new weights still read them: both are
    computed with the loss, and a step launches what it launches where the gradients are held, from the third step on without a plan."""
    adam = hg.optim.Adam(0.1)

    def loss(weights, data):
        return ((hg.tanh(data @ weights[0]) @ weights[1] - 1) ** 2).mean()

    def train(holds, count=8):
        held, launches, data = [], [], hg.array(values(6, (50, 8)))
        weights = [hg.array(values(7, (8, 16))), hg.array(values(8, (16, 1)))]
        state = adam.init(weights)

        def step(weights, state):
            value, gradients = hg.value_and_grad(loss)(weights, data)
            if holds:
                held[:] = gradients
            return (value, *adam.update(weights, gradients, state))
        losses = []
        for _ in range(count):
            before = executor.counts
            value, weights, state = step(weights, state)
            losses.append(float(value))
            launches.append((executor.counts["launches"] - before["launches"], executor.counts["plans"] - before["plans"]))
        hg.compute(*weights)
        return losses, [np.asarray(w).tobytes() for w in weights], launches

    with fresh() as executor:
        losses, weights, launches = train(False)
        assert [plans for _, plans in launches[3:]] == [0] * 5
        of_held = train(True)
    assert (losses, weights) == of_held[:2] and launches[3:] == of_held[2][3:]


def test_one_weight_at_a_time_is_computed_once():
    with fresh() as executor:
        weights = [hg.array(values(i, (30, 30))) for i in range(4)]
        x = hg.array(values(9, (30, 30)))
        hg.compute(x, *weights)

        def loss(weights):
            y = x
            for w in weights:
                y = hg.tanh(y @ w)
            return y.sum()

        def contractions(*read):
            before = executor.counts["launches"]
            new = hg.optim.SGD(0.1).update(weights, hg.grad(loss)(weights), hg.optim.SGD(0.1).init(weights))[0]
            for of in read:
                hg.compute(*(new[i] for i in of))
            return executor.counts["launches"] - before
        assert contractions((0,), (1,), (2,), (3,)) <= contractions((0, 1, 2, 3)) + 4


def test_what_is_large_and_read_elsewhere_is_not_stored():
    with fresh() as executor:
        x = hg.array(values(4, (100, 100)))
        y = x * 2
        a, b = y.sum(), y.max()
        del y
        hg.compute(x)
        before = executor.counts["allocated_bytes"]
        float(a)
        assert executor.counts["allocated_bytes"] - before < 40000
        assert float(b) == np.float32(2) * values(4, (100, 100)).max()


# ---- memory ---------------------------------------------------------------------------------------------------------------

GROWTH = """
import hologram as hg
hg.set_default_executor(hg.Executor(backend="cpu", threads=1))
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20
x = hg.ones((12000,))
w = hg.ones((3, 4))
hg.compute(x, w)
begun = resident()
for n in range(1, 10001):
    part = x[:n]
    hg.compute(hg.softmax(part) * part)
print(resident() - begun)
"""


@pytest.mark.resident
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ten_thousand_shapes_have_a_bound():
    done = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, timeout=300, check=True)
    assert int(done.stdout) < 128, f"{done.stdout} MiB"
