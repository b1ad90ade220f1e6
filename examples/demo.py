#!/usr/bin/env python3
"""Runs the example programs on photographs, checks every result against NumPy bit for bit, and writes PNGs.

    ./dev demo            (build/venv/bin/python examples/demo.py --hologram build/release/hologram --out build/demo)

Atlas promises the same bits everywhere, so nothing here compares with a tolerance: NumPy's f32 operations round as the
ISA says, and `fma` below rounds once, as the ISA's does."""

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable

import numpy as np
from PIL import Image

EXAMPLES = Path(__file__).resolve().parent
sys.path.insert(0, str(EXAMPLES / "python"))
from data import photograph  # noqa: E402

f32 = np.float32


# ---- exact NumPy ----------------------------------------------------------------------------------------------------------

def fma(a, b, c):
    """a * b + c of f32 arrays, rounded once. The product is exact in f64; the sum is rounded to odd there, so that
    rounding it again to f32 gives what rounding the exact sum would (Boldo and Melquiond, "Emulation of FMA and correctly
    rounded sums", 2008)."""
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    c = np.asarray(c, np.float64)
    total = np.atleast_1d(product + c)
    part = total - product
    error = np.atleast_1d((product - (total - part)) + (c - part))  # exact: product + c = total + error
    bits = total.view(np.int64)
    away = (error > 0) == (total > 0)  # the exact sum is further from zero than total
    odd = np.where((error != 0) & (bits & 1 == 0), bits + np.where(away, 1, -1), bits)
    return odd.view(np.float64).astype(f32)


def fold_by_halves(lanes):
    """reduce.add of 256 lanes (the last axis): lane i gets lane i + lane i+h, for h = 128, 64, ..., 1."""
    width = lanes.shape[-1]
    while width > 1:
        width //= 2
        lanes = lanes[..., :width] + lanes[..., width:2 * width]
    return lanes[..., 0]


def strided_sums(rows, step):
    """Lane i adds columns i, i + 256, ... in order; step(sum, column) adds one."""
    sums = np.zeros((rows.shape[0], 256), f32)
    for first in range(0, rows.shape[1], 256):
        chunk = rows[:, first:first + 256]
        sums[:, :chunk.shape[1]] = step(sums[:, :chunk.shape[1]], chunk)
    return sums


# ---- the programs' answers ------------------------------------------------------------------------------------------------

def expect_saxpy(x, y, a):
    return fma(f32(a), x, y)


def expect_tone_curve(image, exposure):
    v = image.astype(f32) / f32(255) * f32(exposure)
    numerator = fma(v, f32(2.51), f32(0.03)) * v
    denominator = fma(fma(v, f32(2.43), f32(0.59)), v, f32(0.14))
    return np.clip(np.rint(numerator / denominator * f32(255)), 0, 255).astype(np.uint8)


def expect_stencil(image, weights):
    padded = np.pad(image, 1, mode="edge")
    height, width = image.shape
    total = None
    for i in range(9):
        row, column = divmod(i, 3)
        pixels = padded[row:row + height, column:column + width]
        total = pixels * weights[0] if i == 0 else fma(pixels, weights[i], total)
    return total


def expect_histogram(image):
    return np.bincount(image.reshape(-1), minlength=256).astype(np.uint32)


def expect_mandelbrot(width, height, left, top, pixel, limit):
    index = np.arange(width * height, dtype=np.uint32)
    real = fma((index % width).astype(f32), f32(pixel), f32(left))
    imaginary = fma(-(index // width).astype(f32), f32(pixel), f32(top))
    steps = np.zeros(index.size, np.uint16)
    x, y = np.zeros_like(real), np.zeros_like(real)
    inside = index
    for _ in range(limit):
        xx, yy = x * x, y * y
        stay = ~(xx + yy > f32(4))
        inside, x, y, xx, yy = inside[stay], x[stay], y[stay], xx[stay], yy[stay]
        y = fma(x * f32(2), y, imaginary[inside])
        x = (xx - yy) + real[inside]
        steps[inside] += 1
    return steps.reshape(height, width)


def expect_layernorm(x, epsilon):
    columns = f32(x.shape[1])
    mean = fold_by_halves(strided_sums(x, lambda s, c: s + c)) / columns
    centred = x - mean[:, None]
    variance = fold_by_halves(strided_sums(centred, lambda s, c: fma(c, c, s))) / columns
    return centred / np.sqrt(variance + f32(epsilon))[:, None]


# ---- pictures -------------------------------------------------------------------------------------------------------------

def grey(array):
    return Image.fromarray(np.clip(np.rint(array * 255), 0, 255).astype(np.uint8))


def stretched(array):
    low, high = np.quantile(array, (0.005, 0.995))
    return grey((array - low) / (high - low))


def bars(counts):
    picture = np.full((200, 512), 255, np.uint8)
    heights = np.rint(counts / counts.max() * 190).astype(int)
    for value, height in enumerate(heights):
        picture[200 - height:, 2 * value:2 * value + 2] = 40
    return Image.fromarray(picture)


def coloured(steps, limit):
    t = np.sqrt(steps / limit)
    picture = np.stack([np.sin(np.pi * t * k) ** 2 for k in (0.9, 1.7, 2.9)], -1)
    picture[steps == limit] = 0
    return Image.fromarray(np.rint(picture * 255).astype(np.uint8))


# ---- the demo -------------------------------------------------------------------------------------------------------------

@dataclass
class Case:
    program: str
    what: str                     # what it does to what
    buffers: dict                 # name -> array
    output: str                   # the buffer to look at
    lanes: int
    expected: np.ndarray
    picture: Callable             # result -> Image
    scalars: dict = field(default_factory=dict)
    shape: list = field(default_factory=list)   # launch options of the command


def blocks(size, block):
    return (size + block - 1) // block


def cases(quick):
    scale = 2 if quick else 1
    camera = photograph("camera.png", "L")[::scale, ::scale]
    brick = photograph("brick.png", "L")[::scale, ::scale]
    astronaut = photograph("astronaut.png", "RGB")[::scale, ::scale]
    coffee = photograph("coffee.png", "RGB")[::scale, ::scale]
    moon = photograph("moon.png", "L")[::scale, :]
    unit = {name: (image.astype(f32) / f32(255)) for name, image in
            {"camera": camera, "brick": brick, "moon": moon}.items()}

    yield Case("saxpy", "a brick wall laid over a photographer", {"x": unit["brick"], "y": unit["camera"]}, "y", camera.size,
               expect_saxpy(unit["brick"], unit["camera"], -0.35), stretched, {"a": -0.35}, ["--lanes", str(camera.size)])

    yield Case("tone_curve", "a filmic curve over an astronaut", {"image": astronaut}, "result", astronaut.size,
               expect_tone_curve(astronaut, 0.8), Image.fromarray, {"exposure": 0.8}, ["--lanes", str(astronaut.size)])

    weights = np.array([0, -1, 0, -1, 5, -1, 0, -1, 0], f32)
    height, width = camera.shape
    grid = blocks(width, 16), blocks(height, 16)
    yield Case("stencil3x3", "a photographer sharpened",
               {"image": unit["camera"], "weights": weights, "result": np.zeros_like(unit["camera"])},
               "result", grid[0] * grid[1] * 256, expect_stencil(unit["camera"], weights), grey,
               {"width": width, "height": height}, ["--grid", f"{grid[0]},{grid[1]}", "--block", "16,16"])

    yield Case("histogram", "the samples of a cup of coffee counted", {"image": coffee, "bins": np.zeros(256, np.uint32)}, "bins",
               64 * 256, expect_histogram(coffee), bars, {"count": coffee.size}, ["--grid", "64", "--block", "256"])

    width, height, limit = 480 // scale, 320 // scale, 200
    view = {"width": width, "left": -2.1, "top": 1.05, "pixel": 3.15 / width}
    yield Case("mandelbrot", "the Mandelbrot set", {}, "steps", width * height,
               expect_mandelbrot(width, height, -2.1, 1.05, 3.15 / width, limit),
               lambda steps: coloured(steps, limit), {**view, "limit": limit}, ["--lanes", str(width * height)])

    rows, columns = moon.shape
    yield Case("layernorm", "each row of the Moon to mean 0, variance 1",
               {"x": unit["moon"], "y": np.zeros_like(unit["moon"])}, "y", rows * 256,
               expect_layernorm(unit["moon"], 1e-5), stretched,
               {"columns": columns, "epsilon": 1e-5}, ["--grid", str(rows), "--block", "256"])


def launch(options, case, folder):
    """Runs the program through the command with .npy files; returns the result and the command's report."""
    arguments = [options.hologram, "run", str(EXAMPLES / f"{case.program}.atlas"), *case.shape, "--json", "--backend", options.backend]
    for name, array in case.buffers.items():
        path = folder / f"{name}.npy"
        np.save(path, np.ascontiguousarray(array))
        arguments += ["--buffer", f"{name}={path}"]
    for name, value in case.scalars.items():
        arguments += ["--scalar", f"{name}={float(f32(value))!r}" if isinstance(value, float) else f"{name}={value}"]
    result = folder / "result.npy"
    arguments += ["--out", f"{case.output}={result}"]
    finished = subprocess.run(arguments, text=True, capture_output=True)
    if finished.returncode != 0:
        sys.exit(f"demo: {' '.join(arguments)}\n{finished.stderr or finished.stdout}")
    return np.load(result).reshape(case.expected.shape), json.loads(finished.stdout)


def same_bits(result, expected):
    return result.dtype == expected.dtype and result.tobytes() == np.ascontiguousarray(expected).tobytes()


def first_difference(result, expected):
    if result.dtype != expected.dtype:
        return f"its type is {result.dtype}, not {expected.dtype}"
    word = f"u{result.itemsize}"
    got, wanted = result.reshape(-1).view(word), np.ascontiguousarray(expected).reshape(-1).view(word)
    where = np.flatnonzero(got != wanted)
    i = where[0]
    return f"{where.size} of {got.size} elements differ; the first, {i}: {got[i]:#x}, expected {wanted[i]:#x}"


def demo(options):
    options.out.mkdir(parents=True, exist_ok=True)
    print(f"{'program':<12} {'ran on':<16} {'lanes':>9} {'time':>10} {'check':<22} what")
    passed = failed = 0
    for case in cases(options.quick):
        with tempfile.TemporaryDirectory() as folder:
            result, report = launch(options, case, Path(folder))
        same = same_bits(result, case.expected)
        passed, failed = passed + same, failed + (not same)
        picture = options.out / f"{case.program}.png"
        case.picture(result).save(picture)
        where = f"{report['backend']} ({report['engine']})"
        check = "same as NumPy" if same else "DIFFERS FROM NUMPY"
        took = f"{report['nanoseconds'] / 1e6:>7.1f} ms"
        print(f"{case.program:<12} {where:<16} {case.lanes:>9} {took} {check:<22} {case.what}")
        if not same:
            print(f"             {first_difference(result, case.expected)}")
    print(f"\npictures: {options.out}/*.png\n{passed} passed, {failed} failed")
    return 1 if failed else 0


def bench(options):
    rows = []
    for case in cases(options.quick):
        with tempfile.TemporaryDirectory() as folder:
            reports = [launch(options, case, Path(folder))[1] for _ in range(options.repeat)]
        nanoseconds = sorted(report["nanoseconds"] for report in reports)[len(reports) // 2]
        rows.append({"program": case.program, "backend": reports[0]["backend"], "engine": reports[0]["engine"],
                     "lanes": case.lanes, "nanoseconds": nanoseconds, "lanes_per_second": round(case.lanes * 1e9 / nanoseconds)})
    if options.json:
        print(json.dumps(rows, indent=2))
        return 0
    print("Each program run by the command: the median of the launches' own times.\n")
    print(f"{'program':<12} {'engine':<12} {'lanes':>9} {'median':>12} {'million lanes/s':>16}")
    for row in rows:
        print(f"{row['program']:<12} {row['engine']:<12} {row['lanes']:>9} {row['nanoseconds'] / 1e6:>9.2f} ms "
              f"{row['lanes_per_second'] / 1e6:>16.2f}")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hologram", default="hologram", help="the hologram command")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for the pictures")
    parser.add_argument("--backend", default="auto", help="where the programs run")
    parser.add_argument("--quick", action="store_true", help="smaller images")
    parser.add_argument("--bench", action="store_true", help="time the programs instead")
    parser.add_argument("--repeat", type=int, default=5, help="bench: runs of each program; the median counts")
    parser.add_argument("--json", action="store_true", help="bench: print JSON")
    options = parser.parse_args()
    return bench(options) if options.bench else demo(options)


if __name__ == "__main__":
    sys.exit(main())
