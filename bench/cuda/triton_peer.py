"""The programs in Triton. Imported only where Triton is."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

SHAPES = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 8))]
FOLD_BLOCKS = 2048


@triton.autotune(configs=SHAPES, key=["count", "NAME"])
@triton.jit
def pointwise(a_pointer, b_pointer, y_pointer, count, NAME: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    there = at < count
    given = tl.load(a_pointer + at, mask=there)
    a = given.to(tl.float32)
    if NAME == "add":
        y = a + tl.load(b_pointer + at, mask=there).to(tl.float32)
    elif NAME == "relu":
        y = tl.maximum(a, 0.0)
    elif NAME == "chain":
        b = tl.load(b_pointer + at, mask=there).to(tl.float32)
        y = tl.minimum(tl.maximum((a * b + a) * 1.1 - b, -2.0), 3.0) * a + 0.5
    elif NAME == "exp":
        y = tl.exp(a)
    elif NAME == "log":
        y = tl.log(a)
    elif NAME == "tanh":
        y = libdevice.tanh(a)
    elif NAME == "sigmoid":
        y = tl.sigmoid(a)
    elif NAME == "gelu":
        y = 0.5 * a * (1.0 + tl.erf(a * 0.7071067811865476))
    else:
        y = 0.5 * a * (1.0 + libdevice.tanh(0.7978845608028654 * (a + 0.044715 * a * a * a)))
    tl.store(y_pointer + at, y.to(given.dtype), mask=there)


@triton.autotune(configs=SHAPES, key=["count", "NAME"])
@triton.jit
def fold(a_pointer, parts_pointer, count, NAME: tl.constexpr, BLOCK: tl.constexpr):
    """Each program a part, by steps of all programs."""
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    if NAME == "sum":
        value = tl.zeros([BLOCK], dtype=tl.float32)
    else:
        value = tl.full([BLOCK], float("-inf"), dtype=tl.float32)
    for start in range(0, count, step):
        there = start + at < count
        if NAME == "sum":
            value += tl.load(a_pointer + start + at, mask=there, other=0.0)
        else:
            value = tl.maximum(value, tl.load(a_pointer + start + at, mask=there, other=float("-inf")))
    if NAME == "sum":
        tl.store(parts_pointer + tl.program_id(0), tl.sum(value, axis=0))
    else:
        tl.store(parts_pointer + tl.program_id(0), tl.max(value, axis=0))


def contender(torch, name: str, inputs: list, y, tuned: bool):
    """A call that returns the output. Tuned: the fastest of SHAPES; else the first, compiled alone."""
    count, a, b = len(inputs[0]), inputs[0], inputs[-1]
    shape = {} if tuned else SHAPES[0].kwargs | {"num_warps": SHAPES[0].num_warps}
    if name in ("sum", "max"):
        parts = torch.empty(FOLD_BLOCKS, device="cuda")
        kernel, last = fold if tuned else fold.fn, torch.sum if name == "sum" else torch.amax

        def call():
            kernel[(FOLD_BLOCKS,)](a, parts, count, NAME=name, **shape)
            return last(parts)
        return call
    kernel = pointwise if tuned else pointwise.fn

    def call():
        kernel[lambda meta: (triton.cdiv(count, meta["BLOCK"]),)](a, b, y, count, NAME=name, **shape)
        return y
    return call
