"""A thin ctypes binding over libhologram, for tests: programs, executors, buffers, launches, fault records.

The library is named by the environment variable HOLOGRAM_LIB, the backend by HOLOGRAM_TEST_BACKEND (not set: the best one).
Every failing call raises Error(status, message).

    program = parse(text)
    result = Executor().run(program, lanes=4, buffers={"x": numpy_array})
    result.buffers["x"], result.fault

`run` puts canaries around every buffer and raises AssertionError when a launch touches one. An Executor stands for one on
each of the engines under test: each launch runs on all of them, and they must leave the same behind.
"""

import ctypes as c
import os
from pathlib import Path

import numpy as np

import engines
import recorder

CLASS_COUNT = 96
BOUNDARY_BYTES = 1179648
UNITY_NEUTRAL = 1
STATUS = ("OK INVALID_ARGUMENT OUT_OF_MEMORY PARSE FORMAT VERIFY NOT_FOUND UNSUPPORTED OUT_OF_RANGE BINDING FAULT IO BUSY DEVICE").split()
CPU = 1
BACKEND = {"": 0, "cpu": CPU, "metal": 2, "cuda": 3}[os.environ.get("HOLOGRAM_TEST_BACKEND", "")]
RECORDER = recorder.of_environment()
ENGINES = os.environ.get("HOLOGRAM_TEST_ENGINES", "default").split()  # set by tests/conftest.py
FAULTS = "none out_of_bounds misaligned trap step_limit class pool unity".split()


class Error(Exception):
    """A call that failed: the name of its hg_status (without HG_) and the library's sentence."""

    def __init__(self, status: str, message: str):
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class ExecutorDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("backend", c.c_int), ("allocator", c.c_void_p), ("log", c.c_void_p),
                ("log_user", c.c_void_p), ("device", c.c_uint32)]


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
                ("number", c.c_int64), ("length", c.c_uint64), ("axis", c.c_uint32), ("has_number", c.c_uint32)]

    def as_dict(self) -> dict | None:
        """None when nothing faulted."""
        if self.kind == 0:
            return None
        return {"kind": FAULTS[self.kind], "instruction": self.instruction, "line": self.line, "code": self.code,
                "lane": self.lane, "buffer": self.buffer.decode(), "index": self.index, "extent": self.extent}


class LaunchReport(c.Structure):
    _fields_ = [("size", c.c_size_t), ("fault", Fault), ("lanes", c.c_uint64), ("nanoseconds", c.c_uint64),
                ("backend", c.c_char_p), ("engine", c.c_char_p), ("notes", c.c_char_p)]


class Operand(c.Structure):
    _fields_ = [("kind", c.c_uint8), ("mode", c.c_uint8), ("reg", c.c_uint8), ("reg2", c.c_uint8), ("reg3", c.c_uint8),
                ("phi_registers", c.c_uint8), ("symbol", c.c_uint16), ("bits", c.c_uint64)]


class Insn(c.Structure):
    _fields_ = [("op", c.c_uint16), ("type", c.c_uint8), ("type2", c.c_uint8), ("guard", c.c_uint8),
                ("operand_count", c.c_uint8), ("reserved", c.c_uint16), ("line", c.c_uint32), ("reserved2", c.c_uint32),
                ("operand", Operand * 4)]


def _load() -> c.CDLL:
    path = os.environ.get("HOLOGRAM_LIB")
    if not path:
        raise RuntimeError("set HOLOGRAM_LIB to the path of libhologram.so")
    lib = c.CDLL(str(Path(path).resolve()))
    p, u64, u32, size = c.c_void_p, c.c_uint64, c.c_uint32, c.c_size_t
    signatures = {
        "hg_last_error": (c.c_char_p, []),
        "atlas_parse": (c.c_int, [p, c.c_char_p, size, c.c_char_p, c.POINTER(p)]),
        "atlas_decode": (c.c_int, [p, c.c_char_p, size, c.POINTER(p)]),
        "atlas_print": (c.c_int, [p, p, c.POINTER(p), c.POINTER(size)]),
        "atlas_encode": (c.c_int, [p, p, c.POINTER(p), c.POINTER(size)]),
        "atlas_program_hash": (c.c_int, [p, c.c_char_p]),
        "atlas_memory_release": (None, [p, p]),
        "atlas_program_release": (None, [p]),
        "atlas_program_is_library": (c.c_int, [p]),
        "atlas_program_observes_block": (c.c_int, [p]),
        "atlas_program_insns": (p, [p, c.POINTER(size)]),
        "atlas_builder_create": (c.c_int, [p, c.c_char_p, c.POINTER(p)]),
        "atlas_builder_release": (None, [p]),
        "atlas_builder_finish": (c.c_int, [p, c.POINTER(p)]),
        "atlas_builder_buffer": (c.c_uint16, [p, c.c_char_p, c.c_int, c.c_int]),
        "atlas_builder_scalar": (c.c_uint16, [p, c.c_char_p, c.c_int]),
        "atlas_builder_shared": (c.c_uint16, [p, c.c_char_p, c.c_int, u32]),
        "atlas_builder_local": (c.c_uint16, [p, c.c_char_p, c.c_int, u32]),
        "atlas_builder_pool": (c.c_uint16, [p, c.c_char_p]),
        "atlas_builder_table": (c.c_uint16, [p, c.c_char_p, u32, c.c_int]),
        "atlas_builder_label": (u32, [p, c.c_char_p]),
        "atlas_builder_place": (None, [p, u32]),
        "atlas_builder_insn": (None, [p, c.POINTER(Insn)]),
        "atlas_op_from_name": (c.c_int, [c.c_char_p]),
        "atlas_type_from_name": (c.c_int, [c.c_char_p]),
        "atlas_class_of_byte": (u32, [c.c_uint8]),
        "atlas_class_byte": (c.c_uint8, [u32]),
        "atlas_class_mirror": (u32, [u32]),
        "atlas_class_is_unity": (c.c_int, [u32]),
        "atlas_class_neighbour_count": (u32, [u32]),
        "atlas_class_neighbour": (c.c_int32, [u32, u32]),
        "atlas_boundary_offset": (c.c_int64, [u32, u32, u32]),
        "hg_executor_create": (c.c_int, [p, c.POINTER(p)]),
        "hg_executor_release": (None, [p]),
        "hg_executor_resonance": (c.c_int, [p, c.POINTER(c.c_int64)]),
        "hg_executor_resonance_reset": (c.c_int, [p]),
        "hg_executor_phase": (c.c_int, [p, c.POINTER(u32)]),
        "hg_executor_set_phase": (c.c_int, [p, u32]),
        "hg_boundary_write": (c.c_int, [p, u64, p, u64]),
        "hg_boundary_read": (c.c_int, [p, u64, p, u64]),
        "hg_buffer_create": (c.c_int, [p, p, u64, c.POINTER(p)]),
        "hg_buffer_release": (None, [p]),
        "hg_buffer_handle": (u64, [p]),
        "hg_buffer_write": (c.c_int, [p, u64, p, u64]),
        "hg_buffer_read": (c.c_int, [p, u64, p, u64]),
        "hg_kernel_create": (c.c_int, [p, p, c.POINTER(p)]),
        "hg_kernel_release": (None, [p]),
        "hg_launch": (c.c_int, [p, c.POINTER(LaunchDesc), c.POINTER(LaunchReport)]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


lib = _load()


def check(status: int) -> None:
    if status:
        raise Error(STATUS[status], lib.hg_last_error().decode())


class Program:
    """Holds one reference to an atlas_program."""

    def __init__(self, handle: c.c_void_p):
        self.handle = handle

    def __del__(self):
        lib.atlas_program_release(self.handle)

    def _bytes(self, function) -> bytes:
        memory, length = c.c_void_p(), c.c_size_t()
        check(function(None, self.handle, c.byref(memory), c.byref(length)))
        data = c.string_at(memory, length.value)
        lib.atlas_memory_release(None, memory)
        return data

    def print(self) -> bytes:
        return self._bytes(lib.atlas_print)

    def encode(self) -> bytes:
        return self._bytes(lib.atlas_encode)

    def hash(self) -> bytes:
        digest = c.create_string_buffer(32)
        check(lib.atlas_program_hash(self.handle, digest))
        return digest.raw

    def is_library(self) -> bool:
        return bool(lib.atlas_program_is_library(self.handle))

    def insns(self) -> list[Insn]:
        count = c.c_size_t()
        first = lib.atlas_program_insns(self.handle, c.byref(count))
        return list((Insn * count.value).from_address(first)) if count.value else []


def parse(text: str | bytes, name: str = "test.atlas") -> Program:
    data = text.encode() if isinstance(text, str) else text
    handle = c.c_void_p()
    check(lib.atlas_parse(None, data, len(data), name.encode(), c.byref(handle)))
    return Program(handle)


def decode(data: bytes) -> Program:
    handle = c.c_void_p()
    check(lib.atlas_decode(None, data, len(data), c.byref(handle)))
    return Program(handle)


class Buffer:
    """Device memory with `guard` canary bytes before and after the array it was made from."""

    GUARD = 64

    def __init__(self, executor: "Executor", array: np.ndarray):
        self.array = np.ascontiguousarray(array)
        assert self.array.nbytes, "an empty range cannot be bound: 0 bytes mean `to the end of the buffer`"
        self.handle = c.c_void_p()
        self.canary = np.full(self.GUARD, 0xA5, np.uint8)
        padding = -self.array.nbytes % 16
        self.tail = np.full(self.GUARD + padding, 0x5A, np.uint8)
        self.total = self.GUARD + self.array.nbytes + len(self.tail)
        check(lib.hg_buffer_create(executor.handle, None, self.total, c.byref(self.handle)))
        data = np.concatenate([self.canary, self.array.reshape(-1).view(np.uint8), self.tail])
        check(lib.hg_buffer_write(self.handle, 0, data.ctypes.data, data.nbytes))

    def __del__(self):
        lib.hg_buffer_release(self.handle)

    def read(self, what: str = "buffer") -> np.ndarray:
        data = np.empty(self.total, np.uint8)
        check(lib.hg_buffer_read(self.handle, 0, data.ctypes.data, data.nbytes))
        assert (data[: self.GUARD] == self.canary).all(), f"{what}: the canary before it was overwritten"
        assert (data[self.GUARD + self.array.nbytes :] == self.tail).all(), f"{what}: the canary after it was overwritten"
        body = data[self.GUARD : self.GUARD + self.array.nbytes]
        return body.view(self.array.dtype).reshape(self.array.shape).copy()


class Result:
    """What a launch left: arrays by name (lists of arrays for tables), the fault as a dict or None, the report."""

    def __init__(self, buffers: dict, report: LaunchReport):
        self.buffers, self.report, self.fault = buffers, report, report.fault.as_dict()


class Engine:
    """An executor on one engine; its launches are recorded, if any are, but where it only judges."""

    def __init__(self, name: str, backend: int = BACKEND, record: recorder.Recorder | recorder.Digests | None = RECORDER):
        self.handle, self.name, self.recorder = c.c_void_p(), name, record
        with engines.chosen(name):
            check(lib.hg_executor_create(c.byref(ExecutorDesc(backend=backend)), c.byref(self.handle)))

    def __del__(self):
        lib.hg_executor_release(self.handle)

    def resonance(self) -> list[int]:
        counters = (c.c_int64 * CLASS_COUNT)()
        check(lib.hg_executor_resonance(self.handle, counters))
        return list(counters)

    def phase(self) -> int:
        value = c.c_uint32()
        check(lib.hg_executor_phase(self.handle, c.byref(value)))
        return value.value

    def set_phase(self, phase: int) -> None:
        if self.recorder:
            self.recorder.set_phase(phase)
        check(lib.hg_executor_set_phase(self.handle, phase))

    def boundary(self) -> np.ndarray:
        data = np.empty(BOUNDARY_BYTES, np.uint8)
        check(lib.hg_boundary_read(self.handle, 0, data.ctypes.data, data.nbytes))
        return data

    def write_boundary(self, data: np.ndarray) -> None:
        if self.recorder:
            self.recorder.write_boundary(data)
        check(lib.hg_boundary_write(self.handle, 0, data.ctypes.data, data.nbytes))

    def run(self, program: Program, *, lanes: int = 0, grid: tuple = (), block: tuple = (), buffers: dict = {},
            scalars: dict = {}, tables: dict = {}, step_limit: int = 0, flags: int = 0, many_answers: bool = False,
            any_engine: bool = False) -> Result:
        """many_answers: what it leaves may be something else another time. any_engine: it may run on a slower one."""
        kernel = c.c_void_p()
        check(lib.hg_kernel_create(self.handle, program.handle, c.byref(kernel)))
        try:
            result = self._launch(kernel, lanes, grid, block, buffers, scalars, tables, step_limit, flags)
            ran = result.report.engine.decode()
            assert any_engine or engines.is_report_of(self.name, ran), f"{ran} ran, not {self.name}"
        finally:
            lib.hg_kernel_release(kernel)
        if self.recorder:
            launch = dict(lanes=lanes, grid=grid, block=block, buffers=buffers, scalars=scalars, tables=tables,
                          step_limit=step_limit, flags=flags)
            self.recorder.run(program, launch, None if many_answers else result.buffers, fault_of(result))
        return result

    def _launch(self, kernel, lanes, grid, block, buffers, scalars, tables, step_limit, flags) -> Result:
        held = {name: Buffer(self, array) for name, array in buffers.items()}
        entries = {name: [None if a is None else Buffer(self, a) for a in arrays] for name, arrays in tables.items()}
        rows = [(name, 0, b) for name, b in held.items()]
        rows += [(name, i, b) for name, bs in entries.items() for i, b in enumerate(bs) if b is not None]
        bindings = (Binding * max(len(rows), 1))()
        for slot, (name, entry, b) in zip(bindings, rows):
            slot.name, slot.entry, slot.buffer = name.encode(), entry, b.handle
            slot.offset, slot.byte_count = Buffer.GUARD, b.array.nbytes
        values = (Scalar * max(len(scalars), 1))()
        for slot, (name, (type_code, bits)) in zip(values, scalars.items()):
            slot.name, slot.type, slot.bits = name.encode(), type_code, bits
        desc = LaunchDesc(size=c.sizeof(LaunchDesc), lanes=lanes, bindings=bindings, binding_count=len(rows), scalars=values,
                          scalar_count=len(scalars), step_limit=step_limit, flags=flags)
        for i, n in enumerate(grid):
            desc.grid[i] = n
        for i, n in enumerate(block):
            desc.block[i] = n
        report = LaunchReport(size=c.sizeof(LaunchReport))
        status = lib.hg_launch(kernel, c.byref(desc), c.byref(report))
        if STATUS[status] != "FAULT":
            check(status)
        assert (STATUS[status] == "FAULT") == (report.fault.kind != 0), "status and fault record disagree"
        out = {name: b.read(name) for name, b in held.items()}
        out |= {name: [None if b is None else b.read(name) for b in bs] for name, bs in entries.items()}
        return Result(out, report)


def same_arrays(a: dict, b: dict) -> str | None:
    """The name of the first buffer or table whose bits differ."""
    for name in a:
        pairs = zip(a[name], b[name]) if isinstance(a[name], list) else [(a[name], b[name])]
        if not all(x is y is None or np.array_equal(x.view(np.uint8), y.view(np.uint8)) for x, y in pairs):
            return name
    return None


def fault_of(result: Result) -> dict | None:
    """The record, but for what engines may say differently: which of a loop's branches met the step limit."""
    loose = result.fault is not None and result.fault["kind"] == "step_limit"
    return result.fault | {"instruction": 0, "line": 0} if loose else result.fault


class Executor:
    """An executor on each engine under test; what they say must agree."""

    def __init__(self):
        self.engines = [Engine(name) for name in ENGINES]
        self.judge, self.names = None, [*ENGINES, "the reference machine"]

    def _agreed(self, what: str, values: list):
        for name, value in zip(self.names, values):
            assert value == values[0], f"{what}: {name} says {value}, {self.names[0]} {values[0]}"
        return values[0]

    def resonance(self) -> list[int]:
        return self._agreed("resonance", [e.resonance() for e in self.engines])

    def phase(self) -> int:
        return self._agreed("phase", [e.phase() for e in self.engines])

    def set_phase(self, phase: int) -> None:
        for engine in self.engines:
            engine.set_phase(phase)

    def boundary(self) -> bytes:
        return self._agreed("boundary pool", [e.boundary().tobytes() for e in self.engines])

    def write_boundary(self, data: np.ndarray) -> None:
        for engine in self.engines:
            engine.write_boundary(data)

    def run_each(self, program: Program | str, many_answers: bool = True, **launch) -> list[Result]:
        """A launch on each engine, for programs of which more than one answer is right."""
        if isinstance(program, str):
            program = parse(program)
        return [engine.run(program, many_answers=many_answers, **launch) for engine in self.engines]

    def run(self, program: Program | str, **launch) -> Result:
        """Launch: lanes, or grid and block; buffers: name -> array; scalars: name -> (type code, bits); tables: name -> list of
        arrays or None; step_limit; flags. A fault is not an error here: it stands in the result.
        """
        return self._same(self.run_each(program, many_answers=False, **launch))

    def run_judged(self, program: str, **launch) -> Result:
        """A launch of which the test itself does not know what is right: the reference machine must leave the same."""
        self.judge = self.judge or Engine("interp", CPU, None)
        return self._same([*self.run_each(program, many_answers=False, **launch), self.judge.run(parse(program), **launch)])

    def _same(self, results: list[Result]) -> Result:
        self._agreed("fault", [fault_of(r) for r in results])
        for name, result in zip(self.names, results):
            array = same_arrays(results[0].buffers, result.buffers)
            assert array is None, f"{array}: {name} and {self.names[0]} differ"
        return results[0]
