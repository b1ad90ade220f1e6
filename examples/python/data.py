"""Data that comes in packages, whose code is not needed: photographs of scikit-image, tables of scikit-learn."""

import gzip
import importlib.util
import sys
from pathlib import Path

import numpy as np
from PIL import Image


def package_file(package, name):
    """A file in an installed package, whose code is not needed."""
    found = importlib.util.find_spec(package)
    if found is None:
        sys.exit(f"{name} comes with the package {package}; ./dev demo installs it")
    return Path(found.origin).parent / name


def photograph(name, mode="RGB"):
    """A photograph that scikit-image carries, as bytes [height, width, 3], or [height, width] in mode "L"."""
    return np.array(Image.open(package_file("skimage", f"data/{name}")).convert(mode))


def table(name):
    """The text of a data set that scikit-learn carries."""
    data = package_file("sklearn", f"datasets/data/{name}").read_bytes()
    return (gzip.decompress(data) if name.endswith(".gz") else data).decode()


def labelled(name):
    """A data set whose first line says how many rows, columns, and the classes' names: f32 [rows, columns], i64 [rows], names."""
    first, *lines = table(name).splitlines()
    rows, columns, *names = first.split(",")
    values = np.array([line.split(",") for line in lines], np.float64)
    assert values.shape == (int(rows), int(columns) + 1)
    return values[:, :-1].astype(np.float32), values[:, -1].astype(np.int64), names


def labelled_digits():
    """The 1,797 handwritten digits: shades from 0 to 16, u8 [1797, 64], and which digit each is, u8 [1797]."""
    values = np.array([line.split(",") for line in table("digits.csv.gz").splitlines()], np.float64).astype(np.uint8)
    return np.ascontiguousarray(values[:, :-1]), np.ascontiguousarray(values[:, -1])
