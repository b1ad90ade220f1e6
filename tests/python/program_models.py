"""Arrays as random programs mean them, by NumPy and by PyTorch: a slice is a copy, and an assignment gives the array a new value that
every name of it has. PyTorch's have gradients of any order: an assignment is a selection of old and new elements."""

from types import SimpleNamespace

import numpy as np


class Array:
    """Of NumPy's."""

    __array_ufunc__ = None

    def __init__(self, v):
        self.v = v

    # ---- what differs between the two ----

    @staticmethod
    def constant(v):
        return np.asarray(v, float)

    def taken(self, places):
        return self.v.reshape(-1)[places]

    def replaced(self, value, places):
        v = self.v.copy().reshape(-1)
        v[places] = value
        return v.reshape(self.v.shape)

    def folded(self, how, axis, keepdims):
        return getattr(np, how)(self.v, axis=axis, keepdims=keepdims)

    lib = SimpleNamespace(sin=np.sin, tanh=np.tanh, exp=np.exp, square=np.square, abs=np.abs, maximum=np.maximum, where=np.where,
                          concat=np.concatenate, stack=np.stack)  # fmt: skip

    # ---- what does not ----

    @property
    def shape(self):
        return tuple(self.v.shape)

    def places(self, key):
        """Numbers of elements in C order, which NumPy's own indexing selects."""
        return np.arange(int(np.prod(self.shape))).reshape(self.shape)[plain(key)]

    def __getitem__(self, key):
        return type(self)(self.taken(self.places(key)))

    def __setitem__(self, key, value):
        self.v = self.replaced(self.raw(value), self.places(key))

    def __iter__(self):
        return (self[i] for i in range(self.shape[0]))

    def raw(self, value):
        return value.v if isinstance(value, Array) else self.constant(value)

    def with_(self, function, other):
        return type(self)(function(self.v, self.raw(other)))

    def __add__(self, other):
        return self.with_(lambda a, b: a + b, other)

    def __sub__(self, other):
        return self.with_(lambda a, b: a - b, other)

    def __mul__(self, other):
        return self.with_(lambda a, b: a * b, other)

    def __truediv__(self, other):
        return self.with_(lambda a, b: a / b, other)

    def __matmul__(self, other):
        return self.with_(lambda a, b: a @ b, other)

    def __lt__(self, other):
        return self.with_(lambda a, b: a < b, other)

    def __gt__(self, other):
        return self.with_(lambda a, b: a > b, other)

    def __rsub__(self, other):
        return self.with_(lambda a, b: b - a, other)

    def __pos__(self):
        return type(self)(self.v)

    __radd__, __rmul__ = __add__, __mul__

    @property
    def T(self):
        return type(self)(self.taken(np.arange(int(np.prod(self.shape))).reshape(self.shape).T))

    def reshape(self, shape):
        return type(self)(self.v.reshape(shape))

    def sum(self, axis=None, keepdims=False):
        return type(self)(self.folded("sum", axis, keepdims))

    def mean(self, axis=None, keepdims=False):
        return type(self)(self.folded("mean", axis, keepdims))

    def max(self, axis=None, keepdims=False):
        return type(self)(self.folded("amax", axis, keepdims))

    def min(self, axis=None, keepdims=False):
        return type(self)(self.folded("amin", axis, keepdims))


def plain(key):
    """A key whose arrays are NumPy's."""
    if isinstance(key, tuple):
        return tuple(plain(part) for part in key)
    return np.asarray(key.v) if isinstance(key, Array) else key


def names_of(kind):
    """What a program finds in `xp`, for a class of arrays."""
    def each(function):
        def call(*values):
            like = next(value for value in values if isinstance(value, Array))
            return kind(function(*map(like.raw, values)))
        return call

    names = {name: each(getattr(kind.lib, name)) for name in ("sin", "tanh", "exp", "square", "abs", "maximum", "where")}
    for name in ("concat", "stack"):
        names[name] = lambda arrays, axis, join=getattr(kind.lib, name): kind(join([array.v for array in arrays], axis))
    return SimpleNamespace(zeros=lambda shape: kind(kind.constant(np.zeros(shape))), asarray=lambda x: x, copy=lambda x: +x, **names)


PLAIN = names_of(Array)


def torch_arrays():
    """The class of PyTorch's arrays, and its names."""
    import torch

    torch.set_num_threads(1)

    class Torch(Array):
        @staticmethod
        def constant(v):
            return torch.as_tensor(np.asarray(v, float))

        def taken(self, places):
            return self.v.reshape(-1)[torch.as_tensor(np.array(places))]

        def replaced(self, value, places):
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
            axes = tuple(range(self.v.ndim)) if axis is None else axis
            return getattr(torch, how)(self.v, axes, keepdims) if self.v.ndim else self.v

        lib = SimpleNamespace(sin=torch.sin, tanh=torch.tanh, exp=torch.exp, square=torch.square, abs=torch.abs, maximum=torch.maximum,
                              where=torch.where, concat=torch.cat, stack=torch.stack)  # fmt: skip

    return Torch, names_of(Torch)
