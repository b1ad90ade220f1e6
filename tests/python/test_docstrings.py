"""Every operation has an example, which ends its docstring, and gives what it says."""

import re
from pathlib import Path

import pytest

import hologram as hg
from hologram import _core

ROOT = Path(__file__).resolve().parents[2]
TABLE = re.findall(r"^HG_OPERATION\(0x\w+, (\w+),", (ROOT / "include/hologram/operations.def").read_text(encoding="utf-8"), re.M)
EXAMPLE = re.compile(r"\n\nExample:\n\n    (.*)    # (.*)\Z")


def shown(value):
    if isinstance(value, tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    value = value.tolist() if isinstance(value, hg.Array) else value
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@pytest.mark.parametrize("name", TABLE)
def test_example_gives_what_it_says(name):
    documented = getattr(_core, name, None) or getattr(_core, "_" + name)
    found = EXAMPLE.search(documented.__doc__)
    assert found, f"{name} has no example: add a row to python/src/examples.def"
    call, result = found.groups()
    assert call.startswith(f"hg.{name}(")
    assert shown(eval(call, {"hg": hg})) == result  # noqa: S307
