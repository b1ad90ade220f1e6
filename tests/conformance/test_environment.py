"""The caller's floating-point environment changes nothing, and is left as it was: rounding direction, flush to zero."""

import ctypes
import ctypes.util
import platform
from contextlib import contextmanager

import pytest

import hg
import model
from harness import array_of, build, compare
from values import specials

pytestmark = pytest.mark.engine

libm = ctypes.CDLL(ctypes.util.find_library("m"))
X86 = platform.machine() in ("x86_64", "AMD64")
UPWARD, TOWARD_ZERO = (0x800, 0xC00) if X86 else (0x400000, 0xC00000)
MXCSR_OFFSET, FLUSH_AND_DENORMALS_ZERO = 28, 0x8040  # glibc's fenv_t on x86-64


def environment() -> bytearray:
    memory = (ctypes.c_uint8 * 64)()
    assert libm.fegetenv(memory) == 0
    return bytearray(memory)


def mxcsr() -> int:
    return int.from_bytes(environment()[MXCSR_OFFSET : MXCSR_OFFSET + 4], "little")


@contextmanager
def changed(how: str):
    """Sets the environment of this thread; no Python arithmetic on floats belongs inside."""
    before = (ctypes.c_uint8 * 64).from_buffer_copy(environment())
    if how == "flush":
        now = environment()
        now[MXCSR_OFFSET : MXCSR_OFFSET + 4] = (mxcsr() | FLUSH_AND_DENORMALS_ZERO).to_bytes(4, "little")
        libm.fesetenv((ctypes.c_uint8 * 64).from_buffer(now))
    else:
        libm.fesetround(UPWARD if how == "upward" else TOWARD_ZERO)
    try:
        yield
    finally:
        libm.fesetenv(before)


HOWS = [pytest.param("flush", marks=pytest.mark.skipif(not X86, reason="flush to zero is set through MXCSR here")), "upward", "toward zero"]


def run_in(how, program, executor, **launch):
    """The launch alone runs in the changed environment."""
    real = hg.lib.hg_launch
    seen = {}

    def launcher(*arguments):
        with changed(how):
            seen["before"] = (mxcsr() if X86 else 0, libm.fegetround())
            status = real(*arguments)
            seen["after"] = (mxcsr() if X86 else 0, libm.fegetround())
        return status

    hg.lib.hg_launch = launcher
    try:
        result = executor.run(program, **launch)
    finally:
        hg.lib.hg_launch = real
    status_flags = 0x3F if X86 else 0  # which exceptions happened is nobody's promise
    assert seen["before"][0] & ~status_flags == seen["after"][0] & ~status_flags and seen["before"][1] == seen["after"][1]
    return result


@pytest.mark.parametrize("t", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma", "sqrt", "recip", "min", "round"])
@pytest.mark.parametrize("how", HOWS)
def test_arithmetic(executor, how, op, t):
    program = hg.parse(build(op, t, None))
    values = specials(t)
    sources = {"fma": 3, "sqrt": 1, "recip": 1, "round": 1}.get(op, 2)
    columns = [values * len(values), [v for v in values for _ in values], (values * len(values))[3:] + values[:3]][:sources]
    buffers = {f"a{i}": array_of(t, c) for i, c in enumerate(columns, 1)} | {"result": array_of(t, [0] * len(columns[0]))}
    result = run_in(how, program, executor, lanes=len(columns[0]), buffers=buffers)
    compare(f"{op}.{t} with {how}", [t] * sources, columns, [int(b) for b in result.buffers["result"]],
            model.evaluate(op, t, None, columns), t)


@pytest.mark.parametrize("op, t", [(op, t) for op in ("exp", "log", "sin", "tanh", "erf", "cosh") for t in ("f32", "f64")])
@pytest.mark.parametrize("how", HOWS)
def test_functions(executor, how, op, t):
    program = hg.parse(build(op, t, None))
    values = specials(t) * 4
    launch = dict(lanes=len(values), buffers={"a1": array_of(t, values), "result": array_of(t, [0] * len(values))})
    want = executor.run(program, **launch).buffers["result"]
    got = run_in(how, program, executor, **launch).buffers["result"]
    compare(f"{op}.{t} with {how}", [t], [values], [int(b) for b in got], [int(b) for b in want], t)


@pytest.mark.parametrize("how", HOWS)
def test_constants_and_conversions(executor, how):
    """Parsing rounds by itself."""
    text = """.const c f32 { #0.1, #1e-45, #1.17549435e-38, #0x1.000001p0, #3.4028235e38 }
.const d f64 { #0.1, #5e-324, #1e308 }
    exit
"""
    want = hg.parse(text).print()
    with changed(how):
        program = hg.parse(text)
        got = program.print()
    assert got == want
