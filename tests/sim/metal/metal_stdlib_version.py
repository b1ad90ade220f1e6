#!/usr/bin/env python3
"""SIM_VERSION, a digest of metal_stdlib, so that kernels that were made with another one are made again."""

import hashlib
import sys

with open(sys.argv[1], "rb") as f:
    digest = hashlib.sha256(f.read()).hexdigest()
with open(sys.argv[2], "w", encoding="utf-8") as f:
    f.write('#define SIM_VERSION "%s"\n' % digest[:16])
