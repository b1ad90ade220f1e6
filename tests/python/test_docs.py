"""The code of the documentation runs, page by page: the blocks of a page are one program."""

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", re.S | re.M)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
PAGES = [page for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "bench/README.md", ROOT / "examples/README.md")
         if not page.name.endswith(".intro.md")]  # those are parts of generated pages, without all headings


RUN = [("README.md", 1), ("docs/python.md", 3), ("docs/recipes.md", 10), ("docs/circuits.md", 1), ("docs/pytorch.md", 5),
       ("docs/coming-from.md", 5)]


@pytest.mark.parametrize("page, fewest", RUN)
def test_code_blocks_run(page, fewest, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # where a page's files go
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


def anchors(path):
    """As GitHub makes them of headings, and those that a page names itself."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    named = set(re.findall(r'<a (?:id|name)="([^"]*)"', text))
    return named | {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"
