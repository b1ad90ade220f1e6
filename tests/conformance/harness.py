"""Builds a program around one instruction, runs columns of operand bits through it, and compares bits."""

import itertools

import numpy as np

import hg
from formats import FORMATS, show
from tables import OPS, TYPES, bits_of

UINT = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def array_of(t: str, bits: list[int]) -> np.ndarray:
    return np.array(bits, UINT[bits_of(t)])


def slot_type(letter: str, t: str, t2: str | None) -> str:
    """The type an operand letter of forms.def is read at; predicates travel as u8."""
    return {"c": "u32", "t": t2, "q": "u8", "r": "u32"}.get(letter, t)


def result_type(op: str, t: str) -> str:
    return "u8" if OPS[op].operands[0] == "p" else t


def suffixed(op: str, t: str | None, t2: str | None = None) -> str:
    return ".".join(x for x in (op, t, t2) if x)


def read_operand(letter: str, t: str, number: int) -> list[str]:
    """Lines that load column `number` into r<number> or p<number>."""
    lines = [f"    ldg.{t} r{number}, [a{number} + lane]"]
    if letter == "q":
        lines.append(f"    set.ne.u8 p{number}, r{number}, #0")
    return lines


def write_result(op: str, t: str, register: int, address: str) -> list[str]:
    """Lines that store r<register>, or p<register> as a byte, at an address of `result`."""
    if OPS[op].operands[0] == "p":
        return [f"    sel.u8 r{register}, p{register}, #1, #0", f"    stg.u8 [{address}], r{register}"]
    return [f"    stg.{t} [{address}], r{register}"]


def build(op: str, t: str, t2: str | None, fixed: dict[int, str] = {}, scalars: dict[str, str] = {}) -> str:
    """result[lane] = op(a1[lane], a2[lane], ...); the source slots in `fixed` hold that text instead of a register."""
    letters = OPS[op].operands
    head = [f".scalar {name} {kind}" for name, kind in scalars.items()] + [f".buffer result {result_type(op, t)} out"]
    body, operands = [], []
    for number, letter in enumerate(letters[1:], 1):
        if number in fixed:
            operands.append(fixed[number])
            continue
        kind = slot_type(letter, t, t2)
        head.append(f".buffer a{number} {kind} in")
        body += read_operand(letter, kind, number)
        operands.append(("p" if letter == "q" else "r") + str(number))
    destination = ("p" if letters[0] == "p" else "r") + "9"
    body.append(f"    {suffixed(op, t, t2)} {', '.join([destination] + operands)}")
    body += write_result(op, t, 9, "result + lane")
    return "\n".join(head + body + ["    exit", ""])


def run_columns(executor: hg.Executor, op: str, t: str, t2: str | None, columns: list[list[int]], fixed: dict[int, str] = {},
                scalars: dict[str, tuple[str, int]] = {}) -> list[int]:
    """Result bits for every row. Columns of fixed slots are ignored."""
    text = build(op, t, t2, fixed, {name: kind for name, (kind, _) in scalars.items()})
    letters = OPS[op].operands[1:]
    buffers = {f"a{i}": array_of(slot_type(letter, t, t2), column)
               for i, (letter, column) in enumerate(zip(letters, columns), 1) if i not in fixed}
    buffers["result"] = np.full(len(columns[0]), 0xEE, np.uint8).astype(UINT[bits_of(result_type(op, t))])
    result = executor.run(text, lanes=len(columns[0]), buffers=buffers,
                          scalars={name: (TYPES[kind].code, bits) for name, (kind, bits) in scalars.items()})
    assert result.fault is None, f"{result.fault}\n{text}"
    return [int(b) for b in result.buffers["result"]]


def compare(what: str, kinds: list[str], columns: list[list[int]], got: list[int], want: list[int], kind: str,
            seed: object = "none") -> None:
    """Asserts equal bits; the message shows seed, element, operands and both values."""
    bad = [i for i, (g, w) in enumerate(zip(got, want)) if g != w]
    if len(got) == len(want) and not bad:
        return
    lines = [f"{what}: {len(bad)} of {len(want)} elements differ (seed {seed})"]
    for i in bad[:5]:
        operands = ", ".join(show(k, column[i]) for k, column in zip(kinds, columns))
        lines.append(f"  element {i}: operands {operands}: got {show(kind, got[i])}, want {show(kind, want[i])}")
    raise AssertionError("\n".join(lines))


def rows_of(lists: list[list[int]]) -> list[list[int]]:
    """Every combination, as columns."""
    return [list(c) for c in zip(*itertools.product(*lists))]


def literal(t: str, bits: int) -> str:
    """A `#` constant with exactly these bits."""
    return f"#{bits:#0{bits_of(t) // 4 + 2}x}" if t in FORMATS or t.startswith("i") else f"#{bits}"
