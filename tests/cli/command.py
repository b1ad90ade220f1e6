"""What the tests of the `hologram` command share: the command, which the environment variable HOLOGRAM_CLI names, and programs."""

import os
import subprocess

CLI = os.environ.get("HOLOGRAM_CLI", "hologram")

SAXPY = """\
.program saxpy
.buffer  x f32 in
.buffer  y f32 inout
.scalar  a f32
    ldg.f32  r0, [x + lane]        ; element form: each lane its own element
    ldg.f32  r1, [y + lane]
    mov.f32  r2, a
    fma.f32  r3, r2, r0, r1
    stg.f32  [y + lane], r3
    exit
"""

SQUARE = """\
.program square
.buffer x f32 in
.buffer y f32 out
    ldg.f32 r0, [x + lane]
    mul.f32 r0, r0, r0
    stg.f32 [y + lane], r0
    exit
"""

LANES = """\
.program lanes
.buffer y u64 out
    mov.u64 r0, lane
    stg.u64 [y + lane], r0
    exit
"""


def run(*arguments, cwd=None, stdin=None):
    """Runs the command; the result has returncode, stdout and stderr. It must end by itself, and never by a signal."""
    environment = dict(os.environ, ASAN_OPTIONS="allocator_may_return_null=1")  # as malloc does without a sanitizer
    result = subprocess.run([CLI, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, env=environment, timeout=60,
                            stdin=stdin)
    assert result.returncode in (0, 1, 2, 3), (arguments, result.returncode, result.stderr)
    assert "ERROR: " not in result.stderr and "runtime error" not in result.stderr, result.stderr  # of a sanitizer
    return result


def refused(code, sentence, *arguments, cwd=None):
    """The command must end with this code and say exactly this one sentence."""
    result = run(*arguments, cwd=cwd)
    assert result.stderr == f"hologram: {sentence}\n"
    assert result.returncode == code
    return result


SAXPY_RUN = ("run", "saxpy.atlas", "--buffer", "x=x.npy", "--buffer", "y=y.npy", "--scalar", "a=2")
