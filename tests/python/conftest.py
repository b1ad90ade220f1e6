"""Tests of the Python package: `hologram` must be importable (./dev test package builds it and sets PYTHONPATH)."""

import functools
import gc
import inspect

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# On a busy machine drawing values is slow, which says nothing about the library.
settings.register_profile("tests", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("tests"), max_examples=15)  # for --hypothesis-profile, where each takes long
settings.load_profile("tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "torch: needs PyTorch; set by pytest_collection_modifyitems, and only where -m asks for it")


@functools.cache
def asks_for_torch(function):
    """Whether a test, or all of its file, is left out where PyTorch is not installed."""
    return "torch" in function.__globals__ or 'importorskip("torch"' in inspect.getsource(function)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items if "torch" in config.option.markexpr else ():
        if asks_for_torch(inspect.unwrap(item.function)):
            item.add_marker("torch")


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
