"""Records launches and what they left, for replay.c, which repeats them without the model that judged them: where there is no
Python, or where it would take too long.

    HOLOGRAM_TEST_RECORD=FOLDER pytest tests/conformance        # every process writes what it launched to a file of its own
    build/release/tests/conformance/replay FOLDER

A file is a sequence of records, little-endian, each with a letter in front; replay.c reads them in the same order.

With HOLOGRAM_TEST_DIGESTS=FOLDER digests of the same are written, for tests/record to compare two libraries."""

import hashlib
import json
import os
import struct
from pathlib import Path

FAULTS = "none out_of_bounds misaligned trap step_limit class pool unity".split()


def number(value: int, size: str = "I") -> bytes:
    return struct.pack("<" + size, value)


def block(data: bytes) -> bytes:
    return number(len(data), "Q") + data


def fault_record(fault: dict | None) -> bytes:
    if fault is None:
        return number(0)
    values = [FAULTS.index(fault["kind"]), fault["instruction"], fault["code"], fault["lane"], fault["index"], fault["extent"]]
    return struct.pack("<IIIQqq", *values) + block(fault["buffer"].encode())


def bindings(buffers: dict, tables: dict, left: dict | None):
    """What was bound: its name, which entry of a table it is, what it held before and after."""
    for name, array in buffers.items():
        yield name, 0, array, None if left is None else left[name]
    for name, arrays in tables.items():
        for entry, array in enumerate(arrays):
            if array is not None:
                yield name, entry, array, None if left is None else left[name][entry]


class Recorder:
    """Writes calls of one engine to a file of this process."""

    def __init__(self, folder: str):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.folder, self.file = folder, None

    def _write(self, record: bytes) -> None:
        if self.file is None:
            self.file = open(Path(self.folder) / f"{os.getpid()}.calls", "wb")
        self.file.write(record)
        self.file.flush()

    def set_phase(self, phase: int) -> None:
        self._write(b"p" + number(phase))

    def write_boundary(self, data) -> None:
        self._write(b"b" + block(data.tobytes()))

    def run(self, program, launch: dict, left: dict | None, fault: dict | None) -> None:
        """`left`: the buffers and tables after the launch; None: more than one outcome is right, and this was one."""
        three = [tuple(launch[name]) + (0,) * (3 - len(launch[name])) for name in ("grid", "block")]
        rows = list(bindings(launch["buffers"], launch["tables"], left))
        record = b"r" + block(program.encode()) + struct.pack("<Q3I3IQII", launch["lanes"], *three[0], *three[1], launch["step_limit"],
                                                     launch["flags"], left is not None) + fault_record(fault)
        record += number(len(launch["scalars"]))
        for name, (type_code, bits) in launch["scalars"].items():
            record += block(name.encode()) + struct.pack("<IQ", type_code, bits)
        record += number(len(rows))
        for name, entry, before, after in rows:
            record += block(name.encode()) + number(entry) + block(before.tobytes()) + block(b"" if after is None else after.tobytes())
        self._write(record)


def digest_of(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(block(part) for part in parts)).hexdigest()[:8]


class Digests:
    """Writes a line for each launch of a test: the test, and digests of what was launched, of its program's hash and of its results."""

    def __init__(self, folder: str):
        Path(folder).mkdir(parents=True, exist_ok=True)
        self.file, self.state = open(Path(folder) / f"{os.getpid()}.lines", "w", encoding="utf-8", buffering=1), b""

    def set_phase(self, phase: int) -> None:
        self.state += b"p" + number(phase)

    def write_boundary(self, data) -> None:
        self.state += b"b" + data.tobytes()

    def run(self, program, launch: dict, left: dict | None, fault: dict | None) -> None:
        rows = list(bindings(launch["buffers"], launch["tables"], left))
        more = repr({key: value for key, value in launch.items() if key not in ("buffers", "tables")})
        given = [part for name, entry, before, _ in rows for part in (name.encode(), number(entry), before.tobytes())]
        results = [repr(fault).encode(), *(after.tobytes() for *_, after in rows if after is not None)]
        line = [os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)"), digest_of(program.encode(), more.encode(), self.state, *given),
                digest_of(program.hash()), "-" if left is None else digest_of(*results)]
        self.file.write(json.dumps(line) + "\n")
        self.state = b""


def of_environment() -> Recorder | Digests | None:
    for name, made in (("HOLOGRAM_TEST_RECORD", Recorder), ("HOLOGRAM_TEST_DIGESTS", Digests)):
        if name in os.environ:
            return made(os.environ[name])
    return None
