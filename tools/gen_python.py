#!/usr/bin/env python3
"""Generates the type stubs of the Python extension, python/hologram/_core.pyi, from python/src/core.pyi and the table of operations.

    tools/gen_python.py            write them
    tools/gen_python.py --check    exit 1 if they are not what would be written"""

import argparse
import re
import sys
from pathlib import Path

import gen_operations

ROOT = Path(__file__).resolve().parent.parent
SOURCE, TARGET = ROOT / "python/src/core.pyi", ROOT / "python/hologram/_core.pyi"
NAMES = {"axes": "axis", "keep": "keepdims", "type": "dtype", "ddof": "correction"}
CLIP = {"low": "min", "high": "max"}
TYPES = "i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 bool".split()
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
OWN = {"argsort", "reshape"}  # methods of arrays that are not the table's
OF_NO_TYPE = {"any", "all", "argmin", "argmax", "count_nonzero", "nanargmin", "nanargmax"}  # reductions to what has its own type
IN_PYTHON = {"full"}  # functions that hologram/_create.py has in its place


def text(column):
    return column.strip('"')


def argument(operation, item):
    name, preset = (part.strip() for part in item.split("=", 1))
    shown = name if operation.name == "permute" else CLIP[name] if operation.name == "clip" else NAMES.get(name, name)
    if preset == "all" or preset.startswith("["):
        kind = "_Axes"
    elif "|" in preset:
        kind = "str"
    elif preset in TYPES:
        kind = "_Type"
    elif shown == "keepdims":
        kind = "bool | int"
    elif "." in preset or "inf" in preset or preset == "nan":
        kind = "float | None"
    else:
        kind = "int | None"
    return f"{shown}: {kind} = ..."


def items(column):
    return [item for item in re.split(r",\s*(?![^\[]*\])", text(column)) if item]


def is_reduction(operation):
    names = [item.split("=")[0].strip() for item in items(operation.arguments)]
    return len(names) > 1 and names[0] == "axes" and names[-1] == "keep"


def signature(operation, is_method):
    parts, inputs = [], items(operation.inputs)
    for i, item in enumerate(inputs):
        name = item.strip().rstrip("?.")
        if is_method and i == 0:
            parts += ["self", "/"]
        elif "..." in item:
            parts.append(f"*{name}: Any")
        elif "?" in item:
            parts.append(f"{name}: _Operand | None = None")
        else:
            parts.append(f"{name}: _Operand")
    parts += [argument(operation, item) for item in items(operation.arguments)]
    if is_reduction(operation):
        parts += ["*", *([] if operation.name in OF_NO_TYPE else ["dtype: _Type | None = None"]), "out: None = None"]
    return ", ".join(parts)


def result(operation):
    """The results stand behind a formula's last semicolon, commas between them."""
    last, depth, count = text(operation.formula).rsplit(";", 1)[-1], 0, 1
    for c in last:
        depth += (c in "([") - (c in ")]")
        count += c == "," and depth == 0
    return "Array" if count == 1 else f"tuple[{', '.join(['Array'] * count)}]"


def is_method(operation):
    group = operation.code >> 8
    takes = text(operation.inputs) != "" and "..." not in operation.inputs
    belongs = group < 6 or group == 7 or 0x10 <= group <= 0x12 or 0x1600 < operation.code < 0x1640 or operation.name in ("triu", "tril")
    return takes and operation.name not in OWN and belongs


def buffers():
    return re.findall(r"SDK\((\w+), \w+, \d", (ROOT / "python/src/sdk.c").read_text(encoding="utf-8"))


def written():
    rows = gen_operations.load()
    decimals = next(o.arguments for o in rows if o.name == "round_to")
    rows = [o._replace(arguments=decimals) if o.name == "round" else o for o in rows]
    methods = [f"    def {o.name}({signature(o, True)}) -> {result(o)}: ..." for o in rows if is_method(o)]
    functions = [f"def {o.name}({signature(o, False)}) -> {result(o)}: ..." for o in rows if o.name not in IN_PYTHON]
    third = {"pow": ", mod: None = None"}
    divmods = [f"    def __{r}divmod__(self, other: _Operand, /) -> tuple[Array, Array]: ..." for r in ("", "r")]
    operators = [f"    def __{r}{name}__(self, other: _Operand{third.get(name, '')}, /) -> Array: ..."
                 for name in OPERATORS for r in ("", "r")]
    out = SOURCE.read_text(encoding="utf-8")
    for mark, lines in (("    # OPERATORS", operators + divmods), ("    # METHODS", methods), ("# FUNCTIONS", functions),
                        ("    # BUFFERS", [f"    {name}: _Elementwise" for name in buffers()])):
        out = out.replace(mark + "\n", "\n".join(lines) + "\n")
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if not parser.parse_args().check:
        TARGET.write_text(written(), encoding="utf-8", newline="\n")
        return 0
    if TARGET.is_file() and TARGET.read_text(encoding="utf-8") == written():
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not what the tables say; run ./dev docs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
