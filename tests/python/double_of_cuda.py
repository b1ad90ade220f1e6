"""The double of CUDA's driver, under a process of its own."""

import os
import subprocess
import sys

import pytest

DOUBLE = os.path.abspath(os.environ.get("HOLOGRAM_DOUBLE", "none"))  # the folder with its libcuda
needed = pytest.mark.skipif(not os.path.isdir(DOUBLE), reason="HOLOGRAM_DOUBLE names no folder with the double of libcuda")
CODE = "import hologram as hg; hg.set_default_executor(hg.Executor('cuda')); import {0}; print({0}.digest())"


def run(code, *arguments, cwd=None, **environment):
    """What the code prints in a process where libcuda is the double; it can import the modules of this folder."""
    folders = [os.path.dirname(__file__), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    paths = os.pathsep.join(map(os.path.abspath, folders))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code, *arguments], capture_output=True, text=True, timeout=300, cwd=cwd,
                          env={**os.environ, "LD_LIBRARY_PATH": DOUBLE, "HOLOGRAM_CACHE": "0", "PYTHONPATH": paths, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def digest_of(module):
    """What module.digest() of a test's module gives there, as text."""
    return run(CODE.format(module)).strip()
