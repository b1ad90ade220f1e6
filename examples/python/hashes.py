"""Hashes of what digits, n-body and image pipeline compute, to compare one machine's bits with another's.

    python examples/python/hashes.py --backend cpu --json > here.json
    python examples/python/hashes.py --backend cuda --expect here.json     (on the other: exit status 1 if a hash differs)"""

import argparse
import json
import sys
import time
from pathlib import Path

import digits
import images
import nbody
from common import choose


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda or metal (auto)")
    parser.add_argument("--quick", action="store_true", help="less of everything; other hashes")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--expect", type=Path, help="what --json printed elsewhere")
    options = parser.parse_args()
    backend, engine = choose(options.backend)
    found = {"backend": backend, "engine": engine, "quick": options.quick, "hashes": {}, "seconds": {}}
    for example in (digits, nbody, images):
        begun = time.perf_counter()
        found["hashes"][example.__name__] = example.compute(options.quick)["hash"]
        found["seconds"][example.__name__] = round(time.perf_counter() - begun, 3)
    expected = json.loads(options.expect.read_text()) if options.expect else found
    if expected["quick"] != options.quick:
        sys.exit("hashes.py: --quick here and not there, or there and not here")
    differing = [name for name, value in found["hashes"].items() if expected["hashes"].get(name) != value]
    if options.json:
        print(json.dumps(found | ({"same": not differing} if options.expect else {}), indent=2))
    else:
        print(f"on {backend} ({engine})")
        for name, value in found["hashes"].items():
            note = "  DIFFERS" if name in differing else ""
            print(f"{name:<8} {found['seconds'][name]:>7.3f} s  {value}{note}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
