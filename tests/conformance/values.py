"""Operand values: the special ones of every type, seeded random ones, and all of them where a type is small."""

import random
import zlib

from formats import FORMATS, from_exact, range_of
from tables import INT, bits_of, mask_of

SEED = 20240611


def generator(*what: str) -> random.Random:
    """A generator whose seed depends on the case only."""
    return random.Random(SEED + zlib.crc32("/".join(what).encode()))


def _int_specials(t: str) -> list[int]:
    low, high = range_of(t)
    width = bits_of(t)
    pattern = int("55" * (width // 8), 16)
    values = [0, 1, 2, 3, 5, 7, 10, width - 1, width, width + 1, 100, -1, -2, -3, -7, low, low + 1, high, high - 1, high // 2,
              high // 2 + 1, 1 << (width // 2), (1 << (width // 2)) - 1, pattern, pattern << 1]
    return list(dict.fromkeys(v & mask_of(t) for v in values))


def _float_specials(t: str) -> list[int]:
    f = FORMATS[t]
    inf, smallest_normal = f.infinity, 1 << f.fraction
    one = from_exact(t, 1.0)
    magnitudes = [0, 1, smallest_normal - 1, smallest_normal, smallest_normal + 1, one, one + 1, one - 1, f.largest, inf,
                  from_exact(t, 0.5), from_exact(t, 1.5), from_exact(t, 2.5), from_exact(t, 3.0),
                  from_exact(t, 2.0**f.fraction - 1), from_exact(t, 2.0 ** (f.fraction - 1) - 0.5)]
    negatives = [0, 1, smallest_normal, one, f.largest, inf, from_exact(t, 0.5), from_exact(t, 2.0)]
    quiet = 1 << (f.fraction - 1)
    nans = [f.nan, inf | 1, f.sign | inf | quiet | 5]  # canonical, signalling with a payload, negative with a payload
    return list(dict.fromkeys(magnitudes + [f.sign | m for m in negatives] + nans))


def specials(t: str) -> list[int]:
    if t == "bool":
        return [0, 1]
    if t in INT:
        return _int_specials(t)
    return list(range(256)) if bits_of(t) == 8 else _float_specials(t)


# What conversions meet: the edges of every integer type and of every float format, seen from a wide format.
def conversion_edges(t: str) -> list[int]:
    if t == "bool":
        return [0, 1]
    if t in INT:
        edges = [s * (1 << k) + d for k in range(64) for d in (-1, 0, 1) for s in (1, -1)]
        edges += [k << 11 | d for k in (0xFFF, 0x1001, 0x1FFF) for d in (0x3FF, 0x400, 0x401)]
        return specials(t) + list(dict.fromkeys(v & mask_of(t) for v in edges))
    values = set(specials(t))
    for k in (7, 8, 15, 16, 31, 32, 63, 64):
        near = from_exact(t, 2.0**k)
        values |= {near - 1, near, near + 1, from_exact(t, 2.0**k - 0.5), from_exact(t, 2.0**k - 1)}
    for narrow, f in FORMATS.items():
        for bits in (1, 2, 3, 1 << f.fraction, (1 << f.fraction) - 1, f.largest - 1, f.largest):
            values |= _halfway(t, narrow, bits)
    values = {v for v in values if v < FORMATS[t].sign}
    return sorted(values | {v | FORMATS[t].sign for v in values})


def _halfway(t: str, narrow: str, bits: int) -> set[int]:
    """A value of the narrow format, the ties on both sides of it, and their neighbours, as bits of t."""
    from formats import to_float

    value, step = to_float(narrow, bits), to_float(narrow, bits) - to_float(narrow, bits - 1)
    out = set()
    for x in (value, value - step / 2, value + step / 2):
        near = from_exact(t, x) if abs(x) < 1e308 else 0
        out |= {near, near + 1, max(near - 1, 0)}
    return {v for v in out if v <= FORMATS[t].sign - 1}


def random_bits(t: str, count: int, rng: random.Random) -> list[int]:
    """Half any bits, half of moderate size, so that sums and products are ordinary."""
    if t == "bool":
        return [rng.getrandbits(1) for _ in range(count)]
    width = bits_of(t)
    out = [rng.getrandbits(width) for _ in range(count // 2)]
    if t in INT:
        out += [rng.randint(-300, 300) & mask_of(t) for _ in range(count - len(out))]
    else:
        spread = 3 if width == 8 else 8
        out += [from_exact(t, rng.uniform(-1, 1) * 2.0 ** rng.randint(-spread, spread)) for _ in range(count - len(out))]
    rng.shuffle(out)
    return out


def foldable(op: str, t: str, count: int, rng: random.Random) -> list[int]:
    """What a block folds or scans by op: of floats ordinary numbers, whose last bits show the order, where any bits soon make NaN or
    infinity of all."""
    if t in INT:
        return random_bits(t, count, rng)
    spread = 0.1 if op.endswith("mul") else 0.9  # a product of a thousand stays a number
    return [from_exact(t, rng.uniform(1 - spread, 1 + spread) * rng.choice((-1, 1))) for _ in range(count)]
