"""The rows of the ISA tables (types.def, ops.def, forms.def), read from their text, so that nothing is left untested."""

import re
from dataclasses import dataclass
from pathlib import Path

INCLUDE = Path(__file__).resolve().parents[2] / "include" / "hologram"

INT = ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64")
FLOAT = ("f16", "bf16", "f32", "f64")
STORAGE = ("f8e4m3", "f8e5m2", "bool")
SETS = {
    "NONE": (), "INT": INT, "FLOAT": FLOAT, "NUM": INT + FLOAT, "ANY": INT + FLOAT + STORAGE,
    "SIGNED": INT[:4] + FLOAT, "ATOM": ("i32", "u32", "i64", "u64"),
    "U32": ("u32",), "U64": ("u64",), "I64": ("i64",), "U32_U64": ("u32", "u64"), "I32_U32": ("i32", "u32"),
}


@dataclass(frozen=True)
class Op:
    code: int
    name: str  # mnemonic
    form: str
    operands: str  # letters of forms.def
    types: tuple[str, ...]
    flags: frozenset[str]
    example: str


@dataclass(frozen=True)
class Type:
    code: int
    name: str
    bits: int
    kind: str


def _rows(file: str, macro: str) -> list[list[str]]:
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / file).read_text(), flags=re.S)
    field = r'\s*("(?:[^"\\]|\\.)*"|[^,()"]+?)\s*'
    rows = []
    for m in re.finditer(macro + r"\(((?:" + field + r",)*" + field + r")\)", text):
        rows.append([f.strip().strip('"') for f in re.findall(r'"(?:[^"\\]|\\.)*"|[^,"]+', m.group(1)) if f.strip()])
    return rows


def _forms() -> dict[str, str]:
    text = re.sub(r"/\*.*?\*/", "", (INCLUDE / "forms.def").read_text(), flags=re.S)
    return dict(re.findall(r'ATLAS_FORM\((\w+),\s*"(\w*)"', text))


FORMS = _forms()
TYPES = {name: Type(int(code), name, int(bits), kind) for code, name, bits, kind, _ in _rows("types.def", "ATLAS_TYPE")}
OPS = {
    mnemonic: Op(int(code, 16), mnemonic, form, FORMS[form], SETS[types], frozenset(flags.split("|")), example)
    for code, _, mnemonic, form, types, flags, _, example in _rows("ops.def", "ATLAS_OP")
}


def bits_of(type_name: str) -> int:
    return TYPES[type_name].bits


def mask_of(type_name: str) -> int:
    return (1 << TYPES[type_name].bits) - 1
