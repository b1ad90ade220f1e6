#!/usr/bin/env python3
"""Symbolic links to a program that lies in the same folder: links.py PROGRAM LINK..."""

import sys
from pathlib import Path

program, *links = map(Path, sys.argv[1:])
for link in links:
    link.unlink(missing_ok=True)
    link.symlink_to(program.name)
