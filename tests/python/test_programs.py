"""Programs of the Atlas ISA from Python."""

import numpy as np
import pytest

import hologram as hg

SAXPY = """
.program saxpy
.buffer x f32 in
.buffer y f32 inout
.scalar a f32
  ldg.f32 r0, [x + lane]
  ldg.f32 r1, [y + lane]
  mov.f32 r2, a
  fma.f32 r1, r2, r0, r1
  stg.f32 [y + lane], r1
  exit
"""


@pytest.fixture
def executor():
    with hg.Executor("cpu") as made:
        yield made


def test_a_program_runs_on_numpy_s_memory(executor):
    program = hg.Program(SAXPY)
    x, y = np.arange(100, dtype="f4"), np.ones(100, "f4")
    report = program.run(executor, 100, x=x, y=y, a=2.0)
    assert np.array_equal(y, 2 * np.arange(100) + 1)
    assert report["lanes"] == 100 and report["backend"] == "cpu"


def test_buffers_and_arrays_are_bound(executor):
    program = hg.Program(SAXPY)
    y = executor.allocate(8)
    x = hg.asarray(np.ones(8, "f4"), device=executor)
    program.run(executor, lanes=8, x=x, y=y, a=3)
    assert y.to_list() == [3] * 8
    with pytest.raises(ValueError, match="written"):
        program.run(executor, 8, x=x, y=x, a=1.0)
    with pytest.raises(TypeError, match="float64"):
        program.run(executor, 8, x=np.zeros(8), y=y, a=1.0)
    with pytest.raises(TypeError, match="no parameter"):
        program.run(executor, 8, x=x, y=y, a=1.0, z=1)
    with pytest.raises(hg.BindingError, match="x"):
        program.run(executor, 8, y=y, a=1.0)
    with pytest.raises(ValueError, match="another executor"):
        program.run(executor, 8, x=x, y=hg.Executor("cpu").allocate(8), a=1.0)


def test_a_fault_leaves_the_process_alive(executor):
    program, y = hg.Program(SAXPY), executor.allocate(8)
    with pytest.raises(hg.Fault, match="lane 8 read past"):
        program.run(executor, 9, x=np.ones(8, "f4"), y=y, a=1.0)
    assert y.to_list() == [1] * 8


def test_identity():
    program = hg.Program(SAXPY)
    renamed = hg.Program(SAXPY.replace("r0", "r7").replace("saxpy", "other"))
    assert program.hash == renamed.hash and len(program.hash) == 64
    assert program.canonical == renamed.canonical and program.name == "saxpy"
    assert hg.Program(program.text).hash == program.hash
    assert hg.Program(program.encode()).hash == program.hash


def test_errors_say_where():
    with pytest.raises(hg.ParseError, match="bad.atlas") as caught:
        hg.Program(SAXPY.replace("fma.f32 r1, r2, r0, r1", "fma.f32 r1, r2"), name="bad.atlas")
    assert caught.value.line == 9 and caught.value.column > 0 and caught.value.status == "HG_PARSE"
    assert isinstance(caught.value, hg.Error) and isinstance(caught.value, ValueError)
    with pytest.raises(hg.VerifyError):
        hg.Program(SAXPY.replace("r2, r0, r1", "r3, r0, r1"))
    with pytest.raises(hg.FormatError):
        hg.Program(b"nothing of the kind")
    with pytest.raises(TypeError):
        hg.Program(3)
