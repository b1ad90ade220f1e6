"""Programs of blocks: rows with reductions, tiles in shared memory. What is timed, on which arrays, and what it should come to.

As in cases.py inputs repeat after TILE elements, so that what comes out is known from NumPy in f64 on one period of the input."""

import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np

from cases import HERE, TILE, SIZES, from_type, tile

sys.path.append(str(Path(__file__).resolve().parent.parent))
import row_programs  # noqa: E402
import tile_programs  # noqa: E402

COLUMNS = (1024, 4096, 16384)
ROW_BOUND = {"f32": 2e-5, "bf16": 1e-2}    # of what is expected; sums are of positive numbers, or compared with 1
ATTENTION_BOUND = 2e-4                     # of values up to 4; scores are up to 50, and their errors are of the weights
PRODUCT_BOUND = 2e-6                       # of the products' absolute sum
HISTOGRAM_BLOCKS = 1056
SMALL = 1 << 20                            # elements of a case that the CPU does, too


@dataclass
class Array:
    """`tile`: which of the inputs of cases.tile; "": an output."""
    tile: str
    kind: str
    count: int
    shape: tuple
    repeats: int = TILE                    # after so many elements

    def period(self) -> np.ndarray:
        return tile(self.tile, self.kind, min(self.count, self.repeats))


@dataclass
class Step:
    """A launch: of a grid of blocks, or of so many lanes."""
    text: str
    bindings: dict                         # parameter -> name of an array
    grid: tuple = ()
    lanes: int = 0
    scalars: dict = field(default_factory=dict)   # name -> (type, value)


@dataclass
class BlockCase:
    program: str
    label: str
    kind: str
    count: int                             # elements of the input
    arrays: dict                           # name -> Array
    steps: list
    expected: Callable                     # first, count -> values of the output y, what errors are compared with
    bound: float = 0
    work: float = 0                        # bytes that must be moved, or floating-point operations
    unit: str = "TB/s"
    adds: bool = False                     # to what is in the output

    def windows(self) -> list[tuple]:
        """The parts of the output that are looked at: (first, count)."""
        size = self.arrays["y"].count
        count = min(size, TILE)
        return sorted({(0, count), (size - count, count)})

    def difference(self, answer: np.ndarray, first: int) -> str:
        """What is wrong with a part of somebody's output; "" if nothing is."""
        expected, scale = self.expected(first, len(answer))
        wrong = ~(np.abs(answer - expected) <= self.bound * scale)
        if not wrong.any():
            return ""
        at = int(np.argmax(wrong))
        return (f"{int(wrong.sum())} of {len(wrong)} elements are wrong; element {first + at} is {answer[at]!r}, "
                f"not {expected[at]!r}")


def periodic(values: np.ndarray, scale=None) -> Callable:
    """An output that repeats. Errors are compared with its values, or with a scale."""
    values = values.reshape(-1)
    scales = np.abs(values) if scale is None else np.broadcast_to(scale, values.shape).reshape(-1)

    def expected(first: int, count: int):
        at = (first + np.arange(count)) % len(values)
        return values[at], scales[at]
    return expected


def name_of(program: str, kind: str, columns: int = 0) -> str:
    return program + ("" if kind == "f32" else f".{kind}") + (f" {columns}" if columns else "")


# ---- rows ---------------------------------------------------------------------------------------------------------------------------

def softmax(x, t):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def layer_norm(x, t):
    centred = x - x.mean(1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(1, keepdims=True) + row_programs.EPSILON)


def rms_norm(x, t):
    return x / np.sqrt((x ** 2).mean(1, keepdims=True) + row_programs.EPSILON)


def cross_entropy(x, t):
    return np.log(np.exp(x).sum(1)) - np.take_along_axis(x, t[:, None].astype(np.int64), 1)[:, 0]


# Program: in f64 from a matrix; whether a row gives one value, of which type if not the input's; the input; errors beside 1.
ROWS = {"softmax": (softmax, None, "a", False), "layer_norm": (layer_norm, None, "a", True), "rms_norm": (rms_norm, None, "a", True),
        "cross_entropy": (cross_entropy, "f32", "a", True), "row_sum": (lambda x, t: x.sum(1), "f32", "p", False),
        "row_argmax": (lambda x, t: x.argmax(1), "u32", "a", False), "row_scan": (lambda x, t: np.cumsum(x, 1), None, "p", False)}


def row_case(program: str, kind: str, columns: int, count: int, shape=None, loops: bool = False) -> BlockCase:
    """One block a row; with loops: the program that reads its rows again, rather than hold them."""
    formula, single, given, beside_one = ROWS[program]
    rows, period = count // columns, min(count, TILE) // columns
    arrays = {"x": Array(given, kind, count, (rows, columns)),
              "y": Array("", single or kind, rows if single else count, (rows,) if single else (rows, columns))}
    if program == "cross_entropy":
        arrays["t"] = Array("s", "u32", rows, (rows,), period)
    x = from_type(arrays["x"].period(), kind).astype(np.float64).reshape(-1, columns)
    t = arrays["t"].period() if "t" in arrays else None
    expected = periodic(formula(x, t))
    values = expected(0, period if single else period * columns)[0]
    scalars, text = {}, ""
    if loops:
        scalars = {"columns": ("u32", columns)} | ({"epsilon": ("f32", row_programs.EPSILON)} if program == "layer_norm" else {})
        places = {"softmax": HERE.parent / "cpu/programs/softmax.atlas", "layer_norm": HERE.parent.parent / "examples/layernorm.atlas"}
        text = places[program].read_text(encoding="utf-8")
    else:
        make = getattr(row_programs, program)
        text = make(kind, columns) if program == "row_scan" else make(kind, columns, shape)
    moved = SIZES[kind] * count * (1 if single else 2) + (4 * rows if single else 0) + (4 * rows if t is not None else 0)
    return BlockCase(program, name_of(program + (" loops" if loops else ""), kind, columns), kind, count, arrays,
                     [Step(text, {n: n for n in arrays}, (rows,), scalars=scalars)],
                     periodic(values, 1 + np.abs(values)) if beside_one else expected,
                     0 if program == "row_argmax" else ROW_BOUND[kind], moved)


# ---- matrices and pictures ------------------------------------------------------------------------------------------------------------

def sides(count: int) -> tuple[int, int]:
    """Rows and columns of a matrix of so many elements, a power of two or nearly."""
    columns = 1 << int(math.log2(count)) // 2
    return count // columns, columns


def program_text(name: str) -> str:
    return (HERE / "programs" / f"{name}.atlas").read_text(encoding="utf-8")


def column_sum(count: int) -> BlockCase:
    columns = min(4096, count // tile_programs.ROWS // 2)
    rows = count // columns
    parts = rows // tile_programs.ROWS
    x = tile("p", "f32", count).astype(np.float64).reshape(-1, columns)
    arrays = {"x": Array("p", "f32", count, (rows, columns)), "parts": Array("", "f32", parts * columns, (parts, columns)),
              "y": Array("", "f32", columns, (columns,))}
    steps = [Step(tile_programs.column_sum(), {"x": "x", "y": "parts" if parts > 1 else "y"},
                  (columns // tile_programs.across(4, 8), parts), scalars={"columns": ("u32", columns)})]
    if parts > 1:
        steps.append(Step(tile_programs.fold_rows(parts), {"x": "parts", "y": "y"}, lanes=columns, scalars={"columns": ("u32", columns)}))
    return BlockCase("column_sum", f"column_sum {columns}", "f32", count, arrays, steps, periodic(x.sum(0) * (rows // len(x))),
                     ROW_BOUND["f32"], 4 * count + 4 * columns)


def transpose(count: int) -> BlockCase:
    rows, columns = sides(count)
    x = tile("a", "f32", count)

    def expected(first, number):
        at = first + np.arange(number)
        values = x[(at % rows * columns + at // rows) % len(x)].astype(np.float64)
        return values, np.zeros(1)
    arrays = {"x": Array("a", "f32", count, (rows, columns)), "y": Array("", "f32", count, (columns, rows))}
    step = Step(program_text("transpose"), {"x": "x", "y": "y"}, (columns // 64, rows // 64),
                scalars={"rows": ("u32", rows), "columns": ("u32", columns)})
    return BlockCase("transpose", "transpose", "f32", count, arrays, [step], expected, 0, 8 * count)


def blur(count: int) -> BlockCase:
    height, width = sides(count)
    x = tile("a", "f32", count).astype(np.float64)

    def expected(first, number):
        rows = np.arange(first // width - 1, (first + number) // width + 1).clip(0, height - 1)
        picture = np.pad(x[(rows[:, None] * width + np.arange(width)) % len(x)], ((0, 0), (1, 1)), mode="edge")
        across = picture[:, :-2] + 2 * picture[:, 1:-1] + picture[:, 2:]
        return ((across[:-2] + 2 * across[1:-1] + across[2:]) / 16).reshape(-1), np.ones(1)
    arrays = {"x": Array("a", "f32", count, (height, width)), "y": Array("", "f32", count, (height, width))}
    step = Step(program_text("blur"), {"x": "x", "y": "y"}, lanes=count, scalars={"width": ("u32", width), "height": ("u32", height)})
    return BlockCase("blur", "blur", "f32", count, arrays, [step], expected, ROW_BOUND["f32"], 8 * count)


def histogram(count: int, wide: bool) -> BlockCase:
    arrays = {"x": Array("s", "u8", count, (count,)), "y": Array("", "u32", 256, (256,))}
    counts = np.bincount(tile("s", "u8", count), minlength=256) * (count // min(count, TILE))
    text = program_text("histogram_wide") if wide else (HERE.parent / "cpu/programs/histogram.atlas").read_text(encoding="utf-8")
    step = Step(text, {"samples": "x", "bins": "y"}, (HISTOGRAM_BLOCKS,), scalars={"count": ("u64", count)})
    return BlockCase("histogram", "histogram" + (" wide" if wide else ""), "u8", count, arrays, [step],
                     periodic(counts.astype(np.float64)), 0, count, adds=True)


def matmul(count: int, kind: str = "f32", tree: bool = False) -> BlockCase:
    """Square matrices of `count` elements; what a sum of products is compared with, those of the absolute values."""
    size = math.isqrt(count)
    a, b = (from_type(tile(n, kind, count), kind).astype(np.float64) for n in "ab")
    period = len(b) // size                # rows of B, after which they repeat

    def expected(first, number):
        rows = (np.arange(first // size, (first + number) // size)[:, None] * size + np.arange(size)) % len(a)
        own, matrix = a[rows], b.reshape(period, size)
        folded = [f(own).reshape(len(own), -1, period).sum(1) @ f(matrix) for f in (lambda v: v, np.abs)]
        rounding = np.abs(folded[0]) * (0 if kind == "f32" else 2 ** -8 / PRODUCT_BOUND)
        return folded[0].reshape(-1), (folded[1] + rounding).reshape(-1)
    arrays = {n: Array(n if n != "y" else "", kind, count, (size, size)) for n in "aby"}
    step = Step(tile_programs.matmul(kind, tree), {n: n for n in arrays}, (size // tile_programs.TILE,) * 2,
                scalars={"n": ("u32", size), "k": ("u32", size)})
    name = "matmul" + ("_tree" if tree else "" if kind == "f32" else f"_{kind}")
    return BlockCase(name, f"{name} {size}", kind, count, arrays, [step], expected, PRODUCT_BOUND, 2.0 * size ** 3, "TFLOP/s")


def matmul_int8(count: int) -> BlockCase:
    """Square matrices of signed bytes, the second by its columns; k counts words of four bytes."""
    size = math.isqrt(count)
    a, b = (v.astype(np.float64) for v in (tile("s", "i8", count), tile("s", "i8", count)))
    period = len(b) // size                # columns of b, after which they repeat

    def expected(first, number):
        rows = (np.arange(first // size, (first + number) // size)[:, None] * size + np.arange(size)) % len(a)
        values = (a[rows] @ b.reshape(period, size).T)[:, np.arange(size) % period].reshape(-1)
        return values, np.zeros(1)
    arrays = {n: Array("s" if n != "y" else "", "i8" if n != "y" else "i32", count, (size, size)) for n in "aby"}
    step = Step(tile_programs.matmul("int8"), {n: n for n in arrays}, (size // tile_programs.TILE,) * 2,
                scalars={"n": ("u32", size), "k": ("u32", size // 4)})
    return BlockCase("matmul_int8", f"matmul_int8 {size}", "i8", count, arrays, [step], expected, 0, 2.0 * size ** 3, "TOP/s")


HEAD = 64


def attention(count: int) -> BlockCase:
    """One head: as many queries as keys, of HEAD columns each."""
    length = count // HEAD
    scale = np.float32(1 / math.sqrt(HEAD))
    q, k, v = (tile(n, "f32", count).astype(np.float64).reshape(length, HEAD) for n in "abp")

    def expected(first, number):
        rows = slice(first // HEAD, (first + number) // HEAD)
        scores = q[rows] @ k.T * float(scale)
        weights = np.exp(scores - scores.max(1, keepdims=True))
        return (weights @ v / weights.sum(1, keepdims=True)).reshape(-1), np.ones(1)
    arrays = {n: Array(given, "f32", count, (length, HEAD)) for n, given in (("q", "a"), ("k", "b"), ("v", "p"), ("y", ""))}
    text = (HERE.parent.parent / "examples/attention.atlas").read_text(encoding="utf-8")
    step = Step(text, {n: n for n in arrays}, (length,),
                scalars={"keys": ("u32", length), "columns": ("u32", HEAD), "scale": ("f32", scale)})
    return BlockCase("attention", f"attention {length}", "f32", count, arrays, [step], expected, ATTENTION_BOUND,
                     4.0 * length ** 2 * HEAD, "TFLOP/s")


# ---- the table --------------------------------------------------------------------------------------------------------------------------

@dataclass
class Variant:
    """A case to be made: of so many elements, and a small one."""
    kind: str
    make: Callable                         # number of elements -> BlockCase
    fixed: int = 0                         # its number of elements, whatever the run's is
    small: int = SMALL


def rows(program: str, kinds=("f32",), columns=(4096,), loops: bool = False) -> list[Variant]:
    return [Variant(kind, lambda count, k=kind, c=c, looped=looped: row_case(program, k, c, count, loops=looped))
            for kind in kinds for c in columns for looped in ([False, True] if loops and kind == "f32" else [False])]


BLOCKS = {
    "softmax": rows("softmax", ("f32", "bf16"), COLUMNS, loops=True),
    "layer_norm": rows("layer_norm", ("f32", "bf16"), COLUMNS, loops=True),
    "rms_norm": rows("rms_norm", ("f32", "bf16")),
    "cross_entropy": rows("cross_entropy", ("f32",), (4096, 16384)),
    "row_sum": rows("row_sum"),
    "column_sum": [Variant("f32", column_sum)],
    "row_argmax": rows("row_argmax"),
    "row_scan": rows("row_scan"),
    "transpose": [Variant("f32", transpose)],
    "blur": [Variant("f32", blur)],
    "histogram": [Variant("u8", lambda count, w=w: histogram(count, w)) for w in (False, True)],
    "attention": [Variant("f32", attention, 4096 * HEAD, 300 * HEAD)],
    "matmul": [Variant("f32", matmul, size * size, 256 * 256) for size in (4096, 8192)],
    "matmul_tree": [Variant("f32", lambda count: matmul(count, tree=True), size * size, 768 * 768) for size in (4096, 8192)],
    "matmul_bf16": [Variant("bf16", lambda count: matmul(count, "bf16"), 4096 * 4096, 256 * 256)],
    "matmul_int8": [Variant("u8", matmul_int8, 4096 * 4096, 256 * 256)],
}
