"""Optimisers. One is what does not change; its state is a tree of arrays, as parameters are.

    optimizer = hg.optim.Adam(0.01)
    state = optimizer.init(parameters)

    def step(parameters, state, x, y):
        value, gradients = hg.value_and_grad(loss)(parameters, x, y)
        return value, *optimizer.update(parameters, gradients, state)

    step = hg.jit(step, donate=(0, 1))    # parameters and state are changed where they are
    value, parameters, state = step(parameters, state, x, y)

`update` records an operation of the table for each tensor; they are computed together.
"""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import ones, zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable, Sequence
    from typing import Any


def _arrays(tree: Any) -> list[Array]:
    return _core._arrays_of(tree, True)


def _rows(*trees: Any) -> list[tuple[Array, ...]]:
    """What belongs together in trees of one form."""
    leaves = [_arrays(tree) for tree in trees]
    if any([x.shape for x in other] != [x.shape for x in leaves[0]] for other in leaves[1:]):
        raise ValueError("parameters, gradients and state are not of one form")
    return list(zip(*leaves))


def _trees(like: Any, rows: Sequence[tuple[Array, ...]], count: int) -> list[Any]:
    return [_core._rebuild(like, iter([row[i] for row in rows])) for i in range(count)]


def clip_norm(gradients: Any, max_norm: float) -> tuple[Any, Array]:
    """The gradients, shrunk together where the norm of all their elements is above max_norm; and that norm."""
    leaves = _arrays(gradients)
    norm = _core.global_norm(*leaves)
    return _core._rebuild(gradients, iter([_core.clip_norm(x, norm, max_norm=max_norm) for x in leaves])), norm


class SGD:
    """Gradient descent: p - rate * (g + decay * p), with momentum if it is above 0; dampening begins with the second step, as PyTorch's."""

    def __init__(self, rate: float, momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False, decay: float = 0.0) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum is above 0 and has no dampening")
        self.rate, self.momentum, self.dampening, self.nesterov, self.decay = rate, momentum, dampening, nesterov, decay

    def init(self, parameters: Any) -> dict[str, Any]:
        """The state before the first step."""
        if self.momentum == 0:
            return {}
        state = {"buffer": _core._rebuild(parameters, iter([zeros_like(p) for p in _arrays(parameters)]))}
        return state if self.dampening == 0 else {"step": ones((), "float32"), **state}

    def update(self, parameters: Any, gradients: Any, state: Any, rate: float | Array | None = None) -> tuple[Any, Any]:
        """New parameters and state; rate: another one for this step."""
        rate = self.rate if rate is None else rate
        if self.momentum == 0:
            made = [_core.sgd(p, g, rate, decay=self.decay)[:1] for p, g in _rows(parameters, gradients)]
            return _trees(parameters, made, 1)[0], state
        step = state.get("step")  # where there is dampening, which begins with the second
        both = [_core.sgd(p, g, rate, b, step, momentum=self.momentum, dampening=self.dampening, nesterov=self.nesterov, decay=self.decay)
                for p, g, b in _rows(parameters, gradients, state["buffer"])]
        new, buffer = _trees(parameters, both, 2)
        return new, {"buffer": buffer} if step is None else {"step": step + 1, "buffer": buffer}


class Adam:
    """Adam (Kingma and Ba 2015); decay is added to the gradient."""

    _operation: Callable[..., Any] = staticmethod(_core.adam)

    def __init__(self, rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0) -> None:
        self.rate, self.beta1, self.beta2, self.eps, self.decay = rate, beta1, beta2, eps, decay

    def init(self, parameters: Any) -> dict[str, Any]:
        """The state before the first step: of each array the averages of its gradients and of their squares."""
        mean, square = (_core._rebuild(parameters, iter([zeros_like(p) for p in _arrays(parameters)])) for _ in range(2))
        return {"step": ones((), "float32"), "mean": mean, "square": square}

    def update(self, parameters: Any, gradients: Any, state: Any, rate: float | Array | None = None) -> tuple[Any, Any]:
        """New parameters and state; rate: another one for this step."""
        rate, step = self.rate if rate is None else rate, state["step"]
        made = [self._operation(p, g, m, v, rate, step, beta1=self.beta1, beta2=self.beta2, eps=self.eps, decay=self.decay)
                for p, g, m, v in _rows(parameters, gradients, state["mean"], state["square"])]
        new, mean, square = _trees(parameters, made, 3)
        return new, {"step": step + 1, "mean": mean, "square": square}


class AdamW(Adam):
    """Adam with decoupled decay (Loshchilov and Hutter 2019): parameters shrink by rate * decay before each step."""

    _operation = staticmethod(_core.adamw)

    def __init__(self, rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.01) -> None:
        super().__init__(rate, beta1, beta2, eps, decay)
