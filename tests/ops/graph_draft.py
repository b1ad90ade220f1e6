"""A seed as a list of steps (graph_steps.py): a random graph. Operations element by element are taken from the table, whatever
it has; others have a way of their own below, and test_random_graphs.py asks that every row of the table comes up."""

import random

import numpy as np

from graph_steps import LAYOUTS, MOST_ELEMENTS, Graph
from hgops import FLOATS, TABLE, TYPES

SIGNED, UNSIGNED = ("i8", "i16", "i32", "i64"), ("u8", "u16", "u32", "u64")
INTEGERS = SIGNED + UNSIGNED
SETS = {"number": INTEGERS + FLOATS, "float": FLOATS, "integer": INTEGERS, "bool": ("bool",), "any": tuple(TYPES)}
SIZES = (0, 1, 1, 2, 3, 5, 8, 17, 33, 64, 130)
BOUNDS = ("fault", "wrap", "clamp")

MATHEMATICS = [name for name in "isclose nan_to_num isposinf isneginf degrees radians divmod fmin fmax euclid gcd lcm round_to".split()
               if name in TABLE]
# Element by element, by the table: pointwise rows, and formulas of their section.
SIMPLE = [name for name, row in TABLE.items() if name not in ("cast", "bitcast") and row["output_count"] == 1 and
          (row["kind"] == "pointwise" or row["op"] >> 8 in (0x12, 0x17) or name in ("bce_of", "bce_logit_of"))] + MATHEMATICS
OFTEN = "add sub mul div neg abs exp where maximum less".split()
COUNTS = ("segment_sum segment_prod segment_max segment_min segment_mean bincount confusion_matrix even_edges even_bins uneven_bins "
          "segment_places places_from_end segmented_scan index_add index_copy index_fill index_reduce embedding_bag").split()
ORDERS = "top_k argsort lexsort searchsorted argtop_k sort_by_key kth_value quantile median bucketize merge".split()
METHODS = TABLE["quantile"]["defaults"]["method"].split("|") if "quantile" in TABLE else ()
YOUNGER_ROWS = "group_norm instance_norm normalize softmin glu prelu".split()
REDUCTIONS = ("sum sum prod min max any all argmin argmax mean var std norm logsumexp count_nonzero total cumulative_sum "
              "cumulative_prod cumulative_max cumulative_min cumulative_argmax cumulative_argmin cumulative_logsumexp nansum "
              "nanmean nanmin nanmax nanargmin nanargmax nanvar nanstd var_mean std_mean").split()


def types_of(name, place):
    """What an input may be."""
    parts = TABLE[name]["types"].split(";") if name not in ("nextafter", "nan_to_num") else ["float"]
    return [kind for word in parts[min(place, len(parts) - 1)].split() for kind in SETS[word]]


def inputs_of(name):
    return [i.strip() for i in TABLE[name]["inputs"].split(",") if i.strip()]


class Draft:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.most = MOST_ELEMENTS if self.r.random() < 0.99 else 300000  # several blocks, several chunks of a reduction
        self.g = Graph(most=4 * self.most)
        shape = self.shape()
        kind = self.r.choice(("f32", "f32", "f32", "f64", "f16", "bf16", "i32", "bool", "f8e4m3", "f8e5m2") + INTEGERS + FLOATS)
        for _ in range(self.r.randint(1, 3)):
            self.input(tuple(1 if self.r.random() < 0.2 else n for n in shape), kind)
        if not self.g.values:  # none of them could be made
            self.g.add("input", shape=(), kind="f32", layout="dense", seed=1)
        if self.r.random() < 0.06:
            self.training()
        if self.r.random() < 0.03:
            self.crowd()
        for _ in range(self.r.choice((2, 4, 8, 12, 16))):
            self.operation()
        self.ends()

    # ---- values ----

    def shape(self):
        while True:
            shape = tuple(self.r.choice(SIZES if self.r.random() < 0.5 else SIZES[1:]) for _ in range(self.r.randint(0, 4)))
            if self.r.random() < 0.05:
                shape = shape[:-1] + (self.r.choice((300, 1000, 4096, 4097, 5000)),)
            if self.most > MOST_ELEMENTS:
                shape = self.r.choice(((70001,), (3, 40000), (40000, 3), (600, 300), (9, 5, 1025), (257, 2, 257), (1, 100000)))
            if np.prod(shape) <= self.most:
                return shape

    def input(self, shape, kind, **between):
        layout = self.r.choice(("dense",) * 6 + LAYOUTS)
        ahead = {"ahead": self.r.choice((1, 2, 3, 7))} if self.r.random() < 0.15 else {}
        return self.g.add("input", shape=tuple(shape), kind=kind, layout=layout, seed=self.r.getrandbits(32), **between, **ahead)

    def some(self, fits=lambda v: True):
        """One of the later values, most often, as (number, value)."""
        found = [(n, v) for n, v in self.g.values.items() if fits(v)]
        recent = found[-4:] if self.r.random() < 0.8 else found
        return self.r.choice(recent) if recent else (None, None)

    def partner(self, value, kinds=None):
        """Another whose shape broadcasts with the value's, of its type or one of these, or a new input."""
        kinds = kinds or (value.kind,)
        def fits(v):
            if v.kind not in kinds:
                return False
            try:
                return np.prod(np.broadcast_shapes(v.shape, value.shape)) <= self.most
            except ValueError:
                return False
        found = None if self.r.random() < 0.15 else self.some(fits)[0]
        if found is not None:
            return found
        return self.input(tuple(1 if self.r.random() < 0.4 else n for n in value.shape), self.r.choice(kinds))

    # ---- operations ----

    def operation(self):
        self.r.choice((self.simple,) * 6 + (self.reduce,) * 3 + (self.view,) * 3 + (
            self.join, self.join_many, self.gather, self.gather, self.row, self.loss, self.product, self.product, self.cast, self.make_new,
            self.make_new, self.optimiser, self.neighbours, self.assign,
            self.matrices, self.convolution) + ((self.gradient,) if self.r.random() < 0.4 else ()) + (
            self.matrices, self.counts, self.counts))()

    def simple(self):
        n, v = self.some(lambda v: not v.kind.startswith("f8") or self.r.random() < 0.3)
        if n is None:
            return
        names = OFTEN if self.r.random() < 0.4 else SIMPLE
        fitting = [(name, place) for name in names for place in range(len(inputs_of(name))) if v.kind in types_of(name, place)]
        if name_place := self.r.choice(fitting) if fitting else None:
            name, place = name_place
            if name.startswith("dot4") and v.kind not in ("i32", "u32"):
                return
            given = []
            for i in range(len(inputs_of(name))):
                kinds = types_of(name, i)
                same = (v.kind,)
                if self.r.random() < 0.06 and v.kind in FLOATS + INTEGERS:  # promoted
                    same = [k for k in kinds if (k in FLOATS) == (v.kind in FLOATS)] or same
                given.append(n if i == place else self.partner(v, same if v.kind in kinds else kinds))
            self.g.add(name, *given, **self.arguments(name))

    def arguments(self, name):
        if name == "clip":
            return self.r.choice(({"low": -1.0}, {"high": 2.0}, {"low": -1.0, "high": 2.0}, {}))
        if name == "hardtanh":
            return {"low": -0.5, "high": self.r.choice((-0.5, 2.0))}
        if name in ("round_to", "divmod", "euclid"):
            return self.r.choice({"round_to": ({"decimals": 1}, {"decimals": -2}), "divmod": ({"result": 1}, {}),
                                  "euclid": ({"steps": 20}, {})}[name])
        return {key: self.r.choice((0.3, 1.0, 2.5)) for key in TABLE[name]["defaults"] if self.r.random() < 0.5}

    def reduce(self):
        n, v = self.some(lambda v: v.shape)
        if n is None:
            return
        name = self.r.choice([name for name in REDUCTIONS if name in TABLE and v.kind in types_of(name, 0)] or ["sum"])
        axes = [a - len(v.shape) * (self.r.random() < 0.3) for a in self.r.sample(range(len(v.shape)), self.r.randint(1, len(v.shape)))]
        if name == "total":
            return self.g.add(name, n, reduction=self.r.choice(("mean", "sum", "none")))
        if name.startswith("cumulative"):
            return self.g.add(name, n, axis=axes[0], reverse=self.r.randint(0, 1))
        more = {"ddof": 1.0} if name in ("var", "std") and self.r.random() < 0.3 else {}
        if name in ("var_mean", "std_mean"):
            more = {"result": self.r.randint(0, 1)}
        if name == "norm":
            more = {"ord": self.r.choice((1.0, 2.0, 3.0, float("inf")))}
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
            if self.r.random() < 0.03:
                ends = (first, first)  # nothing
            self.g.add("slice", n, axis=axis, start=ends[0], stop=ends[1], step=step)
        elif name == "permute":
            self.g.add(name, n, axes=self.r.sample(range(rank), rank))
        elif name == "flip":
            self.g.add(name, n, axes=self.r.sample(range(rank), self.r.randint(1, rank)))
        elif name == "reshape":
            low = next((d for d in (2, 3, 5) if size % d == 0 and size), 1)
            self.g.add(name, n, shape=self.r.choice(([size], [1, size], [low, size // low], [size // low, low], list(v.shape[::-1]), [-1])))
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

    def join_many(self):
        """Slices of a value, what is made of them, empty ones and others, some more than once; another row of as many elements that
        begins alike; an update of the last part, and slices across parts."""
        n, v = self.some(lambda v: v.shape and np.prod(v.shape) <= self.most / 4)
        if n is None:
            return
        axis, name = self.r.randrange(len(v.shape)), self.r.choice(("concatenate", "concatenate", "stack"))
        count = self.r.choice((1, 3, 4, 8, 9, 12, 20, 40 if len(v.shape) < 3 else 5))
        parts = []
        while len(parts) < count:
            part, way, size = n, self.r.random(), v.shape[axis]
            if parts and way < 0.25:
                part = self.r.choice(parts)
            elif name == "concatenate" and way < 0.75:
                low, high = sorted(self.r.randint(0, min(size, 9)) for _ in range(2))
                part = self.g.add("slice", n, axis=axis, start=low, stop=high, step=self.r.choice((1, 1, 2)))
                if way < 0.4 and v.kind in types_of("neg", 0):
                    part = self.g.add("neg", part)
            elif way < 0.9:
                shape = [self.r.choice((0, 1, 2, 5)) if d == axis and name == "concatenate" else k for d, k in enumerate(v.shape)]
                part = self.input(shape, v.kind)
            if part is None:
                return
            parts.append(part)
        whole = self.g.add(name, *parts, axis=axis)
        if whole is None:
            return
        if self.r.random() < 0.3:
            kept = self.r.randint(0, count)
            self.g.add(name, *parts[:kept], *self.r.sample(parts[kept:], count - kept), axis=axis)
        shape = self.g.values[whole].shape
        if name == "concatenate" and self.r.random() < 0.3:  # where the last part stands, most often
            size = self.g.values[self.r.choice(parts[-2:])].shape[axis]
            start = [shape[axis] - size if d == axis else 0 for d in range(len(shape))]
            source = self.input([size if d == axis else k for d, k in enumerate(shape)], v.kind)
            if min(start) >= 0:
                self.g.add("update", whole, source, start=start, stop=list(shape), step=[1] * len(shape))
        if self.r.random() < 0.4 and shape[axis] > 1:
            low, high = sorted(self.r.randint(0, shape[axis]) for _ in range(2))
            self.g.add("slice", self.r.choice((whole, list(self.g.values)[-1])), axis=axis, start=low, stop=high, step=1)
        if self.r.random() < 0.2:
            self.g.add("output", whole)

    def assign(self):
        """Boxes of a value one after another, from a new one, from others, from what it was, or from where it is being looked at."""
        n, v = self.some(lambda v: v.shape and 0 not in v.shape)
        if n is None:
            return
        if v.kind in types_of("add", 0) and self.r.random() < 0.5:
            n = self.g.add("add", n, n)
        for _ in range(self.r.choice((1, 2, 3, 6, 12, 20))):
            box = {"start": [], "stop": [], "step": []}
            for size in v.shape:
                low, high = sorted((self.r.randint(0, size), self.r.randint(0, size))) if self.r.random() < 0.7 else (0, size)
                low, high = (low, low + 1) if self.r.random() < 0.3 and low < size else (low, high)
                step = self.r.choice((1, 1, 1, 2, -1))
                for name, number in zip(box, (low, high, step) if step > 0 else (high - 1, low - 1, step) if high else (0, 0, 1)):
                    box[name].append(number)
            part = n
            for axis, ends in enumerate(zip(*box.values())):
                part = self.g.add("slice", part, axis=axis, start=ends[0], stop=ends[1], step=ends[2]) if part is not None else None
            w = self.g.values.get(part)
            if w is None:
                return
            kind = self.r.randrange(4)
            if kind == 0 and v.kind in types_of("add", 0):
                part = self.g.add("add", part, self.partner(w))
            elif kind == 1 and v.kind in types_of("abs", 0):
                part = self.g.add("abs", self.g.add("flip", part, axes=[0]))
            elif kind == 2:
                part = self.input(tuple(1 if self.r.random() < 0.3 else size for size in w.shape), v.kind)
            if part is None or self.g.values[part].shape != w.shape and kind < 2:
                return
            n = self.g.add("update", n, part, **box)
            if n is None:
                return

    def neighbours(self):
        """Each element with others of its row, which have been computed from others in turn: running sums, blurs."""
        n, v = self.some(lambda v: v.shape and v.kind in types_of("add", 0))
        if n is None:
            return
        axis = self.r.randrange(len(v.shape))
        length = v.shape[axis]
        for step in range(self.r.randint(1, 9)):
            by = self.r.choice((1, 1, 2, 1 << step % 4))
            if by >= length:
                break
            low = [by if d == axis else 0 for d in range(len(v.shape))]
            part = self.g.add("slice", n, axis=axis, start=0, stop=length - by, step=1)
            before = self.g.add("pad", part, None, low=low, high=[0] * len(low))
            if self.r.random() < 0.3:
                part = self.g.add("slice", n, axis=axis, start=by, stop=length, step=1)
                before = self.g.add("add", before, self.g.add("pad", part, None, low=[0] * len(low), high=low))
            n = self.g.add(self.r.choice(("add", "add", "maximum")), n, before)
            if self.r.random() < 0.2:
                n = self.g.add("neg", n)

    def crowd(self):
        """More inputs than a launch has tensors, or more values that are put out, read by one another."""
        n, v = self.some(lambda v: v.kind in types_of("add", 0))
        if n is None:
            return
        inputs = [self.input(v.shape, v.kind) for _ in range(self.r.choice((2, 25, 40)))]
        for other in inputs:
            n = self.g.add(self.r.choice(("add", "sub")), *self.r.choice(((n, other), (other, n))))
            if self.r.random() < 0.5:
                self.g.add("output", n)
            if self.r.random() < 0.1:
                self.put_over(other, n)

    def numbers(self, shape, length, bounds):
        """Indices: from the end where these wrap, far beyond the bounds where they clamp."""
        wild = {"wrap": (-length, length), "clamp": (-3 * length - 2, 3 * length + 2), "fault": (0, length)}[bounds]
        kind = self.r.choice(("i64", "i32", "u32", "i16", "u8", "i64", "i8", "u64"))
        if kind[0] == "u":
            wild = (0, wild[1])
        limit = np.iinfo(TYPES[kind])
        return self.input(shape, kind, low=max(limit.min, wild[0]), high=min(limit.max, wild[1]))

    def order(self, n, v, axis, length):
        """What is sorted already or not has an answer, which is the same everywhere."""
        name, result = self.r.choice([name for name in ORDERS if name in TABLE]), self.r.randint(0, 1)
        if v.kind not in types_of("argsort" if name != "merge" else name, 0):
            return None
        k = self.r.choice((1, min(3, length), length))
        both = {} if TABLE[name]["output_count"] == 1 else {"result": result}
        arguments = {"top_k": {"k": k, "axis": axis, "largest": result}, "argtop_k": {"k": k, "axis": axis},
                     "kth_value": {"k": k, "axis": axis}, "argsort": {"axis": axis, "descending": result},
                     "quantile": {"axis": axis, "method": self.r.choice(METHODS)},
                     "bucketize": {"right": result}, "searchsorted": {"side": ("left", "right")[result]}}.get(name, {"axis": axis})
        others = {"quantile": lambda: [self.input((2,), "f64")], "bucketize": lambda: [self.input((5,), v.kind)],
                  **dict.fromkeys(("searchsorted", "merge", "sort_by_key", "lexsort"), lambda: [n])}.get(name, list)()
        return None if None in others else self.g.add(name, n, *others, **arguments, **both)

    def gather(self):
        n, v = self.some(lambda v: v.shape and 0 not in v.shape)
        if n is None:
            return
        axis, bounds = self.r.randrange(len(v.shape)), self.r.choice(BOUNDS)
        length = v.shape[axis]
        found, w = self.some(lambda w: w.kind in INTEGERS and len(w.shape) < 3 and np.prod(w.shape) < 200)
        names = ("take", "take", "take_along", "scatter", "scatter_add", "one_hot", "embedding", "sort_with_places", "take_where",
                 *(f"scatter_{name}" for name in self.r.choices(("multiply", "mean", "min", "max", "reduce"), k=2)))
        name = self.r.choice([name for name in (*names, *ORDERS[:1] * 3) if name in TABLE])
        if name in ORDERS:
            return self.order(n, v, axis, length)
        if name == "take":
            if found is None or bounds != "clamp" or self.r.random() < 0.5:
                found = self.numbers(self.shape_of_index(), length, bounds)
            if bounds == "wrap":
                found = self.g.add("axis_numbers", found, number=axis, length=length)
            return self.g.add(name, n, found, axis=axis, bounds=bounds)
        if name == "sort_with_places":
            down, result = self.r.randint(0, 1), self.r.randint(0, 1)
            return v.kind in types_of(name, 0) and self.g.add(name, n, axis=axis, descending=down, result=result)
        if name == "take_where":
            found, w = self.some(lambda w: w.kind == "bool" and w.shape == v.shape)
            mask = self.input(v.shape, "bool") if found is None else found
            if self.r.random() < 0.2:
                return self.g.add("mask_ends", mask)
            return self.g.add(name, n, mask, size=self.r.choice((1, 2, 7, int(np.prod(v.shape)))))
        if name == "embedding":
            return self.g.add(name, n, self.numbers(self.shape_of_index(), v.shape[0], "fault"))
        if name == "one_hot":
            return found is not None and self.g.add(name, found, classes=self.r.randint(1, 9), type=self.r.choice(("i64", "f32", "u8")))
        count = self.r.choice((1, 1, 2, 5, 20))
        around = [count if i == axis else (1 if self.r.random() < 0.2 else s) for i, s in enumerate(v.shape)]
        if name == "take_along":
            return self.g.add(name, n, self.numbers(around, length, bounds), axis=axis, bounds=bounds)
        if v.kind not in types_of("scatter_add", 0):
            name = "scatter"
        index = self.numbers(around, length, bounds)
        matching, _ = self.some(lambda w: w.kind == v.kind and list(w.shape) == around)
        self.g.add(name, n, index, matching or self.input(around, v.kind), axis=axis, bounds=bounds)

    def counts(self):
        """What numbers of a vector name: segments, bins, slices and bags; and scans that begin anew."""
        n, v = self.some(lambda v: v.shape and 0 not in v.shape)
        name = self.r.choice([name for name in COUNTS if name in TABLE] or [""])
        if n is None or not name:
            return
        if name == "embedding_bag":
            return self.bags(n, v)
        axis, bounds, size = self.r.randrange(len(v.shape)), self.r.choice(BOUNDS), self.r.choice((1, 2, 5, 40))
        result, length = self.r.randint(0, 1), v.shape[axis]
        along = {"axis": axis, "reverse": result}
        around = [size if i == axis else s for i, s in enumerate(v.shape)]
        def numbers(shape):
            return self.numbers(shape, size, "fault")
        def slices(*parts):
            return [n, self.numbers((size,), length, bounds), *parts]
        def begins():
            return self.input(v.shape, "bool")
        def places():
            return self.g.add("segment_places", begins() if self.r.random() < 0.5 else numbers(v.shape), **along)
        def edges():
            made = self.g.add("even_edges", n, bins=size, **self.r.choice(({}, {"low": -2.0}, {"low": -1.0, "high": 2.0})))
            return made if self.r.random() < 0.7 else self.input((size + 1,), v.kind)
        weights, at = [n] if self.r.random() < 0.7 else [], {"axis": axis, "bounds": bounds}
        given, arguments = {
            **dict.fromkeys([name for name in COUNTS if name.startswith("segment_") and name != "segment_places"],
                            (lambda: [n, numbers((length,))], {"num_segments": size, "axis": axis})),
            "bincount": (lambda: [numbers(v.shape), *weights], {"length": size}),
            "confusion_matrix": (lambda: [numbers(v.shape), numbers(v.shape), *weights], {"classes": size}),
            "even_edges": (lambda: [n], {"bins": size}),
            **dict.fromkeys(("even_bins", "uneven_bins"), (lambda: [n, edges()], {})),
            "segment_places": (lambda: [n], along), "places_from_end": (lambda: [begins()], along),
            "segmented_scan": (lambda: [n, places()], along | {"by": self.r.choice(("sum", "prod", "max", "min", "logsumexp")),
                                                              "exclusive": self.r.randint(0, 1)}),
            "index_add": (lambda: slices(self.input(around, v.kind)), at | {"alpha": self.r.choice((1.0, 2.0))}),
            "index_copy": (lambda: slices(self.input(around, v.kind)), at),
            "index_fill": (lambda: slices(self.input((), v.kind)), at),
            "index_reduce": (lambda: slices(self.input(around, v.kind)),
                             at | {"reduce": self.r.choice(("prod", "mean", "amax", "amin")), "include_self": result})}[name]
        if v.kind in types_of(name, 0) or name in ("bincount", "confusion_matrix", "places_from_end"):
            made = given()
            return None if None in made else self.g.add(name, *made, **arguments)

    def bags(self, n, v):
        """Rows of a table: those that each row of an index names, or a vector's parts."""
        if len(v.shape) != 2 or v.kind not in FLOATS:
            n = self.input((self.r.choice((1, 7, 40)), self.r.choice((1, 3, 16))), self.r.choice(FLOATS))
        v = self.g.values[n]
        count, parts = self.r.choice((1, 5, 20)), None
        shape = (self.r.choice((1, 3)), count)
        if self.r.random() < 0.5:
            shape, parts = (count,), self.g.add("arange", start=0.0, stop=float(count), step=self.r.choice((1.0, 2.0)), type="i64")
        weights = self.input(shape, v.kind) if self.r.random() < 0.4 else None
        self.g.add("embedding_bag", n, self.numbers(shape, v.shape[0], "fault"), parts, weights, mode=self.r.choice(("mean", "sum", "max")))

    def shape_of_index(self):
        return tuple(self.r.choice((1, 2, 3, 7)) for _ in range(self.r.randint(0, 2)))

    def row(self):
        n, v = self.some(lambda v: v.kind in FLOATS and v.shape and v.shape[-1] > 0)
        if n is None:
            return
        name = self.r.choice(("softmax", "log_softmax", "layer_norm", "rms_norm", "batch_norm", *self.r.choices(YOUNGER_ROWS, k=2)))
        axis = self.r.randrange(len(v.shape))
        def maybe(shape):
            return self.input(shape, v.kind) if self.r.random() < 0.5 else None
        if name.endswith("softmax") or name == "softmin":
            self.g.add(name, n, axis=axis)
        elif name == "glu":
            even = [i for i, size in enumerate(v.shape) if size % 2 == 0]
            return even and self.g.add(name, n, axis=self.r.choice(even))
        elif name in ("group_norm", "instance_norm", "prelu"):
            if len(v.shape) < 2 or not v.shape[1]:
                return
            one = (v.shape[1],)
            if name == "prelu":
                return self.g.add(name, n, self.input(self.r.choice((one, (1,), ())), v.kind))
            more = {"groups": self.r.choice([i for i in (1, 2, 3, *one) if one[0] % i == 0])} if name == "group_norm" else {}
            self.g.add(name, n, maybe(one), maybe(one), **more)
        elif name == "normalize":
            self.g.add(name, n, axes=[axis], p=self.r.choice((1.0, 2.0, float("inf"))))
        elif name == "batch_norm":
            one = (v.shape[axis],)
            training, running = self.r.randint(0, 1), self.r.random() < 0.5
            mean, var = (self.input(one, v.kind), self.input(one, v.kind)) if running or not training else (None, None)
            given = n, maybe(one), maybe(one), mean, var
            for result in self.r.sample(range(3), self.r.randint(1, 3)):
                self.g.add(name, *given, axis=axis, training=training, momentum=0.1, result=result)
        else:
            count = self.r.randint(1, min(2, len(v.shape)))
            shape = v.shape[-count:]
            self.g.add(name, n, *([maybe(shape), maybe(shape)] if name == "layer_norm" else [maybe(shape)]),
                       axes=list(range(-count, 0)))

    def loss(self):
        n, v = self.some(lambda v: v.kind in FLOATS and v.shape and v.shape[-1] > 0)
        if n is None:
            return
        if self.r.random() < 0.3:
            return self.loss_of_pairs(n, v)
        name = self.r.choice(("mse", "l1", "huber", "bce", "bce_with_logits", "kl_div", "nll", "cross_entropy", "cross_entropy",
                              "cross_entropy_of_classes", "cross_entropy_of_shares", "logit_nll", "smooth_l1", "poisson_nll",
                              "multi_margin"))
        more = {"reduction": self.r.choice(("mean", "sum", "none"))}
        if name in ("mse", "l1", "huber", "kl_div", "smooth_l1", "poisson_nll"):
            return self.g.add(name, n, self.partner(v), **more)
        if name.startswith("bce"):
            extra = [self.partner(v) if self.r.random() < 0.3 else None for _ in range(2 if name == "bce_with_logits" else 1)]
            return self.g.add(name, n, self.partner(v), *extra, **more)
        axis = self.r.randrange(len(v.shape))
        around, classes = [s for i, s in enumerate(v.shape) if i != axis], v.shape[axis]
        if name == "logit_nll":
            at = [1 if i == axis else s for i, s in enumerate(v.shape)]
            return classes and self.g.add(name, n, self.input(at, "i64", low=0, high=classes), axis=axis)
        if not classes:
            return
        weight = self.input((classes,), v.kind) if self.r.random() < 0.4 else None
        if name == "multi_margin":
            more["p"] = self.r.randint(1, 2)
            return self.g.add(name, n, self.input(around, self.r.choice(("i64", "i32")), low=0, high=classes), weight, axis=axis, **more)
        if name != "nll":
            more["smoothing"] = self.r.choice((0.0, 0.1))
        shares = name == "cross_entropy_of_shares" or name == "cross_entropy" and self.r.random() < 0.3
        target = self.input(v.shape, v.kind) if shares else self.input(around, self.r.choice(("i64", "i32")), low=0, high=classes)
        if not shares and self.r.random() < 0.3:
            more["ignore_index"] = 0
        self.g.add(name, n, target, weight, axis=axis, **more)

    def loss_of_pairs(self, n, v):
        """Of vectors along the last axis, or with a target of 1 and -1."""
        name = self.r.choice(("gaussian_nll", "margin_ranking", "hinge_embedding", "cosine_similarity", "cosine_embedding",
                              "pairwise_distance", "triplet_margin", "cdist"))
        more = {"reduction": self.r.choice(("mean", "sum", "none"))}
        same = [self.input(v.shape, v.kind) for _ in range(2)]
        if name == "cosine_similarity":
            return self.g.add(name, n, self.partner(v), axis=len(v.shape) - 1)
        if name in ("pairwise_distance", "cdist"):
            if name == "pairwise_distance" or len(v.shape) > 1 and v.shape[-2] * v.shape[-1] < 300:
                self.g.add(name, n, same[0], p=self.r.choice((1.0, 2.0, float("inf"))))
                if name == "cdist":
                    between = [self.input(v.shape[:-1] + v.shape[-2:-1], v.kind) for _ in range(2)]
                    self.g.add("cdist_slope", n, same[0], *between, p=self.r.choice((0.0, 1.0, 2.0, 3.0, float("inf"))))
            return
        if name == "triplet_margin":
            return self.g.add(name, n, *same, swap=self.r.randint(0, 1), **more)
        if name == "gaussian_nll":
            return self.g.add(name, n, same[0], self.r.choice((same[1], self.input(v.shape[:-1], v.kind))), **more)
        signs = self.g.add("sign", self.input(v.shape[:-1] if name == "cosine_embedding" else v.shape, "i32"))
        self.g.add(name, n, *same[:name != "hinge_embedding"], signs, **more)

    def product(self):
        n, v = self.some(lambda v: v.kind in FLOATS + INTEGERS and v.shape)
        if n is None:
            return
        k = v.shape[-1]
        m, w = self.some(lambda w: w.kind == v.kind and w.shape and (w.shape[-1] == k or len(w.shape) >= 2 and w.shape[-2] == k))
        if m is None or self.r.random() < 0.5:
            columns = self.r.choice((1, 2, 8, 33))
            batch = tuple(self.r.choice((1, s)) for s in v.shape[:-2]) if self.r.random() < 0.3 else ()
            m = self.input(batch + self.r.choice(((k, columns), (columns, k), (k,))), v.kind)
            w = self.g.values.get(m)
            if w is None:
                return
        turned = int(len(w.shape) >= 2 and w.shape[-2] != k)
        name = self.r.choice(("matmul", "matmul", "matmul", "dot", "matvec", "linear", "gemm", "outer", "cross", "allclose"))
        if name == "outer":
            return self.g.add(name, n, self.input((3, 2), v.kind))
        if name == "allclose":
            return self.g.add(name, n, self.partner(v), atol=1.0, equal_nan=1)
        if name == "cross":
            axis = self.r.randrange(len(v.shape))
            three = n if v.shape[axis] == 3 else self.input([3 if d == axis else k for d, k in enumerate(v.shape)], v.kind)
            return three is not None and self.g.add(name, three, self.partner(self.g.values[three]), axis=axis)
        if name == "dot":
            pair = [i for i, x in self.g.values.items() if x.kind == v.kind and x.shape == (k,)]
            return pair and self.g.add(name, pair[0], self.r.choice(pair))
        if name == "matvec" and len(v.shape) >= 2:
            return self.g.add(name, n, m if w.shape == (k,) else self.input((k,), v.kind))
        if name in ("linear", "gemm") and v.kind in FLOATS and len(w.shape) == 2:
            out = w.shape[0 if turned else 1]
            if name == "linear" and turned:
                return self.g.add(name, n, m, self.input((out,), v.kind) if self.r.random() < 0.5 else None)
            if name == "gemm" and len(v.shape) >= 2:
                return self.g.add(name, n, m, self.input(self.r.choice(((v.shape[-2], out), (out,))), v.kind), transpose_b=turned,
                                  alpha=self.r.choice((1.0, 0.5)), beta=self.r.choice((0.0, 1.0, -2.0)))
        self.g.add("matmul", n, m, transpose_b=turned)

    def convolution(self):
        """An image by windows, and back: of any rank that has them."""
        n, v = self.some(lambda v: v.kind in FLOATS + INTEGERS and 3 <= len(v.shape) <= 5 and min(v.shape) > 0)
        if n is None or "convolution" not in TABLE:
            return
        groups = self.r.choice([g for g in (1, 1, 2, 3) if v.shape[1] % g == 0])
        window, channels = [self.r.choice((1, 2, 3)) for _ in v.shape[2:]], v.shape[1] // groups
        outputs, sizes = self.r.choice((1, 2, 5)), v.shape[2:]
        stride, low = ([self.r.choice(of) for _ in sizes] for of in ((1, 1, 2, 3), (0, 1, 2)))
        dilation = [self.r.choice((1, 1, 2)) for _ in sizes]
        settings = {"stride": stride, "low": low, "dilation": dilation, "groups": groups}
        name = self.r.choice(("convolution", "conv", "convolution_back", "conv_transposed", "convolution_weights"))
        bias = [self.input((groups * outputs,), v.kind)] if name in ("conv", "conv_transposed") and self.r.random() < 0.5 else []
        if name in ("convolution", "conv"):
            high = [max(k - 1, 0) * d for k, d in zip(window, dilation)]
            w = self.input((groups * outputs, channels, *window), v.kind)
            return self.g.add(name, n, w, *bias, high=high, **settings)
        if name == "convolution_weights":
            windows = [max(1, (s + p - (k - 1) * d) // t) for s, p, k, d, t in zip(sizes, low, window, dilation, stride)]
            of = self.input((v.shape[0], groups * outputs, *windows), v.kind)
            return self.g.add(name, n, of, shape=[groups * outputs, channels, *window], **settings)
        w = self.input((v.shape[1], outputs, *window), v.kind)
        sizes = [s * t + self.r.choice((0, 1)) for s, t in zip(sizes, stride)]
        self.g.add(name, n, w, *bias, shape=[v.shape[0], groups * outputs, *sizes], **settings)

    def matrices(self):
        """Small ones: some of what is made is singular, or not positive definite, and NaN everywhere in the same places."""
        n, v = self.some(lambda v: v.kind in FLOATS and len(v.shape) >= 2)
        if n is None or np.prod(v.shape[:-2]) > 8:
            return
        names = [name for name, row in TABLE.items() if row["op"] >> 8 == 0x18]
        if not names:  # beside a library that has none
            return
        name = self.r.choice(names)
        most, is_tall = self.r.choice((1, 2, 3, 5, 8)), name[:4] in ("qr_p", "qr_c", "qr_r", "qr_f", "qr_b", "svd_", "lu", "orth")
        sizes = [min(most, s) for s in v.shape[-2:]]
        if name not in ("qr", "svd", "pinv") or self.r.random() < 0.5:
            sizes = [max(sizes), min(sizes)] if is_tall and v.shape[-2] >= max(sizes) else [min(sizes)] * 2
        for axis, size in zip((-2, -1), sizes):
            n = n and self.g.add("slice", n, axis=axis, start=0, stop=size)
        if n is None:
            return
        if name == "forward_blocks":
            rows = [self.input((size, 2), v.kind) for size in (sizes[0] + 1, 1)]
            n = self.input((sizes[0] + 1, sizes[0] + 1), v.kind)
            return self.g.add(name, n, *rows)
        if name.startswith("secular"):
            a, rest = self.input((3, 1), "i64" if v.kind == "f64" else "i32"), [self.input(s, v.kind) for s in ((3, 4), (1, 4), (3, 1))]
            return self.g.add("secular_bits", self.g.add("secular_bit", a, *rest, bit=1024.0), *rest, bit=32.0)
        small = {"eigh_joined": [(3, 2), (2, 1), (1, 1)], "tridiagonal_eigh": [(2, 3)], "reflected": [(5, 3), (1, 3), (5, 2)]}.get(name)
        if small is not None:
            return self.g.add(name, *[self.input(shape, v.kind) for shape in small])
        if name.endswith("solve") or name == "lu_sign":
            right = self.input((sizes[0], self.r.choice((1, 3))), v.kind) if name != "lu_sign" else None
            if name.startswith("lu_"):
                n = self.g.add("lu", n)
            more = {"unit": self.r.randint(0, 1)} if "unit" in TABLE[name]["defaults"] else {}
            return n and self.g.add(name, n, *([] if right is None else [right]), **more)
        self.g.add(name, n, *([self.input((), v.kind)] if name == "pinv" else []))

    def cast(self):
        n, v = self.some()
        if self.r.random() < 0.25:
            width = np.dtype(TYPES[v.kind]).itemsize
            same = [k for k in FLOATS + INTEGERS if np.dtype(TYPES[k]).itemsize == width]
            return v.kind in FLOATS + INTEGERS and self.g.add("bitcast", n, type=self.r.choice(same))
        self.g.add("cast", n, type=self.r.choice(list(TYPES)))

    def make_new(self):
        shape = list(self.shape())
        name = self.r.choice(("uniform", "normal", "random_bits", "integers", "full", "arange", "eye", "triu", "tril", "dropout",
                              "window", "distribution"))
        if name in ("triu", "tril"):
            n, v = self.some(lambda v: len(v.shape) >= 2)
            return n is not None and self.g.add(name, n, k=self.r.randint(-2, 2))
        if name == "window":
            name, size = self.r.choice(("window_places", "hann", "hamming", "blackman", "bartlett", "kaiser")), self.r.randint(0, 70)
            more = {"type": self.r.choice(FLOATS)} if name != "window_places" else {}
            return self.g.add(name, size=size, periodic=self.r.randint(0, 1), **more)
        if name == "distribution":
            name = self.r.choice(("uniform_open", "exponential", "gumbel", "laplace", "truncated_normal"))
        if name in ("full", "arange", "eye"):
            kind = self.r.choice(FLOATS + ("i32", "u8"))
            more = {"full": {"shape": shape, "value": self.r.choice((1.5, -0.0, float("nan")))},
                    "arange": {"start": self.r.choice((0.0, 2.0)), "stop": 7.0, "step": self.r.choice((1.0, 0.75))},
                    "eye": {"rows": 5, "columns": 4, "k": self.r.randint(-2, 2)}}[name]
            return self.g.add(name, type=kind, **more)
        key, counter = self.input((), self.r.choice(("u64", "i64", "u32"))), self.input((), "u64") if self.r.random() < 0.3 else None
        if name == "dropout":
            n, v = self.some(lambda v: v.kind in FLOATS)
            return n is not None and self.g.add(name, n, key, counter, p=self.r.choice((0.3, 0.0)))
        more = {}
        if name in ("uniform", "normal", "uniform_open", "exponential", "gumbel", "laplace",
                    "truncated_normal") and self.r.random() < 0.5:
            more = {"type": self.r.choice(("f32", "f64"))}
        if name == "integers":
            more = {"low": self.r.choice((0, -5)), "high": self.r.choice((2, 100)), "type": self.r.choice(("i64", "i32", "u8", "i16"))}
            more["low"] = 0 if more["type"][0] == "u" else more["low"]
        self.g.add(name, key, counter, shape=shape, **more)

    # ---- training ----

    def optimiser(self):
        """A step of a float input by some gradient of its shape; what it gives may be put over the input."""
        n, v = self.some(lambda v: v.kind in FLOATS)
        if n is None:
            return
        gradient = self.some(lambda w: w.kind in (v.kind, "f32") and w.shape == v.shape)[0]
        name = self.r.choice(("sgd", "adam", "adamw", "adamax", "nadam", "lion", "rmsprop", "adagrad", "amsgrad", "clip_norm",
                              "global_norm"))
        if name in ("clip_norm", "global_norm"):
            norm = self.g.add("global_norm", n, gradient)
            return norm is not None and self.g.add("clip_norm", n, norm, max_norm=1.0)
        lr = self.input((), "f32")
        if name == "sgd":
            given, results = [n, gradient, lr, self.input(v.shape, v.kind) if self.r.random() < 0.5 else None], 2
            more = {"momentum": self.r.choice((0.0, 0.9)), "nesterov": self.r.randint(0, 1), "decay": self.r.choice((0.0, 0.1))}
        else:
            count = {"amsgrad": 3, "lion": 1, "rmsprop": 1, "adagrad": 1}.get(name, 2)
            state = [self.input(v.shape, self.r.choice((v.kind, "f32"))) for _ in range(count)]
            state += [self.input((), "f32")] if name == "nadam" else []
            step = [] if name in ("lion", "rmsprop") else [self.input((), "f32", low=1, high=9)]
            given, results, more = [n, gradient] + state + [lr] + step, 4 if name == "rmsprop" else 1 + len(state), {}
        made = [self.g.add(name, *given, **more, result=i) for i in range(results)]
        for i, old in zip(made, [n] + (given[3:4] if name == "sgd" else state)):
            self.put_over(old, i)

    def put_over(self, old, new):
        """An update, if there may be one."""
        done = {s.inputs[0] for s in self.g.steps if s.name == "replace"}
        step = next((s for s in self.g.steps if s.number == old and s.name == "input"), None)
        if step and new is not None and old not in done and step.arguments["layout"] != "repeated" and \
                (self.g.values[old].shape, self.g.values[old].kind) == (self.g.values[new].shape, self.g.values[new].kind):
            self.g.add("replace", old, new)

    def training(self):
        """Some layers, a loss, gradients of their weights, and what is made of them: products that end in updates."""
        kind, rows = self.r.choice(("f32", "f32", "f16", "bf16", "f64")), self.r.choice((1, 3, 32, 65))
        width = self.r.choice((1, 5, 16, 70))
        x, weights = self.input((rows, width), kind), []
        for _ in range(self.r.randint(1, 2)):
            out = self.r.choice((1, 4, 17, 64))
            weights.append(self.input((out, width), kind))
            bias = self.input((out,), kind) if self.r.random() < 0.7 else None
            x, width = self.g.add("linear", x, weights[-1], bias), out
            weights += [bias] if bias is not None else []
            x = self.g.add(self.r.choice(("relu", "gelu", "tanh", "layer_norm", "neg")), x)
        loss = self.g.add("cross_entropy", x, self.input((rows,), "i64", low=0, high=width)) if self.r.random() < 0.5 else \
            self.g.add("mse", x, self.input((rows, width), kind))
        for weight in weights:
            gradient = self.g.add("gradient", loss, weight)
            if gradient is None:
                continue
            new = self.g.add("sub", weight, gradient) if self.r.random() < 0.3 else None
            if new is None:
                lr = self.input((), "f32")
                new = self.g.add("sgd", weight, gradient, lr, None, result=0)
            self.put_over(weight, new)

    def gradient(self):
        """Of some value by one of those that it is made of; what it gives is a value like others: gradients of gradients."""
        n, v = self.some(lambda v: v.kind in FLOATS)
        wrt = [m for m, w in self.g.values.items() if w.kind in FLOATS]
        if n is not None and wrt:
            self.g.add("gradient", n, self.r.choice(wrt))

    def ends(self):
        numbers = list(self.g.values)
        if self.r.random() < 0.35:
            self.gradient()
        put = list(dict.fromkeys([list(self.g.values)[-1], numbers[-1]] + [n for n in numbers if self.r.random() < 0.15]))
        for n in put:
            layout = {"layout": self.r.choice(("turned", "backwards", "apart", "mixed")), "seed": n} if self.r.random() < 0.2 else {}
            self.g.add("output", n, **layout)
        inputs = [s.number for s in self.g.steps if s.name == "input"]
        if self.r.random() < 0.25:
            old = self.r.choice(inputs)
            own = self.g.values[old]
            self.put_over(old, self.some(lambda v: v.kind == own.kind and v.shape == own.shape)[0])
        if self.r.random() < 0.2:  # an output over an input: exact, or refused
            self.g.add("over", self.r.choice(put), self.r.choice(inputs), shift=self.r.choice((0, 0, 1)))


def draft(seed) -> Graph:
    return Draft(seed).g
