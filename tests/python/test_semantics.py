"""The table of semantics (docs/semantics.toml): every expression has the value that stands beside it."""

import tomllib
from pathlib import Path

import numpy as np
import pytest

import hologram as hg

ROWS = tomllib.loads((Path(__file__).parents[2] / "docs/semantics.toml").read_text(encoding="utf-8"))["row"]


def slopes_of_hologram(f, *numbers):
    return [float(g) for g in hg.grad(f, argnums=tuple(range(len(numbers))))(*(hg.asarray(np.array(v)) for v in numbers))]


def second_of_hologram(f, *numbers, by=0):
    return float(hg.grad(lambda *x: hg.grad(f)(*x), argnums=by)(*(hg.asarray(np.array(v)) for v in numbers)))


def row_of_hologram(f, numbers):
    return hg.grad(f)(hg.asarray(np.array(numbers))).tolist()


def second_row_of_hologram(f, numbers):
    return row_of_hologram(lambda x: hg.grad(f)(x).sum(), numbers)


def steps_of_hologram(optimizer, gradient, count):
    """What a parameter of 1 is after so many steps by one gradient."""
    p = hg.ones(())
    state = optimizer.init(p)
    for _ in range(count):
        p, state = optimizer.update(p, hg.full((), gradient), state)
    return float(p)


def names_of(library):
    names = {"np": np, "hg": hg, "xp": hg.array_api, "inf": float("inf"), "nan": float("nan"), "A": lambda v: hg.asarray(np.array(v))}
    if library in ("hologram", "array_api"):
        return names | {"s": slopes_of_hologram, "s2": second_of_hologram, "row": row_of_hologram, "row2": second_row_of_hologram,
                        "steps": steps_of_hologram}
    if library != "torch":
        return names
    torch = pytest.importorskip("torch")

    def slopes(f, *numbers):
        given = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in numbers]
        return [float(g) for g in torch.autograd.grad(f(*given), given)]

    def row(f, numbers):
        x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
        return torch.autograd.grad(f(x), x)[0].tolist()

    def second(f, *numbers, by=0):
        given = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in numbers]
        first = torch.autograd.grad(f(*given), given[0], create_graph=True)[0]
        return float(torch.autograd.grad(first, given[by])[0]) if first.requires_grad else 0.0

    def second_row(f, numbers):
        x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
        first = torch.autograd.grad(f(x), x, create_graph=True)[0]
        return torch.autograd.grad(first.sum(), x)[0].tolist() if first.requires_grad else [0.0] * len(numbers)

    def steps(make, gradient, count):
        p = torch.tensor(1.0, requires_grad=True)
        optimizer = make([p])
        for _ in range(count):
            p.grad = torch.tensor(gradient)
            optimizer.step()
        return p.item()

    return names | {"torch": torch, "T": lambda v: torch.tensor(v, dtype=torch.float64), "s": slopes, "row": row, "s2": second,
                    "row2": second_row, "steps": steps}


@pytest.mark.parametrize("library", ["numpy", "torch", "hologram", "array_api"])
@pytest.mark.parametrize("row", ROWS, ids=[f"{row['operation']}: {row['about']}" for row in ROWS])
def test_row(row, library):
    if library not in row:
        return
    expression, value = row[library]
    with np.errstate(all="ignore"):
        found = np.ravel(np.asarray(eval(expression, names_of(library)), float))  # noqa: S307  the table is ours
    np.testing.assert_allclose(found, [float(v) for v in value.split(",")], rtol=1e-12)
