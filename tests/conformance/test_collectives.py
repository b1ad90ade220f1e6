"""reduce, scan and vote against their canonical order, for block sizes around the powers of two; with lanes that are missing."""

import pytest

import model
from harness import UINT, array_of, compare
from tables import OPS, bits_of
from values import SEED, foldable, generator, random_bits, specials

pytestmark = pytest.mark.engine

SIZES = [1, 2, 3, 31, 32, 33, 255, 256, 257, 1000, 1024]
NAMES = [name for name in OPS if name.split(".")[0] in ("reduce", "scan")]
CASES = [(name, t, n) for name in NAMES for t in OPS[name].types for n in SIZES]


def expected(op, t, values):
    return [model.reduce(op, t, values)] * len(values) if op.startswith("reduce.") else model.scan(op, t, values)


def block_values(op, t, n, rng):
    """Three blocks of n: random bits with some special values; values that show the order; special values only."""
    mixed = [v if rng.random() < 0.95 else rng.choice(specials(t)[:9]) for v in random_bits(t, n, rng)]
    return [mixed, foldable(op, t, n, rng), [rng.choice(specials(t)) for _ in range(n)]]


@pytest.mark.parametrize("op, t, n", CASES, ids=[f"{op}.{t}-{n}" for op, t, n in CASES])
def test_full_blocks(executor, op, t, n):
    blocks = block_values(op, t, n, generator("collective", op, t, str(n)))
    flat = sum(blocks, [])
    text = f""".buffer x {t} in
.buffer result {t} out
    ldg.{t} r0, [x + lane]
    {op}.{t} r1, r0
    stg.{t} [result + lane], r1
    exit
"""
    result = executor.run(text, grid=(len(blocks),), block=(n,),
                          buffers={"x": array_of(t, flat), "result": array_of(t, [0] * len(flat))})
    assert result.fault is None
    want = sum((expected(op, t, b) for b in blocks), [])
    compare(f"{op}.{t} in blocks of {n}", [t], [flat], [int(b) for b in result.buffers["result"]], want, t, SEED)


@pytest.mark.parametrize("t", OPS["reduce.add"].types)
@pytest.mark.parametrize("op", NAMES)
def test_partial_block_and_trapped_lanes(executor, op, t):
    """A linear launch whose last block is partial; every lane divisible by 7 traps before the collective."""
    lanes = 256 + 77
    values = foldable(op, t, lanes, generator("partial", op, t))
    text = f""".buffer x {t} in
.buffer result {t} out
    ldg.{t} r0, [x + lane]
    rem.u64 r2, lane, #7
    set.ne.u64 p0, r2, #0
    @p0 bra go
    trap #3
go:
    {op}.{t} r1, r0
    stg.{t} [result + lane], r1
    exit
"""
    result = executor.run(text, lanes=lanes, buffers={"x": array_of(t, values), "result": array_of(t, [0] * lanes)})
    assert result.fault["kind"] == "trap" and result.fault["lane"] == 0 and result.fault["code"] == 3
    present = [None if i % 7 == 0 else v for i, v in enumerate(values)]
    want = sum((expected(op, t, present[i : i + 256]) for i in (0, 256)), [])
    want = [0 if p is None else w for p, w in zip(present, want)]
    compare(f"{op}.{t} with missing lanes", [t], [values], [int(b) for b in result.buffers["result"]], want, t, SEED)


@pytest.mark.parametrize("n, count", [(32, 2), (32, 23), (33, 3), (70, 8)])
@pytest.mark.parametrize("t", OPS["reduce.add"].types)
def test_several_of_few_warps(executor, t, n, count):
    """They fold together, also where they are more than the block has whole warps; the last block lacks lanes. Every fourth is another
    operation."""
    lanes = n * 2 + 13
    rng = generator("several", t, str(count))
    ops = ["reduce.max" if i % 4 == 3 else "reduce.add" for i in range(count)]
    values = [sum(block_values("reduce.add", t, n, rng), [])[:lanes] for _ in ops]
    lines = [f".block {n}", f".buffer x {t} in", f".buffer y {t} out", f"    mul.u64 r40, lane, #{count}",
             *(f"    ldg.{t} r{i}, [x + r40 + #{i}]" for i in range(count)), *(f"    {op}.{t} r{i}, r{i}" for i, op in enumerate(ops)),
             *(f"    stg.{t} [y + r40 + #{i}], r{i}" for i in range(count)), "    exit", ""]
    flat = [v[lane] for lane in range(lanes) for v in values]
    result = executor.run("\n".join(lines), lanes=lanes, buffers={"x": array_of(t, flat), "y": array_of(t, [0] * len(flat))})
    assert result.fault is None
    for i, (op, v) in enumerate(zip(ops, values)):
        want = sum((expected(op, t, v[at:at + n]) for at in range(0, lanes, n)), [])
        compare(f"{op}.{t}, one of {count}", [t], [v], [int(b) for b in result.buffers["y"][i::count]], want, t, SEED)


@pytest.mark.parametrize("n, words", [(1024, 6144), (256, 7680)])
def test_beside_shared_memory(executor, n, words):
    """Of 32 KiB, which every GPU has, the program leaves what one value of each lane needs, but not what two do."""
    values = foldable("reduce.add", "u32", n, generator("beside", str(n)))
    text = f""".shared s u32 {words}
.block {n}
.buffer x u32 in
.buffer sums u32 out
.buffer scanned u32 out
    ldg.u32 r0, [x + lane]
    sts.u32 [s + blane + #{words - n}], r0
    bar.sync
    reduce.add.u32 r1, r0
    lds.u32 r2, [s + blane + #{words - n}]
    scan.incl.u32 r2, r2
    stg.u32 [sums + lane], r1
    stg.u32 [scanned + lane], r2
    exit
"""
    empty = array_of("u32", [0] * n)
    result = executor.run(text, grid=(1,), block=(n,), buffers={"x": array_of("u32", values), "sums": empty, "scanned": empty})
    assert result.fault is None
    for op, name in (("reduce.add", "sums"), ("scan.incl", "scanned")):
        compare(op, ["u32"], [values], [int(b) for b in result.buffers[name]], expected(op, "u32", values), "u32", SEED)


@pytest.mark.parametrize("t", ["f32", "u64"])
@pytest.mark.parametrize("op", NAMES)
def test_three_dimensional_block(executor, op, t):
    """Lanes are in the order of their linear lane in the block, x fastest."""
    size, grid = (5, 3, 2), (2, 2, 1)
    total = 30 * 4
    values = foldable(op, t, total, generator("3d", op, t))
    text = f""".buffer x {t} in
.buffer result {t} out
    ldg.{t} r0, [x + lane]
    {op}.{t} r1, r0
    stg.{t} [result + lane], r1
    exit
"""
    result = executor.run(text, grid=grid, block=size, buffers={"x": array_of(t, values), "result": array_of(t, [0] * total)})
    want = [0] * total
    for by in range(2):
        for bx in range(2):
            lanes = [(bx * 5 + x) + 10 * ((by * 3 + y) + 6 * z) for z in range(2) for y in range(3) for x in range(5)]
            for lane, v in zip(lanes, expected(op, t, [values[i] for i in lanes])):
                want[lane] = v
    compare(f"{op}.{t} in 5x3x2 blocks", [t], [values], [int(b) for b in result.buffers["result"]], want, t, SEED)


@pytest.mark.parametrize("pattern", ["none", "all", "first", "last", "random"])
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("op", ["vote.any", "vote.all"])
def test_votes(executor, op, n, pattern):
    rng = generator("vote", str(n))
    flags = {"none": [0] * n, "all": [1] * n, "first": [1] + [0] * (n - 1), "last": [0] * (n - 1) + [1],
             "random": [rng.getrandbits(1) for _ in range(n)]}[pattern]
    flags = flags + [1 - f for f in flags]
    text = f""".buffer x u8 in
.buffer result u8 out
    ldg.u8 r0, [x + lane]
    set.ne.u8 p0, r0, #0
    {op} p1, p0
    sel.u8 r1, p1, #1, #0
    stg.u8 [result + lane], r1
    exit
"""
    result = executor.run(text, grid=(2,), block=(n,),
                          buffers={"x": array_of("u8", flags), "result": array_of("u8", [7] * (2 * n))})
    fold = any if op == "vote.any" else all
    want = [int(fold(flags[:n]))] * n + [int(fold(flags[n:]))] * n
    assert [int(b) for b in result.buffers["result"]] == want


@pytest.mark.parametrize("t", OPS["reduce.add"].types)
def test_operand_may_be_the_destination_or_a_constant(executor, t):
    text = f""".buffer result {t} out
    movi.{t} r0, #1
    reduce.add.{t} r0, r0
    reduce.mul.{t} r1, #1
    scan.incl.{t} r0, r0
    add.{t} r0, r0, r1
    stg.{t} [result + lane], r0
    exit
"""
    result = executor.run(text, grid=(1,), block=(9,), buffers={"result": array_of(t, [0] * 9)})
    one = model.convert(t, "u8", 1)
    nine = model.reduce("reduce.add", t, [one] * 9)
    want = model.evaluate("add", t, None, [model.scan("scan.incl", t, [nine] * 9), [one] * 9])
    assert [int(b) for b in result.buffers["result"]] == want
    assert result.buffers["result"].dtype == UINT[bits_of(t)]
