"""The code of the documentation runs, page by page: the blocks of a page are one program."""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.S | re.M)


@pytest.mark.parametrize("page, fewest", [("README.md", 1), ("docs/python.md", 2), ("docs/pytorch.md", 3), ("docs/coming-from.md", 5)])
def test_code_blocks_run(page, fewest, capsys):
    path = ROOT / page
    blocks = [textwrap.dedent(block) for block in BLOCK.findall(path.read_text(encoding="utf-8"))]
    if any("import torch" in block for block in blocks):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    names = {"__name__": page}
    for block in blocks:
        exec(compile(block, page, "exec"), names)  # noqa: S102
    assert len(blocks) >= fewest
    if page == "docs/python.md":
        assert "launch" in capsys.readouterr().out
