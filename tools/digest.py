#!/usr/bin/env python3
"""A number for what the sources of a compiler say: digest.py OUT.h DEPFILE ROOT FOLDER...

Writes a header that defines CODE_VERSION, 32 bits of the digest of every source in the folders, by name below ROOT and content, so that
it is the same wherever the same sources are built; and for ninja which files those were."""

import hashlib
import sys
from pathlib import Path

SUFFIXES = {".c", ".h", ".def", ".atlas", ".metal"}


def main(out, depfile, root, *folders):
    paths = sorted((p for f in folders for p in (Path(root) / f).rglob("*") if p.suffix in SUFFIXES), key=lambda p: p.as_posix())
    digest = hashlib.sha256()
    for path in paths:
        content = path.read_bytes().replace(b"\r\n", b"\n")
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    header, text = Path(out), f"#define CODE_VERSION UINT32_C(0x{digest.hexdigest()[:8]})\n"
    if not header.exists() or header.read_text(encoding="ascii") != text:  # else nothing need be compiled again
        header.write_text(text, encoding="ascii")
    escaped = " ".join(p.as_posix().replace(" ", "\\ ") for p in paths)
    Path(depfile).write_text(f"{Path(out).name}: {escaped}\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
