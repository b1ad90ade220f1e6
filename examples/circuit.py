"""A permutation with masks over a block of 96 classes, and its inverse, read off the canonical form.

    python examples/circuit.py [--backend auto|cpu|cuda|metal]

The circuit deals the classes of a block like cards and marks every third one. It is written with repetitions, transforms and
detours; its canonical form is the same as that of a table of moves. The inverse brings the block back, and both together are
nothing. Ends with exit status 1 if NumPy disagrees."""

import argparse
import sys

import numpy as np

import hologram as hg

CLASSES, BYTES = 96, 12288


def write_circuit() -> str:
    """Interleaves the two halves, class by class, from a text as people write them; the rightmost step runs first."""
    riffle = []
    order = list(range(CLASSES))  # which class's content each place holds
    for place, wanted in enumerate(c // 2 + c % 2 * (CLASSES // 2) for c in range(CLASSES)):
        found = order.index(wanted)
        order[place], order[found] = order[found], order[place]
        riffle.append(f"swap@c{place}<->c{found}")
    masks = " || ".join(f"mark@c{c}" for c in range(0, CLASSES, 3))
    detour = "R+1@(mark@c[0..7]) . (mark@c[24..31])"  # marks classes 24 to 31 twice
    return f"({masks}) . {detour} . {' . '.join(reversed(riffle))}"


def in_numpy(block: np.ndarray) -> np.ndarray:
    """The same, written for NumPy."""
    moved = block[[c // 2 + c % 2 * (CLASSES // 2) for c in range(CLASSES)]]
    for c in range(0, CLASSES, 3):
        moved[c] ^= np.uint8(c // 24 << 6 | (0x00, 0x10, 0x20)[c % 24 // 8] | c % 8 << 1)
    return moved


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda or metal (auto)")
    executor = hg.Executor(parser.parse_args().backend)
    block = np.random.default_rng(0).integers(0, 256, (CLASSES, BYTES), dtype=np.uint8)
    classes = [executor.allocate_boundary(c, dtype="uint8") for c in range(CLASSES)]
    for c in range(CLASSES):
        classes[c].from_numpy(block[c])

    circuit = hg.circuit(write_circuit())
    report = circuit.report
    circuit.run(executor)
    dealt = np.stack([c.to_numpy() for c in classes])
    inverse = circuit.inverse()
    inverse.run(executor)
    back = np.stack([c.to_numpy() for c in classes])
    together = hg.circuit(f"{inverse.canonical} . {circuit.canonical}")

    print(f"{report['steps']} steps as written, {report['canonical_steps']} in canonical form, {report['changed']} classes change")
    print(f"hash {circuit.hash[:16]}, of the inverse {inverse.hash[:16]}; both together: {together.canonical or 'nothing'}")
    agrees = np.array_equal(dealt, in_numpy(block)) and np.array_equal(back, block) and together.canonical == ""
    print("as in NumPy, and back again" if agrees else "NumPy disagrees")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())
