"""Blocks of X x 32 lanes (and others) whose accesses grow by one along y: a GPU's warps may lie along y there, and a block whose lanes
need many registers may be spread over several multiprocessors. What is computed, and what faults, is the same."""

import numpy as np
import pytest

import model
from harness import UINT, array_of, compare
from tables import OPS, bits_of
from values import SEED, foldable, generator, random_bits, specials

pytestmark = pytest.mark.engine

SIZES = [(2, 32), (16, 32), (32, 32), (4, 128)]
BLOCKS = 3
NAMES = [name for name in OPS if name.startswith("reduce.")]
PLACE = """    sreg.u32 r0, lane.x
    sreg.u32 r1, lane.y
    sreg.u32 r2, block.x
    mul.u32 r3, r2, #{per_block}
    mad.u32 r3, r0, #{per_x}, r3
    add.u32 r3, r3, r1
"""


def begin(size: tuple[int, int], *buffers: str, each: int = 1) -> str:
    """Register 3: the element of the lane's that comes first; a column of the block has the elements of its x side by side."""
    head = "".join(f".buffer {b}\n" for b in buffers) + f".block {size[0]}, {size[1]}\n"
    return head + PLACE.format(per_block=size[0] * size[1] * each, per_x=size[1] * each)


def by_lane(values: list[int], size: tuple[int, int]) -> list[int]:
    """A block's elements, which lie x by x, in the order of lanes."""
    return [values[x * size[1] + y] for y in range(size[1]) for x in range(size[0])]


def some(op: str, t: str, count: int, *names: str) -> list[int]:
    """A block of any bits and special values, others of values that show the order."""
    rng = generator("along y", t, op, *names)
    any_bits = [v if rng.random() < 0.9 else rng.choice(specials(t)) for v in random_bits(t, count, rng)]
    return any_bits + foldable(op, t, (BLOCKS - 1) * count, rng)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("op, t", [(name, t) for name in NAMES for t in OPS[name].types])
def test_reductions(executor, op, t, size):
    per_block = size[0] * size[1]
    flat = some(op, t, per_block, str(size))
    text = begin(size, f"x {t} in", f"result {t} out") + f"""    ldg.{t} r4, [x + r3]
    {op}.{t} r5, r4
    stg.{t} [result + r3], r5
    exit
"""
    result = executor.run(text, grid=(BLOCKS,), block=size,
                          buffers={"x": array_of(t, flat), "result": array_of(t, [0] * len(flat))})
    assert result.fault is None
    blocks = [flat[i : i + per_block] for i in range(0, len(flat), per_block)]
    want = sum(([model.reduce(op, t, by_lane(b, size))] * per_block for b in blocks), [])
    compare(f"{op}.{t} in blocks of {size}", [t], [flat], [int(b) for b in result.buffers["result"]], want, t, SEED)


def held_program(size: tuple[int, int], each: int, t: str) -> str:
    """A lane holds `each` elements from one reduction to the next: their sum, the largest of what they are with it, beside a sum of those
    (two that are exchanged together); at last each with all of that."""
    registers = [10 + i for i in range(each)]
    lines = [f"    ldg.{t} r{r}, [x + r3 + #{size[1] * i}]" for i, r in enumerate(registers)]
    lines += [f"    mov.{t} r4, r10"] + [f"    add.{t} r4, r4, r{r}" for r in registers[1:]] + [f"    reduce.add.{t} r5, r4"]
    lines += [f"    sub.{t} r{r}, r{r}, r5" for r in registers]
    lines += [f"    mov.{t} r4, r10", f"    mov.{t} r6, r10"]
    lines += [f"    {op}.{t} r{to}, r{to}, r{r}" for r in registers[1:] for op, to in (("max", 4), ("add", 6))]
    lines += [f"    reduce.max.{t} r7, r4", f"    reduce.add.{t} r8, r6"]
    lines += [f"    add.{t} r{r}, r{r}, r7\n    mul.{t} r{r}, r{r}, r8" for r in registers]
    lines += [f"    stg.{t} [result + r3 + #{size[1] * i}], r{r}" for i, r in enumerate(registers)]
    return begin(size, f"x {t} in", f"result {t} out", each=each) + "\n".join(lines) + "\n    exit\n"


def run_held(executor, size: tuple[int, int], each: int, t: str, missing: int = 0):
    count = BLOCKS * size[0] * size[1] * each
    values = np.random.default_rng(each + size[0]).standard_normal(count) * 3
    x = values.astype(np.float32).view(np.uint32) if t == "f32" else values.astype(np.int32).view(np.uint32)
    return executor.run_judged(held_program(size, each, t), grid=(BLOCKS,), block=size,
                               buffers={"x": x[: count - missing], "result": np.zeros(count, UINT[bits_of(t)])})


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("each", [5, 70, 128])
@pytest.mark.parametrize("t", ["f32", "i32"])
def test_held(executor, t, each, size):
    assert run_held(executor, size, each, t).fault is None


@pytest.mark.parametrize("size", [(32, 32), (4, 128)])
@pytest.mark.parametrize("missing", [1, 40, 5000])
def test_faults(executor, missing, size):
    fault = run_held(executor, size, 128, "f32", missing).fault
    assert fault is not None and fault["kind"] == "out_of_bounds", fault
    assert fault["buffer"] == "x"


def test_uniform_branches(executor):
    """Reductions that not all blocks get to, and a loop of them."""
    text = begin((32, 32), "x f32 in", "result f32 out") + """    ldg.f32 r4, [x + r3]
    set.eq.u32 p0, r2, #1
    @p0 bra skip
    reduce.max.f32 r5, r4
    sub.f32 r4, r4, r5
skip:
    movi.u32 r6, #3
again:
    reduce.add.f32 r5, r4
    fma.f32 r4, r5, #0.25, r4
    loop r6, again
    stg.f32 [result + r3], r4
    exit
"""
    x = np.random.default_rng(9).standard_normal(BLOCKS * 1024).astype(np.float32).view(np.uint32)
    launch = {"grid": (BLOCKS,), "block": (32, 32), "buffers": {"x": x, "result": np.zeros_like(x)}}
    assert executor.run_judged(text, **launch).fault is None


class Draft:
    """A random program of that kind: a lane holds values, which it combines by itself, folds over the block, and stores. Blocks branch and
    loop by what they have folded, so that some come to reductions that others do not."""

    def __init__(self, seed: int):
        self.rng = generator("along y", "draft", str(seed))
        self.t = self.rng.choice(["f32", "f32", "f64", "i32", "u64", "f16", "bf16"])
        self.size = self.rng.choice(SIZES)
        self.each = self.rng.choice([1, 3, 17, 60, 130])
        self.held = [10 + i for i in range(self.each)]
        self.lines, self.labels = [], 0

    def put(self, line: str) -> None:
        self.lines.append("    " + line)

    def one(self) -> str:
        return f"r{self.rng.choice(self.held)}"

    def combine(self) -> None:
        op = self.rng.choice(["add", "sub", "mul", "min", "max"])
        self.put(f"{op}.{self.t} {self.one()}, {self.one()}, {self.one()}")

    def fold(self) -> None:
        """Several next to each other, as often as not of one operation, into registers from 200 on; then into what is held."""
        count, op = self.rng.randint(1, 9), self.rng.choice(NAMES)
        for i in range(count):
            self.put(f"{op if self.rng.random() < 0.6 else self.rng.choice(NAMES)}.{self.t} r{200 + i}, {self.one()}")
        for i in range(count):
            self.put(f"{self.rng.choice(['add', 'max', 'sub'])}.{self.t} {self.one()}, {self.one()}, r{200 + i}")

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"

    def branch(self, depth: int) -> None:
        end = self.label()
        self.put(f"reduce.max.{self.t} r220, {self.one()}")
        self.put(f"set.gt.{self.t} p1, r220, #1")
        self.put(f"@p1 bra {end}")
        self.steps(depth - 1)
        self.lines.append(f"{end}:")

    def loop(self, depth: int) -> None:
        again, counter = self.label(), 230 + depth
        self.put(f"movi.u32 r{counter}, #{self.rng.randint(1, 3)}")
        self.lines.append(f"{again}:")
        self.steps(depth - 1)
        self.put(f"loop r{counter}, {again}")

    def steps(self, depth: int) -> None:
        for _ in range(self.rng.randint(1, 5)):
            kind = self.rng.random()
            if kind < 0.5 or depth == 0:
                self.combine() if self.rng.random() < 0.6 else self.fold()
            elif kind < 0.75:
                self.branch(depth)
            else:
                self.loop(depth)

    def text(self) -> str:
        order = self.rng.sample(range(self.each), self.each)
        for i in order:
            self.put(f"ldg.{self.t} r{10 + i}, [x + r3 + #{self.size[1] * i}]")
        self.steps(2)
        for i in order:
            self.put(f"stg.{self.t} [result + r3 + #{self.size[1] * i}], r{10 + i}")
        head = begin(self.size, f"x {self.t} in", f"result {self.t} out", each=self.each)
        return head + "\n".join(self.lines) + "\n    exit\n"


@pytest.mark.parametrize("seed", range(100))
def test_drafts(executor, seed):
    """All agree with the reference machine, on faults, too: of one draft in four both buffers are too short, by any number of elements."""
    draft = Draft(seed)
    count = BLOCKS * draft.size[0] * draft.size[1] * draft.each
    some, known = np.random.default_rng(seed), array_of(draft.t, specials(draft.t))
    any_bits = np.frombuffer(some.bytes(count * known.itemsize), known.dtype)
    x = np.where(some.random(count) < 0.5, known[some.integers(len(known), size=count)], any_bits)
    result = np.zeros_like(x)
    if seed % 4 == 0:
        x, result = x[: draft.rng.randint(0, count)], result[: draft.rng.randint(0, count)]
    ran = executor.run_judged(draft.text(), grid=(BLOCKS,), block=draft.size, buffers={"x": x, "result": result})
    assert (ran.fault is None) == (seed % 4 != 0 or min(len(x), len(result)) == count)
