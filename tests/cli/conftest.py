import numpy as np
import pytest
from command import LANES, SAXPY, SQUARE


@pytest.fixture
def work(tmp_path):
    """A folder with programs and arrays."""
    (tmp_path / "saxpy.atlas").write_text(SAXPY)
    (tmp_path / "square.atlas").write_text(SQUARE)
    (tmp_path / "lanes.atlas").write_text(LANES)
    np.save(tmp_path / "x.npy", np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(tmp_path / "y.npy", np.ones((2, 3), np.float32))
    np.save(tmp_path / "d.npy", np.ones(6))
    return tmp_path
