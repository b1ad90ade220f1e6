"""Random programs that verify and have one answer: structured control, typed registers, no races.

`program(rng, live)` gives text; `arguments(rng)` fitting launch arguments. Every numeric type has three registers of its own, so
types are right by construction; each lane stores only to its own elements. Out-of-range loads and bad class numbers do
occur: their faults are part of the answer. With `live`, whatever a load or a class question gives goes into an atomic at once,
so that the canonical program has them all.
"""

import random

import numpy as np

import model
from harness import UINT, literal
from tables import FLOAT, INT, OPS, bits_of
from values import random_bits, specials

NUMERIC = INT + FLOAT
LANES = 48
REGISTERS = {t: [f"r{3 * i + k}" for k in range(3)] for i, t in enumerate(NUMERIC)}
PURE = [(op, t) for op in sorted(model.PURE) for t in OPS[op].types
        if OPS[op].operands in ("ds", "dss", "dsss", "dsc", "pss") and t in NUMERIC]
SCALARS = {"su": "u32", "sf": "f32", "sl": "i64"}


class Writer:
    def __init__(self, rng: random.Random, live: bool):
        self.rng, self.live, self.lines, self.labels, self.counters = rng, live, [], 0, 0
        self.subroutines = 0

    def emit(self, text: str) -> None:
        self.lines.append("    " + text)

    def asked(self, text: str, t: str, register: str) -> None:
        """A load or a class question, with its result."""
        self.emit(text)
        if not self.live:
            return
        if register[0] == "p":
            self.emit(f"sel.u32 r203, {register}, #1, #0")
        elif t in INT:
            self.emit(f"cvt.u32.{t} r203, {register}" if t != "u32" else f"mov.u32 r203, {register}")
        else:
            unsigned = f"u{bits_of(t)}"
            self.emit(f"bitcast.{unsigned}.{t} r204, {register}")
            self.emit(f"cvt.u32.{unsigned} r203, r204" if unsigned != "u32" else "mov.u32 r203, r204")
        self.emit("atom.xor.u32 _, [live + lane], r203")

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def predicate(self) -> str:
        return f"p{self.rng.randrange(6)}"

    def register(self, t: str) -> str:
        return self.rng.choice(REGISTERS[t])

    def source(self, t: str) -> str:
        kind = self.rng.random()
        if kind < 0.12:
            return literal(t, self.rng.choice(specials(t)))
        if kind < 0.2 and t in SCALARS.values():
            return next(n for n, s in SCALARS.items() if s == t)
        if kind < 0.25 and t == "u32":
            return "blane"
        return self.register(t)

    # ---- statements

    def pure(self) -> None:
        op, t = self.rng.choice(PURE)
        letters = OPS[op].operands
        words = [self.predicate() if letters[0] == "p" else self.register(t)]
        words += [self.source("u32" if letter == "c" else t) for letter in letters[1:]]
        self.emit(f"{op}.{t} {', '.join(words)}")

    def convert(self) -> None:
        d, s = self.rng.choice(NUMERIC), self.rng.choice(NUMERIC)
        op = "bitcast" if bits_of(d) == bits_of(s) and self.rng.random() < 0.5 else "cvt"
        self.emit(f"{op}.{d}.{s} {self.register(d)}, {self.source(s)}")

    def select(self) -> None:
        t = self.rng.choice(NUMERIC)
        self.emit(f"sel.{t} {self.register(t)}, {self.predicate()}, {self.source(t)}, {self.source(t)}")

    def logic(self) -> None:
        op = self.rng.choice(["pand", "por", "pxor", "pnot"])
        count = len(OPS[op].operands)
        self.emit(f"{op} {', '.join(self.predicate() for _ in range(count))}")

    def memory(self) -> None:
        t = self.rng.choice(NUMERIC)
        index = self.rng.choice(["lane", "blane", self.register("u32"), self.register("i16"), self.register("u8"),
                                 self.register("i64")])
        shift = self.rng.choice(["", "", f" + #{self.rng.randint(-3, 3)}"])
        where = self.rng.random()
        if where < 0.6:
            register = self.register(t)
            self.asked(f"ldg.{t} {register}, [a_{t} + {index}{shift}]", t, register)
        elif where < 0.8:
            register = self.register("f32")
            self.asked(f"ldc.f32 {register}, [c + {index}{shift}]", "f32", register)
        else:
            self.emit(f"atom.{self.rng.choice(['add', 'min', 'max', 'and', 'or', 'xor'])}.u32 "
                      f"_, [h + {self.register('u32')}], {self.source('u32')}" if self.rng.random() < 0.3 else
                      f"atom.add.u32 _, [h + {self.register('u8')}], {self.source('u32')}")

    def classes(self) -> None:
        u, p, wide, a = self.register("u32"), self.predicate(), self.register("u64"), self.source("u32")
        text, t, d = self.rng.choice([(f"mirror.u32 {u}, {a}", "u32", u), (f"unity.test.u32 {p}, {u}", "", p),
                                      (f"nbr.count.u32 {u}, {a}", "u32", u), (f"nbr.get.u32 {u}, {a}, #1", "u32", u),
                                      (f"cls.get.u32 {u}", "", ""), (f"sreg.u32 {u}, global.x", "", ""),
                                      (f"res.accum.i64 {u}, {self.source('i64')}", "", ""),
                                      (f"bound.map.u64 {wide}, {u}, #1, {a}", "u64", wide), (f"rem.u32 {u}, {u}, #96", "", "")])
        if d:
            self.asked(text, t, d)
        else:
            self.emit(text)

    def together(self) -> None:
        """Something the whole block takes part in."""
        t = self.rng.choice(NUMERIC)
        kind = self.rng.randrange(5)
        if kind == 4:
            bits = self.rng.randint(1, 5)
            first = self.rng.randint(0, LANES - 2**bits)
            self.emit(f"rank.u32 {self.register('u32')}, {self.source('u32')}, [s_u32 + #{first}], #{bits}")
        elif kind == 0:
            op = self.rng.choice([n for n in OPS if n.startswith(("reduce.", "scan."))])
            self.emit(f"{op}.{t} {self.register(t)}, {self.source(t)}")
        elif kind == 1:
            self.emit(f"{self.rng.choice(['vote.any', 'vote.all'])} {self.predicate()}, {self.predicate()}")
        elif kind == 2:
            self.emit("bar.sync")
        else:
            self.emit(f"sts.{t} [s_{t} + blane], {self.register(t)}")
            self.emit("bar.sync")
            register, index = self.register(t), self.rng.choice([self.register("u8"), self.register("u32"), "#3"])
            self.asked(f"lds.{t} {register}, [s_{t} + {index}]", t, register)
            self.emit("bar.sync")

    def branch(self, depth: int, uniform: bool) -> None:
        p, other, join = self.predicate(), self.label(), self.label()
        if uniform and self.rng.random() < 0.5:
            p = "p7"
            self.emit(self.rng.choice(["set.lt.u32 p7, r253, #1", "set.gt.u32 p7, su, #3", "vote.any p7, p0"]))
        else:
            uniform = False
        self.emit(f"@{self.rng.choice(['', '!'])}{p} bra {other}")
        self.body(depth + 1, uniform)
        if self.rng.random() < 0.5:
            self.emit(f"bra {join}")
            self.lines.append(f"{other}:")
            self.body(depth + 1, uniform)
            self.lines.append(f"{join}:")
        else:
            self.lines.append(f"{other}:")

    def repeat(self, depth: int, uniform: bool) -> None:
        again, done, counter = self.label(), self.label(), f"r{100 + self.counters}"
        self.counters += 1
        leaves = self.rng.random() < 0.5
        uniform = uniform and not leaves
        self.emit(f"movi.u32 {counter}, #{self.rng.randint(1, 4)}")
        self.lines.append(f"{again}:")
        self.body(depth + 1, uniform)
        if leaves:
            self.emit(f"@{self.predicate()} bra {done}")
            self.body(depth + 1, False)
        if self.rng.random() < 0.5:
            self.emit(f"loop {counter}, {again}")
        else:
            self.emit(f"sub.u32 {counter}, {counter}, #1")
            self.emit(f"set.ne.u32 p6, {counter}, #0")
            self.emit(f"@p6 bra {again}")
        self.lines.append(f"{done}:")

    def trap(self) -> None:
        go = self.label()
        self.emit(f"set.ne.u64 p6, lane, #{self.rng.randrange(3 * LANES)}")
        self.emit(f"@p6 bra {go}")
        self.emit(f"trap #{self.rng.randrange(100)}")
        self.lines.append(f"{go}:")

    def body(self, depth: int, uniform: bool) -> None:
        for _ in range(self.rng.randint(1, 5)):
            kind = self.rng.random()
            if kind < 0.08 and depth < 3:
                self.branch(depth, uniform)
            elif kind < 0.15 and depth < 3:
                self.repeat(depth, uniform)
            elif kind < 0.25 and uniform:
                self.together()
            elif kind < 0.28 and depth > 0 and self.subroutines:
                self.emit(f"call sub{self.rng.randrange(self.subroutines)}")
            elif kind < 0.285:
                self.trap()
            else:
                self.rng.choice([self.pure, self.pure, self.pure, self.convert, self.select, self.logic, self.memory,
                                 self.classes])()


def program(rng: random.Random, live: bool = False) -> str:
    w = Writer(rng, live)
    w.lines += [".program random"] + [f".buffer a_{t} {t} in" for t in NUMERIC]
    w.lines += [".buffer o u64 out", ".buffer h u32 inout", ".buffer live u32 inout"]
    w.lines += [f".scalar {name} {t}" for name, t in SCALARS.items()]
    w.lines += [f".shared s_{t} {t} {LANES}" for t in NUMERIC]
    w.lines.append(f".const c f32 {{ {', '.join(literal('f32', v) for v in rng.sample(specials('f32'), 7))} }}")
    for t in NUMERIC:
        for i, register in enumerate(REGISTERS[t]):
            w.emit(f"ldg.{t} {register}, [a_{t} + lane]" if i == 0 else
                   f"movi.{t} {register}, {literal(t, rng.choice(specials(t)))}")
    for i in range(6):
        w.emit(f"set.{rng.choice(['lt', 'ge', 'ne'])}.u32 p{i}, {rng.choice(REGISTERS['u32'])}, #{rng.randrange(100)}")
    w.subroutines = rng.randint(0, 2)
    count = w.subroutines
    for _ in range(rng.randint(2, 6)):
        w.body(0, True)
    if rng.random() < 0.3:  # an early exit, where no barrier follows
        stay = w.label()
        w.emit(f"@{w.predicate()} bra {stay}")
        w.emit("exit")
        w.lines.append(f"{stay}:")
        w.body(1, False)
    finish(w)
    w.subroutines = 0
    for i in range(count):
        w.lines.append(f"sub{i}:")
        w.body(2, False)
        w.emit("ret")
    return "\n".join(w.lines) + "\n"


def finish(w: Writer) -> None:
    """Folds every register of a lane into one u64 and stores it."""
    w.emit("movi.u64 r200, #0")
    for t in NUMERIC:
        for register in REGISTERS[t]:
            u = f"u{bits_of(t)}"
            if t != u:
                w.emit(f"bitcast.{u}.{t} r201, {register}")
            w.emit(f"{'cvt.u64.' + u if u != 'u64' else 'mov.u64'} r202, {'r201' if t != u else register}")
            w.emit("mad.u64 r200, r200, #6364136223846793005, r202")
            w.emit("xor.u64 r200, r200, r202")
    for i in range(6):
        w.emit(f"sel.u64 r202, p{i}, #{1 << i}, #0")
        w.emit("xor.u64 r200, r200, r202")
    w.emit("stg.u64 [o + lane], r200")
    w.emit("exit")


def arguments(rng: random.Random) -> dict:
    from tables import TYPES

    blocks, lanes = rng.randint(1, 3), rng.randint(1, LANES)
    total = blocks * lanes
    buffers = {f"a_{t}": np.array(random_bits(t, total, rng), UINT[bits_of(t)]) for t in NUMERIC}
    buffers |= {"o": np.zeros(total, np.uint64), "live": np.zeros(total, np.uint32), "h": np.array(random_bits("u32", 100, rng), np.uint32)}
    scalars = {name: (TYPES[t].code, rng.choice(specials(t))) for name, t in SCALARS.items()}
    return {"grid": (blocks,), "block": (lanes,), "buffers": buffers, "scalars": scalars}
