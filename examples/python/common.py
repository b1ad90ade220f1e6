"""What the examples share: hashes of bits, comparison with NumPy, options.

An example has three functions: `compute(quick)` works with Hologram and gives a dictionary, whose "hash" is of the bits;
`check(result, quick)` compares it with NumPy and gives a sentence; `draw(result)` gives pictures by name."""

import argparse
import hashlib
import sys
from pathlib import Path

import numpy as np

import hologram as hg


# ---- bits -------------------------------------------------------------------------------------------------------------------

def digest(arrays):
    """SHA-256 of the bytes of arrays, one after the other."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(np.asarray(array)).tobytes())
    return sha.hexdigest()


def shuffled(count, seed):
    """The numbers below count in an order that only the seed decides: that of random words."""
    return np.argsort(hg.random.bits(hg.random.key(seed), count).numpy(), kind="stable")


def require(condition, what):
    if not condition:
        sys.exit(f"{Path(sys.argv[0]).name}: {what}")


def same_bits(what, ours, numpys):
    ours, numpys = np.asarray(ours), np.asarray(numpys)
    forms = [f"{x.dtype}{x.shape}" for x in (ours, numpys)]
    require(forms[0] == forms[1], f"{what}: {forms[0]}, not NumPy's {forms[1]}")
    differ = np.count_nonzero(ours.view(f"u{ours.itemsize}") != numpys.view(f"u{ours.itemsize}"))
    require(differ == 0, f"{what}: {differ} of {ours.size} elements differ from NumPy's")


def folded(x, axis):
    """NumPy's form of hg.sum, for at most 4,096 elements: folded by halves (docs/operations.md, order F)."""
    x = np.moveaxis(x, axis, 0)
    while len(x) > 1:
        half = 1 << (len(x) - 1).bit_length() - 1
        x = np.concatenate([x[:len(x) - half] + x[half:], x[len(x) - half:half]])
    return x[0]


# ---- the command --------------------------------------------------------------------------------------------------------------

def choose(backend):
    """Arrays live on this backend from now on; gives its name and engine."""
    executor = hg.Executor(backend=backend)
    hg.set_default_executor(executor)
    return executor.backend, executor.info["engine"]


def main(text, compute, check, draw):
    name = Path(sys.argv[0]).stem
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="cpu", help="auto, cpu, cuda or metal (cpu)")
    parser.add_argument("--quick", action="store_true", help="less of everything, for tests")
    parser.add_argument("--out", type=Path, help="folder for the pictures; none are drawn without it")
    options = parser.parse_args()
    print("{}: on {} ({})".format(name, *choose(options.backend)))
    result = compute(options.quick)
    print(result["text"])
    print(f"  {check(result, options.quick)}")
    print(f"  bits {result['hash']}")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        for title, picture in draw(result).items():
            picture.save(options.out / f"{title}.png")
    return 0
