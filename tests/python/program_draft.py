"""A seed as a small Python program on arrays: lines of text, which plain models of NumPy's and PyTorch's arrays run as well as
Hologram (program_models.py).

A form is a function of the draft that gives a line, or a block of lines, or None; `@form(weight)` puts it among those that are drawn.
What it writes is run at once on the model of NumPy's arrays, and left out where it raises, or gives numbers that are not finite or
far from 1; so a form may guess. Names of arrays are letters. A program reads nothing but its arguments and `xp`, and gives all
arrays that it has in the end."""

import random

import numpy as np

from program_models import PLAIN, Array, Unsettled

FORMS = []
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
MOST_ELEMENTS, MOST_SIZE = 120, 1e3


def form(weight=1):
    def add(function):
        FORMS.extend([function] * weight)
        return function
    return add


class Draft:
    """`lines` of a function's body, and `inputs`, the arrays that it takes: f64, and in every other program `s` of f32 and `n` of
    some type of integers."""

    def __init__(self, seed, forms=None):
        self.r = random.Random(seed)
        self.lines, self.inputs, self.refused = [], {}, None
        for name in "ab":
            shape = tuple(self.r.choice((1, 2, 3, 3, 4, 5)) for _ in range(self.r.choice((1, 1, 2, 2, 2, 3))))
            self.inputs[name] = np.random.default_rng([seed, ord(name)]).uniform(-1.5, 1.5, shape)
        if self.r.random() < 0.5:
            shape = self.inputs["a"].shape[self.r.randrange(2) :]
            self.inputs["s"] = np.random.default_rng([seed, 3]).uniform(-1.5, 1.5, shape).astype("float32")
            dtype = self.r.choice(INTEGERS)
            self.inputs["n"] = np.random.default_rng([seed, 4]).integers(0 if dtype[0] == "u" else -3, 6, shape[::-1]).astype(dtype)
        self.values = {name: Array(value.copy()) for name, value in self.inputs.items()}
        for _ in range(self.r.randint(2, 9)):
            self.add(self.r.choice(forms or FORMS)(self))

    @classmethod
    def of(cls, inputs, lines):
        """The program of these lines; None: it does not run."""
        made = cls.__new__(cls)
        made.r, made.lines, made.inputs, made.refused = random.Random(0), [], inputs, None
        made.values = {name: Array(value.copy()) for name, value in inputs.items()}
        for line in lines:
            made.add(line)
        return made if made.lines == list(lines) else None

    def source(self):
        return self.function(self.lines, f"[{', '.join(sorted(self.values))}]")

    def refused_source(self):
        """Of the lines up to the one that the model refuses; its arrays are those that there are then."""
        return self.function(self.refused[0], "list(locals().values())")

    def function(self, lines, results):
        body = [*lines, f"return {results}"]
        return f"def program(xp, {', '.join(self.inputs)}):\n" + "".join(f"    {part}\n" for line in body for part in line.split("\n"))

    def add(self, text):
        """Takes the text in, if it runs and what it makes can be compared."""
        if text is None:
            return
        copies = {}  # two names of one array stay that
        values = {name: copies.setdefault(id(value), Array(value.v)) for name, value in self.values.items()}
        try:
            with np.errstate(all="ignore"):
                exec(text, {"xp": PLAIN}, values)
        except (ValueError, IndexError, TypeError, OverflowError) as error:
            self.refused = self.refused or ([*self.lines, text], error)
            return
        except (NameError, Unsettled):
            return
        values = {name: value for name, value in values.items() if isinstance(value, Array)}
        for value in values.values():
            if value.v.size > MOST_ELEMENTS or value.v.ndim > 4 or not (np.abs(value.v.astype(float)) < MOST_SIZE).all():
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
        """Of Python or NumPy."""
        kind = self.r.randrange(8)
        if kind < 5:
            return repr(round(self.r.uniform(-2, 2), 2))
        if kind == 5:
            return f"xp.np.{self.r.choice(('float64', 'float32'))}({round(self.r.uniform(-2, 2), 1)})"
        return self.r.choice(("2", "-1", "3", "xp.np.int64(2)", "xp.np.int8(3)", "True"))

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

    def selected(self, name, key):
        """The shape of name[key]; None: there is no such."""
        try:
            return eval(f"{name}[{key}]", {"xp": PLAIN, **self.values}).shape
        except (IndexError, TypeError, ValueError):
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
            parts = [name, self.number()]
            self.r.shuffle(parts)
            return f"{parts[0]} {self.r.choice('+-*')} {parts[1]}"
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
    shape = d.selected(name, key)
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
    return f"{d.new()} = {name}.{d.r.choice(('sum', 'mean', 'max', 'min', 'prod'))}({axis})"


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
    """Of elements along an axis: a list or an array of NumPy's or ours, of one or two axes; or computed."""
    made = [d.r.randint(-size, size - 1) for _ in range(d.r.randint(1, 4))]
    if d.r.random() < 0.2:
        made = [made, made[::-1]]
    whole = d.name(lambda v: v.dtype.kind in "iu")
    kinds = ["{}", "{}", "xp.np.array({})", "xp.array({})", "xp.array({}).astype('int32')"]
    return d.r.choice(kinds + ([f"{whole} % {size}"] if whole and size else [])).format(made)


def masks(d, value, name):
    """Of some of an array's leading axes: computed or written down."""
    ndim = d.r.randint(1, value.ndim)
    if d.r.random() < 0.3:
        made = np.array([d.r.random() < 0.6 for _ in range(value[(..., *[0] * (value.ndim - ndim))].size)])
        made = made.reshape(value.shape[:ndim]).tolist()
        return ndim, d.r.choice((f"xp.np.array({made}, bool)", f"xp.array({made}).astype('bool')"))
    firsts = f"[..., {', '.join('0' * (value.ndim - ndim))}]" if ndim < value.ndim else ""
    return ndim, f"{name}{firsts} > {d.r.choice(('0.21', '-0.21'))}"


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
    shape = d.selected(name, key)
    if shape is None or d.r.random() < 0.4:
        return f"{d.new()} = {name}[{key}]"
    return f"{name}[{key}] {d.r.choice(('=', '+=', '*='))} {d.term(shape)}"


@form(2)
def by_mask_and_parts(d):
    """A mask of some axes, other parts before and behind it."""
    name = d.name(lambda v: v.ndim > 1 and v.size)
    if name is None:
        return None
    value = d.values[name].v
    ndim, mask = masks(d, value, name)
    parts = [mask] + [d.part(size) for size in value.shape[ndim:]]
    if d.r.random() < 0.3:
        parts = [d.part(value.shape[0]), f"{name}[0, {', '.join(':' * (value.ndim - 1))}] > 0.21"]
    key = ", ".join(parts)
    shape = d.selected(name, key)
    if shape is None:
        return None
    return d.r.choice((f"{d.new()} = {name}[{key}]", f"{name}[{key}] = {d.term(shape)}", f"{name}[{key}] *= {d.number()}"))


@form(1)
def by_truth(d):
    name = d.name(lambda v: v.ndim)
    key = d.r.choice(("True", "False", "True, ..., 0", "xp.np.True_", "..., True"))
    return name and d.r.choice((f"{d.new()} = {name}[{key}]", f"{name}[{key}] = {d.number()}"))


@form(4)
def at(d):
    """Elements that take part as often as they are named."""
    name = d.name(lambda v: v.ndim and v.size)
    if name is None:
        return None
    value = d.values[name].v
    parts = [d.part(size) for size in value.shape]
    axis = d.r.randrange(value.ndim)
    parts[axis] = numbers(d, value.shape[axis])
    key = d.r.choice((", ".join(parts), numbers(d, value.shape[0]), d.key(value), masks(d, value, name)[1]))
    shape = d.selected(name, key)
    if shape is None:
        return None
    how = d.r.choice(("set", "add", "add", "subtract", "multiply", "min", "max"))
    return f"{d.new()} = {name}.at[{key}]." + (f"{how}({d.term(shape)})" if d.r.random() < 0.9 else "get()")


@form(2)
def of_type(d):
    name = d.name() if "n" in d.inputs else None
    return name and f"{d.new()} = {name}.astype('{d.r.choice((*INTEGERS, 'bool', 'float32', 'float64'))}')"


@form(3)
def mix(d):
    """Two types in one."""
    name = d.name(lambda v: v.dtype != np.float64)
    if name is None:
        return None
    shape, dtype = d.values[name].v.shape, d.values[name].v.dtype
    other = d.name(lambda v: v.shape == shape and v.dtype != dtype) or d.number()
    one, two = (name, other) if d.r.random() < 0.5 else (other, name)
    return f"{d.new()} = " + d.r.choice((f"{one} {d.r.choice('+-*/')} {two}", f"xp.where({name} > 1, {one}, {two})",
                                         f"xp.maximum({name}, {other})",
                                         f"xp.stack([{name}, +{other}], axis=0)", f"xp.minimum({name}, {other})"))  # fmt: skip


@form(2)
def whole(d):
    name = d.name(lambda v: v.dtype.kind in "iu")
    if name is None:
        return None
    return d.r.choice((f"{d.new()} = {name} {d.r.choice(('//', '%'))} {d.r.choice(('2', '-3', '3', '0', 'xp.np.int16(5)'))}",
                       f"{name}[...] = {name} {d.r.choice('+-*')} {d.r.choice(('1', '100', 'True'))}"))  # fmt: skip


@form(1)
def place(d):
    name = d.name(lambda v: v.ndim and v.size) if "n" in d.inputs else None
    return name and f"{d.new()} = xp.argmax({name}, axis={d.r.randrange(d.values[name].v.ndim)})"


@form(2)
def moved(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    shape = d.values[name].v.shape
    axis = d.r.randrange(-len(shape), len(shape))
    return f"{d.new()} = " + d.r.choice((f"xp.flip({name}, axis={axis})", f"xp.roll({name}, {d.r.randint(-4, 4)}, axis={axis})",
                                         f"xp.repeat({name}, 2, axis={axis})", f"xp.broadcast_to({name}, {(2, *shape)})",
                                         f"xp.tile({name}, (2, 1))", f"xp.moveaxis({name}, 0, {axis})",
                                         f"xp.expand_dims({name}, axis={axis})", f"xp.cumulative_sum({name}, axis={axis})"))  # fmt: skip


@form(2)
def parts(d):
    """An array of elements of another and numbers."""
    name = d.name(lambda v: v.ndim and v.size and v.dtype.kind == "f")
    if name is None:
        return None
    shape = d.values[name].v.shape
    one, two = (f"{name}[{', '.join(str(d.r.randrange(size)) for size in shape)}]" for _ in range(2))
    return f"{d.new()} = xp.parts([{one}, {two} * {two}, {one} - {two}])"


@form(2)
def running(d):
    """A value that goes through a loop, and may be one of two in each step."""
    name, to = d.name(lambda v: v.ndim and v.dtype.kind == "f"), d.new()
    if name is None or name == to:
        return None
    step = d.r.choice((f"{to} * 0.5 + row", f"xp.where({to} > row, {to}, row * {d.number()})", f"row - {to} if i % 2 else row + {to}"))
    return f"{to} = {name}[0] * 0.3\nfor i, row in enumerate({name}):\n    {to} = {step}"


@form(2)
def nested(d):
    """Loops in loops, over elements."""
    name = d.name(lambda v: v.ndim == 2 and v.size)
    if name is None:
        return None
    rows, columns = d.values[name].v.shape
    line = d.r.choice((f"{name}[i, j] = {name}[i, j] * 0.5 + {name}[i - 1, j - 1]", f"{name}[i, j] += {name}[j % {rows}, i % {columns}]",
                       f"{name}[i][j] = 0.0", f"{name}[[i, -1], j] *= 0.5"))  # fmt: skip
    return f"for i in range({rows}):\n    for j in range({columns}):\n        {line}"


@form(2)
def by_mask(d):
    name = d.name(lambda v: v.ndim)
    if name is None:
        return None
    mask = d.r.choice((f"{name} > 0.21", f"{name} < 0.37", f"{name}[..., 0] > 0.11" if d.values[name].v.ndim == 2 else f"{name} > 0.0"))
    return d.r.choice((f"{d.new()} = {name}[{mask}]", f"{name}[{mask}] = {d.number()}", f"{name}[{mask}] *= {d.number()}",
                       f"{name}[{mask}] = {name}[{mask}] * {name}[{mask}]"))  # fmt: skip
