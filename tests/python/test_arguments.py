"""Numbers given as arguments: those that mean nothing are refused, and bounds and ends are exact."""

import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import hologram as hg

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import gen_operations  # noqa: E402

INF, NAN = math.inf, math.nan
NUMBERS = [(operation, name) for operation in gen_operations.load()
           for name, default in re.findall(r"(\w+)=(\S+?)(?:,|$)", operation.arguments) if re.fullmatch(r"\d*\.\d+|-?inf|nan", default)]
# What fills or multiplies may be any number, as an element may.
FACTORS = {("full", "value"), ("threshold", "value"), ("gemm", "alpha"), ("gemm", "beta"), ("index_add", "alpha")}


@pytest.mark.parametrize("operation, name", NUMBERS, ids=[f"{operation.name} {name}" for operation, name in NUMBERS])
def test_no_argument_is_nan(operation, name):
    """Whatever the table of operations takes as a number: a NaN is refused, in words that name the argument."""
    if (operation.name, name) in FACTORS:
        return
    if operation.name == "arange":
        given = {"start": 0.0, "stop": 3.0, "step": 1.0} | {name: NAN}
        with pytest.raises(hg.Error, match="nan"):
            hg.arange(*given.values())
        return
    names = [part for part in operation.inputs.split(", ") if part and not part.endswith("?")]
    arrays = [hg.random.key(0) if part == "key" else hg.ones((2, 2)) for part in names]
    if operation.name in ("cross_entropy_of_classes", "multi_margin"):
        arrays[1] = hg.asarray([0, 1])
    if operation.types.startswith("integer;"):
        arrays[0] = arrays[0].astype("int32")
    with pytest.raises(hg.Error, match=rf"{name} (is )?nan|from [\w.]+ to below nan|nan to below"):
        hg.compute(getattr(hg, operation.name)(*arrays, **{name: NAN}, **({"shape": (2,)} if operation.kind == "random" else {})))


def test_numbers_that_are_none():
    x, key = hg.ones(3), hg.random.key(0)
    state = hg.optim.Adam().init(x)
    for call in (lambda: hg.dropout(x, key, p=1.5), lambda: hg.dropout(x, key, p=NAN), lambda: hg.huber(x, x, delta=0.0),
                 lambda: hg.clip(x, NAN, 1.0), lambda: hg.random.uniform(key, 3, 1.0, -1.0), lambda: hg.random.uniform(key, 3, 0.0, INF),
                 lambda: hg.random.normal(key, 3, 0.0, -1.0), lambda: hg.cross_entropy(hg.ones((4, 3)), hg.ones((4, 1))),
                 lambda: hg.bce(hg.ones((4, 1)), hg.ones((4, 3))), lambda: x.pad(1),
                 lambda: hg.softplus(x, beta=0.0), lambda: hg.softplus(x, beta=-1.0), lambda: hg.softplus(x, beta=INF),
                 lambda: hg.elu(x, alpha=INF), lambda: hg.leaky_relu(x, slope=-INF), lambda: hg.layer_norm(x, eps=-1e-5),
                 lambda: hg.rms_norm(x, eps=INF), lambda: hg.batch_norm(hg.ones((2, 3)), eps=-1.0), lambda: hg.std(x, correction=INF),
                 lambda: hg.batch_norm(hg.ones((2, 3)), momentum=1.5), lambda: hg.optim.Adam(0.1, beta1=1.0).update(x, x, state),
                 lambda: hg.optim.AdamW(0.1, eps=-1.0).update(x, x, state), lambda: hg.optim.Adam(0.1, decay=-1.0).update(x, x, state),
                 lambda: hg.hardtanh(x, low=1.0, high=-1.0), lambda: hg.celu(x, alpha=0.0), lambda: hg.softshrink(x, threshold=-0.5),
                 lambda: hg.group_norm(hg.ones((2, 4)), groups=3), lambda: hg.group_norm(hg.ones((2, 4)), groups=0), lambda: hg.glu(x),
                 lambda: hg.smooth_l1(x, x, beta=-1.0), lambda: hg.multi_margin(x, hg.asarray(1), p=3),
                 lambda: hg.prelu(hg.ones((2, 3)), hg.ones(2)), lambda: hg.cosine_embedding(x, hg.ones(1), hg.asarray(1)),
                 lambda: hg.gaussian_nll(hg.ones((3, 3)), hg.ones((3, 3)), hg.ones(2)),
                 lambda: hg.optim.SGD(0.1, decay=-1.0).update(x, x, {}),
                 lambda: hg.optim.SGD(0.1, momentum=INF).update(x, x, {"buffer": x})):
        with pytest.raises(hg.Error):
            hg.compute(call())
    for p in (NAN, -0.25, 1.5):
        with pytest.raises(ValueError, match="from 0 to 1"):
            hg.random.bernoulli(key, 3, p)


def test_bounds_and_ends():
    large = hg.asarray(np.array([2**53, 2**62]))
    assert hg.clip(large, 2**53 + 1, 2**62 - 1).tolist() == [2**53 + 1, 2**62 - 1]
    assert hg.clip(large, -(2**70), 2**70).tolist() == [2**53, 2**62] and hg.clip(large, 0.5, 3).dtype == hg.float32
    assert hg.clip(hg.asarray(np.array([3, 2**64 - 1], "u8")), -1, 2**64 - 2).tolist() == [3, 2**64 - 2]
    assert hg.array_api.clip(hg.arange(3), 0.5, 2).tolist() == [0.5, 1.0, 2.0]
    assert hg.linspace(-1.7e308, 1.7e308, 3, "float64").tolist() == [-1.7e308, 0, 1.7e308]
    assert hg.linspace(2**53 + 1, 0, 2, "int64").tolist() == [2**53 + 1, 0]
    assert hg.linspace(4, -3, 5, "int32").tolist() == np.linspace(4, -3, 5, dtype="i4").tolist()
    wide = hg.random.uniform(hg.random.key(1), (1000,), -3e38, 3e38).numpy()
    assert np.isfinite(wide).all() and wide.min() < -2.9e38 and wide.max() > 2.9e38
    assert hg.pad(hg.ones(1), (np.int64(1), np.int64(2))).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert np.array_equal(hg.pad(hg.ones((2, 2)), [(0, 1), (2, 0)]).numpy(), np.pad(np.ones((2, 2)), [(0, 1), (2, 0)]))
    assert float(hg.asarray(np.array([2**62] * 3)).mean()) == 2.0**62
