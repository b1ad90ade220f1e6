"""Sizes beyond 2^24 and 2^32. Without HOLOGRAM_LARGE=1 (./dev test-large) a few of them run, which need 2 GiB at most."""

import gc
import os

import numpy as np
import pytest

import hologram as hg

ALL = os.environ.get("HOLOGRAM_LARGE") == "1"
DEVICE = os.environ.get("HOLOGRAM_LARGE_BACKEND", "cpu")


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: takes part in ./dev test-large alone")


def pytest_collection_modifyitems(config, items):
    if not ALL:
        left_out = [item for item in items if item.get_closest_marker("whole")]
        items[:] = [item for item in items if not item.get_closest_marker("whole")]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def put():
    """An array of NumPy's on the device that is tested: of the CPU its own memory."""
    if DEVICE == "cpu":
        return hg.asarray
    device = hg.Executor(backend=DEVICE)
    return lambda array: hg.asarray(array).to_device(device)


@pytest.fixture(autouse=True)
def nothing_is_kept():
    with np.errstate(all="ignore"):
        yield
    gc.collect()
