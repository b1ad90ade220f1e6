"""Whole programs on the library and on the second machine (machine.py): control, coordinates, faults, step limit, shared
memory, pools, tables, addresses; the good programs; hard control flow; and random ones."""

import random
from pathlib import Path

import numpy as np
import pytest

import hg
from harness import array_of
from machine import Machine, Source, agrees
from tables import OPS, TYPES, bits_of
from values import SEED, random_bits

pytestmark = pytest.mark.engine

HERE = Path(__file__).parent
GOOD = sorted((HERE / "good").glob("*.atlas"))
CONTROL = sorted((HERE / "control").glob("*.atlas"))
RANDOM_PROGRAMS = 60


def both(text, *, boundary=None, phase=0, record="first", **launch):
    """Runs it twice and compares everything a launch leaves behind; gives the state.

    record: `first`, the fault reported is the first of the text, for programs whose loads are live and of which nothing changes
    its place; `lowest`, it is one of the lowest faulting lane's, for programs whose loads are live; `any`, as `agrees` says.
    """
    executor = hg.Executor()
    executor.set_phase(phase)
    if boundary is not None:
        executor.write_boundary(boundary)
    got = executor.run(text, **launch)
    launch.pop("flags", None)
    machine_launch = dict(launch, step_limit=launch.get("step_limit") or 1 << 32)
    want = Machine(text).run(boundary=boundary.tobytes() if boundary is not None else None, phase=phase, **machine_launch)
    if record == "first":
        assert got.fault == want.fault
    else:
        assert agrees(got.fault, want.faults, Source(text)), f"{got.fault} is none of {list(want.faults.items())[:3]}\n{text}"
        assert record == "any" or (got.fault or {}).get("lane") == min(want.faults, default=None), f"{got.fault}\n{text}"
    for name, array in want.buffers.items():
        for entry, (w, g) in enumerate(zip(array, got.buffers[name])) if isinstance(array, list) else [(0, (array, got.buffers[name]))]:
            if w is not None:
                same = np.array_equal(w.view(np.uint8), g.view(np.uint8))
                first = "" if same else int(np.flatnonzero(w.reshape(-1) != g.reshape(-1))[0])
                assert same, (f"{name}[{entry}]: element {first}: got {g.reshape(-1)[first]:#x}, want {w.reshape(-1)[first]:#x}\n{text}")
    assert executor.resonance() == want.resonance
    assert executor.phase() == want.phase
    assert executor.boundary() == bytes(want.boundary)
    return want


def default_arguments(text, lanes, rng):
    source = Source(text)
    buffers, scalars, tables = {}, {}, {}
    for name, s in source.symbols.items():
        if s.kind == "buffer":
            buffers[name] = array_of(s.type, random_bits(s.type, lanes, rng))
        elif s.kind == "pool":
            buffers[name] = np.zeros(4096, np.uint8)
        elif s.kind == "scalar":
            scalars[name] = (TYPES[s.type].code, 7)
        elif s.kind == "table":
            tables[name] = [np.arange(16, dtype=np.uint8)] * s.count
    return {"buffers": buffers, "scalars": scalars, "tables": tables, "step_limit": 150}


@pytest.mark.parametrize("lanes", [1, 300])
@pytest.mark.parametrize("path", GOOD, ids=[p.stem for p in GOOD])
def test_good_programs(path, lanes):
    text = path.read_text()
    if ".entry" in text:
        with pytest.raises(hg.Error) as error:
            hg.Executor().run(text, lanes=1)
        assert error.value.status == "VERIFY"
        return
    shape = {"lanes": lanes}
    if block := Source(text).block:  # a block of several dimensions needs a grid
        shape = {"grid": (1 if lanes == 1 else 3,), "block": block}
        lanes = lanes_of(shape)
    both(text, **shape, **default_arguments(text, lanes, random.Random(SEED)))


@pytest.mark.parametrize("limit", [1000, 11, 3])
@pytest.mark.parametrize("shape", [dict(lanes=70), dict(grid=(2,), block=(33,))], ids=["linear", "grid"])
@pytest.mark.parametrize("path", CONTROL, ids=[p.stem for p in CONTROL])
def test_control(path, shape, limit):
    """Lanes that part, meet, leave loops, trap and run out of steps, in programs made to be hard for engines of many lanes."""
    text = path.read_text()
    arguments = default_arguments(text, lanes_of(shape) + 64, random.Random(SEED)) | {"step_limit": limit}
    small = {name: array % 37 for name, array in arguments["buffers"].items()}
    both(text, record="any", **shape, **(arguments | {"buffers": small}))


@pytest.mark.parametrize("seed", range(RANDOM_PROGRAMS))
def test_random_programs(seed):
    import random_programs

    rng, live = random.Random(SEED + seed), seed % 2 == 0
    text = random_programs.program(rng, live)
    both(text, step_limit=3000, record="lowest" if live else "any", **random_programs.arguments(rng))


SHAPES = [dict(lanes=1), dict(lanes=255), dict(lanes=256), dict(lanes=257), dict(lanes=1000), dict(grid=(3,), block=(5,)),
          dict(grid=(2, 3), block=(4, 2)), dict(grid=(2, 3, 2), block=(3, 2, 2)), dict(grid=(1, 1, 5), block=(1, 1, 7)),
          dict(grid=(1, 4, 1), block=(0, 3, 0)), dict(grid=(0, 0, 1), block=(33,)), dict(grid=(2,), block=(16, 8, 8))]
COORDINATES = [f"{what}.{axis}" for what in ("lane", "block", "block_size", "grid_size", "global") for axis in "xyz"]


def lanes_of(shape):
    if "lanes" in shape:
        return shape["lanes"]
    return int(np.prod([n or 1 for n in shape["grid"]]) * np.prod([n or 1 for n in shape["block"]]))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("t", ["u32", "u64"])
def test_coordinates(t, shape):
    """Every coordinate and every special register, in linear and grid launches."""
    n = lanes_of(shape)
    head = [f".buffer c{i} {t} out" for i in range(len(COORDINATES))]
    body = [f"    sreg.{t} r0, {name}\n    stg.{t} [c{i} + lane], r0" for i, name in enumerate(COORDINATES)]
    head += [".buffer s u64 out"]
    body += ["    cvt.u64.u32 r1, r252", "    cvt.u64.u32 r2, r253", "    cvt.u64.u32 r3, r254",
             "    mad.u64 r1, r1, #10000, r2", "    mad.u64 r1, r1, #10000, r3", "    mad.u64 r1, r255, #1000000000000, r1",
             "    stg.u64 [s + lane], r1", "    exit", ""]
    buffers = {f"c{i}": array_of(t, [9] * n) for i in range(len(COORDINATES))} | {"s": array_of("u64", [0] * n)}
    both("\n".join(head + body), buffers=buffers, **shape)


@pytest.mark.parametrize("lanes", [1, 7, 8, 30])
def test_linear_launch_with_a_declared_block(lanes):
    text = """.block 8
.buffer x u32 out
    reduce.add.u32 r0, blane
    mad.u32 r0, r254, #1000, r0
    sreg.u32 r1, grid_size.x
    mad.u32 r0, r1, #10000, r0
    stg.u32 [x + lane], r0
    exit
"""
    both(text, lanes=lanes, buffers={"x": array_of("u32", [0] * lanes)})


@pytest.mark.parametrize("shape", [dict(lanes=7), dict(lanes=600), dict(grid=(3,)), dict(grid=(2, 3)), dict(grid=(3,), block=(5, 2))],
                         ids=str)
@pytest.mark.parametrize("default", ["7", "40", "512", "4, 3", "2, 3, 4"])
def test_default_block(default, shape):
    """A launch that says no block has the program's; a linear one if it has one dimension, else 256."""
    text = f""".block {default} default
.buffer x u64 out
.shared s u32 1
    atom.add.u32 _, [s], #1
    bar.sync
    lds.u32 r0, [s]
    mad.u32 r0, r254, #1000, r0
    sreg.u32 r1, block_size.y
    mad.u32 r0, r1, #1000000, r0
    cvt.u64.u32 r2, r0
    sreg.u64 r3, grid_size.x
    mad.u64 r2, r3, #1000000000, r2
    stg.u64 [x + lane], r2
    exit
"""
    own = tuple(int(n) for n in default.split(","))
    lanes = shape.get("lanes") or lanes_of(shape | {"block": shape.get("block", own)})
    both(text, buffers={"x": array_of("u64", [0] * lanes)}, **shape)


INDEX_TYPES = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
INDICES = {"i8": [0, 3, -1, 127, -128], "u8": [0, 5, 6, 255], "i16": [5, 6, -1, -32768], "u16": [2, 65535], "i32": [5, -1, 1 << 30],
           "u32": [4, 6, 0xFFFFFFFF, 0x80000000], "i64": [1, -1, 6, (1 << 62), -(1 << 62)],
           "u64": [1, 6, 7, 1 << 40, 1 << 62, 1 << 63, (1 << 63) + 3, (1 << 64) - 1]}


@pytest.mark.parametrize("space", ["global", "shared", "local", "const"])
@pytest.mark.parametrize("displacement", [0, 1, -1, 5, -5, 1 << 40, (1 << 63) - 1, -(1 << 63)])
@pytest.mark.parametrize("t", INDEX_TYPES)
def test_indices_and_bounds(t, displacement, space):
    """Indices of every integer type, with displacements: exact addresses, 0 out of bounds, the first faulting lane."""
    index = INDICES[t]
    load = {"global": "ldg.u16 r1, [x", "shared": "lds.u16 r1, [s", "local": "ldl.u16 r1, [l", "const": "ldc.u16 r1, [c"}[space]
    fill = {"shared": "    movi.u16 r3, #77\n    sts.u16 [s + #2], r3\n    sts.u16 [s + #5], r3\n    bar.sync\n",
            "local": "    movi.u16 r3, #77\n    stl.u16 [l + #2], r3\n    stl.u16 [l + #5], r3\n"}.get(space, "")
    text = f""".buffer i {t} in
.buffer x u16 in
.buffer y u16 out
.shared s u16 6
.local l u16 6
.const c u16 {{ #10, #11, #12, #13, #14, #15 }}
    ldg.{t} r0, [i + lane]
{fill}    {load} + r0 + #{displacement}]
    stg.u16 [y + lane], r1
    exit
"""
    for turn in range(len(index)):  # so that each index is lane 0's once, and its fault is the record
        bits = [v % (1 << bits_of(t)) for v in index[turn:] + index[:turn]]
        both(text, lanes=len(index), buffers={"i": array_of(t, bits), "x": array_of("u16", list(range(100, 106))),
                                              "y": array_of("u16", [9] * len(index))})


@pytest.mark.parametrize("space", ["global", "shared", "local"])
@pytest.mark.parametrize("t", OPS["stg"].types)
def test_stores_out_of_bounds_are_dropped(t, space):
    """Every type; lanes 0..9 store to i - 2, so the lowest faulting lane is 0 with index -2."""
    address, op = {"global": ("x", "stg"), "shared": ("s", "sts"), "local": ("l", "stl")}[space]
    text = f""".buffer i i32 in
.buffer v {t} in
.buffer x {t} inout
.shared s {t} 6
.local l {t} 6
    ldg.i32 r0, [i + lane]
    ldg.{t} r1, [v + lane]
    {op}.{t} [{address} + r0], r1
    exit
"""
    values = array_of(t, [1] * 10)
    want = both(text, lanes=10, buffers={"i": array_of("i32", [(i - 2) % (1 << 32) for i in range(10)]), "v": values,
                                         "x": array_of(t, [0] * 6)})
    assert want.fault["lane"] == 0 and want.fault["index"] == -2 and want.fault["extent"] == 6


@pytest.mark.parametrize("faulting", [[0], [5], [299], [299, 7], [7, 299], [256, 255], []])
def test_record_is_of_the_lowest_lane_and_its_first(faulting):
    """Each faulting lane faults three times, at accesses that keep their order: the record is the first of the lowest lane."""
    n = 300
    flags = [int(i in faulting) for i in range(n)]
    text = """.buffer f u32 in
.buffer x u32 inout
    ldg.u32 r0, [f + lane]
    set.eq.u32 p0, r0, #0
    @p0 bra fine

    ldg.u32 r1, [x + lane + #1000]     ; line 7
    stg.u32 [x + lane + #-5000], r1
    atom.add.u32 _, [x + lane + #3000], #1
fine:
    movi.u32 r2, #3
    stg.u32 [x + lane], r2
    exit
"""
    want = both(text, lanes=n, buffers={"f": array_of("u32", flags), "x": array_of("u32", [0] * n)})
    if faulting:
        low = min(faulting)
        assert want.fault == {"kind": "out_of_bounds", "instruction": 3, "line": 7, "code": 0, "lane": low, "buffer": "x",
                              "index": low + 1000, "extent": n}


DEAD = {"ldl": "ldl.u32 r1, [l + lane + #8]",
        "ldg": "ldg.u32 r1, [x + lane + #1000]", "ldc": "ldc.u32 r1, [c + lane + #1]", "lds": "lds.u32 r1, [s + lane + #64]",
        "phi": "ldg.u32 r1, [phi r2, r0, r0]", "table": "ldg.u32 r1, [r0 : r2]", "pool": "pool.load.u32 r1, [heap + r2]",
        "mirror": "mirror.u32 r1, #96", "nbr.count": "nbr.count.u32 r1, r2", "nbr.get": "nbr.get.u32 r1, r0, #9",
        "unity.test": "unity.test.u32 p1, r2", "bound.map": "bound.map.u64 r5, r2, #0, #0"}


@pytest.mark.parametrize("asks", DEAD.values(), ids=DEAD.keys())
def test_faults_of_dead_loads_vanish(asks):
    """Lane 2 stores out of bounds; all lanes load, or ask for a class, what they do not use: only the store faults."""
    text = f""".buffer x u32 inout
.const c u32 {{ #1 }}
.shared s u32 64
.local l u32 8
.table t 1 in
.pool heap
    cvt.u32.u64 r0, lane
    movi.u32 r2, #4294967292
    movi.u32 r3, #5
    {asks}
    set.ne.u32 p0, r0, #2
    @p0 bra fine
    stg.u32 [x + #-1], r3
fine:
    stg.u32 [x + lane], r3
    exit
"""
    buffers = {"x": array_of("u32", [0] * 6), "heap": np.zeros(64, np.uint8)}
    want = both(text, lanes=6, buffers=buffers, tables={"t": [np.zeros(16, np.uint8)]}, record="any")
    assert [len(want.faults[i]) for i in (0, 2)] == [1, 2]  # the reference of the text sees them
    text = text.replace("    stg.u32 [x + #-1], r3\n", "    stg.u32 [x + #0], r3\n")
    assert hg.Executor().run(text, lanes=6, buffers=buffers, tables={"t": [np.zeros(16, np.uint8)]}).fault is None


@pytest.mark.parametrize("code", [0, 1, 7, 0x7FFFFFFF, 0xFFFFFFFF])
def test_trap(code):
    text = f""".buffer x u32 inout
    set.ne.u64 p0, lane, #3
    @p0 bra go
    trap #{code}
go:
    reduce.add.u32 r0, #1
    stg.u32 [x + lane], r0
    exit
"""
    want = both(text, lanes=10, buffers={"x": array_of("u32", [5] * 10)})
    assert want.fault["code"] == code and list(want.buffers["x"]) == [9] * 3 + [5] + [9] * 6


@pytest.mark.parametrize("limit", [1, 2, 9, 10, 11, 100])
@pytest.mark.parametrize("form", ["loop", "bra", "guard", "two", "call", "join"])
def test_step_limit(form, limit):
    """Back-edges of a lane over all its loops; lane i goes round i + 5 times."""
    body = {
        "loop": "again:\n    add.u32 r1, r1, #1\n    loop r0, again\n",
        "guard": "again:\n    add.u32 r1, r1, #1\n    set.lt.u32 p0, r1, r0\n    @p0 bra again\n",
        "bra": "again:\n    set.ge.u32 p0, r1, r0\n    @p0 bra done\n    add.u32 r1, r1, #1\n    bra again\ndone:\n",
        "two": "again:\n    add.u32 r1, r1, #1\n    loop r0, again\n    movi.u32 r0, #4\n"
               "more:\n    add.u32 r1, r1, #1\n    loop r0, more\n",
        "join": "again:\n    add.u32 r1, r1, #1\n    set.ge.u32 p0, r1, r0\n    @p0 bra done\n    @p1 bra same\n"
                "    set.lt.u32 p1, r2, r1\nsame:\n    bra again\ndone:\n",
        "call": "again:\n    call sub\n    set.lt.u32 p0, r1, r0\n    @p0 bra again\n",
    }[form]
    text = f""".buffer x u32 out
    cvt.u32.u64 r0, lane
    add.u32 r0, r0, #5
    movi.u32 r1, #0
    movi.u32 r2, #3
    set.eq.u32 p1, r1, #0
{body}    stg.u32 [x + lane], r1
    exit
sub:
    movi.u32 r2, #2
inner:
    loop r2, inner
    add.u32 r1, r1, #1
    ret
"""
    record = "lowest" if form in ("bra", "join") else "first"  # there the loop is closed by another of its branches
    want = both(text, lanes=8, buffers={"x": array_of("u32", [0] * 8)}, step_limit=limit, record=record)
    assert limit > 10 or want.fault["kind"] == "step_limit"
    assert limit < 100 or want.fault is None


def test_step_limit_and_barriers():
    """Lanes that the limit ends are missing from the barrier after it."""
    text = """.buffer x u32 inout
    ldg.u32 r0, [x + lane]
again:
    loop r0, again
    reduce.add.u32 r1, #1
    stg.u32 [x + lane], r1
    exit
"""
    both(text, lanes=6, buffers={"x": array_of("u32", [1, 2, 3, 4, 9, 5])}, step_limit=4)


@pytest.mark.parametrize("depth", [1, 2, 31, 255, 256])
def test_call_depth(depth):
    lines = [".buffer x u32 out", "    movi.u32 r0, #0", "    call f1", "    stg.u32 [x + lane], r0", "    exit"]
    for i in range(1, depth + 1):
        lines += [f"f{i}:", f"    mad.u32 r0, r0, #3, #{i}"] + ([f"    call f{i + 1}"] if i < depth else []) + ["    ret"]
    both("\n".join(lines) + "\n", lanes=2, buffers={"x": array_of("u32", [0, 0])})


@pytest.mark.parametrize("count", [1, 2, 17])
def test_shared_memory_is_zero_at_first_in_every_block(count):
    text = f""".buffer x u32 out
.shared s u32 64
    lds.u32 r0, [s + blane]
    add.u32 r0, r0, #1
    sts.u32 [s + blane], r0
    bar.sync
    lds.u32 r1, [s + #{count}]
    add.u32 r0, r0, r1
    stg.u32 [x + lane], r0
    exit
"""
    both(text, grid=(count,), block=(32,), buffers={"x": array_of("u32", [0] * 32 * count)})


@pytest.mark.parametrize("bytes_of_pool", [4096, 1000, 100, 16, 8])
@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("sizes", [(16, 16), (1, 0), (100, 300), (2000, 2000), (17, 1 << 62), (0, (1 << 64) - 1)])
def test_pool_alloc_and_free(sizes, blocks, bytes_of_pool):
    """Shares, rounding, the full pool, and the stack order of free."""
    a, b = sizes
    text = f""".buffer x u64 out
.pool heap
    pool.alloc.u64 r0, heap, #{a}
    pool.alloc.u64 r1, heap, #{b}
    pool.alloc.u64 r2, heap, #32
    pool.free.u64 heap, r1
    pool.alloc.u64 r3, heap, #16
    pool.free.u64 heap, r0
    pool.alloc.u64 r4, heap, #1
    stg.u64 [x + lane], r0
    stg.u64 [x + lane + #{8 * blocks}], r1
    stg.u64 [x + lane + #{16 * blocks}], r2
    stg.u64 [x + lane + #{24 * blocks}], r3
    stg.u64 [x + lane + #{32 * blocks}], r4
    exit
"""
    both(text, grid=(blocks,), block=(8,), buffers={"x": array_of("u64", [5] * 40 * blocks), "heap": np.zeros(bytes_of_pool, np.uint8)})


@pytest.mark.parametrize("t", OPS["pool.load"].types)
def test_pool_load_and_store(t):
    """Every type at every byte offset: bounds and alignment."""
    size = bits_of(t) // 8
    offsets = [0, size, 64 - size, 64, 65, 64 - size + 1, 1, 3, 4, 12, -1, -8, 1 << 40]
    text = f""".buffer i i64 in
.buffer y {t} out
.pool heap
    ldg.i64 r0, [i + lane]
    pool.load.{t} r1, [heap + r0]
    stg.{t} [y + lane], r1
    exit
"""
    pool = np.arange(64, dtype=np.uint8) * 3 + 1
    for rotation in range(len(offsets)):  # so that each offset is lane 0's once, and its fault is the record
        order = offsets[rotation:] + offsets[:rotation]
        both(text, lanes=len(order), buffers={"i": np.array(order, np.int64), "y": array_of(t, [0] * len(order)), "heap": pool})
    store = f""".buffer i i64 in
.pool heap
    ldg.i64 r0, [i + lane]
    cvt.{t}.i64 r1, #1
    pool.store.{t} [heap + r0 + #{size}], r1
    exit
"""
    both(store, lanes=len(offsets), buffers={"i": np.array(offsets, np.int64), "heap": pool})


@pytest.mark.parametrize("t", OPS["ldg"].types)
def test_boundary_pool(t):
    size = bits_of(t) // 8
    boundary = np.random.default_rng(SEED).integers(0, 256, hg.BOUNDARY_BYTES, dtype=np.uint8)
    for c, page, byte in [(0, 0, 0), (95, 47, 256 - size), (5, 12, 200), (95, 47, 255), (5, 12, 3), (7, 0, 255)]:
        text = f""".buffer y {t} out
    ldg.{t} r0, [phi {c}, {page}, {byte}]
    stg.{t} [y + lane], r0
    exit
"""
        try:
            hg.parse(text)
        except hg.Error as error:  # a constant address that is misaligned may be refused at once
            assert byte % size and "align" in error.message
            continue
        both(text, lanes=2, boundary=boundary, buffers={"y": array_of(t, [0, 0])})
    rows = [(0, 0, 0), (1, 2, 8), (95, 47, 256 - size), (96, 0, 0), (0, 48, 0), (0, 0, 256), (95, 47, 255), (2, 2, 1), (2, 2, 4),
            (0xFFFFFFFF, 0, 0), (0, 0xFFFFFFFF, 0)]
    text = f""".buffer c u32 in
.buffer p u32 in
.buffer b u32 in
.buffer y {t} out
    ldg.u32 r0, [c + lane]
    ldg.u32 r1, [p + lane]
    ldg.u32 r2, [b + lane]
    ldg.{t} r3, [phi r0, r1, r2]
    stg.{t} [y + lane], r3
    exit
"""
    for rotation in range(len(rows)):
        order = rows[rotation:] + rows[:rotation]
        c, p, b = (array_of("u32", list(x)) for x in zip(*order))
        both(text, lanes=len(order), boundary=boundary, buffers={"c": c, "p": p, "b": b, "y": array_of(t, [0] * len(order))})


@pytest.mark.parametrize("t", OPS["stg"].types)
def test_boundary_pool_stores(t):
    text = f"""    cvt.u32.u64 r0, lane
    cvt.{t}.u32 r1, #1
    stg.{t} [phi r0, 3, {bits_of(t) // 8}], r1
    movi.u32 r2, #250
    stg.{t} [phi 4, r0, r2], r1
    exit
"""
    both(text, lanes=100, boundary=np.full(hg.BOUNDARY_BYTES, 7, np.uint8))


@pytest.mark.parametrize("t", OPS["ldg"].types)
def test_tables(t):
    """A buffer chosen at run time; entries of several sizes, one of them not bound."""
    size = bits_of(t) // 8
    entries = [np.arange(32, dtype=np.uint8) + 1, np.arange(16, dtype=np.uint8) + 101, None, np.arange(8, dtype=np.uint8)]
    rows = [(0, 0), (1, size), (3, 8 - size), (0, 24), (3, 8), (2, 0), (4, 0), (0, 1), (0, 33), (-1, 0), (0, -size), (1, 15)]
    text = f""".table t 4 inout
.buffer e i32 in
.buffer o i64 in
.buffer y {t} out
    ldg.i32 r0, [e + lane]
    ldg.i64 r1, [o + lane]
    ldg.{t} r2, [r0 : r1]
    stg.{t} [y + lane], r2
    bar.sync
    cvt.{t}.i32 r2, #1
    stg.{t} [r0 : r1], r2
    exit
"""
    for rotation in range(len(rows)):
        order = rows[rotation:] + rows[:rotation]
        e, o = zip(*order)
        both(text, lanes=len(order), tables={"t": entries}, buffers={"e": np.array(e, np.int32), "o": np.array(o, np.int64),
                                                                      "y": array_of(t, [0] * len(order))})


@pytest.mark.parametrize("t", OPS["ldg"].types)
def test_load_and_store_keep_bits(executor, t):
    """All bit patterns of 8 bits, special and random ones of the wider types; a bool reads as 0 or 1."""
    values = list(range(256)) if bits_of(t) == 8 else random_bits(t, 500, random.Random(SEED))
    text = f""".buffer x {t} in
.buffer y {t} out
    ldg.{t} r0, [x + lane]
    mov.{t} r1, r0
    stg.{t} [y + lane], r1
    exit
"""
    result = executor.run(text, lanes=len(values), buffers={"x": array_of(t, values), "y": array_of(t, [3] * len(values))})
    assert [int(b) for b in result.buffers["y"]] == ([int(v != 0) for v in values] if t == "bool" else values)


@pytest.mark.parametrize("fence", ["mem.fence", "mem.fence.grid", "bar.sync"])
def test_fences(fence):
    text = f""".buffer x u32 inout
    ldg.u32 r0, [x + lane]
    add.u32 r0, r0, #1
    stg.u32 [x + lane], r0
    {fence}
    ldg.u32 r0, [x + lane]
    add.u32 r0, r0, #1
    stg.u32 [x + lane], r0
    exit
"""
    both(text, lanes=100, buffers={"x": array_of("u32", list(range(100)))})


def test_barrier_orders_global_memory():
    text = """.buffer x u32 inout
    cvt.u32.u64 r0, lane
    stg.u32 [x + lane], r0
    bar.sync
    xor.u32 r1, r0, #5
    ldg.u32 r2, [x + r1]
    bar.sync
    stg.u32 [x + lane], r2
    exit
"""
    both(text, lanes=64, buffers={"x": array_of("u32", [0] * 64)})
