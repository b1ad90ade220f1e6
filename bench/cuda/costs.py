"""What is no program's: what the card's memory can do, a launch, a first launch, copies from the host."""

import ctypes as c
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

from cases import PROGRAMS, Case
from contenders import Gpu, Ours
from driver import Driver, Plain
from library import LaunchDesc

HERE = Path(__file__).resolve().parent
LIMIT_SAMPLES = 15
LAUNCHES = 64          # in a row: fewer than the driver lets wait
LAUNCH_SAMPLES = 200
GRAPH_LAUNCHES = 8
COLD_RUNS = 5          # of ours; a peer's first launch takes seconds and is measured once
COPY_ROUNDS = 9


# ---- memory -----------------------------------------------------------------------------------------------------------------------

def limits(driver: Driver, byte_count: int) -> dict:
    """GB/s, the best of several, of plain kernels and of the driver's own copy, on arrays of byte_count bytes."""
    rates = {"paper": driver.paper_rate()}
    for inputs, name in ((1, "copy kernel"), (2, "add kernel")):
        plain = Plain(driver, inputs, byte_count)
        calls = {name: (plain.call, plain.moved)} | ({"driver's copy": (plain.copy, plain.moved)} if inputs == 1 else {})
        for who, (call, moved) in calls.items():
            driver.time(plain.stream, call, 2)
            rates[who] = moved / min(driver.time(plain.stream, call, 4) for _ in range(LIMIT_SAMPLES))
        plain.close()
    return rates


# ---- a launch ---------------------------------------------------------------------------------------------------------------------

class Calls:
    """bench/cuda/calls.c."""

    def __init__(self, path: Path):
        self.c = c.CDLL(str(path.resolve()))
        p, u64 = c.c_void_p, c.c_uint64
        self.c.time_launches.restype = self.c.time_graphs.restype = self.c.time_driver_launches.restype = u64
        self.c.time_graphs.argtypes = [p, p, p, u64, c.POINTER(c.c_int)]
        self.c.time_launches.argtypes = [p, p, p, u64, c.POINTER(c.c_int)]
        self.c.time_driver_launches.argtypes = [p, p, p, p, p, u64, c.POINTER(c.c_int)]


def samples_of(sample, wait) -> dict:
    return samples_in_turn((sample, wait))[0]


def samples_in_turn(*contenders) -> list[dict]:
    """Of pairs (sample, wait): what disturbs the machine meanwhile disturbs all of them."""
    found = [[] for _ in contenders]
    for sample, wait in contenders:
        sample()
        wait()
    for _ in range(LAUNCH_SAMPLES):
        for (sample, wait), own in zip(contenders, found):
            own.append(sample() / LAUNCHES)
            wait()
    return [{"median_ns": median(own), "min_ns": min(own)} for own in found]


def captured(gpu: Gpu, ours: Ours, stream, count: int) -> c.c_void_p:
    """A graph of so many launches."""
    library, graph = gpu.library, c.c_void_p()
    library.check(library.c.hg_capture_begin(stream))
    for _ in range(count):
        ours.call()
    library.check(library.c.hg_capture_end(stream, c.byref(graph)))
    return graph


def launches(driver: Driver, gpu: Gpu, calls: Calls, peers: dict) -> list[dict]:
    """Host nanoseconds of a launch of one element: with a wait after each, and alone."""
    status, rows = c.c_int(), []
    case = Case(PROGRAMS["add"], "f32", 4096)
    ours, plain = Ours(gpu, case), Plain(driver, 1, 1 << 14)
    hg_launch = c.cast(gpu.library.c.hg_launch, c.c_void_p)
    function = c.cast(driver.c.cuLaunchKernel, c.c_void_p)
    synchronise = c.cast(driver.c.cuStreamSynchronize, c.c_void_p)
    desc = ours.launches[0]
    desc.lanes = 1

    def driver_sample(wait):
        took = calls.c.time_driver_launches(function, wait, plain.function, plain.stream, plain.parameters, LAUNCHES, c.byref(status))
        if status.value:
            raise RuntimeError(f"cuLaunchKernel failed ({status.value})")
        return took

    def our_sample():
        took = calls.c.time_launches(hg_launch, ours.kernel.handle, c.addressof(desc), LAUNCHES, c.byref(status))
        gpu.library.check(status.value)
        return took

    def add(what, who, sample, wait=lambda: None):
        rows.append({"what": what, "who": who} | samples_of(sample, wait))

    def graph_sample(graph, stream):
        took = calls.c.time_graphs(c.cast(gpu.library.c.hg_graph_launch, c.c_void_p), graph, stream, LAUNCHES, c.byref(status))
        gpu.library.check(status.value)
        return took

    add("launch and wait", "driver", lambda: driver_sample(synchronise))
    alone = {"driver": (lambda: driver_sample(None), lambda: driver.wait(plain.stream))}
    if gpu.stream:
        desc.stream = stream = gpu.open_stream()  # one of its own, as most programs have
        wait = lambda: gpu.library.check(gpu.library.c.hg_stream_wait(stream, None))  # noqa: E731
        alone["hologram"] = (our_sample, wait)
    rows += [{"what": "launch alone", "who": who} | took for who, took in zip(alone, samples_in_turn(*alone.values()))]
    if gpu.stream:
        if hasattr(gpu.library.c, "hg_graph_launch"):
            graph = captured(gpu, ours, stream, GRAPH_LAUNCHES)
            add(f"graph of {GRAPH_LAUNCHES}", "hologram", lambda: graph_sample(graph, stream), wait)
        desc.stream = None
    add("launch and wait", "hologram", our_sample)
    for name, library in peers.items():
        call = library.contender(case, name).call
        call()

        def sample(call=call):
            start = time.perf_counter_ns()
            for _ in range(LAUNCHES):
                call()
            return time.perf_counter_ns() - start
        add("launch alone", f"{name}, from Python", sample, lambda: driver.wait(None))
    plain.close()
    return rows


# ---- a first launch ---------------------------------------------------------------------------------------------------------------

def cold_once(library: Path, program: str, who: str, folder: str) -> dict:
    """In a process of its own; the driver's cache of compiled text is off, everybody's own is in `folder`."""
    names = ("HOLOGRAM_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUPY_CACHE_DIR")
    environment = os.environ | {name: os.path.join(folder, name) for name in names} | {"CUDA_CACHE_DISABLE": "1", "HOLOGRAM_QUICK": ""}
    child = subprocess.run([sys.executable, str(HERE / "cold.py"), str(library), program, who], env=environment, text=True,
                           capture_output=True)
    if child.returncode:
        return {"why": (child.stderr.strip().split("\n") or ["no reason"])[-1]}
    return json.loads(child.stdout.strip().split("\n")[-1])


def cold(library: Path, program: str, who: str) -> dict:
    """Nanoseconds from source text to the end of the first launch, the context being there: without a cache, then with what
    that left."""
    runs = []
    for _ in range(COLD_RUNS if who == "hologram" else 1):
        with tempfile.TemporaryDirectory() as folder:
            runs.append([cold_once(library, program, who, folder) for _ in range(2)])
    row = {"program": program, "who": who}
    for index, name in enumerate(("fresh", "cached")):
        parts = [run[index] for run in runs]
        failed = next((p for p in parts if "why" in p), None)
        row[name] = failed or min(parts, key=lambda p: p["cold_ns"])
    return row


# ---- copies -------------------------------------------------------------------------------------------------------------------------

def copies(gpu: Gpu, torch_peer, byte_count: int) -> list[dict]:
    """Between host memory from malloc and the GPU, in turns; PyTorch's from pinned memory beside them."""
    host = np.frombuffer(np.random.default_rng(1).bytes(byte_count), np.uint8).copy()
    back, buffer = np.zeros_like(host), gpu.allocate(byte_count)
    calls = {("to the GPU", "hologram"): lambda: (gpu.write(buffer, host), gpu.read(buffer, 0, back[:4])),
             ("from the GPU", "hologram"): lambda: gpu.read(buffer, 0, back)}
    if torch_peer:
        torch = torch_peer.torch
        theirs, tensor, result = torch.empty(byte_count, dtype=torch.uint8, device="cuda"), torch.from_numpy(host), torch.from_numpy(back)
        pinned = tensor.clone().pin_memory()

        def move(to, source):
            to.copy_(source)
            torch.cuda.synchronize()
        calls |= {("to the GPU", "torch"): lambda: move(theirs, tensor), ("from the GPU", "torch"): lambda: move(result, theirs),
                  ("to the GPU", "torch, pinned"): lambda: move(theirs, pinned),
                  ("from the GPU", "torch, pinned"): lambda: move(pinned, theirs)}
    samples = {key: [] for key in calls}
    for turn in range(COPY_ROUNDS):
        for key, call in calls.items():
            start = time.perf_counter_ns()
            call()
            if turn:
                samples[key].append(time.perf_counter_ns() - start)
    gpu.library.c.hg_buffer_release(buffer)
    if not np.array_equal(host, back):
        raise RuntimeError("what came back from the GPU is not what went there")
    return [{"what": what, "who": who, "bytes": byte_count, "median_ns": median(s), "min_ns": min(s)} for (what, who), s in samples.items()]
