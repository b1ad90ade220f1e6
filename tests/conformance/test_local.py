"""Local arrays: each lane's own, zero at first, whatever the index, the control around it and the shape of the launch; on the
library and on the second machine."""

import pytest

from harness import array_of
from tables import OPS, bits_of
from test_machine import both
from values import generator, random_bits

pytestmark = pytest.mark.engine

SHAPES = [dict(lanes=1), dict(lanes=61), dict(lanes=700), dict(grid=(3,), block=(5, 3)), dict(grid=(2, 2), block=(7, 2, 3)),
          dict(grid=(2,), block=(64,))]
# How an element is named: a constant, a number that all lanes have, a loop's counter, a lane's own number.
INDICES = {"constant": ("", "#2"), "scalar": ("    mov.u32 r9, n\n", "r9 + #-1"), "lane": ("    and.u32 r9, r0, #3\n", "r9"),
           "wide": ("    and.u32 r8, r0, #3\n    cvt.i64.u32 r9, r8\n    sub.i64 r9, r9, #4\n", "r9 + #5"),
           "narrow": ("    and.u32 r8, r0, #3\n    cvt.i8.u32 r9, r8\n", "r9 + #1")}
# What is between the store and the load: nothing, a branch that lanes take, a barrier.
BETWEEN = {"straight": "", "branch": "    set.lt.u32 p0, r0, #100\n@p0 bra over\n{insn}\nover:\n",
           "barrier": "    sts.u32 [s + blane], r0\n    bar.sync\n{insn}\n"}


def lanes_of(shape):
    size = shape.get("lanes", 1)
    for n in (*shape.get("grid", ()), *shape.get("block", ())):
        size *= n
    return size


def inputs(t, n, *what):
    rng = generator("local", t, *what)
    return {"i": array_of("u32", [rng.randrange(200) for _ in range(n)]), "v": array_of(t, random_bits(t, n, rng)),
            "y": array_of(t, [0] * n), "z": array_of(t, [0] * n)}


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("t", OPS["stl"].types)
def test_elements(t, index, between):
    """Two arrays of a type, one of bytes between them; what was stored, and what was not, which is zero."""
    setup, place = INDICES[index]
    insn = f"    stl.{t} [a + {place}], r2"
    shape = SHAPES[(len(t) + len(index) + len(between)) % len(SHAPES)]
    text = f""".buffer i u32 in
.buffer v {t} in
.buffer y {t} out
.buffer z {t} out
.scalar n u32
.shared s u32 128
.local a {t} 6
.local pad u8 3
.local b {t} 5
    ldg.u32 r0, [i + lane]
    ldg.{t} r1, [v + lane]
    ldg.{t} r2, [v]
{setup}    stl.{t} [b + #4], r1
    stl.{t} [a + {place}], r1
    cvt.u8.u32 r3, r0
    stl.u8 [pad + #1], r3
{BETWEEN[between].format(insn=insn)}    ldl.{t} r4, [a + {place}]
    ldl.u8 r5, [pad + #1]
    cvt.u32.u8 r5, r5
    rem.u32 r5, r5, #6
    ldl.{t} r6, [a + r5]
    ldl.{t} r7, [b + #4]
    rem.u32 r5, r5, #5
    ldl.{t} r10, [b + r5]
    set.lt.u32 p1, r5, #3
    sel.{t} r6, p1, r6, r7
    set.lt.u32 p1, r5, #2
    sel.{t} r4, p1, r4, r10
    stg.{t} [y + lane], r4
    stg.{t} [z + lane], r6
    exit
"""
    both(text, buffers=inputs(t, lanes_of(shape), index, between), scalars={"n": (7, 3)}, **shape)


@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["min", "max"])
def test_extreme_of_a_value_and_its_copy(op, t):
    """That the two are one value is seen when the array has become registers."""
    text = f""".buffer i u32 in
.buffer v {t} in
.buffer y {t} out
.buffer z {t} out
.local a {t} 5
    ldg.{t} r1, [v + lane]
    movi.u32 r2, #0
    stl.{t} [a + r2], r1
    ldl.{t} r3, [a + #0]
    {op}.{t} r4, r1, r3
    stg.{t} [y + lane], r4
    {op}.{t} r4, r3, r3
    stg.{t} [z + lane], r4
    exit
"""
    both(text, buffers=inputs(t, 300, op), lanes=300)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("barrier", ["", "    bar.sync"], ids=["without", "barrier"])
def test_zero_at_first(shape, barrier):
    """In every lane, also where a lane before it in the same memory has written: a running sum over what is there."""
    n = lanes_of(shape)
    text = f""".buffer x u32 inout
.local a u32 9
.local b u16 40
    ldg.u32 r0, [x + lane]
    movi.u32 r1, #0
    movi.u32 r2, #0
sum:
    ldl.u32 r3, [a + r1]
    ldl.u16 r4, [b + r1 + #31]
    cvt.u32.u16 r4, r4
    add.u32 r2, r2, r3
    add.u32 r2, r2, r4
    stl.u32 [a + r1], r0
    stl.u16 [b + r1 + #31], #65535
    add.u32 r1, r1, #1
    set.lt.u32 p0, r1, #9
    @p0 bra sum
{barrier}
    ldl.u32 r5, [a + #8]
    ldl.u16 r6, [b]
    cvt.u32.u16 r6, r6
    add.u32 r2, r2, r6
    mad.u32 r2, r2, #1000, r5
    stg.u32 [x + lane], r2
    exit
"""
    both(text, buffers={"x": array_of("u32", list(range(n)))}, **shape)


@pytest.mark.parametrize("barrier", ["", "    bar.sync\n"], ids=["without", "barrier"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sorting(shape, barrier):
    """Each lane sorts by insertion: loops that lanes leave one by one, stores under masks, indices of every lane's own."""
    n = lanes_of(shape)
    text = f""".buffer x u32 in
.buffer y u32 out
.local a u32 12
    ldg.u32 r0, [x + lane]
    movi.u32 r1, #0
make:
    mul.u32 r0, r0, #1664525
    add.u32 r0, r0, #1013904223
    shr.u32 r2, r0, #20
    stl.u32 [a + r1], r2
    add.u32 r1, r1, #1
    set.lt.u32 p0, r1, #12
    @p0 bra make
    movi.u32 r1, #1
insert:
    ldl.u32 r2, [a + r1]
    mov.u32 r3, r1
shift:
    set.eq.u32 p1, r3, #0
    @p1 bra place
    ldl.u32 r4, [a + r3 + #-1]
    set.le.u32 p2, r4, r2
    @p2 bra place
    stl.u32 [a + r3], r4
    sub.u32 r3, r3, #1
    bra shift
place:
    stl.u32 [a + r3], r2
{barrier}    add.u32 r1, r1, #1
    set.lt.u32 p0, r1, #12
    @p0 bra insert
    movi.u32 r1, #0
    movi.u32 r5, #0
fold:
    ldl.u32 r2, [a + r1]
    mad.u32 r5, r5, #31, r2
    add.u32 r1, r1, #1
    set.lt.u32 p0, r1, #12
    @p0 bra fold
    stg.u32 [y + lane], r5
    exit
"""
    both(text, buffers={"x": array_of("u32", list(range(n))), "y": array_of("u32", [0] * n)}, **shape)


@pytest.mark.parametrize("t", ["u8", "f16", "u32", "f64"])
def test_all_of_a_lanes_memory(t):
    """4096 bytes in one array and in several, the last element of each."""
    count = 4096 // (bits_of(t) // 8)
    half = count // 2
    text = f""".buffer v {t} in
.buffer y {t} out
.local a {t} {half}
.local b {t} {count - half}
    ldg.{t} r0, [v + lane]
    cvt.u32.u64 r1, lane
    rem.u32 r1, r1, #{half}
    stl.{t} [a + r1], r0
    stl.{t} [b + #{count - half - 1}], r0
    ldl.{t} r2, [a + #{half - 1}]
    ldl.{t} r3, [b + r1 + #{count - half - half}]
    and.u64 r4, lane, #1
    set.eq.u64 p0, r4, #0
    sel.{t} r2, p0, r2, r3
    stg.{t} [y + lane], r2
    exit
"""
    n = min(half + 5, 600)
    both(text, lanes=n, buffers={"v": array_of(t, random_bits(t, n, generator("all", t))), "y": array_of(t, [0] * n)})


@pytest.mark.parametrize("barrier", ["", "    bar.sync\n"], ids=["without", "barrier"])
@pytest.mark.parametrize("index", ["r1", "r2", "lane"])
def test_faults(index, barrier):
    """Out of bounds by an index of every lane's own, by one that all lanes have and by the lane's number: the lowest lane's first
    fault, zeros, and stores that are dropped."""
    n = 90
    text = f""".buffer i u32 in
.buffer y u32 out
.scalar n u32
.local a u32 8
    ldg.u32 r1, [i + lane]
    mov.u32 r2, n
    set.lt.u32 p0, r1, #4
{barrier}@p0 bra over
    stl.u32 [a + {index}], r1
over:
    ldl.u32 r3, [a + {index}]
    ldl.u32 r4, [a + #7]
    mad.u32 r3, r3, #1000, r4
    stg.u32 [y + lane], r3
    exit
"""
    for limit in (1, 5, 9):
        buffers = {"i": array_of("u32", [(i * 7 + limit) % (4 + limit) for i in range(n)]), "y": array_of("u32", [0] * n)}
        want = both(text, grid=(2,), block=(n // 2,), buffers=buffers, scalars={"n": (7, limit)})
        if want.fault:
            assert want.fault["buffer"] == "a" and want.fault["extent"] == 8


def test_lanes_that_end_keep_nothing():
    """A lane that has trapped or run out of steps leaves its memory to no one; barriers go on without it."""
    text = """.buffer x u32 inout
.local a u32 4
    ldg.u32 r0, [x + lane]
    and.u32 r1, r0, #3
    stl.u32 [a + r1], r0
    set.eq.u32 p0, r1, #2
@!p0 bra on
    trap #5
on:
    bar.sync
    movi.u32 r2, #0
again:
    add.u32 r2, r2, #1
    set.lt.u32 p1, r2, r0
    @p1 bra again
    bar.sync
    ldl.u32 r3, [a + r1]
    ldl.u32 r4, [a + #1]
    mad.u32 r3, r3, #10, r4
    stg.u32 [x + lane], r3
    exit
"""
    both(text, grid=(3,), block=(40,), step_limit=100, record="lowest",
         buffers={"x": array_of("u32", [(i * 37) % 120 for i in range(120)])})
