"""Who is timed: the library through ops.h, PyTorch eager and compiled, NumPy.

A contender has call(), and answer(): both ends of each of its results, in f64; `stream` is where its work goes."""

import ctypes as c
import math
import re
import time

import numpy as np

from library import LaunchDesc

from .cases import SIZES, Input, Operation
from .computation import Computation, Tensor

PERIOD = 1_000_003  # inputs repeat after so many elements: a prime, so that columns have them in another order
WINDOW = 1 << 16    # elements of a result that are compared, at either end
TIES = 0.01         # of places of the largest: inputs repeat, and PyTorch may take any of equal ones
DTYPES = {"f32": np.float32, "bf16": np.uint16, "f64": np.float64, "i64": np.int64, "i32": np.int32, "u32": np.uint32, "bool": np.uint8}


def keys(operation: Operation) -> list[tuple]:
    """Of each input: those with equal keys have equal contents. Two of one operation never have."""
    found = []
    for given in operation.inputs:
        key = given.fill, given.scale, given.kind, given.count
        found.append((*key, sum(k[:-1] == key for k in found)))
    return found


def period(given: Input, seed: int) -> np.ndarray:
    """The first elements of an input."""
    count, random = min(given.count, PERIOD), np.random.default_rng(seed)
    if given.fill == "below":
        return random.integers(0, int(given.scale), count).astype(DTYPES[given.kind])
    if given.fill == "eye":
        values = np.resize(np.eye(int(given.scale), dtype=np.float32), count)
    elif given.fill in ("zeros", "ones"):
        values = np.full(count, float(given.fill == "ones"), np.float32)
    else:
        values = getattr(random, "standard_normal" if given.fill == "normal" else "random")(count, np.float32) * np.float32(given.scale)
    return to_bf16(values) if given.kind == "bf16" else values.astype(DTYPES[given.kind])


def to_bf16(values: np.ndarray) -> np.ndarray:
    """Their bits: NumPy has no bf16."""
    bits = values.view(np.uint32)
    return ((bits + np.uint32(0x7fff) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def ends(flat, count: int) -> list:
    """Both ends of what can be sliced."""
    return [flat[:min(count, WINDOW)]] + ([flat[count - WINDOW:]] if count > 2 * WINDOW else [])


class Ours:
    """device: Gpu of bench/cuda. Inputs of equal contents are shared, but those that are overwritten."""

    def __init__(self, device, operation: Operation):
        self.device, self.operation, self.stream = device, operation, device.driver_stream
        begun = time.perf_counter_ns()
        computation = Computation(device.library)
        values = [computation.input(i.shape, i.kind) for i in operation.inputs]
        for value in operation.ours(computation, *values):
            computation.output(value)
        executable = computation.compile(device.executor.handle, operation.flags)
        self.compile_ns = time.perf_counter_ns() - begun
        report = executable.report()
        self.facts = {"launches": len(report["launches"]), "moved": report["bytes_read"] + report["bytes_written"],
                      "report": executable.explain()}
        if math.isnan(operation.work):
            operation.work = sum(i.bytes for i in operation.inputs) + sum(self.bytes_of(tensor) for tensor in computation.outputs)
        self.own = []
        self.inputs = [self.filled(*given) for given in zip(operation.inputs, computation.inputs, keys(operation))]
        self.outputs = [self.empty(tensor) for tensor in computation.outputs]
        self.call = executable.runner(self.inputs, self.outputs, device.stream)

    def __del__(self):
        for buffer in getattr(self, "own", ()):
            self.device.library.c.hg_buffer_release(buffer)

    def filled(self, given: Input, tensor: Tensor, key: tuple) -> Tensor:
        is_shared = not self.operation.updates
        if not is_shared or key not in self.device.buffers:
            tensor.buffer = self.device.repeated(period(given, key[-1]), max(given.bytes, 1)).value
        if not is_shared:
            self.own.append(tensor.buffer)
            return tensor
        tensor.buffer = self.device.buffers.setdefault(key, tensor.buffer)
        return tensor

    def empty(self, tensor: Tensor) -> Tensor:
        tensor.buffer = self.device.allocate(max(1, self.bytes_of(tensor))).value
        self.own.append(tensor.buffer)
        return tensor

    def bytes_of(self, tensor: Tensor) -> int:
        return count_of(tensor) * SIZES[self.kind_of(tensor)]

    def kind_of(self, tensor: Tensor) -> str:
        return next(k for k in SIZES if self.device.library.c.atlas_type_from_name(k.encode()) == tensor.type)

    def answer(self) -> list[np.ndarray]:
        self.call()
        if self.stream:
            self.device.driver.wait(self.stream)
        return self.results()

    def results(self) -> list[np.ndarray]:
        results = self.outputs + [self.inputs[k] for k in self.operation.updates]
        return [self.ends(tensor) for tensor in results]

    def ends(self, tensor: Tensor) -> np.ndarray:
        kind, count, found = self.kind_of(tensor), count_of(tensor), []
        for place in ends(range(count), count):
            part = np.empty(len(place), DTYPES[kind])
            self.device.read(tensor.buffer, place[0] * part.itemsize, part)
            found.append(from_bf16(part) if kind == "bf16" else part)
        return np.concatenate(found).astype(np.float64)


class ByHand(Ours):
    """An Atlas program that somebody has written for the same, one lane an element of the first input."""

    def __init__(self, device, operation: Operation):
        super().__init__(device, operation)
        names = re.findall(r"^\.buffer +(\w+)", operation.program, re.MULTILINE)
        self.kernel = device.executor.kernel(operation.program, "by_hand")
        self.desc = device.launch_desc(dict(zip(names, (t.buffer for t in self.inputs + self.outputs))), operation.count)
        self.call = self.launch

    def launch(self) -> None:
        library = self.device.library
        library.check(library.c.hg_launch(self.kernel.handle, c.cast(c.byref(self.desc), c.POINTER(LaunchDesc)), None))


def count_of(tensor: Tensor) -> int:
    count = 1
    for size in tensor.shape[:tensor.rank]:
        count *= size
    return count


class Torch:
    """Its tensors, on "cuda" or "cpu"."""

    def __init__(self, torch, device: str):
        self.torch, self.device, self.tensors = torch, device, {}
        self.kinds = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64}
        torch.backends.cuda.matmul.allow_tf32 = False

    def tensor(self, given: Input, key: tuple):
        if key not in self.tensors:
            values = period(given, key[-1])
            values = self.torch.from_numpy(from_bf16(values) if given.kind == "bf16" else values).to(self.device, self.kinds[given.kind])
            self.tensors[key] = values.repeat(-(-given.count // len(values)))[:given.count].contiguous()
        return self.tensors[key].view(given.shape)

    def forget(self) -> None:
        self.tensors.clear()
        if self.device == "cuda":
            self.torch.cuda.empty_cache()

    def contender(self, operation: Operation, is_compiled: bool) -> "Theirs":
        if is_compiled:  # a function that has been compiled for many shapes is compiled no more
            self.torch.compiler.reset()
        compiled = (lambda f: self.torch.compile(f, dynamic=False)) if is_compiled else lambda f: f
        call = operation.theirs(self.torch, compiled, *map(self.tensor, operation.inputs, keys(operation)))
        return Theirs(call, self.fetch)

    def fetch(self, results) -> list[np.ndarray]:
        found = []
        for result in results if isinstance(results, (tuple, list)) else [results]:
            flat = result.detach().reshape(-1)
            found.append(self.torch.cat([part.double() for part in ends(flat, flat.numel())]).cpu().numpy())
        return found


class Theirs:
    stream = c.c_void_p(0)  # PyTorch's: the legacy default stream

    def __init__(self, call, fetch):
        self.call, self.fetch = call, fetch

    def answer(self) -> list[np.ndarray]:
        return self.fetch(self.call())


def numpy_contender(operation: Operation) -> Theirs:
    """A product by NumPy's BLAS."""
    arrays = [np.resize(period(i, key[-1]), i.count).reshape(i.shape) for i, key in zip(operation.inputs, keys(operation))]
    out = np.empty((arrays[0].shape[0], arrays[1].shape[1]), arrays[0].dtype)
    return Theirs(lambda: np.matmul(*arrays, out=out),
                  lambda y: [np.concatenate(ends(y.reshape(-1), y.size)).astype(np.float64)])


def difference(operation: Operation, expected: list[np.ndarray], answer: list[np.ndarray]) -> str:
    """What is wrong with an answer; "" if nothing is."""
    if len(expected) != len(answer):
        return f"{len(answer)} results, not {len(expected)}"
    for number, (wanted, given) in enumerate(zip(expected, answer)):
        if wanted.shape != given.shape:
            return f"result {number} has another size"
        wrong = ~(np.abs(given - wanted) <= operation.tolerance * (np.abs(wanted).max() + 1e-30))
        if wrong.any() and not (operation.is_index and (wrong.size == 1 or wrong.mean() < TIES)):
            first = int(np.argmax(wrong))
            return f"{wrong.sum()} of {wrong.size} elements of result {number}: number {first} is {given[first]!r}, not {wanted[first]!r}"
    return ""
