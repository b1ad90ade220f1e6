"""Loops over memory whose indices come from the lane's number: rows, columns, runs, with lanes that fault or leave at any place. Engines
may take such a loop for groups of lanes at once as long as nobody can tell."""

import os
import random

import numpy as np
import pytest

from harness import array_of
from tables import TYPES, bits_of

pytestmark = pytest.mark.engine

PROGRAMS = int(os.environ.get("HOLOGRAM_LOOP_PROGRAMS", "40"))  # a seed each
INDEX_TYPES = ["u32", "i32", "u64", "i64"]
ELEMENT_TYPES = ["f32", "f32", "f64", "u32", "i64", "u8", "i16", "f16"]


class Loop:
    """A random loop. r0 the lane, r1 and r2 what makes it a row and a column, r3 rounds left, r4 a counter up, r5, r6 indices, r8
    the sum, r9 what is loaded; n is the length of a row, rounds how many there are, lanes the launch's."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.index = self.random.choice(INDEX_TYPES)
        self.element = self.random.choice(ELEMENT_TYPES)
        self.row = self.random.choice([1, 3, 16, 32, 64, 100, 128, 256])
        self.rounds = self.random.choice([1, 2, 7, 20])
        self.lanes = self.random.choice([5, 64, 200, 512, 1000])
        self.block = self.random.choice([(), (), (16, 4), (20, 3)])
        if self.block:
            self.lanes = self.block[0] * self.block[1] * self.random.choice([1, 3])
        self.stores = self.random.random() < 0.4
        self.lines = []

    def put(self, *lines: str) -> None:
        self.lines += [f"    {line}" for line in lines]

    def text(self) -> str:
        t = self.index
        self.put("mov.u64 r0, lane" if t == "u64" else f"cvt.{t}.u64 r0, lane")
        self.place()
        self.put("mov.u32 r3, rounds", f"movi.{t} r4, #0", f"mov.{t} r5, r1", f"mov.{t} r6, r2", f"movi.{self.element} r8, #0")
        self.lines.append("next:")
        if self.random.random() < 0.3:  # lanes leave one by one
            self.put(f"set.{self.random.choice(['gt', 'lt', 'ge'])}.{t} p0, r4, r{self.random.choice([1, 2])}", "@p0 bra done")
        if self.random.random() < 0.4:  # some stand by
            self.put(f"set.lt.{t} p1, r{self.random.choice([2, 4, 6])}, #{self.random.choice([1, 3, 40])}",
                     self.random.choice(["@p1 bra over", "@!p1 bra over"]))
        for _ in range(self.random.choice([1, 2, 3, 8])):
            self.load()
        if self.stores:
            self.store()
        self.lines.append("over:")
        self.put(f"add.{t} r4, r4, #1", f"add.{t} r5, r5, {self.step()}", f"add.{t} r6, r6, {self.step()}", "loop r3, next")
        self.lines += ["done:"]
        self.put(f"stg.{self.element} [y + lane], r8", "exit")
        head = [f".buffer a {self.element} in", f".buffer b {self.element} in", f".buffer y {self.element} inout",
                f".buffer z {self.element} inout", f".scalar n {t}", f".scalar lanes {t}", ".scalar rounds u32"]
        return "\n".join(head + self.lines + [""])

    def place(self) -> None:
        """Of the lane in a matrix: r1 the start of its row or the row's number, r2 its column."""
        t, n = self.index, self.random.choice(["n", f"#{self.row}"])
        form = self.random.randrange(5 if t.startswith("u") else 4)
        if form == 4:
            self.put(f"sreg.{t} r1, global.y", f"sreg.{t} r2, lane.x")
        elif form == 0:
            self.put(f"rem.{t} r2, r0, {n}", f"sub.{t} r1, r0, r2")
        elif form == 1:
            self.put(f"div.{t} r1, r0, {n}", f"rem.{t} r2, r0, {n}", f"mul.{t} r1, r1, {n}")
        elif form == 2:
            self.put(f"shr.{t} r1, r0, #6", f"and.{t} r2, r0, #63")
        else:
            self.put(f"div.{t} r1, r0, {n}", f"mov.{t} r2, r0")

    def step(self) -> str:
        return self.random.choice(["#1", "n", "lanes", "#0", "#-1" if self.index.startswith("i") else "#2"])

    def address(self) -> str:
        """Lines that leave an index in a register, and the address."""
        t, form, r = self.index, self.random.randrange(6), f"r{self.random.choice([7, 11, 12])}"
        if form == 0:
            self.put(f"mad.{t} {r}, r4, n, r2")
        elif form == 1:
            self.put(f"add.{t} {r}, r1, r4")
        elif form == 2:
            self.put(f"mad.{t} {r}, r1, n, r4", f"sub.{t} {r}, {r}, r1")
        elif form == 3:
            self.put(f"shl.{t} {r}, r4, #3", f"add.{t} {r}, {r}, r2")
        index = {4: "r5", 5: "r6"}.get(form, r)
        return f"{index} + #{self.random.choice([0, 0, 0, 1, 5, -1, -70])}"

    def load(self) -> None:
        e, address = self.element, self.address()
        self.put(f"ldg.{e} r9, [{self.random.choice('ab')} + {address}]")
        if e in ("f32", "f64", "f16"):
            self.put(self.random.choice([f"fma.{e} r8, r9, r8, r9", f"add.{e} r8, r8, r9", f"mul.{e} r8, r9, #0.5"]))
        else:
            self.put(self.random.choice([f"xor.{e} r8, r8, r9", f"add.{e} r8, r8, r9"]))

    def store(self) -> None:
        """To places that no other lane stores to."""
        self.put(f"mad.{self.index} r10, r4, lanes, r0", f"stg.{self.element} [z + r10], r8")

    def buffers(self) -> dict:
        whole = self.lanes * max(self.row, self.rounds) + 200
        data = np.random.default_rng(self.random.randrange(1 << 30))
        found = {}
        for name in "abyz":
            count = whole if name in "yz" else self.random.choice([whole, whole, whole // 2, self.lanes, self.row])
            if name == "z" and self.random.random() < 0.3:
                count = self.lanes * self.rounds // 2 + 3
            found[name] = array_of(self.element, [0]).repeat(count)
            bits = data.integers(0, 1 << (bits_of(self.element) - 1), count, dtype=np.uint64)
            found[name][:] = bits.astype(found[name].dtype)
        return found


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_loop(executor, seed):
    loop = Loop(seed)
    text = loop.text()
    scalars = {"n": (TYPES[loop.index].code, loop.row), "lanes": (TYPES[loop.index].code, loop.lanes),
               "rounds": (TYPES["u32"].code, loop.rounds)}
    shape = {"lanes": loop.lanes}
    if loop.block:
        shape = {"grid": (loop.lanes // (loop.block[0] * loop.block[1]),), "block": loop.block}
    for step_limit in (0, max(loop.rounds // 2, 1)):
        executor.run_judged(text, **shape, buffers=loop.buffers(), scalars=scalars, step_limit=step_limit)
