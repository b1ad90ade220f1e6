"""What x[key] names, in plain Python: a model of NumPy's indexing, which test_indexing.py holds to NumPy itself, and the package to it.

A key is a tuple of ints, bools, slices, None, ... and Numbers. Positions count the elements of an array in C order."""

from dataclasses import dataclass
from itertools import product
from math import prod


@dataclass
class Numbers:
    """An array of integers, or of bool, as a part of a key: its shape, and its elements in C order."""

    shape: tuple
    values: list
    is_mask: bool = False


class Refused(Exception):
    """What NumPy refuses, too."""


def together(shapes):
    """The shape that arrays have together."""
    made = [1] * max(map(len, shapes), default=0)
    for shape in shapes:
        for d, size in enumerate(shape, len(made) - len(shape)):
            if size != made[d] and 1 not in (size, made[d]):
                raise Refused(f"{shapes} do not broadcast")
            made[d] = size if made[d] == 1 else made[d]
    return tuple(made)


def strides(shape):
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def spread(shape, values, target):
    """The elements of an array that is broadcast to a shape."""
    own = [0 if size == 1 else stride for size, stride in zip(shape, strides(shape))]
    own = [0] * (len(target) - len(shape)) + own
    return [values[sum(i * s for i, s in zip(place, own))] for place in product(*map(range, target))]


def axes_of(part):
    if part is None or part is ... or isinstance(part, bool):
        return 0
    return len(part.shape) if isinstance(part, Numbers) and part.is_mask else 1


def places_of(part, sizes):
    """Of a part that is no range: arrays of numbers, one for each of its axes."""
    if isinstance(part, Numbers) and part.is_mask:
        if any(length not in (0, size) for length, size in zip(part.shape, sizes)):
            raise Refused(f"a mask of {part.shape} along {sizes}")
        hold = [place for place, holds in zip(product(*map(range, part.shape)), part.values) if holds]
        return [Numbers((len(hold),), [place[d] for place in hold]) for d in range(len(sizes))]
    numbers = part if isinstance(part, Numbers) else Numbers((), [part])
    return [numbers]


def select(shape, key):
    """The shape of x[key], and the positions of its elements in C order."""
    parts = list(key)
    if sum(part is ... for part in parts) > 1 or sum(map(axes_of, parts)) > len(shape):
        raise Refused("too many parts")
    at = next((i + 1 for i, part in enumerate(parts) if part is ...), len(parts))
    parts[at:at] = [slice(None)] * (len(shape) - sum(map(axes_of, parts)))
    has_places = any(isinstance(part, (bool, Numbers)) for part in parts)
    step, axis, kept, named, counts, where = strides(shape), 0, [], [], [], []
    for i, part in enumerate(parts):
        sizes, own = shape[axis : axis + axes_of(part)], step[axis : axis + axes_of(part)]
        axis += len(sizes)
        if part is None:
            kept.append((i, [0]))
        elif isinstance(part, slice):
            kept.append((i, [number * own[0] for number in range(*part.indices(sizes[0]))]))
        elif part is not ...:
            where.append(i)
            if isinstance(part, bool):
                counts.append((int(part),))
                continue
            numbers = places_of(part, sizes)
            counts += [n.shape for n in numbers]
            named += zip(numbers, sizes, own)
    all_named = together(counts)
    for numbers, size, _ in named:
        is_checked = 0 not in all_named or numbers.shape == ()
        if is_checked and any(not -size <= number < size for number in numbers.values):
            raise Refused(f"a number beyond {size}")
    sums = [0] * prod(all_named)
    for numbers, size, stride in named if 0 not in all_named else ():
        sums = [s + number % size * stride for s, number in zip(sums, spread(numbers.shape, numbers.values, all_named))]
    is_beside = has_places and where[-1] - where[0] + 1 == len(where)
    first = sum(i < where[0] for i, _ in kept) if is_beside else 0
    before, after = [offsets for _, offsets in kept[:first]], [offsets for _, offsets in kept[first:]]
    made = (*map(len, before), *all_named, *map(len, after))
    return made, [sum(place) for place in product(*before, sums, *after)]


def assign(elements, shape, key, value_shape, values):
    """The elements of an array after x[key] = value: of several for one place the last one stays. And which stays at each place."""
    made, positions = select(shape, key)
    last = value_shape[len(value_shape) - len(made) :] if len(value_shape) > len(made) else value_shape
    if 0 in last and any(isinstance(part, (bool, Numbers)) for part in key):
        value_shape = last  # of nothing, leading axes of any size may be too many
    while len(value_shape) > len(made) and value_shape[0] == 1:
        value_shape = value_shape[1:]
    if together([made, value_shape]) != made:
        raise Refused(f"{value_shape} into {made}")
    numbers = spread(value_shape, list(range(len(values))), made)
    elements, stays = list(elements), {}
    for position, number in zip(positions, numbers):
        elements[position] = values[number]
        stays[position] = number
    return elements, stays
