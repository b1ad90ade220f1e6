"""Copies and launches on several streams at once, and on one: when each began and ended, on the GPU's clock."""

import ctypes as c

import numpy as np

from contenders import Gpu
from library import Scalar

CHUNKS, STREAMS = 8, 3
KINDS = ("in", "run", "out")
ROUNDS = 250  # of the program's loop: on an H200 a chunk then takes about as long to compute as to copy
COLUMNS = 96
TEXT = """.buffer x f32 inout
.scalar rounds u32
    ldg.f32  r0, [x + lane]
    mov.u32  r1, rounds
again:
    fma.f32  r0, r0, #0.5, #1
    loop     r1, again
    stg.f32  [x + lane], r0
    exit
"""


class EventDesc(c.Structure):
    _fields_ = [("size", c.c_size_t), ("flags", c.c_uint32)]


class Overlap:
    """CHUNKS pieces of data, each copied to the GPU, worked on and copied back."""

    def __init__(self, gpu: Gpu, byte_count: int):
        self.gpu, self.c, self.bytes = gpu, gpu.library.c, byte_count // CHUNKS
        self.kernel = gpu.executor.kernel(TEXT, "overlap")
        self.buffers = [gpu.allocate(self.bytes) for _ in range(CHUNKS)]
        self.memory = c.c_void_p()
        self.call("hg_host_allocate", gpu.executor.handle, c.c_uint64(byte_count), c.byref(self.memory))
        pages = (c.c_float * (byte_count // 4)).from_address(self.memory.value)
        self.host = np.frombuffer(pages, np.float32).reshape(CHUNKS, -1)

    def call(self, name: str, *arguments) -> None:
        self.gpu.library.check(getattr(self.c, name)(*arguments))

    def event(self) -> c.c_void_p:
        event, desc = c.c_void_p(), EventDesc(size=c.sizeof(EventDesc), flags=1)
        self.call("hg_event_create", self.gpu.executor.handle, c.byref(desc), c.byref(event))
        return event

    def submit(self, chunk: int, stream: c.c_void_p) -> list[c.c_void_p]:
        buffer, row = self.buffers[chunk], c.c_void_p(self.memory.value + chunk * self.bytes)
        desc = self.gpu.launch_desc({"x": buffer}, lanes=self.bytes // 4)
        desc.scalar = Scalar(name=b"rounds", type=self.c.atlas_type_from_name(b"u32"), bits=ROUNDS)
        desc.scalars, desc.scalar_count, desc.stream = c.pointer(desc.scalar), 1, stream
        events = [self.event() for _ in range(4)]
        size, zero = c.c_uint64(self.bytes), c.c_uint64(0)
        self.call("hg_event_record", events[0], stream)
        self.call("hg_buffer_write_async", buffer, zero, row, size, stream)
        self.call("hg_event_record", events[1], stream)
        self.call("hg_launch", self.kernel.handle, c.byref(desc), None)
        self.call("hg_event_record", events[2], stream)
        self.call("hg_buffer_read_async", buffer, zero, row, size, stream)
        self.call("hg_event_record", events[3], stream)
        return events

    def run(self, stream_count: int) -> dict:
        """Milliseconds since the first event."""
        self.host[:] = np.arange(self.host.shape[1], dtype=np.float32) % 7
        streams = [self.gpu.open_stream() for _ in range(stream_count)]
        chunks = [self.submit(k, streams[k % stream_count]) for k in range(CHUNKS)]
        for stream in streams:
            self.call("hg_stream_wait", stream, None)
        spans, took = [], c.c_double()
        for k, events in enumerate(chunks):
            times = []
            for event in events:
                self.call("hg_event_elapsed", chunks[0][0], event, c.byref(took))
                times.append(took.value / 1e6)
            spans += [{"chunk": k, "what": what, "from_ms": times[i], "to_ms": times[i + 1]} for i, what in enumerate(KINDS)]
        for event in sum(chunks, []):
            self.c.hg_event_release(event)
        for stream in streams:
            self.c.hg_stream_release(stream)
        return {"streams": stream_count, "ms": max(s["to_ms"] for s in spans), "spans": spans, "answer": self.host.copy()}

    def close(self) -> None:
        self.host = None
        self.c.hg_host_release(self.gpu.executor.handle, self.memory)
        for buffer in self.buffers:
            self.c.hg_buffer_release(buffer)


def measure(gpu: Gpu, byte_count: int) -> list[dict]:
    overlap = Overlap(gpu, byte_count)
    overlap.run(1)  # the first pays for what is made once
    rows = [overlap.run(count) for count in (1, STREAMS)]
    answers = [row.pop("answer") for row in rows]
    overlap.close()
    if not np.array_equal(answers[0].view(np.uint32), answers[1].view(np.uint32)):
        raise RuntimeError("one stream and several left different bits")
    return rows


def lines(row: dict, longest_ms: float) -> str:
    """A row of text for each kind of work; a digit is the chunk that is at it."""
    text = [f"  {row['streams']} stream{'s' if row['streams'] > 1 else ''}: {row['ms']:.2f} ms"]
    for what in KINDS:
        cells = [" "] * COLUMNS
        for span in (s for s in row["spans"] if s["what"] == what):
            first, last = (int(span[end] / longest_ms * (COLUMNS - 1)) for end in ("from_ms", "to_ms"))
            cells[first:max(last, first + 1)] = [str(span["chunk"])] * max(last - first, 1)
        text.append(f"    {what:4}|{''.join(cells)}|")
    return "\n".join(text)
