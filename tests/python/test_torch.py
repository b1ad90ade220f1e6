"""hologram_torch: results beside PyTorch's, gradients of every order against differences, layers that exchange state dicts, memory
that is shared, and training that goes on from a checkpoint."""

import copy
import itertools
import math
import re
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")

import hologram as hg  # noqa: E402
import hologram_torch as hg_torch  # noqa: E402

F = hg_torch.functional
NN = hg_torch.nn


def tensor(*shape, seed=0, kind=torch.float64, low=-2.0, high=2.0, follows=True):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.rand(shape, generator=generator, dtype=kind) * (high - low) + low).requires_grad_(follows)


class Sub(torch.Tensor):
    pass


def followed(x):
    return isinstance(x, torch.Tensor) and x.is_floating_point()


X = tensor(3, 4)
CLASSES = torch.tensor([1, 3, 0])
POSITIVE = tensor(4, low=0.5, follows=False)
CASES = {
    "add": (F.add, torch.add, [X, tensor(4)]),
    "sub": (F.sub, torch.sub, [X, tensor(3, 1)]),
    "mul": (F.mul, torch.mul, [X, tensor(4)]),
    "div": (F.div, torch.div, [X, tensor(4, low=0.5)]),
    "number": (lambda x: F.mul(x, 3.0), lambda x: x * 3, [X]),
    "relu": (F.relu, torch.relu, [X]),
    "sigmoid": (F.sigmoid, torch.sigmoid, [X]),
    "tanh": (F.tanh, torch.tanh, [X]),
    "silu": (F.silu, torch.nn.functional.silu, [X]),
    "gelu": (F.gelu, torch.nn.functional.gelu, [X]),
    "gelu of tanh": (lambda x: F.gelu(x, approximate="tanh"), lambda x: torch.nn.functional.gelu(x, approximate="tanh"), [X]),
    "softmax": (F.softmax, lambda x: torch.softmax(x, -1), [X]),
    "softmax of columns": (lambda x: F.softmax(x, dim=0), lambda x: torch.softmax(x, 0), [X]),
    "log_softmax": (F.log_softmax, lambda x: torch.log_softmax(x, -1), [X]),
    "cumsum": (lambda x: F.cumsum(x, 1), lambda x: torch.cumsum(x, 1), [X]),
    "cumsum of columns": (lambda x: F.cumsum(x, dim=0), lambda x: torch.cumsum(x, 0), [X]),
    "cumprod": (lambda x: F.cumprod(x, 1), lambda x: torch.cumprod(x, 1), [X]),
    "cummax": (lambda x: F.cummax(x, 0)[0], lambda x: torch.cummax(x, 0)[0], [X]),
    "cummin": (lambda x: F.cummin(x, 1).values, lambda x: torch.cummin(x, 1).values, [X]),
    "logcumsumexp": (lambda x: F.logcumsumexp(x, 1), lambda x: torch.logcumsumexp(x, 1), [X]),
    "matmul": (F.matmul, torch.matmul, [X, tensor(2, 4, 5)]),
    "linear": (F.linear, torch.nn.functional.linear, [X, tensor(5, 4), tensor(5)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, 4, w, b), lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b),
                   [X, tensor(4), tensor(4, seed=1)]),
    "layer_norm of bias": (lambda x, b: F.layer_norm(x, 4, None, b), lambda x, b: torch.nn.functional.layer_norm(x, (4,), None, b),
                           [X, tensor(4)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, [3, 4], w), lambda x, w: torch.nn.functional.rms_norm(x, (3, 4), w), [X, tensor(3, 4, seed=2)]),
    "embedding": (lambda w: F.embedding(CLASSES, w), lambda w: torch.nn.functional.embedding(CLASSES, w),
                  [X.detach().T.clone().requires_grad_()]),
    "mse_loss": (F.mse_loss, torch.nn.functional.mse_loss, [X, tensor(3, 4, seed=3)]),
    "l1_loss": (F.l1_loss, torch.nn.functional.l1_loss, [X, tensor(3, 4, seed=3)]),
    "huber_loss": (F.huber_loss, torch.nn.functional.huber_loss, [X, tensor(3, 4, seed=3)]),
    "sum of squares": (lambda x, y: F.mse_loss(x, y, reduction="sum"), lambda x, y: torch.nn.functional.mse_loss(x, y, reduction="sum"),
                       [X, tensor(3, 4, seed=3)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, CLASSES), lambda x: torch.nn.functional.cross_entropy(x, CLASSES), [X]),
    "cross_entropy smoothed": (
        lambda x: F.cross_entropy(x, CLASSES, torch.arange(1.0, 5.0, dtype=x.dtype), label_smoothing=0.1, ignore_index=3),
        lambda x: torch.nn.functional.cross_entropy(x, CLASSES, torch.arange(1.0, 5.0, dtype=x.dtype), label_smoothing=0.1, ignore_index=3),
        [X]),
    "cross_entropy of images": (lambda x: F.cross_entropy(x, torch.ones(2, 5, dtype=torch.long)),
                                lambda x: torch.nn.functional.cross_entropy(x, torch.ones(2, 5, dtype=torch.long)), [tensor(2, 3, 5)]),
    "cross_entropy of shares": (lambda x, t: F.cross_entropy(x, t), torch.nn.functional.cross_entropy, [X, tensor(3, 4, seed=4, low=0.1)]),
    "nll_loss": (lambda x: F.nll_loss(x, CLASSES), lambda x: torch.nn.functional.nll_loss(x, CLASSES), [X]),
    "binary_cross_entropy": (F.binary_cross_entropy, torch.nn.functional.binary_cross_entropy,
                             [tensor(3, 4, low=0.1, high=0.9), tensor(3, 4, seed=5, low=0.1, high=0.9)]),
    "bce with logits": (lambda x, t: F.binary_cross_entropy_with_logits(x, t, pos_weight=POSITIVE),
                        lambda x, t: torch.nn.functional.binary_cross_entropy_with_logits(x, t, pos_weight=POSITIVE),
                        [X, tensor(3, 4, seed=5, low=0.1, high=0.9)]),
    "of the table": (lambda x: F.logsumexp(x, axis=1), lambda x: torch.logsumexp(x, 1), [X]),
}


@pytest.mark.parametrize("name", CASES)
def test_beside_torch(name):
    ours, theirs, tensors = CASES[name]
    own, right = ours(*tensors), theirs(*tensors)
    assert own.dtype == right.dtype and own.shape == right.shape and own.requires_grad
    torch.testing.assert_close(own, right, rtol=1e-12, atol=1e-12)
    weights = tensor(*own.shape, seed=9, follows=False)
    for a, b in zip(torch.autograd.grad((own * weights).sum(), tensors), torch.autograd.grad((right * weights).sum(), tensors)):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name):
    ours, _, tensors = CASES[name]
    assert torch.autograd.gradcheck(ours, tensors) and torch.autograd.gradgradcheck(ours, tensors)


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.bfloat16])
def test_types(kind):
    x, y = tensor(33, kind=kind, follows=False), tensor(33, seed=1, kind=kind, follows=False)
    assert torch.equal(F.add(x, y), x + y) and F.softmax(x).dtype == kind
    counts = torch.arange(5)
    assert torch.equal(F.add(counts, counts), counts + counts) and F.add(counts, counts).dtype == torch.int64
    assert torch.equal(F.add(x, torch.arange(33)), x + torch.arange(33))


P, Q = tensor(3, 70, kind=torch.float32, follows=False), tensor(3, 70, seed=1, kind=torch.float32, follows=False)
CALLS = {
    "two": (F.add, (P, Q), {}),
    "a number": (F.mul, (P, 2.5), {}),
    "a number first": (F.sub, (1, P), {}),
    "the same twice": (F.mul, (P, P), {}),
    "arguments": (F.clip, (P, -0.5), {"max": 0.5}),
    "named": (F.sum, (), {"x": P, "axis": 1, "keepdims": True}),
    "absent": (F.layer_norm, (P, 70), {"bias": Q[0]}),
    "other types": (F.where, (P > 0, P, Q), {}),
    "any number": (F.concatenate, (P, Q, P), {"axis": 0}),
    "a view of an argument": (F.reshape, (P, (70, 3)), {}),
    "strides": (F.exp, (P.T[1::2],), {}),
    "no elements": (F.exp, (P[:0],), {}),
    "many elements": (F.exp, (tensor(300, 300, kind=torch.float32, follows=False),), {}),
    "no axes": (F.exp, (torch.tensor(0.5),), {}),
    "several results": (F.adam, (P, Q, P, Q.abs(), 0.1, 1.0), {"eps": 0.5}),
}


@pytest.mark.parametrize("name", CALLS)
def test_every_way_gives_the_same_bits(name):
    """In C; with gradients not followed; by Python, as of a subclass; by an executor's arrays."""
    function, arguments, named = CALLS[name]
    held = [x for x in (*arguments, *named.values()) if isinstance(x, torch.Tensor)]
    counts = list(map(sys.getrefcount, held))
    first = function(*arguments, **named)
    assert list(map(sys.getrefcount, held)) == counts
    ways = [function(*arguments, executor=None, **named)]
    with torch.no_grad():
        ways.append(function(*(x.detach().requires_grad_() if followed(x) else x for x in arguments), **named))
    ways.append(function(*(x.as_subclass(Sub) if isinstance(x, torch.Tensor) else x for x in arguments), **named))
    with hg.Executor(backend="cpu") as executor:
        ways += [function(executor, *arguments, **named), function(*arguments, executor=executor, **named)]
    for way in ways:
        for own, right in zip(way, first) if isinstance(first, tuple) else [(way, first)]:
            assert torch.equal(own, right) and own.dtype == right.dtype and not own.requires_grad
    for x in held:
        for made in first if isinstance(first, tuple) else [first]:
            assert made.numel() == 0 or made.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


WRONG = {
    "shapes": (F.add, (P, torch.ones(4)), {}),
    "types": (F.bitwise_and, (P, torch.arange(70)), {}),
    "no operand": (F.add, (P, "text"), {}),
    "too few": (F.add, (P,), {}),
    "too many": (F.add, (P, Q, 1, 2), {}),
    "no such argument": (F.sum, (P,), {"frob": 1}),
    "an argument's type": (F.sum, (P,), {"axis": "x"}),
    "numbers": (F.add, (torch.arange(3, dtype=torch.uint8), 300), {}),
    "a fault": (F.embedding, (torch.tensor([7]), P), {}),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_the_operation_s(name):
    function, arguments, named = WRONG[name]
    counts = list(map(sys.getrefcount, arguments))
    with pytest.raises(Exception) as short:
        function(*arguments, **named)
    with hg.Executor(backend="cpu") as executor, pytest.raises(Exception) as long:
        function(executor, *arguments, **named)
    assert type(short.value) is type(long.value) and str(short.value) == str(long.value)
    del short, long
    assert list(map(sys.getrefcount, arguments)) == counts and torch.equal(F.neg(P), -P)


def test_names_and_docstrings():
    assert F.add.__name__ == "add" and F.logsumexp.__doc__ == hg.logsumexp.__doc__ and F.softmax.__doc__ == hg.softmax.__doc__


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, -1])
def test_rows_of_tensors_without_axes(name, dim):
    x = torch.tensor(3.0, requires_grad=True)
    y = getattr(F, name)(x, dim)
    assert torch.equal(y, getattr(torch, name)(x, dim)) and torch.equal(torch.autograd.grad(y, x)[0], torch.tensor(0.0))
    with pytest.raises((IndexError, ValueError)):
        getattr(F, name)(x, 1)


def test_running_sums():
    """Types are torch's, and a tensor without axes is a row of one element."""
    for kind in (torch.bool, torch.uint8, torch.int32, torch.int64, torch.float32):
        x = torch.arange(600).remainder(7).to(kind)
        assert torch.equal(F.cumsum(x, 0), torch.cumsum(x, 0)) and F.cumsum(x, 0).dtype == torch.cumsum(x, 0).dtype
        for dtype in (torch.int16, torch.float64):
            assert torch.equal(F.cumsum(x, 0, dtype=dtype), torch.cumsum(x, 0, dtype=dtype))
    assert torch.equal(F.cumsum(torch.tensor(True), 0), torch.tensor(1)) and F.cumsum(torch.tensor(2.5), -1).item() == 2.5
    with hg.Executor(backend="cpu") as executor:
        assert torch.equal(F.cumsum(executor, torch.ones(3, 4), 1, dtype=torch.int32), torch.arange(1, 5).expand(3, 4).int())


def test_running_products():
    """Gradients where there are zeros, too: none, one, several, at the ends."""
    x = torch.tensor([[2.0, -3, 0.5, 4, 1], [2, 0, 3, 4, 5], [0, 2, 3, 0, 5], [0, 0, 0, 1, 0], [1, 2, 3, 4, 0]], dtype=torch.float64)
    for dim in (0, 1):
        own, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        weights = torch.linspace(-1, 2, 25, dtype=x.dtype).reshape(5, 5)
        (F.cumprod(own, dim) * weights).sum().backward()
        (torch.cumprod(theirs, dim) * weights).sum().backward()
        torch.testing.assert_close(own.grad, theirs.grad, rtol=1e-14, atol=1e-14)
    whole = torch.arange(1, 7).to(torch.uint8)
    assert torch.equal(F.cumprod(whole, 0), torch.cumprod(whole, 0)) and F.cumprod(whole, 0).dtype == torch.int64


@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_running_extremes(name):
    """Values and indices, with ties, infinities and NaNs, and gradients at them."""
    for kind in (torch.uint8, torch.int64, torch.float32, torch.float16, torch.bfloat16):
        x = torch.arange(3000).mul(7919).remainder(11).reshape(3, 1000).to(kind)
        if kind.is_floating_point:
            x[1, 500::77], x[2, 3], x[2, 800] = torch.nan, torch.inf, -torch.inf
        for dim in (0, 1):
            own, theirs = getattr(F, name)(x, dim), getattr(torch, name)(x, dim)
            assert type(own) is type(theirs) and torch.equal(own.indices, theirs.indices)
            torch.testing.assert_close(own.values, theirs.values, rtol=0, atol=0, equal_nan=True)
    x = torch.tensor([[1.0, 1, 0, 2, 2, -1, 2]])
    own, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
    weights = torch.arange(1.0, 8.0)
    (getattr(F, name)(own, 1)[0] * weights).sum().backward()
    (getattr(torch, name)(theirs, 1)[0] * weights).sum().backward()
    assert torch.equal(own.grad, theirs.grad)


def test_executor_first():
    x, y = tensor(1024, kind=torch.float32), tensor(1024, seed=1, kind=torch.float32)
    with hg.Executor(backend="cpu") as executor:
        assert torch.equal(F.add(executor, x, y), x + y)
        F.softmax(executor, x, -1).sum().backward()
        assert x.grad.abs().max() < 1e-6
        assert F.cross_entropy(executor, x.reshape(2, 512), torch.tensor([1, 2])).ndim == 0


def test_results_are_their_own():
    x = torch.arange(6.0)
    for made in (F.reshape(x, (2, 3)), F.clip(x), F.flip(x), F.dropout(x, 0.5)):
        made.fill_(-1)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]


def test_layouts():
    x = torch.arange(24.0).reshape(2, 3, 4)
    for view in (x.transpose(0, 2), x[:, ::2], x[1:], x[..., 1], x.expand(5, 2, 3, 4), torch.empty(0, 3), torch.tensor(2.5)):
        assert torch.equal(F.mul(view, view), view * view)
    assert F.neg(torch.randn(2, 3).T).shape == (3, 2)


def test_parameters_and_no_grad():
    layer = NN.Linear(4, 2)
    with torch.no_grad():
        assert not F.linear(torch.ones(3, 4), layer.weight, layer.bias).requires_grad
    assert F.linear(torch.ones(3, 4), layer.weight, layer.bias).requires_grad


def test_some_gradients_only():
    x, w = tensor(3, 4, follows=False), tensor(4)
    F.mul(x, w).sum().backward()
    torch.testing.assert_close(w.grad, x.sum(0))
    with pytest.raises(RuntimeError, match="grad"):
        F.mul(x, x).sum().backward()


LAYERS = {
    "Linear": ((8, 3), {}), "LayerNorm": (((8,),), {}), "RMSNorm": ((8,), {}), "ReLU": ((), {}), "Sigmoid": ((), {}), "Tanh": ((), {}),
    "SiLU": ((), {}), "GELU": ((), {"approximate": "tanh"}), "Softmax": ((), {"dim": -1}), "LogSoftmax": ((), {"dim": -1}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    arguments, named = LAYERS[name]
    with hg.Executor(backend="cpu") as executor:
        layers = [getattr(NN, name)(*arguments, **named), getattr(NN, name)(executor, *arguments, **named),
                  getattr(NN, name)(*arguments, backend="cpu", **named)]
        right = getattr(torch.nn, name)(*arguments, **named)
        x = torch.randn(5, 8)
        for layer in layers:
            layer.load_state_dict(right.state_dict())
            right.load_state_dict(layer.state_dict())
            torch.testing.assert_close(layer(x), right(x), rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(copy.deepcopy(layer)(x), right(x), rtol=1e-5, atol=1e-6)
    with pytest.raises(TypeError, match="one of them"):
        getattr(NN, name)(executor, *arguments, backend="cpu", **named)


def test_losses_as_layers():
    x, t = torch.rand(4, 5) * 0.8 + 0.1, torch.rand(4, 5) * 0.8 + 0.1
    for name in ("MSELoss", "BCELoss", "BCEWithLogitsLoss"):
        torch.testing.assert_close(getattr(NN, name)()(x, t), getattr(torch.nn, name)()(x, t))
    classes = torch.tensor([0, 4, -100, 2])
    own, right = (layers.CrossEntropyLoss(label_smoothing=0.1) for layers in (NN, torch.nn))
    torch.testing.assert_close(own(x, classes), right(x, classes))


def test_embedding():
    layer = NN.Embedding(10, 3)
    numbers = torch.tensor([[1, 9], [9, 0]])
    assert torch.equal(layer(numbers), layer.weight[numbers])
    layer(numbers).sum().backward()
    assert layer.weight.grad[9].tolist() == [2, 2, 2]
    with pytest.raises(hg.Fault):
        layer(torch.tensor([10]))
    with pytest.raises(NotImplementedError, match="torch.nn.Embedding"):
        NN.Embedding(10, 3, padding_idx=0)(numbers)


def test_dropout():
    x = torch.ones(10_000)
    torch.manual_seed(3)
    first = F.dropout(x, 0.25)
    assert abs((first == 0).float().mean() - 0.25) < 0.02 and math.isclose(first.max(), 1 / 0.75, rel_tol=1e-6)
    assert not torch.equal(F.dropout(x, 0.25), first)
    torch.manual_seed(3)
    assert torch.equal(F.dropout(x, 0.25), first)
    layer = NN.Dropout(0.25).eval()
    assert layer(x) is x
    assert not F.dropout(x, 1.0).any()
    for p in (1.5, -0.5, math.nan):
        with pytest.raises(ValueError, match="from 0 to 1"):
            F.dropout(x, p)


def test_memory_is_shared():
    t = torch.arange(6.0)
    array = hg_torch.as_array(t)
    t[0] = 7
    assert float(array[0]) == 7
    back = hg_torch.as_tensor(array)
    assert back.data_ptr() == t.data_ptr()
    with hg.Executor(backend="cpu") as executor:
        buffer = hg_torch.tensor_to_buffer(t.reshape(2, 3).T, executor)
        assert buffer.to_numpy().tolist() == [7, 3, 1, 4, 2, 5]
        view = hg_torch.buffer_to_tensor(buffer, (3, 2))
        view[0, 0] = 9
        assert buffer.to_numpy()[0] == 9


def test_memory_outlives_its_maker():
    made = F.add(torch.ones(1000), torch.ones(1000))
    tensors = [F.mul(made, float(i)) for i in range(100)]
    del made
    assert all(bool((t == 2 * i).all()) for i, t in enumerate(tensors))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.executor = hg.Executor(backend="auto")
        self.linear = NN.Linear(self.executor, 512, 256)
        self.relu = NN.ReLU()

    def forward(self, x):
        return F.relu(self.executor, self.linear(x))


def test_a_model():
    model = Model()
    model(torch.randn(32, 512)).sum().backward()
    assert model.linear.weight.grad.shape == (256, 512)


def small_problem():
    torch.manual_seed(0)
    x = torch.randn(64, 5)
    batches = [(x[i:i + 16], (x[i:i + 16] ** 2).sum(1, keepdim=True)) for i in range(0, 64, 16)]
    model = NN.Sequential(NN.Linear(5, 32), NN.GELU(), NN.Dropout(0.1), NN.Linear(32, 1))
    return model, torch.optim.Adam(model.parameters(), lr=0.01), batches


def test_training_goes_on_from_a_checkpoint(tmp_path, capsys):
    model, optimizer, batches = small_problem()
    rows = hg_torch.training.fit(model, F.mse_loss, optimizer, batches, epochs=6)
    assert rows[-1]["loss"] < rows[0]["loss"] and capsys.readouterr().err.count("epoch") == 6
    other, optimizer, batches = small_problem()
    seen = []
    hg_torch.training.fit(other, F.mse_loss, optimizer, batches, 3, checkpoint=tmp_path / "state.pt", progress=seen.append)
    again, optimizer, _ = small_problem()
    resumed = hg_torch.training.fit(again, F.mse_loss, optimizer, batches, 6, checkpoint=tmp_path / "state.pt", progress=seen.append)
    assert [row["epoch"] for row in seen] == [1, 2, 3, 4, 5, 6] and len(resumed) == 6
    for a, b in zip(model.parameters(), again.parameters()):
        assert torch.equal(a, b)  # bit for bit what six epochs at a stretch give
    with pytest.raises(ValueError, match="no batches"):
        hg_torch.training.fit(model, F.mse_loss, optimizer, [], progress=False)


def test_same_bits_beside_arrays():
    x = tensor(33, 70, kind=torch.float32, follows=False)
    assert np.array_equal(F.softmax(x).numpy(), hg.softmax(hg.asarray(x.numpy())).numpy())


def test_unknown_names():
    for name in ("frobnicate", "asarray", "Array", "_scalar", "__wrapped__"):
        with pytest.raises(AttributeError, match="no operation"):
            getattr(F, name)


def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    assert len(blocks) >= 3
    names = {}
    for block in blocks:
        exec(compile(block, "docs/pytorch.md", "exec"), names)


TYPES = [getattr(torch, name) for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64")]
PAIRS = {"maximum": torch.maximum, "less": torch.lt, "div": torch.div, "mul": torch.mul}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("ranks", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_types_are_torch_s(name, ranks):
    for a in TYPES:
        for b in TYPES:
            if a == b == torch.bool and name != "div":  # bools are no numbers here
                continue
            x, y = (torch.full((3,) * rank, 1, dtype=kind) for rank, kind in zip(ranks, (a, b)))
            for own in (getattr(F, name)(x, y), getattr(F, name)(x, b=y)):
                right = PAIRS[name](x, y)
                assert own.dtype == right.dtype and torch.equal(own, right), (a, b)


def test_gradients_go_through_casts():
    x, count = tensor(3, kind=torch.float32), torch.tensor([1, 2, 3])
    F.mul(x, count).sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [1, 2, 3]
    half, wide = tensor(3, kind=torch.float16), tensor(3, kind=torch.float64)
    F.mul(half, wide).sum().backward()
    assert half.grad.dtype == torch.float16 and torch.equal(half.grad, wide.detach().half())


@pytest.mark.parametrize("array", [
    lambda: hg.asarray(np.arange(6.0))[::-1], lambda: (hg.asarray(np.arange(6.0)) + 1).compute()[::-2],
    lambda: hg.asarray(np.arange(12.0).reshape(3, 4)[:, ::-1]), lambda: hg.asarray(np.arange(6.0)[::-1])])
def test_arrays_that_go_backwards(array):
    """torch has no strides below 0, and ends the process where it is given one: each way out is a copy."""
    x = array()
    right = np.asarray(x)
    for tensor in (hg_torch.as_tensor(x), torch.from_dlpack(x), torch.from_dlpack(x.__dlpack__(max_version=(1, 0)))):
        assert np.array_equal(tensor.numpy(), right)
    with pytest.raises(BufferError, match="backwards"):
        x.__dlpack__(copy=False)
    assert np.array_equal(np.from_dlpack(x), right)


def test_tensors_that_are_negated_when_they_are_read():
    """The memory of z.conj().imag has the other sign; so has a negative view's."""
    z = torch.tensor([1 + 2j, 3 - 4j])
    for t in (z.conj().imag, torch._neg_view(torch.tensor([1.0, -2.0])), z.conj().real):
        right = t.resolve_neg().tolist()
        functional = hg_torch.functional
        for x in (hg_torch.as_array(t), hg.from_dlpack(t), hg.asarray(t), hg.array(t), hg_torch.tensor_to_buffer(t).array()):
            assert x.tolist() == right
        assert functional.mul(t, 2.0).tolist() == [2 * v for v in right] and functional.add(t, t).tolist() == [2 * v for v in right]
        assert functional.layer_norm(t, (2,)).tolist() == functional.layer_norm(t.resolve_neg(), (2,)).tolist()
    t = torch._neg_view(torch.tensor([1.0, -2.0])).requires_grad_()
    hg_torch.functional.mul(t, t).sum().backward()
    assert t.grad.tolist() == [-2, 4]


def test_fast_numerics_reach_tensors_and_their_gradients():
    """What a marked product cannot be on a CPU, strict() tells of: in the call, and in the gradient wherever torch asks for it."""
    x, w, b = (tensor(*shape, kind=torch.float32) for shape in ((5, 300), (8, 300), (8,)))
    plain = [value.detach() for value in (x, w, b)]
    layer = NN.Linear(300, 8)
    exact = F.linear(*plain)
    with hg.numerics("fast"):
        assert torch.equal(F.linear(*plain), exact)
        inside = F.linear(x, w, b)
        with hg.strict():
            for call in (lambda: F.linear(*plain), lambda: F.matmul(x, w.T), lambda: F.matmul(plain[0], plain[1].T), lambda: layer(x)):
                with pytest.raises(hg.StrictError, match="fast numerics were asked for"):
                    call()
    outside = F.linear(x, w, b)
    with hg.strict():
        F.linear(*plain)
        with pytest.raises(hg.StrictError, match="fast numerics were asked for"):
            inside.sum().backward()
        with hg.numerics("fast"):
            outside.sum().backward()
    gradient = w.grad.clone()
    w.grad = None
    inside.sum().backward()
    assert torch.equal(w.grad, gradient)


@pytest.mark.parametrize("is_by_table", [True, False])
def test_gradients_of_arguments_that_changed_since(is_by_table):
    """They are those of the call."""
    named = {} if is_by_table else {"executor": hg.default_executor()}
    x, axes, nested, weight = tensor(3, 3), [0], ([1, 0],), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
    numbers, shared = np.full(3, 2.0), np.full(3, 2.0)
    arrays = [numbers, hg.asarray(shared), hg.full(3, 2.0, dtype="float64")]
    sums = [F.sum(x, axes, **named), F.sum(x, axis=axes, **named)]
    products, turned = [F.mul(x, array, **named) for array in arrays], F.permute(x, *nested, **named)
    axes[0], nested[0][:], numbers[:], shared[:], arrays[2][:] = 1, [0, 1], 5, 5, 5
    for total in sums:
        assert torch.equal(torch.autograd.grad(total, x, weight)[0], weight.expand(3, 3))
    for product in products:
        assert torch.equal(torch.autograd.grad(product.sum(), x)[0], torch.full_like(x, 2.0))
    assert torch.equal(torch.autograd.grad(turned, x, weight.expand(3, 3))[0], weight.expand(3, 3).T)


def test_a_gradient_that_fails_leaves_the_numerics_alone():
    """It is recorded with those of its call, on whichever thread."""
    x, w = tensor(3, 3), tensor(3)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:2].clone()):
        with hg.numerics("fast"):
            y = F.mul(x, w)
        with pytest.raises(ValueError, match="mul"):
            y.backward(torch.ones_like(x))
    assert hg._core._numerics() == 0


def test_calls_that_come_again():
    x, y = tensor(3, 4, follows=False), tensor(4, follows=False)
    for i in range(3):  # the first one is recorded, the others are found
        assert torch.equal(F.add(x, y), F.add(x.clone(), y)) and torch.equal(F.add(x, y + i), x + y + i)
        assert torch.equal(F.mul(x, i + 0.5), x * (i + 0.5)) and torch.equal(F.mul(x, True), x) and torch.equal(F.mul(x, 1.0), x)
    assert F.add(x.T, x.T).shape == (4, 3) and torch.equal(F.add(x.T, x.T), (x + x).T) and torch.equal(F.sum(x, axis=0), x.sum(0))
    assert torch.equal(F.sum(x, axis=0, keepdims=True), x.sum(0, keepdim=True))
    assert torch.equal(F.sum(x, axis=(0, 1)), F.sum(x, axis=[0, 1]))
    wide = torch.rand(4, 6)
    assert torch.equal(F.exp(wide[:, ::2]), F.exp(wide[:, ::2].clone())) and torch.equal(F.exp(wide[1:, 1:]), F.exp(wide[1:, 1:].clone()))
    assert F.add(torch.ones(0, 3), torch.ones(0, 3)).shape == (0, 3) and F.exp(torch.zeros(())).item() == 1
    values, places = F.max(x, axis=1), F.argmax(x, axis=1)
    assert torch.equal(values, x.max(1)[0]) and torch.equal(places, x.argmax(1))


NUMBERS = {
    "slope": lambda v: F.leaky_relu(PLAIN, v), "alpha": lambda v: F.elu(PLAIN, v), "by name": lambda v: F.clip(PLAIN, max=v),
    "delta": lambda v: F.huber_loss(PLAIN, 3 * PLAIN, delta=v), "eps": lambda v: F.rms_norm(PLAIN, 4, eps=v),
    "smoothing": lambda v: F.cross_entropy(PLAIN.reshape(2, 2), torch.tensor([1, 0]), label_smoothing=v),
}  # fmt: skip
PLAIN = tensor(4, kind=torch.float32, follows=False)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_tensors(name):
    """Their elements are part of the call, of its gradient, too."""
    call, held = NUMBERS[name], torch.tensor(0.5)
    for number in (0.5, 0.25):
        held.fill_(number)
        assert torch.equal(call(held), call(number)) and torch.equal(call(torch.tensor(number)), call(number))
    with pytest.raises(TypeError, match="no gradient flows to"):
        call(held.requires_grad_()).sum().backward()


def test_axes_that_are_tensors():
    x = torch.arange(6.0).reshape(2, 3)
    for axis in (0, 1):
        assert torch.equal(F.sum(x, torch.tensor(axis)), x.sum(axis)) and torch.equal(F.sum(x, axis=torch.tensor(axis)), x.sum(axis))
    for count in (2, 3):
        assert F.one_hot(torch.tensor([0, 1]), torch.tensor(count)).shape == (2, count)


def test_gradients_beside_numbers_that_are_tensors():
    x = tensor(4)
    for number in (0.5, 0.25):
        for function in (F.leaky_relu, F.elu):
            ours, right = (torch.autograd.grad(function(x, v).sum(), x, create_graph=function is F.elu)[0]
                           for v in (torch.tensor(number), number))  # fmt: skip
            assert torch.equal(ours, right)
        ours, right = (torch.autograd.grad(g.sum(), x)[0] for g in (ours, right))
        assert torch.equal(ours, right) and right.any()


def test_names_are_no_values():
    x = tensor(2, 3)
    for _ in range(2):
        assert torch.equal(torch.autograd.grad(F.sum(x=x), x)[0], torch.ones_like(x)) and F.sum(x=x.detach()).ndim == 0
        for value in (x, x.detach()):
            with pytest.raises(TypeError, match="axis takes"):
                F.sum(value, "x")


def test_gradients_that_come_again():
    for i in range(3):
        x, w, b = tensor(3, 4, seed=i), tensor(5, 4, seed=i), tensor(5, seed=i)
        linear = torch.nn.functional.linear(x, w, b)
        for made, same in ((F.linear(x, w, b), linear), (F.linear(x, w, bias=b), linear),
                           (F.softmax(x, dim=0), torch.softmax(x, 0)), (F.mul(x, x), x * x), (F.mul(x, 2.5), x * 2.5),
                           (F.permute(x, (1, 0)), x.T), (F.sum(x, axis=1), x.sum(1))):  # fmt: skip
            weight = tensor(*same.shape, seed=7, follows=False)
            leaves = [x, w, b] if same is linear else [x]
            ours, theirs = (torch.autograd.grad(value, leaves, weight, retain_graph=True) for value in (made, same))
            assert all(torch.allclose(a, c, atol=1e-12) for a, c in zip(ours, theirs))
            again = torch.autograd.grad(made, leaves, weight.expand(1, *weight.shape)[0])
            assert all(torch.equal(a, c) for a, c in zip(ours, again))
    x = tensor(3)
    ones = torch.autograd.grad(F.exp(x).sum(), x)[0]  # a cotangent that is one number everywhere
    assert torch.equal(ones, F.exp(x.detach()))
    twice = torch.autograd.grad(torch.autograd.grad(F.exp(x), x, torch.ones(3, dtype=x.dtype), create_graph=True)[0].sum(), x)[0]
    assert torch.allclose(twice, x.detach().exp())


def test_gradients_of_tensors_that_changed_since():
    x = tensor(4)
    leaf = x * 1
    y = F.mul(leaf, leaf)
    leaf.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = F.exp(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_modes_around_calls():
    x = tensor(3, follows=False)
    with torch.inference_mode():
        assert torch.equal(F.add(x, x), x + x)
    with hg.eager():
        assert torch.equal(F.add(x, x), x + x)
    with hg.strict(), pytest.raises(hg.StrictError, match="mix"):
        F.add(torch.ones(3, dtype=torch.int64), 2.5)
    F.add(torch.ones(3, dtype=torch.int64), 2.5)
    with hg.strict(), pytest.raises(hg.StrictError, match="mix"):
        F.add(torch.ones(3, dtype=torch.int64), 2.5)


TRANSFORMED = {
    "grad": (torch.func.grad, lambda f: lambda x, y: f(x, y).sin().sum()),
    "vmap": (torch.func.vmap, lambda f: f),
    "vmap along columns": (lambda f: torch.func.vmap(f, (1, None), 1), lambda f: lambda x, y: f(x, y.T)),
    "vmap of grad": (lambda f: torch.func.vmap(torch.func.grad(f, (0, 1))), lambda f: lambda x, y: f(x, y).sin().sum()),
    "vmap of vmap": (lambda f: torch.func.vmap(torch.func.vmap(f)), lambda f: f),
    "jvp": (lambda f: lambda x, y: torch.func.jvp(f, (x, y), (y, x)), lambda f: f),
    "jvp of one": (lambda f: lambda x, y: torch.func.jvp(lambda x: f(x, y), (x,), (y,)), lambda f: f),
    "jacobian": (torch.func.jacrev, lambda f: f),
    "jacobian forward": (torch.func.jacfwd, lambda f: f),
    "hessian": (torch.func.hessian, lambda f: lambda x, y: f(x, y).sin().sum()),
    "grad of grad": (lambda f: torch.func.grad(lambda x, y: torch.func.grad(f)(x, y).sum()), lambda f: lambda x, y: f(x, y).sin().sum()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")
@pytest.mark.parametrize("name", TRANSFORMED)
def test_what_torch_func_makes_of_functions(name):
    transform, made = TRANSFORMED[name]
    x, y = tensor(3, 3, follows=False), tensor(3, 3, seed=1, follows=False)
    pairs = [(lambda x, y: F.mul(F.tanh(x), y), lambda x, y: torch.tanh(x) * y)]
    if name not in ("vmap of vmap",):
        pairs += [(lambda x, y: F.softmax(F.matmul(x, y), -1), lambda x, y: torch.softmax(x @ y, -1)),
                  (lambda x, y: F.linear(x, y, y[0]), lambda x, y: torch.nn.functional.linear(x, y, y[0]))]  # fmt: skip
    for own, other in pairs:
        torch.testing.assert_close(transform(made(own))(x, y), transform(made(other))(x, y))


def test_calls_of_several_threads():
    from concurrent.futures import ThreadPoolExecutor

    def work(seed):
        x = tensor(64, 300, seed=seed, kind=torch.float32)
        for _ in range(40):
            y = F.softmax(x, -1)
            (gradient,) = torch.autograd.grad(y, x, torch.ones_like(y))
        return torch.allclose(y, torch.softmax(x, -1), atol=1e-6) and gradient.abs().max() < 1e-4

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_default_executors_that_come_and_go():
    """A call holds the device on which it began, whichever executor is the default meanwhile."""
    before, until, wrong = hg.default_executor(), time.monotonic() + 1.5, []

    def change():
        while time.monotonic() < until:
            hg.set_default_executor(hg.Executor(backend="cpu"))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for count in itertools.count(1):
            x = torch.rand(count % 3000 + 1, requires_grad=True)
            F.exp(x).sum().backward()
            if not torch.allclose(x.grad, x.detach().exp()):
                wrong.append(count)
            if time.monotonic() > until:
                break
    finally:
        thread.join()
        hg.set_default_executor(before)
    assert not wrong
