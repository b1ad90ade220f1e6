#!/usr/bin/env python3
"""What a training step costs: hg.nn, hg.optim and hg.jit beside PyTorch's eager layers and its Adam.

    ./dev bench step [--json] [--hidden N] [--batch N] [--threads N]

The network is that of examples/python/digits.py, whose step takes its pictures by their numbers, finds loss and gradients, and gives Adam's
new weights. Both learn from the same pictures, beginning with the same weights, and take turns; their first loss has to be the same but for
rounding. Without PyTorch only Hologram's is measured."""

import argparse
import json
import os
import sys
import time
from pathlib import Path
from statistics import median

TURNS, CALLS = 30, 40

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "examples/python"))


def of_hologram(hidden, batch):
    """A function that takes a step and gives the loss, and the weights at the beginning."""
    import digits
    import numpy as np
    from data import labelled_digits

    import hologram as hg

    hg.set_default_executor(hg.Executor(backend="cpu"))
    reader = digits.Reader(*labelled_digits(), hidden)
    parameters = reader.network.init(hg.random.key(1))
    state = reader.optimizer.init(parameters)
    numbers, rate = hg.asarray(np.arange(batch)), hg.asarray(np.float32(digits.RATE))
    weights = {name: x.numpy().copy() for name, x in hg.nn.state_dict(parameters).items()}

    def step():
        nonlocal parameters, state
        loss, parameters, state = reader.step(parameters, state, numbers, rate)
        return loss

    return step, weights


def of_torch(hidden, batch, weights):
    import digits
    import torch
    from data import labelled_digits

    pictures, truth = map(torch.from_numpy, labelled_digits())
    network = torch.nn.Sequential(torch.nn.Linear(64, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, 10))
    network.load_state_dict({name: torch.from_numpy(x) for name, x in weights.items()})
    optimizer = torch.optim.Adam(network.parameters(), digits.RATE)
    judge = torch.nn.CrossEntropyLoss(label_smoothing=digits.SMOOTHING)
    numbers = torch.arange(batch)

    def step():
        loss = judge(network(pictures[numbers].float() / 16), truth[numbers].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def timed(step):
    found = []
    for _ in range(CALLS):
        begun = time.perf_counter_ns()
        step()
        found.append(time.perf_counter_ns() - begun)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--hidden", type=int, default=96, help="width of the hidden layer (96)")
    parser.add_argument("--batch", type=int, default=32, help="pictures of a step (32)")
    parser.add_argument("--threads", type=int, default=1, help="threads of each (1)")
    options = parser.parse_args()
    os.environ |= {name: str(options.threads) for name in ("HOLOGRAM_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    ours, weights = of_hologram(options.hidden, options.batch)
    steps = {"hologram": ours}
    try:
        steps["torch"] = of_torch(options.hidden, options.batch, weights)
    except ImportError:
        print("step: PyTorch is not installed, so it is left out", file=sys.stderr)
    losses = [float(step()) for step in steps.values()]
    if max(losses) - min(losses) > 1e-5:
        sys.exit(f"step: the first losses are {losses}")
    samples = {name: [] for name in steps}
    for _ in range(TURNS):
        for name, step in steps.items():
            samples[name] += timed(step)
    found = {"hidden": options.hidden, "batch": options.batch, "threads": options.threads}
    found |= {name: {"median_ns": median(s), "min_ns": min(s)} for name, s in samples.items()}
    if "torch" in steps:
        found["ratio"] = {which: found["hologram"][which] / found["torch"][which] for which in ("median_ns", "min_ns")}
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    print(f"A training step: 64 - {options.hidden} - 10, {options.batch} pictures, {options.threads} threads. Microseconds.\n")
    print(f"{'':<10} {'median':>10} {'shortest':>10}")
    for name in steps:
        print(f"{name:<10} {found[name]['median_ns'] / 1000:>10.1f} {found[name]['min_ns'] / 1000:>10.1f}")
    if "torch" in steps:
        print(f"{'ratio':<10} {found['ratio']['median_ns']:>10.3f} {found['ratio']['min_ns']:>10.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
