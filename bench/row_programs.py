"""Writes programs that hold a row of a matrix in the registers of a block: softmax, norms, cross entropy, row sums, argmax, prefix sums.

A lane has `wide` neighbouring columns of every `lanes * wide`, so that a load can be 16 bytes. Sums fold by halves in chunks of 4096
columns, and the chunks' sums by halves: one answer, whatever `lanes` and `wide` are. Such a fold takes the columns' index bits from the
top: those between a lane's loads first, then the lanes (reduce.add), then the neighbours inside a load, then the chunks."""

from dataclasses import dataclass

CHUNK = 4096            # columns whose values fold by halves; longer rows fold the results of such chunks
SCAN = 256              # columns whose running sums are one scan
EPSILON = 1e-5

# Lanes and neighbours a load by bytes of an element and columns: the fastest on an H200 of those that were tried. A warp needs no
# barrier; two neighbours have half the reductions of four; of more than 32 columns a lane registers leave room for few warps.
SHAPES = {(4, 1024): (64, 4), (4, 4096): (128, 4), (4, 16384): (512, 2),
          (2, 1024): (32, 4), (2, 4096): (128, 4), (2, 16384): (512, 2)}
SOFTMAX_SHAPES = SHAPES | {(2, 16384): (256, 2)}
LOSS_SHAPES = SHAPES | {(4, 16384): (256, 4), (2, 16384): (256, 4)}
SIZES = {"f32": 4, "f16": 2, "bf16": 2}


@dataclass
class Row:
    """The lines of one program. Registers: the row's values from r0 on, everything else from r128 on."""
    kind: str
    columns: int
    lanes: int
    wide: int

    def __post_init__(self):
        self.lines, self.free = [], 128                               # instructions; the next register for other values
        self.count = self.columns // self.lanes                       # values of a lane
        self.values = [f"r{i}" for i in range(self.count)]
        step = self.lanes * self.wide
        assert self.columns % step == 0 and self.count <= 128 and (step <= CHUNK or self.columns <= CHUNK)
        self.offsets = [i // self.wide * step + i % self.wide for i in range(self.count)]

    def emit(self, text: str) -> None:
        self.lines.append("    " + text)

    def new(self) -> str:
        self.free += 1
        return f"r{self.free - 1}"

    def op(self, text: str, *operands: str) -> str:
        """An instruction with a new register for its result."""
        result = self.new()
        self.emit(f"{text} {', '.join((result, *operands))}")
        return result

    def load(self) -> None:
        self.emit(f"mul.u32 r126, r253, #{self.columns}     ; the row, and this lane's first column of it")
        self.emit(f"mul.u32 r127, blane, #{self.wide}")
        self.emit("add.u32 r127, r126, r127")
        for value, offset in zip(self.values, self.offsets):
            self.emit(f"ldg.{self.kind} {value}, [x + r127 + #{offset}]")
        if self.kind != "f32":
            for value in self.values:
                self.emit(f"cvt.f32.{self.kind} {value}, {value}")

    def store(self) -> None:
        if self.kind != "f32":
            for value in self.values:
                self.emit(f"cvt.{self.kind}.f32 {value}, {value}")
        for value, offset in zip(self.values, self.offsets):
            self.emit(f"stg.{self.kind} [y + r127 + #{offset}], {value}")

    def each(self, text: str, *operands: str) -> None:
        """Every value by itself: value = text(value, operands)."""
        for value in self.values:
            self.emit(f"{text} {', '.join((value, value, *operands))}")

    def largest(self) -> str:
        """Of the row, in every lane. The order of max does not matter."""
        own = self.new()
        self.emit(f"max.f32 {own}, {self.values[0]}, {self.values[1]}")
        for value in self.values[2:]:
            self.emit(f"max.f32 {own}, {own}, {value}")
        return self.op("reduce.max.f32", own)

    def halves(self, values: list[str]) -> str:
        """The sum of registers, folded by halves. Those that do not hold the row's values are written to."""
        if len(values) == 1:
            return values[0]
        # The lowest bit folds last: the even ones among themselves, the odd ones, then both. So few registers are in use at once.
        even, odd = self.halves(values[0::2]), self.halves(values[1::2])
        if even in self.values:
            return self.op("add.f32", even, odd)
        self.emit(f"add.f32 {even}, {even}, {odd}")
        return even

    def sum(self, squares: bool = False) -> str:
        """Of the row, or of its values' squares, in every lane."""
        result = self.new()
        first = self.free
        chunks = max(1, self.columns // CHUNK)
        part, sums = self.count // chunks, []                         # of a lane's values, those of one chunk
        for chunk in range(chunks):
            for neighbour in range(self.wide):
                own = self.values[chunk * part + neighbour:(chunk + 1) * part:self.wide]
                sums.append(self.halves([self.op("mul.f32", v, v) for v in own] if squares else own))
        totals = [self.op("reduce.add.f32", value) for value in sums]
        total = self.halves([self.halves(totals[i * self.wide:(i + 1) * self.wide]) for i in range(chunks)])
        self.emit(f"mov.f32 {result}, {total}")
        self.free = first                                             # the others are not needed any more
        return result

    def mean(self, squares: bool = False) -> str:
        total = self.sum(squares)
        self.emit(f"div.f32 {total}, {total}, #{self.columns}")
        return total

    def normalise(self, variance: str) -> None:
        """Multiplies every value by 1 / sqrt(variance + epsilon)."""
        self.emit(f"add.f32 {variance}, {variance}, #{EPSILON}")
        self.emit(f"sqrt.f32 {variance}, {variance}")
        one = self.op("movi.f32", "#1")
        self.each("mul.f32", self.op("div.f32", one, variance))

    def one_value(self, *lines: str) -> None:
        """What lane 0 does alone: a row's only result."""
        for line in ("set.ne.u32 p0, blane, #0", "@p0 bra done", *lines):
            self.emit(line)
        self.lines.append("done:")

    def text(self, name: str, *declarations: str) -> str:
        assert self.free <= 252
        return "\n".join([f"; {name} of rows of {self.columns} columns. Launch: --grid rows", f".program {name}",
                          f".block {self.lanes}", *declarations, *self.lines, "    exit", ""])


def row(kind: str, columns: int, shape: tuple[int, int] | None, shapes=None) -> Row:
    lanes, wide = shape or (shapes or SHAPES)[SIZES[kind], columns]
    return Row(kind, columns, lanes, wide)


def softmax(kind: str, columns: int, shape=None) -> str:
    r = row(kind, columns, shape, SOFTMAX_SHAPES)
    r.load()
    r.each("sub.f32", r.largest())
    r.each("exp.f32")
    r.each("div.f32", r.sum())
    r.store()
    return r.text("softmax", f".buffer x {kind} in", f".buffer y {kind} out")


def layer_norm(kind: str, columns: int, shape=None) -> str:
    r = row(kind, columns, shape)
    r.load()
    r.each("sub.f32", r.mean())
    r.normalise(r.mean(squares=True))
    r.store()
    return r.text("layer_norm", f".buffer x {kind} in", f".buffer y {kind} out")


def rms_norm(kind: str, columns: int, shape=None) -> str:
    r = row(kind, columns, shape)
    r.load()
    r.normalise(r.mean(squares=True))
    r.store()
    return r.text("rms_norm", f".buffer x {kind} in", f".buffer y {kind} out")


def cross_entropy(kind: str, columns: int, shape=None) -> str:
    """log(sum of e^x) - x[t] for each row x and its column t."""
    r = row(kind, columns, shape, LOSS_SHAPES)
    r.load()
    largest = r.largest()
    r.each("sub.f32", largest)
    r.each("exp.f32")
    total, target = r.sum(), r.new()
    wide = [] if kind == "f32" else [f"cvt.f32.{kind} {target}, {target}"]
    r.one_value(f"ldg.u32 {target}, [t + r253]", f"add.u32 {target}, r126, {target}", f"ldg.{kind} {target}, [x + {target}]", *wide,
                f"sub.f32 {target}, {target}, {largest}", f"log.f32 {total}, {total}", f"sub.f32 {total}, {total}, {target}",
                f"stg.f32 [y + r253], {total}")
    return r.text("cross_entropy", f".buffer x {kind} in", ".buffer t u32 in", ".buffer y f32 out")


def row_sum(kind: str, columns: int, shape=None) -> str:
    r = row(kind, columns, shape)
    r.load()
    r.one_value(f"stg.f32 [y + r253], {r.sum()}")
    return r.text("row_sum", f".buffer x {kind} in", ".buffer y f32 out")


def row_argmax(kind: str, columns: int, shape=None) -> str:
    """The column of the largest: of several the lowest, of a row with NaN the first NaN's."""
    r = row(kind, columns, shape)
    r.load()
    largest, at = r.largest(), r.op("movi.u32", f"#{1 << 30}")        # more than any column
    for value, offset in reversed(list(zip(r.values, r.offsets))):
        r.emit(f"set.eq.f32 p0, {value}, {largest}")
        r.emit(f"set.nan.f32 p1, {value}, {value}")
        r.emit("por p0, p0, p1")
        r.emit(f"sel.u32 {at}, p0, #{offset}, {at}")
    own = r.op("mul.u32", "blane", f"#{r.wide}")
    r.emit(f"add.u32 {at}, {at}, {own}")
    r.one_value(f"stg.u32 [y + r253], {r.op('reduce.min.u32', at)}")
    return r.text("row_argmax", f".buffer x {kind} in", ".buffer y u32 out")


def row_scan(kind: str, columns: int) -> str:
    """Running sums of a row: those of 256 columns by strides of 1, 2, 4, ..., the chunks' totals the same way, then both added."""
    r = Row(kind, columns, SCAN, 1)
    r.load()
    r.each("scan.incl.f32")
    r.emit(f"set.ne.u32 p0, blane, #{SCAN - 1}")
    r.emit("@p0 bra kept")
    for i, value in enumerate(r.values):
        r.emit(f"sts.f32 [totals + #{i}], {value}")
    r.lines.append("kept:")
    r.emit("bar.sync")
    totals = [r.op("lds.f32", f"[totals + #{i}]") for i in range(r.count - 1)]
    stride = 1
    while stride < len(totals):
        for i in reversed(range(stride, len(totals))):
            r.emit(f"add.f32 {totals[i]}, {totals[i - stride]}, {totals[i]}")
        stride *= 2
    for value, total in zip(r.values[1:], totals):
        r.emit(f"add.f32 {value}, {total}, {value}")
    r.store()
    return r.text("row_scan", f".buffer x {kind} in", f".buffer y {kind} out", f".shared totals f32 {r.count}")
