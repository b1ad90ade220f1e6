"""hologram canon, hash, equal and emit: what they print and how they end."""

import hashlib
import re
from pathlib import Path

import pytest
from command import run

ROOT = Path(__file__).resolve().parents[2]

SAXPY = """.program saxpy
.buffer  x f32 in
.buffer  y f32 inout
.scalar  a f32
    ldg.f32  r0, [x + lane]
    ldg.f32  r1, [y + lane]
    mov.f32  r2, a
    fma.f32  r3, r2, r0, r1
    stg.f32  [y + lane], r3
    exit
"""
OTHER = SAXPY.replace("fma.f32  r3, r2, r0, r1", "mul.f32 r3, r2, r0\n    add.f32 r3, r3, r1")
RENAMED = """; another text of the same program
.buffer  in1 f32 in
.buffer  out1 f32 inout
.scalar  factor f32
    ldg.f32  r7, [out1 + lane]
    movi.f32 r9, #3                 ; never used
    ldg.f32  r4, [in1 + lane]
    mad.f32  r7, r4, factor, r7
    stg.f32  [out1 + lane], r7
    exit
"""


def write(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_hash_is_a_line_a_program(tmp_path):
    a, b = write(tmp_path, "a.atlas", SAXPY), write(tmp_path, "b.atlas", RENAMED)
    result = run("hash", a, b)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert [line[66:] for line in lines] == [a, b]
    assert re.fullmatch("[0-9a-f]{64}", lines[0][:64]) and lines[0][:64] == lines[1][:64]
    assert lines[0][:64] != hashlib.sha256(b"").hexdigest()


def test_hash_of_the_binary_form_is_the_same(tmp_path):
    a, binary = write(tmp_path, "a.atlas", SAXPY), str(tmp_path / "a.atb")
    assert run("asm", a, "-o", binary).returncode == 0
    assert run("hash", a).stdout[:64] == run("hash", binary).stdout[:64]


def test_canon_is_the_same_text(tmp_path):
    """Up to the names, which it keeps."""
    a, b = write(tmp_path, "a.atlas", SAXPY), write(tmp_path, "b.atlas", RENAMED)
    text = run("canon", a).stdout
    for own, other in (("program saxpy", "program program"), ("x f32", "in1 f32"), ("y f32", "out1 f32"), ("a f32", "factor f32"),
                       ("[x ", "[in1 "), ("[y ", "[out1 "), (" a,", " factor,")):
        assert own in text
        text = text.replace(own, other)
    assert run("canon", b).stdout == text


# Text that assembles: the repository's own. Libraries of functions have no canonical form.
CORPUS = sorted(p for d in ("examples", "bench", "tests") for p in (ROOT / d).rglob("*.atlas") if "bad" not in p.parts)


def test_the_corpus_is_there():
    assert len(CORPUS) > 300


def is_program(text):
    return not re.search(rb"^\s*\.entry", text, re.MULTILINE)


@pytest.mark.parametrize("part", [CORPUS[at:at + 16] for at in range(0, len(CORPUS), 16)], ids=lambda part: str(part[0].relative_to(ROOT)))
def test_canonical_text_has_the_hash_and_gives_itself(tmp_path, part):
    paths = [str(p) for p in part if is_program(p.read_bytes())]
    hashes = [line.split("  ", 1) for line in run("hash", *paths).stdout.splitlines()]  # of those that verify
    canonical = []
    for n, (_, path) in enumerate(hashes):
        once = run("canon", path)
        assert once.returncode == 0, (path, once.stderr)
        canonical.append(write(tmp_path, f"{n}.atlas", once.stdout))
        assert run("canon", canonical[n]).stdout == once.stdout, path
    if canonical:
        assert [line[:64] for line in run("hash", *canonical).stdout.splitlines()] == [digest for digest, _ in hashes]


def test_canon_refuses_what_takes_too_many_predicates(tmp_path):
    lines = [".buffer x u32 in", ".buffer y u32 out", "ldg.u32 r0, [x + lane]", "ldg.u32 r1, [x + #0]", "ldg.u32 r2, [x + #1]"]
    for k in range(20):
        lines += [f"set.lt.u32 p0, r0, #{k + 2}", "vote.any p0, p0", f"sel.u32 r{k + 3}, p0, r1, r2"]
    lines += [f"stg.u32 [y + lane + #{k}], r{k + 3}" for k in range(20)] + ["exit", ""]
    path = write(tmp_path, "a.atlas", "\n".join(lines))
    refused = run("canon", path)
    assert refused.returncode == 1 and refused.stdout == ""
    assert "needs 20 predicates at once and the ISA has 16" in refused.stderr
    assert "`hologram emit --target ssa`" in refused.stderr
    assert run("emit", "--target", "ssa", path).returncode == 0


def test_emit_keeps_the_names(tmp_path):
    text = run("emit", "--target", "ssa", write(tmp_path, "b.atlas", RENAMED)).stdout
    assert "ldg.f32 [in1 + lane]" in text and "factor" in text and "fma.f32" in text


def test_equal(tmp_path):
    a, b, c = (write(tmp_path, n, t) for n, t in (("a.atlas", SAXPY), ("b.atlas", RENAMED), ("c.atlas", OTHER)))
    same, different = run("equal", a, b), run("equal", a, c)
    assert (same.returncode, same.stdout) == (0, "equal\n")
    assert different.returncode == 1 and "part at line" in different.stdout and "fma.f32" in different.stdout


def test_trouble(tmp_path):
    good, bad = write(tmp_path, "a.atlas", SAXPY), write(tmp_path, "bad.atlas", "add.f32 r0, r1\n")
    library = write(tmp_path, "library.atlas", ".entry exp f32 f\nf:\nret\n")
    for arguments, code in ((["hash", bad], 1), (["canon", bad], 1), (["emit", "--target", "ssa", bad], 1), (["equal", good, bad], 2),
                            (["hash", library], 1), (["hash"], 2), (["canon"], 2), (["equal", good], 2),
                            (["emit", "--target", "gcn", good], 2), (["emit", good], 2), (["hash", "--what"], 2)):
        result = run(*arguments)
        assert result.returncode == code, arguments
        assert result.stderr.startswith("hologram: ") and result.stderr.count("\n") == 1, arguments


@pytest.mark.parametrize("target, shows", [("vector", "stg"), ("x86-avx512", "vaddps"), ("x86-avx2", "vaddps"), ("x86-64", "call"),
                                           ("arm64", "fadd")])
def test_emit_for_the_cpu(tmp_path, target, shows):
    """Instructions where an objdump knows the machine; bytes, 16 a line, where none does."""
    text = ".buffer x f32 inout\nldg.f32 r0, [x + lane]\nadd.f32 r0, r0, #3\nstg.f32 [x + lane], r0\nexit\n"
    write(tmp_path, "p.atlas", text)
    result = run("emit", "--target", target, "p.atlas", cwd=tmp_path)
    assert result.returncode == 0 and result.stderr == ""
    assert shows in result.stdout or re.match(r" {5}0:( {1,2}[0-9a-f]{2}){16}\n", result.stdout)
