"""The MSL of a dozen programs, against golden/NAME.metal, without the prelude: a change shows what it does to the text. What is
meant is written by HOLOGRAM_UPDATE=1. HOLOGRAM_CLI names the command."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
CLI = os.environ.get("HOLOGRAM_CLI", "hologram")
NAMES = ("examples/argmax", "examples/column_sum", "examples/histogram", "examples/matmul_int8", "examples/prefix_sum", "examples/saxpy",
         "examples/stencil3x3", "examples/transpose", "tests/gpu_plan/golden/ended_scan", "tests/gpu_plan/golden/loop",
         "tests/gpu_plan/golden/pool", "tests/gpu_plan/golden/strided")
LACKING = r"\b(goto|new|delete|double|try|catch|throw|virtual|asm|auto|static|std)\b"


def kernel_of(name: str) -> str:
    emitted = subprocess.run([CLI, "emit", "--target", "msl", ROOT / f"{name}.atlas"], capture_output=True, text=True, check=True)
    prelude = (ROOT / "src/backend/metal/msl/prelude.metal").read_text()
    assert emitted.stdout.startswith(prelude)
    return emitted.stdout[len(prelude):]


@pytest.mark.parametrize("name", NAMES)
def test_golden(name):
    golden, text = GOLDEN / f"{Path(name).name}.metal", kernel_of(name)
    if os.environ.get("HOLOGRAM_UPDATE"):
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", sorted(str(p.relative_to(ROOT).with_suffix("")) for p in (ROOT / "examples").glob("*.atlas")))
def test_has_only_what_metal_has(name):
    text = kernel_of(name)
    assert not re.findall(LACKING, text)
    assert text.count("{") == text.count("}")
