"""Products with a weight, and rows of a table."""

from __future__ import annotations

from math import sqrt  # correctly rounded everywhere

from hologram import _core, random
from hologram._core import Array
from hologram.nn.layer import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


class Linear(Layer):
    """x [..., inputs] by a weight [outputs, inputs], and a bias [outputs]; both begin uniform below 1 / sqrt(inputs).

        layer = hg.nn.Linear(4, 2)
        y = layer(layer.init(hg.random.key(0)), hg.ones((3, 4)))    # [3, 2]

    ValueError: inputs or outputs below 1."""

    def __init__(self, inputs: int, outputs: int, bias: bool = True, dtype: Any = "float32") -> None:
        if inputs < 1 or outputs < 1:
            raise ValueError(f"a linear layer from {inputs} to {outputs}")
        self.inputs, self.outputs, self.bias, self.dtype = inputs, outputs, bias, dtype

    def init(self, key: Array) -> dict[str, Array]:
        keys, bound = random.split(key), 1 / sqrt(self.inputs)
        made = {"weight": random.uniform(keys[0], (self.outputs, self.inputs), -bound, bound, self.dtype)}
        if self.bias:
            made["bias"] = random.uniform(keys[1], (self.outputs,), -bound, bound, self.dtype)
        return made

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        return _core.linear(x, parameters["weight"], parameters.get("bias")), parameters


class Embedding(Layer):
    """Rows of a table [count, width] by number: x of integers [...] gives [..., width]. They begin normally distributed; the one of
    number `padding` (from the end below 0) begins with zeros and has gradient 0.

        layer = hg.nn.Embedding(100, 8, padding=0)
        y = layer(layer.init(hg.random.key(0)), hg.asarray([[3, 7, 0]]))    # [1, 3, 8]

    ValueError: count or width below 1, or no row of the number `padding`; hg.IndexFault: a number out of range."""

    def __init__(self, count: int, width: int, dtype: Any = "float32", padding: int | None = None) -> None:
        if count < 1 or width < 1:
            raise ValueError(f"an embedding of {count} rows of {width}")
        if padding is not None and not -count <= padding < count:
            raise ValueError(f"Embedding: padding is the number of a row, from {-count} to {count - 1}, not {padding}")
        self.count, self.width, self.dtype = count, width, dtype
        self.padding = padding if padding is None or padding >= 0 else padding + count

    def init(self, key: Array) -> dict[str, Array]:
        made = random.normal(key, (self.count, self.width), dtype=self.dtype)
        return {"weight": made if self.padding is None else made.at[self.padding].set(0.0)}

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        rows = _core.embedding(parameters["weight"], x)
        if self.padding is not None:
            rows = _core.where((_core.asarray(x) == self.padding)[..., None], _core.stop_gradient(rows), rows)
        return rows, parameters
