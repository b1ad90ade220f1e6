"""Importing starts nothing, asks for nothing, and is for the main interpreter."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent / "python"


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_import_starts_no_thread_and_no_device():
    done = run("import os, hologram\nprint(len(os.listdir('/proc/self/task')))\n"
               "print(any('libcuda' in line for line in open('/proc/self/maps')))")
    assert done.stdout.split() == ["1", "False"], done.stderr


def test_import_needs_no_numpy():
    done = run("import sys\nsys.modules['numpy'] = None\nimport hologram as hg\nprint((hg.ones(3) + 1).tolist())")
    assert done.stdout.strip() == "[2.0, 2.0, 2.0]", done.stderr


def test_what_is_not_imported():
    done = run("import sys, hologram\nprint([m for m in ('numpy', 'json', 'ctypes', 'asyncio') if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stderr


def test_subinterpreters_are_refused():
    done = run("import hologram\ntry:\n    import _xxsubinterpreters as s\nexcept ImportError:\n    import _interpreters as s\n"
               "i = s.create()\ntry:\n    error = s.run_string(i, 'import hologram._core')\nexcept Exception as e:\n"
               "    error = e\nprint('main interpreter' in str(error))")
    assert done.stdout.strip() == "True", done.stdout + done.stderr


def test_exit_in_any_order():
    code = ("import hologram as hg, sys\n"
            "class Late:\n    def __init__(self): self.x = hg.ones(4) + 1; self.b = hg.default_executor().allocate(4)\n"
            "    def __del__(self): self.b.fill(1.0) if self.b else None\n"
            "hg.late = Late(); late = Late(); sys.late = Late(); y = memoryview((hg.ones(5) * 2).compute())\n"
            "e = hg.Executor('cpu'); b = e.allocate(10); v = memoryview(b); e.close()\nprint('end')")
    done = run(code)
    assert done.returncode == 0 and done.stdout == "end\n", done.stderr


@pytest.mark.parametrize("package", ["hologram", "hologram_torch"])
def test_every_file_is_installed(package):
    named = (ROOT / "meson.build").read_text(encoding="utf-8")
    files = {f"{package}/{file.name}" for ending in ("py", "pyi", "typed") for file in (ROOT / package).glob(f"*.{ending}")}
    assert files and not [name for name in sorted(files) if f"'{name}'" not in named]
