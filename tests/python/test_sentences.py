"""Sentences of errors name nothing that only C has: hg_ functions, HG_ constants."""

import re
from pathlib import Path

import pytest

import hologram as hg

ROOT = Path(__file__).parents[2]
STRING = r'"((?:[^"\\]|\\.)*)"'
CALL = re.compile(r'\b(?:hg_fail\w*|ops_failed|ops_refuse)\(((?:[^";]|"(?:[^"\\]|\\.)*")*)\);')
NAME = re.compile(r"\b(?:hg|HG|ATLAS)_\w+")


OF_C = {  # what only C can ask for: streams of others, graphs
    "leave hg_stream_desc.foreign NULL", "memory of hg_host_allocate only", "hg_capture_begin comes first", "create it with HG_EVENT_TIMED",
}  # fmt: skip


def sentences():
    """What the library's functions fail with, by file."""
    for path in sorted((ROOT / "src").rglob("*.[ch]")):
        for call in CALL.finditer(path.read_text()):
            yield path.relative_to(ROOT), "".join(re.findall(STRING, call[1]))


def test_sentences_of_the_library():
    """Behind its first word, which Python leaves out where that is the function that was called, a sentence has no name of C."""
    found = [*sentences()]
    assert len(found) > 500
    for path, sentence in found:
        rest = sentence.partition(" ")[2]
        if not any(words in rest for words in OF_C):
            assert not NAME.search(rest), f"{path}: {sentence}"


def test_the_function_of_c_is_left_out():
    """The extension calls it; who wrote Python called something else."""
    with pytest.raises(hg.Unsupported, match="^through a slice with steps of a tensor of rank 8 no gradient flows; reshape it"):
        hg.grad(lambda x: x[:, 1::2].sum())(hg.ones((4,) * 8)).numpy()
