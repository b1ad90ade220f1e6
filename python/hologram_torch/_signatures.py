"""torch's names of operations of the table: functions and layers are made of a row of ROWS each, when they are asked for.

`name = operation(argument:own=default, ...)`: torch's arguments in torch's order. `own` is what the table calls it, where that is
another name than torch's or one of OWN; behind `!` stands the one value that is taken, since the operation has no such choice."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any, NamedTuple

import hologram as hg
from hologram_torch._function import on_tensors

ROWS = """
elu(input, alpha=1.0, inplace!False)
selu(input, inplace!False)
celu(input, alpha=1.0, inplace!False)
leaky_relu(input, negative_slope:slope=0.01, inplace!False)
prelu(input, weight)
relu6(input, inplace!False)
hardtanh(input, min_val:low=-1.0, max_val:high=1.0, inplace!False)
hardsigmoid(input, inplace!False)
hardswish(input, inplace!False)
mish(input, inplace!False)
softplus(input, beta=1.0, threshold!20)
softsign(input)
logsigmoid(input)
tanhshrink(input)
softshrink(input, lambd:threshold=0.5)
hardshrink(input, lambd:threshold=0.5)
threshold(input, threshold, value, inplace!False)
softmin(input, dim=-1)
glu(input, dim=-1)
group_norm(input, num_groups:groups, weight=None, bias=None, eps=1e-5)
instance_norm(input, running_mean!None, running_var!None, weight=None, bias=None, eps=1e-5)
normalize(input, p=2.0, dim=1, eps=1e-12)
mse_loss = mse(input, target, reduction='mean')
l1_loss = l1(input, target, reduction='mean')
smooth_l1_loss = smooth_l1(input, target, reduction='mean', beta=1.0)
huber_loss = huber(input, target, reduction='mean', delta=1.0)
kl_div(input, target, reduction='mean', log_target=False)
poisson_nll_loss = poisson_nll(input, target, log_input=True, full=False, eps=1e-8, reduction='mean')
gaussian_nll_loss = gaussian_nll(input, target, var, full=False, eps=1e-6, reduction='mean')
binary_cross_entropy = bce(input, target, weight=None, reduction='mean')
binary_cross_entropy_with_logits = bce_with_logits(input, target, weight=None, reduction='mean', pos_weight:positive=None)
margin_ranking_loss = margin_ranking(input1, input2, target, margin=0.0, reduction='mean')
hinge_embedding_loss = hinge_embedding(input, target, margin=1.0, reduction='mean')
multi_margin_loss = multi_margin(input, target, p=1, margin=1.0, weight=None, reduction='mean')
cosine_embedding_loss = cosine_embedding(input1, input2, target, margin=0.0, reduction='mean')
triplet_margin_loss = triplet_margin(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction='mean')
cosine_similarity(x1, x2, dim=1, eps=1e-8)
pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim!False)
cdist(x1, x2, p=2.0)
index_add(input, dim, index, source, alpha=1.0)
index_copy(input, dim, index, source)
index_reduce(input, dim, index, source, reduce, include_self=True)
embedding_bag(input:index, weight, offsets=None, max_norm!None, norm_type!2.0, scale_grad_by_freq!False, mode='mean', sparse!False, \
per_sample_weights=None, include_last_offset!False, padding_idx!None)
"""
LAYERS = {"BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits"}  # of other names
OWN = {"input": "x", "input1": "a", "input2": "b", "x1": "a", "x2": "b", "dim": "axis"}


class Argument(NamedTuple):
    own: str
    default: Any
    is_fixed: bool  # the default is all that it takes


class Row(NamedTuple):
    operation: str
    arguments: dict[str, Argument]

    def named(self, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """What the operation is called with. Defaults are its own, and None is what is not given."""
        if len(arguments) > len(self.arguments):
            raise TypeError(f"{name} takes {len(self.arguments)} arguments at most, not {len(arguments)}")
        given = dict(zip(self.arguments, arguments))
        for key, value in named.items():
            if key in given:
                raise TypeError(f"{name}: {key} is given twice")
            if key not in self.arguments:
                raise TypeError(f"{name} takes ({', '.join(self.arguments)}), not {key}")
            given[key] = value
        values = {}
        for key, value in given.items():
            own, default, is_fixed = self.arguments[key]
            if is_fixed and value is not default and value != default:
                raise ValueError(f"{name}: {key} is {default} here, not {value}; torch.nn.functional.{name} has others")
            if not is_fixed and value is not None:
                values[own] = value
        return values

    def signature(self) -> Signature:
        kinds = Parameter.POSITIONAL_OR_KEYWORD
        parameters = [Parameter(key, kinds, default=argument.default) for key, argument in self.arguments.items()]
        return Signature([*parameters, Parameter("executor", Parameter.KEYWORD_ONLY, default=None)])


def _argument(text: str) -> tuple[str, Argument]:
    is_fixed = "!" in text
    names, _, default = text.partition("!" if is_fixed else "=")
    name, _, own = names.partition(":")
    return name, Argument(own or OWN.get(name, name), literal_eval(default) if default else Parameter.empty, is_fixed)


@cache
def rows() -> dict[str, Row]:
    """By torch's name of the function."""
    made = {}
    for line in ROWS.strip().splitlines():
        head, _, arguments = line.rstrip(")").partition("(")
        name, _, operation = head.partition(" = ")
        made[name] = Row(operation or name, dict(map(_argument, arguments.split(", "))))
    return made


def function(name: str) -> Callable[..., Any]:
    """The operation with torch's name and arguments; an executor may come first, or as a keyword. KeyError: there is no row."""
    row = rows()[name]
    operation = on_tensors(row.operation)

    def call(*arguments: Any, executor: hg.Executor | None = None, **named: Any) -> Any:
        if arguments and isinstance(arguments[0], hg.Executor):
            executor, arguments = arguments[0], arguments[1:]
        values = row.named(name, arguments, named)
        return operation(**values) if executor is None else operation(**values, executor=executor)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = operation.__doc__
    call.__signature__ = row.signature()  # type: ignore[attr-defined]
    return call


def layer_row(name: str) -> tuple[str, Row] | None:
    """The function of a layer of torch.nn by its name: SmoothL1Loss, KLDivLoss, InstanceNorm2d."""
    if name in LAYERS:
        return LAYERS[name], rows()[LAYERS[name]]
    plain = name.lower().removesuffix("1d").removesuffix("2d").removesuffix("3d")
    for function_name, row in rows().items():
        if function_name.replace("_", "") in (plain, plain.removesuffix("loss")):
            return function_name, row
    return None
