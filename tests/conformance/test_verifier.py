"""The verifier and the parser: each bad program is rejected at the intended line for the intended reason, each good one is
accepted. A bad program's first line is `; expect: <part of the message>`; its offending line, where there is one, ends in
`; <-- here`."""

import ctypes
from pathlib import Path

import pytest

import hg

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").glob("*.atlas"))
GOOD = sorted((HERE / "good").glob("*.atlas"))
EXPECT = "; expect: "


@pytest.mark.parametrize("path", BAD, ids=[p.stem for p in BAD])
def test_bad(path):
    text = path.read_text()
    lines = text.split("\n")
    assert lines[0].startswith(EXPECT)
    marked = [i for i, line in enumerate(lines, 1) if line.endswith("; <-- here")]
    assert len(marked) <= 1
    with pytest.raises(hg.Error) as error:
        hg.parse(text, path.name)
    assert error.value.status in ("PARSE", "VERIFY")
    assert lines[0].removeprefix(EXPECT) in error.value.message, error.value.message
    place = f"{path.name}:{marked[0]}:" if marked else f"{path.name}: "
    assert error.value.message.startswith(place), error.value.message


@pytest.mark.parametrize("path", BAD, ids=[p.stem for p in BAD])
def test_bad_only_for_that_reason(path):
    """Without the comment that marks it the program is still bad: the mark is no part of the reason."""
    with pytest.raises(hg.Error):
        hg.parse(path.read_text().replace("; <-- here", "").replace(EXPECT, "; "), path.name)


@pytest.mark.parametrize("path", GOOD, ids=[p.stem for p in GOOD])
def test_good(path):
    assert hg.parse(path.read_text(), path.name)


def test_there_are_enough():
    assert len(BAD) >= 60 and len(GOOD) >= 20


# ---- what text cannot say: instructions through the builder, and bytes ------------------------------------------------

REG, PRED, IMM, SCALAR, LABEL, COORD, POOL, MEM, BUFFER = range(1, 10)
TYPES = {name: hg.lib.atlas_type_from_name(name.encode()) for name in ("i32", "u32", "u64", "f32", "bool")}


def op(kind=0, **fields):
    return hg.Operand(kind=kind, **fields)


def insn(name, type_name=None, *operands, count=None, **fields):
    code = hg.lib.atlas_op_from_name(name.encode()) if isinstance(name, str) else name
    made = hg.Insn(op=code, type=TYPES[type_name] if type_name else 0, operand_count=len(operands) if count is None else count, **fields)
    for i, operand in enumerate(operands):
        made.operand[i] = operand
    return made


def build(*insns):
    """A program with an f32 inout buffer (symbol 0), a u32 scalar (1), shared f32 memory (2), a pool (3) and label 0 at 0."""
    lib, builder, program = hg.lib, ctypes.c_void_p(), ctypes.c_void_p()
    hg.check(lib.atlas_builder_create(None, b"raw", ctypes.byref(builder)))
    lib.atlas_builder_buffer(builder, b"x", TYPES["f32"], 3)
    lib.atlas_builder_scalar(builder, b"n", TYPES["u32"])
    lib.atlas_builder_shared(builder, b"s", TYPES["f32"], 8)
    lib.atlas_builder_pool(builder, b"heap")
    lib.atlas_builder_place(builder, lib.atlas_builder_label(builder, b"start"))
    for i in insns:
        lib.atlas_builder_insn(builder, ctypes.byref(i))
    hg.check(lib.atlas_builder_finish(builder, ctypes.byref(program)))
    return hg.Program(program)


EXIT = insn("exit")
ONE = insn("movi", "u32", op(REG, reg=0), op(IMM, bits=1))
ADD = ("add", "u32")


def test_builder_accepts_a_plain_program():
    program = build(ONE, insn(*ADD, op(REG, reg=0), op(REG, reg=0), op(SCALAR, symbol=1)), EXIT)
    assert hg.decode(program.encode()).print() == program.print()


RAW_BAD = {
    "no such instruction": [insn(0x7777), EXIT],
    "instruction 0": [insn(0), EXIT],
    "no such type": [insn("add", None, op(REG, reg=0), op(IMM), op(IMM)), EXIT],
    "type 200": [ONE, hg.Insn(op=hg.lib.atlas_op_from_name(b"mov"), type=200, operand_count=2), EXIT],
    "type the op does not have": [insn("and", "f32", op(REG, reg=0), op(IMM), op(IMM)), EXIT],
    "type on an untyped op": [insn("exit", "u32"), EXIT],
    "second type on an op without": [insn("movi", "u32", op(REG, reg=0), op(IMM), type2=3), EXIT],
    "cvt without a second type": [insn("cvt", "f32", op(REG, reg=1), op(IMM, bits=1)), EXIT],
    "too few operands": [ONE, insn(*ADD, op(REG, reg=0), op(REG, reg=0)), EXIT],
    "too many operands": [insn("exit", None, op(REG, reg=0)), EXIT],
    "operand count 200": [insn("exit", None, count=200), EXIT],
    "operand kind 99": [insn(*ADD, op(REG, reg=0), op(99), op(IMM)), EXIT],
    "missing source": [insn(*ADD, op(REG, reg=0), op(0), op(IMM)), EXIT],
    "constant as destination": [insn("movi", "u32", op(IMM), op(IMM)), EXIT],
    "special register as destination": [insn("movi", "u32", op(REG, reg=252), op(IMM)), EXIT],
    "predicate 16": [insn("set.eq", "u32", op(PRED, reg=16), op(IMM), op(IMM)), EXIT],
    "predicate 255 read": [insn("pnot", None, op(PRED, reg=0), op(PRED, reg=255)), EXIT],
    "constant with bits above its type": [insn("movi", "u32", op(REG, reg=0), op(IMM, bits=1 << 32)), EXIT],
    "scalar that is a buffer": [insn("mov", "f32", op(REG, reg=0), op(SCALAR, symbol=0)), EXIT],
    "scalar out of range": [insn("mov", "u32", op(REG, reg=0), op(SCALAR, symbol=4)), EXIT],
    "scalar 65535": [insn("mov", "u32", op(REG, reg=0), op(SCALAR, symbol=65535)), EXIT],
    "address symbol out of range": [insn("ldg", "f32", op(REG, reg=0), op(MEM, symbol=9)), EXIT],
    "address mode 7": [insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=7)), EXIT],
    "address of a scalar": [insn("ldg", "u32", op(REG, reg=0), op(MEM, symbol=1)), EXIT],
    "undefined index register": [insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=1, reg=77)), EXIT],
    "phi in shared space": [insn("lds", "f32", op(REG, reg=0), op(MEM, mode=2)), EXIT],
    "phi class out of range": [insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=2, bits=96)), EXIT],
    "phi byte out of range": [insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=2, bits=256 << 32)), EXIT],
    "phi with unknown register bits": [insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=2, phi_registers=0xF8)), EXIT],
    "table address without a table": [ONE, insn("ldg", "f32", op(REG, reg=0), op(MEM, mode=3, reg=0, reg2=0)), EXIT],
    "pool that is a buffer": [insn("pool.alloc", "u64", op(REG, reg=0), op(POOL, symbol=0), op(IMM, bits=16)), EXIT],
    "length of a scalar": [insn("len", "u64", op(REG, reg=0), op(BUFFER, symbol=1)), EXIT],
    "length of shared memory": [insn("len", "u64", op(REG, reg=0), op(BUFFER, symbol=2)), EXIT],
    "length of a pool": [insn("len", "u64", op(REG, reg=0), op(BUFFER, symbol=3)), EXIT],
    "length of a symbol out of range": [insn("len", "u64", op(REG, reg=0), op(BUFFER, symbol=4)), EXIT],
    "length of an address": [insn("len", "u64", op(REG, reg=0), op(MEM, symbol=0)), EXIT],
    "coordinate 99": [insn("sreg", "u32", op(REG, reg=0), op(COORD, bits=99)), EXIT],
    "label out of range": [insn("bra", None, op(LABEL, bits=1)), EXIT],
    "label 2^40": [insn("bra", None, op(LABEL, bits=1 << 40)), EXIT],
    "guard on an add": [insn(*ADD, op(REG, reg=0), op(IMM), op(IMM), guard=1), EXIT],
    "guard 17": [insn("bra", None, op(LABEL), guard=17), EXIT],
    "guard 0x80": [insn("bra", None, op(LABEL), guard=0x80), EXIT],
    "no instructions": [],
    "no end": [ONE],
}


@pytest.mark.parametrize("name", RAW_BAD)
def test_raw_instructions(name):
    with pytest.raises(hg.Error) as error:
        build(*RAW_BAD[name])
    assert error.value.status in ("VERIFY", "INVALID_ARGUMENT"), error.value
    assert len(error.value.message) > 10


@pytest.mark.parametrize("path", GOOD[:6], ids=[p.stem for p in GOOD[:6]])
def test_damaged_bytes_are_refused(path):
    """Any changed byte, and any other length, is noticed: by the checksum if by nothing else."""
    data = hg.parse(path.read_text()).encode()
    assert hg.decode(data).encode() == data
    for i in range(len(data)):
        with pytest.raises(hg.Error):
            hg.decode(data[:i] + bytes([data[i] ^ (1 << i % 8)]) + data[i + 1 :])
    for length in range(0, len(data), 3):
        with pytest.raises(hg.Error):
            hg.decode(data[:length])
    with pytest.raises(hg.Error):
        hg.decode(data + b"\0")
