"""Linear algebra: the names of the array API's extension, and lstsq and triangular_solve. Matrices lie on the last two axes, what
stands before is a batch. float32 and float64 (float16 and bfloat16 are computed in float32, integers become float32); the same bits on
every device. Lazy like everything: nothing is raised for a singular matrix, of which results are infinite or NaN.

    q, r = hg.linalg.qr(a)
    x = hg.linalg.solve(a, b)"""

from __future__ import annotations

from collections import namedtuple

from hologram import _core, _products, array_api
from hologram.array_api import matmul as matmul
from hologram.array_api import matrix_transpose as matrix_transpose
from hologram.array_api import tensordot as tensordot
from hologram.array_api import vecdot as vecdot

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing takes milliseconds to import
    from typing import Any

__all__ = ["cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm", "matrix_power",
           "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd",
           "svdvals", "tensordot", "trace", "triangular_solve",
           "vecdot", "vector_norm"]

EighResult = namedtuple("EighResult", "eigenvalues eigenvectors")
QRResult = namedtuple("QRResult", "Q R")
SlogdetResult = namedtuple("SlogdetResult", "sign logabsdet")
SVDResult = namedtuple("SVDResult", "U S Vh")
LstsqResult = namedtuple("LstsqResult", "solution rank singular_values")


def _matrix(name: str, x: Any, is_square: bool = False) -> Any:
    x = array_api.asarray(x)
    if x.ndim < 2 or (is_square and x.shape[-1] != x.shape[-2]):
        raise ValueError(f"{name}: {'square ' * is_square}matrices on the last two axes are expected, not an array of shape {x.shape}")
    return x


def _tolerance(x: Any, rtol: Any) -> Any:
    """As the array API has it: by default the larger size times the type's epsilon."""
    if rtol is None:
        return max(x.shape[-2:]) * array_api.finfo(x.dtype if x.dtype.kind == "float" else _core.float32).eps
    return rtol


# ---- systems ----------------------------------------------------------------------------------------------------------

def cholesky(x: Any, /, *, upper: bool = False) -> Any:
    """The lower triangular L with L @ L.T equal to x [..., n, n], which is symmetric and positive definite; upper: its transpose.

    Only x's lower triangle is read; the gradient is symmetric. Where x is not positive definite, L is NaN from the first column on
    that shows it (NumPy raises). Golub and Van Loan, 4.2; gradient: Murray 2016.

        L = hg.linalg.cholesky(hg.asarray([[4.0, 2.0], [2.0, 3.0]]))"""
    return _core.cholesky(_matrix("cholesky", x, True), upper)


def triangular_solve(a: Any, b: Any, /, *, upper: bool = False, transpose: bool = False, unit: bool = False) -> Any:
    """x of a @ x = b, or with transpose a.T @ x = b, for a triangular a [..., n, n] and b [..., n, k] or [n].

    Only one triangle of a is read, the lower one unless `upper`; unit: its diagonal is taken as 1. A 0 on the diagonal gives
    infinities and NaN.

        x = hg.linalg.triangular_solve(L, b)"""
    a, b = _matrix("triangular_solve", a, True), array_api.asarray(b)
    if b.ndim == 1:
        return _core.triangular_solve(a, b[:, None], upper, transpose, unit)[..., 0]
    return _core.triangular_solve(a, b, upper, transpose, unit)


def solve(x1: Any, x2: Any, /) -> Any:
    """x of x1 @ x = x2, x1 [..., n, n], x2 [..., n, k] or [n], by LU with partial pivoting.

    Of a singular x1: infinities and NaN (NumPy raises). Golub and Van Loan, 3.4.

        x = hg.linalg.solve(a, b)"""
    x1, x2 = _matrix("solve", x1, True), array_api.asarray(x2)
    return _core.solve(x1, x2[:, None])[..., 0] if x2.ndim == 1 else _core.solve(x1, x2)


def inv(x: Any, /) -> Any:
    """The inverse of x [..., n, n], by `solve`, which is faster and more accurate where a system is meant. Of a singular x: infinities
    and NaN (NumPy raises).

        y = hg.linalg.inv(a)"""
    return _core.inv(_matrix("inv", x, True))


def det(x: Any, /) -> Any:
    """Determinants of x [..., n, n], by LU; 0 of a singular x, whose gradient is NaN.

        d = hg.linalg.det(a)"""
    return _core.det(_matrix("det", x, True))


def slogdet(x: Any, /) -> Any:
    """(sign, logabsdet): the sign of det(x) and log(abs(det(x))), which neither overflows nor vanishes; 0 and -inf of a singular x.

        sign, logabsdet = hg.linalg.slogdet(a)"""
    x = _matrix("slogdet", x, True)
    return SlogdetResult(_core.lu_sign(_core.lu_blocks(x)), _core.log_abs_det(x))


def lstsq(a: Any, b: Any, /, *, rtol: Any = None) -> Any:
    """(solution, rank, singular_values): of all x that make the norm of a @ x - b least the one of least norm, a [..., m, n],
    b [..., m, k] or [m], by the singular values above rtol times the largest (default: max(m, n) times the type's epsilon).

    The gradient is that of a matrix whose rank stays as it is (Golub and Pereyra 1973).

        x = hg.linalg.lstsq(a, b).solution"""
    a, b = _matrix("lstsq", a), array_api.asarray(b)
    solution = _core.matmul(pinv(a, rtol=rtol), b[:, None] if b.ndim == 1 else b)
    return LstsqResult(solution[..., 0] if b.ndim == 1 else solution, matrix_rank(a, rtol=rtol), svdvals(a))


def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """The pseudo-inverse of x [..., m, n], by the singular values above rtol times the largest (default: max(m, n) times the type's
    epsilon). rtol: a number, or an array with one for each matrix.

        y = hg.linalg.pinv(a)"""
    x = _matrix("pinv", x)
    if 0 in x.shape[-2:]:
        return matrix_transpose(x)
    rtol = _tolerance(x, rtol)
    return _core.pinv(x, array_api.asarray(rtol, dtype=x.dtype, device=x.device) if isinstance(rtol, (int, float)) else rtol)


# ---- factors ----------------------------------------------------------------------------------------------------------

def qr(x: Any, /, *, mode: str = "reduced") -> Any:
    """(Q, R) with Q @ R equal to x [..., m, n], R upper triangular: Q [..., m, k] has orthonormal columns, k = min(m, n), or with
    mode="complete" k = m. Signs are LAPACK's.

    Golub and Van Loan, 5.2 (Householder); gradient: Walter and Lehmann 2010; none of more columns of Q than x has.

        Q, R = hg.linalg.qr(a)"""
    x = _matrix("qr", x)
    m, n = x.shape[-2:]
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr: mode is 'reduced' or 'complete', not {mode!r}")
    if mode == "reduced" or m <= n:
        return QRResult(*_core.qr(x))
    packed = _core.qr_complete_blocks(x)
    return QRResult(packed[..., :m, :], matrix_transpose(packed[..., m:, :]))


def eigh(x: Any, /) -> Any:
    """(eigenvalues, eigenvectors) of a symmetric x [..., n, n]: ascending [..., n], and columns [..., n, n]. Only the lower triangle
    is read; the gradient is symmetric. A vector's sign is arbitrary, but the same everywhere.

    Up to n = 64 by Jacobi's rotations (Golub and Van Loan, 8.5), a block for a matrix; larger ones are made tridiagonal by a block, and
    that is halved and joined in products of matrices (Cuppen 1981, Gu and Eisenstat 1995). Relative to x's norm as accurate as LAPACK.
    Where eigenvalues are equal, a gradient through eigenvectors that depends on their choice is infinite or NaN.

        w, v = hg.linalg.eigh(a)"""
    return EighResult(*_core.eigh(_matrix("eigh", x, True)))


def eigvalsh(x: Any, /) -> Any:
    """The eigenvalues of `eigh`.

        w = hg.linalg.eigvalsh(a)"""
    return eigh(x)[0]


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """(U, S, Vh) with U * S @ Vh equal to x [..., m, n]: k = min(m, n) descending singular values, U [..., m, k], Vh [..., k, n], or
    with full_matrices [..., m, m] and [..., n, n]. Signs are arbitrary, but the same everywhere.

    Up to k = 64 by one-sided rotations (Golub and Van Loan, 8.6.3), a block for a matrix; larger ones are made bidiagonal by a block,
    which is an eigenproblem of twice the size (Golub and Kahan 1965), solved as in `eigh`. Relative to x's norm as accurate as LAPACK.
    No gradient flows through the columns that full_matrices adds; where singular values are equal, one that depends on the choice of
    vectors is infinite or NaN.

        U, S, Vh = hg.linalg.svd(a, full_matrices=False)"""
    x = _matrix("svd", x)
    u, s, vh = _core.svd(x)
    m, n = x.shape[-2:]
    if not full_matrices or m == n:
        return SVDResult(u, s, vh)
    return SVDResult(_completed(u), s, vh) if m > n else SVDResult(u, s, matrix_transpose(_completed(matrix_transpose(vh))))


def _completed(u: Any) -> Any:
    """Orthonormal columns, and as many more as there are rows."""
    m, n = u.shape[-2:]
    return _core.concatenate([u, _core.qr_complete_blocks(u)[..., :m, n:]], axis=-1)


def svdvals(x: Any, /) -> Any:
    """The singular values of `svd`.

        s = hg.linalg.svdvals(a)"""
    return _core.svd(_matrix("svdvals", x))[1]


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """How many singular values of x [..., m, n] are above rtol times the largest (default: max(m, n) times the type's epsilon): int64.

        r = hg.linalg.matrix_rank(a)"""
    x = _matrix("matrix_rank", x)
    if 0 in x.shape[-2:]:
        return array_api.zeros(x.shape[:-2], dtype=_core.int64, device=x.device)
    s, rtol = svdvals(x), _tolerance(x, rtol)
    limit = s[..., :1] * (rtol if isinstance(rtol, (int, float)) else array_api.asarray(rtol)[..., None])
    return array_api.sum(s > limit, axis=-1)


# ---- powers and norms -------------------------------------------------------------------------------------------------

def matrix_power(x: Any, n: int, /) -> Any:
    """x [..., k, k] to the n-th power, n an integer, by squares; n < 0: of the inverse.

        y = hg.linalg.matrix_power(a, 10)"""
    x = _matrix("matrix_power", x, True)
    square, power, made = inv(x) if n < 0 else x, abs(n), None
    while power > 0:
        if power & 1:
            made = square if made is None else matmul(made, square)
        power >>= 1
        square = matmul(square, square) if power else square
    return _core.triu(_core.tril(array_api.ones_like(x))) if made is None else made


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of x's elements along axes (None: all): the ord-th root of the sum of |x|**ord; inf and -inf: the largest and the
    smallest |x|; 0: how many are not 0.

        y = hg.linalg.vector_norm(a, axis=-1)"""
    x = array_api.asarray(x)
    if axis == ():
        return array_api.abs(x) if ord != 0 else (x != 0).astype(x.dtype)
    return _core.norm(x, axis, float(ord), keepdims)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices [..., m, n]: "fro" of all elements, "nuc" the sum of the singular values, 1 and -1 the largest and smallest
    sum of |x| down a column, inf and -inf across a row, 2 and -2 the largest and smallest singular value.

        y = hg.linalg.matrix_norm(a)"""
    x = _matrix("matrix_norm", x)
    if ord == "fro":
        return _core.norm(x, (-2, -1), 2.0, keepdims)
    if ord not in ("nuc", 1, -1, 2, -2, float("inf"), -float("inf")):
        raise ValueError(f"matrix_norm: ord is 'fro', 'nuc', 1, -1, 2, -2, inf or -inf, not {ord!r}")
    if ord in ("nuc", 2, -2):
        s = svdvals(x)
        made = array_api.sum(s, axis=-1) if ord == "nuc" else s[..., 0 if ord == 2 else -1]
    else:
        sums = array_api.sum(array_api.abs(x), axis=-2 if abs(ord) == 1 else -1)
        made = (array_api.max if ord > 0 else array_api.min)(sums, axis=-1)
    return made[..., None, None] if keepdims else made


# ---- parts and products -----------------------------------------------------------------------------------------------

def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The elements x[..., i, i + offset].

        d = hg.linalg.diagonal(a)"""
    return _products.diagonal(_matrix("diagonal", x), offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum of x[..., i, i + offset].

        t = hg.linalg.trace(a)"""
    return array_api.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all elements of two vectors: [m, n].

        y = hg.linalg.outer(a, b)"""
    x1, x2 = array_api.asarray(x1), array_api.asarray(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer: two vectors are expected, not arrays of shapes {x1.shape} and {x2.shape}")
    return _core.outer(x1, x2)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of 3 elements along an axis.

        y = hg.linalg.cross(a, b)"""
    x1, x2 = array_api.asarray(x1), array_api.asarray(x2)
    if min(x1.ndim, x2.ndim) == 0 or x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(f"cross: there have to be 3 elements along axis {axis} of both, which have shapes {x1.shape} and {x2.shape}")
    return _core.cross(x1, x2, axis)


if not TYPE_CHECKING:  # type checkers shall know that other names are not there

    def __getattr__(name: str) -> Any:
        """Of a name that NumPy or PyTorch have: what to write instead."""
        instead = {"norm": "use vector_norm or matrix_norm", "eig": "there are no complex numbers; eigh is for symmetric matrices",
                   "eigvals": "there are no complex numbers; eigvalsh is for symmetric matrices", "LinAlgError": "nothing is raised for "
                   "singular matrices, whose results are infinite or NaN", "solve_triangular": "use triangular_solve", "dot": "use matmul",
                   "multi_dot": "use hg.einsum, which chooses the order", "lu_factor": "use hg.lu_blocks and hg.lu_solve",
                   "cond": "divide svdvals(x)[..., 0] by svdvals(x)[..., -1]", "cholesky_ex": "use cholesky", "inv_ex": "use inv"}
        why = f": {instead[name]}" if name in instead else ""
        raise AttributeError(f"hologram.linalg has no {name!r}{why}")
