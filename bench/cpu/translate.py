"""C for the functions of the ISA that the compiled loops need, from their Atlas text (tests/accuracy/atlas2c.py).

Two C functions come of each one: `fn_exp_f32(a)`, the whole of it, and `main_exp_f32(a, &rare)`, the straight line that ordinary
arguments take; it sets `rare` where the answer stands behind the function's branch (src/functions says: one branch, at the end).
The straight line can be vectorised, the whole cannot, so a loop computes a chunk by the first and again by the second if any
argument was rare. Both give the bits of the ISA."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

# In the straight line a NaN can only come of a NaN or an infinity, which are rare: nothing to make canonical on the way.
# Indices of tables were cut to the table's size by the function itself.
STRAIGHT = r"""
#undef LDC
#define LDC(T, table, count, index) BITCAST(T, uint32_t, table[index])
#define RAW(t, T, f) \
    FI T raw_add_##t(T a, T b) { return a + b; } \
    FI T raw_sub_##t(T a, T b) { return a - b; } \
    FI T raw_mul_##t(T a, T b) { return a * b; } \
    FI T raw_div_##t(T a, T b) { return a / b; } \
    FI T raw_fma_##t(T a, T b, T c) { return __builtin_fma##f(a, b, c); }
RAW(f32, float, f)
"""


def atlas2c():
    spec = importlib.util.spec_from_file_location("atlas2c", ROOT / "tests/accuracy/atlas2c.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def straight_line(text: str, name: str) -> str:
    """The main path of a translated function: from its entry to its only branch, and on to where that meets the end."""
    head, body = text.split("{", 1)
    lines = body.rsplit("}", 1)[0].strip("\n").split("\n")
    first = next(n for n, line in enumerate(lines) if re.match(r"\s*goto |.*\b_?L\d+:;|\s*if", line) or "(" in line)
    out, at = lines[:first], first
    while True:
        line = lines[at].strip()
        jump = re.fullmatch(r"goto (L\d+);", line)
        branch = re.fullmatch(r"if \((.*)\) goto L\d+;", line)
        if jump:
            at = lines.index(jump[1] + ":;")
        elif branch:
            out.append(f"    *rare |= {branch[1]};")
        elif line.startswith("return"):
            break
        elif not line.endswith(":;"):
            out.append("    " + re.sub(r"\b(add|sub|mul|div|fma)_f32\(", r"raw_\1_f32(", line))
        at += 1
    if sum("*rare" in line for line in out) != 1:
        raise ValueError(f"{name}: expected one branch on the main path of the function, found another number")
    head = head.replace(f"fn_{name}", f"main_{name}").replace(")", ", _Bool *rare)")
    return "\n".join([head + "{", *out, "    " + lines[-1].strip(), "}", ""])


def functions(sources: list[Path], wanted: list[str], whole: list[str]) -> str:
    """C text of the wanted functions ("exp_f32", ...) of the Atlas files; of those in `whole` without the straight line."""
    translator = atlas2c()
    parsed = [translator.Source(str(path)) for path in sources]
    known = {(f.op, f.type): f for source in parsed for f in source.entries}
    chosen = [f for f in known.values() if f.c_name.removeprefix("fn_") in wanted + whole]
    out = ["#pragma GCC system_header /* no warnings about what is not used */", translator.PRELUDE]
    for source in parsed:
        for name, (type_, values) in source.tables.items():
            out.append(f"static const uint{type_[1:]}_t {source.name}_{name}[{len(values)}] = {{")
            out += [f"    {value:#x}," for value in values] + ["};"]
    texts = {f.c_name.removeprefix("fn_"): translator.translate(f, known) for f in chosen}
    return "\n".join(out + list(texts.values()) + [STRAIGHT] + [straight_line(texts[name], name) for name in wanted])
