"""Repeats recorded launches, without the model that judged them: for tools that make the GPU slow, such as compute-sanitizer.

    HOLOGRAM_TEST_RECORD=FOLDER pytest tests/conformance        # every process writes what it launched, and the outcome
    replay.py FOLDER PART OF                                    # launches every OF-th of them, from PART; outcomes must be equal

Calls that set the executor's phase or boundary pool are repeated in their places.
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
            same = hg.same_arrays(buffers, result.buffers) is None and (fault is None) == (result.fault is None)
            passed, failed = passed + same, failed + (not same)
            if not same:
                print(f"{path.name}: launch {passed + failed} of this process left something else than it did before")
            if (passed + failed) % 500 == 0:
                print(f"{passed + failed} launches, {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
