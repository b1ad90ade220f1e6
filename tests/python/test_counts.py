"""What programs cost, as counted_programs.py counts it, is what counts.json says."""

import counted_programs
import numpy as np
import pytest

import hologram as hg


@pytest.mark.parametrize("backend", counted_programs.BACKENDS)
def test_programs_cost_what_is_recorded(backend):
    if why := counted_programs.why_not(backend):
        pytest.skip(why)
    found = counted_programs.count_elsewhere(backend)
    assert set(found) == set(counted_programs.PROGRAMS)
    lines = counted_programs.differences(backend, found)
    assert not lines, "\n".join(["where a change means to do so: python tests/python/counted_programs.py --record", *lines])


def test_counts_of_an_executor():
    with hg.Executor(backend="cpu") as executor:
        assert set(executor.counts.values()) == {0}
        x = hg.array(np.ones(3, "f4"), device=executor)
        (x * x + 1).compute()
        once = executor.counts
        assert once["launches"] == once["plans"] == once["compilations"] == 1
        assert once["moved_bytes"] == 24 and once["allocations"] >= 1 and once["allocated_bytes"] >= 12
        (x * x + 1).compute()
        assert executor.counts["launches"] == 2 and executor.counts["plans"] == 1
    with pytest.raises(ValueError, match="the executor is closed"):
        executor.counts  # noqa: B018: it raises
