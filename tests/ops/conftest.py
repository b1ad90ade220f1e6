import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def judge(record_property):
    """See accuracy.py. What it has judged is counted in pytest's last lines (tests/conftest.py)."""
    from accuracy import Judge
    made = Judge()
    yield made
    record_property("cases", made.cases)
    record_property("ulp", [(name, kind, worst) for (name, kind), worst in made.worst.items()])
