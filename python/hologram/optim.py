"""Optimisers. One is what does not change; its state is a tree of arrays, as parameters are.

    optimizer = hg.optim.Adam(0.01)
    state = optimizer.init(parameters)

    def step(parameters, state, x, y):
        value, gradients = hg.value_and_grad(loss)(parameters, x, y)
        return value, *optimizer.update(parameters, gradients, state)

    step = hg.jit(step, donate=(0, 1))    # parameters and state are changed where they are
    value, parameters, state = step(parameters, state, x, y)

`update` records an operation of the table for each tensor; they are computed together. The rate is a number, or a schedule:
a function of the number of steps before this one (`hg.optim.cosine(0.1, 1000)`). Statistics that a layer keeps among its
parameters (integers, and whatever stands below a key that begins with `running_`) stay as they are.
"""

from __future__ import annotations

from hologram import _core
from hologram._core import Array
from hologram._create import full, ones, zeros_like
from hologram._schedules import Schedule as Schedule
from hologram._schedules import constant as constant
from hologram._schedules import cosine as cosine
from hologram._schedules import exponential as exponential
from hologram._schedules import linear as linear
from hologram._schedules import one_cycle as one_cycle
from hologram._schedules import step_decay as step_decay
from hologram._schedules import warmup as warmup
from hologram._settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Callable
    from typing import Any

    Rate = float | Array | Callable[[Array], Array]


# ---- trees -----------------------------------------------------------------------------------------------------------

def _arrays(tree: Any) -> list[Array]:
    return _core._arrays_of(tree, True)


def _mapped(tree: Any, function: Callable[[Array], Array]) -> Any:
    return _core._rebuild(tree, iter([function(x) for x in _arrays(tree)]))


def _rows(trees: list[Any]) -> list[tuple[Array, ...]]:
    """What belongs together in trees of one form."""
    leaves = [_arrays(tree) for tree in trees]
    own = leaves[0]
    for other in leaves[1:]:
        if not _core._have_one_form(own, other) and [x.shape for x in other] != [x.shape for x in own]:
            raise ValueError("parameters, gradients and state are not of one form")
    return list(zip(*leaves))


# ---- gradients -------------------------------------------------------------------------------------------------------

def clip_norm(gradients: Any, max_norm: float) -> tuple[Any, Array]:
    """The gradients, shrunk together where the norm of all their elements is above max_norm; and that norm (float32).

        gradients, norm = hg.optim.clip_norm({"w": hg.ones(4)}, 1.0)    # norm is 2, each gradient 0.5

    TypeError: something in the tree is no array; ValueError: max_norm is below 0 or no number."""
    leaves = _arrays(gradients)
    norm = _core.global_norm(*leaves)
    return _core._rebuild(gradients, iter([_core.clip_norm(x, norm, max_norm=max_norm) for x in leaves])), norm


def clip_value(gradients: Any, most: float) -> Any:
    """The gradients, each element clipped to [-most, most]; a NaN stays.

        gradients = hg.optim.clip_value({"w": hg.ones(4)}, 0.5)    # each is 0.5

    TypeError: something in the tree is no array; ValueError: most is below 0 or no number."""
    if not most >= 0:
        raise ValueError(f"clip_value: the largest magnitude is 0 or more, not {most}")
    return _mapped(gradients, lambda x: _core.clip(x, -most, most))


# ---- optimisers ------------------------------------------------------------------------------------------------------

class Optimizer(Settings):
    """What optimisers have in common: init(parameters) makes the state, update(parameters, gradients, state) is a step.

    A subclass names the trees of its state, and says what a step does with one array. `_step` takes the parameter, its gradient, what the
    trees have for it and the numbers that all arrays share, and gives them anew, without the gradient."""

    _near = {"lr": "rate", "learning_rate": "rate", "betas": "beta1 and beta2", "weight_decay": "decay", "lr_decay": "rate_decay",
             "initial_accumulator_value": "initial", "decoupled_weight_decay": "decoupled"}  # fmt: skip
    _trees: tuple[str, ...] = ()
    _shared: tuple[str, ...] = ()  # begin with 1
    _is_counted = True  # whether a step depends on its number, which counts from 1
    _begin = 0.0  # what the trees are made of at first

    rate: Rate
    maximize: bool

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        raise NotImplementedError

    def init(self, parameters: Any) -> dict[str, Any]:
        """The state before the first step: a dict of numbers (float32) and trees of the parameters' form."""
        begin = self._begin
        make = zeros_like if begin == 0 else lambda x: full(x.shape, begin, x.dtype)
        state = {name: _mapped(parameters, make) for name in self._trees}
        return {**{name: ones((), "float32") for name in self._numbers()}, **state}

    def _numbers(self) -> tuple[str, ...]:
        return ("step", *self._shared) if self._is_counted or callable(self.rate) else self._shared

    def update(self, parameters: Any, gradients: Any, state: Any, rate: float | Array | None = None) -> tuple[Any, Any]:
        """New parameters and state; rate: another one for this step. ValueError where the trees are not of one form, or the state is
        another optimiser's."""
        names, step = self._trees, state.get("step")
        try:
            trees, shared = [state[name] for name in names], [state[name] for name in self._shared]
            if rate is None:
                rate = self.rate(state["step"] - 1) if callable(self.rate) else self.rate
        except KeyError as missing:
            raise ValueError(f"{type(self).__name__}: the state has no {missing}; init(parameters) makes the state") from None
        rows = _rows([parameters, gradients, *trees])
        if shared or self.maximize:
            rows = [(row[0], -row[1] if self.maximize else row[1], *row[2:], *shared) for row in rows]
        kept, count = _core._statistics_of(parameters), 1 + len(names)
        if True in kept:
            made = [(row[0], *row[2:]) if is_kept else self._step(row, rate, step) for row, is_kept in zip(rows, kept)]
        else:
            made = [self._step(row, rate, step) for row in rows]
        new, *parts = [_core._rebuild(parameters, iter([row[i] for row in made])) for i in range(count)]
        numbers = {} if step is None else {"step": step + 1}
        if shared and False in kept:
            shared = list(made[kept.index(False)][count:])
        return new, {**numbers, **dict(zip(self._shared, shared)), **dict(zip(names, parts))}


class SGD(Optimizer):
    """Gradient descent: p - rate * (g + decay * p), with momentum if it is above 0; dampening begins with the second step, as PyTorch's.

        optimizer = hg.optim.SGD(0.1, momentum=0.9)
        p, state = optimizer.update(hg.ones(3), hg.ones(3), optimizer.init(hg.ones(3)))    # p is 0.9"""

    def __init__(self, rate: Rate, momentum: float = 0.0, dampening: float = 0.0, nesterov: bool = False, decay: float = 0.0,
                 maximize: bool = False) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov's momentum is above 0 and has no dampening")
        self.rate, self.momentum, self.dampening = rate, momentum, dampening
        self.nesterov, self.decay, self.maximize = nesterov, decay, maximize
        self._trees = ("buffer",) if momentum != 0 else ()
        self._is_counted = momentum != 0 and dampening != 0

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        if len(row) == 2:
            return _core.sgd(row[0], row[1], rate, decay=self.decay)[:1]
        p, g, buffer = row
        return _core.sgd(p, g, rate, buffer, step, momentum=self.momentum, dampening=self.dampening, nesterov=self.nesterov,
                         decay=self.decay)


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015); decay is added to the gradient. amsgrad: over the largest mean square so far (Reddi and others 2018).

        optimizer = hg.optim.Adam(0.1)
        p, state = optimizer.update(hg.ones(3), hg.ones(3), optimizer.init(hg.ones(3)))    # p is 0.9"""

    _is_decoupled = False

    def __init__(self, rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
                 amsgrad: bool = False, maximize: bool = False) -> None:
        self.rate, self.beta1, self.beta2, self.eps, self.decay = rate, beta1, beta2, eps, decay
        self.amsgrad, self.maximize = amsgrad, maximize
        self._trees = ("mean", "square", "largest") if amsgrad else ("mean", "square")

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        if self.amsgrad:
            p, g, mean, square, largest = row
            return _core.amsgrad(p, g, mean, square, largest, rate, step, beta1=self.beta1, beta2=self.beta2, eps=self.eps,
                                 decay=self.decay, decoupled=self._is_decoupled)
        p, g, mean, square = row
        operation = _core.adamw if self._is_decoupled else _core.adam
        return operation(p, g, mean, square, rate, step, beta1=self.beta1, beta2=self.beta2, eps=self.eps, decay=self.decay)


class AdamW(Adam):
    """Adam with decoupled decay (Loshchilov and Hutter 2019): parameters shrink by rate * decay before each step.

        optimizer = hg.optim.AdamW(hg.optim.cosine(1e-3, 1000), decay=0.1)"""

    _is_decoupled = True

    def __init__(self, rate: Rate = 1e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.01,
                 amsgrad: bool = False, maximize: bool = False) -> None:
        super().__init__(rate, beta1, beta2, eps, decay, amsgrad, maximize)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum (Dozat 2016); decay is added to the gradient, or decoupled as AdamW's.

        optimizer = hg.optim.NAdam(0.002, decay=0.01, decoupled=True)"""

    _trees = ("mean", "square")
    _shared = ("product",)

    def __init__(self, rate: Rate = 2e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
                 momentum_decay: float = 4e-3, decoupled: bool = False, maximize: bool = False) -> None:
        self.rate, self.beta1, self.beta2, self.eps, self.decay = rate, beta1, beta2, eps, decay
        self.momentum_decay, self.decoupled, self.maximize = momentum_decay, decoupled, maximize

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        p, g, mean, square, product = row
        return _core.nadam(p, g, mean, square, product, rate, step, beta1=self.beta1, beta2=self.beta2, eps=self.eps, decay=self.decay,
                           momentum_decay=self.momentum_decay, decoupled=self.decoupled)


class Adamax(Optimizer):
    """Adam over the largest gradient, which fades by beta2, in place of the mean square (Kingma and Ba 2015).

        optimizer = hg.optim.Adamax(0.002)"""

    _trees = ("mean", "largest")

    def __init__(self, rate: Rate = 2e-3, beta1: float = 0.9, beta2: float = 0.999, eps: float = 1e-8, decay: float = 0.0,
                 maximize: bool = False) -> None:
        self.rate, self.beta1, self.beta2, self.eps, self.decay, self.maximize = rate, beta1, beta2, eps, decay, maximize

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        p, g, mean, largest = row
        return _core.adamax(p, g, mean, largest, rate, step, beta1=self.beta1, beta2=self.beta2, eps=self.eps, decay=self.decay)


class RMSprop(Optimizer):
    """The gradient over the root of its mean square (Hinton 2012); centered: over its deviation, as its mean is subtracted.

        optimizer = hg.optim.RMSprop(0.01, momentum=0.9, centered=True)"""

    _is_counted = False

    def __init__(self, rate: Rate = 1e-2, alpha: float = 0.99, eps: float = 1e-8, momentum: float = 0.0, centered: bool = False,
                 decay: float = 0.0, maximize: bool = False) -> None:
        self.rate, self.alpha, self.eps, self.momentum, self.centered = rate, alpha, eps, momentum, centered
        self.decay, self.maximize = decay, maximize
        self._trees = ("square", *(["mean"] if centered else []), *(["buffer"] if momentum != 0 else []))

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        mean, buffer = row[3] if self.centered else None, row[-1] if self.momentum != 0 else None
        p, *new = _core.rmsprop(row[0], row[1], row[2], rate, mean, buffer, alpha=self.alpha, eps=self.eps, momentum=self.momentum,
                                decay=self.decay)
        return p, new[0], *(new[1:2] if self.centered else []), *(new[2:] if self.momentum != 0 else [])


class Adagrad(Optimizer):
    """The gradient over the root of the sum of all squares so far (Duchi, Hazan and Singer 2011). initial: that sum before the
    first step; rate_decay: the n-th step's rate is rate / (1 + (n - 1) * rate_decay).

        optimizer = hg.optim.Adagrad(0.01)"""

    _trees = ("square",)

    def __init__(self, rate: Rate = 1e-2, rate_decay: float = 0.0, eps: float = 1e-10, decay: float = 0.0, initial: float = 0.0,
                 maximize: bool = False) -> None:
        if not initial >= 0:
            raise ValueError(f"Adagrad: the sum of squares begins with 0 or more, not {initial}")
        self.rate, self.rate_decay, self.eps, self.decay, self.initial, self.maximize = rate, rate_decay, eps, decay, initial, maximize
        self._begin = initial

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        p, g, square = row
        return _core.adagrad(p, g, square, rate, step, rate_decay=self.rate_decay, eps=self.eps, decay=self.decay)


class Lion(Optimizer):
    """Steps of one size, in the direction of the momentum's sign (Chen and others 2023); decay is decoupled as AdamW's.

        optimizer = hg.optim.Lion(1e-4, decay=0.1)"""

    _trees = ("mean",)
    _is_counted = False

    def __init__(self, rate: Rate = 1e-4, beta1: float = 0.9, beta2: float = 0.99, decay: float = 0.0, maximize: bool = False) -> None:
        self.rate, self.beta1, self.beta2, self.decay, self.maximize = rate, beta1, beta2, decay, maximize

    def _step(self, row: tuple[Array, ...], rate: Any, step: Any) -> tuple[Array, ...]:
        p, g, mean = row
        return _core.lion(p, g, mean, rate, beta1=self.beta1, beta2=self.beta2, decay=self.decay)
