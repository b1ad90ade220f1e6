"""Fast numerics: contractions by the vendor's library where there is one, and what the report says of them. On the doubles of
libcuda and cuBLASLt, whose sums have other bits than the exact kernel's."""

import os

import ml_dtypes
import numpy as np
import pytest

import hgops

FAST, TF32 = 1, 8
f32, bf16 = np.float32, ml_dtypes.bfloat16
TOLERANCE = {f32: 1e-5, np.float16: 2e-3, bf16: 2e-2}
on_cuda = pytest.mark.skipif(hgops.BACKEND != 3, reason="cuBLASLt is for NVIDIA's GPUs")
doubled = pytest.mark.skipif("sim" not in os.environ.get("LD_LIBRARY_PATH", ""), reason="asks the double of cuBLASLt")


def numbers(*shape, kind=f32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def product(a, b, behind=None, kind=None):
    c = hgops.Computation()
    value = c.op("matmul", c.input(a), c.input(b))
    if behind is not None:
        value = c.op("relu", c.op("add", value, c.input(behind)))
    c.output(c.op("cast", value, dtype=kind) if kind else value)
    return c


def both(c, flags=FAST):
    (exact,), _ = c.run_on(hgops.ENGINES[0], 0, report=True)
    (fast,), text = c.run_on(hgops.ENGINES[0], flags, report=True)
    return exact.astype(np.float64), fast.astype(np.float64), text


def check_fast(c, tolerance=1e-5):
    exact, fast, text = both(c)
    assert "cublaslt" in text and "not bit-exact" in text and "fast numerics" in text, text
    assert np.allclose(exact, fast, rtol=tolerance, atol=tolerance * 10), abs(exact - fast).max()
    return exact, fast, text


def check_exact(c):
    exact, fast, text = both(c)
    assert "cublaslt" not in text and "canonical numerics" in text and "bit-exact: fast numerics were asked for" in text, text
    assert exact.tobytes() == fast.tobytes()


SHAPES = [((40, 300), (300, 24)), ((1, 70), (70, 9)), ((33, 65), (65, 1)), ((3, 17, 40), (3, 40, 8)), ((2, 17, 40), (40, 8))]


@on_cuda
@doubled
@pytest.mark.parametrize("left, right", SHAPES)
@pytest.mark.parametrize("kind", [f32, np.float16, bf16])
def test_products(left, right, kind):
    exact, fast, _ = check_fast(product(numbers(*left, kind=kind), numbers(*right, kind=kind, seed=2)), TOLERANCE[kind])
    assert exact.size < 100 or kind != f32 or exact.tobytes() != fast.tobytes()


@on_cuda
@doubled
@pytest.mark.parametrize("turned", range(4))
def test_transposed_operands(turned):
    a, b = numbers(40, 30), numbers(30, 20, seed=2)
    check_fast(product(a.T.copy().T if turned & 1 else a, b.T.copy().T if turned & 2 else b))




def layer(kind, function=None, *, bias=(20,), marked=True, shapes=((40, 30), (30, 20))):
    """A product, a bias of this shape and a function, recorded with fast numerics: what follows it is what the library has to take
    along, or leave to a launch of its own."""
    c = hgops.Computation()
    if marked:
        c.numerics(FAST)
    value = c.op("matmul", c.input(numbers(*shapes[0], kind=kind)), c.input(numbers(*shapes[1], kind=kind, seed=2)))
    if bias is not None:
        value = c.op("add", value, c.input(numbers(*bias, kind=kind, seed=3)))
    for name in (function or "").split():
        value = c.op(name, value)
    c.output(value)
    return c


def check_marked(marked, exact, tolerance, launches, words):
    """Both without flags: what was recorded decides."""
    (answer,), text = marked.run_on(hgops.ENGINES[0], report=True)
    (wanted,), canonical = exact.run_on(hgops.ENGINES[0], report=True)
    assert f"{launches} launches" in text and f"by the vendor's library{words}, not bit-exact" in text, text
    assert "canonical numerics" in canonical and "vendor" not in canonical, canonical
    answer, wanted = answer.astype(np.float64), wanted.astype(np.float64)
    assert np.allclose(answer, wanted, rtol=tolerance, atol=tolerance * 10), text


EPILOGUES = [("", None, 1, ""), ("", (20,), 1, " with the bias"), ("relu", None, 1, " with relu"),
             ("gelu_tanh", None, 1, " with gelu_tanh"),
             ("relu", (20,), 1, " with the bias and relu"), ("gelu_tanh", (20,), 1, " with the bias and gelu_tanh"),
             ("relu", (1, 20), 1, " with the bias and relu"),
             ("gelu", (20,), 2, " with the bias"),  # the library has its tanh form alone
             ("relu", (40, 1), 2, ""), ("relu", (40, 20), 2, ""), ("relu", (1,), 2, ""),  # no bias of columns
             ("relu tanh", (20,), 2, " with the bias and relu"), ("relu gelu_tanh", (20,), 2, " with the bias and relu"),
             ("neg", (20,), 2, " with the bias"), ("neg relu", None, 2, "")]


@on_cuda
@doubled
@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("function, bias, launches, words", EPILOGUES)
def test_what_follows(function, bias, launches, words, kind):
    """What the library computes too is no launch; the rest is one, which reads what the library has rounded."""
    check_marked(layer(kind, function, bias=bias), layer(kind, function, bias=bias, marked=False), TOLERANCE[kind], launches, words)


LAYERS = [("", 1, " with the bias"), ("relu", 1, " with the bias and relu"), ("gelu_tanh", 1, " with the bias and gelu_tanh"),
          ("gelu", 2, " with the bias"), ("sigmoid", 2, " with the bias")]


@on_cuda
@doubled
@pytest.mark.parametrize("kind", TOLERANCE)
@pytest.mark.parametrize("function, launches, words", LAYERS)
def test_linear_and_what_follows(function, launches, words, kind):
    """A formula of 16 bits is computed in f32 and rounded at its end; its bias is read as it lies, and no launch widens it."""
    def one(marked):
        c = hgops.Computation()
        c.numerics(FAST if marked else 0)
        value = c.op("linear", c.input(numbers(40, 32, kind=kind)), c.input(numbers(24, 32, kind=kind, seed=2)),
                     c.input(numbers(24, kind=kind, seed=3)))
        c.output(c.op(function, value) if function else value)
        return c
    check_marked(one(True), one(False), TOLERANCE[kind], launches, words)


@on_cuda
@doubled
@pytest.mark.parametrize("kind", TOLERANCE)
def test_what_follows_more_matrices(kind):
    """A bias is for all of them, which the library is not asked for; relu of each is."""
    shapes = ((3, 40, 30), (3, 30, 20))
    for bias, launches, words in ((None, 1, " with relu"), ((20,), 2, "")):
        marked, exact = (layer(kind, "relu", bias=bias, shapes=shapes, marked=m) for m in (True, False))
        check_marked(marked, exact, TOLERANCE[kind], launches, words)


@on_cuda
@doubled
@pytest.mark.parametrize("kind", TOLERANCE)
def test_what_somebody_else_reads_is_written(kind):
    """The sum before relu is a result of its own, or read twice: the library's part ends there."""
    def twice(marked, is_result):
        c = hgops.Computation()
        c.numerics(FAST if marked else 0)
        value = c.op("matmul", c.input(numbers(40, 30, kind=kind)), c.input(numbers(30, 20, kind=kind, seed=2)))
        value = c.op("add", value, c.input(numbers(20, kind=kind, seed=3)))
        c.output(c.op("relu", value) if is_result else c.op("mul", c.op("relu", value), value))
        if is_result:
            c.output(value)
        return c

    for is_result in (False, True):
        fast, text = twice(True, is_result).run_on(hgops.ENGINES[0], report=True)
        assert "by the vendor's library with the bias, not" in text and "2 launches" in text, text
        for own, wanted in zip(fast, twice(False, is_result).run_on(hgops.ENGINES[0])):
            own, wanted = own.astype(np.float64), wanted.astype(np.float64)
            assert np.allclose(own, wanted, rtol=TOLERANCE[kind], atol=TOLERANCE[kind] * 20)


@on_cuda
@doubled
def test_a_library_without_epilogues(monkeypatch):
    """What it does not take along is the launch behind it."""
    monkeypatch.setenv("FAKECUBLASLT", "plain")
    monkeypatch.setattr(hgops, "_executors", {})
    for kind in TOLERANCE:
        check_marked(layer(kind, "relu"), layer(kind, "relu", marked=False), TOLERANCE[kind], 2, "")


@on_cuda
@doubled
@pytest.mark.parametrize("ahead", [0, 1, 3])
def test_a_bias_anywhere(ahead):
    """It is read where it lies, in other memory at each run."""
    c, exact = hgops.Computation(), None
    c.numerics(FAST)
    bias = numbers(25, seed=3)[2:22]
    value = c.op("matmul", c.input(numbers(40, 30)), c.input(numbers(30, 20, seed=2)))
    c.output(c.op("add", value, c.input(bias, ahead=ahead)))
    exact = numbers(40, 30).astype(np.float64) @ numbers(30, 20, seed=2).astype(np.float64) + bias
    for _ in range(2):
        assert np.allclose(c.run_on(hgops.ENGINES[0])[0], exact, rtol=1e-5, atol=1e-4)


@on_cuda
@doubled
def test_tf32_is_for_who_names_it():
    """f32 is f32, but with the flag; 16 bits do not know it."""
    c = product(numbers(40, 300), numbers(300, 24, seed=2))
    exact, fast, text = both(c)
    tf32, words = (lambda answers: (answers[0][0].astype(np.float64), answers[1]))(c.run_on(hgops.ENGINES[0], FAST | TF32, report=True))
    assert "TF32" not in text and ", of TF32, not bit-exact" in words
    assert abs(exact - fast).max() < 1e-4 < 1e-3 < abs(exact - tf32).max() < 0.2
    narrow = product(numbers(40, 30, kind=bf16), numbers(30, 24, kind=bf16, seed=2))
    (answers, text), (others, words) = (narrow.run_on(hgops.ENGINES[0], flags, report=True) for flags in (FAST, FAST | TF32))
    assert answers[0].tobytes() == others[0].tobytes() and "TF32" not in words


def gradients(marks):
    """Of the squares of relu(x w + b) v by all four: marks says with which numerics each product is recorded, and then the
    gradient."""
    c = hgops.Computation()
    x, w, b, v = (c.input(numbers(*shape, seed=i)) for i, shape in enumerate([(40, 30), (30, 20), (20,), (20, 8)]))
    c.numerics(marks[0])
    value = c.op("relu", c.op("add", c.op("matmul", x, w), b))
    c.numerics(marks[1])
    value = c.op("matmul", value, v)
    value = c.op("sum", c.op("mul", value, value))
    c.numerics(marks[2])
    for gradient in c.gradient(value, [x, w, b, v]):
        c.output(gradient)
    return c


@on_cuda
@doubled
@pytest.mark.parametrize("marks, count", [((FAST, FAST, 0), 6), ((FAST, 0, 0), 3), ((0, FAST, FAST), 3), ((0, 0, FAST), 0)])
def test_gradients_have_the_numerics_of_what_they_are_of(marks, count):
    """Three products of each, whatever is set meanwhile."""
    answers, text = gradients(marks).run_on(hgops.ENGINES[0], report=True)
    assert text.count("by the vendor's library") == count, text
    for own, wanted in zip(answers, gradients((0, 0, 0)).run_on(hgops.ENGINES[0])):
        assert np.allclose(own, wanted, rtol=1e-4, atol=1e-3)


def test_marks_are_part_of_what_is_found_again():
    """The same product with and without: two values of one computation, and two executables. On a backend without the library they
    have the same bits."""
    c = hgops.Computation()
    a, b = c.input(numbers(40, 300)), c.input(numbers(300, 24, seed=2))
    values = []
    for flags in (0, FAST, 0, FAST | TF32, FAST):
        c.numerics(flags)
        values.append(c.op("matmul", a, b))
    assert values[0] == values[2] and values[1] == values[4] and len(set(values)) == 3
    for value in values[:2]:
        c.output(value)
    exact, fast = c.run_on(hgops.ENGINES[0])
    is_there = hgops.BACKEND == 3 and "sim" in os.environ.get("LD_LIBRARY_PATH", "")
    if is_there or hgops.BACKEND != 3:
        assert (exact.tobytes() != fast.tobytes()) == is_there
    plain = product(numbers(40, 300), numbers(300, 24, seed=2))
    assert plain.run_on(hgops.ENGINES[0])[0].tobytes() == exact.tobytes()


@pytest.mark.parametrize("flags", [TF32, 2, 16])
def test_other_flags_are_refused(flags):
    c = product(numbers(4, 3), numbers(3, 2, seed=2))
    with pytest.raises(hgops.Error, match="TF32|names no numerics"):
        c.numerics(flags)
    with pytest.raises(hgops.Error, match="'computation' is NULL"):
        hgops.check(hgops.LIB.hg_computation_numerics(None, flags))
    if flags == TF32:
        with pytest.raises(hgops.Error, match="HG_NUMERICS_TF32 without HG_NUMERICS_FAST"):
            product(numbers(4, 3), numbers(3, 2, seed=2)).run(flags)


@on_cuda
@doubled
def test_unaligned_operands():
    a = numbers(41 * 30 + 1)[1:].reshape(41, 30)
    check_fast(product(a, numbers(30, 21, seed=2)))


@on_cuda
@doubled
@pytest.mark.parametrize("kind", [np.float64, np.int32])
def test_other_types_are_exact(kind):
    check_exact(product((numbers(20, 30) * 9).astype(kind), (numbers(30, 10, seed=2) * 9).astype(kind)))


@on_cuda
@doubled
def test_operands_that_the_library_cannot_read():
    check_exact(product(numbers(40, 60)[:, ::2], numbers(30, 20, seed=2)))


@on_cuda
@doubled
@pytest.mark.parametrize("why", ["none", "refuse"])
def test_without_the_library(why, monkeypatch):
    """A new executor asks anew."""
    monkeypatch.setenv("FAKECUBLASLT", why)
    monkeypatch.setattr(hgops, "_executors", {})
    check_exact(product(numbers(40, 30), numbers(30, 20, seed=2)))


@pytest.mark.skipif(hgops.BACKEND == 3, reason="of processors")
def test_processors_are_exact():
    check_exact(product(numbers(40, 30), numbers(30, 20, seed=2)))


# ---- random layers ----------------------------------------------------------------------------------------------------------------

class Layers:
    """Products of small whole numbers and what may stand behind them, none of which rounds in any order: so the library's results are
    the exact kernel's."""

    def __init__(self, seed):
        self.r = np.random.default_rng(seed)
        self.kind = self.choose([f32, f32, np.float16, bf16])
        self.m, self.n, self.k = (int(v) for v in self.r.integers(1, 12, 3))
        self.batch = self.choose([(), (), (), (2,), (3, 2)])
        self.c = hgops.Computation()
        self.c.numerics(FAST)

    def choose(self, some):
        return some[self.r.integers(len(some))]

    def maybe(self, share):
        return self.r.random() < share

    def whole(self, *shape, layouts=("dense",) * 6 + ("turned", "turned", "apart", "backwards")):
        made = self.r.integers(-1, 2, shape).astype(self.kind)
        return self.c.input(hgops.laid_out(made, self.choose(layouts), 1), ahead=int(self.r.integers(0, 3)))

    def behind(self, value):
        """Another value of the same shape: mostly what the library may take along."""
        what = self.choose(["bias"] * 4 + ["relu"] * 4 + ["neg", "column", "other", "number", "itself", "turn"])
        op = self.c.op
        if what in ("relu", "neg"):
            return op(what, value)
        if what == "itself":
            return op("minimum", op("neg", value), value) if self.maybe(0.5) else op("add", value, value)
        if what == "turn":
            axes = list(range(len(self.batch))) + [len(self.batch) + 1, len(self.batch)]
            return op("permute", op("relu", op("permute", value, axes=axes)), axes=axes)
        shape = {"bias": (self.n,), "column": (self.m, 1), "number": (1,), "other": (*self.batch, self.m, self.n)}[what]
        other = self.whole(*shape)
        return op("add", value, other) if self.maybe(0.5) else op("add", other, value)

    def layer(self):
        value = self.c.op("matmul", self.whole(*self.batch, self.m, self.k), self.whole(self.k, self.n))
        if self.maybe(0.2) and self.kind != f32:
            value = self.c.op("cast", value, type="f32")
        values = [value]
        for _ in range(self.r.integers(0, 5)):
            values.append(self.behind(values[-1]))
        if self.maybe(0.3):
            values.append(self.c.op("sum", values[-1], axes=[-1]))
        for value in {values[-1]} | {v for v in values if self.maybe(0.08)}:
            self.c.output(value, self.choose(["dense"] * 5 + ["turned", "apart"]))
        return self.c


@on_cuda
@doubled
def test_random_layers():
    found = ""
    for seed in range(250):
        c = Layers(seed).layer()
        fast, text = c.run_on(hgops.ENGINES[0], report=True)
        found += text
        for own, wanted in zip(fast, c.run_on(hgops.REFERENCE)):
            assert (own == wanted).all(), f"seed {seed}: {text}"
    for words in ("library,", "library with the bias,", "library with relu,", "library with the bias and relu,", "bit-exact: fast"):
        assert words in found, words
