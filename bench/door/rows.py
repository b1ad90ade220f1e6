"""What is timed: rows, each the same work as one writes it for several libraries.

A statement names its inputs, and its library: `hg`; `F` (hologram_torch.functional); `torch`; `np` (NumPy, CuPy or jax.numpy). What is
more than an expression is a function of the library and the inputs. Sizes go by the backend, so that a large result is larger than
any cache."""

from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np

Work = str | Callable[..., Any]


@dataclass
class Input:
    shape: tuple[int, ...]
    kind: str = "f32"      # f32, f64, bf16 or i64; "order": 0, 1, 2, ... as f32, no two alike, in an order drawn by lot
    below: int = 0         # of i64: numbers from 0 to this
    spread: float = 1.0

    def values(self, seed: int) -> np.ndarray:
        generator = np.random.default_rng(seed)
        if self.kind == "order":
            return generator.permutation(int(np.prod(self.shape))).astype(np.float32).reshape(self.shape)
        if self.kind == "i64":
            return generator.integers(0, self.below, self.shape)
        kind = np.float64 if self.kind == "f64" else np.float32
        return generator.standard_normal(self.shape, dtype=kind) * kind(self.spread)


@dataclass
class Row:
    """The work in each library; None: it is left out there."""
    inputs: dict[str, Input]
    hg: Work | None
    torch: Work
    functional: Work | None = None
    np: Work | None = None
    backends: tuple[str, ...] = ("cpu", "cuda")
    # "tolerance": how far results may be apart, relative to the largest. "size_by_values": the result's size goes
    # by the inputs' values. "new_shapes": each call has other numbers of rows and columns of the input than all
    # before it, as texts and batches have them. "new_numbers": each call has the next integer, t, as a loop has it.
    options: dict[str, Any] = field(default_factory=dict)
    flop: float = 0        # of what arithmetic limits; 0: the limit are the bytes of the inputs and results


# ---- more than an expression ------------------------------------------------------------------------------------------------------

def layer_norm_step(hg, x, w, b):
    return hg.grad(lambda x, w, b: hg.sum(hg.layer_norm(x, w, b) ** 2), argnums=(0, 1, 2))(x, w, b)


def layer_norm_step_torch(torch, x, w, b):
    leaves = [v.detach().requires_grad_() for v in (x, w, b)]
    torch.nn.functional.layer_norm(leaves[0], x.shape[-1:], *leaves[1:]).square().sum().backward()
    return [v.grad for v in leaves]


def deterministic(torch, function, *arguments):
    was = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        return function(*arguments)
    finally:
        torch.use_deterministic_algorithms(was)


def index_add_deterministic(torch, t, i, x):
    return deterministic(torch, torch.index_add, t, 0, i, x)


def scatter_add_deterministic(torch, t, i, x):
    return deterministic(torch, torch.scatter_add, t, 0, i, x)


def adam_by_hand(_, w, g, m, v, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * (v * v) + 0.001 * (g * g)
    return [w - 0.01 * 0.999**t * (m / (1 - 0.9**t)) / ((v / (1 - 0.999**t)) ** 0.5 + 1e-8), m, v]


def mlp_step(hg, x, labels, w1, b1, w2, b2):
    def loss(w1, b1, w2, b2):
        return hg.cross_entropy(hg.linear(hg.relu(hg.linear(x, w1, b1)), w2, b2), labels)
    weights = (w1, b1, w2, b2)
    return [w - 0.1 * g for w, g in zip(weights, hg.grad(loss, argnums=(0, 1, 2, 3))(*weights))]


def mlp_step_torch(torch, x, labels, *weights):
    nn = torch.nn.functional
    leaves = [w.detach().requires_grad_() for w in weights]
    nn.cross_entropy(nn.linear(nn.relu(nn.linear(x, *leaves[:2])), *leaves[2:]), labels).backward()
    with torch.no_grad():
        return [w - 0.1 * w.grad for w in leaves]


def fast(function: str) -> dict[str, Work]:
    """linear and a function of it with fast numerics, in all libraries that have such a scope."""
    def on_arrays(hg, x, w, b):
        with hg.numerics("fast"):
            return getattr(hg, function)(hg.linear(x, w, b))

    def on_tensors(torch, x, w, b):
        import hologram as hg
        from hologram_torch import functional
        with hg.numerics("fast"):
            return getattr(functional, function)(functional.linear(x, w, b))
    return {"hg": on_arrays, "functional": on_tensors}


GPT_HEADS = 12


def gpt_inputs(batch: int, length: int, width: int) -> dict[str, Input]:
    """A block of a language model: rows of `width` numbers, `length` of them a text."""
    def weights(*shape):
        return Input(shape, spread=0.02)
    return {"x": Input((batch, length, width)), "w1": Input((width,)), "b1": Input((width,)), "w_in": weights(3 * width, width),
            "w_out": weights(width, width), "w2": Input((width,)), "b2": Input((width,)), "w_up": weights(4 * width, width),
            "w_down": weights(width, 4 * width)}


def gpt_block(hg, x, w1, b1, w_in, w_out, w2, b2, w_up, w_down):
    batch, length, width = x.shape
    parts = hg.linear(hg.layer_norm(x, w1, b1), w_in).reshape((batch, length, 3, GPT_HEADS, width // GPT_HEADS))
    q, k, v = (parts[:, :, i].permute((0, 2, 1, 3)) for i in range(3))
    place = hg.arange(length)
    scores = hg.where(place[:, None] >= place, (q @ k.permute((0, 1, 3, 2))) * (width // GPT_HEADS) ** -0.5, -hg.inf)
    x = x + hg.linear((hg.softmax(scores) @ v).permute((0, 2, 1, 3)).reshape((batch, length, width)), w_out)
    return x + hg.linear(hg.gelu(hg.linear(hg.layer_norm(x, w2, b2), w_up)), w_down)


def gpt_block_torch(torch, x, w1, b1, w_in, w_out, w2, b2, w_up, w_down):
    nn = torch.nn.functional
    batch, length, width = x.shape
    parts = nn.linear(nn.layer_norm(x, (width,), w1, b1), w_in).view(batch, length, 3, GPT_HEADS, width // GPT_HEADS)
    q, k, v = (parts[:, :, i].transpose(1, 2) for i in range(3))
    mixed = nn.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + nn.linear(mixed.transpose(1, 2).reshape(batch, length, width), w_out)
    return x + nn.linear(nn.gelu(nn.linear(nn.layer_norm(x, (width,), w2, b2), w_up)), w_down)


def conjugate_gradients(library, a, b):
    """Twenty steps, of a matrix that is made positive: each a product and five operations on vectors."""
    x, rest, way = b * 0.0, b, b
    square = rest @ rest
    for _ in range(20):
        along = a @ (way @ a) + way
        step = square / (way @ along)
        x, rest = x + step * way, rest - step * along
        now = rest @ rest
        way, square = rest + now / square * way, now
    return x


def assign_elements(library, x):
    """x[i] = value, which a loop of a thousand does to a copy."""
    x = x + 0
    for i in range(1000):
        x[i] = 1.5
    return x


def iterate(library, x):
    """Reads each element as a number."""
    total = 0.0
    for value in x:
        total += float(value)
    return x * total


def group_mean(np, k, x):
    places = np.unique(k, return_inverse=True)[1]
    return np.bincount(places, x) / np.bincount(places)


def group_mean_torch(torch, k, x):
    keys, places = torch.unique(k, return_inverse=True)
    return torch.zeros(keys.shape, device=x.device).scatter_reduce_(0, places, x, "mean", include_self=False)


def gpt_step(hg, x, *weights):
    return hg.grad(lambda *w: hg.mean(gpt_block(hg, x, *w) ** 2), argnums=tuple(range(len(weights))))(*weights)


def gpt_step_torch(torch, x, *weights):
    leaves = [w.detach().requires_grad_() for w in weights]
    gpt_block_torch(torch, x, *leaves).square().mean().backward()
    return [w.grad for w in leaves]


CHAIN = "((((x * y + x) * 1.1 - y) * x + 0.5) * y - x) * 0.25 + y * x"


def rows(backend: str) -> dict[str, Row]:
    is_gpu = backend == "cuda"
    many, side = (1 << 28, 4096) if is_gpu else (1 << 24, 1024)
    half = many >> 1

    def matrix(columns: int, count: int = many) -> Input:
        return Input((count // columns, columns))

    def vector(count: int) -> Input:
        return Input((count,))

    counted = 1 << 24 if is_gpu else 1_000_000

    def numbers(below: int) -> Input:
        return Input((counted,), "i64", below)

    layer = {"x": Input((8192, 768), "bf16"), "w": Input((3072, 768), "bf16", spread=0.03), "b": Input((3072,), "bf16")}
    found = {
        "abs": Row({"x": vector(many)}, "hg.abs(x)", "torch.abs(x)", "F.abs(x)", "np.abs(x)"),
        "add 1K": Row({"x": vector(1024), "y": vector(1024)}, "x + y", "x + y", "F.add(x, y)", "x + y"),
        "chain of eight 1K": Row({"x": vector(1024), "y": vector(1024)}, "((x * y + x) * 1.1 - y).minimum(3.0).maximum(-2.0) * x + 0.5",
                                 "((x * y + x) * 1.1 - y).clamp_max(3.0).clamp_min(-2.0) * x + 0.5", None,
                                 "np.maximum(np.minimum((x * y + x) * 1.1 - y, 3.0), -2.0) * x + 0.5"),
        "softmax 1K": Row({"x": Input((8, 128))}, "hg.softmax(x)", "torch.softmax(x, -1)", "F.softmax(x, -1)"),
        "linear 1K": Row({"x": Input((8, 128)), "w": Input((128, 128)), "b": vector(128)}, "hg.linear(x, w, b)",
                         "torch.nn.functional.linear(x, w, b)", "F.linear(x, w, b)"),
        "layer_norm 1K": Row({"x": Input((8, 128)), "w": vector(128), "b": vector(128)}, "hg.layer_norm(x, w, b)",
                             "torch.nn.functional.layer_norm(x, (128,), w, b)", "F.layer_norm(x, (128,), w, b)"),
        "from_dlpack 1K": Row({"x": vector(1024)}, None, "torch.from_dlpack(x)", "hg.from_dlpack(x)"),
        "there and back 1K": Row({"x": vector(1024)}, None, "torch.from_dlpack(torch.from_dlpack(x))",
                                 "torch.from_dlpack(hg.from_dlpack(x))"),
        "softmax, rows of 4096": Row({"x": matrix(4096)}, "hg.softmax(x)", "torch.softmax(x, -1)", "F.softmax(x, -1)"),
        **{f"softmax bf16, rows of {n}": Row({"x": Input((half // n, n), "bf16")}, "hg.softmax(x)", "torch.softmax(x, -1)",
                                             "F.softmax(x, -1)", options={"tolerance": 2e-2}) for n in (64, 256)},
        **{f"layer_norm, rows of {n}": Row({"x": matrix(n), "w": vector(n), "b": vector(n)}, "hg.layer_norm(x, w, b)",
                                           "torch.nn.functional.layer_norm(x, w.shape, w, b)", "F.layer_norm(x, tuple(w.shape), w, b)")
           for n in (65536, 131072)},
        **{f"layer_norm forward and backward, rows of {n}": Row({"x": matrix(n, half), "w": vector(n), "b": vector(n)},
                                                                layer_norm_step, layer_norm_step_torch) for n in (1024, 4096, 16384)},
        "var along columns": Row({"x": matrix(1024)}, "hg.var(x, 0)", "torch.var(x, 0, correction=0)", None, "np.var(x, 0)"),
        "logsumexp, rows of 4096": Row({"x": matrix(4096)}, "hg.logsumexp(x, -1)", "torch.logsumexp(x, -1)"),
        "embedding": Row({"t": Input((50000, 256)), "i": Input((half // 256,), "i64", 50000)}, "hg.embedding(t, i)",
                         "torch.nn.functional.embedding(i, t)", "F.embedding(i, t)", "t[i]"),
        "normal": Row({}, f"hg.random.normal(hg.random.key(7), ({half},))", f"torch.randn({half}, device=DEVICE)"),
        "cumulative sum": Row({"x": vector(half)}, "hg.array_api.cumulative_sum(x)", "torch.cumsum(x, 0)", None, "np.cumsum(x)",
                              options={"tolerance": 1e-2}),
        "mask": Row({"x": vector(half)}, "x[x > 0]", "x[x > 0]", None, "x[x > 0]", options={"size_by_values": True}),
        "nonzero": Row({"x": vector(half)}, "hg.flatnonzero(x > 0)", "torch.nonzero(x > 0)[:, 0]", None, "np.flatnonzero(x > 0)",
                       options={"size_by_values": True}),
        "sort": Row({"x": vector(many >> 4)}, "hg.array_api.sort(x)", "torch.sort(x)[0]", None, "np.sort(x)"),
        "argsort": Row({"x": Input((many >> 4,), "order")}, "hg.array_api.argsort(x)", "torch.argsort(x, stable=True)", None,
                       "np.argsort(x)"),
        "top five of rows": Row({"x": Input((200, 5000), "order")}, "hg.argtop_k(x, 5)", "torch.topk(x, 5)[1]",
                                "F.topk(x, 5)[1]", "np.argsort(-x)[:, :5]"),
        "top two of eight": Row({"x": Input((100_000, 8), "order")}, "hg.argtop_k(x, 2)", "torch.topk(x, 2)[1]"),
        "top fifty of a vocabulary": Row({"x": Input((32, 128_256), "order")}, "hg.argtop_k(x, 50)", "torch.topk(x, 50)[1]"),
        "median of rows": Row({"x": Input((200, 5000), "order")}, "hg.median(x, 1)", "torch.quantile(x, 0.5, 1)", None, "np.median(x, 1)"),
        "searchsorted": Row({"x": vector(1000), "v": vector(half >> 4)}, "hg.searchsorted(hg.sort(x), v)",
                            "torch.searchsorted(torch.sort(x)[0], v)", None, "np.searchsorted(np.sort(x), v)"),
        "unique": Row({"x": Input((many >> 8,), "i64", 1000)}, "hg.array_api.unique_values(x)", "torch.unique(x)", None, "np.unique(x)",
                      options={"size_by_values": True}),
        "bincount": Row({"i": numbers(1000)}, "hg.bincount(i)", "torch.bincount(i)", None, "np.bincount(i)"),
        "histogram": Row({"x": vector(counted)}, "hg.histogram(x, 100)[0]", "torch.histc(x, 100)", None, "np.histogram(x, 100)[0]",
                         options={"tolerance": 1e-3}),  # torch's edges are rounded otherwise
        "group-by mean": Row({"k": numbers(1000), "x": vector(counted)}, "hg.group(k).mean(x)", group_mean_torch, None, group_mean,
                             options={"tolerance": 1e-3}),
        "confusion matrix": Row({"i": numbers(100), "k": numbers(100)}, "hg.confusion_matrix(i, k, classes=100)",
                                "torch.bincount(i * 100 + k, minlength=10000).view(100, 100)", None,
                                "np.bincount(i * 100 + k, minlength=10000).reshape(100, 100)"),
        "chain of eleven": Row({"x": vector(half), "y": vector(half)}, CHAIN, CHAIN, None, CHAIN),
        **{f"permute, inner run of {4 * shape[-1]} bytes": Row({"x": Input(shape)}, f"x.permute({order}) + 0",
                                                               f"x.permute({order}).contiguous()")
           for shape, order in (((side, many // side // 4, 4), (1, 0, 2)), ((many // side // 32, 32, side // 32, 32), (0, 2, 1, 3)))},
        "sum": Row({"x": vector(many)}, "hg.sum(x)", "torch.sum(x)", None, "np.sum(x)", options={"tolerance": 1e-3}),
        "flip": Row({"x": vector(half)}, "hg.flip(x, 0)", "torch.flip(x, (0,))", None, "np.flip(x, 0) + 0"),
        "max of 10M": Row({"x": vector(10_000_000)}, "hg.max(x)", "torch.max(x)", None, "np.max(x)"),
        "sum of 10M": Row({"x": vector(10_000_000)}, "hg.sum(x)", "torch.sum(x)", None, "np.sum(x)", options={"tolerance": 1e-3}),
        "transpose": Row({"x": Input((side, side))}, "x.T + 0", "x.T.contiguous()", None, "np.ascontiguousarray(x.T)"),
        "roll": Row({"x": vector(half >> 3)}, "hg.roll(x, 1000)", "torch.roll(x, 1000)", None, "np.roll(x, 1000)"),
        **{f"joined rows of {n} and {n}": Row({"x": Input((1024, n)), "y": Input((1024, n))}, "hg.concatenate([x, y], 1)",
                                              "torch.cat([x, y], 1)", None, "np.concatenate([x, y], 1)") for n in (32, 512)},
        "elements in turn": Row({"x": vector(half >> 4), "y": vector(half >> 4)}, "hg.stack([x, y], -1)", "torch.stack([x, y], -1)", None,
                                "np.stack([x, y], -1)"),
        "assign elements": Row({"x": vector(1000)}, assign_elements, assign_elements, None, assign_elements, backends=("cpu",)),
        "iterate": Row({"x": vector(1000)}, iterate, iterate, None, iterate, backends=("cpu",), options={"tolerance": 1e-3}),
        "conjugate gradients": Row({"x": Input((1000, 1000), spread=0.02), "y": vector(1000)}, conjugate_gradients, conjugate_gradients,
                                   None, conjugate_gradients, options={"tolerance": 1e-3}),
        "index_add": Row({"t": Input((50000, 256)), "i": Input((half // 256,), "i64", 50000), "x": Input((half // 256, 256))},
                         "t.at[i].add(x)", "torch.index_add(t, 0, i, x)", options={"tolerance": 1e-3}),
        **{f"index_add, rows of 64 to {n} of 65536 places{how}": Row(
            {"t": Input((1 << 16, 64)), "i": Input((1 << 18,), "i64", n), "x": Input((1 << 18, 64))},
            "hg.index_add(t, i, x)", work, options={"tolerance": 1e-3})
           for n in (1 << 16, 1) for how, work in (("", "torch.index_add(t, 0, i, x)"), (", deterministic", index_add_deterministic))},
        **{f"scatter_add of 1M to {below} of {n} places{how}": Row(
            {"t": vector(n), "i": Input((1 << 20,), "i64", below), "x": vector(1 << 20)},
            "hg.scatter_add(t, i, x)", work, None, np_work, options={"tolerance": 1e-3})
           for n, below in ((1 << 20, 1 << 20), (1000, 1000), (1000, 1)) for how, work, np_work in (
               ("", "torch.scatter_add(t, 0, i, x)", "t + np.bincount(i, x, len(t)).astype(t.dtype)"),
               (", deterministic", scatter_add_deterministic, None))},
        "scatter_reduce amax of 1M to 1M places": Row({"t": vector(1 << 20), "i": Input((1 << 20,), "i64", 1 << 20), "x": vector(1 << 20)},
                                                      "hg.scatter_max(t, i, x)", "torch.scatter_reduce(t, 0, i, x, 'amax')"),
        "matvec": Row({"x": Input((side, side)), "y": vector(side)}, "x @ y", "x @ y", "F.matvec(x, y)", "x @ y",
                      options={"tolerance": 1e-3}),
        **{f"matvec {kind} {n}": Row({"x": Input((n, n), kind), "y": Input((n,), kind)}, "x @ y", "x @ y", "F.matvec(x, y)", "x @ y",
                                    options={"tolerance": 1e-3}) for kind in ("f32", "f64") for n in (200, 1000, 4000)},
        "product of two vectors": Row({"x": vector(1 << 20), "y": vector(1 << 20)}, "hg.dot(x, y)", "torch.dot(x, y)", None, "x @ y",
                                      options={"tolerance": 1e-3}),
        "least and greatest": Row({"x": vector(10_000_000)}, lambda hg, x: (hg.min(x), hg.max(x)),
                                  lambda torch, x: torch.aminmax(x), None, lambda np, x: (np.min(x), np.max(x))),
        "vector and matrix": Row({"x": vector(1000), "y": Input((1000, 1000))}, "x @ y", "x @ y", None, "x @ y",
                                 options={"tolerance": 1e-3}),
        **{f"matmul, {m} row{'s' * (m > 1)}": Row({"x": Input((m, side)), "y": Input((side, side))}, "x @ y", "x @ y", "F.matmul(x, y)",
                                                  "x @ y", options={"tolerance": 1e-3}, flop=0 if m < 32 else 2 * m * side**2)
           for m in (1, 8, 64, 128)},
        "1000 products of 16 x 16": Row({"x": Input((1000, 16, 16)), "y": Input((1000, 16, 16))}, "x @ y", "x @ y", None, "x @ y"),
        **{f"matmul {n}": Row({"x": Input((n, n)), "y": Input((n, n))}, "x @ y", "x @ y", "F.matmul(x, y)", "x @ y",
                              options={"tolerance": 1e-3}, flop=2 * n**3) for n in ((2048, 4096, 8192) if is_gpu else (1024,))},
        **{f"conv {k}x{k}, {c} channels, {n}": Row(
            {"x": Input((32 if is_gpu else 8, c, n, n)), "w": Input((c, c, k, k), spread=0.1)},
            f"hg.conv2d(x, w, padding={k // 2})", f"torch.nn.functional.conv2d(x, w, padding={k // 2})",
            f"F.conv2d(x, w, padding={k // 2})",
            options={"tolerance": 1e-3}, flop=2 * (32 if is_gpu else 8) * (c * n * k) ** 2)
           for k, c, n in ((3, 64, 56), (3, 128, 28), (3, 256, 28), (1, 64, 56))},
        "linear, gelu bf16": Row(layer, "hg.gelu(hg.linear(x, w, b))",
                                 "torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))",
                                 "F.gelu(F.linear(x, w, b))", backends=("cuda",), options={"tolerance": 2e-2}),
        "linear, gelu bf16, fast": Row(layer, torch="torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))", **fast("gelu"),
                                       backends=("cuda",), options={"tolerance": 2e-2}),
        "linear, gelu_tanh bf16, fast": Row(layer, **fast("gelu_tanh"), backends=("cuda",), options={"tolerance": 2e-2},
                                            torch="torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b), approximate='tanh')"),
        "GPT block": Row(gpt_inputs(4 if is_gpu else 1, 1024 if is_gpu else 128, 768), gpt_block, gpt_block_torch,
                         options={"tolerance": 1e-3}),
        "GPT block, forward and backward": Row(gpt_inputs(4 if is_gpu else 1, 1024 if is_gpu else 128, 768), gpt_step, gpt_step_torch,
                                               options={"tolerance": 1e-3}),
        "new shapes, norm of rows": Row({"x": Input((1000, 1600))}, "hg.norm(x, -1)", "torch.linalg.norm(x, dim=-1)", None,
                                         "np.linalg.norm(x, axis=-1)", options={"new_shapes": True}),
        "new shapes, softmax": Row({"x": Input((1000, 1600))}, "hg.softmax(x)", "torch.softmax(x, -1)", "F.softmax(x, -1)",
                                    options={"new_shapes": True}),
        "new numbers, Adam by hand": Row({"w": Input((64, 64)), "g": Input((64, 64)), "m": Input((64, 64)), "v": Input((64, 64))},
                                         adam_by_hand, adam_by_hand, None, adam_by_hand, options={"new_numbers": True}),
        "MLP step": Row({"x": Input((64, 64)), "labels": Input((64,), "i64", 10), "w1": Input((128, 64), spread=0.1), "b1": vector(128),
                         "w2": Input((10, 128), spread=0.1), "b2": vector(10)}, mlp_step, mlp_step_torch),
    }
    return {name: row for name, row in found.items() if backend in row.backends}
