"""Who is timed: the library through its C interface, and whichever of PyTorch, Triton and CuPy can be imported.

A contender has call(), which puts its work on `stream` (None: call waits for it) and answer(first, count), elements of the output as
f32."""

import ctypes as c
import sys
from pathlib import Path

import numpy as np

from cases import Case, SIZES, bits_dtype, from_type

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "cpu"))
from library import BACKEND_CUDA, Device, LaunchDesc  # noqa: E402

# Of the first launch of a fold, by the bytes of an element: the same on every card, so that its bits are too. Of
# those tried the fastest on H200s.
FOLD_BLOCKS = {2: 1056, 4: 4096}
NAMES = ("torch", "compile", "triton", "cupy")


# ---- the library ------------------------------------------------------------------------------------------------------------------

class StreamDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("flags", c.c_uint32), ("foreign", c.c_void_p)]


class Gpu(Device):
    """A device with a stream of the driver that it has adopted; without a driver none."""

    def __init__(self, path: Path, driver=None, backend: int = BACKEND_CUDA):
        super().__init__(path, backend)
        self.driver = driver
        if driver:
            self.driver_stream = driver.stream()
            self.stream = self.open_stream(self.driver_stream)

    def open_stream(self, foreign=None) -> c.c_void_p:
        create, stream = self.library.c.hg_stream_create, c.c_void_p()
        create.argtypes = [c.c_void_p, c.POINTER(StreamDesc), c.POINTER(c.c_void_p)]
        desc = StreamDesc(size=c.sizeof(StreamDesc), foreign=foreign)
        self.library.check(create(self.executor.handle, c.byref(desc), c.byref(stream)))
        return stream

    def buffer(self, case: Case, name: str) -> c.c_void_p:
        key = name, case.kind, case.count
        if key not in self.buffers:
            byte_count = case.count * SIZES[case.kind]
            self.buffers[key] = self.allocate(byte_count) if name == "y" else self.repeated(case.tile(name), byte_count)
        return self.buffers[key]

    def forget(self, kind: str) -> None:
        """Buffers of other element types."""
        for key in [k for k in self.buffers if k[1] != kind]:
            self.library.c.hg_buffer_release(self.buffers.pop(key))


class Ours:
    def __init__(self, gpu: Gpu, case: Case):
        self.gpu, self.case, self.stream = gpu, case, gpu.driver_stream
        program = case.program
        self.kernel = gpu.executor.kernel(program.text(case.kind), program.name)
        bindings = dict(zip("ab", (gpu.buffer(case, name) for name in program.inputs)))
        self.parts, y = None, gpu.buffer(case, "y")
        if program.folds:
            blocks = FOLD_BLOCKS[SIZES[case.kind]]
            self.parts = gpu.allocate(blocks * SIZES[case.kind])
            self.launches = [gpu.launch_desc(bindings | {"y": self.parts}, grid=(blocks,), scalars={"count": ("u64", case.count)}),
                             gpu.launch_desc({"a": self.parts, "y": y}, grid=(1,), scalars={"count": ("u64", blocks)})]
        else:
            self.launches = [gpu.launch_desc(bindings | {"y": y}, lanes=case.count)]
        self.output = y

    def __del__(self):
        if getattr(self, "parts", None):
            self.gpu.library.c.hg_buffer_release(self.parts)

    def call(self) -> None:
        library = self.gpu.library
        for desc in self.launches:
            library.check(library.c.hg_launch(self.kernel.handle, c.cast(c.byref(desc), c.POINTER(LaunchDesc)), None))

    def answer(self, first: int, count: int) -> np.ndarray:
        self.call()
        if self.stream:
            self.gpu.driver.wait(self.stream)
        part = np.empty(count, bits_dtype(self.case.kind))
        self.gpu.read(self.output, first * part.itemsize, part)
        return from_type(part, self.case.kind)


# ---- PyTorch and Triton -------------------------------------------------------------------------------------------------------------

class Torch:
    """Inputs and outputs as tensors; the legacy default stream. Triton's kernels are tuned unless told otherwise."""

    def __init__(self):
        import torch
        if not torch.cuda.is_available():
            raise RuntimeError("this PyTorch finds no GPU")
        self.torch, self.tensors, self.tunes = torch, {}, True
        self.kinds = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

    def tensor(self, case: Case, name: str):
        torch, key = self.torch, (name, case.kind, case.count)
        if key not in self.tensors:
            if name == "y":
                self.tensors[key] = torch.zeros(case.count, dtype=self.kinds[case.kind], device="cuda")
            else:
                tile = torch.from_numpy(from_type(case.tile(name), case.kind)).to(self.kinds[case.kind]).cuda()
                self.tensors[key] = tile.repeat(case.count // len(tile))
        return self.tensors[key]

    def forget(self, kind: str) -> None:
        for key in [k for k in self.tensors if k[1] != kind]:
            del self.tensors[key]
        self.torch.cuda.empty_cache()

    def eager(self, name: str, x: list, y):
        """The calls that somebody who knows PyTorch would write: outputs given, temporaries none where there is a way."""
        t, a = self.torch, x[0]
        simple = {"exp": t.exp, "log": t.log, "tanh": t.tanh, "sigmoid": t.sigmoid}
        if name in simple:
            return lambda: simple[name](a, out=y)
        if name == "chain":
            b = x[1]
            return lambda: (t.mul(a, b, out=y).add_(a).mul_(1.1).sub_(b).clamp_min_(-2).clamp_max_(3).mul_(a).add_(0.5))
        return {"add": lambda: t.add(x[0], x[1], out=y), "relu": lambda: t.clamp_min(a, 0, out=y),
                "gelu": lambda: t.nn.functional.gelu(a), "gelu_tanh": lambda: t.nn.functional.gelu(a, approximate="tanh"),
                "sum": lambda: t.sum(a), "max": lambda: t.amax(a)}[name]

    def formula(self, name: str):
        """What torch.compile is given."""
        t = self.torch
        return {"add": lambda a, b: a + b, "relu": lambda a: t.relu(a), "exp": lambda a: t.exp(a), "log": lambda a: t.log(a),
                "tanh": lambda a: t.tanh(a), "sigmoid": lambda a: t.sigmoid(a),
                "chain": lambda a, b: t.clamp((a * b + a) * 1.1 - b, -2.0, 3.0) * a + 0.5,
                "gelu": lambda a: t.nn.functional.gelu(a), "gelu_tanh": lambda a: t.nn.functional.gelu(a, approximate="tanh"),
                "sum": lambda a: t.sum(a), "max": lambda a: t.amax(a)}[name]

    def contender(self, case: Case, how: str) -> "Peer":
        inputs = [self.tensor(case, n) for n in case.program.inputs]
        if how == "torch":
            call = self.eager(case.program.name, inputs, self.tensor(case, "y"))
        elif how == "compile":
            compiled = self.torch.compile(self.formula(case.program.name), dynamic=False)
            call = lambda: compiled(*inputs)  # noqa: E731
        else:
            from triton_peer import contender
            call = contender(self.torch, case.program.name, inputs, self.tensor(case, "y"), self.tunes)
        return Peer(call, lambda y, first, count: y.reshape(-1)[first:first + count].float().cpu().numpy())


class Peer:
    """A Python callable that returns its output."""
    stream = c.c_void_p(0)

    def __init__(self, call, fetch):
        self.call, self.fetch = call, fetch

    def answer(self, first: int, count: int) -> np.ndarray:
        return self.fetch(self.call(), first, count)


# ---- CuPy ---------------------------------------------------------------------------------------------------------------------------

class CuPy:
    """Fused kernels from a line of C each, where NumPy's function is not enough."""
    LINES = {"relu": "y = a > (T)0 ? a : (T)0", "sigmoid": "y = 1 / (1 + expf(-a))",
             "chain": "y = fminf(fmaxf((a * b + a) * 1.1f - b, -2.0f), 3.0f) * a + 0.5f",
             "gelu": "y = a * 0.5f * (1 + erff(a * 0.70710678f))",
             "gelu_tanh": "y = a * 0.5f * (1 + tanhf(0.7978845608f * (a + 0.044715f * a * a * a)))"}

    def __init__(self):
        import cupy
        cupy.cuda.Device(0).use()
        self.cupy, self.arrays = cupy, {}

    def array(self, case: Case, name: str):
        key = name, case.kind, case.count
        if key not in self.arrays:
            period = self.cupy.asarray(case.tile("a" if name == "y" else name))
            self.arrays[key] = self.cupy.tile(period, case.count // len(period))
        return self.arrays[key]

    def forget(self, kind: str) -> None:
        for key in [k for k in self.arrays if k[1] != kind]:
            del self.arrays[key]
        self.cupy.get_default_memory_pool().free_all_blocks()

    def contender(self, case: Case, _how: str) -> Peer:
        if case.kind == "bf16":
            raise LookupError("CuPy has no bf16 of its own")
        cupy, name = self.cupy, case.program.name
        x, y = [self.array(case, n) for n in case.program.inputs], self.array(case, "y")
        if case.program.folds:
            y = y[:1].reshape(())
            call = lambda: getattr(cupy, name)(x[0], out=y)  # noqa: E731
        elif name in self.LINES:
            kernel = cupy.ElementwiseKernel(", ".join(f"T {n}" for n in "ab"[:len(x)]), "T y", self.LINES[name], f"bench_{name}")
            call = lambda: kernel(*x, y)  # noqa: E731
        else:
            function = getattr(cupy, name)
            call = lambda: function(*x, out=y)  # noqa: E731
        return Peer(call, lambda out, first, count: cupy.asnumpy(out.reshape(-1)[first:first + count]).astype(np.float32))


# ---- whoever is there -----------------------------------------------------------------------------------------------------------------

def open_peers(wanted: list[str]) -> tuple[dict, dict]:
    """Name -> library that contends under it; name -> why it does not."""
    found, missing, makers = {}, {}, {"torch": Torch, "compile": Torch, "triton": Torch, "cupy": CuPy}
    opened = {}
    for name in wanted:
        maker = makers[name]
        try:
            if name == "triton":
                import triton  # noqa: F401
            if maker not in opened:
                opened[maker] = maker()
            found[name] = opened[maker]
        except Exception as error:  # noqa: BLE001: whatever keeps another project's library from working here
            missing[name] = f"{type(error).__name__}: {error}".split("\n", 1)[0]
    return found, missing
