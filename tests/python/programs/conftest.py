"""Programs as users of NumPy and PyTorch write them. What runs twice takes the module, `xp`: NumPy, then Hologram."""

import numpy as np
import pytest

import hologram as hg


@pytest.fixture
def both():
    """Runs a program on NumPy's arrays and on Hologram's, and compares all that it returns: values within `rtol` and `atol`, integers
    and bools exactly. Returns Hologram's."""

    def run(program, *arrays, rtol=2e-5, atol=1e-6):
        expected = program(np, *(np.array(x) for x in arrays))
        found = program(hg, *(hg.array(x) for x in arrays))
        pairs = [(found, expected)] if not isinstance(expected, tuple) else list(zip(found, expected, strict=True))
        for mine, theirs in pairs:
            mine, theirs = np.asarray(mine), np.asarray(theirs)
            assert mine.shape == theirs.shape
            if theirs.dtype.kind in "biu":
                assert np.array_equal(mine, theirs)
            else:
                np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
        return found

    return run
