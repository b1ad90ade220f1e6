"""Hologram: arrays, gradients and data-parallel programs with the same bits on every device.

    import hologram as hg

    x = hg.asarray(data)             # shares NumPy's memory
    y = hg.softmax(x @ w + b)        # recorded, fused, and computed when it is read
    print(y)

Operations are functions here (`hg.exp(x)`) and methods of arrays (`x.exp()`). `hg.ops` has those of Hologram SDK 0.1,
which take an executor and buffers. Importing starts no device and no thread: the first array does.
"""

from hologram import _core, _words, array_api, backend, linalg, ops, random
from hologram._calculus import corrcoef as corrcoef
from hologram._calculus import cov as cov
from hologram._calculus import cumulative_trapezoid as cumulative_trapezoid
from hologram._calculus import diff as diff
from hologram._calculus import gradient as gradient
from hologram._calculus import interp as interp
from hologram._calculus import polyval as polyval
from hologram._calculus import trapezoid as trapezoid
from hologram._calculus import unwrap as unwrap
from hologram._convolution import conv1d as conv1d
from hologram._convolution import conv2d as conv2d
from hologram._convolution import conv3d as conv3d
from hologram._convolution import conv_transpose1d as conv_transpose1d
from hologram._convolution import conv_transpose2d as conv_transpose2d
from hologram._convolution import conv_transpose3d as conv_transpose3d
from hologram._core import *  # noqa: F403  the types, errors and operations of the table
from hologram._core import Array as Array
from hologram._core import Buffer as Buffer
from hologram._core import Circuit as Circuit
from hologram._core import DType as DType
from hologram._core import Error as Error
from hologram._core import Executor as Executor
from hologram._core import Program as Program
from hologram._core import asarray as asarray
from hologram._core import circuit as circuit
from hologram._core import compute as compute
from hologram._core import degrees as rad2deg
from hologram._core import kth_value as kthvalue
from hologram._core import radians as deg2rad
from hologram._core import top_k as topk
from hologram._counts import digitize as digitize
from hologram._counts import histogram as histogram
from hologram._counts import histogram2d as histogram2d
from hologram._counts import histogram_bin_edges as histogram_bin_edges
from hologram._counts import histogramdd as histogramdd
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
from hologram._dtypes import can_cast as can_cast
from hologram._dtypes import finfo as finfo
from hologram._dtypes import iinfo as iinfo
from hologram._dtypes import isdtype as isdtype
from hologram._dtypes import result_type as result_type
from hologram._einsum import einsum as einsum
from hologram._files import load as load
from hologram._files import save as save
from hologram._gradients import grad as grad
from hologram._gradients import value_and_grad as value_and_grad
from hologram._groups import group as group
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
from hologram._modes import printoptions as printoptions
from hologram._modes import strict as strict
from hologram._order import argpartition as argpartition
from hologram._order import lexsort as lexsort  # type: ignore[assignment]
from hologram._order import median as median  # type: ignore[assignment]
from hologram._order import nanmedian as nanmedian
from hologram._order import nanpercentile as nanpercentile
from hologram._order import nanquantile as nanquantile
from hologram._order import partition as partition
from hologram._order import percentile as percentile
from hologram._order import quantile as quantile  # type: ignore[assignment]
from hologram._products import diag as diag
from hologram._products import diagonal as diagonal
from hologram._products import inner as inner
from hologram._products import kron as kron
from hologram._products import trace as trace
from hologram._products import tri as tri
from hologram._ranges import geomspace as geomspace
from hologram._ranges import logspace as logspace
from hologram._scans import cumulative_logsumexp as cumulative_logsumexp  # type: ignore[assignment]
from hologram._scans import cumulative_max as cumulative_max  # type: ignore[assignment]
from hologram._scans import cumulative_min as cumulative_min  # type: ignore[assignment]
from hologram._scans import cumulative_prod as cumulative_prod  # type: ignore[assignment]
from hologram._scans import cumulative_sum as cumulative_sum  # type: ignore[assignment]
from hologram._selection import argwhere as argwhere
from hologram._selection import compress as compress
from hologram._selection import extract as extract
from hologram._selection import flatnonzero as flatnonzero
from hologram._selection import intersect1d as intersect1d
from hologram._selection import isin as isin
from hologram._selection import masked_select as masked_select
from hologram._selection import run_lengths as run_lengths
from hologram._selection import setdiff1d as setdiff1d
from hologram._selection import setxor1d as setxor1d
from hologram._selection import union1d as union1d
from hologram._selection import unique as unique
from hologram._selection import unique_consecutive as unique_consecutive
from hologram._transformations import checkpoint as checkpoint
from hologram._transformations import custom_gradient as custom_gradient
from hologram._transformations import vmap as vmap
from hologram._warm import Spec as Spec
from hologram._warm import Warmed as Warmed
from hologram._warm import warm as warm
from hologram.array_api import __array_namespace_info__ as __array_namespace_info__
from hologram.array_api import arange as arange
from hologram.array_api import argsort as argsort
from hologram.array_api import astype as astype
from hologram.array_api import bincount as bincount
from hologram.array_api import bitwise_invert as bitwise_invert
from hologram.array_api import bitwise_left_shift as bitwise_left_shift
from hologram.array_api import bitwise_right_shift as bitwise_right_shift
from hologram.array_api import broadcast_arrays as broadcast_arrays
from hologram.array_api import broadcast_to as broadcast_to
from hologram.array_api import concat as concat
from hologram.array_api import conj as conj
from hologram.array_api import count_nonzero as count_nonzero
from hologram.array_api import divide as divide
from hologram.array_api import e as e
from hologram.array_api import empty_like as empty_like
from hologram.array_api import expand_dims as expand_dims
from hologram.array_api import imag as imag
from hologram.array_api import inf as inf
from hologram.array_api import matrix_transpose as matrix_transpose
from hologram.array_api import meshgrid as meshgrid
from hologram.array_api import moveaxis as moveaxis
from hologram.array_api import multiply as multiply
from hologram.array_api import nan as nan
from hologram.array_api import negative as negative
from hologram.array_api import newaxis as newaxis
from hologram.array_api import nonzero as nonzero
from hologram.array_api import pad as pad
from hologram.array_api import permute_dims as permute_dims
from hologram.array_api import pi as pi
from hologram.array_api import positive as positive
from hologram.array_api import real as real
from hologram.array_api import repeat as repeat
from hologram.array_api import reshape as reshape
from hologram.array_api import roll as roll
from hologram.array_api import searchsorted as searchsorted
from hologram.array_api import signbit as signbit
from hologram.array_api import sort as sort
from hologram.array_api import subtract as subtract
from hologram.array_api import take_along_axis as take_along_axis
from hologram.array_api import tensordot as tensordot
from hologram.array_api import tile as tile
from hologram.array_api import unique_all as unique_all
from hologram.array_api import unique_counts as unique_counts
from hologram.array_api import unique_inverse as unique_inverse
from hologram.array_api import unique_values as unique_values
from hologram.array_api import unstack as unstack
from hologram.array_api import vecdot as vecdot
from hologram.backend import BackendType as BackendType
from hologram.backend import get_default_backend as get_default_backend
from hologram.backend import is_cuda_available as is_cuda_available
from hologram.backend import is_metal_available as is_metal_available

__version__ = _core._library_version()

bool = _core.bool_  # noqa: A001  the array API's name of it

_words.explain()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hologram import nn, optim
else:  # type checkers shall know that other names are not there
    _LATER = ("nn", "optim")  # imported when somebody asks for them

    def __dir__() -> list[str]:
        return sorted({*globals(), *_LATER})

    def __getattr__(name: str):
        """A module that is imported late; of a name that is not there: what to write instead, if other libraries have it."""
        import sys

        if name in _LATER:
            __import__(f"hologram.{name}")
            return sys.modules[f"hologram.{name}"]
        what = _core._near(name)
        if what is not None:
            raise AttributeError(f"hologram has no {name!r}: {what}")
        raise AttributeError(f"module 'hologram' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
