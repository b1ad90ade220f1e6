"""One row's first calls by one contender, in this process: first.py ROW WHO BACKEND SECONDS. Prints a JSON object; run.py starts it, with
every cache of compiled code empty."""

import json
import sys
import time
from pathlib import Path
from statistics import median

from contenders import CONTENDERS, parts_of
from rows import rows

NEAR = 1.1       # a call that takes at most so many times the last ones' median has the full rate
CALLS = 50       # after which memory is looked at


def memory(backend: str) -> tuple[int, int]:
    """Bytes that are in use now, and the most there were: of the device (there is no most), or of the process."""
    if backend == "cuda":
        import torch
        free, total = torch.cuda.mem_get_info()
        return total - free, 0
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines())
    return tuple(int(fields[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))


def until_full(took: list[int]) -> tuple[int, int]:
    """The median of the last quarter of the calls, and how long it was, from the first call's begin, until a call was that fast and
    nine of the ten from there on were."""
    full = median(took[-max(1, len(took) // 4):])
    for i in range(len(took)):
        next_ones = took[i:i + 10]
        if sum(t > NEAR * full for t in next_ones) <= len(next_ones) // 10:
            return int(full), sum(took[:i])
    return int(full), sum(took)


def main() -> None:
    name, who, backend, seconds = sys.argv[1:]
    contender = CONTENDERS[who](backend)
    row = rows(backend)[name]
    call = contender.prepare(row, [one.values(number) for number, one in enumerate(row.inputs.values())])
    before, _ = memory(backend)
    took, begun = [], time.monotonic()
    while len(took) < 5 or time.monotonic() - begun < float(seconds):
        at = time.perf_counter_ns()
        result = call()
        contender.wait()
        took.append(time.perf_counter_ns() - at)
    full, until = until_full(took)
    for _ in range(CALLS):
        result = call()
    contender.wait()
    after, most = memory(backend)
    sizes = [part.nbytes for part in parts_of(result)]
    print(json.dumps({"first_ns": took[0], "second_ns": took[1], "full_ns": full, "until_full_ns": until, "calls": len(took),
                      "result_bytes": sum(sizes), "held_bytes": after - before, "most_bytes": max(0, most - before)}))


if __name__ == "__main__":
    main()
