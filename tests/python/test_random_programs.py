"""Random programs on arrays beside NumPy and PyTorch (random_programs.py); HOLOGRAM_RANDOM_PYTHON says how many."""

import os

import pytest

import random_programs
from program_draft import FORMS, Draft

PARTS = 20
COUNT = int(os.environ.get("HOLOGRAM_RANDOM_PYTHON", "2000"))


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part):
    beside = random_programs.has_torch()
    found = [wrong for seed in range(1 + part, 1 + COUNT, PARTS) if (wrong := random_programs.check(seed, beside))]
    assert not found, "\n".join(found)


def test_every_form_comes_up():
    """A form on its own gives programs that run."""
    for form in set(FORMS):
        assert any(Draft(seed, [form]).lines for seed in range(20)), form.__name__
