"""Writes programs of tiles: the product of two f32 matrices, and the sums of a matrix's columns."""

# ---- the product ------------------------------------------------------------------------------------------------------------------

TILE, STEP = 128, 8                # a block's tile of the result is 128 x 128, its step along K is 8 words
PITCH = TILE + 4                   # of a row of a tile that is stored by columns: four words further, so banks differ
CHAIN, LEVELS = 256, 8             # products of one chain where chains fold like a binary counter; its levels, a power of two: k to
                                   # 256 * 255


def matmul(kind: str = "f32", tree: bool = False) -> str:
    """y (m x n) = a (m x k) b (k x n) of f32: each element is one chain of FMA from +0 in increasing k.

    tree: a chain for each 256 of k, whose results fold in the aligned binary tree over their number: a counter in local memory, since it is
    touched once in 256 steps.

    kind "bf16": of such elements, which are f32 in between; results are rounded once. "int8": of signed bytes, sums of 32 bits; b is given
    by its columns (n x k), and k counts words of four bytes.

    m and n are multiples of 128, k of 16. 256 lanes, each 8 x 8 of the result: rows 0-3 and 32-35 of its own in a warp's 64 x 32, columns
    0-3 and 16-19. Two tiles of A and B are in shared memory: while one is multiplied, the next is on its way from memory in eight
    registers."""
    e, int8, narrow = [], kind == "int8", kind == "bf16"
    given, word, sum_type, pitch_b = ("u32", "u32", "i32", PITCH) if int8 else (kind, "f32", "f32", TILE)
    result, multiply_add = (sum_type, "dot4.ss.i32") if int8 else (kind, "fma.f32")
    tile_a, tile_b = STEP * PITCH, STEP * pitch_b
    total = lambda i, j: f"r{8 * i + j}"                                                                       # noqa: E731
    a, b = [f"r{64 + i}" for i in range(8)], [f"r{72 + j}" for j in range(8)]
    next_a, next_b = [f"r{80 + i}" for i in range(4)], [f"r{84 + i}" for i in range(4)]

    def fetch():
        e.extend(f"ldg.{given} {next_a[i]}, [a + r90 + #{i}]" for i in range(4))
        e.extend(f"ldg.{given} {next_b[i]}, [b + r91 + #{i}]" for i in range(4))
        e.extend((f"add.u32 r90, r90, #{STEP}", f"add.u32 r91, r91, #{STEP}" if int8 else "add.u32 r91, r91, r92"))

    def keep(buffer):
        apart = PITCH if int8 else 1                                    # of neighbours in a load of B
        e.extend(f"cvt.f32.bf16 {r}, {r}" for r in (next_a + next_b if narrow else []))
        e.extend(f"sts.{word} [tile_a + r93 + #{buffer * tile_a + i * PITCH}], {next_a[i]}" for i in range(4))
        e.extend(f"sts.{word} [tile_b + r94 + #{buffer * tile_b + i * apart}], {next_b[i]}" for i in range(4))

    def multiply(buffer):
        for k in range(STEP):
            at_a, at_b = buffer * tile_a + k * PITCH, buffer * tile_b + k * pitch_b
            e.extend(f"lds.{word} {a[i]}, [tile_a + r95 + #{at_a + i % 4 + i // 4 * 32}]" for i in range(8))
            e.extend(f"lds.{word} {b[j]}, [tile_b + r96 + #{at_b + j % 4 + j // 4 * 16}]" for j in range(8))
            e.extend(f"{multiply_add} {total(i, j)}, {a[i]}, {b[j]}, {total(i, j)}" for i in range(8) for j in range(8))

    def next_level():
        """The mask says where the counter ends."""
        e.extend(("add.u32 r105, r105, #64", f"and.u32 r105, r105, #{64 * (LEVELS - 1)}"))

    def carry(label):
        """Adds the counter's level that begins at r105."""
        for i in range(64):
            e.extend((f"ldl.f32 r{64 + i % 16}, [counter + r105 + #{i}]", f"add.f32 r{i}, r{64 + i % 16}, r{i}"))
        e.append(label)

    def count():
        """A chain is done: what it comes to goes into the counter, behind those of r103 chains."""
        e.extend(("mov.u32 r104, r103", "movi.u32 r105, #0", "carry:", "and.u32 r106, r104, #1", "set.eq.u32 p0, r106, #0",
                  "@p0 bra carried"))
        carry("shr.u32 r104, r104, #1")
        next_level()
        e.extend(("bra carry", "carried:"))
        for i in range(64):
            e.extend((f"stl.f32 [counter + r105 + #{i}], r{i}", f"movi.f32 r{i}, #0"))
        e.append("add.u32 r103, r103, #1")

    def collapse():
        """All that is in the counter, from its lowest level on, in front of the last chain."""
        e.extend(("movi.u32 r105, #0", "collapse:", "set.eq.u32 p0, r103, #0", "@p0 bra collapsed", "and.u32 r106, r103, #1",
                  "shr.u32 r103, r103, #1", "set.eq.u32 p0, r106, #0", "@p0 bra without"))
        carry("without:")
        next_level()
        e.extend(("bra collapse", "collapsed:"))

    # What this lane brings: four of a row of A's tile, and of B's four of a row, or of a column where that is given by columns.
    e += ["sreg.u32 r97, block.y", "shl.u32 r97, r97, #7", "sreg.u32 r98, block.x", "shl.u32 r98, r98, #7",
          "shr.u32 r99, blane, #1", "and.u32 r100, blane, #1", "shl.u32 r100, r100, #2",
          "add.u32 r90, r97, r99", "mad.u32 r90, r90, k, r100", f"mad.u32 r93, r100, #{PITCH}, r99"]
    if int8:
        e += ["add.u32 r91, r98, r99", "mad.u32 r91, r91, k, r100", "mov.u32 r94, r93"]
    else:
        e += ["shr.u32 r99, blane, #5", "and.u32 r100, blane, #31", "shl.u32 r100, r100, #2",
              "add.u32 r101, r98, r100", "mad.u32 r91, r99, n, r101", "shl.u32 r92, n, #3", f"mad.u32 r94, r99, #{TILE}, r100"]
    # What it computes: the rows from r95 and the columns from r96 on of the tile. Eight warps are 2 x 4.
    e += ["shr.u32 r99, blane, #7", "shl.u32 r99, r99, #6",
          "shr.u32 r100, blane, #2", "and.u32 r100, r100, #7", "shl.u32 r100, r100, #2", "add.u32 r95, r99, r100",
          "shr.u32 r99, blane, #5", "and.u32 r99, r99, #3", "shl.u32 r99, r99, #5",
          "and.u32 r100, blane, #3", "shl.u32 r100, r100, #2", "add.u32 r96, r99, r100"]
    e += [f"movi.{sum_type} {total(i, j)}, #0" for i in range(8) for j in range(8)]
    fetch()
    keep(0)
    e.append("bar.sync")
    e += ["shr.u32 r102, k, #4", *(["movi.u32 r103, #0", "chain:", f"movi.u32 r107, #{CHAIN // (2 * STEP)}"] if tree else []), "top:"]
    fetch()
    multiply(0)
    keep(1)
    e += ["bar.sync", "set.eq.u32 p0, r102, #1", "@p0 bra last"]
    fetch()
    multiply(1)
    keep(0)
    e += ["bar.sync", *(["sub.u32 r102, r102, #1", "loop r107, top"] if tree else ["loop r102, top"])]
    if tree:
        count()
        e.append("bra chain")
    e.append("last:")
    multiply(1)
    if tree:
        collapse()
    for i in range(8):
        e += ["add.u32 r99, r97, r95", f"add.u32 r99, r99, #{i % 4 + i // 4 * 32}", "add.u32 r100, r98, r96",
              "mad.u32 r99, r99, n, r100"]
        e += [f"cvt.bf16.f32 {total(i, j)}, {total(i, j)}" for j in range(8) if narrow]
        e += [f"stg.{result} [y + r99 + #{j % 4 + j // 4 * 16}], {total(i, j)}" for j in range(8)]
    name = "matmul" + ("" if kind == "f32" else f"_{kind}") + ("_tree" if tree else "")
    declarations = [f".buffer a {given} in", f".buffer b {given} in", f".buffer y {result} out", ".scalar n u32", ".scalar k u32",
                    f".shared tile_a {word} {2 * tile_a}", f".shared tile_b {word} {2 * tile_b}",
                    *([f".local counter f32 {64 * LEVELS}"] if tree else [])]
    return program(name, 256, declarations, e, "n / 128,m / 128")


def program(name: str, lanes: int, declarations: list, lines: list, grid: str) -> str:
    return "\n".join([f"; {name}. Launch: --grid {grid}", f".program {name}", f".block {lanes}", *declarations,
                      *(line if line.endswith(":") else "    " + line for line in lines), "    exit", ""])


# ---- sums of columns ----------------------------------------------------------------------------------------------------------------

ROWS, LANES, BATCH = 4096, 256, 16                                      # of a chunk; of a block; rows on their way


def fold_neighbours(registers: list) -> list:
    """The lines that add up registers, a power of two of them, in pairs; the sum is in the first."""
    lines, step = [], 1
    while step < len(registers):
        lines += [f"add.f32 {registers[i]}, {registers[i]}, {registers[i + step]}" for i in range(0, len(registers), 2 * step)]
        step *= 2
    return lines


def across(wide: int, groups: int) -> int:
    """Columns of a block."""
    return LANES * wide // groups


def column_sum(rows: int = ROWS, wide: int = 4, groups: int = 8, batch: int = BATCH) -> str:
    """y[c, j] = the sum of rows `rows` c to `rows` (c + 1) - 1 of column j, folded by neighbours: pairs of rows, pairs of these sums, and
    so on; rows: a power of two, at least a batch for each group.

    A lane has `wide` neighbouring columns; groups of lanes share the rows, each an equal part of them. A group reads its rows one after
    the other, a batch at a time, and a binary counter of sums folds the batches as they come. The groups' sums fold last, in shared
    memory. One answer, whatever the split."""
    e, columns = [], across(wide, groups)
    levels, neighbours = (rows // (groups * batch)).bit_length() - 1, range(wide)
    value = [[f"r{wide * i + c}" for c in neighbours] for i in range(batch)]
    counter = [[f"r{64 + wide * level + c}" for c in neighbours] for level in range(levels)]
    lanes = columns // wide                                             # of a group
    e += [f"and.u32 r100, blane, #{lanes - 1}", f"mul.u32 r100, r100, #{wide}",                                # column
          f"shr.u32 r101, blane, #{lanes.bit_length() - 1}",                                                   # group
          "sreg.u32 r102, block.x", f"mad.u32 r102, r102, #{columns}, r100",
          f"mul.u32 r104, r101, #{rows // groups}",
          "sreg.u32 r103, block.y", f"mad.u32 r103, r103, #{rows}, r104", "mad.u32 r105, r103, columns, r102",  # element that comes next
          "movi.u32 r104, #0",                                                                                  # batches
          *(f"movi.f32 {register}, #0" for level in counter for register in level), *(["next:"] if levels else [])]
    for i in range(batch):
        e += [f"ldg.f32 {value[i][c]}, [x + r105 + #{c}]" for c in neighbours] + ["add.u32 r105, r105, columns"]
    for c in neighbours:
        e += fold_neighbours([row[c] for row in value])
    for level in range(levels):
        e += [f"and.u32 r106, r104, #{1 << level}", "set.ne.u32 p0, r106, #0", f"@p0 bra carry{level}",
              *(f"mov.f32 {counter[level][c]}, {value[0][c]}" for c in neighbours), "bra counted", f"carry{level}:",
              *(f"add.f32 {value[0][c]}, {counter[level][c]}, {value[0][c]}" for c in neighbours)]
    if levels:
        e += ["bra folded", "counted:", "add.u32 r104, r104, #1", "bra next", "folded:"]
    e += ["sreg.u32 r102, block.y", "sreg.u32 r103, block.x", "mul.u32 r102, r102, columns", f"mad.u32 r102, r103, #{columns}, r102"]
    shared = []
    if groups == 1:
        e += ["add.u32 r102, r102, r100", *(f"stg.f32 [y + r102 + #{c}], {value[0][c]}" for c in neighbours)]
    else:
        shared = [f".shared part f32 {columns * groups}"]
        e += [f"mad.u32 r106, r101, #{columns}, r100", *(f"sts.f32 [part + r106 + #{c}], {value[0][c]}" for c in neighbours), "bar.sync",
              f"set.ge.u32 p0, blane, #{columns}", "@p0 bra done",
              *(f"lds.f32 r{g}, [part + blane + #{g * columns}]" for g in range(groups))]
        e += fold_neighbours([f"r{g}" for g in range(groups)])
        e += ["add.u32 r102, r102, blane", "stg.f32 [y + r102], r0", "done:"]
    return program("column_sum", LANES, [".buffer x f32 in", ".buffer y f32 out", ".scalar columns u32", *shared], e,
                   f"columns / {columns},rows / {rows}")


def fold_rows(count: int) -> str:
    """y[j] = the sum of column j of `count` rows, a power of two, folded by neighbours. A lane a column."""
    e = ["cvt.u32.u64 r99, lane"]
    for i in range(count):
        e += [f"ldg.f32 r{i}, [x + r99]", "add.u32 r99, r99, columns"]
    e += fold_neighbours([f"r{i}" for i in range(count)])
    lines = ["; fold_rows. Launch: --lanes columns", ".program fold_rows", ".buffer x f32 in", ".buffer y f32 out", ".scalar columns u32"]
    return "\n".join(lines + ["    " + line for line in [*e, "stg.f32 [y + lane], r0", "exit"]] + [""])
