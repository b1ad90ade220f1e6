"""The plan of a GPU kernel, printed as pseudo-code: golden texts, and no word of a target's language in it.

To take over a wanted change of a golden text: HOLOGRAM_GOLDEN=write ./dev test python, and read the difference."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent / "golden"
CLI = os.environ.get("HOLOGRAM_CLI", str(ROOT / "build/release/hologram"))
PRINT_PLAN = Path(CLI).parent / "tests/gpu_plan/print_plan"
PTX = ROOT / "tests/ptx/golden"
USUAL, COUNT_STEPS, CHECKED = 0, 1, 2  # flags of hg_gpu_variant
CASES = [(PTX / "saxpy.atlas", "rich", USUAL), (PTX / "saxpy.atlas", "rich", CHECKED), (PTX / "clamp.atlas", "rich", USUAL),
         (PTX / "clamp.atlas", "plain", USUAL), (PTX / "block_sum.atlas", "rich", USUAL), (PTX / "gather.atlas", "rich", USUAL),
         (HERE / "strided.atlas", "rich", USUAL), (HERE / "strided.atlas", "rich", COUNT_STEPS), (HERE / "pool.atlas", "rich", USUAL),
         (HERE / "ended_scan.atlas", "plain", USUAL), (HERE / "packs.atlas", "rich", USUAL),
         (HERE / "two_packs.atlas", "rich", USUAL), (PTX / "tile.atlas", "rich", USUAL), (HERE / "exchange.atlas", "rich", USUAL),
         (HERE / "one_warp.atlas", "rich", USUAL), (HERE / "whole_warp.atlas", "rich", USUAL),
         (HERE / "loop.atlas", "plain", USUAL), (HERE / "spread.atlas", "rich", USUAL)]


def print_plan(program, target, flags):
    result = subprocess.run([PRINT_PLAN, target, str(flags), program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("program,target,flags", CASES, ids=lambda x: x.stem if isinstance(x, Path) else str(x))
def test_golden(program, target, flags):
    text, golden = print_plan(program, target, flags), HERE / f"{program.stem}.{target}.{flags}.plan"
    if os.environ.get("HOLOGRAM_GOLDEN") == "write":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("target", ["plain", "rich"])
def test_no_target(target):
    """Whatever the device can do, the plan says so in no language of it."""
    for program, _, flags in CASES:
        assert not re.search(r"%[phrd]\d|\.b\d|setp|\.rn\b|\.global", print_plan(program, target, flags))


def exponentials_and_their_sum(count):
    """Added in pairs, pairs of pairs, ..."""
    lines, sums = [".block 64", ".buffer x f32 in", ".buffer y f32 out"], [f"r{i}" for i in range(count)]
    lines += [f"    ldg.f32 r{i}, [x + lane + #{64 * i}]\n    exp.f32 r{i}, r{i}" for i in range(count)]
    while len(sums) > 1:
        lines += [f"    add.f32 {a}, {a}, {b}" for a, b in zip(sums[::2], sums[1::2])]
        sums = sums[::2]
    return "\n".join([*lines, "    reduce.add.f32 r0, r0", "    stg.f32 [y + lane], r0", "    exit", ""])


def test_sums_do_not_wait(tmp_path):
    """Functions share tests, some of them each. What the first ones add up to is computed in front of the next test."""
    program = tmp_path / "sum.atlas"
    program.write_text(exponentials_and_their_sum(32), encoding="utf-8")
    behind_last_test = print_plan(program, "rich", USUAL).partition("EXCHANGE")[0].rpartition("  part 0, block ")[2]
    added = re.findall(r"COMPUTE v\d+ = add\.f32, v\d+, v\d+$", behind_last_test, re.MULTILINE)
    assert 0 < len(added) <= 16
