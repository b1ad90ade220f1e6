"""Who runs the programs of blocks: the library, PyTorch, torch.compile, Triton, and CUDA C through NVRTC.

A contender is one of contenders.py: call() puts its work on `stream`, answer(first, count) gives elements of the output."""

import ctypes as c
from pathlib import Path

import numpy as np

from block_cases import Array, BlockCase
from cases import SIZES, bits_dtype, from_type
from contenders import CuPy, Gpu, Peer, Torch
from library import BACKEND_CPU, LaunchDesc
from row_programs import EPSILON

HERE = Path(__file__).resolve().parent
# A row's name -> the peer whose library it is. NVRTC is reached through CuPy.
NAMES = {"torch": "torch", "compile": "compile", "triton": "triton", "nvrtc": "cupy"}


# ---- the library --------------------------------------------------------------------------------------------------------------------

class OurBlocks:
    """The launches of a case, one after another."""

    def __init__(self, gpu: Gpu, case: BlockCase):
        self.gpu, self.case, self.stream = gpu, case, gpu.driver_stream
        self.arrays = {name: self.array(name, array) for name, array in case.arrays.items()}
        self.kernels = [gpu.executor.kernel(step.text, case.program) for step in case.steps]
        self.launches = [gpu.launch_desc({p: self.arrays[n] for p, n in step.bindings.items()}, step.lanes, step.grid, step.scalars)
                         for step in case.steps]

    def array(self, name: str, array: Array):
        """Those of other cases, too, where they are the same."""
        key = array.tile or name, array.kind, array.count, array.repeats
        if key not in self.gpu.buffers:
            byte_count = array.count * SIZES[array.kind]
            self.gpu.buffers[key] = self.gpu.repeated(array.period(), byte_count) if array.tile else self.gpu.allocate(byte_count)
        return self.gpu.buffers[key]

    def call(self) -> None:
        library = self.gpu.library
        for kernel, desc in zip(self.kernels, self.launches):
            library.check(library.c.hg_launch(kernel.handle, c.cast(c.byref(desc), c.POINTER(LaunchDesc)), None))

    def output(self, first: int, count: int) -> np.ndarray:
        y = self.case.arrays["y"]
        part = np.zeros(count, bits_dtype(y.kind))
        if self.case.adds:
            self.gpu.write(self.arrays["y"], part)
        self.call()
        if self.stream:
            self.gpu.driver.wait(self.stream)
        self.gpu.read(self.arrays["y"], first * part.itemsize, part)
        return part

    def answer(self, first: int, count: int) -> np.ndarray:
        return from_type(self.output(first, count), self.case.arrays["y"].kind).astype(np.float64)


class Both:
    """The GPU and the CPU of one library, which must agree in every bit."""

    def __init__(self, gpu: Gpu, path: Path):
        self.gpu, self.cpu = gpu, Gpu(path, backend=BACKEND_CPU)

    def difference(self, case: BlockCase) -> str:
        count = case.arrays["y"].count
        ours, theirs = (OurBlocks(device, case).output(0, count).view(np.uint8) for device in (self.gpu, self.cpu))
        wrong = np.flatnonzero(ours != theirs)
        where = int(wrong[0]) // SIZES[case.arrays["y"].kind] if len(wrong) else 0
        return f"the GPU and the CPU differ from element {where} on, of {count}" if len(wrong) else ""


# ---- PyTorch ------------------------------------------------------------------------------------------------------------------------

def torch_arrays(library: Torch, case: BlockCase) -> dict:
    """Tensors in the shapes of the case; whole numbers of 32 bits are int64, as PyTorch's indices are."""
    torch, found = library.torch, {}
    kinds = library.kinds | {"u8": torch.uint8, "u32": torch.int64, "i8": torch.int8, "i32": torch.int32}
    for name, array in case.arrays.items():
        key = array.tile or name, array.kind, array.count, array.repeats
        if key not in library.tensors:
            if array.tile:
                period = array.period()
                values = torch.from_numpy(period.astype(np.int64) if array.kind == "u32" else from_type(period, array.kind))
                library.tensors[key] = values.to(kinds[array.kind]).cuda().repeat(array.count // len(period))
            else:
                library.tensors[key] = torch.zeros(array.count, dtype=kinds[array.kind], device="cuda")
        found[name] = library.tensors[key].view(array.shape)
    return found


def eager(torch, case: BlockCase, a: dict):
    """The calls that somebody who knows PyTorch would write: outputs given where there is a way."""
    x, y, function = a.get("x"), a["y"], torch.nn.functional
    columns = case.arrays["x"].shape[1:] if "x" in a else ()
    return {"softmax": lambda: torch.softmax(x, 1, out=y), "layer_norm": lambda: function.layer_norm(x, columns, eps=EPSILON),
            "rms_norm": lambda: function.rms_norm(x, columns, eps=EPSILON),
            "cross_entropy": lambda: function.cross_entropy(x, a["t"], reduction="none"), "row_sum": lambda: torch.sum(x, 1, out=y),
            "column_sum": lambda: torch.sum(x, 0, out=y), "row_argmax": lambda: torch.argmax(x, 1),
            "row_scan": lambda: torch.cumsum(x, 1, out=y), "transpose": lambda: y.copy_(x.t()),
            "attention": lambda: function.scaled_dot_product_attention(*(a[n][None, None] for n in "qkv")),
            "histogram": lambda: torch.bincount(x, minlength=256),
            **dict.fromkeys(("matmul", "matmul_tree", "matmul_bf16"), lambda: torch.mm(a["a"], a["b"], out=y)),
            "matmul_int8": lambda: torch._int_mm(a["a"], a["b"].t(), out=y)}.get(case.program)


def formula(torch, case: BlockCase, a: dict):
    """What torch.compile is given: a function and its arguments."""
    x, function = a.get("x"), torch.nn.functional
    columns = case.arrays["x"].shape[1:] if "x" in a else ()
    found = {"softmax": lambda x: torch.softmax(x, 1), "layer_norm": lambda x: function.layer_norm(x, columns, eps=EPSILON),
             "rms_norm": lambda x: function.rms_norm(x, columns, eps=EPSILON),
             "cross_entropy": lambda x, t: function.cross_entropy(x, t, reduction="none"), "row_sum": lambda x: torch.sum(x, 1),
             "column_sum": lambda x: torch.sum(x, 0), "row_argmax": lambda x: torch.argmax(x, 1),
             "row_scan": lambda x: torch.cumsum(x, 1), "transpose": lambda x: x.t().contiguous()}.get(case.program)
    return found, (x, a["t"]) if "t" in a else (x,)


def torch_contender(library: Torch, case: BlockCase, how: str) -> Peer:
    torch = library.torch
    torch.backends.cuda.matmul.allow_tf32 = False
    arrays = torch_arrays(library, case)
    if how == "torch":
        call = eager(torch, case, arrays)
    elif how == "compile":
        function, given = formula(torch, case, arrays)
        compiled = function and torch.compile(function, dynamic=False)
        call = function and (lambda: compiled(*given))
    else:
        from triton_blocks import contender
        call = contender(torch, case, arrays)
    if call is None:
        raise LookupError("has no such program")
    return Peer(call, lambda y, first, count: y.reshape(-1)[first:first + count].to(torch.float64).cpu().numpy())


# ---- CUDA C -------------------------------------------------------------------------------------------------------------------------

def nvrtc_contender(library: CuPy, case: BlockCase, _how: str) -> Peer:
    """A kernel of kernels.cu: the same algorithm, no access checked."""
    cupy, y = library.cupy, case.arrays["y"]
    shape = {"blur": lambda rows, columns: ((rows * columns // 256,), [columns, rows]),
             "transpose": lambda rows, columns: ((columns // 64, rows // 64), [rows, columns]),
             "histogram": lambda count: (case.steps[0].grid, [count]),
             "matmul_int8": lambda size, _: ((size // 128, size // 128), [size, size // 4]),
             "matmul": lambda size, _: ((size // 128, size // 128), [size, size]),
             "matmul_bf16": lambda size, _: ((size // 128, size // 128), [size, size]),
             "matmul_tree": lambda size, _: ((size // 128, size // 128), [size, size])}.get(case.program)
    if shape is None:
        raise LookupError("has no such kernel")
    arrays = {}
    for name, array in case.arrays.items():
        key = array.tile or name, array.kind, array.count, array.repeats
        if key not in library.arrays:
            period = cupy.asarray(array.period()) if array.tile else cupy.zeros(1, bits_dtype(array.kind))
            library.arrays[key] = cupy.tile(period, array.count // len(period))
        arrays[name] = library.arrays[key]
    grid, sizes = shape(*next(a for n, a in case.arrays.items() if n != "y").shape)
    kernel = cupy.RawKernel((HERE / "kernels.cu").read_text(encoding="utf-8"), case.program)
    given = (*arrays.values(), *(np.uint32(size) for size in sizes))
    block = (64, 4) if case.program == "transpose" else (256,)

    def call():
        kernel(grid, block, given)
        return arrays["y"]

    def fetch(_, first, count):
        if case.adds:
            arrays["y"].fill(0)
            call()
        return from_type(cupy.asnumpy(arrays["y"][first:first + count]), y.kind).astype(np.float64)
    return Peer(call, fetch)


def contender(libraries: dict, case: BlockCase, how: str) -> Peer:
    return (nvrtc_contender if how == "nvrtc" else torch_contender)(libraries[NAMES[how]], case, how)
