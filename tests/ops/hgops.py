"""Computations of ops.h on NumPy arrays, for tests. The library is named by HOLOGRAM_LIB, the backend by HOLOGRAM_TEST_BACKEND.
Each run is one on each of the engines under test (HOLOGRAM_TEST_ENGINES, see tests/conftest.py; of the tile engine's instruction sets on
one), which must give the same bits; on another backend than the CPU these are the reference machine's, too.

    result = apply("softmax", x, axis=-1)                 # one operation
    c = Computation()
    y = c.op("exp", c.input(x))
    c.output(y)
    c.run()                                               # a list of arrays
"""

import ctypes as c
import os
import re
import zlib
from pathlib import Path

import ml_dtypes
import numpy as np

import engines

TYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32,
         "u64": np.uint64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
         "f8e4m3": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "bool": np.bool_}
FLOATS = ("f32", "f64", "f16", "bf16")
CODES = {name: code + 1 for code, name in enumerate(TYPES)}
NAME_OF = {np.dtype(kind): name for name, kind in TYPES.items()}
STATUS = ("OK INVALID_ARGUMENT OUT_OF_MEMORY PARSE FORMAT VERIFY NOT_FOUND UNSUPPORTED OUT_OF_RANGE BINDING FAULT IO BUSY DEVICE").split()
CUDA = 3
BACKEND = {"": 0, "cpu": 1, "metal": 2, "cuda": CUDA}[os.environ.get("HOLOGRAM_TEST_BACKEND", "")]
ENGINES = os.environ.get("HOLOGRAM_TEST_ENGINES", "default").split()
REFERENCE = "reference"  # the reference machine, on the CPU whatever the backend is
ALL = ENGINES + ([REFERENCE] if BACKEND > 1 else [])
ALIKE = ENGINES + ([REFERENCE] if BACKEND <= 1 else [])  # that run the same programs: a GPU's are of another shape
MAX_RANK, NO_FUSION = 8, 2
FILLER, GUARD = 0xA5, 64  # bytes that no run may write: between the elements of an output, and so many elements behind them


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
    "hg_executor_query": (c.c_int, [P, P]),
    "hg_buffer_create": (c.c_int, [P, P, c.c_uint64, c.POINTER(P)]),
    "hg_buffer_release": (None, [P]),
    "hg_buffer_write": (c.c_int, [P, c.c_uint64, P, c.c_uint64]),
    "hg_buffer_read": (c.c_int, [P, c.c_uint64, P, c.c_uint64]),
    "hg_op_query": (c.c_int, [SIZE, c.POINTER(OpInfo)]),
    "hg_computation_create": (c.c_int, [P, c.POINTER(P)]),
    "hg_computation_release": (None, [P]),
    "hg_computation_status": (c.c_int, [P]),
    "hg_computation_numerics": (c.c_int, [P, U32]),
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
    "hg_executable_report": (c.c_int, [P, P, c.c_int, c.POINTER(P), c.POINTER(SIZE)]),
    "atlas_memory_release": (None, [P, P]),
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
        made, backend = P(), 1 if engine == REFERENCE else BACKEND
        with engines.chosen("interp" if engine == REFERENCE else engine):
            check(LIB.hg_executor_create(c.byref(ExecutorDesc(c.sizeof(ExecutorDesc), backend)), c.byref(made)))
        _executors[engine] = made
    return _executors[engine]


class ExecutorInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("backend", c.c_int), ("names", c.c_char_p * 4), ("compute_units", c.c_uint32),
                ("rest", c.c_uint32 * 8)]


def compute_units(engine):
    info = ExecutorInfo(c.sizeof(ExecutorInfo))
    check(LIB.hg_executor_query(executor(engine), c.byref(info)))
    return info.compute_units


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


def laid_out(dense, layout, seed=0):
    """The same elements with other strides."""
    if dense.ndim == 0 or layout == "dense":
        return dense
    if layout == "turned":
        return np.ascontiguousarray(dense.T).T
    if layout == "backwards":
        return np.ascontiguousarray(dense[::-1])[::-1]
    if layout == "apart":
        return np.repeat(dense, 2, axis=-1)[..., ::2]
    if layout == "repeated":
        return np.broadcast_to(dense[:1], dense.shape) if dense.size else dense
    rng = np.random.default_rng(seed)  # mixed: axes in any order, each with a step of its own
    order, steps = rng.permutation(dense.ndim), rng.choice((1, 1, -1, 2, -3), dense.ndim)
    memory = np.zeros([dense.shape[a] * abs(steps[a]) for a in order], dense.dtype)
    view = memory.transpose(np.argsort(order))[tuple(slice(None, None, int(s)) for s in steps)]
    view[...] = dense
    return view


def tensor_like(array) -> Tensor:
    item = array.dtype.itemsize
    return Tensor(None, CODES[NAME_OF[array.dtype]], array.ndim, 0, tuple(array.shape), tuple(s // item for s in array.strides))


class Computation:
    def __init__(self):
        self.handle, self.arrays, self.results, self.inputs, self.updated = P(), [], [], [], []
        self.ahead, self.likes, self.placed = [], [], []
        check(LIB.hg_computation_create(None, c.byref(self.handle)))

    def __del__(self):
        LIB.hg_computation_release(self.handle)

    def input(self, array, ahead=0):
        """An array with its own strides; the run is given a copy of the memory that it is a view of, behind so many elements."""
        like = tensor_like(array)
        self.arrays.append(array)
        self.ahead.append(ahead)
        self.inputs.append(LIB.hg_computation_input(self.handle, f"x{len(self.arrays)}".encode(), c.byref(like)))
        return self.inputs[-1]

    def op_all(self, name, *values, **arguments):
        if name not in TABLE:
            raise Error(1, f"there is no operation {name}")
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

    def numerics(self, flags):
        """Of contractions that are recorded from now on."""
        check(LIB.hg_computation_numerics(self.handle, flags))

    def number(self, kind, value):
        return LIB.hg_computation_number(self.handle, CODES[kind], value)

    def gradient(self, value, wrt, cotangent=0):
        results = (U32 * len(wrt))()
        LIB.hg_gradient(self.handle, value, cotangent, (U32 * len(wrt))(*wrt), len(wrt), results)
        return list(results)

    def output(self, value, layout="dense", seed=0):
        """`layout`: the strides to write it with, as laid_out has them."""
        like = None
        if layout != "dense":
            shape = self.describe(value)
            like = laid_out(np.zeros(tuple(shape.shape[:shape.rank]), list(TYPES.values())[shape.type - 1]), layout, seed)
        LIB.hg_computation_output(self.handle, f"y{len(self.results)}".encode(), value,
                                  None if like is None else c.byref(tensor_like(like)))
        self.results.append(value)
        self.likes.append(like)

    def over(self, result, value, shift=0):
        """What run_on(..., over=True) puts where the input lies, so many elements behind its first."""
        if result not in self.results:
            raise Error(1, "no output")
        self.placed.append((self.results.index(result), self.inputs.index(value), shift))

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
        """The outputs; the same ones, bit for bit, on every engine, or an AssertionError. A GPU's are the reference machine's."""
        answers = self.run_on(ENGINES[0], flags)
        for engine in _in_turn(ALL[1:]):
            for mine, others in zip(answers, self.run_on(engine, flags)):
                assert mine.tobytes() == others.tobytes(), f"{ENGINES[0]} and {engine} differ"
        return answers

    def run_on(self, engine, flags=0, report=False, over=False):
        """What lies between the elements of an output, or behind them, must stay as it was. With `report` (or "json") that comes, too."""
        self.check()
        made = P()
        check(LIB.hg_compile(executor(engine), self.handle, c.byref(CompileDesc(c.sizeof(CompileDesc), flags)), c.byref(made)))
        buffers, inputs, outputs, shapes = [], [], [], []
        try:
            for array, ahead in zip(self.arrays, self.ahead):
                low, memory = _memory_of(array)
                item = array.dtype.itemsize
                buffer = _buffer(engine, memory.nbytes + ahead * item, buffers)
                check(LIB.hg_buffer_write(buffer, ahead * item, memory.ctypes.data, memory.nbytes))
                tensor = tensor_like(array)
                tensor.buffer, tensor.offset = buffer, low + ahead
                inputs.append(tensor)
            places = {result: (value, shift) for result, value, shift in self.placed} if over else {}
            for number, (value, like) in enumerate(zip(self.results, self.likes)):
                tensor = self.describe(value)
                shape, kind = tuple(tensor.shape[:tensor.rank]), np.dtype(list(TYPES.values())[tensor.type - 1])
                view = np.empty(shape, kind) if like is None else like
                low, memory = _memory_of(view)
                tensor = tensor_like(view)
                memory = np.full(memory.nbytes + GUARD * kind.itemsize, FILLER, np.uint8)
                if number in places:
                    own = inputs[places[number][0]]
                    tensor.buffer, tensor.offset = own.buffer, own.offset + places[number][1]
                else:
                    tensor.buffer, tensor.offset = _buffer(engine, memory.nbytes, buffers), low
                    check(LIB.hg_buffer_write(tensor.buffer, 0, memory.ctypes.data, memory.nbytes))
                outputs.append(tensor)
                shapes.append((shape, kind, memory.nbytes, number in places))
            check(LIB.hg_run(made, (Tensor * len(inputs))(*inputs), len(inputs), (Tensor * len(outputs))(*outputs), len(outputs),
                             None, None))
            answers = []
            for tensor, (shape, kind, byte_count, is_over) in zip(outputs, shapes):
                answers.append(_read(tensor, shape, kind, byte_count, is_over))
            for number in self.updated:
                memory = np.empty_like(_memory_of(self.arrays[number])[1]) if self.arrays[number].size else np.empty(0, np.int8)
                first = self.ahead[number] * memory.itemsize
                check(LIB.hg_buffer_read(inputs[number].buffer, first, memory.ctypes.data, memory.nbytes))
                answers.append(memory)
            if report:
                return answers, _report_of(made, report == "json")
            return answers
        finally:
            LIB.hg_executable_release(made)
            for buffer in buffers:
                LIB.hg_buffer_release(buffer)


def _in_turn(engines):
    """These engines, but one alone of the tile engine's, by the test's name: its instruction sets differ in kernels of one instruction,
    which the conformance tests run on all."""
    tiles = [engine for engine in engines if engine.startswith("tile:")]
    left_out = {*tiles} - {tiles[zlib.crc32(os.environ.get("PYTEST_CURRENT_TEST", "").encode()) % len(tiles)]} if len(tiles) > 1 else ()
    return [engine for engine in engines if engine not in left_out]


def _report_of(executable, as_json):
    text = P()
    check(LIB.hg_executable_report(executable, None, int(as_json), c.byref(text), None))
    words = c.string_at(text).decode()
    LIB.atlas_memory_release(None, text)
    return words


def _buffer(engine, byte_count, kept):
    buffer = P()
    check(LIB.hg_buffer_create(executor(engine), None, max(1, byte_count), c.byref(buffer)))
    kept.append(buffer)
    return buffer


def _read(tensor, shape, kind, byte_count, is_over):
    """A tensor's elements, dense. An AssertionError if a run wrote beside them."""
    if is_over:
        byte_count = (tensor.offset + sum((n - 1) * max(0, s) for n, s in zip(shape, tensor.stride)) + 1) * kind.itemsize
    memory = np.empty(byte_count if np.prod(shape) else 0, np.uint8)
    if memory.size == 0:
        return np.empty(shape, kind)
    check(LIB.hg_buffer_read(tensor.buffer, 0, memory.ctypes.data, memory.nbytes))
    elements = memory[:memory.size // kind.itemsize * kind.itemsize].view(kind)
    strides = tuple(s * kind.itemsize for s in tensor.stride[:len(shape)])
    view = np.ndarray(shape, kind, elements, tensor.offset * kind.itemsize, strides)
    answer = np.array(view, order="C")
    if not is_over:
        np.ndarray(shape, np.dtype(f"V{kind.itemsize}"), memory, tensor.offset * kind.itemsize, strides)[...] = \
            np.frombuffer(bytes([FILLER]) * kind.itemsize, f"V{kind.itemsize}")[0]
        assert (memory == FILLER).all(), "a run wrote beside the elements of an output"
    return answer


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
