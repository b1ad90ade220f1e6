"""A training loop: epochs over a loader, progress, checkpoints that a later call goes on from."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch


def save_checkpoint(path: str | os.PathLike[str], model: torch.nn.Module, optimizer: torch.optim.Optimizer, **more: Any) -> None:
    """Writes the states of model, optimizer and torch's generator, and numbers besides; the file is there whole or not at all."""
    target = Path(path)
    draft = target.with_name(target.name + ".part")
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "generator": torch.get_rng_state(), **more}, draft)
    os.replace(draft, target)


def load_checkpoint(path: str | os.PathLike[str], model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None) -> dict[str, Any]:
    """Sets what save_checkpoint wrote; the numbers besides. FileNotFoundError where there is no such file; no code of it is run."""
    state = torch.load(path, weights_only=True)
    model.load_state_dict(state.pop("model"))
    given = state.pop("optimizer")
    if optimizer is not None:
        optimizer.load_state_dict(given)
    torch.set_rng_state(state.pop("generator"))
    return dict(state)


def fit(model: torch.nn.Module, loss: Callable[..., torch.Tensor], optimizer: torch.optim.Optimizer,
        batches: Iterable[tuple[torch.Tensor, torch.Tensor]], epochs: int = 1, *, checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | Callable[[dict[str, Any]], None] = True) -> list[dict[str, Any]]:  # fmt: skip
    """Trains for so many epochs over batches (inputs, targets), an iterable that can be gone through again. One row an epoch:
    its number, the mean loss of its batches, seconds.

    checkpoint: written after each epoch; where it is there already, training goes on behind the epoch it was written after.
    progress: a line an epoch on stderr, or a function that gets each row."""
    rows: list[dict[str, Any]] = []
    if checkpoint is not None and Path(checkpoint).exists():
        rows = load_checkpoint(checkpoint, model, optimizer)["rows"]
    model.train()
    for epoch in range(len(rows), epochs):
        began, total, count = time.perf_counter(), 0.0, 0
        for inputs, targets in batches:
            optimizer.zero_grad()
            value = loss(model(inputs), targets)
            value.backward()  # type: ignore[no-untyped-call]  # torch's
            optimizer.step()
            total, count = total + value.item(), count + 1
        if count == 0:
            raise ValueError("fit: there are no batches")
        row = {"epoch": epoch + 1, "loss": total / count, "seconds": time.perf_counter() - began}
        rows.append(row)
        if checkpoint is not None:
            save_checkpoint(checkpoint, model, optimizer, rows=rows)
        if callable(progress):
            progress(row)
        elif progress:
            print(f"epoch {row['epoch']}/{epochs}: loss {row['loss']:.6g}, {row['seconds']:.2f} s", file=sys.stderr)
    return rows
