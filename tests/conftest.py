"""Which engines the tests run on: `--engine tile:avx2` (see engines.py), once for each; without it, what the environment says.

Tests marked `engine` launch programs (`-m engine` chooses them). In Python each launch runs on all the engines, which must
leave the same behind (hg.Executor). Of the command line, a test with the fixture `engine` runs once for each.
"""

import os
import sys
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import engines  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--engine", action="append", help="interp, tile[:ISA] or native[:ISA]; may be given several times")
    parser.addoption("--one-in", type=int, default=1, help="runs one test in so many, others with each --draw")
    parser.addoption("--draw", type=int, default=1, help="which")


def pytest_configure(config):
    config.addinivalue_line("markers", "posix: about what only a POSIX system has, or says in these words")
    config.addinivalue_line("markers", "engine: launches programs, on each --engine")
    config.addinivalue_line("markers", "resident: asks how much memory the process has, which means nothing where what is freed is kept")
    config.engines = config.getoption("--engine") or [engines.of_environment()]
    os.environ["HOLOGRAM_TEST_ENGINES"] = " ".join(config.engines)
    config.pluginmanager.register(Counted())


def pytest_collection_modifyitems(config, items):
    one_in, draw = config.getoption("--one-in"), config.getoption("--draw")
    items[:] = [item for item in items if zlib.crc32(f"{draw} {item.nodeid}".encode()) % one_in == 0]


def pytest_report_header(config):
    return f"engines: {', '.join(config.engines)}"


class Counted:
    """What the tests of operations have compared with exact values (tests/ops/accuracy.py), by all processes."""

    def __init__(self):
        self.cases, self.ulp = 0, {}

    def pytest_runtest_logreport(self, report):
        if report.when != "teardown":
            return
        for name, value in report.user_properties:
            if name == "cases":
                self.cases += value
            if name == "ulp":
                for operation, kind, worst in value:
                    self.ulp[operation, kind] = max(worst, self.ulp.get((operation, kind), 0))

    def pytest_terminal_summary(self, terminalreporter):
        if self.cases:
            terminalreporter.write_line(f"{self.cases} results of operations beside exact ones")
        if os.environ.get("HOLOGRAM_TEST_ULP"):  # the largest distances
            for (operation, kind), worst in sorted(self.ulp.items()):
                terminalreporter.write_line(f"ulp {operation} {kind} {worst:.4g}")


def pytest_generate_tests(metafunc):
    if "engine" in metafunc.fixturenames:
        marked = [pytest.param(name, marks=pytest.mark.engine) for name in metafunc.config.engines]
        metafunc.parametrize("engine", marked, indirect=True)


@pytest.fixture
def engine(request):
    """The engine that commands run on."""
    with engines.chosen(request.param):
        yield request.param
