"""Arrays as random programs mean them, by NumPy and by PyTorch: a slice is a copy, and an assignment gives the array a new value that
every name of it has. PyTorch's have gradients of any order: an assignment is a selection of old and new elements. Integers and bools
have none, and are NumPy's in both."""

import functools
from types import SimpleNamespace

import numpy as np

SELECTIONS = ("flip", "roll", "repeat", "broadcast_to", "tile", "moveaxis", "expand_dims")


def type_of(first, second):
    """The type of what two arrays, or an array and a number, give: the higher kind's; a number takes the array's where it can."""
    kinds = {"b": 0, "i": 1, "u": 1, "f": 2}
    types = [value.dtype for value in (first, second) if isinstance(value, (Array, np.ndarray))]
    if len(types) == 1:
        number, dtype = second if isinstance(first, (Array, np.ndarray)) else first, types[0]
        rank = 0 if isinstance(number, (bool, np.bool_)) else 1 if isinstance(number, (int, np.integer)) else 2
        if rank <= kinds[dtype.kind]:
            return dtype
        return np.dtype("float32" if rank == 2 else "int64")
    one, two = types
    if kinds[one.kind] != kinds[two.kind]:
        return one if kinds[one.kind] > kinds[two.kind] else two
    if {one.kind, two.kind} == {"i", "u"} and np.dtype("uint64") in types:
        raise TypeError("u64 beside a signed type")
    return np.promote_types(one, two)


class Unsettled(Exception):
    """What the models do not say."""


class Array:
    """Of NumPy's."""

    __array_ufunc__ = None

    def __init__(self, v):
        self.v = v

    # ---- what differs between the two ----

    @classmethod
    def cast(cls, v, dtype):
        """NumPy's or PyTorch's elements as those of a type."""
        return np.asarray(v).astype(dtype)

    @property
    def dtype(self):
        return self.v.dtype

    choice = staticmethod(np.where)

    def taken(self, places):
        return self.v.reshape(-1)[places]

    def replaced(self, value, places):
        v = self.v.copy().reshape(-1)
        v[places] = value
        return v.reshape(self.shape)

    def folded(self, how, axis, keepdims):
        return getattr(np, how)(self.v, axis=axis, keepdims=keepdims)

    lib = SimpleNamespace(sin=np.sin, tanh=np.tanh, exp=np.exp, square=np.square, abs=np.abs, maximum=np.maximum, minimum=np.minimum,
                          concat=np.concatenate, stack=np.stack, cumsum=np.cumsum)  # fmt: skip

    # ---- what does not ----

    @property
    def shape(self):
        return tuple(self.v.shape)

    def selection(self, function):
        """A new array of elements of this one, as a function selects them from their numbers in C order."""
        return type(self)(self.taken(function(np.arange(int(np.prod(self.shape))).reshape(self.shape))))

    def places(self, key):
        return np.arange(int(np.prod(self.shape))).reshape(self.shape)[plain(key)]

    def __getitem__(self, key):
        return self.selection(lambda numbers: numbers[plain(key)])

    def __setitem__(self, key, value):
        value = self.fit(value)
        self.must_fit(key, value.shape)
        self.v = self.replaced(value, self.places(key))

    def must_fit(self, key, shape):
        """NumPy's rule, by which slices take fewer shapes than places do; the ... keeps it from rules of its own for one element and
        for a mask of all axes."""
        key = plain(key)
        key = key if isinstance(key, tuple) else (key,)
        np.empty(self.shape)[key if any(part is ... for part in key) else (*key, ...)] = np.empty(shape)

    @property
    def at(self):
        return At(self)

    def __iter__(self):
        return (self[i] for i in range(self.shape[0]))

    def fit(self, value):
        """What is assigned, as this array's type."""
        if self.dtype.kind != "f" and type_of(self, value).kind == "f":
            raise TypeError("an array of integers takes no floats")
        return self.raw(value, self.dtype)

    def raw(self, value, dtype):
        if isinstance(value, Array):
            return self.cast(value.v, dtype)
        if not isinstance(value, np.ndarray) and dtype.kind in "iu":
            value = np.array(int(value), dtype)  # OverflowError, where the type cannot hold it
        return self.cast(np.asarray(value), dtype)

    def astype(self, dtype):
        dtype = np.dtype(dtype)
        if self.dtype.kind == "f" and dtype.kind != "f":
            v = self.plain().astype("float64")
            if (np.abs(v - np.round(v)) < 1e-3).any():
                raise Unsettled("a last bit may matter")
            if dtype.kind in "iu":
                v = np.clip(v, np.iinfo(dtype).min, np.iinfo(dtype).max)  # beyond a type's numbers is its last
            return type(self)(v.astype(dtype))
        return type(self)(self.cast(self.v, dtype))

    def plain(self):
        return np.asarray(self.v if isinstance(self.v, np.ndarray | np.generic) else self.v.numpy(force=True))

    def with_(self, function, other, dtype=None):
        dtype = type_of(self, other) if dtype is None else dtype
        if dtype.kind == "b":
            raise TypeError("bools are no numbers")
        return type(self)(function(self.raw(self, dtype), self.raw(other, dtype)))

    def compared(self, function, other):
        other = other.plain() if isinstance(other, Array) else other
        return type(self)(np.asarray(function(self.plain(), other)))

    def __add__(self, other):
        return self.with_(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self.with_(lambda a, b: a - b, other)

    def __mul__(self, other):
        return self.with_(lambda a, b: a * b, other)

    def __truediv__(self, other):
        dtype = type_of(self, other)
        return self.with_(lambda a, b: a / b, other, dtype if dtype.kind == "f" else np.dtype("float32"))

    def __rtruediv__(self, other):
        return type(self)(self.raw(other, type_of(self, other))) / self

    def __floordiv__(self, other):
        return self.whole(np.floor_divide, other)

    def __mod__(self, other):
        return self.whole(np.remainder, other)

    def whole(self, function, other):
        """Of integers by a number."""
        if type_of(self, other).kind not in "iu" or isinstance(other, Array):
            raise Unsettled("floats near a multiple may differ by a whole")
        if other == 0:  # the quotient is 0, and the rest all of it
            function = (lambda a, b: a) if function is np.remainder else lambda a, b: a * b
        return self.with_(function, other)

    def __matmul__(self, other):
        """Products of int8 add up in int32; other integers wrap at their own type."""
        dtype = type_of(self, other)
        return self.with_(lambda a, b: a @ b, other, np.dtype("int32") if dtype == np.int8 else dtype)

    def __lt__(self, other):
        return self.compared(np.less, other)

    def __gt__(self, other):
        return self.compared(np.greater, other)

    def __rsub__(self, other):
        return self.with_(lambda a, b: b - a, other)

    def __pos__(self):
        return type(self)(self.v)

    __radd__, __rmul__ = __add__, __mul__

    @property
    def T(self):
        return self.selection(np.transpose)

    def reshape(self, shape):
        return type(self)(self.v.reshape(shape))

    def wide(self):
        """As the type that sums and products have."""
        return self.astype({"b": "int64", "i": "int64", "u": "uint64", "f": self.dtype}[self.dtype.kind])

    def reduced(self, how, axis, keepdims):
        return type(self)(np.asarray(v) if isinstance(v := self.folded(how, axis, keepdims), np.generic) else v)

    def sum(self, axis=None, keepdims=False):
        return self.wide().reduced("sum", axis, keepdims)

    def prod(self, axis=None, keepdims=False):
        return self.wide().reduced("prod", axis, keepdims)

    def mean(self, axis=None, keepdims=False):
        if self.dtype.kind == "f":
            return self.reduced("mean", axis, keepdims)
        return self.astype("float64").reduced("mean", axis, keepdims).astype("float32")

    def max(self, axis=None, keepdims=False):
        return self.number().reduced("amax", axis, keepdims)

    def min(self, axis=None, keepdims=False):
        return self.number().reduced("amin", axis, keepdims)

    def number(self):
        if self.dtype.kind == "b":
            raise TypeError("bools are no numbers")
        return self


class At:
    """x.at: an element that is named several times takes part so often, in the order of the sources."""

    def __init__(self, x, key=None):
        self.x, self.key = x, key

    def __getitem__(self, key):
        return At(self.x, key)

    def get(self):
        return self.x[self.key]

    def set(self, value):
        made = +self.x
        made[self.key] = value
        return made

    def add(self, value):
        return self.made(value, 0, lambda rows: functools.reduce(lambda a, b: a + b, rows))

    def subtract(self, value):
        return self.made(value, 0, lambda rows: functools.reduce(lambda a, b: a - b, rows))

    def multiply(self, value):
        return self.made(value, 1, lambda rows: functools.reduce(lambda a, b: a * b, rows))

    def max(self, value):
        return self.made(value, "min", lambda rows: type(self.x)(self.x.lib.stack(tuple(row.v for row in rows), 0)).max(0))

    def min(self, value):
        return self.made(value, "max", lambda rows: type(self.x)(self.x.lib.stack(tuple(row.v for row in rows), 0)).min(0))

    def made(self, value, neutral, combine):
        """The old elements and, in arrays of their own, the first, second, ... source of each, combined."""
        x, places = +self.x.number(), np.asarray(self.x.places(self.key))
        if neutral in ("min", "max"):
            neutral = {"min": -np.inf, "max": np.inf}[neutral] if x.dtype.kind == "f" else getattr(np.iinfo(x.dtype), neutral)
        value = x.fit(value)
        x.must_fit(self.key, value.shape)
        source = type(x)(x.cast(np.zeros(places.shape), x.dtype))
        source.v = source.replaced(value, np.arange(places.size).reshape(places.shape))
        places, rows = places.reshape(-1), [x]
        rank = np.array([np.count_nonzero(places[:i] == place) for i, place in enumerate(places)], int)
        for number in range(max(rank, default=-1) + 1):
            row = type(x)(x.cast(np.full(x.shape, neutral), x.dtype))
            row.v = row.replaced(source.taken(np.flatnonzero(rank == number)), places[rank == number])
            rows.append(row)
        return combine(rows)


def plain(key):
    """A key whose arrays are NumPy's."""
    if isinstance(key, tuple):
        return tuple(plain(part) for part in key)
    return key.plain() if isinstance(key, Array) else key


def names_of(kind):
    """What a program finds in `xp`, for a class of arrays."""
    def cast(values):
        """To the type that all of them have."""
        dtype = functools.reduce(lambda a, b: type_of(np.empty(0, a), b), values[1:], values[0].dtype)
        return [values[0].raw(value, dtype) for value in values]

    def function(name):
        def call(value):
            value = value.number() if name in ("abs", "square") else value
            is_float = value.dtype.kind == "f" or name in ("abs", "square")
            return kind(getattr(kind.lib, name)(value.v if is_float else value.cast(value.v, np.dtype("float32"))))
        return call

    def where(condition, *values):
        like = next(value for value in values if isinstance(value, Array))
        one, two = cast(sorted(values, key=lambda value: value is not like))
        return kind(kind.choice(condition.plain(), *((one, two) if values[0] is like else (two, one))))

    def selected(name):
        return lambda x, *rest, **named: x.selection(lambda numbers: getattr(np, name)(numbers, *rest, **named))

    names = {name: function(name) for name in ("sin", "tanh", "exp", "square", "abs")}
    names |= {name: lambda a, b, name=name: a.with_(getattr(kind.lib, name), b) for name in ("maximum", "minimum")}
    names |= {name: lambda arrays, axis, name=name: kind(getattr(kind.lib, name)(cast(list(arrays)), axis)) for name in ("concat", "stack")}
    names |= {name: selected(name) for name in SELECTIONS}
    return SimpleNamespace(zeros=lambda shape: kind(kind.cast(np.zeros(shape), "float64")), asarray=lambda x: x, copy=lambda x: +x,
                           parts=lambda arrays: kind(kind.lib.stack(cast(list(arrays)), 0)), np=np, where=where,
                           array=lambda values: kind(np.asarray(values)),
                           argmax=lambda x, axis: kind(np.asarray(np.argmax(x.number().plain(), axis))),
                           cumulative_sum=lambda x, axis: kind(kind.lib.cumsum(x.wide().v, axis)),
                           **names)  # fmt: skip


PLAIN = names_of(Array)


def torch_arrays():
    """The class of PyTorch's arrays, and its names."""
    import torch

    torch.set_num_threads(1)

    def tensor(v):
        return v if isinstance(v, torch.Tensor) else torch.as_tensor(np.array(v))

    class Torch(Array):
        @classmethod
        def cast(cls, v, dtype):
            if np.dtype(dtype).kind == "f":
                return tensor(v).to(getattr(torch, np.dtype(dtype).name))
            return Array.cast(v.numpy(force=True) if isinstance(v, torch.Tensor) else v, dtype)

        @property
        def dtype(self):
            return np.dtype(str(self.v.dtype).removeprefix("torch."))

        def taken(self, places):
            if self.dtype.kind != "f":
                return Array.taken(self, places)
            return self.v.reshape(-1)[torch.as_tensor(np.array(places))]

        def replaced(self, value, places):
            if self.dtype.kind != "f":
                return Array.replaced(self, value, places)
            places = np.asarray(places)
            winner = np.full(int(np.prod(self.shape)), -1)
            winner[places.reshape(-1)] = np.arange(places.size)  # the last of several sources stays
            if places.size == 0:
                return self.v
            while value.ndim > places.ndim:
                value = value[0]
            source = value.expand(places.shape).reshape(-1)[torch.as_tensor(np.maximum(winner, 0))]
            return torch.where(torch.as_tensor(winner >= 0), source, self.v.reshape(-1)).reshape(self.v.shape)

        def folded(self, how, axis, keepdims):
            if self.dtype.kind != "f":
                return Array.folded(self, how, axis, keepdims)
            if how == "prod":
                if axis is not None:
                    return torch.prod(self.v, axis, keepdims)
                return torch.prod(self.v)
            axes = tuple(range(self.v.ndim)) if axis is None else axis
            return getattr(torch, how)(self.v, axes, keepdims) if self.v.ndim else self.v

        @staticmethod
        def choice(condition, one, two):
            if isinstance(one, np.ndarray):
                return np.where(condition, one, two)
            return torch.where(torch.as_tensor(condition), one, two)

    def either(own, numpys):
        """A function of tensors that takes NumPy's arrays of integers, too."""
        def call(first, *rest):
            parts = first if isinstance(first, (list, tuple)) else (first,)
            return (own if isinstance(parts[0], torch.Tensor) else numpys)(first, *rest)
        return call

    own = {"concat": torch.cat}
    Torch.lib = SimpleNamespace(**{name: either(own.get(name) or getattr(torch, name), numpys) for name, numpys in vars(Array.lib).items()})
    return Torch, names_of(Torch)
