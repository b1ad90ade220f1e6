"""A computation as a list of steps: inputs with their layouts, operations, gradients, outputs, inputs that are updated in place,
outputs that are put over an input. Steps name earlier ones by number; a step that cannot be made (its inputs are gone, or the
library refuses it) is left out, so any part of a list is a graph too. That is how one that fails is made small.
"""

from dataclasses import dataclass, field

import numpy as np

from hgops import FLOATS, TYPES, Computation, Error, laid_out

MOST_ELEMENTS = 20000
LAYOUTS = ("turned", "backwards", "apart", "mixed", "repeated")
RARE = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40, 6e4)


# What a computation is told of its values, by the steps that say it.
ENDS = {"output": "output", "replace": "update", "over": "over"}


@dataclass
class Step:
    name: str  # of an operation; or input, gradient, and the ENDS
    inputs: list = field(default_factory=list)  # numbers of steps; None: absent
    arguments: dict = field(default_factory=dict)
    number: int = 0

    def __str__(self):
        """As a line of Python on hgops."""
        given = ["None" if i is None else f"v{i}" for i in self.inputs]
        more = [f"{k}={v!r}" for k, v in self.arguments.items() if k != "result"]
        if self.name in ENDS:
            return f"c.{ENDS[self.name]}({', '.join(given + more)})"
        if self.name == "input":
            ahead = f", ahead={self.arguments['ahead']}" if self.arguments.get("ahead") else ""
            return f"v{self.number} = c.input(array_of({', '.join(m for m in more if not m.startswith('ahead='))}){ahead})"
        if self.name == "gradient":
            return f"v{self.number} = c.gradient(c.op('sum', {given[0]}), [{', '.join(given[1:])}])[0]"
        place = f"c.op_all({', '.join([repr(self.name)] + given + more)})[{self.arguments['result']}]" if "result" in self.arguments \
            else f"c.op({', '.join([repr(self.name)] + given + more)})"
        return f"v{self.number} = {place}"


@dataclass
class Value:
    value: int
    shape: tuple
    kind: str


def _plain(shape, kind, rng, low, high):
    if low is not None:
        return rng.integers(low, high, shape)
    if kind == "bool":
        return rng.integers(0, 2, shape)
    if kind in FLOATS or kind.startswith("f8"):
        return np.where(rng.random(shape) < 0.03, rng.choice(RARE, shape), rng.standard_normal(shape) * 2)
    info = np.iinfo(TYPES[kind])
    return np.where(rng.random(shape) < 0.8, rng.integers(max(info.min, -9), 10, shape),
                    rng.integers(max(info.min, -2 ** 62), min(info.max, 2 ** 62), shape))


def array_of(shape, kind, layout, seed, low=None, high=None):
    with np.errstate(all="ignore"):
        dense = np.asarray(_plain(shape, kind, np.random.default_rng(seed), low, high)).astype(TYPES[kind])
    return laid_out(dense, layout, seed)


class Graph:
    """Steps made one after another; those that cannot be made are left out of `steps`."""

    def __init__(self, steps=(), most=MOST_ELEMENTS * 4):
        self.steps, self.values, self.next_number = [], {}, 0
        self.most, self.c = most, Computation()
        for step in steps:
            self.make(step)

    def make(self, step) -> bool:
        if any(i is not None and i not in self.values for i in step.inputs):
            return False
        try:
            self._make(step)
            self.c.check()
        except Error as error:
            if error.status not in ("INVALID_ARGUMENT", "UNSUPPORTED"):
                raise
            again = Graph(self.steps, self.most)  # a computation keeps its first error
            self.c, self.values = again.c, again.values
            return False
        self.steps.append(step)
        self.next_number = max(self.next_number, step.number + 1)
        return True

    def _make(self, step):
        c, given = self.c, [None if i is None else self.values[i].value for i in step.inputs]
        if step.name in ENDS:
            getattr(c, ENDS[step.name])(*given, **step.arguments)
            return
        arguments = dict(step.arguments)
        if step.name == "input":
            ahead = arguments.pop("ahead", 0)
            if np.prod(arguments["shape"], dtype=np.float64) > self.most:
                raise Error(1, "too large")
            value = c.input(array_of(**arguments), ahead)
        elif step.name == "gradient":
            value = c.gradient(c.op("sum", given[0]), given[1:])[0]
        else:
            result = arguments.pop("result", 0)
            value = c.op_all(step.name, *given, **arguments)[result]
        c.check()
        like = c.describe(value)
        shape = tuple(like.shape[:like.rank])
        if np.prod(shape, dtype=np.float64) > self.most:
            raise Error(1, "too large")
        self.values[step.number] = Value(value, shape, list(TYPES)[like.type - 1])

    def add(self, name, *inputs, **arguments):
        """The new step's number, or None."""
        step = Step(name, list(inputs), arguments, self.next_number)
        return step.number if self.make(step) else None

    def __str__(self):
        lines = ["c = Computation()"]
        for step in self.steps:
            value = self.values.get(step.number) if step.name not in ENDS else None
            lines.append(f"{step}" + (f"  # {value.kind}{list(value.shape)}" if value else ""))
        return "\n".join("    " + line for line in lines)
