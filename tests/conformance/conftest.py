"""Fixtures of the conformance suite."""

import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def executor():
    import hg

    return hg.Executor()


# What Metal refuses, by name (docs/metal.md).
REFUSED_BY_METAL = r"Metal has no 'atom\.\w+' of 64 bits|bytes of shared memory for a block of .* this GPU gives a block"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    refused = outcome.excinfo is not None and re.search(REFUSED_BY_METAL, str(outcome.excinfo[1]))
    if refused and os.environ.get("HOLOGRAM_TEST_BACKEND") == "metal":
        outcome.force_exception(pytest.skip.Exception(refused.group(), _use_item_location=True))
