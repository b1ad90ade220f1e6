"""Rows of operations that are computed element by element, and of random numbers."""

from __future__ import annotations

from typing import Any

from hologram import _core
from hologram_torch._compile.rows import Array, Function, cast, filled, pointwise, row

# Element by element: torch's names, `=` and ours where it is another one. Operands become of the common type first. A name with an
# overload (`.Tensor`) is that alone.
POINTWISE = """
abs acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh digamma erf erfc erfinv exp exp2 expm1 floor fmax fmin fmod
hypot isinf isnan lgamma log log10 log1p log2 maximum minimum mul neg nextafter reciprocal remainder round.default rsqrt sigmoid
sin sinh sqrt tan tanh trunc xlogy i0 special_ndtri=ndtri special_ndtr=ndtr special_entr=entr
special_i1=i1 special_log_ndtr=log_ndtr special_xlog1py=xlog1py sinc
eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal
bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift=shift_left bitwise_right_shift=shift_right
__and__=bitwise_and __or__=bitwise_or __xor__=bitwise_xor __lshift__=shift_left __rshift__=shift_right
silu mish hardswish hardsigmoid log_sigmoid=logsigmoid softsign
"""
OF_INTEGERS = """abs ceil floor trunc round mul neg maximum minimum fmod remainder fmax fmin bitwise_and bitwise_or bitwise_xor
bitwise_not shift_left shift_right equal not_equal less less_equal greater greater_equal""".split()

OF_BOOLS = "maximum minimum fmax fmin less less_equal greater greater_equal".split()  # as numbers


def _as_numbers(operation: Function) -> Function:
    """The operation, which bools go through as numbers."""

    def of(to: Any, *operands: Any) -> Any:
        if any(isinstance(one, Array) and one.dtype.name == "bool" for one in operands):
            operands = tuple(cast(one, "uint8") if isinstance(one, Array) else int(one) for one in operands)
        return operation(*operands)

    return of


def _of_table(name: str) -> Function:
    operation = getattr(_core, name)
    return _as_numbers(operation) if name in OF_BOOLS else lambda to, *operands: operation(*operands)


for _word in POINTWISE.split():
    _name, _, _own = _word.partition("=")
    _own = _own if "=" in _word else _name.partition(".")[0]
    if _own:
        pointwise(_name, of_integers=_own in OF_INTEGERS)(_of_table(_own))


def _sign_of_numbers(x: Array) -> Array:
    """0 of NaN."""
    return _core.where(_core.isnan(x), 0, _core.sign(x)) if x.dtype.kind == "float" else _core.sign(x)


pointwise("sign", "sgn")(_as_numbers(_sign_of_numbers))


@pointwise("add")
def _add(to: Any, a: Any, b: Any, alpha: Any = 1) -> Array:
    if to == "bool":
        return _core.logical_or(a, b)
    return _core.add(a, b if alpha == 1 else _core.mul(b, alpha) if isinstance(b, Array) else b * alpha)


@pointwise("sub")
def _sub(to: Any, a: Any, b: Any, alpha: Any = 1) -> Array:
    return _core.sub(a, b if alpha == 1 else _core.mul(b, alpha) if isinstance(b, Array) else b * alpha)


@pointwise("rsub")
def _rsub(to: Any, a: Any, b: Any, alpha: Any = 1) -> Any:
    return _sub(to, b, a, alpha)


@pointwise("mul")
def _mul(to: Any, a: Any, b: Any) -> Array:
    return _core.logical_and(a, b) if to == "bool" else _core.mul(a, b)


@pointwise("div", "true_divide")
def _div(to: Any, a: Any, b: Any, rounding_mode: str | None = None) -> Array:
    if rounding_mode == "floor":
        return _core.floor_divide(a, b)
    made = _core.div(a, b)
    return _core.trunc(made) if rounding_mode == "trunc" else made


@pointwise("floor_divide")
def _floor_divide(to: Any, a: Any, b: Any) -> Array:
    return _core.floor_divide(a, b)


@pointwise("pow")
def _pow(to: Any, a: Any, b: Any) -> Any:
    special: dict[Any, Function] = {1: lambda x: x, 2: _core.square, 3: lambda x: x * x * x, 0.5: _core.sqrt, -1: _core.reciprocal,
                                    -0.5: _core.rsqrt}  # fmt: skip
    if not isinstance(b, Array) and b in special:
        return special[b](a)
    return _core.pow(a, b)


@row("logical_not")
def _logical_not(to: Any, x: Array) -> Array:
    return _core.logical_not(cast(x, "bool"))


for _name in ("logical_and", "logical_or", "logical_xor"):
    row(_name)(lambda to, a, b, operation=getattr(_core, _name): operation(cast(a, "bool"), cast(b, "bool")))


@row("where.self", "where.ScalarOther", "where.ScalarSelf")
def _where(to: Any, condition: Array, a: Any, b: Any) -> Any:
    made: Array = _core.where(cast(condition, "bool"), cast(a, to), cast(b, to))
    return cast(made, to)


@pointwise("clamp", "clip")
def _clamp(to: Any, x: Array, low: Any = None, high: Any = None) -> Array:
    made = x if low is None else _core.maximum(x, low)
    return made if high is None else _core.minimum(made, high)


@pointwise("clamp_min")
def _clamp_min(to: Any, x: Array, low: Any) -> Array:
    return _core.maximum(x, low)


@pointwise("clamp_max")
def _clamp_max(to: Any, x: Array, high: Any) -> Array:
    return _core.minimum(x, high)


@pointwise("relu")
def _relu(to: Any, x: Array) -> Array:
    return _core.relu(x) if x.dtype.kind == "float" else _core.maximum(x, 0)


@pointwise("gelu", of_integers=False)
def _gelu(to: Any, x: Array, approximate: str = "none") -> Array:
    return _core.gelu(x) if approximate == "none" else _core.gelu_tanh(x)


@pointwise("leaky_relu", of_integers=False)
def _leaky_relu(to: Any, x: Array, slope: float = 0.01) -> Array:
    return _core.leaky_relu(x, slope)


@pointwise("hardtanh", of_integers=False)
def _hardtanh(to: Any, x: Array, low: float = -1.0, high: float = 1.0) -> Array:
    return _core.hardtanh(x, low, high)


@pointwise("elu", of_integers=False)
def _elu(to: Any, x: Array, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Array:
    below = _core.mul(_core.expm1(_core.mul(_core.minimum(x, 0), input_scale)), alpha * scale)
    return _core.where(_core.greater(x, 0), _core.mul(x, scale), below)


@pointwise("lerp", of_integers=False)
def _lerp(to: Any, a: Array, b: Array, t: Any) -> Array:
    return _core.lerp(a, b, t)


@pointwise("polygamma", of_integers=False)
def _polygamma(to: Any, n: int, x: Array) -> Array:
    return _core.polygamma(x, n)


@pointwise("round.decimals", of_integers=False)
def _round(to: Any, x: Array, *, decimals: int) -> Array:
    return _core.round_to(x, decimals)


@pointwise("ldexp", of_integers=False)
def _ldexp(to: Any, x: Array, power: Any) -> Array:
    return _core.mul(x, _core.exp2(power))


@row("_to_copy")
def _to_copy(to: Any, x: Array, **named: Any) -> Any:
    return cast(x, to)


@row("clone", "alias", "detach", "lift_fresh_copy", "lift_fresh", "contiguous", "positive", "_lazy_clone")
def _same(to: Any, x: Array, **named: Any) -> Array:
    return x


@row("copy")
def _copy(to: Any, x: Array, source: Array, non_blocking: bool = False) -> Array:
    return _core.broadcast(cast(source, to), list(x.shape))


@row("native_dropout", is_random=True)
def _native_dropout(key: Array, to: Any, x: Array, p: float, train: bool | None = True) -> tuple[Array, Array]:
    if train is False or p == 0:
        return x, filled(x.shape, True, "bool")
    # dropout of ones tells which were kept, as dropout's own draw of x
    kept = _core.not_equal(_core.dropout(filled(x.shape, 1.0, "float32"), key, p=p), 0)
    return _core.dropout(x, key, p=p), kept


@row("rand", is_random=True)
def _rand(key: Array, to: Any, shape: Any, **named: Any) -> Array:
    return _core.uniform(key, shape=list(shape), dtype=to)


@row("rand_like", is_random=True)
def _rand_like(key: Array, to: Any, x: Array, **named: Any) -> Array:
    return _core.uniform(key, shape=list(x.shape), dtype=to)


@row("randn", is_random=True)
def _randn(key: Array, to: Any, shape: Any, **named: Any) -> Array:
    return _core.normal(key, shape=list(shape), dtype=to)


@row("randn_like", is_random=True)
def _randn_like(key: Array, to: Any, x: Array, **named: Any) -> Array:
    return _core.normal(key, shape=list(x.shape), dtype=to)
