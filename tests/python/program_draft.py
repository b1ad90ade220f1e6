"""A seed as a small Python program on arrays: lines of text, which plain models of NumPy's and PyTorch's arrays run as well as
Hologram (program_models.py).

A form is a function of the draft that gives a line, or a block of lines, or None; `@form(weight)` puts it among those that are drawn.
What it writes is run at once on the model of NumPy's arrays, and left out where it raises, or gives numbers that are not finite or
far from 1; so a form may guess. Names of arrays are letters. A program reads nothing but its arguments and `xp`, and gives all
arrays that it has in the end."""

import random

import numpy as np

from program_models import PLAIN, Array

FORMS = []
MOST_ELEMENTS, MOST_SIZE = 120, 1e3


def form(weight=1):
    def add(function):
        FORMS.extend([function] * weight)
        return function
    return add


class Draft:
    """`lines` of a function's body, and `inputs`, the arrays that it takes: f64."""

    def __init__(self, seed, forms=None):
        self.r = random.Random(seed)
        self.lines, self.inputs = [], {}
        for name in "ab":
            shape = tuple(self.r.choice((1, 2, 3, 3, 4, 5)) for _ in range(self.r.choice((1, 1, 2, 2, 2, 3))))
            self.inputs[name] = np.random.default_rng([seed, ord(name)]).uniform(-1.5, 1.5, shape)
        self.values = {name: Array(value.copy()) for name, value in self.inputs.items()}
        for _ in range(self.r.randint(2, 9)):
            self.add(self.r.choice(forms or FORMS)(self))

    @classmethod
    def of(cls, inputs, lines):
        """The program of these lines; None: it does not run."""
        made = cls.__new__(cls)
        made.r, made.lines, made.inputs = random.Random(0), [], inputs
        made.values = {name: Array(value.copy()) for name, value in inputs.items()}
        for line in lines:
            made.add(line)
        return made if made.lines == list(lines) else None

    def source(self):
        body = self.lines + [f"return [{', '.join(sorted(self.values))}]"]
        return "def program(xp, a, b):\n" + "".join(f"    {part}\n" for line in body for part in line.split("\n"))

    def add(self, text):
        """Takes the text in, if it runs and what it makes can be compared."""
        if text is None:
            return
        copies = {}  # two names of one array stay that
        values = {name: copies.setdefault(id(value), Array(value.v)) for name, value in self.values.items()}
        try:
            with np.errstate(all="ignore"):
                exec(text, {"xp": PLAIN}, values)
        except (ValueError, IndexError, TypeError, NameError):
            return
        values = {name: value for name, value in values.items() if isinstance(value, Array)}
        for value in values.values():
            if value.v.size > MOST_ELEMENTS or value.v.ndim > 4 or not (np.abs(value.v) < MOST_SIZE).all():
                return
        self.values = values
        self.lines.append(text)

    # ---- what forms are made of ----

    def name(self, fits=lambda value: True):
        """Of an array for which it holds, mostly one that was made late."""
        found = [name for name, value in self.values.items() if fits(value.v)]
        if not found:
            return None
        return self.r.choice(found[-3:] if self.r.random() < 0.6 else found)

    def new(self):
        """A name for what a line makes: a new one, or one whose array is given up."""
        free = [name for name in "cdefghijkl" if name not in self.values]
        return free[0] if free and self.r.random() < 0.8 else self.r.choice(list(self.values)[2:] or ["c"])

    def number(self):
        return repr(round(self.r.uniform(-2, 2), 2))

    def part(self, size):
        """Of a key, for an axis of that size; and whether it keeps the axis."""
        kind = self.r.randrange(6)
        if kind == 0 and size:
            return str(self.r.randint(-size, size - 1))
        if kind < 2:
            return ":"
        low, high = sorted((self.r.randint(0, size), self.r.randint(0, size)))
        step = self.r.choice(("", "", ":2", ":-1", ":-2", ":3"))
        if step.startswith(":-"):
            return f"{max(high - 1, 0)}:{low - 1 if low else ''}{step}"
        return f"{low if low else ''}:{high - size if high < size and self.r.random() < 0.5 else high}{step}"

    def key(self, value):
        parts = [self.part(size) for size in value.shape]
        if self.r.random() < 0.3:
            at = self.r.randrange(len(parts) + 1)
            parts[at:] = ["..."] + (parts[at + self.r.randint(0, 1) :] if at < len(parts) else [])
        elif self.r.random() < 0.3:
            parts = parts[: self.r.randint(1, len(parts))] if parts else ["..."]
        if self.r.random() < 0.15:
            parts.insert(self.r.randrange(len(parts) + 1), "None")
        return ", ".join(parts) or "..."

    def selected(self, value, key):
        """The shape of value[key]; None: there is no such."""
        try:
            return eval(f"value[{key}]", {"value": value}).shape
        except IndexError:
            return None

    def term(self, shape=None):
        """An expression, if it can be of a shape or one that broadcasts to it."""
        def fits(value):
            try:
                return shape is None or np.broadcast_shapes(value.shape, shape) == shape
            except ValueError:
                return False
        name = self.name(fits)
        if name is None:
            return self.number()
        kind = self.r.randrange(6)
        if kind == 0:
            return f"{self.r.choice(('xp.sin', 'xp.tanh', 'xp.exp', 'xp.square', 'xp.abs'))}({name} * 0.5)"
        if kind == 1:
            return f"{name} {self.r.choice('+-*')} {self.number()}"
        if kind == 2:
            return f"{name} {self.r.choice('+-*')} {self.name(fits)}"
        if kind == 3 and self.values[name].v.ndim:
            return f"{name}[{self.key(self.values[name].v)}]"
        return name if self.r.random() < 0.5 else f"{name} / ({self.name(fits)} * {self.name(fits)} + 1.0)"


# ---- forms --------------------------------------------------------------------------------------------------------------


@form(4)
def compute(d):
    return f"{d.new()} = {d.term()}"


@form(8)
def assign(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    value, how = d.values[name].v, d.r.choice(("=", "=", "=", "+=", "*=", "-="))
    key = d.key(value)
    shape = d.selected(value, key)
    return shape is not None and f"{name}[{key}] {how} {d.term(shape)}" or None


@form(2)
def assign_from_itself(d):
    """From a part of the same shape of the same array."""
    name = d.name(lambda v: v.ndim and v.shape[0] > 1)
    if name is None:
        return None
    size = d.values[name].v.shape[0]
    count = d.r.randint(1, size - 1)
    to, of = d.r.randint(0, size - count), d.r.randint(0, size - count)
    return f"{name}[{to}:{to + count}] = {d.r.choice(('', 'xp.sin', '0.5 * '))}({name}[{of}:{of + count}])"


@form(2)
def view(d):
    name = d.name(lambda v: v.ndim)
    return name and f"{d.new()} = {name}[{d.key(d.values[name].v)}]"


@form(2)
def second_name(d):
    return f"{d.new()} = {d.r.choice(('{}', 'xp.asarray({})', 'xp.copy({})', '+{}')).format(d.name())}"


@form(2)
def turned(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    value = d.values[name].v
    shapes = [str(value.shape[::-1]), str((value.size,)), f"(1, {value.size})", "(-1, 1)"]
    return f"{d.new()} = {name}" + d.r.choice((".T", f".reshape({d.r.choice(shapes)})"))


@form(3)
def reduce(d):
    name = d.name(lambda v: v.ndim and v.size)
    if name is None:
        return None
    ndim = d.values[name].v.ndim
    axis = d.r.choice(("", f"axis={d.r.randrange(ndim)}", f"axis={d.r.randrange(ndim)}, keepdims=True"))
    return f"{d.new()} = {name}.{d.r.choice(('sum', 'mean', 'max', 'min'))}({axis})"


@form(2)
def join(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    shape = d.values[name].v.shape
    other = d.name(lambda v: v.shape == shape)
    axis = d.r.randrange(len(shape))
    parts = d.r.sample([name, other, f"{other} * 2.0", f"{name}[{d.key(d.values[name].v)}]"], d.r.randint(2, 3))
    return f"{d.new()} = xp.{d.r.choice(('concat', 'stack'))}([{', '.join(parts)}], axis={axis})"


@form(1)
def choose(d):
    name = d.name()
    other = d.name(lambda v: v.shape == d.values[name].v.shape)
    return f"{d.new()} = " + d.r.choice((f"xp.where({name} > 0.31, {other}, {d.number()})", f"xp.maximum({name}, {other})",
                                         f"xp.where({name} < {other}, {name} * 2.0, {other})"))  # fmt: skip


@form(1)
def product(d):
    name = d.name(lambda v: v.ndim == 2)
    return name and f"{d.new()} = {name} @ {name}.T * 0.3"


@form(2)
def filled(d):
    """A new array, filled element by element or row by row."""
    name, to = d.name(lambda v: v.ndim), d.new()
    if name is None or name == to:
        return None
    shape = d.values[name].v.shape
    value = d.r.choice((f"{name}[i]", f"{name}[i] * {name}[-1 - i]", f"xp.sin({name}[{shape[0] - 1} - i])"))
    return f"{to} = xp.zeros({shape})\nfor i in range({shape[0]}):\n    {to}[i] = {value}"


@form(3)
def recurrence(d):
    name = d.name(lambda v: v.ndim and v.shape[0] > 1)
    if name is None:
        return None
    size, by = d.values[name].v.shape[0], d.r.choice(("0.5", f"{name}[0]", f"xp.tanh({name}[i])"))
    return f"for i in range(1, {size}):\n    {name}[i] = {name}[i - 1] * {by} + {d.r.choice((f'{name}[i]', d.number()))}"


@form(1)
def smoothing(d):
    name = d.name(lambda v: v.ndim and v.shape[-1] > 2)
    times = d.r.randint(1, 4)
    return name and (f"for _ in range({times}):\n    {name}[..., 1:-1] = "
                     f"{name}[..., 1:-1] + 0.25 * ({name}[..., 2:] - 2.0 * {name}[..., 1:-1] + {name}[..., :-2])")


@form(1)
def rows(d):
    name = d.name(lambda v: v.ndim > 1)
    return name and f"{d.new()} = xp.stack([row * row[0] for row in {name}], axis=0)"


def numbers(d, size):
    return str([d.r.randint(-size, size - 1) for _ in range(d.r.randint(1, 4))])


@form(3)
def by_numbers(d):
    """Elements by lists of numbers, alone or beside other parts; of one that comes twice the last value stays."""
    name = d.name(lambda v: v.ndim and v.size)
    if name is None:
        return None
    value = d.values[name].v
    axis, parts = d.r.randrange(value.ndim), [d.part(size) for size in value.shape]
    parts[axis] = numbers(d, value.shape[axis])
    if value.ndim > 1 and d.r.random() < 0.2:
        parts[axis - 1] = numbers(d, value.shape[axis - 1])
    key = ", ".join(parts[: d.r.randint(axis + 1, value.ndim)])
    shape = d.selected(value, key)
    if shape is None or d.r.random() < 0.4:
        return f"{d.new()} = {name}[{key}]"
    return f"{name}[{key}] {d.r.choice(('=', '+=', '*='))} {d.term(shape)}"


@form(2)
def by_mask(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    mask = d.r.choice((f"{name} > 0.21", f"{name} < 0.37", f"{name}[..., 0] > 0.11" if d.values[name].v.ndim == 2 else f"{name} > 0.0"))
    return d.r.choice((f"{d.new()} = {name}[{mask}]", f"{name}[{mask}] = {d.number()}", f"{name}[{mask}] *= {d.number()}",
                       f"{name}[{mask}] = {name}[{mask}] * {name}[{mask}]"))  # fmt: skip
