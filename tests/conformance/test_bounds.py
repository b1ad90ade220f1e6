"""The lesser or greater of two values, written as a comparison and a selection: engines have one instruction for it, which must
treat NaN, zeros of both signs and equal values as the two would."""

import itertools

import pytest

import model
from harness import array_of, literal
from values import specials

pytestmark = pytest.mark.engine

RELATIONS = ["lt", "le", "gt", "ge"]


def run(executor, text, t, columns):
    width = array_of(t, [0])
    buffers = {name: array_of(t, column) for name, column in zip("ab", columns)} | {"y": width.repeat(len(columns[0]))}
    result = executor.run(text, lanes=len(columns[0]), buffers=buffers)
    assert result.fault is None, text
    return [int(b) for b in result.buffers["y"]]


def program(t, relation, left, right, yes, no):
    return "\n".join([f".buffer a {t} in", f".buffer b {t} in", f".buffer y {t} out", f"ldg.{t} r0, [a + lane]", f"ldg.{t} r1, [b + lane]",
                      f"set.{relation}.{t} p0, {left}, {right}", f"sel.{t} r2, p0, {yes}, {no}", f"stg.{t} [y + lane], r2", "exit", ""])


def expected(t, relation, left, right, yes, no):
    holds = model.evaluate(f"set.{relation}", t, None, [left, right])
    return [a if p else b for p, a, b in zip(holds, yes, no)]


@pytest.mark.parametrize("t", ["f16", "f32", "f64"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_of_two_values(executor, t, relation):
    values = specials(t)
    a, b = (list(column) for column in zip(*itertools.product(values, values)))
    for yes, no in (("r0", "r1"), ("r1", "r0")):
        chosen = [{"r0": a, "r1": b}[name] for name in (yes, no)]
        got = run(executor, program(t, relation, "r0", "r1", yes, no), t, [a, b])
        assert got == expected(t, relation, a, b, *chosen), f"{relation} {yes} {no}"


@pytest.mark.parametrize("t", ["f32", "f64"])
@pytest.mark.parametrize("relation", RELATIONS)
def test_of_a_constant(executor, t, relation):
    values = specials(t)
    for bits in values[:: max(1, len(values) // 12)]:
        constant, row = literal(t, bits), [bits] * len(values)
        for left, yes in itertools.product((True, False), repeat=2):
            operands = ("r0", constant) if left else (constant, "r0")
            results = ("r0", constant) if yes else (constant, "r0")
            columns = [{"r0": values, constant: row}[name] for name in operands + results]
            got = run(executor, program(t, relation, *operands, *results), t, [values, values])
            assert got == expected(t, relation, *columns), f"{relation} {operands} {results}"
