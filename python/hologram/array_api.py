"""The names of the array API standard (2024.12), over the operations of the table."""

from __future__ import annotations


from hologram import _core
from hologram._core import *  # noqa: F403
from hologram._core import add as add
from hologram._create import array as _array  # noqa: F401
from hologram._create import asarray as asarray
from hologram._create import empty as empty
from hologram._create import from_dlpack as from_dlpack
from hologram._create import full as full
from hologram._create import full_like as full_like
from hologram._create import linspace as linspace
from hologram._create import ones as ones
from hologram._create import ones_like as ones_like
from hologram._create import zeros as zeros
from hologram._create import zeros_like as zeros_like

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

__array_api_version__ = "2024.12"

e = 2.718281828459045
inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
newaxis = None
bool = _core.bool_  # noqa: A001

subtract = _core.sub
multiply = _core.mul
divide = _core.div
negative = _core.neg
concat = _core.concatenate
permute_dims = _core.permute
matrix_transpose = _core.swap
bitwise_invert = _core.bitwise_not
bitwise_left_shift = _core.shift_left
bitwise_right_shift = _core.shift_right
expand_dims = _core.expand
pow = _core.pow  # noqa: A001


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """x repeated along axes that are missing or have one element."""
    return x.broadcast_to(shape)


def positive(x: Any, /) -> Any:
    """x itself."""
    return x


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    """x as another type."""
    made = x.astype(dtype)
    return made if device is None else made.to_device(device)


def isdtype(dtype: Any, kind: Any) -> Any:
    """Whether a type is another, or of a kind: 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating',
    'complex floating', 'numeric', or any of a tuple of them."""
    if isinstance(kind, tuple):
        for one in kind:
            if isdtype(dtype, one):
                return True
        return False
    if not isinstance(kind, str):
        return dtype == kind
    kinds = {"integer": {"integral", "numeric"}, "float": {"real floating", "numeric"}, "bool": {"bool"}, "storage": set()}
    own = set(kinds[dtype.kind])
    if dtype.kind == "integer":
        own.add("unsigned integer" if dtype.name.startswith("u") else "signed integer")
    return kind in own
