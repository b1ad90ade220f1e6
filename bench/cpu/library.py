"""What the benchmark needs of libhologram's C API (include/hologram/hologram.h), by ctypes; no more than that."""

import ctypes as c
import os
from pathlib import Path

import numpy as np


class Error(Exception):
    """A call that failed; the library's sentence."""


class Binding(c.Structure):
    _fields_ = [("name", c.c_char_p), ("slot", c.c_uint32), ("entry", c.c_uint32), ("buffer", c.c_void_p),
                ("offset", c.c_uint64), ("byte_count", c.c_uint64), ("reserved", c.c_uint64 * 3)]


class Scalar(c.Structure):
    _fields_ = [("name", c.c_char_p), ("slot", c.c_uint32), ("type", c.c_uint8), ("reserved", c.c_uint8 * 3), ("bits", c.c_uint64),
                ("reserved2", c.c_uint64)]


class LaunchDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("lanes", c.c_uint64), ("grid", c.c_uint32 * 3), ("block", c.c_uint32 * 3),
                ("bindings", c.POINTER(Binding)), ("binding_count", c.c_size_t), ("binding_size", c.c_size_t),
                ("scalars", c.POINTER(Scalar)), ("scalar_count", c.c_size_t), ("scalar_size", c.c_size_t),
                ("step_limit", c.c_uint64), ("flags", c.c_uint32), ("stream", c.c_void_p)]


class Fault(c.Structure):
    _fields_ = [("kind", c.c_int), ("instruction", c.c_uint32), ("line", c.c_uint32), ("code", c.c_uint32),
                ("lane", c.c_uint64), ("buffer", c.c_char * 64), ("index", c.c_int64), ("extent", c.c_int64),
                ("reserved", c.c_uint64 * 3)]


class LaunchReport(c.Structure):
    _fields_ = [("size", c.c_size_t), ("fault", Fault), ("lanes", c.c_uint64), ("nanoseconds", c.c_uint64),
                ("backend", c.c_char_p), ("engine", c.c_char_p), ("notes", c.c_char_p)]


class ExecutorDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("backend", c.c_int), ("allocator", c.c_void_p), ("log", c.c_void_p), ("log_user", c.c_void_p),
                ("device", c.c_uint32)]


BACKEND_CPU, BACKEND_CUDA = 1, 3


class Library:
    """The shared library at `path`."""

    def __init__(self, path: Path):
        self.c = c.CDLL(str(path.resolve()))
        p, u64, size = c.c_void_p, c.c_uint64, c.c_size_t
        signatures = {
            "hg_version": (c.c_char_p, []),
            "hg_last_error": (c.c_char_p, []),
            "atlas_parse": (c.c_int, [p, c.c_char_p, size, c.c_char_p, c.POINTER(p)]),
            "atlas_program_release": (None, [p]),
            "atlas_type_from_name": (c.c_int, [c.c_char_p]),
            "hg_executor_create": (c.c_int, [c.POINTER(ExecutorDesc), c.POINTER(p)]),
            "hg_executor_release": (None, [p]),
            "hg_buffer_create": (c.c_int, [p, p, u64, c.POINTER(p)]),
            "hg_buffer_release": (None, [p]),
            "hg_buffer_write": (c.c_int, [p, u64, p, u64]),
            "hg_buffer_read": (c.c_int, [p, u64, p, u64]),
            "hg_buffer_copy": (c.c_int, [p, u64, p, u64, u64]),
            "hg_kernel_create": (c.c_int, [p, p, c.POINTER(p)]),
            "hg_kernel_release": (None, [p]),
            "hg_launch": (c.c_int, [p, c.POINTER(LaunchDesc), c.POINTER(LaunchReport)]),
        }
        for name, (result, arguments) in signatures.items():
            function = getattr(self.c, name)
            function.restype, function.argtypes = result, arguments

    def check(self, status: int) -> None:
        if status:
            raise Error(self.c.hg_last_error().decode())

    def parse(self, text: str, name: str) -> c.c_void_p:
        """A program; the caller releases it."""
        handle, data = c.c_void_p(), text.encode()
        self.check(self.c.atlas_parse(None, data, len(data), name.encode(), c.byref(handle)))
        return handle


class Executor:
    """The CPU, its engine chosen by HOLOGRAM_CPU_ENGINE; None: the library's own choice. Or another backend."""

    def __init__(self, library: Library, engine: str | None, backend: int = BACKEND_CPU):
        self.library, self.engine, self.handle = library, engine, c.c_void_p()
        self.choose_engine()
        desc = ExecutorDesc(size=c.sizeof(ExecutorDesc), backend=backend)
        library.check(library.c.hg_executor_create(c.byref(desc), c.byref(self.handle)))

    def __del__(self):
        self.library.c.hg_executor_release(self.handle)

    def choose_engine(self) -> None:
        """Before a kernel is made too: another executor may have chosen another engine meanwhile."""
        if self.engine:
            os.environ["HOLOGRAM_CPU_ENGINE"] = self.engine
        else:
            os.environ.pop("HOLOGRAM_CPU_ENGINE", None)

    def kernel(self, text: str, name: str) -> "Kernel":
        self.choose_engine()
        program, handle = self.library.parse(text, name), c.c_void_p()
        try:
            self.library.check(self.library.c.hg_kernel_create(self.handle, program, c.byref(handle)))
        finally:
            self.library.c.atlas_program_release(program)
        return Kernel(self, handle)


class Kernel:
    def __init__(self, executor: Executor, handle: c.c_void_p):
        self.executor, self.handle = executor, handle

    def __del__(self):
        self.executor.library.c.hg_kernel_release(self.handle)


class Device:
    """An executor with buffers: those that several are to share are in `buffers`, by keys of their own."""

    def __init__(self, path: Path, backend: int = BACKEND_CPU):
        self.library = Library(path)
        self.executor = Executor(self.library, None, backend)
        self.buffers, self.driver, self.driver_stream, self.stream = {}, None, None, None

    def allocate(self, byte_count: int) -> c.c_void_p:
        handle = c.c_void_p()
        self.library.check(self.library.c.hg_buffer_create(self.executor.handle, None, byte_count, c.byref(handle)))
        return handle

    def write(self, handle, array: np.ndarray) -> None:
        self.library.check(self.library.c.hg_buffer_write(handle, 0, array.ctypes.data, array.nbytes))

    def read(self, handle, offset: int, array: np.ndarray) -> None:
        self.library.check(self.library.c.hg_buffer_read(handle, offset, array.ctypes.data, array.nbytes))

    def repeated(self, tile: np.ndarray, byte_count: int) -> c.c_void_p:
        """A buffer with an array over and over."""
        handle, done = self.allocate(byte_count), tile.nbytes
        self.write(handle, tile)
        while done < byte_count:
            more = min(done, byte_count - done)
            self.library.check(self.library.c.hg_buffer_copy(handle, done, handle, 0, more))
            done += more
        return handle

    def launch_desc(self, bindings: dict, lanes: int = 0, grid: tuple = (), scalars: dict | None = None):
        """A launch; what it points to stays alive with it. Scalars: name -> (type, value)."""
        desc, scalars = LaunchDesc(), scalars or {}
        desc.keep = (Binding * len(bindings))(*(Binding(name=n.encode(), buffer=h) for n, h in bindings.items()))
        desc.size, desc.lanes, desc.grid = c.sizeof(desc), lanes, (c.c_uint32 * 3)(*grid)
        desc.bindings, desc.binding_count = desc.keep, len(bindings)
        desc.keep_scalars = (Scalar * len(scalars))(*(self.scalar(n, *s) for n, s in scalars.items()))
        desc.scalars, desc.scalar_count = desc.keep_scalars, len(scalars)
        if self.stream:
            desc.stream = self.stream
        return desc

    def scalar(self, name: str, kind: str, value) -> Scalar:
        bits = int(np.float32(value).view(np.uint32)) if kind == "f32" else value
        return Scalar(name=name.encode(), type=self.library.c.atlas_type_from_name(kind.encode()), bits=bits)


class Launch:
    """A launch made ready once: buffers filled, names bound. shape: {"lanes": n} or {"grid": (x, y)}; scalars: name -> value of
    np.uint32, np.uint64 or np.float32."""

    TYPES = {"uint32": b"u32", "uint64": b"u64", "float32": b"f32"}

    def __init__(self, kernel: Kernel, arrays: dict[str, np.ndarray], scalars: dict, shape: dict):
        self.kernel, self.library = kernel, kernel.executor.library
        self.buffers, self.sizes = {}, {name: array.nbytes for name, array in arrays.items()}
        for name, array in arrays.items():
            handle = c.c_void_p()
            self.library.check(self.library.c.hg_buffer_create(kernel.executor.handle, None, array.nbytes, c.byref(handle)))
            self.buffers[name] = handle
            self.library.check(self.library.c.hg_buffer_write(handle, 0, array.ctypes.data, array.nbytes))
        self.bindings = (Binding * len(arrays))(*(Binding(name=n.encode(), buffer=h) for n, h in self.buffers.items()))
        self.scalars = (Scalar * max(len(scalars), 1))()
        for slot, (name, value) in zip(self.scalars, scalars.items()):
            slot.name, slot.type = name.encode(), self.library.c.atlas_type_from_name(self.TYPES[value.dtype.name])
            slot.bits = int.from_bytes(value.tobytes(), "little")
        grid = tuple(shape.get("grid", ())) + (0,) * (3 - len(shape.get("grid", ())))
        self.desc = LaunchDesc(size=c.sizeof(LaunchDesc), lanes=shape.get("lanes", 0), grid=grid, bindings=self.bindings,
                               binding_count=len(arrays), scalars=self.scalars, scalar_count=len(scalars))

    def __del__(self):
        for handle in getattr(self, "buffers", {}).values():
            self.library.c.hg_buffer_release(handle)

    def run(self) -> str:
        """One launch; the engine that ran it."""
        report = LaunchReport(size=c.sizeof(LaunchReport))
        self.library.check(self.library.c.hg_launch(self.kernel.handle, c.byref(self.desc), c.byref(report)))
        return report.engine.decode()

    def read(self, name: str, out: np.ndarray) -> None:
        self.library.check(self.library.c.hg_buffer_read(self.buffers[name], 0, out.ctypes.data, out.nbytes))
