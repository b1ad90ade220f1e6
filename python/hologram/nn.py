"""Layers. A layer is what does not change; its parameters are a tree of arrays beside it, which hg.grad and hg.jit take.

    model = hg.nn.Sequential(hg.nn.Linear(64, 96), hg.relu, hg.nn.Linear(96, 10))
    parameters = model.init(hg.random.key(0))
    loss = lambda p: hg.cross_entropy(model(p, x), digits)
    value, gradients = hg.value_and_grad(loss)(parameters)

Layers whose numbers are random take a key when they are called, and do nothing without one.
"""

from __future__ import annotations

from hologram import _core, random
from hologram._core import Array
from hologram._create import ones, zeros

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any


class Layer:
    """What layers have in common: init(key) makes parameters, layer(parameters, x, key=None) computes."""

    def init(self, key: Array) -> Any:
        """New parameters; the same key gives the same bits everywhere."""
        return {}

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        raise NotImplementedError


class Linear(Layer):
    """x [..., inputs] by a weight [outputs, inputs], and a bias [outputs]; both begin uniform below 1 / sqrt(inputs)."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, dtype: Any = "float32") -> None:
        if inputs < 1 or outputs < 1:
            raise ValueError(f"a linear layer from {inputs} to {outputs}")
        self.inputs, self.outputs, self.bias, self.dtype = inputs, outputs, bias, dtype

    def init(self, key: Array) -> dict[str, Array]:
        keys, bound = random.split(key), self.inputs**-0.5
        made = {"weight": random.uniform(keys[0], (self.outputs, self.inputs), -bound, bound, self.dtype)}
        if self.bias:
            made["bias"] = random.uniform(keys[1], (self.outputs,), -bound, bound, self.dtype)
        return made

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        return _core.linear(x, parameters["weight"], parameters.get("bias"))


class Embedding(Layer):
    """Rows of a table [count, width] by number; they begin normally distributed."""

    def __init__(self, count: int, width: int, dtype: Any = "float32") -> None:
        if count < 1 or width < 1:
            raise ValueError(f"an embedding of {count} rows of {width}")
        self.count, self.width, self.dtype = count, width, dtype

    def init(self, key: Array) -> dict[str, Array]:
        return {"weight": random.normal(key, (self.count, self.width), dtype=self.dtype)}

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        return _core.embedding(parameters["weight"], x)


class LayerNorm(Layer):
    """The last axis to mean 0 and variance 1, by a weight and a bias."""

    def __init__(self, width: int, eps: float = 1e-5, dtype: Any = "float32") -> None:
        self.width, self.eps, self.dtype = width, eps, dtype

    def init(self, key: Array) -> dict[str, Array]:
        return {"weight": ones(self.width, self.dtype), "bias": zeros(self.width, self.dtype)}

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        return _core.layer_norm(x, parameters["weight"], parameters["bias"], eps=self.eps)


class Dropout(Layer):
    """0 with probability p, else x / (1 - p); x itself where no key is given."""

    def __init__(self, p: float = 0.5) -> None:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout: the probability p is from 0 to 1, not {p}")
        self.p = p

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        return x if key is None else _core.dropout(x, key, p=self.p)


class Sequential(Layer):
    """Layers and functions of one array, one after the other. Parameters: a list with those of each, {} of a function."""

    def __init__(self, *layers: Layer | Callable[[Array], Array]) -> None:
        self.layers = layers

    def init(self, key: Array) -> list[Any]:
        keys = random.split(key, max(len(self.layers), 1))
        return [layer.init(keys[i]) if isinstance(layer, Layer) else {} for i, layer in enumerate(self.layers)]

    def __call__(self, parameters: Any, x: Array, key: Array | None = None) -> Array:
        if len(parameters) != len(self.layers):
            raise ValueError(f"parameters of {len(parameters)} layers for {len(self.layers)}")
        keys = None if key is None else random.split(key, max(len(self.layers), 1))
        for i, layer in enumerate(self.layers):
            if isinstance(layer, Layer):
                x = layer(parameters[i], x, None if keys is None else keys[i])
            else:
                x = layer(x)
        return x


def state_dict(parameters: Any) -> dict[str, Array]:
    """The arrays of a tree by their paths: {"0.weight": ..., "0.bias": ..., "2.weight": ...}, as PyTorch names them."""
    if isinstance(parameters, Array):
        return {"": parameters}
    parts = parameters.items() if isinstance(parameters, dict) else enumerate(parameters)
    return {f"{name}.{path}".rstrip("."): x for name, part in parts for path, x in state_dict(part).items()}


def load_state_dict(parameters: Any, state: Any) -> Any:
    """The tree with a state's arrays in place of its own. Names, shapes and types must be the same; what has memory to
    share (NumPy's arrays, tensors) is shared."""
    own = state_dict(parameters)
    if own.keys() != state.keys():
        raise ValueError(f"a state dict whose names differ: {', '.join(sorted(own.keys() ^ state.keys()))}")
    new = {name: _core.asarray(state[name]) for name in own}
    for name, x in new.items():
        if x.shape != own[name].shape or x.dtype != own[name].dtype:
            raise ValueError(f"{name} is {x.dtype} {x.shape}, not {own[name].dtype} {own[name].shape}")
    return _core._rebuild(parameters, iter(new.values()))
