"""hologram circuit: what it prints and writes, and how it ends."""

import json

import numpy as np
import pytest
from command import refused, run

TEXT = "mark@c10 . swap@c10<->c11 . mark@c21 . mark@c21 . R+1@merge:mul@c02[c01,c03] . merge@c7"
CANONICAL = "mark@c10 . swap@c10<->c11 . merge:mul@c25[c26,c27]"
EXPLAINED = """\
c10 = c11^0x14
c11 = c10
c27 = mul(c25, c26)

hash: {}
5 steps as written, 3 in canonical form; 3 classes change; 1 operations; 0 temporaries; 2 components, 128 lanes
     1  transforms: transforms permute class numbers: R^4 = T^8 = ~^2 = nothing
     1  empty merge: merge without arguments does nothing
     1  mark mark: mark@a . mark@a = nothing, wherever the content has been in between
     1  operand order: add, mul, min and max have one order of their operands
     2  disjoint steps: steps that touch different classes commute
"""
HASH = "2ec9f6ec684d9de736827c7ddd9b7d54b2440a248d4763b95c7c3494fdb69c14"


def test_transcript(tmp_path):
    """A session, as docs/circuits.md shows the notation."""
    (tmp_path / "moves.circuit").write_text(TEXT.replace(" . ", "\n. ") + "\n")
    for arguments in (("-e", TEXT), ("moves.circuit",), ("moves.circuit", "--canonical"), ("-e", CANONICAL)):
        result = run("circuit", *arguments, cwd=tmp_path)
        assert (result.returncode, result.stdout, result.stderr) == (0, CANONICAL + "\n", "")
    assert run("circuit", "-e", TEXT, "--explain").stdout == EXPLAINED.format(HASH)
    assert run("circuit", "-e", "").stdout == "\n"


def test_run(tmp_path):
    pool = np.random.default_rng(0).integers(0, 256, (96, 12288), dtype=np.uint8)
    pool[:40].tofile(tmp_path / "in.bin")
    result = run("circuit", "-e", "swap@c1<->c50 . mark@c3", "--run", "--in", "in.bin", "--out", "out.bin", "--backend", "cpu",
                 "--engine", "tile", cwd=tmp_path)
    assert result.returncode == 0 and " ms for 128 lanes on cpu (tile " in result.stdout
    pool[40:] = 0
    pool[[1, 50]], pool[3] = pool[[50, 1]], pool[3] ^ 6
    assert (tmp_path / "out.bin").read_bytes() == pool.tobytes()


def test_json():
    told = json.loads(run("circuit", "-e", TEXT, "--json").stdout)
    assert told["canonical"] == CANONICAL and told["hash"] == HASH and told["run"] is None
    assert told["terms"] == {"c10": "c11^0x14", "c11": "c10", "c27": "mul(c25, c26)"}
    assert (told["steps"], told["canonical_steps"], told["changed"], told["lanes"]) == (5, 3, 3, 128)
    assert told["laws"] == {"transforms": 1, "empty merge": 1, "mark mark": 1, "operand order": 1, "disjoint steps": 2}
    ran = json.loads(run("circuit", "-e", "", "--json", "--run", "--backend", "cpu").stdout)
    assert ran["terms"] == ran["laws"] == {} and ran["run"]["backend"] == "cpu" and ran["run"]["lanes"] == 0


@pytest.mark.parametrize("code, sentence, arguments", [
    (1, "TEXT:1:12: there is no class 96: classes are c0 to c95", ("-e", "swap@c1<->c96")),
    (1, "bad.circuit:2:1: expected '.', '||', a transform (^1, v1, ~) or the end of the text, found 'mark'", ("bad.circuit",)),
    (1, "none.circuit: cannot open: No such file or directory", ("none.circuit",)),
    (1, "large.bin: 1179649 bytes are more than the 1179648 of the boundary pool", ("-e", "", "--run", "--in", "large.bin")),
    (2, "which circuit? hologram circuit FILE, or hologram circuit -e TEXT (see hologram circuit --help)", ()),
    (2, "one of --canonical, --explain and --run (see hologram circuit --help)", ("-e", "", "--run", "--explain")),
    (2, "--in, --out, --backend and --engine need --run (see hologram circuit --help)", ("-e", "", "--out", "x")),
    (2, "there is no option '--what' (see hologram circuit --help)", ("--what",)),
    (2, "-e needs a value (see hologram circuit --help)", ("-e",)),
])
def test_refusals(tmp_path, code, sentence, arguments):
    (tmp_path / "bad.circuit").write_text("mark@c1\nmark@c2")
    (tmp_path / "large.bin").write_bytes(bytes(1179649))
    refused(code, sentence, "circuit", *arguments, cwd=tmp_path)
