"""Every name of the array API is one of hologram's; methods; functions take what arrays are made of."""

import inspect
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import hologram as hg
from hologram import array_api as xp

STANDARD = sorted(name for name in dir(xp) if not name.startswith("_") and name not in ("annotations", "TYPE_CHECKING")) + [
    "__array_namespace_info__"]
# In both the same values for the same arguments: one has names or places of arguments more. Others are rows of docs/semantics.toml.
ALIKE = {"asarray", "diff", "eye"}
N = np.arange(6, dtype="f4").reshape(2, 3)
X = hg.asarray(N)


def test_every_name_of_the_standard():
    assert len(STANDARD) > 180
    assert [name for name in STANDARD if not hasattr(hg, name)] == []


def test_names_that_mean_something_else():
    """Those that are not the same object have a row in the table of semantics, from which docs/array-api.md is made."""
    from test_semantics import ROWS

    other = {name for name in STANDARD if getattr(hg, name) is not getattr(xp, name)}
    assert other - ALIKE == {row["operation"] for row in ROWS if "array_api" in row}


METHODS = {
    "flatten": (lambda x: x.flatten(), lambda n: n.flatten()), "ravel": (lambda x: x.T.ravel(), lambda n: n.T.ravel()),
    "flatten some": (lambda x: x.reshape(2, 3, 1).flatten(1), lambda n: n), "copy": (lambda x: x.copy(), lambda n: n.copy()),
    "flatten one": (lambda x: hg.asarray(2.5).flatten(), lambda n: np.array(2.5, "f4").flatten()),
    "flatten two": (lambda x: x.reshape(1, 2, 3).flatten(0, -2), lambda n: n),
    "ravel none": (lambda x: x[:, :0].ravel(), lambda n: n[:, :0].ravel()),
    "repeat": (lambda x: x.repeat(2), lambda n: n.repeat(2)), "repeat axis": (lambda x: x.repeat(3, axis=1), lambda n: n.repeat(3, axis=1)),
    "repeat each": (lambda x: x.repeat([2, 0, 1], axis=-1), lambda n: n.repeat([2, 0, 1], axis=-1)),
    "sort": (lambda x: (-x).sort(), lambda n: np.sort(-n)), "sort axis": (lambda x: (-x).sort(0), lambda n: np.sort(-n, 0)),
    "sort all": (lambda x: (-x).sort(axis=None), lambda n: np.sort(-n, None)),
    "sort down": (lambda x: x.sort(descending=True), lambda n: np.flip(np.sort(n), -1)),
    "argsort": (lambda x: (-x).argsort(), lambda n: (-n).argsort(stable=True)),
    "argsort all": (lambda x: (-x).argsort(None), lambda n: (-n).argsort(None, stable=True)),
    "cumsum": (lambda x: x.cumsum(), lambda n: n.cumsum()), "cumsum axis": (lambda x: x.cumsum(0), lambda n: n.cumsum(0)),
    "cumsum type": (lambda x: x.cumsum(axis=1, dtype="int32"), lambda n: n.cumsum(axis=1, dtype="int32")),
    "round": (lambda x: (x / 2).round(), lambda n: (n / 2).round()),
}  # fmt: skip


@pytest.mark.parametrize("what", METHODS)
def test_methods(what):
    ours, theirs = METHODS[what]
    found, expected = ours(X).numpy(), theirs(N)
    assert found.dtype == expected.dtype and found.shape == expected.shape and found.tobytes() == expected.tobytes()
    assert np.array_equal(X.numpy(), N)  # no method changes its array
    with hg.eager():
        assert ours(X).numpy().tobytes() == expected.tobytes()
    assert hg.jit(ours)(X).numpy().tobytes() == expected.tobytes()


def test_methods_keep_gradients_and_memory():
    weights = hg.arange(6.0)
    as_it_is = weights.reshape(2, 3)
    for f, n in ((lambda x: (x.flatten() * weights).sum(), as_it_is), (lambda x: (x.copy().ravel() * weights).sum(), as_it_is),
                 (lambda x: (x.sort(axis=None) * weights).sum(), as_it_is), (lambda x: x.repeat(2).sum(), hg.full((2, 3), 2.0)),
                 (lambda x: x.cumsum().sum(), hg.asarray([[6.0, 5, 4], [3, 2, 1]]))):  # fmt: skip
        assert hg.grad(f)(X).tolist() == n.tolist()
    y = X.copy()
    y[0, 0] = 9
    assert X[0, 0] == 0 and y.ravel()[0] == 9


@pytest.mark.parametrize("call, error, words", [
    (lambda: X.flatten("F"), TypeError, "elements come in C order, not 'F'"), (lambda: X.flatten(2), IndexError, "axis 2 is out of range"),
    (lambda: X.flatten(1, 0), ValueError, "axis 1 comes behind axis 0"),
    (lambda: X.repeat(2, 1), TypeError, r"x.repeat\(2, axis=0\); hologram.tile"),
    (lambda: X.repeat(-1), ValueError, "at least 0 times"), (lambda: X.sort(2), IndexError, "axis 2 is out of range"),
])  # fmt: skip
def test_methods_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


TAKEN = {
    "concat": lambda n, a: n.concat([a, a]), "concat all": lambda n, a: n.concat([a, a], axis=None), "stack": lambda n, a: n.stack([a, a]),
    "roll": lambda n, a: n.roll(a, 1), "tile": lambda n, a: n.tile(a, (2, 1)), "unstack": lambda n, a: n.unstack(a)[1],
    "expand_dims": lambda n, a: n.expand_dims(a, axis=1), "moveaxis": lambda n, a: n.moveaxis(a, 0, 1), "diff": lambda n, a: n.diff(a),
    "broadcast_to": lambda n, a: n.broadcast_to(a, (2, 2, 3)), "broadcast_arrays": lambda n, a: n.broadcast_arrays(a, a[0])[1],
    "repeat": lambda n, a: n.repeat(a, 2, axis=0),
    "take_along_axis": lambda n, a: n.take_along_axis(a, [[2], [0]] if n is hg else np.array([[2], [0]]), axis=1),
    "reshape": lambda n, a: n.reshape(a, (3, 2)), "astype": lambda n, a: n.astype(a, "int32"), "divide": lambda n, a: n.divide(a, 2),
    "positive": lambda n, a: n.positive(a), "negative": lambda n, a: n.negative(a), "real": lambda n, a: n.real(a),
    "imag": lambda n, a: n.imag(a),
    "signbit": lambda n, a: n.signbit(a), "count_nonzero": lambda n, a: n.count_nonzero(a), "nonzero": lambda n, a: n.nonzero(a)[1],
    "vecdot": lambda n, a: n.vecdot(a, a), "tensordot": lambda n, a: n.tensordot(a, a, axes=([1], [1])), "sort": lambda n, a: n.sort(a),
    "argsort": lambda n, a: n.argsort(a), "searchsorted": lambda n, a: n.searchsorted(a[0], a[1]),
    "unique_values": lambda n, a: n.unique_values(a),
    "cumulative_prod": lambda n, a: n.cumulative_prod(a, axis=1), "zeros_like": lambda n, a: n.zeros_like(a),
    "matrix_transpose": lambda n, a: n.matrix_transpose(a),
    "bitwise_left_shift": lambda n, a: n.bitwise_left_shift(n.astype(a, "int32"), 1),
    "meshgrid": lambda n, a: n.meshgrid(a[0], a[1])[0],
    "permute_dims": lambda n, a: n.permute_dims(a, (1, 0)), "subtract": lambda n, a: n.subtract(a, 1),
    "empty_like": lambda n, a: n.empty_like(a) * 0,
}  # fmt: skip


@pytest.mark.parametrize("what", TAKEN)
@pytest.mark.parametrize("kind", ["array", "numpy", "list"])
def test_functions_take_what_arrays_are_made_of(what, kind):
    given = {"array": X, "numpy": N.copy(), "list": [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]}[kind]
    found, expected = TAKEN[what](hg, given), TAKEN[what](np, N)
    assert isinstance(found, hg.Array)
    if kind == "numpy":
        given[...] = 7  # what is recorded has its own
    assert found.shape == expected.shape and np.array_equal(found, expected)


def test_a_thread_of_numpy_s_names():
    """A program from NumPy's documentation, with one name changed."""
    code = """
a = xp.concat([xp.arange(3), xp.asarray([7, 1])])
b = xp.sort(xp.take(a, xp.argsort(a)))
print(xp.sort(xp.unique_values(b)).tolist(), xp.isdtype(b.dtype, "integral"))
print(xp.finfo(xp.float32).bits, xp.result_type(xp.int8, xp.int16) == xp.int16, xp.can_cast(xp.int8, xp.int16))
"""
    done = [subprocess.run([sys.executable, "-c", f"import {name} as xp{code}"], capture_output=True, text=True)
            for name in ("hologram", "numpy")]  # fmt: skip
    assert done[0].stdout == done[1].stdout != "", done[0].stderr


TYPES = ["bool", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("a", TYPES)
def test_result_type_is_what_an_operation_gives(a):
    """The standard's, in array_api, is that of one kind alone."""
    for b in TYPES:
        x, y = hg.ones(2, a), hg.ones(2, b)
        try:
            expected = a if a == b == "bool" else (x + y).dtype
        except hg.InvalidArgument:
            with pytest.raises(TypeError, match="^result_type: .*no integer type holds both"):
                hg.result_type(x, b)
            continue
        assert hg.result_type(x, b) == hg.result_type(getattr(hg, a), y) == expected
        if hg.isdtype(x.dtype, "numeric") == hg.isdtype(y.dtype, "numeric") and x.dtype.kind == y.dtype.kind:
            assert xp.result_type(x, b) == expected
        else:
            with pytest.raises(TypeError, match="no type in common"):
                xp.result_type(x, b)
    for number in (2, 2.5, np.float64(2.5), np.int8(3)):
        assert hg.result_type(a, number) == (hg.ones(2, a) * number).dtype
    assert hg.result_type(np.ones(2, "f4"), "int64") == "float32"


def test_result_type_of_numbers():
    assert hg.result_type(1, True) == "int64" and hg.result_type(1, 2.5) == "float32" and hg.result_type(True) == "bool"
    assert hg.result_type(float, np.dtype("f8"), np.float32) == "float64" and hg.result_type("int8", 300) == "int8"
    with pytest.raises(ValueError, match="at least one"):
        hg.result_type()
    assert hg.asarray([hg.asarray(1), hg.asarray(2.5)]).dtype == "float32"


EXAMPLES = [name for name in sorted({*STANDARD, *dir(hg)}) if inspect.isfunction(getattr(hg, name, None)) and "_" != name[0]]
NONE_YET = {"get_default_backend", "is_cuda_available", "is_metal_available", "conj"}  # they take nothing; conj is real


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in NONE_YET])
def test_examples_of_docstrings(name, monkeypatch, tmp_path):
    """Each function that is written in Python has one, which runs; what stands behind it as its value is that."""
    monkeypatch.chdir(tmp_path)
    doc = inspect.getdoc(getattr(hg, name))
    lines = [line for line in doc.split("\n") if re.search(r"\bhg\.(array_api\.)?" + name + r"\b", line)]
    assert lines, doc
    if not getattr(hg, name).__module__.endswith(("array_api", "_scans", "_order", "_elementwise", "_create", "_dtypes")):
        return
    names, code = {"hg": hg}, doc[doc.rindex("\n\n") :]
    exec(textwrap.dedent(code), names)  # noqa: S102
    value = re.fullmatch(r"\s*([^=#]*?)\s*# (\[.*\])", code.strip("\n"))
    if value:
        assert eval(value[1], names).tolist() == eval(re.sub(r"(\d)\.(?=[\],])", r"\1.0", value[2]))  # noqa: S307
