#!/usr/bin/env python3
"""A text as C data: text_lines.py IN OUT.c NAME writes `const char *const NAME[]`, its lines, ending with NULL."""

import sys

source, target, name = sys.argv[1:]
with open(source, encoding="utf-8") as f:
    lines = f.read().splitlines()
quoted = ['  "%s\\n",' % line.replace("\\", "\\\\").replace('"', '\\"') for line in lines]
with open(target, "w", encoding="utf-8") as f:
    f.write("extern const char *const %s[];\nconst char *const %s[] = {\n%s\n  0,\n};\n" % (name, name, "\n".join(quoted)))
