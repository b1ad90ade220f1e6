"""Computations of ops.h on NumPy arrays, for tests. The library is named by HOLOGRAM_LIB, the backend by HOLOGRAM_TEST_BACKEND.
Each run is one on each of the engines under test (HOLOGRAM_TEST_ENGINES, see tests/conftest.py), which must give the same bits.

    result = apply("softmax", x, axis=-1)                 # one operation
    c = Computation()
    y = c.op("exp", c.input(x))
    c.output(y)
    c.run()                                               # a list of arrays
"""

import ctypes as c
import os
import re
from pathlib import Path

import ml_dtypes
import numpy as np

import engines

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
         "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
         "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "bool": np.bool_}
CODES = {name: code + 1 for code, name in enumerate(TYPES)}
NAME_OF = {np.dtype(kind): name for name, kind in TYPES.items()}
STATUS = ("OK INVALID_ARGUMENT OUT_OF_MEMORY PARSE FORMAT VERIFY NOT_FOUND UNSUPPORTED OUT_OF_RANGE BINDING FAULT IO BUSY DEVICE").split()
BACKEND = {"": 0, "cpu": 1, "metal": 2, "cuda": 3}[os.environ.get("HOLOGRAM_TEST_BACKEND", "")]
ENGINES = os.environ.get("HOLOGRAM_TEST_ENGINES", "default").split()
MAX_RANK, NO_FUSION = 8, 2


class Error(Exception):
    def __init__(self, status, message):
        super().__init__(f"{STATUS[status]}: {message}")
        self.status, self.message = STATUS[status], message


class Tensor(c.Structure):
    _fields_ = [("buffer", c.c_void_p), ("type", c.c_uint32), ("rank", c.c_uint32), ("offset", c.c_int64),
                ("shape", c.c_uint64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK), ("reserved", c.c_uint64 * 2)]


class Argument(c.Structure):
    _fields_ = [("count", c.c_uint32), ("has_number", c.c_uint32), ("integers", c.c_int64 * MAX_RANK), ("number", c.c_double)]


WORDS = "name kind inputs arguments types formula gradient meaning".split()


class OpInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("op", c.c_int), *((name, c.c_char_p) for name in WORDS), ("output_count", c.c_uint32),
                ("reserved", c.c_uint32)]


class CompileDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("flags", c.c_uint32), ("reserved", c.c_uint32)]


class ExecutorDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("backend", c.c_int), ("allocator", c.c_void_p), ("log", c.c_void_p),
                ("log_user", c.c_void_p), ("device", c.c_uint32), ("reserved", c.c_uint32), ("engine", c.c_char_p)]


P, U32, SIZE = c.c_void_p, c.c_uint32, c.c_size_t
SIGNATURES = {
    "hg_last_error": (c.c_char_p, []),
    "hg_executor_create": (c.c_int, [P, c.POINTER(P)]),
    "hg_buffer_create": (c.c_int, [P, P, c.c_uint64, c.POINTER(P)]),
    "hg_buffer_release": (None, [P]),
    "hg_buffer_write": (c.c_int, [P, c.c_uint64, P, c.c_uint64]),
    "hg_buffer_read": (c.c_int, [P, c.c_uint64, P, c.c_uint64]),
    "hg_op_query": (c.c_int, [SIZE, c.POINTER(OpInfo)]),
    "hg_computation_create": (c.c_int, [P, c.POINTER(P)]),
    "hg_computation_release": (None, [P]),
    "hg_computation_status": (c.c_int, [P]),
    "hg_computation_input": (U32, [P, c.c_char_p, c.POINTER(Tensor)]),
    "hg_computation_number": (U32, [P, c.c_int, c.c_double]),
    "hg_computation_integer": (U32, [P, c.c_int, c.c_int64]),
    "hg_computation_describe": (c.c_int, [P, U32, c.POINTER(Tensor)]),
    "hg_computation_output": (c.c_int, [P, c.c_char_p, U32, c.POINTER(Tensor)]),
    "hg_computation_update": (c.c_int, [P, U32, U32]),
    "hg_compute_all": (c.c_int, [P, c.c_int, c.POINTER(U32), SIZE, c.POINTER(Argument), SIZE, c.POINTER(U32), SIZE]),
    "hg_compute_formula": (U32, [P, c.c_char_p, c.POINTER(c.c_char_p), c.POINTER(U32), SIZE]),
    "hg_gradient": (c.c_int, [P, U32, U32, c.POINTER(U32), SIZE, c.POINTER(U32)]),
    "hg_compile": (c.c_int, [P, P, P, c.POINTER(P)]),
    "hg_executable_release": (None, [P]),
    "hg_run": (c.c_int, [P, c.POINTER(Tensor), SIZE, c.POINTER(Tensor), SIZE, P, P]),
    "hg_executable_report": (c.c_int, [P, P, c.c_int, c.POINTER(c.c_char_p), c.POINTER(SIZE)]),
}


def _load():
    lib = c.CDLL(str(Path(os.environ["HOLOGRAM_LIB"]).resolve()))
    for name, (result, arguments) in SIGNATURES.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            continue
        function.restype, function.argtypes = result, arguments
    return lib


LIB = _load()


def check(status):
    if status != 0:
        raise Error(status, LIB.hg_last_error().decode())


def _table():
    rows, info, index = {}, OpInfo(), 0
    while True:
        info.size = c.sizeof(OpInfo)
        if LIB.hg_op_query(index, c.byref(info)) != 0:
            return rows
        row = {name: getattr(info, name).decode() for name in WORDS}
        row |= {"op": info.op, "output_count": info.output_count}
        row["defaults"] = dict(part.split("=", 1) for part in re.findall(r"\w+=(?:\[[^\]]*\]|[^,\s]+)", row["arguments"]))
        rows[row["name"]] = row
        index += 1


TABLE = _table()
_executors = {}


def executor(engine):
    if engine not in _executors:
        made = P()
        with engines.chosen(engine):
            check(LIB.hg_executor_create(c.byref(ExecutorDesc(c.sizeof(ExecutorDesc), BACKEND)), c.byref(made)))
        _executors[engine] = made
    return _executors[engine]


def argument(value, default: str) -> Argument:
    """A value as the table's default says that it is meant."""
    if value is None:
        return Argument()
    if isinstance(value, str):
        code = CODES[value] if default in CODES else default.split("|").index(value)
        return Argument(1, 0, (code,))
    if isinstance(value, (list, tuple)):
        return Argument(len(value), 0, tuple(value))
    if isinstance(value, float) or re.search(r"\.|inf|nan", default):
        return Argument(0, 1, (), value)
    return Argument(1, 0, (int(value),))


def tensor_like(array) -> Tensor:
    item = array.dtype.itemsize
    return Tensor(None, CODES[NAME_OF[array.dtype]], array.ndim, 0, tuple(array.shape), tuple(s // item for s in array.strides))


class Computation:
    def __init__(self):
        self.handle, self.arrays, self.results, self.inputs, self.updated = P(), [], [], [], []
        check(LIB.hg_computation_create(None, c.byref(self.handle)))

    def __del__(self):
        LIB.hg_computation_release(self.handle)

    def input(self, array):
        """An array with its own strides; the run is given a copy of the memory that it is a view of."""
        like = tensor_like(array)
        self.arrays.append(array)
        self.inputs.append(LIB.hg_computation_input(self.handle, f"x{len(self.arrays)}".encode(), c.byref(like)))
        return self.inputs[-1]

    def op_all(self, name, *values, **arguments):
        row = TABLE[name]
        unknown = set(arguments) - set(row["defaults"])
        assert not unknown, f"{name} has no {unknown}"
        given = [argument(arguments.get(key), default) for key, default in row["defaults"].items()]
        results = (U32 * max(1, row["output_count"]))()
        LIB.hg_compute_all(self.handle, row["op"], (U32 * len(values))(*[v or 0 for v in values]), len(values),
                           (Argument * len(given))(*given), len(given), results, len(results))
        return list(results)

    def op(self, name, *values, **arguments):
        return self.op_all(name, *values, **arguments)[0]

    def number(self, kind, value):
        return LIB.hg_computation_number(self.handle, CODES[kind], value)

    def gradient(self, value, wrt, cotangent=0):
        results = (U32 * len(wrt))()
        LIB.hg_gradient(self.handle, value, cotangent, (U32 * len(wrt))(*wrt), len(wrt), results)
        return list(results)

    def output(self, value):
        LIB.hg_computation_output(self.handle, f"y{len(self.results)}".encode(), value, None)
        self.results.append(value)

    def update(self, value, result):
        """The memory of the input that this value is comes behind the outputs of a run."""
        LIB.hg_computation_update(self.handle, value, result)
        self.updated.append(self.inputs.index(value))

    def describe(self, value) -> Tensor:
        out = Tensor()
        check(LIB.hg_computation_describe(self.handle, value, c.byref(out)))
        return out

    def check(self):
        check(LIB.hg_computation_status(self.handle))

    def run(self, flags=0):
        """The outputs; the same ones, bit for bit, on every engine, or an AssertionError."""
        answers = self.run_on(ENGINES[0], flags)
        for engine in ENGINES[1:]:
            for mine, others in zip(answers, self.run_on(engine, flags)):
                assert mine.tobytes() == others.tobytes(), f"{ENGINES[0]} and {engine} differ"
        return answers

    def run_on(self, engine, flags=0, report=False):
        self.check()
        made = P()
        check(LIB.hg_compile(executor(engine), self.handle, c.byref(CompileDesc(c.sizeof(CompileDesc), flags)), c.byref(made)))
        buffers, inputs, outputs, shapes = [], [], [], []
        try:
            for array in self.arrays:
                low, memory = _memory_of(array)
                buffer = _buffer(engine, memory.nbytes, buffers)
                check(LIB.hg_buffer_write(buffer, 0, memory.ctypes.data, memory.nbytes))
                tensor = tensor_like(array)
                tensor.buffer, tensor.offset = buffer, low
                inputs.append(tensor)
            for value in self.results:
                tensor = self.describe(value)
                shape = tuple(tensor.shape[:tensor.rank])
                kind = np.dtype(list(TYPES.values())[tensor.type - 1])
                tensor.buffer = _buffer(engine, int(np.prod(shape, dtype=np.int64)) * kind.itemsize, buffers)
                outputs.append(tensor)
                shapes.append((shape, kind))
            check(LIB.hg_run(made, (Tensor * len(inputs))(*inputs), len(inputs), (Tensor * len(outputs))(*outputs), len(outputs),
                             None, None))
            answers = []
            for tensor, (shape, kind) in zip(outputs, shapes):
                answer = np.empty(shape, kind)
                check(LIB.hg_buffer_read(tensor.buffer, 0, answer.ctypes.data, answer.nbytes))
                answers.append(answer)
            for number in self.updated:
                memory = np.empty_like(_memory_of(self.arrays[number])[1])
                check(LIB.hg_buffer_read(inputs[number].buffer, 0, memory.ctypes.data, memory.nbytes))
                answers.append(memory)
            if report:
                text = c.c_char_p()
                check(LIB.hg_executable_report(made, None, 0, c.byref(text), None))
                return answers, text.value.decode()
            return answers
        finally:
            LIB.hg_executable_release(made)
            for buffer in buffers:
                LIB.hg_buffer_release(buffer)


def _buffer(engine, byte_count, kept):
    buffer = P()
    check(LIB.hg_buffer_create(executor(engine), None, max(1, byte_count), c.byref(buffer)))
    kept.append(buffer)
    return buffer


def _memory_of(array):
    """The number of the first element in, and a copy of, the memory from the array's lowest element to its highest."""
    item = array.dtype.itemsize
    if array.size == 0:
        return 0, np.zeros(1, array.dtype)
    reach = [(n - 1) * s for n, s in zip(array.shape, array.strides)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    raw = c.string_at(array.ctypes.data + low, high - low + item)
    return -low // item, np.frombuffer(raw, array.dtype).copy()


def apply_all(name, *arrays, flags=0, **arguments):
    computation = Computation()
    values = [None if a is None else computation.input(np.asarray(a)) for a in arrays]
    for value in computation.op_all(name, *values, **arguments):
        computation.output(value)
    return computation.run(flags)


def apply(name, *arrays, flags=0, **arguments):
    return apply_all(name, *arrays, flags=flags, **arguments)[0]
