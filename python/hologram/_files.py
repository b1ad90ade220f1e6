"""Files of arrays: .npy holds one, .safetensors and .npz hold trees of them. What trees are made of, besides arrays, stands in a text
of the file, so that nothing is executed to load one."""

from __future__ import annotations

import os

from hologram import _core
from hologram._core import Array, Executor

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

_TREE = "hologram.tree"  # the key in the metadata of .safetensors; of .npz the name of a member, with .json behind it
_DEPTH = 100
_PICKLES = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle")


def _ending(path: Any) -> str:
    """Of the file's name: which format it has."""
    name = os.fsdecode(path)
    for ending in (".npy", ".npz", ".safetensors"):
        if name.endswith(ending) and len(name) > len(ending):
            return ending
    if name.endswith(_PICKLES):
        raise ValueError(f"{path!r}: a pickle runs code when it is loaded, and is no file of arrays here. In PyTorch "
                         "safetensors.torch.save_file(module.state_dict(), 'x.safetensors') writes one that is")  # fmt: skip
    raise ValueError(f"{path!r}: the name of a file of arrays ends in .npy, .npz or .safetensors")


def _shown(path: Any) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _error(kind: Any, status: str, path: Any, why: str) -> Any:
    """As the library makes them."""
    error = kind(f"{_shown(path)}: {why}")
    error.status, error.line, error.column = status, 0, 0
    return error


# ---- trees -----------------------------------------------------------------------------------------------------------------
# As JSON: numbers, texts, true, false and null are themselves, [...] is a list, {"tuple": [...]} a tuple, {"dict": [[key, value], ...]}
# a dict, and {} an array, whose name is the path to it: keys and places with points between them.


def _taken_apart(value: Any, path: tuple[str, ...], arrays: dict[str, Array]) -> Any:
    """What the tree is without its arrays, which are put under their names."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if len(path) > _DEPTH:
        raise ValueError(f"save: the tree is more than {_DEPTH} levels deep, or holds itself, at {'.'.join(path[:8])}...")
    if isinstance(value, dict):
        if wrong := [key for key in value if type(key) not in (str, int)]:
            raise TypeError(f"save: keys of dicts are of type str or int, not {wrong[0]!r}")
        return {"dict": [[key, _taken_apart(part, (*path, str(key)), arrays)] for key, part in value.items()]}
    if hasattr(value, "_fields"):
        raise TypeError(f"save: {type(value).__name__} is a named tuple, whose type a file does not hold; save x._asdict() or tuple(x)")
    if isinstance(value, (list, tuple)):
        parts = [_taken_apart(part, (*path, str(i)), arrays) for i, part in enumerate(value)]
        return parts if isinstance(value, list) else {"tuple": parts}
    name = ".".join(path)
    if name in arrays:
        raise ValueError(f"save: two arrays of the tree have the path {name!r}; a key with a point in it, or an int beside the same text")
    arrays[name] = _core.asarray(value)
    return {}


def _put_together(node: Any, path: tuple[str, ...], arrays: dict[str, Any]) -> Any:
    """The tree, whose arrays are taken from `arrays`. LookupError, TypeError and ValueError: the node is not what a file has."""
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if len(path) > _DEPTH:
        raise ValueError(f"is more than {_DEPTH} levels deep")
    if isinstance(node, list):
        return [_put_together(part, (*path, str(i)), arrays) for i, part in enumerate(node)]
    if not node:
        return arrays.pop(".".join(path))
    ((kind, parts),) = node.items()
    if not isinstance(parts, list):
        raise TypeError
    if kind == "tuple":
        return tuple(_put_together(parts, path, arrays))
    if kind != "dict" or any(type(key) not in (str, int) for key, _ in parts) or len({key for key, _ in parts}) < len(parts):
        raise TypeError
    return {key: _put_together(part, (*path, str(key)), arrays) for key, part in parts}


def _tree_of(path: Any, text: str | None, arrays: dict[str, Any]) -> Any:
    """What was saved; without a text the arrays by their names."""
    from json import loads

    if text is None:
        return arrays
    left = dict(arrays)
    try:
        tree = _put_together(loads(text), (), left)
    except KeyError as error:
        raise _error(_core.FormatError, "HG_FORMAT", path, f"its tree has an array {error}, which the file has not; "
                     "hologram.load(path, flat=True) gives those that it has") from None  # fmt: skip
    except (TypeError, ValueError, RecursionError):
        raise _error(_core.FormatError, "HG_FORMAT", path, f"the text {_TREE!r}, which says what its tree is, is not what "
                     "hologram.save writes; hologram.load(path, flat=True) gives the arrays by their names") from None  # fmt: skip
    if left:
        raise _error(_core.FormatError, "HG_FORMAT", path, f"its tree has no place for the array {min(left)!r}; "
                     "hologram.load(path, flat=True) gives all of them by their names")  # fmt: skip
    return tree


def _is_flat(tree: Any, arrays: dict[str, Array], ending: str) -> bool:
    """Whether names and arrays in the order of the file, where .safetensors has the widest elements first, say all that the tree is."""
    sizes = [x.dtype.itemsize for x in arrays.values()] if ending == ".safetensors" else []
    return isinstance(tree, dict) and tree.get("dict") == [[name, {}] for name in arrays] and sizes == sorted(sizes, reverse=True)


# ---- .npz ------------------------------------------------------------------------------------------------------------------


def _save_npz(path: Any, arrays: dict[str, Array], text: str | None) -> None:
    """A file beside the one that is there takes its place when it is complete. The same arrays make the same bytes."""
    import shutil
    from tempfile import TemporaryDirectory
    from zipfile import ZipFile, ZipInfo

    target = os.path.realpath(os.fsdecode(path))
    try:
        with TemporaryDirectory(prefix=".hologram-", dir=os.path.dirname(target)) as folder:
            whole, part = os.path.join(folder, "whole"), os.path.join(folder, "part")
            with ZipFile(whole, "w") as archive:
                for name, value in arrays.items():
                    _core._save_npy(part, value)
                    with open(part, "rb") as source, archive.open(ZipInfo(name + ".npy"), "w", force_zip64=True) as to:
                        shutil.copyfileobj(source, to, 1 << 20)
                if text is not None:
                    archive.writestr(ZipInfo(_TREE + ".json"), text)
            if os.path.exists(target):
                shutil.copymode(target, whole)
            os.replace(whole, target)
    except OSError as error:
        if isinstance(error, _core.Error):
            raise
        raise _error(_core.FileError, "HG_IO", path, f"cannot be written: {error.strerror}") from None


_MOST_TIMES = 1032  # that deflate can make of a byte


def _load_npz(path: Any, device: Executor | None) -> tuple[dict[str, Any], str | None]:
    import shutil
    from errno import EINVAL
    from tempfile import TemporaryDirectory
    from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile
    from zlib import error as BadStream

    arrays: dict[str, Any] = {}
    text = None
    try:
        with ZipFile(os.fsdecode(path)) as archive, TemporaryDirectory(prefix="hologram-") as folder:
            members, part = archive.infolist(), os.path.join(folder, "part")
            if sum(member.file_size for member in members) > _MOST_TIMES * os.path.getsize(path):
                raise BadZipFile("claims to hold more than its bytes can say")
            for member in members:
                name, is_tree = member.filename[:-4], member.filename == _TREE + ".json"
                if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED) or member.flag_bits & 1:
                    raise BadZipFile(f"has {member.filename!r} compressed in a way that NumPy never uses, or encrypted")
                if name in arrays or not (is_tree or member.filename.endswith(".npy")):
                    raise BadZipFile(f"has {member.filename!r} twice, or as something else than a .npy file")
                with archive.open(member) as source, open(part, "wb") as to:
                    shutil.copyfileobj(source, to, 1 << 20)
                if is_tree:
                    with open(part, encoding="utf-8") as file:
                        text = file.read()
                else:
                    arrays[name] = _member(path, member.filename, part, device)
    except (BadZipFile, BadStream, EOFError, NotImplementedError, UnicodeDecodeError) as error:
        if isinstance(error, _core.Error):
            raise
        raise _error(_core.FormatError, "HG_FORMAT", path, f"is no .npz file, or broken: {error}") from None
    except OSError as error:
        if isinstance(error, _core.Error):
            raise
        if error.errno == EINVAL:  # a place that is none in the file
            raise _error(_core.FormatError, "HG_FORMAT", path, "is no .npz file, or broken: it leads beyond its ends") from None
        raise _error(_core.FileError, "HG_IO", path, f"cannot be read: {error.strerror}") from None
    return arrays, text


def _member(path: Any, name: str, part: str, device: Executor | None) -> Array:
    """From a copy of its own, of which sentences do not speak."""
    try:
        return _core._load_npy(part, device)
    except _core.Error as error:
        error.args = (str(error).replace(part, f"{_shown(path)}: {name}"),)
        raise


# ---- the functions ---------------------------------------------------------------------------------------------------------


def save(path: Any, value: Any, /) -> None:
    """Writes arrays to a file; the end of its name says which format it has.

    .npy: one array. .safetensors and .npz: a tree of arrays: dicts (with keys of type str or int), lists and tuples, with None, numbers
    and texts among them. An array's name in the file is the path to it, with points between: {"layers": [{"weight": w}]} has
    "layers.0.weight". load gives the tree as it was; for others it is a file of arrays by name, as theirs are. What is no Array is
    saved as the Array that asarray makes of it.

    Whoever reads meanwhile sees the file that was there before, or all of the new one. TypeError: the value is no tree of arrays, or a
    gradient flows through one of them (save hologram.stop_gradient(x)). ValueError: the name has another end; two arrays have one
    path. FileError: the file cannot be written. float8 goes into .safetensors alone; NumPy reads bfloat16 as two bytes without a meaning.

        hg.save("state.safetensors", {"parameters": parameters, "optimizer": state, "epoch": 3})
        saved = hg.load("state.safetensors")
    """
    ending = _ending(path)
    if ending == ".npy":
        if isinstance(value, dict):
            raise TypeError(f"{path!r}: .npy holds one array; a tree of them goes into .safetensors or .npz")
        return _core._save_npy(path, value)
    if not isinstance(value, (dict, list, tuple)):
        raise TypeError(f"{path!r}: {ending} holds a dict, list or tuple of arrays; one array goes into .npy")
    arrays: dict[str, Array] = {}
    tree = _taken_apart(value, (), arrays)
    text = None
    if not _is_flat(tree, arrays, ending):
        from json import dumps

        text = dumps(tree, separators=(",", ":"))
    if ending == ".npz":
        return _save_npz(path, arrays, text)
    return _core._save_safetensors(path, arrays, {} if text is None else {_TREE: text})


def load(path: Any, /, *, device: Executor | None = None, flat: bool = False) -> Any:
    """What is in a file of arrays: of .npy the Array, of .safetensors and .npz the tree that save was given, or of files of others a
    dict of names and Arrays in the file's order.

    The elements are read straight into memory of the device: the default one's, or that of an Executor. flat: the dict of names and
    Arrays in any case. Nothing in a file is executed or trusted: FormatError where it is not what it should be, with a sentence;
    Unsupported for what no Array can be (other types, more than 8 axes); FileError where it cannot be read. Pickles are refused.

        weights = hg.load("model.safetensors")                    # {"0.weight": ..., "0.bias": ...}, of PyTorch
        parameters = hg.nn.load_state_dict(parameters, weights)
    """
    ending = _ending(path)
    if ending == ".npy":
        return _core._load_npy(path, device)
    if ending == ".npz":
        arrays, text = _load_npz(path, device)
    else:
        arrays, texts = _core._load_safetensors(path, device)
        text = texts.get(_TREE)
    return arrays if flat else _tree_of(path, text, arrays)
