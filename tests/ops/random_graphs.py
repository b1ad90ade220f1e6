#!/usr/bin/env python3
"""Random computations: what the fuser makes of one has the bits of its operations one by one, on every engine.

    HOLOGRAM_LIB=build/release/libhologram.so python tests/ops/random_graphs.py --count 100000 --seed 1 [--engine interp ...]

A graph is a list of steps, a pure function of its seed: inputs with their layouts, operations, a gradient, outputs, inputs
that are updated in place. Steps name earlier ones by number; a step that cannot be made (its inputs are gone, or the library
refuses it) is skipped, so any part of the list is a graph too. That is how one that fails is made small.
"""

import argparse
import os
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import numpy as np

import hgops
from hgops import TABLE, TYPES, Computation, Error

FLOATS = ("f32", "f64", "f16", "bf16")
SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
SIZES = (0, 1, 1, 2, 3, 5, 8, 17, 33, 64, 130)
MOST_ELEMENTS = 20000

# By what they take: floats, numbers, integers, bools; how many inputs.
OF_FLOATS = ("exp exp2 expm1 log log1p sqrt rsqrt cbrt floor ceil trunc round sin cos tanh sigmoid erf relu gelu gelu_tanh reciprocal "
             "elu silu softplus leaky_relu hardswish mish isnan isfinite").split()
OF_NUMBERS = "abs neg sign square".split()
OF_INTEGERS = "bitwise_not popcount leading_zeros reverse_bits".split()
PAIRS_OF_FLOATS = "fmod copysign pow atan2 logaddexp".split()
PAIRS_OF_NUMBERS = "add add sub sub mul mul div minimum maximum floor_divide remainder".split()
PAIRS_OF_INTEGERS = "rem mulhi bitwise_and bitwise_or bitwise_xor shift_left shift_right".split()
COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()
REDUCTIONS = "sum sum prod min max any all argmin argmax count_nonzero".split()
REDUCTIONS_OF_FLOATS = "mean var std norm logsumexp".split()
ROWS = "softmax log_softmax layer_norm rms_norm".split()
BOUNDS = ("fault", "wrap", "clamp")


@dataclass
class Step:
    name: str  # of an operation; or input, gradient, output, update
    inputs: list = field(default_factory=list)  # numbers of steps; None: absent
    arguments: dict = field(default_factory=dict)
    number: int = 0

    def __str__(self):
        words = ["-" if i is None else f"%{i}" for i in self.inputs] + [f"{k}={v}" for k, v in self.arguments.items()]
        return f"%{self.number} = {self.name}({', '.join(words)})"


@dataclass
class Value:
    value: int
    shape: tuple
    kind: str


# ---- a list of steps as a computation ---------------------------------------------------------------------------------


def array_of(shape, kind, layout, seed, low=None, high=None):
    rng = np.random.default_rng(seed)
    if low is not None:
        plain = rng.integers(low, high, shape)
    elif kind == "bool":
        plain = rng.integers(0, 2, shape)
    elif kind in FLOATS:
        plain = rng.standard_normal(shape) * 2
        rare = rng.random(shape)
        plain = np.where(rare < 0.03, rng.choice([0.0, -0.0, 1.0, np.inf, -np.inf, np.nan, 1e-40, 6e4], shape), plain)
    else:
        info = np.iinfo(TYPES[kind])
        plain = np.where(rng.random(shape) < 0.8, rng.integers(max(info.min, -9), 10, shape),
                         rng.integers(max(info.min, -2 ** 62), min(info.max, 2 ** 62), shape))
    with np.errstate(all="ignore"):
        dense = np.asarray(plain).astype(TYPES[kind])
    if layout == "turned":
        return np.ascontiguousarray(dense.T).T
    if layout == "backwards" and dense.ndim:
        return np.ascontiguousarray(dense[::-1])[::-1]
    if layout == "apart" and dense.ndim:
        return np.repeat(dense, 2, axis=-1)[..., ::2]
    if layout == "repeated" and dense.ndim and dense.size:
        return np.broadcast_to(dense[:1], dense.shape)
    return dense


class Graph:
    """Steps made one after another; those that cannot be made are left out of `steps`."""

    def __init__(self, steps=()):
        self.steps, self.values, self.next_number = [], {}, 0
        self.c = Computation()
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
            again = Graph(self.steps)  # a computation keeps its first error
            self.c, self.values = again.c, again.values
            return False
        self.steps.append(step)
        self.next_number = max(self.next_number, step.number + 1)
        return True

    def _make(self, step):
        c, given = self.c, [None if i is None else self.values[i].value for i in step.inputs]
        if step.name == "input":
            value = c.input(array_of(**step.arguments))
        elif step.name == "output":
            c.output(given[0])
            return
        elif step.name == "update":
            c.update(*given)
            return
        elif step.name == "gradient":
            value = c.gradient(c.op("sum", given[0]), given[1:])[0]
        else:
            value = c.op(step.name, *given, **step.arguments)
        c.check()
        like = c.describe(value)
        shape = tuple(like.shape[:like.rank])
        if np.prod(shape, dtype=np.float64) > MOST_ELEMENTS * 4:
            raise Error(1, "too large")
        self.values[step.number] = Value(value, shape, list(TYPES)[like.type - 1])

    def add(self, name, *inputs, **arguments):
        """The new step's number, or None."""
        step = Step(name, list(inputs), arguments, self.next_number)
        return step.number if self.make(step) else None

    def __str__(self):
        return "\n".join(f"    {step}" + (f"   {v.kind}{list(v.shape)}" if (v := self.values.get(step.number)) else "")
                         for step in self.steps)


# ---- a seed as a list of steps ----------------------------------------------------------------------------------------


class Draft:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.g = Graph()
        shape = self.shape()
        kind = self.r.choice(("f32", "f32", "f32", "f64", "f16", "bf16", "i32", "bool") + INTEGERS)
        for _ in range(self.r.randint(1, 3)):
            self.input(tuple(1 if self.r.random() < 0.2 else n for n in shape), kind)
        if not self.g.values:  # none of them could be made
            self.g.add("input", shape=(), kind="f32", layout="dense", seed=1)
        for _ in range(self.r.choice((2, 4, 8, 12, 16))):
            self.operation()
        self.ends()

    def shape(self):
        while True:
            shape = tuple(self.r.choice(SIZES if self.r.random() < 0.5 else SIZES[1:]) for _ in range(self.r.randint(0, 4)))
            if self.r.random() < 0.05:
                shape = shape[:-1] + (self.r.choice((300, 1000, 4096, 5000)),)
            if np.prod(shape) <= MOST_ELEMENTS:
                return shape

    def input(self, shape, kind, **between):
        layout = self.r.choice(("dense",) * 5 + ("turned", "backwards", "apart", "repeated"))
        return self.g.add("input", shape=tuple(shape), kind=kind, layout=layout, seed=self.r.getrandbits(32), **between)

    def some(self, fits=lambda v: True):
        """One of the later values, most often, as (number, value)."""
        found = [(n, v) for n, v in self.g.values.items() if fits(v)]
        recent = found[-4:] if self.r.random() < 0.8 else found
        return self.r.choice(recent) if recent else (None, None)

    def partner(self, value):
        """Another of the type whose shape broadcasts with the value's, or a new input."""
        def fits(v):
            if v.kind != value.kind:
                return False
            try:
                return np.prod(np.broadcast_shapes(v.shape, value.shape)) <= MOST_ELEMENTS
            except ValueError:
                return False
        if self.r.random() < 0.15:
            return self.input(tuple(1 if self.r.random() < 0.4 else n for n in value.shape), value.kind)
        return self.some(fits)[0]

    def operation(self):
        self.r.choice((self.one, self.one, self.two, self.two, self.two, self.compare, self.choose, self.reduce, self.reduce, self.view,
                       self.view, self.join, self.gather, self.row, self.product, self.cast, self.make_new))()

    def one(self):
        n, v = self.some()
        names = {"bool": ["logical_not"]}.get(v.kind, OF_NUMBERS + (OF_FLOATS if v.kind in FLOATS else OF_INTEGERS))
        self.g.add(self.r.choice(names), n)

    def two(self):
        n, v = self.some()
        names = ["logical_and", "logical_or", "logical_xor", "bitwise_xor"] if v.kind == "bool" else \
            PAIRS_OF_NUMBERS + (PAIRS_OF_FLOATS if v.kind in FLOATS else PAIRS_OF_INTEGERS)
        if v.kind != "bool" and self.r.random() < 0.15:
            self.g.add(self.r.choice(("mad", "lerp" if v.kind in FLOATS else "mad")), n, self.partner(v), self.partner(v))
        else:
            self.g.add(self.r.choice(names), n, self.partner(v))

    def compare(self):
        n, v = self.some()
        self.g.add(self.r.choice(COMPARISONS[:2] if v.kind == "bool" else COMPARISONS), n, self.partner(v))

    def choose(self):
        n, v = self.some(lambda v: v.kind == "bool")
        if n is None:
            return self.compare()
        m, w = self.some()
        self.g.add("where", n, m, self.partner(w))

    def reduce(self):
        n, v = self.some(lambda v: v.shape)
        if n is None:
            return
        axes = self.r.sample(range(len(v.shape)), self.r.randint(1, len(v.shape)))
        name = self.r.choice(REDUCTIONS + (REDUCTIONS_OF_FLOATS if v.kind in FLOATS else ["mean"]))
        if v.kind == "bool":
            name = self.r.choice(("sum", "any", "all", "mean"))
        more = {"ddof": 1.0} if name in ("var", "std") and self.r.random() < 0.3 else {}
        self.g.add(name, n, axes=axes, keep=int(self.r.random() < 0.6), **more)

    def view(self):
        n, v = self.some(lambda v: v.shape)
        if n is None:
            return
        rank, size, axis = len(v.shape), int(np.prod(v.shape)), self.r.randrange(len(v.shape))
        name = self.r.choice(("permute", "flip", "reshape", "slice", "slice", "broadcast", "expand", "squeeze", "swap"))
        length = v.shape[axis]
        if name == "slice" and length:
            first, last = sorted((self.r.randrange(length), self.r.randrange(length)))
            step = self.r.choice((1, 1, 2, 3, -1, -2))
            ends = (first, last + 1) if step > 0 else (last, first - 1)
            self.g.add("slice", n, axis=axis, start=ends[0], stop=ends[1], step=step)
        elif name == "permute":
            self.g.add(name, n, axes=self.r.sample(range(rank), rank))
        elif name == "flip":
            self.g.add(name, n, axes=self.r.sample(range(rank), self.r.randint(1, rank)))
        elif name == "reshape":
            low = next((d for d in (2, 3, 5) if size % d == 0 and size), 1)
            self.g.add(name, n, shape=self.r.choice(([size], [1, size], [low, size // low], [size // low, low], list(v.shape[::-1]))))
        elif name == "broadcast":
            self.g.add(name, n, shape=[self.r.randint(1, 3)] + [self.r.choice((1, 2, 7)) if s == 1 else s for s in v.shape])
        elif name == "swap" and rank >= 2:
            self.g.add(name, n)
        elif name == "expand":
            self.g.add(name, n, axis=axis)
        elif name == "squeeze":
            self.g.add(name, n)

    def join(self):
        n, v = self.some(lambda v: v.shape)
        if n is None:
            return
        axis, kind = self.r.randrange(len(v.shape)), self.r.randrange(3)
        if kind == 0:
            bounds = [[self.r.randint(0, 2) for _ in v.shape] for _ in range(2)]
            filler = self.input((), v.kind) if self.r.random() < 0.3 else None
            return self.g.add("pad", n, filler, low=bounds[0], high=bounds[1])
        def fits(w):
            return w.kind == v.kind and len(w.shape) == len(v.shape) and \
                all(a == b or (i == axis and kind == 1) for i, (a, b) in enumerate(zip(v.shape, w.shape)))
        parts = [n] + [self.some(fits)[0] for _ in range(self.r.randint(1, 2))]
        self.r.shuffle(parts)
        self.g.add("concatenate" if kind == 1 else "stack", *parts, axis=axis)

    def numbers(self, shape, length, bounds):
        """Indices: from the end where these wrap, far beyond the bounds where they clamp."""
        wild = {"wrap": (-length, length), "clamp": (-3 * length - 2, 3 * length + 2), "fault": (0, length)}[bounds]
        kind = self.r.choice(("i64", "i32", "u32", "i16", "u8", "i64"))
        if kind[0] == "u":
            wild = (0, wild[1])
        limit = np.iinfo(TYPES[kind])
        return self.input(shape, kind, low=max(limit.min, wild[0]), high=min(limit.max, wild[1]))

    def gather(self):
        n, v = self.some(lambda v: v.shape and 0 not in v.shape)
        if n is None:
            return
        axis, bounds = self.r.randrange(len(v.shape)), self.r.choice(BOUNDS)
        length = v.shape[axis]
        found, w = self.some(lambda w: w.kind in INTEGERS and len(w.shape) < 3 and np.prod(w.shape) < 200)
        name = self.r.choice(("take", "take", "take_along", "scatter", "scatter_add", "one_hot"))
        if name == "take":
            if found is None or bounds != "clamp" or self.r.random() < 0.5:
                found = self.numbers(self.shape_of_index(), length, bounds)
            return self.g.add(name, n, found, axis=axis, bounds=bounds)
        if name == "one_hot":
            return found is not None and self.g.add(name, found, classes=self.r.randint(1, 9))
        count = self.r.choice((1, 1, 2, 5, 20))
        around = [count if i == axis else (1 if self.r.random() < 0.2 else s) for i, s in enumerate(v.shape)]
        if name == "take_along":
            return self.g.add(name, n, self.numbers(around, length, bounds), axis=axis, bounds=bounds)
        if v.kind == "bool":
            name = "scatter"
        index = self.numbers(around, length, bounds)
        source = self.input(around, v.kind)
        self.g.add(name, n, index, source, axis=axis, bounds=bounds)

    def shape_of_index(self):
        return tuple(self.r.choice((1, 2, 3, 7)) for _ in range(self.r.randint(0, 2)))

    def row(self):
        n, v = self.some(lambda v: v.kind in FLOATS and v.shape and v.shape[-1] > 0)
        if n is None:
            return
        name = self.r.choice(ROWS + ["cross_entropy", "mse"])
        if name == "mse":
            self.g.add(name, n, self.partner(v), reduction=self.r.choice(("mean", "sum", "none")))
        elif name == "cross_entropy":
            target = self.input(v.shape[:-1], "i64", low=0, high=v.shape[-1])
            self.g.add(name, n, target, smoothing=self.r.choice((0.0, 0.1)), reduction=self.r.choice(("mean", "none")))
        elif name.endswith("softmax"):
            self.g.add(name, n, axis=self.r.randrange(len(v.shape)))
        else:
            weight = self.input(v.shape[-1:], v.kind) if self.r.random() < 0.5 else None
            self.g.add(name, n, weight)

    def product(self):
        n, v = self.some(lambda v: v.kind != "bool" and len(v.shape) >= 2)
        if n is None:
            return
        k = v.shape[-1]
        m, w = self.some(lambda w: w.kind == v.kind and w.shape and (w.shape[-1] == k or len(w.shape) >= 2 and w.shape[-2] == k))
        if m is None or self.r.random() < 0.5:
            columns = self.r.choice((1, 2, 8, 33))
            m = self.input(self.r.choice(((k, columns), (columns, k), (k,))), v.kind)
            w = self.g.values.get(m)
            if w is None:
                return
        turned = int(len(w.shape) >= 2 and w.shape[-2] != k)
        self.g.add("matmul", n, m, transpose_b=turned)

    def cast(self):
        n, v = self.some()
        kinds = FLOATS + ("i32", "i64", "u8", "i16", "u32", "bool")
        self.g.add("cast", n, type=self.r.choice(kinds))

    def make_new(self):
        shape = list(self.shape())
        name = self.r.choice(("uniform", "normal", "random_bits", "integers", "full", "arange", "eye", "triu", "tril", "dropout"))
        if name in ("triu", "tril"):
            n, v = self.some(lambda v: len(v.shape) >= 2)
            return n is not None and self.g.add(name, n, k=self.r.randint(-2, 2))
        if name in ("full", "arange", "eye"):
            kind = self.r.choice(FLOATS[:2] + ("i32",))
            more = {"full": {"shape": shape, "value": 1.5}, "arange": {"stop": 7.0}, "eye": {"rows": 5, "columns": 4}}[name]
            return self.g.add(name, type=kind, **more)
        key = self.input((), "u64")
        if name == "dropout":
            n, v = self.some(lambda v: v.kind in FLOATS)
            return n is not None and self.g.add(name, n, key, p=0.3)
        self.g.add(name, key, None, shape=shape)

    def ends(self):
        numbers = list(self.g.values)
        if self.r.random() < 0.35:
            n, v = self.some(lambda v: v.kind in FLOATS)
            wrt = [m for m, w in self.g.values.items() if w.kind in FLOATS]
            if n is not None and wrt:
                for m in self.r.sample(wrt, min(len(wrt), self.r.randint(1, 2))):
                    found = self.g.add("gradient", n, m)
                    if found is not None:
                        self.g.add("output", found)
        self.g.add("output", numbers[-1])
        for n in numbers:
            if self.r.random() < 0.15:
                self.g.add("output", n)
        if self.r.random() < 0.25:
            inputs = [s for s in self.g.steps if s.name == "input" and s.arguments["layout"] != "repeated"]
            if inputs:
                step = self.r.choice(inputs)
                own = self.g.values[step.number]
                n, _ = self.some(lambda v: v.kind == own.kind and v.shape == own.shape)
                self.g.add("update", step.number, n)


def draft(seed) -> Graph:
    return Draft(seed).g


# ---- what must hold ---------------------------------------------------------------------------------------------------


def failure_of(graph, engine, base=None) -> str:
    """What is wrong with a graph on an engine: "" if nothing. Its fused form against its operations one by one on `base`."""
    c = graph.c
    if not c.results and not c.updated:
        return ""
    answers = []
    for name, flags in ((engine, 0), (base or engine, hgops.NO_FUSION)):
        try:
            answers.append(c.run_on(name, flags))
        except Error as error:
            answers.append(error)
    fused, single = answers
    if isinstance(fused, Error) or isinstance(single, Error):
        said = [str(answer) if isinstance(answer, Error) else "runs" for answer in answers]
        return f"fused {said[0]}; one by one {said[1]}"
    for number, (a, b) in enumerate(zip(fused, single)):
        if a.tobytes() != b.tobytes():
            at = np.flatnonzero((np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8) !=
                                 np.ascontiguousarray(b).reshape(-1, 1).view(np.uint8)).any(axis=1))
            i = int(at[0])
            return f"output {number} {a.dtype}{list(a.shape)}: {len(at)} differ, at {i} fused {a.flat[i]!r}, one by one {b.flat[i]!r}"
    return ""


def shrink(graph, engine, base=None, seconds=20.0):
    """The smallest part found that still fails in such a way (`fused` did not run, or an `output` differs)."""
    best, end = graph, time.monotonic() + seconds
    way = failure_of(graph, engine, base)[:6]

    def attempt(steps):
        nonlocal best
        try:
            smaller = Graph(steps)
            if len(smaller.steps) < len(best.steps) and failure_of(smaller, engine, base)[:6] == way != "":
                best = smaller
                return True
        except Exception:
            pass
        return False

    def bypass(step, by):
        """The steps without one, whose users take another value instead."""
        return [Step(s.name, [by if i == step.number else i for i in s.inputs], s.arguments, s.number) for s in best.steps if s is not step]

    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in reversed(list(best.steps)):
            if step not in best.steps or time.monotonic() > end:
                continue
            changed |= attempt([s for s in best.steps if s is not step]) or \
                any(attempt(bypass(step, i)) for i in step.inputs if i is not None)
    return best


def report_of(seed, engine, base=None) -> str:
    """Fails in words, with the smallest graph; "" if nothing is wrong."""
    graph = draft(seed)
    wrong = failure_of(graph, engine, base)
    if not wrong:
        return ""
    small = shrink(graph, engine, base)
    return f"seed {seed} on {engine}{f' against {base}' if base else ''}: {wrong}\n  of {len(graph.steps)} steps these are left: " \
           f"{failure_of(small, engine, base)}\n{small}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others' follow")
    parser.add_argument("--engine", action="append", help="in turns, if there are several (tests/engines.py)")
    parser.add_argument("--base", help="the engine of the operations one by one; without it the same")
    parser.add_argument("--most", type=int, default=10, help="give up after so many that fail")
    options = parser.parse_args()
    names, failed, begin = options.engine or ["default"], 0, time.monotonic()
    for i in range(options.count):
        text = report_of(options.seed + i, names[i % len(names)], options.base)
        if text:
            failed += 1
            print(text, flush=True)
            if failed >= options.most:
                break
        if (i + 1) % 1000 == 0:
            print(f"{i + 1} graphs, {failed} failed, {(i + 1) / (time.monotonic() - begin):.0f} a second", flush=True)
    return failed > 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
