"""A tour of both packages as programs for Hologram SDK 0.1 use them: executors, buffers, operations on buffers, PyTorch.

    python examples/python/tour.py          (the part on hologram_torch wherever PyTorch is installed)"""

import sys

import numpy as np
from common import digest, main, require, same_bits

import hologram as hg

COUNT = 1024
X, Y = np.random.default_rng(0).standard_normal((2, COUNT)).astype(np.float32)

# Operations that round once, and NumPy's: the same bits. Each is called with executor, inputs, output.
EXACT = {"vector_add": np.add, "vector_sub": np.subtract, "vector_mul": np.multiply, "vector_div": np.divide,
         "vector_min": np.minimum, "vector_max": np.maximum, "vector_abs": np.abs, "vector_neg": np.negative,
         "vector_relu": lambda x: np.maximum(x, np.float32(0))}
# Functions: within some roundings of f64.
CLOSE = {"vector_exp": np.exp, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
         "softmax": lambda x: np.exp(x - x.max()) / np.exp(x - x.max()).sum()}


def backends():
    """The best backend that is here. One that is not says why."""
    print(f"  default backend: {hg.get_default_backend()}; CUDA: {hg.is_cuda_available()}, Metal: {hg.is_metal_available()}")
    for name in ("cuda", "metal", "cpu"):
        try:
            with hg.Executor(backend=name) as executor:
                print(f"  {executor.backend} is what this machine offers")
                return
        except hg.Error as error:
            print(f"  {name}: {error}")


def buffers(executor):
    """Memory of the executor: what goes in and out is copied, and what np.asarray gives is shared."""
    a, b, c = (executor.allocate(COUNT, dtype=np.float32) for _ in range(3))
    a.from_numpy(X)
    b.from_bytes(Y.tobytes())
    hg.ops.vector_add(executor, a, b, c)
    same_bits("vector_add", c.to_numpy(), X + Y)
    c.fill(0)
    hg.ops.vector_add(executor, a, b, c, 10)  # only the first ten
    require(not c.to_numpy()[10:].any(), "vector_add wrote more than ten elements")
    c.copy_from(a)
    require(c.to_list() == X.tolist() and len(c) == COUNT, "a copy is another")
    for buffer in (a, b, c):
        buffer.free()


def operations(executor):
    """Each operation on buffers; its results by name."""
    x, y, out, one = (executor.allocate(n) for n in (COUNT, COUNT, COUNT, 1))
    x.from_numpy(X)
    y.from_numpy(Y)
    results = {}
    for name in EXACT | CLOSE:
        takes_two = EXACT.get(name) in (np.add, np.subtract, np.multiply, np.divide, np.minimum, np.maximum)
        getattr(hg.ops, name)(executor, x, *([y] if takes_two else []), out)
        results[name] = out.to_numpy()
    hg.ops.vector_clip(executor, x, out, -0.5, 0.5)
    results["vector_clip"] = out.to_numpy()
    hg.ops.reduce_sum(executor, x, one)
    results["reduce_sum"] = one.to_numpy()
    hg.ops.mse_loss(executor, x, y, one)
    results["mse_loss"] = one.to_numpy()
    return results


def with_torch(executor):
    """The other package: functions and layers on PyTorch's tensors, inside any module."""
    try:
        import torch

        import hologram_torch as hg_torch
    except ImportError:
        return "PyTorch is not installed: its part is left out"
    a, b = torch.from_numpy(X), torch.from_numpy(Y)
    same_bits("functional.add", hg_torch.functional.add(executor, a, b).numpy(), X + Y)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = hg_torch.nn.Linear(executor, 16, 8)
            self.last = hg_torch.nn.Linear(8, 1)  # works where its input is

        def forward(self, x):
            return self.last(hg_torch.functional.relu(executor, self.linear(x)))

    torch.manual_seed(0)
    model = Model()
    inputs = a.reshape(64, 16)
    batches = [(part, part.sum(1, keepdim=True)) for part in inputs.split(16)]
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    rows = hg_torch.training.fit(model, hg_torch.functional.mse_loss, optimizer, batches, epochs=30, progress=False)
    require(rows[-1]["loss"] < 0.2 * rows[0]["loss"], "the model does not learn")
    buffer = hg_torch.tensor_to_buffer(a, executor)
    require(torch.equal(hg_torch.buffer_to_tensor(buffer).cpu(), a), "a tensor comes back changed")
    return f"PyTorch {torch.__version__}: a model learns, loss {rows[0]['loss']:.3f} to {rows[-1]['loss']:.3f}"


def compute(quick):
    backends()
    executor = hg.default_executor()
    buffers(executor)
    results = operations(executor)
    return {"hash": digest(results.values()), "results": results,
            "text": f"  {len(results)} operations on buffers of {COUNT} floats" + ("" if quick else f"\n  {with_torch(executor)}")}


def check(result, quick):
    results, wide = result["results"], X.astype(np.float64)
    for name, numpys in EXACT.items():
        same_bits(name, results[name], numpys(X, Y) if isinstance(numpys, np.ufunc) and numpys.nin == 2 else numpys(X))
    same_bits("vector_clip", results["vector_clip"], np.clip(X, np.float32(-0.5), np.float32(0.5)))
    pairs = [(results[name], numpys(wide)) for name, numpys in CLOSE.items()]
    pairs += [(results["mse_loss"], [((wide - Y) ** 2).mean()])]
    off = max(np.abs(ours / numpys - 1).max() for ours, numpys in pairs)
    require(off < 1e-6, f"a function is {off} of its value away from NumPy's")
    require(abs(results["reduce_sum"][0] - wide.sum()) < 1e-6 * np.abs(wide).sum(), "reduce_sum is away from NumPy's")
    return f"same bits as NumPy where both round once; functions within {off:.1g} of f64 (bound: 1e-6)"


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, lambda result: {}))
