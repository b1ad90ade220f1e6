"""The public headers by themselves: what they leave of the preprocessor's names, and the examples in their comments and in the docs."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INCLUDE = ROOT / "include"
HEADERS = sorted((INCLUDE / "hologram").glob("*.h"))
FLAT = INCLUDE / "hologram" / "flat" / "all.h"
OURS = ("HG_", "ATLAS_", "HOLOGRAM_")
COMPILERS = {
    "gcc C11": ["gcc", "-xc", "-std=c11"],
    "clang C11": ["clang", "-xc", "-std=c11"],
    "g++ C++17": ["g++", "-xc++", "-std=c++17"],
    "clang++ C++17": ["clang++", "-xc++", "-std=c++17"],
}
STRICT = ["-Wall", "-Wpedantic", "-Werror", "-Wno-unused", f"-I{INCLUDE}", "-fsyntax-only", "-"]


def compiles(compiler, source):
    done = subprocess.run([*COMPILERS[compiler], *STRICT], input=source, text=True, capture_output=True)
    assert done.returncode == 0, f"{done.stderr}\n{source}"


def included(header):
    return f"#include <stddef.h>\n#include <stdint.h>\n#include <{header.relative_to(INCLUDE)}>\n"


# ---- names of the preprocessor ---------------------------------------------------------------------------------------


def macros(source, language):
    """name -> definition of all that is defined after the source."""
    command = [*COMPILERS[language], "-E", "-dM", f"-I{INCLUDE}", "-"]
    text = subprocess.run(command, input=source, text=True, capture_output=True, check=True).stdout
    return dict(re.fullmatch(r"#define (\w+)(.*)", line).groups() for line in text.splitlines())


def words(before):
    """Names in capitals that our headers and tables have as code, and that nobody else defines."""
    found = set()
    for path in [*HEADERS, FLAT, *(INCLUDE / "hologram").glob("*.def")]:
        code = re.sub(r'/\*.*?\*/|"(?:[^"\\]|\\.)*"', "", path.read_text(encoding="utf-8"), flags=re.S)
        found |= set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", code))
    return {w for w in found if not w.startswith(OURS) and w not in before}


@pytest.mark.parametrize("language", ["gcc C11", "g++ C++17"])
@pytest.mark.parametrize("header", [*HEADERS, FLAT], ids=lambda h: h.name)
def test_only_prefixed_macros(header, language):
    """A header defines nothing without our prefix, and what its user has defined before survives it."""
    system = "#include <stddef.h>\n#include <stdint.h>\n"
    before = macros(system, language)
    taken = words(before) | {"STATUS", "OP", "TYPE", "OPERATION", "FORM", "API"}
    assert len(taken) > 20
    mine = "".join(f"#define {name} 1 user\n" for name in sorted(taken))
    after = macros(system + mine + included(header), language)
    assert {name: after.get(name) for name in taken} == {name: " 1 user" for name in taken}
    assert {name: value for name, value in after.items() if name in before} == before
    assert [name for name in after if name not in before and name not in taken and not name.startswith(OURS)] == []
    compiles(language, system + mine + included(header))


# ---- examples --------------------------------------------------------------------------------------------------------

# What examples take for granted.
GIVEN = """
#include <stdio.h>
#include <string.h>
extern hg_executor *executor;
extern hg_stream *stream;
extern hg_kernel *kernel;
extern hg_launch_desc launch;
extern atlas_program *program;
extern hg_buffer *x, *y, *x_buffer, *y_buffer;
extern const char *text;
extern uint64_t count, byte_count, rows, columns;
extern void *pinned;
extern float *host, *host_x, *host_y;
"""
# Of computations.
GIVEN_VALUES = """
extern hg_computation *c;
extern hg_value x;
"""


def header_examples():
    """The code of each comment: lines behind an empty one that stand further in, and are no list."""
    for header in HEADERS:
        for comment in re.findall(r"/\*.*?\*/", header.read_text(encoding="utf-8"), re.S):
            blocks = re.findall(r"(?<= \*\n)(?: \*   (?![- ]).*\n?(?: \*   .*\n?)*)", comment)
            if blocks:
                yield header, re.sub(r"^ \*   ", "", "".join(blocks), flags=re.M).removesuffix("*/")


def fenced(path):
    return re.findall(r"^```c\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S)


def program_of(example, given=GIVEN, header="hologram/ops.h"):
    return f"#include <{header}>\n{given}\nvoid example(void);\nvoid example(void) {{\n{example}\n}}\n"


EXAMPLES = [(f"{header.name} {number}", program_of(code, f"#include <hologram/{header.name}>\n{GIVEN}"))
            for number, (header, code) in enumerate(header_examples())]
for page in sorted((ROOT / "docs").glob("*.md")):
    EXAMPLES += [(f"{page.name} {number}", program_of(code, GIVEN.replace("*x, ", "") + GIVEN_VALUES))
                 for number, code in enumerate(fenced(page))]


def test_examples_are_found():
    names = {name.split()[0] for name, _ in EXAMPLES}
    assert {"atlas.h", "circuit.h", "hologram.h", "ops.h", "operations.md"} <= names and len(EXAMPLES) >= 8


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("source", [pytest.param(source, id=name) for name, source in EXAMPLES])
def test_examples_compile(source, compiler):
    compiles(compiler, source)


@pytest.mark.parametrize("compiler", ["gcc C11", "clang C11"])
def test_readme_compiles(compiler):
    """Its program is C alone: it names the fields that it sets."""
    for code in fenced(ROOT / "README.md"):
        compiles(compiler, program_of(re.sub(r"^#include.*$", "", code, flags=re.M)))
