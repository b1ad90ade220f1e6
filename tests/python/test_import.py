"""Importing starts nothing, asks for nothing, and is for the main interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent / "python"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_import_starts_no_thread_and_no_device():
    """Nor does it open a file that stays open, or any library but its own."""
    done = run("import os\nmapped = lambda: {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line or '/dev/' in line}\n"
               "before, files = mapped(), os.listdir('/proc/self/fd')\nimport hologram\n"
               "new = mapped() - before\nprint(len(os.listdir('/proc/self/task')), os.listdir('/proc/self/fd') == files)\n"
               "print([os.path.basename(name) for name in new if not name.startswith(os.path.dirname(os.__file__))])")
    assert done.stdout == "1 True\n['_core.abi3.so']\n", done.stdout + done.stderr


def test_any_thread_may_import():
    """Signals are the main thread's all the same: it can be interrupted."""
    done = run("import os, signal, threading, time\nfound = []\n"
               "t = threading.Thread(target=lambda: found.append(__import__('hologram')))\nt.start(); t.join(); hg = found[0]\n"
               "threading.Thread(target=lambda: (time.sleep(0.3), os.kill(os.getpid(), signal.SIGINT))).start()\n"
               "big = hg.ones((1500, 1500))\ntry:\n    y = big\n    for _ in range(200): y = y @ big\n    float(y.sum())\n"
               "except KeyboardInterrupt:\n    print('interrupted')")
    assert done.stdout == "interrupted\n", done.stdout + done.stderr


def test_a_second_import_is_refused():
    done = run("import sys, hologram as hg\nx = hg.ones(3) + 1\ndel sys.modules['hologram._core']\n"
               "try:\n    import hologram._core\nexcept ImportError as error:\n    print(error, x.tolist())")
    assert "once" in done.stdout and done.stdout.endswith("[2.0, 2.0, 2.0]\n"), done.stdout + done.stderr


def test_import_needs_no_numpy():
    done = run("import sys\nsys.modules['numpy'] = None\nimport hologram as hg\nprint((hg.ones(3) + 1).tolist())")
    assert done.stdout.strip() == "[2.0, 2.0, 2.0]", done.stderr


def test_what_is_not_imported():
    done = run("import sys, hologram\nprint([m for m in ('numpy', 'json', 'ctypes', 'asyncio') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_subinterpreters_are_refused():
    done = run("import hologram\ntry:\n    import _xxsubinterpreters as s\nexcept ImportError:\n    import _interpreters as s\n"
               "i = s.create()\ntry:\n    error = s.run_string(i, 'import hologram._core')\nexcept Exception as e:\n"
               "    error = e\nprint('interpreter' in str(error), (hologram.ones(3) + 1).tolist())")
    assert done.stdout == "True [2.0, 2.0, 2.0]\n", done.stdout + done.stderr


@pytest.mark.parametrize("package", ["hologram", "hologram_torch"])
def test_every_file_is_installed(package):
    named = (ROOT / "meson.build").read_text(encoding="utf-8")
    files = {file.relative_to(ROOT).as_posix() for ending in ("py", "pyi", "typed") for file in (ROOT / package).rglob(f"*.{ending}")}
    assert files and not [name for name in sorted(files) if f"'{name}'" not in named]
