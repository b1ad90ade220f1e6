"""What layers have in common, and layers one after the other."""

from __future__ import annotations

from hologram import random
from hologram._core import Array
from hologram._settings import Settings, text

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Iterable
    from typing import Any


class Layer(Settings):
    """What layers have in common: init(key) makes parameters, apply(parameters, x, key=None, training=False) gives (y, parameters),
    layer(parameters, x) is y at inference.

    Your own layer defines `apply`, or `__call__` alone where nothing is random and nothing is kept:

        class Scale(hg.nn.Layer):
            def init(self, key):
                return {"scale": hg.ones(())}

            def __call__(self, parameters, x, key=None):
                return x * parameters["scale"]"""

    _near = {"in_features": "inputs", "out_features": "outputs", "input_size": "inputs", "hidden_size": "hidden", "num_embeddings": "count",
             "embedding_dim": "width", "padding_idx": "padding", "normalized_shape": "width", "num_features": "width",
             "num_channels": "width", "num_groups": "groups", "elementwise_affine": "affine", "track_running_stats": "tracked",
             "embed_dim": "width", "d_model": "width", "num_heads": "heads", "nhead": "heads", "dim_feedforward": "hidden",
             "layer_norm_eps": "eps", "batch_first": "nothing, the batch comes first"}  # fmt: skip

    def init(self, key: Array) -> Any:
        """New parameters; the same key gives the same bits everywhere."""
        return {}

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        """What comes out, and the parameters: new ones where the layer keeps statistics of what it was trained on, else the same
        object. key: for what is random while training; ValueError where it is needed and not given."""
        if type(self).__call__ is Layer.__call__:
            raise NotImplementedError(f"{type(self).__name__} defines neither apply nor __call__")
        return self(parameters, x, key if training else None), parameters

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        """What comes out at inference; with a key as in training, where the layer keeps nothing of it."""
        y, new = self.apply(parameters, x, key, key is not None)
        if new is not parameters:
            raise ValueError(f"{type(self).__name__}: a call with a key would lose the new running statistics; "
                             "y, parameters = layer.apply(parameters, x, key, training=True) gives them")
        return y

    def _parts(self) -> Iterable[tuple[str, Any]]:
        return ((name, value) for name, value in vars(self).items() if isinstance(value, Layer) and name[0] != "_")

    def __repr__(self) -> str:
        settings, lines = self._shown(), [f"({name}): {text(part)}" for name, part in self._parts()]
        if not lines:
            return super().__repr__()
        inside = "\n".join([settings, *lines] if settings else lines).replace("\n", "\n  ")
        return f"{type(self).__name__}(\n  {inside}\n)"


def split(key: Array | None, count: int) -> list[Array | None]:
    """A key for each of so many parts; none of none."""
    if key is None:
        return [None] * count
    keys = random.split(key, max(count, 1))
    return [keys[i] for i in range(count)]


class Sequential(Layer):
    """Layers and functions of one array, one after the other. Parameters: a list with those of each, {} of a function.

        model = hg.nn.Sequential(hg.nn.Linear(4, 8), hg.relu, hg.nn.Linear(8, 2))
        y = model(model.init(hg.random.key(0)), hg.ones((3, 4)))

    ValueError: as many parameters as layers are expected."""

    def __init__(self, *layers: Layer | Callable[[Array], Array]) -> None:
        self._layers = layers

    @property
    def layers(self) -> tuple[Layer | Callable[[Array], Array], ...]:
        """What it was made of."""
        return self._layers

    def _parts(self) -> Iterable[tuple[str, Any]]:
        return ((str(i), layer) for i, layer in enumerate(self._layers))

    def init(self, key: Array) -> list[Any]:
        keys = random.split(key, max(len(self._layers), 1))
        return [layer.init(keys[i]) if isinstance(layer, Layer) else {} for i, layer in enumerate(self._layers)]

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        if len(parameters) != len(self._layers):
            raise ValueError(f"parameters of {len(parameters)} layers for {len(self._layers)}")
        made, is_new = [], False
        for layer, own, part in zip(self._layers, parameters, split(key, len(self._layers))):
            if isinstance(layer, Layer):
                x, new = layer.apply(own, x, part, training)
                is_new = is_new or new is not own
                made.append(new)
            else:
                x = layer(x)
                made.append(own)
        return x, (tuple(made) if isinstance(parameters, tuple) else made) if is_new else parameters
