"""Fused = its operations one by one, bit for bit, of 2,400 random computations (random_graphs.py): fused on one engine after
another, one by one on the reference machine. Below, graphs that once went wrong."""

import numpy as np
import pytest

import hgops
import random_graphs

pytestmark = pytest.mark.engine

CHUNKS, EACH = 24, 100


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fused_is_unfused(chunk):
    with np.errstate(all="ignore"):
        for seed in range(chunk * EACH, (chunk + 1) * EACH):
            wrong = random_graphs.report_of(seed, hgops.ENGINES[seed % len(hgops.ENGINES)], hgops.REFERENCE)
            assert not wrong, wrong


def test_all_of_the_table_comes_up():
    seen = {name for name, _ in random_graphs.coverage(range(2500))}
    assert not set(hgops.TABLE) - seen


def test_one_that_fails_is_made_small(monkeypatch):
    """With a comparison that takes every graph with a softmax of f16 for wrong, what is left is an input or another beginning, that, and
    an output."""
    def failure_of(graph, engine, base=None):
        return "output 0: wrong" if any(s.name == "softmax" and graph.values[s.number].kind == "f16" for s in graph.steps) else ""
    monkeypatch.setattr(random_graphs, "failure_of", failure_of)
    seed, graph = next((seed, graph) for seed in range(5000) if failure_of(graph := random_graphs.draft(seed), "") and len(graph.steps) > 9)
    small = random_graphs.shrink(graph, "")
    left = [step.name for step in small.steps]
    assert left in (["input", "softmax"], ["input", "cast", "softmax"], ["uniform", "softmax"], ["eye", "softmax"]), str(small)
    assert "c.op('softmax'" in random_graphs.report_of(seed, "")


def both(c):
    return [c.run(flags) for flags in (0, hgops.NO_FUSION)]


def test_an_update_is_stored_when_all_have_read():
    """A result that reads the input which another one is put over, in one launch."""
    c = hgops.Computation()
    x, y = c.input(np.array([7], np.int64)), c.input(np.array([3], np.int64))
    negative = c.op("neg", x)
    c.update(y, negative)
    c.output(c.op("sub", negative, y))
    for answers in both(c):
        assert [a.tolist() for a in answers] == [[-10], [-7]]


def test_what_is_taken_by_number_lies_there_already():
    """A gather of what the launch before it computes, of the same shape: never one launch with it."""
    x = np.zeros((8, 130, 1), bool)
    c = hgops.Computation()
    same = c.op("equal", c.input(x), c.input(x))
    taken = c.op("take", same, c.input(np.asarray(np.uint32(3))), axis=2, bounds="clamp")
    for value in (c.op("logical_or", taken, taken), same, c.op("sum", same)):
        c.output(value)
    for first, second, count in both(c):
        assert first.all() and second.all() and count == 1040


@pytest.mark.parametrize("shape, turned, other", [((0, 3), (3, 0), [0, 6]), ((2, 0, 5), (5, 0, 2), [0]), ((4, 0), (0, 4), [2, 0, 7])])
def test_nothing_is_reshaped(shape, turned, other):
    """The planner divided by a size of 0."""
    c = hgops.Computation()
    x = c.op("permute", c.op("neg", c.input(np.zeros(shape, np.float32))))
    assert c.describe(x).shape[:len(turned)] == list(turned)
    c.output(c.op("exp", c.op("reshape", x, shape=other)))
    c.output(c.op("sum", c.op("flip", c.op("reshape", x, shape=other))))
    for empty, total in both(c):
        assert empty.shape == tuple(other) and total == 0


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
@pytest.mark.parametrize("name, first, second", [
    ("dot4_ss", np.int8, np.int8), ("dot4_uu", np.uint8, np.uint8), ("dot4_us", np.uint8, np.int8)])
def test_words_of_four_bytes(name, first, second, kind):
    """Of i32 no program was made, but for constants: the ISA wants the words as u32."""
    random = np.random.default_rng(1)
    a, b, c = (random.integers(0, 2 ** 32, 50, np.uint32).view(kind) for _ in range(3))
    products = a.view(first).reshape(50, 4).astype(np.int64) * b.view(second).reshape(50, 4)
    assert np.array_equal(hgops.apply(name, a, b, c), (products.sum(axis=1) + c).astype(kind))


@pytest.mark.parametrize("kind", ["f8e4m3", "f8e5m2"])
def test_floats_of_8_bits(kind):
    """They meet the number 0, and become bool, though they neither compare nor add."""
    x = np.array([[0, 1], [-0.0, np.nan]], np.float32).astype(hgops.TYPES[kind])
    assert hgops.apply("cast", x, type="bool").tolist() == [[False, True], [False, True]]
    assert hgops.apply("triu", x).astype(np.float32).tolist()[1][0] == 0
