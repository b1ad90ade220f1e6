"""The CPU's engines by name: `interp`, `tile`, `native`, or one with an instruction set, as in `tile:avx2`; `default` is the
library's own choice."""

import os
import re
from contextlib import contextmanager

SETTINGS = ("HOLOGRAM_CPU_ENGINE", "HOLOGRAM_CPU_ISA")


def of_environment() -> str:
    """What the settings say now."""
    return ":".join(os.environ.get(name, "") for name in SETTINGS).rstrip(":") or "default"


def settings(name: str) -> dict[str, str]:
    """The environment that chooses an engine."""
    return dict(zip(SETTINGS, ("" if name == "default" else name).split(":") + [""]))


def is_report_of(name: str, report: str) -> bool:
    """Whether a launch that says this (`tile avx2`) ran on the engine."""
    engine, isa = settings(name).values()
    if engine == "interp":
        return report == "reference"
    if not engine and report in ("reference", "ptx", "msl"):  # a GPU: HOLOGRAM_TEST_BACKEND
        return True
    if report == "native x86-64":  # one lane after the other
        return engine != "tile" and isa != "sse2"
    return re.fullmatch(f"{engine or '(tile|native)'} {isa or '[a-z0-9]+'}", report) is not None


@contextmanager
def chosen(name: str):
    """What is opened inside opens on the engine."""
    before = {setting: os.environ.get(setting) for setting in SETTINGS}
    os.environ.update(settings(name))
    try:
        yield
    finally:
        for setting, value in before.items():
            os.environ.pop(setting) if value is None else os.environ.update({setting: value})
