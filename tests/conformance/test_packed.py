"""Stores at a place that a scan has counted: side by side where each lane counts for one place, elsewhere where they do not."""

import numpy as np
import pytest

pytestmark = pytest.mark.engine


def text(kind: str, op: str) -> str:
    """Each lane that x says so of stores its value at what `op` makes of `counts`, behind the place that its block begins at."""
    return f""".program packed
.block 256
.buffer x u32 in
.buffer counts u32 in
.buffer values {kind} in
.buffer firsts i64 in
.buffer result {kind} inout
    ldg.u32 r0, [x + lane]
    ldg.u32 r1, [counts + lane]
    ldg.{kind} r2, [values + lane]
    sreg.u32 r3, block.x
    ldg.i64 r4, [firsts + r3]
    {op}.u32 r5, r1
    cvt.i64.u32 r6, r5
    add.i64 r6, r6, r4
    set.eq.u32 p0, r0, #0
    @p0 bra done
    stg.{kind} [result + r6], r2
done:
    exit
"""


@pytest.mark.parametrize("kind", ["u8", "i16", "f32", "u32", "i64", "f64"])
@pytest.mark.parametrize("op", ["scan.excl", "scan.incl"])
def test_packed(executor, kind, op):
    dtype = {"f": "float", "i": "int", "u": "uint"}[kind[0]] + kind[1:]
    rng = np.random.default_rng(7)
    for n in (256, 700, 1024):
        blocks = -(-n // 256)
        for share in (0, 0.1, 0.5, 0.9, 1):
            for counts_of in (lambda x: x, lambda x: 2 * x, lambda x: np.ones_like(x), lambda x: rng.integers(0, 3, n)):
                x = (rng.random(n) < share).astype(np.uint32)
                counts = counts_of(x).astype(np.uint32)
                values, firsts = rng.integers(0, 200, n).astype(dtype), np.arange(blocks) * 800 + 5
                block = np.arange(n) // 256
                ends = np.concatenate([np.cumsum(counts[block == b], dtype=np.int64) for b in range(blocks)])
                places = (firsts[block] + ends - (counts if op == "scan.excl" else 0))[x > 0]
                if len(set(places)) < len(places):
                    continue  # lanes race
                right = np.full(800 * blocks + 5, 99).astype(dtype)
                result = executor.run(text(kind, op), lanes=n, buffers={"x": x, "counts": counts, "values": values, "firsts": firsts,
                                                                        "result": right.copy()})
                right[places] = values[x > 0]
                assert result.fault is None
                assert np.array_equal(result.buffers["result"], right), (n, share)
