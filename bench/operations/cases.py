"""What is timed: operations of ops.h, and formulas of a user's own, on the shapes that the project has targets for.

To add one: a row in operations(); `ours` writes the computation, `theirs` makes what PyTorch does."""

from dataclasses import dataclass, field
from typing import Callable

EPSILON = 1e-5
COLUMNS = (64, 1000, 1024, 4096, 16384, 131072)
NARROW_COLUMNS = (1024, 4096, 16384)
CLASSES = 50257
SIZES = {"f32": 4, "bf16": 2, "f64": 8, "i64": 8, "i32": 4, "u32": 4, "bool": 1}
UPPER = 1.01  # ours / theirs that still counts as no slower


@dataclass
class Input:
    shape: tuple
    kind: str = "f32"
    fill: str = "normal"    # normal, uniform (0 to 1), zeros, ones, below (whole numbers under `scale`), eye (of `scale` rows)
    scale: float = 1.0

    @property
    def count(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def bytes(self) -> int:
        return self.count * SIZES[self.kind]


@dataclass
class Operation:
    """`ours(computation, *values)` gives the values to put out; `theirs(torch, compiled, *tensors)` a call that returns the same,
    where compiled(function) is torch.compile's, or the function itself. `work`: bytes that must be moved, or operations."""
    name: str
    group: str
    inputs: list[Input]
    ours: Callable
    theirs: Callable
    work: float
    unit: str = "TB/s"
    bounds: dict = field(default_factory=dict)  # "copy": share of the copy; "best", a peer: our time / theirs; "rate"
    tolerance: float = 1e-4                     # of the largest expected value
    peers: tuple = ("torch", "compile")
    is_index: bool = False                      # results are places
    updates: tuple = ()                         # inputs that the run overwrites: compared, too
    flags: int = 0
    program: str = ""                           # the same by hand: parameters in the order of inputs and results

    @property
    def count(self) -> int:
        return self.inputs[0].count if self.inputs else 0

    @property
    def label(self) -> str:
        return self.name


def function(operation: Callable) -> Callable:
    """theirs, of a function of torch and tensors."""
    def made(torch, compiled, *tensors):
        call = compiled(lambda *t: operation(torch, *t))
        return lambda: call(*tensors)
    return made


def op(name: str, **arguments) -> Callable:
    return lambda computation, *values: computation.op_all(name, *values, **arguments)


# ---- rows and columns of a matrix -----------------------------------------------------------------------------------------------------

ROWS = {"copy": lambda torch, x: x * 1.5,
        "softmax": lambda torch, x: torch.softmax(x, 1), "log_softmax": lambda torch, x: torch.log_softmax(x, 1),
        "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, x.shape[1:], eps=EPSILON),
        "rms_norm": lambda torch, x: torch.nn.functional.rms_norm(x, x.shape[1:], eps=EPSILON)}
REDUCTIONS = {"sum": lambda torch, x, axis: x.sum(axis), "max": lambda torch, x, axis: x.amax(axis),
              "argmax": lambda torch, x, axis: x.argmax(axis), "var": lambda torch, x, axis: x.var(axis, correction=0),
              "logsumexp": lambda torch, x, axis: x.logsumexp(axis)}
AXES = {"rows": 1, "columns": 0, "all": None}


def suffix(kind: str) -> str:
    return "" if kind == "f32" else f".{kind}"


def row(name: str, kind: str, columns: int, total: int, bounds: dict) -> Operation:
    """What has a result for each element."""
    x, affine = Input((total // columns, columns), kind), Input((columns,), kind)
    tolerance = 1e-4 if kind == "f32" else 2e-2
    group = "rows" if kind == "f32" else "narrow"
    if name == "layer_norm_affine":
        return Operation(f"{name}{suffix(kind)} {columns}", group, [x, affine, affine], op("layer_norm"), function(
            lambda t, x, w, b: t.nn.functional.layer_norm(x, x.shape[1:], w, b, EPSILON)), 2 * x.bytes, bounds=bounds, tolerance=tolerance)
    ours = op(name) if name != "copy" else lambda c, x: [c.op("mul", x, c.number(1.5, kind))]
    return Operation(f"{name}{suffix(kind)} {columns}", group, [x], ours, function(ROWS[name]), 2 * x.bytes, bounds=bounds,
                     tolerance=tolerance)


def reduction(name: str, along: str, kind: str, columns: int, total: int, bounds: dict) -> Operation:
    """What has a result for each row, each column, or one."""
    x, axis, formula = Input((total // columns, columns), kind, "uniform"), AXES[along], REDUCTIONS[name]
    whole = tuple(range(2)) if name not in ("argmax", "var") else None
    return Operation(f"{name} {along}{suffix(kind)} {columns}", "reductions", [x], op(name, axes=None if axis is None else [axis]),
                     function(lambda t, x: formula(t, x, whole if axis is None else axis)), x.bytes, bounds=bounds,
                     tolerance=1e-4 if kind == "f32" else 2e-2, is_index=name == "argmax")


def row_bounds(columns: int, kind: str, on_cpu: bool) -> dict:
    if on_cpu:
        return {"torch": 0.7}
    if kind == "bf16":
        return {"rate": 2.4} | ({"best": UPPER} if columns >= 4096 else {})
    if columns in (64, 1000, 131072):
        return {"best": 1 / 0.97}
    return {"copy": 0.94} | ({"best": UPPER} if columns >= 4096 else {})


def rows(total: int, on_cpu: bool) -> list[Operation]:
    widths = {"f32": COLUMNS, "bf16": NARROW_COLUMNS}
    return [row(name, kind, columns, total, row_bounds(columns, kind, on_cpu)) for kind in widths for name in ROWS if name != "copy"
            for columns in widths[kind]]


def reductions(total: int, on_cpu: bool) -> list[Operation]:
    found = [reduction(name, along, "f32", 4096, total, {} if on_cpu else {"copy": 0.95}) for name in ("sum", "max", "argmax")
             for along in AXES]
    for columns in (64, 1024, 4096, 16384, 131072):
        found.append(reduction("var", "rows", "f32", columns, total, {} if on_cpu or not 64 < columns <= 16384 else {"copy": 0.93}))
    return found


def of_word(word: str, total: int) -> Operation:
    """softmax:bf16:50257, or of a reduction sum:f32:64, with its axis before: columns_sum, all_sum."""
    try:
        name, kind, columns = word.split(":")
        along, _, reduced = name.rpartition("_")
        if reduced in REDUCTIONS and (along or "rows") in AXES:
            return reduction(reduced, along or "rows", kind, int(columns), total, {})
        if name in ROWS or name == "layer_norm_affine":
            return row(name, kind, int(columns), total, {})
    except ValueError:
        pass
    known = ", ".join([*ROWS, "layer_norm_affine", *REDUCTIONS, "columns_sum", "all_sum"])
    raise LookupError(f"'{word}' is no NAME:TYPE:COLUMNS with a name among {known}, ...")


# ---- losses -------------------------------------------------------------------------------------------------------------------------

def losses(batch: int, on_cpu: bool) -> list[Operation]:
    x, target = Input((batch, CLASSES)), Input((batch,), "i64", "below", CLASSES)

    def both(computation, x, target):
        loss = computation.op("cross_entropy", x, target)
        return [loss, *computation.gradient(loss, [x])]

    def their_both(torch, compiled, x, target):
        x = x.detach().requires_grad_()
        forward = compiled(lambda x, target: torch.nn.functional.cross_entropy(x, target))

        def call():
            loss = forward(x, target)
            return loss, *torch.autograd.grad(loss, x)
        return call

    def forward(torch, x, target):
        return torch.nn.functional.cross_entropy(x, target)

    y, z = Input((batch * 4096,)), Input((batch * 4096,), "f32", "uniform")
    return [Operation("cross_entropy", "losses", [x, target], op("cross_entropy"), function(forward), x.bytes,
                      bounds={"torch": 0.7} if on_cpu else {}),
            Operation("cross_entropy both", "losses", [x, target], both, their_both, 2 * x.bytes,
                      bounds={"torch": 0.7} if on_cpu else {"compile": UPPER}),
            Operation("mse", "losses", [y, z], op("mse"), function(lambda t, x, y: t.nn.functional.mse_loss(x, y)), 2 * y.bytes,
                      bounds={"torch": 0.7} if on_cpu else {}),
            Operation("bce_with_logits", "losses", [y, z], op("bce_with_logits"),
                      function(lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(x, y)), 2 * y.bytes,
                      bounds={"torch": 0.7} if on_cpu else {})]


# ---- chains -------------------------------------------------------------------------------------------------------------------------

def our_chain(c, a, b, row):
    """Ten operations, two results."""
    t = c.op("add", c.op("mul", a, b), row)
    u = c.op("sub", c.op("mul", c.op("maximum", t, c.number(0)), c.number(1.1)), b)
    y = c.op("add", c.op("mul", c.op("minimum", u, c.number(3)), a), c.number(0.5))
    return [y, c.op("abs", c.op("sub", y, t))]


def their_chain(torch, a, b, row):
    t = a * b + row
    y = torch.clamp(torch.clamp(t, min=0) * 1.1 - b, max=3) * a + 0.5
    return y, torch.abs(y - t)


CHAIN_BY_HAND = """.buffer a f32 in
.buffer b f32 in
.buffer row f32 in
.buffer y f32 out
.buffer z f32 out
    ldg.f32  r0, [a + lane]
    ldg.f32  r1, [b + lane]
    and.u64  r2, lane, #4095
    ldg.f32  r3, [row + r2]
    mul.f32  r4, r0, r1
    add.f32  r4, r4, r3
    max.f32  r5, r4, #0
    mul.f32  r5, r5, #1.1
    sub.f32  r5, r5, r1
    min.f32  r5, r5, #3
    mul.f32  r5, r5, r0
    add.f32  r5, r5, #0.5
    sub.f32  r6, r5, r4
    abs.f32  r6, r6
    stg.f32  [y + lane], r5
    stg.f32  [z + lane], r6
    exit
"""


def chains(total: int, on_cpu: bool) -> list[Operation]:
    a, row = Input((total // 4096, 4096)), Input((4096,))
    bounds = {} if on_cpu else {"copy": 0.96}
    return [Operation("chain", "chains", [a, a, row], our_chain, function(their_chain), 4 * a.bytes, bounds=bounds | {"by hand": 1.03},
                      program=CHAIN_BY_HAND),
            Operation("add", "chains", [a, a], op("add"), function(lambda t, a, b: a + b), 3 * a.bytes, bounds=bounds),
            Operation("gelu", "chains", [a], op("gelu"), function(lambda t, a: t.nn.functional.gelu(a)), 2 * a.bytes)]


# ---- products -----------------------------------------------------------------------------------------------------------------------

def product(name: str, m: int, n: int, k: int, bounds: dict, kind: str = "f32", flags: int = 0) -> Operation:
    return Operation(name, "products", [Input((m, k), kind), Input((k, n), kind)], op("matmul"), function(lambda t, a, b: a @ b),
                     2.0 * m * n * k, "TFLOP/s", bounds, 1e-4 if kind == "f32" else 2e-2, ("torch", "numpy"), flags=flags)


def epilogue(size: int) -> Operation:
    def ours(c, a, b, bias):
        return [c.op("gelu", c.op("add", c.op("matmul", a, b), bias))]
    return Operation(f"matmul bias gelu {size}", "products", [Input((size, size)), Input((size, size)), Input((size,))], ours,
                     function(lambda t, a, b, bias: t.nn.functional.gelu(t.addmm(bias, a, b))), 2.0 * size ** 3, "TFLOP/s",
                     {f"matmul {size}": 1.02})


def products(on_cpu: bool) -> list[Operation]:
    if on_cpu:
        near = {"numpy": 1 / 0.85}
        return [product("matmul 1024", 1024, 1024, 1024, near), product("matmul 4096 1536", 4096, 1536, 1536, near), epilogue(1024),
                product("matvec", 4096, 1, 4096, {}), product("vecmat", 1, 4096, 4096, {})]
    matrix, vector = Input((16384, 16384)), Input((16384,))
    return [product("matmul 1024", 1024, 1024, 1024, {"torch": UPPER}), product("matmul 4096", 4096, 4096, 4096, {"rate": 40}),
            product("matmul 8192", 8192, 8192, 8192, {"rate": 41}), epilogue(4096),
            Operation("matvec", "products", [matrix, vector], op("matvec"), function(lambda t, a, x: a @ x), matrix.bytes, "TB/s",
                      {"copy": 0.9}, peers=("torch",)),
            Operation("vecmat", "products", [vector, matrix], op("matmul"), function(lambda t, x, a: x @ a), matrix.bytes, "TB/s",
                      {"copy": 0.9}, peers=("torch",)),
            product("matmul fast.bf16 4096", 4096, 4096, 4096, {"torch": 1 / 0.97}, "bf16", 1),
            product("matmul.bf16 4096", 4096, 4096, 4096, {}, "bf16")]


# ---- training -----------------------------------------------------------------------------------------------------------------------

def our_adam(c, params, gradients, states, step) -> None:
    """The parameters' and states' inputs are updated."""
    rate = c.number(1e-3)
    for param, gradient, state in zip(params, gradients, states):
        for old, new in zip([param, *state], c.op_all("adam", param, gradient, *state, rate, step)):
            c.update(old, new)


def adam(name: str, shapes: list[tuple], bounds: dict) -> Operation:
    """One step of so many parameters, gradients given."""
    n = len(shapes)
    inputs = [Input(shape) for shape in shapes] + [Input(shape, scale=0.01) for shape in shapes]
    inputs += [Input(shape, "f32", "zeros") for shape in shapes * 2] + [Input((), "f32", "ones")]

    def ours(c, *values):
        our_adam(c, values[:n], values[n:2 * n], zip(values[2 * n:3 * n], values[3 * n:4 * n]), values[4 * n])
        return []

    def theirs(torch, _, *tensors):
        params = [t.clone().requires_grad_() for t in tensors[:n]]
        for param, gradient in zip(params, tensors[n:]):
            param.grad = gradient
        optimiser = torch.optim.Adam(params, 1e-3, fused=True)

        def call():
            optimiser.step()
            return params[:1]
        return call
    return Operation(name, "optimisers", inputs, ours, theirs, 28 * sum(i.count for i in inputs[:n]), bounds=bounds, peers=("torch",),
                     updates=(0,), tolerance=1e-3)


def transformer(width: int, layers: int) -> list[tuple]:
    """Shapes of the parameters of a language model, its table of words apart."""
    layer = [(width,), (width,), (3 * width, width), (3 * width,), (width, width), (width,), (width,), (width,), (4 * width, width),
             (4 * width,), (width, 4 * width), (width,)]
    return layer * layers


def optimisers(on_cpu: bool) -> list[Operation]:
    if on_cpu:
        return [adam("adam 8M", [(1 << 23,)], {"torch": 0.7})]
    return [adam("adam 100M", [(100_000_000,)], {"torch": UPPER}), adam("adam 144 tensors", transformer(768, 12), {"torch": UPPER})]


def embedding(words: int, width: int, count: int, on_cpu: bool) -> list[Operation]:
    weight, index = Input((words, width)), Input((count,), "i64", "below", words)
    g = Input((count, width))

    def ours(c, weight, index, g):
        return c.gradient(c.op("embedding", weight, index), [weight], g)

    def theirs(torch, weight, index, g):
        return torch.ops.aten.embedding_dense_backward(g, index, words, -1, False)
    return [Operation("embedding", "embedding", [weight, index], op("embedding"),
                      function(lambda t, w, i: t.nn.functional.embedding(i, w)), 2 * g.bytes, bounds={"torch": 0.7} if on_cpu else {}),
            Operation("embedding gradient", "embedding", [weight, index, g], ours, function(theirs), g.bytes + weight.bytes,
                      bounds={"torch": 0.7} if on_cpu else {})]


LAYERS = (784, 1024, 10)


def network(batch: int, part: str, bounds: dict) -> Operation:
    """inputs - hidden (relu) - classes, cross entropy, Adam; `part`: loss, gradients or step."""
    first, hidden, classes = LAYERS
    weights = [Input(shape, scale=0.03) for shape in ((hidden, first), (hidden,), (classes, hidden), (classes,))]
    states = [Input(w.shape, "f32", "zeros") for w in weights * 2] if part == "step" else []
    step = [Input((), "f32", "ones")] if part == "step" else []
    inputs = [Input((batch, first)), Input((batch,), "i64", "below", classes), *weights, *states, *step]

    def ours(c, x, y, *values):
        weights = values[:4]
        loss = c.op("cross_entropy", c.op("linear", c.op("relu", c.op("linear", x, *weights[:2])), *weights[2:]), y)
        if part == "loss":
            return [loss]
        gradients = c.gradient(loss, list(weights))
        if part == "gradients":
            return [loss, *gradients]
        our_adam(c, weights, gradients, zip(values[4:8], values[8:12]), values[12])
        return [loss]

    def theirs(torch, compiled, x, y, *tensors):
        weights = [t.clone().requires_grad_() for t in tensors[:4]]
        functional = torch.nn.functional
        optimiser = torch.optim.Adam(weights, 1e-3, fused=True)
        forward = compiled(lambda x, y, *w: functional.cross_entropy(
            functional.linear(functional.relu(functional.linear(x, *w[:2])), *w[2:]), y))

        def loss():
            with torch.no_grad():
                return forward(x, y, *weights)

        def gradients():
            value = forward(x, y, *weights)
            return value, *torch.autograd.grad(value, weights)

        def step():
            optimiser.zero_grad()
            value = forward(x, y, *weights)
            value.backward()
            optimiser.step()
            return value.detach(), weights[0]
        return {"loss": loss, "gradients": gradients, "step": step}[part]
    forward_work = 2.0 * batch * (first * hidden + hidden * classes)
    work = forward_work if part == "loss" else 3 * forward_work - 2.0 * batch * first * hidden  # x needs no gradient
    if part == "step":  # where a gradient is nearly 0, the first step's direction is anybody's
        return Operation(f"mlp step {batch}", "training", inputs, ours, theirs, work, "TFLOP/s", bounds, 5e-2, updates=(2,))
    return Operation(f"mlp {part} {batch}", "training", inputs, ours, theirs, work, "TFLOP/s", bounds, 5e-2)


def training(batches: tuple, on_cpu: bool) -> list[Operation]:
    bounds = {"torch": 0.7} if on_cpu else {}
    return [network(batch, part, bounds if part == "step" else {}) for batch in batches for part in ("loss", "gradients", "step")]


# ---- all of them --------------------------------------------------------------------------------------------------------------------

def on_gpu(total: int) -> list[Operation]:
    """total: elements of rows, of chains and of what is reduced."""
    return [*rows(total, False), *reductions(total, False), *losses(8192, False), *chains(total, False), *products(False),
            *optimisers(False), *embedding(50257, 1024, 16384, False), *training((32, 1024, 8192), False)]


def on_cpu(total: int) -> list[Operation]:
    return [*rows(total, True), *reductions(total, True), *losses(256, True), *chains(total, True), *products(True),
            *optimisers(True), *embedding(8192, 256, 4096, True), *training((32, 1024), True)]


def in_gigabytes(operations: list[Operation]) -> list[Operation]:
    """As processors are fast."""
    for operation in operations:
        operation.unit = operation.unit.replace("T", "G", 1)
    return operations


def chosen(operations: list[Operation], words: list[str], total: int) -> list[Operation]:
    """Those of a group, those whose name is or begins with a word, and those that a word spells out."""
    found = [o for o in operations if not words or any(o.group == w or o.name == w or o.name.split(" ")[0] == w for w in words)]
    return found + [of_word(w, total) for w in words if ":" in w]
