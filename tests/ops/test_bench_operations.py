"""The benchmark can do every operation of the table: what it makes of a row compiles, runs and gives numbers."""

import os
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path += [str(BENCH / "cpu"), str(BENCH), str(BENCH / "cases")]
import weigh  # noqa: E402
from library import Device  # noqa: E402
from operations import cases, computation, contenders, every  # noqa: E402

ELEMENTS = 1 << 16


@pytest.fixture(scope="module")
def device():
    engine = os.environ.get("HOLOGRAM_CPU_ENGINE", "")
    yield Device(Path(os.environ["HOLOGRAM_LIB"]))
    os.environ["HOLOGRAM_CPU_ENGINE"] = engine  # which a Device takes away


def test_every_operation(device):
    operations = every.operations(computation.table(device.library), ELEMENTS)
    assert len(operations) > 200
    for operation in operations:
        ours = contenders.Ours(device, operation)
        assert all(np.isfinite(result).all() for result in ours.answer()), operation.name
        assert operation.work > 0 and ours.facts["launches"] > 0, operation.name


def test_chain_by_hand(device):
    """The program that somebody has written does what the formula says, bit for bit."""
    operation, = cases.chosen(cases.chains(ELEMENTS, True), ["chain"], ELEMENTS)
    answers = [contender(device, operation).answer() for contender in (contenders.Ours, contenders.ByHand)]
    assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*answers))


def test_words():
    """A word spells an operation out, or says what it could have been."""
    assert cases.of_word("softmax:bf16:1000", 1 << 20).inputs[0].shape == (1048, 1000)
    assert cases.of_word("columns_sum:f32:64", 1 << 20).name == "sum columns 64"
    with pytest.raises(LookupError, match="softmax"):
        cases.of_word("sofmax:f32:64", 1 << 20)


def test_special_cases_are_there(monkeypatch):
    """Each of cases.toml can be left out: its pass or function and its files are in the source."""
    monkeypatch.setattr(weigh, "TREE", weigh.ROOT)
    for name, case in tomllib.loads((weigh.HERE / "cases.toml").read_text(encoding="utf-8")).items():
        path, text, without = weigh.left_out(case)
        assert path.is_file() and without != text, name
        assert all(next(weigh.ROOT.glob(f"src/**/{file}"), None) for file in case["files"]), name
