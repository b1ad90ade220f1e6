"""Atomics on buffers and shared memory: what one lane gets and leaves, and what many lanes leave together."""

import numpy as np
import pytest

import model
from harness import array_of, compare, literal, rows_of
from tables import OPS, bits_of
from values import SEED, generator, random_bits, specials

pytestmark = pytest.mark.engine

NAMES = [name for name, op in OPS.items() if "ATOMIC" in op.flags]
CASES = [(name, t) for name in NAMES for t in OPS[name].types]
IDS = [f"{op}.{t}" for op, t in CASES]
FOLDS = {"atom.add", "atom.min", "atom.max", "atom.and", "atom.or", "atom.xor"}


@pytest.mark.parametrize("space", ["buffer", "shared"])
@pytest.mark.parametrize("op, t", CASES, ids=IDS)
def test_each_lane_its_own(executor, op, t, space):
    """Old value and new value for every pair (or triple) of special values."""
    values = specials(t)[:22] if op != "atom.cas" else specials(t)[:9]
    columns = rows_of([values] * (len(OPS[op].operands) - 1))
    sources = ", ".join(f"r{i}" for i in range(1, len(columns)))
    loads = "\n".join(f"    ldg.{t} r{i}, [a{i} + lane]" for i in range(1, len(columns)))
    declared = "\n".join(f".buffer a{i} {t} in" for i in range(1, len(columns)))
    if space == "buffer":
        middle = f"    {op}.{t} r9, [m + lane], {sources}\n"
    else:
        declared += f"\n.shared s {t} 256"
        middle = f"""    ldg.{t} r8, [m + lane]
    sts.{t} [s + blane], r8
    {op}.{t} r9, [s + blane], {sources}
    lds.{t} r8, [s + blane]
    stg.{t} [m + lane], r8
"""
    text = f"{declared}\n.buffer m {t} inout\n.buffer old {t} out\n{loads}\n{middle}    stg.{t} [old + lane], r9\n    exit\n"
    buffers = {"m": array_of(t, columns[0]), "old": array_of(t, [1] * len(columns[0]))}
    buffers |= {f"a{i}": array_of(t, c) for i, c in enumerate(columns[1:], 1)}
    result = executor.run(text, lanes=len(columns[0]), buffers=buffers)
    assert result.fault is None
    kinds = [t] * len(columns)
    compare(f"{op}.{t} old value", kinds, columns, [int(b) for b in result.buffers["old"]], columns[0], t)
    want = [model.atomic(op, t, *row) for row in zip(*columns)]
    compare(f"{op}.{t} new value", kinds, columns, [int(b) for b in result.buffers["m"]], want, t)


@pytest.mark.parametrize("form", ["dropped", "kept", "constant"])
@pytest.mark.parametrize("op, t", [c for c in CASES if c[0] in FOLDS], ids=[f"{o}.{t}" for o, t in CASES if o in FOLDS])
def test_many_lanes_one_place(executor, op, t, form):
    """The place holds the fold of all lanes' operands, whatever their order."""
    lanes, rng = 700, generator("atomic", op, t, form)
    values = random_bits(t, lanes, rng) if form != "constant" else [random_bits(t, 1, rng)[0]] * lanes
    start = random_bits(t, 2, rng)
    operand = "r1" if form != "constant" else literal(t, values[0])
    text = f""".buffer x {t} in
.buffer m {t} inout
    ldg.{t} r1, [x + lane]
    {op}.{t} {'r2' if form == 'kept' else '_'}, [m + #1], {operand}
    exit
"""
    result = executor.run(text, lanes=lanes, buffers={"x": array_of(t, values), "m": array_of(t, start)})
    want = start[1]
    for v in values:
        want = model.atomic(op, t, want, v)
    compare(f"{op}.{t} by {lanes} lanes", [], [], [int(b) for b in result.buffers["m"]], [start[0], want], t, SEED)


@pytest.mark.parametrize("op, t", [c for c in CASES if c[0] in FOLDS], ids=[f"{o}.{t}" for o, t in CASES if o in FOLDS])
def test_many_lanes_one_shared_place(executor, op, t):
    n, rng = 100, generator("atomic-shared", op, t)
    values = random_bits(t, 2 * n, rng)
    text = f""".buffer x {t} in
.buffer result {t} out
.shared s {t} 3
    ldg.{t} r1, [x + lane]
    {op}.{t} _, [s + #2], r1
    bar.sync
    lds.{t} r2, [s + #2]
    stg.{t} [result + lane], r2
    exit
"""
    result = executor.run(text, grid=(2,), block=(n,), buffers={"x": array_of(t, values), "result": array_of(t, [0] * 2 * n)})
    want = []
    for block in (values[:n], values[n:]):
        total = 0
        for v in block:
            total = model.atomic(op, t, total, v)
        want += [total] * n
    compare(f"{op}.{t} in shared memory", [], [], [int(b) for b in result.buffers["result"]], want, t, SEED)


@pytest.mark.parametrize("op, t", [c for c in CASES if c[0] in FOLDS], ids=[f"{o}.{t}" for o, t in CASES if o in FOLDS])
def test_loops_that_begin_with_one(executor, op, t):
    """As many rounds as are counted, whoever has to try again: a GPU may do the operation by a loop of its own."""
    n, rng = 21, generator("atomic-loop", op, t)
    values = random_bits(t, n, rng)
    text = f""".buffer x {t} in
.buffer result {t} out
.shared s {t} 2
    ldg.{t} r9, [x + lane]
    mul.{t} r8, r9, #10
    movi.u32 r0, #7
first: {op}.{t} _, [s + #0], r9
    loop r0, first
    and.u32 r1, r0, #7
    add.u32 r1, r1, #2
again: {op}.{t} _, [s + #1], r8
    bar.sync
    lds.{t} r3, [s + #1]
    bar.sync
    loop r1, again
    lds.{t} r2, [s + #0]
    add.{t} r2, r2, r3
    stg.{t} [result + lane], r2
    exit
"""
    result = executor.run(text, grid=(1,), block=(n,), buffers={"x": array_of(t, values), "result": array_of(t, [0] * n)})
    total, width = [0, 0], 2 ** bits_of(t)
    for place, factor, times in ((0, 1, 7), (1, 10, 2)):
        for value in values * times:
            total[place] = model.atomic(op, t, total[place], int(value) * factor % width)
    compare(f"{op}.{t} at the head of a loop", [], [], [int(b) for b in result.buffers["result"]], [sum(total) % width] * n, t)


INDICES = [("u8", 0), ("u8", 5), ("i8", 100), ("u16", -3), ("i16", 200), ("u32", 0), ("u32", 7), ("u32", -3), ("i32", 0), ("i32", 9),
           ("i32", -9), ("u64", 0), ("u64", 4), ("u64", -4), ("i64", 0), ("i64", 11), ("i64", -11)]


def indexed_case(rng, index_type, displacement, is_old_wanted):
    """For each lane: whether it takes part, and its index in `extent` elements. Old values are known only where each lane has
    an element of its own."""
    low, high = model.range_of(index_type)
    lanes, extent = 190, 174 + displacement % 16
    reachable = [p for p in range(extent) if low <= p - displacement <= high]
    places = rng.sample(reachable, len(reachable)) if is_old_wanted else [rng.choice(reachable[:9]) for _ in range(lanes)]
    indices = [p - displacement for p in places][:lanes]
    indices += [(high if high + displacement >= extent else low)] * (lanes - len(indices))
    wild = [i for i in (low, high, -1, extent, extent - displacement) if low <= i <= high and not 0 <= i + displacement < extent]
    for lane in rng.sample(range(lanes), 3) if rng.random() < 0.5 and wild else []:
        indices[lane] = rng.choice(wild)
    shape = rng.choice([0.1, 0.5, 1, 1])
    return [int(rng.random() < shape or lane < 32) for lane in range(lanes)], indices, extent


def indexed_text(op, t, space, index_type, displacement, is_old_wanted, extent):
    source = "r1, r2" if op == "atom.cas" else "r2"
    place = f"[{'s' if space == 'shared' else 'm'} + r0 + #{displacement}]"
    return f""".buffer index {index_type} in
.buffer c {t} in
.buffer x {t} in
.buffer part u8 in
.buffer m {t} inout
.buffer old {t} inout
.shared s {t} {extent}
    ldg.{index_type} r0, [index + lane]
    ldg.{t} r1, [c + lane]
    ldg.{t} r2, [x + lane]
    ldg.u8 r3, [part + lane]
{SPACES[space][0].format(t=t, extent=extent)}    set.ne.u8 p0, r3, #0
    @!p0 bra done
    {op}.{t} {'r4' if is_old_wanted else '_'}, {place}, {source}
{f'    stg.{t} [old + lane], r4' if is_old_wanted else ''}
done:
{SPACES[space][1].format(t=t, extent=extent)}    exit
"""


# What brings the buffer into shared memory, and what brings it back: each lane an element, those that there are.
SPACES = {"buffer": ("", ""), "shared": ("""    set.lt.u32 p1, blane, #{extent}
    @!p1 bra filled
    ldg.{t} r5, [m + blane]
    sts.{t} [s + blane], r5
filled:
    bar.sync
""", """    bar.sync
    @!p1 bra gone
    lds.{t} r5, [s + blane]
    stg.{t} [m + blane], r5
gone:
""")}


@pytest.mark.parametrize("is_old_wanted", [False, True], ids=["dropped", "kept"])
@pytest.mark.parametrize("space", ["buffer", "shared"])
@pytest.mark.parametrize("op, t", CASES, ids=IDS)
def test_indexed(executor, op, t, space, is_old_wanted):
    """Some of the lanes, at indices of all types, with displacements, now and then out of bounds."""
    if op in ("atom.cas", "atom.exch") and not is_old_wanted:
        return  # who comes last is nobody's business
    for index_type, displacement in INDICES:
        rng = generator("indexed", op, t, space, index_type, str(displacement), str(is_old_wanted))
        part, indices, extent = indexed_case(rng, index_type, displacement, is_old_wanted)
        lanes = len(part)
        values, compared, memory = random_bits(t, lanes, rng), random_bits(t, lanes, rng), random_bits(t, extent, rng)
        want, old, fault = list(memory), [7] * lanes, None
        for lane in range(lanes):
            place = indices[lane] + displacement
            if not part[lane]:
                continue
            old[lane] = 0 if is_old_wanted else 7
            if not 0 <= place < extent:
                fault = fault or (lane, max(-2 ** 63, min(place, 2 ** 63 - 1)))  # as far as records go
                continue
            if op == "atom.cas" and rng.random() < 0.5:
                compared[lane] = want[place]
            old[lane] = want[place] if is_old_wanted else 7
            operands = (compared[lane], values[lane]) if op == "atom.cas" else (values[lane],)
            want[place] = model.atomic(op, t, want[place], *operands)
        width = bits_of(index_type)
        buffers = {"index": array_of(index_type, [i % 2 ** width for i in indices]), "c": array_of(t, compared), "x": array_of(t, values),
                   "part": array_of("u8", part), "m": array_of(t, memory), "old": array_of(t, [7] * lanes)}
        result = executor.run(indexed_text(op, t, space, index_type, displacement, is_old_wanted, extent), grid=(1,), block=(lanes,),
                              buffers=buffers)
        what = f"{op}.{t} at {index_type} {displacement:+}"
        compare(what, [], [], [int(b) for b in result.buffers["m"]], want, t, SEED)
        compare(what + " old", [], [], [int(b) for b in result.buffers["old"]], old, t, SEED)
        assert (result.fault and (result.fault["lane"], result.fault["index"])) == fault, what


@pytest.mark.parametrize("t", OPS["atom.add"].types)
def test_many_workers(executor, t):
    """Launches so large that an engine uses all of its threads, each of which may keep its own count."""
    lanes, rng = 150_000, generator("workers", t)
    ops = sorted(FOLDS)
    values, starts = array_of(t, random_bits(t, lanes, rng)), {op: random_bits(t, 67, rng) for op in ops}
    names = {op: op[5:] for op in ops}
    declared = "\n".join(f".buffer {name} {t} inout" for name in names.values())
    atomics = "\n".join(f"    {op}.{t} _, [{name} + r3], r1" for op, name in names.items())
    text = f""".buffer x {t} in
{declared}
.buffer both {t} inout
    ldg.{t} r1, [x + lane]
    cvt.u32.u64 r3, lane
    rem.u32 r3, r3, #67
{atomics}
    atom.add.{t} _, [both + #0], #1
    atom.max.{t} _, [both + #1], r1
    exit
"""
    buffers = {name: array_of(t, starts[op]) for op, name in names.items()}
    result = executor.run(text, lanes=lanes, buffers={"x": values, "both": array_of(t, [5, 7]), **buffers})
    numbers = values.view(values.dtype.str.replace("u", "i")) if t[0] == "i" else values
    folds = {"atom.add": np.add, "atom.and": np.bitwise_and, "atom.or": np.bitwise_or, "atom.xor": np.bitwise_xor,
             "atom.min": np.minimum, "atom.max": np.maximum}
    for op, name in names.items():
        start = array_of(t, starts[op]).view(numbers.dtype)
        want = [int(folds[op].reduce(np.append(numbers[k::67], start[k]), dtype=numbers.dtype)) % 2 ** bits_of(t) for k in range(67)]
        compare(f"{op}.{t} by many workers", [], [], [int(b) for b in result.buffers[name]], want, t, SEED)
    assert [int(b) for b in result.buffers["both"]] == [5 + lanes, int(max(numbers.max(), 7)) % 2 ** bits_of(t)]


@pytest.mark.parametrize("t", OPS["atom.add"].types)
def test_old_values_are_all_different(executor, t):
    """atom.add with the old value: each lane gets a ticket of its own."""
    text = f""".buffer m {t} inout
.buffer result {t} out
    atom.add.{t} r0, [m + #0], #3
    stg.{t} [result + lane], r0
    exit
"""
    for result in executor.run_each(text, lanes=500, buffers={"m": array_of(t, [5]), "result": array_of(t, [0] * 500)}):
        assert sorted(int(b) for b in result.buffers["result"]) == [5 + 3 * i for i in range(500)]
        assert int(result.buffers["m"][0]) == 1505


@pytest.mark.parametrize("t", OPS["atom.cas"].types)
def test_cas_and_exch_let_one_lane_win(executor, t):
    text = f""".buffer m {t} inout
.buffer won {t} out
    cvt.{t}.u64 r0, lane
    add.{t} r0, r0, #1
    atom.cas.{t} r1, [m + #0], #0, r0
    atom.exch.{t} r2, [m + #1], r0
    set.eq.{t} p0, r1, #0
    sel.{t} r3, p0, #1, #0
    stg.{t} [won + lane], r3
    exit
"""
    for result in executor.run_each(text, lanes=300, buffers={"m": array_of(t, [0, 0]), "won": array_of(t, [0] * 300)}):
        won = [int(b) for b in result.buffers["won"]]
        assert sum(won) == 1 and int(result.buffers["m"][0]) == won.index(1) + 1
        assert 1 <= int(result.buffers["m"][1]) <= 300


def test_cas_with_the_number_of_a_lane(executor):
    """As what is compared, and as what is put: each lane finds its own number."""
    text = """.buffer m u64 inout
.buffer old u64 out
    stg.u64 [m + lane], lane
    atom.cas.u64 r1, [m + lane], lane, #77
    stg.u64 [old + lane], r1
    atom.cas.u64 r2, [m + lane], #77, lane
    exit
"""
    for result in executor.run_each(text, lanes=300, buffers={"m": array_of("u64", [9] * 300), "old": array_of("u64", [9] * 300)}):
        assert [int(b) for b in result.buffers["old"]] == [int(b) for b in result.buffers["m"]] == list(range(300))


@pytest.mark.parametrize("op, t", CASES, ids=IDS)
def test_out_of_bounds(executor, op, t):
    """The result is 0, nothing is stored, and the launch reports it."""
    sources = ", ".join(["#1"] * (len(OPS[op].operands) - 2))
    text = f""".buffer m {t} inout
.buffer result {t} out
    {op}.{t} r0, [m + lane], {sources}
    stg.{t} [result + lane], r0
    exit
"""
    result = executor.run(text, lanes=6, buffers={"m": array_of(t, [8, 9, 10, 11]), "result": array_of(t, [77] * 6)})
    assert [int(b) for b in result.buffers["result"]] == [8, 9, 10, 11, 0, 0]
    f = result.fault
    assert (f["kind"], f["instruction"], f["lane"], f["buffer"], f["index"], f["extent"]) == ("out_of_bounds", 0, 4, "m", 4, 4)
