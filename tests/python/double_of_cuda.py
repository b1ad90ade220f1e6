"""The double of CUDA's driver, under a process of its own."""

import os
import subprocess
import sys

import pytest

CODE = """
import sys
sys.path.insert(0, {folder!r})
import hologram as hg
hg.set_default_executor(hg.Executor("cuda"))
import {module}
print({module}.digest())
"""


def digest_of(module):
    """What module.digest() of a test's module gives there, as text; skips the test where there is no double."""
    double = os.environ.get("HOLOGRAM_DOUBLE", "")
    if not os.path.isdir(double):
        pytest.skip("HOLOGRAM_DOUBLE names no folder with the double of libcuda")
    code = CODE.format(folder=os.path.dirname(__file__), module=module)
    environment = os.environ | {"LD_LIBRARY_PATH": double, "HOLOGRAM_CACHE": "0"}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
