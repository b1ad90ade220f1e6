"""Activations, norms of channels, losses and distances: the same bits lazy, eager, in a jit and on the double of CUDA; gradients beside
differences; what PyTorch says of them is in test_special_points.py and test_torch_names.py."""

import hashlib

import double_of_cuda
import numpy as np
import pytest

import hologram as hg

RNG = np.random.default_rng(40)


def numbers(*shape, low=-2.0, high=2.0):
    return hg.asarray(RNG.uniform(low, high, shape))


X, Y, Z, IMAGES = numbers(3, 4), numbers(3, 4), numbers(3, 4), numbers(2, 4, 3, 5)
WEIGHT, BIAS, VAR = numbers(4, low=0.5), numbers(4), numbers(3, 4, low=0.5)
SIGNS, CLASSES = hg.asarray([[1, -1, 1, -1], [-1, 1, 1, -1], [1, 1, -1, -1]]), hg.asarray([1, 3, 0])
ONE = ("relu6 hardtanh hardsigmoid selu celu softsign logsigmoid tanhshrink softshrink hardshrink threshold softmin glu normalize").split()
CALLS = {
    **{name: (getattr(hg, name), (X,)) for name in ONE},
    "prelu": (hg.prelu, (X, WEIGHT)), "prelu of one": (hg.prelu, (X, WEIGHT[:1])),
    "group_norm": (lambda x, w, b: hg.group_norm(x, w, b, groups=2), (IMAGES, WEIGHT, BIAS)),
    "instance_norm": (hg.instance_norm, (IMAGES, WEIGHT, BIAS)),
    "smooth_l1": (lambda x, y: hg.smooth_l1(x, y, beta=0.5), (X, Y)), "poisson_nll": (hg.poisson_nll, (X, Y)),
    "gaussian_nll": (lambda x, y, v: hg.gaussian_nll(x, y, v, full=1), (X, Y, VAR)),
    "gaussian_nll of rows": (hg.gaussian_nll, (X, Y, VAR[:, 0])), "margin_ranking": (lambda x, y: hg.margin_ranking(x, y, SIGNS), (X, Y)),
    "hinge_embedding": (lambda x: hg.hinge_embedding(x, SIGNS, margin=0.5), (X,)),
    "multi_margin": (lambda x, w: hg.multi_margin(x, CLASSES, w, p=2), (X, WEIGHT)),
    "cosine_similarity": (hg.cosine_similarity, (X, Y)), "cosine_similarity of one": (hg.cosine_similarity, (X, WEIGHT)),
    "cosine_embedding": (lambda x, y: hg.cosine_embedding(x, y, SIGNS[:, 0], margin=-0.5), (X, Y)),
    "pairwise_distance": (hg.pairwise_distance, (X, Y)), "triplet_margin": (lambda a, p, n: hg.triplet_margin(a, p, n, swap=1), (X, Y, Z)),
    **{f"cdist {p:g}": (lambda a, b, p=p: hg.cdist(a, b, p=p), (X, Y[:2])) for p in (0.5, 1.0, 2.0, 3.0, np.inf)},
}


def bits(values):
    return [np.asarray(v).tobytes() for v in values]


def value_and_slopes(function, *arrays):
    value, slopes = hg.value_and_grad(lambda *x: (function(*x) ** 2).sum(), argnums=tuple(range(len(arrays))))(*arrays)
    return value, *slopes


def digest():
    """Of the values and slopes of all of them, on the default executor."""
    made = hashlib.sha256()
    for function, arrays in CALLS.values():
        made.update(b"".join(bits(value_and_slopes(function, *arrays))))
    return made.hexdigest()


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_losses") == digest()


@pytest.mark.parametrize("name", CALLS)
def test_bits_and_gradients(name):
    function, arrays = CALLS[name]

    def both(*given):
        return value_and_slopes(function, *given)

    lazy = bits(both(*arrays))
    with hg.eager():
        assert bits(both(*arrays)) == lazy
    assert bits(hg.jit(both)(*arrays)) == lazy
    hg.grad(lambda *x: (function(*x) ** 2).sum(), argnums=tuple(range(len(arrays))), check=True)(*arrays)
    narrow = [a.astype("float32") for a in arrays]
    assert np.allclose(function(*narrow), function(*arrays), rtol=1e-5, atol=1e-5)
    assert function(*(a.astype("bfloat16") for a in arrays)).dtype == hg.bfloat16


def test_integers_become_floats():
    assert hg.relu6(hg.arange(-1, 9)).tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 6, 6] and hg.relu6(hg.arange(3)).dtype == hg.float32
    assert hg.cdist(hg.asarray([[0, 0]]), hg.asarray([[3, 4]])).tolist() == [[5]]


def test_groups_are_those_of_channels():
    x = IMAGES
    by_hand = hg.layer_norm(x.reshape((2, 2, -1))).reshape(x.shape)
    assert np.array_equal(hg.group_norm(x, groups=2), by_hand)
    assert np.array_equal(hg.instance_norm(x), hg.group_norm(x, groups=4))
    assert hg.group_norm(x[:0], WEIGHT, BIAS, groups=2).shape == (0, 4, 3, 5)


@pytest.mark.parametrize("call, words", [
    (lambda: hg.group_norm(IMAGES, groups=3), "channels is 4; it has to be a multiple of 3"),
    (lambda: hg.glu(IMAGES, axis=2), "width is 3; it has to be a multiple of 2"),
    (lambda: hg.hardtanh(X, low=1.0, high=0.0), "high is 0; it has to lie from 1 to inf"),
    (lambda: hg.prelu(X, hg.ones(3)), "weight is f32.3.; it is a vector with a number for each of 4 places along axis 1"),
    (lambda: hg.cdist(X, Y, p=-1.0), "p is -1; it has to lie from 0 to"),
    (lambda: hg.gaussian_nll(X, Y, hg.ones(2)), "var is f64.2.|var is f32.2.|its shape has to be"),
    (lambda: hg.smooth_l1(X, Y, reduction="all"), "mean")])
def test_what_is_refused(call, words):
    with pytest.raises((hg.Error, ValueError), match=words):
        call()


def test_distances_of_near_points():
    """By products of float32 nothing would be left of them."""
    x = np.array([[1000.0, 1000.0], [1000.0, 1000.001]], np.float32)
    exact = np.abs(x[0].astype(np.float64) - x[1]).max()
    assert float(hg.cdist(hg.asarray(x), hg.asarray(x))[0, 1]) == np.float32(exact)


def test_a_gradient_of_distances_stores_no_differences():
    a = hg.ones((256, 64))
    made = hg.grad(lambda a: (hg.cdist(a, a * 2) ** 2).sum())(a)
    assert hg.explain(made, json=True)["temporary_bytes"] < 16 * 256 * 256
