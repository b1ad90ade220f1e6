#!/usr/bin/env python3
"""Generates docs/isa.md from the ISA's tables (include/hologram/*.def) and the hand-written part (docs/isa.intro.md).

    tools/gen_isa.py            write docs/isa.md
    tools/gen_isa.py --check    exit 1 if docs/isa.md is not what would be written

tests/conformance imports `load()` to learn what the tables say."""

import argparse
import difflib
import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLES = ROOT / "include" / "hologram"
DOCS = ROOT / "docs"


class Row(NamedTuple):
    """One macro call of a .def file: ATLAS_OP(a, "b" "c", D|E) has arguments ["a", "bc", "D|E"]."""
    macro: str
    arguments: list
    section: str
    line: int


class Type(NamedTuple):
    code: int
    name: str
    bits: int
    kind: str
    note: str


class Op(NamedTuple):
    code: int
    id: str
    mnemonic: str
    form: str
    types: list       # names, in table order; empty: the instruction is written without a type
    type_set: str
    flags: list
    meaning: str
    example: str
    section: str


class Isa(NamedTuple):
    types: dict       # name -> Type
    forms: dict       # id -> (operand letters, syntax)
    ops: list


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|[(),]|[^\s(),"/]+|/|\s+', re.S)
SECTION = re.compile(r"/\* -{3,} (.*?) -+ \*/", re.S)
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def rows(path):
    """The macro calls of a table. C's strings are joined where they stand side by side; comments may stand anywhere."""
    section, line, macro, depth = "", 1, None, 0
    result, arguments, pieces, is_text = [], [], [], False
    text = path.read_text(encoding="utf-8")
    position = 0
    while position < len(text):
        match = TOKEN.match(text, position)
        if not match:
            raise SystemExit(f"{path.name}:{line}: cannot read {text[position:position + 20]!r}")
        token, position = match.group(), match.end()
        if token.startswith(("/*", "//")):
            heading = SECTION.fullmatch(token)
            section = heading.group(1) if heading else section
        elif token == "(":
            depth += 1
            if depth == 1:
                arguments, pieces, is_text, start = [], [], False, line
            else:
                pieces.append(token)
        elif token == ")" and depth == 1:
            arguments.append(("" if is_text else " ").join(pieces))
            result.append(Row(macro, arguments, section, start))
            depth, macro = 0, None
        elif token == "," and depth == 1:
            arguments.append(("" if is_text else " ").join(pieces))
            pieces, is_text = [], False
        elif token.isspace():
            pass
        elif depth == 0:
            macro = token
        elif token.startswith('"'):
            pieces.append(re.sub(r"\\(.)", lambda m: ESCAPES.get(m.group(1), m.group(1)), token[1:-1]))
            is_text = True
        else:
            depth += {"(": 1, ")": -1}.get(token, 0)
            pieces.append(token)
        line += token.count("\n")
    if depth:
        raise SystemExit(f"{path.name}: a row that starts on line {start} is not closed")
    return result


def type_sets(types):
    """The named sets of ops.def, as type_sets.h defines them."""
    sets = {"SET_" + name: {name} for name in types}
    source = (ROOT / "src" / "atlas" / "type_sets.h").read_text(encoding="utf-8")
    for name, value in re.findall(r"^\s*(SET_\w+) = ([^,\n]+),?$", source, re.M):
        sets[name] = set()
        for part in value.split("|"):
            if part.strip() != "0":
                sets[name] |= sets[part.strip()]
    return sets


def load():
    types = {}
    for row in rows(TABLES / "types.def"):
        code, name, bits, kind, note = row.arguments
        types[name] = Type(int(code, 0), name, int(bits), kind, note)
    forms = {row.arguments[0]: (row.arguments[1], row.arguments[2]) for row in rows(TABLES / "forms.def")}
    sets = type_sets(types)
    ops = []
    for row in rows(TABLES / "ops.def"):
        if len(row.arguments) != 8:
            raise SystemExit(f"ops.def:{row.line}: a row has 8 columns, this one {len(row.arguments)}")
        code, id_, mnemonic, form, type_set, flags, meaning, example = row.arguments
        if form not in forms:
            raise SystemExit(f"ops.def:{row.line}: no form {form}")
        if "SET_" + type_set not in sets:
            raise SystemExit(f"ops.def:{row.line}: no set of types {type_set}")
        names = [name for name in types if name in sets["SET_" + type_set]]
        ops.append(Op(int(code, 0), id_, mnemonic, form, names, type_set, re.findall(r"\w+", flags), meaning, example,
                      row.section))
    return Isa(types, forms, ops)


# ---- Markdown -----------------------------------------------------------------------------------------------------------

FLAG_WORDS = {
    "PURE": "pure", "COMMUTES": "commutes", "BITS": "bit operation", "LOAD": "loads", "STORE": "stores",
    "ATOMIC": "atomic", "SPACE_GLOBAL": "global memory", "SPACE_SHARED": "shared memory",
    "SPACE_LOCAL": "memory of the lane",
    "SPACE_CONST": "constants of the program", "SPACE_POOL": "a bound pool",
    "BLOCK": "block-wide: control must be uniform in the block",
    "GRID": "grid-wide: control and operand must be uniform in the grid",
    "JUMP": "may leave straight-line order", "END": "control never reaches the next instruction",
    "PRIM": "primitive", "FUNC": "function (`src/functions`)", "RULE": "rule", "SECOND": None,
}
SET_WORDS = {
    "ANY": "every type", "NUM": "every integer and floating-point type", "INT": "every integer type",
    "FLOAT": "f16, bf16, f32, f64", "SIGNED": "i8, i16, i32, i64, f16, bf16, f32, f64", "NONE": "written without a type",
}


def anchor(title):
    """GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def flag_words(op):
    words = []
    for flag in op.flags:
        if flag not in FLAG_WORDS:
            raise SystemExit(f"{op.mnemonic}: flag {flag} has no words in tools/gen_isa.py")
        if FLAG_WORDS[flag]:
            words.append(FLAG_WORDS[flag])
    return ", ".join(words)


def syntax_of(op, isa):
    suffix = ".type" if op.types else ""
    if len(op.types) == 1:
        suffix = "." + op.types[0]
    if "SECOND" in op.flags:
        suffix = ".to.from"
    return f"{op.mnemonic}{suffix} {isa.forms[op.form][1]}".rstrip()


def instruction(op, isa):
    types = SET_WORDS.get(op.type_set) or ", ".join(op.types)
    guard = "[@pN | @!pN] " if op.mnemonic == "bra" else ""
    return [f"#### `{op.mnemonic}`", "",
            f"`{guard}{syntax_of(op, isa)}`", "",
            op.meaning, "",
            f"- **Types:** {types}",
            f"- **Flags:** {flag_words(op)}",
            f"- **Code:** `0x{op.code:04x}`",
            f"- **Example:** `{op.example}`", ""]


def sections(ops):
    result = {}
    for op in ops:
        result.setdefault(op.section[:1].upper() + op.section[1:], []).append(op)
    return result


def instructions(isa):
    lines = ["## Instructions", ""]
    for title, ops in sections(isa.ops).items():
        lines += [f"### {title}", ""]
        for op in ops:
            lines += instruction(op, isa)
    return "\n".join(lines).rstrip()


def contents(text, isa):
    lines = []
    for title in re.findall(r"^## (.+)$", text, re.M):
        lines.append(f"- [{title}](#{anchor(title)})")
    lines.append("- [Instructions](#instructions)")
    for title, ops in sections(isa.ops).items():
        links = " ".join(f"[`{op.mnemonic}`](#{anchor(op.mnemonic)})" for op in ops)
        lines.append(f"  - [{title}](#{anchor(title)}): {links}")
    return "\n".join(lines)


def type_table(isa):
    lines = ["| type | bits | code | |", "|---|---|---|---|"]
    for t in isa.types.values():
        storage = "; loads, stores and conversions only" if t.kind == "STORAGE" else ""
        lines.append(f"| `{t.name}` | {t.bits} | {t.code} | {t.note}{storage} |")
    return "\n".join(lines)


LIMIT_WORDS = {
    "MAX_BUFFERS": "buffers of a program", "MAX_SCALARS": "scalars of a program",
    "MAX_TABLE_ENTRIES": "entries of a buffer table", "MAX_POOLS": "pools of a program",
    "MAX_SYMBOLS": "names of a program", "MAX_SHARED_BYTES": "bytes of shared memory a block",
    "MAX_LOCAL_BYTES": "bytes of local arrays a lane",
    "MAX_CONST_BYTES": "bytes of one constant table", "MAX_BLOCK_LANES": "lanes of a block",
    "MAX_CALL_DEPTH": "nested calls", "MAX_INSTRUCTIONS": "instructions, as written and again after inlining calls",
    "MAX_NAME": "bytes of a name",
}


def limits():
    header = (TABLES / "atlas.h").read_text(encoding="utf-8")
    found = dict(re.findall(r"^#define ATLAS_(MAX_\w+) (\d+)", header, re.M))
    found.pop("MAX_OPERANDS", None)  # of the C structures, not of the architecture
    unknown = set(found) ^ set(LIMIT_WORDS)
    if unknown:
        raise SystemExit(f"atlas.h and tools/gen_isa.py disagree on the limits {sorted(unknown)}")
    table = ["| limit | at most |", "|---|---|"] + [f"| {LIMIT_WORDS[name]} | {found[name]} |" for name in found]
    return "\n".join(table), found


def include(name):
    path = DOCS / name
    if not path.exists():
        return f"*(docs/{name} is not written yet.)*"
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"\A# .*\n+", "", text)                    # its title is the heading above
    text = re.sub(r"^(#{2,5}) ", r"#\1 ", text, flags=re.M)   # its headings go one level down
    return text.strip()


def generate():
    isa = load()
    text = (DOCS / "isa.intro.md").read_text(encoding="utf-8")
    table, numbers = limits()
    values = {
        "generated": "<!-- Generated by tools/gen_isa.py from include/hologram/*.def and docs/isa.intro.md: "
                     "edit those, then ./dev docs. -->",
        "contents": contents(text, isa), "types": type_table(isa), "limits": table, "instructions": instructions(isa),
    }
    values.update({"ATLAS_" + name: value for name, value in numbers.items()})

    def expand(match):
        key = match.group(1)
        return include(key.split()[1]) if key.startswith("include ") else values[key]
    return re.sub(r"\{\{([^}]+)\}\}", expand, text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with docs/isa.md instead of writing it")
    check = parser.parse_args().check
    target, text = DOCS / "isa.md", generate()
    if not check:
        target.write_text(text, encoding="utf-8", newline="\n")
        return 0
    current = target.read_text(encoding="utf-8") if target.exists() else ""
    if current == text:
        return 0
    difference = difflib.unified_diff(current.splitlines(), text.splitlines(), "docs/isa.md", "generated", lineterm="")
    print("\n".join(list(difference)[:40]))
    print("docs/isa.md is not what the tables say: run ./dev docs")
    return 1


if __name__ == "__main__":
    sys.exit(main())
