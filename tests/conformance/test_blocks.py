"""Blocks that fold what they share between barriers, in every shape: limits that are constants, parameters or counters, lanes that
trap on the way, shared memory that is too small, steps that run out, coordinates in two and three dimensions. All engines must leave the
same."""

import os
import random

import numpy as np
import pytest

from harness import array_of
from tables import TYPES, bits_of

pytestmark = pytest.mark.engine

PROGRAMS = int(os.environ.get("HOLOGRAM_BLOCK_PROGRAMS", "60"))  # a seed each
ELEMENT_TYPES = ["f32", "f32", "f32", "f64", "u32", "i64", "u8", "i16", "f16"]
SHAPES = [(1,), (16,), (37,), (64,), (200,), (256,), (256,), (1024,), (16, 16), (32, 4), (8, 8), (5, 3), (16, 2, 4), (3, 3, 3)]


class Fold:
    """A random program. r0 the lane's value, r1 how far folding goes, r5 and up whatever."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.element = self.random.choice(ELEMENT_TYPES)
        self.shape = self.random.choice(SHAPES)
        self.size = int(np.prod(self.shape))
        self.blocks = self.random.choice([1, 2, 5])
        self.is_linear = len(self.shape) == 1 and self.random.random() < 0.5
        self.names_block = self.is_linear or self.random.random() < 0.5
        self.start = self.random.choice([self.size // 2, self.size // 2, 128, 8, 5, 1])
        self.room = self.random.choice([2 * max(self.size, self.start)] * 4 + [self.size, max(self.size // 2, 1)])
        self.lines = []

    def put(self, *lines: str) -> None:
        self.lines += [f"    {line}" for line in lines]

    def combine(self, to: str, a: str, b: str) -> None:
        forms = ["add", "max", "min"] + (["mul"] if self.element[0] != "f" else [])
        self.put(f"{self.random.choice(forms)}.{self.element} {to}, {a}, {b}")

    def text(self) -> str:
        t = self.element
        self.put(f"ldg.{t} r0, [x + lane]")
        if self.random.random() < 0.3:
            self.trap(0)
        self.put(f"sts.{t} [part + blane], r0", "bar.sync")
        for number in range(self.random.choice([1, 1, 2])):
            self.random.choice([self.fold, self.fold, self.first_lane, self.neighbours, self.all_together])(number)
        if self.random.random() < 0.2:
            self.trap(1)
        self.result()
        dimensions = ", ".join(str(d) for d in self.shape)
        head = [".program fold"] + ([f".block {dimensions}"] if self.names_block else [])
        head += [f".buffer x {t} in", f".buffer y {t} inout", ".scalar start u32", ".scalar n u32", f".shared part {t} {self.room}",
                 f".shared other {t} {2 * self.size}"]
        return "\n".join(head + self.lines + [""])

    def trap(self, number: int) -> None:
        divisor = self.random.choice([7, 16, 64])
        self.put(f"rem.u64 r20, lane, #{divisor}", f"set.ne.u64 p3, r20, #{self.random.randrange(divisor)}", f"@p3 bra go{number}",
                 f"trap #{number + 1}")
        self.lines.append(f"go{number}:")

    def fold(self, number: int) -> None:
        """Lanes below a limit that becomes less take what is there and what lies that far on."""
        t = self.element
        self.put(self.random.choice([f"movi.u32 r1, #{self.start}", "mov.u32 r1, start"]))
        self.lines.append(f"fold{number}:")
        self.put(self.random.choice(["set.ge.u32 p0, blane, r1", "set.le.u32 p0, r1, blane"]), f"@p0 bra idle{number}")
        self.put("add.u32 r2, blane, r1", f"lds.{t} r5, [part + r2]", f"lds.{t} r6, [part + blane]")
        self.combine("r7", "r5", "r6")
        self.put(f"sts.{t} [part + blane], r7")
        if self.random.random() < 0.3:
            self.put(f"add.u32 r8, r2, #0", f"sts.{t} [other + blane + #{self.size}], r5")
        self.lines.append(f"idle{number}:")
        self.put("bar.sync", self.random.choice(["shr.u32 r1, r1, #1"] * 3 + ["shr.u32 r1, r1, #2"]), "set.ne.u32 p0, r1, #0",
                 f"@p0 bra fold{number}")

    def first_lane(self, number: int) -> None:
        """Lane 0, or the first n, go on alone."""
        t = self.element
        self.put(self.random.choice(["set.ne.u32 p1, blane, #0", "set.ge.u32 p1, blane, n", "set.ge.u32 p1, blane, #3"]),
                 f"@p1 bra behind{number}", f"lds.{t} r9, [part + blane]")
        self.combine("r9", "r9", "r0")
        self.put(f"sts.{t} [other + blane], r9")
        self.lines.append(f"behind{number}:")
        self.put("bar.sync", f"lds.{t} r0, [other + #0]")

    def neighbours(self, number: int) -> None:
        """Rounds of all lanes, as many as the parameter says."""
        t = self.element
        self.put("mov.u32 r10, n", "movi.u32 r11, #0")
        self.lines.append(f"round{number}:")
        self.put("add.u32 r12, blane, r11", f"rem.u32 r12, r12, #{self.size}", f"lds.{t} r13, [part + r12]")
        self.combine("r0", "r0", "r13")
        self.put("bar.sync", f"sts.{t} [part + blane], r0", "bar.sync", "add.u32 r11, r11, #3", f"loop r10, round{number}")

    def all_together(self, number: int) -> None:
        t = self.element
        self.put(f"{self.random.choice(['reduce.add', 'reduce.max', 'scan.incl'])}.{t} r14, r0")
        self.combine("r0", "r14", "r0")

    def result(self) -> None:
        t, form = self.element, self.random.randrange(3)
        if form == 0:
            self.put("sreg.u32 r15, lane.x", "sreg.u32 r16, lane.y", "sreg.u32 r17, block_size.x", "mad.u32 r15, r16, r17, r15",
                     f"rem.u32 r15, r15, #{self.size}", f"lds.{t} r18, [part + r15]", "sreg.u64 r19, global.x")
            self.combine("r0", "r0", "r18")
        elif form == 1:
            self.put(f"lds.{t} r18, [part + #0]")
            self.combine("r0", "r0", "r18")
        self.put(f"stg.{t} [y + lane], r0", "exit")

    def launch(self) -> dict:
        if self.is_linear:
            return {"lanes": self.size * self.blocks - self.random.choice([0, 1, self.size // 3])}
        return {"grid": (self.blocks,), "block": self.shape}

    def buffers(self, lanes: int) -> dict:
        data = np.random.default_rng(self.random.randrange(1 << 30))
        found = {}
        for name in "xy":
            count = lanes if self.random.random() < 0.8 else max(lanes - 9, 1)
            bits = data.integers(0, 1 << (bits_of(self.element) - 1), count, dtype=np.uint64)
            found[name] = array_of(self.element, [0]).repeat(count)
            found[name][:] = bits.astype(found[name].dtype)
        return found


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_random_fold(executor, seed):
    fold = Fold(seed)
    text, launch = fold.text(), fold.launch()
    u32 = TYPES["u32"].code
    scalars = {"start": (u32, fold.start), "n": (u32, fold.random.choice([1, 2, 7, 40]))}
    buffers = fold.buffers(fold.size * fold.blocks)
    for step_limit in (0, 2, 5):
        executor.run_judged(text, **launch, buffers=buffers, scalars=scalars, step_limit=step_limit)
