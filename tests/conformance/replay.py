"""Repeats recorded launches, without the model that judged them: for tools that make the GPU slow, such as compute-sanitizer.

    HOLOGRAM_TEST_RECORD=FOLDER pytest tests/conformance        # every process writes what it launched, and the outcome
    replay.py FOLDER PART OF                                    # launches every OF-th of them, from PART

Outcomes must be equal, but for launches of which more than one is right. Calls that set the executor's phase or boundary pool
are repeated in their places.
"""

import os
import pickle
import sys
import time
from pathlib import Path


class Recorder:
    """Writes calls of one engine to a file of this process."""

    def __init__(self, folder: str):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.folder, self.file = folder, None

    def add(self, *call) -> None:
        if self.file is None:
            self.file = open(Path(self.folder) / f"{os.getpid()}.calls", "wb")
        pickle.dump(call, self.file)
        self.file.flush()


def calls_of(path: Path):
    with open(path, "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def difference(buffers: dict | None, fault: dict | None, result) -> str | None:
    """What a launch left that it did not leave when it was recorded, with None as buffers whatever they were."""
    import hg

    name = hg.same_arrays(buffers or {}, result.buffers)
    if (fault is None) != (result.fault is None):
        return f"its fault was {fault} and is {result.fault}"
    return None if name is None else f"'{name}' is not what it was" + (f" (fault: {fault})" if fault else "")


def main(folder: str, part: int, parts: int) -> int:
    import hg

    passed, failed, start = 0, 0, time.monotonic()
    for path in sorted(Path(folder).glob("*.calls"))[part::parts]:
        engine = hg.Engine("default")  # as fresh as that of the process which wrote it
        for kind, *call in calls_of(path):
            if kind != "run":
                getattr(engine, kind)(*call)
                continue
            text, launch, buffers, fault = call
            result = engine.run(hg.decode(text), **launch)
            changed = difference(buffers, fault, result)
            passed, failed = passed + (changed is None), failed + (changed is not None)
            if changed:
                print(f"{path.name}: launch {passed + failed} of this process: {changed}")
            if (passed + failed) % 500 == 0:
                print(f"{passed + failed} launches, {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
