"""Optimisers of modules: those of hg.optim as torch.optim.Optimizer, with the same bits on every machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import hologram as hg
from hologram_torch.convert import as_array, as_tensor


class Optimizer(torch.optim.Optimizer):
    """Takes the steps of an optimiser of hg.optim; for loops, schedulers, checkpoints and `training.fit` it is one of PyTorch's.

        optimizer = hg_torch.optim.Optimizer(model.parameters(), hg.optim.Lion(1e-4, decay=0.1))

    A group's rate is its `lr`, which is the optimiser's rate at first; a schedule of hg.optim sets it at every step. The parameters of a
    group share the number of the step. A state dict has the state, not the optimiser's settings: it is loaded into one of the same kind.
    ValueError: a state of another kind."""

    def __init__(self, parameters: Any, optimizer: hg.optim.Optimizer) -> None:
        self._optimizer = optimizer
        super().__init__(parameters, {"lr": float(optimizer.rate(hg.zeros(())) if callable(optimizer.rate) else optimizer.rate)})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of all parameters that have a gradient; what the closure returns, if there is one."""
        value = None
        if closure is not None:
            with torch.enable_grad():
                value = closure()
        for group in self.param_groups:
            own = [p for p in group["params"] if p.grad is not None]
            if own:
                self._step_of(group, own)
        return value

    def _step_of(self, group: dict[str, Any], own: list[torch.Tensor]) -> None:
        optimizer = self._optimizer
        arrays = [as_array(p.detach()) for p in own]
        for p, x in zip(own, arrays):
            if p not in self.state:
                fresh = optimizer.init(x)
                self.state[p] = {name: as_tensor(fresh[name]) for name in optimizer._trees}
                group.setdefault("numbers", {name: as_tensor(fresh[name]) for name in optimizer._numbers()})
        state: dict[str, Any] = {name: as_array(y) for name, y in group["numbers"].items()}
        for name in optimizer._trees:
            if any(name not in self.state[p] for p in own):
                raise ValueError(f"the state of another kind of optimiser has been loaded: it has no {name!r}")
            state[name] = [as_array(self.state[p][name]) for p in own]
        rate = optimizer.rate(state["step"] - 1) if callable(optimizer.rate) else group["lr"]
        new, state = optimizer.update(arrays, [as_array(p.grad) for p in own if p.grad is not None], state, rate)
        hg.compute(*new, *hg.nn.state_dict(state).values(), *([rate] if isinstance(rate, hg.Array) else []))
        group["lr"] = float(rate)
        for i, p in enumerate(own):
            p.copy_(as_tensor(new[i]))
            self.state[p] = {name: as_tensor(state[name][i]) for name in optimizer._trees}
        group["numbers"] = {name: as_tensor(state[name]) for name in optimizer._numbers()}
