"""The benchmark programs: what each is given, how it is launched, and how the peers write the same thing.

To add one: programs/NAME.atlas, or what writes its text, a row in PROGRAMS, and if a compiled loop is wanted `loop_NAME` in loops.c. A
peer is a function that gets the Case and returns something to call; the call leaves its answer in case.out. Peers get their output
where their library lets one give it."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import row_programs  # noqa: E402
import tile_programs  # noqa: E402

f32, u32, u64 = np.float32, np.uint32, np.uint64
COLUMNS = 1024
PAGE, LINE = 4096, 64


def array(count: int, dtype, slot: int = 0) -> np.ndarray:
    """Memory at a multiple of 64 bytes, each slot at another place in its page, so that arrays do not share sets of a cache."""
    dtype = np.dtype(dtype)
    room = np.empty(count * dtype.itemsize + 2 * PAGE, np.uint8)
    start = -room.ctypes.data % PAGE + slot * 11 * LINE
    return room[start:start + count * dtype.itemsize].view(dtype)


def spread(count: int, slot: int) -> np.ndarray:
    """Floats in (-4, 4), none of them 0, in no order: fractions of 1/16384."""
    y = array(count, f32, slot)
    bits = np.arange(count, dtype=u32)
    if slot % 2:
        bits = bits[::-1] + u32(17 * slot)
    y[:] = (bits * u32(2654435761) >> u32(8) & u32(0xffff)).astype(f32) / f32(8192) + f32(0.5 / 8192 - 4)
    return y


class Case:
    """One program at one size: the arrays that peers and loops work on. The library has buffers of its own with the same data."""

    def __init__(self, program: "Program", count: int, threads: int):
        self.program, self.count, self.threads = program, count, threads
        self.side = math.isqrt(count)
        self.inputs = program.inputs(count)
        self.a, self.b, self.c = (list(self.inputs.values()) + [None] * 3)[:3]
        self.out = array(program.outputs(count), program.out_type, 4)
        self.out[:] = 0
        self._temporary = None

    @property
    def temporary(self) -> np.ndarray:
        if self._temporary is None:
            self._temporary = self.temporary_like(self.out)
        return self._temporary

    @staticmethod
    def temporary_like(other: np.ndarray) -> np.ndarray:
        made = array(len(other), other.dtype, 5)
        made[:] = 0
        return made

    def scalars(self) -> dict:
        return self.program.scalars(self)

    def size(self) -> int:
        """What loops.c calls `size`."""
        return self.program.columns(self.count) or self.side


def floats(*names: str, extra: int = 0) -> Callable:
    return lambda count: {name: spread(count + extra, slot) for slot, name in enumerate(names)}


def small_floats(*names: str) -> Callable:
    """For matrices: the sums stay near 1."""
    def make(count: int) -> dict:
        arrays = floats(*names)(count)
        for a in arrays.values():
            a /= f32(4 * math.sqrt(math.isqrt(count)))
        return arrays
    return make


def samples(count: int) -> dict:
    y = array(count, np.uint8)
    y[:] = np.arange(count, dtype=u32) * u32(2654435761) >> u32(24)
    return {"samples": y}


@dataclass
class Program:
    name: str
    inputs: Callable                     # count -> name: array, in the order of case.a, case.b, case.c
    output: str                          # its name
    bytes: float | None                  # read and written an element, each once; None: memory does not matter
    peers: dict[str, Callable]
    tolerance: float = 0                 # of peers in Python; 0: the same value. Loops must have the same bits
    out_type: type = f32
    outputs: Callable = lambda count: count
    scalars: Callable = lambda case: {}
    shape: Callable = lambda case: {"lanes": case.count}
    work: Callable = lambda count: count  # what time grows with
    pause: float = 0.005                 # seconds that a peer's threads go on spinning
    loop: str | None = None              # in loops.c; None: as the program
    columns: Callable = lambda count: 0  # of the matrix; 0: it is square
    text: Callable | None = None         # count -> the program; None: programs/NAME.atlas
    least: int = 0                       # elements it can be run on

    def source(self, count: int) -> str:
        return self.text(count) if self.text else (HERE / f"programs/{self.name}.atlas").read_text(encoding="utf-8")


# ---- the peers, one function a program and peer ----------------------------------------------------------------------------

def np_add(k):
    return lambda: np.add(k.a, k.b, out=k.out)


def np_relu(k):
    a, b, c, y, zero = k.a, k.b, k.c, k.out, f32(0)

    def call():
        np.multiply(a, b, out=y)
        np.add(y, c, out=y)
        np.maximum(y, zero, out=y)
    return call


def np_chain(k):
    a, b, y, t = k.a, k.b, k.out, k.temporary
    factor, low, high, half = f32(1.1), f32(-2), f32(3), f32(0.5)

    def call():
        np.multiply(a, b, out=t)
        np.add(t, a, out=t)
        np.multiply(t, factor, out=t)
        np.subtract(t, b, out=t)
        np.maximum(t, low, out=t)
        np.minimum(t, high, out=t)
        np.multiply(t, a, out=t)
        np.add(t, half, out=y)
    return call


def np_exp(k):
    return lambda: np.exp(k.a, out=k.out)


def np_sigmoid(k):
    a, y, one = k.a, k.out, f32(1)

    def call():
        np.negative(a, out=y)
        np.exp(y, out=y)
        np.add(y, one, out=y)
        np.reciprocal(y, out=y)
    return call


def np_gelu(k):
    import scipy.special  # NumPy has no erf
    a, y, root, one, half = k.a, k.out, f32(math.sqrt(0.5)), f32(1), f32(0.5)

    def call():
        np.multiply(a, root, out=y)
        scipy.special.erf(y, out=y)
        np.add(y, one, out=y)
        np.multiply(y, a, out=y)
        np.multiply(y, half, out=y)
    return call


ROOT, CUBIC = f32(math.sqrt(2 / math.pi)), f32(0.044715)


def np_gelu_tanh(k):
    a, y, t, one, half = k.a, k.out, k.temporary, f32(1), f32(0.5)

    def call():
        np.multiply(a, a, out=t)
        np.multiply(t, a, out=t)
        np.multiply(t, CUBIC, out=t)
        np.add(t, a, out=t)
        np.multiply(t, ROOT, out=t)
        np.tanh(t, out=t)
        np.add(t, one, out=t)
        np.multiply(t, a, out=t)
        np.multiply(t, half, out=y)
    return call


def np_softmax(k):
    x, y = k.a.reshape(-1, COLUMNS), k.out.reshape(-1, COLUMNS)

    def call():
        np.subtract(x, x.max(axis=1, keepdims=True), out=y)
        np.exp(y, out=y)
        np.divide(y, y.sum(axis=1, keepdims=True), out=y)
    return call


def np_layer_norm(k):
    x, y, columns = k.a.reshape(-1, COLUMNS), k.out.reshape(-1, COLUMNS), f32(COLUMNS)

    def call():
        np.subtract(x, x.mean(axis=1, keepdims=True), out=y)
        variance = np.einsum("ij,ij->i", y, y) / columns
        np.multiply(y, (f32(1) / np.sqrt(variance + f32(row_programs.EPSILON)))[:, None], out=y)
    return call


def np_cross_entropy(k):
    x, t, y = k.a.reshape(-1, COLUMNS), k.temporary_like(k.a).reshape(-1, COLUMNS), k.out
    targets = k.b.astype(np.int64)[:, None]

    def call():
        largest = x.max(axis=1, keepdims=True)
        np.subtract(x, largest, out=t)
        np.exp(t, out=t)
        np.subtract(np.log(t.sum(axis=1)), (np.take_along_axis(x, targets, 1) - largest)[:, 0], out=y)
    return call


def np_row_sum(k):
    x = k.a.reshape(-1, COLUMNS)
    return lambda: np.add.reduce(x, axis=1, out=k.out)


def np_column_sum(k):
    x = k.a.reshape(-1, len(k.out))
    return lambda: np.add.reduce(x, axis=0, out=k.out)


def np_stencil(k):
    x, y, t, quarter, half = k.a, k.out, k.temporary, f32(0.25), f32(0.5)

    def call():
        np.add(x[:-2], x[2:], out=y)
        np.multiply(y, quarter, out=y)
        np.multiply(x[1:-1], half, out=t)
        np.add(y, t, out=y)
    return call


LIMIT, LEFT, TOP, SIDE = 256, f32(-2), f32(-1.25), f32(2.5)


def np_mandelbrot(k):
    width, steps = k.side, k.out.reshape(k.side, k.side)

    def call():
        along = np.arange(width, dtype=f32) * (SIDE / f32(width))
        cr, ci = np.broadcast_arrays(along + LEFT, (along + TOP)[:, None])
        zr, zi = np.zeros_like(cr), np.zeros_like(ci)
        alive = np.ones(cr.shape, bool)
        steps[:] = 0
        with np.errstate(all="ignore"):
            for _ in range(LIMIT):
                zr2, zi2, cross = zr * zr, zi * zi, zr * zi
                alive &= zr2 + zi2 <= 4
                steps[:] += alive
                zi = cross + cross + ci
                zr = zr2 - zi2 + cr
    return call


def np_block_sum(k):
    return lambda: np.add.reduce(k.a.reshape(-1, 256), axis=1, out=k.out)


def np_histogram(k):
    def call():
        k.out[:] = np.bincount(k.a, minlength=256)
    return call


def np_matmul(k):
    a, b, y = (v.reshape(k.side, k.side) for v in (k.a, k.b, k.out))
    return lambda: np.matmul(a, b, out=y)


# As a user writes a formula: every operation makes a new array.

def formula(k, call):
    """`finish` puts the value where the check looks; it is not timed."""
    call.finish = lambda: k.out.__setitem__(slice(None), call())
    return call


def expr_chain(k):
    a, b, factor, low, high, half = k.a, k.b, f32(1.1), f32(-2), f32(3), f32(0.5)
    return formula(k, lambda: np.minimum(np.maximum((a * b + a) * factor - b, low), high) * a + half)


def expr_relu(k):
    return formula(k, lambda: np.maximum(k.a * k.b + k.c, f32(0)))


def expr_sigmoid(k):
    return formula(k, lambda: f32(1) / (f32(1) + np.exp(-k.a)))


def expr_gelu_tanh(k):
    a, one, half = k.a, f32(1), f32(0.5)
    return formula(k, lambda: half * a * (one + np.tanh(ROOT * (a + CUBIC * a * a * a))))


def numexpr_(text: str, **constants) -> Callable:
    """One formula, parsed before; the output given."""
    def peer(k):
        import numexpr
        names = {n: v for n, v in (("a", k.a), ("b", k.b), ("c", k.c)) if v is not None} | constants
        numexpr.set_num_threads(k.threads)
        numexpr.evaluate(text, local_dict=names, out=k.out)
        return lambda: numexpr.re_evaluate(local_dict=names)
    return peer


def numexpr_softmax(k):
    import numexpr
    x, y = k.a.reshape(-1, COLUMNS), k.out.reshape(-1, COLUMNS)
    numexpr.set_num_threads(k.threads)

    def call():
        numexpr.evaluate("exp(x - m)", local_dict={"x": x, "m": x.max(axis=1, keepdims=True)}, out=y)
        numexpr.evaluate("y / s", local_dict={"y": y, "s": y.sum(axis=1, keepdims=True)}, out=y)
    return call


def numexpr_stencil(k):
    import numexpr
    names = {"p": k.a[:-2], "q": k.a[1:-1], "r": k.a[2:], "quarter": f32(0.25), "half": f32(0.5)}
    numexpr.set_num_threads(k.threads)
    numexpr.evaluate("(p + r) * quarter + q * half", local_dict=names, out=k.out)
    return lambda: numexpr.re_evaluate(local_dict=names)


def torch_(make: Callable) -> Callable:
    """PyTorch on the same memory as NumPy: large arrays have huge pages there, which PyTorch's own have not."""
    def peer(k):
        import torch
        torch.set_num_threads(k.threads)
        torch.set_grad_enabled(False)
        return make(torch, k, *(None if v is None else torch.from_numpy(v) for v in (k.a, k.b, k.c)), torch.from_numpy(k.out))
    return peer


@torch_
def torch_add(torch, k, a, b, c, y):
    return lambda: torch.add(a, b, out=y)


@torch_
def torch_relu(torch, k, a, b, c, y):
    def call():
        torch.addcmul(c, a, b, out=y)
        torch.relu_(y)
    return call


@torch_
def torch_chain(torch, k, a, b, c, y):
    t = torch.from_numpy(k.temporary)

    def call():
        torch.mul(a, b, out=t)
        t.add_(a)
        t.mul_(1.1)
        t.sub_(b)
        t.clamp_(-2, 3)
        t.mul_(a)
        torch.add(t, 0.5, out=y)
    return call


@torch_
def torch_exp(torch, k, a, b, c, y):
    return lambda: torch.exp(a, out=y)


@torch_
def torch_sigmoid(torch, k, a, b, c, y):
    return lambda: torch.sigmoid(a, out=y)


@torch_
def torch_gelu(torch, k, a, b, c, y):
    return lambda: torch._C._nn.gelu(a, out=y)


@torch_
def torch_gelu_tanh(torch, k, a, b, c, y):
    return lambda: torch._C._nn.gelu(a, approximate="tanh", out=y)


@torch_
def torch_softmax(torch, k, a, b, c, y):
    a, y = a.view(-1, COLUMNS), y.view(-1, COLUMNS)
    return lambda: torch.softmax(a, 1, out=y)


@torch_
def torch_layer_norm(torch, k, a, b, c, y):
    a, y = a.view(-1, COLUMNS), y.view(-1, COLUMNS)
    mean, deviation = torch.empty(len(a), 1), torch.empty(len(a), 1)
    call = torch.ops.aten.native_layer_norm.out
    return lambda: call(a, (COLUMNS,), None, None, row_programs.EPSILON, out0=y, out1=mean, out2=deviation)


@torch_
def torch_cross_entropy(torch, k, a, b, c, y):
    a, b = a.view(-1, COLUMNS), b.long()
    return lambda: y.copy_(torch.nn.functional.cross_entropy(a, b, reduction="none"))


@torch_
def torch_row_sum(torch, k, a, b, c, y):
    a = a.view(-1, COLUMNS)
    return lambda: torch.sum(a, 1, out=y)


@torch_
def torch_column_sum(torch, k, a, b, c, y):
    a = a.view(-1, len(y))
    return lambda: torch.sum(a, 0, out=y)


@torch_
def torch_stencil(torch, k, a, b, c, y):
    def call():
        torch.add(a[:-2], a[2:], out=y)
        y.mul_(0.25)
        y.add_(a[1:-1], alpha=0.5)
    return call


@torch_
def torch_block_sum(torch, k, a, b, c, y):
    a = a.view(-1, 256)
    return lambda: torch.sum(a, 1, out=y)


@torch_
def torch_histogram(torch, k, a, b, c, y):
    def call():
        k.out[:] = torch.bincount(a, minlength=256).numpy()
    return call


@torch_
def torch_matmul(torch, k, a, b, c, y):
    a, b, y = (v.view(k.side, k.side) for v in (a, b, y))
    return lambda: torch.mm(a, b, out=y)


# ---- the table ---------------------------------------------------------------------------------------------------------------

CHAIN = "minimum(maximum((a * b + a) * factor - b, low), high) * a + half"
GELU_TANH = "half * a * (one + tanh(root * (a + cubic * a * a * a)))"
MATRIX = {"inputs": small_floats("a", "b"), "output": "y", "bytes": None, "tolerance": 1e-5, "pause": 0.03, "loop": "matmul",
          "scalars": lambda k: {"size": u32(k.side)}, "work": lambda count: count ** 1.5,
          "peers": {"numpy": np_matmul, "torch": torch_matmul}}

# Rows of 1024, which a block holds in registers: neighbouring lanes have neighbouring columns, which suits vectors, and folds to the same
# bits as what suits GPUs, four neighbours a lane.
SIDE_BY_SIDE, FOUR_A_LANE = (256, 1), (256, 4)
ROWS = {"columns": lambda count: COLUMNS, "shape": lambda k: {"grid": (k.count // COLUMNS,)}, "tolerance": 1e-5}


def logits(count: int) -> dict:
    """A matrix, and a column of each row."""
    targets = array(count // COLUMNS, u32, 1)
    targets[:] = (np.arange(count // COLUMNS, dtype=u32) * u32(2654435761) >> u32(22)) % u32(COLUMNS)
    return {"x": spread(count, 0), "t": targets}


def wide_columns(count: int) -> int:
    """Of a matrix whose rows are one fold: at most 4096."""
    return max(COLUMNS, count // tile_programs.ROWS)


LETTERS, PATTERN = 4, 64
BOARD, FIRST_ROWS = 12, 3
LAYERS, RATE = 16, f32(0.125)


def letters(count: int) -> dict:
    """A text of a few letters and a pattern, which begins at some of the text's places."""
    text, pattern = array(count + PATTERN, np.uint8), array(PATTERN, np.uint8, 1)
    text[:] = np.random.default_rng(1).integers(0, LETTERS, count + PATTERN, np.uint8)
    pattern[:] = text[:PATTERN]
    return {"text": text, "pattern": pattern}


def letter_rows(count: int) -> dict:
    """Rows of bytes; half of them have a 0, anywhere."""
    text = array(count * PATTERN, np.uint8)
    text[:] = np.random.default_rng(1).integers(0, 96, count * PATTERN, np.uint8)
    return {"text": text}


def sparse(count: int) -> dict:
    """Rows of 0 to 32 elements, in any columns."""
    random = np.random.default_rng(1)
    start = array(count + 1, u32)
    start[0] = 0
    np.cumsum(random.integers(0, 33, count), out=start[1:])
    column = array(int(start[-1]), u32, 1)
    column[:] = random.integers(0, count, len(column))
    return {"start": start, "column": column, "x": spread(count, 2)}


def cells(k: Case) -> dict:
    """The grid of blocks for LAYERS layers whose rows are as long as the square's side."""
    return {"grid": (k.side // 64, k.count // k.side // LAYERS // 4, LAYERS)}


def histogram_blocks(k: Case) -> int:
    """Each clears its bins and adds them up: a few for one thread, and more where threads share them."""
    share, most = (32768, 4) if k.threads == 1 else (8192, 16 * k.threads)
    return min(max(k.count // share, 1), most)


COLUMN_BATCH = 4  # rows at a time: fewer, and more of each row, suit a processor


def column_sum(count: int) -> str:
    rows = count // wide_columns(count)
    return tile_programs.column_sum(rows, 1, 1, COLUMN_BATCH) if rows >= tile_programs.BATCH else tile_programs.fold_rows(rows)


def column_sum_shape(k: Case) -> dict:
    columns = wide_columns(k.count)
    few = k.count // columns < tile_programs.BATCH
    return {"lanes": columns} if few else {"grid": (columns // tile_programs.across(1, 1), 1)}


PROGRAMS = {p.name: p for p in (
    Program("add", floats("a", "b"), "y", 12,
            {"numpy": np_add, "numexpr": numexpr_("a + b"), "torch": torch_add}),
    Program("relu", floats("a", "b", "c"), "y", 16,
            {"numpy": np_relu, "numpy-expr": expr_relu, "numexpr": numexpr_("maximum(a * b + c, zero)", zero=f32(0)),
             "torch": torch_relu}, tolerance=1e-5),
    Program("chain", floats("a", "b"), "y", 12,
            {"numpy": np_chain, "numpy-expr": expr_chain,
             "numexpr": numexpr_(CHAIN, factor=f32(1.1), low=f32(-2), high=f32(3), half=f32(0.5)), "torch": torch_chain},
            tolerance=1e-5),  # numexpr and PyTorch may fuse a product and a sum
    Program("exp", floats("a"), "y", 8,
            {"numpy": np_exp, "numexpr": numexpr_("exp(a)"), "torch": torch_exp}, tolerance=1e-5),
    Program("sigmoid", floats("a"), "y", 8,
            {"numpy": np_sigmoid, "numpy-expr": expr_sigmoid, "numexpr": numexpr_("one / (one + exp(-a))", one=f32(1)),
             "torch": torch_sigmoid}, tolerance=1e-5),
    Program("gelu", floats("a"), "y", 8, {"numpy": np_gelu, "torch": torch_gelu}, tolerance=1e-5),
    Program("gelu_tanh", floats("a"), "y", 8,
            {"numpy": np_gelu_tanh, "numpy-expr": expr_gelu_tanh,
             "numexpr": numexpr_(GELU_TANH, half=f32(0.5), one=f32(1), root=ROOT, cubic=CUBIC), "torch": torch_gelu_tanh},
            tolerance=1e-5),
    Program("softmax", floats("x"), "y", 8,
            {"numpy": np_softmax, "numexpr": numexpr_softmax, "torch": torch_softmax}, tolerance=1e-5,
            columns=lambda count: COLUMNS, scalars=lambda k: {"columns": u32(COLUMNS)}, shape=lambda k: {"grid": (k.count // COLUMNS,)}),
    Program("softmax_held", floats("x"), "y", 8, {"numpy": np_softmax, "numexpr": numexpr_softmax, "torch": torch_softmax},
            text=lambda count: row_programs.softmax("f32", COLUMNS, SIDE_BY_SIDE), **ROWS),
    Program("softmax_by_4", floats("x"), "y", 8, {"numpy": np_softmax, "numexpr": numexpr_softmax, "torch": torch_softmax},
            text=lambda count: row_programs.softmax("f32", COLUMNS, FOUR_A_LANE), loop="softmax_held", **ROWS),
    Program("layer_norm", floats("x"), "y", 8, {"numpy": np_layer_norm, "torch": torch_layer_norm},
            text=lambda count: row_programs.layer_norm("f32", COLUMNS, SIDE_BY_SIDE), **ROWS),
    Program("cross_entropy", logits, "y", 4, {"numpy": np_cross_entropy, "torch": torch_cross_entropy},
            text=lambda count: row_programs.cross_entropy("f32", COLUMNS, SIDE_BY_SIDE), outputs=lambda count: count // COLUMNS, **ROWS),
    Program("row_sum", floats("x"), "y", 4, {"numpy": np_row_sum, "torch": torch_row_sum}, **ROWS | {"tolerance": 1e-4},
            text=lambda count: row_programs.row_sum("f32", COLUMNS, SIDE_BY_SIDE), outputs=lambda count: count // COLUMNS),
    Program("column_sum", floats("x"), "y", 4, {"numpy": np_column_sum, "torch": torch_column_sum}, tolerance=1e-3,
            columns=wide_columns, least=4 * COLUMNS, text=column_sum, outputs=wide_columns, shape=column_sum_shape,
            scalars=lambda k: {"columns": u32(wide_columns(k.count))}),
    Program("stencil", floats("x", extra=2), "y", 8,
            {"numpy": np_stencil, "numexpr": numexpr_stencil, "torch": torch_stencil}),
    Program("mandelbrot", lambda count: {}, "steps", None, {"numpy": np_mandelbrot}, out_type=u32,
            scalars=lambda k: {"width": u32(k.side), "left": LEFT, "top": TOP, "pixel": SIDE / f32(k.side), "limit": u32(LIMIT)}),
    Program("block_sum", floats("x"), "sums", 4, {"numpy": np_block_sum, "torch": torch_block_sum}, tolerance=1e-5,
            outputs=lambda count: count // 256, shape=lambda k: {"grid": (k.count // 256,)}),
    Program("histogram", samples, "bins", 1, {"numpy": np_histogram, "torch": torch_histogram}, out_type=u32,
            outputs=lambda count: 256, scalars=lambda k: {"count": u64(k.count)},
            shape=lambda k: {"grid": (histogram_blocks(k),)}),
    Program("search", letters, "found", 5, {}, out_type=u32, scalars=lambda k: {"length": u32(PATTERN)}),
    Program("row_search", letter_rows, "found", None, {}, out_type=u32, scalars=lambda k: {"length": u32(PATTERN)}),
    Program("sparse", sparse, "y", None, {}),
    Program("queens", lambda count: {}, "solutions", None, {}, out_type=u32, scalars=lambda k: {"size": u32(BOARD)},
            outputs=lambda count: BOARD ** FIRST_ROWS, shape=lambda k: {"lanes": BOARD ** FIRST_ROWS}, work=lambda count: 1),
    Program("stencil7", floats("x"), "y", 8, {}, least=1 << 14, scalars=lambda k: {"rate": RATE}, shape=cells),
    Program("stencil7_linear", floats("x"), "y", 8, {}, least=1 << 14, loop="stencil7",
            scalars=lambda k: {"rate": RATE, "width": u32(k.side), "height": u32(k.side // LAYERS), "depth": u32(LAYERS)}),
    Program("matmul", **MATRIX),
    Program("matmul_tiled", shape=lambda k: {"grid": (k.side // 16, k.side // 16)}, **MATRIX),
    Program("matmul_128", shape=lambda k: {"grid": (k.side // tile_programs.TILE,) * 2}, text=lambda count: tile_programs.matmul(),
            least=tile_programs.TILE ** 2, **MATRIX | {"scalars": lambda k: {"n": u32(k.side), "k": u32(k.side)}}),
)}
