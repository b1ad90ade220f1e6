#!/usr/bin/env python3
"""Random computations: what the fuser makes of one has the bits of its operations one by one, on every engine.

    HOLOGRAM_LIB=build/release/libhologram.so python tests/ops/random_graphs.py --count 100000 --seed 1 [--engine interp ...]

A graph (graph_steps.py) is a pure function of its seed (graph_draft.py). One that fails is made small and printed as Python.
--coverage draws graphs without running them and says what of the table never came up.
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import numpy as np

import hgops
from graph_draft import draft, inputs_of, types_of
from graph_steps import Graph, Step
from hgops import TABLE, Error

# ---- what must hold ---------------------------------------------------------------------------------------------------


def answers_of(c, engine, **more):
    """The outputs of a run, or what went wrong with it."""
    try:
        return c.run_on(engine, **more)
    except (Error, AssertionError) as error:
        return error


def difference(answers, expected, said) -> str:
    """Between two runs' outputs, in words."""
    if isinstance(answers, Exception) or isinstance(expected, Exception):
        words = [str(a) if isinstance(a, Exception) else "runs" for a in (answers, expected)]
        return f"{said[0]}: {words[0]}; {said[1]}: {words[1]}"
    for number, (a, b) in enumerate(zip(answers, expected)):
        if a.tobytes() != b.tobytes():
            at = np.flatnonzero((np.ascontiguousarray(a).reshape(-1, 1).view(np.uint8) !=
                                 np.ascontiguousarray(b).reshape(-1, 1).view(np.uint8)).any(axis=1))
            i = int(at[0])
            return f"output {number} {a.dtype}{list(a.shape)}: {len(at)} differ, at {i} {said[0]} {a.flat[i]!r}, {said[1]} {b.flat[i]!r}"
    return ""


def failure_of(graph, engine, base=None) -> str:
    """What is wrong with a graph on an engine: "" if nothing. Its fused form against its operations one by one on `base`;
    outputs that are put over inputs are exact, or refused."""
    c = graph.c
    if not c.results and not c.updated:
        return ""
    fused, single = answers_of(c, engine), answers_of(c, base or engine, flags=hgops.NO_FUSION)
    wrong = difference(fused, single, ("fused", "one by one"))
    if wrong or not c.placed:
        return wrong
    over = answers_of(c, engine, over=True)
    if isinstance(over, Error) and over.status == "BINDING":
        return ""
    return difference(over, single, ("over an input", "one by one"))


def way_of(wrong) -> str:
    """What failures have in common, while numbers and values differ."""
    return wrong.split(":")[0].split(" ")[0] + ("!" if "wrote beside" in wrong else "?" if "runs" in wrong else "")


def shrink(graph, engine, base=None, seconds=20.0):
    """The smallest part found that still fails in such a way."""
    best, end = graph, time.monotonic() + seconds
    way = way_of(failure_of(graph, engine, base))

    def attempt(steps, same_length=False):
        nonlocal best
        try:
            smaller = Graph(steps, best.most)
            if len(smaller.steps) < len(best.steps) + same_length and way_of(failure_of(smaller, engine, base)) == way:
                best = smaller
                return True
        except Exception:
            pass
        return False

    def bypass(step, by):
        """The steps without one, whose users take another value instead."""
        return [Step(s.name, [by if i == step.number else i for i in s.inputs], s.arguments, s.number) for s in best.steps if s is not step]

    def plainer(step):
        """The step in simpler words: dense, at the start of its memory, shorter, of f32."""
        for key, simple in (("layout", "dense"), ("ahead", 0)):
            if step.arguments.get(key, simple) != simple:
                yield {key: simple}
        if step.name == "input":
            shape = step.arguments["shape"]
            for i, size in enumerate(shape):
                for less in dict.fromkeys((1, 2, size // 2, size - 1)):
                    if 0 < less < size:
                        yield {"shape": shape[:i] + (less,) + shape[i + 1:]}

    def pass_over():
        changed = False
        for step in reversed(list(best.steps)):
            if step not in best.steps or time.monotonic() > end:
                continue
            changed |= attempt([s for s in best.steps if s is not step]) or \
                any(attempt(bypass(step, i)) for i in step.inputs if i is not None)
        for step in list(best.steps):
            for change in plainer(step):
                if step in best.steps and time.monotonic() < end:
                    simple = Step(step.name, step.inputs, step.arguments | change, step.number)
                    changed |= attempt([simple if s is step else s for s in best.steps], True)
        return changed

    while time.monotonic() < end and pass_over():
        pass
    return best


def report_of(seed, engine, base=None) -> str:
    """Fails in words, with the smallest graph; "" if nothing is wrong."""
    graph = draft(seed)
    wrong = failure_of(graph, engine, base)
    if not wrong:
        return ""
    small = shrink(graph, engine, base)
    return f"seed {seed} on {engine}{f' against {base}' if base else ''}: {wrong}\n  of {len(graph.steps)} steps these are left: " \
           f"{failure_of(small, engine, base)}\n{small}"


# ---- what comes up ----------------------------------------------------------------------------------------------------


def coverage(seeds):
    """How often each operation of the table came up with each type of its first input."""
    seen = Counter()
    for seed in seeds:
        graph = draft(seed)
        for step in graph.steps:
            if step.name in TABLE:
                first = next((i for i in step.inputs if i is not None), None)
                seen[step.name, graph.values[first].kind if first is not None else ""] += 1
    return seen


def missing(seen):
    """Operations, and of those that came up types, that did not."""
    names = {name for name, _ in seen}
    yield from (name for name in TABLE if name not in names)
    for name in TABLE:
        if name in names and inputs_of(name):
            kinds = [kind for kind in types_of(name, 0) if not seen[name, kind]]
            if kinds:
                yield f"{name} of {' '.join(kinds)}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the others' follow")
    parser.add_argument("--engine", action="append", help="in turns, if there are several (tests/engines.py)")
    parser.add_argument("--base", help="the engine of the operations one by one, or `reference`; without it the same")
    parser.add_argument("--most", type=int, default=10, help="give up after so many that fail")
    parser.add_argument("--coverage", action="store_true", help="what never comes up")
    options = parser.parse_args()
    if options.coverage:
        print("\n".join(missing(coverage(range(options.seed, options.seed + options.count)))) or "all of the table comes up")
        return 0
    names, failed, begin = options.engine or ["default"], 0, time.monotonic()
    for i in range(options.count):
        text = report_of(options.seed + i, names[i % len(names)], options.base)
        if text:
            failed += 1
            print(text, flush=True)
            if failed >= options.most:
                break
        if (i + 1) % 1000 == 0:
            print(f"{i + 1} graphs, {failed} failed, {(i + 1) / (time.monotonic() - begin):.0f} a second", flush=True)
    print(f"{i + 1 - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
