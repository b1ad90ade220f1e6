"""Random circuits on an executor, against circuit_model.py:

    python tests/python/random_circuits.py --backend cuda --count 10000

Each circuit is run as written and as its canonical form by the model, and its canonical form by the executor, byte for byte. A driver
takes tens of milliseconds to compile a program for a GPU; so circuits that share no class run as one, side by side, and several processes
compile at a time. It prints how far they are, and in the end a summary."""

import argparse
import concurrent.futures
import os
import random
import subprocess
import sys
import time

import numpy as np

import circuit_model as model
import hologram as hg

OPEN = 32  # launches that are being filled with circuits at a time


class Pool:
    """The boundary pool of an executor, which is kept as the model's is."""

    def __init__(self, executor, seed=0):
        self.executor = executor
        self.classes = [executor.allocate_boundary(c, dtype="uint8") for c in range(model.CLASSES)]
        self.first = list(model.contents(seed))
        for c in range(model.CLASSES):
            self.classes[c].from_numpy(self.first[c])

    def expected(self, steps):
        places = dict(enumerate(self.first))
        model.run(steps, places)
        return places

    def check(self, circuit, places):
        """Runs it on the first contents; what changes is as given, and is put back."""
        circuit.run(self.executor)
        for c in range(model.CLASSES):
            if places[c] is not self.first[c]:
                assert np.array_equal(self.classes[c].to_numpy(), places[c]), f"c{c:02} after {circuit.canonical}"
                self.classes[c].from_numpy(self.first[c])

    def check_rest(self):
        for c in range(model.CLASSES):
            assert np.array_equal(self.classes[c].to_numpy(), self.first[c]), f"c{c:02} was touched"


def same(places, others):
    return all(places[c] is others[c] or np.array_equal(places[c], others[c]) for c in range(model.CLASSES))


class Launch:
    """Circuits that share no class: what they touch, their texts, and what they leave in classes that change."""

    def __init__(self):
        self.used, self.texts, self.changed = set(), [], {}

    def run(self, pool):
        circuit = hg.circuit(" . ".join(text for text in self.texts if text))
        pool.check(circuit, {**dict(enumerate(pool.first)), **self.changed})


def check_circuit(pool, seed):
    """As written = canonical, in the model: its canonical text, the classes that it touches, and what it leaves."""
    drawn = model.draw_circuit(seed)
    text, steps = model.write(random.Random(seed), drawn), model.steps_of(drawn)
    circuit = hg.circuit(text)
    canonical = circuit.canonical
    again = hg.circuit(canonical)
    assert again.canonical == canonical and again == circuit and again.hash == circuit.hash, text
    places, its_steps = pool.expected(steps), model.steps_of_canonical(canonical)
    assert same(places, pool.expected(its_steps)), (seed, text, canonical)
    return canonical, model.touched(its_steps) | model.touched(steps), places


def check(executor, first, count, tell=lambda circuits, launches: None):
    """Circuits of these seeds. Each joins the first launch none of whose circuits touches its classes."""
    pool = Pool(executor, first)
    waiting, launches = [Launch()], 0
    for seed in range(first, first + count):
        canonical, touched, places = check_circuit(pool, seed)
        launch = next((launch for launch in waiting if not launch.used & touched), None)
        if launch is None:
            launch = Launch()
            waiting.append(launch)
        launch.used |= touched
        launch.texts.append(canonical)
        launch.changed |= {c: places[c] for c in range(model.CLASSES) if places[c] is not pool.first[c]}
        if len(waiting) > OPEN:
            fullest = max(waiting, key=lambda launch: len(launch.used))
            waiting.remove(fullest)
            fullest.run(pool)
            launches += 1
            tell(len(fullest.texts), launches)
    for launch in waiting:
        launch.run(pool)
        launches += 1
        tell(len(launch.texts), launches)
    pool.check_rest()
    return launches


def check_in_processes(backend, engine, first, count, processes):
    """Each process has a share of the seeds. Returns the launches of all."""
    begun, done = time.monotonic(), {}

    def run_share(share):
        low, high = (first + count * k // processes for k in (share, share + 1))
        command = [sys.executable, __file__, "--backend", backend, "--first", str(low), "--count", str(high - low), "--processes", "1"]
        with subprocess.Popen([*command, *(("--engine", engine) if engine else ())], stdout=subprocess.PIPE, text=True) as child:
            for line in child.stdout:
                circuits, launches = map(int, line.split())
                before = sum(c for c, _ in done.values()) * 20 // count
                done[share] = (done.get(share, (0, 0))[0] + circuits, launches)
                so_far = sum(c for c, _ in done.values())
                if so_far * 20 // count > before:
                    print(f"{so_far:,} of {count:,} circuits, {time.monotonic() - begun:.0f} s", flush=True)
        assert child.returncode == 0, f"circuits {low} to {high - 1} failed"

    with concurrent.futures.ThreadPoolExecutor(processes) as threads:
        list(threads.map(run_share, range(processes)))
    assert sum(c for c, _ in done.values()) == count
    return sum(launches for _, launches in done.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--engine")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10000)
    parser.add_argument("--processes", type=int, default=min(8, os.cpu_count()))
    o = parser.parse_args()
    begun = time.monotonic()
    if o.processes == 1:
        check(hg.Executor(o.backend, engine=o.engine), o.first, o.count, lambda *done: print(*done, flush=True))
        return
    launches = check_in_processes(o.backend, o.engine, o.first, o.count, o.processes)
    print(f"{o.count:,} circuits in {launches:,} launches on {o.backend}, {o.processes} processes, {time.monotonic() - begun:.1f} s:"
          " as written = canonical = executed, byte for byte")


if __name__ == "__main__":
    main()
