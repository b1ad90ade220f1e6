"""What is timed: the programs, their element types, their inputs, and what they should come to."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import numpy as np

HERE = Path(__file__).resolve().parent
f32, u32 = np.float32, np.uint32
TILE = 1 << 20          # inputs repeat after so many elements
SIZES = {"f32": 4, "f16": 2, "bf16": 2, "u8": 1, "u32": 4, "i8": 1, "i32": 4}
WHOLE = {"u8": np.uint8, "u32": np.uint32, "i8": np.int8, "i32": np.int32}
TOLERANCE = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}


# ---- element types: NumPy has no bf16, so its arrays are their bits ---------------------------------------------------------------

def to_type(values: np.ndarray, kind: str) -> np.ndarray:
    if kind in WHOLE:
        return values.astype(WHOLE[kind])
    if kind == "f32":
        return values.astype(f32)
    if kind == "f16":
        return values.astype(np.float16)
    bits = values.astype(f32).view(u32)
    return ((bits + u32(0x7fff) + (bits >> u32(16) & u32(1))) >> u32(16)).astype(np.uint16)


def from_type(array: np.ndarray, kind: str) -> np.ndarray:
    if kind in WHOLE:
        return array
    return (array.astype(u32) << u32(16)).view(f32) if kind == "bf16" else array.astype(f32)


def bits_dtype(kind: str):
    return ({"f32": f32, "f16": np.float16, "bf16": np.uint16} | WHOLE)[kind]


def tile(name: str, kind: str, count: int) -> np.ndarray:
    """The first elements of an input: in (-4, 4) and not 0; `p` is positive, `s` whole numbers of 8 bits."""
    number = np.arange(min(count, TILE), dtype=u32)
    if name == "s":
        return to_type(number * u32(2654435761) >> u32(24), kind)
    if name == "b":
        number = number[::-1] + u32(17)
    values = (number * u32(2654435761) >> u32(8) & u32(0xffff)).astype(f32) / f32(8192) + f32(0.5 / 8192 - 4)
    return to_type(np.abs(values) if name == "p" else values, kind)


# ---- programs ---------------------------------------------------------------------------------------------------------------------

@dataclass
class Program:
    name: str
    inputs: tuple           # names of arrays: what the parameters a, b are
    answer: Callable        # in f64, of tiles
    kinds: tuple = ("f32",)
    folds: str = ""         # "sum", "max": one value comes out

    def text(self, kind: str) -> str:
        names = ([f"{self.name}_16.atlas"] if SIZES[kind] == 2 else []) + [f"{self.name}.atlas"]
        places = [folder / name for name in names for folder in (HERE / "programs", HERE.parent / "cpu/programs")]
        return next(p for p in places if p.exists()).read_text(encoding="utf-8").replace("f32", kind)

    def label(self, kind: str) -> str:
        return self.name if kind == "f32" else f"{self.name}.{kind}"

    def bytes(self, kind: str) -> int:
        """Read and written an element."""
        return SIZES[kind] * (len(self.inputs) + (0 if self.folds else 1))


def erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def gelu_tanh(a: np.ndarray) -> np.ndarray:
    return a / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3)))


ALL = ("f32", "f16", "bf16")
PROGRAMS = {p.name: p for p in (
    Program("add", ("a", "b"), lambda a, b: a + b, ALL),
    Program("relu", ("a",), lambda a: np.maximum(a, 0), ALL),
    Program("chain", ("a", "b"), lambda a, b: np.minimum(np.maximum((a * b + a) * 1.1 - b, -2), 3) * a + 0.5),
    Program("exp", ("a",), np.exp, ALL),
    Program("log", ("p",), np.log, ALL),
    Program("tanh", ("a",), np.tanh, ALL),
    Program("sigmoid", ("a",), lambda a: 1 / (1 + np.exp(-a)), ALL),
    Program("gelu", ("a",), lambda a: a / 2 * (1 + erf(a * math.sqrt(0.5))), ALL),
    Program("gelu_tanh", ("a",), gelu_tanh, ALL),
    Program("sum", ("p",), np.sum, folds="sum"),
    Program("max", ("a",), np.max, ALL, folds="max"),
)}


class Case:
    """A program on one element type at one size."""

    def __init__(self, program: Program, kind: str, count: int):
        self.program, self.kind, self.count = program, kind, count
        self.label, self.bytes = program.label(kind), program.bytes(kind)
        self._expected = None

    def tile(self, name: str) -> np.ndarray:
        return tile(name, self.kind, self.count)

    def expected(self) -> np.ndarray:
        """One period of the output; of a fold its one value."""
        if self._expected is None:
            inputs = [from_type(self.tile(n), self.kind).astype(np.float64) for n in self.program.inputs]
            value = np.atleast_1d(self.program.answer(*inputs))
            self._expected = value * (self.count // len(inputs[0])) if self.program.folds == "sum" else value
        return self._expected

    def windows(self) -> list[tuple]:
        """The parts of the output that are looked at, (first, count): a period at either end."""
        count = 1 if self.program.folds else min(TILE, self.count)
        return sorted({(0, count), (0 if self.program.folds else self.count - count, count)})

    def difference(self, answer: np.ndarray, _first: int = 0) -> str:
        """What is wrong with one period of somebody's output; "" if nothing is."""
        expected, tolerance = self.expected(), TOLERANCE[self.kind]
        wrong = ~(np.abs(answer - expected) <= tolerance * (1 + np.abs(expected)))
        if not wrong.any():
            return ""
        first = int(np.argmax(wrong))
        return f"{int(wrong.sum())} of {len(wrong)} elements are wrong; element {first} is {answer[first]!r}, not {expected[first]!r}"
