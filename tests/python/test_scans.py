"""Running results in Python: one signature, NumPy's and PyTorch's values segment by segment, gradients, errors, bits on a GPU's double."""

import hashlib

import double_of_cuda
import numpy as np
import pytest

import hologram as hg

RNG = np.random.default_rng(12)
ALL = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "logsumexp": np.logaddexp}


def scan(what):
    return getattr(hg, f"cumulative_{what}")


def parts(segments):
    """Where segments begin and end."""
    edges = [0, *(np.flatnonzero(segments[1:] if segments.dtype == bool else segments[1:] != segments[:-1]) + 1), len(segments)]
    return list(zip(edges[:-1], edges[1:]))


def by_parts(accumulate, x, segments, reverse):
    made = np.empty(x.shape, accumulate(x[:1]).dtype)
    for a, b in parts(segments):
        part = x[a:b][::-1] if reverse else x[a:b]
        made[a:b] = accumulate(part)[::-1] if reverse else accumulate(part)
    return made


@pytest.mark.parametrize("what", ALL)
@pytest.mark.parametrize("kind", ["int64", "int16", "float64", "float32"])
def test_segments_as_numpy_does_parts(what, kind):
    if what == "logsumexp" and kind.startswith("int"):
        pytest.skip("it takes floats")
    for n in (1, 2, 300, 1000):
        x = RNG.integers(-2, 3, n).astype(kind) if what != "logsumexp" else RNG.standard_normal(n).astype(kind)
        for segments in (RNG.random(n) < 0.05, np.cumsum(RNG.random(n) < 0.02) % 5):
            for reverse in (False, True):
                own = scan(what)(hg.asarray(x), segments=segments, reverse=reverse).numpy()
                right = by_parts(ALL[what].accumulate, x, segments, reverse)
                np.testing.assert_allclose(own, right, rtol=2e-6 if kind == "float32" else 1e-13)


def test_vectors_of_segments_and_axes():
    x, segments = RNG.standard_normal((3, 40, 5)), RNG.random(40) < 0.2
    own = hg.cumulative_sum(hg.asarray(x), 1, segments=segments)
    right = by_parts(lambda v: np.cumsum(v, 0), np.moveaxis(x, 1, 0), segments, False)
    np.testing.assert_allclose(own.numpy(), np.moveaxis(right, 0, 1), rtol=1e-12)
    whole = np.broadcast_to(segments[:, None], (40, 5))
    assert hg.cumulative_sum(hg.asarray(x), 1, segments=np.broadcast_to(whole, x.shape)).numpy().tobytes() == own.numpy().tobytes()


def test_one_signature():
    x = hg.asarray(np.array([[1, 2, 3], [4, 5, 6]], np.int32))
    for what, first in (("sum", 0), ("prod", 1), ("max", -2**31), ("min", 2**31 - 1)):
        own = scan(what)(x, 0, include_initial=True)
        assert own.shape == (3, 3) and own[0].tolist() == [first] * 3 and own[1:].tolist() == scan(what)(x, 0).tolist()
        back = scan(what)(x, 0, include_initial=True, reverse=True)
        assert back[-1].tolist() == [first] * 3
        assert scan(what)(x, exclusive=True)[:, 0].tolist() == [first] * 2
        assert scan(what)(x, dtype="float32").dtype == hg.float32
    assert hg.cumulative_logsumexp(hg.zeros(2), include_initial=True)[0].tolist() == -np.inf
    assert hg.cumulative_max(hg.zeros(2), include_initial=True)[0].tolist() == -np.inf


def test_errors():
    x = hg.ones((2, 3))
    with pytest.raises(ValueError, match=r"cumulative_sum: segments has shape \(2,\); it has x's, \(2, 3\), or is a vector of 3"):
        hg.cumulative_sum(x, segments=[1, 2])
    with pytest.raises(TypeError, match="cumulative_max: segments are bool"):
        hg.cumulative_max(x, segments=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="cumulative_prod: include_initial=True is of whole lines"):
        hg.cumulative_prod(x, segments=[1, 2, 2], include_initial=True)
    with pytest.raises(ValueError, match="has to be given"):
        hg.array_api.cumulative_sum(x)


def test_gradients_as_torch_has_them():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: `./dev test torch` installs it")
    theirs = {"sum": torch.cumsum, "prod": torch.cumprod, "logsumexp": torch.logcumsumexp,
              "max": lambda v, d: torch.cummax(v, d)[0], "min": lambda v, d: torch.cummin(v, d)[0]}  # fmt: skip
    for n in (7, 600):
        weights = RNG.standard_normal(n)
        for segments in (np.zeros(n, int), np.cumsum(RNG.random(n) < 0.2)):
            for what, f in theirs.items():
                x = RNG.standard_normal(n) if what != "prod" else RNG.integers(-2, 3, n) * RNG.uniform(0.5, 1, n)
                for reverse in (False, True):
                    t = torch.tensor(x, requires_grad=True)
                    made = [f(t[a:b].flip(0), 0).flip(0) if reverse else f(t[a:b], 0) for a, b in parts(segments)]
                    (torch.cat(made) * torch.tensor(weights)).sum().backward()
                    own = hg.grad(lambda v, what=what, reverse=reverse, s=segments, w=weights: (
                        scan(what)(v, reverse=reverse, segments=s) * hg.asarray(w)).sum())(hg.asarray(x))  # fmt: skip
                    np.testing.assert_allclose(own.numpy(), t.grad, rtol=1e-9, atol=1e-10)
                    if not segments.any() and what in ("max", "min"):
                        own = hg.grad(lambda v, what=what, reverse=reverse, w=weights: (
                            scan(what)(v, reverse=reverse) * hg.asarray(w)).sum())  # fmt: skip
                        np.testing.assert_allclose(own(hg.asarray(x)).numpy(), t.grad, rtol=1e-9, atol=1e-10)


def digest():
    rng, made = np.random.default_rng(3), hashlib.sha256()
    for shape, axis in (((700,), 0), ((3, 300), 1), ((300, 5), 0), ((2, 30, 40), 1), ((70_000,), 0)):
        x, segments = rng.standard_normal(shape).astype("f4"), rng.random(shape) < 0.01
        for what in ALL:
            for reverse in (False, True):
                more = {"segments": segments, "reverse": reverse}
                made.update(scan(what)(hg.asarray(x), axis, **more).numpy().tobytes())
                if x.size < 1000:
                    slope = hg.grad(lambda v, what=what, axis=axis, more=more: (scan(what)(v, axis, **more) ** 2).sum())
                    made.update(slope(hg.asarray(x)).numpy().tobytes())
    return made.hexdigest()


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_scans") == digest()


def test_examples_are_mapped():
    x, segments = hg.asarray(RNG.standard_normal((3, 50))), hg.asarray(RNG.random(50) < 0.2)
    own = hg.vmap(lambda v: hg.cumulative_sum(v, segments=segments))(x)
    assert own.numpy().tobytes() == hg.stack([hg.cumulative_sum(x[i], segments=segments) for i in range(3)]).numpy().tobytes()
