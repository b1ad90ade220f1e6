"""A pipeline over photographs: sharpened, a filmic curve, edges. The same function runs in Hologram and in NumPy.

    python examples/python/images.py --out build/demo

Everything here is add, multiply, divide, square root, minimum and maximum, each rounded once: every bit is NumPy's."""

import sys

import numpy as np
from common import digest, main, same_bits
from data import photograph
from PIL import Image
from plots import grey, sheet

import hologram as hg

NAMES = ("astronaut", "chelsea", "coffee")


def framed(xp, x):
    """With one more row and column all round, which are copies of the outermost. x: [..., height, width]."""
    for axis in (-2, -1):
        numbers = np.clip(np.arange(-1, x.shape[axis] + 1), 0, x.shape[axis] - 1)
        x = xp.take(x, xp.asarray(numbers), axis=axis)
    return x


def blurred(xp, x):
    """Weights 1, 2, 1 along both axes."""
    x = framed(xp, x)
    x = x[..., :-2, :] + 2 * x[..., 1:-1, :] + x[..., 2:, :]
    return (x[..., :-2] + 2 * x[..., 1:-1] + x[..., 2:]) * 0.0625


def sharpened(xp, x):
    """What two blurs take away, given once more and a half."""
    return xp.minimum(xp.maximum(x + 1.5 * (x - blurred(xp, blurred(xp, x))), xp.zeros_like(x)), xp.ones_like(x))


def filmic(x):
    """Bright parts bend towards white instead of being cut off: a quotient of two polynomials."""
    return (x * (2.51 * x + 0.03)) / (x * (2.43 * x + 0.59) + 0.14)


def edges(xp, x):
    """How steep the brightness is: Sobel's two slopes."""
    brightness = framed(xp, 0.2126 * x[0] + 0.7152 * x[1] + 0.0722 * x[2])
    down = brightness[2:] - brightness[:-2]
    right = brightness[:, 2:] - brightness[:, :-2]
    down = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    right = right[:-2] + 2 * right[1:-1] + right[2:]
    return xp.sqrt(down * down + right * right)


def pipeline(xp, x):
    """f32 [3, height, width] from 0 to 1 into the finished picture and its edges."""
    finished = filmic(0.8 * sharpened(xp, x))
    return finished, edges(xp, finished)


def compute(quick):
    photographs = {name: photograph(f"{name}.png")[::4 if quick else 1, ::4 if quick else 1] for name in NAMES}
    inputs = {name: image.transpose(2, 0, 1).astype(np.float32) / np.float32(255) for name, image in photographs.items()}
    run = hg.jit(lambda x: pipeline(hg.array_api, x))
    results = {name: [y.numpy() for y in run(hg.asarray(x))] for name, x in inputs.items()}
    pixels = sum(x[0].size for x in inputs.values())
    return {"hash": digest(y for pair in results.values() for y in pair), "photographs": photographs, "inputs": inputs,
            "results": results, "text": f"  {len(NAMES)} photographs, {pixels:,} pixels: sharpened, a filmic curve, edges"}


def check(result, quick):
    for name, x in result["inputs"].items():
        for what, ours, numpys in zip(("picture", "edges"), result["results"][name], pipeline(np, x)):
            same_bits(f"{what} of {name}", ours, numpys)
    return "same bits as NumPy"


def draw(result):
    pictures, captions = [], []
    for name in NAMES:
        finished, edge = result["results"][name]
        whole = [Image.fromarray(result["photographs"][name]), grey(finished.transpose(1, 2, 0)), grey(1 - edge)]
        for picture, what in zip(whole, ("photograph", "sharpened, filmic curve", "edges")):
            pictures.append(picture.convert("RGB").resize((300, 300 * picture.height // picture.width), Image.Resampling.LANCZOS))
            captions.append(f"{name}: {what}")
    return {"python-images": sheet(pictures, captions, 3)}


if __name__ == "__main__":
    sys.exit(main(__doc__, compute, check, draw))
