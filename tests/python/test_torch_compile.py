"""torch.compile(backend="hologram"): models beside double precision, the layouts and mutations that AOTAutograd expects, sizes that
change, random numbers, what is left to PyTorch, and the same bits with any number of threads and on the double of CUDA's driver."""

import copy
import hashlib
import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")

import double_of_cuda  # noqa: E402
import hologram as hg  # noqa: E402
import hologram_torch as hg_torch  # noqa: E402
from test_programs import SAXPY  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402


@pytest.fixture(autouse=True)
def apart():
    torch._dynamo.reset()
    hg_torch.report(clear=True)
    torch.manual_seed(0)


def compiled(function, dynamic=None, **options):
    return torch.compile(function, backend="hologram", dynamic=dynamic, options=options or None)


def left():
    """All that stayed PyTorch's since the test began."""
    return {name for graph in hg_torch.report() for name in graph["left_to_torch"]}


class Block(nn.Module):
    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        count, length, width = x.shape
        q, k, v = self.three(self.first(x)).view(count, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal).transpose(1, 2)
        x = x + self.out(mixed.reshape(count, length, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Characters(nn.Module):
    """GPT-2's form."""

    def __init__(self, symbols=11, length=6, width=8):
        super().__init__()
        self.symbols, self.places = nn.Embedding(symbols, width), nn.Embedding(length, width)
        self.block, self.norm, self.head = Block(width, 2, True), nn.LayerNorm(width), nn.Linear(width, symbols, bias=False)

    def forward(self, numbers):
        x = self.symbols(numbers) + self.places(torch.arange(numbers.shape[1]))
        return self.head(self.norm(self.block(x)))


class Patches(nn.Module):
    """ViT's form."""

    def __init__(self, width=8, patch=4, size=8):
        super().__init__()
        self.patch, self.embed = patch, nn.Linear(3 * patch * patch, width)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width))
        self.block, self.head = Block(width, 2, False), nn.Linear(width, 5)

    def forward(self, x):
        x = F.pixel_unshuffle(x, self.patch).flatten(2).transpose(1, 2)
        return self.head(self.block(torch.cat([self.token.expand(x.shape[0], -1, -1), self.embed(x)], 1) + self.places)[:, 0])


class Sentences(nn.Module):
    """MiniLM's form: an encoder, and the mean over the tokens that are there."""

    def __init__(self, symbols=11, width=8):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 2, 4 * width, 0.0, batch_first=True, activation="gelu")
        self.symbols, self.encoder = nn.Embedding(symbols, width), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)

    def forward(self, numbers, is_missing):
        x = self.encoder(self.symbols(numbers), src_key_padding_mask=is_missing)
        weight = (~is_missing).unsqueeze(-1).to(x.dtype)
        return F.normalize((x * weight).sum(1) / weight.sum(1))


class Images(nn.Module):
    """ResNet's form; pooling is PyTorch's."""

    def __init__(self, width=4):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
        self.second, self.again, self.head = nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.Linear(width, 5)

    def forward(self, x):
        x = F.relu(self.norm(self.first(x)))
        return self.head(F.max_pool2d(F.relu(x + self.again(self.second(x))), 2).mean((2, 3)))


def mlp():
    return nn.Sequential(nn.Linear(7, 16), nn.GELU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))


POOLING = {"aten.max_pool2d_with_indices.default: no row", "aten.max_pool2d_with_indices_backward.default: no row"}
MODELS = {
    "mlp": (mlp, lambda: (torch.randn(5, 7),), set()),
    "characters": (Characters, lambda: (torch.randint(0, 11, (2, 6)),), set()),
    "patches": (Patches, lambda: (torch.randn(2, 3, 8, 8),), set()),
    "sentences": (Sentences, lambda: (torch.randint(0, 11, (2, 6)), torch.arange(6)[None] >= torch.tensor([[4], [6]])), set()),
    "images": (Images, lambda: (torch.randn(2, 3, 6, 6),), POOLING),
}


def ulps(got, want):
    """The largest difference from a result in double precision, in units of the last place of its largest number."""
    scale = want.abs().max().item()
    unit = 2.0 ** (torch.tensor(scale).frexp().exponent.item() - 24) if scale else 1.0
    return (got.double() - want).abs().max().item() / unit


@pytest.mark.parametrize("name", MODELS)
def test_models_are_within_a_few_ulp_of_double_precision(name):
    make, inputs, torchs = MODELS[name]
    model, given = make(), inputs()
    exact = copy.deepcopy(model).double()
    value = compiled(model)(*given)
    wanted = exact(*(x.double() if x.is_floating_point() else x for x in given))
    assert value.stride() == wanted.stride() and ulps(value.detach(), wanted.detach()) <= 16
    (value * value.detach().cos()).sum().backward()
    (wanted * wanted.detach().cos()).sum().backward()
    whole = max(p.grad.abs().max().item() for p in exact.parameters())  # gradients that are 0 but for rounding have no scale
    for (key, own), other in zip(model.named_parameters(), exact.parameters(), strict=True):
        close = (own.grad.double() - other.grad).abs().max().item() <= whole * 2**-20
        assert close or ulps(own.grad, other.grad) <= 64, key
    for own, other in zip(model.buffers(), exact.buffers(), strict=True):  # running statistics
        torch.testing.assert_close(own, other.to(own.dtype))
    assert left() == torchs


X = torch.arange(12.0).reshape(3, 4) / 7 - 0.8


def change(x):
    x.add_(1)
    return x * 2


def change_column(x):
    x[:, 1].mul_(3)
    return x.sum(0)


def change_and_view(x):
    y = x.exp()
    y[0] = x[1]
    x.copy_(y)
    return y, y[1:], x.t()


def put(x):
    y = x.clone()
    y[torch.tensor([0, -1])] = 5.0
    y[:, torch.tensor([1, 1])] += 1
    y.index_put_((torch.tensor([1, 1, 0]), torch.tensor([2, 2, 3])), torch.tensor([1.0, 2, 3]), accumulate=True)
    return y


def masked(x):
    x = x.clone()
    x[x > 0.5] = 2.0
    x[:, torch.tensor([True, False, True, False])] = -1.0
    return x


CASES = {
    "transposed": (lambda x: (x * 2).t(), X),
    "of a transposed input": (lambda x: x * 2, X.t()),
    "channels last": (lambda x: x + 1, torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)),
    "expanded": (lambda x: (x + 1).expand(2, 3, 4), X),
    "of an expanded input": (lambda x: x + 1, X[:, :1].expand(3, 4)),
    "with gaps": (lambda x: torch.empty_strided((3, 4), (1, 6)).copy_(x), X),
    "of every other column": (lambda x: x.exp(), X[:, ::2]),
    "mutation": (change, X),
    "mutation of a view": (change_column, X),
    "mutation by a result": (change_and_view, X),
    "none and numbers": (lambda x: (x * 2, None, x.shape[0], 3.5, "word"), X),
    "the input itself": (lambda x: (x, x + 1, x.view(-1)), X),
    "one result twice": (lambda x: (lambda y: (y, y, y.view(-1)))(x + 1), X),
    "constants": (lambda x: x + torch.tensor([1.0, 2, 3, 4]), X),
    "nothing": (lambda x: (x.sum(0), x * 2, torch.cat([x, x])), X[:0]),
    "a number": (lambda x: (x.sum().exp(), x.mean().unsqueeze(0)), X),
    "integers": (lambda x: (x // 2 + x.float().mean(), x % 5, -x >> 1, x.sum(), x / 3), torch.arange(12)),
    "bools": (lambda x: ((x > 0) & (x < 1), ~(x > 0), (x > 0).sum(), (x > 0).any(1), (x > 0) + (x < 0)), X),
    "double": (lambda x: torch.softmax(x, -1).log(), X.double()),
    "bfloat16": (lambda x: torch.relu(x) * 2 + x, X.bfloat16()),
    "numbers of places": (lambda x: (x[torch.tensor([0, -1])], x[:, [1, 2]], x[torch.tensor([[0], [1]]), torch.tensor([0, 3])]), X),
    "put": (put, X),
    "scattered": (lambda x: (x.scatter(1, torch.tensor([[0], [1], [2]]), 9.0), x.scatter_add(0, torch.tensor([[0, 1, 2, 0]]), x),
                             x.gather(1, torch.tensor([[0], [1], [2]]))), X),
    "rows in order": (lambda x: (*x.sort(1, descending=True), x.cumsum(0), *x.max(1), x.argmin(), x.amax((0, 1))), X),
    "spread": (lambda x: (x.std(), x.var(1), *torch.var_mean(x, 1), x.norm(), torch.linalg.vector_norm(x, 1, 1)), X),
    "moved": (lambda x: (F.pad(x, (1, 2)), F.pad(x, (-1, 2)), x.roll(1, 0), x.flip(0), x.tril(), x.masked_fill(x > 0, 2),
                         *x.split(2, 1)), X),
    "nothing to attend to": (lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=x[:, :3] > 9), X),
    "a part scattered": (lambda x: (x.scatter(1, torch.tensor([[3]]), 9.0), x.scatter_add(0, torch.tensor([[1, 1]]), x)), X),
    "bools reduced": (lambda x: (*(x > 0).max(1), (x > 0).amin(0), (x > 0).cumsum(1), (x > 0).repeat(2, 1, 2)), X),
    "windows": (lambda x: (F.conv1d(x[None], x.reshape(2, 3, 2), padding=1), F.conv_transpose1d(x[None], x.reshape(3, 2, 2), stride=2),
                           F.conv2d(x.reshape(1, 2, 2, 3), x.reshape(4, 1, 1, 3), x[0], padding=(0, 2), dilation=(1, 2), groups=2)), X),
    "by a mask": (masked, X),
    "in order": (lambda x: (*x.topk(2, 1), *x.topk(1, 0, largest=False), torch.searchsorted(x[1], x), torch.bucketize(x, x[2], right=True),
                            *x.cummax(1), *x.cummin(0), x.logcumsumexp(1)), X),
    "scattered and reduced": (lambda x: [x.scatter_reduce(0, torch.tensor([[0, 1, 1, 0], [1, 1, 2, 0]]), x[:2], kind, include_self=own)
                                         for kind in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)], X),
    "powers": (lambda x: (x**2, x**3, x.abs() ** 0.5, 2**x, x.abs() ** x, torch.arange(3) ** 2), X),
}  # fmt: skip
ACTIVATIONS = """relu gelu silu elu selu celu leaky_relu hardtanh hardswish hardsigmoid mish softplus softsign logsigmoid tanhshrink
softshrink hardshrink relu6 glu""".split()
CASES["activations"] = (lambda x: [getattr(F, name)(x) for name in ACTIVATIONS], X)


@pytest.mark.parametrize("name", CASES)
def test_results_strides_and_mutations_are_those_of_torch(name):
    function, x = CASES[name]
    own = compiled(function, strict=True)
    for _ in range(2):  # the second call is found by its arguments
        given, other = (torch.empty_strided(x.shape, x.stride(), dtype=x.dtype).copy_(x) if 0 not in x.stride() else x for _ in range(2))
        made, wanted = own(given), function(other)
        is_one = isinstance(wanted, torch.Tensor)
        for got, want in zip([made] if is_one else made, [wanted] if is_one else wanted, strict=True):
            if not isinstance(want, torch.Tensor):
                assert type(got) is type(want) and got == want
                continue
            assert (got.shape, got.stride(), got.dtype) == (want.shape, want.stride(), want.dtype)
            torch.testing.assert_close(got, want, equal_nan=True)
        torch.testing.assert_close(given, other)
    assert not left()


def test_sizes_that_change_need_no_other_graph():
    function = compiled(lambda x, n: (x.reshape(-1, 2) * x.shape[0] + n, x.shape[0] * 2, x.new_zeros(x.shape[0] + 1)), dynamic=True)
    for size in (6, 3, 7, 100, 5):
        x = torch.randn(size, 4)
        values, twice, zeros = function(x, size)
        assert torch.equal(values, x.reshape(-1, 2) * size + size) and twice == 2 * size and zeros.shape == (size + 1,)
    assert len(hg_torch.report()) == 1


def test_sizes_that_change_while_training():
    model = mlp()
    function = compiled(model, dynamic=True)
    for size in (4, 3, 9):
        x = torch.randn(size, 7)
        own = torch.autograd.grad(function(x).sum(), list(model.parameters()))
        for a, b in zip(own, torch.autograd.grad(model(x).sum(), list(model.parameters())), strict=True):
            torch.testing.assert_close(a, b)
    assert [graph["graph"] for graph in hg_torch.report()] == ["forward", "backward"]


def several(x):
    y = x * 2
    return y, y[y.shape[0] // 2 :], y.split(y.shape[0] // 2)[1]


VIEWS = {
    "chunks": (lambda x: x.chunk(2), None),
    "a half": (lambda x: x[x.shape[0] // 2 :], True),
    "of a result": (several, True),
    "of what is changed": (lambda x: (x.add_(1), x[x.shape[0] // 2 :])[1], True),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_that_are_returned_begin_where_torchs_do_when_sizes_change(name):
    function, dynamic = VIEWS[name]
    own = compiled(function, dynamic, strict=True)
    for size in (4, 6, 10):
        given, other = torch.arange(2.0 * size).reshape(size, 2), torch.arange(2.0 * size).reshape(size, 2)
        made, wanted = own(given), function(other)
        is_one = isinstance(wanted, torch.Tensor)
        for got, want in zip([made] if is_one else made, [wanted] if is_one else wanted, strict=True):
            assert torch.equal(got, want) and got.storage_offset() == want.storage_offset()
        assert torch.equal(given, other)


def test_sizes_that_depend_on_what_a_tensor_holds():
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        function = compiled(lambda x: x[x > 0] * 2 + 1)
        for x in (X, -X, X[:0]):
            assert torch.equal(function(x), x[x > 0] * 2 + 1)


def test_dropout_draws_its_keys_from_torchs_generator():
    function = compiled(lambda x: F.dropout(F.dropout(x, 0.5) + 1, 0.25), strict=True)
    x = torch.randn(40, 50, requires_grad=True)
    torch.manual_seed(5)
    one = function(x)
    two = function(x)
    torch.manual_seed(5)
    again = function(x)
    assert torch.equal(one, again) and not torch.equal(one, two)
    torch.manual_seed(5)
    layers = hg_torch.functional.dropout(hg_torch.functional.dropout(x, 0.5) + 1, 0.25)
    assert torch.equal(one, layers)  # the same keys, and so the same bits
    assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (one, layers)))


def test_what_has_no_row_stays_torchs_and_is_reported():
    function = compiled(lambda x: torch.fft.fft(x.exp()).abs() * 2 + 1)
    torch.testing.assert_close(function(X), torch.fft.fft(X.exp()).abs() * 2 + 1)
    (graph,) = hg_torch.report()
    assert graph["graph"] == "inference" and graph["computations"] == 2 and graph["operations"] >= 3
    assert graph["left_to_torch"]["aten._fft_r2c.default: no row"] == 1
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"strict=True: the inference graph has operations that stay PyTorch's: .*_fft_r2c.default: no row"):
        compiled(lambda x: torch.fft.fft(x.exp()), strict=True)(X)


def test_options_that_are_not_there_are_named():
    assert "hologram" in torch._dynamo.list_backends()
    for options, words in (({"quick": 1}, "strict, numerics, executor, not 'quick'"),
                           ({"numerics": "wild"}, "'canonical' or 'fast', not 'wild'"),
                           ({"executor": "cpu"}, "an hg.Executor, not 'cpu'")):  # fmt: skip
        torch._dynamo.reset()
        with pytest.raises(Exception, match=words):
            compiled(lambda x: x + 1, **options)(X)


def test_a_number_out_of_range_is_an_error():
    with pytest.raises(IndexError):
        compiled(lambda w, i: F.embedding(i, w))(X, torch.tensor([0, 3]))


def trained(executor=None, steps=3, make=mlp):
    """A hash of the weights after some steps, of the MLP or of the character transformer."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make()
    x = torch.randn(64, 7) if make is mlp else torch.randint(0, 11, (8, 6))
    target = x.argmax(1) % 3 if make is mlp else x.roll(-1, 1).flatten()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    options = {} if executor is None else {"executor": executor}
    step = compiled(lambda: F.cross_entropy(model(x).flatten(0, -2), target), strict=True, **options)
    for _ in range(steps):
        optimizer.zero_grad()
        step().backward()
        optimizer.step()
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


def test_training_has_the_same_bits_with_any_number_of_threads():
    with hg.Executor(backend="cpu", threads=1) as one, hg.Executor(backend="cpu", threads=3) as three:
        assert trained(one, make=Characters) == trained(three, make=Characters)


@double_of_cuda.needed
def test_training_has_the_same_bits_on_the_double_of_cuda():
    code = "import hologram as hg; from test_torch_compile import trained; print(trained(hg.Executor('cuda')))"
    assert double_of_cuda.run(code).strip() == trained()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.resident
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the kernel does not say how much memory is resident")
def test_a_thousand_steps_keep_no_memory():
    model, x = mlp(), torch.randn(16, 7)
    function = compiled(model)
    for count in (200, 1000):
        before = resident()
        for _ in range(count):
            function(x).sum().backward()
            model.zero_grad()
    assert resident() - before < 2 << 20


def swish(x, b):
    return x * hg.sigmoid(b * x)


def test_functions_of_arrays_are_operations_of_torchs():
    ours = hg_torch.custom_op(swish)

    def theirs(x, b):
        return x * torch.sigmoid(b * x)

    x, b = X.double().requires_grad_(), torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(ours, (x, b)) and torch.autograd.gradgradcheck(ours, (x, b))
    torch.testing.assert_close(torch.func.vmap(ours, (0, None))(x, b), theirs(x, b))
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(lambda x, b: ours(x, b).sum()), (1, None))(x, b),
                               torch.func.grad(lambda x, b: theirs(x, b).sum())(x, b).T)  # fmt: skip
    own = compiled(lambda x, b: ours(x * 2, b).exp(), strict=True)(x, b)
    other = theirs(x * 2, b).exp()
    torch.testing.assert_close(own, other)
    for got, want in zip(torch.autograd.grad(own.sum(), (x, b)), torch.autograd.grad(other.sum(), (x, b)), strict=True):
        torch.testing.assert_close(got, want)
    assert [graph["computations"] for graph in hg_torch.report()] == [1, 1]
    several = hg_torch.custom_op(lambda x: (hg.sort(x), hg.argmax(x, -1)), name="sorted and place")
    for got, want in zip(several(X), (X.sort().values, X.argmax(-1)), strict=True):
        assert torch.equal(got, want)


class Swish(nn.Module):
    def forward(self, x):
        return torch.ops.hologram.exported.default([x, x])[0] + 1


def test_operations_of_ones_own_are_exported():
    hg_torch.custom_op(swish, name="exported")
    program = torch.export.export(Swish(), (X,))
    assert "hologram.exported.default" in program.graph_module.code
    torch.testing.assert_close(program.module()(X), X * torch.sigmoid(X * X) + 1)


def test_programs_are_operations_of_torchs():
    saxpy = hg_torch.custom_op(hg.Program(SAXPY), inputs=("x", "y"), outputs={"y": "y"}, scalars={"a": 2.0},
                               gradient=lambda x, y, g: (g * 2, g))  # fmt: skip
    x, y = X.clone().requires_grad_(), torch.ones(3, 4)
    assert torch.equal(saxpy(x, y), 2 * X + 1) and torch.equal(y, torch.ones(3, 4))
    own = compiled(lambda x, y: saxpy(x * 2, y).square())(x, y)
    torch.testing.assert_close(own, (4 * x + 1).square())
    torch.testing.assert_close(torch.autograd.grad(own.sum(), x)[0], 8 * (4 * X + 1))
    torch.testing.assert_close(torch.func.vmap(saxpy, (1, 1))(X, y), 2 * X.T + 1)
    assert left() == {"hologram.saxpy.default: no row"}
    for options, words in (({"inputs": ("x", "y")}, "names the buffers"),
                           ({"inputs": ("x",), "outputs": {"y": "z"}}, "arguments are x, not z")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            hg_torch.custom_op(hg.Program(SAXPY), **options)


INDEX = torch.arange(24.0).reshape(4, 6)
OUT_OF_RANGE = {
    "two axes": lambda x, one: x[one + 1, one + 10],
    "two axes below": lambda x, one: x[one, one - 6],
    "two axes put": lambda x, one: x.index_put((one + 1, one + 10), torch.tensor(1.0)),
    "one axis": lambda x, one: x[one - 4],
    "one axis put": lambda x, one: x.index_put((one - 4,), torch.tensor(1.0)),
    "one axis added": lambda x, one: x.index_put((one - 4,), torch.tensor(1.0), accumulate=True),
    "take": lambda x, one: x.take(one - 24),
    "cross_entropy": lambda x, one: F.cross_entropy(x[:1], one),
    "nll_loss": lambda x, one: F.nll_loss(x[:1], one),
    "gather": lambda x, one: x.gather(1, one[None]),
    "gather a number": lambda x, one: x[0, 0].gather(0, one[0]),
    "scatter": lambda x, one: x.scatter(1, one[None], 5.0),
    "scatter_add": lambda x, one: x.scatter_add(1, one[None], x),
    "scatter_reduce": lambda x, one: x.scatter_reduce(1, one[None], x, "amax"),
    "index_select": lambda x, one: x.index_select(1, one),
    "index_add": lambda x, one: x.index_add(1, one, x[:, :1]),
    "index_copy": lambda x, one: x.index_copy(1, one, x[:, :1]),
    "index_reduce": lambda x, one: x.index_reduce(1, one, x[:, :1], "amax"),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_indices_out_of_range_are_faults(name):
    one = torch.tensor([-1])
    with pytest.raises((IndexError, RuntimeError)):
        OUT_OF_RANGE[name](INDEX, one)
    with pytest.raises(hg.IndexFault, match="is out of range of axis"):
        compiled(OUT_OF_RANGE[name], strict=True)(INDEX, one)


def test_indices_in_range_are_torchs():
    def of(x, at, one):
        return [x[at], x[at, at[:, None]], x[:, at], x.index_put((at, one), torch.tensor(7.0)), x.take(at), x.index_fill(1, one, 2.0),
                x.index_fill(0, at, x[1, 1]), x.index_add(1, at.abs(), x[:, :2], alpha=2), x.index_copy(0, at.abs() - 1, x[:2]),
                x[1, 2].index_add(0, one + 1, x[1, 1]), x[1, 2].index_fill(0, one, 3.0), x[1, 2].index_select(0, one + 1),
                x[1, 2].gather(0, torch.zeros(3, dtype=torch.int64)), x[2].gather(0, at[1])]  # fmt: skip

    at, one = torch.tensor([-4, 3]), torch.tensor([-1])
    for got, want in zip(compiled(of, strict=True)(INDEX, at, one), of(INDEX, at, one), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_16_bit_floats_are_multiplied_by_numbers_in_float32(kind):
    def of(x, n):
        return [x * 65536.0, x / 65536.0, x * 0.1, x / 0.3, 0.3 / x, x * n, x / n, n / x, x + 0.1, x - n, 0.1 - x,
                torch.div(x, 0.3, rounding_mode="floor"), x[0] * 0.1]  # fmt: skip

    x, n = torch.randn(1000).to(kind), torch.tensor(0.1)
    for got, want in zip(compiled(of, strict=True)(x, n), of(x, n), strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)
    assert torch.equal(*compiled(lambda x, n: (x * n, n * x), strict=True)(x, n))
    assert compiled(lambda x: x * 65536.0)(torch.tensor([0.5], dtype=torch.float16)).item() == 32768


def test_stable_sorts_have_an_axis():
    def of(x):
        return [*torch.sort(x, stable=True, dim=0), *torch.sort(x, stable=True, dim=0, descending=True),
                torch.argsort(x, stable=True, dim=0), torch.argsort(x, stable=True), *torch.sort(x[0, 0], stable=True)]  # fmt: skip

    x = INDEX.fmod(5)
    for got, want in zip(compiled(of, strict=True)(x), of(x), strict=True):
        assert torch.equal(got, want)


def test_bools_are_in_order_and_have_signs():
    def of(a, b):
        return [f(a, b) for f in (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge, torch.maximum, torch.minimum, torch.fmax,
                                  torch.fmin)] + [a.sign(), a.sgn(), a < True, a >= False, a < 1.5]  # fmt: skip

    a, b = torch.tensor([True, False, True, False]), torch.tensor([True, True, False, False])
    for got, want in zip(compiled(of, strict=True)(a, b), of(a, b), strict=True):
        assert got.dtype == want.dtype and torch.equal(got, want)


@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_the_sign_of_nan_is_0(kind):
    x = torch.tensor([float("nan"), -2.0, 0.0, 3.0, -float("inf")], dtype=kind)
    for function in (torch.sign, torch.sgn):
        assert torch.equal(compiled(function, strict=True)(x), function(x))
