#!/usr/bin/env python3
"""What programs cost that does not depend on time: launches, bytes moved, plans, compilations, allocations, step by step.

    python tests/python/counted_programs.py            (prints what it counts, and what differs from counts.json)
    python tests/python/counted_programs.py --record   (writes counts.json)

counts.json holds what they cost today. A change that moves a number is seen there, and its commit says why. Each backend has its own:
of the GPU, the driver's double has them, so that every machine counts the same."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_name("counts.json")
# A plan goes by how many threads there are, and how long vectors are.
MACHINE = {"HOLOGRAM_NUM_THREADS": "2", "HOLOGRAM_CPU_ENGINE": "native", "HOLOGRAM_CPU_ISA": "avx2", "HOLOGRAM_CACHE_DIR": "",
           "HOLOGRAM_QUICK": "0"}
BACKENDS = ("cpu", "cuda")
STEPS = 4


def environment(backend):
    """For a process that counts."""
    own = os.environ | MACHINE
    return own | {"LD_LIBRARY_PATH": os.environ["HOLOGRAM_DOUBLE"]} if backend == "cuda" else own


def why_not(backend):
    """Why this machine cannot count on a backend; None: it can."""
    if backend == "cuda":
        has_double = os.path.isdir(os.environ.get("HOLOGRAM_DOUBLE", ""))
        return None if has_double else "HOLOGRAM_DOUBLE names no folder with the double of libcuda"
    asked = subprocess.run([sys.executable, "-c", "import hologram; hologram.Executor(backend='cpu')"], env=environment(backend),
                           capture_output=True, text=True, timeout=60, check=False)
    return None if asked.returncode == 0 else f"the CPU's counts are those of AVX2: {asked.stderr.strip().splitlines()[-1]}"


def readme_loop(hg):
    """README's first example, as it stands there, one step of its loop at a time."""
    text = next(t for t in re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S) if "\nfor _ in" in t)
    before, _, loop = text.partition("\nfor _ in range(200):")
    body = "\n".join(line[4:] for line in loop.splitlines()[1:] if line.startswith("    "))
    names = {}
    exec(before, names)
    code = compile(body, "README.md", "exec")
    return lambda: exec(code, names)


def mlp_step(hg):
    from rows import mlp_step as of
    key = hg.random.key(0)
    state = [hg.random.normal(hg.random.split(key, 9)[i], shape) for i, shape in enumerate(((64, 64), (128, 64), (128,), (10, 128), (10,)))]
    labels = hg.array([i % 10 for i in range(64)])
    step = hg.jit(lambda x, labels, *weights: of(hg, x, labels, *weights))

    def call():
        state[1:] = step(state[0], labels, *state[1:])
    return call


def gpt_block(hg):
    from rows import gpt_inputs, gpt_step
    inputs = [hg.array(one.values(number)) for number, one in enumerate(gpt_inputs(2, 16, 48).values())]

    def call():
        hg.compute(*gpt_step(hg, *inputs))
    return call


def data_task(hg):
    """Measurements of a sensor each day: the wrong ones left out, sums of groups, ranks, a running mean."""
    key, xp = hg.random.key(1), hg.array_api
    values, groups = hg.random.normal(key, (600,)), hg.random.integers(key, (600,), 0, 20)

    def call():
        kept = values > -1.5
        good, of = values[kept], groups[kept]
        sums = hg.zeros((20,)).at[of].add(good)
        names, counts = xp.unique_counts(of)
        best = xp.argsort(sums / counts, descending=True)[:5]
        running = xp.cumulative_sum(good)
        hg.compute(names, best, (running[32:] - running[:-32]) / 32)
    return call


PROGRAMS = {of.__name__: of for of in (readme_loop, mlp_step, gpt_block, data_task)}


def count(backend):
    """Of each program what its first steps cost, one by one."""
    sys.path.append(str(ROOT / "bench/door"))
    import hologram as hg
    found = {}
    for name, program in PROGRAMS.items():
        executor = hg.Executor(backend=backend)
        hg.set_default_executor(executor)
        call, found[name] = program(hg), []
        for _ in range(STEPS):
            before = executor.counts
            call()
            executor.synchronize()
            found[name].append({what: n - before[what] for what, n in executor.counts.items()})
    return found


def count_elsewhere(backend):
    """count, in a process with a machine like everybody's."""
    done = subprocess.run([sys.executable, __file__, "--of", backend], env=environment(backend), capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode:
        raise RuntimeError(f"counting on {backend} failed:\n{done.stderr}")
    return json.loads(done.stdout)


def differences(backend, found):
    """A line for each count that is not as recorded."""
    lines, recorded = [], json.loads(RECORD.read_text(encoding="utf-8"))[backend]
    for name, steps in found.items():
        for number, (step, was) in enumerate(zip(steps, recorded.get(name, []) + [{}] * len(steps))):
            lines += [f"{name} on {backend}, step {number + 1}: {what} {was.get(what)} -> {n}" for what, n in step.items()
                      if was.get(what) != n]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write counts.json")
    parser.add_argument("--of", choices=BACKENDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.of:
        print(json.dumps(count(options.of)))
        return 0
    missing = {backend: why for backend in BACKENDS if (why := why_not(backend))}
    for backend, why in missing.items():
        print(f"left out: {backend}: {why}", file=sys.stderr)
    found = {backend: count_elsewhere(backend) for backend in BACKENDS if backend not in missing}
    if options.record:
        if missing:
            return 1
        RECORD.write_text(text_of(found), encoding="utf-8")
        return 0
    lines = [line for backend, programs in found.items() for line in differences(backend, programs)]
    print(text_of(found) + "\n".join(lines))
    return 1 if lines else 0


def text_of(found):
    """JSON, a step a line."""
    lines = []
    for backend, programs in found.items():
        parts = [f'    "{name}": [\n' + ",\n".join("      " + json.dumps(step) for step in steps) + "\n    ]"
                 for name, steps in programs.items()]
        lines.append(f'  "{backend}": {{\n' + ",\n".join(parts) + "\n  }")
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(main())
