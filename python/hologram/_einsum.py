"""einsum: sums of products of any number of arrays, whose axes have names. It becomes products of matrices, two arrays at a time."""

from __future__ import annotations

from functools import lru_cache

from hologram import _core
from hologram._create import arrays_beside, integers_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from collections.abc import Iterable, Sequence
    from typing import Any

    from hologram._core import Array

    Name = str | int  # a letter, or a negative number: an axis of '...', counted from the last
    Names = tuple[Name, ...]
    Term = tuple[Array, Names]
    Path = tuple[tuple[int, ...], ...]

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MOST_TRIED = 7  # arrays whose every order is looked at; of more, pairs are joined first
_SHOWN = "einsum: "


def einsum(*operands: Any, optimize: Any = True) -> Array:
    """Einstein's summation: products of arrays, summed over the axes whose names the result does not have.

    `einsum("ij,jk->ik", a, b)`: a letter for each axis, a comma between arrays, the result's axes behind `->`. Without `->` the result
    has the letters that occur once, in alphabetical order. A letter twice in one array takes the diagonal. `...` stands for any axes,
    which broadcast. Or lists of numbers: `einsum(a, [0, 1], b, [1, 2], [0, 2])`. An axis of one element broadcasts.

    Any number of arrays, one list of them, NumPy's arrays; they become of one type, the result's. Of bool it is `any` of `and`. Two arrays
    are contracted at a time, in order C, in which `einsum("ij,jk", a, b)` has the bits of `a @ b`; inner products, which leave neither
    array an axis of its own, are sums in order F, as `vecdot`, and so is what only one array has. optimize: True: the pairs that multiply
    least, by the sizes alone (the best order of up to 7 arrays); False: from left to right; or a list of pairs as `numpy.einsum_path`
    gives. The order of pairs is the only thing that decides about bits.

    ValueError: names, axes or sizes that do not fit; the sentence says which. Gradients flow to all arrays.
    Source: A. Einstein, Die Grundlage der allgemeinen Relativitätstheorie (1916), section 5.

    a, b = hg.ones((2, 3)), hg.ones((3, 4))
    hg.einsum("ij,jk->ik", a, b)             # a @ b
    hg.einsum("ii", hg.eye(3))               # the trace"""
    names, result, arrays = _read(operands)
    arrays, is_bool = _of_one_type(arrays)
    names = tuple(_named(own, x.ndim, i) for i, (own, x) in enumerate(zip(names, arrays)))
    sizes = _sizes(names, arrays)
    result = _result_of(names, result)
    terms = [_alone(x, own, _others(names, i, result), sizes) for i, (x, own) in enumerate(zip(arrays, names))]
    path = _path_of(optimize, tuple(own for _, own in terms), result, tuple(sizes.items()))
    for chosen in path:
        pair = [terms[i] for i in chosen]
        terms = [term for i, term in enumerate(terms) if i not in chosen]
        for _ in pair[1:]:
            kept = _kept([own for _, own in (*terms, *pair[2:])], result)
            pair = [_contracted(pair[0], pair[1], kept, sizes), *pair[2:]]
        terms.append(pair[0])
    made, own = terms[0]
    made = _ordered(made, own, result)
    return made != 0 if is_bool else +made


# ---- reading ------------------------------------------------------------------------------------------------------------

def _read(operands: tuple[Any, ...]) -> tuple[tuple[Names, ...], Names | None, list[Any]]:
    """The names of each array's axes, in which '...' is 0, those of the result (None: they are not given), and the arrays."""
    if operands and isinstance(operands[0], str):
        names, result = _read_text(operands[0])
        arrays = list(operands[1:])
        if len(arrays) == 1 and isinstance(arrays[0], (list, tuple)) and (len(names) > 1 or _is_array(arrays[0][0])):
            arrays = list(arrays[0])
    elif len(operands) > 1:
        lists = [_of_list(part) for part in operands[1::2]]
        names, result = tuple(lists), _of_list(operands[-1]) if len(operands) % 2 else None
        arrays = list(operands[: 2 * len(lists) : 2])
    else:
        raise TypeError(f"{_SHOWN}it takes the names of axes and arrays: hg.einsum('ij,jk->ik', a, b)")
    if len(names) != len(arrays):
        raise ValueError(f"{_SHOWN}names of {len(names)} array{'s' * (len(names) != 1)} stand in {operands[0]!r}; {len(arrays)} are given")
    return names, result, arrays


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape")


@lru_cache(256)
def _read_text(text: str) -> tuple[tuple[Names, ...], Names | None]:
    before, arrow, after = text.replace(" ", "").partition("->")
    return tuple(_of_text(text, part) for part in before.split(",")), _of_text(text, after) if arrow else None


def _of_text(text: str, part: str) -> Names:
    letters = part.replace("...", "\0", 1)
    for letter in letters:
        if letter not in _LETTERS and letter != "\0":
            wanted = "'...' stands once for each array" if letter == "." else "axes are named by letters, with ',', '->' and '...' between"
            raise ValueError(f"{_SHOWN}{letter!r} in {text!r}; {wanted}")
    return tuple(0 if letter == "\0" else letter for letter in letters)


def _of_list(numbers: Any) -> Names:
    if isinstance(numbers, str) or not hasattr(numbers, "__iter__"):
        raise TypeError(f"{_SHOWN}behind an array stands the list of its axes' numbers, not {numbers!r}; names in one text come first")
    made: list[Name] = []
    for part in numbers:
        number = -1 if part is Ellipsis else integers_of(part)[0]
        if part is not Ellipsis and not 0 <= number < len(_LETTERS) or part is Ellipsis and 0 in made:
            raise ValueError(f"{_SHOWN}axes are numbered from 0 to {len(_LETTERS) - 1}, and ... stands once; not {list(numbers)!r}")
        made.append(0 if part is Ellipsis else _LETTERS[number])
    return tuple(made)


def _of_one_type(operands: list[Any]) -> tuple[list[Array], bool]:
    """The arrays, as one type; of bool as float32, whose sums of ones are 0 only where all are."""
    given = [x for x in operands if not isinstance(x, (bool, int, float))] or operands
    arrays = iter(arrays_beside(given))
    operands = [x if isinstance(x, (bool, int, float)) and given is not operands else next(arrays) for x in operands]
    types = {x.dtype for x in operands if isinstance(x, _core.Array)}
    kinds = [_core._scalar(0, kind) for kind in types]
    together = kinds[0]
    for other in (*kinds[1:], *(x for x in operands if isinstance(x, (int, float)) and not isinstance(x, bool))):
        together = together + other
    is_bool = together.dtype.kind == "bool"
    dtype = "float32" if is_bool else together.dtype
    return [x.astype(dtype) if isinstance(x, _core.Array) else _core._scalar(x, dtype) for x in operands], is_bool


def _shown(names: Names) -> str:
    return "".join("..." if name == 0 else str(name) for name in names)


def _named(names: Names, rank: int, number: int) -> Names:
    """A name for each axis: those of '...' are negative numbers, counted from the last of them."""
    more = rank - len(names) + 1 if 0 in names else 0
    if more < 0 or 0 not in names and rank != len(names):
        raise ValueError(f"{_SHOWN}{_shown(names)!r} names {len(names) - (0 in names)} axes of array {number}, which has {rank}")
    place = names.index(0) if 0 in names else 0
    return (*names[:place], *range(-more, 0), *names[place + 1 :]) if 0 in names else names


def _sizes(names: tuple[Names, ...], arrays: list[Array]) -> dict[Name, int]:
    """The size of each name's axes, of which those of one element broadcast."""
    sizes: dict[Name, int] = {}
    where: dict[Name, int] = {}
    for number, (own, x) in enumerate(zip(names, arrays)):
        for name, size in zip(own, x.shape):
            if sizes.get(name, 1) != 1 and size not in (1, sizes[name]):
                shown = f"axis {name!r}" if isinstance(name, str) else f"axis {name} of '...'"
                raise ValueError(f"{_SHOWN}{shown} has {sizes[name]} elements in array {where[name]} and {size} in array {number}")
            if name not in sizes or sizes[name] == 1:
                sizes[name], where[name] = size, number
    return sizes


def _result_of(names: tuple[Names, ...], result: Names | None) -> Names:
    everywhere = [name for own in names for name in own]
    broadcast = tuple(sorted({name for name in everywhere if isinstance(name, int)}))
    if result is None:
        return (*broadcast, *sorted(name for name in set(everywhere) if isinstance(name, str) and everywhere.count(name) == 1))
    for name in result:
        if result.count(name) > 1 or name not in everywhere and name != 0:
            wrong = "stands twice" if result.count(name) > 1 else "is the name of no array's axis"
            raise ValueError(f"{_SHOWN}{_shown((name,))!r} {wrong} in the result {_shown(result)!r}")
    if broadcast and 0 not in result:
        raise ValueError(f"{_SHOWN}'...' stands for {len(broadcast)} axes, and the result has none; write it behind '->' or name them")
    return tuple(part for name in result for part in (broadcast if name == 0 else (name,)))


# ---- one array, two arrays ----------------------------------------------------------------------------------------------

def _kept(names: Sequence[Names], result: Names) -> frozenset[Name]:
    return frozenset(result).union(*names)


def _others(names: tuple[Names, ...], number: int, result: Names) -> frozenset[Name]:
    return _kept([own for i, own in enumerate(names) if i != number], result)


def _ordered(x: Array, names: Names, order: Sequence[Name]) -> Array:
    """With axes in an order; those that it lacks have one element."""
    places = [names.index(name) for name in order if name in names]
    x = x.transpose(tuple(places)) if places != sorted(places) else x
    if len(places) == len(order):
        return x
    there = iter(x.shape)
    return x.reshape(tuple(next(there) if name in names else 1 for name in order))


def _alone(x: Array, names: Names, kept: frozenset[Name], sizes: dict[Name, int]) -> Term:
    """Diagonals of names that come twice; without axes that broadcast, and summed over those that nobody else has."""
    while twice := next((name for name in names if names.count(name) > 1), None):
        first = names.index(twice)
        second = names.index(twice, first + 1)
        rest = [d for d in range(x.ndim) if d not in (first, second)]
        if x.shape[first] != x.shape[second]:  # one of them broadcasts
            dropped = first if x.shape[first] == 1 else second
            x = _core.squeeze(x, dropped)
            names = names[:dropped] + names[dropped + 1 :]
            continue
        size = x.shape[first]
        x = x.transpose((*rest, first, second)).reshape((*(x.shape[d] for d in rest), size * size))
        x = x[(..., slice(None, None, size + 1))]
        names = (*(names[d] for d in rest), twice)
    broadcast = [d for d, name in enumerate(names) if x.shape[d] == 1 and sizes[name] != 1]
    if broadcast:
        x = _core.squeeze(x, broadcast)
        names = tuple(name for d, name in enumerate(names) if d not in broadcast)
    return _summed(x, names, kept)


def _summed(x: Array, names: Names, kept: frozenset[Name]) -> Term:
    """Over what nobody needs."""
    lone = [d for d, name in enumerate(names) if name not in kept]
    if not lone:
        return x, names
    return _core.sum(x, lone).astype(x.dtype), tuple(name for d, name in enumerate(names) if d not in lone)


def _contracted(left: Term, right: Term, kept: frozenset[Name], sizes: dict[Name, int]) -> Term:
    """The products of two arrays, summed over the names that both have and nobody needs any more."""
    (a, a_names), (b, b_names) = _summed(*left, kept.union(right[1])), _summed(*right, kept.union(left[1]))
    summed = [name for name in a_names if name in b_names and name not in kept]
    batch = [name for name in a_names if name in b_names and name in kept]
    rows = [name for name in a_names if name not in b_names]
    columns = [name for name in b_names if name not in a_names]
    names = (*batch, *rows, *columns)
    if not summed:
        return _ordered(a, a_names, names) * _ordered(b, b_names, names), names
    if not rows and not columns:  # inner products, for which a row of a reduction is the better form
        order, wide = (*batch, *summed), "float32" if a.dtype.itemsize < 4 and a.dtype.kind == "float" else a.dtype
        products = _ordered(a, a_names, order).astype(wide) * _ordered(b, b_names, order).astype(wide)
        return _core.sum(products, list(range(len(batch), len(order)))).astype(a.dtype), names
    shape = [sizes[name] for name in batch]
    counts = [_count(part, sizes) for part in (rows, summed, columns)]
    a = _ordered(a, a_names, (*batch, *rows, *summed)).reshape((*shape, *counts[:2]))
    b = _ordered(b, b_names, (*batch, *summed, *columns)).reshape((*shape, *counts[1:]))
    made = _core.matmul(a, b).astype(a.dtype)
    return made.reshape(tuple(sizes[name] for name in names)), names


def _count(names: Iterable[Name], sizes: dict[Name, int]) -> int:
    count = 1
    for name in names:
        count *= sizes[name]
    return count


# ---- the order of pairs -------------------------------------------------------------------------------------------------

def _path_of(optimize: Any, names: tuple[Names, ...], result: Names, sizes: tuple[tuple[Name, int], ...]) -> Path:
    count = len(names)
    if optimize is True or optimize in ("optimal", "greedy", "auto"):
        return _best_path(names, result, sizes)
    if optimize is False:
        return (tuple(range(count)),) if count > 1 else ()
    steps = list(optimize)
    path = tuple(tuple(sorted(integers_of(step))) for step in (steps[1:] if steps[:1] == ["einsum_path"] else steps))
    for step in path:
        if len(set(step)) < len(step) or not step or not all(0 <= i < count for i in step):
            raise ValueError(f"{_SHOWN}{step} in the path {list(path)}; so far {count} arrays are left, by numbers from 0")
        count -= len(step) - 1
    if count != 1:
        raise ValueError(f"{_SHOWN}the path {list(path)} leaves {count} arrays, not one")
    return path


@lru_cache(256)
def _best_path(names: tuple[Names, ...], result: Names, sizes: tuple[tuple[Name, int], ...]) -> Path:
    """The pairs that multiply least, each as numbers among the arrays that are left; their product comes behind these."""
    size, left, path = dict(sizes), list(names), []
    while len(left) > _MOST_TRIED:
        pairs = [(i, j) for j in range(len(left)) for i in range(j)]
        made = [tuple(_of_product(left, pair, result)) for pair in pairs]
        _, (i, j), own = min((_count(own, size) - sum(_count(left[k], size) for k in pair), pair, own) for pair, own in zip(pairs, made))
        path.append((i, j))
        left = [other for k, other in enumerate(left) if k not in (i, j)] + [own]
    there = [1 << i for i in range(len(left))]
    for part, rest in _best_pairs(left, result, size):
        i, j = sorted((there.index(part), there.index(rest)))
        path.append((i, j))
        there = [other for other in there if other not in (part, rest)] + [part | rest]
    return tuple(path)


def _of_product(names: list[Names], chosen: Sequence[int], result: Names) -> frozenset[Name]:
    """The names that the product of some arrays has."""
    return _kept([own for i, own in enumerate(names) if i not in chosen], result).intersection(name for i in chosen for name in names[i])


def _best_pairs(names: list[Names], result: Names, size: dict[Name, int]) -> list[tuple[int, int]]:
    """By the best pairs of every set of arrays, a bit for each: those of the smaller sets come first."""
    count = len(names)
    own = [_of_product(names, [i for i in range(count) if chosen >> i & 1], result) for chosen in range(1 << count)]
    best: dict[int, tuple[int, int, int]] = {1 << i: (0, 0, 0) for i in range(count)}
    for chosen in range(1, 1 << count):
        halves = [part for part in range(1, chosen) if part & chosen == part and part > chosen ^ part]
        if halves:
            best[chosen] = min((best[part][0] + best[chosen ^ part][0] + _count(own[part] | own[chosen ^ part], size), part, chosen ^ part)
                               for part in halves)  # fmt: skip
    def pairs(chosen: int) -> list[tuple[int, int]]:
        _, part, rest = best[chosen]
        return [*pairs(part), *pairs(rest), (part, rest)] if part else []

    return pairs((1 << count) - 1)
