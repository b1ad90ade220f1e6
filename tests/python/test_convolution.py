"""Convolutions beside PyTorch's in f64: values, gradients of both orders, layers, types, layouts, and errors."""

import hashlib
import random
from itertools import product

import double_of_cuda
import numpy as np
import pytest

import hologram as hg

torch = pytest.importorskip("torch")
hg_torch = pytest.importorskip("hologram_torch")

F = torch.nn.functional
FORWARD, BACK = (F.conv1d, F.conv2d, F.conv3d), (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
OURS = (hg.conv1d, hg.conv2d, hg.conv3d)
OURS_BACK = (hg.conv_transpose1d, hg.conv_transpose2d, hg.conv_transpose3d)
LIMIT = {np.dtype("float64"): 2.0**-50, np.dtype("float32"): 2.0**-21, np.dtype("float16"): 2.0**-10}


def draw(r, *shape):
    return np.asarray([r.uniform(-1, 1) for _ in range(int(np.prod(shape)))]).reshape(shape)


def case(r):
    """Sizes and settings of a convolution with a result, and its arrays."""
    axes, groups = r.choice((1, 1, 2, 2, 3)), r.choice((1, 1, 2, 3))
    n, c, o = r.choice((1, 1, 2, 3)), r.choice((1, 2, 3)), r.choice((1, 2, 3))
    pick = lambda *of: tuple(r.choice(of) for _ in range(axes))  # noqa: E731
    window, stride, padding, dilation = pick(1, 2, 3), pick(1, 1, 2, 3), pick(0, 1, 2), pick(1, 1, 2)
    sizes = tuple(max(1, d * (k - 1) + 1 - 2 * p) + r.randrange(5) for k, d, p in zip(window, dilation, padding))
    x, w, b = draw(r, n, groups * c, *sizes), draw(r, groups * o, c, *window), draw(r, groups * o)
    return axes, x, w, b, {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}


def close(made, wanted, bound, dtype=np.float64):
    """Within a few roundings of the sum of the products' magnitudes."""
    made = np.asarray(made)
    assert made.dtype == dtype and made.shape == tuple(wanted.shape)
    limit = LIMIT[np.dtype(dtype)] * (np.asarray(bound.detach()) + 1)
    assert (np.abs(made.astype(np.float64) - wanted.detach().numpy()) <= limit).all()


def last(x):
    return np.ascontiguousarray(np.moveaxis(x, 1, -1))


@pytest.mark.parametrize("shard", range(6))
def test_values_are_torchs(shard):
    r = random.Random(shard)
    for number in range(30):
        axes, x, w, b, settings = case(r)
        leaves = [torch.tensor(a) for a in (x, w, b)]
        bound = FORWARD[axes - 1](*(a.abs() for a in leaves), **settings)
        wanted = FORWARD[axes - 1](*leaves, **settings)
        made = OURS[axes - 1](x, w, b, **settings)
        close(made, wanted, bound)
        turned = OURS[axes - 1](last(x), w, b, **settings, channels_last=True)
        assert (np.moveaxis(np.asarray(turned), -1, 1) == np.asarray(made)).all()
        for dtype in (np.float32, np.float16):
            narrow = [a.astype(dtype) for a in (x, w, b)]
            exact = [torch.tensor(a.astype(np.float64)) for a in narrow]
            close(OURS[axes - 1](*narrow, **settings), FORWARD[axes - 1](*exact, **settings), bound, dtype)
        if number % 4 == 0:
            whole = [np.asarray(np.round(a * 127), np.int8) for a in (x, w)]
            made = np.asarray(OURS[axes - 1](*whole, **settings))
            wanted = FORWARD[axes - 1](*(torch.tensor(a.astype(np.float64)) for a in whole), **settings)
            assert made.dtype == np.int32 and (made == wanted.numpy()).all()


@pytest.mark.parametrize("shard", range(4))
def test_transposed_values_are_torchs(shard):
    r = random.Random(100 + shard)
    for _ in range(20):
        axes, x, _, b, settings = case(r)
        window, groups, o = tuple(r.choice((1, 2, 3)) for _ in range(axes)), settings["groups"], len(b) // settings["groups"]
        w = draw(r, x.shape[1], o, *window)
        settings["output_padding"] = tuple(r.randrange(max(s, d)) for s, d in zip(settings["stride"], settings["dilation"]))
        leaves = [torch.tensor(a) for a in (x, w, b)]
        try:
            wanted = BACK[axes - 1](*leaves, **settings)
        except RuntimeError:
            continue  # a result without elements
        made = OURS_BACK[axes - 1](x, w, b, **settings)
        close(made, wanted, BACK[axes - 1](*(a.abs() for a in leaves), **settings))
        turned = OURS_BACK[axes - 1](last(x), w, b, **settings, channels_last=True)
        assert groups > 0 and (np.moveaxis(np.asarray(turned), -1, 1) == np.asarray(made)).all()


@pytest.mark.parametrize("is_back", (False, True))
def test_gradients_of_both_orders_are_torchs(is_back):
    r = random.Random(7)
    for _ in range(10):
        axes, x, w, b, settings = case(r)
        if is_back:
            x = draw(r, x.shape[0], w.shape[0], *x.shape[2:])
            b = draw(r, w.shape[1] * settings["groups"])
            settings["padding"] = 0
        ours, theirs = (OURS_BACK, BACK) if is_back else (OURS, FORWARD)
        leaves = [torch.tensor(a, requires_grad=True) for a in (x, w, b)]
        y = theirs[axes - 1](*leaves, **settings)
        g = draw(r, *y.shape)
        first = torch.autograd.grad((y * torch.tensor(g)).sin().sum(), leaves, create_graph=True)
        second = torch.autograd.grad(sum((a * a).sum() for a in first), leaves)

        def value(p):
            return hg.sum(hg.sin(ours[axes - 1](*p, **settings) * g))  # noqa: B023

        def square(p):
            return sum(hg.sum(a * a) for a in hg.grad(value)(p))  # noqa: B023

        parameters = tuple(map(hg.asarray, (x, w, b)))
        for made, wanted in (*zip(hg.grad(value)(parameters), first), *zip(hg.grad(square)(parameters), second)):
            np.testing.assert_allclose(np.asarray(made), wanted.detach().numpy(), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("mode,padding", [*product(("zeros", "reflect", "replicate", "circular"), (1, (2, 1)))])
def test_modes_of_padding(mode, padding):
    r = random.Random(3)
    x, w = draw(r, 2, 3, 5, 6), draw(r, 4, 3, 3, 2)
    layer = torch.nn.Conv2d(3, 4, (3, 2), padding=padding, padding_mode=mode, bias=False, dtype=torch.float64)
    layer.load_state_dict({"weight": torch.tensor(w)})
    close(hg.conv2d(x, w, padding=padding, padding_mode=mode), layer(torch.tensor(x)), layer(torch.tensor(x)).abs() + 20)
    turned = hg.conv2d(last(x), w, padding=padding, padding_mode=mode, channels_last=True)
    assert (np.moveaxis(np.asarray(turned), -1, 1) == np.asarray(hg.conv2d(x, w, padding=padding, padding_mode=mode))).all()


@pytest.mark.filterwarnings("ignore:Using padding")
@pytest.mark.parametrize("window,dilation", [*product(((3, 3), (2, 5), (4, 1)), (1, 2))])
def test_padding_by_words(window, dilation):
    r = random.Random(4)
    x, w = draw(r, 2, 3, 9, 10), draw(r, 4, 3, *window)
    leaves = torch.tensor(x), torch.tensor(w)
    for word in ("same", "valid"):
        wanted = F.conv2d(*leaves, padding=word, dilation=dilation)
        close(hg.conv2d(x, w, padding=word, dilation=dilation), wanted, wanted.abs() + 40)


def test_what_is_empty_alone_or_without_a_batch():
    one = hg.conv1d([[[3.0]]], [[[2.0]]], [1.0])
    assert one.tolist() == [[[7.0]]]
    assert hg.conv2d(np.zeros((0, 2, 4, 4)), np.zeros((3, 2, 3, 3))).shape == (0, 3, 2, 2)
    assert hg.conv2d(np.zeros((2, 0, 4, 4)), np.zeros((3, 0, 3, 3)), np.ones(3)).tolist() == np.ones((2, 3, 2, 2)).tolist()
    assert hg.conv2d(np.ones((2, 4, 4)), np.ones((3, 2, 3, 3))).shape == (3, 2, 2)
    assert hg.conv_transpose1d(np.ones((2, 4)), np.ones((2, 3, 2)), stride=2).shape == (3, 8)
    assert hg.grad(lambda w: hg.sum(hg.conv1d(np.zeros((0, 1, 3), "float32"), w)))(hg.ones((1, 1, 2))).tolist() == [[[0.0, 0.0]]]


def test_zeros_around_are_multiplied():
    made = hg.conv1d(np.ones((1, 1, 3)), np.asarray([[[np.inf, 1.0, 1.0]]]), padding=1).tolist()
    assert made[0][0][1:] == [np.inf, np.inf] and np.isnan(made[0][0][0])


def digest():
    """Of values and gradients, alone and by hg.jit, that every device has the same bits of."""
    r, found = random.Random(9), hashlib.sha256()
    for shape, window, settings, turned in (((2, 4, 9, 7), (6, 2, 3, 3), {"stride": (2, 1), "padding": (1, 2), "groups": 2}, False),
                                            ((1, 5, 6, 40), (8, 40, 3, 3), {"padding": 1}, True),
                                            ((1, 33, 9, 8), (20, 33, 3, 3), {"dilation": 2}, False),
                                            ((2, 3, 150), (5, 3, 7), {"padding": 3}, False)):
        leaves = tuple(hg.asarray(draw(r, *s).astype("float32")) for s in (shape, window))
        value = lambda p: OURS[len(window) - 3](*p, **settings, channels_last=turned)  # noqa: B023, E731
        slope = hg.grad(lambda p: hg.sum(hg.relu(value(p)) ** 2))  # noqa: B023
        made = [np.asarray(a).tobytes() for a in (value(leaves), *slope(leaves))]
        assert made == [np.asarray(a).tobytes() for a in (hg.jit(value)(leaves), *hg.jit(slope)(leaves))]
        for one in made:
            found.update(one)
    return found.hexdigest()


def test_bits_are_the_same_on_every_engine():
    code, here = "import test_convolution as t; print(t.digest())", digest()
    for engine in ("interp", "tile"):
        assert double_of_cuda.run(code, HOLOGRAM_CPU_ENGINE=engine).strip() == here


@double_of_cuda.needed
def test_bits_are_the_same_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_convolution") == digest()


def test_examples_of_vmap_are_those_alone():
    r = random.Random(11)
    x, w = draw(r, 3, 2, 4, 6, 5), draw(r, 6, 4, 3, 3)
    many = hg.vmap(lambda x: hg.conv2d(x, w, padding=1))(hg.asarray(x))
    assert all((np.asarray(many)[i] == np.asarray(hg.conv2d(x[i], w, padding=1))).all() for i in range(3))


LAYERS = [("Conv1d", (2, 4, 3), {"padding": "same"}, (5, 2, 8)), ("Conv2d", (4, 6, (3, 2)), {"stride": 2, "groups": 2}, (2, 4, 8, 7)),
          ("Conv3d", (1, 2, 2), {"bias": False}, (1, 1, 4, 4, 4)),
          ("Conv2d", (2, 2, 3), {"padding": 1, "padding_mode": "reflect"}, (1, 2, 4, 5)),
          ("ConvTranspose1d", (2, 4, 2), {"stride": 2}, (5, 2, 8)),
          ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, (1, 4, 4, 3)),
          ("ConvTranspose3d", (1, 1, 2), {}, (1, 1, 2, 2, 2))]


@pytest.mark.parametrize("name,arguments,named,shape", LAYERS)
def test_layers_exchange_states(name, arguments, named, shape):
    theirs, ours = getattr(torch.nn, name)(*arguments, **named), getattr(hg.nn, name)(*arguments, **named)
    like = ours.init(hg.random.key(0))
    parameters = hg.nn.load_state_dict(like, theirs.state_dict())
    x = draw(random.Random(5), *shape).astype("float32")
    wanted = theirs(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(np.asarray(ours(parameters, x)), wanted, rtol=1e-4, atol=1e-5)
    bound = 1 / np.sqrt(np.prod(like["weight"].shape[1:]))
    assert np.abs(np.asarray(like["weight"])).max() <= bound
    inside = getattr(hg_torch.nn, name)(*arguments, **named)
    inside.load_state_dict(theirs.state_dict())
    leaf = torch.tensor(x, requires_grad=True)
    made = inside(leaf)
    np.testing.assert_allclose(made.detach().numpy(), wanted, rtol=1e-4, atol=1e-5)
    made.square().sum().backward()
    other = torch.tensor(x, requires_grad=True)
    theirs(other).square().sum().backward()
    np.testing.assert_allclose(leaf.grad.numpy(), other.grad.numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(inside.weight.grad.numpy(), theirs.weight.grad.numpy(), rtol=1e-3, atol=1e-4)


X, W = np.ones((1, 2, 5, 5)), np.ones((4, 2, 3, 3))


@pytest.mark.parametrize("call,words", [
    (lambda: hg.conv2d(X[0, 0], W), "x has 4 axes, or 3 without a batch"),
    (lambda: hg.conv2d(X, W[:, :1]), "x has 2 channels; 1 groups of weights for 1 channels take 1"),
    (lambda: hg.conv2d(X, W[:, :1], groups=3), "4 output channels in 3 groups"),
    (lambda: hg.conv2d(X, W, groups=0), "0 groups; there is one at least"),
    (lambda: hg.conv2d(X, np.ones((1, 2, 6, 3))), "along axis 0 the window covers 6 elements, and the image with what is around it has 5"),
    (lambda: hg.conv2d(X, W, stride=0), "'stride' has 0; it takes 1 to"),
    (lambda: hg.conv2d(X, W, stride=(1, 2, 3)), "stride is an integer, or 2 of them"),
    (lambda: hg.conv2d(X, W, padding=-1), "padding is 0 or more"),
    (lambda: hg.conv2d(X, W, padding="half"), "'same' or 'valid', not 'half'"),
    (lambda: hg.conv2d(X, W, padding="same", stride=2), "write the numbers"),
    (lambda: hg.conv2d(X, W, padding=1, padding_mode="mirror"), "zeros, reflect, replicate, circular, not 'mirror'"),
    (lambda: hg.conv2d(X, W, padding=5, padding_mode="reflect"), "padding 5 of an axis of 5 elements is too much"),
    (lambda: hg.conv_transpose2d(X, np.ones((2, 1, 3, 3)), output_padding=1), "less than the stride or the dilation"),
    (lambda: hg.conv_transpose2d(X, np.ones((2, 1, 1, 1)), padding=3), "the result's sizes would be"),
    (lambda: hg.nn.Conv2d(3, 4, 3, groups=2), "both are multiples of the groups"),
])
def test_errors_say_what_to_write(call, words):
    with pytest.raises((ValueError, hg.Error), match=words.replace("(", r"\(")):
        call()
