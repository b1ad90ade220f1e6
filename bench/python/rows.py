"""What is timed: statements as one writes them, ours first, each with the names that it uses.

A row is made by a function that gets what there is (Here) and gives {who: Contender}. Contenders of one row do the same work
on the same values."""

import ctypes as c
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

import numpy as np

import hologram as hg

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "bench"))

COUNT = 1024
LARGE = 1 << 26
BATCH, CLASSES = 64, 10


@dataclass
class Contender:
    statement: str                     # what is timed
    names: dict[str, Any]              # that it uses
    result: str                        # where the answer is when it has run once: to see that everybody did the same
    wait: Callable[[], Any] = lambda: None  # after a sample, not timed
    time: Callable[[int], int] | None = None  # instead of the statement: nanoseconds of so many calls, made from C

    def answer(self) -> np.ndarray | None:
        if not self.statement:
            return None
        exec(self.statement, self.names)
        return np.asarray(eval(self.result, self.names))


@dataclass
class Row:
    make: Callable[["Here"], dict[str, Contender]]
    bounds: dict[str, float] = field(default_factory=dict)  # ours / theirs, at most; "ns": nanoseconds of ours
    backends: tuple[str, ...] = ("cpu",)


@dataclass
class Here:
    backend: str
    torch: Any                         # the module, or None
    library: Path                      # build/release/libhologram.so


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-2, 2, shape).astype(np.float32)


# ---- one operation ----------------------------------------------------------------------------------------------------------------

def vector_add(here: Here) -> dict[str, Contender]:
    executor = hg.Executor(backend=here.backend)
    a, b, out = (executor.allocate(COUNT) for _ in range(3))
    x, y = values(COUNT), values(COUNT, seed=1)
    a.from_numpy(x), b.from_numpy(y)
    found = {"hologram": Contender("add(executor, a, b, out)", {"add": hg.ops.vector_add, "executor": executor, "a": a, "b": b, "out": out},
                                   "out.to_numpy()", out.to_numpy)}
    if here.backend == "cuda":
        return found | driver_launch(here)
    z = np.empty_like(x)
    found["numpy"] = Contender("add(a, b, out=out)", {"add": np.add, "a": x, "b": y, "out": z}, "out")
    if here.torch:
        p, q, r = map(here.torch.from_numpy, (x, y, np.empty_like(x)))
        found["torch"] = Contender("add(a, b, out=out)", {"add": here.torch.add, "a": p, "b": q, "out": r}, "out")
    return found


def driver_launch(here: Here) -> dict[str, Contender]:
    """cuLaunchKernel of one block, called from C: what a launch costs at least. It adds other numbers: no answer."""
    from cuda.costs import Calls
    from cuda.driver import Driver, Plain
    driver = Driver()
    plain, calls, status = Plain(driver, 2, 1 << 14), Calls(here.library.parent / "bench/libbench_calls.so"), c.c_int()
    function = c.cast(driver.c.cuLaunchKernel, c.c_void_p)

    def time(repeat: int) -> int:
        took = calls.c.time_driver_launches(function, None, plain.function, plain.stream, plain.parameters, repeat, c.byref(status))
        if status.value:
            raise RuntimeError(f"cuLaunchKernel failed ({status.value})")
        return took

    return {"driver": Contender("", {}, "", lambda: driver.wait(plain.stream), time)}


def wrap(here: Here) -> dict[str, Contender]:
    x = values(COUNT)
    found = {"hologram": Contender("wrap(x)", {"wrap": hg.asarray, "x": x}, "wrap(x)")}
    if here.torch:
        found["torch"] = Contender("wrap(x)", {"wrap": here.torch.from_numpy, "x": x}, "wrap(x)")
    return found


# ---- a chain of eight -------------------------------------------------------------------------------------------------------------

OURS = "(((a * b + a) * 1.1 - b).minimum(3.0).maximum(-2.0) * a + 0.5)"
NUMPY = "(np.maximum(np.minimum((a * b + a) * 1.1 - b, 3.0), -2.0) * a + 0.5)"
TORCH = "(((a * b + a) * 1.1 - b).clamp_max(3.0).clamp_min(-2.0) * a + 0.5)"


def chain(here: Here, count: int) -> dict[str, Contender]:
    x, y = values(count), values(count, seed=1)
    executor = hg.Executor(backend=here.backend)
    found = {"hologram": Contender(OURS + ".compute()", {"a": hg.array(x, device=executor), "b": hg.array(y, device=executor)}, OURS),
             "numpy": Contender(NUMPY, {"a": x, "b": y, "np": np}, NUMPY)}
    if here.torch:
        found["torch"] = Contender(TORCH, {"a": here.torch.from_numpy(x), "b": here.torch.from_numpy(y)}, TORCH)
    return found


def chain_from_c(here: Here) -> dict[str, Contender]:
    """The same computation from ours beside it: hg_run through ctypes, into memory that is there. Both make no copy of what they are
    given; Python takes new memory for each result."""
    from library import Device
    from operations.computation import Computation
    found = {"hologram": chain(here, LARGE)["hologram"]}
    device = Device(here.library)
    computation = Computation(device.library)
    a, b = (computation.input((LARGE,), "f32") for _ in range(2))
    op, number = computation.op, computation.number
    value = op("sub", op("mul", op("add", op("mul", a, b), a), number(1.1)), b)
    value = op("maximum", op("minimum", value, number(3.0)), number(-2.0))
    computation.output(op("add", op("mul", value, a), number(0.5)))
    executable = computation.compile(device.executor.handle)
    tensors = []
    for tensor, array in zip(computation.inputs, (values(LARGE), values(LARGE, seed=1))):
        tensor.buffer = device.allocate(array.nbytes)
        device.write(tensor.buffer, array)
        tensors.append(tensor)
    out = computation.outputs[0]
    out.buffer = device.allocate(4 * LARGE)

    def read() -> np.ndarray:
        z = np.empty(LARGE, np.float32)
        device.read(out.buffer, 0, z)
        return z

    names = {"call": executable.runner(tensors, [out]), "read": read, "kept": (device, executable)}
    return found | {"c": Contender("call()", names, "read()")}


# ---- PyTorch's tensors ------------------------------------------------------------------------------------------------------------

def on_tensors(name: str, ours: str, theirs: str, *shapes: tuple[int, ...]) -> Callable[[Here], dict[str, Contender]]:
    """Statements of F, ours or torch.nn.functional's, and tensors a, b, c."""

    def make(here: Here) -> dict[str, Contender]:
        if not here.torch:
            return {}
        import hologram_torch
        tensors = {key: here.torch.from_numpy(values(*shape, seed=i)) for i, (key, shape) in enumerate(zip("abc", shapes))}
        found = {}
        for who, statement, functions in (("hologram", ours, hologram_torch.functional), ("torch", theirs, here.torch.nn.functional)):
            names = tensors | {"F": functions, "torch": here.torch, "f": getattr(functions, name, None)}
            found[who] = Contender(statement, names, statement)
        return found

    return make


def with_gradient(here: Here) -> dict[str, Contender]:
    if not here.torch:
        return {}
    import hologram_torch
    found = {}
    for who, function in (("hologram", hologram_torch.functional.mul), ("torch", here.torch.mul)):
        a, b = (here.torch.from_numpy(values(COUNT, seed=i)).requires_grad_() for i in range(2))
        ones = here.torch.ones(COUNT)
        names = {"f": function, "a": a, "b": b, "ones": ones, "grad": here.torch.autograd.grad}
        found[who] = Contender("grad(f(a, b), (a, b), ones)", names, "grad(f(a, b), (a, b), ones)[0]")
    return found


# ---- a step of training -----------------------------------------------------------------------------------------------------------

def network(here: Here, optimiser: str, hidden: int = 128) -> dict[str, Contender]:
    """64 pixels to `hidden` to ten digits, cross entropy, and a step of the optimiser: a batch of 64 pictures."""
    x = values(BATCH, 64)
    digits = np.random.default_rng(3).integers(0, CLASSES, BATCH)
    weights = [0.1 * values(hidden, 64), 0.1 * values(hidden), 0.1 * values(CLASSES, hidden), 0.1 * values(CLASSES)]
    executor = hg.Executor(backend=here.backend)
    own = [hg.array(w, device=executor) for w in weights]
    model = hg.nn.Sequential(hg.nn.Linear(64, hidden), hg.relu, hg.nn.Linear(hidden, CLASSES))
    fitting = hg.optim.Adam(0.001) if optimiser == "adam" else hg.optim.SGD(0.05, momentum=0.9)
    parameters = [{"weight": own[0], "bias": own[1]}, {}, {"weight": own[2], "bias": own[3]}]
    images, labels = hg.array(x, device=executor), hg.array(digits, device=executor)
    gradients = hg.value_and_grad(lambda p, a, b: hg.cross_entropy(model(p, a), b))

    def step(p, s, a, b):
        value, g = gradients(p, a, b)
        return value, *fitting.update(p, g, s)

    in_place = hg.jit(step, donate=(0, 1))
    state = [parameters, fitting.init(parameters)]

    def train() -> None:
        _, *state[:] = in_place(*state, images, labels)

    found = {"hologram": Contender("train()", {"train": train, "state": state}, 'state[0][0]["weight"]')}
    if here.torch:
        found["torch"] = torch_network(here.torch, optimiser, weights, x, digits)
    return found


def torch_network(torch: Any, optimiser: str, weights: list[np.ndarray], x: np.ndarray, digits: np.ndarray) -> Contender:
    hidden = len(weights[0])
    model = torch.nn.Sequential(torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, CLASSES))
    with torch.no_grad():
        for parameter, weight in zip(model.parameters(), weights):
            parameter.copy_(torch.from_numpy(weight))
    fitting = torch.optim.Adam(model.parameters(), 0.001) if optimiser == "adam" else torch.optim.SGD(model.parameters(), 0.05, 0.9)
    images, labels, loss = torch.from_numpy(x), torch.from_numpy(digits), torch.nn.CrossEntropyLoss()

    def train() -> None:
        fitting.zero_grad()
        loss(model(images), labels).backward()
        fitting.step()

    return Contender("train()", {"train": train, "model": model}, "model[0].weight.detach()")


ROWS = {
    "vector_add": Row(vector_add, {"ns": 300}),
    "vector_add, GPU": Row(vector_add, {"driver": 1.25}, ("cuda",)),
    "wrap": Row(wrap, {"ns": 300}),
    "chain 1K": Row(lambda here: chain(here, COUNT), {"ns": 3000}),
    "chain 64M": Row(chain_from_c, {"c": 1.05}),
    "torch add": Row(on_tensors("add", "f(a, b)", "torch.add(a, b)", (COUNT,), (COUNT,)), {"torch": 1.5}),
    "torch relu": Row(on_tensors("relu", "f(a)", "f(a)", (COUNT,))),
    "torch softmax": Row(on_tensors("softmax", "f(a, -1)", "f(a, -1)", (8, 128))),
    "torch linear": Row(on_tensors("linear", "f(a, b, c)", "f(a, b, c)", (16, 64), (32, 64), (32,))),
    "torch layer_norm": Row(on_tensors("layer_norm", "f(a, (128,), b, c)", "f(a, (128,), b, c)", (8, 128), (128,), (128,))),
    "torch mul, gradients": Row(with_gradient),
    "step, SGD": Row(lambda here: network(here, "sgd"), {"torch": 0.3}),
    "step, Adam": Row(lambda here: network(here, "adam"), {"torch": 0.3}),
}
