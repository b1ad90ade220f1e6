#!/usr/bin/env python3
"""What a training step of a network costs, beside PyTorch: inputs - hidden (relu) - classes, cross entropy, Adam; and the
parts of it: the loss alone, with gradients, with Adam (the step).

    python mlp.py --lib build/release/libhologram.so [--batch 32 1024] [--threads 1 2] [--inputs 784] [--hidden 1024] [--json]

Each figure is the least of several processes' least times, which take turns; PyTorch is eager, its Adam fused."""

import argparse
import ctypes as c
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
CLASSES = 10
PARTS = ("loss", "gradients", "step")


def data(options):
    random = np.random.default_rng(1)
    x = random.standard_normal((options.batch, options.inputs), np.float32)
    y = random.integers(0, CLASSES, options.batch)
    shapes = ((options.hidden, options.inputs), (options.hidden,), (CLASSES, options.hidden), (CLASSES,))
    return x, y, [random.standard_normal(shape, np.float32) * np.float32(0.03) for shape in shapes]


def least(action, seconds):
    """Milliseconds of the fastest call."""
    action()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


# ---- ours -----------------------------------------------------------------------------------------------------------------

def time_hologram(options):
    os.environ["HOLOGRAM_LIB"] = options.lib
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/ops")]
    import hgops as hg

    def prepare(part):
        computation = hg.Computation()
        x, y, weights = data(options)
        x, y, weights = computation.input(x), computation.input(y), [computation.input(w) for w in weights]
        hidden = computation.op("relu", computation.op("linear", x, weights[0], weights[1]))
        loss = computation.op("cross_entropy", computation.op("linear", hidden, weights[2], weights[3]), y)
        computation.output(loss)
        gradients = computation.gradient(loss, weights) if part != "loss" else []
        if part == "gradients":
            for gradient in gradients:
                computation.output(gradient)
        if part == "step":
            step = computation.input(np.ones((), np.float32))
            rate = computation.number("f32", 1e-3)
            for weight, gradient, array in zip(weights, gradients, computation.arrays[2:6]):
                state = [computation.input(np.zeros_like(array)) for _ in range(2)]
                for old, new in zip([weight, *state], computation.op_all("adam", weight, gradient, *state, rate, step)):
                    hg.check(hg.LIB.hg_computation_update(computation.handle, old, new))
        computation.check()
        return runner(computation)

    def tensor(like, array=None):
        like.buffer = c.c_void_p()
        made, size = c.c_void_p(), max(1, int(np.prod(like.shape[:like.rank], dtype=np.int64))) * 8
        hg.check(hg.LIB.hg_buffer_create(hg.executor("default"), None, size, c.byref(made)))
        if array is not None:
            hg.check(hg.LIB.hg_buffer_write(made, 0, array.ctypes.data, array.nbytes))
        like.buffer = made
        return like

    def runner(computation):
        made = c.c_void_p()
        hg.check(hg.LIB.hg_compile(hg.executor("default"), computation.handle, None, c.byref(made)))
        inputs = (hg.Tensor * len(computation.arrays))(*[tensor(hg.tensor_like(a), a) for a in computation.arrays])
        outputs = (hg.Tensor * len(computation.results))(*[tensor(computation.describe(v)) for v in computation.results])
        if options.report:
            text = c.c_char_p()
            hg.check(hg.LIB.hg_executable_report(made, None, 0, c.byref(text), None))
            print(text.value.decode(), file=sys.stderr)
        return lambda: hg.check(hg.LIB.hg_run(made, inputs, len(inputs), outputs, len(outputs), None, None))

    return {part: least(prepare(part), options.seconds) for part in PARTS}


# ---- PyTorch --------------------------------------------------------------------------------------------------------------

def time_torch(options):
    import torch
    torch.set_num_threads(options.threads)
    x, y, weights = data(options)
    x, y, weights = torch.from_numpy(x), torch.from_numpy(y), [torch.from_numpy(w).requires_grad_() for w in weights]
    adam = torch.optim.Adam(weights, 1e-3, fused=True)
    functional = torch.nn.functional

    def loss():
        hidden = functional.relu(functional.linear(x, weights[0], weights[1]))
        return functional.cross_entropy(functional.linear(hidden, weights[2], weights[3]), y)

    def gradients():
        adam.zero_grad()
        loss().backward()

    def step():
        gradients()
        adam.step()

    def loss_alone():
        with torch.no_grad():
            loss()

    return {part: least(action, options.seconds) for part, action in zip(PARTS, (loss_alone, gradients, step))}


# ---- all of them ----------------------------------------------------------------------------------------------------------

def in_process(options, library, batch, threads):
    command = [sys.executable, __file__, "--lib", options.lib, "--only", library, "--batch", str(batch), "--threads", str(threads),
               "--inputs", str(options.inputs), "--hidden", str(options.hidden), "--seconds", str(options.seconds)]
    settings = {"HOLOGRAM_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | settings, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def compare(options):
    rows = []
    for batch in options.batch:
        for threads in options.threads:
            best = {}
            for _ in range(options.rounds):
                for library in ("hologram", "torch"):
                    for part, took in in_process(options, library, batch, threads).items():
                        key = library, part
                        best[key] = min(took, best.get(key, took))
            rows += [{"part": part, "batch": batch, "threads": threads, "hologram_ms": best["hologram", part],
                      "torch_ms": best["torch", part]} for part in PARTS]
    if options.json:
        print(json.dumps(rows))
        return
    print(f"{options.inputs} - {options.hidden} - {CLASSES}; milliseconds\n")
    print(f"{'batch':>6} {'threads':>8} {'part':<10} {'hologram':>10} {'PyTorch':>10} {'ratio':>7}")
    for row in rows:
        ours, torchs = row["hologram_ms"], row["torch_ms"]
        print(f"{row['batch']:>6} {row['threads']:>8} {row['part']:<10} {ours:>10.3f} {torchs:>10.3f} {ours / torchs:>7.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", default=str(ROOT / "build/release/libhologram.so"))
    parser.add_argument("--batch", type=int, nargs="+", default=[32, 1024])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--inputs", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each part in each process")
    parser.add_argument("--only", choices=("hologram", "torch"), help="one library, in this process; prints JSON")
    parser.add_argument("--report", action="store_true", help="with --only hologram: what became of each computation")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.only:
        return compare(options)
    options.batch, options.threads = options.batch[0], options.threads[0]
    print(json.dumps({"hologram": time_hologram, "torch": time_torch}[options.only](options)))
    return None


if __name__ == "__main__":
    main()
