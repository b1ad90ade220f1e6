#!/usr/bin/env python3
"""What the CUDA driver's compiler takes for the library's texts, and what a process pays in its first seconds.

    python3 bench/cuda/compile.py [--texts FOLDER] [--json FILE]      (bench/README.md)

Texts come from the double of libcuda (build/release/tests/sim), or from a folder where an earlier run left them. Needs build/package/stage
and the NVIDIA driver; no peer, no toolkit."""

import argparse
import ctypes as c
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from driver import Driver, DriverError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STAGE, DOUBLE = ROOT / "build/package/stage", ROOT / "build/release/tests/sim"
MAJOR, MINOR, SHARED = 75, 76, 97                 # CUdevice_attribute: capability, shared memory a block may ask for
PROCESSORS = 16
ERROR_LOG, ERROR_LOG_BYTES, LEVEL, PTX = 5, 6, 7, 1  # CUjit_option, CUjitInputType
LOCAL_BYTES, REGISTERS = 3, 4                     # CUfunction_attribute
LEVELS = (0, 1, 2, 4)
ROUNDS = 5
# Each is an expression of arrays a, b, c of these shapes and types.
OPERATIONS = {
    "matmul": ("a @ b", [((4096, 4096), "float32")] * 2),
    "matmul bf16": ("a @ b", [((4096, 4096), "bfloat16")] * 2),
    "softmax": ("hg.softmax(a)", [((8192, 4096), "float32")]),
    "layer_norm": ("hg.layer_norm(a, b, c)", [((8192, 4096), "float32"), ((4096,), "float32"), ((4096,), "float32")]),
    "sum rows": ("a.sum(axis=1)", [((8192, 4096), "float32")]),
    "sum columns": ("a.sum(axis=0)", [((8192, 4096), "float32")]),
    "argmax": ("a.argmax(axis=1)", [((8192, 4096), "float32")]),
    "gelu": ("hg.gelu(a)", [((1 << 24,), "float32")]),
    "add": ("a + b", [((1 << 24,), "float32")] * 2),
    "attention": ("hg.softmax(a @ b * 0.125) @ c", [((96, 512, 64), "float32"), ((96, 64, 512), "float32"), ((96, 512, 64), "float32")]),
}

WRITER = """
import hologram as hg
def f(a=None, b=None, c=None):
    return {expression}
hg.warm(f, *[hg.Spec(*form) for form in {forms!r}])
"""

FIRST = """
import io, json, time
import hologram as hg
def f(a=None, b=None, c=None):
    return {expression}
inputs = [hg.full(shape, 0.5, dtype=dtype) + 0 for shape, dtype in {forms!r}]
hg.compute(*inputs)
float((hg.ones(3) + 1)[0])
laps = []
def timed(call):
    begun = time.perf_counter()
    call()
    laps.append(time.perf_counter() - begun)
def run():
    y = f(*inputs)
    hg.compute(y)
    float(y[(0,) * y.ndim])
y = f(*inputs)
timed(lambda: hg.explain(y, file=io.StringIO()))
begun = time.perf_counter()
while len(laps) < 6 or time.perf_counter() - begun < {seconds}:
    timed(run)
print(json.dumps(laps))
"""


# ---- texts ------------------------------------------------------------------------------------------------------------------------

def run_python(code: str, **environment: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"PYTHONPATH": str(STAGE), "HOLOGRAM_CACHE": "0", "HOLOGRAM_BACKEND": "cuda",
                                            "CUDA_CACHE_DISABLE": "1"} | environment)
    if done.returncode:
        raise SystemExit(f"a run failed:\n{done.stderr}")
    return done.stdout


def write_texts(folder: Path, driver: Driver) -> None:
    """NAME.N.ptx, in the order in which they are compiled."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (expression, forms) in OPERATIONS.items():
        with tempfile.NamedTemporaryFile() as dump:
            run_python(WRITER.format(expression=expression, forms=forms), LD_LIBRARY_PATH=str(DOUBLE), FAKECUDA_DUMP=dump.name,
                       FAKECUDA_CAPABILITY=str(10 * driver.attribute(MAJOR) + driver.attribute(MINOR)),
                       FAKECUDA_SHARED=str(driver.attribute(SHARED)), FAKECUDA_PROCESSORS=str(driver.attribute(PROCESSORS)),
                       HOLOGRAM_QUICK="1")
            texts = re.split(r"^(?=\.version)", Path(dump.name).read_text(encoding="utf-8"), flags=re.MULTILINE)
        for number, text in enumerate(dict.fromkeys(t for t in texts if ".entry" in t)):
            (folder / f"{name}.{number}.ptx").write_text(text, encoding="utf-8")


def entry_of(text: str) -> str:
    return re.search(r"\.entry\s+(\w+)", text)[1]


# ---- the driver's compiler --------------------------------------------------------------------------------------------------------

class Compiler:
    def __init__(self, driver: Driver):
        self.driver, self.context = driver, c.c_void_p()
        driver("cuCtxGetCurrent", c.byref(self.context))

    def compile(self, text: str, level: int) -> bytes:
        log, state, image, size = c.create_string_buffer(2048), c.c_void_p(), c.c_void_p(), c.c_size_t()
        options = (c.c_int * 3)(ERROR_LOG, ERROR_LOG_BYTES, LEVEL)
        values = (c.c_void_p * 3)(c.addressof(log), len(log), level)
        data = text.encode() + b"\0"
        self.driver("cuLinkCreate_v2", 3, options, values, c.byref(state))
        try:
            self.driver("cuLinkAddData_v2", state, PTX, data, c.c_size_t(len(data)), b"text", 0, None, None)
            self.driver("cuLinkComplete", state, c.byref(image), c.byref(size))
            return c.string_at(image, size.value)
        finally:
            self.driver("cuLinkDestroy", state)

    def time(self, text: str, level: int) -> float:
        begun = time.perf_counter()
        self.compile(text, level)
        return 1e3 * (time.perf_counter() - begun)

    def facts(self, text: str, level: int) -> dict:
        """Registers and local bytes of the kernel, and how long the driver takes to load it."""
        module, function, value, found = c.c_void_p(), c.c_void_p(), c.c_int(), {}
        image = self.compile(text, level)
        begun = time.perf_counter()
        self.driver("cuModuleLoadData", c.byref(module), image)
        found["load_ms"] = 1e3 * (time.perf_counter() - begun)
        self.driver("cuModuleGetFunction", c.byref(function), module, entry_of(text).encode())
        for name, number in (("registers", REGISTERS), ("local_bytes", LOCAL_BYTES)):
            self.driver("cuFuncGetAttribute", c.byref(value), number, function)
            found[name] = value.value
        self.driver("cuModuleUnload", module)
        return found

    def side_by_side(self, texts: list[str], level: int, threads: int) -> float:
        """Milliseconds for all of them, shared out to so many threads."""
        waiting, lock = list(texts), threading.Lock()

        def work() -> None:
            self.driver("cuCtxPushCurrent_v2", self.context)
            while True:
                with lock:
                    text = waiting.pop() if waiting else None
                if text is None:
                    return
                self.compile(text, level)

        workers = [threading.Thread(target=work) for _ in range(threads)]
        begun = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return 1e3 * (time.perf_counter() - begun)

    def beside(self, text: str, others: list[str], threads: int) -> float:
        """A compilation at level 1 while so many threads compile others with all optimisations."""
        working = threading.Thread(target=self.side_by_side, args=(others, LEVELS[-1], threads))
        working.start()
        time.sleep(0.02)
        took = self.time(text, 1)
        working.join()
        return took


def copies_of(text: str, count: int) -> list[str]:
    """Of other names, so that no two are one text."""
    name = entry_of(text)
    return [text.replace(name, f"{name}_{number}") for number in range(count)]


# ---- what is printed --------------------------------------------------------------------------------------------------------------

def measure_texts(compiler: Compiler, folder: Path) -> dict:
    results = {}
    print(f"{'text':<22}{'KiB':>6}" + "".join(f"{f'level {level}':>30}" for level in LEVELS))
    print(" " * 28 + "".join(f"{'ms, load ms, registers, local':>30}" for _ in LEVELS))
    for path in sorted(folder.glob("*.ptx")):
        text, row = path.read_text(encoding="utf-8"), {}
        for level in LEVELS:
            row[level] = compiler.facts(text, level) | {"ms": min(compiler.time(text, level) for _ in range(ROUNDS))}
        results[path.stem] = {"bytes": len(text), "levels": row}
        cells = (f"{r['ms']:.1f}, {r['load_ms']:.1f}, {r['registers']}, {r['local_bytes']}" for r in row.values())
        print(f"{path.stem:<22}{len(text) / 1024:>6.0f}" + "".join(f"{cell:>30}" for cell in cells), flush=True)
    return results


def measure_threads(compiler: Compiler, folder: Path) -> dict:
    results = {}
    print("\neight texts of one kind, in so many threads (ms); behind it a compilation at level 1 while others go on with all")
    for name in ("matmul", "softmax", "gelu"):
        text = max((p.read_text(encoding="utf-8") for p in folder.glob(f"{name}.[0-9].ptx")), key=len)
        for level in (1, LEVELS[-1]):
            row = {n: min(compiler.side_by_side(copies_of(text, 8), level, n) for _ in range(2)) for n in (1, 2, 4, 8)}
            results[f"{name}, level {level}"] = row
            print(f"{name + f', level {level}':<22}" + "".join(f"{n:>4}: {ms:>8.1f}" for n, ms in row.items()), flush=True)
        row = {n: compiler.beside(text, copies_of(text, 8), n) if n else compiler.time(text, 1) for n in (0, 1, 2, 4)}
        results[f"{name}, beside"] = row
        print(f"{name + ', beside':<22}" + "".join(f"{n:>4}: {ms:>8.1f}" for n, ms in row.items()), flush=True)
    return results


def measure_first(seconds: float) -> dict:
    """Of calls that are waited for; `compile` is planning, texts and the driver, the first call what is left then."""
    results = {}
    print(f"\n{'first calls, ms':<22}{'compile':>10}{'in full':>10}{'first':>10}{'second':>10}{'at last':>10}{'until full':>12}")
    for name, (expression, forms) in OPERATIONS.items():
        code = FIRST.format(expression=expression, forms=forms, seconds=seconds)
        made, *laps = (1e3 * lap for lap in json.loads(run_python(code, HOLOGRAM_QUICK="")))
        in_full = 1e3 * json.loads(run_python(code, HOLOGRAM_QUICK="0"))[0]
        last = median(laps[-max(1, len(laps) // 4):])
        until = next((i for i, lap in enumerate(laps) if sum(t > 1.1 * last for t in laps[i:i + 10]) <= 1), len(laps))
        row = {"compile": made, "in_full": in_full, "first": laps[0], "second": laps[1], "last": last, "until_full": sum(laps[:until])}
        results[name] = row
        print(f"{name:<22}" + "".join(f"{row[key]:>10.2f}" for key in list(row)[:5]) + f"{row['until_full']:>12.1f}", flush=True)
    return results


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--texts", type=Path, default=ROOT / "build/bench/texts", metavar="FOLDER", help="(default build/bench/texts)")
    p.add_argument("--seconds", type=float, default=1.5, help="of calls of each operation (default 1.5)")
    p.add_argument("--parts", type=lambda t: t.split(","), default=["texts", "threads", "first"], metavar="A,B",
                   help="of texts, threads, first (default all)")
    p.add_argument("--json", type=Path, metavar="FILE", help="write everything measured")
    options = p.parse_args()
    os.environ["CUDA_CACHE_DISABLE"] = "1"
    try:
        driver = Driver()
    except DriverError as error:
        raise SystemExit(str(error)) from None
    if not list(options.texts.glob("*.ptx")):
        write_texts(options.texts, driver)
    compiler = Compiler(driver)
    print(f"{driver.name()}, driver API {driver.version.value}, {os.cpu_count()} CPUs")
    parts = {"texts": lambda: measure_texts(compiler, options.texts), "threads": lambda: measure_threads(compiler, options.texts),
             "first": lambda: measure_first(options.seconds)}
    results = {name: measure() for name, measure in parts.items() if name in options.parts}
    if options.json:
        options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
