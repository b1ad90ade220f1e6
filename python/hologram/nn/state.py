"""Trees as flat dicts of named arrays, and back: what files and other libraries hold."""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import plain

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


def state_dict(tree: Any) -> dict[str, Any]:
    """The arrays and Python numbers of a tree by their paths, as PyTorch names them: parameters, an optimiser's state, or both.

        state = hg.nn.state_dict([{"weight": hg.ones(3)}, {}])    # {"0.weight": ...}

    A tree has dicts, lists and tuples, arrays, numbers and None, of which nothing is written. TypeError: something else is in it, or a key
    of a dict is no text and no int; ValueError: two of its arrays have one path."""
    found: dict[str, Any] = {}
    _collect(tree, "", found)
    return found


def _collect(tree: Any, path: str, found: dict[str, Any]) -> None:
    if isinstance(tree, (Array, int, float)):
        if path in found:
            raise ValueError(f"two parts of the tree have the path {path!r}")
        found[path] = tree
    elif tree is not None:
        for key, part in _parts(tree, path):
            _collect(part, f"{path}.{key}" if path else str(key), found)


def _parts(tree: Any, path: str) -> list[tuple[Any, Any]]:
    if isinstance(tree, (list, tuple)):
        return list(enumerate(tree))
    if not isinstance(tree, dict):
        raise TypeError(f"{path or 'the tree'} is {type(tree).__name__}; a tree has dicts, lists and tuples, arrays, numbers and None")
    for key in tree:
        if not isinstance(key, (str, int)):
            raise TypeError(f"{path or 'the tree'} has the key {key!r}; a path is made of texts and ints")
    return list(tree.items())


def load_state_dict(tree: Any, state: Any) -> Any:
    """The tree with a state's arrays and numbers in place of its own; memory of NumPy's arrays and PyTorch's tensors is shared.

        parameters = hg.nn.load_state_dict(hg.nn.Linear(4, 2).init(hg.random.key(0)), torch.nn.Linear(4, 2).state_dict())

    ValueError: names, shapes or types are not the tree's own; which ones it says."""
    own = state_dict(tree)
    if own.keys() != state.keys():
        lacks, has = ([name for name in one if name not in other] for one, other in ((own, state), (state, own)))
        parts = [f"{what} {', '.join(names[:8])}{', ...' * (len(names) > 8)}"
                 for what, names in (("it lacks", lacks), ("it has besides", has)) if names]  # fmt: skip
        raise ValueError("a state dict whose names differ: " + "; ".join(parts))
    new = {name: _taken(name, value, state[name]) for name, value in own.items()}
    return _rebuilt(tree, "", new)


def _taken(name: str, own: Any, value: Any) -> Any:
    """A value of a state where the tree has its own."""
    if not isinstance(own, Array):
        return type(own)(plain(value))
    x = _core.asarray(value)
    if x.shape != own.shape or x.dtype != own.dtype:
        raise ValueError(f"{name or 'it'} is {x.dtype} {x.shape}, not {own.dtype} {own.shape}")
    return x


def _rebuilt(tree: Any, path: str, new: dict[str, Any]) -> Any:
    if tree is None or isinstance(tree, (Array, int, float)):
        return None if tree is None else new[path]
    parts = [(key, _rebuilt(part, f"{path}.{key}" if path else str(key), new)) for key, part in _parts(tree, path)]
    if isinstance(tree, dict):
        return dict(parts)
    values = [value for _, value in parts]
    return values if isinstance(tree, list) else type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)
