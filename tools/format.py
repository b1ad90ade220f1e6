#!/usr/bin/env python3
"""Lays out C files: format.py [--all] FILE...

Only what does not fit: lines over 120 columns are broken by clang-format (.clang-format), the rules of section comments are cut to
120, trailing blanks go. What was laid out by hand and fits stays as it is. --all: clang-format decides about every line."""

import re
import subprocess
import sys
from pathlib import Path

COLUMNS = 120
RULE = re.compile(r"(\s*/\* -{4} .*? )-+ \*/$")


def tidy(line):
    line = line.rstrip()
    rule = RULE.match(line)
    return rule.group(1) + "-" * (COLUMNS - len(rule.group(1)) - 3) + " */" if rule and len(line) > COLUMNS else line


def lay_out(path, everything):
    before = path.read_text(encoding="utf-8")
    lines = [tidy(line) for line in before.split("\n")]
    while len(lines) > 1 and lines[-1] == lines[-2] == "":
        lines.pop()
    text = "\n".join(lines)
    long = [f"--lines={n}:{n}" for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
    if long or everything:
        command = ["clang-format", f"--assume-filename={path.resolve()}", *([] if everything else long)]
        text = subprocess.run(command, input=text, text=True, capture_output=True, check=True).stdout
    if text != before:
        path.write_text(text, encoding="utf-8", newline="\n")
    return text != before


def main(arguments):
    everything = "--all" in arguments
    paths = [Path(name) for name in arguments if name != "--all"]
    changed = [path for path in paths if lay_out(path, everything)]
    print("\n".join(f"laid out {path}" for path in changed) or "nothing to lay out")


if __name__ == "__main__":
    main(sys.argv[1:])
