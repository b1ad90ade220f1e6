"""The code of docs/python.md runs."""

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"


def test_code_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
    assert len(blocks) >= 2 and "launch" in capsys.readouterr().out
