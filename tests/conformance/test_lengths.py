"""`len` in every type of element, place and shape: the whole elements that are bound, the same in every lane, and where barriers
may depend on it."""

import numpy as np
import pytest

from harness import array_of
from tables import TYPES, bits_of
from test_machine import SHAPES, both, lanes_of

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("shape", SHAPES[:6], ids=str)
@pytest.mark.parametrize("t", TYPES)
def test_every_type(t, shape):
    """Of buffers in, inout and out, the last not otherwise used; one of them under control that differs between lanes."""
    n = lanes_of(shape)
    text = f""".buffer a {t} in
.buffer b {t} inout
.buffer c {t} out
.buffer o u64 out
    len.u64 r0, a
    len.u64 r1, b
    mad.u64 r0, r0, #1000, r1
    and.u64 r2, lane, #1
    set.eq.u64 p0, r2, #0
    @p0 bra even
    len.u64 r1, c
    mad.u64 r0, r0, #1000, r1
even:
    stg.u64 [o + lane], r0
    exit
"""
    both(text, buffers={"a": array_of(t, [0] * 5), "b": array_of(t, [0] * 17), "c": array_of(t, [0]), "o": array_of("u64", [0] * n)},
         **shape)


@pytest.mark.parametrize("bytes_bound", [1, 3, 7, 8, 15, 16, 17])
@pytest.mark.parametrize("t", ["u16", "f32", "f64"])
def test_whole_elements(t, bytes_bound):
    """Bytes behind the last whole element do not count, and a loop to the length faults nowhere."""
    text = f""".buffer a {t} in
.buffer o u64 inout
    len.u64 r0, a
    movi.u64 r1, #0
again:
    set.ge.u64 p0, r1, r0
    @p0 bra done
    ldg.{t} r2, [a + r1]
    cvt.u64.{t} r3, r2
    add.u64 r3, r3, #1
    atom.add.u64 _, [o], r3
    add.u64 r1, r1, #1
    bra again
done:
    stg.u64 [o + #1], r0
    exit
"""
    state = both(text, lanes=1, buffers={"a": np.zeros(bytes_bound, np.uint8), "o": array_of("u64", [0, 0])})
    assert list(state.buffers["o"]) == [bytes_bound // (bits_of(t) // 8)] * 2 and state.fault is None


def test_barriers_may_depend_on_a_length():
    """Level grid: a loop to it may hold a barrier, a phase and a reduction."""
    text = """.block 32
.buffer a u32 in
.buffer o u32 out
    len.u64 r0, a
    movi.u64 r1, #0
    movi.u32 r2, #0
again:
    set.ge.u64 p0, r1, r0
    @p0 bra done
    ldg.u32 r3, [a + r1]
    add.u32 r3, r3, blane
    reduce.add.u32 r3, r3
    add.u32 r2, r2, r3
    phase.adv.u32 #3
    bar.sync
    add.u64 r1, r1, #1
    bra again
done:
    stg.u32 [o + lane], r2
    exit
"""
    state = both(text, lanes=70, buffers={"a": array_of("u32", [3, 5, 7, 11]), "o": array_of("u32", [0] * 70)})
    assert state.phase == 12
