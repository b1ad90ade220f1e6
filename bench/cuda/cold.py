"""One first launch in this process: cold.py LIBRARY PROGRAM WHO. Prints nanoseconds as JSON; costs.py runs it."""

import json
import sys
import time
from pathlib import Path

from cases import PROGRAMS, Case

COUNT = 1 << 20


class Clock:
    def __init__(self):
        self.parts, self.last = {}, time.perf_counter_ns()

    def lap(self, name: str) -> None:
        now = time.perf_counter_ns()
        self.parts[name], self.last = now - self.last, now


def ours(path: Path, program) -> dict:
    """Not by contenders.py: each step by itself."""
    import ctypes as c
    from contenders import Gpu, LaunchDesc
    clock, case = Clock(), Case(program, "f32", COUNT)
    gpu = Gpu(path)
    clock.lap("context_ns")
    buffers = {n: gpu.buffer(case, n) for n in program.inputs + ("y",)}
    desc = gpu.launch_desc(dict(zip("ab", (buffers[n] for n in program.inputs))) | {"y": buffers["y"]}, lanes=COUNT)
    text, kernel, library = program.text("f32"), c.c_void_p(), gpu.library
    clock.lap("buffers_ns")
    handle = library.parse(text, program.name)
    clock.lap("parse_ns")
    library.check(library.c.hg_kernel_create(gpu.executor.handle, handle, c.byref(kernel)))
    clock.lap("kernel_ns")
    library.check(library.c.hg_launch(kernel, c.cast(c.byref(desc), c.POINTER(LaunchDesc)), None))
    clock.lap("launch_ns")
    library.c.hg_kernel_release(kernel)
    library.c.atlas_program_release(handle)
    return clock.parts | {"cold_ns": sum(clock.parts[n] for n in ("parse_ns", "kernel_ns", "launch_ns"))}


def peer(program, who: str) -> dict:
    from contenders import open_peers
    found, missing = open_peers([who])
    if who in missing:
        raise SystemExit(missing[who])
    library, case = found[who], Case(program, "f32", COUNT)
    library.tunes = False
    clock = Clock()
    for name in program.inputs + ("y",):
        getattr(library, "tensor", getattr(library, "array", None))(case, name)
    wait = library.torch.cuda.synchronize if hasattr(library, "torch") else library.cupy.cuda.Device().synchronize
    wait()
    clock.lap("context_ns")
    library.contender(case, who).call()
    wait()
    clock.lap("cold_ns")
    return clock.parts


def main() -> None:
    path, program, who = Path(sys.argv[1]), PROGRAMS[sys.argv[2]], sys.argv[3]
    print(json.dumps(ours(path, program) if who == "hologram" else peer(program, who)))


if __name__ == "__main__":
    main()
