"""Which backends there are here."""

import enum

from hologram import _core


class BackendType(enum.Enum):
    """A backend by name, as hologram.Executor takes it."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"
    METAL = "metal"


def _is_available(name: str) -> bool:
    return any(row[0] == name and row[1] for row in _core._backends())


def is_metal_available() -> bool:
    """Whether there is an Apple GPU that can be used."""
    return _is_available("metal")


def is_cuda_available() -> bool:
    """Whether there is an NVIDIA GPU that can be used."""
    return _is_available("cuda")


def get_default_backend() -> str:
    """What `Executor('auto')` takes: 'metal', 'cuda' or 'cpu', in that order of preference."""
    return "metal" if is_metal_available() else "cuda" if is_cuda_available() else "cpu"
