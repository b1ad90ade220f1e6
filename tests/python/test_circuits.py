"""Circuits over the 96 classes: what they compute, against circuit_model.py; their canonical form, laws, program, inverse; what is
refused. HOLOGRAM_TEST_BACKEND=cuda runs them on a GPU, HOLOGRAM_RANDOM_CIRCUITS says how many random ones: without it slow engines
run a share of 10,000."""

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import circuit_model as model
import double_of_cuda
import hologram as hg
import random_circuits
from random_circuits import Pool, same

ROOT = Path(__file__).resolve().parents[2]
BACKEND = os.environ.get("HOLOGRAM_TEST_BACKEND") or "cpu"
ENGINES = ["native", "tile", "interp"] if BACKEND == "cpu" else [None]
ASKED = "HOLOGRAM_RANDOM_CIRCUITS" in os.environ
COUNT = int(os.environ.get("HOLOGRAM_RANDOM_CIRCUITS", "10000"))


@pytest.mark.parametrize("which", ENGINES)
def test_random_circuits(which):
    count = COUNT if ASKED or which != "interp" else COUNT // 10
    if BACKEND == "cpu":
        launches = random_circuits.check(hg.Executor(BACKEND, engine=which), 0, count)
    else:
        launches = random_circuits.check_in_processes(BACKEND, which, 0, count, min(8, os.cpu_count()))
    assert launches > count // 50


@double_of_cuda.needed
def test_random_circuits_on_the_double_of_cuda():
    count = COUNT if ASKED else COUNT // 20
    code = f"import random_circuits as r, hologram as hg; print(r.check(hg.Executor('cuda'), 0, {count}))"
    assert int(double_of_cuda.run(code)) > count // 50


# ---- the canonical form ---------------------------------------------------------------------------------------------


def canonical(text):
    return hg.circuit(text).canonical


@pytest.mark.parametrize("text, form", [
    ("", ""), (" \n ", ""), ("mark@c21", "mark@c21"), ("mark@c0021", "mark@c21"), ("mark@c00", ""), ("mark@c21 . mark@c21", ""),
    ("swap@c11<->c10", "swap@c10<->c11"), ("swap@c1<->c2 . swap@c2<->c1", ""), ("copy@c5->c5 . swap@c5<->c5", ""),
    ("copy@c5->c6 . copy@c5->c6", "copy@c05->c06"), ("copy@c5->c6 . merge@c1[c2,c6]", "copy@c05->c06"),
    ("copy@c6->c7 . copy@c5->c6", "copy@c05->c07 . copy@c05->c06"), ("merge@c7", ""), ("merge@c[0..95]", ""),
    ("merge@c2[c1,c3]", "merge@c01[c02,c03]"), ("merge:add@c1[c2,c2]", "merge@c01[c02,c02]"), ("split@c2[c1,c3]", "split@c02[c01,c03]"),
    ("split:div@c2[c1,c2]", "split:div@c02[c01,c02]"), ("merge:max@c1[c1,c1]", "merge:max@c01[c01,c01]"),
    ("mark@c10 . swap@c10<->c11 . mark@c11 . swap@c11<->c10", "swap@c01<->c10 . mark@c01 . swap@c01<->c10"),
    ("swap@c1<->c2 . mark@c1 . swap@c1<->c2 . mark@c2", "swap@c02<->c03 . mark@c03 . swap@c02<->c03"),
    ("swap@c10<->c11 . mark@c10", "swap@c10<->c11 . mark@c10"),
    ("R+1@mark@c00", "mark@c24"), ("R+4 T-8 ~~ mark@c3", "mark@c03"), ("~@mark@c8", "mark@c16"), ("mark@c8~", "mark@c16"),
    ("T-1@mark@c0", "mark@c07"), ("mark@c0^-1v+2", "mark@c74"), ("R1@T2@~@mark@c9", "mark@c43"),
    ("R99999999999999999999 mark@c1", "mark@c73"),
    ("R1(mark@c1 . T1(swap@c2<->c3)~)^1", "swap@c51<->c52 . mark@c49"), ("mark@c[3..5]", "mark@c05 . mark@c04 . mark@c03"),
    ("R+1@mark@c[0..2]", "mark@c26 . mark@c25 . mark@c24"), ("evaluate@c7", ""), ("quote@c7", ""), ("quote@c7 . mark@c1", ""),
    ("evaluate@c7 . quote@c7 . mark@c1", "mark@c01"), ("mark@c2 . quote@c7 . mark@c1", "mark@c02"),
    ("evaluate@c7 . mark@c2 . (quote@c7 . mark@c1) . mark@c3", "mark@c03 . mark@c02 . mark@c01"),
    ("R1 evaluate@c7 . quote@c7 . mark@c1", "mark@c25"), ("evaluate@c7 . R1 quote@c7 . mark@c1", "mark@c01"),
    ("evaluate@c7 . R1(quote@c7 . mark@c1)", "mark@c25"), ("R1(evaluate@c7 . quote@c7 . mark@c1)", "mark@c49"),
    ("evaluate@c7 . quote@c7", ""), ("evaluate@c8 . (quote@c7 . mark@c2) . quote@c8 . evaluate@c7 . quote@c7 . mark@c1", "mark@c01"),
    ("evaluate@c7 . (quote@c7 . mark@c2) . (quote@c7 . mark@c1)", "mark@c02"), ("evaluate@c8 . quote@c[7..9] . mark@c1", "mark@c01"),
    ("evaluate@c8 . evaluate@c7 . quote@c7 . quote@c8 . mark@c1", "mark@c01"), ("evaluate@c8 . quote@c7 . quote@c8 . mark@c1", ""),
    ("evaluate@c[6..7] . (quote@c6 . mark@c1) . (quote@c7 . mark@c2)", "mark@c02 . mark@c01"),
])
def test_canonical_texts(text, form):
    assert canonical(text) == form == canonical(form)


def test_transforms_are_pushed_through_in_every_way():
    wanted = canonical("swap@c51<->c52 . mark@c25 . merge@c24[c25,c26]")
    for text in ("R1(R1 swap@c2<->c3 T1 . mark@c1 . merge@c0[c1,c2])", "(swap@c2<->c3)^2v1 . (mark@c1 . merge@c0[c1,c2])^1"):
        assert canonical(text.replace("<->c3 T1", "<->c3 v1").replace("R1 swap@c2<->c3 v1", "R1 T1@swap@c2<->c3")) == wanted
    inner = "mark@c3 . copy@c4->c5 . merge:mul@c6[c7,c8]"
    for r in range(4):
        for t in range(8):
            written = f"mark@c3^{r} v{t} . R{r}T{t - 8}@copy@c4->c5 . ~(R{r}(merge:mul@c6[c7,c8])v{t}~)"
            assert canonical(f"R{r} T{t}({inner})") == canonical(f"({inner})v{t}^{r - 4}") == canonical(written)


def test_disjoint_steps_commute():
    r = random.Random(3)
    for _ in range(200):
        groups = [[step.replace("#", str(k)) for step in r.sample(
            ["mark@c#1", "copy@c#1->c#2", "swap@c#2<->c#3", "merge@c#1[c#2,c#3]", "split:div@c#3[c#1,c#1]"], 3)] for k in range(1, 5)]
        order = [k for k in range(4) for _ in range(3)]
        r.shuffle(order)
        queues = [list(g) for g in groups]
        mixed = " . ".join(queues[k].pop(0) for k in order)
        beside = " || ".join(f"({' . '.join(g)})" for g in r.sample(groups, 4))
        assert canonical(mixed) == canonical(beside) == canonical(" . ".join(" . ".join(g) for g in groups))


def test_terms_and_report():
    circuit = hg.circuit("copy@c3->c5 . mark@c3 . merge@c1[c2,c3] . mark@c7 . mark@c7 . merge@c4 . copy@c1->c9 . copy@c2->c9")
    assert circuit.terms == {"v0": "add(c01, c02)", "c03": "v0^0x06", "c05": "v0^0x06", "c09": "c01"}
    report = circuit.report
    assert (report["steps"], report["operations"], report["changed"], report["components"]) == (7, 1, 3, 1)
    assert report["canonical_steps"] == len(circuit.canonical.split(" . ")) and report["temporaries"] == 0
    assert report["laws"]["mark mark"] == report["laws"]["empty merge"] == report["laws"]["dead write"] == 1
    assert len(circuit.hash) == 64 and circuit.text.endswith("copy@c01->c09 . copy@c02->c09")
    assert circuit == hg.circuit(circuit.canonical) != hg.circuit("") and len({circuit, hg.circuit(circuit.canonical)}) == 1
    assert hg.circuit("merge@c1[c2,c3] || mark@c4").hash == hg.circuit("mark@c4 . merge@c2[c1,c3]").hash != circuit.hash


def test_equal_forms_have_equal_programs():
    a, b = hg.circuit("mark@c4 || merge@c2[c1,c3] . mark@c1 . mark@c1"), hg.circuit("merge@c1[c2,c3] . mark@c4")
    assert a.program.hash == b.program.hash and a.program is a.program
    assert hg.Program(a.program.text).hash == a.program.hash
    assert hg.circuit("mark@c4").program.hash != a.program.hash


def test_a_program_that_is_launched_by_hand():
    circuit = hg.circuit("swap@c10<->c11 . mark@c10")
    with hg.Executor("cpu") as executor:
        pool = np.concatenate(model.contents(5)).view(np.uint64)
        places = dict(enumerate(pool.view(np.uint8).reshape(96, -1).copy()))
        model.run(model.steps_of_canonical(circuit.canonical), places)
        circuit.program.run(executor, circuit.report["lanes"], pool=pool)
        assert pool.tobytes() == b"".join(places[c].tobytes() for c in range(96))


def equal_components(scattered, size, marked):
    """As many circuits of one kind, on `size` classes each, as there are classes for."""
    classes = random.Random(7).sample(range(96), 96) if scattered else list(range(96))
    texts = []
    for k in range(0, 96, size):
        own = classes[k : k + size]
        moves = [f"swap@c{own[0]}<->c{c}" for c in own[1:]] if size != 3 else ["merge:mul@c{}[c{},c{}]".format(*own)]
        texts.append(" . ".join([f"mark@c{c}" for c in own[:marked]] + moves))
    return texts


def instructions(circuit):
    return len([line for line in circuit.program.text.splitlines() if line.startswith("    ") and not line.startswith("    #")])


@pytest.mark.parametrize("scattered, size, marked, is_shared", [
    (False, 1, 1, True), (False, 2, 0, True), (True, 2, 0, True), (True, 2, 2, True), (True, 3, 0, True), (False, 4, 0, True),
    (True, 4, 0, True), (False, 32, 0, True), (True, 8, 0, False), (True, 6, 6, False)])
def test_equal_components_share_code(scattered, size, marked, is_shared):
    """However many they are; but what differs has to fit into few columns of a table."""
    texts = equal_components(scattered, size, marked)
    circuit = hg.circuit(" . ".join(texts))
    assert (instructions(circuit) < max(map(instructions, map(hg.circuit, texts))) + 12) == is_shared
    assert circuit.report["components"] == len(texts) - (size == 1)  # the mark of class 0 does nothing
    pool = Pool(hg.Executor(BACKEND))
    pool.check(circuit, pool.expected(model.steps_of_canonical(circuit.text)))
    pool.check_rest()


def test_temporaries_where_no_class_is_free():
    """Every class is kept or needed: a sum's operand has to wait somewhere."""
    circuit = hg.circuit("merge:mul@t1[c0,c0] . swap@t0<->t1 . merge@c0[c1,t0] . copy@c2->t1")
    assert circuit.terms == {"v0": "add(c00, c01)", "c00": "mul(c00, v0)"} and circuit.report["temporaries"] == 1
    again = hg.circuit(circuit.canonical)
    assert again == circuit and again.canonical == circuit.canonical and "t0" in circuit.canonical
    pool = Pool(hg.Executor("cpu"))
    steps = model.steps_of_canonical(circuit.text)
    assert same(pool.expected(steps), pool.expected(model.steps_of_canonical(circuit.canonical)))
    pool.check(circuit, pool.expected(steps))
    pool.check_rest()


def test_more_contents_than_registers():
    """Products that are added up from the first to the last, and subtracted from the last to the first, wait all at once."""
    def text(count):
        steps = [f"merge:mul@c{2 + k % 20}[c{30 + k // 20},t{k}]" for k in range(count)]
        steps += ["copy@t0->c0", *(f"merge@c0[t{k},c0]" for k in range(1, count))]
        return " . ".join(reversed([*steps, f"copy@t{count - 1}->c1", *(f"split@c1[t{k},c1]" for k in reversed(range(count - 1)))]))

    circuit = hg.circuit(text(200))
    pool = Pool(hg.Executor("cpu"))
    pool.check(circuit, pool.expected(model.steps_of_canonical(circuit.text)))
    with pytest.raises(hg.Unsupported, match="^the circuit needs more than 241 contents at once, more than a program has registers$"):
        hg.circuit(text(260)).program


# ---- inverses -------------------------------------------------------------------------------------------------------


def test_inverses():
    r = random.Random(4)
    for _ in range(300):
        steps = []
        for _ in range(r.randrange(1, 30)):
            a, b = r.sample(range(96), 2)
            steps.append(r.choice((f"mark@c{a}", f"swap@c{a}<->c{b}")))
        circuit = hg.circuit(" . ".join(steps))
        inverse = circuit.inverse()
        assert canonical(f"{circuit.canonical} . {inverse.canonical}".strip(" .")) == ""
        assert canonical(f"{inverse.text} . {circuit.text}".strip(" .")) == "" and inverse.inverse() == circuit


def test_copies_that_lose_nothing_have_an_inverse():
    assert hg.circuit("mark@c1 . copy@t0->c1 . copy@c1->c0 . copy@c0->t0").inverse().canonical == "swap@c00<->c01 . mark@c01"
    assert hg.circuit("copy@c1->c1 . mark@c2 . copy@c2->c2").inverse().canonical == "mark@c02"
    for text, sentence in (("copy@c5->c6", "the content of c06 is lost"), ("copy@c3->c2 . copy@c2->c1", "the content of c01 is lost"),
                           ("merge@c1[c2,c3]", "c03 ends as the result of an operation; only mark, swap, and copies that lose nothing "
                            "can be undone")):
        with pytest.raises(hg.Unsupported, match=f"^the circuit has no inverse: {sentence}$"):
            hg.circuit(text).inverse()


# ---- the published identities ---------------------------------------------------------------------------------------

H, X, Z, S, I = "copy@c05->c06 . mark@c21", "mark@c21", "mark@c42", "mark@c07", "mark@c00"


@pytest.mark.parametrize("text, result, holds", [
    (f"{H} . {H}", I, False), (f"{X} . {X}", I, True), (f"{Z} . {Z}", I, True), (f"{S} . {S}", Z, False), (f"{I} . {I}", I, True),
    (f"{H} . {X} . {H}", Z, False), (f"{H} . {H} . {H} . {H}", I, False), (f"mark@c1 . {X} . {X} . {Z}", f"mark@c01 . {I} . {Z}", True),
    ("mark@c1", "mark@c01", True), ("", "", True)])
def test_published_identities_are_about_text(text, result, holds):
    circuit, plain = hg.circuit(text, rules="published"), hg.circuit(text)
    assert circuit.text == result
    assert circuit == plain and circuit.canonical == plain.canonical and circuit.program.hash == plain.program.hash
    assert (hg.circuit(circuit.text) == plain) == holds


# ---- what is refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text, line, column, sentence", [
    ("markk@c1", 1, 1, "there is no generator 'markk': they are mark, copy, swap, merge, split, quote and evaluate"),
    ("mark@c1 .\n  mark@c96", 2, 9, "there is no class 96: classes are c0 to c95"),
    ("mark@c99999999999999999999", 1, 7, "there is no class 99999999999999999999: classes are c0 to c95"),
    ("mark@c1 || swap@c1<->c2", 1, 1, "this operand of '||' and one to its right touch c01; write '.' between them"),
    ("copy@c1->c2 || (mark@c3 . copy@c1->c4)", 1, 1, "this operand of '||' and one to its right touch c01; write '.' between them"),
    ("mark@c9 . (R1 mark@c1 || mark@c25)", 1, 12, "this operand of '||' and one to its right touch c25; write '.' between them"),
    ("evaluate@c[7..8] . (quote@c[7..8] . mark@c3)", 1, 1, "this operand of '||' and one to its right touch c03; write '.' between them"),
    ("mark@c2 . (mark@c1", 1, 11, "this group has no end: expected ')', found the end of the text"),
    ("mark@c1)", 1, 8, "')' closes no group: there is no '(' before it"),
    ("()", 1, 2, "expected a generator, '(' or a transform (R+1, T-2, ~), found ')'"),
    ("mark@c1 . ", 1, 11, "expected a generator, '(' or a transform (R+1, T-2, ~), found the end of the text"),
    ("copy@c[0..3]", 1, 6, "copy takes no range of classes; write copy@c00->c01"),
    ("split@c[0..3]", 1, 7, "split takes no range of classes; write split@c00[c01,c02]"),
    ("mark@c[5..3]", 1, 6, "the range c[5..3] is empty: its first class is above its last"),
    ("mark@c[5-3]", 1, 9, "expected '..' and the last class of the range, found '-'"),
    ("mark@c1[c2,c3]", 1, 8, "'[' cannot stand here: a mark is written mark@c00 or mark@c[0..95]"),
    ("copy@c1", 1, 8, "expected '->' and a class, found the end of the text"),
    ("swap@c1->c2", 1, 8, "expected '<->' and a class, found '-'"),
    ("merge@c1[c2]", 1, 12, "expected ',' and the result's class, found ']'"),
    ("split@c1", 1, 9, "expected '[' and the second operand, found the end of the text"),
    ("mark:add@c1", 1, 6, "mark has no variants: merge has add, mul, min and max, split has sub and div"),
    ("merge:sub@c1[c2,c3]", 1, 7, "expected add, mul, min or max, found 'sub'"),
    ("R@mark@c1", 1, 2, "expected how far to rotate or twist, a number with or without a sign, found '@'"),
    ("mark@c1 mark@c2", 1, 9, "expected '.', '||', a transform (^1, v1, ~) or the end of the text, found 'mark'"),
    ("mark@c1 \u00e9", 1, 9, "expected '.', '||', a transform (^1, v1, ~) or the end of the text, found the byte 0xc3"),
    ("mark@c1 || quote@c2", 1, 12, "a quote cannot stand beside another item of '||'; write '.' between them"),
    ("mark@c1 || (quote@c2 . mark@c3)", 1, 13, "a quote cannot stand beside another item of '||'; write '.' between them"),
    ("mark@t0", 1, 6, "expected a class, c0 to c95, found 't0'"),
    ("copy@t0->c1", 1, 1, "temporary t0 is read before it is written"),
])
def test_refusals(text, line, column, sentence):
    with pytest.raises(hg.ParseError) as error:
        hg.circuit(text)
    assert str(error.value) == f"circuit:{line}:{column}: {sentence}"


def test_a_circuit_that_quotes_cannot_be_evaluated_beside_others():
    with pytest.raises(hg.ParseError, match="what is evaluated here quotes another circuit"):
        hg.circuit("(evaluate@c7 || mark@c1) . quote@c7 . quote@c8 . mark@c2")


def test_most_steps():
    text = " . ".join(f"(quote@c{k + 1} . evaluate@c{k} . evaluate@c{k})" for k in reversed(range(18)))
    text += " . (quote@c0 . mark@c5 . mark@c6)"
    assert hg.circuit(f"mark@c7 . evaluate@c18 . {text}").canonical == "mark@c07"
    with pytest.raises(hg.ParseError, match="written out, the circuits that are quoted have more than 1048576 steps"):
        hg.circuit(f"(quote@c20 . evaluate@c18 . evaluate@c18) . {text}")
    with pytest.raises(hg.ParseError, match="written out, the circuit has more than 1048576 steps"):
        hg.circuit(f"evaluate@c18 . evaluate@c18 . evaluate@c18 . {text}")


def test_a_mebibyte_of_parentheses():
    many = (1 << 20) // 2
    assert canonical("(" * many + "mark@c1" + ")" * many) == "mark@c01"
    for text, column, found in (("(" * 2 * many, 2 * many + 1, "the end of the text"), ("(" * many + ")" * many, many + 1, "')'")):
        with pytest.raises(hg.ParseError) as error:
            hg.circuit(text)
        assert str(error.value) == f"circuit:1:{column}: expected a generator, '(' or a transform (R+1, T-2, ~), found {found}"


def test_arguments():
    with pytest.raises(ValueError, match="rules is None or 'published', not 'x'"):
        hg.circuit("", rules="x")
    with pytest.raises(TypeError):
        hg.circuit(b"mark@c1")
    with pytest.raises(TypeError):
        hg.Circuit()
    assert repr(hg.circuit("mark@c1")) == "<hologram.Circuit 'mark@c01'>"


def test_the_example():
    done = subprocess.run([sys.executable, ROOT / "examples/circuit.py", "--backend", BACKEND], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "both together: nothing" in done.stdout and done.stdout.endswith("as in NumPy, and back again\n")
