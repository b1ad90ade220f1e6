"""hologram.load and save: .npy as NumPy reads and writes it, .safetensors as its own package does. What files of either kind may say
is in tests/ops/test_tensor_files.py."""

import io
import json
import os
import pathlib
import struct
import tempfile
import threading

import double_of_cuda
import hologram as hg
import ml_dtypes
import numpy as np
import pytest

TYPES = {"int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64, "uint8": np.uint8, "uint16": np.uint16,
         "uint32": np.uint32, "uint64": np.uint64, "float16": np.float16, "float32": np.float32, "float64": np.float64, "bool": np.bool_}


def some(kind, shape=(3, 5)):
    drawn = np.random.default_rng(7).integers(0, 2 if kind is np.bool_ else 100, shape)
    return drawn.astype(kind)


def same(ours, theirs):
    found = np.asarray(ours)
    return found.dtype == theirs.dtype and found.shape == theirs.shape and found.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("shape", [(3, 5), (), (0, 4), (1, 2, 1, 3)])
def test_npy_as_numpy(tmp_path, kind, shape):
    values, path = some(kind, shape), tmp_path / "x.npy"
    np.save(path, values)
    loaded = hg.load(path)
    assert same(loaded, values)
    hg.save(tmp_path / "y.npy", loaded)
    assert same(np.load(tmp_path / "y.npy"), values)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_that_numpy_lacks(tmp_path, name):
    values = hg.asarray(some(np.float32)).astype(name)
    hg.save(tmp_path / "x.safetensors", {"x": values})
    loaded = hg.load(tmp_path / "x.safetensors")["x"]
    assert loaded.dtype == values.dtype and np.array_equal(loaded.astype("f4"), values.astype("f4"))
    if name == "bfloat16":
        hg.save(tmp_path / "x.npy", values)
        assert np.array_equal(np.load(tmp_path / "x.npy").view(ml_dtypes.bfloat16), np.asarray(values.astype("f4")))
        assert hg.load(tmp_path / "x.npy").dtype == hg.bfloat16
    else:
        with pytest.raises(hg.Unsupported, match=r"\.npy has no type for f8e\dm\d; \.safetensors has one"):
            hg.save(tmp_path / "x.npy", values)


def test_what_is_saved(tmp_path):
    """Arrays that are not computed yet, views, arrays of others, numbers."""
    x = some(np.float32, (4, 6))
    ours = hg.asarray(x)
    tree = {"pending": hg.exp(ours) + 1, "transposed": ours.T, "every other": ours[::-1, ::2],
            "broadcast": hg.array_api.broadcast_to(ours[0], (3, 6)), "numpy": x[:, 1], "fortran": np.asfortranarray(x),
            "number": 2.5, "list": [1, 2, 3], "ünïcode \"name\"\n": ours[1, 1]}
    hg.save(tmp_path / "t.safetensors", tree)
    loaded = hg.load(tmp_path / "t.safetensors")
    assert set(loaded) == set(tree)
    for name, value in tree.items():
        assert np.array_equal(loaded[name], np.asarray(hg.asarray(value))), name
    hg.save(tmp_path / "x.npy", ours.T)
    assert np.array_equal(np.load(tmp_path / "x.npy"), x.T)
    np.save(tmp_path / "f.npy", np.asfortranarray(x))
    assert np.array_equal(hg.load(tmp_path / "f.npy"), x)
    hg.save(tmp_path / "none.safetensors", {})
    assert hg.load(tmp_path / "none.safetensors") == {}


def test_as_safetensors(tmp_path):
    theirs = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    tree = {name: some(kind) for name, kind in TYPES.items()}
    hg.save(tmp_path / "ours.safetensors", tree)
    found = theirs.load_file(tmp_path / "ours.safetensors")
    assert set(found) == set(tree) and all(same(found[name], tree[name]) for name in tree)
    theirs.save_file(tree, tmp_path / "theirs.safetensors")
    loaded = hg.load(tmp_path / "theirs.safetensors")
    assert set(loaded) == set(tree) and all(same(loaded[name], tree[name]) for name in tree)


def test_paths_and_devices(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = hg.asarray([1.0, 2.0])
    for path in ("a.npy", b"b.npy", pathlib.Path("ä.npy")):
        hg.save(path, x)
        assert np.array_equal(hg.load(path), x)
    other = hg.Executor("cpu", threads=1)
    loaded = hg.load("a.npy", device=other)
    assert loaded.device == other and np.array_equal(loaded + 1, [2.0, 3.0])
    hg.save("c.npy", loaded * 2)
    assert np.load("c.npy").tolist() == [2.0, 4.0]
    loaded[0] = 5  # its memory is its own
    assert np.load("a.npy").tolist() == [1.0, 2.0]


@double_of_cuda.needed
def test_on_a_gpu(tmp_path):
    code = ("import hologram as hg, numpy as np\nx = hg.asarray(np.arange(6, dtype='f4'), device=hg.Executor('cuda'))\n"
            "hg.save('y.npy', x * 2 + 1)\nprint(np.load('y.npy').tolist())\n"
            "hg.save('t.safetensors', {'x': x, 't': x.reshape((2, 3)).T, 'n': np.ones(2)})\n"
            "t = hg.load('t.safetensors', device=x.device)\n"
            "print(all(v.device == x.device for v in t.values()), (t['t'] + 1).tolist(), hg.load('t.safetensors')['n'].tolist())\n")
    assert double_of_cuda.run(code, cwd=tmp_path).splitlines() == [
        "[1.0, 3.0, 5.0, 7.0, 9.0, 11.0]", "True [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]] [1.0, 1.0]"]


def test_a_file_is_replaced_whole(tmp_path):
    """Whoever reads sees one that was there, while another is written."""
    path, stop = tmp_path / "x.npy", threading.Event()
    arrays = [hg.full((1 << 18,), value) for value in (1.0, 2.0)]
    hg.save(path, arrays[0])

    def write():
        while not stop.is_set():
            for array in arrays:
                hg.save(path, array)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20):
            found = np.load(path)
            assert found.min() == found.max() and found.shape == (1 << 18,)
    finally:
        stop.set()
        writer.join()
    assert [p.name for p in tmp_path.iterdir()] == ["x.npy"]


def test_gradients(tmp_path):
    def loss(x):
        hg.save(tmp_path / "x.npy", x if aside is None else aside(x))
        return (x * x).sum()

    aside = None
    with pytest.raises(TypeError, match="hologram.stop_gradient"):
        hg.grad(loss)(hg.asarray([1.0, 2.0]))
    aside = hg.stop_gradient
    assert hg.grad(loss)(hg.asarray([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert np.load(tmp_path / "x.npy").tolist() == [1.0, 2.0]


REFUSED = [
    (lambda x: hg.save("x.txt", x), ValueError, r"'x.txt': the name of a file of arrays ends in .npy, .npz or .safetensors"),
    (lambda x: hg.load(".npy"), ValueError, r"'.npy': the name of a file"),
    (lambda x: hg.load(3), TypeError, r"expected str, bytes or os.PathLike object, not int"),
    (lambda x: hg.save("x.npy", {"x": x}), TypeError, r"'x.npy': .npy holds one array; a tree of them goes into .safetensors or"),
    (lambda x: hg.save("x.safetensors", x), TypeError, r"holds a dict, list or tuple of arrays; one array goes into .npy"),
    (lambda x: hg.save("x.safetensors", {1.5: x}), TypeError, r"save: keys of dicts are of type str or int, not 1.5"),
    (lambda x: hg.save("x.safetensors", {"a\0b": x}), ValueError, r"save: the name 'a\\x00b' has a character of code 0"),
    (lambda x: hg.save("x.safetensors", {"__metadata__": x}), hg.InvalidArgument, r"another one than '__metadata__'"),
    (lambda x: hg.save("x.safetensors", {"x": object()}), TypeError, r"object"),
    (lambda x: hg.save("x.npy"), TypeError, r"missing 1 required positional argument: 'value'"),
    (lambda x: hg.load("x.pt"), ValueError, r"'x.pt': a pickle runs code when it is loaded.* safetensors.torch.save_file"),
    (lambda x: hg.save("nowhere/x.npy", x), hg.FileError, r"nowhere/x.npy: cannot be written"),
    (lambda x: hg.load("nowhere.npy"), hg.FileError, r"nowhere.npy: cannot be read: there is no such file"),
    (lambda x: hg.load(b"nowhere\xff.npy"), hg.FileError, r"nowhere\ufffd.npy: cannot be read"),
    (lambda x: hg.load("bad.npy"), hg.FormatError, r"bad.npy: is no .npy file"),
    (lambda x: hg.load("bad.safetensors"), hg.FormatError, r"bad.safetensors: is no .safetensors file"),
]


@pytest.mark.parametrize("act, error, words", REFUSED)
def test_refused(tmp_path, monkeypatch, act, error, words):
    monkeypatch.chdir(tmp_path)
    for name in ("bad.npy", "bad.safetensors"):
        pathlib.Path(name).write_bytes(b"hello")
    with pytest.raises(error, match=words):
        act(hg.asarray([1.0]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.npy", "bad.safetensors"]


def test_a_long_name_in_a_sentence(tmp_path):
    """It is cut there, maybe within a character."""
    header = json.dumps({"a" + "é" * 60: {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    with pytest.raises(hg.FormatError, match="tensor 'aé+\ufffd' has 4 bytes where its shape and type need 8"):
        hg.load(tmp_path / "x.safetensors")


@pytest.mark.skipif(os.name == "nt", reason="links need a right there")
def test_a_link_leads_to_the_file(tmp_path):
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "x.npy", np.zeros(2))
    (tmp_path / "link.npy").symlink_to("folder/x.npy")
    hg.save(tmp_path / "link.npy", hg.asarray([1.0]))
    assert (tmp_path / "link.npy").is_symlink() and hg.load(tmp_path / "folder" / "x.npy").tolist() == [1.0]
    assert [p.name for p in (tmp_path / "folder").iterdir()] == ["x.npy"]
    (tmp_path / "new.npy").symlink_to("folder/new.npy")  # to nothing yet
    hg.save(tmp_path / "new.npy", hg.asarray([2.0]))
    assert (tmp_path / "new.npy").is_symlink() and np.load(tmp_path / "folder" / "new.npy").tolist() == [2.0]


@pytest.mark.skipif(not os.path.exists("/proc/self/fd/1"), reason="open files have no names there")
def test_a_link_to_a_file_without_a_name(tmp_path):
    """As the standard output may be: the link stays one, and who holds the file has what was saved."""
    link = tmp_path / "out.npy"
    with tempfile.TemporaryFile(dir=tmp_path) as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        hg.save(link, hg.asarray([1.0, 2.0]))
        file.seek(0)
        assert np.load(file).tolist() == [1.0, 2.0] and link.is_symlink()


@pytest.mark.skipif(os.name == "nt", reason="there are no such permissions there")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions(tmp_path, mask):
    """Those of a file that `open` makes; of one that was there before its own, as where NumPy writes into it."""
    old = os.umask(mask)
    try:
        for name, value in (("x.npy", hg.ones(3)), ("x.safetensors", {"a": hg.ones(3)})):
            path = tmp_path / name
            hg.save(path, value)
            assert path.stat().st_mode & 0o777 == 0o666 & ~mask
            path.chmod(0o640)
            hg.save(path, value)
            assert path.stat().st_mode & 0o777 == 0o640
    finally:
        os.umask(old)


@pytest.mark.skipif(os.name == "nt", reason="paths are shorter there")
@pytest.mark.parametrize("end", [".npy", ".safetensors"])
def test_the_longest_name(tmp_path, end):
    path = tmp_path / ("n" * (253 - len(end)) + ":n" + end)
    for value in (1.0, 2.0):
        hg.save(path, hg.asarray([value]) if end == ".npy" else {"a": hg.asarray([value])})
        found = hg.load(path)
        assert (found if end == ".npy" else found["a"]).tolist() == [value]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_written_itself(tmp_path):
    path, found = tmp_path / "x.npy", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    hg.save(path, hg.asarray([1.0, 2.0]))
    reader.join(60)
    assert np.load(io.BytesIO(found[0])).tolist() == [1.0, 2.0] and path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]
