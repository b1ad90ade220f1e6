"""Computations of ops.h by ctypes, as far as the benchmark needs them."""

import ctypes as c
import json
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "cpu"))
from library import Library  # noqa: E402

MAX_RANK = 8
NUMERICS_FAST = 1
P, U32, U64 = c.c_void_p, c.c_uint32, c.c_uint64


class Tensor(c.Structure):
    _fields_ = [("buffer", P), ("type", U32), ("rank", U32), ("offset", c.c_int64), ("shape", U64 * MAX_RANK),
                ("stride", c.c_int64 * MAX_RANK), ("reserved", U64 * 2)]


class Argument(c.Structure):
    _fields_ = [("count", U32), ("has_number", U32), ("integers", c.c_int64 * MAX_RANK), ("number", c.c_double)]


class OpInfo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("op", c.c_int),
                *((name, c.c_char_p) for name in "name kind inputs arguments types formula gradient meaning".split()),
                ("output_count", U32), ("reserved", U32)]


class CompileDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("flags", U32), ("reserved", U32)]


SIGNATURES = {
    "hg_tensor_of": (Tensor, [P, c.c_int, U32, c.POINTER(U64)]),
    "hg_op_query": (c.c_int, [c.c_size_t, c.POINTER(OpInfo)]),
    "hg_computation_create": (c.c_int, [P, c.POINTER(P)]),
    "hg_computation_release": (None, [P]),
    "hg_computation_input": (U32, [P, c.c_char_p, c.POINTER(Tensor)]),
    "hg_computation_number": (U32, [P, c.c_int, c.c_double]),
    "hg_computation_describe": (c.c_int, [P, U32, c.POINTER(Tensor)]),
    "hg_computation_output": (c.c_int, [P, c.c_char_p, U32, P]),
    "hg_computation_update": (c.c_int, [P, U32, U32]),
    "hg_compute_all": (c.c_int, [P, c.c_int, c.POINTER(U32), c.c_size_t, c.POINTER(Argument), c.c_size_t, c.POINTER(U32), c.c_size_t]),
    "hg_gradient": (c.c_int, [P, U32, U32, c.POINTER(U32), c.c_size_t, c.POINTER(U32)]),
    "hg_compile": (c.c_int, [P, P, c.POINTER(CompileDesc), c.POINTER(P)]),
    "hg_executable_release": (None, [P]),
    "hg_run": (c.c_int, [P, c.POINTER(Tensor), c.c_size_t, c.POINTER(Tensor), c.c_size_t, P, P]),
    "hg_executable_report": (c.c_int, [P, P, c.c_int, c.POINTER(c.c_char_p), P]),
    "atlas_memory_release": (None, [P, c.c_char_p]),
}
_tables = {}


def table(library: Library) -> dict:
    """Of every operation: name -> its number, kind, inputs, types, {argument: what its default says it takes} and how many results."""
    if id(library) not in _tables:
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(library.c, name)
            function.restype, function.argtypes = result, arguments
        rows, info = {}, OpInfo()
        info.size = c.sizeof(OpInfo)
        while library.c.hg_op_query(len(rows), c.byref(info)) == 0:
            defaults = dict(part.split("=", 1) for part in re.findall(r"\w+=(?:\[[^\]]*\]|[^,\s]+)", info.arguments.decode()))
            rows[info.name.decode()] = {"op": info.op, "kind": info.kind.decode(), "inputs": info.inputs.decode(),
                                        "types": info.types.decode(), "defaults": defaults, "results": max(1, info.output_count)}
        _tables[id(library)] = rows
    return _tables[id(library)]


class Computation:
    """One that is being written; values are numbers. What fails is told by compile()."""

    def __init__(self, library: Library):
        self.library, self.table, self.handle = library, table(library), P()
        self.outputs, self.inputs = [], []  # tensors without a buffer
        library.check(library.c.hg_computation_create(None, c.byref(self.handle)))

    def __del__(self):
        self.library.c.hg_computation_release(self.handle)

    def input(self, shape: tuple, kind: str) -> int:
        tensor = self.library.c.hg_tensor_of(None, self.type_of(kind), len(shape), (U64 * len(shape))(*shape))
        self.inputs.append(tensor)
        return self.library.c.hg_computation_input(self.handle, f"x{len(self.inputs)}".encode(), c.byref(tensor))

    def type_of(self, kind: str) -> int:
        return self.library.c.atlas_type_from_name(kind.encode())

    def argument(self, value, default: str) -> Argument:
        """A value as the operation's default says that it is meant."""
        if value is None:
            return Argument()
        if isinstance(value, str):
            return Argument(1, 0, (default.split("|").index(value) if "|" in default else self.type_of(value),))
        if isinstance(value, (list, tuple)):
            return Argument(len(value), 0, tuple(value))
        if isinstance(value, float):
            return Argument(0, 1, (), value)
        return Argument(1, 0, (int(value),))

    def op_all(self, name: str, *values: int, **arguments) -> list[int]:
        row = self.table[name]
        count, given = row["results"], [self.argument(arguments.pop(key, None), default) for key, default in row["defaults"].items()]
        if arguments:
            raise TypeError(f"{name} has no argument {', '.join(arguments)}")
        results = (U32 * count)()
        self.library.c.hg_compute_all(self.handle, row["op"], (U32 * len(values))(*values), len(values),
                                      (Argument * len(given))(*given), len(given), results, count)
        return list(results)

    def op(self, name: str, *values: int, **arguments) -> int:
        return self.op_all(name, *values, **arguments)[0]

    def number(self, value: float, kind: str = "f32") -> int:
        return self.library.c.hg_computation_number(self.handle, self.type_of(kind), value)

    def gradient(self, value: int, wrt: list[int], cotangent: int = 0) -> list[int]:
        results = (U32 * len(wrt))()
        self.library.c.hg_gradient(self.handle, value, cotangent, (U32 * len(wrt))(*wrt), len(wrt), results)
        return list(results)

    def output(self, value: int) -> None:
        tensor = Tensor()
        self.library.c.hg_computation_output(self.handle, f"y{len(self.outputs)}".encode(), value, None)
        self.library.check(self.library.c.hg_computation_describe(self.handle, value, c.byref(tensor)))
        self.outputs.append(tensor)

    def update(self, value: int, result: int) -> None:
        self.library.c.hg_computation_update(self.handle, value, result)

    def compile(self, executor: P, flags: int = 0) -> "Executable":
        return Executable(self, executor, flags)


class Executable:
    def __init__(self, computation: Computation, executor: P, flags: int):
        self.library, self.handle = computation.library, P()
        desc = CompileDesc(size=c.sizeof(CompileDesc), flags=flags)
        self.library.check(self.library.c.hg_compile(executor, computation.handle, c.byref(desc), c.byref(self.handle)))

    def __del__(self):
        self.library.c.hg_executable_release(self.handle)

    def report(self) -> dict:
        return json.loads(self.explain(1))

    def explain(self, is_json: int = 0) -> str:
        """Which operations became which launch."""
        text = c.c_char_p()
        self.library.check(self.library.c.hg_executable_report(self.handle, None, is_json, c.byref(text), None))
        found = text.value.decode()
        self.library.c.atlas_memory_release(None, text)
        return found

    def runner(self, inputs: list[Tensor], outputs: list[Tensor], stream: P = None):
        """What runs it; every call the same."""
        run, check = self.library.c.hg_run, self.library.check
        given, made = (Tensor * len(inputs))(*inputs), (Tensor * len(outputs))(*outputs)

        def call():
            check(run(self.handle, given, len(inputs), made, len(outputs), stream, None))
        return call
