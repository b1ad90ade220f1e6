"""The installed Python package, alone: no NumPy, no PyTorch, no sources beside it. Exit status 0 if all of it answers right."""

import sys
from importlib.metadata import requires, version
from pathlib import Path

import hologram as hg

TEXT = """
.program saxpy
.buffer x f32 in
.buffer y f32 inout
.scalar a f32
  ldg.f32 r0, [x + lane]
  ldg.f32 r1, [y + lane]
  mov.f32 r2, a
  fma.f32 r3, r2, r0, r1
  stg.f32 [y + lane], r3
  exit
"""


def main():
    assert Path(hg.__file__).is_relative_to(sys.prefix), f"{hg.__file__} is not what was installed"
    assert version("hologram") == hg.__version__ and not requires("hologram")
    assert not {"numpy", "torch"} & set(sys.modules)
    assert (hg.asarray([1.0, 2.0]) + hg.ones(2)).tolist() == [2.0, 3.0]
    assert hg.grad(lambda x: (x * x).sum())(hg.asarray([1.0, 2.0, 3.0])).tolist() == [2.0, 4.0, 6.0]
    with hg.Executor("cpu") as executor:
        x, y = executor.allocate(1000), executor.allocate(1000)
        x.fill(3.0)
        y.fill(1.0)
        hg.Program(TEXT).run(executor, 1000, x=x, y=y, a=2.0)
        assert y.to_list() == [7.0] * 1000
        engine = executor.info["engine"]
    try:
        import hologram_torch
    except ImportError as error:
        assert "pip install torch" in str(error), error
    else:
        raise AssertionError(f"{hologram_torch.__file__} found a PyTorch in an empty environment")
    print(f"hologram {hg.__version__} on Python {sys.version.split()[0]}, engine {engine}: y = 2 * x + 1")


if __name__ == "__main__":
    main()
