"""Fixtures of the conformance suite."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def executor():
    import hg

    return hg.Executor()
