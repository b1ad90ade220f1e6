"""Every pure instruction x type against the model: all combinations of special values, seeded random bits, constants and
scalar parameters in every slot, and a destination that is also a source."""

import pytest

import model
from harness import array_of, build, compare, literal, result_type, rows_of, run_columns, slot_type, suffixed
from tables import FLOAT, OPS, STORAGE, TYPES, bits_of
from values import SEED, conversion_edges, generator, random_bits, specials

pytestmark = pytest.mark.engine

RANDOM_ROWS = 1500
WIDTH_PAIRS = [(d, s) for d in OPS["bitcast"].types for s in OPS["bitcast"].types if bits_of(d) == bits_of(s)]
TYPED = [(op.name, t, None) for op in OPS.values() if op.name in model.PURE and "SECOND" not in op.flags for t in op.types or ()
         if op.name != "movi"]
CONVERSIONS = [("cvt", d, s) for d in OPS["cvt"].types for s in OPS["cvt"].types]
CASTS = [("bitcast", d, s) for d, s in WIDTH_PAIRS]
EVERY = TYPED + CONVERSIONS + CASTS
NAMES = [suffixed(*case) for case in EVERY]


def kinds_of(op, t, t2):
    return [slot_type(letter, t, t2) for letter in OPS[op].operands[1:]]


def check(executor, op, t, t2, columns, seed="none", **how):
    want = model.evaluate(op, t, t2, columns)
    got = run_columns(executor, op, t, t2, columns, **how)
    compare(suffixed(op, t, t2), kinds_of(op, t, t2), columns, got, want, result_type(op, t), seed)


def slot_values(op, letter, kind):
    if letter == "q":
        return [0, 1]
    if op in model.DOT and letter == "c":
        return [0, 1, 0x01010101, 0x7F7F7F7F, 0x80808080, 0x81818181, 0xFFFFFFFF, 0x7F80FF01, 0x80FF7F00, 0x00FF0080, 0x12345678]
    if letter == "c":
        return [0, 1, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 65, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF]
    if op == "sel" and bits_of(kind) == 8:
        return specials(kind)[:: 11 if len(specials(kind)) > 50 else 1]
    return specials(kind)


@pytest.mark.parametrize("op, t, t2", EVERY, ids=NAMES)
def test_special_values(executor, op, t, t2):
    letters = OPS[op].operands[1:]
    if op in ("cvt", "bitcast"):
        columns = [conversion_edges(t2)]
    else:
        columns = rows_of([slot_values(op, letter, kind) for letter, kind in zip(letters, kinds_of(op, t, t2))])
    check(executor, op, t, t2, columns)


@pytest.mark.parametrize("op, t, t2", EVERY, ids=NAMES)
def test_random_bits(executor, op, t, t2):
    rng = generator("random", op, t, t2 or "")
    letters = OPS[op].operands[1:]
    kinds = kinds_of(op, t, t2)
    if len(kinds) == 1 and bits_of(kinds[0]) == 16 and op in ("cvt", "sqrt", "recip", "floor", "ceil", "trunc", "round"):
        columns = [list(range(0, 65536, 7 if op == "cvt" else 3))]
    else:
        columns = [[b & 1 for b in random_bits("u8", RANDOM_ROWS, rng)] if letter == "q" else random_bits(kind, RANDOM_ROWS, rng)
                   for letter, kind in zip(letters, kinds)]
    check(executor, op, t, t2, columns, SEED)


@pytest.mark.parametrize("t", FLOAT)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma", "mad"])
def test_near_the_edges(executor, op, t):
    """Sums that cancel, results around the smallest normal and the largest finite value, ties."""
    rng = generator("edges", op, t)
    rows = []
    width = bits_of(t)
    for _ in range(1200):
        a = rng.getrandbits(width)
        b = a ^ rng.getrandbits(4) ^ (rng.getrandbits(1) << (width - 1))
        c = rng.choice([rng.getrandbits(width), a, model.evaluate_one("neg", t, None, model.evaluate_one("mul", t, None, a, b))])
        rows.append((a, b, c))
    columns = [list(x) for x in zip(*rows)][: len(OPS[op].operands) - 1]
    check(executor, op, t, None, columns, SEED)


CONSTANT_CASES = [(op, t, t2) for op, t, t2 in EVERY if t not in STORAGE and t2 not in STORAGE
                  and any(letter in "stcn" for letter in OPS[op].operands[1:])]


@pytest.mark.parametrize("op, t, t2", CONSTANT_CASES, ids=[suffixed(*c) for c in CONSTANT_CASES])
def test_constants(executor, op, t, t2):
    """Every slot in turn holds each special value as a constant; one instruction a value, all in one program."""
    letters, kinds = OPS[op].operands[1:], kinds_of(op, t, t2)
    for slot, (letter, kind) in enumerate(zip(letters, kinds), 1):
        if letter == "q":
            continue
        rng = generator("constants", op, t, t2 or "", str(slot))
        values = slot_values(op, letter, kind)[:26]
        rows = [[b & 1 for b in random_bits("u8", 16, rng)] if x == "q" else random_bits(k, 16, rng)
                for x, k in zip(letters, kinds)]
        constant_program(executor, op, t, t2, slot, kind, values, rows)


def constant_program(executor, op, t, t2, slot, kind, values, columns):
    lines = build(op, t, t2, {slot: "CONSTANT"}).split("\n")
    at = next(i for i, line in enumerate(lines) if "CONSTANT" in line)
    count = len(columns[0])
    body = []
    for k, value in enumerate(values):
        for line in lines[at : lines.index("    exit")]:
            body.append(line.replace("CONSTANT", literal(kind, value)).replace("result + lane", f"result + lane + #{k * count}"))
    text = "\n".join(lines[:at] + body + ["    exit", ""])
    buffers = {f"a{i}": array_of(k, c) for i, (k, c) in enumerate(zip(kinds_of(op, t, t2), columns), 1) if i != slot}
    buffers["result"] = array_of(result_type(op, t), [0] * (count * len(values)))
    result = executor.run(text, lanes=count, buffers=buffers)
    assert result.fault is None, result.fault
    full = [column * len(values) for column in columns]
    full[slot - 1] = [v for v in values for _ in range(count)]
    compare(f"{suffixed(op, t, t2)} with a constant in slot {slot}", kinds_of(op, t, t2), full,
            [int(b) for b in result.buffers["result"]], model.evaluate(op, t, t2, full), result_type(op, t))


@pytest.mark.parametrize("op, t, t2", CONSTANT_CASES, ids=[suffixed(*c) for c in CONSTANT_CASES])
def test_scalars(executor, op, t, t2):
    """Scalar parameters in every slot that takes a value, all slots at once and one at a time."""
    letters, kinds = OPS[op].operands[1:], kinds_of(op, t, t2)
    rng = generator("scalars", op, t, t2 or "")
    columns = [[b & 1 for b in random_bits("u8", 8, rng)] if x == "q" else random_bits(k, 8, rng) for x, k in zip(letters, kinds)]
    slots = [i for i, letter in enumerate(letters, 1) if letter in "stc"]
    for chosen in ([slots] + [[s] for s in slots]) if len(slots) > 1 else [slots]:
        scalars = {f"s{i}": (kinds[i - 1], rng.choice(specials(kinds[i - 1]))) for i in chosen}
        full = [[scalars[f"s{i}"][1]] * 8 if i in chosen else c for i, c in enumerate(columns, 1)]
        check(executor, op, t, t2, full, SEED, fixed={i: f"s{i}" for i in chosen}, scalars=scalars)


ALIAS = [(op, t) for op, t, _ in TYPED if OPS[op].operands in ("ds", "dss", "dsss")]


@pytest.mark.parametrize("op, t", ALIAS, ids=[suffixed(*c) for c in ALIAS])
def test_destination_is_a_source(executor, op, t):
    values = specials(t)
    sources = len(OPS[op].operands) - 1
    text = f""".buffer x {t} inout
    ldg.{t} r0, [x + lane]
    {op}.{t} {', '.join(['r0'] * (sources + 1))}
    stg.{t} [x + lane], r0
    exit
"""
    result = executor.run(text, lanes=len(values), buffers={"x": array_of(t, values)})
    columns = [values] * sources
    compare(f"{op}.{t} r0 <- r0", [t] * sources, columns, [int(b) for b in result.buffers["x"]],
            model.evaluate(op, t, None, columns), t)


@pytest.mark.parametrize("t", OPS["movi"].types)
def test_movi(executor, t):
    values = specials(t)
    lines = [f".buffer result {t} out"]
    for k, v in enumerate(values):
        lines += [f"    movi.{t} r0, {literal(t, v)}", f"    stg.{t} [result + #{k}], r0"]
    result = executor.run("\n".join(lines + ["    exit", ""]), lanes=1, buffers={"result": array_of(t, [0] * len(values))})
    compare(f"movi.{t}", [t], [values], [int(b) for b in result.buffers["result"]], values, t)


PREDICATE = ["pand", "por", "pxor", "pnot"]


@pytest.mark.parametrize("op", PREDICATE)
@pytest.mark.parametrize("destination", range(16))
def test_predicates(executor, op, destination):
    a, b = (destination + 5) % 16, (destination if destination % 3 == 0 else (destination + 9) % 16)
    sources = [f"p{a}", f"p{b}"][: len(OPS[op].operands) - 1]
    text = f""".buffer x u8 in
.buffer y u8 in
.buffer result u8 out
    ldg.u8 r0, [x + lane]
    ldg.u8 r1, [y + lane]
    set.ne.u8 p{a}, r0, #0
    set.ne.u8 p{b}, r1, #0
    {op} p{destination}, {', '.join(sources)}
    sel.u8 r2, p{destination}, #1, #0
    stg.u8 [result + lane], r2
    exit
"""
    columns = [[0, 0, 1, 1], [0, 1, 0, 1]]
    result = executor.run(text, lanes=4, buffers={"x": array_of("u8", columns[0]), "y": array_of("u8", columns[1]),
                                                   "result": array_of("u8", [9] * 4)})
    used = columns[: len(sources)]
    compare(f"{op} p{destination}, {sources}", ["u8"] * len(used), used, [int(b) for b in result.buffers["result"]],
            model.evaluate(op, None, None, used), "u8")


def test_every_register(executor):
    """r0..r251 hold their own values."""
    lines = [".buffer result u32 out"] + [f"    add.u64 r{i}, lane, #{i * 3}" for i in range(252)]
    for i in range(252):
        lines += [f"    cvt.u32.u64 r{i}, r{i}", f"    stg.u32 [result + #{i}], r{i}"]
    result = executor.run("\n".join(lines + ["    exit", ""]), lanes=1, buffers={"result": array_of("u32", [0] * 252)})
    assert list(result.buffers["result"]) == [i * 3 for i in range(252)]


def test_nothing_is_left_out():
    """Every instruction of the table is covered: here, or by the tests named."""
    elsewhere = {
        "test_machine (memory)": {"ldg", "stg", "lds", "sts", "ldl", "stl", "ldc", "pool.alloc", "pool.free", "pool.load", "pool.store"},
        "test_machine": {"bra", "loop", "call", "ret", "exit", "trap", "bar.sync", "mem.fence", "mem.fence.grid", "sreg"},
        "test_lengths": {"len"},
        "test_rank": {"rank"},
        "test_classes": {"cls.get", "res.accum", "phase.get", "phase.adv", *model.CLASS_OPS},
        "test_atomics": {name for name, op in OPS.items() if "ATOMIC" in op.flags},
        "test_collectives": {name for name in OPS if name.split(".")[0] in ("reduce", "scan", "vote")},
        "test_functions": {name for name, op in OPS.items() if "FUNC" in op.flags},
    }
    covered = model.PURE.union(*elsewhere.values())
    assert covered == set(OPS), covered ^ set(OPS)
    assert {t for op in OPS.values() for t in op.types} == set(TYPES)


@pytest.mark.parametrize("op, t", [(op, t) for op in ("div", "rem") for t in OPS["div"].types if t[0] in "iu"],
                         ids=[f"{op}.{t}" for op in ("div", "rem") for t in OPS["div"].types if t[0] in "iu"])
def test_quotients_near_whole_numbers(executor, op, t):
    """Multiples of a divisor, and their neighbours, where a quotient that is a little off shows. One divisor for all lanes, as
    a constant and as a scalar."""
    rng, mask = generator("quotients", op, t), (1 << bits_of(t)) - 1
    divisors = [1, 3, 7, 10, mask >> 1, mask, mask - 6] + [b >> rng.randrange(bits_of(t)) or 1 for b in random_bits(t, 9, rng)]
    for divisor in divisors:
        most = mask // divisor
        factors = [0, 1, 2, most - 1, most] + [rng.randrange(most + 1) for _ in range(15)]
        dividends = [(f * divisor + near) & mask for f in factors for near in (-1, 0, 1)]
        columns = [dividends, [divisor] * len(dividends)]
        check(executor, op, t, None, columns, SEED, fixed={2: literal(t, divisor)})
        check(executor, op, t, None, columns, SEED, fixed={2: "s2"}, scalars={"s2": (t, divisor)})
