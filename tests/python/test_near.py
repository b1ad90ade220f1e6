"""Names that other libraries have (python/src/near.def): none of them is there, what is to be written instead is, and the errors say it."""

import inspect
import operator
import pickle
import re
from pathlib import Path

import pytest

import hologram as hg

TABLE = Path(__file__).parents[2] / "python/src/near.def"
ROW = re.compile(r'HGPY_NEAR\(WHERE_(\w+), (\w+), ((?:"[^"]*"\s*)+)\)')
ROWS = [(where, name, "".join(re.findall(r'"([^"]*)"', what))) for where, name, what in ROW.findall(TABLE.read_text(encoding="utf-8"))]
X = hg.asarray([[1.0, 2.0], [3.0, 4.0]])
GIVEN = {"hg": hg, "x": X, "y": X + 1, "i": 0, "value": 5.0, "index": hg.asarray([[0, 1]]), "mask": X > 1,
         "executor": hg.default_executor(), "f": lambda x: (x * x).sum(),
         "bias": X, "source": X[:1], "values": hg.asarray([1.0]), "n": [1.0], "memory": b"1234"}  # fmt: skip


def test_the_table_is_read():
    assert len(ROWS) == TABLE.read_text(encoding="utf-8").count("HGPY_NEAR(WHERE_") > 100
    assert len({(where, name) for where, name, _ in ROWS}) == len(ROWS)


@pytest.mark.parametrize("where, name, what", ROWS, ids=[f"{where}-{name}" for where, name, _ in ROWS])
def test_row(where, name, what):
    if where in ("FUNCTION", "EITHER"):
        with pytest.raises(AttributeError) as error:
            getattr(hg, name)
        assert str(error.value) == f"hologram has no {name!r}: {what}" and not hasattr(hg, name)
    if where in ("METHOD", "EITHER"):
        for place in (X, hg.Array):
            with pytest.raises(AttributeError) as error:
                getattr(place, name)
            assert str(error.value) == f"an Array has no {name!r}: {what}"
        assert name not in dir(X)
    for path in re.findall(r"\b(?:hg|x)(?:\.\w+)+", re.sub(r"'[^']*'", "", what)):
        found = GIVEN[path.partition(".")[0]]
        for part in path.split(".")[1:]:
            found = getattr(found, part)


@pytest.mark.parametrize("where, name, what", [row for row in ROWS if re.match(r"write (?!x\.(numpy|device)|hg.save)[^;:]*$", row[2])
                                               and row[0] != "ARGUMENT"], ids=lambda value: value if len(value) < 20 else "")  # fmt: skip
def test_what_to_write_runs(where, name, what, monkeypatch, tmp_path):
    """Each of what may be written, but for words between that are no Python."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for code in re.split(r", or | or |, which.*|, (?=and|whose|of |for |with )", what.removeprefix("write ")):
        code = re.sub(r"hg\.Executor\('cuda'\)", "hg.Executor('cpu')", code.partition(", ")[0] if " for its " in code else code)
        try:
            compiled = compile(code, name, "exec")
        except SyntaxError:
            continue
        numbers = {"x": X.astype("int32"), "y": 1} if re.search(r"~|<<|>>", code) else {"x": X.copy()}
        exec(compiled, {**GIVEN, **numbers})  # noqa: S102
        ran += 1
    assert ran >= 1


def test_other_names():
    with pytest.raises(AttributeError, match="^module 'hologram' has no attribute 'nothing'$"):
        hg.nothing
    with pytest.raises(AttributeError, match="object has no attribute 'nothing'"):
        X.nothing


@pytest.mark.parametrize("call, words", [
    (lambda: X.sum(dim=0), "sum has no argument 'dim': it is axis here"), (lambda: X.max(keepdim=True), "'keepdim': it is keepdims here"),
    (lambda: hg.exp(input=X), "exp has no argument 'input': it is x here"), (lambda: hg.add(X, other=X), "'other': it is b here"),
    (lambda: X.std(unbiased=True), "'unbiased': write correction=1 for unbiased=True"),
    (lambda: hg.exp(X, out=X), r"'out': an array is a value: write y = f\(x\)"),
    (lambda: hg.eye(3, device=None), r"'device': move what it gives: x.to_device\(executor\)"),
    (lambda: hg.concat([X], dim=0), "concat has no argument 'dim': it is axis here"), (lambda: X.sort(dim=0), "sort has no argument 'dim'"),
    (lambda: hg.linalg.vector_norm(X, keepdim=True), "it is keepdims here"), (lambda: hg.split(X, 2, out=X), "'out': an array is a value"),
    (lambda: hg.concat([X], nothing=0), r"concat\(\) got an unexpected keyword argument 'nothing'"),
    (lambda: hg.exp(X, dim=1), "exp has no argument 'dim'; it takes x"), (lambda: hg.clip(X, lowest=1), "'lowest'; it takes x, min, max"),
])  # fmt: skip
def test_arguments(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_functions_stay_what_they_are():
    """Those that explain their arguments: one object by all its names, which can be pickled, with its signature and its text."""
    assert hg.concat is hg.array_api.concat and pickle.loads(pickle.dumps(hg.concat)) is hg.concat
    assert list(inspect.signature(hg.concat).parameters) == ["arrays", "axis"] and hg.concat.__doc__.startswith("One after the other")
    with pytest.raises(TypeError, match="concatenate: x takes an Array"):
        hg.concat([X, "no array"], axis=0)


@pytest.mark.parametrize("name, own", [
    ("ReLU", "hg.relu"), ("LeakyReLU", "hg.leaky_relu"), ("CrossEntropyLoss", "hg.cross_entropy"),
    ("BCEWithLogitsLoss", "hg.bce_with_logits"),
    ("SmoothL1Loss", "hg.smooth_l1"), ("BatchNorm2d", "hg.nn.BatchNorm"), ("Dropout2d", "hg.nn.ChannelDropout"), ("Module", "hg.nn.Layer"),
    ("MultiheadAttention", "hg.nn.MultiHeadAttention"), ("TransformerEncoderLayer", "hg.nn.TransformerBlock")])  # fmt: skip
def test_layers(name, own):
    with pytest.raises(AttributeError) as error:
        getattr(hg.nn, name)
    assert str(error.value) == f"hologram.nn has no {name!r}: write {own}" and callable(operator.attrgetter(own[3:])(hg))


def test_layers_that_are_not_there():
    for name in ("Conv4d", "Embeddings", "_private"):
        with pytest.raises(AttributeError, match=f"module 'hologram.nn' has no attribute '{name}'"):
            getattr(hg.nn, name)
