"""What circuits mean, in Python and NumPy, and random ones: drawn as lists, not as text, so that nothing here parses what the library
does. A sequence is a list of parallels, a parallel a list of items, an item a dict; the last of a sequence runs first."""

import random
import re

import numpy as np

CLASSES, BYTES = 96, 12288
OPERATIONS = {"add": "merge", "mul": "merge", "min": "merge", "max": "merge", "sub": "split", "div": "split"}
NO_TURN = (0, 0, 0)


def byte_of(c):
    """The canonical byte of a class."""
    h2, d, low = c // 24, c % 24 // 8, c % 8
    return h2 << 6 | (0x00, 0x10, 0x20)[d] | low << 1


def turned(turn, c):
    h2, d, low = c // 24, c % 24 // 8, c % 8
    d = {0: 0, 1: 2, 2: 1}[d] if turn[2] else d
    return 24 * ((h2 + turn[0]) % 4) + 8 * d + (low + turn[1]) % 8


def product(*turns):
    r, t, m = map(sum, zip(*turns))
    return r % 4, t % 8, m % 2


# ---- what a circuit does --------------------------------------------------------------------------------------------


def events(sequence, turn, names):
    """(generator, operation, places) of all that runs, in order, and ("bind", name, events) where a name is given a circuit."""
    quotes = [i for i, parallel in enumerate(sequence) if parallel[0]["kind"] == "quote"]
    done, rest = [], sequence
    if quotes:
        rest = sequence[: quotes[0]]
        kept = events(sequence[quotes[0] + 1 :], turn, dict(names))
        for name in sequence[quotes[0]][0]["places"]:
            names[name] = kept
            done.append(("bind", name, kept))
    for parallel in reversed(rest):
        for item in reversed(parallel):
            done += events_of_item(item, product(turn, item["turn"]), names)
    return done


def events_of_item(item, turn, names):
    if item["kind"] == "group":
        return events(item["sequence"], turn, names)
    if item["kind"] == "evaluate":
        done = []
        for event in names.get(item["places"][0], []):
            if event[0] == "bind":
                names[event[1]] = event[2]
            done.append(event if event[0] == "bind" else (event[0], event[1], tuple(turned(turn, c) for c in event[2])))
        return done
    if item["kind"] == "mark":
        return [("mark", "", (turned(turn, c),)) for c in item["places"]]
    if item["kind"] == "nothing":
        return []
    return [(item["kind"], item["operation"], tuple(turned(turn, c) for c in item["places"]))]


def steps_of(sequence):
    return [event for event in events(sequence, NO_TURN, {}) if event[0] != "bind"]


def steps_of_canonical(text):
    """The steps of a canonical text, which has no groups, in the order in which they run."""
    steps = []
    for step in reversed(text.split(" . ") if text else []):
        name, variant, rest = re.fullmatch(r"(\w+)(?::(\w+))?@(.*)", step).groups()
        places = tuple(int(n) if kind == "c" else CLASSES + int(n) for kind, n in re.findall(r"([ct])(\d+)", rest))
        steps.append((name, variant or {"merge": "add", "split": "sub"}.get(name, ""), places))
    return steps


def compute(operation, x, y):
    """An f32 operation as the ISA defines it: one NaN, -0 below +0."""
    with np.errstate(all="ignore"):
        if operation in ("min", "max"):
            low = (x < y) | ((x == y) & np.signbit(x))
            result = np.where(low == (operation == "min"), x, y)
            result = np.where(np.isnan(x) | np.isnan(y), np.float32(np.nan), result)
        else:
            result = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[operation](x, y)
    bits = result.astype(np.float32).view(np.uint32)
    return np.where(np.isnan(result), np.uint32(0x7FC00000), bits)


def run(steps, pool):
    """On a dict from places to arrays of bytes, which are replaced and never changed."""
    for kind, operation, places in steps:
        if kind == "mark":
            pool[places[0]] = pool[places[0]] ^ np.uint8(byte_of(places[0]))
        elif kind == "copy":
            pool[places[1]] = pool[places[0]]
        elif kind == "swap":
            pool[places[0]], pool[places[1]] = pool.get(places[1]), pool.get(places[0])
        else:
            x, y = (pool[c].view(np.float32) for c in places[:2])
            pool[places[2]] = compute(operation, x, y).view(np.uint8)


def touched(steps):
    return {c for _, _, places in steps for c in places}


# ---- random circuits ------------------------------------------------------------------------------------------------


def draw_turn(r):
    return (r.randrange(4), r.randrange(8), r.randrange(2)) if r.random() < 0.3 else NO_TURN


def draw_item(r, classes, depth, is_alone):
    """An item on some of these classes."""
    draw = r.random()
    item = {"turn": draw_turn(r), "operation": "", "places": [r.choice(classes) for _ in range(3)]}
    if draw < 0.3:
        item |= {"kind": "mark", "places": item["places"][:1]}
        if r.random() < 0.2:
            item["places"] = list(range(item["places"][0], min(CLASSES, item["places"][0] + r.randrange(1, 4))))
    elif draw < 0.45:
        item |= {"kind": "copy", "places": item["places"][:2]}
    elif draw < 0.6:
        item |= {"kind": "swap", "places": item["places"][:2]}
    elif draw < 0.8:
        operation = r.choice(list(OPERATIONS))
        item |= {"kind": OPERATIONS[operation], "operation": operation}
    elif draw < 0.83:
        item |= {"kind": "nothing"}
    elif draw < 0.9 and is_alone:
        item |= {"kind": "evaluate", "places": [r.randrange(3)]}
    elif depth > 0:
        item |= {"kind": "group", "sequence": draw_sequence(r, classes, depth - 1, is_alone)}
    else:
        item |= {"kind": "mark", "places": item["places"][:1]}
    return item


def draw_parallel(r, classes, depth, is_alone):
    if is_alone and r.random() < 0.08:
        return [{"kind": "quote", "turn": draw_turn(r), "places": list(range(r.randrange(3), 3))[: r.randrange(1, 3)]}]
    if r.random() < 0.75:
        return [draw_item(r, classes, depth, is_alone)]
    parallel, used = [], set()
    for _ in range(r.randrange(2, 4)):
        item = draw_item(r, classes, depth, False)
        places = touched(steps_of([[item]]))
        if not used & places:
            parallel.append(item)
            used |= places
    return parallel


def draw_sequence(r, classes, depth, is_alone=True):
    return [draw_parallel(r, classes, depth, is_alone) for _ in range(r.randrange(1, 6 if depth else 4))]


def draw_circuit(seed):
    r = random.Random(seed)
    return draw_sequence(r, r.sample(range(CLASSES), r.randrange(1, 8)), r.randrange(3))


# ---- text -----------------------------------------------------------------------------------------------------------


def write_turn(r, turn):
    """Prefixes and postfixes, in some order, with some that cancel each other."""
    front, back = [], []
    for letter, postfix, exponent, order in (("R", "^", turn[0], 4), ("T", "v", turn[1], 8)):
        while exponent:
            part = r.randrange(1, exponent + 1)
            exponent -= part
            part -= r.choice((0, 0, order))
            front, back = (front + [f"{letter}{part:+d}"], back) if r.random() < 0.6 else (front, back + [f"{postfix}{part}"])
    for _ in range(turn[2] + r.choice((0, 0, 0, 2))):
        front, back = (front + ["~"], back) if r.random() < 0.5 else (front, back + ["~"])
    r.shuffle(front), r.shuffle(back)
    return "".join(part + r.choice(("", " ", "@", " @ ")) for part in front), "".join(back)


def write_class(r, c):
    return r.choice((f"c{c}", f"c{c:02}", f"c{c:04}"))


def write_item(r, item):
    front, back = write_turn(r, item["turn"])
    if item["kind"] == "group":
        return f"{front}({write(r, item['sequence'])}){back}"
    names = [write_class(r, c) for c in item["places"]]
    if item["kind"] in ("mark", "quote", "evaluate"):
        places = item["places"]
        rest = names[0] if len(places) == 1 and r.random() < 0.9 else f"c[{places[0]}..{places[-1]}]"
        return f"{front}{item['kind']}@{rest}{back}"
    if item["kind"] == "nothing":
        return f"{front}merge@{names[0]}{back}"
    rest = {"copy": "{}->{}", "swap": "{} <-> {}"}.get(item["kind"], "{}[{}, {}]").format(*names)
    variant = "" if item["operation"] in ("", "add", "sub") and r.random() < 0.5 else item["operation"]
    return f"{front}{item['kind']}{':' + variant if variant else ''}@{rest}{back}"


def write(r, sequence):
    return r.choice((" . ", ".", "\n. ")).join(" || ".join(write_item(r, i) for i in parallel) for parallel in sequence)


# ---- contents -------------------------------------------------------------------------------------------------------

SPECIAL = np.array([0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC12345,
                    0x7F800001, 0x3F800000, 0xBF800000, 0x40490FDB, 0x00400000, 0x0C000000, 0x33800000], np.uint32)


def contents(seed):
    """96 classes: random bits, special values, ordinary numbers and what is near the smallest ones."""
    r = np.random.default_rng(seed)
    words = r.integers(0, 1 << 32, (CLASSES, BYTES // 4), dtype=np.uint32)
    kind = r.integers(0, 4, words.shape)
    words = np.where(kind == 1, SPECIAL[r.integers(0, len(SPECIAL), words.shape)], words)
    words = np.where(kind == 2, r.standard_normal(words.shape).astype(np.float32).view(np.uint32), words)
    words = np.where(kind == 3, words & np.uint32(0x80FFFFFF), words)
    return words.view(np.uint8)
