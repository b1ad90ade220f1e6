"""Keys, and hg.jit."""

import hashlib

import double_of_cuda
import numpy as np
import pytest

import hologram as hg


def test_the_same_key_gives_the_same_numbers():
    key = hg.random.key(7)
    a, b = hg.random.normal(key, (100,)), hg.random.normal(hg.random.key(7), (100,))
    assert a.tolist() == b.tolist() != hg.random.normal(hg.random.key(8), (100,)).tolist()
    keys = hg.random.split(key, 5)
    assert keys.shape == (5,) and keys.dtype == "uint64" and len(set(keys.tolist())) == 5
    assert hg.random.normal(keys[0], (10,)).tolist() != hg.random.normal(keys[1], (10,)).tolist()


def test_what_they_look_like():
    key = hg.random.key(1)
    u = hg.random.uniform(key, (200, 50), 2.0, 4.0).numpy()
    assert u.shape == (200, 50) and 2 <= u.min() < 2.01 and 3.99 < u.max() < 4 and abs(u.mean() - 3) < 0.02
    n = hg.random.normal(key, 10000, dtype="float64").numpy()
    assert n.dtype == "float64" and abs(n.mean()) < 0.05 and abs(n.std() - 1) < 0.05
    assert set(hg.random.integers(key, (1000,), -2, 3).tolist()) == {-2, -1, 0, 1, 2}
    assert abs(np.mean(hg.random.bernoulli(key, 10000, 0.3).numpy()) - 0.3) < 0.03
    assert hg.random.bits(key, (3,)).dtype == "uint32" and hg.random.uniform(key).shape == ()
    with pytest.raises(ValueError):
        hg.random.key(-1)


def test_jit_computes_all_that_is_returned():
    calls = []

    @hg.jit
    def function(x, scale):
        """Words."""
        calls.append(1)
        return {"a": hg.exp(x) * scale, "b": [x.sum(), (x, 3)]}

    x = hg.asarray(np.arange(4, dtype="f4"))
    for scale in (2.0, 3.0, 4.0):
        made = function(x + 1, scale)
        assert not made["a"].is_pending and not made["b"][0].is_pending
        np.testing.assert_allclose(made["a"].numpy(), np.exp(np.arange(1, 5, dtype="f4")) * np.float32(scale), rtol=1e-6)
    assert len(calls) == 3 and function.__name__ == "function" and function.__doc__ == "Words."
    step = hg.jit(hg.value_and_grad(lambda w: (w * w).sum()))
    value, gradient = step(hg.ones(3))
    assert not value.is_pending and not gradient.is_pending and gradient.tolist() == [2, 2, 2]


def numbers():
    """In shapes whose elements share counters in one way or another: whole packs of 8, 4 and 2, and none; views of what is drawn."""
    key, keys = hg.random.key(9), hg.random.split(hg.random.key(4), 3)
    for kind in ("float32", "float64", "float16", "bfloat16"):
        for shape in ((64,), (13,), (6,), (12,), (3, 8), (4, 6), (5, 4, 2), (2, 3, 16), (1,), (0,)):
            yield hg.random.normal(key, shape, dtype=kind)
            yield hg.random.uniform(key, shape, -1, 2, dtype=kind)
            yield hg.random.gumbel(key, shape, dtype=kind)
            drawn = hg.jit(lambda key, shape=shape, kind=kind: hg.random.normal(key, shape, dtype=kind)[..., ::-1].T * 2)
            yield drawn(key)
        yield hg.vmap(lambda key, kind=kind: hg.random.normal(key, (7,), dtype=kind))(keys)
        yield hg.vmap(lambda key, kind=kind: hg.random.gumbel(key, (7,), dtype=kind))(keys)
    for high in (10, 2**40):
        for shape in ((64,), (13,), (3, 8), (5, 4, 2)):
            yield hg.random.integers(key, shape, 0, high)
            yield hg.random.bits(key, shape)
    x = hg.arange(48).astype("float32").reshape((6, 8))
    yield hg.jit(lambda x, key: hg.dropout(x, key, p=0.25) + hg.random.normal(key, (8,)))(x, key)
    yield hg.repeat(hg.arange(24).reshape((4, 6)), 2, axis=1) + hg.random.integers(key, (4, 12))


def digest():
    made = hashlib.sha256()
    for x in numbers():
        made.update(repr(x.shape).encode() + x.astype("float64").numpy().tobytes() if x.dtype.kind == "float" else x.numpy().tobytes())
    return made.hexdigest()


@double_of_cuda.needed
def test_on_the_double_of_cuda():
    assert double_of_cuda.digest_of("test_random") == digest()


def test_weights_of_nothing():
    """No number beyond the last class, and no count in another row."""
    key = hg.random.key(0)
    for p in ([0, 0, 0], [1.0, float("inf"), 1.0]):
        with pytest.raises(ValueError, match="^choice: "):
            hg.random.choice(key, 3, (4,), p=p)
    with pytest.raises(hg.IndexFault):
        np.asarray(hg.random.choice(key, 3, (4,), p=hg.zeros(3)))
    with pytest.raises(hg.IndexFault):
        np.asarray(hg.random.multinomial(key, 10, [[0, 0, 0], [1, 1, 1]]))
