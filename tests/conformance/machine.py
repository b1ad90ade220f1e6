"""A second machine: runs the text of a program in Python, lane after lane, on the statement of model.py.

It is slow, reads the text with its own small assembler, and assumes a program that verifies. Comparing a launch on it
with one on the library checks control flow, memory, faults, coordinates, pools and barriers.

    state = Machine(text).run(lanes=4, buffers={"x": array})
    state.buffers, state.fault, state.resonance, state.phase

It runs the text as it stands, with the faults of loads on which nothing depends: `agrees` says what a launch may report.
"""

import re
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

import model
from formats import FORMATS, from_exact, to_int
from model import Fault
from tables import INT, OPS, TYPES, bits_of, mask_of

BOUNDARY_BYTES = 1179648
ENTRY_LANES = 256  # a linear launch has blocks of this many lanes where the program names no block
SPECIAL = {"blane": "r252", "lane": "r255"}


# ---- text -----------------------------------------------------------------------------------------------------------


@dataclass
class Insn:
    op: str
    t: str | None
    t2: str | None
    operands: list[str]
    guard: str | None
    line: int


@dataclass
class Symbol:
    kind: str
    type: str = "u8"
    count: int = 0
    access: str = ""
    values: list[int] = field(default_factory=list)


def constant(t: str, text: str) -> int:
    """Bits of a `#` constant of type t (text without the `#`)."""
    if t in INT:
        return int(text, 0) & mask_of(t)
    if re.fullmatch("0x[0-9a-f]+", text):
        return int(text, 16)
    if text.lstrip("-") in ("inf", "nan"):
        return from_exact(t, float(text))
    negative, text = text.startswith("-"), text.lstrip("-")
    if text.startswith("0x"):
        digits, exponent = text[2:].split("p")
        whole, _, part = digits.partition(".")
        value = Fraction(int(whole + part, 16), 16 ** len(part)) * Fraction(2) ** int(exponent)
    else:
        value = Fraction(text)
    return from_exact(t, value) | (FORMATS[t].sign if negative else 0)


def _mnemonic(word: str) -> tuple[str, list[str]]:
    parts = word.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in OPS and all(p in TYPES for p in parts[n:]):
            return ".".join(parts[:n]), parts[n:]
    raise ValueError(word)


class Source:
    """A program's declarations, labels and instructions."""

    def __init__(self, text: str):
        self.symbols: dict[str, Symbol] = {}
        self.labels: dict[str, int] = {}
        self.insns: list[Insn] = []
        self.block: tuple[int, ...] | None = None
        self.default_block: tuple[int, ...] | None = None
        pending, pending_line = "", 0
        for number, line in enumerate(text.split("\n"), 1):
            line = pending + " " + line.split(";")[0].strip() if pending else line.split(";")[0].strip()
            if line.startswith(".const") and "}" not in line:
                pending = line
                continue
            pending = ""
            self._line(line, pending_line or number)

    def _line(self, line: str, number: int) -> None:
        while m := re.match(r"(\w+):\s*", line):
            self.labels[m.group(1)] = len(self.insns)
            line = line[m.end() :]
        if not line:
            return
        if line.startswith("."):
            self._directive(line)
            return
        m = re.match(r"(?:@(!?p\d+)\s+)?(\S+)\s*(.*)", line)
        op, types = _mnemonic(m.group(2))
        operands = re.findall(r"\[[^]]*\]|[^,\s]+", m.group(3))
        self.insns.append(Insn(op, *(types + [None, None])[:2], operands, m.group(1), number))

    def _directive(self, line: str) -> None:
        kind, rest = line[1:].split(None, 1)
        words = re.findall(r"[^\s,{}]+", rest)
        if kind == "block":
            sizes = tuple(int(w) for w in words if w != "default")
            size = sizes + (1,) * (3 - len(sizes))
            if words[-1] == "default":
                self.default_block = size
            else:
                self.block = size
        elif kind == "buffer":
            self.symbols[words[0]] = Symbol("buffer", words[1], access=words[2])
        elif kind == "scalar":
            self.symbols[words[0]] = Symbol("scalar", words[1])
        elif kind in ("shared", "local"):
            self.symbols[words[0]] = Symbol(kind, words[1], int(words[2]))
        elif kind == "const":
            values = [constant(words[1], w[1:]) for w in words[2:]]
            self.symbols[words[0]] = Symbol("const", words[1], len(values), values=values)
        elif kind == "table":
            self.symbols[words[0]] = Symbol("table", "u8", int(words[1]), words[2])
        elif kind == "pool":
            self.symbols[words[0]] = Symbol("pool")
        elif kind != "program":
            raise ValueError(line)


# ---- faults ---------------------------------------------------------------------------------------------------------


def _may_vanish(record: dict, source: Source) -> bool:
    """The fault of an instruction that the canonical program lacks where nothing depends on its result."""
    op = source.insns[record["instruction"]].op
    return "LOAD" in OPS[op].flags or op in model.CLASS_OPS


def _is(got: dict, stated: dict, source: Source) -> bool:
    """The same fault. The step limit may be reported at any branch of the loop: here, at one that can close a loop."""
    if stated["kind"] != "step_limit":
        return got == stated
    anywhere = {"instruction": 0, "line": 0}
    insn = source.insns[got["instruction"]]
    return got | anywhere == stated | anywhere and insn.op in ("bra", "loop") and insn.line == got["line"]


def agrees(got: dict | None, faults: dict[int, list[dict]], source: Source) -> bool:
    """What is promised of a record, for any program. It is the lowest lane's that has a fault left when dead loads and class
    questions are gone, and it is one of that lane's faults (the canonical program says which comes first)."""
    sure = [lane for lane, records in faults.items() if not all(_may_vanish(r, source) for r in records)]
    if got is None:
        return not sure
    return got["lane"] <= min(sure, default=got["lane"]) and any(_is(got, r, source) for r in faults.get(got["lane"], []))


# ---- machine --------------------------------------------------------------------------------------------------------


class Lane:
    def __init__(self, block: "Block", coordinates: dict[str, int], lane: int, blane: int):
        self.block, self.coordinates, self.lane = block, coordinates, lane
        self.registers = {"r252": (blane, "u32"), "r253": (coordinates["block.x"], "u32"),
                          "r254": (coordinates["block_size.x"], "u32"), "r255": (lane, "u64")}
        self.predicates: dict[str, int] = {}
        self.pc, self.calls, self.steps, self.ended = 0, [], 0, False
        self.local: dict[str, bytearray] = {}


class Block:
    def __init__(self, shared: dict[str, bytearray], base: int, share: int):
        self.shared = shared
        self.lanes: list[Lane] = []
        self.base, self.share, self.used = base, share, 0


@dataclass
class State:
    """What a launch leaves behind."""

    buffers: dict
    boundary: bytearray
    resonance: list[int]
    phase: int
    faults: dict[int, list[dict]]  # of each lane that had any, in the order of the text

    @property
    def fault(self) -> dict | None:
        """The record, where nothing is removed or changes its place in the canonical program."""
        return self.faults[min(self.faults)][0] if self.faults else None


class Machine:
    def __init__(self, text: str):
        self.source = Source(text)

    def run(self, *, lanes: int = 0, grid: tuple = (), block: tuple = (), buffers: dict = {}, scalars: dict = {},
            tables: dict = {}, boundary: bytes | None = None, phase: int = 0, step_limit: int = 1 << 32) -> State:
        """Arguments as hg.Executor.run; scalars hold (type code, bits)."""
        self.memory = {name: bytearray(np.ascontiguousarray(a).tobytes()) for name, a in buffers.items()}
        self.tables = {name: [None if a is None else bytearray(a.tobytes()) for a in rows] for name, rows in tables.items()}
        self.scalars = {name: bits for name, (_, bits) in scalars.items()}
        self.boundary = bytearray(boundary if boundary is not None else BOUNDARY_BYTES)
        self.resonance, self.phase, self.advance = [0] * model.CLASS_COUNT, phase, 0
        self.step_limit, self.faults = step_limit, {}
        for blk in self._blocks(lanes, grid, block):
            self._run_block(blk)
        arrays = {n: np.frombuffer(bytes(self.memory[n]), a.dtype).reshape(a.shape) for n, a in buffers.items()}
        arrays |= {n: [None if m is None else np.frombuffer(bytes(m), np.uint8) for m in rows] for n, rows in self.tables.items()}
        return State(arrays, self.boundary, self.resonance, (self.phase + self.advance) % 768, self.faults)

    def _blocks(self, lanes, grid, block):
        if lanes:
            default = self.source.default_block
            size = self.source.block or (default if default and default[1:] == (1, 1) else (ENTRY_LANES, 1, 1))
            width = size[0] * size[1] * size[2]
            grid, total = ((lanes + width - 1) // width, 1, 1), lanes
        else:
            grid = tuple(n or 1 for n in tuple(grid) + (1,) * (3 - len(grid)))
            block = block or self.source.block or self.source.default_block or (1,)
            size = tuple(n or 1 for n in tuple(block) + (1,) * (3 - len(block)))
            width, total = size[0] * size[1] * size[2], None
        count = grid[0] * grid[1] * grid[2]
        pools = [n for n, s in self.source.symbols.items() if s.kind == "pool"]
        share = len(self.memory[pools[0]]) // count // 16 * 16 if pools else 0
        for index in range(count):
            where = index % grid[0], index // grid[0] % grid[1], index // grid[0] // grid[1]
            shared = {n: bytearray(s.count * bits_of(s.type) // 8) for n, s in self.source.symbols.items() if s.kind == "shared"}
            blk = Block(shared, index * share, share)
            blk.index = index
            for blane in range(width if total is None else min(width, total - index * width)):
                at = blane % size[0], blane // size[0] % size[1], blane // size[0] // size[1]
                c = {}
                for i, axis in enumerate("xyz"):
                    c |= {f"lane.{axis}": at[i], f"block.{axis}": where[i], f"block_size.{axis}": size[i],
                          f"grid_size.{axis}": grid[i], f"global.{axis}": where[i] * size[i] + at[i]}
                wide, high = grid[0] * size[0], grid[1] * size[1]
                lane = c["global.x"] + wide * (c["global.y"] + high * c["global.z"])
                blk.lanes.append(Lane(blk, c, index * width + blane if total is not None else lane, blane))
                blk.lanes[-1].local = {n: bytearray(s.count * bits_of(s.type) // 8) for n, s in self.source.symbols.items()
                                       if s.kind == "local"}
            yield blk

    def _run_block(self, blk: Block) -> None:
        while True:
            for lane in blk.lanes:
                while not lane.ended and "BLOCK" not in OPS[self.source.insns[lane.pc].op].flags:
                    self._step(lane)
            waiting = [lane for lane in blk.lanes if not lane.ended]
            if not waiting:
                return
            assert len({lane.pc for lane in waiting}) == 1, "a barrier in divergent control"
            self._together(blk, waiting)

    def _fault(self, lane: Lane, insn: Insn, fault: Fault) -> None:
        record = {"kind": fault.kind, "instruction": self.source.insns.index(insn), "line": insn.line, "code": fault.code,
                  "lane": lane.lane, "buffer": fault.buffer, "index": min(max(fault.index, -(1 << 63)), (1 << 63) - 1),
                  "extent": fault.extent}
        self.faults.setdefault(lane.lane, []).append(record)

    # ---- operands

    def _get(self, lane: Lane, text: str, t: str | None) -> int:
        text = SPECIAL.get(text, text)
        if text.startswith("#"):
            return constant(t, text[1:])
        if re.fullmatch(r"p\d+", text):
            return lane.predicates[text]
        if re.fullmatch(r"r\d+", text):
            bits, held = lane.registers[text]
            assert t is None or held == t, f"{text} holds {held}, read as {t}"
            return bits
        return self.scalars[text] & mask_of(t)

    def _set(self, lane: Lane, text: str, t: str, bits: int) -> None:
        if text.startswith("p"):
            lane.predicates[text] = bits
        elif text != "_":
            lane.registers[text] = bits, t

    def _value(self, lane: Lane, text: str) -> int:
        """An index or displacement: a register of any integer type, or a plain number."""
        if text.startswith("#") or text.lstrip("-").isdigit() or text.startswith("0x"):
            return int(text.lstrip("#"), 0)
        bits, t = lane.registers[SPECIAL.get(text, text)]
        return to_int(t, bits)

    def _locate(self, lane: Lane, insn: Insn, text: str) -> tuple[bytearray, int]:
        """Memory and byte offset of an address, or Fault."""
        size = bits_of(insn.t) // 8
        inside = text[1:-1].strip()
        if inside.startswith("phi "):
            c, page, byte = (self._value(lane, w.strip()) for w in inside[4:].split(","))
            for part, extent in ((c, 96), (page, 48), (byte, 256)):
                if not 0 <= part < extent:
                    raise Fault("out_of_bounds", part, extent, buffer="phi")
            return self._bytes(self.boundary, c * 12288 + page * 256 + byte, size, "phi")
        if ":" in inside:
            entry, offset = (self._value(lane, w.strip()) for w in inside.split(":"))
            name = next(n for n, s in self.source.symbols.items() if s.kind == "table")
            if not 0 <= entry < self.source.symbols[name].count:
                raise Fault("out_of_bounds", entry, self.source.symbols[name].count, buffer=name)
            return self._bytes(self.tables[name][entry] or bytearray(), offset, size, name)
        words = [w.strip() for w in inside.split("+")]
        symbol = self.source.symbols[words[0]]
        index = sum(self._value(lane, w) for w in words[1:])
        if symbol.kind == "pool":
            return self._bytes(self.memory[words[0]], index, size, words[0])
        memory = (lane.block.shared[words[0]] if symbol.kind == "shared" else lane.local[words[0]] if symbol.kind == "local" else
                  self.memory.get(words[0]) or bytearray())
        if symbol.kind == "const":
            memory = b"".join(v.to_bytes(size, "little") for v in symbol.values)
        if not 0 <= index < len(memory) // size:
            raise Fault("out_of_bounds", index, len(memory) // size, buffer=words[0])
        return memory, index * size

    @staticmethod
    def _bytes(memory: bytearray, offset: int, size: int, name: str) -> tuple[bytearray, int]:
        if offset < 0 or offset + size > len(memory):
            raise Fault("out_of_bounds", offset, len(memory), buffer=name)
        if offset % size:
            raise Fault("misaligned", offset, size, buffer=name)
        return memory, offset

    # ---- one lane

    def _step(self, lane: Lane) -> None:
        insn = self.source.insns[lane.pc]
        if "JUMP" in OPS[insn.op].flags:
            self._jump(lane, insn)
            return
        lane.pc += 1
        try:
            self._execute(lane, insn)
        except Fault as fault:
            self._fault(lane, insn, fault)
            letters = OPS[insn.op].operands
            if letters and letters[0] in "dop":
                self._set(lane, insn.operands[0], insn.t, 0)

    def _jump(self, lane: Lane, insn: Insn) -> None:
        here, taken = lane.pc, True
        lane.pc += 1
        if insn.op in ("exit", "trap"):
            lane.ended = True
            if insn.op == "trap":
                self._fault(lane, insn, Fault("trap", code=int(insn.operands[0][1:], 0)))
        elif insn.op == "call":
            lane.calls.append(lane.pc)
            lane.pc = self.source.labels[insn.operands[0]]
        elif insn.op == "ret":
            lane.pc = lane.calls.pop()
        else:
            if insn.op == "loop":
                counter = (self._get(lane, insn.operands[0], "u32") - 1) & mask_of("u32")
                self._set(lane, insn.operands[0], "u32", counter)
                taken = counter != 0
            elif insn.guard:
                taken = lane.predicates[insn.guard.lstrip("!")] == (0 if insn.guard.startswith("!") else 1)
            target = self.source.labels[insn.operands[-1]]
            if taken and target <= here:
                self._count_step(lane, insn)
            if taken:
                lane.pc = target

    def _count_step(self, lane: Lane, insn: Insn) -> None:
        if lane.steps == self.step_limit:
            lane.ended = True
            self._fault(lane, insn, Fault("step_limit", index=self.step_limit, extent=self.step_limit))
        lane.steps += 1

    def _execute(self, lane: Lane, insn: Insn) -> None:
        op, t, o = insn.op, insn.t, insn.operands
        flags = OPS[op].flags
        if "LOAD" in flags:
            self._set(lane, o[0], t, self._load(lane, insn, o[1]))
        elif "STORE" in flags:
            self._store(lane, insn, o[0], self._get(lane, o[1], t))
        elif "ATOMIC" in flags:
            values = [self._get(lane, a, t) for a in o[2:]]
            old = self._load(lane, insn, o[1])
            self._set(lane, o[0], t, old)
            self._store(lane, insn, o[1], model.atomic(op, t, old, *values))
        elif op == "sreg":
            self._set(lane, o[0], t, lane.coordinates[o[1]] & mask_of(t))
        elif op == "len":
            self._set(lane, o[0], t, len(self.memory[o[1]]) // (bits_of(self.source.symbols[o[1]].type) // 8))
        elif op == "cls.get":
            self._set(lane, o[0], t, lane.block.index % 96)
        elif op == "phase.get":
            self._set(lane, o[0], t, self.phase)
        elif op == "phase.adv":
            if lane.lane == 0:  # uniform in the grid: one lane speaks for all
                self.advance += self._get(lane, o[0], t)
        elif op == "res.accum":
            c, amount = model._class(self._get(lane, o[0], "u32")), self._get(lane, o[1], t)
            self.resonance[c] = to_int("i64", self.resonance[c] + amount)
        elif not op.startswith("mem.fence"):
            self._pure(lane, insn)

    def _load(self, lane: Lane, insn: Insn, address: str) -> int:
        memory, offset = self._locate(lane, insn, address)
        bits = int.from_bytes(memory[offset : offset + bits_of(insn.t) // 8], "little")
        return int(bits != 0) if insn.t == "bool" else bits

    def _store(self, lane: Lane, insn: Insn, address: str, bits: int) -> None:
        memory, offset = self._locate(lane, insn, address)
        memory[offset : offset + bits_of(insn.t) // 8] = bits.to_bytes(bits_of(insn.t) // 8, "little")

    def _pure(self, lane: Lane, insn: Insn) -> None:
        read = {"s": insn.t, "n": insn.t, "t": insn.t2, "c": "u32", "q": None}
        letters = OPS[insn.op].operands
        values = [self._get(lane, text, read[c]) for c, text in zip(letters[1:], insn.operands[1:])]
        self._set(lane, insn.operands[0], insn.t, model.evaluate_one(insn.op, insn.t, insn.t2, *values))

    # ---- one block

    def _together(self, blk: Block, waiting: list[Lane]) -> None:
        insn = self.source.insns[waiting[0].pc]
        for lane in waiting:
            lane.pc += 1
        op, t, o = insn.op, insn.t, insn.operands
        if op == "bar.sync":
            return
        if op.startswith("pool."):
            self._pool(blk, waiting, insn)
            return
        values = [None if lane.ended else self._get(lane, o[1], t) for lane in blk.lanes]
        if op.startswith("reduce."):
            results = [model.reduce(op, t, values)] * len(values)
        elif op.startswith("scan."):
            results = model.scan(op, t, values)
        elif op == "rank":
            results, counts = model.rank(values, int(o[3][1:], 0))
            memory, at = self._locate(waiting[0], insn, o[2])
            for v, count in enumerate(counts):
                memory[at + 4 * v : at + 4 * v + 4] = count.to_bytes(4, "little")
        else:
            present = [v for v in values if v is not None]
            results = [int(any(present) if op == "vote.any" else all(present))] * len(values)
        for lane, result in zip(blk.lanes, results):
            if not lane.ended:
                self._set(lane, o[0], t, result)

    def _pool(self, blk: Block, waiting: list[Lane], insn: Insn) -> None:
        value = self._get(waiting[0], insn.operands[-1], "u64")
        if insn.op == "pool.alloc":
            size = (value + 15) // 16 * 16
            offset = mask_of("u64")
            if size <= blk.share - blk.used:
                offset = blk.base + blk.used
                blk.used += size
            for lane in waiting:
                self._set(lane, insn.operands[0], "u64", offset)
        elif not blk.base <= value < blk.base + blk.used or value % 16:
            for lane in waiting:
                self._fault(lane, insn, Fault("pool", to_int("i64", value), blk.base + blk.used, buffer=insn.operands[0]))
        else:
            blk.used = value - blk.base
