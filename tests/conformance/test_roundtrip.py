"""Text and binary round trips: every program in the tree, every example of the instruction table, random ones."""

import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hg
import random_programs
from harness import literal
from tables import FLOAT, INT, OPS, TYPES, bits_of
from values import SEED

ROOT = Path(__file__).resolve().parents[2]
TREE = sorted(p for folder in ("src", "examples", "tests") for p in (ROOT / folder).rglob("*.atlas")
              if p.parent.name != "bad" and "corpus" not in p.parts)
SETTINGS = settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))


def round_trip(text: str | bytes, name: str = "test.atlas") -> None:
    """parse = print = encode = decode: all forms of one program say the same."""
    program = hg.parse(text, name)
    printed = program.print()
    again = hg.parse(printed, name)
    assert again.print() == printed, printed.decode()
    data = program.encode()
    decoded = hg.decode(data)
    assert decoded.print() == printed
    assert decoded.encode() == data
    lines = [i.line for i in program.insns()]
    assert [i.line for i in decoded.insns()] == lines
    same = [bytes(_without_line(i)) for i in program.insns()]
    assert [bytes(_without_line(i)) for i in again.insns()] == same
    assert [bytes(_without_line(i)) for i in decoded.insns()] == same


def _without_line(insn: hg.Insn) -> hg.Insn:
    copy = hg.Insn.from_buffer_copy(insn)
    copy.line = 0
    return copy


@pytest.mark.parametrize("path", TREE, ids=[str(p.relative_to(ROOT)) for p in TREE])
def test_tree(path):
    round_trip(path.read_bytes(), path.name)


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    round_trip(random_programs.program(random.Random(SEED + 1000 + seed)))


def names():
    return st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,62}\Z").filter(
        lambda n: not re.fullmatch(r"[rp][0-9]+|lane|blane|phi|in|out|inout|_", n))


def constants(t: str):
    bits = st.integers(0, (1 << bits_of(t)) - 1)
    forms = [bits.map(lambda b: literal(t, b))]
    if t in FLOAT:
        limit = {"f16": 60000, "bf16": 1e38, "f32": 1e38, "f64": 1e308}[t]
        number = st.floats(-limit, limit, allow_nan=False)
        forms += [number.map(lambda v: f"#{v!r}"), number.map(lambda v: f"#{v.hex()}"), st.integers(-9999, 9999).map(lambda v: f"#{v}"),
                  st.sampled_from(["#inf", "#-inf", "#nan", "#-0", "#-0.0", "#1e-45", "#0x1p-149"])]
    elif t[0] == "i":
        half = 1 << (bits_of(t) - 1)
        forms += [st.integers(-half, half - 1).map(lambda v: f"#{v}")]
    return st.one_of(forms)


@st.composite
def programs(draw):
    """Odd names, constants in every notation, every address form, comments and spacing anywhere."""
    symbols = draw(st.lists(names(), min_size=8, max_size=8, unique=True))
    buffer, scalar, shared, const, table, pool, label, local = symbols
    t, u = draw(st.sampled_from(INT + FLOAT)), draw(st.sampled_from(sorted(TYPES)))
    values = ", ".join(draw(st.lists(constants(t), min_size=1, max_size=5)))
    n = draw(st.integers(-(1 << 63), (1 << 63) - 1))
    k = draw(st.integers(0, 3))
    handle = draw(st.sampled_from(["", f" handle {draw(st.integers(1, (1 << 64) - 1))}"]))
    lines = [f".program {draw(names())}", f".buffer {buffer} {u} inout{handle}", f".scalar {scalar} {t}", f".shared {shared} {t} {k + 1}",
             f".const {const} {t} {{ {values} }}", f".table {table} {k + 1} inout", f".pool {pool}",
             f".local {local} {u} {k + 1}"]
    if draw(st.booleans()):
        lines.append(f".block {draw(st.integers(1, 8))}, {draw(st.integers(1, 8))}, {draw(st.integers(1, 16))}")
    body = [f"mov.{t} r0, {draw(constants(t))}", f"mov.{t} r1, {scalar}", f"ldg.{u} r2, [{buffer} + lane + #{n}]",
            f"ldg.{u} r2, [{buffer} + #{k}]", f"lds.{t} r0, [{shared} + #{k}]", f"lds.{t} r0, [{shared} + blane + #{n}]",
            f"ldl.{u} r2, [{local} + #{k}]", f"stl.{u} [{local} + blane + #{n}], r2",
            f"ldc.{t} r0, [{const}]", f"movi.u32 r5, #{k}", f"movi.u64 r6, #{abs(n)}", f"ldg.{u} r2, [r5 : r6]",
            f"ldg.{u} r2, [phi {draw(st.integers(0, 95))}, {draw(st.integers(0, 47))}, {draw(st.integers(0, 31)) * 8}]",
            f"ldg.{u} r2, [phi r5, {draw(st.integers(0, 47))}, r5]", f"stg.{u} [phi {draw(st.integers(0, 95))}, r5, 8], r2",
            f"pool.store.{u} [{pool} + r6 + #{n}], r2", f"pool.alloc.u64 r7, {pool}, #{abs(n)}",
            f"set.ne.{t} p{k}, r0, {draw(constants(t))}",
            f"@{draw(st.sampled_from(['', '!']))}p{k} bra {label}", f"sreg.u64 r8, {draw(st.sampled_from(['global.z', 'block_size.y']))}",
            f"cvt.{u}.{t} r2, r0" if u != "bool" else f"cvt.u8.{t} r2, r0", f"trap #{abs(n) % (1 << 32)}"]
    comment = draw(st.sampled_from(["", " ; x", "\t;; [r1 : r2] #", "  \r"]))
    lines += [draw(st.sampled_from(["", "    ", "\t"])) + b + comment for b in body]
    return "\n".join(lines + [f"{label}: exit"]) + draw(st.sampled_from(["", "\n", "\n\n; end"]))


@SETTINGS
@given(programs())
def test_generated_text(text):
    round_trip(text)


@SETTINGS
@given(st.sampled_from(INT + FLOAT).flatmap(lambda t: st.tuples(st.just(t), st.lists(constants(t), min_size=1, max_size=20))))
def test_generated_constants(case):
    """Constants mean what the second assembler says they mean, in the program and after a round trip."""
    from machine import constant

    t, values = case
    text = f".const c {t} {{ {', '.join(values)} }}\n" + "".join(f"    movi.{t} r0, {v}\n" for v in values) + "    exit\n"
    round_trip(text)
    want = [constant(t, v[1:]) for v in values]
    for program in (hg.parse(text), hg.parse(hg.parse(text).print())):
        assert [i.operand[1].bits for i in program.insns()[:-1]] == want, values


@SETTINGS
@given(st.binary(max_size=300))
def test_any_bytes_are_no_program_or_one(data):
    """Noise is refused with a sentence and never crashes."""
    for read in (hg.parse, hg.decode):
        try:
            program = read(data)
        except hg.Error as error:
            assert error.message
        else:
            round_trip(program.print())


def test_every_instruction_prints_and_parses():
    """The example of each row of the table, in a program around it."""
    head = """.buffer x f32 inout
.buffer y f32 inout
.buffer histogram u32 inout
.buffer low i32 inout
.buffer high i32 inout
.buffer flags u32 inout
.buffer slot u32 inout
.shared tile f32 64
.shared counts u32 256
.local window f32 8
.const coefficients f32 { #1, #2 }
.scalar a f32
.pool heap
"""
    for op in OPS.values():
        mnemonic, _, rest = op.example.partition(" ")
        if "JUMP" in op.flags:
            continue
        types = [p for p in mnemonic.removeprefix(op.name).split(".") if p]
        setup = [f"set.eq.u64 p{i}, lane, #{i}" for i in range(4)]
        letters = dict(zip([w.strip() for w in re.findall(r"\[[^]]*\]|[^,]+", rest)], op.operands))
        for i in range(10):
            kind = types[0] if types else "u32"
            for word, letter in letters.items():
                if word == f"r{i}":
                    kind = {"t": types[-1], "c": "u32"}.get(letter, types[0])
                elif f"r{i}]" in word:
                    kind = "u64" if op.name.startswith("pool") else "u32"
            uniform = "#1" if "u" in kind or kind[0] == "i" else "#1.5"
            setup.append(f"movi.{kind} r{i}, {uniform}")
        round_trip(head + "\n".join("    " + line for line in setup + [op.example, "exit"]) + "\n", op.name)
