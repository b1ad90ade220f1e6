"""Trees of arrays in .safetensors and .npz: they come back as they were, in this process or another one; files of others, and files
that somebody has tampered with."""

import io
import json
import os
import struct
import subprocess
import sys
import warnings
import zipfile
from collections import namedtuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hologram as hg

ENDS = (".safetensors", ".npz")
TREE = "hologram.tree"


def bits(x):
    return np.asarray(hg.bitcast(x, "uint16") if x.dtype == "bfloat16" else x).tobytes()


def equal(a, b):
    """The same types, keys in the same order, bits of arrays and of numbers."""
    if isinstance(b, hg.Array):
        same_form = isinstance(a, hg.Array) and (a.dtype, a.shape) == (b.dtype, b.shape)
        return same_form and bits(a) == bits(b)
    if type(a) is not type(b):
        return False
    if isinstance(b, dict):
        return list(a) == list(b) and all(equal(a[k], b[k]) for k in b)
    if isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return struct.pack("d", a) == struct.pack("d", b) if isinstance(b, float) else a == b


def header(path):
    data = path.read_bytes()
    return json.loads(data[8 : 8 + struct.unpack("<Q", data[:8])[0]])


KINDS, SHAPES = st.sampled_from(["float32", "int8", "bool", "bfloat16", "uint64"]), st.sampled_from([(), (0,), (3,), (2, 1, 2)])
ARRAYS = st.builds(lambda kind, shape: hg.asarray(np.arange(int(np.prod(shape))).reshape(shape)).astype(kind), KINDS, SHAPES)
LEAVES = ARRAYS | st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=4)
KEYS = st.text(st.characters(exclude_characters=".\0", codec="utf-8"), min_size=1, max_size=5) | st.integers(-3, 3)
NESTS = st.recursive(LEAVES, lambda parts: st.lists(parts, max_size=3) | st.lists(parts, max_size=3).map(tuple)
                     | st.dictionaries(KEYS, parts, max_size=3), max_leaves=8)  # fmt: skip


def paths_of(tree, path=()):
    if isinstance(tree, (dict, list, tuple)):
        parts = tree.items() if isinstance(tree, dict) else enumerate(tree)
        return [found for key, part in parts for found in paths_of(part, (*path, str(key)))]
    return [".".join(path)] if isinstance(tree, hg.Array) else []


@pytest.mark.parametrize("end", ENDS)
def test_trees_come_back(tmp_path_factory, end):
    path = tmp_path_factory.mktemp("trees") / f"tree{end}"

    @settings(max_examples=40, deadline=None)
    @given(st.dictionaries(KEYS, NESTS, max_size=3) | st.lists(NESTS, max_size=3) | st.lists(NESTS, max_size=2).map(tuple))
    def check(tree):
        names = paths_of(tree)
        if len(set(names)) < len(names) or "__metadata__" in names:
            with pytest.raises(ValueError):
                hg.save(path, tree)
            return
        hg.save(path, tree)
        assert equal(hg.load(path), tree)
        assert sorted(hg.load(path, flat=True)) == sorted(names)

    check()


@pytest.mark.parametrize("end", ENDS)
def test_names_and_order(tmp_path, end):
    path = tmp_path / f"x{end}"
    layers = [{"weight": hg.ones((2, 3)), "bias": None}, ({"weight": hg.zeros(2, "float64")},)]
    tree = {"layers": layers, "step": 7, "name": "mnist", 3: hg.ones(1)}
    hg.save(path, tree)
    assert set(hg.load(path, flat=True)) == {"layers.0.weight", "layers.1.0.weight", "3"} == set(paths_of(tree))
    assert equal(hg.load(path), tree)
    first = path.read_bytes()
    hg.save(path, tree)
    assert path.read_bytes() == first  # the same tree makes the same bytes


def test_names_and_arrays_need_no_text(tmp_path):
    """So that such a file says nothing that others would not say, and whoever loads it from others gets the same."""
    hg.save(tmp_path / "x.safetensors", {"0.weight": hg.ones(2), "0.bias": np.zeros(1, "f4"), "n": np.array(3, "i2")})
    assert list(header(tmp_path / "x.safetensors")) == list(hg.load(tmp_path / "x.safetensors")) == ["0.weight", "0.bias", "n"]
    wider_behind = {"0.weight": hg.ones(2), "0.bias": np.zeros(1)}
    hg.save(tmp_path / "x.safetensors", wider_behind)
    assert list(header(tmp_path / "x.safetensors")) == ["__metadata__", "0.bias", "0.weight"]  # as they lie there
    assert list(hg.load(tmp_path / "x.safetensors")) == ["0.weight", "0.bias"]
    hg.save(tmp_path / "x.npz", {"0.weight": hg.ones(2)})
    assert np.load(tmp_path / "x.npz").files == ["0.weight"]


def test_what_others_see(tmp_path):
    tree = {"a": [hg.asarray([1.5, 2.5])], "n": 3}
    hg.save(tmp_path / "x.safetensors", tree)
    assert header(tmp_path / "x.safetensors") == {"__metadata__": {TREE: '{"dict":[["a",[{}]],["n",3]]}'},
                                                  "a.0": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}
    hg.save(tmp_path / "x.npz", tree)
    with np.load(tmp_path / "x.npz", allow_pickle=False) as file:
        assert file["a.0"].tolist() == [1.5, 2.5] and set(file.files) == {"a.0", f"{TREE}.json"}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_of_numpy(tmp_path, save):
    arrays = {"x": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(6, dtype="i2").reshape(2, 3)), "arr/part": np.array(True),
              "zeros": np.zeros((300, 300))}
    save(tmp_path / "x.npz", **arrays)
    loaded = hg.load(tmp_path / "x.npz")
    assert list(loaded) == list(arrays)
    assert all(np.array_equal(loaded[k], arrays[k]) and loaded[k].dtype == arrays[k].dtype for k in arrays)
    hg.save(tmp_path / "y.npz", loaded)
    with np.load(tmp_path / "y.npz", allow_pickle=False) as file:
        assert all(np.array_equal(file[k], arrays[k]) and file[k].dtype == arrays[k].dtype for k in arrays)


def test_narrow_floats(tmp_path):
    tree = {"b": hg.asarray([1.0, -2.5, float("nan")]).astype("bfloat16"), "f": [hg.asarray([0.5]).astype("float8_e4m3fn")]}
    hg.save(tmp_path / "x.safetensors", tree)
    assert header(tmp_path / "x.safetensors")["b"]["dtype"] == "BF16"
    loaded = hg.load(tmp_path / "x.safetensors")
    assert loaded["b"].dtype == hg.bfloat16 and loaded["f"][0].dtype == hg.float8_e4m3fn
    assert np.array_equal(np.asarray(hg.bitcast(loaded["b"], "uint16")), np.asarray(hg.bitcast(tree["b"], "uint16")))
    hg.save(tmp_path / "x.npz", [tree["b"]])
    assert np.load(tmp_path / "x.npz")["0"].view(ml_dtypes.bfloat16).astype("f4")[:2].tolist() == [1.0, -2.5]
    assert hg.load(tmp_path / "x.npz")[0].dtype == hg.bfloat16
    with pytest.raises(hg.Unsupported, match="float8|f8e4m3"):
        hg.save(tmp_path / "y.npz", tree)
    assert not (tmp_path / "y.npz").exists() and len(list(tmp_path.iterdir())) == 2


class Own:
    pass


Pair = namedtuple("Pair", "x y")


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("tree, error, words", [
    ({"a.b": hg.ones(1), "a": {"b": hg.ones(1)}}, ValueError, "two arrays of the tree have the path 'a.b'"),
    ({1: hg.ones(1), "1": hg.ones(1)}, ValueError, "two arrays of the tree have the path '1'"),
    ({"a": Pair(hg.ones(1), hg.ones(1))}, TypeError, r"Pair is a named tuple.* save x._asdict\(\) or tuple\(x\)"),
    ({"a": {2.5: hg.ones(1)}}, TypeError, "keys of dicts are of type str or int, not 2.5"),
    ({"a": {True: hg.ones(1)}}, TypeError, "keys of dicts are of type str or int, not True"),
    ({"a": Own()}, TypeError, "Own"), ({"a": {1, 2}}, TypeError, "set"),
    ({"a": 1j}, TypeError, "complex"),
])  # fmt: skip
def test_what_no_tree_is(tmp_path, end, tree, error, words):
    with pytest.raises(error, match=words):
        hg.save(tmp_path / f"x{end}", tree)
    assert list(tmp_path.iterdir()) == []


def test_a_tree_that_holds_itself(tmp_path):
    tree = {"a": [hg.ones(1)]}
    tree["a"].append(tree)
    with pytest.raises(ValueError, match="more than 100 levels deep, or holds itself, at a.1.a.1"):
        hg.save(tmp_path / "x.safetensors", tree)


@pytest.mark.parametrize("end", ENDS)
def test_names_are_those_of_the_state_dict(tmp_path, end):
    model = hg.nn.Sequential(hg.nn.Linear(3, 2), hg.nn.LayerNorm(2))
    parameters = model.init(hg.random.key(0))
    tree = {"parameters": parameters, "state": hg.optim.AdamW(0.1).init(parameters)}
    hg.save(tmp_path / f"x{end}", tree)
    names = hg.load(tmp_path / f"x{end}", flat=True)
    assert set(names) == set(hg.nn.state_dict(tree)) and equal(hg.nn.load_state_dict(tree, names), tree)


@pytest.mark.parametrize("end", ENDS)
def test_devices(tmp_path, end):
    hg.save(tmp_path / f"x{end}", [hg.ones(2), {"a": hg.arange(3)}])
    other = hg.Executor("cpu", threads=1)
    first, second = hg.load(tmp_path / f"x{end}", device=other)
    assert first.device == second["a"].device == other and (second["a"] + 1).tolist() == [1, 2, 3]
    hg.save(tmp_path / f"y{end}", [first * 2])
    assert hg.load(tmp_path / f"y{end}")[0].tolist() == [2.0, 2.0]


@pytest.mark.parametrize("end", ENDS)
def test_gradients_are_not_lost(tmp_path, end):
    def loss(x):
        hg.save(tmp_path / f"x{end}", {"x": [x]})
        return x.sum()

    with pytest.raises(TypeError, match="hologram.stop_gradient"):
        hg.grad(loss)(hg.ones(2))
    assert list(tmp_path.iterdir()) == []


# ---- hostile files -----------------------------------------------------------------------------------------------------


def with_text(path, text, end):
    """A file of the array "a" that says this of its tree."""
    if end == ".npz":
        with zipfile.ZipFile(path, "w") as archive:
            memory = io.BytesIO()
            np.save(memory, np.ones(1, "f4"))
            archive.writestr("a.npy", memory.getvalue())
            archive.writestr(f"{TREE}.json", text)
        return
    head = json.dumps({"__metadata__": {TREE: text}, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + struct.pack("<f", 1))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("text, words", [
    ("", "is not what hologram.save writes"), ("{", "is not what"), ('{"dict": 3}', "is not what"), ('{"dict": [["a"]]}', "is not what"),
    ('{"dict": [["a", {}], ["a", {}]]}', "is not what"), ('{"dict": [[["a"], {}]]}', "is not what"),
    ('{"dict": [[true, {}]]}', "is not what"), ('{"set": [{}]}', "is not what"), ('{"tuple": "a"}', "is not what"),
    ('{"dict": [["a", {}]], "tuple": []}', "is not what"), ("[" * 100_000, "is not what"), ("[" * 150 + "]" * 150, "is not what"),
    ('{"dict": [["a", ' + "9" * 5000 + "]]}", "is not what"), ('{"__class__": ["os.system"]}', "is not what"),
    ('{"dict": [["b", {}]]}', "its tree has an array 'b', which the file has not"),
    ('{"dict": [["a", {}], ["b", [{}]]]}', "its tree has an array 'b.0', which the file has not"),
    ("[]", "its tree has no place for the array 'a'"), ("null", "has no place for the array 'a'"),
])  # fmt: skip
def test_texts_that_are_no_trees(tmp_path, end, text, words):
    path = tmp_path / f"x{end}"
    with_text(path, text, end)
    with pytest.raises(hg.FormatError, match=words) as error:
        hg.load(path)
    assert str(error.value).startswith(f"{path}: ") and "flat=True" in str(error.value) and error.value.status == "HG_FORMAT"
    assert hg.load(path, flat=True)["a"].tolist() == [1.0]


def npz(*members, method=zipfile.ZIP_STORED):
    memory = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(memory, "w", method) as archive:
        warnings.simplefilter("ignore")  # of a name that is there twice
        for name, data in members:
            archive.writestr(name, data)
    return memory.getvalue()


def npy(value):
    memory = io.BytesIO()
    np.save(memory, value, allow_pickle=True)
    return memory.getvalue()


def larger_than_it_is():
    """An archive whose table says that a member of 100 bytes is one of 4 GB."""
    data = npz(("a.npy", bytes(100)))
    at = data.index(b"PK\1\2")
    return data[: at + 24] + struct.pack("<I", 0xFFFFFFF0) + data[at + 28 :]


@pytest.mark.parametrize("content, error, words", [
    (b"", hg.FormatError, "is no .npz file, or broken"), (b"hello", hg.FormatError, "is no .npz file, or broken"),
    (npz(("a.npy", npy(np.ones(3))))[:-30], hg.FormatError, "is no .npz file, or broken"),
    (npz(("a.npy", npy(np.ones(3)))).replace(struct.pack("<d", 1), struct.pack("<d", 2), 1), hg.FormatError, "Bad CRC-32"),
    (npz(("a.npy", npy(np.array([print], object)))), hg.Unsupported, r"a.npy: its elements are '\|O'; expected little-endian numbers"),
    (npz(("a.npy", npy(np.ones(3))[:-1])), hg.FormatError, "x.npz: a.npy: has 23 bytes of elements"),
    (npz(("a.txt", b"hello")), hg.FormatError, "as something else than a .npy file"),
    (npz(("a.npy", npy(1)), ("a.npy", npy(2))), hg.FormatError, "has 'a.npy' twice"),
    (npz(("a.npy", npy(1)), method=zipfile.ZIP_BZIP2), hg.FormatError, "compressed in a way that NumPy never uses"),
    (larger_than_it_is(), hg.FormatError, "claims to hold more than its bytes can say"),
])  # fmt: skip
def test_broken_archives(tmp_path, content, error, words):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(error, match=words) as found:
        hg.load(tmp_path / "x.npz")
    assert str(found.value).startswith(f"{tmp_path / 'x.npz'}: ")


@pytest.mark.parametrize("end", ENDS)
def test_files_with_a_few_other_bytes(tmp_path, end):
    """Whatever they are: a tree, or an error of the library that begins with the file's name."""
    draw, path = np.random.default_rng(5), tmp_path / f"x{end}"
    hg.save(path, {"a": [hg.arange(5.0), hg.ones((2, 2))], "n": 3})
    whole, refused = path.read_bytes(), 0
    for _ in range(300):
        data = bytearray(whole)
        for at in draw.integers(0, len(data), draw.integers(1, 4)):
            data[at : at + draw.integers(0, 3)] = draw.choice([b"", b"\0", b"\xff", b"9", b"{"])
        path.write_bytes(data)
        try:
            hg.load(path)
        except hg.Error as error:
            assert str(error).startswith(f"{path}: ") and isinstance(error, (hg.FormatError, hg.Unsupported)), error
            refused += 1
    assert refused > 150


def test_names_lead_nowhere(tmp_path):
    """A member's name is a key, and no path that something would be written to."""
    (tmp_path / "x.npz").write_bytes(npz(("../../out.npy", npy(np.ones(1))), ("/tmp/out.npy", npy(np.ones(1)))))
    assert list(hg.load(tmp_path / "x.npz")) == ["../../out", "/tmp/out"]
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"] and not (tmp_path.parent / "out.npy").exists()


def test_npz_is_replaced_whole(tmp_path):
    """What cannot be saved leaves the file that was there; what can takes its place and has its permissions, behind a link too."""
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "x.npz", tmp_path / "link.npz"
    hg.save(path, {"x": hg.ones(2)})
    before = path.read_bytes()
    with pytest.raises(TypeError):
        hg.save(path, {"x": hg.zeros(2), "y": Own()})
    assert path.read_bytes() == before and [p.name for p in path.parent.iterdir()] == ["x.npz"]
    if os.name != "nt":
        path.chmod(0o640)
        link.symlink_to("folder/x.npz")
        hg.save(link, {"x": hg.zeros(2)})
        assert link.is_symlink() and path.stat().st_mode & 0o777 == 0o640 and hg.load(path)["x"].tolist() == [0, 0]
    for act in (lambda: hg.save(tmp_path / "nowhere" / "x.npz", {}), lambda: hg.load(tmp_path / "nowhere.npz")):
        with pytest.raises(hg.FileError, match=r"nowhere.*: cannot be (written|read): No such file"):
            act()


# ---- training ----------------------------------------------------------------------------------------------------------

TRAINING = """
import sys
import hologram as hg

x = hg.random.normal(hg.random.key(1), (16, 5))
y = (x[:, :1] * 2 - x[:, 1:2]).tanh()
model = hg.nn.Sequential(hg.nn.Linear(5, 7), hg.tanh, hg.nn.Dropout(0.25), hg.nn.Linear(7, 1))
make = {"sgd": lambda: hg.optim.SGD(0.05, momentum=0.9, dampening=0.1), "adam": lambda: hg.optim.AdamW(0.01)}[sys.argv[1]]

def begin():
    parameters = model.init(hg.random.key(0))
    return {"parameters": parameters, "state": make().init(parameters), "key": hg.random.key(7), "step": 0}

def train(saved, steps):
    parameters, state, key = saved["parameters"], saved["state"], saved["key"]
    optimizer = make()
    loss = lambda p, key: hg.mse(model(p, x, key), y)
    step = hg.jit(lambda p, s, key: optimizer.update(p, hg.grad(loss)(p, key), s))
    for number in range(saved["step"], saved["step"] + steps):
        keys = hg.random.split(key)
        key = keys[0]
        parameters, state = step(parameters, state, keys[1])
    return {"parameters": parameters, "state": state, "key": key, "step": number + 1}
"""


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_training_goes_on(tmp_path, optimizer, end):
    """Twenty steps, and twenty more in another process, have the bits of forty at once."""
    code = TRAINING + f"""
if sys.argv[2] == "whole":
    hg.save("whole{end}", train(begin(), 40))
else:
    hg.save("half{end}", train(begin() if sys.argv[2] == "first" else hg.load("half{end}"), 20))
"""
    path = os.pathsep.join(map(os.path.abspath, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    for part in ("whole", "first", "second"):
        done = subprocess.run([sys.executable, "-c", code, optimizer, part], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                              env={**os.environ, "PYTHONPATH": path})
        assert done.returncode == 0, done.stderr
    whole, half = hg.load(tmp_path / f"whole{end}"), hg.load(tmp_path / f"half{end}")
    assert whole["step"] == 40 and equal(half, whole)
    assert len(paths_of(whole)) >= 9


def test_weights_of_torch(tmp_path):
    """By the state dict, without a copy, and by a file: both ways the same numbers."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.LayerNorm(3), torch.nn.Linear(3, 2))
    model = hg.nn.Sequential(hg.nn.Linear(4, 3), hg.tanh, hg.nn.LayerNorm(3), hg.nn.Linear(3, 2))
    parameters = hg.nn.load_state_dict(model.init(hg.random.key(0)), {k: v.detach() for k, v in module.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((5, 4)).astype("f4")
    expected = module(torch.from_numpy(x)).detach().numpy()
    np.testing.assert_allclose(model(parameters, hg.asarray(x)), expected, rtol=1e-5, atol=1e-6)
    hg.save(tmp_path / "w.safetensors", hg.nn.state_dict(parameters))
    other = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Tanh(), torch.nn.LayerNorm(3), torch.nn.Linear(3, 2))
    other.load_state_dict({k: torch.from_dlpack(v) for k, v in hg.load(tmp_path / "w.safetensors").items()})
    assert np.array_equal(other(torch.from_numpy(x)).detach().numpy(), expected)
    narrow = {"w": torch.tensor([1.0, 2.5]).to(torch.bfloat16)}
    hg.save(tmp_path / "n.safetensors", narrow)
    assert hg.load(tmp_path / "n.safetensors")["w"].dtype == hg.bfloat16
    assert torch.equal(torch.from_dlpack(hg.load(tmp_path / "n.safetensors")["w"]), narrow["w"])


def test_safetensors_of_torch(tmp_path):
    theirs = pytest.importorskip("safetensors.torch", reason="the package safetensors is not installed")
    import torch

    module = torch.nn.Linear(4, 3)
    theirs.save_file(module.state_dict(), tmp_path / "w.safetensors", metadata={"format": "pt"})
    loaded = hg.load(tmp_path / "w.safetensors")
    assert all(np.array_equal(loaded[k], v.detach().numpy()) for k, v in module.state_dict().items())
    hg.save(tmp_path / "t.safetensors", {"layers": [loaded], "epoch": 3})
    found = theirs.load_file(tmp_path / "t.safetensors")
    assert set(found) == {"layers.0.weight", "layers.0.bias"} and torch.equal(found["layers.0.weight"], module.weight)
