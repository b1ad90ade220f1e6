"""Random programs with their launches (tests/random/emit_launches.c), on the library that HOLOGRAM_LIB names: digests of what each is,
of its hash, of what it leaves behind and, if asked for, of the code that the compiler makes of it for each target."""

import ctypes as c
import os
import re
import struct
import subprocess
from dataclasses import dataclass

import numpy as np

import hg
from recorder import digest_of

FIELDS = ("program", "hash", "results")
CAPABILITIES = (75, 80, 90)


@dataclass
class Launch:
    """A program and how it is launched; all memory that it binds lies in one arena. An empty program did not verify."""
    seed: int
    program: bytes
    lanes: int = 0
    grid: tuple = ()
    block: tuple = ()
    step_limit: int = 0
    phase: int = 0
    arena: bytes = b""
    boundary: bytes = b""
    bindings: tuple = ()  # slot, entry, offset, bytes
    scalars: tuple = ()   # slot, type, bits


def read_launches(stream):
    def numbers(form):
        return struct.unpack("<" + form, stream.read(struct.calcsize("<" + form)))

    def block():
        return stream.read(numbers("Q")[0])

    while head := stream.read(8):
        launch = Launch(struct.unpack("<Q", head)[0], block())
        if launch.program:
            launch.lanes, *six, launch.step_limit, launch.phase = numbers("Q6IQI")
            launch.grid, launch.block = tuple(six[:3]), tuple(six[3:])
            launch.arena, launch.boundary = block(), block()
            launch.bindings = tuple(numbers("IIQQ") for _ in range(numbers("I")[0]))
            launch.scalars = tuple(numbers("IIQ") for _ in range(numbers("I")[0]))
        yield launch


def launches(first, count):
    with subprocess.Popen([os.environ["HOLOGRAM_EMIT_LAUNCHES"], str(first), str(count)], stdout=subprocess.PIPE) as emitter:
        yield from read_launches(emitter.stdout)
    if emitter.returncode:
        raise RuntimeError(f"emit_launches: exit status {emitter.returncode}")


# ---- what it leaves ---------------------------------------------------------------------------------------------------


def results_of(engine: hg.Engine, program: hg.Program, launch: Launch) -> list[bytes]:
    """Memory, counters and fault after the launch."""
    kernel, arena = c.c_void_p(), c.c_void_p()
    try:
        hg.check(hg.lib.hg_kernel_create(engine.handle, program.handle, c.byref(kernel)))
        if launch.bindings:
            hg.check(hg.lib.hg_buffer_create(engine.handle, None, len(launch.arena), c.byref(arena)))
            hg.check(hg.lib.hg_buffer_write(arena, 0, launch.arena, len(launch.arena)))
        hg.check(hg.lib.hg_executor_resonance_reset(engine.handle))
        engine.set_phase(launch.phase)
        if launch.boundary:
            hg.check(hg.lib.hg_boundary_write(engine.handle, 0, launch.boundary, len(launch.boundary)))
        fault = fault_of(kernel, arena, launch)
        left = [repr(fault).encode(), repr(engine.resonance()).encode(), repr(engine.phase()).encode()]
        if launch.bindings:
            memory = c.create_string_buffer(len(launch.arena))
            hg.check(hg.lib.hg_buffer_read(arena, 0, memory, len(launch.arena)))
            left.append(memory.raw)
        return left + ([engine.boundary().tobytes()] if launch.boundary else [])
    finally:
        hg.lib.hg_kernel_release(kernel)
        hg.lib.hg_buffer_release(arena)


def fault_of(kernel, arena, launch: Launch) -> dict | None:
    bindings = (hg.Binding * max(1, len(launch.bindings)))()
    for row, (slot, entry, offset, size) in zip(bindings, launch.bindings):
        row.slot, row.entry, row.buffer, row.offset, row.byte_count = slot, entry, arena, offset, size
    scalars = (hg.Scalar * max(1, len(launch.scalars)))()
    for row, (slot, kind, bits) in zip(scalars, launch.scalars):
        row.slot, row.type, row.bits = slot, kind, bits
    desc = hg.LaunchDesc(c.sizeof(hg.LaunchDesc), launch.lanes, launch.grid, launch.block, bindings, len(launch.bindings), 0, scalars,
                         len(launch.scalars), 0, launch.step_limit)
    report = hg.LaunchReport(size=c.sizeof(hg.LaunchReport))
    status = hg.lib.hg_launch(kernel, c.byref(desc), c.byref(report))
    if hg.STATUS[status] != "FAULT":
        hg.check(status)
    return hg.fault_of(hg.Result({}, report))


# ---- code -------------------------------------------------------------------------------------------------------------


class Target(c.Structure):
    _fields_ = [("size", c.c_size_t), ("name", c.c_char_p), ("machine", c.c_char_p), ("least", c.c_uint32), ("most", c.c_uint32)]


def targets():
    """Name, capability and kind of machine of all that the library writes."""
    hg.lib.hg_emit_target_query.argtypes = [c.c_size_t, c.c_void_p]
    hg.lib.hg_emit.argtypes = [c.c_void_p, c.c_void_p, c.c_char_p, c.c_uint32, c.c_void_p, c.c_void_p]
    info, index = Target(c.sizeof(Target)), 0
    while hg.lib.hg_emit_target_query(index, c.byref(info)) == 0:
        for capability in CAPABILITIES if info.most else (0,):
            yield info.name.decode(), capability, (info.machine or b"").decode()
        index += 1


def places_of_library() -> list[tuple[int, int]]:
    name = os.path.realpath(os.environ["HOLOGRAM_LIB"])
    with open("/proc/self/maps", encoding="utf-8") as maps:
        found = [re.match(r"(\w+)-(\w+) r", line) for line in maps if line.rstrip().endswith(name)]
    return [(int(m[1], 16), int(m[2], 16) - 8) for m in found if m]


def forget_addresses(code: bytes, machine: str, places) -> bytes:
    """Machine code names the function library's tables by where they lie in this process: by what lies there instead."""
    code = bytearray(code)
    if machine == "aarch64":
        words = np.frombuffer(bytes(code), "<u4").astype(np.uint64)
        moves = words >> np.uint64(23)
        found = [(at, *address_moved(words, moves, at)) for at in np.flatnonzero(moves == 0x1a5)]  # movz, then movk
        found = [(at * 4, address, count * 4) for at, address, count in found if count > 1]
    else:
        windows = [np.frombuffer(bytes(code), "<u8", (len(code) - i) // 8, i) for i in range(8) if len(code) - i >= 8]
        found = [(at * 8 + i, int(window[at]), 8) for i, window in enumerate(windows)
                 for low, end in places for at in np.flatnonzero((window >= low) & (window < end))]
    for at, address, size in found:
        if any(low <= address < end for low, end in places):
            code[at:at + size] = c.string_at(address, 8).ljust(size, b"\0")[:size]
    return bytes(code)


def address_moved(words, moves, at) -> tuple[int, int]:
    """The number that instructions move into one register from here on, and how many they are."""
    address, count = 0, 0
    while count < 4 and at + count < len(words) and moves[at + count] == (0x1e5 if count else 0x1a5) and \
            int(words[at + count]) & 31 == int(words[at]) & 31:
        word = int(words[at + count])
        address |= (word >> 5 & 0xffff) << 16 * (word >> 21 & 3)
        count += 1
    return address, count


def code_of(program: hg.Program, name: str, capability: int, machine: str, places) -> str:
    memory, length = c.c_void_p(), c.c_size_t()
    status = hg.lib.hg_emit(None, program.handle, name.encode(), capability, c.byref(memory), c.byref(length))
    if status:
        return hg.STATUS[status]
    code = c.string_at(memory, length.value)
    hg.lib.atlas_memory_release(None, memory)
    return digest_of(forget_addresses(code, machine, places) if machine else code)


# ---- lines ------------------------------------------------------------------------------------------------------------


def given_of(launch: Launch) -> str:
    return digest_of(launch.program, repr([value for key, value in vars(launch).items() if key != "program"]).encode())


def attempt(what) -> str:
    try:
        return what()
    except hg.Error as error:
        return error.status


def lines(first: int, count: int, with_code: bool):
    """Of each seed a list of the FIELDS, and the targets behind them."""
    engine, made, places = hg.Engine(hg.ENGINES[0], hg.CPU, None), list(targets()) if with_code else [], places_of_library()
    for launch in launches(first, count):
        try:
            program = hg.decode(launch.program) if launch.program else None
        except hg.Error as error:
            yield launch.seed, [given_of(launch), error.status]
            continue
        if program is None:
            yield launch.seed, ["none"]
            continue
        fields = [given_of(launch), attempt(lambda: digest_of(program.hash())),
                  attempt(lambda: digest_of(*results_of(engine, program, launch)))]
        yield launch.seed, fields + [code_of(program, *target, places) for target in made]


def show(seed: int) -> str:
    """A program's text, its launch and what it leaves."""
    launch = next(launches(seed, 1))
    if not launch.program:
        return f"the program of seed {seed} does not verify"
    program = hg.decode(launch.program)
    left = results_of(hg.Engine(hg.ENGINES[0], hg.CPU, None), program, launch)
    form = f"{launch.lanes} lanes" if launch.lanes else f"grid {launch.grid}, block {launch.block}"
    words = [program.print().decode(), f"launch: {form}, step limit {launch.step_limit}, {len(launch.bindings)} bindings",
             f"hash {program.hash().hex()}", f"fault {left[0].decode()}", f"resonance {digest_of(left[1])}, phase {left[2].decode()}"]
    for slot, entry, offset, size in launch.bindings:
        words.append(f"parameter {slot}.{entry}: {size} bytes at {offset}: {left[3][offset:offset + min(size, 48)].hex(' ', 8)}, "
                     f"digest {digest_of(left[3][offset:offset + size])}")
    return "\n".join(words)
