"""What profilers see on a GPU: CUPTI, the library under NVIDIA's own, hears our NVTX ranges.

A process has one listener for life, so the launch is in a child: this file, run as a program.
"""

import ctypes as c
import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
SUCCESS, NVTX_DOMAIN, CREATE, PUSH, POP = 0, 5, 41, 33, 34  # cupti_result.h, cupti_callbacks.h, cupti_nvtx_cbid.h

PROGRAM = """.program doubled
.buffer x u32 inout
    ldg.u32 r0, [x + lane]
    add.u32 r0, r0, r0
    stg.u32 [x + lane], r0
    exit
"""


def find_cupti() -> Path | None:
    """Of a wheel in this environment or of a CUDA toolkit; HOLOGRAM_TEST_CUPTI names another one."""
    if named := os.environ.get("HOLOGRAM_TEST_CUPTI"):
        return Path(named)
    places = [(Path(folder), "nvidia/*/lib/libcupti.so.*") for folder in sys.path]
    places += [(Path("/usr/local"), "cuda*/extras/CUPTI/lib64/libcupti.so.*"), (Path("/usr/local"), "cuda*/lib*/libcupti.so.*")]
    return next((path for folder, pattern in places for path in sorted(folder.glob(pattern))), None)


# ---- the child -------------------------------------------------------------------------------------------------------------


class Attributes(c.Structure):
    """nvtxEventAttributes_t."""

    _fields_ = [("version", c.c_uint16), ("size", c.c_uint16), ("category", c.c_uint32), ("color_type", c.c_int32),
                ("color", c.c_uint32), ("payload_type", c.c_int32), ("reserved", c.c_int32), ("payload", c.c_uint64),
                ("message_type", c.c_int32), ("message", c.c_char_p)]


class PushParameters(c.Structure):
    """nvtxDomainRangePushEx_params."""

    _fields_ = [("domain", c.c_void_p), ("attributes", c.POINTER(Attributes))]


class NvtxData(c.Structure):
    """CUpti_NvtxData."""

    _fields_ = [("function", c.c_char_p), ("parameters", c.c_void_p), ("returned", c.c_void_p)]


Callback = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_uint32, c.POINTER(NvtxData))
events: list[list] = []  # ["push", name, payload], ["pop"], ["domain", name]


@Callback
def hear(_user, domain, number, data):
    """CUPTI calls this inside each NVTX function."""
    if domain != NVTX_DOMAIN:
        return
    parameters = data.contents.parameters
    if number == CREATE:
        events.append(["domain", c.c_char_p.from_address(parameters).value.decode()])
    elif number == PUSH:
        attributes = PushParameters.from_address(parameters).attributes.contents
        events.append(["push", attributes.message.decode(), attributes.payload])
    elif number == POP:
        events.append(["pop"])


def subscribe(cupti: c.CDLL) -> str:
    """Why it cannot; "": it can."""
    subscriber = c.c_void_p()
    result = cupti.cuptiSubscribe(c.byref(subscriber), hear, None)
    if result == SUCCESS:
        result = cupti.cuptiEnableDomain(c.c_uint32(1), subscriber, c.c_int(NVTX_DOMAIN))
    return "" if result == SUCCESS else f"CUPTI does not start with this driver: error {result}"


def launch_heard() -> dict:
    """The events of a launch, or why there is none to hear."""
    sys.path[:0] = [str(TESTS), str(TESTS / "conformance")]
    import hg
    import numpy as np

    refusal = subscribe(c.CDLL(os.environ["NVTX_INJECTION64_PATH"]))
    try:
        executor = hg.Executor()
    except hg.Error as error:
        return {"refusal": error.message}
    if refusal:
        return {"refusal": refusal}
    result = executor.run(PROGRAM, lanes=32, buffers={"x": np.arange(32, dtype=np.uint32)})
    return {"events": events, "values": result.buffers["x"].tolist()}


# ---- the test --------------------------------------------------------------------------------------------------------------


def test_cupti_hears_the_ranges():
    import pytest

    cupti = find_cupti()
    if cupti is None:
        pytest.skip("there is no CUPTI here: neither a CUDA toolkit nor the wheel nvidia-cuda-cupti")
    settings = {"NVTX_INJECTION64_PATH": str(cupti), "HOLOGRAM_TEST_BACKEND": "cuda", "HOLOGRAM_TEST_ENGINES": "default",
                "HOLOGRAM_CACHE_DIR": "/dev/null/none"}
    child = subprocess.run([sys.executable, __file__], env=os.environ | settings, capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    heard = json.loads(child.stdout.splitlines()[-1])
    if "refusal" in heard:
        pytest.skip(heard["refusal"])
    assert heard["values"] == [2 * i for i in range(32)]
    depth, names = 0, []
    for kind, *what in heard["events"]:
        names += [tuple(what)] if kind == "push" else []
        depth += {"push": 1, "pop": -1, "domain": 0}[kind]
        assert depth >= 0, "a range ended that had not begun"
    assert depth == 0, "a range did not end"
    assert heard["events"][0] == ["domain", "hologram"]
    size = 64 + 4 * 32 + 64  # canaries around the array
    assert names == [("compile doubled", 0), ("write", size), ("launch doubled", 32), ("read", size)]


if __name__ == "__main__":
    print(json.dumps(launch_heard()))
