"""Programs of blocks in Triton. Imported only where Triton is."""

import triton
import triton.language as tl

ROW_SHAPES = [triton.Config({}, num_warps=warps) for warps in (1, 2, 4, 8, 16)]
TILE_SHAPES = [triton.Config({"SIDE": side}, num_warps=warps) for side, warps in ((32, 4), (64, 4), (64, 8), (128, 8))]


@triton.autotune(configs=ROW_SHAPES, key=["COLUMNS", "NAME", "KIND"])
@triton.jit
def rows(x_pointer, t_pointer, y_pointer, COLUMNS: tl.constexpr, NAME: tl.constexpr, KIND: tl.constexpr):
    """A program a row, which it holds."""
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, COLUMNS)
    given = tl.load(x_pointer + row * COLUMNS + at)
    x = given.to(tl.float32)
    if NAME == "row_sum":
        tl.store(y_pointer + row, tl.sum(x, axis=0))
    elif NAME == "row_argmax":
        tl.store(y_pointer + row, tl.argmax(x, axis=0).to(tl.int64))
    elif NAME == "row_scan":
        tl.store(y_pointer + row * COLUMNS + at, tl.cumsum(x, axis=0).to(given.dtype))
    elif NAME == "cross_entropy":
        largest = tl.max(x, axis=0)
        total = tl.sum(tl.exp(x - largest), axis=0)
        target = tl.load(x_pointer + row * COLUMNS + tl.load(t_pointer + row)).to(tl.float32)
        tl.store(y_pointer + row, tl.log(total) + largest - target)
    elif NAME == "softmax":
        power = tl.exp(x - tl.max(x, axis=0))
        tl.store(y_pointer + row * COLUMNS + at, (power / tl.sum(power, axis=0)).to(given.dtype))
    else:
        if NAME == "layer_norm":
            x = x - tl.sum(x, axis=0) / COLUMNS
        y = x * tl.rsqrt(tl.sum(x * x, axis=0) / COLUMNS + 1e-5)
        tl.store(y_pointer + row * COLUMNS + at, y.to(given.dtype))


@triton.autotune(configs=TILE_SHAPES, key=["height", "width"])
@triton.jit
def transpose(x_pointer, y_pointer, height, width, SIDE: tl.constexpr):
    down = tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    across = tl.program_id(0) * SIDE + tl.arange(0, SIDE)
    tile = tl.load(x_pointer + down[:, None] * width + across[None, :])
    tl.store(y_pointer + across[:, None] * height + down[None, :], tl.trans(tile))


def contender(torch, case, arrays: dict):
    """A call that returns the output; None: Triton has no program of that name here."""
    x, y = arrays.get("x"), arrays["y"]
    if case.program == "transpose":
        height, width = x.shape

        def call():
            transpose[lambda meta: (width // meta["SIDE"], height // meta["SIDE"])](x, y, height, width)
            return y
        return call
    if case.program not in ("softmax", "layer_norm", "rms_norm", "cross_entropy", "row_sum", "row_argmax", "row_scan"):
        return None

    def call():
        rows[(x.shape[0],)](x, arrays.get("t", x), y, COLUMNS=x.shape[1], NAME=case.program, KIND=case.kind)
        return y
    return call
