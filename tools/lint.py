#!/usr/bin/env python3
"""Layout checks that no compiler makes: line length, blanks, tabs, a purpose at the top of every C file, every source
in the build's lists, no two headers or tests of one name, constants that were chosen in their tables. Prints one line a
finding; exit status 1 if there are any."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONGEST = {".c": 120, ".h": 120, ".py": 140, ".sh": 132, ".atlas": 150}  # C: ./dev format makes it so
SOURCES = {".c", ".h", ".def", ".py", ".sh", ".atlas", ".md", ".build", ".ini", ".in", ".txt", ".cmake"}


def files():
    """What git tracks or would track."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True, capture_output=True)
    if names.returncode == 0:
        return sorted(set(names.stdout.split("\n")) - {""})
    found = (p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file())
    return sorted(str(p) for p in found if p.parts[0] not in ("build", ".git"))


def check_lines(name, text):
    limit = LONGEST.get(Path(name).suffix)
    for number, line in enumerate(text.split("\n"), 1):
        if limit and len(line) > limit:
            yield number, f"{len(line)} columns; at most {limit}"
        if line != line.rstrip():
            yield number, "trailing blanks"
        if "\t" in line:
            yield number, "a tab"
    if text and not text.endswith("\n"):
        yield text.count("\n") + 1, "no newline at the end"
    if text.endswith("\n\n"):
        yield text.count("\n"), "blank lines at the end"


def check_c(name, text):
    if not re.match(r"/\* " + re.escape(Path(name).name) + r" - ", text):
        yield 1, f"should open with '/* {Path(name).name} - its purpose'"


def check_constants(name, text):
    """A constant that was chosen is a row of a tuning.def, which has the figures."""
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b((LEAST|FEW|FEWEST|MANY|MUCH|ENOUGH|OFTEN|AHEAD|LITTLE|USUAL)(_\w+)?|\w+_NS) = [1-9]", line):
            yield number, "a constant that was chosen, outside of a tuning.def (CONTRIBUTING)"


def check_plan(name, text):
    """The plan of a GPU kernel is no target's: no text but what an error says (and pack.c, which names a fault's buffer), no word of PTX
    or of a driver."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        says = re.search(r'"[^"]*"', line) if Path(name).suffix == ".c" and Path(name).name != "pack.c" else None
        if says and not re.search(r"#include|hg_fail|_Static_assert", "".join(lines[max(number - 2, 0):number])):
            yield number, f"{says.group(0)}: a string that is no error's message"
        if re.search(r"\bptx|\bcuda|hg_ptx|\bsetp|\bselp|%[phrd]\d|\.[bsu](8|16|32|64)\b", line, re.IGNORECASE):
            yield number, "names a target of the plan"


def check_build_lists():
    """The build names its sources one by one: a file that no list has is built by nobody."""
    lists = {"src": "meson.build", "tests/unit": "tests/unit/meson.build", "tests/fuzz": "tests/fuzz/meson.build"}
    for folder, build in lists.items():
        text = (ROOT / build).read_text(encoding="utf-8")
        for path in sorted(ROOT.glob(f"{folder}/**/*")):
            name = str(path.relative_to(ROOT)) if folder == "src" else path.stem
            if path.suffix in (".c", ".atlas") and "/corpus/" not in str(path) and f"'{name}'" not in text:
                print(f"{build}: {path.relative_to(ROOT)} is not in its lists")
                yield path


def check_names(names):
    """A header is spoken of by its name, and pytest takes tests of one name for one module: no two have the same."""
    seen = {}
    for name in names:
        if re.fullmatch(r"(src|include)/.*\.h|tests/.*/test_\w+\.py", name) and (ROOT / name).exists():
            other = seen.setdefault(Path(name).name, name)
            if other != name:
                print(f"{name}: {other} has the same name")
                yield name


def main():
    count = len(list(check_build_lists())) + len(list(check_names(files())))
    for name in files():
        path = ROOT / name
        if (path.suffix not in SOURCES and name != "dev") or "/corpus/" in name or "/bad/" in name or not path.exists():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{name}: not UTF-8")
            count += 1
            continue
        findings = list(check_lines(name, text))
        if path.suffix in (".c", ".h"):
            findings += check_c(name, text)
            findings += check_constants(name, text) if re.match("src/(?!cli)", name) else []
        if name.startswith("src/backend/gpu/"):
            findings += check_plan(name, text)
        for line, what in findings:
            print(f"{name}:{line}: {what}")
        count += len(findings)
    if count:
        print(f"{count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
