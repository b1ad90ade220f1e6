"""The class instructions and the C functions for classes, against the statement in model.py."""

import numpy as np
import pytest

import hg
import model
from harness import array_of, compare
from tables import OPS
from values import generator

pytestmark = pytest.mark.engine

EVERY = list(range(96)) + [96, 97, 255, 256, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]


def statement(op, *operands):
    """(result, fault or None)"""
    try:
        return model.CLASS_OPS[op](*operands), None
    except model.Fault as fault:
        return 0, fault


def run(executor, op, t, columns):
    letters = OPS[op].operands
    predicate = letters[0] == "p"
    loads = "".join(f"    ldg.u32 r{i}, [a{i} + lane]\n" for i in range(1, len(columns) + 1))
    declared = "".join(f".buffer a{i} u32 in\n" for i in range(1, len(columns) + 1))
    sources = ", ".join(f"r{i}" for i in range(1, len(columns) + 1))
    tail = "    sel.u32 r9, p9, #1, #0\n" if predicate else ""
    text = f"{declared}.buffer result {t} out\n{loads}    {op}.{'u32' if predicate else t} {'p9' if predicate else 'r9'}, {sources}\n"
    text += f"{tail}    stg.{t} [result + lane], r9\n    exit\n"
    buffers = {f"a{i}": array_of("u32", c) for i, c in enumerate(columns, 1)}
    buffers["result"] = array_of(t, [5] * len(columns[0]))
    return executor.run(text, lanes=len(columns[0]), buffers=buffers), len(columns)


def check(executor, op, t, rows):
    columns = [list(c) for c in zip(*rows)]
    result, at = run(executor, op, t, columns)
    stated = [statement(op, *row) for row in rows]
    compare(op, ["u32"] * len(columns), columns, [int(b) for b in result.buffers["result"]], [v for v, _ in stated], t)
    first = next((i for i, (_, f) in enumerate(stated) if f), None)
    if first is None:
        assert result.fault is None
        return
    fault, want = result.fault, stated[first][1]
    assert (fault["kind"], fault["lane"], fault["instruction"]) == ("class", first, at)
    assert (fault["index"], fault["extent"]) == (want.index, want.extent), (rows[first], fault)


@pytest.mark.parametrize("op", ["mirror", "unity.test", "nbr.count"])
@pytest.mark.parametrize("part", ["valid", "all", "bad"])
def test_of_one_class(executor, op, part):
    check(executor, op, "u32", [(c,) for c in {"valid": range(96), "all": EVERY, "bad": EVERY[:95:-1]}[part]])


@pytest.mark.parametrize("c", EVERY)
def test_neighbours(executor, c):
    """Every number, the ones past the count included."""
    check(executor, "nbr.get", "u32", [(c, n) for n in (*range(9), 0xFFFFFFFF)])


def test_neighbours_are_mutual():
    for c in range(96):
        for n in model.neighbours(c):
            assert c in model.neighbours(n) and n != statement("mirror", c)[0]
    assert sum(len(model.neighbours(c)) for c in range(96)) == 2 * 256


@pytest.mark.parametrize("bad", ["none", "class", "page", "byte"])
def test_bound_map(executor, bad):
    rng = generator("bound.map")
    rows = [(rng.randrange(96), rng.randrange(48), rng.randrange(256)) for _ in range(300)] + [(0, 0, 0), (95, 47, 255)]
    extra = {"none": [], "class": [(96, 0, 0), (0xFFFFFFFF, 1, 2)], "page": [(3, 48, 0)], "byte": [(3, 4, 256), (3, 47, 1 << 31)]}
    check(executor, "bound.map", "u64", rows + extra[bad])


@pytest.mark.parametrize("blocks", [1, 95, 96, 97, 200])
def test_cls_get(executor, blocks):
    text = ".buffer result u32 out\n    cls.get.u32 r0\n    stg.u32 [result + lane], r0\n    exit\n"
    result = executor.run(text, grid=(blocks,), block=(2,), buffers={"result": array_of("u32", [0] * blocks * 2)})
    assert [int(b) for b in result.buffers["result"]] == [i // 2 % 96 for i in range(2 * blocks)]


def test_cls_get_counts_blocks_x_fastest(executor):
    text = ".buffer result u32 out\n    cls.get.u32 r0\n    stg.u32 [result + lane], r0\n    exit\n"
    result = executor.run(text, grid=(5, 7, 4), block=(1,), buffers={"result": array_of("u32", [0] * 140)})
    assert [int(b) for b in result.buffers["result"]] == [i % 96 for i in range(140)]


def test_resonance_adds_up_and_wraps():
    rng = generator("resonance")
    classes = [rng.randrange(96) for _ in range(900)]
    amounts = [rng.getrandbits(64) for _ in range(900)]
    text = """.buffer c u32 in
.buffer a i64 in
    ldg.u32 r0, [c + lane]
    ldg.i64 r1, [a + lane]
    res.accum.i64 r0, r1
    res.accum.i64 #5, #-1
    exit
"""
    executor = hg.Executor()
    want = [0] * 96
    for launch in range(2):  # the counters stay between launches
        result = executor.run(text, lanes=900, buffers={"c": array_of("u32", classes), "a": array_of("i64", amounts)})
        assert result.fault is None
        for c, a in zip(classes, amounts):
            want[c] += a
            want[5] -= 1
        assert executor.resonance() == [model.to_int("i64", w) for w in want], launch


def test_resonance_of_no_class_is_a_fault():
    executor = hg.Executor()
    text = ".buffer c u32 in\n    ldg.u32 r0, [c + lane]\n    res.accum.i64 r0, #1\n    exit\n"
    result = executor.run(text, lanes=4, buffers={"c": array_of("u32", [1, 95, 96, 1 << 31])})
    f = result.fault
    assert (f["kind"], f["lane"], f["instruction"], f["index"], f["extent"]) == ("class", 2, 1, 96, 96)
    assert executor.resonance() == [int(c in (1, 95)) for c in range(96)]


@pytest.mark.parametrize("amounts, neutral", [([3, -1, -2, 0], True), ([3, -1, -2, 1], False), ([1 << 62] * 4, True)])
def test_unity_neutral(amounts, neutral):
    """The deltas must sum to zero (i64, wrapping); else they are undone and the launch faults."""
    executor = hg.Executor()
    text = ".buffer a i64 in\n    cvt.u32.u64 r0, lane\n    ldg.i64 r1, [a + lane]\n    res.accum.i64 r0, r1\n    exit\n"
    buffers = {"a": np.array(amounts, np.int64)}
    assert executor.run(text, lanes=4, buffers=buffers).fault is None
    before = executor.resonance()
    fault = executor.run(text, lanes=4, buffers=buffers, flags=hg.UNITY_NEUTRAL).fault
    if neutral:
        assert fault is None and executor.resonance() == [model.to_int("i64", 2 * v) for v in before]
    else:
        assert fault["kind"] == "unity" and fault["index"] == sum(amounts) and executor.resonance() == before


@pytest.mark.parametrize("start", [0, 1, 767])
@pytest.mark.parametrize("step", [0, 1, 767, 768, 769, 0xFFFFFFFF])
def test_phase(start, step):
    """Read as of the launch; advanced once for it, at its end."""
    executor = hg.Executor()
    executor.set_phase(start)
    text = f""".buffer result u32 out
    phase.get.u32 r0
    phase.adv.u32 #{step}
    phase.get.u32 r1
    add.u32 r0, r0, r1
    stg.u32 [result + lane], r0
    exit
"""
    result = executor.run(text, lanes=600, buffers={"result": array_of("u32", [0] * 600)})
    assert set(int(b) for b in result.buffers["result"]) == {2 * start}
    assert executor.phase() == (start + step) % 768


def test_phase_advances_add_up():
    executor = hg.Executor()
    executor.run("    movi.u32 r0, #3\nagain:\n    phase.adv.u32 #300\n    loop r0, again\n    phase.adv.u32 #7\n    exit\n", lanes=300)
    assert executor.phase() == 907 % 768


def test_functions_of_the_library():
    lib = hg.lib
    for byte in range(256):
        assert lib.atlas_class_of_byte(byte) == model.class_of_byte(byte)
    for c in range(96):
        assert lib.atlas_class_byte(c) == model.class_byte(c)
        assert model.class_of_byte(model.class_byte(c)) == c
        assert lib.atlas_class_mirror(c) == statement("mirror", c)[0]
        assert lib.atlas_class_is_unity(c) == statement("unity.test", c)[0]
        assert lib.atlas_class_neighbour_count(c) == len(model.neighbours(c))
        assert [lib.atlas_class_neighbour(c, n) for n in range(8)] == (model.neighbours(c) + [-1] * 8)[:8]
    assert lib.atlas_class_neighbour(96, 0) == -1
    assert lib.atlas_boundary_offset(95, 47, 255) == 1179647
    for bad in ((96, 0, 0), (0, 48, 0), (0, 0, 256)):
        assert lib.atlas_boundary_offset(*bad) == -1
