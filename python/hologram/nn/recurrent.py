"""Layers that go through a sequence step by step."""

from __future__ import annotations

from math import sqrt  # correctly rounded everywhere

from hologram import _core, random
from hologram._core import Array
from hologram._create import zeros
from hologram.nn.layer import Layer

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any


class _Recurrent(Layer):
    """x [..., time, inputs] gives [..., time, hidden]. Parameters are those of PyTorch's layer of this name, of one layer and direction."""

    _gates = 0

    def __init__(self, inputs: int, hidden: int, bias: bool = True, dtype: Any = "float32") -> None:
        if inputs < 1 or hidden < 1:
            raise ValueError(f"{type(self).__name__}: from {inputs} inputs to {hidden}")
        self.inputs, self.hidden, self.bias, self.dtype = inputs, hidden, bias, dtype

    def init(self, key: Array) -> dict[str, Array]:
        rows, bound, keys = self._gates * self.hidden, 1 / sqrt(self.hidden), random.split(key, 4)
        shapes: dict[str, tuple[int, ...]] = {"weight_ih_l0": (rows, self.inputs), "weight_hh_l0": (rows, self.hidden)}
        if self.bias:
            shapes |= {"bias_ih_l0": (rows,), "bias_hh_l0": (rows,)}
        return {name: random.uniform(keys[i], shape, -bound, bound, self.dtype) for i, (name, shape) in enumerate(shapes.items())}

    def start(self, batch: tuple[int, ...] = ()) -> Any:
        """The state before the first step, of zeros."""
        return zeros((*batch, self.hidden), self.dtype)

    def _next(self, given: Array, parameters: Any, state: Any) -> Any:
        """The state after the inputs' part of the gates."""
        raise NotImplementedError

    def _output(self, state: Any) -> Array:
        raise NotImplementedError

    def _parts_of(self, gates: Array) -> list[Array]:
        return [gates[..., i * self.hidden:(i + 1) * self.hidden] for i in range(self._gates)]

    def _own(self, parameters: Any, h: Array) -> Array:
        return _core.linear(h, parameters["weight_hh_l0"], parameters.get("bias_hh_l0"))

    def step(self, parameters: Any, x: Array, state: Any) -> tuple[Array, Any]:
        """One step: x [..., inputs] gives (y [..., hidden], the new state)."""
        state = self._next(_core.linear(x, parameters["weight_ih_l0"], parameters.get("bias_ih_l0")), parameters, state)
        return self._output(state), state

    def run(self, parameters: Any, x: Array, state: Any = None) -> tuple[Array, Any]:
        """A sequence x [..., time, inputs] from a state on (zeros where none is given): (y [..., time, hidden], the last state)."""
        if x.ndim < 2 or x.shape[-1] != self.inputs or x.shape[-2] < 1:
            raise ValueError(f"{type(self).__name__}: sequences are [..., time, {self.inputs}] of at least one step, not {x.shape}")
        state = self.start(x.shape[:-2]) if state is None else state
        given, made = _core.linear(x, parameters["weight_ih_l0"], parameters.get("bias_ih_l0")), []
        for i in range(x.shape[-2]):
            state = self._next(given[..., i, :], parameters, state)
            made.append(self._output(state))
        return _core.stack(made, axis=-2), state

    def apply(self, parameters: Any, x: Array, key: Array | None = None, training: bool = False) -> tuple[Array, Any]:
        return self.run(parameters, x)[0], parameters


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber 1997): x [..., time, inputs] gives [..., time, hidden]. The state is (h, c).
    Parameters are those of PyTorch's LSTM of one layer and direction, with the batch first.

        layer = hg.nn.LSTM(4, 8)
        parameters = layer.init(hg.random.key(0))
        y, (h, c) = layer.run(parameters, hg.ones((3, 5, 4)))          # y is [3, 5, 8]
        y, state = layer.step(parameters, hg.ones((3, 4)), (h, c))     # one step more

    ValueError: inputs or hidden below 1; x is no sequence of that width."""

    _gates = 4

    def start(self, batch: tuple[int, ...] = ()) -> Any:
        return super().start(batch), super().start(batch)

    def _next(self, given: Array, parameters: Any, state: Any) -> Any:
        h, c = state
        i, f, g, o = self._parts_of(given + self._own(parameters, h))
        c = _core.sigmoid(f) * c + _core.sigmoid(i) * _core.tanh(g)
        return _core.sigmoid(o) * _core.tanh(c), c

    def _output(self, state: Any) -> Array:
        h: Array = state[0]
        return h


class GRU(_Recurrent):
    """Gated recurrent unit (Cho and others 2014): x [..., time, inputs] gives [..., time, hidden], which is the state, too. Parameters
    are those of PyTorch's GRU of one layer and direction, with the batch first.

        layer = hg.nn.GRU(4, 8)
        parameters = layer.init(hg.random.key(0))
        y, h = layer.run(parameters, hg.ones((3, 5, 4)))          # y is [3, 5, 8]
        y, h = layer.step(parameters, hg.ones((3, 4)), h)         # one step more

    ValueError: inputs or hidden below 1; x is no sequence of that width."""

    _gates = 3

    def _next(self, given: Array, parameters: Any, state: Any) -> Any:
        (r, z, n), (own_r, own_z, own_n) = self._parts_of(given), self._parts_of(self._own(parameters, state))
        z = _core.sigmoid(z + own_z)
        n = _core.tanh(n + _core.sigmoid(r + own_r) * own_n)
        return (1 - z) * n + z * state

    def _output(self, state: Any) -> Array:
        h: Array = state
        return h
