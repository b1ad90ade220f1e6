#!/usr/bin/env python3
"""What the libraries show to a linker: check_symbols.py libhologram.so libhologram.a

The shared library exports exactly the functions that the public headers declare. Every global symbol of the static
library has one of our prefixes, so that it cannot collide with a caller's."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OURS = ("hg_", "atlas_", "ir_")


def declared():
    names = set()
    for header in sorted((ROOT / "include" / "hologram").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
        names |= set(re.findall(r"^HG_API\s[^;(]*?(\w+)\(", text, re.M))
    return names


def symbols(*command):
    lines = subprocess.run(["nm", *command], check=True, text=True, capture_output=True).stdout.split("\n")
    return {parts[-1] for parts in map(str.split, lines) if len(parts) == 3}


def main(shared, static):
    problems = []
    exported, wanted = symbols("-D", "--defined-only", shared), declared()
    problems += [f"exported, but in no public header: {name}" for name in sorted(exported - wanted)]
    problems += [f"declared in a public header, but not exported: {name}" for name in sorted(wanted - exported)]
    visible = symbols("--defined-only", "--extern-only", static)
    problems += [f"a global of the static library without a prefix of ours: {name}" for name in sorted(visible)
                 if not name.startswith(OURS)]
    print("\n".join(problems) or f"{len(exported)} functions exported, {len(visible)} globals in the static library")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
