#!/usr/bin/env python3
"""Runs digits on the pictures that come in scikit-learn's package, whose code is not needed.

    digits.py PROGRAM [OPTION]...        (./dev demo digits; the options are the program's)"""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))
from data import table  # noqa: E402


def pictures() -> bytes:
    """The 1,797 lines of digits.csv."""
    return table("digits.csv.gz").encode()


if __name__ == "__main__":
    sys.exit(subprocess.run(sys.argv[1:], input=pictures()).returncode)
