"""Tests of the Python package: `hologram` must be importable (./dev test package builds it and sets PYTHONPATH)."""

import gc

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# On a busy machine drawing values is slow, which says nothing about the library.
settings.register_profile("tests", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("tests"), max_examples=15)  # for --hypothesis-profile, where each takes long
settings.load_profile("tests")


@pytest.fixture(scope="module", autouse=True)
def earlier_objects():
    """What is there before a module, and PyTorch has many objects, is not looked through again after each of its tests."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True)
def quiet_numpy():
    with np.errstate(all="ignore"):
        yield
    gc.collect()
