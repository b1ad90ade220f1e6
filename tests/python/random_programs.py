#!/usr/bin/env python3
"""Random small Python programs: their values beside NumPy's and their gradients, of first and second order, beside PyTorch's.

    PYTHONPATH=build/package/stage python tests/python/random_programs.py --count 100000 --seed 1

A program (program_draft.py) is a function of its seed. It is run recorded, eagerly and under jit, one in five after hg.warm; the
arrays that it is given are compared afterwards, since it may assign to them. A line that NumPy's model refuses has to raise.
Without PyTorch gradients are compared with central differences along a direction. One that fails is made short and printed."""

import argparse
import sys
import time
from types import SimpleNamespace

import numpy as np

import hologram as hg
import hologram.array_api as api
from program_draft import Draft
from program_models import PLAIN, SELECTIONS, Array, torch_arrays

NAMES = ("sin", "tanh", "exp", "square", "abs", "maximum", "minimum", "where", "concat", "stack", "asarray", "argmax", "cumulative_sum")
OURS = SimpleNamespace(copy=hg.array, zeros=lambda shape: api.zeros(shape, dtype=api.float64), np=np, parts=hg.asarray,
                       array=lambda values: hg.array(np.array(values)),
                       **{name: getattr(api, name) for name in (*NAMES, *SELECTIONS)})  # fmt: skip


class Program:
    def __init__(self, source, inputs):
        self.source, self.inputs = source, inputs
        self.by = [i for i, value in enumerate(inputs) if value.dtype.kind == "f"]  # has gradients
        is_narrow = any(value.dtype != np.float64 for value in inputs)
        self.of_values, self.of_gradients = ((1e-4, 1e-5), (1e-3, 1e-4)) if is_narrow else ((1e-11, 1e-11), (1e-7, 1e-9))
        names = {}
        exec(source, names)
        self.function = names["program"]

    def values(self, xp, arrays):
        with np.errstate(all="ignore"):
            return self.function(xp, *arrays)

    def weight(self, number, shape):
        return np.sin(np.arange(float(np.prod(shape))) * 0.7 + number + 1).reshape(shape)

    def total(self, xp, arrays, constant):
        """One number that all results are part of."""
        parts = [(value * constant(self.weight(i, value.shape))).sum() for i, value in enumerate(self.values(xp, arrays))]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total


def difference(name, got, right, rtol, atol):
    if np.asarray(got).dtype != np.asarray(right).dtype:
        return f"{name}: {np.asarray(got).dtype} for {np.asarray(right).dtype}"
    right = np.asarray(right, float)
    try:
        np.testing.assert_allclose(got, right, rtol=rtol, atol=atol * max(1.0, float(np.max(np.abs(right), initial=0.0))))
    except AssertionError as error:
        return f"{name}: {error}"
    return ""


def warm(function, *given):
    """It changes no value; what reads the elements of what it computes cannot be warmed."""
    try:
        hg.warm(function, *given)
    except ValueError as error:
        if "hologram.warm computes nothing" not in str(error):
            raise


def check_values(program, mode, is_warmed):
    right = [Array(value.copy()) for value in program.inputs]
    expected = program.values(PLAIN, right)
    given = [hg.array(value) for value in program.inputs]
    names = {"results": lambda arrays: program.values(OURS, arrays)}
    call = hg.jit(names["results"]) if mode == "jit" else names["results"]
    with hg.eager(mode == "eager"):
        if is_warmed:
            warm(call, given)
        results = call(given)
    pairs = [*zip(results, expected), *zip(given, right)]
    wrong = [difference(f"value {i}, {mode}", own.numpy(), one.v, *program.of_values) for i, (own, one) in enumerate(pairs)]
    return next((sentence for sentence in wrong if sentence), "")


def direction(shape, number):
    return np.cos(np.arange(float(np.prod(shape))) * 1.3 + number).reshape(shape)


def torch_gradients(program, is_second):
    import torch

    kind, names = torch_arrays()
    given = [torch.tensor(value, requires_grad=True) if i in program.by else value for i, value in enumerate(program.inputs)]
    leaves = [given[i] for i in program.by]
    total = program.total(names, [kind(value) for value in given], lambda w: kind(torch.as_tensor(w))).v
    first = torch.autograd.grad(total, leaves, create_graph=is_second, materialize_grads=True)
    if not is_second:
        return [g.numpy(force=True) for g in first]
    along = sum((g * torch.as_tensor(direction(tuple(g.shape), i))).sum() for i, g in enumerate(first))
    if not along.requires_grad:
        return [np.zeros_like(program.inputs[i]) for i in program.by]
    return [g.numpy(force=True) for g in torch.autograd.grad(along, leaves, materialize_grads=True)]


def our_gradient(program, is_second):
    def total(*arrays):
        return program.total(OURS, arrays, hg.asarray)

    by = tuple(program.by)
    if not is_second:
        return hg.grad(total, by)

    def along(*arrays):
        parts = [(g * hg.asarray(direction(g.shape, i))).sum() for i, g in enumerate(hg.grad(total, by)(*arrays))]
        return sum(parts[1:], parts[0])

    return hg.grad(along, by)


def check_gradients(program, mode, is_second, has_torch, is_warmed):
    given = [hg.array(value) for value in program.inputs]
    function = our_gradient(program, is_second)
    with hg.eager(mode == "eager"):
        call = hg.jit(function) if mode == "jit" else function
        if is_warmed:
            warm(call, *given)
        gradients = [g.numpy() for g in call(*given)]
    name = f"{'second' if is_second else 'first'} gradient, {mode}"
    for i, (array, value) in enumerate(zip(given, program.inputs)):
        if not (array.numpy() == value).all():
            return f"{name}: argument {i} has changed"
    if has_torch:
        right = torch_gradients(program, is_second)
        wrong = [difference(f"{name} {i}", own, one, *program.of_gradients) for i, (own, one) in enumerate(zip(gradients, right))]
        return next((sentence for sentence in wrong if sentence), "")
    if is_second or len(program.by) < len(program.inputs):
        return ""
    step, ends = 1e-6, []
    for sign in (1, -1):
        moved = [Array(value + sign * step * direction(value.shape, i)) for i, value in enumerate(program.inputs)]
        ends.append(float(program.total(PLAIN, moved, Array).v))
    own = sum(float((g * direction(g.shape, i)).sum()) for i, g in enumerate(gradients))
    return difference(name, own, (ends[0] - ends[1]) / (2 * step), 1e-4, 1e-4)


def failure_of(program, seed, has_torch):
    """What is wrong with a program, "" if nothing: its values in two of three ways, gradients in one each."""
    modes = ("recorded", "eager", "jit")
    is_warmed = seed % 5 == 0
    try:
        wrong = check_values(program, modes[seed % 3], is_warmed) or check_values(program, modes[(seed + 1) % 3], False)
        wrong = wrong or check_gradients(program, modes[seed // 3 % 3], False, has_torch, is_warmed)
        return wrong or (check_gradients(program, modes[(seed // 3 + 1) % 3], True, has_torch, is_warmed) if seed % 2 else "")
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def check_refusal(draft):
    """Of a line that means nothing to NumPy: it raises."""
    if draft.refused is None:
        return ""
    program = Program(draft.refused_source(), list(draft.inputs.values()))
    try:
        results = program.values(OURS, [hg.array(value) for value in program.inputs])
        hg.compute(*(value for value in results if isinstance(value, hg.Array)))
    except (ValueError, IndexError, TypeError, OverflowError):
        return ""
    error = draft.refused[1]
    return f"nothing raised where NumPy's model raises {type(error).__name__}: {error}\n{program.source}"


def shortened(draft, seed, has_torch):
    """The program without the lines that the failure does not need."""
    lines = list(draft.lines)
    at = 0
    while at < len(lines):
        fewer = Draft.of(draft.inputs, lines[:at] + lines[at + 1 :])
        if fewer is not None and failure_of(Program(fewer.source(), list(draft.inputs.values())), seed, has_torch):
            lines = list(fewer.lines)
        else:
            at += 1
    return Draft.of(draft.inputs, lines).source()


def check(seed, has_torch):
    """A sentence and the program, or nothing."""
    draft = Draft(seed)
    wrong = failure_of(Program(draft.source(), list(draft.inputs.values())), seed, has_torch)
    if wrong:
        return f"seed {seed}: {wrong}\n{shortened(draft, seed, has_torch)}"
    wrong = check_refusal(draft)
    return wrong and f"seed {seed}: {wrong}"


def has_torch():
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    given, failed, begun = parser.parse_args(), 0, time.monotonic()
    beside = has_torch()
    for seed in range(given.seed, given.seed + given.count):
        if wrong := check(seed, beside):
            failed += 1
            print(wrong, flush=True)
        if failed == 10:
            break
    took = time.monotonic() - begun
    print(f"{given.count} programs in {took:.0f} s, gradients beside {'PyTorch' if beside else 'differences'}: {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
