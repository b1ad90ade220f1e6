"""NVIDIA's cuBLASLt, where pip has put it: the library looks for it by its name, which finds what is loaded already. Imported when
something with fast numerics is compiled for a GPU of NVIDIA's."""

import ctypes
import os
import sys

_NAMES = ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11")  # as the library asks for them
_FOLDERS = ("nvidia/cu13/lib", "nvidia/cublas/lib")


def load() -> None:
    """Loads it from the packages of pip if the system's loader does not know it. Where there is none nothing happens."""
    if sys.platform != "linux" or any(map(_is_loaded, _NAMES)):
        return
    for name in _NAMES:
        for folder in filter(_is_absolute, sys.path):
            for own in _FOLDERS:
                path = os.path.join(folder, own, name)
                if os.path.exists(path) and _is_loaded(path):
                    return


def _is_absolute(folder: object) -> bool:
    """Not the working directory, where anybody's files may be."""
    return isinstance(folder, str) and os.path.isabs(folder)


def _is_loaded(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True
