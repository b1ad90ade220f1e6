"""rank: places among the lanes with the same low bits, and the counts of each value, beside the model and NumPy."""

import numpy as np
import pytest

import model
from harness import compare
from values import SEED, generator

pytestmark = pytest.mark.engine

AROUND = 5  # elements of the shared array before the counts and behind them


def text(bits: int, before: str = "", who: int = 0) -> str:
    """Gives the lane's rank. One lane writes 7 all over the array, and gives all of it afterwards."""
    total = 2**bits + 2 * AROUND
    return f""".program ranks
.shared s u32 {total}
.buffer x u32 in
.buffer ranks u32 out
.buffer counts u32 out
    ldg.u32 r0, [x + lane]
    set.ne.u32 p0, blane, #{who}
    @p0 bra ready
    movi.u32 r3, #0
again:
    sts.u32 [s + r3], #7
    add.u32 r3, r3, #1
    set.lt.u32 p0, r3, #{total}
    @p0 bra again
ready:
{before}
    rank.u32 r1, r0, [s + #{AROUND}], #{bits}
    stg.u32 [ranks + lane], r1
    set.ne.u32 p0, blane, #{who}
    @p0 bra done
    movi.u32 r3, #0
    mul.u32 r4, r253, #{total}
more:
    lds.u32 r5, [s + r3]
    add.u32 r6, r4, r3
    stg.u32 [counts + r6], r5
    add.u32 r3, r3, #1
    set.lt.u32 p0, r3, #{total}
    @p0 bra more
done:
    exit
"""


def values(n: int, bits: int) -> list[int]:
    """Few values, all of them, one; the bits above differ."""
    rng = generator("rank", str(n), str(bits))
    most = rng.choice([1, 3, 2**bits, 2**32])
    return [rng.randrange(most) | rng.randrange(2**20) << bits & 0xFFFFFFFF for _ in range(n)]


def check(result, x: list[int], blocks: list[list[int | None]], bits: int) -> None:
    ranks = [r for b in blocks for r, v in zip(model.rank(b, bits)[0], b) if v is not None]
    there = [i for i, v in enumerate(v for b in blocks for v in b) if v is not None]
    got = [int(result.buffers["ranks"][i]) for i in there]
    compare(f"rank of {bits} bits", ["u32"], [[x[i] for i in there]], got, ranks, "u32", SEED)
    edge = [7] * AROUND
    want = [edge + model.rank(b, bits)[1] + edge for b in blocks]
    assert [list(map(int, row)) for row in result.buffers["counts"].reshape(len(blocks), -1)] == want


@pytest.mark.parametrize("bits", [1, 4, 8])
@pytest.mark.parametrize("n", [1, 2, 31, 32, 33, 100, 256, 1000, 1024])
def test_full_blocks(executor, n, bits):
    x = values(3 * n, bits)
    result = executor.run(text(bits), grid=(3,), block=(n,), buffers={
        "x": np.array(x, np.uint32), "ranks": np.zeros(3 * n, np.uint32), "counts": np.zeros(3 * (2**bits + 2 * AROUND), np.uint32)})
    assert result.fault is None
    check(result, x, [x[i : i + n] for i in range(0, 3 * n, n)], bits)
    one = np.array(x[:n], np.uint32) & (2**bits - 1)
    order = np.argsort(one, kind="stable")
    starts = np.cumsum(np.bincount(one, minlength=2**bits)) - np.bincount(one, minlength=2**bits)
    assert np.array_equal(starts[one] + result.buffers["ranks"][:n], np.argsort(order))


@pytest.mark.parametrize("bits", range(1, 9))
def test_partial_block(executor, bits):
    """A linear launch whose last block lacks lanes."""
    x = values(333, bits)
    arrays = {"x": np.array(x, np.uint32), "ranks": np.zeros(333, np.uint32), "counts": np.zeros(2 * (2**bits + 2 * AROUND), np.uint32)}
    result = executor.run(text(bits), lanes=333, buffers=arrays)
    assert result.fault is None
    check(result, x, [x[:256], x[256:]], bits)


@pytest.mark.parametrize("n", [32, 70, 256])
@pytest.mark.parametrize("bits", [2, 8])
def test_trapped_lanes(executor, n, bits):
    """Every lane divisible by 7 traps, and so does all of the second warp: it counts nowhere, and the others write the array."""
    x = values(n, bits)
    gone = [i % 7 == 0 or 32 <= i < 64 for i in range(n)]
    trap = """    bar.sync
    rem.u32 r2, blane, #7
    set.eq.u32 p1, r2, #0
    shr.u32 r2, blane, #5
    set.eq.u32 p2, r2, #1
    por p1, p1, p2
    @!p1 bra go
    trap #3
go:"""
    total = 2**bits + 2 * AROUND
    result = executor.run(text(bits, before=trap, who=5), grid=(1,), block=(n,), buffers={
        "x": np.array(x, np.uint32), "ranks": np.zeros(n, np.uint32), "counts": np.zeros(total, np.uint32)})
    assert result.fault["kind"] == "trap" and result.fault["lane"] == 0
    present = [None if g else v for v, g in zip(x, gone)]
    want = [0 if g else r for r, g in zip(model.rank(present, bits)[0], gone)]
    assert list(map(int, result.buffers["ranks"])) == want
    assert list(map(int, result.buffers["counts"])) == [7] * AROUND + model.rank(present, bits)[1] + [7] * AROUND


def test_later_ones_write_last(executor):
    """The second rank needs the first one's result, the third does not: it still writes its counts over the second one's."""
    program = """.program rows
.shared s u32 16
.buffer x u32 in
.buffer f f32 in
.buffer counts u32 out
.buffer g f32 out
    ldg.u32 r0, [x + lane]
    ldg.f32 r8, [f + lane]
    exp.f32 r8, r8
    rank.u32 r1, r0, [s + #8], #3
    and.u32 r2, r1, #3
    rank.u32 r3, r2, [s + #0], #3
    rank.u32 r4, r0, [s + #0], #3
    and.u32 r5, blane, #7
    lds.u32 r6, [s + r5]
    stg.u32 [counts + lane], r6
    stg.f32 [g + lane], r8
    exit
"""
    x = np.array(values(64, 3), np.uint32)
    result = executor.run(program, grid=(1,), block=(64,), buffers={
        "x": x, "f": np.zeros(64, np.float32), "counts": np.zeros(64, np.uint32), "g": np.zeros(64, np.float32)})
    assert result.fault is None
    assert np.array_equal(result.buffers["counts"], np.tile(np.bincount(x & 7, minlength=8), 8))


def test_in_a_row(executor):
    """Counts of one rank are read and changed before the next writes there; the running sums of a radix sort."""
    n, rows = 64, 5
    x = values(n * rows, 3)
    program = f""".program rows
.block {n}
.shared now u32 8
.shared sum u32 8
.buffer x u32 in
.buffer places u32 out
    movi.u32 r0, #0
again:
    mad.u32 r1, r0, #{n}, blane
    ldg.u32 r2, [x + r1]
    rank.u32 r3, r2, [now + #0], #3
    and.u32 r4, r2, #7
    lds.u32 r5, [sum + r4]
    add.u32 r5, r5, r3
    stg.u32 [places + r1], r5
    bar.sync
    set.ge.u32 p0, blane, #8
    @p0 bra on
    lds.u32 r6, [now + blane]
    lds.u32 r7, [sum + blane]
    add.u32 r6, r6, r7
    sts.u32 [sum + blane], r6
on:
    add.u32 r0, r0, #1
    set.lt.u32 p0, r0, #{rows}
    @p0 bra again
    exit
"""
    result = executor.run(program, grid=(1,), block=(n,), buffers={"x": np.array(x, np.uint32), "places": np.zeros(n * rows, np.uint32)})
    assert result.fault is None
    assert list(map(int, result.buffers["places"])) == model.rank(x, 3)[0]
