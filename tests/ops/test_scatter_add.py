"""Gradients of rows that are taken by number, and sums at numbers along other axes: exact, since all values are whole."""

import numpy as np
import pytest

import hgops

pytestmark = pytest.mark.engine
f32 = np.float32


def whole(random, shape):
    return random.integers(-8, 9, shape).astype(f32)


@pytest.mark.parametrize("places, width, sources", [(300, 6, 50), (300, 3, 200), (20, 5, 90), (1500, 2, 1100), (3, 4, 17), (40, 1, 0)])
@pytest.mark.parametrize("numbers", ["any", "few", "one"])
def test_embedding(places, width, sources, numbers):
    random = np.random.default_rng(places + sources)
    index = {"any": random.integers(0, places, sources), "few": random.integers(0, 3, sources),
             "one": np.full(sources, places - 1)}[numbers].astype(np.int32)
    c = hgops.Computation()
    weight, taken, cotangent = (c.input(a) for a in (whole(random, (places, width)), index, whole(random, (sources, width))))
    c.output(c.gradient(c.op("embedding", weight, taken), [weight], cotangent)[0])
    expected = np.zeros((places, width), f32)
    np.add.at(expected, index, c.arrays[2])
    assert np.array_equal(c.run()[0], expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_any_axis(axis):
    """A number of its own for each element, so many columns at once; the result overwrites nothing of the base."""
    random = np.random.default_rng(axis)
    shape, to = [3, 4, 5], [3, 4, 5]
    shape[axis], to[axis] = 37, 90
    base, source, index = whole(random, to), whole(random, shape), random.integers(0, 90, shape).astype(np.int64)
    expected = base.copy()
    for place in np.ndindex(*shape):
        where = list(place)
        where[axis] = index[place]
        expected[tuple(where)] += source[place]
    assert np.array_equal(hgops.apply("scatter_add", base, index, source, axis=axis), expected)


@pytest.mark.parametrize("places, sources", [(1, 2), (2, 9), (50, 20)])
def test_sources_of_one_value(places, sources):
    """The gradient of a sum: what is added is a constant."""
    index = (np.arange(sources) % places).astype(np.int64)
    c = hgops.Computation()
    weight = c.input(np.zeros((places, 3), f32))
    c.output(c.gradient(c.op("sum", c.op("embedding", weight, c.input(index))), [weight])[0])
    expected = np.zeros((places, 3), f32)
    np.add.at(expected, index, f32(1))
    assert np.array_equal(c.run()[0], expected)


def folded(rows, combine=np.add):
    """F of at most 4096 rows."""
    rows, half = list(rows), 1
    while half < len(rows):
        half *= 2
    while half > 1:
        half //= 2
        for i in range(max(0, min(half, len(rows) - half))):
            rows[i] = combine(rows[i], rows[i + half])
        rows = rows[:half]
    return rows[0]


@pytest.mark.parametrize("width", [127, 128, 256, 300, 384, 1024, 1536])
@pytest.mark.parametrize("places, sources", [(90, 40), (9, 40), (2, 40)])
@pytest.mark.parametrize("leading", [(), (2,)])
def test_long_rows(width, places, sources, leading):
    """Rows that launches take in pieces: each sum is in order F, of one value, of few and of many; the rest is the base."""
    random = np.random.default_rng(width + places)
    base, source = (random.standard_normal((*leading, n, width)).astype(f32) for n in (places, sources))
    index = random.integers(0, places, (*leading, sources, 1))
    expected = base.copy()
    for lead in np.ndindex(*leading):
        for place in np.unique(index[lead]):
            expected[lead][place] += folded(source[lead][index[lead][:, 0] == place])
    found = hgops.apply("scatter_add", base, index, source, axis=len(leading))
    assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("width", [1, 200])
def test_a_number_out_of_range(width):
    """However an engine makes lists, it says what the reference machine says."""
    index, said = np.arange(40) % 30, set()
    index[7] = 30
    c = hgops.Computation()
    base, places, source = (c.input(a) for a in (np.zeros((30, width), f32), index[:, None].astype(np.int32), np.ones((40, width), f32)))
    c.output(c.op("scatter_add", base, places, source, axis=0))
    for engine in hgops.ALIKE:
        with pytest.raises(hgops.Error, match="scatter_add: index 30 is out of range of axis 0, which has 30 elements") as raised:
            c.run_on(engine)
        said.add(str(raised.value))
    assert len(said) == 1, said
