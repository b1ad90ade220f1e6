"""`torch.compile(model, backend="hologram")`: Dynamo's graphs, forward and backward, become computations of arrays.

AOTAutograd makes a graph functional and decomposes it; nodes that have a row (rows.py) are recorded as arrays (graph.py) and computed
together (call.py); others stay PyTorch's, between them, and are named in `hologram_torch.report()` (report.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from operator import getitem
from typing import Any

import torch
from torch import fx
from torch._decomp import core_aten_decompositions, get_decompositions
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch.nn.attention import SDPBackend, sdpa_kernel

import hologram as hg
from hologram import _core
from hologram_torch._compile import parts, report
from hologram_torch._compile.call import How, boxed
from hologram_torch._compile.graph import RETURNED, left_to_torch, returned_views
from hologram_torch._compile.rows import ROWS

OPTIONS = {"strict": (False, True), "numerics": ("canonical", "fast"), "executor": ()}
aten = torch.ops.aten
MORE = (aten.native_batch_norm, aten._native_batch_norm_legit, aten._native_batch_norm_legit_functional,
        aten._native_batch_norm_legit_no_training, aten.native_group_norm)  # fmt: skip


@cache
def decompositions() -> dict[Any, Callable[..., Any]]:
    """torch's, of what has no row."""
    table = {**core_aten_decompositions(), **get_decompositions(MORE)}
    return {operation: function for operation, function in table.items() if operation not in ROWS}


def how(options: dict[str, Any]) -> How:
    """What the options say; ValueError: they say something else."""
    for name, value in options.items():
        if name not in OPTIONS:
            raise ValueError(f"backend='hologram' has the options {', '.join(OPTIONS)}, not {name!r}")
        if name == "executor" and not isinstance(value, hg.Executor):
            raise ValueError(f"backend='hologram': executor is an hg.Executor, not {value!r}")
        if name != "executor" and value not in OPTIONS[name]:
            raise ValueError(f"backend='hologram': {name} is {' or '.join(map(repr, OPTIONS[name]))}, not {value!r}")
    numerics = {None: _core._numerics(), "canonical": 0, "fast": _core._NUMERICS_FAST}[options.get("numerics")]
    return How(numerics, options.get("executor"), options.get("strict", False))


def backend(module: fx.GraphModule, inputs: Sequence[Any], *, options: dict[str, Any] | None = None, **more: Any) -> Callable[..., Any]:
    """What torch.compile calls with each graph that Dynamo finds."""
    if more:
        raise ValueError(f"backend='hologram' takes options={{...}} with {', '.join(OPTIONS)}, not {', '.join(more)}")
    given = how(options or {})
    kinds = [partial(compile_graph, kind, given) for kind in ("forward", "backward", "inference")]
    compiler = aot_autograd(fw_compiler=kinds[0], bw_compiler=kinds[1], inference_compiler=kinds[2], decompositions=decompositions(),
                            partition_fn=min_cut_rematerialization_partition)  # fmt: skip
    with sdpa_kernel(SDPBackend.MATH):  # attention in operations that have rows
        made: Callable[..., Any] = compiler(module, inputs)
    return made


def seen_outputs(kind: str) -> int | None:
    """How many outputs of a graph come before what it keeps for the backward graph."""
    context = TracingContext.try_get() if kind == "forward" else None
    return None if context is None or context.fw_metadata is None else int(context.fw_metadata.num_forward)


def compile_graph(kind: str, how: How, module: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    """One graph, as a function of a list that it empties."""
    seen = seen_outputs(kind)
    views = returned_views(module.graph, 0 if kind == "backward" else seen)
    left = left_to_torch(module.graph, views)
    if how.is_strict and any(not name.endswith(RETURNED) for name in left):  # those compute nothing
        names = ", ".join(f"{count} of {name}" for name, count in left.items() if not name.endswith(RETURNED))
        raise NotImplementedError(f"backend='hologram' with strict=True: the {kind} graph has operations that stay PyTorch's: {names}")
    total = sum(node.op == "call_function" and node.target is not getitem for node in module.graph.nodes)
    made, count = parts.divided(module, how, views) if left else (boxed(module, how._replace(seen=seen)), 1)
    report.note(kind, total - sum(left.values()), left, count)
    return made
