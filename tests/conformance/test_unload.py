"""The shared library's worker threads end with it: when it is unloaded, and when the process exits with or without them
asleep. Each case is a process of its own, because a test runner keeps its library."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

USE = """
import ctypes, os, sys, time
def threads():
    return len(os.listdir("/proc/self/task"))
def wait_for_threads(count):  # the system lists one a little longer than it can be joined
    end = time.monotonic() + 20
    while threads() != count and time.monotonic() < end:
        time.sleep(0.001)
    assert threads() == count
class Desc(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("backend", ctypes.c_int), ("rest", ctypes.c_byte * 32)]
def open(library, backend):
    desc, executor = Desc(backend=backend), ctypes.c_void_p()
    assert library.hg_executor_create(ctypes.byref(desc), ctypes.byref(executor)) == 0
    return executor
def use(name):
    library = ctypes.CDLL(name)
    executor, buffer, word = open(library, 1), ctypes.c_void_p(), ctypes.c_uint64(7)  # a GPU's driver has threads of its own
    size = ctypes.c_uint64(16 << 20)
    assert library.hg_buffer_create(executor, None, size, ctypes.byref(buffer)) == 0
    assert library.hg_buffer_fill(buffer, ctypes.c_uint64(0), size, ctypes.byref(word), ctypes.c_size_t(8)) == 0
    library.hg_buffer_release(buffer)
    library.hg_executor_release(executor)
    return library
name, before = sys.argv[1], threads()
"""

CASES = {
    "unload": """
import _ctypes
for pause in (0, 0.01, 0):
    library = use(name)
    assert threads() > before
    time.sleep(pause)
    _ctypes.dlclose(library._handle)
    wait_for_threads(before)
""",
    "exit": "use(name)",
    "exit asleep": "use(name); time.sleep(0.01)",
    "fork and exit": """
library = use(name)
child = os.fork()
if child == 0:
    use(name)
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
""",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts threads in /proc")
@pytest.mark.parametrize("case", CASES)
def test_threads_end(case):
    environment = dict(os.environ, HOLOGRAM_NUM_THREADS="4")
    subprocess.run([sys.executable, "-c", USE + CASES[case], os.environ["HOLOGRAM_LIB"]], env=environment, check=True,
                   timeout=60)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the double of libcuda is a Linux library")
def test_unload_with_an_executor_of_a_gpu():
    """Just opened and not released: a leak, but no crash."""
    library = Path(os.environ["HOLOGRAM_LIB"])
    double = library.resolve().parent / "tests/sim"
    if not (double / "libcuda.so.1").exists():
        pytest.skip(f"no double of libcuda beside {library}")
    case = """
import _ctypes
library = ctypes.CDLL(name)
open(library, 3)
_ctypes.dlclose(library._handle)
time.sleep(0.02)
"""
    for _ in range(5):
        subprocess.run([sys.executable, "-c", USE + case, library], env=os.environ | {"LD_LIBRARY_PATH": str(double)}, check=True,
                       timeout=60)
