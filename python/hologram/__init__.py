"""Hologram: arrays, gradients and data-parallel programs with the same bits on every device.

    import hologram as hg

    x = hg.asarray(data)             # shares NumPy's memory
    y = hg.softmax(x @ w + b)        # recorded, fused, and computed when it is read
    print(y)

Operations are functions here (`hg.exp(x)`) and methods of arrays (`x.exp()`). `hg.ops` has those of Hologram SDK 0.1,
which take an executor and buffers. Importing starts no device and no thread: the first array does.
"""

from hologram import _core, array_api, backend, nn, ops, optim, random
from hologram._core import *  # noqa: F403  the types, errors and operations of the table
from hologram._core import Array as Array
from hologram._core import Buffer as Buffer
from hologram._core import DType as DType
from hologram._core import Error as Error
from hologram._core import Executor as Executor
from hologram._core import Program as Program
from hologram._core import asarray as asarray
from hologram._core import compute as compute
from hologram._core import load as load
from hologram._core import save as save
from hologram._create import array as array
from hologram._create import empty as empty
from hologram._create import full as full
from hologram._create import full_like as full_like
from hologram._create import from_dlpack as from_dlpack
from hologram._create import linspace as linspace
from hologram._create import ones as ones
from hologram._create import ones_like as ones_like
from hologram._create import zeros as zeros
from hologram._create import zeros_like as zeros_like
from hologram._derivatives import hessian as hessian
from hologram._derivatives import jacobian as jacobian
from hologram._derivatives import jvp as jvp
from hologram._derivatives import vjp as vjp
from hologram._einsum import einsum as einsum
from hologram._gradients import grad as grad
from hologram._gradients import value_and_grad as value_and_grad
from hologram._joining import array_split as array_split
from hologram._joining import atleast_1d as atleast_1d
from hologram._joining import atleast_2d as atleast_2d
from hologram._joining import atleast_3d as atleast_3d
from hologram._joining import column_stack as column_stack
from hologram._joining import dsplit as dsplit
from hologram._joining import dstack as dstack
from hologram._joining import hsplit as hsplit
from hologram._joining import hstack as hstack
from hologram._joining import rot90 as rot90
from hologram._joining import split as split
from hologram._joining import vsplit as vsplit
from hologram._joining import vstack as vstack
from hologram._modes import eager as eager
from hologram._modes import explain as explain
from hologram._modes import jit as jit
from hologram._modes import numerics as numerics
from hologram._modes import strict as strict
from hologram._ranges import geomspace as geomspace
from hologram._ranges import logspace as logspace
from hologram._warm import Spec as Spec
from hologram._warm import Warmed as Warmed
from hologram._warm import warm as warm
from hologram.array_api import arange as arange
from hologram.array_api import pad as pad
from hologram.backend import BackendType as BackendType
from hologram.backend import get_default_backend as get_default_backend
from hologram.backend import is_cuda_available as is_cuda_available
from hologram.backend import is_metal_available as is_metal_available

__version__ = _core._library_version()

inf = float("inf")
nan = float("nan")
pi = 3.141592653589793
e = 2.718281828459045
newaxis = None
bool = _core.bool_  # noqa: A001  the array API's name of it
