"""Functions and layers of hologram_torch that are made of a row of its signatures: torch's own, in values, gradients and defaults."""

import inspect
import pickle

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")

import hologram as hg  # noqa: E402
import hologram_torch as hg_torch  # noqa: E402
from hologram_torch import _signatures  # noqa: E402

F, THEIRS, NN = hg_torch.functional, torch.nn.functional, hg_torch.nn
ROWS = _signatures.rows()


def tensor(*shape, seed=0, low=-2.0, high=2.0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return (torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low).requires_grad_()


X, Y, IMAGES = tensor(3, 4), tensor(3, 4, seed=1), tensor(2, 4, 3, 2)
SHARES, ONE = tensor(3, 4, seed=2, low=0.1, high=0.9), torch.tensor([1.0, -1.0, 1.0])
RATES, OTHERS = (SHARES * 3).detach(), tensor(3, 4, seed=5, low=0.1, high=0.9)
SIGNS = torch.tensor([[1, -1, 1, -1], [-1, 1, 1, -1], [1, 1, -1, -1]])
CLASSES, CHANNELS = torch.tensor([1, 3, 0]), tensor(4, low=0.5)
PAIR, THREE = [X, Y], [X, Y, tensor(3, 4, seed=3)]
ROUNDED = {"hardsigmoid": 1e-7}  # PyTorch's slope is a sixth in float32, of float64 too
WORDS = [{"reduction": word} for word in ("mean", "sum", "none")]
# Of each function: the tensors that come first, and further arguments, by name.
CALLS = {
    **{name: ([X], [{}, {"inplace": False}]) for name in "selu relu6 hardsigmoid hardswish mish".split()},
    **{name: ([X], [{}]) for name in "softsign logsigmoid tanhshrink".split()},
    "elu": ([X], [{}, {"alpha": 0.5}]), "celu": ([X], [{}, {"alpha": 0.5}]), "leaky_relu": ([X], [{}, {"negative_slope": 0.3}]),
    "prelu": ([X, CHANNELS], [{}]), "hardtanh": ([X], [{}, {"min_val": -0.5, "max_val": 1.5}]), "softplus": ([X], [{}, {"beta": 2.0}]),
    "softshrink": ([X], [{}, {"lambd": 0.25}]), "hardshrink": ([X], [{}, {"lambd": 1.0}]),
    "threshold": ([X], [{"threshold": 0.5, "value": 3.0}]),
    "softmin": ([X], [{"dim": 0}, {"dim": 1}]), "glu": ([X], [{}]), "normalize": ([X], [{}, {"p": 1.0, "dim": 0, "eps": 3.0}]),
    "group_norm": ([IMAGES], [{"num_groups": 2}, {"num_groups": 4, "weight": CHANNELS, "bias": CHANNELS, "eps": 0.1}]),
    "instance_norm": ([IMAGES], [{}, {"weight": CHANNELS, "eps": 0.1}]),
    "mse_loss": (PAIR, WORDS), "l1_loss": (PAIR, WORDS), "smooth_l1_loss": (PAIR, [{"beta": 0.25}, {"beta": 0.0}, *WORDS]),
    "huber_loss": (PAIR, [{"delta": 0.25}, *WORDS]), "kl_div": ([X, SHARES], [*WORDS, {"reduction": "batchmean", "log_target": True}]),
    "poisson_nll_loss": ([SHARES, RATES], [{"log_input": False, "full": True, "eps": 0.1}, *WORDS]),
    "gaussian_nll_loss": ([X, Y, SHARES], [{"full": True, "eps": 0.5}, *WORDS]), "binary_cross_entropy": ([SHARES, OTHERS], WORDS),
    "binary_cross_entropy_with_logits": ([X, SHARES], [{"weight": RATES, "pos_weight": CHANNELS.detach()}, *WORDS]),
    "margin_ranking_loss": ([*PAIR, SIGNS], [{"margin": 0.5}, *WORDS]), "hinge_embedding_loss": ([X, SIGNS], [{"margin": 0.5}, *WORDS]),
    "multi_margin_loss": ([X, CLASSES], [{"p": 2, "margin": 0.5, "weight": CHANNELS.detach()}, *WORDS]),
    "cosine_embedding_loss": ([*PAIR, ONE], [{"margin": -0.5}, *WORDS]),
    "triplet_margin_loss": (THREE, [{"margin": 0.5, "p": 1.0, "eps": 0.1, "swap": True}, *WORDS]),
    "cosine_similarity": (PAIR, [{}, {"dim": 0, "eps": 3.0}]), "pairwise_distance": (PAIR, [{}, {"p": 1.0, "eps": 0.1}]),
    "cdist": (PAIR, [{}, {"p": 1.0}, {"p": float("inf")}, {"p": 3.0}]),
}


def same(made, right, leaves, rtol=1e-10):
    assert made.dtype == right.dtype and made.shape == right.shape
    torch.testing.assert_close(made, right, rtol=1e-12, atol=1e-12)
    weights = torch.cos(torch.arange(right.numel(), dtype=right.dtype)).reshape(right.shape)
    for a, b in zip(torch.autograd.grad(made, leaves, weights), torch.autograd.grad(right, leaves, weights)):
        torch.testing.assert_close(a, b, rtol=rtol, atol=1e-12)


def followed(*values):
    return [v for v in values if isinstance(v, torch.Tensor) and v.requires_grad and v.is_leaf]


def test_every_row_is_called():
    scatters = {"index_add", "index_copy", "index_reduce", "embedding_bag"}  # test_torch_scatters.py
    assert set(CALLS) | scatters == set(ROWS) and set(ROWS) <= set(dir(F))


def each(names, check):
    """One test of all of them: what is collected between tests costs more than they do."""
    for name in names:
        try:
            check(name)
        except Exception as error:
            raise AssertionError(name) from error


def function_is_torch_s(name):
    tensors, calls = CALLS[name]
    ours, theirs = getattr(F, name), torch.cdist if name == "cdist" else getattr(THEIRS, name)
    for more in calls:
        same(ours(*tensors, **more), theirs(*tensors, **more), followed(*tensors, *more.values()), ROUNDED.get(name, 1e-10))
    arguments, rest = ROWS[name].arguments, list(ROWS[name].arguments)[len(tensors):]
    by_name = ours(**dict(zip(arguments, tensors)), **calls[0])
    by_place = ours(*tensors, *(calls[0].get(key, arguments[key].default) for key in rest))
    with hg.Executor(backend="cpu") as executor:
        assert torch.equal(by_name, by_place) and torch.equal(by_name, ours(executor, *tensors, **calls[0]))


@pytest.mark.filterwarnings("ignore:reduction")  # PyTorch's of kl_div's mean
def test_functions():
    each(CALLS, function_is_torch_s)


def defaults_are_torch_s(name):
    theirs = torch.cdist if name == "cdist" else getattr(THEIRS, name)
    try:
        parameters = inspect.signature(theirs).parameters
    except ValueError:  # of a function in C the first line of its docstring has them
        words = theirs.__doc__.strip().partition("(")[2].partition(")")[0]
        parameters = inspect.signature(eval(f"lambda {words}: 0")).parameters  # noqa: S307
    ours = inspect.signature(getattr(F, name)).parameters
    kept = [key for key in parameters if key not in ("size_average", "reduce", "out", "_stacklevel", "dtype", "compute_mode",
                                                     "use_input_stats", "momentum")]
    if "weight" not in ours:
        kept = [key for key in kept if key != "weight"]
    assert [key for key in ours if key != "executor"] == kept
    for key in kept:
        assert ours[key].default == parameters[key].default or (name, key) == ("softmin", "dim"), key


def test_defaults():
    each(CALLS, defaults_are_torch_s)


LAYERS = {
    **{name: ((), [X]) for name in ("ReLU6 Hardsigmoid Hardswish SELU Mish Softsign LogSigmoid Tanhshrink GLU").split()},
    "ELU": ((0.5,), [X]), "CELU": ((0.5,), [X]), "LeakyReLU": ((0.3,), [X]), "Hardtanh": ((-0.5, 1.5), [X]), "Softplus": ((2.0,), [X]),
    "Softshrink": ((0.25,), [X]), "Hardshrink": ((1.0,), [X]), "Threshold": ((0.5, 3.0), [X]), "Softmin": ((0,), [X]),
    "PReLU": ((4, 0.3), [X]),
    "GroupNorm": ((2, 4, 0.1), [IMAGES]), "InstanceNorm1d": ((4,), [tensor(2, 4, 3)]), "InstanceNorm2d": ((4, 0.1, 0.1, True), [IMAGES]),
    "BCELoss": ((RATES,), [SHARES, OTHERS]), "BCEWithLogitsLoss": ((RATES, None, None, "sum", CHANNELS.detach()), [X, SHARES]),
    "MSELoss": ((), PAIR), "L1Loss": ((), PAIR), "SmoothL1Loss": ((None, None, "sum", 0.25), PAIR), "HuberLoss": (("none", 0.25), PAIR),
    "KLDivLoss": ((None, None, "batchmean", True), PAIR), "PoissonNLLLoss": ((False, True), [SHARES, RATES]),
    "GaussianNLLLoss": ((), [X, Y, SHARES]),
    "MarginRankingLoss": ((0.5,), [*PAIR, SIGNS]), "HingeEmbeddingLoss": ((0.5,), [X, SIGNS]),
    "MultiMarginLoss": ((2, 0.5, CHANNELS.detach()), [X, CLASSES]), "CosineEmbeddingLoss": ((-0.5,), [*PAIR, ONE]),
    "TripletMarginLoss": ((0.5, 1.0, 0.1, True), THREE), "CosineSimilarity": ((0,), PAIR), "PairwiseDistance": ((1.0, 0.1), PAIR),
}


def layer_is_torch_s(name):
    arguments, inputs = LAYERS[name]
    ours, theirs = getattr(NN, name)(*arguments).double(), getattr(torch.nn, name)(*arguments).double()
    for p in theirs.parameters():
        torch.nn.init.uniform_(p, 0.5, 1.5)
    ours.load_state_dict(theirs.state_dict())
    assert isinstance(ours, type(theirs)) and str(ours) == str(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    made = ours(*inputs)
    same(made, theirs(*inputs), followed(*inputs), ROUNDED.get(name.lower(), 1e-10))
    for p, q in zip(ours.parameters(), theirs.parameters()):
        torch.testing.assert_close(*(torch.autograd.grad((layer(*inputs) ** 2).sum(), v)[0] for layer, v in ((ours, p), (theirs, q))))
    assert torch.equal(pickle.loads(pickle.dumps(ours))(*inputs), made)  # noqa: S301
    placed = getattr(NN, name)(*arguments, backend="cpu").double()
    placed.load_state_dict(theirs.state_dict())
    assert torch.equal(placed(*inputs), made)


def test_layers():
    each(LAYERS, layer_is_torch_s)


def test_what_is_refused():
    for call, kind, words in (
            (lambda: F.relu6(X, inplace=True), ValueError, "inplace is False here"),
            (lambda: F.softplus(X, threshold=5.0), ValueError, "threshold is 20 here, not 5.0; torch.nn.functional.softplus"),
            (lambda: F.softsign(X, 1), TypeError, "1 arguments at most, not 2"),
            (lambda: F.mse_loss(X, Y, size_average=True), TypeError, "takes .input, target, reduction., not size_average"),
            (lambda: F.mse_loss(X, input=X), TypeError, "input is given twice"),
            (lambda: F.huber_loss(X, Y, reduction="all"), ValueError, "mean"),
            (lambda: F.no_such, AttributeError, "no_such"), (lambda: NN.NoSuch, AttributeError, "NoSuch"),
            (lambda: NN.InstanceNorm2d(4, track_running_stats=True)(IMAGES), ValueError, "running_mean is None here")):
        with pytest.raises(kind, match=words):
            call()


def test_layers_named_in_place_do_not_overwrite():
    x = X.detach().clone()
    assert torch.equal(NN.ReLU6(inplace=True)(x), torch.nn.ReLU6()(x)) and torch.equal(x, X)
