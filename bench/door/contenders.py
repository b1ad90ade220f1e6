"""Who does the work: Hologram from Python, with and without jit, and through hologram_torch; PyTorch, eager and compiled; CuPy, JAX and
NumPy, those that there are.

A contender makes the inputs its own and gives a call without arguments, whose result is new each time, and a wait for all calls."""

import importlib
import itertools
import os
from functools import cache
from typing import Any, Callable

import numpy as np
from rows import Row, Work


class Missing(Exception):
    """A library that there is not, or that has not such work."""


def module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise Missing(str(error)) from None


def as_function(work: Work | None, names: tuple[str, ...], given: dict[str, Any], library: Any) -> Callable[..., Any]:
    """The work as a function of the inputs."""
    if work is None:
        raise Missing("no such work")
    if not isinstance(work, str):
        return lambda *inputs: work(library, *inputs)
    return eval(f"lambda {', '.join(names)}: {work}", dict(given))


def parts_of(result: Any) -> list[Any]:
    """The arrays of a result, which is one or a list of them."""
    return list(result) if isinstance(result, (list, tuple)) else [result]


def with_new_shapes(call: Callable[..., Any], x: Any) -> Callable[[], Any]:
    """The call, of so many of x's rows and columns that no two calls have the same shape until all are through."""
    rows, columns = x.shape
    shapes = itertools.cycle((r, c) for r in range(rows, rows // 2, -1) for c in range(columns, columns // 2, -1))

    def of_next() -> Any:
        r, c = next(shapes)
        return call(x[:r, :c])
    return of_next


def with_new_numbers(call: Callable[..., Any], inputs: list[Any]) -> Callable[[], Any]:
    """The call with 1, then 2, and so on behind the inputs."""
    numbers = itertools.count(1)
    return lambda: call(*inputs, next(numbers))


class Contender:
    of = "hg"              # whose statement of the row

    def __init__(self, backend: str):
        self.backend = backend

    def given(self) -> dict[str, Any]:
        """What a statement may name besides its inputs."""
        return {self.of: self.library}

    def own(self, values: np.ndarray, kind: str) -> Any:
        if kind == "bf16":
            raise Missing("NumPy and CuPy have no bf16")
        return values

    def finish(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    def wait(self) -> None:
        pass

    def as_numpy(self, result: Any) -> list[np.ndarray]:
        return [np.asarray(part) for part in parts_of(result)]

    def prepare(self, row: Row, values: list[np.ndarray]) -> Callable[[], Any]:
        """A call without arguments; the inputs, which have these values, are there when this returns."""
        inputs = [self.own(own, one.kind) for own, one in zip(values, row.inputs.values(), strict=True)]
        names = (*row.inputs, "t") if row.options.get("new_numbers") else tuple(row.inputs)
        call = self.finish(as_function(getattr(row, self.of), names, self.given(), self.library))
        self.wait()
        if row.options.get("new_numbers"):
            return with_new_numbers(call, inputs)
        return with_new_shapes(call, inputs[0]) if row.options.get("new_shapes") else lambda: call(*inputs)


@cache
def hologram_executor(backend: str) -> Any:
    """The default one: work without inputs is done there, whoever calls it, and is waited for there."""
    library = module("hologram")
    executor = library.Executor(backend=backend)
    library.set_default_executor(executor)
    return executor


class Hologram(Contender):
    def __init__(self, backend: str):
        super().__init__(backend)
        self.library, self.executor = module("hologram"), hologram_executor(backend)

    def own(self, values: np.ndarray, kind: str) -> Any:
        array = self.library.array(values, device=self.executor)
        return array.astype("bf16").compute() if kind == "bf16" else array.compute()

    def finish(self, function):
        compute = self.library.compute

        def call(*inputs):
            result = function(*inputs)
            compute(*result) if isinstance(result, (list, tuple)) else result.compute()
            return result
        return call

    def wait(self):
        self.executor.synchronize()

    def as_numpy(self, result):
        return [(part.astype("f32") if part.dtype == self.library.bfloat16 else part).numpy() for part in parts_of(result)]


class Jitted(Hologram):
    def finish(self, function):
        return self.library.jit(function)


class Torch(Contender):
    of = "torch"

    def __init__(self, backend: str):
        super().__init__(backend)
        self.library = module("torch")
        if backend == "cuda" and not self.library.cuda.is_available():
            raise Missing("PyTorch has no CUDA device here")

    def given(self):
        return {"torch": self.library, "DEVICE": self.backend}

    def own(self, values, kind):
        tensor = self.library.from_numpy(values).to(self.backend)
        return tensor.to(self.library.bfloat16) if kind == "bf16" else tensor

    def wait(self):
        if self.backend == "cuda":
            self.library.cuda.synchronize()

    def as_numpy(self, result):
        tensors = [part if self.library.is_tensor(part) else self.library.from_dlpack(part) for part in parts_of(result)]
        tensors = [tensor.detach().cpu() for tensor in tensors]
        return [(tensor.float() if tensor.dtype == self.library.bfloat16 else tensor).numpy() for tensor in tensors]


class Compiled(Torch):
    def finish(self, function):
        self.library.compiler.reset()  # one row is one program: after eight of them it would run the rest uncompiled
        return self.library.compile(function, dynamic=False)


class Functional(Torch):
    """hologram_torch on PyTorch's tensors."""
    of = "functional"

    def given(self):
        return {"F": module("hologram_torch").functional, "hg": module("hologram"), "torch": self.library}


class NumPy(Contender):
    of = "np"

    def __init__(self, backend: str):
        super().__init__(backend)
        if backend != "cpu":
            raise Missing("NumPy computes on the CPU")
        self.library = np


class CuPy(Contender):
    of = "np"

    def __init__(self, backend: str):
        super().__init__(backend)
        if backend != "cuda":
            raise Missing("CuPy computes on a GPU")
        self.library = module("cupy")

    def own(self, values, kind):
        return self.library.asarray(super().own(values, kind))

    def wait(self):
        self.library.cuda.Device().synchronize()

    def as_numpy(self, result):
        return [self.library.asnumpy(result)]


class Jax(Contender):
    of = "np"

    def __init__(self, backend: str):
        super().__init__(backend)
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # it takes three quarters of the GPU's memory otherwise
        self.jax = module("jax")
        if backend == "cuda" and self.jax.default_backend() != "gpu":
            raise Missing("JAX has no GPU here")
        self.library, self.last = module("jax.numpy"), None

    def own(self, values, kind):
        return self.jax.block_until_ready(self.library.asarray(values, dtype="bfloat16" if kind == "bf16" else None))

    def prepare(self, row, values):
        if row.options.get("size_by_values"):
            raise Missing("under jax.jit no size goes by values")
        return super().prepare(row, values)

    def finish(self, function):
        compiled = self.jax.jit(function)

        def call(*inputs):
            self.last = compiled(*inputs)
            return self.last
        return call

    def wait(self):  # the last result of all that were dropped lives until here
        if self.last is not None:
            self.jax.block_until_ready(self.last)


CONTENDERS = {"hologram": Hologram, "jit": Jitted, "functional": Functional, "torch": Torch, "compile": Compiled, "numpy": NumPy,
              "cupy": CuPy, "jax": Jax}
OURS = ("hologram", "jit", "functional")
