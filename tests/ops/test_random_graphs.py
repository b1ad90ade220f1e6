"""Fused = its operations one by one, bit for bit, of 2,000 random computations (random_graphs.py): all of them on the first
engine, and a part on each of the others, whose answers are also those of the first."""

import numpy as np
import pytest

import hgops
import random_graphs

pytestmark = pytest.mark.engine

CHUNKS, EACH, OF_OTHERS = 20, 100, 10


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_fused_is_unfused(chunk):
    first, others = hgops.ENGINES[0], hgops.ENGINES[1:]
    with np.errstate(all="ignore"):
        for seed in range(chunk * EACH, (chunk + 1) * EACH):
            wrong = random_graphs.report_of(seed, first)
            assert not wrong, wrong
            if seed % OF_OTHERS == 0:
                for engine in others:
                    wrong = random_graphs.report_of(seed, engine, first)
                    assert not wrong, wrong


def test_an_update_is_stored_when_all_have_read():
    """A result that reads the input which another one is put over, in one launch."""
    c = hgops.Computation()
    x, y = c.input(np.array([7], np.int64)), c.input(np.array([3], np.int64))
    negative = c.op("neg", x)
    c.update(y, negative)
    c.output(c.op("sub", negative, y))
    for flags in (0, hgops.NO_FUSION):
        assert [a.tolist() for a in c.run(flags)] == [[-10], [-7]]


def test_what_is_taken_by_number_lies_there_already():
    """A gather of what the launch before it computes, of the same shape: never one launch with it."""
    x = np.zeros((8, 130, 1), bool)
    c = hgops.Computation()
    same = c.op("equal", c.input(x), c.input(x))
    taken = c.op("take", same, c.input(np.asarray(np.uint32(3))), axis=2, bounds="clamp")
    for value in (c.op("logical_or", taken, taken), same, c.op("sum", same)):
        c.output(value)
    for flags in (0, hgops.NO_FUSION):
        first, second, count = c.run(flags)
        assert first.all() and second.all() and count == 1040
